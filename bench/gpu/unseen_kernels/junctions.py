"""Junctions: what joins the large products of models: norms with what follows, losses, optimizers, routing, rotations, embeddings, sampling, convolutions, small networks in one."""

import math

import torch
import torch.nn.functional as F
import triton
import triton.language as tl
from triton.language.extra import libdevice

from .common import against, arange, case, cdiv, cleared, f32, far, ints, rand, run, uniform, viewed, zeros


@triton.jit
def add_rms_dynamic_bytes_kernel(x_ptr, res_ptr, w_ptr, q_ptr, scale_ptr, new_res_ptr, N, eps, BLOCK: tl.constexpr):
    # x + residual is kept, normed by its root mean square, and goes on as bytes with a scale of the row.
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    x = tl.load(x_ptr + row * N + cols, mask=mask, other=0.0, eviction_policy="evict_first").to(tl.float32)
    x += tl.load(res_ptr + row * N + cols, mask=mask, other=0.0, eviction_policy="evict_first").to(tl.float32)
    tl.store(new_res_ptr + row * N + cols, x.to(new_res_ptr.dtype.element_ty), mask=mask)
    rstd = tl.rsqrt(tl.sum(x * x, axis=0) / N + eps)
    y = x * rstd * tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    amax = tl.max(tl.abs(y), axis=0)
    scale = tl.maximum(amax, 1e-7) / 127.0
    q = libdevice.rint(y / scale)
    q = tl.clamp(q, -127.0, 127.0)
    tl.store(q_ptr + row * N + cols, q.to(tl.int8), mask=mask)
    tl.store(scale_ptr + row, scale)


@case
def junction_of_sums_normed_to_bytes(rows=8000, n=5120):
    x, res, w = rand(rows, n, dtype="bfloat16"), rand(rows, n, dtype="bfloat16"), rand(n, dtype="bfloat16")
    q, scale, new = zeros(rows, n, dtype="int8"), zeros(rows, dtype="float32"), zeros(rows, n, dtype="bfloat16")
    launched = run(add_rms_dynamic_bytes_kernel, (rows,), (x, res, w, q, scale, new, n, 1e-5), (q, scale, new), BLOCK=triton.next_power_of_2(n), num_warps=16)

    def reference():
        z = x.float() + res.float()
        y = z * (z.square().mean(1, keepdim=True) + 1e-5).rsqrt() * w.float()
        s = y.abs().amax(1).clamp(min=1e-7) / 127
        return far((y / s[:, None]).round().clamp(-127, 127)), s, z

    return against(viewed(launched, lambda outs: (far(outs[0]), outs[1], outs[2])), reference)


@triton.jit
def layernorm_bwd_rows_in_turn_kernel(
    DX, DY, X, W, MEAN, RSTD, DW_PART, DB_PART, M, N, BLOCK: tl.constexpr, ROWS: tl.constexpr,
):
    # Gradients of a layer norm: programs go over rows in turn, two at a time, and keep their share of the weights' gradients.
    pid = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    c_ok = cols < N
    w = tl.load(W + cols, mask=c_ok, other=0.0).to(tl.float32)
    dw = tl.zeros((BLOCK,), dtype=tl.float32)
    db = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(pid * ROWS, M, tl.num_programs(0) * ROWS):
        r = start + tl.arange(0, ROWS)
        ok = (r[:, None] < M) & c_ok[None, :]
        at = r[:, None] * N + cols[None, :]
        x = tl.load(X + at, mask=ok, other=0.0).to(tl.float32)
        dy = tl.load(DY + at, mask=ok, other=0.0).to(tl.float32)
        mean = tl.load(MEAN + r, mask=r < M, other=0.0)
        rstd = tl.load(RSTD + r, mask=r < M, other=0.0)
        xhat = tl.where(ok, (x - mean[:, None]) * rstd[:, None], 0.0)
        wdy = w[None, :] * dy
        c1 = tl.sum(xhat * wdy, axis=1) / N
        c2 = tl.sum(wdy, axis=1) / N
        dx = (wdy - (xhat * c1[:, None] + c2[:, None])) * rstd[:, None]
        tl.store(DX + at, dx.to(DX.dtype.element_ty), mask=ok)
        dw += tl.sum(dy * xhat, axis=0)
        db += tl.sum(dy, axis=0)
    tl.store(DW_PART + pid * N + cols, dw, mask=c_ok)
    tl.store(DB_PART + pid * N + cols, db, mask=c_ok)


@case
def junction_of_norms_backward(m=16001, n=1536):
    x, dy, w = rand(m, n, dtype="bfloat16"), rand(m, n, dtype="bfloat16"), rand(n, dtype="bfloat16")
    mean, rstd = x.float().mean(1), (x.float().var(1, correction=0) + 1e-5).rsqrt()
    dx, dw, db = torch.zeros_like(x), zeros(264, n, dtype="float32"), zeros(264, n, dtype="float32")
    launched = run(layernorm_bwd_rows_in_turn_kernel, (264,), (dx, dy, x, w, mean, rstd, dw, db, m, n), (dx, dw, db), BLOCK=triton.next_power_of_2(n), ROWS=2, num_warps=8)

    def reference():
        h = (x.float() - mean[:, None]) * rstd[:, None]
        g = dy.float() * w.float()
        d = (g - h * (h * g).mean(1, keepdim=True) - g.mean(1, keepdim=True)) * rstd[:, None]

        def shares(y):
            y = F.pad(y, (0, 0, 0, -m % 528)).view(-1, 264, 2, n)
            return y.sum((0, 2))

        return d, shares(dy.float() * h), shares(dy.float())

    return against(launched, reference)


