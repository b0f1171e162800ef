"""Elements of many widths in one kernel: bits, bytes, halves, floats, doubles and words, packed, split, shuffled and converted."""

import torch
import triton
import triton.language as tl

from .common import case, cdiv, f8, f32, far, ints, rand, run, uniform, zeros


@triton.jit
def fields_of_records(REC, KIND, SIDE, AMOUNT, PRICE, TIME, LARGE, N, tick, BLOCK: tl.constexpr):
    # A record of 64 bits: 3 of a kind, 1 of a side, 12 signed of an amount, 20 of a price in ticks, 28 of a time.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    live = i < N
    r = tl.load(REC + i, mask=live, other=0)
    amount = ((r << 48) >> 52).to(tl.int16)
    price = ((r >> 16) & 0xFFFFF).to(tl.int32)
    tl.store(KIND + i, (r & 7).to(tl.int8), mask=live)
    tl.store(SIDE + i, ((r >> 3) & 1) != 0, mask=live)
    tl.store(AMOUNT + i, amount, mask=live)
    tl.store(PRICE + i, price.to(tl.float32) * tick, mask=live)
    tl.store(TIME + i, ((r >> 36) & 0xFFFFFFF).to(tl.float64) * 1e-6, mask=live)
    tl.store(LARGE + i, (tl.abs(amount.to(tl.int32)) * price > (1 << 28)).to(tl.int8), mask=live)


@case
def records_of_64_bits_to_columns():
    n = 5_000_000
    rec = ints(-(2**62), 2**62, n, dtype="int64")
    outs = zeros(n, dtype="int8"), zeros(n, dtype="bool"), zeros(n, dtype="int16"), zeros(n, dtype="float32"), zeros(n, dtype="float64"), zeros(n, dtype="int8")
    launch, args = run(fields_of_records, (cdiv(n, 1024),), (rec, *outs, n, 0.01), outs, BLOCK=1024, num_warps=4)

    def reference(*_):
        amount, price = (rec << 48) >> 52, (rec >> 16) & 0xFFFFF
        when = ((rec >> 36) & 0xFFFFFFF).double() * 1e-6
        return rec & 7, (rec >> 3) & 1, amount, price * 0.01, when, (amount.abs() * price > 2**28).to(torch.int8)

    launch.reference = reference
    return launch, args


@triton.jit
def step_of_split_masters(HI, LO, GRAD, MOM, SCALE, N, lr, beta, decay, BLOCK: tl.constexpr):
    # A float lies as the bfloat16 that the network uses and the 16 bits below it; the momentum is bfloat16.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    live = i < N
    hi = tl.load(HI + i, mask=live, other=0.0).to(tl.uint16, bitcast=True).to(tl.uint32)
    lo = tl.load(LO + i, mask=live, other=0).to(tl.uint16, bitcast=True).to(tl.uint32)
    w = ((hi << 16) | lo).to(tl.float32, bitcast=True)
    g = tl.load(GRAD + i, mask=live, other=0.0).to(tl.float32) * tl.load(SCALE)
    m = tl.load(MOM + i, mask=live, other=0.0).to(tl.float32)
    m = beta * m + (1 - beta) * g
    w = w * (1 - lr * decay) - lr * m
    bits = w.to(tl.uint32, bitcast=True)
    tl.store(HI + i, (bits >> 16).to(tl.uint16).to(tl.bfloat16, bitcast=True), mask=live)
    tl.store(LO + i, (bits & 0xFFFF).to(tl.uint16).to(tl.int16, bitcast=True), mask=live)
    tl.store(MOM + i, m.to(tl.bfloat16), mask=live)


@case
def momentum_step_of_masters_in_two_halves():
    n = 12_345_678
    hi, lo, mom = rand(n, dtype="bfloat16"), ints(-32768, 32767, n, dtype="int16"), rand(n, dtype="bfloat16")
    args = hi, lo, rand(n), mom, f32(1), n, 1e-3, 0.95, 0.1
    return run(step_of_split_masters, (cdiv(n, 2048),), args, (hi, mom), BLOCK=2048, num_warps=8)


