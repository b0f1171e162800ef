"""Kernels of a fourth set of packages, timed one by one: compiled by Triton, and by ttopt through its hook.

    FOURTH=FOLDER python bench/gpu/fourth.py [--only REGEX] [--shares N] [--json FILE] [--keep FOLDER]

Needs a GPU, PyTorch with its Triton, and this project's wheel (`./dev wheel`). FOLDER holds, unpacked and not installed, the
packages named in `cases` below, each below its import name; of those in `PACKAGES` only files with kernels are imported, with
what they need (`stubs.py`). Kernels with autotuners get the configuration in the middle. How it is timed and compared: `paired.py`.
"""

import functools
import importlib
import os
import sys
import types

import paired
import stubs
from engines import HEADS, KEYS, SIZE, case, f32, i8, r, steps
from libraries import integers, rand, share, trained, unit
from more_packages import bytes_of, filled, given, gradients, positive
from newest import full, plain, whole
from others import Real
from packages import COLUMNS, ROWS, learned
from third import changed

# Of these only files with kernels are imported; the others named in `cases` below are imported as they are.
PACKAGES = {"aule", "torchgw"}
REAL = Real("aule.triton_flash", "torchgw._triton_sinkhorn")


@functools.cache
def built(function, *args):
    """What a function that makes kernels and their callers returns: made once."""
    return function(*args)


def made(function, *args, **named):
    return built(function)(*args, **named)


def half(*shape, of=rand):
    return r(*shape, dtype="float16", of=of)


def bounded(most, *shape):
    """Numbers between -most and most."""
    return lambda: (share(*shape, dtype="float32") * 2 - 1) * most