@triton.jit
def smoothed_loss_and_gradient_kernel(logits, labels, loss_ptr, z_ptr, grad, V, stride, ignore, inv_count, smoothing, z_weight, BLOCK_V: tl.constexpr):
    # Cross entropy online over a large vocabulary, then the gradient in a second pass; smoothing and a penalty on the log sum; ignored rows are zero.
    row = tl.program_id(0).to(tl.int64)
    label = tl.load(labels + row)
    logits += row * stride
    grad += row * stride
    if label == ignore:
        for v0 in range(0, V, BLOCK_V):
            v = v0 + tl.arange(0, BLOCK_V)
            tl.store(grad + v, tl.zeros((BLOCK_V,), dtype=tl.float32).to(grad.dtype.element_ty), mask=v < V)
        tl.store(loss_ptr + row, 0.0)
        tl.store(z_ptr + row, 0.0)
        return
    m = float("-inf")
    d = 0.0
    total = 0.0
    for v0 in range(0, V, BLOCK_V):
        v = v0 + tl.arange(0, BLOCK_V)
        x = tl.load(logits + v, mask=v < V, other=float("-inf")).to(tl.float32)
        total += tl.sum(tl.where(v < V, x, 0.0))
        new = tl.maximum(m, tl.max(x))
        d = d * tl.exp(m - new) + tl.sum(tl.exp(x - new))
        m = new
    lse = m + tl.log(d)
    own = tl.load(logits + label).to(tl.float32)
    eps = smoothing / V
    z = z_weight * lse * lse
    loss = (1.0 - smoothing) * (lse - own) + smoothing * lse - eps * total
    tl.store(loss_ptr + row, (loss + z) * inv_count)
    tl.store(z_ptr + row, z * inv_count)
    for v0 in range(0, V, BLOCK_V):
        v = v0 + tl.arange(0, BLOCK_V)
        x = tl.load(logits + v, mask=v < V, other=float("-inf")).to(tl.float32)
        p = tl.exp(x - m) / d
        g = p * (1.0 + 2.0 * z_weight * lse) - eps
        g = tl.where(v == label, g - (1.0 - smoothing), g)
        tl.store(grad + v, (g * inv_count).to(grad.dtype.element_ty), mask=v < V)


@case
def junction_of_smoothed_losses(rows=1500, v=50257, smoothing=0.1, z=1e-3):
    x, labels = rand(rows, v, dtype="bfloat16") * 2, ints(0, v, rows, dtype="int64")
    labels = torch.where(arange(rows) % 9 == 4, -100, labels)
    loss, zl, grad = zeros(rows, dtype="float32"), zeros(rows, dtype="float32"), zeros(rows, v, dtype="float32")
    args = x, labels, loss, zl, grad, v, v, -100, 1 / 64, smoothing, z
    launched = run(smoothed_loss_and_gradient_kernel, (rows,), args, (loss, zl, grad), BLOCK_V=8192, num_warps=16)

    def reference():
        a = x.float().requires_grad_()
        with torch.enable_grad():
            ce = F.cross_entropy(a, labels, ignore_index=-100, label_smoothing=smoothing, reduction="none")
            pen = z * a.logsumexp(1).square() * (labels != -100)
            g = torch.autograd.grad(((ce + pen) / 64).sum(), a)[0]
        return ((ce + pen) / 64).detach(), (pen / 64).detach(), g

    return against(launched, reference)


@triton.jit
def tempered_divergence_kernel(student, teacher, out, lse_s, lse_t, V, inv_temp, BETA: tl.constexpr, BLOCK: tl.constexpr):
    # KL of a teacher and a student at a temperature, all in one pass: the sum of differences is rescaled as maxima grow.
    row = tl.program_id(0).to(tl.int64)
    s_row = student + row * V
    t_row = teacher + row * V
    ms = -1e30
    mt = -1e30
    ds = 0.0
    dt = 0.0
    dot = 0.0
    for start in tl.range(0, V, BLOCK, num_stages=3):
        i = start + tl.arange(0, BLOCK)
        s = tl.load(s_row + i, mask=i < V, other=-6e4).to(tl.float32) * inv_temp
        t = tl.load(t_row + i, mask=i < V, other=-6e4).to(tl.float32) * inv_temp
        ms_new = tl.maximum(ms, tl.max(s, 0))
        mt_new = tl.maximum(mt, tl.max(t, 0))
        e = tl.exp(t - mt_new)
        r = tl.exp(mt - mt_new)
        ds = ds * tl.exp(ms - ms_new) + tl.sum(tl.exp(s - ms_new), 0)
        dt = dt * r + tl.sum(e, 0)
        dot = dot * r + tl.sum(tl.where(i < V, e * (t - s), 0.0), 0)
        ms = ms_new
        mt = mt_new
    ls = ms + tl.log(ds)
    lt = mt + tl.log(dt)
    tl.store(out + row, (dot / dt - lt + ls) * BETA)
    tl.store(lse_s + row, ls)
    tl.store(lse_t + row, lt)


@case
def junction_of_teachers_at_a_temperature(rows=2500, v=32000, temp=2.0):
    s, t = rand(rows, v), rand(rows, v)
    out, a, b = (zeros(rows, dtype="float32") for _ in range(3))
    launched = run(tempered_divergence_kernel, (rows,), (s, t, out, a, b, v, 1 / temp), (out, a, b), BETA=4.0, BLOCK=2048, num_warps=8)

    def reference():
        x, y = (s.float() / temp), (t.float() / temp)
        p, q = x.log_softmax(1), y.log_softmax(1)
        return (q.exp() * (q - p)).sum(1) * 4, x.logsumexp(1), y.logsumexp(1)

    return against(launched, reference)


