"""Tables of databases and genomes: filters, groups, joins, encoded columns, sketches, strings, hashes, alignments."""

import torch
import triton
import triton.language as tl

from .common import arange, case, cdiv, cleared, f32, ints, run, uniform, zeros


@triton.jit
def _keeps(price, qty, day, low, high):
    return (day >= low) & (day < high) & (qty < 24.0) & (price > 0.05) & (price < 0.07)


@triton.jit
def filter_count(price_ptr, qty_ptr, day_ptr, count_ptr, n, low, high, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    i = pid * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    keep = m & _keeps(tl.load(price_ptr + i, mask=m, other=0.0), tl.load(qty_ptr + i, mask=m, other=0.0), tl.load(day_ptr + i, mask=m, other=0), low, high)
    tl.store(count_ptr + pid, tl.sum(keep.to(tl.int32), axis=0))


@triton.jit
def exclusive_offsets(count_ptr, offset_ptr, blocks, BLOCK: tl.constexpr):
    carry = 0
    for start in range(0, blocks, BLOCK):
        i = start + tl.arange(0, BLOCK)
        c = tl.load(count_ptr + i, mask=i < blocks, other=0)
        tl.store(offset_ptr + i, carry + tl.cumsum(c, axis=0) - c, mask=i < blocks)
        carry += tl.sum(c, axis=0)
    tl.store(offset_ptr + blocks, carry)


@triton.jit
def filter_scatter(price_ptr, qty_ptr, day_ptr, offset_ptr, row_ptr, revenue_ptr, n, low, high, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    i = pid * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    price, qty = tl.load(price_ptr + i, mask=m, other=0.0), tl.load(qty_ptr + i, mask=m, other=0.0)
    keep = m & _keeps(price, qty, tl.load(day_ptr + i, mask=m, other=0), low, high)
    rank = tl.cumsum(keep.to(tl.int32), axis=0) - 1
    at = tl.load(offset_ptr + pid) + rank
    tl.store(row_ptr + at, i, mask=keep)
    tl.store(revenue_ptr + at, price * qty, mask=keep)


@case
def filter_then_compact_three_kernels():
    n, block = 4000037, 1024
    blocks = cdiv(n, block)
    price, qty, day = uniform(n) * 0.1, uniform(n) * 50, ints(0, 2500, n)
    count, offset = zeros(blocks, dtype="int32"), zeros(blocks + 1, dtype="int32")
    rows, revenue = zeros(n, dtype="int32"), zeros(n, dtype="float32")

    def launch(price, qty, day, count, offset, rows, revenue):
        filter_count[(blocks,)](price, qty, day, count, n, 300, 1700, BLOCK=block, num_warps=4)
        exclusive_offsets[(1,)](count, offset, blocks, BLOCK=1024, num_warps=8)
        filter_scatter[(blocks,)](price, qty, day, offset, rows, revenue, n, 300, 1700, BLOCK=block, num_warps=4)
        return rows, revenue, offset

    return launch, (price, qty, day, count, offset, rows, revenue)


@triton.jit
def group_sums_partial(key_ptr, a_ptr, b_ptr, sum_ptr, cnt_ptr, min_ptr, n, per_program, G: tl.constexpr, BLOCK: tl.constexpr):
    # Few groups: rows against groups as a tile; every program leaves a row of partial results.
    pid = tl.program_id(0)
    g = tl.arange(0, G)
    s = tl.zeros((G,), tl.float32)
    c = tl.zeros((G,), tl.int32)
    lo = tl.full((G,), float("inf"), tl.float32)
    for off in range(0, per_program, BLOCK):
        i = pid * per_program + off + tl.arange(0, BLOCK)
        m = i < n
        key = tl.load(key_ptr + i, mask=m, other=-1).to(tl.int32)
        a, b = tl.load(a_ptr + i, mask=m, other=0.0), tl.load(b_ptr + i, mask=m, other=0.0)
        hit = key[:, None] == g[None, :]
        s += tl.sum(tl.where(hit, (a * (1.0 - b))[:, None], 0.0), axis=0)
        c += tl.sum(hit.to(tl.int32), axis=0)
        lo = tl.minimum(lo, tl.min(tl.where(hit, a[:, None], float("inf")), axis=0))
    tl.store(sum_ptr + pid * G + g, s)
    tl.store(cnt_ptr + pid * G + g, c)
    tl.store(min_ptr + pid * G + g, lo)


@triton.jit
def group_sums_final(sum_ptr, cnt_ptr, min_ptr, avg_ptr, total_ptr, least_ptr, P, G: tl.constexpr, BLOCK_P: tl.constexpr):
    g = tl.arange(0, G)
    s = tl.zeros((G,), tl.float32)
    c = tl.zeros((G,), tl.int32)
    lo = tl.full((G,), float("inf"), tl.float32)
    for p0 in range(0, P, BLOCK_P):
        p = p0 + tl.arange(0, BLOCK_P)
        at, m = p[:, None] * G + g[None, :], (p < P)[:, None]
        s += tl.sum(tl.load(sum_ptr + at, mask=m, other=0.0), axis=0)
        c += tl.sum(tl.load(cnt_ptr + at, mask=m, other=0), axis=0)
        lo = tl.minimum(lo, tl.min(tl.load(min_ptr + at, mask=m, other=float("inf")), axis=0))
    tl.store(total_ptr + g, s)
    tl.store(avg_ptr + g, s / tl.maximum(c, 1).to(tl.float32))
    tl.store(least_ptr + g, lo)


@case
def group_by_16_keys_two_stages():
    n, programs, g = 3000000, 528, 16
    per = cdiv(n, programs * 512) * 512
    s, c, lo = zeros(programs, g, dtype="float32"), zeros(programs, g, dtype="int32"), zeros(programs, g, dtype="float32")
    avg, total, least = zeros(g, dtype="float32"), zeros(g, dtype="float32"), zeros(g, dtype="float32")

    def launch(key, a, b):
        group_sums_partial[(programs,)](key, a, b, s, c, lo, n, per, G=g, BLOCK=512, num_warps=4)
        group_sums_final[(1,)](s, c, lo, avg, total, least, programs, G=g, BLOCK_P=64, num_warps=4)
        return avg, total, least

    return launch, (ints(0, g, n, dtype="int8"), uniform(n) + 1, uniform(n) * 0.1)


@triton.jit
def _fmix32(h):
    h ^= h >> 16
    h *= 0x85EBCA6B
    h ^= h >> 13
    h *= 0xC2B2AE35
    h ^= h >> 16
    return h


@triton.jit
def join_probe_chains(probe_ptr, head_ptr, next_ptr, key_ptr, payload_ptr, sum_ptr, hits_ptr, n, mask_bits, BLOCK: tl.constexpr):
    # Chains of a table's buckets are followed until all lanes have come to an end.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    live = i < n
    key = tl.load(probe_ptr + i, mask=live, other=0)
    bucket = (_fmix32(key.to(tl.uint32, bitcast=True)) & mask_bits).to(tl.int32)
    node = tl.load(head_ptr + bucket, mask=live, other=-1)
    total = tl.zeros((BLOCK,), tl.int32)
    hits = tl.zeros((BLOCK,), tl.int32)
    while tl.max(node, axis=0) >= 0:
        on = node >= 0
        k = tl.load(key_ptr + node, mask=on, other=0)
        v = tl.load(payload_ptr + node, mask=on, other=0)
        same = on & (k == key)
        total += tl.where(same, v, 0)
        hits += same.to(tl.int32)
        node = tl.load(next_ptr + node, mask=on, other=-1)
    tl.store(sum_ptr + i, total, mask=live)
    tl.store(hits_ptr + i, hits, mask=live)


def mixed(key):
    h = key.long() & 0xFFFFFFFF
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35), (16, 1)):
        h = ((h ^ h >> shift) * factor) & 0xFFFFFFFF
    return h


