"""Kernels of a third set of packages, timed one by one: compiled by Triton, and by ttopt through its hook.

    THIRD=FOLDER python bench/gpu/third.py [--only REGEX] [--shares N] [--json FILE] [--keep FOLDER]

Needs a GPU, PyTorch with its Triton, and this project's wheel (`./dev wheel`). FOLDER holds, unpacked and not installed, the
packages named in `cases` below, each below its import name; of those in `PACKAGES` only files with kernels are imported, with
what they need (`stubs.py`). Kernels with autotuners get the configuration in the middle. How it is timed and compared: `paired.py`.
"""

import importlib
import math
import os
import sys
import types

import paired
import stubs
from engines import HEADS, KEYS, SIZE, case, f8, f32, i8, i32, r, steps
from libraries import integers, rand, share, unit
from more_packages import bytes_of, filled, given, gradients, positive
from newest import full, plain
from others import Real
from packages import COLUMNS, ROWS, learned

# Of these only files with kernels are imported; the others named in `cases` below are imported as they are.
PACKAGES = {"flashslice", "hilbertsfc", "piper_kernels", "spmd_types", "torchtitan", "vsa"}
REAL = Real(
    "flashslice.kernels.",
    "hilbertsfc._nbits",
    "hilbertsfc.torch._kernels.triton._tuning",
    "piper_kernels._triton.",
    "piper_kernels.attention.kernels.qk_quantization.int8.sage._rotation",
    "piper_kernels.attention.kernels.sparse_piper.layout",
    "piper_kernels.attention.sage_attention_2pp._plan",
    "piper_kernels.attention.sage_attention_2pp._policy",
    "piper_kernels.attention.scheduling",
    "piper_kernels.attention.sparse_piper_attention._dtype",
    "piper_kernels.conv3d.convrot.int8._plan",
    "piper_kernels.conv3d.convrot.int8._validation",
    "piper_kernels.gguf._types",
    "piper_kernels.linear.nvfp4._storage",
    "piper_kernels.weights.nvfp4._layout",
    "vsa.index",
)


def changed(at):
    """The function writes to copies of its arguments `at`, which are then its values."""

    def call(function, *args, **named):
        args = [arg.clone() if index in at else arg for index, arg in enumerate(args)]
        function(*args, **named)
        return [args[index] for index in at]

    return call


def norms():
    T = "torchnorm._triton"
    rows, weight = r(ROWS, COLUMNS), r(COLUMNS)
    yield learned(T, "fused_rms_norm", rows, weight, 1e-6)
    yield learned(T, "fused_add_rms_norm", rows, rows, weight, 1e-6)
    yield learned(T, "fused_layer_norm", rows, weight, weight, 1e-6)
    yield learned(T, "fused_layer_norm", rows, weight, None, 1e-6, label="fused_layer_norm_no_bias")
    K = "trinix.kernels."
    # Their sums for weights are behind a lock that is given back before all threads have written: they are not compared.
    apart = lambda f, x, *args: f.apply(x, *[arg.detach() if hasattr(arg, "detach") else arg for arg in args])
    yield gradients(K + "layernorm_kernel", "TritonLayerNormKernel", rows, weight, weight, 1e-6, pick=apart, label="layernorm")
    yield gradients(K + "rmsnorm_kernel", "TritonRMSNormKernel", rows, weight, 1e-6, pick=apart, label="rmsnorm")


def activations():
    K = "trinix.kernels."
    pair, one = r(ROWS, 2 * COLUMNS), r(ROWS, COLUMNS)
    for file, name in (("geglu", "GeGLU"), ("reglu", "ReGLU"), ("swigelu", "SwiGLU")):
        yield learned(f"{K}{file}_kernel", f"Triton{name}Kernel", pair, label=name.lower())
    for file, name in (("mish", "Mish"), ("quickgelu", "QuickGELU"), ("squared_relu", "SquaredReLU")):
        yield learned(f"{K}{file}_kernel", f"Triton{name}Kernel", one, label=name.lower())
    yield learned("openfold3.core.kernels.triton.swiglu", "LigerSiLUMulFunction", one, one, label="swiglu")
    T = "torchtitan.overrides.fused_swiglu"
    yield case(T, "silu_and_mul_forward_kernel", one, one)
    yield case(T, "silu_and_mul_backward_kernel", one, one, one)
    ends = lambda: steps(16, 384)[1:]
    some = lambda f, *args: [leaf[: 16 * 384] for leaf in paired.leaves(f(*args))]
    yield case(T, "silu_and_mul_forward_kernel", one, one, ends, call=some, label="silu_and_mul_forward_kernel_experts")
    yield case(T, "silu_and_mul_backward_kernel", one, one, one, ends, call=some, label="silu_and_mul_backward_kernel_experts")