@triton.jit
def best_of_three_codes(X, CODES, SCALE, KIND, D, BLOCK: tl.constexpr):
    # A row as INT8, E4M3 or E5M2, whichever loses least; all three are tried in registers.
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    live = i < D
    x = tl.load(X + row * D + i, mask=live, other=0.0).to(tl.float32)
    top = tl.maximum(tl.max(tl.abs(x)), 1e-12)
    a = top / 127.0
    q = tl.floor(x / a + 0.5)
    qa = q.to(tl.int8)
    b = top / 448.0
    qb = (x / b).to(tl.float8e4nv)
    c = top / 57344.0
    qc = (x / c).to(tl.float8e5)
    ea = tl.sum((q * a - x) * (q * a - x))
    db = qb.to(tl.float32) * b - x
    dc = qc.to(tl.float32) * c - x
    eb, ec = tl.sum(db * db), tl.sum(dc * dc)
    kind = tl.where(ea <= tl.minimum(eb, ec), 0, tl.where(eb <= ec, 1, 2))
    code = tl.where(kind == 0, qa, tl.where(kind == 1, qb.to(tl.int8, bitcast=True), qc.to(tl.int8, bitcast=True)))
    tl.store(CODES + row * D + i, code, mask=live)
    tl.store(SCALE + row, tl.where(kind == 0, a, tl.where(kind == 1, b, c)).to(tl.float16))
    tl.store(KIND + row, kind.to(tl.int8))


@case
def rows_to_the_best_of_three_eight_bit_codes():
    rows, d = 8192, 1536
    x = rand(rows, d, dtype="bfloat16")
    x[::2] = x[::2] ** 3
    x[::3] = x[::3] ** 5
    codes, scale, kind = zeros(rows, d, dtype="int8"), zeros(rows), zeros(rows, dtype="int8")
    launch, args = run(best_of_three_codes, (rows,), (x, codes, scale, kind, d), (codes, scale, kind), BLOCK=2048, num_warps=4)
    return (lambda *a: (far(launch(*a)[0]), scale, kind)), args


@triton.jit
def shuffle_bytes(X, PLANES, N, BLOCK: tl.constexpr):
    # Bytes of floats in four planes, each with differences along it, as compressors like them.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    live = i < N
    x = tl.load(X + i, mask=live, other=0.0).to(tl.uint32, bitcast=True)
    before = tl.load(X + i - 1, mask=live & (i % BLOCK > 0), other=0.0).to(tl.uint32, bitcast=True)
    for b in tl.static_range(4):
        d = ((x >> (8 * b)) & 0xFF).to(tl.uint8) - ((before >> (8 * b)) & 0xFF).to(tl.uint8)
        tl.store(PLANES + b * N + i, d, mask=live)


@case
def floats_to_four_planes_of_bytes():
    n = 8_000_000
    x, planes = f32(n).cpu().cumsum(0).cuda(), zeros(4, n, dtype="uint8")
    launch, args = run(shuffle_bytes, (cdiv(n, 2048),), (x, planes, n), planes, BLOCK=2048, num_warps=4)
    return launch, args


