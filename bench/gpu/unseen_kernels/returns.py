"""Returns: attention backwards and over caches of all kinds, and chunked states there and back, with few warps and small chunks."""

import torch
import torch.nn.functional as F
import triton
import triton.language as tl

from .common import against, arange, case, cdiv, cleared, f32, ints, rand, run, uniform, viewed, zeros

LOG2E = 1.4426950408889634


def attend(q, k, v, scale, keep=None, bias=0.0, share=None):
    """Attention of (heads, T, D) in floats: results, and logarithms of sums; `share` multiplies weights."""
    s = q @ k.transpose(1, 2) * scale + bias
    s = s if keep is None else s.masked_fill(~keep, float("-inf"))
    w = s.softmax(2)
    return (w if share is None else w * share) @ v, s.logsumexp(2)


def gradients(q, k, v, do, scale, **more):
    """Gradients of `attend`."""
    q, k, v = (x.detach().float().requires_grad_() for x in (q, k, v))
    with torch.enable_grad():
        o, _ = attend(q, k, v, scale, **more)
        return torch.autograd.grad(o, (q, k, v), do.float())


def kept(q, k, v, do, scale, **more):
    """What backward passes get of forward ones: logarithms to base 2, and sums of gradients times results."""
    o, lse = attend(q.float(), k.float(), v.float(), scale, **more)
    return (lse * LOG2E).contiguous(), (o * do.float()).sum(2)


