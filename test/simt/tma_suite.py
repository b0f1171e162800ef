"""Kernels that access tensors through descriptors: generated TTIR, run on the simulator with tensor maps (cuda:90)
and with pointers (cuda:80), which must agree in every byte.

    tma_suite.py --ttsim TTSIM --ttc TTC --work DIR [--num-ctas N] [--mover] [NAME ...]

What copies cannot move is accessed through pointers on both targets; ttc says how often there are tensor maps. With --mover the targets
are hip:gfx1250, with tensor operations, and hip:gfx942, and indices are not negative.
"""
import array
import random
import struct
import sys

import suite

BYTES = {"f16": 2, "bf16": 2, "f32": 4, "f64": 8, "i8": 1, "i16": 2, "i32": 4, "i64": 8}
# Elements of blocks, by dimension: swizzled rows, rows cut into boxes, rows without swizzle, long columns.
SHAPES = [
    (64,), (512,), (16, 64), (64, 16), (8, 128), (4, 64), (1, 32), (32, 256), (512, 16), (2, 8, 32), (4, 1, 64),
    (2, 2, 4, 16), (1, 2, 2, 2, 16), (1, 64, 32), (64, 4),
]
NPY = {"f16": "<f2", "bf16": "<i2", "f32": "<f4", "f64": "<f8", "i8": "|i1", "i16": "<i2", "i32": "<i4", "i64": "<i8"}


def write_npy(path, dtype, shape, seed, first=0):
    """Small whole numbers from `first` on, which sums of all types hold."""
    count, r = 1, random.Random(seed)
    for n in shape:
        count *= n
    values = [r.randint(first, 15) for _ in range(count)]
    if dtype == "bf16":
        data = b"".join(struct.pack("<f", v)[2:] for v in values)
    else:
        data = struct.pack("<%d%s" % (count, {"f16": "e", "f32": "f", "f64": "d", "i8": "b", "i16": "h", "i32": "i", "i64": "q"}[dtype]), *values)
    head = "{'descr': '%s', 'fortran_order': False, 'shape': (%s,), }" % (NPY[dtype], ", ".join(map(str, shape)))
    head += " " * (-(len(head) + 11) % 64) + "\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + data)


class Kernel:
    """A kernel on two tensors `%a` and `%b` of sizes `%n0`, `%n1`, … and indices `%at` along all dimensions."""

    positive = False

    def __init__(self, dtype, shape):
        self.dtype, self.shape, self.lines, self.count = dtype, shape, [], 0
        self.rank, self.block = len(shape), "x".join(map(str, shape))
        self.tensor = f"tensor<{self.block}x{dtype}>"
        self.desc = f"!tt.tensordesc<{self.block}x{dtype}>"

    def add(self, text):
        self.count += 1
        self.lines.append(f"%v{self.count} = {text}")
        return f"%v{self.count}"

    def do(self, text):
        self.lines.append(text)

    def make(self, pointer, padding=""):
        sizes = [f"%n{d}" for d in range(self.rank)]
        strides = [self.add("arith.constant 1 : i64")]
        for d in range(self.rank - 1, 0, -1):
            wide = self.add(f"arith.extsi %n{d} : i32 to i64")
            strides.insert(0, self.add(f"arith.muli {wide}, {strides[0]} : i64"))
        return self.add(
            f"tt.make_tensor_descriptor {pointer}, [{', '.join(sizes)}], [{', '.join(strides)}]{padding} : "
            f"<{self.dtype}>, <{self.block}x{self.dtype}>"
        )

    def index(self, at):
        """Copies begin at multiples of 16 bytes."""
        return ", ".join([*at[:-1], self.add(f"arith.muli {at[-1]}, %unit : i32")])

    def load(self, desc, at):
        at = self.index(at)
        return self.add(f"tt.descriptor_load {desc}[{at}] : {self.desc} -> {self.tensor}")

    def store(self, desc, at, value):
        self.do(f"tt.descriptor_store {desc}[{self.index(at)}], {value} : {self.desc}, {self.tensor}")

    def sum(self, x, y):
        op = "arith.addf" if "f" in self.dtype else "arith.addi"
        return self.add(f"{op} {x}, {y} : {self.tensor}")

    def text(self, extra=""):
        sizes = "".join(f", %n{d}: i32" for d in range(self.rank))
        pointer = f"!tt.ptr<{self.dtype}> {{tt.divisibility = 16 : i32}}"
        body = "\n  ".join(self.lines)
        return (
            f"module {{\n{extra}tt.func public @k(%a: {pointer}, %b: {pointer}{sizes}, %given: i32) {{\n"
            f"  %zero = arith.constant 0 : i32\n  %one = arith.constant 1 : i32\n  %three = arith.constant 3 : i32\n"
            f"  %at = arith.{'maxsi %given, %zero' if self.positive else 'addi %given, %zero'} : i32\n"
            f"  %rows = arith.constant {self.shape[0]} : i32\n"
            f"  %unit = arith.constant {16 // BYTES[self.dtype]} : i32\n    {body}\n  tt.return\n}}\n}}\n"
        )