def rounds(rows, columns, step, most):
    """Rows of multiples of `step` between -most and most, of which each 32nd is the largest: scales are then one, and nothing is rounded."""

    def make():
        x = (integers(2 * most // step + 1, rows, columns) * step - most).float()
        x[:, ::32] = most
        return x.bfloat16()

    return make


def colors():
    import torch

    C = "colortransfer_triton."
    image = lambda: share(8, 3, 1024, 1024, dtype="float32")
    points = lambda count: lambda: share(count, 3, dtype="float32")
    yield case(C + "api", "adain", image, image)
    yield case(C + "api", "wavelet", image, image, levels=3)
    yield case(C + "api", "wavelet", image, image, levels=0, label="blend_reference")
    yield case(C + "metrics", "srgb_to_lab", image)
    table = lambda: share(1, 33, 33, 33, 3, dtype="float32")
    yield case(C + "ot", "apply_lut", image, table, label="apply_lut_packed")
    yield case(C + "ot", "apply_lut", lambda: share(64, 3, 256, 256, dtype="float32"), table)
    yield case(C + "ot", "_sample", lambda: share(1, 3, 2048, 2048, dtype="float32"), 1 << 20, 0, 5, label="sample")
    yield case(C + "ot", "sliced_transport", points(1 << 18), points(1 << 18), iterations=2)

    def sorted_(f, x, directions):
        out = torch.empty(len(directions) * len(x), device="cuda")
        f[(len(directions),)](x, directions, out, len(x), -1, len(x), ALL=True, enable_fp_fusion=False)
        return out

    yield case(C + "_kernels", "project_sort", points(4096), lambda: unit(264, 3, dtype="float32"), call=sorted_)

    def plan(f, *args):
        done = f(*args, epsilon=0.1, iterations=2, mass=0.8)
        return done.coupling, done.column_potential

    yield case(C + "ot", "sinkhorn_plan", points(4000), points(4000), call=plan)

    def mapped(f, queries, reference, potential):
        return f(queries, reference, types.SimpleNamespace(column_potential=potential, epsilon=0.1, mass=0.8))

    yield case(C + "ot", "_barycentric", points(33**3), points(4096), bounded(0.1, 4097), call=mapped, label="barycentric")

    def flow(f, w1, w2, x):
        return f(w1, w2, ()).transform_points(x)

    yield case(C + "colorfm", "ColorFlow", bounded(0.5, 1, 512, 4), bounded(0.04, 1, 3, 512), points(33**3), call=flow, label="colorfm_integrate")


def spikes():
    """Neurons that fire. Decays are a half: what a membrane keeps is exact, so that rounding decides nothing."""
    T, steps_, count = "tether.", 32, 1 << 19
    x, start = f32(steps_, count), f32(count)
    one = lambda value, *shape: filled(value, *(shape or (1,)), dtype="float32")
    for kind in (0, 1):
        yield learned(T + "functional.lif", "LIFSubFunction", x, start, one(0.5), one(1.0), one(2.0), kind, label=f"lif_{kind}")
    yield learned(T + "functional.plif", "PLIFSubFunction", x, start, one(0.5, count), one(1.0, count), one(2.0), 0, label="plif")
    yield learned(T + "functional.alif", "ALIFSubFunction", x, start, f32(count, of=share), one(0.5), one(0.5), one(1.0), one(0.5), one(2.0), label="alif")
    yield case(T + "kernels.linear_lif", "linear_lif_fwd", whole(4, 16, 256, 512), whole(4, 1024, 512), None, 0.5, 1.0)
    wide = f32(32, 4, 8, 256, 64)
    yield case(T + "kernels.attention", "causal_linear_attention_fused", wide, wide, wide, f32(4, 8, 256, 64))
    yield case(T + "kernels.encoding", "rate_encoding_triton", f32(1 << 20, of=share), 32)


def circuits():
    """States of qubits, and gates on them."""
    import torch

    Q, count = "triton_qml.", 18
    raw = lambda: unit(32, 1 << count, dtype="float32").unsqueeze(-1) * torch.tensor([0.8, 0.6], device="cuda")
    state = lambda: torch.view_as_complex(raw().contiguous())
    seen = lambda out: torch.view_as_real(out.resolve_conj())
    shown = lambda f, *args: seen(f(*args))
    turn = lambda: torch.tensor([[0.6, 0.8j], [0.8j, 0.6]], device="cuda", dtype=torch.complex64)
    phase = lambda: torch.tensor([0.6 - 0.8j, 0.6 + 0.8j], device="cuda", dtype=torch.complex64)
    G = Q + "gate_triton_kernel"
    yield case(G, "functional_apply_gate_triton", state, turn, count, 1, call=shown)
    yield case(G, "apply_diagonal_gate_triton", state, phase, count, 9, call=shown)
    yield case(G, "apply_cz_triton", state, count, 3, 11, call=shown)
    yield case(G, "apply_cnot_triton", state, count, 3, 11, call=shown)
    yield case(G, "apply_swap_triton", state, count, 2, 10, call=shown)
    yield case(G, "apply_ccx_triton", state, 2, 7, 13, count, call=shown)
    yield case(G, "functional_apply_pauli_x_string_triton", state, count, 0b1011, call=shown)
    yield case(G, "functional_apply_pauli_z_string_triton", state, count, 0b1011, call=shown)
    U = Q + "utils_kernel"
    yield case(U, "calc_exp_val_triton", state, count, 0b100, 0b1010, 0)
    yield case(U, "calc_exp_val_bwd_triton", state, f32(32), count, 0b100, 0b1010, 0, call=shown)
    F = Q + "fusion_gate_triton_autograd"
    pairs = lambda f, x, *args: seen(f.apply(torch.view_as_complex(x), *args))
    start = lambda: raw().contiguous()
    yield gradients(F, "FusedCZLayerAutograd", start, pick=lambda f, x: pairs(f, x, [[0, 3], [5, 9], [2, 14]], count), label="fused_cz")
    yield gradients(F, "FusedCNOTLayerAutograd", start, pick=lambda f, x: pairs(f, x, [0, 5, 2], [3, 9, 14], count), label="fused_cnot")
    theta = f32(1)
    thetas = [theta] * 4
    yield gradients(F, "NConsecutive1QPauliRotationGatesAutograd", start, *thetas, pick=lambda f, x, *t: pairs(f, x, [0, 1, 2, 0], 8, count, False, *t), label="rotations_1q")

    def gates(f, x, t, names, targets, *lines):
        compiled = importlib.import_module(Q + "utils_autograd").compile_gate_sequence
        ids, angles = compiled(names, targets, t, list(lines), torch.float32, x.device)
        return pairs(f, x, ids, *lines, count, False, *angles)

    blocks = (
        ("FusedOneQubitBlockAutograd", ["rx", "h", "rz", "s", "ry", "rx"], [5] * 6, (5,)),
        ("FusedTwoQubitBlockAutograd", ["rx", "cx", "rzz", "h", "ry", "crx"], [3, [3, 10], [3, 10], 10, 10, [3, 10]], (3, 10)),
        ("FusedThreeQubitBlockAutograd", ["rx", "cx", "rzz", "ccx", "ry", "rxx"], [2, [2, 7], [7, 13], [2, 7, 13], 13, [2, 13]], (2, 7, 13)),
    )
    for name, names, targets, lines in blocks:
        pick = lambda f, x, *t, names=names, targets=targets, lines=lines: gates(f, x, t, names, targets, *lines)
        yield gradients(F, name, start, *thetas, pick=pick, label=f"block_{len(lines)}q")


def transport():
    import torch

    T = "torchgw._triton_sinkhorn"
    for dtype, rows in (("float32", 4096), ("float64", 2048)):
        costs = lambda dtype=dtype, rows=rows: -share(rows, 4096, dtype=dtype) * 5
        line = lambda count, dtype=dtype: filled(-torch.tensor(float(count)).log().item(), count, dtype=dtype)
        mass = filled(1 / rows, rows, dtype=dtype)
        loop = lambda f, k, a, b, m: f(k, a, b, 1.0, 2, 1e-30, 2, m)
        yield case(T, "triton_sinkhorn_loop", costs, line(rows), line(4096), mass, call=loop, label=f"sinkhorn_loop_{dtype}")
    yield case(T, "triton_materialize_T", bounded(1, 8192), bounded(5, 8192, 4096), bounded(1, 4096))


def norms():
    A = "rotalabs_accel.kernels."
    rows, weight = r(ROWS, COLUMNS), r(COLUMNS)
    yield case(A + "normalization", "rmsnorm", rows, weight)
    yield case(A + "normalization", "rmsnorm_residual_fused", rows, rows, weight)
    yield case(A + "swiglu", "swiglu_with_bias", rows, rows, weight, weight)
    q = r(4, 2048, 32, SIZE)
    yield case(A + "rope", "apply_rope", q, q, f32(2048, SIZE), f32(2048, SIZE))
    yield case(A + "gemm", "int8_gemm", half(2048, COLUMNS), i8(COLUMNS, COLUMNS), positive(COLUMNS))
    yield case(A + "quantized_matmul", "_int8_gemm_fused", half(2048, COLUMNS), i8(COLUMNS, COLUMNS), positive(COLUMNS), label="int8_gemm_fused")
    image = f32(8, 64, 128, 256)
    yield learned("saga.activation", "SAGAFusedFunction", image, image, image, 0.7, label="saga")
    C = "chalk.ops."
    yield case(C + "embedding", "_build_kernel", lambda: integers(32768, ROWS), r(32768, 2048), r(2048), call=made, label="gather_rmsnorm")
    yield gradients(C + "rmsnorm", "_build_kernels", rows, weight, pick=lambda f, *args: made(f, *args, 1e-6), label="rmsnorm")
    yield case("chalk.serving.decode", "_build_rmsnorm", rows, weight, call=lambda f, *args: built(f, True)(*args), label="decode_rmsnorm")
    narrow = r(1 << 17, SIZE)
    yield gradients(C + "gdn", "_build_gated_rmsnorm_kernels", narrow, r(SIZE), narrow, pick=lambda f, *args: made(f, *args, 1e-6), label="gated_rmsnorm")
    yield case("chalk.serving.decode", "_build_gated_rmsnorm", narrow, r(SIZE), narrow, 1e-6, call=made, label="decode_gated_rmsnorm")
    # Its backward pass writes to what the forward one was given.
    own = lambda f, gate, up: made(f, gate.clone(), up.clone())
    yield gradients(C + "swiglu", "_build_kernels", rows, rows, pick=own, label="swiglu")
    yield gradients(C + "qkv", "out_gate", rows, rows)
    angles = f32(2048, 64)
    fixed = lambda f, x, w, cos, sin: f(x, w, cos.detach(), sin.detach())
    yield gradients(C + "qkv", "qknorm_rope", r(2048, 16, 256), r(256), angles, angles, pick=fixed)
    heads = dict(n_q_heads=16, n_kv_heads=4, head_dim=256)
    yield case(C + "qkv", "fused_qkv_epilogue", r(4096, 40 * 256), r(256), r(256), f32(4096, 64), f32(4096, 64), **heads)
    turned = lambda f, q, k, cos, sin: made(f, q, k, cos.detach(), sin.detach())
    cos = f32(2, 2048, 64)
    yield gradients(C + "rope", "_build_kernels", r(2, 16, 2048, SIZE), r(2, 4, 2048, SIZE), cos, cos, pick=turned, label="rope")
    yield case("chalk.serving.decode", "_build_rope", r(1, 32, 4096, SIZE), r(1, 8, 4096, SIZE), f32(1, 4096, 64), f32(1, 4096, 64), call=made, label="decode_rope")
    floats = lambda f, x: [leaf.float() for leaf in built(f)[0](x)]
    yield case(C + "fp8_base", "_build_fp8", rounds(ROWS, COLUMNS, 32, 448), call=floats, label="quant_rowwise")
    I = "int4_b32"
    yield case(I, "rmsnorm_resid_rows", rows, rows, weight, 1e-6, 0.5)
    many, line = r(ROWS, HEADS, SIZE), f32(ROWS, SIZE)
    yield case(I, "rope_norm_qk", many, r(ROWS, KEYS, SIZE), r(SIZE), r(SIZE), line, line, 1e-6, 1e-6)
    yield case(I, "rope_heads", many, line, line)


def losses():
    C = "chalk.ops."
    labels = lambda: integers(16384, 4096)
    hidden, weight = r(4096, 1024), lambda: rand(16384, 1024) / 32
    yield gradients(C + "flce", "_build_kernels", hidden, weight, labels, pick=made, label="linear_cross_entropy")
    policy = lambda f, *args: made(f, *args[:3], args[3].detach())
    yield gradients(C + "grpo_loss", "_build_kernels", hidden, weight, f32(4096), filled(1, 4096, dtype="float32"), pick=policy, label="grpo_loss")


def optimizers():
    import torch

    M = "triton_muon_adamw."
    p = f32(4096, 4096)
    adam = lambda f, p, g, m, v: changed((0, 2, 3))(f, p, g, m, v, 1e-3, 0.9, 0.99, 0.9, 0.99, 0.01, 1e-6)
    yield case(M + "adamw.triton_adam", "solve_adamw_step", p, p, p, f32(4096, 4096, of=share), call=adam)
    S = M + "muon.triton_muon"
    new = lambda *shape: lambda: torch.empty(*shape, device="cuda", dtype=torch.bfloat16)
    yield case(S, "newton_shultz_step", lambda: unit(2048, 4096), 3.445, -4.775, 2.0315, new(2048, 4096), call=lambda f, *args: (f(*args), args[-1])[1])


def products():
    G = "grouped_mm_bf16.api"
    groups, width = 16, 1024
    ends = lambda size: lambda: steps(groups, size)[1:]
    near = lambda *shape: lambda: rand(*shape) / 32
    yield gradients(G, "grouped_mm", r(8192, width), near(groups, width, width), ends(512), label="grouped_mm_2d3d")
    yield gradients(G, "grouped_mm", r(width, 8192), near(8192, width), ends(512), label="grouped_mm_2d2d")
    yield gradients(G, "grouped_mm", r(groups, 512, width), near(groups, width, width), label="grouped_mm_3d3d")
    yield gradients(G, "grouped_mm", r(groups, 128, 256), near(256, 1024), ends(64), label="grouped_mm_3d2d")
    S = "flash_swiglu_mlp.ops"
    weights = near(3072, width), near(3072, width)
    yield learned(S, "_FlashSwiGLUFunction", r(2, 2048, width), *weights, near(width, 3072), 1.0, 1.0, label="flash_swiglu")
    yield case(S, "gemm_swiglu", r(2, 2048, width), *weights, 1.0, False, call=lambda f, *args: f(*args)[0])
    L = "chalk.ops.lora"
    lora = r(16384, 4096), lambda: rand(32, 4096) / 32, lambda: rand(4096, 32) / 8
    yield gradients(L, "fused_lora", *lora, r(16384, 4096), pick=lambda f, *args: f(*args[:3], 2.0, args[3]))


def quantized():
    import torch

    T = "turbopress.triton_kernel"
    out, size = 14336, 4096
    for bits, batch in ((3, 1), (3, 16), (2, 16)):

        def packed(f, z, levels, scales, book, bits=bits):
            return f(z, types.SimpleNamespace(in_features=size, out_features=out, levels_packed=levels, bits=bits, scales=scales, codebook=book))

        args = half(batch, size), bytes_of(out, size * (bits + 1) // 8), half(out, of=share), half(1 << (bits + 1))
        yield case(T, "packed_gemv", *args, call=packed, label=f"packed_gemv_{bits}_{batch}")
    for block in (64, 1024):
        yield case(T, "fwht_scale", half(ROWS, size), half(size), block, label=f"fwht_scale_{block}")
    I, experts, n, k = "int4_b32", 16, 4096, 2048
    rows = 64
    whole_ = lambda: (integers(255, rows, k) - 127).to(torch.int8)
    ids = lambda: (torch.arange(rows, device="cuda") % experts).int()
    weights = bytes_of(experts, n, k // 2), half(experts, n, k // 32, of=share)
    yield case(I, "quant_x_rows", rounds(ROWS, 2048, 1, 127))
    yield case(I, "quant_x_rows_gathered", rounds(ROWS, 2048, 1, 127), lambda: torch.randperm(ROWS, device="cuda"))
    yield case(I, "gemv_int4_b32", whole_, positive(rows, k // 32), *weights, ids, n, k)
    yield case(I, "gemv_int4_b32_grouped", whole_, positive(rows, k // 32), *weights, ids, n, k)
    tile = rows // experts
    tiles = lambda: steps(experts, tile)[:-1], filled(tile, experts), lambda: torch.arange(experts, device="cuda", dtype=torch.int32)
    yield case(I, "gemm_int4_b32_grouped_captured", whole_, positive(rows, k // 32), *weights, *tiles)
    yield case(I, "combine_rows", r(ROWS * 8, 1024), f32(ROWS * 8, of=share), 8)
    logits = lambda: rand(ROWS * 4, 128, dtype="float32").argsort(-1).float() / 16
    for on_logits in (False, True):
        named = dict(select_on_logits=on_logits, label=f"router_epilogue_{on_logits}")
        yield case(I, "router_epilogue", logits, 8, True, **named)
    x, order = r(rows, k), lambda: torch.randperm(rows, device="cuda")
    yield case("int4_smallm", "gemm_int4_b32_grouped_smallm", x, *weights, *tiles, order)
    yield case("int4_smallm", "gemm_int4_b32_smallm", r(16, 4096), bytes_of(14336, 2048), half(14336, 128, of=share), sk=1)
    mx = bytes_of(experts, n, k // 2), bytes_of(experts, n, k // 32, low=120, high=130)
    M = "mxfp4_grouped"
    yield case(M, "gemv_mxfp4_b32", whole_, positive(rows, k // 32), *mx, ids, n, k)
    yield case(M, "gemm_mxfp4_grouped_smallm", x, *mx, *tiles, order)
    every = list(range(experts))
    yield case(M, "gemm_mxfp4_grouped", r(rows, k), *mx, [1] * rows, ids, label="gemv_mxfp4_grouped")
    yield case(M, "gemm_mxfp4_grouped", r(1024, k), *mx, [64] * experts, lambda: torch.tensor(every, device="cuda", dtype=torch.int32))
    nf = bytes_of(experts, n, k // 2), positive(experts, n, k // 64)
    N = "nf4_route"
    yield case(N, "dequant_groups", *nf, lambda: torch.tensor(every, device="cuda", dtype=torch.int32), n, k)
    for lut in ("pair", "tree"):
        yield case("nf4_smallm", "gemm_nf4_grouped_smallm", x, *nf, *tiles, order, lut=lut, label=f"gemm_nf4_grouped_smallm_{lut}")

    def grouped(f, x, q, scale, ids):
        module = importlib.import_module("nf4_grouped")
        rows, out = len(x), torch.empty(len(x), n, device="cuda", dtype=torch.bfloat16)
        places = steps(rows // 64, 64)[:-1], torch.full((rows // 64,), 64, device="cuda", dtype=torch.int32), ids % experts
        strides = q.stride(0), q.stride(1), scale.stride(0), scale.stride(1)
        named = dict(BLOCK_M=64, BLOCK_N=128, BLOCK_K=64, GROUPS=1, VARIANT=1, num_warps=4, num_stages=3)
        f[(rows // 64, n // 128)](x, q, scale, out, module._lut(x.device), *places, ids, k, n, *strides, **named)
        return out

    own = lambda: torch.arange(experts, device="cuda", dtype=torch.int32)
    yield case("nf4_grouped", "_gemm_nf4_grouped", r(1024, k), *nf, own, call=grouped)

    def back(f, x, q, scale, ids):
        module = importlib.import_module("nf4_grouped")
        rows, out = len(x), torch.empty(len(x), k, device="cuda", dtype=torch.bfloat16)
        places = steps(rows // 32, 32)[:-1], torch.full((rows // 32,), 32, device="cuda", dtype=torch.int32), torch.arange(rows // 32, device="cuda", dtype=torch.int32) // 2
        strides = q.stride(0), q.stride(1), scale.stride(0), scale.stride(1)
        f[(rows // 32, k // 64)](x, q, scale, out, module._lut(x.device), *places, ids, k, n, *strides, BLOCK_M=32, BLOCK_N=64, BLOCK_K=64, num_warps=2)
        return out

    yield case("nf4_grouped", "_dgrad_nf4_grouped", r(1024, n), *nf, own, call=back)

    def tiled(f, x, w):
        rows, out = len(x), torch.empty(len(x), n, device="cuda", dtype=torch.bfloat16)
        places = steps(rows // 128, 128)[:-1], torch.full((rows // 128,), 128, device="cuda", dtype=torch.int32), torch.arange(rows // 128, device="cuda", dtype=torch.int32)
        f[(rows // 128, n // 128)](x, w, out, *places, n, k, k, w.stride(0), w.stride(2), w.stride(1), n, BM=128, BN=128, BK=64, DOT_BF16=True, num_warps=8, num_stages=3)
        return out

    yield case(N, "_grouped_bf16_gemm_kernel", r(2048, k), r(experts, n, k), call=tiled)
    yield case("dense_gemv", "gemv_bf16_bw", r(8192), r(16384, 8192))
    yield case("dense_gemv", "gemv_i8_bw", r(8192), i8(16384, 8192), positive(16384))
    yield case("dense_i8", "linear_i8", r(16, 8192), i8(16384, 8192), positive(16384))
    # A paged cache of keys and values in 8 bits: rows of 16 tokens, each with its scales behind it.
    batch, length, tokens = 64, 2048, 16
    blocks = batch * length // tokens

    def pool():
        payload = rand(blocks, tokens * KEYS * SIZE).to(torch.float8_e4m3fn).view(torch.uint8)
        return torch.cat([payload, positive(blocks, tokens * KEYS)().view(torch.uint8)], 1).reshape(-1)

    table = lambda: torch.randperm(blocks, device="cuda").int().view(batch, -1)
    named = dict(n_kv_heads=KEYS, head_dim=SIZE, n_split=4, fuse_combine=False)
    for compute in ("f32", "fp8"):
        args = r(batch, HEADS, SIZE), pool, pool, table, filled(length - 5, batch)
        yield full(case("fp8_paged_attn", "fp8_paged_decode_attention", *args, compute=compute, label=f"fp8_paged_decode_{compute}", **named))


def attention():
    import torch

    A = "aule.triton_flash"
    q, k = r(2, 16, 1024, 64), r(2, 4, 1024, 64)
    yield gradients(A, "flash_attention_triton", q, q, q, label="flash")
    yield gradients(A, "flash_attention_triton", q, k, k, label="flash_grouped")
    long = r(2, 16, 4096, 64)
    yield case(A, "flash_attention_triton", long, long, long, window_size=512, label="flash_window")
    D, total, sequences, heads = "dsalt.kernels.", 16384, 8, 16
    q, ends = r(total, heads, 64), lambda: steps(sequences, total // sequences).long()
    marks = lambda: torch.arange(16, device="cuda").mul(120).expand(heads, sequences, 16).contiguous()
    sizes = lambda: integers(128, total) + 64
    yield full(gradients(D + "dsalt_triton_attn", "dsalt_triton_attention", q, q, q, marks, f32(heads, sequences, 16), sizes, ends, label="attention"))
    edges = lambda: integers(512, total).float() / 4 + 16
    yield full(gradients(D + "dsalt_triton_train", "dsalt_triton_train_attention", q, q, q, marks, f32(heads, sequences, 16), edges, ends, label="train_attention"))
    one = half(2, 16, 2048, 64)
    yield case("flash_mlm.kernel", "_attention", one, one, one, call=lambda f, *args: f.apply(*args, True, 0.125, False), label="attention")

    def followed(f, q, k, v, keys, values):
        """Attention to what was there before, too."""
        cache = importlib.import_module("flash_mlm.host.cache").InferenceCache()
        named = dict(inference_cache=cache, layer_id=0, block_m=64, block_n=64)
        return f(keys, keys, values, 0.125, prefill=True, **named), f(q, k, v, 0.125, **named)

    yield case("flash_mlm.host.host", "flash_attn_mlm", *[one] * 5, call=followed)
    K = "kernel_fun.cconv._kernels.strip"
    wave, taps = r(4, 4096, 2048), r(2048, 4)
    yield case(K, "cconv_fwd", wave, taps)
    yield case(K, "cconv_bwd", wave, taps, wave)
    yield gradients("chalk.ops.gdn", "_build_conv_kernels", r(4, 2048, 2048), taps, r(2048), pick=made, label="conv")


def sparse():
    """Matrices of blocks, of which some are."""
    import torch

    B, size = "blksprs.ops.", 64
    count = 32

    def layout(batch=8, rows=count, columns=count, part=0.3):
        def make():
            kept = rand(batch, rows, columns, dtype="float32").sigmoid() < part + 0.1
            kept[:, :, 0] = True
            return kept

        return make

    def packed(dtype="float32", of=rand):
        """The layout, and the blocks that it has."""

        def make():
            kept = layout()()
            return kept, of(int(kept.sum()), size, size, dtype=dtype)

        return make

    def one(module, name, *more, backward=True, label=None, dtype="float32", call=None):
        """A function of blocks, their layout and the size of one."""
        pick = call or (lambda f, blocks, kept: f(blocks, kept, size, *more))

        def make():
            function = getattr(importlib.import_module(B + module), name)
            kept, blocks = packed(dtype)()
            keep = lambda blocks: [torch.Tensor.as_subclass(leaf, torch.Tensor) for leaf in paired.leaves(pick(function, blocks, kept))]
            if not backward:
                return keep, [blocks]
            return trained(keep), [blocks]

        return full((f"blksprs.{label or name}", make))

    dense = lambda: rand(8, count * size, count * size, dtype="float32")
    yield full(gradients(B + "conversion", "to_sparse", dense, layout(), size))
    yield one("softmax", "softmax_regular")
    yield one("softmax", "softmax_fused")
    for dtype in ("float32", "bfloat16"):
        multiplied = lambda f, blocks, kept: f(blocks, kept, blocks * 0.5, kept, kept, size)
        yield one("matmul", "matmul", dtype=dtype, call=multiplied, label=f"matmul_{dtype}")
    yield one("conversion", "adapt_layout", size // 2, backward=False, call=lambda f, blocks, kept: f(blocks, kept, size, size // 2)[0])
    line = f32(8, count * size)
    yield full(case(B + "misc.broadcast_ops", "broadcast_add", line, line, layout(), size))
    inside = lambda f, blocks, kept: f(blocks, kept, 2, torch.arange(blocks.numel(), device="cuda").view(blocks.shape) * 7 % size, kept, size)
    yield one("distribution", "gather", call=inside, backward=False)
    yield one("distribution", "scatter_reduce", call=inside, backward=False)
    zeros = lambda: rand(8, count * size, count * size, dtype="float32") * layout()().repeat_interleave(size, 1).repeat_interleave(size, 2)
    yield full(case("blksprs.layouting.sparsity_layout", "build_sparsity_layout", zeros, size, call=lambda f, *args: f(*args).float()))

    def attend(f, q, k, v, kept):
        whole_ = torch.ones(8, count, 1, dtype=torch.bool, device="cuda")
        return torch.Tensor.as_subclass(f(q, whole_, k, whole_, v, whole_, kept, size), torch.Tensor)

    q = lambda: rand(8 * count, size, size)
    yield full(gradients(B + "flash_attention", "flash_attention", q, q, q, layout(), pick=attend))


def recurrences():
    """Recurrences that are solved by Newton's method, with scans."""
    import torch

    P = "pararnn.kernels."
    d = 512
    wx = lambda count: bounded(1, 8, 1024, count * d)
    own = bounded(0.5, d)
    yield case(P + "scan_diag", "_scan_diag_triton_impl", bounded(0.9, 8, 2048, 1024), f32(8, 2048, 1024), label="scan_diag")
    for n, width in ((2, 512), (4, 128)):
        module = ("scan_lstm_block", "_scan_block2_triton_impl") if n == 2 else ("scan_slstm_block", "_scan_block4_triton_impl")
        yield case(P + module[0], module[1], bounded(0.4 / n, 4, 1024, n, n, width), f32(4, 1024, n, width), label=f"scan_block{n}")
    solve = lambda f, *args: f(*args, max_iters=2, omega=1.0)
    yield case(P + "newton_gru", "_newton_gru_fused_impl", wx(3), own, own, own, call=solve, label="newton_gru")
    yield case(P + "newton_nlru", "_newton_nlru_fused_impl", wx(2), own, call=solve, label="newton_nlru")
    yield case(P + "newton_cfc", "_newton_cfc_fused_impl", wx(3), own, call=solve, label="newton_cfc")
    yield case(P + "newton_titans", "_newton_titans_fused_impl", wx(5), own, own, call=solve, label="newton_titans")
    yield case(P + "newton_lstm", "_newton_lstm_fused_impl", wx(3), own, own, own, own, own, call=solve, label="newton_lstm")
    yield case(P + "picard_slstm", "frozen_gate_scan_triton", wx(4), eps=1e-6)
    yield case(P + "vjp_gru", "gru_recurrence_vjp", bounded(1, 8, 1024, d), wx(3), own, own, own, f32(8, 1024, d))
    yield case(P + "vjp_lstm", "lstm_recurrence_vjp", bounded(1, 8, 1024, 2, d), wx(3), own, own, own, own, own, f32(8, 1024, 2, d))
    slots = lambda: torch.stack([rand(8, 1024, d, dtype="float32"), share(8, 1024, d, dtype="float32") + 1, rand(8, 1024, d, dtype="float32"), rand(8, 1024, d, dtype="float32")], 2)
    yield case(P + "vjp_slstm", "slstm_recurrence_vjp", slots, wx(4), bounded(0.5, 4, d), f32(8, 1024, 4, d), 1e-6)

    def decode(f, state, wx, *weights, names, **more):
        cell = types.SimpleNamespace(d_h=2048, **dict(zip(names, weights)), **more)
        out = torch.empty_like(state)
        f(cell, state, wx, out, state, len(wx), False)
        return out

    D, batch, wide = P + "decode", 2048, bounded(0.5, 2048)
    for kind, slots_, gates, names in (("gru", 0, 3, "a_z a_r a_n"), ("lstm", 2, 3, "a_f a_z a_o c_f c_o")):
        names = names.split()
        state = f32(batch, *([slots_] if slots_ else []), 2048)
        call = lambda f, *args, names=names: decode(f, *args, names=names)
        yield case(D, f"_decode_{kind}", state, f32(batch, gates * 2048), *[wide] * len(names), call=call, label=f"decode_{kind}")
    state = lambda: torch.stack([rand(batch, 2048, dtype="float32"), share(batch, 2048, dtype="float32") + 1, rand(batch, 2048, dtype="float32"), rand(batch, 2048, dtype="float32")], 1)
    call = lambda f, *args: decode(f, *args, names=["R"], eps=1e-6)
    yield case(D, "_decode_slstm", state, f32(batch, 4 * 2048), bounded(0.5, 4, 2048), call=call, label="decode_slstm")
    R = P + "newton_m2rnn"
    many, time, n = 264, 64, 32
    args = bounded(1, many, time, n), bounded(1, many, time, n), f32(many, time, of=share), bounded(0.1, n, n)
    yield case(R, "_newton_m2rnn_fused_impl", *args, None, call=lambda f, *args: f(*args, max_iters=2, omega=1.0), label="newton_m2rnn")
    yield case(R, "_reverse_m2rnn_factor_impl", bounded(1, many, time, n, n), args[2], args[3], f32(many, time, n, n), label="reverse_m2rnn")


def cases():
    import torch

    plain()
    sys.path.append(os.environ["FOURTH"])
    # Launches as usual, through Triton's own function, and not before the kernel before has ended.
    os.environ.update(GNF4_PDL="0", GNF4_TRITON_PREBIND="0")
    given("triton_kernels", __path__=[])
    given("triton_kernels.quantization", quantize_weight_per_channel=None, dequantize=None)
    stubs.install(os.environ["FOURTH"], PACKAGES, REAL)
    for name in ("attn", "train"):
        module = importlib.import_module("dsalt.kernels.dsalt_triton_" + name)
        setattr(module, "_maybe_autotune" + "_train" * (name == "train"), lambda *args: None)
    # Its own check compiles kernels of its own.
    importlib.import_module("pararnn.kernels._compat").require_fused_triton = lambda: None
    if not torch._C._cuda_getDeviceCount():
        # What asks for the device itself, where there is none (`kernels_of.py`).
        importlib.import_module("colortransfer_triton._validation").tensor = lambda *args: None
        importlib.import_module("pararnn.kernels.precision").is_fused_dtype_supported = lambda *args: True
        importlib.import_module("blksprs.ops.flash_attention")
        for name, module in list(sys.modules.items()):
            if name.startswith("blksprs.") and hasattr(module, "validate_device"):
                module.validate_device = lambda *args: None
        torch.cuda.set_device = lambda *args: None
    groups = colors, spikes, circuits, transport, norms, losses, optimizers, products, quantized, attention, sparse, recurrences
    for group in groups:
        yield from group()


if __name__ == "__main__":
    paired.main(__doc__.splitlines()[0], cases, shares=4)
