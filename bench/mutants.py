"""A sample of the mutants of linear-layout's plans, each tested by the tests that concern its file.

See mutants.sh. Prints the mutants that no test caught, and how many of those that compile were caught.
"""

import collections
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
PLANS = "crates/linear-layout/src/plan/"
# The tests of each file, few since each mutant links all of its own anew. Files that are not here are tested by all.
MOVES = ["plan_conversion", "mutations", "plan_shared", "plan_optimality"]
ALONG = ["plan_dynamic", "mutations", "plan_reduce"]
MATRICES = ["plan_dot", "plan_warp_group", "mutations"]
TESTS = {
    **dict.fromkeys(["access", "convert", "shuffle", "swizzle", "space", "shared", "wavefront"], MOVES),
    **dict.fromkeys(["detour", "gather", "reduce", "scan", "scan_exchange"], ALONG),
    **dict.fromkeys(["dot", "matrix_instruction", "warp_group"], MATRICES),
    **dict.fromkeys(["vector", "tma", "tma_rows", "descriptor"], ["plan_vector", "plan_tma", "plan_descriptor"]),
    **dict.fromkeys(["display", "json"], ["plan_conversion", "ttlayout_plan"]),
}
ALL = sorted({test for tests in TESTS.values() for test in tests})


def mutants():
    """Every mutant by name."""
    command = ["cargo", "mutants", "--list", "-p", "linear-layout", "-f", PLANS + "*.rs"]
    return subprocess.run(command, cwd=ROOT, check=True, text=True, capture_output=True).stdout.splitlines()


def run(names, tests, out):
    """Outcomes of the mutants `names` under `tests`, by kind."""
    command = ["cargo", "mutants", "-p", "linear-layout", "-f", PLANS + "*.rs", "-o", out, "-j", "1"]
    command += ["--baseline", "skip", "--timeout", "300", "--build-timeout", "1200", "--no-shuffle"]
    command += [arg for name in names for arg in ("--re", "^" + re.escape(name) + "$")]
    # For cargo, not for the tests: what is not run need not be built.
    command += [f"--cargo-arg=--test={test}" for test in tests]
    subprocess.run(command, cwd=ROOT, env=os.environ | {"CARGO_INCREMENTAL": "1"}, check=False,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    folder = pathlib.Path(out) / "mutants.out"
    return {kind: (folder / f"{kind}.txt").read_text().splitlines()
            for kind in ("caught", "missed", "timeout", "unviable")}


def main():
    count, seed = (int(arg) for arg in (sys.argv[1:] + ["40", "1"][len(sys.argv) - 1:])[:2])
    everything = mutants()
    sample = random.Random(seed).sample(everything, min(count, len(everything)))
    groups = collections.defaultdict(list)
    for name in sample:
        stem = pathlib.Path(name.split(":")[0]).stem
        groups[tuple(TESTS.get(stem, ALL))].append(name)
    found = collections.Counter()
    for tests, names in sorted(groups.items()):
        with tempfile.TemporaryDirectory() as out:
            for kind, listed in run(names, tests, out).items():
                found[kind] += len(listed)
                if kind == "missed":
                    for name in listed:
                        print("missed:", name, flush=True)
    # A mutant that never ends is caught.
    caught, viable = found["caught"] + found["timeout"], len(sample) - found["unviable"]
    print(f"{caught} of {viable} viable mutants caught ({100 * caught / max(viable, 1):.1f} %); "
          f"seed {seed}, {len(sample)} of {len(everything)} mutants, {found['unviable']} do not compile")
    return caught + found["missed"] != viable


if __name__ == "__main__":
    sys.exit(main())