@triton.jit
def clipped_adamw_master_kernel(
    p_ptr, g_ptr, m_ptr, v_ptr, norm_ptr, p_out, low_out, m_out, v_out, n, lr, beta1, beta2, eps, wd, c1, c2, max_norm, BLOCK: tl.constexpr, UNROLL: tl.constexpr,
):
    # AdamW on full parameters with gradients clipped by a norm in memory; a copy in fewer bits is put down beside them.
    clip = tl.minimum(max_norm / (tl.load(norm_ptr) + 1e-6), 1.0)
    start = tl.program_id(0).to(tl.int64) * (BLOCK * UNROLL)
    for i in tl.static_range(UNROLL):
        at = start + i * BLOCK + tl.arange(0, BLOCK)
        ok = at < n
        g = tl.load(g_ptr + at, mask=ok, other=0.0).to(tl.float32) * clip
        p = tl.load(p_ptr + at, mask=ok, other=0.0)
        m = tl.load(m_ptr + at, mask=ok, other=0.0)
        v = tl.load(v_ptr + at, mask=ok, other=0.0)
        p *= 1.0 - lr * wd
        m = m + (1.0 - beta1) * (g - m)
        v = beta2 * v + (1.0 - beta2) * g * g
        p -= lr * (m / c1) / (tl.sqrt(v / c2) + eps)
        tl.store(p_out + at, p, mask=ok)
        tl.store(low_out + at, p.to(tl.bfloat16), mask=ok)
        tl.store(m_out + at, m, mask=ok)
        tl.store(v_out + at, v, mask=ok)


@case
def junction_of_clipped_steps(n=9_000_001):
    p, g, m, v = f32(n), rand(n, dtype="bfloat16"), f32(n) * 0.1, uniform(n)
    norm = uniform(1) * 0 + 3.0
    outs = zeros(n, dtype="float32"), zeros(n, dtype="bfloat16"), zeros(n, dtype="float32"), zeros(n, dtype="float32")
    lr, b1, b2, eps, wd, c1, c2 = 0.01, 0.9, 0.95, 1e-8, 0.1, 1 - 0.9**7, 1 - 0.95**7
    launched = run(clipped_adamw_master_kernel, (cdiv(n, 4096),), (p, g, m, v, norm, *outs, n, lr, b1, b2, eps, wd, c1, c2, 1.0), outs, BLOCK=1024, UNROLL=4, num_warps=4)

    def reference():
        h = g.float() / 3
        a, b = m * b1 + h * (1 - b1), v * b2 + h * h * (1 - b2)
        q = p * (1 - lr * wd) - lr * (a / c1) / ((b / c2).sqrt() + eps)
        return q, q, a, b

    return against(launched, reference)


@triton.jit
def lion_of_bytes_kernel(p_ptr, g_ptr, q_ptr, s_ptr, p_out, q_out, s_out, lr, beta1, beta2, wd, BLOCK: tl.constexpr, BLOCKS: tl.constexpr):
    # Lion with its momentum in bytes, a scale for each block: read, used, renewed and rounded again. Several blocks are rows of a tile.
    b = tl.program_id(0) * BLOCKS + tl.arange(0, BLOCKS)
    at = b[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :]
    g = tl.load(g_ptr + at).to(tl.float32)
    m = tl.load(q_ptr + at).to(tl.float32) * tl.load(s_ptr + b)[:, None]
    p = tl.load(p_ptr + at).to(tl.float32)
    c = m * beta1 + g * (1.0 - beta1)
    sign = tl.where(c > 0, 1.0, tl.where(c < 0, -1.0, 0.0))
    tl.store(p_out + at, p * (1.0 - lr * wd) - lr * sign)
    m = m * beta2 + g * (1.0 - beta2)
    s = tl.max(tl.abs(m), axis=1) / 127.0
    inv = tl.where(s > 0, 1.0 / s, 0.0)
    tl.store(q_out + at, tl.floor(m * inv[:, None] + 0.5).to(tl.int8))
    tl.store(s_out + b, s)


