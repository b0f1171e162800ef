"""Scans in many layouts: generated TTGIR, compiled and run on the simulator, checked against scans made here.

    scan_suite.py --ttsim TTSIM --work DIR

The operation is associative but not commutative: of pairs, (a, b) then (c, d) is (a c, b c + d), the composition of
two affine functions of integers. Every layout is scanned along both dimensions, in both directions, in every width of
elements. Prints for each layout how many of its scans are right.
"""
import array
import itertools
import sys

import suite
from reduce_suite import mma, sliced

BLOCKED = "#ttg.blocked<{{sizePerThread = {}, threadsPerWarp = {}, warpsPerCTA = {}, order = {}{}}}>"
LINEAR = "#ttg.linear<{{register = {}, lane = {}, warp = {}, block = {}}}>"
# Name: layout, shape, warps, blocks of a cluster.
LAYOUTS = {
    "warps along rows": (BLOCKED.format([1, 4], [4, 8], [1, 4], [1, 0], ""), (8, 128), 4, 1),
    "warps along columns": (BLOCKED.format([1, 4], [4, 8], [4, 1], [1, 0], ""), (64, 32), 4, 1),
    "tiles above warps": (BLOCKED.format([1, 2], [8, 4], [2, 4], [1, 0], ""), (32, 64), 8, 1),
    "copies in warps": (BLOCKED.format([1, 4], [8, 4], [2, 2], [0, 1], ""), (8, 16), 4, 1),
    "one line": (BLOCKED.format([1, 1], [1, 32], [1, 4], [1, 0], ""), (1, 256), 4, 1),
    "results of dots": (mma((2, 2)), (32, 32), 4, 1),
    "lanes above warps": (
        LINEAR.format([[0, 1], [8, 0]], [[0, 2], [1, 0], [0, 16], [2, 0], [16, 0]], [[0, 4], [4, 0], [0, 8]], []),
        (32, 32), 8, 1,
    ),
    "bases of several bits": (
        LINEAR.replace("linear", "generic_linear").format(
            [[0, 3], [3, 0]], [[0, 1], [0, 6], [0, 4], [6, 0], [12, 0]], [[0, 8], [8, 0]], []
        ),
        (16, 16), 4, 1,
    ),
    "divided by blocks": (
        BLOCKED.format([1, 2], [4, 8], [1, 4], [1, 0], ", CGALayout = [[0, 1]]"), (4, 256), 4, 2,
    ),
}
WIDTHS = [8, 16, 32, 64]


