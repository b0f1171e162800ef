"""Cases of control flow and calls, random numbers, inline assembly, and the functions of libdevice."""

from language_sweep_cases import EXACT, FLOATS, INTS, SAME_VALUE, Near, given, inout, kind, out
from language_sweep_tensors import index, kernel

N = 128

HELPERS = """@triton.jit
def twice(a):
    return a + a


@triton.jit(noinline=True)
def called(a, b):
    return a * 3 + b


@triton.jit(noinline=True)
def stores(p, a):
    tl.store(p, a)


@triton.jit(noinline=True)
def early(n):
    if n > 3:
        return n * 2
    return n - 7


@triton.jit(noinline=True)
def two_of(a, b):
    return a + b, a - b


@triton.jit
def recursive(a, K: tl.constexpr):
    if K == 0:
        return a
    else:
        return recursive(a * 2 + K, K - 1)


@triton.jit
def pair(a):
    return a + 1, (a * 2, a - 1)


@triton.jit
def applied(f: tl.constexpr, a):
    return f(a)


@triton.jit
def with_default(a, scale=3, K: tl.constexpr = 2):
    return a * scale + K


@triton.jit
def total_of(xs):
    total = xs[0]
    for k in tl.static_range(1, len(xs)):
        total += xs[k]
    return total


@triton.constexpr_function
def square(n):
    return n * n


"""

START = ["i = tl.arange(0, 128)", "a = tl.load(x + i)"]

