"""Cases of whole tensors: reductions, scans, sorting, gathers, and everything that moves elements about."""

from language_sweep_cases import (
    ALL,
    EXACT,
    FLOATS,
    INTS,
    NUMBERS,
    SAME_VALUE,
    Near,
    bits,
    given,
    inout,
    kind,
    out,
)

SHAPES = {"1d": (512,), "2d": (32, 16), "3d": (4, 8, 16)}

# A shape and an axis of it.
AXES = [
    ((512,), 0),
    ((32, 32), 0),
    ((16, 64), 1),
    ((8, 4, 16), 0),
    ((4, 16, 8), 1),
    ((4, 2, 64), 2),
]


def index(shape):
    """The offsets of a contiguous tensor, as in `tl.arange(0, 4)[:, None] * 8 + tl.arange(0, 8)[None, :]`."""
    terms, stride = [], 1
    for axis in reversed(range(len(shape))):
        at = ", ".join(":" if other == axis else "None" for other in range(len(shape)))
        place = f"[{at}]" if len(shape) > 1 else ""
        terms.append(f"tl.arange(0, {shape[axis]}){place}" + (f" * {stride}" if stride > 1 else ""))
        stride *= shape[axis]
    return " + ".join(reversed(terms))


def without(shape, axis):
    return tuple(size for at, size in enumerate(shape) if at != axis)


def count(shape):
    total = 1
    for size in shape:
        total *= size
    return total


def kernel(body, parameters, helpers=""):
    lines = "".join(f"    {line}\n" for line in body)
    return f"{helpers}@triton.jit\ndef kernel({', '.join(parameters)}):\n{lines}"


def transform(cases, family, name, expression, dtype, shape, result, result_shape, how="any", helpers="", **details):
    """A case that loads one tensor, and stores one."""
    store = f"tl.store(out + {index(result_shape)}, {expression})" if result_shape else f"tl.store(out, {expression})"
    source = kernel([f"a = tl.load(x + {index(shape)})", store], ["x", "out"], helpers)
    args = {"x": given(dtype, shape, how), "out": out(result, *(result_shape or (1,)))}
    cases.add(family, name, source, args, **details)


def summed(dtype):
    """The type in which tl.sum adds: small integers are widened."""
    if kind(dtype) in ("int", "bool") and bits(dtype) < 32:
        return "uint32" if dtype.startswith("u") else "int32"
    return dtype


def tolerance(dtype, terms):
    """What another order of so many additions of numbers below one may change."""
    if kind(dtype) != "float":
        return EXACT
    step = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "float64": 2.0**-52}.get(dtype, 0.25)
    return Near(2, terms * step / 2)


COMBINES = """@triton.jit
def larger_square(a, b):
    return tl.where(a * a > b * b, a, b)


@triton.jit
def mean_of(n, m, k, l):
    total = n + k
    return total, (m * n + l * k) / total


@triton.jit
def last_of(a, i, b, j):
    later = j > i
    return tl.where(later, b, a), tl.where(later, j, i)


@triton.jit
def welford(mean, spread, weight, mean2, spread2, weight2):
    delta = mean2 - mean
    total = weight + weight2
    share = weight2 / total
    return mean + delta * share, spread + spread2 + delta * delta * weight * share, total


@triton.jit
def affine(a, b, c, d):
    return a * c, b * c + d


@triton.jit
def bounds(low, high, low2, high2):
    return tl.minimum(low, low2), tl.maximum(high, high2)


@triton.jit
def saturating(a, b):
    return tl.minimum(a + b, 100)


@triton.jit
def multiply_mod(a, b):
    return (a * b) % 65521


"""


