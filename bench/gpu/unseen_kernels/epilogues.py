"""Products with work before and after them, written as libraries write them: strides of runtime, swizzled tiles, helpers, flags."""

import torch
import triton
import triton.language as tl

from .common import PROGRAMS, arange, case, cdiv, cleared, f8, f32, far8, full, ints, rand, run, uniform, viewed, zeros


def allocate():
    triton.set_allocator(lambda size, align, stream: torch.empty(size, dtype=torch.int8, device="cuda"))


@triton.jit
def tile_at(pid, M, N, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, GROUP_M: tl.constexpr):
    rows, columns = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    first = pid // (GROUP_M * columns) * GROUP_M
    height = tl.minimum(rows - first, GROUP_M)
    inside = pid % (GROUP_M * columns)
    return first + inside % height, inside // height


@triton.jit
def mm_bytes_silu_times(
    A, B, S, OTHER, OUT, M, N, K, stride_am, stride_ak, stride_bk, stride_bn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr, EVEN_K: tl.constexpr,
):  # fmt: skip
    pid_m, pid_n = tile_at(tl.program_id(0), M, N, BLOCK_M, BLOCK_N, GROUP_M)
    rm = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    rn = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    wrapped_m = tl.max_contiguous(tl.multiple_of(rm % M, BLOCK_M), BLOCK_M)
    wrapped_n = tl.max_contiguous(tl.multiple_of(rn % N, BLOCK_N), BLOCK_N)
    rk = tl.arange(0, BLOCK_K)
    a_ptrs = A + (wrapped_m[:, None] * stride_am + rk[None, :] * stride_ak)
    b_ptrs = B + (rk[:, None] * stride_bk + wrapped_n[None, :] * stride_bn)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for left in range(K, 0, -BLOCK_K):
        if EVEN_K:
            a = tl.load(a_ptrs)
            b = tl.load(b_ptrs)
        else:
            a = tl.load(a_ptrs, mask=rk[None, :] < left, other=0.0)
            b = tl.load(b_ptrs, mask=rk[:, None] < left, other=0)
        acc += tl.dot(a, b.to(a.dtype), allow_tf32=True)
        a_ptrs += BLOCK_K * stride_ak
        b_ptrs += BLOCK_K * stride_bk
    idx_m, idx_n = rm[:, None], rn[None, :]
    mask = (idx_m < M) & (idx_n < N)
    xindex = idx_n + N * idx_m
    scale = tl.load(S + tl.broadcast_to(idx_n, mask.shape), mask, eviction_policy="evict_last").to(tl.float32)
    other = tl.load(OTHER + tl.broadcast_to(xindex, mask.shape), mask).to(tl.float32)
    y = acc * scale
    tl.store(OUT + tl.broadcast_to(xindex, mask.shape), (y * tl.sigmoid(y) * other).to(OUT.dtype.element_ty), mask)