# Bodies that leave a result in `a`, of `x`, `n` and `m`.
BODIES = {
    "for": ["for k in range(n):", "    a = a * 3 + k"],
    "for-bounds": ["for k in range(n, m):", "    a += k * k"],
    "for-step": ["for k in range(n, m * 3, 5):", "    a = a * 2 + k"],
    "for-runtime-step": ["for k in range(0, m, n + 1):", "    a ^= k"],
    "for-down": ["for k in range(m, n, -1):", "    a = a * 3 + k"],
    "for-down-step": ["for k in range(m, -m, -3):", "    a = a * 3 + k"],
    "for-never": ["for k in range(m, n):", "    a = a * 5 + 1"],
    "for-int64": ["for k in range(tl.full((), n, tl.int64), m):", "    a += k.to(tl.int32) * 7"],
    "for-nested": ["for k in range(n):", "    for l in range(k, m):", "        a = a * 3 + l - k"],
    "for-index": ["last = 0", "for k in range(m):", "    last = k", "    a += last", "a += last * 100"],
    "for-two": ["b = a * 2", "for k in range(m):", "    a, b = b, a + b", "a = a ^ b"],
    "for-three": [
        "b = a + 1",
        "c = a * 2",
        "for k in range(m):",
        "    t = a",
        "    a = b + 1",
        "    b = c * 3",
        "    c = t",
        "a = a + b * 7 + c * 13",
    ],
    "for-scalar": ["s = n", "for k in range(m):", "    s = s * 3 + k", "a += s"],
    "for-if": ["for k in range(m):", "    if k % 2 == 0:", "        a += k", "    else:", "        a = a * 3"],
    "for-load": ["for k in range(m):", "    a += tl.load(x + (i + k) % 128)"],
    "for-pointer": ["p = x + i", "for k in range(3):", "    a += tl.load(p, i < 128 - k, 0)", "    p += 1"],
    "for-store": ["for k in range(m):", "    tl.store(more + k * 128 + i, a * k)"],
    "for-reduce": ["for k in range(m):", "    a = a * 3 + tl.max(a, 0) // 2"],
    "for-scan": ["for k in range(3):", "    a = tl.cumsum(a, 0) % 1000"],
    "while": ["k = n", "while k < m:", "    a = a * 3 + k", "    k += 2"],
    "while-halving": ["k = m * 100", "while k > 0:", "    a += k", "    k = k // 2"],
    "while-and": ["k = 0", "while (k < m) & (k * k < 50):", "    a = a + k", "    k += 1"],
    "while-nested": [
        "k = 0",
        "while k < n:",
        "    l = 0",
        "    while l < k + 2:",
        "        a = a * 3 + l",
        "        l += 1",
        "    k += 1",
    ],
    "while-most": ["k = n", "while k <= m:", "    a = a * 3 + k", "    k += 3"],
    "while-mirrored": ["k = n - 10", "while m > k:", "    a = a * 3 + k", "    k = 4 + k", "a += k * 100"],
    "while-down": ["left = m", "while left > 0:", "    a = a * 3 + left", "    left -= 2"],
    "while-down-to": [
        "left = m * 2",
        "at = n",
        "while 3 <= left:",
        "    a = a * 3 + left - at",
        "    left -= 2",
        "    at += 2",
        "a += left * 7 + at * 100",
    ],
    "while-blocks": ["s = 0", "while s + 3 <= m:", "    a = a * 3 + s", "    s += 3", "a += s * 100"],
    "while-pages": ["page = 0", "while page * 2 < m:", "    a += tl.load(x + (i + page) % 128)", "    page += 1"],
    "while-program-turns": ["t = tl.program_id(0)", "while t < m * 2:", "    a = a * 3 + t", "    t += tl.num_programs(0)"],
    "while-int64": ["k = tl.full((), n, tl.int64)", "while k < m * 2:", "    a += k.to(tl.int32) * 7", "    k += 3"],
    "while-tensor": ["s = tl.sum(a, 0)", "while s > 10:", "    a = a // 2", "    s = tl.sum(a, 0)"],
    "while-false": ["while m > 1000:", "    a += 1"],
    "if": ["if n > 3:", "    a = a * 2"],
    "if-else": ["if n > 3:", "    a = a * 2", "else:", "    a = a - 5"],
    "if-chain": [
        "if n == 1:",
        "    a = a + 1",
        "elif n == 4:",
        "    a = a + 2",
        "elif m > 3:",
        "    a = a * 7",
        "else:",
        "    a = a - 9",
    ],
    "if-nested": [
        "if n > 2:",
        "    if m > 6:",
        "        a = a + 1",
        "    else:",
        "        a = a * 2",
        "else:",
        "    a = -a",
    ],
    "if-two": ["b = a", "if n > 3:", "    a = a * 2", "    b = b + 1", "else:", "    b = b * 3", "a = a ^ b"],
    "if-scalar": ["if n % 2 == 0:", "    s = m", "else:", "    s = -m", "a += s"],
    "if-of-load": ["if tl.load(x) > 2:", "    a = a + 100"],
    "if-store": ["if n > 3:", "    tl.store(more + i, a)"],
    "if-shape": ["if n > 3:", "    s = tl.max(a, 0)", "else:", "    s = tl.min(a, 0)", "a = a * 2 + s"],
    "if-and-or": ["if n > 3 and m > 3 or n == 1:", "    a = a + 17"],
    "if-not": ["if not (n > 3):", "    a = a + 17"],
    "if-expression": ["s = 5 if n > 3 else m", "a = a * s"],
    "if-tensor-expression": ["a = a * 2 if n > 3 else a + 1"],
    "if-program": ["if tl.program_id(0) == 1:", "    a = a * 2", "else:", "    a = a + tl.program_id(0)"],
    "if-loop": [
        "if n > 3:",
        "    for k in range(m):",
        "        a = a * 3 + k",
        "else:",
        "    for k in range(n):",
        "        a = a - k",
    ],
    "if-pointer": ["p = x + i", "if n > 3:", "    p = x + 127 - i", "a = a * 3 + tl.load(p)"],
    "early-return": ["if n > 3:", "    tl.store(out + i, a)", "    return", "a = a * 5"],
    "early-return-program": ["if tl.program_id(0) % 2 == 1:", "    return", "a = a * 5"],
    "static-range": ["for k in tl.static_range(4):", "    a = a * 3 + k"],
    "static-range-step": ["for k in tl.static_range(8, 0, -3):", "    a = a * 3 + k"],
    "static-nested": ["for k in tl.static_range(2):", "    for l in tl.static_range(3):", "        a = a * 3 + l * k"],
    "constexpr-if": ["if K > 2:", "    a = a * K", "else:", "    a = a + K"],
    "constexpr-arithmetic": ["L: tl.constexpr = K * 2 + 1", "a = a * L + (K // 2) - (K % 3)"],
    "constexpr-function": ["a = a * square(K) + tl.full((square(2),), 1, tl.int32).shape[0]"],
    "static-assert": ["tl.static_assert(K > 1)", "tl.static_assert(a.shape[0] == 128, 'a row')", "a = a + 1"],
    "device-assert": ["tl.device_assert(n > 0, 'positive')", "tl.device_assert(a == a, 'itself')", "a = a + 1"],
    "barrier": ["tl.debug_barrier()", "a = a + 1", "tl.debug_barrier()"],
    "inline": ["a = twice(twice(a))"],
    "noinline-scalar": ["a = a + called(n, m)"],
    "noinline-loop": ["s = n", "for k in range(m):", "    s = called(s, k)", "a += s"],
    "noinline-twice": ["a += called(called(n, m), m)"],
    "noinline-stores": ["stores(more + n, m * 2)", "stores(more, tl.sum(a, 0))"],
    "noinline-early": ["a = a + early(n)"],
    "noinline-two": ["p, q = two_of(n, m)", "a += p * 3 + q"],
    "noinline-if": ["if n > 3:", "    s = called(n, 1)", "else:", "    s = called(m, n)", "a *= s"],
    "recursive": ["a = recursive(a, K)"],
    "function-passed": ["a = applied(twice, a)"],
    "defaults": ["a = with_default(a) + with_default(a, 5) + with_default(a, K=7, scale=n)"],
    "tuple": ["t = (a, n, 3)", "a = t[0] * t[1] + t[2]"],
    "tuple-nested": ["p, (q, r) = pair(a)", "a = p * 100 + q * 10 + r"],
    "tuple-length": ["t = (a, a + 1, a * 2)", "a = total_of(t) + len(t)"],
    "tuple-loop": ["t = (a, n)", "for k in range(m):", "    t = (t[0] * 3 + t[1], t[1] + k)", "a = t[0] + t[1]"],
    "tuple-if": ["t = (a, n)", "if n > 3:", "    t = (a * 2, m)", "a = t[0] * t[1]"],
    "tuple-sum": ["t = (1, 2) + (n, a)", "a = t[0] + t[1] * t[2] + t[3]"],
    "pointers-swap": [
        "p = x + i",
        "q = x + 127 - i",
        "for k in range(m):",
        "    p, q = q, p",
        "a = tl.load(p) * 3 + tl.load(q)",
    ],
    "in-place": ["a += 3", "a *= 2", "a -= n", "a //= 3", "a %= 50", "a |= 64", "a &= 127", "a ^= 5", "a <<= 2", "a >>= 1"],
    "unused": ["b = tl.load(x + i + 0) * 2", "a = a + 0"],
    "chained-comparison": ["a = tl.where((a > n) & (a < m * 5), a, -a)"],
    "scalars": ["s = n * m - (n // 2) + (m % 3) ** 2 if K > 100 else n * m + min(n, m) * max(n, 3)", "a += s"],
    "scalar-float": ["s = n * 0.5 + m / 4", "a = (a * s).to(tl.int32)"],
    "scalar-bool": ["s = (n > 3) & (m > 3)", "a = a + s.to(tl.int32)"],
    "map": ["a = tl.map_elementwise(twice, a)"],
    "cdiv": ["a = a + tl.cdiv(m * 10, n) + tl.cdiv(K, 2)"],
    "dead-branch": ["if K == 99:", "    a = nothing_of_this_name", "a = a + 1"],
    "item-shapes": ["a = a + a.shape[0] + a.numel"],
    "range-stages": ["for k in tl.range(0, m, num_stages=3):", "    a += tl.load(x + (i + k) % 128)"],
    "range-unrolled": ["for k in tl.range(0, m, loop_unroll_factor=4):", "    a = a * 3 + tl.load(x + (i + k) % 128)"],
    "range-unrolled-odd": ["for k in tl.range(n, m * 2, 3, loop_unroll_factor=2):", "    a = a * 3 + k"],
    "range-flatten": ["for k in tl.range(0, n, flatten=True):", "    for l in range(0, m):", "        a = a * 3 + l + k"],
    "range-flatten-load": [
        "for k in tl.range(0, n, flatten=True):",
        "    b = a * 0",
        "    for l in range(0, m):",
        "        b += tl.load(x + (i + l) % 128)",
        "    tl.store(more + k * 128 + i, b)",
    ],
    "range-licm": ["for k in tl.range(0, m, disable_licm=True):", "    a = a + tl.load(x) * k"],
    "range-single": [
        "for k in tl.range(0, m, num_stages=2, disallow_acc_multi_buffer=True):",
        "    a += tl.load(x + (i + k) % 128)",
    ],
    "range-specialized": ["for k in tl.range(0, m, warp_specialize=True):", "    a += tl.load(x + (i + k) % 128)"],
}
NEEDS = {
    "map": ("map_elementwise",),
    "range-flatten": ("range.flatten",),
    "range-flatten-load": ("range.flatten",),
    "range-licm": ("range.disable_licm",),
    "range-specialized": ("range.warp_specialize",),
    "constexpr-function": ("constexpr_function",),
}


