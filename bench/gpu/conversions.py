#!/usr/bin/env python3
"""Compares the shared-memory wavefronts that NVIDIA's ncu counts with those that plans of layout conversions foresee.

    TTOPT_CONVERSIONS=all TTOPT_CONVERSIONS_DIR=DIR cargo test -p ttopt-tools --test conversions
        writes the generated kernels, as PTX, and what their plans foresee
    conversions.py launch DIR [--apart]
        on the GPU: every kernel once, its result checked. Under ncu:
        ncu --clock-control none --csv --page raw --metrics METRICS python3 conversions.py launch DIR --apart > DIR/ncu.csv
        Accesses that meet others still under way wait, and ncu counts that as wavefronts, of the same kernel a different
        number at different times. --apart lets threads sleep behind each barrier, so that loads meet no stores.
    conversions.py metrics
        prints METRICS
    conversions.py table DIR
        how many kernels take more than planned, as many, or fewer: the least of all runs, DIR/ncu*.csv, counts

launch needs launch.py beside this file, and numpy.
"""
import argparse
import collections
import csv
import json
import pathlib
import re
import sys
import tempfile

METRICS = [
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
]
DTYPES = {"i1": "i8", "i8": "i8", "i64": "i64", "f32": "i32", "i32": "i32"}


def expected(case):
    """What the kernel stores: spread bits of the index of each element, as the test makes them."""
    import numpy as np

    i = np.arange(case["elements"], dtype=np.uint64)
    s = i * np.uint64(0x9E3779B1) & np.uint64(0xFFFFFFFF)
    high = s >> np.uint64(16)
    values = {
        "i1": high & np.uint64(1),
        "i8": high & np.uint64(0xFF),
        "i64": s,
        "f32": (s + high) & np.uint64(0xFFFFFFFF),
        "i32": (s + high) & np.uint64(0xFFFFFFFF),
    }.get(case["dtype"], high)
    size = int(DTYPES.get(case["dtype"], "i16")[1:]) // 8
    return values.astype(f"<u{size}")


def sleepy(folder):
    """A copy of the kernels in which threads sleep behind each barrier."""
    copy = pathlib.Path(tempfile.mkdtemp())
    barrier = re.compile(r"^(\s*(?:bar|barrier)\.[\w.]*sync[^;]*;|\s*barrier\.cluster\.wait[^;]*;)", re.M)
    for path in folder.glob("*.ptx"):
        (copy / path.name).write_text(barrier.sub(r"\1 nanosleep.u32 20000;", path.read_text()))
    return copy


def run(folder, apart):
    import launch
    import numpy as np

    images = sleepy(folder) if apart else folder
    launch.BASE = str(images)
    cuda, wrong = launch.Cuda(), 0
    cases = json.loads((folder / "cases.json").read_text())
    for case in cases:
        dtype = DTYPES.get(case["dtype"], "i16")
        kernel = {
            "image": case["name"] + ".ptx", "entry": "kernel", "threads": 32 * case["warps"], "shared": case["shared"],
            "grid": [case["blocks"], 1, 1], "outputs": ["out"],
            "args": [{"name": "out", "kind": "ptr", "dtype": dtype, "shape": [case["elements"]]}],
        }
        live = launch.Launch(cuda, kernel, str(images))
        live.run()
        cuda("cuCtxSynchronize")
        if not np.array_equal(live.output("out").view(expected(case).dtype), expected(case)):
            wrong += 1
            print(f"WRONG {case['name']}", file=sys.stderr)
        live.free()
    print(f"{len(cases) - wrong} of {len(cases)} right", file=sys.stderr)
    return 1 if wrong else 0


def counted(path, cases):
    """Stores' and loads' wavefronts of each kernel in one run."""
    rows = list(csv.reader(line for line in path.read_text().splitlines() if line.startswith('"')))
    columns = [rows[0].index(name) for name in METRICS]
    counts = [[int(float(row[i].replace(",", ""))) for i in columns] for row in rows[2:]]
    if len(counts) != len(cases):
        sys.exit(f"{path}: {len(counts)} kernels were counted, there are {len(cases)}")
    return counts


def table(folder):
    cases = json.loads((folder / "cases.json").read_text())
    runs = [counted(path, cases) for path in sorted(folder.glob("ncu*.csv"))]
    if not runs:
        sys.exit(f"no ncu*.csv in {folder}")
    counts = [[min(both) for both in zip(*kernel)] for kernel in zip(*runs)]
    total, sums, worse = collections.Counter(), [0, 0], []
    for case, count in zip(cases, counts):
        plan = case["wavefronts"]
        if plan is None:
            total["between blocks, not compared"] += 1
            continue
        sums = [sums[0] + sum(plan), sums[1] + sum(count)]
        if any(c > p for c, p in zip(count, plan)):
            worse.append((case, count))
        fewer = any(c < p for c, p in zip(count, plan))
        total["more" if worse and worse[-1][0] is case else "fewer" if fewer else "as many"] += 1
    for kind, n in total.most_common():
        print(f"{kind}: {n}")
    print(f"planned {sums[0]} wavefronts, counted {sums[1]}")
    for case, count in worse[:40]:
        print(f"  {case['name']}: {case['kind']}, {case['dtype']}, stores and loads {count}, planned {case['wavefronts']}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["launch", "metrics", "table"])
    parser.add_argument("folder", type=pathlib.Path, nargs="?")
    parser.add_argument("--apart", action="store_true", help="let threads sleep behind barriers")
    args = parser.parse_args()
    if args.what == "metrics":
        print(",".join(METRICS))
        return 0
    if args.folder is None:
        parser.error("needs a folder")
    return run(args.folder, args.apart) if args.what == "launch" else table(args.folder)


if __name__ == "__main__":
    sys.exit(main())
