"""Dots of 4-bit and 8-bit floats (E2M1, E4M3, E5M2) with scales (E8M0), run on the simulator.

    mxfp4.py --ttsim TTSIM --work DIR [--targets hip:gfx950,hip:gfx942,hip:gfx1250] [--mixed]

A kernel loads both operands and their scales, multiplies and stores. Elements of 4 bits are two in a byte, which follow each
other along K; with `--mixed` one operand has them and the other has 8 bits, or they follow each other along M or N. Elements and scales are such that sums are exact in 32 bits. Needs numpy.
"""
import itertools

import numpy as np
import suite

# OCP Microscaling Formats, E2M1: without the sign.
E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])
SHAPES = [(32, 32, 64), (16, 16, 128), (64, 64, 256), (128, 64, 128), (32, 128, 512), (16, 64, 64)]
SCALES = ["both", "left", "right", "none"]
# Formats of both sides; those with an `x` have pairs along M or N.
MIXED = [("e2m1", "e4m3"), ("e4m3", "e2m1"), ("e2m1", "e5m2"), ("e5m2", "e2m1"), ("e2m1x", "e4m3"), ("e4m3", "e2m1x"),
         ("e2m1x", "e2m1"), ("e2m1x", "e2m1x")]
PAIRS = ("e2m1", "e2m1")


def index(name, rows, columns, stride_row, stride_column):
    """Lines that make the tensor %name of pointers to %name.base, elements at (r, c)."""
    shape = f"{rows}x{columns}"
    column, row, whole = f"tensor<{rows}x1x", f"tensor<1x{columns}x", f"tensor<{shape}x"
    return f"""
  %{name}.r0 = tt.make_range {{start = 0 : i32, end = {rows} : i32}} : tensor<{rows}xi32>
  %{name}.r1 = tt.expand_dims %{name}.r0 {{axis = 1 : i32}} : tensor<{rows}xi32> -> {column}i32>
  %{name}.rs = arith.constant dense<{stride_row}> : {column}i32>
  %{name}.r2 = arith.muli %{name}.r1, %{name}.rs : {column}i32>
  %{name}.r = tt.broadcast %{name}.r2 : {column}i32> -> {whole}i32>
  %{name}.c0 = tt.make_range {{start = 0 : i32, end = {columns} : i32}} : tensor<{columns}xi32>
  %{name}.c1 = tt.expand_dims %{name}.c0 {{axis = 0 : i32}} : tensor<{columns}xi32> -> {row}i32>
  %{name}.cs = arith.constant dense<{stride_column}> : {row}i32>
  %{name}.c2 = arith.muli %{name}.c1, %{name}.cs : {row}i32>
  %{name}.c = tt.broadcast %{name}.c2 : {row}i32> -> {whole}i32>
  %{name}.o = arith.addi %{name}.r, %{name}.c : {whole}i32>"""


def pointers(name, base, element, shape):
    return f"""
  %{name}.s = tt.splat %{base} : !tt.ptr<{element}> -> tensor<{shape}x!tt.ptr<{element}>>
  %{name}.p = tt.addptr %{name}.s, %{name}.o : tensor<{shape}x!tt.ptr<{element}>>, tensor<{shape}xi32>"""


def loaded(name, base, rows, columns, strides):
    shape = f"{rows}x{columns}"
    load = f"\n  %{name} = tt.load %{name}.p : tensor<{shape}x!tt.ptr<i8>>"
    return index(name, rows, columns, *strides) + pointers(name, base, "i8", shape) + load


