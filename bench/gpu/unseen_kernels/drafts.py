"""First drafts: kernels as one writes them before knowing better, flat indices taken apart, masks by where, small loops, casts and defaults."""

import torch
import torch.nn.functional as F
import triton
import triton.language as tl

from .common import against, arange, case, cdiv, cleared, f32, ints, rand, run, uniform, zeros


@triton.jit
def group_max_kernel(x_ptr, out_ptr, B, C, H, W, G, BLOCK_SIZE: tl.constexpr):
    # Largest of each group of channels, one output an element, a loop over the group's channels.
    pid = tl.program_id(0)
    offsets = pid * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < B * G * H * W
    w = offsets % W
    h = (offsets // W) % H
    g = (offsets // (W * H)) % G
    b = offsets // (W * H * G)
    per_group = C // G
    best = tl.full([BLOCK_SIZE], float("-inf"), dtype=tl.float32)
    for i in range(0, per_group):
        c = g * per_group + i
        x = tl.load(x_ptr + b * C * H * W + c * H * W + h * W + w, mask=mask, other=float("-inf"))
        x = x.to(tl.float32)
        best = tl.where(x > best, x, best)
    tl.store(out_ptr + offsets, best.to(tl.float16), mask=mask)


@case
def largest_of_groups_of_channels_by_flat_places():
    b, c, h, w, g = 16, 96, 57, 57, 12
    x, out = rand(b, c, h, w), zeros(b, g, h, w)
    launched = run(group_max_kernel, (cdiv(b * g * h * w, 1024),), (x, out, b, c, h, w, g), out, BLOCK_SIZE=1024)
    return against(launched, lambda: x.reshape(b, g, c // g, h, w).amax(2))


@triton.jit
def bn_relu_pool_kernel(x_ptr, w_ptr, b_ptr, mean_ptr, var_ptr, out_ptr, N, C, H, W, OH, OW, eps, BLOCK: tl.constexpr):
    # Norm of a channel, six at most, and the mean of 2x2: nine loads an output where one would do.
    idx = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = idx < N * C * OH * OW
    ow = idx % OW
    tmp = idx // OW
    oh = tmp % OH
    tmp = tmp // OH
    c = tmp % C
    n = tmp // C
    acc = tl.zeros([BLOCK], dtype=tl.float32)
    for kh in range(0, 2):
        for kw in range(0, 2):
            ih = oh * 2 + kh
            iw = ow * 2 + kw
            valid = mask & (ih < H) & (iw < W)
            x = tl.load(x_ptr + ((n * C + c) * H + ih) * W + iw, mask=valid, other=0.0).to(tl.float32)
            mean = tl.load(mean_ptr + c, mask=mask, other=0.0)
            var = tl.load(var_ptr + c, mask=mask, other=1.0)
            weight = tl.load(w_ptr + c, mask=mask, other=1.0)
            bias = tl.load(b_ptr + c, mask=mask, other=0.0)
            y = (x - mean) / tl.sqrt(var + eps) * weight + bias
            y = tl.minimum(tl.maximum(y, 0.0), 6.0)
            y = tl.where(valid, y, 0.0)
            acc = acc + y
    acc = acc / 4.0
    tl.store(out_ptr + idx, acc, mask=mask)


@case
def norm_clip_and_mean_of_four_loaded_again_each_time():
    n, c, h, w = 16, 60, 62, 66
    x, weight, bias, mean, var = rand(n, c, h, w), f32(c), f32(c), f32(c), uniform(c) + 0.5
    out = zeros(n, c, h // 2, w // 2, dtype="float32")
    args = x, weight, bias, mean, var, out, n, c, h, w, h // 2, w // 2, 1e-5
    launched = run(bn_relu_pool_kernel, (cdiv(out.numel(), 256),), args, out, BLOCK=256)
    return against(launched, lambda: F.avg_pool2d(F.batch_norm(x.float(), mean, var, weight, bias, eps=1e-5).clamp(0, 6), 2))


@triton.jit
def self_attention_row_kernel(q_ptr, k_ptr, v_ptr, out_ptr, S, D, sm_scale, BLOCK_S: tl.constexpr, BLOCK_D: tl.constexpr):
    # One query a program, all keys at once in a tile: two sums instead of dots, far more than fits in registers.
    row = tl.program_id(0)
    bh = tl.program_id(1)
    offs_s = tl.arange(0, BLOCK_S)
    offs_d = tl.arange(0, BLOCK_D)
    base = bh * S * D
    q = tl.load(q_ptr + base + row * D + offs_d, mask=offs_d < D, other=0.0)
    mask = (offs_s[:, None] < S) & (offs_d[None, :] < D)
    k = tl.load(k_ptr + base + offs_s[:, None] * D + offs_d[None, :], mask=mask, other=0.0)
    scores = tl.sum(q[None, :].to(tl.float32) * k.to(tl.float32), axis=1) * sm_scale
    scores = tl.where(offs_s < S, scores, float("-inf"))
    scores = tl.where(offs_s <= row, scores, float("-inf"))
    scores = scores - tl.max(scores, axis=0)
    p = tl.exp(scores)
    p = p / tl.sum(p, axis=0)
    v = tl.load(v_ptr + base + offs_s[:, None] * D + offs_d[None, :], mask=mask, other=0.0)
    out = tl.sum(p[:, None] * v.to(tl.float32), axis=0)
    tl.store(out_ptr + base + row * D + offs_d, out.to(tl.float16), mask=offs_d < D)


@case
def attention_of_one_query_to_a_tile_of_all_256_keys():
    bh, s, d = 16, 200, 40
    q, k, v, out = rand(bh, s, d), rand(bh, s, d), rand(bh, s, d), zeros(bh, s, d)
    args = q, k, v, out, s, d, d**-0.5
    launched = run(self_attention_row_kernel, (s, bh), args, out, BLOCK_S=256, BLOCK_D=64)
    return against(launched, lambda: F.scaled_dot_product_attention(q.float()[None], k.float()[None], v.float()[None], is_causal=True)[0])


@triton.jit
def matmul_div_mod_kernel(a_ptr, b_ptr, c_ptr, M, N, K, BLOCK: tl.constexpr, BK: tl.constexpr):
    # Outputs numbered flat, each row and column by division; K in a second axis that is summed.
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < M * N
    row = offs // N
    col = offs % N
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for k in range(0, K, BK):
        ks = k + tl.arange(0, BK)
        a = tl.load(a_ptr + row[:, None] * K + ks[None, :], mask=mask[:, None] & (ks[None, :] < K), other=0.0)
        b = tl.load(b_ptr + ks[None, :] * N + col[:, None], mask=mask[:, None] & (ks[None, :] < K), other=0.0)
        acc += tl.sum(a * b, axis=1)
    tl.store(c_ptr + offs, acc, mask=mask)


@case
def product_with_outputs_numbered_flat():
    m, n, k = 300, 260, 190
    a, b, c = f32(m, k), f32(k, n), zeros(m, n, dtype="float32")
    launched = run(matmul_div_mod_kernel, (cdiv(m * n, 128),), (a, b, c, m, n, k), c, BLOCK=128, BK=32)
    return against(launched, lambda: a.double() @ b.double())


@triton.jit
def gru_cell_kernel(x_ptr, h_ptr, wi_ptr, wh_ptr, bi_ptr, bh_ptr, out_ptr, I, H, BLOCK_H: tl.constexpr, BLOCK_K: tl.constexpr):
    # A sample and a block of units a program; three gates, each with a loop of its own over inputs and over units.
    b = tl.program_id(0)
    j = tl.program_id(1) * BLOCK_H + tl.arange(0, BLOCK_H)
    mj = j < H
    r = tl.load(bi_ptr + j, mask=mj, other=0.0) + tl.load(bh_ptr + j, mask=mj, other=0.0)
    z = tl.load(bi_ptr + H + j, mask=mj, other=0.0) + tl.load(bh_ptr + H + j, mask=mj, other=0.0)
    n_i = tl.load(bi_ptr + 2 * H + j, mask=mj, other=0.0)
    n_h = tl.load(bh_ptr + 2 * H + j, mask=mj, other=0.0)
    for k0 in range(0, I, BLOCK_K):
        k = k0 + tl.arange(0, BLOCK_K)
        m = mj[:, None] & (k < I)[None, :]
        x = tl.load(x_ptr + b * I + k, mask=k < I, other=0.0)
        r += tl.sum(tl.load(wi_ptr + j[:, None] * I + k[None, :], mask=m, other=0.0) * x[None, :], axis=1)
        z += tl.sum(tl.load(wi_ptr + (H + j)[:, None] * I + k[None, :], mask=m, other=0.0) * x[None, :], axis=1)
        n_i += tl.sum(tl.load(wi_ptr + (2 * H + j)[:, None] * I + k[None, :], mask=m, other=0.0) * x[None, :], axis=1)
    for k0 in range(0, H, BLOCK_K):
        k = k0 + tl.arange(0, BLOCK_K)
        m = mj[:, None] & (k < H)[None, :]
        h = tl.load(h_ptr + b * H + k, mask=k < H, other=0.0)
        r += tl.sum(tl.load(wh_ptr + j[:, None] * H + k[None, :], mask=m, other=0.0) * h[None, :], axis=1)
        z += tl.sum(tl.load(wh_ptr + (H + j)[:, None] * H + k[None, :], mask=m, other=0.0) * h[None, :], axis=1)
        n_h += tl.sum(tl.load(wh_ptr + (2 * H + j)[:, None] * H + k[None, :], mask=m, other=0.0) * h[None, :], axis=1)
    r = 1.0 / (1.0 + tl.exp(-r))
    z = 1.0 / (1.0 + tl.exp(-z))
    n = 2.0 / (1.0 + tl.exp(-2.0 * (n_i + r * n_h))) - 1.0
    old = tl.load(h_ptr + b * H + j, mask=mj, other=0.0)
    tl.store(out_ptr + b * H + j, (1.0 - z) * n + z * old, mask=mj)


@case
def gru_cell_of_a_sample_by_six_sums_in_two_loops():
    b, i, h = 64, 300, 200
    cell = (f32(3 * h, i) / 17, f32(3 * h, h) / 14, f32(3 * h), f32(3 * h))
    x, state, out = f32(b, i), f32(b, h), zeros(b, h, dtype="float32")
    launched = run(gru_cell_kernel, (b, cdiv(h, 32)), (x, state, *cell, out, i, h), out, BLOCK_H=32, BLOCK_K=64)

    def reference():
        gi, gh = x @ cell[0].t() + cell[2], state @ cell[1].t() + cell[3]
        (a, c, d), (e, f, g) = gi.chunk(3, 1), gh.chunk(3, 1)
        r, z = (a + e).sigmoid(), (c + f).sigmoid()
        return (1 - z) * (d + r * g).tanh() + z * state

    return against(launched, reference)


@triton.jit
def conv2d_shared_kernel(x_ptr, w_ptr, b_ptr, out_ptr, C_in, H, W, C_out, OH, OW, K: tl.constexpr, BLOCK_OC: tl.constexpr, BLOCK_OW: tl.constexpr):
    # A row of outputs and a block of channels; loops over channels, rows and columns with outer products of two vectors.
    n = tl.program_id(0) // OH
    oh = tl.program_id(0) % OH
    oc = tl.program_id(1) * BLOCK_OC + tl.arange(0, BLOCK_OC)
    ow = tl.program_id(2) * BLOCK_OW + tl.arange(0, BLOCK_OW)
    acc = tl.zeros((BLOCK_OC, BLOCK_OW), dtype=tl.float32)
    for ic in range(C_in):
        for kh in range(K):
            for kw in range(K):
                x = tl.load(x_ptr + ((n * C_in + ic) * H + oh + kh) * W + ow + kw, mask=ow < OW, other=0.0)
                w = tl.load(w_ptr + ((oc * C_in + ic) * K + kh) * K + kw, mask=oc < C_out, other=0.0)
                acc += w[:, None] * x[None, :]
    bias = tl.load(b_ptr + oc, mask=oc < C_out, other=0.0)
    acc = acc + bias[:, None]
    acc = acc * tl.sigmoid(acc)
    out = out_ptr + ((n * C_out + oc[:, None]) * OH + oh) * OW + ow[None, :]
    tl.store(out, acc, mask=(oc[:, None] < C_out) & (ow[None, :] < OW))


@case
def conv2d_by_outer_products_of_a_tap_and_a_row():
    n, ci, h, w, co, k = 8, 16, 66, 66, 48, 3
    x, weight, bias, out = f32(n, ci, h, w), f32(co, ci, k, k) / 12, f32(co), zeros(n, co, h - 2, w - 2, dtype="float32")
    args = x, weight, bias, out, ci, h, w, co, h - 2, w - 2
    launched = run(conv2d_shared_kernel, (n * (h - 2), cdiv(co, 16), 1), args, out, K=k, BLOCK_OC=16, BLOCK_OW=64)
    return against(launched, lambda: F.silu(F.conv2d(x, weight, bias)))


@triton.jit
def nms_like_rank_kernel(score_ptr, rank_ptr, N, BLOCK: tl.constexpr):
    # Rank of each element of a row by comparing it with all: a square of booleans, then a sum of integers.
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    x = tl.load(score_ptr + row * N + i, mask=i < N, other=-1e30)
    greater = (x[None, :] > x[:, None]).to(tl.int32)
    equal_before = ((x[None, :] == x[:, None]) & (i[None, :] < i[:, None])).to(tl.int32)
    rank = tl.sum(greater + equal_before, axis=1)
    tl.store(rank_ptr + row * N + i, rank.to(tl.int64), mask=i < N)


@case
def ranks_by_a_square_of_comparisons_of_128():
    r, n = 8000, 100
    x, rank = ints(0, 60, r, n).float(), zeros(r, n, dtype="int64")
    launched = run(nms_like_rank_kernel, (r,), (x, rank, n), rank, BLOCK=128)
    return against(launched, lambda: (-x).sort(dim=1, stable=True).indices.argsort(1))


@triton.jit
def layernorm_welford_kernel(x_ptr, y_ptr, w_ptr, b_ptr, N, eps, BLOCK: tl.constexpr):
    # Means and squares merged block by block by hand with counts as floats; then a loop that reads again.
    row = tl.program_id(0)
    count = 0.0
    mean = 0.0
    m2 = 0.0
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        mask = cols < N
        x = tl.load(x_ptr + row * N + cols, mask=mask, other=0.0).to(tl.float32)
        n_b = tl.sum(mask.to(tl.float32), axis=0)
        mean_b = tl.sum(x, axis=0) / n_b
        diff = tl.where(mask, x - mean_b, 0.0)
        m2_b = tl.sum(diff * diff, axis=0)
        delta = mean_b - mean
        total = count + n_b
        mean = mean + delta * n_b / total
        m2 = m2 + m2_b + delta * delta * count * n_b / total
        count = total
    rstd = 1.0 / tl.sqrt(m2 / N + eps)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        mask = cols < N
        x = tl.load(x_ptr + row * N + cols, mask=mask, other=0.0).to(tl.float32)
        w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
        b = tl.load(b_ptr + cols, mask=mask, other=0.0).to(tl.float32)
        y = (x - mean) * rstd * w + b
        tl.store(y_ptr + row * N + cols, y.to(tl.bfloat16), mask=mask)


@case
def layer_norm_of_5000_by_moments_merged_in_blocks_of_256():
    m, n = 2000, 5000
    x, y, w, b = rand(m, n, dtype="bfloat16"), zeros(m, n, dtype="bfloat16"), rand(n, dtype="bfloat16"), rand(n, dtype="bfloat16")
    launched = run(layernorm_welford_kernel, (m,), (x, y, w, b, n, 1e-5), y, BLOCK=256)
    return against(launched, lambda: F.layer_norm(x.float(), (n,), w.float(), b.float()))


@triton.jit
def cross_attention_mask_kernel(q_ptr, k_ptr, v_ptr, mask_ptr, out_ptr, stride_b, stride_h, stride_s, LQ, LK, scale, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, HEAD: tl.constexpr):
    # Online softmax as in tutorials, with a mask of bytes, everything cast to float and back.
    start_m = tl.program_id(0)
    off_b = tl.program_id(1)
    off_h = tl.program_id(2)
    offs_m = start_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = tl.arange(0, BLOCK_N)
    offs_d = tl.arange(0, HEAD)
    q_ptrs = q_ptr + off_b * stride_b + off_h * stride_h + offs_m[:, None] * stride_s + offs_d[None, :]
    q = tl.load(q_ptrs, mask=offs_m[:, None] < LQ, other=0.0).to(tl.float32) * scale
    m_i = tl.full([BLOCK_M], value=-1e9, dtype=tl.float32)
    l_i = tl.full([BLOCK_M], value=0.0, dtype=tl.float32)
    acc = tl.zeros([BLOCK_M, HEAD], dtype=tl.float32)
    for start_n in range(0, LK, BLOCK_N):
        cols = start_n + offs_n
        k_ptrs = k_ptr + off_b * stride_b + off_h * stride_h + cols[None, :] * stride_s + offs_d[:, None]
        k = tl.load(k_ptrs, mask=cols[None, :] < LK, other=0.0).to(tl.float32)
        qk = tl.dot(q.to(tl.float16), k.to(tl.float16)).to(tl.float32)
        keep = tl.load(mask_ptr + off_b * LK + cols, mask=cols < LK, other=0)
        qk = tl.where((keep != 0)[None, :], qk, -1e9)
        m_new = tl.maximum(m_i, tl.max(qk, axis=1))
        p = tl.exp(qk - m_new[:, None])
        p = tl.where((keep != 0)[None, :], p, 0.0)
        alpha = tl.exp(m_i - m_new)
        l_i = l_i * alpha + tl.sum(p, axis=1)
        v_ptrs = v_ptr + off_b * stride_b + off_h * stride_h + cols[:, None] * stride_s + offs_d[None, :]
        v = tl.load(v_ptrs, mask=cols[:, None] < LK, other=0.0).to(tl.float32)
        acc = acc * alpha[:, None]
        acc = acc + tl.dot(p.to(tl.float16), v.to(tl.float16)).to(tl.float32)
        m_i = m_new
    acc = acc / (l_i[:, None] + 1e-6)
    out_ptrs = out_ptr + off_b * stride_b + off_h * stride_h + offs_m[:, None] * stride_s + offs_d[None, :]
    tl.store(out_ptrs, acc.to(tl.float16), mask=offs_m[:, None] < LQ)


@case
def attention_as_in_tutorials_with_bytes_that_mask_keys():
    b, h, s, d = 6, 8, 500, 64
    q, k, v, out = rand(b, s, h, d), rand(b, s, h, d), rand(b, s, h, d), zeros(b, s, h, d)
    mask = ints(0, 4, b, s, dtype="int8")
    args = q, k, v, mask, out, s * h * d, d, h * d, s, s, d**-0.5
    launched = run(cross_attention_mask_kernel, (cdiv(s, 64), b, h), args, out, BLOCK_M=64, BLOCK_N=32, HEAD=d)

    def reference():
        a, c, e = (x.float().transpose(1, 2) for x in (q, k, v))
        return F.scaled_dot_product_attention(a, c, e, (mask != 0)[:, None, None]).transpose(1, 2)

    return against(launched, reference)


@triton.jit
def pairwise_hinge_kernel(pos_ptr, neg_ptr, out_ptr, P, Q, margin, BLOCK_P: tl.constexpr, BLOCK_Q: tl.constexpr):
    # All pairs in tiles of 64 by 64, one atomic a tile.
    p = tl.program_id(0) * BLOCK_P + tl.arange(0, BLOCK_P)
    q = tl.program_id(1) * BLOCK_Q + tl.arange(0, BLOCK_Q)
    pos = tl.load(pos_ptr + p, mask=p < P, other=0.0)
    neg = tl.load(neg_ptr + q, mask=q < Q, other=0.0)
    loss = margin - pos[:, None] + neg[None, :]
    loss = tl.where(loss > 0.0, loss, 0.0)
    loss = tl.where((p < P)[:, None], loss, 0.0)
    loss = tl.where((q < Q)[None, :], loss, 0.0)
    total = tl.sum(tl.sum(loss, axis=1), axis=0)
    tl.atomic_add(out_ptr, total / (P * Q))


@case
def hinge_of_all_pairs_by_one_atomic_a_tile():
    p, q = 3000, 5000
    pos, neg, out = f32(p), f32(q), zeros(1, dtype="float32")
    launched = run(pairwise_hinge_kernel, (cdiv(p, 64), cdiv(q, 64)), (pos, neg, out, p, q, 1.0), out, BLOCK_P=64, BLOCK_Q=64)
    return against(cleared(launched, out), lambda: (1 - pos.double()[:, None] + neg.double()[None]).relu().mean()[None])


@triton.jit
def swin_partition_kernel(x_ptr, out_ptr, B, H, W, C, WS: tl.constexpr, SHIFT: tl.constexpr, BLOCK_C: tl.constexpr):
    # A pixel a program: where it comes from after rolling, all its channels in one vector that is mostly masked.
    pid = tl.program_id(0)
    x = pid % WS
    y = (pid // WS) % WS
    win = pid // (WS * WS)
    wx = win % (W // WS)
    wy = (win // (W // WS)) % (H // WS)
    b = win // ((W // WS) * (H // WS))
    src_y = (wy * WS + y + SHIFT) % H
    src_x = (wx * WS + x + SHIFT) % W
    c = tl.arange(0, BLOCK_C)
    mask = c < C
    value = tl.load(x_ptr + ((b * H + src_y) * W + src_x) * C + c, mask=mask)
    tl.store(out_ptr + pid * C + c, value, mask=mask)


@case
def pixels_to_shifted_windows_one_a_program():
    b, h, w, c, ws, shift = 8, 56, 56, 96, 7, 3
    x, out = rand(b, h, w, c), zeros(b * (h // ws) * (w // ws), ws, ws, c)
    launched = run(swin_partition_kernel, (b * h * w,), (x, out, b, h, w, c), out, WS=ws, SHIFT=shift, BLOCK_C=512)

    def reference():
        rolled = torch.roll(x, (-shift, -shift), (1, 2))
        return rolled.reshape(b, h // ws, ws, w // ws, ws, c).permute(0, 1, 3, 2, 4, 5).reshape(-1, ws, ws, c)

    return against(launched, reference)


@triton.jit
def dice_loss_kernel(pred_ptr, target_ptr, inter_ptr, union_ptr, N, C, HW, BLOCK: tl.constexpr):
    # Softmax over channels by three loops a block of pixels, then two atomics a channel.
    n = tl.program_id(1)
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < HW
    top = tl.full([BLOCK], -1e30, tl.float32)
    for c in range(C):
        x = tl.load(pred_ptr + (n * C + c) * HW + i, mask=mask, other=-1e30).to(tl.float32)
        top = tl.maximum(top, x)
    total = tl.zeros([BLOCK], tl.float32)
    for c in range(C):
        x = tl.load(pred_ptr + (n * C + c) * HW + i, mask=mask, other=-1e30).to(tl.float32)
        total += tl.exp(x - top)
    t = tl.load(target_ptr + n * HW + i, mask=mask, other=-1)
    for c in range(C):
        x = tl.load(pred_ptr + (n * C + c) * HW + i, mask=mask, other=-1e30).to(tl.float32)
        p = tl.where(mask, tl.exp(x - top) / total, 0.0)
        hit = tl.where(t == c, 1.0, 0.0)
        tl.atomic_add(inter_ptr + n * C + c, tl.sum(p * hit, axis=0))
        tl.atomic_add(union_ptr + n * C + c, tl.sum(p + hit, axis=0))


@case
def overlaps_of_soft_classes_by_atomics_a_channel():
    n, c, hw = 12, 20, 30_000
    pred, target = rand(n, c, hw), ints(0, c, n, hw)
    inter, union = zeros(n, c, dtype="float32"), zeros(n, c, dtype="float32")
    launched = run(dice_loss_kernel, (cdiv(hw, 512), n), (pred, target, inter, union, n, c, hw), (inter, union), BLOCK=512)

    def reference():
        p, hit = pred.double().softmax(1), F.one_hot(target.long(), c).mT.double()
        return (p * hit).sum(2), (p + hit).sum(2)

    return against(cleared(launched, inter, union), reference)


@triton.jit
def adaptive_layernorm_kernel(x_ptr, scale_ptr, shift_ptr, out_ptr, rows_per_sample, N, eps, BLOCK: tl.constexpr, ROWS: tl.constexpr):
    # Eight rows after another in an unrolled loop, the row of scales loaded for each of them.
    for r in tl.static_range(ROWS):
        row = tl.program_id(0) * ROWS + r
        sample = row // rows_per_sample
        cols = tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * N + cols, mask=cols < N, other=0.0).to(tl.float32)
        mean = tl.sum(x, axis=0) / N
        x = tl.where(cols < N, x - mean, 0.0)
        var = tl.sum(x * x, axis=0) / N
        y = x * (1 / tl.sqrt(var + eps))
        s = tl.load(scale_ptr + sample * N + cols, mask=cols < N, other=0.0).to(tl.float32)
        b = tl.load(shift_ptr + sample * N + cols, mask=cols < N, other=0.0).to(tl.float32)
        tl.store(out_ptr + row * N + cols, (y * (1 + s) + b).to(tl.float16), mask=cols < N)


@case
def modulated_norm_of_eight_rows_unrolled():
    samples, rows, n = 16, 512, 1152
    x, s, b, out = rand(samples, rows, n), rand(samples, n), rand(samples, n), zeros(samples, rows, n)
    launched = run(adaptive_layernorm_kernel, (samples * rows // 8,), (x, s, b, out, rows, n, 1e-6), out, BLOCK=2048, ROWS=8)
    return against(launched, lambda: F.layer_norm(x.float(), (n,), eps=1e-6) * (1 + s.float()[:, None]) + b.float()[:, None])


@triton.jit
def prefix_sum_sequential_kernel(x_ptr, out_ptr, N, stride, BLOCK: tl.constexpr):
    # Running maximum and sum down a column, step by step, a column a lane.
    col = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = col < stride
    total = tl.zeros([BLOCK], dtype=tl.float64)
    high = tl.full([BLOCK], -float("inf"), dtype=tl.float32)
    for i in range(N):
        x = tl.load(x_ptr + i * stride + col, mask=mask, other=0.0)
        total = total + x.to(tl.float64)
        high = tl.maximum(high, x)
        tl.store(out_ptr + i * stride + col, total.to(tl.float32) - high, mask=mask)


@case
def columns_summed_in_double_step_by_step_less_their_maxima():
    n, stride = 500, 9000
    x, out = f32(n, stride), zeros(n, stride, dtype="float32")
    launched = run(prefix_sum_sequential_kernel, (cdiv(stride, 128),), (x, out, n, stride), out, BLOCK=128)
    return against(launched, lambda: x.double().cumsum(0) - x.cummax(0).values)


@triton.jit
def sigmoid_kernel(x):
    return 1.0 / (1.0 + tl.exp(-x.to(tl.float32)))


@triton.jit
def mixture_kernel(x_ptr, w1_ptr, w2_ptr, gate_ptr, out_ptr, T, D, F_, BLOCK_T: tl.constexpr, BLOCK_F: tl.constexpr, BLOCK_D: tl.constexpr, E: tl.constexpr):
    # All experts for all tokens, weighted by gates: two dots in a loop in a loop, defaults for warps and stages.
    t = tl.program_id(0) * BLOCK_T + tl.arange(0, BLOCK_T)
    d = tl.arange(0, BLOCK_D)
    f = tl.arange(0, BLOCK_F)
    tm = t < T
    x = tl.load(x_ptr + t[:, None] * D + d[None, :], mask=tm[:, None] & (d < D)[None, :], other=0.0)
    acc = tl.zeros((BLOCK_T, BLOCK_D), dtype=tl.float32)
    for e in range(E):
        gate = tl.load(gate_ptr + t * E + e, mask=tm, other=0.0).to(tl.float32)
        for f0 in range(0, F_, BLOCK_F):
            fm = f0 + f < F_
            w1 = tl.load(w1_ptr + e * D * F_ + d[:, None] * F_ + (f0 + f)[None, :], mask=(d < D)[:, None] & fm[None, :], other=0.0)
            h = tl.dot(x, w1)
            h = h * sigmoid_kernel(h)
            h = h * gate[:, None]
            w2 = tl.load(w2_ptr + e * D * F_ + (f0 + f)[:, None] * D + d[None, :], mask=fm[:, None] & (d < D)[None, :], other=0.0)
            acc += tl.dot(h.to(tl.float16), w2)
    tl.store(out_ptr + t[:, None] * D + d[None, :], acc.to(tl.float16), mask=tm[:, None] & (d < D)[None, :])


@case
def every_expert_for_every_token_in_two_loops():
    t, d, f, e = 4000, 100, 200, 4
    x, w1, w2, gate, out = rand(t, d), rand(e, d, f) / 10, rand(e, f, d) / 14, torch.softmax(f32(t, e), 1).half(), zeros(t, d)
    args = x, w1, w2, gate, out, t, d, f
    launched = run(mixture_kernel, (cdiv(t, 32),), args, out, BLOCK_T=32, BLOCK_F=32, BLOCK_D=128, E=e)

    def reference():
        h = F.silu(torch.einsum("td,edf->etf", x.float(), w1.float())) * gate.float().t()[..., None]
        return torch.einsum("etf,efd->td", h, w2.float())

    return against(launched, reference)


@triton.jit
def rope_concat_kernel(q_ptr, cos_ptr, sin_ptr, out_ptr, S, H, D: tl.constexpr, BLOCK: tl.constexpr):
    # Every element by its number: its partner is found by where, loaded a second time.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < S * H * D
    d = i % D
    s = i // (D * H)
    x = tl.load(q_ptr + i, mask=mask, other=0.0).to(tl.float32)
    partner = tl.where(d < D // 2, i + D // 2, i - D // 2)
    y = tl.load(q_ptr + partner, mask=mask, other=0.0).to(tl.float32)
    y = tl.where(d < D // 2, -y, y)
    c = tl.load(cos_ptr + s * D + d, mask=mask, other=0.0).to(tl.float32)
    sn = tl.load(sin_ptr + s * D + d, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + i, (x * c + y * sn).to(tl.bfloat16), mask=mask)


@case
def halves_turned_element_by_element_with_partners_by_where():
    s, h, d = 4000, 20, 80
    q, out, angle = rand(s, h, d, dtype="bfloat16"), zeros(s, h, d, dtype="bfloat16"), uniform(s, d // 2).repeat(1, 2) * 6
    cos, sin = angle.cos(), angle.sin()
    launched = run(rope_concat_kernel, (cdiv(s * h * d, 1024),), (q, cos, sin, out, s, h), out, D=d, BLOCK=1024)

    def reference():
        a, b = q.float().chunk(2, 2)
        return q.float() * cos[:, None] + torch.cat([-b, a], 2) * sin[:, None]

    return against(launched, reference)


@triton.jit
def fused_mlp_whole_kernel(x_ptr, w1_ptr, b1_ptr, w2_ptr, b2_ptr, out_ptr, M, IN, HID, OUT, BM: tl.constexpr, BI: tl.constexpr, BH: tl.constexpr, BO: tl.constexpr):
    # Everything padded to powers of two and loaded at once, no loop: blocks much larger than they need to be.
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    i = tl.arange(0, BI)
    h = tl.arange(0, BH)
    o = tl.arange(0, BO)
    x = tl.load(x_ptr + m[:, None] * IN + i[None, :], mask=(m[:, None] < M) & (i[None, :] < IN), other=0.0)
    w1 = tl.load(w1_ptr + h[None, :] * IN + i[:, None], mask=(h[None, :] < HID) & (i[:, None] < IN), other=0.0)
    b1 = tl.load(b1_ptr + h, mask=h < HID, other=0.0)
    hidden = tl.dot(x, w1) + b1[None, :]
    hidden = tl.where(hidden > 0, hidden, 0.01 * hidden)
    w2 = tl.load(w2_ptr + o[None, :] * HID + h[:, None], mask=(o[None, :] < OUT) & (h[:, None] < HID), other=0.0)
    b2 = tl.load(b2_ptr + o, mask=o < OUT, other=0.0)
    out = tl.dot(hidden, w2) + b2[None, :]
    tl.store(out_ptr + m[:, None] * OUT + o[None, :], out, mask=(m[:, None] < M) & (o[None, :] < OUT))


@case
def two_layers_of_floats_padded_and_loaded_at_once():
    m, i, h, o = 20_000, 50, 100, 10
    x, w1, b1, w2, b2, out = f32(m, i), f32(h, i) / 7, f32(h), f32(o, h) / 10, f32(o), zeros(m, o, dtype="float32")
    args = x, w1, b1, w2, b2, out, m, i, h, o
    launched = run(fused_mlp_whole_kernel, (cdiv(m, 64),), args, out, BM=64, BI=64, BH=128, BO=16)
    return against(launched, lambda: F.leaky_relu(x @ w1.t() + b1) @ w2.t() + b2)


@triton.jit
def moving_average_kernel(x_ptr, out_ptr, var_ptr, N, WINDOW: tl.constexpr, BLOCK: tl.constexpr):
    # A window of 20 in two axes, 32 wide because it must be a power of two; mean and spread by sums of the second.
    row = tl.program_id(1)
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    j = tl.arange(0, 32)
    src = i[:, None] - j[None, :]
    mask = (src >= 0) & (src < N) & (j[None, :] < WINDOW)
    x = tl.load(x_ptr + row * N + src, mask=mask, other=0.0)
    count = tl.sum(mask.to(tl.float32), axis=1)
    mean = tl.sum(x, axis=1) / count
    d = tl.where(mask, x - mean[:, None], 0.0)
    tl.store(out_ptr + row * N + i, mean, mask=i < N)
    tl.store(var_ptr + row * N + i, tl.sqrt(tl.sum(d * d, axis=1) / count), mask=i < N)


@case
def averages_and_spreads_of_windows_of_20_in_tiles_of_32():
    r, n = 200, 3000
    x, out, var = f32(r, n), zeros(r, n, dtype="float32"), zeros(r, n, dtype="float32")
    launched = run(moving_average_kernel, (cdiv(n, 128), r), (x, out, var, n), (out, var), WINDOW=20, BLOCK=128)

    def reference():
        w = F.pad(x.double(), (19, 0)).unfold(1, 20, 1)
        seen = (arange(n)[:, None] + arange(20)[None]) >= 19
        count = seen.sum(1)
        mean = (w * seen).sum(2) / count
        return mean, (((w - mean[..., None]) * seen).square().sum(2) / count).sqrt()

    return against(launched, reference)
