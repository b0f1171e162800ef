"""Serving: attention over caches of many forms, rotations, gates of sampling, adapters, states and token traffic."""

import torch
import triton
import triton.language as tl

from .common import arange, case, cdiv, f8, f32, far8, full, ints, rand, run, uniform, viewed, zeros


@triton.jit
def decode_split(Q, K, V, LEN, PART, LSE, T, scale, KV: tl.constexpr, G: tl.constexpr, GP: tl.constexpr, D: tl.constexpr, BD: tl.constexpr,
                 BN: tl.constexpr, SPLITS: tl.constexpr):
    b, h, split = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    g, d = tl.arange(0, GP), tl.arange(0, BD)
    dm = d < D
    q = tl.load(Q + ((b * KV + h) * G + g)[:, None] * D + d[None, :], mask=(g < G)[:, None] & dm[None, :], other=0.0)
    length = tl.load(LEN + b)
    each = tl.cdiv(length, SPLITS)
    lo, hi = split * each, tl.minimum(split * each + each, length)
    m = tl.zeros((GP,), tl.float32) - 1e30
    l = tl.zeros((GP,), tl.float32)
    acc = tl.zeros((GP, BD), tl.float32)
    for n0 in range(lo, hi, BN):
        n = n0 + tl.arange(0, BN)
        at = ((b * T + n) * KV + h) * D
        k = tl.load(K + at[None, :] + d[:, None], mask=(n < hi)[None, :] & dm[:, None], other=0.0)
        v = tl.load(V + at[:, None] + d[None, :], mask=(n < hi)[:, None] & dm[None, :], other=0.0)
        s = tl.where((n < hi)[None, :], tl.dot(q, k) * scale, -1e30)
        new = tl.maximum(m, tl.max(s, 1))
        p = tl.exp(s - new[:, None])
        a = tl.exp(m - new)
        acc = acc * a[:, None] + tl.dot(p.to(v.dtype), v)
        l = l * a + tl.sum(p, 1)
        m = new
    row = ((b * KV + h) * G + g) * SPLITS + split
    tl.store(PART + row[:, None] * D + d[None, :], acc / l[:, None], mask=(g < G)[:, None] & dm[None, :])
    tl.store(LSE + row, m + tl.log(l), mask=g < G)


@triton.jit
def decode_combine(PART, LSE, OUT, D, BD: tl.constexpr, SPLITS: tl.constexpr):
    row = tl.program_id(0)
    s, d = tl.arange(0, SPLITS), tl.arange(0, BD)
    lse = tl.load(LSE + row * SPLITS + s)
    top = tl.max(lse, 0)
    w = tl.exp(lse - top)
    x = tl.load(PART + (row * SPLITS + s)[:, None] * D + d[None, :], mask=(d < D)[None, :], other=0.0)
    y = tl.sum(x * w[:, None], 0) / tl.sum(w, 0)
    tl.store(OUT + row * D + d, y.to(OUT.dtype.element_ty), mask=d < D)


@case
def attn_decode_split_d96():
    b, kv, g, d, t, splits = 24, 8, 4, 96, 4096, 8
    part, lse = zeros(b * kv * g, splits, d, dtype="float32"), zeros(b * kv * g, splits, dtype="float32")
    args = rand(b, kv * g, d, dtype="bfloat16"), rand(b, t, kv, d, dtype="bfloat16"), rand(b, t, kv, d, dtype="bfloat16")
    args += ints(1000, t + 1, b), part, lse, t, d**-0.5
    options = dict(KV=kv, G=g, GP=16, D=d, BD=128, BN=64, SPLITS=splits, num_warps=4, num_stages=2)
    return run(decode_split, (b, kv, splits), args, (part, lse), **options)


@case
def attn_combine_16_parts():
    rows, d, splits = 8192, 192, 16
    out = zeros(rows, d)
    return run(decode_combine, (rows,), (f32(rows, splits, d), f32(rows, splits) * 2, out, d), out, BD=256, SPLITS=splits, num_warps=4)


