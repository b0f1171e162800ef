"""Reductions in the layouts and shapes of the paper's Table 3 (crates/linear-layout/tests/plan_reduce.rs has nearly
the same cases): generated TTGIR, compiled and run on the simulator, checked against sums made here.

    reduce_suite.py --ttsim TTSIM --ttc TTC --work DIR [--target cuda:90] [--converted] [ROW ...]

With --converted sums of rows are converted to another layout before they are stored, which the reduction may do itself.
Prints for each row its cases, how many are right, and the shared-memory instructions in the code of one thread.
The paper names neither shapes nor warps of its cases; these are ours.
"""
import array
import re
import subprocess
import sys

import suite

WARPS = [(1, 4), (4, 1), (2, 2), (2, 4), (1, 1)]
# Cases, and shared-memory instructions of the paper's.
PAPER = {
    "Blocked": (20, 1388),
    "MMA": (20, 3517),
    "MMA Input": (10, 5884),
    "Sliced<Blocked>": (20, 4687),
    "Sliced<MMA>": (10, 320),
    "Sliced<MMA Input>": (10, 545),
    "Custom": (10, 913),
}
SHARED = re.compile(r"st\.shared|llvm\.store .*ptr<3>|llvm\.load .*ptr<3>|ldmatrix|stmatrix")


def mma(w):
    return (
        "#ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, "
        f"warpsPerCTA = [{w[0]}, {w[1]}], instrShape = [16, 8]}}>"
    )


def operand(i, w):
    return f"#ttg.dot_op<{{opIdx = {i}, parent = {mma(w)}, kWidth = 2}}>"


def sliced(dim, parent):
    return f"#ttg.slice<{{dim = {dim}, parent = {parent}}}>"


def custom(n, dim):
    """Rows and columns by turns. (No encoding holds the swizzled layouts of plan_reduce.rs.)"""
    bits = min(n, 128).bit_length() - 1
    bases = [base for b in range(bits) for base in ([1 << b, 0], [0, 1 << b])]
    turn = 3 * dim + (n == 256)
    bases = bases[turn:] + bases[:turn]
    registers = max(len(bases) - 7, 0)
    reg, threads = bases[:registers], bases[registers:]
    return f"#ttg.linear<{{register = {reg}, lane = {threads[:5]}, warp = {threads[5:]}, block = []}}>"


def cases(row):
    """(layout, shape, warps) of each case."""
    squares = [((n, n), w) for n in (16, 32, 64, 128) for w in WARPS]
    lines = [(n, dim) for n in (16, 32, 64, 128, 256) for dim in (0, 1)]
    four = (2, 2)
    if row == "Blocked":
        text = "#ttg.blocked<{{sizePerThread = [1, 4], threadsPerWarp = [8, 4], warpsPerCTA = [{}, {}], order = [1, 0]}}>"
        return [(text.format(*w), shape, w) for shape, w in squares]
    if row == "MMA":
        return [(mma(w), shape, w) for shape, w in squares]
    if row == "MMA Input":
        return [(operand(i, four), (64, 128) if n == 256 else (n, n), four) for n, i in lines]
    if row == "Sliced<Blocked>":
        text = "#ttg.blocked<{{sizePerThread = [1, 4, 1], threadsPerWarp = [4, 4, 2], warpsPerCTA = [{}, {}, 1], order = [1, 0, 2]}}>"
        return [(sliced(2, text.format(*w)), shape, w) for shape, w in squares]
    if row == "Sliced<MMA>":
        return [(sliced(dim, mma(four)), (n,), four) for n, dim in lines]
    if row == "Sliced<MMA Input>":
        return [(sliced(1 - dim, operand(dim, four)), (n,), four) for n, dim in lines]
    return [(custom(n, dim), (min(n, 128),) * 2, four) for n, dim in lines]


def converted_to(warps, layout):
    """A layout of so many sums that has neighbours in lanes or in registers, by turns."""
    held = 1 + len(layout) % 4
    return f"#ttg.blocked<{{sizePerThread = [{1 << held - 1}], threadsPerWarp = [32], warpsPerCTA = [{warps[0] * warps[1]}], order = [0]}}>"


