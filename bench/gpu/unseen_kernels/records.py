"""Records: text to numbers and back, columns packed and unpacked, tables of hashes, sketches, intervals, passes of sorting networks."""

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice

from .common import arange, case, cdiv, cleared, f32, full, ints, rand, run, uniform, zeros


@triton.jit
def parse_fixed(TEXT, OUT, BAD, N, stride, WIDTH: tl.constexpr, ROWS: tl.constexpr):
    # Numbers of at most WIDTH bytes, with spaces in front, a sign, and a point anywhere: digits weighed by what comes after them.
    r, c = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, WIDTH)
    live = (r < N)[:, None]
    t = tl.load(TEXT + r[:, None] * stride + c[None, :], mask=live, other=32).to(tl.int32)
    digit = (t >= 48) & (t <= 57)
    point, minus = t == 46, t == 45
    behind = tl.cumsum(point.to(tl.int32), 1) > 0
    whole = digit & (behind == 0)
    after = tl.cumsum(whole.to(tl.int32), 1, reverse=True) - 1
    fraction = tl.cumsum((digit & behind).to(tl.int32), 1)
    power = tl.where(whole, after, -fraction).to(tl.float64)
    value = tl.sum(tl.where(digit, (t - 48).to(tl.float64) * libdevice.exp10(power), 0.0), 1)
    negative = tl.max(minus.to(tl.int32), 1)
    wrong = tl.sum((~(digit | point | minus | (t == 32))).to(tl.int32), 1) + (tl.sum(point.to(tl.int32), 1) > 1).to(tl.int32)
    tl.store(OUT + r, tl.where(negative != 0, -value, value), mask=r < N)
    tl.store(BAD + r, wrong > 0, mask=r < N)