@triton.jit
def prefix_extend(Q, KX, VX, KC, VC, SLOTS, QSTART, PSTART, OUT, scale, HQ: tl.constexpr, HK: tl.constexpr, D: tl.constexpr,
                  BM: tl.constexpr, BN: tl.constexpr):
    # New tokens see a cached prefix through slots, and each other causally.
    seq, h = tl.program_id(0), tl.program_id(1)
    hk = h // (HQ // HK)
    q0, q1 = tl.load(QSTART + seq), tl.load(QSTART + seq + 1)
    p0, p1 = tl.load(PSTART + seq), tl.load(PSTART + seq + 1)
    i, d = tl.program_id(2) * BM + tl.arange(0, BM), tl.arange(0, D)
    if tl.program_id(2) * BM >= q1 - q0:
        return
    live = i < q1 - q0
    q = tl.load(Q + ((q0 + i) * HQ + h)[:, None] * D + d[None, :], mask=live[:, None], other=0.0)
    m, l = tl.full((BM,), float("-inf"), tl.float32), tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for n0 in range(0, p1 - p0, BN):
        n = n0 + tl.arange(0, BN)
        slot = tl.load(SLOTS + p0 + n, mask=n < p1 - p0, other=0)
        k = tl.load(KC + (slot[None, :] * HK + hk) * D + d[:, None], mask=(n < p1 - p0)[None, :], other=0.0)
        s = tl.dot(q, k) * scale
        s = tl.where((n < p1 - p0)[None, :], s, float("-inf"))
        new = tl.maximum(m, tl.max(s, 1))
        p, a = tl.exp2(s - new[:, None]), tl.exp2(m - new)
        v = tl.load(VC + (slot[:, None] * HK + hk) * D + d[None, :], mask=(n < p1 - p0)[:, None], other=0.0)
        acc = tl.dot(p.to(v.dtype), v, acc * a[:, None])
        l = l * a + tl.sum(p, 1)
        m = new
    for n0 in range(0, min((tl.program_id(2) + 1) * BM, q1 - q0), BN):
        n = n0 + tl.arange(0, BN)
        ok = n < q1 - q0
        k = tl.load(KX + ((q0 + n)[None, :] * HK + hk) * D + d[:, None], mask=ok[None, :], other=0.0)
        s = tl.dot(q, k) * scale
        s = tl.where(ok[None, :] & (i[:, None] >= n[None, :]), s, float("-inf"))
        new = tl.maximum(m, tl.max(s, 1))
        p, a = tl.exp2(s - new[:, None]), tl.exp2(m - new)
        v = tl.load(VX + ((q0 + n)[:, None] * HK + hk) * D + d[None, :], mask=ok[:, None], other=0.0)
        acc = tl.dot(p.to(v.dtype), v, acc * a[:, None])
        l = l * a + tl.sum(p, 1)
        m = new
    tl.store(OUT + ((q0 + i) * HQ + h)[:, None] * D + d[None, :], (acc / l[:, None]).to(OUT.dtype.element_ty), mask=live[:, None])


@case
def attn_extend_after_prefix():
    seqs, hq, hk, d, new, old = 8, 16, 4, 128, 300, 1500
    out = zeros(seqs * new, hq, d, dtype="bfloat16")
    args = rand(seqs * new, hq, d, dtype="bfloat16"), rand(seqs * new, hk, d, dtype="bfloat16"), rand(seqs * new, hk, d, dtype="bfloat16")
    args += rand(20000, hk, d, dtype="bfloat16"), rand(20000, hk, d, dtype="bfloat16"), ints(0, 20000, seqs * old, dtype="int64")
    args += arange(seqs + 1) * new, arange(seqs + 1) * old, out, d**-0.5 * 1.44269504
    return run(prefix_extend, (seqs, hq, cdiv(new, 64)), args, out, HQ=hq, HK=hk, D=d, BM=64, BN=64, num_warps=4, num_stages=2)


