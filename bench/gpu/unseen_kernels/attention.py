"""Attention and recurrences over time, of the forms that models have."""

import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

from .common import arange, case, cdiv, f8, f32, ints, rand, run, uniform, zeros

LOG2E = tl.constexpr(1.4426950408889634)


@triton.jit
def paged_one_page(Q, Kc, Vc, tables, lengths, O, scale, max_pages, KV: tl.constexpr, G: tl.constexpr, D: tl.constexpr, PAGE: tl.constexpr):
    # A page at a time, no dots: the queries of a group against 16 keys in registers.
    seq, head = tl.program_id(0), tl.program_id(1)
    g, d, j = tl.arange(0, G), tl.arange(0, D), tl.arange(0, PAGE)
    q = tl.load(Q + ((seq * KV + head) * G + g)[:, None] * D + d[None, :]).to(tl.float32) * scale
    length = tl.load(lengths + seq)
    m = tl.full((G,), float("-inf"), tl.float32)
    l = tl.zeros((G,), tl.float32)
    acc = tl.zeros((G, D), tl.float32)
    for page in range(0, tl.cdiv(length, PAGE)):
        block = tl.load(tables + seq * max_pages + page).to(tl.int64)
        at = ((block * PAGE + j) * KV + head)[:, None] * D + d[None, :]
        live = page * PAGE + j < length
        k = tl.load(Kc + at, mask=live[:, None], other=0.0).to(tl.float32)
        v = tl.load(Vc + at, mask=live[:, None], other=0.0).to(tl.float32)
        s = tl.sum(q[:, None, :] * k[None, :, :], 2)
        s = tl.where(live[None, :], s, float("-inf"))
        top = tl.maximum(m, tl.max(s, 1))
        p = tl.exp(s - top[:, None])
        shrink = tl.exp(m - top)
        acc = acc * shrink[:, None] + tl.sum(p[:, :, None] * v[None, :, :], 1)
        l = l * shrink + tl.sum(p, 1)
        m = top
    tl.store(O + ((seq * KV + head) * G + g)[:, None] * D + d[None, :], (acc / l[:, None]).to(tl.float16))


@case
def attn_paged_no_dots():
    seqs, kv, g, d, page, pages = 64, 8, 4, 128, 16, 64
    out = zeros(seqs, kv * g, d)
    lengths = arange(seqs) * 13 % (page * pages - 100) + 100
    args = rand(seqs, kv * g, d), rand(4096, page, kv, d), rand(4096, page, kv, d), ints(0, 4096, seqs, pages), lengths.int(), out, d**-0.5, pages
    return run(paged_one_page, (seqs, kv), args, out, KV=kv, G=g, D=d, PAGE=page, num_warps=4)


