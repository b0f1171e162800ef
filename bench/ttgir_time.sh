#!/usr/bin/env bash
# ttgir_time.py, compared with Triton where there is one.
exec python3 "$(dirname "${BASH_SOURCE[0]}")/ttgir_time.py"