def stored(size, k, form):
    """Rows (columns) and elements along K of a side's bytes."""
    return {"e2m1": (size, k // 2), "e2m1x": (size // 2, k)}.get(form, (size, k))


def kernel(m, n, k, scales, forms):
    blocks = k // 32
    left, right = scales in ("both", "left"), scales in ("both", "right")
    (rows, wide), (columns, high) = stored(m, k, forms[0]), stored(n, k, forms[1])
    text = loaded("a", "pa", rows, wide, (wide, 1)) + loaded("b", "pb", high, columns, (1, high))
    text += loaded("x", "px", m, blocks, (blocks, 1)) if left else ""
    text += loaded("y", "py", n, blocks, (blocks, 1)) if right else ""
    a, b = (" scale %x" if left else ""), (" scale %y" if right else "")
    ta = f"tensor<{rows}x{wide}xi8>" + (f", tensor<{m}x{blocks}xi8>" if left else "")
    tb = f"tensor<{high}x{columns}xi8>" + (f", tensor<{n}x{blocks}xi8>" if right else "")
    attrs = "fastMath = false" + "".join(
        f", {side}_k_pack = false" for side, form in zip(("lhs", "rhs"), forms) if form == "e2m1x")
    lhs, rhs = (form[:4] for form in forms)
    arguments = ", ".join(f"%p{name}: !tt.ptr<i8> {{tt.divisibility = 16 : i32}}" for name in "abxy")
    return f"""module {{
tt.func public @k({arguments}, %pd: !tt.ptr<f32> {{tt.divisibility = 16 : i32}}) {{{text}
  %zero = arith.constant dense<0.0> : tensor<{m}x{n}xf32>
  %d = tt.dot_scaled %a{a}, %b{b}, %zero lhs = {lhs} rhs = {rhs} {{{attrs}}} : {ta} * {tb} -> tensor<{m}x{n}xf32>{index("d", m, n, n, 1)}{pointers("d", "pd", "f32", f"{m}x{n}")}
  tt.store %d.p, %d : tensor<{m}x{n}x!tt.ptr<f32>>
  tt.return
}}
}}
"""


def numbers(codes):
    """The elements of bytes, along the last dimension."""
    halves = np.stack([codes & 15, codes >> 4], axis=-1).reshape(*codes.shape[:-1], -1)
    return np.where(halves & 8, -1.0, 1.0) * E2M1[halves & 7]


def elements(codes, form):
    """The elements of a side's bytes, rows (columns) by K."""
    if form == "e2m1":
        return numbers(codes)
    if form == "e2m1x":
        return numbers(codes.T).T
    mantissa = {"e4m3": 3, "e5m2": 2}[form]
    bias = 2 ** (6 - mantissa) - 1
    size = (2 ** mantissa + (codes & 2 ** mantissa - 1)) * 2.0 ** ((codes >> mantissa & 127 >> mantissa).astype(float) - bias - mantissa)
    return np.where(codes & 128, -size, size)


def bytes_of(random, size, k, form):
    """Bytes of a side; those of 8 bits have one of three exponents next to that of one."""
    codes = random.integers(0, 256, stored(size, k, form))
    if form.startswith("e2m1"):
        return codes
    mantissa = {"e4m3": 3, "e5m2": 2}[form]
    exponents = random.integers(-1, 2, codes.shape) + 2 ** (6 - mantissa) - 1
    return codes & ~(127 >> mantissa << mantissa) | exponents << mantissa


def run(args, target, shape, scales, warps, forms=PAIRS):
    m, n, k = shape
    random = np.random.default_rng(m * n + k + warps)
    folder = args.work / f"{target}_{m}_{n}_{k}_{scales}_{warps}_{forms[0]}_{forms[1]}".replace(":", "_")
    folder.mkdir(parents=True, exist_ok=True)
    data = {"pa": bytes_of(random, m, k, forms[0]), "pb": bytes_of(random, n, k, forms[1])}
    near = (124, 131) if forms == PAIRS else (126, 129)
    data |= {"px": random.integers(*near, (m, k // 32)), "py": random.integers(*near, (n, k // 32))}
    data = {name: values.astype("u1") for name, values in data.items()}
    for name, values in data.items():
        np.save(folder / f"{name}.npy", values.reshape(-1).view("i1"))
    a, b = elements(data["pa"], forms[0]), elements(data["pb"], forms[1])
    if scales in ("both", "left"):
        a = a * np.repeat(2.0 ** (data["px"].astype(float) - 127), 32, axis=1)
    if scales in ("both", "right"):
        b = b * np.repeat(2.0 ** (data["py"].astype(float) - 127), 32, axis=1)
    (folder / "k.ttir").write_text(kernel(m, n, k, scales, forms))
    arguments = [f"{name}={folder / name}.npy" for name in data] + [f"pd=f32[{m * n}]"]
    wrong = suite.simulate(args, folder / "k.ttir", target, arguments, folder, "--num-warps", warps)
    if wrong:
        return wrong
    got = np.frombuffer(suite.raw(folder / "pd.npy"), "<f4").reshape(m, n)
    return suite.difference(f"{folder.name}", got.reshape(-1), (a @ b.T).reshape(-1))


def main():
    parser = suite.parser(__doc__)
    parser.add_argument("--targets", default="hip:gfx950,hip:gfx942,hip:gfx1250")
    parser.add_argument("--mixed", action="store_true")
    args = parser.parse_args()
    some = [SHAPES[1], SHAPES[2], SHAPES[5], (16, 32, 32)]
    axes = (some, ["both", "right", "none"], [4], MIXED) if args.mixed else (SHAPES, SCALES, [1, 4], [PAIRS])
    cases = list(itertools.product(args.targets.split(","), *axes))
    found = suite.run_all(args, run, cases)
    for wrong in filter(None, found):
        print(wrong)
    print(f"{found.count(None)} of {len(cases)} dots right")


main()
