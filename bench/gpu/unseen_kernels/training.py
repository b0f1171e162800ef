"""Steps of training: norms, losses and gates with their gradients, optimizers, experts, attention's gradients."""

import torch
import triton
import triton.language as tl

from .common import PROGRAMS, case, cdiv, cleared, f32, full, ints, rand, run, uniform, zeros


@triton.jit
def rms_norm_backward(X, W, DY, RSTD, DX, DW, M, N, PER, BLOCK: tl.constexpr):
    # A program takes some rows, and leaves its part of the weight's gradient.
    pid = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    mask = c < N
    w = tl.load(W + c, mask=mask, other=0.0).to(tl.float32)
    dw = tl.zeros((BLOCK,), tl.float32)
    for row in range(pid * PER, min(pid * PER + PER, M)):
        x = tl.load(X + row * N + c, mask=mask, other=0.0).to(tl.float32)
        dy = tl.load(DY + row * N + c, mask=mask, other=0.0).to(tl.float32)
        r = tl.load(RSTD + row)
        g = dy * w
        dot = tl.sum(x * g, axis=0)
        dx = r * g - (r * r * r / N) * dot * x
        dw += dy * x * r
        tl.store(DX + row * N + c, dx.to(tl.bfloat16), mask=mask)
    tl.store(DW + pid * N + c, dw, mask=mask)


@case
def rms_norm_backward_by_programs():
    m, n = 16384, 2560
    x = rand(m, n, dtype="bfloat16")
    dx, dw = zeros(m, n, dtype="bfloat16"), zeros(PROGRAMS, n, dtype="float32")
    rstd = torch.rsqrt(x.float().pow(2).mean(1) + 1e-6)
    args = x, rand(n, dtype="bfloat16"), rand(m, n, dtype="bfloat16"), rstd, dx, dw, m, n, cdiv(m, PROGRAMS)
    return run(rms_norm_backward, (PROGRAMS,), args, (dx, dw), BLOCK=4096, num_warps=16)


@triton.jit
def layer_norm_dwdb(X, DY, MEAN, RSTD, DW, DB, M, N, BM: tl.constexpr, BN: tl.constexpr):
    # Columns only: rows run past, in blocks.
    c = tl.program_id(0) * BN + tl.arange(0, BN)
    dw, db = tl.zeros((BM, BN), tl.float32), tl.zeros((BM, BN), tl.float32)
    for m0 in range(0, M, BM):
        m = m0 + tl.arange(0, BM)
        mask = (m < M)[:, None] & (c < N)[None, :]
        x = tl.load(X + m[:, None] * N + c[None, :], mask=mask, other=0.0).to(tl.float32)
        dy = tl.load(DY + m[:, None] * N + c[None, :], mask=mask, other=0.0).to(tl.float32)
        mean, rstd = tl.load(MEAN + m, mask=m < M, other=0.0), tl.load(RSTD + m, mask=m < M, other=0.0)
        dw += dy * (x - mean[:, None]) * rstd[:, None]
        db += dy
    tl.store(DW + c, tl.sum(dw, 0), mask=c < N)
    tl.store(DB + c, tl.sum(db, 0), mask=c < N)


@case
def layer_norm_gradients_of_columns():
    m, n = 4000, 5120
    dw, db = zeros(n, dtype="float32"), zeros(n, dtype="float32")
    args = rand(m, n), rand(m, n), f32(m) * 0.1, uniform(m) + 0.5, dw, db, m, n
    return run(layer_norm_dwdb, (cdiv(n, 64),), args, (dw, db), BM=32, BN=64, num_warps=4, num_stages=2)


@triton.jit
def group_norm_silu(X, W, B, Y, C, HW, G: tl.constexpr, CG: tl.constexpr, BLOCK: tl.constexpr):
    # NCHW: two passes over a group, moments in one go, then the gate.
    n, g = tl.program_id(0), tl.program_id(1)
    size = CG * HW
    base = (n * C + g * CG).to(tl.int64) * HW
    s1, s2 = tl.zeros((BLOCK,), tl.float32), tl.zeros((BLOCK,), tl.float32)
    for start in range(0, size, BLOCK):
        i = start + tl.arange(0, BLOCK)
        x = tl.load(X + base + i, mask=i < size, other=0.0).to(tl.float32)
        s1 += x
        s2 += x * x
    mean = tl.sum(s1) / size
    rstd = 1.0 / tl.sqrt(tl.sum(s2) / size - mean * mean + 1e-5)
    for start in range(0, size, BLOCK):
        i = start + tl.arange(0, BLOCK)
        c = g * CG + i // HW
        x = tl.load(X + base + i, mask=i < size, other=0.0).to(tl.float32)
        y = (x - mean) * rstd * tl.load(W + c, mask=i < size) + tl.load(B + c, mask=i < size)
        tl.store(Y + base + i, (y * tl.sigmoid(y)).to(Y.dtype.element_ty), mask=i < size)


