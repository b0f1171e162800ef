"""Askers: few queries that ask many keys, what decoding scores, chooses and sums, and attention with all that its authors put in."""

import torch
import triton
import triton.language as tl

from .common import against, arange, case, cdiv, f8, f32, ints, rand, run, uniform, zeros

LOG2E = 1.4426950408889634


@triton.jit
def best_keys_of_four(q_ptr, k_ptr, s_ptr, top_ptr, at_ptr, L, H, SPLIT, D: tl.constexpr, BN: tl.constexpr):
    # Four queries of a head and a part of its keys: products are summed in three axes, each lane keeps the best it saw.
    b, h, part = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    m, d, n = tl.arange(0, 4), tl.arange(0, D), tl.arange(0, BN)
    q = tl.load(q_ptr + ((b * H + h) * 4 + m)[:, None] * D + d[None, :]).to(tl.float32)
    best = tl.full((4, BN), float("-inf"), tl.float32)
    where = tl.zeros((4, BN), tl.int32)
    size = tl.cdiv(L, SPLIT)
    begin = part * size
    end = tl.minimum(begin + size, L)
    for n0 in range(begin, end, BN):
        j = n0 + n
        ok = j < end
        row = (b * L + j) * H + h
        k = tl.load(k_ptr + row[:, None] * D + d[None, :], mask=ok[:, None], other=0.0).to(tl.float32)
        scale = tl.load(s_ptr + row, mask=ok, other=0.0)
        s = tl.sum(q[:, None, :] * k[None, :, :], 2) * scale[None, :]
        s = tl.where(ok[None, :], s, float("-inf"))
        where = tl.where(s > best, j[None, :], where)
        best = tl.maximum(s, best)
    top, lane = tl.max(best, 1, return_indices=True)
    at = tl.sum(tl.where(n[None, :] == lane[:, None], where, 0), 1)
    out = ((b * H + h) * SPLIT + part) * 4 + m
    tl.store(top_ptr + out, top)
    tl.store(at_ptr + out, at)


@case
def ask_for_best_fp8_keys_of_four_queries_by_sums(b=8, h=8, n=6000, split=8):
    d = 128
    q, k = rand(b, h, 4, d, dtype="bfloat16"), f8(b, n, h, d)
    s = uniform(b, n, h) + 0.5
    top, at = zeros(b, h, split, 4, dtype="float32"), zeros(b, h, split, 4, dtype="int32")
    launched = run(best_keys_of_four, (b, h, split), (q, k, s, top, at, n, h, split), (top, at), D=d, BN=32, num_warps=4)

    def reference():
        scores = torch.einsum("bhmd,bnhd->bhmn", q.float(), k.float() * s[..., None])
        size = cdiv(n, split)
        parts = [scores[..., i * size : (i + 1) * size].max(3) for i in range(split)]
        return torch.stack([p[0] for p in parts], 2), torch.stack([p[1] + i * size for i, p in enumerate(parts)], 2)

    return against(launched, reference)


