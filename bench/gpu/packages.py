"""Kernels of packages that others build on, timed one by one: compiled by Triton, and by ttopt through its hook.

    PACKAGES=FOLDER python bench/gpu/packages.py [--only REGEX] [--shares N] [--json FILE] [--keep FOLDER]

Needs a GPU, PyTorch with its Triton, this project's wheel (`./dev wheel`), and Conch, Cut Cross Entropy, GemLite,
mlstm_kernels, SageAttention and Unsloth, unpacked in FOLDER but not installed. Of Unsloth only files with kernels are
imported (`stubs.py`). Kernels with autotuners get the configuration in the middle. How it is timed and compared: `paired.py`.
"""

import importlib
import os
import sys

import paired
import stubs
from engines import HEADS, KEYS, SIZE, case, f8, f32, i8, i32, r, steps, writes
from libraries import gate, integers, one_configuration, rand, trained

ROWS, COLUMNS = 8192, 4096


def learned(module, name, *makers, label=None, **constants):
    """A function, or what an autograd function applies, with its backward pass."""

    def make():
        function = getattr(importlib.import_module(module), name)
        return trained(getattr(function, "apply", function), **constants), [maker() if callable(maker) else maker for maker in makers]

    return f"{module.split('.')[0]}.{label or name}", make


def pages(count, length):
    import torch

    return torch.arange(count * length, device="cuda", dtype=torch.int32).view(count, length)


