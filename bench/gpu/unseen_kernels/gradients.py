"""Gradients: of attention and what stands for it, gates, convolutions, pools, norms, turned heads, losses of sequences, and steps of optimizers."""

import math

import torch
import torch.nn.functional as F
import triton
import triton.language as tl

from .common import against, arange, case, cdiv, cleared, f32, ints, rand, run, uniform, zeros


@triton.jit
def sigmoid_scores_gradient(q_ptr, k_ptr, v_ptr, do_ptr, dk_ptr, dv_ptr, T, scale, bias, D: tl.constexpr, BQ: tl.constexpr, BK: tl.constexpr):
    # Scores through a sigmoid: no row sums to remember. A block of keys stays, queries pass.
    bh, j = tl.program_id(1), tl.program_id(0)
    base = bh.to(tl.int64) * T * D
    s, d, t = j * BK + tl.arange(0, BK), tl.arange(0, D), tl.arange(0, BQ)
    k = tl.load(k_ptr + base + s[:, None] * D + d[None, :], mask=(s < T)[:, None], other=0.0)
    v = tl.load(v_ptr + base + s[:, None] * D + d[None, :], mask=(s < T)[:, None], other=0.0)
    dk, dv = tl.zeros((BK, D), tl.float32), tl.zeros((BK, D), tl.float32)
    for t0 in range(j * BK // BQ * BQ, T, BQ):
        at = base + (t0 + t)[:, None] * D + d[None, :]
        q = tl.load(q_ptr + at, mask=(t0 + t < T)[:, None], other=0.0)
        do = tl.load(do_ptr + at, mask=(t0 + t < T)[:, None], other=0.0)
        x = tl.dot(k, tl.trans(q)) * scale + bias
        p = tl.where(s[:, None] <= (t0 + t)[None, :], tl.sigmoid(x), 0.0)
        dv = tl.dot(p.to(do.dtype), do, dv)
        dp = tl.dot(v, tl.trans(do))
        dx = dp * p * (1.0 - p)
        dk = tl.dot(dx.to(q.dtype), q, dk)
    to = base + s[:, None] * D + d[None, :]
    tl.store(dk_ptr + to, (dk * scale).to(dk_ptr.dtype.element_ty), mask=(s < T)[:, None])
    tl.store(dv_ptr + to, dv.to(dv_ptr.dtype.element_ty), mask=(s < T)[:, None])


@case
def attn_sigmoid_scores_gradients_of_keys_and_values():
    bh, t, d = 24, 900, 64
    q, k, v, do = (rand(bh, t, d) for _ in range(4))
    dk, dv = zeros(bh, t, d), zeros(bh, t, d)
    args = q, k, v, do, dk, dv, t, d**-0.5, -math.log(t)
    launched = run(sigmoid_scores_gradient, (cdiv(t, 64), bh), args, (dk, dv), D=d, BQ=32, BK=64, num_warps=4)

    def reference():
        x = q.float() @ k.float().mT * d**-0.5 - math.log(t)
        p = x.sigmoid().tril()
        dx = do.float() @ v.float().mT * p * (1 - p)
        return dx.mT @ q.float() * d**-0.5, p.mT @ do.float()

    return against(launched, reference)


@triton.jit
def squared_relu_scores_gradient(q_ptr, k_ptr, v_ptr, do_ptr, dq_ptr, H, T, D: tl.constexpr, BQ: tl.constexpr, BK: tl.constexpr):
    # Squares of positive scores over how many keys are seen; queries' gradients, heads beside each other in memory.
    i, h, b = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    row = H * D
    base = b * T * row + h * D
    q_block = tl.make_block_ptr(q_ptr + base, (T, D), (row, 1), (i * BQ, 0), (BQ, D), (1, 0))
    do_block = tl.make_block_ptr(do_ptr + base, (T, D), (row, 1), (i * BQ, 0), (BQ, D), (1, 0))
    q, do = tl.load(q_block, boundary_check=(0,), padding_option="zero"), tl.load(do_block, boundary_check=(0,), padding_option="zero")
    t, s = i * BQ + tl.arange(0, BQ), tl.arange(0, BK)
    share = 1.0 / (t + 1).to(tl.float32)
    acc = tl.zeros((BQ, D), tl.float32)
    k_block = tl.make_block_ptr(k_ptr + base, (T, D), (row, 1), (0, 0), (BK, D), (1, 0))
    v_block = tl.make_block_ptr(v_ptr + base, (D, T), (1, row), (0, 0), (D, BK), (0, 1))
    for s0 in tl.range(0, min((i + 1) * BQ, T), BK, num_stages=2):
        k = tl.load(k_block, boundary_check=(0,), padding_option="zero")
        v = tl.load(v_block, boundary_check=(1,), padding_option="zero")
        x = tl.dot(q, k.T)
        dp = tl.dot(do, v)
        dx = tl.where((s0 + s)[None, :] <= t[:, None], 2.0 * tl.maximum(x, 0.0) * dp * share[:, None], 0.0)
        acc += tl.dot(dx.to(k.dtype), k)
        k_block, v_block = tl.advance(k_block, (BK, 0)), tl.advance(v_block, (0, BK))
    dq_block = tl.make_block_ptr(dq_ptr + base, (T, D), (row, 1), (i * BQ, 0), (BQ, D), (1, 0))
    tl.store(dq_block, acc.to(dq_ptr.dtype.element_ty), boundary_check=(0,))


@case
def attn_squared_relu_scores_gradients_of_queries_d128():
    b, t, h, d = 2, 1000, 8, 128
    q, k, v, do = (rand(b, t, h, d, dtype="bfloat16") / 4 for _ in range(4))
    dq = zeros(b, t, h, d, dtype="bfloat16")
    launched = run(squared_relu_scores_gradient, (cdiv(t, 128), h, b), (q, k, v, do, dq, h, t), dq, D=d, BQ=128, BK=64, num_warps=8)

    def reference():
        a, c, e, g = (x.float().transpose(1, 2) for x in (q, k, v, do))
        x = (a @ c.mT).relu()
        share = 1 / (arange(t) + 1.0)
        return ((2 * x * (g @ e.mT) * share[:, None]).tril() @ c).transpose(1, 2)

    return against(launched, reference)


@triton.jit
def decayed_state_gradient(q_ptr, do_ptr, g_ptr, dh_ptr, T, K: tl.constexpr, V: tl.constexpr, BT: tl.constexpr, BV: tl.constexpr):
    # Gradients of states before chunks, from the last chunk to the first; decay in steps of a log.
    bh, v = tl.program_id(1), tl.program_id(0) * BV + tl.arange(0, BV)
    t, k = tl.arange(0, BT), tl.arange(0, K)
    chunks = tl.cdiv(T, BT)
    dh = tl.zeros((K, BV), tl.float32)
    for back in range(chunks):
        c = chunks - 1 - back
        tl.store(dh_ptr + ((bh * chunks + c) * K + k[:, None]) * V + v[None, :], dh.to(dh_ptr.dtype.element_ty))
        ok = c * BT + t < T
        at = bh * T + c * BT + t
        g = tl.load(g_ptr + at, mask=ok, other=0.0)
        run_g = tl.cumsum(g, 0)
        q = tl.load(q_ptr + at[None, :] * K + k[:, None], mask=ok[None, :], other=0.0)
        do = tl.load(do_ptr + at[:, None] * V + v[None, :], mask=ok[:, None], other=0.0)
        q = (q.to(tl.float32) * tl.exp(run_g)[None, :]).to(q.dtype)
        dh = dh * tl.exp(tl.sum(g, 0)) + tl.dot(q, do)


@case
def gradients_of_decayed_states_from_the_last_chunk():
    bh, t, k, v, step = 32, 1000, 64, 128, 64
    q, do, g = rand(bh, t, k, dtype="bfloat16"), rand(bh, t, v, dtype="bfloat16"), -uniform(bh, t) / 10
    dh = zeros(bh, cdiv(t, step), k, v, dtype="bfloat16")
    return run(decayed_state_gradient, (v // 32, bh), (q, do, g, dh, t), dh, K=k, V=v, BT=step, BV=32, num_warps=2, num_stages=2)


@triton.jit
def gated_network_gradient(dy_ptr, w_ptr, gate_ptr, up_ptr, dgate_ptr, dup_ptr, h_ptr, M, H, K, BM: tl.constexpr, BH: tl.constexpr, BK: tl.constexpr):
    # The last layer's input gradient, then at once both gradients of silu(gate) * up, and what was multiplied made again.
    m, h, k = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BH + tl.arange(0, BH), tl.arange(0, BK)
    ok = (m < M)[:, None] & (h < H)[None, :]
    acc = tl.zeros((BM, BH), tl.float32)
    for k0 in range(0, K, BK):
        dy = tl.load(dy_ptr + m[:, None] * K + k0 + k[None, :], mask=(m < M)[:, None], other=0.0)
        w = tl.load(w_ptr + (k0 + k)[:, None] * H + h[None, :], mask=(h < H)[None, :], other=0.0)
        acc = tl.dot(dy, w, acc)
    at = m[:, None] * H + h[None, :]
    gate, up = tl.load(gate_ptr + at, mask=ok, other=0.0).to(tl.float32), tl.load(up_ptr + at, mask=ok, other=0.0).to(tl.float32)
    s = tl.sigmoid(gate)
    silu = gate * s
    tl.store(dgate_ptr + at, (acc * up * s * (1.0 + gate * (1.0 - s))).to(dgate_ptr.dtype.element_ty), mask=ok)
    tl.store(dup_ptr + at, (acc * silu).to(dup_ptr.dtype.element_ty), mask=ok)
    tl.store(h_ptr + at, (silu * up).to(h_ptr.dtype.element_ty), mask=ok)


@case
def gradients_of_a_gated_network_with_its_product_made_again():
    m, h, k = 1900, 1400, 768
    dy, w, gate, up = rand(m, k, dtype="bfloat16"), rand(k, h, dtype="bfloat16") / 27, rand(m, h, dtype="bfloat16"), rand(m, h, dtype="bfloat16")
    outs = tuple(zeros(m, h, dtype="bfloat16") for _ in range(3))
    launched = run(gated_network_gradient, (cdiv(m, 128), cdiv(h, 64)), (dy, w, gate, up, *outs, m, h, k), outs, BM=128, BH=64, BK=64, num_warps=8)

    def reference():
        d, a, b = dy.float() @ w.float(), gate.float(), up.float()
        s = a.sigmoid()
        return d * b * s * (1 + a * (1 - s)), d * a * s, a * s * b

    return against(launched, reference)


@triton.jit
def conv_input_gradient(dy_ptr, w_ptr, dx_ptr, H, W, OH, OW, CI, CO, S: tl.constexpr, R: tl.constexpr, PAD: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Pixels of the input, channels last: each tap looks at the output that it went to, if there is one.
    m, ci, k = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN), tl.arange(0, BK)
    image, y, x = m // (H * W), m // W % H, m % W
    acc = tl.zeros((BM, BN), tl.float32)
    for tap in range(R * R):
        up, left = y + PAD - tap // R, x + PAD - tap % R
        oy, ox = up // S, left // S
        ok = (up >= 0) & (left >= 0) & (up % S == 0) & (left % S == 0) & (oy < OH) & (ox < OW)
        for k0 in range(0, CO, BK):
            dy = tl.load(dy_ptr + ((image * OH + oy) * OW + ox)[:, None] * CO + k0 + k[None, :], mask=ok[:, None], other=0.0)
            w = tl.load(w_ptr + (tap * CO + k0 + k)[:, None] * CI + ci[None, :], mask=(ci < CI)[None, :], other=0.0)
            acc = tl.dot(dy, w, acc)
    tl.store(dx_ptr + m[:, None] * CI + ci[None, :], acc.to(dx_ptr.dtype.element_ty), mask=(ci < CI)[None, :])


@case
def conv2d_input_gradient_stride_2_channels_last():
    n, h, w, ci, co, r, s, pad = 4, 64, 64, 96, 128, 3, 2, 1
    oh, ow = (h + 2 * pad - r) // s + 1, (w + 2 * pad - r) // s + 1
    dy, weight, dx = rand(n, oh, ow, co), rand(r, r, co, ci) / 34, zeros(n, h, w, ci)
    args = dy, weight, dx, h, w, oh, ow, ci, co
    launched = run(conv_input_gradient, (n * h * w // 64, cdiv(ci, 32)), args, dx, S=s, R=r, PAD=pad, BM=64, BN=32, BK=64, num_warps=4)

    def reference():
        out = torch.nn.grad.conv2d_input((n, ci, h, w), weight.permute(2, 3, 0, 1).float(), dy.permute(0, 3, 1, 2).float(), s, pad)
        return out.permute(0, 2, 3, 1)

    return against(launched, reference)


@triton.jit
def depthwise_weight_gradient(x_ptr, dy_ptr, dw_ptr, N, C, H, W, R: tl.constexpr, BH: tl.constexpr, BW: tl.constexpr):
    # A channel and a tap a program: the plane shifted against itself, all images.
    c, tap = tl.program_id(0), tl.program_id(1)
    dy_off, dx_off = tap // R - R // 2, tap % R - R // 2
    total = tl.zeros((BH, BW), tl.float32)
    for n in range(N):
        plane = (n * C + c) * H * W
        for h0 in range(0, H, BH):
            h = h0 + tl.arange(0, BH)[:, None]
            w = tl.arange(0, BW)[None, :]
            inside = (h < H) & (w < W)
            g = tl.load(dy_ptr + plane + h * W + w, mask=inside, other=0.0).to(tl.float32)
            hh, ww = h + dy_off, w + dx_off
            there = inside & (hh >= 0) & (hh < H) & (ww >= 0) & (ww < W)
            total += g * tl.load(x_ptr + plane + hh * W + ww, mask=there, other=0.0).to(tl.float32)
    tl.store(dw_ptr + c * R * R + tap, tl.sum(tl.sum(total, 1), 0))


@case
def conv2d_depthwise_weight_gradient_a_tap_a_program():
    n, c, h, w, r = 8, 72, 50, 56, 5
    x, dy, dw = rand(n, c, h, w), rand(n, c, h, w), zeros(c, r * r, dtype="float32")
    launched = run(depthwise_weight_gradient, (c, r * r), (x, dy, dw, n, c, h, w), dw, R=r, BH=16, BW=64)

    def reference():
        return torch.nn.grad.conv2d_weight(x.float(), (c, 1, r, r), dy.float(), 1, r // 2, groups=c).reshape(c, r * r)

    return against(launched, reference)


@triton.jit
def pool_l2_gradient(x_ptr, y_ptr, dy_ptr, dx_ptr, H, W, OH, OW, R: tl.constexpr, S: tl.constexpr, BLOCK: tl.constexpr):
    # Roots of sums of squares: every pixel gathers from the windows that it was in.
    plane = tl.program_id(1)
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ok = i < H * W
    h, w = i // W, i % W
    x = tl.load(x_ptr + plane * H * W + i, mask=ok, other=0.0)
    acc = tl.zeros((BLOCK,), tl.float32)
    for a in tl.static_range(0, (R + S - 1) // S):
        for b in tl.static_range(0, (R + S - 1) // S):
            oh, ow = h // S - a, w // S - b
            there = ok & (oh >= 0) & (ow >= 0) & (oh < OH) & (ow < OW) & (h - oh * S < R) & (w - ow * S < R)
            at = plane * OH * OW + oh * OW + ow
            y = tl.load(y_ptr + at, mask=there, other=1.0)
            acc += tl.load(dy_ptr + at, mask=there, other=0.0) * x / y
    tl.store(dx_ptr + plane * H * W + i, acc, mask=ok)


@case
def gradients_of_roots_of_pooled_squares_3_by_2():
    n, h, w, r, s = 512, 75, 81, 3, 2
    x = f32(n, h, w)
    y = (F.avg_pool2d(x.square(), r, s) * r * r).sqrt()
    dy, dx = torch.randn_like(y), torch.zeros_like(x)
    args = x, y, dy, dx, h, w, y.shape[1], y.shape[2]
    return run(pool_l2_gradient, (cdiv(h * w, 1024), n), args, dx, R=r, S=s, BLOCK=1024)


@triton.jit
def group_norm_gradient(x_ptr, dy_ptr, w_ptr, mean_ptr, rstd_ptr, dx_ptr, dw_ptr, db_ptr, C, L, G, CG: tl.constexpr, BC: tl.constexpr, BL: tl.constexpr):
    # A group of an odd count of channels is a program: two passes over places, sums of channels to partial buffers.
    n, g = tl.program_id(1), tl.program_id(0)
    c = tl.arange(0, BC)
    in_group = c < CG
    ch = g * CG + c
    w = tl.load(w_ptr + ch, mask=in_group, other=0.0)
    mean, rstd = tl.load(mean_ptr + n * G + g), tl.load(rstd_ptr + n * G + g)
    dw, db = tl.zeros((BC,), tl.float32), tl.zeros((BC,), tl.float32)
    for l0 in range(0, L, BL):
        l = l0 + tl.arange(0, BL)
        ok = in_group[:, None] & (l < L)[None, :]
        at = (n * C + ch)[:, None] * L + l[None, :]
        xh = (tl.load(x_ptr + at, mask=ok, other=0.0).to(tl.float32) - mean) * rstd
        dy = tl.load(dy_ptr + at, mask=ok, other=0.0).to(tl.float32)
        dw += tl.sum(dy * xh, 1)
        db += tl.sum(dy, 1)
    count = CG * L
    c1, c2 = tl.sum(dw * w, 0) / count, tl.sum(db * w, 0) / count
    for l0 in range(0, L, BL):
        l = l0 + tl.arange(0, BL)
        ok = in_group[:, None] & (l < L)[None, :]
        at = (n * C + ch)[:, None] * L + l[None, :]
        xh = (tl.load(x_ptr + at, mask=ok, other=0.0).to(tl.float32) - mean) * rstd
        dy = tl.load(dy_ptr + at, mask=ok, other=0.0).to(tl.float32)
        tl.store(dx_ptr + at, ((dy * w[:, None] - xh * c1 - c2) * rstd).to(dx_ptr.dtype.element_ty), mask=ok)
    tl.store(dw_ptr + n * C + ch, dw, mask=in_group)
    tl.store(db_ptr + n * C + ch, db, mask=in_group)


@case
def group_norm_gradients_of_groups_of_seven_channels():
    n, c, l, g = 32, 77, 900, 11
    x, dy, w = rand(n, c, l), rand(n, c, l), f32(c)
    a = x.float().reshape(n, g, -1)
    mean, rstd = a.mean(2), (a.var(2, unbiased=False) + 1e-5).rsqrt()
    dx, dw, db = zeros(n, c, l), zeros(n, c, dtype="float32"), zeros(n, c, dtype="float32")
    args = x, dy, w, mean, rstd, dx, dw, db, c, l, g
    launched = run(group_norm_gradient, (g, n), args, (dx, dw, db), CG=c // g, BC=8, BL=256, num_warps=4)

    def reference():
        h = ((a - mean[..., None]) * rstd[..., None]).double()
        z = (dy.double() * w[:, None]).reshape(n, g, -1)
        grad = (z - h * (h * z).mean(2, keepdim=True) - z.mean(2, keepdim=True)) * rstd[..., None]
        d = dy.double()
        return grad.reshape(n, c, l), (d * h.reshape(n, c, l)).sum(2), d.sum(2)

    return against(launched, reference)


@triton.jit
def unturn_heads(dq_ptr, cos_ptr, sin_ptr, out_ptr, T, H: tl.constexpr, D: tl.constexpr, R: tl.constexpr, BT: tl.constexpr):
    # Only the first R of D were turned, neighbors in pairs: gradients turned back by split and join, the rest copied.
    t = tl.program_id(0) * BT + tl.arange(0, BT)[:, None, None]
    h, r = tl.arange(0, H)[None, :, None], tl.arange(0, R)[None, None, :]
    ok = t < T
    at = (t * H + h) * D
    x = tl.load(dq_ptr + at + r, mask=ok, other=0.0).to(tl.float32)
    a, b = tl.split(tl.reshape(x, (BT, H, R // 2, 2)))
    half = tl.arange(0, R // 2)[None, None, :]
    cos, sin = tl.load(cos_ptr + t * (R // 2) + half, mask=ok, other=0.0), tl.load(sin_ptr + t * (R // 2) + half, mask=ok, other=0.0)
    back = tl.reshape(tl.join(a * cos + b * sin, b * cos - a * sin), (BT, H, R))
    tl.store(out_ptr + at + r, back.to(out_ptr.dtype.element_ty), mask=ok)
    rest = R + tl.arange(0, D - R)[None, None, :]
    tl.store(out_ptr + at + rest, tl.load(dq_ptr + at + rest, mask=ok, other=0.0), mask=ok)


@case
def gradients_of_partly_turned_pairs_turned_back():
    t, h, d, r = 5000, 16, 96, 32
    dq, out = rand(t, h, d, dtype="bfloat16"), zeros(t, h, d, dtype="bfloat16")
    angle = uniform(t, r // 2) * 6
    cos, sin = angle.cos(), angle.sin()
    launched = run(unturn_heads, (cdiv(t, 4),), (dq, cos, sin, out, t), out, H=h, D=d, R=r, BT=4)

    def reference():
        x = dq.float()
        a, b = x[..., 0:r:2], x[..., 1:r:2]
        c, s = cos[:, None], sin[:, None]
        return torch.cat([torch.stack([a * c + b * s, b * c - a * s], -1).flatten(2), x[..., r:]], 2)

    return against(launched, reference)


@triton.jit
def word_gradients_of_runs(order_ptr, starts_ptr, words_ptr, dy_ptr, dw_ptr, D, BD: tl.constexpr, BR: tl.constexpr):
    # Tokens sorted by words: a run of equal words is a program; every row of its run is read, one is written.
    run_ = tl.program_id(0)
    first, last = tl.load(starts_ptr + run_), tl.load(starts_ptr + run_ + 1)
    word = tl.load(words_ptr + run_)
    d = tl.program_id(1) * BD + tl.arange(0, BD)
    acc = tl.zeros((BR, BD), tl.float32)
    for i0 in range(first, last, BR):
        i = i0 + tl.arange(0, BR)
        token = tl.load(order_ptr + i, mask=i < last, other=0)
        acc += tl.load(dy_ptr + token[:, None] * D + d[None, :], mask=(i < last)[:, None] & (d < D)[None, :], other=0.0)
    tl.store(dw_ptr + word * D + d, tl.sum(acc, 0).to(dw_ptr.dtype.element_ty), mask=d < D)


@case
def word_gradients_by_runs_of_sorted_tokens():
    t, d, v = 16000, 700, 1500
    words = (uniform(t).square() * v).long()
    dy, dw = rand(t, d), zeros(v, d)
    sorted_words, order = words.sort(stable=True)
    unique, counts = torch.unique_consecutive(sorted_words, return_counts=True)
    starts = torch.cat([zeros(1, dtype="int64"), counts.cumsum(0)])
    args = order, starts, unique, dy, dw, d
    launched = run(word_gradients_of_runs, (len(unique), cdiv(d, 256)), args, dw, BD=256, BR=4, num_warps=2)
    return against(launched, lambda: torch.zeros(v, d, device=dy.device).index_add_(0, words, dy.float()))


@triton.jit
def contrast_gradient(z_ptr, lse_ptr, dz_ptr, N, D: tl.constexpr, inv, BM: tl.constexpr, BN: tl.constexpr):
    # Both views of a thing in one matrix of unit rows; i's partner is i with half the rows between them.
    i, d, j = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, D), tl.arange(0, BN)
    z = tl.load(z_ptr + i[:, None] * D + d[None, :], mask=(i < N)[:, None], other=0.0)
    lse = tl.load(lse_ptr + i, mask=i < N, other=0.0)
    acc = tl.zeros((BM, D), tl.float32)
    for j0 in range(0, N, BN):
        jj = j0 + j
        w = tl.load(z_ptr + jj[:, None] * D + d[None, :], mask=(jj < N)[:, None], other=0.0)
        other = tl.load(lse_ptr + jj, mask=jj < N, other=0.0)
        x = tl.dot(z, w.T) * inv
        p = tl.exp(x - lse[:, None]) + tl.exp(x - other[None, :])
        p = tl.where((i[:, None] != jj[None, :]) & (jj < N)[None, :], p, 0.0)
        partner = jj[None, :] == (i[:, None] + N // 2) % N
        acc = tl.dot((p - tl.where(partner, 2.0, 0.0)).to(w.dtype), w, acc)
    tl.store(dz_ptr + i[:, None] * D + d[None, :], acc * (inv / N), mask=(i < N)[:, None])


@case
def gradients_of_two_views_that_tell_things_apart():
    n, d, inv = 4000, 64, 10.0
    z = F.normalize(f32(n, d), dim=1).half()
    x = (z.float() @ z.float().t() * inv).fill_diagonal_(-1e30)
    lse, dz = x.logsumexp(1), zeros(n, d, dtype="float32")
    return run(contrast_gradient, (cdiv(n, 64), 1), (z, lse, dz, n), dz, D=d, inv=inv, BM=64, BN=128, num_warps=8)


@triton.jit
def ctc_alpha_beta_gradient(logp_ptr, alpha_ptr, beta_ptr, labels_ptr, loss_ptr, grad_ptr, T, V, L, S: tl.constexpr, BV: tl.constexpr):
    # A time a program: states of equal labels are added up in a row of the vocabulary by atomics of this row only.
    b, t = tl.program_id(1), tl.program_id(0)
    s = tl.arange(0, S)
    ok = s < 2 * L + 1
    label = tl.where(s % 2 == 1, tl.load(labels_ptr + b * L + s // 2, mask=(s % 2 == 1) & ok, other=0), 0)
    at = (b * T + t) * S + s
    ab = tl.load(alpha_ptr + at, mask=ok, other=-1e30) + tl.load(beta_ptr + at, mask=ok, other=-1e30)
    loss = tl.load(loss_ptr + b)
    row = (b * T + t) * V
    lp = tl.load(logp_ptr + row + label, mask=ok, other=0.0)
    share = tl.where(ok, tl.exp(tl.minimum(ab + loss - lp, 0.0)), 0.0)
    for v0 in range(0, V, BV):
        v = v0 + tl.arange(0, BV)
        tl.store(grad_ptr + row + v, tl.exp(tl.load(logp_ptr + row + v, mask=v < V, other=-1e30)), mask=v < V)
    tl.debug_barrier()
    tl.atomic_add(grad_ptr + row + label, -share, mask=ok, sem="relaxed", scope="cta")


@case
def gradients_of_label_paths_from_both_directions():
    b, t, v, l, s = 24, 300, 500, 30, 64
    logp, labels = torch.log_softmax(f32(b, t, v), 2), ints(1, v, b, l)
    alpha, beta, loss = -uniform(b, t, s) * 9, -uniform(b, t, s) * 9, uniform(b)
    grad = zeros(b, t, v, dtype="float32")
    return run(ctc_alpha_beta_gradient, (t, b), (logp, alpha, beta, labels, loss, grad, t, v, l), grad, S=s, BV=512)


@triton.jit
def orthogonal_step(g_ptr, m_ptr, x_ptr, norm_ptr, N, beta, ROWS, COLS, BLOCK: tl.constexpr):
    # Momentum as Nesterov wants it, to short floats, with the sum of squares that the iteration starts from.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ok = i < N
    g, m = tl.load(g_ptr + i, mask=ok, other=0.0).to(tl.float32), tl.load(m_ptr + i, mask=ok, other=0.0)
    new = beta * m + (1.0 - beta) * g
    x = (1.0 - beta) * g + beta * new
    tl.store(m_ptr + i, new, mask=ok)
    r, c = i // COLS, i % COLS
    tl.store(x_ptr + c * ROWS + r, x.to(tl.bfloat16), mask=ok)
    tl.atomic_add(norm_ptr, tl.sum(x * x, 0), sem="relaxed")


@case
def momentum_turned_for_orthogonal_steps_with_its_norm():
    rows, cols = 1000, 1600
    g, m, first = rand(rows, cols), zeros(rows, cols, dtype="float32"), f32(rows, cols)
    x, norm = zeros(cols, rows, dtype="bfloat16"), zeros(1, dtype="float32")
    launch, args = run(orthogonal_step, (cdiv(rows * cols, 1024),), (g, m, x, norm, rows * cols, 0.95, rows, cols), (m, x, norm), BLOCK=1024)

    def restarted(*args):
        m.copy_(first)
        norm.zero_()
        return launch(*args)

    return restarted, args


@triton.jit
def quintic_step(x_ptr, a_ptr, out_ptr, M, N, ca, cb, cc, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # ca X + (cb A + cc A A) X with A A in another buffer: two products of one right operand in one loop.
    m, n, k = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN), tl.arange(0, BK)
    first, second = tl.zeros((BM, BN), tl.float32), tl.zeros((BM, BN), tl.float32)
    for k0 in range(0, M, BK):
        a = tl.load(a_ptr + m[:, None] * M + (k0 + k)[None, :])
        aa = tl.load(a_ptr + M * M + m[:, None] * M + (k0 + k)[None, :])
        x = tl.load(x_ptr + (k0 + k)[:, None] * N + n[None, :])
        first = tl.dot(a, x, first)
        second = tl.dot(aa, x, second)
    x = tl.load(x_ptr + m[:, None] * N + n[None, :]).to(tl.float32)
    tl.store(out_ptr + m[:, None] * N + n[None, :], (ca * x + cb * first + cc * second).to(tl.bfloat16))


@case
def quintic_iteration_by_two_products_of_one_operand():
    m, n = 768, 2048
    x = rand(m, n, dtype="bfloat16") / 60
    a = x.float() @ x.float().mT
    pair = torch.stack([a, a @ a]).bfloat16()
    out = zeros(m, n, dtype="bfloat16")
    launched = run(quintic_step, (m // 64, n // 128), (x, pair, out, m, n, 3.4445, -4.775, 2.0315), out, BM=64, BN=128, BK=64, num_warps=8)
    return against(launched, lambda: 3.4445 * x.float() - 4.775 * pair[0].float() @ x.float() + 2.0315 * pair[1].float() @ x.float())


@triton.jit
def network_input_gradient(x_ptr, w_ptr, mean_ptr, ds_ptr, dx_ptr, T, D, BD: tl.constexpr, W: tl.constexpr, BT: tl.constexpr):
    # silu(causal conv of W taps) backwards: the pre-activation is made again for the taps that come after.
    d = tl.program_id(1) * BD + tl.arange(0, BD)
    t = tl.program_id(0) * BT + tl.arange(0, BT)
    base = tl.program_id(2) * T * D
    acc = tl.zeros((BT, BD), tl.float32)
    for after in tl.static_range(W):
        pre = tl.zeros((BT, BD), tl.float32) + tl.load(mean_ptr + d)[None, :]
        for tap in tl.static_range(W):
            src = t + after - tap
            x = tl.load(x_ptr + base + src[:, None] * D + d[None, :], mask=((src >= 0) & (src < T))[:, None], other=0.0)
            pre += x.to(tl.float32) * tl.load(w_ptr + d * W + tap)[None, :]
        s = tl.sigmoid(pre)
        ds = tl.load(ds_ptr + base + (t + after)[:, None] * D + d[None, :], mask=(t + after < T)[:, None], other=0.0).to(tl.float32)
        acc += ds * s * (1.0 + pre * (1.0 - s)) * tl.load(w_ptr + d * W + after)[None, :]
    tl.store(dx_ptr + base + t[:, None] * D + d[None, :], acc.to(dx_ptr.dtype.element_ty), mask=(t < T)[:, None])


@case
def gradients_of_causal_taps_through_swish_made_again():
    b, t, d, w = 2, 2000, 768, 4
    x, weight, bias, ds, dx = rand(b, t, d, dtype="bfloat16"), f32(d, w) / 2, f32(d), rand(b, t, d, dtype="bfloat16"), zeros(b, t, d, dtype="bfloat16")
    launched = run(network_input_gradient, (cdiv(t, 32), d // 64, b), (x, weight, bias, ds, dx, t, d), dx, BD=64, W=w, BT=32)

    def reference():
        a = x.float().mT.contiguous().requires_grad_()
        y = F.silu(F.conv1d(F.pad(a, (w - 1, 0)), weight.flip(1)[:, None], bias, groups=d))
        return torch.autograd.grad(y, a, ds.float().mT)[0].mT

    return against(launched, reference)


@triton.jit
def top_k_gradient(dy_ptr, index_ptr, prob_ptr, dlogits_ptr, R, E: tl.constexpr, K: tl.constexpr, BR: tl.constexpr):
    # Weights of the K best were made to sum up to one; their gradient goes through that and a sigmoid to all logits.
    r, k, e = tl.program_id(0) * BR + tl.arange(0, BR), tl.arange(0, K), tl.arange(0, E)
    ok = (r < R)[:, None]
    p = tl.load(prob_ptr + r[:, None] * E + e[None, :], mask=ok, other=0.5)
    index = tl.load(index_ptr + r[:, None] * K + k[None, :], mask=ok, other=0)
    dy = tl.load(dy_ptr + r[:, None] * K + k[None, :], mask=ok, other=0.0)
    chosen = tl.gather(p, index, 1)
    total = tl.sum(chosen, 1, keep_dims=True)
    inner = tl.sum(dy * chosen, 1, keep_dims=True) / total
    dp = (dy - inner) / total
    hit = index[:, :, None] == e[None, None, :]
    spread = tl.sum(tl.where(hit, dp[:, :, None], 0.0), 1)
    tl.store(dlogits_ptr + r[:, None] * E + e[None, :], spread * p * (1.0 - p), mask=ok)


@case
def gradients_of_eight_best_of_sigmoids_to_128_logits():
    r, e, k = 12_000, 128, 8
    p = f32(r, e).sigmoid()
    index = p.topk(k, 1).indices.int()
    dy, out = f32(r, k), zeros(r, e, dtype="float32")
    launched = run(top_k_gradient, (cdiv(r, 8),), (dy, index, p, out, r), out, E=e, K=k, BR=8)

    def reference():
        logits = torch.logit(p.double()).requires_grad_()
        chosen = logits.sigmoid().gather(1, index.long())
        return torch.autograd.grad(chosen / chosen.sum(1, keepdim=True), logits, dy.double())[0]

    return against(launched, reference)


@triton.jit
def cholesky_gradient_tile(l_ptr, dl_ptr, out_ptr, N: tl.constexpr):
    # Phi(L^T dL): the lower half with its diagonal halved, both halves joined; one matrix a warp, dots of 32 in tf32.
    i, j = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    at = tl.program_id(0) * N * N + i * N + j
    l, dl = tl.load(l_ptr + at), tl.load(dl_ptr + at)
    inner = tl.dot(l.T, dl, input_precision="tf32x3")
    half = tl.where(i > j, inner, tl.where(i == j, 0.5 * inner, 0.0))
    tl.store(out_ptr + at, half + half.T)


@case
def halves_of_triangular_products_joined_one_warp():
    b, n = 12_000, 32
    l, dl, out = f32(b, n, n).tril(), f32(b, n, n).tril(), zeros(b, n, n, dtype="float32")
    launched = run(cholesky_gradient_tile, (b,), (l, dl, out), out, N=n, num_warps=1)

    def reference():
        inner = (l.double().mT @ dl.double()).tril()
        half = inner - inner.diagonal(dim1=1, dim2=2).diag_embed() / 2
        return half + half.mT

    return against(launched, reference)


@triton.jit
def norm_gradient_row(x_ptr, dy_ptr, w_ptr, dx_ptr, partial_ptr, count_ptr, dw_ptr, M, N: tl.constexpr, PARTS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    # Root mean square: partial sums of weights go to a row a program; the last one to arrive adds the rows up.
    pid = tl.program_id(0)
    n = tl.arange(0, BN)
    ok = n < N
    w = tl.load(w_ptr + n, mask=ok, other=0.0)
    dw = tl.zeros((BN,), tl.float32)
    for m0 in range(pid * BM, M, PARTS * BM):
        m = m0 + tl.arange(0, BM)
        both = (m < M)[:, None] & ok[None, :]
        x = tl.load(x_ptr + m[:, None] * N + n[None, :], mask=both, other=0.0).to(tl.float32)
        dy = tl.load(dy_ptr + m[:, None] * N + n[None, :], mask=both, other=0.0).to(tl.float32)
        inv = tl.rsqrt(tl.sum(x * x, 1) / N + 1e-6)
        g = dy * w[None, :]
        inner = tl.sum(g * x, 1) * inv * inv * inv / N
        tl.store(dx_ptr + m[:, None] * N + n[None, :], (g * inv[:, None] - x * inner[:, None]).to(dx_ptr.dtype.element_ty), mask=both)
        dw += tl.sum(dy * x * inv[:, None], 0)
    tl.store(partial_ptr + pid * BN + n, dw)
    tl.debug_barrier()
    if tl.atomic_add(count_ptr, 1, sem="acq_rel") == PARTS - 1:
        total = tl.zeros((8, BN), tl.float32)
        for p0 in range(0, PARTS, 8):
            p = p0 + tl.arange(0, 8)
            total += tl.load(partial_ptr + p[:, None] * BN + n[None, :], volatile=True)
        tl.store(dw_ptr + n, tl.sum(total, 0), mask=ok)


@case
def rms_norm_gradients_added_up_by_the_last_to_arrive():
    m, n, parts = 6000, 480, 264
    x, dy, w, dx = rand(m, n, dtype="bfloat16"), rand(m, n, dtype="bfloat16"), f32(n), zeros(m, n, dtype="bfloat16")
    partial, count, dw = zeros(parts, 512, dtype="float32"), zeros(1, dtype="int32"), zeros(n, dtype="float32")
    launched = run(norm_gradient_row, (parts,), (x, dy, w, dx, partial, count, dw, m), (dx, dw), N=n, PARTS=parts, BM=4, BN=512, num_warps=4)

    def reference():
        a, g = x.double(), dy.double()
        inv = (a.square().mean(1, keepdim=True) + 1e-6).rsqrt()
        z = g * w
        return z * inv - a * inv**3 * (z * a).mean(1, keepdim=True), (g * a * inv).sum(0)

    return against(cleared(launched, count), reference)
