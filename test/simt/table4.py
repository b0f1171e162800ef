"""The pairs of types of Table 4 of the Linear Layouts paper times small shapes, 784 products, run on the simulator.

    table4.py --ttsim TTSIM --data DIR [--targets cuda:80,cuda:90] [--layouts]

A kernel computes the products of one pair of types: it loads both operands, converts them to the type in which they
are multiplied, multiplies and stores. Elements are small integers, so that results are exact. With --layouts the
kernels are TTGIR whose operands are loaded in the layouts of matrix instructions; otherwise they are TTIR. Needs numpy.
"""
import itertools
import sys

import numpy as np
import suite

# Pairs of types with the number of cases of each in Table 4.
PAIRS = [
    ("i16", "f16", 64), ("i16", "f32", 32), ("i16", "f64", 32), ("i16", "f8", 96), ("i32", "f16", 32),
    ("i32", "f64", 32), ("i32", "f8", 48), ("i64", "f16", 32), ("i64", "f32", 32), ("i64", "f8", 48),
    ("i8", "f16", 96), ("i8", "f32", 48), ("i8", "f64", 48), ("i8", "f8", 144),
]
# The formats of a width.
FORMATS = {"f16": ["f16", "bf16"], "f8": ["f8E4M3FN", "f8E5M2", "f8E4M3FNUZ"], "f32": ["f32"], "f64": ["f64"]}
SHAPES = list(itertools.product([16, 32, 64, 8], [8, 16, 64, 32], [16, 32, 64, 8, 4, 2]))
MMA = "#ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>"
MFMA_VERSIONS = {"hip:gfx90a": 2, "hip:gfx942": 3}
MFMA = (
    "#ttg.amd_mfma<{version = %d, warpsPerCTA = [2, 2], instrShape = [16, 16, %d], isTransposed = true%s}>"
)
MMA64 = "#ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [8, 8]}>"


def width(ty):
    """Bits of an element."""
    return 8 if ty.startswith("f8") else int(ty.lstrip("ifb"))


def encode(values, ty):
    """Small integers as the bits of elements of a type."""
    if ty[0] == "i":
        return values.astype(f"<i{width(ty) // 8}")
    if ty in ("f16", "f32", "f64"):
        return values.astype(f"<f{width(ty) // 8}")
    if ty == "bf16":
        return (values.astype("<f4").view("<u4") >> 16).astype("<u2")
    mantissa, bias = {"f8E4M3FN": (3, 7), "f8E5M2": (2, 15), "f8E4M3FNUZ": (3, 8)}[ty]
    magnitude = np.abs(values).astype("<f4")
    exponent = np.floor(np.log2(np.maximum(magnitude, 1)))
    fraction = (magnitude / 2**exponent - 1) * 2**mantissa
    bits = ((exponent + bias) * 2**mantissa + fraction).astype("u1")
    return np.where(values == 0, 0, bits | (values < 0).astype("u1") << 7).astype("u1")


