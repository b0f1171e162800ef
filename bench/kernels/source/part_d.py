"""Matrix products and attention."""
import triton
import triton.language as tl

from common import *

GE = "matrix products"
LI = "linear attention by chunks"
AT = "attention"


@triton.jit
def gemm_grouped_bias_silu(a_ptr, b_ptr, bias_ptr, c_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_cm,
                           stride_cn, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP_M: tl.constexpr):
    pid = tl.program_id(0)
    num_m = tl.cdiv(M, BM)
    num_n = tl.cdiv(N, BN)
    per_group = GROUP_M * num_n
    group = pid // per_group
    first_m = group * GROUP_M
    size_m = min(num_m - first_m, GROUP_M)
    pid_m = first_m + ((pid % per_group) % size_m)
    pid_n = (pid % per_group) // size_m
    rm = (pid_m * BM + tl.arange(0, BM)) % M
    rn = (pid_n * BN + tl.arange(0, BN)) % N
    rk = tl.arange(0, BK)
    A = a_ptr + rm[:, None] * stride_am + rk[None, :] * stride_ak
    B = b_ptr + rk[:, None] * stride_bk + rn[None, :] * stride_bn
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        a = tl.load(A, mask=rk[None, :] < K - k * BK, other=0.0)
        b = tl.load(B, mask=rk[:, None] < K - k * BK, other=0.0)
        acc = tl.dot(a, b, acc)
        A += BK * stride_ak
        B += BK * stride_bk
    om = pid_m * BM + tl.arange(0, BM)
    on = pid_n * BN + tl.arange(0, BN)
    acc += tl.load(bias_ptr + on, mask=on < N, other=0.0).to(tl.float32)[None, :]
    acc = acc * tl.sigmoid(acc)
    tl.store(c_ptr + om[:, None] * stride_cm + on[None, :] * stride_cn, acc.to(c_ptr.dtype.element_ty),
             mask=(om[:, None] < M) & (on[None, :] < N))


def gemm_args(dt, M, N, K, out=None, nt=False, std=0.3):
    return [P("a_ptr", dt, [M, K], randn(1, std)), P("b_ptr", dt, [N, K] if nt else [K, N], randn(2, std))]


def _():
    M, N, K = 1000, 11008, 4000
    case(GE, "gemm_grouped_bias_silu", "grouped ordering, modulo rows, K masks, bias and silu, 1000 x 11008 x 4000, bf16, both row major",
         [cdiv(M, 128) * cdiv(N, 128)],
         gemm_args("bf16", M, N, K) + [P("bias_ptr", "bf16", N, randn(3)), O("c_ptr", "bf16", [M, N]), I("M", M), I("N", N), I("K", K),
                                       I("stride_am", K), I("stride_ak", 1), I("stride_bk", N), I("stride_bn", 1), I("stride_cm", N),
                                       I("stride_cn", 1)], "c_ptr", dict(BM=128, BN=128, BK=64, GROUP_M=8), 8, 3, fl=2 * M * N * K,
         rtol=1.6e-2, atol=5e-2)
    M, N, K = 2048, 2048, 4096
    case(GE, "gemm_grouped_bias_silu", "the same kernel: f16, B column major, 64 x 256 tile, 4 warps, 4 stages", [M // 64 * N // 256],
         gemm_args("f16", M, N, K, nt=True) + [P("bias_ptr", "f16", N, randn(3)), O("c_ptr", "f16", [M, N]), I("M", M), I("N", N), I("K", K),
                                               I("stride_am", K), I("stride_ak", 1), I("stride_bk", 1), I("stride_bn", K),
                                               I("stride_cm", N), I("stride_cn", 1)], "c_ptr",
         dict(BM=64, BN=256, BK=32, GROUP_M=8), 4, 4, fl=2 * M * N * K, rtol=5e-3, atol=3e-2, name="gemm_grouped_nt_f16")


_()


@triton.jit
def gemm_splitk_atomic(a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_bn, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
                       SPLIT_K: tl.constexpr):
    pid_n = tl.program_id(0)
    pid_k = tl.program_id(1)
    rm = tl.arange(0, BM)
    rn = pid_n * BN + tl.arange(0, BN)
    rk = pid_k * BK + tl.arange(0, BK)
    A = a_ptr + rm[:, None] * stride_am + rk[None, :]
    B = b_ptr + rk[:, None] + rn[None, :] * stride_bn
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BK * SPLIT_K)):
        left = K - k * (BK * SPLIT_K)
        a = tl.load(A, mask=(rm[:, None] < M) & (rk[None, :] < left), other=0.0)
        b = tl.load(B, mask=(rn[None, :] < N) & (rk[:, None] < left), other=0.0)
        acc += tl.dot(a, b)
        A += BK * SPLIT_K
        B += BK * SPLIT_K
    tl.atomic_add(c_ptr + rm[:, None] * N + rn[None, :], acc, mask=(rm[:, None] < M) & (rn[None, :] < N), sem="relaxed")