@triton.jit
def all_three_by_blocks_of_keys(q_ptr, k_ptr, v_ptr, do_ptr, lse_ptr, delta_ptr, dq_ptr, dk_ptr, dv_ptr, T, scale, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    # One pass: a block of keys sees the queries behind it, scores stand on their side, and queries' gradients are added to memory.
    first, head = tl.program_id(0) * BN, tl.program_id(1)
    base = head * T * D
    n, d = first + tl.arange(0, BN), tl.arange(0, D)
    at_keys = base + n[:, None] * D + d[None, :]
    k = tl.load(k_ptr + at_keys, mask=(n < T)[:, None], other=0.0)
    v = tl.load(v_ptr + at_keys, mask=(n < T)[:, None], other=0.0)
    dk = tl.zeros((BN, D), tl.float32)
    dv = tl.zeros((BN, D), tl.float32)
    for i in range(first, T, BM):
        m = i + tl.arange(0, BM)
        at = base + m[:, None] * D + d[None, :]
        q = tl.load(q_ptr + at, mask=(m < T)[:, None], other=0.0)
        do = tl.load(do_ptr + at, mask=(m < T)[:, None], other=0.0)
        lse = tl.load(lse_ptr + head * T + m, mask=m < T, other=float("inf"))
        delta = tl.load(delta_ptr + head * T + m, mask=m < T, other=0.0)
        p = tl.exp2(tl.dot(k, q.T) * (scale * 1.4426950408889634) - lse[None, :])
        p = tl.where(m[None, :] >= n[:, None], p, 0.0)
        dv = tl.dot(p.to(do.dtype), do, dv)
        ds = (p * (tl.dot(v, do.T) - delta[None, :])).to(q.dtype)
        dk = tl.dot(ds, q, dk)
        tl.atomic_add(dq_ptr + at, tl.dot(ds.T, k) * scale, mask=(m < T)[:, None], sem="relaxed")
    tl.store(dk_ptr + at_keys, dk * scale, mask=(n < T)[:, None])
    tl.store(dv_ptr + at_keys, dv, mask=(n < T)[:, None])


@case
def return_of_all_three_in_one_pass_causal_d64(heads=32, t=1400, d=64):
    q, k, v, do = (rand(heads, t, d) for _ in range(4))
    keep = arange(t)[:, None] >= arange(t)[None, :]
    lse, delta = kept(q, k, v, do, d**-0.5, keep=keep)
    dq, dk, dv = (zeros(heads, t, d, dtype="float32") for _ in range(3))
    args = q, k, v, do, lse, delta, dq, dk, dv, t, d**-0.5
    launched = run(all_three_by_blocks_of_keys, (cdiv(t, 128), heads), args, (dq, dk, dv), D=d, BM=32, BN=128, num_warps=8, num_stages=2)
    return against(cleared(launched, dq), lambda: gradients(q, k, v, do, d**-0.5, keep=keep))


@triton.jit
def _keys_part(dk, dv, k, v, n, begin, end, q_ptr, do_ptr, lse_ptr, delta_ptr, slope, scale, D: tl.constexpr, B: tl.constexpr, MASK: tl.constexpr):
    d = tl.arange(0, D)
    for i in range(begin, end, B):
        m = i + tl.arange(0, B)
        q = tl.load(q_ptr + m[None, :] * D + d[:, None])
        do = tl.load(do_ptr + m[:, None] * D + d[None, :])
        far = m[None, :] - n[:, None]
        p = tl.exp2(tl.dot(k, q) * scale - slope * far - tl.load(lse_ptr + m)[None, :])
        if MASK:
            p = tl.where(far >= 0, p, 0.0)
        dv += tl.dot(p.to(do.dtype), do)
        ds = p * (tl.dot(v, tl.trans(do)) - tl.load(delta_ptr + m)[None, :])
        dk += tl.dot(ds.to(q.dtype), tl.trans(q))
    return dk, dv


@triton.jit
def _queries_part(dq, q, do, lse, delta, m, begin, end, k_ptr, v_ptr, slope, scale, D: tl.constexpr, B: tl.constexpr, MASK: tl.constexpr):
    d = tl.arange(0, D)
    for j in range(begin, end, B):
        n = j + tl.arange(0, B)
        k = tl.load(k_ptr + n[None, :] * D + d[:, None])
        v = tl.load(v_ptr + n[None, :] * D + d[:, None])
        far = m[:, None] - n[None, :]
        p = tl.exp2(tl.dot(q, k) * scale - slope * far - lse[:, None])
        if MASK:
            p = tl.where(far >= 0, p, 0.0)
        ds = p * (tl.dot(do, v) - delta[:, None])
        dq += tl.dot(ds.to(k.dtype), tl.trans(k))
    return dq


@triton.jit
def sloped_keys_then_queries(q_ptr, k_ptr, v_ptr, do_ptr, lse_ptr, delta_ptr, slope_ptr, dq_ptr, dk_ptr, dv_ptr, T, scale, D: tl.constexpr, BIG: tl.constexpr, SMALL: tl.constexpr):
    # A program does a block of keys and then a block of queries; the diagonal goes in smaller steps, the rest without a mask.
    head, first = tl.program_id(1), tl.program_id(0) * BIG
    base = head.to(tl.int64) * T * D
    q_ptr += base
    k_ptr += base
    v_ptr += base
    do_ptr += base
    lse_ptr += head * T
    delta_ptr += head * T
    slope = tl.load(slope_ptr + head) * 1.4426950408889634
    scale2 = scale * 1.4426950408889634
    n, d = first + tl.arange(0, BIG), tl.arange(0, D)
    at = n[:, None] * D + d[None, :]
    k, v = tl.load(k_ptr + at), tl.load(v_ptr + at)
    dk = tl.zeros((BIG, D), tl.float32)
    dv = tl.zeros((BIG, D), tl.float32)
    dk, dv = _keys_part(dk, dv, k, v, n, first, first + BIG, q_ptr, do_ptr, lse_ptr, delta_ptr, slope, scale2, D, SMALL // 2, True)
    dk, dv = _keys_part(dk, dv, k, v, n, first + BIG, T, q_ptr, do_ptr, lse_ptr, delta_ptr, slope, scale2, D, SMALL, False)
    tl.store(dk_ptr + base + at, (dk * scale).to(dk_ptr.dtype.element_ty))
    tl.store(dv_ptr + base + at, dv.to(dv_ptr.dtype.element_ty))
    q, do = tl.load(q_ptr + at), tl.load(do_ptr + at)
    lse, delta = tl.load(lse_ptr + n), tl.load(delta_ptr + n)
    dq = tl.zeros((BIG, D), tl.float32)
    dq = _queries_part(dq, q, do, lse, delta, n, first, first + BIG, k_ptr, v_ptr, slope, scale2, D, SMALL // 2, True)
    dq = _queries_part(dq, q, do, lse, delta, n, 0, first, k_ptr, v_ptr, slope, scale2, D, SMALL, False)
    tl.store(dq_ptr + base + at, (dq * scale).to(dq_ptr.dtype.element_ty))


@case
def return_of_keys_then_queries_under_slopes_d64(heads=24, t=1536, d=64):
    q, k, v, do = (rand(heads, t, d) for _ in range(4))
    slope = 2.0 ** (-8.0 * (arange(heads).float() + 1) / heads)
    far = arange(t)[:, None] - arange(t)[None, :]
    more = {"keep": far >= 0, "bias": -slope[:, None, None] * far}
    lse, delta = kept(q, k, v, do, d**-0.5, **more)
    dq, dk, dv = (zeros(heads, t, d) for _ in range(3))
    args = q, k, v, do, lse, delta, slope, dq, dk, dv, t, d**-0.5
    launched = run(sloped_keys_then_queries, (t // 128, heads), args, (dq, dk, dv), D=d, BIG=128, SMALL=32, num_warps=4, num_stages=3)
    return against(launched, lambda: gradients(q, k, v, do, d**-0.5, **more))


@triton.jit
def dropped_gradients_of_shared_keys(q_ptr, k_ptr, v_ptr, do_ptr, lse_ptr, delta_ptr, dk_ptr, dv_ptr, T, S, scale, drop, seed, G: tl.constexpr, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    # Keys that four heads share: sums over heads and queries in one loop; weights that were dropped are drawn once more.
    shared, n, d = tl.program_id(1), tl.program_id(0) * BN + tl.arange(0, BN), tl.arange(0, D)
    at_keys = (shared * S + n)[:, None] * D + d[None, :]
    k = tl.load(k_ptr + at_keys, mask=(n < S)[:, None], other=0.0)
    v = tl.load(v_ptr + at_keys, mask=(n < S)[:, None], other=0.0)
    dk = tl.zeros((BN, D), tl.float32)
    dv = tl.zeros((BN, D), tl.float32)
    for step in range(G * (T // BM)):
        head = shared * G + step // (T // BM)
        row = head * T + step % (T // BM) * BM + tl.arange(0, BM)
        q = tl.load(q_ptr + row[:, None] * D + d[None, :])
        do = tl.load(do_ptr + row[:, None] * D + d[None, :])
        p = tl.exp2(tl.dot(q, k.T) * (scale * 1.4426950408889634) - tl.load(lse_ptr + row)[:, None])
        stays = tl.where(tl.rand(seed, row[:, None] * S + n[None, :]) > drop, 1.0 / (1.0 - drop), 0.0)
        dv = tl.dot((p * stays).to(do.dtype).T, do, dv)
        dp = tl.dot(do, v.T) * stays
        ds = p * (dp - tl.load(delta_ptr + row)[:, None])
        dk = tl.dot(ds.to(q.dtype).T, q, dk)
    tl.store(dk_ptr + at_keys, dk * scale, mask=(n < S)[:, None])
    tl.store(dv_ptr + at_keys, dv, mask=(n < S)[:, None])


def drawn(seed, offsets):
    """`tl.rand` of 64-bit whole numbers: ten rounds of Philox on four words."""
    low = 0xFFFFFFFF
    c = [offsets & low, *(torch.zeros_like(offsets) for _ in range(3))]
    k0, k1 = seed & low, seed >> 32
    for _ in range(10):
        a, b = c[0] * 0xD2511F53, c[2] * 0xCD9E8D57
        c = [((b >> 32) & low) ^ c[1] ^ k0, b & low, ((a >> 32) & low) ^ c[3] ^ k1, a & low]
        k0, k1 = (k0 + 0x9E3779B9) & low, (k1 + 0xBB67AE85) & low
    x = torch.where(c[0] >= 2**31, low - c[0], c[0])
    return x.float() * 4.6566127342e-10


@case
def return_of_keys_four_heads_share_with_dropped_weights_d64(shared=6, g=4, t=1024, s=900, d=64):
    heads, drop, seed = shared * g, 0.2, 4321
    q, do, k, v = rand(heads, t, d), rand(heads, t, d), rand(shared, s, d), rand(shared, s, d)
    offsets = arange(heads * t, "int64").reshape(heads, t, 1) * s + arange(s, "int64")
    share = (drawn(seed, offsets) > drop) / (1 - drop)
    kk, vv = k.repeat_interleave(g, 0), v.repeat_interleave(g, 0)
    lse, delta = kept(q, kk, vv, do, d**-0.5, share=share)
    dk, dv = zeros(shared, s, d, dtype="float32"), zeros(shared, s, d, dtype="float32")
    args = q, k, v, do, lse, delta, dk, dv, t, s, d**-0.5, drop, seed
    launched = run(dropped_gradients_of_shared_keys, (cdiv(s, 64), shared), args, (dk, dv), G=g, D=d, BM=64, BN=64, num_warps=4, num_stages=2)
    return against(launched, lambda: tuple(x.reshape(shared, g, s, d).sum(1) for x in gradients(q, kk, vv, do, d**-0.5, share=share)[1:]))


@triton.jit
def listed_gradients_of_queries(q_ptr, k_ptr, v_ptr, do_ptr, lse_ptr, delta_ptr, start_ptr, list_ptr, full_ptr, doc_ptr, dq_ptr, T, scale, D: tl.constexpr, B: tl.constexpr):
    # Blocks of keys come from a list; those that lie wholly in one document need no comparison, which a byte says.
    block, head = tl.program_id(0), tl.program_id(1)
    m, d = block * B + tl.arange(0, B), tl.arange(0, D)
    at = (head * T + m)[:, None] * D + d[None, :]
    q, do = tl.load(q_ptr + at), tl.load(do_ptr + at)
    lse, delta, mine = tl.load(lse_ptr + head * T + m), tl.load(delta_ptr + head * T + m), tl.load(doc_ptr + m)
    dq = tl.zeros((B, D), tl.float32)
    for e in range(tl.load(start_ptr + block), tl.load(start_ptr + block + 1)):
        n = tl.load(list_ptr + e) * B + tl.arange(0, B)
        keys = (head * T + n)[:, None] * D + d[None, :]
        k = tl.load(k_ptr + keys)
        p = tl.exp2(tl.dot(q, k.T) * (scale * 1.4426950408889634) - lse[:, None])
        if tl.load(full_ptr + e) == 0:
            p = tl.where((mine[:, None] == tl.load(doc_ptr + n)[None, :]) & (m[:, None] >= n[None, :]), p, 0.0)
        dp = tl.dot(do, tl.load(v_ptr + keys).T)
        dq = tl.dot((p * (dp - delta[:, None])).to(k.dtype), k, dq)
    tl.store(dq_ptr + at, (dq * scale).to(dq_ptr.dtype.element_ty))


@case
def return_of_queries_over_listed_blocks_of_documents_d128(heads=12, t=2048, docs=7, d=128):
    b = 64
    doc = ints(0, docs, t).sort()[0].to(torch.int32)
    keep = (doc[:, None] == doc[None, :]) & (arange(t)[:, None] >= arange(t)[None, :])
    tiles = keep.reshape(t // b, b, t // b, b).sum((1, 3)).cpu()
    start = F.pad((tiles > 0).sum(1).cumsum(0), (1, 0)).to(torch.int32).cuda()
    at = (tiles > 0).nonzero()
    blocks, whole = at[:, 1].to(torch.int32).cuda(), (tiles[at[:, 0], at[:, 1]] == b * b).to(torch.uint8).cuda()
    q, k, v, do = (rand(heads, t, d, dtype="bfloat16") for _ in range(4))
    lse, delta = kept(q, k, v, do, d**-0.5, keep=keep)
    dq = zeros(heads, t, d, dtype="bfloat16")
    args = q, k, v, do, lse, delta, start, blocks, whole, doc, dq, t, d**-0.5
    launched = run(listed_gradients_of_queries, (t // b, heads), args, dq, D=d, B=b, num_warps=4, num_stages=3)
    return against(launched, lambda: gradients(q, k, v, do, d**-0.5, keep=keep)[0])


@triton.jit
def packed_gradients_of_keys(q_ptr, k_ptr, v_ptr, do_ptr, lse_ptr, delta_ptr, cu_ptr, dk_ptr, dv_ptr, H, TOTAL, scale, WINDOW, D: tl.constexpr, BD: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    # Sequences behind each other, tokens before heads; a window back, and heads of 80 in 128 lanes.
    head, seq = tl.program_id(1), tl.program_id(2)
    begin, end = tl.load(cu_ptr + seq), tl.load(cu_ptr + seq + 1)
    first = begin + tl.program_id(0) * BN
    if first >= end:
        return
    n, d = first + tl.arange(0, BN), tl.arange(0, BD)
    wide = (d < D)[None, :]
    at_keys = (n * H + head)[:, None] * D + d[None, :]
    k = tl.load(k_ptr + at_keys, mask=(n < end)[:, None] & wide, other=0.0)
    v = tl.load(v_ptr + at_keys, mask=(n < end)[:, None] & wide, other=0.0)
    dk = tl.zeros((BN, BD), tl.float32)
    dv = tl.zeros((BN, BD), tl.float32)
    for i in range(first, tl.minimum(end, first + BN + WINDOW), BM):
        m = i + tl.arange(0, BM)
        at = (m * H + head)[:, None] * D + d[None, :]
        q = tl.load(q_ptr + at, mask=(m < end)[:, None] & wide, other=0.0)
        do = tl.load(do_ptr + at, mask=(m < end)[:, None] & wide, other=0.0)
        lse = tl.load(lse_ptr + head * TOTAL + m, mask=m < end, other=0.0)
        delta = tl.load(delta_ptr + head * TOTAL + m, mask=m < end, other=0.0)
        far = m[:, None] - n[None, :]
        p = tl.exp2(tl.dot(q, k.T) * (scale * 1.4426950408889634) - lse[:, None])
        p = tl.where((far >= 0) & (far < WINDOW) & (m < end)[:, None], p, 0.0)
        ds = p * (tl.dot(do, v.T) - delta[:, None])
        dv = tl.dot(p.to(do.dtype).T, do, dv)
        dk = tl.dot(ds.to(q.dtype).T, q, dk)
    tl.store(dk_ptr + at_keys, (dk * scale).to(dk_ptr.dtype.element_ty), mask=(n < end)[:, None] & wide)
    tl.store(dv_ptr + at_keys, dv.to(dv_ptr.dtype.element_ty), mask=(n < end)[:, None] & wide)


@case
def return_of_keys_of_packed_sequences_in_windows_d80(heads=12, lengths=(600, 333, 64, 801, 200), window=256, d=80):
    total = sum(lengths)
    cu = torch.tensor([sum(lengths[:i]) for i in range(len(lengths) + 1)], dtype=torch.int32, device="cuda")
    seq = torch.cat([full_of(i, n) for i, n in enumerate(lengths)])
    far = arange(total)[:, None] - arange(total)[None, :]
    keep = (seq[:, None] == seq[None, :]) & (far >= 0) & (far < window)
    q, k, v, do = (rand(total, heads, d) for _ in range(4))
    lse, delta = kept(*(x.transpose(0, 1) for x in (q, k, v, do)), d**-0.5, keep=keep)
    dk, dv = zeros(total, heads, d), zeros(total, heads, d)
    args = q, k, v, do, lse, delta, cu, dk, dv, heads, total, d**-0.5, window
    launched = run(packed_gradients_of_keys, (cdiv(max(lengths), 64), heads, len(lengths)), args, (dk, dv), D=d, BD=128, BM=32, BN=64, num_warps=4, num_stages=2)

    def reference():
        found = gradients(*(x.transpose(0, 1) for x in (q, k, v, do)), d**-0.5, keep=keep)
        return tuple(x.transpose(0, 1) for x in found[1:])

    return against(launched, reference)


def full_of(value, n):
    return torch.full((n,), value, device="cuda", dtype=torch.int32)


@triton.jit
def decode_pages_of_fp8_in_splits(q_ptr, k_ptr, v_ptr, ks_ptr, vs_ptr, table_ptr, len_ptr, part_ptr, lse_ptr, TABLE, H, scale, SPLITS: tl.constexpr, G: tl.constexpr, P: tl.constexpr, D: tl.constexpr, BN: tl.constexpr):
    # Bytes of pages are taken for fp8; a scale a token and head goes to scores and to weights. Four pages a step.
    seq, h, split = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    length = tl.load(len_ptr + seq)
    per = tl.cdiv(tl.cdiv(length, SPLITS), BN) * BN
    begin = split * per
    end = tl.minimum(begin + per, length)
    g, n, d = tl.arange(0, 16), tl.arange(0, BN), tl.arange(0, D)
    q = tl.load(q_ptr + ((seq * H + h) * G + g)[:, None] * D + d[None, :], mask=(g < G)[:, None], other=0.0)
    top = tl.full((16,), -1e30, tl.float32)
    total = tl.zeros((16,), tl.float32)
    acc = tl.zeros((16, D), tl.float32)
    for n0 in range(begin, end, BN):
        ok = n0 + n < end
        page = tl.load(table_ptr + seq * TABLE + (n0 + n) // P, mask=ok, other=0)
        slot = (page * P + (n0 + n) % P) * H + h
        k = tl.load(k_ptr + slot[None, :] * D + d[:, None], mask=ok[None, :], other=0).to(tl.float8e4nv, bitcast=True)
        v = tl.load(v_ptr + slot[:, None] * D + d[None, :], mask=ok[:, None], other=0).to(tl.float8e4nv, bitcast=True)
        s = tl.dot(q, k.to(q.dtype)) * (tl.load(ks_ptr + slot, mask=ok, other=0.0) * scale)[None, :]
        s = tl.where(ok[None, :], s, float("-inf"))
        new = tl.maximum(top, tl.max(s, 1))
        w = tl.exp2(s - new[:, None])
        keep = tl.exp2(top - new)
        total = total * keep + tl.sum(w, 1)
        w *= tl.load(vs_ptr + slot, mask=ok, other=0.0)[None, :]
        acc = acc * keep[:, None] + tl.dot(w.to(q.dtype), v.to(q.dtype))
        top = new
    at = ((seq * H + h) * SPLITS + split) * G + g
    total = tl.where(total > 0.0, total, 1.0)
    tl.store(part_ptr + at[:, None] * D + d[None, :], acc / total[:, None], mask=(g < G)[:, None])
    tl.store(lse_ptr + at, top + tl.log2(total), mask=g < G)


@case
def return_to_pages_of_fp8_a_scale_a_token_in_splits(seqs=24, h=4, g=8, pages=200, splits=5):
    p, d = 16, 128
    q = rand(seqs, h, g, d, dtype="bfloat16")
    k, v = (rand(seqs * pages, p, h, d).to(torch.float8_e4m3fn).view(torch.uint8) for _ in range(2))
    ks, vs = uniform(seqs * pages, p, h) + 0.5, uniform(seqs * pages, p, h) + 0.5
    table = torch.randperm(seqs * pages).to(torch.int32).reshape(seqs, pages).cuda()
    lengths = ints(1, pages * p, seqs)
    part, lse = zeros(seqs, h, splits, g, d, dtype="float32"), zeros(seqs, h, splits, g, dtype="float32")
    args = q, k, v, ks, vs, table, lengths, part, lse, pages, h, d**-0.5 * LOG2E
    launched = run(decode_pages_of_fp8_in_splits, (seqs, h, splits), args, (part, lse), SPLITS=splits, G=g, P=p, D=d, BN=64, num_warps=4, num_stages=3)

    def joined(outs):
        share = (outs[1] - outs[1].amax(2, keepdim=True)).exp2()
        return (outs[0] * (share / share.sum(2, keepdim=True))[..., None]).sum(2)

    def reference():
        kk, vv = ((x.view(torch.float8_e4m3fn).float() * s[..., None])[table.long()].reshape(seqs, pages * p, h, d) for x, s in ((k, ks), (v, vs)))
        s = torch.einsum("shgd,slhd->shgl", q.float(), kk) * d**-0.5
        s = s.masked_fill(arange(pages * p) >= lengths[:, None, None, None], float("-inf"))
        return torch.einsum("shgl,slhd->shgd", s.softmax(3), vv)

    return against(viewed(launched, joined), reference)


@triton.jit
def fresh_tokens_after_cached_ones(q_ptr, k_ptr, v_ptr, kc_ptr, vc_ptr, table_ptr, cu_ptr, old_ptr, o_ptr, scale, TABLE, HQ, HK, X: tl.constexpr, P: tl.constexpr, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    # Two loops: cached keys in eighths of heads and turned values by pages, then the fresh ones up to the diagonal.
    tile, h, seq = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    begin, old = tl.load(cu_ptr + seq), tl.load(old_ptr + seq)
    fresh = tl.load(cu_ptr + seq + 1) - begin
    if tile * BM >= fresh:
        return
    m, n, d = tile * BM + tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, D)
    kv = h // (HQ // HK)
    rows = ((begin + m) * HQ + h)[:, None] * D + d[None, :]
    q = tl.load(q_ptr + rows, mask=(m < fresh)[:, None], other=0.0)
    top = tl.full((BM,), -1e30, tl.float32)
    total = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for n0 in range(0, old, BN):
        ok = n0 + n < old
        page = tl.load(table_ptr + seq * TABLE + (n0 + n) // P, mask=ok, other=0).to(tl.int64)
        place = (n0 + n) % P
        base = (page * HK + kv) * (D * P)
        k = tl.load(kc_ptr + (base + place * X)[None, :] + (d // X * (P * X) + d % X)[:, None], mask=ok[None, :], other=0.0)
        s = tl.where(ok[None, :], tl.dot(q, k) * scale, float("-inf"))
        new = tl.maximum(top, tl.max(s, 1))
        w = tl.exp2(s - new[:, None])
        keep = tl.exp2(top - new)
        v = tl.load(vc_ptr + (base + place)[:, None] + (d * P)[None, :], mask=ok[:, None], other=0.0)
        acc = tl.dot(w.to(v.dtype), v, acc * keep[:, None])
        total = total * keep + tl.sum(w, 1)
        top = new
    for n0 in range(0, tl.minimum(fresh, (tile + 1) * BM), BN):
        ok = n0 + n < fresh
        at = (begin + n0 + n) * HK + kv
        k = tl.load(k_ptr + at[None, :] * D + d[:, None], mask=ok[None, :], other=0.0)
        s = tl.where((n0 + n)[None, :] <= m[:, None], tl.dot(q, k) * scale, float("-inf"))
        new = tl.maximum(top, tl.max(s, 1))
        w = tl.exp2(s - new[:, None])
        keep = tl.exp2(top - new)
        v = tl.load(v_ptr + at[:, None] * D + d[None, :], mask=ok[:, None], other=0.0)
        acc = tl.dot(w.to(v.dtype), v, acc * keep[:, None])
        total = total * keep + tl.sum(w, 1)
        top = new
    tl.store(o_ptr + rows, (acc / total[:, None]).to(o_ptr.dtype.element_ty), mask=(m < fresh)[:, None])


@case
def return_of_fresh_tokens_after_pages_in_eighths_d128(seqs=8, hq=12, hk=3, pages=40, most=200):
    p, x, d = 16, 8, 128
    fresh, old = ints(1, most, seqs), ints(0, pages * p, seqs)
    cu = F.pad(fresh.cumsum(0), (1, 0)).to(torch.int32)
    total = seqs * most
    q, k, v, o = rand(total, hq, d), rand(total, hk, d), rand(total, hk, d), zeros(total, hq, d)
    kc, vc = rand(seqs * pages, hk, d // x, p, x), rand(seqs * pages, hk, d, p)
    table = torch.randperm(seqs * pages).to(torch.int32).reshape(seqs, pages).cuda()
    args = q, k, v, kc, vc, table, cu, old, o, d**-0.5 * LOG2E, pages, hq, hk
    launched = run(fresh_tokens_after_cached_ones, (cdiv(most, 64), hq, seqs), args, o, X=x, P=p, D=d, BM=64, BN=64, num_warps=8, num_stages=2)

    def reference():
        out = zeros(total, hq, d, dtype="float32")
        for i, (b, n, had) in enumerate(zip(cu.tolist(), fresh.tolist(), old.tolist())):
            kk = kc[table[i].long()].permute(0, 3, 1, 2, 4).reshape(-1, hk, d)[:had]
            vv = vc[table[i].long()].permute(0, 3, 1, 2).reshape(-1, hk, d)[:had]
            kk, vv = (torch.cat(y).repeat_interleave(hq // hk, 1).float().transpose(0, 1) for y in ((kk, k[b : b + n]), (vv, v[b : b + n])))
            keep = arange(had + n)[None, :] <= had + arange(n)[:, None]
            out[b : b + n] = attend(q[b : b + n].float().transpose(0, 1), kk, vv, d**-0.5, keep=keep)[0].transpose(0, 1)
        return out

    return against(launched, reference)


@triton.jit
def shared_prefix_joined(q_ptr, k_ptr, v_ptr, other_ptr, other_lse_ptr, o_ptr, lse_ptr, ROWS, S, scale, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    # What all requests begin with is asked by all of them as one tile of rows; joined with what each found in its own tokens.
    h, m = tl.program_id(1), tl.program_id(0) * BM + tl.arange(0, BM)
    n, d = tl.arange(0, BN), tl.arange(0, D)
    rows = h * ROWS + m
    q = tl.load(q_ptr + rows[:, None] * D + d[None, :], mask=(m < ROWS)[:, None], other=0.0)
    ks = k_ptr + h * S * D + n[None, :] * D + d[:, None]
    vs = v_ptr + h * S * D + n[:, None] * D + d[None, :]
    top = tl.full((BM,), -1e30, tl.float32)
    total = tl.full((BM,), 0.0, tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for n0 in range(0, S, BN):
        k = tl.load(ks, mask=(n0 + n < S)[None, :], other=0.0)
        s = tl.dot(q, k) * scale + tl.where(n0 + n < S, 0.0, -1e30)[None, :]
        new = tl.maximum(top, tl.max(s, 1))
        w = tl.exp2(s - new[:, None])
        keep = tl.exp2(top - new)
        acc = tl.dot(w.to(q.dtype), tl.load(vs, mask=(n0 + n < S)[:, None], other=0.0), acc * keep[:, None])
        total = total * keep + tl.sum(w, 1)
        top = new
        ks += BN * D
        vs += BN * D
    mine = top + tl.log2(total)
    theirs = tl.load(other_lse_ptr + rows, mask=m < ROWS, other=0.0)
    both = tl.maximum(mine, theirs)
    a, b = tl.exp2(mine - both), tl.exp2(theirs - both)
    other = tl.load(other_ptr + rows[:, None] * D + d[None, :], mask=(m < ROWS)[:, None], other=0.0)
    o = (acc * (a / total)[:, None] + other * b[:, None]) / (a + b)[:, None]
    tl.store(o_ptr + rows[:, None] * D + d[None, :], o.to(o_ptr.dtype.element_ty), mask=(m < ROWS)[:, None])
    tl.store(lse_ptr + rows, both + tl.log2(a + b), mask=m < ROWS)


@case
def return_to_a_prefix_of_all_requests_joined_with_their_own(h=16, requests=200, g=4, s=3000, d=128):
    n = requests * g
    q, k, v = rand(h, n, d), rand(h, s, d), rand(h, s, d)
    other, other_lse = f32(h, n, d), f32(h, n) + 10
    o, lse = zeros(h, n, d), zeros(h, n, dtype="float32")
    args = q, k, v, other, other_lse, o, lse, n, s, d**-0.5 * LOG2E
    launched = run(shared_prefix_joined, (cdiv(n, 128), h), args, (o, lse), D=d, BM=128, BN=64, num_warps=8, num_stages=3)

    def reference():
        found, mine = attend(q.float(), k.float(), v.float(), d**-0.5)
        both = torch.logaddexp2(mine * LOG2E, other_lse)
        return found * (mine * LOG2E - both).exp2()[..., None] + other * (other_lse - both).exp2()[..., None], both

    return against(launched, reference)


@triton.jit
def trees_with_bits(q_ptr, k_ptr, v_ptr, bit_ptr, past_ptr, o_ptr, LONG, H, scale, G: tl.constexpr, W: tl.constexpr, D: tl.constexpr, BN: tl.constexpr):
    # The 32 tokens of a tree, of all heads that share keys, are a tile; past tokens all see, of the tree those in a word of bits.
    h, seq = tl.program_id(0), tl.program_id(1)
    r, n, d = tl.arange(0, G * W), tl.arange(0, BN), tl.arange(0, D)
    token, head = r // G, h * G + r % G
    rows = ((seq * W + token) * (H * G) + head)[:, None] * D + d[None, :]
    q = (tl.load(q_ptr + rows).to(tl.float32) * scale).to(q_ptr.dtype.element_ty)
    bits = tl.load(bit_ptr + seq * W + token)
    past = tl.load(past_ptr + seq)
    top = tl.full((G * W,), -1e30, tl.float32)
    total = tl.zeros((G * W,), tl.float32)
    acc = tl.zeros((G * W, D), tl.float32)
    for n0 in range(0, past + W, BN):
        at = ((seq * LONG + n0 + n) * H + h) * D
        ok = n0 + n < past + W
        k = tl.load(k_ptr + at[None, :] + d[:, None], mask=ok[None, :], other=0.0)
        s = tl.dot(q, k)
        if n0 + BN > past:
            place = tl.minimum(tl.maximum(n0 + n - past, 0), 31)
            seen = (n0 + n < past)[None, :] | (((bits[:, None] >> place[None, :]) & 1) != 0)
            s = tl.where(seen & ok[None, :], s, float("-inf"))
        new = tl.maximum(top, tl.max(s, 1))
        w = tl.exp2(s - new[:, None])
        keep = tl.exp2(top - new)
        v = tl.load(v_ptr + at[:, None] + d[None, :], mask=ok[:, None], other=0.0)
        acc = tl.dot(w.to(v.dtype), v, acc * keep[:, None])
        total = total * keep + tl.sum(w, 1)
        top = new
    tl.store(o_ptr + rows, (acc / total[:, None]).to(o_ptr.dtype.element_ty))


@case
def return_of_trees_of_32_tokens_with_words_of_bits_d64(seqs=20, h=4, g=4, long=1500, d=64):
    w = 32
    parent = [max(0, i // 2 - i % 3) for i in range(w)]
    words = [1]
    for i in range(1, w):
        words.append(words[parent[i]] | 1 << i)
    bits = torch.tensor([x - (1 << 32) if x >> 31 else x for x in words], dtype=torch.int32, device="cuda").expand(seqs, w).contiguous()
    past = ints(1, long - w, seqs)
    q, k, v, o = rand(seqs, w, h * g, d), rand(seqs, long, h, d), rand(seqs, long, h, d), zeros(seqs, w, h * g, d)
    args = q, k, v, bits, past, o, long, h, d**-0.5 * LOG2E
    launched = run(trees_with_bits, (h, seqs), args, o, G=g, W=w, D=d, BN=32, num_warps=4, num_stages=4)

    def reference():
        seen = ((bits[0].long()[:, None] >> arange(w)) & 1) > 0
        out = []
        for i, had in enumerate(past.tolist()):
            keep = torch.cat([torch.ones(w, had, dtype=torch.bool, device=q.device), seen], 1)
            kk, vv = (x[i, : had + w].float().repeat_interleave(g, 1).transpose(0, 1) for x in (k, v))
            out.append(attend(q[i].float().transpose(0, 1), kk, vv, d**-0.5, keep=keep)[0].transpose(0, 1))
        return torch.stack(out)

    return against(launched, reference)


@triton.jit
def latent_of_fp8_in_halves(q_ptr, c_ptr, s_ptr, turned_ptr, len_ptr, part_ptr, lse_ptr, LONG, scale, SPLITS: tl.constexpr, H: tl.constexpr, BN: tl.constexpr):
    # 512 latent numbers of fp8 in halves with a scale each, and 64 turned ones: three dots for scores, two for what comes out.
    seq, split = tl.program_id(0), tl.program_id(1)
    h, n, d, r = tl.arange(0, H), tl.arange(0, BN), tl.arange(0, 256), tl.arange(0, 64)
    row = (seq * H + h)[:, None] * 576
    q0 = tl.load(q_ptr + row + d[None, :])
    q1 = tl.load(q_ptr + row + 256 + d[None, :])
    qr = tl.load(q_ptr + row + 512 + r[None, :])
    length = tl.load(len_ptr + seq)
    per = tl.cdiv(length, SPLITS)
    end = tl.minimum(length, (split + 1) * per)
    top = tl.full((H,), -1e30, tl.float32)
    total = tl.zeros((H,), tl.float32)
    left = tl.zeros((H, 256), tl.float32)
    right = tl.zeros((H, 256), tl.float32)
    for n0 in range(split * per, end, BN):
        ok = n0 + n < end
        token = seq * LONG + n0 + n
        c0 = tl.load(c_ptr + token[:, None] * 512 + d[None, :], mask=ok[:, None], other=0.0).to(q0.dtype)
        c1 = tl.load(c_ptr + token[:, None] * 512 + 256 + d[None, :], mask=ok[:, None], other=0.0).to(q0.dtype)
        s0, s1 = tl.load(s_ptr + token * 2, mask=ok, other=0.0), tl.load(s_ptr + token * 2 + 1, mask=ok, other=0.0)
        turned = tl.load(turned_ptr + token[:, None] * 64 + r[None, :], mask=ok[:, None], other=0.0)
        s = tl.dot(q0, c0.T) * s0[None, :] + tl.dot(q1, c1.T) * s1[None, :]
        s = tl.where(ok[None, :], tl.dot(qr, turned.T, s) * scale, float("-inf"))
        new = tl.maximum(top, tl.max(s, 1))
        w = tl.exp2(s - new[:, None])
        keep = tl.exp2(top - new)
        total = total * keep + tl.sum(w, 1)
        left = tl.dot((w * s0[None, :]).to(c0.dtype), c0, left * keep[:, None])
        right = tl.dot((w * s1[None, :]).to(c1.dtype), c1, right * keep[:, None])
        top = new
    total = tl.where(total > 0.0, total, 1.0)
    at = (seq * SPLITS + split) * H + h
    tl.store(part_ptr + at[:, None] * 512 + d[None, :], left / total[:, None])
    tl.store(part_ptr + at[:, None] * 512 + 256 + d[None, :], right / total[:, None])
    tl.store(lse_ptr + at, top + tl.log2(total))


@case
def return_to_latent_fp8_of_576_in_halves_with_scales(seqs=32, h=16, long=1600, splits=4):
    q = rand(seqs, h, 576, dtype="bfloat16")
    c, s, turned = rand(seqs, long, 512).to(torch.float8_e4m3fn), uniform(seqs, long, 2) + 0.5, rand(seqs, long, 64, dtype="bfloat16")
    lengths, scale = ints(1, long + 1, seqs), 576**-0.5
    part, lse = zeros(seqs, splits, h, 512, dtype="float32"), zeros(seqs, splits, h, dtype="float32")
    args = q, c, s, turned, lengths, part, lse, long, scale * LOG2E
    launched = run(latent_of_fp8_in_halves, (seqs, splits), args, (part, lse), SPLITS=splits, H=h, BN=32, num_warps=4, num_stages=2)

    def joined(outs):
        share = (outs[1] - outs[1].amax(1, keepdim=True)).exp2()
        return (outs[0] * (share / share.sum(1, keepdim=True))[..., None]).sum(1)

    def reference():
        latent = c.float() * s.repeat_interleave(256, 2)
        scores = torch.einsum("shd,sld->shl", q.float(), torch.cat([latent, turned.float()], 2)) * scale
        scores = scores.masked_fill(arange(long) >= lengths[:, None, None], float("-inf"))
        return torch.einsum("shl,sld->shd", scores.softmax(2), latent)

    return against(viewed(launched, joined), reference)


@triton.jit
def gates_a_channel_back(q_ptr, k_ptr, g_ptr, da_ptr, dq_ptr, dk_ptr, dg_ptr, C: tl.constexpr, K: tl.constexpr):
    # Inside a chunk: gradients of scores that fade by channels go back to queries and keys, token by token, and to sums of gates.
    chunk = tl.program_id(0).to(tl.int64)
    c, d = tl.arange(0, C), tl.arange(0, K)
    at = chunk * C * K + c[:, None] * K + d[None, :]
    q, k, g = tl.load(q_ptr + at).to(tl.float32), tl.load(k_ptr + at).to(tl.float32), tl.load(g_ptr + at)
    dq = tl.zeros((C, K), tl.float32)
    dk = tl.zeros((C, K), tl.float32)
    for j in range(C):
        row = chunk * C * K + j * K + d
        qj, kj = tl.load(q_ptr + row).to(tl.float32), tl.load(k_ptr + row).to(tl.float32)
        gj = tl.load(g_ptr + row)
        column = tl.load(da_ptr + (chunk * C + c) * C + j)
        line = tl.load(da_ptr + (chunk * C + j) * C + c)
        fade = tl.exp(-tl.abs(g - gj[None, :]))
        dq += tl.where((c >= j)[:, None], column[:, None] * kj[None, :] * fade, 0.0)
        dk += tl.where((c <= j)[:, None], line[:, None] * qj[None, :] * fade, 0.0)
    tl.store(dq_ptr + at, dq)
    tl.store(dk_ptr + at, dk)
    tl.store(dg_ptr + at, tl.cumsum(q * dq - k * dk, 0, reverse=True))


@case
def return_through_chunks_of_32_gated_a_channel_two_warps(chunks=3000, c=32, d=64):
    q, k = rand(chunks, c, d, dtype="bfloat16"), rand(chunks, c, d, dtype="bfloat16")
    g = -(uniform(chunks, c, d) / 4).cumsum(1)
    da = f32(chunks, c, c).tril()
    dq, dk, dg = (zeros(chunks, c, d, dtype="float32") for _ in range(3))
    launched = run(gates_a_channel_back, (chunks,), (q, k, g, da, dq, dk, dg), (dq, dk, dg), C=c, K=d, num_warps=2)

    def reference():
        up, down = g.exp(), (-g).exp()
        a, b = (da @ (k.float() * down)) * up, (da.transpose(1, 2) @ (q.float() * up)) * down
        return a, b, (q.float() * a - k.float() * b).flip(1).cumsum(1).flip(1)

    return against(launched, reference)


@triton.jit
def _inverse_of_16(a, i, j):
    # Of one plus a strictly lower triangle, row by row: what was found times the row, negated.
    x = tl.where(i[:, None] == j[None, :], 1.0, 0.0)
    for r in range(1, 16):
        line = tl.sum(tl.where((i == r)[:, None], a, 0.0), 0)
        x = tl.where((i == r)[:, None], x - tl.sum(line[:, None] * x, 0)[None, :], x)
    return x


@triton.jit
def gated_deltas_solved(k_ptr, v_ptr, g_ptr, beta_ptr, w_ptr, u_ptr, T, C: tl.constexpr, D: tl.constexpr):
    # Chunks of 32 in two blocks of 16, each inverted by substitution; the block between them by two dots; then w and u.
    base = tl.program_id(1) * T + tl.program_id(0) * 32
    i, j, d = tl.arange(0, 16), tl.arange(0, 16), tl.arange(0, D)
    upper, lower = base + i, base + 16 + i
    k0 = tl.load(k_ptr + upper[:, None] * D + d[None, :])
    k1 = tl.load(k_ptr + lower[:, None] * D + d[None, :])
    g0, g1 = tl.load(g_ptr + upper), tl.load(g_ptr + lower)
    b0, b1 = tl.load(beta_ptr + upper), tl.load(beta_ptr + lower)
    below = i[:, None] > j[None, :]
    a00 = tl.where(below, tl.dot(k0, k0.T) * tl.exp(g0[:, None] - g0[None, :]) * b0[:, None], 0.0)
    a11 = tl.where(below, tl.dot(k1, k1.T) * tl.exp(g1[:, None] - g1[None, :]) * b1[:, None], 0.0)
    a10 = tl.dot(k1, k0.T) * tl.exp(g1[:, None] - g0[None, :]) * b1[:, None]
    x00, x11 = _inverse_of_16(a00, i, j), _inverse_of_16(a11, i, j)
    x10 = -tl.dot(tl.dot(x11, a10, input_precision="ieee"), x00, input_precision="ieee")
    x00, x11, x10 = x00.to(k0.dtype), x11.to(k0.dtype), x10.to(k0.dtype)
    kb0, kb1 = (k0 * (b0 * tl.exp(g0))[:, None]).to(k0.dtype), (k1 * (b1 * tl.exp(g1))[:, None]).to(k0.dtype)
    vb0 = (tl.load(v_ptr + upper[:, None] * D + d[None, :]) * b0[:, None]).to(k0.dtype)
    vb1 = (tl.load(v_ptr + lower[:, None] * D + d[None, :]) * b1[:, None]).to(k0.dtype)
    out = w_ptr.dtype.element_ty
    tl.store(w_ptr + upper[:, None] * D + d[None, :], tl.dot(x00, kb0).to(out))
    tl.store(w_ptr + lower[:, None] * D + d[None, :], (tl.dot(x10, kb0) + tl.dot(x11, kb1)).to(out))
    tl.store(u_ptr + upper[:, None] * D + d[None, :], tl.dot(x00, vb0).to(out))
    tl.store(u_ptr + lower[:, None] * D + d[None, :], (tl.dot(x10, vb0) + tl.dot(x11, vb1)).to(out))


def chunk_inverse(k, beta, g):
    """(1 + strictly lower part of beta k k' fading by g), inverted, for (..., C, D) in floats."""
    a = (k @ k.transpose(-1, -2)) * (g[..., :, None] - g[..., None, :]).exp() * beta[..., :, None]
    return torch.linalg.inv(torch.eye(k.shape[-2], device=k.device) + a.tril(-1))


@case
def return_to_gated_deltas_solved_in_blocks_of_16_one_warp(heads=32, t=2048, d=64):
    k, v = F.normalize(f32(heads, t, d), dim=2).half(), rand(heads, t, d)
    beta = uniform(heads, t)
    g = -(uniform(heads, t // 32, 32) / 8).cumsum(2).reshape(heads, t)
    w, u = zeros(heads, t, d), zeros(heads, t, d)
    launched = run(gated_deltas_solved, (t // 32, heads), (k, v, g, beta, w, u, t), (w, u), C=32, D=d, num_warps=1)

    def reference():
        kk, vv, gg, bb = k.float().reshape(heads, -1, 32, d), v.float().reshape(heads, -1, 32, d), g.reshape(heads, -1, 32), beta.reshape(heads, -1, 32)
        x = chunk_inverse(kk, bb, gg)
        return (x @ (kk * (bb * gg.exp())[..., None])).reshape(k.shape), (x @ (vv * bb[..., None])).reshape(k.shape)

    return against(launched, reference)


@triton.jit
def deltas_through_chunks(k_ptr, w_ptr, u_ptr, g_ptr, h_ptr, new_ptr, end_ptr, T, C: tl.constexpr, V: tl.constexpr, BV: tl.constexpr):
    # States of 128 by 32 in two halves of keys: written before each chunk, asked by w, faded, and added to.
    head, v = tl.program_id(1), tl.program_id(0) * BV + tl.arange(0, BV)
    c, d = tl.arange(0, C), tl.arange(0, 64)
    h0 = tl.zeros((64, BV), tl.float32)
    h1 = tl.zeros((64, BV), tl.float32)
    for t in range(T // C):
        row = head * T + t * C + c
        h_at = h_ptr + ((head * (T // C) + t) * 128 + d)[:, None] * V + v[None, :]
        low0, low1 = h0.to(k_ptr.dtype.element_ty), h1.to(k_ptr.dtype.element_ty)
        tl.store(h_at, low0)
        tl.store(h_at + 64 * V, low1)
        w0 = tl.load(w_ptr + row[:, None] * 128 + d[None, :])
        w1 = tl.load(w_ptr + row[:, None] * 128 + 64 + d[None, :])
        new = tl.load(u_ptr + row[:, None] * V + v[None, :]).to(tl.float32) - tl.dot(w1, low1, tl.dot(w0, low0))
        tl.store(new_ptr + row[:, None] * V + v[None, :], new.to(new_ptr.dtype.element_ty))
        g = tl.load(g_ptr + row)
        last = tl.load(g_ptr + head * T + t * C + C - 1)
        new = (new * tl.exp(last - g)[:, None]).to(low0.dtype)
        k0 = tl.load(k_ptr + row[None, :] * 128 + d[:, None])
        k1 = tl.load(k_ptr + row[None, :] * 128 + 64 + d[:, None])
        h0 = tl.dot(k0, new, h0 * tl.exp(last))
        h1 = tl.dot(k1, new, h1 * tl.exp(last))
    at = end_ptr + (head * 128 + d)[:, None] * V + v[None, :]
    tl.store(at, h0)
    tl.store(at + 64 * V, h1)


@case
def return_of_states_of_two_halves_through_chunks_of_64(heads=40, t=1024, v=128):
    c = 64
    k, w = F.normalize(f32(heads, t, 128), dim=2).half(), F.normalize(f32(heads, t, 128), dim=2).half()
    u, g = rand(heads, t, v), -(uniform(heads, t // c, c) / 16).cumsum(2).reshape(heads, t)
    h, new, end = zeros(heads, t // c, 128, v), zeros(heads, t, v), zeros(heads, 128, v, dtype="float32")
    launched = run(deltas_through_chunks, (v // 32, heads), (k, w, u, g, h, new, end, t), (h, new, end), C=c, V=v, BV=32, num_warps=4, num_stages=2)

    def reference():
        state, states, news = zeros(heads, 128, v, dtype="float32"), [], []
        for i in range(0, t, c):
            s = slice(i, i + c)
            states.append(state)
            news.append(u[:, s].float() - w[:, s].float() @ state)
            last = g[:, i + c - 1, None, None]
            state = state * last.exp() + k[:, s].float().transpose(1, 2) @ (news[-1] * (last - g[:, s, None]).exp())
        return torch.stack(states, 1), torch.cat(news, 1), state

    return against(launched, reference)


@triton.jit
def chunk_results_of_states(q_ptr, k_ptr, v_ptr, h_ptr, g_ptr, o_ptr, T, scale, C: tl.constexpr, K: tl.constexpr, V: tl.constexpr, BK: tl.constexpr, BV: tl.constexpr):
    # What the state before a chunk says and what its tokens say to each other, by parts of keys in one loop of two dots.
    chunk, head = tl.program_id(1), tl.program_id(2)
    v, c, d = tl.program_id(0) * BV + tl.arange(0, BV), tl.arange(0, C), tl.arange(0, BK)
    row = head * T + chunk * C + c
    o = tl.zeros((C, BV), tl.float32)
    a = tl.zeros((C, C), tl.float32)
    for d0 in range(0, K, BK):
        q = tl.load(q_ptr + row[:, None] * K + (d0 + d)[None, :])
        k = tl.load(k_ptr + row[None, :] * K + (d0 + d)[:, None])
        h = tl.load(h_ptr + ((head * (T // C) + chunk) * K + d0 + d)[:, None] * V + v[None, :])
        o += tl.dot(q, h)
        a += tl.dot(q, k)
    g = tl.load(g_ptr + row)
    a = tl.where(c[:, None] >= c[None, :], a * tl.exp(g[:, None] - g[None, :]), 0.0)
    value = tl.load(v_ptr + row[:, None] * V + v[None, :])
    o = (o * tl.exp(g)[:, None] + tl.dot(a.to(value.dtype), value)) * scale
    tl.store(o_ptr + row[:, None] * V + v[None, :], o.to(o_ptr.dtype.element_ty))


@case
def return_of_results_from_states_and_chunks_of_64_by_8_warps(heads=32, t=1024, k=192, v=256):
    c = 64
    q, key, val, h = rand(heads, t, k), rand(heads, t, k), rand(heads, t, v), rand(heads, t // c, k, v)
    g = -(uniform(heads, t // c, c) / 16).cumsum(2).reshape(heads, t)
    o = zeros(heads, t, v)
    args = q, key, val, h, g, o, t, k**-0.5
    launched = run(chunk_results_of_states, (v // 128, t // c, heads), args, o, C=c, K=k, V=v, BK=32, BV=128, num_warps=8, num_stages=4)

    def reference():
        qq, kk, vv = (x.float().reshape(heads, -1, c, x.shape[2]) for x in (q, key, val))
        gg = g.reshape(heads, -1, c)
        a = (qq @ kk.transpose(2, 3) * (gg[..., :, None] - gg[..., None, :]).exp()).tril()
        return (((qq @ h.float()) * gg.exp()[..., None] + a @ vv) * k**-0.5).reshape(o.shape)

    return against(launched, reference)


@triton.jit
def solved_chunks_back(k_ptr, v_ptr, beta_ptr, x_ptr, dw_ptr, du_ptr, dk_ptr, dv_ptr, dbeta_ptr, C: tl.constexpr, D: tl.constexpr):
    # Back from w = X(beta k) and u = X(beta v) to keys, values and beta, through the inverse X as well: nine dots.
    chunk = tl.program_id(0)
    c, d = tl.arange(0, C), tl.arange(0, D)
    at = (chunk * C + c)[:, None] * D + d[None, :]
    k, v = tl.load(k_ptr + at), tl.load(v_ptr + at)
    beta = tl.load(beta_ptr + chunk * C + c)
    x = tl.load(x_ptr + (chunk * C + c)[:, None] * C + c[None, :])
    dw, du = tl.load(dw_ptr + at), tl.load(du_ptr + at)
    dkb, dvb = tl.dot(x.T, dw), tl.dot(x.T, du)
    kb, vb = k * beta[:, None], v * beta[:, None]
    dx = tl.dot(du, vb.T, tl.dot(dw, kb.T))
    inner = -tl.dot(x.T, tl.dot(dx, x.T))
    inner = tl.where(c[:, None] > c[None, :], inner, 0.0)
    dbeta = tl.sum(dkb * k, 1) + tl.sum(dvb * v, 1) + tl.sum(inner * tl.dot(k, k.T), 1)
    inner *= beta[:, None]
    dk = dkb * beta[:, None] + tl.dot(inner, k) + tl.dot(inner.T, k)
    tl.store(dk_ptr + at, dk)
    tl.store(dv_ptr + at, dvb * beta[:, None])
    tl.store(dbeta_ptr + chunk * C + c, dbeta)


@case
def return_through_solved_chunks_of_32_to_keys_in_tf32(chunks=2000, c=32, d=64):
    k, v, beta = F.normalize(f32(chunks, c, d), dim=2), f32(chunks, c, d), uniform(chunks, c)
    dw, du = f32(chunks, c, d), f32(chunks, c, d)
    # An inverse in a simple form: signs and sizes as those of real ones, without solving on the host.
    a = ((k @ k.transpose(1, 2)) * beta[:, :, None]).tril(-1)
    x = torch.eye(c, device=a.device) - a + a @ a
    dk, dv, dbeta = zeros(chunks, c, d, dtype="float32"), zeros(chunks, c, d, dtype="float32"), zeros(chunks, c, dtype="float32")
    args = k, v, beta, x, dw, du, dk, dv, dbeta
    launched = run(solved_chunks_back, (chunks,), args, (dk, dv, dbeta), C=c, D=d, num_warps=4)

    def reference():
        t = x.transpose(1, 2)
        dkb, dvb = t @ dw, t @ du
        inner = -(t @ (dw @ (k * beta[..., None]).transpose(1, 2) + du @ (v * beta[..., None]).transpose(1, 2)) @ t).tril(-1)
        db = (dkb * k).sum(2) + (dvb * v).sum(2) + (inner * (k @ k.transpose(1, 2))).sum(2)
        inner = inner * beta[..., None]
        return dkb * beta[..., None] + (inner + inner.transpose(1, 2)) @ k, dvb * beta[..., None], db

    return against(launched, reference)


@triton.jit
def four_scores_of_small_chunks(q_ptr, k_ptr, a_ptr, b_ptr, g_ptr, qk_ptr, qb_ptr, ak_ptr, ab_ptr, gs_ptr, C: tl.constexpr, K: tl.constexpr):
    # Decays a channel are added up and split at the middle of a chunk of 16; two rows times two columns make four squares.
    chunk = tl.program_id(0).to(tl.int64)
    c, d = tl.arange(0, C), tl.arange(0, K)
    at = chunk * C * K + c[:, None] * K + d[None, :]
    g = tl.load(g_ptr + at).to(tl.float32)
    sums = tl.cumsum(g, 0)
    middle = tl.sum(tl.where((c < C // 2)[:, None], g, 0.0), 0)[None, :]
    up, down, before = tl.exp(sums - middle), tl.exp(middle - sums), tl.exp(sums - g - middle)
    type_ = q_ptr.dtype.element_ty
    q, a = (tl.load(q_ptr + at) * up).to(type_), (tl.load(a_ptr + at) * before).to(type_)
    k, b = (tl.load(k_ptr + at) * down).to(type_), (tl.load(b_ptr + at) * down).to(type_)
    square = chunk * C * C + c[:, None] * C + c[None, :]
    at_most, less = c[:, None] >= c[None, :], c[:, None] > c[None, :]
    tl.store(qk_ptr + square, tl.where(at_most, tl.dot(q, k.T), 0.0))
    tl.store(qb_ptr + square, tl.where(at_most, tl.dot(q, b.T), 0.0))
    tl.store(ak_ptr + square, tl.where(less, tl.dot(a, k.T), 0.0))
    tl.store(ab_ptr + square, tl.where(less, tl.dot(a, b.T), 0.0))
    tl.store(gs_ptr + at, sums)


@case
def return_of_four_squares_of_chunks_of_16_by_one_warp(chunks=8000, c=16, d=64):
    q, k, a, b = (rand(chunks, c, d) for _ in range(4))
    g = -(uniform(chunks, c, d) / 8).half()
    outs = [zeros(chunks, c, c, dtype="float32") for _ in range(4)] + [zeros(chunks, c, d, dtype="float32")]
    launched = run(four_scores_of_small_chunks, (chunks,), (q, k, a, b, g, *outs), tuple(outs), C=c, K=d, num_warps=1)

    def reference():
        s = g.float().cumsum(1)
        left, right = (q.float() * s.exp(), a.float() * (s - g.float()).exp()), (k.float() * (-s).exp(), b.float() * (-s).exp())
        return *((x @ y.transpose(1, 2)).tril(-i) for i, x in enumerate(left) for y in right), s

    return against(launched, reference)


@triton.jit
def faded_there_and_back(q_ptr, k_ptr, v_ptr, do_ptr, rate_ptr, dq_ptr, dk_ptr, dv_ptr, T, C: tl.constexpr, D: tl.constexpr):
    # Heads that fade at a rate of their own: forwards with states of keys and values to queries, then backwards to both.
    head = tl.program_id(0)
    c, d = tl.arange(0, C), tl.arange(0, D)
    rate = tl.load(rate_ptr + head)
    far = (c[:, None] - c[None, :]).to(tl.float32)
    fade = tl.where(far >= 0.0, tl.exp(-rate * far), 0.0)
    since, until, whole = tl.exp(-rate * (c + 1).to(tl.float32)), tl.exp(-rate * (C - 1 - c).to(tl.float32)), tl.exp(-rate * C)
    state = tl.zeros((D, D), tl.float32)
    type_ = q_ptr.dtype.element_ty
    for t in range(0, T, C):
        at = (head * T + t + c)[:, None] * D + d[None, :]
        k, v, do = tl.load(k_ptr + at), tl.load(v_ptr + at), tl.load(do_ptr + at)
        ds = (tl.dot(do, v.T) * fade).to(type_)
        dq = tl.dot(ds, k) + tl.dot(do, state.to(type_)) * since[:, None]
        tl.store(dq_ptr + at, dq.to(type_))
        state = tl.dot((v * until[:, None]).to(type_).T, k, state * whole)
    state = tl.zeros((D, D), tl.float32)
    for t in range(T - C, -1, -C):
        at = (head * T + t + c)[:, None] * D + d[None, :]
        q, k, v, do = tl.load(q_ptr + at), tl.load(k_ptr + at), tl.load(v_ptr + at), tl.load(do_ptr + at)
        low = state.to(type_)
        s = (tl.dot(k, q.T) * fade.T).to(type_)
        dv = tl.dot(s, do) + tl.dot(k, low) * until[:, None]
        ds = (tl.dot(v, do.T) * fade.T).to(type_)
        dk = tl.dot(ds, q) + tl.dot(v, low.T) * until[:, None]
        tl.store(dk_ptr + at, dk.to(type_))
        tl.store(dv_ptr + at, dv.to(type_))
        state = tl.dot((q * since[:, None]).to(type_).T, do, state * whole)


@case
def return_of_heads_that_fade_there_and_back_in_one_program(heads=132, t=1024, d=64):
    q, k, v, do = (rand(heads, t, d) / 4 for _ in range(4))
    rate = uniform(heads) / 4 + 0.01
    dq, dk, dv = (zeros(heads, t, d) for _ in range(3))
    launched = run(faded_there_and_back, (heads,), (q, k, v, do, rate, dq, dk, dv, t), (dq, dk, dv), C=32, D=d, num_warps=4, num_stages=2)

    def reference():
        qq, kk, vv, dd = (x.float() for x in (q, k, v, do))
        far = (arange(t)[:, None] - arange(t)[None, :]).float()
        fade = torch.where(far >= 0, (-rate[:, None, None] * far.clamp(min=0)).exp(), 0.0)
        ds, s = (dd @ vv.transpose(1, 2)) * fade, (qq @ kk.transpose(1, 2)) * fade
        return ds @ kk, ds.transpose(1, 2) @ qq, s.transpose(1, 2) @ dd

    return against(launched, reference)


@triton.jit
def both_ways_at_once(q_ptr, k_ptr, v_ptr, there_ptr, back_ptr, T, keep, C: tl.constexpr, D: tl.constexpr):
    # Two states in one loop: one comes from the first chunk, the other from the last; they do not know of each other.
    head = tl.program_id(0)
    c, d = tl.arange(0, C), tl.arange(0, D)
    one = tl.zeros((D, D), tl.float32)
    two = tl.zeros((D, D), tl.float32)
    for t in range(T // C):
        at = (head * T + t * C + c)[:, None] * D + d[None, :]
        q, k, v = tl.load(q_ptr + at), tl.load(k_ptr + at), tl.load(v_ptr + at)
        s = tl.where(c[:, None] >= c[None, :], tl.dot(q, k.T), 0.0).to(v.dtype)
        tl.store(there_ptr + at, tl.dot(s, v, tl.dot(q, one.to(q.dtype))))
        one = one * keep + tl.dot(k.T, v)
        at = (head * T + T - C - t * C + c)[:, None] * D + d[None, :]
        q, k, v = tl.load(q_ptr + at), tl.load(k_ptr + at), tl.load(v_ptr + at)
        s = tl.where(c[:, None] < c[None, :], tl.dot(q, k.T), 0.0).to(v.dtype)
        tl.store(back_ptr + at, tl.dot(s, v, tl.dot(q, two.to(q.dtype))))
        two = two * keep + tl.dot(k.T, v)


@case
def return_both_ways_at_once_in_chunks_of_64_of_32_by_two_warps(heads=264, t=1024, d=32):
    c, keep = 64, 0.5
    q, k, v = (rand(heads, t, d) / 4 for _ in range(3))
    there, back = zeros(heads, t, d, dtype="float32"), zeros(heads, t, d, dtype="float32")
    launched = run(both_ways_at_once, (heads,), (q, k, v, there, back, t, keep), (there, back), C=c, D=d, num_warps=2, num_stages=3)

    def reference():
        i = arange(t)
        chunks = (i[:, None] // c - i[None, :] // c).float()
        fade = keep ** (chunks.abs() - 1).clamp(min=0)
        s = (q.float() @ k.float().transpose(1, 2)) * fade
        return s.tril() @ v.float(), s.triu(1) @ v.float()

    return against(launched, reference)