@case
def junction_of_signs_and_bytes(blocks=60000, block=256):
    n = blocks * block
    p, g, q, s = f32(n), f32(n), ints(-127, 128, n, dtype="int8"), uniform(blocks) * 0.01 + 0.001
    outs = zeros(n, dtype="float32"), zeros(n, dtype="int8"), zeros(blocks, dtype="float32")
    launched = run(lion_of_bytes_kernel, (blocks // 8,), (p, g, q, s, *outs, 0.001, 0.9, 0.99, 0.1), outs, BLOCK=block, BLOCKS=8, num_warps=8)

    def reference():
        m = (q.float().view(blocks, block) * s[:, None]).view(-1)
        a = p * (1 - 1e-4) - 0.001 * (m * 0.9 + g * 0.1).sign()
        m = (m * 0.99 + g * 0.01).view(blocks, block)
        t = m.abs().amax(1) / 127
        return a, far((m / t[:, None] + 0.5).floor().view(-1)), t

    return against(viewed(launched, lambda outs: (outs[0], far(outs[1]), outs[2])), reference)


@triton.jit
def router_topk_packed_kernel(logits_ptr, weight_ptr, id_ptr, prob_sum_ptr, T, E: tl.constexpr, K: tl.constexpr, BT: tl.constexpr):
    # Softmax, the best experts by sorting numbers whose low bits are places, weights anew; what each expert is given in all is added for the balance.
    t = tl.program_id(0) * BT + tl.arange(0, BT)
    e = tl.arange(0, E)
    ok = t[:, None] < T
    x = tl.load(logits_ptr + t[:, None] * E + e[None, :], mask=ok, other=0.0).to(tl.float32)
    p = tl.softmax(x, 1, keep_dims=True)
    bits = p.to(tl.int32, bitcast=True).to(tl.int64)
    keys = (bits << 32) | (E - 1 - e)[None, :].to(tl.int64)
    best = tl.topk(keys, K)
    ids = (E - 1) - (best & 0xFFFFFFFF).to(tl.int32)
    w = (best >> 32).to(tl.int32).to(tl.float32, bitcast=True)
    w = w / tl.sum(w, axis=1)[:, None]
    k = tl.arange(0, K)
    tl.store(weight_ptr + t[:, None] * K + k[None, :], w, mask=ok)
    tl.store(id_ptr + t[:, None] * K + k[None, :], ids, mask=ok)
    tl.atomic_add(prob_sum_ptr + e, tl.sum(tl.where(ok, p, 0.0), axis=0))


@case
def junction_of_best_experts_sorted(t=40001, e=128, k=8):
    x = uniform(t, e).argsort(1).float() * 0.05
    w, ids, total = zeros(t, k, dtype="float32"), zeros(t, k, dtype="int32"), zeros(e, dtype="float32")
    launched = run(router_topk_packed_kernel, (cdiv(t, 16),), (x, w, ids, total, t), (w, ids, total), E=e, K=k, BT=16, num_warps=4)

    def reference():
        p = x.softmax(1)
        v, i = p.topk(k, 1)
        return v / v.sum(1, keepdim=True), i.int(), p.sum(0)

    return against(cleared(launched, total), reference)


@triton.jit
def ranks_in_chunks_of_experts_kernel(ids_ptr, rank_ptr, counts_ptr, n, E: tl.constexpr, CHUNK: tl.constexpr):
    # The first step of aligning: in each chunk of assignments how many an expert has, and the place of each among its own.
    pid = tl.program_id(0)
    i = pid * CHUNK + tl.arange(0, CHUNK)
    ok = i < n
    ids = tl.load(ids_ptr + i, mask=ok, other=0)
    e = tl.arange(0, E)
    hot = ((ids[:, None] == e[None, :]) & ok[:, None]).to(tl.int32)
    before = tl.cumsum(hot, axis=0) - hot
    tl.store(rank_ptr + i, tl.sum(before * hot, axis=1), mask=ok)
    counts = tl.histogram(ids, E, mask=ok)
    tl.store(counts_ptr + pid * E + e, counts)


@case
def junction_of_places_among_experts(n=1_000_003, e=64, chunk=128):
    ids = ints(0, e, n)
    rank, counts = zeros(n, dtype="int32"), zeros(cdiv(n, chunk), e, dtype="int32")
    launched = run(ranks_in_chunks_of_experts_kernel, (cdiv(n, chunk),), (ids, rank, counts, n), (rank, counts), E=e, CHUNK=chunk, num_warps=4)

    def reference():
        x = F.pad(ids, (0, -n % chunk), value=-1).view(-1, chunk)
        r = sum(((x[:, j : j + 1] == x) & (arange(chunk) > j)).int() for j in range(chunk))
        c = torch.stack([(x == j).sum(1) for j in range(e)], 1)
        return r.view(-1)[:n].int(), c.int()

    return against(launched, reference)


@triton.jit
def weighted_return_to_tokens_kernel(y_ptr, place_ptr, w_ptr, shared_ptr, out_ptr, D, scale, K: tl.constexpr, BD: tl.constexpr):
    # Rows of experts come back to their token, weighted; dropped ones have no place; a shared expert is added.
    t = tl.program_id(0)
    d = tl.program_id(1) * BD + tl.arange(0, BD)
    ok = d < D
    acc = tl.load(shared_ptr + t * D + d, mask=ok, other=0.0).to(tl.float32)
    for k in tl.static_range(K):
        place = tl.load(place_ptr + t * K + k)
        if place >= 0:
            w = tl.load(w_ptr + t * K + k)
            y = tl.load(y_ptr + place.to(tl.int64) * D + d, mask=ok, other=0.0)
            acc += y.to(tl.float32) * (w * scale)
    tl.store(out_ptr + t * D + d, acc.to(out_ptr.dtype.element_ty), mask=ok)


@case
def junction_of_the_way_back(t=6000, d=2880, k=4):
    y = rand(t * k, d, dtype="bfloat16")
    place = torch.randperm(t * k).to(torch.int32).to("cuda").view(t, k)
    place = torch.where(ints(0, 10, t, k) == 0, -1, place)
    w, shared, out = uniform(t, k), rand(t, d, dtype="bfloat16"), zeros(t, d, dtype="bfloat16")
    launched = run(weighted_return_to_tokens_kernel, (t, cdiv(d, 1024)), (y, place, w, shared, out, d, 1.5), out, K=k, BD=1024, num_warps=4)

    def reference():
        z = shared.float()
        for j in range(k):
            z = z + torch.where(place[:, j, None] >= 0, y[place[:, j].clamp(min=0).long()].float() * w[:, j, None] * 1.5, 0.0)
        return z

    return against(launched, reference)


@triton.jit
def qk_normed_rope_packed_kernel(
    qkv_ptr, qw_ptr, kw_ptr, pos_ptr, cos_ptr, sin_ptr, out_ptr, eps, HQ: tl.constexpr, HK: tl.constexpr, D: tl.constexpr, ROT: tl.constexpr, INTERLEAVED: tl.constexpr,
):
    # Queries and keys of a packed row are normed and turned, by neighbors in pairs; values are copied; only the first part of a head is turned.
    t = tl.program_id(0).to(tl.int64)
    h = tl.program_id(1)
    base = (t * (HQ + 2 * HK) + h) * D
    d = tl.arange(0, D)
    x = tl.load(qkv_ptr + base + d)
    if h < HQ + HK:
        xf = x.to(tl.float32)
        w_ptr = qw_ptr if h < HQ else kw_ptr
        xf = xf * tl.rsqrt(tl.sum(xf * xf) / D + eps) * tl.load(w_ptr + d).to(tl.float32)
        pos = tl.load(pos_ptr + t)
        pair = tl.arange(0, D // 2)
        turned = pair < ROT // 2
        c = tl.load(cos_ptr + pos * (ROT // 2) + pair, mask=turned, other=1.0)
        s = tl.load(sin_ptr + pos * (ROT // 2) + pair, mask=turned, other=0.0)
        if INTERLEAVED:
            a, b = tl.split(xf.reshape(D // 2, 2))
            y = tl.join(a * c - b * s, b * c + a * s).reshape(D)
        else:
            a, b = tl.split(xf.reshape(2, D // 2).permute(1, 0))
            y = tl.join(a * c - b * s, b * c + a * s).permute(1, 0).reshape(D)
        tl.store(out_ptr + base + d, y.to(out_ptr.dtype.element_ty))
    else:
        tl.store(out_ptr + base + d, x)


@case
def junction_of_normed_and_turned(t=4000, hq=24, hk=4, d=128, rot=64):
    heads = hq + 2 * hk
    qkv, qw, kw = rand(t, heads, d, dtype="bfloat16"), rand(d, dtype="bfloat16"), rand(d, dtype="bfloat16")
    pos, out = ints(0, 3000, t), zeros(t, heads, d, dtype="bfloat16")
    angle = arange(3000).float()[:, None] * torch.exp2(-arange(rot // 2).float() / (rot // 2) * 13)
    cos, sin = angle.cos(), angle.sin()
    flags = dict(HQ=hq, HK=hk, D=d, ROT=rot, INTERLEAVED=True)
    launched = run(qk_normed_rope_packed_kernel, (t, heads), (qkv, qw, kw, pos, cos, sin, out, 1e-6), out, num_warps=1, **flags)

    def reference():
        x = qkv.float()
        y = x * (x.square().mean(2, keepdim=True) + 1e-6).rsqrt()
        y = torch.cat((y[:, :hq] * qw.float(), y[:, hq : hq + hk] * kw.float()), 1)
        z = torch.view_as_complex(y[..., :rot].reshape(t, -1, rot // 2, 2).contiguous()) * torch.complex(cos, sin)[pos.long()][:, None]
        y = torch.cat((torch.view_as_real(z).reshape(t, -1, rot), y[..., rot:]), 2)
        return torch.cat((y, x[:, hq + hk :]), 1)

    return against(launched, reference)


@triton.jit
def words_places_types_normed_kernel(ids, types, word, place, kind, gamma, beta, out, mean_ptr, S, D, pad, eps, BD: tl.constexpr, BT: tl.constexpr):
    # Three embeddings added and normed; padding has a row of zeros.
    t = tl.program_id(0) * BT + tl.arange(0, BT)
    d = tl.arange(0, BD)
    ok = (t < tl.num_programs(0) * BT)[:, None] & (d < D)[None, :]
    i = tl.load(ids + t)
    k = tl.load(types + t)
    x = tl.load(word + i.to(tl.int64)[:, None] * D + d[None, :], mask=ok & (i != pad)[:, None], other=0.0).to(tl.float32)
    x += tl.load(place + (t % S)[:, None] * D + d[None, :], mask=ok, other=0.0).to(tl.float32)
    x += tl.load(kind + k[:, None] * D + d[None, :], mask=ok, other=0.0).to(tl.float32)
    mean = tl.sum(x, 1) / D
    x = tl.where(ok, x - mean[:, None], 0.0)
    rstd = 1.0 / tl.sqrt_rn(tl.sum(x * x, 1) / D + eps)
    g = tl.load(gamma + d, mask=d < D, other=0.0)
    b = tl.load(beta + d, mask=d < D, other=0.0)
    y = x * rstd[:, None] * g[None, :] + b[None, :]
    tl.store(out + t[:, None] * D + d[None, :], y.to(tl.float16), mask=ok)
    tl.store(mean_ptr + t, mean)


@case
def junction_of_three_embeddings(b=48, s=512, d=768, vocab=30522):
    ids, types = ints(0, vocab, b, s), ints(0, 2, b, s)
    ids = torch.where(ints(0, 8, b, s) == 0, 0, ids)
    word, place, kind, g, beta = rand(vocab, d), rand(s, d), rand(2, d), f32(d), f32(d)
    out, mean = zeros(b, s, d), zeros(b, s, dtype="float32")
    args = ids, types, word, place, kind, g, beta, out, mean, s, d, 0, 1e-12
    launched = run(words_places_types_normed_kernel, (b * s // 2,), args, (out, mean), BD=1024, BT=2, num_warps=4)

    def reference():
        x = word.float()[ids.long()] * (ids != 0)[..., None] + place.float() + kind.float()[types.long()]
        return F.layer_norm(x, (d,), g, beta, 1e-12), x.mean(2)

    return against(launched, reference)


@triton.jit
def embedding_bags_backward_kernel(grad_ptr, ids_ptr, offsets_ptr, per_ptr, dw_ptr, D, BD: tl.constexpr):
    # Each bag's gradient goes to all its words, weighted by what they count there, by adding in memory.
    bag = tl.program_id(0)
    d = tl.program_id(1) * BD + tl.arange(0, BD)
    ok = d < D
    lo = tl.load(offsets_ptr + bag)
    hi = tl.load(offsets_ptr + bag + 1)
    g = tl.load(grad_ptr + bag * D + d, mask=ok, other=0.0).to(tl.float32)
    if hi > lo:
        g = g / (hi - lo).to(tl.float32)
        for i in range(lo, hi):
            w = tl.load(ids_ptr + i)
            tl.atomic_add(dw_ptr + w.to(tl.int64) * D + d, g * tl.load(per_ptr + i), mask=ok, sem="relaxed")


@case
def junction_of_bags_backward(bags=12000, d=300, vocab=20000, most=12):
    sizes = torch.randint(0, most, (bags,))
    offsets = F.pad(sizes.cumsum(0), (1, 0)).int().to("cuda")
    n = int(sizes.sum())
    ids, per, grad, dw = ints(0, vocab, n), uniform(n), rand(bags, d), zeros(vocab, d, dtype="float32")
    launched = run(embedding_bags_backward_kernel, (bags, cdiv(d, 128)), (grad, ids, offsets, per, dw, d), dw, BD=128, num_warps=1)

    def reference():
        bag = torch.arange(bags).repeat_interleave(sizes).to(ids.device)
        size = sizes.to(ids.device)[bag].float()
        return torch.zeros_like(dw).index_add_(0, ids.long(), grad.float()[bag] * (per / size)[:, None])

    return against(cleared(launched, dw), reference)


@triton.jit
def better_of_two(v1, i1, v2, i2):
    first = (v1 > v2) | ((v1 == v2) & (i1 < i2))
    return tl.where(first, v1, v2), tl.where(first, i1, i2)


@triton.jit
def min_p_gumbel_sampling_kernel(logits, noise, temps, seen, token_ptr, logprob_ptr, V, log_min_p, penalty, BLOCK: tl.constexpr):
    # Penalties for what was said, a temperature of each row, a floor relative to the best, and the maximum with Gumbel noise: two passes.
    row = tl.program_id(0).to(tl.int64)
    temp = tl.load(temps + row)
    peak = tl.full((BLOCK,), float("-inf"), tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    for v0 in range(0, V, BLOCK):
        v = v0 + tl.arange(0, BLOCK)
        x = tl.load(logits + row * V + v, mask=v < V, other=-6e4).to(tl.float32)
        said = tl.load(seen + row * V + v, mask=v < V, other=0)
        x = tl.where(said != 0, tl.where(x > 0, x / penalty, x * penalty), x) / temp
        new = tl.maximum(peak, x)
        total = total * tl.exp(peak - new) + tl.exp(x - new)
        peak = new
    top = tl.max(peak, 0)
    lse = top + tl.log(tl.sum(total * tl.exp(peak - top), 0))
    best = tl.full((BLOCK,), float("-inf"), tl.float32)
    where = tl.zeros((BLOCK,), tl.int32)
    for v0 in range(0, V, BLOCK):
        v = v0 + tl.arange(0, BLOCK)
        x = tl.load(logits + row * V + v, mask=v < V, other=-6e4).to(tl.float32)
        said = tl.load(seen + row * V + v, mask=v < V, other=0)
        x = tl.where(said != 0, tl.where(x > 0, x / penalty, x * penalty), x) / temp
        u = tl.load(noise + row * V + v, mask=v < V, other=0.5)
        y = tl.where(x >= top + log_min_p, x - tl.log(-tl.log(u)), float("-inf"))
        where = tl.where(y > best, v, where)
        best = tl.maximum(y, best)
    best_y, best_v = tl.reduce((best, where), 0, better_of_two)
    x = tl.load(logits + row * V + best_v).to(tl.float32)
    said = tl.load(seen + row * V + best_v)
    if said != 0:
        x = tl.where(x > 0, x / penalty, x * penalty)
    tl.store(token_ptr + row, best_v)
    tl.store(logprob_ptr + row, x / temp - lse)


@case
def junction_of_drawn_words(rows=300, v=100000, min_p=0.02, penalty=1.3):
    x, noise, temps = rand(rows, v) * 3, uniform(rows, v) * 0.998 + 0.001, uniform(rows) + 0.5
    seen = (ints(0, 10, rows, v, dtype="int8") == 0).to(torch.int8)
    token, logprob = zeros(rows, dtype="int32"), zeros(rows, dtype="float32")
    args = x, noise, temps, seen, token, logprob, v, math.log(min_p), penalty
    launched = run(min_p_gumbel_sampling_kernel, (rows,), args, (token, logprob), BLOCK=2048, num_warps=8)

    def reference():
        a = x.float()
        a = torch.where(seen != 0, torch.where(a > 0, a / penalty, a * penalty), a) / temps[:, None]
        keep = a >= a.amax(1, keepdim=True) + math.log(min_p)
        i = (a - (-noise.log()).log()).masked_fill(~keep, float("-inf")).argmax(1)
        return i.int(), a.log_softmax(1).gather(1, i[:, None])[:, 0]

    return against(launched, reference)


@triton.jit
def nucleus_by_sorting_kernel(logits, least_ptr, mass_ptr, N, top_p, BLOCK: tl.constexpr):
    # The nucleus of a row that fits one block: sorted downward, summed along, and the least probability that belongs to it.
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    x = tl.load(logits + row * N + i, mask=i < N, other=float("-inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, 0))
    p = e / tl.sum(e, 0)
    p = tl.sort(p, descending=True)
    before = tl.cumsum(p, 0) - p
    inside = before < top_p
    least = tl.min(tl.where(inside, p, 2.0), 0)
    tl.store(least_ptr + row, least)
    tl.store(mass_ptr + row, tl.sum(tl.where(inside, p, 0.0), 0))


@case
def junction_of_nuclei(rows=2000, n=4000, top_p=0.8):
    x = f32(rows, n) * 2
    least, mass = zeros(rows, dtype="float32"), zeros(rows, dtype="float32")
    launched = run(nucleus_by_sorting_kernel, (rows,), (x, least, mass, n, top_p), (least, mass), BLOCK=triton.next_power_of_2(n), num_warps=8)

    def reference():
        p = x.double().softmax(1).sort(dim=1, descending=True)[0]
        inside = p.cumsum(1) - p < top_p
        return torch.where(inside, p, 2.0).amin(1).float(), (p * inside).sum(1).float()

    return against(launched, reference)


@triton.jit
def strided_conv3x3_nhwc_kernel(
    x_ptr, w_ptr, scale_ptr, shift_ptr, y_ptr, B, H, W, C: tl.constexpr, O, OH, OW, STRIDE: tl.constexpr, PAD: tl.constexpr, KS: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BC: tl.constexpr,
):
    # A convolution as dots: pixels of all pictures are rows; taps and channels are one loop; folded batch norm and hard swish at the end.
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    m_ok = rm < B * OH * OW
    ox = rm % OW
    oy = (rm // OW) % OH
    b = rm // (OW * OH)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    STEPS: tl.constexpr = C // BC
    for step in range(KS * KS * STEPS):
        tap = step // STEPS
        rc = (step % STEPS) * BC + tl.arange(0, BC)
        iy = oy * STRIDE - PAD + tap // KS
        ix = ox * STRIDE - PAD + tap % KS
        inside = m_ok & (iy >= 0) & (iy < H) & (ix >= 0) & (ix < W)
        x = tl.load(x_ptr + ((b * H + iy) * W + ix)[:, None] * C + rc[None, :], mask=inside[:, None], other=0.0)
        w = tl.load(w_ptr + (tap * C + rc)[:, None] * O + rn[None, :], mask=rn[None, :] < O, other=0.0)
        acc = tl.dot(x, w, acc)
    y = acc * tl.load(scale_ptr + rn, mask=rn < O, other=0.0)[None, :] + tl.load(shift_ptr + rn, mask=rn < O, other=0.0)[None, :]
    y = y * tl.minimum(tl.maximum(y + 3.0, 0.0), 6.0) / 6.0
    tl.store(y_ptr + rm[:, None] * O + rn[None, :], y.to(y_ptr.dtype.element_ty), mask=m_ok[:, None] & (rn[None, :] < O))


@case
def junction_of_every_second_pixel(b=16, h=111, w=97, c=96, o=200):
    oh, ow = (h + 1) // 2, (w + 1) // 2
    x, k, scale, shift, y = rand(b, h, w, c), rand(3, 3, c, o), f32(o) * 0.05, f32(o), zeros(b, oh, ow, o)
    args = x, k, scale, shift, y, b, h, w
    flags = dict(C=c, O=o, OH=oh, OW=ow, STRIDE=2, PAD=1, KS=3, BM=64, BN=64, BC=32)
    launched = run(strided_conv3x3_nhwc_kernel, (cdiv(b * oh * ow, 64), cdiv(o, 64)), args, y, num_warps=4, num_stages=4, **flags)

    def reference():
        z = F.conv2d(x.float().permute(0, 3, 1, 2), k.float().permute(3, 2, 0, 1), stride=2, padding=1)
        return F.hardswish(z.permute(0, 2, 3, 1) * scale + shift)

    return against(launched, reference)


@triton.jit
def narrow_network_in_one_kernel(x_ptr, w_ptr, b_ptr, head_ptr, y_ptr, M, LAYERS: tl.constexpr, D: tl.constexpr, BM: tl.constexpr):
    # A narrow network that stays in registers: layers with residuals, all of their weights in a row, and a head of one output.
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    d = tl.arange(0, D)
    x = tl.load(x_ptr + rm[:, None] * D + d[None, :], mask=rm[:, None] < M, other=0.0)
    for layer in tl.static_range(LAYERS):
        w = tl.load(w_ptr + layer * D * D + d[:, None] * D + d[None, :])
        b = tl.load(b_ptr + layer * D + d)
        h = tl.dot(x, w) + b[None, :]
        h = tl.where(h > 0, h, libdevice.expm1(tl.minimum(h, 0.0)))
        x = (h + x.to(tl.float32)).to(tl.float16)
    head = tl.load(head_ptr + d).to(tl.float32)
    tl.store(y_ptr + rm, tl.sum(x.to(tl.float32) * head[None, :], 1), mask=rm < M)


@case
def junction_of_a_narrow_network(m=200003, d=64, layers=5):
    x, w, b, head, y = rand(m, d), rand(layers, d, d) * 0.05, f32(layers, d) * 0.1, rand(d), zeros(m, dtype="float32")
    launched = run(narrow_network_in_one_kernel, (cdiv(m, 128),), (x, w, b, head, y, m), y, LAYERS=layers, D=d, BM=128, num_warps=4)

    def reference():
        z = x.float()
        for i in range(layers):
            z = (F.elu(z.half().float() @ w[i].float() + b[i]) + z.half().float()).half().float()
        return z @ head.float()

    return against(launched, reference)


@triton.jit
def welford_join(m1, s1, n1, m2, s2, n2):
    n = n1 + n2
    part = tl.where(n > 0, n2 / n, 0.0)
    delta = m2 - m1
    return m1 + delta * part, s1 + s2 + delta * delta * n1 * part, n


@triton.jit
def groups_of_channels_silu_kernel(x_ptr, t_ptr, gamma, beta, y_ptr, mean_ptr, rstd_ptr, C, HW, G, eps, BLOCK: tl.constexpr):
    # Group norm of pictures by joined Welford sums, channels shifted and scaled by an embedding of time, then silu.
    pid = tl.program_id(0)
    b = pid // G
    g = pid % G
    per = C // G
    size = per * HW
    base = (b.to(tl.int64) * C + g * per) * HW
    mean = tl.zeros((BLOCK,), tl.float32)
    m2 = tl.zeros((BLOCK,), tl.float32)
    count = tl.zeros((BLOCK,), tl.float32)
    for i0 in range(0, size, BLOCK):
        i = i0 + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + base + i, mask=i < size, other=0.0).to(tl.float32)
        mean, m2, count = welford_join(mean, m2, count, x, tl.zeros_like(x), (i < size).to(tl.float32))
    mu, s2, n = tl.reduce((mean, m2, count), 0, welford_join)
    rstd = tl.rsqrt(s2 / n + eps)
    tl.store(mean_ptr + pid, mu)
    tl.store(rstd_ptr + pid, rstd)
    for i0 in range(0, size, BLOCK):
        i = i0 + tl.arange(0, BLOCK)
        ok = i < size
        c = g * per + i // HW
        x = tl.load(x_ptr + base + i, mask=ok, other=0.0).to(tl.float32)
        ga = tl.load(gamma + c, mask=ok, other=0.0)
        be = tl.load(beta + c, mask=ok, other=0.0)
        scale = tl.load(t_ptr + b * 2 * C + c, mask=ok, other=0.0)
        shift = tl.load(t_ptr + b * 2 * C + C + c, mask=ok, other=0.0)
        y = ((x - mu) * rstd * ga + be) * (1.0 + scale) + shift
        tl.store(y_ptr + base + i, (y * tl.sigmoid(y)).to(y_ptr.dtype.element_ty), mask=ok)


@case
def junction_of_groups_and_time(b=16, c=640, hw=1089, g=32):
    x, t, ga, be, y = rand(b, c, hw), f32(b, 2, c), f32(c), f32(c), zeros(b, c, hw)
    mean, rstd = zeros(b, g, dtype="float32"), zeros(b, g, dtype="float32")
    launched = run(groups_of_channels_silu_kernel, (b * g,), (x, t, ga, be, y, mean, rstd, c, hw, g, 1e-5), (y, mean, rstd), BLOCK=2048, num_warps=8)

    def reference():
        z = x.float().view(b, g, -1)
        n = F.group_norm(x.float(), g, ga, be, 1e-5) * (1 + t[:, 0, :, None]) + t[:, 1, :, None]
        return F.silu(n), z.mean(2), (z.var(2, correction=0) + 1e-5).rsqrt()

    return against(launched, reference)


@triton.jit
def erf_gate_backward_kernel(dy_ptr, gu_ptr, dgu_ptr, y_ptr, N, stride, BLOCK: tl.constexpr):
    # Gradients of gelu(gate) * up, side by side in one row, and the product again.
    row = tl.program_id(1).to(tl.int64)
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ok = i < N
    g = tl.load(gu_ptr + row * stride + i, mask=ok, other=0.0).to(tl.float32)
    u = tl.load(gu_ptr + row * stride + N + i, mask=ok, other=0.0).to(tl.float32)
    dy = tl.load(dy_ptr + row * N + i, mask=ok, other=0.0).to(tl.float32)
    cdf = 0.5 * (1.0 + tl.erf(g * 0.7071067811865476))
    pdf = tl.exp(-0.5 * g * g) * 0.3989422804014327
    tl.store(y_ptr + row * N + i, (g * cdf * u).to(y_ptr.dtype.element_ty), mask=ok)
    tl.store(dgu_ptr + row * stride + i, (dy * u * (cdf + g * pdf)).to(dgu_ptr.dtype.element_ty), mask=ok)
    tl.store(dgu_ptr + row * stride + N + i, (dy * g * cdf).to(dgu_ptr.dtype.element_ty), mask=ok)


@case
def junction_of_gates_backward(rows=3000, n=6912):
    dy, gu = rand(rows, n, dtype="bfloat16"), rand(rows, 2 * n, dtype="bfloat16")
    d, y = torch.zeros_like(gu), torch.zeros_like(dy)
    launched = run(erf_gate_backward_kernel, (cdiv(n, 1024), rows), (dy, gu, d, y, n, 2 * n), (d, y), BLOCK=1024, num_warps=2)

    def reference():
        a = gu.float().requires_grad_()
        with torch.enable_grad():
            z = F.gelu(a[:, :n]) * a[:, n:]
            return torch.autograd.grad(z, a, dy.float())[0], z.detach()

    return against(launched, reference)


@triton.jit
def butterflies_then_nibbles_kernel(x_ptr, signs_ptr, q_ptr, s_ptr, L: tl.constexpr, LOG: tl.constexpr, ROWS: tl.constexpr):
    # Random signs and a fast Hadamard transform of each row by halves, then four bits, two in a byte.
    r = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    i = tl.arange(0, L)
    x = tl.load(x_ptr + r[:, None] * L + i[None, :]).to(tl.float32) * tl.load(signs_ptr + i)[None, :]
    for _ in tl.static_range(LOG):
        a, b = tl.split(tl.reshape(x, (ROWS, L // 2, 2)))
        x = tl.reshape(tl.permute(tl.join(a + b, a - b), (0, 2, 1)), (ROWS, L))
    x = x * (1.0 / tl.sqrt(L * 1.0))
    s = tl.max(tl.abs(x), axis=1) / 7.0
    q = tl.floor(x / s[:, None] + 0.5).to(tl.int32) + 8
    low, high = tl.split(tl.reshape(q, (ROWS, L // 2, 2)))
    byte = (low | (high << 4)).to(tl.uint8)
    tl.store(q_ptr + r[:, None] * (L // 2) + tl.arange(0, L // 2)[None, :], byte)
    tl.store(s_ptr + r, s)


@case
def junction_of_butterflies(rows=100000, log=8):
    n = 2**log
    x, signs = rand(rows, n, dtype="bfloat16"), ints(0, 2, n).float() * 2 - 1
    q, s = zeros(rows, n // 2, dtype="uint8"), zeros(rows, dtype="float32")
    launched = run(butterflies_then_nibbles_kernel, (rows // 4,), (x, signs, q, s), (q, s), L=n, LOG=log, ROWS=4, num_warps=2)

    def reference():
        h = torch.ones(1, 1, device=x.device)
        for _ in range(log):
            h = torch.cat((torch.cat((h, h), 1), torch.cat((h, -h), 1)))
        y = (x.double() * signs) @ h.double() / n**0.5
        t = y.abs().amax(1) / 7
        c = (y / t[:, None] + 0.5).floor() + 8
        return far(c[:, ::2]), far(c[:, 1::2]), t.float()

    return against(viewed(launched, lambda outs: (far(outs[0] & 15), far(outs[0] >> 4), outs[1])), reference)