def copy(k):
    a, b = k.make("%a"), k.make("%b")
    k.store(b, ["%zero"] * k.rank, k.load(a, ["%at"] * k.rank))
    return k.text()


def shift(k):
    """Added to itself, and stored where a part lies outside."""
    a, b = k.make("%a"), k.make("%b")
    v = k.load(a, ["%zero"] * k.rank)
    k.store(b, ["%three"] * k.rank, k.sum(v, v))
    return k.text()


def fewer_dims(k):
    """Tensors without the leading dimension of the blocks, which has one element: stored as they came, and added up."""
    a, b = k.make("%a"), k.make("%b")
    whole, k.tensor = k.tensor, f"tensor<{k.block.removeprefix('1x')}x{k.dtype}>"
    v = k.load(a, ["%zero"] + ["%at"] * (k.rank - 1))
    k.store(b, ["%zero"] * k.rank, v)
    k.store(b, ["%one"] + ["%zero"] * (k.rank - 1), k.sum(v, v))
    k.tensor = whole
    return k.text()


def loop(k):
    """Two loads of each iteration wait together."""
    a, b = k.make("%a"), k.make("%b")
    zeros = "0.0" if "f" in k.dtype else "0"
    start = k.add(f"arith.constant dense<{zeros}> : {k.tensor}")
    k.do(f"%sum = scf.for %i = %zero to %three step %one iter_args(%c = {start}) -> ({k.tensor}) : i32 {{")
    x, y = k.load(a, ["%i"] * k.rank), k.load(a, ["%at"] + ["%i"] * (k.rank - 1))
    z = k.sum(k.sum("%c", x), y)
    k.do(f"scf.yield {z} : {k.tensor}\n  }}")
    k.store(b, ["%zero"] * k.rank, "%sum")
    return k.text()


def nested(k):
    """A barrier for each run of the inner loop; loads behind a condition."""
    a, b = k.make("%a"), k.make("%b")
    zeros = "0.0" if "f" in k.dtype else "0"
    start = k.add(f"arith.constant dense<{zeros}> : {k.tensor}")
    k.do(f"%outer = scf.for %i = %zero to %three step %one iter_args(%c = {start}) -> ({k.tensor}) : i32 {{")
    k.do(f"%inner = scf.for %j = %i to %three step %one iter_args(%d = %c) -> ({k.tensor}) : i32 {{")
    v = k.load(a, ["%i"] * (k.rank - 1) + ["%j"])
    even = k.add("arith.cmpi eq, %i, %j : i32")
    k.do(f"%x = scf.if {even} -> ({k.tensor}) {{")
    w = k.load(a, ["%j"] * k.rank)
    k.do(f"scf.yield {k.sum(v, w)} : {k.tensor}\n  }} else {{\n  scf.yield {v} : {k.tensor}\n  }}")
    k.do(f"scf.yield {k.sum('%d', '%x')} : {k.tensor}\n  }}")
    k.do(f"scf.yield %inner : {k.tensor}\n  }}")
    k.store(b, ["%zero"] * k.rank, "%outer")
    return k.text()


