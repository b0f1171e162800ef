#!/usr/bin/env bash
# accepted.py, where there is a Triton to ask.
if [ -z "${TTOPT_TRITON_PYTHON:-}" ]; then
  echo "accepted.sh: TTOPT_TRITON_PYTHON names no python with triton 3.9: nothing to compare with"
  exit
fi
exec "$TTOPT_TRITON_PYTHON" "$(dirname "${BASH_SOURCE[0]}")/accepted.py" "$@"
