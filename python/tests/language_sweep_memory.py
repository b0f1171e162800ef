"""Cases of memory: loads and stores by pointers, block pointers and tensor descriptors, and atomics."""

from language_sweep_cases import ALL, FP8, INTS, SAME_VALUE, bits, given, inout, kind, out
from language_sweep_tensors import index, kernel

N = 256


def loads_and_stores(cases, name, body, parameters, args, helpers="", family="memory", **details):
    cases.add(family, name, kernel(body, parameters, helpers), args, **details)


def add_masks(cases):
    for dtype in ALL:
        other = "1" if dtype in INTS or dtype == "int1" else "-1.5"
        zero = "0.0" if dtype in FP8 else "0"
        for name, (load, store, n) in {
            "copy": ("tl.load(x + i)", "tl.store(out + i, a)", 256),
            "masked": (f"tl.load(x + i, mask=i < n, other={other})", "tl.store(out + i, a)", 200),
            "zeroed": (f"tl.load(x + i, mask=i < n, other={zero})", "tl.store(out + i, a)", 77),
            "stored": ("tl.load(x + i, mask=i < n)", "tl.store(out + i, a, mask=i < n)", 131),
            "odd-mask": (f"tl.load(x + i, (i % 3 == 1) & (i < n), {other})", "tl.store(out + i, a, i % 5 != 2)", 255),
            "none": (f"tl.load(x + i, mask=i < 0, other={other})", "tl.store(out + i, a, mask=i >= n)", 16),
        }.items():
            body = [f"i = tl.arange(0, {N})", f"a = {load}", store]
            args = {"x": given(dtype, N), "out": inout(dtype, N), "n": n}
            loads_and_stores(cases, f"{name}-{dtype}", body, ["x", "out", "n"], args)
        body = [f"i = tl.arange(0, {N})", "b = tl.load(y + i)", "tl.store(out + i, tl.load(x + i, mask=i < n, other=b))"]
        args = {"x": given(dtype, N), "y": given(dtype, N), "out": inout(dtype, N), "n": 100}
        loads_and_stores(cases, f"other-tensor-{dtype}", body, ["x", "y", "out", "n"], args)


