"""Cases of values one by one: arithmetic, comparisons, promotions, mathematical functions and casts."""

from language_sweep_cases import (
    ALL,
    EXACT,
    FLOATS,
    FP8,
    INTS,
    NUMBERS,
    SAME_VALUE,
    Near,
    bits,
    given,
    is_signed,
    kind,
    limits,
    out,
)

N = 512

BINARY = """@triton.jit
def kernel(x, y, out, N: tl.constexpr):
    i = tl.arange(0, N)
    a = tl.load(x + i)
    b = tl.load(y + i)
    tl.store(out + i, {expression})
"""

UNARY = """@triton.jit
def kernel(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    a = tl.load(x + i)
    tl.store(out + i, {expression})
"""

TERNARY = """@triton.jit
def kernel(x, y, z, out, N: tl.constexpr):
    i = tl.arange(0, N)
    a = tl.load(x + i)
    b = tl.load(y + i)
    c = tl.load(z + i)
    tl.store(out + i, {expression})
"""

SCALAR = """@triton.jit
def kernel(x, s, out, N: tl.constexpr):
    i = tl.arange(0, N)
    a = tl.load(x + i)
    tl.store(out + i, {expression})
"""

ARITHMETIC = {"add": "a + b", "sub": "a - b", "mul": "a * b"}
COMPARISONS = {"eq": "a == b", "ne": "a != b", "lt": "a < b", "le": "a <= b", "gt": "a > b", "ge": "a >= b"}
BITWISE = {"and": "a & b", "or": "a | b", "xor": "a ^ b"}


def promoted(a, b):
    """The type of an operation of two: floats before integers, then the wider, then the unsigned."""
    kinds = {kind(a), kind(b)}
    if kinds == {"float", "int"}:
        return a if kind(a) == "float" else b
    if "float" in kinds:
        if a == b:
            return a
        wider = max(a, b, key=bits)
        return wider if bits(a) != bits(b) else "float32"
    if bits(a) != bits(b):
        return max(a, b, key=bits)
    return a if not is_signed(a) else b


def binary(cases, family, name, expression, a, b, result, how=("crossed", "tiled"), **details):
    args = {"x": given(a, N, how[0]), "y": given(b, N, how[1]), "out": out(result, N)}
    cases.add(family, name, BINARY.format(expression=expression), args, constants={"N": N}, **details)


def unary(cases, family, name, expression, a, result, how="edges", count=N, **details):
    args = {"x": given(a, count, how), "out": out(result, count)}
    cases.add(family, name, UNARY.format(expression=expression), args, constants={"N": count}, **details)


def divisors(dtype):
    return ("crossed", "nonzero") if kind(dtype) == "int" else ("crossed", "tiled")


def add_arithmetic(cases):
    for dtype in NUMBERS:
        for name, expression in ARITHMETIC.items():
            binary(cases, "arithmetic", f"{name}-{dtype}", expression, dtype, dtype, dtype)
    for dtype in NUMBERS:
        near = Near(2) if dtype == "float32" else Near(1)
        result = "float32" if dtype in INTS else dtype
        how = ("any", "nonzero") if dtype in INTS else ("crossed", "tiled")
        binary(cases, "division", f"truediv-{dtype}", "a / b", dtype, dtype, result, how, compare=near)
        how = divisors(dtype)
        # Remainders of floats are those of fmod: exact, but undefined in sign where they vanish.
        rule = SAME_VALUE if dtype in FLOATS else EXACT
        moderate = ("range:-90,90", "range:1,9") if dtype in FLOATS else how
        binary(cases, "division", f"mod-{dtype}", "a % b", dtype, dtype, dtype, moderate, compare=rule)
    for dtype in INTS:
        binary(cases, "division", f"floordiv-{dtype}", "a // b", dtype, dtype, dtype, divisors(dtype))
        if is_signed(dtype):
            how = ("range:-100,100", "range:-7,-1")
            binary(cases, "division", f"floordiv-negative-{dtype}", "a // b", dtype, dtype, dtype, how)
            binary(cases, "division", f"mod-negative-{dtype}", "a % b", dtype, dtype, dtype, how)
        binary(cases, "division", f"cdiv-{dtype}", "tl.cdiv(a, b)", dtype, dtype, dtype, ("positive", "positive"))
    for divisor in (1, 2, 3, 7, 10, 16, 100, 641, -1, -2, -5, -8):
        for dtype in ("int32", "int64", "uint32", "int8"):
            low, high = limits(dtype)
            if low <= divisor <= high and not (divisor < 0 and dtype == "uint32"):
                expression = f"(a // {divisor}) * 5 + a % {divisor}"
                how = "any" if divisor > 0 else "range:-120,120"
                unary(cases, "division", f"by-{divisor}-{dtype}", expression, dtype, dtype, how)
    for dtype in ("float32", "float64"):
        exact = "tl.div_rn(a, b)" if dtype == "float32" else "a / b"
        binary(cases, "division", f"div_rn-{dtype}", exact, dtype, dtype, dtype)
    binary(cases, "division", "fdiv-ieee-float32", "tl.fdiv(a, b, ieee_rounding=True)", "float32", "float32", "float32")
    binary(cases, "division", "fdiv-float32", "tl.fdiv(a, b)", "float32", "float32", "float32", compare=Near(2))


