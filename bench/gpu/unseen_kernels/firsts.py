"""Kernels as an engineer writes the first ones: loops over everything, sums for products, a program for a row or for one number."""

import torch
import torch.nn.functional as F
import triton
import triton.language as tl

from .common import against, arange, case, cdiv, cleared, f32, ints, rand, run, zeros


@triton.jit
def matmul_sum_middle(a_ptr, b_ptr, c_ptr, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    # The product of two tiles is a sum over the middle of three axes; pointers are advanced, the mask is made again each time.
    m, n = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M), tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    k = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + m[:, None] * K + k[None, :]
    b_ptrs = b_ptr + k[:, None] * N + n[None, :]
    c = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for i in range(0, tl.cdiv(K, BLOCK_K)):
        left = K - i * BLOCK_K
        a = tl.load(a_ptrs, mask=(m[:, None] < M) & (k[None, :] < left), other=0.0)
        b = tl.load(b_ptrs, mask=(k[:, None] < left) & (n[None, :] < N), other=0.0)
        c += tl.sum(a[:, :, None].to(tl.float32) * b[None, :, :].to(tl.float32), axis=1)
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K * N
    tl.store(c_ptr + m[:, None] * N + n[None, :], c, mask=(m[:, None] < M) & (n[None, :] < N))


def sums_for_products(block_m, block_n, block_k, warps, dtype):
    m, n, k = 500, 522, 402
    a, b, c = rand(m, k, dtype=dtype), rand(k, n, dtype=dtype), zeros(m, n, dtype="float32")
    sizes = {"BLOCK_M": block_m, "BLOCK_N": block_n, "BLOCK_K": block_k}
    launched = run(matmul_sum_middle, (cdiv(m, block_m), cdiv(n, block_n)), (a, b, c, m, n, k), c, num_warps=warps, **sizes)
    return against(launched, lambda: a.double() @ b.double())


@case
def products_by_sums_32x32x8_of_halves_eight_warps():
    return sums_for_products(32, 32, 8, 8, "float16")


@case
def products_by_sums_16x64x16_of_floats_four_warps():
    return sums_for_products(16, 64, 16, 4, "float32")


@triton.jit
def matmul_one_number(x_ptr, w_ptr, b_ptr, y_ptr, K, stride_xm, stride_wn, stride_ym, BLOCK_K: tl.constexpr):
    # One number of the result a program.
    row, col = tl.program_id(0), tl.program_id(1)
    total = 0.0
    for k0 in range(0, K, BLOCK_K):
        k = k0 + tl.arange(0, BLOCK_K)
        x = tl.load(x_ptr + row * stride_xm + k, mask=k < K, other=0.0)
        w = tl.load(w_ptr + col * stride_wn + k, mask=k < K, other=0.0)
        total += tl.sum(x * w)
    total += tl.load(b_ptr + col)
    if total < 0:
        total = total * 0.01
    tl.store(y_ptr + row * stride_ym + col, total)


@case
def linear_leaky_one_number_a_program():
    m, n, k = 300, 400, 1000
    x, w, b, y = f32(m, k), f32(n, k) / 32, f32(n), zeros(m, n, dtype="float32")
    launched = run(matmul_one_number, (m, n), (x, w, b, y, k, k, k, n), y, BLOCK_K=256, num_warps=1)
    return against(launched, lambda: F.leaky_relu(F.linear(x.double(), w.double(), b.double())))


@triton.jit
def attention_three_loops(q_ptr, k_ptr, v_ptr, o_ptr, S, scale, D: tl.constexpr):
    # One query a program, one key a step: the maximum, then the sum, then the values.
    i, head = tl.program_id(0), tl.program_id(1)
    d = tl.arange(0, D)
    base = head * S * D
    q = tl.load(q_ptr + base + i * D + d)
    top = float("-inf")
    for j in range(S):
        s = tl.sum(q * tl.load(k_ptr + base + j * D + d)) * scale
        top = max(top, s)
    total = 0.0
    for j in range(S):
        s = tl.sum(q * tl.load(k_ptr + base + j * D + d)) * scale
        total += tl.exp(s - top)
    out = tl.zeros((D,), dtype=tl.float32)
    for j in range(S):
        s = tl.sum(q * tl.load(k_ptr + base + j * D + d)) * scale
        out += tl.exp(s - top) / total * tl.load(v_ptr + base + j * D + d)
    tl.store(o_ptr + base + i * D + d, out)


@case
def attention_one_query_a_program_in_three_loops():
    heads, s, d = 12, 197, 64
    q, k, v, o = f32(heads, s, d), f32(heads, s, d), f32(heads, s, d), zeros(heads, s, d, dtype="float32")
    launched = run(attention_three_loops, (s, heads), (q, k, v, o, s, 0.125), o, D=d, num_warps=1)
    return against(launched, lambda: ((q @ k.transpose(1, 2)) * 0.125).softmax(-1) @ v)