@case
def group_norm_silu_nchw():
    n, c, hw, g = 8, 320, 64 * 64, 32
    y = zeros(n, c, hw)
    return run(group_norm_silu, (n, g), (rand(n, c, hw), f32(c), f32(c), y, c, hw), y, G=g, CG=c // g, BLOCK=4096, num_warps=8)


@triton.jit
def log_softmax_backward(DY, Y, DX, N, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    total = 0.0
    for start in range(0, N, BLOCK):
        i = start + tl.arange(0, BLOCK)
        total += tl.sum(tl.load(DY + row * N + i, mask=i < N, other=0.0).to(tl.float32))
    for start in range(0, N, BLOCK):
        i = start + tl.arange(0, BLOCK)
        dy = tl.load(DY + row * N + i, mask=i < N, other=0.0).to(tl.float32)
        y = tl.load(Y + row * N + i, mask=i < N, other=0.0).to(tl.float32)
        tl.store(DX + row * N + i, (dy - tl.exp(y) * total).to(tl.float16), mask=i < N)


@case
def log_softmax_backward_long_rows():
    m, n = 2000, 32003
    dx = zeros(m, n)
    y = torch.log_softmax(rand(m, n), -1)
    return run(log_softmax_backward, (m,), (rand(m, n), y, dx, n), dx, BLOCK=2048, num_warps=4)


@triton.jit
def linear_cross_entropy_chunk(H, W, TARGET, LSE, PICKED, T, V, SPLITS,
                               D: tl.constexpr, BT: tl.constexpr, BV: tl.constexpr, BD: tl.constexpr):
    # Logits of a chunk of the vocabulary are made, seen and forgotten: parts of the log-sum-exp go out.
    t = tl.program_id(0) * BT + tl.arange(0, BT)
    split = tl.program_id(1)
    each = tl.cdiv(tl.cdiv(V, SPLITS), BV) * BV
    target = tl.load(TARGET + t, mask=t < T, other=-100)
    m, l = tl.full((BT,), float("-inf"), tl.float32), tl.zeros((BT,), tl.float32)
    picked = tl.zeros((BT,), tl.float32)
    for v0 in range(split * each, min(split * each + each, V), BV):
        v = v0 + tl.arange(0, BV)
        acc = tl.zeros((BT, BV), tl.float32)
        for d0 in range(0, D, BD):
            d = d0 + tl.arange(0, BD)
            h = tl.load(H + t[:, None] * D + d[None, :], mask=(t < T)[:, None], other=0.0)
            w = tl.load(W + v[None, :] * D + d[:, None], mask=(v < V)[None, :], other=0.0)
            acc = tl.dot(h, w, acc)
        acc = tl.where((v < V)[None, :], acc, float("-inf"))
        picked += tl.sum(tl.where(v[None, :] == target[:, None], acc, 0.0), 1)
        new = tl.maximum(m, tl.max(acc, 1))
        l = l * tl.exp(m - new) + tl.sum(tl.exp(acc - new[:, None]), 1)
        m = new
    tl.store(LSE + split * T + t, m + tl.log(l), mask=t < T)
    tl.atomic_add(PICKED + t, picked, mask=(t < T) & (target >= 0), sem="relaxed")


@case
def linear_cross_entropy_chunks():
    t, v, d, splits = 1000, 20000, 512, 16
    lse, picked = zeros(splits, t, dtype="float32"), zeros(t, dtype="float32")
    args = rand(t, d, dtype="bfloat16"), rand(v, d, dtype="bfloat16"), ints(0, v, t, dtype="int64"), lse, picked, t, v, splits
    options = dict(D=d, BT=128, BV=128, BD=64, num_warps=8, num_stages=3)
    launched = run(linear_cross_entropy_chunk, (cdiv(t, 128), splits), args, (lse, picked), **options)
    return cleared(launched, picked)


@triton.jit
def jensen_shannon(P, Q, LOSS, DP, V, beta, temperature, BLOCK: tl.constexpr):
    # Distillation: two logits' rows, a generalized divergence, its gradient by the student's logits without the softmax's part.
    row = tl.program_id(0).to(tl.int64)
    mp, lp, mq, lq = float("-inf"), 0.0, float("-inf"), 0.0
    for start in range(0, V, BLOCK):
        i = start + tl.arange(0, BLOCK)
        p = tl.load(P + row * V + i, mask=i < V, other=float("-inf")).to(tl.float32) / temperature
        q = tl.load(Q + row * V + i, mask=i < V, other=float("-inf")).to(tl.float32) / temperature
        np, nq = tl.maximum(mp, tl.max(p)), tl.maximum(mq, tl.max(q))
        lp = lp * tl.exp(mp - np) + tl.sum(tl.exp(p - np))
        lq = lq * tl.exp(mq - nq) + tl.sum(tl.exp(q - nq))
        mp, mq = np, nq
    zp, zq = mp + tl.log(lp), mq + tl.log(lq)
    loss = 0.0
    for start in range(0, V, BLOCK):
        i = start + tl.arange(0, BLOCK)
        p = tl.load(P + row * V + i, mask=i < V, other=-1e4).to(tl.float32) / temperature - zp
        q = tl.load(Q + row * V + i, mask=i < V, other=-1e4).to(tl.float32) / temperature - zq
        ep, eq = tl.exp(p), tl.exp(q)
        mix = tl.log(beta * ep + (1 - beta) * eq + 1e-20)
        part = beta * ep * (p - mix) + (1 - beta) * eq * (q - mix)
        loss += tl.sum(tl.where(i < V, part, 0.0))
        tl.store(DP + row * V + i, (beta * ep * (p - mix) * 1000.0).to(tl.float16), mask=i < V)
    tl.store(LOSS + row, loss)


@case
def jensen_shannon_rows():
    m, v = 1000, 32000
    loss, dp = zeros(m, dtype="float32"), zeros(m, v)
    return run(jensen_shannon, (m,), (rand(m, v), rand(m, v), loss, dp, v, 0.3, 1.5), (loss, dp), BLOCK=4096, num_warps=8)


@triton.jit
def focal_loss(X, Y, LOSS, DX, n, C: tl.constexpr, alpha, gamma: tl.constexpr, BLOCK: tl.constexpr):
    # Binary for each class; targets are class numbers, negative ones are ignored.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n * C
    x = tl.load(X + i, mask=mask, other=0.0).to(tl.float32)
    y = tl.load(Y + i // C, mask=mask, other=-1)
    t = tl.where(y == i % C, 1.0, 0.0)
    p = tl.sigmoid(x)
    soft = tl.maximum(x, 0.0) + tl.log(1.0 + tl.exp(-tl.abs(x)))
    ce = soft - x * t
    pt = p * t + (1 - p) * (1 - t)
    at = alpha * t + (1 - alpha) * (1 - t)
    w = at * tl.exp(gamma * tl.log(tl.maximum(1 - pt, 1e-8)))
    live = mask & (y >= 0)
    loss = tl.where(live, w * ce, 0.0)
    dw = at * gamma * tl.exp((gamma - 1) * tl.log(tl.maximum(1 - pt, 1e-8)))
    sign = 2 * t - 1
    dx = tl.where(live, -dw * sign * p * (1 - p) * ce + w * (p - t), 0.0)
    tl.store(DX + i, dx.to(tl.float16), mask=mask)
    tl.atomic_add(LOSS, tl.sum(loss))


@case
def focal_loss_sigmoid():
    n, c = 60000, 80
    loss, dx = zeros(1, dtype="float32"), zeros(n, c)
    args = rand(n, c), ints(-1, c, n, dtype="int64"), loss, dx, n
    launched = run(focal_loss, (cdiv(n * c, 2048),), args, (loss, dx), C=c, alpha=0.25, gamma=2.0, BLOCK=2048, num_warps=8)
    return cleared(launched, loss)


@triton.jit
def info_nce(A, B, LSE, POS, N, inv_temp, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    m, d = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, D)
    a = tl.load(A + m[:, None] * D + d[None, :], mask=(m < N)[:, None], other=0.0)
    top, total = tl.full((BM,), -1e30, tl.float32), tl.zeros((BM,), tl.float32)
    pos = tl.zeros((BM,), tl.float32)
    for n0 in tl.range(0, N, BN):
        n = n0 + tl.arange(0, BN)
        b = tl.load(B + n[:, None] * D + d[None, :], mask=(n < N)[:, None], other=0.0)
        s = tl.dot(a, b.T) * inv_temp
        pos += tl.sum(tl.where(m[:, None] == n[None, :], s, 0.0), 1)
        s = tl.where((n < N)[None, :], s, -1e30)
        new = tl.maximum(top, tl.max(s, 1))
        total = total * tl.exp2((top - new) * 1.44269504) + tl.sum(tl.exp2((s - new[:, None]) * 1.44269504), 1)
        top = new
    tl.store(LSE + m, top + tl.log(total), mask=m < N)
    tl.store(POS + m, pos, mask=m < N)


@case
def info_nce_8k_pairs():
    n, d = 8000, 128
    lse, pos = zeros(n, dtype="float32"), zeros(n, dtype="float32")
    unit = lambda: torch.nn.functional.normalize(f32(n, d), dim=1).half()
    return run(info_nce, (cdiv(n, 64),), (unit(), unit(), lse, pos, n, 14.0), (lse, pos), D=d, BM=64, BN=64, num_warps=4, num_stages=3)


@triton.jit
def dropout_add_norm(X, R, W, Y, NEW, KEEP, N, p, seed, BLOCK: tl.constexpr):
    # Philox by hand: one draw of four words serves four elements; the mask is kept as bits.
    row = tl.program_id(0)
    j, s = tl.arange(0, BLOCK // 4), tl.arange(0, 4)
    c0 = (row * (BLOCK // 4) + j).to(tl.uint32)
    zero = c0 * 0
    a, b, c, d = tl.philox(seed, c0, zero, zero, zero)
    u = tl.reshape(tl.join(tl.join(a, c), tl.join(b, d)), (BLOCK // 4, 4))
    keep = tl.uint_to_uniform_float(u) > p
    i = j[:, None] * 4 + s[None, :]
    mask = i < N
    x = tl.load(X + row * N + i, mask=mask, other=0.0).to(tl.float32)
    r = tl.load(R + row * N + i, mask=mask, other=0.0).to(tl.float32)
    r += tl.where(keep, x / (1 - p), 0.0)
    tl.store(NEW + row * N + i, r.to(tl.bfloat16), mask=mask)
    rstd = tl.rsqrt(tl.sum(tl.sum(tl.where(mask, r * r, 0.0), 1), 0) / N + 1e-6)
    w = tl.load(W + i, mask=mask, other=0.0).to(tl.float32)
    tl.store(Y + row * N + i, (r * rstd * w).to(tl.bfloat16), mask=mask)
    bits = tl.sum(keep.to(tl.int32) << s[None, :], 1)
    tl.store(KEEP + row * (BLOCK // 4) + j, bits.to(tl.uint8))


@case
def dropout_add_rms_norm_philox():
    m, n = 8192, 2000
    y, new, keep = zeros(m, n, dtype="bfloat16"), zeros(m, n, dtype="bfloat16"), zeros(m, 512, dtype="uint8")
    args = rand(m, n, dtype="bfloat16"), rand(m, n, dtype="bfloat16"), rand(n, dtype="bfloat16"), y, new, keep, n, 0.1, 4321
    return run(dropout_add_norm, (m,), args, (y, new, keep), BLOCK=2048, num_warps=4)


@triton.jit
def _gate(x, KIND: tl.constexpr):
    if KIND == "relu":
        return tl.maximum(x, 0.0), tl.where(x > 0, 1.0, 0.0)
    elif KIND == "gelu":
        inner = 0.7978845608 * (x + 0.044715 * x * x * x)
        t = 2.0 * tl.sigmoid(2.0 * inner) - 1.0
        return 0.5 * x * (1.0 + t), 0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * 0.7978845608 * (1.0 + 0.134145 * x * x)
    else:
        s = tl.sigmoid(x)
        return x * s, s * (1.0 + x * (1.0 - s))


@triton.jit
def gated_backward(DY, AB, DAB, Y, N, stride, KIND: tl.constexpr, BLOCK: tl.constexpr):
    # The gate and the value lie in one row; the forward result is made again.
    row = tl.program_id(0).to(tl.int64)
    i = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = i < N
    dy = tl.load(DY + row * N + i, mask=mask, other=0.0).to(tl.float32)
    a = tl.load(AB + row * stride + i, mask=mask, other=0.0).to(tl.float32)
    b = tl.load(AB + row * stride + N + i, mask=mask, other=0.0).to(tl.float32)
    g, dg = _gate(a, KIND)
    tl.store(Y + row * N + i, (g * b).to(Y.dtype.element_ty), mask=mask)
    tl.store(DAB + row * stride + i, (dy * b * dg).to(Y.dtype.element_ty), mask=mask)
    tl.store(DAB + row * stride + N + i, (dy * g).to(Y.dtype.element_ty), mask=mask)


@case
def geglu_backward_tanh():
    m, n = 4096, 5504
    dab, y = zeros(m, 2 * n, dtype="bfloat16"), zeros(m, n, dtype="bfloat16")
    args = rand(m, n, dtype="bfloat16"), rand(m, 2 * n, dtype="bfloat16"), dab, y, n, 2 * n
    return run(gated_backward, (m, cdiv(n, 1024)), args, (dab, y), KIND="gelu", BLOCK=1024, num_warps=4)


@case
def reglu_backward_half():
    m, n = 6000, 3001
    dab, y = zeros(m, 2 * n), zeros(m, n)
    return run(gated_backward, (m, 1), (rand(m, n), rand(m, 2 * n), dab, y, n, 2 * n), (dab, y), KIND="relu", BLOCK=4096, num_warps=8)


@triton.jit
def embedding_backward(IDS, DY, DW, N, D, PAD, BN: tl.constexpr, BD: tl.constexpr):
    n = tl.program_id(0) * BN + tl.arange(0, BN)
    d = tl.program_id(1) * BD + tl.arange(0, BD)
    row = tl.load(IDS + n, mask=n < N, other=PAD)
    mask = (row != PAD)[:, None] & (d < D)[None, :]
    g = tl.load(DY + n[:, None] * D + d[None, :], mask=mask, other=0.0)
    tl.atomic_add(DW + row[:, None] * D + d[None, :], g.to(tl.float32), mask=mask, sem="relaxed")


@case
def embedding_backward_atomic():
    n, v, d = 16384, 5000, 768
    dw = zeros(v, d, dtype="float32")
    args = ints(0, v, n, dtype="int64"), rand(n, d, dtype="bfloat16"), dw, n, d, 0
    return cleared(run(embedding_backward, (cdiv(n, 16), d // 128), args, dw, BN=16, BD=128, num_warps=4), dw)


@triton.jit
def adafactor_update(P, G, ROW, COL, ROWN, OUT, M, N, lr, mean_row, BM: tl.constexpr, BN: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    r = tl.load(ROW + m, mask=m < M, other=1.0) / mean_row
    norm = tl.zeros((BM,), tl.float32)
    for n0 in range(0, N, BN):
        n = n0 + tl.arange(0, BN)
        mask = (m < M)[:, None] & (n < N)[None, :]
        g = tl.load(G + m[:, None] * N + n[None, :], mask=mask, other=0.0).to(tl.float32)
        c = tl.load(COL + n, mask=n < N, other=1.0)
        u = g * tl.rsqrt(r[:, None] * c[None, :] + 1e-12)
        norm += tl.sum(u * u, 1)
        p = tl.load(P + m[:, None] * N + n[None, :], mask=mask, other=0.0)
        tl.store(OUT + m[:, None] * N + n[None, :], p - lr * u, mask=mask)
    tl.store(ROWN + m, norm, mask=m < M)


@triton.jit
def adafactor_statistics(G, ROW, COL, M, N, decay, BM: tl.constexpr, BN: tl.constexpr):
    # Sums of squares of rows and columns in one pass, both by atomics.
    m, n = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    mask = (m < M)[:, None] & (n < N)[None, :]
    g = tl.load(G + m[:, None] * N + n[None, :], mask=mask, other=0.0).to(tl.float32)
    sq = g * g + 1e-30
    tl.atomic_add(ROW + m, tl.sum(tl.where(mask, sq, 0.0), 1) * (1 - decay) / N, mask=m < M, sem="relaxed")
    tl.atomic_add(COL + n, tl.sum(tl.where(mask, sq, 0.0), 0) * (1 - decay) / M, mask=n < N, sem="relaxed")


@case
def adafactor_row_and_column_statistics():
    m, n = 4096, 6000
    row, col = zeros(m, dtype="float32"), zeros(n, dtype="float32")
    args = rand(m, n, dtype="bfloat16"), row, col, m, n, 0.5
    return cleared(run(adafactor_statistics, (cdiv(m, 64), cdiv(n, 128)), args, (row, col), BM=64, BN=128, num_warps=8), row, col)


@case
def adafactor_update_of_rows():
    m, n = 4096, 4000
    norm, out = zeros(m, dtype="float32"), zeros(m, n, dtype="float32")
    args = f32(m, n), rand(m, n, dtype="bfloat16"), uniform(m) + 0.5, uniform(n) + 0.5, norm, out, m, n, 1e-3, 1.0
    return run(adafactor_update, (m // 8,), args, (norm, out), BM=8, BN=256, num_warps=4)


@triton.jit
def clip_and_average(P, EMA, G, NORM2, PO, EO, lr, decay, limit, n, BLOCK: tl.constexpr, PARTS: tl.constexpr):
    # The norm's parts are summed by everyone, then a clipped step and a moving average in half precision.
    total = tl.sum(tl.load(NORM2 + tl.arange(0, PARTS)))
    clip = tl.minimum(limit / (tl.sqrt(total) + 1e-6), 1.0)
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    p = tl.load(P + i, mask=mask, eviction_policy="evict_first") - lr * clip * tl.load(G + i, mask=mask).to(tl.float32)
    e = tl.load(EMA + i, mask=mask).to(tl.float32)
    tl.store(PO + i, p, mask=mask)
    tl.store(EO + i, (e + (1 - decay) * (p - e)).to(tl.float16), mask=mask)


@case
def clipped_step_with_average():
    n = 25000000
    po, eo = zeros(n, dtype="float32"), zeros(n)
    args = f32(n), rand(n), rand(n, dtype="bfloat16"), uniform(1024), po, eo, 0.01, 0.99, 1.0, n
    return run(clip_and_average, (cdiv(n, 2048),), args, (po, eo), BLOCK=2048, PARTS=1024, num_warps=8)


@triton.jit
def route_softmax_topk(LOGITS, BIAS, WEIGHTS, IDS, LOAD, PROB, T, E: tl.constexpr, K: tl.constexpr, BT: tl.constexpr):
    # Probabilities choose after a bias is added; loads and mean probabilities for the balance loss by atomics.
    t, e = tl.program_id(0) * BT + tl.arange(0, BT), tl.arange(0, E)
    live = t < T
    x = tl.load(LOGITS + t[:, None] * E + e[None, :], mask=live[:, None], other=0.0).to(tl.float32)
    p = tl.exp(x - tl.max(x, 1, keep_dims=True))
    p = p / tl.sum(p, 1, keep_dims=True)
    choose = p + tl.load(BIAS + e)[None, :]
    taken = tl.zeros((BT, E), tl.int32)
    total = tl.zeros((BT,), tl.float32)
    for k in tl.static_range(K):
        at = tl.argmax(choose, 1)
        hit = e[None, :] == at[:, None]
        w = tl.sum(tl.where(hit, p, 0.0), 1)
        tl.store(WEIGHTS + t * K + k, w, mask=live)
        tl.store(IDS + t * K + k, at, mask=live)
        total += w
        taken += hit.to(tl.int32)
        choose = tl.where(hit, -1.0, choose)
    tl.atomic_add(LOAD + e, tl.sum(tl.where(live[:, None], taken, 0), 0), sem="relaxed")
    tl.atomic_add(PROB + e, tl.sum(tl.where(live[:, None], p, 0.0), 0), sem="relaxed")


@case
def moe_route_with_loads():
    t, e, k = 20000, 64, 6
    w, ids, load, prob = zeros(t, k, dtype="float32"), zeros(t, k, dtype="int32"), zeros(e, dtype="int32"), zeros(e, dtype="float32")
    args = rand(t, e), f32(e) * 0.01, w, ids, load, prob, t
    launched = run(route_softmax_topk, (cdiv(t, 16),), args, (w, load, prob), E=e, K=k, BT=16, num_warps=4)
    return cleared(launched, load, prob)


@triton.jit
def grouped_weight_gradient(X, DY, OFFSETS, DW, K, N, BK: tl.constexpr, BN: tl.constexpr, BT: tl.constexpr):
    # dW of an expert: a product over its tokens, of which there are any number.
    e = tl.program_id(2)
    k, n = tl.program_id(0) * BK + tl.arange(0, BK), tl.program_id(1) * BN + tl.arange(0, BN)
    first, last = tl.load(OFFSETS + e), tl.load(OFFSETS + e + 1)
    acc = tl.zeros((BK, BN), tl.float32)
    for t0 in range(first, last, BT):
        t = t0 + tl.arange(0, BT)
        live = t < last
        x = tl.load(X + t[None, :] * K + k[:, None], mask=live[None, :], other=0.0)
        dy = tl.load(DY + t[:, None] * N + n[None, :], mask=live[:, None], other=0.0)
        acc = tl.dot(x, dy, acc)
    tl.store(DW + (e * K + k[:, None]) * N + n[None, :], acc.to(DW.dtype.element_ty))


@case
def moe_weight_gradients():
    experts, t, k, n = 16, 6000, 1024, 768
    dw = zeros(experts, k, n, dtype="bfloat16")
    offsets = torch.cat((torch.sort(ints(0, t, experts - 1))[0], full(t, 1, dtype="int32")))
    offsets = torch.cat((full(0, 1, dtype="int32"), offsets)).int()
    args = rand(t, k, dtype="bfloat16"), rand(t, n, dtype="bfloat16"), offsets, dw, k, n
    return run(grouped_weight_gradient, (k // 128, n // 128, experts), args, dw, BK=128, BN=128, BT=64, num_warps=8, num_stages=3)


@triton.jit
def grouped_forward(X, ROWS, W, TILE_E, TILE_M, OFFSETS, Y, K, N, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Tiles of experts' tokens from a table; the tokens are gathered; SwiGLU of two halves of W.
    tile = tl.program_id(0)
    e = tl.load(TILE_E + tile)
    if e < 0:
        return
    last = tl.load(OFFSETS + e + 1)
    m = tl.load(TILE_M + tile) + tl.arange(0, BM)
    row = tl.load(ROWS + m, mask=m < last, other=0)
    n, k = tl.program_id(1) * BN + tl.arange(0, BN), tl.arange(0, BK)
    pw = W + e.to(tl.int64) * K * 2 * N + k[:, None] * (2 * N) + n[None, :]
    gate, up = tl.zeros((BM, BN), tl.float32), tl.zeros((BM, BN), tl.float32)
    for k0 in range(0, K, BK):
        x = tl.load(X + row[:, None] * K + (k0 + k)[None, :], mask=(m < last)[:, None], other=0.0)
        gate += tl.dot(x, tl.load(pw))
        up += tl.dot(x, tl.load(pw + N))
        pw += BK * 2 * N
    y = gate * tl.sigmoid(gate) * up
    tl.store(Y + m[:, None] * N + n[None, :], y.to(tl.bfloat16), mask=(m < last)[:, None])


@case
def moe_gathered_swiglu():
    experts, t, top, k, n, bm = 8, 2048, 2, 1024, 1024, 64
    y = zeros(t * top, n, dtype="bfloat16")
    each = t * top // experts - 9
    offsets = [e * each for e in range(experts)] + [t * top]
    tiles = [(e, m) for e in range(experts) for m in range(offsets[e], offsets[e + 1], bm)] + [(-1, 0)] * 3
    column = lambda i: torch.tensor([tile[i] for tile in tiles], device="cuda", dtype=torch.int32)
    args = rand(t, k, dtype="bfloat16"), ints(0, t, t * top), rand(experts, k, 2 * n, dtype="bfloat16"), column(0), column(1)
    args += torch.tensor(offsets, device="cuda", dtype=torch.int32), y, k, n
    return run(grouped_forward, (len(tiles), n // 64), args, y, BM=bm, BN=64, BK=64, num_warps=4, num_stages=3)


@triton.jit
def lora_linear(X, W, A, B, Y, scaling, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, R: tl.constexpr):
    # The thin product beside the wide one, in the same loop.
    m, n, k, r = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN), tl.arange(0, BK), tl.arange(0, R)
    acc, thin = tl.zeros((BM, BN), tl.float32), tl.zeros((BM, R), tl.float32)
    for k0 in range(0, K, BK):
        x = tl.load(X + m[:, None] * K + (k0 + k)[None, :], mask=(m < M)[:, None], other=0.0)
        w = tl.load(W + n[None, :] * K + (k0 + k)[:, None], mask=(n < N)[None, :], other=0.0)
        a = tl.load(A + r[None, :] * K + (k0 + k)[:, None])
        acc = tl.dot(x, w, acc)
        thin = tl.dot(x, a, thin)
    b = tl.load(B + n[None, :] * R + r[:, None], mask=(n < N)[None, :], other=0.0)
    acc += tl.dot((thin * scaling).to(b.dtype), b)
    tl.store(Y + m[:, None] * N + n[None, :], acc.to(Y.dtype.element_ty), mask=(m < M)[:, None] & (n < N)[None, :])


@case
def lora_beside_linear():
    m, n, k, r = 1500, 2048, 2048, 16
    y = zeros(m, n)
    args = rand(m, k), rand(n, k), rand(r, k), rand(n, r), y, 2.0, m, n, k
    return run(lora_linear, (cdiv(m, 128), n // 128), args, y, BM=128, BN=128, BK=32, R=r, num_warps=8, num_stages=4)


@triton.jit
def attention_dkdv(Q, K, V, DO, LSE, DELTA, DOC, DK, DV, T, H, scale, cap, WINDOW,
                   ALIBI: tl.constexpr, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    # Gradients of a block of keys and values: softcap or ALiBi, a window, and documents that do not see each other.
    h, b = tl.program_id(1), tl.program_id(2)
    n, d = tl.program_id(0) * BN + tl.arange(0, BN), tl.arange(0, D)
    base = (b * H + h) * T
    k = tl.load(K + (base + n)[:, None] * D + d[None, :])
    v = tl.load(V + (base + n)[:, None] * D + d[None, :])
    mine = tl.load(DOC + b * T + n)
    slope = tl.exp2(-8.0 * (h + 1) / H)
    dk, dv = tl.zeros((BN, D), tl.float32), tl.zeros((BN, D), tl.float32)
    first = tl.program_id(0) * BN // BM * BM
    for m0 in range(first, min(first + WINDOW + BN, T), BM):
        m = m0 + tl.arange(0, BM)
        q = tl.load(Q + (base + m)[:, None] * D + d[None, :])
        do = tl.load(DO + (base + m)[:, None] * D + d[None, :])
        lse, delta = tl.load(LSE + base + m), tl.load(DELTA + base + m)
        docs = tl.load(DOC + b * T + m)
        s = tl.dot(k, q.T) * scale
        if ALIBI:
            s += slope * (n[:, None] - m[None, :])
            chain = 1.0
        else:
            th = 2.0 * tl.sigmoid(2.0 * s / cap) - 1.0
            s = cap * th
            chain = 1.0 - th * th
        ok = (m[None, :] >= n[:, None]) & (m[None, :] - n[:, None] < WINDOW) & (docs[None, :] == mine[:, None])
        p = tl.where(ok, tl.exp(tl.minimum(s - lse[None, :], 5.0)), 0.0)
        dv = tl.dot(p.to(do.dtype), do, dv)
        dp = tl.dot(v, do.T)
        ds = p * (dp - delta[None, :]) * chain
        dk = tl.dot(ds.to(q.dtype), q, dk)
    tl.store(DK + (base + n)[:, None] * D + d[None, :], (dk * scale).to(tl.bfloat16))
    tl.store(DV + (base + n)[:, None] * D + d[None, :], dv.to(tl.bfloat16))


def gradients(b, h, t, d, window, alibi, bm, bn, warps, stages):
    dk, dv = zeros(b, h, t, d, dtype="bfloat16"), zeros(b, h, t, d, dtype="bfloat16")
    docs = torch.sort(ints(0, 4, b, t), 1)[0]
    args = *(rand(b, h, t, d, dtype="bfloat16") for _ in range(4)), f32(b, h, t) + 7, f32(b, h, t), docs.int()
    args += dk, dv, t, h, d**-0.5, 30.0, window
    launch = (t // bn, h, b)
    return run(attention_dkdv, launch, args, (dk, dv), ALIBI=alibi, D=d, BM=bm, BN=bn, num_warps=warps, num_stages=stages)


@case
def attn_dkdv_alibi_documents():
    return gradients(2, 16, 2048, 64, 4096, True, 64, 128, 8, 2)


@case
def attn_dkdv_softcap_window():
    return gradients(2, 8, 2048, 128, 512, False, 32, 64, 4, 3)


@triton.jit
def conv1d_weight_gradient(X, DY, DW, T, C, PER, W: tl.constexpr, BT: tl.constexpr, BC: tl.constexpr):
    # Depthwise: each tap's gradient is a sum over time of products, added up by atomics.
    b = tl.program_id(2)
    c = tl.program_id(0) * BC + tl.arange(0, BC)
    lo = tl.program_id(1) * PER
    w = tl.arange(0, W)
    acc = tl.zeros((W, BC), tl.float32)
    for t0 in range(lo, min(lo + PER, T), BT):
        t = t0 + tl.arange(0, BT)
        dy = tl.load(DY + (b * T + t)[:, None] * C + c[None, :], mask=(t < T)[:, None] & (c < C)[None, :], other=0.0).to(tl.float32)
        for k in tl.static_range(W):
            u = t - (W - 1) + k
            x = tl.load(X + (b * T + u)[:, None] * C + c[None, :], mask=((u >= 0) & (t < T))[:, None] & (c < C)[None, :], other=0.0)
            part = tl.sum(x.to(tl.float32) * dy, 0)
            acc += tl.where((w == k)[:, None], part[None, :], 0.0)
    tl.atomic_add(DW + w[:, None] * C + c[None, :], acc, mask=(c < C)[None, :], sem="relaxed")


@case
def conv1d_depthwise_weight_gradient():
    b, t, c, w = 4, 2048, 1500, 4
    dw = zeros(w, c, dtype="float32")
    args = rand(b, t, c, dtype="bfloat16"), rand(b, t, c, dtype="bfloat16"), dw, t, c, 128
    return cleared(run(conv1d_weight_gradient, (cdiv(c, 64), t // 128, b), args, dw, W=w, BT=32, BC=64, num_warps=4), dw)
