"""Kernels of the newest packages here, timed one by one: compiled by Triton, and by ttopt through its hook.

    NEWEST=FOLDER python bench/gpu/newest.py [--only REGEX] [--shares N] [--json FILE] [--keep FOLDER]

Needs a GPU, PyTorch with its Triton, and this project's wheel (`./dev wheel`). FOLDER holds, unpacked and not installed, the
packages named in `PACKAGES`, each below its import name; of these only files with kernels are imported, with what they need
(`stubs.py`). Kernels with autotuners get the configuration in the middle. How it is timed and compared: `paired.py`.
"""

import functools
import importlib
import importlib.metadata
import math
import os
import sys
import types

import paired
import stubs
from engines import HEADS, KEYS, SIZE, case, f8, f32, i8, i32, r, steps, writes
from libraries import integers, one_configuration, rand, share, trained
from more_packages import bounds, bytes_of, filled, given, gradients, portable, positive
from others import Real
from packages import COLUMNS, ROWS, learned, pages

# Of these only files with kernels are imported; the others named in `cases` below are imported as they are.
PACKAGES = {"auto_round", "comfy_kitchen", "native_sparse_attention_pytorch", "quack", "ring_attention_pytorch", "spconv_triton"}
PACKAGES |= {"tridec", "triton_sigmoid"}
REAL = Real(
    "comfy_kitchen._rope_utils",
    "comfy_kitchen.backends._activations",
    "comfy_kitchen.backends._modulation",
    "comfy_kitchen.backends.eager.w4a8_int8",
    "comfy_kitchen.float_utils",
    "comfy_kitchen.tensor.int8_utils",
    "spconv_triton.constants",
    "spconv_triton.pytorch._impl._autotune",
    "tridec.tanner",
    "triton_sigmoid.kernel_utils",
)


class Kept(types.SimpleNamespace):
    """What an autograd function keeps for its backward pass, where that is called by hand."""

    def save_for_backward(self, *tensors):
        self.saved_tensors = tensors


def whole(high, *shape, dtype="float32"):
    """Numbers between -1 and 1 of which there are so few that what is chosen by their products is no matter of rounding."""
    import torch

    return lambda: (integers(2 * high + 1, *shape) - high).div(high).to(getattr(torch, dtype))


def full(one):
    """A case with operators, which launch nothing for tensors without data (`kernels_of.py`): with these it fails."""
    name, make = one

    def made():
        function, args = make()
        if any(leaf.is_meta for leaf in paired.leaves(args)):
            raise ValueError("operators need data")
        return function, args

    return name, made


def recurrences():
    import torch

    # Sequences are whole blocks of 2048: what a kernel puts behind a sequence's end has no meaning.
    S = "accelerated_scan."
    decay = r(4, 1024, 8192, of=share, dtype="float32"), r(4, 1024, 8192, dtype="float32")
    yield learned(S + "scalar", "Scan", *decay, label="scalar")
    small = r(4, 512, 4096, of=share), r(4, 512, 4096)
    yield learned(S + "scalar", "Scan", *small, label="scalar_bf16")

    turn = lambda: torch.polar(share(4, 256, 4096, dtype="float32"), rand(4, 256, 4096, dtype="float32"))

    def complex_scan():
        module = importlib.import_module(S + "complex")
        return (lambda f, x: module.scan(f, x)), [turn(), turn()]

    yield "accelerated_scan.complex", complex_scan

    def complex_back():
        module = importlib.import_module(S + "complex")

        def call(f, x, out):
            f, x = f.detach().requires_grad_(), x.detach().requires_grad_()
            return list(torch.autograd.grad(module.scan(f, x), [f, x], out))

        return call, [turn(), turn(), turn()]

    yield "accelerated_scan.complex_bwd", complex_back
    updated = lambda f, p, g, m: (p := p.clone(), m := m.clone(), f(p, g, m, 1e-3, 0.01, 0.9, 0.99))[:2]
    for dtype in ("float32", "bfloat16"):
        yield case("lion_pytorch.triton", "update_fn", *[r(1 << 24, dtype=dtype)] * 3, call=updated, label=f"update_{dtype}")


def sparse_softmax():
    import torch

    A = "adasplash."
    for name in ("triton_entmax", "triton_entmax_v2"):
        for label, alpha in (("15", 1.5), ("sparse", 2.0), ("13", 1.3)):
            yield learned(A + name, "_entmax_triton", f32(4096, 4096), alpha, label=f"{name}_{label}")
    yield learned(A + "triton_entmax_v2", "_entmax_triton", f32(1024, 32768), 1.5, 2, label="entmax_vocabulary")
    q = r(2, 16, 2048, 64)
    known = filled(1800, 2)
    for name in ("adasplash_block_mask", "adasplash_no_block_mask"):
        for causal in (False, True):
            yield learned(A + name, "_sparse_attention", q, q, q, 1.5, causal, None, 3, label=f"{name}_{causal}")
        yield learned(A + name, "_sparse_attention", q, q, q, 1.5, True, known, 3, label=f"{name}_varlen")
        yield learned(A + name, "_sparse_attention", q, q, q, 1.333, False, None, 3, label=f"{name}_1333")
    for size in (64, 128):
        wide = r(2, 16, 2048, size), r(2, 4, 2048, size), r(2, 4, 2048, size)
        yield learned(A + "adasplash_v2", "_sparse_attention", *wide, 1, label=f"adasplash_v2_{size}")
    yield learned(A + "adasplash_v2", "_sparse_attention", q, q, q, 1, known, label="adasplash_v2_varlen")


