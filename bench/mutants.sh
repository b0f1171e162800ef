#!/usr/bin/env bash
# Mutation testing of the plans of linear-layout: which small changes of the planners does no test see?
#
#   bench/mutants.sh [COUNT [SEED]]
#
# A sample of COUNT mutants (40) of crates/linear-layout/src/plan, drawn by SEED (1), is built and tested one by one;
# checkers are left out, since they judge. Needs `cargo install cargo-mutants`; nothing else of the project does.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
if ! cargo mutants --version >/dev/null 2>&1; then
  echo "mutants.sh: cargo mutants is not installed: cargo install cargo-mutants --locked"
  exit 1
fi
exec python3 bench/mutants.py "$@"
