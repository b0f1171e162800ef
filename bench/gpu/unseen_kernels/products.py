"""Products of matrices, of vectors with matrices, and convolutions."""

import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

from .common import PROGRAMS, arange, case, cdiv, f8, f32, full, ints, rand, run, uniform, zeros


@triton.jit
def _gelu_tanh(x):
    z = 0.7978845608 * (x + 0.044715 * x * x * x)
    return 0.5 * x * (1 + (1 - 2 / (tl.exp(2 * z) + 1)))


@triton.jit
def tall_gelu_residual(A, W, bias, R, C, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    pid = tl.program_id(0)
    rm = pid * BM + tl.arange(0, BM)
    rn = tl.arange(0, BN)
    rk = tl.arange(0, BK)
    a = A + rm[:, None] * K + rk[None, :]
    w = W + rk[:, None] * N + rn[None, :]
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        acc = tl.dot(tl.load(a, mask=rm[:, None] < M, other=0.0), tl.load(w), acc)
        a += BK
        w += BK * N
    acc += tl.load(bias + rn)[None, :].to(tl.float32)
    r = tl.load(R + rm[:, None] * N + rn[None, :], mask=rm[:, None] < M, other=0.0).to(tl.float32)
    tl.store(C + rm[:, None] * N + rn[None, :], (_gelu_tanh(acc) + r).to(C.dtype.element_ty), mask=rm[:, None] < M)


@case
def gemm_tall_gelu_residual():
    m, n, k = 16300, 64, 2048
    c = zeros(m, n, dtype="bfloat16")
    args = (rand(m, k, dtype="bfloat16"), rand(k, n, dtype="bfloat16"), rand(n, dtype="bfloat16"), rand(m, n, dtype="bfloat16"), c, m, n, k)
    return run(tall_gelu_residual, (cdiv(m, 256),), args, c, BM=256, BN=64, BK=64, num_warps=8, num_stages=3)


@triton.jit
def splitk_in_order(A, B, C, turn, M, N, K, SPLIT: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Each split waits until the one before has added its part.
    pid, split = tl.program_id(0), tl.program_id(1)
    tiles_n = tl.cdiv(N, BN)
    rm = (pid // tiles_n) * BM + tl.arange(0, BM)
    rn = (pid % tiles_n) * BN + tl.arange(0, BN)
    rk = split * BK + tl.arange(0, BK)
    a = A + rm[:, None] * K + rk[None, :]
    b = B + rn[None, :] * K + rk[:, None]
    acc = tl.zeros((BM, BN), tl.float32)
    for _ in range(0, K, BK * SPLIT):
        acc += tl.dot(tl.load(a), tl.load(b))
        a += BK * SPLIT
        b += BK * SPLIT
    c = C + rm[:, None] * N + rn[None, :]
    while tl.atomic_add(turn + pid, 0) != split:
        pass
    if split > 0:
        acc += tl.load(c)
    tl.store(c, acc)
    tl.debug_barrier()
    tl.atomic_xchg(turn + pid, (split + 1) % SPLIT)


@case
def gemm_splitk_in_order():
    m, n, k = 256, 512, 16384
    c = zeros(m, n, dtype="float32")
    args = rand(m, k), rand(n, k), c, zeros(1024, dtype="int32"), m, n, k
    return run(splitk_in_order, (m // 64 * (n // 128), 8), args, c, SPLIT=8, BM=64, BN=128, BK=64, num_warps=4, num_stages=4)


@triton.jit
def gathered_rows(A, rows, W, C, n_rows, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    pid_n, pid_m = tl.program_id(0), tl.program_id(1)
    at = pid_m * BM + tl.arange(0, BM)
    row = tl.load(rows + at, mask=at < n_rows, other=0).to(tl.int64)
    rn = pid_n * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in tl.range(0, K, BK, num_stages=3):
        a = tl.load(A + row[:, None] * K + k + rk[None, :])
        w = tl.load(W + (k + rk)[:, None] * N + rn[None, :])
        acc = tl.dot(a, w, acc)
    tl.store(C + row[:, None] * N + rn[None, :], acc.to(tl.float16), mask=(at < n_rows)[:, None])


@case
def gemm_gather_scatter_rows():
    m, picked, n, k = 16384, 3001, 1024, 1024
    c = zeros(m, n)
    rows = (arange(picked) * 5 + 3).int()
    return run(gathered_rows, (n // 128, cdiv(picked, 128)), (rand(m, k), rows, rand(k, n), c, picked, n, k), c, BM=128, BN=128, BK=32, num_warps=8)


@triton.jit
def sampled_scores(X, W, ids, out, S, K, BM: tl.constexpr, BS: tl.constexpr, BK: tl.constexpr):
    # Each token's scores with a sample of rows of a vocabulary's matrix.
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rs = tl.program_id(1) * BS + tl.arange(0, BS)
    row = tl.load(ids + rs)
    acc = tl.zeros((BM, BS), tl.float32)
    for k in range(0, K, BK):
        rk = k + tl.arange(0, BK)
        x = tl.load(X + rm[:, None] * K + rk[None, :])
        w = tl.load(W + row[:, None] * K + rk[None, :])
        acc += tl.dot(x, tl.trans(w))
    tl.store(out + rm[:, None] * S + rs[None, :], acc)


@case
def gemm_gathered_vocabulary():
    m, s, k, v = 2048, 1024, 512, 50257
    out = zeros(m, s, dtype="float32")
    args = rand(m, k, dtype="bfloat16"), rand(v, k, dtype="bfloat16"), ints(0, v, s, dtype="int64"), out, s, k
    return run(sampled_scores, (m // 64, s // 64), args, out, BM=64, BS=64, BK=64, num_warps=4, num_stages=3)


@triton.jit
def small_batches(A, B, C, n, G: tl.constexpr):
    # G products of 16x16 in each program.
    g = tl.program_id(0) * G + tl.arange(0, G)
    i = tl.arange(0, 16)
    at = g[:, None, None] * 256 + i[None, :, None] * 16 + i[None, None, :]
    live = (g < n)[:, None, None]
    a = tl.load(A + at, mask=live, other=0.0)
    b = tl.load(B + at, mask=live, other=0.0)
    tl.store(C + at, tl.dot(a, b).to(tl.float16), mask=live)


@case
def gemm_batches_of_16():
    n = 40000
    c = zeros(n, 16, 16)
    return run(small_batches, (cdiv(n, 8),), (rand(n, 16, 16), rand(n, 16, 16), c, n), c, G=8, num_warps=4)


@triton.jit
def int8_zero_points(A, B, za, zb, sa, sb, C, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    pid = tl.program_id(0)
    tiles = tl.cdiv(M, BM)
    rm = (pid % tiles) * BM + tl.arange(0, BM)
    rn = (pid // tiles) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.int32)
    sum_a = tl.zeros((BM,), tl.int32)
    sum_b = tl.zeros((BN,), tl.int32)
    for k in range(0, K, BK):
        rk = k + tl.arange(0, BK)
        a = tl.load(A + rm[:, None] * K + rk[None, :])
        b = tl.load(B + rn[None, :] * K + rk[:, None])
        acc = tl.dot(a, b, acc, out_dtype=tl.int32)
        sum_a += tl.sum(a.to(tl.int32), 1)
        sum_b += tl.sum(b.to(tl.int32), 0)
    pa, pb = tl.load(za + rm), tl.load(zb + rn)
    acc = acc - sum_a[:, None] * pb[None, :] - pa[:, None] * sum_b[None, :] + K * pa[:, None] * pb[None, :]
    out = acc.to(tl.float32) * tl.load(sa + rm)[:, None] * tl.load(sb + rn)[None, :]
    tl.store(C + rm[:, None] * N + rn[None, :], out.to(C.dtype.element_ty))


@case
def gemm_int8_zero_points():
    m, n, k = 2048, 2048, 2048
    c = zeros(m, n, dtype="bfloat16")
    args = ints(-128, 127, m, k, dtype="int8"), ints(-128, 127, n, k, dtype="int8"), ints(-9, 9, m), ints(-9, 9, n), uniform(m), uniform(n), c, m, n, k
    return run(int8_zero_points, (m // 128 * (n // 128),), args, c, BM=128, BN=128, BK=64, num_warps=8, num_stages=3)


@triton.jit
def w4_awq_order(X, Q, scales, zeros_, Y, M, N, K, GROUP: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Eight columns in a word, in the order 0, 2, 4, 6, 1, 3, 5, 7.
    rm = tl.program_id(1) * BM + tl.arange(0, BM)
    rn = tl.program_id(0) * BN + tl.arange(0, BN)
    rp = tl.program_id(0) * (BN // 8) + tl.arange(0, BN // 8)
    lane = tl.arange(0, 8)
    shift = ((lane // 2) + (lane % 2) * 4) * 4
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        rk = k + tl.arange(0, BK)
        x = tl.load(X + rm[:, None] * K + rk[None, :], mask=rm[:, None] < M, other=0.0)
        q = tl.load(Q + rk[:, None] * (N // 8) + rp[None, :])
        w = ((q[:, :, None] >> shift[None, None, :]) & 15).reshape(BK, BN)
        g = k // GROUP
        z = tl.load(zeros_ + g * (N // 8) + rp)
        z = ((z[:, None] >> shift[None, :]) & 15).reshape(BN)
        s = tl.load(scales + g * N + rn)
        acc = tl.dot(x, (w - z[None, :]).to(tl.float16) * s[None, :], acc)
    tl.store(Y + rm[:, None] * N + rn[None, :], acc.to(tl.float16), mask=rm[:, None] < M)


@case
def gemm_w4_awq_order():
    m, n, k, group = 48, 4096, 4096, 128
    y = zeros(m, n)
    args = rand(m, k), ints(-(2**31), 2**31 - 1, k, n // 8), rand(k // group, n), ints(-(2**31), 2**31 - 1, k // group, n // 8), y, m, n, k
    return run(w4_awq_order, (n // 64, cdiv(m, 16)), args, y, GROUP=group, BM=16, BN=64, BK=64, num_warps=4, num_stages=3)


@triton.jit
def w2_ternary(X, Q, sx, sw, Y, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # BitNet: four weights of {-1, 0, 1} in a byte, a quarter of K apart; activations of int8.
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    quarter = K // 4
    acc = tl.zeros((BM, BN), tl.int32)
    for k in range(0, quarter, BK):
        rk = k + tl.arange(0, BK)
        q = tl.load(Q + rn[None, :] * quarter + rk[:, None])
        for part in tl.static_range(4):
            x = tl.load(X + rm[:, None] * K + part * quarter + rk[None, :], mask=rm[:, None] < M, other=0)
            w = (((q >> (2 * part)) & 3) - 1).to(tl.int8)
            acc = tl.dot(x, w, acc, out_dtype=tl.int32)
    y = acc.to(tl.float32) * tl.load(sx + rm, mask=rm < M, other=0.0)[:, None] * tl.load(sw)
    tl.store(Y + rm[:, None] * N + rn[None, :], y.to(tl.bfloat16), mask=rm[:, None] < M)


@case
def gemm_w2_ternary():
    m, n, k = 200, 2560, 6912
    y = zeros(m, n, dtype="bfloat16")
    args = ints(-128, 127, m, k, dtype="int8"), ints(0, 255, n, k // 4, dtype="uint8"), uniform(m), uniform(1), y, m, n, k
    return run(w2_ternary, (cdiv(m, 32), n // 64), args, y, BM=32, BN=64, BK=64, num_warps=4, num_stages=2)


@triton.jit
def w4_halves_of_k(X, Q, scales, zeros_, Y, M, N, K, GROUP: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # HQQ: the low nibbles are the first half of K, the high ones the second.
    pid = tl.program_id(0)
    rm = tl.program_id(1) * BM + tl.arange(0, BM)
    rn = pid * BN + tl.arange(0, BN)
    half = K // 2
    low = tl.zeros((BM, BN), tl.float32)
    high = tl.zeros((BM, BN), tl.float32)
    for k in range(0, half, BK):
        rk = k + tl.arange(0, BK)
        q = tl.load(Q + rk[:, None] * N + rn[None, :])
        x0 = tl.load(X + rm[:, None] * K + rk[None, :])
        x1 = tl.load(X + rm[:, None] * K + half + rk[None, :])
        s0, s1 = tl.load(scales + k // GROUP * N + rn), tl.load(scales + (half + k) // GROUP * N + rn)
        z0, z1 = tl.load(zeros_ + k // GROUP * N + rn), tl.load(zeros_ + (half + k) // GROUP * N + rn)
        low = tl.dot(x0, ((q & 15).to(tl.bfloat16) - z0[None, :]) * s0[None, :], low)
        high = tl.dot(x1, ((q >> 4).to(tl.bfloat16) - z1[None, :]) * s1[None, :], high)
    tl.store(Y + rm[:, None] * N + rn[None, :], (low + high).to(tl.bfloat16))


@case
def gemm_w4_halves_of_k():
    m, n, k, group = 512, 4096, 4096, 64
    y = zeros(m, n, dtype="bfloat16")
    args = rand(m, k, dtype="bfloat16"), ints(0, 255, k // 2, n, dtype="uint8"), rand(k // group, n, dtype="bfloat16"), rand(k // group, n, dtype="bfloat16"), y, m, n, k
    return run(w4_halves_of_k, (n // 128, m // 64), args, y, GROUP=group, BM=64, BN=128, BK=64, num_warps=4, num_stages=3)


@triton.jit
def bf16_times_fp8(A, W, sw, C, M, N, K, sam, sak, swn, swk, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, EVEN: tl.constexpr):
    pid = tl.program_id(0)
    tiles_n = tl.cdiv(N, BN)
    rm = (pid // tiles_n) * BM + tl.arange(0, BM)
    rn = (pid % tiles_n) * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    a = A + rm[:, None] * sam + rk[None, :] * sak
    w = W + rn[None, :] * swn + rk[:, None] * swk
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(tl.cdiv(K, BK)):
        if EVEN:
            x, y = tl.load(a), tl.load(w)
        else:
            x = tl.load(a, mask=rk[None, :] < K - k * BK, other=0.0)
            y = tl.load(w, mask=rk[:, None] < K - k * BK, other=0.0)
        acc = tl.dot(x, y.to(x.dtype), acc)
        a += BK * sak
        w += BK * swk
    acc *= tl.load(sw + rn)[None, :]
    tl.store(C + rm[:, None] * N + rn[None, :], acc.to(C.dtype.element_ty), mask=(rm < M)[:, None])


@case
def gemm_bf16_times_fp8():
    m, n, k = 1024, 4096, 2064
    c = zeros(m, n, dtype="bfloat16")
    args = rand(m, k, dtype="bfloat16"), f8(n, k), uniform(n), c, m, n, k, k, 1, k, 1
    return run(bf16_times_fp8, (m // 64 * (n // 256),), args, c, BM=64, BN=256, BK=64, EVEN=False, num_warps=8, num_stages=3)


@triton.jit
def plain_dot(A, B, C, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, PRECISION: tl.constexpr, NT: tl.constexpr):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        rk = k + tl.arange(0, BK)
        a = tl.load(A + rm[:, None] * K + rk[None, :], mask=(rm < M)[:, None] & (rk < K)[None, :], other=0.0)
        if NT:
            b = tl.load(B + rn[None, :] * K + rk[:, None], mask=(rn < N)[None, :] & (rk < K)[:, None], other=0.0)
        else:
            b = tl.load(B + rk[:, None] * N + rn[None, :], mask=(rn < N)[None, :] & (rk < K)[:, None], other=0.0)
        acc = tl.dot(a, b, acc, input_precision=PRECISION)
    tl.store(C + rm[:, None] * N + rn[None, :], acc, mask=(rm < M)[:, None] & (rn < N)[None, :])


@case
def gemm_f32_ieee_small_tiles():
    m, n, k = 1000, 1000, 1000
    c = zeros(m, n, dtype="float32")
    return run(plain_dot, (cdiv(m, 32), cdiv(n, 32)), (f32(m, k), f32(k, n), c, m, n, k), c, BM=32, BN=32, BK=16, PRECISION="ieee", NT=False, num_warps=2)


@case
def gemm_tf32x3_nt():
    m, n, k = 1024, 1024, 1024
    c = zeros(m, n, dtype="float32")
    return run(plain_dot, (m // 64, n // 64), (f32(m, k), f32(n, k), c, m, n, k), c, BM=64, BN=64, BK=32, PRECISION="tf32x3", NT=True, num_warps=4)


@case
def gemm_odd_sizes_unaligned():
    m, n, k = 1111, 777, 1001
    c = zeros(m, n, dtype="float32")
    return run(plain_dot, (cdiv(m, 64), cdiv(n, 64)), (rand(m, k), rand(k, n), c, m, n, k), c, BM=64, BN=64, BK=32, PRECISION=None, NT=False, num_warps=4, num_stages=4)


@triton.jit
def chunks_in_half(A, B, C, M, N, K, CHUNK: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Sums of CHUNK steps in half precision, added up in single.
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    a = A + rm[:, None] * K + rk[None, :]
    b = B + rk[:, None] * N + rn[None, :]
    acc = tl.zeros((BM, BN), tl.float32)
    for _ in range(0, K, BK * CHUNK):
        part = tl.zeros((BM, BN), tl.float16)
        for _ in tl.static_range(CHUNK):
            part = tl.dot(tl.load(a), tl.load(b), part, out_dtype=tl.float16)
            a += BK
            b += BK * N
        acc += part.to(tl.float32)
    tl.store(C + rm[:, None] * N + rn[None, :], acc.to(tl.float16))


@case
def gemm_chunks_in_half():
    m, n, k = 1024, 1024, 2048
    c = zeros(m, n)
    return run(chunks_in_half, (m // 128, n // 64), (rand(m, k) / 16, rand(k, n), c, m, n, k), c, CHUNK=4, BM=128, BN=64, BK=32, num_warps=4)


@triton.jit
def persistent_subtiles(a_desc, b_desc, c_desc, bias, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr, NUM: tl.constexpr):
    tiles_m, tiles_n = tl.cdiv(M, BM), tl.cdiv(N, BN)
    for tile in tl.range(tl.program_id(0), tiles_m * tiles_n, NUM, flatten=True):
        width = GROUP * tiles_n
        first = tile // width * GROUP
        size = min(tiles_m - first, GROUP)
        pid_m = first + tile % size
        pid_n = tile % width // size
        acc = tl.zeros((BM, BN), tl.float32)
        for k in range(tl.cdiv(K, BK)):
            a = a_desc.load([pid_m * BM, k * BK])
            b = b_desc.load([pid_n * BN, k * BK])
            acc = tl.dot(a, b.T, acc)
        parts = tl.permute(tl.reshape(acc, (BM, 2, BN // 2)), (0, 2, 1))
        left, right = tl.split(parts)
        half = tl.arange(0, BN // 2)
        left = tl.maximum(left + tl.load(bias + pid_n * BN + half)[None, :], 0.0)
        c_desc.store([pid_m * BM, pid_n * BN], left.to(tl.bfloat16))
        right = tl.maximum(right + tl.load(bias + pid_n * BN + BN // 2 + half)[None, :], 0.0)
        c_desc.store([pid_m * BM, pid_n * BN + BN // 2], right.to(tl.bfloat16))


@case
def gemm_persistent_subtiles():
    m, n, k = 4096, 4096, 2048
    c = zeros(m, n, dtype="bfloat16")
    a = TensorDescriptor.from_tensor(rand(m, k, dtype="bfloat16"), [128, 64])
    b = TensorDescriptor.from_tensor(rand(n, k, dtype="bfloat16"), [128, 64])
    args = a, b, TensorDescriptor.from_tensor(c, [128, 64]), f32(n), m, n, k
    return run(persistent_subtiles, (PROGRAMS,), args, c, BM=128, BN=128, BK=64, GROUP=8, NUM=PROGRAMS, num_warps=8, num_stages=4)


@triton.jit
def gated_interleaved(X, W, Y, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Gates and values alternate in the columns of W.
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    x = X + rm[:, None] * K + rk[None, :]
    w = W + rn[None, :] * K + rk[:, None]
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        acc = tl.dot(tl.load(x), tl.load(w), acc)
        x += BK
        w += BK
    gate, value = tl.split(tl.reshape(acc, (BM, BN // 2, 2)))
    gate = tl.minimum(gate, 7.0)
    value = tl.clamp(value, -7.0, 7.0)
    y = gate * tl.sigmoid(1.702 * gate) * (value + 1.0)
    rh = tl.program_id(1) * (BN // 2) + tl.arange(0, BN // 2)
    tl.store(Y + rm[:, None] * (N // 2) + rh[None, :], y.to(tl.bfloat16))


@case
def gemm_gated_interleaved():
    m, n, k = 2048, 5760, 2880
    y = zeros(m, n // 2, dtype="bfloat16")
    args = rand(m, k, dtype="bfloat16"), rand(n, k, dtype="bfloat16"), y, m, n, k
    return run(gated_interleaved, (m // 128, n // 128), args, y, BM=128, BN=128, BK=64, num_warps=8, num_stages=4)


@triton.jit
def logits_statistics(H, W, top, total, M, V, K, BM: tl.constexpr, BV: tl.constexpr, BK: tl.constexpr):
    # The maximum and the sum of exponentials of each tile of logits, which are not stored.
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rv = tl.program_id(1) * BV + tl.arange(0, BV)
    acc = tl.zeros((BM, BV), tl.float32)
    for k in range(0, K, BK):
        rk = k + tl.arange(0, BK)
        h = tl.load(H + rm[:, None] * K + rk[None, :], mask=rm[:, None] < M, other=0.0)
        w = tl.load(W + rv[:, None] * K + rk[None, :], mask=rv[:, None] < V, other=0.0)
        acc = tl.dot(h, w.T, acc)
    acc = tl.where((rv < V)[None, :], acc, float("-inf"))
    m = tl.max(acc, 1)
    s = tl.sum(tl.exp(acc - m[:, None]), 1)
    tl.store(top + tl.program_id(1) * M + rm, m, mask=rm < M)
    tl.store(total + tl.program_id(1) * M + rm, s, mask=rm < M)


@case
def gemm_logits_statistics():
    m, v, k = 1000, 32003, 768
    top, total = zeros(cdiv(v, 256), m, dtype="float32"), zeros(cdiv(v, 256), m, dtype="float32")
    args = rand(m, k, dtype="bfloat16"), rand(v, k, dtype="bfloat16"), top, total, m, v, k
    return run(logits_statistics, (cdiv(m, 128), cdiv(v, 256)), args, (top, total), BM=128, BV=256, BK=32, num_warps=8, num_stages=3)


@triton.jit
def gemv_columns(A, x, y, M, N, BM: tl.constexpr, BN: tl.constexpr):
    # y = A^T x, parts added atomically.
    rn = tl.program_id(0) * BN + tl.arange(0, BN)
    acc = tl.zeros((BN,), tl.float32)
    for m in range(tl.program_id(1) * BM, M, BM * tl.num_programs(1)):
        rm = m + tl.arange(0, BM)
        a = tl.load(A + rm[:, None] * N + rn[None, :], mask=rm[:, None] < M, other=0.0).to(tl.float32)
        acc += tl.sum(a * tl.load(x + rm, mask=rm < M, other=0.0).to(tl.float32)[:, None], 0)
    tl.atomic_add(y + rn, acc, sem="relaxed")


@case
def gemv_columns_atomic():
    m, n = 11008, 4096
    y = zeros(n, dtype="float32")
    return run(gemv_columns, (n // 128, 16), (rand(m, n, dtype="bfloat16"), rand(m, dtype="bfloat16"), y, m, n), y, BM=32, BN=128, num_warps=4)


@triton.jit
def gemv_rows(W, x, y, N, K, R: tl.constexpr, BK: tl.constexpr):
    rn = tl.program_id(0) * R + tl.arange(0, R)
    acc = tl.zeros((R, BK), tl.float32)
    for k in range(0, K, BK):
        rk = k + tl.arange(0, BK)
        acc += tl.load(W + rn[:, None] * K + rk[None, :]).to(tl.float32) * tl.load(x + rk).to(tl.float32)[None, :]
    tl.store(y + rn, tl.sum(acc, 1).to(tl.float16))


@case
def gemv_rows_one_warp():
    n, k = 8192, 8192
    y = zeros(n)
    return run(gemv_rows, (n // 4,), (rand(n, k), rand(k), y, n, k), y, R=4, BK=512, num_warps=1)


@triton.jit
def gemv_int4(Q, scales, x, y, N, K, GROUP: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Eight rows of K in a word; one scale and an implied zero point of 8 for each group.
    rn = tl.program_id(0) * BN + tl.arange(0, BN)
    acc = tl.zeros((BN,), tl.float32)
    for k in range(0, K, BK):
        rp = k // 8 + tl.arange(0, BK // 8)
        q = tl.load(Q + rp[:, None] * N + rn[None, :])
        s = tl.load(scales + (rp * 8 // GROUP)[:, None] * N + rn[None, :]).to(tl.float32)
        part = tl.zeros((BK // 8, BN), tl.float32)
        for j in tl.static_range(8):
            part += ((q >> (4 * j)) & 15).to(tl.float32) * tl.load(x + rp * 8 + j).to(tl.float32)[:, None]
        total = tl.zeros((BK // 8,), tl.float32)
        for j in tl.static_range(8):
            total += tl.load(x + rp * 8 + j).to(tl.float32)
        acc += tl.sum((part - 8.0 * total[:, None]) * s, 0)
    tl.store(y + rn, acc.to(tl.float16))


@case
def gemv_int4_words_along_k():
    n, k, group = 11008, 4096, 128
    y = zeros(n)
    args = ints(-(2**31), 2**31 - 1, k // 8, n), rand(k // group, n), rand(k), y, n, k
    return run(gemv_int4, (n // 64,), args, y, GROUP=group, BN=64, BK=256, num_warps=2)


@triton.jit
def symmetric_rank_k(A, C, N, K, BM: tl.constexpr, BK: tl.constexpr):
    # C = A A^T: only the tiles below the diagonal are multiplied; each is stored twice.
    t = tl.program_id(0)
    i = ((tl.sqrt(8.0 * t.to(tl.float32) + 1.0) - 1.0) / 2.0).to(tl.int32)
    i = tl.where((i + 1) * (i + 2) // 2 <= t, i + 1, i)
    i = tl.where(i * (i + 1) // 2 > t, i - 1, i)
    j = t - i * (i + 1) // 2
    ri, rj, rk = i * BM + tl.arange(0, BM), j * BM + tl.arange(0, BM), tl.arange(0, BK)
    acc = tl.zeros((BM, BM), tl.float32)
    for k in range(0, K, BK):
        a = tl.load(A + ri[:, None] * K + k + rk[None, :])
        b = tl.load(A + rj[:, None] * K + k + rk[None, :])
        acc = tl.dot(a, b.T, acc)
    c = acc.to(tl.bfloat16)
    tl.store(C + ri[:, None] * N + rj[None, :], c)
    if i != j:
        tl.store(C + rj[:, None] * N + ri[None, :], c.T)


@case
def gemm_symmetric_rank_k():
    n, k = 2048, 4096
    c = zeros(n, n, dtype="bfloat16")
    tiles = n // 128
    return run(symmetric_rank_k, (tiles * (tiles + 1) // 2,), (rand(n, k, dtype="bfloat16"), c, n, k), c, BM=128, BK=64, num_warps=8, num_stages=3)


@triton.jit
def complex_product(Ar, Ai, Br, Bi, C, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Real and imaginary parts apart on the way in, interleaved on the way out.
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    re = tl.zeros((BM, BN), tl.float32)
    im = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        rk = k + tl.arange(0, BK)
        a, b = rm[:, None] * K + rk[None, :], rk[:, None] * N + rn[None, :]
        ar, ai, br, bi = tl.load(Ar + a), tl.load(Ai + a), tl.load(Br + b), tl.load(Bi + b)
        re += tl.dot(ar, br) - tl.dot(ai, bi)
        im += tl.dot(ar, bi) + tl.dot(ai, br)
    out = tl.interleave(re, im)
    r2 = tl.program_id(1) * BN * 2 + tl.arange(0, 2 * BN)
    tl.store(C + rm[:, None] * (2 * N) + r2[None, :], out)


@case
def gemm_complex():
    n, k = 1024, 1024
    c = zeros(n, 2 * n, dtype="float32")
    args = rand(n, k), rand(n, k), rand(k, n), rand(k, n), c, n, k
    return run(complex_product, (n // 64, n // 64), args, c, BM=64, BN=64, BK=32, num_warps=4, num_stages=2)


@triton.jit
def bf16_times_mxfp4(A, W, S, C, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        rk, rp, rs = k + tl.arange(0, BK), k // 2 + tl.arange(0, BK // 2), k // 32 + tl.arange(0, BK // 32)
        a = tl.load(A + rm[:, None] * K + rk[None, :])
        w = tl.load(W + rn[None, :] * (K // 2) + rp[:, None])
        s = tl.load(S + rn[:, None] * (K // 32) + rs[None, :])
        acc = tl.dot_scaled(a, None, "bf16", w, s, "e2m1", acc)
    tl.store(C + rm[:, None] * N + rn[None, :], acc.to(tl.bfloat16))


@case
def gemm_bf16_times_mxfp4():
    m, n, k = 256, 4096, 4096
    c = zeros(m, n, dtype="bfloat16")
    args = rand(m, k, dtype="bfloat16"), ints(0, 255, n, k // 2, dtype="uint8"), ints(120, 130, n, k // 32, dtype="uint8"), c, m, n, k
    return run(bf16_times_mxfp4, (m // 64, n // 64), args, c, BM=64, BN=64, BK=128, num_warps=4, num_stages=3)


@triton.jit
def normalized_rows_product(X, mean, rstd, g, b, W, Y, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # The layer norm of X is applied to its tiles as they are loaded.
    rm = tl.program_id(1) * BM + tl.arange(0, BM)
    rn = tl.program_id(0) * BN + tl.arange(0, BN)
    mu, rs = tl.load(mean + rm), tl.load(rstd + rm)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        rk = k + tl.arange(0, BK)
        x = tl.load(X + rm[:, None] * K + rk[None, :]).to(tl.float32)
        x = (x - mu[:, None]) * rs[:, None] * tl.load(g + rk)[None, :] + tl.load(b + rk)[None, :]
        acc = tl.dot(x.to(tl.bfloat16), tl.load(W + rk[:, None] * N + rn[None, :]), acc)
    tl.store(Y + rm[:, None] * N + rn[None, :], acc.to(tl.bfloat16))


@case
def gemm_normalized_rows():
    m, n, k = 4096, 2304, 768
    y = zeros(m, n, dtype="bfloat16")
    args = rand(m, k, dtype="bfloat16"), f32(m), f32(m), f32(k), f32(k), rand(k, n, dtype="bfloat16"), y, m, n, k
    return run(normalized_rows_product, (n // 128, m // 64), args, y, BM=64, BN=128, BK=64, num_warps=4, num_stages=3)


@triton.jit
def sampled_blocks(A, B, C, rows, columns, M, N, K, BLOCK: tl.constexpr, BK: tl.constexpr):
    # Block-sparse: one block of the result for each listed pair.
    at, batch = tl.program_id(0), tl.program_id(1)
    rm = tl.load(rows + at) * BLOCK + tl.arange(0, BLOCK)
    rn = tl.load(columns + at) * BLOCK + tl.arange(0, BLOCK)
    A += batch * M * K
    B += batch * N * K
    acc = tl.zeros((BLOCK, BLOCK), tl.float32)
    for k in range(K, 0, -BK):
        rk = K - k + tl.arange(0, BK)
        a = tl.load(A + rm[:, None] * K + rk[None, :])
        b = tl.load(B + rn[:, None] * K + rk[None, :])
        acc += tl.dot(a, b.T)
    inside = tl.arange(0, BLOCK)
    c = C + (batch * tl.num_programs(0) + at).to(tl.int64) * BLOCK * BLOCK
    tl.store(c + inside[:, None] * BLOCK + inside[None, :], (acc * 0.125).to(tl.float16))


@case
def gemm_sampled_blocks():
    batch, m, k, blocks = 16, 2048, 64, 300
    c = zeros(batch, blocks, 64, 64)
    args = rand(batch, m, k), rand(batch, m, k), c, ints(0, m // 64, blocks), ints(0, m // 64, blocks), m, m, k
    return run(sampled_blocks, (blocks, batch), args, c, BLOCK=64, BK=32, num_warps=4)


@triton.jit
def scaled_batches(A, B, C, D, alpha, beta, M, N, K, sab, sbb, scb, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    batch = tl.program_id(2)
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    a = A + batch * sab + rk[:, None] * M + rm[None, :]
    b = B + batch * sbb + rn[:, None] * K + rk[None, :]
    acc = tl.zeros((BN, BM), tl.float32)
    for _ in range(0, K, BK):
        acc = tl.dot(tl.load(b), tl.load(a), acc)
        a += BK * M
        b += BK
    at = batch * scb + rm[:, None] * N + rn[None, :]
    tl.store(D + at, (alpha * acc.T + beta * tl.load(C + at).to(tl.float32)).to(tl.float16))


@case
def gemm_scaled_batches_tt():
    batch, m, n, k = 24, 512, 512, 512
    d = zeros(batch, m, n)
    args = rand(batch, k, m), rand(batch, n, k), rand(batch, m, n), d, 0.5, 2.0, m, n, k, m * k, n * k, m * n
    return run(scaled_batches, (m // 128, n // 64, batch), args, d, BM=128, BN=64, BK=32, num_warps=4, num_stages=5)


@triton.jit
def with_low_rank(X, W, A, B, Y, M, N, K, scale, R: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # x W + scale (x A) B, with both sums over K in one loop.
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    rr = tl.arange(0, R)
    acc = tl.zeros((BM, BN), tl.float32)
    low = tl.zeros((BM, R), tl.float32)
    for k in range(0, K, BK):
        rk = k + tl.arange(0, BK)
        x = tl.load(X + rm[:, None] * K + rk[None, :])
        acc = tl.dot(x, tl.load(W + rk[:, None] * N + rn[None, :]), acc)
        low = tl.dot(x, tl.load(A + rk[:, None] * R + rr[None, :]), low)
    b = tl.load(B + rr[:, None] * N + rn[None, :])
    acc = tl.dot((low * scale).to(tl.bfloat16), b, acc)
    tl.store(Y + rm[:, None] * N + rn[None, :], acc.to(tl.bfloat16))


@case
def gemm_with_low_rank():
    m, n, k = 2048, 2048, 2048
    y = zeros(m, n, dtype="bfloat16")
    b = lambda *shape: rand(*shape, dtype="bfloat16")
    return run(with_low_rank, (m // 128, n // 128), (b(m, k), b(k, n), b(k, 16), b(16, n), y, m, n, k, 0.25), y, R=16, BM=128, BN=128, BK=32, num_warps=8, num_stages=3)


@triton.jit
def dynamic_fp8_output(A, B, sa, sb, C, sc, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # FP8 in, FP8 out with a scale for each row of a tile.
    pid_m, pid_n = tl.program_id(0), tl.program_id(1)
    rm = pid_m * BM + tl.arange(0, BM)
    rn = pid_n * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        rk = k + tl.arange(0, BK)
        a = tl.load(A + rm[:, None] * K + rk[None, :])
        b = tl.load(B + rn[:, None] * K + rk[None, :])
        acc = tl.dot(a, b.T, acc)
    acc = acc * tl.load(sa + rm)[:, None] * tl.load(sb + rn)[None, :]
    top = tl.maximum(tl.max(tl.abs(acc), 1), 1e-8)
    tl.store(sc + rm * tl.num_programs(1) + pid_n, top / 448.0)
    c = tl.clamp(acc * (448.0 / top)[:, None], -448.0, 448.0)
    tl.store(C + rm[:, None] * N + rn[None, :], c.to(tl.float8e4nv))


@case
def gemm_dynamic_fp8_output():
    m, n, k = 2048, 4096, 4096
    c, sc = zeros(m, n, dtype="float8_e4m3fn"), zeros(m, n // 128, dtype="float32")
    launch, args = run(dynamic_fp8_output, (m // 128, n // 128), (f8(m, k), f8(n, k), uniform(m), uniform(n), c, sc, m, n, k), None, BM=128, BN=128, BK=128, num_warps=8, num_stages=3)
    return (lambda *args: launch(*args) or (c.float(), sc)), args


@triton.jit
def grouped_w4_experts(X, tokens, experts, Q, S, gate, Y, N, K, n_tokens, TOP: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Sorted tokens of experts with weights of 4 bits, two in a byte along K, scaled by groups of 32.
    pid_m, pid_n = tl.program_id(0), tl.program_id(1)
    expert = tl.load(experts + pid_m)
    if expert == -1:
        return
    token = tl.load(tokens + pid_m * BM + tl.arange(0, BM))
    live = token < n_tokens
    rn = pid_n * BN + tl.arange(0, BN)
    Q += expert.to(tl.int64) * N * (K // 2)
    S += expert.to(tl.int64) * N * (K // 32)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        rk = k + tl.arange(0, BK)
        x = tl.load(X + (token // TOP)[:, None] * K + rk[None, :], mask=live[:, None], other=0.0)
        q = tl.load(Q + rn[None, :] * (K // 2) + (rk // 2)[:, None])
        s = tl.load(S + rn[None, :] * (K // 32) + (rk // 32)[:, None])
        w = ((q >> ((rk % 2) * 4)[:, None]) & 15).to(tl.int8) - 8
        acc = tl.dot(x, w.to(tl.bfloat16) * s, acc)
    acc *= tl.load(gate + token, mask=live, other=0.0)[:, None]
    tl.store(Y + token[:, None] * N + rn[None, :], acc.to(tl.bfloat16), mask=live[:, None])


@case
def moe_w4_groups_of_32():
    tokens, top, experts, n, k, bm = 512, 2, 8, 2048, 2048, 32
    blocks = tokens * top // bm
    y = zeros(tokens * top, n, dtype="bfloat16")
    order = (arange(tokens * top) * 7) % (tokens * top)
    args = rand(tokens, k, dtype="bfloat16"), order.int(), arange(blocks) // (blocks // experts), ints(0, 255, experts, n, k // 2, dtype="uint8")
    args += rand(experts, n, k // 32, dtype="bfloat16"), uniform(tokens * top), y, n, k, tokens * top
    return run(grouped_w4_experts, (blocks, n // 64), args, y, TOP=top, BM=bm, BN=64, BK=64, num_warps=4, num_stages=3)


@triton.jit
def conv1d_causal_dot(X, W, bias, Y, T, C, O, KW: tl.constexpr, BT: tl.constexpr, BO: tl.constexpr, BC: tl.constexpr):
    rt = tl.program_id(0) * BT + tl.arange(0, BT)
    ro = tl.program_id(1) * BO + tl.arange(0, BO)
    X += tl.program_id(2) * T * C
    Y += tl.program_id(2) * T * O
    acc = tl.zeros((BT, BO), tl.float32) + tl.load(bias + ro)[None, :]
    for tap in range(KW):
        src = rt + tap - (KW - 1)
        for c in range(0, C, BC):
            rc = c + tl.arange(0, BC)
            x = tl.load(X + src[:, None] * C + rc[None, :], mask=(src >= 0)[:, None] & (src < T)[:, None], other=0.0)
            w = tl.load(W + (tap * C + rc)[:, None] * O + ro[None, :])
            acc = tl.dot(x, w, acc)
    tl.store(Y + rt[:, None] * O + ro[None, :], acc.to(tl.float16), mask=(rt < T)[:, None])


@case
def conv1d_causal_dot_taps():
    batch, t, c, o = 8, 2000, 256, 256
    y = zeros(batch, t, o)
    return run(conv1d_causal_dot, (cdiv(t, 64), o // 64, batch), (rand(batch, t, c), rand(5 * c, o), f32(o), y, t, c, o), y, KW=5, BT=64, BO=64, BC=64, num_warps=4)


@triton.jit
def conv2d_nchw(X, W, Y, N, C, H, Wd, O, P, Q, R: tl.constexpr, S: tl.constexpr, STRIDE: tl.constexpr, PAD: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # An implicit product: rows are the output's pixels, columns its channels.
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    ro = tl.program_id(1) * BN + tl.arange(0, BN)
    n, pq = rm // (P * Q), rm % (P * Q)
    p, q = pq // Q, pq % Q
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, C * R * S, BK):
        rk = k + tl.arange(0, BK)
        c, rs = rk // (R * S), rk % (R * S)
        y = (p * STRIDE - PAD)[:, None] + (rs // S)[None, :]
        x = (q * STRIDE - PAD)[:, None] + (rs % S)[None, :]
        live = (n < N)[:, None] & (y >= 0) & (y < H) & (x >= 0) & (x < Wd) & (rk < C * R * S)[None, :]
        a = tl.load(X + ((n * C)[:, None] + c[None, :]) * H * Wd + y * Wd + x, mask=live, other=0.0)
        b = tl.load(W + ro[None, :] * (C * R * S) + rk[:, None], mask=(rk < C * R * S)[:, None], other=0.0)
        acc = tl.dot(a, b, acc)
    out = Y + (n * O)[:, None] * P * Q + ro[None, :] * P * Q + pq[:, None]
    tl.store(out, acc.to(tl.float16), mask=(n < N)[:, None])


@case
def conv2d_nchw_stride2():
    n, c, h, o = 16, 64, 56, 128
    p = h // 2
    y = zeros(n, o, p, p)
    return run(conv2d_nchw, (cdiv(n * p * p, 64), o // 64), (rand(n, c, h, h), rand(o, c, 3, 3), y, n, c, h, h, o, p, p), y, R=3, S=3, STRIDE=2, PAD=1, BM=64, BN=64, BK=32, num_warps=4)


@triton.jit
def conv3d_direct(X, W, Y, D, H, Wd, C: tl.constexpr, BLOCK: tl.constexpr):
    # Depthwise 3x3x3, channels last.
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    c = tl.arange(0, C)
    z, yx = at // (H * Wd), at % (H * Wd)
    y, x = yx // Wd, yx % Wd
    acc = tl.zeros((BLOCK, C), tl.float32)
    for tap in tl.static_range(27):
        dz, dy, dx = tap // 9 - 1, tap // 3 % 3 - 1, tap % 3 - 1
        live = (z + dz >= 0) & (z + dz < D) & (y + dy >= 0) & (y + dy < H) & (x + dx >= 0) & (x + dx < Wd)
        src = at + (dz * H + dy) * Wd + dx
        acc += tl.load(X + src[:, None] * C + c[None, :], mask=live[:, None], other=0.0).to(tl.float32) * tl.load(W + tap * C + c)[None, :]
    tl.store(Y + at[:, None] * C + c[None, :], acc.to(tl.float16), mask=(at < D * H * Wd)[:, None])


@case
def conv3d_depthwise():
    d, h, w, c = 16, 60, 60, 64
    y = zeros(d, h, w, c)
    return run(conv3d_direct, (cdiv(d * h * w, 16),), (rand(d, h, w, c), f32(27, c), y, d, h, w), y, C=c, BLOCK=16, num_warps=4)


@triton.jit
def conv_transpose2d(X, W, Y, C, H, Wd, O, BM: tl.constexpr, BO: tl.constexpr, BC: tl.constexpr):
    # Kernel and stride of 2: each input pixel makes a 2x2 patch. NHWC.
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    ro = tl.program_id(1) * BO + tl.arange(0, BO)
    phase = tl.program_id(2)
    acc = tl.zeros((BM, BO), tl.float32)
    for c in range(0, C, BC):
        rc = c + tl.arange(0, BC)
        acc = tl.dot(tl.load(X + rm[:, None] * C + rc[None, :]), tl.load(W + (phase * C + rc)[:, None] * O + ro[None, :]), acc)
    y, x = rm // Wd, rm % Wd
    out = (2 * y + phase // 2) * (2 * Wd) + 2 * x + phase % 2
    tl.store(Y + out[:, None] * O + ro[None, :], acc.to(tl.float16))


@case
def conv_transpose2d_patches():
    rows, w, c, o = 8 * 64, 64, 256, 128
    y = zeros(2 * rows, 2 * w, o)
    return run(conv_transpose2d, (rows * w // 128, o // 128, 4), (rand(rows, w, c), rand(4, c, o), y, c, rows, w, o), y, BM=128, BO=128, BC=32, num_warps=8)