@triton.jit
def paged_gather_fp8(Q, Kc, Vc, ks, vs, tables, lengths, part, lse, scale, pages, KV: tl.constexpr, G: tl.constexpr, GP: tl.constexpr, D: tl.constexpr, PAGE: tl.constexpr, BN: tl.constexpr, SPLITS: tl.constexpr):
    # Tokens gathered one by one from pages of FP8 with a scale for each token and head; the sequence is split.
    seq, head, split = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    g, d = tl.arange(0, GP), tl.arange(0, D)
    length = tl.load(lengths + seq)
    each = tl.cdiv(tl.cdiv(length, SPLITS), BN) * BN
    lo, hi = split * each, min(split * each + each, length)
    if lo >= hi:
        return
    q = tl.load(Q + ((seq * KV + head) * G + g)[:, None] * D + d[None, :], mask=(g < G)[:, None], other=0.0)
    m = tl.full((GP,), float("-inf"), tl.float32)
    l = tl.zeros((GP,), tl.float32)
    acc = tl.zeros((GP, D), tl.float32)
    for start in range(lo, hi, BN):
        n = start + tl.arange(0, BN)
        live = n < hi
        block = tl.load(tables + seq * pages + n // PAGE, mask=live, other=0)
        slot = (block * PAGE + n % PAGE).to(tl.int64) * KV + head
        k = tl.load(Kc + slot[None, :] * D + d[:, None], mask=live[None, :], other=0.0)
        s = tl.dot(q, k.to(q.dtype)) * (scale * tl.load(ks + slot, mask=live, other=0.0))[None, :]
        s = tl.where(live[None, :], s, float("-inf"))
        top = tl.maximum(m, tl.max(s, 1))
        p = tl.exp2(s - top[:, None])
        shrink = tl.exp2(m - top)
        l = l * shrink + tl.sum(p, 1)
        v = tl.load(Vc + slot[:, None] * D + d[None, :], mask=live[:, None], other=0.0)
        p = p * tl.load(vs + slot, mask=live, other=0.0)[None, :]
        acc = tl.dot(p.to(q.dtype), v.to(q.dtype), acc * shrink[:, None])
        m = top
    at = ((seq * KV + head) * G + g) * SPLITS + split
    tl.store(part + at[:, None] * D + d[None, :], acc / l[:, None], mask=(g < G)[:, None])
    tl.store(lse + at, m + tl.log2(l), mask=g < G)


@case
def attn_paged_fp8_tokens():
    seqs, kv, g, d, page, pages, splits = 32, 8, 5, 128, 16, 256, 4
    part, lse = zeros(seqs, kv * g, splits, d, dtype="float32"), zeros(seqs, kv * g, splits, dtype="float32")
    lengths = arange(seqs) * 97 % 3000 + 1000
    args = rand(seqs, kv * g, d, dtype="bfloat16"), f8(8192, page, kv, d), f8(8192, page, kv, d), uniform(8192, page, kv), uniform(8192, page, kv)
    args += ints(0, 8192, seqs, pages), lengths.int(), part, lse, d**-0.5 * 1.44269504, pages
    return run(paged_gather_fp8, (seqs, kv, splits), args, (part, lse), KV=kv, G=g, GP=16, D=d, PAGE=page, BN=64, SPLITS=splits, num_warps=4, num_stages=2)


@triton.jit
def softcap_window(Q, K, V, sinks, O, scale, cap, T, H, WINDOW: tl.constexpr, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    # [batch, time, head, D]; tanh soft cap, sliding window, and a sink for each head.
    pid, bh = tl.program_id(0), tl.program_id(1)
    base = (bh // H) * T * H * D + (bh % H) * D
    rm, d = pid * BM + tl.arange(0, BM), tl.arange(0, D)
    q = tl.load(Q + base + rm[:, None] * H * D + d[None, :], mask=(rm < T)[:, None], other=0.0)
    m = tl.zeros((BM,), tl.float32) + tl.load(sinks + bh % H).to(tl.float32)
    l = tl.full((BM,), 1.0, tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    lo = tl.maximum(0, (pid * BM - WINDOW + 1) // BN * BN)
    for start in range(lo, tl.minimum((pid + 1) * BM, T), BN):
        rn = start + tl.arange(0, BN)
        k = tl.load(K + base + rn[None, :] * H * D + d[:, None], mask=(rn < T)[None, :], other=0.0)
        v = tl.load(V + base + rn[:, None] * H * D + d[None, :], mask=(rn < T)[:, None], other=0.0)
        s = tl.dot(q, k) * scale
        s = cap * (2.0 * tl.sigmoid(2.0 * s / cap) - 1.0)
        s = tl.where((rn[None, :] <= rm[:, None]) & (rm[:, None] - rn[None, :] < WINDOW), s, float("-inf"))
        top = tl.maximum(m, tl.max(s, 1))
        p = tl.exp(s - top[:, None])
        shrink = tl.exp(m - top)
        l = l * shrink + tl.sum(p, 1)
        acc = acc * shrink[:, None]
        acc = tl.dot(p.to(v.dtype), v, acc)
        m = top
    tl.store(O + base + rm[:, None] * H * D + d[None, :], (acc / l[:, None]).to(O.dtype.element_ty), mask=(rm < T)[:, None])


@case
def attn_softcap_window_sink():
    b, t, h, d = 2, 4000, 16, 128
    out = zeros(b, t, h, d, dtype="bfloat16")
    x = lambda: rand(b, t, h, d, dtype="bfloat16")
    return run(softcap_window, (cdiv(t, 128), b * h), (x(), x(), x(), rand(h, dtype="bfloat16"), out, d**-0.5, 30.0, t, h), out, WINDOW=512, D=d, BM=128, BN=64, num_warps=8, num_stages=3)


@triton.jit
def _inner(acc, l, m, q, k_desc, v_desc, base, lo, hi, rm, scale, MASK: tl.constexpr, BN: tl.constexpr):
    rn = tl.arange(0, BN)
    for start in tl.range(lo, hi, BN):
        start = tl.multiple_of(start, BN)
        s = tl.dot(q, k_desc.load([base + start, 0]).T)
        if MASK:
            s = s * scale + tl.where(rm[:, None] >= (start + rn)[None, :], 0.0, -1.0e6)
            top = tl.maximum(m, tl.max(s, 1))
            s -= top[:, None]
        else:
            top = tl.maximum(m, tl.max(s, 1) * scale)
            s = s * scale - top[:, None]
        p = tl.math.exp2(s)
        shrink = tl.math.exp2(m - top)
        l = l * shrink + tl.sum(p, 1)
        acc = acc * shrink[:, None]
        acc = tl.dot(p.to(tl.float16), v_desc.load([base + start, 0]), acc)
        m = top
    return acc, l, m


@triton.jit
def two_loops(q_desc, k_desc, v_desc, o_desc, M, scale, T, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    pid = tl.num_programs(0) - 1 - tl.program_id(0)
    base = tl.program_id(1) * T
    rm = pid * BM + tl.arange(0, BM)
    m = tl.full((BM,), float("-inf"), tl.float32)
    l = tl.full((BM,), 1.0, tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    q = q_desc.load([base + pid * BM, 0])
    acc, l, m = _inner(acc, l, m, q, k_desc, v_desc, base, 0, pid * BM, rm, scale, False, BN)
    acc, l, m = _inner(acc, l, m, q, k_desc, v_desc, base, pid * BM, pid * BM + BM, rm, scale, True, BN)
    tl.store(M + base + rm, m + tl.math.log2(l))
    o_desc.store([base + pid * BM, 0], (acc / l[:, None]).to(tl.float16))


@case
def attn_two_loops_descriptors_d64():
    bh, t, d = 48, 2048, 64
    out, lse = zeros(bh * t, d), zeros(bh * t, dtype="float32")
    of = lambda x, rows: TensorDescriptor.from_tensor(x, [rows, d])
    args = of(rand(bh * t, d), 128), of(rand(bh * t, d), 64), of(rand(bh * t, d), 64), of(out, 128), lse, d**-0.5 * 1.44269504, t
    return run(two_loops, (t // 128, bh), args, (out, lse), D=d, BM=128, BN=64, num_warps=4, num_stages=4)


@case
def attn_two_loops_descriptors_d128():
    bh, t, d = 32, 2048, 128
    out, lse = zeros(bh * t, d), zeros(bh * t, dtype="float32")
    of = lambda x, rows: TensorDescriptor.from_tensor(x, [rows, d])
    args = of(rand(bh * t, d), 128), of(rand(bh * t, d), 128), of(rand(bh * t, d), 128), of(out, 128), lse, d**-0.5 * 1.44269504, t
    return run(two_loops, (t // 128, bh), args, (out, lse), D=d, BM=128, BN=128, num_warps=8, num_stages=2)


@triton.jit
def latent_decode(Q, cache, indices, starts, O, scale, H: tl.constexpr, R: tl.constexpr, P: tl.constexpr, BH: tl.constexpr, BN: tl.constexpr):
    # MLA: keys are 512 + 64 wide, values are the first 512 of them.
    seq = tl.program_id(0)
    h = tl.program_id(1) * BH + tl.arange(0, BH)
    r, p = tl.arange(0, R), tl.arange(0, P)
    q = tl.load(Q + (seq * H + h)[:, None] * (R + P) + r[None, :])
    qp = tl.load(Q + (seq * H + h)[:, None] * (R + P) + R + p[None, :])
    first, last = tl.load(starts + seq), tl.load(starts + seq + 1)
    m = tl.full((BH,), float("-inf"), tl.float32)
    l = tl.zeros((BH,), tl.float32)
    acc = tl.zeros((BH, R), tl.float32)
    for start in range(first, last, BN):
        n = start + tl.arange(0, BN)
        slot = tl.load(indices + n, mask=n < last, other=0).to(tl.int64)
        kv = tl.load(cache + slot[:, None] * (R + P) + r[None, :], mask=(n < last)[:, None], other=0.0)
        kp = tl.load(cache + slot[:, None] * (R + P) + R + p[None, :], mask=(n < last)[:, None], other=0.0)
        s = tl.dot(q, kv.T)
        s = tl.dot(qp, kp.T, s) * scale
        s = tl.where((n < last)[None, :], s, float("-inf"))
        top = tl.maximum(m, tl.max(s, 1))
        e = tl.exp2(s - top[:, None])
        shrink = tl.exp2(m - top)
        l = l * shrink + tl.sum(e, 1)
        acc = tl.dot(e.to(kv.dtype), kv, acc * shrink[:, None])
        m = top
    tl.store(O + (seq * H + h)[:, None] * R + r[None, :], (acc / l[:, None]).to(tl.bfloat16))


@case
def attn_latent_decode():
    seqs, heads, length = 64, 32, 700
    out = zeros(seqs, heads, 512, dtype="bfloat16")
    starts = arange(seqs + 1) * length
    args = rand(seqs, heads, 576, dtype="bfloat16"), rand(60000, 576, dtype="bfloat16"), ints(0, 60000, seqs * length, dtype="int64"), starts.int(), out, 576**-0.5 * 1.44269504
    return run(latent_decode, (seqs, heads // 16), args, out, H=heads, R=512, P=64, BH=16, BN=32, num_warps=4, num_stages=2)


@triton.jit
def tree_mask(Q, K, V, mask, O, scale, past, T, H, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    # Drafted tokens attend to all of the past, and to each other as a mask of bytes says.
    bh = tl.program_id(0)
    rm, d = tl.arange(0, BM), tl.arange(0, D)
    total = past + T
    q = tl.load(Q + (bh * T + rm)[:, None] * D + d[None, :], mask=(rm < T)[:, None], other=0.0)
    m = tl.full((BM,), -1.0e30, tl.float32)
    l = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for start in range(0, total, BN):
        n = start + tl.arange(0, BN)
        k = tl.load(K + (bh * total + n)[None, :] * D + d[:, None], mask=(n < total)[None, :], other=0.0)
        s = tl.dot(q, k) * scale
        seen = tl.load(mask + (bh // H) * T * T + rm[:, None] * T + (n - past)[None, :], mask=(rm < T)[:, None] & (n >= past)[None, :] & (n < total)[None, :], other=0)
        s = tl.where((n < past)[None, :] | (seen != 0), s, -1.0e30)
        top = tl.maximum(m, tl.max(s, 1))
        p = tl.where(s > -1.0e29, tl.exp(s - top[:, None]), 0.0)
        shrink = tl.exp(m - top)
        l = l * shrink + tl.sum(p, 1)
        v = tl.load(V + (bh * total + n)[:, None] * D + d[None, :], mask=(n < total)[:, None], other=0.0)
        acc = acc * shrink[:, None] + tl.dot(p.to(v.dtype), v)
        m = top
    tl.store(O + (bh * T + rm)[:, None] * D + d[None, :], (acc / l[:, None]).to(tl.float16), mask=(rm < T)[:, None])


@case
def attn_tree_mask():
    b, h, t, past, d = 16, 16, 60, 1500, 128
    out = zeros(b * h, t, d)
    args = rand(b * h, t, d), rand(b * h, past + t, d), rand(b * h, past + t, d), ints(0, 2, b, t, t, dtype="int8"), out, d**-0.5, past, t, h
    return run(tree_mask, (b * h,), args, out, D=d, BM=64, BN=64, num_warps=4, num_stages=2)


@triton.jit
def relative_bias(Q, K, V, table, O, T, H, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BUCKETS: tl.constexpr):
    # T5: no scale, and a bias for each logarithmic bucket of distances, computed here.
    pid, bh = tl.program_id(0), tl.program_id(1)
    rm, d = pid * BM + tl.arange(0, BM), tl.arange(0, D)
    q = tl.load(Q + (bh * T + rm)[:, None] * D + d[None, :])
    m = tl.full((BM,), float("-inf"), tl.float32)
    l = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for start in range(0, T, BN):
        rn = start + tl.arange(0, BN)
        k = tl.load(K + (bh * T + rn)[None, :] * D + d[:, None])
        away = rn[None, :] - rm[:, None]
        far = tl.abs(away)
        half: tl.constexpr = BUCKETS // 2
        exact: tl.constexpr = half // 2
        large = exact + (tl.log(far.to(tl.float32) / exact + 1e-6) / 2.772588722 * (half - exact)).to(tl.int32)
        bucket = tl.where(far < exact, far, tl.minimum(large, half - 1)) + tl.where(away > 0, half, 0)
        s = tl.dot(q, k) + tl.load(table + bucket * H + bh % H)
        top = tl.maximum(m, tl.max(s, 1))
        p = tl.exp(s - top[:, None])
        shrink = tl.exp(m - top)
        l = l * shrink + tl.sum(p, 1)
        acc = tl.dot(p.to(tl.bfloat16), tl.load(V + (bh * T + rn)[:, None] * D + d[None, :]), acc * shrink[:, None])
        m = top
    tl.store(O + (bh * T + rm)[:, None] * D + d[None, :], (acc / l[:, None]).to(tl.bfloat16))


@case
def attn_relative_buckets():
    b, h, t, d = 8, 12, 1024, 64
    out = zeros(b * h, t, d, dtype="bfloat16")
    x = lambda: rand(b * h, t, d, dtype="bfloat16")
    return run(relative_bias, (t // 64, b * h), (x() / 8, x(), x(), f32(32, h), out, t, h), out, D=d, BM=64, BN=64, BUCKETS=32, num_warps=4, num_stages=3)


@triton.jit
def backward_atomic(Q, K, V, dO, lse, delta, dQ, dK, dV, scale, T, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    # One program for each block of keys; dQ is added up atomically.
    pid, bh = tl.program_id(0), tl.program_id(1)
    base = bh * T
    rn, d = pid * BN + tl.arange(0, BN), tl.arange(0, D)
    kv = (base + rn)[:, None] * D + d[None, :]
    k, v = tl.load(K + kv), tl.load(V + kv)
    dk = tl.zeros((BN, D), tl.float32)
    dv = tl.zeros((BN, D), tl.float32)
    for start in range(pid * BN // BM * BM, T, BM):
        rm = start + tl.arange(0, BM)
        at = (base + rm)[:, None] * D + d[None, :]
        q, do = tl.load(Q + at), tl.load(dO + at)
        s = tl.dot(q, k.T) * scale
        p = tl.where(rm[:, None] >= rn[None, :], tl.exp(s - tl.load(lse + base + rm)[:, None]), 0.0)
        dv += tl.dot(p.to(do.dtype).T, do)
        dp = tl.dot(do, v.T)
        ds = (p * (dp - tl.load(delta + base + rm)[:, None]) * scale).to(q.dtype)
        dk += tl.dot(ds.T, q)
        tl.atomic_add(dQ + at, tl.dot(ds, k), sem="relaxed")
    tl.store(dK + kv, dk.to(dK.dtype.element_ty))
    tl.store(dV + kv, dv.to(dV.dtype.element_ty))


@case
def attn_backward_atomic_dq():
    bh, t, d = 32, 1024, 64
    x = lambda: rand(bh, t, d)
    dq, dk, dv = zeros(bh, t, d, dtype="float32"), zeros(bh, t, d), zeros(bh, t, d)
    args = x(), x(), x(), x(), uniform(bh, t) + 8, f32(bh, t), dq, dk, dv, d**-0.5, t
    return run(backward_atomic, (t // 64, bh), args, (dq, dk, dv), D=d, BM=64, BN=64, num_warps=4, num_stages=2)


@triton.jit
def backward_both(Q, K, V, dO, lse, delta, dQ, dK, dV, scale, T, D: tl.constexpr, B1: tl.constexpr, B2: tl.constexpr):
    # dK and dV of a block of keys, then dQ of the block of queries with the same number.
    pid, base = tl.program_id(0), tl.program_id(1) * T
    d = tl.arange(0, D)
    rn = pid * B2 + tl.arange(0, B2)
    own = (base + rn)[:, None] * D + d[None, :]
    k, v = tl.load(K + own), tl.load(V + own)
    dk = tl.zeros((B2, D), tl.float32)
    dv = tl.zeros((B2, D), tl.float32)
    for start in range(0, T, B1):
        rm = start + tl.arange(0, B1)
        qt = tl.load(Q + (base + rm)[None, :] * D + d[:, None])
        do = tl.load(dO + (base + rm)[:, None] * D + d[None, :])
        pt = tl.math.exp2(tl.dot(k, qt) - tl.load(lse + base + rm)[None, :])
        dv = tl.dot(pt.to(tl.bfloat16), do, dv)
        dpt = tl.dot(v, tl.trans(do))
        dst = (pt * (dpt - tl.load(delta + base + rm)[None, :])).to(tl.bfloat16)
        dk = tl.dot(dst, tl.trans(qt), dk)
    tl.store(dK + own, (dk * scale).to(tl.bfloat16))
    tl.store(dV + own, dv.to(tl.bfloat16))
    q, do = tl.load(Q + own), tl.load(dO + own)
    l, di = tl.load(lse + base + rn), tl.load(delta + base + rn)
    dq = tl.zeros((B2, D), tl.float32)
    for start in range(0, T, B1):
        rk = start + tl.arange(0, B1)
        kt = tl.load(K + (base + rk)[None, :] * D + d[:, None])
        vt = tl.load(V + (base + rk)[None, :] * D + d[:, None])
        p = tl.math.exp2(tl.dot(q, kt) - l[:, None])
        ds = (p * (tl.dot(do, vt) - di[:, None])).to(tl.bfloat16)
        dq = tl.dot(ds, tl.trans(kt), dq)
    tl.store(dQ + own, (dq * 0.6931471824645996).to(tl.bfloat16))


@case
def attn_backward_in_one_kernel():
    bh, t, d = 32, 1024, 128
    x = lambda: rand(bh, t, d, dtype="bfloat16")
    outs = x(), x(), x()
    args = x(), x() / 8, x(), x(), uniform(bh, t) + 8, f32(bh, t), *outs, d**-0.5, t
    return run(backward_both, (t // 128, bh), args, outs, D=d, B1=32, B2=128, num_warps=4, num_stages=3)


@triton.jit
def dropout_varlen(Q, K, V, starts, O, scale, keep, seed, H, G, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    pid, h, b = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    first = tl.load(starts + b)
    length = tl.load(starts + b + 1) - first
    if pid * BM >= length:
        return
    rm, d = pid * BM + tl.arange(0, BM), tl.arange(0, D)
    hk = H // G
    q = tl.load(Q + ((first + rm) * H + h)[:, None] * D + d[None, :], mask=(rm < length)[:, None], other=0.0)
    m = tl.full((BM,), float("-inf"), tl.float32)
    l = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for start in range(0, min(pid * BM + BM, length), BN):
        n = start + tl.arange(0, BN)
        at = ((first + n) * hk + h // G) * D
        k = tl.load(K + at[None, :] + d[:, None], mask=(n < length)[None, :], other=0.0)
        s = tl.dot(q, k) * scale
        s = tl.where((rm[:, None] >= n[None, :]) & (n < length)[None, :], s, float("-inf"))
        top = tl.maximum(m, tl.max(s, 1))
        p = tl.exp2(s - top[:, None])
        shrink = tl.exp2(m - top)
        l = l * shrink + tl.sum(p, 1)
        drawn = tl.rand(seed, ((b * H + h) * 4096 + rm)[:, None] * 4096 + n[None, :])
        p = tl.where(drawn < keep, p / keep, 0.0)
        v = tl.load(V + at[:, None] + d[None, :], mask=(n < length)[:, None], other=0.0)
        acc = tl.dot(p.to(v.dtype), v, acc * shrink[:, None])
        m = top
    tl.store(O + ((first + rm) * H + h)[:, None] * D + d[None, :], (acc / l[:, None]).to(O.dtype.element_ty), mask=(rm < length)[:, None])


@case
def attn_dropout_varlen():
    h, g, d = 16, 4, 64
    lengths = [1000, 37, 511, 2000, 640]
    import torch

    starts = torch.tensor([sum(lengths[:i]) for i in range(len(lengths) + 1)], device="cuda", dtype=torch.int32)
    n = sum(lengths)
    out = zeros(n, h, d)
    args = rand(n, h, d), rand(n, h // g, d), rand(n, h // g, d), starts, out, d**-0.5 * 1.44269504, 0.9, 1234, h, g
    return run(dropout_varlen, (cdiv(2000, 128), h, len(lengths)), args, out, D=d, BM=128, BN=32, num_warps=4, num_stages=3)


@triton.jit
def packed_groups(Q, K, V, O, scale, T, KV, G: tl.constexpr, D: tl.constexpr, BT: tl.constexpr, BN: tl.constexpr):
    # The heads of a group are rows of one tile: [time, group, D] reshaped to [time * group, D].
    pid, hk = tl.program_id(0), tl.program_id(1)
    rt, g, d = pid * BT + tl.arange(0, BT), tl.arange(0, G), tl.arange(0, D)
    at = ((rt[:, None, None] * KV + hk) * G + g[None, :, None]) * D + d[None, None, :]
    q = tl.reshape(tl.load(Q + at), (BT * G, D))
    time = tl.reshape(tl.broadcast_to(rt[:, None], (BT, G)), (BT * G,))
    m = tl.full((BT * G,), float("-inf"), tl.float32)
    l = tl.zeros((BT * G,), tl.float32)
    acc = tl.zeros((BT * G, D), tl.float32)
    for start in range(0, (pid + 1) * BT, BN):
        n = start + tl.arange(0, BN)
        kv = (n * KV + hk)[:, None] * D + d[None, :]
        s = tl.dot(q, tl.trans(tl.load(K + kv))) * scale
        s = tl.where(time[:, None] >= n[None, :], s, float("-inf"))
        top = tl.maximum(m, tl.max(s, 1))
        p = tl.exp2(s - top[:, None])
        shrink = tl.exp2(m - top)
        l = l * shrink + tl.sum(p, 1)
        acc = tl.dot(p.to(tl.bfloat16), tl.load(V + kv), acc * shrink[:, None])
        m = top
    tl.store(O + at, tl.reshape((acc / l[:, None]).to(tl.bfloat16), (BT, G, D)))


@case
def attn_packed_groups():
    t, kv, g, d = 4096, 4, 8, 128
    out = zeros(t, kv * g, d, dtype="bfloat16")
    args = rand(t, kv * g, d, dtype="bfloat16"), rand(t, kv, d, dtype="bfloat16"), rand(t, kv, d, dtype="bfloat16"), out, d**-0.5 * 1.44269504, t, kv
    return run(packed_groups, (t // 16, kv), args, out, G=g, D=d, BT=16, BN=64, num_warps=8, num_stages=3)


@triton.jit
def selected_blocks(Q, K, V, chosen, counts, O, scale, T, H, TOP: tl.constexpr, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    # Blocks of keys listed for each block of queries.
    pid, bh = tl.program_id(0), tl.program_id(1)
    rm, d, j = pid * BM + tl.arange(0, BM), tl.arange(0, D), tl.arange(0, BN)
    q = (tl.load(Q + (bh * T + rm)[:, None] * D + d[None, :]) * scale).to(tl.float16)
    row = bh * tl.num_programs(0) + pid
    m = tl.full((BM,), float("-inf"), tl.float32)
    l = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for i in range(tl.load(counts + row)):
        block = tl.load(chosen + row * TOP + i)
        n = block * BN + j
        k = tl.load(K + (bh * T + n)[None, :] * D + d[:, None])
        v = tl.load(V + (bh * T + n)[:, None] * D + d[None, :])
        s = tl.dot(q, k)
        if block == pid:
            s = tl.where(rm[:, None] >= n[None, :], s, float("-inf"))
        top = tl.maximum(m, tl.max(s, 1))
        p = tl.exp2(s - top[:, None])
        shrink = tl.exp2(m - top)
        l = l * shrink + tl.sum(p, 1)
        acc = tl.dot(p.to(tl.float16), v, acc * shrink[:, None])
        m = top
    tl.store(O + (bh * T + rm)[:, None] * D + d[None, :], (acc / l[:, None]).to(tl.float16))


@case
def attn_selected_blocks():
    import torch

    bh, t, d, top = 24, 4096, 64, 16
    blocks = t // 64
    counts = torch.clamp(arange(blocks) + 1, max=top).repeat(bh).int()
    row = arange(blocks)
    chosen = torch.clamp(row[:, None] - arange(top)[None, :] * 2, min=0).repeat(bh, 1).int()
    out = zeros(bh, t, d)
    args = rand(bh, t, d), rand(bh, t, d), rand(bh, t, d), chosen, counts, out, d**-0.5 * 1.44269504, t, 12
    return run(selected_blocks, (blocks, bh), args, out, TOP=top, D=d, BM=64, BN=64, num_warps=4, num_stages=2)


@triton.jit
def differential(Q, K, V, lam, O, scale, T, D: tl.constexpr, DV: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    # The difference of two softmaxes over one set of values.
    pid, bh = tl.program_id(0), tl.program_id(1)
    rm, d, e = pid * BM + tl.arange(0, BM), tl.arange(0, D), tl.arange(0, DV)
    q1 = tl.load(Q + ((bh * T + rm) * 2)[:, None] * D + d[None, :])
    q2 = tl.load(Q + ((bh * T + rm) * 2 + 1)[:, None] * D + d[None, :])
    m1 = tl.full((BM,), float("-inf"), tl.float32)
    m2 = tl.full((BM,), float("-inf"), tl.float32)
    l1 = tl.zeros((BM,), tl.float32)
    l2 = tl.zeros((BM,), tl.float32)
    a1 = tl.zeros((BM, DV), tl.float32)
    a2 = tl.zeros((BM, DV), tl.float32)
    for start in range(0, T, BN):
        n = start + tl.arange(0, BN)
        k1 = tl.load(K + ((bh * T + n) * 2)[None, :] * D + d[:, None])
        k2 = tl.load(K + ((bh * T + n) * 2 + 1)[None, :] * D + d[:, None])
        v = tl.load(V + (bh * T + n)[:, None] * DV + e[None, :])
        s1, s2 = tl.dot(q1, k1) * scale, tl.dot(q2, k2) * scale
        t1, t2 = tl.maximum(m1, tl.max(s1, 1)), tl.maximum(m2, tl.max(s2, 1))
        p1, p2 = tl.exp2(s1 - t1[:, None]), tl.exp2(s2 - t2[:, None])
        r1, r2 = tl.exp2(m1 - t1), tl.exp2(m2 - t2)
        l1, l2 = l1 * r1 + tl.sum(p1, 1), l2 * r2 + tl.sum(p2, 1)
        a1 = tl.dot(p1.to(v.dtype), v, a1 * r1[:, None])
        a2 = tl.dot(p2.to(v.dtype), v, a2 * r2[:, None])
        m1, m2 = t1, t2
    o = a1 / l1[:, None] - tl.load(lam) * (a2 / l2[:, None])
    o *= tl.rsqrt(tl.sum(o * o, 1) / DV + 1e-5)[:, None]
    tl.store(O + (bh * T + rm)[:, None] * DV + e[None, :], o.to(O.dtype.element_ty))


@case
def attn_differential():
    bh, t, d, dv = 16, 2048, 64, 128
    out = zeros(bh, t, dv, dtype="bfloat16")
    args = rand(bh, t, 2, d, dtype="bfloat16"), rand(bh, t, 2, d, dtype="bfloat16"), rand(bh, t, dv, dtype="bfloat16"), uniform(1), out, d**-0.5 * 1.44269504, t
    return run(differential, (t // 64, bh), args, out, D=d, DV=dv, BM=64, BN=64, num_warps=4, num_stages=2)


@triton.jit
def indexer_scores(Q, K, W, out, T, H: tl.constexpr, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    # For each query and key: the sum over heads of w * relu(q . k), in FP8.
    pm, pn = tl.program_id(0), tl.program_id(1)
    rm, rn, d = pm * BM + tl.arange(0, BM), pn * BN + tl.arange(0, BN), tl.arange(0, D)
    if pn * BN > pm * BM + BM - 1:
        tl.store(out + rm[:, None] * T + rn[None, :], tl.full((BM, BN), float("-inf"), tl.float32))
        return
    k = tl.load(K + rn[:, None] * D + d[None, :])
    acc = tl.zeros((BM, BN), tl.float32)
    for h in range(H):
        q = tl.load(Q + (rm * H + h)[:, None] * D + d[None, :])
        s = tl.dot(q, k.T)
        acc += tl.maximum(s, 0.0) * tl.load(W + rm * H + h)[:, None]
    acc = tl.where(rm[:, None] >= rn[None, :], acc, float("-inf"))
    tl.store(out + rm[:, None] * T + rn[None, :], acc)


@case
def attn_indexer_scores_fp8():
    t, h, d = 2048, 32, 128
    out = zeros(t, t, dtype="float32")
    return run(indexer_scores, (t // 64, t // 128), (f8(t, h, d), f8(t, d), f32(t, h), out, t), out, H=h, D=d, BM=64, BN=128, num_warps=4, num_stages=3)


@triton.jit
def padding_and_bias(Q, K, V, B, keep, O, scale, T, S, H, sbb, sbh, sbm, D: tl.constexpr, DP: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    # Heads of 80, a bias that broadcasts over the batch, a mask of keys in bytes.
    pid, h, b = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    rm, d = pid * BM + tl.arange(0, BM), tl.arange(0, DP)
    q = tl.load(Q + ((b * H + h) * T + rm)[:, None] * D + d[None, :], mask=(rm < T)[:, None] & (d < D)[None, :], other=0.0)
    m = tl.full((BM,), -1.0e30, tl.float32)
    l = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, DP), tl.float32)
    for start in range(0, S, BN):
        n = start + tl.arange(0, BN)
        live = tl.load(keep + b * S + n, mask=n < S, other=0) != 0
        at = ((b * H + h) * S + n)[:, None] * D + d[None, :]
        k = tl.load(K + at, mask=(n < S)[:, None] & (d < D)[None, :], other=0.0)
        s = tl.dot(q, k.T) * scale
        s += tl.load(B + b * sbb + h * sbh + rm[:, None] * sbm + n[None, :], mask=(rm < T)[:, None] & (n < S)[None, :], other=0.0).to(tl.float32)
        s = tl.where(live[None, :], s, -1.0e30)
        top = tl.maximum(m, tl.max(s, 1))
        p = tl.exp(s - top[:, None])
        shrink = tl.exp(m - top)
        l = l * shrink + tl.sum(p, 1)
        v = tl.load(V + at, mask=(n < S)[:, None] & (d < D)[None, :], other=0.0)
        acc = tl.dot(p.to(v.dtype), v, acc * shrink[:, None])
        m = top
    tl.store(O + ((b * H + h) * T + rm)[:, None] * D + d[None, :], (acc / l[:, None]).to(tl.float16), mask=(rm < T)[:, None] & (d < D)[None, :])


@case
def attn_padded_keys_bias_d80():
    b, h, t, s, d = 4, 16, 1000, 1000, 80
    out = zeros(b, h, t, d)
    args = rand(b, h, t, d), rand(b, h, s, d), rand(b, h, s, d), rand(1, h, t, s), ints(0, 2, b, s, dtype="uint8"), out, d**-0.5, t, s, h, 0, t * s, s
    return run(padding_and_bias, (cdiv(t, 64), h, b), args, out, D=d, DP=128, BM=64, BN=64, num_warps=4, num_stages=2)


@triton.jit
def decayed_linear(Q, K, V, slopes, O, T, H, D: tl.constexpr, BV: tl.constexpr, C: tl.constexpr):
    # Lightning attention: exact within a chunk, a decayed state of D x BV carried between chunks.
    pv, bh = tl.program_id(0), tl.program_id(1)
    slope = tl.load(slopes + bh % H)
    i, d, v = tl.arange(0, C), tl.arange(0, D), pv * BV + tl.arange(0, BV)
    away = i[:, None] - i[None, :]
    within = tl.where(away >= 0, tl.exp(-slope * away), 0.0)
    state = tl.zeros((D, BV), tl.float32)
    for chunk in range(0, T, C):
        t = chunk + i
        q = tl.load(Q + (bh * T + t)[:, None] * D + d[None, :])
        k = tl.load(K + (bh * T + t)[None, :] * D + d[:, None])
        x = tl.load(V + (bh * T + t)[:, None] * D + v[None, :])
        inner = tl.dot((tl.dot(q, k) * within).to(x.dtype), x)
        inter = tl.dot(q, state.to(q.dtype)) * tl.exp(-slope * (i + 1))[:, None]
        tl.store(O + (bh * T + t)[:, None] * D + v[None, :], (inner + inter).to(O.dtype.element_ty))
        k = (k * tl.exp(-slope * (C - 1 - i))[None, :]).to(x.dtype)
        state = state * tl.exp(-slope * C) + tl.dot(k, x)


@case
def linear_attn_decayed_chunks():
    bh, t, d = 64, 2048, 128
    x = lambda: rand(bh, t, d, dtype="bfloat16")
    out = zeros(bh, t, d, dtype="bfloat16")
    return run(decayed_linear, (4, bh), (x(), x(), x(), uniform(16) / 4, out, t, 16), out, D=d, BV=32, C=64, num_warps=4, num_stages=2)


@triton.jit
def _affine(a1, b1, a2, b2):
    return a1 * a2, b1 * a2 + b2


@triton.jit
def selective_scan(U, DT, A, B, C, Dp, Y, T, I, N: tl.constexpr, BT: tl.constexpr, BI: tl.constexpr):
    # Mamba: h' = exp(dt a) h + dt b u over time, as an associative scan of pairs within blocks of time.
    ri = tl.program_id(0) * BI + tl.arange(0, BI)
    b = tl.program_id(1)
    n, t = tl.arange(0, N), tl.arange(0, BT)
    a = tl.load(A + ri[:, None] * N + n[None, :])
    skip = tl.load(Dp + ri)
    h = tl.zeros((BI, N), tl.float32)
    for start in range(0, T, BT):
        at = (b * T + start + t)[:, None] * I + ri[None, :]
        u, dt = tl.load(U + at).to(tl.float32), tl.load(DT + at)
        bt = tl.load(B + (b * T + start + t)[:, None] * N + n[None, :])
        ct = tl.load(C + (b * T + start + t)[:, None] * N + n[None, :])
        decay = tl.exp(dt[:, :, None] * a[None, :, :])
        fed = (dt * u)[:, :, None] * bt[:, None, :]
        fed += tl.where(t[:, None, None] == 0, decay * h[None, :, :], 0.0)
        _, hs = tl.associative_scan((decay, fed), 0, _affine)
        y = tl.sum(hs * ct[:, None, :], 2) + skip[None, :] * u
        tl.store(Y + at, y.to(Y.dtype.element_ty))
        h = tl.sum(tl.where(t[:, None, None] == BT - 1, hs, 0.0), 0)


@case
def ssm_selective_scan():
    b, t, i, n = 2, 1024, 1536, 16
    y = zeros(b, t, i, dtype="bfloat16")
    args = rand(b, t, i, dtype="bfloat16"), uniform(b, t, i) / 8, -uniform(i, n), f32(b, t, n), f32(b, t, n), f32(i), y, t, i
    return run(selective_scan, (i // 8, b), args, y, N=n, BT=32, BI=8, num_warps=4)


@triton.jit
def rwkv7_step(R, W, K, V, A, B, Y, S, T, H, D: tl.constexpr, ROWS: tl.constexpr):
    # S = S (diag(w) + a b^T) + v k^T, y = S r, one step of time after the other.
    pid, bh = tl.program_id(0), tl.program_id(1)
    i, j = pid * ROWS + tl.arange(0, ROWS), tl.arange(0, D)
    s = tl.load(S + bh * D * D + i[:, None] * D + j[None, :])
    for t in range(T):
        at = ((bh // H) * T + t) * H * D + (bh % H) * D
        r, w, k = tl.load(R + at + j), tl.load(W + at + j), tl.load(K + at + j)
        a, b, v = tl.load(A + at + j), tl.load(B + at + j), tl.load(V + at + i)
        sa = tl.sum(s * a[None, :], 1)
        s = s * tl.exp(-tl.exp(w))[None, :] + sa[:, None] * b[None, :] + v[:, None] * k[None, :]
        tl.store(Y + at + i, tl.sum(s * r[None, :], 1))
    tl.store(S + bh * D * D + i[:, None] * D + j[None, :], s)


@case
def rwkv7_recurrent():
    b, t, h, d = 4, 256, 32, 64
    y, s = zeros(b, t, h, d, dtype="float32"), zeros(b, h, d, d, dtype="float32")
    x = lambda: f32(b, t, h, d) / 8
    launch, args = run(rwkv7_step, (2, b * h), (x(), x(), x(), x(), x(), x(), y, s, t, h), (y, s), D=d, ROWS=32, num_warps=2)
    return (lambda *args: s.zero_() is None or launch(*args)), args


@triton.jit
def lstm_gates(G, cell, Y, new_cell, hidden, BLOCK: tl.constexpr):
    # The four gates of a step, in one row: i, f, g, o.
    row = tl.program_id(0)
    j = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    live = j < hidden
    g = G + row * 4 * hidden + j
    i, f = tl.sigmoid(tl.load(g, mask=live).to(tl.float32)), tl.sigmoid(tl.load(g + hidden, mask=live).to(tl.float32) + 1.0)
    u = 2 * tl.sigmoid(2 * tl.load(g + 2 * hidden, mask=live).to(tl.float32)) - 1
    o = tl.sigmoid(tl.load(g + 3 * hidden, mask=live).to(tl.float32))
    c = f * tl.load(cell + row * hidden + j, mask=live) + i * u
    tl.store(new_cell + row * hidden + j, c, mask=live)
    tl.store(Y + row * hidden + j, (o * (2 * tl.sigmoid(2 * c) - 1)).to(Y.dtype.element_ty), mask=live)


@case
def lstm_pointwise():
    rows, hidden = 4096, 1500
    y, c = zeros(rows, hidden), zeros(rows, hidden, dtype="float32")
    return run(lstm_gates, (rows, cdiv(hidden, 512)), (rand(rows, 4 * hidden), f32(rows, hidden), y, c, hidden), (y, c), BLOCK=512, num_warps=4)


@triton.jit
def delta_chunk(Q, K, V, beta, O, T, D: tl.constexpr, BV: tl.constexpr, C: tl.constexpr):
    # The delta rule by chunks of 16; (I + tril(beta k k^T))^-1 is found by substitution in registers.
    pv, bh = tl.program_id(0), tl.program_id(1)
    i, d, v = tl.arange(0, C), tl.arange(0, D), pv * BV + tl.arange(0, BV)
    state = tl.zeros((D, BV), tl.float32)
    for chunk in range(0, T, C):
        t = bh * T + chunk + i
        q = tl.load(Q + t[:, None] * D + d[None, :])
        k = tl.load(K + t[:, None] * D + d[None, :])
        x = tl.load(V + t[:, None] * D + v[None, :]).to(tl.float32)
        b = tl.load(beta + t)
        a = tl.where(i[:, None] > i[None, :], tl.dot(k, k.T) * b[:, None], 0.0)
        inv = tl.where(i[:, None] == i[None, :], 1.0, 0.0)
        for r in range(1, C):
            row = tl.sum(tl.where(i[:, None] == r, a, 0.0), 0)
            new = -tl.sum(row[:, None] * inv, 0)
            inv += tl.where((i[:, None] == r) & (i[None, :] < r), new[None, :], 0.0)
        u = (x - tl.dot(k, state.to(k.dtype))) * b[:, None]
        u = tl.dot(inv.to(k.dtype), u.to(k.dtype))
        s = tl.where(i[:, None] >= i[None, :], tl.dot(q, k.T), 0.0)
        o = tl.dot(q, state.to(q.dtype)) + tl.dot(s.to(q.dtype), u.to(q.dtype))
        tl.store(O + t[:, None] * D + v[None, :], o.to(O.dtype.element_ty))
        state += tl.dot(k.T, u.to(k.dtype))


@case
def delta_rule_chunks_of_16():
    bh, t, d = 32, 512, 64
    x = lambda: rand(bh, t, d, dtype="bfloat16") / 8
    out = zeros(bh, t, d, dtype="bfloat16")
    return run(delta_chunk, (2, bh), (x(), x(), x(), uniform(bh, t), out, t), out, D=d, BV=32, C=16, num_warps=2, num_stages=2)
