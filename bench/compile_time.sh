#!/usr/bin/env bash
# Time to compile, stage by stage, compared with Triton where there is one.
exec python3 "$(dirname "${BASH_SOURCE[0]}")/compile_time.py"
