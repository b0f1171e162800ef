"""Formats: numbers of four bits to 128, with scales and without, taken apart and put together, saturated, rounded, spread and packed."""

import torch
import torch.nn.functional as F
import triton
import triton.language as tl
from triton.language.extra import libdevice

from .common import against, arange, case, cdiv, cleared, f32, f8, far8, ints, rand, run, uniform, viewed, zeros
from .simulations import f64


@triton.jit
def scaled_e5m2_by_e2m1(a_ptr, sa_ptr, b_ptr, sb_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Groups of 32 with powers of two: rows of eight-bit floats, columns of four-bit ones, two in a byte.
    m, n = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    k, kb, ks = tl.arange(0, BK), tl.arange(0, BK // 2), tl.arange(0, BK // 32)
    acc = tl.zeros((BM, BN), tl.float32)
    for k0 in range(0, K, BK):
        a = tl.load(a_ptr + m[:, None] * K + k0 + k[None, :])
        b = tl.load(b_ptr + n[None, :] * (K // 2) + k0 // 2 + kb[:, None])
        sa = tl.load(sa_ptr + m[:, None] * (K // 32) + k0 // 32 + ks[None, :])
        sb = tl.load(sb_ptr + n[:, None] * (K // 32) + k0 // 32 + ks[None, :])
        acc = tl.dot_scaled(a, sa, "e5m2", b, sb, "e2m1", acc)
    tl.store(c_ptr + m[:, None] * N + n[None, :], acc.to(tl.bfloat16))


@case
def product_of_e5m2_and_four_bit_floats_with_powers():
    m, n, k = 1024, 768, 1024
    a, b = f8(m, k, dtype="float8_e5m2"), ints(0, 256, n, k // 2, dtype="uint8")
    sa, sb = ints(122, 130, m, k // 32, dtype="uint8"), ints(122, 130, n, k // 32, dtype="uint8")
    c = zeros(m, n, dtype="bfloat16")
    launched = run(scaled_e5m2_by_e2m1, (m // 128, n // 64), (a, sa, b, sb, c, m, n, k), c, BM=128, BN=64, BK=128, num_warps=4)

    def reference():
        levels = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6], device=a.device).double()
        levels = torch.cat([levels, -levels])
        codes = torch.stack([b & 15, b >> 4], 2).view(n, k).long()
        wa, wb = ((2.0 ** (s.double() - 127)).repeat_interleave(32, 1) for s in (sa, sb))
        return (a.double() * wa) @ (levels[codes] * wb).t()

    return against(launched, reference)


@triton.jit
def halves_times_scaled_columns(a_ptr, b_ptr, sb_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Only one side has scales; the other one is a half that dots take as it is.
    m, n = tl.program_id(1) * BM + tl.arange(0, BM), tl.program_id(0) * BN + tl.arange(0, BN)
    k, ks = tl.arange(0, BK), tl.arange(0, BK // 32)
    acc = tl.zeros((BM, BN), tl.float32)
    for k0 in tl.range(0, K, BK, num_stages=2):
        a = tl.load(a_ptr + m[:, None] * K + k0 + k[None, :], mask=(m < M)[:, None], other=0.0)
        b = tl.load(b_ptr + n[None, :] * K + k0 + k[:, None])
        sb = tl.load(sb_ptr + n[:, None] * (K // 32) + k0 // 32 + ks[None, :])
        acc = tl.dot_scaled(a, None, "fp16", b, sb, "e4m3", acc)
    tl.store(c_ptr + m[:, None] * N + n[None, :], acc.to(tl.float16), mask=(m < M)[:, None])


@case
def few_halves_times_scaled_e4m3():
    m, n, k = 33, 4096, 2048
    a, b, sb, c = rand(m, k), f8(n, k), ints(122, 129, n, k // 32, dtype="uint8"), zeros(m, n)
    launched = run(halves_times_scaled_columns, (n // 64, cdiv(m, 64)), (a, b, sb, c, m, n, k), c, BM=64, BN=64, BK=64, num_warps=4)
    return against(launched, lambda: a.double() @ (b.double() * (2.0 ** (sb.double() - 127)).repeat_interleave(32, 1)).t())


@triton.jit
def half_bits_of_float(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    # A float to a half by integers only: rounding to even, small numbers, overflow, what is no number.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    u = tl.load(x_ptr + i, mask=i < N, other=0.0).to(tl.uint32, bitcast=True)
    sign = (u >> 16) & 0x8000
    u = u & 0x7FFFFFFF
    normal = u + 0xC8000FFF + ((u >> 13) & 1)
    small = (u.to(tl.float32, bitcast=True) + 0.5).to(tl.uint32, bitcast=True) - 0x3F000000
    h = tl.where(u < 0x38800000, small, normal >> 13)
    h = tl.where(u >= 0x477FF000, tl.where(u > 0x7F800000, 0x7E00, 0x7C00).to(tl.uint32), h)
    tl.store(y_ptr + i, (h | sign).to(tl.int16), mask=i < N)


@case
def floats_to_halves_by_integers():
    n = 10_000_000
    x, y = f32(n) * torch.exp2(ints(-26, 18, n).float()), zeros(n, dtype="int16")
    return against(run(half_bits_of_float, (cdiv(n, 1024),), (x, y, n), y, BLOCK=1024), lambda: x.half().view(torch.int16))


@triton.jit
def matmul_in_double(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m, n, k = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float64)
    for k0 in range(0, K, BK):
        a = tl.load(a_ptr + m[:, None] * K + (k0 + k)[None, :], mask=(m < M)[:, None] & (k0 + k < K)[None, :], other=0.0)
        b = tl.load(b_ptr + (k0 + k)[:, None] * N + n[None, :], mask=(k0 + k < K)[:, None] & (n < N)[None, :], other=0.0)
        acc = tl.dot(a, b, acc, out_dtype=tl.float64)
    tl.store(c_ptr + m[:, None] * N + n[None, :], acc, mask=(m < M)[:, None] & (n < N)[None, :])


@case
def matmul_of_doubles_by_dots_32x32x16():
    m, n, k = 500, 700, 300
    a, b, c = f64(m, k), f64(k, n), zeros(m, n, dtype="float64")
    launched = run(matmul_in_double, (cdiv(m, 32), cdiv(n, 32)), (a, b, c, m, n, k), c, BM=32, BN=32, BK=16, num_warps=4)
    return against(launched, lambda: a @ b)


@triton.jit
def morton_codes(x_ptr, y_ptr, z_ptr, code_ptr, N, BLOCK: tl.constexpr):
    # 21 bits of each of three coordinates, spread by three and put together in long words without sign.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    code = tl.zeros((BLOCK,), tl.uint64)
    for axis in tl.static_range(3):
        p = x_ptr if axis == 0 else y_ptr if axis == 1 else z_ptr
        v = tl.load(p + i, mask=i < N, other=0).to(tl.uint64) & 0x1FFFFF
        v = (v | (v << 32)) & 0x1F00000000FFFF
        v = (v | (v << 16)) & 0x1F0000FF0000FF
        v = (v | (v << 8)) & 0x100F00F00F00F00F
        v = (v | (v << 4)) & 0x10C30C30C30C30C3
        v = (v | (v << 2)) & 0x1249249249249249
        code |= v << axis
    tl.store(code_ptr + i, code.to(tl.int64, bitcast=True), mask=i < N)


@case
def places_of_three_axes_to_codes_of_63_bits():
    n = 3_000_001
    x, y, z = (ints(0, 1 << 21, n) for _ in range(3))
    code = zeros(n, dtype="int64")
    launched = run(morton_codes, (cdiv(n, 512),), (x, y, z, code, n), code, BLOCK=512)

    def reference():
        bits = [((v.long() >> b) & 1) << (3 * b + a) for a, v in enumerate((x, y, z)) for b in range(21)]
        return sum(bits)

    return against(launched, reference)


@triton.jit
def blend_bytes(a_ptr, b_ptr, alpha_ptr, out_ptr, N, BLOCK: tl.constexpr):
    # a * alpha + b * (255 - alpha), divided by 255 and rounded by adds and shifts; saturated with a lift of 20.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ok = i < N
    a, b = tl.load(a_ptr + i, mask=ok, other=0).to(tl.uint16), tl.load(b_ptr + i, mask=ok, other=0).to(tl.uint16)
    t = tl.load(alpha_ptr + i // 4, mask=ok, other=0).to(tl.uint16)
    s = a * t + b * (255 - t) + 128
    s = (s + (s >> 8)) >> 8
    tl.store(out_ptr + i, tl.minimum(s + 20, 255).to(tl.uint8), mask=ok)


@case
def bytes_blended_in_words_of_sixteen_bits():
    n = 30_000_000
    a, b, t, out = ints(0, 256, n, dtype="uint8"), ints(0, 256, n, dtype="uint8"), ints(0, 256, n // 4, dtype="uint8"), zeros(n, dtype="uint8")
    launched = run(blend_bytes, (cdiv(n, 2048),), (a, b, t, out, n), out, BLOCK=2048, num_warps=4)

    def reference():
        w = t.repeat_interleave(4).int()
        s = a.int() * w + b.int() * (255 - w) + 128
        return (((s + (s >> 8)) >> 8) + 20).clamp(max=255)

    return against(launched, reference)


@triton.jit
def fixed_point_filter(x_ptr, w_ptr, y_ptr, T, TAPS, BLOCK: tl.constexpr):
    # Numbers of 16 bits before the point and 16 behind it: products in long words, rounded and cut at the ends of the range.
    row = tl.program_id(1).to(tl.int64)
    t = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), tl.int64)
    for k in range(TAPS):
        x = tl.load(x_ptr + row * T + t - k, mask=(t >= k) & (t < T), other=0)
        acc += x.to(tl.int64) * tl.load(w_ptr + k).to(tl.int64)
    acc = (acc + 32768) >> 16
    acc = tl.minimum(tl.maximum(acc, -2147483648), 2147483647)
    tl.store(y_ptr + row * T + t, acc.to(tl.int32), mask=t < T)


@case
def filters_of_fixed_point_in_long_words():
    rows, t, taps = 64, 20_000, 24
    x, w, y = ints(-(2**31), 2**31 - 1, rows, t), ints(-60000, 60000, taps), zeros(rows, t, dtype="int32")
    launched = run(fixed_point_filter, (cdiv(t, 256), rows), (x, w, y, t, taps), y, BLOCK=256)

    def reference():
        padded = F.pad(x.long(), (taps - 1, 0))
        acc = sum(padded[:, taps - 1 - k : taps - 1 - k + t] * w[k].long() for k in range(taps))
        return ((acc + 32768) >> 16).clamp(-(2**31), 2**31 - 1)

    return against(launched, reference)


@triton.jit
def signed_nibbles(x_ptr, w_ptr, s_ptr, y_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Low and high nibbles with signs by shifts to the left and back; the halves of x meet each in a dot of its own.
    m, n, k = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.int32)
    for k0 in range(0, K // 2, BK):
        code = tl.load(w_ptr + n[None, :] * (K // 2) + (k0 + k)[:, None], mask=(n < N)[None, :], other=0)
        low, high = (code << 4).to(tl.int8) >> 4, code >> 4
        a = tl.load(x_ptr + m[:, None] * K + (k0 + k)[None, :], mask=(m < M)[:, None], other=0)
        b = tl.load(x_ptr + m[:, None] * K + (K // 2 + k0 + k)[None, :], mask=(m < M)[:, None], other=0)
        acc = tl.dot(a, low, acc, out_dtype=tl.int32)
        acc = tl.dot(b, high, acc, out_dtype=tl.int32)
    y = acc.to(tl.float32) * tl.load(s_ptr + n, mask=n < N, other=0.0)[None, :]
    tl.store(y_ptr + m[:, None] * N + n[None, :], y.to(tl.float16), mask=(m < M)[:, None] & (n < N)[None, :])


@case
def bytes_times_signed_nibbles_of_two_halves():
    m, n, k = 700, 1500, 2048
    x, w, s, y = ints(-127, 128, m, k, dtype="int8"), ints(-128, 128, n, k // 2, dtype="int8"), uniform(n) / 1000, zeros(m, n)
    launched = run(signed_nibbles, (cdiv(m, 64), cdiv(n, 128)), (x, w, s, y, m, n, k), y, BM=64, BN=128, BK=64, num_warps=4, num_stages=3)

    def reference():
        low, high = (w << 4) >> 4, w >> 4
        return (x.double() @ torch.cat([low, high], 1).double().t()) * s

    return against(launched, reference)


@triton.jit
def flags_of_rows(mask_ptr, any_ptr, all_ptr, first_ptr, parity_ptr, R, C, BR: tl.constexpr, BC: tl.constexpr):
    # Booleans in, booleans out; of a row whether any, whether all, which first, and their parity.
    r = tl.program_id(0) * BR + tl.arange(0, BR)
    some, every, parity = tl.zeros((BR,), tl.int1), tl.full((BR,), 1, tl.int1), tl.zeros((BR,), tl.int32)
    first = tl.full((BR,), 2147483647, tl.int32)
    for c0 in range(0, C, BC):
        c = c0 + tl.arange(0, BC)
        ok = (r < R)[:, None] & (c < C)[None, :]
        x = tl.load(mask_ptr + r[:, None] * C + c[None, :], mask=ok, other=False)
        some = some | (tl.max(x.to(tl.int8), 1) > 0)
        every = every & (tl.min((x | ~ok).to(tl.int8), 1) > 0)
        parity ^= tl.xor_sum(x.to(tl.int32), 1)
        first = tl.minimum(first, tl.min(tl.where(x, c[None, :], 2147483647), 1))
    tl.store(any_ptr + r, some, mask=r < R)
    tl.store(all_ptr + r, every, mask=r < R)
    tl.store(first_ptr + r, tl.where(some, first, -1), mask=r < R)
    tl.store(parity_ptr + r, parity.to(tl.int1), mask=r < R)


@case
def any_all_first_and_parity_of_rows_of_booleans():
    r, c = 20_000, 1001
    share = torch.where(arange(r) % 3 == 0, 2.0, torch.where(arange(r) % 3 == 1, 0.001, 0.5))
    x = uniform(r, c) < share[:, None]
    some, every, parity, first = zeros(r, dtype="bool"), zeros(r, dtype="bool"), zeros(r, dtype="bool"), zeros(r, dtype="int32")
    launched = run(flags_of_rows, (cdiv(r, 8),), (x, some, every, first, parity, r, c), (some, every, first, parity), BR=8, BC=128)

    def reference():
        return x.any(1), x.all(1), torch.where(x.any(1), x.int().argmax(1), -1), x.sum(1) % 2

    return against(launched, reference)


@triton.jit
def add_128(a, b, c, d):
    low = a + c
    return low, b + d + (low < a).to(tl.uint64)


@triton.jit
def times_powers_of_128_bits(lo_ptr, hi_ptr, m_ptr, N, ROUNDS: tl.constexpr, BLOCK: tl.constexpr):
    # Numbers of 128 bits as two long words: times an odd number and plus another, again and again, by high halves of products.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    lo, hi = tl.load(lo_ptr + i, mask=i < N, other=0).to(tl.uint64, bitcast=True), tl.load(hi_ptr + i, mask=i < N, other=0).to(tl.uint64, bitcast=True)
    m_lo, m_hi = tl.load(m_ptr).to(tl.uint64, bitcast=True), tl.load(m_ptr + 1).to(tl.uint64, bitcast=True)
    for _ in range(ROUNDS):
        p_hi = tl.umulhi(lo, tl.zeros_like(lo) + m_lo) + lo * m_hi + hi * m_lo
        lo, hi = add_128(lo * m_lo, p_hi, tl.zeros_like(lo) + 0x14057B7EF767814F, tl.zeros_like(lo) + 0x5851F42D4C957F2D)
    x = hi ^ lo
    turn = hi >> 58
    out = (x >> turn) | (x << ((64 - turn) & 63))
    tl.store(lo_ptr + i, lo.to(tl.int64, bitcast=True), mask=i < N)
    tl.store(hi_ptr + i, out.to(tl.int64, bitcast=True), mask=i < N)


@case
def states_of_128_bits_multiplied_sixteen_times():
    n = 1_000_001
    lo, hi = ints(-(2**62), 2**62, n, dtype="int64"), ints(-(2**62), 2**62, n, dtype="int64")
    a, b = zeros(n, dtype="int64"), zeros(n, dtype="int64")
    m = torch.tensor([0x4385DF649FCCF645, 0x2360ED051FC65DA4], device="cuda", dtype=torch.int64)
    launch, args = run(times_powers_of_128_bits, (cdiv(n, 256),), (a, b, m, n), (a, b), ROUNDS=16, BLOCK=256)

    def fresh(*args):
        a.copy_(lo)
        b.copy_(hi)
        launch(*args)
        # Words whose doubles differ where their bits do.
        return a & 0xFFFFFFFF, a >> 32, b & 0xFFFFFFFF, b >> 32

    return fresh, args


@triton.jit
def posit_to_float(p_ptr, out_ptr, N, BLOCK: tl.constexpr):
    # Words of sixteen bits with a run of equal bits before the exponent: the run's length by counting leading zeros.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    p = tl.load(p_ptr + i, mask=i < N, other=0).to(tl.int32)
    negative = p < 0
    u = tl.where(negative, -p, p) & 0xFFFF
    body = u << 17
    ones = body < 0
    run_length = libdevice.clz(tl.where(ones, ~body, body))
    regime = tl.where(ones, run_length - 1, -run_length)
    rest = (body << (run_length & 31)) << 1
    exponent = (rest >> 31) & 1
    fraction = (rest << 1).to(tl.uint32) >> 9
    value = (((regime * 2 + exponent + 127) << 23) | fraction.to(tl.int32)).to(tl.float32, bitcast=True)
    value = tl.where(u == 0, 0.0, tl.where(u == 0x8000, float("nan"), value))
    tl.store(out_ptr + i, tl.where(negative, -value, value), mask=i < N)


@case
def numbers_with_runs_before_exponents_to_floats():
    n = 20_000_000
    p, out = ints(-(2**15), 2**15, n, dtype="int16"), zeros(n, dtype="float32")
    return run(posit_to_float, (cdiv(n, 1024),), (p, out, n), out, BLOCK=1024, num_warps=8)


@triton.jit
def three_parts_of_float(x_ptr, h_ptr, m_ptr, l_ptr, N, BLOCK: tl.constexpr):
    # What a short float keeps, then of what is left, by bits cut off and by conversion.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < N, other=0.0)
    h = (x.to(tl.uint32, bitcast=True) & 0xFFFF0000).to(tl.float32, bitcast=True)
    m = (x - h).to(tl.bfloat16)
    low = (x - h - m.to(tl.float32)).to(tl.bfloat16)
    tl.store(h_ptr + i, h.to(tl.bfloat16), mask=i < N)
    tl.store(m_ptr + i, m, mask=i < N)
    tl.store(l_ptr + i, low, mask=i < N)


@case
def floats_to_three_short_parts():
    n = 12_000_001
    x, h, m, low = f32(n), *(zeros(n, dtype="bfloat16") for _ in range(3))
    launched = run(three_parts_of_float, (cdiv(n, 1024),), (x, h, m, low, n), (h, m, low), BLOCK=1024)

    def reference():
        a = (x.view(torch.int32) & -65536).view(torch.float32)
        b = (x - a).bfloat16()
        return a, b, (x - a - b.float()).bfloat16()

    return against(launched, reference)


@triton.jit
def exponents_shared(x_ptr, y_ptr, e_ptr, N, GROUP: tl.constexpr, BLOCK: tl.constexpr):
    # Groups of 16 halves to bytes with one exponent each, that of the largest, found in bits by a maximum.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < N, other=0.0).to(tl.float32)
    bits = tl.reshape(x.to(tl.int32, bitcast=True) & 0x7F800000, (BLOCK // GROUP, GROUP))
    e = tl.max(bits, 1) >> 23
    scale = ((254 + 6 - e) << 23).to(tl.float32, bitcast=True)
    q = libdevice.rint(tl.reshape(x, (BLOCK // GROUP, GROUP)) * scale[:, None])
    q = tl.clamp(q, -127.0, 127.0).to(tl.int8)
    tl.store(y_ptr + i, tl.reshape(q, (BLOCK,)), mask=i < N)
    g = tl.program_id(0) * (BLOCK // GROUP) + tl.arange(0, BLOCK // GROUP)
    tl.store(e_ptr + g, e.to(tl.uint8), mask=g < N // GROUP)


@case
def groups_of_16_halves_to_bytes_with_one_exponent():
    n = 16_000_000
    x, y, e = rand(n), zeros(n, dtype="int8"), zeros(n // 16, dtype="uint8")
    launched = run(exponents_shared, (cdiv(n, 2048),), (x, y, e, n), (y, e), GROUP=16, BLOCK=2048, num_warps=4)

    def reference():
        g = x.float().view(-1, 16)
        top = ((g.view(torch.int32) & 0x7F800000) >> 23).amax(1)
        q = (g.double() * 2.0 ** (133 - top.double())[:, None]).round().clamp(-127, 127)
        return q.view(-1), top

    return against(launched, reference)


@triton.jit
def digits_of_numbers(x_ptr, out_ptr, N, WIDTH: tl.constexpr, BLOCK: tl.constexpr):
    # Whole numbers to decimal digits, two in a byte, by divisions of words without sign.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < N, other=0).to(tl.uint32, bitcast=True)
    packed = tl.zeros((BLOCK,), tl.uint64)
    for d in tl.static_range(WIDTH):
        packed |= (x % 10).to(tl.uint64) << (4 * d)
        x = x // 10
    tl.store(out_ptr + i, packed.to(tl.int64, bitcast=True), mask=i < N)


@case
def words_to_ten_decimal_digits_in_nibbles():
    n = 8_000_001
    x, out = ints(0, 2**31 - 1, n), zeros(n, dtype="int64")
    launched = run(digits_of_numbers, (cdiv(n, 512),), (x, out, n), out, WIDTH=10, BLOCK=512)
    return against(launched, lambda: sum(((x.long() // 10**d) % 10) << (4 * d) for d in range(10)))


@triton.jit
def attention_over_bytes(q_ptr, k_ptr, v_ptr, ks_ptr, vs_ptr, o_ptr, S, sm_scale, D: tl.constexpr, BQ: tl.constexpr, BS: tl.constexpr):
    # Keys are e5m2 and values e4m3 without a zero mean: each is made a short float when it is read, scales a head.
    h = tl.program_id(1)
    t, d, s = tl.program_id(0) * BQ + tl.arange(0, BQ), tl.arange(0, D), tl.arange(0, BS)
    q = tl.load(q_ptr + (h * S + t)[:, None] * D + d[None, :], mask=(t < S)[:, None], other=0.0)
    ks, vs = tl.load(ks_ptr + h), tl.load(vs_ptr + h)
    m, total, acc = tl.full((BQ,), float("-inf"), tl.float32), tl.zeros((BQ,), tl.float32), tl.zeros((BQ, D), tl.float32)
    for s0 in range(0, S, BS):
        ok = s0 + s < S
        k = tl.load(k_ptr + (h * S + s0 + s)[None, :] * D + d[:, None], mask=ok[None, :], other=0.0).to(tl.bfloat16)
        x = tl.dot(q, k) * (ks * sm_scale * 1.4426950408889634)
        x = tl.where(ok[None, :], x, float("-inf"))
        high = tl.maximum(m, tl.max(x, 1))
        p = tl.exp2(x - high[:, None])
        fix = tl.exp2(m - high)
        total = total * fix + tl.sum(p, 1)
        v = tl.load(v_ptr + (h * S + s0 + s)[:, None] * D + d[None, :], mask=ok[:, None], other=0.0).to(tl.bfloat16)
        acc = tl.dot(p.to(tl.bfloat16), v, acc * fix[:, None])
        m = high
    tl.store(o_ptr + (h * S + t)[:, None] * D + d[None, :], (acc * (vs / total)[:, None]).to(tl.bfloat16), mask=(t < S)[:, None])


@case
def attention_with_e5m2_keys_and_e4m3_values_made_short_floats():
    h, s, d = 48, 1000, 64
    q, k, v = rand(h, s, d, dtype="bfloat16"), f8(h, s, d, dtype="float8_e5m2"), f8(h, s, d)
    ks, vs, o = uniform(h) + 0.5, uniform(h) + 0.5, zeros(h, s, d, dtype="bfloat16")
    args = q, k, v, ks, vs, o, s, d**-0.5
    launched = run(attention_over_bytes, (cdiv(s, 128), h), args, o, D=d, BQ=128, BS=64, num_warps=8, num_stages=3)

    def reference():
        p = (q.float() @ k.float().transpose(1, 2) * (ks * d**-0.5)[:, None, None]).softmax(2)
        return p @ v.float() * vs[:, None, None]

    return against(launched, reference)


@triton.jit
def next_float_bounds(x_ptr, r_ptr, lo_ptr, hi_ptr, N, BLOCK: tl.constexpr):
    # Sums and products rounded down and up: intervals that hold the exact value.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x, r = tl.load(x_ptr + i, mask=i < N, other=0.0), tl.load(r_ptr + i, mask=i < N, other=0.0)
    lo, hi = libdevice.sub_rd(x, r), libdevice.add_ru(x, r)
    for _ in tl.static_range(3):
        a, b = libdevice.mul_rd(lo, lo), libdevice.mul_rd(lo, hi)
        c, d = libdevice.mul_ru(hi, hi), libdevice.mul_ru(lo, hi)
        e, f = libdevice.mul_ru(lo, lo), libdevice.mul_rd(hi, hi)
        low = tl.minimum(tl.minimum(a, b), f)
        lo, hi = libdevice.fma_rd(low, tl.full((BLOCK,), 0.5, tl.float32), lo), libdevice.fma_ru(tl.maximum(tl.maximum(c, d), e), tl.full((BLOCK,), 0.5, tl.float32), hi)
    tl.store(lo_ptr + i, lo, mask=i < N)
    tl.store(hi_ptr + i, hi, mask=i < N)


@case
def intervals_of_floats_rounded_outward():
    n = 6_000_000
    x, r, lo, hi = f32(n) / 4, uniform(n) / 1000, zeros(n, dtype="float32"), zeros(n, dtype="float32")
    return run(next_float_bounds, (cdiv(n, 512),), (x, r, lo, hi, n), (lo, hi), BLOCK=512)


@triton.jit
def six_bit_floats(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    # Floats of six bits, three of them exponent: four of a group joined to a word of 24 bits and stored as three bytes.
    t = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)[:, None]
    j = tl.arange(0, 4)[None, :]
    x = tl.load(x_ptr + t * 4 + j, mask=t * 4 < N, other=0.0)
    a = tl.minimum(tl.abs(x), 28.0)
    bits = a.to(tl.int32, bitcast=True)
    exponent = tl.maximum((bits >> 23) - 127, -2)
    step = ((exponent - 2 + 127) << 23).to(tl.float32, bitcast=True)
    count = libdevice.rint(a / step).to(tl.int32)
    code = tl.minimum(count + ((exponent + 2) << 2), 31)
    code = code | tl.where(x < 0, 32, 0)
    word = tl.sum(code << (6 * j), 1)
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    for k in tl.static_range(3):
        tl.store(out_ptr + 3 * at + k, ((word >> (8 * k)) & 255).to(tl.uint8), mask=at * 4 < N)


@case
def floats_to_six_bits_four_in_three_bytes():
    n = 16_000_000
    x, out = rand(n, dtype="bfloat16").float() * 4, zeros(n // 4 * 3, dtype="uint8")
    return run(six_bit_floats, (cdiv(n // 4, 256),), (x, out, n), out, BLOCK=256, num_warps=4)


@triton.jit
def words_reversed(x_ptr, y_ptr, z_ptr, N, BLOCK: tl.constexpr):
    # Bits reversed, bytes swapped by an instruction written inline, and ones counted, of words and of long ones.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < N, other=0)
    reversed_bits = libdevice.brev(x)
    swapped = tl.inline_asm_elementwise("prmt.b32 $0, $1, 0, 0x0123;", "=r,r", [reversed_bits], dtype=tl.int32, is_pure=True, pack=1)
    wide = (x.to(tl.int64) << 32) | (swapped.to(tl.int64) & 0xFFFFFFFF)
    tl.store(y_ptr + i, swapped, mask=i < N)
    tl.store(z_ptr + i, (libdevice.popc(wide) * 64 + libdevice.clz(wide)).to(tl.int16), mask=i < N)


@case
def bits_reversed_within_bytes_and_counted():
    n = 10_000_003
    x, y, z = ints(-(2**31), 2**31 - 1, n), zeros(n, dtype="int32"), zeros(n, dtype="int16")
    return run(words_reversed, (cdiv(n, 1024),), (x, y, z, n), (y, z), BLOCK=1024)


@triton.jit
def eight_bit_sums(x_ptr, w_ptr, y_ptr, total_ptr, R, C, BR: tl.constexpr, BC: tl.constexpr):
    # Rows of e4m3 weighted and summed to e5m2; a total in double by atomics.
    r = tl.program_id(0) * BR + tl.arange(0, BR)
    acc = tl.zeros((BR, BC), tl.float32)
    for c0 in tl.range(0, C, BC, flatten=True):
        c = c0 + tl.arange(0, BC)
        x = tl.load(x_ptr + r[:, None] * C + c[None, :], mask=(r < R)[:, None] & (c < C)[None, :], other=0.0)
        w = tl.load(w_ptr + c, mask=c < C, other=0.0)
        acc += x.to(tl.float32) * w.to(tl.float32)[None, :]
    s = tl.sum(acc, 1)
    tl.store(y_ptr + r, s.to(tl.float8e5), mask=r < R)
    tl.atomic_add(total_ptr, tl.sum(tl.where(r < R, s * s, 0.0).to(tl.float64), 0), sem="relaxed")


@case
def rows_of_e4m3_weighted_to_e5m2_with_a_total_in_double():
    r, c = 30_000, 1500
    x, w, y, total = f8(r, c), rand(c), zeros(r).to(torch.float8_e5m2), zeros(1, dtype="float64")
    launched = run(eight_bit_sums, (cdiv(r, 16),), (x, w, y, total, r, c), (y, total), BR=16, BC=128)
    return viewed(cleared(launched, total), lambda outs: (far8(outs[0]), outs[1]))


@triton.jit
def table_of_16(x_ptr, t_ptr, y_ptr, N, BLOCK: tl.constexpr):
    # Two codes in a byte looked up in a table of 16 that lies in registers; both are put side by side.
    b = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    table = tl.load(t_ptr + tl.arange(0, 16))
    code = tl.load(x_ptr + b, mask=b < N, other=0).to(tl.int32)
    low, high = tl.gather(table, code & 15, 0), tl.gather(table, code >> 4, 0)
    i = tl.program_id(0) * (2 * BLOCK) + tl.arange(0, 2 * BLOCK)
    tl.store(y_ptr + i, tl.interleave(low, high), mask=i < 2 * N)


@case
def nibbles_looked_up_in_registers_and_interleaved():
    n = 12_000_000
    x, t, y = ints(0, 256, n, dtype="uint8"), f32(16), zeros(2 * n, dtype="float32")
    launched = run(table_of_16, (cdiv(n, 1024),), (x, t, y, n), y, BLOCK=1024)
    return against(launched, lambda: t[torch.stack([x & 15, x >> 4], 1).long()].view(-1))


@triton.jit
def logarithmic_product(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr):
    # Bytes are signs and logarithms: products are sums of bytes, and powers of two are made from bits.
    m, n = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(K):
        a = tl.load(a_ptr + k * M + m, mask=m < M, other=0).to(tl.int32)
        b = tl.load(b_ptr + k * N + n, mask=n < N, other=0).to(tl.int32)
        e = (a & 127)[:, None] + (b & 127)[None, :]
        sign = (a[:, None] ^ b[None, :]) >> 7
        value = ((e + 127 - 64) << 23) | (sign << 31)
        acc += value.to(tl.float32, bitcast=True)
    tl.store(c_ptr + m[:, None] * N + n[None, :], acc, mask=(m < M)[:, None] & (n < N)[None, :])


@case
def product_of_bytes_that_are_logarithms():
    m, n, k = 500, 900, 128
    a, b = (ints(28, 36, k, s) + 128 * ints(0, 2, k, s) for s in (m, n))
    a, b, c = a.to(torch.uint8), b.to(torch.uint8), zeros(m, n, dtype="float32")
    launched = run(logarithmic_product, (cdiv(m, 32), cdiv(n, 64)), (a, b, c, m, n, k), c, BM=32, BN=64, num_warps=4)

    def reference():
        x, y = (2.0 ** ((v & 127).double() - 32) * torch.where(v > 127, -1, 1) for v in (a, b))
        return x.t() @ y

    return against(launched, reference)
