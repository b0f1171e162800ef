"""Dots that are multiplied and added up in parts, since a thread has too few registers for all of a result and a sum: as many warps more have
registers for both, so that nothing is taken apart, and must give the same bytes.

    dots_in_parts.py --ttsim TTSIM --ttc TTC --work DIR
"""
import subprocess
import sys

import suite
from pipeline_suite import Loop, simulate
from tma_suite import write_npy

# Rows, columns and summands; warps with which registers are short, and with which they are not; rows or columns that are cut.
SHAPES = (((128, 128, 32), 4, 8, "rows"), ((256, 128, 32), 8, 16, "rows"), ((64, 256, 32), 4, 8, None))
STAGES = (1, 3)


def scaled(loop, element):
    """sum = sum + dot(a, b) * a number of the iteration."""
    m, n, k = loop.m, loop.n, loop.k
    tile = loop.sums()
    zero = loop.pre(f"arith.constant dense<0.0> : {tile}")

    def step(c):
        a, ta = loop.load("%a", m, k, element)
        b, tb = loop.load("%b", k, n, element)
        d = loop.add(f"tt.dot {a}, {b}, {zero} : {ta} * {tb} -> {tile}")
        i = loop.add("arith.sitofp %i : i32 to f32")
        s = loop.add(f"tt.splat {i} : f32 -> {tile}")
        return loop.add(f"arith.addf {c}, {loop.add(f'arith.mulf {d}, {s} : {tile}')} : {tile}")

    loop.accumulate(step)
    return loop


def main():
    args = suite.parser(__doc__).parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    write_npy(args.work / "a.npy", "f16", (4 * 256 * 32,), 1)
    write_npy(args.work / "b.npy", "f16", (4 * 256 * 32,), 2)
    write_npy(args.work / "index.npy", "i32", (64,), 3)
    wrong = runs = 0
    for shape, few, many, cut in SHAPES:
        args.tile = shape
        loop = scaled(Loop(None, *shape), "f16")
        outputs = []
        for stages in STAGES:
            for args.warps in (few, many):
                name = f"{'x'.join(map(str, shape))}-{stages}-{args.warps}"
                folder = args.work / name
                folder.mkdir(parents=True, exist_ok=True)
                source = folder / "loop.ttir"
                source.write_text(loop.text(stages))
                command = [args.ttc, source, "--target", "cuda:90", "--num-warps", args.warps, "--num-stages", stages,
                           "--emit", "ttgir", "--explain", "-o", folder / "loop.ttgir"]
                said = subprocess.run(list(map(str, command)), capture_output=True, text=True).stderr
                taken = f"parts of its {cut}" in said if args.warps == few and cut else "parts of its" not in said
                error = simulate(args, source, folder / "out", "cuda:90", stages, 3)
                runs += 1
                if error or not taken:
                    wrong += 1
                    print(f"WRONG {name}: {error or 'in parts, or not, against what registers say'}")
                else:
                    outputs.append((folder / "out" / "out.npy").read_bytes())
        if len(set(outputs)) != 1:
            wrong += 1
            print(f"WRONG {shape}: other bytes with other warps or stages")
    print(f"{runs} runs, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
