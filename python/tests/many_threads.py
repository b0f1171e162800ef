"""Compiles kernels of the corpus on many threads at once: the same bytes as on one, and no memory that stays behind.

    many_threads.py [COMPILATIONS [THREADS]]

Prints the resident memory (MiB) after each tenth. Exits with 1 where a result differs. test_package.py runs a smaller one.
"""

import hashlib
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import ttopt

CORPUS = Path(__file__).parents[2] / "test/corpus"
KERNELS = ["vector_add", "softmax_rows", "matmul_f16", "row_sum", "transpose_2d_f32", "cast_fp8", "int_ops", "half_arith",
           "masked_fill", "flip_rows", "row_max", "swiglu", "gather_rows", "histogram_i32", "where_clamp", "dot_16x16x16"]
TARGETS = ["cuda:80", "cuda:90", "hip:gfx942"]


def made(job):
    name, target = job
    kernel = ttopt.compile((CORPUS / f"{name}.ttir").read_text(), target=target, name=name)
    return hashlib.sha256((kernel.asm.get("ptx") or kernel.asm["amdgcn"]).encode()).digest()


def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4 // 1024


def main():
    count, threads = [int(given) for given in sys.argv[1:3]] + [10000, 64][len(sys.argv[1:3]) :]
    jobs = [(name, target) for name in KERNELS for target in TARGETS]
    alone = [made(job) for job in jobs]
    start, wrong, memory = time.monotonic(), 0, []
    with ThreadPoolExecutor(threads) as pool:
        for i, result in enumerate(pool.map(lambda i: made(jobs[i % len(jobs)]), range(count)), 1):
            wrong += result != alone[(i - 1) % len(jobs)]
            if i * 10 // count > (i - 1) * 10 // count:
                memory.append(resident())
    seconds = time.monotonic() - start
    print(f"{count} compilations of {len(jobs)} kinds, {threads} threads, {seconds:.0f} s: {wrong} differ; MiB {memory}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