def add_reductions(cases):
    for dtype in NUMBERS:
        for shape, axis in AXES:
            place, rest = f"{'x'.join(map(str, shape))}-axis{axis}-{dtype}", without(shape, axis)
            total, how = summed(dtype), "unit" if dtype in FLOATS else "any"
            rule = tolerance(dtype, shape[axis])
            transform(cases, "reduction", f"sum-{place}", f"tl.sum(a, {axis})", dtype, shape, total, rest, how, compare=rule)
            for name in ("max", "min"):
                expression = f"tl.{name}(a, {axis})"
                transform(cases, "reduction", f"{name}-{place}", expression, dtype, shape, dtype, rest, compare=SAME_VALUE)
            for name in ("argmax", "argmin"):
                expression = f"tl.{name}(a, {axis})"
                transform(cases, "reduction", f"{name}-{place}", expression, dtype, shape, "int32", rest, "small")
            if dtype in INTS:
                expression = f"tl.xor_sum(a, {axis})"
                transform(cases, "reduction", f"xor_sum-{place}", expression, dtype, shape, dtype, rest)
    for dtype in ("int32", "float32", "float16", "int16"):
        for shape, axis in AXES[:4]:
            place, rest = f"{'x'.join(map(str, shape))}-axis{axis}-{dtype}", without(shape, axis)
            for name in ("argmax", "argmin"):
                expression = f"tl.{name}(a, {axis}, tie_break_left=False)"
                # Without ties the order does not matter.
                transform(cases, "reduction", f"{name}-fast-{place}", expression, dtype, shape, "int32", rest, "shuffled")
            for name in ("max", "min"):
                for left in (True, False):
                    call = f"tl.{name}(a, {axis}, return_indices=True, return_indices_tie_break_left={left})"
                    at = index(rest) if rest else "0"
                    source = kernel(
                        [
                            f"a = tl.load(x + {index(shape)})",
                            f"value, place = {call}",
                            f"tl.store(out + {at}, value)",
                            f"tl.store(where + {at}, place)",
                        ],
                        ["x", "out", "where"],
                    )
                    args = {
                        "x": given(dtype, shape, "small" if left else "shuffled"),
                        "out": out(dtype, *(rest or (1,))),
                        "where": out("int32", *(rest or (1,))),
                    }
                    cases.add("reduction", f"{name}-indices-{left}-{place}", source, args)
            kept = tuple(1 if at == axis else size for at, size in enumerate(shape))
            if len(shape) > 1:
                for name in ("sum", "max", "argmin"):
                    result = {"sum": summed(dtype), "max": dtype, "argmin": "int32"}[name]
                    expression = f"tl.{name}(a, {axis}, keep_dims=True)"
                    rule = tolerance(dtype, shape[axis]) if name == "sum" else EXACT
                    transform(
                        cases,
                        "reduction",
                        f"{name}-kept-{place}",
                        expression,
                        dtype,
                        shape,
                        result,
                        kept,
                        "small",
                        compare=rule,
                    )
                expression = f"a - tl.max(a, {axis}, keep_dims=True)"
                transform(cases, "reduction", f"broadcast-{place}", expression, dtype, shape, dtype, shape, "small")
        for name, shape in SHAPES.items():
            expression = "tl.sum(a)" if len(shape) == 1 else "tl.sum(a, None)"
            rule = tolerance(dtype, count(shape))
            transform(
                cases,
                "reduction",
                f"sum-all-{name}-{dtype}",
                expression,
                dtype,
                shape,
                summed(dtype),
                (),
                "small",
                compare=rule,
            )
            transform(cases, "reduction", f"max-all-{name}-{dtype}", "tl.max(a)", dtype, shape, dtype, (), "small")
        for target in ("int64", "float32", "float64"):
            expression = f"tl.sum(a, 1, dtype=tl.{target})"
            rule = tolerance(target, 64)
            transform(
                cases,
                "reduction",
                f"sum-as-{target}-{dtype}",
                expression,
                dtype,
                (16, 64),
                target,
                (16,),
                "small",
                compare=rule,
            )
    for warps in (1, 2, 4, 8):
        for size in (1, 2, 16, 64, 2048):
            options = {"num_warps": warps}
            transform(
                cases,
                "reduction",
                f"sum-{size}-warps{warps}",
                "tl.sum(a, 0)",
                "int32",
                (size,),
                "int32",
                (),
                options=options,
            )
            shape = (2, size) if size > 16 else (64, size)
            transform(
                cases,
                "reduction",
                f"max-{shape[0]}x{size}-warps{warps}",
                "tl.max(a, 1)",
                "float32",
                shape,
                "float32",
                shape[:1],
                compare=SAME_VALUE,
                options=options,
            )
    add_custom_reductions(cases)


