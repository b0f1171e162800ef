"""Heeds: attention in two loops and in one, around branches, over bands, blocks, pages, buckets and residues, and its gradients."""

import torch
import triton
import triton.language as tl

from .common import against, arange, case, cdiv, f8, f32, full, ints, rand, run, uniform, zeros


def attended(q, k, v, scale, keep=None, bias=None, cap=None, sink=None):
    """Attention of (..., T, D) in float32; `keep` says which scores count."""
    s = q.float() @ k.float().mT * scale
    if cap is not None:
        s = cap * torch.tanh(s / cap)
    if bias is not None:
        s = s + bias
    if keep is not None:
        s = s.masked_fill(~keep, float("-inf"))
    if sink is not None:
        s = torch.cat([s, sink.expand(*s.shape[:-1], 1)], -1)
        return s.softmax(-1)[..., :-1] @ v.float()
    return s.softmax(-1) @ v.float()


@triton.jit
def _weigh(acc, m, l, s, v):
    # One step of a softmax that goes on: old sums shrink to the new maximum.
    top = tl.maximum(m, tl.max(s, 1))
    p = tl.exp2(s - top[:, None])
    keep = tl.exp2(m - top)
    return tl.dot(p.to(v.dtype), v, acc * keep[:, None]), top, l * keep + tl.sum(p, 1)


