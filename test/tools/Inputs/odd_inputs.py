"""Feeds a tool inputs that nobody writes by hand; reports crashes and silence.

Usage: odd_inputs.py CASE CORPUS COMMAND...
The input goes to the command's stdin. A crash is an exit code of 128 or more (or death by
a signal); silence is exit code 1 without a diagnostic.
"""

import concurrent.futures
import pathlib
import random
import subprocess
import sys

MEGABYTES = 5


def run(command, data):
    return subprocess.run(command, input=data, capture_output=True, timeout=240)


def judge(command, what, data, wanted):
    """Whether the command dealt with the input; prints what was wrong otherwise."""
    result = run(command, data)
    error = result.stderr.decode(errors="replace")
    if result.returncode not in wanted:
        print(f"{what}: exit code {result.returncode}, wanted {wanted}: {error[:400]}")
        return False
    if result.returncode == 1 and "error" not in error:
        print(f"{what}: no diagnostic: {error[:400]!r}")
        return False
    return True


def judge_all(command, cases):
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        results = list(pool.map(lambda case: judge(command, *case), cases))
    print(f"{len(results)} inputs, {results.count(False)} wrong")


def truncated(command, corpus):
    """Real kernels cut at many places; what is left is rarely valid."""
    cases = []
    for name in ["matmul_desc", "flash_attn_fwd", "map_scalar_fn", "histogram_i32"]:
        data = (corpus / f"{name}.ttir").read_bytes()
        for i in range(15):
            cut = (i * len(data)) // 15 + i
            cases.append((f"{name} cut at {cut}", data[:cut], [0, 1]))
    judge_all(command, cases)


def operations(command, corpus):
    """The files with all operations of each dialect, cut at many places."""
    cases = []
    for path in sorted((corpus.parent / "dialect").glob("*/*ops.mlir")):
        data = path.read_bytes()
        for i in range(1, 25):
            cut = (i * len(data)) // 25 + i
            cases.append((f"{path.parent.name}/{path.name} cut at {cut}", data[:cut], [0, 1]))
    judge_all(command, cases)


def binary(command, _):
    """Noise, zeros, text that is not UTF-8, bytecode that ends at once, an ELF header."""
    noise = random.Random(7)
    cases = [(f"noise {i}", bytes(noise.randrange(256) for _ in range(1 << (2 * i))), [1]) for i in range(1, 8)]
    cases += [
        # MLIR takes zero bytes for white space.
        ("zeros", bytes(4096), [0, 1]),
        ("latin-1", "// caf\xe9\nmodule {".encode("latin-1"), [1]),
        ("bytecode magic", b"ML\xefR", [1]),
        ("bytecode magic and noise", b"ML\xefR" + bytes(noise.randrange(256) for _ in range(256)), [1]),
        ("ELF", b"\x7fELF" + bytes(60), [1]),
        ("zero inside a module", b"module {\0}", [0, 1]),
    ]
    judge_all(command, cases)


def garbage(command, _):
    """Five megabytes of almost MLIR."""
    line = b'%0 = "tt.splat"(%1) : (i32) -> tensor<128xi32> }) ({ // \n'
    size = MEGABYTES << 20
    judge_all(command, [
        ("a line over and over", line * (size // len(line)), [1]),
        ("open braces", b"module { " * (1 << 12), [1]),
        ("one name", b"tt.func @" + b"x" * size, [1]),
        ("one number", b"module attributes {a = " + b"9" * (1 << 12) + b"} {}", [1]),
        ("brackets", b"module attributes {a = " + b"[" * (1 << 12), [1]),
    ])


def huge(command, _):
    """A valid module of five megabytes: many functions, and one function of many operations."""
    function = """  tt.func private @f%d(%%x: tensor<128xf32>, %%p: tensor<128x!tt.ptr<f32>>) {
    %%0 = arith.addf %%x, %%x : tensor<128xf32>
    tt.store %%p, %%0 : tensor<128x!tt.ptr<f32>>
    tt.return
  }
"""
    count = (MEGABYTES << 20) // len(function)
    many = "module {\n" + "".join(function % i for i in range(count)) + "}\n"
    body = "".join(f"    %{i + 1} = arith.addi %{i}, %{i} : tensor<128xi32>\n" for i in range(110000))
    long = f"module {{\n  tt.func private @f(%x: tensor<128xi32>) {{\n    %0 = arith.addi %x, %x : tensor<128xi32>\n{body}    tt.return\n  }}\n}}\n"
    assert min(len(many), len(long)) > 0.95 * (MEGABYTES << 20)
    judge_all(command, [("many functions", many.encode(), [0]), ("a long function", long.encode(), [0])])


def nested(command, _):
    """Regions, types and locations inside each other, up to what a person might try."""
    def loops(depth):
        inner = "tt.store %p, %c : !tt.ptr<i32>\n"
        for i in range(depth):
            inner = f"scf.for %i{i} = %c to %n step %n : i32 {{\n{inner}}}\n"
        head = "tt.func public @f(%p: !tt.ptr<i32>, %c: i32, %n: i32) {\n"
        return (head + inner + "tt.return\n}\n").encode()

    pointers = "!tt.ptr<" * 200 + "f32" + ">" * 200
    slices = "#ttg.slice<{dim = 0, parent = " * 100 + "#b" + "}>" * 100
    blocked = "#b = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>\n"
    judge_all(command, [
        ("20 loops", loops(20), [0]),
        ("300 loops", loops(300), [0]),
        ("200 pointers", f"tt.func private @f({pointers})".encode(), [1]),
        ("100 slices", f"{blocked}tt.func private @f(tensor<4xf32, {slices}>)".encode(), [1]),
        ("open regions", b"scf.if %c {\n" * 2000, [1]),
    ])


case, corpus, *command = sys.argv[1:]
globals()[case](command, pathlib.Path(corpus))