@case
def join_probe_of_chained_buckets():
    n, build, buckets = 2000000, 300000, 1 << 18
    key = ints(0, 400000, build)
    bucket = (mixed(key) & (buckets - 1)).int()
    order = torch.argsort(bucket, stable=True).int()
    b = bucket[order.long()]
    same = torch.zeros(build, device="cuda", dtype=torch.bool)
    same[:-1] = b[1:] == b[:-1]
    follow = torch.full((build,), -1, device="cuda", dtype=torch.int32)
    follow[order[:-1].long()] = torch.where(same[:-1], order[1:], -1).int()
    first = torch.ones(build, device="cuda", dtype=torch.bool)
    first[1:] = b[1:] != b[:-1]
    head = torch.full((buckets,), -1, device="cuda", dtype=torch.int32)
    head[b[first].long()] = order[first]
    total, hits = zeros(n, dtype="int32"), zeros(n, dtype="int32")
    args = ints(0, 400000, n), head, follow, key, ints(0, 1000, build), total, hits, n, buckets - 1
    return run(join_probe_chains, (cdiv(n, 256),), args, (total, hits), BLOCK=256, num_warps=4)


@triton.jit
def unpack_delta_column(words_ptr, base_ptr, out_ptr, BITS: tl.constexpr, BLOCK: tl.constexpr):
    # Deltas of BITS bits that lie across words, after a base for each block: a value is a sum of all before it.
    block = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    bit = i * BITS
    w = words_ptr + block * (BLOCK * BITS // 32) + (bit >> 5)
    shift = (bit & 31).to(tl.uint32)
    low = tl.load(w).to(tl.uint32, bitcast=True)
    spills = (bit & 31) + BITS > 32
    high = tl.load(w + 1, mask=spills, other=0).to(tl.uint32, bitcast=True)
    both = (high.to(tl.uint64) << 32) | low.to(tl.uint64)
    zigzag = ((both >> shift.to(tl.uint64)) & ((1 << BITS) - 1)).to(tl.int32)
    delta = (zigzag >> 1) ^ -(zigzag & 1)
    value = tl.load(base_ptr + block) + tl.cumsum(delta.to(tl.int64), axis=0)
    tl.store(out_ptr + block * BLOCK + i, value)


@case
def unpack_delta_zigzag_11_bits():
    blocks, block, bits = 6000, 1024, 11
    out = zeros(blocks * block, dtype="int64")
    args = ints(-(2**31), 2**31, blocks * block * bits // 32), ints(-(2**40), 2**40, blocks, dtype="int64"), out
    return run(unpack_delta_column, (blocks,), args, out, BITS=bits, BLOCK=block, num_warps=4)


@triton.jit
def run_lengths_expand(end_ptr, value_ptr, out_ptr, n, runs, STEPS: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    live = i < n
    lo = tl.zeros((BLOCK,), tl.int32)
    hi = tl.zeros((BLOCK,), tl.int32) + runs
    for _ in range(STEPS):
        mid = (lo + hi) >> 1
        end = tl.load(end_ptr + mid, mask=mid < runs, other=2147483647)
        right = end <= i
        lo = tl.where(right, mid + 1, lo)
        hi = tl.where(right, hi, mid)
    tl.store(out_ptr + i, tl.load(value_ptr + lo, mask=live, other=0), mask=live)


@case
def run_length_decode_by_search():
    runs = 100000
    end = torch.cumsum(ints(1, 50, runs), 0).int()
    n = int(end[-1])
    out = zeros(n, dtype="int16")
    return run(run_lengths_expand, (cdiv(n, 512),), (end, ints(-3000, 3000, runs, dtype="int16"), out, n, runs), out, STEPS=17, BLOCK=512, num_warps=4)


@triton.jit
def like_contains(chars_ptr, pattern_ptr, out_ptr, n_rows, WIDTH: tl.constexpr, P: tl.constexpr, ROWS: tl.constexpr):
    # LIKE '%pattern%' on strings of fixed width; underscores (zero) match anything; a bit for each row.
    r = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    c = tl.arange(0, WIDTH)
    live = r < n_rows
    hit = tl.full((ROWS, WIDTH), 1, tl.int1)
    for p in tl.static_range(P):
        want = tl.load(pattern_ptr + p)
        ch = tl.load(chars_ptr + r[:, None] * WIDTH + c[None, :] + p, mask=live[:, None] & (c + p < WIDTH)[None, :], other=255)
        hit = hit & ((ch == want) | ((want == 0) & (ch != 255)))
    any_hit = tl.max(hit.to(tl.int32), axis=1)
    bits = tl.reshape(any_hit, (ROWS // 32, 32)) << tl.arange(0, 32)[None, :]
    tl.store(out_ptr + tl.program_id(0) * (ROWS // 32) + tl.arange(0, ROWS // 32), tl.sum(bits, axis=1))


@case
def like_pattern_to_bitmap():
    rows, width = 500000, 32
    out = zeros(cdiv(rows, 64) * 2, dtype="int32")
    pattern = torch.tensor([98, 0, 99, 97], device="cuda", dtype=torch.uint8)
    args = ints(97, 101, rows, width, dtype="uint8"), pattern, out, rows
    return run(like_contains, (cdiv(rows, 64),), args, out, WIDTH=width, P=4, ROWS=64, num_warps=4)


@triton.jit
def _zone(lo1, hi1, n1, s1, lo2, hi2, n2, s2):
    return tl.minimum(lo1, lo2), tl.maximum(hi1, hi2), n1 + n2, s1 + s2


@triton.jit
def zone_maps(x_ptr, valid_ptr, lo_ptr, hi_ptr, nulls_ptr, sum_ptr, n, ZONE: tl.constexpr, BLOCK: tl.constexpr):
    zone = tl.program_id(0)
    lo = tl.full((), 9223372036854775807, tl.int64)
    hi = tl.full((), -9223372036854775807, tl.int64)
    nulls, total = 0, 0.0
    for off in tl.static_range(0, ZONE, BLOCK):
        i = zone * ZONE + off + tl.arange(0, BLOCK)
        m = i < n
        ok = m & (((tl.load(valid_ptr + i // 8, mask=m, other=0) >> (i % 8).to(tl.uint8)) & 1) != 0)
        x = tl.load(x_ptr + i, mask=ok, other=0)
        a, b, c, d = tl.reduce((tl.where(ok, x, 9223372036854775807), tl.where(ok, x, -9223372036854775807), (m & (ok == 0)).to(tl.int32),
                                tl.where(ok, x.to(tl.float32), 0.0)), 0, _zone)
        lo, hi, nulls, total = _zone(lo, hi, nulls, total, a, b, c, d)
    tl.store(lo_ptr + zone, lo)
    tl.store(hi_ptr + zone, hi)
    tl.store(nulls_ptr + zone, nulls)
    tl.store(sum_ptr + zone, total)


@case
def zone_maps_with_nulls():
    n, zone = 5000000, 4096
    zones = cdiv(n, zone)
    outs = zeros(zones, dtype="int64"), zeros(zones, dtype="int64"), zeros(zones, dtype="int32"), zeros(zones, dtype="float32")
    args = (ints(0, 2**40, n, dtype="int64"), ints(0, 256, cdiv(n, 8), dtype="uint8"), *outs, n)
    return run(zone_maps, (zones,), args, outs, ZONE=zone, BLOCK=1024, num_warps=4)


@triton.jit
def _add_unless_new(f1, v1, f2, v2):
    return f1 | f2, tl.where(f2 != 0, v2, v1 + v2)


@triton.jit
def window_running_sums(part_ptr, x_ptr, run_ptr, row_ptr, n, per_program, BLOCK: tl.constexpr):
    # SUM(x) and ROW_NUMBER() OVER (PARTITION BY part): a scan that starts again; a program's first partition starts with it.
    pid = tl.program_id(0)
    carry = 0.0
    number = 0
    t = tl.arange(0, BLOCK)
    for off in range(0, per_program, BLOCK):
        i = pid * per_program + off + t
        m = i < n
        part = tl.load(part_ptr + i, mask=m, other=-1)
        before = tl.load(part_ptr + i - 1, mask=m & (i > pid * per_program), other=-2)
        x = tl.load(x_ptr + i, mask=m, other=0.0)
        first = (part != before).to(tl.int32)
        seen, total = tl.associative_scan((first, x), 0, _add_unless_new)
        seen2, count = tl.associative_scan((first, tl.full((BLOCK,), 1, tl.int32)), 0, _add_unless_new)
        total = tl.where(seen != 0, total, total + carry)
        count = tl.where(seen2 != 0, count, count + number)
        tl.store(run_ptr + i, total, mask=m)
        tl.store(row_ptr + i, count, mask=m)
        carry = tl.sum(tl.where(t == BLOCK - 1, total, 0.0), axis=0)
        number = tl.sum(tl.where(t == BLOCK - 1, count, 0), axis=0)


@case
def window_sum_and_row_number():
    n, programs = 2000000, 528
    per = cdiv(n, programs * 512) * 512
    part = torch.cumsum((uniform(n) < 0.01).int(), 0).int()
    total, row = zeros(n, dtype="float32"), zeros(n, dtype="int32")
    return run(window_running_sums, (programs,), (part, uniform(n), total, row, n, per), (total, row), BLOCK=512, num_warps=4)


@triton.jit
def topk_of_chunks(x_ptr, key_ptr, n, K: tl.constexpr, CHUNK: tl.constexpr):
    i = tl.program_id(0) * CHUNK + tl.arange(0, CHUNK)
    x = tl.load(x_ptr + i, mask=i < n, other=-float("inf"))
    bits = x.to(tl.int32, bitcast=True)
    ordered = bits ^ ((bits >> 31) & 0x7FFFFFFF)
    key = (ordered.to(tl.int64) << 32) | (0x7FFFFFFF - i).to(tl.int64)
    tl.store(key_ptr + tl.program_id(0) * K + tl.arange(0, K), tl.topk(key, K))


@triton.jit
def topk_merge(key_ptr, val_ptr, idx_ptr, chunks, K: tl.constexpr, WIDE: tl.constexpr):
    best = tl.full((K,), -9223372036854775807, tl.int64)
    total = chunks * K
    for c0 in range(0, total, WIDE):
        c = c0 + tl.arange(0, WIDE)
        top = tl.topk(tl.load(key_ptr + c, mask=c < total, other=-9223372036854775807), K)
        best = tl.topk(tl.reshape(tl.join(best, top), (2 * K,)), K)
    high = (best >> 32).to(tl.int32)
    bits = high ^ ((high >> 31) & 0x7FFFFFFF)
    tl.store(val_ptr + tl.arange(0, K), bits.to(tl.float32, bitcast=True))
    tl.store(idx_ptr + tl.arange(0, K), 0x7FFFFFFF - (best & 0xFFFFFFFF).to(tl.int32))


@case
def topk_32_of_a_column():
    n, k, chunk = 1000003, 32, 1024
    chunks = cdiv(n, chunk)
    key, val, idx = zeros(chunks * k, dtype="int64"), zeros(k, dtype="float32"), zeros(k, dtype="int32")

    def launch(x):
        topk_of_chunks[(chunks,)](x, key, n, K=k, CHUNK=chunk, num_warps=4)
        topk_merge[(1,)](key, val, idx, chunks, K=k, WIDE=1024, num_warps=8)
        return val, idx

    return launch, (f32(n),)


@triton.jit
def radix_scatter(key_ptr, val_ptr, offset_ptr, key_out, val_out, n, blocks, SHIFT: tl.constexpr, BINS: tl.constexpr, BLOCK: tl.constexpr):
    # A digit's place: where its block starts in its bin, and its rank among the block's equal digits.
    pid = tl.program_id(0)
    i = pid * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    key = tl.load(key_ptr + i, mask=m, other=0)
    val = tl.load(val_ptr + i, mask=m, other=0)
    digit = (key >> SHIFT) & (BINS - 1)
    bins = tl.arange(0, BINS)
    one = ((digit[:, None] == bins[None, :]) & m[:, None]).to(tl.int32)
    rank = tl.sum(tl.where(one != 0, tl.cumsum(one, axis=0) - 1, 0), axis=1)
    at = tl.load(offset_ptr + digit * blocks + pid, mask=m, other=0) + rank
    tl.store(key_out + at, key, mask=m)
    tl.store(val_out + at, val, mask=m)


@case
def radix_partition_16_bins():
    block = 512
    n = 4000 * block
    key = ints(0, 2**31 - 1, n)
    counts = torch.stack([((key >> 8 & 15) == b).view(-1, block).sum(1) for b in range(16)])
    offset = (torch.cumsum(counts.reshape(-1), 0) - counts.reshape(-1)).int()
    a, b = zeros(n, dtype="int32"), zeros(n, dtype="int32")
    args = key, arange(n), offset, a, b, n, n // block
    return run(radix_scatter, (n // block,), args, (a, b), SHIFT=8, BINS=16, BLOCK=block, num_warps=8)


@triton.jit
def bloom_probe(key_ptr, filter_ptr, out_ptr, n, words_mask, HASHES: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    key = tl.load(key_ptr + i, mask=m, other=0)
    h1 = _fmix32((key & 0xFFFFFFFF).to(tl.uint32))
    h2 = _fmix32((key >> 32).to(tl.uint32) + 0x9E3779B9) | 1
    ok = m
    for k in tl.static_range(HASHES):
        h = h1 + k * h2
        word = tl.load(filter_ptr + ((h >> 5) & words_mask).to(tl.int32), mask=ok, other=0)
        ok = ok & (((word >> (h & 31).to(tl.int32)) & 1) != 0)
    tl.store(out_ptr + i, ok.to(tl.int8), mask=m)


@case
def bloom_filter_probe():
    n, words = 3000001, 1 << 18
    filled = ints(-(2**31), 2**31, words) | ints(-(2**31), 2**31, words)
    out = zeros(n, dtype="int8")
    return run(bloom_probe, (cdiv(n, 512),), (ints(0, 2**50, n, dtype="int64"), filled, out, n, words - 1), out, HASHES=5, BLOCK=512, num_warps=4)


@triton.jit
def hyperloglog_update(key_ptr, reg_ptr, n, P: tl.constexpr, BLOCK: tl.constexpr, ITEMS: tl.constexpr):
    for it in range(ITEMS):
        i = (tl.program_id(0) * ITEMS + it) * BLOCK + tl.arange(0, BLOCK)
        m = i < n
        h = _fmix32(tl.load(key_ptr + i, mask=m, other=0).to(tl.uint32, bitcast=True))
        bucket = (h >> (32 - P)).to(tl.int32)
        rest = (h << P) | (1 << (P - 1))
        # The leading zeros of a word, from the exponent of its upper half as a float.
        high = (rest >> 16).to(tl.int32)
        pick = tl.where(high != 0, high, (rest & 0xFFFF).to(tl.int32))
        exponent = (pick.to(tl.float32).to(tl.int32, bitcast=True) >> 23) - 127
        rho = tl.where(high != 0, 16 - exponent, 32 - exponent)
        tl.atomic_max(reg_ptr + bucket, rho, mask=m, sem="relaxed")


@case
def hyperloglog_registers():
    n, p = 2000000, 12
    reg = zeros(1 << p, dtype="int32")
    return cleared(run(hyperloglog_update, (cdiv(n, 1024),), (ints(0, 700000, n), reg, n), reg, P=p, BLOCK=256, ITEMS=4, num_warps=4), reg)


@triton.jit
def civil_dates(day_ptr, year_ptr, month_ptr, dom_ptr, dow_ptr, n, BLOCK: tl.constexpr):
    # Days since 1970 to a date, in eras of 400 years that begin in March.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    days = tl.load(day_ptr + i, mask=m, other=0)
    z = days + 719468
    era = tl.where(z >= 0, z, z - 146096) // 146097
    doe = z - era * 146097
    yoe = (doe - doe // 1460 + doe // 36524 - doe // 146096) // 365
    doy = doe - (365 * yoe + yoe // 4 - yoe // 100)
    mp = (5 * doy + 2) // 153
    dom = doy - (153 * mp + 2) // 5 + 1
    month = tl.where(mp < 10, mp + 3, mp - 9)
    year = yoe + era * 400 + (month <= 2).to(tl.int32)
    dow = (days % 7 + 11) % 7
    tl.store(year_ptr + i, year.to(tl.int16), mask=m)
    tl.store(month_ptr + i, month.to(tl.int8), mask=m)
    tl.store(dom_ptr + i, dom.to(tl.int8), mask=m)
    tl.store(dow_ptr + i, dow.to(tl.int8), mask=m)


@case
def dates_from_days():
    n = 6000001
    outs = zeros(n, dtype="int16"), zeros(n, dtype="int8"), zeros(n, dtype="int8"), zeros(n, dtype="int8")
    return run(civil_dates, (cdiv(n, 1024),), (ints(-30000, 40000, n), *outs, n), outs, BLOCK=1024, num_warps=4)


@triton.jit
def decimal_multiply(a_ptr, b_ptr, lo_ptr, hi_ptr, scaled_ptr, n, SCALE: tl.constexpr, BLOCK: tl.constexpr):
    # A product of two decimals of 64 bits in 128 bits, and its value at the old scale where that fits.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    a, b = tl.load(a_ptr + i, mask=m, other=0), tl.load(b_ptr + i, mask=m, other=0)
    negative = (a ^ b) < 0
    ua, ub = tl.abs(a).to(tl.uint64), tl.abs(b).to(tl.uint64)
    lo, hi = ua * ub, tl.umulhi(ua, ub)
    rounded = tl.where(hi == 0, (lo + SCALE // 2) // SCALE, 0).to(tl.int64)
    carry = (lo == 0).to(tl.uint64)
    tl.store(lo_ptr + i, tl.where(negative, ~lo + 1, lo), mask=m)
    tl.store(hi_ptr + i, tl.where(negative, ~hi + carry, hi), mask=m)
    tl.store(scaled_ptr + i, tl.where(negative, -rounded, rounded), mask=m)


@case
def decimal_products_128_bits():
    n = 2000003
    lo, hi, scaled = zeros(n, dtype="int64"), zeros(n, dtype="int64"), zeros(n, dtype="int64")
    args = ints(-(2**40), 2**40, n, dtype="int64"), ints(-(2**30), 2**30, n, dtype="int64"), lo, hi, scaled, n
    return run(decimal_multiply, (cdiv(n, 512),), args, (lo, hi, scaled), SCALE=10000, BLOCK=512, num_warps=4)


@triton.jit
def utf8_lengths(bytes_ptr, offset_ptr, chars_ptr, upper_ptr, rows, BLOCK_R: tl.constexpr, BLOCK_B: tl.constexpr):
    # Code points of strings of any length, and how many ASCII capitals there are.
    r = tl.program_id(0) * BLOCK_R + tl.arange(0, BLOCK_R)
    live = r < rows
    start = tl.load(offset_ptr + r, mask=live, other=0)
    length = (tl.load(offset_ptr + r + 1, mask=live, other=0) - start).to(tl.int32)
    chars = tl.zeros((BLOCK_R,), tl.int32)
    caps = tl.zeros((BLOCK_R,), tl.int32)
    for b0 in range(0, tl.max(length, axis=0), BLOCK_B):
        b = b0 + tl.arange(0, BLOCK_B)
        mask = b[None, :] < length[:, None]
        c = tl.load(bytes_ptr + start[:, None] + b[None, :], mask=mask, other=0x80)
        chars += tl.sum(((c & 0xC0) != 0x80).to(tl.int32), axis=1)
        caps += tl.sum(((c >= 65) & (c <= 90)).to(tl.int32), axis=1)
    tl.store(chars_ptr + r, chars, mask=live)
    tl.store(upper_ptr + r, caps, mask=live)


@case
def utf8_lengths_of_ragged_strings():
    rows = 400000
    offset = zeros(rows + 1, dtype="int64")
    offset[1:] = torch.cumsum(ints(0, 120, rows, dtype="int64"), 0)
    chars, upper = zeros(rows, dtype="int32"), zeros(rows, dtype="int32")
    args = ints(0, 256, int(offset[-1]), dtype="uint8"), offset, chars, upper, rows
    return run(utf8_lengths, (cdiv(rows, 16),), args, (chars, upper), BLOCK_R=16, BLOCK_B=64, num_warps=4)


@triton.jit
def asof_join(l_sym, l_time, r_start, r_time, r_price, out_price, out_age, n, tolerance, STEPS: tl.constexpr, BLOCK: tl.constexpr):
    # The last quote of a trade's symbol that is not after it, if not too old.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    sym = tl.load(l_sym + i, mask=m, other=0).to(tl.int32)
    t = tl.load(l_time + i, mask=m, other=0)
    begin = tl.load(r_start + sym, mask=m, other=0)
    lo, hi = begin, tl.load(r_start + sym + 1, mask=m, other=0)
    for _ in tl.static_range(STEPS):
        open_ = lo < hi
        mid = (lo + hi) // 2
        rt = tl.load(r_time + mid, mask=m & open_, other=0)
        go = open_ & (rt <= t)
        lo = tl.where(go, mid + 1, lo)
        hi = tl.where(open_ & (rt > t), mid, hi)
    found = m & (lo > begin)
    age = t - tl.load(r_time + lo - 1, mask=found, other=0)
    found = found & (age <= tolerance)
    price = tl.load(r_price + lo - 1, mask=found, other=float("nan"))
    tl.store(out_price + i, price, mask=m)
    tl.store(out_age + i, tl.where(found, age, -1), mask=m)


@case
def asof_join_with_tolerance():
    n, symbols, quotes = 1000000, 500, 2000
    start = arange(symbols + 1) * quotes
    times = torch.sort(ints(0, 10**9, symbols, quotes, dtype="int64"), dim=1)[0].reshape(-1).contiguous()
    price, age = zeros(n, dtype="float32"), zeros(n, dtype="int64")
    args = ints(0, symbols, n, dtype="int16"), ints(0, 10**9, n, dtype="int64"), start, times, uniform(symbols * quotes), price, age, n, 10**6
    return run(asof_join, (cdiv(n, 256),), args, (price, age), STEPS=11, BLOCK=256, num_warps=4)


@triton.jit
def kmer_hashes(base_ptr, hash_ptr, n, K: tl.constexpr, BLOCK: tl.constexpr):
    # The smaller of a k-mer and its reverse complement, mixed.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i + K <= n
    forward = tl.zeros((BLOCK,), tl.int64)
    reverse = tl.zeros((BLOCK,), tl.int64)
    for k in tl.static_range(K):
        b = tl.load(base_ptr + i + k, mask=m, other=0).to(tl.int64)
        forward = (forward << 2) | b
        reverse = reverse | ((3 - b) << (2 * k))
    h = tl.minimum(forward, reverse).to(tl.uint64)
    h = (h ^ (h >> 33)) * 0xFF51AFD7ED558CCD
    h = (h ^ (h >> 33)) * 0xC4CEB9FE1A85EC53
    h = h ^ (h >> 33)
    tl.store(hash_ptr + i, (h >> 1).to(tl.int64), mask=m)


@triton.jit
def window_minimizers(hash_ptr, pos_ptr, new_ptr, n, W: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i + W <= n
    best = tl.full((BLOCK,), 9223372036854775807, tl.int64)
    where = tl.zeros((BLOCK,), tl.int32)
    prev_best = tl.full((BLOCK,), 9223372036854775807, tl.int64)
    prev_where = tl.zeros((BLOCK,), tl.int32) - 1
    for w in range(-1, W):
        h = tl.load(hash_ptr + i + w, mask=m & (i + w >= 0), other=9223372036854775807)
        if w >= 0:
            less = h < best
            best = tl.where(less, h, best)
            where = tl.where(less, i + w, where)
        if w < W - 1:
            less2 = h < prev_best
            prev_best = tl.where(less2, h, prev_best)
            prev_where = tl.where(less2, i + w, prev_where)
    tl.store(pos_ptr + i, where, mask=m)
    tl.store(new_ptr + i, (where != prev_where).to(tl.int8), mask=m)


@case
def kmer_minimizers():
    n, k, w = 2000000, 15, 10
    count = n - k + 1
    h, pos, new = zeros(count, dtype="int64"), zeros(count, dtype="int32"), zeros(count, dtype="int8")

    def launch(bases):
        kmer_hashes[(cdiv(n, 512),)](bases, h, n, K=k, BLOCK=512, num_warps=4)
        window_minimizers[(cdiv(count, 512),)](h, pos, new, count, W=w, BLOCK=512, num_warps=4)
        return h, pos, new

    return launch, (ints(0, 4, n, dtype="uint8"),)


@triton.jit
def banded_affine_alignment(q_ptr, r_ptr, score_ptr, n, m, match, mismatch, gap_open, gap_extend, BAND: tl.constexpr):
    # Global alignment in a band along the diagonal: a row at a time; gaps along the row by a scan of maxima.
    pid = tl.program_id(0)
    lane = tl.arange(0, BAND)
    up = tl.minimum(lane + 1, BAND - 1)
    col = lane - BAND // 2
    low = -1000000
    H = tl.where(col == 0, 0, tl.where(col > 0, -gap_open - gap_extend * col, low))
    F = tl.full((BAND,), low, tl.int32)
    for i in range(0, n):
        q = tl.load(q_ptr + pid * n + i)
        j = i + 1 + col
        inside = (j >= 1) & (j <= m)
        r = tl.load(r_ptr + pid * m + j - 1, mask=inside, other=255)
        diag = H + tl.where(r == q, match, -mismatch)
        last = lane == BAND - 1
        above = tl.where(last, low, tl.gather(H, up, 0))
        F = tl.maximum(tl.where(last, low, tl.gather(F, up, 0)), above - gap_open) - gap_extend
        best = tl.where(inside, tl.maximum(diag, F), low)
        best = tl.where(j == 0, -gap_open - gap_extend * (i + 1), best)
        run_max = tl.associative_scan(best + gap_extend * lane, 0, _larger)
        prev = tl.where(lane == 0, low, tl.gather(run_max, tl.maximum(lane - 1, 0), 0))
        E = prev - gap_open - gap_extend * lane
        H = tl.where(inside, tl.maximum(best, E), best)
    tl.store(score_ptr + pid, tl.max(tl.where(n + col == m, H, low), axis=0))


@triton.jit
def _larger(a, b):
    return tl.maximum(a, b)


@case
def align_pairs_affine_band_64():
    pairs, n, m = 3000, 150, 160
    query = ints(0, 4, pairs, n, dtype="uint8")
    target = torch.cat((query[:, :70], ints(0, 4, pairs, 10, dtype="uint8"), query[:, 70:]), 1).contiguous()
    score = zeros(pairs, dtype="int32")
    return run(banded_affine_alignment, (pairs,), (query, target, score, n, m, 2, 3, 4, 1), score, BAND=64, num_warps=1)


@triton.jit
def _rotl64(x, r: tl.constexpr):
    return (x << r) | (x >> (64 - r))


@triton.jit
def _xx_round(acc, lane):
    return _rotl64(acc + lane * 0xC2B2AE3D27D4EB4F, 31) * 0x9E3779B185EBCA87


@triton.jit
def _xx_merge(h, acc):
    zero = acc ^ acc
    return (h ^ _xx_round(zero, acc)) * 0x9E3779B185EBCA87 + 0x85EBCA77C2B2AE63


@triton.jit
def xxhash64_rows(rows_ptr, out_ptr, n, seed, WORDS: tl.constexpr, BLOCK: tl.constexpr):
    # Rows of whole words; four lanes at a time.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    s = tl.zeros((BLOCK,), tl.uint64) + seed.to(tl.uint64)
    v1 = s + 0x60EA27EEADC0B5D6
    v2 = s + 0xC2B2AE3D27D4EB4F
    v3 = s
    v4 = s - 0x9E3779B185EBCA87
    for w in tl.static_range(0, WORDS, 4):
        p = rows_ptr + i * WORDS + w
        v1 = _xx_round(v1, tl.load(p, mask=m, other=0).to(tl.uint64, bitcast=True))
        v2 = _xx_round(v2, tl.load(p + 1, mask=m, other=0).to(tl.uint64, bitcast=True))
        v3 = _xx_round(v3, tl.load(p + 2, mask=m, other=0).to(tl.uint64, bitcast=True))
        v4 = _xx_round(v4, tl.load(p + 3, mask=m, other=0).to(tl.uint64, bitcast=True))
    h = _rotl64(v1, 1) + _rotl64(v2, 7) + _rotl64(v3, 12) + _rotl64(v4, 18)
    h = _xx_merge(_xx_merge(_xx_merge(_xx_merge(h, v1), v2), v3), v4)
    h += WORDS * 8
    h = (h ^ (h >> 33)) * 0xC2B2AE3D27D4EB4F
    h = (h ^ (h >> 29)) * 0x165667B19E3779F9
    h = h ^ (h >> 32)
    tl.store(out_ptr + i, h.to(tl.int64, bitcast=True), mask=m)


@case
def xxhash64_of_rows():
    n, words = 1000000, 8
    out = zeros(n, dtype="int64")
    return run(xxhash64_rows, (cdiv(n, 256),), (ints(-(2**62), 2**62, n, words, dtype="int64"), out, n, 42), out, WORDS=words, BLOCK=256, num_warps=4)


@triton.jit
def _rotr(x, r: tl.constexpr):
    return (x >> r) | (x << (32 - r))


@triton.jit
def sha256_nonces(head_ptr, k_ptr, out_ptr, first, BLOCK: tl.constexpr):
    # One block of a message: eleven given words, the nonce, and the padding. The schedule is a tuple of 16 words.
    nonce = (first + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)).to(tl.uint32)
    zero = nonce ^ nonce
    w = (zero + tl.load(head_ptr).to(tl.uint32, bitcast=True),)
    for t in tl.static_range(1, 11):
        w = w + (zero + tl.load(head_ptr + t).to(tl.uint32, bitcast=True),)
    w = w + (nonce, zero + 0x80000000, zero, zero, zero + 384)
    a, b, c, d = zero + 0x6A09E667, zero + 0xBB67AE85, zero + 0x3C6EF372, zero + 0xA54FF53A
    e, f, g, h = zero + 0x510E527F, zero + 0x9B05688C, zero + 0x1F83D9AB, zero + 0x5BE0CD19
    for t in tl.static_range(64):
        word = w[0]
        if t < 48:
            s0 = _rotr(w[1], 7) ^ _rotr(w[1], 18) ^ (w[1] >> 3)
            s1 = _rotr(w[14], 17) ^ _rotr(w[14], 19) ^ (w[14] >> 10)
            w = w[1:] + (word + s0 + w[9] + s1,)
        else:
            w = w[1:]
        k = tl.load(k_ptr + t).to(tl.uint32, bitcast=True)
        t1 = h + (_rotr(e, 6) ^ _rotr(e, 11) ^ _rotr(e, 25)) + ((e & f) ^ (~e & g)) + k + word
        t2 = (_rotr(a, 2) ^ _rotr(a, 13) ^ _rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c))
        h, g, f, e, d, c, b, a = g, f, e, d + t1, c, b, a, t1 + t2
    at = out_ptr + (tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)) * 2
    tl.store(at, (a + 0x6A09E667).to(tl.int32, bitcast=True))
    tl.store(at + 1, (h + 0x5BE0CD19).to(tl.int32, bitcast=True))


@case
def sha256_of_nonces():
    n = 1 << 20
    out = zeros(n, 2, dtype="int32")
    primes = [p for p in range(2, 312) if all(p % q for q in range(2, p))]
    constants = torch.tensor([int(p ** (1 / 3) % 1 * 2**32) for p in primes], device="cuda", dtype=torch.int64).int()
    args = ints(-(2**31), 2**31, 11), constants, out, 123456
    return run(sha256_nonces, (n // 256,), args, out, BLOCK=256, num_warps=4)


@triton.jit
def _rotl(x, r: tl.constexpr):
    return (x << r) | (x >> (32 - r))


@triton.jit
def _quarter(a, b, c, d):
    a += b
    d = _rotl(d ^ a, 16)
    c += d
    b = _rotl(b ^ c, 12)
    a += b
    d = _rotl(d ^ a, 8)
    c += d
    b = _rotl(b ^ c, 7)
    return a, b, c, d


@triton.jit
def chacha20_xor(key_ptr, text_ptr, out_ptr, counter, n0, n1, n2, blocks, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    live = i < blocks
    z = (i ^ i).to(tl.uint32)
    k = key_ptr
    x0, x1, x2, x3 = z + 0x61707865, z + 0x3320646E, z + 0x79622D32, z + 0x6B206574
    k0, k1 = z + tl.load(k).to(tl.uint32, bitcast=True), z + tl.load(k + 1).to(tl.uint32, bitcast=True)
    k2, k3 = z + tl.load(k + 2).to(tl.uint32, bitcast=True), z + tl.load(k + 3).to(tl.uint32, bitcast=True)
    k4, k5 = z + tl.load(k + 4).to(tl.uint32, bitcast=True), z + tl.load(k + 5).to(tl.uint32, bitcast=True)
    k6, k7 = z + tl.load(k + 6).to(tl.uint32, bitcast=True), z + tl.load(k + 7).to(tl.uint32, bitcast=True)
    x4, x5, x6, x7, x8, x9, x10, x11 = k0, k1, k2, k3, k4, k5, k6, k7
    c = (i + counter).to(tl.uint32)
    x12, x13, x14, x15 = c, z + n0.to(tl.uint32), z + n1.to(tl.uint32), z + n2.to(tl.uint32)
    for _ in range(10):
        x0, x4, x8, x12 = _quarter(x0, x4, x8, x12)
        x1, x5, x9, x13 = _quarter(x1, x5, x9, x13)
        x2, x6, x10, x14 = _quarter(x2, x6, x10, x14)
        x3, x7, x11, x15 = _quarter(x3, x7, x11, x15)
        x0, x5, x10, x15 = _quarter(x0, x5, x10, x15)
        x1, x6, x11, x12 = _quarter(x1, x6, x11, x12)
        x2, x7, x8, x13 = _quarter(x2, x7, x8, x13)
        x3, x4, x9, x14 = _quarter(x3, x4, x9, x14)
    words = (x0 + 0x61707865, x1 + 0x3320646E, x2 + 0x79622D32, x3 + 0x6B206574, x4 + k0, x5 + k1, x6 + k2, x7 + k3, x8 + k4, x9 + k5,
             x10 + k6, x11 + k7, x12 + c, x13 + n0.to(tl.uint32), x14 + n1.to(tl.uint32), x15 + n2.to(tl.uint32))
    for w in tl.static_range(16):
        p = tl.load(text_ptr + i * 16 + w, mask=live, other=0)
        tl.store(out_ptr + i * 16 + w, p ^ words[w].to(tl.int32, bitcast=True), mask=live)


@case
def chacha20_stream():
    blocks = 500001
    out = zeros(blocks, 16, dtype="int32")
    args = ints(-(2**31), 2**31, 8), ints(-(2**31), 2**31, blocks, 16), out, 7, 1234567, 89, 4567, blocks
    return run(chacha20_xor, (cdiv(blocks, 128),), args, out, BLOCK=128, num_warps=4)


@triton.jit
def dfa_match(text_ptr, table_ptr, accept_ptr, out_ptr, first_ptr, rows, length, STATES: tl.constexpr, BLOCK: tl.constexpr):
    # A regular expression as a table of states: a line a lane; whether it accepts, and where it did first.
    r = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = r < rows
    state = tl.zeros((BLOCK,), tl.int32)
    first = tl.zeros((BLOCK,), tl.int32) - 1
    for i in range(length):
        ch = tl.load(text_ptr + r * length + i, mask=m, other=0).to(tl.int32)
        state = tl.load(table_ptr + state * 256 + ch).to(tl.int32)
        hit = tl.load(accept_ptr + state) != 0
        first = tl.where(hit & (first < 0), i, first)
    tl.store(out_ptr + r, state.to(tl.uint8), mask=m)
    tl.store(first_ptr + r, first, mask=m)


@case
def dfa_over_lines():
    rows, length, states = 60000, 100, 40
    out, first = zeros(rows, dtype="uint8"), zeros(rows, dtype="int32")
    accept = (arange(states) % 13 == 5).to(torch.uint8)
    args = ints(32, 127, rows, length, dtype="uint8"), ints(0, states, states, 256, dtype="uint8"), accept, out, first, rows, length
    return run(dfa_match, (cdiv(rows, 128),), args, (out, first), STATES=states, BLOCK=128, num_warps=4)


@triton.jit
def pileup_counts(seq_ptr, start_ptr, lo_ptr, hi_ptr, out_ptr, L, ref_len, BP: tl.constexpr, BR: tl.constexpr):
    # Reads in order of where they start; how many of them show each base at a position.
    block = tl.program_id(0)
    pos = block * BP + tl.arange(0, BP)
    lo, hi = tl.load(lo_ptr + block), tl.load(hi_ptr + block)
    a, c, g, t = tl.zeros((BP,), tl.int32), tl.zeros((BP,), tl.int32), tl.zeros((BP,), tl.int32), tl.zeros((BP,), tl.int32)
    for r0 in range(lo, hi, BR):
        r = r0 + tl.arange(0, BR)
        rm = r < hi
        off = pos[None, :] - tl.load(start_ptr + r, mask=rm, other=0)[:, None]
        base = tl.load(seq_ptr + r[:, None] * L + off, mask=rm[:, None] & (off >= 0) & (off < L), other=9)
        a += tl.sum((base == 0).to(tl.int32), axis=0)
        c += tl.sum((base == 1).to(tl.int32), axis=0)
        g += tl.sum((base == 2).to(tl.int32), axis=0)
        t += tl.sum((base == 3).to(tl.int32), axis=0)
    m = pos < ref_len
    tl.store(out_ptr + pos, a, mask=m)
    tl.store(out_ptr + ref_len + pos, c, mask=m)
    tl.store(out_ptr + 2 * ref_len + pos, g, mask=m)
    tl.store(out_ptr + 3 * ref_len + pos, t, mask=m)


@case
def pileup_of_reads():
    reads, length, ref, bp = 100000, 100, 400000, 128
    start = torch.sort(ints(0, ref - length, reads))[0].int()
    edge = arange(cdiv(ref, bp)) * bp
    lo = torch.searchsorted(start, edge - length + 1).int()
    hi = torch.searchsorted(start, edge + bp).int()
    out = zeros(4, ref, dtype="int32")
    args = ints(0, 4, reads, length, dtype="int8"), start, lo, hi, out, length, ref
    return run(pileup_counts, (cdiv(ref, bp),), args, out, BP=bp, BR=16, num_warps=4)
