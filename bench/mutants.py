"""A sample of the mutants of linear-layout's plans, each tested by the tests that concern its file.

See mutants.sh. Prints what became of each, and how many of those that compile were caught.
"""

import collections
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
# The crate by itself, and what is built of it.
TREE = pathlib.Path(os.environ.get("MUTANTS_DIR", ROOT / "target" / "mutants"))
CRATE = "crates/linear-layout"
# Tables of what is planned, costs and is said: they take less than a second, and find most.
FIRST = ["plan_table", "plan_texts", "plan_estimates"]
# Then plans of all kinds, checked.
CHECKED = ["mutations", "fuzz"]
# What these miss is tested by the tests of its file. Files that are not here are tested by all.
MOVES = ["plan_conversion", "plan_shared", "plan_optimality", "plan_dynamic"]
ALONG = ["plan_dynamic", "plan_reduce", "ttlayout_plan"]
TESTS = {
    **dict.fromkeys(["access", "convert", "shuffle", "swizzle", "space", "shared", "wavefront"], MOVES),
    **dict.fromkeys(["detour", "gather", "reduce", "scan", "scan_exchange"], ALONG),
    **dict.fromkeys(["dot", "matrix_instruction", "warp_group"], ["plan_dot", "plan_scaled_dot", "plan_warp_group", "dot_operands"]),
    **dict.fromkeys(["tma", "tma_rows", "descriptor"], ["plan_tma", "plan_descriptor"]),
    "lds_load": ["plan_lds_load"],
    "shared": [*MOVES, "plan_lds_load"],
    "vector": ["plan_vector"],
    **dict.fromkeys(["display", "json"], ["plan_conversion", "ttlayout_plan"]),
}
ALL = sorted({test for tests in TESTS.values() for test in tests})
# `|` joins bits that no other has, where `^` is the same.
SAME = r"replace \| with \^"
# Without lines of panics a mutant is built in a third of the time.
BUILD = {"CARGO_TARGET_DIR": str(TREE / "target"), "CARGO_INCREMENTAL": "1", "CARGO_PROFILE_DEV_DEBUG": "false"}
# Seconds to build, and to run tests that take 20 at most, on a machine that is busy with other things.
PATIENCE = {"building": 600, "running": 180}


def mutants():
    """Every mutant: its name, file and patch."""
    command = ["cargo", "mutants", "--list", "--json", "-p", "linear-layout", "-f", CRATE + "/src/plan/*.rs"]
    listed = subprocess.run(command, cwd=ROOT, check=True, text=True, capture_output=True).stdout
    return [mutant for mutant in json.loads(listed) if not re.search(SAME, mutant["name"])]


def copy_crate():
    """The crate in a workspace of its own; what was built there before stays."""
    shutil.rmtree(TREE / CRATE, ignore_errors=True)
    # New dates, so that nothing built of a mutant counts as up to date.
    shutil.copytree(ROOT / CRATE, TREE / CRATE, ignore=shutil.ignore_patterns("target"), copy_function=shutil.copyfile)
    manifest = (ROOT / "Cargo.toml").read_text()
    manifest = re.sub(r"members = \[.*?\]", f'members = ["{CRATE}"]', manifest, count=1, flags=re.S)
    (TREE / "Cargo.toml").write_text(manifest)
    shutil.copy(ROOT / "Cargo.lock", TREE)


def cargo(tests, *more):
    """Whether `cargo test` of these tests succeeds, the crate's own with the last of them; a test that never ends does not.

    A build that was killed leaves a folder in which nothing links any more: that ends the run, lest all that follows
    be taken for mutants that do not compile."""
    which = ["--lib"] if tests not in (FIRST, CHECKED) else []
    which += [arg for test in tests for arg in ("--test", test)]
    if not more and not cargo(tests, "--no-run"):
        return False
    command = ["cargo", "test", "--quiet", "-p", "linear-layout", *which, *more]
    patience = PATIENCE["building" if more else "running"]
    environment = os.environ | BUILD
    child = subprocess.Popen(command, cwd=TREE, env=environment, start_new_session=True, text=True,
                             stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        said = child.communicate(timeout=patience)[1]
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        if more:
            sys.exit(f"mutants.py: building took longer than {patience} s; remove {TREE / 'target'} and begin again")
        return False
    if "error: linking with" in said:
        sys.exit(f"mutants.py: nothing links any more; remove {TREE / 'target'} and begin again")
    return child.returncode == 0


def outcome(mutant):
    """`caught`, `missed` or `does not compile`."""
    file = TREE / mutant["file"]
    before = file.read_text()
    subprocess.run(["patch", "--quiet", str(file)], input=mutant["diff"], text=True, check=True)
    try:
        if not cargo(FIRST, "--no-run"):
            return "does not compile"
        rest = TESTS.get(file.stem, ALL)
        return "missed" if all(cargo(tests) for tests in (FIRST, CHECKED, rest)) else "caught"
    finally:
        file.write_text(before)


def main():
    count, seed = (int(arg) for arg in (sys.argv[1:] + ["40", "1"][len(sys.argv) - 1:])[:2])
    everything = mutants()
    sample = random.Random(seed).sample(everything, min(count, len(everything)))
    copy_crate()
    for tests in (FIRST, CHECKED, ALL):
        if not cargo(tests):
            sys.exit(f"mutants.py: the tests fail without a mutant: {' '.join(tests)}")
    found = collections.Counter()
    for mutant in sorted(sample, key=lambda mutant: mutant["name"]):
        kind = outcome(mutant)
        found[kind] += 1
        print(f"{kind}: {mutant['name']}", flush=True)
    caught, viable = found["caught"], found["caught"] + found["missed"]
    print(f"{caught} of {viable} viable mutants caught ({100 * caught / max(viable, 1):.1f} %); "
          f"seed {seed}, {len(sample)} of {len(everything)} mutants, {found['does not compile']} do not compile")


if __name__ == "__main__":
    sys.exit(main())
