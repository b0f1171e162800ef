"""Terraces: attention of all kinds, forward and backward, prefill and decode, and what replaces it: decays, delta rules, selective scans."""

import math

import torch
import torch.nn.functional as F
import triton
import triton.language as tl
from triton.language.extra import libdevice

from .common import against, arange, case, cdiv, f32, ints, rand, run, uniform, zeros


@triton.jit
def _gqa_step(acc, l_i, m_i, q, k_blk, v_blk, lo, hi, offs_m, scale, MASKED: tl.constexpr, BLOCK_N: tl.constexpr):
    k_blk = tl.advance(k_blk, (0, lo))
    v_blk = tl.advance(v_blk, (lo, 0))
    for start_n in range(lo, hi, BLOCK_N):
        k = tl.load(k_blk, boundary_check=(1,), padding_option="zero")
        s = tl.dot(q, k) * scale
        if MASKED:
            s = tl.where(offs_m[:, None] >= start_n + tl.arange(0, BLOCK_N)[None, :], s, -1.0e6)
        m_new = tl.maximum(m_i, tl.max(s, 1))
        p = tl.math.exp2(s - m_new[:, None])
        alpha = tl.math.exp2(m_i - m_new)
        l_i = l_i * alpha + tl.sum(p, 1)
        acc = acc * alpha[:, None]
        v = tl.load(v_blk, boundary_check=(0,), padding_option="zero")
        acc = tl.dot(p.to(v.dtype), v, acc)
        m_i = m_new
        k_blk = tl.advance(k_blk, (0, BLOCK_N))
        v_blk = tl.advance(v_blk, (BLOCK_N, 0))
    return acc, l_i, m_i


