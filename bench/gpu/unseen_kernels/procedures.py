"""Procedures of integers and bytes: decoders, parsers, ciphers, transforms in finite fields, trees, tries and sketches; loops that data end."""

import torch
import triton
import triton.language as tl

from .common import arange, case, cdiv, cleared, f32, full, ints, rand, run, uniform, zeros


@triton.jit
def decode_range_coded(WORDS, SYMBOL, RANGE, STATE, OUT, N, COUNT, BLOCK: tl.constexpr):
    # Asymmetric numeral systems: a stream a lane, a table of 4096 slots, a word of 16 bits when the state is small.
    lane = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(STATE + lane).to(tl.uint32, bitcast=True)
    at = tl.zeros((BLOCK,), tl.int32)
    for i in range(N):
        slot = x & 4095
        symbol = tl.load(SYMBOL + slot)
        packed = tl.load(RANGE + symbol.to(tl.int32)).to(tl.uint32, bitcast=True)
        x = (packed & 0xFFFF) * (x >> 12) + slot - (packed >> 16)
        need = x < 65536
        word = tl.load(WORDS + at * COUNT + lane, mask=need, other=0).to(tl.uint16, bitcast=True)
        x = tl.where(need, (x << 16) | word, x)
        at += need.to(tl.int32)
        tl.store(OUT + i * COUNT + lane, symbol)


