#!/usr/bin/env bash
# How compile time grows with the length of a function.
exec python3 "$(dirname "${BASH_SOURCE[0]}")/scaling.py" "$@"
