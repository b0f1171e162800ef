"""Norms, losses, softmaxes, sampling, sorts and other work on rows."""

import triton
import triton.language as tl

from .common import PROGRAMS, arange, case, cdiv, f32, full, ints, rand, run, uniform, zeros


@triton.jit
def layer_norm_bwd_locks(X, dY, w, mean, rstd, dX, dW, dB, lock, N, LOCKS: tl.constexpr, BLOCK: tl.constexpr):
    # Rows share LOCKS buffers for their parts of the weights' gradients, each behind a spin lock.
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    live = c < N
    x = tl.load(X + row * N + c, mask=live, other=0.0).to(tl.float32)
    dy = tl.load(dY + row * N + c, mask=live, other=0.0).to(tl.float32)
    g = tl.load(w + c, mask=live).to(tl.float32)
    mu, rs = tl.load(mean + row), tl.load(rstd + row)
    xhat = tl.where(live, (x - mu) * rs, 0.0)
    wdy = tl.where(live, g * dy, 0.0)
    dx = (wdy - (xhat * tl.sum(xhat * wdy) / N + tl.sum(wdy) / N)) * rs
    tl.store(dX + row * N + c, dx.to(dX.dtype.element_ty), mask=live)
    mine = row % LOCKS
    lock += mine
    count = lock + LOCKS
    dW += mine * N + c
    dB += mine * N + c
    pw, pb = dy * xhat, dy
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    seen = tl.load(count)
    if seen == 0:
        tl.atomic_xchg(count, 1)
    else:
        pw += tl.load(dW, mask=live)
        pb += tl.load(dB, mask=live)
    tl.store(dW, pw, mask=live)
    tl.store(dB, pb, mask=live)
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0)


@case
def layer_norm_backward_locks():
    rows, n, locks = 4096, 3000, 96
    dx = zeros(rows, n)
    dw, db, lock = zeros(locks, n, dtype="float32"), zeros(locks, n, dtype="float32"), zeros(2 * locks, dtype="int32")
    launch, args = run(layer_norm_bwd_locks, (rows,), (rand(rows, n), rand(rows, n), rand(n), f32(rows), uniform(rows), dx, dw, db, lock, n), None, LOCKS=locks, BLOCK=4096, num_warps=8)
    return (lambda *args: (lock.zero_(), launch(*args)) and (dx, dw.sum(0), db.sum(0))), args


@triton.jit
def rms_norm_many_rows(X, w, Y, rstd, M, N: tl.constexpr, R: tl.constexpr):
    # Rows of 128 elements: many of them in a tile.
    r = tl.program_id(0) * R + tl.arange(0, R)
    c = tl.arange(0, N)
    x = tl.load(X + r[:, None] * N + c[None, :], mask=(r < M)[:, None], other=0.0).to(tl.float32)
    rs = tl.rsqrt(tl.sum(x * x, 1) / N + 1e-6)
    y = (x * rs[:, None]).to(tl.bfloat16) * tl.load(w + c)[None, :]
    tl.store(Y + r[:, None] * N + c[None, :], y, mask=(r < M)[:, None])
    tl.store(rstd + r, rs, mask=r < M)


@case
def rms_norm_rows_of_128():
    m, n = 131001, 128
    y, rstd = zeros(m, n, dtype="bfloat16"), zeros(m, dtype="float32")
    return run(rms_norm_many_rows, (cdiv(m, 32),), (rand(m, n, dtype="bfloat16"), rand(n, dtype="bfloat16"), y, rstd, m), (y, rstd), N=n, R=32, num_warps=4)