def add_flow(cases):
    for name, body in BODIES.items():
        runs = ((1, 4), (4, 7), (7, 8)) if "n" in " ".join(body) else ((1, 4),)
        for n, m in runs:
            store = ["tl.store(out + tl.program_id(0) * 128 + i, a)"]
            source = kernel(START + body + store, ["x", "out", "more", "n", "m", "K: tl.constexpr"], HELPERS)
            args = {
                "x": given("int32", N, "range:0,9"),
                "out": inout("int32", 3 * N, "zeros"),
                "more": inout("int32", 16 * N, "zeros"),
                "n": n,
                "m": m,
            }
            rule = EXACT
            grid = (3,) if "program" in name else (1,)
            needs = NEEDS.get(name, ())
            options = {"debug": True} if name == "device-assert" else {}
            cases.add(
                "flow",
                f"{name}-{n}-{m}",
                source,
                args,
                constants={"K": 3},
                grid=grid,
                options=options,
                compare=rule,
                needs=needs,
            )
    for name, body in BODIES.items():
        if name.startswith(("for-", "if-", "while-", "tuple-")) and not any(
            mark in " ".join(body) for mark in ("^", "%", "int", "//")
        ):
            source = kernel(
                START + body + ["tl.store(out + i, a)"], ["x", "out", "more", "n", "m", "K: tl.constexpr"], HELPERS
            )
            args = {
                "x": given("float32", N, "small"),
                "out": out("float32", 3 * N),
                "more": inout("float32", 16 * N, "zeros"),
                "n": 4,
                "m": 5,
            }
            needs = NEEDS.get(name, ())
            cases.add("flow", f"{name}-float32", source, args, constants={"K": 3}, compare=Near(8), needs=needs)
    # A loop whose loads are pipelined, for every number of stages and of iterations.
    body = [
        "i = tl.arange(0, 64)",
        "total = tl.zeros((64,), tl.float32)",
        "for k in tl.range(0, n, 1, num_stages=STAGES):",
        "    p = tl.load(at + k)",
        "    total = total * 0.5 + tl.load(x + p * 64 + i).to(tl.float32)",
        "tl.store(out + i, total)",
    ]
    for stages in (1, 2, 3, 4):
        for n in (0, 1, 2, 3, 9):
            for dtype in ("float16", "float32"):
                args = {
                    "x": given(dtype, (16, 64), "small"),
                    "at": given("int32", 16, "range:0,15"),
                    "out": out("float32", 64),
                    "n": n,
                }
                source = kernel(body, ["x", "at", "out", "n", "STAGES: tl.constexpr"])
                cases.add(
                    "flow",
                    f"pipelined-{stages}-{n}-{dtype}",
                    source,
                    args,
                    constants={"STAGES": stages},
                    options={"num_stages": stages},
                )
    # A persistent kernel: each program walks over tiles.
    for programs in (1, 3, 5):
        body = [
            "for t in range(tl.program_id(0), tl.cdiv(n, B), tl.num_programs(0)):",
            "    i = t * B + tl.arange(0, B)",
            "    a = tl.load(x + i, i < n, 0)",
            "    tl.store(out + i, a * 2 + t, i < n)",
        ]
        args = {"x": given("int32", 1000, "unit"), "out": inout("int32", 1000), "n": 1000}
        cases.add(
            "flow",
            f"persistent-{programs}",
            kernel(body, ["x", "out", "n", "B: tl.constexpr"]),
            args,
            constants={"B": 64},
            grid=(programs,),
        )
    # Rows of any length, by tiles and by programs, with a reduction in between.
    for columns in (1, 31, 100, 257):
        for dtype in ("float32", "float16", "bfloat16"):
            body = [
                "r = tl.program_id(0)",
                "most = tl.full((64,), -float('inf'), tl.float32)",
                "for c in range(0, n, 64):",
                "    i = c + tl.arange(0, 64)",
                "    most = tl.maximum(most, tl.load(x + r * n + i, i < n, -float('inf')).to(tl.float32))",
                "top = tl.max(most, 0)",
                "total = 0.0",
                "for c in range(0, n, 64):",
                "    i = c + tl.arange(0, 64)",
                "    total += tl.sum(tl.exp(tl.load(x + r * n + i, i < n, -float('inf')).to(tl.float32) - top), 0)",
                "for c in range(0, n, 64):",
                "    i = c + tl.arange(0, 64)",
                "    a = tl.load(x + r * n + i, i < n, 0).to(tl.float32)",
                "    tl.store(out + r * n + i, tl.exp(a - top) / total, i < n)",
            ]
            args = {"x": given(dtype, (3, columns), "normal"), "out": inout(dtype, (3, columns)), "n": columns}
            rule = Near(64, 1e-6) if dtype == "float32" else Near(1, 1e-6)
            cases.add(
                "flow", f"softmax-by-tiles-{columns}-{dtype}", kernel(body, ["x", "out", "n"]), args, grid=(3,), compare=rule
            )
    for ctas in (1, 2, 4):
        body = [f"a = tl.load(x + {index((64, 64))})", f"tl.store(out + {index((64, 64))}, a + tl.sum(a, 1)[:, None])"]
        args = {"x": given("float32", (64, 64), "small"), "out": out("float32", 64, 64)}
        cases.add(
            "flow",
            f"ctas-{ctas}",
            kernel(body, ["x", "out"]),
            args,
            options={"num_ctas": ctas},
            needs=("cuda90",) if ctas > 1 else (),
        )


