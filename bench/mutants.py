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
# Built quickly, and they find most.
QUICK = ["mutations", "fuzz"]
# What these miss is tested by the tests of its file. Files that are not here are tested by all.
MOVES = ["plan_conversion", "plan_shared", "plan_optimality", "plan_dynamic"]
ALONG = ["plan_dynamic", "plan_reduce", "ttlayout_plan"]
TESTS = {
    **dict.fromkeys(["access", "convert", "shuffle", "swizzle", "space", "shared", "wavefront"], MOVES),
    **dict.fromkeys(["detour", "gather", "reduce", "scan", "scan_exchange"], ALONG),
    **dict.fromkeys(["dot", "matrix_instruction", "warp_group"], ["plan_dot", "plan_warp_group", "targets"]),
    **dict.fromkeys(["tma", "tma_rows", "descriptor"], ["plan_tma", "plan_descriptor"]),
    "vector": ["plan_vector"],
    **dict.fromkeys(["display", "json"], ["plan_conversion", "ttlayout_plan"]),
}
ALL = sorted({test for tests in TESTS.values() for test in tests})
# `|` joins bits that no other has, where `^` is the same. Deleted fields are not selected by name.
LEFT_OUT = ["--exclude-re", r"replace \| with \^", "--exclude-re", "delete field"]


def mutants():
    """Every mutant by name."""
    command = ["cargo", "mutants", "--list", "-p", "linear-layout", "-f", PLANS + "*.rs", *LEFT_OUT]
    return subprocess.run(command, cwd=ROOT, check=True, text=True, capture_output=True).stdout.splitlines()


def run(names, tests, out):
    """Names of the mutants `names` by what became of them under `tests`."""
    command = ["cargo", "mutants", "-p", "linear-layout", "-f", PLANS + "*.rs", "-o", out, "-j", "1"]
    command += ["--baseline", "skip", "--timeout", "300", "--build-timeout", "1200", "--no-shuffle"]
    command += [arg for name in names for arg in ("--re", "^" + re.escape(name) + "$")]
    command += LEFT_OUT
    # For cargo, not for the tests: what is not run need not be built.
    command += [f"--cargo-arg=--test={test}" for test in tests] + ["--cargo-arg=--lib"] * (tests is not QUICK)
    done = subprocess.run(command, cwd=ROOT, env=os.environ | {"CARGO_INCREMENTAL": "1"}, check=False, text=True,
                          capture_output=True)
    folder = pathlib.Path(out) / "mutants.out"
    outcomes = {kind: [name for name in (folder / f"{kind}.txt").read_text().splitlines() if name in names]
                for kind in ("caught", "missed", "timeout", "unviable")}
    tested = sum(len(listed) for listed in outcomes.values())
    if tested != len(names):
        sys.exit(f"cargo mutants tested {tested} of {len(names)}, exit {done.returncode}: {done.stderr}{done.stdout[-2000:]}")
    return outcomes


def main():
    count, seed = (int(arg) for arg in (sys.argv[1:] + ["40", "1"][len(sys.argv) - 1:])[:2])
    everything = mutants()
    sample = random.Random(seed).sample(everything, min(count, len(everything)))
    found = collections.Counter()

    def test(names, tests):
        """Counts what is caught; gives back what is not."""
        with tempfile.TemporaryDirectory() as out:
            outcomes = run(names, tests, out)
        found.update({kind: len(listed) for kind, listed in outcomes.items() if kind != "missed"})
        return outcomes["missed"]

    groups = collections.defaultdict(list)
    for name in test(sample, QUICK):
        groups[tuple(TESTS.get(pathlib.Path(name.split(":")[0]).stem, ALL))].append(name)
    for tests, names in sorted(groups.items()):
        for name in test(names, tests):
            print("missed:", name, flush=True)
            found["missed"] += 1
    # A mutant that never ends is caught.
    caught, viable = found["caught"] + found["timeout"], len(sample) - found["unviable"]
    print(f"{caught} of {viable} viable mutants caught ({100 * caught / max(viable, 1):.1f} %); "
          f"seed {seed}, {len(sample)} of {len(everything)} mutants, {found['unviable']} do not compile")


if __name__ == "__main__":
    sys.exit(main())