def kernel(layout, shape, warps, target, converted=False):
    """Sums hashed coordinates along the last dimension."""
    n = shape[-1]
    tensor = "x".join(map(str, shape))
    lines = []
    if len(shape) == 1:
        lines.append(f"%x = tt.make_range {{start = 0 : i32, end = {n} : i32}} : tensor<{n}xi32, #l>")
    else:
        m = shape[0]
        lines += [
            f"%r = tt.make_range {{start = 0 : i32, end = {m} : i32}} : tensor<{m}xi32, #row>",
            f"%k = tt.make_range {{start = 0 : i32, end = {n} : i32}} : tensor<{n}xi32, #column>",
            f"%k1000 = arith.constant dense<1000> : tensor<{m}xi32, #row>",
            f"%r1000 = arith.muli %r, %k1000 : tensor<{m}xi32, #row>",
            f"%r2 = tt.expand_dims %r1000 {{axis = 1 : i32}} : tensor<{m}xi32, #row> -> tensor<{m}x1xi32, #l>",
            f"%k2 = tt.expand_dims %k {{axis = 0 : i32}} : tensor<{n}xi32, #column> -> tensor<1x{n}xi32, #l>",
            f"%r3 = tt.broadcast %r2 : tensor<{m}x1xi32, #l> -> tensor<{tensor}xi32, #l>",
            f"%k3 = tt.broadcast %k2 : tensor<1x{n}xi32, #l> -> tensor<{tensor}xi32, #l>",
            f"%x = arith.addi %r3, %k3 : tensor<{tensor}xi32, #l>",
        ]
    # A hash of each coordinate, so that what is counted twice or missed shows.
    result = "i32" if len(shape) == 1 else f"tensor<{shape[0]}xi32, #row>"
    lines += [
        f"%seed = arith.constant dense<-1640531535> : tensor<{tensor}xi32, #l>",
        f"%five = arith.constant dense<5> : tensor<{tensor}xi32, #l>",
        f"%h = arith.muli %x, %seed : tensor<{tensor}xi32, #l>",
        f"%v = arith.shrui %h, %five : tensor<{tensor}xi32, #l>",
        '%s = "tt.reduce"(%v) <{axis = AXIS : i32}> ({'.replace("AXIS", str(len(shape) - 1)),
        "^bb0(%a: i32, %b: i32):",
        "  %sum = arith.addi %a, %b : i32",
        "  tt.reduce.return %sum : i32",
        f"}}) : (tensor<{tensor}xi32, #l>) -> {result}",
    ]
    if len(shape) == 1:
        lines.append("tt.store %out, %s : !tt.ptr<i32>")
    else:
        to = "#to" if converted else "#row"
        pointers = f"tensor<{shape[0]}x!tt.ptr<i32>, {to}>"
        lines += [
            f"%c = ttg.convert_layout %s : {result} -> tensor<{shape[0]}xi32, #to>" if converted else "",
            f"%n = tt.make_range {{start = 0 : i32, end = {shape[0]} : i32}} : tensor<{shape[0]}xi32, {to}>",
            f"%p = tt.splat %out : !tt.ptr<i32> -> {pointers}",
            f"%q = tt.addptr %p, %n : {pointers}, tensor<{shape[0]}xi32, {to}>",
            f"tt.store %q, {'%c' if converted else '%s'} : {pointers}",
        ]
    body = "\n  ".join(lines)
    attrs = f'"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = {warps[0] * warps[1]} : i32'
    slices = ""
    if len(shape) == 2:
        slices = f"#row = {sliced(1, '#l')}\n#column = {sliced(0, '#l')}\n"
        slices += f"#to = {converted_to(warps, layout)}\n" if converted else ""
    return f"""#l = {layout}
{slices}module attributes {{{attrs}, ttg.target = "{target}", "ttg.threads-per-warp" = 32 : i32}} {{
tt.func public @k(%out: !tt.ptr<i32>) {{
  {body}
  tt.return
}}
}}
"""


def expected(shape):
    value = lambda r, k: ((r * 1000 + k) * 2654435761 & 0xFFFFFFFF) >> 5
    rows = range(shape[0]) if len(shape) == 2 else range(1)
    return [sum(value(r, k) for k in range(shape[-1])) & 0xFFFFFFFF for r in rows]


def run(args, name, case):
    """(what is wrong or None, shared-memory instructions)"""
    layout, shape, warps = case
    folder = args.work / name
    folder.mkdir(parents=True, exist_ok=True)
    source = folder / "k.ttgir"
    source.write_text(kernel(layout, shape, warps, args.target, args.converted))
    code = subprocess.run([args.ttc, source, "--target", args.target, "--emit", "llvm"], capture_output=True, text=True)
    if code.returncode:
        return code.stderr.strip(), 0
    instructions = sum(bool(SHARED.search(line)) for line in code.stdout.splitlines())
    wanted = array.array("I", expected(shape))
    wrong = suite.simulate(args, source, args.target, [f"out=i32[{len(wanted)}]"], folder)
    wrong = wrong or suite.difference("out", array.array("I", suite.raw(folder / "out.npy")), wanted)
    return wrong, instructions


def main():
    parser = suite.parser(__doc__)
    parser.add_argument("--target", default="cuda:90")
    parser.add_argument("--converted", action="store_true")
    parser.add_argument("rows", nargs="*")
    args = parser.parse_args()
    bad = 0
    for number, (row, (count, paper)) in enumerate(PAPER.items()):
        if args.rows and row not in args.rows:
            continue
        all_cases = cases(row)
        assert len(all_cases) == count, row
        results = suite.run_all(args, run, [(f"{number}-{i}", case) for i, case in enumerate(all_cases)])
        for case, (wrong, _) in zip(all_cases, results):
            if wrong:
                bad += 1
                print(f"WRONG {case}: {wrong}")
        total = sum(n for _, n in results)
        right = sum(wrong is None for wrong, _ in results)
        print(f"{row}: {right} of {count} right, {total} shared-memory instructions, {paper} in the paper", flush=True)
        bad += total > paper
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