def made_in_loop(k):
    """One place for the tensor map of every iteration."""
    b = k.make("%b")
    k.do("scf.for %i = %zero to %three step %one : i32 {")
    p = k.add(f"tt.addptr %a, %zero : !tt.ptr<{k.dtype}>, i32")
    a = k.make(p)
    v = k.load(a, ["%i"] * k.rank)
    k.store(b, [k.add("arith.muli %i, %rows : i32")] + ["%zero"] * (k.rank - 1), v)
    k.do("}")
    return k.text()


def carried(k):
    """The descriptor of the last iteration: one place is not enough."""
    first, b = k.make("%a"), k.make("%b")
    k.do(f"%last = scf.for %i = %zero to %three step %one iter_args(%d = {first}) -> ({k.desc}) : i32 {{")
    v = k.load("%d", ["%i"] * k.rank)
    k.store(b, [k.add("arith.muli %i, %rows : i32")] + ["%zero"] * (k.rank - 1), v)
    next_one = k.make("%a")
    k.do(f"scf.yield {next_one} : {k.desc}\n  }}")
    return k.text()


def chosen(k):
    """Descriptors through select and through an if."""
    a, b = k.make("%a"), k.make("%b")
    c = k.add("arith.cmpi sgt, %at, %zero : i32")
    x = k.add(f"arith.select {c}, {a}, {b} : {k.desc}")
    k.do(f"%y = scf.if {c} -> ({k.desc}) {{")
    mine = k.make("%b")
    k.do(f"scf.yield {mine} : {k.desc}\n  }} else {{\n  scf.yield {a} : {k.desc}\n  }}")
    k.store("%y", ["%zero"] * k.rank, k.load(x, ["%at"] * k.rank))
    return k.text()


def called(k):
    """A function gets a descriptor and makes one."""
    inner = Kernel(k.dtype, k.shape)
    made = inner.make("%p")
    inner.store(made, ["%to"] + ["%nil"] * (k.rank - 1), inner.load("%d", ["%at"] * k.rank))
    sizes = "".join(f", %n{d}: i32" for d in range(k.rank))
    inner.lines.insert(0, "%nil = arith.constant 0 : i32")
    inner.lines.insert(0, f"%unit = arith.constant {16 // BYTES[k.dtype]} : i32")
    body = "\n  ".join(inner.lines)
    function = (
        f"tt.func private @f(%d: {k.desc}, %p: !tt.ptr<{k.dtype}>{sizes}, %at: i32, %to: i32) attributes {{noinline = true}} {{\n"
        f"  {body}\n  tt.return\n}}\n"
    )
    a = k.make("%a")
    names = "".join(f", %n{d}" for d in range(k.rank))
    types = ", i32" * k.rank
    for at in ("%zero", "%rows"):
        k.do(f"tt.call @f({a}, %b{names}, %at, {at}) : ({k.desc}, !tt.ptr<{k.dtype}>{types}, i32, i32) -> ()")
    return k.text(function)


def add_up(k):
    a, b = k.make("%a"), k.make("%b")
    v = k.load(a, ["%at"] * k.rank)
    for at in ("%zero", "%three"):
        k.do(f"tt.descriptor_reduce add, {b}[{k.index([at] * k.rank)}], {v} : {k.desc}, {k.tensor}")
    return k.text()


def reduced(k, kind):
    """Blocks that overlap, numbers of both signs in memory and in tensors."""
    a, b = k.make("%a"), k.make("%b")
    v = k.load(a, ["%at"] * k.rank)
    for at in ("%zero", "%three"):
        k.do(f"tt.descriptor_reduce {kind}, {b}[{k.index([at] * k.rank)}], {v} : {k.desc}, {k.tensor}")
    return k.text()


def least(k):
    return reduced(k, "min")


def greatest(k):
    return reduced(k, "max")


def nan(k):
    """Elements outside of the tensor are NaN."""
    a, b = k.make("%a", " {padding = 2 : i32}"), k.make("%b")
    k.store(b, ["%zero"] * k.rank, k.load(a, ["%at"] * k.rank))
    return k.text()