def add_custom_reductions(cases):
    for shape, axis in AXES:
        place, rest = f"{'x'.join(map(str, shape))}-axis{axis}", without(shape, axis)
        at = index(rest) if rest else "0"
        load = f"a = tl.load(x + {index(shape)})"
        outputs = {"out": out("float32", *(rest or (1,))), "more": out("float32", *(rest or (1,)))}
        both = [f"tl.store(out + {at}, p)", f"tl.store(more + {at}, q)"]
        x = {"x": given("float32", shape, "positive")}
        body = [load, f"p, q = tl.reduce((a * 0 + 1, a), {axis}, mean_of)", *both]
        source = kernel(body, ["x", "out", "more"], COMBINES)
        cases.add("reduction", f"mean-{place}", source, {**x, **outputs}, compare=Near(16, 1e-5))
        body = [load, f"p, q, w = tl.reduce((a, a * 0, a * 0 + 1), {axis}, welford)", *both]
        source = kernel(body, ["x", "out", "more"], COMBINES)
        cases.add("reduction", f"welford-{place}", source, {**x, **outputs}, compare=Near(64, 1e-4))
        body = [load, f"p, q = tl.reduce((a, a), {axis}, bounds)", *both]
        source = kernel(body, ["x", "out", "more"], COMBINES)
        cases.add("reduction", f"bounds-{place}", source, {"x": given("float32", shape, "normal"), **outputs})
        order = f"(({index(shape)}) * 7919 % 8191).to(tl.int32)"
        body = [load, f"p, q = tl.reduce((a, {order}), {axis}, last_of)", *both]
        source = kernel(body, ["x", "out", "more"], COMBINES)
        cases.add("reduction", f"last-{place}", source, {"x": given("float16", shape, "normal"), **outputs})
        for dtype in ("float32", "int64", "float16"):
            expression = f"tl.reduce(a, {axis}, larger_square)"
            how = "normal" if kind(dtype) == "float" else "range:1,1000000"
            transform(
                cases, "reduction", f"larger-square-{place}-{dtype}", expression, dtype, shape, dtype, rest, how, COMBINES
            )
        expression = f"tl.reduce(a, {axis}, multiply_mod)"
        transform(
            cases, "reduction", f"multiply-mod-{place}", expression, "int64", shape, "int64", rest, "range:1,65520", COMBINES
        )
        expression = f"tl.reduce_or(a > 3, {axis})"
        transform(cases, "reduction", f"or-{place}", expression, "int32", shape, "int1", rest, "small", needs=("reduce_or",))


