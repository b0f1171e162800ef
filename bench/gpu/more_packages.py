"""Kernels of more packages, timed one by one: compiled by Triton, and by ttopt through its hook.

    MORE=FOLDER python bench/gpu/more_packages.py [--only REGEX] [--shares N] [--json FILE] [--keep FOLDER]

Needs a GPU, PyTorch with its Triton, and this project's wheel (`./dev wheel`). FOLDER holds, unpacked and not installed, the
packages bitsandbytes, causal_conv1d, colossalai, deepspeed, fbgemm_gpu, flash_attn, gptqmodel, lmdeploy, mamba_ssm, megablocks
and stk (stanford-stk), each below its import name; of these only files with kernels are imported, with what they need
(`stubs.py`). Besides them it holds einops and triton_kernels (OpenAI's, as vLLM's wheel has it), which are imported as they are.
Kernels with autotuners get the configuration in the middle. How it is timed and compared: `paired.py`.
"""

import enum
import importlib
import os
import sys
import types

import paired
import stubs
from engines import HEADS, KEYS, SIZE, case, f8, f32, i8, i32, r, steps, writes
from libraries import gate, integers, one_configuration, rand, share, trained
from packages import COLUMNS, ROWS, learned, pages

PACKAGES = {"bitsandbytes", "causal_conv1d", "colossalai", "deepspeed", "fbgemm_gpu", "flash_attn", "gptqmodel", "lmdeploy"}
PACKAGES |= {"mamba_ssm", "megablocks", "stk"}
REAL = {
    "deepspeed.ops.triton_ops._triton",
    "fbgemm_gpu.experimental.gemm.triton_gemm.matmul_perf_model",
    "fbgemm_gpu.experimental.gemm.triton_gemm.utils",
    "fbgemm_gpu.sll.triton.common",
    "fbgemm_gpu.triton",
    "fbgemm_gpu.triton.common",
    "flash_attn.utils.library",
    "flash_attn.utils.torch",
    "gptqmodel.quantization.awq.modules.triton.scheduler",
    "gptqmodel.nn_modules.triton_utils.custom_autotune",
    "gptqmodel.utils.env",
    "lmdeploy.pytorch.consts",
    "lmdeploy.pytorch.kernels.cuda.turbo_quant",
    "lmdeploy.pytorch.kernels.cuda.utils",
    "mamba_ssm.ops.triton.mamba3.mamba3_siso_combined",
    "mamba_ssm.utils.determinism",
    "mamba_ssm.utils.torch",
}
WORD = (1 << 31) - 1


def bytes_of(*shape, low=0, high=256):
    import torch

    return lambda: torch.randint(low, high, shape, device="cuda", dtype=torch.uint8)


def filled(value, *shape, dtype="int32"):
    import torch

    return lambda: torch.full(shape, value, device="cuda", dtype=getattr(torch, dtype))


def positive(*shape, dtype="float32"):
    return lambda: rand(*shape, dtype=dtype).abs() / 16 + 1e-3


def decays(*shape):
    return lambda: -rand(*shape, dtype="float32").exp()


def bounds(count, size):
    return lambda: steps(count, size)


def gradients(module, name, *makers, label=None, pick=None, **constants):
    """A function and its backward pass, where what has one is no autograd function; `pick` calls it, where it is not just called."""

    def make():
        function = getattr(importlib.import_module(module), name)
        picked = (lambda *args: pick(function, *args)) if pick else function
        return trained(picked, **constants), [maker() if callable(maker) else maker for maker in makers]

    return f"{module.split('.')[0]}.{label or name}", make


def portable():
    """Kernels that are also launched with hints for AMD GPUs get none on others, where Triton does not know them."""
    from triton.runtime.jit import JITFunction

    run = JITFunction.run

    def without(self, *args, **named):
        for hint in ("kpack", "matrix_instr_nonkdim", "waves_per_eu"):
            if hint not in self.arg_names:
                named.pop(hint, None)
        return run(self, *args, **named)

    JITFunction.run = without