def rows_of(k, start):
    """Numbers of rows, each once, some of them before the tensor and after it."""
    m, n = k.shape
    vector = f"tensor<{m}xi32>"
    number = k.add(f"tt.make_range {{start = 0 : i32, end = {m} : i32}} : {vector}")
    for op, value in (("xori", 5), ("muli", 2), ("subi", start)):
        c = k.add(f"arith.constant dense<{value}> : {vector}")
        number = k.add(f"arith.{op} {number}, {c} : {vector}")
    return number


def make_rows(k, pointer):
    row = Kernel(k.dtype, (1, k.shape[1]))
    row.count, row.lines = k.count, k.lines
    made = row.make(pointer)
    k.count = row.count
    return made, row.desc


def gather_rows(k, desc, start, at):
    made, ty = desc
    rows, column = rows_of(k, start), k.add(f"arith.muli {at}, %unit : i32")
    return k.add(
        f"tt.descriptor_gather {made}[{rows}, {column}] : ({ty}, tensor<{k.shape[0]}xi32>, i32) -> {k.tensor}"
    )


def gather(k):
    """Rows one by one."""
    a, b = make_rows(k, "%a"), k.make("%b")
    k.store(b, ["%zero"] * 2, gather_rows(k, a, 2, "%at"))
    return k.text()


def gather_loop(k):
    """Rows and a block that wait together."""
    a, all_rows, b = make_rows(k, "%a"), k.make("%a"), k.make("%b")
    zeros = "0.0" if "f" in k.dtype else "0"
    start = k.add(f"arith.constant dense<{zeros}> : {k.tensor}")
    k.do(f"%sum = scf.for %i = %zero to %three step %one iter_args(%c = {start}) -> ({k.tensor}) : i32 {{")
    x, y = gather_rows(k, a, 1, "%i"), k.load(all_rows, ["%i"] * 2)
    z = k.sum(k.sum("%c", x), y)
    k.do(f"scf.yield {z} : {k.tensor}\n  }}")
    k.store(b, ["%zero"] * 2, "%sum")
    return k.text()


def scatter(k):
    """Rows to rows."""
    a, (b, ty) = k.make("%a"), make_rows(k, "%b")
    v, rows = k.load(a, ["%at"] * 2), rows_of(k, 4)
    k.do(f"tt.descriptor_scatter {b}[{rows}, %zero], {v} : {ty}, tensor<{k.shape[0]}xi32>, i32, {k.tensor}")
    return k.text()


def gather_scatter(k):
    """Descriptors of both uses, one also with blocks."""
    one = Kernel(k.dtype, (1, k.shape[1]))
    a, (b, ty) = make_rows(k, "%a"), make_rows(k, "%b")
    one.lines, one.count = k.lines, k.count
    one.store(b, ["%one", "%zero"], one.load(a[0], ["%three", "%one"]))
    k.count = one.count
    v, rows = gather_rows(k, a, 2, "%one"), rows_of(k, 0)
    k.do(f"tt.descriptor_scatter {b}[{rows}, %zero], {v} : {ty}, tensor<{k.shape[0]}xi32>, i32, {k.tensor}")
    return k.text()


ROWS = [gather, gather_loop, scatter, gather_scatter]
KINDS = [copy, shift, loop, nested, made_in_loop, carried, chosen, called, add_up, nan, *ROWS, fewer_dims, least, greatest]
EXTREMA = [least, greatest]