def add_comparisons(cases):
    for dtype in ("int1", *NUMBERS):
        for name, expression in COMPARISONS.items():
            binary(cases, "comparison", f"{name}-{dtype}", expression, dtype, dtype, "int1")
    for dtype in ("int32", "float32", "float16", "uint8"):
        unary(cases, "comparison", f"chained-{dtype}", "((a > 1) & (a < 7)) | (a == 0)", dtype, "int1")
        binary(cases, "comparison", f"logical-{dtype}", "(a > b) and (a != b) or not (b < a)", dtype, dtype, "int1")
        unary(cases, "comparison", f"sum-of-bools-{dtype}", "(a > 1).to(tl.int32) + (a < 7)", dtype, "int32")
    for a, b in (("int32", "uint32"), ("int64", "uint32"), ("int8", "uint8"), ("int32", "float32"), ("int64", "float16")):
        for name, expression in COMPARISONS.items():
            binary(cases, "comparison", f"{name}-{a}-{b}", expression, a, b, "int1")


def add_bitwise(cases):
    for dtype in ("int1", *INTS):
        for name, expression in BITWISE.items():
            binary(cases, "bitwise", f"{name}-{dtype}", expression, dtype, dtype, dtype)
        unary(cases, "bitwise", f"not-{dtype}", "~a", dtype, dtype)
    for dtype in INTS:
        how = ("any", f"range:0,{bits(dtype) - 1}")
        binary(cases, "bitwise", f"shl-{dtype}", "a << b", dtype, dtype, dtype, how)
        binary(cases, "bitwise", f"shr-{dtype}", "a >> b", dtype, dtype, dtype, how)
        unary(
            cases, "bitwise", f"shift-by-constants-{dtype}", f"(a << 3) ^ (a >> {bits(dtype) - 1}) ^ (a >> 1)", dtype, dtype
        )
    for dtype in ("int32", "int64", "uint32", "uint64"):
        binary(cases, "bitwise", f"umulhi-{dtype}", "tl.umulhi(a, b)", dtype, dtype, dtype)


def add_unary(cases):
    for dtype in NUMBERS:
        unary(cases, "unary", f"abs-{dtype}", "tl.abs(a)", dtype, dtype)
        unary(cases, "unary", f"neg-{dtype}", "-a", dtype, dtype, compare=SAME_VALUE)
        unary(cases, "unary", f"square-{dtype}", "a * a", dtype, dtype)
        unary(cases, "unary", f"twice-{dtype}", "a + a", dtype, dtype)
        unary(cases, "unary", f"nothing-{dtype}", "(a - a) * 3 + a * 1 + 0", dtype, dtype, "small")


