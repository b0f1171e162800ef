"""Time of TTIR to TTGIR against the length of a straight-line function.

TTOPT_BIN_DIR has our binaries (default target/release). For each kind of code, functions of
1,000 and of 20,000 operations are compiled; the fastest of five. Shown are the CPU time of the whole
process (start, parsing, passes, printing), and the time of the stage with the passes by its own clock.
The longer process may take at most 20 times as long as the shorter one. Exits with 1 when one takes longer.

With --instructions it counts instructions by valgrind instead, which a busy machine does not
change, for functions of 250 and of 5,000 operations (--lengths). What an empty function takes is
subtracted; the limit is 5 % above the ratio of lengths. With --together all kinds are functions of one module,
which starts valgrind three times instead of twice for each kind; what a ratio above the limit is due to, a run without says.
"""

import argparse
import json
import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
SHORT, LONG = 1000, 20000
LIMIT = 20.0
RUNS = 5
T = "tensor<64x64xf32>"
ROW = "tensor<64xf32>"
PTR = "tensor<64x64x!tt.ptr<f32>>"


def elementwise(n):
    """Each value is used twice: as many paths as there are subsets of operations."""
    lines, x = [], "%x"
    for i in range(n):
        lines.append(f"%v{i} = arith.addf {x}, {x} : {T}" if i % 2 else f"%v{i} = arith.mulf {x}, %y : {T}")
        x = f"%v{i}"
    return lines, x


