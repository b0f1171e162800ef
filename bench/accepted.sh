#!/usr/bin/env bash
# accepted.py with the Triton that TTOPT_TRITON_PYTHON names.
exec "${TTOPT_TRITON_PYTHON:?names a python with triton 3.9}" "$(dirname "${BASH_SOURCE[0]}")/accepted.py"