def add_scans(cases):
    for dtype in NUMBERS:
        for at, (shape, axis) in enumerate([((256,), 0), ((32, 16), 0), ((8, 64), 1), ((4, 16, 4), 1)]):
            for name in ("cumsum", "cumprod"):
                for reverse in (False, True) if at < 3 else (at % 2 == 0,):
                    place = f"{'x'.join(map(str, shape))}-axis{axis}{'-reverse' if reverse else ''}-{dtype}"
                    expression = f"tl.{name}(a, {axis}, reverse={reverse})"
                    result = summed(dtype) if name == "cumsum" else dtype
                    if dtype == "bfloat16":
                        result = "float32" if name == "cumsum" else dtype
                    how = ("small" if dtype in INTS else "unit") if name == "cumsum" else "range:1,1"
                    if name == "cumprod":
                        how = "any" if dtype in INTS else "range:0.9,1.1"
                    rule = tolerance(dtype, shape[axis] * (1 if name == "cumsum" else 16))
                    transform(cases, "scan", f"{name}-{place}", expression, dtype, shape, result, shape, how, compare=rule)
    for shape, axis in [((512,), 0), ((64, 8), 0), ((4, 128), 1), ((2, 8, 16), 2), ((16, 1), 0), ((1, 32), 1)]:
        for reverse in (False, True):
            place = f"{'x'.join(map(str, shape))}-axis{axis}{'-reverse' if reverse else ''}"
            call = f"tl.associative_scan({{}}, {axis}, {{}}, reverse={reverse})"
            load, at = f"a = tl.load(x + {index(shape)})", index(shape)
            both = [f"tl.store(out + {at}, p)", f"tl.store(more + {at}, q)"]
            for name, first, second, rule in (
                ("affine", "a", "a * 0.5 + 1", Near(64, 1e-4)),
                ("bounds", "a", "a + 1", EXACT),
                ("last_of", "a", f"(({at}) * 7919 % 8191).to(tl.int32)", EXACT),
            ):
                body = [load, f"p, q = {call.format(f'({first}, {second})', name)}", *both]
                args = {
                    "x": given("float32", shape, "range:0.7,1.1"),
                    "out": out("float32", *shape),
                    "more": out("float32", *shape),
                }
                source = kernel(body, ["x", "out", "more"], COMBINES)
                cases.add("scan", f"{name}-{place}", source, args, compare=rule)
            for name, dtype, how in (
                ("saturating", "int32", "range:0,9"),
                ("multiply_mod", "int64", "range:1,65520"),
                ("larger_square", "float32", "normal"),
                ("larger_square", "float16", "normal"),
            ):
                expression = call.format("a", name)
                transform(cases, "scan", f"{name}-{place}-{dtype}", expression, dtype, shape, dtype, shape, how, COMBINES)
    for dtype, target in (("int8", "int64"), ("float16", "float32"), ("int32", "float32"), ("bfloat16", "float32")):
        expression = f"tl.cumsum(a, 0, dtype=tl.{target})"
        transform(
            cases,
            "scan",
            f"cumsum-as-{dtype}-{target}",
            expression,
            dtype,
            (128,),
            target,
            (128,),
            "small",
            compare=Near(2, 1e-4),
        )
    for warps in (1, 2, 4, 8):
        for size in (2, 32, 1024):
            expression, options = "tl.cumsum(a, 0)", {"num_warps": warps}
            transform(
                cases, "scan", f"cumsum-{size}-warps{warps}", expression, "int32", (size,), "int32", (size,), options=options
            )


def add_sorts(cases):
    for dtype in NUMBERS:
        how = "any" if dtype in INTS else "normal"
        for shape in ((64,), (4, 32)):
            for descending in (False, True):
                place = f"{'x'.join(map(str, shape))}-{'down' if descending else 'up'}-{dtype}"
                expression = f"tl.sort(a, descending={descending})"
                transform(cases, "sort", place, expression, dtype, shape, dtype, shape, how)
        expression = "tl.topk(a, 8)"
        transform(cases, "sort", f"topk-{dtype}", expression, dtype, (4, 64), dtype, (4, 8), how, needs=("topk",))
        transform(cases, "sort", f"flip-{dtype}", "tl.flip(a, 1)", dtype, (4, 32), dtype, (4, 32))
        expression, needs = "tl.topk(a, 4, descending=False)", ("topk.descending",)
        transform(cases, "sort", f"topk-least-{dtype}", expression, dtype, (8, 32), dtype, (8, 4), how, needs=needs)
    for name, shape, expression in (
        ("sort-16", (16,), "tl.sort(a)"),
        ("sort-2", (2,), "tl.sort(a, 0)"),
        ("sort-256", (256,), "tl.sort(a, 0, True)"),
        ("sort-3d", (2, 4, 16), "tl.sort(a, 2)"),
        ("topk-1d", (128,), "tl.topk(a, 4)"),
        ("flip-0", (16, 16), "tl.flip(a, 0)"),
        ("flip-1d", (128,), "tl.flip(a, 0)"),
        ("flip-middle", (2, 8, 16), "tl.flip(a, 1)"),
        ("flip-twice", (16, 16), "tl.flip(tl.flip(a, 0), 1)"),
    ):
        for dtype in ("int32", "float16"):
            result = (4,) if name == "topk-1d" else shape
            how = "any" if dtype in INTS else "normal"
            transform(cases, "sort", f"{name}-{dtype}", expression, dtype, shape, dtype, result, how)
    merged = "tl.bitonic_merge(tl.reshape(tl.join(a, 99 - a), (64,)), 0)"
    transform(cases, "sort", "bitonic_merge", merged, "int32", (32,), "int32", (64,), "count", needs=("bitonic_merge",))


