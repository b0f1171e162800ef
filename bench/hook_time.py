"""Times the stages ttgir, llir and ptx of Triton's compiler with ttopt and without, in one process, for cuda:90:

    PYTHON bench/hook_time.py [FILE.ttir...]

PYTHON has Triton and the wheel (target/companions/triton/bin/python after ./dev test). Without files, ten kernels of the
corpus. What is counted is the process's CPU time, which other programs disturb little; of seven repeats the least counts.
ttopt's time has printing and reading TTIR.
"""

import logging
import math
import os
import sys
import tempfile
import time
from pathlib import Path

os.environ["TRITON_CACHE_DIR"] = tempfile.mkdtemp()
os.environ["TRITON_ALWAYS_COMPILE"] = "1"
logging.disable(logging.WARNING)

import triton  # noqa: E402
import ttopt.triton  # noqa: E402
from triton.backends.compiler import GPUTarget  # noqa: E402
from triton.backends.nvidia.compiler import CUDABackend  # noqa: E402

CORPUS = Path(__file__).parents[1] / "test/corpus"
NAMES = """vector_add matmul_f16 flash_attn_fwd layer_norm_fwd row_sum gather_rows cumsum_axis0 batched_dot_3d
chained_dots conv2d_nhwc""".split()
STAGES = ("ttgir", "llir", "ptx")
REPEATS = 7


def timed(stage, took):
    def run(source, metadata):
        start = time.process_time()
        made = stage(source, metadata)
        took.append(time.process_time() - start)
        return made

    return run


def milliseconds(path):
    """From TTIR to PTX."""
    took, own = [], CUDABackend.add_stages

    def add_stages(self, stages, *args, **kwargs):
        own(self, stages, *args, **kwargs)
        for name in STAGES:
            stages[name] = timed(stages[name], took)
        # The same for both, and longer than all others.
        stages["cubin"] = lambda source, metadata: b""

    CUDABackend.add_stages = add_stages
    try:
        runs = []
        for _ in range(REPEATS):
            took.clear()
            triton.compile(str(path), target=GPUTarget("cuda", 90, 32))
            runs.append(sum(took))
        return 1e3 * min(runs)
    finally:
        CUDABackend.add_stages = own


def main():
    paths = [Path(path) for path in sys.argv[1:]] or [CORPUS / f"{name}.ttir" for name in NAMES]
    rows = []
    print(f"{'kernel':24} {'ttopt ms':>10} {'Triton ms':>10} {'ratio':>7}")
    for path in paths:
        ttopt.triton.enable(strict=True)
        ours = milliseconds(path)
        ttopt.triton.disable()
        theirs = milliseconds(path)
        rows.append((ours, theirs))
        print(f"{path.stem:24} {ours:10.1f} {theirs:10.1f} {theirs / ours:7.1f}")
    ours, theirs = (sum(column) for column in zip(*rows))
    mean = math.exp(sum(math.log(theirs / ours) for ours, theirs in rows) / len(rows))
    print(f"{'sum':24} {ours:10.1f} {theirs:10.1f} {theirs / ours:7.1f}   (geometric mean {mean:.1f})")


if __name__ == "__main__":
    main()
