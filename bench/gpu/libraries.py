"""Kernels of libraries, timed one by one: compiled by Triton, and by ttopt through its hook.

    python bench/gpu/libraries.py [--only REGEX] [--shares N] [--json FILE] [--keep FOLDER]

Needs a GPU, PyTorch with its Triton, this project's wheel (`./dev wheel`), and those of the libraries fla-core,
liger-kernel and flag-gems that shall be timed. Their functions are called as their users call them, with their backward
passes; a kernel with an autotuner gets the configuration in the middle of its list, so that both compilers get the same.
How it is timed and compared: `paired.py`. Prints for each kernel the time under Triton, that under ttopt, and their ratio.
"""

import importlib
import importlib.util

import paired


def one_configuration():
    """Autotuners measure nothing: each takes the configuration in the middle of those that it would try."""
    from triton.runtime.autotuner import Autotuner

    prune = Autotuner.prune_configs

    def middle(self, *args, **kwargs):
        configs = prune(self, *args, **kwargs)
        return [configs[len(configs) // 2]]

    Autotuner.prune_configs = middle
    Autotuner._bench = lambda self, *args, config, **meta: [0.0, 0.0, 0.0]


def rand(*shape, dtype="bfloat16"):
    import torch

    return torch.randn(shape, device="cuda").to(getattr(torch, dtype))


def unit(*shape, dtype="bfloat16"):
    """Rows of length one, as keys of delta rules are."""
    import torch

    return torch.nn.functional.normalize(rand(*shape, dtype="float32"), dim=-1).to(getattr(torch, dtype))


def gate(*shape, dtype="bfloat16"):
    """Logarithms of decays."""
    import torch

    return torch.nn.functional.logsigmoid(rand(*shape, dtype="float32")).div(16).to(getattr(torch, dtype))


def share(*shape, dtype="bfloat16"):
    """Numbers between 0 and 1."""
    import torch

    return rand(*shape, dtype="float32").sigmoid().to(getattr(torch, dtype))


def integers(high, *shape, dtype="int64"):
    import torch

    return torch.randint(0, high, shape, device="cuda", dtype=getattr(torch, dtype))


def forward(function, **constants):
    return lambda *args: function(*args, **constants)


def trained(function, **constants):
    """The function and its backward pass: values, and gradients of all arguments that are floating-point numbers."""
    import torch

    def call(*args):
        args = [arg.detach().requires_grad_() if hasattr(arg, "dtype") and arg.is_floating_point() else arg for arg in args]
        values = [leaf for leaf in paired.leaves(function(*args, **constants)) if leaf.is_floating_point()]
        values = [leaf for leaf in values if leaf.requires_grad]
        wanted = [arg for arg in args if hasattr(arg, "requires_grad") and arg.requires_grad]
        torch.manual_seed(2)
        gradients = torch.autograd.grad(values, wanted, [torch.randn_like(leaf) for leaf in values], allow_unused=True)
        return values, [gradient for gradient in gradients if gradient is not None]

    return call


def fla():
    B, T, H, K, V, M = 4, 2048, 16, 128, 128, 64
    q = k = v = (B, T, H, K)

    def op(module, name):
        return getattr(importlib.import_module("fla.ops." + module), name)

    def case(module, name, *makers, run=trained, **constants):
        return f"fla.{name}", lambda: (run(op(module, name), **constants), [make() for make in makers])

    def r(*shape, dtype="bfloat16", of=rand):
        return lambda: of(*shape, dtype=dtype)

    qkv = r(*q), r(*k, of=unit), r(*v)
    scalar, beta = r(B, T, H, of=gate, dtype="float32"), r(B, T, H, of=share)
    vector = r(B, T, H, K, of=gate)
    yield case("abc", "chunk_abc", *qkv, r(B, T, H, M))
    yield case("attn", "parallel_attn", *qkv)
    yield case("attn", "parallel_attn", *qkv, scalar)
    yield case("based", "parallel_based", r(B, T, H, 16), r(B, T, H, 16), r(*v))
    yield case("based", "fused_chunk_based", r(B, T, H, 16), r(B, T, H, 16), r(*v))
    yield case("comba", "chunk_comba", *qkv, r(*k, of=unit), scalar, beta)
    yield case("comba", "fused_recurrent_comba", r(*q), r(*k, of=unit), r(*k, of=unit), r(*v), scalar, beta, run=forward)
    yield case("delta_rule", "chunk_delta_rule", *qkv, beta)
    yield case("delta_rule", "fused_recurrent_delta_rule", *qkv, beta)
    yield case("forgetting_attn", "parallel_forgetting_attn", *qkv, scalar)
    yield case("gated_delta_product", "chunk_gated_delta_product", r(*q), r(B, T * 2, H, K, of=unit), r(B, T * 2, H, V), scalar, r(B, T * 2, H, of=share), num_householder=2)
    yield case("gated_delta_rule", "chunk_gated_delta_rule", *qkv, scalar, beta, use_qk_l2norm_in_kernel=True)
    yield case("gated_delta_rule", "fused_recurrent_gated_delta_rule", *qkv, scalar, run=forward)
    yield case("gated_oja_rule", "chunk_gated_oja_rule", *qkv, vector, beta)
    yield case("gdn2", "chunk_gdn2", *qkv, vector, r(B, T, H, K, of=share), r(B, T, H, K, of=share))
    yield case("generalized_delta_rule", "chunk_dplr_delta_rule", *qkv, r(*k, of=unit), r(*k, of=unit), vector)
    yield case("generalized_delta_rule", "fused_recurrent_dplr_delta_rule", *qkv, r(*k, of=unit), r(*k, of=unit), vector, run=forward)
    yield case("generalized_delta_rule", "chunk_iplr_delta_rule", *qkv, r(*k, of=unit), r(*k, of=unit), run=forward)
    yield case("generalized_delta_rule", "fused_recurrent_iplr_delta_rule", *qkv, r(*k, of=unit), r(*k, of=unit))
    yield case("gla", "chunk_gla", *qkv, vector)
    yield case("gla", "fused_recurrent_gla", *qkv, vector)
    yield case("gsa", "chunk_gsa", *qkv, r(B, T, H, M), r(B, T, H, M, of=gate))
    yield case("hgrn", "chunk_hgrn", r(B, T, 2048), r(B, T, 2048, of=gate))
    yield case("hgrn", "fused_recurrent_hgrn", r(B, T, 2048), r(B, T, 2048, of=gate))
    yield case("kda", "chunk_kda", *qkv, vector, beta, use_qk_l2norm_in_kernel=True)
    yield case("kda", "fused_recurrent_kda", *qkv, vector, beta, run=forward)
    yield case("lightnet", "chunk_lightnet", r(*q), r(B, T, H, K), r(*v))
    yield case("lightning_attn", "chunk_lightning_attn", *qkv, layer_idx=3, num_layers=12)
    yield case("linear_attn", "chunk_linear_attn", *qkv)
    yield case("linear_attn", "fused_chunk_linear_attn", *qkv)
    yield case("linear_attn", "fused_recurrent_linear_attn", *qkv)
    yield case("log_linear_attn", "chunk_log_linear_attn", *qkv, scalar, r(B, T, H, 12, of=share))
    yield case("mesa_net", "chunk_mesa_net", *qkv, scalar, r(B, T, H, of=share), r(H, K, of=share, dtype="float32"))
    yield case("momentum_delta_rule", "chunk_momentum_delta_rule", *qkv, scalar, scalar)
    yield case("nsa", "parallel_nsa", r(B, T, 64, 64), r(B, T, 4, 64), r(B, T, 4, 64), r(B, T, 64, of=share), r(B, T, 64, of=share), block_counts=16, block_size=64)
    yield case("parallax", "parallel_parallax", r(*q), r(*q), r(*k), r(*v))
    yield case("path_attn", "parallel_path_attn", *qkv, r(*k, of=unit, dtype="float32"), r(B, T, H, of=share, dtype="float32"))
    yield case("rebased", "parallel_rebased", r(B, T, H, 16), r(B, T, H, 16), r(*v))
    yield case("retention", "chunk_retention", *qkv)
    yield case("retention", "parallel_retention", *qkv)
    yield case("rwkv4", "fused_recurrent_rwkv4", r(2048, dtype="float32", of=gate), r(2048, dtype="float32"), r(B, T, 2048, dtype="float32"), r(B, T, 2048, dtype="float32"), r(B, 3, 1, 2048, dtype="float32"))
    yield case("rwkv6", "chunk_rwkv6", *qkv, vector, r(H, K))
    yield case("rwkv6", "fused_recurrent_rwkv6", *qkv, vector, r(H, K))
    yield case("rwkv7", "chunk_rwkv7", r(*q), vector, r(*k, of=unit), r(*v), r(*k, of=unit), r(*k, of=unit))
    yield case("rwkv7", "fused_mul_recurrent_rwkv7", r(*q), vector, r(*k, of=unit), r(*v), r(*k, of=unit), r(*k, of=share), run=forward)
    yield case("simple_gla", "chunk_simple_gla", *qkv, scalar)
    yield case("simple_gla", "parallel_simple_gla", *qkv, scalar)
    yield case("simple_gla", "fused_recurrent_simple_gla", *qkv, scalar)
    yield case("stickbreaking_attn", "parallel_stickbreaking_attn", *qkv)
    yield case("ttt", "chunk_ttt_linear", *qkv, r(H, K), r(H, K), r(B, T, H, 1, of=share), chunk_size=16)
    yield case("ttt", "fused_chunk_ttt_linear", *qkv, r(H, K), r(H, K), r(B, T, H, 1, of=share), chunk_size=16)
    yield case("wall_attn", "parallel_wall_attn", *qkv, vector)
    for name in ("chunk_local_cumsum", "chunk_global_cumsum"):
        yield f"fla.{name}_vector", lambda name=name: (forward(op("utils", name), **({"chunk_size": 64} if "local" in name else {})), [rand(B, T, H, K, dtype="float32")])
    for name in ("layer_norm", "rms_norm"):
        yield f"fla.{name}", lambda name=name: (trained(getattr(importlib.import_module("fla.modules.layernorm"), name)), [rand(B * T, 4096), rand(4096), rand(4096)])
    yield "fla.rms_norm_gated", lambda: (trained(importlib.import_module("fla.modules.fused_norm_gate").rms_norm_gated), [rand(B, T, H, K), rand(B, T, H, K), rand(K), rand(K)])
    yield "fla.l2norm", lambda: (trained(importlib.import_module("fla.modules.l2norm").l2norm), [rand(B, T, H, K)])
    yield "fla.causal_conv1d", lambda: (trained(importlib.import_module("fla.modules.convolution").causal_conv1d, activation="silu"), [rand(B, T, 4096), rand(4096, 4), rand(4096)])
    yield "fla.rotary", lambda: (trained(importlib.import_module("fla.modules.rotary").rotary_embedding), [rand(B, T, H, K), rand(T, K // 2), rand(T, K // 2)])
    yield "fla.token_shift", lambda: (trained(importlib.import_module("fla.modules.token_shift").token_shift), [rand(B, T, 4096)])
    yield "fla.swiglu", lambda: (trained(importlib.import_module("fla.modules.activations").swiglu), [rand(B, T, 4096), rand(B, T, 4096)])
    yield "fla.logsigmoid", lambda: (trained(importlib.import_module("fla.modules.activations").logsigmoid), [rand(B, T, 4096)])
    yield "fla.cross_entropy", lambda: (trained(importlib.import_module("fla.modules.fused_cross_entropy").cross_entropy_loss), [rand(4096, 50304), integers(50304, 4096)])


def liger():
    rows, columns, words = 8192, 4096, 32000

    def case(module, name, *makers, run=trained, **constants):
        def make():
            function = getattr(importlib.import_module("liger_kernel.ops." + module), name)
            return run(getattr(function, "apply", function)), [make() if callable(make) else make for make in makers]

        return f"liger.{name.replace('Liger', '').replace('Function', '')}", make

    def r(*shape, dtype="bfloat16", of=rand):
        return lambda: of(*shape, dtype=dtype)

    def logprobs(*shape):
        return lambda: rand(*shape, dtype="float32").log_softmax(-1)

    def probs(*shape):
        return lambda: rand(*shape, dtype="float32").softmax(-1)

    x, weight = r(rows, columns), r(columns)
    yield case("attn_res", "LigerAttnResFunction", r(4, 4, 2048, 1024), r(1024), r(1024), 1e-6)
    yield case("cross_entropy", "LigerCrossEntropyFunction", r(4096, words), lambda: integers(words, 4096), None)
    yield case("cross_entropy", "LigerCrossEntropyFunction", r(4096, words), lambda: integers(words, 4096), None, -100, 1e-4, 0.1, "mean", 30.0)
    yield case("dyt", "LigerDyTFunction", x, r(1), weight, weight)
    yield case("fused_add_rms_norm", "LigerFusedAddRMSNormFunction", x, x, weight, 1e-6)
    yield case("fused_linear_cross_entropy", "LigerFusedLinearCrossEntropyFunction", r(4096, 1024), r(words, 1024), lambda: integers(words, 4096))
    yield case("fused_linear_jsd", "LigerFusedLinearJSDFunction", r(2048, 1024), r(words, 1024), r(2048, 1024), r(words, 1024))
    yield case("fused_moe", "LigerFusedMoEFunction", r(4096, 2048), r(16, 2048, 2048), r(16, 2048, 1024), lambda: integers(16, 4096, 2), r(4096, 2, of=share))
    yield case("fused_neighborhood_attention", "LigerFusedNeighborhoodAttentionFunction", r(4, 16, 1024, 64), r(4, 16, 1024, 64), r(4, 16, 1024, 64))
    yield case("geglu", "LigerGELUMulFunction", x, x)
    yield case("group_norm", "LigerGroupNormFunction", r(32, 128, 4096), r(128), r(128), 128, 32, 1e-6)
    yield case("grpo_loss", "GrpoLossFunction", r(8, 513, words), None, r(8, 512, dtype="float32"), lambda: integers(words, 8, 512), r(8, dtype="float32"), None, 0.9, 0.04, 0.2, 0.4, False)
    yield case("jsd", "LigerJSDFunction", logprobs(4096, words), logprobs(4096, words))
    yield case("kl_div", "LigerKLDivLossFunction", logprobs(4096, words), probs(4096, words))
    yield case("layer_norm", "LigerLayerNormFunction", x, weight, weight, 1e-6)
    yield case("llama4_rope", "LigerLlama4RopeFunction", r(4, 2048, 32, 128), r(4, 2048, 8, 128), r(2048, 64, dtype="complex64"))
    yield case("modulated_rms_norm", "LigerModulatedRMSNormFunction", r(4, 2048, columns), weight, r(4, columns), r(4, columns), 1e-6)
    yield case("mlp", "LigerMLPFunction", r(2, 2048, 2048), r(4096, 2048), r(4096, 2048), r(2048, 4096))
    yield case("poly_norm", "LigerPolyNormFunction", x, r(3), r())
    yield case("qwen2vl_mrope", "LigerQwen2VLMRopeFunction", r(4, 32, 2048, 128), r(4, 8, 2048, 128), r(3, 4, 2048, 128), r(3, 4, 2048, 128), [16, 24, 24])
    yield case("relu_squared", "LigerReLUSquaredFunction", x)
    yield case("rms_norm", "LigerRMSNormFunction", x, weight, 1e-6)
    yield case("rms_norm", "LigerRMSNormFunction", r(131072, 256), r(256), 1e-6)
    yield case("rope", "LigerRopeFunction", r(4, 32, 2048, 128), r(4, 8, 2048, 128), r(1, 2048, 128), r(1, 2048, 128))
    yield case("softmax", "LigerSoftmaxFunction", x)
    yield case("softmax", "LigerSoftmaxFunction", r(4096, words))
    yield case("sparsemax", "LigerSparsemaxFunction", x, -1)
    yield case("swiglu", "LigerSiLUMulFunction", x, x)
    yield case("tvd", "LigerTVDLossFunction", probs(4096, words), probs(4096, words))
    yield case("fused_ce_tvd", "LigerFusedCETVDFunction", r(4096, words), r(4096, words), lambda: integers(words, 4096))
    yield case("multi_token_attention", "LigerMultiTokenAttentionFunction", r(2, 8, 512, 512), r(8, 8, 3, 3), None, 1, 1, 1, 1)
    yield case("mhc", "LigerMHCPreFunction", r(8192, 4, 2048), r(8192, 4, dtype="float32", of=share))
    yield case("mhc", "LigerMHCPostResFunction", r(8192, 4, 2048), r(8192, 2048), r(8192, 4, dtype="float32", of=share), r(8192, 4, 4, dtype="float32", of=share))
    yield case("mhc", "LigerMHCCoeffsFunction", r(8192, 4, 1024), r(4096, 24), r(24, dtype="float32"), r(dtype="float32"), r(dtype="float32"), r(dtype="float32"), True, 20, 1e-6, 1e-6, 1e-6, 2.0)


def gems():
    def r(*shape, dtype="bfloat16", of=rand):
        return lambda: of(*shape, dtype=dtype)

    def i(high, *shape, dtype="int64"):
        return lambda: integers(high, *shape, dtype=dtype)

    def case(name, *makers, **constants):
        def make():
            library = importlib.import_module("flag_gems")
            holders = (library, importlib.import_module("flag_gems.ops"), importlib.import_module("flag_gems.fused"))
            function = next(getattr(holder, name) for holder in holders if callable(getattr(holder, name, None)))
            return forward(function, **constants), [make() if callable(make) else [one() if callable(one) else one for one in make] if isinstance(make, list) else make for make in makers]

        return f"gems.{name}", make

    x, wide, narrow, tall = r(16384, 4096), r(4096, 32000), r(262144, 128), r(65536, 32, 16)
    square = r(4096, 4096)
    for name in ("abs exp sigmoid silu gelu tanh erf relu sin cos tan log_sigmoid softplus rsqrt isnan sgn_ neg reciprocal square ceil logit selu acos log10 digamma_ special_i1 i0").split():
        yield case(name, x)
    for name in ("add mul sub maximum eq lt copysign hypot logaddexp fmin atan2 isclose").split():
        yield case(name, x, x)
    yield case("add", r(16384, 1), r(1, 4096))
    yield case("addcmul", x, x, x)
    yield case("masked_fill", x, lambda: integers(2, 16384, 4096).bool(), 0.5)
    for name in ("softmax", "log_softmax"):
        yield case(name, x, -1)
        yield case(name, wide, -1)
        yield case(name, narrow, -1)
        yield case(name, tall, 1)
        yield case(name, square, 0)
    for name in ("sum_dim", "mean_dim", "prod_dim", "amax", "any_dim", "all_dim", "var_mean", "vector_norm"):
        extra = [2] if name == "vector_norm" else []
        dim = (lambda d: d) if name in ("prod_dim", "any_dim", "all_dim") else (lambda d: [d])
        yield case(name, x, *extra, dim(1))
        yield case(name, x, *extra, dim(0))
        yield case(name, tall, *extra, dim(1))
    for name in ("argmax", "argmin", "max_dim", "min_dim", "aminmax"):
        dims = [{"dim": 1}, {"dim": 0}]
        for d in dims:
            yield case(name, x, **d)
        yield case(name, tall, dim=1)
    for name in ("sum", "mean", "max", "prod", "var_mean", "count_nonzero", "std"):
        yield case(name, x)
    for name in ("cumsum", "cummax", "cummin", "normed_cumsum"):
        yield case(name, r(4096, 4096, dtype="float32"), 1)
        if name != "normed_cumsum":
            yield case(name, r(4096, 1024, dtype="float32"), 0)
    yield case("sort", r(4096, 1024), -1)
    yield case("sort", r(64, 65536), -1)
    yield case("topk", r(4096, 1024), 8)
    yield case("topk", r(256, 32000, dtype="float32"), 64)
    yield case("unique_consecutive", i(100, 1 << 22))
    yield case("nonzero", i(2, 4096, 4096))
    yield case("masked_select", r(4096, 4096), lambda: integers(2, 4096, 4096).bool())
    yield case("isin", i(1000, 1 << 22), i(1000, 100))
    yield case("gather", r(8192, 4096), 1, i(4096, 8192, 2048))
    yield case("gather", r(8192, 4096), 0, i(8192, 4096, 4096))
    yield case("scatter", r(8192, 4096), 1, i(4096, 8192, 2048), r(8192, 2048))
    yield case("index_select", r(16384, 4096), 0, i(16384, 8192))
    yield case("index_select", r(16384, 4096), 1, i(4096, 2048))
    yield case("index_add", r(16384, 1024, dtype="float32"), 0, i(16384, 8192), r(8192, 1024, dtype="float32"))
    yield case("index_put", r(16384, 1024), [i(16384, 8192)], r(8192, 1024))
    yield case("index", r(16384, 4096), [i(16384, 8192)])
    yield case("embedding", r(50000, 4096), i(50000, 8192))
    yield case("embedding_backward", r(8192, 1024), i(50000, 8192), 50000)
    yield case("bincount", i(256, 1 << 20))
    yield case("one_hot", i(512, 16384), 512)
    yield case("flip", square, [0, 1])
    yield case("roll", square, [3, 5], [0, 1])
    yield case("repeat", r(1024, 1024), (4, 4))
    yield case("tile", r(1024, 1024), (4, 4))
    yield case("repeat_interleave_self_int", r(4096, 1024), 4, dim=0)
    yield case("pad", r(32, 64, 128, 128), (1, 1, 1, 1))
    yield case("reflection_pad2d", r(32, 64, 128, 128), (2, 2, 2, 2))
    yield case("cat", [square, square], 1)
    yield case("stack", [square, square], 1)
    yield case("triu", square)
    yield case("tril", square)
    yield case("diag", square)
    yield case("kron", r(64, 64), r(64, 64))
    yield case("outer", r(8192), r(8192))
    yield case("contiguous", lambda: rand(8192, 8192).t())
    yield case("contiguous", lambda: rand(32, 64, 128, 128).permute(0, 2, 3, 1))
    yield case("to_copy", x, dtype=None)
    yield case("mm", square, square)
    yield case("mm", r(16, 4096), r(4096, 4096))
    yield case("mm", r(4096, 4096, dtype="float16"), lambda: rand(4096, 4096, dtype="float16").t())
    yield case("mm", r(2048, 2048, dtype="float32"), r(2048, 2048, dtype="float32"))
    yield case("addmm", r(4096), square, square)
    yield case("bmm", r(64, 1024, 128), r(64, 128, 1024))
    yield case("baddbmm", r(64, 1024, 1024), r(64, 1024, 128), r(64, 128, 1024))
    yield case("mv", r(8192, 8192), r(8192))
    yield case("addmv", r(8192), r(8192, 8192), r(8192))
    yield case("dot", r(1 << 24), r(1 << 24))
    yield case("vdot", r(1 << 24), r(1 << 24))
    yield case("addr", r(8192, 8192), r(8192), r(8192))
    yield case("conv1d", r(32, 256, 4096, dtype="float16"), r(256, 256, 3, dtype="float16"), None)
    yield case("conv2d", r(32, 128, 64, 64, dtype="float16"), r(128, 128, 3, 3, dtype="float16"), None, 1, 1)
    yield case("conv3d", r(4, 32, 16, 64, 64, dtype="float16"), r(64, 32, 3, 3, 3, dtype="float16"), None, 1, 1)
    yield case("_conv_depthwise2d", r(32, 128, 64, 64), r(128, 1, 3, 3), 3, None, 1, 1, 1)
    yield case("avg_pool2d", r(32, 64, 128, 128), 3, 2, 1)
    yield case("max_pool2d_with_indices", r(32, 64, 128, 128), 3, 2, 1)
    yield case("upsample_nearest2d", r(16, 64, 64, 64), [128, 128])
    yield case("upsample_bicubic2d", r(8, 32, 64, 64), [128, 128])
    yield case("layer_norm", x, [4096], r(4096), r(4096))
    yield case("layer_norm", narrow, [128], r(128), r(128))
    yield case("layer_norm_backward", x, x, [4096], r(16384, dtype="float32"), r(16384, dtype="float32"), r(4096), r(4096), [True, True, True])
    yield case("rms_norm", x, [4096], r(4096))
    yield case("fused_add_rms_norm", x, x, [4096], r(4096))
    yield case("skip_layer_norm", x, x, [4096], r(4096), r(4096))
    yield case("group_norm", r(32, 96, 128, 128), r(96), r(96), 32, 96, 128 * 128, 32)
    yield case("batch_norm", r(32, 96, 64, 64), r(96), r(96), None, None, True)
    yield case("instance_norm", r(32, 96, 64, 64), r(96), r(96))
    yield case("weight_norm_interface", r(4096, 4096), r(4096, 1))
    yield case("cross_entropy_loss", wide, i(32000, 4096))
    yield case("nll_loss_forward", wide, i(32000, 4096))
    yield case("mse_loss", x, x)
    yield case("silu_and_mul", x, x)
    yield case("gelu_and_mul", x, x)
    yield case("swiglu", r(8192, 8192))
    yield case("dswiglu", r(8192, 4096), r(8192, 8192))
    yield case("geglu", r(8192, 8192))
    yield case("reglu", r(8192, 8192))
    yield case("scaled_softmax_forward", r(16, 16, 1024, 1024), 0.125)
    yield case("apply_rotary_pos_emb", r(4, 2048, 32, 128), r(4, 2048, 8, 128), r(2048, 64), r(2048, 64))
    yield case("apply_rotary_pos_emb", r(4, 2048, 32, 128), r(4, 2048, 8, 128), r(2048, 64), r(2048, 64), rotary_interleaved=True)
    yield case("topk_softmax", r(8192, 8, dtype="float32"), i(8, 8192, 8, dtype="int32"), i(8, 8192, 8, dtype="int32"), r(8192, 128, dtype="float32"))
    yield case("grouped_topk", r(8192, 256, dtype="float32"), 8, 4, 8, True, 1.0, r(256, dtype="float32"))
    yield case("moe_sum", r(8192, 8, 4096), r(8192, 4096))
    yield case("moe_align_block_size", i(64, 8192, 8, dtype="int32"), 64, 64)
    yield case("fused_experts_impl", r(4096, 2048), r(16, 2048, 2048), r(16, 2048, 1024), r(4096, 2, of=share, dtype="float32"), i(16, 4096, 2, dtype="int32"))
    yield case("scaled_dot_product_attention", r(4, 16, 2048, 64), r(4, 16, 2048, 64), r(4, 16, 2048, 64))
    yield case("scaled_dot_product_attention", r(4, 16, 2048, 128), r(4, 16, 2048, 128), r(4, 16, 2048, 128), is_causal=True)
    yield case("flash_attention_forward", r(4, 2048, 16, 128), r(4, 2048, 16, 128), r(4, 2048, 16, 128), None, None, 2048, 2048, 0.0, True, False)
    yield case("hadamard_transform", r(16384, 4096))
    yield case("hadamard_transform", r(65536, 256))
    yield case("per_token_group_quant_fp8", x, 128)
    yield case("act_quant_triton", x, 128)
    yield case("w8a8_block_fp8_matmul", lambda: rand(4096, 4096).to(__import__("torch").float8_e4m3fn), lambda: rand(4096, 4096).to(__import__("torch").float8_e4m3fn), r(4096, 32, of=share, dtype="float32"), r(32, 32, of=share, dtype="float32"), [128, 128])
    yield case("quantile", r(1024, 4096, dtype="float32"), 0.3, dim=1)
    yield case("dropout", x, 0.3, True)
    yield case("bernoulli_", x, 0.3)
    yield case("randn", (4096, 4096))
    yield case("exponential_", r(4096, 4096, dtype="float32"))
    yield case("sinkhorn_forward", r(16384, 4, 4, dtype="float32", of=share))
    yield case("mhc_post", r(8192, 2048), r(8192, 4, 2048), r(8192, 4, 1, dtype="float32", of=share), r(8192, 4, 4, dtype="float32", of=share))
    # Longer rows overflow the memory that the kernel has for candidates.
    yield case("bucket_sort_topk", r(256, 4096, dtype="float32"), lambda: integers(1, 256, dtype="int32"), lambda: integers(1, 256, dtype="int32") + 4096, 512)


def cases():
    one_configuration()
    seen = {}
    for library, generator in (("fla", fla), ("liger_kernel", liger), ("flag_gems", gems)):
        for name, make in generator() if importlib.util.find_spec(library) else ():
            seen[name] = seen.get(name, 0) + 1
            yield name + (f"_{seen[name]}" if seen[name] > 1 else ""), make


if __name__ == "__main__":
    paired.main(__doc__.splitlines()[0], cases, shares=6)
