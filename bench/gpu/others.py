"""Kernels of still more packages, timed one by one: compiled by Triton, and by ttopt through its hook.

    OTHERS=FOLDER python bench/gpu/others.py [--only REGEX] [--shares N] [--json FILE] [--keep FOLDER]

Needs a GPU, PyTorch with its Triton, and this project's wheel (`./dev wheel`). FOLDER holds, unpacked and not installed, the
packages named in `PACKAGES`, each below its import name; of these only files with kernels are imported, with what they need
(`stubs.py`). AITER's tables of configurations are for AMD GPUs; what only these know is left out of them.
Kernels with autotuners get the configuration in the middle. How it is timed and compared: `paired.py`.
"""

import importlib
import importlib.metadata
import os
import sys
import tempfile
import types

import paired
import stubs
from engines import HEADS, KEYS, SIZE, case, f8, f32, i8, i32, r, steps, writes
from libraries import gate, integers, one_configuration, rand, share, trained
from more_packages import bounds, bytes_of, filled, given, gradients, portable, positive
from packages import COLUMNS, ROWS, learned, pages

PACKAGES = {"aiter", "flash_kmeans", "flash_semicrf", "flash_sinkhorn", "flash_sparse_attn", "flashinfer"}
PACKAGES |= {"hyper_connections", "jvp_flash_attention", "lightning_attn", "megatron", "modelopt"}
PACKAGES |= {"transformer_engine", "trifast", "unsloth_zoo"}


class Real:
    """Modules that are imported as they are: these, and all below those that end with a dot."""

    def __init__(self, *names):
        self.names = names

    def __contains__(self, name):
        return any(name.startswith(one) if one.endswith(".") else name == one for one in self.names)


PLAIN = "assert_inputs autotuner cache_utils kernel_repr launch_grid launch_template utils".split()
REAL = Real(
    "aiter.ops.triton.",
    "flash_kmeans.",
    "flash_semicrf.streaming.",
    "flash_sinkhorn.kernels.",
    "flash_sparse_attn.ops.triton.interface",
    *("flash_sparse_attn.ops.triton." + name for name in PLAIN),
    "flashinfer.triton.",
    "modelopt.torch.kernels.",
    "modelopt.torch.quantization.utils.numeric_utils",
    "transformer_engine.pytorch.triton.",
    "trifast.",
)
SPARSE = "activations block_info mask paged_kv quant seqlen_info topk_gather_kv".split()
SPARSE += "flash_bwd_postprocess flash_bwd_preprocess flash_dec_combine flash_fwd_combine".split()