@triton.jit
def transpose_bits(X, OUT, ROWS: tl.constexpr, WORDS: tl.constexpr):
    # 16-bit words to 16 planes of bits, 32 words a word of a plane.
    base = tl.program_id(0) * ROWS
    w, lane, bit = tl.arange(0, WORDS), tl.arange(0, 32), tl.arange(0, 16)
    x = tl.load(X + base + w[:, None] * 32 + lane[None, :]).to(tl.uint16, bitcast=True).to(tl.uint32)
    bits = (x[:, :, None] >> bit[None, None, :].to(tl.uint32)) & 1
    planes = tl.xor_sum(bits << lane[None, :, None].to(tl.uint32), 1)
    tl.store(OUT + base // 2 + bit[None, :] * WORDS + w[:, None], planes.to(tl.int32, bitcast=True))


@case
def sixteen_bit_words_to_planes_of_bits():
    rows, count = 1024, 8192
    out = zeros(count, 16, rows // 32, dtype="int32")
    return run(transpose_bits, (count,), (ints(-3000, 3000, count * rows, dtype="int16"), out), out, ROWS=rows, WORDS=rows // 32, num_warps=4)


@triton.jit
def norms_by_address(TABLE, LENGTHS, KIND, PART, CHUNK: tl.constexpr, BLOCK: tl.constexpr):
    # Tensors of four types in a table of addresses: sums of squares of each chunk, in double.
    t, c = tl.program_id(0), tl.program_id(1)
    length, kind, address = tl.load(LENGTHS + t), tl.load(KIND + t), tl.load(TABLE + t)
    if c * CHUNK >= length:
        return
    total = tl.zeros((BLOCK,), tl.float64)
    for start in range(c * CHUNK, min(c * CHUNK + CHUNK, length), BLOCK):
        i = start + tl.arange(0, BLOCK)
        live = i < length
        if kind == 0:
            x = tl.load(address.to(tl.pointer_type(tl.float32)) + i, mask=live, other=0.0)
        elif kind == 1:
            x = tl.load(address.to(tl.pointer_type(tl.float16)) + i, mask=live, other=0.0).to(tl.float32)
        elif kind == 2:
            x = tl.load(address.to(tl.pointer_type(tl.bfloat16)) + i, mask=live, other=0.0).to(tl.float32)
        else:
            x = tl.load(address.to(tl.pointer_type(tl.int8)) + i, mask=live, other=0).to(tl.float32) / 16
        total += x.to(tl.float64) * x.to(tl.float64)
    tl.store(PART + t * tl.num_programs(1) + c, tl.sum(total))


@case
def norms_of_tensors_of_four_types():
    sizes = [200_000 + 17_001 * t for t in range(40)]
    makers = f32, rand, lambda n: rand(n, dtype="bfloat16"), lambda n: ints(-128, 128, n, dtype="int8")
    held = [makers[t % 4](n) for t, n in enumerate(sizes)]
    table = torch.tensor([x.data_ptr() for x in held], dtype=torch.int64, device="cuda")
    kind = torch.tensor([t % 4 for t in range(len(sizes))], dtype=torch.int8, device="cuda")
    chunk = 32768
    part = zeros(len(sizes), cdiv(max(sizes), chunk), dtype="float64")
    args = table, torch.tensor(sizes, dtype=torch.int32, device="cuda"), kind, part
    launch, args = run(norms_by_address, tuple(part.shape), args, part, CHUNK=chunk, BLOCK=2048, num_warps=4)

    def reference(*_):
        pad = torch.nn.functional.pad
        sums = [pad((x.double() / (16 if x.dtype == torch.int8 else 1)).square(), (0, part.shape[1] * chunk - x.numel())) for x in held]
        return torch.stack(sums).view(*part.shape, chunk).sum(-1)

    launch.reference = reference
    return launch, args


@triton.jit
def round_money(CENTS, RATE, CURRENCY, EXEMPT, NET, TAX, SHARE, N, BLOCK: tl.constexpr):
    # Taxes of amounts in cents: doubles inside, rounded half to even; a short table of rates; flags of a byte.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    live = i < N
    cents = tl.load(CENTS + i, mask=live, other=0)
    rate = tl.load(RATE + tl.load(CURRENCY + i, mask=live, other=0).to(tl.int32))
    exempt = tl.load(EXEMPT + i, mask=live, other=False)
    exact = cents.to(tl.float64) * rate
    low = tl.floor(exact)
    over = exact - low
    odd = (low.to(tl.int64) & 1) == 1
    tax = tl.where((over > 0.5) | ((over == 0.5) & odd), low + 1, low).to(tl.int64)
    tax = tl.where(exempt, 0, tax)
    tl.store(NET + i, cents - tax, mask=live)
    tl.store(TAX + i, tax, mask=live)
    tl.store(SHARE + i, (tax.to(tl.float64) / tl.maximum(cents, 1).to(tl.float64)).to(tl.float16), mask=live)


@case
def taxes_of_cents_half_to_even():
    n = 3_000_001
    cents, rate = ints(0, 10**12, n, dtype="int64"), ints(0, 64, 128).double() / 256
    currency, exempt = ints(0, 128, n, dtype="int8"), uniform(n) < 0.1
    outs = zeros(n, dtype="int64"), zeros(n, dtype="int64"), zeros(n)
    launch, args = run(round_money, (cdiv(n, 1024),), (cents, rate, currency, exempt, *outs, n), outs, BLOCK=1024, num_warps=4)

    def reference(*_):
        tax = torch.where(exempt, 0, (cents.double() * rate[currency.long()]).round().long())
        return cents - tax, tax, tax.double() / cents.clamp(min=1)

    launch.reference = reference
    return launch, args


@triton.jit
def filter_q15(X, TAPS, SHIFT, Y, CLIPPED, N, COUNT: tl.constexpr, BLOCK: tl.constexpr):
    # A filter of 16-bit fixed point with taps of bytes: sums of 32 bits, a rounding shift, saturation, and a flag of it.
    channel = tl.program_id(1)
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.int32)
    for t in range(COUNT):
        x = tl.load(X + channel * N + i - t, mask=(i >= t) & (i < N), other=0).to(tl.int32)
        total += x * tl.load(TAPS + channel * COUNT + t).to(tl.int32)
    shift = tl.load(SHIFT + channel).to(tl.int32)
    total = (total + (1 << (shift - 1))) >> shift
    clipped = (total > 32767) | (total < -32768)
    y = tl.minimum(tl.maximum(total, -32768), 32767).to(tl.int16)
    tl.store(Y + channel * N + i, y, mask=i < N)
    tl.store(CLIPPED + channel * N + i, clipped, mask=i < N)


@case
def filter_of_shorts_by_taps_of_bytes():
    n, channels, count = 100_000, 64, 24
    y, clipped = zeros(channels, n, dtype="int16"), zeros(channels, n, dtype="bool")
    args = ints(-32768, 32768, channels, n, dtype="int16"), ints(-128, 128, channels, count, dtype="int8"), ints(6, 12, channels, dtype="uint8")
    args += y, clipped, n
    return run(filter_q15, (cdiv(n, 1024), channels), args, (y, clipped), COUNT=count, BLOCK=1024, num_warps=4)


@triton.jit
def short_by_byte_products(A, B, SCALE, OUT, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Activations of 16 bits by weights of 8: the high bytes and the low ones are each a product of bytes.
    m, n, k = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN), tl.arange(0, BK)
    high = tl.zeros((BM, BN), tl.int32)
    low = tl.zeros((BM, BN), tl.int32)
    for k0 in range(0, K, BK):
        a = tl.load(A + m[:, None] * K + (k0 + k)[None, :])
        b = tl.load(B + n[None, :] * K + (k0 + k)[:, None])
        top = (a.to(tl.int32) + 128) >> 8
        rest = a.to(tl.int32) - top * 256
        high = tl.dot(top.to(tl.int8), b, high, out_dtype=tl.int32)
        low = tl.dot(rest.to(tl.int8), b, low, out_dtype=tl.int32)
    y = (high.to(tl.float32) * 256.0 + low.to(tl.float32)) * tl.load(SCALE + n)[None, :]
    tl.store(OUT + m[:, None] * N + n[None, :], y.to(OUT.dtype.element_ty))


@case
def gemm_int16_by_int8_in_two_parts():
    m, n, k = 2048, 1024, 1024
    a, b, scale, out = ints(-32000, 32000, m, k, dtype="int16"), ints(-128, 128, n, k, dtype="int8"), uniform(n) * 1e-6, zeros(m, n, dtype="bfloat16")
    launch, args = run(short_by_byte_products, (m // 64, n // 64), (a, b, scale, out, n, k), out, BM=64, BN=64, BK=64, num_warps=4, num_stages=3)
    launch.reference = lambda *_: (a.double() @ b.double().t() * scale).float()
    return launch, args


@triton.jit
def product_of_long_words(X, W, GROUP_SCALE, SCALE, OUT, N, K, BM: tl.constexpr, BN: tl.constexpr):
    # Sixteen codes of four bits in a word of 64; scales of 16 codes are E4M3, and one float for all.
    m, n = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    word, nibble, k = tl.arange(0, 4), tl.arange(0, 16), tl.arange(0, 64)
    acc = tl.zeros((BM, BN), tl.float32)
    for k0 in range(0, K, 64):
        x = tl.load(X + m[:, None] * K + (k0 + k)[None, :])
        at = n[:, None] * (K // 16) + (k0 // 16 + word)[None, :]
        w = tl.load(W + at)
        s = tl.load(GROUP_SCALE + at).to(tl.float16)
        code = ((w[:, :, None] >> (nibble * 4)[None, None, :].to(tl.int64)) & 15).to(tl.int32)
        code = (code << 28) >> 28
        value = code.to(tl.float16) * s[:, :, None]
        acc = tl.dot(x, tl.trans(tl.reshape(value, (BN, 64))), acc)
    tl.store(OUT + m[:, None] * N + n[None, :], (acc * tl.load(SCALE)).to(OUT.dtype.element_ty))


@case
def gemm_sixteen_nibbles_of_a_long_word():
    m, n, k = 64, 4096, 2048
    x, w = rand(m, k), ints(-(2**62), 2**62, n, k // 16, dtype="int64")
    s, scale, out = f8(n, k // 16), f32(1), zeros(m, n)
    launch, args = run(product_of_long_words, (1, n // 32), (x, w, s, scale, out, n, k), out, BM=64, BN=32, num_warps=4, num_stages=3)

    def reference(*_):
        shifts = torch.arange(16, device="cuda") * 4
        code = (w[..., None] >> shifts) & 15
        code = torch.where(code > 7, code - 16, code)
        value = (code.half() * s.half()[..., None]).float().view(n, k)
        return x.float() @ value.t() * scale

    launch.reference = reference
    return launch, args


@triton.jit
def develop_12_bits(RAW, BLACK, GAIN, BAD, OUT, HIST, W, BLOCK: tl.constexpr):
    # Two pixels of 12 bits in three bytes, minus a row's black level, times a column's gain; bad ones are NaN.
    row = tl.program_id(1)
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    live = i < W // 2
    at = row * (W // 2 * 3) + 3 * i
    b0, b1, b2 = (tl.load(RAW + at, mask=live, other=0).to(tl.int32), tl.load(RAW + at + 1, mask=live, other=0).to(tl.int32),
                  tl.load(RAW + at + 2, mask=live, other=0).to(tl.int32))
    pair = tl.join(b0 | ((b1 & 15) << 8), (b1 >> 4) | (b2 << 4))
    col = 2 * i[:, None] + tl.arange(0, 2)[None, :]
    ok = col < W
    v = (pair - tl.load(BLACK + row).to(tl.int32)).to(tl.float32)
    v = v * tl.load(GAIN + col, mask=ok, other=0.0).to(tl.float32)
    bad = tl.load(BAD + row * W + col, mask=ok, other=False)
    tl.store(OUT + row * W + col, tl.where(bad, float("nan"), v).to(tl.float16), mask=ok)
    tl.store(HIST + row * tl.num_programs(0) + tl.program_id(0), tl.sum(tl.where(bad & ok, 1, 0)).to(tl.int16))


@case
def raw_pixels_of_12_bits():
    h, w, block = 3000, 4000, 512
    out, hist = zeros(h, w), zeros(h, cdiv(w // 2, block), dtype="int16")
    raw, black, gain, bad = ints(0, 256, h, w * 3 // 2, dtype="uint8"), ints(50, 70, h, dtype="uint16"), rand(w), uniform(h, w) < 0.01
    launch, args = run(develop_12_bits, (cdiv(w // 2, block), h), (raw, black, gain, bad, out, hist, w), (out, hist), BLOCK=block, num_warps=4)

    def reference(*_):
        b0, b1, b2 = raw.view(h, w // 2, 3).int().unbind(-1)
        v = torch.stack((b0 | ((b1 & 15) << 8), (b1 >> 4) | (b2 << 4)), -1).view(h, w)
        v = (v - black.int()[:, None]) * gain.float()
        counts = torch.nn.functional.pad(bad.int(), (0, hist.shape[1] * 2 * block - w)).view(h, -1, 2 * block).sum(-1)
        return v.masked_fill(bad, float("nan")).half(), counts

    launch.reference = reference
    return launch, args


@triton.jit
def variable_length_bytes(X, STREAM, SIZES, ROOM, BLOCK: tl.constexpr):
    # Seven bits a byte, zigzag, as many as are needed: places by a scan, bytes one after another; a block has its own room.
    p = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    x = tl.load(X + p * BLOCK + i)
    z = ((x << 1) ^ (x >> 31)).to(tl.uint32, bitcast=True)
    size = 1 + (z >= 1 << 7).to(tl.int32) + (z >= 1 << 14).to(tl.int32) + (z >= 1 << 21).to(tl.int32) + (z >= 1 << 28).to(tl.int32)
    place = tl.cumsum(size, 0) - size
    for b in tl.static_range(5):
        byte = ((z >> (7 * b)) & 127) | tl.where(b + 1 < size, 128, 0).to(tl.uint32)
        tl.store(STREAM + p * ROOM + place + b, byte.to(tl.uint8), mask=b < size)
    tl.store(SIZES + p, tl.sum(size).to(tl.int16))


@case
def integers_to_bytes_of_seven_bits():
    blocks, block = 8192, 512
    x = (f32(blocks, block) ** 9 * 1000).clamp(-1e9, 1e9).to(torch.int32)
    stream, sizes = zeros(blocks, block * 5, dtype="uint8"), zeros(blocks, dtype="int16")
    return run(variable_length_bytes, (blocks,), (x, stream, sizes, block * 5), (stream, sizes), BLOCK=block, num_warps=4)


@triton.jit
def ordered_keys(X, Y, KEY, DIGIT, SAME, N, BLOCK: tl.constexpr):
    # Doubles and halves as integers that sort alike: a key of both, its upper digit, and whether the way back gives the same.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    live = i < N
    x = tl.load(X + i, mask=live, other=0.0)
    bits = x.to(tl.int64, bitcast=True)
    key = bits ^ ((bits >> 63) & 0x7FFFFFFFFFFFFFFF)
    half = tl.load(Y + i, mask=live, other=0.0).to(tl.int16, bitcast=True)
    low = (half ^ ((half >> 15) & 0x7FFF)).to(tl.int64)
    mixed = (key & -65536) | (low & 0xFFFF)
    back = (mixed ^ ((mixed >> 63) & 0x7FFFFFFFFFFFFFFF)).to(tl.float64, bitcast=True)
    tl.store(KEY + i, mixed, mask=live)
    tl.store(DIGIT + i, ((mixed >> 56) + 128).to(tl.uint8), mask=live)
    tl.store(SAME + i, tl.abs(back - x) <= tl.abs(x) * 2e-11, mask=live)


@case
def keys_of_doubles_and_halves():
    n = 4_000_000
    x, y = rand(n, dtype="float64"), rand(n)
    outs = zeros(n, dtype="int64"), zeros(n, dtype="uint8"), zeros(n, dtype="bool")
    launch, args = run(ordered_keys, (cdiv(n, 1024),), (x, y, *outs, n), outs, BLOCK=1024, num_warps=4)

    def reference(*_):
        bits, half = x.view(torch.int64), y.view(torch.int16)
        key = bits ^ ((bits >> 63) & 0x7FFFFFFFFFFFFFFF)
        low = (half ^ ((half >> 15) & 0x7FFF)).long()
        mixed = (key & -65536) | (low & 0xFFFF)
        return mixed, (mixed >> 56) + 128, torch.ones(n, dtype=torch.bool, device="cuda")

    launch.reference = reference
    return launch, args


@triton.jit
def three_valued(A, B, C, BITS, KNOWN, COUNT, WORDS: tl.constexpr):
    # (a and b) or not c of columns in SQL's logic: bytes of 0, 1, 2 in, bitmaps of truth and of knowledge out.
    p = tl.program_id(0)
    w, bit = tl.arange(0, WORDS), tl.arange(0, 8)
    i = (p * WORDS + w)[:, None] * 8 + bit[None, :]
    a, b, c = tl.load(A + i), tl.load(B + i), tl.load(C + i)
    false_ab = (a == 0) | (b == 0)
    true_ab = (a == 1) & (b == 1)
    true = true_ab | (c == 0)
    false = false_ab & (c == 1)
    shift = bit[None, :].to(tl.uint8)
    tl.store(BITS + p * WORDS + w, tl.sum(true.to(tl.uint8) << shift, 1).to(tl.uint8))
    tl.store(KNOWN + p * WORDS + w, tl.sum((true | false).to(tl.uint8) << shift, 1).to(tl.uint8))
    tl.store(COUNT + p, tl.sum(tl.sum(true.to(tl.int16), 1), 0).to(tl.int16))


@case
def logic_of_three_values_to_bitmaps():
    programs, words = 4096, 256
    n = programs * words * 8
    outs = zeros(n // 8, dtype="uint8"), zeros(n // 8, dtype="uint8"), zeros(programs, dtype="int16")
    args = *(ints(0, 3, n, dtype="int8") for _ in range(3)), *outs
    launch, args = run(three_valued, (programs,), args, outs, WORDS=words, num_warps=4)

    def reference(a, b, c, *_):
        true = ((a == 1) & (b == 1)) | (c == 0)
        false = ((a == 0) | (b == 0)) & (c == 1)
        weights = 2 ** torch.arange(8, device="cuda")
        pack = [(x.view(-1, 8) * weights).sum(1) for x in (true, true | false)]
        return *pack, true.view(programs, -1).sum(1)

    launch.reference = reference
    return launch, args


@triton.jit
def compensated_dot(A, B, OUT, WIDE, N, BLOCK: tl.constexpr):
    # Halves by bfloat16: products exact in float, summed with their errors, beside the sum in double.
    row = tl.program_id(0)
    s, e, d = tl.zeros((BLOCK,), tl.float32), tl.zeros((BLOCK,), tl.float32), tl.zeros((BLOCK,), tl.float64)
    for start in range(0, N, BLOCK):
        i = start + tl.arange(0, BLOCK)
        a = tl.load(A + row.to(tl.int64) * N + i, mask=i < N, other=0.0).to(tl.float32)
        b = tl.load(B + row.to(tl.int64) * N + i, mask=i < N, other=0.0).to(tl.float32)
        p = a * b
        t = s + p
        z = t - s
        e += (s - (t - z)) + (p - z)
        s = t
        d += p.to(tl.float64)
    tl.store(OUT + row, tl.sum(s.to(tl.float64) + e.to(tl.float64)))
    tl.store(WIDE + row, tl.sum(d))


@case
def dots_of_halves_with_errors_kept():
    rows, n = 2048, 10_007
    outs = zeros(rows, dtype="float64"), zeros(rows, dtype="float64")
    a, b = rand(rows, n), rand(rows, n, dtype="bfloat16")
    launch, args = run(compensated_dot, (rows,), (a, b, *outs, n), outs, BLOCK=1024, num_warps=4)
    launch.reference = lambda *_: ((a.double() * b.double()).sum(1),) * 2
    return launch, args
