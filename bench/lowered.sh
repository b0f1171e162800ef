#!/usr/bin/env bash
# Runs the TTGIR that Triton makes of the corpus, pipelined, on the simulator after our lowering.
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
if [ -z "${TTOPT_TRITON_PYTHON:-}" ]; then
  echo "lowered.sh: TTOPT_TRITON_PYTHON names no python with triton 3.9: nothing to lower"
  exit
fi
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
"$TTOPT_TRITON_PYTHON" "$root/bench/accepted.py" --write "$folder" &&
  "$root/target/companions/numpy/bin/python3" "$root/test/simt/run_corpus.py" --modules "$folder" --data "$folder/data" \
    --ttsim "${TTOPT_BIN_DIR:-$root/target/release}/ttsim" --targets cuda:80,cuda:90
