"""Time of TTIR to TTGIR over the corpus for cuda:90, against Triton's passes up to the pipeliner.

TTOPT_BIN_DIR has our release binaries; TTOPT_TRITON_PYTHON names a python with triton 3.9.
Each compiler works through all kernels in one process; its clock runs from the parsed module
to TTGIR. A first time of each kernel does not count; medians of five.
"""

import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

from conversions import CORPUS, ROOT, Triton

RUNS = 5


def ours(binaries, launches):
    """The milliseconds of each kernel, by name."""
    lines = [f"{path} {launch['num_warps']} {launch['num_ctas']}" for path, launch in launches.items()]
    command = [binaries / "bench-ttgir", str(RUNS + 1)]
    done = subprocess.run(command, input="\n".join(lines), stdout=subprocess.PIPE, text=True, check=True)
    times = [json.loads(line) for line in done.stdout.splitlines()]
    return {path.stem: statistics.median(again[1:]) / 1e3 for path, again in zip(launches, times, strict=True)}


def main():
    binaries = pathlib.Path(os.environ.get("TTOPT_BIN_DIR", ROOT / "target" / "release"))
    python = os.environ.get("TTOPT_TRITON_PYTHON")
    triton = Triton(python) if python else None
    launches = {path: json.loads(path.with_suffix(".json").read_text()) for path in sorted(CORPUS.glob("*.ttir"))}
    mine, other = ours(binaries, launches), {}
    with tempfile.TemporaryDirectory() as name:
        for path, launch in launches.items() if triton else ():
            again = [triton.compile(path, "cuda:90", launch, pathlib.Path(name) / "out.mlir") for _ in range(RUNS + 1)]
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
