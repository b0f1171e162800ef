"""Atomic operations of every kind, type, order and scope: generated TTIR, compiled and run on the simulator.

    atomic_suite.py --ttsim TTSIM --data DIR

A kernel does one operation on one type in all orders and scopes: once on an address for each element, where what was
there is stored too, and once on an address for four elements, where only what is there in the end is defined. A mask
leaves elements out. Values are small integers, so that sums of floats are exact. Needs numpy and ml_dtypes.
"""
import itertools
import sys

import ml_dtypes
import numpy as np
import suite

ORDERS = list(itertools.product(["relaxed", "acquire", "release", "acq_rel"], ["gpu", "cta", "sys"]))
LOADS = [(sem, scope) for sem, scope in ORDERS if sem in ("relaxed", "acquire")]
STORES = [(sem, scope) for sem, scope in ORDERS if sem in ("relaxed", "release")]
INTEGERS = ["add", "and", "or", "xor", "max", "min", "umax", "umin", "exch"]
FLOATS = ["f16", "bf16", "f32", "f64"]
N = 64


def numpy_type(ty):
    if ty == "bf16":
        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype({"f": f"float{ty[1:]}", "i": f"int{ty[1:]}"}[ty[0]])


def combine(op, a, b):
    unsigned = lambda x: x & ((1 << 64) - 1)
    return {
        "add": lambda: a + b, "fadd": lambda: a + b, "and": lambda: a & b, "or": lambda: a | b, "xor": lambda: a ^ b,
        "max": lambda: max(a, b), "min": lambda: min(a, b), "exch": lambda: b,
        "umax": lambda: max(a, b, key=unsigned), "umin": lambda: min(a, b, key=unsigned),
    }[op]()


class Kernel:
    """Operations on tensors of N elements, each on N elements of memory after those of the one before."""

    def __init__(self, ty):
        self.ty, self.lines, self.n, self.memory, self.old = ty, [], 0, [], []
        self.ints = f"tensor<{N}xi32>"
        self.i = self.value(f"tt.make_range {{start = 0 : i32, end = {N} : i32}} : {self.ints}")
        # 5 i mod 13, less 6.
        five, thirteen, six = self.splat(5), self.splat(13), self.splat(6)
        x = self.value(f"arith.muli {self.i}, {five} : {self.ints}")
        x = self.value(f"arith.remsi {x}, {thirteen} : {self.ints}")
        self.x = self.cast(self.value(f"arith.subi {x}, {six} : {self.ints}"))
        # i mod 7, less 3.
        seven, three = self.splat(7), self.splat(3)
        y = self.value(f"arith.remsi {self.i}, {seven} : {self.ints}")
        self.y = self.cast(self.value(f"arith.subi {y}, {three} : {self.ints}"))
        self.mask = self.value(f"arith.cmpi ne, {y}, {three} : {self.ints}")
        self.four = self.value(f"arith.remsi {self.i}, {self.splat(16)} : {self.ints}")

    xs = [i * 5 % 13 - 6 for i in range(N)]
    ys = [i % 7 - 3 for i in range(N)]
    masked = [i % 7 != 3 for i in range(N)]

    def value(self, text):
        self.n += 1
        self.lines.append(f"  %{self.n} = {text}")
        return f"%{self.n}"

    def splat(self, number):
        return self.value(f"arith.constant dense<{number}> : {self.ints}")

    def cast(self, value):
        tensor = f"tensor<{N}x{self.ty}>"
        if self.ty == "i32":
            return value
        how = "sitofp" if "f" in self.ty else "extsi" if self.ty == "i64" else "trunci"
        return self.value(f"arith.{how} {value} : {self.ints} to {tensor}")

    def pointers(self, name, offsets):
        """Pointers to the next N elements; the elements that will be expected there."""
        memory = getattr(self, name)
        start = self.splat(N * len(memory))
        offset = self.value(f"arith.addi {start}, {offsets} : {self.ints}")
        base = self.value(f"tt.splat %{name} : !tt.ptr<{self.ty}> -> tensor<{N}x!tt.ptr<{self.ty}>>")
        memory.append([0] * N)
        ptr = self.value(f"tt.addptr {base}, {offset} : tensor<{N}x!tt.ptr<{self.ty}>>, {self.ints}")
        return ptr, memory[-1]

    def store(self, name, value, expected):
        ptr, memory = self.pointers(name, self.i)
        self.lines.append(f"  tt.store {ptr}, {value} : tensor<{N}x!tt.ptr<{self.ty}>>")
        memory[:] = expected

    def begin(self, offsets):
        """The next elements of the memory, with x in them."""
        ptr, memory = self.pointers("memory", self.i)
        self.lines.append(f"  tt.store {ptr}, {self.x} : tensor<{N}x!tt.ptr<{self.ty}>>")
        self.lines.append("  ttg.barrier all")
        memory[:] = self.xs
        if offsets is not self.i:
            self.memory.pop()
            ptr, again = self.pointers("memory", offsets)
            again[:] = memory
            memory = again
        return ptr, memory

    def types(self, *elements):
        return ", ".join(f"tensor<{N}x{element}>" for element in elements)

    def rmw(self, op, sem, scope):
        ty, ptr_ty = self.ty, f"!tt.ptr<{self.ty}>"
        for offsets in (self.i, self.four):
            # What four exchanges leave is not defined.
            if op == "exch" and offsets is self.four:
                continue
            ptr, memory = self.begin(offsets)
            types = f"({self.types(ptr_ty, ty, 'i1')}) -> {self.types(ty)}"
            old = self.value(f"tt.atomic_rmw {op}, {sem}, {scope}, {ptr}, {self.y}, {self.mask} : {types}")
            if offsets is self.i:
                kept = self.value(f"arith.select {self.mask}, {old}, {self.y} : {self.types('i1', ty)}")
                self.store("old", kept, [x if m else y for x, y, m in zip(self.xs, self.ys, self.masked)])
            for i in range(N):
                at = i if offsets is self.i else i % 16
                if self.masked[i]:
                    memory[at] = combine(op, memory[at], self.ys[i])

    def cas(self, sem, scope):
        ptr, memory = self.begin(self.i)
        types = f"({self.types('!tt.ptr<' + self.ty + '>', self.ty, self.ty)}) -> {self.types(self.ty)}"
        # Equal where 5 i mod 13 - 6 is i mod 7 - 3.
        old = self.value(f"tt.atomic_cas {sem}, {scope}, {ptr}, {self.y}, {self.y1()} : {types}")
        self.store("old", old, self.xs)
        memory[:] = [y + 1 if x == y else x for x, y in zip(self.xs, self.ys)]

    def y1(self):
        one = self.value(f"arith.constant dense<1> : {self.types(self.ty)}")
        return self.value(f"arith.addi {self.y}, {one} : {self.types(self.ty)}")

    def load(self, sem, scope):
        ptr, _ = self.begin(self.i)
        got = self.value(f"tt.atomic_load {sem}, {scope}, {ptr} : ({self.types('!tt.ptr<' + self.ty + '>')}) -> {self.types(self.ty)}")
        self.store("old", got, self.xs)

    def write(self, sem, scope):
        ptr, memory = self.begin(self.i)
        self.lines.append(f"  tt.atomic_store {sem}, {scope}, {ptr}, {self.y} : {self.types('!tt.ptr<' + self.ty + '>')}")
        memory[:] = self.ys

    def text(self):
        body = "\n".join(self.lines)
        return f"tt.func public @k(%memory: !tt.ptr<{self.ty}>, %old: !tt.ptr<{self.ty}>) {{\n{body}\n  tt.return\n}}\n"