def add_random(cases):
    for name, expression, result, rule in (
        ("rand", "tl.rand(s, i)", "float32", EXACT),
        ("randn", "tl.randn(s, i)", "float32", Near(16, 1e-5)),
        ("randint", "tl.randint(s, i)", "uint32", EXACT),
        ("rand-rounds", "tl.rand(s, i, n_rounds=6)", "float32", EXACT),
        ("randint-int64", "tl.randint(s, i.to(tl.int64) + (1 << 40))", "uint64", EXACT),
        ("uniform", "tl.uint_to_uniform_float(tl.randint(s, i))", "float32", EXACT),
        ("dropout", "tl.where(tl.rand(s, i) > 0.3, i * 2.0, 0.0)", "float32", EXACT),
    ):
        for seed in (0, 1, 12345, 2**31 - 1, 2**40 + 7):
            source = kernel(["i = tl.arange(0, 256)", f"tl.store(out + i, {expression})"], ["out", "s"])
            cases.add("random", f"{name}-{seed}", source, {"out": out(result, 256), "s": seed}, compare=rule)
    for name, call, result, rule in (
        ("randint4x", "tl.randint4x(s, i)", "uint32", EXACT),
        ("rand4x", "tl.rand4x(s, i)", "float32", EXACT),
        ("randn4x", "tl.randn4x(s, i)", "float32", Near(16, 1e-5)),
        ("philox", "tl.philox(s, i, i * 3, 7, 9)", "uint32", EXACT),
        (
            "philox-int64",
            "tl.philox(s, i.to(tl.uint64), i.to(tl.uint64) << 33, i.to(tl.uint64), i.to(tl.uint64))",
            "uint64",
            EXACT,
        ),
    ):
        for seed in (5, 16, 2**33 + 1):
            stores = [f"tl.store(out + i * 4 + {at}, {part})" for at, part in enumerate("pqrt")]
            source = kernel(["i = tl.arange(0, 128)", f"p, q, r, t = {call}", *stores], ["out", "s"])
            cases.add("random", f"{name}-{seed}", source, {"out": out(result, 512), "s": seed}, compare=rule)


