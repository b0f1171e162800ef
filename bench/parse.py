"""Parsing, verifying and printing a module of 5,000 operations, against Triton.

The module is made of the functions of the corpus, repeated. TTOPT_BIN_DIR has our
release binaries; TTOPT_TRITON_PYTHON names a python with triton 3.9 to compare with
(without it only our time is shown). Rounds of both alternate; medians are compared.

As a worker (`parse.py --triton FILE COUNT`, run by that python) it times Triton.
"""

import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
OPS = 5000
ROUNDS = 7
REPEATS = 5


def generate(wanted):
    """A module with about `wanted` operations: the corpus's functions under fresh names."""
    functions, ops = [], 0
    sources = sorted((ROOT / "test" / "corpus").glob("*.ttir"))
    while ops < wanted:
        for path in sources:
            text = path.read_text()
            body = re.fullmatch(r"module \{\n(.*)\}\s*", text, re.S)
            if not body:
                continue
            functions.append(re.sub(r"@(\w+)", rf"@\1__{len(functions)}", body[1]))
            ops += len(re.findall(r'^ *(?:%[^=]*= )?"?[a-z_]+\.[a-z_.]+', body[1], re.M))
            if ops >= wanted:
                break
    return "module {\n" + "".join(functions) + "}\n"


def triton_worker(path, count):
    from triton._C.libtriton import ir

    context = ir.context()
    ir.load_dialects(context)
    times = []
    for _ in range(count):
        start = time.perf_counter()
        module = ir.parse_mlir_module(path, context)
        text = module.str_nodebug()
        times.append(round((time.perf_counter() - start) * 1e6))
        assert text
        del module, text
    print(json.dumps({"us": times}))


def run(command):
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode:
        sys.exit(f"{command[0]} failed:\n{result.stderr}")
    return json.loads(result.stdout)


def main():
    bench = pathlib.Path(os.environ.get("TTOPT_BIN_DIR", ROOT / "target" / "release")) / "bench-parse"
    python = os.environ.get("TTOPT_TRITON_PYTHON")
    with tempfile.NamedTemporaryFile("w", suffix=".ttir") as file:
        file.write(generate(OPS))
        file.flush()
        ours, theirs, ops = [], [], 0
        for _ in range(ROUNDS):
            result = run([str(bench), file.name, str(REPEATS)])
            ops = result["ops"]
            # The first repetition of a process also loads dialects.
            ours += result["us"][1:]
            if python:
                theirs += run([python, __file__, "--triton", file.name, str(REPEATS)])["us"][1:]
    mine = statistics.median(ours)
    print(f"{ops} operations, parsed, verified and printed")
    print(f"  ttopt   {mine / 1e3:8.1f} ms   (median of {len(ours)}; {min(ours) / 1e3:.1f} to {max(ours) / 1e3:.1f})")
    if python:
        other = statistics.median(theirs)
        print(f"  triton  {other / 1e3:8.1f} ms   (median of {len(theirs)}; {min(theirs) / 1e3:.1f} to {max(theirs) / 1e3:.1f})")
        print(f"  ratio   {mine / other:8.2f}      (target: below 3)")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--triton"]:
        triton_worker(sys.argv[2], int(sys.argv[3]))
    else:
        main()
