"""Kernels of inference engines, timed one by one: compiled by Triton, and by ttopt through its hook.

    ENGINES=FOLDER python bench/gpu/engines.py [--only REGEX] [--shares N] [--json FILE] [--keep FOLDER]

Needs a GPU, PyTorch with its Triton, this project's wheel (`./dev wheel`), and the wheels of SGLang, vLLM, LightLLM,
torchao and xFormers, unpacked in FOLDER but not installed: only their files with kernels are imported (`stubs.py`).
Kernels with autotuners and tables of configurations get the one in the middle, or the default. How it is timed and
compared: `paired.py`.
"""

import importlib
import os

import paired
import stubs
from libraries import gate, integers, one_configuration, rand, share

REAL = {
    "sglang.kernels.numerics",
    "sglang.kernels.ops.attention.fla.index",
    "sglang.kernels.ops.attention.fla.utils",
    "sglang.kernels.ops.moe.gate_topk",
}
TOKENS, COLUMNS = 8192, 4096
# Heads of queries and of keys, and the size of one.
HEADS, KEYS, SIZE = 32, 8, 128


def case(module, name, *makers, call=None, label=None, **constants):
    """`call` gets the function and what the makers made, where it is not just called with that."""

    def make():
        function = getattr(importlib.import_module(module), name)
        args = [maker() if callable(maker) else maker for maker in makers]
        if call:
            return (lambda *args: call(function, *args)), args
        return (lambda *args: function(*args, **constants)), args

    return f"{module.split('.')[0]}.{label or name}", make


def r(*shape, dtype="bfloat16", of=rand):
    return lambda: of(*shape, dtype=dtype)


def f32(*shape, of=rand):
    return r(*shape, dtype="float32", of=of)


def i32(high, *shape):
    return lambda: integers(high, *shape, dtype="int32")


def i8(*shape):
    import torch

    return lambda: torch.randint(-128, 127, shape, device="cuda", dtype=torch.int8)


def f8(*shape):
    import torch

    return lambda: rand(*shape).to(torch.float8_e4m3fn)


def writes(at):
    """The function writes to its argument `at`, which is then its value."""
    return lambda function, *args: (function(*args), args[at])[1]


def steps(count, size):
    import torch

    return torch.arange(0, (count + 1) * size, size, device="cuda", dtype=torch.int32)