def add_histograms(cases):
    for dtype in ("int32", "uint32"):
        for n, bins in ((64, 16), (512, 128), (1024, 2), (32, 64)):
            most = min(bins - 1, 120)
            place = f"{n}-into-{bins}-{dtype}"
            transform(
                cases, "histogram", place, f"tl.histogram(a, {bins})", dtype, (n,), "int32", (bins,), f"range:0,{most}"
            )
    for n, bins in ((256, 16), (128, 128)):
        expression = f"tl.histogram(a, {bins}, mask=({index((n,))}) % 3 != 0)"
        transform(cases, "histogram", f"masked-{n}", expression, "int32", (n,), "int32", (bins,), f"range:0,{bins - 1}")


def add_gathers(cases):
    shapes = [((64,), (64,), 0), ((32,), (128,), 0), ((16, 32), (16, 32), 1), ((32, 8), (32, 8), 0), ((16, 32), (16, 8), 1)]
    shapes += [((64, 4), (16, 4), 0), ((4, 8, 16), (4, 8, 16), 2), ((4, 8, 16), (4, 16, 16), 1), ((128, 64), (128, 64), 0)]
    for dtype in ("int8", "int32", "int64", "float16", "bfloat16", "float32", "float64", "int1", "float8e5"):
        for source, places, axis in shapes if dtype in ("int32", "float16") else shapes[2:5]:
            name = f"{'x'.join(map(str, source))}-by-{'x'.join(map(str, places))}-axis{axis}-{dtype}"
            body = [
                f"a = tl.load(x + {index(source)})",
                f"p = tl.load(at + {index(places)})",
                f"tl.store(out + {index(places)}, tl.gather(a, p, {axis}))",
            ]
            wide = "int64" if axis and dtype == "float32" else "int32"
            args = {
                "x": given(dtype, source),
                "at": given(wide, places, f"range:0,{source[axis] - 1}"),
                "out": out(dtype, *places),
            }
            cases.add("gather", name, kernel(body, ["x", "at", "out"]), args)


def add_joins(cases):
    pair = "b = tl.load(y + {at})"
    for dtype in ALL:
        for name, shape, result, expression in (
            ("join", (64,), (64, 2), "tl.join(a, b)"),
            ("join-2d", (8, 16), (8, 16, 2), "tl.join(a, b)"),
            ("interleave", (128,), (256,), "tl.interleave(a, b)"),
            ("interleave-2d", (8, 16), (8, 32), "tl.interleave(a, b)"),
        ):
            at = index(shape)
            body = [f"a = tl.load(x + {at})", pair.format(at=at), f"tl.store(out + {index(result)}, {expression})"]
            args = {"x": given(dtype, shape), "y": given(dtype, shape), "out": out(dtype, *result)}
            cases.add("join", f"{name}-{dtype}", kernel(body, ["x", "y", "out"]), args)
        for name, shape in (("split", (64, 2)), ("split-3d", (4, 16, 2)), ("split-view", (128,))):
            half = shape[:-1] if len(shape) > 1 else (64,)
            body = [f"a = tl.load(x + {index(shape)})"]
            body += ["p, q = tl.split(a)" if len(shape) > 1 else "p, q = tl.split(tl.reshape(a, (64, 2)))"]
            body += [f"tl.store(out + {index(half)}, p)", f"tl.store(more + {index(half)}, q)"]
            args = {"x": given(dtype, shape), "out": out(dtype, *half), "more": out(dtype, *half)}
            cases.add("join", f"{name}-{dtype}", kernel(body, ["x", "out", "more"]), args)
        body = ["a = tl.load(x + tl.arange(0, 64))", "b = tl.load(y + tl.arange(0, 64))"]
        # The order of what is joined so is nobody's to say: sorted, it is known.
        if dtype in ("int32", "float32", "int8", "float16"):
            body += [f"tl.store(out + {index((128,))}, tl.sort(tl.cat(a, b, can_reorder=True)))"]
            args = {"x": given(dtype, 64, "unit"), "y": given(dtype, 64, "unit"), "out": out(dtype, 128)}
            cases.add("join", f"cat-{dtype}", kernel(body, ["x", "y", "out"]), args, compare=SAME_VALUE)
    for dtype in ("int32", "float16", "float64"):
        for dim, shape, result in ((0, (32,), (64,)), (0, (8, 16), (16, 16)), (1, (8, 16), (8, 32))):
            at = index(shape)
            body = [
                f"a = tl.load(x + {at})",
                pair.format(at=at),
                f"tl.store(out + {index(result)}, tl.cat(a, b, dim={dim}))",
            ]
            args = {"x": given(dtype, shape), "y": given(dtype, shape), "out": out(dtype, *result)}
            name = f"cat-dim{dim}-{len(shape)}d-{dtype}"
            cases.add("join", name, kernel(body, ["x", "y", "out"]), args, needs=("cat.dim",))