def cases(types):
    seen = set()
    for number, kind in enumerate(KINDS):
        for i, shape in enumerate(SHAPES):
            # Every kind and shape in a few types, which change.
            for j in range(types):
                dtype = list(BYTES)[(number + 3 * i + 5 * j) % len(BYTES)]
                if kind is add_up and dtype not in ("f16", "bf16", "f32", "i32", "i64") or kind is nan and "f" not in dtype:
                    dtype = "f16" if j else "f32"
                if kind in EXTREMA:
                    dtype = ("f16", "bf16", "f32", "f16", "f64", "bf16", "i32")[(number + i + j) % 7]
                if kind is fewer_dims and shape[0] != 1:
                    shape = (1, *shape)
                if kind in ROWS:
                    dtype = {"f64": "f32", "i64": "i32"}.get(dtype, dtype)
                    if len(shape) != 2 or shape[0] < 8 or shape[1] * BYTES[dtype] < 32:
                        continue
                # Only whole lines of 16 bytes follow each other in memory.
                size = [n + (2 if d + 1 < len(shape) else 16 // BYTES[dtype]) for d, n in enumerate(shape)]
                if kind in (made_in_loop, carried, called):
                    size[0] *= 3
                name = f"{kind.__name__}-{'x'.join(map(str, shape))}-{dtype}"
                if name not in seen:
                    seen.add(name)
                    yield name, kind, dtype, shape, size


def run(args, name, kind, dtype, shape, size):
    """(what is wrong or None, whether there are tensor maps)"""
    folder = args.work / name
    folder.mkdir(parents=True, exist_ok=True)
    source = folder / "k.ttir"
    source.write_text(kind(Kernel(dtype, shape)))
    for seed, what in ((1, "a"), (2, "b")):
        write_npy(folder / f"{what}.npy", dtype, size, seed, -15 if kind in EXTREMA else 0)
    maps, results = False, []
    at = 3 if len(shape) % 2 else -1
    arguments = [f"a={folder / 'a.npy'}", f"b={folder / 'b.npy'}", *size, at]
    # With tensor maps also where pointers are faster.
    mapped = folder / "k.ttgir"
    first, second = ("hip:gfx1250", "hip:gfx942") if args.mover else ("cuda:90", "cuda:80")
    compile = [args.ttc, source, "--target", first, "--num-ctas", args.num_ctas, "--all-tensor-maps"]
    wrong = suite.said([*compile, "--emit", "ttgir", "-o", mapped])
    if wrong:
        return f"{first}: {wrong}", maps
    maps = ("async_tdm_copy" if args.mover else "tensormap_create") in mapped.read_text()
    for target, text, blocks in ((first, mapped, args.num_ctas), (second, source, 1)):
        out = folder / target.replace(":", "")
        out.mkdir(exist_ok=True)
        wrong = suite.simulate(args, text, target, arguments, out, "--num-warps", 4, "--num-ctas", blocks)
        if wrong:
            return f"{target}: {wrong}", maps
        results.append(suite.raw(out / "b.npy"))
    if dtype in ("f16", "bf16", "f32", "f64") and kind is nan:
        results = [quiet(result, dtype) for result in results]
    return suite.difference("b", *results), maps


def quiet(data, dtype):
    """The elements, all NaNs alike."""
    if dtype == "bf16":
        return ["nan" if w & 0x7FFF > 0x7F80 else w for w in array.array("H", data)]
    count = len(data) // BYTES[dtype]
    values = struct.unpack(f"<{count}{dict(f16='e', f32='f', f64='d')[dtype]}", data)
    return ["nan" if v != v else v for v in values]


def main():
    parser = suite.parser(__doc__)
    parser.add_argument("--num-ctas", type=int, default=1, help="blocks that work on a program with tensor maps")
    parser.add_argument("--types", type=int, default=1, help="element types of each kind and shape")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--mover", action="store_true", help="tensor operations of gfx1250 in place of tensor maps")
    args = parser.parse_args()
    Kernel.positive = args.mover
    chosen_cases = [case for case in cases(args.types) if not args.names or any(name in case[0] for name in args.names)]
    results = suite.run_all(args, run, chosen_cases)
    counts = {}
    for case, (wrong, maps) in zip(chosen_cases, results):
        total, right, mapped = counts.get(case[1].__name__, (0, 0, 0))
        counts[case[1].__name__] = (total + 1, right + (wrong is None), mapped + maps)
        if wrong:
            print(f"WRONG {case[0]}: {wrong}")
    for kind, (total, right, mapped) in counts.items():
        print(f"{kind}: {right} of {total} right, {mapped} with {'tensor operations' if args.mover else 'tensor maps'}", flush=True)
    return 0 if all(total == right for total, right, _ in counts.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
