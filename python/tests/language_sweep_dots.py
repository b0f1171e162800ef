"""Cases of matrix products: shapes, types, precisions, transposes, batches, scales, chains and loops.

Most inputs are integers from -4 to 4: no order of additions then changes a result, and any wrong element shows.
"""

from language_sweep_cases import FP8, SAME_VALUE, Near, bits, given, inout, out
from language_sweep_tensors import index, kernel

SHAPES = [
    (16, 16, 16),
    (32, 32, 32),
    (64, 64, 64),
    (16, 32, 64),
    (64, 16, 128),
    (128, 64, 32),
    (32, 128, 16),
    (128, 128, 64),
    (64, 128, 128),
]
WIDTHS = {"int8": 32, "float8e4nv": 32, "float8e5": 32}
INPUTS = ("float16", "bfloat16", "float32", "int8", "float8e4nv", "float8e5", "float64")


def result_of(dtype):
    return {"int8": "int32", "float64": "float64"}.get(dtype, "float32")


def product(cases, name, dtype, shape, *, call="tl.dot(a, b)", before=(), after="c", result=None, how="small", **details):
    """One product of two tiles that lie by rows; `layout` says which of them is loaded transposed."""
    m, n, k = shape
    turned = details.pop("turned", "")
    extra = details.pop("extra", {})
    rule = details.pop("compare", SAME_VALUE)
    left = f"a = tl.load(x + {index((m, k))})" if "a" not in turned else f"a = tl.trans(tl.load(x + {index((k, m))}))"
    right = f"b = tl.load(y + {index((k, n))})" if "b" not in turned else f"b = tl.trans(tl.load(y + {index((n, k))}))"
    result = result or result_of(dtype)
    body = [left, right, *before, f"c = {call}", f"tl.store(out + {index((m, n))}, {after})"]
    args = {"x": given(dtype, (m, k), how), "y": given(dtype, (k, n), how), **extra, "out": out(result, m, n)}
    source = kernel(body, list(args))
    cases.add(details.pop("family", "dot"), name, source, args, compare=rule, **details)


def add_plain(cases):
    for dtype in INPUTS:
        for m, n, k in SHAPES:
            k = max(k, WIDTHS.get(dtype, 16))
            if dtype == "float64" and m * n * k > 64**3:
                continue
            place = f"{m}x{n}x{k}-{dtype}"
            for warps in (4, 8) if m * n >= 64 * 64 else (1, 4):
                product(cases, f"{place}-warps{warps}", dtype, (m, n, k), options={"num_warps": warps})
            if (m, n) in ((64, 64), (128, 64), (16, 32)):
                for turned in ("a", "b", "ab"):
                    product(cases, f"{place}-turned-{turned}", dtype, (m, n, k), turned=turned)
        shape = (64, 64, 64)
        tile = index((64, 64))
        wide = result_of(dtype)
        z = {"z": given(wide, (64, 64), "small")}
        load = [f"z = tl.load(z + {tile})"]
        call = f"tl.dot(a, b, z, out_dtype=tl.{wide})"
        product(cases, f"acc-{dtype}", dtype, shape, call=call, before=load, extra=z)
        product(cases, f"acc-added-{dtype}", dtype, shape, call="tl.dot(a, b) + z", before=load, extra=z)
        product(cases, f"epilogue-{dtype}", dtype, shape, after="tl.where(c > 0, c, 0) * 2 + 1")
        product(cases, f"rows-summed-{dtype}", dtype, shape, after="c - tl.sum(c, 1)[:, None]")
        if dtype not in FP8:
            product(cases, f"scaled-input-{dtype}", dtype, shape, call="tl.dot((a * 2).to(a.dtype), b)")
        product(cases, f"transposed-result-{dtype}", dtype, shape, after="tl.trans(c)")
        product(cases, f"same-twice-{dtype}", dtype, shape, call="tl.dot(a, tl.trans(a))")
        if wide == "float32":
            for target in ("float16", "bfloat16"):
                product(cases, f"stored-{target}-{dtype}", dtype, shape, after=f"c.to(tl.{target})", result=target)
            call = "tl.dot(a, b, out_dtype=tl.float16)"
            product(cases, f"out-float16-{dtype}", dtype, shape, call=call, result="float16")
            # An accumulation in half precision is exact where sums are small.
            halves = {"z": given("float16", (64, 64), "small")}
            call = "tl.dot(a, b, z, out_dtype=tl.float16)"
            if dtype != "float32":
                product(cases, f"acc-float16-{dtype}", dtype, shape, call=call, before=load, extra=halves, result="float16")
        near = {"float16": 1e-4, "bfloat16": 1e-4, "float64": 1e-13}.get(dtype, 2e-2)
        if dtype != "int8":
            product(cases, f"unit-{dtype}", dtype, shape, how="unit", compare=Near(4, near))
    for precision, near in (("tf32", 2e-2), ("tf32x3", 1e-4), ("ieee", 2e-5)):
        for shape in ((16, 16, 16), (64, 64, 32), (128, 32, 64)):
            for how, rule in (("small", SAME_VALUE), ("unit", Near(4, near))):
                call = f"tl.dot(a, b, input_precision='{precision}')"
                name = f"{precision}-{'x'.join(map(str, shape))}-{how}"
                product(cases, name, "float32", shape, call=call, how=how, compare=rule)
    for most in (0, 16, 32, 64, 128):
        for dtype in FP8:
            call = f"tl.dot(a, b, max_num_imprecise_acc={most})"
            product(cases, f"imprecise-{most}-{dtype}", dtype, (64, 64, 128), call=call)
    product(cases, "mixed-fp8", "float8e5", (64, 64, 64), call="tl.dot(a, b.to(tl.float8e4nv))")
    for narrow, wide in (
        ("int8", "float16"),
        ("float8e5", "float16"),
        ("float8e4nv", "bfloat16"),
        ("float16", "float32"),
        ("int8", "bfloat16"),
        ("float32", "float16"),
    ):
        call = f"tl.dot(a.to(tl.{wide}), b.to(tl.{wide}))"
        for turned in ("", "b"):
            name = f"converted-{narrow}-{wide}{'-turned' if turned else ''}"
            product(cases, name, narrow, (64, 64, 64), call=call, result="float32", turned=turned)
    call = "tl.dot(a, (b > 0).to(a.dtype))"
    product(cases, "of-truth", "float16", (64, 64, 64), call=call)
    # Small rows by broadcasts and sums, as where a dot is too small.
    product(cases, "by-broadcast", "float32", (8, 8, 16), call="tl.sum(a[:, :, None] * b[None, :, :], 1)")