def add_assembly(cases):
    asm = "tl.inline_asm_elementwise({text!r}, {constraints!r}, [{operands}], dtype={dtype}, is_pure={pure}, pack={pack})"
    for name, text, constraints, operands, types, result, dtype, pack in (
        ("add", "add.s32 $0, $1, $2;", "=r,r,r", "a, b", ("int32", "int32"), "int32", "tl.int32", 1),
        ("xor", "lop3.b32 $0, $1, $2, 0, 0x3c;", "=r,r,r", "a, b", ("int32", "int32"), "int32", "tl.int32", 1),
        ("shift", "shf.l.wrap.b32 $0, $1, $2, 7;", "=r,r,r", "a, b", ("uint32", "uint32"), "uint32", "tl.uint32", 1),
        ("byte-adds", "add.u32 $0, $1, $2;", "=r,r,r", "a, b", ("uint8", "uint8"), "uint8", "tl.uint8", 4),
        ("half-max", "max.f16x2 $0, $1, $2;", "=r,r,r", "a, b", ("float16", "float16"), "float16", "tl.float16", 2),
        ("float-fma", "fma.rn.f32 $0, $1, $2, $1;", "=f,f,f", "a, b", ("float32", "float32"), "float32", "tl.float32", 1),
        ("double", "add.f64 $0, $1, $2;", "=d,d,d", "a, b", ("float64", "float64"), "float64", "tl.float64", 1),
        ("wide", "mul.wide.s32 $0, $1, $2;", "=l,r,r", "a, b", ("int32", "int32"), "int64", "tl.int64", 1),
        ("bits", "popc.b32 $0, $1;", "=r,r", "a", ("int32", "int32"), "int32", "tl.int32", 1),
        (
            "long",
            "{ .reg .b32 t; add.s32 t, $1, 5; mul.lo.s32 $0, t, $2; }",
            "=r,r,r",
            "a, b",
            ("int32", "int32"),
            "int32",
            "tl.int32",
            1,
        ),
        ("scalar", "add.s32 $0, $1, $2;", "=r,r,r", "a, 7", ("int32", "int32"), "int32", "tl.int32", 1),
        (
            "mixed",
            "cvt.rn.f32.s32 $0, $1; add.f32 $0, $0, $2;",
            "=&f,r,f",
            "a, b",
            ("int32", "float32"),
            "float32",
            "tl.float32",
            1,
        ),
    ):
        for pure in (True, False):
            call = asm.format(text=text, constraints=constraints, operands=operands, dtype=dtype, pure=pure, pack=pack)
            body = ["i = tl.arange(0, 256)", "a = tl.load(x + i)", "b = tl.load(y + i)", f"tl.store(out + i, {call})"]
            how = (
                "normal"
                if kind(types[0]) == "float"
                else "range:0,60"
                if types[0] == "uint8"
                else "unit"
                if name == "mixed"
                else "any"
            )
            args = {
                "x": given(types[0], 256, how),
                "y": given(types[1], 256, "normal" if kind(types[1]) == "float" else how),
                "out": out(result, 256),
            }
            cases.add("assembly", f"{name}{'' if pure else '-impure'}", kernel(body, list(args)), args, needs=("cuda",))
    call = asm.format(
        text="{ min.s32 $0, $2, $3; max.s32 $1, $2, $3; }",
        constraints="=&r,=r,r,r",
        operands="a, b",
        dtype="(tl.int32, tl.int32)",
        pure=True,
        pack=1,
    )
    for size in (128, 32, 16):
        body = [f"i = tl.arange(0, {size})", "a = tl.load(x + i)", "b = tl.load(y + i)", f"p, q = {call}"]
        body += ["tl.store(out + i, p)", "tl.store(more + i, q)"]
        args = {"x": given("int32", size), "y": given("int32", size), "out": out("int32", size), "more": out("int32", size)}
        cases.add("assembly", f"two-results-{size}", kernel(body, list(args)), args, needs=("cuda",))


