"""Products as they are first written for a module of PyTorch: odd shapes and tiles, no order of programs, chains after a linear layer."""

import torch
import torch.nn.functional as F
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

from .common import PROGRAMS, against, case, cdiv, cleared, f8, f32, ints, rand, run, uniform, zeros


@triton.jit
def matmul_irregular(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
    BLOCK_SIZE_M: tl.constexpr, BLOCK_SIZE_N: tl.constexpr, BLOCK_SIZE_K: tl.constexpr,
):  # fmt: skip
    pid_m = tl.program_id(axis=0)
    pid_n = tl.program_id(axis=1)
    offs_m = pid_m * BLOCK_SIZE_M + tl.arange(0, BLOCK_SIZE_M)
    offs_n = pid_n * BLOCK_SIZE_N + tl.arange(0, BLOCK_SIZE_N)
    acc = tl.zeros((BLOCK_SIZE_M, BLOCK_SIZE_N), dtype=tl.float32)
    for k in range(0, K, BLOCK_SIZE_K):
        offs_k = k + tl.arange(0, BLOCK_SIZE_K)
        a_mask = (offs_m[:, None] < M) & (offs_k[None, :] < K)
        b_mask = (offs_k[:, None] < K) & (offs_n[None, :] < N)
        a = tl.load(a_ptr + offs_m[:, None] * stride_am + offs_k[None, :] * stride_ak, mask=a_mask, other=0.0)
        b = tl.load(b_ptr + offs_k[:, None] * stride_bk + offs_n[None, :] * stride_bn, mask=b_mask, other=0.0)
        acc += tl.dot(a, b, allow_tf32=False)
    c_ptrs = c_ptr + offs_m[:, None] * stride_cm + offs_n[None, :] * stride_cn
    tl.store(c_ptrs, acc, mask=(offs_m[:, None] < M) & (offs_n[None, :] < N))


def irregular(a, b, bm, bn, bk, **options):
    m, k, n = *a.shape, b.shape[1]
    c = zeros(m, n, dtype="float32")
    args = a, b, c, m, n, k, *a.stride(), *b.stride(), *c.stride()
    launched = run(matmul_irregular, (cdiv(m, bm), cdiv(n, bn)), args, c, BLOCK_SIZE_M=bm, BLOCK_SIZE_N=bn, BLOCK_SIZE_K=bk, **options)
    return against(launched, lambda: a.double() @ b.double())


@case
def matmul_irregular_32x32x32_ieee():
    return irregular(f32(805, 949), f32(949, 1023), 32, 32, 32)


@case
def matmul_both_transposed_64x32x16_ieee():
    return irregular(f32(1100, 770).t(), f32(1030, 1100).t(), 64, 32, 16)


@case
def matmul_tall_by_skinny_128x16x64_ieee():
    return irregular(f32(16384, 333), f32(333, 16), 128, 16, 64, num_warps=8)


@triton.jit
def matvec_tiles(a_ptr, x_ptr, y_ptr, M, K, BLOCK_M: tl.constexpr, BLOCK_K: tl.constexpr):
    # The accumulator keeps a whole tile and is reduced at the end.
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    acc = tl.zeros((BLOCK_M, BLOCK_K), dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        cols = k + tl.arange(0, BLOCK_K)
        a = tl.load(a_ptr + rows[:, None] * K + cols[None, :], mask=(rows < M)[:, None] & (cols < K)[None, :], other=0.0)
        x = tl.load(x_ptr + cols, mask=cols < K, other=0.0)
        acc += a * x[None, :]
    tl.store(y_ptr + rows, tl.sum(acc, axis=1), mask=rows < M)


@case
def matvec_16x256_tiles_of_odd_rows():
    m, k = 4001, 13107
    a, x, y = f32(m, k), f32(k), zeros(m, dtype="float32")
    launched = run(matvec_tiles, (cdiv(m, 16),), (a, x, y, m, k), y, BLOCK_M=16, BLOCK_K=256)
    return against(launched, lambda: a @ x)


@triton.jit
def diagonal_times(d_ptr, b_ptr, c_ptr, N, M, BLOCK_N: tl.constexpr, BLOCK_M: tl.constexpr):
    n = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    m = tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M)
    d = tl.load(d_ptr + n, mask=n < N, other=0.0)
    at = n[:, None] * M + m[None, :]
    ok = (n[:, None] < N) & (m[None, :] < M)
    tl.store(c_ptr + at, d[:, None] * tl.load(b_ptr + at, mask=ok), mask=ok)


@case
def matmul_with_a_diagonal_32x32_tiles():
    n, m = 4096, 5003
    d, b, c = f32(n), f32(n, m), zeros(n, m, dtype="float32")
    return against(run(diagonal_times, (cdiv(n, 32), cdiv(m, 32)), (d, b, c, n, m), c, BLOCK_N=32, BLOCK_M=32), lambda: d[:, None] * b)


