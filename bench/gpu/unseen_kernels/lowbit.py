"""Numbers of few bits: packing, unpacking, products of them, their scales, and optimizers that keep them."""

import torch
import triton
import triton.language as tl

from .common import arange, case, cdiv, f8, f32, far, far8, ints, rand, run, uniform, viewed, zeros

NF4 = (-1.0, -0.6962, -0.5251, -0.3949, -0.2844, -0.1848, -0.0911, 0.0, 0.0796, 0.1609, 0.2461, 0.3379, 0.4407, 0.5626, 0.7230, 1.0)


def table(values):
    return torch.tensor(values, device="cuda", dtype=torch.float32)


@triton.jit
def gemm_w3(A, W, S, C, M, N, K, BM: tl.constexpr, BN: tl.constexpr):
    # Three bits: 32 weights of a column in three words; a word's boundary may lie in a weight.
    m, n = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, 32)
    bit = k * 3
    lo, shift = bit // 32, (bit % 32).to(tl.int64)
    acc = tl.zeros((BM, BN), tl.float32)
    for g in range(0, K // 32):
        at = W + (g * 3 + lo)[:, None] * N + n[None, :]
        low = tl.load(at).to(tl.int64) & 0xFFFFFFFF
        high = tl.load(at + N, mask=(lo < 2)[:, None], other=0).to(tl.int64) & 0xFFFFFFFF
        q = ((low | (high << 32)) >> shift[:, None]) & 7
        s = tl.load(S + (g // 4) * N + n)
        w = (q.to(tl.float16) - 4.0) * s[None, :]
        a = tl.load(A + m[:, None] * K + (g * 32 + k)[None, :], mask=(m < M)[:, None], other=0.0)
        acc = tl.dot(a, w.to(tl.float16), acc)
    tl.store(C + m[:, None] * N + n[None, :], acc.to(tl.float16), mask=(m < M)[:, None])


@case
def gemm_three_bits_in_words():
    m, n, k = 20, 4096, 4096
    c = zeros(m, n)
    args = rand(m, k), ints(-(2**31), 2**31, k // 32 * 3, n), rand(k // 128, n) * 0.1, c, m, n, k
    return run(gemm_w3, (1, n // 64), args, c, BM=32, BN=64, num_warps=4, num_stages=3)


@triton.jit
def gemm_w4_joined(A, W, S, Z, C, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr):
    # Two nibbles of a byte become neighbors along K by a join; zero points are packed too.
    m, n = tl.program_id(1) * BM + tl.arange(0, BM), tl.program_id(0) * BN + tl.arange(0, BN)
    k, kb = tl.arange(0, BK), tl.arange(0, BK // 2)
    acc = tl.zeros((BM, BN), tl.float32)
    for k0 in range(0, K, BK):
        a = tl.load(A + m[:, None] * K + (k0 + k)[None, :], mask=(m < M)[:, None], other=0.0)
        b = tl.load(W + n[:, None] * (K // 2) + (k0 // 2 + kb)[None, :])
        g = k0 // GROUP
        s = tl.load(S + g * N + n)
        z = (tl.load(Z + g * (N // 2) + n // 2) >> ((n % 2) * 4)) & 15
        lo, hi = (b & 15).to(tl.int8), (b >> 4).to(tl.int8)
        q = tl.reshape(tl.join(lo, hi), (BN, BK)) - z.to(tl.int8)[:, None]
        w = q.to(tl.bfloat16) * s[:, None]
        acc += tl.dot(a, w.to(tl.bfloat16).T)
    tl.store(C + m[:, None] * N + n[None, :], acc.to(tl.bfloat16), mask=(m < M)[:, None])


@case
def gemm_w4_asymmetric_joined():
    m, n, k, group = 100, 4096, 2048, 64
    c = zeros(m, n, dtype="bfloat16")
    w, z = ints(0, 256, n, k // 2, dtype="uint8"), ints(0, 256, k // group, n // 2, dtype="uint8")
    args = rand(m, k, dtype="bfloat16"), w, (uniform(k // group, n) * 0.1).to(torch.bfloat16), z, c, m, n, k
    return run(gemm_w4_joined, (n // 64, cdiv(m, 64)), args, c, BM=64, BN=64, BK=64, GROUP=group, num_warps=4, num_stages=4)


@triton.jit
def gemv_w2_lut(X, W, LUT, Y, K, N, BN: tl.constexpr, BK: tl.constexpr):
    # Two bits choose from four values of the row.
    n = tl.program_id(0) * BN + tl.arange(0, BN)
    kb, s = tl.arange(0, BK // 4), tl.arange(0, 4)
    l0, l1, l2, l3 = tl.load(LUT + n * 4), tl.load(LUT + n * 4 + 1), tl.load(LUT + n * 4 + 2), tl.load(LUT + n * 4 + 3)
    acc = tl.zeros((BN,), tl.float32)
    for k0 in range(0, K, BK):
        b = tl.load(W + n[:, None] * (K // 4) + (k0 // 4 + kb)[None, :], mask=(n < N)[:, None], other=0)
        q = (b[:, :, None] >> (s * 2)[None, None, :].to(tl.uint8)) & 3
        x = tl.load(X + k0 + kb[:, None] * 4 + s[None, :]).to(tl.float32)
        low = tl.where(q == 0, l0[:, None, None], l1[:, None, None])
        high = tl.where(q == 2, l2[:, None, None], l3[:, None, None])
        w = tl.where(q < 2, low, high).to(tl.float32)
        acc += tl.sum(tl.sum(w * x[None, :, :], 2), 1)
    tl.store(Y + n, acc.to(tl.float16), mask=n < N)


@case
def gemv_two_bits_of_row_tables():
    k, n = 8192, 8190
    y = zeros(n)
    args = rand(k), ints(0, 256, n, k // 4, dtype="uint8"), rand(n, 4), y, k, n
    return run(gemv_w2_lut, (cdiv(n, 8),), args, y, BN=8, BK=512, num_warps=4)


@triton.jit
def dequant_fp4_table(W, S, TABLE, Y, n, GROUP: tl.constexpr, BLOCK: tl.constexpr):
    # E2M1 by a table of 16 in memory; scales are E8M0 bytes.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    b = tl.load(W + i, mask=mask, other=0)
    e = tl.load(S + i * 2 // GROUP, mask=mask, other=127).to(tl.int32)
    scale = (e << 23).to(tl.float32, bitcast=True)
    lo = tl.load(TABLE + (b & 15).to(tl.int32)) * scale
    hi = tl.load(TABLE + (b >> 4).to(tl.int32)) * scale
    y = tl.interleave(lo, hi)
    j = tl.program_id(0) * BLOCK * 2 + tl.arange(0, 2 * BLOCK)
    tl.store(Y + j, y.to(tl.bfloat16), mask=j < 2 * n)


@case
def dequant_mxfp4_by_table():
    n = 16 << 20
    y = zeros(2 * n, dtype="bfloat16")
    half = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
    args = ints(0, 256, n, dtype="uint8"), ints(120, 134, n // 16, dtype="uint8"), table(half + tuple(-v for v in half)), y, n
    return run(dequant_fp4_table, (cdiv(n, 1024),), args, y, GROUP=32, BLOCK=1024, num_warps=4)


@triton.jit
def mxfp8_quantize(X, Q, S, M, N, BM: tl.constexpr, BN: tl.constexpr):
    # A shared exponent for each 32 along the row, rounded up, and E4M3 values.
    m, n = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    mask = (m < M)[:, None] & (n < N)[None, :]
    x = tl.load(X + m[:, None] * N + n[None, :], mask=mask, other=0.0).to(tl.float32)
    x = tl.reshape(x, (BM, BN // 32, 32))
    top = tl.max(tl.abs(x), 2, keep_dims=True)
    bits = (top * (1.0 / 448.0)).to(tl.uint32, bitcast=True)
    e = (bits + 0x7FFFFF) >> 23
    e = tl.minimum(tl.maximum(e, 1), 254)
    inv = ((254 - e) << 23).to(tl.float32, bitcast=True)
    q = tl.reshape(x * inv, (BM, BN)).to(tl.float8e4nv)
    tl.store(Q + m[:, None] * N + n[None, :], q, mask=mask)
    g = tl.program_id(1) * (BN // 32) + tl.arange(0, BN // 32)
    mask = (m < M)[:, None] & (g < N // 32)[None, :]
    tl.store(S + m[:, None] * (N // 32) + g[None, :], tl.reshape(e, (BM, BN // 32)).to(tl.uint8), mask=mask)


@case
def quant_mxfp8_rows():
    m, n = 5000, 4096
    q, s = torch.zeros(m, n, device="cuda", dtype=torch.float8_e4m3fn), zeros(m, n // 32, dtype="uint8")
    launched = run(mxfp8_quantize, (cdiv(m, 16), n // 128), (rand(m, n, dtype="bfloat16"), q, s, m, n), (q, s), BM=16, BN=128, num_warps=4)
    return viewed(launched, lambda outs: (far8(outs[0]), far(outs[1])))


@triton.jit
def gemm_fp8_blocks(A, B, SA, SB, C, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Scales of 1x128 for A and of 128x128 for B, applied after each step.
    pid = tl.program_id(0)
    cols = tl.cdiv(N, BN)
    pm, pn = pid // cols, pid % cols
    m, n, k = (pm * BM + tl.arange(0, BM)) % M, (pn * BN + tl.arange(0, BN)) % N, tl.arange(0, BK)
    pa, pb = A + m[:, None] * K + k[None, :], B + n[None, :] * K + k[:, None]
    acc = tl.zeros((BM, BN), tl.float32)
    steps = tl.cdiv(K, BK)
    for step in range(steps):
        a = tl.load(pa, mask=(k < K - step * BK)[None, :], other=0.0)
        b = tl.load(pb, mask=(k < K - step * BK)[:, None], other=0.0)
        sa, sb = tl.load(SA + m * steps + step), tl.load(SB + n // 128 * steps + step)
        acc += tl.dot(a, b) * sa[:, None] * sb[None, :]
        pa += BK
        pb += BK
    m, n = pm * BM + tl.arange(0, BM), pn * BN + tl.arange(0, BN)
    tl.store(C + m[:, None] * N + n[None, :], acc.to(C.dtype.element_ty), mask=(m < M)[:, None] & (n < N)[None, :])


@case
def gemm_fp8_block_scales():
    m, n, k = 1000, 2112, 4096
    c = zeros(m, n, dtype="bfloat16")
    args = f8(m, k), f8(n, k), uniform(m, k // 128), uniform(cdiv(n, 128), k // 128), c, m, n, k
    return run(gemm_fp8_blocks, (cdiv(m, 64) * cdiv(n, 128),), args, c, BM=64, BN=128, BK=128, num_warps=4, num_stages=3)


@triton.jit
def gemm_i8_tokens_channels(A, B, SA, ZA, SB, CS, BIAS, C, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Bytes with a zero point for each token: the columns' sums correct the product.
    m, n, k = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.int32)
    for k0 in tl.range(0, K, BK, num_stages=4):
        a = tl.load(A + m[:, None] * K + (k0 + k)[None, :], mask=(m < M)[:, None] & (k0 + k < K)[None, :], other=0)
        b = tl.load(B + n[None, :] * K + (k0 + k)[:, None], mask=(n < N)[None, :] & (k0 + k < K)[:, None], other=0)
        acc = tl.dot(a, b, acc, out_dtype=tl.int32)
    sa, za = tl.load(SA + m, mask=m < M, other=0.0), tl.load(ZA + m, mask=m < M, other=0)
    sb, cs = tl.load(SB + n, mask=n < N, other=0.0), tl.load(CS + n, mask=n < N, other=0)
    out = (acc - za[:, None] * cs[None, :]).to(tl.float32) * sa[:, None] * sb[None, :]
    out += tl.load(BIAS + n, mask=n < N, other=0.0)[None, :]
    tl.store(C + m[:, None] * N + n[None, :], out.to(tl.bfloat16), mask=(m < M)[:, None] & (n < N)[None, :])


@case
def gemm_int8_token_zero_points():
    m, n, k = 777, 3000, 2048
    c = zeros(m, n, dtype="bfloat16")
    b = ints(-127, 128, n, k, dtype="int8")
    args = ints(-128, 128, m, k, dtype="int8"), b, uniform(m) * 0.02, ints(-20, 20, m), uniform(n) * 0.02, b.int().sum(1).int()
    args += rand(n, dtype="bfloat16"), c, m, n, k
    return run(gemm_i8_tokens_channels, (cdiv(m, 64), cdiv(n, 128)), args, c, BM=64, BN=128, BK=64, num_warps=4)


@triton.jit
def bitnet_gemm(X, W, SW, Y, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # 1.58 bits: five trits in a byte by division; rows of X are quantized on the way.
    m, n = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    top = tl.zeros((BM,), tl.float32)
    for k0 in range(0, K, BK):
        x = tl.load(X + m[:, None] * K + (k0 + k)[None, :], mask=(m < M)[:, None], other=0.0)
        top = tl.maximum(top, tl.max(tl.abs(x.to(tl.float32)), 1))
    s = 127.0 / tl.maximum(top, 1e-5)
    acc = tl.zeros((BM, BN), tl.int32)
    for k0 in range(0, K, BK):
        x = tl.load(X + m[:, None] * K + (k0 + k)[None, :], mask=(m < M)[:, None], other=0.0).to(tl.float32)
        xq = tl.floor(x * s[:, None] + 0.5).to(tl.int8)
        kk = k0 + k
        byte = tl.load(W + (kk // 5)[:, None] * N + n[None, :]).to(tl.int32)
        place = kk % 5
        power = tl.where(place == 0, 1, tl.where(place == 1, 3, tl.where(place == 2, 9, tl.where(place == 3, 27, 81))))
        w = (byte // power[:, None]) % 3 - 1
        acc += tl.dot(xq, w.to(tl.int8))
    y = acc.to(tl.float32) / s[:, None] * tl.load(SW)
    tl.store(Y + m[:, None] * N + n[None, :], y.to(tl.float16), mask=(m < M)[:, None])


@case
def gemm_five_trits_in_a_byte():
    m, n, k = 50, 4096, 2560
    y = zeros(m, n)
    args = rand(m, k), ints(0, 243, k // 5, n, dtype="uint8"), table([0.02]), y, m, n, k
    return run(bitnet_gemm, (cdiv(m, 64), n // 64), args, y, BM=64, BN=64, BK=64, num_warps=4, num_stages=2)


@triton.jit
def product_quantized_scores(LUT, CODES, OUT, N, SUB: tl.constexpr, BLOCK: tl.constexpr):
    # Distances to coded vectors: for each of SUB parts a byte chooses from a table of the query.
    q = tl.program_id(1)
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), tl.float32)
    for s in tl.static_range(SUB):
        code = tl.load(CODES + s * N + i, mask=i < N, other=0).to(tl.int32)
        acc += tl.load(LUT + (q * SUB + s) * 256 + code).to(tl.float32)
    tl.store(OUT + q * N + i, acc, mask=i < N)


@case
def product_quantization_lookups():
    n, queries, sub = 300000, 8, 16
    out = zeros(queries, n, dtype="float32")
    args = uniform(queries, sub, 256).half(), ints(0, 256, sub, n, dtype="uint8"), out, n
    return run(product_quantized_scores, (cdiv(n, 512), queries), args, out, SUB=sub, BLOCK=512, num_warps=4)


@triton.jit
def group_quant_u4(X, Q, S, Z, GROUPS, G: tl.constexpr, BG: tl.constexpr):
    # Asymmetric: minimum and maximum of a group, two codes in a byte by a split.
    g, e = tl.program_id(0) * BG + tl.arange(0, BG), tl.arange(0, G)
    live = g < GROUPS
    x = tl.load(X + g[:, None] * G + e[None, :], mask=live[:, None], other=0.0).to(tl.float32)
    lo, hi = tl.minimum(tl.min(x, 1), 0.0), tl.maximum(tl.max(x, 1), 0.0)
    scale = tl.maximum((hi - lo) / 15.0, 1e-8)
    zero = tl.floor(-lo / scale + 0.5)
    q = tl.floor(x / scale[:, None] + 0.5) + zero[:, None]
    q = tl.minimum(tl.maximum(q, 0.0), 15.0).to(tl.uint8)
    low, high = tl.split(tl.reshape(q, (BG, G // 2, 2)))
    b = tl.arange(0, G // 2)
    tl.store(Q + g[:, None] * (G // 2) + b[None, :], low | (high << 4), mask=live[:, None])
    tl.store(S + g, scale.to(tl.float16), mask=live)
    tl.store(Z + g, zero.to(tl.uint8), mask=live)


def nibbles(q):
    return far(q & 15), far(q >> 4)


@case
def quant_u4_groups_of_64():
    groups, g = 400000, 64
    q, s, z = zeros(groups, g // 2, dtype="uint8"), zeros(groups), zeros(groups, dtype="uint8")
    launched = run(group_quant_u4, (cdiv(groups, 32),), (rand(groups, g), q, s, z, groups), (q, s, z), G=g, BG=32, num_warps=4)
    return viewed(launched, lambda outs: (*nibbles(outs[0]), outs[1], far(outs[2])))


@triton.jit
def nf4_tree(Q, ABS, Y, n, GROUP: tl.constexpr, BLOCK: tl.constexpr):
    # The table as a tree of comparisons of bits.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    q = tl.load(Q + i // 2, mask=i < n, other=0).to(tl.int32)
    q = tl.where(i % 2 == 0, q >> 4, q & 15)
    a = tl.where(q & 1, tl.where(q & 2, -0.3949, -0.6962), tl.where(q & 2, -0.5251, -1.0))
    b = tl.where(q & 1, tl.where(q & 2, 0.0, -0.1848), tl.where(q & 2, -0.0911, -0.2844))
    c = tl.where(q & 1, tl.where(q & 2, 0.3379, 0.1609), tl.where(q & 2, 0.2461, 0.0796))
    d = tl.where(q & 1, tl.where(q & 2, 1.0, 0.5626), tl.where(q & 2, 0.7230, 0.4407))
    v = tl.where(q & 8, tl.where(q & 4, d, c), tl.where(q & 4, b, a))
    s = tl.load(ABS + i // GROUP, mask=i < n, other=0.0)
    tl.store(Y + i, (v * s).to(tl.float16), mask=i < n)


@case
def dequant_nf4_by_selects():
    n = 20000000
    y = zeros(n)
    args = ints(0, 256, n // 2, dtype="uint8"), uniform(cdiv(n, 64)), y, n
    return run(nf4_tree, (cdiv(n, 1024),), args, y, GROUP=64, BLOCK=1024, num_warps=4)


@triton.jit
def nf4_gemv(X, W, ABS, TABLE, Y, K, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr):
    # A product with NF4 weights: the table in registers, chosen from by a gather.
    n = tl.program_id(0) * BN + tl.arange(0, BN)
    kb = tl.arange(0, BK // 2)
    levels = tl.broadcast_to(tl.load(TABLE + tl.arange(0, 16))[None, :], (BN, 16))
    acc = tl.zeros((BN,), tl.float32)
    for k0 in range(0, K, BK):
        b = tl.load(W + n[:, None] * (K // 2) + (k0 // 2 + kb)[None, :]).to(tl.int32)
        s = tl.load(ABS + n[:, None] * (K // GROUP) + ((k0 + kb * 2) // GROUP)[None, :])
        even, odd = tl.load(X + k0 + kb * 2).to(tl.float32), tl.load(X + k0 + kb * 2 + 1).to(tl.float32)
        hi, lo = tl.gather(levels, b >> 4, 1), tl.gather(levels, b & 15, 1)
        acc += tl.sum((hi * even[None, :] + lo * odd[None, :]) * s, 1)
    tl.store(Y + n, acc)


@case
def gemv_nf4_gathered_levels():
    n, k = 4096, 4096
    y = zeros(n, dtype="float32")
    args = rand(k, dtype="bfloat16"), ints(0, 256, n, k // 2, dtype="uint8"), uniform(n, k // 64), table(NF4), y, k
    return run(nf4_gemv, (n // 16,), args, y, BN=16, BK=256, GROUP=64, num_warps=4)


@triton.jit
def stochastic_bf16(P, G, OUT, lr, seed, n, BLOCK: tl.constexpr):
    # A step of SGD on bfloat16 weights, rounded by random bits.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    p = tl.load(P + i, mask=i < n, other=0.0).to(tl.float32) - lr * tl.load(G + i, mask=i < n, other=0.0).to(tl.float32)
    r = tl.randint(seed, i).to(tl.uint32, bitcast=True) & 0xFFFF
    bits = (p.to(tl.uint32, bitcast=True) + r) & 0xFFFF0000
    tl.store(OUT + i, bits.to(tl.float32, bitcast=True).to(tl.bfloat16), mask=i < n)


@case
def sgd_bf16_stochastic_rounding():
    n = 12345678
    out = zeros(n, dtype="bfloat16")
    args = rand(n, dtype="bfloat16"), rand(n, dtype="bfloat16"), out, 0.01, 77, n
    return run(stochastic_bf16, (cdiv(n, 1024),), args, out, BLOCK=1024, num_warps=4)


@triton.jit
def hadamard_quant(X, Q, S, M, scale, D: tl.constexpr, LOG: tl.constexpr, BM: tl.constexpr):
    # Butterflies by reshapes and splits, then bytes.
    m, d = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, D)
    x = tl.load(X + m[:, None] * D + d[None, :], mask=(m < M)[:, None], other=0.0).to(tl.float32)
    for _ in tl.static_range(LOG):
        a, b = tl.split(tl.reshape(x, (BM, D // 2, 2)))
        x = tl.reshape(tl.permute(tl.join(a + b, a - b), (0, 2, 1)), (BM, D))
    x *= scale
    s = tl.maximum(tl.max(tl.abs(x), 1) / 127.0, 1e-8)
    q = tl.extra.cuda.libdevice.rint(x / s[:, None])
    tl.store(Q + m[:, None] * D + d[None, :], q.to(tl.int8), mask=(m < M)[:, None])
    tl.store(S + m, s, mask=m < M)


@case
def hadamard_128_to_int8():
    m, d = 60000, 128
    q, s = zeros(m, d, dtype="int8"), zeros(m, dtype="float32")
    launched = run(hadamard_quant, (cdiv(m, 16),), (rand(m, d), q, s, m, d**-0.5), (q, s), D=d, LOG=7, BM=16, num_warps=4)
    return viewed(launched, lambda outs: (far(outs[0]), outs[1]))


@triton.jit
def cache_int4(K, V, SLOTS, CACHE, SCALES, stride_t, H, D: tl.constexpr, GROUPS: tl.constexpr):
    # Keys and values of a token to nibbles: groups of a head's channels have scale and offset in one word of two halves.
    t, h, which = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    slot = tl.load(SLOTS + t)
    if slot < 0:
        return
    d = tl.arange(0, D)
    src = K if which == 0 else V
    x = tl.load(src + t * stride_t + h * D + d).to(tl.float32)
    x = tl.reshape(x, (GROUPS, D // GROUPS))
    lo, hi = tl.min(x, 1), tl.max(x, 1)
    s = (hi - lo) / 15.0 + 1e-6
    q = ((x - lo[:, None]) / s[:, None] + 0.5).to(tl.int32)
    q = tl.minimum(q, 15)
    q = tl.reshape(q, (D // 2, 2))
    a, b = tl.split(q)
    row = (slot * H + h) * 2 + which
    tl.store(CACHE + row * (D // 2) + tl.arange(0, D // 2), (a | (b << 4)).to(tl.uint8))
    half = s.to(tl.float16).to(tl.uint16, bitcast=True).to(tl.uint32)
    offset = lo.to(tl.float16).to(tl.uint16, bitcast=True).to(tl.uint32)
    tl.store(SCALES + row * GROUPS + tl.arange(0, GROUPS), (half | (offset << 16)).to(tl.int32, bitcast=True))


@case
def cache_write_int4_groups():
    t, h, d, slots = 4096, 8, 128, 8192
    cache, scales = zeros(slots, h, 2, d // 2, dtype="uint8"), zeros(slots, h, 2, 4, dtype="int32")
    where = torch.where(arange(t) % 9 == 4, -1, arange(t) * 2).to(torch.int64)
    args = rand(t, h, d), rand(t, h, d), where, cache, scales, h * d, h
    launched = run(cache_int4, (t, h, 2), args, (cache, scales), D=d, GROUPS=4, num_warps=1)
    return viewed(launched, lambda outs: (*nibbles(outs[0]), outs[1].view(torch.float16)))


@triton.jit
def cache_int8_attention(Q, KC, KS, VC, VS, LEN, OUT, T, scale, D: tl.constexpr, BN: tl.constexpr, G: tl.constexpr):
    # One token's queries of a group against a cache of bytes; a dot of 16 rows of which G count.
    b, h = tl.program_id(0), tl.program_id(1)
    heads = tl.num_programs(1)
    d, g = tl.arange(0, D), tl.arange(0, 16)
    q = tl.load(Q + ((b * heads + h) * G + g)[:, None] * D + d[None, :], mask=(g < G)[:, None], other=0.0)
    length = tl.load(LEN + b)
    m, l = tl.full((16,), -1e30, tl.float32), tl.zeros((16,), tl.float32)
    acc = tl.zeros((16, D), tl.float32)
    for n0 in range(0, length, BN):
        n = n0 + tl.arange(0, BN)
        at = (b * heads + h) * T + n
        k = tl.load(KC + at[None, :] * D + d[:, None], mask=(n < length)[None, :], other=0).to(tl.float16)
        ks = tl.load(KS + at, mask=n < length, other=0.0)
        s = tl.dot(q, k) * (ks * scale)[None, :]
        s = tl.where((n < length)[None, :], s, -1e30)
        new = tl.maximum(m, tl.max(s, 1))
        p = tl.exp(s - new[:, None])
        alpha = tl.exp(m - new)
        l = l * alpha + tl.sum(p, 1)
        v = tl.load(VC + at[:, None] * D + d[None, :], mask=(n < length)[:, None], other=0).to(tl.float16)
        vs = tl.load(VS + at, mask=n < length, other=0.0)
        acc = acc * alpha[:, None] + tl.dot((p * vs[None, :]).to(tl.float16), v)
        m = new
    tl.store(OUT + ((b * heads + h) * G + g)[:, None] * D + d[None, :], acc / l[:, None], mask=(g < G)[:, None])


@case
def attn_decode_int8_cache():
    b, h, g, t, d = 32, 8, 4, 2048, 128
    out = zeros(b, h * g, d, dtype="float32")
    cache = lambda: (ints(-127, 128, b, h, t, d, dtype="int8"), uniform(b, h, t) * 0.02)
    args = rand(b, h * g, d), *cache(), *cache(), ints(500, t + 1, b), out, t, d**-0.5
    return run(cache_int8_attention, (b, h), args, out, D=d, BN=64, G=g, num_warps=4, num_stages=3)


@triton.jit
def adam_8bit_linear(P, G, M8, V8, MS, VS, PO, MO, VO, MSO, VSO, lr, b1, b2, eps, decay, n, BLOCK: tl.constexpr):
    # Moments as bytes with the largest magnitude of the block; the second's root is kept.
    pid = tl.program_id(0)
    i = pid * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    p, g = tl.load(P + i, mask=mask, other=0.0), tl.load(G + i, mask=mask, other=0.0).to(tl.float32)
    m = tl.load(M8 + i, mask=mask, other=0).to(tl.float32) * (tl.load(MS + pid) / 127.0)
    v = tl.load(V8 + i, mask=mask, other=0).to(tl.float32) * (tl.load(VS + pid) / 255.0)
    m = b1 * m + (1.0 - b1) * g
    r = tl.sqrt(b2 * v * v + (1.0 - b2) * g * g)
    tl.store(PO + i, p - lr * (m / (r + eps) + decay * p), mask=mask)
    ms, vs = tl.max(tl.abs(m)), tl.max(r)
    tl.store(MO + i, tl.floor(m / tl.maximum(ms, 1e-12) * 127.0 + 0.5).to(tl.int8), mask=mask)
    tl.store(VO + i, (r / tl.maximum(vs, 1e-12) * 255.0 + 0.5).to(tl.uint8), mask=mask)
    tl.store(MSO + pid, ms)
    tl.store(VSO + pid, vs)


@case
def adam_8bit_linear_blocks():
    n, block = 10000001, 256
    blocks = cdiv(n, block)
    po, mo, vo = zeros(n, dtype="float32"), zeros(n, dtype="int8"), zeros(n, dtype="uint8")
    mso, vso = zeros(blocks, dtype="float32"), zeros(blocks, dtype="float32")
    args = f32(n), rand(n, dtype="bfloat16"), ints(-127, 128, n, dtype="int8"), ints(0, 256, n, dtype="uint8")
    args += uniform(blocks), uniform(blocks), po, mo, vo, mso, vso, 1e-3, 0.9, 0.99, 1e-6, 0.01, n
    launched = run(adam_8bit_linear, (blocks,), args, (po, mo, vo, mso, vso), BLOCK=block, num_warps=2)
    return viewed(launched, lambda outs: (outs[0], far(outs[1]), far(outs[2]), outs[3], outs[4]))


@triton.jit
def compress_nonzeros(X, MASKS, VALUES, COUNTS, N, BLOCK: tl.constexpr):
    # A bit for each element, and the nonzero ones side by side.
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    x = tl.load(X + row * N + i, mask=i < N, other=0.0)
    on = (x != 0.0).to(tl.int32)
    bits = tl.reshape(on, (BLOCK // 32, 32)) << tl.arange(0, 32)[None, :]
    word = tl.reduce(bits, 1, _bit_or)
    tl.store(MASKS + row * (BLOCK // 32) + tl.arange(0, BLOCK // 32), word)
    at = tl.cumsum(on, 0) - on
    tl.store(VALUES + row * N + at, x, mask=on != 0)
    tl.store(COUNTS + row, tl.sum(on))


@triton.jit
def _bit_or(a, b):
    return a | b


@case
def compress_by_bit_masks():
    m, n, block = 8000, 1000, 1024
    masks, values, counts = zeros(m, block // 32, dtype="int32"), zeros(m, n), zeros(m, dtype="int32")
    x = torch.relu(rand(m, n))
    return run(compress_nonzeros, (m,), (x, masks, values, counts, n), (masks, values, counts), BLOCK=block, num_warps=4)


@triton.jit
def expand_masked(MASKS, STARTS, VALUES, Y, N, BLOCK: tl.constexpr):
    # The way back: a word's ones before an element are counted from a scan of words and of bits.
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    word = tl.load(MASKS + row * (BLOCK // 32) + i // 32)
    on = (word >> (i % 32)) & 1
    at = tl.load(STARTS + row) + tl.cumsum(on, 0) - 1
    v = tl.load(VALUES + at, mask=on != 0, other=0.0)
    tl.store(Y + row * N + i, v, mask=i < N)


@case
def expand_from_bit_masks():
    m, n = 8000, 2048
    y = zeros(m, n, dtype="bfloat16")
    args = ints(-(2**31), 2**31, m, n // 32), (arange(m, "int64") * n), rand(m * n, dtype="bfloat16"), y, n
    return run(expand_masked, (m,), args, y, BLOCK=n, num_warps=8)


@triton.jit
def dequant_rope(Q, S, COS, SIN, Y, T, H, D: tl.constexpr, BT: tl.constexpr):
    # Bytes with a scale for each head become rotated halves.
    t = tl.program_id(0) * BT + tl.arange(0, BT)
    h = tl.program_id(1)
    d = tl.arange(0, D // 2)
    live = (t < T)[:, None]
    at = (t[:, None] * H + h) * D + d[None, :]
    s = tl.load(S + t * H + h, mask=t < T, other=0.0)[:, None]
    a = tl.load(Q + at, mask=live, other=0).to(tl.float32) * s
    b = tl.load(Q + at + D // 2, mask=live, other=0).to(tl.float32) * s
    c = tl.load(COS + t[:, None] * (D // 2) + d[None, :], mask=live, other=0.0)
    n = tl.load(SIN + t[:, None] * (D // 2) + d[None, :], mask=live, other=0.0)
    tl.store(Y + at, (a * c - b * n).to(tl.bfloat16), mask=live)
    tl.store(Y + at + D // 2, (b * c + a * n).to(tl.bfloat16), mask=live)


@case
def dequant_int8_and_rotate():
    t, h, d = 5000, 32, 128
    y = zeros(t, h, d, dtype="bfloat16")
    args = ints(-127, 128, t, h, d, dtype="int8"), uniform(t, h), f32(t, d // 2), f32(t, d // 2), y, t, h
    return run(dequant_rope, (cdiv(t, 8), h), args, y, D=d, BT=8, num_warps=2)
