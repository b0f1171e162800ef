"""Marinas: products of matrices as libraries ship them: laid every way, split, grouped, persistent, of bytes and of fewer bits, with what is done to the sums before they are put down."""

import torch
import torch.nn.functional as F
import triton
import triton.language as tl

from .common import against, arange, case, cdiv, cleared, f8, f32, ints, rand, run, uniform, zeros


@triton.jit
def _swizzled(pid, num_m, num_n, GROUP: tl.constexpr):
    width = GROUP * num_n
    first = pid // width * GROUP
    size = min(num_m - first, GROUP)
    return first + (pid % width) % size, (pid % width) // size


@triton.jit
def tn_linear_silu_kernel(
    a_ptr, b_ptr, bias_ptr, c_ptr, M, N, K, stride_ak, stride_am, stride_bk, stride_bn, stride_cm, stride_cn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr, HAS_BIAS: tl.constexpr,
):
    # silu(A' B + bias) with A by columns: the tutorial's pointers, with its remainders.
    pid_m, pid_n = _swizzled(tl.program_id(0), tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N), GROUP_M)
    offs_m = (pid_m * BLOCK_M + tl.arange(0, BLOCK_M)) % M
    offs_n = (pid_n * BLOCK_N + tl.arange(0, BLOCK_N)) % N
    offs_k = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + offs_k[:, None] * stride_ak + offs_m[None, :] * stride_am
    b_ptrs = b_ptr + offs_k[:, None] * stride_bk + offs_n[None, :] * stride_bn
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BLOCK_K)):
        left = K - k * BLOCK_K
        a = tl.load(a_ptrs, mask=offs_k[:, None] < left, other=0.0)
        b = tl.load(b_ptrs, mask=offs_k[:, None] < left, other=0.0)
        acc = tl.dot(tl.trans(a), b, acc)
        a_ptrs += BLOCK_K * stride_ak
        b_ptrs += BLOCK_K * stride_bk
    if HAS_BIAS:
        acc += tl.load(bias_ptr + offs_n)[None, :].to(tl.float32)
    acc = acc * tl.sigmoid(acc)
    cm = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    cn = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    c_ptrs = c_ptr + cm[:, None] * stride_cm + cn[None, :] * stride_cn
    tl.store(c_ptrs, acc.to(c_ptr.dtype.element_ty), mask=(cm[:, None] < M) & (cn[None, :] < N))


@case
def marina_of_columns_first_and_silu(m=2000, n=2816, k=2300):
    a, b, bias, c = rand(k, m), rand(k, n), rand(n), zeros(m, n)
    args = a, b, bias, c, m, n, k, *a.stride(), *b.stride(), *c.stride()
    flags = dict(BLOCK_M=128, BLOCK_N=128, BLOCK_K=32, GROUP_M=8, HAS_BIAS=True)
    launched = run(tn_linear_silu_kernel, (cdiv(m, 128) * cdiv(n, 128),), args, c, num_warps=4, num_stages=4, **flags)
    return against(launched, lambda: F.silu(a.float().t() @ b.float() + bias.float()))


@triton.jit
def persistent_linear_residual_kernel(x_ptr, w_ptr, bias_ptr, res_ptr, y_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr, NUM_SMS: tl.constexpr):
    # y = residual + x W' + b, by as many programs as there are processors; one flat loop over tiles and K.
    start = tl.program_id(0)
    num_m = tl.cdiv(M, BM)
    num_n = tl.cdiv(N, BN)
    k_tiles = tl.cdiv(K, BK)
    tiles = num_m * num_n
    mine = tiles // NUM_SMS
    if start < tiles % NUM_SMS:
        mine += 1
    tile = start - NUM_SMS
    ki = -1
    pid_m = 0
    pid_n = 0
    offs_k = tl.arange(0, BK)
    rm = tl.arange(0, BM)
    rn = tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for _ in range(0, k_tiles * mine):
        ki = tl.where(ki == k_tiles - 1, 0, ki + 1)
        if ki == 0:
            tile += NUM_SMS
            pid_m, pid_n = _swizzled(tile, num_m, num_n, GROUP)
            rm = pid_m * BM + tl.arange(0, BM)
            rn = pid_n * BN + tl.arange(0, BN)
        k = ki * BK + offs_k
        x = tl.load(x_ptr + rm[:, None] * K + k[None, :], mask=(rm[:, None] < M) & (k[None, :] < K), other=0.0)
        w = tl.load(w_ptr + rn[:, None] * K + k[None, :], mask=(rn[:, None] < N) & (k[None, :] < K), other=0.0)
        acc = tl.dot(x, w.T, acc)
        if ki == k_tiles - 1:
            ok = (rm[:, None] < M) & (rn[None, :] < N)
            at = rm[:, None] * N + rn[None, :]
            bias = tl.load(bias_ptr + rn, mask=rn < N, other=0.0).to(tl.float32)
            res = tl.load(res_ptr + at, mask=ok, other=0.0).to(tl.float32)
            tl.store(y_ptr + at, (acc + bias[None, :] + res).to(tl.bfloat16), mask=ok)
            acc = tl.zeros((BM, BN), dtype=tl.float32)


@case
def marina_of_programs_that_stay(m=3000, n=2560, k=1536):
    x, w, bias = rand(m, k, dtype="bfloat16"), rand(n, k, dtype="bfloat16"), rand(n, dtype="bfloat16")
    res, y = rand(m, n, dtype="bfloat16"), zeros(m, n, dtype="bfloat16")
    flags = dict(BM=128, BN=128, BK=64, GROUP=8, NUM_SMS=132)
    launched = run(persistent_linear_residual_kernel, (132,), (x, w, bias, res, y, m, n, k), y, num_warps=8, num_stages=3, **flags)
    return against(launched, lambda: x.float() @ w.float().t() + bias.float() + res.float())