@triton.jit
def matmul_a_transposed(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_ak, stride_am, stride_bk, stride_bn, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    # The transposed operand is read as it lies and turned before the dot; too many warps; sums in half precision.
    m, n, k = tl.program_id(1) * BM + tl.arange(0, BM), tl.program_id(0) * BN + tl.arange(0, BN), tl.arange(0, BK)
    a_ptrs = a_ptr + k[:, None] * stride_ak + m[None, :] * stride_am
    b_ptrs = b_ptr + k[:, None] * stride_bk + n[None, :] * stride_bn
    acc = tl.zeros((BM, BN), dtype=tl.float16)
    while K > 0:
        a = tl.load(a_ptrs, mask=(k[:, None] < K) & (m[None, :] < M), other=0.0)
        b = tl.load(b_ptrs, mask=(k[:, None] < K) & (n[None, :] < N), other=0.0)
        acc += tl.dot(tl.trans(a), b, out_dtype=tl.float16)
        a_ptrs += BK * stride_ak
        b_ptrs += BK * stride_bk
        K -= BK
    tl.store(c_ptr + m[:, None] * N + n[None, :], acc, mask=(m[:, None] < M) & (n[None, :] < N))


@case
def product_of_transposed_a_counted_down_16_warps():
    m, n, k = 1001, 1200, 700
    a, b, c = rand(k, m) / 8, rand(k, n) / 8, zeros(m, n)
    launched = run(matmul_a_transposed, (cdiv(n, 64), cdiv(m, 64)), (a, b, c, m, n, k, m, 1, n, 1), c, BM=64, BN=64, BK=16, num_warps=16)
    return against(launched, lambda: a.float().t() @ b.float())


@triton.jit
def best_word(x_ptr, at_ptr, low_ptr, V, stride, BLOCK: tl.constexpr):
    # The largest and its place, and the least, kept as scalars over the blocks of a row.
    row = tl.program_id(0)
    best, where = float("-inf"), 0
    least, least_at = float("inf"), 0
    for v0 in range(0, V, BLOCK):
        v = v0 + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * stride + v, mask=v < V, other=float("-inf"))
        high, i = tl.max(x, axis=0, return_indices=True)
        if high > best:
            best = high
            where = v0 + i
        low, j = tl.min(tl.where(v < V, x, float("inf")), axis=0, return_indices=True)
        if low < least:
            least = low
            least_at = v0 + j
    tl.store(at_ptr + row * 2, where)
    tl.store(at_ptr + row * 2 + 1, least_at)
    tl.store(low_ptr + row, best - least)


@case
def places_of_extremes_kept_as_scalars():
    rows, v = 1100, 20011
    x, at, spread = f32(rows, v), zeros(rows, 2, dtype="int32"), zeros(rows, dtype="float32")
    launched = run(best_word, (rows,), (x, at, spread, v, v), (at, spread), BLOCK=1024)
    return against(launched, lambda: (torch.stack((x.argmax(1), x.argmin(1)), 1), x.amax(1) - x.amin(1)))