def cases():
    """(name, type, what to do with the kernel)"""
    for ty in ["i32", "i64"]:
        for op in INTEGERS:
            yield f"{op}-{ty}", ty, lambda k, op=op: [k.rmw(op, *order) for order in ORDERS]
    for ty in FLOATS:
        yield f"fadd-{ty}", ty, lambda k: [k.rmw("fadd", *order) for order in ORDERS]
    for ty in ["i16", "i32", "i64"]:
        yield f"cas-{ty}", ty, lambda k: [k.cas(*order) for order in ORDERS]
    for ty in ["i8", "i16", "i32", "i64", "f16", "bf16", "f32", "f64"]:
        yield f"load-{ty}", ty, lambda k: [k.load(*order) for order in LOADS]
        yield f"store-{ty}", ty, lambda k: [k.write(*order) for order in STORES]


def run(args, target, case):
    """What is wrong, or None."""
    name, ty, fill = case
    kernel = Kernel(ty)
    fill(kernel)
    folder = args.work / target.replace(":", "") / name
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "k.ttir"
    path.write_text(kernel.text())
    dtype = numpy_type(ty)
    names = ("memory", "old")
    sizes = {n: N * max(len(getattr(kernel, n)), 1) for n in names}
    arguments = [f"{n}=i{8 * dtype.itemsize}[{size}]" for n, size in sizes.items()]
    wrong = suite.simulate(args, path, target, arguments, folder)
    for n in names:
        if not wrong:
            want = np.array(getattr(kernel, n), dtype=np.int64).ravel().astype(dtype)
            got = np.load(folder / f"{n}.npy").view(dtype)[: len(want)]
            wrong = suite.difference(n, got, want)
    return wrong


def main():
    parser = suite.parser(__doc__)
    parser.add_argument("--targets", default="cuda:80,cuda:90")
    args = parser.parse_args()
    all_cases = list(itertools.product(args.targets.split(","), list(cases())))
    results = suite.run_all(args, run, all_cases)
    for (target, case), wrong in zip(all_cases, results):
        if wrong:
            print(f"WRONG {case[0]}, {target}: {wrong}")
    right = sum(wrong is None for wrong in results)
    print(f"{right} of {len(results)} kernels right")
    return 0 if right == len(results) else 1


if __name__ == "__main__":
    sys.exit(main())