@triton.jit
def splitk_nn_atomic_kernel(A, B, C, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, SPLIT_K: tl.constexpr, EVEN_K: tl.constexpr):
    # Few rows and columns, long sums: parts of K lie interleaved, and parts are added in memory.
    pid = tl.program_id(0)
    pid_z = tl.program_id(1)
    grid_n = tl.cdiv(N, BLOCK_N)
    pid_m = pid // grid_n
    pid_n = pid % grid_n
    rm = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    rn = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    ram = tl.max_contiguous(tl.multiple_of(rm % M, BLOCK_M), BLOCK_M)
    rbn = tl.max_contiguous(tl.multiple_of(rn % N, BLOCK_N), BLOCK_N)
    rk = pid_z * BLOCK_K + tl.arange(0, BLOCK_K)
    A += ram[:, None] * K + rk[None, :]
    B += rk[:, None] * N + rbn[None, :]
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BLOCK_K * SPLIT_K)):
        if EVEN_K:
            a = tl.load(A)
            b = tl.load(B)
        else:
            left = K - k * (BLOCK_K * SPLIT_K)
            a = tl.load(A, mask=rk[None, :] < left, other=0.0)
            b = tl.load(B, mask=rk[:, None] < left, other=0.0)
        acc += tl.dot(a, b, out_dtype=tl.float32)
        A += BLOCK_K * SPLIT_K
        B += BLOCK_K * SPLIT_K * N
    C += rm[:, None] * N + rn[None, :]
    tl.atomic_add(C, acc, mask=(rm < M)[:, None] & (rn < N)[None, :], sem="relaxed")


@case
def marina_of_long_sums_in_eight(m=256, n=1024, k=16384, even=True):
    a, b, c = rand(m, k), rand(k, n), zeros(m, n, dtype="float32")
    flags = dict(BLOCK_M=64, BLOCK_N=128, BLOCK_K=64, SPLIT_K=8, EVEN_K=even)
    launched = run(splitk_nn_atomic_kernel, (cdiv(m, 64) * cdiv(n, 128), 8), (a, b, c, m, n, k), c, num_warps=4, num_stages=4, **flags)
    return against(cleared(launched, c), lambda: a.float() @ b.float())


@triton.jit
def w8a8_residual_gelu_kernel(
    a_ptr, b_ptr, sa_ptr, sb_ptr, bias_ptr, res_ptr, out_ptr, M, N, K, stride_am, stride_bn, stride_cm, ACT: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):
    # Bytes by bytes with scales of tokens and of channels; a bias, tanh's GELU and a residual.
    mb = tl.program_id(1)
    nb = tl.program_id(0)
    a_blk = tl.make_block_ptr(a_ptr, (M, K), (stride_am, 1), (mb * BM, 0), (BM, BK), (1, 0))
    b_blk = tl.make_block_ptr(b_ptr, (K, N), (1, stride_bn), (0, nb * BN), (BK, BN), (0, 1))
    acc = tl.zeros((BM, BN), dtype=tl.int32)
    for _ in range(0, K, BK):
        a = tl.load(a_blk, boundary_check=(0, 1), padding_option="zero")
        b = tl.load(b_blk, boundary_check=(0, 1), padding_option="zero")
        acc += tl.dot(a, b)
        a_blk = tl.advance(a_blk, (0, BK))
        b_blk = tl.advance(b_blk, (BK, 0))
    rm = mb * BM + tl.arange(0, BM)
    rn = nb * BN + tl.arange(0, BN)
    sa = tl.load(sa_ptr + rm, mask=rm < M, other=0.0)
    sb = tl.load(sb_ptr + rn, mask=rn < N, other=0.0)
    y = acc.to(tl.float32) * sa[:, None] * sb[None, :]
    y += tl.load(bias_ptr + rn, mask=rn < N, other=0.0).to(tl.float32)[None, :]
    if ACT == "gelu":
        z = 0.7978845608028654 * (y + 0.044715 * y * y * y)
        y = y * tl.sigmoid(2.0 * z)
    ok = (rm[:, None] < M) & (rn[None, :] < N)
    y += tl.load(res_ptr + rm[:, None] * stride_cm + rn[None, :], mask=ok, other=0.0).to(tl.float32)
    tl.store(out_ptr + rm[:, None] * stride_cm + rn[None, :], y.to(out_ptr.dtype.element_ty), mask=ok)


@case
def marina_of_bytes_gelu_and_what_was(m=2100, n=3072, k=2048):
    a, b = ints(-127, 128, m, k, dtype="int8"), ints(-127, 128, n, k, dtype="int8")
    sa, sb = uniform(m) * 0.004 + 0.001, uniform(n) * 0.004 + 0.001
    bias, res, out = rand(n), rand(m, n), zeros(m, n)
    args = a, b, sa, sb, bias, res, out, m, n, k, k, k, n
    launched = run(w8a8_residual_gelu_kernel, (cdiv(n, 128), cdiv(m, 128)), args, out, ACT="gelu", BM=128, BN=128, BK=128, num_warps=8, num_stages=3)

    def reference():
        y = (a.double() @ b.double().t() * sa[:, None] * sb).float() + bias.float()
        return F.gelu(y, approximate="tanh") + res.float()

    return against(launched, reference)