def add_batched(cases):
    for dtype in INPUTS:
        for batch, m, n, k in ((2, 16, 16, 32), (4, 32, 32, 32), (8, 16, 32, 32), (1, 64, 64, 32)):
            shapes = {"x": (batch, m, k), "y": (batch, k, n), "out": (batch, m, n)}
            for turned in (False, True):
                right = f"tl.load(y + {index(shapes['y'])})"
                if turned:
                    right = f"tl.permute(tl.load(y + {index((batch, n, k))}), (0, 2, 1))"
                body = [
                    f"a = tl.load(x + {index(shapes['x'])})",
                    f"b = {right}",
                    f"tl.store(out + {index(shapes['out'])}, tl.dot(a, b))",
                ]
                args = {
                    "x": given(dtype, shapes["x"], "small"),
                    "y": given(dtype, shapes["y"], "small"),
                    "out": out(result_of(dtype), *shapes["out"]),
                }
                name = f"{batch}x{m}x{n}x{k}{'-turned' if turned else ''}-{dtype}"
                cases.add("batched-dot", name, kernel(body, list(args)), args, compare=SAME_VALUE)


# A format, the type of its bytes in memory, and elements of a byte.
FORMATS = {
    "e4m3": ("float8e4nv", 1),
    "e5m2": ("float8e5", 1),
    "e2m1": ("uint8", 2),
    "fp16": ("float16", 1),
    "bf16": ("bfloat16", 1),
}


