"""Compile time per stage of the kernels of the corpus, against Triton.

TTOPT_BIN_DIR has our release binaries; TTOPT_TRITON_PYTHON names a python with triton
3.9 to compare with (without it only our times are shown). Both compile for cuda:90 from
the same TTIR with the warps of the launch; runs alternate, medians are compared.

As a worker (`compile_time.py --triton`, run by that python) it times Triton's
stages on kernels named on stdin, one a line.
"""

import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
CORPUS = ROOT / "test" / "corpus"
RUNS = 5
STAGES = ["ttgir", "llir", "ptx", "total"]
KERNELS = sorted(path.stem for path in CORPUS.glob("*.ttir"))


def triton_worker():
    """Answers each kernel name on stdin with a line of JSON: microseconds per stage."""
    from triton.backends.compiler import GPUTarget
    from triton.backends.nvidia.compiler import CUDABackend
    from triton.compiler.compiler import Language
    from triton._C.libtriton import ir

    backend = CUDABackend(GPUTarget("cuda", 90, 32))
    for line in sys.stdin:
        name = line.strip()
        launch = json.loads((CORPUS / f"{name}.json").read_text())
        given = {key: launch[key] for key in ["num_warps", "num_stages", "num_ctas"]}
        options = backend.parse_options(given)
        context = ir.context()
        ir.load_dialects(context)
        backend.load_dialects(context)
        stages = {}
        backend.add_stages(stages, options, Language.TRITON)
        metadata = {"target": backend.target, **options.__dict__}
        start = time.perf_counter()
        module = ir.parse_mlir_module(str(CORPUS / f"{name}.ttir"), context)
        module.context = context
        times = {"parse": time.perf_counter() - start}
        for stage in ["ttgir", "llir", "ptx"]:
            start = time.perf_counter()
            module = stages[stage](module, metadata)
            times[stage] = time.perf_counter() - start
        times["total"] = sum(times.values())
        print(json.dumps({key: value * 1e6 for key, value in times.items()}), flush=True)


def ours(ttc, name):
    launch = json.loads((CORPUS / f"{name}.json").read_text())
    with tempfile.TemporaryDirectory() as folder:
        times = pathlib.Path(folder) / "times.json"
        command = [ttc, CORPUS / f"{name}.ttir", "--target", "cuda:90", "--num-warps", str(launch["num_warps"])]
        command += ["--num-stages", str(launch["num_stages"]), "--num-ctas", str(launch["num_ctas"])]
        command += ["--emit", "ptx", "-o", os.devnull, "--time-json", times]
        result = subprocess.run(command, capture_output=True, text=True)
        if result.returncode:
            sys.exit(f"ttc {name}: {result.stderr}")
        return {key.removesuffix("_us"): value for key, value in json.loads(times.read_text()).items()}


def main():
    ttc = pathlib.Path(os.environ.get("TTOPT_BIN_DIR", ROOT / "target" / "release")) / "ttc"
    python = os.environ.get("TTOPT_TRITON_PYTHON")
    worker = None
    if python:
        command = [python, __file__, "--triton"]
        worker = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def theirs(name):
        print(name, file=worker.stdin, flush=True)
        line = worker.stdout.readline()
        if not line:
            sys.exit(f"triton failed on {name}")
        return json.loads(line)

    if worker:
        theirs(KERNELS[0])  # warms up what is done once in a process
    width = max(map(len, KERNELS))
    what = "ttopt us, Triton / ttopt" if worker else "ttopt us"
    print(f"{'':{width}}" + "".join(f"{stage:>16}" for stage in STAGES) + f"   ({what})")
    ratios = {stage: [] for stage in STAGES}
    sums = {stage: [0, 0] for stage in STAGES}
    for name in KERNELS:
        mine, other = [], []
        for _ in range(RUNS):
            mine.append(ours(ttc, name))
            if worker:
                other.append(theirs(name))
        row = f"{name:{width}}"
        for stage in STAGES:
            us = statistics.median(times[stage] for times in mine)
            row += f"{us:9.0f}"
            if worker:
                triton_us = statistics.median(times[stage] for times in other)
                ratio = triton_us / max(us, 1)
                ratios[stage].append(ratio)
                sums[stage][0] += us
                sums[stage][1] += triton_us
                row += f"{ratio:6.1f}x"
            else:
                row += " " * 7
        print(row, flush=True)
    if worker:
        row = f"{'sum':{width}}"
        for stage in STAGES:
            us, triton_us = sums[stage]
            row += f"{us:9.0f}{triton_us / us:6.1f}x"
        print(row)
        row = f"{'geometric mean':{width}}"
        for stage in STAGES:
            row += " " * 9 + f"{statistics.geometric_mean(ratios[stage]):6.1f}x"
        print(row)
        worker.stdin.close()
        worker.wait()


if __name__ == "__main__":
    triton_worker() if sys.argv[1:2] == ["--triton"] else main()