@case
def gemm_bytes_template_silu_times_other():
    m, n, k = 1500, 2816, 1032
    a, b, s = rand(m, k, dtype="bfloat16"), ints(-127, 128, n, k, dtype="int8"), (uniform(n) * 0.001).to(torch.bfloat16)
    other, out = rand(m, n, dtype="bfloat16"), zeros(m, n, dtype="bfloat16")
    args = a, b, s, other, out, m, n, k, k, 1, 1, k
    options = dict(BLOCK_M=64, BLOCK_N=128, BLOCK_K=32, GROUP_M=8, EVEN_K=False)
    return run(mm_bytes_silu_times, (cdiv(m, 64) * (n // 128),), args, out, num_warps=4, num_stages=5, **options)


@triton.jit
def persistent_rowwise_fp8(
    A, B, SA, SB, BIAS, OUT, M, N, K,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr, COUNT: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    # Tiles leave as two halves of columns, so that the shared memory of the store is half.
    a_desc = tl.make_tensor_descriptor(A, shape=[M, K], strides=[K, 1], block_shape=[BM, BK])
    b_desc = tl.make_tensor_descriptor(B, shape=[N, K], strides=[K, 1], block_shape=[BN, BK])
    out_desc = tl.make_tensor_descriptor(OUT, shape=[M, N], strides=[N, 1], block_shape=[BM, BN // 2])
    for tile in tl.range(tl.program_id(0), tl.cdiv(M, BM) * tl.cdiv(N, BN), COUNT, flatten=True):
        pm, pn = tile_at(tile, M, N, BM, BN, GROUP)
        acc = tl.zeros((BM, BN), tl.float32)
        for k in tl.range(0, K, BK, num_stages=STAGES):
            acc = tl.dot(a_desc.load([pm * BM, k]), b_desc.load([pn * BN, k]).T, acc)
        m, n = pm * BM + tl.arange(0, BM), pn * BN + tl.arange(0, BN)
        scale = tl.load(SA + m, mask=m < M, other=0.0)[:, None] * tl.load(SB + n, mask=n < N, other=0.0)[None, :]
        y = acc * scale + tl.load(BIAS + n, mask=n < N, other=0.0).to(tl.float32)[None, :]
        left, right = tl.split(tl.permute(tl.reshape(y, (BM, 2, BN // 2)), (0, 2, 1)))
        out_desc.store([pm * BM, pn * BN], left.to(tl.bfloat16))
        out_desc.store([pm * BM, pn * BN + BN // 2], right.to(tl.bfloat16))


@case
def gemm_fp8_rowwise_persistent_halves():
    allocate()
    m, n, k = 3000, 4096, 2048
    out = zeros(m, n, dtype="bfloat16")
    args = f8(m, k), f8(n, k), uniform(m), uniform(n), rand(n, dtype="bfloat16"), out, m, n, k
    options = dict(BM=128, BN=256, BK=64, GROUP=8, COUNT=PROGRAMS, STAGES=3)
    return run(persistent_rowwise_fp8, (PROGRAMS,), args, out, num_warps=8, num_stages=3, **options)


@triton.jit
def mm_specialized(A, B, C, OUT, M, N, K, alpha, beta, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    a_desc = tl.make_tensor_descriptor(A, [M, K], [K, 1], [BM, BK])
    b_desc = tl.make_tensor_descriptor(B, [K, N], [N, 1], [BK, BN])
    c_desc = tl.make_tensor_descriptor(C, [M, N], [N, 1], [BM, BN])
    out_desc = tl.make_tensor_descriptor(OUT, [M, N], [N, 1], [BM, BN])
    pm, pn = tile_at(tl.program_id(0), M, N, BM, BN, 4)
    acc = tl.zeros((BM, BN), tl.float32)
    for i in tl.range(0, tl.cdiv(K, BK), warp_specialize=True, num_stages=3):
        acc = tl.dot(a_desc.load([pm * BM, i * BK]), b_desc.load([i * BK, pn * BN]), acc)
    c = c_desc.load([pm * BM, pn * BN]).to(tl.float32)
    out_desc.store([pm * BM, pn * BN], (alpha * acc + beta * c).to(C.dtype.element_ty))


@case
def gemm_specialized_loads_adds_to_c():
    allocate()
    m, n, k = 2304, 3072, 1536
    out = zeros(m, n)
    args = rand(m, k), rand(k, n), rand(m, n), out, m, n, k, 0.5, 0.25
    return run(mm_specialized, (cdiv(m, 128) * cdiv(n, 128),), args, out, BM=128, BN=128, BK=64, num_warps=4, num_stages=3)


@triton.jit
def scaled_mm(
    A, SA, B, SB, OUT, M, N, K, stride_am, stride_bk, stride_om,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    # FP8 rows by four-bit columns that are packed along K; a power of two for 32 values of either.
    om = (tl.program_id(0) * BM + tl.arange(0, BM)) % M
    on = tl.program_id(1) * BN + tl.arange(0, BN)
    ok, op, os = tl.arange(0, BK), tl.arange(0, BK // 2), tl.arange(0, BK // 32)
    a_ptrs, b_ptrs = A + om[:, None] * stride_am + ok[None, :], B + op[:, None] * stride_bk + on[None, :]
    sa_ptrs, sb_ptrs = SA + om[:, None] * (K // 32) + os[None, :], SB + on[:, None] * (K // 32) + os[None, :]
    acc = tl.zeros((BM, BN), tl.float32)
    for _ in tl.range(0, tl.cdiv(K, BK), num_stages=STAGES):
        a, b = tl.load(a_ptrs), tl.load(b_ptrs, cache_modifier=".cg")
        acc = tl.dot_scaled(a, tl.load(sa_ptrs), "e4m3", b, tl.load(sb_ptrs), "e2m1", acc)
        a_ptrs += BK
        b_ptrs += (BK // 2) * stride_bk
        sa_ptrs += BK // 32
        sb_ptrs += BK // 32
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    tl.store(OUT + rm[:, None] * stride_om + on[None, :], acc.to(tl.bfloat16), mask=rm[:, None] < M)


@case
def gemm_mxfp8_rows_by_mxfp4_columns():
    m, n, k = 1000, 2048, 1024
    out = zeros(m, n, dtype="bfloat16")
    sa, sb = ints(124, 130, m, k // 32, dtype="uint8"), ints(124, 130, n, k // 32, dtype="uint8")
    args = f8(m, k), sa, ints(0, 256, k // 2, n, dtype="uint8"), sb, out, m, n, k, k, n, n
    return run(scaled_mm, (cdiv(m, 128), n // 128), args, out, BM=128, BN=128, BK=128, STAGES=2, num_warps=8, num_stages=2)


@triton.jit
def clamped_swiglu(y, alpha, limit, BM: tl.constexpr, BN: tl.constexpr):
    gate, linear = tl.split(tl.reshape(y, (BM, BN // 2, 2)))
    gate = tl.minimum(gate, limit)
    linear = tl.clamp(linear, -limit, limit)
    return gate / (1.0 + tl.exp(-alpha * gate)) * (linear + 1.0)


@triton.jit
def routed_mm_four_bits(
    X, W, S, BIAS, ROWS, EXPERT, OUT, N, K, TOTAL, alpha, limit,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    # Tiles of rows of one expert each, gathered; weights of four bits with shared powers; gates and values take turns in columns.
    pid_n, pid_m = tl.program_id(0), tl.program_id(1)
    expert = tl.load(EXPERT + pid_m).to(tl.int64)
    if expert < 0:
        return
    rows = tl.load(ROWS + pid_m * BM + tl.arange(0, BM))
    live = rows < TOTAL
    n, k, p, s = pid_n * BN + tl.arange(0, BN), tl.arange(0, BK), tl.arange(0, BK // 2), tl.arange(0, BK // 32)
    x_ptrs = X + rows[:, None] * K + k[None, :]
    w_ptrs = W + expert * N * (K // 2) + n[None, :] * (K // 2) + p[:, None]
    s_ptrs = S + expert * N * (K // 32) + n[:, None] * (K // 32) + s[None, :]
    acc = tl.zeros((BM, BN), tl.float32)
    for _ in range(0, K, BK):
        x = tl.load(x_ptrs, mask=live[:, None], other=0.0)
        acc = tl.dot_scaled(x, None, "bf16", tl.load(w_ptrs), tl.load(s_ptrs), "e2m1", acc)
        x_ptrs += BK
        w_ptrs += BK // 2
        s_ptrs += BK // 32
    y = acc + tl.load(BIAS + expert * N + n)[None, :]
    half = pid_n * (BN // 2) + tl.arange(0, BN // 2)
    slot = pid_m * BM + tl.arange(0, BM)
    y = clamped_swiglu(y, alpha, limit, BM, BN)
    tl.store(OUT + slot[:, None] * (N // 2) + half[None, :], y.to(tl.bfloat16), mask=live[:, None])


@case
def moe_four_bit_experts_clamped_swiglu():
    experts, tokens, n, k, bm = 16, 1024, 1024, 768, 32
    tiles = experts * 4
    rows = torch.where(uniform(tiles * bm) < 0.85, ints(0, tokens, tiles * bm), full(tokens, tiles * bm, dtype="int32"))
    expert = torch.where(arange(tiles) % 9 == 8, full(-1, tiles, dtype="int32"), arange(tiles) // 4)
    x, w = rand(tokens, k, dtype="bfloat16"), ints(0, 256, experts, n, k // 2, dtype="uint8")
    s, out = ints(118, 123, experts, n, k // 32, dtype="uint8"), zeros(tiles * bm, n // 2, dtype="bfloat16")
    args = x, w, s, f32(experts, n), rows, expert, out, n, k, tokens, 1.702, 7.0
    return run(routed_mm_four_bits, (n // 128, tiles), args, out, BM=bm, BN=128, BK=128, num_warps=4, num_stages=3)


@triton.jit
def gemv_words_split_k(X, W, S, Z, OUT, N, G: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, PARTS: tl.constexpr):
    # One row times words of eight nibbles; two blocks of K in a program share their loaded scales, the sums go by atomics.
    n = tl.program_id(0) * BN + tl.arange(0, BN)
    n = tl.max_contiguous(tl.multiple_of(n, BN), BN)
    start = tl.program_id(1) * BK * PARTS
    group = start // G
    scale = tl.load(S + group * N + n, eviction_policy="evict_first").to(tl.float32)
    zero = tl.load(Z + group * N + n, eviction_policy="evict_first").to(tl.float32)
    acc = tl.zeros((BN,), tl.float32)
    for part in tl.static_range(PARTS):
        k = start + part * BK + tl.arange(0, BK)
        x = tl.load(X + k, eviction_policy="evict_last").to(tl.float32)
        word = tl.load(W + (k // 8)[:, None] * N + n[None, :], eviction_policy="evict_first")
        w = ((word >> (k % 8 * 4)[:, None]) & 15).to(tl.float32)
        acc += tl.sum(x[:, None] * (w - zero[None, :]), 0)
    tl.atomic_add(OUT + n, acc * scale, sem="relaxed")


@case
def gemv_words_of_nibbles_reversed_split():
    n, k, g = 8192, 4096, 128
    s, z, out = uniform(k // g, n).half() * 0.01, ints(0, 16, k // g, n).half(), zeros(n, dtype="float32")
    args = rand(k), ints(-(1 << 31), (1 << 31) - 1, k // 8, n), s, z, out, n
    return cleared(run(gemv_words_split_k, (n // 256, k // 32), args, out, G=g, BN=256, BK=16, PARTS=2, num_warps=4, num_stages=1), out)


@triton.jit
def soap_step(P, G, L, R, M1, M2, P_OUT, M1_OUT, M2_OUT, lr, b1, b2, eps, correction, D: tl.constexpr):
    # Gradients turned into the basis of both sides, a step of Adam there, and turned back; blocks of 64 by 64.
    i, j = tl.arange(0, D)[:, None], tl.arange(0, D)[None, :]
    at = tl.program_id(0).to(tl.int64) * D * D + i * D + j
    left, right, g = tl.load(L + at), tl.load(R + at), tl.load(G + at)
    turned = tl.dot(tl.dot(tl.trans(left), g, input_precision="tf32"), right, input_precision="tf32")
    m1, m2 = tl.load(M1 + at), tl.load(M2 + at)
    m1 = b1 * m1 + (1.0 - b1) * turned
    m2 = b2 * m2 + (1.0 - b2) * turned * turned
    tl.store(M1_OUT + at, m1)
    tl.store(M2_OUT + at, m2)
    step = m1 / (tl.sqrt(m2) + eps) * correction
    step = tl.dot(tl.dot(left, step, input_precision="tf32"), tl.trans(right), input_precision="tf32")
    p = tl.load(P + at).to(tl.float32)
    tl.store(P_OUT + at, (p - lr * step).to(tl.bfloat16))


@case
def adam_in_turned_basis_of_blocks():
    blocks, d = 1024, 64
    p, g, m1, m2 = rand(blocks, d, d, dtype="bfloat16"), f32(blocks, d, d), f32(blocks, d, d), uniform(blocks, d, d) + 0.5
    left, right = f32(blocks, d, d) / 8, f32(blocks, d, d) / 8
    outs = zeros(blocks, d, d, dtype="bfloat16"), zeros(blocks, d, d, dtype="float32"), zeros(blocks, d, d, dtype="float32")
    args = p, g, left, right, m1, m2, *outs, 1e-2, 0.9, 0.95, 1e-8, 1.1
    return run(soap_step, (blocks,), args, outs, D=d, num_warps=4, num_stages=1)


@triton.jit
def mm_add_norm(
    A, B, BIAS, RES, W, SHIFT, OUT, SUM, M, K, stride_am, stride_bn, eps,
    N: tl.constexpr, BM: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    # A program owns whole rows, so what follows the product may normalize them.
    rm, rn, rk = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, N), tl.arange(0, BK)
    a_ptrs, b_ptrs = A + rm[:, None] * stride_am + rk[None, :], B + rk[:, None] + rn[None, :] * stride_bn
    acc = tl.zeros((BM, N), tl.float32)
    for k in range(0, K, BK):
        a = tl.load(a_ptrs, mask=(rm < M)[:, None] & (k + rk < K)[None, :], other=0.0)
        b = tl.load(b_ptrs, mask=(k + rk < K)[:, None], other=0.0, cache_modifier=".ca")
        acc = tl.dot(a, b, acc)
        a_ptrs += BK
        b_ptrs += BK
    live = rm[:, None] < M
    at = rm[:, None] * N + rn[None, :]
    y = acc + tl.load(BIAS + rn).to(tl.float32)[None, :] + tl.load(RES + at, mask=live, other=0.0).to(tl.float32)
    tl.store(SUM + at, y.to(tl.bfloat16), mask=live)
    mean = tl.sum(y, 1) / N
    y -= mean[:, None]
    scale = tl.rsqrt(tl.sum(y * y, 1) / N + eps)
    y = y * scale[:, None] * tl.load(W + rn)[None, :] + tl.load(SHIFT + rn)[None, :]
    tl.store(OUT + at, y.to(tl.bfloat16), mask=live)


@case
def gemm_of_whole_rows_add_layer_norm():
    m, n, k = 6000, 512, 1000
    a, b, res = rand(m, k, dtype="bfloat16"), rand(n, k, dtype="bfloat16"), rand(m, n, dtype="bfloat16")
    out, total = zeros(m, n, dtype="bfloat16"), zeros(m, n, dtype="bfloat16")
    args = a, b, rand(n, dtype="bfloat16"), res, f32(n), f32(n), out, total, m, k, k, k, 1e-5
    return run(mm_add_norm, (cdiv(m, 32),), args, (out, total), N=n, BM=32, BK=32, num_warps=8, num_stages=3)


@triton.jit
def mm_after_arrival(A, B, FLAGS, OUT, M, N, K, rank, PARTS, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Rows arrive in parts from other devices; tiles begin with this device's own part, and wait for the flag of theirs.
    rows, columns = M // BM, N // BN
    tile = tl.program_id(0)
    pm, pn = (tile // columns + rank * (rows // PARTS)) % rows, tile % columns
    flag = FLAGS + pm // (rows // PARTS)
    while tl.load(flag, volatile=True) != 1:
        pass
    m, n, k = pm * BM + tl.arange(0, BM), pn * BN + tl.arange(0, BN), tl.arange(0, BK)
    a, b = A + m[:, None] * K + k[None, :], B + k[:, None] * N + n[None, :]
    acc = tl.zeros((BM, BN), tl.float32)
    for _ in range(0, K, BK):
        acc = tl.dot(tl.load(a), tl.load(b), acc)
        a += BK
        b += BK * N
    tl.store(OUT + m[:, None] * N + n[None, :], acc.to(OUT.dtype.element_ty))


@case
def gemm_waits_for_flags_of_parts():
    m, n, k = 2048, 1536, 2048
    out = zeros(m, n, dtype="bfloat16")
    args = rand(m, k, dtype="bfloat16"), rand(k, n, dtype="bfloat16"), full(1, 8, dtype="int32"), out, m, n, k, 3, 8
    return run(mm_after_arrival, (m // 128 * (n // 128),), args, out, BM=128, BN=128, BK=32, num_warps=8, num_stages=4)


@triton.jit
def depthwise_then_pointwise(X, TAPS, W, BIAS, OUT, H, WIDTH, C: tl.constexpr, F: tl.constexpr, BW: tl.constexpr, BC: tl.constexpr):
    # Channels last: nine taps a channel make the left operand in registers, all channels are multiplied at once.
    x0, y, image = tl.program_id(0) * BW, tl.program_id(1), tl.program_id(2)
    x, f = x0 + tl.arange(0, BW), tl.arange(0, F)
    base = X + image.to(tl.int64) * H * WIDTH * C
    acc = tl.zeros((BW, F), tl.float32)
    for c0 in range(0, C, BC):
        c = c0 + tl.arange(0, BC)
        part = tl.zeros((BW, BC), tl.float32)
        for tap in tl.static_range(9):
            yy, xx = y + tap // 3 - 1, x + tap % 3 - 1
            inside = (yy >= 0) & (yy < H) & (xx >= 0) & (xx < WIDTH)
            pixel = tl.load(base + (yy * WIDTH + xx)[:, None] * C + c[None, :], mask=inside[:, None], other=0.0)
            part += pixel.to(tl.float32) * tl.load(TAPS + tap * C + c).to(tl.float32)[None, :]
        part = tl.clamp(part, 0.0, 6.0)
        acc = tl.dot(part.to(tl.float16), tl.load(W + c[:, None] * F + f[None, :]), acc)
    acc = tl.clamp(acc + tl.load(BIAS + f)[None, :], 0.0, 6.0)
    at = ((image.to(tl.int64) * H + y) * WIDTH + x)[:, None] * F + f[None, :]
    tl.store(OUT + at, acc.to(tl.float16), mask=(x < WIDTH)[:, None])


@case
def conv2d_depthwise_then_pointwise():
    b, h, w, c, f = 8, 56, 56, 128, 128
    out = zeros(b, h, w, f)
    args = rand(b, h, w, c), rand(9, c), rand(c, f) * 0.1, f32(f), out, h, w
    return run(depthwise_then_pointwise, (cdiv(w, 64), h, b), args, out, C=c, F=f, BW=64, BC=32, num_warps=4, num_stages=2)


@triton.jit
def winograd_products(V, U, OUT, TILES, C, F, ACROSS, DOWN, BT: tl.constexpr, BF: tl.constexpr, BC: tl.constexpr):
    # Sixteen products at once in three dimensions; then the sums of the output transform over both axes of four.
    t, f, c = tl.program_id(0) * BT + tl.arange(0, BT), tl.program_id(1) * BF + tl.arange(0, BF), tl.arange(0, BC)
    e = tl.arange(0, 16)[:, None, None]
    v = V + (e * TILES + t[None, :, None]) * C + c[None, None, :]
    u = U + (e * C + c[None, :, None]) * F + f[None, None, :]
    acc = tl.zeros((16, BT, BF), tl.float32)
    for _ in range(0, C, BC):
        acc = tl.dot(tl.load(v), tl.load(u), acc)
        v += BC
        u += BC * F
    square = tl.reshape(acc, (4, 4, BT, BF))
    i = tl.arange(0, 4)
    sums = tl.where(i < 3, 1.0, 0.0)
    differences = tl.where(i == 1, 1.0, tl.where(i == 0, 0.0, -1.0))
    image, y, x = t // (ACROSS * DOWN), t // ACROSS % DOWN * 2, t % ACROSS * 2
    for p in tl.static_range(2):
        across = tl.sum(square * (sums if p == 0 else differences)[:, None, None, None], 0)
        for q in tl.static_range(2):
            y_out = tl.sum(across * (sums if q == 0 else differences)[:, None, None], 0)
            at = ((image * DOWN * 2 + y + p) * ACROSS * 2 + x + q)[:, None] * F + f[None, :]
            tl.store(OUT + at, tl.maximum(y_out, 0.0).to(tl.float16))


@case
def conv2d_winograd_products_and_outputs():
    b, down, across, c, f = 16, 14, 16, 128, 128
    tiles = b * down * across
    out = zeros(b, down * 2, across * 2, f)
    args = rand(16, tiles, c) * 0.3, rand(16, c, f) * 0.3, out, tiles, c, f, across, down
    return run(winograd_products, (tiles // 32, f // 32), args, out, BT=32, BF=32, BC=32, num_warps=8, num_stages=2)


@triton.jit
def conv_in_groups(X, W, OUT, H, WIDTH, GROUPS, DILATION, CG: tl.constexpr, TAPS: tl.constexpr, BP: tl.constexpr):
    # Channels first, 32 of them in a group: pixels are the columns, dilated taps the loop.
    pixel, group, image = tl.program_id(0) * BP + tl.arange(0, BP), tl.program_id(1), tl.program_id(2)
    y, x = pixel // WIDTH, pixel % WIDTH
    ci, co = tl.arange(0, CG), tl.arange(0, CG)
    plane = H * WIDTH
    base = X + (image * GROUPS + group).to(tl.int64) * CG * plane
    acc = tl.zeros((CG, BP), tl.float32)
    for tap in range(TAPS * TAPS):
        yy, xx = y + (tap // TAPS - TAPS // 2) * DILATION, x + (tap % TAPS - TAPS // 2) * DILATION
        inside = (yy >= 0) & (yy < H) & (xx >= 0) & (xx < WIDTH) & (pixel < plane)
        v = tl.load(base + ci[:, None] * plane + (yy * WIDTH + xx)[None, :], mask=inside[None, :], other=0.0)
        w = tl.load(W + ((group * CG + co)[:, None] * CG + ci[None, :]) * TAPS * TAPS + tap)
        acc += tl.dot(w, v)
    out = OUT + (image * GROUPS + group).to(tl.int64) * CG * plane
    tl.store(out + co[:, None] * plane + pixel[None, :], acc.to(tl.bfloat16), mask=(pixel < plane)[None, :])


@case
def conv2d_groups_of_32_channels_dilated():
    b, groups, h, w, cg = 8, 8, 60, 60, 32
    out = zeros(b, groups * cg, h, w, dtype="bfloat16")
    args = rand(b, groups * cg, h, w, dtype="bfloat16"), rand(groups * cg, cg, 3, 3, dtype="bfloat16"), out, h, w, groups, 2
    return run(conv_in_groups, (cdiv(h * w, 128), groups, b), args, out, CG=cg, TAPS=3, BP=128, num_warps=4, num_stages=3)


@triton.jit
def mm_fp8_amax_transposed(
    A, B, C, CT, SA, SB, SC, AMAX, M, N, K,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    # Scales of earlier steps: the result is written in eight bits twice, as it is and transposed, its greatest magnitude kept.
    pm, pn = tile_at(tl.program_id(0), M, N, BM, BN, 8)
    m, n, k = pm * BM + tl.arange(0, BM), pn * BN + tl.arange(0, BN), tl.arange(0, BK)
    a_ptrs, b_ptrs = A + m[:, None] * K + k[None, :], B + n[None, :] * K + k[:, None]
    acc = tl.zeros((BM, BN), tl.float32)
    for _ in range(tl.cdiv(K, BK)):
        acc = tl.dot(tl.load(a_ptrs), tl.load(b_ptrs), acc, max_num_imprecise_acc=64)
        a_ptrs += BK
        b_ptrs += BK
    y = acc * (tl.load(SA) * tl.load(SB))
    y = 0.5 * y * (1.0 + tl.erf(y * 0.70710678))
    tl.atomic_max(AMAX, tl.max(tl.max(tl.abs(y), 1), 0))
    codes = tl.clamp(y * tl.load(SC), -448.0, 448.0).to(tl.float8e4nv)
    tl.store(C + m[:, None] * N + n[None, :], codes)
    tl.store(CT + n[:, None] * M + m[None, :], tl.trans(codes))


@case
def gemm_fp8_amax_and_transposed_copy():
    m, n, k = 2048, 2048, 1024
    c, ct, amax = zeros(m, n, dtype="float8_e4m3fn"), zeros(n, m, dtype="float8_e4m3fn"), zeros(1, dtype="float32")
    args = f8(m, k), f8(n, k), c, ct, full(0.05, 1), full(0.5, 1), full(20.0, 1), amax, m, n, k
    launched = cleared(run(mm_fp8_amax_transposed, (m // 128 * (n // 128),), args, (c, ct, amax), BM=128, BN=128, BK=128, num_warps=8, num_stages=3), amax)
    return viewed(launched, lambda outs: (far8(outs[0]), far8(outs[1]), outs[2]))


@triton.jit
def lower_triangle_times(L, B, OUT, M, N, scale, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # The longest rows first; only the tile on the diagonal is masked.
    pm, pn = tl.num_programs(0) - 1 - tl.program_id(0), tl.program_id(1)
    m, n, k = pm * BM + tl.arange(0, BM), pn * BN + tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    l, b = L + m[:, None] * M + k[None, :], B + k[:, None] * N + n[None, :]
    for _ in range(0, pm * BM, BK):
        acc = tl.dot(tl.load(l), tl.load(b), acc, input_precision="tf32")
        l += BK
        b += BK * N
    for k0 in range(pm * BM, pm * BM + BM, BK):
        low = tl.load(l, mask=m[:, None] >= k0 + k[None, :], other=0.0)
        acc = tl.dot(low, tl.load(b), acc, input_precision="tf32")
        l += BK
        b += BK * N
    tl.store(OUT + m[:, None] * N + n[None, :], acc * scale)


@case
def lower_triangle_times_dense_tf32():
    m, n = 2048, 768
    out = zeros(m, n, dtype="float32")
    args = f32(m, m), f32(m, n), out, m, n, 0.125
    return run(lower_triangle_times, (m // 64, n // 64), args, out, BM=64, BN=64, BK=32, num_warps=4, num_stages=4)


@triton.jit
def jagged_times_dense(
    OFFSETS, X, W, BIAS, OUT, N, K, stride_wb, stride_wk,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, HAS_BIAS: tl.constexpr,
):  # fmt: skip
    sequence, pm, pn = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    start = tl.load(OFFSETS + sequence).to(tl.int32)
    length = tl.load(OFFSETS + sequence + 1).to(tl.int32) - start
    if pm * BM >= length:
        return
    m, n, k = pm * BM + tl.arange(0, BM), pn * BN + tl.arange(0, BN), tl.arange(0, BK)
    x_ptrs = X + (start + m)[:, None] * K + k[None, :]
    w_ptrs = W + sequence * stride_wb + k[:, None] * stride_wk + n[None, :]
    acc = tl.zeros((BM, BN), tl.float32)
    for k0 in range(0, K, BK):
        x = tl.load(x_ptrs, mask=(m < length)[:, None] & (k0 + k < K)[None, :], other=0.0)
        w = tl.load(w_ptrs, mask=(k0 + k < K)[:, None] & (n < N)[None, :], other=0.0)
        acc += tl.dot(x, w)
        x_ptrs += BK
        w_ptrs += BK * stride_wk
    if HAS_BIAS:
        acc += tl.load(BIAS + sequence * N + n, mask=n < N, other=0.0).to(tl.float32)[None, :]
    tl.store(OUT + (start + m)[:, None] * N + n[None, :], acc.to(OUT.dtype.element_ty), mask=(m < length)[:, None] & (n < N)[None, :])


@case
def jagged_rows_times_matrices_with_bias():
    b, most, n, k = 120, 512, 200, 72
    lengths = ints(0, most + 1, b, dtype="int64")
    offsets = torch.cat((lengths.new_zeros(1), lengths.cumsum(0)))
    total = int(offsets[-1])
    out = zeros(total, n, dtype="bfloat16")
    args = offsets, rand(total, k, dtype="bfloat16"), rand(b, k, n, dtype="bfloat16"), rand(b, n, dtype="bfloat16"), out, n, k, k * n, n
    return run(jagged_times_dense, (b, cdiv(most, 64), cdiv(n, 64)), args, out, BM=64, BN=64, BK=32, HAS_BIAS=True, num_warps=4, num_stages=2)


@triton.jit
def jagged_outer_products(OFFSETS, X, G, OUT, K, N, most, BK: tl.constexpr, BN: tl.constexpr, BT: tl.constexpr):
    # Gradients of a matrix a sequence: the ragged axis is the one that is summed over.
    sequence, pk, pn = tl.program_id(2), tl.program_id(0), tl.program_id(1)
    start, end = tl.load(OFFSETS + sequence), tl.load(OFFSETS + sequence + 1)
    length = tl.minimum(end - start, most)
    k, n = pk * BK + tl.arange(0, BK), pn * BN + tl.arange(0, BN)
    acc = tl.zeros((BK, BN), tl.float32)
    for t0 in range(0, length, BT):
        t = t0 + tl.arange(0, BT)
        x = tl.load(X + (start + t)[None, :] * K + k[:, None], mask=(t < length)[None, :] & (k < K)[:, None], other=0.0)
        g = tl.load(G + (start + t)[:, None] * N + n[None, :], mask=(t < length)[:, None] & (n < N)[None, :], other=0.0)
        acc = tl.dot(x, g, acc)
    tl.store(OUT + (sequence * K + k)[:, None] * N + n[None, :], acc, mask=(k < K)[:, None] & (n < N)[None, :])


@case
def jagged_rows_to_gradients_of_matrices():
    b, most, n, k = 160, 600, 200, 96
    lengths = ints(0, most + 1, b, dtype="int64")
    offsets = torch.cat((lengths.new_zeros(1), lengths.cumsum(0)))
    total = int(offsets[-1])
    out = zeros(b, k, n, dtype="float32")
    args = offsets, rand(total, k), rand(total, n), out, k, n, most
    return run(jagged_outer_products, (cdiv(k, 32), cdiv(n, 128), b), args, out, BK=32, BN=128, BT=64, num_warps=4, num_stages=3)


@triton.jit
def monarch_product(X, LEFT, RIGHT, OUT, ROWS, B: tl.constexpr, BM: tl.constexpr):
    # Block-diagonal, permuted, block-diagonal: sixteen blocks of sixteen on each side, as dots in three dimensions.
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    b, i, j = tl.arange(0, B)[:, None, None], tl.arange(0, B)[None, :, None], tl.arange(0, B)[None, None, :]
    x = tl.load(X + m[None, :, None] * (B * B) + b * B + j, mask=(m < ROWS)[None, :, None], other=0.0)
    w = tl.load(RIGHT + (b * B + i) * B + j)
    y = tl.dot(x, w).to(X.dtype.element_ty)
    y = tl.permute(y, (2, 1, 0))
    z = tl.dot(y, tl.load(LEFT + (b * B + i) * B + j))
    at = m[None, :, None] * (B * B) + j * B + b
    tl.store(OUT + at, z.to(OUT.dtype.element_ty), mask=(m < ROWS)[None, :, None])


@case
def monarch_matrix_of_two_factors():
    rows, b = 30000, 16
    out = zeros(rows, b * b)
    args = rand(rows, b * b), rand(b, b, b), rand(b, b, b), out, rows
    return run(monarch_product, (cdiv(rows, 32),), args, out, B=b, BM=32, num_warps=4, num_stages=1)


@triton.jit
def update_statistics(s, top, total):
    new = tl.maximum(top, tl.max(s, 1))
    back = tl.exp(top - new)
    p = tl.exp(s - new[:, None])
    return new, total * back + tl.sum(p, 1), p, back


@triton.jit
def distill_two_heads(XS, WS, XT, WT, LOSS, V, tau, DS: tl.constexpr, DT: tl.constexpr, BM: tl.constexpr, BV: tl.constexpr):
    # KL of teacher from student without logits in memory: both heads' products of each block of words, three running sums.
    m, s, t = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, DS), tl.arange(0, DT)
    xs, xt = tl.load(XS + m[:, None] * DS + s[None, :]), tl.load(XT + m[:, None] * DT + t[None, :])
    top_s, sum_s = tl.full((BM,), -float("inf"), tl.float32), tl.zeros((BM,), tl.float32)
    top_t, sum_t, cross = tl.full((BM,), -float("inf"), tl.float32), tl.zeros((BM,), tl.float32), tl.zeros((BM,), tl.float32)
    for v0 in tl.range(0, V, BV):
        v = v0 + tl.arange(0, BV)
        live = v < V
        a = tl.dot(xs, tl.load(WS + v[None, :] * DS + s[:, None], mask=live[None, :], other=0.0)) / tau
        b = tl.dot(xt, tl.load(WT + v[None, :] * DT + t[:, None], mask=live[None, :], other=0.0)) / tau
        a, b = tl.where(live[None, :], a, -1e30), tl.where(live[None, :], b, -1e30)
        top_s, sum_s, _, _ = update_statistics(a, top_s, sum_s)
        top_t, sum_t, p, back = update_statistics(b, top_t, sum_t)
        cross = cross * back + tl.sum(tl.where(live[None, :], p * (b - a), 0.0), 1)
    tl.store(LOSS + m, cross / sum_t - (top_t + tl.log(sum_t)) + (top_s + tl.log(sum_s)))


@case
def distillation_of_two_heads_streamed():
    rows, v, ds, dt = 4096, 8000, 64, 128
    loss = zeros(rows, dtype="float32")
    xs, ws = rand(rows, ds, dtype="bfloat16") * 0.4, rand(v, ds, dtype="bfloat16") * 0.4
    xt, wt = rand(rows, dt, dtype="bfloat16") * 0.4, rand(v, dt, dtype="bfloat16") * 0.4
    return run(distill_two_heads, (rows // 32,), (xs, ws, xt, wt, loss, v, 2.0), loss, DS=ds, DT=dt, BM=32, BV=64, num_warps=4, num_stages=3)


@triton.jit
def sample_in_head(X, W, BEST, WORD, V, K, PER, seed, inverse, BM: tl.constexpr, BV: tl.constexpr, BK: tl.constexpr):
    # Logits never leave: Gumbel noise is added to a tile's and only the best of a part of the words is kept, by row.
    m, part = tl.arange(0, BM), tl.program_id(0)
    best, word = tl.full((BM,), -float("inf"), tl.float32), tl.zeros((BM,), tl.int32)
    for v0 in range(part * PER, part * PER + PER, BV):
        v, k = v0 + tl.arange(0, BV), tl.arange(0, BK)
        acc = tl.zeros((BM, BV), tl.float32)
        for k0 in range(0, K, BK):
            x = tl.load(X + m[:, None] * K + (k0 + k)[None, :])
            w = tl.load(W + v[None, :] * K + (k0 + k)[:, None], mask=(v < V)[None, :], other=0.0)
            acc = tl.dot(x, w, acc)
        u = tl.rand(seed, m[:, None] * V + v[None, :])
        score = acc * inverse - tl.log(-tl.log(u * 0.9999998 + 1e-7))
        score = tl.where((v < V)[None, :], score, -float("inf"))
        top, at = tl.max(score, 1, return_indices=True)
        word = tl.where(top > best, v0 + at, word)
        best = tl.maximum(best, top)
    tl.store(BEST + part * BM + m, best)
    tl.store(WORD + part * BM + m, word)


@case
def sampling_fused_with_last_product():
    m, v, k, per = 32, 30000, 1024, 256
    parts = cdiv(v, per)
    best, word = zeros(parts, m, dtype="float32"), zeros(parts, m, dtype="int32")
    args = rand(m, k, dtype="bfloat16"), rand(v, k, dtype="bfloat16") * 0.03, best, word, v, k, per, 77, 1.25
    return run(sample_in_head, (parts,), args, (best, word), BM=m, BV=64, BK=64, num_warps=4, num_stages=4)


@triton.jit
def scan_lists(Q, LISTS, STARTS, CODES, SCALE, BEST, AT, PROBES, D: tl.constexpr, BN: tl.constexpr, BQ: tl.constexpr):
    # Sixteen queries of one cell walk the same inverted list of bytes; each lane of a row keeps its own best, joined at the end.
    cell, q, d = tl.program_id(0), tl.arange(0, BQ), tl.arange(0, D)
    queries = tl.load(Q + (cell * BQ + q)[:, None] * D + d[None, :])
    best, at = tl.full((BQ, BN), -float("inf"), tl.float32), tl.zeros((BQ, BN), tl.int32)
    for probe in range(PROBES):
        which = tl.load(LISTS + cell * PROBES + probe)
        start, end = tl.load(STARTS + which), tl.load(STARTS + which + 1)
        for n0 in tl.range(start, end, BN, num_stages=3):
            n = n0 + tl.arange(0, BN)
            codes = tl.load(CODES + n[None, :] * D + d[:, None], mask=(n < end)[None, :], other=0)
            s = tl.dot(queries, codes, out_dtype=tl.int32).to(tl.float32) * tl.load(SCALE + n, mask=n < end, other=0.0)[None, :]
            s = tl.where((n < end)[None, :], s, -float("inf"))
            at = tl.where(s > best, n[None, :], at)
            best = tl.maximum(best, s)
    top, lane = tl.max(best, 1, return_indices=True)
    tl.store(BEST + cell * BQ + q, top)
    tl.store(AT + cell * BQ + q, tl.sum(tl.where(tl.arange(0, BN)[None, :] == lane[:, None], at, 0), 1))


@case
def inverted_lists_scanned_for_best():
    cells, probes, lists, d, bq = 256, 4, 1024, 96 + 32, 16
    lengths = ints(20, 400, lists)
    starts = torch.cat((lengths.new_zeros(1), lengths.cumsum(0))).to(torch.int32)
    n = int(starts[-1])
    best, at = zeros(cells, bq, dtype="float32"), zeros(cells, bq, dtype="int32")
    which = (ints(0, 256, cells, probes) + arange(probes)[None, :] * 256).to(torch.int32)
    args = ints(-127, 128, cells, bq, d, dtype="int8"), which, starts, ints(-127, 128, n, d, dtype="int8"), uniform(n) + 0.5, best, at, probes
    return run(scan_lists, (cells,), args, (best, at), D=d, BN=64, BQ=bq, num_warps=4, num_stages=3)


@triton.jit
def transition(X, W1, W2, W3, GAMMA, BETA, OUT, ROWS, C: tl.constexpr, HIDDEN: tl.constexpr, BM: tl.constexpr, BH: tl.constexpr):
    # Norm, two projections, a gate, and back: blocks of hidden units in a loop, all in one kernel, and the input added.
    m, c = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, C)
    at = m[:, None] * C + c[None, :]
    x = tl.load(X + at, mask=(m < ROWS)[:, None], other=0.0).to(tl.float32)
    mean = tl.sum(x, 1) / C
    centered = x - mean[:, None]
    y = centered * tl.rsqrt(tl.sum(centered * centered, 1) / C + 1e-5)[:, None]
    y = (y * tl.load(GAMMA + c)[None, :] + tl.load(BETA + c)[None, :]).to(tl.bfloat16)
    acc = tl.zeros((BM, C), tl.float32)
    for h0 in range(0, HIDDEN, BH):
        h = h0 + tl.arange(0, BH)
        a = tl.dot(y, tl.load(W1 + c[:, None] * HIDDEN + h[None, :]))
        b = tl.dot(y, tl.load(W2 + c[:, None] * HIDDEN + h[None, :]))
        gated = (a * tl.sigmoid(a) * b).to(tl.bfloat16)
        acc = tl.dot(gated, tl.load(W3 + h[:, None] * C + c[None, :]), acc)
    tl.store(OUT + at, (x + acc).to(tl.bfloat16), mask=(m < ROWS)[:, None])


@case
def transition_of_pairs_in_one_kernel():
    rows, c, hidden = 20000, 128, 512
    w1, w2, w3 = (rand(*shape, dtype="bfloat16") * 0.08 for shape in ((c, hidden), (c, hidden), (hidden, c)))
    out = zeros(rows, c, dtype="bfloat16")
    args = rand(rows, c, dtype="bfloat16"), w1, w2, w3, f32(c) * 0.1 + 1, f32(c) * 0.1, out, rows
    return run(transition, (cdiv(rows, 64),), args, out, C=c, HIDDEN=hidden, BM=64, BH=32, num_warps=4, num_stages=2)


@triton.jit
def sparse_conv_gradients(X, G, IN, TO, COUNT, OUT, MOST, CI: tl.constexpr, CO: tl.constexpr, BT: tl.constexpr, PARTS: tl.constexpr):
    # For each of 27 taps the pairs of places it joins: rows of both sides are gathered, the products of parts summed by atomics.
    tap, part = tl.program_id(0), tl.program_id(1)
    count = tl.load(COUNT + tap)
    ci, co = tl.arange(0, CI), tl.arange(0, CO)
    acc = tl.zeros((CI, CO), tl.float32)
    for t0 in range(part * BT, count, PARTS * BT):
        t = t0 + tl.arange(0, BT)
        live = t < count
        i = tl.load(IN + tap * MOST + t, mask=live, other=0)
        o = tl.load(TO + tap * MOST + t, mask=live, other=0)
        x = tl.load(X + i[None, :] * CI + ci[:, None], mask=live[None, :], other=0.0)
        g = tl.load(G + o[:, None] * CO + co[None, :], mask=live[:, None], other=0.0)
        acc += tl.dot(x, g)
    tl.atomic_add(OUT + (tap * CI + ci)[:, None] * CO + co[None, :], acc, sem="relaxed")


@case
def sparse_conv_gradients_of_taps():
    places, most, ci, co = 50000, 20000, 64, 64
    out = zeros(27, ci, co, dtype="float32")
    args = rand(places, ci), rand(places, co), ints(0, places, 27, most), ints(0, places, 27, most), ints(2000, most, 27), out, most
    return cleared(run(sparse_conv_gradients, (27, 16), args, out, CI=ci, CO=co, BT=64, PARTS=16, num_warps=4, num_stages=3), out)


@triton.jit
def short_conv_projected(BCX, TAPS, W, OUT, T, N, C: tl.constexpr, BT: tl.constexpr, BN: tl.constexpr, BC: tl.constexpr):
    # c * conv(b * x) through a matrix: eight rows of pointers with their masks make the left operand of each step.
    t, n, batch = tl.program_id(0) * BT + tl.arange(0, BT), tl.program_id(1) * BN + tl.arange(0, BN), tl.program_id(2)
    base = BCX + batch.to(tl.int64) * T * 3 * C
    acc = tl.zeros((BT, BN), tl.float32)
    for c0 in range(0, C, BC):
        c = c0 + tl.arange(0, BC)
        y = tl.zeros((BT, BC), tl.float32)
        for back in tl.static_range(4):
            live = ((t >= back) & (t < T))[:, None]
            row = base + (t - back)[:, None] * (3 * C) + c[None, :]
            b, x = tl.load(row, mask=live, other=0.0), tl.load(row + 2 * C, mask=live, other=0.0)
            y += (b * x).to(tl.float32) * tl.load(TAPS + (3 - back) * C + c)[None, :]
        gate = tl.load(base + t[:, None] * (3 * C) + C + c[None, :], mask=(t < T)[:, None], other=0.0)
        acc = tl.dot((y * gate).to(tl.bfloat16), tl.load(W + c[:, None] * N + n[None, :]), acc)
    at = (batch * T + t)[:, None] * N + n[None, :]
    tl.store(OUT + at, acc.to(tl.bfloat16), mask=(t < T)[:, None])


@case
def short_convolution_gated_and_projected():
    b, t, c, n = 4, 1000, 512, 512
    out = zeros(b, t, n, dtype="bfloat16")
    args = rand(b, t, 3 * c, dtype="bfloat16"), f32(4, c), rand(c, n, dtype="bfloat16") * 0.05, out, t, n
    return run(short_conv_projected, (cdiv(t, 64), n // 128, b), args, out, C=c, BT=64, BN=128, BC=32, num_warps=4, num_stages=3)


@triton.jit
def similar_pairs(X, BITS, COUNT, N, threshold, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    # Bytes of rows against later rows: a bit for each pair above a threshold, 32 to a word, and how many a row has.
    pm, pn = tl.program_id(0), tl.program_id(1)
    if pn * BN + BN <= pm * BM:
        return
    m, n, d = pm * BM + tl.arange(0, BM), pn * BN + tl.arange(0, BN), tl.arange(0, D)
    x = tl.load(X + m[:, None] * D + d[None, :])
    y = tl.load(X + n[None, :] * D + d[:, None])
    near = (tl.dot(x, y) > threshold) & (m[:, None] < n[None, :])
    words = tl.sum(tl.reshape(near.to(tl.int32), (BM, BN // 32, 32)) << tl.arange(0, 32)[None, None, :], 2)
    w = pn * (BN // 32) + tl.arange(0, BN // 32)
    tl.store(BITS + m[:, None] * (N // 32) + w[None, :], words)
    found = tl.sum(near.to(tl.int32), 1)
    tl.atomic_add(COUNT + m, found, mask=found > 0, sem="relaxed")


@case
def similar_pairs_of_bytes_to_bitmaps():
    n, d = 6144, 128
    bits, count = zeros(n, n // 32, dtype="int32"), zeros(n, dtype="int32")
    args = ints(-127, 128, n, d, dtype="int8"), bits, count, n, 120000
    return cleared(run(similar_pairs, (n // 128, n // 128), args, (bits, count), D=d, BM=128, BN=128, num_warps=8, num_stages=1), count)


@triton.jit
def covariance_less_means(X, MEAN, OUT, ROWS, N, PER, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Tall columns against each other, means taken away when loaded; halves of float32 in three products, parts of rows by atomics.
    pm, pn, part = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    if pn < pm:
        return
    m, n = pm * BM + tl.arange(0, BM), pn * BN + tl.arange(0, BN)
    mean_m, mean_n = tl.load(MEAN + m, mask=m < N, other=0.0), tl.load(MEAN + n, mask=n < N, other=0.0)
    acc = tl.zeros((BM, BN), tl.float32)
    for k0 in range(part * PER, tl.minimum(part * PER + PER, ROWS), BK):
        k = k0 + tl.arange(0, BK)
        a = tl.load(X + k[None, :] * N + m[:, None], mask=(k < ROWS)[None, :] & (m < N)[:, None], other=0.0)
        b = tl.load(X + k[:, None] * N + n[None, :], mask=(k < ROWS)[:, None] & (n < N)[None, :], other=0.0)
        a = tl.where((k < ROWS)[None, :], a - mean_m[:, None], 0.0)
        b = tl.where((k < ROWS)[:, None], b - mean_n[None, :], 0.0)
        acc = tl.dot(a, b, acc, input_precision="bf16x3")
    tl.atomic_add(OUT + m[:, None] * N + n[None, :], acc, mask=(m < N)[:, None] & (n < N)[None, :])


@case
def covariance_of_columns_bf16x3():
    rows, n, parts = 30000, 500, 16
    out = zeros(n, n, dtype="float32")
    x = f32(rows, n) + 0.3
    args = x, x.mean(0), out, rows, n, cdiv(cdiv(rows, parts), 32) * 32
    return cleared(run(covariance_less_means, (cdiv(n, 64), cdiv(n, 64), parts), args, out, BM=64, BN=64, BK=32, num_warps=4, num_stages=2), out)


@triton.jit
def mm_of_joined_inputs(A1, A2, TABLE, INDEX, W, OUT, M, N, K1, K2, K3, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # The left operand is three things side by side, of which one is gathered by row: a branch in the loop says which.
    m, n, k = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN), tl.arange(0, BK)
    index = tl.load(INDEX + m, mask=m < M, other=0)
    live = (m < M)[:, None]
    acc = tl.zeros((BM, BN), tl.float32)
    for k0 in range(0, K1 + K2 + K3, BK):
        if k0 < K1:
            a = tl.load(A1 + m[:, None] * K1 + (k0 + k)[None, :], mask=live, other=0.0)
        elif k0 < K1 + K2:
            a = tl.load(A2 + m[:, None] * K2 + (k0 - K1 + k)[None, :], mask=live, other=0.0)
        else:
            a = tl.load(TABLE + index[:, None] * K3 + (k0 - K1 - K2 + k)[None, :], mask=live, other=0.0)
        acc = tl.dot(a, tl.load(W + (k0 + k)[:, None] * N + n[None, :]), acc)
    y = tl.where(acc > 0.0, acc, tl.exp(acc) - 1.0)
    tl.store(OUT + m[:, None] * N + n[None, :], y.to(OUT.dtype.element_ty), mask=live)


@case
def gemm_of_inputs_side_by_side():
    m, n, k1, k2, k3 = 10000, 256, 256, 64, 128
    out = zeros(m, n)
    args = rand(m, k1), rand(m, k2), rand(500, k3), ints(0, 500, m), rand(k1 + k2 + k3, n) * 0.05, out, m, n, k1, k2, k3
    return run(mm_of_joined_inputs, (cdiv(m, 64), n // 128), args, out, BM=64, BN=128, BK=32, num_warps=4, num_stages=3)


@triton.jit
def grouped_gradients_scaled_along_k(
    A, B, SA, SB, ENDS, OUT, M, N, TOTAL, stride_om,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    # Gradients of experts' weights: a group is a range of K; both sides have a scale for 128 of K in each row.
    group = tl.program_id(2)
    start = tl.load(ENDS + group - 1, mask=group > 0, other=0)
    end = tl.load(ENDS + group)
    m, n, k = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN), tl.arange(0, BK)
    a_ptrs, b_ptrs = A + m[:, None] * TOTAL + start + k[None, :], B + n[None, :] * TOTAL + start + k[:, None]
    sa_ptrs, sb_ptrs = SA + (start // BK) * M + m, SB + (start // BK) * N + n
    acc = tl.zeros((BM, BN), tl.float32)
    for _ in range(start, end, BK):
        sa, sb = tl.load(sa_ptrs), tl.load(sb_ptrs)
        acc += tl.dot(tl.load(a_ptrs), tl.load(b_ptrs)) * sa[:, None] * sb[None, :]
        a_ptrs += BK
        b_ptrs += BK
        sa_ptrs += M
        sb_ptrs += N
    at = group.to(tl.int64) * M * stride_om + m[:, None] * stride_om + n[None, :]
    tl.store(OUT + at, acc)


@case
def gradients_of_experts_fp8_scaled_along_k():
    m, n, groups = 512, 768, 16
    ends = (ints(0, 8, groups).cumsum(0) * 128).to(torch.int32)
    total = max(int(ends[-1]), 128)
    out = zeros(groups, m, n, dtype="float32")
    args = f8(m, total), f8(n, total), uniform(total // 128, m), uniform(total // 128, n), ends, out, m, n, total, n
    return run(grouped_gradients_scaled_along_k, (m // 128, n // 128, groups), args, out, BM=128, BN=128, BK=128, num_warps=8, num_stages=3)


@triton.jit
def gate_gradient(g, gate, up):
    s = tl.sigmoid(gate)
    return g * up * s * (1.0 + gate * (1.0 - s))


@triton.jit
def weight_gradient_of_gate(X, G, GATE, UP, OUT, ROWS, K, N, BK: tl.constexpr, BN: tl.constexpr, BM: tl.constexpr):
    # X^T times the derivative of silu(gate) * up, which is made from three loads in the loop; rows are what is summed over.
    k, n = tl.program_id(0) * BK + tl.arange(0, BK), tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BK, BN), tl.float32)
    for m0 in tl.range(0, ROWS, BM):
        m = m0 + tl.arange(0, BM)
        live = (m < ROWS)[:, None]
        x = tl.load(X + m[:, None] * K + k[None, :], mask=live, other=0.0)
        at = m[:, None] * N + n[None, :]
        g = tl.load(G + at, mask=live, other=0.0).to(tl.float32)
        gate, up = tl.load(GATE + at, mask=live, other=0.0).to(tl.float32), tl.load(UP + at, mask=live, other=0.0).to(tl.float32)
        acc = tl.dot(tl.trans(x), gate_gradient(g, gate, up).to(tl.bfloat16), acc)
    tl.store(OUT + k[:, None] * N + n[None, :], acc)


@case
def weight_gradient_through_gate():
    rows, k, n = 3000, 768, 1024
    out = zeros(k, n, dtype="float32")
    args = rand(rows, k, dtype="bfloat16"), *(rand(rows, n, dtype="bfloat16") for _ in range(3)), out, rows, k, n
    return run(weight_gradient_of_gate, (k // 64, n // 128), args, out, BK=64, BN=128, BM=32, num_warps=4, num_stages=3)


@triton.jit
def project_and_rotate(
    X, W, COS, SIN, PLACE, Q, K, V, M, DIM, HQ, HK, stride_x,
    D: tl.constexpr, BM: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    # A tile of columns is a head: queries and keys are rotated before they leave, each to its own tensor.
    head, m = tl.program_id(0), tl.program_id(1) * BM + tl.arange(0, BM)
    d, k = tl.arange(0, D), tl.arange(0, BK)
    live = m < M
    x_ptrs, w_ptrs = X + m[:, None] * stride_x + k[None, :], W + (head * D + d)[None, :] * DIM + k[:, None]
    acc = tl.zeros((BM, D), tl.float32)
    for k0 in tl.range(0, DIM, BK, num_stages=4):
        acc = tl.dot(tl.load(x_ptrs, mask=live[:, None], other=0.0), tl.load(w_ptrs), acc)
        x_ptrs += BK
        w_ptrs += BK
    if head < HQ + HK:
        half = tl.arange(0, D // 2)
        place = tl.load(PLACE + m, mask=live, other=0)
        cos = tl.load(COS + place[:, None] * (D // 2) + half[None, :])
        sin = tl.load(SIN + place[:, None] * (D // 2) + half[None, :])
        left, right = tl.split(tl.permute(tl.reshape(acc, (BM, 2, D // 2)), (0, 2, 1)))
        turned = tl.join(left * cos - right * sin, right * cos + left * sin)
        acc = tl.reshape(tl.permute(turned, (0, 2, 1)), (BM, D))
    y = acc.to(tl.bfloat16)
    if head < HQ:
        tl.store(Q + (m[:, None] * HQ + head) * D + d[None, :], y, mask=live[:, None])
    elif head < HQ + HK:
        tl.store(K + (m[:, None] * HK + head - HQ) * D + d[None, :], y, mask=live[:, None])
    else:
        tl.store(V + (m[:, None] * HK + head - HQ - HK) * D + d[None, :], y, mask=live[:, None])


@case
def gemm_of_heads_rotated_on_leaving():
    m, dim, hq, hk, d = 2000, 1024, 16, 4, 128
    angle = arange(4096).float()[:, None] * 10000.0 ** (-arange(d // 2).float() / (d // 2))[None, :]
    outs = zeros(m, hq, d, dtype="bfloat16"), zeros(m, hk, d, dtype="bfloat16"), zeros(m, hk, d, dtype="bfloat16")
    args = rand(m, dim, dtype="bfloat16"), rand((hq + 2 * hk) * d, dim, dtype="bfloat16"), angle.cos(), angle.sin(), ints(0, 4096, m)
    args = *args, *outs, m, dim, hq, hk, dim
    return run(project_and_rotate, (hq + 2 * hk, cdiv(m, 128)), args, outs, D=d, BM=128, BK=32, num_warps=8, num_stages=4)


@triton.jit
def mix_modes(X, W, OUT, B: tl.constexpr, C: tl.constexpr, F: tl.constexpr, BC: tl.constexpr):
    # One frequency a program: complex matrices as three products; real and imaginary parts lie side by side.
    mode = tl.program_id(0).to(tl.int64)
    b, f, two = tl.arange(0, B), tl.arange(0, F), tl.arange(0, 2)
    p, q, r = tl.zeros((B, F), tl.float32), tl.zeros((B, F), tl.float32), tl.zeros((B, F), tl.float32)
    for c0 in range(0, C, BC):
        c = c0 + tl.arange(0, BC)
        x = tl.load(X + ((mode * B + b[:, None, None]) * C + c[None, :, None]) * 2 + two[None, None, :])
        w = tl.load(W + ((mode * C + c[:, None, None]) * F + f[None, :, None]) * 2 + two[None, None, :])
        xr, xi = tl.split(x)
        wr, wi = tl.split(w)
        p = tl.dot(xr, wr, p, input_precision="tf32")
        q = tl.dot(xi, wi, q, input_precision="tf32")
        r = tl.dot(xr + xi, wr + wi, r, input_precision="tf32")
    at = OUT + ((mode * B + b[:, None, None]) * F + f[None, :, None]) * 2 + two[None, None, :]
    tl.store(at, tl.join(p - q, r - p - q))


@case
def modes_of_fourier_operator_mixed():
    modes, b, c, f = 1024, 16, 64, 64
    out = zeros(modes, b, f, 2, dtype="float32")
    return run(mix_modes, (modes,), (f32(modes, b, c, 2), f32(modes, c, f, 2), out), out, B=b, C=c, F=f, BC=32, num_warps=4, num_stages=2)


@triton.jit
def joint_of_all_pairs(ENC, PRED, W, LABEL, OUT_BLANK, OUT_LABEL, T, U, V, K: tl.constexpr, BT: tl.constexpr, BU: tl.constexpr, BV: tl.constexpr):
    # tanh(encoder + predictor) of tiles of 8 by 8 places, through all words in blocks: log-probabilities of two of them only.
    t, u, batch = tl.program_id(0) * BT + tl.arange(0, BT), tl.program_id(1) * BU + tl.arange(0, BU), tl.program_id(2)
    k, i = tl.arange(0, K), tl.arange(0, BT * BU)
    e = tl.load(ENC + (batch * T + t)[:, None] * K + k[None, :], mask=(t < T)[:, None], other=0.0).to(tl.float32)
    p = tl.load(PRED + (batch * U + u)[:, None] * K + k[None, :], mask=(u < U)[:, None], other=0.0).to(tl.float32)
    joint = 2.0 * tl.sigmoid(2.0 * (e[:, None, :] + p[None, :, :])) - 1.0
    joint = tl.reshape(joint, (BT * BU, K)).to(tl.float16)
    ti, ui = tl.program_id(0) * BT + i // BU, tl.program_id(1) * BU + i % BU
    label = tl.load(LABEL + batch * U + ui, mask=ui < U, other=0)
    top, total = tl.full((BT * BU,), -float("inf"), tl.float32), tl.zeros((BT * BU,), tl.float32)
    blank, chosen = tl.zeros((BT * BU,), tl.float32), tl.zeros((BT * BU,), tl.float32)
    for v0 in range(0, V, BV):
        v = v0 + tl.arange(0, BV)
        s = tl.dot(joint, tl.load(W + v[None, :] * K + k[:, None]))
        blank += tl.sum(tl.where(v[None, :] == 0, s, 0.0), 1)
        chosen += tl.sum(tl.where(v[None, :] == label[:, None], s, 0.0), 1)
        top, total, _, _ = update_statistics(s, top, total)
    lse = top + tl.log(total)
    at = (batch * T + ti) * U + ui
    tl.store(OUT_BLANK + at, blank - lse, mask=(ti < T) & (ui < U))
    tl.store(OUT_LABEL + at, chosen - lse, mask=(ti < T) & (ui < U))


@case
def joint_network_of_pairs_to_two_words():
    b, t, u, v, k = 8, 150, 40, 1024, 128
    blank, label = zeros(b, t, u, dtype="float32"), zeros(b, t, u, dtype="float32")
    args = rand(b, t, k), rand(b, u, k), rand(v, k) * 0.3, ints(1, v, b, u), blank, label, t, u, v
    return run(joint_of_all_pairs, (cdiv(t, 8), cdiv(u, 8), b), args, (blank, label), K=k, BT=8, BU=8, BV=64, num_warps=4, num_stages=3)