@triton.jit
def gqa_two_stages_fwd_kernel(Q, K, V, Out, Lse, sm_scale, T, H: tl.constexpr, HK: tl.constexpr, D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    # Causal attention of grouped heads: what is wholly seen first, then the diagonal; the latest queries begin first.
    start_m = tl.num_programs(0) - 1 - tl.program_id(0)
    off_z = tl.program_id(1) // H
    off_h = tl.program_id(1) % H
    q_off = (off_z * H + off_h).to(tl.int64) * T * D
    kv_off = (off_z * HK + off_h // (H // HK)).to(tl.int64) * T * D
    q_blk = tl.make_block_ptr(Q + q_off, (T, D), (D, 1), (start_m * BLOCK_M, 0), (BLOCK_M, D), (1, 0))
    k_blk = tl.make_block_ptr(K + kv_off, (D, T), (1, D), (0, 0), (D, BLOCK_N), (0, 1))
    v_blk = tl.make_block_ptr(V + kv_off, (T, D), (D, 1), (0, 0), (BLOCK_N, D), (1, 0))
    offs_m = start_m * BLOCK_M + tl.arange(0, BLOCK_M)
    m_i = tl.full([BLOCK_M], -1.0e6, dtype=tl.float32)
    l_i = tl.zeros([BLOCK_M], dtype=tl.float32)
    acc = tl.zeros([BLOCK_M, D], dtype=tl.float32)
    q = tl.load(q_blk, boundary_check=(0,), padding_option="zero")
    scale = sm_scale * 1.44269504
    acc, l_i, m_i = _gqa_step(acc, l_i, m_i, q, k_blk, v_blk, 0, start_m * BLOCK_M, offs_m, scale, False, BLOCK_N)
    acc, l_i, m_i = _gqa_step(acc, l_i, m_i, q, k_blk, v_blk, start_m * BLOCK_M, min((start_m + 1) * BLOCK_M, T), offs_m, scale, True, BLOCK_N)
    acc = acc / l_i[:, None]
    tl.store(Lse + tl.program_id(1) * T + offs_m, m_i + tl.math.log2(l_i), mask=offs_m < T)
    o_blk = tl.make_block_ptr(Out + q_off, (T, D), (D, 1), (start_m * BLOCK_M, 0), (BLOCK_M, D), (1, 0))
    tl.store(o_blk, acc.to(Out.type.element_ty), boundary_check=(0,))


@case
def terrace_of_seen_then_diagonal(b=2, h=16, hk=4, t=2000, d=128):
    q, k, v = (rand(b, x, t, d, dtype="bfloat16") for x in (h, hk, hk))
    out, lse = zeros(b, h, t, d, dtype="bfloat16"), zeros(b, h, t, dtype="float32")
    flags = dict(H=h, HK=hk, D=d, BLOCK_M=128, BLOCK_N=64)
    launched = run(gqa_two_stages_fwd_kernel, (cdiv(t, 128), b * h), (q, k, v, out, lse, d**-0.5, t), (out, lse), num_warps=8, num_stages=3, **flags)

    def reference():
        g = h // hk
        s = q.float() @ k.float().repeat_interleave(g, 1).transpose(2, 3) * d**-0.5
        s = s.masked_fill(torch.ones(t, t, device=q.device).triu(1).bool(), float("-inf"))
        return s.softmax(3) @ v.float().repeat_interleave(g, 1), s.logsumexp(3) / math.log(2)

    return against(launched, reference)


@triton.jit
def soft_capped(s, cap):
    return cap * libdevice.tanh(s / cap)


@triton.jit
def window_sink_capped_kernel(
    q_ptr, k_ptr, v_ptr, sink_ptr, o_ptr, T, scale, cap, stride_t, stride_kt, WINDOW: tl.constexpr, GROUP: tl.constexpr, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
):
    # Tokens first, heads second: a window to the left, capped scores, and a learned logit of each head that takes part in the sum only.
    h = tl.program_id(0)
    m0 = tl.program_id(1) * BM
    rm = m0 + tl.arange(0, BM)
    rd = tl.arange(0, D)
    q = tl.load(q_ptr + rm[:, None] * stride_t + h * D + rd[None, :], mask=rm[:, None] < T, other=0.0)
    m = tl.zeros((BM,), tl.float32) + tl.load(sink_ptr + h)
    l = tl.full((BM,), 1.0, tl.float32)
    acc = tl.zeros((BM, D), dtype=tl.float32)
    begin = tl.maximum(m0 - WINDOW + 1, 0) // BN * BN
    end = tl.minimum(m0 + BM, T)
    kv = (h // GROUP) * D
    for n0 in tl.range(begin, end, BN, num_stages=2):
        rn = n0 + tl.arange(0, BN)
        k = tl.load(k_ptr + rn[None, :] * stride_kt + kv + rd[:, None], mask=rn[None, :] < T, other=0.0)
        v = tl.load(v_ptr + rn[:, None] * stride_kt + kv + rd[None, :], mask=rn[:, None] < T, other=0.0)
        s = soft_capped(tl.dot(q, k) * scale, cap)
        seen = (rn[None, :] <= rm[:, None]) & (rm[:, None] - rn[None, :] < WINDOW)
        s = tl.where(seen, s, float("-inf"))
        m_new = tl.maximum(m, tl.max(s, 1))
        p = tl.exp(s - m_new[:, None])
        r = tl.exp(m - m_new)
        l = l * r + tl.sum(p, 1)
        acc = acc * r[:, None] + tl.dot(p.to(v.dtype), v)
        m = m_new
    tl.store(o_ptr + rm[:, None] * stride_t + h * D + rd[None, :], (acc / l[:, None]).to(o_ptr.dtype.element_ty), mask=rm[:, None] < T)


@case
def terrace_of_a_window_a_sink_a_cap(t=7000, h=32, hk=4, d=64, window=300):
    q, k, v, sink = rand(t, h, d), rand(t, hk, d), rand(t, hk, d), f32(h)
    o = zeros(t, h, d)
    args = q, k, v, sink, o, t, d**-0.5 * 3, 20.0, h * d, hk * d
    flags = dict(WINDOW=window, GROUP=h // hk, D=d, BM=64, BN=64)
    launched = run(window_sink_capped_kernel, (h, cdiv(t, 64)), args, o, num_warps=4, **flags)

    def reference():
        i = arange(t)
        gone = (i[None, :] > i[:, None]) | (i[:, None] - i[None, :] >= window)
        out = []
        for x in range(h):
            s = 20 * torch.tanh(q[:, x].float() @ k[:, x * hk // h].float().t() * (3 * d**-0.5) / 20)
            s = torch.cat((s.masked_fill(gone, float("-inf")), sink[x].expand(t, 1)), 1)
            out.append(s.softmax(1)[:, :-1] @ v[:, x * hk // h].float())
        return torch.stack(out, 1)

    return against(launched, reference)


@triton.jit
def alibi_packed_sequences_kernel(Q, K, V, slopes, cu, O, softmax_scale, H, D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, CAUSAL: tl.constexpr):
    # Sequences one after another; a slope of each head by distance; programs beyond a sequence's end leave.
    seq = tl.program_id(2)
    head = tl.program_id(1)
    begin = tl.load(cu + seq)
    length = tl.load(cu + seq + 1) - begin
    m0 = tl.program_id(0) * BLOCK_M
    if m0 >= length:
        return
    slope = tl.load(slopes + head) * 1.4426950408889634
    rm = m0 + tl.arange(0, BLOCK_M)
    rn = tl.arange(0, BLOCK_N)
    rd = tl.arange(0, D)
    base = begin.to(tl.int64) * H * D + head * D
    q = tl.load(Q + base + rm[:, None] * (H * D) + rd[None, :], mask=(rm < length)[:, None], other=0.0)
    q = (q.to(tl.float32) * (softmax_scale * 1.4426950408889634)).to(q.dtype)
    m = tl.zeros((BLOCK_M,), dtype=tl.float32) - float("inf")
    l = tl.zeros((BLOCK_M,), dtype=tl.float32)
    acc = tl.zeros((BLOCK_M, D), dtype=tl.float32)
    end = tl.minimum(m0 + BLOCK_M, length) if CAUSAL else length
    for n0 in range(0, end, BLOCK_N):
        n0 = tl.multiple_of(n0, BLOCK_N)
        ok = (n0 + rn) < length
        k = tl.load(K + base + (n0 + rn)[:, None] * (H * D) + rd[None, :], mask=ok[:, None], other=0.0)
        s = tl.dot(q, tl.trans(k))
        s -= slope * tl.abs((rm[:, None] - (n0 + rn)[None, :]).to(tl.float32))
        keep = ok[None, :]
        if CAUSAL:
            keep = keep & (rm[:, None] >= (n0 + rn)[None, :])
        s = tl.where(keep, s, float("-inf"))
        m_new = tl.maximum(m, tl.max(s, axis=1))
        p = tl.exp2(s - m_new[:, None])
        alpha = tl.exp2(m - m_new)
        l = l * alpha + tl.sum(p, axis=1)
        v = tl.load(V + base + (n0 + rn)[:, None] * (H * D) + rd[None, :], mask=ok[:, None], other=0.0)
        acc = tl.dot(p.to(v.dtype), v, acc * alpha[:, None])
        m = m_new
    tl.store(O + base + rm[:, None] * (H * D) + rd[None, :], (acc / l[:, None]).to(O.dtype.element_ty), mask=(rm < length)[:, None])


@case
def terrace_of_slopes_and_packed_sequences(lengths=(1200, 33, 700, 2047, 1, 512), h=12, d=64):
    cu = torch.tensor((0, *lengths)).cumsum(0).int().to("cuda")
    t = sum(lengths)
    q, k, v = (rand(t, h, d) for _ in range(3))
    o = zeros(t, h, d)
    slopes = torch.exp2(-8 / h * (arange(h) + 1).float())
    launched = run(alibi_packed_sequences_kernel, (cdiv(max(lengths), 64), h, len(lengths)), (q, k, v, slopes, cu, o, d**-0.5, h), o, D=d, BLOCK_M=64, BLOCK_N=32, CAUSAL=True, num_warps=4, num_stages=2)

    def reference():
        out = []
        for a, b, c in zip(*(x.float().split(list(lengths)) for x in (q, k, v))):
            i = torch.arange(a.shape[0], device=a.device)
            far_ = (i[:, None] - i[None, :]).float()
            s = torch.einsum("qhd,khd->hqk", a, b) * d**-0.5 - slopes[:, None, None] * far_.abs()
            out.append(torch.einsum("hqk,khd->qhd", s.masked_fill(far_ < 0, float("-inf")).softmax(2), c))
        return torch.cat(out)

    return against(launched, reference)


@triton.jit
def gqa_dkdv_kernel(
    Q, K, V, DO, LSE, DELTA, DK, DV, scale, T, H: tl.constexpr, HK: tl.constexpr, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
):
    # Gradients of keys and values: a program goes over all queries of all heads that share them.
    z = tl.program_id(1) // HK
    hk = tl.program_id(1) % HK
    rn = tl.program_id(0) * BN + tl.arange(0, BN)
    rd = tl.arange(0, D)
    kv = (z * HK + hk).to(tl.int64) * T * D
    n_ok = rn[:, None] < T
    k = tl.load(K + kv + rn[:, None] * D + rd[None, :], mask=n_ok, other=0.0)
    v = tl.load(V + kv + rn[:, None] * D + rd[None, :], mask=n_ok, other=0.0)
    dk = tl.zeros((BN, D), dtype=tl.float32)
    dv = tl.zeros((BN, D), dtype=tl.float32)
    for g in range(H // HK):
        row = (z * H + hk * (H // HK) + g).to(tl.int64) * T
        for m0 in range(tl.program_id(0) * BN // BM * BM, T, BM):
            rm = m0 + tl.arange(0, BM)
            m_ok = rm < T
            q = tl.load(Q + row * D + rm[:, None] * D + rd[None, :], mask=m_ok[:, None], other=0.0)
            do = tl.load(DO + row * D + rm[:, None] * D + rd[None, :], mask=m_ok[:, None], other=0.0)
            lse = tl.load(LSE + row + rm, mask=m_ok, other=0.0)
            delta = tl.load(DELTA + row + rm, mask=m_ok, other=0.0)
            st = tl.dot(k, tl.trans(q)) * scale
            pt = tl.exp(st - lse[None, :])
            pt = tl.where((rm[None, :] >= rn[:, None]) & m_ok[None, :], pt, 0.0)
            dv += tl.dot(pt.to(do.dtype), do)
            dpt = tl.dot(v, tl.trans(do))
            dst = pt * (dpt - delta[None, :]) * scale
            dk += tl.dot(dst.to(q.dtype), q)
    tl.store(DK + kv + rn[:, None] * D + rd[None, :], dk.to(DK.dtype.element_ty), mask=n_ok)
    tl.store(DV + kv + rn[:, None] * D + rd[None, :], dv.to(DV.dtype.element_ty), mask=n_ok)


def causal_of_groups(q, k, v, scale, window=None):
    """Attention by PyTorch in full numbers, and the logarithms of its sums."""
    g, t = q.shape[1] // k.shape[1], q.shape[2]
    s = q @ k.repeat_interleave(g, 1).transpose(2, 3) * scale
    gone = torch.ones(t, t, device=q.device).triu(1).bool()
    if window:
        gone |= torch.ones(t, t, device=q.device).tril(-window).bool()
    s = s.masked_fill(gone, float("-inf"))
    return s.softmax(3) @ v.repeat_interleave(g, 1), s.logsumexp(3)


def backward_facts(q, k, v, do, scale, window=None):
    """What a forward pass leaves for the backward one."""
    if q.device.type == "meta":
        return zeros(*q.shape[:3], dtype="float32"), zeros(*q.shape[:3], dtype="float32")
    o, lse = causal_of_groups(q.float(), k.float(), v.float(), scale, window)
    return lse.contiguous(), (o * do.float()).sum(3)


@case
def terrace_of_keys_of_many_heads(b=2, h=12, hk=3, t=1500, d=64):
    q, k, v, do = rand(b, h, t, d), rand(b, hk, t, d), rand(b, hk, t, d), rand(b, h, t, d)
    scale = d**-0.5
    lse, delta = backward_facts(q, k, v, do, scale)
    dk, dv = torch.zeros_like(k), torch.zeros_like(v)
    flags = dict(H=h, HK=hk, D=d, BM=32, BN=64)
    launched = run(gqa_dkdv_kernel, (cdiv(t, 64), b * hk), (q, k, v, do, lse, delta, dk, dv, scale, t), (dk, dv), num_warps=4, num_stages=2, **flags)

    def reference():
        a, x, y = (p.float().requires_grad_() for p in (q, k, v))
        with torch.enable_grad():
            o, _ = causal_of_groups(a, x, y, scale)
            return torch.autograd.grad(o, (x, y), do.float())

    return against(launched, reference)


@triton.jit
def windowed_dq_kernel(q_ptr, k_ptr, v_ptr, do_ptr, lse_ptr, delta_ptr, dq_ptr, scale, T, GROUP, WINDOW, D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    # Gradients of queries that saw a window: powers of two inside, keys loaded turned and turned back.
    bh = tl.program_id(1)
    bhk = bh // GROUP
    start = tl.program_id(0) * BLOCK_M
    rows = start + tl.arange(0, BLOCK_M)
    d = tl.arange(0, D)
    at = bh.to(tl.int64) * T * D + rows[:, None] * D + d[None, :]
    ok = rows[:, None] < T
    q = tl.load(q_ptr + at, mask=ok, other=0.0)
    do = tl.load(do_ptr + at, mask=ok, other=0.0)
    lse = tl.load(lse_ptr + bh * T + rows, mask=rows < T, other=0.0) * 1.4426950408889634
    delta = tl.load(delta_ptr + bh * T + rows, mask=rows < T, other=0.0)
    dq = tl.zeros((BLOCK_M, D), dtype=tl.float32)
    n = tl.maximum(0, start - WINDOW + 1) // BLOCK_N * BLOCK_N
    stop = tl.minimum(start + BLOCK_M, T)
    while n < stop:
        cols = n + tl.arange(0, BLOCK_N)
        kv_at = bhk.to(tl.int64) * T * D + cols[None, :] * D + d[:, None]
        kt = tl.load(k_ptr + kv_at, mask=cols[None, :] < T, other=0.0)
        vt = tl.load(v_ptr + kv_at, mask=cols[None, :] < T, other=0.0)
        p = tl.exp2(tl.dot(q, kt) * (scale * 1.4426950408889634) - lse[:, None])
        gap = rows[:, None] - cols[None, :]
        p = tl.where((gap >= 0) & (gap < WINDOW), p, 0.0)
        ds = p * (tl.dot(do, vt) - delta[:, None])
        dq = tl.dot(ds.to(kt.dtype), tl.trans(kt), dq)
        n += BLOCK_N
    tl.store(dq_ptr + at, (dq * scale).to(dq_ptr.dtype.element_ty), mask=ok)


@case
def terrace_of_queries_that_saw_a_window(b=2, h=16, hk=8, t=2300, d=128, window=500):
    q, k, v, do = (rand(b, x, t, d, dtype="bfloat16") for x in (h, hk, hk, h))
    scale = d**-0.5
    lse, delta = backward_facts(q, k, v, do, scale, window)
    dq = torch.zeros_like(q)
    launched = run(windowed_dq_kernel, (cdiv(t, 64), b * h), (q, k, v, do, lse, delta, dq, scale, t, h // hk, window), dq, D=d, BLOCK_M=64, BLOCK_N=64, num_warps=8)

    def reference():
        a = q.float().requires_grad_()
        with torch.enable_grad():
            o, _ = causal_of_groups(a, k.float(), v.float(), scale, window)
            return torch.autograd.grad(o, a, do.float())[0]

    return against(launched, reference)


@triton.jit
def paged_group_decode_split_kernel(
    Q, KC, VC, table, lens, Mid, MidLse, scale, MAX_BLOCKS, HK, stride_page, G: tl.constexpr, GP: tl.constexpr, D: tl.constexpr, PAGE: tl.constexpr, SPLITS: tl.constexpr,
):
    # One token of each sequence: heads of a group are the rows of dots, one page is one step, splits share a sequence evenly.
    seq = tl.program_id(0)
    hk = tl.program_id(1)
    split = tl.program_id(2)
    length = tl.load(lens + seq)
    pages = tl.cdiv(length, PAGE)
    per = tl.cdiv(pages, SPLITS)
    lo = split * per
    hi = tl.minimum(lo + per, pages)
    g = tl.arange(0, GP)
    d = tl.arange(0, D)
    row = (seq * HK + hk) * G + g
    q = tl.load(Q + row[:, None] * D + d[None, :], mask=g[:, None] < G, other=0.0)
    m = tl.full([GP], -1e30, tl.float32)
    l = tl.zeros([GP], tl.float32)
    acc = tl.zeros([GP, D], tl.float32)
    for p in range(lo, hi):
        page = tl.load(table + seq * MAX_BLOCKS + p).to(tl.int64)
        n = tl.arange(0, PAGE)
        at = page * stride_page + (n * HK + hk)[:, None] * D + d[None, :]
        valid = p * PAGE + n < length
        k = tl.load(KC + at, mask=valid[:, None], other=0.0)
        s = tl.dot(q, k.T) * scale
        s = tl.where(valid[None, :], s, -1e30)
        m_new = tl.maximum(m, tl.max(s, 1))
        w = tl.exp(s - m_new[:, None])
        r = tl.exp(m - m_new)
        v = tl.load(VC + at, mask=valid[:, None], other=0.0)
        acc = acc * r[:, None] + tl.dot(w.to(v.dtype), v)
        l = l * r + tl.sum(w, 1)
        m = m_new
    if hi > lo:
        out = row * SPLITS + split
        tl.store(Mid + out[:, None] * D + d[None, :], acc / l[:, None], mask=g[:, None] < G)
        tl.store(MidLse + out, m + tl.log(l), mask=g < G)


@case
def terrace_of_pages_in_shares(b=40, hk=8, g=6, d=128, page=32, longest=2000, splits=4):
    lens = ints(1, longest + 1, b)
    most = cdiv(longest, page)
    kc, vc = rand(b * most, page, hk, d, dtype="bfloat16"), rand(b * most, page, hk, d, dtype="bfloat16")
    table = torch.randperm(b * most).to(torch.int32).to("cuda").view(b, most)
    q = rand(b, hk * g, d, dtype="bfloat16")
    mid, lse = zeros(b, hk * g, splits, d, dtype="float32"), zeros(b, hk * g, splits, dtype="float32")
    args = q, kc, vc, table, lens, mid, lse, d**-0.5, most, hk, page * hk * d
    flags = dict(G=g, GP=16, D=d, PAGE=page, SPLITS=splits)
    launched = run(paged_group_decode_split_kernel, (b, hk, splits), args, (mid, lse), num_warps=2, num_stages=4, **flags)

    def reference():
        out, sums = torch.zeros_like(mid), torch.zeros_like(lse)
        for i in range(b):
            n = int(lens[i])
            k, v = (x[table[i].long()].reshape(-1, hk, d)[:n].float() for x in (kc, vc))
            s = torch.einsum("hgd,nhd->hgn", q[i].view(hk, g, d).float(), k) * d**-0.5
            per = cdiv(cdiv(n, page), splits) * page
            for j in range(splits):
                part = s[..., j * per : (j + 1) * per]
                if part.shape[2]:
                    out[i, :, j] = torch.einsum("hgn,nhd->hgd", part.softmax(2), v[j * per : (j + 1) * per]).reshape(-1, d)
                    sums[i, :, j] = part.logsumexp(2).view(-1)
        return out, sums

    return against(launched, reference)


@triton.jit
def shares_into_one_kernel(mid_ptr, lse_ptr, out_ptr, total_ptr, lens_ptr, H, TILE: tl.constexpr, D: tl.constexpr, MAX_SHARES: tl.constexpr):
    # The second stage of decode: as many shares as a sequence has tiles, joined by their logarithms.
    seq = tl.program_id(0)
    h = tl.program_id(1)
    shares = tl.cdiv(tl.load(lens_ptr + seq), TILE)
    d = tl.arange(0, D)
    top = -float("inf")
    total = 0.0
    acc = tl.zeros([D], dtype=tl.float32)
    base = (seq * H + h) * MAX_SHARES
    for i in range(shares):
        lse = tl.load(lse_ptr + base + i)
        x = tl.load(mid_ptr + (base + i).to(tl.int64) * D + d)
        new = tl.maximum(top, lse)
        old_scale = tl.exp(top - new)
        scale = tl.exp(lse - new)
        acc = acc * old_scale + x * scale
        total = total * old_scale + scale
        top = new
    tl.store(out_ptr + (seq * H + h) * D + d, (acc / total).to(out_ptr.dtype.element_ty))
    tl.store(total_ptr + seq * H + h, top + tl.log(total))


@case
def terrace_of_shares_into_one(b=64, h=48, d=128, most=40, tile=256):
    mid, lse, lens = f32(b, h, most, d), f32(b, h, most) * 3, ints(1, most * tile + 1, b)
    out, total = zeros(b, h, d, dtype="bfloat16"), zeros(b, h, dtype="float32")
    launched = run(shares_into_one_kernel, (b, h), (mid, lse, out, total, lens, h), (out, total), TILE=tile, D=d, MAX_SHARES=most, num_warps=1)

    def reference():
        x = lse.masked_fill(arange(most)[None, None, :] >= ((lens + tile - 1) // tile)[:, None, None], float("-inf"))
        return torch.einsum("bhs,bhsd->bhd", x.softmax(2), mid), x.logsumexp(2)

    return against(launched, reference)


@triton.jit
def mla_absorbed_decode_kernel(
    q_ptr, qr_ptr, cache_ptr, lens_ptr, o_ptr, scale, T, H, stride_c, R: tl.constexpr, ROPE: tl.constexpr, BH: tl.constexpr, BN: tl.constexpr,
):
    # Queries absorbed into the latent: values are the first part of the keys, the turned part has a dot of its own; the latent is read once.
    seq = tl.program_id(1)
    rh = tl.program_id(0) * BH + tl.arange(0, BH)
    rr = tl.arange(0, R)
    rp = tl.arange(0, ROPE)
    h_ok = rh[:, None] < H
    q = tl.load(q_ptr + (seq * H + rh)[:, None] * R + rr[None, :], mask=h_ok, other=0.0)
    qr = tl.load(qr_ptr + (seq * H + rh)[:, None] * ROPE + rp[None, :], mask=h_ok, other=0.0)
    length = tl.load(lens_ptr + seq)
    base = cache_ptr + seq.to(tl.int64) * T * stride_c
    m = tl.full((BH,), -1e30, dtype=tl.float32)
    l = tl.zeros((BH,), dtype=tl.float32)
    acc = tl.zeros((BH, R), dtype=tl.float32)
    for n0 in range(0, length, BN):
        rn = n0 + tl.arange(0, BN)
        n_ok = rn[:, None] < length
        c = tl.load(base + rn[:, None] * stride_c + rr[None, :], mask=n_ok, other=0.0)
        kr = tl.load(base + rn[:, None] * stride_c + R + rp[None, :], mask=n_ok, other=0.0)
        s = tl.dot(q, tl.trans(c))
        s = tl.dot(qr, tl.trans(kr), s) * scale
        s = tl.where(rn[None, :] < length, s, -1e30)
        new = tl.maximum(m, tl.max(s, 1))
        p = tl.exp(s - new[:, None])
        r = tl.exp(m - new)
        l = l * r + tl.sum(p, 1)
        acc = tl.dot(p.to(c.dtype), c, acc * r[:, None])
        m = new
    tl.store(o_ptr + (seq * H + rh)[:, None] * R + rr[None, :], (acc / l[:, None]).to(o_ptr.dtype.element_ty), mask=h_ok)


@case
def terrace_of_absorbed_latents(b=66, h=24, t=1200, r=512, rope=64):
    q, qr, cache = rand(b, h, r, dtype="bfloat16"), rand(b, h, rope, dtype="bfloat16"), rand(b, t, r + rope, dtype="bfloat16")
    lens, o, scale = ints(t // 2, t + 1, b), zeros(b, h, r, dtype="bfloat16"), (r + rope) ** -0.5
    args = q, qr, cache, lens, o, scale, t, h, r + rope
    launched = run(mla_absorbed_decode_kernel, (cdiv(h, 16), b), args, o, R=r, ROPE=rope, BH=16, BN=32, num_warps=4, num_stages=2)

    def reference():
        c = cache.float()
        s = torch.cat((q, qr), 2).float() @ c.transpose(1, 2) * scale
        s = s.masked_fill(arange(t)[None, None, :] >= lens[:, None, None], float("-inf"))
        return s.softmax(2) @ c[..., :r]

    return against(launched, reference)


@triton.jit
def listed_blocks_attention_kernel(q_ptr, k_ptr, v_ptr, indptr, indices, o_ptr, T, scale, D: tl.constexpr, B: tl.constexpr):
    # Each block of queries has a list of blocks of keys, by rows of a sparse matrix that all batches share; the diagonal is masked.
    qb = tl.program_id(0)
    bh = tl.program_id(1).to(tl.int64)
    r = tl.arange(0, B)
    d = tl.arange(0, D)
    tile = r[:, None] * D + d[None, :]
    base = bh * T * D
    q = tl.load(q_ptr + base + qb * B * D + tile)
    acc = tl.zeros((B, D), tl.float32)
    m = tl.full((B,), float("-inf"), tl.float32)
    l = tl.zeros((B,), tl.float32)
    first = tl.load(indptr + qb)
    last = tl.load(indptr + qb + 1)
    for j in range(first, last):
        kb = tl.load(indices + j)
        k = tl.load(k_ptr + base + kb * B * D + tile)
        s = tl.dot(q, tl.trans(k)) * (scale * 1.44269504089)
        if kb == qb:
            s = tl.where(r[:, None] >= r[None, :], s, float("-inf"))
        m_new = tl.maximum(m, tl.max(s, 1))
        p = tl.exp2(s - m_new[:, None])
        c = tl.exp2(m - m_new)
        l = l * c + tl.sum(p, 1)
        v = tl.load(v_ptr + base + kb * B * D + tile)
        acc = acc * c[:, None] + tl.dot(p.to(tl.float16), v)
        m = m_new
    tl.store(o_ptr + base + qb * B * D + tile, (acc / l[:, None]).to(tl.float16))


@case
def terrace_of_listed_blocks(bh=24, blocks=64, d=128, block=64):
    i = torch.arange(blocks)
    near = (i[:, None] - i[None, :]).abs() < 3
    layout = (near | (i[None, :] % 7 == 0) | (torch.rand(blocks, blocks) < 0.1)) & (i[:, None] >= i[None, :])
    indptr = F.pad(layout.sum(1).cumsum(0), (1, 0)).int().to("cuda")
    indices = layout.nonzero()[:, 1].int().to("cuda")
    t = blocks * block
    q, k, v, o = rand(bh, t, d), rand(bh, t, d), rand(bh, t, d), zeros(bh, t, d)
    launched = run(listed_blocks_attention_kernel, (blocks, bh), (q, k, v, indptr, indices, o, t, d**-0.5), o, D=d, B=block, num_warps=4, num_stages=3)

    def reference():
        seen = (layout.repeat_interleave(block, 0).repeat_interleave(block, 1) & torch.ones(t, t).tril().bool()).to(q.device)
        out = torch.empty_like(q, dtype=torch.float32)
        for x in range(bh):
            s = (q[x].float() @ k[x].float().t() * d**-0.5).masked_fill(~seen, float("-inf"))
            out[x] = s.softmax(1) @ v[x].float()
        return out

    return against(launched, reference)


@triton.jit
def lightning_chunks_kernel(q_ptr, k_ptr, v_ptr, decay_ptr, o_ptr, state_ptr, T, H: tl.constexpr, D: tl.constexpr, BV: tl.constexpr, C: tl.constexpr):
    # Linear attention with a decay of each head: inside a chunk by a masked product, before it by a state in registers.
    bh = tl.program_id(0)
    v0 = tl.program_id(1) * BV
    rate = tl.load(decay_ptr + bh % H)
    i = tl.arange(0, C)
    d = tl.arange(0, D)
    e = v0 + tl.arange(0, BV)
    gap = i[:, None] - i[None, :]
    inner = tl.where(gap >= 0, tl.exp(-rate * tl.maximum(gap, 0).to(tl.float32)), 0.0)
    from_start = tl.exp(-rate * (i + 1).to(tl.float32))
    state = tl.zeros((D, BV), dtype=tl.float32)
    base = bh.to(tl.int64) * T * D
    for t0 in range(0, T, C):
        t = t0 + i
        ok = t[:, None] < T
        q = tl.load(q_ptr + base + t[:, None] * D + d[None, :], mask=ok, other=0.0)
        kt = tl.load(k_ptr + base + t[None, :] * D + d[:, None], mask=t[None, :] < T, other=0.0)
        v = tl.load(v_ptr + base + t[:, None] * D + e[None, :], mask=ok, other=0.0)
        s = tl.dot(q, kt) * inner
        o = tl.dot(s.to(v.dtype), v)
        o += tl.dot(q, state.to(q.dtype)) * from_start[:, None]
        tl.store(o_ptr + base + t[:, None] * D + e[None, :], o.to(o_ptr.dtype.element_ty), mask=ok)
        size = tl.minimum(T - t0, C)
        to_end = tl.where(i < size, tl.exp(-rate * tl.maximum(size - 1 - i, 0).to(tl.float32)), 0.0)
        kd = (kt.to(tl.float32) * to_end[None, :]).to(kt.dtype)
        state = state * tl.exp(-rate * size.to(tl.float32)) + tl.dot(kd, v)
    tl.store(state_ptr + bh * D * D + d[:, None] * D + e[None, :], state)


@case
def terrace_of_heads_that_forget(b=6, h=16, t=1900, d=128):
    q, k, v = (rand(b, h, t, d, dtype="bfloat16") * 0.3 for _ in range(3))
    decay = torch.exp2(-(arange(h).float() * 0.5 + 1))
    o, state = zeros(b, h, t, d, dtype="bfloat16"), zeros(b, h, d, d, dtype="float32")
    launched = run(lightning_chunks_kernel, (b * h, d // 64), (q, k, v, decay, o, state, t), (o, state), H=h, D=d, BV=64, C=64, num_warps=4, num_stages=2)

    def reference():
        i = arange(t).float()
        gap = i[:, None] - i[None, :]
        out = torch.empty(b, h, t, d, device=q.device)
        for x in range(h):
            w = torch.exp(-decay[x] * gap.clamp(min=0)).tril()
            out[:, x] = (q[:, x].float() @ k[:, x].float().transpose(1, 2) * w) @ v[:, x].float()
        last = torch.exp(-decay[:, None] * (t - 1 - i))[:, :, None]
        return out, (k.float() * last).transpose(2, 3) @ v.float()

    return against(launched, reference)


@triton.jit
def gated_delta_steps_kernel(q_ptr, k_ptr, v_ptr, g_ptr, beta_ptr, h0_ptr, o_ptr, ht_ptr, T, scale, H: tl.constexpr, HV: tl.constexpr, K: tl.constexpr, V: tl.constexpr, BV: tl.constexpr, NORM: tl.constexpr):
    # The delta rule step by step: normed keys, a gate on the state, a strength; value heads may be more than key heads.
    i_v = tl.program_id(0)
    i_nh = tl.program_id(1)
    n = i_nh // HV
    hv = i_nh % HV
    h = hv // (HV // H)
    ok = tl.arange(0, K)
    ov = i_v * BV + tl.arange(0, BV)
    p_q = q_ptr + (n * T * H + h) * K + ok
    p_k = k_ptr + (n * T * H + h) * K + ok
    p_v = v_ptr + (n * T * HV + hv) * V + ov
    p_o = o_ptr + (n * T * HV + hv) * V + ov
    p_g = g_ptr + n * T * HV + hv
    p_b = beta_ptr + n * T * HV + hv
    state = tl.load(h0_ptr + i_nh * K * V + ok[:, None] * V + ov[None, :]).to(tl.float32)
    for _ in range(0, T):
        q = tl.load(p_q).to(tl.float32)
        k = tl.load(p_k).to(tl.float32)
        v = tl.load(p_v).to(tl.float32)
        g = tl.load(p_g)
        beta = tl.load(p_b)
        if NORM:
            q = q / (tl.sqrt(tl.sum(q * q)) + 1e-6)
            k = k / (tl.sqrt(tl.sum(k * k)) + 1e-6)
        q *= scale
        state *= tl.exp(g)
        v -= tl.sum(state * k[:, None], 0)
        v *= beta
        state += k[:, None] * v[None, :]
        tl.store(p_o, tl.sum(state * q[:, None], 0).to(o_ptr.dtype.element_ty))
        p_q += H * K
        p_k += H * K
        p_v += HV * V
        p_o += HV * V
        p_g += HV
        p_b += HV
    tl.store(ht_ptr + i_nh * K * V + ok[:, None] * V + ov[None, :], state)


@case
def terrace_of_deltas_step_by_step(n=8, t=120, h=8, hv=16, k=128, v=128):
    q, key, val = rand(n, t, h, k, dtype="bfloat16"), rand(n, t, h, k, dtype="bfloat16"), rand(n, t, hv, v, dtype="bfloat16")
    g, beta, h0 = -uniform(n, t, hv), uniform(n, t, hv), f32(n, hv, k, v)
    o, ht = zeros(n, t, hv, v, dtype="bfloat16"), zeros(n, hv, k, v, dtype="float32")
    flags = dict(H=h, HV=hv, K=k, V=v, BV=8, NORM=True)
    launched = run(gated_delta_steps_kernel, (v // 8, n * hv), (q, key, val, g, beta, h0, o, ht, t, k**-0.5), (o, ht), num_warps=1, num_stages=3, **flags)

    def reference():
        a, b = (F.normalize(x.float(), dim=3).repeat_interleave(hv // h, 2) for x in (q, key))
        s, out = h0.clone(), []
        for i in range(t):
            s = s * g[:, i, :, None, None].exp()
            d = (val[:, i].float() - torch.einsum("nhkv,nhk->nhv", s, b[:, i])) * beta[:, i, :, None]
            s = s + b[:, i, :, :, None] * d[:, :, None, :]
            out.append(torch.einsum("nhkv,nhk->nhv", s, a[:, i]) * k**-0.5)
        return torch.stack(out, 1), s

    return against(launched, reference)


@triton.jit
def softplus(x):
    return tl.where(x > 20.0, x, libdevice.log1p(tl.exp(x)))


@triton.jit
def selective_scan_gated_kernel(u_ptr, dt_ptr, A_ptr, B_ptr, C_ptr, D_ptr, z_ptr, bias_ptr, y_ptr, T, DIM, N: tl.constexpr, BD: tl.constexpr):
    # A selective scan over time with a state of some numbers for each channel; steps by softplus, a skip and a gate.
    b = tl.program_id(1)
    c = tl.program_id(0) * BD + tl.arange(0, BD)
    n = tl.arange(0, N)
    ok = c < DIM
    a = -tl.exp(tl.load(A_ptr + c[:, None] * N + n[None, :], mask=ok[:, None], other=0.0))
    skip = tl.load(D_ptr + c, mask=ok, other=0.0)
    bias = tl.load(bias_ptr + c, mask=ok, other=0.0)
    state = tl.zeros((BD, N), dtype=tl.float32)
    for t in tl.range(0, T, loop_unroll_factor=2):
        at = (b * T + t) * DIM + c
        u = tl.load(u_ptr + at, mask=ok, other=0.0).to(tl.float32)
        dt = softplus(tl.load(dt_ptr + at, mask=ok, other=0.0).to(tl.float32) + bias)
        bt = tl.load(B_ptr + (b * T + t) * N + n).to(tl.float32)
        ct = tl.load(C_ptr + (b * T + t) * N + n).to(tl.float32)
        state = state * tl.exp(dt[:, None] * a) + (dt * u)[:, None] * bt[None, :]
        y = tl.sum(state * ct[None, :], axis=1) + skip * u
        z = tl.load(z_ptr + at, mask=ok, other=0.0).to(tl.float32)
        tl.store(y_ptr + at, (y * z * tl.sigmoid(z)).to(y_ptr.dtype.element_ty), mask=ok)


@case
def terrace_of_selected_steps(b=16, t=300, dim=3000, n=16):
    u, dt, z = rand(b, t, dim, dtype="bfloat16"), rand(b, t, dim, dtype="bfloat16"), rand(b, t, dim, dtype="bfloat16")
    a, bt, ct, skip, bias = uniform(dim, n) * 2, rand(b, t, n, dtype="bfloat16"), rand(b, t, n, dtype="bfloat16"), f32(dim), f32(dim) - 2
    y = zeros(b, t, dim, dtype="bfloat16")
    launched = run(selective_scan_gated_kernel, (cdiv(dim, 64), b), (u, dt, a, bt, ct, skip, z, bias, y, t, dim), y, N=n, BD=64, num_warps=2)

    def reference():
        s, out, rate = torch.zeros(b, dim, n, device=u.device), [], -a.exp()
        step = F.softplus(dt.float() + bias)
        for i in range(t):
            s = s * torch.exp(step[:, i, :, None] * rate) + (step[:, i] * u[:, i].float())[:, :, None] * bt[:, i, None, :].float()
            out.append((s * ct[:, i, None, :].float()).sum(2))
        return (torch.stack(out, 1) + skip * u.float()) * F.silu(z.float())

    return against(launched, reference)


@triton.jit
def ssd_states_of_chunks_kernel(x_ptr, b_ptr, dt_ptr, cum_ptr, states_ptr, L, H, G, P: tl.constexpr, N: tl.constexpr, CHUNK: tl.constexpr, BP: tl.constexpr, BN: tl.constexpr, BL: tl.constexpr):
    # What a chunk adds to the state: x' (decay dt B), heads sharing B in groups.
    pid_bc = tl.program_id(1)
    pid_h = tl.program_id(2)
    num_n: tl.constexpr = N // BN
    rp = (tl.program_id(0) // num_n) * BP + tl.arange(0, BP)
    rn = (tl.program_id(0) % num_n) * BN + tl.arange(0, BN)
    chunks = L // CHUNK
    bb = pid_bc // chunks
    c0 = pid_bc % chunks * CHUNK
    tok = bb * L + c0
    cum = cum_ptr + (pid_bc * H + pid_h) * CHUNK
    dts = dt_ptr + (pid_bc * H + pid_h) * CHUNK
    last = tl.load(cum + CHUNK - 1)
    acc = tl.zeros((BP, BN), dtype=tl.float32)
    for l0 in range(0, CHUNK, BL):
        rl = l0 + tl.arange(0, BL)
        x = tl.load(x_ptr + ((tok + rl)[None, :] * H + pid_h) * P + rp[:, None])
        b = tl.load(b_ptr + ((tok + rl)[:, None] * G + pid_h // (H // G)) * N + rn[None, :]).to(tl.float32)
        w = tl.exp(last - tl.load(cum + rl)) * tl.load(dts + rl)
        acc += tl.dot(x, (b * w[:, None]).to(x.dtype))
    tl.store(states_ptr + ((pid_bc * H + pid_h) * P + rp[:, None]) * N + rn[None, :], acc)


@case
def terrace_of_what_chunks_add(b=4, l=2048, h=32, g=4, p=64, n=128, chunk=256):
    x, bt = rand(b, l, h, p, dtype="bfloat16"), rand(b, l, g, n, dtype="bfloat16")
    c = l // chunk
    dt = uniform(b, c, h, chunk) * 0.1
    cum = (-dt * (uniform(h) + 0.1)[:, None]).cumsum(3)
    states = zeros(b, c, h, p, n, dtype="float32")
    flags = dict(P=p, N=n, CHUNK=chunk, BP=32, BN=64, BL=32)
    launched = run(ssd_states_of_chunks_kernel, (p // 32 * (n // 64), b * c, h), (x, bt, dt, cum, states, l, h, g), states, num_warps=2, num_stages=4, **flags)

    def reference():
        w = (cum[..., -1:] - cum).exp() * dt
        y = x.float().view(b, c, chunk, h, p)
        z = bt.float().view(b, c, chunk, g, n).repeat_interleave(h // g, 3)
        return torch.einsum("bclhp,bclhn,bchl->bchpn", y, z, w)

    return against(launched, reference)


@triton.jit
def bytes_cached_prefill_kernel(q_ptr, k_ptr, v_ptr, ks_ptr, vs_ptr, o_ptr, TQ, TK, scale, H, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    # Keys and values kept as bytes with a scale of each token: queries are the last of the sequence, scales go on columns of scores.
    h = tl.program_id(1) % H
    b = tl.program_id(1) // H
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rd = tl.arange(0, D)
    q = tl.load(q_ptr + ((b * TQ + rm[:, None]) * H + h) * D + rd[None, :], mask=rm[:, None] < TQ, other=0.0)
    place = rm + (TK - TQ)
    m = tl.full((BM,), -1e9, tl.float32)
    l = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    hi = tl.minimum(tl.program_id(0) * BM + BM + TK - TQ, TK)
    for n0 in range(0, hi, BN):
        rn = n0 + tl.arange(0, BN)
        ok = rn < TK
        at = (b * TK + rn) * H + h
        k = tl.load(k_ptr + at[None, :] * D + rd[:, None], mask=ok[None, :], other=0).to(tl.float16)
        ks = tl.load(ks_ptr + at, mask=ok, other=0.0)
        s = tl.dot(q, k) * (ks * scale)[None, :]
        s = tl.where((rn[None, :] <= place[:, None]) & ok[None, :], s, -1e9)
        new = tl.maximum(m, tl.max(s, 1))
        p = tl.exp(s - new[:, None])
        r = tl.exp(m - new)
        l = l * r + tl.sum(p, 1)
        vs = tl.load(vs_ptr + at, mask=ok, other=0.0)
        v = tl.load(v_ptr + at[:, None] * D + rd[None, :], mask=ok[:, None], other=0).to(tl.float16)
        acc = acc * r[:, None] + tl.dot((p * vs[None, :]).to(tl.float16), v)
        m = new
    tl.store(o_ptr + ((b * TQ + rm[:, None]) * H + h) * D + rd[None, :], (acc / l[:, None]).to(tl.float16), mask=rm[:, None] < TQ)


@case
def terrace_of_bytes_kept(b=4, tq=300, tk=2300, h=16, d=64):
    q, o = rand(b, tq, h, d), zeros(b, tq, h, d)
    k, v = ints(-127, 128, b, tk, h, d, dtype="int8"), ints(-127, 128, b, tk, h, d, dtype="int8")
    ks, vs = uniform(b, tk, h) * 0.01 + 0.005, uniform(b, tk, h) * 0.01 + 0.005
    launched = run(bytes_cached_prefill_kernel, (cdiv(tq, 32), b * h), (q, k, v, ks, vs, o, tq, tk, d**-0.5, h), o, D=d, BM=32, BN=128, num_warps=4, num_stages=1)

    def reference():
        x, y = k.float() * ks[..., None], v.float() * vs[..., None]
        s = torch.einsum("bqhd,bkhd->bhqk", q.float(), x) * d**-0.5
        s = s.masked_fill(arange(tk)[None, :] > arange(tq)[:, None] + tk - tq, float("-inf"))
        return torch.einsum("bhqk,bkhd->bqhd", s.softmax(3), y)

    return against(launched, reference)


@triton.jit
def first_order(a1, x1, a2, x2):
    return a1 * a2, a2 * x1 + x2


@triton.jit
def gated_lru_scan_kernel(x_ptr, r_ptr, i_ptr, lam_ptr, h0_ptr, y_ptr, h_ptr, T, C, BT: tl.constexpr, BC: tl.constexpr):
    # A gated linear recurrent unit: decays by a gate and a learned rate, input scaled so that its variance stays; scans of blocks of time.
    b = tl.program_id(0)
    c = tl.program_id(1) * BC + tl.arange(0, BC)
    c_ok = c < C
    rate = -8.0 * softplus(tl.load(lam_ptr + c, mask=c_ok, other=0.0))
    h = tl.load(h0_ptr + b * C + c, mask=c_ok, other=0.0)
    for t0 in tl.range(0, T, BT):
        t = t0 + tl.arange(0, BT)
        ok = (t < T)[:, None] & c_ok[None, :]
        at = (b * T + t[:, None]) * C + c[None, :]
        x = tl.load(x_ptr + at, mask=ok, other=0.0).to(tl.float32)
        r = tl.sigmoid(tl.load(r_ptr + at, mask=ok, other=0.0).to(tl.float32))
        i = tl.sigmoid(tl.load(i_ptr + at, mask=ok, other=0.0).to(tl.float32))
        log_a = r * rate[None, :]
        a = tl.where(ok, tl.exp(log_a), 1.0)
        u = tl.where(ok, tl.sqrt(-libdevice.expm1(2.0 * log_a)) * i * x, 0.0)
        pa, pu = tl.associative_scan((a, u), 0, first_order)
        y = pu + pa * h[None, :]
        tl.store(y_ptr + at, y.to(y_ptr.dtype.element_ty), mask=ok)
        h = tl.sum(tl.where((tl.arange(0, BT) == BT - 1)[:, None], y, 0.0), axis=0)
    tl.store(h_ptr + b * C + c, h, mask=c_ok)


@case
def terrace_of_a_gated_unit(b=16, t=1500, c=2560):
    x, r, i = (rand(b, t, c, dtype="bfloat16") for _ in range(3))
    lam, h0 = f32(c) - 3, f32(b, c)
    y, h = zeros(b, t, c, dtype="bfloat16"), zeros(b, c, dtype="float32")
    launched = run(gated_lru_scan_kernel, (b, cdiv(c, 64)), (x, r, i, lam, h0, y, h, t, c), (y, h), BT=32, BC=64, num_warps=4)

    def reference():
        la = -8 * F.softplus(lam) * r.float().sigmoid()
        u = (-torch.expm1(2 * la)).sqrt() * i.float().sigmoid() * x.float()
        s, out = h0, []
        for j in range(t):
            s = la[:, j].exp() * s + u[:, j]
            out.append(s)
        return torch.stack(out, 1), s

    return against(launched, reference)


@triton.jit
def pair_biased_gated_kernel(q_ptr, k_ptr, v_ptr, bias_ptr, mask_ptr, gate_ptr, o_ptr, R, S, H, D: tl.constexpr, BLOCK_Q: tl.constexpr, BLOCK_K: tl.constexpr):
    # Attention along rows of pairs: a bias of each head for all rows, a mask of a row's keys, and a sigmoid gate on the way out.
    row = tl.program_id(2)
    h = tl.program_id(1)
    qi = tl.program_id(0) * BLOCK_Q + tl.arange(0, BLOCK_Q)
    d = tl.arange(0, D)
    q_at = ((row * S + qi[:, None]) * H + h) * D + d[None, :]
    q_ok = qi[:, None] < S
    q = tl.load(q_ptr + q_at, mask=q_ok, other=0.0)
    scale = 1.0 / tl.sqrt(D * 1.0)
    m = tl.full((BLOCK_Q,), -1e30, tl.float32)
    l = tl.zeros((BLOCK_Q,), tl.float32)
    acc = tl.zeros((BLOCK_Q, D), tl.float32)
    for k0 in range(0, S, BLOCK_K):
        ki = k0 + tl.arange(0, BLOCK_K)
        at = ((row * S + ki[:, None]) * H + h) * D + d[None, :]
        k = tl.load(k_ptr + at, mask=ki[:, None] < S, other=0.0)
        v = tl.load(v_ptr + at, mask=ki[:, None] < S, other=0.0)
        keep = tl.load(mask_ptr + row * S + ki, mask=ki < S, other=0)
        bias = tl.load(bias_ptr + (h * S + qi[:, None]) * S + ki[None, :], mask=q_ok & (ki[None, :] < S), other=0.0, eviction_policy="evict_last")
        s = tl.dot(q, k.T) * scale + bias.to(tl.float32)
        s = tl.where((ki < S)[None, :], tl.where(keep[None, :] != 0, s, -1e9), -1e30)
        new = tl.maximum(m, tl.max(s, 1))
        p = tl.exp(s - new[:, None])
        r = tl.exp(m - new)
        l = l * r + tl.sum(p, 1)
        acc = tl.dot(p.to(v.dtype), v, acc * r[:, None])
        m = new
    gate = tl.load(gate_ptr + q_at, mask=q_ok, other=0.0).to(tl.float32)
    tl.store(o_ptr + q_at, (acc / l[:, None] * tl.sigmoid(gate)).to(o_ptr.dtype.element_ty), mask=q_ok)


@case
def terrace_of_rows_of_pairs(r=280, s=280, h=4, d=32):
    q, k, v, gate = (rand(r, s, h, d, dtype="bfloat16") for _ in range(4))
    bias, keep, o = rand(h, s, s, dtype="bfloat16"), ints(0, 5, r, s).clamp(max=1), zeros(r, s, h, d, dtype="bfloat16")
    launched = run(pair_biased_gated_kernel, (cdiv(s, 64), h, r), (q, k, v, bias, keep, gate, o, r, s, h), o, D=d, BLOCK_Q=64, BLOCK_K=64, num_warps=4, num_stages=3)

    def reference():
        a = torch.einsum("rqhd,rkhd->rhqk", q.float(), k.float()) * d**-0.5 + bias.float()
        a = a.masked_fill(keep[:, None, None, :] == 0, -1e9)
        return torch.einsum("rhqk,rkhd->rqhd", a.softmax(3), v.float()) * gate.float().sigmoid()

    return against(launched, reference)


@triton.jit
def unit_lower_inverse_kernel(a_ptr, out_ptr, T, H, stride_t, BT: tl.constexpr):
    # (I + A)^-1 of strictly lower tiles down the tokens of a head, row by row.
    chunk = tl.program_id(0)
    b = tl.program_id(1) // H
    h = tl.program_id(1) % H
    i = tl.arange(0, BT)
    rows = chunk * BT + i
    base = (b * T * H + h) * BT
    at = base + rows[:, None] * stride_t + i[None, :]
    ok = rows[:, None] < T
    a = tl.load(a_ptr + at, mask=ok, other=0.0).to(tl.float32)
    x = -tl.where(i[:, None] > i[None, :], a, 0.0)
    for r in range(1, tl.minimum(BT, T - chunk * BT)):
        row = -tl.load(a_ptr + base + (chunk * BT + r) * stride_t + i).to(tl.float32)
        row = tl.where(i < r, row, 0.0)
        row += tl.sum(row[:, None] * x, 0)
        x = tl.where((i == r)[:, None], row[None, :], x)
    x += tl.where(i[:, None] == i[None, :], 1.0, 0.0)
    tl.store(out_ptr + at, x.to(out_ptr.dtype.element_ty), mask=ok)


@case
def terrace_of_lower_inverses(b=8, t=2040, h=16, bt=32):
    a, out = rand(b, t, h, bt) * 0.2, zeros(b, t, h, bt, dtype="float32")
    launched = run(unit_lower_inverse_kernel, (cdiv(t, bt), b * h), (a, out, t, h, h * bt), out, BT=bt, num_warps=2)

    def reference():
        x = F.pad(a.float(), (0, 0, 0, 0, 0, -t % bt)).view(b, -1, bt, h, bt).transpose(2, 3).tril(-1)
        eye = torch.eye(bt, device=a.device)
        y = torch.linalg.solve_triangular(eye + x, eye.expand_as(x), upper=False, unitriangular=True)
        return y.transpose(2, 3).reshape(b, -1, h, bt)[:, :t]

    return against(launched, reference)
