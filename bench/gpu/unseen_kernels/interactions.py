"""Dots between all of one kind and all of another: unusual attentions, mixtures, filters, networks of tensors, scores of pairs."""

import torch
import triton
import triton.language as tl

from .common import PROGRAMS, case, cdiv, cleared, f8, f32, full, ints, rand, run, uniform, zeros
from .linalg import allocate


@triton.jit
def attend_with_mixed_heads(Q, K, V, MIX, BACK, O, T, scale, H: tl.constexpr, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    # Scores of all heads at once, mixed across heads by a matrix before the exponential: a batch of dots, and a dot over the batch.
    m, b = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1)
    h, d, g = tl.arange(0, H), tl.arange(0, D), tl.arange(0, H)
    at_q = ((b * T + m)[None, :, None] * H + h[:, None, None]) * D + d[None, None, :]
    q = tl.load(Q + at_q)
    mix = tl.load(MIX + g[:, None] * H + h[None, :])
    top, total = tl.full((H, BM), -1e30, tl.float32), tl.zeros((H, BM), tl.float32)
    acc = tl.zeros((H, BM, D), tl.float32)
    for n0 in range(0, T, BN):
        at_k = ((b * T + n0 + tl.arange(0, BN))[None, :, None] * H + h[:, None, None]) * D + d[None, None, :]
        k, v = tl.load(K + at_k), tl.load(V + at_k)
        s = tl.dot(q, tl.permute(k, (0, 2, 1))) * scale
        s = tl.reshape(tl.dot(mix, tl.reshape(s, (H, BM * BN)).to(tl.float16)), (H, BM, BN))
        new = tl.maximum(top, tl.max(s, 2))
        p, back = tl.exp2(s - new[:, :, None]), tl.exp2(top - new)
        total = total * back + tl.sum(p, 2)
        acc = tl.dot(p.to(tl.float16), v, acc * back[:, :, None])
        top = new
    o = acc / total[:, :, None] * tl.load(BACK + h)[:, None, None]
    tl.store(O + at_q, o.to(O.dtype.element_ty))


