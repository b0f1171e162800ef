"""Loops with software pipelines: generated TTIR, run on the simulator with all checks on, must give the same bytes as
without a pipeline.

    pipeline_suite.py --ttsim TTSIM --ttc TTC --work DIR [--targets cuda:80,cuda:90] [--count N] [--seed N]
                      [--tile M,N,K] [--warps N] [NAME ...]

Named loops are what users of software pipelines have reported, or what could go wrong with them; `random` are COUNT loops
of any shape, `nests` COUNT loops over tiles with such loops in them. Each runs for several trip counts, none included.
"""
import random
import sys

import suite
from tma_suite import write_npy

# Trip counts, by turns for the targets.
TRIPS = ((0, 2, 7), (1, 3, 8))
# Of recurrences one iteration of a loop may be eight of the program: two of these, and five that are left.
UNROLLED_TRIPS = (21,)


class Loop:
    """A kernel that adds up f32[M, N] in a loop of `%n` iterations."""

    def __init__(self, r=None, m=64, n=32, k=32):
        self.r, self.m, self.n, self.k = r or random.Random(0), m, n, k
        self.before, self.body, self.count = [], [], 0
        # iter_args: name, type, first value, next value.
        self.args = []
        self.attrs = ""
        self.bounds = ("%zero", "%n", "%one")
        self.stores = []

    def name(self):
        self.count += 1
        return f"%v{self.count}"

    def pre(self, text):
        v = self.name()
        self.before.append(f"{v} = {text}")
        return v

    def add(self, text):
        v = self.name()
        self.body.append(f"{v} = {text}")
        return v

    def do(self, text):
        self.body.append(text)

    def arg(self, ty, first, make):
        """An iter_arg; `make(value)` gives its next value, in the loop."""
        v = self.name()
        entry = [v, ty, first, None]
        self.args.append(entry)
        entry[3] = make(v)
        return v

    def offsets(self, rows, columns, pitch):
        """row * pitch + column"""
        t, e = f"tensor<{rows}x{columns}xi32>", self.pre
        r = e(f"tt.make_range {{end = {rows} : i32, start = 0 : i32}} : tensor<{rows}xi32>")
        c = e(f"tt.make_range {{end = {columns} : i32, start = 0 : i32}} : tensor<{columns}xi32>")
        r = e(f"tt.expand_dims {r} {{axis = 1 : i32}} : tensor<{rows}xi32> -> tensor<{rows}x1xi32>")
        c = e(f"tt.expand_dims {c} {{axis = 0 : i32}} : tensor<{columns}xi32> -> tensor<1x{columns}xi32>")
        p = e(f"arith.constant dense<{pitch}> : tensor<{rows}x1xi32>")
        r = e(f"arith.muli {r}, {p} : tensor<{rows}x1xi32>")
        r = e(f"tt.broadcast {r} : tensor<{rows}x1xi32> -> {t}")
        c = e(f"tt.broadcast {c} : tensor<1x{columns}xi32> -> {t}")
        return e(f"arith.addi {r}, {c} : {t}"), t

    def pointers(self, base, rows, columns, pitch, element):
        at, t = self.offsets(rows, columns, pitch)
        p = f"tensor<{rows}x{columns}x!tt.ptr<{element}>>"
        s = self.pre(f"tt.splat {base} : !tt.ptr<{element}> -> {p}")
        return self.pre(f"tt.addptr {s}, {at} : {p}, {t}"), p, t

    def moved(self, pointers, p, t, offset):
        """Pointers that are a scalar further, in the loop."""
        s = self.add(f"tt.splat {offset} : i32 -> {t}")
        return self.add(f"tt.addptr {pointers}, {s} : {p}, {t}")

    def load(self, base, rows, columns, element="f16", how="counter", mask=False, other=False):
        """A tile that moves with the iterations."""
        tile = f"tensor<{rows}x{columns}x{element}>"
        if how in ("descriptor", "described_here", "slab"):
            return self.described(base, rows, columns, element, how), tile
        p0, p, t = self.pointers(base, rows, columns, columns, element)
        if how == "carried":
            step = self.pre(f"arith.constant dense<{rows * columns}> : {t}")
            at = self.arg(p, p0, lambda v: self.add(f"tt.addptr {v}, {step} : {p}, {t}"))
        else:
            size = self.pre(f"arith.constant {rows * columns} : i32")
            i = "%i"
            if how == "divided":
                three = self.pre("arith.constant 3 : i32")
                i = self.add(f"arith.muli %i, {three} : i32")
                i = self.add(f"arith.divsi {i}, %divisor : i32")
                i = self.add(f"arith.remsi {i}, %limit : i32")
            if how in ("indirect", "twice"):
                for _ in range(2 if how == "twice" else 1):
                    q = self.add(f"tt.addptr %index, {i} : !tt.ptr<i32>, i32")
                    i = self.add(f"tt.load {q} : !tt.ptr<i32>")
            offset = self.add(f"arith.muli {i}, {size} : i32")
            at = self.moved(p0, p, t, offset)
        extra = ""
        if mask:
            at0, _ = self.offsets(rows, columns, columns)
            limit = self.add("arith.muli %i, %divisor : i32")
            limit = self.add(f"arith.addi {limit}, %limit : i32")
            limit = self.add(f"arith.muli {limit}, %eight : i32")
            limit = self.add(f"tt.splat {limit} : i32 -> {t}")
            m = self.add(f"arith.cmpi slt, {at0}, {limit} : {t}")
            extra = f", {m}"
            if other:
                value = ("1" if element[0] == "i" else "1.0") if other == "one" else ("0" if element[0] == "i" else "0.0")
                o = self.pre(f"arith.constant dense<{value}> : {tile}")
                extra += f", {o}"
        return self.add(f"tt.load {at}{extra} : {p}"), tile

    def described(self, base, rows, columns, element, how):
        """The same through a tensor descriptor: made in front of the loop or in it, or of slabs (one head of one, say)."""
        sizes = [self.pre(f"arith.constant {n} : i32") for n in (65536 // columns, columns)]
        pitch, last = (self.pre(f"arith.constant {n} : i64") for n in (columns, 1))
        ty, between = f"<{rows}x{columns}x{element}>", ""
        if how == "slab":
            ty, between = f"<{rows}x1x{columns}x{element}>", ", %one"
        strides = f"{pitch}, {pitch}, {last}" if between else f"{pitch}, {last}"
        make = self.add if how == "described_here" else self.pre
        d = make(f"tt.make_tensor_descriptor {base}, [{sizes[0]}{between}, {sizes[1]}], [{strides}] : <{element}>, {ty}")
        row = self.add(f"arith.muli %i, {self.pre(f'arith.constant {rows} : i32')} : i32")
        at = f"{row}, %zero, %zero" if between else f"{row}, %zero"
        tile = self.add(f"tt.descriptor_load {d}[{at}] : !tt.tensordesc{ty} -> tensor{ty}")
        return self.add(f"tt.reshape {tile} : tensor{ty} -> tensor<{rows}x{columns}x{element}>") if between else tile

    def dot(self, a, b, c):
        x, y, z = (f"tensor<{s}>" for s in (f"{self.m}x{self.k}xf16", f"{self.k}x{self.n}xf16", f"{self.m}x{self.n}xf32"))
        return self.add(f"tt.dot {a}, {b}, {c} : {x} * {y} -> {z}")

    def sums(self):
        return f"tensor<{self.m}x{self.n}xf32>"

    def operand(self, side, **kind):
        rows, columns = (self.m, self.k) if side == 0 else (self.k, self.n)
        return self.load("%a" if side == 0 else "%b", rows, columns, **kind)

    def text(self, stages=None):
        attrs = self.attrs if stages != 1 else ""
        names = ", ".join(f"{v} = {first}" for v, _, first, _ in self.args)
        types = ", ".join(ty for _, ty, _, _ in self.args)
        yields = ", ".join(last for *_, last in self.args)
        low, high, step = self.bounds
        lines = [f"  {line}" for line in self.before]
        lines.append(f"  %r:{len(self.args)} = scf.for %i = {low} to {high} step {step} iter_args({names}) -> ({types}) : i32 {{")
        lines += [f"    {line}" for line in self.body]
        lines.append(f"    scf.yield {yields} : {types}\n  }}{attrs}")
        # What comes out of the loop: sums, and scalars.
        number = 0
        for i, (_, ty, _, _) in enumerate(self.args):
            if ty == self.sums():
                p, t = f"tensor<{self.m}x{self.n}x!tt.ptr<f32>>", f"tensor<{self.m}x{self.n}xi32>"
                lines.append(f"  %o{i} = tt.addptr %out, %place{number} : !tt.ptr<f32>, i32")
                lines.append(f"  %s{i} = tt.splat %o{i} : !tt.ptr<f32> -> {p}")
                lines.append(f"  %q{i} = tt.addptr %s{i}, %outs : {p}, {t}")
                lines.append(f"  tt.store %q{i}, %r#{i} : {p}")
                number += 1
            elif ty == "i32":
                lines.append(f"  %o{i} = tt.addptr %scalars, %place{number} : !tt.ptr<i32>, i32")
                lines.append(f"  tt.store %o{i}, %r#{i} : !tt.ptr<i32>")
                number += 1
        places = "\n".join(f"  %place{i} = arith.constant {i * self.m * self.n} : i32" for i in range(number))
        lines += [f"  {line}" for line in self.stores]
        d = " {tt.divisibility = 16 : i32}"
        return (
            f"module {{\ntt.func public @k(%a: !tt.ptr<f16>{d}, %b: !tt.ptr<f16>{d}, %index: !tt.ptr<i32>{d}, "
            f"%out: !tt.ptr<f32>{d}, %scalars: !tt.ptr<i32>{d}, %n: i32, %divisor: i32, %limit: i32) {{\n"
            "  %zero = arith.constant 0 : i32\n  %one = arith.constant 1 : i32\n  %eight = arith.constant 8 : i32\n"
            f"{places}\n" + "\n".join(lines) + "\n  tt.return\n}\n}\n"
        )

    def accumulate(self, make):
        """An iter_arg of sums; `make(value)` gives the next ones."""
        if not hasattr(self, "zeros"):
            self.zeros = self.pre(f"arith.constant dense<0.0> : {self.sums()}")
            at, _ = self.offsets(self.m, self.n, self.n)
            self.before[-1] = self.before[-1].replace(at, "%outs", 1)
        return self.arg(self.sums(), self.zeros, make)


class Nest(Loop):
    """A loop over tiles, with a loop as above in each, and stores of what that gives behind it."""

    # Iterations of the loop in a tile: the same for all, or by the tile.
    TRIPS = {"same": "%inner = arith.addi %n, %zero : i32", "known": "%inner = arith.constant 3 : i32",
             "of_tile": "%inner_t = arith.addi %n, %tile : i32\n%inner = arith.remsi %inner_t, %three : i32",
             "loaded": "%inner_p = tt.addptr %index, %tile : !tt.ptr<i32>, i32\n%inner_l = tt.load %inner_p : !tt.ptr<i32>\n"
                       "%inner = arith.andi %inner_l, %three : i32"}
    # Where a tile begins: its number, an iter_arg, or from memory.
    PLACES = {"number": "%base = arith.muli %tile, %two : i32", "carried": "", "carried_late": "",
              "divided": "%base_m = arith.muli %tile, %eight : i32\n%base_d = arith.divsi %base_m, %divisor : i32\n"
                         "%base = arith.remsi %base_d, %limit : i32",
              "loaded": "%base_p = tt.addptr %index, %tile : !tt.ptr<i32>, i32\n%base_l = tt.load %base_p : !tt.ptr<i32>\n"
                        "%base = arith.andi %base_l, %seven : i32"}

    def __init__(self, r=None, m=64, n=32, k=32, trips="same", place="number", flatten=True, stores_to="%out", sums=False, goes_on=False):
        super().__init__(r, m, n, k)
        # Whether tiles go on with the sums of the tile before, which are stored behind the last one.
        self.goes_on = goes_on
        self.trips, self.place, self.flatten, self.stores_to, self.adds_up = trips, place, flatten, stores_to, sums

    def text(self, stages=None):
        flatten = " {tt.flatten}" if self.flatten and stages != 1 else ""
        attrs = self.attrs if stages != 1 else ""
        inner, counts = [], {"f": 0, "i": 0}
        inner += self.TRIPS[self.trips].split("\n") + self.PLACES[self.place].split("\n")
        if self.place == "carried":
            inner.append("%base_next = arith.addi %base, %two : i32")
        firsts = []
        for i, (_, ty, first, _) in enumerate(self.args):
            if "!tt.ptr" in ty:
                t = ty.replace("!tt.ptr<f16>", "i32").replace("!tt.ptr<f32>", "i32").replace("!tt.ptr<i8>", "i32")
                inner += [f"%far{i} = arith.muli %base, %wide : i32", f"%fars{i} = tt.splat %far{i} : i32 -> {t}",
                          f"%first{i} = tt.addptr {first}, %fars{i} : {ty}, {t}"]
                first = f"%first{i}"
            firsts.append(f"%go{i}" if self.goes_on and ty == self.sums() else first)
        names = ", ".join(f"{arg[0]} = {first}" for arg, first in zip(self.args, firsts))
        types = ", ".join(ty for _, ty, _, _ in self.args)
        yields = ", ".join(last for *_, last in self.args)
        inner.append(f"%r:{len(self.args)} = scf.for %k = %zero to %inner step %one iter_args({names}) -> ({types}) : i32 {{")
        inner += ["  %i = arith.addi %k, %base : i32"] + [f"  {line}" for line in self.body]
        inner.append(f"  scf.yield {yields} : {types}\n    }}{attrs}")
        sums = []
        for i, (_, ty, _, _) in enumerate(self.args):
            if ty == self.sums():
                inner += [] if self.goes_on else self.store_sums(i, len(sums))
                sums.append(i)
            elif ty == "i32" and not self.goes_on:
                inner += [f"%o{i} = tt.addptr %scalars, %tile : !tt.ptr<i32>, i32", f"tt.store %o{i}, %r#{i} : !tt.ptr<i32>"]
        if self.place == "carried_late":
            inner.append("%base_next = arith.addi %base, %two : i32")
        carried = [("%base", "i32", "%one", "%base_next")] if self.place.startswith("carried") else []
        if self.goes_on:
            carried = [(f"%go{i}", self.sums(), self.args[i][2], f"%r#{i}") for i in sums] + carried
        if self.adds_up:
            inner.append(f"%total_next = arith.addf %total, %r#{sums[0]} : {self.sums()}")
            carried.append(("%total", self.sums(), self.zeros, "%total_next"))
        head = foot = ""
        if carried:
            types = ", ".join(ty for _, ty, _, _ in carried)
            head = f" iter_args({', '.join(f'{v} = {first}' for v, _, first, _ in carried)}) -> ({types})"
            foot = f"    scf.yield {', '.join(last for *_, last in carried)} : {types}\n"
        lines = [f"  {line}" for line in self.before]
        result = f"%all:{len(carried)} = " if carried else ""
        lines.append(f"  {result}scf.for %tile = %zero to %tiles step %one{head} : i32 {{")
        lines += [f"    {line}" for line in inner if line]
        lines.append(f"{foot}  }}{flatten}")
        if self.adds_up:
            lines += self.store("%out", f"%all#{len(carried) - 1}", 7)
        if self.goes_on:
            lines += [line for at in range(len(sums)) for line in self.store("%out", f"%all#{at}", at)]
        d = " {tt.divisibility = 16 : i32}"
        numbers = {"zero": 0, "one": 1, "two": 2, "three": 3, "four": 4, "seven": 7, "eight": 8, "wide": 1024, "size": self.m * self.n}
        return (
            f"module {{\ntt.func public @k(%a: !tt.ptr<f16>{d}, %b: !tt.ptr<f16>{d}, %index: !tt.ptr<i32>{d}, "
            f"%out: !tt.ptr<f32>{d}, %scalars: !tt.ptr<i32>{d}, %n: i32, %divisor: i32, %limit: i32) {{\n"
            + "".join(f"  %{name} = arith.constant {n} : i32\n" for name, n in numbers.items())
            + "  %tiles = arith.remsi %n, %four : i32\n" + "\n".join(lines) + "\n  tt.return\n}\n}\n"
        )

    def store(self, base, value, number):
        p, t = f"tensor<{self.m}x{self.n}x!tt.ptr<f32>>", f"tensor<{self.m}x{self.n}xi32>"
        n = f"_{number}"
        return [f"%place{n} = arith.constant {number * self.m * self.n} : i32",
                f"%o{n} = tt.addptr {base}, %place{n} : !tt.ptr<f32>, i32", f"%s{n} = tt.splat %o{n} : !tt.ptr<f32> -> {p}",
                f"%q{n} = tt.addptr %s{n}, %outs : {p}, {t}", f"tt.store %q{n}, {value} : {p}"]

    def store_sums(self, i, number):
        """Stores a result of the loop, by the tile; or to where the next tile loads from."""
        p, t = f"tensor<{self.m}x{self.n}x!tt.ptr<f32>>", f"tensor<{self.m}x{self.n}xi32>"
        lines, element = [f"%place{i} = arith.muli %tile, %size : i32"], "f32"
        value = f"%r#{i}"
        if self.stores_to == "%a":
            p, element = p.replace("f32", "f16"), "f16"
            lines = [f"%onward{i} = arith.addi %tile, %one : i32", f"%place{i} = arith.muli %onward{i}, %size : i32",
                     f"%half{i} = arith.truncf {value} : {self.sums()} to tensor<{self.m}x{self.n}xf16>"]
            value = f"%half{i}"
        more = [f"%further{i} = arith.constant {number * 3 * self.m * self.n} : i32",
                f"%at{i} = arith.addi %place{i}, %further{i} : i32"]
        return lines + more + [
            f"%o{i} = tt.addptr {self.stores_to}, %at{i} : !tt.ptr<{element}>, i32",
            f"%s{i} = tt.splat %o{i} : !tt.ptr<{element}> -> {p}", f"%q{i} = tt.addptr %s{i}, %outs : {p}, {t}",
            f"tt.store %q{i}, {value} : {p}"]


def matmul(l, **kind):
    l.accumulate(lambda c: l.dot(l.operand(0, **kind)[0], l.operand(1, **kind)[0], c))
    return l


def store_aliases(l, barrier=None, described=False):
    """triton#8259: what an iteration stores, the next one loads; with a barrier between, another thread's rows."""
    if described:
        l.before += [f"%rows = arith.constant 4096 : i32", "%columns = arith.constant 32 : i32",
                     "%pitch = arith.constant 32 : i64", "%each = arith.constant 1 : i64",
                     f"%described = tt.make_tensor_descriptor %a, [%rows, %columns], [%pitch, %each] : !tt.ptr<f16>, "
                     f"!tt.tensordesc<{l.m}x{l.k}xf16>"]
    def step(c):
        if described:
            tile = f"tensor<{l.m}x{l.k}xf16>"
            height = l.pre(f"arith.constant {l.m} : i32")
            row = l.add(f"arith.muli %i, {height} : i32")
            a = l.add(f"tt.descriptor_load %described[{row}, %zero] : !tt.tensordesc<{l.m}x{l.k}xf16> -> {tile}")
        else:
            a, tile = l.operand(0, how="counter")
        d = l.dot(a, l.operand(1)[0], c)
        size = l.add("arith.constant 2048 : i32")
        next_one = l.add("arith.addi %i, %one : i32")
        offset = l.add(f"arith.muli {next_one}, {size} : i32")
        p0, p, t = l.pointers("%a", l.m, l.k, l.k, "f16")
        if barrier:
            # From the last element to the first.
            last = l.pre(f"arith.constant dense<{l.m * l.k - 1}> : {t}")
            at, _ = l.offsets(l.m, l.k, l.k)
            at = l.pre(f"arith.subi {last}, {at} : {t}")
            s = l.pre(f"tt.splat %a : !tt.ptr<f16> -> {p}")
            p0 = l.pre(f"tt.addptr {s}, {at} : {p}, {t}")
        twice = l.add(f"arith.addf {a}, {a} : {tile}")
        l.do(f"tt.store {l.moved(p0, p, t, offset)}, {twice} : {p}")
        if barrier:
            l.do(barrier)
        return d
    l.accumulate(step)
    return l


def conditional_use(l):
    """triton#8139: what is loaded is used in some iterations only."""
    def step(c):
        (a, tile), (b, _) = l.operand(0), l.operand(1)
        odd = l.add("arith.andi %i, %one : i32")
        odd = l.add(f"arith.cmpi eq, {odd}, %one : i32")
        v = l.name()
        l.do(f"{v} = scf.if {odd} -> ({l.sums()}) {{")
        d = l.dot(a, b, c)
        l.do(f"scf.yield {d} : {l.sums()}\n    }} else {{\n      scf.yield {c} : {l.sums()}\n    }}")
        return v
    l.accumulate(step)
    return l


def conditional_load(l):
    """A load that may not happen."""
    def step(c):
        b, _ = l.operand(1)
        odd = l.add("arith.andi %i, %one : i32")
        odd = l.add(f"arith.cmpi eq, {odd}, %one : i32")
        v = l.name()
        p0, p, t = l.pointers("%a", l.m, l.k, l.k, "f16")
        zero = l.pre(f"arith.constant dense<0.0> : tensor<{l.m}x{l.k}xf16>")
        l.do(f"{v} = scf.if {odd} -> (tensor<{l.m}x{l.k}xf16>) {{")
        a = l.add(f"tt.load {p0} : {p}")
        l.do(f"scf.yield {a} : tensor<{l.m}x{l.k}xf16>\n    }} else {{\n      scf.yield {zero} : tensor<{l.m}x{l.k}xf16>\n    }}")
        return l.dot(v, b, c)
    l.accumulate(step)
    return l


def source_order(l):
    """triton#6691: which line comes first must not matter."""
    def step(c):
        b, _ = l.operand(1, how="carried")
        a, _ = l.operand(0, how="carried")
        return l.dot(a, b, c)
    l.accumulate(step)
    return l


def two_distances(l):
    """What is loaded is used in the same iteration and in the next."""
    first = l.pre(f"arith.constant dense<0.0> : tensor<{l.m}x{l.k}xf16>")
    tile = {}
    def keep(v):
        tile["now"], _ = l.operand(0)
        tile["before"] = v
        return tile["now"]
    l.arg(f"tensor<{l.m}x{l.k}xf16>", first, keep)
    def step(c):
        b, _ = l.operand(1)
        return l.dot(tile["before"], b, l.dot(tile["now"], b, c))
    l.accumulate(step)
    return l


def two_dots(l):
    """The second dot is of what the first one gave (wgmma with its left operand in registers, triton#9433)."""
    def step(c):
        a, _ = l.operand(0)
        b, _ = l.operand(1)
        zero = l.zeros if hasattr(l, "zeros") else l.pre(f"arith.constant dense<0.0> : {l.sums()}")
        s = l.dot(a, b, zero)
        p = l.add(f"arith.truncf {s} : {l.sums()} to tensor<{l.m}x{l.n}xf16>")
        half = l.add(f"arith.addf {c}, {c} : {l.sums()}")
        return l.add(f"arith.addf {half}, {l.dot(p, b, c)} : {l.sums()}")
    l.n = l.k
    l.accumulate(step)
    return l


def scaled_sums(l):
    """Sums that each iteration changes before it adds to them, as attention does."""
    def step(c):
        a, _ = l.operand(0)
        b, _ = l.operand(1)
        half = l.pre(f"arith.constant dense<0.5> : {l.sums()}")
        return l.dot(a, b, l.add(f"arith.mulf {c}, {half} : {l.sums()}"))
    l.accumulate(step)
    return l


def converted(l):
    """Operands that are computed from what is loaded."""
    def step(c):
        a, _ = l.operand(0)
        w, tile = l.load("%weights", l.k, l.n, element="i8")
        b = l.add(f"arith.sitofp {w} : {tile} to tensor<{l.k}x{l.n}xf16>")
        return l.dot(a, b, c)
    l.before.append("%weights = tt.bitcast %b : !tt.ptr<f16> -> !tt.ptr<i8>")
    l.accumulate(step)
    return l


def transposed(l):
    """The right operand lies the other way round."""
    def step(c):
        a, _ = l.operand(0)
        b, tile = l.load("%b", l.n, l.k)
        b = l.add(f"tt.trans {b} {{order = array<i32: 1, 0>}} : {tile} -> tensor<{l.k}x{l.n}xf16>")
        return l.dot(a, b, c)
    l.accumulate(step)
    return l


def other_is_one(l):
    return matmul(l, mask=True, other="one")


def negative_bounds(l):
    l.before += ["%low = arith.constant -5 : i32", "%two = arith.constant 2 : i32", "%to = arith.muli %n, %two : i32",
                 "%high = arith.addi %low, %to : i32", "%five = arith.constant 5 : i32"]
    l.bounds = ("%low", "%high", "%two")
    def step(c):
        (a, _), (b, _) = l.operand(0, how="carried"), l.operand(1, how="carried")
        return l.dot(a, b, c)
    l.accumulate(step)
    return l


def unused_results(l):
    """Pointers that are used behind the loop."""
    matmul(l, how="carried")
    l.arg("i32", "%zero", lambda v: l.add(f"arith.addi {v}, %i : i32"))
    return l


def first_iteration(l):
    """A flag that is set after the first iteration."""
    flag = l.pre("arith.constant false")
    set_ = l.pre("arith.constant true")
    known = {}
    def keep(v):
        known["flag"] = v
        return set_
    l.arg("i1", flag, keep)
    def step(c):
        d = l.dot(l.operand(0)[0], l.operand(1)[0], c)
        return l.add(f"arith.select {known['flag']}, {d}, {c} : {l.sums()}")
    l.accumulate(step)
    return l


def recurrence(l, base="%a", element="f16", back=0, **kind):
    """What is stored depends on what earlier iterations loaded; nothing is multiplied. From `%out` an iteration reads what
    the one before, with `back`, wrote."""
    l.m, l.n = 16, 32
    def step(s):
        if base == "%out":
            p0, p, t = l.pointers(base, l.m, l.n, l.n, element)
            size = l.pre(f"arith.constant {l.m * l.n} : i32")
            at = l.add(f"arith.muli %i, {size} : i32")
            x = l.add(f"tt.load {l.moved(p0, p, t, at)} : {p}")
        else:
            x, _ = l.load(base, l.m, l.n, element=element, **kind)
            p0, p, t = l.pointers("%out", l.m, l.n, l.n, "f32")
            size = l.pre(f"arith.constant {l.m * l.n} : i32")
        if element == "f16":
            x = l.add(f"arith.extf {x} : tensor<{l.m}x{l.n}xf16> to {l.sums()}")
        half = l.pre(f"arith.constant dense<0.5> : {l.sums()}")
        s = l.add(f"arith.mulf {s}, {half} : {l.sums()}")
        s = l.add(f"arith.addf {s}, {x} : {l.sums()}")
        further = l.pre(f"arith.constant {1 if back else 4} : i32")
        at = l.add(f"arith.addi %i, {further} : i32")
        at = l.add(f"arith.muli {at}, {size} : i32")
        l.do(f"tt.store {l.moved(p0, p, t, at)}, {s} : {p}")
        return s
    l.accumulate(step)
    return l


def attention(l):
    """triton#9815: four loads, dots and a softmax as it goes on."""
    l.n = l.k
    tile, row = l.sums(), f"tensor<{l.m}xf32>"
    least = l.pre(f"arith.constant dense<-3.0e+38> : {row}")
    none = l.pre(f"arith.constant dense<0.0> : {row}")
    now = {}

    def reduced(of, combine):
        v = l.name()
        l.do(f"""{v} = "tt.reduce"({of}) <{{axis = 1 : i32}}> ({{
    ^bb0(%x: f32, %y: f32):
      %z = {combine} %x, %y : f32
      tt.reduce.return %z : f32
    }}) : ({tile}) -> {row}""")
        return v

    def spread(v):
        v = l.add(f"tt.expand_dims {v} {{axis = 1 : i32}} : {row} -> tensor<{l.m}x1xf32>")
        return l.add(f"tt.broadcast {v} : tensor<{l.m}x1xf32> -> {tile}")

    def largest(before):
        q, _ = l.operand(0)
        bias, of = l.load("%b", l.m, l.n, mask=True, other="one")
        first, gains = l.operand(1, mask=True)[0], l.operand(1, how="carried")[0]
        bias = l.add(f"arith.extf {bias} : {of} to {tile}")
        scores = l.dot(q, first, bias)
        after = l.add(f"arith.maximumf {before}, {reduced(scores, 'arith.maxnumf')} : {row}")
        weights = l.add(f"arith.subf {scores}, {spread(after)} : {tile}")
        now["weights"] = l.add(f"math.exp2 {weights} : {tile}")
        moved = l.add(f"arith.subf {before}, {after} : {row}")
        now["scale"], now["gains"] = l.add(f"math.exp2 {moved} : {row}"), gains
        return after

    def total(before):
        scaled = l.add(f"arith.mulf {before}, {now['scale']} : {row}")
        now["total"] = l.add(f"arith.addf {scaled}, {reduced(now['weights'], 'arith.addf')} : {row}")
        return now["total"]

    def values(before):
        half = l.add(f"arith.truncf {now['weights']} : {tile} to tensor<{l.m}x{l.n}xf16>")
        scaled = l.add(f"arith.mulf {before}, {spread(now['scale'])} : {tile}")
        return l.dot(half, now["gains"], scaled)

    l.arg(row, least, largest)
    l.arg(row, none, total)
    l.accumulate(values)
    # Totals go out with the sums.
    l.accumulate(lambda c: l.add(f"arith.addf {c}, {spread(now['total'])} : {tile}"))
    return l


def asked(attrs, loop=matmul, **kind):
    def make(l):
        loop(l, **kind)
        l.attrs = f" {{{attrs}}}"
        return l
    make.__doc__ = attrs
    return make


NAMED = {
    "matmul": matmul, "store_aliases": store_aliases,
    "store_aliases_barrier": lambda l: store_aliases(l, barrier="ttg.barrier all"),
    "store_aliases_old_barrier": lambda l: store_aliases(l, barrier="gpu.barrier"),
    "store_aliases_described": lambda l: store_aliases(l, described=True),
    "conditional_use": conditional_use,
    "conditional_load": conditional_load, "source_order": source_order, "two_distances": two_distances,
    "two_dots": two_dots, "scaled_sums": scaled_sums, "converted": converted, "transposed": transposed,
    "other_is_one": other_is_one, "negative_bounds": negative_bounds, "unused_results": unused_results,
    "first_iteration": first_iteration,
    "recurrence": recurrence, "recurrence_masked": lambda l: recurrence(l, mask=True, other="one"),
    "recurrence_indirect": lambda l: recurrence(l, how="indirect"),
    "recurrence_carried": lambda l: recurrence(l, how="carried"),
    "recurrence_in_place": lambda l: recurrence(l, base="%out", element="f32", back=1),
    "indirect": lambda l: matmul(l, how="indirect"), "twice": lambda l: matmul(l, how="twice"),
    "divided": lambda l: matmul(l, how="divided"), "masked": lambda l: matmul(l, mask=True),
    "asked_two": asked("tt.num_stages = 2 : i32"), "asked_five": asked("tt.num_stages = 5 : i32"),
    "attention": attention, "attention_of_four_stages": asked("tt.num_stages = 4 : i32", attention),
    # triton#10229 and #10649: a descriptor that is made in the loop, and loads for a dot.
    "described_here": lambda l: matmul(l, how="described_here"), "slabs": lambda l: matmul(l, how="slab"),
    # Warps were to be specialized: triton#9728 and #10284 (pointers), #8260 (slabs). Loops are pipelined here instead.
    "specialized": asked("tt.warp_specialize"), "specialized_bulk": asked("tt.warp_specialize", how="descriptor"),
    "specialized_slabs": asked("tt.warp_specialize", how="slab"), "specialized_attention": asked("tt.warp_specialize", attention),
}


def mixed(l):
    """triton#8311: one operand is loaded by threads, the other one through a descriptor."""
    l.accumulate(lambda c: l.dot(l.operand(0)[0], l.operand(1, how="descriptor")[0], c))
    return l


def nest(loop=matmul, kind={}, **how):
    """A loop in a loop over tiles."""
    return lambda _: loop(Nest(**how), **kind)


NAMED |= {
    "nest": nest(), "nest_carried": nest(kind=dict(how="carried")), "nest_masked": nest(kind=dict(mask=True, other="one")),
    "nest_bulk": nest(kind=dict(how="descriptor")), "nest_bulk_of_tile": nest(kind=dict(how="descriptor"), trips="of_tile"),
    "nest_known": nest(trips="known", flatten=False), "nest_of_tile": nest(trips="of_tile", place="carried"),
    "nest_loaded": nest(trips="loaded", place="loaded"), "nest_late": nest(place="carried_late", trips="of_tile"),
    "nest_divided": nest(place="divided", kind=dict(how="divided")), "nest_sums": nest(sums=True),
    "nest_in_place": nest(stores_to="%a"), "nest_in_place_bulk": nest(stores_to="%a", kind=dict(how="descriptor")),
    "nest_indirect": nest(kind=dict(how="indirect")), "nest_twice": nest(kind=dict(how="twice"), trips="of_tile"),
    "nest_of_two_dots": nest(two_dots), "nest_of_scaled_sums": nest(scaled_sums, trips="of_tile"),
    "nest_of_converted": nest(converted), "nest_of_transposed": nest(transposed), "nest_of_two_distances": nest(two_distances),
    "one_loop": nest(goes_on=True), "one_loop_carried": nest(goes_on=True, kind=dict(how="carried")),
    "one_loop_known": nest(goes_on=True, trips="known", flatten=False), "one_loop_late": nest(goes_on=True, place="carried_late"),
    "one_loop_before": nest(goes_on=True, place="carried", kind=dict(how="carried", mask=True)),
    "one_loop_of_tile": nest(goes_on=True, trips="of_tile"), "one_loop_loaded": nest(goes_on=True, place="loaded"),
    "one_loop_bulk": nest(goes_on=True, kind=dict(how="descriptor")), "one_loop_divided": nest(goes_on=True, place="divided"),
    "one_loop_indirect": nest(goes_on=True, kind=dict(how="twice")), "one_loop_of_two_dots": nest(two_dots, goes_on=True),
    "one_loop_of_scaled_sums": nest(scaled_sums, goes_on=True), "one_loop_of_two_distances": nest(two_distances, goes_on=True),
    "nest_of_mixed": nest(mixed), "nest_of_specialized": nest(asked("tt.warp_specialize", mixed)),
    "nest_of_conditional": nest(conditional_use), "nest_of_recurrence": nest(recurrence, trips="of_tile"),
}


class Bounds:
    """Induction variables of other types, unsigned ones, and such near the largest number, with steps behind it."""

    # Type, keyword, first, last, step, stages, induction variable as an index.
    LOOPS = [
        ("i64", "", "%c0_64", "%n_64", "%c1_64", 4, "arith.trunci %i : i64 to i32"),
        ("index", "", "%c0_x", "%n_x", "%c2_x", 4, "arith.index_cast %i : index to i32"),
        ("i32", "unsigned ", "%most", "%beyond", "%five", 3, "arith.subi %i, %most : i32"),
        ("i32", "", "%most", "%limit_most", "%three", 5, "arith.subi %i, %most : i32"),
    ]

    def text(self, stages):
        lines = []
        for number, (ty, keyword, low, high, step, count, at) in enumerate(self.LOOPS):
            attrs = f" {{tt.num_stages = {count} : i32}}" if stages > 1 else ""
            lines.append(f"""
  %r{number} = scf.for {keyword}%i = {low} to {high} step {step} iter_args(%s = %zero) -> (i32) : {ty} {{
    %j = {at}
    %q = tt.addptr %index, %j : !tt.ptr<i32>, i32
    %x = tt.load %q : !tt.ptr<i32>
    %t = arith.muli %s, %three : i32
    %y = arith.addi %t, %x : i32
    scf.yield %y : i32
  }}{attrs}
  %place{number} = arith.constant {number} : i32
  %o{number} = tt.addptr %scalars, %place{number} : !tt.ptr<i32>, i32
  tt.store %o{number}, %r{number} : !tt.ptr<i32>""".replace(" : index {", " {"))
        return """module {
tt.func public @k(%a: !tt.ptr<f16>, %b: !tt.ptr<f16>, %index: !tt.ptr<i32>, %out: !tt.ptr<f32>, %scalars: !tt.ptr<i32>,
                  %n: i32, %divisor: i32, %limit: i32) {
  %zero = arith.constant 0 : i32
  %three = arith.constant 3 : i32
  %five = arith.constant 5 : i32
  %c0_64 = arith.constant 0 : i64
  %c1_64 = arith.constant 1 : i64
  %n_64 = arith.extsi %n : i32 to i64
  %c0_x = arith.constant 0 : index
  %c2_x = arith.constant 2 : index
  %n_x = arith.index_cast %n : i32 to index
  %most = arith.constant 2147483640 : i32
  %beyond = arith.addi %most, %n : i32
  %largest = arith.constant 2147483644 : i32
  %some = arith.minsi %n, %three : i32
  %limit_most = arith.subi %largest, %some : i32""" + "".join(lines) + "\n  tt.return\n}\n}\n"


def any_loop(seed, nested=False):
    r = random.Random(seed)
    shape = r.choice((16, 32, 64, 64)), r.choice((16, 32)), r.choice((16, 32))
    if nested:
        l = Nest(r, *shape, trips=r.choice(list(Nest.TRIPS)), place=r.choice(list(Nest.PLACES)), flatten=r.random() < 0.7,
                 **r.choice((dict(sums=True), dict(), dict(), dict(goes_on=True))))
    else:
        l = Loop(r, *shape)
    def kind():
        how = r.choice(("counter", "carried", "carried", "indirect", "twice", "divided", *["descriptor"] * nested))
        mask = r.random() < 0.4
        return dict(how=how, mask=mask, other=mask and r.choice((False, "zero", "one")))
    def step(c):
        for _ in range(r.randint(1, 2)):
            (a, tile), (b, _) = l.operand(0, **kind()), l.operand(1, **kind())
            if r.random() < 0.3:
                a = l.add(f"arith.addf {a}, {a} : {tile}")
            if r.random() < 0.2:
                half = l.pre(f"arith.constant dense<0.5> : {l.sums()}")
                c = l.add(f"arith.mulf {c}, {half} : {l.sums()}")
            if r.random() < 0.2:
                odd = l.add("arith.andi %i, %one : i32")
                odd = l.add(f"arith.cmpi eq, {odd}, %one : i32")
                v = l.name()
                l.do(f"{v} = scf.if {odd} -> ({l.sums()}) {{")
                d = l.dot(a, b, c)
                l.do(f"scf.yield {d} : {l.sums()}\n    }} else {{\n      scf.yield {c} : {l.sums()}\n    }}")
                c = v
            elif r.random() < 0.85:
                c = l.dot(a, b, c)
            if r.random() < 0.3:
                x, tile = l.load("%out2", l.m, l.n, element="f32", **kind())
                c = l.add(f"arith.addf {c}, {x} : {l.sums()}")
        return c
    l.before.append("%out2 = tt.bitcast %a : !tt.ptr<f16> -> !tt.ptr<f32>")
    for _ in range(r.choice((1, 1, 2))):
        l.accumulate(step)
    if r.random() < 0.3:
        l.arg("i32", "%zero", lambda v: l.add(f"arith.addi {v}, %i : i32"))
    if r.random() < 0.5:
        l.attrs = f" {{tt.num_stages = {r.randint(2, 5)} : i32}}"
    return l


def simulate(args, source, folder, target, stages, trips):
    folder.mkdir(parents=True, exist_ok=True)
    named = [f"a={args.work}/a.npy", f"b={args.work}/b.npy", f"index={args.work}/index.npy",
             f"out=f32[{max(16384, args.tile[0] * args.tile[1])}]", "scalars=i32[16384]"]
    arguments = [*named, str(trips), "3", "5"]
    return suite.simulate(args, source, target, arguments, folder, "--num-stages", stages, "--num-warps", args.warps)


def run(args, name, loop, target, stages, trips):
    """What is wrong with a loop of so many stages and iterations, or None."""
    folder = args.work / f"{name}-{target.replace(':', '')}"
    outputs = []
    for number in (1, stages):
        source = folder / f"{number}.ttir"
        out = folder / f"out{number}-{trips}"
        if number > 1 or not (out / "done").exists():
            wrong = simulate(args, source, out, target, number, trips)
            if wrong:
                return wrong
            (out / "done").touch()
        outputs.append([(out / f"{what}.npy").read_bytes() for what in ("a", "out", "scalars")])
    return None if outputs[0] == outputs[1] else "other bytes than without a pipeline"


def main():
    parser = suite.parser(__doc__)
    parser.add_argument("--targets", default="cuda:80,cuda:90")
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tile", default="64,32,32", help="rows, columns and summands of named loops")
    parser.add_argument("--warps", type=int, default=4)
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    args.tile = [int(size) for size in args.tile.split(",")]
    # Room for as many tiles as there are iterations, and some behind.
    elements = max(65536, 9 * max(args.tile[:2]) * args.tile[2])
    write_npy(args.work / "a.npy", "f16", (elements,), 1)
    write_npy(args.work / "b.npy", "f16", (elements,), 2)
    write_npy(args.work / "index.npy", "i32", (64,), 3)
    loops = {name: make(Loop(None, *args.tile)) for name, make in NAMED.items() if not args.names or name in args.names}
    if not args.names or "bounds" in args.names:
        loops["bounds"] = Bounds()
    if not args.names or "random" in args.names:
        loops.update({f"random{seed}": any_loop(seed) for seed in range(args.seed, args.seed + args.count)})
    if not args.names or "nests" in args.names:
        loops.update({f"random_nest{seed}": any_loop(seed, True) for seed in range(args.seed, args.seed + args.count)})
    cases = []
    for at, (name, loop) in enumerate(loops.items()):
        for turn, target in enumerate(args.targets.split(",")):
            is_named = name in NAMED or name == "bounds"
            picked = TRIPS[(at + turn) % 2] if is_named else (at // 2 % 5, 7)
            picked += UNROLLED_TRIPS if name.startswith("recurrence") else ()
            cases += [(name, loop, target, 2 + (at + i) % 4, trips) for i, trips in enumerate(picked)]
    for name, loop, target, stages, _ in cases:
        folder = args.work / f"{name}-{target.replace(':', '')}"
        folder.mkdir(parents=True, exist_ok=True)
        for number in (1, stages):
            (folder / f"{number}.ttir").write_text(loop.text(number))
    wrong = 0
    for case, error in zip(cases, suite.run_all(args, run, cases)):
        if error:
            wrong += 1
            name, _, target, stages, trips = case
            print(f"WRONG {name} for {target}, {stages} stages, {trips} iterations: {error}")
    names = len([name for name in loops if not name.startswith("random")])
    print(f"{names} named loops, {len(loops) - names} random ones, {len(cases)} runs, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