class Kernel:
    """The products of operands of two types."""

    def __init__(self, a, b, layouts, target):
        self.a, self.b, self.layouts = a, b, layouts
        self.common = "f16" if b.startswith("f8") else b
        self.result = "f64" if b == "f64" else "f32"
        if target in MFMA_VERSIONS:
            # Four lanes along K, with so many elements each.
            k_width = {"f32": 1, "f64": 1}.get(self.common, 4)
            bits = ", elementBitWidth = 64" if b == "f64" else ""
            parent = MFMA % (MFMA_VERSIONS[target], 4 * k_width, bits)
        else:
            parent = MMA64 if b == "f64" else MMA
            k_width = max(1, 32 // min(width(a), width(b))) if b != "f64" else 1
        self.lanes = 64 if target in MFMA_VERSIONS else 32
        self.parent = parent
        operand = f"#ttg.dot_op<{{opIdx = %d, parent = {parent}, kWidth = {k_width}}}>"
        self.encodings = {"a": operand % 0, "b": operand % 1, "c": parent}
        self.lines, self.n, self.sizes = [], 0, {"a": 0, "b": 0, "c": 0}

    def value(self, text):
        self.n += 1
        self.lines.append(f"  %{self.n} = {text}")
        return f"%{self.n}"

    def pointers(self, side, shape, element):
        """Pointers to the elements of a matrix, which follows those before it."""
        encoding = self.encodings[side]

        def ty(shape, what, dim=None):
            layout = encoding if dim is None else f"#ttg.slice<{{dim = {dim}, parent = {encoding}}}>"
            return f"tensor<{shape}x{what}{', ' + layout if self.layouts else ''}>"

        rows, columns = shape
        size = f"{rows}x{columns}"
        r = self.value(f"tt.make_range {{end = {rows} : i32, start = 0 : i32}} : {ty(rows, 'i32', 1)}")
        r = self.value(f"tt.expand_dims {r} {{axis = 1 : i32}} : {ty(rows, 'i32', 1)} -> {ty(f'{rows}x1', 'i32')}")
        stride = self.value(f"arith.constant dense<{columns}> : {ty(f'{rows}x1', 'i32')}")
        r = self.value(f"arith.muli {r}, {stride} : {ty(f'{rows}x1', 'i32')}")
        r = self.value(f"tt.broadcast {r} : {ty(f'{rows}x1', 'i32')} -> {ty(size, 'i32')}")
        c = self.value(f"tt.make_range {{end = {columns} : i32, start = 0 : i32}} : {ty(columns, 'i32', 0)}")
        c = self.value(f"tt.expand_dims {c} {{axis = 0 : i32}} : {ty(columns, 'i32', 0)} -> {ty(f'1x{columns}', 'i32')}")
        c = self.value(f"tt.broadcast {c} : {ty(f'1x{columns}', 'i32')} -> {ty(size, 'i32')}")
        offset = self.value(f"arith.addi {r}, {c} : {ty(size, 'i32')}")
        start = self.value(f"arith.constant {self.sizes[side]} : i32")
        base = self.value(f"tt.addptr %{side}, {start} : !tt.ptr<{element}>, i32")
        base = self.value(f"tt.splat {base} : !tt.ptr<{element}> -> {ty(size, f'!tt.ptr<{element}>')}")
        pointers = self.value(f"tt.addptr {base}, {offset} : {ty(size, f'!tt.ptr<{element}>')}, {ty(size, 'i32')}")
        self.sizes[side] += rows * columns
        return pointers, ty(size, f"!tt.ptr<{element}>"), lambda what: ty(size, what)

    def operand(self, side, shape, element):
        pointers, pointer_type, ty = self.pointers(side, shape, element)
        loaded = self.value(f"tt.load {pointers} : {pointer_type}")
        if element == self.common:
            return loaded, ty(element)
        if element.startswith("f8"):
            cast = f"tt.fp_to_fp {loaded} : {ty(element)} -> {ty(self.common)}"
        else:
            cast = f"arith.sitofp {loaded} : {ty(element)} to {ty(self.common)}"
        return self.value(cast), ty(self.common)

    def product(self, m, n, k):
        a, a_type = self.operand("a", (m, k), self.a)
        b, b_type = self.operand("b", (k, n), self.b)
        pointers, pointer_type, ty = self.pointers("c", (m, n), self.result)
        zero = self.value(f"arith.constant dense<{'0' if self.result[0] == 'i' else '0.0'}> : {ty(self.result)}")
        precision = ", inputPrecision = tf32" if self.common == "f32" else ""
        d = self.value(f"tt.dot {a}, {b}, {zero}{precision} : {a_type} * {b_type} -> {ty(self.result)}")
        self.lines.append(f"  tt.store {pointers}, {d} : {pointer_type}")

    def text(self, target):
        args = ", ".join(
            f"%{side}: !tt.ptr<{ty}> {{tt.divisibility = 16 : i32}}"
            for side, ty in [("a", self.a), ("b", self.b), ("c", self.result)]
        )
        body = "\n".join(self.lines)
        attributes = (
            f'attributes {{"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "{target}", '
            f'"ttg.threads-per-warp" = {self.lanes} : i32}} '
            if self.layouts
            else ""
        )
        return f"module {attributes}{{\ntt.func public @products({args}) {{\n{body}\n  tt.return\n}}\n}}\n"


def run(args, pair, shapes, target, kernel=Kernel):
    """Descriptions of the cases of a pair that fail."""
    a, b = pair
    kernel = kernel(a, b, args.layouts, target)
    for m, n, k in shapes:
        kernel.product(m, n, k)
    folder = args.work / f"{a}-{b}-{target.replace(':', '')}"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / ("kernel.ttgir" if args.layouts else "kernel.ttir")
    path.write_text(kernel.text(target))
    rng = np.random.default_rng(4)
    left, right, expected = [], [], []
    for m, n, k in shapes:
        x, y = rng.integers(-7, 8, (m, k)), rng.integers(-7, 8, (k, n))
        left.append(x.ravel())
        right.append(y.ravel())
        expected.append((x @ y).ravel())
    np.save(folder / "a.npy", encode(np.concatenate(left), a))
    np.save(folder / "b.npy", encode(np.concatenate(right), b))
    size = sum(len(c) for c in expected)
    arguments = [folder / "a.npy", folder / "b.npy", f"c={kernel.result}[{size}]"]
    wrong = suite.simulate(args, path, target, arguments, folder)
    if wrong:
        return [f"{a} {b} {shape} {target}: {wrong}" for shape in shapes]
    got, at, failed = np.load(folder / "c.npy"), 0, []
    for shape, want in zip(shapes, expected):
        wrong = suite.difference("c", got[at : at + len(want)], want)
        if wrong:
            failed.append(f"{a} {b} {shape} {target}: {wrong}")
        at += len(want)
    return failed


def main():
    parser = suite.parser(__doc__)
    parser.add_argument("--targets", default="cuda:80,cuda:90")
    parser.add_argument("--layouts", action="store_true")
    args = parser.parse_args()
    targets = args.targets.split(",")
    jobs, count = [], 0
    for a, width_b, cases in PAIRS:
        formats = FORMATS[width_b]
        for i, b in enumerate(formats):
            # The cases of a format: other shapes for each, on one target after the other.
            numbers = range(i * (cases // len(formats)), (i + 1) * (cases // len(formats)))
            for t, target in enumerate(targets):
                shapes = [SHAPES[number % len(SHAPES)] for number in numbers if number % len(targets) == t]
                if shapes:
                    jobs.append(((a, b), shapes, target))
                    count += len(shapes)
    failed = [line for lines in suite.run_all(args, run, jobs) for line in lines]
    print("\n".join(failed[:20]))
    print(f"{count - len(failed)} of {count} dots right")
    return 1 if failed or not count else 0


if __name__ == "__main__":
    sys.exit(main())
