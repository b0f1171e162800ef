#!/usr/bin/env python3
"""What ptxas makes of our PTX and of Triton's: registers, spills and shared memory per kernel.

    TTOPT_PTXAS=PTXAS TTOPT_TRITON_PYTHON=PYTHON_WITH_TRITON_3.9 bench/ptxas.py [NAME ...] > docs/ptxas.md

TTOPT_BIN_DIR has our release binaries. Both compile for cuda:90 without software pipelining. As a worker
(`ptxas.py --triton`, run by that python) it answers each kernel name on stdin with the path of its PTX.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
CORPUS = ROOT / "test" / "corpus"


def triton_worker():
    import triton
    from triton.backends.compiler import GPUTarget

    folder = pathlib.Path(tempfile.mkdtemp())
    for line in sys.stdin:
        name = line.strip()
        launch = json.loads((CORPUS / f"{name}.json").read_text())
        options = {"num_warps": launch["num_warps"], "num_stages": 1}
        kernel = triton.compile(str(CORPUS / f"{name}.ttir"), target=GPUTarget("cuda", 90, 32), options=options)
        (folder / f"{name}.ptx").write_text(kernel.asm["ptx"])
        print(json.dumps([str(folder / f"{name}.ptx"), kernel.metadata.shared]), flush=True)


def resources(ptxas, ptx):
    """(registers, bytes of spill stores and loads), as ptxas reports them."""
    done = subprocess.run([ptxas, "-arch=sm_90a", "-v", "-o", os.devnull, ptx], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"ptxas on {ptx}: {done.stderr}")
    registers = max(map(int, re.findall(r"Used (\d+) registers", done.stderr)))
    spills = [int(n) for pair in re.findall(r"(\d+) bytes spill stores, (\d+) bytes spill loads", done.stderr)
              for n in pair]
    return registers, sum(spills)


def main():
    ttc = pathlib.Path(os.environ.get("TTOPT_BIN_DIR", ROOT / "target" / "release")) / "ttc"
    ptxas, python = os.environ["TTOPT_PTXAS"], os.environ["TTOPT_TRITON_PYTHON"]
    worker = subprocess.Popen([python, __file__, "--triton"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                              stderr=subprocess.DEVNULL)
    rows, same = [], 0
    for name in sys.argv[1:] or sorted(path.stem for path in CORPUS.glob("*.ttir")):
        launch = json.loads((CORPUS / f"{name}.json").read_text())
        with tempfile.TemporaryDirectory() as folder:
            ptx, meta = f"{folder}/k.ptx", f"{folder}/meta.json"
            subprocess.run([ttc, CORPUS / f"{name}.ttir", "--target", "cuda:90", "--emit", "ptx", "-o", ptx,
                            "--metadata", meta, "--num-warps", str(launch["num_warps"]), "--num-stages", "1"],
                           check=True)
            ours = (*resources(ptxas, ptx), json.loads(pathlib.Path(meta).read_text())["shared"])
        print(name, file=worker.stdin, flush=True)
        path, shared = json.loads(worker.stdout.readline())
        theirs = (*resources(ptxas, path), shared)
        rows.append((name, ours, theirs))
        same += ours == theirs
    print("# Registers, spills and shared memory\n")
    print("Made with `bench/ptxas.py`: the corpus for cuda:90 without software pipelining, through the same ptxas; ours, "
          "then Triton\n3.9's. Spills are bytes of stores and loads, shared memory is dynamic, in bytes.\n")
    print("| kernel | registers | Triton | spills | Triton | shared | Triton |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for name, ours, theirs in rows:
        print(f"| {name} | " + " | ".join(f"{a} | {b}" for a, b in zip(ours, theirs)) + " |")
    total = [[sum(row[side][i] for row in rows) for side in (1, 2)] for i in range(3)]
    print("| all | " + " | ".join(f"{a} | {b}" for a, b in total) + " |")


if __name__ == "__main__":
    triton_worker() if sys.argv[1:2] == ["--triton"] else main()