@triton.jit
def windowed_forward(Q, K, V, SINKS, O, sqb, sqt, sqh, skb, skt, skh, T, scale, window, SLOPES: tl.constexpr, GROUP: tl.constexpr,
                     D: tl.constexpr, BD: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    # Strides as arguments; a learned sink, a window, ALiBi if wanted; heads narrower than their tile.
    start, h, b = tl.program_id(0) * BM, tl.program_id(1), tl.program_id(2)
    i, d = start + tl.arange(0, BM), tl.arange(0, BD)
    qp = Q + b * sqb + h * sqh + i[:, None] * sqt + d[None, :]
    q = tl.load(qp, mask=(i < T)[:, None] & (d < D)[None, :], other=0.0)
    kb = b * skb + (h // GROUP) * skh
    sink = tl.load(SINKS + h)
    m = tl.zeros((BM,), tl.float32) + sink
    l = tl.full((BM,), 1.0, tl.float32)
    acc = tl.zeros((BM, BD), tl.float32)
    slope = tl.exp2(-0.5 * (h + 1).to(tl.float32))
    first = tl.maximum(start - window, 0) // BN * BN
    for n0 in range(first, min(start + BM, T), BN):
        n = n0 + tl.arange(0, BN)
        k = tl.load(K + kb + n[None, :] * skt + d[:, None], mask=(n < T)[None, :] & (d < D)[:, None], other=0.0)
        s = tl.dot(q, k, input_precision="tf32") * scale
        far = i[:, None] - n[None, :]
        if SLOPES:
            s -= slope * far
        s = tl.where((far >= 0) & (far <= window) & (n < T)[None, :], s, -1e30)
        new = tl.maximum(m, tl.max(s, 1))
        p = tl.exp(s - new[:, None])
        a = tl.exp(m - new)
        v = tl.load(V + kb + n[:, None] * skt + d[None, :], mask=(n < T)[:, None] & (d < D)[None, :], other=0.0)
        acc = acc * a[:, None] + tl.dot(p.to(v.dtype), v, input_precision="tf32")
        l = l * a + tl.sum(p, 1)
        m = new
    op = O + b * sqb + h * sqh + i[:, None] * sqt + d[None, :]
    tl.store(op, (acc / l[:, None]).to(O.dtype.element_ty), mask=(i < T)[:, None] & (d < D)[None, :])


def windowed(b, hq, hk, t, d, bd, bm, bn, window, slopes, dtype, warps, stages):
    q, out = rand(b, t, hq, d, dtype=dtype), zeros(b, t, hq, d, dtype=dtype)
    args = q, rand(b, t, hk, d, dtype=dtype), rand(b, t, hk, d, dtype=dtype), f32(hq), out
    args += t * hq * d, hq * d, d, t * hk * d, hk * d, d, t, d**-0.5, window
    options = dict(SLOPES=slopes, GROUP=hq // hk, D=d, BD=bd, BM=bm, BN=bn, num_warps=warps, num_stages=stages)
    return run(windowed_forward, (cdiv(t, bm), hq, b), args, out, **options)


@case
def attn_sink_window_d40():
    return windowed(2, 8, 8, 4000, 40, 64, 128, 64, 1024, False, "float16", 4, 3)


@case
def attn_alibi_gqa_d256():
    return windowed(1, 16, 2, 2048, 256, 256, 64, 32, 4096, True, "bfloat16", 8, 2)


@case
def attn_window_f32_d80():
    return windowed(2, 10, 10, 1500, 80, 128, 64, 32, 256, False, "float32", 4, 2)


@triton.jit
def cross_attention(Q, K, V, KLEN, O, TQ, TK, scale, H: tl.constexpr, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    # Block pointers; keys of each sequence have a length; FP8 products with a scale.
    b, h = tl.program_id(1) // H, tl.program_id(1) % H
    klen = tl.load(KLEN + b)
    qb = tl.make_block_ptr(Q + (b * H + h) * TQ * D, (TQ, D), (D, 1), (tl.program_id(0) * BM, 0), (BM, D), (1, 0))
    kb = tl.make_block_ptr(K + (b * H + h) * TK * D, (D, klen), (1, D), (0, 0), (D, BN), (0, 1))
    vb = tl.make_block_ptr(V + (b * H + h) * TK * D, (klen, D), (D, 1), (0, 0), (BN, D), (1, 0))
    q = tl.load(qb, boundary_check=(0,), padding_option="zero")
    m, l = tl.full((BM,), float("-inf"), tl.float32), tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for n0 in range(0, klen, BN):
        k = tl.load(kb, boundary_check=(1,), padding_option="zero")
        s = tl.dot(q, k) * scale
        s = tl.where((n0 + tl.arange(0, BN) < klen)[None, :], s, float("-inf"))
        new = tl.maximum(m, tl.max(s, 1))
        p, a = tl.exp2(s - new[:, None]), tl.exp2(m - new)
        v = tl.load(vb, boundary_check=(0,), padding_option="zero")
        acc = acc * a[:, None] + tl.dot(p.to(tl.float16), v.to(tl.float16))
        l = l * a + tl.sum(p, 1)
        m = new
        kb, vb = tl.advance(kb, (0, BN)), tl.advance(vb, (BN, 0))
    ob = tl.make_block_ptr(O + (b * H + h) * TQ * D, (TQ, D), (D, 1), (tl.program_id(0) * BM, 0), (BM, D), (1, 0))
    tl.store(ob, (acc / l[:, None]).to(tl.float16), boundary_check=(0,))


@case
def attn_cross_lengths_fp8():
    b, h, tq, tk, d = 4, 16, 1000, 1536, 64
    out = zeros(b, h, tq, d)
    args = f8(b, h, tq, d), f8(b, h, tk, d), f8(b, h, tk, d), ints(300, tk + 1, b), out, tq, tk, d**-0.5 * 1.44269504
    return run(cross_attention, (cdiv(tq, 128), b * h), args, out, H=h, D=d, BM=128, BN=64, num_warps=4, num_stages=3)


@triton.jit
def mla_absorbed_paged(QN, QR, CKV, KR, TABLE, LEN, O, scale, PAGES, H: tl.constexpr, R: tl.constexpr, P: tl.constexpr, BH: tl.constexpr,
                       PAGE: tl.constexpr):
    # Latents and rotated keys lie in two caches; a page is a step.
    b = tl.program_id(0)
    h = tl.program_id(1) * BH + tl.arange(0, BH)
    r, p, j = tl.arange(0, R), tl.arange(0, P), tl.arange(0, PAGE)
    qn = tl.load(QN + (b * H + h)[:, None] * R + r[None, :])
    qr = tl.load(QR + (b * H + h)[:, None] * P + p[None, :])
    length = tl.load(LEN + b)
    m, l = tl.full((BH,), float("-inf"), tl.float32), tl.zeros((BH,), tl.float32)
    acc = tl.zeros((BH, R), tl.float32)
    page = 0
    while page * PAGE < length:
        block = tl.load(TABLE + b * PAGES + page).to(tl.int64)
        c = tl.load(CKV + (block * PAGE + j)[:, None] * R + r[None, :])
        kr = tl.load(KR + (block * PAGE + j)[None, :] * P + p[:, None])
        s = (tl.dot(qn, tl.trans(c)) + tl.dot(qr, kr)) * scale
        s = tl.where((page * PAGE + j < length)[None, :], s, float("-inf"))
        new = tl.maximum(m, tl.max(s, 1))
        e, a = tl.exp2(s - new[:, None]), tl.exp2(m - new)
        l = l * a + tl.sum(e, 1)
        acc = acc * a[:, None] + tl.dot(e.to(c.dtype), c)
        m = new
        page += 1
    tl.store(O + (b * H + h)[:, None] * R + r[None, :], (acc / l[:, None]).to(tl.float16))


@case
def attn_mla_paged_two_caches():
    b, h, r, p, page, pages = 64, 32, 256, 32, 32, 48
    out = zeros(b, h, r)
    args = rand(b, h, r), rand(b, h, p), rand(2000, page, r), rand(2000, page, p), ints(0, 2000, b, pages), ints(600, page * pages, b), out
    args += (r + p) ** -0.5 * 1.44269504, pages
    return run(mla_absorbed_paged, (b, h // 16), args, out, H=h, R=r, P=p, BH=16, PAGE=page, num_warps=4, num_stages=2)


@triton.jit
def mrope_in_place(QK, OUT, POS, INV, T, H, S0: tl.constexpr, S1: tl.constexpr, HALF: tl.constexpr, BH: tl.constexpr):
    # Three positions of a token (time, row, column), each for its section of the frequencies.
    t = tl.program_id(0)
    h, f = tl.program_id(1) * BH + tl.arange(0, BH), tl.arange(0, HALF)
    p0, p1, p2 = tl.load(POS + t), tl.load(POS + T + t), tl.load(POS + 2 * T + t)
    pos = tl.where(f < S0, p0, tl.where(f < S0 + S1, p1, p2)).to(tl.float32)
    angle = pos * tl.load(INV + f)
    c, s = tl.cos(angle)[None, :], tl.sin(angle)[None, :]
    at = (t * H + h)[:, None] * (2 * HALF) + f[None, :]
    a = tl.load(QK + at, mask=(h < H)[:, None], other=0.0).to(tl.float32)
    b = tl.load(QK + at + HALF, mask=(h < H)[:, None], other=0.0).to(tl.float32)
    tl.store(OUT + at, (a * c - b * s).to(tl.bfloat16), mask=(h < H)[:, None])
    tl.store(OUT + at + HALF, (b * c + a * s).to(tl.bfloat16), mask=(h < H)[:, None])


@case
def mrope_three_sections():
    t, h, half = 8000, 20, 64
    out = zeros(t, h, 2 * half, dtype="bfloat16")
    inv = 1.0 / (10000.0 ** (arange(half).float() / half))
    args = rand(t, h, 2 * half, dtype="bfloat16"), out, ints(0, 3000, 3, t, dtype="int64"), inv, t, h
    return run(mrope_in_place, (t, cdiv(h, 8)), args, out, S0=16, S1=24, HALF=half, BH=8, num_warps=2)


@triton.jit
def partial_rope_interleaved(X, COS, SIN, OUT, T, H, D: tl.constexpr, ROT: tl.constexpr, BT: tl.constexpr):
    # Pairs side by side in the first ROT channels; the rest is copied.
    t = tl.program_id(0) * BT + tl.arange(0, BT)
    h, d = tl.program_id(1), tl.arange(0, D)
    live = (t < T)[:, None]
    x = tl.load(X + (t * H + h)[:, None] * D + d[None, :], mask=live, other=0.0).to(tl.float32)
    even, odd = tl.split(tl.reshape(x, (BT, D // 2, 2)))
    p = tl.arange(0, D // 2)
    c = tl.load(COS + t[:, None] * (ROT // 2) + p[None, :], mask=live & (p < ROT // 2)[None, :], other=1.0)
    s = tl.load(SIN + t[:, None] * (ROT // 2) + p[None, :], mask=live & (p < ROT // 2)[None, :], other=0.0)
    y = tl.interleave(even * c - odd * s, odd * c + even * s)
    tl.store(OUT + (t * H + h)[:, None] * D + d[None, :], y.to(OUT.dtype.element_ty), mask=live)


@case
def rope_partial_of_interleaved_pairs():
    t, h, d, rot = 10000, 32, 128, 64
    out = zeros(t, h, d)
    args = rand(t, h, d), f32(t, rot // 2), f32(t, rot // 2), out, t, h
    return run(partial_rope_interleaved, (cdiv(t, 16), h), args, out, D=d, ROT=rot, BT=16, num_warps=4)


@triton.jit
def qkv_norm_rope_cache(QKV, QW, KW, COS, SIN, SLOTS, Q, KC, VC, ks, vs, HQ: tl.constexpr, HK: tl.constexpr, D: tl.constexpr):
    # One head for each program: queries out, keys and values into a cache of FP8.
    t, h = tl.program_id(0), tl.program_id(1)
    f = tl.arange(0, D // 2)
    base = QKV + (t * (HQ + 2 * HK) + h) * D
    a, b = tl.load(base + f).to(tl.float32), tl.load(base + D // 2 + f).to(tl.float32)
    slot = tl.load(SLOTS + t)
    if h >= HQ + HK:
        at = VC + (slot * HK + h - HQ - HK) * D + f
        tl.store(at, (a / vs).to(tl.float8e4nv), mask=slot >= 0)
        tl.store(at + D // 2, (b / vs).to(tl.float8e4nv), mask=slot >= 0)
    else:
        r = tl.rsqrt((tl.sum(a * a) + tl.sum(b * b)) / D + 1e-6)
        w = QW if h < HQ else KW
        a = a * r * tl.load(w + f).to(tl.float32)
        b = b * r * tl.load(w + D // 2 + f).to(tl.float32)
        c, s = tl.load(COS + t * (D // 2) + f), tl.load(SIN + t * (D // 2) + f)
        x, y = a * c - b * s, b * c + a * s
        if h < HQ:
            tl.store(Q + (t * HQ + h) * D + f, x.to(tl.bfloat16))
            tl.store(Q + (t * HQ + h) * D + D // 2 + f, y.to(tl.bfloat16))
        else:
            at = KC + (slot * HK + h - HQ) * D + f
            tl.store(at, (x / ks).to(tl.float8e4nv), mask=slot >= 0)
            tl.store(at + D // 2, (y / ks).to(tl.float8e4nv), mask=slot >= 0)


@case
def qkv_norm_rope_fp8_cache():
    t, hq, hk, d, slots = 3000, 32, 8, 128, 16384
    q = zeros(t, hq, d, dtype="bfloat16")
    kc, vc = (torch.zeros(slots, hk, d, device="cuda", dtype=torch.float8_e4m3fn) for _ in range(2))
    where = torch.where(arange(t) % 50 == 7, -1, arange(t) * 5).long()
    args = rand(t, hq + 2 * hk, d, dtype="bfloat16"), rand(d, dtype="bfloat16"), rand(d, dtype="bfloat16"), f32(t, d // 2), f32(t, d // 2)
    args += where, q, kc, vc, 0.0625, 0.0625
    launched = run(qkv_norm_rope_cache, (t, hq + 2 * hk), args, (q, kc, vc), HQ=hq, HK=hk, D=d, num_warps=1)
    return viewed(launched, lambda outs: (outs[0], far8(outs[1]), far8(outs[2])))


@triton.jit
def sum_of_buffers(P0, P1, P2, P3, P4, P5, P6, P7, RES, W, OUT, NEW, N, BLOCK: tl.constexpr):
    # What an all-reduce reads from eight devices, with a residual and a norm.
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    at = row * N + i
    m = i < N
    s = tl.load(P0 + at, m, 0.0).to(tl.float32) + tl.load(P1 + at, m, 0.0).to(tl.float32)
    s += tl.load(P2 + at, m, 0.0).to(tl.float32) + tl.load(P3 + at, m, 0.0).to(tl.float32)
    s += tl.load(P4 + at, m, 0.0).to(tl.float32) + tl.load(P5 + at, m, 0.0).to(tl.float32)
    s += tl.load(P6 + at, m, 0.0).to(tl.float32) + tl.load(P7 + at, m, 0.0).to(tl.float32)
    s += tl.load(RES + at, m, 0.0).to(tl.float32)
    tl.store(NEW + at, s.to(tl.bfloat16), mask=m)
    y = s * tl.rsqrt(tl.sum(s * s) / N + 1e-5) * tl.load(W + i, m, 0.0).to(tl.float32)
    tl.store(OUT + at, y.to(tl.bfloat16), mask=m)


@case
def all_reduce_like_sum_norm():
    m, n = 2048, 7168
    out, new = zeros(m, n, dtype="bfloat16"), zeros(m, n, dtype="bfloat16")
    args = *(rand(m, n, dtype="bfloat16") for _ in range(9)), rand(n, dtype="bfloat16"), out, new, n
    return run(sum_of_buffers, (m,), args, (out, new), BLOCK=8192, num_warps=16)


@triton.jit
def speculative_verify(DRAFT, PD, PT, U, ACCEPTED, NEXT, V, K: tl.constexpr, BLOCK: tl.constexpr):
    # Draft tokens are taken until one is refused; then the residual's largest entry goes out.
    b = tl.program_id(0)
    taken = 0
    going = True
    for k in range(K):
        if going:
            token = tl.load(DRAFT + b * K + k)
            pd, pt = tl.load(PD + (b * K + k) * V + token), tl.load(PT + (b * (K + 1) + k) * V + token)
            if tl.load(U + b * K + k) * pd <= pt:
                taken += 1
            else:
                going = False
    best, arg = 0.0, 0
    for start in range(0, V, BLOCK):
        v = start + tl.arange(0, BLOCK)
        p = tl.load(PT + (b * (K + 1) + taken) * V + v, mask=v < V, other=0.0)
        q = tl.load(PD + (b * K + taken) * V + v, mask=(v < V) & (taken < K), other=0.0)
        top, at = tl.max(p - q, 0, return_indices=True)
        arg = tl.where(top > best, start + at, arg)
        best = tl.maximum(best, top)
    tl.store(ACCEPTED + b, taken)
    tl.store(NEXT + b, arg.to(tl.int64))


@case
def speculative_verify_chain():
    b, k, v = 128, 5, 32000
    accepted, after = zeros(b, dtype="int32"), zeros(b, dtype="int64")
    pd, pt = torch.softmax(f32(b, k, v), -1), torch.softmax(f32(b, k + 1, v), -1)
    args = ints(0, v, b, k, dtype="int64"), pd, pt, uniform(b, k), accepted, after, v
    return run(speculative_verify, (b,), args, (accepted, after), K=k, BLOCK=4096, num_warps=8)


@triton.jit
def logits_processors(LOGITS, COUNTS, BIAS_IDS, BIAS, MASKS, TEMP, CAP, OUT, V, NB: tl.constexpr, BLOCK: tl.constexpr):
    # Softcap, presence and frequency penalties, a grammar's bit mask, temperature; biases of few tokens by comparison.
    b = tl.program_id(0)
    v = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    m = v < V
    x = tl.load(LOGITS + b * V + v, mask=m, other=0.0).to(tl.float32)
    cap = tl.load(CAP + b)
    if cap > 0.0:
        e = tl.exp(2.0 * x / cap)
        x = cap * (e - 1.0) / (e + 1.0)
    count = tl.load(COUNTS + b * V + v, mask=m, other=0)
    x -= tl.where(count > 0, 0.3, 0.0) + 0.1 * count.to(tl.float32)
    for j in tl.static_range(NB):
        token = tl.load(BIAS_IDS + b * NB + j)
        x += tl.where(v == token, tl.load(BIAS + b * NB + j), 0.0)
    allowed = (tl.load(MASKS + b * tl.cdiv(V, 32) + v // 32, mask=m, other=0) >> (v % 32)) & 1
    x = tl.where(allowed != 0, x / tl.maximum(tl.load(TEMP + b), 1e-2), -1e5)
    tl.store(OUT + b * V + v, x, mask=m)


@case
def logits_processors_fused():
    b, v = 64, 128256
    out = zeros(b, v, dtype="float32")
    counts = (ints(0, 20, b, v) == 0).to(torch.int16) * 2
    args = rand(b, v, dtype="bfloat16"), counts, ints(0, v, b, 4), f32(b, 4), ints(-(2**31), 2**31, b, cdiv(v, 32)), uniform(b) + 0.5
    args += torch.where(arange(b) % 2 == 0, 30.0, 0.0).float(), out, v
    return run(logits_processors, (b, cdiv(v, 1024)), args, out, NB=4, BLOCK=1024, num_warps=4)


@triton.jit
def bgmv_shrink(X, A, IDS, Y, D, stride, R: tl.constexpr, BD: tl.constexpr, SPLIT: tl.constexpr):
    # A token's adapter is found by its number; the sum is split.
    t, s = tl.program_id(0), tl.program_id(1)
    which = tl.load(IDS + t)
    if which == -1:
        return
    r = tl.arange(0, R)
    acc = tl.zeros((R,), tl.float32)
    for start in range(s * BD, D, BD * SPLIT):
        d = start + tl.arange(0, BD)
        x = tl.load(X + t * D + d, mask=d < D, other=0.0).to(tl.float32)
        a = tl.load(A + which * stride + r[:, None] * D + d[None, :], mask=(d < D)[None, :], other=0.0).to(tl.float32)
        acc += tl.sum(a * x[None, :], 1)
    tl.store(Y + (s * tl.num_programs(0) + t) * R + r, acc)


@case
def lora_shrink_by_tokens():
    t, d, r, n, split = 2000, 4096, 16, 20, 4
    y = zeros(split, t, r, dtype="float32")
    args = rand(t, d), rand(n, r, d), ints(-1, n, t, dtype="int64"), y, d, r * d
    return run(bgmv_shrink, (t, split), args, y, R=r, BD=256, SPLIT=split, num_warps=4)


@triton.jit
def sgmv_expand(H, B, SEG, IDS, RANKS, Y, OUT, N, R: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    # Segments of tokens share an adapter, whose rank may be smaller than R.
    s = tl.program_id(2)
    first, last = tl.load(SEG + s), tl.load(SEG + s + 1)
    m, n, r = first + tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN), tl.arange(0, R)
    if first + tl.program_id(0) * BM >= last:
        return
    which = tl.load(IDS + s)
    rank = tl.load(RANKS + which)
    h = tl.load(H + m[:, None] * R + r[None, :], mask=(m < last)[:, None] & (r < rank)[None, :], other=0.0)
    b = tl.load(B + which * N * R + n[None, :] * R + r[:, None], mask=(n < N)[None, :] & (r < rank)[:, None], other=0.0)
    mask = (m < last)[:, None] & (n < N)[None, :]
    y = tl.load(Y + m[:, None] * N + n[None, :], mask=mask, other=0.0)
    acc = tl.dot(h.to(b.dtype), b) + y.to(tl.float32)
    tl.store(OUT + m[:, None] * N + n[None, :], acc.to(OUT.dtype.element_ty), mask=mask)


@case
def lora_expand_by_segments():
    segs, each, n, r, adapters = 30, 100, 4096, 32, 12
    t = segs * each
    out = zeros(t, n, dtype="bfloat16")
    ranks = torch.where(arange(adapters) % 3 == 0, 8, r).int()
    args = f32(t, r), rand(adapters, n, r, dtype="bfloat16"), arange(segs + 1) * each, ints(0, adapters, segs), ranks
    args += rand(t, n, dtype="bfloat16"), out, n
    return run(sgmv_expand, (cdiv(each, 32), n // 128, segs), args, out, R=r, BM=32, BN=128, num_warps=4)


@triton.jit
def mamba_state_update(STATE, SLOTS, X, DT, DTB, A, Bm, Cm, Dp, NEW, OUT, H, P: tl.constexpr, N: tl.constexpr,
                       GROUP: tl.constexpr, BP: tl.constexpr):
    b, h = tl.program_id(0), tl.program_id(1)
    p, n = tl.program_id(2) * BP + tl.arange(0, BP), tl.arange(0, N)
    slot = tl.load(SLOTS + b).to(tl.int64)
    at = ((slot * H + h) * P + p)[:, None] * N + n[None, :]
    dt = tl.load(DT + b * H + h).to(tl.float32) + tl.load(DTB + h)
    dt = tl.where(dt <= 20.0, tl.log(1.0 + tl.exp(dt)), dt)
    decay = tl.exp(-tl.exp(tl.load(A + h)) * dt)
    g = b * (H // GROUP) + h // GROUP
    x = tl.load(X + (b * H + h) * P + p).to(tl.float32)
    bm, cm = tl.load(Bm + g * N + n).to(tl.float32), tl.load(Cm + g * N + n).to(tl.float32)
    state = tl.load(STATE + at).to(tl.float32) * decay + (x * dt)[:, None] * bm[None, :]
    tl.store(NEW + at, state.to(NEW.dtype.element_ty))
    y = tl.sum(state * cm[None, :], 1) + x * tl.load(Dp + h)
    tl.store(OUT + (b * H + h) * P + p, y.to(tl.bfloat16))


@case
def mamba2_state_update_slots():
    b, h, p, n, group = 64, 64, 64, 128, 8
    new, out = zeros(b, h, p, n, dtype="bfloat16"), zeros(b, h, p, dtype="bfloat16")
    bf = lambda *shape: rand(*shape, dtype="bfloat16")
    slots = torch.flip(arange(b), (0,)).contiguous()
    args = bf(b, h, p, n), slots, bf(b, h, p), bf(b, h), f32(h), f32(h) * 0.3, bf(b, h // group, n), bf(b, h // group, n)
    args += f32(h), new, out, h
    return run(mamba_state_update, (b, h, p // 32), args, (new, out), P=p, N=n, GROUP=group, BP=32, num_warps=4)


@triton.jit
def conv_state_update(STATE, SLOTS, X, Wt, BIAS, NEW, OUT, C, W: tl.constexpr, BC: tl.constexpr):
    # A token enters each channel's window of the last W - 1; kept taps move by one.
    b = tl.program_id(0)
    c = tl.program_id(1) * BC + tl.arange(0, BC)
    mask = c < C
    slot = tl.load(SLOTS + b)
    x = tl.load(X + b * C + c, mask=mask, other=0.0)
    acc = tl.load(BIAS + c, mask=mask, other=0.0) + x.to(tl.float32) * tl.load(Wt + c * W + W - 1, mask=mask, other=0.0)
    for w in tl.static_range(W - 1):
        s = tl.load(STATE + (slot * C + c) * (W - 1) + w, mask=mask, other=0.0)
        acc += s.to(tl.float32) * tl.load(Wt + c * W + w, mask=mask, other=0.0)
        if w > 0:
            tl.store(NEW + (slot * C + c) * (W - 1) + w - 1, s, mask=mask)
    tl.store(NEW + (slot * C + c) * (W - 1) + W - 2, x, mask=mask)
    tl.store(OUT + b * C + c, (acc * tl.sigmoid(acc)).to(tl.bfloat16), mask=mask)


@case
def conv_state_update_four_taps():
    b, c, w = 256, 8000, 4
    new, out = zeros(b, c, w - 1, dtype="bfloat16"), zeros(b, c, dtype="bfloat16")
    slots = torch.flip(arange(b), (0,)).contiguous().long()
    args = rand(b, c, w - 1, dtype="bfloat16"), slots, rand(b, c, dtype="bfloat16"), f32(c, w), f32(c), new, out, c
    return run(conv_state_update, (b, cdiv(c, 256)), args, (new, out), W=w, BC=256, num_warps=4)


@triton.jit
def beam_cache_reorder(CACHE, PARENTS, LENGTHS, OUT, T, ROW, K: tl.constexpr, BT: tl.constexpr, BR: tl.constexpr):
    # Beams take over their parents' caches, as far as they are filled.
    beam = tl.program_id(0)
    t, r = tl.program_id(1) * BT + tl.arange(0, BT), tl.program_id(2) * BR + tl.arange(0, BR)
    length = tl.load(LENGTHS + beam // K)
    if tl.program_id(1) * BT < length:
        parent = beam // K * K + tl.load(PARENTS + beam)
        mask = (t < length)[:, None] & (r < ROW)[None, :]
        x = tl.load(CACHE + (parent * T + t)[:, None] * ROW + r[None, :], mask=mask)
        tl.store(OUT + (beam * T + t)[:, None] * ROW + r[None, :], x, mask=mask)


@case
def beam_cache_reorder_lengths():
    b, k, t, row = 8, 4, 1024, 1000
    out = zeros(b * k, t, row)
    args = rand(b * k, t, row), ints(0, k, b * k, dtype="int64"), ints(200, t, b), out, t, row
    return run(beam_cache_reorder, (b * k, t // 16, cdiv(row, 256)), args, out, K=k, BT=16, BR=256, num_warps=4)


@triton.jit
def unpad_tokens(X, STARTS, OUT, TOTAL, SEQS, T, D, BT: tl.constexpr, BD: tl.constexpr, LOG: tl.constexpr):
    # Packed tokens look for their sequence by bisection.
    i, d = tl.program_id(0) * BT + tl.arange(0, BT), tl.program_id(1) * BD + tl.arange(0, BD)
    lo, hi = tl.zeros((BT,), tl.int32), tl.zeros((BT,), tl.int32) + SEQS
    for _ in tl.static_range(LOG):
        mid = (lo + hi) // 2
        right = tl.load(STARTS + mid) <= i
        lo, hi = tl.where(right, mid, lo), tl.where(right, hi, mid)
    pos = i - tl.load(STARTS + lo)
    mask = (i < TOTAL)[:, None] & (d < D)[None, :]
    x = tl.load(X + (lo * T + pos)[:, None].to(tl.int64) * D + d[None, :], mask=mask, other=0.0)
    tl.store(OUT + i[:, None] * D + d[None, :], x, mask=mask)


@case
def unpad_tokens_by_bisection():
    seqs, t, d = 50, 700, 1024
    lengths = arange(seqs) * 13 % 600 + 80
    starts = torch.cat((full(0, 1, dtype="int32"), lengths.cumsum(0).int())).int()
    total = sum(i * 13 % 600 + 80 for i in range(seqs))
    out = zeros(total, d)
    args = rand(seqs, t, d), starts, out, total, seqs, t, d
    return run(unpad_tokens, (cdiv(total, 32), d // 256), args, out, BT=32, BD=256, LOG=6, num_warps=4)


@triton.jit
def moe_gather_weighted(Y, INV, WEIGHTS, SHARED, OUT, D, K: tl.constexpr, BD: tl.constexpr):
    # Experts' rows come back to their token, weighted; a shared expert is added.
    t = tl.program_id(0)
    d = tl.program_id(1) * BD + tl.arange(0, BD)
    acc = tl.load(SHARED + t * D + d, mask=d < D, other=0.0).to(tl.float32)
    for k in range(K):
        row = tl.load(INV + t * K + k)
        if row >= 0:
            w = tl.load(WEIGHTS + t * K + k)
            acc += w * tl.load(Y + row * D + d, mask=d < D, other=0.0).to(tl.float32)
    tl.store(OUT + t * D + d, acc.to(tl.bfloat16), mask=d < D)


@case
def moe_gather_with_shared_expert():
    t, k, d = 8192, 6, 2000
    out = zeros(t, d, dtype="bfloat16")
    where = torch.randperm(t * k, device="cuda").reshape(t, k)
    where = torch.where(ints(0, 10, t, k) == 0, -1, where)
    args = rand(t * k, d, dtype="bfloat16"), where, uniform(t, k), rand(t, d, dtype="bfloat16"), out, d
    return run(moe_gather_weighted, (t, cdiv(d, 1024)), args, out, K=k, BD=1024, num_warps=4)