@triton.jit
def group_norm_nhwc_bwd(X, dY, w, mean, rstd, dX, dW, HW, C, G: tl.constexpr, CG: tl.constexpr, BLOCK: tl.constexpr):
    # Two passes over a group; the weights' gradients by atomics.
    b, g = tl.program_id(0), tl.program_id(1)
    c = g * CG + tl.arange(0, CG)
    p = tl.arange(0, BLOCK)
    mu, rs = tl.load(mean + b * G + g), tl.load(rstd + b * G + g)
    gamma = tl.load(w + c)
    s1 = tl.zeros((BLOCK, CG), tl.float32)
    s2 = tl.zeros((BLOCK, CG), tl.float32)
    dw = tl.zeros((CG,), tl.float32)
    for start in range(0, HW, BLOCK):
        at = (b * HW + start + p)[:, None] * C + c[None, :]
        live = (start + p < HW)[:, None]
        xhat = (tl.load(X + at, mask=live, other=0.0).to(tl.float32) - mu) * rs
        dy = tl.load(dY + at, mask=live, other=0.0).to(tl.float32)
        s1 += dy * gamma[None, :]
        s2 += dy * gamma[None, :] * xhat
        dw += tl.sum(dy * xhat, 0)
    tl.atomic_add(dW + c, dw)
    m1, m2 = tl.sum(s1) / (HW * CG), tl.sum(s2) / (HW * CG)
    for start in range(0, HW, BLOCK):
        at = (b * HW + start + p)[:, None] * C + c[None, :]
        live = (start + p < HW)[:, None]
        xhat = (tl.load(X + at, mask=live, other=0.0).to(tl.float32) - mu) * rs
        dy = tl.load(dY + at, mask=live, other=0.0).to(tl.float32)
        dx = rs * (dy * gamma[None, :] - m1 - xhat * m2)
        tl.store(dX + at, dx.to(dX.dtype.element_ty), mask=live)