def experts():
    import torch

    M = "moe_ops."
    # The one in the middle of these configurations needs more shared memory than there is.
    tuned = importlib.import_module(M + "grouped_gemm_ops")
    tuned.gmm_gradB_kernel.configs = tuned.gmm_gradB_kernel.configs[-2:-1]
    E, active, hidden, inner, tokens = 32, 4, 2048, 2048, 8192
    places = lambda: torch.arange(tokens * active, device="cuda").view(tokens, active) % E
    for count in (32, 128):
        yield full(gradients(M + "fused_topk_softmax_ops", "fused_topk_softmax", f32(tokens, count), 8, pick=lambda f, *args: f(*args)[0], label=f"fused_topk_softmax_{count}"))
    # Which row of an expert a token gets is a race: only what does not depend on it is compared.
    yield full(case(M + "permute_ops", "permute", r(tokens, hidden), places, 0, E, call=lambda f, *args: f(*args)[2], label="permute"))
    rows = lambda: torch.randperm(tokens * active, device="cuda").int()
    args = r(tokens * active, hidden), rows, f32(tokens, active, of=share), tokens, active
    yield full(gradients(M + "unpermute_ops", "unpermute", *args))
    x = r(tokens, hidden)
    few = bounds(E, tokens // E)
    for name in ("grouped_gemm_ops", "grouped_gemm_ops_sm90"):
        yield full(gradients(M + name, "grouped_gemm", x, r(E, inner, hidden), few, label=name))
    for name in ("grouped_gemm_ops", "grouped_gemm_ops_sm90"):
        yield full(case(M + name, "grouped_gemm", x, r(E, hidden, inner), few, False, label=f"{name}_nt"))


def layers():
    import torch

    T = "triformer."
    rows, weight = r(ROWS, COLUMNS), r(COLUMNS)
    yield learned(T + "layernorm", "Fast_Layernorm", rows, weight, weight, 1e-5)

    def norm(f, x, w):
        kept = Kept()
        return f.forward(kept, x, w, 1e-6), f.backward(kept, x)[:2]

    yield case(T + "rms_norm", "FastRMSNorm", rows, weight, call=norm)
    yield learned(T + "swiglu", "FastSwigluFunction", rows, rows)
    # Its own caller passes a tensor with the seed, which Triton no longer takes.
    drop = lambda f, x: (y := torch.empty_like(x), f[(x.numel() // 4096,)](x, y, x.numel(), 0.1, 123, BLOCK_SIZE=1024))[0]
    yield case(T + "dropout", "_seeded_dropout", rows, call=drop, label="dropout")
    for causal in (False, True):
        yield learned(T + "softmax", "SoftmaxFunction", f32(8, 2048, 2048), causal, label=f"softmax_{causal}")
    words = 32768
    cross = lambda f, x, labels: f.apply(x.clone(), labels, -100, "mean")
    yield gradients(T + "cross_entropy", "CrossEntropyLossFunction", f32(4096, words), lambda: integers(words, 4096), pick=cross, label="cross_entropy")
    q = r(2, 2048, 16, SIZE)
    S = "triton_sigmoid."
    for causal in (False, True):
        yield full(gradients(S + "sigmoid_triton_dense", "sigmoid_attention", q, q, q, is_causal=causal, label=f"dense_{causal}"))
        yield full(gradients(S + "sigmoid_triton_padded", "sigmoid_attention_padded", q, q, q, filled(1800, 2), filled(1800, 2), causal, label=f"padded_{causal}"))
    narrow = r(2, 2048, 16, 64)
    yield full(gradients(S + "sigmoid_triton_dense", "sigmoid_attention", narrow, narrow, narrow, True, label="dense_64"))


def images():
    import torch

    noisy = lambda: share(256, 256, dtype="float32")
    window = lambda: (line := torch.kaiser_window(8, periodic=False, beta=2.0, device="cuda"), (line[:, None] * line[None, :]).contiguous())[1]
    for second in (False, True):
        yield case("bm3d_triton._backend", "_stage", noisy, noisy, 0.01, second, window, label=f"stage_{second}")
    L = "lanczos_triton.resize"

    def resize(f, image, size):
        table = sys.modules[L]._table
        return f(image, size, table(image.shape[3], size[1], 3, True, image.device), table(image.shape[2], size[0], 3, True, image.device))

    for label, width, size in (("halved", 2048, 1024), ("larger", 1024, 1536), ("small", 2048, 224)):
        yield case(L, "_execute", r(4, 3, width, width, of=share), (size, size), call=resize, label=label)
    P = "torch_fps._triton"
    for count, size in ((2048, 3), (8192, 3), (1024, 16), (32768, 3)):
        cloud = whole(256, 264, count, size), lambda count=count: torch.ones(264, count, device="cuda", dtype=torch.bool), filled(0, 264, dtype="int64")
        yield case(P, "fps", *cloud, 32, label=f"fps_{count}_{size}")
        yield case(P, "fps_knn", *cloud, 16, 16, label=f"fps_knn_{count}_{size}")
        if count <= 4096:
            yield case(P, "fps_assign", *cloud, 32, label=f"fps_assign_{count}_{size}")
    args = whole(256, 1 << 20, 3), whole(256, 1024 * 128, 3), lambda: torch.arange(1024, device="cuda") * 1024, filled(1024, 1024, dtype="int64"), 1024, 128
    yield case(P, "nearest_assign", *args)


def flashnn():
    import torch

    F = "flashnn.triton_kernels."
    rows, weight = r(ROWS, COLUMNS, dtype="float16"), r(COLUMNS, dtype="float16")
    out = lambda *shape, dtype="float16": lambda: torch.zeros(shape, device="cuda", dtype=getattr(torch, dtype))
    yield case(F + "rms_norm", "triton_rmsnorm_forward", rows, weight, 1e-6, label="rmsnorm")
    yield case(F + "layer_norm", "triton_layer_norm_forward", rows, weight, weight, 1e-6, label="layer_norm")
    yield case(F + "rms_norm_dquant", "triton_rmsnorm_dquant_forward", rows, weight, 1e-6, label="rmsnorm_dquant")
    yield case(F + "layer_norm_dquant", "triton_layer_norm_dquant_forward", rows, weight, weight, 1e-6, label="layer_norm_dquant")
    yield case(F + "dynamic_quant", "triton_dynamic_quantize", out(ROWS, COLUMNS, dtype="int8"), rows, out(ROWS), call=writes(0), label="dynamic_quantize")
    positions = r(2048, 1, 1, SIZE, dtype="float16"), r(2048, 1, 1, SIZE, dtype="float16")
    yield case(F + "rotary_embedding", "triton_rotary_embd_forward", r(2048, 4, HEADS, SIZE, dtype="float16"), r(2048, 4, KEYS, SIZE, dtype="float16"), *positions, label="rotary")
    for m in (16, 2048):
        args = out(m, COLUMNS), i8(m, COLUMNS), i8(COLUMNS, COLUMNS), positive(m, dtype="float16"), positive(COLUMNS, dtype="float16")
        yield case(F + "gemm_a8w8", "triton_gemm_a8w8_forward", *args, call=writes(0), label=f"gemm_a8w8_{m}")
        x = r(m, COLUMNS, dtype="float16")
        one, groups = positive(COLUMNS, dtype="float16"), positive(COLUMNS // 64, COLUMNS, dtype="float16")
        yield case(F + "gemm_a16w8", "triton_gemm_a16w8_forward", out(m, COLUMNS), x, i8(COLUMNS, COLUMNS), one, None, call=writes(0), label=f"gemm_a16w8_{m}")
        yield case(F + "gemm_a16w8", "triton_gemm_a16w8_forward", out(m, COLUMNS), x, i8(COLUMNS, COLUMNS), groups, weight, groups, call=writes(0), label=f"gemm_a16w8_groups_{m}")
        yield case(F + "gemm_a16w4", "triton_gemm_a16w4_forward", out(m, COLUMNS), x, i8(COLUMNS // 2, COLUMNS), one, None, call=writes(0), label=f"gemm_a16w4_{m}")
        yield case(F + "gemm_a16w4", "triton_gemm_a16w4_forward", out(m, COLUMNS), x, i8(COLUMNS // 2, COLUMNS), groups, weight, groups, call=writes(0), label=f"gemm_a16w4_groups_{m}")
    q, kv = r(4, 2048, HEADS, SIZE, dtype="float16"), r(4, 2048, KEYS, SIZE, dtype="float16")
    for causal in (False, True):
        yield case(F + "flash_attn_v2", "triton_flash_attention_forward", q, kv, kv, causal, label=f"flash_attn_v2_{causal}")
    batch, length = 32, 2048
    for name, keys, block in (("grouped", KEYS, 16), ("grouped_64", KEYS, 64), ("one", HEADS, 16)):
        blocks = batch * length // block
        cells = r(blocks, keys, block, SIZE, dtype="float16")
        table = lambda block=block: pages(batch, length // block)
        args = out(batch, HEADS, SIZE), r(batch, HEADS, SIZE, dtype="float16"), cells, cells, filled(length, batch), table, SIZE**-0.5, length
        yield case(F + "paged_attn", "paged_attention", *args, call=writes(0), label=f"paged_attention_{name}")
        yield case(F + "paged_attn", "paged_attention", *args, 4, call=writes(0), label=f"paged_attention_{name}_split")
    cells = r(batch * length // 16, HEADS, 16, SIZE, dtype="float16")
    which = lambda: torch.arange(HEADS, device="cuda", dtype=torch.int32)
    args = out(batch, HEADS, SIZE), r(batch, HEADS, SIZE, dtype="float16"), cells, cells, which, SIZE**-0.5, lambda: pages(batch, length // 16), filled(length, batch)
    yield case(F + "paged_attn_v1", "triton_paged_attention_v1", *args, call=writes(0), label="paged_attention_v1")
    yield case(F + "paged_attn_v2", "triton_paged_attention_v2", *args, length, call=writes(0), label="paged_attention_v2")

    def changed(f, scores, penalties, ids, lengths, *rest):
        # It takes where each row of numbers is.
        where = ids.data_ptr() + torch.arange(512, device="cuda") * 256 * 8
        scores = scores.clone()
        f(scores, penalties, where, lengths, *rest)
        return scores

    for kind in ("REPETITION", "PRESENCE"):
        args = r(512, 32768, dtype="float16"), filled(1.3, 512, dtype="float16"), lambda: integers(32768, 512, 256), filled(256, 512, dtype="int64"), 256, kind
        yield case(F + "logits_processor", "triton_logits_processor_forward", *args, call=changed, label=f"logits_{kind.lower()}")
    E, active, inner, hidden = 16, 2, 2048, 2048

    def moe(name, function, tokens, kind):
        def make():
            module = importlib.import_module(F + name)
            launches = importlib.import_module(F + "triton_utils").TRITON_KERNELS_CACHE
            block = 16 if tokens <= 64 else 64
            config = dict(BLOCK_SIZE_M=block, BLOCK_SIZE_N=64, BLOCK_SIZE_K=64, GROUP_SIZE_M=8)
            flat = torch.arange(tokens * active, device="cuda", dtype=torch.int32)
            per = tokens * active // E
            blocks = -(-per // block)
            places = torch.full((E, blocks * block), tokens * active, device="cuda", dtype=torch.int32)
            places[:, :per] = flat.view(E, per)
            experts = torch.arange(E, device="cuda", dtype=torch.int32).repeat_interleave(blocks)
            count = torch.full((1,), places.numel(), device="cuda", dtype=torch.int32)
            a, b, more = rand(tokens, hidden, dtype="float16"), rand(E, inner, hidden, dtype="float16"), ()
            if kind == "a8w8":
                a, b = i8(tokens, hidden)(), i8(E, inner, hidden)()
                more = positive(tokens, dtype="float16")(), positive(E, inner, dtype="float16")()
            elif kind == "a16w4":
                b, more = i8(E, inner // 2, hidden)(), (positive(E, inner, dtype="float16")(), positive(E, inner, dtype="float16")())
            elif kind == "a16w4_groups":
                b = i8(E, inner // 2, hidden)()
                more = positive(E, inner, hidden // 64, dtype="float16")(), positive(E, inner, hidden // 64, dtype="float16")()
            c = torch.zeros(tokens, active, inner, device="cuda", dtype=torch.float16)
            weights = torch.rand(tokens, active, device="cuda", dtype=torch.float16)

            def call(a, b):
                # Else a second call launches what was compiled in the way of older versions of Triton.
                launches.clear()
                getattr(module, function)(a, b, c, *more, weights, (flat // per).view(tokens, active), places.view(-1), experts, count, True, active, config)
                return c

            return call, [a, b]

        return f"flashnn.fused_moe_{kind}_{tokens}", make

    for tokens in (32, 2048):
        yield moe("fused_moe_fp16", "fused_moe_fp16_forward", tokens, "fp16")
        yield moe("fused_moe_a8w8", "fused_moe_a8w8_forward", tokens, "a8w8")
        yield moe("fused_moe_a16w4", "fused_moe_a16w4_forward", tokens, "a16w4")
        yield moe("fused_moe_a16w4", "fused_moe_a16w4_forward", tokens, "a16w4_groups")


def comfy_kitchen():
    import torch

    C = "comfy_kitchen.backends.triton."
    rows = r(2, 4096, 3072)
    for name in ("adaln", "rms_adaln"):
        yield case(C + "adaln", name, rows, r(2, 1, 3072), r(2, 1, 3072))
    video = r(1, 8, 32, 48, 8, 64)
    yield case(C + "na", "na3d", video, video, video, [5, 9, 9])
    yield case(C + "na", "na3d", video, video, video, [5, 9, 9], [True, False, False], label="na3d_causal")
    x, angle = r(2, 24, 4096, SIZE), f32(1, 1, 4096, SIZE // 2, 2, 2)
    for name in ("apply_rope", "apply_rope_split_half"):
        yield case(C + "rope", name, x, x, angle)
    for name in ("rms_rope", "rms_rope_split_half"):
        yield case(C + "rms_rope", name, x, x, angle, r(SIZE), r(SIZE))
    Q = C + "quantization"
    one = filled(1.0, 1, dtype="float32")
    seen = lambda f, *args: [leaf.view(torch.uint8) for leaf in paired.leaves(f(*args))]
    flat = r(ROWS, COLUMNS)
    yield case(Q, "quantize_per_tensor_fp8", flat, one, call=seen)
    yield case(Q, "dequantize_per_tensor_fp8", f8(ROWS, COLUMNS), one)
    yield case(Q, "quantize_mxfp8", flat, call=seen)
    yield case(Q, "triton_quantize_rowwise", flat)
    for m in (16, 4096):
        yield case(Q, "int8_linear", r(m, COLUMNS), i8(COLUMNS, COLUMNS), one, label=f"int8_linear_{m}")
        yield case(Q, "int8_linear", r(m, COLUMNS), i8(COLUMNS, COLUMNS), positive(COLUMNS), r(COLUMNS), label=f"int8_linear_rows_{m}")
    args = r(4096, COLUMNS), i8(COLUMNS, COLUMNS // 2), lambda: rand(COLUMNS, COLUMNS // 16, dtype="float32").sigmoid(), positive(COLUMNS)
    yield case(C + "w4a8_int8", "w4a8_int8_linear", *args)


def attention():
    import torch

    q, kv = r(2, 2048, 16, SIZE), r(2, 2048, 16, SIZE)
    R = "ring_attention_pytorch.triton_flash_attn"

    def ring(f, q, k, v, **named):
        back = sys.modules[R].flash_attn_backward
        out, _, sums = f(q, k, v, return_normalized_output=True, load_accumulated=False, **named)
        grads = torch.empty_like(q), torch.empty_like(k), torch.empty_like(v)
        back(out, q, k, v, out, sums, *grads, **named)
        return out, grads

    for causal in (False, True):
        yield case(R, "flash_attn_forward", q, kv, kv, call=lambda f, *args, causal=causal: ring(f, *args, causal=causal), label=f"flash_attn_{causal}")
    yield case(R, "flash_attn_forward", q, kv, kv, call=lambda f, *args: ring(f, *args, causal=True, softclamp_qk_sim=True), label="flash_attn_clamped")
    rest = lambda f, *args: f(*args, causal=True, load_accumulated=True)[0]
    yield case(R, "flash_attn_forward", q, kv, kv, call=rest, label="flash_attn_part")
    N = "native_sparse_attention_pytorch.triton_native_sparse_attention"
    length, heads, count = 1024, 4, 4

    def chosen(block, heads=heads):
        # Blocks before a query's own one.
        own = torch.arange(length, device="cuda") // block
        ids = torch.arange(count, device="cuda").view(1, -1).expand(length, count)
        ids = torch.where(ids < own[:, None], ids, 0)
        return ids.expand(2, heads, length, count).contiguous()

    def known(block, heads=heads):
        own = torch.arange(length, device="cuda") // block
        return (torch.arange(count, device="cuda")[None, :] < own[:, None]).expand(2, heads, length, count).contiguous()

    many, few = r(2, 16, length, 64, dtype="float16"), r(2, heads, length, 64, dtype="float16")
    for block in (16, 64):
        args = many, few, few, block, lambda block=block: chosen(block), lambda block=block: known(block)
        yield gradients(N, "native_sparse_attend", *args, label=f"attend_{block}")
    yield gradients(N, "native_sparse_attend", *args[:3], 64, *args[4:], return_sliding_window_out=True, label="attend_sliding")
    D = "disentangled_flash.training._kernels"

    def disentangled(length, size, padded=False, dropout=0.0, packed=False):
        def make():
            module = importlib.import_module(D)
            band = importlib.import_module("disentangled_flash.position").gradient_band
            batch, heads, slots = 4, 12, 512
            slot = (torch.arange(-length + 1, length, device="cuda").clamp(-slots // 2, slots // 2 - 1) + slots // 2).int()
            shape = (heads, batch * length, size) if packed else (batch, heads, length, size)
            args = [rand(*shape), rand(*shape), rand(*shape), rand(heads, slots, size), rand(heads, slots, size)]
            where = [steps(batch, length), length] if packed else [torch.arange(length, device="cuda")[None, :].expand(batch, length).lt(length - 100).contiguous()]
            flags = (True, True, False, True) if packed else (padded, True, True, False, True)
            seed = module._resolve_dropout_seed(args[0], dropout, None) if not dropout else torch.full((1,), 7, device="cuda", dtype=torch.int64)
            low, high, columns = module._gradient_band_values(band(slot, slot.device), slot, args[0])
            op = module._training_attention_packed_forward_op if packed else module._training_attention_forward_op
            none = module._register_training_autotune_candidates(None)
            call = lambda *args: op(*args, slot, *where, (3 * size) ** -0.5, *flags, dropout, seed, low, high, columns, none, *[0] * 12)[0]
            return trained(call), args

        return f"disentangled_flash.{length}_{size}{'_padded' * padded}{'_dropout' * (dropout > 0)}{'_packed' * packed}", make

    yield disentangled(1024, 64)
    yield disentangled(1024, 64, padded=True, dropout=0.1)
    yield disentangled(1024, 128)
    yield disentangled(512, 32)
    yield disentangled(1024, 64, packed=True)
    E = "ebt_flash_attention.ebt_attention"
    both = [r(2, 16, 1024, 64, dtype="float16")] * 6
    for causal in (False, True):
        for tma in (False, True):
            # Its two last arguments change places on their way: this is descriptors, without warps of their own for loads.
            energy = lambda f, *args, causal=causal, tma=tma: f.fwd(*args, causal=causal, warp_specialize=tma, USE_TMA=False)
            yield gradients(E, "EBTAttn", *both, pick=energy, label=f"attention_{causal}{'_tma' * tma}")


def retrieval():
    import torch

    L = "late_interaction_kernels."
    narrow = lambda *shape: whole(8, *shape, dtype="bfloat16")
    queries, texts = narrow(64, 32, SIZE), narrow(256, 512, SIZE)
    for method in ("unified", "lowmem"):
        yield gradients(L + "autograd", "maxsim", queries, texts, backward=method, label=f"maxsim_{method}")
    yield case(L + "autograd", "maxsim", queries, texts, normalize=True, label="maxsim_normalized")
    known = lambda: torch.arange(512, device="cuda")[None, :].expand(256, 512).lt(400).contiguous()
    masked = lambda f, q, d, known: f(q, d, None, known)
    yield gradients(L + "autograd", "maxsim", queries, texts, known, pick=masked, label="maxsim_masked")
    yield gradients(L + "autograd", "maxsim", queries, narrow(64, 16, 512, SIZE), label="maxsim_candidates")
    yield case(L + "forward", "maxsim_forward", r(8, 1024, SIZE), r(128, 1024, SIZE), label="maxsim_pages")
    ragged = narrow(64 * 32, SIZE), narrow(256 * 512, SIZE), bounds(64, 32), bounds(256, 512)
    yield gradients(L + "varlen", "maxsim_varlen", *ragged, 32, 512)
    pair = lambda high, step: lambda: torch.arange(4096, device="cuda", dtype=torch.int32) * step % high
    pairs = lambda f, *args: f(*args, max_seqlen_q=32, max_seqlen_d=512)
    yield gradients(L + "score_pairs", "score_pairs_packed", *ragged, pair(64, 1), pair(256, 7), pick=pairs)
    yield case(L + "fused_head", "maxsim_from_hidden", queries, r(256, 256, 768), r(SIZE, 768), None)
    args = f8(64, 32, SIZE), f8(256, 512, SIZE), positive(64, 32), positive(256, 512)
    yield case(L + "fp8", "maxsim_inference_fp8", *args, call=lambda f, q, d, a, b: f(q, d, scale_Q=a, scale_D=b))
    P = L + "plaid"
    codes, lengths = i32(4096, 4096, 256), filled(200, 4096, dtype="int64")
    yield case(P, "plaid_approx_score", f32(4096, 32), codes, lengths)
    for bits in (2, 4):
        args = narrow(4, 32, SIZE), i32(4096, 1024, 256), bytes_of(1024, 256, SIZE * bits // 8), filled(200, 1024, dtype="int64"), narrow(4096, SIZE), whole(8, 1 << bits), bits
        pick = lambda f, q, codes, residuals, known, centers, weights, bits: f(q, codes, residuals, known, centers.detach(), weights.detach(), bits, normalize=False)
        yield gradients(P, "maxsim_residual", *args, pick=pick, label=f"maxsim_residual_{bits}")
    args = r(4, 32, SIZE), i32(4096, 1024 * 256), bytes_of(1024 * 256, SIZE // 4), bounds(1024, 256), r(4096, SIZE), f32(4), 2
    yield case(P, "maxsim_residual_varlen", *args, max_seqlen_d=256)


def scenes():
    import torch

    C = "localcorr.triton."
    height, width = 48, 64

    def places(count):
        y, x = torch.meshgrid(torch.arange(height, device="cuda"), torch.arange(width, device="cuda"), indexing="ij")
        return torch.stack([x, y], -1).float() + rand(2, count, height, width, 2, dtype="float32")

    for channels in (128, 256, 512):
        maps = f32(2, height, width, channels), f32(2, height, width, channels), lambda: places(1), 4
        yield learned(C + "pyramid_corr", "LocalCorrTriton", *maps, label=f"corr_{channels}")

    def pyramid(channels):
        def make():
            function = importlib.import_module(C + "pyramid_corr").LocalCorrTritonFused
            shapes = [(height >> level, width >> level) for level in range(4)]
            sizes = [2 * channels * h * w for h, w in shapes]
            offsets = [sum(sizes[:level]) for level in range(4)]
            known = torch.tensor(offsets, device="cuda"), torch.tensor(shapes, device="cuda", dtype=torch.int32), torch.tensor([0.5**level for level in range(4)], device="cuda")

            def call(left, right, at):
                return function.apply(left, right, at, *known, offsets, shapes, 4)

            args = [rand(2, height, width, channels, dtype="float32"), rand(sum(sizes), dtype="float32"), places(1)[:, 0].permute(0, 3, 1, 2).contiguous()]
            return trained(call), args

        return f"localcorr.pyramid_{channels}", make

    yield pyramid(128)
    yield pyramid(512)
    yield case(C + "spatial_corr", "TritonSpatialCorrelationFunction", f32(8, 128, 96, 128), f32(8, 128, 96, 128), call=lambda f, *args: f.apply(*args, 4), label="spatial_corr")
    S = "spconv_triton.pytorch._impl."
    voxels, offsets = 65536, 27

    def neighbours():
        # One in five neighbours exists.
        found = torch.rand(offsets, voxels, device="cuda") < 0.2
        return torch.where(found, integers(voxels, offsets, voxels, dtype="int32"), -1)

    for channels, dtype in ((64, "float16"), (128, "bfloat16"), (32, "float32")):
        features, filters = r(voxels, channels, dtype=dtype), r(channels, offsets, channels, dtype=dtype)
        label = f"{channels}_{dtype}"
        yield case(S + "gemm", "conv_forward", features, filters, neighbours, voxels, label=f"conv_forward_{label}")
        yield case(S + "gemm", "conv_backward_input", features, filters, neighbours, voxels, label=f"conv_backward_input_{label}")
        yield case(S + "gemm", "conv_backward_weight", features, features, neighbours, (channels, offsets, channels), label=f"conv_backward_weight_{label}")

    def masked(f, features, filters, table):
        words = sys.modules[S + "pair_kernels"].pack_mask_words(table, offsets, 1)[:, 0].int()
        order = torch.argsort(words)
        return f(features, filters, table, voxels, pair_mask=words[order].contiguous(), mask_argsort=order.int())

    def sorted_case():
        importlib.import_module(S + "pair_kernels")
        function = importlib.import_module(S + "gemm").conv_forward
        return (lambda *args: masked(function, *args)), [rand(voxels, 64, dtype="float16"), rand(64, offsets, 64, dtype="float16"), neighbours()]

    yield "spconv_triton.conv_forward_masked", sorted_case
    features = r(voxels, 64, dtype="float16")
    yield case(S + "pool", "maxpool_forward", features, neighbours, voxels)
    yield case(S + "pool", "maxpool_backward", features, features, features, neighbours)
    yield case(S + "pool", "avgpool_forward", features, neighbours, voxels)
    yield case(S + "pool", "avgpool_backward", features, neighbours, filled(5, voxels))
    exists = lambda: torch.rand(offsets, voxels, device="cuda") < 0.2
    # Each row is the one of a voxel of its own, so that no two write to one place.
    own = lambda: torch.stack([torch.randperm(voxels, device="cuda") for _ in range(offsets)]).int()
    tables = lambda f, exists, rows, there, back: (there := there.clone(), f(exists, rows, there, back, True), [there, back])[2]
    yield case(S + "pair_kernels", "scatter_igemm_pairs", exists, own, filled(-1, offsets, voxels), filled(-1, offsets, voxels), call=tables)
    grid = lambda: torch.stack([torch.zeros(voxels, device="cuda", dtype=torch.int64)] + [integers(128, voxels) for _ in range(3)], 1)
    near = lambda: torch.cartesian_prod(*[torch.arange(3, device="cuda")] * 3)
    line = [1, 1, 1]
    yield case(S + "pair_kernels", "candidate_out_lin_valid", grid, near, line, line, line, [128, 128, 128], offsets, False)
    yield case(S + "pair_kernels", "candidate_out_lin_valid", grid, near, line, [2, 2, 2], line, [64, 64, 64], offsets, False, label="candidate_strided")
    cells, ordered = lambda: integers(1 << 21, offsets, voxels), lambda: torch.arange(voxels, device="cuda") * 32
    exists = lambda: torch.rand(offsets, voxels, device="cuda") < 0.8
    yield case(S + "pair_kernels", "lower_bound_rows", cells, exists, ordered)
    yield case(S + "pair_kernels", "subm_membership", cells, ordered, lambda: torch.randperm(voxels, device="cuda"), exists, call=lambda f, *args: [part.int() for part in f(*args)])


def quantized():
    import torch

    A = "auto_round_extension.triton.neuqi_sweep"
    groups, size = 16384, 128
    # Not where the least loss is, of which many are nearly the same.
    least = lambda f, *args: f(*args)[0]
    data, weights = f32(groups, size), positive(groups, size)
    scales = lambda count: lambda: rand(groups, count, dtype="float32").abs() / 8 + 0.05
    steps_of = lambda count: lambda: torch.linspace(0.1, 1.0, count, device="cuda")
    inverse = lambda count: lambda: 1 / torch.linspace(0.1, 1.0, count, device="cuda")
    yield case(A, "neuqi_sweep_triton", data, weights, scales(4), 15, call=least)
    yield case(A, "neuqi_sweep_triton", data, None, scales(8), 3, call=least, label="neuqi_sweep_triton_2")
    yield case(A, "neuqi_shared_sweep_triton", data, weights, steps_of(16), inverse(16), 15, call=least)
    yield case(A, "sym_search_triton", data, weights, scales(32), 8, call=least)
    yield case(A, "sym_search_shared_triton", data, None, steps_of(64), inverse(64), 8, call=least)
    word = (1 << 31) - 1
    inputs, columns = 4096, 4096
    packed = i32(word, inputs // 8, columns), r(inputs // 128, columns, dtype="float16"), i32(word, inputs // 128, columns // 8), lambda: torch.arange(inputs, device="cuda", dtype=torch.int32) // 128
    for name in ("triton_utils", "triton_utils_zp"):
        M = f"auto_round_extension.triton.{name}."
        yield case(M + "dequant", "dequant248_core", *packed, 4, label=f"{name}_dequant")
        for m in (16, 512):
            x = r(m, inputs, dtype="float16")
            yield case(M + "kernels", "quant_matmul_248_core", x, *packed, 4, 15, label=f"{name}_matmul_{m}")
            yield case(M + "kernels", "transpose_quant_matmul_248_core", r(m, columns, dtype="float16"), *packed, 4, 15, label=f"{name}_transposed_{m}")
    hadamard = lambda: torch.tensor([[1 - 2 * (bin(i & j).count("1") & 1) for j in range(32)] for i in range(32)], device="cuda").bfloat16() / 32**0.5

    def mxfp4(quest):
        def make():
            kernel = importlib.import_module("auto_round.algorithms.transforms.hadamard.utils.triton.mxfp4").mxfp4_forward_kernel

            def call(x, matrix):
                out, clipped = torch.empty_like(x), torch.empty_like(x, dtype=torch.bool)
                grid = lambda meta: (-(-x.numel() // meta["BLOCK_SIZE"]),)
                kernel[grid](x, matrix, out, clipped, x.numel(), 32, 32, 3 / 4, quest)
                return out, clipped.int()

            return call, [rand(2048, 4096), hadamard()]

        return f"auto_round.mxfp4_{quest}", make

    yield mxfp4(False)
    yield mxfp4(True)
    K, flat = "mase_triton.", 1 << 24
    formats = lambda name: getattr(importlib.import_module(K + "mxfp.meta"), name)
    for name in ("MXFP8_E4M3_fn", "OCP_MXFP4_E2M1"):
        taken = lambda f, x, name=name: f(x, formats(name))
        yield case(K + "mxfp.kernels.cast", "extract_mxfp_components", r(flat), call=taken, label=f"extract_{name}")
        made = lambda f, s, x, name=name: f(s, x, formats(name), torch.bfloat16)
        yield case(K + "mxfp.kernels.cast", "compose_mxfp_tensor", bytes_of(flat // 32, 1, low=120, high=130), bytes_of(flat // 32, 32, high=16), call=made, label=f"compose_{name}")
    small = lambda name: getattr(importlib.import_module(K + "minifloat.meta"), name)
    yield case(K + "minifloat.kernels.cast", "extract_minifloat_component", r(flat), call=lambda f, x: f(x, small("FP6_E3M2_fn")).int())
    words = lambda: integers(64, flat, dtype="int32").to(torch.uint16)
    yield case(K + "minifloat.kernels.cast", "compose_minifloat_component", words, call=lambda f, x: f(x, small("FP6_E3M2_fn"), torch.bfloat16))
    # Registered as operators that have other code for tensors on the CPU.
    plain = lambda f, *args: [leaf for leaf in paired.leaves(f._init_fn(*args))]
    B = K + "random_bitflip.core"
    yield case(B, "random_bitflip_fn", r(flat), 8, 4, 1, 2, None, call=plain, label="bitflip")
    yield case(B, "random_bitflip_fn", f32(flat), None, 10, 1, 2, 1.25, call=plain, label="bitflip_zeroed")
    yield case(B, "_random_bitflip_backward", r(flat), r(flat), 8, 4, 1, 2, 1.25, call=plain, label="bitflip_bwd")
    O = K + "optical_compute.core.optical_transformer."
    yield case(O + "quantize", "ot_quantize_fn", f32(flat), 7, 256, -3.0, 3.0, 0.1, "rand", call=plain, label="optical_quantize")
    yield case(O + "quantize", "ot_quantize_fn", f32(flat), 7, 256, -3.0, 3.0, None, "det", call=plain, label="optical_quantize_fixed")
    limits = -3.0, 3.0, -3.0, 3.0, 0.1, -300.0, 300.0, 256, 7
    yield case(O + "linear", "ot_qlinear_fn", r(2048, 2048), r(2048, 2048), None, *limits, call=plain, label="optical_linear")
    yield case(O + "matmul", "ot_qmatmul_fn", r(16, 512, 512), r(16, 512, 512), *limits, call=plain, label="optical_matmul")
    # What a loss needs between its products.
    rows, tile, words, hidden = 4096, 256, 32768, 4096

    def glue(f, highest, sums, x, target, known, e):
        e, loss, line = e.clone(), torch.zeros(rows, device="cuda"), torch.zeros(rows, device="cuda")
        strip, scaled = torch.zeros(words // 64, rows, device="cuda", dtype=torch.bfloat16), torch.zeros_like(x)
        f(highest, sums, x, target, known, e, loss, strip, line, scaled, tile, grad_scale=torch.full((), 1 / rows, device="cuda"))
        return loss, line, strip, scaled, e

    highest = lambda: integers(8, rows, words // tile).float()
    yield case("quack.linear_cross_entropy", "lce_glue", highest, positive(rows, words // tile), r(rows, hidden), lambda: integers(words, rows), f32(rows), r(rows, words, of=share), call=glue)


def products():
    import torch

    G = "flashlib.linalg.gemm.triton."
    square = f32(2048, 2048), f32(2048, 2048)
    F = G + "fused_kernels"
    # The one in the middle of these configurations needs more shared memory than there is.
    tuned = importlib.import_module(F)
    tuned._ozaki_matmul_kernel.configs = tuned._OZAKI_CONFIGS[:1]
    for mode in ("3xbf16", "bf16"):
        yield case(F, "fused_ozaki_matmul", *square, mode, label=f"fused_ozaki_matmul_{mode}")
    for mode in ("tf32x3", "tf32"):
        yield case(F, "fused_tf32_matmul", *square, mode, label=f"fused_tf32_matmul_{mode}")
    yield case(F, "kenney_laub_step", f32(1024, 1024))
    wide = f32(4096, 4096)
    yield case(F, "fused_axpby", wide, wide, 1.5, -0.5)
    yield case(F, "fused_shift_sym", wide, 2.0)
    yield case(F, "fused_kl_poly", wide, wide)
    yield case(F, "fused_sym", wide)
    yield case(F, "fused_diag_shift", wide, 0.5)
    yield case(G + "crt_reconstruct", "crt_reconstruct", i32(1 << 14, 8, 2048, 2048), r(2048, dtype="float64"), r(2048, dtype="float64"), filled(251, 8), filled(17, 8), 1e18, 1.0)
    yield case(G + "triton_mm", "bf16_mm_fp32", r(4096, 4096), r(4096, 4096))
    yield case(G + "fp16x3_kahan", "matmul_fp16x3_kahan", *square)
    yield case(G + "split", "split_fp32_bf16_pair", wide)
    yield case(G + "split", "split_fp64_tf32_pair", r(4096, 4096, dtype="float64"))
    yield case(G + "split_fp16", "split_fp32_fp16_pair", wide)
    yield case(G + "split_fp16", "split_fp64_fp16_pair", r(4096, 4096, dtype="float64"))
    yield case(G + "split_helpers", "split_fp32_to_bf16_fused", wide)
    yield case(G + "split_helpers", "sum3_fused", wide, wide, wide)
    yield case(G + "sum3", "fused_sum3", wide, wide, wide, wide, call=lambda f, a, b, c, out: (f(a, b, c, out), out)[1])
    double = r(1024, 1024, dtype="float64"), r(1024, 1024, dtype="float64")
    yield case(G + "ozaki1_dispatch", "matmul_ozaki_int8", *double, 3)
    yield case(G + "ozaki2_split", "split_fp_to_int8_moduli", r(2048, 2048, dtype="float64"), 8, 20)
    T = G + "tall_skinny"
    tall, flat = f32(131072, 128), f32(128, 65536)
    yield case(T, "triton_cov_gemm", tall)
    yield case(T, "triton_full_gemm", tall)
    yield case(T, "triton_ab_gemm", r(65536, 128), r(65536, 64))
    yield case(T, "triton_streaming_matmul", tall, f32(128, 32))
    yield case(T, "triton_gram_gemm", flat)
    L = "flashlib.linalg."
    yield case(L + "cov_gemm.triton.cov_gemm", "cov_gemm", tall)
    yield case(L + "gram_gemm.triton.gram_gemm", "gram_gemm", flat)
    yield case(L + "ab_gemm.triton.ab_gemm", "ab_gemm", r(65536, 128), r(65536, 64))
    P = "flashlib.primitives."
    # Only half of what these return is written.
    upper = lambda f, *args: torch.triu(f(*args))
    yield case(P + "pca.triton.fused_kernels", "triton_cov_gemm_fused", tall, 1e-3, call=upper)
    yield case(P + "pca.triton.fused_kernels", "triton_gram_gemm_fused", flat, 1e-3, call=upper)
    yield case(P + "truncated_svd.triton.fused_kernels", "fused_vproj_norm_to_vh", f32(2048, 8192), f32(2048, 64), positive(64))
    N = "flashlib.kernels.norm.triton.norm"
    for size in (512, 4096):
        yield case(N, "flash_rmsnorm", r((1 << 25) // size, size), r(size), label=f"flash_rmsnorm_{size}")
        yield case(N, "flash_layernorm", r((1 << 25) // size, size), r(size), r(size), label=f"flash_layernorm_{size}")


def learners():
    import torch

    P, K = "flashlib.primitives.", "flashlib.kernels.distance.triton."
    points = f32(4096, 64)
    yield case(K + "pairwise", "pairwise_l2sq", points)
    yield case(K + "pairwise", "triton_rbf_kernel", points, 0.01)
    yield case(K + "affinity", "triton_affinity_with_degree", points, 0.01)
    for tol in (None, 1e-2):
        yield case(K + "mrd", "triton_pairwise_mrd", points, positive(4096), tol=tol, label=f"triton_pairwise_mrd_{tol}")
    yield case(K + "mrd", "triton_fused_mrd_edges", positive(262144, 16), i32(262144, 262144, 16), positive(262144))
    for dtype in ("bfloat16", "float32"):
        yield case(K + "knn_gather_l2sq", "triton_knn_gather_sqdist", r(1, 16384, 128, dtype=dtype), r(1, 65536, 128, dtype=dtype), i32(65536, 1, 16384, 32), label=f"triton_knn_gather_sqdist_{dtype}")
    for size, dtype in ((128, "float16"), (64, "float32"), (768, "float16")):
        many, few = whole(4, 1, 65536, size, dtype=dtype), whole(4, 1, 512, size, dtype=dtype)
        yield case(P + "kmeans.triton.assign", "euclid_assign_triton", many, few, label=f"euclid_assign_{size}_{dtype}")
        yield case(P + "kmeans.triton.assign", "cosine_assign_triton", many, few, label=f"cosine_assign_{size}_{dtype}")
    ids = lambda: integers(512, 1, 65536)
    many, few = r(1, 65536, 128, dtype="float16"), r(1, 512, 128, dtype="float16")
    yield case(P + "kmeans.triton.update", "triton_centroid_update_euclid", many, ids, few)
    yield case(P + "kmeans.triton.update", "triton_lloyd_centroid_step_euclid", many, ids, few, call=lambda f, *args: f(*args)[0])
    for top, size in ((8, 64), (32, 128), (10, 768)):
        near = whole(8, 1, 2048, size, dtype="bfloat16"), whole(8, 1, 32768, size, dtype="bfloat16")
        yield case(P + "knn.triton.dispatch", "flash_knn_triton", *near, top, label=f"flash_knn_{top}_{size}")
    yield case(P + "knn.triton._row_norm", "_fast_row_sq", r(1, 1 << 17, 256))
    S = P + "standard_scaler.triton.scaler"
    data = f32(65536, 256)
    for fused in (False, True):
        yield case(S, "flash_standard_scaler_fit", data, fused, label=f"flash_standard_scaler_fit_{fused}")
    yield case(S, "flash_standard_scaler_transform", data, f32(256), positive(256))
    place, near = f32(4096, 2), lambda: share(4096, 4096, dtype="float32") / 4096**2
    yield case(P + "tsne.triton.grad", "triton_tsne_qsum", f32(16384, 2))
    yield case(P + "tsne.triton.grad", "triton_tsne_grad", place, near, filled(4096.0, 1, dtype="float32"))
    blocked = lambda f, y, p, total: f(y, sys.modules[P + "tsne.triton.grad_blocked"].block_p_matrix(p), total, 4096)
    yield case(P + "tsne.triton.grad_blocked", "triton_tsne_grad_blocked", place, near, filled(4096.0, 1, dtype="float32"), call=blocked)
    yield case(P + "tsne.triton.train", "_compute_p_matrix", points)
    U = P + "umap.triton."
    ranked = lambda: positive(65536, 16)().sort(-1).values
    yield case(U + "smooth_knn_dist", "triton_smooth_knn_dist", ranked)
    edges, nodes = 1 << 20, 65536
    line = filled(1.0, edges, dtype="float32")

    def walk(f, at, *args):
        # No samples of what is not near yet.
        at, args = at.clone(), [arg.clone() for arg in args]
        f(at, *args, 1, 1e-3, n_neg_max=5)
        return at

    yield case(U + "sgd_step", "triton_flash_umap_sgd_step", f32(nodes, 2), lambda: integers(nodes, edges), lambda: integers(nodes, edges), line, line, line, filled(1e9, edges, dtype="float32"), call=walk)
    B = P + "multinomial_nb.triton.nb_core"
    for path, classes in (("sorted", 128), (None, 8)):
        yield case(B, "nb_count_features", lambda: share(65536, 256, dtype="float32"), lambda classes=classes: integers(classes, 65536), classes, None, force_path=path, label=f"nb_count_features_{classes}")
    R = P + "logistic_regression.triton.logistic_regression"
    answers = lambda: integers(2, 65536).float()
    yield case(R, "triton_logreg_fwd_bwd", f32(65536, 256), f32(256), filled(0.1, 1, dtype="float32"), answers)
    yield case(R, "_fused_logits_to_loss_resid", f32(1 << 23), lambda: integers(2, 1 << 23).float())
    Q = P + "linear_regression.triton.fused_kernels"
    yield case(Q, "cast_and_xty", f32(65536, 512), f32(65536))
    yield case(Q, "fused_refine_from_bf16", r(65536, 512), f32(65536), f32(512))
    # Forests
    W = P + "random_forest.triton.rf_kernels"
    rows, features, nodes, bins, classes = 65536, 32, 64, 64, 4
    binned, labels, where = bytes_of(rows, features, high=bins), i32(classes, rows), i32(nodes, rows)
    yield case(W, "_build_node_histograms", binned, labels, where, nodes, bins, classes)
    chosen = lambda: integers(features, nodes, 8, dtype="int32")
    yield case(W, "_build_node_histograms_subfeat", binned, labels, where, chosen, nodes, bins, classes)
    starts = lambda: torch.arange(nodes + 1, device="cuda", dtype=torch.int32) * (rows // nodes)
    yield case(W, "_build_node_histograms_ranged", binned, labels, lambda: torch.randperm(rows, device="cuda").int(), starts, nodes, bins, classes)
    counts = lambda: integers(32, 512, features, bins, classes).float()
    yield case(W, "_find_best_splits_triton", counts, classes, call=lambda f, *args: f(*args)[2])
    yield case(P + "random_forest.triton.histogram", "triton_rf_histogram", i32(256, rows, 256), f32(rows), 256)
    index = lambda: torch.arange(256, device="cuda")
    split = lambda f, whole, half, parents: (half := half.clone(), f(whole, half, parents, parents * 2, parents * 2 + 1))[0]
    yield case(W, "_hist_subtract_fused", f32(256, features, bins, classes), f32(512, features, bins, classes), index, call=split)
    # Searches
    V, lists, longest, queries, probes, width = 65536, 256, 256, 512, 16, 128
    offsets = lambda: torch.arange(lists + 1, device="cuda") * longest
    probed = lambda: (torch.arange(queries, device="cuda")[:, None] * 7 + torch.arange(probes, device="cuda")[None, :] * 3).int() % lists
    found = lambda f, *args, **named: f(*args, **named)[0]
    flat = f32(queries, width), f32(V, width), probed, offsets, 10
    yield case(P + "ivf_flat.triton.fine_scan", "ivf_fine_scan", *flat, call=lambda f, *args: found(f, *args, max_list_len=longest))
    half = r(queries, width), r(V, width), probed, offsets, 10
    yield case(P + "ivf_flat.triton.fine_scan_gemm", "ivf_fine_scan_gemm", *half, call=found)
    parts, words = 16, 256
    centers, books = f32(lists, width), f32(parts, words, width // parts)
    for residual in (False, True):
        named = dict(by_residual=residual)
        yield case(P + "ivf_pq.triton.lut", "pq_build_lut", f32(queries, width), centers, probed, books, label=f"pq_build_lut_{residual}", **named)
        tables = f32(queries, probes if residual else 1, parts, words)
        scanned = bytes_of(V, parts), probed, offsets, tables, 10
        for name in ("fine_scan", "fine_scan_batch"):
            call = lambda f, *args, named=named: found(f, *args, max_list_len=longest, **named)
            yield case(P + "ivf_pq.triton." + name, "ivf_pq_" + name, *scanned, call=call, label=f"ivf_pq_{name}_{residual}")
        args = f32(queries, width), centers, books, bytes_of(V, parts), probed, offsets, 10
        call = lambda f, *args, named=named: found(f, *args, **named)
        yield case(P + "ivf_pq.triton.fine_scan_gemm", "ivf_pq_fine_scan_gemm", *args, call=call, label=f"ivf_pq_fine_scan_gemm_{residual}")
        call = lambda f, *args, named=named: found(f, *args, max_list_len=longest, **named)
        yield case(P + "ivf_pq.triton.fine_scan_ws", "ivf_pq_fine_scan_ws", *args, call=call, label=f"ivf_pq_fine_scan_ws_{residual}")
    graph, seeds = i32(V, V, 32), lambda: (torch.arange(queries, device="cuda")[:, None] * 64 + torch.arange(32, device="cuda")[None, :]).int() % V
    yield case(P + "cagra.triton.search", "cagra_traverse", whole(8, queries, width, dtype="bfloat16"), whole(8, V, width, dtype="bfloat16"), graph, seeds, 10, call=lambda f, *args: found(f, *args, max_iters=16))
    yield case(P + "dbscan.triton.dbscan", "_flash_dbscan_grid", whole(1024, 65536, 2), 0.0101, 5, 32, call=found)


def decoders():
    import numpy as np
    import torch

    T = "tridec.backends."

    def code(checks, bits):
        """Which bits each check has: three checks for a bit."""
        of = np.random.default_rng(0)
        matrix = np.zeros((checks, bits), dtype=np.uint8)
        for bit in range(bits):
            matrix[of.choice(checks, 3, replace=False), bit] = 1
        return matrix

    def passed(module, name, shots):
        def make():
            decoder = getattr(importlib.import_module(T + module), name)(code(512, 1024), np.full(1024, 0.03), max_iter=4)
            syndromes = integers(2, shots, 512)
            signs = (1 - 2 * syndromes.t().float()).contiguous()
            tables = decoder._device_tensors(syndromes.device)

            def call(syndromes, signs):
                lam, checks, bits, _, first = tables
                return decoder._run_core(syndromes, signs, lam, checks, bits, first, 4, syndromes.device, shots, decoder.n_edges, decoder.n_bits, decoder.n_checks)[0]

            return call, [syndromes, signs]

        return f"tridec.{name}_{shots}", make

    yield passed("bp_triton", "BpTriton", 2048)
    yield passed("megakernel", "BpMegaTriton", 1024)

    def relayed(module, name, shots):
        def make():
            few = dict(pre_iter=4, num_sets=2, set_max_iter=4, dtype="float32")
            decoder = getattr(importlib.import_module(T + module), name)(code(512, 1024), np.full(1024, 0.03), **few)
            syndromes = integers(2, shots, 512)
            signs = (1 - 2 * syndromes.t().float()).contiguous()
            tables = decoder._device_tensors(syndromes.device)
            if name == "RelayBpMegaTriton":
                return (lambda syndromes: decoder._relay_posteriors(syndromes, syndromes.device).t()), [syndromes]

            def call(signs):
                lam, checks, bits, _, first = tables[:5]
                sums, messages = lam[:, None].expand(-1, shots).contiguous(), first[:, None].expand(-1, shots).contiguous()
                strength = torch.full_like(lam, 0.1)
                return decoder._run_leg(signs, lam, checks, bits, strength, messages, sums, 4, signs.device, shots, decoder.n_edges, decoder.n_bits, decoder.n_checks)[2]

            return call, [signs]

        return f"tridec.{name}_{shots}", make

    yield relayed("relay_triton", "RelayBpTriton", 2048)
    yield relayed("megakernel", "RelayBpMegaTriton", 1024)


def plain():
    """Configurations are chosen without measuring, and packages run where there is no GPU, as far as they can."""
    import torch
    from triton.runtime.autotuner import Autotuner

    one_configuration()
    portable()
    # Nothing is measured, so nothing is kept on a disk either.
    Autotuner.check_disk_cache = lambda self, key, configs, bench: bench() or False
    # Without a GPU (`kernels_of.py`) tensors pass for some of it where only that is asked for.
    if not torch._C._cuda_getDeviceCount():
        torch.Tensor.is_cuda = True


def cases():
    import torch
    import triton

    plain()
    # FlashNN's kernels take a number from their file.
    triton.knobs.compilation.allow_non_constexpr_globals = True
    sys.path.append(os.environ["NEWEST"])
    given("einx")
    given("scipy")
    given("scipy.sparse", issparse=lambda matrix: False, csr_matrix=lambda matrix: matrix)
    version = importlib.metadata.version
    importlib.metadata.version = lambda name: version("triton" if name == "triton-nightly" else name)
    stubs.install(os.environ["NEWEST"], PACKAGES, REAL)
    # Files that do not import what they call.
    for name in ("flashlib.primitives.tsne.triton.grad_blocked", "ring_attention_pytorch.triton_flash_attn"):
        vars(importlib.import_module(name)).update(math=math, partial=functools.partial)
    count = lambda device: torch.cuda.get_device_properties(device).multi_processor_count
    importlib.import_module("spconv_triton.pytorch._impl.gemm")._multiprocessor_count = count
    for name in ("triton_utils", "triton_utils_zp"):
        tuner = importlib.import_module(f"auto_round_extension.triton.{name}.custom_autotune")
        tuner.CustomizedTritonAutoTuner.prune_configs = lambda self, named: [self.configs[len(self.configs) // 2]]
        tuner.CustomizedTritonAutoTuner._bench = lambda self, *args, config, **named: 0.0
    for group in (recurrences, sparse_softmax, experts, layers, images, flashnn, comfy_kitchen, attention, retrieval, scenes, quantized, products, learners, decoders):
        yield from group()


if __name__ == "__main__":
    paired.main(__doc__.splitlines()[0], cases, shares=4)
