"""Mills: products that turn in loops, with what is made before and left behind, and streams of chunks that carry a state through dots."""

import torch
import torch.nn.functional as F
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

from .common import PROGRAMS, against, arange, case, cdiv, cleared, f8, f32, far, ints, rand, run, uniform, viewed, zeros


@triton.jit
def gated_to_bytes(x_ptr, w_ptr, sx_ptr, sw_ptr, y_ptr, ys_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Gates and what they gate in one loop over fp8; the product leaves as bytes with a scale for each row of the tile.
    m, n = tl.program_id(0), tl.program_id(1)
    x_block = tl.make_block_ptr(x_ptr, (M, K), (K, 1), (m * BM, 0), (BM, BK), (1, 0))
    g_block = tl.make_block_ptr(w_ptr, (K, 2 * N), (1, K), (0, n * BN), (BK, BN), (0, 1))
    u_block = tl.make_block_ptr(w_ptr, (K, 2 * N), (1, K), (0, N + n * BN), (BK, BN), (0, 1))
    gate, up = tl.zeros((BM, BN), tl.float32), tl.zeros((BM, BN), tl.float32)
    for _ in range(0, K, BK):
        x = tl.load(x_block, boundary_check=(0,), padding_option="zero")
        gate = tl.dot(x, tl.load(g_block), gate)
        up = tl.dot(x, tl.load(u_block), up)
        x_block, g_block, u_block = tl.advance(x_block, (0, BK)), tl.advance(g_block, (BK, 0)), tl.advance(u_block, (BK, 0))
    rows, cols = m * BM + tl.arange(0, BM), n * BN + tl.arange(0, BN)
    sx = tl.load(sx_ptr + rows, mask=rows < M, other=0.0)[:, None]
    gate *= sx * tl.load(sw_ptr + cols)[None, :]
    up *= sx * tl.load(sw_ptr + N + cols)[None, :]
    y = gate / (1.0 + tl.exp(-gate)) * up
    scale = tl.maximum(tl.max(tl.abs(y), 1), 1e-6) / 127.0
    code = tl.floor(y / scale[:, None] + 0.5).to(tl.int8)
    tl.store(y_ptr + rows[:, None] * N + cols[None, :], code, mask=(rows < M)[:, None])
    tl.store(ys_ptr + rows * tl.num_programs(1) + n, scale, mask=rows < M)


@case
def mill_gates_of_fp8_to_bytes_of_rows_of_64(m=2000, n=4096, k=2048):
    x, w = f8(m, k), f8(2 * n, k)
    sx, sw = uniform(m) / 8 + 0.01, uniform(2 * n) / 8 + 0.01
    y, ys = zeros(m, n, dtype="int8"), zeros(m, n // 64, dtype="float32")
    launched = run(gated_to_bytes, (cdiv(m, 128), n // 64), (x, w, sx, sw, y, ys, m, n, k), (y, ys), BM=128, BN=64, BK=128, num_warps=8, num_stages=3)

    def reference():
        z = (x.float() @ w.float().t()) * sx[:, None] * sw[None, :]
        z = (F.silu(z[:, :n]) * z[:, n:]).reshape(m, n // 64, 64)
        scale = z.abs().amax(2).clamp(min=1e-6) / 127
        return far(torch.floor(z / scale[..., None] + 0.5)), scale

    return against(viewed(launched, lambda outs: (far(outs[0]), outs[1])), reference)


@triton.jit
def both_before_and_after(a_desc, b_desc, bias_ptr, h_desc, y_desc, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, NUM: tl.constexpr):
    # One loop over tiles and steps, flattened; what goes into the activation is kept for the way back, by another descriptor.
    tiles_n = tl.cdiv(N, BN)
    for tile in tl.range(tl.program_id(0), tl.cdiv(M, BM) * tiles_n, NUM, flatten=True):
        m, n = tile // tiles_n * BM, tile % tiles_n * BN
        acc = tl.zeros((BM, BN), tl.float32)
        for k in range(0, K, BK):
            acc = tl.dot(a_desc.load([m, k]), b_desc.load([n, k]).T, acc)
        acc += tl.load(bias_ptr + n + tl.arange(0, BN)).to(tl.float32)[None, :]
        h_desc.store([m, n], acc.to(tl.float16))
        z = 0.7978845608 * (acc + 0.044715 * acc * acc * acc)
        y_desc.store([m, n], (acc / (1.0 + tl.exp(-2.0 * z))).to(tl.float16))


@case
def mill_that_stays_and_keeps_what_is_before_gelu(m=4096, n=3072, k=1024, programs=PROGRAMS):
    a, b, bias = rand(m, k) / 16, rand(n, k), rand(n)
    h, y = zeros(m, n), zeros(m, n)
    boxes = [TensorDescriptor.from_tensor(x, box) for x, box in ((a, [128, 64]), (b, [128, 64]), (h, [128, 128]), (y, [128, 128]))]
    args = boxes[0], boxes[1], bias, boxes[2], boxes[3], m, n, k
    launched = run(both_before_and_after, (programs,), args, (h, y), BM=128, BN=128, BK=64, NUM=programs, num_warps=8, num_stages=3)

    def reference():
        z = a.float() @ b.float().t() + bias.float()
        return z, F.gelu(z, approximate="tanh")

    return against(launched, reference)


@triton.jit
def residual_and_squares(a_ptr, b_ptr, r_ptr, g_ptr, y_ptr, s_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr):
    # The projection is scaled by a gate a channel and added to the residual; squares of rows are left for the norm that follows.
    pid = tl.program_id(0)
    tiles_m, tiles_n = tl.cdiv(M, BM), tl.cdiv(N, BN)
    group = pid // (GROUP * tiles_n)
    height = tl.minimum(tiles_m - group * GROUP, GROUP)
    tile_m = group * GROUP + pid % (GROUP * tiles_n) % height
    tile_n = pid % (GROUP * tiles_n) // height
    m, n, k = tile_m * BM + tl.arange(0, BM), tile_n * BN + tl.arange(0, BN), tl.arange(0, BK)
    a = a_ptr + (m % M)[:, None] * K + k[None, :]
    b = b_ptr + k[:, None] * N + n[None, :]
    acc = tl.zeros((BM, BN), tl.float32)
    for k0 in range(0, tl.cdiv(K, BK)):
        left = K - k0 * BK
        acc += tl.dot(tl.load(a, mask=(k < left)[None, :], other=0.0), tl.load(b, mask=(k < left)[:, None] & (n < N)[None, :], other=0.0))
        a += BK
        b += BK * N
    ok = (m < M)[:, None] & (n < N)[None, :]
    at = m[:, None] * N + n[None, :]
    y = tl.load(r_ptr + at, mask=ok, other=0.0).to(tl.float32) + acc * tl.load(g_ptr + n, mask=n < N, other=0.0).to(tl.float32)[None, :]
    rounded = y.to(y_ptr.dtype.element_ty)
    tl.store(y_ptr + at, rounded, mask=ok)
    y = tl.where(ok, rounded.to(tl.float32), 0.0)
    tl.store(s_ptr + tile_n * M + m, tl.sum(y * y, 1), mask=m < M)


@case
def mill_gated_residuals_and_squares_for_the_next_norm(m=5000, n=1536, k=1552):
    a, b, r, g = rand(m, k) / 16, rand(k, n), rand(m, n), rand(n)
    y, s = zeros(m, n), zeros(cdiv(n, 256), m, dtype="float32")
    args = a, b, r, g, y, s, m, n, k
    launched = run(residual_and_squares, (cdiv(m, 128) * cdiv(n, 256),), args, (y, s), BM=128, BN=256, BK=32, GROUP=8, num_warps=8, num_stages=4)

    def reference():
        z = r.float() + (a.float() @ b.float()) * g.float()
        return z, z.square().reshape(m, n // 256, 256).sum(2).t()

    return against(launched, reference)


@triton.jit
def six_rows_in_parts(x_ptr, w_ptr, s_ptr, part_ptr, M, N, K, size, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr):
    n, part = tl.program_id(0) * BN + tl.arange(0, BN), tl.program_id(1)
    m, k = tl.arange(0, BM), tl.arange(0, BK)
    # A part of the sum over k for few rows; bytes of a group are summed before its scale is applied.
    acc = tl.zeros((BM, BN), tl.float32)
    for k0 in range(part * size, part * size + size, GROUP):
        inner = tl.zeros((BM, BN), tl.float32)
        for k1 in tl.static_range(0, GROUP, BK):
            kk = k0 + k1 + k
            x = tl.load(x_ptr + m[:, None] * K + kk[None, :], mask=(m < M)[:, None], other=0.0)
            w = tl.load(w_ptr + n[None, :] * K + kk[:, None])
            inner = tl.dot(x, w.to(x.dtype), inner)
        acc += inner * tl.load(s_ptr + n * (K // GROUP) + k0 // GROUP).to(tl.float32)[None, :]
    tl.store(part_ptr + (part * M + m)[:, None] * N + n[None, :], acc, mask=(m < M)[:, None])


@triton.jit
def parts_and_bias(part_ptr, bias_ptr, y_ptr, MN, N, SPLITS: tl.constexpr, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    p = tl.arange(0, SPLITS)
    y = tl.sum(tl.load(part_ptr + p[:, None] * MN + at[None, :], mask=(at < MN)[None, :], other=0.0), 0)
    y += tl.load(bias_ptr + at % N, mask=at < MN, other=0.0).to(tl.float32)
    tl.store(y_ptr + at, y.to(y_ptr.dtype.element_ty), mask=at < MN)


@case
def mill_of_six_rows_by_bytes_in_eight_parts(m=6, n=6144, k=4096, splits=8):
    x, w, s = rand(m, k, dtype="bfloat16"), ints(-127, 128, n, k, dtype="int8"), uniform(n, k // 128).half() / 64
    bias, part, y = rand(n, dtype="bfloat16"), zeros(splits, m, n, dtype="float32"), zeros(m, n, dtype="bfloat16")

    def launch(x, w, s, bias, part, y):
        six_rows_in_parts[(n // 64, splits)](x, w, s, part, m, n, k, k // splits, BM=16, BN=64, BK=64, GROUP=128, num_warps=4, num_stages=4)
        parts_and_bias[(cdiv(m * n, 256),)](part, bias, y, m * n, n, SPLITS=splits, B=256, num_warps=4)
        return y

    def reference():
        weights = (w.float().reshape(n, k // 128, 128) * s.float()[..., None]).reshape(n, k)
        return x.float() @ weights.t() + bias.float()

    return against((launch, (x, w, s, bias, part, y)), reference)


@triton.jit
def squeezed_between(a_ptr, b_ptr, y_ptr, t_ptr, eps, BATCH, S: tl.constexpr, BB: tl.constexpr):
    # Four matrices a program: A B A' with something on the diagonal, and its trace, by dots of three axes.
    batch = tl.program_id(0) * BB + tl.arange(0, BB)
    i, j = tl.arange(0, S), tl.arange(0, S)
    at = batch[:, None, None] * (S * S) + i[None, :, None] * S + j[None, None, :]
    ok = (batch < BATCH)[:, None, None]
    a, b = tl.load(a_ptr + at, mask=ok, other=0.0), tl.load(b_ptr + at, mask=ok, other=0.0)
    ab = tl.dot(a, b)
    y = tl.dot(ab.to(a.dtype), tl.permute(a, (0, 2, 1)))
    y += tl.where(i[:, None] == j[None, :], eps, 0.0)[None, :, :]
    tl.store(y_ptr + at, y, mask=ok)
    tl.store(t_ptr + batch, tl.sum(tl.sum(tl.where((i[:, None] == j[None, :])[None, :, :], y, 0.0), 2), 1), mask=batch < BATCH)


@case
def mill_of_matrices_of_32_between_others_four_a_program(batch=12_001):
    s = 32
    a, b = rand(batch, s, s, dtype="bfloat16"), rand(batch, s, s, dtype="bfloat16")
    y, t = zeros(batch, s, s, dtype="float32"), zeros(batch, dtype="float32")
    launched = run(squeezed_between, (cdiv(batch, 4),), (a, b, y, t, 0.5, batch), (y, t), S=s, BB=4, num_warps=4)

    def reference():
        x = (a.float() @ b.float()).to(torch.bfloat16).float() @ a.float().transpose(1, 2) + 0.5 * torch.eye(s, device=a.device)
        return x, x.diagonal(dim1=1, dim2=2).sum(1)

    return against(launched, reference)


@triton.jit
def waves_times_weights(x_ptr, f_ptr, w_ptr, bias_ptr, y_ptr, M, N, FREQ, BM: tl.constexpr, BN: tl.constexpr, BF: tl.constexpr):
    # Cosines and sines of points of three coordinates are made in the loop, two dots a step; weights of sines follow those of cosines.
    m, n, f = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN), tl.arange(0, BF)
    x = tl.load(x_ptr + m * 3, mask=m < M, other=0.0)[:, None]
    y = tl.load(x_ptr + m * 3 + 1, mask=m < M, other=0.0)[:, None]
    z = tl.load(x_ptr + m * 3 + 2, mask=m < M, other=0.0)[:, None]
    acc = tl.zeros((BM, BN), tl.float32)
    for f0 in range(0, FREQ, BF):
        fx, fy, fz = tl.load(f_ptr + f0 + f)[None, :], tl.load(f_ptr + FREQ + f0 + f)[None, :], tl.load(f_ptr + 2 * FREQ + f0 + f)[None, :]
        angle = x * fx + y * fy + z * fz
        wc = tl.load(w_ptr + (f0 + f)[:, None] * N + n[None, :], mask=(n < N)[None, :], other=0.0)
        ws = tl.load(w_ptr + (FREQ + f0 + f)[:, None] * N + n[None, :], mask=(n < N)[None, :], other=0.0)
        acc = tl.dot(tl.cos(angle).to(wc.dtype), wc, acc)
        acc = tl.dot(tl.sin(angle).to(ws.dtype), ws, acc)
    acc = tl.maximum(acc + tl.load(bias_ptr + n, mask=n < N, other=0.0)[None, :], 0.0)
    tl.store(y_ptr + m[:, None] * N + n[None, :], acc.to(y_ptr.dtype.element_ty), mask=(m < M)[:, None] & (n < N)[None, :])


@case
def mill_of_waves_of_points_through_a_layer_of_200(m=40_000, n=200, f=256):
    x, freq, w, bias, y = uniform(m, 3), f32(3, f) * 3, rand(2 * f, n), f32(n), zeros(m, n)
    launched = run(waves_times_weights, (cdiv(m, 64), cdiv(n, 128)), (x, freq, w, bias, y, m, n, f), y, BM=64, BN=128, BF=32, num_warps=4, num_stages=3)

    def reference():
        angle = x @ freq
        return torch.relu(torch.cat([angle.cos(), angle.sin()], 1).half().float() @ w.float() + bias)

    return against(launched, reference)


@triton.jit
def columns_of_blocks(x_ptr, start_ptr, row_ptr, w_ptr, bias_ptr, y_ptr, M, N, K, BM: tl.constexpr, S: tl.constexpr):
    # Weights are sparse by blocks in columns: each program walks those of its column, steps back at the end, or writes the bias.
    m, col = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1)
    s = tl.arange(0, S)
    at, end = tl.load(start_ptr + col), tl.load(start_ptr + col + 1)
    acc = tl.zeros((BM, S), tl.float32)
    w = w_ptr + at * S * S + s[:, None] * S + s[None, :]
    while at < end:
        k = tl.load(row_ptr + at) * S + s
        x = tl.load(x_ptr + m[:, None] * K + k[None, :], mask=(m < M)[:, None], other=0.0)
        acc = tl.dot(x, tl.load(w), acc)
        w += S * S
        at += 1
    n = col * S + s
    acc += tl.load(bias_ptr + n)[None, :]
    acc = tl.where(acc > 0.0, acc, 0.2 * acc)
    tl.store(y_ptr + m[:, None] * N + n[None, :], acc.to(y_ptr.dtype.element_ty), mask=(m < M)[:, None])


@case
def mill_of_sparse_columns_of_blocks_of_64(m=4000, n=4096, k=4096, share=0.2):
    s = 64
    on = (uniform(n // s, k // s) < share).to(torch.int32)
    on[0] = 0
    start = torch.cat([zeros(1, dtype="int32"), on.sum(1).cumsum(0).to(torch.int32)])
    order = torch.argsort(torch.where(on.reshape(-1) > 0, 0, 1), stable=True)
    row = (order % (k // s)).to(torch.int32)
    x, w, bias, y = rand(m, k), rand(on.numel(), s, s) / 8, f32(n), zeros(m, n)
    launched = run(columns_of_blocks, (cdiv(m, 128), n // s), (x, start, row, w, bias, y, m, n, k), y, BM=128, S=s, num_warps=4, num_stages=3)

    def reference():
        dense = torch.zeros(n // s, k // s, s, s, device=x.device)
        column, which = on.nonzero(as_tuple=True)
        dense[column, which] = w[: len(column)].float()
        dense = dense.permute(1, 2, 0, 3).reshape(k, n)
        return F.leaky_relu(x.float() @ dense + bias, 0.2)

    return against(launched, reference)


@triton.jit
def shares_of_steps(a_ptr, b_ptr, c_ptr, M, N, K, TILES, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Programs beyond the last whole wave share the steps of what tiles are left; they add with atomics, others store.
    pid, programs = tl.program_id(0), tl.num_programs(0)
    tiles_n = tl.cdiv(N, BN)
    steps = tl.cdiv(K, BK)
    whole = TILES // programs * programs
    i, j, k = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    left = (TILES - whole) * steps
    share = tl.cdiv(left, programs)
    at, end = pid * share, tl.minimum((pid + 1) * share, left)
    while at < end:
        tile = whole + at // steps
        first = at % steps
        last = tl.minimum(first + end - at, steps)
        m, n = tile // tiles_n * BM + i, tile % tiles_n * BN + j
        acc = tl.zeros((BM, BN), tl.float32)
        for step in range(first, last):
            kk = step * BK + k
            a = tl.load(a_ptr + m[:, None] * K + kk[None, :], mask=(m < M)[:, None] & (kk < K)[None, :], other=0.0)
            b = tl.load(b_ptr + n[None, :] * K + kk[:, None], mask=(n < N)[None, :] & (kk < K)[:, None], other=0.0)
            acc = tl.dot(a, b, acc, input_precision="tf32")
        tl.atomic_add(c_ptr + m[:, None] * N + n[None, :], acc, mask=(m < M)[:, None] & (n < N)[None, :], sem="relaxed")
        at += last - first
    for tile in range(pid, whole, programs):
        m, n = tile // tiles_n * BM + i, tile % tiles_n * BN + j
        acc = tl.zeros((BM, BN), tl.float32)
        for step in range(0, steps):
            kk = step * BK + k
            a = tl.load(a_ptr + m[:, None] * K + kk[None, :], mask=(m < M)[:, None] & (kk < K)[None, :], other=0.0)
            b = tl.load(b_ptr + n[None, :] * K + kk[:, None], mask=(n < N)[None, :] & (kk < K)[:, None], other=0.0)
            acc = tl.dot(a, b, acc, input_precision="tf32")
        tl.store(c_ptr + m[:, None] * N + n[None, :], acc, mask=(m < M)[:, None] & (n < N)[None, :])


@case
def mill_of_whole_waves_and_shared_last_tiles_in_tf32(m=2500, n=1800, k=1008, programs=PROGRAMS):
    a, b, c = f32(m, k), f32(n, k), zeros(m, n, dtype="float32")
    tiles = cdiv(m, 128) * cdiv(n, 128)
    launched = run(shares_of_steps, (programs,), (a, b, c, m, n, k, tiles), c, BM=128, BN=128, BK=32, num_warps=8, num_stages=3)
    return against(cleared(launched, c), lambda: a @ b.t())


@triton.jit
def six_parts_turned_out(a_ptr, b_ptr, c_ptr, y_ptr, alpha, beta, M, N, K, stride_ab, stride_am, stride_yb, stride_yn, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Floats as sums of three short ones, six products of them; what was there is scaled and added, results lie turned.
    tiles_m = tl.cdiv(M, BM)
    m, n, k = tl.program_id(0) % tiles_m * BM + tl.arange(0, BM), tl.program_id(0) // tiles_m * BN + tl.arange(0, BN), tl.arange(0, BK)
    batch = tl.program_id(1)
    a = a_ptr + batch * stride_ab + m[:, None] * stride_am + k[None, :]
    b = b_ptr + k[:, None] * N + n[None, :]
    acc = tl.zeros((BM, BN), tl.float32)
    for k0 in tl.range(0, K, BK, num_stages=2):
        x = tl.load(a, mask=(m < M)[:, None] & (k0 + k < K)[None, :], other=0.0)
        w = tl.load(b, mask=(k0 + k < K)[:, None] & (n < N)[None, :], other=0.0)
        acc = tl.dot(x, w, acc, input_precision="bf16x6")
        a += BK
        b += BK * N
    ok = (n < N)[:, None] & (m < M)[None, :]
    at = batch * stride_yb + n[:, None] * stride_yn + m[None, :]
    y = alpha * tl.trans(acc)
    if beta != 0.0:
        y += beta * tl.load(c_ptr + at, mask=ok, other=0.0)
    tl.store(y_ptr + at, y, mask=ok)


@case
def mill_of_floats_in_six_short_products_turned_out(batch=6, m=700, n=500, k=600):
    a, b, c, y = f32(batch, m, k + 8), f32(k, n), f32(batch, n, m), zeros(batch, n, m, dtype="float32")
    args = a, b, c, y, 0.5, -2.0, m, n, k, m * (k + 8), k + 8, n * m, m
    launched = run(six_parts_turned_out, (cdiv(m, 64) * cdiv(n, 64), batch), args, y, BM=64, BN=64, BK=32, num_warps=4)
    return against(launched, lambda: 0.5 * (a[..., :k] @ b).transpose(1, 2) - 2.0 * c)


@triton.jit
def two_reflections_a_token(q_ptr, k_ptr, v_ptr, beta_ptr, g_ptr, o_ptr, scale, T, STEPS: tl.constexpr, D: tl.constexpr, BV: tl.constexpr):
    # A state forgets and is corrected twice a token; what lies in memory under a key is read by sums.
    head, c, d = tl.program_id(0), tl.program_id(1) * BV + tl.arange(0, BV), tl.arange(0, D)
    state = tl.zeros((D, BV), tl.float32)
    for t in range(T):
        at = head * T + t
        state *= tl.exp(tl.load(g_ptr + at))
        for i in tl.static_range(STEPS):
            row = (at * STEPS + i) * D
            k = tl.load(k_ptr + row + d).to(tl.float32)
            v = tl.load(v_ptr + row + c).to(tl.float32)
            beta = tl.load(beta_ptr + at * STEPS + i)
            wrong = v - tl.sum(state * k[:, None], 0)
            state += k[:, None] * (beta * wrong)[None, :]
        q = tl.load(q_ptr + at * D + d).to(tl.float32) * scale
        tl.store(o_ptr + at * D + c, tl.sum(state * q[:, None], 0).to(o_ptr.dtype.element_ty))


@case
def mill_that_corrects_its_state_twice_a_token(heads=64, t=128):
    d = 64
    q, v = rand(heads, t, d, dtype="bfloat16"), rand(heads, t, 2, d, dtype="bfloat16")
    k = F.normalize(f32(heads, t, 2, d), dim=3).to(torch.bfloat16)
    beta, g, o = uniform(heads, t, 2), -uniform(heads, t) / 8, zeros(heads, t, d, dtype="bfloat16")
    launched = run(two_reflections_a_token, (heads, d // 16), (q, k, v, beta, g, o, d**-0.5, t), o, STEPS=2, D=d, BV=16, num_warps=1)

    def reference():
        state, outs = torch.zeros(heads, d, d, device=q.device), []
        for i in range(t):
            state = state * g[:, i].exp()[:, None, None]
            for j in range(2):
                kk, vv = k[:, i, j].float(), v[:, i, j].float()
                wrong = vv - torch.einsum("hd,hdc->hc", kk, state)
                state = state + kk[:, :, None] * (beta[:, i, j, None] * wrong)[:, None, :]
            outs.append(torch.einsum("hd,hdc->hc", q[:, i].float(), state) * d**-0.5)
        return torch.stack(outs, 1)

    return against(launched, reference)


@triton.jit
def solved_by_doubling(k_ptr, v_ptr, beta_ptr, w_ptr, u_ptr, T, H, D: tl.constexpr, BT: tl.constexpr):
    # The inverse of one plus a strict triangle L is (1 - L)(1 + L^2)(1 + L^4)...: dots instead of a substitution.
    chunk, bh = tl.program_id(0), tl.program_id(1)
    b, h = bh // H, bh % H
    i, d = tl.arange(0, BT), tl.arange(0, D)
    t = chunk * BT + i
    at = ((b * T + t) * H + h)[:, None] * D + d[None, :]
    ok = (t < T)[:, None]
    k = tl.load(k_ptr + at, mask=ok, other=0.0)
    v = tl.load(v_ptr + at, mask=ok, other=0.0)
    beta = tl.load(beta_ptr + (b * T + t) * H + h, mask=t < T, other=0.0)
    power = tl.where(i[:, None] > i[None, :], tl.dot(k, tl.trans(k)) * beta[:, None], 0.0)
    inverse = tl.where(i[:, None] == i[None, :], 1.0, 0.0) - power
    done = 2
    while done < BT:
        power = tl.dot(power, power, input_precision="tf32x3")
        inverse += tl.dot(inverse, power, input_precision="tf32x3")
        done *= 2
    inverse = (inverse * beta[None, :]).to(k.dtype)
    tl.store(w_ptr + at, tl.dot(inverse, k).to(w_ptr.dtype.element_ty), mask=ok)
    tl.store(u_ptr + at, tl.dot(inverse, v).to(u_ptr.dtype.element_ty), mask=ok)


@case
def mill_of_chunks_of_32_solved_by_doubling(b=4, t=4000, h=8):
    d, bt = 64, 32
    k = F.normalize(f32(b, t, h, d), dim=3).to(torch.bfloat16)
    v, beta = rand(b, t, h, d, dtype="bfloat16"), uniform(b, t, h)
    w, u = zeros(b, t, h, d, dtype="bfloat16"), zeros(b, t, h, d, dtype="bfloat16")
    launched = run(solved_by_doubling, (cdiv(t, bt), b * h), (k, v, beta, w, u, t, h), (w, u), D=d, BT=bt, num_warps=2)

    def reference():
        def chunks(x):
            return x.float().reshape(b, t // bt, bt, h, -1).transpose(2, 3)

        kk, vv, be = chunks(k), chunks(v), chunks(beta[..., None])
        low = (be * (kk @ kk.transpose(-1, -2))).tril(-1)
        right = torch.cat([be * kk, be * vv], -1)
        out = torch.linalg.solve_triangular(low, right, upper=False, unitriangular=True)
        return [x.transpose(2, 3).reshape(b, t, h, d) for x in out.split(d, -1)]

    return against(launched, reference)


@triton.jit
def four_taps_swished_and_normed(x_ptr, w_ptr, bias_ptr, cu_ptr, seq_ptr, first_ptr, y_ptr, C, D: tl.constexpr, BT: tl.constexpr, UNIT: tl.constexpr):
    # Chunks of ragged sequences are in a list; four causal taps, swish, and vectors of heads made of unit length.
    chunk, h = tl.program_id(0), tl.program_id(1)
    seq, t0 = tl.load(seq_ptr + chunk), tl.load(first_ptr + chunk)
    begin, end = tl.load(cu_ptr + seq), tl.load(cu_ptr + seq + 1)
    t, c = begin + t0 + tl.arange(0, BT), h * D + tl.arange(0, D)
    y = tl.zeros((BT, D), tl.float32) + tl.load(bias_ptr + c).to(tl.float32)[None, :]
    for tap in tl.static_range(4):
        s = t - 3 + tap
        x = tl.load(x_ptr + s[:, None] * C + c[None, :], mask=((s >= begin) & (s < end))[:, None], other=0.0).to(tl.float32)
        y += x * tl.load(w_ptr + c * 4 + tap).to(tl.float32)[None, :]
    y = y * tl.sigmoid(y)
    if UNIT:
        y *= tl.rsqrt(tl.sum(y * y, 1) + 1e-6)[:, None]
    tl.store(y_ptr + t[:, None] * C + c[None, :], y.to(y_ptr.dtype.element_ty), mask=(t < end)[:, None])


@case
def mill_of_four_taps_swished_to_heads_of_unit_length(seqs=24, long=1800, h=24):
    d, bt = 128, 32
    lengths = ints(1, long, seqs)
    cu = torch.cat([zeros(1, dtype="int32"), lengths.cumsum(0).to(torch.int32)])
    per = cdiv(long, bt)
    seq, first = arange(seqs).repeat_interleave(per), (arange(per) * bt).repeat(seqs)
    c = h * d
    x, w, bias, y = rand(seqs * long, c, dtype="bfloat16"), rand(c, 4, dtype="bfloat16"), rand(c, dtype="bfloat16"), zeros(seqs * long, c, dtype="bfloat16")
    args = x, w, bias, cu, seq, first, y, c
    launched = run(four_taps_swished_and_normed, (seqs * per, h), args, y, D=d, BT=bt, UNIT=True, num_warps=4)

    def reference():
        out = torch.zeros_like(y, dtype=torch.float32)
        for begin, end in zip(cu[:-1].tolist(), cu[1:].tolist()):
            z = F.pad(x[begin:end].float().t()[None], (3, 0))
            z = F.silu(F.conv1d(z, w.float()[:, None], bias.float(), groups=c))[0].t().reshape(-1, h, d)
            out[begin:end] = (z * (z.square().sum(2, keepdim=True) + 1e-6).rsqrt()).reshape(-1, c)
        return out

    return against(launched, reference)


@triton.jit
def after(a1, b1, a2, b2):
    return a1 * a2, b1 * a2 + b2


@triton.jit
def gated_units_back(x_ptr, r_ptr, i_ptr, lam_ptr, h_ptr, dh_ptr, dx_ptr, dr_ptr, di_ptr, T, C, BT: tl.constexpr, BC: tl.constexpr):
    # h = a h + sqrt(1 - a a) i x with a from a gate: what comes back is scanned from the end in chunks, gates are made again.
    b, c = tl.program_id(1), tl.program_id(0) * BC + tl.arange(0, BC)
    i, okc = tl.arange(0, BT), c < C
    rate = -8.0 * tl.log(1.0 + tl.exp(tl.load(lam_ptr + c, mask=okc, other=0.0)))
    carried = tl.zeros((BC,), tl.float32)
    for chunk in range(tl.cdiv(T, BT) - 1, -1, -1):
        t = chunk * BT + i
        at = (b * T + t)[:, None] * C + c[None, :]
        ok = (t < T)[:, None] & okc[None, :]
        r = tl.load(r_ptr + at, mask=ok, other=0.0).to(tl.float32)
        gate = tl.sigmoid(tl.load(i_ptr + at, mask=ok, other=0.0).to(tl.float32))
        x = tl.load(x_ptr + at, mask=ok, other=0.0).to(tl.float32)
        open_ = tl.sigmoid(r)
        a = tl.where(ok, tl.exp(rate[None, :] * open_), 1.0)
        okn = (t + 1 < T)[:, None] & okc[None, :]
        a_next = tl.exp(rate[None, :] * tl.sigmoid(tl.load(r_ptr + at + C, mask=okn, other=0.0).to(tl.float32)))
        a_next = tl.where(okn, a_next, 0.0)
        dh = tl.load(dh_ptr + at, mask=ok, other=0.0).to(tl.float32)
        decay, grad = tl.associative_scan((a_next, dh), 0, after, reverse=True)
        grad += decay * carried[None, :]
        carried = tl.sum(tl.where((i == 0)[:, None], grad, 0.0), 0)
        before = tl.load(h_ptr + at - C, mask=ok & (t > 0)[:, None], other=0.0)
        root = tl.sqrt(tl.maximum(1.0 - a * a, 1e-6))
        da = grad * (before - a / root * gate * x)
        tl.store(dx_ptr + at, (grad * root * gate).to(dx_ptr.dtype.element_ty), mask=ok)
        tl.store(di_ptr + at, (grad * root * x * gate * (1.0 - gate)).to(di_ptr.dtype.element_ty), mask=ok)
        tl.store(dr_ptr + at, (da * a * rate[None, :] * open_ * (1.0 - open_)).to(dr_ptr.dtype.element_ty), mask=ok)


@case
def mill_back_through_units_whose_gates_are_roots(b=8, t=1500, c=1000):
    x, r, i, dh = (rand(b, t, c) for _ in range(4))
    lam, h = f32(c), f32(b, t, c)
    dx, dr, di = (zeros(b, t, c) for _ in range(3))
    launched = run(gated_units_back, (cdiv(c, 32), b), (x, r, i, lam, h, dh, dx, dr, di, t, c), (dx, dr, di), BT=64, BC=32, num_warps=4, num_stages=2)

    def reference():
        rate = -8 * F.softplus(lam)
        open_, gate = torch.sigmoid(r.float()), torch.sigmoid(i.float())
        a = (rate * open_).exp()
        grad, g = torch.zeros_like(a), torch.zeros(b, c, device=x.device)
        for at in range(t - 1, -1, -1):
            g = dh[:, at].float() + (g * a[:, at + 1] if at + 1 < t else 0.0)
            grad[:, at] = g
        root = (1 - a * a).clamp(min=1e-6).sqrt()
        before = F.pad(h, (0, 0, 1, 0))[:, :t]
        da = grad * (before - a / root * gate * x.float())
        return grad * root * gate, da * a * rate * open_ * (1 - open_), grad * root * x.float() * gate * (1 - gate)

    return against(launched, reference)


@triton.jit
def means_by_features_back(q_ptr, k_ptr, v_ptr, do_ptr, den_ptr, delta_ptr, dq_ptr, T, D: tl.constexpr, BT: tl.constexpr):
    # o = phi(q) S / phi(q) z with phi the elu plus one: gradients of queries need both states, which chunks carry.
    head = tl.program_id(0)
    i, d = tl.arange(0, BT), tl.arange(0, D)
    state = tl.zeros((D, D), tl.float32)
    total = tl.zeros((D,), tl.float32)
    for t0 in range(0, T, BT):
        at = (head * T + t0 + i)[:, None] * D + d[None, :]
        q = tl.load(q_ptr + at).to(tl.float32)
        k = tl.load(k_ptr + at).to(tl.float32)
        v, do = tl.load(v_ptr + at), tl.load(do_ptr + at)
        k = tl.where(k > 0.0, k + 1.0, tl.exp(k))
        den, delta = tl.load(den_ptr + head * T + t0 + i), tl.load(delta_ptr + head * T + t0 + i)
        s = tl.where(i[:, None] >= i[None, :], tl.dot(do, tl.trans(v)) - delta[:, None], 0.0)
        low = k.to(do.dtype)
        dphi = tl.dot(do, tl.trans(state.to(do.dtype))) - delta[:, None] * total[None, :]
        dphi = tl.dot(s.to(do.dtype), low, dphi)
        dq = dphi / den[:, None] * tl.where(q > 0.0, 1.0, tl.exp(q))
        tl.store(dq_ptr + at, dq.to(dq_ptr.dtype.element_ty))
        state = tl.dot(tl.trans(low), v, state)
        total += tl.sum(k, 0)


@case
def mill_back_to_queries_of_means_by_features(heads=264, t=1024):
    d, bt = 64, 64
    q, k, v, do = (rand(heads, t, d) for _ in range(4))

    def feature(x):
        return F.elu(x.float()) + 1

    den = (feature(q) * feature(k).cumsum(1)).sum(2)
    delta, dq = f32(heads, t), zeros(heads, t, d)
    launched = run(means_by_features_back, (heads,), (q, k, v, do, den, delta, dq, t), dq, D=d, BT=bt, num_warps=4, num_stages=2)

    def reference():
        s = (do.float() @ v.float().transpose(1, 2) - delta[..., None]).tril()
        return s @ feature(k) / den[..., None] * torch.where(q > 0, 1.0, q.float().exp())

    return against(launched, reference)


@triton.jit
def squares_as_features(x, BT: tl.constexpr, D: tl.constexpr):
    return tl.reshape(x[:, :, None] * x[:, None, :], (BT, D * D))


@triton.jit
def powers_in_chunks(q_ptr, k_ptr, v_ptr, o_ptr, den_ptr, scale, T, D: tl.constexpr, BT: tl.constexpr, BV: tl.constexpr, DV: tl.constexpr):
    # Exponentials up to the second power: states of constants, of keys and of all products of two channels go from chunk to chunk.
    head, c = tl.program_id(0), tl.program_id(1) * BV + tl.arange(0, BV)
    i, d = tl.arange(0, BT), tl.arange(0, D)
    none, one, two = tl.zeros((BV,), tl.float32), tl.zeros((D, BV), tl.float32), tl.zeros((D * D, BV), tl.float32)
    seen, first, second = 0.0, tl.zeros((D,), tl.float32), tl.zeros((D, D), tl.float32)
    for t0 in range(0, T, BT):
        at = (head * T + t0 + i)[:, None] * D + d[None, :]
        q = (tl.load(q_ptr + at).to(tl.float32) * scale).to(tl.bfloat16)
        k = tl.load(k_ptr + at)
        v = tl.load(v_ptr + (head * T + t0 + i)[:, None] * DV + c[None, :])
        s = tl.dot(q, tl.trans(k))
        s = tl.where(i[:, None] >= i[None, :], 1.0 + s + 0.5 * s * s, 0.0)
        qq, kk = squares_as_features(q, BT, D), squares_as_features(k, BT, D)
        out = tl.dot(s.to(v.dtype), v) + none[None, :]
        out = tl.dot(q, one.to(v.dtype), out)
        out += 0.5 * tl.dot(qq, two.to(v.dtype))
        wide = q.to(tl.float32)
        inner = tl.sum(tl.dot(q, second.to(q.dtype)) * wide, 1)
        den = tl.sum(s, 1) + seen + tl.sum(wide * first[None, :], 1) + 0.5 * inner
        tl.store(o_ptr + (head * T + t0 + i)[:, None] * DV + c[None, :], (out / den[:, None]).to(o_ptr.dtype.element_ty))
        if tl.program_id(1) == 0:
            tl.store(den_ptr + head * T + t0 + i, den)
        none += tl.sum(v.to(tl.float32), 0)
        one = tl.dot(tl.trans(k), v, one)
        two = tl.dot(tl.trans(kk), v, two)
        seen += BT
        first += tl.sum(k.to(tl.float32), 0)
        second = tl.dot(tl.trans(k), k, second)


@case
def mill_of_second_powers_in_chunks_of_64(heads=96, t=1024):
    d, dv, bt = 16, 64, 64
    q, k, v = rand(heads, t, d, dtype="bfloat16") / 2, rand(heads, t, d, dtype="bfloat16") / 2, rand(heads, t, dv, dtype="bfloat16")
    o, den = zeros(heads, t, dv, dtype="bfloat16"), zeros(heads, t, dtype="float32")
    launched = run(powers_in_chunks, (heads, dv // 32), (q, k, v, o, den, 0.5, t), (o, den), D=d, BT=bt, BV=32, DV=dv, num_warps=8, num_stages=1)

    def reference():
        s = (q.float() * 0.5) @ k.float().transpose(1, 2)
        s = (1 + s + 0.5 * s * s).tril()
        return s @ v.float() / s.sum(2, keepdim=True), s.sum(2)

    return against(launched, reference)


@triton.jit
def states_come_back(q_ptr, k_ptr, v_ptr, g_ptr, do_ptr, dk_ptr, dv_ptr, ds_ptr, scale, T, H, D: tl.constexpr, BV: tl.constexpr, BT: tl.constexpr):
    # From the last chunk to the first: the state's gradient decays and takes in queries; keys get a part from each block of values.
    bh, part = tl.program_id(0), tl.program_id(1)
    b, h = bh // H, bh % H
    i, d, c = tl.arange(0, BT), tl.arange(0, D), part * BV + tl.arange(0, BV)
    state = tl.zeros((D, BV), tl.float32)
    for t0 in range(T - BT, -1, -BT):
        row = (b * T + t0 + i) * H + h
        at, cv = row[:, None] * D + d[None, :], row[:, None] * (2 * BV) + c[None, :]
        q, k = tl.load(q_ptr + at), tl.load(k_ptr + at)
        v, do = tl.load(v_ptr + cv), tl.load(do_ptr + cv)
        g = tl.cumsum(tl.load(g_ptr + row), 0)
        total = tl.sum(tl.where(i == BT - 1, g, 0.0), 0)
        apart = tl.where(i[:, None] >= i[None, :], tl.exp(g[:, None] - g[None, :]), 0.0) * scale
        rest = tl.exp(total - g)
        s = (tl.dot(q, tl.trans(k)) * apart).to(do.dtype)
        low = state.to(do.dtype)
        dv = tl.dot(tl.trans(s), do) + tl.dot(k, low) * rest[:, None]
        ds = (tl.dot(do, tl.trans(v)) * apart).to(do.dtype)
        dk = tl.dot(tl.trans(ds), q) + tl.dot(v, tl.trans(low)) * rest[:, None]
        tl.store(dv_ptr + cv, dv.to(dv_ptr.dtype.element_ty))
        tl.store(dk_ptr + part * tl.num_programs(0) * T * D + at, dk)
        decayed = (q.to(tl.float32) * (tl.exp(g) * scale)[:, None]).to(do.dtype)
        state = tl.dot(tl.trans(decayed), do, state * tl.exp(total))
    tl.store(ds_ptr + (bh * D + d)[:, None] * (2 * BV) + c[None, :], state)


@case
def mill_back_from_the_last_chunk_to_keys_and_values(b=4, t=1024, h=16):
    d, bv, bt = 64, 64, 64
    q, k = rand(b, t, h, d, dtype="bfloat16"), rand(b, t, h, d, dtype="bfloat16")
    v, do = rand(b, t, h, 2 * bv, dtype="bfloat16"), rand(b, t, h, 2 * bv, dtype="bfloat16")
    g = -uniform(b, t, h) / 10
    dk, dv, ds = zeros(2, b, t, h, d, dtype="float32"), zeros(b, t, h, 2 * bv, dtype="bfloat16"), zeros(b * h, d, 2 * bv, dtype="float32")
    args = q, k, v, g, do, dk, dv, ds, d**-0.5, t, h
    launched = run(states_come_back, (b * h, 2), args, (dk, dv, ds), D=d, BV=bv, BT=bt, num_warps=4, num_stages=2)

    def reference():
        total = g.cumsum(1)
        apart = (total[:, :, None] - total[:, None, :]).permute(0, 3, 1, 2)
        keep = apart.masked_fill(arange(t)[None, :] > arange(t)[:, None], float("-inf")).exp() * d**-0.5
        qq, kk, vv, dd = (x.float().transpose(1, 2) for x in (q, k, v, do))
        dvv = ((qq @ kk.transpose(2, 3)) * keep).transpose(2, 3) @ dd
        dks = [((dd[..., x] @ vv[..., x].transpose(2, 3)) * keep).transpose(2, 3) @ qq for x in (slice(0, bv), slice(bv, None))]
        state = (qq * total.transpose(1, 2).exp()[..., None] * d**-0.5).transpose(2, 3) @ dd
        return torch.stack([x.transpose(1, 2) for x in dks]), dvv.transpose(1, 2), state.reshape(b * h, d, 2 * bv)

    return against(launched, reference)