# Functions of libdevice: range of the operands and units in the last place.
LIBDEVICE = {
    "float": {
        "acos": "range:-1,1",
        "acosh": "range:1,50",
        "asin": "range:-1,1",
        "asinh": "range:-9,9",
        "atan": "range:-9,9",
        "atanh": "range:-0.99,0.99",
        "cbrt": "range:-9,9",
        "ceil": "edges",
        "cos": "range:-9,9",
        "cosh": "range:-9,9",
        "cospi": "range:-9,9",
        "cyl_bessel_i0": "range:-5,5",
        "cyl_bessel_i1": "range:-5,5",
        "erf": "range:-3,3",
        "erfc": "range:-3,3",
        "erfcinv": "range:0.05,1.95",
        "erfcx": "range:-2,5",
        "erfinv": "range:-0.95,0.95",
        "exp": "range:-9,9",
        "exp10": "range:-9,9",
        "exp2": "range:-9,9",
        "expm1": "range:-3,3",
        "floor": "edges",
        "j0": "range:0.1,9",
        "j1": "range:0.1,9",
        "lgamma": "range:0.1,20",
        "log": "positive",
        "log10": "positive",
        "log1p": "positive",
        "log2": "positive",
        "logb": "positive",
        "nearbyint": "edges",
        "normcdf": "range:-3,3",
        "normcdfinv": "range:0.05,0.95",
        "rcbrt": "positive",
        "rint": "edges",
        "round": "range:-99,99",
        "rsqrt": "positive",
        "sin": "range:-9,9",
        "sinh": "range:-5,5",
        "sinpi": "range:-9,9",
        "sqrt": "positive",
        "tan": "range:-1.5,1.5",
        "tanh": "range:-5,5",
        "tgamma": "range:0.5,9",
        "trunc": "edges",
        "y0": "range:0.1,9",
        "y1": "range:0.1,9",
        "rcp_rn": "positive",
        "rcp_rd": "positive",
        "rcp_ru": "positive",
        "rcp_rz": "positive",
        "sqrt_rn": "positive",
        "sqrt_rd": "positive",
        "sqrt_ru": "positive",
        "sqrt_rz": "positive",
        "abs": "edges",
    },
    "floats": {
        "atan2": "unit",
        "copysign": "normal",
        "div_rn": "normal",
        "div_rd": "normal",
        "div_ru": "normal",
        "div_rz": "normal",
        "add_rn": "normal",
        "add_rd": "normal",
        "add_ru": "normal",
        "add_rz": "normal",
        "mul_rn": "normal",
        "mul_rd": "normal",
        "mul_ru": "normal",
        "mul_rz": "normal",
        "fdim": "normal",
        "fmod": "normal",
        "hypot": "normal",
        "nextafter": "normal",
        "pow": "positive",
        "remainder": "normal",
        "rhypot": "normal",
    },
    "float32": {
        "fast_cosf": "range:-3,3",
        "fast_sinf": "range:-3,3",
        "fast_expf": "range:-9,9",
        "fast_exp10f": "range:-9,9",
        "fast_log10f": "positive",
        "fast_log2f": "positive",
        "fast_logf": "positive",
        "fast_tanf": "range:-1,1",
        "saturatef": "normal",
        "rsqrt_rn": "positive",
    },
    "to": {
        "float2int_rn": ("float32", "int32"),
        "float2int_rd": ("float32", "int32"),
        "float2int_ru": ("float32", "int32"),
        "float2int_rz": ("float32", "int32"),
        "float2uint_rn": ("float32", "int32"),
        "float2ll_rn": ("float32", "int64"),
        "float2ll_rz": ("float32", "int64"),
        "double2int_rn": ("float64", "int32"),
        "double2float_rz": ("float64", "float32"),
        "double2float_rn": ("float64", "float32"),
        "double2ll_rn": ("float64", "int64"),
        "double2hiint": ("float64", "int32"),
        "double2loint": ("float64", "int32"),
        "float_as_int": ("float32", "int32"),
        "int_as_float": ("int32", "float32"),
        "int2float_rn": ("int32", "float32"),
        "int2float_rz": ("int32", "float32"),
        "int2double_rn": ("int32", "float64"),
        "ll2float_rn": ("int64", "float32"),
        "ll2double_rn": ("int64", "float64"),
        "uint2float_rn": ("uint32", "float32"),
        "double_as_longlong": ("float64", "int64"),
        "longlong_as_double": ("int64", "float64"),
        "ull2double_rn": ("uint64", "float64"),
        "isnan": ("float32", "int32"),
        "isinf": ("float32", "int32"),
        "signbit": ("float32", "int32"),
        "finitef": ("float32", "int32"),
        "ilogb": ("float32", "int32"),
        "isfinited": ("float64", "int32"),
        "llrint": ("float32", "int64"),
        "llround": ("float32", "int64"),
        "popc": ("int32", "int32"),
        "clz": ("int32", "int32"),
        "brev": ("int32", "int32"),
        "ffs": ("int32", "int32"),
    },
}
EXACT_FUNCTIONS = (
    "ceil",
    "floor",
    "nearbyint",
    "rint",
    "round",
    "trunc",
    "copysign",
    "fdim",
    "nextafter",
    "abs",
    "saturatef",
    "logb",
)