@triton.jit
def nibbles_of_tokens(q_ptr, k_ptr, ks_ptr, v_ptr, vs_ptr, len_ptr, o_ptr, scale, L, H, D: tl.constexpr, BP: tl.constexpr):
    # Keys hold two tokens a byte, channel by channel, with a scale a channel; values hold two channels a byte and a scale a token.
    b, h = tl.program_id(0), tl.program_id(1)
    head = (b * H + h).to(tl.int64)
    d, p, c = tl.arange(0, D), tl.arange(0, BP), tl.arange(0, D // 2)
    n = tl.arange(0, 2 * BP)
    length = tl.load(len_ptr + b)
    q = tl.load(q_ptr + head * D + d).to(tl.float32) * tl.load(ks_ptr + head * D + d) * scale
    m = -1e30
    l = 0.0
    low_acc, high_acc = tl.zeros((D // 2,), tl.float32), tl.zeros((D // 2,), tl.float32)
    for n0 in range(0, length, 2 * BP):
        inside = n0 // 2 + p < L // 2
        byte = tl.load(k_ptr + head * D * (L // 2) + d[:, None] * (L // 2) + n0 // 2 + p[None, :], mask=inside[None, :], other=0)
        even = tl.sum(q[:, None] * ((byte & 15).to(tl.float32) - 8.0), 0)
        odd = tl.sum(q[:, None] * ((byte >> 4).to(tl.float32) - 8.0), 0)
        s = tl.where(n0 + n < length, tl.interleave(even, odd), float("-inf"))
        top = tl.maximum(m, tl.max(s, 0))
        w = tl.exp2(s - top)
        keep = tl.exp2(m - top)
        ok = n0 + n < length
        pair = tl.load(v_ptr + (head * L + n0 + n)[:, None] * (D // 2) + c[None, :], mask=ok[:, None], other=0)
        w = w * tl.load(vs_ptr + head * L + n0 + n, mask=ok, other=0.0)
        low_acc = low_acc * keep + tl.sum(w[:, None] * ((pair & 15).to(tl.float32) - 8.0), 0)
        high_acc = high_acc * keep + tl.sum(w[:, None] * ((pair >> 4).to(tl.float32) - 8.0), 0)
        l = l * keep + tl.sum(tl.exp2(s - top), 0)
        m = top
    tl.store(o_ptr + head * D + d, (tl.interleave(low_acc, high_acc) / l).to(o_ptr.dtype.element_ty))


@case
def ask_keys_with_two_tokens_a_byte_by_one_query(b=24, h=8, n=4096):
    d = 128
    q, ks = rand(b, h, d), uniform(b, h, d) / 8 + 0.02
    k, v = ints(0, 256, b, h, d, n // 2, dtype="uint8"), ints(0, 256, b, h, n, d // 2, dtype="uint8")
    vs, lengths, o = uniform(b, h, n), ints(1, n + 1, b), zeros(b, h, d)
    launched = run(nibbles_of_tokens, (b, h), (q, k, ks, v, vs, lengths, o, d**-0.5 * LOG2E, n, h), o, D=d, BP=32, num_warps=4, num_stages=3)

    def reference():
        def nibbles(x):
            return torch.stack([(x & 15).float() - 8, (x >> 4).float() - 8], -1).reshape(*x.shape[:-1], -1)

        s = torch.einsum("bhd,bhdn->bhn", q.float() * ks, nibbles(k)) * d**-0.5
        s = s.masked_fill(arange(n)[None, None, :] >= lengths[:, None, None], float("-inf"))
        return torch.einsum("bhn,bhnd->bhd", s.softmax(2) * vs, nibbles(v))

    return against(launched, reference)


@triton.jit
def bounded(s, CAP: tl.constexpr):
    if CAP > 0:
        e = tl.exp2(s * (2.0 * 1.4426950408889634 / CAP))
        s = CAP * (1.0 - 2.0 / (e + 1.0))
    return s


@triton.jit
def joined(acc, m, l, s, v, FP8: tl.constexpr):
    top = tl.maximum(m, tl.max(s, 1))
    w = tl.exp2((s - top[:, None]) * 1.4426950408889634)
    keep = tl.exp2((m - top) * 1.4426950408889634)
    if FP8:
        v = v.to(tl.bfloat16)
    return tl.dot(w.to(v.dtype), v, acc * keep[:, None]), top, l * keep + tl.sum(w, 1)


@triton.jit
def decode_with_switches(
    q_ptr, k_ptr, v_ptr, ks_ptr, vs_ptr, sink_ptr, slope_ptr, table_ptr, len_ptr, o_ptr, lse_ptr, scale, TABLE, HK,
    G: tl.constexpr, MQ: tl.constexpr, D: tl.constexpr, P: tl.constexpr, BN: tl.constexpr, SPLITS: tl.constexpr,
    FP8: tl.constexpr, CAP: tl.constexpr, WINDOW: tl.constexpr, SINKS: tl.constexpr, SLOPES: tl.constexpr,
):  # fmt: skip
    # One kernel for all models: MQ drafts of G heads are 16 rows; what a model does not have is switched off.
    seq, kvh, part = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    r, n, d = tl.arange(0, 16), tl.arange(0, BN), tl.arange(0, D)
    draft, g = r // G, r % G
    live = r < MQ * G
    h = kvh * G + g
    length = tl.load(len_ptr + seq)
    place = length - MQ + draft
    row = ((seq * MQ + draft) * HK * G + h) * D
    q = tl.load(q_ptr + row[:, None] + d[None, :], mask=live[:, None], other=0.0)
    if SLOPES:
        slope = tl.load(slope_ptr + h, mask=live, other=0.0)
    m = tl.full((16,), -1e30, tl.float32)
    l = tl.zeros((16,), tl.float32)
    if SINKS:
        if part == 0:
            m = tl.load(sink_ptr + h, mask=live, other=0.0)
            l += 1.0
    acc = tl.zeros((16, D), tl.float32)
    begin = 0
    if WINDOW > 0:
        begin = tl.maximum(length - MQ - WINDOW + 1, 0) // BN * BN
    size = tl.cdiv(tl.cdiv(length - begin, SPLITS), BN) * BN
    first = begin + part * size
    for n0 in range(first, tl.minimum(first + size, length), BN):
        j = n0 + n
        ok = j < length
        slot = tl.load(table_ptr + seq * TABLE + j // P, mask=ok, other=0).to(tl.int64) * P + j % P
        at = (slot * HK + kvh) * D
        k = tl.load(k_ptr + at[None, :] + d[:, None], mask=ok[None, :], other=0.0)
        v = tl.load(v_ptr + at[:, None] + d[None, :], mask=ok[:, None], other=0.0)
        if FP8:
            s = tl.dot(q, k.to(q.dtype)) * (tl.load(ks_ptr + kvh) * scale)
        else:
            s = tl.dot(q, k) * scale
        s = bounded(s, CAP)
        if SLOPES:
            s -= slope[:, None] * (place[:, None] - j[None, :]).to(tl.float32)
        seen = j[None, :] <= place[:, None]
        if WINDOW > 0:
            seen &= place[:, None] - j[None, :] < WINDOW
        acc, m, l = joined(acc, m, l, tl.where(seen, s, -1e20), v, FP8)
    acc = acc / tl.maximum(l, 1e-20)[:, None]
    if FP8:
        acc *= tl.load(vs_ptr + kvh)
    tl.store(o_ptr + part * (tl.num_programs(0) * MQ * HK * G * D).to(tl.int64) + row[:, None] + d[None, :], acc.to(o_ptr.dtype.element_ty), mask=live[:, None])
    if SPLITS > 1:
        lse = tl.where(l > 0.0, m + tl.log(l), -1e30)
        tl.store(lse_ptr + part * (tl.num_programs(0) * MQ * HK * G) + row // D, lse, mask=live)


@triton.jit
def joined_parts(o_ptr, lse_ptr, y_ptr, ROWS, SPLITS: tl.constexpr, D: tl.constexpr):
    row = tl.program_id(0)
    p, d = tl.arange(0, SPLITS), tl.arange(0, D)
    lse = tl.load(lse_ptr + p * ROWS + row)
    w = tl.exp(lse - tl.max(lse, 0))
    o = tl.load(o_ptr + (p * ROWS + row)[:, None] * D + d[None, :])
    tl.store(y_ptr + row * D + d, (tl.sum(w[:, None] * o, 0) / tl.sum(w, 0)).to(y_ptr.dtype.element_ty))


def switched_reference(q, k, v, table, lengths, p, cap=0.0, window=0, sinks=None, slopes=None):
    """Attention of drafts (S, MQ, H, D) to pages (slots, HK, D) of floats."""
    out = torch.zeros_like(q, dtype=torch.float32)
    mq, h = q.shape[1:3]
    for seq, length in enumerate(lengths.tolist()):
        at = (table[seq].long()[:, None] * p + arange(p)[None, :]).reshape(-1)[:length]
        kk, vv = (x[at].repeat_interleave(h // x.shape[1], 1) for x in (k, v))
        s = torch.einsum("mhd,nhd->hmn", q[seq].float(), kk) * q.shape[3] ** -0.5
        s = cap * torch.tanh(s / cap) if cap else s
        apart = (length - mq + arange(mq))[:, None] - arange(length)[None, :]
        s = s - slopes[:, None, None] * apart if slopes is not None else s
        s = s.masked_fill((apart < 0) | ((apart >= window) if window else (apart < 0)), float("-inf"))
        s = torch.cat([s, sinks[:, None, None].expand(h, mq, 1)], 2) if sinks is not None else s
        out[seq] = torch.einsum("hmn,nhd->mhd", s.softmax(2)[..., :length], vv)
    return out


def pages_of(seqs, pages, p, hk, d):
    table = torch.randperm(seqs * pages, device="cuda").to(torch.int32).reshape(seqs, pages)
    return table, rand(seqs * pages * p, hk, d, dtype="bfloat16"), rand(seqs * pages * p, hk, d, dtype="bfloat16")


@case
def ask_fp8_pages_by_three_drafts_capped_in_a_window(seqs=48, hk=8, pages=64, window=1024):
    g, mq, d, p = 5, 3, 128, 32
    table, k, v = pages_of(seqs, pages, p, hk, d)
    k, v = k.to(torch.float8_e4m3fn), v.to(torch.float8_e4m3fn)
    ks, vs, q = uniform(hk) + 0.5, uniform(hk) + 0.5, rand(seqs, mq, hk * g, d, dtype="bfloat16")
    lengths, o = ints(mq, pages * p + 1, seqs), zeros(seqs, mq, hk * g, d, dtype="bfloat16")
    args = q, k, v, ks, vs, ks, ks, table, lengths, o, ks, d**-0.5, pages, hk
    switches = dict(FP8=True, CAP=20.0, WINDOW=window, SINKS=False, SLOPES=False)
    launched = run(decode_with_switches, (seqs, hk, 1), args, o, G=g, MQ=mq, D=d, P=p, BN=64, SPLITS=1, **switches, num_warps=4, num_stages=2)
    return against(launched, lambda: switched_reference(q, k.float() * ks[None, :, None], v.float() * vs[None, :, None], table, lengths, p, 20.0, window))


@case
def ask_pages_in_eight_parts_by_two_drafts_with_sinks_and_slopes(seqs=16, hk=4, pages=256):
    g, mq, d, p, splits = 8, 2, 64, 16, 8
    table, k, v = pages_of(seqs, pages, p, hk, d)
    q, sinks, slopes = rand(seqs, mq, hk * g, d, dtype="bfloat16"), f32(hk * g), uniform(hk * g) / 50
    lengths, rows = ints(pages * p // 2, pages * p + 1, seqs), seqs * mq * hk * g
    o, lse, y = zeros(splits, rows, d, dtype="float32"), zeros(splits, rows, dtype="float32"), zeros(seqs, mq, hk * g, d, dtype="bfloat16")
    switches = dict(FP8=False, CAP=0.0, WINDOW=0, SINKS=True, SLOPES=True)

    def launch(q, k, v, sinks, slopes, table, lengths, o, lse, y):
        args = q, k, v, sinks, sinks, sinks, slopes, table, lengths, o, lse, d**-0.5, pages, hk
        decode_with_switches[(seqs, hk, splits)](*args, G=g, MQ=mq, D=d, P=p, BN=128, SPLITS=splits, **switches, num_warps=4, num_stages=3)
        joined_parts[(rows,)](o, lse, y, rows, SPLITS=splits, D=d, num_warps=2)
        return y

    launched = launch, (q, k, v, sinks, slopes, table, lengths, o, lse, y)
    return against(launched, lambda: switched_reference(q, k.float(), v.float(), table, lengths, p, sinks=sinks, slopes=slopes))


@triton.jit
def ordered_key(score, at):
    # Numbers that are ordered as the scores are; the place is in the lower half.
    bits = score.to(tl.int32, bitcast=True)
    bits = tl.where(bits < 0, bits ^ 0x7FFFFFFF, bits)
    return (bits.to(tl.int64) << 32) | at.to(tl.int64)


@triton.jit
def highest_centers(q_ptr, c_ptr, count_ptr, at_ptr, score_ptr, C, H, G: tl.constexpr, D: tl.constexpr, BN: tl.constexpr, TOP: tl.constexpr):
    # Centers of clusters of keys: the sum over a group's heads of what is positive; the best so far compete with the next block.
    b, h = tl.program_id(0), tl.program_id(1)
    d, n = tl.arange(0, D), tl.arange(0, BN)
    best = tl.full((TOP,), -(1 << 62), tl.int64)
    count = tl.load(count_ptr + b)
    for n0 in range(0, count, BN):
        c = tl.load(c_ptr + ((b * H + h) * C + n0 + n)[:, None] * D + d[None, :], mask=(n0 + n < count)[:, None], other=0.0).to(tl.float32)
        score = tl.zeros((BN,), tl.float32)
        for g in tl.static_range(G):
            q = tl.load(q_ptr + ((b * H + h) * G + g) * D + d).to(tl.float32)
            score += tl.maximum(tl.sum(c * q[None, :], 1), 0.0)
        key = tl.where(n0 + n < count, ordered_key(score, n0 + n), -(1 << 62))
        best = tl.topk(tl.reshape(tl.join(best, tl.topk(key, TOP)), (2 * TOP,)), TOP)
    t = tl.arange(0, TOP)
    bits = (best >> 32).to(tl.int32)
    tl.store(at_ptr + (b * H + h) * TOP + t, (best & 0xFFFFFFFF).to(tl.int32))
    tl.store(score_ptr + (b * H + h) * TOP + t, tl.where(bits < 0, bits ^ 0x7FFFFFFF, bits).to(tl.float32, bitcast=True))


@case
def ask_for_32_highest_centers_of_keys(b=40, h=8, centers=2000):
    g, d, top = 4, 64, 32
    q, c = rand(b, h, g, d, dtype="bfloat16"), rand(b, h, centers, d, dtype="bfloat16")
    counts = ints(centers // 2, centers + 1, b)
    at, score = zeros(b, h, top, dtype="int32"), zeros(b, h, top, dtype="float32")
    launched = run(highest_centers, (b, h), (q, c, counts, at, score, centers, h), (at, score), G=g, D=d, BN=128, TOP=top, num_warps=4)

    def reference():
        s = torch.einsum("bhgd,bhnd->bhgn", q.float(), c.float()).clamp(min=0).sum(2)
        s = s.masked_fill(arange(centers)[None, None, :] >= counts[:, None, None], float("-inf"))
        values, places = s.topk(top, 2)
        return places, values

    return against(launched, reference)


@triton.jit
def set_bits(x):
    x = x - ((x >> 1) & 0x55555555)
    x = (x & 0x33333333) + ((x >> 2) & 0x33333333)
    return (((x + (x >> 4)) & 0x0F0F0F0F) * 0x01010101) >> 24


@triton.jit
def nearest_signs(q_ptr, k_ptr, keep_ptr, bound_ptr, L, WANT, BINS: tl.constexpr, B: tl.constexpr):
    # Signs of 128 channels in four words: distances to the query are counted, then keys below the bound are kept as bytes.
    head = tl.program_id(0)
    n, bins = tl.arange(0, B), tl.arange(0, BINS)
    w = tl.arange(0, 4)
    q = tl.load(q_ptr + head * 4 + w)
    counts = tl.zeros((BINS,), tl.int32)
    for n0 in range(0, L, B):
        ok = n0 + n < L
        k = tl.load(k_ptr + (head * L + n0 + n)[:, None] * 4 + w[None, :], mask=ok[:, None], other=0)
        apart = tl.sum(set_bits((k ^ q[None, :]).to(tl.uint32)).to(tl.int32), 1)
        counts += tl.histogram(apart, BINS, mask=ok)
    so_far = tl.cumsum(counts, 0)
    bound = tl.min(tl.where(so_far >= WANT, bins, BINS), 0)
    tl.store(bound_ptr + head, bound)
    for n0 in range(0, L, B):
        ok = n0 + n < L
        k = tl.load(k_ptr + (head * L + n0 + n)[:, None] * 4 + w[None, :], mask=ok[:, None], other=0)
        apart = tl.sum(set_bits((k ^ q[None, :]).to(tl.uint32)).to(tl.int32), 1)
        tl.store(keep_ptr + head * L + n0 + n, (apart <= bound).to(tl.int8), mask=ok)


@case
def ask_for_keys_whose_signs_differ_least(heads=512, n=9000, want=300):
    q, k = ints(-(2**31), 2**31 - 1, heads, 4), ints(-(2**31), 2**31 - 1, heads, n, 4)
    keep, bound = zeros(heads, n, dtype="int8"), zeros(heads, dtype="int32")
    launched = run(nearest_signs, (heads,), (q, k, keep, bound, n, want), (keep, bound), BINS=256, B=512, num_warps=4)

    def reference():
        x = (q[:, None] ^ k).contiguous().view(torch.uint8).int()
        apart = sum((x >> i) & 1 for i in range(8)).sum(2)
        limit = apart.sort(1)[0][:, want - 1]
        return (apart <= limit[:, None]), limit

    return against(launched, reference)


@triton.jit
def drafts_to_latents(q_ptr, cache_ptr, table_ptr, len_ptr, o_ptr, lse_ptr, scale, TABLE, H: tl.constexpr, MQ: tl.constexpr, R: tl.constexpr, DR: tl.constexpr, P: tl.constexpr, BN: tl.constexpr, SPLITS: tl.constexpr):
    # Rows are heads of several drafts; latents are keys and values, what turns is beside them in the same row.
    seq, part = tl.program_id(0), tl.program_id(1)
    m, n, r, e = tl.arange(0, MQ * H), tl.arange(0, BN), tl.arange(0, R), tl.arange(0, DR)
    length = tl.load(len_ptr + seq)
    place = length - MQ + m // H
    row = (seq * MQ * H + m) * (R + DR)
    q = tl.load(q_ptr + row[:, None] + r[None, :])
    qr = tl.load(q_ptr + row[:, None] + R + e[None, :])
    top, l = tl.full((MQ * H,), -1e30, tl.float32), tl.zeros((MQ * H,), tl.float32)
    acc = tl.zeros((MQ * H, R), tl.float32)
    size = tl.cdiv(length, SPLITS)
    begin = part * size
    end = tl.minimum(begin + size, length)
    for n0 in range(begin, end, BN):
        j = n0 + n
        page = tl.load(table_ptr + seq * TABLE + j // P, mask=j < end, other=0)
        at = (page * P + j % P) * (R + DR)
        c = tl.load(cache_ptr + at[:, None] + r[None, :], mask=(j < end)[:, None], other=0.0)
        turned = tl.load(cache_ptr + at[None, :] + R + e[:, None], mask=(j < end)[None, :], other=0.0)
        s = tl.dot(qr, turned, tl.dot(q, tl.trans(c))) * scale
        s = tl.where((j[None, :] <= place[:, None]) & (j < end)[None, :], s, -1e20)
        new = tl.maximum(top, tl.max(s, 1))
        w = tl.exp2(s - new[:, None])
        keep = tl.exp2(top - new)
        acc = tl.dot(w.to(c.dtype), c, acc * keep[:, None])
        l = l * keep + tl.sum(w, 1)
        top = new
    out = (seq * SPLITS + part) * MQ * H + m
    tl.store(o_ptr + out[:, None] * R + r[None, :], acc / tl.maximum(l, 1e-20)[:, None])
    tl.store(lse_ptr + out, top + tl.log2(tl.maximum(l, 1e-20)))


@triton.jit
def latent_parts(o_ptr, lse_ptr, y_ptr, SPLITS, ROWS: tl.constexpr, R: tl.constexpr):
    seq, row = tl.program_id(0), tl.program_id(1)
    r = tl.arange(0, R)
    top = -1e30
    total = 0.0
    acc = tl.zeros((R,), tl.float32)
    for part in range(SPLITS):
        at = (seq * SPLITS + part) * ROWS + row
        lse = tl.load(lse_ptr + at)
        new = tl.maximum(top, lse)
        keep, w = tl.exp2(top - new), tl.exp2(lse - new)
        acc = acc * keep + w * tl.load(o_ptr + at * R + r)
        total = total * keep + w
        top = new
    tl.store(y_ptr + (seq * ROWS + row) * R + r, (acc / total).to(y_ptr.dtype.element_ty))


@case
def ask_latents_of_256_and_32_by_two_drafts_of_16_heads(seqs=48, pages=48):
    h, mq, r, dr, p, splits = 16, 2, 256, 32, 64, 6
    q, cache = rand(seqs, mq * h, r + dr, dtype="bfloat16"), rand(seqs * pages * p, r + dr, dtype="bfloat16")
    table = torch.randperm(seqs * pages, device="cuda").to(torch.int32).reshape(seqs, pages)
    lengths = ints(pages * p // 2, pages * p + 1, seqs)
    o, lse = zeros(seqs, splits, mq * h, r, dtype="float32"), zeros(seqs, splits, mq * h, dtype="float32")
    y, scale = zeros(seqs, mq * h, r, dtype="bfloat16"), (r + dr) ** -0.5

    def launch(q, cache, table, lengths, o, lse, y):
        args = q, cache, table, lengths, o, lse, scale * LOG2E, pages
        drafts_to_latents[(seqs, splits)](*args, H=h, MQ=mq, R=r, DR=dr, P=p, BN=32, SPLITS=splits, num_warps=4, num_stages=2)
        latent_parts[(seqs, mq * h)](o, lse, y, splits, ROWS=mq * h, R=r, num_warps=1)
        return y

    def reference():
        c = cache.reshape(-1, p, r + dr)[table.long()].reshape(seqs, pages * p, r + dr).float()
        s = torch.einsum("smd,snd->smn", q.float(), c) * scale
        place = lengths[:, None] - mq + (arange(mq * h) // h)[None, :]
        s = s.masked_fill(arange(pages * p)[None, None, :] > place[:, :, None], float("-inf"))
        return torch.einsum("smn,snd->smd", s.softmax(2), c[..., :r])

    return against((launch, (q, cache, table, lengths, o, lse, y)), reference)


@triton.jit
def blocks_worth_reading(q_ptr, c_ptr, lse_ptr, worth_ptr, N, BLOCKS, H, scale, G: tl.constexpr, D: tl.constexpr, BB: tl.constexpr):
    # Means of 32 tokens every 16 stand for keys; a block of 64 is worth the shares of the five means that touch it, of all heads.
    b, h, tile = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    block, x, d = tile * BB + tl.arange(0, BB), tl.arange(0, 8), tl.arange(0, D)
    at = block[:, None] * 4 - 1 + x[None, :]
    ok = (at >= 0) & (at < N) & (x < 5)[None, :]
    c = tl.load(c_ptr + (((b * N + at) * H + h) * D)[:, :, None] + d[None, None, :], mask=ok[:, :, None], other=0.0).to(tl.float32)
    worth = tl.zeros((BB,), tl.float32)
    for g in range(G):
        q = tl.load(q_ptr + ((b * H + h) * G + g) * D + d).to(tl.float32) * scale
        s = tl.sum(c * q[None, None, :], 2)
        share = tl.exp(s - tl.load(lse_ptr + (b * H + h) * G + g))
        worth += tl.sum(tl.where(ok, share, 0.0), 1)
    forced = (block == 0) | (block == BLOCKS - 1)
    tl.store(worth_ptr + (b * H + h) * BLOCKS + block, tl.where(forced, 1000.0, worth), mask=block < BLOCKS)


@case
def ask_which_blocks_are_worth_reading_by_means(b=32, h=4, n=2047):
    g, d = 16, 128
    blocks = cdiv(n + 1, 4)
    q, c = rand(b, h, g, d, dtype="bfloat16"), rand(b, n, h, d, dtype="bfloat16")
    s = torch.einsum("bhgd,bnhd->bhgn", q.float(), c.float()) * d**-0.5
    lse, worth = s.logsumexp(3), zeros(b, h, blocks, dtype="float32")
    launched = run(blocks_worth_reading, (b, h, cdiv(blocks, 16)), (q, c, lse, worth, n, blocks, h, d**-0.5), worth, G=g, D=d, BB=16, num_warps=8)

    def reference():
        share = torch.nn.functional.pad(s.softmax(3).sum(2), (1, 8))
        out = sum(share[..., i : i + 4 * blocks : 4][..., :blocks] for i in range(5))
        out[..., 0], out[..., -1] = 1000.0, 1000.0
        return out

    return against(launched, reference)


@triton.jit
def one_turn_of_the_ring(q_ptr, k_ptr, v_ptr, acc_ptr, m_ptr, l_ptr, scale, shift, T, H, S, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, LAST: tl.constexpr):
    # Keys of another machine came: sums and maxima of the turns before are taken from memory, and put back unless this is the last.
    i, bh = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1)
    b, h = bh // H, bh % H
    n, d = tl.arange(0, BN), tl.arange(0, D)
    at = ((b * T + i) * H + h)[:, None] * D + d[None, :]
    ok = i < T
    q = tl.load(q_ptr + at, mask=ok[:, None], other=0.0)
    acc = tl.load(acc_ptr + at, mask=ok[:, None], other=0.0)
    m = tl.load(m_ptr + bh * T + i, mask=ok, other=0.0)
    l = tl.load(l_ptr + bh * T + i, mask=ok, other=1.0)
    k_block = tl.make_block_ptr(k_ptr + (b * S * H + h) * D, (D, S), (1, H * D), (0, 0), (D, BN), (0, 1))
    v_block = tl.make_block_ptr(v_ptr + (b * S * H + h) * D, (S, D), (H * D, 1), (0, 0), (BN, D), (1, 0))
    end = tl.minimum(S, (tl.program_id(0) + 1) * BM + shift)
    for n0 in range(0, end, BN):
        k = tl.load(k_block, boundary_check=(1,), padding_option="zero")
        s = tl.dot(q, k) * scale
        s = tl.where((n0 + n[None, :] <= i[:, None] + shift) & (n0 + n < S)[None, :], s, float("-inf"))
        top = tl.maximum(m, tl.max(s, 1))
        w = tl.exp2(s - top[:, None])
        keep = tl.exp2(m - top)
        v = tl.load(v_block, boundary_check=(0,), padding_option="zero")
        acc = tl.dot(w.to(v.dtype), v, acc * keep[:, None])
        l = l * keep + tl.sum(w, 1)
        m = top
        k_block = tl.advance(k_block, (0, BN))
        v_block = tl.advance(v_block, (BN, 0))
    if LAST:
        acc = acc / l[:, None]
    tl.store(acc_ptr + at, acc, mask=ok[:, None])
    tl.store(m_ptr + bh * T + i, m, mask=ok)
    tl.store(l_ptr + bh * T + i, l, mask=ok)


@case
def ask_keys_that_come_around_a_ring_in_two_turns(b=2, h=16, t=1500):
    d = 64
    q, k1, v1, k2, v2 = (rand(b, t, h, d) for _ in range(5))
    acc, m, l = zeros(b, t, h, d, dtype="float32"), zeros(b * h, t, dtype="float32"), zeros(b * h, t, dtype="float32")

    def launch(q, k1, v1, k2, v2, acc, m, l):
        acc.zero_(), l.zero_(), m.fill_(-1e30)
        grid, how = (cdiv(t, 64), b * h), dict(D=d, BM=64, BN=64, num_warps=4, num_stages=3)
        one_turn_of_the_ring[grid](q, k1, v1, acc, m, l, d**-0.5 * LOG2E, t, t, h, t, LAST=False, **how)
        one_turn_of_the_ring[grid](q, k2, v2, acc, m, l, d**-0.5 * LOG2E, 0, t, h, t, LAST=True, **how)
        return acc, m, l

    def reference():
        k, v = torch.cat([k1, k2], 1).float(), torch.cat([v1, v2], 1).float()
        s = torch.einsum("bihd,bjhd->bhij", q.float(), k) * d**-0.5
        s = s.masked_fill(arange(2 * t)[None, :] > (arange(t) + t)[:, None], float("-inf"))
        top = s.amax(3)
        out = torch.einsum("bhij,bjhd->bihd", s.softmax(3), v)
        return out, (top * LOG2E).reshape(b * h, t), (s - top[..., None]).exp().sum(3).reshape(b * h, t)

    return against((launch, (q, k1, v1, k2, v2, acc, m, l)), reference)


@triton.jit
def gathered_askers(q_ptr, k_ptr, v_ptr, start_ptr, list_ptr, o_ptr, lse_ptr, scale, H, CHUNK, TOP, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    # A chunk of keys is asked by tokens from a list; an entry is token * TOP + which of its choices this is, where results go.
    tile, h, chunk = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    begin, end = tl.load(start_ptr + h * tl.num_programs(2) + chunk), tl.load(start_ptr + h * tl.num_programs(2) + chunk + 1)
    if begin + tile * BM >= end:
        return
    i, n, d = begin + tile * BM + tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, D)
    ok = i < end
    entry = tl.load(list_ptr + i, mask=ok, other=0)
    q = tl.load(q_ptr + ((entry // TOP) * H + h)[:, None] * D + d[None, :], mask=ok[:, None], other=0.0)
    m, l = tl.full((BM,), float("-inf"), tl.float32), tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for n0 in tl.range(0, CHUNK, BN, num_stages=3):
        row = (chunk * CHUNK + n0 + n) * H + h
        k = tl.load(k_ptr + row[None, :] * D + d[:, None])
        s = tl.dot(q, k) * scale
        top = tl.maximum(m, tl.max(s, 1))
        w = tl.exp2(s - top[:, None])
        v = tl.load(v_ptr + row[:, None] * D + d[None, :])
        acc = tl.dot(w.to(v.dtype), v, acc * tl.exp2(m - top)[:, None])
        l = l * tl.exp2(m - top) + tl.sum(w, 1)
        m = top
    tl.store(o_ptr + (entry * H + h)[:, None] * D + d[None, :], (acc / l[:, None]).to(o_ptr.dtype.element_ty), mask=ok[:, None])
    tl.store(lse_ptr + entry * H + h, m + tl.log2(l), mask=ok)


@case
def ask_chunks_of_keys_by_lists_of_tokens(t=4096, h=8, chunk=512):
    d, top = 128, 3
    chunks = t // chunk
    q, k, v = rand(t, h, d, dtype="bfloat16"), rand(t, h, d, dtype="bfloat16"), rand(t, h, d, dtype="bfloat16")
    choice = torch.argsort(uniform(h, t, chunks), 2)[:, :, :top]
    order = torch.argsort(choice.reshape(h, -1), dim=1, stable=True)
    counts = (choice.reshape(h, -1)[:, :, None] == arange(chunks, "int64")[None, None, :]).sum(1)
    start = torch.cat([zeros(1, dtype="int64"), counts.reshape(-1).cumsum(0)]).to(torch.int32)
    o, lse = zeros(t * top, h, d, dtype="bfloat16"), zeros(t * top, h, dtype="float32")
    args = q, k, v, start, order.to(torch.int32).reshape(-1), o, lse, d**-0.5 * LOG2E, h, chunk, top
    launched = run(gathered_askers, (cdiv(t, 128), h, chunks), args, (o, lse), D=d, BM=128, BN=64, num_warps=8)

    def reference():
        s = torch.einsum("thd,nhd->htn", q.float(), k.float()) * d**-0.5
        s = s.reshape(h, t, chunks, chunk)
        lses = s.logsumexp(3)
        vv = v.float().reshape(chunks, chunk, h, d)
        each = torch.einsum("htcn,cnhd->htcd", s.softmax(3), vv)
        out = each.gather(2, choice[..., None].expand(-1, -1, -1, d))
        return out.permute(1, 2, 0, 3).reshape(t * top, h, d), (lses.gather(2, choice) * LOG2E).permute(1, 2, 0).reshape(t * top, h)

    return against(launched, reference)


@triton.jit
def words_and_picture(q_ptr, kw_ptr, vw_ptr, kp_ptr, vp_ptr, o_ptr, scale, share, T, H, WORDS, D: tl.constexpr, BD: tl.constexpr, BM: tl.constexpr, BW: tl.constexpr, BP: tl.constexpr):
    # Two small sets of keys, words and a picture's tokens, each with a softmax of its own; no loop is needed.
    i, bh = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1)
    b, h = bh // H, bh % H
    d, w, p = tl.arange(0, BD), tl.arange(0, BW), tl.arange(0, BP)
    okd = d < D
    at = ((b * T + i) * H + h)[:, None] * D + d[None, :]
    q = tl.load(q_ptr + at, mask=(i < T)[:, None] & okd[None, :], other=0.0)
    words = ((b * WORDS + w) * H + h) * D
    k = tl.load(kw_ptr + words[None, :] + d[:, None], mask=(w < WORDS)[None, :] & okd[:, None], other=0.0)
    v = tl.load(vw_ptr + words[:, None] + d[None, :], mask=(w < WORDS)[:, None] & okd[None, :], other=0.0)
    s = tl.where((w < WORDS)[None, :], tl.dot(q, k) * scale, float("-inf"))
    s = tl.exp2(s - tl.max(s, 1)[:, None])
    out = tl.dot((s / tl.sum(s, 1)[:, None]).to(v.dtype), v)
    picture = ((b * BP + p) * H + h) * D
    k = tl.load(kp_ptr + picture[None, :] + d[:, None], mask=okd[:, None], other=0.0)
    v = tl.load(vp_ptr + picture[:, None] + d[None, :], mask=okd[None, :], other=0.0)
    s = tl.dot(q, k) * scale
    s = tl.exp2(s - tl.max(s, 1)[:, None])
    out += share * tl.dot((s / tl.sum(s, 1)[:, None]).to(v.dtype), v)
    tl.store(o_ptr + at, out.to(o_ptr.dtype.element_ty), mask=(i < T)[:, None] & okd[None, :])


@case
def ask_77_words_and_16_tokens_of_a_picture_d40(b=4, h=8, t=4000):
    d, words, p = 40, 77, 16
    q, o = rand(b, t, h, d), zeros(b, t, h, d)
    kw, vw, kp, vp = rand(b, words, h, d), rand(b, words, h, d), rand(b, p, h, d), rand(b, p, h, d)
    args = q, kw, vw, kp, vp, o, d**-0.5 * LOG2E, 0.7, t, h, words
    launched = run(words_and_picture, (cdiv(t, 64), b * h), args, o, D=d, BD=64, BM=64, BW=128, BP=p, num_warps=4)

    def reference():
        def one(k, v):
            s = torch.einsum("bihd,bjhd->bhij", q.float(), k.float()) * d**-0.5
            return torch.einsum("bhij,bjhd->bihd", s.softmax(3), v.float())

        return one(kw, vw) + 0.7 * one(kp, vp)

    return against(launched, reference)


@triton.jit
def pictures_see_themselves(q_ptr, k_ptr, v_ptr, id_ptr, last_ptr, o_ptr, scale, T, H, HK, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    # Tokens look back, but those of one picture see all of it: where a tile's last picture ends is in a table.
    tile, h, b = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    kvh = h // (H // HK)
    q_desc = tl.make_tensor_descriptor(q_ptr + b * T * H * D, (T, H * D), (H * D, 1), (BM, D))
    k_desc = tl.make_tensor_descriptor(k_ptr + b * T * HK * D, (T, HK * D), (HK * D, 1), (BN, D))
    v_desc = tl.make_tensor_descriptor(v_ptr + b * T * HK * D, (T, HK * D), (HK * D, 1), (BN, D))
    o_desc = tl.make_tensor_descriptor(o_ptr + b * T * H * D, (T, H * D), (H * D, 1), (BM, D))
    q = q_desc.load([tile * BM, h * D])
    i, n = tile * BM + tl.arange(0, BM), tl.arange(0, BN)
    mine = tl.load(id_ptr + b * T + i, mask=i < T, other=-1)
    m, l = tl.full((BM,), -1e30, tl.float32), tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for n0 in range(0, tl.load(last_ptr + b * tl.num_programs(0) + tile), BN):
        j = n0 + n
        s = tl.dot(q, k_desc.load([n0, kvh * D]).T) * scale
        if n0 + BN > tile * BM:
            theirs = tl.load(id_ptr + b * T + j, mask=j < T, other=-2)
            seen = (j[None, :] <= i[:, None]) | ((mine[:, None] == theirs[None, :]) & (mine[:, None] > 0))
            s = tl.where(seen & (j < T)[None, :], s, -1e20)
        top = tl.maximum(m, tl.max(s, 1))
        w = tl.math.exp2(s - top[:, None])
        keep = tl.math.exp2(m - top)
        acc = acc * keep[:, None]
        acc = tl.dot(w.to(q.dtype), v_desc.load([n0, kvh * D]), acc)
        l = l * keep + tl.sum(w, 1)
        m = top
    o_desc.store([tile * BM, h * D], (acc / l[:, None]).to(q.dtype))


@case
def ask_where_pictures_see_all_of_themselves(b=2, h=16, hk=4, t=3000, bm=128):
    d = 128
    q, k, v, o = rand(b, t, h, d, dtype="bfloat16"), rand(b, t, hk, d, dtype="bfloat16"), rand(b, t, hk, d, dtype="bfloat16"), zeros(b, t, h, d, dtype="bfloat16")
    place = arange(t)[None, :] + arange(b)[:, None] * 37
    ids = torch.where(place % 500 < 200, place // 500 + 1, 0).to(torch.int32)
    tiles = cdiv(t, bm)
    ends = torch.minimum((arange(tiles) + 1) * bm, torch.full_like(arange(tiles), t))
    final = ids.gather(1, (ends[None, :] - 1).long().expand(b, tiles))
    beyond = ((ids[:, None, :] == final[:, :, None]) & (final > 0)[:, :, None]) * (arange(t) + 1)[None, None, :]
    last = torch.maximum(beyond.amax(2), ends[None, :]).to(torch.int32)
    args = q, k, v, ids, last, o, d**-0.5 * LOG2E, t, h, hk
    launch, args = run(pictures_see_themselves, (tiles, h, b), args, o, D=d, BM=bm, BN=64, num_warps=8, num_stages=3)

    def told(*args):
        triton.set_allocator(lambda size, align, stream: torch.empty(size, device="cuda", dtype=torch.int8))
        return launch(*args)

    def reference():
        s = torch.einsum("bihd,bjhd->bhij", q.float(), k.float().repeat_interleave(h // hk, 2)) * d**-0.5
        seen = (arange(t)[None, None, :] <= arange(t)[None, :, None]) | ((ids[:, :, None] == ids[:, None, :]) & (ids > 0)[:, :, None])
        s = s.masked_fill(~seen[:, None], float("-inf"))
        return torch.einsum("bhij,bjhd->bihd", s.softmax(3), v.float().repeat_interleave(h // hk, 2))

    return against((told, args), reference)


@triton.jit
def blocks_of_words(q_ptr, k_ptr, v_ptr, word_ptr, o_ptr, scale, T, WORDS, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    # Which blocks of keys a tile asks are bits of its words: an outer loop over words, an inner one while bits are left.
    tile, head = tl.program_id(0), tl.program_id(1)
    i, n, d = tile * BM + tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, D)
    base = head * T * D
    q = tl.load(q_ptr + base + i[:, None] * D + d[None, :])
    m, l = tl.full((BM,), -1e30, tl.float32), tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for at in range(WORDS):
        word = tl.load(word_ptr + (head * tl.num_programs(0) + tile) * WORDS + at)
        while word != 0:
            lowest = word & (0 - word)
            bit = (lowest.to(tl.float32).to(tl.int32, bitcast=True) >> 23) - 127
            row = (at * 24 + bit) * BN + n
            k = tl.load(k_ptr + base + row[None, :] * D + d[:, None])
            v = tl.load(v_ptr + base + row[:, None] * D + d[None, :])
            s = tl.dot(q, k) * scale
            top = tl.maximum(m, tl.max(s, 1))
            w = tl.exp2(s - top[:, None])
            keep = tl.exp2(m - top)
            acc = tl.dot(w.to(v.dtype), v, acc * keep[:, None])
            l = l * keep + tl.sum(w, 1)
            m = top
            word = word ^ lowest
    tl.store(o_ptr + base + i[:, None] * D + d[None, :], (acc / l[:, None]).to(o_ptr.dtype.element_ty))


@case
def ask_blocks_whose_bits_are_set_in_words_of_24(heads=32, t=3072):
    d, bm, bn = 64, 64, 32
    words = t // bn // 24
    q, k, v, o = rand(heads, t, d), rand(heads, t, d), rand(heads, t, d), zeros(heads, t, d)
    on = uniform(heads, t // bm, words, 24) < 0.3
    on[..., 0, 0] = True
    word = (on.to(torch.int64) << arange(24, "int64")).sum(3).to(torch.int32)
    launched = run(blocks_of_words, (t // bm, heads), (q, k, v, word, o, d**-0.5 * LOG2E, t, words), o, D=d, BM=bm, BN=bn, num_warps=4, num_stages=2)

    def reference():
        seen = on.reshape(heads, t // bm, t // bn).repeat_interleave(bm, 1).repeat_interleave(bn, 2)
        s = (q.float() @ k.float().transpose(1, 2) * d**-0.5).masked_fill(~seen, float("-inf"))
        return s.softmax(2) @ v.float()

    return against(launched, reference)


@triton.jit
def query_gradient_part(dq, q, do, lse, delta, k, v, seen, scale):
    s = tl.dot(q, tl.trans(k)) * scale
    p = tl.where(seen, tl.exp2(s - lse[:, None]), 0.0)
    ds = p * (tl.dot(do, tl.trans(v)) - delta[:, None])
    return tl.dot(ds.to(k.dtype), k, dq)


@triton.jit
def near_and_everywhere_back(q_ptr, k_ptr, v_ptr, do_ptr, lse_ptr, delta_ptr, dq_ptr, scale, T, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, EVERY: tl.constexpr, REACH: tl.constexpr):
    # The first tokens are seen from everywhere, others by those within reach on both sides: gradients of queries in two loops.
    tile, head = tl.program_id(0), tl.program_id(1)
    i, n, d = tile * BM + tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, D)
    base = head * T * D
    at = base + i[:, None] * D + d[None, :]
    q, do = tl.load(q_ptr + at, mask=(i < T)[:, None], other=0.0), tl.load(do_ptr + at, mask=(i < T)[:, None], other=0.0)
    lse, delta = tl.load(lse_ptr + head * T + i, mask=i < T, other=0.0), tl.load(delta_ptr + head * T + i, mask=i < T, other=0.0)
    dq = tl.zeros((BM, D), tl.float32)
    for n0 in tl.static_range(0, EVERY, BN):
        there = base + (n0 + n)[:, None] * D + d[None, :]
        seen = tl.full((BM, BN), True, tl.int1)
        dq = query_gradient_part(dq, q, do, lse, delta, tl.load(k_ptr + there), tl.load(v_ptr + there), seen, scale)
    begin = tl.maximum(EVERY, (tile * BM - REACH) // BN * BN)
    for n0 in range(begin, tl.minimum(T, (tile + 1) * BM + REACH), BN):
        j = n0 + n
        there = base + j[:, None] * D + d[None, :]
        k, v = tl.load(k_ptr + there, mask=(j < T)[:, None], other=0.0), tl.load(v_ptr + there, mask=(j < T)[:, None], other=0.0)
        seen = (tl.abs(i[:, None] - j[None, :]) <= REACH) & (j < T)[None, :]
        dq = query_gradient_part(dq, q, do, lse, delta, k, v, seen, scale)
    tl.store(dq_ptr + at, (dq * (scale / 1.4426950408889634)).to(dq_ptr.dtype.element_ty), mask=(i < T)[:, None])


@case
def ask_back_near_and_from_everywhere(heads=32, t=4001, every=64, reach=256):
    d = 64
    q, k, v, do = (rand(heads, t, d, dtype="bfloat16") for _ in range(4))
    i, j = arange(t)[:, None], arange(t)[None, :]
    hidden = ((i - j).abs() > reach) & (j >= every)

    def scores(x):
        return (q[x].float() @ k[x].float().t() * d**-0.5).masked_fill(hidden, float("-inf"))

    lse = torch.stack([scores(x).logsumexp(1) for x in range(heads)])
    delta, dq = f32(heads, t), zeros(heads, t, d, dtype="bfloat16")
    args = q, k, v, do, lse * LOG2E, delta, dq, d**-0.5 * LOG2E, t
    launched = run(near_and_everywhere_back, (cdiv(t, 64), heads), args, dq, D=d, BM=64, BN=64, EVERY=every, REACH=reach, num_warps=4, num_stages=2)

    def reference():
        def one(x):
            return scores(x).softmax(1) * (do[x].float() @ v[x].float().t() - delta[x][:, None]) @ k[x].float() * d**-0.5

        return torch.stack([one(x) for x in range(heads)])

    return against(launched, reference)


@triton.jit
def heads_side_by_side(q_ptr, k_ptr, v_ptr, ks_ptr, o_ptr, lse_ptr, scale, L, SPLITS, H: tl.constexpr, D: tl.constexpr, BN: tl.constexpr):
    # Whole rows of tokens are read, all heads at once: bytes of keys with a scale a channel, halves of values.
    b, part = tl.program_id(0), tl.program_id(1)
    n, h, d = tl.arange(0, BN), tl.arange(0, H), tl.arange(0, D)
    hd = h[:, None] * D + d[None, :]
    q = tl.load(q_ptr + b * H * D + hd).to(tl.float32) * tl.load(ks_ptr + hd) * scale
    m, l = tl.full((H,), -1e30, tl.float32), tl.zeros((H,), tl.float32)
    acc = tl.zeros((H, D), tl.float32)
    size = tl.cdiv(L, SPLITS)
    end = tl.minimum((part + 1) * size, L)
    for n0 in range(part * size, end, BN):
        ok = n0 + n < end
        at = ((b * L + n0 + n) * H * D)[:, None, None] + hd[None, :, :]
        k = tl.load(k_ptr + at, mask=ok[:, None, None], other=0).to(tl.float32)
        s = tl.where(ok[:, None], tl.sum(q[None, :, :] * k, 2), -1e30)
        top = tl.maximum(m, tl.max(s, 0))
        w = tl.exp2(s - top[None, :])
        keep = tl.exp2(m - top)
        v = tl.load(v_ptr + at, mask=ok[:, None, None], other=0.0).to(tl.float32)
        acc = acc * keep[:, None] + tl.sum(w[:, :, None] * v, 0)
        l = l * keep + tl.sum(w, 0)
        m = top
    out = b * SPLITS + part
    tl.store(o_ptr + out * H * D + hd, acc / l[:, None])
    tl.store(lse_ptr + out * H + h, m + tl.log2(l))


@case
def ask_rows_of_eight_heads_of_bytes_at_once(b=64, n=3000, splits=6):
    h, d = 8, 64
    q, k, v = rand(b, h, d), ints(-127, 128, b, n, h, d, dtype="int8"), rand(b, n, h, d)
    ks = uniform(h, d) / 64
    o, lse = zeros(b, splits, h, d, dtype="float32"), zeros(b, splits, h, dtype="float32")
    args = q, k, v, ks, o, lse, d**-0.5 * LOG2E, n, splits
    launched = run(heads_side_by_side, (b, splits), args, (o, lse), H=h, D=d, BN=16, num_warps=4, num_stages=3)

    def reference():
        size = cdiv(n, splits)
        s = torch.einsum("bhd,bnhd->bhn", q.float() * ks, k.float()) * d**-0.5
        parts = [(s[..., i * size : (i + 1) * size], v[:, i * size : (i + 1) * size].float()) for i in range(splits)]
        return torch.stack([torch.einsum("bhn,bnhd->bhd", a.softmax(2), c) for a, c in parts], 1), torch.stack([a.logsumexp(2) * LOG2E for a, _ in parts], 1)

    return against(launched, reference)


@triton.jit
def index_of_bytes(q_ptr, qs_ptr, w_ptr, k_ptr, ks_ptr, s_ptr, high_ptr, L, MQ: tl.constexpr, H: tl.constexpr, D: tl.constexpr, BN: tl.constexpr):
    # Four queries of eight small heads are 32 rows of bytes; what is positive is weighted and summed over heads.
    b, tile = tl.program_id(0), tl.program_id(1)
    r, n, d, m = tl.arange(0, MQ * H), tile * BN + tl.arange(0, BN), tl.arange(0, D), tl.arange(0, MQ)
    rows = b * MQ * H + r
    q = tl.load(q_ptr + rows[:, None] * D + d[None, :])
    k = tl.load(k_ptr + (b * L + n)[None, :] * D + d[:, None], mask=(n < L)[None, :], other=0)
    s = tl.maximum(tl.dot(q, k).to(tl.float32), 0.0)
    s *= (tl.load(qs_ptr + rows) * tl.load(w_ptr + rows))[:, None]
    s = tl.sum(tl.reshape(s, (MQ, H, BN)), 1) * tl.load(ks_ptr + b * L + n, mask=n < L, other=0.0)[None, :]
    at = (b * MQ + m)[:, None] * L + n[None, :]
    tl.store(s_ptr + at, s.to(s_ptr.dtype.element_ty), mask=(n < L)[None, :])
    high = tl.max(tl.where((n < L)[None, :], s, float("-inf")), 1)
    tl.store(high_ptr + (b * MQ + m) * tl.num_programs(1) + tile, high)


@case
def ask_an_index_of_bytes_by_four_queries_of_eight_heads(b=24, n=16000):
    mq, h, d, bn = 4, 8, 64, 128
    q, k = ints(-127, 128, b, mq, h, d, dtype="int8"), ints(-127, 128, b, n, d, dtype="int8")
    qs, w, ks = uniform(b, mq, h) / 100, f32(b, mq, h), uniform(b, n) / 100
    s, high = zeros(b, mq, n, dtype="bfloat16"), zeros(b, mq, cdiv(n, bn), dtype="float32")
    launched = run(index_of_bytes, (b, cdiv(n, bn)), (q, qs, w, k, ks, s, high, n), (s, high), MQ=mq, H=h, D=d, BN=bn, num_warps=4)

    def reference():
        dots = torch.einsum("bmhd,bnd->bmhn", q.float(), k.float()).clamp(min=0)
        out = (dots * (qs * w)[..., None]).sum(2) * ks[:, None]
        padded = torch.nn.functional.pad(out, (0, cdiv(n, bn) * bn - n), value=float("-inf"))
        return out, padded.reshape(b, mq, -1, bn).amax(3)

    return against(launched, reference)