# Name, shape before, shape after, expression of `a`.
MOVES = [
    ("reshape-up", (512,), (16, 32), "tl.reshape(a, (16, 32))"),
    ("reshape-down", (16, 32), (512,), "tl.reshape(a, (512,))"),
    ("reshape-3d", (32, 16), (4, 8, 16), "a.reshape(4, 8, 16)"),
    ("reshape-cross", (8, 64), (32, 16), "tl.reshape(a, 32, 16)"),
    ("ravel", (4, 8, 16), (512,), "tl.ravel(a)"),
    ("trans", (32, 16), (16, 32), "tl.trans(a)"),
    ("trans-member", (16, 64), (64, 16), "a.T"),
    ("permute", (4, 8, 16), (16, 4, 8), "tl.permute(a, (2, 0, 1))"),
    ("permute-102", (4, 8, 16), (8, 4, 16), "tl.permute(a, 1, 0, 2)"),
    ("permute-210", (4, 8, 16), (16, 8, 4), "a.permute(2, 1, 0)"),
    ("permute-021", (4, 8, 16), (4, 16, 8), "tl.trans(a, 0, 2, 1)"),
    ("permute-4d", (2, 4, 8, 4), (8, 2, 4, 4), "tl.permute(a, (2, 0, 3, 1))"),
    ("trans-reshape", (16, 32), (64, 8), "tl.reshape(tl.trans(a), (64, 8))"),
    ("expand-0", (64,), (1, 64), "tl.expand_dims(a, 0)"),
    ("expand-1", (64,), (64, 1), "a[:, None]"),
    ("expand-many", (64,), (1, 64, 1), "tl.expand_dims(a, (0, 2))"),
    ("broadcast-rows", (16,), (32, 16), "tl.broadcast_to(a[None, :], (32, 16))"),
    ("broadcast-columns", (32,), (32, 16), "tl.broadcast_to(a[:, None], 32, 16)"),
    ("broadcast-3d", (8,), (4, 8, 16), "tl.broadcast_to(a[None, :, None], (4, 8, 16))"),
    ("transposed-rows", (32,), (16, 32), "tl.trans(tl.broadcast_to(a[:, None], 32, 16))"),
    ("view", (64,), (8, 8), "tl.view(a, (8, 8))"),
    ("squeeze", (1, 64), (64,), "tl.reshape(a, (64,))"),
    ("tiny", (1,), (1,), "tl.reshape(a, (1,))"),
    ("one-warp-rows", (2, 2), (2, 2), "tl.trans(a)"),
    ("long", (4, 256), (256, 4), "tl.trans(a)"),
]