@triton.jit
def fp8_block128_linear_kernel(A, B, C, As, Bs, M, N, K, group_n, group_k, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr):
    # The engine's product of FP8 by blocks: scales of a token's 128 and of a weight's 128 by 128, applied to each partial product.
    pid_m, pid_n = _swizzled(tl.program_id(0), tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N), GROUP_M)
    offs_am = (pid_m * BLOCK_M + tl.arange(0, BLOCK_M)) % M
    offs_bn = (pid_n * BLOCK_N + tl.arange(0, BLOCK_N)) % N
    offs_k = tl.arange(0, BLOCK_K)
    a_ptrs = A + (offs_am[:, None] * K + offs_k[None, :])
    b_ptrs = B + (offs_k[:, None] + offs_bn[None, :] * K)
    num_kg = tl.cdiv(K, group_k)
    as_ptrs = As + offs_am * num_kg
    bs_ptrs = Bs + (offs_bn // group_n) * num_kg
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BLOCK_K)):
        a = tl.load(a_ptrs, mask=offs_k[None, :] < K - k * BLOCK_K, other=0.0)
        b = tl.load(b_ptrs, mask=offs_k[:, None] < K - k * BLOCK_K, other=0.0)
        g = k * BLOCK_K // group_k
        a_s = tl.load(as_ptrs + g)
        b_s = tl.load(bs_ptrs + g)
        acc += tl.dot(a, b) * a_s[:, None] * b_s[None, :]
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K
    cm = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    cn = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    tl.store(C + N * cm[:, None] + cn[None, :], acc.to(C.dtype.element_ty), mask=(cm[:, None] < M) & (cn[None, :] < N))


@case
def marina_of_blocks_of_one_hundred_twenty_eight(m=1800, n=2112, k=3584):
    a, b, c = f8(m, k), f8(n, k), zeros(m, n, dtype="bfloat16")
    sa, sb = uniform(m, cdiv(k, 128)) * 0.1 + 0.01, uniform(cdiv(n, 128), cdiv(k, 128)) * 0.1 + 0.01
    args = a, b, c, sa, sb, m, n, k, 128, 128
    flags = dict(BLOCK_M=64, BLOCK_N=128, BLOCK_K=128, GROUP_M=32)
    launched = run(fp8_block128_linear_kernel, (cdiv(m, 64) * cdiv(n, 128),), args, c, num_warps=4, num_stages=3, **flags)

    def reference():
        x = a.float() * sa.repeat_interleave(128, 1)[:, :k]
        w = b.float() * sb.repeat_interleave(128, 0)[:n].repeat_interleave(128, 1)[:, :k]
        return x @ w.t()

    return against(launched, reference)