@triton.jit
def tensor_4d_times(
    a_ptr, b_ptr, c_ptr, I, J, L, K, sab, sai, saj, sal, sbl, sbk, scb, sci, scj, sck, BM: tl.constexpr, BN: tl.constexpr, BL: tl.constexpr
):
    # einsum("bijl,lk->bijk"): rows are (i, j) of one b; every pointer is made again from all strides in each step.
    batch = tl.program_id(2)
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    i, j = m // J, m % J
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for l0 in range(0, L, BL):
        l = l0 + tl.arange(0, BL)
        a = tl.load(a_ptr + batch * sab + (i * sai + j * saj)[:, None] + l[None, :] * sal, mask=(m < I * J)[:, None] & (l < L)[None, :], other=0.0)
        b = tl.load(b_ptr + l[:, None] * sbl + n[None, :] * sbk, mask=(l < L)[:, None] & (n < K)[None, :], other=0.0)
        acc += tl.dot(a, b)
    c = c_ptr + batch * scb + (i * sci + j * scj)[:, None] + n[None, :] * sck
    tl.store(c, acc, mask=(m < I * J)[:, None] & (n < K)[None, :])


@case
def tensor_4d_times_matrix_128x32():
    b, i, j, length, k = 4, 60, 65, 250, 384
    x, w, c = f32(b, i, j, length), f32(length, k) / 16, zeros(b, i, j, k, dtype="float32")
    args = x, w, c, i, j, length, k, *x.stride(), *w.stride(), *c.stride()
    launched = run(tensor_4d_times, (cdiv(i * j, 128), cdiv(k, 32), b), args, c, BM=128, BN=32, BL=32)
    return against(launched, lambda: x @ w)


@triton.jit
def tensor_3d_times(A, B, C, N, M, K, L, BLOCK_M: tl.constexpr, BLOCK_L: tl.constexpr, BLOCK_K: tl.constexpr):
    # One axis of the grid for everything; wide tiles of few rows.
    pid = tl.program_id(0)
    nl = tl.cdiv(L, BLOCK_L)
    nm = tl.cdiv(M, BLOCK_M)
    n, pm, pl = pid // (nm * nl), pid // nl % nm, pid % nl
    m, l = pm * BLOCK_M + tl.arange(0, BLOCK_M), pl * BLOCK_L + tl.arange(0, BLOCK_L)
    a_ptrs = A + n * M * K + m[:, None] * K + tl.arange(0, BLOCK_K)[None, :]
    b_ptrs = B + tl.arange(0, BLOCK_K)[:, None] * L + l[None, :]
    acc = tl.zeros((BLOCK_M, BLOCK_L), tl.float32)
    for k in range(tl.cdiv(K, BLOCK_K)):
        in_k = tl.arange(0, BLOCK_K) < K - k * BLOCK_K
        a = tl.load(a_ptrs, mask=(m < M)[:, None] & in_k[None, :], other=0.0)
        b = tl.load(b_ptrs, mask=in_k[:, None] & (l < L)[None, :], other=0.0)
        acc = tl.dot(a, b, acc)
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K * L
    tl.store(C + n * M * L + m[:, None] * L + l[None, :], acc.to(tl.float16), mask=(m < M)[:, None] & (l < L)[None, :])


@case
def tensor_3d_times_matrix_16x256():
    n, m, k, length = 12, 500, 1024, 776
    a, b, c = rand(n, m, k), rand(k, length) / 32, zeros(n, m, length)
    grid = n * cdiv(m, 16) * cdiv(length, 256)
    launched = run(tensor_3d_times, (grid,), (a, b, c, n, m, k, length), c, BLOCK_M=16, BLOCK_L=256, BLOCK_K=32)
    return against(launched, lambda: a.float() @ b.float())


@triton.jit
def lower_times_lower(a_ptr, b_ptr, c_ptr, N, BLOCK: tl.constexpr):
    # Only steps between the column's and the row's blocks; upper blocks are stored as zeros.
    pid_m, pid_n = tl.program_id(0), tl.program_id(1)
    m = pid_m * BLOCK + tl.arange(0, BLOCK)
    n = pid_n * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    if pid_m >= pid_n:
        kb = pid_n
        while kb <= pid_m:
            k = kb * BLOCK + tl.arange(0, BLOCK)
            a = tl.load(a_ptr + m[:, None] * N + k[None, :], mask=(m[:, None] < N) & (k[None, :] <= m[:, None]), other=0.0)
            b = tl.load(b_ptr + k[:, None] * N + n[None, :], mask=(k[:, None] < N) & (n[None, :] <= k[:, None]), other=0.0)
            acc += tl.dot(a, b)
            kb += 1
    tl.store(c_ptr + m[:, None] * N + n[None, :], tl.where(m[:, None] >= n[None, :], acc, 0.0), mask=(m < N)[:, None] & (n < N)[None, :])


@case
def matmul_of_lower_triangles_while():
    n = 1800
    a, b, c = f32(n, n), f32(n, n), zeros(n, n, dtype="float32")
    return against(run(lower_times_lower, (cdiv(n, 64), cdiv(n, 64)), (a, b, c, n), c, BLOCK=64), lambda: a.tril() @ b.tril())


