"""Kernels that torch.compile writes, timed one by one: compiled by Triton, and by ttopt through its hook.

    python bench/gpu/inductor.py [--only REGEX] [--json FILE] [--keep FOLDER]

Needs a GPU, PyTorch with its Triton, and this project's wheel (`./dev wheel`) in one environment. How it is timed and
compared (with eager PyTorch): `paired.py`. Prints for each kernel the time under Triton, that under ttopt, and their
ratio; then the geometric mean.
"""

import paired


def cases():
    """Name, function, arguments: what models are made of, at sizes beyond the L2."""
    import torch
    import torch.nn.functional as F

    torch.manual_seed(0)

    def rand(*shape, dtype=torch.bfloat16):
        return torch.randn(*shape, device="cuda", dtype=torch.float32).to(dtype)

    f32, half = torch.float32, torch.float16
    rows, wide, narrow = rand(16384, 4096), rand(4096, 16384), rand(262144, 256)
    other, gate = rand(16384, 4096), rand(16384, 4096)
    weight, bias = rand(4096), rand(4096)
    image = rand(32, 128, 128, 96)
    planes = rand(32, 96, 128, 128)
    index = torch.randint(0, 16384, (16384,), device="cuda")
    tokens = torch.randint(0, 50000, (8192,), device="cuda")
    table = rand(50000, 4096)
    logits = rand(4096, 50304)
    labels = torch.randint(0, 50304, (4096,), device="cuda")
    heads = rand(8, 4096, 32, 128)
    angles = rand(4096, 64, dtype=f32)
    state = [rand(1 << 25, dtype=f32) for _ in range(4)]
    scores = rand(16, 16, 1024, 1024)
    bytes_ = torch.randint(0, 255, (16384, 4096), device="cuda", dtype=torch.uint8)
    integers = torch.randint(-128, 127, (16384, 4096), device="cuda", dtype=torch.int8)
    doubles = rand(4096, 4096, dtype=torch.float64)

    def rope(x, angle):
        a, b = x.float().chunk(2, -1)
        cos, sin = angle.cos()[None, :, None, :], angle.sin()[None, :, None, :]
        return torch.cat([a * cos - b * sin, b * cos + a * sin], -1).to(x.dtype)

    def rope_pairs(x, angle):
        x = x.float().unflatten(-1, (-1, 2))
        cos, sin = angle.cos()[None, :, None, :], angle.sin()[None, :, None, :]
        return torch.stack([x[..., 0] * cos - x[..., 1] * sin, x[..., 1] * cos + x[..., 0] * sin], -1).flatten(-2).to(half)

    def adam(p, g, m, v):
        m = m.lerp(g, 0.1)
        v = v * 0.999 + g * g * 0.001
        return p * 0.9999 - 1e-3 * m / (v.sqrt() + 1e-8), m, v

    def rms(x, w):
        return (x.float() * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + 1e-6) * w.float()).to(x.dtype)

    def quantize(x):
        scale = x.abs().amax(-1, keepdim=True).float() / 448
        return (x / scale).to(torch.float8_e4m3fn), scale

    def quantize_blocks(x):
        blocks = x.unflatten(-1, (-1, 128))
        scale = blocks.abs().amax(-1, keepdim=True).float() / 448
        return (blocks / scale).to(torch.float8_e4m3fn).flatten(-2), scale.squeeze(-1)

    def unpack(x):
        return torch.stack([(x & 15).to(torch.bfloat16) - 8, (x >> 4).to(torch.bfloat16) - 8], -1).flatten(-2)

    def causal(x):
        mask = torch.ones(1024, 1024, device=x.device, dtype=torch.bool).tril()
        return x.masked_fill(~mask, -float("inf")).softmax(-1)

    def distances(a, b):
        return (a[:, None, :] - b[None, :, :]).abs().sum(-1)

    yield "add_gelu", lambda x, y: F.gelu(x + y), (rows, other)
    yield "swiglu", lambda x, y: F.silu(x) * y, (rows, gate)
    yield "swiglu_halves", lambda x: F.silu(x[:, :8192]) * x[:, 8192:], (wide,)
    yield "dropout_residual", lambda x, y: torch.where((x * 7.13).frac() > 0.1, x / 0.9, 0) + y, (rows, other)
    yield "softmax", lambda x: x.softmax(-1), (rows,)
    yield "softmax_narrow", lambda x: x.softmax(-1), (narrow,)
    yield "softmax_columns", lambda x: x.softmax(0), (wide,)
    yield "log_softmax_wide", lambda x: x.log_softmax(-1), (logits,)
    yield "cross_entropy", lambda x, y: F.cross_entropy(x.float(), y), (logits, labels)
    yield "causal_softmax", causal, (scores,)
    yield "layer_norm", lambda x, w, b: F.layer_norm(x, x.shape[-1:], w, b), (rows, weight, bias)
    yield "layer_norm_residual", lambda x, y, w, b: F.layer_norm(x + y, x.shape[-1:], w, b), (rows, other, weight, bias)
    yield "layer_norm_narrow", lambda x: F.layer_norm(x, x.shape[-1:]), (narrow,)
    yield "layer_norm_wide", lambda x: F.layer_norm(x, x.shape[-1:]), (wide,)
    yield "rms_norm", rms, (rows, weight)
    yield "rms_norm_backward", lambda x, w, g: torch.autograd.functional.vjp(rms, (x, w), g)[1], (rows, weight, other)
    yield "group_norm", lambda x: F.group_norm(x, 32), (planes,)
    yield "batch_norm", lambda x: F.batch_norm(x, None, None, training=True), (planes,)
    yield "batch_norm_last", lambda x: (x - x.mean((0, 1, 2))) * x.var((0, 1, 2)).rsqrt(), (image,)
    yield "sum_rows", lambda x: x.float().sum(-1), (rows,)
    yield "sum_columns", lambda x: x.float().sum(0), (rows,)
    yield "sum_all", lambda x: x.float().pow(2).sum(), (rows,)
    yield "var_mean", lambda x: torch.var_mean(x.float(), -1), (rows,)
    yield "argmax", lambda x: x.argmax(-1), (logits,)
    yield "argmax_columns", lambda x: x.argmax(0), (rows,)
    yield "any_rows", lambda x: (x > 4).any(-1), (rows,)
    yield "cumsum", lambda x: x.float().cumsum(-1), (rows,)
    yield "cumsum_columns", lambda x: x.float().cumsum(0), (rows[:2048],)
    yield "cummax", lambda x: x.cummax(-1)[0], (narrow,)
    yield "logcumsumexp", lambda x: x.float().logcumsumexp(-1), (narrow,)
    yield "cumprod", lambda x: (1 + x.float() / 100).cumprod(-1), (rows,)
    yield "sort", lambda x: x.sort(-1)[0], (narrow,)
    yield "gather_rows", lambda x, i: x[i] * 2, (rows, index)
    yield "embedding_norm", lambda t, i, w: rms(t[i], w), (table, tokens, weight)
    yield "index_add", lambda x, i, y: torch.zeros_like(x).index_add(0, i, y), (rows, index, other)
    yield "transpose_add", lambda x, y: (x.t() + y).relu(), (rows, wide)
    yield "transpose_contiguous", lambda x: x.t().contiguous() * 2, (rows,)
    yield "nchw_to_nhwc", lambda x: (x * 2).permute(0, 2, 3, 1).contiguous(), (planes,)
    yield "heads_permute", lambda x: (x * 0.1).permute(0, 2, 1, 3).contiguous(), (heads,)
    yield "rope", rope, (heads, angles)
    yield "rope_pairs", rope_pairs, (heads, angles)
    yield "adam", adam, tuple(state)
    yield "quantize_rows", quantize, (rows,)
    yield "quantize_blocks", quantize_blocks, (rows,)
    yield "rms_quantize", lambda x, w: quantize(rms(x, w)), (rows, weight)
    yield "unpack_int4", unpack, (bytes_,)
    yield "dequantize", lambda x, s: x.to(torch.bfloat16) * s, (integers, weight)
    yield "max_pool", lambda x: F.max_pool2d(x, 3, 2, 1), (planes,)
    yield "avg_pool", lambda x: F.avg_pool2d(x, 2), (planes,)
    yield "upsample_nearest", lambda x: F.interpolate(x, scale_factor=2), (planes[:8],)
    yield "upsample_bilinear", lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"), (planes[:8],)
    yield "pad_roll", lambda x: F.pad(x, (1, 1, 1, 1)).roll(3, -1), (planes[:16],)
    yield "glu_last", lambda x: F.glu(x, -1), (wide,)
    yield "outer_mask", lambda a, b: (a[:, None] > b[None, :]).to(half), (rand(16384), rand(16384))
    yield "pairwise_l1", distances, (rand(2048, 128), rand(2048, 128))
    yield "transcendental", lambda x: x.float().tanh() + x.float().erf() + x.float().abs().log1p().sin(), (rows,)
    yield "double_sum", lambda x: (x * x).sum(-1), (doubles,)
    yield "double_exp", lambda x: x.exp(), (doubles,)
    yield "integer_math", lambda x: (x.int() * 3 + 7) // 5 % 11, (integers,)
    yield "bucketize", lambda x: torch.bucketize(x.float(), torch.linspace(-3, 3, 33, device=x.device)), (rows,)
    yield "one_hot_sum", lambda i: F.one_hot(i, 512).sum(0), (torch.randint(0, 512, (65536,), device="cuda"),)
    yield "bitonic_topk", lambda x: x[:, :64].contiguous().topk(8, -1)[0] * 2, (narrow,)
    yield "bmm_small", lambda a, b: (a[:, :, None, :] * b[:, None, :, :]).sum(-1), (rand(2048, 32, 64), rand(2048, 32, 64))


def compiled():
    """The cases as `paired` takes them: compiled by torch.compile, with the eager function as reference."""
    import torch

    def case(function, args):
        inner = torch.compile(function, dynamic=False)

        def call(*args):
            return inner(*args)

        call.reference = function
        return lambda: (call, args)

    for name, function, args in cases():
        yield name, case(function, args)


if __name__ == "__main__":
    paired.main(__doc__.splitlines()[0], compiled)
