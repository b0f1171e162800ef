#!/usr/bin/env python3
"""What ptxas makes of our PTX and of Triton's: registers, spills and shared memory per kernel.

    TTOPT_PTXAS=PTXAS TTOPT_TRITON_PYTHON=PYTHON_WITH_TRITON_3.9 bench/ptxas.py [NAME ...]

TTOPT_BIN_DIR has our release binaries. Both compile without software pipelining, for each of the
CAPABILITIES; kernels that one of them does not compile for a capability are left out. As a worker
(`ptxas.py --triton`, run by that python) it answers each kernel name and capability on stdin with the path of
its PTX.
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


CAPABILITIES = (90, 80)


def triton_worker():
    import triton
    from triton.backends.compiler import GPUTarget

    # Compilers print to stdout what fails: answers go there alone.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    folder = pathlib.Path(tempfile.mkdtemp())
    for line in sys.stdin:
        name, capability = line.split()
        launch = json.loads((CORPUS / f"{name}.json").read_text())
        options = {"num_warps": launch["num_warps"], "num_stages": 1}
        target = GPUTarget("cuda", int(capability), 32)
        try:
            kernel = triton.compile(str(CORPUS / f"{name}.ttir"), target=target, options=options)
        except Exception:
            print("null", file=answers, flush=True)
            continue
        (folder / f"{name}.ptx").write_text(kernel.asm["ptx"])
        print(json.dumps([str(folder / f"{name}.ptx"), kernel.metadata.shared]), file=answers, flush=True)


def resources(ptxas, ptx, capability):
    """(registers, bytes of spill stores and loads), as ptxas reports them."""
    # wgmma needs the target with features of one generation only.
    arch = f"sm_{capability}" + "a" * (capability >= 90)
    done = subprocess.run([ptxas, f"-arch={arch}", "-v", "-o", os.devnull, ptx], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"ptxas on {ptx}: {done.stderr}")
    registers = max(map(int, re.findall(r"Used (\d+) registers", done.stderr)))
    spills = [int(n) for pair in re.findall(r"(\d+) bytes spill stores, (\d+) bytes spill loads", done.stderr)
              for n in pair]
    return registers, sum(spills)


def ours(ttc, ptxas, name, capability):
    """(registers, spills, shared memory) of our code; None where there is none."""
    launch = json.loads((CORPUS / f"{name}.json").read_text())
    with tempfile.TemporaryDirectory() as folder:
        ptx, meta = f"{folder}/k.ptx", f"{folder}/meta.json"
        done = subprocess.run([ttc, CORPUS / f"{name}.ttir", "--target", f"cuda:{capability}", "--emit", "ptx", "-o", ptx,
                               "--metadata", meta, "--num-warps", str(launch["num_warps"]), "--num-stages", "1"],
                              capture_output=True)
        if done.returncode:
            return None
        return (*resources(ptxas, ptx, capability), json.loads(pathlib.Path(meta).read_text())["shared"])


def main():
    ttc = pathlib.Path(os.environ.get("TTOPT_BIN_DIR", ROOT / "target" / "release")) / "ttc"
    ptxas, python = os.environ["TTOPT_PTXAS"], os.environ["TTOPT_TRITON_PYTHON"]
    names = sys.argv[1:] or sorted(path.stem for path in CORPUS.glob("*.ttir"))
    print("# Registers, spills and shared memory\n")
    print("Made with `bench/ptxas.py`: the corpus without software pipelining, through the same ptxas; ours, then "
          "Triton\n3.9's. Spills are bytes of stores and loads, shared memory is dynamic, in bytes. Kernels that only "
          "one of them compiles\nare left out.")
    for capability in CAPABILITIES:
        # A compiler that aborts on one kernel is started again for the next.
        worker, rows = None, []
        for name in names:
            mine = ours(ttc, ptxas, name, capability)
            if worker is None or worker.poll() is not None:
                worker = subprocess.Popen([python, __file__, "--triton"], stdin=subprocess.PIPE,
                                          stdout=subprocess.PIPE, text=True, stderr=subprocess.DEVNULL)
            print(name, capability, file=worker.stdin, flush=True)
            answer = worker.stdout.readline()
            theirs = json.loads(answer) if answer else None
            if answer == "":
                worker.wait()
            if mine and theirs:
                rows.append((name, mine, (*resources(ptxas, theirs[0], capability), theirs[1])))
        print(f"\n## cuda:{capability}\n")
        print("| kernel | registers | Triton | spills | Triton | shared | Triton |")
        print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
        for name, mine, theirs in rows:
            print(f"| {name} | " + " | ".join(f"{a} | {b}" for a, b in zip(mine, theirs)) + " |", flush=True)
        total = [[sum(row[side][i] for row in rows) for side in (1, 2)] for i in range(3)]
        print("| all | " + " | ".join(f"{a} | {b}" for a, b in total) + " |")


if __name__ == "__main__":
    triton_worker() if sys.argv[1:2] == ["--triton"] else main()