def attention():
    import torch

    S, V = "sglang.kernels.ops.attention.", "vllm.v1.attention.ops."
    batch, length = 64, 2048
    q, kv = r(TOKENS, HEADS, SIZE), r(TOKENS, KEYS, SIZE)
    lengths = lambda count, length: torch.full((count,), length, device="cuda", dtype=torch.int32)

    def decode(function, q, k, v, out, logits, sums):
        places = torch.arange(batch * length, device="cuda", dtype=torch.int64)
        function(q, k, v, out, steps(batch, length), places, logits, sums, lengths(batch, 8), 8, SIZE**-0.5, 1.0, 1.0)
        return out

    def extend(function, q, k, v, out, keys, values):
        places = torch.arange(TOKENS, device="cuda", dtype=torch.int64)
        function(q, k, v, out, keys, values, steps(8, 1024), steps(8, 1024), places, None, True, None, 1024, 1.0, 1.0)
        return out

    def prefill(function, q, k, v, out):
        function(q, k, v, out, steps(4, 2048)[:4], lengths(4, 2048), 2048)
        return out

    def prefix(function, q, k, v, out, keys, values):
        one, pages = torch.ones(1, device="cuda"), torch.arange(512, device="cuda", dtype=torch.int32).view(8, 64)
        function(q, k, v, out, "auto", keys, values, pages, steps(8, 1024), lengths(8, 2048), 2048, 1024, one, one)
        return out

    def cached(function, k, v, keys, values, slots):
        one = torch.ones(1, device="cuda")
        function(k, v, keys, values, slots, "auto", one, one)
        return keys

    def decode_pages(function, q, k, v, out):
        tokens = torch.arange(batch * length, device="cuda", dtype=torch.int32).view(batch, length)
        function(q, k, v, out, tokens, torch.arange(batch, device="cuda", dtype=torch.int32), lengths(batch, length))
        return out

    for keys in (KEYS, HEADS):
        shapes = r(batch, HEADS, SIZE), r(batch * length, keys, SIZE), r(batch * length, keys, SIZE), r(batch, HEADS, SIZE)
        sums = f32(batch, HEADS, 8, SIZE), f32(batch, HEADS, 8)
        yield case(S + "decode_attention", "decode_attention_fwd", *shapes, *sums, call=decode, label=f"decode_attention_{keys}")
    yield case(S + "extend_attention", "extend_attention_fwd", q, kv, kv, q, kv, kv, call=extend)
    yield case(S + "prefill_attention", "context_attention_fwd", q, kv, kv, q, call=prefill)
    yield case(V + "triton_prefill_attention", "context_attention_fwd", q, kv, kv, q, call=prefill)
    pages = r(512, KEYS, SIZE // 8, 16, 8), r(512, KEYS, SIZE, 16)
    yield case(V + "prefix_prefill", "context_attention_fwd", q, kv, kv, q, *pages, call=prefix, label="prefix_prefill")
    yield case(S + "merge_state", "merge_state_triton", q, f32(TOKENS, HEADS), q, f32(TOKENS, HEADS))
    yield case(V + "triton_merge_attn_states", "merge_attn_states", q, q, f32(HEADS, TOKENS), q, f32(HEADS, TOKENS), call=writes(0))
    slots = lambda: torch.randperm(2 * TOKENS, device="cuda")[:TOKENS]
    pages = r(1024, 16, KEYS, SIZE), r(1024, 16, KEYS, SIZE)
    yield case(V + "triton_reshape_and_cache_flash", "triton_reshape_and_cache_flash", kv, kv, *pages, slots, call=cached)
    places = lambda: torch.arange(4096, device="cuda")
    qk = r(4096, HEADS * SIZE), r(4096, KEYS * SIZE)
    yield case(S + "minimax_m3_qk_norm_rope", "qk_gemma_rmsnorm_rope", *qk, r(SIZE), r(SIZE), places, f32(TOKENS, 64), 1e-6, SIZE, 64, True)
    yield case(S + "gemma_qkv_norm_rope", "gemma_qkv_norm_rope", *qk, qk[1], r(SIZE), r(SIZE), r(TOKENS, SIZE), places, HEADS, KEYS, SIZE, SIZE, 1e-6)
    yield case(S + "mla_qk_prep", "concat_and_cast_mha_k_triton", r(4096, 128, 192), r(4096, 128, 128), r(4096, 1, 64), call=writes(0))
    L = "lightllm.models.llama.triton_kernel."
    half = lambda *shape: r(*shape, dtype="float16")
    args = half(TOKENS, HEADS, SIZE), half(TOKENS, KEYS, SIZE), half(TOKENS, KEYS, SIZE), half(TOKENS, HEADS, SIZE)
    yield case(L + "context_flashattention_nopad", "context_attention_fwd_no_prompt_cache", *args, call=prefill)
    args = half(batch, HEADS, SIZE), half(batch * length, KEYS, SIZE), half(batch * length, KEYS, SIZE), half(batch, HEADS, SIZE)
    yield case(L + "gqa_decode_flashattention_nopad", "gqa_decode_attention_fwd", *args, call=decode_pages)


def norms():
    import torch

    S, D = "sglang.kernels.ops.layernorm.", "sglang.kernels.ops.diffusion."
    x, weight = r(TOKENS, COLUMNS), r(COLUMNS)
    yield case(S + "fused_rmsnorm", "fused_rmsnorm", x, weight, 1e-6)
    yield case(S + "fused_rmsnorm", "fused_dual_residual_rmsnorm", x, x, weight, weight, 1e-6)
    yield case(S + "gemma4_fused_ops", "gemma_rmsnorm_residual_scalar", x, weight, x, r(1))
    yield case(S + "gemma4_fused_ops", "gemma_qkv_rmsnorm", r(4096, 4096), r(4096, 1024), r(4096, 1024), r(SIZE), r(SIZE), HEADS, KEYS, SIZE)
    yield case(S + "minimax_m3_rmsnorm", "gemma_fused_add_rmsnorm", x, x, weight, 1e-6)
    yield case(S + "rmsnorm_fp8_e8m0", "rmsnorm_fp8_e8m0_quant", x, weight, 1e-6, call=lambda f, *args: [f(*args)[0][0].float()])
    yield case(S + "mhc", "_hc_split_sinkhorn_triton", f32(2, 4096, 24), f32(3), f32(24))
    yield case(S + "mhc", "mhc_combine", r(TOKENS, 4 * 4096), f32(TOKENS, 4), 4, torch.bfloat16)
    yield case(S + "mhc", "hc_mix_stats", r(4096, 4 * 4096), f32(24, 4 * 4096), 1e-6)
    yield case(S + "mhc_head", "fused_hc_head", r(4096, 4, 4096), f32(4, 4 * 4096), f32(1), f32(4), 1e-6, 1e-6)
    wide, row = r(TOKENS, 3072), r(3072)
    yield case(D + "norm.norm_triton", "norm_infer", wide, row, row, 1e-6)
    yield case(D + "norm.norm_triton", "rms_norm_fn", x, weight, None, x, prenorm=True)
    yield case(D + "norm.group_norm_silu_triton", "triton_group_norm_silu", r(4, 512, 128, 128), r(512), r(512), 32)
    yield case(D + "norm.rmsnorm_onepass_triton", "triton_one_pass_rms_norm", r(65536, SIZE), r(SIZE))
    modulated = lambda f, residual, x, gate, shift, scale: f(residual=residual, x=x, gate=gate, shift=shift, scale=scale, weight=None, bias=None, eps=1e-6)
    args = r(1, TOKENS, 3072), r(1, TOKENS, 3072), r(1, 1, 3072), row, row
    yield case(D + "norm.scale_residual_norm_scale_shift_triton", "fused_scale_residual_norm_scale_shift_triton", *args, call=modulated)
    for interleaved in (False, True):
        args = r(2, 4096, 24, SIZE), f32(4096, 64), f32(4096, 64), interleaved
        yield case(D + "rope.rotary_triton", "apply_rotary_embedding", *args, label=f"apply_rotary_embedding_{interleaved}")
    yield case(D + "modulate.scale_shift_triton", "fuse_scale_shift_kernel", r(2, TOKENS, 3072), r(2, 1, 3072), r(2, 1, 3072))
    args = r(2, TOKENS, 3072), row, row, *[r(2, 3072)] * 6, i32(2, 2, TOKENS), 1e-6
    yield case(D + "modulate.scale_shift_triton", "fuse_layernorm_scale_shift_gate_select01_kernel", *args)
    yield case(D + "attention.sparse_linear_attn_triton", "mean_pool", r(2, 24, TOKENS, SIZE), 64)
    F = "sglang.kernels.ops.attention.fla."
    yield case(F + "l2norm", "l2norm_fwd", r(8, 1024, 16, SIZE))
    yield case(F + "cumsum", "chunk_local_cumsum", f32(4, 2048, 32, of=gate), 64)
    yield case(F + "fused_norm_gate", "layer_norm_gated_fwd", r(65536, SIZE), r(65536, SIZE), r(SIZE), None, is_rms_norm=True)
    X = "xformers.ops._triton."
    yield case(X + "rmsnorm_kernels", "_rms_norm_forward", x, weight, 1e-6)
    yield case(X + "rmsnorm_kernels", "_rms_norm_add_forward", x, x, weight, 1e-6, call=lambda f, x, *args: f(x.clone(), *args))
    places = lambda: torch.randperm(32, device="cuda")[:16]
    args = r(32, 1024, 1024), places, r(16, 1024, 1024), r(1024), 0.5
    added = lambda f, x, *args: writes(0)(f, x.clone(), *args)
    yield case(X + "k_scaled_index_add", "scaled_index_add_fwd", *args, call=added)
    L = "lightllm.models.llama.triton_kernel."
    half = lambda *shape: r(*shape, dtype="float16")
    yield case(L + "rmsnorm", "rmsnorm_forward", half(TOKENS, COLUMNS), half(COLUMNS), 1e-6)
    yield case(L + "silu_and_mul", "silu_and_mul_fwd", half(TOKENS, 22016), call=lambda f, x: writes(0)(f, x.clone()))
    turned = lambda f, q, k, cos, sin: (lambda q, k: (f(q, k, cos, sin), q, k)[1:])(q.clone(), k.clone())
    args = half(TOKENS, HEADS, SIZE), half(TOKENS, KEYS, SIZE), half(TOKENS, 64), half(TOKENS, 64)
    yield case(L + "rotary_emb", "rotary_emb_fwd", *args, call=turned)
    yield case("sglang.kernels.ops.activation.gelu_and_mul_triton", "gelu_and_mul_triton", r(TOKENS, 8192))


def experts():
    S = "sglang.kernels.ops.moe."
    yield case(S + "gate_topk", "gate_topk", f32(TOKENS, 512), 8)
    yield case(S + "gemma4_routing", "gemma4_fused_routing", r(TOKENS, 128), f32(128), 8)
    yield case(S + "router", "fused_moe_router_cudacore", r(4096, COLUMNS), r(16, COLUMNS), 2, 30.0)
    yield case(S + "moe_fused_mul_sum", "moe_fused_mul_sum", r(TOKENS, 8, COLUMNS), f32(TOKENS, 8))
    yield case("vllm.model_executor.layers.fused_moe.moe_fused_mul_sum", "moe_fused_mul_sum", r(TOKENS, 8, COLUMNS), f32(TOKENS, 8))
    yield case(S + "inkling_moe", "silu_and_mul_triton", r(TOKENS, 8192))
    args = r(4096, 8, COLUMNS), f32(4096, 8), r(COLUMNS)
    yield case(S + "muse_spark_post_expert_finalize_triton", "fused_post_expert_norm_weighted_sum", *args)


def quantized():
    import torch

    S, T, L = "sglang.kernels.ops.", "torchao.prototype.", "lightllm.common.basemodel.triton_kernel."
    x, most, bf16 = r(TOKENS, COLUMNS), (1 << 31) - 1, torch.bfloat16
    last = lambda f, *args: [f(*args)[-1]]
    raw = lambda f, x: [part.view(torch.uint8).float() for part in f(x)]
    half = lambda *shape: r(*shape, dtype="float16")
    yield case(S + "quantization.act_quant_triton", "act_quant", x, call=last)
    yield case(S + "quantization.int8_kernel", "per_token_quant_int8", x)
    yield case(S + "quantization.awq_triton", "awq_dequantize_triton", i32(most, 4096, 1536), half(32, 12288), i32(most, 32, 1536))
    yield case(S + "quantization.mxfp8_quant", "to_mxfp8", x, call=raw)
    yield case(S + "quantization.mxfp8_swizzled_triton", "mxfp8_quantize_swizzled", x, call=raw)
    yield case(S + "quantization.bf16x3_split", "split_fp32_to_bf16x3", f32(4096, 4096))
    for rows in (64, 4096):
        scales = f32(rows, 32), f32(32, 32), [128, 128], bf16
        yield case(S + "gemm.fp8_kernel", "w8a8_block_fp8_matmul_triton", f8(rows, 4096), f8(4096, 4096), *scales, label=f"w8a8_block_fp8_{rows}")
        yield case(S + "gemm.int8_kernel", "w8a8_block_int8_matmul", i8(rows, 4096), i8(4096, 4096), *scales, label=f"w8a8_block_int8_{rows}")
    right = lambda maker: lambda: maker().t()
    args = f8(2048, 4096), right(f8(4096, 4096)), lambda: rand(2048, 1, dtype="float32").abs(), f32(4096, 1), bf16
    yield case(S + "gemm.fp8_kernel", "triton_scaled_mm", *args)
    V = "vllm.model_executor.layers.quantization."
    for rows in (16, 4096):
        args = i8(rows, 4096), right(i8(4096, 4096)), lambda rows=rows: rand(rows, 1, dtype="float32").abs(), f32(4096, 1), bf16
        yield case(V + "compressed_tensors.triton_scaled_mm", "triton_scaled_mm", *args, label=f"triton_scaled_mm_{rows}")
    yield case(V + "awq_triton", "awq_gemm_triton", half(512, 4096), i32(most, 4096, 512), half(32, 4096), i32(most, 32, 512), 4)
    heads = [r(2, 16, 4096, SIZE)] * 3
    scale = lambda f, *args: [f(*args)[3]]
    yield case(T + "attention.quantization.triton_qkv_quantization", "triton_fp8_sdpa_quantize", *heads, call=scale)
    yield case(T + "attention.quantization.triton_hadamard_qkv_quantization", "triton_fp8_hadamard_sdpa_quantize", *heads, call=scale)
    args = [r(2, 4096, 16, SIZE)] * 3 + [f32(4096, SIZE)] * 2
    yield case(T + "attention.quantization.triton_rope_qkv_quantization", "triton_fp8_rope_sdpa_quantize", *args, call=scale)
    yield case(T + "attention.quantization.triton_hadamard_utils", "inverse_hadamard_transform", heads[0])
    B = T + "blockwise_fp8_training.kernels"
    for side in ("lhs", "rhs", "transposed_lhs"):
        yield case(B, "triton_fp8_blockwise_act_quant_" + side, x, call=last)
    yield case(B, "triton_fp8_blockwise_weight_quant_transposed_rhs", r(4096, 4096), call=last)
    args = f8(4096, 4096), right(f8(4096, 4096)), right(f32(32, 4096)), right(f32(32, 32))
    yield case(B, "triton_fp8_gemm_1x128_128x128", *args)
    yield case(T + "quantized_training.int8_mm", "scaled_int8_mm_cuda", i8(4096, 4096), i8(4096, 4096), r(4096), r(4096))
    yield case(L + "quantize_gemm_int8", "quantize_int8_perrow", half(TOKENS, COLUMNS))
    yield case(L + "dequantize_gemm_int8", "matmul_dequantize_int8", half(512, 4096), i8(4096, 4096), half(1, 4096))
    yield case(L + "dequantize_gemm_int4", "matmul_dequantize_int4_s2", half(512, 4096), i32(most, 512, 4096), half(32, 4096), i32(most, 32, 512))


def recurrences():
    import torch

    S = "sglang.kernels.ops."
    M = S + "mamba.triton_ops."
    length, groups, states, chunk = 4096, 8, 128, 256
    chunks = length // chunk
    share_of, gate_of = f32(2, 64, chunks, chunk, of=share), f32(2, 64, chunks, chunk, of=gate)
    b, x = r(2, length, groups, states), r(2, length, 64, 64)
    yield case(M + "ssd_bmm", "_bmm_chunk_fwd", b, b, chunk)
    decay = lambda: -rand(64, dtype="float32").exp()
    yield case(M + "ssd_chunk_state", "_chunk_cumsum_fwd", r(2, length, 64), decay, chunk, dt_softplus=True)
    yield case(M + "ssd_chunk_state", "_chunk_state_fwd", b, x, share_of, gate_of)
    yield case(M + "ssd_state_passing", "_state_passing_fwd", f32(2, chunks, 64, 64 * states), gate_of)
    scanned = lambda f, cb, x, *args: f(cb, x, *args, out=torch.empty_like(x))
    args = f32(2, chunks, groups, chunk, chunk), x, share_of, gate_of, b, r(2, chunks, 64, 64, states)
    yield case(M + "ssd_chunk_scan", "_chunk_scan_fwd", *args, call=scanned)

    def update(function, state, x, dt, *args):
        bias = torch.zeros(64, 64, device="cuda")
        return function(state, x, dt, *args, dt_bias=bias, dt_softplus=True, out=torch.empty_like(x))

    decay = lambda: -rand(64, 64, states, dtype="float32").exp()
    token, projected = r(128, 64, 64), r(128, groups, states)
    args = r(128, 64, 64, states), token, token, decay, projected, projected, f32(64, 64)
    yield case(M + "mamba_ssm", "selective_state_update", *args, call=update)

    def convolved(function, x, weight, bias, state):
        state = state.transpose(1, 2).contiguous().transpose(1, 2)
        index, known = torch.arange(8, device="cuda", dtype=torch.int32), torch.ones(8, device="cuda", dtype=torch.bool)
        return function(x, weight, bias, state, steps(8, 1024), [1024] * 8, cache_indices=index, has_initial_state=known)

    args = lambda: rand(TOKENS, 4096).t(), r(4096, 4), r(4096), r(8, 4096, 3)
    yield case(S + "mamba.causal_conv1d_triton", "causal_conv1d_fn", *args, call=convolved)
    one = r(128, 32, 1, SIZE)
    args = one, one, one, f32(128, 32, SIZE, SIZE), f32(32, of=share), lambda: torch.arange(128, device="cuda")
    decoded = lambda f, q, k, v, state, *args: f(q, k, v, state.clone(), *args)
    yield case(S + "attention.linear.lightning_attn", "linear_decode_forward_triton", *args, call=decoded)
    yield case(S + "attention.linear.fused_gdn_gating", "fused_gdn_gating", f32(32), r(TOKENS, 32), r(TOKENS, 32), r(32))
    args = r(64, 1, 16, SIZE), r(64, 1, 16, SIZE), r(64, 1, 32, SIZE), f32(64, 1, 32, of=gate), r(64, 1, 32, of=share)
    yield case(S + "attention.fla.fused_recurrent", "fused_recurrent_gated_delta_rule", *args, initial_state=None)


def cases():
    one_configuration()
    packages = {"lightllm", "sglang", "torchao", "vllm", "xformers"}
    stubs.install(os.environ["ENGINES"], packages, REAL)
    for group in (attention, norms, experts, quantized, recurrences):
        yield from group()


if __name__ == "__main__":
    paired.main(__doc__.splitlines()[0], cases, shares=4)