def add_addresses(cases):
    for dtype in ("int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "int1", "float8e5"):
        for offset in (1, 2, 3, 4, 8):
            body = [f"i = tl.arange(0, {N})", "tl.store(out + i, tl.load(x + i))"]
            args = {"x": given(dtype, N, offset=offset), "out": out(dtype, N, offset=(offset * 3) % 5)}
            loads_and_stores(cases, f"misaligned-{offset}-{dtype}", body, ["x", "out"], args)
        for name, expression, size in (
            ("reversed", "255 - i", N),
            ("stride-2", "i * 2 + 1", 2 * N),
            ("stride-7", "i * 7", 7 * N),
            ("blocks", "(i // 8) * 16 + i % 8", 2 * N),
            ("repeated", "i // 4", N),
            ("same", "i * 0 + 5", N),
            ("rotated", "(i + 17) % 256", N),
            ("xored", "i ^ 5", N),
        ):
            body = [f"i = tl.arange(0, {N})", f"tl.store(out + i, tl.load(x + ({expression})))"]
            args = {"x": given(dtype, size), "out": out(dtype, N)}
            loads_and_stores(cases, f"load-{name}-{dtype}", body, ["x", "out"], args)
            if name not in ("repeated", "same"):
                body = [f"i = tl.arange(0, {N})", f"tl.store(out + ({expression}), tl.load(x + i))"]
                args = {"x": given(dtype, N), "out": out(dtype, size)}
                loads_and_stores(cases, f"store-{name}-{dtype}", body, ["x", "out"], args)
        for stride in (1, 16, 24, 33, -1, -32):
            body = [
                "i = tl.arange(0, 16)[:, None]",
                "j = tl.arange(0, 16)[None, :]",
                "tl.store(out + i * 16 + j, tl.load(x + base + i * s + j * t))",
            ]
            for name, row, column in (("rows", stride, 1), ("columns", 1, stride)):
                base = 0 if stride > 0 else 15 * -stride
                args = {"x": given(dtype, 600), "base": base, "s": row, "t": column, "out": out(dtype, 16, 16)}
                loads_and_stores(cases, f"{name}-stride{stride}-{dtype}", body, ["x", "base", "s", "t", "out"], args)
        body = [f"i = tl.arange(0, {N})", "p = tl.load(at + i)", "tl.store(out + p, tl.load(x + (p * 7) % 256))"]
        for wide in ("int32", "int64", "uint32", "int16"):
            args = {
                "x": given(dtype, N),
                "at": given(wide, N, lambda rng, n: rng.permutation(n)),
                "out": out(dtype, N),
            }
            loads_and_stores(cases, f"gather-scatter-{wide}-{dtype}", body, ["x", "at", "out"], args)
    for dtype in ALL:
        body = [
            "a = tl.load(x + 3)",
            "tl.store(out + 1, a)",
            f"tl.store(out + n, tl.load(x + n, mask=n > 5, other={'0.0' if dtype in FP8 else '0'}))",
        ]
        for n in (2, 6):
            args = {"x": given(dtype, 8), "out": inout(dtype, 8), "n": n}
            loads_and_stores(cases, f"scalar-{n}-{dtype}", body, ["x", "out", "n"], args)
        body = ["p = tl.program_id(0)", "i = p * B + tl.arange(0, B)", "tl.store(out + i, tl.load(x + i, i < n), i < n)"]
        args = {"x": given(dtype, 1000), "out": out(dtype, 1000), "n": 1000}
        loads_and_stores(
            cases, f"programs-{dtype}", body, ["x", "out", "n", "B: tl.constexpr"], args, grid=(8,), constants={"B": 128}
        )
    for where, modifier in (
        ("load", ".ca"),
        ("load", ".cg"),
        ("load", ".cv"),
        ("store", ".wb"),
        ("store", ".cg"),
        ("store", ".cs"),
        ("store", ".wt"),
    ):
        for dtype in ("float32", "float16", "int8", "int64"):
            load = f", cache_modifier='{modifier}'" if where == "load" else ""
            store = f", cache_modifier='{modifier}'" if where == "store" else ""
            body = [f"i = tl.arange(0, {N})", f"tl.store(out + i, tl.load(x + i, i < n{load}), i < n{store})"]
            args = {"x": given(dtype, N), "out": out(dtype, N), "n": 250}
            loads_and_stores(cases, f"{where}{modifier}-{dtype}", body, ["x", "out", "n"], args)
    for policy in ("evict_first", "evict_last"):
        for dtype in ("float32", "float16", "int8", "int64"):
            for modifier in ("", ", cache_modifier='.cg'"):
                hint = f", eviction_policy='{policy}'"
                body = [
                    f"i = tl.arange(0, {N})",
                    f"tl.store(out + i, tl.load(x + i, i < n, 0{hint}{modifier}), i < n{hint})",
                ]
                args = {"x": given(dtype, N), "out": out(dtype, N), "n": 250}
                loads_and_stores(cases, f"{policy}{'-cg' if modifier else ''}-{dtype}", body, ["x", "out", "n"], args)
    for dtype in ("float32", "int16", "int64", "int8"):
        body = [
            f"i = tl.arange(0, {N})",
            "tl.store(out + i, tl.load(x + i, volatile=True))",
            "tl.store(out + 300, tl.load(x, volatile=True))",
        ]
        loads_and_stores(cases, f"volatile-{dtype}", body, ["x", "out"], {"x": given(dtype, N), "out": out(dtype, 301)})
    body = [
        f"i = tl.arange(0, {N})",
        "a = tl.load(x + i)",
        "tl.store(x + i, a + 1)",
        "tl.debug_barrier()",
        "tl.store(out + i, tl.load(x + 255 - i))",
    ]
    loads_and_stores(
        cases, "in-place-behind-a-barrier", body, ["x", "out"], {"x": inout("int32", N, "unit"), "out": out("int32", N)}
    )
    body = ["p = x + n", "for k in range(0, 4):", "    tl.store(out + k, tl.load(p))", "    p -= 3"]
    loads_and_stores(
        cases, "pointer-walks-back", body, ["x", "out", "n"], {"x": given("float32", 64), "out": out("float32", 4), "n": 40}
    )
    body = [f"i = tl.arange(0, {N})", "p = tl.where(i % 2 == 0, x + i, y + i)", "tl.store(out + i, tl.load(p))"]
    args = {"x": given("float32", N), "y": given("float32", N), "out": out("float32", N)}
    loads_and_stores(cases, "pointers-by-where", body, ["x", "y", "out"], args)
    body = [
        f"i = tl.arange(0, {N})",
        "p = (x + i).to(tl.int64)",
        "q = p.to(tl.pointer_type(tl.float32))",
        "tl.store(out + i, tl.load(q))",
    ]
    loads_and_stores(cases, "pointer-as-int64", body, ["x", "out"], {"x": given("float32", N), "out": out("float32", N)})
    body = [
        f"i = tl.arange(0, {N})",
        "q = (x + i).to(tl.pointer_type(tl.int32), bitcast=True)",
        "tl.store(out + i, tl.load(q))",
    ]
    loads_and_stores(cases, "pointer-bitcast", body, ["x", "out"], {"x": given("float32", N), "out": out("int32", N)})
    body = [
        f"i = tl.arange(0, {N})",
        "if y is None:",
        "    tl.store(out + i, tl.load(x + i))",
        "else:",
        "    tl.store(out + i, tl.load(y + i))",
    ]
    for name, y in (("none", None), ("given", given("float32", N))):
        loads_and_stores(
            cases, f"optional-{name}", body, ["x", "y", "out"], {"x": given("float32", N), "y": y, "out": out("float32", N)}
        )
    for name, value in (
        ("huge", 2**33),
        ("int64", 40),
        ("one", 1),
        ("sixteen", 16),
        ("seventeen", 17),
        ("zero", 0),
        ("minus", -16),
    ):
        body = [
            f"i = tl.arange(0, {N})",
            "k = tl.full((), n, tl.int64) % 64",
            "tl.store(out + i + k, tl.load(x + i.to(tl.int64) + k), i + k < 256)",
        ]
        loads_and_stores(
            cases,
            f"argument-{name}",
            body,
            ["x", "out", "n"],
            {"x": given("float32", 512), "out": out("float32", 512), "n": abs(value)},
        )
        body = [f"i = tl.arange(0, {N})", "tl.store(out + i, i.to(tl.int64) * n + tl.num_programs(0))"]
        loads_and_stores(cases, f"argument-times-{name}", body, ["out", "n"], {"out": out("int64", N), "n": value})
    body = [
        "i = tl.program_id(0)",
        "j = tl.program_id(1)",
        "k = tl.program_id(2)",
        "m = tl.num_programs(1)",
        "l = tl.num_programs(2)",
    ]
    body += ["tl.store(out + (i * m + j) * l + k, i * 100 + j * 10 + k + 1000 * tl.num_programs(0))"]
    for grid in ((2, 3, 4), (5, 1, 1), (1, 6, 2)):
        loads_and_stores(cases, f"grid-{'x'.join(map(str, grid))}", body, ["out"], {"out": out("int32", *grid)}, grid=grid)
    for name, hint in {
        "multiple_of": "i = tl.multiple_of(tl.program_id(0) * n, 16) + tl.arange(0, 64)",
        "max_contiguous": "i = tl.max_contiguous(tl.multiple_of((tl.program_id(0) * n + tl.arange(0, 64)) % 256, 16), 16)",
        "max_constancy": "i = tl.max_constancy(tl.arange(0, 64) // 4, 4) + tl.program_id(0) * n",
        "assume": "tl.assume(n % 16 == 0)\n    tl.assume(n >= 0)\n    i = tl.program_id(0) * n + tl.arange(0, 64)",
    }.items():
        for dtype in ("float32", "float16", "int8"):
            body = [hint, "tl.store(out + tl.program_id(0) * 64 + tl.arange(0, 64), tl.load(x + i))"]
            args = {"x": given(dtype, 512), "out": out(dtype, 256), "n": 48}
            loads_and_stores(cases, f"{name}-{dtype}", body, ["x", "out", "n"], args, grid=(4,))


def add_block_pointers(cases):
    """Only before Triton 3.9."""
    needs = ("block pointers",)
    for dtype in ("float16", "float32", "int8", "bfloat16"):
        for order in ("(1, 0)", "(0, 1)"):
            for check in ("()", "(0,)", "(1,)", "(0, 1)"):
                for padding in ("", "zero", "nan"):
                    if padding and (check == "()" or padding == "nan" and kind(dtype) != "float"):
                        continue
                    rows, columns = (32 if "0" not in check else 29), (48 if "1" not in check else 43)
                    pad = f", padding_option='{padding}'" if padding else ""
                    # Without a padding what lies outside has no value: it is not stored.
                    stored = "(0, 1)" if not padding else "()"
                    strides = "(48, 1)" if order == "(1, 0)" else "(1, 32)"
                    shape = f"({rows}, {columns})"
                    bounds = shape if stored == "(0, 1)" else "(32, 48)"
                    body = [
                        f"p = tl.make_block_ptr(x, {shape}, {strides}, (0, 0), (16, 16), {order})",
                        f"q = tl.make_block_ptr(out, {bounds}, (48, 1), (0, 0), (16, 16), (1, 0))",
                        "p = tl.advance(p, (tl.program_id(0) * 16, 0))",
                        "q = tl.advance(q, (tl.program_id(0) * 16, 0))",
                        "for k in range(0, 3):",
                        f"    tl.store(q, tl.load(p, boundary_check={check}{pad}), boundary_check={stored})",
                        "    p = tl.advance(p, (0, 16))",
                        "    q = q.advance((0, 16))",
                    ]
                    name = f"order{order[1]}-check{check.replace(', ', '').replace(',', '')}-{padding or 'none'}-{dtype}"
                    args = {"x": given(dtype, (32, 48)), "out": inout(dtype, (32, 48))}
                    loads_and_stores(cases, name, body, ["x", "out"], args, family="block-pointer", needs=needs, grid=(2,))
    for rank in (1, 3):
        shape, block = {1: ("(100,)", "(64,)"), 3: ("(3, 7, 30)", "(2, 4, 16)")}[rank]
        strides, zero, order = {1: ("(1,)", "(32,)", "(0,)"), 3: ("(210, 30, 1)", "(1, 4, 16)", "(2, 1, 0)")}[rank]
        check = tuple(range(rank))
        body = [
            f"p = tl.make_block_ptr(x, {shape}, {strides}, {zero}, {block}, {order})",
            f"q = tl.make_block_ptr(out, {shape}, {strides}, {zero}, {block}, {order})",
            f"tl.store(q, tl.load(p, boundary_check={check}, padding_option='zero') + 1, boundary_check={check})",
        ]
        args = {"x": given("float32", 640), "out": inout("float32", 640)}
        loads_and_stores(cases, f"rank{rank}", body, ["x", "out"], args, family="block-pointer", needs=needs)


DESCRIPTORS = {
    1: ((100,), (64,)),
    2: ((40, 48), (16, 32)),
    3: ((5, 12, 32), (2, 8, 16)),
    4: ((3, 4, 6, 32), (2, 2, 4, 16)),
    5: ((2, 3, 2, 4, 32), (1, 2, 2, 2, 16)),
}


def add_descriptors(cases):
    needs = ("make_tensor_descriptor",)
    for dtype in ("float16", "float32", "bfloat16", "int8", "int32", "uint8", "float8e4nv", "int16", "int64", "float64"):
        for rank, (shape, block) in DESCRIPTORS.items():
            if rank > 2 and dtype not in ("float16", "float32", "int8"):
                continue
            if bits(dtype) == 8:
                # The innermost dimension has at least 16 bytes.
                block = (*block[:-1], max(block[-1], 32))
            strides = [1]
            for size in reversed(shape[1:]):
                strides.insert(0, strides[0] * size)
            for place, name in (
                ((0,) * rank, "start"),
                (tuple(min(one, size // 2 + 1) for one, size in zip(block, shape)), "edge"),
            ):
                body = [
                    f"d = tl.make_tensor_descriptor(x, {list(shape)}, {strides}, {list(block)})",
                    f"e = tl.make_tensor_descriptor(out, {list(shape)}, {strides}, {list(block)})",
                    f"a = d.load({list(place)})",
                    f"e.store({list(place)}, a)",
                    f"tl.store(more + {index(block)}, a)",
                ]
                args = {"x": given(dtype, shape), "out": inout(dtype, shape), "more": out(dtype, *block)}
                loads_and_stores(
                    cases, f"rank{rank}-{name}-{dtype}", body, ["x", "out", "more"], args, family="descriptor", needs=needs
                )
    for padding in ("zero", "nan"):
        for dtype in ("float16", "float32"):
            body = [
                f"d = tl.make_tensor_descriptor(x, [n, m], [m, 1], [16, 32], padding_option='{padding}')",
                f"tl.store(out + {index((16, 32))}, d.load([r, c]))",
            ]
            for r, c in ((0, 0), (30, 40), (-8, -16), (100, 0)):
                args = {"x": given(dtype, (40, 48)), "out": out(dtype, 16, 32), "n": 40, "m": 48, "r": r, "c": c}
                loads_and_stores(
                    cases,
                    f"padding-{padding}-{r},{c}-{dtype}",
                    body,
                    ["x", "out", "n", "m", "r", "c"],
                    args,
                    family="descriptor",
                    needs=("make_tensor_descriptor.padding_option",),
                )
    # In a loop, with arithmetic between, for several programs.
    for dtype in ("float16", "float32", "int32"):
        for stages in (1, 2, 3, 4):
            body = [
                "d = tl.make_tensor_descriptor(x, [n, m], [m, 1], [16, 32])",
                "e = tl.make_tensor_descriptor(out, [n, m], [m, 1], [16, 32])",
                "r = tl.program_id(0) * 16",
                f"for c in tl.range(0, m, 32, num_stages={stages}):",
                "    e.store([r, c], d.load([r, c]) + 1)",
            ]
            args = {"x": given(dtype, (64, 160), "small"), "out": inout(dtype, (64, 160)), "n": 50, "m": 160}
            loads_and_stores(
                cases,
                f"loop-stages{stages}-{dtype}",
                body,
                ["x", "out", "n", "m"],
                args,
                family="descriptor",
                needs=needs,
                grid=(4,),
            )
        # The host passes the descriptor.
        body = ["r = tl.program_id(0) * 16", "e.store([r, 16], d.load([r, 0]) + d.load([r, 32]))"]
        args = {"d": given(dtype, (48, 64), "small", block=(16, 32)), "e": inout(dtype, (48, 64), block=(16, 32))}
        loads_and_stores(
            cases, f"host-{dtype}", body, ["d", "e"], args, family="descriptor", grid=(3,), needs=("TensorDescriptor",)
        )
    for name in ("add", "max", "min", "and", "or", "xor"):
        for dtype in ("int32", "uint32", "float16", "float32", "bfloat16", "int64"):
            if name in ("and", "or", "xor") and dtype not in ("int32", "uint32") or dtype == "float32" and name != "add":
                continue
            body = [
                "d = tl.make_tensor_descriptor(out, [n, m], [m, 1], [16, 32])",
                f"a = tl.load(x + {index((16, 32))})",
                f"d.atomic_{name}([8, 16], a)",
            ]
            args = {"x": given(dtype, (16, 32), "small"), "out": inout(dtype, (20, 64), "small"), "n": 20, "m": 64}
            loads_and_stores(
                cases, f"atomic-{name}-{dtype}", body, ["x", "out", "n", "m"], args, family="descriptor", needs=needs
            )
    for dtype in ("float16", "float32"):
        body = [
            "d = tl.make_tensor_descriptor(x, [64, 64], [64, 1], [1, 32])",
            "r = tl.load(at + tl.arange(0, 16))",
            f"tl.store(out + {index((16, 32))}, d.gather(r, 16))",
        ]
        args = {"x": given(dtype, (64, 64)), "at": given("int32", 16, "range:0,63"), "out": out(dtype, 16, 32)}
        loads_and_stores(cases, f"gather-{dtype}", body, ["x", "at", "out"], args, family="descriptor", needs=needs)
        body = [
            "d = tl.make_tensor_descriptor(out, [64, 64], [64, 1], [1, 32])",
            "r = tl.load(at + tl.arange(0, 16))",
            f"d.scatter(tl.load(x + {index((16, 32))}), r, 16)",
        ]
        args = {
            "x": given(dtype, (16, 32)),
            "at": given("int32", 16, lambda rng, n: rng.permutation(64)[:n]),
            "out": inout(dtype, (64, 64)),
        }
        loads_and_stores(cases, f"scatter-{dtype}", body, ["x", "at", "out"], args, family="descriptor", needs=needs)


def add_atomics(cases):
    """Values are small integers, so that every order of additions gives the same sum."""
    plain = ("add", "max", "min", "and", "or", "xor", "xchg")
    for dtype in ("int32", "int64", "uint32", "uint64", "float16", "bfloat16", "float32", "float64"):
        for name in plain:
            # Triton has no others.
            if kind(dtype) == "float" and name in ("and", "or", "xor") or bits(dtype) == 16 and name != "add":
                continue
            how = "small" if name == "add" or kind(dtype) == "float" else "any"
            # One element each: what was there before is known.
            body = [f"i = tl.arange(0, {N})", f"old = tl.atomic_{name}(out + i, tl.load(x + i))", "tl.store(more + i, old)"]
            args = {"x": given(dtype, N, how), "out": inout(dtype, N, how), "more": out(dtype, N)}
            rule = SAME_VALUE
            loads_and_stores(cases, f"{name}-{dtype}", body, ["x", "out", "more"], args, family="atomic", compare=rule)
            body = [f"i = tl.arange(0, {N})", f"tl.atomic_{name}(out + i, tl.load(x + i), mask=i < n)"]
            args = {"x": given(dtype, N, how), "out": inout(dtype, N, how), "n": 99}
            loads_and_stores(cases, f"{name}-masked-{dtype}", body, ["x", "out", "n"], args, family="atomic", compare=rule)
            body = [f"old = tl.atomic_{name}(out + 1, tl.load(x))", "tl.store(more, old)"]
            args = {"x": given(dtype, 1, how), "out": inout(dtype, 4, how), "more": out(dtype, 1)}
            loads_and_stores(
                cases, f"{name}-scalar-{dtype}", body, ["x", "out", "more"], args, family="atomic", compare=rule
            )
            if name == "xchg":
                continue
            # Many on the same few elements, in one program and in several.
            body = [f"i = tl.program_id(0) * {N} + tl.arange(0, {N})", f"tl.atomic_{name}(out + i % 7, tl.load(x + i))"]
            args = {"x": given(dtype, 4 * N, how), "out": inout(dtype, 8, how)}
            loads_and_stores(
                cases, f"{name}-shared-{dtype}", body, ["x", "out"], args, family="atomic", compare=rule, grid=(4,)
            )
            body = ["i = tl.arange(0, 16)[:, None]", "j = tl.arange(0, 32)[None, :]"]
            body += [f"tl.atomic_{name}(out + j + i * 0, tl.load(x + i * 32 + j), mask=(i < 13) & (j > 2))"]
            args = {"x": given(dtype, (16, 32), how), "out": inout(dtype, 32, how)}
            loads_and_stores(cases, f"{name}-2d-{dtype}", body, ["x", "out"], args, family="atomic", compare=rule)
        body = [
            f"i = tl.arange(0, {N})",
            "old = tl.atomic_cas(out + i, tl.load(x + i), tl.load(y + i))",
            "tl.store(more + i, old)",
        ]
        args = {
            "x": given(dtype, N, "range:0,1"),
            "y": given(dtype, N, "small"),
            "out": inout(dtype, N, "range:0,1"),
            "more": out(dtype, N),
        }
        if kind(dtype) == "float":
            args["x"], args["out"] = given(dtype, N, [0.0, 1.0, 2.0]), inout(dtype, N, [0.0, 2.0])
        loads_and_stores(cases, f"cas-{dtype}", body, ["x", "y", "out", "more"], args, family="atomic")
        body = ["old = tl.atomic_cas(out, tl.load(x), tl.load(x + 1))", "tl.store(more, old)"]
        args = {"x": given(dtype, 2, [1, 3]), "out": inout(dtype, 1, [1]), "more": out(dtype, 1)}
        loads_and_stores(cases, f"cas-scalar-{dtype}", body, ["x", "out", "more"], args, family="atomic")
    for dtype in ("int32", "float32", "int64"):
        for sem in ("acquire", "release", "acq_rel", "relaxed"):
            for scope in ("gpu", "cta", "sys"):
                body = [
                    f"i = tl.arange(0, {N})",
                    f"old = tl.atomic_add(out + i, tl.load(x + i), sem='{sem}', scope='{scope}')",
                    "tl.store(more + i, old)",
                ]
                args = {"x": given(dtype, N, "small"), "out": inout(dtype, N, "small"), "more": out(dtype, N)}
                loads_and_stores(cases, f"add-{sem}-{scope}-{dtype}", body, ["x", "out", "more"], args, family="atomic")
    body = [
        "i = tl.arange(0, 64)",
        "tl.store(out + tl.program_id(0) * 64 + i, i + tl.program_id(0))",
        "tl.debug_barrier()",
        "last = tl.atomic_add(count, 1, sem='acq_rel') == tl.num_programs(0) - 1",
        "if last:",
        "    total = tl.zeros((64,), tl.int32)",
        "    for p in range(tl.num_programs(0)):",
        "        total += tl.load(out + p * 64 + i, volatile=True)",
        "    tl.store(more + i, total)",
    ]
    args = {"out": inout("int32", 512, "zeros"), "count": inout("int32", 1, "zeros"), "more": out("int32", 64)}
    loads_and_stores(cases, "last-program-adds", body, ["out", "count", "more"], args, family="atomic", grid=(8,))
    body = [
        "while tl.atomic_cas(lock, 0, 1, sem='acquire') == 1:",
        "    pass",
        "tl.store(out, tl.load(out, volatile=True) + tl.program_id(0) + 1)",
        "tl.debug_barrier()",
        "tl.atomic_xchg(lock, 0, sem='release')",
    ]
    args = {"lock": inout("int32", 1, "zeros"), "out": inout("int32", 1, "zeros")}
    loads_and_stores(cases, "lock", body, ["lock", "out"], args, family="atomic", grid=(8,))
    body = ["i = tl.arange(0, 64)", "old = tl.atomic_max(out + i, tl.load(x + i))", "tl.store(more + i, old)"]
    for dtype, how in (("float32", "normal"), ("float64", "normal"), ("uint32", "any"), ("int64", "any")):
        for name in ("max", "min"):
            text = [line.replace("atomic_max", f"atomic_{name}") for line in body]
            args = {"x": given(dtype, 64, how), "out": inout(dtype, 64, how), "more": out(dtype, 64)}
            loads_and_stores(cases, f"{name}-signs-{dtype}", text, ["x", "out", "more"], args, family="atomic")


def add_newer_atomics(cases):
    """Only in later versions of Triton."""
    for dtype in ("int32", "int64", "uint32", "float32", "float64", "int16", "float16", "int8"):
        for name, load, store in (
            ("load", "tl.atomic_load(x + i)", "tl.store(out + i, a)"),
            ("load-relaxed", "tl.atomic_load(x + i, sem='relaxed', scope='cta')", "tl.store(out + i, a)"),
            ("load-masked", "tl.atomic_load(x + i, mask=i < n)", "tl.store(out + i, a, i < n)"),
            ("store", "tl.load(x + i)", "tl.atomic_store(out + i, a)"),
            ("store-relaxed", "tl.load(x + i)", "tl.atomic_store(out + i, a, sem='relaxed', scope='sys')"),
            ("store-masked", "tl.load(x + i)", "tl.atomic_store(out + i, a, mask=i < n)"),
            ("load-scalar", "tl.atomic_load(x + n)", "tl.store(out + i, a)"),
            ("store-scalar", "tl.load(x + n)", "tl.atomic_store(out + n, a)"),
        ):
            body = [f"i = tl.arange(0, {N})", f"a = {load}", store]
            args = {"x": given(dtype, N), "out": inout(dtype, N), "n": 99}
            needs = ("atomic_load",) if "atomic_load" in load else ("atomic_store",)
            loads_and_stores(cases, f"{name}-{dtype}", body, ["x", "out", "n"], args, family="atomic", needs=needs)
    for dtype in ("int32", "int64"):
        for where in ("x", "x + i"):
            body = [f"i = tl.arange(0, {N})", f"tl.atomic_poll({where}, 7)", "tl.store(out + i, tl.load(x + i))"]
            args = {"x": given(dtype, N, [7]), "out": out(dtype, N)}
            name = f"poll-{'tensor' if 'i' in where else 'scalar'}-{dtype}"
            loads_and_stores(cases, name, body, ["x", "out"], args, family="atomic", needs=("atomic_poll",))


def add_to(cases):
    add_masks(cases)
    add_addresses(cases)
    add_block_pointers(cases)
    add_descriptors(cases)
    add_atomics(cases)
    add_newer_atomics(cases)