def add_select(cases):
    for dtype in ALL:
        binary(cases, "select", f"where-{dtype}", "tl.where((i % 3) == 0, a, b)", dtype, dtype, dtype)
        unary(cases, "select", f"where-scalar-{dtype}", "tl.where(i > 100, a, 1)", dtype, dtype)
    for dtype in NUMBERS:
        for name in ("minimum", "maximum"):
            binary(cases, "select", f"{name}-{dtype}", f"tl.{name}(a, b)", dtype, dtype, dtype, compare=SAME_VALUE)
    for dtype in FLOATS:
        for mode in ("NONE", "ALL"):
            for name in ("minimum", "maximum"):
                expression = f"tl.{name}(a, b, propagate_nan=tl.PropagateNan.{mode})"
                binary(cases, "select", f"{name}-{mode}-{dtype}", expression, dtype, dtype, dtype, compare=SAME_VALUE)
            source = TERNARY.format(expression=f"tl.clamp(a, b, c, propagate_nan=tl.PropagateNan.{mode})")
            args = {
                "x": given(dtype, N, "edges"),
                "y": given(dtype, N, "range:-2,-1"),
                "z": given(dtype, N, "range:1,2"),
                "out": out(dtype, N),
            }
            cases.add("select", f"clamp-{mode}-{dtype}", source, args, constants={"N": N}, compare=SAME_VALUE)
            expression = f"tl.clamp(a, 0.0, 1.0, propagate_nan=tl.PropagateNan.{mode})"
            unary(cases, "select", f"clamp-constants-{mode}-{dtype}", expression, dtype, dtype, compare=SAME_VALUE)
        args = {"x": given(dtype, N), "y": given(dtype, N, "tiled"), "z": given(dtype, N, "crossed"), "out": out(dtype, N)}
        cases.add("select", f"fma-{dtype}", TERNARY.format(expression="tl.fma(a, b, c)"), args, constants={"N": N})
        sums = TERNARY.format(expression="a * b + c")
        rule = Near(2, 1e-2 if bits(dtype) == 16 else 1e-5)
        moderate = {name: given(dtype, N, "unit") for name in "xyz"}
        cases.add("select", f"muladd-{dtype}", sums, {**moderate, "out": out(dtype, N)}, constants={"N": N}, compare=rule)
        cases.add(
            "select",
            f"muladd-unfused-{dtype}",
            sums,
            {**moderate, "out": out(dtype, N)},
            constants={"N": N},
            options={"enable_fp_fusion": False},
        )
    for mixed in (
        ("int8", "int32"),
        ("float16", "float32"),
        ("int32", "float32"),
        ("bfloat16", "float16"),
        ("uint8", "int16"),
    ):
        result = promoted(*mixed)
        binary(cases, "select", f"where-{'-'.join(mixed)}", "tl.where(i % 2 == 0, a, b)", *mixed, result, ("small", "small"))
        name = f"maximum-{'-'.join(mixed)}"
        binary(cases, "select", name, "tl.maximum(a, b)", *mixed, result, ("positive", "positive"), compare=SAME_VALUE)


def add_promotions(cases):
    """Every pair of types, in small numbers that all of them have."""
    # Triton mixes 8-bit floats with wider floats alone.
    numbers = ("int1", *NUMBERS, *FP8)
    for a in numbers:
        for b in numbers:
            if a == b or a in FP8 and b not in FLOATS or b in FP8 and a not in FLOATS:
                continue
            result = promoted(a, b)
            for name, expression in (("mul-add", "a * b + a"), ("less", "a - b < b")):
                if "int1" in (a, b) and name == "less":
                    continue
                target = "int1" if name == "less" else result
                how = ("positive" if kind(a) == "int" else "small", "positive" if kind(b) == "int" else "small")
                binary(cases, "promotion", f"{name}-{a}-{b}", expression, a, b, target, how, compare=SAME_VALUE)
    for a in INTS:
        for b in INTS:
            if a != b:
                result = promoted(a, b)
                binary(cases, "promotion", f"bits-{a}-{b}", "(a & b) | (a ^ b) >> 1", a, b, result)
                # Triton asks for equal signs in divisions.
                if is_signed(a) == is_signed(b):
                    expression = "a // b - a % b"
                    binary(cases, "promotion", f"divide-{a}-{b}", expression, a, b, result, ("range:0,100", "range:1,9"))
    for a in FLOATS:
        for b in FLOATS:
            if a != b:
                result = promoted(a, b)
                binary(cases, "promotion", f"edges-{a}-{b}", "a + b", a, b, result)


