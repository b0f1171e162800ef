#!/usr/bin/env bash
# Parsing, verifying and printing, compared with Triton where there is one.
exec python3 "$(dirname "${BASH_SOURCE[0]}")/parse.py"