@triton.jit
def transposed_first(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # A is stored K by M: its tile is loaded as stored, and transposed.
    m, n = tl.program_id(1) * BM + tl.arange(0, BM), tl.program_id(0) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for k0 in range(0, K, BK):
        k = k0 + tl.arange(0, BK)
        a = tl.load(a_ptr + k[:, None] * M + m[None, :], mask=(k < K)[:, None] & (m < M)[None, :], other=0.0)
        b = tl.load(b_ptr + n[:, None] * K + k[None, :], mask=(n < N)[:, None] & (k < K)[None, :], other=0.0)
        acc += tl.dot(tl.trans(a), tl.trans(b))
    tl.store(c_ptr + m[:, None] * N + n[None, :], acc, mask=(m < M)[:, None] & (n < N)[None, :])


@case
def matmul_tiles_transposed_after_loads_tf32():
    m, n, k = 1500, 1700, 1001
    a, b, c = f32(k, m), f32(n, k), zeros(m, n, dtype="float32")
    launched = run(transposed_first, (cdiv(n, 32), cdiv(m, 64)), (a, b, c, m, n, k), c, BM=64, BN=32, BK=32)
    return against(launched, lambda: a.t() @ b.t())


@triton.jit
def large_k_atomic(a_ptr, b_ptr, c_ptr, M, N, K, k_per_program, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    pid = tl.program_id(0)
    tiles_n = tl.cdiv(N, BN)
    m = pid // tiles_n * BM + tl.arange(0, BM)
    n = pid % tiles_n * BN + tl.arange(0, BN)
    start = tl.program_id(1) * k_per_program
    acc = tl.zeros((BM, BN), tl.float32)
    for k0 in range(start, min(start + k_per_program, K), BK):
        k = k0 + tl.arange(0, BK)
        a = tl.load(a_ptr + m[:, None] * K + k[None, :], mask=k[None, :] < K, other=0.0)
        b = tl.load(b_ptr + k[:, None] * N + n[None, :], mask=k[:, None] < K, other=0.0)
        acc += tl.dot(a, b)
    tl.atomic_add(c_ptr + m[:, None] * N + n[None, :], acc)


@case
def matmul_large_k_split_by_atomics():
    m, n, k, per = 256, 192, 100_003, 3136
    a, b, c = f32(m, k), f32(k, n), zeros(m, n, dtype="float32")
    grid = m // 64 * (n // 64), cdiv(k, per)
    launched = run(large_k_atomic, grid, (a, b, c, m, n, k, per), c, BM=64, BN=64, BK=32)
    return against(cleared(launched, c), lambda: a @ b)


@triton.jit
def small_k_no_loop(a_ptr, b_ptr, c_ptr, M, N, sam, sbk, scm, BM: tl.constexpr, BN: tl.constexpr, K: tl.constexpr):
    m, n, k = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN), tl.arange(0, K)
    a = tl.load(a_ptr + m[:, None] * sam + k[None, :], mask=m[:, None] < M, other=0.0)
    b = tl.load(b_ptr + k[:, None] * sbk + n[None, :], mask=n[None, :] < N, other=0.0)
    tl.store(c_ptr + m[:, None] * scm + n[None, :], tl.dot(a, b, input_precision="tf32"), mask=(m[:, None] < M) & (n[None, :] < N))


@case
def matmul_small_k_of_32_without_a_loop():
    m, n, k = 6000, 5500, 32
    a, b, c = f32(m, k), f32(k, n), zeros(m, n, dtype="float32")
    launched = run(small_k_no_loop, (cdiv(m, 64), cdiv(n, 64)), (a, b, c, m, n, k, n, n), c, BM=64, BN=64, K=k)
    return against(launched, lambda: a @ b)


@triton.jit
def bmm_odd(a_ptr, b_ptr, c_ptr, M, N, K, stride_ab, stride_am, stride_bb, stride_bk, stride_cb, stride_cm, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Boundaries wrap around instead of masks; only the store is masked.
    batch = tl.program_id(2).to(tl.int64)
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    a = a_ptr + batch * stride_ab + (m % M)[:, None] * stride_am + k[None, :]
    b = b_ptr + batch * stride_bb + k[:, None] * stride_bk + (n % N)[None, :]
    acc = tl.zeros((BM, BN), tl.float32)
    for k0 in range(0, K, BK):
        acc = tl.dot(tl.where((k0 + k < K)[None, :], tl.load(a), 0.0), tl.load(b, mask=(k0 + k < K)[:, None], other=0.0), acc)
        a += BK
        b += BK * stride_bk
    tl.store(c_ptr + batch * stride_cb + m[:, None] * stride_cm + n[None, :], acc.to(tl.float16), mask=(m[:, None] < M) & (n[None, :] < N))


@case
def bmm_of_odd_strides_that_wrap():
    batch, m, n, k = 30, 331, 277, 517
    a, b, c = rand(batch, m + 1, k), rand(batch, k, n), zeros(batch, m, n)
    args = a, b, c, m, n, k, (m + 1) * k, k, k * n, n, m * n, n
    launched = run(bmm_odd, (cdiv(m, 128), cdiv(n, 32), batch), args, c, BM=128, BN=32, BK=64)
    return against(launched, lambda: a.float()[:, :m] @ b.float())


@triton.jit
def sums_instead_of_dot(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m, n = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float64)
    for k0 in range(0, K, BK):
        k = k0 + tl.arange(0, BK)
        a = tl.load(a_ptr + m[:, None] * K + k[None, :], mask=(m < M)[:, None] & (k < K)[None, :], other=0.0)
        b = tl.load(b_ptr + k[:, None] * N + n[None, :], mask=(k < K)[:, None] & (n < N)[None, :], other=0.0)
        acc += tl.sum(a[:, :, None] * b[None, :, :], axis=1)
    tl.store(c_ptr + m[:, None] * N + n[None, :], acc, mask=(m < M)[:, None] & (n < N)[None, :])


@case
def matmul_of_doubles_by_sums_of_a_middle_axis():
    m, n, k = 301, 405, 250
    a, b, c = rand(m, k, dtype="float64"), rand(k, n, dtype="float64"), zeros(m, n, dtype="float64")
    return against(run(sums_instead_of_dot, (cdiv(m, 16), cdiv(n, 16)), (a, b, c, m, n, k), c, BM=16, BN=16, BK=16), lambda: a @ b)


@triton.jit
def linear_gelu_pool_sum(x_ptr, w_ptr, b_ptr, y_ptr, M, N, K, scale, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Linear, GELU, scale, a maximum of pairs of columns, and the sum over a row: a program loops over all columns.
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    total = tl.zeros((BM,), tl.float32)
    for n0 in range(0, N, BN):
        n = n0 + tl.arange(0, BN)
        acc = tl.zeros((BM, BN), tl.float32)
        for k0 in range(0, K, BK):
            k = k0 + tl.arange(0, BK)
            x = tl.load(x_ptr + m[:, None] * K + k[None, :], mask=(m < M)[:, None] & (k < K)[None, :], other=0.0)
            w = tl.load(w_ptr + n[None, :] * K + k[:, None], mask=(n < N)[None, :] & (k < K)[:, None], other=0.0)
            acc += tl.dot(x, w)
        acc += tl.load(b_ptr + n, mask=n < N, other=0.0)[None, :]
        acc = acc * 0.5 * (1.0 + tl.erf(acc * 0.7071067811865476)) * scale
        acc = tl.max(tl.reshape(acc, (BM, BN // 2, 2)), axis=2)
        total += tl.sum(tl.where((n0 // 2 + tl.arange(0, BN // 2) < N // 2)[None, :], acc, 0.0), axis=1)
    tl.store(y_ptr + m, total, mask=m < M)


@case
def linear_gelu_scale_max_pool_sum():
    m, n, k = 2050, 504, 500
    x, w, b, y = f32(m, k), f32(n, k) / 22, f32(n), zeros(m, dtype="float32")
    launched = run(linear_gelu_pool_sum, (cdiv(m, 16),), (x, w, b, y, m, n, k, 0.5), y, BM=16, BN=64, BK=32)
    return against(launched, lambda: F.max_pool1d(F.gelu(F.linear(x, w, b))[:, None] * 0.5, 2).sum((1, 2)))


@triton.jit
def linear_dropout_softmax(x_ptr, w_ptr, b_ptr, keep_ptr, y_ptr, M, K, inv_keep, N: tl.constexpr, BM: tl.constexpr, BK: tl.constexpr):
    # The whole row is one tile: dropped by bytes that were drawn before, then softmax.
    m, n = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, N)
    acc = tl.zeros((BM, N), tl.float32)
    for k0 in range(0, K, BK):
        k = k0 + tl.arange(0, BK)
        x = tl.load(x_ptr + m[:, None] * K + k[None, :], mask=(m < M)[:, None], other=0.0)
        w = tl.load(w_ptr + n[None, :] * K + k[:, None])
        acc += tl.dot(x, w)
    keep = tl.load(keep_ptr + m[:, None] * N + n[None, :], mask=(m < M)[:, None], other=0)
    acc = tl.where(keep != 0, (acc + tl.load(b_ptr + n)[None, :]) * inv_keep, 0.0)
    acc = tl.exp(acc - tl.max(acc, axis=1)[:, None])
    acc = acc / tl.sum(acc, axis=1)[:, None]
    tl.store(y_ptr + m[:, None] * N + n[None, :], acc, mask=(m < M)[:, None])


@case
def linear_dropout_softmax_of_whole_rows():
    m, n, k = 4000, 512, 384
    x, w, b, y = f32(m, k), f32(n, k) / 20, f32(n), zeros(m, n, dtype="float32")
    keep = ints(0, 5, m, n, dtype="uint8")
    launched = run(linear_dropout_softmax, (cdiv(m, 16),), (x, w, b, keep, y, m, k, 1.25), y, N=n, BM=16, BK=32, num_warps=8)
    return against(launched, lambda: (F.linear(x, w, b) * (keep != 0) * 1.25).softmax(1))


@triton.jit
def gemm_group_norm(x_ptr, w_ptr, b_ptr, g_ptr, h_ptr, y_ptr, M, N, K, eps, slope, GROUP: tl.constexpr, BM: tl.constexpr, BK: tl.constexpr):
    # A tile's columns are one group; leaky ReLU, then the value is added to itself.
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * GROUP + tl.arange(0, GROUP)
    acc = tl.zeros((BM, GROUP), tl.float32)
    for k0 in range(0, K, BK):
        k = k0 + tl.arange(0, BK)
        x = tl.load(x_ptr + m[:, None] * K + k[None, :], mask=(m < M)[:, None] & (k < K)[None, :], other=0.0)
        w = tl.load(w_ptr + n[None, :] * K + k[:, None], mask=(k < K)[:, None], other=0.0)
        acc += tl.dot(x, w)
    acc += tl.load(b_ptr + n)[None, :]
    mean = tl.sum(acc, axis=1, keep_dims=True) / GROUP
    d = acc - mean
    var = tl.sum(d * d, axis=1, keep_dims=True) / GROUP
    y = d / tl.sqrt(var + eps) * tl.load(g_ptr + n)[None, :] + tl.load(h_ptr + n)[None, :]
    y = tl.where(y > 0, y, y * slope)
    tl.store(y_ptr + m[:, None] * N + n[None, :], y + y, mask=(m < M)[:, None])


@case
def linear_group_norm_leaky_doubled():
    m, n, k, group = 3000, 1024, 520, 32
    x, w, b, g, h, y = f32(m, k), f32(n, k) / 20, f32(n), f32(n), f32(n), zeros(m, n, dtype="float32")
    launched = run(gemm_group_norm, (cdiv(m, 64), n // group), (x, w, b, g, h, y, m, n, k, 1e-5, 0.01), y, GROUP=group, BM=64, BK=32)
    return against(launched, lambda: 2 * F.leaky_relu(F.group_norm(F.linear(x, w, b), n // group, g, h)))


@triton.jit
def _mish(x):
    e = tl.exp(tl.minimum(x, 20.0))
    u = e * (e + 2.0)
    return x * (u / (u + 2.0))


@triton.jit
def linear_chain_persistent(x_ptr, w_ptr, b_ptr, r_ptr, y_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Swish, residual, doubled, clamped, mish: by programs that stay.
    tiles_n = tl.cdiv(N, BN)
    for tile in range(tl.program_id(0), tl.cdiv(M, BM) * tiles_n, tl.num_programs(0)):
        m, n = tile // tiles_n * BM + tl.arange(0, BM), tile % tiles_n * BN + tl.arange(0, BN)
        acc = tl.zeros((BM, BN), tl.float32)
        for k0 in range(0, K, BK):
            k = k0 + tl.arange(0, BK)
            x = tl.load(x_ptr + m[:, None] * K + k[None, :], mask=(m < M)[:, None] & (k < K)[None, :], other=0.0)
            w = tl.load(w_ptr + k[:, None] * N + n[None, :], mask=(n < N)[None, :] & (k < K)[:, None], other=0.0)
            acc = tl.dot(x, w, acc)
        ok = (m < M)[:, None] & (n < N)[None, :]
        acc += tl.load(b_ptr + n, mask=n < N, other=0.0).to(tl.float32)[None, :]
        acc = acc * tl.sigmoid(acc) + tl.load(r_ptr + m[:, None] * N + n[None, :], mask=ok, other=0.0)
        acc = tl.minimum(tl.maximum(acc * 2.0, -3.0), 3.0)
        tl.store(y_ptr + m[:, None] * N + n[None, :], _mish(acc).to(y_ptr.dtype.element_ty), mask=ok)


@case
def linear_swish_residual_clamp_mish_persistent():
    m, n, k = 2100, 1928, 904
    x, w, b, r, y = rand(m, k), rand(k, n) / 30, rand(n), rand(m, n), zeros(m, n)
    launched = run(linear_chain_persistent, (2 * PROGRAMS,), (x, w, b, r, y, m, n, k), y, BM=64, BN=128, BK=64)

    def reference():
        z = x.float() @ w.float() + b
        return F.mish((F.silu(z) + r).mul(2).clamp(-3, 3))

    return against(launched, reference)


@triton.jit
def linear_logsumexp(x_ptr, w_ptr, y_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # The logsumexp of a row as its tiles come, then leaky ReLU and GELU twice.
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    top = tl.full((BM,), float("-inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    for n0 in range(0, N, BN):
        n = n0 + tl.arange(0, BN)
        acc = tl.zeros((BM, BN), tl.float32)
        for k0 in range(0, K, BK):
            k = k0 + tl.arange(0, BK)
            x = tl.load(x_ptr + m[:, None] * K + k[None, :], mask=(m < M)[:, None], other=0.0)
            w = tl.load(w_ptr + n[:, None] * K + k[None, :], mask=(n < N)[:, None], other=0.0)
            acc = tl.dot(x, w.T, acc)
        acc = tl.where((n < N)[None, :], acc, float("-inf"))
        new = tl.maximum(top, tl.max(acc, axis=1))
        total = total * tl.exp(top - new) + tl.sum(tl.exp(acc - new[:, None]), axis=1)
        top = new
    y = top + tl.log(total) - 5.0
    for _ in tl.static_range(2):
        y = tl.where(y > 0, y, 0.01 * y)
    for _ in tl.static_range(2):
        y = y * 0.5 * (1.0 + tl.erf(y * 0.7071067811865476))
    tl.store(y_ptr + m, y, mask=m < M)


@case
def linear_logsumexp_leaky_gelu():
    m, n, k = 2000, 1000, 512
    x, w, y = rand(m, k, dtype="bfloat16"), rand(n, k, dtype="bfloat16") / 45, zeros(m, dtype="float32")
    launched = run(linear_logsumexp, (cdiv(m, 16),), (x, w, y, m, n, k), y, BM=16, BN=128, BK=64)

    def reference():
        z = torch.logsumexp(x.float() @ w.float().t(), 1) - 5
        return F.gelu(F.gelu(F.leaky_relu(F.leaky_relu(z))))

    return against(launched, reference)


@triton.jit
def quadratic_form(x_ptr, a_ptr, z_ptr, b_ptr, y_ptr, B, O, DI, DJ, BB: tl.constexpr, BI: tl.constexpr, BJ: tl.constexpr):
    # nn.Bilinear: for each output a product with its matrix, then products with the other input are added up.
    o = tl.program_id(1)
    m = tl.program_id(0) * BB + tl.arange(0, BB)
    total = tl.zeros((BB,), tl.float32)
    for j0 in range(0, DJ, BJ):
        j = j0 + tl.arange(0, BJ)
        acc = tl.zeros((BB, BJ), tl.float32)
        for i0 in range(0, DI, BI):
            i = i0 + tl.arange(0, BI)
            x = tl.load(x_ptr + m[:, None] * DI + i[None, :], mask=(m < B)[:, None] & (i < DI)[None, :], other=0.0)
            a = tl.load(a_ptr + (o * DI + i)[:, None] * DJ + j[None, :], mask=(i < DI)[:, None] & (j < DJ)[None, :], other=0.0)
            acc += tl.dot(x, a)
        z = tl.load(z_ptr + m[:, None] * DJ + j[None, :], mask=(m < B)[:, None] & (j < DJ)[None, :], other=0.0)
        total += tl.sum(acc * z, 1)
    tl.store(y_ptr + m * O + o, total + tl.load(b_ptr + o), mask=m < B)


@case
def bilinear_layer_of_two_inputs():
    b, o, di, dj = 600, 48, 200, 150
    x, a, z, bias, y = f32(b, di), f32(o, di, dj) / 14, f32(b, dj) / 12, f32(o), zeros(b, o, dtype="float32")
    launched = run(quadratic_form, (cdiv(b, 64), o), (x, a, z, bias, y, b, o, di, dj), y, BB=64, BI=32, BJ=64)
    return against(launched, lambda: F.bilinear(x, z, a, bias))


@triton.jit
def distances_l1(a_ptr, b_ptr, out_ptr, N, M, D, BN: tl.constexpr, BM: tl.constexpr, BD: tl.constexpr):
    n, m = tl.program_id(0) * BN + tl.arange(0, BN), tl.program_id(1) * BM + tl.arange(0, BM)
    acc = tl.zeros((BN, BM), tl.float32)
    for d0 in range(0, D, BD):
        d = d0 + tl.arange(0, BD)
        a = tl.load(a_ptr + n[:, None] * D + d[None, :], mask=(n < N)[:, None] & (d < D)[None, :], other=0.0)
        b = tl.load(b_ptr + m[:, None] * D + d[None, :], mask=(m < M)[:, None] & (d < D)[None, :], other=0.0)
        acc += tl.sum(tl.abs(a[:, None, :] - b[None, :, :]), axis=2)
    tl.store(out_ptr + n[:, None] * M + m[None, :], acc, mask=(n < N)[:, None] & (m < M)[None, :])


@case
def distances_of_pairs_l1_in_three_axes():
    n, m, d = 1000, 1100, 100
    a, b, out = f32(n, d), f32(m, d), zeros(n, m, dtype="float32")
    launched = run(distances_l1, (cdiv(n, 32), cdiv(m, 32)), (a, b, out, n, m, d), out, BN=32, BM=32, BD=8)
    return against(launched, lambda: torch.cdist(a, b, 1))


@triton.jit
def distances_l2_nearest(a_ptr, b_ptr, out_ptr, near_ptr, N, M, D: tl.constexpr, BN: tl.constexpr, BM: tl.constexpr):
    # Squares less twice the product; the least and its place go to a second result.
    n = tl.program_id(0) * BN + tl.arange(0, BN)
    d = tl.arange(0, D)
    a = tl.load(a_ptr + n[:, None] * D + d[None, :], mask=(n < N)[:, None], other=0.0)
    aa = tl.sum(a * a, axis=1)
    best = tl.full((BN,), float("inf"), tl.float32)
    where = tl.zeros((BN,), tl.int64)
    for m0 in range(0, M, BM):
        m = m0 + tl.arange(0, BM)
        b = tl.load(b_ptr + m[:, None] * D + d[None, :], mask=(m < M)[:, None], other=0.0)
        square = aa[:, None] + tl.sum(b * b, axis=1)[None, :] - 2.0 * tl.dot(a, tl.trans(b), input_precision="ieee")
        dist = tl.sqrt(tl.maximum(square, 0.0))
        tl.store(out_ptr + n[:, None] * M + m[None, :], dist, mask=(n < N)[:, None] & (m < M)[None, :])
        dist = tl.where((m < M)[None, :], dist, float("inf"))
        low, at = tl.min(dist, axis=1, return_indices=True)
        where = tl.where(low < best, m0 + at, where)
        best = tl.minimum(low, best)
    tl.store(near_ptr + n, where, mask=n < N)


@case
def distances_of_pairs_l2_and_the_nearest():
    n, m, d = 3000, 1500, 32
    a, b = ints(-9, 10, n, d).float() / 4, ints(-9, 10, m, d).float() / 4
    out, near = zeros(n, m, dtype="float32"), zeros(n, dtype="int64")
    launched = run(distances_l2_nearest, (cdiv(n, 32),), (a, b, out, near, n, m), (out, near), D=d, BN=32, BM=64)

    def reference():
        made = torch.cdist(a.double(), b.double())
        return made, made.argmin(1)

    return against(launched, reference)


@triton.jit
def style_gram(x_ptr, g_ptr, C, P, scale, BC: tl.constexpr, BP: tl.constexpr):
    # Features of a plane against each other, for losses of style.
    n = tl.program_id(2)
    i, j = tl.program_id(0) * BC + tl.arange(0, BC), tl.program_id(1) * BC + tl.arange(0, BC)
    acc = tl.zeros((BC, BC), tl.float32)
    for p0 in tl.range(0, P, BP, num_stages=3):
        p = p0 + tl.arange(0, BP)
        a = tl.load(x_ptr + (n * C + i)[:, None] * P + p[None, :], mask=(i < C)[:, None] & (p < P)[None, :], other=0.0)
        b = tl.load(x_ptr + (n * C + j)[:, None] * P + p[None, :], mask=(j < C)[:, None] & (p < P)[None, :], other=0.0)
        acc = tl.dot(a, tl.trans(b), acc, input_precision="ieee")
    tl.store(g_ptr + (n * C + i)[:, None] * C + j[None, :], acc * scale, mask=(i < C)[:, None] & (j < C)[None, :])


@case
def gram_matrices_of_style_ieee():
    n, c, p = 4, 100, 55 * 55
    x, g = f32(n, c, p), zeros(n, c, c, dtype="float32")
    grid = cdiv(c, 32), cdiv(c, 32), n
    launched = run(style_gram, grid, (x, g, c, p, 1.0 / (c * p) * 100), g, BC=32, BP=64)
    return against(launched, lambda: x.double() @ x.double().transpose(1, 2) / (c * p) * 100)


@triton.jit
def e5m2_product(a_desc, b_desc, scale_ptr, c_desc, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        acc = tl.dot(a_desc.load([m, k]), b_desc.load([n, k]).T, acc)
    c_desc.store([m, n], (acc * tl.load(scale_ptr)).to(tl.bfloat16))


@case
def matmul_of_e5m2_by_descriptors_128x32():
    m, n, k = 1536, 1504, 1840
    a, b, scale, c = f8(m, k, dtype="float8_e5m2"), f8(n, k, dtype="float8_e5m2"), uniform(1), zeros(m, n, dtype="bfloat16")
    of = lambda t, *block: TensorDescriptor(t, t.shape, t.stride(), list(block))  # noqa: E731
    args = of(a, 128, 128), of(b, 32, 128), scale, of(c, 128, 32), k
    launched = run(e5m2_product, (cdiv(m, 128), cdiv(n, 32)), args, c, BM=128, BN=32, BK=128)
    return against(launched, lambda: a.float() @ b.float().t() * scale)


@triton.jit
def dequantized_groups_product(x_ptr, q_ptr, s_ptr, z_ptr, y_ptr, M, N, K, G: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    # Bytes with a scale and a zero point for each group of G along K; a step of the loop is one group.
    m, n, g = tl.program_id(1) * BM + tl.arange(0, BM), tl.program_id(0) * BN + tl.arange(0, BN), tl.arange(0, G)
    acc = tl.zeros((BM, BN), tl.float32)
    for group in range(K // G):
        x = tl.load(x_ptr + m[:, None] * K + (group * G + g)[None, :], mask=(m < M)[:, None], other=0.0)
        q = tl.load(q_ptr + n[None, :] * K + (group * G + g)[:, None], mask=(n < N)[None, :], other=0)
        s = tl.load(s_ptr + n * (K // G) + group, mask=n < N, other=0.0)
        z = tl.load(z_ptr + n * (K // G) + group, mask=n < N, other=0)
        w = (q.to(tl.float32) - z.to(tl.float32)[None, :]) * s[None, :]
        acc += tl.dot(x, w.to(tl.float16))
    tl.store(y_ptr + m[:, None] * N + n[None, :], acc.to(tl.float16), mask=(m < M)[:, None] & (n < N)[None, :])


@case
def linear_of_bytes_dequantized_by_groups_of_64():
    m, n, k, g = 300, 3000, 2048, 64
    x, q, s = rand(m, k), ints(0, 255, n, k, dtype="uint8"), uniform(n, k // g) / 100
    z, y = ints(100, 150, n, k // g, dtype="uint8"), zeros(m, n)
    launched = run(dequantized_groups_product, (cdiv(n, 64), cdiv(m, 64)), (x, q, s, z, y, m, n, k), y, G=g, BM=64, BN=64)

    def reference():
        w = (q.view(n, -1, g).float() - z.float()[..., None]) * s[..., None]
        return x.float() @ w.view(n, k).t()

    return against(launched, reference)


@triton.jit
def matmul_min_subtract(x, w, b, y, M, N, K, constant, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m, n = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for k0 in range(0, K, BK):
        k = k0 + tl.arange(0, BK)
        u = tl.load(x + m[:, None] * K + k[None, :], mask=(m < M)[:, None] & (k < K)[None, :], other=0.0)
        v = tl.load(w + n[:, None] * K + k[None, :], mask=(n < N)[:, None] & (k < K)[None, :], other=0.0)
        acc += tl.dot(u, v.T, out_dtype=tl.float32)
    acc = tl.minimum(acc + tl.load(b + n, mask=n < N, other=0.0)[None, :], constant) - constant
    tl.store(y + m[:, None] * N + n[None, :], acc, mask=(m < M)[:, None] & (n < N)[None, :])


@case
def linear_min_subtract_128x64x16():
    m, n, k = 1000, 2500, 1500
    x, w, b, y = f32(m, k), f32(n, k) / 39, f32(n), zeros(m, n, dtype="float32")
    launched = run(matmul_min_subtract, (cdiv(m, 128), cdiv(n, 64)), (x, w, b, y, m, n, k, 0.75), y, BM=128, BN=64, BK=16, num_warps=4, num_stages=4)
    return against(launched, lambda: F.linear(x, w, b).clamp(max=0.75) - 0.75)


@triton.jit
def scores_of_whole_rows(q_ptr, k_ptr, v_ptr, o_ptr, S, scale, CAUSAL: tl.constexpr, BLOCK_S: tl.constexpr, BLOCK_M: tl.constexpr, D: tl.constexpr):
    # Attention as softmax(q k^T) v of whole rows, all keys in one tile.
    head = tl.program_id(1)
    m, s, d = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M), tl.arange(0, BLOCK_S), tl.arange(0, D)
    base = head * S * D
    q = tl.load(q_ptr + base + m[:, None] * D + d[None, :], mask=(m < S)[:, None], other=0.0)
    k = tl.load(k_ptr + base + s[:, None] * D + d[None, :], mask=(s < S)[:, None], other=0.0)
    scores = tl.dot(q, tl.trans(k)) * scale
    ok = (s < S)[None, :]
    if CAUSAL:
        ok = ok & (s[None, :] <= m[:, None])
    scores = tl.where(ok, scores, float("-inf"))
    p = tl.exp(scores - tl.max(scores, axis=1)[:, None])
    p = p / tl.sum(p, axis=1)[:, None]
    v = tl.load(v_ptr + base + s[:, None] * D + d[None, :], mask=(s < S)[:, None], other=0.0)
    tl.store(o_ptr + base + m[:, None] * D + d[None, :], tl.dot(p.to(v.dtype), v).to(o_ptr.dtype.element_ty), mask=(m < S)[:, None])


@case
def attention_of_whole_rows_of_500_keys():
    heads, s, d = 96, 500, 64
    q, k, v, o = rand(heads, s, d), rand(heads, s, d), rand(heads, s, d), zeros(heads, s, d)
    launched = run(scores_of_whole_rows, (cdiv(s, 16), heads), (q, k, v, o, s, 0.125), o, CAUSAL=True, BLOCK_S=512, BLOCK_M=16, D=d)
    return against(launched, lambda: F.scaled_dot_product_attention(q[None].float(), k[None].float(), v[None].float(), is_causal=True))


@triton.jit
def relu_attention(q_ptr, k_ptr, v_ptr, o_ptr, T, C, scale, HS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    # ReLU of masked scores in place of softmax; heads are columns of rows of all three.
    h, b = tl.program_id(1) % (C // HS), tl.program_id(1) // (C // HS)
    m, d = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, HS)
    q = tl.load(q_ptr + (b * T + m)[:, None] * 3 * C + h * HS + d[None, :], mask=(m < T)[:, None], other=0.0)
    acc = tl.zeros((BM, HS), tl.float32)
    for n0 in range(0, (tl.program_id(0) + 1) * BM, BN):
        n = n0 + tl.arange(0, BN)
        k = tl.load(k_ptr + (b * T + n)[:, None] * 3 * C + h * HS + d[None, :], mask=(n < T)[:, None], other=0.0)
        v = tl.load(v_ptr + (b * T + n)[:, None] * 3 * C + h * HS + d[None, :], mask=(n < T)[:, None], other=0.0)
        s = tl.dot(q, tl.trans(k)) * scale
        s = tl.where(n[None, :] <= m[:, None], tl.maximum(s, 0.0), 0.0)
        acc += tl.dot(s, v)
    tl.store(o_ptr + (b * T + m)[:, None] * C + h * HS + d[None, :], acc, mask=(m < T)[:, None])


@case
def attention_of_relu_scores_in_float():
    b, t, h, hs = 4, 700, 12, 64
    c = h * hs
    qkv, o = f32(b, t, 3 * c), zeros(b, t, c, dtype="float32")
    args = qkv, qkv[:, :, c:], qkv[:, :, 2 * c :], o, t, c, hs**-0.5
    launched = run(relu_attention, (cdiv(t, 64), b * h), args, o, HS=hs, BM=64, BN=32)

    def reference():
        q, k, v = (x.view(b, t, h, hs).transpose(1, 2) for x in qkv.split(c, 2))
        return ((q @ k.transpose(2, 3) * hs**-0.5).tril().relu() @ v).transpose(1, 2).reshape(b, t, c)

    return against(launched, reference)