def aiter():
    import torch

    A = "aiter.ops.triton."
    rows, weight = r(ROWS, COLUMNS), r(COLUMNS)
    one = filled(1.0, 1, dtype="float32")
    floats = lambda f, *args, **named: [leaf.float() if leaf.dtype == torch.float8_e4m3fn else leaf for leaf in paired.leaves(f(*args, **named))]
    out = lambda *shape, dtype="bfloat16": lambda: torch.zeros(shape, device="cuda", dtype=getattr(torch, dtype))
    # Products
    for m in (16, 256, 4096):
        yield case(A + "gemm_a16w16", "gemm_a16w16", r(m, COLUMNS), r(COLUMNS, COLUMNS), label=f"gemm_a16w16_{m}")
        args = f8(m, COLUMNS), f8(COLUMNS, COLUMNS), positive(m, COLUMNS // 128), positive(COLUMNS // 128, COLUMNS // 128)
        yield case(A + "gemm_a8w8_blockscale", "gemm_a8w8_blockscale", *args, label=f"gemm_a8w8_blockscale_{m}")
        args = f8(m, COLUMNS), f8(COLUMNS, COLUMNS), positive(m, 1), positive(COLUMNS, 1)
        yield case(A + "gemm_a8w8_per_token_scale", "gemm_a8w8_per_token_scale", *args, label=f"gemm_a8w8_per_token_scale_{m}")
        args = i8(m, COLUMNS), i8(COLUMNS, COLUMNS), positive(m, 1), positive(1, COLUMNS)
        yield case(A + "gemm_a8w8", "gemm_a8w8", *args, label=f"gemm_a8w8_{m}")
        args = r(m, COLUMNS), f8(COLUMNS, COLUMNS), positive(COLUMNS // 128, COLUMNS // 128)
        yield case(A + "gemm_a16w8_blockscale", "gemm_a16w8_blockscale", *args, label=f"gemm_a16w8_blockscale_{m}")
    yield case(A + "gemm_a16w16", "gemm_a16w16", r(4096, COLUMNS), r(COLUMNS, COLUMNS), r(COLUMNS), activation="gelu", label="gemm_a16w16_gelu")
    yield case(A + "gemm_a16w16_atomic", "gemm_a16w16_atomic", r(64, 7168), r(256, 7168), torch.float32)
    yield case(A + "gemm_a16w16_gated", "gemm_a16w16_gated", r(2048, COLUMNS), r(2 * COLUMNS, COLUMNS), activation="silu")
    yield case(A + "ff_a16w16_fused_gated", "ff_a16w16_fused_gated", r(128, 1024), r(2048, 1024), r(1024, 1024), activation="silu", label="ff_fused_gated")
    yield case(A + "ff_a16w16_fused_ungated", "ff_a16w16_fused_ungated", r(128, 1024), r(1024, 1024), r(1024, 1024), activation="silu", label="ff_fused_ungated")
    mx = lambda m, n, k: (bytes_of(m, k // 2), bytes_of(n, k // 2), bytes_of(m, k // 32, low=120, high=130), bytes_of(n, k // 32, low=120, high=130))
    for m in (16, 1024):
        yield case(A + "gemm_afp4wfp4", "gemm_afp4wfp4", *mx(m, COLUMNS, COLUMNS), label=f"gemm_afp4wfp4_{m}")
        args = f8(m, COLUMNS), bytes_of(COLUMNS, COLUMNS // 2), out(m, COLUMNS), positive(m, 1), bytes_of(COLUMNS, COLUMNS // 32, low=120, high=130)
        yield case(A + "gemm_a8wfp4", "gemm_a8wfp4", *args, call=writes(2), label=f"gemm_a8wfp4_{m}")
        args = r(m, COLUMNS), bytes_of(COLUMNS, COLUMNS // 2), bytes_of(COLUMNS, COLUMNS // 32, low=120, high=130), torch.float32
        yield case(A + "gemm_afp4wfp4_pre_quant_atomic", "gemm_afp4wfp4_pre_quant", *args, label=f"gemm_afp4wfp4_pre_quant_{m}")
    yield case(A + "batched_gemm_bf16", "batched_gemm_bf16", r(16, 512, 512), r(16, 512, 512))
    args = i8(16, 512, 512), i8(16, 512, 512), positive(16, 512, 1), positive(16, 1, 512)
    yield case(A + "batched_gemm_a8w8", "batched_gemm_a8w8", *args)
    G = A + "batched_gemm_a8w8_a_per_token_group_prequant_w_per_batched_tensor_quant"
    yield case(G, G[len(A):], r(16, 512, 512), f8(16, 128, 512), one, label="batched_gemm_a8w8_prequant")
    args = bytes_of(16, 256, 256), bytes_of(16, 512, 256), bytes_of(16, 256, 16, low=120, high=130), bytes_of(16, 512, 16, low=120, high=130)
    yield case(A + "batched_gemm_afp4wfp4", "batched_gemm_afp4wfp4", *args, call=lambda f, *args: (y := out(16, 256, 512)(), f(*args, y=y))[0])
    yield case(A + "batched_gemm_afp4wfp4_pre_quant", "batched_gemm_afp4wfp4_pre_quant", r(16, 256, 512), args[1], args[3], call=lambda f, *args: (y := out(16, 256, 512)(), f(*args, y=y))[0])
    args = f8(256, 7168), f8(512, 7168), positive(256, 56), positive(4, 56), r(256, 7168), r(256, 7168)
    yield case(A + "fused_gemm_a8w8_blockscale_a16w16", "fused_gemm_a8w8_blockscale_a16w16", *args)
    sizes = filled(1024, 8)
    yield case(A + "gmm", "gmm", r(8192, 2048), r(8, 2048, 2048), sizes)
    turned = lambda f, a, *rest: f(a.t(), *rest)
    yield case(A + "gmm", "ptgmm", r(8192, 2048), r(8192, 1024), sizes, call=turned)
    yield case(A + "gmm", "nptgmm", r(8192, 2048), r(8192, 1024), sizes, call=turned)
    # Norms, quantization, activations
    yield learned(A + "rmsnorm", "rms_norm", rows, weight, 1e-6)
    yield learned(A + "norm", "layer_norm", rows, weight, weight, 1e-6)
    add = lambda f, x, *args: (y := torch.empty_like(x), z := torch.empty_like(x), f(y, x, x, z, *args))[:2]
    yield case(A + "rmsnorm", "rmsnorm2d_fwd_with_add", rows, weight, 1e-6, call=add)
    yield case(A + "norm", "layernorm2d_fwd_with_add", rows, weight, weight, 1e-6, call=add)
    scales = lambda: torch.empty(ROWS, 1, device="cuda")
    dynamic = lambda f, x, *args: (y := torch.empty_like(x, dtype=torch.int8), s := scales(), f(y, x, s, *args))[:2]
    yield case(A + "rmsnorm", "rmsnorm2d_fwd_with_dynamicquant", rows, weight, 1e-6, call=dynamic)
    yield case(A + "norm", "layernorm2d_fwd_with_dynamicquant", rows, weight, weight, 1e-6, call=dynamic)
    smooth = lambda f, x, scale, *args: (y := torch.empty_like(x, dtype=torch.int8), s := scales(), f(y, x, scale, s, *args))[:2]
    yield case(A + "rmsnorm", "rmsnorm2d_fwd_with_smoothquant", rows, positive(COLUMNS), weight, 1e-6, call=smooth)
    both = lambda f, x, *args: (y := torch.empty_like(x, dtype=torch.int8), z := torch.empty_like(x), s := scales(), f(y, x, x, z, s, *args))[:3]
    yield case(A + "rmsnorm", "rmsnorm2d_fwd_with_add_dynamicquant", rows, weight, 1e-6, call=both)
    yield case(A + "norm", "layernorm2d_fwd_with_add_dynamicquant", rows, weight, weight, 1e-6, call=both)
    yield case(A + "fused_add_rmsnorm_pad", "fused_add_rmsnorm_pad", r(ROWS, 2880), r(2880), 1e-6, r(ROWS, 2880), 256)
    Q = A + "quant"
    empty8 = lambda x: torch.empty_like(x, dtype=torch.int8)
    yield case(Q, "static_per_tensor_quant_fp8_i8", rows, one, call=lambda f, x, s: (y := empty8(x), f(y, x, s))[0])
    yield case(Q, "dynamic_per_tensor_quant_fp8_i8", rows, call=lambda f, x: (y := empty8(x), f(y, x, torch.zeros(1, device="cuda")))[0])
    yield case(Q, "dynamic_per_token_quant_fp8_i8", rows, call=lambda f, x: (y := empty8(x), f(y, x, scales()))[0])
    yield case(Q, "dynamic_mxfp4_quant", rows)
    yield case(A + "activation", "act_mul_and_mxfp4_quant", r(ROWS, 2 * COLUMNS), "silu")
    yield case(A + "activation", "act_mul_and_fp8_group_quant", r(ROWS, 2 * COLUMNS), "gelu", 128, call=floats)
    F = A + "fused_fp8_quant"
    yield case(F, "fused_rms_fp8_group_quant", r(ROWS, 2048), r(2048), 1e-6, r(ROWS, 512), r(512), 1e-6, call=floats)
    yield case(F, "fused_rms_fp8_group_quant", rows, weight, 1e-6, call=lambda f, x, w, e: floats(f, x, w, e, res1=x), label="fused_rms_fp8_group_quant_residual")
    yield case(F, "fused_rms_fp8_per_tensor_static_quant", rows, weight, 1e-6, one, call=floats)
    yield case(F, "fused_flatten_fp8_group_quant", r(2048, 32, 512), 128, call=floats)
    yield case(F, "fused_reduce_act_mul_fp8_group_quant", f32(4, 2048, 2 * COLUMNS), call=lambda f, x: floats(f, x, x2=f32(4, 2048, 512)()))
    args = f32(4, 2048, 2048), r(2048), 1e-6, f32(4, 2048, 512), r(512), 1e-6, f32(4, 2048, 64)
    yield case(F, "fused_reduce_rms_fp8_group_quant", *args, call=lambda f, *args: floats(f, *args, dtype=torch.bfloat16))
    M = A + "fused_mxfp4_quant"
    yield case(M, "fused_rms_mxfp4_quant", rows, weight, 1e-6, r(ROWS, 512), r(512), 1e-6, rows)
    yield case(M, "fused_flatten_mxfp4_quant", r(2048, 32, 512))
    yield case(A + "quant_moe", "downcast_to_static_fp8", rows, one, call=floats)
    for name, kind in (("fp4", torch.uint8), ("fp8", torch.float8_e4m3fn)):
        seen = lambda f, x, kind=kind: [part.view(torch.uint8) for part in f(x, kind, 1)]
        yield case(A + "quant_moe", "downcast_to_mxfp", rows, call=seen, label=f"downcast_to_mxfp_{name}")
    scale = bytes_of(COLUMNS, COLUMNS // 32, low=110, high=130)
    yield case(A + "quant_moe", "upcast_from_mxfp", bytes_of(COLUMNS, COLUMNS // 2), scale, torch.bfloat16, 1, label="upcast_from_mxfp_fp4")
    yield case(A + "quant_moe", "upcast_from_mxfp", f8(COLUMNS, COLUMNS), scale, torch.bfloat16, 1, label="upcast_from_mxfp_fp8")
    yield case(A + "softmax", "softmax", r(ROWS, 8192))
    yield case(A + "fused_mul_add", "fused_mul_add", rows, 2.0, rows)
    yield case(A + "split_qkv", "split_qkv", r(ROWS, 6144), 4096, 1024)
    for count, top in ((128, 8), (512, 8), (8192, 8)):
        yield case(A + "topk", "topk", f32(1024, count), top, label=f"topk_{count}")
    # Mixtures of experts
    E, active, inner = 32, 4, 2048
    yield case(A + "moe_routing.topk", "topk", r(8192, 128), 8, call=lambda f, x, k: f(x, k)[:2], label="moe_topk")
    yield case(A + "moe_routing.routing", "routing", r(8192, 128), 8, call=lambda f, *args: list(f(*args))[1:3])
    yield case(A + "moe_routing_sigmoid_top1_fused", "routing_sigmoid_top1", r(4096, 5120), r(5120, 128), 1)

    def routed(tokens, block):
        flat = torch.arange(tokens * active, device="cuda", dtype=torch.int32)
        per = tokens * active // E
        ids = (flat // per).view(tokens, active)
        blocks = -(-per // block)
        places = torch.full((E, blocks * block), tokens * active, device="cuda", dtype=torch.int32)
        places[:, :per] = flat.view(E, per)
        experts = torch.arange(E, device="cuda", dtype=torch.int32).repeat_interleave(blocks)
        return ids, places.reshape(-1), experts, torch.full((1,), places.numel(), device="cuda", dtype=torch.int32)

    def moe(module, name, tokens, kind="bf16", columns=2 * inner, gated=False, label=None):
        def make():
            import triton.language as tl

            function = getattr(importlib.import_module(A + module), name)
            block = 16 if tokens <= 64 else 64
            config = dict(BLOCK_SIZE_M=block, BLOCK_SIZE_N=64 if tokens <= 64 else 128, BLOCK_SIZE_K=128, GROUP_SIZE_M=4, num_warps=4, num_stages=2)
            a, b = rand(tokens, COLUMNS // 2), rand(E, columns, COLUMNS // 2)
            zero = scale_a = scale_b = shape = None
            if kind == "fp8":
                a, b = a.to(torch.float8_e4m3fn), b.to(torch.float8_e4m3fn)
                scale_a, scale_b = torch.ones(1, device="cuda"), torch.ones(E, device="cuda")
            elif kind == "fp8_block":
                a, b, shape = a.to(torch.float8_e4m3fn), b.to(torch.float8_e4m3fn), [128, 128]
                scale_a, scale_b = torch.ones(tokens, COLUMNS // 256, device="cuda"), torch.ones(E, columns // 128, COLUMNS // 256, device="cuda")
            elif kind == "int8":
                b, scale_b = b.to(torch.int8), torch.ones(E, columns, device="cuda")
            elif kind == "int4":
                b = torch.randint(0, 256, (E, columns, COLUMNS // 4), device="cuda", dtype=torch.uint8)
                scale_b, shape = rand(E, columns, COLUMNS // 2 // 128).abs(), [0, 128]
            ids, places, experts, count = routed(tokens, block)
            weights = torch.rand(tokens, active, device="cuda")
            c = torch.zeros(tokens * active, columns // 2 if gated else columns, device="cuda", dtype=torch.bfloat16).view(tokens, active, -1)
            zeros = () if "gelu" in name else (zero,)

            def call(a, b):
                flags = kind.startswith("fp8"), kind == "int8"
                flags += () if "gelu" in name else (kind == "int4",)
                function(a, b, c, scale_a, scale_b, *zeros, weights, ids, places, experts, count, False, active, tl.bfloat16, *flags, shape, config)
                return c

            return call, [a, b]

        return f"aiter.{label or name}_{kind}_{tokens}", make

    for tokens in (32, 2048):
        for kind in ("bf16", "fp8", "fp8_block", "int8", "int4"):
            yield moe("moe_op", "fused_moe", tokens, kind)
    yield moe("moe_op_gelu", "fused_moe_gelu", 2048)
    yield moe("moe_op_silu_fused", "fused_moe_silu", 2048, gated=True)
    yield moe("moe_op_silu_fused", "fused_moe_silu", 2048, "fp8_block", gated=True)
    yield moe("moe_op_silu_fused", "fused_moe_silu", 32, "int4", gated=True)

    def mxfp4(module, name, tokens, gated=False):
        def make():
            import triton.language as tl

            function = getattr(importlib.import_module(A + module), name)
            block, columns, depth = 16 if tokens <= 64 else 64, 2 * inner, COLUMNS // 2
            config = dict(BLOCK_SIZE_M=block, BLOCK_SIZE_N=64, BLOCK_SIZE_K=128, GROUP_SIZE_M=4, num_warps=4, num_stages=2)
            a, b = bytes_of(tokens, depth // 2)(), bytes_of(E, columns, depth // 2)()
            scale_a, scale_b = bytes_of(tokens, depth // 32, low=120, high=130)(), bytes_of(E, columns, depth // 32, low=120, high=130)()
            ids, places, experts, count = routed(tokens, block)
            weights = torch.rand(tokens, active, device="cuda")
            c = torch.zeros(tokens, active, columns // 2 if gated else columns, device="cuda", dtype=torch.bfloat16)
            ones = torch.ones(1, device="cuda"), torch.ones(E, device="cuda")

            def call(a, b):
                function(a, b, c, *ones, scale_a, scale_b, weights, ids, places, experts, count, False, active, False, False, config, tl.bfloat16)
                return c

            return call, [a, b]

        return f"aiter.{name}_{tokens}", make

    yield mxfp4("moe_op_mxfp4", "fused_moe_mxfp4", 32)
    yield mxfp4("moe_op_mxfp4", "fused_moe_mxfp4", 2048)
    yield mxfp4("moe_op_mxfp4_silu_fused", "fused_moe_mxfp4_silu", 2048, gated=True)
    places = lambda: torch.arange(8192 * 4, device="cuda", dtype=torch.int32).view(8192, 4) % 64
    room = 8192 * 4 + 64 * 64
    aligned = lambda f, ids: (s := filled(0, room)(), e := filled(0, room // 64)(), n := filled(0, 1)(), f(ids, 64, 64, s, e, n))[:3]
    yield case(A + "moe_align_block_size", "moe_align_block_size_triton", places, call=aligned)
    # Rotary embeddings, caches
    R = A + "rope"
    x, freqs = r(2048, 4, HEADS, SIZE), r(2048, 1, 1, SIZE // 2)
    for style in (0, 1):
        yield case(R, "rope_fwd", x, freqs, style, True, False, label=f"rope_fwd_{style}")
        yield case(R, "rope_bwd", x, freqs, style, True, False, label=f"rope_bwd_{style}")
        yield case(R, "rope_cached_fwd", x, freqs, freqs, style, True, False, label=f"rope_cached_fwd_{style}")
        yield case(R, "rope_cached_bwd", x, freqs, freqs, style, True, False, label=f"rope_cached_bwd_{style}")
        yield case(R, "rope_thd_fwd", r(8192, HEADS, SIZE), bounds(4, 2048), r(2048, 1, 1, SIZE // 2), style, True, False, label=f"rope_thd_fwd_{style}")
        yield case(R, "rope_cached_positions_fwd", x, freqs, freqs, i32(2048, 2048, 4), style, True, False, label=f"rope_cached_positions_fwd_{style}")
    side = r(1, 16, 1, SIZE // 2)
    grid = r(64, 256, HEADS, SIZE), side, side, side, side, 16, 16, 0, False, False
    yield case(R, "rope_fwd_2d", *grid)
    yield case(A + "fused_qk_concat", "fused_qk_cat", r(4096, 16, 512), r(4096, 16, 64), r(4096, 1, 512), r(4096, 1, 64))
    places = lambda: torch.arange(4096, device="cuda")
    angle = r(8192, 32)
    args = r(4096, 16, 512), r(4096, 16, 64), r(4096, 1, 512), r(4096, 1, 64), places, angle, angle
    yield case(A + "fused_qk_concat", "fused_qk_rope_cat", *args, True)
    args = args[:4] + (out(8192, 1, 576), places) + args[4:] + (one,)
    yield case(A + "fused_kv_cache", "fused_qk_rope_cat_and_cache_mla", *args, True)
    args = r(4096, HEADS, SIZE), r(4096, KEYS, SIZE), r(4096, KEYS, SIZE), out(512, 16, KEYS, SIZE), out(512, 16, KEYS, SIZE), places, places
    args += r(8192, 64), r(8192, 64), one, one
    yield case(A + "fused_kv_cache", "fused_qk_rope_reshape_and_cache", *args, True, True)
    shuffled = args[:3] + (out(512, KEYS, SIZE // 8, 16, 8), out(512, KEYS, SIZE, 16)) + args[5:]
    yield case(A + "fused_kv_cache", "fused_qk_rope_reshape_and_cache", *shuffled, True, False, label="fused_qk_rope_reshape_and_cache_x")
    yield case(A + "fused_qkv_split_qk_rope", "fused_qkv_split_qk_rope", r(4096, 6144), r(8192, 64), r(8192, 64), places, 32, 8, 128)
    # Attention
    H = A + "mha"
    q, kv = r(4, 2048, HEADS, SIZE), r(4, 2048, KEYS, SIZE)
    for causal in (False, True):
        yield gradients(H, "flash_attn_func", q, kv, kv, label=f"flash_attn_func_{causal}", causal=causal)
    packed = r(8192, HEADS, SIZE), r(8192, KEYS, SIZE), r(8192, KEYS, SIZE), bounds(4, 2048), bounds(4, 2048), 2048, 2048
    yield gradients(H, "flash_attn_varlen_func", *packed, causal=True)

    def fused_backward():
        module = importlib.import_module(H)
        whole = trained(module.flash_attn_func, causal=True)

        def call(*args):
            module.mha_set_use_fused_bwd_kernel(True)
            value = whole(*args)
            module.mha_set_use_fused_bwd_kernel(False)
            return value

        return call, [q(), kv(), kv()]

    yield "aiter.flash_attn_fused_bwd", fused_backward

    small = r(4, 1024, 16, 64), r(4, 1024, 16, 64), r(4, 1024, 16, 64)
    sloped = lambda f, *args: f(*args[:3], alibi_slopes=args[3], causal=True)
    yield case(H, "flash_attn_func", *small, f32(4, 16, of=share), call=sloped, label="flash_attn_func_alibi")
    dropped = lambda f, *args: f(*args, dropout_p=0.1, causal=True)
    yield gradients(H, "flash_attn_func", *small, pick=dropped, label="flash_attn_func_dropout")
    U = A + "unified_attention"
    batch, length, page = 64, 2048, 64
    blocks = batch * length // page

    def unified(count, new, heads=HEADS, window=-1, softcap=0.0, sinks=None, kind="bf16", size=SIZE):
        def make():
            function = getattr(importlib.import_module(U), "unified_attention")
            query, keys, values = rand(count * new, heads, size), rand(blocks, page, KEYS, size), rand(blocks, page, KEYS, size)
            scale = None
            if kind == "fp8":
                keys, values, scale = keys.to(torch.float8_e4m3fn), values.to(torch.float8_e4m3fn), torch.ones(1, device="cuda")
            result = torch.zeros_like(query)
            known, table = filled(length, count)(), pages(batch, length // page)[:count]
            sunk = rand(heads) if sinks else None

            def call(query, keys, values):
                function(query, keys, values, result, steps(count, new), new, known, length, size**-0.5, True, (window, 0), table, softcap, None, scale, scale, sinks=sunk)
                return result

            return call, [query, keys, values]

        return f"aiter.unified_{count}_{new}_{heads}_{window}_{softcap}_{kind}_{size}{'_sinks' if sinks else ''}", make

    yield unified(64, 1)
    yield unified(4, 1)
    yield unified(4, 1, kind="fp8")
    yield unified(4, 1024)
    yield unified(4, 1024, kind="fp8")
    yield unified(64, 1, heads=64, window=127, sinks=True, size=64)
    yield unified(4, 1024, heads=64, window=127, sinks=True, size=64)
    yield unified(4, 1024, softcap=30.0)

    def sparse_mla():
        function = getattr(importlib.import_module(A + "unified_attention_sparse_mla"), "unified_attention_sparse_mla")
        query, keys = rand(256, 128, 576), rand(1024, 64, 1, 576)
        result = torch.zeros(256, 128, 512, device="cuda", dtype=torch.bfloat16)
        known, table, chosen = filled(16384, 4)(), pages(4, 256), integers(16384, 256, 2048, dtype="int32")

        def call(query, keys):
            function(query, keys, result, steps(4, 64), 64, known, 16384, 576**-0.5, chosen, table, 512)
            return result

        return call, [query, keys]

    yield "aiter.unified_attention_sparse_mla", sparse_mla
    turned = r(batch * length // 16, KEYS, 16, SIZE)
    decode = out(batch, HEADS, SIZE), r(batch, HEADS, SIZE), turned, turned, filled(length, batch), lambda: pages(batch, length // 16), SIZE**-0.5, length

    def paged(f, *args):
        import triton.language as tl

        f(*args, tl.bfloat16, torch.ones(1, device="cuda"), torch.ones(1, device="cuda"))
        return args[0]

    yield case(A + "pa_decode", "paged_attention_decode", *decode, call=paged)
    prefill = r(8192, HEADS, SIZE), r(8192, HEADS, SIZE), r(8192, HEADS, SIZE), out(8192, HEADS, SIZE), lambda: steps(4, 2048)[:4], filled(2048, 4), 2048
    yield case(A + "prefill_attention", "context_attention_fwd", *prefill, call=writes(3))

    def extend(function, q, k, v, out, keys, values):
        places = torch.arange(8192, device="cuda", dtype=torch.int64)
        function(q, k, v, out, keys, values, steps(8, 1024), steps(8, 1024), places, None, True, None, 1024)
        return out

    few = r(8192, HEADS, SIZE), r(8192, KEYS, SIZE), r(8192, KEYS, SIZE), out(8192, HEADS, SIZE), r(8192, KEYS, SIZE), r(8192, KEYS, SIZE)
    yield case(A + "extend_attention", "extend_attention_fwd", *few, call=extend)
    latent = r(8192, 16, 576), r(8192, 1, 576), r(8192, 1, 512), out(8192, 16, 512), r(8192, 1, 576), r(8192, 1, 512)
    yield case(A + "extend_attention", "extend_attention_fwd", *latent, call=extend, label="extend_attention_mla")

    def context(function, q, k, v, out, keys, values):
        unit = torch.ones(1, device="cuda")
        function(q, k, v, out, "auto", keys, values, pages(8, 64), steps(8, 1024), filled(2048, 8)(), 2048, unit, unit)
        return out

    cells = r(512, KEYS, SIZE // 8, 16, 8), r(512, KEYS, SIZE, 16)
    yield case(A + "pa_prefill", "context_attention_fwd", *few[:4], *cells, call=context, label="pa_prefill")

    def chunked(function, q, k, v, out, keys, values):
        unit = torch.ones(1, device="cuda")
        function(q, k, v, out, "auto", keys, values, pages(8, 64), steps(8, 1024), filled(2048, 8)(), 1024, unit, unit)
        return out

    yield case(A + "chunked_pa_prefill", "chunked_prefill_paged_decode", *few[:4], *cells, call=chunked)

    def mla(rope):
        def make():
            function = getattr(importlib.import_module(A + "mla_decode_rope"), "decode_attention_fwd_grouped_rope")
            count, splits = 32, 8
            query, keys = rand(count, 16, 576), rand(count * length, 1, 576)
            result, part = torch.zeros(count, 16, 512, device="cuda", dtype=torch.bfloat16), torch.zeros(count, 16, splits, 513, device="cuda")
            places = torch.arange(count * length, device="cuda", dtype=torch.int32)
            turned, angles, at = torch.zeros(count, 1, 64, device="cuda", dtype=torch.bfloat16), rand(length, 64), filled(length - 1, count)()

            def call(query, keys):
                more = turned if rope else None, 512, 64 if rope else 0, angles if rope else None, at if rope else None
                function(query, keys, keys[..., :512], result, steps(count, length), places, *more, part, splits, 576**-0.5, 0.0, rope, True)
                return result

            return call, [query, keys]

        return f"aiter.mla_decode_rope_{rope}", make

    yield mla(False)
    yield mla(True)
    ends = lambda at: lambda: torch.full((2048,), at, device="cuda", dtype=torch.int32)
    args = f8(2048, 64, SIZE), f8(4096, SIZE), positive(4096), f32(2048, 64), ends(0), ends(4096)
    yield case(A + "fp8_mqa_logits", "fp8_mqa_logits", *args)

    def hstu(f, q, k, v, ends, targets):
        return f(2048, 0.1, q, k, v, ends, True, targets, 0, 0, False)

    jagged = r(8192, 4, SIZE), r(8192, 4, SIZE), r(8192, 4, SIZE), lambda: steps(4, 2048).long(), filled(64, 4)
    yield gradients(A + "hstu_attention", "_AttentionFunction", *jagged, pick=lambda f, *args: hstu(f.apply, *args), label="hstu_attention")


def transformer_engine():
    import torch

    P = "transformer_engine.pytorch.triton."
    S, B, C, n = 2048, 2, 4096, 4
    M = P + "mhc"
    tokens = S * B
    yield case(M, "mhc_fused_projection", r(tokens, n * C), r(24, n * C), label="mhc_fused_projection")
    yield case(M, "mhc_fused_projection", r(tokens, n * C), r(24, n * C), norm_weight=None, use_split_k=True, label="mhc_fused_projection_split")
    yield gradients(M, "mhc_fused_scale", f32(tokens, 32), f32(3), f32(1, 24), positive(tokens), n)
    yield gradients(M, "mhc_fused_sinkhorn", f32(S, B, n, n))
    yield gradients(M, "mhc_fused_sinkhorn", f32(S, B, n, n), recompute_hist=False, label="mhc_fused_sinkhorn_kept")
    x, square = r(S, B, C, n), r(S, B, n, n)
    yield gradients(M, "mhc_fused_aggregate", x, r(S, B, n), n)
    yield gradients(M, "mhc_fused_expand_combine", r(S, B, C), r(C), r(S, B, n), x, square, n)
    yield gradients(M, "mhc_fused_expand_combine", r(S, B, C), None, r(S, B, n), x, square, n, label="mhc_fused_expand_combine_plain")
    words = 32768
    args = r(2, 2048, words), lambda: integers(words, 2, 2048), 0.1, False, None, -100, False
    yield case(P + "cross_entropy", "cross_entropy_forward", *args)
    E, active, hidden = 64, 4, 4096
    token_map = lambda: torch.zeros(8192, E, device="cuda", dtype=torch.int32).scatter_(1, torch.arange(8192 * active, device="cuda").view(8192, active) % E, 1)

    def permuted(what):
        def make():
            module = importlib.import_module(P + "permutation")
            chosen, x, probabilities = token_map(), rand(8192, hidden), rand(8192, E, dtype="float32").sigmoid()
            rows = module.make_row_id_map(chosen, 8192, E)
            many = rand(8192 * active, hidden)
            calls = {
                "make_row_id_map": lambda x: module.make_row_id_map(chosen, 8192, E),
                "permute": lambda x: module.permute_with_mask_map(x, rows, probabilities, None, None, 8192, E, 8192 * active, hidden, 0),
                "unpermute": lambda x: module.unpermute_with_mask_map(many, rows, None, None, None, 8192, E, hidden),
                "unpermute_merged": lambda x: module.unpermute_with_mask_map(many, rows, probabilities, None, None, 8192, E, hidden),
                "unpermute_bwd": lambda x: module.unpermute_with_mask_map_bwd_with_merging_probs(x, rows, many, probabilities, None, 8192, E, 8192 * active, hidden),
            }
            return calls[what], [x]

        return f"transformer_engine.{what}", make

    for what in ("make_row_id_map", "permute", "unpermute", "unpermute_merged", "unpermute_bwd"):
        yield permuted(what)

    def sorted_chunks(function, x, sizes, order):
        module = sys.modules[P + "permutation"]
        return function(x, module.make_chunk_sort_map(sizes, order, 32768, E), None, 32768, hidden, True)

    yield case(P + "permutation", "sort_chunks_by_map", r(32768, hidden), filled(512, E), lambda: torch.randperm(E, device="cuda").int(), call=sorted_chunks)
    args = r(16384, hidden), f32(16384), r(16, hidden), lambda: steps(16, 1024).long()
    yield case(P + "grouped_dbias_dscales", "compute_grouped_dbias_dscales", *args)
    yield case(P + "pad", "pad_columnwise_scale_inv", bytes_of(1000, 4001))


def megatron():
    import torch

    F = "megatron.core.fusions."
    S, B, heads = 4096, 1, 32
    angle = f32(S, 1, 1, 64)
    args = r(S, B, heads, 192), angle, angle, 128, 64
    yield gradients(F + "fused_mla_yarn_rope_apply", "fused_apply_mla_rope_for_q", *args, pick=lambda f, x, *rest: f(x.clone(), *rest))
    args = r(S, B, heads, 256), r(S, B, 1, 64), angle, angle, 64, 128, 128
    yield gradients(F + "fused_mla_yarn_rope_apply", "fused_apply_mla_rope_for_kv", *args)
    places = lambda: torch.arange(8192 * 8, device="cuda").view(8192, 8) % 64
    yield gradients(F + "fused_indices_converter", "fused_indices_to_multihot", places, f32(8192, 8, of=share), 64)
    yield case(F + "fused_pad_routing_map", "fused_pad_routing_map", lambda: rand(8192, 64) > 1, 16)
    K = "megatron.core.transformer.custom_layers.batch_invariant_kernels"
    yield case(K, "matmul_persistent", r(4096, 4096), r(4096, 4096))
    yield case(K, "matmul_persistent", r(4096, 4096), lambda: rand(4096, 4096).t(), r(4096), label="matmul_persistent_t")
    yield case(K, "matmul_persistent", f32(2048, 2048), f32(2048, 2048), label="matmul_persistent_f32")
    yield case(K, "log_softmax", r(4096, 32768))
    yield case(K, "mean_dim", r(4096, 4096), 1)
    yield case(K, "mean_dim", r(4096, 4096), 0, label="mean_dim_0")
    I = "megatron.core.inference.contexts."
    one = r(4096, 1, KEYS, SIZE)
    args = 1, one, one, r(2, 2, 32, 128, KEYS, SIZE), 4096, lambda: torch.arange(4096, device="cuda") // 128, lambda: torch.arange(4096, device="cuda") % 128
    yield case(I + "fused_kv_append_kernel", "triton_append_key_value_cache", *args, call=writes(3))
    T = I + "attention_context.triton.tensor_ops"
    at = filled(1000, 1)
    yield case(T, "tensor_get_slice_after", r(4096, 4096), r(4096, 4096), at, call=writes(1))
    yield case(T, "tensor_merge", r(4096, 4096), r(4096, 4096), at, r(8192, 4096), call=writes(3))


def modelopt():
    import torch

    K = "modelopt.torch.kernels."
    starts, known = lambda: steps(4, 2048)[:4], filled(2048, 4)
    A = K + "common.attention.triton_fa"
    q, kv = r(8192, HEADS, SIZE), r(8192, KEYS, SIZE)
    flat = q, kv, kv, starts, known, 2048
    yield gradients(A, "attention", *flat)
    for name, more in {
        "sparse": dict(sparsity_n=2),
        "sparse_8": dict(sparsity_n=4, sparsity_m=8),
        "skip": dict(skip_softmax_threshold=1e-3),
        "nvfp4": dict(p_qdq="nvfp4", v_qdq="nvfp4"),
        "fp8": dict(p_qdq="fp8"),
    }.items():
        yield case(A, "attention", *flat, label=f"attention_{name}", **more)
    cache = r(4096, 16, KEYS, SIZE)
    decode = r(32, HEADS, SIZE), cache, cache, lambda: pages(32, 128), filled(2048, 32)
    for name, more in {"plain": {}, "nvfp4": dict(p_qdq="nvfp4", v_qdq="nvfp4"), "fp8": dict(p_qdq="fp8")}.items():
        yield case(K + "common.attention.decode_attention", "attention_decode", *decode, label=f"attention_decode_{name}", **more)
    counted = lambda f, *args: f(*args, threshold_trials=[1e-3, 1e-2])[0]
    yield case(K + "sparsity.attention.calibrate", "attention_calibrate", *flat, call=counted)
    Q = K + "quantization.gemm."
    yield case(Q + "fp4_kernel", "static_blockwise_fp4_fake_quant", r(1 << 20, 16), positive(1 << 20))
    yield case(Q + "nvfp4_fp8_sweep", "nvfp4_fp8_scale_sweep", r(4096, 4096), positive(1))
    yield case(Q + "nvfp4_fp8_sweep", "nvfp4_fp8_scale_sweep_hessian", r(1024 * 64, 16), positive(1), f32(64, 16, 16))
    yield case(Q + "gptq_fused_kernel", "gptq_fused_block_scalar", f32(4096, 128), positive(4096, 256), 0.01, f32(128, 128), 16, 0)
    yield case(Q + "fp8_kernel", "weight_dequant", f8(4096, 4096), positive(32, 32), dtype=torch.bfloat16)


def flashinfer():
    import torch

    T = "flashinfer.triton."
    yield case(T + "activation", "silu_and_mul", r(ROWS, 2 * COLUMNS))
    yield case(T + "activation", "silu_and_mul", r(ROWS, 2 * COLUMNS), positive(1), positive(1), dtype=torch.float8_e4m3fn, call=lambda f, *args: f(*args, dtype=torch.float8_e4m3fn).float(), label="silu_and_mul_fp8")
    state = r(4096, HEADS, SIZE), f32(4096, HEADS)
    yield case(T + "cascade", "merge_state", *state, *state)
    yield case(T + "cascade", "merge_state_in_place", *state, *state, call=lambda f, v, s, *rest: (v := v.clone(), f(v, s.clone(), *rest))[0])
    yield case(T + "cascade", "merge_states", r(1024, 8, HEADS, SIZE), f32(1024, 8, HEADS))
    yield case(T + "cascade", "variable_length_merge_states", r(8192, HEADS, SIZE), f32(8192, HEADS), bounds(1024, 8))
    out = lambda: torch.empty(ROWS, COLUMNS, device="cuda", dtype=torch.bfloat16)
    yield case(T + "norm", "rms_norm", r(ROWS, COLUMNS), r(COLUMNS), out, 1e-6, call=writes(2))
    add = lambda f, x, y, *args: (x := x.clone(), f(x, y.clone(), *args))[0]
    yield case(T + "norm", "rms_norm_add_residual", r(ROWS, COLUMNS), r(ROWS, COLUMNS), r(COLUMNS), 1e-6, call=add)
    G = T + "sm_constraint_gemm"
    turned = lambda maker: lambda: maker().t()
    for name, maker in (("bf16", r), ("fp8", f8)):
        for function in ("gemm_persistent", "gemm", "gemm_descriptor_persistent"):
            right = maker(4096, 4096) if function.startswith("gemm_d") else turned(maker(4096, 4096))
            yield case(G, function, maker(4096, 4096), right, label=f"{function}_{name}")


def unsloth_zoo():
    import torch

    U = "unsloth_zoo."
    hidden, words = 2048, 32768
    cross = lambda f, x, w, labels: f(x, w, None, labels, divisor=4096.0)
    yield gradients(U + "fused_losses.fused_linear", "fused_linear_cross_entropy", r(4096, hidden), r(words, hidden), lambda: integers(words, 4096), pick=cross)
    logs = lambda f, *args: list(f(*args, return_entropy=True))
    yield gradients(U + "fused_losses.fused_linear", "fused_linear_logprobs", r(4096, hidden), r(words, hidden), lambda: integers(words, 4096), pick=logs)
    E, N, K = 32, 5760, 2880
    blocks, scales = bytes_of(E, N, K // 32, 16), bytes_of(E, N, K // 32, low=120, high=126)
    for tokens in (32, 1024, 8192):
        counts = filled(tokens // E, E)
        yield case(U + "mxfp4_gemm", "mxfp4_grouped_mm", r(tokens, K), blocks, scales, counts, label=f"mxfp4_grouped_mm_{tokens}")
        yield case(U + "mxfp4_gemm", "mxfp4_grouped_mm", r(tokens, N), blocks, scales, counts, False, label=f"mxfp4_grouped_mm_back_{tokens}")
        yield case(U + "mxfp4_gemm", "mxfp4_matmul", r(tokens, K), bytes_of(N, K // 32, 16), bytes_of(N, K // 32, low=120, high=126), label=f"mxfp4_matmul_{tokens}")
    kernel = lambda f, *args: f(*args, torch.bfloat16, False, None, None, None)
    yield case(U + "mxfp4_dequant", "_kernel_dequantize", blocks, scales, call=kernel, label="mxfp4_dequantize")
    turned = lambda f, *args: f(*args, torch.bfloat16, True, None, None, None)
    yield case(U + "mxfp4_dequant", "_kernel_dequantize", blocks, scales, call=turned, label="mxfp4_dequantize_t")
    T = U + "temporary_patches."
    yield gradients(T + "moe_fused_swiglu", "moe_fused_swiglu", r(32768, 2 * hidden))
    yield gradients(T + "moe_fused_swiglu", "moe_fused_swiglu", r(32768, 2 * hidden), act=1, interleaved=True, label="moe_fused_swiglu_oss")
    places = lambda: torch.arange(8192 * 4, device="cuda").view(8192, 4) % E
    yield case(T + "moe_routing_triton", "_launch", places, E, label="moe_routing_sort")
    yield case(T + "moe_routing_triton", "_launch", lambda: places()[:128], E, label="moe_routing_sort_few")
    for mode in ("softmax_topk", "topk_softmax", "sigmoid"):
        yield gradients(T + "moe_router_triton", "moe_router", f32(8192, 128), 8, mode, label=f"moe_router_{mode}", pick=lambda f, *args: f(*args)[0])
    weights = r(E, hidden, 2 * hidden)
    ends = lambda: torch.arange(1, E + 1, device="cuda", dtype=torch.int32) * 256
    yield case(T + "moe_grouped_fp16", "generic_grouped_mm", r(8192, hidden), weights, ends)
    yield case(T + "moe_grouped_fp16", "generic_grouped_wgrad", r(8192, hidden), r(8192, hidden), ends, E)
    for tokens in (8, 64):
        chosen = lambda tokens=tokens: integers(E, tokens * 4)
        x = r(tokens, hidden)
        yield case(T + "moe_routed", "routed_bf16_gemm", x, chosen, weights, None, 4, label=f"routed_bf16_gemm_{tokens}")
        yield case(T + "moe_routed", "routed_bf16_gate_up_act", x, chosen, weights, top_k=4, label=f"routed_bf16_gate_up_act_{tokens}")
        args = r(tokens * 4, hidden), chosen, f32(tokens, 4, of=share), r(E, hidden, hidden)
        yield case(T + "moe_routed", "routed_bf16_down_sum", *args, top_k=4, label=f"routed_bf16_down_sum_{tokens}")
        yield case(T + "moe_routed", "routed_lora_a", x, chosen, r(E, hidden, 16), 4, label=f"routed_lora_a_{tokens}")
        yield case(T + "moe_routed", "routed_lora_b", f32(tokens * 4, hidden), f32(tokens * 4, 16), chosen, r(E, 16, hidden), 2.0, label=f"routed_lora_b_{tokens}")


def flash_sparse_attn():
    import torch

    S = "flash_sparse_attn.ops.triton.interface"
    q, kv = r(4, 2048, 16, SIZE), r(4, 2048, 4, SIZE)
    gates = r(4, 2048, 16, of=gate), r(4, 2048, 4, of=gate)
    fixed = dict(is_autotune=False, tile_mn=(128, 64))
    for causal in (False, True):
        yield gradients(S, "flash_dense_attn_func", q, kv, kv, is_causal=causal, label=f"flash_dense_attn_{causal}")
    yield gradients(S, "flash_sparse_attn_func", q, kv, kv, is_causal=True, softmax_threshold=1e-3)
    yield gradients(S, "flash_gated_attn_func", q, kv, kv, *gates, is_causal=True)
    one, cache = r(32, HEADS, SIZE), r(32, 2048, KEYS, SIZE)
    yield case(S, "flash_dense_attn_with_kvcache_func", one, cache, cache, label="flash_dense_decode")
    yield case(S, "flash_sparse_attn_with_kvcache_func", one, cache, cache, softmax_threshold=1e-3, label="flash_sparse_decode")
    paged = lambda f, q, k, table: f(q, k, k, page_table=table, seqused_k=filled(2048, 32)())
    yield case(S, "flash_dense_attn_with_kvcache_func", one, r(1024, 64, KEYS, SIZE), lambda: pages(32, 32), call=paged, label="flash_dense_decode_paged")
    local = lambda f, *args: f(*args, is_causal=True, window_sizes=torch.tensor([[16, 256, 0, 0]] * 4, device="cuda", dtype=torch.int32))
    yield case(S, "flash_dense_attn_func", q, kv, kv, call=local, label="flash_dense_attn_local")
    packed = r(8192, 16, SIZE), r(8192, 4, SIZE), r(8192, 4, SIZE), bounds(4, 2048), bounds(4, 2048), 2048, 2048
    yield gradients(S, "flash_dense_attn_varlen_func", *packed, is_causal=True)
    D = "flash_sparse_attn.deprecated."
    yield gradients(D + "flash_sparse_attn_triton", "triton_sparse_attn_func", r(4, 1024, 8, SIZE), r(4, 1024, 8, SIZE), r(4, 1024, 8, SIZE), r(4, 8, 1024, 1024), True)


def sinkhorn():
    import torch

    K = "flash_sinkhorn.kernels."
    N, D = 8192, 64
    x, line = f32(N, D), f32(N)
    yield case(K + "sinkhorn_flashstyle_sqeuclid", "flashsinkhorn_lse", x, x, line, 0.1)
    yield case(K + "sinkhorn_flashstyle_sqeuclid", "flashsinkhorn_lse", x, x, line, 0.1, allow_tf32=False, label="flashsinkhorn_lse_ieee")
    yield case(K + "sinkhorn_flashstyle_sqeuclid", "flashsinkhorn_lse_fused", x, x, line, line, 0.1)
    yield case(K + "sinkhorn_flashstyle_sqeuclid", "flashsinkhorn_symmetric_step", x, x, line, line, line, line, 0.1)
    plan = x, x, line, line, line, line
    yield case(K + "apply_flash", "apply_plan_mat_flashstyle", *plan, f32(N, D), eps=10.0, axis=1)
    yield case(K + "apply_flash", "apply_plan_vec_flashstyle", *plan, line, eps=10.0, axis=1)
    yield case(K + "apply_flash", "apply_plan_vec_flashstyle", *plan, line, eps=10.0, axis=0, label="apply_plan_vec_flashstyle_0")
    yield case(K + "apply_ott", "apply_plan_vec_sqeuclid", x, x, line, line, line, eps=10.0, axis=1)
    yield case(K + "apply_ott", "apply_plan_mat_sqeuclid", x, x, line, line, f32(N, D), eps=10.0, axis=1)
    yield case(K + "apply_ott", "mat5_sqeuclid", x, x, line, line, x, eps=10.0)
    yield case(K + "c_transform_sqeuclid", "c_transform_kernel", x, x, line)
    yield case(K + "sinkhorn_triton_grad_sqeuclid", "sinkhorn_geomloss_online_grad_sqeuclid", x, x, positive(N), positive(N), line, line, eps=10.0)
    yield case(K + "sinkhorn_triton_ott_sqeuclid", "apply_lse_kernel_sqeuclid", x, x, line, line, 1.0, 1, call=lambda f, *args: paired.leaves(f(*args)))
    yield case(K + "sinkhorn_splitn_sqeuclid", "flashsinkhorn_lse_splitn", x, x, line, 0.1, num_splits=4)
    # k-means, segments
    F = "flash_kmeans."
    points, centers = r(1, 65536, SIZE, dtype="float16"), r(1, 1024, SIZE, dtype="float16")
    yield case(F + "assign_euclid_triton", "euclid_assign_triton", points, centers, positive(1, 65536))
    yield case(F + "assign_euclid_triton", "cosine_assign_triton", points, centers)
    ids = lambda: integers(1024, 1, 65536)
    yield case(F + "centroid_update_triton", "triton_centroid_update_sorted_euclid", points, ids, centers)
    yield case(F + "centroid_update_triton", "triton_centroid_update_cosine", points, ids, centers)
    C = "flash_semicrf.streaming.triton_forward"
    labels, longest, spans = 32, 2048, 16
    chain = f32(32, longest + 1, labels), f32(labels, labels), f32(spans, labels), filled(longest, 32, dtype="int64"), spans
    first = lambda f, *args: f(*args, validate_cache=False)[0]
    yield case(C, "launch_streaming_triton_kernel", *chain, call=first, label="semicrf")
    yield case(C, "launch_streaming_triton_kernel", *chain, call=lambda f, *args: f(*args, semiring="max", validate_cache=False)[0], label="semicrf_max")


def attention():
    import torch

    length = 256
    square = r(1, 4, length, length, 32)
    open_mask = lambda: torch.zeros(1, length, length, device="cuda", dtype=torch.bool)
    yield gradients("trifast.torch", "triangle_attention", square, square, square, r(1, 4, length, length), open_mask)
    heads = r(2, 16, 2048, SIZE)
    yield learned("lightning_attn.ops.triton.lightning_attn2", "LightningAttention2", heads, heads, heads, f32(16, of=share))
    yield learned("lightning_attn.ops.triton.lightning_attn2_no_decay", "LightningAttention2NoDecay", heads, heads, heads)
    J = "jvp_flash_attention.jvp_attention"
    small = r(2, 16, 2048, 64, dtype="float16")
    plain = dict(warp_specialize=False, USE_TMA=False, verify_attn_mask=False)
    for causal in (False, True):
        yield gradients(J, "JVPAttn", small, small, small, pick=lambda f, *args, causal=causal: f.fwd(*args, causal=causal, **plain), label=f"attention_{causal}")
    yield gradients("hyper_connections.triton_sinkhorn", "triton_sinkhorn", f32(4096, 4, 4))
    yield gradients("hyper_connections.triton_sinkhorn", "triton_sinkhorn", f32(64, 128, 128), label="triton_sinkhorn_128")
    # PyTorch's own
    B = "torch.sparse._triton_ops"

    def blocks(size, dtype="bfloat16"):
        def make():
            dense = rand(4096, 4096, dtype=dtype)
            kept = rand(4096 // size, 4096 // size, dtype="float32") > 0.8
            return (dense * kept.repeat_interleave(size, 0).repeat_interleave(size, 1)).to_sparse_bsr((size, size))

        return make

    for size in (16, 64, 128):
        yield case(B, "bsr_dense_addmm", r(4096, 4096), blocks(size), r(4096, 4096), label=f"bsr_dense_addmm_{size}")
    values = lambda f, *args: f(*args).values()
    yield case(B, "sampled_addmm", blocks(64), r(4096, 512), r(512, 4096), call=values)
    yield case(B, "bsr_softmax", blocks(64), call=values)


def cases():
    import torch

    one_configuration()
    portable()
    sys.path.append(os.environ["OTHERS"])
    arch = "aiter.ops.triton.utils._triton.arch_info"
    # AITER's tables are those of the MI350X, whose 8-bit floats are the ones that other GPUs have.
    given("platformdirs", user_config_dir=lambda **named: tempfile.gettempdir())
    version = importlib.metadata.version
    importlib.metadata.version = lambda name: "0" if name == "trifast" else version(name)
    stubs.install(os.environ["OTHERS"], PACKAGES, REAL)
    known = {"get_arch": "gfx950", "get_device": "MI350X", "is_fp4_avail": True, "is_fp8_avail": True, "get_num_sms": 132}
    vars(importlib.import_module(arch)).update({name: lambda value=value: value for name, value in known.items()})
    importlib.import_module("aiter").dtypes = types.SimpleNamespace(fp8=torch.float8_e4m3fn, i8=torch.int8)
    rounded = lambda scale, most: (scale * 448 / most).to(torch.float8_e4m3fn).to(scale.dtype) * most / 448
    importlib.import_module("modelopt.torch.quantization.tensor_quant").scaled_e4m3_impl = rounded
    vars(importlib.import_module("flashinfer.utils")).update(get_compute_capability=torch.cuda.get_device_capability, GPUArchitectureError=RuntimeError)
    importlib.import_module("modelopt.torch.quantization.utils").reduce_amax = lambda tensor, **named: tensor.amax()
    # Stubs of packages answer for their modules until these are imported.
    for name in PLAIN + SPARSE:
        importlib.import_module("flash_sparse_attn.ops.triton." + name)
    for group in (aiter, transformer_engine, megatron, modelopt, flashinfer, unsloth_zoo, flash_sparse_attn, sinkhorn, attention):
        yield from group()


if __name__ == "__main__":
    paired.main(__doc__.splitlines()[0], cases, shares=4)
