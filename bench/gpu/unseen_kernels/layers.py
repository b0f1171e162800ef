"""Layers between products: norms, losses of many kinds, steps of optimizers, samples, selections, transports."""

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

from .common import case, cdiv, cleared, f32, ints, rand, run, uniform, zeros


@triton.jit
def _welford(mean_1, m2_1, w_1, mean_2, m2_2, w_2):
    delta = mean_2 - mean_1
    w = w_1 + w_2
    r = tl.where(w == 0.0, 0.0, w_2 / w)
    return mean_1 + delta * r, m2_1 + m2_2 + delta * delta * w_1 * r, w


@triton.jit
def bn_partial_stats(x_ptr, part_ptr, rows, C, rows_per_program, BLOCK_R: tl.constexpr, BLOCK_C: tl.constexpr):
    # Channels last: a program takes some rows of some channels, and keeps mean, squares and count.
    c = tl.program_id(1) * BLOCK_C + tl.arange(0, BLOCK_C)
    cm = c < C
    first = tl.program_id(0) * rows_per_program
    mean = tl.zeros((BLOCK_C,), tl.float32)
    m2 = tl.zeros((BLOCK_C,), tl.float32)
    w = tl.zeros((BLOCK_C,), tl.float32)
    for r0 in range(0, rows_per_program, BLOCK_R):
        r = first + r0 + tl.arange(0, BLOCK_R)
        ok = (r < rows)[:, None] & cm[None, :]
        x = tl.load(x_ptr + r[:, None] * C + c[None, :], mask=ok, other=0.0).to(tl.float32)
        weight = tl.where(ok, 1.0, 0.0)
        bm, b2, bw = tl.reduce((x, tl.zeros_like(x), weight), 0, _welford)
        mean, m2, w = _welford(mean, m2, w, bm, b2, bw)
    at = part_ptr + tl.program_id(0) * 3 * C + c
    tl.store(at, mean, mask=cm)
    tl.store(at + C, m2, mask=cm)
    tl.store(at + 2 * C, w, mask=cm)


@triton.jit
def bn_finish(part_ptr, run_mean, run_var, mean_ptr, rstd_ptr, new_mean, new_var, C, parts, momentum, eps, PARTS: tl.constexpr, BLOCK_C: tl.constexpr):
    c = tl.program_id(0) * BLOCK_C + tl.arange(0, BLOCK_C)
    p = tl.arange(0, PARTS)
    ok = (p < parts)[:, None] & (c < C)[None, :]
    at = part_ptr + p[:, None] * 3 * C + c[None, :]
    mean, m2, w = tl.load(at, mask=ok, other=0.0), tl.load(at + C, mask=ok, other=0.0), tl.load(at + 2 * C, mask=ok, other=0.0)
    mean, m2, w = tl.reduce((mean, m2, w), 0, _welford)
    var = m2 / w
    m = c < C
    tl.store(mean_ptr + c, mean, mask=m)
    tl.store(rstd_ptr + c, tl.rsqrt(var + eps), mask=m)
    tl.store(new_mean + c, (1 - momentum) * tl.load(run_mean + c, mask=m, other=0.0) + momentum * mean, mask=m)
    tl.store(new_var + c, (1 - momentum) * tl.load(run_var + c, mask=m, other=0.0) + momentum * m2 / (w - 1), mask=m)


@case
def batch_norm_statistics_channels_last():
    rows, c, parts = 128 * 28 * 28, 200, 120
    per = cdiv(rows, parts * 32) * 32
    part = zeros(parts, 3, c, dtype="float32")
    outs = tuple(zeros(c, dtype="float32") for _ in range(4))

    def launch(x, mean, var):
        bn_partial_stats[(parts, cdiv(c, 64))](x, part, rows, c, per, BLOCK_R=32, BLOCK_C=64, num_warps=4)
        bn_finish[(cdiv(c, 16),)](part, mean, var, *outs, c, parts, 0.1, 1e-5, PARTS=128, BLOCK_C=16, num_warps=4)
        return outs

    return launch, (rand(rows, c) + 2, f32(c), uniform(c))


@triton.jit
def adain_kernel(x_ptr, scale_ptr, shift_ptr, y_ptr, HW, C, eps, BLOCK: tl.constexpr):
    # Instance norm in the style of another picture: two walks over a plane.
    plane = tl.program_id(0)
    base = x_ptr + plane.to(tl.int64) * HW
    total = tl.zeros([BLOCK], tl.float32)
    square = tl.zeros([BLOCK], tl.float32)
    for k in tl.range(0, HW, BLOCK):
        i = k + tl.arange(0, BLOCK)
        x = tl.load(base + i, mask=i < HW, other=0.0, eviction_policy="evict_last").to(tl.float32)
        total += x
        square += x * x
    mean = tl.sum(total, axis=0) / HW
    var = tl.sum(square, axis=0) / HW - mean * mean
    rstd = 1 / tl.sqrt(var + eps)
    g = 1.0 + tl.load(scale_ptr + plane)
    b = tl.load(shift_ptr + plane)
    for k in tl.range(0, HW, BLOCK):
        i = k + tl.arange(0, BLOCK)
        x = tl.load(base + i, mask=i < HW, other=0.0).to(tl.float32)
        y = (x - mean) * rstd * g + b
        y = tl.where(y >= 0, y, 0.2 * y)
        tl.store(y_ptr + plane.to(tl.int64) * HW + i, y.to(y_ptr.dtype.element_ty), mask=i < HW)


@case
def adaptive_instance_norm_leaky():
    planes, hw = 8 * 256, 96 * 96
    y = zeros(planes, hw)
    return run(adain_kernel, (planes,), (rand(planes, hw), f32(planes), f32(planes), y, hw, 256, 1e-5), y, BLOCK=2048, num_warps=8)


@triton.jit
def group_stats_nhwc(x_ptr, stat_ptr, HW, C, G, CG: tl.constexpr, BLOCK_P: tl.constexpr, CHUNK: tl.constexpr):
    b, g, part = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    c = tl.arange(0, CG)
    s = tl.zeros((BLOCK_P, CG), tl.float32)
    q = tl.zeros((BLOCK_P, CG), tl.float32)
    for off in range(0, CHUNK, BLOCK_P):
        p = part * CHUNK + off + tl.arange(0, BLOCK_P)
        x = tl.load(x_ptr + (b * HW + p)[:, None] * C + g * CG + c[None, :], mask=(p < HW)[:, None], other=0.0).to(tl.float32)
        s += x
        q += x * x
    at = stat_ptr + ((b * G + g) * tl.num_programs(2) + part) * 2
    tl.store(at, tl.sum(s))
    tl.store(at + 1, tl.sum(q))


