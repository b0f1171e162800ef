"""Recurrences over time, scans, searches, sorts, and steps of decoding."""

import torch
import triton
import triton.language as tl

from .common import case, cdiv, f32, ints, rand, run, uniform, zeros


@triton.jit
def _add(a, b):
    return a + b


@triton.jit
def _mul(a, b):
    return a * b


@triton.jit
def _max(a, b):
    return tl.maximum(a, b)


@triton.jit
def _linear(a1, b1, a2, b2):
    return a1 * a2, a2 * b1 + b2


@triton.jit
def _logaddexp(a, b):
    m = tl.maximum(a, b)
    return m + tl.log(tl.exp(a - m) + tl.exp(b - m))


@triton.jit
def cumulative_rows(X, SUM, PROD, TOP, N, BLOCK: tl.constexpr):
    # Three scans of a row; the carries go from chunk to chunk.
    row = tl.program_id(0).to(tl.int64)
    carry, product, top = 0.0, 1.0, float("-inf")
    for start in range(0, N, BLOCK):
        i = start + tl.arange(0, BLOCK)
        x = tl.load(X + row * N + i, mask=i < N, other=0.0).to(tl.float32)
        s = tl.cumsum(x, 0) + carry
        p = tl.cumprod(1.0 + x * 0.01, 0) * product
        m = tl.maximum(tl.associative_scan(x, 0, _max), top)
        tl.store(SUM + row * N + i, s, mask=i < N)
        tl.store(PROD + row * N + i, p, mask=i < N)
        tl.store(TOP + row * N + i, m.to(tl.float16), mask=i < N)
        carry += tl.sum(x, 0)
        product *= tl.reduce(1.0 + x * 0.01, 0, _mul)
        top = tl.maximum(top, tl.max(x, 0))


@case
def cumulative_sum_product_maximum():
    m, n = 2000, 3000
    s, p, t = zeros(m, n, dtype="float32"), zeros(m, n, dtype="float32"), zeros(m, n)
    # Sums near zero are compared from one.
    args = torch.rand(m, n, device="cuda").half(), s, p, t, n
    return run(cumulative_rows, (m,), args, (s, p, t), BLOCK=1024, num_warps=4)


@triton.jit
def min_gru(X, GATE, H0, OUT, T, D, BT: tl.constexpr, BD: tl.constexpr):
    # h = (1 - z) * h + z * candidate as an associative scan of pairs, chunk by chunk.
    b = tl.program_id(0)
    d = tl.program_id(1) * BD + tl.arange(0, BD)
    h = tl.load(H0 + b * D + d, mask=d < D, other=0.0).to(tl.float32)
    for t0 in range(0, T, BT):
        t = t0 + tl.arange(0, BT)
        at = (b * T + t)[:, None] * D + d[None, :]
        mask = (t < T)[:, None] & (d < D)[None, :]
        x = tl.load(X + at, mask=mask, other=0.0).to(tl.float32)
        z = tl.sigmoid(tl.load(GATE + at, mask=mask, other=-60.0).to(tl.float32))
        cand = tl.where(x >= 0, x + 0.5, tl.sigmoid(x))
        a, y = tl.associative_scan((1.0 - z, z * cand), 0, _linear)
        y += a * h[None, :]
        tl.store(OUT + at, y.to(OUT.dtype.element_ty), mask=mask)
        h = tl.sum(tl.where((tl.arange(0, BT) == BT - 1)[:, None], y, 0.0), 0)


@case
def min_gru_scan():
    b, t, d = 16, 1024, 500
    out = zeros(b, t, d, dtype="bfloat16")
    args = rand(b, t, d, dtype="bfloat16"), rand(b, t, d, dtype="bfloat16"), rand(b, d, dtype="bfloat16"), out, t, d
    return run(min_gru, (b, cdiv(d, 32)), args, out, BT=64, BD=32, num_warps=4)


@triton.jit
def log_sum_exp_scan(X, OUT, T, D, BT: tl.constexpr, BD: tl.constexpr):
    b = tl.program_id(0)
    d = tl.program_id(1) * BD + tl.arange(0, BD)
    t = tl.arange(0, BT)
    at = (b * T + t)[None, :] * D + d[:, None]
    mask = (t < T)[None, :] & (d < D)[:, None]
    x = tl.load(X + at, mask=mask, other=-1e4)
    tl.store(OUT + at, tl.associative_scan(x, 1, _logaddexp), mask=mask)


