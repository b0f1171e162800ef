"""Dots of 4-bit floats (E2M1) with scales (E8M0), run on the simulator.

    mxfp4.py --ttsim TTSIM --work DIR [--targets hip:gfx950,hip:gfx942]

A kernel loads both operands, bytes of two elements that follow each other along K, and their scales, multiplies and
stores. Elements and scales are such that sums are exact in 32 bits. Needs numpy.
"""
import itertools

import numpy as np
import suite

# OCP Microscaling Formats, E2M1: without the sign.
E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])
SHAPES = [(32, 32, 64), (16, 16, 128), (64, 64, 256), (128, 64, 128), (32, 128, 512), (16, 64, 64)]
SCALES = ["both", "left", "right", "none"]


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


def kernel(m, n, k, scales):
    pairs, blocks = k // 2, k // 32
    left, right = scales in ("both", "left"), scales in ("both", "right")
    text = loaded("a", "pa", m, pairs, (pairs, 1)) + loaded("b", "pb", pairs, n, (1, pairs))
    text += loaded("x", "px", m, blocks, (blocks, 1)) if left else ""
    text += loaded("y", "py", n, blocks, (blocks, 1)) if right else ""
    a, b = (" scale %x" if left else ""), (" scale %y" if right else "")
    ta = f"tensor<{m}x{pairs}xi8>" + (f", tensor<{m}x{blocks}xi8>" if left else "")
    tb = f"tensor<{pairs}x{n}xi8>" + (f", tensor<{n}x{blocks}xi8>" if right else "")
    arguments = ", ".join(f"%p{name}: !tt.ptr<i8> {{tt.divisibility = 16 : i32}}" for name in "abxy")
    return f"""module {{
tt.func public @k({arguments}, %pd: !tt.ptr<f32> {{tt.divisibility = 16 : i32}}) {{{text}
  %zero = arith.constant dense<0.0> : tensor<{m}x{n}xf32>
  %d = tt.dot_scaled %a{a}, %b{b}, %zero lhs = e2m1 rhs = e2m1 {{fastMath = false}} : {ta} * {tb} -> tensor<{m}x{n}xf32>{index("d", m, n, n, 1)}{pointers("d", "pd", "f32", f"{m}x{n}")}
  tt.store %d.p, %d : tensor<{m}x{n}x!tt.ptr<f32>>
  tt.return
}}
}}
"""


def numbers(codes):
    """The elements of bytes, along the last dimension."""
    halves = np.stack([codes & 15, codes >> 4], axis=-1).reshape(*codes.shape[:-1], -1)
    return np.where(halves & 8, -1.0, 1.0) * E2M1[halves & 7]


def run(args, target, shape, scales, warps):
    m, n, k = shape
    random = np.random.default_rng(m * n + k + warps)
    folder = args.work / f"{target}_{m}_{n}_{k}_{scales}_{warps}".replace(":", "_")
    folder.mkdir(parents=True, exist_ok=True)
    data = {"pa": random.integers(0, 256, (m, k // 2)), "pb": random.integers(0, 256, (n, k // 2))}
    data |= {"px": random.integers(124, 131, (m, k // 32)), "py": random.integers(124, 131, (n, k // 32))}
    data = {name: values.astype("u1") for name, values in data.items()}
    for name, values in data.items():
        np.save(folder / f"{name}.npy", values.reshape(-1).view("i1"))
    a, b = numbers(data["pa"]), numbers(data["pb"])
    if scales in ("both", "left"):
        a = a * np.repeat(2.0 ** (data["px"].astype(float) - 127), 32, axis=1)
    if scales in ("both", "right"):
        b = b * np.repeat(2.0 ** (data["py"].astype(float) - 127), 32, axis=1)
    (folder / "k.ttir").write_text(kernel(m, n, k, scales))
    arguments = [f"{name}={folder / name}.npy" for name in data] + [f"pd=f32[{m * n}]"]
    wrong = suite.simulate(args, folder / "k.ttir", target, arguments, folder, "--num-warps", warps)
    if wrong:
        return wrong
    got = np.frombuffer(suite.raw(folder / "pd.npy"), "<f4").reshape(m, n)
    return suite.difference(f"{folder.name}", got.reshape(-1), (a @ b.T).reshape(-1))


def main():
    parser = suite.parser(__doc__)
    parser.add_argument("--targets", default="hip:gfx950,hip:gfx942")
    args = parser.parse_args()
    cases = list(itertools.product(args.targets.split(","), SHAPES, SCALES, [1, 4]))
    found = suite.run_all(args, run, cases)
    for wrong in filter(None, found):
        print(wrong)
    print(f"{found.count(None)} of {len(cases)} dots right")


main()