@triton.jit
def gptq_words_linear_kernel(
    a_ptr, qw_ptr, s_ptr, qz_ptr, c_ptr, M, N, K, group, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    # Words of eight weights along K and words of eight zero points along N: each is read for all eight.
    pid_n = tl.program_id(0)
    pid_m = tl.program_id(1)
    rm = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    rn = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    rk = tl.arange(0, BLOCK_K)
    shifts_k = (rk % 8) * 4
    shifts_n = (rn % 8) * 4
    a_ptrs = a_ptr + rm[:, None] * K + rk[None, :]
    w_ptrs = qw_ptr + (rk[:, None] // 8) * N + rn[None, :]
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        g = k // group
        s = tl.load(s_ptr + g * N + rn)
        z = tl.load(qz_ptr + g * (N // 8) + rn // 8)
        z = ((z >> shifts_n) & 0xF) + 1
        a = tl.load(a_ptrs, mask=rm[:, None] < M, other=0.0)
        w = tl.load(w_ptrs)
        w = (w >> shifts_k[:, None]) & 0xF
        w = (w - z[None, :]).to(tl.float16) * s[None, :]
        acc += tl.dot(a, w)
        a_ptrs += BLOCK_K
        w_ptrs += (BLOCK_K // 8) * N
    tl.store(c_ptr + rm[:, None] * N + rn[None, :], acc.to(tl.float16), mask=rm[:, None] < M)


@case
def marina_of_words_of_eight_weights(m=200, n=4096, k=4096, group=128):
    a, c = rand(m, k), zeros(m, n)
    qw = ints(-(2**31), 2**31 - 1, k // 8, n)
    qz = ints(-(2**31), 2**31 - 1, k // group, n // 8)
    s = (uniform(k // group, n) * 0.02 + 0.005).half()
    launched = run(gptq_words_linear_kernel, (n // 64, cdiv(m, 64)), (a, qw, s, qz, c, m, n, k, group), c, BLOCK_M=64, BLOCK_N=64, BLOCK_K=64, num_warps=4, num_stages=3)

    def reference():
        bits = arange(8) * 4
        w = (qw[:, None, :] >> bits[None, :, None] & 15).reshape(k, n)
        z = (qz[:, :, None] >> bits & 15).reshape(k // group, n) + 1
        w = ((w - z.repeat_interleave(group, 0)).half() * s.repeat_interleave(group, 0)).float()
        return a.float() @ w

    return against(launched, reference)


@triton.jit
def awq_words_to_halves_kernel(qweight_ptr, scales_ptr, zeros_ptr, result_ptr, num_cols, num_rows, group_size, BLOCK_X: tl.constexpr, BLOCK_Y: tl.constexpr):
    # Words along N whose nibbles lie in the order 0 4 1 5 2 6 3 7: put out as halves, by interleaving a word with itself three times.
    pid_x = tl.program_id(0)
    pid_y = tl.program_id(1)
    offs_y = pid_y * BLOCK_Y + tl.arange(0, BLOCK_Y)
    offs_x = pid_x * BLOCK_X + tl.arange(0, BLOCK_X)
    masks = (offs_y < num_rows)[:, None] & (offs_x < num_cols)[None, :]
    words = tl.load(qweight_ptr + num_cols * offs_y[:, None] + offs_x[None, :], mask=masks, other=0)
    words = tl.interleave(words, words)
    words = tl.interleave(words, words)
    words = tl.interleave(words, words)
    order = ((tl.arange(0, 2) * 4)[None, :] + tl.arange(0, 4)[:, None]).reshape(8)
    shifts = tl.broadcast_to((order * 4)[None, :], (BLOCK_Y * BLOCK_X, 8))
    shifts = tl.reshape(shifts, (BLOCK_Y, BLOCK_X * 8))
    w = (words >> shifts) & 0xF
    zero_y = pid_y * BLOCK_Y // group_size + tl.arange(0, 1)
    z = tl.load(zeros_ptr + num_cols * zero_y[:, None] + offs_x[None, :], mask=offs_x[None, :] < num_cols, other=0)
    z = tl.interleave(z, z)
    z = tl.interleave(z, z)
    z = tl.interleave(z, z)
    z = (tl.broadcast_to(z, (BLOCK_Y, BLOCK_X * 8)) >> shifts) & 0xF
    out_x = pid_x * BLOCK_X * 8 + tl.arange(0, BLOCK_X * 8)
    s = tl.load(scales_ptr + num_cols * 8 * zero_y[:, None] + out_x[None, :], mask=out_x[None, :] < num_cols * 8, other=0.0)
    w = (w - z) * tl.broadcast_to(s, (BLOCK_Y, BLOCK_X * 8))
    out_mask = (offs_y < num_rows)[:, None] & (out_x < num_cols * 8)[None, :]
    tl.store(result_ptr + num_cols * 8 * offs_y[:, None] + out_x[None, :], w.to(result_ptr.type.element_ty), mask=out_mask)


@case
def marina_of_nibbles_out_of_order(rows=5120, cols=1000, group=64):
    q = ints(-(2**31), 2**31 - 1, rows, cols)
    z = ints(-(2**31), 2**31 - 1, rows // group, cols)
    s, y = rand(rows // group, cols * 8), zeros(rows, cols * 8)
    launched = run(awq_words_to_halves_kernel, (cdiv(cols, 32), cdiv(rows, 32)), (q, s, z, y, cols, rows, group), y, BLOCK_X=32, BLOCK_Y=32, num_warps=4)

    def reference():
        bits = torch.tensor([0, 4, 1, 5, 2, 6, 3, 7], device=q.device) * 4
        w = (q[:, :, None] >> bits & 15).reshape(rows, -1)
        b = (z[:, :, None] >> bits & 15).reshape(rows // group, -1).repeat_interleave(group, 0)
        return (w - b).float() * s.float().repeat_interleave(group, 0)

    return against(launched, reference)


@triton.jit
def two_bits_affine_linear_kernel(x_ptr, w_ptr, s_ptr, z_ptr, y_ptr, M, N, K: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr):
    # Weights of two bits: a byte has the weights of four quarters of a group, so each byte is used by four dots.
    Q: tl.constexpr = GROUP // 4
    rm = tl.program_id(1) * BM + tl.arange(0, BM)
    rn = tl.program_id(0) * BN + tl.arange(0, BN)
    m_ok = rm[:, None] < M
    n_ok = rn[None, :] < N
    rq = tl.arange(0, Q)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for g in tl.range(0, K // GROUP, num_stages=2):
        packed = tl.load(w_ptr + rn[None, :] * (K // 4) + g * Q + rq[:, None], mask=n_ok, other=0)
        s = tl.load(s_ptr + g * N + rn, mask=rn < N, other=0.0)
        z = tl.load(z_ptr + g * N + rn, mask=rn < N, other=0.0)
        part = tl.zeros((BM, BN), dtype=tl.float32)
        total = tl.zeros((BM,), dtype=tl.float32)
        for i in tl.static_range(4):
            x = tl.load(x_ptr + rm[:, None] * K + g * GROUP + i * Q + rq[None, :], mask=m_ok, other=0.0)
            w = ((packed >> (2 * i)) & 3).to(x.dtype)
            part = tl.dot(x, w, part)
            total += tl.sum(x.to(tl.float32), axis=1)
        acc += part * s[None, :] - total[:, None] * (s * z)[None, :]
    tl.store(y_ptr + rm[:, None] * N + rn[None, :], acc.to(tl.bfloat16), mask=m_ok & n_ok)


@case
def marina_of_weights_of_two_bits(m=500, n=3000, k=4096, group=128):
    x, w, y = rand(m, k, dtype="bfloat16"), ints(0, 256, n, k // 4, dtype="uint8"), zeros(m, n, dtype="bfloat16")
    s, z = uniform(k // group, n) * 0.1 + 0.02, uniform(k // group, n) * 3
    launched = run(two_bits_affine_linear_kernel, (cdiv(n, 64), cdiv(m, 64)), (x, w, s, z, y, m, n), y, K=k, BM=64, BN=64, BK=group, GROUP=group, num_warps=4, num_stages=2)

    def reference():
        b = w.view(n, k // group, 1, group // 4).int() >> (arange(4) * 2)[:, None] & 3
        v = b.reshape(n, k // group, group).float()
        v = (v - z.t()[:, :, None]) * s.t()[:, :, None]
        return x.float() @ v.reshape(n, k).t()

    return against(launched, reference)


@triton.jit
def groups_by_offsets_kernel(x_ptr, w_ptr, offs_ptr, y_ptr, G, N, K, NUM_PROGRAMS: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    # Rows of groups lie one after another; programs walk over all groups' tiles and do each of which the number is theirs.
    tile = tl.program_id(0)
    done = 0
    row_end = 0
    n_tiles = tl.cdiv(N, BLOCK_N)
    for g in range(G):
        row_start = row_end
        row_end = tl.load(offs_ptr + g)
        rows = row_end - row_start
        if rows > 0:
            tiles = tl.cdiv(rows, BLOCK_M) * n_tiles
            while tile >= done and tile < done + tiles:
                t = tile - done
                rm = row_start + (t // n_tiles) * BLOCK_M + tl.arange(0, BLOCK_M)
                rn = (t % n_tiles) * BLOCK_N + tl.arange(0, BLOCK_N)
                rk = tl.arange(0, BLOCK_K)
                xp = x_ptr + rm[:, None] * K + rk[None, :]
                wp = w_ptr + g * K * N + rk[:, None] * N + rn[None, :]
                acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
                for k in range(0, K, BLOCK_K):
                    x = tl.load(xp, mask=(rm[:, None] < row_end) & (rk[None, :] + k < K), other=0.0)
                    w = tl.load(wp, mask=(rk[:, None] + k < K) & (rn[None, :] < N), other=0.0)
                    acc = tl.dot(x, w, acc)
                    xp += BLOCK_K
                    wp += BLOCK_K * N
                tl.store(y_ptr + rm[:, None] * N + rn[None, :], acc.to(y_ptr.dtype.element_ty), mask=(rm[:, None] < row_end) & (rn[None, :] < N))
                tile += NUM_PROGRAMS
            done += tiles


@case
def marina_of_groups_by_their_ends(counts=(700, 3, 0, 512, 255, 1100, 64, 390), n=1800, k=1400):
    ends = torch.tensor(counts, dtype=torch.int32).cumsum(0).int()
    total, groups = sum(counts), len(counts)
    ends = ends.to("cuda")
    x, w, y = rand(total, k, dtype="bfloat16"), rand(groups, k, n, dtype="bfloat16"), zeros(total, n, dtype="bfloat16")
    flags = dict(NUM_PROGRAMS=264, BLOCK_M=64, BLOCK_N=128, BLOCK_K=32)
    launched = run(groups_by_offsets_kernel, (264,), (x, w, ends, y, groups, n, k), y, num_warps=4, num_stages=3, **flags)

    def reference():
        return torch.cat([p.float() @ w[i].float() for i, p in enumerate(x.split(list(counts)))])

    return against(launched, reference)


@triton.jit
def swish(x):
    return x / (1.0 + tl.exp(-x))


@triton.jit
def gate_and_up_blocks_kernel(x, w_gate, w_up, out, M, N, K, LIMIT: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Two weights for one input: clamp(gate) of which the swish gates clamp(up) + 1.
    m0 = tl.program_id(0) * BM
    n0 = tl.program_id(1) * BN
    xp = tl.make_block_ptr(base=x, shape=(M, K), strides=(K, 1), offsets=(m0, 0), block_shape=(BM, BK), order=(1, 0))
    gp = tl.make_block_ptr(base=w_gate, shape=(K, N), strides=(N, 1), offsets=(0, n0), block_shape=(BK, BN), order=(1, 0))
    up = tl.make_block_ptr(base=w_up, shape=(K, N), strides=(N, 1), offsets=(0, n0), block_shape=(BK, BN), order=(1, 0))
    g = tl.zeros((BM, BN), dtype=tl.float32)
    u = tl.zeros((BM, BN), dtype=tl.float32)
    for _ in range(tl.cdiv(K, BK)):
        a = tl.load(xp, boundary_check=(0, 1))
        g = tl.dot(a, tl.load(gp, boundary_check=(0, 1)), g)
        u = tl.dot(a, tl.load(up, boundary_check=(0, 1)), u)
        xp = xp.advance((0, BK))
        gp = gp.advance((BK, 0))
        up = up.advance((BK, 0))
    g = tl.minimum(g, LIMIT)
    u = tl.minimum(tl.maximum(u, -LIMIT), LIMIT)
    y = swish(1.702 * g) / 1.702 * (u + 1.0)
    op = tl.make_block_ptr(base=out, shape=(M, N), strides=(N, 1), offsets=(m0, n0), block_shape=(BM, BN), order=(1, 0))
    tl.store(op, y.to(tl.float16), boundary_check=(0, 1))


@case
def marina_of_a_clamped_gate(m=2048, n=1544, k=2000):
    x, wg, wu, out = rand(m, k), rand(k, n) * 0.05, rand(k, n) * 0.05, zeros(m, n)
    launched = run(gate_and_up_blocks_kernel, (cdiv(m, 128), cdiv(n, 64)), (x, wg, wu, out, m, n, k), out, LIMIT=7.0, BM=128, BN=64, BK=64, num_warps=8, num_stages=3)

    def reference():
        g, u = (x.float() @ wg.float()).clamp(max=7), (x.float() @ wu.float()).clamp(-7, 7)
        return g * torch.sigmoid(1.702 * g) * (u + 1)

    return against(launched, reference)


@triton.jit
def both_turned_batches_kernel(a_ptr, b_ptr, c_ptr, M, N, K, alpha, beta, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # C = alpha A' B' + beta C of batches, both by columns, in tf32 thrice for full numbers.
    pid_b = tl.program_id(2).to(tl.int64)
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    a_ptr += pid_b * M * K
    b_ptr += pid_b * N * K
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k0 in range(0, K, BK):
        rk = k0 + tl.arange(0, BK)
        a = tl.load(a_ptr + rk[None, :] * M + rm[:, None], mask=(rm[:, None] < M) & (rk[None, :] < K), other=0.0)
        b = tl.load(b_ptr + rn[None, :] * K + rk[:, None], mask=(rn[None, :] < N) & (rk[:, None] < K), other=0.0)
        acc = tl.dot(a, b, acc, input_precision="tf32x3")
    ok = (rm[:, None] < M) & (rn[None, :] < N)
    at = c_ptr + pid_b * M * N + rm[:, None] * N + rn[None, :]
    tl.store(at + tl.num_programs(2).to(tl.int64) * M * N, alpha * acc + beta * tl.load(at, mask=ok, other=0.0), mask=ok)


@case
def marina_of_both_turned(b=16, m=500, n=420, k=600):
    x, w, c = f32(b, k, m), f32(b, n, k), torch.cat((f32(b, m, n), zeros(b, m, n, dtype="float32")))
    launched = run(both_turned_batches_kernel, (cdiv(m, 64), cdiv(n, 64), b), (x, w, c, m, n, k, 0.5, -1.5), c, BM=64, BN=64, BK=32, num_warps=4, num_stages=2)
    return against(launched, lambda: torch.cat((c[:b], (0.5 * x.double().transpose(1, 2) @ w.double().transpose(1, 2) - 1.5 * c[:b]).float())))


@triton.jit
def nf4_row_times_matrix_kernel(x_ptr, w_ptr, absmax_ptr, code_ptr, y_ptr, N, K, BLOCKSIZE: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # A vector by weights of sixteen levels: two in a byte, the upper first, a table gathered in registers.
    rn = tl.program_id(0) * BN + tl.arange(0, BN)
    table = tl.load(code_ptr + tl.arange(0, 16))
    acc = tl.zeros((BN,), dtype=tl.float32)
    n_ok = rn[:, None] < N
    half = tl.arange(0, BK // 2)
    for k in range(0, K, BK):
        packed = tl.load(w_ptr + rn[:, None].to(tl.int64) * (K // 2) + k // 2 + half[None, :], mask=n_ok, other=0, eviction_policy="evict_first")
        both = tl.join((packed >> 4).to(tl.int32), (packed & 15).to(tl.int32)).reshape(BN * BK)
        w = tl.gather(table, both, 0).reshape(BN, BK)
        rk = k + tl.arange(0, BK)
        amax = tl.load(absmax_ptr + (rn[:, None] * K + rk[None, :]) // BLOCKSIZE, mask=n_ok, other=0.0)
        x = tl.load(x_ptr + rk).to(tl.float32)
        acc += tl.sum(w * amax * x[None, :], axis=1)
    tl.store(y_ptr + rn, acc.to(tl.float16), mask=rn < N)


@case
def marina_of_sixteen_levels_and_one_row(n=14000, k=4096, block=64):
    x, w, y = rand(k), ints(0, 256, n, k // 2, dtype="uint8"), zeros(n)
    absmax = uniform(n * k // block) * 0.1 + 0.01
    code = torch.linspace(-1, 1, 16, device="cuda") ** 3
    launched = run(nf4_row_times_matrix_kernel, (cdiv(n, 16),), (x, w, absmax, code, y, n, k), y, BLOCKSIZE=block, BN=16, BK=256, num_warps=4)

    def reference():
        v = code[torch.stack((w >> 4, w & 15), 2).long()].view(-1, block) * absmax[:, None]
        return v.view(n, k) @ x.float()

    return against(launched, reference)


@triton.jit
def lora_alongside_kernel(
    x_ptr, w_ptr, a_ptr, b_ptr, y_ptr, scaling, M, N, K, R: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):
    # y = x W' + s (x A') B': the narrow product is kept beside the wide one and turned at the end.
    pid = tl.program_id(0)
    pm = pid % tl.cdiv(M, BM)
    pn = pid // tl.cdiv(M, BM)
    rm = pm * BM + tl.arange(0, BM)
    rn = pn * BN + tl.arange(0, BN)
    rr = tl.arange(0, R)
    wide = tl.zeros([BM, BN], dtype=tl.float32)
    thin = tl.zeros([BM, R], dtype=tl.float32)
    for k in tl.range(0, K, BK, num_stages=3):
        rk = k + tl.arange(0, BK)
        x = tl.load(x_ptr + rm[:, None] * K + rk[None, :], mask=(rm < M)[:, None] & (rk < K)[None, :], other=0.0)
        w = tl.load(w_ptr + rn[None, :] * K + rk[:, None], mask=(rn < N)[None, :] & (rk < K)[:, None], other=0.0)
        a = tl.load(a_ptr + rr[None, :] * K + rk[:, None], mask=(rk < K)[:, None], other=0.0, eviction_policy="evict_last")
        wide = tl.dot(x, w, wide)
        thin = tl.dot(x, a, thin)
    b = tl.load(b_ptr + rn[None, :] * R + rr[:, None], mask=(rn < N)[None, :], other=0.0)
    wide += tl.dot(thin.to(b.dtype), b) * scaling
    tl.store(y_ptr + rm[:, None] * N + rn[None, :], wide.to(y_ptr.dtype.element_ty), mask=(rm < M)[:, None] & (rn < N)[None, :])


@case
def marina_of_a_thin_one_alongside(m=1600, n=2400, k=2048, r=32):
    x, w, a, b = rand(m, k, dtype="bfloat16"), rand(n, k, dtype="bfloat16"), rand(r, k, dtype="bfloat16"), rand(n, r, dtype="bfloat16")
    y = zeros(m, n, dtype="bfloat16")
    launched = run(lora_alongside_kernel, (cdiv(m, 128) * cdiv(n, 128),), (x, w, a, b, y, 0.25, m, n, k), y, R=r, BM=128, BN=128, BK=64, num_warps=8)

    def reference():
        h = (x.float() @ a.float().t()).bfloat16().float()
        return x.float() @ w.float().t() + 0.25 * h @ b.float().t()

    return against(launched, reference)


@triton.jit
def partial_sums_to_rows_kernel(part_ptr, bias_ptr, res_ptr, y_ptr, norm_ptr, M, N, SPLITS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    # The second step of a split product: parts are added in their order, with bias and residual; and each row's squares are summed for the next norm.
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    squares = tl.zeros((BM,), dtype=tl.float32)
    for n0 in range(0, N, BN):
        rn = n0 + tl.arange(0, BN)
        ok = (rm[:, None] < M) & (rn[None, :] < N)
        at = rm[:, None] * N + rn[None, :]
        acc = tl.load(res_ptr + at, mask=ok, other=0.0).to(tl.float32)
        for s in tl.static_range(SPLITS):
            acc += tl.load(part_ptr + s * M * N + at, mask=ok, other=0.0, cache_modifier=".cg")
        acc += tl.load(bias_ptr + rn, mask=rn < N, other=0.0)[None, :]
        acc = tl.where(ok, acc, 0.0)
        squares += tl.sum(acc * acc, axis=1)
        tl.store(y_ptr + at, acc.to(tl.bfloat16), mask=ok)
    tl.store(norm_ptr + rm, tl.rsqrt(squares / N + 1e-6), mask=rm < M)


@case
def marina_of_parts_in_their_order(m=1500, n=3600, splits=6):
    part, bias, res = f32(splits, m, n), f32(n), rand(m, n, dtype="bfloat16")
    y, norm = zeros(m, n, dtype="bfloat16"), zeros(m, dtype="float32")
    launched = run(partial_sums_to_rows_kernel, (cdiv(m, 4),), (part, bias, res, y, norm, m, n), (y, norm), SPLITS=splits, BM=4, BN=512, num_warps=8)

    def reference():
        z = part.sum(0) + bias + res.float()
        return z, (z.square().mean(1) + 1e-6).rsqrt()

    return against(launched, reference)


@triton.jit
def few_tokens_wide_weights_kernel(x_ptr, w_ptr, y_ptr, N, K, TOKENS: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # One to four tokens: no dots, products summed over axis 1; weights read once past the caches for all tokens.
    rn = tl.program_id(0) * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    t = tl.arange(0, TOKENS)
    acc = tl.zeros((TOKENS, BN, BK), dtype=tl.float32)
    for k in range(0, K, BK):
        ok = (k + rk) < K
        w = tl.load(w_ptr + rn[:, None] * K + (k + rk)[None, :], mask=(rn[:, None] < N) & ok[None, :], other=0.0, cache_modifier=".cg").to(tl.float32)
        x = tl.load(x_ptr + t[:, None] * K + (k + rk)[None, :], mask=ok[None, :], other=0.0).to(tl.float32)
        acc += w[None, :, :] * x[:, None, :]
    y = tl.sum(acc, axis=2)
    tl.store(y_ptr + t[:, None] * N + rn[None, :], y.to(tl.bfloat16), mask=rn[None, :] < N)


@case
def marina_of_four_tokens(n=11000, k=5000):
    x, w, y = rand(4, k, dtype="bfloat16"), rand(n, k, dtype="bfloat16"), zeros(4, n, dtype="bfloat16")
    launched = run(few_tokens_wide_weights_kernel, (cdiv(n, 8),), (x, w, y, n, k), y, TOKENS=4, BN=8, BK=256, num_warps=4)
    return against(launched, lambda: x.float() @ w.float().t())


@triton.jit
def power_of_two_scales_quant_kernel(x_ptr, q_ptr, s_ptr, N, GROUP: tl.constexpr, GROUPS: tl.constexpr):
    # Groups of a row to FP8 by powers of two not below what is needed; scales lie by columns as bytes of an exponent.
    row = tl.program_id(0)
    g = tl.program_id(1) * GROUPS + tl.arange(0, GROUPS)
    i = tl.arange(0, GROUP)
    at = g[:, None] * GROUP + i[None, :]
    ok = at < N
    x = tl.load(x_ptr + row * N + at, mask=ok, other=0.0).to(tl.float32)
    amax = tl.maximum(tl.max(tl.abs(x), axis=1), 1e-4)
    bits = (amax * (1.0 / 448.0)).to(tl.int32, bitcast=True)
    e = (bits >> 23) + tl.where((bits & 0x7FFFFF) != 0, 1, 0)
    inv = ((254 - e) << 23).to(tl.float32, bitcast=True)
    q = (x * inv[:, None]).to(tl.float8e4nv)
    tl.store(q_ptr + row * N + at, q, mask=ok)
    tl.store(s_ptr + g * tl.num_programs(0) + row, e.to(tl.uint8), mask=g * GROUP < N)


@case
def marina_of_powers_of_two_for_groups(rows=6000, n=4224, group=128):
    x, q = rand(rows, n, dtype="bfloat16") * 3, torch.zeros(rows, n, device="cuda", dtype=torch.float8_e4m3fn)
    s = zeros(n // group, rows, dtype="uint8")
    launched = run(power_of_two_scales_quant_kernel, (rows, cdiv(n // group, 8)), (x, q, s, n), (q, s), GROUP=group, GROUPS=8, num_warps=4)

    def reference():
        v = x.float().view(rows, -1, group)
        a = v.abs().amax(2).clamp(min=1e-4) * (1 / 448)
        e = torch.log2(a.double()).ceil()
        y = (v / torch.exp2(e.float())[:, :, None]).view(rows, n)
        return y.to(torch.float8_e4m3fn), (e + 127).t().to(torch.uint8)

    return against(launched, reference)


@triton.jit
def capped_head_logsumexp_kernel(h_ptr, w_ptr, target_ptr, part_ptr, picked_ptr, M, V, K, cap, BM: tl.constexpr, BV: tl.constexpr, BK: tl.constexpr):
    # Logits that are never put down: capped, their log sum of a tile's columns, and the target's if it is in the tile.
    pm = tl.program_id(0)
    pv = tl.program_id(1)
    rm = pm * BM + tl.arange(0, BM)
    rv = pv * BV + tl.arange(0, BV)
    h_ptrs = h_ptr + rm[:, None] * K + tl.arange(0, BK)[None, :]
    w_ptrs = w_ptr + rv[None, :] * K + tl.arange(0, BK)[:, None]
    acc = tl.zeros((BM, BV), dtype=tl.float32)
    for _ in range(0, K // BK):
        h = tl.load(h_ptrs, mask=rm[:, None] < M, other=0.0)
        w = tl.load(w_ptrs, mask=rv[None, :] < V, other=0.0)
        acc = tl.dot(h, w, acc)
        h_ptrs += BK
        w_ptrs += BK
    z = acc / cap
    logits = cap * (2.0 * tl.sigmoid(2.0 * z) - 1.0)
    logits = tl.where(rv[None, :] < V, logits, float("-inf"))
    top = tl.max(logits, axis=1)
    lse = top + tl.log(tl.sum(tl.exp(logits - top[:, None]), axis=1))
    tl.store(part_ptr + rm * tl.num_programs(1) + pv, lse, mask=rm < M)
    target = tl.load(target_ptr + rm, mask=rm < M, other=-1)
    inside = (target >= pv * BV) & (target < pv * BV + BV)
    mine = tl.sum(tl.where(rv[None, :] == target[:, None], logits, 0.0), axis=1)
    tl.store(picked_ptr + rm, mine, mask=inside & (rm < M))


@case
def marina_of_logits_never_put_down(m=1000, v=12000, k=1024, cap=30.0):
    h, w, target = rand(m, k, dtype="bfloat16"), rand(v, k, dtype="bfloat16") * 0.5, ints(0, v, m)
    tiles = cdiv(v, 128)
    part, picked = zeros(m, tiles, dtype="float32"), zeros(m, dtype="float32")
    launched = run(capped_head_logsumexp_kernel, (cdiv(m, 128), tiles), (h, w, target, part, picked, m, v, k, cap), (part, picked), BM=128, BV=128, BK=64, num_warps=8, num_stages=3)

    def reference():
        z = cap * torch.tanh(h.float() @ w.float().t() / cap)
        p = F.pad(z, (0, -v % 128), value=float("-inf")).view(m, tiles, 128).logsumexp(2)
        return p, z.gather(1, target.long()[:, None])[:, 0]

    return against(launched, reference)


@triton.jit
def mxfp8_scaled_dot_kernel(a_ptr, a_scale, b_ptr, b_scale, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Both FP8 with a power of two for each 32: the instruction for scaled dots.
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    rs = tl.arange(0, BK // 32)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        a = tl.load(a_ptr + rm[:, None] * K + k + rk[None, :])
        b = tl.load(b_ptr + rn[None, :] * K + k + rk[:, None])
        sa = tl.load(a_scale + rm[:, None] * (K // 32) + k // 32 + rs[None, :])
        sb = tl.load(b_scale + rn[:, None] * (K // 32) + k // 32 + rs[None, :])
        acc = tl.dot_scaled(a, sa, "e4m3", b, sb, "e4m3", acc)
    tl.store(c_ptr + rm[:, None] * N + rn[None, :], acc.to(tl.bfloat16))


@case
def marina_of_scaled_dots(m=1024, n=2048, k=1024):
    a, b, c = f8(m, k), f8(n, k), zeros(m, n, dtype="bfloat16")
    sa, sb = ints(124, 130, m, k // 32, dtype="uint8"), ints(124, 130, n, k // 32, dtype="uint8")
    launched = run(mxfp8_scaled_dot_kernel, (m // 128, n // 64), (a, sa, b, sb, c, m, n, k), c, BM=128, BN=64, BK=128, num_warps=8, num_stages=2)

    def reference():
        x = a.float() * torch.exp2(sa.float() - 127).repeat_interleave(32, 1)
        return x @ (b.float() * torch.exp2(sb.float() - 127).repeat_interleave(32, 1)).t()

    return against(launched, reference)