def kernel(layout, shape, warps, blocks, axis, reverse, bits):
    """Scans hashed coordinates."""
    m, n = shape
    ints, i32, ptrs = f"tensor<{m}x{n}xi{bits}, #l>", f"tensor<{m}x{n}xi32, #l>", f"tensor<{m}x{n}x!tt.ptr<i{bits}>, #l>"
    cast = {8: "arith.trunci", 16: "arith.trunci", 64: "arith.extsi"}.get(bits)
    lines = [
        f"%r = tt.make_range {{start = 0 : i32, end = {m} : i32}} : tensor<{m}xi32, #row>",
        f"%k = tt.make_range {{start = 0 : i32, end = {n} : i32}} : tensor<{n}xi32, #column>",
        f"%r2 = tt.expand_dims %r {{axis = 1 : i32}} : tensor<{m}xi32, #row> -> tensor<{m}x1xi32, #l>",
        f"%k2 = tt.expand_dims %k {{axis = 0 : i32}} : tensor<{n}xi32, #column> -> tensor<1x{n}xi32, #l>",
        f"%n = arith.constant dense<{n}> : tensor<{m}x1xi32, #l>",
        f"%rn = arith.muli %r2, %n : tensor<{m}x1xi32, #l>",
        f"%r3 = tt.broadcast %rn : tensor<{m}x1xi32, #l> -> {i32}",
        f"%k3 = tt.broadcast %k2 : tensor<1x{n}xi32, #l> -> {i32}",
        f"%x = arith.addi %r3, %k3 : {i32}",
        f"%seed = arith.constant dense<-1640531535> : {i32}",
        f"%five = arith.constant dense<5> : {i32}",
        f"%one = arith.constant dense<1> : {i32}",
        f"%h = arith.muli %x, %seed : {i32}",
        f"%b32 = arith.shrui %h, %five : {i32}",
        f"%a32 = arith.ori %b32, %one : {i32}",
    ]
    lines += [f"%{v} = {cast} %{v}32 : {i32} to {ints}" if cast else f"%{v} = arith.ori %{v}32, %{v}32 : {i32}" for v in "ab"]
    lines += [
        f'%s:2 = "tt.scan"(%a, %b) <{{axis = {axis} : i32, reverse = {str(reverse).lower()}}}> ({{',
        f"^bb0(%a0: i{bits}, %b0: i{bits}, %a1: i{bits}, %b1: i{bits}):",
        f"  %aa = arith.muli %a0, %a1 : i{bits}",
        f"  %ba = arith.muli %b0, %a1 : i{bits}",
        f"  %bb = arith.addi %ba, %b1 : i{bits}",
        f"  tt.scan.return %aa, %bb : i{bits}, i{bits}",
        f"}}) : ({ints}, {ints}) -> ({ints}, {ints})",
    ]
    for i in range(2):
        lines += [
            f"%p{i} = tt.splat %out{i} : !tt.ptr<i{bits}> -> {ptrs}",
            f"%q{i} = tt.addptr %p{i}, %x : {ptrs}, {i32}",
            f"tt.store %q{i}, %s#{i} : {ptrs}",
        ]
    body = "\n  ".join(lines)
    return f"""#l = {layout}
#row = {sliced(1, '#l')}
#column = {sliced(0, '#l')}
module attributes {{"ttg.num-ctas" = {blocks} : i32, "ttg.num-warps" = {warps} : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32}} {{
tt.func public @k(%out0: !tt.ptr<i{bits}>, %out1: !tt.ptr<i{bits}>) {{
  {body}
  tt.return
}}
}}
"""


def expected(shape, axis, reverse, bits):
    m, n = shape
    mask = (1 << bits) - 1
    result = [[0] * (m * n), [0] * (m * n)]
    for line in range(shape[1 - axis]):
        places = [line * n + i if axis == 1 else i * n + line for i in range(shape[axis])]
        state = None
        for at in reversed(places) if reverse else places:
            b = (at * 2654435761 & 0xFFFFFFFF) >> 5
            a = b | 1
            state = (a, b) if state is None else (state[0] * a & mask, (state[1] * a + b) & mask)
            result[0][at], result[1][at] = state[0] & mask, state[1] & mask
    return result


def run(args, number, case):
    """What is wrong, or None."""
    (layout, shape, warps, blocks), axis, reverse, bits = case
    folder = args.work / str(number)
    folder.mkdir(parents=True, exist_ok=True)
    source = folder / "k.ttgir"
    source.write_text(kernel(layout, shape, warps, blocks, axis, reverse, bits))
    arguments = [f"{name}=i{bits}[{shape[0] * shape[1]}]" for name in "ab"]
    wrong = suite.simulate(args, source, "cuda:90", arguments, folder, "--num-ctas", blocks)
    code = {8: "B", 16: "H", 32: "I", 64: "Q"}[bits]
    for name, wanted in zip("ab", expected(shape, axis, reverse, bits)):
        wrong = wrong or suite.difference(name, array.array(code, suite.raw(folder / f"{name}.npy")), list(wanted))
    return wrong


def main():
    args = suite.parser(__doc__).parse_args()
    bad, number = 0, itertools.count()
    for name, layout in LAYOUTS.items():
        cases = [(layout, *rest) for rest in itertools.product((0, 1), (False, True), WIDTHS)]
        results = suite.run_all(args, run, [(next(number), case) for case in cases])
        for case, wrong in zip(cases, results):
            if wrong:
                print(f"WRONG {name}, axis {case[1]}, reverse {case[2]}, i{case[3]}: {wrong}")
        right = sum(wrong is None for wrong in results)
        bad += len(cases) - right
        print(f"{name}: {right} of {len(cases)} right", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
