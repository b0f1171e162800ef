"""Compile time per stage of the kernels of the corpus, against Triton.

TTOPT_BIN_DIR has our release binaries; TTOPT_TRITON_PYTHON names a python with triton
3.9 to compare with (without it only our times are shown). Both compile for TTOPT_BENCH_TARGET
(cuda:90, or hip:gfx942 with one stage) from the same TTIR with the warps of the launch, each in one process, in which it
compiled before; medians are compared. Kernels that Triton does not compile for the target are left out. With
TTOPT_BENCH_CPU=1 there is a column of the time on a processor, which counts on a machine that others use. With
TTOPT_BENCH_BIN=1 both go on to a binary (a cubin, which each makes by its own ptxas; an hsaco). TTOPT_BENCH_DATA names
folders with kernels in place of the corpus, joined by colons.

As a worker (`compile_time.py --triton`, run by that python) it times Triton's
stages on kernels named on stdin, one a line.
"""

import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
CORPUS = ROOT / "test" / "corpus"
RUNS = int(os.environ.get("TTOPT_BENCH_RUNS", "5"))
CPU = os.environ.get("TTOPT_BENCH_CPU") == "1"
BINARY = os.environ.get("TTOPT_BENCH_BIN") == "1"
STAGES = ["ttgir", "llir", "asm"] + ["bin"] * BINARY + ["total"] + ["cpu"] * CPU
TARGET = os.environ.get("TTOPT_BENCH_TARGET", "cuda:90")
WARM_UP = "vector_add"
# Compilations between two readings of the time on a processor.
CPU_RUNS = 10
DATA = [pathlib.Path(folder) for folder in os.environ.get("TTOPT_BENCH_DATA", str(CORPUS)).split(":")]
PATTERN = os.environ.get("TTOPT_BENCH_KERNELS", "*") + ".ttir"
KERNELS = {path.stem: path for folder in DATA for path in sorted(folder.glob(PATTERN))}
PATHS = {WARM_UP: CORPUS / f"{WARM_UP}.ttir"} | KERNELS


def options_of(name):
    """What a kernel is launched with."""
    launch = json.loads(PATHS[name].with_suffix(".json").read_text())
    given = {key: launch[key] for key in ["num_warps", "num_stages", "num_ctas"]}
    return given if TARGET.startswith("cuda") else given | {"num_stages": 1}


def triton_worker():
    """Answers each kernel name on stdin with a line of JSON: microseconds per stage."""
    from triton.backends.compiler import GPUTarget
    from triton.compiler.compiler import Language
    from triton._C.libtriton import ir

    vendor, arch = TARGET.split(":")
    if vendor == "cuda":
        from triton.backends.nvidia.compiler import CUDABackend

        backend, assembly, binary = CUDABackend(GPUTarget("cuda", int(arch), 32)), "ptx", "cubin"
    else:
        from triton.backends.amd.compiler import HIPBackend

        lanes = 32 if arch.startswith(("gfx11", "gfx12")) else 64
        backend, assembly, binary = HIPBackend(GPUTarget("hip", arch, lanes)), "amdgcn", "hsaco"
    for line in sys.stdin:
        name = line.strip()
        given = options_of(name)
        options = backend.parse_options(given)
        context = ir.context()
        ir.load_dialects(context)
        backend.load_dialects(context)
        stages = {}
        backend.add_stages(stages, options, Language.TRITON)
        metadata = {"target": backend.target, **options.__dict__}
        start, busy = time.perf_counter(), time.process_time()
        module = ir.parse_mlir_module(str(PATHS[name]), context)
        module.context = context
        times = {"parse": time.perf_counter() - start}
        called = {assembly: "asm", binary: "bin"}
        for stage in ["ttgir", "llir", assembly] + [binary] * BINARY:
            start = time.perf_counter()
            module = stages[stage](module, metadata)
            times[called.get(stage, stage)] = time.perf_counter() - start
        times["total"] = sum(times.values())
        times["cpu"] = time.process_time() - busy
        print(json.dumps({key: value * 1e6 for key, value in times.items()}), flush=True)


def ours(ttc, name, runs):
    """Times of so many runs in one process that compiled before, as Triton's did; None where it fails."""
    def job(name):
        launch = options_of(name)
        options = {key: launch[key] for key in ["num_warps", "num_stages", "num_ctas"]}
        return {"input": str(PATHS[name]), "target": TARGET, "emit": "bin" if BINARY else "asm", "output": os.devnull} | options

    def run(runs):
        """What it says, and the microseconds on a processor."""
        jobs = [job(WARM_UP)] + [job(name)] * runs
        command = [ttc, "--batch", "-", "--jobs", "1"]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        result = subprocess.run(command, input="\n".join(map(json.dumps, jobs)), capture_output=True, text=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return result, (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1e6

    result, _ = run(runs)
    answers = [json.loads(line) for line in result.stdout.splitlines()][1:]
    errors = [answer["error"] for answer in answers if not answer["ok"]]
    if (errors or len(answers) < runs) and TARGET.startswith("cuda"):
        sys.exit(f"ttc {name}: {errors[:1] or result.stderr}")
    if errors or len(answers) < runs:
        return None
    times = [{key.removesuffix("_us"): us for key, us in answer["times"].items()} for answer in answers]
    # What starting and the first two kernels take is on both sides of the difference.
    for one in times if CPU else []:
        one["cpu"] = (run(1 + CPU_RUNS)[1] - run(1)[1]) / CPU_RUNS
    return times


def main():
    ttc = pathlib.Path(os.environ.get("TTOPT_BIN_DIR", ROOT / "target" / "release")) / "ttc"
    python = os.environ.get("TTOPT_TRITON_PYTHON")
    workers = []

    def theirs(name):
        """Times of Triton; None where it fails, some of which ends its process."""
        if not workers:
            command = [python, __file__, "--triton"]
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
            workers.append(subprocess.Popen(command, text=True, **pipes))
            if name != WARM_UP:
                theirs(WARM_UP)  # what is done once in a process
        print(name, file=workers[0].stdin, flush=True)
        line = workers[0].stdout.readline()
        if line:
            return json.loads(line)
        workers.pop().wait()
        return None

    worker = python
    width = max(map(len, KERNELS))
    what = "ttopt us, Triton / ttopt" if worker else "ttopt us"
    print(f"{'':{width}}" + "".join(f"{stage:>16}" for stage in STAGES) + f"   ({what})")
    ratios = {stage: [] for stage in STAGES}
    sums = {stage: [0, 0] for stage in STAGES}
    for name in KERNELS:
        if worker and theirs(name) is None:
            print(f"{name:{width}} not compiled by Triton", flush=True)
            continue
        mine = ours(ttc, name, RUNS)
        if mine is None:
            print(f"{name:{width}} not compiled by ttopt", flush=True)
            continue
        other = [theirs(name) for _ in range(RUNS)] if worker else []
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
        for process in workers:
            process.stdin.close()
            process.wait()


if __name__ == "__main__":
    triton_worker() if sys.argv[1:2] == ["--triton"] else main()