def add_libdevice(cases):
    def rule(name, dtype):
        if name in EXACT_FUNCTIONS or name.endswith(("_rn", "_rd", "_ru", "_rz")):
            return SAME_VALUE
        # The same library for both, but contractions and approximations of its callers may differ.
        return Near(4, 1e-6 if dtype == "float32" else 1e-14)

    load, store = ["i = tl.arange(0, 128)", "a = tl.load(x + i)"], "tl.store(out + i, libdevice.{call})"
    for name, how in LIBDEVICE["float"].items():
        for dtype in ("float32", "float64"):
            args = {"x": given(dtype, N, how), "out": out(dtype, N)}
            source = kernel([*load, store.format(call=f"{name}(a)")], ["x", "out"])
            cases.add("libdevice", f"{name}-{dtype}", source, args, compare=rule(name, dtype), needs=(f"libdevice.{name}",))
    for name, how in LIBDEVICE["floats"].items():
        for dtype in ("float32", "float64"):
            args = {"x": given(dtype, N, how), "y": given(dtype, N, how), "out": out(dtype, N)}
            source = kernel([*load, "b = tl.load(y + i)", store.format(call=f"{name}(a, b)")], ["x", "y", "out"])
            cases.add("libdevice", f"{name}-{dtype}", source, args, compare=rule(name, dtype), needs=(f"libdevice.{name}",))
    for name, how in LIBDEVICE["float32"].items():
        args = {"x": given("float32", N, how), "out": out("float32", N)}
        source = kernel([*load, store.format(call=f"{name}(a)")], ["x", "out"])
        cases.add("libdevice", f"{name}-float32", source, args, compare=rule(name, "float32"), needs=(f"libdevice.{name}",))
    for name, (source_type, result) in LIBDEVICE["to"].items():
        how = (
            "any"
            if kind(source_type) == "int" or name.startswith(("is", "sign", "finite")) or "_as_" in name
            else "range:0,30000"
        )
        args = {"x": given(source_type, N, how), "out": out(result, N)}
        source = kernel([*load, store.format(call=f"{name}(a)")], ["x", "out"])
        cases.add("libdevice", f"{name}-{source_type}", source, args, compare=SAME_VALUE, needs=(f"libdevice.{name}",))
    for name, call, dtypes in (
        ("fma", "fma(a, b, a)", ("float32", "float64")),
        ("fma_rz", "fma_rz(a, b, a)", ("float32", "float64")),
        ("mulhi", "mulhi(a, b)", ("int32", "int64", "uint32", "uint64")),
        ("mul24", "mul24(a, b)", ("int32", "uint32")),
        ("hadd", "hadd(a, b)", ("int32", "uint32")),
        ("rhadd", "rhadd(a, b)", ("int32", "uint32")),
        ("sad", "sad(a, b, (a ^ b).to(tl.uint32))", ("int32",)),
        ("byte_perm", "byte_perm(a, b, i)", ("int32",)),
        ("abs", "abs(a)", ("int32", "int64")),
        ("norm3d", "norm3d(a, b, a)", ("float32", "float64")),
        ("norm4d", "norm4d(a, b, a, b)", ("float32", "float64")),
        ("ldexp", "ldexp(a, i % 9)", ("float32", "float64")),
        ("scalbn", "scalbn(a, i % 9)", ("float32", "float64")),
        ("jn", "jn(i % 4, tl.abs(a) + 1)", ("float32", "float64")),
        ("fast_dividef", "fast_dividef(a, b)", ("float32",)),
        ("fast_powf", "fast_powf(tl.abs(a), b)", ("float32",)),
        ("hiloint2double", "hiloint2double(a, b)", ("int32",)),
    ):
        for dtype in dtypes:
            how = "normal" if dtype in FLOATS else "any"
            result = "float64" if name == "hiloint2double" else dtype
            args = {"x": given(dtype, N, how), "y": given(dtype, N, how), "out": out(result, N)}
            source = kernel([*load, "b = tl.load(y + i)", store.format(call=call)], ["x", "y", "out"])
            near = SAME_VALUE if dtype in INTS or name.startswith(("fma", "ldexp", "scalbn")) else Near(8, 1e-6)
            cases.add("libdevice", f"{name}-of-{dtype}", source, args, compare=near, needs=(f"libdevice.{name}",))
    source = kernel(
        [
            *load,
            "b = a * 2",
            "tl.store(out + i, libdevice.tanh(a) + libdevice.pow(tl.abs(b), 1.5) - libdevice.fma(a, b, a))",
        ],
        ["x", "out"],
    )
    args = {"x": given("float32", N, "unit"), "out": out("float32", N)}
    cases.add("libdevice", "several", source, args, compare=Near(8, 1e-6))


def add_to(cases):
    add_flow(cases)
    add_random(cases)
    add_assembly(cases)
    add_libdevice(cases)
