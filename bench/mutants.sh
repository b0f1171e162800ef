#!/usr/bin/env bash
# Mutation testing of the plans of linear-layout: which small changes of the planners does no test see?
#
#   bench/mutants.sh [COUNT|all [SEED]]
#
# All changes of crates/linear-layout/src/plan that compile are built into one program (bench/mutants), which applies the one
# that is asked for; a sample of COUNT (40), drawn by SEED (1), is tested, or all of them. Checkers are left out, since they judge.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
exec python3 bench/mutants.py "$@"