def add_scaled(cases):
    for left, (a_type, a_pack) in FORMATS.items():
        for right, (b_type, b_pack) in FORMATS.items():
            if {left, right} <= {"fp16", "bf16"}:
                continue
            for m, n, k, scales in (
                (64, 64, 64, "both"),
                (32, 32, 128, "left"),
                (128, 64, 64, "right"),
                (64, 32, 64, "both"),
            ):
                has_a = scales in ("both", "left") and left not in ("fp16", "bf16")
                has_b = scales in ("both", "right") and right not in ("fp16", "bf16")
                if not has_a and not has_b:
                    continue
                body = [
                    f"a = tl.load(x + {index((m, k // a_pack))})",
                    f"b = tl.load(y + {index((k // b_pack, n))})",
                    f"p = tl.load(s + {index((m, k // 32))})" if has_a else "p = None",
                    f"q = tl.load(t + {index((n, k // 32))})" if has_b else "q = None",
                    f"c = tl.dot_scaled(a, p, '{left}', b, q, '{right}')",
                    f"tl.store(out + {index((m, n))}, c)",
                ]
                args = {
                    "x": given(a_type, (m, k // a_pack), "any" if a_pack == 2 else "small"),
                    "y": given(b_type, (k // b_pack, n), "any" if b_pack == 2 else "small"),
                    "s": given("uint8", (m, k // 32), "range:125,129"),
                    "t": given("uint8", (n, k // 32), "range:125,129"),
                    "out": out("float32", m, n),
                }
                name = f"{left}-{right}-{m}x{n}x{k}-{scales}"
                cases.add("dot-scaled", name, kernel(body, list(args)), args, compare=SAME_VALUE)
    body = [
        f"a = tl.load(x + {index((64, 64))})",
        f"b = tl.load(y + {index((64, 64))})",
        f"p = tl.load(s + {index((64, 2))})",
        f"acc = tl.load(z + {index((64, 64))})",
        f"tl.store(out + {index((64, 64))}, tl.dot_scaled(a, p, 'e4m3', b, p, 'e4m3', acc))",
    ]
    args = {
        "x": given("float8e4nv", (64, 64), "small"),
        "y": given("float8e4nv", (64, 64), "small"),
        "s": given("uint8", (64, 2), "range:125,129"),
        "z": given("float32", (64, 64), "small"),
        "out": out("float32", 64, 64),
    }
    cases.add("dot-scaled", "acc", kernel(body, list(args)), args, compare=SAME_VALUE)
    text = [line.replace("'e4m3', acc", "'e4m3', fast_math=True") for line in body]
    cases.add("dot-scaled", "fast-math", kernel(text, list(args)), args, compare=SAME_VALUE)
    body = [
        f"a = tl.load(x + {index((32, 64))})",
        f"b = tl.load(y + {index((64, 32))})",
        f"p = tl.load(s + {index((64, 2))})",
        f"tl.store(out + {index((64, 64))}, tl.dot_scaled(a, p, 'e2m1', b, p, 'e2m1', lhs_k_pack=False, rhs_k_pack=False))",
    ]
    args = {
        "x": given("uint8", (32, 64)),
        "y": given("uint8", (64, 32)),
        "s": given("uint8", (64, 2), "range:125,129"),
        "out": out("float32", 64, 64),
    }
    cases.add("dot-scaled", "packed-along-rows", kernel(body, list(args)), args, compare=SAME_VALUE)


MATMUL = """@triton.jit
def kernel(x, y, out, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, STAGES: tl.constexpr):
    i = tl.program_id(0) * BM + tl.arange(0, BM)
    j = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    p = x + i[:, None] * K + k[None, :]
    q = y + {right}
    acc = tl.zeros((BM, BN), tl.{acc})
    for step in {loop}:
        a = tl.load(p, mask=(i[:, None] < M) & (k[None, :] < K - step), other={zero})
        b = tl.load(q, mask=(k[:, None] < K - step) & (j[None, :] < N), other={zero})
        acc = {update}
        p += BK
        q += {advance}
    tl.store(out + i[:, None] * N + j[None, :], {result}, mask=(i[:, None] < M) & (j[None, :] < N))
"""

LOOPS = {
    "plain": "range(0, K, BK)",
    "staged": "tl.range(0, K, BK, num_stages=STAGES)",
    "unrolled": "tl.range(0, K, BK, loop_unroll_factor=2)",
    "single": "tl.range(0, K, BK, num_stages=STAGES, disallow_acc_multi_buffer=True)",
}


def add_loops(cases):
    for dtype in ("float16", "bfloat16", "float32", "int8", "float8e5", "float64"):
        wide = result_of(dtype)
        for loop in LOOPS:
            for stages in (1, 2, 3, 4) if loop in ("plain", "staged") else (3,):
                for turned in (False, True):
                    if turned and (stages == 2 or loop == "unrolled"):
                        continue
                    m, n, k = (100, 72, 200) if stages % 2 else (128, 64, 256)
                    tile = (64, 32, 32) if dtype == "float64" or stages == 2 else (64, 64, 64)
                    source = MATMUL.format(
                        right="j[None, :] * K + k[:, None]" if turned else "k[:, None] * N + j[None, :]",
                        advance="BK" if turned else "BK * N",
                        acc=wide,
                        zero=0 if dtype == "int8" else 0.0,
                        loop=LOOPS[loop],
                        update=f"tl.dot(a, b, acc, out_dtype=tl.{wide})",
                        result="acc",
                    )
                    args = {
                        "x": given(dtype, (m, k), "small"),
                        "y": given(dtype, (k, n), "small"),
                        "out": out(wide, m, n),
                        "M": m,
                        "N": n,
                        "K": k,
                    }
                    constants = {"BM": tile[0], "BN": tile[1], "BK": tile[2], "STAGES": stages}
                    options = {"num_stages": stages, "num_warps": 4 if stages != 4 else 8}
                    grid = (-(-m // tile[0]), -(-n // tile[1]))
                    name = f"{loop}-stages{stages}{'-turned' if turned else ''}-{dtype}"
                    cases.add(
                        "dot-loop", name, source, args, constants=constants, options=options, grid=grid, compare=SAME_VALUE
                    )
    updates = {
        "added": "acc + tl.dot(a, b)",
        "scaled": "acc * 0.5 + tl.dot(a, b)",
        "relu": "acc + tl.maximum(tl.dot(a, b), 0.0)",
        "two": "tl.dot(a, b, tl.dot(a, b, acc))",
        "converted": "tl.dot((a * 2).to(tl.float16), b, acc)",
        "when": "tl.dot(a, b, acc) if step > 0 else acc",
    }
    for name, update in updates.items():
        for stages in (1, 3):
            source = MATMUL.format(
                right="k[:, None] * N + j[None, :]",
                advance="BK * N",
                acc="float32",
                zero=0,
                loop="range(0, K, BK)",
                update=update,
                result="acc",
            )
            args = {
                "x": given("float16", (64, 192), "small"),
                "y": given("float16", (192, 64), "small"),
                "out": out("float32", 64, 64),
            }
            args |= {"M": 64, "N": 64, "K": 192}
            constants = {"BM": 64, "BN": 64, "BK": 32, "STAGES": stages}
            cases.add(
                "dot-loop",
                f"update-{name}-stages{stages}",
                source,
                args,
                constants=constants,
                options={"num_stages": stages},
                compare=SAME_VALUE,
            )


CHAIN = """@triton.jit
def kernel(x, y, z, out):
    a = tl.load(x + {xs})
    b = tl.load(y + {ys})
    c = tl.load(z + {zs})
    {body}
    tl.store(out + {outs}, {result})
"""

ATTENTION = """@triton.jit
def kernel(q, k, v, out, n, D: tl.constexpr, B: tl.constexpr, STAGES: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    d = tl.arange(0, D)
    query = tl.load(q + i[:, None] * D + d[None, :])
    most = tl.full((B,), -1e30, tl.float32)
    total = tl.zeros((B,), tl.float32)
    acc = tl.zeros((B, D), tl.float32)
    for start in tl.range(0, {end}, B, num_stages=STAGES):
        j = start + tl.arange(0, B)
        key = tl.load(k + j[:, None] * D + d[None, :])
        scores = tl.dot(query, tl.trans(key)) * 0.125
        scores = tl.where({seen}, scores, -1e30)
        higher = tl.maximum(most, tl.max(scores, 1))
        weights = tl.exp(scores - higher[:, None])
        scale = tl.exp(most - higher)
        total = total * scale + tl.sum(weights, 1)
        value = tl.load(v + j[:, None] * D + d[None, :])
        acc = tl.dot(weights.to(value.dtype), value, acc * scale[:, None])
        most = higher
    tl.store(out + i[:, None] * D + d[None, :], (acc / total[:, None]).to(query.dtype))
"""


def _sparse(rng, count):
    return rng.choice([0, 0, 0, 1, -1], count)


def add_chains(cases):
    for dtype in ("float16", "bfloat16", "float32", "int8", "float8e5"):
        for m, n, k, width in ((64, 64, 64, 64), (32, 64, 32, 128), (128, 32, 64, 32), (16, 16, 32, 32)):
            narrow = f"tl.{dtype}"
            # Products of two are small enough to be exact in the narrow type.
            for name, body, result in (
                ("two", f"p = tl.dot(a, b).to({narrow})", "tl.dot(p, c)"),
                ("right", f"p = tl.trans(tl.dot(a, b)).to({narrow})", "tl.dot(tl.trans(p), c)"),
            ):
                n = max(n, 32)
                args = {
                    "x": given(dtype, (m, k), _sparse),
                    "y": given(dtype, (k, n), _sparse),
                    "z": given(dtype, (n, width), _sparse),
                    "out": out(result_of(dtype), m, width),
                }
                source = CHAIN.format(
                    xs=index((m, k)),
                    ys=index((k, n)),
                    zs=index((n, width)),
                    outs=index((m, width)),
                    body=body,
                    result=result,
                )
                place = f"{name}-{m}x{n}x{k}x{width}-{dtype}"
                cases.add("dot-chain", place, source, args, compare=SAME_VALUE)
        if bits(dtype) == 16:
            for D, B in ((32, 32), (64, 64), (128, 32), (64, 16)):
                for causal in (False, True):
                    for stages in (1, 3):
                        source = ATTENTION.format(
                            end="(tl.program_id(0) + 1) * B" if causal else "n",
                            seen="i[:, None] >= j[None, :]" if causal else "j[None, :] < n",
                        )
                        length = 128
                        args = {name: given(dtype, (length, D), "normal") for name in "qkv"}
                        args |= {"out": out(dtype, length, D), "n": length}
                        near = 2e-3 if dtype == "float16" else 1.6e-2
                        cases.add(
                            "dot-chain",
                            f"attention-{D}-{B}{'-causal' if causal else ''}-stages{stages}-{dtype}",
                            source,
                            args,
                            constants={"D": D, "B": B, "STAGES": stages},
                            options={"num_stages": stages, "num_warps": 4},
                            grid=(length // B,),
                            compare=Near(2, near),
                        )
    for dtype in ("float16", "float32"):
        tile = (64, 64)
        for name, after in {
            "softmax": "tl.exp(c - tl.max(c, 1)[:, None]) / tl.sum(tl.exp(c - tl.max(c, 1)[:, None]), 1)[:, None]",
            "bias": "c + tl.arange(0, 64)[None, :]",
            "sigmoid": "tl.sigmoid(c)",
            "cumsum": "tl.cumsum(c, 1)",
            "sorted": "tl.sort(c, 1)",
        }.items():
            rule = Near(64, 1e-6) if name in ("softmax", "sigmoid") else SAME_VALUE
            product(cases, f"{name}-{dtype}", dtype, (*tile, 64), after=after, compare=rule, family="dot-chain")
    # A product by descriptors, in a loop.
    source = """@triton.jit
def kernel(x, y, out, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, STAGES: tl.constexpr):
    i = tl.program_id(0) * BM
    j = tl.program_id(1) * BN
    left = tl.make_tensor_descriptor(x, [M, K], [K, 1], [BM, BK])
    right = tl.make_tensor_descriptor(y, [K, N], [N, 1], [BK, BN])
    result = tl.make_tensor_descriptor(out, [M, N], [N, 1], [BM, BN])
    acc = tl.zeros((BM, BN), tl.float32)
    for k in tl.range(0, K, BK, num_stages=STAGES{more}):
        acc = tl.dot(left.load([i, k]), right.load([k, j]), acc)
    result.store([i, j], acc.to(tl.float16))
"""
    for more in ("", ", flatten=True", ", warp_specialize=True"):
        for stages in (1, 2, 3, 4):
            for tile in ((64, 64, 64), (128, 64, 32)):
                args = {"x": given("float16", (120, 192), "small"), "y": given("float16", (192, 136), "small")}
                args |= {"out": inout("float16", (120, 136)), "M": 120, "N": 136, "K": 192}
                constants = {"BM": tile[0], "BN": tile[1], "BK": tile[2], "STAGES": stages}
                word = more.split("=")[0].strip(", ") or "plain"
                needs = ["make_tensor_descriptor", "cuda90"] + ([f"range.{word}"] if more else [])
                cases.add(
                    "dot-loop",
                    f"descriptors-{word}-stages{stages}-{'x'.join(map(str, tile))}",
                    source.format(more=more),
                    args,
                    constants=constants,
                    options={"num_warps": 4, "num_stages": stages},
                    grid=(-(-120 // tile[0]), -(-136 // tile[1])),
                    compare=SAME_VALUE,
                    needs=tuple(needs),
                )


def add_to(cases):
    add_plain(cases)
    add_batched(cases)
    add_scaled(cases)
    add_loops(cases)
    add_chains(cases)
