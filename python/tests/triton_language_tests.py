"""Runs Triton's own language tests on a GPU through ttopt, and compares with Triton alone.

    python triton_language_tests.py TESTS [--root DIR] [--sample N] [--jobs N] [--out FILE]

TESTS are files or folders of a checkout of Triton in the version that is installed, such as python/test/unit/language;
--root is the folder whose conftest.py they need (python/test). First the tests run with TTOPT=0. Those that pass run again
with TTOPT=strict, so that a kernel which ttopt refuses is a failure. FILE gets everything as JSON; a table of failures by
reason is printed. Wanted: triton, torch, numpy, pytest and the wheel ttopt.
"""

import argparse
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import threading
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).parent


def environment(mode, cache, record):
    paths = [str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {
        **os.environ,
        "TTOPT": mode,
        "TRITON_CACHE_DIR": cache,
        "TTOPT_RECORD": str(record),
        "PYTHONPATH": os.pathsep.join(paths),
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def collect(args):
    """All tests, by the names that pytest gives them."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", f"--rootdir={args.root}"]
    done = subprocess.run([*command, *args.tests], cwd=args.root, capture_output=True, text=True)
    tests = [line for line in done.stdout.splitlines() if "::" in line and not line.startswith(("ERROR", "FAILED"))]
    if not tests:
        sys.exit(f"no tests are collected:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return tests


class Pass:
    """All tests in one mode, in processes of some tests each."""

    def __init__(self, args, mode, folder):
        self.args, self.mode, self.folder = args, mode, Path(folder)
        self.outcomes, self.stats, self.lock, self.number = {}, Counter(), threading.Lock(), 0

    def run(self, tests):
        size = max(1, min(self.args.chunk, -(-len(tests) // self.args.jobs)))
        chunks = [tests[at : at + size] for at in range(0, len(tests), size)]
        with ThreadPoolExecutor(self.args.jobs) as pool:
            list(pool.map(self.chunk, chunks))
        return self.outcomes

    def chunk(self, tests):
        """Runs tests; one that ends its process is skipped over."""
        while tests:
            before = len(tests)
            tests = self.process(tests)
            if len(tests) == before:
                for test in tests:
                    self.note(test, "error", "pytest does not run it")
                return

    def note(self, test, outcome, reason=""):
        with self.lock:
            # A failure of a fixture comes besides the test's own outcome.
            if self.outcomes.get(test, {}).get("outcome") in (None, "passed", "skipped"):
                self.outcomes[test] = {"outcome": outcome, "reason": reason}

    def process(self, tests):
        with self.lock:
            self.number += 1
            record = self.folder / f"{self.mode}-{self.number}.jsonl"
        names = self.folder / f"{self.mode}-{self.number}.txt"
        names.write_text("\n".join(tests))
        command = [sys.executable, "-m", "pytest", "-q", "-p", "recorder", "-p", "no:cacheprovider"]
        command += [f"--rootdir={self.args.root}", f"@{names}"]
        cache = self.args.cache or str(self.folder / "cache")
        ended = "the process ended"
        try:
            done = subprocess.run(
                command,
                cwd=self.args.root,
                env=environment(self.mode, cache, record),
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=self.args.timeout,
            )
            ended += f" with {done.returncode}: {done.stdout.decode(errors='replace')[-500:]}"
        except subprocess.TimeoutExpired:
            ended = f"took more than {self.args.timeout} s"
        started, seen = None, set()
        for line in record.read_text().splitlines() if record.exists() else []:
            one = json.loads(line)
            if "start" in one:
                started = one["start"]
            elif "test" in one:
                seen.add(one["test"])
                self.note(one["test"], one["outcome"], one["reason"])
            else:
                self.stats.update({key: value for key, value in one["stats"].items() if key != "reasons"})
        if started is not None and started not in seen:
            self.note(started, "crashed", ended)
            seen.add(started)
        return [test for test in tests if test not in seen]


WRONG = re.compile(r"Mismatched elements|Not equal to tolerance|Tensor-likes are not|not close|allclose", re.IGNORECASE)
TEXT = re.compile(r"\b(ptx|amdgcn|ttgir|llir|sass|asm)\b")


def reason(outcome):
    """What a failure is about: a class, and what stands for its like."""
    text = outcome["reason"]
    refused = re.search(r"ttopt does not compile [^:]*: (.*)", text)
    if refused:
        message = re.sub(r"^\S+:\d+:\d+: ", "", refused.group(1))
        return "refused", re.sub(r"'[^']*'|\d+", "…", message)[:140]
    if outcome["outcome"] == "crashed":
        return "crashed", text.splitlines()[-1][:140] if text else ""
    if WRONG.search(text):
        return "wrong number", text.splitlines()[0][:140]
    if "AssertionError" in text[:200] and TEXT.search(text) or re.match(r"assert .*\bin\b", text) and "\\n" in text:
        return "looks for text of Triton's", text.splitlines()[0][:140]
    first = text.splitlines()[0] if text else ""
    return "other", re.sub(r"0x[0-9a-f]+|\d+", "…", first)[:140]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tests", nargs="+")
    parser.add_argument("--root", default=".", help="where conftest.py is")
    parser.add_argument("--sample", type=int, help="at most so many tests, drawn with --seed")
    parser.add_argument("--seed", type=int, default=2026)
    parser.add_argument("--jobs", type=int, default=8, help="processes at a time")
    parser.add_argument("--chunk", type=int, default=60, help="tests of a process")
    parser.add_argument("--timeout", type=float, default=900, help="seconds for a process")
    parser.add_argument("--cache", help="where Triton's caches go")
    parser.add_argument("--reference", help="the FILE of an earlier run: tests that passed with TTOPT=0 there")
    parser.add_argument("--out", default="language-tests.json")
    args = parser.parse_args()
    args.root = os.path.abspath(args.root)
    args.tests = [os.path.abspath(test) for test in args.tests]
    with tempfile.TemporaryDirectory() as folder:
        if args.reference:
            alone = json.loads(Path(args.reference).read_text())["alone"]
        else:
            tests = collect(args)
            if args.sample and args.sample < len(tests):
                tests = random.Random(args.seed).sample(tests, args.sample)
            print(f"{len(tests)} tests with Triton alone", flush=True)
            alone = Pass(args, "0", folder).run(tests)
            Path(args.out).write_text(json.dumps({"alone": alone}))
        wanted = [test for test, outcome in alone.items() if outcome["outcome"] == "passed"]
        counts = dict(Counter(outcome["outcome"] for outcome in alone.values()))
        print(f"{counts}; {len(wanted)} tests through ttopt", flush=True)
        ours = Pass(args, "strict", folder)
        outcomes = ours.run(wanted)
    passed = sum(outcome["outcome"] == "passed" for outcome in outcomes.values())
    classes, examples = defaultdict(Counter), {}
    for test, outcome in outcomes.items():
        if outcome["outcome"] != "passed":
            kind, what = reason(outcome)
            classes[kind][what] += 1
            examples.setdefault((kind, what), test)
    result = {"alone": alone, "ttopt": outcomes, "stats": dict(ours.stats)}
    result["classes"] = {kind: dict(what) for kind, what in classes.items()}
    Path(args.out).write_text(json.dumps(result, indent=1))
    print(f"passed {passed} of {len(outcomes)} ({100 * passed / max(1, len(outcomes)):.2f} %); {dict(ours.stats)}")
    for kind, counted in sorted(classes.items()):
        print(f"\n{kind}: {sum(counted.values())}")
        for what, count in counted.most_common(40):
            print(f"  {count:6} x {what}\n           e.g. {examples[kind, what]}")


if __name__ == "__main__":
    main()