@case
def numbers_of_text_to_doubles():
    n, width = 300_007, 16
    stride = width + 1
    v = torch.randint(-(10**9), 10**9, (n,), device="cuda")
    places = 10 ** ints(1, 6, n, dtype="int64")
    whole, rest = v.abs() // places, v.abs() % places
    text, at = full(32, n, stride, dtype="uint8"), full(width - 1, n, dtype="int64")
    row, left = arange(n, "int64"), places.clone()
    for _ in range(18):
        more = (left > 1) | (whole > 0) | (left == 1)
        digit = torch.where(left > 1, rest % 10, torch.where(left == 1, -2, whole % 10))
        text[row[more], at[more]] = (48 + digit[more]).to(torch.uint8)
        rest, whole = torch.where(left > 1, rest // 10, rest), torch.where(left < 1, whole // 10, whole)
        left, at = torch.where(left >= 1, left // 10, left), torch.where(more, at - 1, at).clamp(min=0)
    text[row[v < 0], at[v < 0]] = 45
    text[::97, 3] = 88
    out, bad = zeros(n, dtype="float64"), zeros(n, dtype="bool")
    launch, args = run(parse_fixed, (cdiv(n, 32),), (text, out, bad, n, stride), (out, bad), WIDTH=width, ROWS=32, num_warps=4)

    def reference(*_):
        wrong = (row % 97) == 0
        exact = v.double() / places.double()
        t = text[:, :width].long()
        digits = ((t >= 48) & (t <= 57)).long()
        behind = (t == 46).long().cumsum(1) > 0
        whole_ = digits.bool() & ~behind
        power = torch.where(whole_, whole_.long().flip(1).cumsum(1).flip(1) - 1, -((digits.bool() & behind).long().cumsum(1)))
        odd = (torch.where(digits.bool(), (t - 48).double() * 10.0 ** power.double(), 0.0)).sum(1) * torch.where((t == 45).any(1), -1, 1)
        return torch.where(wrong, odd, exact), wrong

    launch.reference = reference
    return launch, args


@triton.jit
def letter_of(v):
    c = tl.where(v < 26, v + 65, tl.where(v < 52, v + 71, v - 4))
    return tl.where(v == 62, 43, tl.where(v == 63, 47, c)).to(tl.uint8)


@triton.jit
def bytes_to_letters(X, OUT, N, BLOCK: tl.constexpr):
    # Three bytes to four letters of 64; letters are woven by joins, and stored as one row.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    live = i * 3 < N
    a = tl.load(X + i * 3, mask=live, other=0).to(tl.int32)
    b = tl.load(X + i * 3 + 1, mask=i * 3 + 1 < N, other=0).to(tl.int32)
    c = tl.load(X + i * 3 + 2, mask=i * 3 + 2 < N, other=0).to(tl.int32)
    p, q = letter_of(a >> 2), letter_of((a & 3) << 4 | b >> 4)
    r, s = letter_of((b & 15) << 2 | c >> 6), letter_of(c & 63)
    r = tl.where(i * 3 + 1 < N, r, 61)
    s = tl.where(i * 3 + 2 < N, s, 61)
    letters = tl.interleave(tl.interleave(p, r), tl.interleave(q, s))
    at = tl.program_id(0) * BLOCK * 4 + tl.arange(0, BLOCK * 4)
    tl.store(OUT + at, letters.to(tl.uint8), mask=at < tl.cdiv(N, 3) * 4)


@case
def bytes_to_letters_of_64():
    n = 30_000_001
    x, out = ints(0, 256, n, dtype="uint8"), zeros(cdiv(n, 3) * 4, dtype="uint8")
    launch, args = run(bytes_to_letters, (cdiv(cdiv(n, 3), 1024),), (x, out, n), out, BLOCK=1024, num_warps=4)

    def reference(*_):
        v = torch.cat([x, zeros(2, dtype="uint8")]).view(-1, 3).int()
        codes = torch.stack([v[:, 0] >> 2, (v[:, 0] & 3) << 4 | v[:, 1] >> 4, (v[:, 1] & 15) << 2 | v[:, 2] >> 6, v[:, 2] & 63], 1)
        letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
        out_ = torch.tensor(list(letters), device=x.device)[codes.long()].reshape(-1)
        out_[-2:] = 61
        return out_

    launch.reference = reference
    return launch, args


@triton.jit
def hybrid_runs(WORDS, RUN_AT, RUN_START, RUN_VALUE, RUNS, DICTIONARY, VALID, OUT, N, width, BLOCK: tl.constexpr):
    # A column of codes in runs: a run either repeats one code or packs codes of `width` bits; codes are places of a dictionary.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    live = i < N
    low, high = tl.zeros((BLOCK,), tl.int32), tl.zeros((BLOCK,), tl.int32) + RUNS
    while tl.max(high - low, 0) > 1:
        middle = (low + high) // 2
        right = (tl.load(RUN_AT + middle, mask=middle < RUNS, other=0x7FFFFFFF) <= i) & (middle < high)
        low, high = tl.where(right, middle, low), tl.where(right, high, tl.maximum(middle, low + 1))
    start, value = tl.load(RUN_START + low), tl.load(RUN_VALUE + low)
    packed = live & (start >= 0)
    bit = (i - tl.load(RUN_AT + low)).to(tl.int64) * width
    word = WORDS + start + (bit >> 5)
    both = tl.load(word, mask=packed, other=0).to(tl.uint32).to(tl.uint64) | tl.load(word + 1, mask=packed, other=0).to(tl.uint32).to(tl.uint64) << 32
    code = ((both >> (bit & 31).to(tl.uint64)) & ((1 << width) - 1)).to(tl.int32)
    code = tl.where(packed, code, value)
    tl.store(OUT + i, tl.load(DICTIONARY + code, mask=live, other=0.0), mask=live)
    tl.store(VALID + i, (code != 0).to(tl.int8), mask=live)


@case
def dictionary_codes_in_runs_of_two_kinds():
    n, width, runs = 2_000_003, 11, 6000
    cuts = torch.sort(torch.randperm(n - 1, device="cuda")[: runs - 1] + 1)[0]
    at = torch.cat([zeros(1, dtype="int64"), cuts])
    lengths = torch.cat([cuts, torch.tensor([n], device="cuda")]) - at
    kind = ints(0, 2, runs, dtype="int64")
    size = torch.where(kind == 1, (lengths * width + 31) // 32, 0)
    begin = size.cumsum(0) - size
    words = torch.randint(-(2**31), 2**31, (int(size.sum()) + 2,), device="cuda").to(torch.int32)
    start, value = torch.where(kind == 1, begin, -1).to(torch.int32), ints(0, 1 << width, runs)
    dictionary, valid, out = torch.randn(1 << width, device="cuda", dtype=torch.float64), zeros(n, dtype="int8"), zeros(n, dtype="float64")
    args = words, at.to(torch.int32), start, value, runs, dictionary, valid, out, n, width
    launch, args = run(hybrid_runs, (cdiv(n, 512),), args, (out, valid), BLOCK=512, num_warps=4)

    def reference(*_):
        run_ = torch.repeat_interleave(arange(runs, "int64"), lengths)
        bit = (arange(n, "int64") - at[run_]) * width
        w = words.long() & 0xFFFFFFFF
        place = start.long()[run_].clamp(min=0) + bit // 32
        place = place.clamp(max=w.numel() - 2)
        shift = bit & 31
        low = (w[place] >> shift) | (w[place + 1] << (32 - shift))
        code = torch.where(start[run_] >= 0, low & ((1 << width) - 1), value.long()[run_])
        return dictionary[code], code != 0

    launch.reference = reference
    return launch, args


@triton.jit
def bitwise_or(a, b):
    return a | b


@triton.jit
def pack_frames(X, BASES, WIDTHS, OUT, LANES: tl.constexpr, DEEP: tl.constexpr):
    # 1024 values less their least, in as many bits as the largest needs: bit b of 32 values of a lane makes word b of that lane.
    block = tl.program_id(0)
    d, lane = tl.arange(0, DEEP), tl.arange(0, LANES)
    x = tl.load(X + block * (LANES * DEEP) + d[:, None] * LANES + lane[None, :])
    base = tl.min(x)
    v = (x - base).to(tl.uint32)
    most = tl.max(v)
    width = 32 - libdevice.clz(most.to(tl.int32))
    tl.store(BASES + block, base)
    tl.store(WIDTHS + block, width.to(tl.uint8))
    for b in range(width):
        word = tl.reduce(((v >> b) & 1) << d[:, None].to(tl.uint32), 0, bitwise_or)
        tl.store(OUT + block * (LANES * DEEP) + b * LANES + lane, word.to(tl.int32, bitcast=True))


@case
def frames_of_1024_packed_in_planes_of_bits():
    blocks = 20_000
    x = torch.randint(0, 2**30, (blocks, 32, 32), device="cuda") >> ints(0, 30, blocks, 1, 1, dtype="int64")
    x = (x - 5000).to(torch.int32)
    bases, widths, out = zeros(blocks, dtype="int32"), zeros(blocks, dtype="uint8"), zeros(blocks, 32, 32, dtype="int32")
    launch, args = run(pack_frames, (blocks,), (x, bases, widths, out), (bases, widths, out), LANES=32, DEEP=32, num_warps=1)

    def reference(*_):
        base = x.amin((1, 2))
        v = x.long() - base[:, None, None]
        most = v.amax((1, 2))
        width = sum((most >> b > 0).long() for b in range(32))
        shift = arange(32, "int64")
        planes = torch.stack([(((v >> b) & 1) << shift[None, :, None]).sum(1) for b in range(32)], 1).to(torch.int32)
        return base, width, torch.where((shift[None, :] < width[:, None])[..., None], planes, args[3])

    launch.reference = reference
    return launch, args


@triton.jit
def scramble(x):
    x = (x ^ (x >> 16)) * 0x7FEB352D
    x = (x ^ (x >> 15)) * 0x846CA68B
    return x ^ (x >> 16)


@triton.jit
def group_into_table(KEYS, VALUES, SLOTS, SUMS, COUNTS, LEAST, N, MASK, BLOCK: tl.constexpr):
    # Open addresses: each lane looks for its key's slot until it has it, takes free ones by compare-and-swap, then adds.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    live = i < N
    key, value = tl.load(KEYS + i, mask=live, other=0), tl.load(VALUES + i, mask=live, other=0.0)
    slot = (scramble(key.to(tl.uint32)) & MASK).to(tl.int32)
    seeking = live
    while tl.max(seeking.to(tl.int32), 0) != 0:
        held = tl.load(SLOTS + slot, mask=seeking, other=0, volatile=True)
        compare = tl.where(seeking & (held == -1), -1, -2)
        held = tl.where(compare == -1, tl.atomic_cas(SLOTS + slot, compare, key), held)
        found = (held == key) | (held == -1)
        seeking = seeking & (found == 0)
        slot = tl.where(seeking, (slot + 1) & MASK, slot)
    tl.atomic_add(SUMS + slot, value, mask=live, sem="relaxed")
    tl.atomic_add(COUNTS + slot, 1, mask=live, sem="relaxed")
    tl.atomic_min(LEAST + slot, value.to(tl.int64), mask=live, sem="relaxed")


@case
def groups_in_a_table_of_open_addresses():
    n, keys, size = 1_000_000, 20_000, 1 << 16
    key, value = ints(0, keys, n) * 7919, (uniform(n) * 1000).double()
    slots, sums, counts, least = full(-1, size, dtype="int32"), zeros(size, dtype="float64"), zeros(size, dtype="int32"), zeros(size, dtype="int64")

    def launch(*_):
        slots.fill_(-1)
        sums.zero_()
        counts.zero_()
        least.fill_(1 << 40)
        group_into_table[(cdiv(n, 256),)](key, value, slots, sums, counts, least, n, size - 1, BLOCK=256, num_warps=8)
        order = torch.where(slots < 0, 2**31 - 1, slots).argsort()[:keys]
        return slots[order], sums[order], counts[order], least[order]

    def reference(*_):
        found, which = key.unique(return_inverse=True)
        total = torch.zeros(found.numel(), dtype=torch.float64, device=key.device)
        low = torch.full((found.numel(),), 1 << 40, dtype=torch.int64, device=key.device)
        low.scatter_reduce_(0, which, value.long(), "amin")
        count = torch.zeros(found.numel(), dtype=torch.int64, device=key.device).scatter_add_(0, which, torch.ones_like(which))
        return found, total.scatter_add_(0, which, value), count, low

    launch.reference = reference
    return launch, (key, value)


@triton.jit
def compare_exchange(KEYS, ROWS, length, gap, BLOCK: tl.constexpr):
    # One pass of a sorting network over memory, keys with their rows.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = i // gap * (2 * gap) + i % gap
    b = a + gap
    up = (a & length) == 0
    ka, kb, ra, rb = tl.load(KEYS + a), tl.load(KEYS + b), tl.load(ROWS + a), tl.load(ROWS + b)
    swap = (ka > kb) == up
    tl.store(KEYS + a, tl.where(swap, kb, ka))
    tl.store(KEYS + b, tl.where(swap, ka, kb))
    tl.store(ROWS + a, tl.where(swap, rb, ra))
    tl.store(ROWS + b, tl.where(swap, ra, rb))


@case
def sorting_network_two_passes_of_doubles():
    n = 1 << 21
    keys, rows = torch.randn(n, device="cuda", dtype=torch.float64), arange(n, "int64")
    k, r = keys.clone(), rows.clone()

    def launch(*_):
        k.copy_(keys)
        r.copy_(rows)
        for length, gap in ((1 << 20, 1 << 19), (1 << 20, 1 << 3)):
            compare_exchange[(n // 2 // 512,)](k, r, length, gap, BLOCK=512, num_warps=4)
        return k, r

    def reference(*_):
        u, v = keys, rows
        for length, gap in ((1 << 20, 1 << 19), (1 << 20, 1 << 3)):
            p, q = u.view(-1, 2, gap), v.view(-1, 2, gap)
            a = (arange(n // (2 * gap), "int64") * 2 * gap)[:, None] + arange(gap, "int64")[None]
            swap = (p[:, 0] > p[:, 1]) == ((a & length) == 0)
            u = torch.stack([torch.where(swap, p[:, 1], p[:, 0]), torch.where(swap, p[:, 0], p[:, 1])], 1).reshape(-1)
            v = torch.stack([torch.where(swap, q[:, 1], q[:, 0]), torch.where(swap, q[:, 0], q[:, 1])], 1).reshape(-1)
        return u, v

    launch.reference = reference
    return launch, (keys, rows)


@triton.jit
def rolling_search(TEXT, HASHES, FOUND, COUNTS, N, LENGTH: tl.constexpr, PATTERNS: tl.constexpr, BLOCK: tl.constexpr):
    # A polynomial of LENGTH bytes at every place, compared with the patterns' values.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.zeros((BLOCK,), tl.uint32)
    for k in tl.static_range(LENGTH):
        value = value * 16777619 + tl.load(TEXT + i + k, mask=i + k < N, other=0).to(tl.uint32)
    p = tl.arange(0, PATTERNS)
    same = (value[:, None] == tl.load(HASHES + p).to(tl.uint32, bitcast=True)[None, :]) & (i + LENGTH <= N)[:, None]
    which = tl.max(tl.where(same, p[None, :] + 1, 0), 1)
    tl.store(FOUND + i, which.to(tl.uint8), mask=i < N)
    tl.atomic_add(COUNTS + p, tl.sum(same.to(tl.int32), 0), sem="relaxed")


@case
def patterns_found_by_rolling_polynomials():
    n, length, patterns = 4_000_001, 6, 32
    text = ints(97, 101, n, dtype="uint8")
    places = ints(0, n - length, patterns, dtype="int64")

    def values(at):
        v = torch.zeros_like(at)
        for k in range(length):
            v = (v * 16777619 + text[(at + k).clamp(max=n - 1)].long()) & 0xFFFFFFFF
        return v

    hashes = values(places).to(torch.int32)
    found, counts = zeros(n, dtype="uint8"), zeros(patterns, dtype="int32")
    args = text, hashes, found, counts, n
    launched = run(rolling_search, (cdiv(n, 1024),), args, (found, counts), LENGTH=length, PATTERNS=patterns, BLOCK=1024, num_warps=8)
    launch, args = cleared(launched, counts)

    def reference(*_):
        v, h = values(arange(n, "int64")), hashes.long() & 0xFFFFFFFF
        v[n - length + 1 :] = -1
        which = torch.zeros_like(v)
        for k in range(patterns):
            which[v == h[k]] = k + 1
        return which, (v[None, :] == h[:, None]).sum(1)

    launch.reference = reference
    return launch, args


@triton.jit
def below(SORTED, count, x, BLOCK: tl.constexpr):
    low, width = tl.zeros((BLOCK,), tl.int64), count
    while width > 0:
        half = (width + 1) // 2
        at = low + half - 1
        less = (tl.load(SORTED + at, mask=at < count, other=0x7FFFFFFFFFFFFFFF) < x) & (at < count)
        low = tl.where(less, low + half, low)
        width = width - half
    return low


@triton.jit
def count_overlaps(STARTS, ENDS, FROM, TO, OUT, N, M, BLOCK: tl.constexpr):
    # Intervals that meet a query: those that start before its end, less those that ended before its start.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    first, last = tl.load(FROM + i, mask=i < M, other=0), tl.load(TO + i, mask=i < M, other=0)
    tl.store(OUT + i, below(STARTS, N, last, BLOCK) - below(ENDS, N, first, BLOCK), mask=i < M)


@case
def overlaps_of_intervals_by_two_searches():
    n, m = 700_001, 1_000_003
    begin = torch.randint(0, 1 << 40, (n,), device="cuda")
    starts, ends = begin.sort()[0], (begin + torch.randint(1, 1 << 30, (n,), device="cuda")).sort()[0]
    first = torch.randint(0, 1 << 40, (m,), device="cuda")
    last, out = first + torch.randint(1, 1 << 28, (m,), device="cuda"), zeros(m, dtype="int64")
    launch, args = run(count_overlaps, (cdiv(m, 256),), (starts, ends, first, last, out, n, m), out, BLOCK=256, num_warps=4)
    launch.reference = lambda *_: torch.searchsorted(starts, last) - torch.searchsorted(ends, first)
    return launch, args


@triton.jit
def sketch_quantiles(X, BINS, N, log_gamma, LOW: tl.constexpr, COUNT: tl.constexpr, BLOCK: tl.constexpr):
    # Counts of logarithmic buckets of positive values, of negative ones, and of zeros: a histogram a program, then atomics.
    total = tl.zeros((2 * COUNT,), tl.int32)
    for start in tl.range(tl.program_id(0) * BLOCK, N, tl.num_programs(0) * BLOCK, num_stages=2):
        i = start + tl.arange(0, BLOCK)
        x = tl.load(X + i, mask=i < N, other=0.0)
        k = tl.ceil(tl.log(tl.abs(x)) / log_gamma).to(tl.int32) - LOW
        k = tl.minimum(tl.maximum(tl.where(x == 0, 0, k), 0), COUNT - 1)
        total += tl.histogram(tl.where(x < 0, k + COUNT, k), 2 * COUNT, mask=i < N)
    b = tl.arange(0, 2 * COUNT)
    tl.atomic_add(BINS + b, total.to(tl.int64), mask=total > 0, sem="relaxed")


@case
def sketch_of_quantiles_by_logarithms():
    n = 24_000_011
    x, bins = f32(n), zeros(1024, dtype="int64")
    x[::1000] = 0
    launch, args = cleared(run(sketch_quantiles, (264,), (x, bins, n, 0.04), bins, LOW=-300, COUNT=512, BLOCK=2048, num_warps=8), bins)

    def reference(*_):
        k = (torch.ceil(torch.log(x.abs()) / 0.04).nan_to_num(neginf=-1e6).int() + 300).clamp(0, 511)
        k[x == 0] = 0
        return torch.bincount((k + 512 * (x < 0)).long(), minlength=1024)

    def seen(*args):  # A value at a bucket's border may be counted by the bucket beside.
        return launch(*args).view(-1, 8).sum(1) + 100_000

    seen.reference = lambda *_: reference().view(-1, 8).sum(1) + 100_000
    return seen, args


@triton.jit
def sketch_counts(KEYS, TABLE, N, WIDTH: tl.constexpr, DEPTH: tl.constexpr, BLOCK: tl.constexpr):
    i, d = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), tl.arange(0, DEPTH)
    key = tl.load(KEYS + i, mask=i < N, other=0).to(tl.uint32)
    h = scramble(key[:, None] ^ (d[None, :] * 0x3C6EF372).to(tl.uint32)) % WIDTH
    tl.atomic_add(TABLE + d[None, :] * WIDTH + h.to(tl.int32), 1, mask=(i < N)[:, None], sem="relaxed")


@triton.jit
def estimate_counts(KEYS, TABLE, OUT, N, WIDTH: tl.constexpr, DEPTH: tl.constexpr, BLOCK: tl.constexpr):
    i, d = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), tl.arange(0, DEPTH)
    key = tl.load(KEYS + i, mask=i < N, other=0).to(tl.uint32)
    h = scramble(key[:, None] ^ (d[None, :] * 0x3C6EF372).to(tl.uint32)) % WIDTH
    tl.store(OUT + i, tl.min(tl.load(TABLE + d[None, :] * WIDTH + h.to(tl.int32)), 1), mask=i < N)


@case
def sketch_of_counts_of_four_rows():
    n, width, depth = 500_003, 50_021, 4
    keys = (torch.rand(n, device="cuda").pow(3) * 100_000).to(torch.int32)
    table, out = zeros(depth, width, dtype="int32"), zeros(n, dtype="int32")

    def launch(*_):
        table.zero_()
        sketch_counts[(cdiv(n, 256),)](keys, table, n, WIDTH=width, DEPTH=depth, BLOCK=256, num_warps=4)
        estimate_counts[(cdiv(n, 256),)](keys, table, out, n, WIDTH=width, DEPTH=depth, BLOCK=256, num_warps=4)
        return table, out

    def reference(*_):
        x = keys.long()[:, None] ^ ((arange(depth, "int64") * 0x3C6EF372) & 0xFFFFFFFF)[None, :]
        x = ((x ^ (x >> 16)) * 0x7FEB352D) & 0xFFFFFFFF
        x = x ^ (x >> 15)
        x = ((x * 0x46CA68B) + ((x & 1) << 31)) & 0xFFFFFFFF
        h = (x ^ (x >> 16)) % width + arange(depth, "int64")[None, :] * width
        counts = torch.bincount(h.view(-1), minlength=depth * width)
        return counts.view(depth, width), counts[h].amin(1)

    launch.reference = reference
    return launch, (keys,)


@triton.jit
def count_words(TEXT, WORDS, LINES, LETTERS, N, BLOCK: tl.constexpr):
    # Classes of bytes by words of bits; a word begins where a letter follows none, at borders of blocks too.
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    t = tl.load(TEXT + i, mask=i < N, other=32)
    before = tl.load(TEXT + i - 1, mask=(i > 0) & (i < N), other=32)
    low = tl.full((BLOCK,), 0x100003E00, tl.uint64)
    blank = (t < 64) & (((low >> (t & 63).to(tl.uint64)) & 1) != 0)
    blank_before = (before < 64) & (((low >> (before & 63).to(tl.uint64)) & 1) != 0)
    folded = t | 0x20
    letter = (folded >= 97) & (folded <= 122)
    tl.atomic_add(WORDS, tl.sum((blank_before & ~blank).to(tl.int64)), sem="relaxed")
    tl.atomic_add(LINES, tl.sum((t == 10).to(tl.int64)), sem="relaxed")
    tl.atomic_add(LETTERS, tl.sum(letter.to(tl.int64)), sem="relaxed")


@case
def words_lines_and_letters_counted():
    n = 60_000_001
    alphabet = torch.tensor(list(b"etaoinshrdlu   ETA.,\n\t019"), dtype=torch.uint8, device="cuda")
    text = alphabet[ints(0, alphabet.numel(), n, dtype="int64")]
    counts = [zeros(1, dtype="int64") for _ in range(3)]
    launch, args = cleared(run(count_words, (cdiv(n, 8192),), (text, *counts, n), tuple(counts), BLOCK=8192, num_warps=8), *counts)

    def reference(*_):
        blank = (text == 32) | ((text >= 9) & (text <= 13))
        before = torch.cat([torch.ones(1, dtype=torch.bool, device=text.device), blank[:-1]])
        folded = text | 32
        return [v.sum().view(1) for v in (before & ~blank, text == 10, (folded >= 97) & (folded <= 122))]

    launch.reference = reference
    return launch, args


@triton.jit
def turn_of(ax, ay, bx, by, cx, cy):
    return (bx - ax) * (cy - ay) - (by - ay) * (cx - ax)


@triton.jit
def count_crossings(A, B, OUT, NA, NB, BA: tl.constexpr, BB: tl.constexpr):
    # Segments of one map that cross segments of another: signs of doubles.
    i = tl.program_id(0) * BA + tl.arange(0, BA)
    pa = tl.make_block_ptr(A, (4, NA), (NA, 1), (0, tl.program_id(0) * BA), (4, BA), (1, 0))
    a = tl.load(pa, boundary_check=(1,), padding_option="zero")
    start_, end_ = tl.split(tl.trans(tl.reshape(a, (2, 2, BA)), (2, 0, 1)))
    x0, y0 = tl.split(start_)
    x1, y1 = tl.split(end_)
    x0, y0, x1, y1 = x0[:, None], y0[:, None], x1[:, None], y1[:, None]
    count = tl.zeros((BA,), tl.int32)
    for start in range(0, NB, BB):
        j = start + tl.arange(0, BB)
        u0, u1 = tl.load(B + j, mask=j < NB, other=0.0)[None, :], tl.load(B + NB + j, mask=j < NB, other=0.0)[None, :]
        v0, v1 = tl.load(B + 2 * NB + j, mask=j < NB, other=0.0)[None, :], tl.load(B + 3 * NB + j, mask=j < NB, other=0.0)[None, :]
        s = turn_of(x0, y0, x1, y1, u0, v0) * turn_of(x0, y0, x1, y1, u1, v1)
        t = turn_of(u0, v0, u1, v1, x0, y0) * turn_of(u0, v0, u1, v1, x1, y1)
        count += tl.sum(((s < 0) & (t < 0) & (j < NB)[None, :]).to(tl.int32), 1)
    tl.store(OUT + i, count, mask=i < NA)


@case
def crossings_of_segments_in_double():
    na, nb = 8_001, 6_003

    def segments(n):
        p = torch.rand(2, n, device="cuda", dtype=torch.float64)
        q = p + 0.2 * (torch.rand(2, n, device="cuda", dtype=torch.float64) - 0.5)
        return torch.stack([p[0], q[0], p[1], q[1]]).contiguous()  # x of both ends, y of both ends

    a, b, out = segments(na), segments(nb), zeros(na, dtype="int32")
    launch, args = run(count_crossings, (cdiv(na, 32),), (a, b, out, na, nb), out, BA=32, BB=64, num_warps=4)

    def turn(ax, ay, bx, by, cx, cy):
        return (bx - ax) * (cy - ay) - (by - ay) * (cx - ax)

    def reference(*_):
        counts = []
        for part in a.split(500, 1):
            x0, x1, y0, y1 = (v[:, None] for v in part)
            u0, u1, v0, v1 = (v[None, :] for v in b)
            s = turn(x0, y0, x1, y1, u0, v0) * turn(x0, y0, x1, y1, u1, v1)
            t = turn(u0, v0, u1, v1, x0, y0) * turn(u0, v0, u1, v1, x1, y1)
            counts.append(((s < 0) & (t < 0)).sum(1))
        return torch.cat(counts)

    launch.reference = reference
    return launch, args


@triton.jit
def chain_steps(am, aa, bm, ba):
    return am * bm, aa * bm + ba


@triton.jit
def chain_hashes(TOKENS, STARTS, OUT, OFFSETS, PAGE: tl.constexpr):
    # A prompt's pages have hashes that stand for all tokens before: a polynomial of long words, by a reduction of pairs a page.
    seq = tl.program_id(0)
    start, end = tl.load(STARTS + seq), tl.load(STARTS + seq + 1)
    to = OUT + tl.load(OFFSETS + seq)
    seed = tl.full((), 1469598103934665603, tl.int64)
    for page in range(0, (end - start) // PAGE):
        t = tl.load(TOKENS + start + page * PAGE + tl.arange(0, PAGE)).to(tl.int64)
        m, a = tl.reduce((tl.full((PAGE,), 1099511628211, tl.int64), t), 0, chain_steps)
        seed = seed * m + a
        seed = seed ^ (seed >> 29)
        tl.store(to + page, seed)


@case
def pages_of_prompts_hashed_in_chains():
    seqs, page = 512, 64
    lengths = ints(2000, 6000, seqs, dtype="int64")
    starts = torch.cat([zeros(1, dtype="int64"), lengths.cumsum(0)])
    pages = lengths // page
    offsets = torch.cat([zeros(1, dtype="int64"), pages.cumsum(0)])
    tokens, out = ints(0, 128_000, int(starts[-1])), zeros(int(offsets[-1]), dtype="int64")
    launch, args = run(chain_hashes, (seqs,), (tokens, starts, out, offsets), out, PAGE=page, num_warps=1)

    def seen(*args):
        return launch(*args) >> 20

    def reference(*_):
        result = torch.zeros_like(out)
        state = torch.full((seqs,), 1469598103934665603, dtype=torch.int64, device=out.device)
        for p in range(int(pages.max())):
            live = p < pages
            for k in range(page):
                state = torch.where(live, state * 1099511628211 + tokens[(starts[:-1] + p * page + k).clamp(max=tokens.numel() - 1)], state)
            state = torch.where(live, state ^ (state >> 29), state)
            result[(offsets[:-1] + p)[live]] = state[live]
        return result >> 20

    seen.reference = reference
    return seen, args


@triton.jit
def power_modulo(base, exponent, modulus):
    result = tl.full(base.shape, 1, tl.uint64)
    while tl.max(exponent) > 0:
        result = tl.where((exponent & 1) != 0, result * base % modulus, result)
        base = base * base % modulus
        exponent = exponent >> 1
    return result


@triton.jit
def test_primes(X, PRIME, N, BLOCK: tl.constexpr):
    # Strong probable primes of three bases, which is a proof below 2**32: remainders of long words, loops that end by data.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    n = tl.load(X + i, mask=i < N, other=3).to(tl.uint32).to(tl.uint64)
    d, twos = n - 1, tl.zeros((BLOCK,), tl.int32)
    while tl.max(((d & 1) == 0).to(tl.int32), 0) != 0:
        even = (d & 1) == 0
        d, twos = tl.where(even, d >> 1, d), twos + even.to(tl.int32)
    prime = tl.full((BLOCK,), True, tl.int1)
    for k in tl.static_range(3):
        base = tl.full((BLOCK,), (2, 7, 61)[k], tl.uint64)
        x = power_modulo(base % n, d, n)
        passes = (x == 1) | (x == n - 1) | (n == base)
        for step in range(tl.max(twos, 0) - 1):
            x = x * x % n
            passes = passes | ((x == n - 1) & (step < twos - 1))
        prime = prime & passes
    tl.store(PRIME + i, prime, mask=i < N)


@case
def primes_by_strong_tests():
    n = 100_000
    x, prime = (torch.randint(2**20, 2**31, (n,), device="cuda") * 2 + 1).to(torch.int32), zeros(n, dtype="bool")
    x = torch.where(x == 1, 3, x)
    launch, args = run(test_primes, (cdiv(n, 128),), (x, prime, n), prime, BLOCK=128, num_warps=4)

    def reference(*_):
        v = x.long() & 0xFFFFFFFF
        sieve = torch.ones(1 << 16, dtype=torch.bool)
        sieve[:2] = False
        for p in range(2, 256):
            if sieve[p]:
                sieve[p * p :: p] = False
        result = torch.ones_like(v, dtype=torch.bool)
        for p in sieve.nonzero()[:, 0].tolist():
            result &= (v % p != 0) | (v == p)
        return result

    launch.reference = reference
    return launch, args


@triton.jit
def mask_by_grammar(LOGITS, MASKS, ROWS, V, WORDS, count, BLOCK: tl.constexpr):
    # Bits tell which tokens may come: logits of the others become minus infinity, of some rows of the batch; nothing else is stored.
    blocks = tl.cdiv(V, BLOCK)
    for job in tl.range(tl.program_id(0), count * blocks, tl.num_programs(0)):
        row = tl.load(ROWS + job // blocks)
        w = job % blocks * (BLOCK // 32) + tl.arange(0, BLOCK // 32)
        bits = tl.load(MASKS + row * WORDS + w, mask=w < WORDS, other=-1)
        forbidden = ((bits[:, None] >> tl.arange(0, 32)[None, :]) & 1) == 0
        forbidden = tl.reshape(forbidden, (BLOCK,))
        v = job % blocks * BLOCK + tl.arange(0, BLOCK)
        tl.store(LOGITS + row.to(tl.int64) * V + v, -float("inf"), mask=forbidden & (v < V))


@case
def logits_masked_by_words_of_grammar():
    rows, v = 256, 151_669
    words = cdiv(v, 32)
    logits = rand(rows, v, dtype="bfloat16")
    masks = torch.randint(-(2**31), 2**31, (rows, words), device="cuda").to(torch.int32)
    chosen = torch.randperm(rows, device="cuda")[:200].to(torch.int32)
    work = logits.clone()

    def launch(*_):
        work.copy_(logits)
        mask_by_grammar[(528,)](work, masks, chosen, v, words, 200, BLOCK=4096, num_warps=8)
        return work.clamp(min=-100)

    def reference(*_):
        bits = ((masks[:, :, None] >> arange(32)) & 1).bool().view(rows, -1)[:, :v]
        hit = torch.zeros(rows, dtype=torch.bool, device=logits.device)
        hit[chosen.long()] = True
        return torch.where(~bits & hit[:, None], -100.0, logits)

    launch.reference = reference
    return launch, (logits, masks)