def add_scalars(cases):
    """A tensor and a parameter or a literal, on either side."""
    values = {"seven": 7, "one": 1, "sixteen": 16, "large": 2**31 - 1, "huge": 2**40 + 3, "minus": -3}
    for dtype in ("int8", "int32", "int64", "uint32", "float16", "bfloat16", "float32", "float64"):
        for name, value in values.items():
            wide = "int64" if name == "huge" else "int32"
            result = promoted(dtype, wide)
            args = {"x": given(dtype, N, "small" if dtype != "uint32" else "positive"), "s": value, "out": out(result, N)}
            source = SCALAR.format(expression="a + s")
            cases.add("scalar", f"add-{name}-{dtype}", source, args, constants={"N": N}, compare=Near(1))
            source = SCALAR.format(expression="s - a * s")
            rule = Near(4, abs(value) * 1e-2 if bits(dtype) == 16 else 0)
            if kind(dtype) == "int" or value < 100:
                cases.add("scalar", f"from-{name}-{dtype}", source, args, constants={"N": N}, compare=rule)
        args = {"x": given(dtype, N, "small"), "s": 2.5, "out": out(promoted(dtype, "float32"), N)}
        for name, expression in {"times": "a * s", "less": "tl.where(a < s, s, a)", "divided": "s / (a + 9)"}.items():
            source = SCALAR.format(expression=expression)
            cases.add("scalar", f"float-{name}-{dtype}", source, args, constants={"N": N}, compare=Near(2))
        for name, literal in {"int": "3", "float": "1.5", "wide": "(1 << 33)", "bool": "True"}.items():
            for side, expression in {"right": f"a + {literal}", "left": f"{literal} * a"}.items():
                result = (
                    dtype if name in ("int", "bool") or kind(dtype) == "float" else "float32" if name == "float" else "int64"
                )
                if name == "wide" and bits(dtype) < 64 and (bits(dtype) < 32 or kind(dtype) == "int"):
                    continue
                unary(cases, "scalar", f"literal-{name}-{side}-{dtype}", expression, dtype, result, "small", compare=Near(1))
        for flag in (True, False):
            args = {"x": given(dtype, N, "small"), "s": flag, "out": out(dtype, N)}
            source = SCALAR.format(expression="tl.where(s, a, -a)" if dtype != "uint32" else "tl.where(s, a, a + 1)")
            cases.add("scalar", f"bool-{flag}-{dtype}", source, args, constants={"N": N}, compare=SAME_VALUE)


# Functions with the range in which they are compared, and units in the last place in float32. Where the hardware
# approximates, two implementations may differ in the last bits.
FUNCTIONS = {
    "exp": ("range:-80,80", 64),
    "exp2": ("range:-120,120", 4),
    "log": ("range:0.01,1000", 8),
    "log2": ("range:0.01,1000", 8),
    "sqrt": ("positive", 2),
    "rsqrt": ("positive", 2),
    "sin": ("range:-30,30", 4),
    "cos": ("range:-30,30", 4),
    "erf": ("range:-4,4", 4),
    "floor": ("edges", 0),
    "ceil": ("edges", 0),
    "abs": ("edges", 0),
    "sigmoid": ("range:-40,40", 64),
}


def add_math(cases):
    for name, (how, ulps) in FUNCTIONS.items():
        for dtype in FLOATS:
            rule = (
                Near(ulps if bits(dtype) > 16 else 1, 1e-6 if name in ("sin", "cos", "log", "log2") else 0)
                if ulps
                else EXACT
            )
            if bits(dtype) == 16:
                expression = f"tl.{name}(a.to(tl.float32))"
                unary(cases, "math", f"{name}-through-float32-{dtype}", expression, dtype, dtype, how, compare=rule)
                continue
            unary(cases, "math", f"{name}-{dtype}", f"tl.{name}(a)", dtype, dtype, how, compare=rule)
            if how != "edges":
                unary(cases, "math", f"{name}-edges-{dtype}", f"tl.{name}(a)", dtype, dtype, "edges", compare=rule)
    unary(cases, "math", "sqrt_rn-float32", "tl.sqrt_rn(a)", "float32", "float32")
    unary(cases, "math", "sqrt_rn-positive-float32", "tl.sqrt_rn(a)", "float32", "float32", "positive")
    unary(cases, "math", "sqrt-twice-float64", "tl.sqrt(a) * 2", "float64", "float64", "positive", 64)
    for name, expression in {
        "gelu": "0.5 * a * (1 + tl.erf(a * 0.70710678))",
        "silu": "a * tl.sigmoid(a)",
        "softplus": "tl.where(a > 20, a, tl.log(1 + tl.exp(a)))",
        "tanh": "2 * tl.sigmoid(2 * a) - 1",
        "normalized": "a * tl.rsqrt(tl.sum(a * a, 0) / N + 1e-5)",
        "standard": "(a - tl.sum(a, 0) / N) / tl.sqrt(tl.sum(a * a, 0) / N + 1.0)",
        "softmax": "tl.softmax(a)",
        "logsumexp": "a - tl.log(tl.sum(tl.exp(a), 0))",
    }.items():
        for dtype in ("float32", "float16", "bfloat16"):
            wide = expression if dtype == "float32" else f"({expression.replace('(a)', '(b)')})"
            source = UNARY.format(expression=wide).replace(
                "a = tl.load(x + i)", "a = tl.load(x + i).to(tl.float32)\n    b = a"
            )
            args = {"x": given(dtype, N, "range:-6,6"), "out": out(dtype, N)}
            rule = Near(64, 1e-5) if dtype == "float32" else Near(2, 1e-4)
            cases.add("math", f"{name}-{dtype}", source, args, constants={"N": N}, compare=rule)