def memory(n):
    """Blocks of load, arithmetic and store; loads and stores run along different dimensions."""
    lines, x = [], "%x"
    for i in range(n // 4):
        lines += [
            f"%l{i} = tt.load %p : {PTR}",
            f"%t{i} = tt.trans %l{i} {{order = array<i32: 1, 0>}} : {T} -> {T}",
            f"%v{i} = arith.addf {x}, %t{i} : {T}",
            f"tt.store %p, %v{i} : {PTR}",
        ]
        x = f"%v{i}"
    return lines, x


def reductions(n):
    """Rows and columns by turns, so that each step wants another layout."""
    lines, x = [], "%x"
    for i in range(n // 5):
        axis = i % 2
        one = "tensor<1x64xf32>" if axis == 0 else "tensor<64x1xf32>"
        lines += [
            f'%r{i} = "tt.reduce"({x}) <{{axis = {axis} : i32}}> ({{\n'
            f"^bb0(%a: f32, %b: f32):\n%sum = arith.addf %a, %b : f32\ntt.reduce.return %sum : f32\n}}) : ({T}) -> {ROW}",
            f"%e{i} = tt.expand_dims %r{i} {{axis = {axis} : i32}} : {ROW} -> {one}",
            f"%b{i} = tt.broadcast %e{i} : {one} -> {T}",
            f"%v{i} = arith.subf {x}, %b{i} : {T}",
        ]
        x = f"%v{i}"
    return lines, x


def ranges(n):
    """Index arithmetic that many accesses of two shapes and orders share."""
    lines, x = [], "%c0"
    i64 = "tensor<64x64xi32>"
    for i in range(n // 6):
        lines += [
            f"%o{i} = arith.addi {x}, %ri : {i64}",
            f"%q{i} = tt.addptr %p, %o{i} : {PTR}, {i64}",
            f"%l{i} = tt.load %q{i} : {PTR}",
            f"%t{i} = tt.trans %o{i} {{order = array<i32: 1, 0>}} : {i64} -> {i64}",
            f"%u{i} = tt.addptr %p, %t{i} : {PTR}, {i64}",
            f"tt.store %u{i}, %l{i} : {PTR}",
        ]
        x = f"%o{i}"
    return lines, "%x"


def diamonds(n):
    """Sums that each are used by the next two, stored in two layouts: nothing may follow every path."""
    lines = [f"%v0 = arith.addf %x, %x : {T}", f"%v1 = arith.addf %v0, %x : {T}"]
    lines += [f"%v{i} = arith.addf %v{i - 1}, %v{i - 2} : {T}" for i in range(2, n)]
    lines += [f"%t = tt.trans %v{n - 1} {{order = array<i32: 1, 0>}} : {T} -> {T}", f"tt.store %p, %t : {PTR}"]
    return lines, f"%v{n - 1}"


def parts(n):
    """Computations that have one operand in common, each wanted in another layout than it has."""
    lines = [
        f"%z = tt.trans %y {{order = array<i32: 1, 0>}} : {T} -> {T}",
        "%i = arith.fptosi %x : tensor<64x64xf32> to tensor<64x64xi32>",
        f"%q = tt.addptr %p, %i : {PTR}, tensor<64x64xi32>",
        f"%l = tt.load %q : {PTR}",
    ]
    for i in range(n // 3):
        lines += [
            f"%v{i} = arith.addf %l, %z : {T}",
            f"%t{i} = tt.trans %v{i} {{order = array<i32: 1, 0>}} : {T} -> {T}",
            f"tt.store %q, %t{i} : {PTR}",
        ]
    return lines, "%x"


def advancing(n):
    """Loads through pointers that each begin where the one before is, as a loop that is unrolled has them."""
    row, pointers = "tensor<64xf32>", "tensor<64x!tt.ptr<f32>>"
    lines = [
        f"%q = tt.splat %base : !tt.ptr<f32> -> {pointers}",
        f"%q0 = tt.addptr %q, %r : {pointers}, tensor<64xi32>",
        f"%a0 = tt.load %q0 : {pointers}",
    ]
    for i in range(n // 3):
        lines += [
            f"%q{i + 1} = tt.addptr %q{i}, %r : {pointers}, tensor<64xi32>",
            f"%l{i} = tt.load %q{i + 1} : {pointers}",
            f"%a{i + 1} = arith.addf %a{i}, %l{i} : {row}",
        ]
    lines.append(f"tt.store %q0, %a{n // 3} : {pointers}")
    return lines, "%x"


def waiting(n):
    """Loads first, their uses last: more registers wait than there are, and loads move down."""
    lines, x = [], "%x"
    for i in range(n // 8):
        lines += [
            f"%o{i} = arith.constant {4096 * i} : i32",
            f"%b{i} = tt.addptr %base, %o{i} : !tt.ptr<f32>, i32",
            f"%s{i} = tt.splat %b{i} : !tt.ptr<f32> -> {PTR}",
            f"%q{i} = tt.addptr %s{i}, %ri : {PTR}, tensor<64x64xi32>",
            f"%l{i} = tt.load %q{i} : {PTR}",
        ]
    for i in range(n // 8):
        lines += [
            f'%r{i} = "tt.reduce"({x}) <{{axis = 0 : i32}}> ({{\n'
            f"^bb0(%a: f32, %b: f32):\n%sum = arith.addf %a, %b : f32\ntt.reduce.return %sum : f32\n}}) : ({T}) -> {ROW}",
            f"%e{i} = tt.expand_dims %r{i} {{axis = 0 : i32}} : {ROW} -> tensor<1x64xf32>",
            f"%w{i} = tt.broadcast %e{i} : tensor<1x64xf32> -> {T}",
            f"%v{i} = arith.addf %w{i}, %l{i} : {T}",
        ]
        x = f"%v{i}"
    return lines, x


KINDS = [elementwise, memory, reductions, ranges, diamonds, parts, advancing, waiting]


def function(kind, n):
    lines, last = kind(n)
    body = "\n".join(lines)
    return f"""tt.func public @{kind.__name__}(%base: !tt.ptr<f32> {{tt.divisibility = 16 : i32}}) {{
%r = tt.make_range {{start = 0 : i32, end = 64 : i32}} : tensor<64xi32>
%k = arith.constant dense<64> : tensor<64x1xi32>
%c0 = arith.constant dense<0> : tensor<64x64xi32>
%rows = tt.expand_dims %r {{axis = 1 : i32}} : tensor<64xi32> -> tensor<64x1xi32>
%cols = tt.expand_dims %r {{axis = 0 : i32}} : tensor<64xi32> -> tensor<1x64xi32>
%rk = arith.muli %rows, %k : tensor<64x1xi32>
%ra = tt.broadcast %rk : tensor<64x1xi32> -> tensor<64x64xi32>
%rb = tt.broadcast %cols : tensor<1x64xi32> -> tensor<64x64xi32>
%ri = arith.addi %ra, %rb : tensor<64x64xi32>
%s = tt.splat %base : !tt.ptr<f32> -> {PTR}
%p = tt.addptr %s, %ri : {PTR}, tensor<64x64xi32>
%x = tt.load %p : {PTR}
%y = tt.load %p {{isVolatile = true}} : {PTR}
{body}
tt.store %p, {last} : {PTR}
tt.return
}}
"""


def module(kinds, n):
    return "".join(function(kind, n) for kind in kinds)


def to_ttgir(ttc, path, emit="ttgir"):
    # Builds with assertions verify after each pass by default.
    return [ttc, path, "--target", "cuda:90", "--emit", emit, "-o", os.devnull, "--verify-each=false"]


def times_of(ttc, path):
    """Milliseconds of the process, user and system, and of the stage."""
    with tempfile.NamedTemporaryFile("r") as times:
        command = [*to_ttgir(ttc, path), "--time-json", times.name]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        result = subprocess.run(command, capture_output=True, text=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if result.returncode:
            sys.exit(f"{path}: {result.stderr}")
        seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return seconds * 1e3, json.load(times)["ttgir_us"] / 1e3


def fastest(ttc, path):
    """The least of each time."""
    return [min(times) for times in zip(*(times_of(ttc, path) for _ in range(RUNS)))]


def instructions_of(ttc, path, emit):
    """All instructions of the compiler, in user mode."""
    command = ["valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"]
    command += to_ttgir(ttc, path, emit)
    result = subprocess.run(command, capture_output=True, text=True)
    found = re.search(r"I +refs: +([\d,]+)", result.stderr)
    if result.returncode or not found:
        sys.exit(f"{path}: {result.stderr}")
    return int(found[1].replace(",", ""))


def without_symbols(ttc, folder):
    """A copy of `ttc` that valgrind need not read lines and symbols of, which takes it longer than to run it."""
    strip = shutil.which("llvm-strip") or shutil.which("strip")
    if not strip:
        return ttc
    copy = pathlib.Path(folder, "ttc")
    subprocess.run([strip, "-o", copy, ttc], check=True)
    return copy


def measured(kinds, n, measure):
    with tempfile.NamedTemporaryFile("w", suffix=".ttir") as file:
        file.write(module(kinds, n))
        file.flush()
        return measure(file.name)


def count_instructions(ttc, short, long, kinds, together, emit, limit):
    failed = False
    groups = [kinds] if together else [[kind] for kind in kinds]
    with tempfile.TemporaryDirectory() as folder:
        ttc = without_symbols(ttc, folder)
        count = lambda kinds, n: measured(kinds, n, lambda path: instructions_of(ttc, path, emit))
        empty = count([elementwise], 0)
        limit = limit or 1.05 * long / short
        print(f"{'':12} {short:>8} ops {long:>8} ops   ratio (limit {limit:.1f})")
        for group in groups:
            few, many = [count(group, n) - empty for n in (short, long)]
            failed |= many > limit * few
            name = "together" if together else group[0].__name__
            print(f"{name:12} {few / 1e6:7.1f} Mio {many / 1e6:7.1f} Mio {many / few:7.1f}", flush=True)
    sys.exit(failed)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--instructions", action="store_true")
    parser.add_argument("--lengths", type=int, nargs=2, default=(250, 5000), metavar="OPERATIONS")
    parser.add_argument("--ttc", default=pathlib.Path(os.environ.get("TTOPT_BIN_DIR", ROOT / "target" / "release")) / "ttc")
    parser.add_argument("--kinds", nargs="+", choices=[kind.__name__ for kind in KINDS], help="with --instructions")
    parser.add_argument("--together", action="store_true", help="all kinds in one module, with --instructions")
    parser.add_argument("--emit", default="ttgir", help="how far to compile, with --instructions")
    parser.add_argument("--limit", type=float, help="of the ratio, with --instructions")
    args = parser.parse_args()
    if args.instructions:
        kinds = [kind for kind in KINDS if kind.__name__ in (args.kinds or [kind.__name__])]
        count_instructions(args.ttc, *args.lengths, kinds, args.together, args.emit, args.limit)
    if args.kinds or args.together or args.limit or args.emit != parser.get_default("emit"):
        parser.error("--kinds, --together, --emit and --limit need --instructions")
    failed = False
    heads = [f"{what:>8} {SHORT:>5} {LONG:>10} ops   ratio" for what in (f"(limit {LIMIT:.0f})", "stage")]
    print(f"{'process':12}{heads[0]}   {heads[1]}")
    for kind in KINDS:
        few, many = [measured([kind], n, lambda path: fastest(args.ttc, path)) for n in (SHORT, LONG)]
        failed |= many[0] > LIMIT * few[0]
        columns = [f"{short:11.1f} ms {long:11.1f} ms {long / short:7.1f}" for short, long in zip(few, many)]
        print(f"{kind.__name__:12}{'   '.join(columns)}", flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