@case
def log_cumsum_exp_columns():
    b, t, d = 64, 250, 400
    out = zeros(b, t, d, dtype="float32")
    return run(log_sum_exp_scan, (b, cdiv(d, 16)), (f32(b, t, d) + 5, out, t, d), out, BT=256, BD=16, num_warps=4)


@triton.jit
def mamba_chunk_scan(U, DELTA, A, Bm, Cm, SKIP, Z, OUT, T, D, N: tl.constexpr, BT: tl.constexpr, BD: tl.constexpr):
    # Chunks of time as a tile of three dimensions, scanned along the first.
    b = tl.program_id(1)
    d, n = tl.program_id(0) * BD + tl.arange(0, BD), tl.arange(0, N)
    a = -tl.exp(tl.load(A + d[:, None] * N + n[None, :]))
    skip = tl.load(SKIP + d)
    h = tl.zeros((BD, N), tl.float32)
    for t0 in range(0, T, BT):
        t = t0 + tl.arange(0, BT)
        at = (b * T + t)[:, None] * D + d[None, :]
        u = tl.load(U + at).to(tl.float32)
        dt = tl.load(DELTA + at).to(tl.float32)
        dt = tl.where(dt > 20.0, dt, tl.log(1.0 + tl.exp(dt)))
        bm = tl.load(Bm + (b * T + t)[:, None] * N + n[None, :]).to(tl.float32)
        cm = tl.load(Cm + (b * T + t)[:, None] * N + n[None, :]).to(tl.float32)
        decay = tl.exp(dt[:, :, None] * a[None, :, :])
        inc = (dt * u)[:, :, None] * bm[:, None, :]
        p, s = tl.associative_scan((decay, inc), 0, _linear)
        s += p * h[None, :, :]
        y = tl.sum(s * cm[:, None, :], 2) + skip[None, :] * u
        z = tl.load(Z + at).to(tl.float32)
        tl.store(OUT + at, (y * z * tl.sigmoid(z)).to(tl.float16))
        h = tl.sum(tl.where((tl.arange(0, BT) == BT - 1)[:, None, None], s, 0.0), 0)