def mamba():
    M = "mamba_ssm.ops.triton."
    batch, length, heads, size, groups, states, chunk = 2, 4096, 64, 64, 8, 128, 256
    chunks = length // chunk
    b, x, dt = r(batch, length, groups, states), r(batch, length, heads, size), r(batch, length, heads)
    scan = x, dt, decays(heads), b, b, chunk
    yield learned(M + "ssd_combined", "mamba_chunk_scan_combined", *scan, dt_softplus=True)
    extra = f32(heads), x, f32(heads)
    yield learned(M + "ssd_combined", "mamba_chunk_scan_combined", *scan, *extra, dt_softplus=True, label="mamba_chunk_scan_combined_gated")
    one = r(batch, length, 1, states)
    yield learned(M + "ssd_combined", "mamba_chunk_scan_combined", x, dt, decays(heads), one, one, chunk, dt_softplus=True, label="mamba_chunk_scan_combined_1")
    shares, sums = f32(batch, heads, chunks, chunk, of=share), f32(batch, heads, chunks, chunk, of=gate)
    yield learned(M + "ssd_chunk_state", "chunk_state", b, x, shares, sums)
    yield learned(M + "ssd_state_passing", "state_passing", f32(batch, chunks, heads, size * states), f32(batch, heads, chunks, of=gate))
    yield learned(M + "ssd_chunk_scan", "chunk_scan", b, b, x, shares, sums, f32(batch, chunks, heads, size, states), r(heads))
    flat = r(length, groups, states), r(length, heads, size), f32(heads, chunks, chunk, of=share), f32(heads, chunks, chunk, of=gate)
    yield case(M + "ssd_chunk_state", "chunk_state_varlen", *flat, bounds(8, length // 8), r(chunks, heads, size, states))
    rows, weight = r(ROWS, COLUMNS), r(COLUMNS)
    yield learned(M + "layernorm_gated", "rmsnorm_fn", rows, weight, None, rows, 1e-5, label="rmsnorm_gated")
    yield learned(M + "layernorm_gated", "rmsnorm_fn", rows, weight, None, rows, 1e-5, 512, False, label="rmsnorm_gated_groups")
    yield learned(M + "layernorm_gated", "layernorm_fn", rows, weight, weight, rows, 1e-5, label="layernorm_gated")
    yield learned(M + "layer_norm", "layer_norm_fn", rows, weight, weight, rows, prenorm=True)
    yield learned(M + "layer_norm", "rms_norm_fn", rows, weight, None, rows, prenorm=True)
    yield learned(M + "k_activations", "SwiGLU", r(ROWS, 2 * COLUMNS))
    token = r(128, heads, size)
    state = r(128, heads, size, states), token, token, decays(heads, size, states), r(128, groups, states), r(128, groups, states)
    yield case(M + "selective_state_update", "selective_state_update", *state, f32(heads, size), token, f32(heads, size), dt_softplus=True)
    per_head = lambda maker, last: lambda: maker().unsqueeze(-1).expand(-1, -1, last)
    slow = lambda: decays(heads)()[:, None, None].expand(heads, size, states)
    state = state[0], token, per_head(r(128, heads), size), slow, r(128, groups, states), r(128, groups, states)
    bias = lambda: rand(heads, dtype="float32")[:, None].expand(heads, size)
    yield case(M + "selective_state_update", "selective_state_update", *state, bias, token, bias, dt_softplus=True, label="selective_state_update_tied")
    # Mamba 3
    heads, keys, angles = 32, 128, 32
    narrow, wide = r(batch, length, 1, keys), r(batch, length, heads, size)
    scalar = lambda of: f32(batch, heads, length, of=of)
    siso = narrow, narrow, wide, scalar(gate), scalar(share), scalar(share), f32(heads, keys), f32(heads, keys)
    siso += (f32(batch, length, heads, angles),)
    yield learned(M + "mamba3.mamba3_siso_combined", "mamba3_siso_combined", *siso, f32(heads), wide)
    yield learned(M + "mamba3.mamba3_siso_combined", "mamba3_siso_combined", *siso, label="mamba3_siso_combined_plain")
    small = r(256, 1, keys), r(256, 1, keys), r(256, heads, size), f32(256, heads, of=gate), f32(256, heads, of=share), f32(256, heads, of=share)
    small += f32(heads, keys), f32(heads, keys), f32(256, heads, angles), f32(heads), r(256, heads, size)
    known = f32(256, heads, angles), f32(256, heads, size, keys), r(256, heads, keys), r(256, heads, size)
    yield case(M + "mamba3.mamba3_siso_step", "mamba3_siso_step", *small, *known, call=lambda f, *args: f(*args[:11], args[11:]))
    U = M + "mamba3.mamba3_mimo_utils"
    pieces = length // 64
    square = f32(batch, heads, pieces, 64, 64)
    line = f32(batch, heads, length)
    yield case(U, "bwd_dadt_fused_triton", square, square, line, line, scalar(gate), scalar(gate), 64)
    yield case(U, "bwd_dtrap_ddt_triton", line, scalar(share), line, line, 64)
    yield case(U, "compute_dacs_segsum_triton", scalar(gate), 64)
    A = M + "mamba3.angle_dt"
    turn = f32(batch, length, heads, angles)
    yield case(A, "angle_dt_fwd", turn, scalar(share))
    yield case(A, "angle_dt_bwd", turn, turn, scalar(share), call=lambda f, *args: f(*args)[:2])
    mimo = r(256, 4, heads, keys), r(256, 4, heads, keys), f32(256, heads, angles), f32(256, heads, angles), f32(256, heads, of=share)
    yield case(M + "mamba3.mamba3_mimo_rotary_step", "apply_rotary_qk_inference_fwd", *mimo)
    yield case("causal_conv1d.causal_conv1d_varlen", "causal_conv1d_varlen_states", r(1 << 16, 4096), bounds(4096, 16), 4)


def flash():
    import torch

    F = "flash_attn."
    O = F + "ops.triton."
    words = 32768
    yield learned(O + "cross_entropy", "cross_entropy_loss", r(4096, words), lambda: integers(words, 4096), label="cross_entropy_loss")
    smooth = lambda f, logits, labels: f(logits, labels, label_smoothing=0.1, lse_square_scale=1e-4)[0]
    yield gradients(O + "cross_entropy", "cross_entropy_loss", f32(4096, words), lambda: integers(words, 4096), pick=smooth, label="cross_entropy_smooth")
    rows, weight = r(ROWS, COLUMNS), r(COLUMNS)
    yield learned(O + "layer_norm", "layer_norm_fn", rows, weight, weight, rows, prenorm=True)
    yield learned(O + "layer_norm", "rms_norm_fn", rows, weight, None, rows, residual_in_fp32=True, prenorm=True)
    pair = rows, weight, weight, rows, rows, weight, weight
    yield learned(O + "layer_norm", "layer_norm_fn", *pair, prenorm=True, label="layer_norm_fn_pair")
    yield learned(O + "layer_norm", "rms_norm_fn", r(1 << 17, SIZE), r(SIZE), None, label="rms_norm_fn_rows")
    x, angle = r(4, 4096, HEADS, SIZE), r(4096, SIZE // 2)
    yield case(O + "rotary", "apply_rotary", x, angle, angle)
    yield case(O + "rotary", "apply_rotary", x, angle, angle, interleaved=True, label="apply_rotary_interleaved")
    packed = r(16384, HEADS, SIZE), angle, angle, 0, bounds(8, 2048), 2048
    yield case(O + "rotary", "apply_rotary", *packed, conjugate=True, label="apply_rotary_varlen")
    # What AMD maintains; it runs on every GPU.
    A = F + "flash_attn_triton_amd."

    def prefill(function, q, k, v, causal, bounds=None, longest=2048):
        out = torch.zeros_like(q)
        layout, cut = ("bshd", (None, None)) if bounds is None else ("thd", (bounds, bounds))
        args = q, k, v, out, SIZE**-0.5, None, causal, None, layout, *cut, longest, longest, None, None
        function(*args, 0.0, 17, 0, False, True, None, None, None, None)
        return out

    grouped = r(4, 2048, HEADS, SIZE), r(4, 2048, KEYS, SIZE), r(4, 2048, KEYS, SIZE)
    yield case(A + "fwd_prefill", "attention_prefill_forward_triton_impl", *grouped, False, call=prefill, label="prefill_False")
    yield case(A + "fwd_prefill", "attention_prefill_forward_triton_impl", *grouped, True, call=prefill, label="prefill_True")
    packed = r(8192, HEADS, SIZE), r(8192, KEYS, SIZE), r(8192, KEYS, SIZE), True, bounds(4, 2048)
    yield case(A + "fwd_prefill", "attention_prefill_forward_triton_impl", *packed, call=prefill, label="prefill_varlen")

    def backward(function, do, q, k, v, out, sums, causal, more=(), exp2=(True,)):
        grads = torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(v)
        args = do, q, k, v, out, sums, *grads, SIZE**-0.5, None, causal, "bshd", None, None, 2048, 2048, 0.0, 17, 0
        function(*args, *exp2, *more)
        return grads

    saved = grouped[0], *grouped, grouped[0], lambda: rand(4, HEADS, 2048, dtype="float32").abs() + 8
    eight = lambda f, *args: backward(f, *args, more=(None,) * 8)
    yield case(A + "bwd_prefill", "attention_prefill_backward_triton_impl", *saved, True, call=backward, label="backward")
    yield case(A + "bwd_prefill_split", "attention_prefill_backward_triton_split_impl", *saved, True, call=eight, label="backward_split_True")
    yield case(A + "bwd_prefill_split", "attention_prefill_backward_triton_split_impl", *saved, False, call=eight, label="backward_split_False")
    def fused(function, do, q, k, v, out, sums, causal):
        grads = torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(v)
        function(do, q, k, v, out, sums, *grads, SIZE**-0.5, None, causal, None, None, 2048, 2048, 0.0, fused=True)
        return grads

    yield case(A + "bwd_prefill_fused", "_flash_attn_backward", *saved, True, call=fused, label="backward_fused")

    def decode(function, q, k, v):
        out = torch.zeros_like(q)
        known = torch.full((64,), 2048, device="cuda", dtype=torch.int32)
        function(q, k, v, None, None, out, SIZE**-0.5, True, None, "bshd", known, None)
        return out

    cached = r(64, 1, HEADS, SIZE, dtype="float16"), r(64, 2048, KEYS, SIZE, dtype="float16"), r(64, 2048, KEYS, SIZE, dtype="float16")
    yield case(A + "fwd_decode", "attention_decode_forward_triton_impl", *cached, call=decode, label="decode")


def openai():
    """OpenAI's kernels for mixtures of experts, of the sizes that gpt-oss-20b has."""
    import torch

    K, experts, active, hidden = "triton_kernels.", 32, 4, 2880

    def routed(tokens):
        return importlib.import_module(K + "routing").routing(rand(tokens, experts), active)

    def matmul(tokens, kind, down=False):
        def make():
            ogs, flags = importlib.import_module(K + "matmul_ogs"), importlib.import_module(K + "matmul_ogs_details.opt_flags")
            tensor, layouts = importlib.import_module(K + "tensor"), importlib.import_module(K + "tensor_details.layout")
            activation = importlib.import_module(K + "swiglu").swiglu_fn
            if not down:
                activation = ogs.FusedActivation(ogs.FnSpecs("swiglu", activation, ("alpha", "limit")), (1.702, 7.0), 2)
            data, gather, scatter = routed(tokens)
            columns = hidden if down else 2 * hidden
            x = rand(tokens * active if down else tokens, hidden)
            precision = ogs.PrecisionConfig()
            if kind == "mxfp4":
                numbers = torch.randint(0, 256, (experts, columns, hidden // 2), device="cuda", dtype=torch.uint8).transpose(-2, -1)
                scale = torch.randint(110, 120, (experts, columns, hidden // 32), device="cuda", dtype=torch.uint8)
                scale = torch.nn.functional.pad(scale, (0, -scale.shape[-1] % 4)).transpose(-2, -1)
                layout, options = layouts.make_default_matmul_mxfp4_w_layout(mx_axis=1)
                w = tensor.convert_layout(tensor.wrap_torch_tensor(numbers, dtype=tensor.FP4), layout, **options)
                layout, options = layouts.make_default_matmul_mxfp4_w_scale_layout(mx_axis=1, num_warps=8)
                scale = tensor.convert_layout(tensor.wrap_torch_tensor(scale), layout, **options)
                precision = ogs.PrecisionConfig(weight_scale=scale, flex_ctx=ogs.FlexCtx(rhs_data=ogs.InFlexData()))
            else:
                w = rand(experts, columns, hidden).div_(hidden**0.5).transpose(-2, -1)
                if kind == "f8":
                    x, w = x.to(torch.float8_e4m3fn), w.to(torch.float8_e4m3fn)
                    precision = ogs.PrecisionConfig(out_dtype=torch.bfloat16)
                elif kind == "bf16":
                    w = w.contiguous()
            bias = rand(experts, columns, dtype="float32")
            more = {"scatter_indx": scatter, "gammas": data.gate_scal} if down else {"gather_indx": gather, "fused_activation": activation}

            def call(x, bias):
                flags.reset_opt_flags_constraints()
                if kind == "mxfp4":
                    flags.update_opt_flags_constraints({"split_k": 1})
                return ogs.matmul_ogs(x, w, bias, data, precision_config=precision, **more)

            return call, [x, bias]

        return f"triton_kernels.matmul_ogs_{kind}_{tokens}{'_down' if down else ''}", make

    for kind in ("bf16", "bf16t", "f8", "mxfp4"):
        for tokens in (32, 512, 4096):
            yield matmul(tokens, kind)
    for kind in ("bf16", "mxfp4"):
        for tokens in (32, 4096):
            yield matmul(tokens, kind, down=True)
    plain = lambda f, x, w: f(x, w, None)
    yield case(K + "matmul_ogs", "matmul_ogs", r(2048, COLUMNS), r(COLUMNS, COLUMNS), call=plain, label="matmul_ogs_dense")
    yield case(K + "matmul_ogs", "matmul_ogs", r(16, 1024, 1024), r(16, 1024, 1024), call=plain, label="matmul_ogs_batched")
    sorted_tokens = lambda f, logits: (lambda data, gather, scatter: [data.gate_scal, data.expt_hist, gather.src_indx])(*f(logits, active))
    yield case(K + "routing", "routing", r(1 << 16, 128), call=sorted_tokens, label="routing_128")
    yield case(K + "routing", "routing", r(8192, experts), call=sorted_tokens, label="routing_32")
    yield gradients(K + "topk", "topk", f32(1 << 16, 128), pick=lambda f, x: f(x, 8)[0], label="topk_8")
    gated = importlib.util.find_spec("triton_kernels") and (lambda f, x: f(x, 1.702, importlib.import_module(K + "swiglu").PrecisionConfig(limit=7.0), None))
    yield case(K + "swiglu", "swiglu", r(ROWS, 2 * hidden), call=gated)
    bits = lambda: torch.randint(0, WORD, (1 << 16, 4), device="cuda", dtype=torch.int32)
    slots = lambda: integers(128, 1 << 16, 8, dtype="int16")
    yield case(K + "compaction", "compaction", r(1 << 16, 8), slots, bits)
    M = K + "numerics_details.mxfp"
    for name, kind in (("fp4", torch.uint8), ("fp8", torch.float8_e4m3fn)):
        seen = lambda f, x, kind=kind: [part.view(torch.uint8) for part in f(x, kind, axis=1)]
        yield case(M, "downcast_to_mxfp", r(COLUMNS, COLUMNS), call=seen, label=f"downcast_to_mxfp_{name}")
    scales = bytes_of(COLUMNS, COLUMNS // 32, low=110, high=130)
    up = lambda f, x, scale: f(x, scale, torch.bfloat16, axis=1)
    yield case(M, "upcast_from_mxfp", bytes_of(COLUMNS, COLUMNS // 2), scales, call=up, label="upcast_from_mxfp_fp4")
    yield case(M, "upcast_from_mxfp", f8(COLUMNS, COLUMNS), scales, call=up, label="upcast_from_mxfp_fp8")


def lmdeploy():
    import torch

    L = "lmdeploy.pytorch.kernels.cuda."
    tokens, batch, length, page = 8192, 64, 4096, 64
    per = length // page
    table, lengths = lambda: pages(batch, per), filled(length, batch)
    blocks = batch * per, page, KEYS

    def decode(function, q, k, v, lengths, table, policy=0, *scales, **more):
        policy = sys.modules["lmdeploy.messages"].QuantPolicy(policy)
        named = {"k_scales_zeros": scales[0], "v_scales_zeros": scales[1]} if scales else {}
        return function(q, k, v, lengths, table, quant_policy=policy, **named, **more)

    P, name = L + "pagedattention", "flash_attn_with_kvcache"
    cache = r(*blocks, SIZE)
    yield case(P, name, r(batch, HEADS, SIZE), cache, cache, lengths, table, call=decode, label="decode_bf16")
    windowed = lambda f, *args: decode(f, *args, window_size=1024, softcap=50.0)
    yield case(P, name, r(batch, HEADS, SIZE), cache, cache, lengths, table, call=windowed, label="decode_window")
    sinks = r(HEADS)
    sunk = lambda f, *args: decode(f, *args[:-1], sinks=args[-1])
    yield case(P, name, r(batch, HEADS, 64), r(*blocks, 64), r(*blocks, 64), lengths, table, sinks, call=sunk, label="decode_sinks_64")
    scales = r(*blocks, 2, dtype="float16")
    half = r(batch, HEADS, SIZE, dtype="float16")
    yield case(P, name, half, bytes_of(*blocks, SIZE), bytes_of(*blocks, SIZE), lengths, table, 8, scales, scales, call=decode, label="decode_int8")
    yield case(P, name, half, bytes_of(*blocks, SIZE // 2), bytes_of(*blocks, SIZE // 2), lengths, table, 4, scales, scales, call=decode, label="decode_int4")
    yield case(P, name, half, bytes_of(*blocks, SIZE // 2), bytes_of(*blocks, SIZE // 4), lengths, table, 42, scales, scales, call=decode, label="decode_turbo")
    one = filled(1.0, 1, dtype="float32")
    yield case(P, name, r(batch, HEADS, SIZE), f8(*blocks, SIZE), f8(*blocks, SIZE), lengths, table, 16, one, one, call=decode, label="decode_fp8")
    latent = lambda f, q, k, lengths, table: f(q, k, k[..., :512], lengths, table)
    yield case(P, name, r(batch, 16, 576), r(batch * per, page, 1, 576), lengths, table, call=latent, label="decode_mla")
    Q = L + "flashattention"
    heads_first = r(KEYS, tokens, SIZE)
    prefill = r(tokens, HEADS, SIZE), heads_first, heads_first, bounds(4, 2048), bounds(4, 2048), 2048
    yield case(Q, "flash_attn_varlen_func", *prefill, causal=True, label="prefill_causal")
    yield case(Q, "flash_attn_varlen_func", *prefill, causal=True, window_size=512, softcap=50.0, label="prefill_window")
    slopes = f32(HEADS, of=share)
    sloped = lambda f, *args: f(*args[:-2], causal=True, alibi_slopes=args[-2], sinks=args[-1])
    yield case(Q, "flash_attn_varlen_func", *prefill, slopes, sinks, call=sloped, label="prefill_alibi_sinks")

    def fill(policy):
        def call(function, *args):
            function(*args[:4], *args[4:9], *args[9:], quant_policy=sys.modules["lmdeploy.messages"].QuantPolicy(policy))
            return args[2], args[3], *args[9:]

        return call

    F, name = L + "fill_kv_cache", "fill_kv_cache"
    few = lambda: pages(8, 16)
    new = r(tokens, KEYS, SIZE, dtype="float16"), r(tokens, KEYS, SIZE, dtype="float16")
    where = lambda: steps(8, 1024)[:8], filled(1024, 8), filled(1024, 8), 1024, few
    small = 8 * 16, page, KEYS
    zero = lambda size, kind: filled(0, *small, size, dtype=kind)
    for policy, label, sizes, kind in ((0, "fp16", (SIZE, SIZE), "float16"), (8, "int8", (SIZE, SIZE), "uint8"), (4, "int4", (SIZE // 2,) * 2, "uint8"), (42, "turbo", (SIZE // 2, SIZE // 4), "uint8")):
        extra = (zero(2, "float16"), zero(2, "float16")) if policy else ()
        yield case(F, name, *new, *(zero(size, kind) for size in sizes), *where, *extra, call=fill(policy), label=f"fill_kv_cache_{label}")
    blocked = lambda f, *args: (f(*args), args[4], args[5])[1:]
    args = r(tokens, KEYS, SIZE), r(tokens, KEYS, SIZE), f8(*small, SIZE), f8(*small, SIZE), filled(0, *small, 1, dtype="float32"), filled(0, *small, 1, dtype="float32")
    yield case(F, "fill_kv_cache_blocked_fp8", *args, bounds(8, 1024), filled(1024, 8), 1024, few, call=blocked)

    def flatten(policy):
        def call(function, k, v, *scales):
            policy_of = sys.modules["lmdeploy.messages"].QuantPolicy
            known = torch.full((8,), 1024, device="cuda", dtype=torch.int32)
            more = dict(zip(("k_scales_zeros", "v_scales_zeros"), scales))
            kind = torch.float16 if scales else None
            return function(k, v, known, pages(8, 16), out_size=8192, out_dtype=kind, quant_policy=policy_of(policy), **more)

        return call

    C = L + "flatten_kv_cache"
    yield case(C, "flatten_kv_cache", r(*small, SIZE), r(*small, SIZE), call=flatten(0), label="flatten_bf16")
    scales = r(*small, 2, dtype="float16")
    yield case(C, "flatten_kv_cache", bytes_of(*small, SIZE), bytes_of(*small, SIZE), scales, scales, call=flatten(8), label="flatten_int8")
    yield case(C, "flatten_kv_cache", bytes_of(*small, SIZE // 2), bytes_of(*small, SIZE // 2), scales, scales, call=flatten(4), label="flatten_int4")
    yield case(C, "flatten_kv_cache", bytes_of(*small, SIZE // 2), bytes_of(*small, SIZE // 4), scales, scales, call=flatten(42), label="flatten_turbo")
    rows, weight, gates = r(tokens, COLUMNS), r(COLUMNS), r(tokens, 2 * COLUMNS)
    yield case(L + "rms_norm", "rms_norm", rows, weight)
    yield case(L + "rms_norm", "rms_norm", rows, weight, 1e-6, rows, label="rms_norm_residual")
    yield case(L + "activation", "silu_and_mul", gates)
    yield case(L + "activation", "silu_and_mul_moe_ep", r(32, 512, 4096), filled(256, 32), call=lambda f, x, counts: f(x, counts)[:, :256])
    yield case(L + "apply_rotary_pos_emb", "apply_rotary_pos_emb", r(tokens, HEADS, SIZE), r(tokens, KEYS, SIZE), r(tokens, SIZE), r(tokens, SIZE))
    halves = r(tokens, HEADS, SIZE), r(tokens, KEYS, SIZE), r(tokens, SIZE // 2), r(tokens, SIZE // 2)
    yield case(L + "apply_rotary_pos_emb", "apply_rotary_pos_emb", *halves, complex_mode=True, label="apply_rotary_complex")
    for count in (16, 2048):
        args = r(count, COLUMNS, dtype="float16"), i32(WORD, COLUMNS, COLUMNS // 8), r(32, COLUMNS, dtype="float16"), i32(WORD, 32, COLUMNS // 8)
        yield case(L + "awq_kernels", "awq_linear", *args, label=f"awq_linear_{count}")
    W = L + "w8a8_triton_kernels"
    for kind, maker in (("i8", i8), ("f8", f8)):
        args = maker(2048, COLUMNS), maker(COLUMNS, COLUMNS), positive(2048, 1), positive(COLUMNS, 1)
        yield case(W, "matmul_kernel_dynamic_quant", *args, label=f"matmul_dynamic_{kind}")
    added = lambda f, *args: f(*args[:-1], residual=args[-1], output_dtype=torch.bfloat16)
    yield case(W, "matmul_kernel_dynamic_quant", *args[:-1], positive(COLUMNS, 1), r(2048, COLUMNS), call=added, label="matmul_dynamic_residual")
    yield case(W, "per_token_quant_int8", rows, 1e-7)
    last = lambda f, *args: [f(*args)[1]]
    yield case(W, "rms_norm_dynamic_quant", rows, weight, 1e-6, call=last)
    second = lambda f, *args: [f(*args)[1:][0]]
    yield case(W, "rms_norm_dynamic_quant", rows, weight, 1e-6, rows, call=second, label="rms_norm_dynamic_quant_residual")
    args = f32(64, 32768), filled(1, 64), filled(32768, 64), 512
    yield case(L + "bitonic_topk", "bitonic_topk", *args, call=lambda f, *args: [f(*args).sort(-1)[0]])
    B = L + "blocked_gemm_fp8"
    yield case(B, "quant_fp8", rows, 128, call=last)
    yield case(B, "quant_fp8", rows, 128, call=lambda f, *args: [f(*args, scale_fmt="ue8m0", trans_scale=True)[1]], label="quant_fp8_ue8m0")
    right = lambda maker: lambda: maker().t()
    for count in (64, 4096):
        args = f8(count, COLUMNS), positive(count, 32), right(f8(COLUMNS, COLUMNS)), positive(32, 32), torch.bfloat16
        yield case(B, "blocked_gemm_fp8", *args, label=f"blocked_gemm_fp8_{count}")
    args = f8(512, COLUMNS), positive(512, 32), f8(COLUMNS, COLUMNS), positive(32, 32), torch.bfloat16
    yield case(B, "blocked_gemm_fp8", *args, label="blocked_gemm_fp8_pointers")
    D = L + "dsa_indexer_preprocess"
    angle = r(tokens, 64)
    args = r(tokens, 64, SIZE), r(tokens, 64), angle, angle, 0.125, torch.float8_e4m3fn
    for mixed in (False, True):
        yield case(D, "prepare_dsa_indexer_q", *args, mixed, call=last, label=f"prepare_dsa_indexer_q_{mixed}")
    args = r(tokens, SIZE), r(SIZE), r(SIZE), angle, angle, f8(128, page, SIZE), filled(0, 128, page, dtype="float32")
    yield case(D, "prepare_dsa_indexer_k_cache", *args, bounds(8, 1024), filled(1024, 8), few, 1024, 1e-6, False, call=writes(6))
    args = f8(2048, page, SIZE), f32(2048, page), bounds(8, 16384), filled(16384, 8), lambda: pages(8, 256), 131072
    yield case(D, "flatten_dsa_indexer_k_cache", *args, call=lambda f, *args: [part.float() for part in f(*args)])
    index = f8(batch, 64, SIZE), f32(batch, 64), f8(batch * per, page, SIZE), positive(batch * per, page), bounds(batch, 1), lengths, table
    yield case(L + "ds_index", "fp8_index", *index, call=lambda f, *args: f(*args, max_k_seqlen=length), label="fp8_index_decode")
    index = f8(2048, 64, SIZE), f32(2048, 64), f8(per, page, SIZE), positive(per, page), bounds(1, 2048), filled(length, 1), lambda: pages(1, per)
    seen = lambda f, *args: f(*args, max_q_seqlen=2048, max_k_seqlen=length)[:, :2048]
    yield case(L + "ds_index", "fp8_index", *index, call=seen, label="fp8_index_prefill")
    heads = r(1, 16384, 16, SIZE), r(1, 16384, 16, SIZE), r(1, 16384, 32), r(1, 16384, 32), f32(32), f32(32, of=gate), 2
    yield case(L + "gated_delta_preprocess", "gated_delta_preprocess", *heads)
    adapters = lambda: torch.arange(0, 8, device="cuda")
    args = r(tokens, COLUMNS, dtype="float16"), r(8 * 64, COLUMNS, dtype="float16"), r(8 * 64, COLUMNS, dtype="float16"), f32(8)
    args += lambda: 64 * adapters(), lambda: 64 + 0 * adapters(), lambda: 1024 * adapters(), lambda: 1024 + 0 * adapters(), adapters, 64, 1024
    yield case(L + "fused_lora", "fused_lora", *args)
    chances = lambda: torch.softmax(rand(64, 32768, dtype="float32"), -1).sort(-1, descending=True)[0]
    yield case(L + "multinomial_sampling", "multinomial_sampling", chances, lambda: integers(1000, 64), lambda: integers(1000, 64))
    words = 131072
    drafts = lambda: integers(words, 64, 4)
    args = filled(0, 64 * 4, dtype="int64"), drafts, f32(64 * 4, words, of=share), f32(64 * 4, words, of=share), f32(64, words, of=share)
    yield case(L + "rejection_sampling", "sample_recovered_tokens", *args, call=writes(0))
    yield case(L + "dsv4.hc_prepost", "hc_pre_reduce", r(tokens, 4, COLUMNS), f32(tokens, 4), 4)
    yield case(L + "dsv4.hc_prepost", "hc_post_expand", rows, r(tokens, 4, COLUMNS), f32(tokens, 4), f32(tokens, 4, 4), 4)
    V = L + "v4_compressor"

    def compressed(function, *args):
        function(*args)
        return args[8], args[3], args[4]

    for name, count, long in (("score_and_fill_state_prefill", 8, 2048), ("score_and_fill_state_decode", 2048, 1)):
        for ratio, wide, rows_of in ((4, 1024, 8), (128, 512, 128)):
            total = count * long
            state = f32(count, rows_of, wide), f32(count, rows_of, wide), lambda count=count: torch.arange(count, device="cuda")
            args = r(total, wide), r(total, wide), f32(ratio, wide), *state, bounds(count, long), filled(4096, count), filled(0, total, 512, dtype="bfloat16")
            more = (ratio == 4, long) if long > 1 else (ratio == 4,)
            yield case(V, name, *args, *more, call=compressed, label=f"{name}_{ratio}")
    slots = lambda: torch.randperm(512 * 128, device="cuda")
    args = r(512 * 128, 512), bytes_of(512, 128, 584, high=1), lambda: slots() // 128, lambda: torch.arange(512 * 128, device="cuda") % 128
    packed = lambda f, kv, cache, slot, place: (f(kv, cache.view(torch.float8_e4m3fn), torch.arange(512 * 128, device="cuda") // 128, place), cache)[1]
    yield case(L + "v4_pack_window", "pack_window_tokens_fp8", *args, call=packed)
    M = L + "moe."
    yield case(M + "route_noaux_tc", "fused_noaux_tc_routing", f32(tokens, 256, of=share), f32(256, of=share))
    args = f32(tokens, 192, of=share), f32(192, of=share)
    yield case(M + "route_single_group", "fused_single_group_topk_router", *args, num_experts=192, top_k=8, routed_scaling_factor=2.5)
    yield case(M + "fused_moe", "moe_reduce", r(tokens, 8, 2048), f32(tokens, 8))
    yield case(M + "v4_swiglu_quant", "v4_swiglu_and_quant_fp8", gates, call=last)
    yield case(M + "ep", "ep_gather", r(4 * tokens, 2048), lambda: integers(64, tokens, 8), f32(tokens, 8), lambda: integers(4 * tokens, tokens, 8), filled(0, tokens, 2048, dtype="bfloat16"), call=writes(4))
    experts, hidden, ffn, top = 64, 2048, 1408, 6
    chosen = lambda count: lambda: rand(count, experts, dtype="float32").topk(top, -1)[1]
    for count in (64, 4096):
        routes = f32(count, top, of=share), chosen(count), top
        small = lambda *shape: lambda: rand(*shape).div_(32)
        yield case(M + "fused_moe", "fused_moe", r(count, hidden), small(experts, 2 * ffn, hidden), small(experts, hidden, ffn), *routes, label=f"fused_moe_{count}")
        args = f8(count, hidden), positive(count, hidden // 128), f8(experts, 2 * ffn, hidden), positive(experts, 2 * ffn // 128, hidden // 128)
        args += f8(experts, hidden, ffn), positive(experts, hidden // 128, ffn // 128), *routes
        yield case(M + "blocked_fp8", "fused_moe_blocked_fp8", *args, out_dtype=torch.bfloat16, label=f"fused_moe_blocked_fp8_{count}")
        args = i8(count, hidden), positive(count, 1), i8(experts, 2 * ffn, hidden), positive(experts, 2 * ffn, 1), i8(experts, hidden, ffn), positive(experts, hidden, 1)
        yield case(M + "w8a8", "fused_moe_w8a8", *args, *routes, out_dtype=torch.bfloat16, label=f"fused_moe_w8a8_{count}")
        args = r(count, hidden), i32(WORD, experts, 2 * ffn, hidden // 8), r(experts, 2 * ffn, hidden // 32), i32(WORD, experts, hidden, ffn // 8), r(experts, hidden, ffn // 32)
        yield case(L + "compressed_tensors_w4a16", "fused_moe_w4a16", *args, *routes, label=f"fused_moe_w4a16_{count}")
        exponents = lambda *shape: lambda: torch.randint(118, 124, shape, device="cuda", dtype=torch.uint8).view(torch.float8_e8m0fnu)
        args = f8(count, hidden), positive(count, hidden // 128), i8(experts, 2 * ffn, hidden // 2), exponents(experts, 2 * ffn, hidden // 32)
        args += i8(experts, hidden, ffn // 2), exponents(experts, hidden, ffn // 32), *routes
        yield case(M + "v4_fp4", "fused_moe_v4_fp4", *args, out_dtype=torch.bfloat16, label=f"fused_moe_v4_fp4_{count}")


def bitsandbytes():
    import torch

    B = "bitsandbytes.backends.triton."
    count = COLUMNS * COLUMNS
    for kind in ("fp4", "nf4"):
        quantize = lambda f, x, kind=kind: f(x, 64, kind, count // 64, torch.empty(count // 64, device="cuda", dtype=x.dtype), count, torch.empty(count // 2, 1, device="cuda", dtype=torch.uint8))
        yield case(B + "kernels_4bit", "quantize_4bit_blockwise_triton", r(COLUMNS, COLUMNS), call=quantize, label=f"quantize_{kind}")
        args = bytes_of(count // 2, 1), f32(count // 64), 64, kind, torch.bfloat16, filled(0, COLUMNS, COLUMNS, dtype="bfloat16")
        yield case(B + "kernels_4bit", "dequantize_4bit_impl", *args, call=writes(5), label=f"dequantize_{kind}")
    code = lambda: torch.linspace(-1, 1, 256, device="cuda")
    args = bytes_of(count // 2, 1), f32(count // 64), 64, lambda: torch.linspace(-1, 1, 16, device="cuda"), torch.bfloat16, filled(0, COLUMNS, COLUMNS, dtype="bfloat16")
    yield case(B + "kernels_4bit", "dequantize_4bit_impl_passing_code", *args, call=writes(5))
    yield case(B + "kernels_8bit_quant", "quantize_blockwise_triton", f32(COLUMNS, COLUMNS), code, 256)
    yield case(B + "kernels_8bit_quant", "dequant_8bit_blockwise", bytes_of(COLUMNS, COLUMNS), f32(count // 256), code, 256, torch.bfloat16)
    tensor = f32(count)

    def update(name):
        def call(function, g, p, one, two):
            p, one, two = p.clone(), one.clone(), two.clone()
            function(name, g, p, one, two, None, 0.0, 0.0, 0.9, 0.99, 0.999, 5.0, 1e-8, 0.01, 7, 1e-3)
            return p, one, two

        return call

    for name in ("adam", "lion", "ademamix", "momentum", "rmsprop", "adagrad"):
        first = f32(2, count) if name == "ademamix" else tensor
        yield case(B + "kernels_optim", "optimizer_update_32bit_impl", tensor, tensor, first, positive(count), call=update(name), label=f"{name}_32bit")

    def update8(name):
        def call(function, p, g, one, two, most_one, most_two):
            p, one, two, most_one, most_two = (tensor.clone() for tensor in (p, one, two, most_one, most_two))
            code = torch.linspace(-1, 1, 256, device="cuda")
            above = torch.linspace(0, 1, 256, device="cuda")
            function(name, g, p, one, two, 0.9, 0.99, 0.999, 5.0, 1e-8, 7, 1e-3, code, above, most_one, most_two, 0.01)
            return p, most_one, most_two

        return call

    for name in ("adam", "lion", "momentum", "rmsprop"):
        args = tensor, tensor, bytes_of(count), bytes_of(count), positive(count // 256), positive(count // 256)
        yield case(B + "kernels_optim", "optimizer_update_8bit_blockwise_impl", *args, call=update8(name), label=f"{name}_8bit")


def sparse():
    """Experts as blocks of a sparse matrix: MegaBlocks, and the products that it has from STK."""
    import torch

    B = "megablocks.backend.kernels"
    tokens, experts, top, columns = 4096, 64, 2, 2048

    def binned():
        chosen = integers(experts, tokens * top)
        bins, indices = chosen.sort(stable=True)
        counts = torch.bincount(chosen, minlength=experts)
        padded = (counts + 127) // 128 * 128
        return indices.int(), bins.int(), counts.cumsum(0).int(), padded.cumsum(0).int()

    x, weights = r(tokens, columns), r(tokens * top)

    def with_bins(call):
        return lambda f, *args: call(f, *binned(), *args)

    gather = with_bins(lambda f, indices, bins, ends, padded, x, weights: f(x, indices, bins, weights, ends, padded, top))
    yield case(B, "padded_gather", x, weights, call=gather)
    rows = lambda: rand(tokens * top + 128 * experts, columns)
    yield case(B, "padded_scatter", rows, weights, call=gather)
    back = with_bins(lambda f, indices, bins, ends, padded, x, grad: f(x, grad, indices, bins, ends, padded, top))
    yield case(B, "padded_scatter_wgrad", rows, x, call=back)
    room = 256
    gather = with_bins(lambda f, indices, bins, ends, padded, x, weights: f(x, indices, weights, ends, room, top))
    yield case(B, "binned_gather", x, weights, call=gather)
    scatter = with_bins(lambda f, indices, bins, ends, padded, x, weights: f(x, indices, weights, ends, top))
    yield case(B, "binned_scatter", r(experts, room, columns), weights, call=scatter)
    back = with_bins(lambda f, indices, bins, ends, padded, x, grad: f(x, grad, indices, ends, top))
    yield case(B, "binned_scatter_wgrad", r(experts, room, columns), x, call=back)

    S = "stk.backend.triton_kernels"
    experts, down, across = 16, 4, 8
    height, width = experts * down, experts * across

    def topology():
        """Blocks on the diagonal, of `down` by `across` for each expert, by rows and by columns."""
        device = {"device": "cuda", "dtype": torch.int32}
        row = torch.arange(height, **device).repeat_interleave(across)
        column = (row // down) * across + torch.arange(across, **device).repeat(height)
        offsets = torch.arange(0, height * across + 1, across, **device)
        order = torch.argsort(column.long() * height + row.long(), stable=True)
        offsets_t = torch.arange(0, height * across + 1, down, **device)
        return offsets, row.short(), column.short(), offsets_t, row[order].short(), order.int()

    blocks = height * across
    left, wide = r(height * 128, columns), r(columns, width * 128)
    turned = lambda maker: lambda: maker().t().contiguous().t()

    def sdd(function, lhs, rhs):
        offsets, row, column, *_ = topology()
        out = torch.empty(blocks, 128, 128, device="cuda", dtype=lhs.dtype)
        function(lhs, rhs, (height * 128, width * 128), out, offsets, row, column)
        return out

    yield case(S, "sdd", left, wide, call=sdd)
    yield case(S, "sdd", left, turned(wide), call=sdd, label="sdd_turned")
    data = r(blocks, 128, 128)

    def dsd(turn):
        def call(function, data, rhs):
            offsets, row, column, *other = topology()
            shape = (width * 128, height * 128) if turn else (height * 128, width * 128)
            out = torch.empty(shape[0], rhs.shape[1], device="cuda", dtype=data.dtype)
            function(shape, data, offsets, row, column, *other, turn, rhs, out)
            return out

        return call

    yield case(S, "dsd", data, r(width * 128, columns), call=dsd(False))
    yield case(S, "dsd", data, turned(r(width * 128, columns)), call=dsd(False), label="dsd_turned")
    yield case(S, "dsd", data, r(height * 128, columns), call=dsd(True), label="dsd_transposed")

    def dds(turn):
        def call(function, lhs, data):
            offsets, row, column, *other = topology()
            shape = (width * 128, height * 128) if turn else (height * 128, width * 128)
            out = torch.empty(lhs.shape[0], shape[1], device="cuda", dtype=data.dtype)
            function(lhs, shape, data, offsets, row, column, *other, turn, out)
            return out

        return call

    yield case(S, "dds", r(columns, height * 128), data, call=dds(False))
    yield case(S, "dds", r(columns, width * 128), data, call=dds(True), label="dds_transposed")


def gptq():
    import torch

    G = "gptqmodel."

    T = G + "nn_modules.triton_utils."
    grouped = lambda: torch.arange(COLUMNS, device="cuda", dtype=torch.int32) // 128
    half = lambda *shape: r(*shape, dtype="float16")
    packed = i32(WORD, COLUMNS // 8, COLUMNS), half(32, COLUMNS), i32(WORD, 32, COLUMNS // 8), grouped
    for rows in (1, 16, 1024):
        yield case(T + "kernels", "quant_matmul_248", half(rows, COLUMNS), *packed, 4, 15, label=f"quant_matmul_248_{rows}")
    yield case(T + "kernels", "transpose_quant_matmul_248", half(1024, COLUMNS), *packed, 4, 15)
    for rows in (8, 32):
        yield case(T + "gptq_gemm", "gptq_gemm", half(rows, COLUMNS), *packed, label=f"gptq_gemm_{rows}")
    yield case(T + "gptq_gemv", "gptq_gemv", half(1, COLUMNS), *packed)
    for bits in (2, 4, 8):
        args = torch.float16, i32(WORD, COLUMNS * bits // 32, COLUMNS), half(32, COLUMNS), i32(WORD, 32, COLUMNS * bits // 32), grouped
        yield case(T + "dequant", "dequant", *args, bits, 32, (1 << bits) - 1, label=f"dequant_{bits}")
    A = G + "quantization.awq.modules.triton.gemm"
    packed = i32(WORD, COLUMNS, COLUMNS // 8), half(32, COLUMNS), i32(WORD, 32, COLUMNS // 8)
    yield case(A, "awq_dequantize_triton", *packed)
    for rows in (16, 1024):
        yield case(A, "awq_gemm_triton", half(rows, COLUMNS), *packed, 1, label=f"awq_gemm_triton_{rows}")
    Q = G + "quantization.paroquant.modules.triton."
    yield case(Q + "gemm", "paroquant_dequantize_triton", *packed)
    yield case(Q + "gemm", "paroquant_gemm_triton_decode", half(16, COLUMNS), *packed)
    yield case(Q + "gemm", "paroquant_gemm_triton_prefill", half(1024, COLUMNS), *packed)
    groups = COLUMNS * COLUMNS // 128
    yield gradients(Q + "affine_ste", "affine_quant_dequant_ste", f32(COLUMNS, COLUMNS), positive(groups, 1), positive(groups, 1), pick=lambda f, *args: f(*args, qmin=0, qmax=15, group_size=128))
    yield gradients(Q + "sym_ste", "sym_quant_dequant_ste", f32(COLUMNS, COLUMNS), positive(groups, 1), pick=lambda f, *args: f(*args, qmin=-8, qmax=7, group_size=128))
    U = G + "nn_modules.qlinear.gguf_triton"
    blocks = COLUMNS // 256
    known = lambda *shape: lambda: torch.randint(0, 256, shape, device="cuda", dtype=torch.uint8)
    per = lambda count: half(blocks, count, COLUMNS)
    for rows in (1, 16, 256):
        x = half(rows, COLUMNS)
        yield case(U, "fused_q4_k_matmul", x, known(blocks, 128, COLUMNS), per(8), per(8), label=f"q4_k_{rows}")
        yield case(U, "fused_q5_k_matmul", x, known(blocks, 128, COLUMNS), known(blocks, 32, COLUMNS), per(8), per(8), label=f"q5_k_{rows}")
        yield case(U, "fused_q6_k_matmul", x, known(blocks, 128, COLUMNS), known(blocks, 64, COLUMNS), per(16), label=f"q6_k_{rows}")
        yield case(U, "fused_q1_0_g128_matmul", x, known(2 * blocks, 16, COLUMNS), half(2 * blocks, COLUMNS), label=f"q1_0_{rows}")
        yield case(U, "fused_q1_0_g128_u32_matmul", x, i32(WORD, 2 * blocks, 4, COLUMNS), half(2 * blocks, COLUMNS), label=f"q1_0_u32_{rows}")
    N = G + "nn_modules.qlinear.w4a_nvfp4_triton"
    one = filled(1.0, 1, dtype="float32")
    for recipe in ("nvidia", "four_six", "least_squares"):
        pack = lambda f, x, one, recipe=recipe: [f(x, one, recipe=recipe)[0].view(torch.uint8)]
        yield case(N, "nvfp4_pack_and_swizzle", r(1024, COLUMNS), one, call=pack, label=f"nvfp4_pack_{recipe}")


def deepspeed():
    import torch

    D = "deepspeed."
    words = 65536
    yield gradients(D + "runtime.chunked_cross_entropy", "chunked_cross_entropy", r(4096, words), lambda: integers(words, 4096))
    for rows in (16, 128):
        args = r(rows, COLUMNS), bytes_of(COLUMNS, COLUMNS), positive(COLUMNS * COLUMNS // 128), 128
        yield case(D + "ops.fp_quantizer.fp8_gemm_triton", "matmul_fp8_triton", *args, label=f"matmul_fp8_{rows}")
    args = r(128, COLUMNS, dtype="float16"), bytes_of(COLUMNS, COLUMNS), positive(COLUMNS * COLUMNS // 128), 128
    yield case(D + "ops.fp_quantizer.fp8_gemm_triton", "matmul_fp8_triton", *args, label="matmul_fp8_half")
    O = D + "ops.triton_ops."
    rows = r(ROWS, COLUMNS)
    yield learned(O + "swiglu_triton", "swiglu", rows, rows)
    yield learned(O + "swiglu_triton", "swiglu_packed", r(ROWS, 2 * COLUMNS))
    yield learned(O + "fused_rms_norm", "fused_rms_norm", r(2 * ROWS, 2048), r(2048), 1e-6)
    offsets = lambda: 1024 * torch.arange(1, 9, device="cuda", dtype=torch.int32)
    yield learned(O + "group_gemm_triton", "group_gemm_triton", r(ROWS, 2048), r(8, 2048, 2048), offsets)
    yield learned(O + "group_gemm_triton", "group_gemm_triton", r(ROWS, 2048), r(8, 2048, 2048), offsets, True, label="group_gemm_triton_turned")
    order = lambda: torch.randperm(4096 * 8, device="cuda")
    yield learned(O + "autoep_fused_token_ops", "fused_weighted_restore", r(4096 * 8, 2048), f32(4096, 8), order, 8, (2, 2048, 2048))
    yield learned(O + "autoep_fused_token_ops", "fused_row_weighting", rows, f32(ROWS, 1))
    turned = lambda f, q, k, cos, sin: f(q, k, cos.detach(), sin.detach())
    args = r(2, HEADS, 4096, SIZE), r(2, KEYS, 4096, SIZE), r(2, 4096, SIZE), r(2, 4096, SIZE)
    yield gradients(O + "fused_rotary_pos_emb", "fused_apply_rotary_pos_emb", *args, pick=turned)
    yield gradients(D + "moe.ep_kernels", "permute_rows", rows, lambda: torch.randperm(ROWS, device="cuda").int())
    I = D + "ops.transformer.inference.triton."
    half = lambda *shape: r(*shape, dtype="float16")
    x, weight = half(4, 2048, COLUMNS), half(COLUMNS)
    yield case(I + "gelu", "gelu", x)
    yield case(I + "layer_norm", "layer_norm", x, weight, weight, 1e-5)
    yield case(I + "layer_norm", "layer_norm_residual", x, weight, x, weight, weight, 1e-5, call=lambda f, x, bias, y, *args: f(x, bias, y.clone(), *args))
    yield case(I + "softmax", "softmax", half(4, 16, 1024, 1024))
    yield case(I + "softmax", "softmax", half(4, 16, 1024, 1024), half(4, 1, 1, 1024), label="softmax_masked")
    for before in (False, True):
        yield case(I + "residual_add", "residual_add_bias", x, x, x, weight, weight, 1, True, True, before, label=f"residual_add_bias_{before}")
    flash = half(4, 2048, 3 * 2048), SIZE, None, SIZE**-0.5
    for causal in (False, True):
        yield case(I + "attention", "_triton_packed_flash", *flash, causal, False, label=f"packed_flash_{causal}")
    yield case(I + "attention", "_triton_packed_flash", half(4, 2048, 3 * 2048), 64, half(4, 1, 1, 2048), 0.125, label="packed_flash_masked")
    heads = half(4, 16, 2048, 64)
    called = lambda f, *args: f()(*args)
    yield case(D + "ops.transformer.inference.triton_ops", "triton_flash_attn", heads, heads, heads, 0.125, call=called)


def colossalai():
    import torch

    C = "colossalai.kernel.triton."
    half = lambda *shape: r(*shape, dtype="float16")
    batch, length, page = 8, 1024, 32
    cache = half(batch * length // page, KEYS, page, SIZE)
    table, lengths = lambda: pages(batch, length // page), filled(length, batch)
    total = batch * length
    q, kv = half(total, HEADS, SIZE), half(total, KEYS, SIZE)
    turned = half(batch * length // page, KEYS, SIZE // 8, page, 8)
    attend = lambda f, *args, **named: f(*args, max_seq_len=length, **named)
    yield case(C + "context_attn_unpad", "context_attention_unpadded", q, kv, kv, cache, cache, lengths, table, page, call=attend)
    slopes = f32(HEADS, of=share)
    sloped = lambda f, *args: f(*args[:-1], alibi_slopes=args[-1], max_seq_len=length)
    yield case(C + "context_attn_unpad", "context_attention_unpadded", q, kv, kv, cache, cache, lengths, table, page, slopes, call=sloped, label="context_attention_alibi")
    new = lambda f, *args: f(*args, max_seq_len=length, use_new_kcache_layout=True)
    yield case(C + "context_attn_unpad", "context_attention_unpadded", q, kv, kv, turned, cache, lengths, table, page, call=new, label="context_attention_new")
    many, known = 64, 4096
    store = half(many * known // page, KEYS, page, SIZE)
    decode = half(many, HEADS, SIZE), store, store, filled(known, many), lambda: pages(many, known // page), page
    grouped = lambda f, *args, **named: f(*args, max_seq_len_in_batch=known, kv_group_num=HEADS // KEYS, **named)
    yield case(C + "flash_decoding", "flash_decoding_attention", *decode, call=grouped)
    sloped = lambda f, *args: grouped(f, *args[:-1], alibi_slopes=args[-1])
    yield case(C + "flash_decoding", "flash_decoding_attention", *decode, slopes, call=sloped, label="flash_decoding_alibi")
    few = half(2048, KEYS, SIZE)
    places = filled(page, 2048), lambda: pages(2048, 1)
    cells = filled(0, 2048, KEYS, page, SIZE, dtype="float16")
    yield case(C + "kvcache_copy", "copy_kv_to_blocked_cache", few, few, cells, cells, *places, call=writes(2))
    angle = half(total, SIZE // 2)
    yield case(C + "no_pad_rotary_embedding", "rotary_embedding", q, kv, angle, angle, call=lambda f, q, k, *args: (q := q.clone(), f(q, k.clone(), *args))[0])
    one = half(2048, HEADS, SIZE), few, few, half(2048, SIZE // 2), half(2048, SIZE // 2), cells, cells, places[1], places[0]
    yield case(C + "no_pad_rotary_embedding", "decoding_fused_rotary_embedding", *one, call=lambda f, q, *args: (q := q.clone(), f(q, *args))[0])
    yield case(C + "rotary_cache_copy", "get_xine_cache", filled(1024, 64), half(2048, SIZE), half(2048, SIZE), True)
    rows, weight = half(ROWS, COLUMNS), half(COLUMNS)
    yield case(C + "rms_layernorm", "rms_layernorm", rows, weight, 1e-5)
    add = lambda f, x, weight, residual: f(x, weight, 1e-5, residual=residual.clone())
    yield case(C + "rms_layernorm", "rms_layernorm", rows, weight, rows, call=add, label="rms_layernorm_residual")
    yield case(C + "softmax", "softmax", f32(ROWS, 2048))
    yield learned(C + "llama_act_combine_kernel", "LlamaActCombine", half(4, 2048, 2 * COLUMNS), half(4, 2048, COLUMNS))


def fbgemm():
    import torch

    G = "fbgemm_gpu.experimental.gemm.triton_gemm."
    P = G + "fp8_gemm"
    last = lambda f, *args, **named: [f(*args, **named)[-1].float()]
    for rows in (16, 2048):
        args = f8(rows, COLUMNS), f8(COLUMNS, COLUMNS), positive(rows), positive(COLUMNS)
        yield case(P, "matmul_fp8_row", *args, label=f"matmul_fp8_row_{rows}", no_use_persistent=True)
        yield case(P, "matmul_fp8_row", *args, label=f"matmul_fp8_row_{rows}_persistent", tma_persistent=False, use_persistent=True)
        yield case(P, "matmul_fp8_row", *args, label=f"matmul_fp8_row_{rows}_slow", fp8_fast_accum=False, no_use_persistent=True)
    args = f8(2048, COLUMNS), f8(COLUMNS, COLUMNS), positive(16, 32), positive(32, 32), 128, 128, 128
    yield case(P, "matmul_fp8_block", *args)
    yield case(P, "matmul_fp8_block", *args, fp8_fast_accum=False, label="matmul_fp8_block_slow")
    rows = r(ROWS, COLUMNS)
    yield case(P, "triton_quantize_fp8_row", rows, call=last)
    yield case(P, "triton_quantize_fp8_packed_row", rows, call=lambda f, x: [f(x)[1]])
    yield case(P, "triton_quantize_fp8_block", rows, 128, 128, call=last)
    yield case(P, "triton_quantize_fp8_group", rows, call=last)
    yield case(P, "scale_fp8_row", f8(ROWS, COLUMNS), positive(ROWS), positive(COLUMNS))
    yield case(P, "dequantize_fp8_row", f8(ROWS, COLUMNS), positive(ROWS))
    yield case(P, "dequantize_fp8_block", f8(ROWS, COLUMNS), positive(32, 16))
    sizes = filled(512, 16)
    yield case(G + "grouped_gemm", "grouped_gemm", r(ROWS, 2048), r(16 * 2048, 2048), sizes, _use_warp_specialization=False)
    args = f8(ROWS, 2048), f8(16 * 2048, 2048), sizes, positive(ROWS), positive(16 * 2048)
    yield case(G + "grouped_gemm", "grouped_gemm_fp8_rowwise", *args, _use_warp_specialization=False)
    F = G + "fp4_quantize"
    wide = r(2048, COLUMNS)
    yield case(F, "triton_silu_quantize_mx4_unpack", wide, wide, call=lambda f, *args: [f(*args)[1].view(torch.uint8)])
    yield case(F, "triton_rms_quantize_mx4_unpack", wide, r(COLUMNS), call=lambda f, *args: [f(*args)[1].view(torch.uint8)])
    E = "fbgemm_gpu.experimental.gen_ai.moe."
    yield case(E + "activation", "silu_mul", rows, rows)
    yield case(E + "activation", "silu_mul_quant", rows, rows, call=last)
    order = lambda: torch.randperm(4 * ROWS, device="cuda").int() % ROWS
    picked = lambda: integers(16, 4 * ROWS, dtype="int32")
    narrow = r(ROWS, 2048)
    yield case(E + "gather_scatter", "gather_scale_dense_tokens", narrow, order, picked, r(ROWS, 16))
    yield case(E + "gather_scatter", "gather_scale_quant_dense_tokens", narrow, order, picked, r(ROWS, 16), call=last)
    added = lambda f, out, *args: (out := out.clone(), f(out, *args))[0]
    yield case(E + "gather_scatter", "scatter_add_dense_tokens", narrow, r(4 * ROWS, 2048), order, call=added)
    counts = lambda: torch.full((4, 16), ROWS // 64, device="cuda", dtype=torch.int32)
    yield case(E + "shuffling", "combine_shuffling", narrow, counts)
    yield case(E + "shuffling", "split_shuffling", narrow, counts)
    J = "fbgemm_gpu.sll.triton.triton_"
    batch, most = 64, 512
    ends = lambda: steps(batch, most).long()
    many = batch * most
    rows = f32(many, SIZE)
    yield case(J + "dense_jagged_cat_jagged_out", "dense_jagged_cat_jagged_out", f32(batch), f32(many), ends, most)
    squares = lambda: steps(batch, most * most).long()
    yield gradients(J + "jagged2_to_padded_dense", "jagged2_to_padded_dense", f32(many * most), squares, most)
    yield gradients(J + "jagged_bmm", "jagged_dense_bmm", rows, f32(batch, SIZE, SIZE), ends, most, True, False)
    yield gradients(J + "jagged_bmm", "jagged_jagged_bmm", rows, rows, ends, most, True, False)
    known = filled(most, batch, dtype="int64")
    whole = filled(most * most, batch, dtype="int64")
    yield gradients(J + "jagged_bmm_jagged_out", "array_jagged_bmm_jagged_out", f32(many * most), rows, whole, squares, known, ends, known, ends, most)
    yield gradients(J + "jagged_bmm_jagged_out", "jagged_jagged_bmm_jagged_out", rows, rows, known, ends, known, ends, whole, squares, most)
    yield gradients(J + "jagged_dense_elementwise_mul_jagged_out", "jagged_dense_elementwise_mul_jagged_out", f32(many * most), f32(most, most), known, squares, most)
    args = rows, f32(batch, SIZE, 64), rows, f32(batch, most, 64), ends, most
    yield gradients(J + "jagged_dense_flash_attention", "jagged_dense_flash_attention", *args)
    args = rows, rows, rows, ends, most
    yield gradients(J + "jagged_flash_attention_basic", "jagged_flash_attention_basic", *args)
    heads = f32(4, many, 64)
    yield gradients(J + "multi_head_jagged_flash_attention", "multi_head_jagged_flash_attention", heads, heads, heads, ends, most)
    yield gradients(J + "jagged_softmax", "jagged_softmax", rows, ends, most, False)
    yield gradients(J + "jagged_softmax", "jagged2_softmax", f32(many * most), ends, squares, most, True)
    yield case(J + "jagged_self_substraction_jagged_out", "triton_jagged_self_substraction_jagged_out", f32(many), ends, lambda: steps(batch, (most - 1) ** 2).long(), most)
    T = "fbgemm_gpu.triton."
    yield case(T + "quantize", "triton_quantize_mx4", f32(COLUMNS, COLUMNS))
    yield case(T + "quantize", "triton_dequantize_mx4", bytes_of(COLUMNS, COLUMNS // 2 + COLUMNS // 32, low=90, high=140))
    O = T + "jagged.triton_jagged_tensor_ops"
    listed = lambda f, values, ends, *args: f(values, [ends], *args)
    yield case(O, "triton_jagged_add_jagged", f32(many, SIZE), f32(many, SIZE))
    yield case(O, "jagged_to_dense", rows, ends, [most], call=listed)
    yield case(O, "dense_to_jagged", f32(batch, most, SIZE), ends, call=lambda f, *args: listed(f, *args)[0])
    yield case(O, "jagged_dense_elementwise_mul_jagged_output", rows, ends, f32(batch, most, SIZE), call=lambda f, *args: listed(f, *args)[0])
    yield case(O, "batched_dense_vec_jagged_2d_matmul", f32(batch * 4, most), f32(many, 4 * SIZE), ends)


def given(name, **content):
    """A module that a package would have, with what kernels and their callers take from it."""
    module = types.ModuleType(name)
    vars(module).update(content)
    sys.modules[name] = module


def cases():
    one_configuration()
    portable()
    sys.path.append(os.environ["MORE"])
    policies = [("NONE", 0), ("INT4", 4), ("INT8", 8), ("FP8", 16), ("FP8_E5M2", 17), ("TURBO_QUANT", 42)]
    given("lmdeploy.messages", QuantPolicy=enum.IntEnum("QuantPolicy", policies))
    given("deepspeed.accelerator", get_accelerator=lambda: types.SimpleNamespace(on_accelerator=lambda tensor: tensor.is_cuda))
    given("deepspeed.utils.torch", required_torch_version=lambda **bounds: True)
    given("gptqmodel.quantization.activation_floatx", normalize_nvfp4_recipe=lambda recipe: recipe)
    clock = {"nvmlDeviceGetMaxClockInfo": lambda handle, kind: 1980, "nvmlDeviceGetHandleByIndex": lambda index: index}
    given("pynvml", nvmlInit=lambda: None, NVML_CLOCK_SM=1, NVML_CLOCK_MEM=2, **clock)
    stubs.install(os.environ["MORE"], PACKAGES, REAL)
    # Stubs of packages answer for their modules until these are imported.
    tuner = importlib.import_module("gptqmodel.nn_modules.triton_utils.custom_autotune")
    tuner.CustomizedTritonAutoTuner.prune_configs = lambda self, named: [self.configs[len(self.configs) // 2]]
    tuner.CustomizedTritonAutoTuner._bench = lambda self, *args, config, **named: 0.0
    modes = importlib.import_module("fbgemm_gpu.triton")
    modes.RoundingMode = importlib.import_module("fbgemm_gpu.triton.common").RoundingMode
    for group in (mamba, flash, openai, lmdeploy, bitsandbytes, sparse, gptq, deepspeed, colossalai, fbgemm):
        yield from group()


if __name__ == "__main__":
    paired.main(__doc__.splitlines()[0], cases, shares=4)
