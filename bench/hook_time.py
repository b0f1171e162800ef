"""Times the stages ttgir, llir and ptx of Triton's compiler with ttopt and without, in one process, for cuda:90:

    PYTHON bench/hook_time.py [FILE.ttir...]

PYTHON has Triton and the wheel (target/companions/triton/bin/python after ./dev test). Without files, ten kernels of the
corpus. Stages are timed by Triton itself; of three repeats the least counts. ttopt's time has printing and reading TTIR.
"""

import logging
import os
import sys
import tempfile
from pathlib import Path

os.environ["TRITON_CACHE_DIR"] = tempfile.mkdtemp()
os.environ["TRITON_ALWAYS_COMPILE"] = "1"
logging.disable(logging.WARNING)

import triton  # noqa: E402
import ttopt.triton  # noqa: E402
from triton import knobs  # noqa: E402
from triton.backends.compiler import GPUTarget  # noqa: E402

CORPUS = Path(__file__).parents[1] / "test/corpus"
NAMES = """vector_add matmul_f16 flash_attn_fwd layer_norm_fwd row_sum gather_rows cumsum_axis0 batched_dot_3d
chained_dots conv2d_nhwc""".split()


def time(path):
    """Microseconds from TTIR to PTX."""
    took = []

    def listener(*, times, **_):
        took.append(sum(stage for name, stage in times.lowering_stages if name in ("ttgir", "llir", "ptx")))

    knobs.compilation.listener = listener
    for _ in range(3):
        triton.compile(str(path), target=GPUTarget("cuda", 90, 32))
    return min(took)


def main():
    paths = [Path(path) for path in sys.argv[1:]] or [CORPUS / f"{name}.ttir" for name in NAMES]
    sums = [0, 0]
    print(f"{'kernel':24} {'ttopt us':>10} {'Triton us':>10} {'ratio':>7}")
    for path in paths:
        ttopt.triton.enable(strict=True)
        ours = time(path)
        ttopt.triton.disable()
        theirs = time(path)
        sums = [sums[0] + ours, sums[1] + theirs]
        print(f"{path.stem:24} {ours:10} {theirs:10} {theirs / ours:7.1f}")
    print(f"{'sum':24} {sums[0]:10} {sums[1]:10} {sums[1] / sums[0]:7.1f}")


if __name__ == "__main__":
    main()
