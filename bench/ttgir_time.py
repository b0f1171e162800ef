"""Time of TTIR to TTGIR over the corpus for cuda:90, against Triton's passes up to the pipeliner.

TTOPT_BIN_DIR has our release binaries; TTOPT_TRITON_PYTHON names a python with triton 3.9.
Each compiler works through all kernels in one process per round: ours by `ttc` once a kernel,
whose clock starts when the module was parsed; Triton in one warm process. Medians of five.
"""

import json
import os
import pathlib
import statistics
import sys
import tempfile

from conversions import CORPUS, ROOT, Triton, run

RUNS = 5


def ours(binaries, path, launch, folder):
    times = folder / "times.json"
    command = [binaries / "ttc", path, "--target", "cuda:90", "--emit", "ttgir", "-o", os.devnull]
    command += ["--num-warps", launch["num_warps"], "--num-stages", 1, "--num-ctas", launch["num_ctas"]]
    run(command + ["--time-json", times])
    return json.loads(times.read_text())["ttgir_us"] / 1e3


def main():
    binaries = pathlib.Path(os.environ.get("TTOPT_BIN_DIR", ROOT / "target" / "release"))
    python = os.environ.get("TTOPT_TRITON_PYTHON")
    triton = Triton(python) if python else None
    mine, other = {}, {}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for path in sorted(CORPUS.glob("*.ttir")):
            launch = json.loads(path.with_suffix(".json").read_text())
            mine[path.stem] = statistics.median(ours(binaries, path, launch, folder) for _ in range(RUNS))
            if triton:
                again = [triton.compile(path, 90, launch, folder / "out.mlir") for _ in range(RUNS + 1)]
                other[path.stem] = statistics.median(again[1:]) * 1e3
    print(f"{len(mine)} kernels, ms: ttopt {sum(mine.values()):.1f} in all, {statistics.median(mine.values()):.2f} median")
    if triton:
        ratios = {kernel: other[kernel] / mine[kernel] for kernel in mine}
        print(f"Triton {sum(other.values()):.1f} in all, {statistics.median(other.values()):.2f} median")
        print(f"ratio of the sums {sum(other.values()) / sum(mine.values()):.1f}, geometric mean {statistics.geometric_mean(ratios.values()):.1f}")
        low = sorted(ratios, key=ratios.get)[:5]
        print("least:", ", ".join(f"{kernel} {ratios[kernel]:.1f}" for kernel in low))


if __name__ == "__main__":
    sys.exit(main())