def cast_range(source, target):
    """Numbers of one type that the other can hold: what lies outside has no meaning for floats to integers."""
    if kind(source) == "float" and kind(target) in ("int", "bool"):
        low, high = limits(target) if kind(target) == "int" else (0, 1)
        most = 400 if source == "float8e4nv" else 60000 if source == "float16" else 2.0**40
        fraction = {"float16": 10, "bfloat16": 7, "float32": 23, "float64": 52}.get(source, 2)
        near = 1 - 2.0**-fraction
        return f"range:{max(low, -most) * near},{min(high, most) * near}"
    return "edges"


def through(source, target):
    """A cast as Triton takes it: 8-bit floats convert to floats alone."""
    narrow = {source, target} & set(FP8) and {kind(source), kind(target)} != {"float"}
    return f"a.to(tl.float32).to(tl.{target})" if narrow else f"a.to(tl.{target})"


def add_casts(cases):
    for source in ALL:
        for target in ALL:
            if source != target:
                how = cast_range(source, target)
                # A small range: truth is all that an integer of one bit keeps.
                how = "small" if target == "int1" and kind(source) == "float" else how
                unary(cases, "cast", f"{source}-{target}", through(source, target), source, target, how, 256)
            if source != target and bits(source) == bits(target) and "int1" not in (source, target):
                expression = f"a.to(tl.{target}, bitcast=True)"
                unary(cases, "cast", f"bits-{source}-{target}", expression, source, target, "edges", 256)
            if kind(source) == "float" and kind(target) == "float" and bits(source) > bits(target):
                for mode in ("rtne", "rtz"):
                    expression = f"tl.cast(a, tl.{target}, fp_downcast_rounding='{mode}')"
                    unary(cases, "cast", f"{mode}-{source}-{target}", expression, source, target, "edges", 256)
    for target in ALL:
        # There and back; what lies outside of an unsigned type has no meaning.
        how = "small" if kind(target) == "float" or is_signed(target) else "positive"
        unary(cases, "cast", f"there-and-back-{target}", f"a.to(tl.{target}).to(tl.float32) + 1", "float32", "float32", how)
        expression = "(i % 100)" + through("int32", target)[1:]
        unary(cases, "cast", f"of-index-{target}", expression, "int8", target, count=128)
        unary(cases, "cast", f"stored-{target}", "a", "float32" if target in FP8 else "int8", target, "positive")
    for dtype in FP8:
        # All 256 numbers, and what lies between them.
        every = list(range(256))
        for target in ("float16", "bfloat16", "float32"):
            expression = f"a.to(tl.{dtype}, bitcast=True).to(tl.{target})"
            unary(cases, "cast", f"every-{dtype}-{target}", expression, "uint8", target, every, 256)
        for source in ("float16", "bfloat16", "float32"):
            for reach in ("-3,3", "-500,500", "-0.02,0.02", "-70000,70000"):
                if source == "float16" and reach == "-70000,70000":
                    reach = "-60000,60000"
                name = f"between-{reach.split(',')[1]}-{source}-{dtype}"
                unary(cases, "cast", name, f"a.to(tl.{dtype})", source, dtype, f"range:{reach}")
    source = """@triton.jit
def kernel(x, out, N: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    tl.store(out + i, {expression})
"""
    for target in ("float16", "bfloat16"):
        for result in ("float32", *FP8, "float64"):
            args = {"x": given("uint16", 65536, "count"), "out": out(result, 65536)}
            text = source.format(expression=f"tl.load(x + i).to(tl.{target}, bitcast=True).to(tl.{result})")
            cases.add("cast", f"every-{target}-{result}", text, args, constants={"N": 1024}, grid=(64,))


def add_to(cases):
    add_arithmetic(cases)
    add_comparisons(cases)
    add_bitwise(cases)
    add_unary(cases)
    add_select(cases)
    add_promotions(cases)
    add_scalars(cases)
    add_math(cases)
    add_casts(cases)