@case
def group_norm_backward_nhwc():
    b, hw, c, g = 16, 48 * 48, 512, 32
    dx, dw = zeros(b, hw, c, dtype="bfloat16"), zeros(c, dtype="float32")
    x = lambda: rand(b, hw, c, dtype="bfloat16")
    launch, args = run(group_norm_nhwc_bwd, (b, g), (x(), x(), f32(c), f32(b, g), uniform(b, g), dx, dw, hw, c), None, G=g, CG=c // g, BLOCK=128, num_warps=4)
    return (lambda *args: (dw.zero_(), launch(*args)) and (dx, dw)), args


@triton.jit
def _welford(m1, s1, n1, m2, s2, n2):
    d = m2 - m1
    n = n1 + n2
    r = tl.where(n == 0, 0.0, n2 / n)
    return m1 + d * r, s1 + s2 + d * d * n1 * r, n


@triton.jit
def batch_norm_nchw(X, w, b, Y, running, N, C, HW, momentum, eps, BLOCK: tl.constexpr):
    # One channel a program: statistics by a reduction of triples, then the second pass.
    c = tl.program_id(0)
    j = tl.arange(0, BLOCK)
    mean = tl.zeros((BLOCK,), tl.float32)
    m2 = tl.zeros((BLOCK,), tl.float32)
    count = tl.zeros((BLOCK,), tl.float32)
    for n in range(N):
        for start in range(0, HW, BLOCK):
            live = start + j < HW
            x = tl.load(X + (n * C + c) * HW + start + j, mask=live, other=0.0).to(tl.float32)
            new = count + 1
            d = x - mean
            mean = tl.where(live, mean + d / new, mean)
            m2 = tl.where(live, m2 + d * (x - mean), m2)
            count = tl.where(live, new, count)
    mu, s, total = tl.reduce((mean, m2, count), 0, _welford)
    rs = 1.0 / tl.sqrt_rn(s / total + eps)
    scale = tl.load(w + c) * rs
    shift = tl.load(b + c) - mu * scale
    tl.store(running + c, momentum * tl.load(running + c) + (1 - momentum) * mu)
    for n in range(N):
        for start in range(0, HW, BLOCK):
            live = start + j < HW
            x = tl.load(X + (n * C + c) * HW + start + j, mask=live, other=0.0).to(tl.float32)
            tl.store(Y + (n * C + c) * HW + start + j, tl.maximum(x * scale + shift, 0.0).to(Y.dtype.element_ty), mask=live)


@case
def batch_norm_relu_nchw():
    n, c, hw = 32, 256, 28 * 28
    y = zeros(n, c, hw)
    return run(batch_norm_nchw, (c,), (rand(n, c, hw), f32(c), f32(c), y, f32(c), n, c, hw, 0.9, 1e-5), y, BLOCK=1024, num_warps=8)


@triton.jit
def smoothed_cross_entropy(X, labels, loss, zloss, lse_out, V, smoothing, z_weight, ignore, BLOCK: tl.constexpr):
    # The gradient replaces the logits; label smoothing and a penalty on the normalizer.
    row = tl.program_id(0).to(tl.int64)
    X += row * V
    label = tl.load(labels + row)
    j = tl.arange(0, BLOCK)
    if label == ignore:
        for start in range(0, V, BLOCK):
            tl.store(X + start + j, 0.0, mask=start + j < V)
        return
    m = float("-inf")
    d = 0.0
    total = 0.0
    for start in range(0, V, BLOCK):
        x = tl.load(X + start + j, mask=start + j < V, other=float("-inf")).to(tl.float32)
        total += tl.sum(tl.where(start + j < V, x, 0.0))
        top = tl.maximum(m, tl.max(x))
        d = d * tl.exp(m - top) + tl.sum(tl.exp(x - top))
        m = top
    lse = m + tl.log(d)
    picked = tl.load(X + label).to(tl.float32)
    z = z_weight * lse * lse
    tl.store(loss + row, (1 - smoothing) * (lse - picked) + smoothing * (lse - total / V) + z)
    tl.store(zloss + row, z)
    tl.store(lse_out + row, lse)
    tl.debug_barrier()
    for start in range(0, V, BLOCK):
        x = tl.load(X + start + j, mask=start + j < V, other=float("-inf")).to(tl.float32)
        p = tl.exp(x - lse)
        g = p * (1 + 2 * z_weight * lse) - smoothing / V
        g = tl.where(start + j == label, g - (1 - smoothing), g)
        tl.store(X + start + j, g.to(X.dtype.element_ty), mask=start + j < V)


@case
def cross_entropy_smoothed_in_place():
    rows, v = 1024, 50257
    x = rand(rows, v, dtype="bfloat16")
    source = x.clone()
    loss, z, lse = (zeros(rows, dtype="float32") for _ in range(3))
    launch, args = run(smoothed_cross_entropy, (rows,), (x, ints(0, v, rows, dtype="int64"), loss, z, lse, v, 0.1, 1e-4, -100), (x, loss, z, lse), BLOCK=8192, num_warps=16)
    return (lambda *args: (x.copy_(source), launch(*args))[1]), args


@triton.jit
def top_p_bisection(P, U, out, limit, V, BLOCK: tl.constexpr):
    # The smallest threshold whose elements sum to limit, by bisection on a row in registers; then a draw.
    row = tl.program_id(0)
    j = tl.arange(0, BLOCK)
    p = tl.load(P + row * V + j, mask=j < V, other=0.0)
    lo = 0.0
    hi = tl.max(p)
    while hi - lo > 1e-7:
        mid = 0.5 * (lo + hi)
        if tl.sum(tl.where(p >= mid, p, 0.0)) >= limit:
            lo = mid
        else:
            hi = mid
    kept = tl.where(p >= lo, p, 0.0)
    c = tl.cumsum(kept, 0)
    drawn = tl.load(U + row) * tl.sum(kept)
    tl.store(out + row, tl.sum((c < drawn).to(tl.int32)))


@case
def sample_top_p_bisection():
    import torch

    rows, v = 512, 8000
    out = zeros(rows, dtype="int32")
    return run(top_p_bisection, (rows,), (torch.softmax(f32(rows, v) * 3, 1), uniform(rows), out, 0.9, v), out, BLOCK=8192, num_warps=8)


@triton.jit
def softmax_topk(X, values, indices, V, K: tl.constexpr, BLOCK: tl.constexpr):
    # Value and index packed in one word of 64 bits, sorted by tl.topk.
    row = tl.program_id(0)
    j = tl.arange(0, BLOCK)
    x = tl.load(X + row * V + j, mask=j < V, other=float("-inf")).to(tl.float32)
    bits = x.to(tl.int32, bitcast=True)
    key = tl.where(bits < 0, bits ^ 0x7FFFFFFF, bits).to(tl.int64)
    packed = (key << 32) | (0x7FFFFFFF - j).to(tl.int64)
    best = tl.topk(packed, K)
    index = 0x7FFFFFFF - (best & 0xFFFFFFFF).to(tl.int32)
    key = (best >> 32).to(tl.int32)
    value = tl.where(key < 0, key ^ 0x7FFFFFFF, key).to(tl.float32, bitcast=True)
    total = tl.sum(tl.exp(value - tl.max(value)))
    i = tl.arange(0, K)
    tl.store(values + row * K + i, tl.exp(value - tl.max(value)) / total)
    tl.store(indices + row * K + i, index)


@case
def topk_of_256_packed():
    rows, v, k = 8192, 256, 8
    values, indices = zeros(rows, k, dtype="float32"), zeros(rows, k, dtype="int32")
    return run(softmax_topk, (rows,), (rand(rows, v, dtype="bfloat16"), values, indices, v), (values, indices), K=k, BLOCK=256, num_warps=1)


@triton.jit
def _later_best(v1, i1, v2, i2):
    take = (v1 > v2) | ((v1 == v2) & (i1 > i2))
    return tl.where(take, v1, v2), tl.where(take, i1, i2)


@triton.jit
def argmax_last(X, value, index, N, BLOCK: tl.constexpr):
    # The last of equal maxima, with a running pair for each element of the block.
    row = tl.program_id(0)
    j = tl.arange(0, BLOCK)
    best = tl.full((BLOCK,), -128, tl.int8)
    at = tl.full((BLOCK,), -1, tl.int32)
    for start in range(0, N, BLOCK):
        x = tl.load(X + row * N + start + j, mask=start + j < N, other=-128)
        best, at = _later_best(best, at, x, start + j)
    v, i = tl.reduce((best, at), 0, _later_best)
    tl.store(value + row, v)
    tl.store(index + row, i)


@case
def argmax_last_of_bytes():
    rows, n = 2048, 40000
    value, index = zeros(rows, dtype="int8"), zeros(rows, dtype="int32")
    return run(argmax_last, (rows,), (ints(-128, 127, rows, n, dtype="int8"), value, index, n), (value, index), BLOCK=2048, num_warps=4)


@triton.jit
def softmax_dropout_bwd(dY, Y, seed, keep, dX, N, BLOCK: tl.constexpr, ROWS: tl.constexpr):
    r = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    c = tl.arange(0, BLOCK)
    at = r[:, None] * N + c[None, :]
    live = (c < N)[None, :]
    y = tl.load(Y + at, mask=live, other=0.0).to(tl.float32)
    dy = tl.load(dY + at, mask=live, other=0.0).to(tl.float32)
    dy = tl.where(tl.rand(seed, at) < keep, dy / keep, 0.0)
    dx = y * (dy - tl.sum(y * dy, 1)[:, None])
    tl.store(dX + at, dx.to(dX.dtype.element_ty), mask=live)


@case
def softmax_dropout_backward():
    rows, n = 32768, 500
    dx = zeros(rows, n)
    return run(softmax_dropout_bwd, (rows // 4,), (rand(rows, n), uniform(rows, n).half(), 77, 0.8, dx, n), dx, BLOCK=512, ROWS=4, num_warps=2)


@triton.jit
def rotary_pairs(Q, cos, sin, positions, O, H: tl.constexpr, D: tl.constexpr, HALF: tl.constexpr):
    # Interleaved pairs, taken apart by split and put together by join, all heads of a token in a tile.
    t = tl.program_id(0)
    pos = tl.load(positions + t)
    h, d, i = tl.arange(0, H), tl.arange(0, D), tl.arange(0, HALF)
    at = (t * H + h)[:, None] * D + d[None, :]
    x = tl.load(Q + at)
    x1, x2 = tl.split(tl.reshape(x, (H, HALF, 2)))
    c, s = tl.load(cos + pos * HALF + i)[None, :], tl.load(sin + pos * HALF + i)[None, :]
    x1, x2 = x1.to(tl.float32), x2.to(tl.float32)
    y = tl.join(x1 * c - x2 * s, x1 * s + x2 * c)
    tl.store(O + at, tl.reshape(y, (H, D)).to(O.dtype.element_ty))


@case
def rotary_interleaved_heads():
    t, h, d = 8192, 32, 128
    out = zeros(t, h, d, dtype="bfloat16")
    args = rand(t, h, d, dtype="bfloat16"), f32(4096, d // 2), f32(4096, d // 2), ints(0, 4096, t), out
    return run(rotary_pairs, (t,), args, out, H=h, D=d, HALF=d // 2, num_warps=4)


@triton.jit
def scan_with_lookback(X, Y, state, N, BLOCK: tl.constexpr):
    # Single-pass prefix sum: sums of blocks and their flags in one word of 64 bits.
    pid = tl.program_id(0)
    at = pid * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(X + at, mask=at < N, other=0)
    total = tl.sum(x).to(tl.int64)
    if pid == 0:
        tl.atomic_xchg(state, (total << 2) | 2, sem="release")
    else:
        tl.atomic_xchg(state + pid, (total << 2) | 1, sem="release")
    before = tl.zeros((), tl.int64)
    look = pid - 1
    while look >= 0:
        word = tl.atomic_add(state + look, 0, sem="acquire")
        flag = word & 3
        if flag == 2:
            before += word >> 2
            look = -1
        elif flag == 1:
            before += word >> 2
            look -= 1
    if pid > 0:
        tl.atomic_xchg(state + pid, ((before + total) << 2) | 2, sem="release")
    tl.store(Y + at, tl.cumsum(x.to(tl.int64), 0) + before, mask=at < N)


@case
def scan_decoupled_lookback():
    n = 1 << 23
    y, state = zeros(n, dtype="int64"), zeros(cdiv(n, 2048), dtype="int64")
    launch, args = run(scan_with_lookback, (cdiv(n, 2048),), (ints(0, 100, n), y, state, n), y, BLOCK=2048, num_warps=4)
    return (lambda *args: (state.zero_(), launch(*args))[1]), args


@triton.jit
def sort_rows_2d(X, Y, N: tl.constexpr, R: tl.constexpr, DESCENDING: tl.constexpr):
    r = tl.program_id(0) * R + tl.arange(0, R)
    c = tl.arange(0, N)
    x = tl.load(X + r[:, None] * N + c[None, :])
    tl.store(Y + r[:, None] * N + c[None, :], tl.sort(x, dim=1, descending=DESCENDING))


@case
def sort_short_rows_i16():
    rows, n = 65536, 64
    y = zeros(rows, n, dtype="int16")
    return run(sort_rows_2d, (rows // 16,), (ints(-30000, 30000, rows, n, dtype="int16"), y), y, N=n, R=16, DESCENDING=True, num_warps=4)


@case
def sort_long_rows_f32():
    rows, n = 1024, 2048
    y = zeros(rows, n, dtype="float32")
    return run(sort_rows_2d, (rows,), (f32(rows, n), y), y, N=n, R=1, DESCENDING=False, num_warps=8)


@triton.jit
def info_nce(X, Y, loss, scale, N, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    # Contrastive loss of a batch: normalized rows, similarities, and the diagonal against the row.
    rm, d = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, D)
    x = tl.load(X + rm[:, None] * D + d[None, :]).to(tl.float32)
    x = (x * tl.rsqrt(tl.sum(x * x, 1))[:, None]).to(tl.bfloat16)
    m = tl.full((BM,), float("-inf"), tl.float32)
    l = tl.zeros((BM,), tl.float32)
    own = tl.zeros((BM,), tl.float32)
    for start in range(0, N, BN):
        rn = start + tl.arange(0, BN)
        y = tl.load(Y + rn[:, None] * D + d[None, :]).to(tl.float32)
        y = (y * tl.rsqrt(tl.sum(y * y, 1))[:, None]).to(tl.bfloat16)
        s = tl.dot(x, y.T) * scale
        own += tl.sum(tl.where(rm[:, None] == rn[None, :], s, 0.0), 1)
        top = tl.maximum(m, tl.max(s, 1))
        l = l * tl.exp(m - top) + tl.sum(tl.exp(s - top[:, None]), 1)
        m = top
    tl.store(loss + rm, m + tl.log(l) - own)


@case
def contrastive_loss_rows():
    n, d = 8192, 128
    loss = zeros(n, dtype="float32")
    return run(info_nce, (n // 64,), (rand(n, d, dtype="bfloat16"), rand(n, d, dtype="bfloat16"), loss, 14.0, n), loss, D=d, BM=64, BN=64, num_warps=4)


@triton.jit
def min_p_sample(L, temperature, seeds, out, min_p, V, BLOCK: tl.constexpr):
    # min-p filter and a Gumbel draw, in two passes over a long row.
    row = tl.program_id(0)
    j = tl.arange(0, BLOCK)
    t = tl.load(temperature + row)
    seed = tl.load(seeds + row)
    top = tl.full((BLOCK,), float("-inf"), tl.float32)
    for start in tl.range(0, V, BLOCK, loop_unroll_factor=2):
        x = tl.load(L + row * V + start + j, mask=start + j < V, other=float("-inf")).to(tl.float32)
        top = tl.maximum(top, x)
    floor = tl.max(top) / t + tl.log(min_p)
    best = float("-inf")
    at = -1
    for start in range(0, V, BLOCK):
        x = tl.load(L + row * V + start + j, mask=start + j < V, other=float("-inf")).to(tl.float32) / t
        u = tl.rand(seed, start + j)
        g = tl.where(x >= floor, x - tl.log(-tl.log(tl.maximum(u, 1e-20))), float("-inf"))
        v, i = tl.max(g, 0, return_indices=True)
        if v > best:
            best = v
            at = start + i
    tl.store(out + row, at)


@case
def sample_min_p_gumbel():
    rows, v = 256, 128256
    out = zeros(rows, dtype="int32")
    return run(min_p_sample, (rows,), (rand(rows, v, dtype="bfloat16"), uniform(rows) + 0.5, arange(rows, "int64"), out, 0.02, v), out, BLOCK=4096, num_warps=8)


@triton.jit
def add_rms_norm_quant(X, R, w, Q, scale, N, BLOCK: tl.constexpr):
    # The residual is updated in place; each group of 128 gets its own FP8 scale.
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    x = tl.load(X + row * N + c, mask=c < N, other=0.0).to(tl.float32) + tl.load(R + row * N + c, mask=c < N, other=0.0).to(tl.float32)
    tl.store(R + row * N + c, x.to(R.dtype.element_ty), mask=c < N)
    y = x * tl.rsqrt(tl.sum(x * x) / N + 1e-6) * tl.load(w + c, mask=c < N, other=0.0).to(tl.float32)
    y = tl.reshape(y, (BLOCK // 128, 128))
    s = tl.maximum(tl.max(tl.abs(y), 1), 1e-6) / 448.0
    q = tl.reshape((y / s[:, None]).to(tl.float8e4nv), (BLOCK,))
    tl.store(Q + row * N + c, q, mask=c < N)
    g = tl.arange(0, BLOCK // 128)
    tl.store(scale + row * (N // 128) + g, s, mask=g < N // 128)


@case
def add_rms_norm_fp8_groups():
    rows, n = 8192, 5120
    q, scale = zeros(rows, n, dtype="float8_e4m3fn"), zeros(rows, n // 128, dtype="float32")
    r = rand(rows, n, dtype="bfloat16")
    launch, args = run(add_rms_norm_quant, (rows,), (rand(rows, n, dtype="bfloat16"), r, rand(n, dtype="bfloat16"), q, scale, n), None, BLOCK=8192, num_warps=8)
    return (lambda *args: launch(*args) or (q.float(), scale)), args


@triton.jit
def logsumexp_columns(X, Y, M, N, BM: tl.constexpr, BN: tl.constexpr):
    # Over the first axis, whose stride is long.
    c = tl.program_id(0) * BN + tl.arange(0, BN)
    r = tl.arange(0, BM)
    m = tl.full((BM, BN), float("-inf"), tl.float32)
    l = tl.zeros((BM, BN), tl.float32)
    for start in range(0, M, BM):
        x = tl.load(X + (start + r)[:, None] * N + c[None, :], mask=(start + r < M)[:, None] & (c < N)[None, :], other=float("-inf"))
        top = tl.maximum(m, x)
        safe = tl.where(top == float("-inf"), 0.0, top)
        l = l * tl.exp(m - safe) + tl.exp(x - safe)
        m = top
    top = tl.max(m, 0)
    tl.store(Y + c, top + tl.log(tl.sum(l * tl.exp(m - top[None, :]), 0)), mask=c < N)


@case
def logsumexp_first_axis():
    m, n = 4000, 6000
    y = zeros(n, dtype="float32")
    return run(logsumexp_columns, (cdiv(n, 32),), (f32(m, n), y, m, n), y, BM=64, BN=32, num_warps=8)


@triton.jit
def persistent_layer_norm(X, w, b, Y, M, N: tl.constexpr, BLOCK: tl.constexpr, NUM: tl.constexpr):
    c = tl.arange(0, BLOCK)
    g, s = tl.load(w + c, mask=c < N, other=0.0), tl.load(b + c, mask=c < N, other=0.0)
    for row in tl.range(tl.program_id(0), M, NUM, num_stages=3):
        x = tl.load(X + row * N + c, mask=c < N, other=0.0).to(tl.float32)
        mean = tl.sum(x) / N
        d = tl.where(c < N, x - mean, 0.0)
        y = d * (1 / tl.sqrt(tl.sum(d * d) / N + 1e-5)) * g + s
        tl.store(Y + row * N + c, y.to(Y.dtype.element_ty), mask=c < N)


@case
def layer_norm_persistent_768():
    m, n = 50000, 768
    y = zeros(m, n)
    return run(persistent_layer_norm, (PROGRAMS * 4,), (rand(m, n), f32(n), f32(n), y, m), y, N=n, BLOCK=1024, NUM=PROGRAMS * 4, num_warps=4)


@triton.jit
def ctc_like_dp(scores, out, T, S: tl.constexpr):
    # Monotonic alignment search: a row of states, each step takes the better of staying and moving on.
    b = tl.program_id(0)
    s = tl.arange(0, S)
    best = tl.where(s == 0, tl.load(scores + b * T * S), -1.0e9)
    for t in range(1, T):
        x = tl.load(scores + (b * T + t) * S + s)
        moved = tl.gather(best, tl.maximum(s - 1, 0), 0)
        moved = tl.where(s == 0, -1.0e9, moved)
        best = tl.maximum(best, moved) + x
        tl.store(out + (b * T + t) * S + s, (moved > best - x).to(tl.int8))
    tl.store(out + b * T * S + s, (s == 0).to(tl.int8))


@case
def alignment_dp_gather():
    b, t, s = 256, 300, 256
    out = zeros(b, t, s, dtype="int8")
    return run(ctc_like_dp, (b,), (f32(b, t, s), out, t), out, S=s, num_warps=2)


@triton.jit
def reverse_discounted(R, done, V, A, T, gamma, lam, B, BT: tl.constexpr, BB: tl.constexpr):
    # Generalized advantages: a reverse associative scan of pairs over time, columns are environments.
    c = tl.program_id(0) * BB + tl.arange(0, BB)
    t = tl.arange(0, BT)
    at = t[:, None] * B + c[None, :]
    live = (t < T)[:, None] & (c < B)[None, :]
    r, v = tl.load(R + at, mask=live, other=0.0), tl.load(V + at, mask=live, other=0.0)
    nxt = tl.load(V + at + B, mask=live, other=0.0)
    alive = 1.0 - tl.load(done + at, mask=live, other=1).to(tl.float32)
    delta = r + gamma * nxt * alive - v
    _, adv = tl.associative_scan((gamma * lam * alive, delta), 0, _pair_scan, reverse=True)
    tl.store(A + at, adv, mask=live)


@triton.jit
def _pair_scan(a1, b1, a2, b2):
    return a1 * a2, b1 * a2 + b2


@case
def advantages_reverse_scan():
    t, b = 250, 8192
    a = zeros(t, b, dtype="float32")
    args = f32(t, b), ints(0, 2, t, b, dtype="uint8"), f32(t + 1, b), a, t, 0.99, 0.95, b
    return run(reverse_discounted, (b // 16,), args, a, BT=256, BB=16, num_warps=4)
