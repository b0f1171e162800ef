"""Tenants: what a server of many sequences runs between and beside its products: pages, drafts, caches, adapters, experts, draws."""

import torch
import triton
import triton.language as tl

from .common import against, arange, case, cdiv, f32, far, ints, rand, run, uniform, viewed, zeros


@triton.jit
def decode_a_page_a_step(q_ptr, kv_ptr, table_ptr, len_ptr, o_ptr, scale, TABLE, stride_page, H, G: tl.constexpr, P: tl.constexpr, BP: tl.constexpr, D: tl.constexpr):
    # A page holds the keys of 24 tokens and then their values; a step takes one page, eight of its 32 rows are masked.
    seq, kvh = tl.program_id(0), tl.program_id(1)
    g, d, p = tl.arange(0, 16), tl.arange(0, D), tl.arange(0, BP)
    length = tl.load(len_ptr + seq)
    row = (seq * H + kvh) * G + g
    q = tl.load(q_ptr + row[:, None] * D + d[None, :], mask=(g < G)[:, None], other=0.0)
    m = tl.full((16,), -1e30, tl.float32)
    l = tl.zeros((16,), tl.float32)
    acc = tl.zeros((16, D), tl.float32)
    for at in range(tl.cdiv(length, P)):
        page = kv_ptr + tl.load(table_ptr + seq * TABLE + at).to(tl.int64) * stride_page + kvh * D
        ok = (p < P) & (at * P + p < length)
        k = tl.load(page + p[:, None] * (H * D) + d[None, :], mask=ok[:, None], other=0.0)
        s = tl.where(ok[None, :], tl.dot(q, k.T) * scale, float("-inf"))
        top = tl.maximum(m, tl.max(s, 1))
        w = tl.exp2(s - top[:, None])
        keep = tl.exp2(m - top)
        v = tl.load(page + P * H * D + p[:, None] * (H * D) + d[None, :], mask=ok[:, None], other=0.0)
        acc = tl.dot(w.to(v.dtype), v, acc * keep[:, None])
        l = l * keep + tl.sum(w, 1)
        m = top
    tl.store(o_ptr + row[:, None] * D + d[None, :], (acc / l[:, None]).to(o_ptr.dtype.element_ty), mask=(g < G)[:, None])


def attend_rows(q, k, v, lengths, scale):
    """Attention of queries (S, H, G, D) to keys (S, L, H, D) of which the first `lengths` count."""
    s = torch.einsum("shgd,slhd->shgl", q.float(), k.float()) * scale
    s = s.masked_fill(arange(k.shape[1])[None, None, None, :] >= lengths[:, None, None, None], float("-inf"))
    return torch.einsum("shgl,slhd->shgd", s.softmax(3), v.float())


@case
def tenant_decodes_pages_of_24_seven_heads(seqs=64, h=4, g=7, d=128, pages=62):
    p = 24
    q, kv = rand(seqs, h, g, d, dtype="bfloat16"), rand(seqs * pages, 2, p, h, d, dtype="bfloat16")
    table = torch.randperm(seqs * pages, device="cuda").to(torch.int32).reshape(seqs, pages)
    lengths, o = ints(1, pages * p + 1, seqs), zeros(seqs, h, g, d, dtype="bfloat16")
    args = q, kv, table, lengths, o, d**-0.5 * 1.4426950408889634, pages, 2 * p * h * d, h
    launched = run(decode_a_page_a_step, (seqs, h), args, o, G=g, P=p, BP=32, D=d, num_warps=4, num_stages=3)

    def reference():
        k, v = (kv[table.long(), side].reshape(seqs, pages * p, h, d) for side in (0, 1))
        return attend_rows(q, k, v, lengths, d**-0.5)

    return against(launched, reference)