@triton.jit
def softmax_dim0(x_ptr, y_ptr, M, N, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    # Over columns, three times through block pointers that are advanced and made again.
    n0 = tl.program_id(0) * BLOCK_N
    p = tl.make_block_ptr(x_ptr, shape=(M, N), strides=(N, 1), offsets=(0, n0), block_shape=(BLOCK_M, BLOCK_N), order=(1, 0))
    top = tl.full((BLOCK_N,), float("-inf"), tl.float32)
    for m0 in range(0, M, BLOCK_M):
        x = tl.load(p, boundary_check=(0, 1)).to(tl.float32)
        x = tl.where((m0 + tl.arange(0, BLOCK_M) < M)[:, None], x, float("-inf"))
        top = tl.maximum(top, tl.max(x, axis=0))
        p = tl.advance(p, (BLOCK_M, 0))
    p = tl.make_block_ptr(x_ptr, shape=(M, N), strides=(N, 1), offsets=(0, n0), block_shape=(BLOCK_M, BLOCK_N), order=(1, 0))
    total = tl.zeros((BLOCK_N,), tl.float32)
    for m0 in range(0, M, BLOCK_M):
        e = tl.exp(tl.load(p, boundary_check=(0, 1)).to(tl.float32) - top[None, :])
        total += tl.sum(tl.where((m0 + tl.arange(0, BLOCK_M) < M)[:, None], e, 0.0), axis=0)
        p = tl.advance(p, (BLOCK_M, 0))
    p = tl.make_block_ptr(x_ptr, shape=(M, N), strides=(N, 1), offsets=(0, n0), block_shape=(BLOCK_M, BLOCK_N), order=(1, 0))
    q = tl.make_block_ptr(y_ptr, shape=(M, N), strides=(N, 1), offsets=(0, n0), block_shape=(BLOCK_M, BLOCK_N), order=(1, 0))
    for _ in range(0, M, BLOCK_M):
        e = tl.exp(tl.load(p, boundary_check=(0, 1)).to(tl.float32) - top[None, :]) / total[None, :]
        tl.store(q, e.to(y_ptr.dtype.element_ty), boundary_check=(0, 1))
        p, q = tl.advance(p, (BLOCK_M, 0)), tl.advance(q, (BLOCK_M, 0))


@case
def softmax_of_columns_by_advanced_block_pointers():
    m, n = 1500, 8008
    x, y = rand(m, n), zeros(m, n)
    return against(run(softmax_dim0, (cdiv(n, 32),), (x, y, m, n), y, BLOCK_M=32, BLOCK_N=32), lambda: x.float().softmax(0))


@triton.jit
def cosine_matrix(a_ptr, b_ptr, y_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Norms of both sides are summed beside the product, in the same loop.
    m, n = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    na, nb = tl.zeros((BM,), tl.float32), tl.zeros((BN,), tl.float32)
    for k0 in range(0, K, BK):
        k = k0 + tl.arange(0, BK)
        a = tl.load(a_ptr + m[:, None] * K + k[None, :], mask=(m < M)[:, None] & (k < K)[None, :], other=0.0)
        b = tl.load(b_ptr + n[:, None] * K + k[None, :], mask=(n < N)[:, None] & (k < K)[None, :], other=0.0)
        acc += tl.dot(a, b.T)
        af, bf = a.to(tl.float32), b.to(tl.float32)
        na += tl.sum(af * af, axis=1)
        nb += tl.sum(bf * bf, axis=1)
    y = acc / (tl.maximum(tl.sqrt(na), 1e-8)[:, None] * tl.maximum(tl.sqrt(nb), 1e-8)[None, :])
    tl.store(y_ptr + m[:, None] * N + n[None, :], y, mask=(m < M)[:, None] & (n < N)[None, :])


@case
def cosines_of_all_pairs_with_norms_in_the_loop():
    m, n, k = 1000, 1111, 320
    a, b, y = rand(m, k), rand(n, k), zeros(m, n, dtype="float32")
    launched = run(cosine_matrix, (cdiv(m, 32), cdiv(n, 32)), (a, b, y, m, n, k), y, BM=32, BN=32, BK=32, num_warps=2)
    return against(launched, lambda: F.normalize(a.float(), dim=1) @ F.normalize(b.float(), dim=1).t())


@triton.jit
def chebyshev_nearest(a_ptr, b_ptr, y_ptr, at_ptr, M, N, K: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    # The largest difference of any coordinate, over the last of three axes; nearest so far by `tl.where`.
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    k = tl.arange(0, K)
    a = tl.load(a_ptr + m[:, None] * K + k[None, :], mask=(m < M)[:, None], other=0.0)
    best = tl.full((BM,), float("inf"), tl.float32)
    where = tl.zeros((BM,), tl.int32)
    for n0 in range(0, N, BN):
        n = n0 + tl.arange(0, BN)
        b = tl.load(b_ptr + n[:, None] * K + k[None, :], mask=(n < N)[:, None], other=float("inf"))
        far = tl.max(tl.abs(a[:, None, :] - b[None, :, :]), axis=2)
        low, i = tl.min(far, axis=1, return_indices=True)
        closer = low < best
        best = tl.where(closer, low, best)
        where = tl.where(closer, n0 + i, where)
    tl.store(y_ptr + m, best, mask=m < M)
    tl.store(at_ptr + m, where, mask=m < M)


@case
def nearest_by_largest_difference_of_16_coordinates():
    m, n, k = 4100, 3000, 16
    a, b, y, at = f32(m, k), f32(n, k), zeros(m, dtype="float32"), zeros(m, dtype="int32")
    launched = run(chebyshev_nearest, (cdiv(m, 16),), (a, b, y, at, m, n), (y, at), K=k, BM=16, BN=16)

    def reference():
        low, i = torch.cdist(a, b, p=float("inf")).min(1)
        return low, i

    return against(launched, reference)


@triton.jit
def gemv_padded_to_dot(w_ptr, x_ptr, y_ptr, N, K, BN: tl.constexpr, BK: tl.constexpr):
    # One vector becomes sixteen equal rows so that `tl.dot` takes it.
    n = tl.program_id(0) * BN + tl.arange(0, BN)
    acc = tl.zeros((16, BN), tl.float32)
    for k0 in range(0, K, BK):
        k = k0 + tl.arange(0, BK)
        x = tl.load(x_ptr + tl.zeros((16, 1), tl.int32) + k[None, :], mask=k[None, :] < K, other=0.0)
        w = tl.load(w_ptr + n[:, None] * K + k[None, :], mask=(n < N)[:, None] & (k < K)[None, :], other=0.0)
        acc += tl.dot(x, tl.trans(w))
    y = tl.sum(acc, axis=0) / 16
    tl.store(y_ptr + n, y.to(y_ptr.dtype.element_ty), mask=n < N)


@case
def vector_as_sixteen_equal_rows_times_matrix():
    n, k = 11008, 4096
    w, x, y = rand(n, k, dtype="bfloat16") / 64, rand(k, dtype="bfloat16"), zeros(n, dtype="bfloat16")
    return against(run(gemv_padded_to_dot, (cdiv(n, 32),), (w, x, y, n, k), y, BN=32, BK=64, num_warps=4), lambda: w.float() @ x.float())


@triton.jit
def bmm_tiny(a_ptr, b_ptr, c_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    # Products of 10x12 by 12x11, one a program, padded to 16.
    pid = tl.program_id(0)
    i = tl.arange(0, 16)
    a = tl.load(a_ptr + pid * M * K + i[:, None] * K + i[None, :], mask=(i[:, None] < M) & (i[None, :] < K), other=0.0)
    b = tl.load(b_ptr + pid * K * N + i[:, None] * N + i[None, :], mask=(i[:, None] < K) & (i[None, :] < N), other=0.0)
    c = tl.dot(a, b, input_precision="ieee")
    tl.store(c_ptr + pid * M * N + i[:, None] * N + i[None, :], c, mask=(i[:, None] < M) & (i[None, :] < N))


@case
def products_of_10x12_by_12x11_one_a_program():
    count = 30000
    a, b, c = f32(count, 10, 12), f32(count, 12, 11), zeros(count, 10, 11, dtype="float32")
    return against(run(bmm_tiny, (count,), (a, b, c), c, M=10, N=11, K=12, num_warps=1), lambda: a.double() @ b.double())


@triton.jit
def upper_times_upper(a_ptr, b_ptr, c_ptr, N, BLOCK: tl.constexpr):
    # The loop begins and ends where tiles are not zero; what lies below the diagonal of a tile is set to zero after the load.
    pi, pj = tl.program_id(0), tl.program_id(1)
    i, j = pi * BLOCK + tl.arange(0, BLOCK), pj * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK, BLOCK), tl.float32)
    for kt in range(pi, pj + 1):
        k = kt * BLOCK + tl.arange(0, BLOCK)
        a = tl.load(a_ptr + i[:, None] * N + k[None, :], mask=(i[:, None] < N) & (k[None, :] < N), other=0.0)
        b = tl.load(b_ptr + k[:, None] * N + j[None, :], mask=(k[:, None] < N) & (j[None, :] < N), other=0.0)
        a = tl.where(i[:, None] <= k[None, :], a, 0.0)
        b = tl.where(k[:, None] <= j[None, :], b, 0.0)
        acc += tl.dot(a, b, allow_tf32=False)
    tl.store(c_ptr + i[:, None] * N + j[None, :], acc, mask=(i[:, None] < N) & (j[None, :] < N))


@case
def upper_triangles_multiplied_32x32_ieee():
    n = 1030
    a, b, c = f32(n, n), f32(n, n), zeros(n, n, dtype="float32")
    return against(run(upper_times_upper, (cdiv(n, 32), cdiv(n, 32)), (a, b, c, n), c, BLOCK=32), lambda: a.double().triu() @ b.double().triu())


@triton.jit
def relative_rows(q_ptr, r_ptr, y_ptr, H, W, K, C: tl.constexpr, BW: tl.constexpr, BK: tl.constexpr):
    # bhwc,hkc->bhwk: one row of an image times its own table.
    h, b = tl.program_id(0), tl.program_id(1)
    w, k, c = tl.arange(0, BW), tl.arange(0, BK), tl.arange(0, C)
    q = tl.load(q_ptr + ((b * H + h) * W + w)[:, None] * C + c[None, :], mask=(w < W)[:, None], other=0.0)
    r = tl.load(r_ptr + (h * K + k)[:, None] * C + c[None, :], mask=(k < K)[:, None], other=0.0)
    y = tl.dot(q, r.T)
    tl.store(y_ptr + ((b * H + h) * W + w)[:, None] * K + k[None, :], y.to(y_ptr.dtype.element_ty), mask=(w < W)[:, None] & (k < K)[None, :])


@case
def rows_of_queries_times_their_own_tables():
    b, h, w, k, c = 96, 62, 60, 50, 64
    q, r, y = rand(b, h, w, c), rand(h, k, c) / 8, zeros(b, h, w, k)
    launched = run(relative_rows, (h, b), (q, r, y, h, w, k), y, C=c, BW=64, BK=64, num_warps=8)
    return against(launched, lambda: torch.einsum("bhwc,hkc->bhwk", q.float(), r.float()))


@triton.jit
def trilinear_attention(h_ptr, u_ptr, w_ptr, out_ptr, T, J, D: tl.constexpr, BJ: tl.constexpr):
    # Scores w . [h, u, h * u] of one word with all words of the question; a softmax; the sum of their vectors.
    t, b = tl.program_id(0), tl.program_id(1)
    j, d = tl.arange(0, BJ), tl.arange(0, D)
    w1, w2, w3 = tl.load(w_ptr + d), tl.load(w_ptr + D + d), tl.load(w_ptr + 2 * D + d)
    h = tl.load(h_ptr + (b * T + t) * D + d)
    u = tl.load(u_ptr + (b * J + j[:, None]) * D + d[None, :], mask=(j < J)[:, None], other=0.0)
    s = tl.sum(h * w1) + tl.sum(u * w2[None, :], axis=1) + tl.sum(u * (h * w3)[None, :], axis=1)
    s = tl.where(j < J, s, float("-inf"))
    p = tl.exp(s - tl.max(s, axis=0))
    p = p / tl.sum(p, axis=0)
    tl.store(out_ptr + (b * T + t) * D + d, tl.sum(p[:, None] * u, axis=0))


@case
def words_attend_to_a_question_by_trilinear_scores():
    b, t, j, d = 32, 300, 25, 128
    h, u, w, out = f32(b, t, d), f32(b, j, d), f32(3, d) / 12, zeros(b, t, d, dtype="float32")
    launched = run(trilinear_attention, (t, b), (h, u, w, out, t, j), out, D=d, BJ=32)

    def reference():
        s = (h @ w[0])[:, :, None] + (u @ w[1])[:, None] + (h * w[2]) @ u.transpose(1, 2)
        return s.softmax(-1) @ u

    return against(launched, reference)


@triton.jit
def ema_both_ways(x_ptr, a_ptr, y_ptr, T, D, BLOCK_D: tl.constexpr):
    # Steps of time one by one, forward and then back over what was stored.
    b = tl.program_id(1)
    d = tl.program_id(0) * BLOCK_D + tl.arange(0, BLOCK_D)
    ok = d < D
    a = tl.sigmoid(tl.load(a_ptr + d, mask=ok, other=0.0))
    x_row, y_row = x_ptr + b * T * D + d, y_ptr + b * T * D + d
    state = tl.zeros((BLOCK_D,), tl.float32)
    for _ in range(T):
        state = a * state + (1 - a) * tl.load(x_row, mask=ok, other=0.0).to(tl.float32)
        tl.store(y_row, state, mask=ok)
        x_row += D
        y_row += D
    state = tl.zeros((BLOCK_D,), tl.float32)
    for _ in range(T):
        x_row -= D
        y_row -= D
        state = a * state + (1 - a) * tl.load(x_row, mask=ok, other=0.0).to(tl.float32)
        tl.store(y_row, state + tl.load(y_row, mask=ok, other=0.0), mask=ok)


@case
def averages_over_time_forward_and_back():
    b, t, d = 16, 150, 1025
    x, a, y = rand(b, t, d, dtype="bfloat16"), f32(d), zeros(b, t, d, dtype="float32")
    launched = run(ema_both_ways, (cdiv(d, 64), b), (x, a, y, t, d), y, BLOCK_D=64, num_warps=2)

    def reference():
        s, z = a.sigmoid(), x.float()
        one, two, total = torch.zeros_like(z[:, 0]), torch.zeros_like(z[:, 0]), torch.zeros_like(z)
        for i in range(t):
            one = s * one + (1 - s) * z[:, i]
            two = s * two + (1 - s) * z[:, t - 1 - i]
            total[:, i] += one
            total[:, t - 1 - i] += two
        return total

    return against(launched, reference)


@triton.jit
def histogram_by_comparing(x_ptr, y_ptr, N, low, width, BINS: tl.constexpr, BLOCK: tl.constexpr):
    # Every number against every bin; counts of a row in registers.
    row = tl.program_id(0)
    bins = tl.arange(0, BINS)
    counts = tl.zeros((BINS,), tl.int32)
    for n0 in range(0, N, BLOCK):
        n = n0 + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * N + n, mask=n < N, other=-1e9)
        at = tl.floor((x - low) / width)
        counts += tl.sum((at[:, None] == bins[None, :].to(tl.float32)).to(tl.int32), axis=0)
    tl.store(y_ptr + row * BINS + bins, counts)


@case
def histograms_of_rows_by_comparing_with_50_bins():
    rows, n = 1000, 5000
    x, y = f32(rows, n), zeros(rows, 64, dtype="int32")
    launched = run(histogram_by_comparing, (rows,), (x, y, n, -4.0, 0.125), y, BINS=64, BLOCK=256)

    def reference():
        at = ((x + 4) / 0.125).floor().long()
        ok = (at >= 0) & (at < 64)
        made = torch.zeros(rows, 65, device=x.device, dtype=torch.int64)
        return made.scatter_add_(1, torch.where(ok, at, 64), torch.ones_like(at))[:, :64]

    return against(launched, reference)


@triton.jit
def concordant_pairs(x_ptr, y_ptr, out_ptr, N, BLOCK: tl.constexpr):
    # Pairs in order less pairs out of order: rows of tiles, all of a row before the next.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    xi, yi = tl.load(x_ptr + i, mask=i < N, other=0.0), tl.load(y_ptr + i, mask=i < N, other=0)
    total = tl.zeros((BLOCK, BLOCK), tl.int32)
    for j0 in range(0, N, BLOCK):
        j = j0 + tl.arange(0, BLOCK)
        xj, yj = tl.load(x_ptr + j, mask=j < N, other=0.0), tl.load(y_ptr + j, mask=j < N, other=0)
        more = (xi[:, None] > xj[None, :]).to(tl.int32) - (xi[:, None] < xj[None, :]).to(tl.int32)
        above = tl.where(yi[:, None] > yj[None, :], 1, tl.where(yi[:, None] < yj[None, :], -1, 0))
        total += tl.where((i < N)[:, None] & (j < N)[None, :], more * above, 0)
    tl.atomic_add(out_ptr, tl.sum(total).to(tl.int64))


@case
def pairs_in_order_less_pairs_out_of_order():
    n = 14000
    x, y, out = f32(n), ints(0, 50, n), zeros(1, dtype="int64")
    launched = run(concordant_pairs, (cdiv(n, 64),), (x, y, out, n), out, BLOCK=64, num_warps=8)

    def reference():
        total = torch.zeros(1, dtype=torch.int64, device=x.device)
        for u, v in zip(x.split(2000), y.split(2000)):
            total += ((u[:, None] - x).sign() * (v[:, None] - y).sign()).sum().long()
        return total

    return against(cleared(launched, out), reference)


@triton.jit
def rotate_points(q_ptr, p_ptr, y_ptr, N, P: tl.constexpr, BLOCK: tl.constexpr):
    # Structures of four and three numbers, read one member after another, two warps.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ok = i < N
    w, x, y, z = tl.load(q_ptr + 4 * i, ok), tl.load(q_ptr + 4 * i + 1, ok), tl.load(q_ptr + 4 * i + 2, ok), tl.load(q_ptr + 4 * i + 3, ok)
    inv = 1.0 / tl.sqrt(w * w + x * x + y * y + z * z)
    w, x, y, z = w * inv, x * inv, y * inv, z * inv
    for p in range(P):
        at = (i * P + p) * 3
        a, b, c = tl.load(p_ptr + at, ok), tl.load(p_ptr + at + 1, ok), tl.load(p_ptr + at + 2, ok)
        tx, ty, tz = 2 * (y * c - z * b), 2 * (z * a - x * c), 2 * (x * b - y * a)
        tl.store(y_ptr + at, a + w * tx + y * tz - z * ty, ok)
        tl.store(y_ptr + at + 1, b + w * ty + z * tx - x * tz, ok)
        tl.store(y_ptr + at + 2, c + w * tz + x * ty - y * tx, ok)


@case
def seven_points_turned_by_each_quaternion():
    n, p = 150001, 7
    q, v, y = f32(n, 4), f32(n, p, 3), zeros(n, p, 3, dtype="float32")
    launched = run(rotate_points, (cdiv(n, 128),), (q, v, y, n), y, P=p, BLOCK=128, num_warps=2)

    def reference():
        u = F.normalize(q, dim=1)
        axis = u[:, None, 1:].expand(n, p, 3)
        t = 2 * torch.cross(axis, v, dim=2)
        return v + u[:, :1, None] * t + torch.cross(axis, t, dim=2)

    return against(launched, reference)


@triton.jit
def piecewise_by_knots(x_ptr, knot_ptr, a_ptr, b_ptr, y_ptr, N, KNOTS, BLOCK: tl.constexpr):
    # Scalars of a table in a loop, and a chain of `tl.where` that runs through all of it.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < N, other=0.0).to(tl.float32)
    y = tl.load(a_ptr) + tl.load(b_ptr) * x
    for k in range(KNOTS):
        y = tl.where(x >= tl.load(knot_ptr + k), tl.load(a_ptr + k + 1) + tl.load(b_ptr + k + 1) * x, y)
    tl.store(y_ptr + i, y.to(y_ptr.dtype.element_ty), mask=i < N)


@case
def lines_between_33_knots_by_chains_of_where():
    n, knots = 8_000_003, 33
    x, knot, a, b, y = rand(n), f32(knots).sort()[0], f32(knots + 1), f32(knots + 1), zeros(n)
    launched = run(piecewise_by_knots, (cdiv(n, 2048),), (x, knot, a, b, y, n, knots), y, BLOCK=2048, num_warps=8)

    def reference():
        at = torch.bucketize(x.float(), knot, right=True)
        return a[at] + b[at] * x.float()

    return against(launched, reference)


@triton.jit
def degree_two_features(x_ptr, y_ptr, B, F: tl.constexpr, FP: tl.constexpr, BB: tl.constexpr):
    # All products of two of a row's features, i <= j, packed by the number of the pair.
    b = tl.program_id(0) * BB + tl.arange(0, BB)
    f = tl.arange(0, FP)
    x = tl.load(x_ptr + b[:, None] * F + f[None, :], mask=(b < B)[:, None] & (f < F)[None, :], other=0.0)
    pairs = x[:, :, None] * x[:, None, :]
    i, j = f[:, None], f[None, :]
    at = i * F - i * (i - 1) // 2 + j - i
    ok = (b < B)[:, None, None] & ((i <= j) & (j < F))[None, :, :]
    tl.store(y_ptr + b[:, None, None] * (F * (F + 1) // 2) + at[None, :, :], pairs, mask=ok)


@case
def products_of_pairs_of_24_features():
    b, f = 30000, 24
    x, y = f32(b, f), zeros(b, f * (f + 1) // 2, dtype="float32")
    launched = run(degree_two_features, (cdiv(b, 4),), (x, y, b), y, F=f, FP=32, BB=4)

    def reference():
        i, j = torch.triu_indices(f, f, device=x.device)
        return x[:, i] * x[:, j]

    return against(launched, reference)


@triton.jit
def bag_of_largest(table_ptr, index_ptr, offset_ptr, out_ptr, at_ptr, D, BLOCK: tl.constexpr):
    # The largest of each column over the rows of a bag, and which row it was; the bag's rows are scalars of a loop.
    bag = tl.program_id(0)
    d = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    begin, end = tl.load(offset_ptr + bag), tl.load(offset_ptr + bag + 1)
    best = tl.full((BLOCK,), float("-inf"), tl.float32)
    where = tl.full((BLOCK,), -1, tl.int64)
    for p in range(begin, end):
        row = tl.load(index_ptr + p)
        if row >= 0:
            x = tl.load(table_ptr + row * D + d, mask=d < D, other=0.0).to(tl.float32)
            where = tl.where(x > best, row, where)
            best = tl.maximum(best, x)
    tl.store(out_ptr + bag * D + d, tl.where(where < 0, 0.0, best).to(out_ptr.dtype.element_ty), mask=d < D)
    tl.store(at_ptr + bag * D + d, where, mask=d < D)


@case
def bags_of_rows_to_their_largest_and_its_row():
    rows, d, bags, most = 20000, 200, 5000, 24
    size = ints(0, most, bags, dtype="int64")
    offset = torch.cat((torch.zeros(1, device="cuda", dtype=torch.int64), size.cumsum(0)))
    index = ints(-2000, rows, bags * most, dtype="int64")
    table, out, at = rand(rows, d), zeros(bags, d), zeros(bags, d, dtype="int64")
    args = table, index, offset, out, at, d
    launched = run(bag_of_largest, (bags, 1), args, out, BLOCK=256, num_warps=1)

    def reference():
        slot = torch.arange(most, device=table.device)
        place = (offset[:-1, None] + slot).clamp(max=index.numel() - 1)
        row = torch.where(slot < size[:, None], index[place], -1)
        made = torch.zeros(bags, d, device=table.device)
        for b0 in range(0, bags, 1000):
            r = row[b0 : b0 + 1000]
            x = torch.where((r >= 0)[:, :, None], table[r.clamp(min=0)].float(), -torch.inf).amax(1)
            made[b0 : b0 + 1000] = torch.where((r >= 0).any(1, keepdim=True), x, 0)
        return made

    return against(launched, reference)


@triton.jit
def mix_tokens(x_ptr, w1_ptr, b1_ptr, w2_ptr, b2_ptr, y_ptr, S, C, HIDDEN: tl.constexpr, BS: tl.constexpr, BC: tl.constexpr):
    # Two layers over the tokens of a block of channels: the transposed input is never made, the hidden layer is one tile.
    n = tl.program_id(1)
    s, c = tl.arange(0, BS), tl.program_id(0) * BC + tl.arange(0, BC)
    h = tl.arange(0, HIDDEN)
    ok = (s < S)[:, None] & (c < C)[None, :]
    x = tl.load(x_ptr + (n * S + s)[:, None] * C + c[None, :], mask=ok, other=0.0)
    w1 = tl.load(w1_ptr + h[:, None] * S + s[None, :], mask=(s < S)[None, :], other=0.0)
    a = tl.dot(w1, x) + tl.load(b1_ptr + h)[:, None]
    a = 0.5 * a * (1.0 + tl.erf(a * 0.70710678))
    w2 = tl.load(w2_ptr + s[:, None] * HIDDEN + h[None, :], mask=(s < S)[:, None], other=0.0)
    y = tl.dot(w2, a.to(x.dtype)) + tl.load(b2_ptr + s, mask=s < S, other=0.0)[:, None] + x
    tl.store(y_ptr + (n * S + s)[:, None] * C + c[None, :], y.to(y_ptr.dtype.element_ty), mask=ok)


@case
def tokens_mixed_by_two_layers_of_whole_tiles():
    n, s, c, hidden = 48, 98, 512, 128
    x, w1, b1, w2, b2, y = rand(n, s, c), rand(hidden, s) / 10, f32(hidden), rand(s, hidden) / 11, f32(s), zeros(n, s, c)
    launched = run(mix_tokens, (cdiv(c, 32), n), (x, w1, b1, w2, b2, y, s, c), y, HIDDEN=hidden, BS=128, BC=32, num_warps=4)

    def reference():
        z = x.float()
        a = F.gelu(w1.float() @ z + b1[:, None])
        return w2.float() @ a + b2[:, None] + z

    return against(launched, reference)


@triton.jit
def pool_sentences(x_ptr, mask_ptr, y_ptr, T, D, BLOCK: tl.constexpr):
    # The mean over tokens whose flag, a scalar of each step, is set; then unit length.
    b = tl.program_id(0)
    d = tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), tl.float32)
    count = 0.0
    for t in range(T):
        keep = tl.load(mask_ptr + b * T + t).to(tl.float32)
        x = tl.load(x_ptr + (b * T + t) * D + d, mask=d < D, other=0.0).to(tl.float32)
        acc += x * keep
        count += keep
    acc = acc / max(count, 1e-9)
    acc = acc / tl.maximum(tl.sqrt(tl.sum(acc * acc)), 1e-12)
    tl.store(y_ptr + b * D + d, acc, mask=d < D)


@case
def sentences_pooled_by_flags_of_tokens():
    b, t, d = 512, 128, 384
    x, keep, y = rand(b, t, d), ints(0, 2, b, t, dtype="int64"), zeros(b, d, dtype="float32")
    launched = run(pool_sentences, (b,), (x, keep, y, t, d), y, BLOCK=512)
    return against(launched, lambda: F.normalize((x.float() * keep[:, :, None]).sum(1) / keep.sum(1, keepdim=True), dim=1))


@triton.jit
def batch_norm_1d(x_ptr, g_ptr, b_ptr, y_ptr, N, C, eps, BN: tl.constexpr, BC: tl.constexpr):
    # A program has sixteen columns: their mean, their variance, and the result, three times through all rows.
    c = tl.program_id(0) * BC + tl.arange(0, BC)
    acc = tl.zeros((BN, BC), tl.float32)
    for n0 in range(0, N, BN):
        n = n0 + tl.arange(0, BN)
        acc += tl.load(x_ptr + n[:, None] * C + c[None, :], mask=(n < N)[:, None] & (c < C)[None, :], other=0.0)
    mean = tl.sum(acc, axis=0) / N
    acc = tl.zeros((BN, BC), tl.float32)
    for n0 in range(0, N, BN):
        n = n0 + tl.arange(0, BN)
        x = tl.load(x_ptr + n[:, None] * C + c[None, :], mask=(n < N)[:, None] & (c < C)[None, :], other=0.0)
        diff = tl.where((n < N)[:, None], x - mean[None, :], 0.0)
        acc += diff * diff
    rstd = 1.0 / tl.sqrt(tl.sum(acc, axis=0) / N + eps)
    g, b = tl.load(g_ptr + c, mask=c < C, other=0.0), tl.load(b_ptr + c, mask=c < C, other=0.0)
    for n0 in range(0, N, BN):
        n = n0 + tl.arange(0, BN)
        ok = (n < N)[:, None] & (c < C)[None, :]
        x = tl.load(x_ptr + n[:, None] * C + c[None, :], mask=ok, other=0.0)
        tl.store(y_ptr + n[:, None] * C + c[None, :], (x - mean[None, :]) * rstd[None, :] * g[None, :] + b[None, :], mask=ok)


@case
def sixteen_columns_normalized_in_three_loops():
    n, c = 5000, 3000
    x, g, b, y = f32(n, c) + 2, f32(c), f32(c), zeros(n, c, dtype="float32")
    launched = run(batch_norm_1d, (cdiv(c, 16),), (x, g, b, y, n, c, 1e-5), y, BN=128, BC=16)
    return against(launched, lambda: F.batch_norm(x, None, None, g, b, True))


@triton.jit
def gqa_by_sums(q_ptr, k_ptr, v_ptr, len_ptr, o_ptr, S, scale, G: tl.constexpr, D: tl.constexpr, BN: tl.constexpr):
    # Queries of a group and keys of a block meet in three axes; an online softmax; no dots.
    head, b = tl.program_id(0), tl.program_id(1)
    g, d = tl.arange(0, G), tl.arange(0, D)
    row = b * tl.num_programs(0) + head
    q = tl.load(q_ptr + (row * G + g)[:, None] * D + d[None, :]).to(tl.float32) * scale
    count = tl.load(len_ptr + b)
    top = tl.full((G,), float("-inf"), tl.float32)
    total = tl.zeros((G,), tl.float32)
    acc = tl.zeros((G, D), tl.float32)
    for n0 in range(0, count, BN):
        n = n0 + tl.arange(0, BN)
        at = (row * S + n)[:, None] * D + d[None, :]
        k = tl.load(k_ptr + at, mask=(n < count)[:, None], other=0.0).to(tl.float32)
        s = tl.sum(q[:, None, :] * k[None, :, :], axis=2)
        s = tl.where((n < count)[None, :], s, float("-inf"))
        high = tl.maximum(top, tl.max(s, axis=1))
        p = tl.exp(s - high[:, None])
        shrink = tl.exp(top - high)
        v = tl.load(v_ptr + at, mask=(n < count)[:, None], other=0.0).to(tl.float32)
        acc = acc * shrink[:, None] + tl.sum(p[:, :, None] * v[None, :, :], axis=1)
        total = total * shrink + tl.sum(p, axis=1)
        top = high
    tl.store(o_ptr + (row * G + g)[:, None] * D + d[None, :], (acc / total[:, None]).to(o_ptr.dtype.element_ty))


@case
def groups_of_four_queries_meet_keys_in_three_axes():
    b, heads, g, s, d = 24, 8, 4, 1024, 128
    q, k, v, o = rand(b, heads, g, d), rand(b, heads, s, d), rand(b, heads, s, d), zeros(b, heads, g, d)
    count = ints(300, s, b)
    args = q, k, v, count, o, s, d**-0.5
    launched = run(gqa_by_sums, (heads, b), args, o, G=g, D=d, BN=16)

    def reference():
        scores = q.float() @ k.float().transpose(2, 3) * d**-0.5
        scores = scores.masked_fill(arange(s) >= count[:, None, None, None], float("-inf"))
        return scores.softmax(-1) @ v.float()

    return against(launched, reference)


@triton.jit
def unpool_nhwc(x_ptr, at_ptr, y_ptr, W, C, OH, OW, BLOCK_C: tl.constexpr):
    # A row of pixels a program: all channels of one pixel are written to where their maxima were.
    h, n = tl.program_id(0), tl.program_id(1)
    c = tl.arange(0, BLOCK_C)
    for w in range(W):
        pixel = (n * tl.num_programs(0) + h) * W + w
        x = tl.load(x_ptr + pixel * C + c, mask=c < C)
        at = tl.load(at_ptr + pixel * C + c, mask=c < C)
        tl.store(y_ptr + n * OH * OW * C + at * C + c, x, mask=c < C)


@case
def maxima_put_back_to_where_they_were_channels_last():
    n, h, w, c = 32, 28, 30, 120
    x = rand(n, c, 2 * h, 2 * w).abs()
    top, at = F.max_pool2d(x.float(), 2, return_indices=True)
    top, at = top.half().permute(0, 2, 3, 1).contiguous(), at.permute(0, 2, 3, 1).contiguous()
    y = zeros(n, 2 * h, 2 * w, c)
    launched = run(unpool_nhwc, (h, n), (top, at, y, w, c, 2 * h, 2 * w), y, BLOCK_C=128, num_warps=2)

    def reference():
        made = F.max_unpool2d(top.permute(0, 3, 1, 2).float(), at.permute(0, 3, 1, 2), 2)
        return made.permute(0, 2, 3, 1)

    return against(cleared(launched, y), reference)