@case
def mamba_chunks_as_3d_scan():
    b, t, d, n = 4, 512, 1024, 16
    out = zeros(b, t, d)
    args = rand(b, t, d), rand(b, t, d) - 2, f32(d, n) * 0.3, rand(b, t, n), rand(b, t, n), f32(d), rand(b, t, d), out, t, d
    return run(mamba_chunk_scan, (d // 8, b), args, out, N=n, BT=16, BD=8, num_warps=4)


@triton.jit
def wkv4(K, V, Wd, U, OUT, T, C, BC: tl.constexpr):
    # RWKV 4: a running maximum keeps the exponents small.
    b = tl.program_id(0)
    c = tl.program_id(1) * BC + tl.arange(0, BC)
    mask = c < C
    w, u = -tl.exp(tl.load(Wd + c, mask=mask)), tl.load(U + c, mask=mask)
    num, den = tl.zeros((BC,), tl.float32), tl.zeros((BC,), tl.float32)
    top = tl.full((BC,), -1e38, tl.float32)
    pk, pv, po = K + b * T * C + c, V + b * T * C + c, OUT + b * T * C + c
    for _ in range(T):
        k, v = tl.load(pk, mask=mask, other=0.0).to(tl.float32), tl.load(pv, mask=mask, other=0.0).to(tl.float32)
        m = tl.maximum(top, u + k)
        e1, e2 = tl.exp(top - m), tl.exp(u + k - m)
        tl.store(po, ((e1 * num + e2 * v) / (e1 * den + e2)).to(tl.bfloat16), mask=mask)
        m = tl.maximum(w + top, k)
        e1, e2 = tl.exp(w + top - m), tl.exp(k - m)
        num, den, top = e1 * num + e2 * v, e1 * den + e2, m
        pk, pv, po = pk + C, pv + C, po + C


@case
def rwkv4_channels():
    b, t, c = 8, 512, 2000
    out = zeros(b, t, c, dtype="bfloat16")
    args = rand(b, t, c, dtype="bfloat16"), rand(b, t, c, dtype="bfloat16"), f32(c), f32(c), out, t, c
    return run(wkv4, (b, cdiv(c, 64)), args, out, BC=64, num_warps=2)


@triton.jit
def viterbi(EMIT, TRANS, BACK, SCORE, T, S: tl.constexpr):
    b = tl.program_id(0)
    s = tl.arange(0, S)
    trans = tl.load(TRANS + s[:, None] * S + s[None, :])
    v = tl.load(EMIT + b * T * S + s)
    for t in range(1, T):
        # v belongs to the rows of `trans`; a transposition of shapes brings the result back to them.
        cand = v[:, None] + trans
        best, arg = tl.max(cand, 0, return_indices=True)
        v = best + tl.load(EMIT + (b * T + t) * S + s)
        tl.store(BACK + (b * T + t) * S + s, arg.to(tl.int16))
    tl.store(SCORE + b * S + s, v)


@case
def viterbi_64_states():
    b, t, s = 256, 200, 64
    back, score = zeros(b, t, s, dtype="int16"), zeros(b, s, dtype="float32")
    return run(viterbi, (b,), (f32(b, t, s), f32(s, s), back, score, t), (score, back), S=s, num_warps=4)


@triton.jit
def ctc_alpha(LOGP, LABELS, LENGTHS, ALPHA, LOSS, T, V, L, S: tl.constexpr):
    # States are blanks and labels in turn; neighbors come by a gather.
    b = tl.program_id(0)
    s = tl.arange(0, S)
    length = tl.load(LENGTHS + b)
    states = 2 * length + 1
    is_label = (s % 2 == 1) & (s < states)
    lab = tl.load(LABELS + b * L + s // 2, mask=is_label, other=0)
    prev = tl.load(LABELS + b * L + s // 2 - 1, mask=is_label & (s >= 3), other=-1)
    skip = is_label & (s >= 3) & (lab != prev)
    neg = -1e30
    alpha = tl.where(s < 2, tl.load(LOGP + b * T * V + lab), neg)
    for t in range(1, T):
        one = tl.where(s >= 1, tl.gather(alpha, tl.maximum(s - 1, 0), 0), neg)
        two = tl.where(skip, tl.gather(alpha, tl.maximum(s - 2, 0), 0), neg)
        m = tl.maximum(tl.maximum(alpha, one), two)
        total = m + tl.log(tl.exp(alpha - m) + tl.exp(one - m) + tl.exp(two - m))
        alpha = tl.where(s < states, total + tl.load(LOGP + (b * T + t) * V + lab), neg)
        tl.store(ALPHA + (b * T + t) * S + s, tl.maximum(alpha, -1e4))
    ends = (s == states - 1) | (s == states - 2)
    tl.store(LOSS + b, -_reduce_logaddexp(tl.where(ends, alpha, neg)))


@triton.jit
def _reduce_logaddexp(x):
    m = tl.max(x, 0)
    return m + tl.log(tl.sum(tl.exp(x - m), 0))


@case
def ctc_forward():
    b, t, v, l, s = 256, 150, 40, 60, 128
    alpha, loss = zeros(b, t, s, dtype="float32"), zeros(b, dtype="float32")
    args = torch.log_softmax(f32(b, t, v), -1), ints(1, v, b, l), ints(20, l + 1, b), alpha, loss, t, v, l
    return run(ctc_alpha, (b,), args, (alpha, loss), S=s, num_warps=2)


@triton.jit
def levenshtein_rows(A, B, LEN, OUT, LA, LB: tl.constexpr, PAD: tl.constexpr):
    # Row by row; insertions are a running minimum of distance minus column.
    p = tl.program_id(0)
    j = tl.arange(0, PAD)
    b = tl.load(B + p * LB + j - 1, mask=(j >= 1) & (j <= LB), other=-1)
    row = j
    length = tl.load(LEN + p)
    i = 0
    while i < length:
        ch = tl.load(A + p * LA + i)
        diag = tl.gather(row, tl.maximum(j - 1, 0), 0)
        x = tl.minimum(row + 1, tl.where(j == 0, i + 1, diag + (b != ch).to(tl.int32)))
        row = tl.associative_scan(x - j, 0, _min) + j
        i += 1
    tl.store(OUT + p, tl.sum(tl.where(j == LB, row, 0), 0))


@triton.jit
def _min(a, b):
    return tl.minimum(a, b)


@case
def edit_distance_scans():
    n, la, lb = 3000, 80, 100
    out = zeros(n, dtype="int32")
    return run(levenshtein_rows, (n,), (ints(0, 20, n, la), ints(0, 20, n, lb), ints(40, 81, n), out, la), out, LB=lb, PAD=128, num_warps=1)


@triton.jit
def retention_chunks(Q, K, V, OUT, T, H, scale, D: tl.constexpr, DV: tl.constexpr, C: tl.constexpr):
    # Chunks of a retention: inside by a decay mask, across by a state.
    h, b = tl.program_id(1), tl.program_id(2)
    i, d = tl.arange(0, C), tl.arange(0, D)
    v0 = tl.program_id(0) * DV + tl.arange(0, DV)
    wide = tl.num_programs(0) * DV
    log_gamma = tl.math.log2(1.0 - tl.math.exp2(-5.0 - h.to(tl.float32) * 0.5))
    inside = tl.where(i[:, None] >= i[None, :], tl.math.exp2((i[:, None] - i[None, :]) * log_gamma), 0.0)
    state = tl.zeros((D, DV), tl.float32)
    for t0 in range(0, T, C):
        at = ((b * T + t0 + i) * H + h)
        q = tl.load(Q + at[:, None] * D + d[None, :])
        k = tl.load(K + at[:, None] * D + d[None, :])
        v = tl.load(V + at[:, None] * wide + v0[None, :])
        s = tl.dot(q, tl.trans(k)) * scale * inside
        o = tl.dot(s.to(v.dtype), v)
        o += tl.dot(q, state.to(q.dtype)) * (scale * tl.math.exp2((i + 1) * log_gamma))[:, None]
        kd = (k.to(tl.float32) * tl.math.exp2((C - 1 - i) * log_gamma)[:, None]).to(k.dtype)
        state = state * tl.math.exp2(C * log_gamma) + tl.dot(tl.trans(kd), v)
        tl.store(OUT + at[:, None] * wide + v0[None, :], o.to(OUT.dtype.element_ty))


@case
def retention_chunked():
    b, t, h, d, dv = 4, 2048, 8, 128, 256
    out = zeros(b, t, h, dv, dtype="bfloat16")
    args = *(rand(b, t, h, x, dtype="bfloat16") for x in (d, d, dv)), out, t, h, d**-0.5
    return run(retention_chunks, (dv // 64, h, b), args, out, D=d, DV=64, C=64, num_warps=4, num_stages=2)


@triton.jit
def causal_conv_silu(X, Wt, BIAS, OUT, T, C, WIDTH: tl.constexpr, BT: tl.constexpr, BC: tl.constexpr):
    b = tl.program_id(2)
    c = tl.program_id(0) * BC + tl.arange(0, BC)
    t = tl.program_id(1) * BT + tl.arange(0, BT)
    acc = tl.zeros((BT, BC), tl.float32) + tl.load(BIAS + c, mask=c < C, other=0.0)[None, :]
    for w in tl.static_range(WIDTH):
        u = t - (WIDTH - 1) + w
        x = tl.load(X + (b * T + u)[:, None] * C + c[None, :], mask=(u >= 0)[:, None] & (u < T)[:, None] & (c < C)[None, :], other=0.0)
        acc += x.to(tl.float32) * tl.load(Wt + c * WIDTH + w, mask=c < C, other=0.0)[None, :]
    acc = acc / (1.0 + tl.exp(-acc))
    tl.store(OUT + (b * T + t)[:, None] * C + c[None, :], acc.to(tl.float16), mask=(t < T)[:, None] & (c < C)[None, :])


@case
def causal_conv_of_four_taps():
    b, t, c = 4, 2000, 2304
    out = zeros(b, t, c)
    return run(causal_conv_silu, (c // 128, cdiv(t, 32), b), (rand(b, t, c), f32(c, 4), f32(c), out, t, c), out, WIDTH=4, BT=32, BC=128)


@triton.jit
def run_length_encode(X, VALUES, STARTS, COUNT, N, BLOCK: tl.constexpr):
    # One program for a row: heads of runs get their places from a cumulative sum.
    row = tl.program_id(0)
    filled = 0
    for start in range(0, N, BLOCK):
        i = start + tl.arange(0, BLOCK)
        x = tl.load(X + row * N + i, mask=i < N, other=0)
        before = tl.load(X + row * N + i - 1, mask=(i > 0) & (i < N), other=0)
        head = (((x != before) | (i == 0)) & (i < N)).to(tl.int32)
        at = filled + tl.cumsum(head, 0) - 1
        tl.store(VALUES + row * N + at, x, mask=head != 0)
        tl.store(STARTS + row * N + at, i, mask=head != 0)
        filled += tl.sum(head, 0)
    tl.store(COUNT + row, filled)


@case
def run_length_rows():
    m, n = 1000, 5000
    values, starts, count = zeros(m, n, dtype="uint8"), zeros(m, n, dtype="int32"), zeros(m, dtype="int32")
    x = (ints(0, 4, m, n) == 0).int().cumsum(1).to(torch.uint8)
    return run(run_length_encode, (m,), (x.contiguous(), values, starts, count, n), (values, starts, count), BLOCK=1024, num_warps=4)


@triton.jit
def ngram_ban(TOKENS, LENGTHS, LOGITS, OUT, MAX, V, NGRAM: tl.constexpr, BLOCK: tl.constexpr, BV: tl.constexpr):
    # Tokens that would repeat an n-gram get minus a lot; then a repetition penalty for the rest.
    b = tl.program_id(0)
    length = tl.load(LENGTHS + b)
    v = tl.program_id(1) * BV + tl.arange(0, BV)
    logit = tl.load(LOGITS + b * V + v, mask=v < V, other=0.0).to(tl.float32)
    banned = tl.zeros((BV,), tl.int32)
    seen = tl.zeros((BV,), tl.int32)
    for p0 in range(0, length, BLOCK):
        p = p0 + tl.arange(0, BLOCK)
        token = tl.load(TOKENS + b * MAX + p, mask=p < length, other=-1)
        match = (p >= NGRAM - 1) & (p < length)
        for g in tl.static_range(1, NGRAM):
            last = tl.load(TOKENS + b * MAX + length - g)
            match = match & (tl.load(TOKENS + b * MAX + p - g, mask=match, other=-2) == last)
        same = token[:, None] == v[None, :]
        seen = tl.maximum(seen, tl.max(same.to(tl.int32), 0))
        banned = tl.maximum(banned, tl.max((same & match[:, None]).to(tl.int32), 0))
    logit = tl.where(seen > 0, tl.where(logit > 0, logit / 1.2, logit * 1.2), logit)
    tl.store(OUT + b * V + v, tl.where(banned > 0, -1e4, logit).to(tl.float32), mask=v < V)


@case
def ngram_ban_and_penalty():
    b, longest, v = 16, 512, 8000
    out = zeros(b, v, dtype="float32")
    args = ints(0, 30, b, longest), ints(200, 512, b), rand(b, v, dtype="bfloat16"), out, longest, v
    return run(ngram_ban, (b, cdiv(v, 128)), args, out, NGRAM=3, BLOCK=32, BV=128, num_warps=4)


@triton.jit
def search_sorted(EDGES, X, OUT, N, E, STEPS: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(X + i, mask=i < N, other=0.0)
    lo, hi = tl.zeros((BLOCK,), tl.int32), tl.zeros((BLOCK,), tl.int32) + E
    for _ in range(STEPS):
        mid = (lo + hi) >> 1
        below = tl.load(EDGES + mid, mask=lo < hi, other=float("inf")) < x
        lo = tl.where((lo < hi) & below, mid + 1, lo)
        hi = tl.where((lo < hi) & (below == 0), mid, hi)
    tl.store(OUT + i, lo.to(tl.int64), mask=i < N)


@case
def searchsorted_binary():
    n, e = 1500000, 5000
    out = zeros(n, dtype="int64")
    edges = torch.sort(f32(e))[0]
    return run(search_sorted, (cdiv(n, 512),), (edges, f32(n), out, n, e), out, STEPS=14, BLOCK=512, num_warps=4)


@triton.jit
def bucketize_counts(X, EDGES, OUT, N, E: tl.constexpr, BLOCK: tl.constexpr):
    # Few edges: compared all at once.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(X + i, mask=i < N, other=0.0)
    edges = tl.load(EDGES + tl.arange(0, E))
    tl.store(OUT + i, tl.sum((x[:, None] >= edges[None, :]).to(tl.int32), axis=1).to(tl.int8), mask=i < N)


@case
def bucketize_32_edges():
    n, e = 3000001, 32
    out = zeros(n, dtype="int8")
    return run(bucketize_counts, (cdiv(n, 256),), (rand(n), torch.sort(rand(e))[0], out, n), out, E=e, BLOCK=256, num_warps=4)


@triton.jit
def sort_keys_with_values(KEYS, OUT, ORDER, N, BLOCK: tl.constexpr):
    # Key and place in one 64-bit number: floats are made sortable integers.
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    x = tl.load(KEYS + row * N + i, mask=i < N, other=float("-inf"))
    bits = x.to(tl.int32, bitcast=True)
    bits = tl.where(bits < 0, bits ^ 0x7FFFFFFF, bits)
    packed = (bits.to(tl.int64) << 32) | (BLOCK - 1 - i).to(tl.int64)
    packed = tl.sort(packed, descending=True)
    bits = (packed >> 32).to(tl.int32)
    bits = tl.where(bits < 0, bits ^ 0x7FFFFFFF, bits)
    tl.store(OUT + row * N + i, bits.to(tl.float32, bitcast=True), mask=i < N)
    tl.store(ORDER + row * N + i, (BLOCK - 1 - (packed & 0xFFFFFFFF)).to(tl.int32), mask=i < N)


@case
def argsort_packed_rows():
    m, n = 2000, 500
    out, order = zeros(m, n, dtype="float32"), zeros(m, n, dtype="int32")
    return run(sort_keys_with_values, (m,), (f32(m, n), out, order, n), (out, order), BLOCK=512, num_warps=4)


@triton.jit
def beam_step(LOGP, SCORES, OUT, TOKEN, BEAM, V, K: tl.constexpr, KP: tl.constexpr, BV: tl.constexpr):
    # The K best continuations of K beams: each pass takes the largest that is smaller than the one before.
    b = tl.program_id(0)
    k, v0 = tl.arange(0, KP), tl.arange(0, BV)
    base = tl.load(SCORES + b * K + k, mask=k < K, other=-1e30)
    bound = float("inf")
    for rank in range(K):
        best = tl.full((KP, BV), -1e30, tl.float32)
        at = tl.zeros((KP, BV), tl.int32)
        for start in range(0, V, BV):
            v = start + v0
            x = tl.load(LOGP + (b * K + k)[:, None] * V + v[None, :], mask=(k < K)[:, None] & (v < V)[None, :], other=-1e30)
            x = x.to(tl.float32) + base[:, None]
            x = tl.where(x < bound, x, -1e30)
            at = tl.where(x > best, k[:, None] * V + v[None, :], at)
            best = tl.maximum(best, x)
        top, which = tl.max(tl.reshape(best, (KP * BV,)), 0, return_indices=True)
        flat = tl.reshape(at, (KP * BV,))
        cell = tl.sum(tl.where(tl.arange(0, KP * BV) == which, flat, 0), 0)
        tl.store(OUT + b * K + rank, top)
        tl.store(TOKEN + b * K + rank, cell % V)
        tl.store(BEAM + b * K + rank, cell // V)
        bound = top


@case
def beam_search_step():
    b, k, v = 64, 4, 20000
    out, token, beam = zeros(b, k, dtype="float32"), zeros(b, k, dtype="int32"), zeros(b, k, dtype="int32")
    args = torch.log_softmax(f32(b, k, v), -1), f32(b, k), out, token, beam, v
    launch, args = run(beam_step, (b,), args, (out, token, beam), K=k, KP=4, BV=512, num_warps=8)

    def reference(logp, scores, *_):
        # Triton 3.6 gives other tokens than those of the values that it gives.
        best, at = (logp + scores[:, :, None]).reshape(b, -1).topk(k, 1)
        return best, (at % v).int(), (at // v).int()

    launch.reference = reference
    return launch, args


@triton.jit
def gumbel_top1(LOGITS, TEMP, SEEDS, TOKEN, CHOSEN, V, BLOCK: tl.constexpr):
    # Noise from Philox at each token; the chosen token's probability by a running sum of exponentials.
    b = tl.program_id(0)
    seed, temp = tl.load(SEEDS + b), tl.load(TEMP + b)
    best, token, best_x = float("-inf"), 0, 0.0
    m, l = float("-inf"), 0.0
    for start in range(0, V, BLOCK):
        v = start + tl.arange(0, BLOCK)
        x = tl.load(LOGITS + b.to(tl.int64) * V + v, mask=v < V, other=float("-inf")).to(tl.float32) / temp
        u = tl.rand(seed, v)
        y = x - tl.log(-tl.log(u + 1e-9) + 1e-9)
        top, at = tl.max(y, 0, return_indices=True)
        here = tl.sum(tl.where(tl.arange(0, BLOCK) == at, tl.where(v < V, x, 0.0), 0.0), 0)
        if top > best:
            best, token, best_x = top, start + at, here
        new = tl.maximum(m, tl.max(x, 0))
        l = l * tl.exp(m - new) + tl.sum(tl.exp(x - new), 0)
        m = new
    tl.store(TOKEN + b, token.to(tl.int64))
    tl.store(CHOSEN + b, best_x - m - tl.log(l))


@case
def gumbel_sampling_with_logprobs():
    b, v = 256, 50257
    token, chosen = zeros(b, dtype="int64"), zeros(b, dtype="float32")
    args = rand(b, v), uniform(b) + 0.5, ints(0, 1 << 30, b, dtype="int64"), token, chosen, v
    return run(gumbel_top1, (b,), args, chosen, BLOCK=2048, num_warps=8)


@triton.jit
def prefix_match_lengths(A, LA, B, LB, OUT, NA, NB, MAX, BLOCK: tl.constexpr):
    # The longest common prefix of each pair, block by block until they differ.
    i, j = tl.program_id(0), tl.program_id(1)
    n = tl.minimum(tl.load(LA + i), tl.load(LB + j))
    matched = 0
    going = n > 0
    while going:
        p = matched + tl.arange(0, BLOCK)
        differ = (tl.load(A + i * MAX + p, mask=p < n, other=-1) != tl.load(B + j * MAX + p, mask=p < n, other=-2))
        first = tl.min(tl.where(differ, p, 0x7FFFFFFF), 0)
        stop = first < 0x7FFFFFFF
        matched = tl.where(stop, first, matched + BLOCK)
        going = stop == 0
    tl.store(OUT + i * NB + j, tl.minimum(matched, n))


@case
def prefix_matches_of_pairs():
    na, nb, longest = 100, 300, 1024
    out = zeros(na, nb, dtype="int32")
    a, b = ints(0, 1000, na, longest), ints(0, 1000, nb, longest)
    b[:, :500] = a[0, :500]
    a[:, :300] = a[0, :300]
    args = a, ints(100, 1025, na), b, ints(100, 1025, nb), out, na, nb, longest
    return run(prefix_match_lengths, (na, nb), args, out, BLOCK=128, num_warps=1)


@triton.jit
def dedupe_tokens(T, KEEP, RANK, N, BN: tl.constexpr, BP: tl.constexpr):
    # A token is kept where it occurs first: compared with all before it.
    row = tl.program_id(0)
    i = tl.program_id(1) * BN + tl.arange(0, BN)
    t = tl.load(T + row * N + i, mask=i < N, other=-1)
    earlier = tl.zeros((BN,), tl.int32)
    for p0 in range(0, tl.program_id(1) * BN + BN, BP):
        p = p0 + tl.arange(0, BP)
        u = tl.load(T + row * N + p, mask=p < N, other=-2)
        same = (t[:, None] == u[None, :]) & (p[None, :] < i[:, None])
        earlier += tl.sum(same.to(tl.int32), 1)
    tl.store(KEEP + row * N + i, (earlier == 0).to(tl.int1), mask=i < N)
    tl.store(RANK + row * N + i, earlier.to(tl.int16), mask=i < N)


@case
def dedupe_tokens_in_rows():
    m, n = 64, 2000
    keep, rank = zeros(m, n, dtype="bool"), zeros(m, n, dtype="int16")
    args = ints(0, 3000, m, n, dtype="int64"), keep, rank, n
    return run(dedupe_tokens, (m, cdiv(n, 64)), args, (keep, rank), BN=64, BP=64, num_warps=4)