def add_moves(cases):
    for name, shape, result, expression in MOVES:
        for dtype in ("int8", "float16", "float32", "int64", "int1", "float8e4nv", "bfloat16", "uint16"):
            if name == "view":
                # A view may reorder; its sum does not.
                transform(
                    cases,
                    "move",
                    f"{name}-{dtype}",
                    "tl.sum(tl.sum(tl.view(a, (8, 8)).to(tl.float32), 0), 0)",
                    dtype,
                    shape,
                    "float32",
                    (),
                    "small",
                )
                continue
            transform(cases, "move", f"{name}-{dtype}", expression, dtype, shape, dtype, result)
    for dtype in ALL:
        for name, expression in {
            "zeros": f"tl.zeros((8, 16), tl.{dtype})",
            "full": f"tl.full((8, 16), 3, tl.{dtype})",
            "full-scalar": f"tl.full((8, 16), a, tl.{dtype})",
            "zeros_like": f"tl.zeros_like(tl.full((8, 16), 3, tl.{dtype}))",
        }.items():
            source = kernel(["a = tl.load(x)", f"tl.store(out + {index((8, 16))}, {expression})"], ["x", "out"])
            args = {"x": given(dtype, 1, "small"), "out": inout(dtype, (8, 16))}
            cases.add("move", f"{name}-{dtype}", source, args)
    for low, high in ((0, 1), (0, 16), (5, 13), (100, 1124)):
        body = [f"i = tl.arange({low}, {high})", f"tl.store(out + tl.arange(0, {high - low}), i)"]
        cases.add("move", f"arange-{low}-{high}", kernel(body, ["out"]), {"out": out("int32", high - low)})
    for name, shape, result, expression in (
        ("squeeze-member", (1, 64), (64,), "tl.squeeze(a, 0)"),
        ("unsqueeze", (64,), (64, 1), "tl.unsqueeze(a, 1)"),
    ):
        for dtype in ("float32", "int8"):
            transform(cases, "move", f"{name}-{dtype}", expression, dtype, shape, dtype, result, needs=("squeeze",))
    for dtype in ("float32", "int32"):
        expression = "tl.expect_zero(a, a == 0)"
        transform(cases, "move", f"expect_zero-{dtype}", expression, dtype, (64,), dtype, (64,), needs=("expect_zero",))
        expression = "tl.full((64,), tl.reshape(a, (1,)).item(), tl.float32)"
        transform(cases, "move", f"item-{dtype}", expression, dtype, (1,), "float32", (64,), "small")
    body = [
        "i = tl.arange(0, 8)[:, None]",
        "j = tl.arange(0, 16)[None, :]",
        "p, q = tl.swizzle2d(i, j, 8, 16, G)",
        "tl.store(out + i * 16 + j, p * 100 + q)",
    ]
    for group in (1, 2, 4, 8, 3):
        source = kernel(body, ["out", "G: tl.constexpr"])
        cases.add("move", f"swizzle2d-{group}", source, {"out": out("int32", 8, 16)}, constants={"G": group})
    body = [
        "a = tl.load(x + tl.arange(0, 16))",
        "b = tl.load(x + tl.arange(0, 8))",
        "p, q = tl.broadcast(a[None, :], b[:, None])",
        "tl.store(out + tl.arange(0, 8)[:, None] * 16 + tl.arange(0, 16)[None, :], p * 1000 + q)",
    ]
    cases.add("move", "broadcast-pair", kernel(body, ["x", "out"]), {"x": given("int32", 16), "out": out("int32", 8, 16)})
    # Layouts that change along the way: by rows, by columns, reduced, and back.
    for dtype in ("float32", "int32", "float16", "int64", "int8"):
        for rows, columns in ((16, 16), (64, 32), (8, 128), (128, 4)):
            at, turned = index((rows, columns)), index((columns, rows))
            body = [
                f"a = tl.load(x + {at})",
                "b = tl.trans(a)",
                "c = b + tl.max(a, 1)[None, :]",
                "d = tl.trans(c) - tl.min(b, 1)[None, :]",
                f"tl.store(out + {turned}, c)",
                f"tl.store(more + {at}, d)",
            ]
            args = {
                "x": given(dtype, (rows, columns), "small"),
                "out": out(dtype, columns, rows),
                "more": out(dtype, rows, columns),
            }
            cases.add("move", f"to-and-fro-{rows}x{columns}-{dtype}", kernel(body, ["x", "out", "more"]), args)
    for warps in (1, 2, 4, 8):
        body = [
            f"a = tl.load(x + {index((32, 32))})",
            "b = tl.reshape(tl.trans(tl.reshape(a, (4, 8, 32)), 2, 0, 1), (32, 32))",
            f"tl.store(out + {index((32, 32))}, b + tl.sum(a, 0)[None, :])",
        ]
        args = {"x": given("int32", (32, 32)), "out": out("int32", 32, 32)}
        cases.add("move", f"chain-warps{warps}", kernel(body, ["x", "out"]), args, options={"num_warps": warps})


def add_to(cases):
    add_reductions(cases)
    add_scans(cases)
    add_sorts(cases)
    add_histograms(cases)
    add_gathers(cases)
    add_joins(cases)
    add_moves(cases)