@case
def range_coded_streams_a_lane_each():
    count, n = 33792, 400
    symbol = ints(0, 1 << 15, 4096).float().div(1 << 15).square().mul(256).sort()[0].to(torch.uint8)
    often = torch.bincount(symbol.long(), minlength=256)
    table = (often + ((often.cumsum(0) - often) << 16)).to(torch.int32)
    out = zeros(n, count, dtype="uint8")
    args = ints(-32768, 32768, n, count, dtype="int16"), symbol, table, ints(1 << 16, 1 << 30, count), out, n, count
    return run(decode_range_coded, (count // 64,), args, out, BLOCK=64, num_warps=2)


@triton.jit
def exclusive_or(a, b):
    return a ^ b


@triton.jit
def parse_brackets(TEXT, STARTS, DEPTH, INSIDE, DEEPEST, BLOCK: tl.constexpr):
    # Strings by a scan of exclusive ors of quotes that no backslash precedes, depths of brackets outside of them by sums; both carried.
    doc = tl.program_id(0)
    first, last = tl.load(STARTS + doc), tl.load(STARTS + doc + 1)
    quoted, depth, deepest = 0, 0, 0
    for start in range(first, last, BLOCK):
        i = start + tl.arange(0, BLOCK)
        live = i < last
        c = tl.load(TEXT + i, mask=live, other=32)
        before = tl.load(TEXT + i - 1, mask=live & (i > first), other=32)
        quote = ((c == 34) & (before != 92)).to(tl.int32)
        inside = tl.associative_scan(quote, 0, exclusive_or) ^ quoted
        open_ = ((c == 123) | (c == 91)) & (inside == 0)
        close = ((c == 125) | (c == 93)) & (inside == 0)
        step = open_.to(tl.int32) - close.to(tl.int32)
        level = tl.cumsum(step, 0) + depth
        tl.store(DEPTH + i, level.to(tl.int16), mask=live)
        tl.store(INSIDE + i, inside != 0, mask=live)
        deepest = tl.maximum(deepest, tl.max(tl.where(live, level, -1), 0))
        quoted ^= tl.xor_sum(quote, 0)
        depth += tl.sum(step, 0)
    tl.store(DEEPEST + doc, deepest)


@case
def brackets_and_strings_of_documents():
    docs = 3000
    lengths = ints(200, 6000, docs, dtype="int64")
    starts = torch.cat((lengths.new_zeros(1), lengths.cumsum(0))).to(torch.int32)
    letters = torch.tensor([ord(c) for c in '{[,:ab01234 56789}]"\\xyz '], dtype=torch.uint8, device="cuda")
    n = int(starts[-1])
    outs = zeros(n, dtype="int16"), zeros(n, dtype="bool"), zeros(docs, dtype="int32")
    args = letters[ints(0, len(letters), n).long()], starts, *outs
    return run(parse_brackets, (docs,), args, outs, BLOCK=512, num_warps=2)


@triton.jit
def undo_deltas(DELTA, SHIFT, FIRST, OUT, N, BLOCK: tl.constexpr):
    # Doubles whose neighbors differ in few bits: 16 of them and where they lie; a scan of exclusive ors of 64 bits, carried.
    row, j = tl.program_id(0).to(tl.int64), tl.arange(0, BLOCK)
    last = tl.load(FIRST + row)
    for start in range(0, N, BLOCK):
        i = start + j
        d = tl.load(DELTA + row * N + i, mask=i < N, other=0).to(tl.uint16, bitcast=True).to(tl.int64)
        d = d << tl.load(SHIFT + row * N + i, mask=i < N, other=0).to(tl.int64)
        v = tl.associative_scan(d, 0, exclusive_or) ^ last
        tl.store(OUT + row * N + i, v.to(tl.float64, bitcast=True), mask=i < N)
        last ^= tl.xor_sum(d, 0)


@case
def doubles_of_exclusive_or_deltas():
    rows, n = 1024, 8000
    first = (uniform(rows).double() + 1).view(torch.int64)
    out = zeros(rows, n, dtype="float64")
    args = ints(-32768, 32768, rows, n, dtype="int16"), ints(0, 36, rows, n, dtype="uint8"), first, out, n
    return run(undo_deltas, (rows,), args, out, BLOCK=1024, num_warps=4)


@triton.jit
def sweep_of_one_color(SPIN, CHANCE, SEED, color, W: tl.constexpr, BH: tl.constexpr, BW: tl.constexpr):
    # Spins of one color of a chessboard flip by chances of their neighbors' sum: Philox, a table of ten words, bytes in place.
    y, x = tl.program_id(1) * BH + tl.arange(0, BH), tl.program_id(0) * BW + tl.arange(0, BW)
    at = y[:, None] * W + x[None, :]
    mine = ((y[:, None] + x[None, :] + color) & 1) == 0
    s = tl.load(SPIN + at, mask=mine, other=1).to(tl.int32)
    up = tl.load(SPIN + ((y + W - 1) % W)[:, None] * W + x[None, :], mask=mine, other=0)
    down = tl.load(SPIN + ((y + 1) % W)[:, None] * W + x[None, :], mask=mine, other=0)
    left = tl.load(SPIN + y[:, None] * W + ((x + W - 1) % W)[None, :], mask=mine, other=0)
    right = tl.load(SPIN + y[:, None] * W + ((x + 1) % W)[None, :], mask=mine, other=0)
    near = (up + down + left + right).to(tl.int32)
    chance = tl.load(CHANCE + (s > 0).to(tl.int32) * 5 + (near + 4) // 2).to(tl.uint32, bitcast=True)
    flip = mine & (tl.randint(SEED, at).to(tl.uint32) < chance)
    tl.store(SPIN + at, -s.to(tl.int8), mask=flip)


@case
def ising_sweeps_of_a_chessboard():
    w = 4096
    spin, chance = (ints(0, 2, w, w) * 2 - 1).to(torch.int8), ints(-(2**31), 2**31 - 1, 10)
    out = zeros(w, w, dtype="int8")

    def launch(spin, chance, out):
        out.copy_(spin)
        for color in range(2):
            sweep_of_one_color[(w // 128, w // 16)](out, chance, 17 + color, color, W=w, BH=16, BW=128, num_warps=8)
        return out

    return launch, (spin, chance, out)


@triton.jit
def predict_by_trees(X, FEATURE, THRESHOLD, LEAF, OUT, N, TREES, F: tl.constexpr, LEVELS: tl.constexpr, BLOCK: tl.constexpr):
    # Samples walk down all trees of a forest: each step is an address from the one before.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    live = i < N
    total = tl.zeros((BLOCK,), tl.float32)
    for tree in range(TREES):
        node = tl.zeros((BLOCK,), tl.int32)
        base = tree * (1 << LEVELS)
        for _ in range(LEVELS):
            feature = tl.load(FEATURE + base + node).to(tl.int32)
            x = tl.load(X + i * F + feature, mask=live, other=0.0)
            node = 2 * node + 1 + (x > tl.load(THRESHOLD + base + node)).to(tl.int32)
        total += tl.load(LEAF + base + node - ((1 << LEVELS) - 1))
    tl.store(OUT + i, tl.sigmoid(total / TREES), mask=live)


@case
def forest_of_trees_of_eight_levels():
    n, trees, f, levels = 60_000, 64, 40, 8
    out, nodes = zeros(n, dtype="float32"), trees << levels
    args = rand(n, f), ints(0, f, nodes, dtype="uint8"), rand(nodes) * 0.7, f32(nodes) * 4, out, n, trees
    return run(predict_by_trees, (cdiv(n, 128),), args, out, F=f, LEVELS=levels, BLOCK=128, num_warps=4)


@triton.jit
def histograms_of_gradients(BIN, GRAD, NODE, HIST, N, F: tl.constexpr, BLOCK: tl.constexpr):
    # Two sums for each bin of each feature of each node of a tree that grows: atomics from a tile of samples and features.
    i, f = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), tl.arange(0, F)
    live = i < N
    bin_ = tl.load(BIN + i[:, None] * F + f[None, :], mask=live[:, None], other=0).to(tl.int32)
    node = tl.load(NODE + i, mask=live, other=-1).to(tl.int32)
    g, h = tl.load(GRAD + 2 * i, mask=live, other=0.0), tl.load(GRAD + 2 * i + 1, mask=live, other=0.0)
    at = HIST + (((node[:, None] * F + f[None, :]) * 256) + bin_) * 2
    wanted = (node >= 0)[:, None] & (bin_ > 0)
    tl.atomic_add(at, g[:, None] + tl.zeros_like(bin_).to(tl.float32), mask=wanted, sem="relaxed")
    tl.atomic_add(at + 1, h[:, None] + tl.zeros_like(bin_).to(tl.float32), mask=wanted, sem="relaxed")


@case
def histograms_of_gradients_for_trees():
    n, f, nodes = 150_000, 32, 8
    hist = zeros(nodes, f, 256, 2, dtype="float32")
    args = ints(0, 256, n, f, dtype="uint8"), uniform(n, 2) + 0.1, ints(-1, nodes, n, dtype="int16"), hist, n
    return cleared(run(histograms_of_gradients, (cdiv(n, 64),), args, hist, F=f, BLOCK=64, num_warps=4), hist)


@triton.jit
def mix(x):
    x ^= x >> 16
    x *= 0x7FEB352D
    x ^= x >> 15
    x *= 0x846CA68B
    return x ^ (x >> 16)


@triton.jit
def least_hashes(TOKEN, STARTS, SALT, OUT, K: tl.constexpr, H: tl.constexpr, BLOCK: tl.constexpr):
    # The least of 64 hashes over all runs of three tokens of a document.
    doc, j, h = tl.program_id(0), tl.arange(0, BLOCK), tl.arange(0, H)
    first, last = tl.load(STARTS + doc), tl.load(STARTS + doc + 1) - K + 1
    salt = tl.load(SALT + h).to(tl.uint32, bitcast=True)
    least = tl.full((H,), 0xFFFFFFFF, tl.uint32)
    for start in range(first, last, BLOCK):
        i = start + j
        x = tl.full((BLOCK,), 0x9E3779B9, tl.uint32)
        for t in tl.static_range(K):
            x = mix(x * 31 + tl.load(TOKEN + i + t, mask=i < last, other=0).to(tl.uint32, bitcast=True))
        v = mix(x[:, None] ^ salt[None, :])
        v = tl.where((i < last)[:, None], v, 0xFFFFFFFF)
        least = tl.minimum(least, tl.min(v, 0))
    tl.store(OUT + doc * H + h, least.to(tl.int32, bitcast=True))


@case
def least_hashes_of_runs_of_tokens():
    docs, h = 6000, 64
    lengths = ints(10, 600, docs, dtype="int64")
    starts = torch.cat((lengths.new_zeros(1), lengths.cumsum(0))).to(torch.int32)
    out = zeros(docs, h, dtype="int32")
    args = ints(0, 50_000, int(starts[-1])), starts, ints(-(2**31), 2**31 - 1, h), out
    return run(least_hashes, (docs,), args, out, K=3, H=h, BLOCK=32, num_warps=2)


@triton.jit
def product_in_field(a, b):
    # Montgomery's product modulo 2^31 - 2^27 + 1.
    high, low = tl.umulhi(a, b), a * b
    t = tl.umulhi(low * 0x88000001, tl.full(a.shape, 0x78000001, tl.uint32))
    return tl.where(high < t, high - t + 0x78000001, high - t)


@triton.jit
def butterflies(x, ROOTS, N: tl.constexpr, S: tl.constexpr):
    G: tl.constexpr = 1 << S
    H: tl.constexpr = N >> (S + 1)
    u, v = tl.split(tl.permute(tl.reshape(x, (G, 2, H)), (0, 2, 1)))
    w = tl.load(ROOTS + H + tl.arange(0, H)).to(tl.uint32, bitcast=True)
    both = u + v
    both = tl.where(both >= 0x78000001, both - 0x78000001, both)
    gap = tl.where(u >= v, u - v, u - v + 0x78000001)
    gap = product_in_field(gap, tl.broadcast_to(w[None, :], (G, H)))
    return tl.reshape(tl.permute(tl.join(both, gap), (0, 2, 1)), (N,))


@triton.jit
def transform_in_field(X, ROOTS, OUT, N: tl.constexpr, LOG: tl.constexpr):
    # A transform of 1024 numbers of a finite field: ten stages of butterflies, by splits and joins of a permuted tile.
    row, i = tl.program_id(0), tl.arange(0, N)
    x = tl.load(X + row * N + i).to(tl.uint32, bitcast=True)
    for s in tl.static_range(LOG):
        x = butterflies(x, ROOTS, N, s)
    tl.store(OUT + row * N + i, x.to(tl.int32, bitcast=True))


@case
def transform_in_finite_field_of_1024():
    rows, n, p = 8192, 1024, 0x78000001
    roots = [0] * n
    for log in range(10):
        half, w = 1 << log, pow(31, (p - 1) >> (log + 1), p)
        for j in range(half):
            roots[half + j] = pow(w, j, p) * (1 << 32) % p
    roots, out = torch.tensor(roots, dtype=torch.int64, device="cuda").to(torch.int32), zeros(rows, n, dtype="int32")
    return run(transform_in_field, (rows,), (ints(0, p, rows, n), roots, out), out, N=n, LOG=10, num_warps=4)


@triton.jit
def rotated(x, by: tl.constexpr):
    return (x >> by) | (x << (64 - by))


@triton.jit
def permuted(a, b, c, d, e):
    for r in range(12):
        c ^= 240 - 15 * r
        a ^= e
        e ^= d
        c ^= b
        p, q, r_, s, t = ~a & b, ~b & c, ~c & d, ~d & e, ~e & a
        a ^= q
        b ^= r_
        c ^= s
        d ^= t
        e ^= p
        b ^= a
        a ^= e
        d ^= c
        c = ~c
        a ^= rotated(a, 19) ^ rotated(a, 28)
        b ^= rotated(b, 61) ^ rotated(b, 39)
        c ^= rotated(c, 1) ^ rotated(c, 6)
        d ^= rotated(d, 10) ^ rotated(d, 17)
        e ^= rotated(e, 7) ^ rotated(e, 41)
    return a, b, c, d, e


@triton.jit
def sponge_of_messages(TEXT, WORDS, OUT, N, COUNT, BLOCK: tl.constexpr):
    # A sponge of five words of 64 bits over messages of different lengths; four words of each come out.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    live = i < N
    words = tl.load(WORDS + i, mask=live, other=0)
    a = tl.full((BLOCK,), 0x0000080100CC0002, tl.uint64)
    b, c, d, e = tl.zeros_like(a), tl.zeros_like(a), tl.zeros_like(a), tl.zeros_like(a)
    a, b, c, d, e = permuted(a, b, c, d, e)
    for t in range(tl.max(words, 0)):
        more = t < words
        x = tl.load(TEXT + t * N + i, mask=live & more, other=0).to(tl.uint64, bitcast=True)
        na, nb, nc, nd, ne = permuted(a ^ x, b, c, d, e)
        a, b, c = tl.where(more, na, a), tl.where(more, nb, b), tl.where(more, nc, c)
        d, e = tl.where(more, nd, d), tl.where(more, ne, e)
    for t in range(COUNT):
        tl.store(OUT + t * N + i, a.to(tl.int64, bitcast=True), mask=live)
        a, b, c, d, e = permuted(a, b, c, d, e)


@case
def sponge_of_five_long_words():
    n, words = 150_001, 8
    out = zeros(4, n, dtype="int64")
    args = ints(-(2**62), 2**62, words, n, dtype="int64"), ints(1, words + 1, n, dtype="int32"), out, n, 4
    return run(sponge_of_messages, (cdiv(n, 128),), args, out, BLOCK=128, num_warps=4)


@triton.jit
def lengths_of_matches(TEXT, CANDIDATE, LENGTH, SCORE, N, MOST: tl.constexpr, BLOCK: tl.constexpr):
    # How far the text repeats from four candidates of each place: words of four unaligned bytes, until no lane's match goes on.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < N
    best, from_ = tl.zeros((BLOCK,), tl.int32), tl.zeros((BLOCK,), tl.int32)
    for way in range(4):
        j = tl.load(CANDIDATE + i * 4 + way, mask=inside, other=0)
        length, going = tl.zeros((BLOCK,), tl.int32), inside & (j < i)
        while (tl.max(going.to(tl.int32), 0) > 0):
            same = going
            for byte in tl.static_range(4):
                p = tl.load(TEXT + i + length, mask=same & (i + length < N), other=0)
                q = tl.load(TEXT + j + length, mask=same & (i + length < N), other=1)
                same &= p == q
                length += same.to(tl.int32)
            going = same & (length < MOST)
        better = length > best
        best, from_ = tl.where(better, length, best), tl.where(better, i - j, from_)
    tl.store(LENGTH + i, best.to(tl.int16), mask=inside)
    tl.store(SCORE + i, best * 8 - tl.ceil(tl.log2((from_ + 1).to(tl.float32)) - 0.001).to(tl.int32), mask=inside)


@case
def repeats_from_four_candidates():
    n = 1 << 20
    text = ints(0, 4, n // 4, dtype="uint8").repeat(4)
    text[ints(0, n, n // 40).long()] = 7
    back = torch.where(uniform(n, 4) < 0.3, n // 4, ints(1, n, n, 4))
    candidate = (arange(n)[:, None] - back).clamp(min=0).to(torch.int32)
    outs = zeros(n, dtype="int16"), zeros(n, dtype="int32")
    return run(lengths_of_matches, (n // 128,), (text, candidate, *outs, n), outs, MOST=200, BLOCK=128, num_warps=4)


@triton.jit
def draw_triangles(XY, DEPTH, BUFFER, W, H, BY: tl.constexpr, BX: tl.constexpr):
    # Triangles of fixed point: tiles of own boxes, three edges, and the nearest by an atomic minimum of depth and number in 64 bits.
    t = tl.program_id(0)
    x0, y0 = tl.load(XY + t * 6), tl.load(XY + t * 6 + 1)
    x1, y1 = tl.load(XY + t * 6 + 2), tl.load(XY + t * 6 + 3)
    x2, y2 = tl.load(XY + t * 6 + 4), tl.load(XY + t * 6 + 5)
    z0, z1, z2 = tl.load(DEPTH + t * 3).to(tl.int64), tl.load(DEPTH + t * 3 + 1).to(tl.int64), tl.load(DEPTH + t * 3 + 2).to(tl.int64)
    area = (x1 - x0) * (y2 - y0) - (x2 - x0) * (y1 - y0)
    if area == 0:
        return
    left, right = tl.minimum(x0, tl.minimum(x1, x2)) >> 4, tl.maximum(x0, tl.maximum(x1, x2)) >> 4
    top, bottom = tl.minimum(y0, tl.minimum(y1, y2)) >> 4, tl.maximum(y0, tl.maximum(y1, y2)) >> 4
    sign = tl.where(area > 0, 1, -1)
    for ty in range(tl.maximum(top, 0), tl.minimum(bottom + 1, H), BY):
        for tx in range(tl.maximum(left, 0), tl.minimum(right + 1, W), BX):
            y, x = ty + tl.arange(0, BY)[:, None], tx + tl.arange(0, BX)[None, :]
            px, py = x * 16 + 8, y * 16 + 8
            a = ((x2 - x1) * (py - y1) - (y2 - y1) * (px - x1)) * sign
            b = ((x0 - x2) * (py - y2) - (y0 - y2) * (px - x2)) * sign
            c = ((x1 - x0) * (py - y0) - (y1 - y0) * (px - x0)) * sign
            hit = (a >= 0) & (b >= 0) & (c >= 0) & (x < W) & (y < H)
            z = (a.to(tl.int64) * z0 + b.to(tl.int64) * z1 + c.to(tl.int64) * z2) // tl.abs(area).to(tl.int64)
            tl.atomic_min(BUFFER + y * W + x, (z << 32) | t.to(tl.int64), mask=hit, sem="relaxed")


@case
def triangles_into_a_buffer_of_depths():
    count, w, h = 20_000, 1024, 768
    middle = torch.stack((ints(0, w * 16, count), ints(0, h * 16, count)), 1)
    xy = (middle[:, None, :] + ints(-300, 300, count, 3, 2)).to(torch.int32)
    buffer = full(2**62, h, w, dtype="int64")
    launch, args = run(draw_triangles, (count,), (xy, ints(1, 1 << 20, count, 3), buffer, w, h), buffer, BY=4, BX=32, num_warps=1)

    def again(*args):
        buffer.fill_(2**62)
        seen = launch(*args)
        return seen >> 32, seen & 0xFFFFFFFF

    return again, args


@triton.jit
def aggregate_paths(COST, OUT, W, P1, P2, D: tl.constexpr, BH: tl.constexpr):
    # Costs of 64 disparities along a row, each step from the one before: neighbors by a gather within the tile, the least of all.
    y, d = tl.program_id(0) * BH + tl.arange(0, BH), tl.arange(0, D)
    lower = tl.broadcast_to(tl.maximum(d - 1, 0)[None, :], (BH, D))
    upper = tl.broadcast_to(tl.minimum(d + 1, D - 1)[None, :], (BH, D))
    path = tl.zeros((BH, D), tl.int32)
    for x in range(W):
        at = (y[:, None] * W + x) * D + d[None, :]
        least = tl.min(path, 1)[:, None]
        step = tl.minimum(tl.gather(path, lower, 1), tl.gather(path, upper, 1)) + P1
        path = tl.load(COST + at).to(tl.int32) + tl.minimum(tl.minimum(path, step), least + P2) - least
        tl.store(OUT + at, path.to(tl.int16))


@case
def disparities_aggregated_along_rows():
    h, w, d = 1056, 512, 64
    out = zeros(h, w, d, dtype="int16")
    return run(aggregate_paths, (h // 4,), (ints(0, 200, h, w, d, dtype="uint8"), out, w, 12, 70), out, D=d, BH=4, num_warps=2)


@triton.jit
def nearest_on_the_left(a, b):
    return tl.maximum(a, b)


@triton.jit
def nearest_on_the_right(a, b):
    return tl.minimum(a, b)


@triton.jit
def squares_along_rows(MASK, OUT, N: tl.constexpr):
    # Squares of distances to the nearest set place of a row: two scans, the second from the end.
    row, i = tl.program_id(0), tl.arange(0, N)
    on = tl.load(MASK + row * N + i)
    left = tl.associative_scan(tl.where(on, i, -4000), 0, nearest_on_the_left)
    right = tl.associative_scan(tl.where(on, i, N + 4000), 0, nearest_on_the_right, reverse=True)
    d = tl.minimum(i - left, right - i)
    tl.store(OUT + row * N + i, d * d)


@triton.jit
def least_along_columns(SQUARE, OUT, N, BI: tl.constexpr, BC: tl.constexpr):
    # The least over rows j of a square plus (i - j)^2, as a loop over rows with a tile of places.
    i, c = tl.program_id(0) * BI + tl.arange(0, BI), tl.program_id(1) * BC + tl.arange(0, BC)
    least = tl.full((BI, BC), 2147483647, tl.int32)
    for j in range(N):
        gap = i - j
        least = tl.minimum(least, tl.load(SQUARE + j * N + c)[None, :] + (gap * gap)[:, None])
    tl.store(OUT + i[:, None] * N + c[None, :], tl.sqrt(least.to(tl.float32)).to(tl.float16))


@case
def distances_to_set_places():
    n = 1024
    mask, square, out = uniform(n, n) < 0.0005, zeros(n, n, dtype="int32"), zeros(n, n)

    def launch(mask, square, out):
        squares_along_rows[(n,)](mask, square, N=n, num_warps=4)
        least_along_columns[(n // 32, n // 64)](square, out, n, BI=32, BC=64, num_warps=4)
        return out, square.clamp(max=4_000_000)

    return launch, (mask, square, out)


@triton.jit
def quantiles_of_doubles(X, WEIGHT, OUT, TRIMMED, D, N: tl.constexpr, Q: tl.constexpr):
    # Rows of 256 doubles sorted by two warps: eight quantiles of positions between two of them, by gathers, and a trimmed mean.
    row, i, q = tl.program_id(0), tl.arange(0, N), tl.arange(0, Q)
    x = tl.load(X + row * D + i, mask=i < D, other=float("inf"))
    s = tl.sort(x)
    place = (q + 0.5) * (D - 1) / Q
    low = tl.floor(place).to(tl.int32)
    share = (place - low).to(tl.float64)
    a, b = tl.gather(s, low, 0), tl.gather(s, low + 1, 0)
    tl.store(OUT + row * Q + q, a + share * (b - a))
    w = tl.load(WEIGHT + i)
    kept = (i >= D // 10) & (i < D - D // 10)
    tl.store(TRIMMED + row, tl.sum(tl.where(kept, s * w, 0.0)) / tl.sum(tl.where(kept, w, 0.0)))


@case
def quantiles_of_250_doubles_by_two_warps():
    rows, d = 16384, 250
    outs = zeros(rows, 8, dtype="float64"), zeros(rows, dtype="float64")
    args = f32(rows, d).double(), uniform(256).double(), *outs, d
    return run(quantiles_of_doubles, (rows,), args, outs, N=256, Q=8, num_warps=2)