def optimizers():
    import torch

    K = "trinix.kernels."
    # A scale of gradients other than one has kernels of its own.
    for dtype, scale in (("float32", 1.0), ("bfloat16", 0.5)):
        p, v = r(1 << 24, dtype=dtype), r(1 << 24, dtype=dtype, of=share)
        for name in ("Adam", "AdamW"):
            call = lambda f, p, g, m, v, scale=scale: changed((0, 2, 3))(f.apply, p, g, m, v, 1e-3, 0.9, 0.99, 1e-6, 0.01, 10, scale)
            yield case(f"{K}{name.lower()}_kernel", f"Triton{name}Kernel", p, p, p, v, call=call, label=f"{name.lower()}_{dtype}")
        call = lambda f, p, g, m, scale=scale: changed((0, 2))(f.apply, p, g, m, 1e-3, 0.9, 0.99, 0.01, scale)
        yield case(K + "lion_kernel", "TritonLionKernel", p, p, p, call=call, label=f"lion_{dtype}")
        call = lambda f, p, g, m, scale=scale: changed((0, 2))(f.apply, p, g, m, 1e-3, 0.9, scale)
        yield case(K + "muon_kernel", "TritonMuonKernel", p, p, p, call=call, label=f"muon_{dtype}")
    count, block = 1 << 24, 128
    for bits in (4, 6, 8):

        def step(f, p, g, q, means, decode, encode, sums, v, scales, bits=bits):
            named = dict(previous_step=9, step=10, beta1=0.9, beta2=0.99, lr=1e-3, eps=1e-6, weight_decay=0.01, n_bits=bits)
            named |= dict(block_size=block, m_block_size=block // 2, original_numel=count, m_step_factor=0.9, m_seed=12345, v_seed=67890)
            p = p.clone()
            f(p, g, q.clone(), means.clone(), decode.clone(), encode.clone(), sums.clone(), v.clone(), scales.clone(), **named)
            return p

        scales = lambda: torch.stack([rand(count // block, dtype="float32").abs() - 8, rand(count // block, dtype="float32").abs()], 1).half()
        one = filled(0.1, 1, dtype="float32")
        state = bytes_of(count // 4), r(count // (block // 2)), one, one, filled(0, 1, dtype="float32"), bytes_of(count * bits // 8), scales
        yield case("turboadam.triton_kernels", "triton_fused_ustate_adamw_step", f32(count), f32(count), *state, call=step, label=f"adamw_{bits}")


def images():
    import torch

    A = "triton_augment.functional"
    image = lambda: share(64, 3, 512, 512, dtype="float32")
    for name in ("adjust_brightness", "adjust_contrast", "adjust_contrast_fast", "adjust_saturation"):
        yield case(A, name, image, 0.8)
    some = lambda: torch.arange(64, device="cuda") % 3 == 0
    yield case(A, "rgb_to_grayscale", image, 3, some, label="rgb_to_grayscale_some")
    yield case(A, "normalize", image, (0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
    place = lambda: (torch.arange(64, device="cuda") * 3).int()
    yield case(A, "crop", image, 20, 30, 448, 448)
    yield case(A, "crop", image, place, place, 320, 320, label="crop_some")
    yield case(A, "horizontal_flip", image)
    yield case(A, "horizontal_flip", image, some, label="horizontal_flip_some")
    matrix = lambda: torch.tensor([0.9, 0.2, 3.3, -0.2, 0.9, 1.7], device="cuda").expand(64, 6).contiguous()
    yield case(A, "_apply_affine_matrix", image, matrix, "bilinear", label="affine")
    colors = dict(brightness_factor=1.1, contrast_factor=0.9, saturation_factor=1.2, mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225))
    yield full(case(A, "fused_augment", image, 20, 30, 448, 448, True, label="fused_augment", **colors))
    turned = dict(angle=10.0, translate=[3.3, 1.7], scale=1.1, interpolation="bilinear")
    yield full(case(A, "fused_augment", image, 20, 30, 448, 448, label="fused_augment_turned", **turned, **colors))


def curves():
    import torch

    H, count = "hilbertsfc.torch._kernels.triton.", 1 << 23
    for name, axes, bits in (("2d", 2, 16), ("2d", 2, 31), ("3d", 3, 10), ("3d", 3, 21)):
        places = [lambda: integers(1 << bits, count)] * axes
        for curve in ("hilbert", "morton"):
            module = f"{H}{curve}{name}_"
            yield case(module + "encode", f"{curve}_encode_{name}_triton", *places, nbits=bits, label=f"{curve}_encode_{name}_{bits}")
            index = lambda: integers(1 << min(axes * bits, 62), count)
            yield case(module + "decode", f"{curve}_decode_{name}_triton", index, nbits=bits, label=f"{curve}_decode_{name}_{bits}")


def trees():
    """Boosted trees, of which each node picks what it is split by."""
    import torch

    I = "ibu_boost.kernels.screening_split_triton"
    rows, features, nodes, bins = 1 << 18, 32, 32, 64
    binned = lambda: integers(bins + 4, rows, features, dtype="int32").sub(4).clamp(min=-1)
    args = binned, f32(rows), f32(rows, of=share), i32(nodes, rows), nodes
    yield case(I, "build_histogram_triton", *args, bins)
    yield case(I, "build_missing_stats_triton", *args)

    def split(f, g, h, g_missing, h_missing):
        params = types.SimpleNamespace(s_w=-4.0, s_r=0.5, lam=1.0, eps=1e-6)
        return f(g, h, params, g_missing, h_missing)["best_rho"]

    for bins in (100, 256):
        shape = 512, 128, bins
        args = f32(*shape), f32(*shape, of=share), f32(512, 128), f32(512, 128, of=share)
        yield case(I, "screening_split_triton", *args, call=split, label=f"screening_split_{bins}")


def randomness():
    import torch

    module, key = "triton_csprng.sampling", lambda: (torch.arange(10, device="cuda") * 0x1234567).int().view(torch.uint32)
    count, block = 1 << 23, 128
    many = lambda high: lambda: integers(high, 8, dtype="int64") + (1 << 50)
    cut = lambda count: -(-count // block)

    def sample(label, *makers, call, module=module):
        def make():
            return (lambda *args: call(importlib.import_module(module), *args)), [maker() for maker in makers]

        return f"triton_csprng.{label}", make

    new = lambda dtype="int64": torch.empty(count, device="cuda", dtype=getattr(torch, dtype))
    words = lambda per=4: lambda: integers((1 << 31) - 1, count * per, dtype="int32").view(torch.uint32)

    def uniform(m, limits, key):
        m._fused_bounded_uint64_kernel[(cut(count // 4),)](limits, out := new(), count, count // 4, count // 8, key, 5, 0, BLOCK=block, num_warps=4)
        return out

    def uniform_two(m, limits, key, other):
        m._fused_bounded_uint64_two_streams_kernel[(cut(count // 4),)](limits, out := new(), count, count // 4, count // 8, count // 8, key, 5, 0, other, 9, 1, BLOCK=block, num_warps=4)
        return out

    def uniform_words(m, limits, words):
        m._bounded_uint64_kernel[(cut(count),)](words, limits, out := new(), count, count // 8, BLOCK=block)
        return out

    # Half of a discrete bell: cumulative shares, as numbers of 128 bits of which the high halves decide.
    depth = 5
    low = lambda: torch.zeros((1 << depth) - 1, device="cuda", dtype=torch.int64).view(torch.uint64)
    high = lambda: (torch.erf(torch.arange(1, 1 << depth, device="cuda").double() / (3.2 * math.sqrt(2))) * ((1 << 62) - 1)).long().view(torch.uint64)

    def bell(m, low, high, key):
        m._fused_discrete_gaussian_kernel[(cut(count // 4),)](low, high, out := new(), count, count // 4, depth, key, 5, 0, BLOCK=block, num_warps=4)
        return out

    def bell_two(m, low, high, key, other):
        m._fused_discrete_gaussian_two_streams_kernel[(cut(count // 4),)](low, high, out := new(), count, count // 4, count // 8, depth, key, 5, 0, other, 9, 1, BLOCK=block, num_warps=4)
        return out

    def bell_words(m, low, high, words):
        m._discrete_gaussian_kernel[(cut(count),)](words, low, high, out := new(), count, depth, BLOCK=block)
        return out

    def rounded(m, values, key):
        m._fused_stochastic_round_kernel[(cut(count // 16),)](values, out := new(), count, count // 16, key, 5, 0, BLOCK=block, num_warps=4)
        return out

    def rounded_words(m, values, words):
        m._stochastic_round_kernel[(cut(count),)](values, words, out := new(), count, BLOCK=block)
        return out

    def blocks(m, states):
        m._chacha20_blocks_kernel[(cut(len(states)),)](states, out := torch.empty_like(states), len(states), 0, BLOCK=block)
        return out.view(torch.int32)

    yield sample("bounded_uint64", many(1 << 50), key, call=uniform)
    yield sample("bounded_uint64_two_streams", many(1 << 50), key, key, call=uniform_two)
    yield sample("bounded_uint64_words", many(1 << 50), words(), call=uniform_words)
    yield sample("discrete_gaussian", low, high, key, call=bell)
    yield sample("discrete_gaussian_two_streams", low, high, key, key, call=bell_two)
    yield sample("discrete_gaussian_words", low, high, words(), call=bell_words)
    values = f32(count)
    yield sample("stochastic_round", values, key, call=rounded)
    yield sample("stochastic_round_words", values, words(1), call=rounded_words)
    yield sample("chacha20_blocks", lambda: integers((1 << 31) - 1, 1 << 19, 16, dtype="int32").view(torch.uint32), call=blocks, module="triton_csprng.chacha20")


def contrast():
    """Losses of pairs of images and texts."""
    import torch

    S = "siglip_kernel."
    count, size = 4096, 768
    # Its first kernel, and that for Hopper, read what other threads may have written: they are no cases.
    # Wider rows need more shared memory than there is, in the configuration in the middle.
    yield case(S + "fused_siglip_v2", "_fused_v2_pass", r(count, 512, of=unit), r(count, 512, of=unit), 10.0, -10.0)
    parts = [filled(0, 4096, dtype="float32")] * 3
    sums = lambda f, *args: (f(*args), args[2], [arg.sum() for arg in args[-3:]])[1:]
    for fp8 in (False, True):
        both = (f8(count, size), f8(count, size)) if fp8 else (r(count, size, of=unit), r(count, size, of=unit))
        scale = (1e-3,) if fp8 else ()
        yield case(S + "fused_chunked_epilogue", "_run_gemm_bce" + "_fp8" * fp8, *both, filled(0, count, count, dtype="bfloat16"), 0, 10.0, -10.0, *scale, *parts, call=sums)
    logits = r(count, 16384, dtype="bfloat16")
    bce = lambda f, x: (x := x.clone(), f(x, 128, 16384, True, 5.0, -3.0))
    yield case(S + "triton_sigmoid_bce", "sigmoid_bce_forward", logits, call=bce)
    for soft in (False, True):

        def plus(f, x, image_ids, text_ids, rows, columns, soft=soft):
            x, width = x.clone(), x.shape[1]
            one = torch.ones((), device="cuda")
            out = [torch.empty(len(x), device="cuda") for _ in range(3)]
            named = dict(M=width, num_rows=len(x), row_offset=0, stride_row=width, temp_ptr=5 * one, bias_ptr=-3 * one, alpha=0.5, beta=0.5)
            f[(len(x),)](x, *out, image_ids, text_ids, rows, columns, **named, norm=1 / width, SOFT_LABEL=soft, BLOCK=1024, num_warps=4)
            return x, out

        args = logits, lambda: integers(1024, count), lambda: integers(1024, 16384), positive(count), positive(16384)
        yield case(S + "fused_siglip_plus", "_plus_bce_kernel", *args, call=plus, label=f"_plus_bce_{soft}")
    # Steeper ones, as temperatures of training are, leave nothing of random pairs.
    M, slope = "memeff.", 3.0
    size = 512
    q, d = r(count, size, of=unit), r(count, size, of=unit)
    pos, sums = f32(count, of=share), lambda: share(count, dtype="float32") * count
    zeros = lambda *shape: filled(0, *shape, dtype="float32")
    yield case(M + "_common", "launch_qwen3_denom", q, d, pos, zeros(count), slope, 0.1, call=changed((3,)))
    for diagonal in (False, True):
        both = lambda f, *args, diagonal=diagonal: changed((4, 5))(f, *args, diagonal, two_sided=True)
        args = q, d, pos, sums, zeros(count, size), zeros(count, size), slope, 0.1, 1.0
        yield case(M + "_common", "launch_qwen3_grad", *args, call=both, label=f"launch_qwen3_grad_{diagonal}")
    for row, column in ((True, False), (True, True)):
        rows = lambda f, *args, row=row, column=column: changed((4,))(f, *args, row_side=row, col_side=column, exclude_diag=row and column)
        yield case(M + "_common", "launch_qwen3_fa_grad", q, d, pos, sums, zeros(count, size), slope, 0.1, 1.0, call=rows, label=f"launch_qwen3_fa_grad_{column}")
    for bidir in (False, True):
        yield case(M + "clip_loss", "fa_backward_one", q, d, sums, sums, slope, 1.0, bidir=bidir, label=f"fa_backward_one_{bidir}")
    wide = r(count, 1024, of=unit), r(count, 1024, of=unit)
    yield case(M + "clip_loss", "fa_backward_one", *wide, sums, sums, slope, 1.0, bidir=True, label="fa_backward_one_1024")
    for dims in ((64, 128, 256, 512), (128, 512)):
        K, label = len(dims), len(dims)
        table, weights = lambda dims=dims: torch.tensor(dims, device="cuda", dtype=torch.int32), lambda K=K: torch.full((K,), 1 / K, device="cuda")
        near, place, total = lambda K=K: share(K, count, dtype="float32") + 1, f32(K, count, of=share), lambda K=K: share(K, count, dtype="float32") * count
        out = zeros(count, size), zeros(count, size), zeros(K, count), zeros(K, count)
        two = lambda f, *args: changed((5, 6))(f, *args, two_sided=True)
        yield case(M + "mrl_clip_loss", "launch_mrl_clip_denom", q, d, table, near, near, zeros(K, count), zeros(K, count), slope, call=two, label=f"launch_mrl_clip_denom_{label}")
        two = lambda f, *args: changed((9, 10, 11, 12))(f, *args, two_sided=True)
        yield case(M + "mrl_clip_loss", "launch_mrl_clip_grad", q, d, dims, table, near, near, total, total, weights, *out, slope, 1.0, call=two, label=f"launch_mrl_clip_grad_{label}")
        yield case(M + "mrl_qwen3_loss", "launch_mrl_denom", q, d, table, near, near, place, zeros(K, count), slope, 0.1, call=changed((6,)), label=f"launch_mrl_denom_{label}")
        yield case(M + "mrl_qwen3_loss", "launch_mrl_grad", q, d, dims, table, near, near, place, total, weights, *out, slope, 0.1, 1.0, call=two, label=f"launch_mrl_grad_{label}")
        if K == 2:
            # Its kernels are those of the longer list.
            continue
        one = lambda f, *args: changed((9, 10))(f, *args, own_side=True, other_side=True, has_mask=True, exclude_diag=True)
        args = q, d, dims, [0.5] * K, near, near, place, total, total, zeros(count, size), zeros(K, count), slope, 0.1, 1.0
        yield case(M + "mrl_qwen3_loss", "launch_mrl_fa_grad", *args, call=one, label=f"launch_mrl_fa_grad_{label}")


def attention():
    import torch

    F = "flash_colsum.kernel_"
    for dtype in ("float16", "bfloat16"):
        many = r(8, 16, 2048, 64, dtype=dtype)
        yield case(F + "noncausal_batched", "_flash_colsum_batched", many, many, 0.125, label=f"batched_{dtype}")
    one = r(1, 16, 4096, 64, dtype="float16")
    yield case(F + "noncausal", "_flash_colsum_non_batched", one, one, 0.125, label="one")
    yield case(F + "noncausal", "_flash_colsum_non_batched", one, one, 0.125, 16, label="one_first")
    yield case(F + "causal", "_flash_colsum_causal", r(4, 16, 128, SIZE, dtype="float16"), r(4, 16, 8192, SIZE, dtype="float16"), SIZE**-0.5, label="causal")
    K = "trinix.kernels."
    q = r(2, 2048, 16, 64, dtype="float16")
    for causal in (False, True):
        yield case(K + "attention_kernel", "TritonAttentionKernel", q, q, q, call=lambda f, *args, causal=causal: f.apply(*args, causal=causal), label=f"attention_{causal}")
    mask = lambda: torch.zeros(2, 16, 2048, 2048, device="cuda").masked_fill(torch.arange(2048, device="cuda") % 5 == 4, -1e4)
    yield case(K + "attention_kernel", "TritonAttentionKernel", q, q, q, mask, call=lambda f, *args: f.apply(*args), label="attention_masked")
    turn = f32(2048, SIZE // 2)
    yield learned(K + "rope_kernel", "TritonRoPEKernel", r(4, 2048, HEADS, SIZE), r(4, 2048, HEADS, SIZE), turn, turn, label="rope")
    yield case(K + "alibi_kernel", "TritonALiBiKernel", positive(16), 2, 16, 2048, call=lambda f, *args: f.apply(*args), label="alibi")
    T = "fused_turboquant.kernels.triton_attention"
    for bits in (2, 3, 4):
        args = f32(8, HEADS, 1, SIZE), bytes_of(8, KEYS, 16384, SIZE * bits // 8), positive(8, KEYS, 16384), f32(1 << bits), SIZE**-0.5, bits
        yield case(T, "fused_qk_scores_rht", *args, label=f"fused_qk_scores_{bits}")
    V = "vsa."
    count, top, size = 96, 16, SIZE
    x = r(1, 12, count * 64, size)
    line = lambda: torch.arange(count, device="cuda", dtype=torch.int32)
    near = lambda sign: lambda: ((line()[:, None] + sign * 5 * line()[None, :top]) % count).expand(1, 12, count, top).contiguous()
    seen, sizes = filled(top, 1, 12, count), filled(64, count)

    def forward(f, q, k, v, index, number, sizes):
        out, sums = f(q, k, v, index, number, sizes)
        return out

    yield case(V + "block_sparse_attn_triton", "triton_block_sparse_attn_forward", x, x, x, near(1), seen, sizes, call=forward)
    smaller = r(1, 12, count * 64, size, of=share)
    args = x, x, x, x, smaller, filled(8.0, 1, 12, count * 64, dtype="float32"), near(1), seen, near(-1), seen, sizes
    yield case(V + "block_sparse_attn_triton", "triton_block_sparse_attn_backward", *args)
    yield case(V + "index", "map_to_index", lambda: share(4, 32, 512, 512, dtype="float32") > 0.6)
    O = "openfold3.core.kernels.triton."
    for dtype in ("bfloat16", "float32"):
        sequences, residues, heads, width = 128, 384, 8, 32
        q = r(1, sequences, residues, heads, width, dtype=dtype)
        mask = lambda dtype=dtype: torch.where(torch.arange(residues, device="cuda") < residues - 20, 0.0, -1e4).to(getattr(torch, dtype)).expand(1, sequences, 1, 1, residues).contiguous()
        bias = r(1, 1, heads, residues, residues, dtype=dtype)

        def evoformer(f, q, k, v, bias, mask, biased=True, dynamic=False):
            return f.apply(q, k, v, mask, bias, biased, dynamic)

        name = "EvoformerAttention"
        for dynamic in (False, True):
            call = lambda f, *args, dynamic=dynamic: evoformer(f, *args, dynamic=dynamic)
            yield case(O + "evoformer", name, q, q, q, bias, mask, call=call, label=f"evoformer_{dtype}{'_dynamic' * dynamic}")
        yield case(O + "evoformer", name, q, q, q, bias, mask, call=lambda f, *args: evoformer(f, *args, False), label=f"evoformer_{dtype}_no_bias")
        back = lambda f, q, k, v, bias, mask: evoformer(f, q, k, v, bias, mask.detach())
        yield gradients(O + "evoformer", name, q, q, q, bias, mask, pick=back, label=f"evoformer_{dtype}_trained")
    for columns, sequences in ((128, 1024), (384, 128)):
        scores = r(1, sequences, 4, columns, columns)
        known = lambda columns=columns, sequences=sequences: (torch.arange(columns, device="cuda") % 5 < 4).bfloat16().expand(1, sequences, 1, 1, columns).contiguous()
        yield learned(O + "fused_softmax", "FusedSoftmaxFunc", scores, None, None, label=f"softmax_{columns}")
        yield case(O + "fused_softmax", "FusedSoftmaxFunc", scores, known, r(1, 1, 4, columns, columns), call=lambda f, *args: f.apply(*args), label=f"softmax_{columns}_biased")


def slices():
    """Physics attention: points to a few tokens and back."""
    heads, points = 8, 32768
    tau = filled(0.5, heads, dtype="float32")
    small, large = (32, 64), (64, 256)
    # How products are rounded: as they are, to tf32, in three parts of that, to bfloat16.
    ways = (("exact", 0, "float32"), ("tf32", 1, "float32"), ("tf32x3", 4, "float32"), ("bf16", 3, "bfloat16"))
    for way, dot, dtype in ways:
        for (width, groups), count in ((small, points), (large, points // 4)):
            blocked = groups > 128
            if blocked and way.startswith("tf32"):
                continue
            module, rest = ("flashslice.kernels.blocked", "_blk_impl") if blocked else ("flashslice.kernels.slice_ops", "_impl")
            x, weight, bias = r(2, count, heads, width, dtype=dtype), f32(groups, width), f32(groups)
            tokens, back = f32(2, heads, groups, width), (f32(2, heads, groups, width), f32(2, heads, groups))

            def there(f, *args, module=module, blocked=blocked, dot=dot, rest=rest):
                *args, down, sums = args
                others = vars(importlib.import_module(module))
                stats = [others["compute_stats"](args[0], *args[2:5], dot)] if blocked else []
                return f(*args, *stats, dot)[:2], others[f"_slice{rest.replace('_impl', '_bwd_impl')}"](*args, *stats, down, sums, dot)

            def again(f, *args, module=module, blocked=blocked, dot=dot, rest=rest):
                others = vars(importlib.import_module(module))
                stats = [others["compute_stats"](*args[:4], dot)] if blocked else []
                out = f(*args, *stats, dot)
                grads = others[f"_deslice{rest.replace('_impl', '_bwd_impl')}"](*args, *stats, args[0], dot)
                return out[:1] if blocked else out, grads

            last = f"{way}{'_blocked' * blocked}"
            yield case(module, "_slice" + rest, x, x, weight, bias, tau, *back, call=there, label=f"slice_{last}")
            yield case(module, "_deslice" + rest, x, weight, bias, tau, tokens, call=again, label=f"deslice_{last}")
            if blocked:
                once = lambda f, *args, dot=dot: f(*args, None, dot)[0]
                yield case(module, "_deslice" + rest, x, weight, bias, tau, tokens, call=once, label=f"deslice_{last}_online")


def recurrences():
    import torch

    G = "gru_qat.triton_kernels.scan_diagonal"
    steps_, batch, hidden = 128, 256, 512
    yield learned(G, "gru_scan_diagonal", f32(steps_, batch, 3 * hidden), f32(batch, hidden), f32(3, hidden), f32(3 * hidden))
    M = "mingru.triton_scans"
    length, width = 512, 1024
    near, small = lambda *shape: lambda: share(*shape, dtype="float32") * 1.8 - 0.9, lambda *shape, by: lambda: rand(*shape, dtype="float32") * by
    yield full(gradients(M, "_linear_scan_impl", near(16, length, width), small(16, length, width, by=0.1)))
    logs = lambda *shape: lambda: -torch.nn.functional.softplus(rand(*shape, dtype="float32"))
    yield full(gradients(M, "_parallel_scan_log_impl", logs(16, length, width), logs(16, length + 1, width)))
    for k in (2, 4):
        matrices, values = small(8, 256, 128, k, k, by=0.5 / k**0.5), small(8, 256, 128, k, k, by=0.1)
        yield full(gradients(M, "_matrix_affine_scan_impl", matrices, values, label=f"matrix_affine_scan_{k}"))
    keys = lambda: unit(4, 16, 1024, 1, 64, dtype="float32")
    args = small(4, 16, 1024, 64, by=0.3), keys, small(4, 16, 1024, 1, 64, by=0.3), lambda: share(4, 16, 1024, 1, dtype="float32") * 2, small(4, 16, 64, 64, by=0.1)
    yield full(case(M, "delta_scan_impl", *args, chunk_size=64))


def molecules():
    import torch

    F = "fairchem.core.models.uma.triton."
    atoms, edges, width = 2000, 20000, 128
    near = lambda: torch.stack([torch.arange(edges, device="cuda") % atoms, torch.randperm(edges, device="cuda") % atoms])
    x, turn = f32(atoms, 9, width), f32(edges, 9, 9)
    importlib.import_module(F + "custom_ops")
    yield full(learned(F + "node_to_edge_wigner_permute", "NodeToEdgeWignerPermuteFunction", x, near, turn, label="node_to_edge"))
    yield full(learned(F + "permute_wigner_inv_edge_to_node", "PermuteWignerInvEdgeToNodeFunction", f32(edges, 9, width), turn, label="edge_to_node"))
    blocks = f32(edges, 35)
    yield full(gradients(F + "fused_wigner", "wigner_conv1_fused_op", x, near, blocks, f32(edges, 12 * width), width))
    packed = f32(edges, 3 * width), f32(edges, 4 * width), f32(edges, 2 * width)
    yield full(gradients(F + "fused_wigner", "wigner_inv_conv2_fused_op", *packed, blocks, width))
    target = lambda: torch.randperm(edges, device="cuda") % atoms
    yield full(gradients(F + "fused_wigner", "wigner_inv_conv2_scatter_op", *packed, blocks, target, atoms, width))
    yield full(gradients(F + "packed_gate", "packed_gate_op", f32(edges, 5 * width), packed[1], packed[2], width))


def piper():
    import torch

    P = "piper_kernels."
    T = P + "_triton."
    rows, width = 8192, 4096
    whole_ = r(rows, width)
    one = lambda value: lambda: torch.full((), value, device="cuda")
    yield case(T + "nvfp4", "dynamic_scale", whole_)
    for group in (16, 64, 256):
        turned = lambda f, x, group=group: (out := torch.empty_like(x), f(x, out, group, num_warps=4))[0]
        yield case(T + "convrot", "rotate_input", whole_, call=turned, label=f"rotate_input_{group}")
        for activation in (None, "swiglu"):

            def packed(f, x, group=group, activation=activation):
                out = torch.empty(rows, width, device="cuda", dtype=torch.int8), torch.empty(rows, device="cuda")
                f[(rows,)](x, *out, width, width, 1, group, group**-0.5, activation, "cuda", -1, num_warps=4)
                return out

            x = r(rows, width * (2 if activation else 1))
            yield case(T + "convrot_int8", "rotate_quantize_rows_kernel", x, call=packed, label=f"rotate_quantize_rows_{group}_{activation}")

        def packed4(f, x, scale, group=group):
            out = torch.empty(rows, width // 2, device="cuda", dtype=torch.uint8), torch.empty(rows // 4, width // 4, device="cuda", dtype=torch.float8_e4m3fn)
            f[(rows,)](x, scale, *out, width, 1, width, 0, 0, group, group**-0.5, width // 64, None, "cuda", -1, True, True, False, num_warps=4)
            return out[0], out[1].view(torch.uint8)

        yield case(T + "convrot_nvfp4", "_rotate_quantize_nvfp4_kernel", whole_, one(0.01), call=packed4, label=f"rotate_quantize_nvfp4_{group}")

        def largest(f, x, group=group):
            out = torch.empty(rows, device="cuda")
            f[(rows,)](x, out, width, 1, width, 0, 0, group, group**-0.5, None, "cuda", -1, num_warps=4)
            return out

        yield case(T + "convrot_nvfp4", "_rotated_row_amax_kernel", whole_, call=largest, label=f"rotated_row_amax_{group}")
    S = P + "fusions.convrot_nvfp4_swiglu_ffn._preparation"

    def gated(f, x):
        out = torch.empty(rows, width, device="cuda"), torch.empty(rows, device="cuda")
        f[(rows,)](x, *out, width, 256, width, num_warps=4)
        return out

    yield case(S, "_swiglu_rotated_amax_kernel", r(rows, 2 * width), call=gated, label="swiglu_rotated_amax")

    def gated4(f, x, scale):
        out = torch.empty(rows, width // 2, device="cuda", dtype=torch.uint8), torch.empty(rows // 4, width // 4, device="cuda", dtype=torch.float8_e4m3fn)
        f[(rows * width // 1024,)](x, scale, *out, rows * width, width, 256, 1024, False, num_warps=2)
        return out[0], out[1].view(torch.uint8)

    yield case(S, "_swiglu_quantize_kernel", r(rows, 2 * width), one(0.01), call=gated4, label="swiglu_quantize")

    def updated(f, out, base, update, gate, other, ids):
        update = update.clone()
        f[(rows * width // 256,)](out, base, update, gate, other, ids, rows * width, 0, width, width, width, width, 16, 16, False, 256, num_warps=4)
        return update

    gates = r(16, width), r(16, width), lambda: integers(16, rows)
    yield case(P + "fusions.ffn.triton", "_indexed_gated_updates_kernel", whole_, whole_, whole_, *gates, call=updated, label="indexed_gated_updates")
    L = P + "linear."
    for activation, more in ((None, 1), ("swiglu", 2), ("gelu_tanh", 1)):
        seen = lambda f, x, scale, activation=activation: [leaf.view(torch.uint8) for leaf in f(x, scale, activation)[:2]]
        yield case(L + "nvfp4.triton", "prepare_static", r(rows, more * width), one(0.01), call=seen, label=f"prepare_static_{activation}")
    added = lambda f, x, bias: (out := torch.empty_like(x), f(x, bias, out))[0]
    yield case(L + "nvfp4.triton", "add_bias_out", whole_, r(width), call=added)
    yield case(L + "convrot.int8._generic.mean", "dequantized_input_mean", i8(4, 4096, 4096), positive(4, 4096))
    for rows_, groups in ((4096, 8), (4096, 0), (16, 0)):

        def product(f, x, w, scale, other, bias, groups=groups):
            m, k = x.shape
            n, block = len(w), 128 if len(x) > 64 else 16
            out = torch.empty(m, n, device="cuda", dtype=torch.bfloat16)
            grid = (-(-m // block), -(-n // 128))
            grid = (grid[0] * grid[1],) if groups else grid
            f[grid](x, w, out, scale, other, bias, w, other, bias, m, n, k, n, block, 128, 64, True, False, False, True, True, groups, False, False, num_warps=8 if block > 64 else 4, num_stages=3)
            return out

        args = i8(rows_, 4096), i8(4096, 4096), positive(rows_), positive(4096), r(4096)
        yield case(L + "convrot.int8._kernels.triton", "int8_matmul_kernel", *args, call=product, label=f"int8_matmul_{rows_}_{groups}")
    W = P + "weights.nvfp4.triton"

    def merged(f, q, scale, total, a, b, beta):
        q, scale, total = q.clone(), scale.clone(), total.clone()
        f(q, scale, total, a, b, 16, beta, 0.5, True, False, None)
        return q, scale.view(torch.uint8), total

    packed_ = bytes_of(4096, 2048), lambda: (share(1024, 1024, dtype="float32") * 100 + 1).to(torch.float8_e4m3fn), one(0.01)
    yield case(W, "_update_", *packed_, f32(4096, 4096), None, 1.0, call=merged, label="nvfp4_add")
    yield case(W, "_update_", *packed_, r(4096, 64), r(64, 4096), 1.0, call=merged, label="nvfp4_addmm")
    A = P + "attention."
    q = r(2, 24, 4096, SIZE)
    yield case(A + "piper_attention._quantization", "compute_kv_means", q, q, is_causal=False)
    K = A + "kernels.qk_quantization.int8.sage.triton"
    for grouped in (False, True):
        yield case(K, "prepare_query", q, SIZE**-0.5, grouped=grouped, label=f"prepare_query_{grouped}")
        yield case(K, "prepare_key", q, f32(2, 24, SIZE), grouped=grouped, storage_key_length=4096, label=f"prepare_key_{grouped}")
    R = A + "sparse_piper_attention."

    def with_summaries(f, q, k, mean):
        both, *rest = f(q, k, mean, SIZE**-0.5, storage_sequence_length=4096, sparse_key_blocks=64, block_lengths=None)
        return both.query, both.key, both.query_scale, both.key_scale, rest

    yield case(R + "triton", "_prepare_query_key_with_summaries", q, q, f32(2, 24, SIZE), call=with_summaries, label="prepare_query_key_with_summaries")

    def tiles(f, v, mean):
        batch, heads, length, size = v.shape
        out = torch.empty(batch, heads, size, length, device="cuda", dtype=torch.int8)
        scale = torch.empty(batch, heads, length // 64, 1, device="cuda")
        f[(length // 64, batch * heads)](v, mean, scale, out, mean, length, *v.stride()[:3], *out.stride(), heads=heads, head_dim=size, block_n=64, mask_block_lengths=False, num_warps=4)
        return out, scale

    yield case(R + "triton", "_quantize_value_per_tile_kernel", q, f32(2, 24, SIZE), call=tiles, label="quantize_value_per_tile")

    def summary(f, x, mean):
        batch, heads, length, size = x.shape
        out = [torch.zeros(batch, heads, length // 64, size, device="cuda") for _ in range(2)]
        strides = dict(stride_ib=x.stride(0), stride_ih=x.stride(1), stride_il=64 * x.stride(2), stride_ir=x.stride(2))
        named = dict(block_rows=64, head_dim=size, heads=heads, query_summary=False, mean_pool_summary=mean, mask_block_lengths=False, mask_ragged_tail=False)
        f[(batch * heads * length // 64,)](x, *out, x, logical_block_count=length // 64, logical_row_count=length, **strides, **named, num_warps=4, num_stages=1)
        return out

    for mean in (False, True):
        yield case(R + "_summaries_triton", "_block_summary_kernel", q, mean, call=summary, label=f"block_summary_{mean}")
    blocks = f32(1, 12, 2048, SIZE)
    yield case(R + "_scores_triton", "minmax_scores", blocks, blocks, blocks)

    def routes(f, scores):
        batch, heads, count, keys = scores.shape
        out = torch.zeros(batch, count, heads * 128, device="cuda", dtype=torch.int16)
        keep = torch.full((heads,), 128, device="cuda", dtype=torch.int32)
        f[(count, heads, batch)](scores, out.view(torch.uint16), keep, steps(heads, 128), keys, 0, *scores.stride()[:3], *out.stride(), selector_tile=512, num_warps=4, num_stages=1)
        return out

    yield case(R + "_routes_triton", "_tiled_radix_select_packed_routes_kernel", f32(1, 12, 1024, 2048), call=routes, label="tiled_radix_select")
    G = A + "sage_attention_2pp."
    for causal in (False, True):
        for packed_way in (False, True):

            def attend(f, q, k, v, causal=causal, packed_way=packed_way):
                plan = importlib.import_module(G + "_plan").SageAttention2ppExecutionPlan(128, False, False, packed_way, 4 if not causal else 8)
                return f(q, k, v, SIZE**-0.5, causal, execution_plan=plan)

            yield case(G + "triton", "_run_sage_attention_2pp", q, q, q, call=attend, label=f"sage_attention_2pp_{causal}{'_packed' * packed_way}")
    C = P + "conv3d.convrot.int8."
    for described in (False, True):

        def convolved(f, x, w, scale, bias, residual, *norm, described=described):
            plan = importlib.import_module(C + "_plan")
            shape = plan.ConvolutionSchedule(128, 128, 64, 8, 3)
            plan = plan.ConvolutionExecutionPlan(plan.PreparationSchedule(32, 4), shape, described)
            named = dict(execution_plan=plan, accelerator_backend="cuda", padding=(1, 1, 1, 1, 2, 0), spatial_reflection=False, residual=residual)
            normed = (*norm, 32, 1e-6) if norm else ()
            return f(x, *normed, w, scale, bias, 16, torch.full((1,), 0.05, device="cuda"), (1, 1, 1), **named)

        half = lambda *shape: r(*shape, dtype="float16")
        image, weight = half(1, 256, 8, 64, 64), (i8(256, 27, 256), positive(256), half(256))
        yield case(C + "triton", "conv3d", image, *weight, image, call=convolved, label=f"conv3d_{described}")
        yield case(C + "triton", "group_norm_silu_conv3d", image, *weight, None, half(256), half(256), call=convolved, label=f"group_norm_silu_conv3d_{described}")


def experts():
    import torch

    T = "torchtitan.distributed.minimal_async_ep.kernels"
    tokens, top, columns, count = 8192, 8, 2048, 64
    rows = tokens * top
    mixed = lambda: torch.randperm(rows, device="cuda")
    yield case(T, "invert_flat_indices_kernel", lambda: torch.randperm(1 << 22, device="cuda"), num_rows=1 << 22)
    for ordered in (False, True):
        named = dict(scores_are_slot_ordered=ordered, label=f"reduce_topk_slots_{ordered}")
        yield case(T, "reduce_topk_slots_kernel", r(rows, columns), mixed, f32(rows, of=share), num_tokens=tokens, top_k=top, **named)
        named = dict(scores_are_slot_ordered=ordered, dtype=torch.bfloat16, top_k=top)
        yield case(T, "expand_topk_grad_kernel", r(tokens, columns), mixed, f32(rows, of=share), label=f"expand_topk_grad_{ordered}", **named)
        named["dtype"] = torch.float32
        yield case(T, "topk_scores_grad_kernel", r(rows, columns), r(tokens, columns), mixed, label=f"topk_scores_grad_{ordered}", **named)
    yield case(T, "reduce_topk_slots_kernel", r(rows, columns), mixed, None, num_tokens=tokens, top_k=top, label="reduce_topk_slots_no_scores")
    L = "torchtitan.overrides.fused_mla"
    place = lambda: torch.arange(2048, device="cuda")[None, :].expand(2, 2048).contiguous()
    table = f32(2048, 32, 2)
    raw = lambda f: getattr(f, "_init_fn", f)
    for inverse in (False, True):
        turned = lambda f, q, *args: raw(f)(q.clone(), *args)
        yield case(L, "_fused_mla_q_rope_op", r(2, 2048, 128, 192), table, place, 128, inverse, call=turned, label=f"fused_mla_q_rope_{inverse}")
    bare = lambda f, *args: raw(f)(*args)
    yield case(L, "_fused_mla_k_rope_op", r(2, 2048, 128, 256), r(2, 2048, 64), table, place, 128, call=bare, label="fused_mla_k_rope")
    yield case(L, "_fused_mla_kv_backward_op", r(2, 2048, 128, 192), r(2, 2048, 128, 128), table, place, 128, 64, call=bare, label="fused_mla_kv_backward")


def cases():
    import numpy as np
    import torch

    plain()
    folder = os.environ["THIRD"]
    sys.path.append(folder)

    def table(name):
        values = np.load(os.path.join(folder, "hilbertsfc", "_data", f"lut_{name}_u16.npy"))
        return lambda device, cache=None: torch.from_numpy(values.reshape(-1).astype(np.int16)).to(device)

    tables = {f"lut_{name}_i16": table(name) for name in ("2d4b_sb_sq", "2d4b_sq_sb", "3d2b_sb_so", "3d2b_so_sb")}
    given("hilbertsfc.torch._luts", TorchCacheMode=str, **tables)
    given("hilbertsfc.torch._tuning_mode", TritonTuningMode=str, validate_triton_tuning_mode=lambda mode: mode)
    numbers = dict(GELU_TANH_CUBIC_COEFFICIENT=0.044715, GELU_TANH_SCALE_COEFFICIENT=math.sqrt(2 / math.pi))
    given("piper_kernels._input_activations", input_activation_width=lambda name: 2 if name == "swiglu" else 1, **numbers)
    given("pytest")
    # A mark of operators that only newer versions of PyTorch have.
    if not hasattr(torch.Tag, "inplace"):
        torch.Tag.inplace = ()
    stubs.install(folder, PACKAGES, REAL)
    # Stubs of packages answer for their modules until these are imported.
    importlib.import_module("piper_kernels")._input_activations = sys.modules["piper_kernels._input_activations"]
    first = "_triton.input_activations _triton.convrot weights.nvfp4._layout _triton.nvfp4 gguf._types gguf.triton _triton.convrot_int8"
    first += " attention.kernels.qk_quantization.int8.sage._rotation attention.kernels.qk_quantization.int8.sage.triton attention.kernels.sparse_piper.triton"
    for name in first.split():
        importlib.import_module("piper_kernels." + name)
    groups = norms, activations, optimizers, images, curves, trees, randomness, contrast, attention, slices, recurrences, molecules, piper, experts
    for group in groups:
        yield from group()


if __name__ == "__main__":
    paired.main(__doc__.splitlines()[0], cases, shares=4)