@triton.jit
def decode_keys_in_eighths(q_ptr, k_ptr, v_ptr, table_ptr, len_ptr, o_ptr, scale, TABLE, H, P: tl.constexpr, D: tl.constexpr, BN: tl.constexpr):
    # Keys of a page lie as D/8 x tokens x 8, values as D x tokens; four pages a step, sums instead of dots.
    seq, h = tl.program_id(0), tl.program_id(1)
    n, d = tl.arange(0, BN), tl.arange(0, D)
    e, x = tl.arange(0, D // 8)[:, None, None], tl.arange(0, 8)[None, None, :]
    length = tl.load(len_ptr + seq)
    q = tl.load(q_ptr + (seq * H + h) * D + e * 8 + x).to(tl.float32) * scale
    m = -1e30
    l = 0.0
    acc = tl.zeros((D, BN), tl.float32)
    for n0 in range(0, length, BN):
        ok = n0 + n < length
        page = tl.load(table_ptr + seq * TABLE + (n0 + n) // P, mask=ok, other=0).to(tl.int64)
        head = (page * H + h) * (D * P)
        k = tl.load(k_ptr + head[None, :, None] + e * (P * 8) + (n % P)[None, :, None] * 8 + x, mask=ok[None, :, None], other=0.0)
        s = tl.where(ok, tl.sum(tl.sum(q * k, 2), 0), float("-inf"))
        top = tl.maximum(m, tl.max(s, 0))
        w = tl.exp(s - top)
        keep = tl.exp(m - top)
        v = tl.load(v_ptr + head[None, :] + d[:, None] * P + (n % P)[None, :], mask=ok[None, :], other=0.0)
        acc = acc * keep + w[None, :] * v
        l = l * keep + tl.sum(w, 0)
        m = top
    tl.store(o_ptr + (seq * H + h) * D + d, (tl.sum(acc, 1) / l).to(o_ptr.dtype.element_ty))


@case
def tenant_decodes_keys_in_eighths_of_heads(seqs=32, h=16, pages=64):
    p, d = 16, 64
    q = rand(seqs, h, d)
    k, v = rand(seqs * pages, h, d // 8, p, 8), rand(seqs * pages, h, d, p)
    table = torch.randperm(seqs * pages, device="cuda").to(torch.int32).reshape(seqs, pages)
    lengths, o = ints(1, pages * p + 1, seqs), zeros(seqs, h, d)
    args = q, k, v, table, lengths, o, d**-0.5, pages, h
    launched = run(decode_keys_in_eighths, (seqs, h), args, o, P=p, D=d, BN=64, num_warps=4)

    def reference():
        kk = k[table.long()].permute(0, 1, 4, 2, 3, 5).reshape(seqs, pages * p, h, d)
        vv = v[table.long()].permute(0, 1, 4, 2, 3).reshape(seqs, pages * p, h, d)
        return attend_rows(q[:, :, None], kk, vv, lengths, d**-0.5)[:, :, 0]

    return against(launched, reference)


@triton.jit
def extend_over_pages(q_ptr, k_ptr, v_ptr, table_ptr, cu_ptr, len_ptr, o_ptr, scale, TABLE, HQ, HK, P: tl.constexpr, D: tl.constexpr, BD: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    # New tokens of a sequence ask all its tokens, which are in pages by now; whole tiles of keys are not masked by order.
    tile, h, seq = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    begin = tl.load(cu_ptr + seq)
    fresh = tl.load(cu_ptr + seq + 1) - begin
    if tile * BM >= fresh:
        return
    length = tl.load(len_ptr + seq)
    i, n, d = tile * BM + tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BD)
    okd = d < D
    kvh = h // (HQ // HK)
    q = tl.load(q_ptr + (begin + i)[:, None] * (HQ * D) + h * D + d[None, :], mask=(i < fresh)[:, None] & okd[None, :], other=0.0)
    place = length - fresh + i
    end = tl.minimum(length - fresh + (tile + 1) * BM, length)
    m = tl.full((BM,), -1e30, tl.float32)
    l = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, BD), tl.float32)
    for n0 in range(0, end, BN):
        j = n0 + n
        page = tl.load(table_ptr + seq * TABLE + j // P, mask=j < length, other=0)
        at = ((page * P + j % P) * HK + kvh) * D
        k = tl.load(k_ptr + at[None, :] + d[:, None], mask=(j < length)[None, :] & okd[:, None], other=0.0)
        s = tl.dot(q, k) * scale
        if n0 + BN > length - fresh + tile * BM:
            s = tl.where(place[:, None] >= j[None, :], s, float("-inf"))
        top = tl.maximum(m, tl.max(s, 1))
        w = tl.exp2(s - top[:, None])
        keep = tl.exp2(m - top)
        l = l * keep + tl.sum(w, 1)
        v = tl.load(v_ptr + at[:, None] + d[None, :], mask=(j < length)[:, None] & okd[None, :], other=0.0)
        acc = tl.dot(w.to(v.dtype), v, acc * keep[:, None])
        m = top
    tl.store(o_ptr + (begin + i)[:, None] * (HQ * D) + h * D + d[None, :], (acc / l[:, None]).to(o_ptr.dtype.element_ty), mask=(i < fresh)[:, None] & okd[None, :])


@case
def tenant_extends_over_pages_of_48_heads_of_80(seqs=6, hq=16, hk=4, new=300, old=1200):
    d, p = 80, 48
    fresh = ints(1, new, seqs)
    lengths = fresh + ints(0, old, seqs)
    pages = cdiv(new + old, p)
    cu = torch.cat([zeros(1, dtype="int32"), fresh.cumsum(0).to(torch.int32)])
    total = seqs * new
    q, o = rand(total, hq, d), zeros(total, hq, d)
    k, v = rand(seqs * pages, p, hk, d), rand(seqs * pages, p, hk, d)
    table = torch.randperm(seqs * pages, device="cuda").to(torch.int32).reshape(seqs, pages)
    args = q, k, v, table, cu, lengths, o, d**-0.5 * 1.4426950408889634, pages, hq, hk
    launched = run(extend_over_pages, (cdiv(new, 64), hq, seqs), args, o, P=p, D=d, BD=128, BM=64, BN=64, num_warps=4, num_stages=2)

    def reference():
        out = zeros(total, hq, d, dtype="float32")
        for seq, (begin, n, length) in enumerate(zip(cu.tolist(), fresh.tolist(), lengths.tolist())):
            kk, vv = (x[table[seq].long()].reshape(-1, hk, d)[:length].repeat_interleave(hq // hk, 1).float() for x in (k, v))
            s = torch.einsum("ihd,jhd->hij", q[begin : begin + n].float(), kk) * d**-0.5
            s = s.masked_fill(arange(length)[None, :] > (length - n + arange(n))[:, None], float("-inf"))
            out[begin : begin + n] = torch.einsum("hij,jhd->ihd", s.softmax(2), vv)
        return out

    return against(launched, reference)


@triton.jit
def bounds_of_pages(q_ptr, low_ptr, high_ptr, table_ptr, count_ptr, score_ptr, best_ptr, PAGES, H, G: tl.constexpr, D: tl.constexpr, BP: tl.constexpr):
    # No key of a page can score higher than the sum of the larger products with the page's extremes.
    seq, h = tl.program_id(0), tl.program_id(1)
    d, p = tl.arange(0, D), tl.arange(0, BP)
    count = tl.load(count_ptr + seq)
    highest = tl.full((BP,), float("-inf"), tl.float32)
    for p0 in range(0, PAGES, BP):
        ok = p0 + p < count
        page = tl.load(table_ptr + seq * PAGES + p0 + p, mask=ok, other=0)
        at = ((page * H + h) * D)[:, None] + d[None, :]
        low = tl.load(low_ptr + at, mask=ok[:, None], other=0.0).to(tl.float32)
        high = tl.load(high_ptr + at, mask=ok[:, None], other=0.0).to(tl.float32)
        score = tl.full((BP,), float("-inf"), tl.float32)
        for g in tl.static_range(G):
            q = tl.load(q_ptr + ((seq * H + h) * G + g) * D + d).to(tl.float32)[None, :]
            score = tl.maximum(score, tl.sum(tl.maximum(q * low, q * high), 1))
        score = tl.where(ok, score, -1000.0)
        highest = tl.maximum(highest, score)
        tl.store(score_ptr + (seq * H + h) * PAGES + p0 + p, score, mask=p0 + p < PAGES)
    tl.store(best_ptr + seq * H + h, tl.max(highest, 0))


@case
def tenant_bounds_scores_of_pages_by_their_extremes(seqs=32, h=8, pages=500):
    g, d = 4, 128
    q = rand(seqs, h, g, d, dtype="bfloat16")
    a, b = (rand(seqs * pages, h, d, dtype="bfloat16") for _ in range(2))
    low, high = torch.minimum(a, b), torch.maximum(a, b)
    table = torch.randperm(seqs * pages, device="cuda").to(torch.int32).reshape(seqs, pages)
    counts = ints(pages // 2, pages + 1, seqs)
    score, best = zeros(seqs, h, pages, dtype="float32"), zeros(seqs, h, dtype="float32")
    args = q, low, high, table, counts, score, best, pages, h
    launched = run(bounds_of_pages, (seqs, h), args, (score, best), G=g, D=d, BP=32, num_warps=4)

    def reference():
        lo, hi = (x[table.long()].permute(0, 2, 1, 3).float() for x in (low, high))
        each = [torch.maximum(q[:, :, i, None].float() * lo, q[:, :, i, None].float() * hi).sum(3) for i in range(g)]
        s = torch.stack(each).amax(0).masked_fill(arange(pages)[None, None, :] >= counts[:, None, None], -1000.0)
        return s, s.amax(2)

    return against(launched, reference)


@triton.jit
def drafts_from_history(token_ptr, len_ptr, draft_ptr, found_ptr, L, K, B: tl.constexpr, BK: tl.constexpr):
    # The last place where the last three tokens stood before, searched backwards; what followed there is the draft.
    seq = tl.program_id(0)
    row = token_ptr + seq.to(tl.int64) * L
    length = tl.load(len_ptr + seq)
    a, b, c = tl.load(row + length - 3), tl.load(row + length - 2), tl.load(row + length - 1)
    found = -1
    end = length - 3
    while (found < 0) & (end > 0):
        at = end - B + tl.arange(0, B)
        hit = (at >= 0) & (tl.load(row + at, mask=at >= 0, other=-1) == a)
        hit &= (tl.load(row + at + 1, mask=hit, other=-1) == b) & (tl.load(row + at + 2, mask=hit, other=-1) == c)
        found = tl.max(tl.where(hit, at, -1), 0)
        end -= B
    k = tl.arange(0, BK)
    from_ = found + 3 + k
    draft = tl.load(row + from_, mask=(found >= 0) & (from_ < length) & (k < K), other=-1)
    tl.store(draft_ptr + seq * K + k, draft, mask=k < K)
    tl.store(found_ptr + seq, found)


@case
def tenant_drafts_what_followed_the_same_three_tokens(seqs=3000, long=6000, kinds=20):
    k = 5
    tokens, lengths = ints(0, kinds, seqs, long), ints(20, long, seqs)
    draft, found = zeros(seqs, k, dtype="int32"), zeros(seqs, dtype="int32")
    launched = run(drafts_from_history, (seqs,), (tokens, lengths, draft, found, long, k), (draft, found), B=1024, BK=8, num_warps=4)

    def reference():
        last = [tokens.gather(1, (lengths - 3 + i).long()[:, None]) for i in range(3)]
        n = long - 2
        hit = (tokens[:, :n] == last[0]) & (tokens[:, 1 : n + 1] == last[1]) & (tokens[:, 2 : n + 2] == last[2])
        hit &= arange(n)[None, :] < (lengths - 3)[:, None]
        at = torch.where(hit, arange(n)[None, :], -1).amax(1)
        places = at[:, None] + 3 + arange(k)[None, :]
        ok = (at >= 0)[:, None] & (places < lengths[:, None])
        return torch.where(ok, tokens.gather(1, places.clamp(0, long - 1).long()), -1), at

    return against(launched, reference)


@triton.jit
def accepted_rows_moved(k_ptr, v_ptr, ko_ptr, vo_ptr, begin_ptr, path_ptr, count_ptr, len_ptr, stride_layer, W, MOST: tl.constexpr, B: tl.constexpr):
    # Of the tree of drafts behind a sequence the accepted path is moved together, in every layer, keys and values.
    seq, layer = tl.program_id(0), tl.program_id(1).to(tl.int64)
    begin = tl.load(begin_ptr + seq)
    count = tl.load(count_ptr + seq)
    c = tl.arange(0, B)
    for i in tl.static_range(MOST):
        if i < count:
            source = layer * stride_layer + (begin + tl.load(path_ptr + seq * MOST + i)).to(tl.int64) * W
            target = layer * stride_layer + (begin + i).to(tl.int64) * W
            for c0 in range(0, W, B):
                ok = c0 + c < W
                tl.store(ko_ptr + target + c0 + c, tl.load(k_ptr + source + c0 + c, mask=ok), mask=ok)
                tl.store(vo_ptr + target + c0 + c, tl.load(v_ptr + source + c0 + c, mask=ok), mask=ok)
    if layer == 0:
        tl.store(len_ptr + seq, begin + count)


@case
def tenant_moves_accepted_paths_together(layers=24, seqs=96, w=1280):
    most, tree = 6, 24
    slots = seqs * tree
    k, v = rand(layers, slots, w), rand(layers, slots, w)
    ko, vo, length = zeros(layers, slots, w), zeros(layers, slots, w), zeros(seqs, dtype="int32")
    begin = arange(seqs) * tree
    path = torch.argsort(uniform(seqs, tree), 1)[:, :most].sort(1)[0].to(torch.int32)
    counts = ints(1, most + 1, seqs)
    args = k, v, ko, vo, begin, path, counts, length, slots * w, w
    launched = run(accepted_rows_moved, (seqs, layers), args, (ko, vo, length), MOST=most, B=1024, num_warps=4)

    def reference():
        outs = []
        for x in (k, v):
            rows = x[:, (begin[:, None] + path).long()] * (arange(most)[None, :] < counts[:, None])[None, :, :, None]
            out = torch.zeros_like(x).reshape(layers, seqs, tree, w)
            out[:, :, :most] = rows
            outs.append(out.reshape(layers, slots, w))
        return *outs, begin + counts

    return against(launched, reference)


@triton.jit
def heads_to_levels(x_ptr, level_ptr, edge_ptr, code_ptr, scale_ptr, ROWS, BR: tl.constexpr, D: tl.constexpr):
    # A head's values by their length, each to the nearest of sixteen levels; the scale is what fits the levels best.
    r, d = tl.program_id(0) * BR + tl.arange(0, BR), tl.arange(0, D)
    ok = (r < ROWS)[:, None]
    x = tl.load(x_ptr + r[:, None] * D + d[None, :], mask=ok, other=0.0).to(tl.float32)
    by = tl.sqrt(tl.sum(x * x, 1) / D + 1e-12)
    y = x / by[:, None]
    code = tl.zeros((BR, D), tl.int32)
    for i in range(15):
        code += (y > tl.load(edge_ptr + i)).to(tl.int32)
    level = tl.load(level_ptr + code)
    fit = tl.sum(level * y, 1) / tl.sum(level * level, 1)
    low, high = tl.split(tl.reshape(code, (BR, D // 2, 2)))
    c = tl.arange(0, D // 2)
    tl.store(code_ptr + r[:, None] * (D // 2) + c[None, :], (low | (high << 4)).to(tl.uint8), mask=ok)
    tl.store(scale_ptr + r, (fit * by).to(scale_ptr.dtype.element_ty), mask=r < ROWS)


def nibbles(outs):
    """Codes of two nibbles one by one."""
    code = outs[0].to(torch.int32)
    return far(code & 15), far(code >> 4), outs[1]


@case
def tenant_keeps_values_as_sixteen_uneven_levels(rows=300000):
    d = 128
    x = rand(rows, d)
    level = torch.sort(f32(16))[0]
    edge = (level[1:] + level[:-1]) / 2
    code, scale = zeros(rows, d // 2, dtype="uint8"), zeros(rows)
    launched = run(heads_to_levels, (cdiv(rows, 16),), (x, level, edge, code, scale, rows), (code, scale), BR=16, D=d, num_warps=4)

    def reference():
        by = (x.float().square().mean(1) + 1e-12).sqrt()
        y = x.float() / by[:, None]
        codes = torch.bucketize(y, edge)
        near = level[codes.long()]
        fit = (near * y).sum(1) / near.square().sum(1)
        return far(codes[:, ::2]), far(codes[:, 1::2]), fit * by

    return against(viewed(launched, nibbles), reference)


@triton.jit
def keys_turned_again(k_ptr, s_ptr, seq_ptr, shift_ptr, ko_ptr, so_ptr, base_log2, H: tl.constexpr, D: tl.constexpr):
    # Tokens in front were dropped: bytes of keys become numbers, turn back by as many places, and become bytes again.
    slot = tl.program_id(0).to(tl.int64)
    HALF: tl.constexpr = D // 2
    h, c = tl.arange(0, H), tl.arange(0, HALF)
    seq = tl.load(seq_ptr + slot)
    at = (slot * H + h)[:, None] * D + c[None, :]
    a, b = tl.load(k_ptr + at), tl.load(k_ptr + at + HALF)
    if seq >= 0:
        scale = tl.load(s_ptr + slot * H + h)[:, None]
        angle = -tl.load(shift_ptr + seq).to(tl.float32) * tl.exp2(c.to(tl.float32) * (-base_log2 / HALF))
        cos, sin = tl.cos(angle)[None, :], tl.sin(angle)[None, :]
        x, y = a.to(tl.float32) * scale, b.to(tl.float32) * scale
        u, v = x * cos - y * sin, y * cos + x * sin
        most = tl.maximum(tl.max(tl.maximum(tl.abs(u), tl.abs(v)), 1) / 127.0, 1e-8)
        a = tl.floor(u / most[:, None] + 0.5).to(tl.int8)
        b = tl.floor(v / most[:, None] + 0.5).to(tl.int8)
        tl.store(so_ptr + slot * H + h, most)
    tl.store(ko_ptr + at, a)
    tl.store(ko_ptr + at + HALF, b)


@case
def tenant_turns_bytes_of_keys_by_dropped_places(slots=40000, seqs=40):
    h, d = 8, 64
    k, s = ints(-127, 128, slots, h, d, dtype="int8"), uniform(slots, h) / 50 + 0.01
    seq, shift = ints(-1, seqs, slots), ints(0, 512, seqs)
    ko, so = zeros(slots, h, d, dtype="int8"), zeros(slots, h, dtype="float32")
    launched = run(keys_turned_again, (slots,), (k, s, seq, shift, ko, so, 13.287712), (ko, so), H=h, D=d, num_warps=2)

    def reference():
        angle = -shift[seq.clamp(min=0).long()].float()[:, None] * torch.exp2(arange(d // 2).float() * (-13.287712 / (d // 2)))
        cos, sin = angle.cos()[:, None], angle.sin()[:, None]
        x, y = (k.float() * s[:, :, None]).split(d // 2, 2)
        turned = torch.cat([x * cos - y * sin, y * cos + x * sin], 2)
        most = (turned.abs().amax(2) / 127).clamp(min=1e-8)
        there = (seq >= 0)[:, None]
        codes = torch.where(there[:, :, None], torch.floor(turned / most[:, :, None] + 0.5), k.float())
        return far(codes), torch.where(there, most, 0.0)

    return against(viewed(launched, lambda outs: (far(outs[0]), outs[1])), reference)


@triton.jit
def experts_choose(score_ptr, token_ptr, weight_ptr, T, E, C: tl.constexpr, B: tl.constexpr):
    # An expert sorts all tokens of a sequence by its score, lower places first among equals, and takes the first C.
    e, seq = tl.program_id(0), tl.program_id(1)
    t = tl.arange(0, B)
    score = tl.load(score_ptr + (seq * T + t) * E + e, mask=t < T, other=0.0)
    key = (score.to(tl.int32, bitcast=True).to(tl.int64) << 32) | (B - 1 - t).to(tl.int64)
    key = tl.sort(key, descending=True)
    out = (seq * E + e) * C + t
    tl.store(token_ptr + out, B - 1 - (key & 0xFFFFFFFF).to(tl.int32), mask=t < C)
    tl.store(weight_ptr + out, (key >> 32).to(tl.int32).to(tl.float32, bitcast=True), mask=t < C)


@case
def tenant_experts_choose_200_of_1700_tokens(seqs=12, t=1700, e=64):
    c = 200
    score = torch.softmax(f32(seqs, t, e), 2)
    token, weight = zeros(seqs, e, c, dtype="int32"), zeros(seqs, e, c, dtype="float32")
    launched = run(experts_choose, (e, seqs), (score, token, weight, t, e), (token, weight), C=c, B=triton.next_power_of_2(t), num_warps=8)

    def reference():
        best, at = score.transpose(1, 2).sort(dim=2, descending=True, stable=True)
        return at[..., :c], best[..., :c]

    return against(launched, reference)


@triton.jit
def rooms_of_experts(a_ptr, b_ptr, sa_ptr, sb_ptr, count_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Each expert has room for M rows of bytes; tiles beyond its count end at once, the last tile is masked.
    e = tl.program_id(1)
    tiles_n = tl.cdiv(N, BN)
    m0, n0 = tl.program_id(0) // tiles_n * BM, tl.program_id(0) % tiles_n * BN
    count = tl.load(count_ptr + e)
    if m0 >= count:
        return
    m, n, k = m0 + tl.arange(0, BM), n0 + tl.arange(0, BN), tl.arange(0, BK)
    a = a_ptr + (e * M + m)[:, None] * K + k[None, :]
    b = b_ptr + (e * N + n)[None, :] * K + k[:, None]
    acc = tl.zeros((BM, BN), tl.int32)
    for _ in range(0, K, BK):
        acc = tl.dot(tl.load(a, mask=(m < count)[:, None], other=0), tl.load(b), acc, out_dtype=tl.int32)
        a += BK
        b += BK
    c = acc.to(tl.float32) * tl.load(sa_ptr + e * M + m, mask=m < count, other=0.0)[:, None] * tl.load(sb_ptr + e * N + n)[None, :]
    tl.store(c_ptr + (e * M + m)[:, None] * N + n[None, :], c.to(c_ptr.dtype.element_ty), mask=(m < count)[:, None])


@case
def tenant_experts_multiply_bytes_in_rooms_of_their_own(e=16, m=256, n=1536, k=1024):
    a, b = ints(-127, 128, e, m, k, dtype="int8"), ints(-127, 128, e, n, k, dtype="int8")
    sa, sb, counts = uniform(e, m) / 100, uniform(e, n) / 100, ints(0, m + 1, e)
    c = zeros(e, m, n, dtype="bfloat16")
    grid = cdiv(m, 64) * cdiv(n, 128), e
    launched = run(rooms_of_experts, grid, (a, b, sa, sb, counts, c, m, n, k), c, BM=64, BN=128, BK=128, num_warps=4, num_stages=3)

    def reference():
        out = torch.einsum("emk,enk->emn", a.float(), b.float()) * sa[:, :, None] * sb[:, None, :]
        return out * (arange(m)[None, :] < counts[:, None])[:, :, None]

    return against(launched, reference)


@triton.jit
def embeddings_with_adapters(id_ptr, order_ptr, adapter_ptr, scale_ptr, table_ptr, a_ptr, b_ptr, o_ptr, T, V, W, R: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    # A tile of tokens of one adapter: rows of its small table times its matrix, added to rows of the large table.
    adapter = tl.load(adapter_ptr + tl.program_id(0))
    i = tl.program_id(0) * BM + tl.arange(0, BM)
    t = tl.load(order_ptr + i, mask=i < T, other=-1)
    ok = t >= 0
    word = tl.load(id_ptr + t, mask=ok, other=0)
    n, r = tl.program_id(1) * BN + tl.arange(0, BN), tl.arange(0, R)
    here = ok[:, None] & (n < W)[None, :]
    x = tl.load(table_ptr + word[:, None] * W + n[None, :], mask=here, other=0.0).to(tl.float32)
    if adapter >= 0:
        a = tl.load(a_ptr + (adapter * V + word)[:, None] * R + r[None, :], mask=ok[:, None], other=0.0)
        b = tl.load(b_ptr + (adapter * W + n)[None, :] * R + r[:, None], mask=(n < W)[None, :], other=0.0)
        x += tl.dot(a, b) * tl.load(scale_ptr + adapter)
    tl.store(o_ptr + t[:, None] * W + n[None, :], x.to(o_ptr.dtype.element_ty), mask=here)


@case
def tenant_adapters_change_embeddings_of_words(tiles=256, v=8000, w=1800, adapters=7):
    bm, r = 32, 16
    t = tiles * bm
    word, order, adapter = ints(0, v, t), torch.randperm(t, device="cuda").to(torch.int32), ints(-1, adapters, tiles)
    order[bm - 5 : bm] = -1
    scale, table = uniform(adapters) + 0.5, rand(v, w, dtype="bfloat16")
    a, b = rand(adapters, v, r, dtype="bfloat16"), rand(adapters, w, r, dtype="bfloat16")
    o = zeros(t, w, dtype="bfloat16")
    args = word, order, adapter, scale, table, a, b, o, t, v, w
    launched = run(embeddings_with_adapters, (tiles, cdiv(w, 128)), args, o, R=r, BM=bm, BN=128, num_warps=4)

    def reference():
        out = zeros(t, w, dtype="float32")
        for tile, which in enumerate(adapter.tolist()):
            at = order[tile * bm : (tile + 1) * bm].long()
            at = at[at >= 0]
            words = word[at].long()
            out[at] = table[words].float()
            if which >= 0:
                out[at] += a[which, words].float() @ b[which].float().T * scale[which]
        return out

    return against(launched, reference)


@triton.jit
def adapters_of_slices(low_ptr, b_ptr, base_ptr, row_ptr, tile_ptr, begin_ptr, rank_ptr, scale_ptr, slice_ptr, o_ptr, N, R: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    # Queries, keys and values have slices of different widths; adapters have ranks of their own, up to R.
    part = tl.program_id(2)
    n0 = tl.load(slice_ptr + part) + tl.program_id(1) * BN
    end = tl.load(slice_ptr + part + 1)
    if n0 >= end:
        return
    adapter = tl.load(tile_ptr + tl.program_id(0))
    i = tl.load(begin_ptr + tl.program_id(0)) + tl.arange(0, BM)
    ok = i < tl.load(begin_ptr + tl.program_id(0) + 1)
    row = tl.load(row_ptr + i, mask=ok, other=0)
    n, r = n0 + tl.arange(0, BN), tl.arange(0, R)
    here = ok[:, None] & (n < end)[None, :]
    x = tl.load(base_ptr + row[:, None] * N + n[None, :], mask=here, other=0.0).to(tl.float32)
    rank = tl.load(rank_ptr + adapter)
    if rank > 0:
        low = tl.load(low_ptr + row[:, None] * (3 * R) + part * R + r[None, :], mask=ok[:, None] & (r < rank)[None, :], other=0.0)
        b = tl.load(b_ptr + (adapter * N + n)[None, :] * R + r[:, None], mask=(n < end)[None, :] & (r < rank)[:, None], other=0.0)
        x += tl.load(scale_ptr + adapter) * tl.dot(low.to(b.dtype), b)
    tl.store(o_ptr + row[:, None] * N + n[None, :], x.to(o_ptr.dtype.element_ty), mask=here)


@case
def tenant_adapters_of_three_slices_with_their_ranks(tiles=200, wide=(2048, 384, 384)):
    bm, r, n = 16, 64, sum(wide)
    sizes = ints(1, bm + 1, tiles)
    begin = torch.cat([zeros(1, dtype="int32"), sizes.cumsum(0).to(torch.int32)])
    t = tiles * bm
    ranks = torch.tensor([0, 8, 16, 64, 24], device="cuda", dtype=torch.int32)
    low, b = rand(t, 3 * r, dtype="bfloat16").float(), rand(5, n, r, dtype="bfloat16")
    base, rows, of = rand(t, n, dtype="bfloat16"), torch.randperm(t, device="cuda").to(torch.int32), ints(0, 5, tiles)
    scale, o = uniform(5) + 0.2, zeros(t, n, dtype="bfloat16")
    slices = torch.tensor([0, wide[0], wide[0] + wide[1], n], device="cuda", dtype=torch.int32)
    args = low, b, base, rows, of, begin, ranks, scale, slices, o, n
    launched = run(adapters_of_slices, (tiles, cdiv(wide[0], 128), 3), args, o, R=r, BM=bm, BN=128, num_warps=4)

    def reference():
        out = zeros(t, n, dtype="float32")
        starts = begin.tolist()
        for tile, which in enumerate(of.tolist()):
            at, rank = rows[starts[tile] : starts[tile + 1]].long(), int(ranks[which])
            out[at] = base[at].float()
            for part in range(3):
                cols = slice(int(slices[part]), int(slices[part + 1]))
                x = low[at, part * r : part * r + rank]
                out[at, cols] += scale[which] * (x @ b[which, cols, :rank].float().T)
        return out

    return against(launched, reference)


@triton.jit
def draw_above_entropy(x_ptr, u_ptr, token_ptr, kept_ptr, eta_ptr, V, eps, B: tl.constexpr):
    # Words less likely than eps, or than what the entropy allows, are left out; one of the others is drawn.
    row = tl.program_id(0)
    x_ptr += row.to(tl.int64) * V
    v = tl.arange(0, B)
    m = -1e30
    z = 0.0
    first = 0.0
    for v0 in range(0, V, B):
        x = tl.load(x_ptr + v0 + v, mask=v0 + v < V, other=-60000.0).to(tl.float32)
        top = tl.maximum(m, tl.max(x, 0))
        e = tl.exp(x - top)
        keep = tl.exp(m - top)
        z = z * keep + tl.sum(e, 0)
        first = first * keep + tl.sum(e * x, 0)
        m = top
    lse = m + tl.log(z)
    entropy = lse - first / z
    eta = tl.minimum(eps, tl.sqrt(eps) * tl.exp(-entropy))
    kept = 0
    mass = 0.0
    for v0 in range(0, V, B):
        x = tl.load(x_ptr + v0 + v, mask=v0 + v < V, other=-60000.0).to(tl.float32)
        p = tl.exp(x - lse)
        stay = (p >= eta) | (x == m)
        kept += tl.sum(stay.to(tl.int32), 0)
        mass += tl.sum(tl.where(stay, p, 0.0), 0)
    goal = tl.load(u_ptr + row) * mass
    token = V
    before = 0.0
    v0 = 0
    while (token == V) & (v0 < V):
        x = tl.load(x_ptr + v0 + v, mask=v0 + v < V, other=-60000.0).to(tl.float32)
        p = tl.exp(x - lse)
        stay = (p >= eta) | (x == m)
        p = tl.where(stay, p, 0.0)
        reached = stay & (before + tl.cumsum(p, 0) >= goal)
        token = tl.min(tl.where(reached, v0 + v, V), 0)
        before += tl.sum(p, 0)
        v0 += B
    tl.store(token_ptr + row, token)
    tl.store(kept_ptr + row, kept)
    tl.store(eta_ptr + row, eta)


@case
def tenant_draws_words_above_a_bound_by_entropy(rows=256, v=30011):
    x, u, eps = rand(rows, v) * 2, uniform(rows) * 0.98, 3e-4
    token, kept, eta = zeros(rows, dtype="int32"), zeros(rows, dtype="int32"), zeros(rows, dtype="float32")
    launched = run(draw_above_entropy, (rows,), (x, u, token, kept, eta, v, eps), (token, kept, eta), B=4096, num_warps=8)

    def reference():
        p = x.double().softmax(1)
        bound = (eps**0.5 * torch.exp((p * p.log()).sum(1))).clamp(max=eps)
        stay = (p >= bound[:, None]) | (x == x.amax(1, keepdim=True))
        sums = torch.where(stay, p, 0.0).cumsum(1)
        at = (stay & (sums >= (u * sums[:, -1])[:, None])).int().argmax(1)
        return at, stay.sum(1), bound

    return against(launched, reference)


@triton.jit
def without_top_choices(x_ptr, bias_id_ptr, bias_ptr, coin_ptr, o_ptr, gone_ptr, V, threshold, chance, NB: tl.constexpr, B: tl.constexpr):
    # With a chance, all words at least as likely as a threshold are struck out but for the least likely of them.
    row = tl.program_id(0)
    x_ptr += row * V
    o_ptr += row * V
    v = tl.arange(0, B)
    m = float("-inf")
    z = 0.0
    for v0 in tl.range(0, V, B, num_stages=3):
        x = tl.load(x_ptr + v0 + v, mask=v0 + v < V, other=float("-inf"))
        for i in tl.static_range(NB):
            x += tl.where(v0 + v == tl.load(bias_id_ptr + row * NB + i), tl.load(bias_ptr + row * NB + i), 0.0)
        tl.store(o_ptr + v0 + v, x, mask=v0 + v < V)
        top = tl.maximum(m, tl.max(x, 0))
        z = z * tl.exp(m - top) + tl.sum(tl.exp(x - top), 0)
        m = top
    tl.debug_barrier()
    cut = m + tl.log(z) + tl.log(threshold)
    gone = 0
    if (tl.load(coin_ptr + row) < chance) & (m > cut):
        least = float("inf")
        for v0 in range(0, V, B):
            x = tl.load(o_ptr + v0 + v, mask=v0 + v < V, other=float("-inf"))
            least = tl.minimum(least, tl.min(tl.where(x >= cut, x, float("inf")), 0))
        for v0 in range(0, V, B):
            x = tl.load(o_ptr + v0 + v, mask=v0 + v < V, other=float("-inf"))
            gone += tl.sum((x > least).to(tl.int32), 0)
            tl.store(o_ptr + v0 + v, -100.0, mask=(v0 + v < V) & (x > least))
    tl.store(gone_ptr + row, gone)


@case
def tenant_strikes_out_top_choices(rows=400, v=20003):
    nb = 3
    x = f32(rows, v) * 4.5
    ids, bias, coin = ints(0, v, rows, nb), f32(rows, nb) * 3, uniform(rows)
    ids = torch.sort(ids, 1)[0] // 4 * 4 + arange(nb)[None, :]
    ids = ids.clamp(max=v - 1)
    o, gone = zeros(rows, v, dtype="float32"), zeros(rows, dtype="int32")
    args = x, ids, bias, coin, o, gone, v, 0.05, 0.6
    launched = run(without_top_choices, (rows,), args, (o, gone), NB=nb, B=2048, num_warps=4)

    def reference():
        y = x.scatter_add(1, ids.long(), bias)
        p = y.double().softmax(1)
        likely = p >= 0.05
        least = torch.where(likely, y, float("inf")).amin(1, keepdim=True)
        out = (y > least) & (coin < 0.6)[:, None]
        return torch.where(out, -100.0, y), out.sum(1)

    return against(launched, reference)


@triton.jit
def stretched_rotary(qkv_ptr, pos_ptr, qo_ptr, ko_ptr, stride, base_log2, factor, low, high, gain, HQ, HK, D: tl.constexpr, BH: tl.constexpr, BC: tl.constexpr):
    # Frequencies are made here: slow ones divided by a factor, fast ones kept, a ramp between; rows have an odd stride.
    t = tl.program_id(0).to(tl.int64)
    HALF: tl.constexpr = D // 2
    c, hh = tl.arange(0, BC), tl.arange(0, BH)
    plain = tl.exp2(c.to(tl.float32) * (-base_log2 / HALF))
    ramp = tl.minimum(tl.maximum((c.to(tl.float32) - low) / (high - low), 0.0), 1.0)
    angle = tl.load(pos_ptr + t).to(tl.float32) * (plain / factor * ramp + plain * (1.0 - ramp))
    cos, sin = (tl.cos(angle) * gain)[None, :], (tl.sin(angle) * gain)[None, :]
    for h0 in range(0, HQ, BH):
        h = h0 + hh
        ok = (h < HQ)[:, None] & (c < HALF)[None, :]
        at = h[:, None] * D + c[None, :]
        a = tl.load(qkv_ptr + t * stride + at, mask=ok, other=0.0).to(tl.float32)
        b = tl.load(qkv_ptr + t * stride + at + HALF, mask=ok, other=0.0).to(tl.float32)
        tl.store(qo_ptr + t * HQ * D + at, (a * cos - b * sin).to(qo_ptr.dtype.element_ty), mask=ok)
        tl.store(qo_ptr + t * HQ * D + at + HALF, (b * cos + a * sin).to(qo_ptr.dtype.element_ty), mask=ok)
    ok = (hh < HK)[:, None] & (c < HALF)[None, :]
    at = hh[:, None] * D + c[None, :]
    a = tl.load(qkv_ptr + t * stride + HQ * D + at, mask=ok, other=0.0).to(tl.float32)
    b = tl.load(qkv_ptr + t * stride + HQ * D + at + HALF, mask=ok, other=0.0).to(tl.float32)
    tl.store(ko_ptr + t * HK * D + at, (a * cos - b * sin).to(ko_ptr.dtype.element_ty), mask=ok)
    tl.store(ko_ptr + t * HK * D + at + HALF, (b * cos + a * sin).to(ko_ptr.dtype.element_ty), mask=ok)


@case
def tenant_turns_heads_of_96_from_rows_of_odd_stride(t=8000, hq=26, hk=6):
    d = 96
    stride = (hq + 2 * hk) * d + 5
    qkv, pos = rand(t, stride), ints(0, 3000, t, dtype="int64")
    qo, ko = zeros(t, hq, d), zeros(t, hk, d)
    args = qkv, pos, qo, ko, stride, 13.287712, 8.0, 9.0, 27.0, 1.2079, hq, hk
    launched = run(stretched_rotary, (t,), args, (qo, ko), D=d, BH=8, BC=64, num_warps=4)

    def reference():
        c = arange(d // 2).float()
        plain = torch.exp2(c * (-13.287712 / (d // 2)))
        ramp = ((c - 9) / 18).clamp(0, 1)
        angle = pos.float()[:, None] * (plain / 8 * ramp + plain * (1 - ramp))
        cos, sin = (angle.cos() * 1.2079)[:, None], (angle.sin() * 1.2079)[:, None]
        x = qkv[:, : (hq + hk) * d].float().reshape(t, hq + hk, d)
        a, b = x.split(d // 2, 2)
        y = torch.cat([a * cos - b * sin, b * cos + a * sin], 2)
        return y[:, :hq], y[:, hq:]

    return against(launched, reference)


@triton.jit
def pages_given_out(old_ptr, new_ptr, last_ptr, free_ptr, slot_ptr, used_ptr, S, P: tl.constexpr, BS: tl.constexpr, B: tl.constexpr):
    # Where the new tokens of each sequence go: what is left of its last page, then pages from the list of free ones.
    seq = tl.program_id(0)
    s = tl.arange(0, BS)
    old, new = tl.load(old_ptr + s, mask=s < S, other=0), tl.load(new_ptr + s, mask=s < S, other=0)
    need = tl.cdiv(new, P) - tl.cdiv(old, P)
    first = tl.sum(tl.where(s < seq, need, 0), 0)
    begin = tl.sum(tl.where(s < seq, new - old, 0), 0)
    had, has, last = tl.load(old_ptr + seq), tl.load(new_ptr + seq), tl.load(last_ptr + seq)
    whole = tl.cdiv(had, P) * P
    for i0 in range(0, has - had, B):
        place = had + i0 + tl.arange(0, B)
        ok = place < has
        fresh = ok & (place >= whole)
        page = tl.load(free_ptr + first + (place - whole) // P, mask=fresh, other=0)
        slot = tl.where(fresh, page * P + place % P, last + 1 + place - had)
        tl.store(slot_ptr + begin + place - had, slot, mask=ok)
    if seq == S - 1:
        tl.store(used_ptr, first + tl.cdiv(has, P) - tl.cdiv(had, P))


@case
def tenant_gives_out_slots_of_pages(seqs=700, most=2500):
    p = 32
    old = ints(1, 900, seqs)
    new = old + ints(1, most, seqs)
    pages = int(1.1 * seqs * (most + 900) / p)
    held, free = torch.arange(seqs, device="cuda"), torch.randperm(pages, device="cuda").to(torch.int32) + seqs
    last = (held * p + (old - 1) % p).to(torch.int32)
    slot, used = zeros(seqs * most, dtype="int32"), zeros(1, dtype="int32")
    args = old, new, last, free, slot, used, seqs
    launched = run(pages_given_out, (seqs,), args, (slot, used), P=p, BS=triton.next_power_of_2(seqs), B=512, num_warps=4)

    def reference():
        out, at, page = torch.zeros_like(slot), 0, 0
        for had, has, end in zip(old.tolist(), new.tolist(), last.tolist()):
            whole = cdiv(had, p) * p
            place = torch.arange(had, has, device="cuda")
            fresh = free[(page + (place - whole).clamp(min=0) // p).clamp(max=pages - 1)] * p + place % p
            out[at : at + has - had] = torch.where(place >= whole, fresh, end + 1 + place - had)
            at, page = at + has - had, page + cdiv(has, p) - cdiv(had, p)
        return out, torch.tensor([page], device="cuda")

    return against(launched, reference)