@triton.jit
def gemv_m16(x_ptr, w_ptr, y_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # decode projection: a few rows padded to 16 against a large weight, [N, K]
    n = tl.program_id(0) * BN + tl.arange(0, BN)
    m = tl.arange(0, BM)
    k = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k0 in range(0, K, BK):
        x = tl.load(x_ptr + m[:, None] * K + k0 + k[None, :], mask=m[:, None] < M, other=0.0)
        w = tl.load(w_ptr + n[:, None] * K + k0 + k[None, :], mask=n[:, None] < N, other=0.0, eviction_policy="evict_first")
        acc = tl.dot(x, tl.trans(w), acc)
    tl.store(y_ptr + m[:, None] * N + n[None, :], acc.to(y_ptr.dtype.element_ty), mask=(m[:, None] < M) & (n[None, :] < N))


@triton.jit
def gemv_row_sum(w_ptr, x_ptr, y_ptr, N, K, BN: tl.constexpr, BK: tl.constexpr):
    # one token: no dot, a 2-D accumulator summed along axis 1 at the end
    n = tl.program_id(0) * BN + tl.arange(0, BN)
    acc = tl.zeros((BN, BK), dtype=tl.float32)
    for k0 in range(0, K, BK):
        k = k0 + tl.arange(0, BK)
        w = tl.load(w_ptr + n[:, None] * K + k[None, :], mask=(n[:, None] < N) & (k[None, :] < K), other=0.0)
        x = tl.load(x_ptr + k, mask=k < K, other=0.0).to(tl.float32)
        acc += w.to(tl.float32) * x[None, :]
    tl.store(y_ptr + n, tl.sum(acc, axis=1).to(y_ptr.dtype.element_ty), mask=n < N)


def _():
    M, N, K = 48, 14336, 4096
    case(GE, "gemm_splitk_atomic", "split K of 4, strided K blocks, f32 atomics, 48 rows of a 64-row tile, f16", [N // 128, 4],
         gemm_args("f16", M, N, K, nt=True) + [O("c_ptr", "f32", [M, N]), I("M", M), I("N", N), I("K", K), I("stride_am", K),
                                               I("stride_bn", K)], "c_ptr", dict(BM=64, BN=128, BK=64, SPLIT_K=4), 4, 4,
         fl=2 * M * N * K, rtol=1e-3, atol=2e-2)
    M, N, K = 5, 28672, 4096
    case(GE, "gemv_m16", "five rows padded to a 16-row dot, transposed weight [64, 128], bf16", [N // 64],
         [P("x_ptr", "bf16", [M, K], randn(1)), P("w_ptr", "bf16", [N, K], randn(2, 0.3)), O("y_ptr", "bf16", [M, N]), I("M", M), I("N", N),
          I("K", K)], "y_ptr", dict(BM=16, BN=64, BK=128), 4, 4, rtol=1.6e-2, atol=5e-2)
    N, K = 16384, 7000
    case(GE, "gemv_row_sum", "matrix-vector product without dots: [16, 512] accumulator, sum along axis 1, f16", [N // 16],
         [P("w_ptr", "f16", [N, K], randn(1, 0.3)), P("x_ptr", "f16", K, randn(2)), O("y_ptr", "f16", N), I("N", N), I("K", K)], "y_ptr",
         dict(BN=16, BK=512), 8, 2, rtol=5e-3, atol=2e-2)


_()


@triton.jit
def gemm_w4_interleaved(a_ptr, q_ptr, s_ptr, z_ptr, c_ptr, M, N, K, GROUP: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
                        BK: tl.constexpr, SPLIT_K: tl.constexpr):
    # AWQ: eight 4-bit columns to an int32 in the order 0 4 1 5 2 6 3 7, unpacked by interleaves and shifts
    pid_m = tl.program_id(0)
    pid_n = tl.program_id(1)
    pid_k = tl.program_id(2)
    rm = pid_m * BM + tl.arange(0, BM)
    rn = pid_n * BN + tl.arange(0, BN)
    rq = pid_n * (BN // 8) + tl.arange(0, BN // 8)
    order = (tl.arange(0, 2) * 4)[None, :] + tl.arange(0, 4)[:, None]
    shifts = tl.reshape(order, (8, )) * 4
    shifts = tl.reshape(tl.broadcast_to(shifts[None, :], (BN // 8, 8)), (BN, ))
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k0 in range(pid_k * BK, K, BK * SPLIT_K):
        rk = k0 + tl.arange(0, BK)
        a = tl.load(a_ptr + rm[:, None] * K + rk[None, :], mask=rm[:, None] < M, other=0.0)
        q = tl.load(q_ptr + rk[:, None] * (N // 8) + rq[None, :])
        q = tl.interleave(q, q)
        q = tl.interleave(q, q)
        q = tl.interleave(q, q)
        w = (q >> shifts[None, :]) & 0xf
        g = k0 // GROUP
        z = tl.load(z_ptr + g * (N // 8) + rq)
        z = tl.interleave(z, z)
        z = tl.interleave(z, z)
        z = tl.interleave(z, z)
        z = (z >> shifts) & 0xf
        s = tl.load(s_ptr + g * N + rn)
        b = ((w - z[None, :]) * s[None, :]).to(a.dtype)
        acc = tl.dot(a, b, acc)
    tl.store(c_ptr + (pid_k * M + rm[:, None]) * N + rn[None, :], acc.to(c_ptr.dtype.element_ty), mask=rm[:, None] < M)


@triton.jit
def gemm_i8_weight_groups(a_ptr, b_ptr, s_ptr, c_ptr, M, N, K, GROUP: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
                          BK: tl.constexpr):
    # weight-only int8 with scales per group of K, [N, K]: dequantized operand of the dot
    pid_n = tl.program_id(0)
    pid_m = tl.program_id(1)
    rm = pid_m * BM + tl.arange(0, BM)
    rn = pid_n * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        rk = k * BK + tl.arange(0, BK)
        a = tl.load(a_ptr + rm[:, None] * K + rk[None, :], mask=rm[:, None] < M, other=0.0)
        b = tl.load(b_ptr + rn[None, :] * K + rk[:, None], mask=rn[None, :] < N, other=0)
        s = tl.load(s_ptr + rn[None, :] * (K // GROUP) + (rk // GROUP)[:, None], mask=rn[None, :] < N, other=0.0)
        acc = tl.dot(a, (b.to(tl.float32) * s).to(a.dtype), acc)
    tl.store(c_ptr + rm[:, None] * N + rn[None, :], acc.to(c_ptr.dtype.element_ty), mask=(rm[:, None] < M) & (rn[None, :] < N))


@triton.jit
def gemm_fp8_rowwise(a_ptr, b_ptr, sa_ptr, sb_ptr, bias_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
                     GROUP_M: tl.constexpr):
    pid = tl.program_id(0)
    pid_m, pid_n = tl.swizzle2d(pid // tl.cdiv(N, BN), pid % tl.cdiv(N, BN), tl.cdiv(M, BM), tl.cdiv(N, BN), GROUP_M)
    rm = pid_m * BM + tl.arange(0, BM)
    rn = pid_n * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        a = tl.load(a_ptr + rm[:, None] * K + k + rk[None, :], mask=rm[:, None] < M, other=0.0)
        b = tl.load(b_ptr + rn[None, :] * K + k + rk[:, None], mask=rn[None, :] < N, other=0.0)
        acc = tl.dot(a, b, acc, out_dtype=tl.float32)
    sa = tl.load(sa_ptr + rm, mask=rm < M, other=0.0)
    sb = tl.load(sb_ptr + rn, mask=rn < N, other=0.0)
    bias = tl.load(bias_ptr + rn, mask=rn < N, other=0.0).to(tl.float32)
    acc = acc * sa[:, None] * sb[None, :] + bias[None, :]
    tl.store(c_ptr + rm[:, None] * N + rn[None, :], acc.to(c_ptr.dtype.element_ty), mask=(rm[:, None] < M) & (rn[None, :] < N))


def _():
    M, N, K, SK = 32, 13824, 5120, 4
    case(GE, "gemm_w4_interleaved", "AWQ int4 weights by interleave and shifts with zeros, split K into slices, f16", [1, N // 128, SK],
         [P("a_ptr", "f16", [M, K], randn(1)), P("q_ptr", "i32", [K, N // 8], randint(2, -2**31, 2**31 - 1)),
          P("s_ptr", "f16", [K // 128, N], uniform(3, 0.002, 0.01)), P("z_ptr", "i32", [K // 128, N // 8], randint(4, -2**31, 2**31 - 1)),
          O("c_ptr", "f16", [SK, M, N]), I("M", M), I("N", N), I("K", K)], "c_ptr", dict(GROUP=128, BM=32, BN=128, BK=64, SPLIT_K=SK), 4, 3,
         fl=2 * M * N * K, rtol=5e-3, atol=5e-3)
    M, N, K = 512, 8192, 4096
    case(GE, "gemm_i8_weight_groups", "int8 weights [N, K] with scales per 64 of K, dequantized to bf16 before the dot", [N // 128, M // 64],
         [P("a_ptr", "bf16", [M, K], randn(1)), P("b_ptr", "i8", [N, K], randint(2, -127, 128)),
          P("s_ptr", "f32", [N, K // 64], uniform(3, 0.002, 0.01)), O("c_ptr", "bf16", [M, N]), I("M", M), I("N", N), I("K", K)], "c_ptr",
         dict(GROUP=64, BM=64, BN=128, BK=64), 4, 3, fl=2 * M * N * K, rtol=1.6e-2, atol=0.25)
    M, N, K = 4000, 6144, 4096
    case(GE, "gemm_fp8_rowwise", "fp8 with row and column scales and bias, swizzled grid, 128 x 256 x 128, 8 warps", [cdiv(M, 128) * N // 256],
         [P("a_ptr", "f8e4m3", [M, K], randn(1)), P("b_ptr", "f8e4m3", [N, K], randn(2)), P("sa_ptr", "f32", M, uniform(3, 0.01, 0.1)),
          P("sb_ptr", "f32", N, uniform(4, 0.01, 0.1)), P("bias_ptr", "bf16", N, randn(5)), O("c_ptr", "bf16", [M, N]), I("M", M),
          I("N", N), I("K", K)], "c_ptr", dict(BM=128, BN=256, BK=128, GROUP_M=8), 8, 3, fl=2 * M * N * K, rtol=2e-2, atol=1e-2)


_()


@triton.jit
def lora_shrink(x_ptr, w_ptr, out_ptr, id_ptr, order_ptr, start_ptr, count_ptr, K, R, scale, BM: tl.constexpr, BN: tl.constexpr,
                BK: tl.constexpr, SPLIT_K: tl.constexpr):
    pid_sk = tl.program_id(0)
    pid_m = tl.program_id(1)
    lora = tl.program_id(2)
    which = tl.load(id_ptr + lora)
    if which == -1:
        return
    count = tl.load(count_ptr + lora)
    if pid_m * BM >= count:
        return
    m = tl.arange(0, BM)
    live = m < count - pid_m * BM
    rows = tl.load(order_ptr + tl.load(start_ptr + lora) + pid_m * BM + m, mask=live, other=0)
    n = tl.arange(0, BN)
    k = pid_sk * BK + tl.arange(0, BK)
    a = x_ptr + rows[:, None] * K + k[None, :]
    b = w_ptr + which * R * K + n[None, :] * K + k[:, None]
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for i in range(0, tl.cdiv(K, BK * SPLIT_K)):
        left = K - i * (BK * SPLIT_K)
        at = tl.load(a, mask=k[None, :] < left, other=0.0)
        bt = tl.load(b, mask=(k[:, None] < left) & (n[None, :] < R), other=0.0)
        acc += tl.dot(at, bt)
        a += BK * SPLIT_K
        b += BK * SPLIT_K
    acc *= scale
    tl.atomic_add(out_ptr + rows[:, None] * R + n[None, :], acc, mask=live[:, None] & (n[None, :] < R), sem="relaxed")


@triton.jit
def lora_expand(x_ptr, w_ptr, out_ptr, id_ptr, order_ptr, start_ptr, count_ptr, N, R, BM: tl.constexpr, BN: tl.constexpr,
                BR: tl.constexpr):
    pid_n = tl.program_id(0)
    pid_m = tl.program_id(1)
    lora = tl.program_id(2)
    which = tl.load(id_ptr + lora)
    if which == -1:
        return
    count = tl.load(count_ptr + lora)
    if pid_m * BM >= count:
        return
    m = tl.arange(0, BM)
    live = m < count - pid_m * BM
    rows = tl.load(order_ptr + tl.load(start_ptr + lora) + pid_m * BM + m, mask=live, other=0)
    n = pid_n * BN + tl.arange(0, BN)
    r = tl.arange(0, BR)
    x = tl.load(x_ptr + rows[:, None] * R + r[None, :], mask=live[:, None] & (r[None, :] < R), other=0.0)
    w = tl.load(w_ptr + (which * N + n[None, :]) * R + r[:, None], mask=(n[None, :] < N) & (r[:, None] < R), other=0.0)
    acc = tl.dot(x.to(w.dtype), w)
    mask = live[:, None] & (n[None, :] < N)
    at = rows[:, None] * N + n[None, :]
    old = tl.load(out_ptr + at, mask=mask, other=0.0)
    tl.store(out_ptr + at, (acc + old.to(tl.float32)).to(out_ptr.dtype.element_ty), mask=mask)


@triton.jit
def moe_gemm_fp8_blocks(a_ptr, b_ptr, c_ptr, as_ptr, bs_ptr, w_ptr, sorted_ptr, expert_ptr, npad_ptr, N, K, num_valid, stride_be,
                        TOPK: tl.constexpr, MUL: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP_M: tl.constexpr):
    pid = tl.program_id(0)
    npad = tl.load(npad_ptr)
    num_n = tl.cdiv(N, BN)
    group = pid // (GROUP_M * num_n)
    first = group * GROUP_M
    size = min(tl.cdiv(npad, BM) - first, GROUP_M)
    pid_m = first + (pid % (GROUP_M * num_n)) % size
    pid_n = (pid % (GROUP_M * num_n)) // size
    if pid_m * BM >= npad:
        return
    token = tl.load(sorted_ptr + pid_m * BM + tl.arange(0, BM)).to(tl.int64)
    live = token < num_valid
    e = tl.load(expert_ptr + pid_m).to(tl.int64)
    rn = (pid_n * BN + tl.arange(0, BN)).to(tl.int64) % N
    rk = tl.arange(0, BK)
    a = a_ptr + (token // TOPK)[:, None] * K + rk[None, :]
    b = b_ptr + e * stride_be + rk[:, None] + rn[None, :] * K
    sa = as_ptr + (token // TOPK) * (K // 128)
    sb = bs_ptr + e * (N // 128) * (K // 128) + (rn // 128) * (K // 128)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        x = tl.load(a, mask=live[:, None], other=0.0)
        y = tl.load(b)
        s = tl.load(sa + k * BK // 128, mask=live, other=0.0)
        t = tl.load(sb + k * BK // 128)
        acc += tl.dot(x, y) * s[:, None] * t[None, :]
        a += BK
        b += BK
    if MUL:
        acc = acc * tl.load(w_ptr + token, mask=live, other=0.0)[:, None]
    on = pid_n * BN + tl.arange(0, BN)
    tl.store(c_ptr + token[:, None] * N + on[None, :], acc.to(c_ptr.dtype.element_ty), mask=live[:, None] & (on[None, :] < N))


def _():
    T, K, R, L = 8192, 5120, 16, 8
    idx = [P("id_ptr", "i32", L, arange(0, 3, L)), P("order_ptr", "i32", T, arange(7, 37, T)), P("start_ptr", "i32", L, arange(0, T // L)),
           P("count_ptr", "i32", L, randint(9, 900, T // L + 1))]
    case(GE, "lora_shrink", "gathered rows times rank-16 adapters, split K of 4, early returns, f32 atomics, bf16", [4, cdiv(T // L, 32), L],
         [P("x_ptr", "bf16", [T, K], randn(1)), P("w_ptr", "bf16", [L, R, K], randn(2, 0.1)), O("out_ptr", "f32", [T, R])] + idx +
         [I("K", K), I("R", R), F("scale", 0.5)], "out_ptr", dict(BM=32, BN=16, BK=128, SPLIT_K=4), 4, 3, atol=2e-2)
    N = 5120
    case(GE, "lora_expand", "rank 16 to 5120 added to gathered rows, f32 input cast to bf16, single dot", [N // 128, cdiv(T // L, 64), L],
         [P("x_ptr", "f32", [T, R], randn(1)), P("w_ptr", "bf16", [L, N, R], randn(2, 0.1)), P("out_ptr", "bf16", [T, N], randn(3))] + idx +
         [I("N", N), I("R", R)], "out_ptr", dict(BM=64, BN=128, BR=16), 4, 2, nb=4 * T * N, rtol=1.6e-2, atol=2e-2)
    T, TOPK, E, N, K, BM = 4096, 4, 16, 4096, 2048, 64
    S_ = T * TOPK
    case(GE, "moe_gemm_fp8_blocks", "fused MoE product, fp8 with 128 x 128 block scales, gathered rows, weights of the routing", [S_ // BM * N // 128],
         [P("a_ptr", "f8e4m3", [T, K], randn(1)), P("b_ptr", "f8e4m3", [E, N, K], randn(2)), O("c_ptr", "bf16", [S_, N]),
          P("as_ptr", "f32", [T, K // 128], uniform(3, 0.02, 0.06)), P("bs_ptr", "f32", [E, N // 128, K // 128], uniform(4, 0.02, 0.06)),
          P("w_ptr", "f32", S_, uniform(5)), P("sorted_ptr", "i32", S_, arange(5, 1021, S_)), P("expert_ptr", "i32", S_ // BM, arange(0, 1, E)),
          P("npad_ptr", "i32", 1, full(S_)), I("N", N), I("K", K), I("num_valid", S_ - 24), I("stride_be", N * K)], "c_ptr",
         dict(TOPK=TOPK, MUL=True, BM=BM, BN=128, BK=128, GROUP_M=16), 4, 4, fl=2 * S_ * N * K, rtol=2e-2, atol=5e-3)


_()


@triton.jit
def gram_tall(x_ptr, out_ptr, T, D, rows_per_program, BD: tl.constexpr, BK: tl.constexpr):
    # x^T x of a tall matrix, rows split over programs, atomics into a small result
    i = tl.program_id(0) * BD + tl.arange(0, BD)
    j = tl.program_id(1) * BD + tl.arange(0, BD)
    start = tl.program_id(2) * rows_per_program
    acc = tl.zeros((BD, BD), dtype=tl.float32)
    for k0 in range(start, min(start + rows_per_program, T), BK):
        k = k0 + tl.arange(0, BK)
        a = tl.load(x_ptr + k[:, None] * D + i[None, :], mask=k[:, None] < T, other=0.0)
        b = tl.load(x_ptr + k[:, None] * D + j[None, :], mask=k[:, None] < T, other=0.0)
        acc = tl.dot(tl.trans(a), b, acc)
    tl.atomic_add(out_ptr + i[:, None] * D + j[None, :], acc)


@triton.jit
def newton_schulz_quintic(a_ptr, c_ptr, M, alpha, beta, BM: tl.constexpr, BK: tl.constexpr):
    # c = alpha * a + beta * a @ a^T for a symmetric a: blocks above the diagonal are stored twice
    b = tl.program_id(2)
    pid_m = tl.program_id(0)
    pid_n = tl.program_id(1)
    if pid_m > pid_n:
        return
    rm = pid_m * BM + tl.arange(0, BM)
    rn = pid_n * BM + tl.arange(0, BM)
    rk = tl.arange(0, BK)
    base = a_ptr + b * M * M
    acc = tl.zeros((BM, BM), dtype=tl.float32)
    for k in range(0, tl.cdiv(M, BK)):
        left = M - k * BK
        x = tl.load(base + rm[:, None] * M + k * BK + rk[None, :], mask=(rm[:, None] < M) & (rk[None, :] < left), other=0.0)
        y = tl.load(base + rn[:, None] * M + k * BK + rk[None, :], mask=(rn[:, None] < M) & (rk[None, :] < left), other=0.0)
        acc = tl.dot(x, y.T, acc)
    mask = (rm[:, None] < M) & (rn[None, :] < M)
    old = tl.load(base + rm[:, None] * M + rn[None, :], mask=mask, other=0.0).to(tl.float32)
    out = (acc * beta + old * alpha).to(c_ptr.dtype.element_ty)
    tl.store(c_ptr + b * M * M + rm[:, None] * M + rn[None, :], out, mask=mask)
    if pid_m < pid_n:
        tl.store(c_ptr + b * M * M + rn[:, None] * M + rm[None, :], out.T, mask=(rn[:, None] < M) & (rm[None, :] < M))


@triton.jit
def linear_log_sum_exp(x_ptr, w_ptr, label_ptr, part_ptr, hit_ptr, T, V, D, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # fused head and cross entropy: the logits tile never leaves; log-sum-exp per block of the vocabulary
    pid_m = tl.program_id(0)
    pid_n = tl.program_id(1)
    rm = pid_m * BM + tl.arange(0, BM)
    rn = pid_n * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k0 in range(0, D, BK):
        k = k0 + tl.arange(0, BK)
        x = tl.load(x_ptr + rm[:, None] * D + k[None, :], mask=(rm[:, None] < T) & (k[None, :] < D), other=0.0)
        w = tl.load(w_ptr + rn[:, None] * D + k[None, :], mask=(rn[:, None] < V) & (k[None, :] < D), other=0.0)
        acc = tl.dot(x, w.T, acc)
    z = tl.where(rn[None, :] < V, 30.0 * (2 * tl.sigmoid(2 * (acc / 30.0)) - 1), -float("inf"))
    m = tl.max(z, 1)
    lse = m + tl.log(tl.sum(tl.exp(z - m[:, None]), axis=1))
    label = tl.load(label_ptr + rm, mask=rm < T, other=-1)
    hit = rn[None, :] == label[:, None]
    tl.atomic_add(hit_ptr + rm, tl.sum(tl.where(hit, z, 0.0), axis=1), mask=rm < T)
    tl.store(part_ptr + rm * tl.num_programs(1) + pid_n, lse, mask=rm < T)


@triton.jit
def conv2d_wgrad(dy_ptr, x_ptr, dw_ptr, N, H, W, C, KO, P_, Q, split, R: tl.constexpr, S: tl.constexpr, STRIDE: tl.constexpr,
                 PAD: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # weight gradient of a channels-last convolution as an implicit product: pixels are the inner dimension, split and added
    ko = tl.program_id(0) * BM + tl.arange(0, BM)
    rsc = tl.program_id(1) * BN + tl.arange(0, BN)
    c = rsc % C
    r = rsc // C // S
    s = rsc // C % S
    pixels = N * P_ * Q
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for p0 in range(tl.program_id(2) * BK, pixels, BK * split):
        p = p0 + tl.arange(0, BK)
        q = p % Q
        pp = p // Q % P_
        n = p // (P_ * Q)
        dy = tl.load(dy_ptr + p[:, None] * KO + ko[None, :], mask=(p[:, None] < pixels) & (ko[None, :] < KO), other=0.0)
        h = pp[:, None] * STRIDE - PAD + r[None, :]
        w = q[:, None] * STRIDE - PAD + s[None, :]
        ok = (p[:, None] < pixels) & (h >= 0) & (h < H) & (w >= 0) & (w < W) & (rsc[None, :] < R * S * C)
        x = tl.load(x_ptr + ((n[:, None] * H + h) * W + w) * C + c[None, :], mask=ok, other=0.0)
        acc = tl.dot(tl.trans(dy), x, acc)
    tl.atomic_add(dw_ptr + ko[:, None] * (R * S * C) + rsc[None, :], acc, mask=(ko[:, None] < KO) & (rsc[None, :] < R * S * C))


def _():
    T, D = 262144, 128
    case(GE, "gram_tall", "x^T x of 262144 x 128: transposed operand, long K split over programs, atomics, bf16", [2, 2, 128],
         [P("x_ptr", "bf16", [T, D], randn(1, 0.1)), O("out_ptr", "f32", [D, D]), I("T", T), I("D", D), I("rows_per_program", T // 128)],
         "out_ptr", dict(BD=64, BK=64), 4, 4, nb=2 * T * D, fl=2 * T * D * D, atol=2e-2)
    B, M = 4, 2000
    case(GE, "newton_schulz_quintic", "symmetric product a a^T with early return below the diagonal, tile stored twice (transposed), bf16",
         [cdiv(M, 128), cdiv(M, 128), B], [P("a_ptr", "bf16", [B, M, M], randn(1, 0.1)), O("c_ptr", "bf16", [B, M, M]), I("M", M),
                                           F("alpha", -4.775), F("beta", 2.0315)], "c_ptr", dict(BM=128, BK=64), 8, 4, fl=B * M * M * M,
         rtol=2e-2, atol=1e-2)
    T, V, D = 2048, 32000, 1000
    case(GE, "linear_log_sum_exp", "vocabulary head with capped logits reduced to log-sum-exp in the epilogue, K 1000, bf16", [T // 128, cdiv(V, 256)],
         [P("x_ptr", "bf16", [T, D], randn(1, 0.5)), P("w_ptr", "bf16", [V, D], randn(2, 0.2)), P("label_ptr", "i64", T, randint(3, 0, V)),
          O("part_ptr", "f32", [T, cdiv(V, 256)]), O("hit_ptr", "f32", T), I("T", T), I("V", V), I("D", D)], "part_ptr hit_ptr",
         dict(BM=128, BN=256, BK=64), 8, 3, fl=2 * T * V * D, rtol=5e-3, atol=5e-3)
    N, H, W, C, KO = 32, 56, 56, 96, 192
    case(GE, "conv2d_wgrad", "weight gradient of a 3 x 3 stride-2 convolution NHWC, gathered operand, transposed other, atomics, f16",
         [cdiv(KO, 64), cdiv(9 * C, 128), 16], [P("dy_ptr", "f16", [N, 28, 28, KO], randn(1, 0.1)), P("x_ptr", "f16", [N, H, W, C], randn(2, 0.3)),
                                              O("dw_ptr", "f32", [KO, 3, 3, C]), I("N", N), I("H", H), I("W", W), I("C", C), I("KO", KO),
                                              I("P_", 28), I("Q", 28), I("split", 16)], "dw_ptr",
         dict(R=3, S=3, STRIDE=2, PAD=1, BM=64, BN=128, BK=64), 4, 3, fl=2 * N * 28 * 28 * KO * 9 * C, rtol=2e-3, atol=1e-2)


_()