@case
def attn_heads_mixed_before_softmax():
    b, t, h, d = 4, 1024, 16, 32
    q, k, v, o = rand(b, t, h, d), rand(b, t, h, d), rand(b, t, h, d), zeros(b, t, h, d)
    args = q, k, v, rand(h, h) * 0.25, f32(h), o, t, d**-0.5 * 1.44269504
    return run(attend_with_mixed_heads, (t // 16, b), args, o, H=h, D=d, BM=16, BN=16, num_warps=8, num_stages=2)


@triton.jit
def break_sticks(Q, K, V, O, LEFT, T, scale, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    # Each key takes a share of what later keys left: from the newest block to the oldest, sums along a block from its end.
    m, h = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1)
    d, n_in = tl.arange(0, D), tl.arange(0, BN)
    q = tl.load(Q + (h * T + m)[:, None] * D + d[None, :])
    acc, left = tl.zeros((BM, D), tl.float32), tl.zeros((BM,), tl.float32)
    for step in range(tl.program_id(0) * (BM // BN) + BM // BN - 1, -1, -1):
        n = step * BN + n_in
        k = tl.load(K + (h * T + n)[None, :] * D + d[:, None])
        v = tl.load(V + (h * T + n)[:, None] * D + d[None, :])
        s = tl.dot(q, k) * scale
        live = n[None, :] < m[:, None]
        stay = tl.where(live, -tl.maximum(s, 0.0) - tl.log(1.0 + tl.exp(-tl.abs(s))), 0.0)
        after = tl.cumsum(stay, 1, reverse=True)
        p = tl.where(live, tl.exp(s + after + left[:, None]), 0.0)
        acc = tl.dot(p.to(v.dtype), v, acc)
        left += tl.sum(stay, 1)
    tl.store(O + (h * T + m)[:, None] * D + d[None, :], acc.to(O.dtype.element_ty))
    tl.store(LEFT + h * T + m, tl.exp(left))


@case
def attn_stick_breaking():
    h, t, d = 24, 2048, 64
    q, k, v, o = (rand(h, t, d, dtype="bfloat16") for _ in range(4))
    left = zeros(h, t, dtype="float32")
    return run(break_sticks, (t // 64, h), (q, k, v, o, left, t, d**-0.5), o, D=d, BM=64, BN=32, num_warps=4, num_stages=3)


@triton.jit
def attend_to_pairs_of_keys(Q, K1, K2, V1, V2, O, T, scale, NEAR: tl.constexpr, FAR: tl.constexpr, D: tl.constexpr, BM: tl.constexpr,
                            BN: tl.constexpr):
    # A query attends to pairs of one of the last few keys and one of many: each few keys' row is multiplied into the query.
    m, h = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1)
    d = tl.arange(0, D)
    q = tl.load(Q + (h * T + m)[:, None] * D + d[None, :]).to(tl.float32) * scale
    top, total, acc = tl.full((BM,), -1e30, tl.float32), tl.zeros((BM,), tl.float32), tl.zeros((BM, D), tl.float32)
    first = tl.program_id(0) * BM
    for j in range(tl.maximum(first - NEAR + 1, 0), first + BM):
        near = tl.load(K1 + (h * T + j) * D + d).to(tl.float32)
        value = tl.load(V1 + (h * T + j) * D + d).to(tl.float32)
        qj = (q * near[None, :]).to(tl.bfloat16)
        in_near = (j <= m) & (j > m - NEAR)
        for n0 in range(tl.maximum(first - FAR + BM, 0), first + BM, BN):
            n = n0 + tl.arange(0, BN)
            k = tl.load(K2 + (h * T + n)[None, :] * D + d[:, None])
            v = tl.load(V2 + (h * T + n)[:, None] * D + d[None, :])
            live = in_near[:, None] & (n[None, :] <= m[:, None])
            s = tl.where(live, tl.dot(qj, k), -1e30)
            new = tl.maximum(top, tl.max(s, 1))
            p, back = tl.where(live, tl.exp2(s - new[:, None]), 0.0), tl.exp2(top - new)
            total = total * back + tl.sum(p, 1)
            acc = acc * back[:, None] + tl.dot(p.to(tl.bfloat16), v) * value[None, :]
            top = new
    tl.store(O + (h * T + m)[:, None] * D + d[None, :], (acc / total[:, None]).to(O.dtype.element_ty))


@case
def attn_of_pairs_of_keys_in_windows():
    h, t, d = 8, 2048, 64
    q, k1, k2, v1, v2, o = (rand(h, t, d, dtype="bfloat16") for _ in range(6))
    args = q, k1, k2, v1, v2, o, t, d**-0.5 * 1.44269504
    return run(attend_to_pairs_of_keys, (t // 64, h), args, o, NEAR=16, FAR=256, D=d, BM=64, BN=64, num_warps=4, num_stages=2)


@triton.jit
def mixture_step(X, MEAN, PRECISION, WEIGHT, COUNT, SUMS, SQUARES, LIKELIHOOD, N, D: tl.constexpr, K: tl.constexpr, BM: tl.constexpr):
    # A step of expectation and maximization with diagonal covariances: two dots give scores, two of the transpose give new moments.
    d, k = tl.arange(0, D), tl.arange(0, K)
    precision = tl.load(PRECISION + k[:, None] * D + d[None, :])
    mean = tl.load(MEAN + k[:, None] * D + d[None, :])
    offset = tl.load(WEIGHT + k) - 0.5 * tl.sum(mean * mean * precision - tl.log(precision), 1)
    square, cross = tl.trans(-0.5 * precision), tl.trans(mean * precision)
    sums, squares = tl.zeros((K, D), tl.float32), tl.zeros((K, D), tl.float32)
    count, likely = tl.zeros((K,), tl.float32), 0.0
    for i0 in range(tl.program_id(0) * BM, N, tl.num_programs(0) * BM):
        i = i0 + tl.arange(0, BM)
        live = i < N
        x = tl.load(X + i[:, None] * D + d[None, :], mask=live[:, None], other=0.0)
        s = tl.dot(x * x, square, tl.dot(x, cross)) + offset[None, :]
        top = tl.max(s, 1)
        p = tl.exp(s - top[:, None])
        total = tl.sum(p, 1)
        r = tl.where(live[:, None], p / total[:, None], 0.0)
        likely += tl.sum(tl.where(live, top + tl.log(total), 0.0), 0)
        count += tl.sum(r, 0)
        rt = tl.trans(r)
        sums = tl.dot(rt, x, sums)
        squares = tl.dot(rt, x * x, squares)
    tl.atomic_add(SUMS + k[:, None] * D + d[None, :], sums, sem="relaxed")
    tl.atomic_add(SQUARES + k[:, None] * D + d[None, :], squares, sem="relaxed")
    tl.atomic_add(COUNT + k, count, sem="relaxed")
    tl.atomic_add(LIKELIHOOD, likely, sem="relaxed")


@case
def gaussian_mixture_step_tf32():
    n, d, k = 200_001, 32, 32
    outs = full(0.0, k), full(0.0, k, d), full(0.0, k, d), full(0.0, 1)
    args = f32(n, d), f32(k, d) * 0.3, uniform(k, d) + 0.5, f32(k) * 0.1, *outs, n
    launch = run(mixture_step, (2 * PROGRAMS,), args, outs, D=d, K=k, BM=64, num_warps=4, num_stages=2)
    return cleared(launch, *outs)


@triton.jit
def kalman_filters(F, Q, H, Y, NOISE, X0, OUT, LIKELY, T, S: tl.constexpr, B: tl.constexpr):
    # Many filters of 16 states with one measurement a step: covariances go through two dots, then an update of rank one.
    b = tl.program_id(0) * B + tl.arange(0, B)
    i, j = tl.arange(0, S), tl.arange(0, S)
    at = b[:, None, None] * S * S + i[None, :, None] * S + j[None, None, :]
    f, q = tl.load(F + at), tl.load(Q + i[:, None] * S + j[None, :])
    ft = tl.permute(f, (0, 2, 1))
    h = tl.load(H + b[:, None] * S + j[None, :])
    noise = tl.load(NOISE + b)
    x = tl.load(X0 + b[:, None] * S + j[None, :])
    p = tl.zeros((B, S, S), tl.float32) + tl.where(i[:, None] == j[None, :], 1.0, 0.0)[None, :, :]
    likely = tl.zeros((B,), tl.float32)
    for t in range(T):
        x = tl.sum(f * x[:, None, :], 2)
        p = tl.dot(tl.dot(f, p, input_precision="ieee"), ft, input_precision="ieee") + q[None, :, :]
        ph = tl.sum(p * h[:, None, :], 2)
        s = tl.sum(ph * h, 1) + noise
        error = tl.load(Y + t * tl.num_programs(0) * B + b) - tl.sum(h * x, 1)
        gain = ph / s[:, None]
        x += gain * error[:, None]
        p -= gain[:, :, None] * ph[:, None, :]
        likely -= 0.5 * (error * error / s + tl.log(s))
    tl.store(OUT + b[:, None] * S + j[None, :], x)
    tl.store(LIKELY + b, likely)


@case
def kalman_filters_of_16_states():
    n, s, t = 2112, 16, 60
    x, likely = zeros(n, s, dtype="float32"), zeros(n, dtype="float32")
    f = f32(n, s, s) * 0.05 + torch.eye(s, device="cuda") * 0.6  # Stable: errors of rounding would grow otherwise.
    args = f, torch.eye(s, device="cuda") * 0.1, f32(n, s), f32(t, n), uniform(n) + 0.5, f32(n, s), x, likely, t
    return run(kalman_filters, (n // 4,), args, (x, likely), S=s, B=4, num_warps=4, num_stages=1)


@triton.jit
def overlap_of_chains(A, B, OUT, SITES, CHI: tl.constexpr):
    # Overlaps of states that are chains of matrices: L becomes the sum of transpose(A) L B over the two values of a site, rescaled.
    i, j, pair = tl.arange(0, CHI), tl.arange(0, CHI), tl.program_id(0)
    at = i[:, None] * CHI + j[None, :]
    left = tl.where(i[:, None] == j[None, :], 1.0, 0.0)
    scale = 0.0
    for site in range(SITES):
        base = (pair * SITES + site) * 2 * CHI * CHI
        a0, a1 = tl.load(A + base + at), tl.load(A + base + CHI * CHI + at)
        b0, b1 = tl.load(B + base + at), tl.load(B + base + CHI * CHI + at)
        half = left.to(tl.float16)
        new = tl.dot(tl.trans(a0), tl.dot(half, b0).to(tl.float16))
        new = tl.dot(tl.trans(a1), tl.dot(half, b1).to(tl.float16), new)
        size = tl.sqrt(tl.sum(tl.sum(new * new, 1), 0)) + 1e-30
        left = new * (8.0 / size)
        scale += tl.log(size * 0.125)
    tl.store(OUT + pair * 2, scale)
    tl.store(OUT + pair * 2 + 1, tl.sum(tl.sum(tl.abs(left), 1), 0))


@case
def overlaps_of_matrix_product_states():
    pairs, sites, chi = 528, 40, 32
    a, b, out = rand(pairs, sites, 2, chi, chi) * 0.2, rand(pairs, sites, 2, chi, chi) * 0.2, zeros(pairs, 2, dtype="float32")
    return run(overlap_of_chains, (pairs,), (a, b, out, sites), out, CHI=chi, num_warps=2, num_stages=3)


@triton.jit
def convolve_bytes(X, W, BIAS, SCALE, RESIDUAL, OUT, H, WIDE, OH, OW, C, O, STRIDE: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
                   BC: tl.constexpr):
    # A convolution of bytes, channels last, three by three: places are rows of the product; requantized, with a residual.
    m, o = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    image, y, x = m // (OH * OW), m // OW % OH * STRIDE - 1, m % OW * STRIDE - 1
    acc = tl.zeros((BM, BN), tl.int32)
    for tap in range(9):
        yy, xx = y + tap // 3, x + tap % 3
        inside = (yy >= 0) & (yy < H) & (xx >= 0) & (xx < WIDE)
        at = ((image * H + yy) * WIDE + xx) * C
        for c0 in range(0, C, BC):
            c = c0 + tl.arange(0, BC)
            a = tl.load(X + at[:, None] + c[None, :], mask=inside[:, None], other=0)
            b = tl.load(W + (o[None, :] * 9 + tap) * C + c[:, None])
            acc = tl.dot(a, b, acc)
    v = (acc + tl.load(BIAS + o)[None, :]).to(tl.float32) * tl.load(SCALE + o)[None, :]
    v += tl.load(RESIDUAL + m[:, None] * O + o[None, :]).to(tl.float32) * 0.37
    tl.store(OUT + m[:, None] * O + o[None, :], tl.clamp(v, -128.0, 127.0).to(tl.int8))


@case
def conv2d_of_bytes_with_residual():
    n, h, w, c, o = 16, 56, 56, 128, 128
    oh, ow = h // 2, w // 2
    out = zeros(n, oh, ow, o, dtype="int8")
    residual = ints(-100, 100, n, oh, ow, o, dtype="int8")
    args = ints(-128, 128, n, h, w, c, dtype="int8"), ints(-128, 128, o, 3, 3, c, dtype="int8"), ints(-999, 999, o), uniform(o) * 4e-4
    launch, args = run(convolve_bytes, (n * oh * ow // 64, o // 64), (*args, residual, out, h, w, oh, ow, c, o), out, STRIDE=2, BM=64, BN=64,
                       BC=64, num_warps=4, num_stages=4)
    return (lambda *a: launch(*a).to(torch.int32) + 300), args


@triton.jit
def late_interaction(Q, DOCS, STARTS, OUT, QN, D: tl.constexpr, BQ: tl.constexpr, BT: tl.constexpr):
    # The best match of each of a query's words in a document of any length, summed: document by document, query by query.
    doc, query = tl.program_id(0), tl.program_id(1)
    d, w = tl.arange(0, D), tl.arange(0, BQ)
    q = tl.load(Q + (query * QN + w)[:, None] * D + d[None, :], mask=(w < QN)[:, None], other=0.0)
    first, last = tl.load(STARTS + doc), tl.load(STARTS + doc + 1)
    best = tl.full((BQ,), -float("inf"), tl.float32)
    for t0 in range(first, last, BT):
        t = t0 + tl.arange(0, BT)
        x = tl.load(DOCS + t[None, :].to(tl.int64) * D + d[:, None], mask=(t < last)[None, :], other=0.0)
        s = tl.where((t < last)[None, :], tl.dot(q, x), -float("inf"))
        best = tl.maximum(best, tl.max(s, 1))
    tl.store(OUT + query * tl.num_programs(0) + doc, tl.sum(tl.where(w < QN, best, 0.0), 0))


@case
def late_interaction_of_ragged_documents():
    docs, queries, words, d = 3000, 4, 29, 128
    lengths = ints(30, 300, docs, dtype="int64")
    starts = torch.cat((lengths.new_zeros(1), lengths.cumsum(0)))
    out = zeros(queries, docs, dtype="float32")
    args = rand(queries, words, d), rand(int(starts[-1]), d), starts.to(torch.int32), out, words
    return run(late_interaction, (docs, queries), args, out, D=d, BQ=32, BT=64, num_warps=2, num_stages=3)


@triton.jit
def conjugate_gradients(HESS, Q, LAMBDA, OUT, STEPS: tl.constexpr, T, D: tl.constexpr, BM: tl.constexpr):
    # (H + lambda) x = q for all queries of a head at once: one dot a step, own step lengths of each row.
    h, m, d = tl.program_id(1), tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, D)
    hess = tl.load(HESS + h * D * D + d[:, None] * D + d[None, :])
    damp = tl.load(LAMBDA + h * D + d)[None, :]
    q = tl.load(Q + (h * T + m)[:, None] * D + d[None, :]).to(tl.float32)
    x = q / (damp + 1.0)
    r = q - tl.dot(x, hess, input_precision="tf32x3") - x * damp
    p = r
    rr = tl.sum(r * r, 1)
    for _ in range(STEPS):
        hp = tl.dot(p, hess, input_precision="tf32x3") + p * damp
        alpha = rr / (tl.sum(p * hp, 1) + 1e-12)
        x += alpha[:, None] * p
        r -= alpha[:, None] * hp
        new = tl.sum(r * r, 1)
        p = r + (new / (rr + 1e-12))[:, None] * p
        rr = new
    tl.store(OUT + (h * T + m)[:, None] * D + d[None, :], x.to(OUT.dtype.element_ty))


@case
def heads_solved_by_conjugate_gradients():
    h, t, d = 32, 2048, 64
    k = f32(h, 4 * d, d) * 0.06
    hess, damp = (k.transpose(1, 2) @ k).contiguous(), uniform(h, d) + 0.5
    q, out = rand(h, t, d, dtype="bfloat16"), zeros(h, t, d, dtype="bfloat16")
    launch, args = run(conjugate_gradients, (t // 64, h), (hess, q, damp, out, 10, t), out, D=d, BM=64, num_warps=4, num_stages=1)
    launch.reference = lambda *_: torch.linalg.solve(hess + torch.diag_embed(damp), q.float().transpose(1, 2)).transpose(1, 2)
    return launch, args


@triton.jit
def points_to_clouds(X, CLOUD, W1, B1, W2, B2, OUT, N, E: tl.constexpr, F: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    # Features of points by two layers, the first of three coordinates; the largest of a cloud by atomics on bits of what is not negative.
    i, e = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, E)
    live = i < N
    cloud = tl.load(CLOUD + i, mask=live, other=0)
    h = tl.load(B1 + e)[None, :] + tl.zeros((BM, E), tl.float32)
    for axis in tl.static_range(3):
        h += tl.load(X + i * 3 + axis, mask=live, other=0.0)[:, None] * tl.load(W1 + axis * E + e)[None, :]
    h = tl.maximum(h, 0.0).to(tl.float16)
    first, last = tl.min(tl.where(live, cloud, 2147483647), 0), tl.max(cloud, 0)
    for n0 in range(0, F, BN):
        n = n0 + tl.arange(0, BN)
        y = tl.dot(h, tl.load(W2 + e[:, None] * F + n[None, :])) + tl.load(B2 + n)[None, :]
        y = tl.maximum(y, 0.0)
        for c in range(first, last + 1):
            best = tl.max(tl.where((live & (cloud == c))[:, None], y, 0.0), 0)
            tl.atomic_max(OUT + c * F + n, best.to(tl.int32, bitcast=True), sem="relaxed")


@case
def point_clouds_to_largest_features():
    n, clouds, e, f = 300_003, 200, 64, 512
    cloud, out = ints(0, clouds, n).sort()[0], zeros(clouds, f, dtype="float32")
    args = f32(n, 3), cloud, f32(3, e), f32(e), rand(e, f) * 0.1, f32(f), out.view(torch.int32), n
    return cleared(run(points_to_clouds, (cdiv(n, 128),), args, out, E=e, F=f, BM=128, BN=64, num_warps=8, num_stages=2), out)


@triton.jit
def interact_features(DENSE, TABLE, INDEX, OUT, FEATURES, VOCABULARY, D: tl.constexpr, F: tl.constexpr, B: tl.constexpr):
    # Rows of 26 tables and a dense one, all pairs of them by dots in three dimensions; what lies below the diagonal, packed.
    b, f, d = tl.program_id(0) * B + tl.arange(0, B), tl.arange(0, F), tl.arange(0, D)
    live = (f[None, :] > 0) & (f[None, :] < FEATURES)
    row = tl.load(INDEX + b[:, None] * (FEATURES - 1) + f[None, :] - 1, mask=live, other=0)
    at = ((f[None, :] - 1) * VOCABULARY + row).to(tl.int64)
    x = tl.load(TABLE + at[:, :, None] * D + d[None, None, :], mask=live[:, :, None], other=0.0)
    dense = tl.load(DENSE + b[:, None] * D + d[None, :])
    x = tl.where((f == 0)[None, :, None], dense[:, None, :], x)
    z = tl.dot(x, tl.permute(x, (0, 2, 1)))
    width = D + FEATURES * (FEATURES - 1) // 2
    place = f[:, None] * (f[:, None] - 1) // 2 + f[None, :]
    below = (f[:, None] > f[None, :]) & (f[:, None] < FEATURES)
    tl.store(OUT + b[:, None, None] * width + D + place[None, :, :], z.to(OUT.dtype.element_ty), mask=below[None, :, :])
    tl.store(OUT + b[:, None] * width + d[None, :], dense)


@case
def pairs_of_table_rows_below_diagonal():
    batch, features, vocabulary, d = 16384, 27, 20_000, 64
    out = zeros(batch, d + features * (features - 1) // 2)
    args = rand(batch, d), rand(features - 1, vocabulary, d), ints(0, vocabulary, batch, features - 1), out, features, vocabulary
    return run(interact_features, (batch // 4,), args, out, D=d, F=32, B=4, num_warps=4, num_stages=2)


@triton.jit
def derivatives_of_elements(U, DIFF, METRIC, OUT, P: tl.constexpr):
    # Stiffness of elements of 16 by 16 by 16 nodes in double: the same matrix along each of three axes, as dots of reshaped tiles.
    e = tl.program_id(0).to(tl.int64) * P * P * P
    i, jk = tl.arange(0, P), tl.arange(0, P * P)
    diff = tl.load(DIFF + i[:, None] * P + i[None, :])
    u = tl.load(U + e + i[:, None] * P * P + jk[None, :])
    cube = tl.reshape(u, (P, P, P))
    ux = tl.dot(diff, u)
    uy = tl.dot(diff, tl.reshape(tl.permute(cube, (1, 0, 2)), (P, P * P)))
    uy = tl.permute(tl.reshape(uy, (P, P, P)), (1, 0, 2))
    uz = tl.reshape(tl.dot(tl.reshape(cube, (P * P, P)), tl.trans(diff)), (P, P, P))
    at = e + tl.reshape(i[:, None] * P * P + jk[None, :], (P, P, P))
    energy = tl.reshape(ux, (P, P, P)) * tl.load(METRIC + at) + uy * uz
    tl.store(OUT + at, energy)


@case
def spectral_elements_in_double():
    elements, p = 3000, 16
    u, metric, diff = f32(elements, p, p, p).double(), uniform(elements, p, p, p).double(), f32(p, p).double()
    out = zeros(elements, p, p, p, dtype="float64")
    launch, args = run(derivatives_of_elements, (elements,), (u, diff, metric, out), out, P=p, num_warps=4, num_stages=1)

    def reference(*_):
        ux, uy, uz = (torch.einsum(s, diff, u) for s in ("ai,eijk->eajk", "aj,eijk->eiak", "ak,eijk->eija"))
        return ux * metric + uy * uz

    launch.reference = reference
    return launch, args


@triton.jit
def messages_of_edges(X, SRC, DST, RADIUS, SPHERICAL, W1, W2, OUT, E, R: tl.constexpr, H: tl.constexpr, C: tl.constexpr, L: tl.constexpr,
                      BE: tl.constexpr):
    # Weights of an edge by a network of its length, times a neighbor's channels, times nine harmonics: a tile of three axes that is added.
    e = tl.program_id(0) * BE + tl.arange(0, BE)
    live = e < E
    r, h, c, l = tl.arange(0, R), tl.arange(0, H), tl.arange(0, C), tl.arange(0, L)
    radius = tl.load(RADIUS + e, mask=live, other=1.0)
    src, dst = tl.load(SRC + e, mask=live, other=0), tl.load(DST + e, mask=live, other=0)
    basis = tl.sin((r[None, :] + 1).to(tl.float32) * 0.62831853 * radius[:, None]) / radius[:, None]
    hidden = tl.dot(basis.to(tl.float16), tl.load(W1 + r[:, None] * H + h[None, :]))
    hidden = hidden * tl.sigmoid(hidden)
    weight = tl.dot(hidden.to(tl.float16), tl.load(W2 + h[:, None] * C + c[None, :]))
    x = tl.load(X + src[:, None] * C + c[None, :], mask=live[:, None], other=0.0).to(tl.float32)
    y = tl.load(SPHERICAL + e[:, None] * 9 + l[None, :], mask=live[:, None] & (l < 9)[None, :], other=0.0)
    message = (x * weight)[:, None, :] * y[:, :, None]
    at = (dst[:, None, None] * 9 + l[None, :, None]) * C + c[None, None, :]
    tl.atomic_add(OUT + at, message, mask=live[:, None, None] & (l < 9)[None, :, None], sem="relaxed")


@case
def equivariant_messages_with_atomics():
    nodes, edges, r, h, c = 8000, 60_001, 16, 64, 32
    out = zeros(nodes, 9, c, dtype="float32")
    args = rand(nodes, c), ints(0, nodes, edges), ints(0, nodes, edges).sort()[0], uniform(edges) * 4 + 0.5, f32(edges, 9)
    args = *args, rand(r, h) * 0.3, rand(h, c) * 0.2, out, edges
    return cleared(run(messages_of_edges, (cdiv(edges, 16),), args, out, R=r, H=h, C=c, L=16, BE=16, num_warps=4, num_stages=2), out)


@triton.jit
def two_layers_of_boxes(X, W1, W2, SCALE, OUT, M, K, N, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # FP8 boxes of descriptors, tiles in turn: x W1 is quantized again in registers by its rows' largest and multiplied by a small W2.
    dx = tl.make_tensor_descriptor(X, shape=[M, K], strides=[K, 1], block_shape=[BM, BK])
    dw = tl.make_tensor_descriptor(W1, shape=[N, K], strides=[K, 1], block_shape=[BN, BK])
    do = tl.make_tensor_descriptor(OUT, shape=[M, N // BN * D], strides=[N // BN * D, 1], block_shape=[BM, D])
    n_in, d = tl.arange(0, BN), tl.arange(0, D)
    across = N // BN
    for tile in range(tl.program_id(0), M // BM * across, tl.num_programs(0)):
        i, j = tile // across, tile % across
        acc = tl.zeros((BM, BN), tl.float32)
        for k in range(0, K, BK):
            acc = tl.dot(dx.load([i * BM, k]), dw.load([j * BN, k]).T, acc)
        acc = tl.maximum(acc * tl.load(SCALE + j), 0.0)
        top = tl.maximum(tl.max(acc, 1), 1e-6) / 448.0
        w2 = tl.load(W2 + (j * D + d)[None, :] * BN + n_in[:, None])
        y = tl.dot((acc / top[:, None]).to(tl.float8e4nv), w2) * top[:, None]
        do.store([i * BM, j * D], y.to(OUT.dtype.element_ty))


@case
def two_fp8_layers_of_boxes_in_turn():
    allocate()
    m, k, n, d = 4096, 1024, 2048, 32
    across = n // 128
    out = zeros(m, across * d)
    args = f8(m, k), f8(n, k), f8(across * d, 128), uniform(across) * 0.1, out, m, k, n
    return run(two_layers_of_boxes, (PROGRAMS,), args, out, D=d, BM=128, BN=128, BK=128, num_warps=8, num_stages=3)