def conch():
    import torch

    C = "conch.ops."
    x, weight = r(ROWS, COLUMNS), r(COLUMNS)
    yield case(C + "activation.silu_and_mul", "silu_and_mul", r(ROWS, 2 * COLUMNS))
    yield case(C + "normalization.rms_norm", "rms_norm", x, weight, 1e-6)
    yield case(C + "normalization.rms_norm", "fused_add_rms_norm", x, x, weight, 1e-6, call=lambda f, x, y, *args: f(x.clone(), y.clone(), *args))
    yield case(C + "normalization.gemma_rms_norm", "gemma_rms_norm", x, weight, 1e-6)
    places = lambda: torch.arange(4096, device="cuda")
    args = places, r(4096, HEADS * SIZE), r(4096, KEYS * SIZE), SIZE, r(8192, SIZE)
    turned = lambda f, places, q, k, *args: f(places, q.clone(), k.clone(), *args)
    yield case(C + "embedding.rotary_embedding", "rotary_embedding", *args, call=turned)
    batch, length = 32, 2048
    blocks = batch * length // 16
    cache = r(blocks, 16, KEYS, SIZE), r(blocks, 16, KEYS, SIZE)
    lengths = lambda: torch.full((batch,), length, device="cuda", dtype=torch.int32)
    table = lambda: pages(batch, length // 16)
    yield case(C + "attention.paged_attention", "paged_attention", r(batch, HEADS, SIZE), *cache, table, lengths)
    known = lambda: torch.full((8,), length, device="cuda", dtype=torch.int32)
    few = lambda: pages(8, length // 16)
    args = r(8 * length, HEADS, SIZE), *cache, lambda: steps(8, length), length, known, length, few
    yield case(C + "attention.varlen_attention", "varlen_attention", *args, causal=True)
    yield case(C + "quantization.int8", "scaled_int8_quant", x, f32(1))
    yield case(C + "quantization.fp8", "scaled_fp8_quant", x, f32(1), call=lambda f, *args: [f(*args)[0].float()])
    word = (1 << 31) - 1
    for rows in (16, 2048):
        args = r(rows, COLUMNS, dtype="float16"), i32(word, COLUMNS // 8, COLUMNS), r(COLUMNS // 128, COLUMNS, dtype="float16"), None
        yield case(C + "quantization.gemm", "mixed_precision_gemm", *args, 4, 8, 128, label=f"mixed_precision_gemm_{rows}")
    right = lambda maker: lambda: maker().t()
    for name, maker in (("i8", i8), ("f8", f8)):
        args = maker(2048, COLUMNS), right(maker(COLUMNS, COLUMNS)), f32(2048, 1), f32(COLUMNS, 1), torch.bfloat16
        yield case(C + "quantization.gemm", "scaled_gemm", *args, label=f"scaled_gemm_{name}")
    F = C + "quantization.bitsandbytes.functional"
    for kind in ("fp4", "nf4"):
        first = lambda f, *args, kind=kind: [f(*args, quant_type=kind)[0]]
        yield case(F, "quantize_4bit", r(COLUMNS, COLUMNS), call=first, label=f"quantize_4bit_{kind}")
        packed = lambda: torch.randint(0, 255, (COLUMNS * COLUMNS // 2,), device="cuda", dtype=torch.uint8)
        back = lambda f, w, most, out, kind=kind: f(w, absmax=most, out=out, quant_type=kind)
        args = packed, f32(COLUMNS * COLUMNS // 64), lambda: torch.empty(COLUMNS * COLUMNS, device="cuda", dtype=torch.bfloat16)
        yield case(F, "dequantize_4bit", *args, call=back, label=f"dequantize_4bit_{kind}")
    boxes = lambda: torch.cat(2 * [rand(4096, 2, dtype="float32")], 1) + torch.tensor([0.0, 0.0, 1.0, 1.0], device="cuda")
    yield case(C + "vision.nms", "nms", boxes, f32(4096), 0.5)
    points = 1 << 18
    starts = lambda: torch.arange(0, points, 16, device="cuda", dtype=torch.int32)
    many = lambda: torch.full((points // 16,), 16, device="cuda", dtype=torch.int32)
    cell = lambda: torch.arange(points, device="cuda", dtype=torch.int32) // 16
    cells = lambda: torch.stack([cell() // 128, cell() % 128, 0 * cell(), 0 * cell()], 1)
    yield case(C + "vision.bev_pool", "bev_pool", f32(points, 80), cells, starts, many, 1, 1, 128, 128)
    slots = lambda: torch.randperm(ROWS, device="cuda")
    new = r(ROWS, KEYS, SIZE), r(ROWS, KEYS, SIZE), r(1024, 16, KEYS, SIZE), r(1024, 16, KEYS, SIZE), slots
    yield case(C + "vllm.reshape_and_cache", "reshape_and_cache", *new, call=writes(2))


def attention():
    import torch

    half = [r(4, HEADS, 2048, SIZE, dtype="float16")] * 3
    for causal in (False, True):
        yield case("sageattention.core", "sageattn", *half, is_causal=causal, label=f"sageattn_{causal}")
    narrow = [r(4, HEADS, 2048, 64, dtype="float16")] * 3
    yield case("sageattention.core", "sageattn", *narrow, is_causal=True, label="sageattn_64")
    args = r(4, HEADS, 2048, 96, dtype="float16"), r(4, HEADS, 2048, 96, dtype="float16"), r(4, HEADS, 2048, 96, dtype="float16")
    yield case("sageattention.core", "sageattn", *args, label="sageattn_96")
    packed = [r(8 * 1024, HEADS, SIZE, dtype="float16")] * 3
    bounds = lambda: steps(8, 1024)
    yield case("sageattention.core", "sageattn_varlen", *packed, bounds, bounds, 1024, 1024, is_causal=True)
    L = "unsloth.kernels.large_head_attention"
    limits = lambda: torch.zeros(2, 2048, device="cuda", dtype=torch.int32), lambda: torch.arange(2048, device="cuda", dtype=torch.int32).repeat(2, 1)
    yield learned(L, "large_head_attention", r(2, 8, 2048, 512), r(2, 2, 2048, 512), r(2, 2, 2048, 512), *limits)


def recurrences():
    B, H, T, K = 2, 16, 2048, 128
    M = "mlstm_kernels.torch."
    args = r(B, H, T, K), r(B, H, T, K), r(B, H, T, 2 * K), f32(B, H, T), f32(B, H, T, of=gate)
    import torch

    xl = {"chunk_size": 128, "autocast_kernel_dtype": torch.bfloat16}
    yield learned(M + "chunkwise.triton_xl_chunk.fwbw", "mlstm_chunkwise__xl_chunk", *args, **xl)
    yield learned(M + "chunkwise.triton_xl_chunk_siging.fwbw", "mlstm_siging_chunkwise__xl_chunk", *args, **xl)
    same = r(B, H, T, K), r(B, H, T, K), r(B, H, T, K), f32(B, H, T), f32(B, H, T, of=gate)
    yield learned(M + "chunkwise.triton_limit_chunk.fwbw", "mlstm_chunkwise__limit_chunk", *same, chunk_size=64, autocast_kernel_dtype=torch.bfloat16)
    yield learned(M + "parallel.triton_limit_headdim.fwbw", "mlstm_parallel__limit_headdim", *same, autocast_kernel_dtype=torch.bfloat16)
    state = f32(256, 8, K, 2 * K), f32(256, 8, K), f32(256, 8, 1)
    token = r(256, 8, K), r(256, 8, K), r(256, 8, 2 * K), f32(256, 8, 1), f32(256, 8, 1, of=gate)
    name, make = case(M + "recurrent.triton_step", "mlstm_recurrent_step__triton_fw", *state, *token)

    def step(c, n, m, q, k, v, i, f):
        """In double precision; the kernel rounds to 16 bits on the way."""
        c, n, m, q, k, v, i, f = (tensor.double() for tensor in (c, n, m, q, k, v, i, f))
        decay = torch.nn.functional.logsigmoid(f)
        most = torch.maximum(decay + m, i)
        forget, add = (decay + m - most).exp(), (i - most).exp()
        cell = forget[..., None] * c + add[..., None] * (k[..., :, None] * v[..., None, :])
        norm, q = forget * n + add * k, q * K**-0.5
        below = torch.maximum((q * norm).sum(-1, keepdim=True).abs(), (-most).exp()) + 1e-6
        return (q[..., None] * cell).sum(-2) / below, (cell, norm, most)

    def made():
        function, args = make()
        function.reference = step
        return function, args

    yield name, made


def losses():
    words = 32768
    yield learned("cut_cross_entropy.linear_cross_entropy", "linear_cross_entropy", r(4096, 2048), r(words, 2048), lambda: integers(words, 4096))
    U = "unsloth.kernels.cross_entropy_loss"
    yield learned(U, "Fast_CrossEntropyLoss", r(4096, words), lambda: integers(words, 4096), 0, 0, label="cross_entropy")
    yield learned(U, "Fast_CrossEntropyLoss", r(1024, 4 * words), lambda: integers(4 * words, 1024), 30.0, 0, label="cross_entropy_chunks")


def layers():
    import torch

    U = "unsloth.kernels."
    x, weight = r(ROWS, COLUMNS), r(COLUMNS)
    yield learned(U + "rms_layernorm", "Fast_RMS_Layernorm", x, weight, 1e-6)
    yield learned(U + "rms_layernorm", "Fast_RMS_Layernorm", r(1 << 18, SIZE), r(SIZE), 1e-6, label="Fast_RMS_Layernorm_rows")
    yield learned(U + "layernorm", "Fast_Layernorm", x, weight, weight, 1e-6)
    for name in ("exact", "approx"):
        yield case(U + "geglu", f"geglu_{name}_forward_kernel", r(2, COLUMNS, COLUMNS), r(2, COLUMNS, COLUMNS))
        clones = lambda f, *args: f(*(arg.clone() for arg in args))
        yield case(U + "geglu", f"geglu_{name}_backward_kernel", x, x, x, call=clones)
    yield case(U + "swiglu", "swiglu_fg_kernel", r(2, COLUMNS, COLUMNS), r(2, COLUMNS, COLUMNS))
    yield case(U + "swiglu", "swiglu_DWf_DW_dfg_kernel", x, x, x, call=clones)
    q, k = r(2, HEADS, 4096, SIZE), r(2, KEYS, 4096, SIZE)
    turned = lambda f, q, k, *args: f.apply(q.clone(), k.clone(), *args)
    yield case(U + "rope_embedding", "Fast_RoPE_Embedding_QK", q, k, r(4096, SIZE), r(4096, SIZE), None, call=turned)
    B = U + "fp8"
    yield case(B, "act_quant", x, call=lambda f, x: [f(x)[1]])
    yield case(B, "weight_dequant_block", f8(COLUMNS, COLUMNS), f32(32, 32))
    plain = lambda f, a, b, sa, sb: f(a, b, sa, sb, [128, 128], torch.bfloat16)
    yield case(B, "w8a8_block_fp8_matmul_triton", f8(4096, COLUMNS), f8(COLUMNS, COLUMNS), f32(4096, 32), f32(32, 32), call=plain)
    yield case(B, "fp8_rowwise_gemv", r(1, 1, COLUMNS), f8(3 * COLUMNS, COLUMNS), f32(3 * COLUMNS, 1))
    yield case(B, "_fp8_block_gemv", r(8, COLUMNS), f8(3 * COLUMNS, COLUMNS), f32(96, 32), 128, 128)
    N = U + "nvfp4"
    packed = lambda: torch.randint(0, 255, (COLUMNS, COLUMNS // 2), device="cuda", dtype=torch.uint8)
    scales = f8(COLUMNS, COLUMNS // 16), f32(1)
    yield case(N, "_nvfp4_dequantize_triton", packed, *scales, torch.bfloat16)
    yield case(N, "_nvfp4_matmul_fwd_fused", r(64, COLUMNS), packed, *scales)
    yield case(N, "_nvfp4_matmul_dx_fused", r(64, COLUMNS), packed, *scales)
    code = lambda: torch.linspace(-1, 1, 16, device="cuda")
    flat = lambda: torch.randint(0, 255, (COLUMNS * COLUMNS // 2, 1), device="cuda", dtype=torch.uint8)
    most = f32(COLUMNS * COLUMNS // 64)
    args = flat, most, None, None, None, code, 64, 256, (COLUMNS, COLUMNS)
    yield case(U + "nf4", "dequantize_nf4", *args, torch.bfloat16)
    yield case(U + "nf4_gemv", "gemv_nf4", r(1, 1, COLUMNS), *args, torch.bfloat16)


def quantized():
    import torch

    def linear(rows, kind, bits=4):
        def make():
            helper = importlib.import_module("gemlite.helper")
            torch.manual_seed(3)
            if kind == "int":
                weight = torch.randint(0, 1 << bits, (COLUMNS, COLUMNS), device="cuda", dtype=torch.uint8)
                scale = rand(COLUMNS * COLUMNS // 128, 1, dtype="float16").abs() / 16
                layer = helper.A16Wn(device="cuda:0", dtype=torch.float16)
                layer = layer.from_weights(weight, scale, torch.full_like(scale, 1 << (bits - 1)), bits, 128)
            else:
                layer = getattr(helper, kind)(device="cuda:0", dtype=torch.float16)
                layer = layer.from_weights(rand(COLUMNS, COLUMNS, dtype="float16"))
            return layer.forward, [rand(rows, COLUMNS, dtype="float16")]

        return f"gemlite.{kind}_{bits}_{rows}", make

    for rows in (1, 8, 64, 2048):
        yield linear(rows, "int")
    for rows in (1, 8, 64):
        yield linear(rows, "A16W8_INT8", 8)
    yield linear(1, "int", 2)
    yield linear(64, "A16W8_FP8", 8)
    yield linear(2048, "A8W8_int8_dynamic", 8)
    yield linear(2048, "A8W8_fp8_dynamic", 8)


def cases():
    one_configuration()
    sys.path.append(os.environ["PACKAGES"])
    stubs.install(os.environ["PACKAGES"], {"unsloth", "unsloth_zoo"}, {"unsloth.kernels.indexing", "unsloth.kernels.triton_launch"})
    for group in (conch, attention, recurrences, losses, layers, quantized):
        yield from group()


if __name__ == "__main__":
    paired.main(__doc__.splitlines()[0], cases, shares=4)
