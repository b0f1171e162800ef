"""Fusions: several layers in one kernel, gradients that atomics collect, programs that stay and share their tiles out among themselves."""

import math

import torch
import torch.nn.functional as F
import triton
import triton.language as tl
from triton.language.extra import libdevice

from .assorted import with_descriptors
from .common import PROGRAMS, against, arange, case, cdiv, cleared, f32, f8, far, ints, rand, run, uniform, viewed, zeros


@triton.jit
def norm_turn_and_quantize(qkv_ptr, wq_ptr, wk_ptr, cos_ptr, sin_ptr, q_ptr, k_ptr, scale_ptr, T, HQ: tl.constexpr, HK: tl.constexpr, D: tl.constexpr, EPS: tl.constexpr, PH: tl.constexpr):
    # A token a program, all heads at once in two halves: each head normed and turned, then to bytes with a scale a head.
    t = tl.program_id(0)
    h, d = tl.arange(0, PH)[:, None], tl.arange(0, D // 2)[None, :]
    ok = h < HQ + HK
    base = qkv_ptr + t.to(tl.int64) * (HQ + 2 * HK) * D + h * D + d
    a, b = tl.load(base, mask=ok, other=0.0).to(tl.float32), tl.load(base + D // 2, mask=ok, other=0.0).to(tl.float32)
    inv = tl.rsqrt((tl.sum(a * a, 1) + tl.sum(b * b, 1)) / D + EPS)[:, None]
    wa = tl.where(h < HQ, tl.load(wq_ptr + d), tl.load(wk_ptr + d)).to(tl.float32)
    wb = tl.where(h < HQ, tl.load(wq_ptr + D // 2 + d), tl.load(wk_ptr + D // 2 + d)).to(tl.float32)
    a, b = a * inv * wa, b * inv * wb
    cos, sin = tl.load(cos_ptr + t * (D // 2) + d), tl.load(sin_ptr + t * (D // 2) + d)
    a, b = a * cos - b * sin, b * cos + a * sin
    top = tl.maximum(tl.max(tl.maximum(tl.abs(a), tl.abs(b)), 1), 1e-6)
    s = 127.0 / top[:, None]
    qa, qb = libdevice.rint(a * s).to(tl.int8), libdevice.rint(b * s).to(tl.int8)
    to_q, to_k = q_ptr + (t * HQ + h) * D + d, k_ptr + (t * HK + h - HQ) * D + d
    tl.store(to_q, qa, mask=h < HQ)
    tl.store(to_q + D // 2, qb, mask=h < HQ)
    tl.store(to_k, qa, mask=(h >= HQ) & ok)
    tl.store(to_k + D // 2, qb, mask=(h >= HQ) & ok)
    hs = tl.arange(0, PH)
    tl.store(scale_ptr + t * (HQ + HK) + hs, top / 127.0, mask=hs < HQ + HK)


@case
def heads_normed_turned_and_made_bytes_a_token_a_program():
    t, hq, hk, d = 4000, 24, 4, 128
    qkv, wq, wk = rand(t, (hq + 2 * hk) * d, dtype="bfloat16"), rand(d, dtype="bfloat16"), rand(d, dtype="bfloat16")
    angle = arange(t)[:, None] / 10000 ** (arange(d // 2)[None] / (d // 2))
    q, k, scale = zeros(t, hq, d, dtype="int8"), zeros(t, hk, d, dtype="int8"), zeros(t, hq + hk, dtype="float32")
    args = qkv, wq, wk, angle.cos(), angle.sin(), q, k, scale, t
    launched = run(norm_turn_and_quantize, (t,), args, (q, k, scale), HQ=hq, HK=hk, D=d, EPS=1e-6, PH=32, num_warps=8)
    return viewed(launched, lambda outs: (far(outs[0]), far(outs[1]), outs[2]))


@triton.jit
def attention_with_noise(q_ptr, k_ptr, v_ptr, bias_ptr, o_ptr, lse_ptr, seed, keep, T, H, scale, D: tl.constexpr, BQ: tl.constexpr, BK: tl.constexpr):
    # A bias of heads and pairs, causal, dropped by noise of the pair's number, block pointers that advance.
    i, bh = tl.program_id(0), tl.program_id(1)
    head = bh % H
    q_block = tl.make_block_ptr(q_ptr + bh * T * D, (T, D), (D, 1), (i * BQ, 0), (BQ, D), (1, 0))
    k_block = tl.make_block_ptr(k_ptr + bh * T * D, (D, T), (1, D), (0, 0), (D, BK), (0, 1))
    v_block = tl.make_block_ptr(v_ptr + bh * T * D, (T, D), (D, 1), (0, 0), (BK, D), (1, 0))
    bias_block = tl.make_block_ptr(bias_ptr + head * T * T, (T, T), (T, 1), (i * BQ, 0), (BQ, BK), (1, 0))
    q = tl.load(q_block, boundary_check=(0,), padding_option="zero")
    t, s = i * BQ + tl.arange(0, BQ), tl.arange(0, BK)
    m, total, acc = tl.full((BQ,), -1e30, tl.float32), tl.zeros((BQ,), tl.float32), tl.zeros((BQ, D), tl.float32)
    for s0 in range(0, tl.minimum((i + 1) * BQ, T), BK):
        k = tl.load(k_block, boundary_check=(1,), padding_option="zero")
        x = tl.dot(q, k) * scale + tl.load(bias_block, boundary_check=(0, 1), padding_option="zero").to(tl.float32)
        x = tl.where((s0 + s[None, :] <= t[:, None]) & (s0 + s < T)[None, :], x, -1e30)
        high = tl.maximum(m, tl.max(x, 1))
        p = tl.exp(x - high[:, None])
        fix = tl.exp(m - high)
        total = total * fix + tl.sum(p, 1)
        noise = tl.rand(seed, (bh * T + t[:, None]) * T + s0 + s[None, :])
        p = tl.where(noise < keep, p / keep, 0.0)
        v = tl.load(v_block, boundary_check=(0,), padding_option="zero")
        acc = acc * fix[:, None] + tl.dot(p.to(v.dtype), v)
        m = high
        k_block = tl.advance(k_block, (0, BK))
        v_block = tl.advance(v_block, (BK, 0))
        bias_block = tl.advance(bias_block, (0, BK))
    o_block = tl.make_block_ptr(o_ptr + bh * T * D, (T, D), (D, 1), (i * BQ, 0), (BQ, D), (1, 0))
    tl.store(o_block, (acc / total[:, None]).to(o_ptr.dtype.element_ty), boundary_check=(0,))
    tl.store(lse_ptr + bh * T + t, m + tl.log(total), mask=t < T)


@case
def causal_attention_with_bias_and_noise_of_pairs():
    b, h, t, d = 3, 12, 750, 64
    q, k, v, bias = rand(b, h, t, d), rand(b, h, t, d), rand(b, h, t, d), rand(h, t, t)
    o, lse = zeros(b, h, t, d), zeros(b, h, t, dtype="float32")
    args = q, k, v, bias, o, lse, 1234, 0.9, t, h, d**-0.5
    return run(attention_with_noise, (cdiv(t, 64), b * h), args, (o, lse), D=d, BQ=64, BK=64, num_warps=4, num_stages=2)


@triton.jit
def experts_scatter(x_ptr, w_ptr, tokens_ptr, gates_ptr, starts_ptr, y_ptr, K, N, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # An expert is an axis of the grid: as many blocks of its tokens as there are; gathered, multiplied, scattered by atomics.
    e = tl.program_id(2)
    first, last = tl.load(starts_ptr + e), tl.load(starts_ptr + e + 1)
    if tl.program_id(1) * BM >= last - first:
        return
    i = first + tl.program_id(1) * BM + tl.arange(0, BM)
    n, k = tl.program_id(0) * BN + tl.arange(0, BN), tl.arange(0, BK)
    ok = i < last
    token = tl.load(tokens_ptr + i, mask=ok, other=0)
    gate = tl.load(gates_ptr + i, mask=ok, other=0.0)
    a_ptrs = x_ptr + token[:, None] * K + k[None, :]
    b_ptrs = w_ptr + e.to(tl.int64) * N * K + n[None, :] * K + k[:, None]
    acc = tl.zeros((BM, BN), tl.float32)
    for k0 in range(0, K, BK):
        a = tl.load(a_ptrs, mask=ok[:, None] & (k0 + k < K)[None, :], other=0.0)
        b = tl.load(b_ptrs, mask=(n < N)[None, :] & (k0 + k < K)[:, None], other=0.0)
        acc = tl.dot(a, b, acc)
        a_ptrs += BK
        b_ptrs += BK
    tl.atomic_add(y_ptr + token[:, None] * N + n[None, :], acc * gate[:, None], mask=ok[:, None] & (n < N)[None, :], sem="relaxed")


@case
def experts_gather_tokens_and_scatter_by_atomics():
    t, k, n, experts, top = 1500, 1000, 768, 12, 2
    x, w, y = rand(t, k, dtype="bfloat16"), rand(experts, n, k, dtype="bfloat16"), zeros(t, n, dtype="float32")
    flat = torch.cat([(arange(t, "int64") * 5) % 7, 7 + (arange(t, "int64") * 3) % 5])
    order = flat.argsort(stable=True)
    tokens, gates = (order % t).int(), uniform(t * top)
    starts = torch.cat([zeros(1, dtype="int64"), torch.stack([(flat == e).sum() for e in range(experts)]).cumsum(0)])
    args = x, w, tokens, gates, starts, y, k, n
    launched = run(experts_scatter, (cdiv(n, 128), cdiv(t, 64), experts), args, y, BM=64, BN=128, BK=32, num_warps=4, num_stages=4)

    def reference():
        out = torch.zeros(t, n, device=y.device, dtype=torch.float64)
        for e in range(experts):
            rows = slice(int(starts[e]), int(starts[e + 1]))
            at = tokens[rows].long()
            out[at] += x[at].double() @ w[e].double().t() * gates[rows, None]
        return out

    return against(cleared(launched, y), reference)


@triton.jit
def two_layers_of_network(x_ptr, w1_ptr, b1_ptr, w2_ptr, y_ptr, M, D: tl.constexpr, H, BM: tl.constexpr, BH: tl.constexpr):
    # Rows stay; hidden units come in blocks: made, squared where positive, multiplied into the result at once.
    m, d, h = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, D), tl.arange(0, BH)
    x = tl.load(x_ptr + m[:, None] * D + d[None, :], mask=(m < M)[:, None], other=0.0)
    acc = tl.zeros((BM, D), tl.float32)
    for h0 in tl.range(0, H, BH, num_stages=2):
        w1 = tl.load(w1_ptr + (h0 + h)[None, :] * D + d[:, None], mask=(h0 + h < H)[None, :], other=0.0)
        u = tl.dot(x, w1) + tl.load(b1_ptr + h0 + h, mask=h0 + h < H, other=0.0)[None, :]
        u = tl.maximum(u, 0.0)
        w2 = tl.load(w2_ptr + (h0 + h)[:, None] * D + d[None, :], mask=(h0 + h < H)[:, None], other=0.0)
        acc = tl.dot((u * u).to(x.dtype), w2, acc)
    tl.store(y_ptr + m[:, None] * D + d[None, :], acc.to(y_ptr.dtype.element_ty), mask=(m < M)[:, None])


@case
def two_layers_with_hidden_units_in_blocks():
    m, d, h = 9000, 128, 700
    x, w1, b1, w2, y = rand(m, d), rand(h, d) / 11, f32(h), rand(h, d) / 26, zeros(m, d)
    launched = run(two_layers_of_network, (cdiv(m, 64),), (x, w1, b1, w2, y, m), y, D=d, H=h, BM=64, BH=64, num_warps=4)
    return against(launched, lambda: (x.float() @ w1.float().t() + b1).relu().square() @ w2.float())


@triton.jit
def layer_norm_backward_all(x_ptr, dy_ptr, w_ptr, dx_ptr, dw_ptr, db_ptr, M, N, eps, BN: tl.constexpr):
    # Programs that stay: a row after another, the sums for weights in registers until the end, then atomics.
    n = tl.arange(0, BN)
    ok = n < N
    w = tl.load(w_ptr + n, mask=ok, other=0.0).to(tl.float32)
    dw, db = tl.zeros((BN,), tl.float32), tl.zeros((BN,), tl.float32)
    for row in range(tl.program_id(0), M, tl.num_programs(0)):
        x = tl.load(x_ptr + row * N + n, mask=ok, other=0.0).to(tl.float32)
        dy = tl.load(dy_ptr + row * N + n, mask=ok, other=0.0).to(tl.float32)
        mean = tl.sum(x, 0) / N
        d = tl.where(ok, x - mean, 0.0)
        inv = 1 / tl.sqrt(tl.sum(d * d, 0) / N + eps)
        xh, g = d * inv, w * dy
        c1, c2 = tl.sum(xh * g, 0) / N, tl.sum(g, 0) / N
        tl.store(dx_ptr + row * N + n, ((g - xh * c1 - c2) * inv).to(dx_ptr.dtype.element_ty), mask=ok)
        dw += dy * xh
        db += dy
    tl.atomic_add(dw_ptr + n, dw, mask=ok, sem="relaxed", scope="gpu")
    tl.atomic_add(db_ptr + n, db, mask=ok, sem="relaxed", scope="gpu")


@case
def gradients_of_layer_norm_of_1100_by_programs_that_stay():
    m, n = 8000, 1100
    x, dy, w, dx = rand(m, n, dtype="bfloat16"), rand(m, n, dtype="bfloat16"), f32(n), zeros(m, n, dtype="bfloat16")
    dw, db = zeros(n, dtype="float32"), zeros(n, dtype="float32")
    launched = run(layer_norm_backward_all, (2 * PROGRAMS,), (x, dy, w, dx, dw, db, m, n, 1e-5), (dx, dw, db), BN=2048, num_warps=8)

    def reference():
        a, g = x.double(), dy.double()
        mean, var = a.mean(1, keepdim=True), a.var(1, keepdim=True, unbiased=False)
        h = (a - mean) / (var + 1e-5).sqrt()
        z = g * w
        return (z - h * (h * z).mean(1, keepdim=True) - z.mean(1, keepdim=True)) / (var + 1e-5).sqrt(), (g * h).sum(0), g.sum(0)

    return against(cleared(launched, dw, db), reference)


@triton.jit
def tiles_by_tickets(a_ptr, b_ptr, c_ptr, ticket_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr):
    # Each program takes the next tile's number by an atomic until there are none.
    tiles_m, tiles_n = tl.cdiv(M, BM), tl.cdiv(N, BN)
    k = tl.arange(0, BK)
    tile = tl.atomic_add(ticket_ptr, 1, sem="relaxed")
    while tile < tiles_m * tiles_n:
        group = tile // (GROUP * tiles_n)
        height = tl.minimum(tiles_m - group * GROUP, GROUP)
        inner = tile % (GROUP * tiles_n)
        m = (group * GROUP + inner % height) * BM + tl.arange(0, BM)
        n = inner // height * BN + tl.arange(0, BN)
        mm, nn = tl.max_contiguous(tl.multiple_of(m % M, BM), BM), tl.max_contiguous(tl.multiple_of(n % N, BN), BN)
        acc = tl.zeros((BM, BN), tl.float32)
        for k0 in range(0, K, BK):
            a = tl.load(a_ptr + mm[:, None] * K + (k0 + k)[None, :])
            b = tl.load(b_ptr + nn[None, :] * K + (k0 + k)[:, None])
            acc = tl.dot(a, b, acc)
        c = acc.to(tl.bfloat16)
        tl.store(c_ptr + m[:, None] * N + n[None, :], c, mask=(m < M)[:, None] & (n < N)[None, :])
        tile = tl.atomic_add(ticket_ptr, 1, sem="relaxed")


@case
def product_of_tiles_taken_by_tickets():
    m, n, k = 2048, 1920, 1024
    a, b, c, ticket = rand(m, k, dtype="bfloat16"), rand(n, k, dtype="bfloat16"), zeros(m, n, dtype="bfloat16"), zeros(1, dtype="int32")
    launched = run(tiles_by_tickets, (PROGRAMS,), (a, b, c, ticket, m, n, k), c, BM=128, BN=128, BK=64, GROUP=8, num_warps=8, num_stages=3)
    return against(cleared(launched, ticket), lambda: a.float() @ b.float().t())


@triton.jit
def stream_of_iterations(a_ptr, b_ptr, c_ptr, M, N, K, total, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Steps over all tiles are dealt out evenly; a tile that two share is added to by both.
    per = tl.cdiv(total, tl.num_programs(0))
    at = tl.program_id(0) * per
    end = tl.minimum(at + per, total)
    steps = tl.cdiv(K, BK)
    tiles_n = tl.cdiv(N, BN)
    while at < end:
        tile = at // steps
        first = at - tile * steps
        last = tl.minimum(steps, first + end - at)
        m, n = tile // tiles_n * BM + tl.arange(0, BM), tile % tiles_n * BN + tl.arange(0, BN)
        acc = tl.zeros((BM, BN), tl.float32)
        for s in range(first, last):
            k = s * BK + tl.arange(0, BK)
            a = tl.load(a_ptr + m[:, None] * K + k[None, :], mask=(m < M)[:, None] & (k < K)[None, :], other=0.0)
            b = tl.load(b_ptr + k[:, None] * N + n[None, :], mask=(k < K)[:, None] & (n < N)[None, :], other=0.0)
            acc += tl.dot(a, b)
        to = c_ptr + m[:, None] * N + n[None, :]
        ok = (m < M)[:, None] & (n < N)[None, :]
        if (first == 0) & (last == steps):
            tl.store(to, acc, mask=ok)
        else:
            tl.atomic_add(to, acc, mask=ok, sem="relaxed")
        at += last - first


@case
def product_of_steps_dealt_out_evenly_with_shared_tiles():
    m, n, k = 1000, 900, 3000
    a, b, c = rand(m, k), rand(k, n), zeros(m, n, dtype="float32")
    total = cdiv(m, 128) * cdiv(n, 64) * cdiv(k, 64)
    launched = run(stream_of_iterations, (PROGRAMS,), (a, b, c, m, n, k, total), c, BM=128, BN=64, BK=64, num_warps=4, num_stages=3)
    return against(cleared(launched, c), lambda: a.float() @ b.float())


@triton.jit
def conv_norm_pool(x_ptr, w_ptr, mean_ptr, var_ptr, g_ptr, b_ptr, y_ptr, H, W, C: tl.constexpr, O: tl.constexpr, BW: tl.constexpr):
    # Two rows of a 3x3 convolution by dots over channels, normed, cut at zero, and the largest of 2x2 of them by a reshape.
    n, oy, ox = tl.program_id(2), tl.program_id(1), tl.program_id(0)
    c, o, p = tl.arange(0, C), tl.arange(0, O), tl.arange(0, 2 * BW)
    yy, xx = 2 * oy + p // BW, ox * BW + p % BW
    acc = tl.zeros((2 * BW, O), tl.float32)
    for tap in range(9):
        iy, ix = yy + tap // 3 - 1, xx + tap % 3 - 1
        ok = (iy >= 0) & (iy < H) & (ix >= 0) & (ix < W)
        x = tl.load(x_ptr + ((n * H + iy) * W + ix)[:, None] * C + c[None, :], mask=ok[:, None], other=0.0)
        w = tl.load(w_ptr + (tap * C + c)[:, None] * O + o[None, :])
        acc = tl.dot(x, w, acc)
    scale = tl.load(g_ptr + o) * tl.rsqrt(tl.load(var_ptr + o) + 1e-5)
    acc = tl.maximum((acc - tl.load(mean_ptr + o)[None, :]) * scale[None, :] + tl.load(b_ptr + o)[None, :], 0.0)
    pooled = tl.max(tl.max(tl.reshape(acc, (2, BW // 2, 2, O)), 2), 0)
    px = ox * (BW // 2) + tl.arange(0, BW // 2)
    tl.store(y_ptr + ((n * (H // 2) + oy) * (W // 2) + px)[:, None] * O + o[None, :], pooled.to(tl.float16), mask=(px < W // 2)[:, None])


@case
def convolution_normed_cut_and_pooled_in_one():
    n, h, w, c, o = 12, 112, 100, 32, 64
    x, weight, y = rand(n, h, w, c), rand(9, c, o) / 17, zeros(n, h // 2, w // 2, o)
    mean, var, g, b = f32(o) / 4, uniform(o) + 0.5, f32(o), f32(o)
    launched = run(conv_norm_pool, (cdiv(w, 32), h // 2, n), (x, weight, mean, var, g, b, y, h, w), y, C=c, O=o, BW=32, num_warps=4)

    def reference():
        kernel = weight.float().view(3, 3, c, o).permute(3, 2, 0, 1)
        z = F.conv2d(x.float().permute(0, 3, 1, 2), kernel, padding=1)
        return F.max_pool2d(F.batch_norm(z, mean, var, g, b).relu(), 2).permute(0, 2, 3, 1)

    return against(launched, reference)


@triton.jit
def classes_and_gradient(x_ptr, w_ptr, y_ptr, loss_ptr, right_ptr, dx_ptr, M, V, D: tl.constexpr, BM: tl.constexpr, BV: tl.constexpr):
    # A last layer, its loss, how many were right, and the gradient of its input, in two passes over classes; no logits in memory.
    m, d, v = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, D), tl.arange(0, BV)
    ok = m < M
    x = tl.load(x_ptr + m[:, None] * D + d[None, :], mask=ok[:, None], other=0.0)
    label = tl.load(y_ptr + m, mask=ok, other=0)
    top, total, mine = tl.full((BM,), -1e30, tl.float32), tl.zeros((BM,), tl.float32), tl.zeros((BM,), tl.float32)
    for v0 in range(0, V, BV):
        w = tl.load(w_ptr + (v0 + v)[None, :] * D + d[:, None], mask=(v0 + v < V)[None, :], other=0.0)
        z = tl.where((v0 + v < V)[None, :], tl.dot(x, w), -1e30)
        mine += tl.sum(tl.where((v0 + v)[None, :] == label[:, None], z, 0.0), 1)
        high = tl.maximum(top, tl.max(z, 1))
        total = total * tl.exp(top - high) + tl.sum(tl.exp(z - high[:, None]), 1)
        top = high
    lse = top + tl.log(total)
    tl.atomic_add(loss_ptr, tl.sum(tl.where(ok, lse - mine, 0.0), 0) / M, sem="relaxed")
    tl.atomic_add(right_ptr, tl.sum((ok & (mine >= top)).to(tl.int32), 0), sem="relaxed")
    dx = tl.zeros((BM, D), tl.float32)
    for v0 in range(0, V, BV):
        w = tl.load(w_ptr + (v0 + v)[:, None] * D + d[None, :], mask=(v0 + v < V)[:, None], other=0.0)
        z = tl.where((v0 + v < V)[None, :], tl.dot(x, tl.trans(w)), -1e30)
        p = tl.exp(z - lse[:, None]) - tl.where((v0 + v)[None, :] == label[:, None], 1.0, 0.0)
        dx = tl.dot(p.to(w.dtype), w, dx)
    tl.store(dx_ptr + m[:, None] * D + d[None, :], (dx / M).to(dx_ptr.dtype.element_ty), mask=ok[:, None])


@case
def last_layer_with_loss_hits_and_gradient():
    m, v, d = 4000, 1000, 128
    x, w, y = rand(m, d), rand(v, d) / 4, ints(0, v, m, dtype="int64")
    loss, right, dx = zeros(1, dtype="float32"), zeros(1, dtype="int32"), zeros(m, d, dtype="float32")
    launched = run(classes_and_gradient, (cdiv(m, 64),), (x, w, y, loss, right, dx, m, v), (loss, dx), D=d, BM=64, BV=64, num_warps=4)

    def reference():
        z = x.float() @ w.float().t()
        p = z.softmax(1)
        p[arange(m, "int64"), y] -= 1
        return F.cross_entropy(z, y)[None], p @ w.float() / m

    return against(cleared(launched, loss, right), reference)


@triton.jit
def gated_network_by_descriptors(x_desc, w_desc, y_desc, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Two boxes of one matrix of weights: what gates and what is gated lie N rows apart.
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    gate, up = tl.zeros((BM, BN), tl.float32), tl.zeros((BM, BN), tl.float32)
    for k in tl.range(0, K, BK, num_stages=3):
        x = x_desc.load([m, k])
        gate = tl.dot(x, w_desc.load([n, k]).T, gate)
        up = tl.dot(x, w_desc.load([N + n, k]).T, up)
    y_desc.store([m, n], (gate * tl.sigmoid(1.702 * gate) * (up + 1)).to(tl.bfloat16))


@case
def gate_and_gated_from_two_boxes_of_weights():
    from triton.tools.tensor_descriptor import TensorDescriptor

    m, n, k = 1000, 1536, 1024
    x, w, y = rand(m, k, dtype="bfloat16"), rand(2 * n, k, dtype="bfloat16") / 32, zeros(m, n, dtype="bfloat16")
    boxes = [TensorDescriptor.from_tensor(t, box) for t, box in ((x, [128, 64]), (w, [64, 64]), (y, [128, 64]))]
    launched = run(gated_network_by_descriptors, (cdiv(m, 128), n // 64), (*boxes, n, k), y, BM=128, BN=64, BK=64, num_warps=8)

    def reference():
        g, u = (x.float() @ w.float().t()).split(n, 1)
        return g * torch.sigmoid(1.702 * g) * (u + 1)

    return against(launched, reference)


@triton.jit
def queries_gradient_and_bias(q_ptr, k_ptr, v_ptr, do_ptr, lse_ptr, delta_ptr, dq_ptr, dbias_ptr, T, H, scale, D: tl.constexpr, BQ: tl.constexpr, BK: tl.constexpr):
    # Gradients of queries over all keys; the bias belongs to key places, shared by queries and samples: atomics.
    i, bh = tl.program_id(0), tl.program_id(1)
    t, s, d = i * BQ + tl.arange(0, BQ), tl.arange(0, BK), tl.arange(0, D)
    at = (bh * T + t)[:, None] * D + d[None, :]
    q, do = tl.load(q_ptr + at, mask=(t < T)[:, None], other=0.0), tl.load(do_ptr + at, mask=(t < T)[:, None], other=0.0)
    lse, delta = tl.load(lse_ptr + bh * T + t, mask=t < T, other=float("inf")), tl.load(delta_ptr + bh * T + t, mask=t < T, other=0.0)
    dq = tl.zeros((BQ, D), tl.float32)
    for s0 in range(0, T, BK):
        ok = s0 + s < T
        k = tl.load(k_ptr + (bh * T + s0 + s)[:, None] * D + d[None, :], mask=ok[:, None], other=0.0)
        v = tl.load(v_ptr + (bh * T + s0 + s)[:, None] * D + d[None, :], mask=ok[:, None], other=0.0)
        p = tl.exp(tl.dot(q, k.T) * scale - lse[:, None])
        ds = p * (tl.dot(do, v.T) - delta[:, None])
        ds = tl.where(ok[None, :], ds, 0.0)
        tl.atomic_add(dbias_ptr + bh % H * T + s0 + s, tl.sum(ds, 0), mask=ok, sem="relaxed")
        dq = tl.dot(ds.to(k.dtype), k, dq)
    tl.store(dq_ptr + at, (dq * scale).to(dq_ptr.dtype.element_ty), mask=(t < T)[:, None])


@case
def gradients_of_queries_and_of_a_bias_of_places():
    b, h, t, d = 4, 8, 600, 64
    q, k, v, do = (rand(b, h, t, d, dtype="bfloat16") for _ in range(4))
    s = q.float() @ k.float().transpose(2, 3) * d**-0.5
    o = s.softmax(3) @ v.float()
    lse, delta = s.logsumexp(3).contiguous(), (o * do.float()).sum(3).contiguous()
    dq, dbias = zeros(b, h, t, d, dtype="bfloat16"), zeros(h, t, dtype="float32")
    args = q, k, v, do, lse, delta, dq, dbias, t, h, d**-0.5
    return cleared(run(queries_gradient_and_bias, (cdiv(t, 64), b * h), args, (dq, dbias), D=d, BQ=64, BK=32, num_warps=4), dbias)


@triton.jit
def norm_route_choose(x_ptr, res_ptr, w_ptr, gate_ptr, bias_ptr, y_ptr, ids_ptr, weights_ptr, counts_ptr, D, E: tl.constexpr, BD: tl.constexpr, KEEP: tl.constexpr):
    # A residual is added and normed; sigmoid scores of experts; the best by biased scores, one after another; loads counted.
    row = tl.program_id(0)
    e, j = tl.arange(0, E), tl.arange(0, BD)
    square = tl.zeros((BD,), tl.float32)
    for d0 in range(0, D, BD):
        d = d0 + j
        x = tl.load(x_ptr + row * D + d, mask=d < D, other=0.0).to(tl.float32) + tl.load(res_ptr + row * D + d, mask=d < D, other=0.0).to(tl.float32)
        square += x * x
    inv = tl.rsqrt(tl.sum(square, 0) / D + 1e-6)
    scores = tl.zeros((E,), tl.float32)
    for d0 in range(0, D, BD):
        d = d0 + j
        x = tl.load(x_ptr + row * D + d, mask=d < D, other=0.0).to(tl.float32) + tl.load(res_ptr + row * D + d, mask=d < D, other=0.0).to(tl.float32)
        y = (x * inv * tl.load(w_ptr + d, mask=d < D, other=0.0)).to(tl.float16)
        tl.store(y_ptr + row * D + d, y, mask=d < D)
        g = tl.load(gate_ptr + e[:, None] * D + d[None, :], mask=(d < D)[None, :], other=0.0)
        scores += tl.sum(g * y.to(tl.float32)[None, :], 1)
    scores = tl.sigmoid(scores)
    biased = scores + tl.load(bias_ptr + e)
    total = 0.0
    for k in tl.static_range(KEEP):
        best = tl.argmax(biased, 0)
        value = tl.sum(tl.where(e == best, scores, 0.0), 0)
        total += value
        tl.store(ids_ptr + row * KEEP + k, best)
        tl.store(weights_ptr + row * KEEP + k, value)
        tl.atomic_add(counts_ptr + best, 1, sem="relaxed")
        biased = tl.where(e == best, -1.0, biased)
    tl.debug_barrier()
    k = tl.arange(0, KEEP)
    w = tl.load(weights_ptr + row * KEEP + k)
    tl.debug_barrier()
    tl.store(weights_ptr + row * KEEP + k, w / total * 2.5)


@case
def residual_normed_and_routed_to_four_of_32():
    t, d, experts, keep = 3000, 1000, 32, 4
    x, res, w = rand(t, d), rand(t, d), f32(d)
    gate, bias = f32(experts, d) / 30, uniform(experts)
    y, ids, weights, counts = zeros(t, d), zeros(t, keep, dtype="int32"), zeros(t, keep, dtype="float32"), zeros(experts, dtype="int32")
    launched = run(norm_route_choose, (t,), (x, res, w, gate, bias, y, ids, weights, counts, d), (y, ids, weights, counts), E=experts, BD=128, KEEP=keep, num_warps=4)
    # Two experts may be equal but for rounding: the sums of weights over rows say less, but the same.
    return viewed(cleared(launched, counts), lambda outs: (outs[0], outs[2].sort(1)[0], outs[3].float() + 400))


@triton.jit
def embed_place_drop(ids_ptr, table_ptr, place_ptr, w_ptr, b_ptr, y_ptr, kept_ptr, seed, p, T, D, BD: tl.constexpr):
    # Words, places, a norm and noise, four numbers of it at a time from one counter, and what was kept as bits.
    t = tl.program_id(0)
    j = tl.arange(0, BD // 4)
    word = tl.load(ids_ptr + t).to(tl.int64)
    r0, r1, r2, r3 = tl.rand4x(seed, t * (BD // 4) + j)
    lo, hi = tl.join(r0, r1), tl.join(r2, r3)
    noise = tl.reshape(tl.join(lo, hi), (BD,))
    d = tl.arange(0, BD)
    x = tl.load(table_ptr + word * D + d, mask=d < D, other=0.0).to(tl.float32)
    x += tl.load(place_ptr + t % T * D + d, mask=d < D, other=0.0).to(tl.float32)
    mean = tl.sum(x, 0) / D
    c = tl.where(d < D, x - mean, 0.0)
    y = c * tl.rsqrt(tl.sum(c * c, 0) / D + 1e-12) * tl.load(w_ptr + d, mask=d < D, other=0.0) + tl.load(b_ptr + d, mask=d < D, other=0.0)
    keep = noise > p
    tl.store(y_ptr + t * D + d, tl.where(keep, y / (1 - p), 0.0).to(y_ptr.dtype.element_ty), mask=d < D)
    bits = tl.sum(tl.reshape(keep.to(tl.int32), (BD // 32, 32)) << tl.arange(0, 32)[None, :], 1)
    tl.store(kept_ptr + t * (BD // 32) + tl.arange(0, BD // 32), bits)


@case
def words_and_places_normed_and_dropped_with_bits_kept():
    b, t, d, words = 16, 512, 768, 30000
    ids, table, place = ints(0, words, b * t), rand(words, d, dtype="bfloat16"), rand(t, d, dtype="bfloat16")
    w, bias, y, kept = f32(d), f32(d), zeros(b * t, d, dtype="bfloat16"), zeros(b * t, 32, dtype="int32")
    return run(embed_place_drop, (b * t,), (ids, table, place, w, bias, y, kept, 99, 0.1, t, d), (y, kept), BD=1024, num_warps=4)


@triton.jit
def append_and_attend(q_ptr, new_k_ptr, new_v_ptr, k_ptr, v_ptr, length_ptr, o_ptr, scale, stride_b, stride_s, HK: tl.constexpr, G: tl.constexpr, D: tl.constexpr, BS: tl.constexpr):
    # The new token's key and value are written and used from registers; four queries share a head of the cache.
    b, h = tl.program_id(0).to(tl.int64), tl.program_id(1)
    g, d, s = tl.arange(0, G), tl.arange(0, D), tl.arange(0, BS)
    n = tl.load(length_ptr + b)
    q = tl.load(q_ptr + ((b * HK + h) * G + g[:, None]) * D + d[None, :]).to(tl.float32) * scale
    k1, v1 = tl.load(new_k_ptr + (b * HK + h) * D + d), tl.load(new_v_ptr + (b * HK + h) * D + d)
    base = b * stride_b + h * D
    tl.store(k_ptr + base + n * stride_s + d, k1)
    tl.store(v_ptr + base + n * stride_s + d, v1)
    m = tl.sum(q * k1.to(tl.float32)[None, :], 1)
    total = tl.full((G,), 1.0, tl.float32)
    acc = tl.zeros((G, D), tl.float32) + v1.to(tl.float32)[None, :]
    for s0 in range(0, n, BS):
        ok = s0 + s < n
        k = tl.load(k_ptr + base + (s0 + s)[:, None] * stride_s + d[None, :], mask=ok[:, None], other=0.0).to(tl.float32)
        x = tl.sum(q[:, None, :] * k[None, :, :], 2)
        x = tl.where(ok[None, :], x, float("-inf"))
        high = tl.maximum(m, tl.max(x, 1))
        p = tl.exp(x - high[:, None])
        fix = tl.exp(m - high)
        v = tl.load(v_ptr + base + (s0 + s)[:, None] * stride_s + d[None, :], mask=ok[:, None], other=0.0).to(tl.float32)
        acc = acc * fix[:, None] + tl.sum(p[:, :, None] * v[None, :, :], 1)
        total = total * fix + tl.sum(p, 1)
        m = high
    tl.store(o_ptr + ((b * HK + h) * G + g[:, None]) * D + d[None, :], (acc / total[:, None]).to(tl.float16))


@case
def new_tokens_appended_and_attended_by_groups_of_four():
    b, hk, g, d, most = 48, 8, 4, 128, 900
    q, nk, nv = rand(b, hk * g, d), rand(b, hk, d), rand(b, hk, d)
    k, v, length, o = rand(b, most, hk, d), rand(b, most, hk, d), (arange(b) * 53 % 800) + 60, zeros(b, hk * g, d)
    args = q, nk, nv, k, v, length, o, d**-0.5, most * hk * d, hk * d
    return run(append_and_attend, (b, hk), args, o, HK=hk, G=g, D=d, BS=16, num_warps=4)


@triton.jit
def rows_that_stay(x_ptr, mask_ptr, y_ptr, rows, N, stride, scale, BLOCK: tl.constexpr):
    # Programs stay; loads of the next row may begin before this one's end; a mask of bytes is added as infinity.
    i = tl.arange(0, BLOCK)
    for row in tl.range(tl.program_id(0), rows, tl.num_programs(0), num_stages=4):
        x = tl.load(x_ptr + row.to(tl.int64) * stride + i, mask=i < N, other=-float("inf")).to(tl.float32) * scale
        hidden = tl.load(mask_ptr + row % 64 * N + i, mask=i < N, other=1)
        x = tl.where(hidden != 0, -float("inf"), x)
        e = tl.exp(x - tl.max(x, axis=0))
        tl.store(y_ptr + row.to(tl.int64) * stride + i, (e / tl.sum(e, axis=0)).to(tl.float16), mask=i < N)


@case
def softmax_of_masked_rows_of_781_by_programs_that_stay():
    rows, n = 40_000, 781
    x, hidden, y = rand(rows, 784), (uniform(64, n) < 0.2).to(torch.uint8), zeros(rows, 784)
    launched = run(rows_that_stay, (4 * PROGRAMS,), (x, hidden, y, rows, n, 784, 0.3), y, BLOCK=1024, num_warps=4)

    def reference():
        z = (x[:, :n].float() * 0.3).masked_fill(hidden.bool().repeat(rows // 64, 1), float("-inf"))
        return F.pad(z.softmax(1), (0, 3))

    return against(launched, reference)


@triton.jit
def three_adapters(x_ptr, a_ptr, b_ptr, y_ptr, M, K, N, R: tl.constexpr, SLICES: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Rows times three low factors in one loop, of three axes; each times its high factor is added to its slice of the output.
    m, k, r = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, BK), tl.arange(0, SLICES * R)
    low = tl.zeros((BM, SLICES * R), tl.float32)
    for k0 in range(0, K, BK):
        x = tl.load(x_ptr + m[:, None] * K + (k0 + k)[None, :], mask=(m < M)[:, None], other=0.0)
        a = tl.load(a_ptr + r[None, :] * K + (k0 + k)[:, None])
        low = tl.dot(x, a, low)
    parts = tl.permute(tl.reshape(low.to(tl.float16), (BM, SLICES, R)), (1, 0, 2))
    for n0 in range(0, N, BN):
        n = n0 + tl.arange(0, BN)
        s, j = tl.arange(0, SLICES), tl.arange(0, R)
        b = tl.load(b_ptr + (s[:, None, None] * N + n[None, None, :]) * R + j[None, :, None])
        y = tl.dot(parts, b)
        at = m[None, :, None] * (SLICES * N) + s[:, None, None] * N + n[None, None, :]
        old = tl.load(y_ptr + at, mask=(m < M)[None, :, None], other=0.0)
        tl.store(y_ptr + at, (old.to(tl.float32) + y).to(tl.float16), mask=(m < M)[None, :, None])


@case
def low_factors_of_four_slices_by_dots_of_three_axes():
    m, k, n, r, slices = 3000, 1024, 512, 16, 4
    x, a, b, y = rand(m, k), rand(slices * r, k) / 32, rand(slices, n, r) / 4, zeros(m, slices * n)
    launched = run(three_adapters, (cdiv(m, 32),), (x, a, b, y, m, k, n), y, R=r, SLICES=slices, BM=32, BN=64, BK=64, num_warps=4)

    def reference():
        low = (x.float() @ a.float().t()).view(m, slices, r)
        return torch.einsum("msr,snr->msn", low, b.float()).reshape(m, -1)

    return against(cleared(launched, y), reference)


@triton.jit
def turn_back_and_norm_backward(dy_ptr, x_ptr, w_ptr, cos_ptr, sin_ptr, dx_ptr, dw_ptr, T, H, D: tl.constexpr, BT: tl.constexpr):
    # Behind a rotation of neighbors and a norm: pairs are split, turned back, joined; sums for weights by atomics.
    t, d, h = tl.program_id(0) * BT + tl.arange(0, BT), tl.arange(0, D), tl.program_id(1)
    half = tl.arange(0, D // 2)
    ok = (t < T)[:, None]
    at = (t[:, None] * H + h) * D + d[None, :]
    dy = tl.load(dy_ptr + at, mask=ok, other=0.0).to(tl.float32)
    even, odd = tl.split(tl.reshape(dy, (BT, D // 2, 2)))
    cos = tl.load(cos_ptr + t[:, None] * (D // 2) + half[None, :], mask=ok, other=0.0)
    sin = tl.load(sin_ptr + t[:, None] * (D // 2) + half[None, :], mask=ok, other=0.0)
    g = tl.reshape(tl.join(even * cos + odd * sin, odd * cos - even * sin), (BT, D))
    x = tl.load(x_ptr + at, mask=ok, other=0.0).to(tl.float32)
    inv = tl.rsqrt(tl.sum(x * x, 1) / D + 1e-6)[:, None]
    xh = x * inv
    tl.atomic_add(dw_ptr + d, tl.sum(g * xh, 0), sem="relaxed")
    g *= tl.load(w_ptr + d)[None, :]
    dx = (g - xh * (tl.sum(g * xh, 1) / D)[:, None]) * inv
    tl.store(dx_ptr + at, dx.to(dx_ptr.dtype.element_ty), mask=ok)


@case
def gradients_turned_back_and_through_norms_of_heads():
    t, h, d = 5001, 20, 64
    dy, x, w = rand(t, h, d, dtype="bfloat16"), rand(t, h, d, dtype="bfloat16"), f32(d)
    angle = arange(t)[:, None] / 1000 ** (arange(d // 2)[None] / (d // 2))
    cos, sin, dx, dw = angle.cos(), angle.sin(), zeros(t, h, d, dtype="bfloat16"), zeros(d, dtype="float32")
    launched = run(turn_back_and_norm_backward, (cdiv(t, 32), h), (dy, x, w, cos, sin, dx, dw, t, h), (dx, dw), D=d, BT=32, num_warps=4)

    def reference():
        e, o = dy.double()[..., ::2], dy.double()[..., 1::2]
        c, s = cos.double()[:, None], sin.double()[:, None]
        g = torch.stack([e * c + o * s, o * c - e * s], 3).view(t, h, d)
        inv = (x.double().square().mean(2, keepdim=True) + 1e-6).rsqrt()
        xh, z = x.double() * inv, g * w
        return (z - xh * (z * xh).mean(2, keepdim=True)) * inv, (g * xh).sum((0, 1))

    return against(cleared(launched, dw), reference)


@triton.jit
def statistics_after_product(a_ptr, b_ptr, sa_ptr, sb_ptr, c_ptr, top_ptr, sum_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Eight-bit floats with scales of rows and columns; a bounded logit; the largest and the sum of each tile's rows for a softmax to come.
    m, n, k = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN), tl.arange(0, BK)
    tl.assume(K % 16 == 0)
    acc = tl.zeros((BM, BN), tl.float32)
    for k0 in range(0, K, BK):
        a = tl.load(a_ptr + m[:, None] * K + (k0 + k)[None, :], mask=(m < M)[:, None] & (k0 + k < K)[None, :], other=0.0)
        b = tl.load(b_ptr + n[None, :] * K + (k0 + k)[:, None], mask=(n < N)[None, :] & (k0 + k < K)[:, None], other=0.0)
        acc = tl.dot(a, b, acc, max_num_imprecise_acc=32)
    acc *= tl.load(sa_ptr + m, mask=m < M, other=0.0)[:, None] * tl.load(sb_ptr + n, mask=n < N, other=0.0)[None, :]
    z = 30.0 * libdevice.tanh(acc / 30.0)
    tl.store(c_ptr + m[:, None] * N + n[None, :], z.to(tl.float16), mask=(m < M)[:, None] & (n < N)[None, :])
    z = tl.where((n < N)[None, :], z, float("-inf"))
    top = tl.max(z, 1)
    at = tl.program_id(1) * M + m
    tl.store(top_ptr + at, top, mask=m < M)
    tl.store(sum_ptr + at, tl.sum(tl.exp(z - top[:, None]), 1), mask=m < M)


@case
def bounded_logits_of_fp8_with_statistics_of_tiles():
    m, n, k = 600, 5000, 1040
    a, b, sa, sb = f8(m, k), f8(n, k), uniform(m) / 4, uniform(n) / 4
    tiles = cdiv(n, 128)
    c, top, total = zeros(m, n), zeros(tiles, m, dtype="float32"), zeros(tiles, m, dtype="float32")
    launched = run(statistics_after_product, (cdiv(m, 64), tiles), (a, b, sa, sb, c, top, total, m, n, k), (c, top, total), BM=64, BN=128, BK=64, num_warps=4, num_stages=4)

    def reference():
        z = 30 * torch.tanh(a.float() @ b.float().t() * sa[:, None] * sb / 30)
        parts = F.pad(z, (0, -n % 128), value=float("-inf")).view(m, tiles, 128).transpose(0, 1)
        return z, parts.amax(2), (parts - parts.amax(2, keepdim=True)).exp().sum(2)

    return against(launched, reference)


@triton.jit
def specialized_attention(q_ptr, k_ptr, v_ptr, o_ptr, T, D: tl.constexpr, BQ: tl.constexpr, BK: tl.constexpr):
    # Descriptors made in the kernel, warps that only load asked for, powers of two, no masks: lengths divide.
    bh = tl.program_id(1)
    q_desc = tl.make_tensor_descriptor(q_ptr, shape=[tl.num_programs(1) * T, D], strides=[D, 1], block_shape=[BQ, D])
    k_desc = tl.make_tensor_descriptor(k_ptr, shape=[tl.num_programs(1) * T, D], strides=[D, 1], block_shape=[BK, D])
    v_desc = tl.make_tensor_descriptor(v_ptr, shape=[tl.num_programs(1) * T, D], strides=[D, 1], block_shape=[BK, D])
    o_desc = tl.make_tensor_descriptor(o_ptr, shape=[tl.num_programs(1) * T, D], strides=[D, 1], block_shape=[BQ, D])
    row = bh * T + tl.program_id(0) * BQ
    q = (q_desc.load([row, 0]).to(tl.float32) * (1.4426950408889634 / tl.sqrt(float(D)))).to(tl.float16)
    m, total, acc = tl.full((BQ,), float("-inf"), tl.float32), tl.zeros((BQ,), tl.float32), tl.zeros((BQ, D), tl.float32)
    for s in tl.range(0, T, BK, warp_specialize=True):
        x = tl.dot(q, k_desc.load([bh * T + s, 0]).T)
        high = tl.maximum(m, tl.max(x, 1))
        p = tl.math.exp2(x - high[:, None])
        fix = tl.math.exp2(m - high)
        total = total * fix + tl.sum(p, 1)
        acc = tl.dot(p.to(tl.float16), v_desc.load([bh * T + s, 0]), acc * fix[:, None])
        m = high
    o_desc.store([row, 0], (acc / total[:, None]).to(tl.float16))


@case
def attention_with_warps_that_only_load_asked_for_d32():
    h, t, d = 64, 1024, 32
    q, k, v, o = rand(h, t, d), rand(h, t, d), rand(h, t, d), zeros(h, t, d)
    launched = run(specialized_attention, (t // 128, h), (q, k, v, o, t), o, D=d, BQ=128, BK=128, num_warps=4, num_stages=2)
    return against(with_descriptors(launched), lambda: (q.float() @ k.float().transpose(1, 2) / math.sqrt(d)).softmax(2) @ v.float())


@triton.jit
def group_norm_then_mix(x_ptr, g_ptr, b_ptr, w_ptr, y_ptr, P, C: tl.constexpr, GROUPS: tl.constexpr, O: tl.constexpr, BP: tl.constexpr):
    # A sample a program: statistics of groups over a reshape to three axes, then norm, silu, and a product over channels.
    n = tl.program_id(0)
    p, c, o = tl.arange(0, BP), tl.arange(0, C), tl.arange(0, O)
    base = x_ptr + n * P * C
    s, ss = tl.zeros((GROUPS,), tl.float32), tl.zeros((GROUPS,), tl.float32)
    for p0 in range(0, P, BP):
        x = tl.load(base + (p0 + p)[:, None] * C + c[None, :], mask=(p0 + p < P)[:, None], other=0.0).to(tl.float32)
        x = tl.reshape(x, (BP, GROUPS, C // GROUPS))
        s += tl.sum(tl.sum(x, 2), 0)
        ss += tl.sum(tl.sum(x * x, 2), 0)
    count = P * (C // GROUPS)
    mean = s / count
    inv = tl.rsqrt(ss / count - mean * mean + 1e-5)
    mean_c = tl.reshape(tl.broadcast_to(mean[:, None], (GROUPS, C // GROUPS)), (C,))
    inv_c = tl.reshape(tl.broadcast_to(inv[:, None], (GROUPS, C // GROUPS)), (C,)) * tl.load(g_ptr + c)
    shift = tl.load(b_ptr + c) - mean_c * inv_c
    w = tl.load(w_ptr + c[:, None] * O + o[None, :])
    for p0 in range(0, P, BP):
        x = tl.load(base + (p0 + p)[:, None] * C + c[None, :], mask=(p0 + p < P)[:, None], other=0.0).to(tl.float32)
        z = x * inv_c[None, :] + shift[None, :]
        z = z * tl.sigmoid(z)
        y = tl.dot(z.to(tl.float16), w)
        tl.store(y_ptr + (n * P + p0 + p)[:, None] * O + o[None, :], y.to(tl.float16), mask=(p0 + p < P)[:, None])


@case
def group_norm_silu_and_product_of_a_sample_a_program():
    n, p, c, o = 264, 400, 128, 64
    x, g, b, w, y = rand(n, p, c), f32(c), f32(c), rand(c, o) / 11, zeros(n, p, o)
    launched = run(group_norm_then_mix, (n,), (x, g, b, w, y, p), y, C=c, GROUPS=8, O=o, BP=64, num_warps=8)
    return against(launched, lambda: F.silu(F.group_norm(x.float().transpose(1, 2), 8, g, b)).transpose(1, 2) @ w.float())


@triton.jit
def positions_and_counts(ids_ptr, place_ptr, count_ptr, N, E: tl.constexpr, BLOCK: tl.constexpr):
    # Of each token its place among those of its expert within the block, and how many these are; all are counted by histograms.
    i, e = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), tl.arange(0, E)
    id = tl.load(ids_ptr + i, mask=i < N, other=E - 1)
    hits = (id[:, None] == e[None, :]).to(tl.int32)
    before = tl.cumsum(hits, 0) - hits
    tl.atomic_add(count_ptr + e, tl.histogram(id, E), sem="relaxed")
    mine = tl.sum(before * hits, 1)
    same = tl.gather(tl.sum(hits, 0), id, 0)
    tl.store(place_ptr + i, mine * 1024 + same, mask=i < N)


@case
def places_of_tokens_among_those_of_their_expert():
    n, experts = 400_000, 64
    ids, place, count = ints(0, experts - 1, n), zeros(n, dtype="int32"), zeros(experts, dtype="int32")
    launched = run(positions_and_counts, (cdiv(n, 128),), (ids, place, count, n), (place, count), E=experts, BLOCK=128, num_warps=4)

    def reference():
        hits = F.one_hot(ids.long(), experts).view(-1, 128, experts)
        before = (hits.cumsum(1) - hits).gather(2, ids.long().view(-1, 128, 1))
        same = hits.sum(1, keepdim=True).expand_as(hits).gather(2, ids.long().view(-1, 128, 1))
        return (before * 1024 + same).view(-1), ids.long().bincount(minlength=experts)

    return against(cleared(launched, count), reference)


@triton.jit
def swiglu_backward_recomputed(dy_ptr, gu_ptr, w_ptr, dgu_ptr, amax_ptr, M, N, BM: tl.constexpr, BN: tl.constexpr):
    # A row's weight multiplies behind the gate; two gradients side by side, and the largest of both in an integer by atomic maxima.
    m, n = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    ok = (m < M)[:, None] & (n < N)[None, :]
    dy = tl.load(dy_ptr + m[:, None] * N + n[None, :], mask=ok, other=0.0).to(tl.float32)
    g = tl.load(gu_ptr + m[:, None] * (2 * N) + n[None, :], mask=ok, other=0.0).to(tl.float32)
    u = tl.load(gu_ptr + m[:, None] * (2 * N) + N + n[None, :], mask=ok, other=0.0).to(tl.float32)
    dy *= tl.load(w_ptr + m, mask=m < M, other=0.0)[:, None]
    s = 1 / (1 + tl.exp(-g))
    dg, du = dy * u * s * (1 + g * (1 - s)), dy * g * s
    tl.store(dgu_ptr + m[:, None] * (2 * N) + n[None, :], dg.to(tl.float8e5), mask=ok)
    tl.store(dgu_ptr + m[:, None] * (2 * N) + N + n[None, :], du.to(tl.float8e5), mask=ok)
    top = tl.max(tl.max(tl.maximum(tl.abs(dg), tl.abs(du)), 1), 0)
    tl.atomic_max(amax_ptr, top.to(tl.int32, bitcast=True), sem="relaxed")


@case
def gradients_of_gates_to_e5m2_with_their_largest():
    m, n = 4001, 1400
    dy, gu, w = rand(m, n, dtype="bfloat16"), rand(m, 2 * n, dtype="bfloat16"), uniform(m)
    dgu, amax = zeros(m, 2 * n).to(torch.float8_e5m2), zeros(1, dtype="int32")
    launched = run(swiglu_backward_recomputed, (cdiv(m, 16), cdiv(n, 128)), (dy, gu, w, dgu, amax, m, n), (dgu, amax), BM=16, BN=128, num_warps=4)
    bits = lambda v: (v.view(torch.int8).int() & 127).float() + 200  # noqa: E731
    return viewed(cleared(launched, amax), lambda outs: (bits(outs[0]), outs[1].view(torch.float32)))