@triton.jit
def banded_groups(q_ptr, k_ptr, v_ptr, sink_ptr, o_ptr, T, scale, G: tl.constexpr, BT: tl.constexpr, W: tl.constexpr, D: tl.constexpr, BN: tl.constexpr):
    # Rows of a tile are BT tokens of each of G heads; whole blocks of keys in one loop, those the band cuts before and after it.
    R: tl.constexpr = G * BT
    row = tl.arange(0, R)
    t0 = tl.program_id(0) * BT
    t = t0 + row % BT
    head = tl.program_id(1) * G + row // BT
    d = tl.arange(0, D)
    q = tl.load(q_ptr + (head * T + t)[:, None] * D + d[None, :])
    kv = tl.program_id(1) * T * D
    m = tl.load(sink_ptr + head) * 1.4426950408889634
    l = tl.full((R,), 1.0, tl.float32)
    acc = tl.zeros((R, D), tl.float32)
    first = tl.maximum(t0 - W + 1, 0) // BN * BN
    whole = tl.minimum(cdiv_(tl.maximum(t0 + BT - W, 0), BN) * BN, t0 // BN * BN)
    for n0 in range(first, whole, BN):
        n = n0 + tl.arange(0, BN)
        k = tl.load(k_ptr + kv + n[None, :] * D + d[:, None])
        v = tl.load(v_ptr + kv + n[:, None] * D + d[None, :])
        s = tl.where(n[None, :] > (t - W)[:, None], tl.dot(q, k) * scale, float("-inf"))
        acc, m, l = _weigh(acc, m, l, s, v)
    for n0 in range(tl.maximum(whole, first), t0 // BN * BN, BN):
        n = n0 + tl.arange(0, BN)
        k = tl.load(k_ptr + kv + n[None, :] * D + d[:, None])
        v = tl.load(v_ptr + kv + n[:, None] * D + d[None, :])
        acc, m, l = _weigh(acc, m, l, tl.dot(q, k) * scale, v)
    n = t0 // BN * BN + tl.arange(0, BN)
    k = tl.load(k_ptr + kv + n[None, :] * D + d[:, None])
    v = tl.load(v_ptr + kv + n[:, None] * D + d[None, :])
    s = tl.where((n[None, :] <= t[:, None]) & (n[None, :] > (t - W)[:, None]), tl.dot(q, k) * scale, float("-inf"))
    acc, m, l = _weigh(acc, m, l, s, v)
    tl.store(o_ptr + (head * T + t)[:, None] * D + d[None, :], (acc / l[:, None]).to(o_ptr.dtype.element_ty))


@triton.jit
def cdiv_(a, b):
    return (a + b - 1) // b


@case
def heed_of_a_band_of_200_four_heads_a_tile_with_sinks():
    heads, g, t, d, w = 4, 4, 2048, 64, 200
    q, k, v, sink = rand(heads * g, t, d), rand(heads, t, d), rand(heads, t, d), f32(heads * g)
    o = zeros(heads * g, t, d)
    args = q, k, v, sink, o, t, d**-0.5 * 1.4426950408889634
    launched = run(banded_groups, (t // 32, heads), args, o, G=g, BT=32, W=w, D=d, BN=64, num_warps=4, num_stages=2)

    def reference():
        i, j = arange(t)[:, None], arange(t)[None, :]
        kk, vv = k.repeat_interleave(g, 0), v.repeat_interleave(g, 0)
        return attended(q, kk, vv, d**-0.5, (j <= i) & (j > i - w), sink=sink[:, None, None])

    return against(launched, reference)


@triton.jit
def capped_with_slopes(q_ptr, k_ptr, v_ptr, o_ptr, lse_ptr, T, scale, cap, H, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):
    # Pointers that step along keys, scores capped by tanh, a slope a head, causal: masked only in the last blocks, by a branch.
    i0 = (tl.num_programs(0) - 1 - tl.program_id(0)) * BM
    h = tl.program_id(1)
    i, d, j = i0 + tl.arange(0, BM), tl.arange(0, D), tl.arange(0, BN)
    slope = tl.exp2(-8.0 * (h % H + 1) / H)
    base = h.to(tl.int64) * T * D
    q = tl.load(q_ptr + base + i[:, None] * D + d[None, :])
    ks = k_ptr + base + d[:, None] + j[None, :] * D
    vs = v_ptr + base + j[:, None] * D + d[None, :]
    m = tl.full((BM,), -1e30, tl.float32)
    l = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for j0 in range(0, i0 + BM, BN):
        x = tl.dot(q, tl.load(ks)) * (2.0 * scale / cap)
        s = cap * (1.0 - 2.0 / (tl.exp(x) + 1.0)) - slope * (i[:, None] - j0 - j[None, :]).to(tl.float32)
        if j0 + BN > i0:
            s = tl.where(i[:, None] >= j0 + j[None, :], s, float("-inf"))
        acc, m, l = _weigh(acc, m, l, s * 1.4426950408889634, tl.load(vs))
        ks += BN * D
        vs += BN * D
    tl.store(o_ptr + base + i[:, None] * D + d[None, :], (acc * (1.0 / l)[:, None]).to(o_ptr.dtype.element_ty))
    tl.store(lse_ptr + h * T + i, m * 0.6931471805599453 + tl.log(l))


@case
def heed_with_slopes_and_a_cap_by_stepping_pointers_d128():
    h, t, d, cap = 8, 1024, 128, 20.0
    q, k, v = (rand(h, t, d, dtype="bfloat16") for _ in range(3))
    o, lse = zeros(h, t, d, dtype="bfloat16"), zeros(h, t, dtype="float32")
    args = q, k, v, o, lse, t, d**-0.5, cap, h
    launched = run(capped_with_slopes, (t // 128, h), args, (o, lse), BM=128, BN=64, D=d, num_warps=8, num_stages=3)

    def reference():
        i, j = arange(t)[:, None], arange(t)[None, :]
        slope = torch.exp2(-8.0 * (arange(h) + 1) / h)[:, None, None]
        s = cap * torch.tanh(q.float() @ k.float().mT * d**-0.5 / cap) - slope * (i - j)
        s = s.masked_fill(j > i, float("-inf"))
        return s.softmax(2) @ v.float(), s.logsumexp(2)

    return against(launched, reference)


@triton.jit
def by_bytes_of_blocks(q_ptr, k_ptr, v_ptr, kind_ptr, keep_ptr, o_ptr, T, NB, scale, B: tl.constexpr, D: tl.constexpr):
    # A byte a block of scores: 0 none, 1 all, 2 by a bit each. Loads are in the branch.
    i = tl.program_id(0) * B + tl.arange(0, B)
    d, b = tl.arange(0, D), tl.arange(0, B)
    base = tl.program_id(1) * T * D
    q = (tl.load(q_ptr + base + i[:, None] * D + d[None, :]) * scale).to(q_ptr.dtype.element_ty)
    m = tl.full((B,), -1e30, tl.float32)
    l = tl.zeros((B,), tl.float32)
    acc = tl.zeros((B, D), tl.float32)
    for block in range(NB):
        kind = tl.load(kind_ptr + tl.program_id(0) * NB + block)
        if kind != 0:
            j = block * B + b
            k = tl.load(k_ptr + base + j[:, None] * D + d[None, :])
            s = tl.dot(q, tl.trans(k))
            if kind == 2:
                bits = tl.load(keep_ptr + i * (T // 32) + block)
                s = tl.where(((bits[:, None] >> b[None, :]) & 1) != 0, s, float("-inf"))
            v = tl.load(v_ptr + base + j[:, None] * D + d[None, :])
            acc, m, l = _weigh(acc, m, l, s, v)
    tl.store(o_ptr + base + i[:, None] * D + d[None, :], (acc / l[:, None]).to(o_ptr.dtype.element_ty))


@case
def heed_by_a_byte_a_block_and_a_bit_a_score_d32():
    h, t, d, b = 12, 1024, 32, 32
    n = t // b
    q, k, v = (rand(h, t, d) for _ in range(3))
    kind = ints(0, 3, n, n, dtype="int8")
    kind.fill_diagonal_(1)
    bits = ints(-(2**31), 2**31 - 1, t, n)
    o = zeros(h, t, d)
    launched = run(by_bytes_of_blocks, (n, h), (q, k, v, kind, bits, o, t, n, d**-0.5 * 1.4426950408889634), o, B=b, D=d, num_warps=2, num_stages=3)

    def reference():
        each = ((bits[:, :, None] >> arange(32)) & 1).reshape(t, t) != 0
        of = kind.repeat_interleave(b, 0).repeat_interleave(b, 1)
        return attended(q, k, v, d**-0.5, (of == 1) | ((of == 2) & each))

    return against(launched, reference)


@triton.jit
def pages_of_bytes_in_parts(q_ptr, k_ptr, v_ptr, ks_ptr, vs_ptr, page_ptr, len_ptr, part_ptr, lse_ptr, scale, PAGES, PARTS, H: tl.constexpr, G: tl.constexpr, P: tl.constexpr, D: tl.constexpr, AT_ONCE: tl.constexpr):
    # Six heads ask a cache of signed bytes, four pages of eight tokens at once; scales of keys join scores, those of values weights.
    seq, kvh, part = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    BN: tl.constexpr = P * AT_ONCE
    g, d, n = tl.arange(0, 16), tl.arange(0, D), tl.arange(0, BN)
    length = tl.load(len_ptr + seq)
    q = tl.load(q_ptr + ((seq * H + kvh) * G + g)[:, None] * D + d[None, :], mask=g[:, None] < G, other=0.0)
    span = cdiv_(cdiv_(length, PARTS), BN) * BN
    end = tl.minimum(part * span + span, length)
    m = tl.full((16,), -1e30, tl.float32)
    l = tl.zeros((16,), tl.float32)
    acc = tl.zeros((16, D), tl.float32)
    for n0 in range(part * span, end, BN):
        at = n0 + n
        page = tl.load(page_ptr + seq * PAGES + at // P, mask=at < end, other=0)
        slot = (page * P + at % P) * H + kvh
        k = tl.load(k_ptr + slot[None, :] * D + d[:, None], mask=at[None, :] < end, other=0).to(q.dtype)
        s = tl.dot(q, k) * (tl.load(ks_ptr + slot, mask=at < end, other=0.0) * scale)[None, :]
        s = tl.where(at[None, :] < end, s, float("-inf"))
        top = tl.maximum(m, tl.max(s, 1))
        p = tl.exp2(s - top[:, None])
        keep = tl.exp2(m - top)
        l = l * keep + tl.sum(p, 1)
        v = tl.load(v_ptr + slot[:, None] * D + d[None, :], mask=at[:, None] < end, other=0).to(q.dtype)
        p = p * tl.load(vs_ptr + slot, mask=at < end, other=0.0)[None, :]
        acc = tl.dot(p.to(q.dtype), v, acc * keep[:, None])
        m = top
    out = (part * tl.num_programs(0) + seq) * H * G + kvh * G + g
    tl.store(part_ptr + out[:, None] * D + d[None, :], acc / tl.maximum(l, 1e-30)[:, None], mask=g[:, None] < G)
    tl.store(lse_ptr + out, tl.where(l > 0.0, m + tl.log2(tl.maximum(l, 1e-30)), -1e30), mask=g < G)


@case
def heed_of_pages_of_eight_bytes_tokens_in_parts_six_heads():
    seqs, h, g, d, p, parts = 16, 2, 6, 128, 8, 5
    longest, pages = 3000, 375
    q = rand(seqs, h * g, d)
    k, v = (ints(-127, 128, seqs * pages, p, h, d, dtype="int8") for _ in range(2))
    ks, vs = uniform(seqs * pages, p, h) / 60 + 0.002, uniform(seqs * pages, p, h) / 60 + 0.002
    page = torch.randperm(seqs * pages, device="cuda").to(torch.int32).reshape(seqs, pages)
    lengths = ints(500, longest, seqs)
    part, lse = zeros(parts, seqs, h * g, d, dtype="float32"), zeros(parts, seqs, h * g, dtype="float32")
    args = q, k, v, ks, vs, page, lengths, part, lse, d**-0.5 * 1.4426950408889634, pages, parts
    launched = run(pages_of_bytes_in_parts, (seqs, h, parts), args, (part, lse), H=h, G=g, P=p, D=d, AT_ONCE=4, num_warps=4, num_stages=2)

    def reference():
        out, sums = torch.zeros_like(part), torch.full_like(lse, -1e30)
        for s, length in enumerate(lengths.tolist()):
            span = cdiv(cdiv(length, parts), 4 * p) * 4 * p
            keys, values = ((z[page[s].long()].float() * by[page[s].long()][..., None]).flatten(0, 1).repeat_interleave(g, 1) for z, by in ((k, ks), (v, vs)))
            scores = torch.einsum("hd,thd->ht", q[s].float(), keys) * d**-0.5
            for i in range(cdiv(length, span)):
                at = slice(i * span, min(i * span + span, length))
                out[i, s] = torch.einsum("ht,thd->hd", scores[:, at].softmax(1), values[at])
                sums[i, s] = scores[:, at].logsumexp(1) * 1.4426950408889634
        return out, sums

    return against(launched, reference)


@triton.jit
def wide_of_fp8(q_ptr, k_ptr, v_ptr, qs_ptr, ks_ptr, vs_ptr, o_ptr, T, S, scale, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):
    # FP8 all through, a scale a head; heads of 256 taken in halves so that one half of the queries waits in registers.
    i, d, j = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, D // 2), tl.arange(0, BN)
    h = tl.program_id(1)
    qs = q_ptr + h * T * D + i[:, None] * D + d[None, :]
    q0 = tl.load(qs, mask=i[:, None] < T, other=0.0)
    q1 = tl.load(qs + D // 2, mask=i[:, None] < T, other=0.0)
    by = scale * tl.load(qs_ptr + h) * tl.load(ks_ptr + h)
    m = tl.full((BM,), -1e30, tl.float32)
    l = tl.zeros((BM,), tl.float32)
    a0 = tl.zeros((BM, D // 2), tl.float32)
    a1 = tl.zeros((BM, D // 2), tl.float32)
    for j0 in tl.range(0, S, BN):
        at = h * S * D + (j0 + j) * D
        ok = j0 + j < S
        s = tl.dot(q0, tl.load(k_ptr + at[None, :] + d[:, None], mask=ok[None, :], other=0.0))
        s = tl.dot(q1, tl.load(k_ptr + at[None, :] + d[:, None] + D // 2, mask=ok[None, :], other=0.0), s)
        s = tl.where(ok[None, :], s * by, float("-inf"))
        top = tl.maximum(m, tl.max(s, 1))
        p = tl.exp2(s - top[:, None])
        keep = tl.exp2(m - top)
        l = l * keep + tl.sum(p, 1)
        p = p.to(tl.float16)
        a0 = tl.dot(p, tl.load(v_ptr + at[:, None] + d[None, :], mask=ok[:, None], other=0.0).to(tl.float16), a0 * keep[:, None])
        a1 = tl.dot(p, tl.load(v_ptr + at[:, None] + d[None, :] + D // 2, mask=ok[:, None], other=0.0).to(tl.float16), a1 * keep[:, None])
        m = top
    r = tl.load(vs_ptr + h) / l
    os = o_ptr + h * T * D + i[:, None] * D + d[None, :]
    tl.store(os, (a0 * r[:, None]).to(o_ptr.dtype.element_ty), mask=i[:, None] < T)
    tl.store(os + D // 2, (a1 * r[:, None]).to(o_ptr.dtype.element_ty), mask=i[:, None] < T)


@case
def heed_of_fp8_heads_of_256_in_halves():
    h, t, s, d = 8, 500, 777, 256
    q, k, v = f8(h, t, d), f8(h, s, d), f8(h, s, d)
    qs, ks, vs = (uniform(h) + 0.5 for _ in range(3))
    o = zeros(h, t, d, dtype="bfloat16")
    args = q, k, v, qs, ks, vs, o, t, s, d**-0.5 * 1.4426950408889634
    launched = run(wide_of_fp8, (cdiv(t, 64), h), args, o, BM=64, BN=32, D=d, num_warps=8, num_stages=2)
    by = lambda x, z: x.float() * z[:, None, None]  # noqa: E731
    return against(launched, lambda: attended(by(q, qs), by(k, ks), by(v, vs), d**-0.5))


@triton.jit
def group_gradients_of_keys(q_ptr, k_ptr, v_ptr, do_ptr, lse_ptr, delta_ptr, dk_ptr, dv_ptr, T, scale, G: tl.constexpr, W: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):
    # Gradients of keys and values that a group of heads shares, under a causal window: one loop over heads and blocks together.
    j = tl.program_id(0) * BN + tl.arange(0, BN)
    d, b = tl.arange(0, D), tl.arange(0, BM)
    kv = tl.program_id(1) * T * D
    k = tl.load(k_ptr + kv + j[:, None] * D + d[None, :])
    v = tl.load(v_ptr + kv + j[:, None] * D + d[None, :])
    dk = tl.zeros((BN, D), tl.float32)
    dv = tl.zeros((BN, D), tl.float32)
    first = tl.program_id(0) * BN // BM
    blocks = tl.minimum(cdiv_(tl.program_id(0) * BN + BN + W - 1, BM), T // BM) - first
    for step in range(G * blocks):
        head = tl.program_id(1) * G + step // blocks
        i = (first + step % blocks) * BM + b
        qt = tl.load(q_ptr + head * T * D + i[None, :] * D + d[:, None])
        lse = tl.load(lse_ptr + head * T + i)
        st = tl.dot(k, qt) * (scale * 1.4426950408889634)
        pt = tl.exp2(st - lse[None, :])
        pt = tl.where((i[None, :] >= j[:, None]) & (i[None, :] < j[:, None] + W), pt, 0.0)
        do = tl.load(do_ptr + head * T * D + i[:, None] * D + d[None, :])
        dv = tl.dot(pt.to(do.dtype), do, dv)
        dpt = tl.dot(v, tl.trans(do)) - tl.load(delta_ptr + head * T + i)[None, :]
        dk = tl.dot((pt * dpt).to(do.dtype), tl.trans(qt), dk)
    tl.store(dk_ptr + kv + j[:, None] * D + d[None, :], (dk * scale).to(dk_ptr.dtype.element_ty))
    tl.store(dv_ptr + kv + j[:, None] * D + d[None, :], dv.to(dv_ptr.dtype.element_ty))


@case
def heed_gradients_of_keys_of_three_heads_in_a_window():
    h, g, t, d, w = 4, 3, 1024, 64, 300
    q, do = (rand(h, g, t, d) for _ in range(2))
    k, v = rand(h, t, d), rand(h, t, d)
    i, j = arange(t)[:, None], arange(t)[None, :]
    keep = (j <= i) & (j > i - w)

    def scores():
        return (q.float() @ k.float()[:, None].mT * d**-0.5).masked_fill(~keep, float("-inf"))

    lse = scores().logsumexp(3) * 1.4426950408889634
    delta = ((scores().softmax(3) @ v.float()[:, None]) * do.float()).sum(3)
    dk, dv = zeros(h, t, d), zeros(h, t, d)
    args = q, k, v, do, lse, delta, dk, dv, t, d**-0.5
    launched = run(group_gradients_of_keys, (t // 64, h), args, (dk, dv), G=g, W=w, BM=32, BN=64, D=d, num_warps=4, num_stages=2)

    def reference():
        p = scores().softmax(3)
        ds = p * (do.float() @ v.float()[:, None].mT - delta[..., None])
        return (ds.mT @ q.float()).sum(1) * d**-0.5, (p.mT @ do.float()).sum(1)

    return against(launched, reference)


@triton.jit
def capped_gradients_of_queries(q_ptr, k_ptr, v_ptr, do_ptr, lse_ptr, delta_ptr, dq_ptr, T, S, scale, cap, BM: tl.constexpr, BN: tl.constexpr):
    # Heads of 96 as 64 and 32: two dots a product. The cap's slope, 1 - (s / cap)^2, comes from the capped score itself.
    i, b = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, BN)
    lo, hi = tl.arange(0, 64), 64 + tl.arange(0, 32)
    qa = tl.program_id(1) * T * 96 + i[:, None] * 96
    ok = i < T
    ql, qh = tl.load(q_ptr + qa + lo[None, :], mask=ok[:, None], other=0.0), tl.load(q_ptr + qa + hi[None, :], mask=ok[:, None], other=0.0)
    gl, gh = tl.load(do_ptr + qa + lo[None, :], mask=ok[:, None], other=0.0), tl.load(do_ptr + qa + hi[None, :], mask=ok[:, None], other=0.0)
    lse = tl.load(lse_ptr + tl.program_id(1) * T + i, mask=ok, other=0.0)
    delta = tl.load(delta_ptr + tl.program_id(1) * T + i, mask=ok, other=0.0)
    dl = tl.zeros((BM, 64), tl.float32)
    dh = tl.zeros((BM, 32), tl.float32)
    for j0 in range(0, S, BN):
        j = j0 + b
        ka = tl.program_id(1) * S * 96 + j[:, None] * 96
        kl = tl.load(k_ptr + ka + lo[None, :], mask=j[:, None] < S, other=0.0)
        kh = tl.load(k_ptr + ka + hi[None, :], mask=j[:, None] < S, other=0.0)
        x = (tl.dot(ql, kl.T) + tl.dot(qh, kh.T)) * (2.0 * scale / cap)
        t = 1.0 - 2.0 / (tl.exp(x) + 1.0)
        p = tl.where(j[None, :] < S, tl.exp(t * cap - lse[:, None]), 0.0)
        vl = tl.load(v_ptr + ka + lo[None, :], mask=j[:, None] < S, other=0.0)
        vh = tl.load(v_ptr + ka + hi[None, :], mask=j[:, None] < S, other=0.0)
        ds = p * (tl.dot(gl, vl.T) + tl.dot(gh, vh.T) - delta[:, None]) * (1.0 - t * t)
        dl = tl.dot(ds.to(kl.dtype), kl, dl)
        dh = tl.dot(ds.to(kl.dtype), kh, dh)
    tl.store(dq_ptr + qa + lo[None, :], (dl * scale).to(dq_ptr.dtype.element_ty), mask=ok[:, None])
    tl.store(dq_ptr + qa + hi[None, :], (dh * scale).to(dq_ptr.dtype.element_ty), mask=ok[:, None])


@case
def heed_gradients_of_queries_of_96_under_a_cap():
    h, t, s, d, cap = 8, 700, 900, 96, 5.0
    q, do = rand(h, t, d), rand(h, t, d)
    k, v = rand(h, s, d), rand(h, s, d)

    def soft():
        return torch.tanh(q.float() @ k.float().mT * d**-0.5 / cap)

    lse = (soft() * cap).logsumexp(2)
    delta = (((soft() * cap).softmax(2) @ v.float()) * do.float()).sum(2)
    dq = zeros(h, t, d)
    args = q, k, v, do, lse, delta, dq, t, s, d**-0.5, cap
    launched = run(capped_gradients_of_queries, (cdiv(t, 64), h), args, dq, BM=64, BN=32, num_warps=4, num_stages=2)

    def reference():
        x = soft()
        ds = (x * cap).softmax(2) * (do.float() @ v.float().mT - delta[..., None]) * (1 - x * x)
        return ds @ k.float() * d**-0.5

    return against(launched, reference)


@triton.jit
def prefix_then_causal(q_ptr, kt_ptr, v_ptr, prefix_ptr, o_ptr, T, scale, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):
    # Keys lie turned, tokens next to each other. A prefix is seen by all; behind it one sees what came before.
    b, h = tl.program_id(2), tl.program_id(1)
    prefix = tl.load(prefix_ptr + b)
    i, d = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, D)
    base = (b * tl.num_programs(1) + h) * T * D
    q = tl.load(q_ptr + base + i[:, None] * D + d[None, :], mask=i[:, None] < T, other=0.0)
    m = tl.full((BM,), -1e30, tl.float32)
    l = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    last = tl.minimum(tl.maximum(prefix, tl.program_id(0) * BM + BM), T)
    j0 = 0
    while j0 < last:
        j = j0 + tl.arange(0, BN)
        k = tl.load(kt_ptr + base + d[:, None] * T + j[None, :], mask=j[None, :] < T, other=0.0)
        s = tl.dot(q, k) * scale
        s += tl.where((j < prefix)[None, :] | ((j[None, :] <= i[:, None]) & (j < T)[None, :]), 0.0, float("-inf"))
        v = tl.load(v_ptr + base + j[:, None] * D + d[None, :], mask=j[:, None] < T, other=0.0)
        acc, m, l = _weigh(acc, m, l, s, v)
        j0 += BN
    tl.store(o_ptr + base + i[:, None] * D + d[None, :], (acc / l[:, None]).to(o_ptr.dtype.element_ty), mask=i[:, None] < T)


@case
def heed_of_turned_keys_with_a_prefix_all_see():
    b, h, t, d = 4, 6, 776, 64
    q, k, v = (rand(b, h, t, d) for _ in range(3))
    kt = k.mT.contiguous()
    prefix = ints(5, t, b)
    o = zeros(b, h, t, d)
    launched = run(prefix_then_causal, (cdiv(t, 64), h, b), (q, kt, v, prefix, o, t, d**-0.5 * 1.4426950408889634), o, BM=64, BN=64, D=d, num_warps=4)

    def reference():
        i, j = arange(t)[:, None], arange(t)[None, :]
        return attended(q, k, v, d**-0.5, (j <= i) | (j < prefix[:, None, None, None]))

    return against(launched, reference)


@triton.jit
def two_softmaxes_apart(q_ptr, k_ptr, v_ptr, lam_ptr, w_ptr, o_ptr, T, scale, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):
    # One softmax less lambda times another over the same values of twice the width, then a norm of each row.
    i, d, e = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, D), tl.arange(0, 2 * D)
    h = tl.program_id(1)
    base = h * T * 2 * D
    q1 = tl.load(q_ptr + base + i[:, None] * 2 * D + d[None, :])
    q2 = tl.load(q_ptr + base + i[:, None] * 2 * D + D + d[None, :])
    m1 = tl.full((BM,), -1e30, tl.float32)
    m2 = tl.full((BM,), -1e30, tl.float32)
    l1 = tl.zeros((BM,), tl.float32)
    l2 = tl.zeros((BM,), tl.float32)
    a1 = tl.zeros((BM, 2 * D), tl.float32)
    a2 = tl.zeros((BM, 2 * D), tl.float32)
    for j0 in range(0, tl.program_id(0) * BM + BM, BN):
        j = j0 + tl.arange(0, BN)
        v = tl.load(v_ptr + base + j[:, None] * 2 * D + e[None, :])
        seen = j[None, :] <= i[:, None]
        k1 = tl.load(k_ptr + base + j[None, :] * 2 * D + d[:, None])
        a1, m1, l1 = _weigh(a1, m1, l1, tl.where(seen, tl.dot(q1, k1) * scale, float("-inf")), v)
        k2 = tl.load(k_ptr + base + j[None, :] * 2 * D + D + d[:, None])
        a2, m2, l2 = _weigh(a2, m2, l2, tl.where(seen, tl.dot(q2, k2) * scale, float("-inf")), v)
    y = a1 / l1[:, None] - tl.load(lam_ptr + h) * a2 / l2[:, None]
    y = y * tl.rsqrt(tl.sum(y * y, 1) / (2 * D) + 1e-2)[:, None] * tl.load(w_ptr + e)[None, :]
    tl.store(o_ptr + base + i[:, None] * 2 * D + e[None, :], y.to(o_ptr.dtype.element_ty))


@case
def heed_twice_and_subtracted_then_normed():
    h, t, d = 12, 1024, 32
    q, k, v = (rand(h, t, 2 * d) for _ in range(3))
    lam, w = uniform(h) / 2, f32(2 * d)
    o = zeros(h, t, 2 * d)
    launched = run(two_softmaxes_apart, (t // 64, h), (q, k, v, lam, w, o, t, d**-0.5 * 1.4426950408889634), o, BM=64, BN=32, D=d, num_warps=4, num_stages=3)

    def reference():
        keep = arange(t)[None, :] <= arange(t)[:, None]
        y = attended(q[..., :d], k[..., :d], v, d**-0.5, keep) - lam[:, None, None] * attended(q[..., d:], k[..., d:], v, d**-0.5, keep)
        return y * (y.square().mean(2, keepdim=True) + 1e-2).rsqrt() * w

    return against(launched, reference)


@triton.jit
def buckets_of_distances(q_ptr, k_ptr, v_ptr, table_ptr, o_ptr, T, H, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):
    # Thirty-two biases a head: half of them for keys behind, eight near ones exact, eight that widen by logarithms.
    h = tl.program_id(1)
    i, d = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, D)
    base = h * T * D
    q = tl.load(q_ptr + base + i[:, None] * D + d[None, :])
    m = tl.full((BM,), -1e30, tl.float32)
    l = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for j0 in range(0, T, BN):
        j = j0 + tl.arange(0, BN)
        k = tl.load(k_ptr + base + j[:, None] * D + d[None, :])
        apart = j[None, :] - i[:, None]
        far = tl.abs(apart)
        wide = 8 + (31 - clz_(far | 8) - 3) * 2 + ((far >> (30 - clz_(far | 8))) & 1)
        bucket = tl.where(apart > 0, 16, 0) + tl.where(far < 8, far, tl.minimum(wide, 15))
        s = tl.dot(q, k.T) + tl.load(table_ptr + bucket * H + h)
        acc, m, l = _weigh(acc, m, l, s * 1.4426950408889634, tl.load(v_ptr + base + j[:, None] * D + d[None, :]))
    tl.store(o_ptr + base + i[:, None] * D + d[None, :], (acc / l[:, None]).to(o_ptr.dtype.element_ty))


@triton.jit
def clz_(x):
    # Leading zeros of positive integers below 2^23, by the exponent of the float.
    return 158 - (x.to(tl.float32).to(tl.int32, bitcast=True) >> 23)


@case
def heed_with_biases_by_buckets_of_distances():
    h, t, d = 6, 768, 64
    q, k, v, table = rand(h, t, d) / 8, rand(h, t, d), rand(h, t, d), f32(32, h)
    o = zeros(h, t, d)
    launched = run(buckets_of_distances, (t // 32, h), (q, k, v, table, o, t, h), o, BM=32, BN=64, D=d, num_warps=4, num_stages=2)

    def reference():
        apart = arange(t)[None, :] - arange(t)[:, None]
        far = apart.abs()
        top = torch.floor(torch.log2((far | 8).double() + 0.5)).int()
        wide = 8 + (top - 3) * 2 + ((far >> (top - 1)) & 1)
        bucket = torch.where(apart > 0, 16, 0) + torch.where(far < 8, far, wide.clamp(max=15))
        return attended(q, k, v, 1.0, bias=table[bucket.long()].permute(2, 0, 1))

    return against(launched, reference)


@triton.jit
def lazily_rescaled(q_ptr, k_ptr, v_ptr, o_ptr, T, scale, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):
    # Sums shrink only where some row's maximum has grown by more than eight powers of two: a branch that few blocks take.
    i, d = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, D)
    base = tl.program_id(1) * T * D
    q = tl.load(q_ptr + base + i[:, None] * D + d[None, :])
    m = tl.full((BM,), -1e30, tl.float32)
    l = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for j0 in range(0, T, BN):
        j = j0 + tl.arange(0, BN)
        s = tl.dot(q, tl.load(k_ptr + base + j[None, :] * D + d[:, None])) * scale
        top = tl.max(s, 1)
        if tl.max(top - m, 0) > 8.0:
            new = tl.maximum(m, top)
            shrink = tl.exp2(m - new)
            acc *= shrink[:, None]
            l *= shrink
            m = new
        p = tl.exp2(s - m[:, None])
        l += tl.sum(p, 1)
        acc = tl.dot(p.to(q.dtype), tl.load(v_ptr + base + j[:, None] * D + d[None, :]), acc)
    tl.store(o_ptr + base + i[:, None] * D + d[None, :], (acc / l[:, None]).to(o_ptr.dtype.element_ty))


@case
def heed_that_rescales_only_where_maxima_jump():
    h, t, d = 16, 1024, 64
    q, k, v = (rand(h, t, d, dtype="bfloat16") for _ in range(3))
    o = zeros(h, t, d, dtype="bfloat16")
    launched = run(lazily_rescaled, (t // 128, h), (q, k, v, o, t, d**-0.5 * 1.4426950408889634), o, BM=128, BN=64, D=d, num_warps=4, num_stages=3)
    return against(launched, lambda: attended(q, k, v, d**-0.5))


@triton.jit
def every_fourth(q_ptr, k_ptr, v_ptr, o_ptr, T, scale, STEP: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):
    # Tokens whose places leave the same remainder attend to each other, causally: rows that lie four apart in queries and keys.
    rest = tl.program_id(2)
    n, d = T // STEP, tl.arange(0, D)
    i = tl.program_id(0) * BM + tl.arange(0, BM)
    base = tl.program_id(1) * T * D + rest * D
    q = tl.load(q_ptr + base + i[:, None] * (STEP * D) + d[None, :], mask=(i < n)[:, None], other=0.0)
    ks = tl.make_block_ptr(k_ptr + base, (D, n), (1, STEP * D), (0, 0), (D, BN), (0, 1))
    vs = tl.make_block_ptr(v_ptr + base, (n, D), (STEP * D, 1), (0, 0), (BN, D), (1, 0))
    m = tl.full((BM,), -1e30, tl.float32)
    l = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for j0 in range(0, tl.minimum(tl.program_id(0) * BM + BM, n), BN):
        s = tl.dot(q, tl.load(ks, boundary_check=(1,), padding_option="zero")) * scale
        s = tl.where(i[:, None] >= (j0 + tl.arange(0, BN))[None, :], s, float("-inf"))
        acc, m, l = _weigh(acc, m, l, s, tl.load(vs, boundary_check=(0,), padding_option="zero"))
        ks = tl.advance(ks, (0, BN))
        vs = tl.advance(vs, (BN, 0))
    tl.store(o_ptr + base + i[:, None] * (STEP * D) + d[None, :], (acc / l[:, None]).to(o_ptr.dtype.element_ty), mask=(i < n)[:, None])


@case
def heed_of_every_fourth_token_by_block_pointers():
    h, t, d, step = 8, 4000, 64, 4
    q, k, v = (rand(h, t, d) for _ in range(3))
    o = zeros(h, t, d)
    args = q, k, v, o, t, d**-0.5 * 1.4426950408889634
    launched = run(every_fourth, (cdiv(t // step, 64), h, step), args, o, STEP=step, BM=64, BN=32, D=d, num_warps=4, num_stages=4)

    def reference():
        a, b, c = (z.reshape(h, t // step, step, d).transpose(1, 2) for z in (q, k, v))
        n = t // step
        y = attended(a, b, c, d**-0.5, arange(n)[None, :] <= arange(n)[:, None])
        return y.transpose(1, 2).reshape(h, t, d)

    return against(launched, reference)


@triton.jit
def normed_keys_and_gated(q_ptr, k_ptr, v_ptr, qw_ptr, kw_ptr, gate_ptr, o_ptr, T, H, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):
    # Queries and keys are normed where they are loaded, (T, H, D); no maximum is kept, since normed scores are bounded.
    h = tl.program_id(1)
    i, d = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, D)
    qw, kw = tl.load(qw_ptr + d), tl.load(kw_ptr + d)
    at = (i[:, None] * H + h) * D + d[None, :]
    q = tl.load(q_ptr + at, mask=i[:, None] < T, other=0.0).to(tl.float32)
    q = (q * tl.rsqrt(tl.sum(q * q, 1) / D + 1e-6)[:, None] * (qw * 1.4426950408889634 / tl.sqrt(D + 0.0))[None, :]).to(tl.bfloat16)
    l = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for j0 in range(0, T, BN):
        j = j0 + tl.arange(0, BN)
        kat = (j[:, None] * H + h) * D + d[None, :]
        k = tl.load(k_ptr + kat, mask=j[:, None] < T, other=0.0).to(tl.float32)
        k = (k * tl.rsqrt(tl.sum(k * k, 1) / D + 1e-6)[:, None] * kw[None, :]).to(tl.bfloat16)
        p = tl.where(j[None, :] < T, tl.exp2(tl.dot(q, tl.trans(k)) - 8.0), 0.0)
        l += tl.sum(p, 1)
        v = tl.load(v_ptr + kat, mask=j[:, None] < T, other=0.0)
        acc = tl.dot(p.to(tl.bfloat16), v, acc)
    gate = tl.sigmoid(tl.load(gate_ptr + at, mask=i[:, None] < T, other=0.0).to(tl.float32))
    tl.store(o_ptr + at, (acc / l[:, None] * gate).to(tl.bfloat16), mask=i[:, None] < T)


@case
def heed_of_keys_normed_in_the_loop_with_gated_outputs():
    t, h, d = 900, 8, 128
    q, k, v, gate = (rand(t, h, d, dtype="bfloat16") for _ in range(4))
    qw, kw = uniform(d) / 2 + 0.5, uniform(d) / 2 + 0.5
    o = zeros(t, h, d, dtype="bfloat16")
    launched = run(normed_keys_and_gated, (cdiv(t, 64), h), (q, k, v, qw, kw, gate, o, t, h), o, BM=64, BN=64, D=d, num_warps=8, num_stages=2)

    def reference():
        norm = lambda x, w: (x.float() * (x.float().square().mean(2, keepdim=True) + 1e-6).rsqrt() * w).transpose(0, 1)  # noqa: E731
        return attended(norm(q, qw), norm(k, kw), v.transpose(0, 1), d**-0.5).transpose(0, 1) * gate.float().sigmoid()

    return against(launched, reference)


@triton.jit
def parts_of_keys_joined(part_ptr, lse_ptr, o_ptr, out_lse_ptr, PARTS, ROWS, P: tl.constexpr, D: tl.constexpr, R: tl.constexpr):
    # Twenty-one parts at most of four rows in one tile of three axes; parts that saw nothing have -inf.
    p, r, d = tl.arange(0, P), tl.program_id(0) * R + tl.arange(0, R), tl.arange(0, D)
    ok = (p[:, None] < PARTS) & (r[None, :] < ROWS)
    lse = tl.load(lse_ptr + p[:, None] * ROWS + r[None, :], mask=ok, other=float("-inf"))
    top = tl.max(lse, 0)
    w = tl.where(lse == float("-inf"), 0.0, tl.exp(lse - top[None, :]))
    total = tl.sum(w, 0)
    x = tl.load(part_ptr + (p[:, None] * ROWS + r[None, :])[:, :, None] * D + d[None, None, :], mask=(ok & (w > 0.0))[:, :, None], other=0.0)
    y = tl.sum(x.to(tl.float32) * (w / total[None, :])[:, :, None], 0)
    tl.store(o_ptr + r[:, None] * D + d[None, :], y.to(o_ptr.dtype.element_ty), mask=r[:, None] < ROWS)
    tl.store(out_lse_ptr + r, top + tl.log(total), mask=r < ROWS)


@case
def heeds_of_21_parts_joined_d256():
    parts, rows, d = 21, 1500, 256
    part, lse = rand(parts, rows, d, dtype="bfloat16"), f32(parts, rows) * 2
    lse[1::3] = torch.where(uniform(7, rows) < 0.5, full(float("-inf"), 7, rows), lse[1::3])
    o, out = zeros(rows, d), zeros(rows, dtype="float32")
    launched = run(parts_of_keys_joined, (cdiv(rows, 4),), (part, lse, o, out, parts, rows), (o, out), P=32, D=d, R=4, num_warps=8)
    return against(launched, lambda: ((part.float() * lse.softmax(0)[..., None]).sum(0), lse.logsumexp(0)))


@triton.jit
def bias_gradient_of_a_batch(q_ptr, k_ptr, v_ptr, b_ptr, do_ptr, lse_ptr, delta_ptr, db_ptr, T, BATCH, scale, B: tl.constexpr, D: tl.constexpr):
    # The gradient of a bias that all samples share: a tile of it stays, the loop goes over samples, and nothing is added in memory.
    h = tl.program_id(2)
    i, j, d = tl.program_id(0) * B + tl.arange(0, B), tl.program_id(1) * B + tl.arange(0, B), tl.arange(0, D)
    bias = tl.load(b_ptr + h * T * T + i[:, None] * T + j[None, :]).to(tl.float32)
    db = tl.zeros((B, B), tl.float32)
    for n in range(BATCH):
        base = (n * tl.num_programs(2) + h) * T
        q = tl.load(q_ptr + (base + i)[:, None] * D + d[None, :])
        kt = tl.load(k_ptr + (base + j)[None, :] * D + d[:, None])
        p = tl.exp(tl.dot(q, kt) * scale + bias - tl.load(lse_ptr + base + i)[:, None])
        do = tl.load(do_ptr + (base + i)[:, None] * D + d[None, :])
        vt = tl.load(v_ptr + (base + j)[None, :] * D + d[:, None])
        db += p * (tl.dot(do, vt) - tl.load(delta_ptr + base + i)[:, None])
    tl.store(db_ptr + h * T * T + i[:, None] * T + j[None, :], db)


@case
def heed_gradient_of_a_bias_summed_over_samples():
    n, h, t, d = 24, 4, 256, 64
    q, k, v, do = (rand(n, h, t, d) for _ in range(4))
    bias = rand(h, t, t)

    def scores():
        return q.float() @ k.float().mT * d**-0.5 + bias.float()

    lse = scores().logsumexp(3)
    delta = ((scores().softmax(3) @ v.float()) * do.float()).sum(3)
    db = zeros(h, t, t, dtype="float32")
    args = q, k, v, bias, do, lse, delta, db, t, n, d**-0.5
    launched = run(bias_gradient_of_a_batch, (t // 32, t // 32, h), args, db, B=32, D=d, num_warps=2, num_stages=3)
    return against(launched, lambda: (scores().softmax(3) * (do.float() @ v.float().mT - delta[..., None])).sum(0))
