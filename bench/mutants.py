"""The mutants of linear-layout's plans, each tested by the tests that concern its file.

See mutants.sh. Prints those that no test caught, and how many were caught.
"""

import collections
import concurrent.futures
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
# The crate by itself, and what is built of it.
TREE = pathlib.Path(os.environ.get("MUTANTS_DIR", ROOT / "target" / "mutants"))
CRATE = "crates/linear-layout"
# Some of its tests run the program.
PROGRAM = "tools/ttlayout"
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
EVERY = [*FIRST, *CHECKED, *ALL]
# The module that says which mutant runs.
CHOICE = """//! Which mutant runs.
static CHOSEN: std::sync::LazyLock<usize> =
    std::sync::LazyLock::new(|| std::env::var("MUTANT").ok().and_then(|number| number.parse().ok()).unwrap_or(0));

pub(crate) fn is(number: usize) -> bool {
    *CHOSEN == number
}
"""
BUILD = {"CARGO_TARGET_DIR": str(TREE / "target"), "CARGO_PROFILE_DEV_DEBUG": "false", "RUSTFLAGS": "-Awarnings"}
# A test with a mutant may take so many times what it takes without, and so many seconds more.
TIMES, SECONDS = 10, 20


def cargo(folder, *args, **more):
    return subprocess.run(["cargo", *args], cwd=folder, text=True, capture_output=True, env=os.environ | more)


def copy_crate():
    """The crate, and the program, in a workspace of their own; what was built there before stays."""
    for crate in [CRATE, PROGRAM]:
        shutil.rmtree(TREE / crate, ignore_errors=True)
        # New dates, so that nothing built of other mutants counts as up to date.
        shutil.copytree(ROOT / crate, TREE / crate, ignore=shutil.ignore_patterns("target"), copy_function=shutil.copyfile)
    manifest = (ROOT / "Cargo.toml").read_text()
    manifest = re.sub(r"members = \[.*?\]", f'members = ["{CRATE}", "{PROGRAM}"]', manifest, count=1, flags=re.S)
    (TREE / "Cargo.toml").write_text(manifest)
    shutil.copy(ROOT / "Cargo.lock", TREE)
    (TREE / CRATE / "src" / "mutant.rs").write_text(CHOICE)
    root = TREE / CRATE / "src" / "lib.rs"
    # Inner attributes and comments stand first.
    root.write_text(root.read_text() + "\nmod mutant;\n")


def write_mutants(left_out):
    """Writes the files with all mutants but some, and lists the mutants."""
    copy_crate()
    (TREE / "left_out").write_text(" ".join(map(str, sorted(left_out))))
    files = sorted((TREE / CRATE / "src" / "plan").rglob("*.rs"))
    tool = [str(TREE / "tool" / "release" / "mutants"), str(TREE / "left_out")]
    names = [str(file.relative_to(TREE)) for file in files if file.stem != "tests"]
    listed = subprocess.run([*tool, *names], cwd=TREE, check=True, text=True, capture_output=True)
    return json.loads(listed.stdout)


def messages(built):
    for line in built.stdout.splitlines():
        if line.startswith("{"):
            yield json.loads(line)


def refused(built, mutants):
    """The mutants in whose code errors of a build are."""
    lines = collections.defaultdict(dict)
    for mutant in mutants:
        if mutant["lines"]:
            first, last = mutant["lines"]
            lines[mutant["file"]].update(dict.fromkeys(range(first, last + 1), mutant["number"]))
    found = set()
    for message in messages(built):
        said = message.get("message") or {}
        if message["reason"] != "compiler-message" or said["level"] != "error":
            continue
        spans = said["spans"] + [span for child in said["children"] for span in child["spans"]]
        for span in spans:
            of_file = lines.get(os.path.relpath(TREE / span["file_name"], TREE), {})
            found.update(of_file[line] for line in range(span["line_start"], span["line_end"] + 1) if line in of_file)
    return found


def build():
    """All mutants that compile, in one build, the numbers of the others, and the programs of the tests by name."""
    tool = cargo(ROOT / "bench" / "mutants", "build", "--release", "--locked", CARGO_TARGET_DIR=str(TREE / "tool"))
    if tool.returncode:
        sys.exit(tool.stderr)
    left_out = set()
    tests = [arg for test in EVERY for arg in ("--test", test)]
    while True:
        mutants = write_mutants(left_out)
        # Errors are in the library; tests follow once it compiles.
        built = cargo(TREE, "check", "-p", "linear-layout", "--lib", "--all-features", "--message-format=json", **BUILD)
        if built.returncode == 0:
            break
        more = refused(built, mutants)
        if not more - left_out:
            sys.exit(f"mutants.py: what does not compile is in no mutant:\n{built.stderr[-4000:]}")
        left_out |= more
        print(f"{len(left_out)} mutants do not compile", flush=True)
    crates = ["-p", "linear-layout", "-p", "ttlayout"]
    built = cargo(TREE, "test", "--no-run", *crates, "--lib", *tests, "--message-format=json", **BUILD)
    if built.returncode:
        sys.exit(f"mutants.py: the tests do not build:\n{built.stderr[-4000:]}")
    programs = {}
    for message in messages(built):
        if message["reason"] == "compiler-artifact" and message.get("executable") and message["profile"]["test"]:
            programs["lib" if "lib" in message["target"]["kind"] else message["target"]["name"]] = message["executable"]
    return mutants, left_out, programs


def passes(program, number, seconds):
    """Whether a test succeeds with a mutant in time."""
    child = subprocess.Popen([program, "-q"], cwd=TREE / CRATE, start_new_session=True, env=os.environ | {"MUTANT": str(number)},
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        return child.wait(timeout=seconds) == 0
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        return False


def tests_of(file):
    """All tests of a mutant's file, the quick ones first."""
    return [*FIRST, *CHECKED, "lib", *TESTS.get(pathlib.Path(file).stem, ALL)]


def catches(programs, patience, mutant):
    """The test that catches a mutant."""
    for test in tests_of(mutant["file"]):
        if not passes(programs[test], mutant["number"], patience[test]):
            return test
    return None


def main():
    arguments = (sys.argv[1:] + ["40", "1"][len(sys.argv) - 1:])[:2]
    mutants, left_out, programs = build()
    built = [mutant for mutant in mutants if mutant["number"] not in left_out]
    count = len(built) if arguments[0] == "all" else int(arguments[0])
    sample = random.Random(int(arguments[1])).sample(built, min(count, len(built)))
    patience = {}
    for test in dict.fromkeys(test for mutant in sample for test in tests_of(mutant["file"])):
        start = time.monotonic()
        if not passes(programs[test], 0, 3600):
            sys.exit(f"mutants.py: {test} fails without a mutant")
        patience[test] = TIMES * (time.monotonic() - start) + SECONDS
    found = collections.Counter()
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for mutant, test in zip(sample, pool.map(lambda mutant: catches(programs, patience, mutant), sample)):
            found[test] += 1
            if test is None:
                print(f"missed: {mutant['file']}:{mutant['line']}: {mutant['name']}", flush=True)
    caught = len(sample) - found[None]
    first = sum(found[test] for test in FIRST)
    print(f"{caught} of {len(sample)} mutants caught ({100 * caught / max(len(sample), 1):.1f} %), {first} by tables of plans; "
          f"seed {arguments[1]}, of {len(built)} that compile, {len(left_out)} do not")


if __name__ == "__main__":
    sys.exit(main())