@triton.jit
def group_apply_nhwc(x_ptr, stat_ptr, gamma_ptr, beta_ptr, y_ptr, HW, C, parts, inv_count, eps, CG: tl.constexpr, PARTS: tl.constexpr,
                     BLOCK_P: tl.constexpr, BLOCK_C: tl.constexpr):
    b = tl.program_id(2)
    p = tl.program_id(0) * BLOCK_P + tl.arange(0, BLOCK_P)
    c = tl.program_id(1) * BLOCK_C + tl.arange(0, BLOCK_C)
    k = tl.arange(0, PARTS)
    at = stat_ptr + ((b * (C // CG) + c // CG)[:, None] * parts + k[None, :]) * 2
    ok = (k < parts)[None, :]
    mean = tl.sum(tl.load(at, mask=ok, other=0.0), axis=1) * inv_count
    var = tl.sum(tl.load(at + 1, mask=ok, other=0.0), axis=1) * inv_count - mean * mean
    scale = tl.load(gamma_ptr + c) * tl.rsqrt(var + eps)
    shift = tl.load(beta_ptr + c) - mean * scale
    m = (p < HW)[:, None]
    x = tl.load(x_ptr + (b * HW + p)[:, None] * C + c[None, :], mask=m, other=0.0).to(tl.float32)
    y = x * scale[None, :] + shift[None, :]
    y = y * tl.sigmoid(y)
    tl.store(y_ptr + (b * HW + p)[:, None] * C + c[None, :], y.to(tl.bfloat16), mask=m)


@case
def group_norm_nhwc_two_kernels():
    b, hw, c, g, chunk = 16, 64 * 64, 320, 20, 512
    cg, parts = c // g, cdiv(hw, chunk)
    stat, y = zeros(b, g, parts, 2, dtype="float32"), zeros(b, hw, c, dtype="bfloat16")

    def launch(x, gamma, beta):
        group_stats_nhwc[(b, g, parts)](x, stat, hw, c, g, CG=cg, BLOCK_P=64, CHUNK=chunk, num_warps=4)
        group_apply_nhwc[(cdiv(hw, 32), c // 64, b)](x, stat, gamma, beta, y, hw, c, parts, 1.0 / (hw * cg), 1e-5, CG=cg, PARTS=8, BLOCK_P=32, BLOCK_C=64, num_warps=4)
        return y

    return launch, (rand(b, hw, c, dtype="bfloat16"), f32(c), f32(c))


@triton.jit
def modulated_layer_norm(x_ptr, res_ptr, gate_ptr, shift_ptr, scale_ptr, sum_ptr, y_ptr, T, D, eps, BLOCK_D: tl.constexpr):
    # A transformer of pictures: the gated residual is added, normalized without weights, then scaled and shifted for each sample.
    row = tl.program_id(0)
    b = row // T
    d = tl.arange(0, BLOCK_D)
    m = d < D
    gate = tl.load(gate_ptr + b * D + d, mask=m, other=0.0).to(tl.float32)
    s = tl.load(res_ptr + row * D + d, mask=m, other=0.0).to(tl.float32) + gate * tl.load(x_ptr + row * D + d, mask=m, other=0.0).to(tl.float32)
    tl.store(sum_ptr + row * D + d, s.to(sum_ptr.dtype.element_ty), mask=m)
    mean = tl.sum(s, axis=0) / D
    z = tl.where(m, s - mean, 0.0)
    rstd = tl.rsqrt(tl.sum(z * z, axis=0) / D + eps)
    scale = tl.load(scale_ptr + b * D + d, mask=m, other=0.0).to(tl.float32)
    shift = tl.load(shift_ptr + b * D + d, mask=m, other=0.0).to(tl.float32)
    tl.store(y_ptr + row * D + d, (z * rstd * (1.0 + scale) + shift).to(y_ptr.dtype.element_ty), mask=m)


@case
def gated_residual_modulated_norm():
    b, t, d = 8, 4096, 1152
    x = lambda *shape: rand(*shape, dtype="bfloat16")
    total, y = zeros(b * t, d, dtype="bfloat16"), zeros(b * t, d, dtype="bfloat16")
    args = x(b * t, d), x(b * t, d), x(b, d), x(b, d), x(b, d), total, y, t, d, 1e-6
    return run(modulated_layer_norm, (b * t,), args, (total, y), BLOCK_D=2048, num_warps=4)


@triton.jit
def weight_norm_backward(v_ptr, g_ptr, dw_ptr, dv_ptr, dg_ptr, K, BLOCK: tl.constexpr):
    # w = g v / |v|: dg = <dw, v> / |v|, dv = g / |v| (dw - v <dw, v> / |v|^2).
    row = tl.program_id(0)
    vv = tl.zeros((BLOCK,), tl.float32)
    dv = tl.zeros((BLOCK,), tl.float32)
    for k0 in range(0, K, BLOCK):
        k = k0 + tl.arange(0, BLOCK)
        v = tl.load(v_ptr + row * K + k, mask=k < K, other=0.0)
        vv += v * v
        dv += v * tl.load(dw_ptr + row * K + k, mask=k < K, other=0.0).to(tl.float32)
    norm2 = tl.sum(vv, axis=0)
    inner = tl.sum(dv, axis=0)
    inv = tl.rsqrt(norm2)
    tl.store(dg_ptr + row, inner * inv)
    scale = tl.load(g_ptr + row) * inv
    for k0 in range(0, K, BLOCK):
        k = k0 + tl.arange(0, BLOCK)
        v = tl.load(v_ptr + row * K + k, mask=k < K, other=0.0)
        dw = tl.load(dw_ptr + row * K + k, mask=k < K, other=0.0).to(tl.float32)
        tl.store(dv_ptr + row * K + k, scale * (dw - v * (inner / norm2)), mask=k < K)


@case
def weight_norm_gradients():
    n, k = 4096, 3000
    dv, dg = zeros(n, k, dtype="float32"), zeros(n, dtype="float32")
    return run(weight_norm_backward, (n,), (f32(n, k), f32(n), rand(n, k), dv, dg, k), (dv, dg), BLOCK=1024, num_warps=4)


@triton.jit
def softcapped_cross_entropy(logit_ptr, label_ptr, loss_ptr, z_ptr, grad_ptr, V, stride, cap, z_weight, inv_tokens, IGNORE: tl.constexpr,
                             WRITE_GRAD: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    label = tl.load(label_ptr + row)
    x_row = logit_ptr + row * stride
    g_row = grad_ptr + row * stride
    if label == IGNORE:
        if WRITE_GRAD:
            for v0 in range(0, V, BLOCK):
                v = v0 + tl.arange(0, BLOCK)
                tl.store(g_row + v, tl.zeros((BLOCK,), grad_ptr.dtype.element_ty), mask=v < V)
        tl.store(loss_ptr + row, 0.0)
        tl.store(z_ptr + row, 0.0)
        return
    m = float("-inf")
    d = 0.0
    for v0 in range(0, V, BLOCK):
        v = v0 + tl.arange(0, BLOCK)
        x = tl.load(x_row + v, mask=v < V, other=float("-inf")).to(tl.float32)
        x = tl.where(v < V, cap * (2.0 * tl.sigmoid(2.0 * x / cap) - 1.0), float("-inf"))
        new = tl.maximum(m, tl.max(x, axis=0))
        d = d * tl.exp(m - new) + tl.sum(tl.exp(x - new), axis=0)
        m = new
    lse = m + tl.log(d)
    target = cap * (2.0 * tl.sigmoid(2.0 * tl.load(x_row + label).to(tl.float32) / cap) - 1.0)
    tl.store(loss_ptr + row, (lse - target) * inv_tokens)
    tl.store(z_ptr + row, z_weight * lse * lse * inv_tokens)
    if WRITE_GRAD:
        for v0 in range(0, V, BLOCK):
            v = v0 + tl.arange(0, BLOCK)
            x = tl.load(x_row + v, mask=v < V, other=0.0).to(tl.float32)
            t = 2.0 * tl.sigmoid(2.0 * x / cap) - 1.0
            p = tl.exp(cap * t - lse)
            g = p * (1.0 + 2.0 * z_weight * lse) - tl.where(v == label, 1.0, 0.0)
            tl.store(g_row + v, (g * (1.0 - t * t) * inv_tokens).to(grad_ptr.dtype.element_ty), mask=v < V)


@case
def cross_entropy_softcap_z_loss():
    rows, v = 2000, 32003
    label = torch.where(uniform(rows) < 0.1, -100, ints(0, v, rows)).long()
    loss, z, grad = zeros(rows, dtype="float32"), zeros(rows, dtype="float32"), zeros(rows, v, dtype="float32")
    args = rand(rows, v, dtype="bfloat16") * 3, label, loss, z, grad, v, v, 30.0, 1e-4, 1.0
    return run(softcapped_cross_entropy, (rows,), args, (loss, z, grad), IGNORE=-100, WRITE_GRAD=True, BLOCK=4096, num_warps=16)


@triton.jit
def hardest_triplets(x_ptr, sq_ptr, label_ptr, loss_ptr, N, D: tl.constexpr, margin, BLOCK_A: tl.constexpr, BLOCK_B: tl.constexpr):
    # The farthest of the same class, the nearest of another, from a tile of products.
    a = tl.program_id(0) * BLOCK_A + tl.arange(0, BLOCK_A)
    d = tl.arange(0, D)
    am = a < N
    xa = tl.load(x_ptr + a[:, None] * D + d[None, :], mask=am[:, None], other=0.0)
    sa, la = tl.load(sq_ptr + a, mask=am, other=0.0), tl.load(label_ptr + a, mask=am, other=-1)
    pos = tl.full((BLOCK_A,), 0.0, tl.float32)
    neg = tl.full((BLOCK_A,), 1e9, tl.float32)
    for b0 in range(0, N, BLOCK_B):
        b = b0 + tl.arange(0, BLOCK_B)
        bm = b < N
        xb = tl.load(x_ptr + b[None, :] * D + d[:, None], mask=bm[None, :], other=0.0)
        dist = sa[:, None] + tl.load(sq_ptr + b, mask=bm, other=0.0)[None, :] - 2.0 * tl.dot(xa, xb)
        same = la[:, None] == tl.load(label_ptr + b, mask=bm, other=-2)[None, :]
        pos = tl.maximum(pos, tl.max(tl.where(same, dist, 0.0), axis=1))
        neg = tl.minimum(neg, tl.min(tl.where(same | (bm == 0)[None, :], 1e9, dist), axis=1))
    loss = tl.maximum(tl.sqrt(pos) - tl.sqrt(tl.maximum(neg, 0.0)) + margin, 0.0)
    tl.store(loss_ptr + a, loss, mask=am)


@case
def triplet_loss_batch_hard():
    n, d = 8000, 128
    x = rand(n, d)
    loss = zeros(n, dtype="float32")
    args = x, (x.float() ** 2).sum(1), ints(0, 200, n), loss, n, d, 0.5
    return run(hardest_triplets, (cdiv(n, 64),), args, loss, BLOCK_A=64, BLOCK_B=64, num_warps=4, num_stages=3)


@triton.jit
def _add3(a1, b1, c1, a2, b2, c2):
    return a1 + a2, b1 + b2, c1 + c2


@triton.jit
def tversky_sums(logit_ptr, target_ptr, out_ptr, C, HW, BLOCK: tl.constexpr, CHUNK: tl.constexpr):
    # Soft true positives, false positives and false negatives of each class, softmax over classes inside.
    b, part = tl.program_id(0), tl.program_id(1)
    c = tl.arange(0, 16)
    tp = tl.zeros((16,), tl.float32)
    fp = tl.zeros((16,), tl.float32)
    fn = tl.zeros((16,), tl.float32)
    for off in range(0, CHUNK, BLOCK):
        i = part * CHUNK + off + tl.arange(0, BLOCK)
        m = i < HW
        x = tl.load(logit_ptr + (b * C + c)[:, None] * HW + i[None, :], mask=(c < C)[:, None] & m[None, :], other=float("-inf")).to(tl.float32)
        x = tl.where(m[None, :], x, 0.0)
        e = tl.exp(x - tl.max(x, axis=0)[None, :])
        p = tl.where(m[None, :], e / tl.sum(e, axis=0)[None, :], 0.0)
        t = tl.load(target_ptr + b * HW + i, mask=m, other=255)
        y = (t[None, :] == c[:, None]).to(tl.float32)
        u, v, w = tl.reduce((p * y, p * (1.0 - y), (1.0 - p) * y), 1, _add3)
        tp += u
        fp += v
        fn += w
    at = out_ptr + ((b * tl.num_programs(1) + part) * 3) * 16 + c
    tl.store(at, tp)
    tl.store(at + 16, fp)
    tl.store(at + 32, fn)


@case
def tversky_segmentation_sums():
    b, c, hw, chunk = 8, 11, 512 * 512, 4096
    out = zeros(b, hw // chunk, 3, 16, dtype="float32")
    args = rand(b, c, hw), ints(0, c, b, hw, dtype="uint8"), out, c, hw
    return run(tversky_sums, (b, hw // chunk), args, out, BLOCK=256, CHUNK=chunk, num_warps=4)


@triton.jit
def sigmoid_pair_loss(img_desc, txt_desc, part_ptr, N, D, scale, bias, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Each pair is a question of yes or no: log sigmoid of its product, with the sign of the diagonal.
    pid_m, pid_n = tl.program_id(0), tl.program_id(1)
    m, n = pid_m * BM + tl.arange(0, BM), pid_n * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, D, BK):
        acc = tl.dot(img_desc.load([pid_m * BM, k]), txt_desc.load([pid_n * BN, k]).T, acc)
    x = acc * scale + bias
    x = tl.where(m[:, None] == n[None, :], x, -x)
    loss = tl.maximum(-x, 0.0) + tl.log(1.0 + tl.exp(-tl.abs(x)))
    loss = tl.where((m < N)[:, None] & (n < N)[None, :], loss, 0.0)
    tl.store(part_ptr + pid_m * tl.num_programs(1) + pid_n, tl.sum(loss))


@case
def sigmoid_contrastive_pairs():
    n, d = 4000, 768
    norm = lambda: torch.nn.functional.normalize(f32(n, d), dim=1).to(torch.bfloat16)
    part = zeros(cdiv(n, 128), cdiv(n, 128), dtype="float32")
    describe = lambda tensor: TensorDescriptor(tensor, tensor.shape, tensor.stride(), [128, 64])
    args = describe(norm()), describe(norm()), part, n, d, 10.0, -3.0
    return run(sigmoid_pair_loss, (cdiv(n, 128), cdiv(n, 128)), args, part, BM=128, BN=128, BK=64, num_warps=8, num_stages=3)


@triton.jit
def _token_logp(row_ptr, label, V, BLOCK: tl.constexpr):
    m = tl.full((BLOCK,), float("-inf"), tl.float32)
    s = tl.zeros((BLOCK,), tl.float32)
    for v0 in range(0, V, BLOCK):
        v = v0 + tl.arange(0, BLOCK)
        x = tl.load(row_ptr + v, mask=v < V, other=float("-inf")).to(tl.float32)
        new = tl.maximum(m, x)
        s = s * tl.exp(m - new) + tl.exp(x - new)
        m = new
    top = tl.max(m, axis=0)
    return tl.load(row_ptr + label).to(tl.float32) - top - tl.log(tl.sum(s * tl.exp(m - top), axis=0))


@triton.jit
def preference_token_logps(policy_ptr, ref_ptr, label_ptr, ratio_ptr, V, BLOCK: tl.constexpr):
    # The log ratio of a token under a policy and its reference; lanes keep maxima of their own.
    row = tl.program_id(0).to(tl.int64)
    label = tl.load(label_ptr + row)
    ratio = _token_logp(policy_ptr + row * V, label, V, BLOCK) - _token_logp(ref_ptr + row * V, label, V, BLOCK)
    tl.store(ratio_ptr + row, ratio)


@triton.jit
def preference_losses(ratio_ptr, mask_ptr, loss_ptr, margin_ptr, T, pairs, beta, BLOCK: tl.constexpr):
    pair = tl.program_id(0)
    t = tl.arange(0, BLOCK)
    m = t < T
    chosen = tl.sum(tl.load(ratio_ptr + pair * T + t, mask=m, other=0.0) * tl.load(mask_ptr + pair * T + t, mask=m, other=0), axis=0)
    other = pairs + pair
    rejected = tl.sum(tl.load(ratio_ptr + other * T + t, mask=m, other=0.0) * tl.load(mask_ptr + other * T + t, mask=m, other=0), axis=0)
    x = beta * (chosen - rejected)
    tl.store(margin_ptr + pair, x)
    tl.store(loss_ptr + pair, tl.maximum(-x, 0.0) + tl.log(1.0 + tl.exp(-tl.abs(x))))


@case
def preference_loss_two_kernels():
    pairs, t, v = 4, 200, 50257
    ratio, loss, margin = zeros(2 * pairs * t, dtype="float32"), zeros(pairs, dtype="float32"), zeros(pairs, dtype="float32")

    def launch(policy, ref, label, mask):
        preference_token_logps[(2 * pairs * t,)](policy, ref, label, ratio, v, BLOCK=1024, num_warps=4)
        preference_losses[(pairs,)](ratio, mask, loss, margin, t, pairs, 0.1, BLOCK=256, num_warps=4)
        return ratio, loss

    mask = (uniform(2 * pairs, t) < 0.8).to(torch.int8)
    return launch, (rand(2 * pairs * t, v, dtype="bfloat16"), rand(2 * pairs * t, v, dtype="bfloat16"), ints(0, v, 2 * pairs * t), mask)


@triton.jit
def clipped_policy_tokens(new_ptr, old_ptr, ref_ptr, adv_ptr, mask_ptr, loss_ptr, grad_ptr, clip_ptr, n, T, low, high, kl_weight, BLOCK: tl.constexpr):
    # The clipped ratio's loss and the estimate of the divergence to a reference, with gradients and how often it was clipped.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    new, old, ref = tl.load(new_ptr + i, m, 0.0), tl.load(old_ptr + i, m, 0.0), tl.load(ref_ptr + i, m, 0.0)
    adv = tl.load(adv_ptr + i // T, m, 0.0)
    live = tl.load(mask_ptr + i, m, 0) != 0
    ratio = tl.exp(new - old)
    bounded = tl.minimum(tl.maximum(ratio, 1.0 - low), 1.0 + high)
    a, b = ratio * adv, bounded * adv
    clipped = b < a
    d = ref - new
    e = tl.exp(d)
    loss = -tl.minimum(a, b) + kl_weight * (e - d - 1.0)
    grad = tl.where(clipped, 0.0, -a) + kl_weight * (1.0 - e)
    tl.store(loss_ptr + i, tl.where(live, loss, 0.0), mask=m)
    tl.store(grad_ptr + i, tl.where(live, grad, 0.0), mask=m)
    tl.store(clip_ptr + tl.program_id(0), tl.sum((live & clipped).to(tl.int32), axis=0))


@case
def policy_loss_clipped_high():
    sequences, t = 1024, 2000
    n = sequences * t
    old = -uniform(n) * 3
    loss, grad, clips = zeros(n, dtype="float32"), zeros(n, dtype="float32"), zeros(cdiv(n, 1024), dtype="int32")
    args = old + f32(n) * 0.1, old, old + f32(n) * 0.2, f32(sequences), (uniform(n) < 0.7).to(torch.uint8), loss, grad, clips, n, t, 0.2, 0.28, 0.04
    return run(clipped_policy_tokens, (cdiv(n, 1024),), args, loss, BLOCK=1024, num_warps=8)


@triton.jit
def lamb_first(p_ptr, g_ptr, m_ptr, v_ptr, mo_ptr, vo_ptr, u_ptr, norm_ptr, n, beta1, beta2, c1, c2, eps, decay, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    k = i < n
    p, g = tl.load(p_ptr + i, k, 0.0), tl.load(g_ptr + i, k, 0.0).to(tl.float32)
    m = beta1 * tl.load(m_ptr + i, k, 0.0) + (1 - beta1) * g
    v = beta2 * tl.load(v_ptr + i, k, 0.0) + (1 - beta2) * g * g
    u = m * c1 / (tl.sqrt(v * c2) + eps) + decay * p
    tl.store(mo_ptr + i, m, k)
    tl.store(vo_ptr + i, v, k)
    tl.store(u_ptr + i, u, k)
    tl.store(norm_ptr + tl.program_id(0) * 2, tl.sum(p * p, axis=0))
    tl.store(norm_ptr + tl.program_id(0) * 2 + 1, tl.sum(tl.where(k, u * u, 0.0), axis=0))


@triton.jit
def lamb_second(p_ptr, u_ptr, norm_ptr, out_ptr, low_ptr, n, parts, lr, BLOCK: tl.constexpr, BLOCK_P: tl.constexpr):
    # Every program adds up all partial norms again.
    pp = tl.zeros((BLOCK_P,), tl.float32)
    uu = tl.zeros((BLOCK_P,), tl.float32)
    for q0 in range(0, parts, BLOCK_P):
        q = q0 + tl.arange(0, BLOCK_P)
        pp += tl.load(norm_ptr + q * 2, mask=q < parts, other=0.0)
        uu += tl.load(norm_ptr + q * 2 + 1, mask=q < parts, other=0.0)
    trust = tl.sqrt(tl.sum(pp, axis=0)) / tl.sqrt(tl.sum(uu, axis=0) + 1e-12)
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    k = i < n
    new = tl.load(p_ptr + i, k, 0.0) - lr * trust * tl.load(u_ptr + i, k, 0.0)
    tl.store(out_ptr + i, new, k)
    tl.store(low_ptr + i, new.to(tl.bfloat16), k)


@case
def lamb_step_with_trust_ratio():
    n = 4096 * 1000 + 3
    parts = cdiv(n, 2048)
    m, v, u, out = (zeros(n, dtype="float32") for _ in range(4))
    norm, low = zeros(parts, 2, dtype="float32"), zeros(n, dtype="bfloat16")

    def launch(p, g, m0, v0):
        lamb_first[(parts,)](p, g, m0, v0, m, v, u, norm, n, 0.9, 0.999, 1.5, 10.0, 1e-6, 0.01, BLOCK=2048, num_warps=8)
        lamb_second[(cdiv(n, 4096),)](p, u, norm, out, low, n, parts, 0.01, BLOCK=4096, BLOCK_P=512, num_warps=8)
        return out, low

    return launch, (f32(n), rand(n), f32(n) * 0.1, uniform(n) * 0.1)


@triton.jit
def shampoo_statistics(g_ptr, l_ptr, r_ptr, lo_ptr, ro_ptr, N, blocks_n, beta, B: tl.constexpr):
    # A block of a gradient: both of its Gram matrices, averaged.
    i, j = tl.program_id(0), tl.program_id(1)
    r = tl.arange(0, B)
    g = tl.load(g_ptr + (i * B + r)[:, None] * N + j * B + r[None, :]).to(tl.float32)
    left = tl.dot(g, tl.trans(g), input_precision="tf32x3")
    right = tl.dot(tl.trans(g), g, input_precision="tf32x3")
    at = (i * blocks_n + j) * B * B + r[:, None] * B + r[None, :]
    tl.store(lo_ptr + at, beta * tl.load(l_ptr + at) + (1.0 - beta) * left)
    tl.store(ro_ptr + at, beta * tl.load(r_ptr + at) + (1.0 - beta) * right)


@case
def shampoo_block_statistics():
    m, n, b = 2048, 2048, 64
    blocks = (m // b) * (n // b)
    lo, ro = zeros(blocks, b, b, dtype="float32"), zeros(blocks, b, b, dtype="float32")
    args = rand(m, n, dtype="bfloat16"), f32(blocks, b, b), f32(blocks, b, b), lo, ro, n, n // b, 0.95
    return run(shampoo_statistics, (m // b, n // b), args, (lo, ro), B=b, num_warps=8)


@triton.jit
def adan_step(p_ptr, g_ptr, prev_ptr, m_ptr, v_ptr, n_ptr, po, mo, vo, no, numel, lr, b1, b2, b3, eps, decay, BLOCK: tl.constexpr):
    # Gradients, their differences, and squares of what both predict.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    k = i < numel
    p, g = tl.load(p_ptr + i, k).to(tl.float32), tl.load(g_ptr + i, k).to(tl.float32)
    d = g - tl.load(prev_ptr + i, k).to(tl.float32)
    m = tl.load(m_ptr + i, k) + b1 * (g - tl.load(m_ptr + i, k))
    v = tl.load(v_ptr + i, k) + b2 * (d - tl.load(v_ptr + i, k))
    u = g + (1.0 - b2) * d
    n = tl.load(n_ptr + i, k) + b3 * (u * u - tl.load(n_ptr + i, k))
    step = lr / (tl.sqrt(n) + eps)
    p = (p - step * (m + (1.0 - b2) * v)) / (1.0 + lr * decay)
    tl.store(po + i, p.to(po.dtype.element_ty), k)
    tl.store(mo + i, m, k)
    tl.store(vo + i, v, k)
    tl.store(no + i, n, k)


@case
def adan_step_half_weights():
    n = 3000000
    outs = zeros(n, dtype="bfloat16"), zeros(n, dtype="float32"), zeros(n, dtype="float32"), zeros(n, dtype="float32")
    args = (rand(n, dtype="bfloat16"), rand(n, dtype="bfloat16"), rand(n, dtype="bfloat16"), f32(n), f32(n), uniform(n), *outs)
    return run(adan_step, (cdiv(n, 1024),), (*args, n, 1e-2, 0.02, 0.08, 0.01, 1e-8, 0.02), outs, BLOCK=1024, num_warps=4)


@triton.jit
def unscale_and_check(g_ptr, out_ptr, found_ptr, norm_ptr, n, inv_scale, BLOCK: tl.constexpr):
    # Loss scaling: gradients back in float, whether any is not finite, and the squares of those that are.
    pid = tl.program_id(0)
    total = tl.zeros((BLOCK,), tl.float32)
    bad = tl.zeros((BLOCK,), tl.int32)
    for start in range(pid * BLOCK, n, tl.num_programs(0) * BLOCK):
        i = start + tl.arange(0, BLOCK)
        g = tl.load(g_ptr + i, mask=i < n, other=0.0).to(tl.float32)
        finite = tl.abs(g) < float("inf")
        x = tl.where(finite, g, 0.0) * inv_scale
        bad = bad | (finite == 0).to(tl.int32)
        total += x * x
        tl.store(out_ptr + i, x, mask=i < n)
    any_bad = tl.max(bad, axis=0)
    if any_bad != 0:
        tl.atomic_max(found_ptr, 1)
    tl.store(norm_ptr + pid, tl.sum(total, axis=0))


@case
def unscale_gradients_found_inf():
    n, programs = 6000000, 264
    g = rand(n) * 100
    g[12345] = float("inf")
    out, found, norm = zeros(n, dtype="float32"), zeros(1, dtype="int32"), zeros(programs, dtype="float32")
    return cleared(run(unscale_and_check, (programs,), (g, out, found, norm, n, 1 / 1024), (out, found, norm), BLOCK=2048, num_warps=8), found)


@triton.jit
def nucleus_sample_sorted(logit_ptr, token_ptr, out_ptr, count_ptr, V, top_p, seed, BLOCK: tl.constexpr):
    # Probabilities sorted down with their tokens packed below them; the nucleus is what a running sum has not filled.
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    x = tl.load(logit_ptr + row * V + i, mask=i < V, other=float("-inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, axis=0))
    key = (e.to(tl.int32, bitcast=True).to(tl.int64) << 32) | i.to(tl.int64)
    key = tl.sort(key, descending=True)
    p = (key >> 32).to(tl.int32).to(tl.float32, bitcast=True)
    running = tl.cumsum(p, axis=0)
    total = tl.sum(p, axis=0)
    keep = (running - p) < top_p * total
    mass = tl.sum(tl.where(keep, p, 0.0), axis=0)
    u = tl.rand(seed, row) * mass
    at = tl.minimum(tl.sum(((running <= u) & keep).to(tl.int32), axis=0), tl.sum(keep.to(tl.int32), axis=0) - 1)
    slot = tl.sum(tl.where(i == at, key & 0xFFFFFFFF, 0), axis=0).to(tl.int32)
    tl.store(out_ptr + row, tl.load(token_ptr + row * V + slot))
    tl.store(count_ptr + row, mass / total)


@case
def nucleus_sampling_by_sort():
    rows, v = 2048, 1000
    out, mass = zeros(rows, dtype="int32"), zeros(rows, dtype="float32")
    args = rand(rows, v) * 2, ints(0, 50000, rows, v), out, mass, v, 0.9, 4321
    return run(nucleus_sample_sorted, (rows,), args, (out, mass), BLOCK=1024, num_warps=4)


@triton.jit
def alias_draws(prob_ptr, alias_ptr, out_ptr, weight_ptr, n, K, seed, BLOCK: tl.constexpr):
    # Walker's tables: a slot, then itself or its alias; two draws of a call.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    r0, r1, r2, r3 = tl.randint4x(seed, i)
    for half in tl.static_range(2):
        slot = tl.umulhi((r0 if half == 0 else r2).to(tl.uint32, bitcast=True), tl.zeros((BLOCK,), tl.uint32) + K).to(tl.int32)
        u = ((r1 if half == 0 else r3).to(tl.uint32, bitcast=True) >> 8).to(tl.int32).to(tl.float32) * 5.9604645e-08
        m = i * 2 + half < n
        keep = u < tl.load(prob_ptr + slot, mask=m, other=1.0)
        pick = tl.where(keep, slot, tl.load(alias_ptr + slot, mask=m, other=0))
        tl.store(out_ptr + i * 2 + half, pick, mask=m)
        tl.store(weight_ptr + i * 2 + half, tl.log(tl.load(prob_ptr + pick, mask=m, other=1.0) + 0.1), mask=m)


@case
def alias_method_draws():
    n, k = 4000001, 100000
    out, weight = zeros(n, dtype="int32"), zeros(n, dtype="float32")
    return run(alias_draws, (cdiv(n, 1024),), (uniform(k), ints(0, k, k), out, weight, n, k, 31), (out, weight), BLOCK=512, num_warps=4)


@triton.jit
def gumbel_softmax_rows(logit_ptr, soft_ptr, N, inv_tau, seed, BLOCK_R: tl.constexpr, BLOCK: tl.constexpr):
    r = tl.program_id(0) * BLOCK_R + tl.arange(0, BLOCK_R)
    c = tl.arange(0, BLOCK)
    at = r[:, None] * N + c[None, :]
    m = (c < N)[None, :]
    x = tl.load(logit_ptr + at, mask=m, other=float("-inf")).to(tl.float32)
    u = tl.maximum(tl.rand(seed, at), 1e-7)
    x = (x - tl.log(-tl.log(u) + 1e-9)) * inv_tau
    x = tl.where(m, x, float("-inf"))
    e = tl.exp(x - tl.max(x, axis=1)[:, None])
    tl.store(soft_ptr + at, (e / tl.sum(e, axis=1)[:, None]).to(tl.float16), mask=m)


@case
def gumbel_softmax_of_codes():
    rows, n = 32768, 320
    soft = zeros(rows, n)
    return run(gumbel_softmax_rows, (rows // 4,), (rand(rows, n), soft, n, 1 / 0.7, 8), soft, BLOCK_R=4, BLOCK=512, num_warps=4)


@triton.jit
def embedding_gradient_sorted(order_ptr, start_ptr, token_ptr, grad_ptr, out_ptr, uniques, D, BLOCK_T: tl.constexpr, BLOCK_D: tl.constexpr):
    # Tokens that occur, each with its positions: rows are added in order, without atomics.
    d = tl.program_id(1) * BLOCK_D + tl.arange(0, BLOCK_D)
    dm = d < D
    for u in range(tl.program_id(0), uniques, tl.num_programs(0)):
        lo, hi = tl.load(start_ptr + u), tl.load(start_ptr + u + 1)
        acc = tl.zeros((BLOCK_D,), tl.float32)
        for t0 in range(lo, hi, BLOCK_T):
            t = t0 + tl.arange(0, BLOCK_T)
            pos = tl.load(order_ptr + t, mask=t < hi, other=0)
            g = tl.load(grad_ptr + pos[:, None] * D + d[None, :], mask=(t < hi)[:, None] & dm[None, :], other=0.0)
            acc += tl.sum(g.to(tl.float32), axis=0)
        token = tl.load(token_ptr + u).to(tl.int64)
        tl.store(out_ptr + token * D + d, acc.to(out_ptr.dtype.element_ty), mask=dm)


@case
def embedding_backward_sorted():
    tokens, vocabulary, d = 16384, 8000, 1024
    ids = (uniform(tokens) ** 3 * vocabulary).long()
    order = torch.argsort(ids, stable=True)
    unique, counts = torch.unique_consecutive(ids[order], return_counts=True)
    start = torch.zeros(unique.numel() + 1, device="cuda", dtype=torch.int32)
    start[1:] = torch.cumsum(counts, 0)
    out = zeros(vocabulary, d, dtype="bfloat16")
    args = order, start, unique.int(), rand(tokens, d, dtype="bfloat16"), out, unique.numel(), d
    return run(embedding_gradient_sorted, (660, d // 256), args, out, BLOCK_T=8, BLOCK_D=256, num_warps=4)


@triton.jit
def merge_sorted_pairs(a_ptr, b_ptr, out_ptr, NA, NB, STEPS: tl.constexpr, BLOCK: tl.constexpr):
    # The place of an output on its diagonal, by a binary search for how many come from the first list.
    row = tl.program_id(1)
    k = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = k < NA + NB
    a, b = a_ptr + row * NA, b_ptr + row * NB
    lo = tl.maximum(k - NB, 0)
    hi = tl.minimum(k, NA)
    for _ in range(STEPS):
        on = lo < hi
        mid = (lo + hi) // 2
        x = tl.load(a + mid, mask=m & on, other=0.0)
        y = tl.load(b + k - mid - 1, mask=m & on, other=0.0)
        less = x <= y
        lo = tl.where(on & less, mid + 1, lo)
        hi = tl.where(on & (x > y), mid, hi)
    i, j = lo, k - lo
    x = tl.load(a + i, mask=m & (i < NA), other=float("inf"))
    y = tl.load(b + j, mask=m & (j < NB), other=float("inf"))
    tl.store(out_ptr + row * (NA + NB) + k, tl.minimum(x, y), mask=m)


@case
def merge_of_sorted_rows():
    rows, na, nb = 64, 20000, 13001
    out = zeros(rows, na + nb, dtype="float32")
    args = torch.sort(f32(rows, na), dim=1)[0], torch.sort(f32(rows, nb), dim=1)[0], out, na, nb
    return run(merge_sorted_pairs, (cdiv(na + nb, 512), rows), args, out, STEPS=15, BLOCK=512, num_warps=4)


@triton.jit
def sinkhorn_plans(cost_ptr, mu_ptr, nu_ptr, plan_ptr, dist_ptr, inv_eps, iterations, N: tl.constexpr, M: tl.constexpr):
    # Potentials of rows and columns in turn, in the log domain; a problem a program.
    pid = tl.program_id(0)
    i, j = tl.arange(0, N), tl.arange(0, M)
    c = tl.load(cost_ptr + pid * N * M + i[:, None] * M + j[None, :])
    k = -c * inv_eps
    log_mu, log_nu = tl.log(tl.load(mu_ptr + pid * N + i)), tl.log(tl.load(nu_ptr + pid * M + j))
    f = tl.zeros((N,), tl.float32)
    g = tl.zeros((M,), tl.float32)
    for _ in range(iterations):
        x = k + g[None, :]
        top = tl.max(x, axis=1)
        f = log_mu - top - tl.log(tl.sum(tl.exp(x - top[:, None]), axis=1))
        y = k + f[:, None]
        high = tl.max(y, axis=0)
        g = log_nu - high - tl.log(tl.sum(tl.exp(y - high[None, :]), axis=0))
    plan = tl.exp(k + f[:, None] + g[None, :])
    tl.store(plan_ptr + pid * N * M + i[:, None] * M + j[None, :], plan)
    tl.store(dist_ptr + pid, tl.sum(plan * c))


@case
def sinkhorn_in_log_domain():
    batch, n, m = 1000, 64, 32
    soft = lambda *shape: torch.softmax(f32(*shape), -1)
    plan, dist = zeros(batch, n, m, dtype="float32"), zeros(batch, dtype="float32")
    args = uniform(batch, n, m), soft(batch, n), soft(batch, m), plan, dist, 10.0, 20
    return run(sinkhorn_plans, (batch,), args, (plan, dist), N=n, M=m, num_warps=4)


@triton.jit
def _log_add(a, b):
    top = tl.maximum(a, b)
    return top + tl.log(1.0 + tl.exp(-tl.abs(a - b)))


@triton.jit
def _log_affine(l1, a1, l2, a2):
    return l1 + l2, _log_add(a2, a1 + l2)


@triton.jit
def transducer_alphas(blank_ptr, emit_ptr, tlen_ptr, ulen_ptr, alpha_ptr, loss_ptr, T, U, BLOCK_U: tl.constexpr):
    # A frame at a time; along the labels the recursion is a scan of maps x -> log(e^a + e^(x + l)).
    b = tl.program_id(0)
    u = tl.arange(0, BLOCK_U)
    frames, labels = tl.load(tlen_ptr + b), tl.load(ulen_ptr + b)
    low = -1e30
    prev = tl.where(u == 0, 0.0, low)
    final = 0.0
    for t in range(frames):
        row = (b * T + t) * U
        down = tl.load(blank_ptr + row - U + u, mask=(u <= labels) & (t > 0), other=0.0)
        base = prev + down
        step = tl.load(emit_ptr + row + u - 1, mask=(u > 0) & (u <= labels), other=low)
        base = tl.where(u <= labels, base, low)
        if t == 0:
            base = tl.where(u == 0, 0.0, low)
        _, prev = tl.associative_scan((step, base), 0, _log_affine)
        tl.store(alpha_ptr + row + u, prev, mask=u <= labels)
        last = tl.load(blank_ptr + row + labels)
        final = tl.sum(tl.where(u == labels, prev, 0.0), axis=0) + last
    tl.store(loss_ptr + b, -final)


@case
def transducer_loss_forward():
    b, t, u = 32, 150, 50
    logp = torch.log_softmax(f32(b, t, u, 4), -1)
    tlen, ulen = ints(80, t + 1, b), ints(20, u, b)
    alpha, loss = zeros(b, t, u, dtype="float32"), zeros(b, dtype="float32")
    args = logp[..., 0].contiguous(), logp[..., 1].contiguous(), tlen, ulen, alpha, loss, t, u
    return run(transducer_alphas, (b,), args, (alpha, loss), BLOCK_U=64, num_warps=2)


@triton.jit
def quantile_huber(pred_ptr, target_ptr, tau_ptr, loss_ptr, grad_ptr, kappa, NQ: tl.constexpr, BLOCK: tl.constexpr):
    # All pairs of predicted and target quantiles of a state.
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    q = tl.arange(0, NQ)
    theta = tl.load(pred_ptr + row[:, None] * NQ + q[None, :])
    target = tl.load(target_ptr + row[:, None] * NQ + q[None, :])
    tau = tl.load(tau_ptr + q)[None, :, None]
    d = target[:, None, :] - theta[:, :, None]
    small = tl.abs(d) <= kappa
    huber = tl.where(small, 0.5 * d * d, kappa * (tl.abs(d) - 0.5 * kappa))
    weight = tl.abs(tau - tl.where(d < 0, 1.0, 0.0))
    slope = tl.where(small, d, tl.where(d < 0, -kappa, kappa))
    tl.store(loss_ptr + row, tl.sum(tl.sum(weight * huber, axis=2), axis=1) / NQ)
    tl.store(grad_ptr + row[:, None] * NQ + q[None, :], tl.sum(-weight * slope, axis=2) / NQ)


@case
def quantile_huber_pairs():
    rows, nq = 8192, 64
    loss, grad = zeros(rows, dtype="float32"), zeros(rows, nq, dtype="float32")
    tau = (torch.arange(nq, device="cuda") + 0.5) / nq
    return run(quantile_huber, (rows // 2,), (f32(rows, nq), f32(rows, nq), tau, loss, grad, 1.0), (loss, grad), NQ=nq, BLOCK=2, num_warps=4)


@triton.jit
def entmax_15_rows(x_ptr, y_ptr, N, iterations, BLOCK: tl.constexpr):
    # p = max(x / 2 - tau, 0)^2 where tau makes the sum one: found by halving.
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * N + c, mask=c < N, other=-1e9).to(tl.float32) * 0.5
    top = tl.max(x, axis=0)
    lo, hi = top - 1.0, top
    for _ in range(iterations):
        mid = 0.5 * (lo + hi)
        d = tl.maximum(x - mid, 0.0)
        enough = tl.sum(d * d, axis=0) >= 1.0
        lo = tl.where(enough, mid, lo)
        hi = tl.where(enough, hi, mid)
    d = tl.maximum(x - lo, 0.0)
    p = d * d
    tl.store(y_ptr + row * N + c, (p / tl.sum(p, axis=0)).to(y_ptr.dtype.element_ty), mask=c < N)


@case
def entmax_by_bisection():
    rows, n = 4096, 1500
    y = zeros(rows, n, dtype="float32")
    return run(entmax_15_rows, (rows,), (f32(rows, n), y, n, 24), y, BLOCK=2048, num_warps=4)


@triton.jit
def keep_top_activations(x_ptr, y_ptr, thr_ptr, N, K, BLOCK: tl.constexpr):
    # A sparse autoencoder's layer: the K largest of a row stay; their threshold is found bit by bit.
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    x = tl.maximum(tl.load(x_ptr + row * N + c, mask=c < N, other=0.0).to(tl.float32), 0.0)
    key = x.to(tl.int32, bitcast=True)
    threshold = 0
    for step in range(31):
        trial = threshold | (1 << (30 - step))
        count = tl.sum((key >= trial).to(tl.int32), axis=0)
        threshold = tl.where(count >= K, trial, threshold)
    y = tl.where(key >= tl.maximum(threshold, 1), x, 0.0)
    tl.store(y_ptr + row * N + c, y.to(y_ptr.dtype.element_ty), mask=c < N)
    tl.store(thr_ptr + row, threshold.to(tl.float32, bitcast=True))


@case
def keep_top_64_of_16k():
    rows, n = 2048, 16384
    y, threshold = zeros(rows, n), zeros(rows, dtype="float32")
    return run(keep_top_activations, (rows,), (rand(rows, n), y, threshold, n, 64), (y, threshold), BLOCK=16384, num_warps=16)
