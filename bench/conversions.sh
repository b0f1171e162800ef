#!/usr/bin/env bash
# conversions.py, compared with Triton where there is one.
exec python3 "$(dirname "${BASH_SOURCE[0]}")/conversions.py"
