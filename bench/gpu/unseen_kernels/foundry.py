"""Foundry: products in the tiles that tuners come back with, flat, tall, deep or small, with all that libraries put before and behind them."""

import torch
import torch.nn.functional as F
import triton
import triton.language as tl

from .common import PROGRAMS, against, arange, case, cdiv, cleared, f8, f32, far, far8, ints, rand, run, uniform, viewed, zeros


@triton.jit
def words_by_group_of_row(x_ptr, w_ptr, s_ptr, z_ptr, g_ptr, y_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Eight rows of four bits in a word; which scale and zero a row has is in a list, zeros are eight columns a word.
    m, n, k = tl.program_id(1) * BM + tl.arange(0, BM), tl.program_id(0) * BN + tl.arange(0, BN), tl.arange(0, BK)
    xs = x_ptr + m[:, None] * K + k[None, :]
    ws = w_ptr + (k // 8)[:, None] * N + n[None, :]
    of_rows, of_columns = (k % 8 * 4)[:, None], (n % 8 * 4)[None, :]
    acc = tl.zeros((BM, BN), tl.float32)
    for k0 in range(0, tl.cdiv(K, BK)):
        g = tl.load(g_ptr + k0 * BK + k)
        s = tl.load(s_ptr + g[:, None] * N + n[None, :])
        z = tl.load(z_ptr + g[:, None] * (N // 8) + (n // 8)[None, :])
        w = tl.load(ws)
        code = ((w >> of_rows) & 15) - ((z >> of_columns) & 15)
        acc = tl.dot(tl.load(xs, mask=(m < M)[:, None], other=0.0), code.to(s.dtype) * s, acc)
        xs += BK
        ws += BK // 8 * N
    tl.store(y_ptr + m[:, None] * N + n[None, :], acc.to(y_ptr.dtype.element_ty), mask=(m < M)[:, None])


def packed_words(codes):
    """Codes of four bits, eight of the last axis in a word."""
    parts = codes.reshape(*codes.shape[:-1], -1, 8).to(torch.int64) << (arange(8, "int64") * 4)
    return parts.sum(-1).to(torch.int32)


@case
def foundry_of_words_whose_rows_name_their_groups_16x256(m=24, n=8192, k=4096):
    groups = k // 128
    x, s = rand(m, k) / 8, uniform(groups, n).half() / 16
    w, z = ints(0, 16, k, n), ints(0, 16, groups, n)
    g = ints(0, groups, k)
    y = zeros(m, n)
    words, zero_words = packed_words(w.t()).t().contiguous(), packed_words(z)
    args = x, words, s, zero_words, g, y, m, n, k
    launched = run(words_by_group_of_row, (n // 256, cdiv(m, 16)), args, y, BM=16, BN=256, BK=32, num_warps=8, num_stages=4)
    return against(launched, lambda: x.float() @ ((w - z[g.long()]).half() * s[g.long()]).float())


@triton.jit
def blocks_of_scales_to_fp8(a_ptr, b_ptr, as_ptr, bs_ptr, y_ptr, ys_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Scales a row and 128 of k, and a square of 128; swished, 128 results share a scale on the way out, scales are in columns.
    m, n, k = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN), tl.arange(0, BK)
    a = a_ptr + m[:, None] * K + k[None, :]
    b = b_ptr + n[None, :] * K + k[:, None]
    acc = tl.zeros((BM, BN), tl.float32)
    for i in range(0, tl.cdiv(K, BK)):
        x = tl.load(a, mask=(m < M)[:, None], other=0.0)
        w = tl.load(b)
        sx = tl.load(as_ptr + i * M + m, mask=m < M, other=0.0)
        sw = tl.load(bs_ptr + n // 128 * (K // BK) + i)
        acc += tl.dot(x, w) * sx[:, None] * sw[None, :]
        a += BK
        b += BK
    y = tl.reshape(acc * tl.sigmoid(acc), (BM, BN // 128, 128))
    top = tl.maximum(tl.max(tl.abs(y), 2), 1e-6) / 448.0
    codes = tl.reshape((y / top[:, :, None]).to(y_ptr.dtype.element_ty), (BM, BN))
    tl.store(y_ptr + m[:, None] * N + n[None, :], codes, mask=(m < M)[:, None])
    part = tl.program_id(1) * (BN // 128) + tl.arange(0, BN // 128)
    tl.store(ys_ptr + part[None, :] * M + m[:, None], top, mask=(m < M)[:, None])


@case
def foundry_of_fp8_squares_of_scales_to_fp8_64x256x128(m=1500, n=2048, k=2048):
    a, b = f8(m, k), f8(n, k)
    sa, sb = uniform(k // 128, m) / 16, uniform(n // 128, k // 128) / 16
    y, ys = f8(m, n), zeros(n // 128, m, dtype="float32")
    launched = run(blocks_of_scales_to_fp8, (cdiv(m, 64), n // 256), (a, b, sa, sb, y, ys, m, n, k), (y, ys), BM=64, BN=256, BK=128, num_warps=8, num_stages=3)

    def view(outs):
        return far8(outs[0]), outs[1]

    def reference():
        x = a.float() * sa.t().repeat_interleave(128, 1)
        w = b.float() * sb.repeat_interleave(128, 0).repeat_interleave(128, 1)
        z = F.silu(x @ w.t())
        top = z.reshape(m, -1, 128).abs().amax(2).clamp(min=1e-6) / 448
        return view(((z / top.repeat_interleave(128, 1)).to(y.dtype), top.t()))

    return against(viewed(launched, view), reference)


@triton.jit
def chosen_experts_gated(x_ptr, w_ptr, pair_ptr, expert_ptr, total_ptr, y_ptr, N, K, PAIRS, TOP: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Pairs of token and choice are sorted by expert and padded to tiles; rows are gathered by token, results go to pairs.
    across = tl.cdiv(N, BN)
    tile, column = tl.program_id(0) // across, tl.program_id(0) % across
    if tile * BM >= tl.load(total_ptr):
        return
    pair = tl.load(pair_ptr + tile * BM + tl.arange(0, BM))
    ok = (pair < PAIRS)[:, None]
    n, k = column * BN + tl.arange(0, BN), tl.arange(0, BK)
    expert = tl.load(expert_ptr + tile)
    ys = y_ptr + pair[:, None] * N + n[None, :]
    if expert < 0:
        tl.store(ys, tl.zeros((BM, BN), y_ptr.dtype.element_ty), mask=ok)
        return
    xs = x_ptr + (pair // TOP)[:, None] * K + k[None, :]
    gates = w_ptr + expert.to(tl.int64) * (2 * N * K) + n[None, :] * K + k[:, None]
    ups = gates + N * K
    gate = tl.zeros((BM, BN), tl.float32)
    up = tl.zeros((BM, BN), tl.float32)
    for _ in range(0, K, BK):
        x = tl.load(xs, mask=ok, other=0.0)
        gate += tl.dot(x, tl.load(gates))
        up += tl.dot(x, tl.load(ups))
        xs += BK
        gates += BK
        ups += BK
    tl.store(ys, (gate * tl.sigmoid(1.702 * gate) * (up + 1.0)).to(y_ptr.dtype.element_ty), mask=ok)


def sorted_pairs(experts, e, tile):
    """Pairs in the order of their experts, each expert's padded to whole tiles, the expert of each tile, how many in all."""
    pairs, owners = [], []
    flat = experts.reshape(-1).cpu()
    for i in range(e):
        mine = (flat == i).nonzero()[:, 0].tolist()
        mine += [flat.numel()] * (-len(mine) % tile)
        pairs += mine
        owners += [i] * (len(mine) // tile)
    total = len(pairs)
    pairs += [flat.numel()] * (e * tile)
    owners += [0] * e
    return (torch.tensor(x, dtype=torch.int32, device="cuda") for x in (pairs, owners, [total]))


@case
def foundry_of_experts_gated_of_gathered_rows_32x128_twice(tokens=1024, e=16, n=384, k=1024, top=2):
    x, w = rand(tokens, k, dtype="bfloat16"), rand(e, 2 * n, k, dtype="bfloat16") / 32
    experts = torch.argsort(torch.rand(tokens, e), 1)[:, :top]
    pairs, owners, total = sorted_pairs(experts, e, 32)
    owners = torch.where(owners == 3, -1, owners).to(torch.int32)
    y = zeros(tokens * top, n, dtype="bfloat16")
    tiles = tokens * top // 32 + e
    args = x, w, pairs, owners, total, y, n, k, tokens * top
    launched = run(chosen_experts_gated, (tiles * cdiv(n, 128),), args, y, TOP=top, BM=32, BN=128, BK=64, num_warps=8, num_stages=4)

    def reference():
        flat, out = experts.reshape(-1).to(x.device), zeros(tokens * top, n, dtype="float32")
        for i in range(e):
            at = (flat == i).nonzero()[:, 0]
            z = x[at // top].float() @ w[i].float().t()
            out[at] = z[:, :n] * torch.sigmoid(1.702 * z[:, :n]) * (z[:, n:] + 1) * (i != 3)
        return out

    return against(launched, reference)


@triton.jit
def experts_added_to_tokens(h_ptr, w_ptr, ws_ptr, pair_ptr, expert_ptr, total_ptr, share_ptr, y_ptr, N, K, PAIRS, TOP: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Hidden rows of pairs times an expert's bytes; a result times its share is added where its token is.
    tile = tl.program_id(1)
    if tile * BM < tl.load(total_ptr):
        pair = tl.load(pair_ptr + tile * BM + tl.arange(0, BM))
        ok = pair < PAIRS
        expert = tl.load(expert_ptr + tile).to(tl.int64)
        n, k = tl.program_id(0) * BN + tl.arange(0, BN), tl.arange(0, BK)
        acc = tl.zeros((BM, BN), tl.float32)
        for k0 in tl.range(0, K, BK, num_stages=3):
            h = tl.load(h_ptr + pair[:, None] * K + (k0 + k)[None, :], mask=ok[:, None], other=0.0)
            w = tl.load(w_ptr + expert * N * K + n[None, :] * K + (k0 + k)[:, None])
            acc = tl.dot(h, w.to(h.dtype), acc)
        share = tl.load(share_ptr + pair, mask=ok, other=0.0)
        acc *= tl.load(ws_ptr + expert * N + n)[None, :] * share[:, None]
        tl.atomic_add(y_ptr + (pair // TOP)[:, None] * N + n[None, :], acc, mask=ok[:, None], sem="relaxed")


@case
def foundry_of_experts_of_bytes_added_to_tokens_16x256(tokens=300, e=24, n=1024, k=768, top=4):
    h, w = rand(tokens * top, k), ints(-127, 128, e, n, k, dtype="int8")
    ws, share = uniform(e, n) / 2000, uniform(tokens, top)
    experts = torch.argsort(torch.rand(tokens, e), 1)[:, :top]
    pairs, owners, total = sorted_pairs(experts, e, 16)
    y = zeros(tokens, n, dtype="float32")
    args = h, w, ws, pairs, owners, total, share, y, n, k, tokens * top
    launched = run(experts_added_to_tokens, (n // 256, tokens * top // 16 + e), args, y, TOP=top, BM=16, BN=256, BK=64, num_warps=4)

    def reference():
        flat, out = experts.reshape(-1).to(h.device), zeros(tokens * top, n, dtype="float32")
        for i in range(e):
            at = (flat == i).nonzero()[:, 0]
            out[at] = h[at].float() @ (w[i].float() * ws[i][:, None]).t()
        return (out.reshape(tokens, top, n) * share[:, :, None]).sum(1)

    return against(cleared(launched, y), reference)


@triton.jit
def rows_of_byte_blocks(a_ptr, s_ptr, start_ptr, column_ptr, x_ptr, y_ptr, N, B: tl.constexpr, BN: tl.constexpr):
    # A row of blocks of 32 by 32 bytes, each with a scale, times wide tiles of dense rows.
    row = tl.program_id(1)
    n, i, j = tl.program_id(0) * BN + tl.arange(0, BN), tl.arange(0, B), tl.arange(0, B)
    acc = tl.zeros((B, BN), tl.float32)
    for at in range(tl.load(start_ptr + row), tl.load(start_ptr + row + 1)):
        a = tl.load(a_ptr + at * (B * B) + i[:, None] * B + j[None, :])
        column = tl.load(column_ptr + at)
        x = tl.load(x_ptr + (column * B + j)[:, None] * N + n[None, :], mask=(n < N)[None, :], other=0.0)
        acc += tl.dot(a.to(x.dtype), x) * tl.load(s_ptr + at)
    tl.store(y_ptr + (row * B + i)[:, None] * N + n[None, :], acc.to(y_ptr.dtype.element_ty), mask=(n < N)[None, :])


@case
def foundry_of_rows_of_blocks_of_bytes_32x256(rows=64, columns=64, n=4000, keep=0.3):
    on = torch.rand(rows, columns) < keep
    count = int(on.sum())
    a, s = ints(-127, 128, count, 32, 32, dtype="int8"), uniform(count) / 1000
    start = F.pad(on.sum(1).cumsum(0), (1, 0)).to(torch.int32).cuda()
    column = on.nonzero()[:, 1].to(torch.int32).cuda()
    x, y = rand(columns * 32, n), zeros(rows * 32, n)
    launched = run(rows_of_byte_blocks, (cdiv(n, 256), rows), (a, s, start, column, x, y, n), y, B=32, BN=256, num_warps=4, num_stages=4)

    def reference():
        dense = zeros(rows, columns, 32, 32, dtype="float32")
        dense[on.to(a.device)] = a.float() * s[:, None, None]
        return dense.permute(0, 2, 1, 3).reshape(rows * 32, columns * 32) @ x.float()

    return against(launched, reference)


@triton.jit
def blocks_that_are_on(a_ptr, b_ptr, on_ptr, bias_ptr, c_ptr, top_ptr, M, N, K, scale, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Tiles of which a byte says that nobody wants them are filled; of the others also the highest of each row is kept.
    i, j = tl.program_id(0), tl.program_id(1)
    m, n, k = i * BM + tl.arange(0, BM), j * BN + tl.arange(0, BN), tl.arange(0, BK)
    on = tl.load(on_ptr + i * tl.num_programs(1) + j)
    value = tl.full((BM, BN), -1.0, tl.float32)
    if on != 0:
        a = a_ptr + m[:, None] * K + k[None, :]
        b = b_ptr + n[None, :] * K + k[:, None]
        acc = tl.zeros((BM, BN), tl.float32)
        for k0 in range(0, K, BK):
            acc = tl.dot(tl.load(a + k0), tl.load(b + k0), acc)
        value = acc * scale + tl.load(bias_ptr + m)[:, None]
    tl.store(top_ptr + j * M + m, tl.max(value, 1))
    tl.store(c_ptr + m[:, None] * N + n[None, :], value.to(c_ptr.dtype.element_ty))


@case
def foundry_of_tiles_that_bytes_switch_on_128x256(m=3072, n=4096, k=768):
    a, b, bias = rand(m, k, dtype="bfloat16"), rand(n, k, dtype="bfloat16"), f32(m)
    on = ints(0, 5, m // 128, n // 256, dtype="uint8")
    c, top = zeros(m, n, dtype="bfloat16"), zeros(n // 256, m, dtype="float32")
    args = a, b, on, bias, c, top, m, n, k, 0.05
    launched = run(blocks_that_are_on, (m // 128, n // 256), args, (c, top), BM=128, BN=256, BK=64, num_warps=8, num_stages=3)

    def reference():
        value = (a.float() @ b.float().t()) * 0.05 + bias[:, None]
        value = torch.where((on > 0).repeat_interleave(128, 0).repeat_interleave(256, 1), value, -1.0)
        return value, value.reshape(m, n // 256, 256).amax(2).t()

    return against(launched, reference)


@triton.jit
def deep_steps_in_parts(a_ptr, b_ptr, bias_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, PARTS: tl.constexpr):
    # Small tiles and deep steps; parts take every PARTS-th step, and the first brings the bias.
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    part = tl.program_id(2)
    k = part * BK + tl.arange(0, BK)
    am, bn = tl.max_contiguous(tl.multiple_of(m % M, BM), BM), tl.max_contiguous(tl.multiple_of(n % N, BN), BN)
    a = a_ptr + am[:, None] * K + k[None, :]
    b = b_ptr + bn[None, :] * K + k[:, None]
    acc = tl.zeros((BM, BN), tl.float32)
    for at in range(0, tl.cdiv(K, BK * PARTS)):
        left = K - at * BK * PARTS
        acc += tl.dot(tl.load(a, mask=k[None, :] < left, other=0.0), tl.load(b, mask=k[:, None] < left, other=0.0))
        a += BK * PARTS
        b += BK * PARTS
    if part == 0:
        acc += tl.load(bias_ptr + n, mask=n < N, other=0.0)[None, :]
    tl.atomic_add(c_ptr + m[:, None] * N + n[None, :], acc, mask=(m < M)[:, None] & (n < N)[None, :])


@case
def foundry_of_steps_256_deep_in_twelve_parts_32x32(m=96, n=320, k=20000, parts=12):
    a, b, bias, c = rand(m, k), rand(n, k), f32(n), zeros(m, n, dtype="float32")
    launched = run(deep_steps_in_parts, (cdiv(m, 32), cdiv(n, 32), parts), (a, b, bias, c, m, n, k), c, BM=32, BN=32, BK=256, PARTS=parts, num_warps=2, num_stages=2)
    return against(cleared(launched, c), lambda: a.float() @ b.float().t() + bias)


@triton.jit
def persistent_with_residual(a_ptr, b_ptr, scale_ptr, bias_ptr, r_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr):
    # Programs that stay take tiles in groups of rows; both loops are one. A scale a column, a bias a row, and what was there.
    down, across = tl.cdiv(M, BM), tl.cdiv(N, BN)
    k = tl.arange(0, BK)
    for tile in tl.range(tl.program_id(0), down * across, tl.num_programs(0), flatten=True):
        group = tile // (GROUP * across)
        high = tl.minimum(down - group * GROUP, GROUP)
        i = group * GROUP + tile % (GROUP * across) % high
        j = tile % (GROUP * across) // high
        m, n = i * BM + tl.arange(0, BM), j * BN + tl.arange(0, BN)
        am, bn = tl.where(m < M, m, 0), tl.where(n < N, n, 0)
        acc = tl.zeros((BM, BN), tl.float32)
        for at in range(tl.cdiv(K, BK)):
            a = tl.load(a_ptr + am[:, None] * K + (at * BK + k)[None, :], mask=(at * BK + k)[None, :] < K, other=0.0)
            b = tl.load(b_ptr + bn[None, :] * K + (at * BK + k)[:, None], mask=(at * BK + k)[:, None] < K, other=0.0)
            acc = tl.dot(a, b, acc)
        ok = (m < M)[:, None] & (n < N)[None, :]
        before = tl.load(r_ptr + m[:, None] * N + n[None, :], mask=ok, other=0.0).to(tl.float32)
        acc = acc * tl.load(scale_ptr + n, mask=n < N, other=0.0)[None, :] + tl.load(bias_ptr + m, mask=m < M, other=0.0)[:, None]
        tl.store(c_ptr + m[:, None] * N + n[None, :], (acc + before).to(c_ptr.dtype.element_ty), mask=ok)


@case
def foundry_that_stays_with_residuals_in_one_loop_128x256(m=2300, n=3000, k=1136):
    a, b, r = rand(m, k), rand(n, k) / 32, rand(m, n)
    scale, bias, c = uniform(n), f32(m), zeros(m, n)
    launched = run(persistent_with_residual, (PROGRAMS,), (a, b, scale, bias, r, c, m, n, k), c, BM=128, BN=256, BK=64, GROUP=6, num_warps=8, num_stages=3)
    return against(launched, lambda: (a.float() @ b.float().t()) * scale + bias[:, None] + r.float())


@triton.jit
def bytes_to_bytes(x_ptr, w_ptr, sx_ptr, zx_ptr, sw_ptr, sum_ptr, bias_ptr, y_ptr, M, N, K, out_scale, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Rows have a scale and a zero, columns a scale, a sum and a bias; what comes out is bytes of one scale again.
    m, n, k = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN), tl.arange(0, BK)
    x = x_ptr + m[:, None] * K + k[None, :]
    w = w_ptr + n[None, :] * K + k[:, None]
    acc = tl.zeros((BM, BN), tl.int32)
    for _ in range(0, K, BK):
        acc = tl.dot(tl.load(x, mask=(m < M)[:, None], other=0), tl.load(w, mask=(n < N)[None, :], other=0), acc, out_dtype=tl.int32)
        x += BK
        w += BK
    zero = tl.load(zx_ptr + m, mask=m < M, other=0)
    acc -= zero[:, None] * tl.load(sum_ptr + n, mask=n < N, other=0)[None, :]
    y = acc.to(tl.float32) * tl.load(sx_ptr + m, mask=m < M, other=0.0)[:, None] * tl.load(sw_ptr + n, mask=n < N, other=0.0)[None, :]
    y += tl.load(bias_ptr + n, mask=n < N, other=0.0)[None, :]
    y = tl.floor(tl.minimum(tl.maximum(y * out_scale, -127.0), 127.0) + 0.5)
    tl.store(y_ptr + m[:, None] * N + n[None, :], y.to(tl.int8), mask=(m < M)[:, None] & (n < N)[None, :])


@case
def foundry_of_bytes_to_bytes_with_zeros_of_rows_128x128x128(m=1900, n=2100, k=2048):
    x, w = ints(-128, 128, m, k, dtype="int8"), ints(-127, 128, n, k, dtype="int8")
    sx, zx, sw, bias = uniform(m) / 100, ints(-20, 20, m), uniform(n) / 1000, f32(n)
    y, sums = zeros(m, n, dtype="int8"), w.int().sum(1).to(torch.int32)
    args = x, w, sx, zx, sw, sums, bias, y, m, n, k, 30.0
    launched = run(bytes_to_bytes, (cdiv(m, 128), cdiv(n, 128)), args, y, BM=128, BN=128, BK=128, num_warps=8, num_stages=4)

    def reference():
        z = ((x.double() - zx[:, None]) @ w.double().t()) * sx[:, None] * sw + bias
        return far(torch.floor((z * 30).clamp(-127, 127) + 0.5))

    return against(viewed(launched, far), reference)


@triton.jit
def scores_to_weights_times_few(s_ptr, lse_ptr, v_ptr, y_ptr, sum_ptr, K, BM: tl.constexpr, D: tl.constexpr, BK: tl.constexpr):
    # Tall tiles of 256 by 16: weights come from stored scores in the loop, and are added up beside the product.
    m, d, k = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, D), tl.arange(0, BK)
    lse = tl.load(lse_ptr + m)
    acc = tl.zeros((BM, D), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    for k0 in range(0, K, BK):
        ok = k0 + k < K
        s = tl.load(s_ptr + m[:, None].to(tl.int64) * K + (k0 + k)[None, :], mask=ok[None, :], other=float("-inf"))
        w = tl.exp(s.to(tl.float32) - lse[:, None])
        total += tl.sum(w, 1)
        v = tl.load(v_ptr + (k0 + k)[:, None] * D + d[None, :], mask=ok[:, None], other=0.0)
        acc = tl.dot(w.to(v.dtype), v, acc)
    tl.store(y_ptr + m[:, None] * D + d[None, :], acc / total[:, None])
    tl.store(sum_ptr + m, total)


@case
def foundry_of_stored_scores_made_weights_256x16(m=22528, k=3000, d=16):
    s, v = rand(m, k, dtype="bfloat16"), rand(k, d, dtype="bfloat16") + 1
    lse = s.float().logsumexp(1) + uniform(m) - 0.5
    y, total = zeros(m, d, dtype="float32"), zeros(m, dtype="float32")
    launched = run(scores_to_weights_times_few, (m // 256,), (s, lse, v, y, total, k), (y, total), BM=256, D=d, BK=64, num_warps=8, num_stages=4)

    def reference():
        w = (s.float() - lse[:, None]).exp()
        return (w @ v.float()) / w.sum(1)[:, None], w.sum(1)

    return against(launched, reference)


@triton.jit
def taps_of_sound(x_ptr, w_ptr, b_ptr, alpha_ptr, y_ptr, C, L, CO, T: tl.constexpr, DIL: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Channels first: few output channels a tile, many samples; five taps apart, then x + sin^2(ax)/a.
    co, t, c = tl.program_id(1) * BM + tl.arange(0, BM), tl.program_id(0) * BN + tl.arange(0, BN), tl.arange(0, BK)
    batch = tl.program_id(2)
    acc = tl.zeros((BM, BN), tl.float32)
    for c0 in range(0, C, BK):
        for tap in tl.static_range(T):
            at = t + (tap - T // 2) * DIL
            x = tl.load(x_ptr + (batch * C + c0 + c)[:, None] * L + at[None, :], mask=((at >= 0) & (at < L))[None, :], other=0.0)
            w = tl.load(w_ptr + (tap * CO + co)[:, None] * C + (c0 + c)[None, :])
            acc = tl.dot(w, x, acc)
    acc += tl.load(b_ptr + co)[:, None]
    alpha = tl.load(alpha_ptr + co)[:, None]
    wave = tl.sin(alpha * acc)
    acc += wave * wave / alpha
    tl.store(y_ptr + (batch * CO + co)[:, None] * L + t[None, :], acc.to(y_ptr.dtype.element_ty), mask=(t < L)[None, :])


@case
def foundry_of_five_taps_of_sound_and_waves_32x256(batch=8, c=128, co=192, long=5000):
    x, w = rand(batch, c, long), rand(5, co, c) / 32
    b, alpha, y = f32(co), uniform(co) + 0.5, zeros(batch, co, long)
    args = x, w, b, alpha, y, c, long, co
    launched = run(taps_of_sound, (cdiv(long, 256), co // 32, batch), args, y, T=5, DIL=3, BM=32, BN=256, BK=32, num_warps=4, num_stages=3)

    def reference():
        z = F.conv1d(x.float(), w.float().permute(1, 2, 0), b, padding=6, dilation=3)
        a = alpha[None, :, None]
        return z + torch.sin(a * z) ** 2 / a

    return against(launched, reference)


@triton.jit
def volume_by_flat_k(x_ptr, w_ptr, b_ptr, r_ptr, y_ptr, total, DEPTH, H, W, C: tl.constexpr, CO: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # 27 taps of 48 channels are one axis, steps of 64 lie across taps; voxels and taps come apart by divisions.
    m, n = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    w_, h_ = m % W, m // W % H
    d_, batch = m // (W * H) % DEPTH, m // (W * H * DEPTH)
    acc = tl.zeros((BM, BN), tl.float32)
    for k0 in range(0, 27 * C, BK):
        k = k0 + tl.arange(0, BK)
        c, tap = k % C, k // C
        d = d_[:, None] + (tap // 9 - 1)[None, :]
        h = h_[:, None] + (tap // 3 % 3 - 1)[None, :]
        w = w_[:, None] + (tap % 3 - 1)[None, :]
        inside = (d >= 0) & (d < DEPTH) & (h >= 0) & (h < H) & (w >= 0) & (w < W) & (k < 27 * C)[None, :] & (m < total)[:, None]
        at = ((batch[:, None] * DEPTH + d) * H + h) * W + w
        x = tl.load(x_ptr + at * C + c[None, :], mask=inside, other=0.0)
        wt = tl.load(w_ptr + k[:, None] * CO + n[None, :], mask=(k < 27 * C)[:, None], other=0.0)
        acc = tl.dot(x, wt, acc)
    ok = (m < total)[:, None]
    acc += tl.load(b_ptr + n)[None, :] + tl.load(r_ptr + m[:, None] * CO + n[None, :], mask=ok, other=0.0).to(tl.float32)
    tl.store(y_ptr + m[:, None] * CO + n[None, :], tl.maximum(acc, 0.0).to(y_ptr.dtype.element_ty), mask=ok)


@case
def foundry_of_voxels_by_one_axis_of_taps_and_channels_128x64(batch=2, depth=11, h=40, w=36, c=48, co=64):
    x, wt, b = rand(batch, depth, h, w, c), rand(27 * c, co) / 32, f32(co)
    total = batch * depth * h * w
    r, y = rand(total, co), zeros(total, co)
    args = x, wt, b, r, y, total, depth, h, w
    launched = run(volume_by_flat_k, (cdiv(total, 128), co // 64), args, y, C=c, CO=co, BM=128, BN=64, BK=64, num_warps=4, num_stages=3)

    def reference():
        kernel = wt.float().reshape(3, 3, 3, c, co).permute(4, 3, 0, 1, 2)
        z = F.conv3d(x.float().permute(0, 4, 1, 2, 3), kernel, b, padding=1).permute(0, 2, 3, 4, 1).reshape(total, co)
        return (z + r.float()).relu()

    return against(launched, reference)


@triton.jit
def phases_of_a_turned_conv(x_ptr, w_ptr, b_ptr, y_ptr, H, W, CI, CO, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Twice as large: each of four phases of the output has two by two of the sixteen taps.
    m, n, c = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN), tl.arange(0, BK)
    phase, batch = tl.program_id(2) % 4, tl.program_id(2) // 4
    ph, pw = phase // 2, phase % 2
    i, j = m // W, m % W
    acc = tl.zeros((BM, BN), tl.float32)
    for tap in range(4):
        th, tw = tap // 2, tap % 2
        h, w = i + ph - th, j + pw - tw
        ok = (h >= 0) & (h < H) & (w >= 0) & (w < W)
        xs = x_ptr + ((batch * H + h) * W + w)[:, None] * CI + c[None, :]
        ws = w_ptr + ((1 - ph + 2 * th) * 4 + 1 - pw + 2 * tw) * CI * CO + c[:, None] * CO + n[None, :]
        for c0 in range(0, CI, BK):
            acc = tl.dot(tl.load(xs + c0, mask=ok[:, None], other=0.0), tl.load(ws + c0 * CO), acc)
    acc += tl.load(b_ptr + n)[None, :]
    acc = tl.where(acc > 0.0, acc, 0.1 * acc)
    out = (batch * 2 * H + 2 * i + ph) * (2 * W) + 2 * j + pw
    tl.store(y_ptr + out[:, None] * CO + n[None, :], acc.to(y_ptr.dtype.element_ty), mask=(m < H * W)[:, None])


@case
def foundry_of_phases_of_a_turned_conv_4x4_by_2_64x128(batch=4, h=50, w=46, ci=96, co=128):
    x, wt, b = rand(batch, h, w, ci), rand(4, 4, ci, co) / 32, f32(co)
    y = zeros(batch, 2 * h, 2 * w, co)
    args = x, wt, b, y, h, w, ci, co
    launched = run(phases_of_a_turned_conv, (cdiv(h * w, 64), co // 128, 4 * batch), args, y, BM=64, BN=128, BK=32, num_warps=4, num_stages=4)

    def reference():
        z = F.conv_transpose2d(x.float().permute(0, 3, 1, 2), wt.float().permute(2, 3, 0, 1), b, stride=2, padding=1)
        return F.leaky_relu(z, 0.1).permute(0, 2, 3, 1)

    return against(launched, reference)


@triton.jit
def two_of_four(x_ptr, v_ptr, at_ptr, y_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BQ: tl.constexpr):
    # Of four weights down a column two are there, their places are nibbles of a byte: spread to four by comparison.
    m, n, q, four = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN), tl.arange(0, BQ), tl.arange(0, 4)
    k = tl.arange(0, 4 * BQ)
    acc = tl.zeros((BM, BN), tl.float32)
    for q0 in range(0, K // 4, BQ):
        at = tl.load(at_ptr + (q0 + q)[:, None] * N + n[None, :])
        one = tl.load(v_ptr + (2 * (q0 + q))[:, None] * N + n[None, :])
        other = tl.load(v_ptr + (2 * (q0 + q) + 1)[:, None] * N + n[None, :])
        first, second = (at & 15)[:, None, :], (at >> 4)[:, None, :]
        place = four[None, :, None]
        w = tl.where(place == first, one[:, None, :], 0.0) + tl.where(place == second, other[:, None, :], 0.0)
        w = tl.reshape(w, (4 * BQ, BN)).to(x_ptr.dtype.element_ty)
        x = tl.load(x_ptr + m[:, None] * K + (4 * q0 + k)[None, :], mask=(m < M)[:, None], other=0.0)
        acc = tl.dot(x, w, acc)
    tl.store(y_ptr + m[:, None] * N + n[None, :], acc.to(y_ptr.dtype.element_ty), mask=(m < M)[:, None])


@case
def foundry_of_two_weights_of_four_spread_in_registers_64x64x64(m=700, n=1024, k=1024):
    x, v = rand(m, k), rand(k // 2, n) / 16
    first = ints(0, 4, k // 4, n)
    second = (first + ints(1, 4, k // 4, n)) % 4
    at, y = (first + 16 * second).to(torch.uint8), zeros(m, n)
    launched = run(two_of_four, (cdiv(m, 64), n // 64), (x, v, at, y, m, n, k), y, BM=64, BN=64, BQ=16, num_warps=4, num_stages=3)

    def reference():
        w = zeros(k // 4, 4, n, dtype="float32")
        w.scatter_(1, first[:, None].long(), v[0::2].float()[:, None])
        w.scatter_(1, second[:, None].long(), v[1::2].float()[:, None])
        return x.float() @ w.reshape(k, n)

    return against(launched, reference)


@triton.jit
def heads_to_slots(x_ptr, w_ptr, b_ptr, angle_ptr, slot_ptr, q_ptr, cache_ptr, T, K, HQ, HK, D: tl.constexpr, BM: tl.constexpr, BK: tl.constexpr):
    # A head a column of programs: queries and keys turn in woven pairs, keys and values go to the slots of a cache.
    head = tl.program_id(1)
    m, d, k = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, D), tl.arange(0, BK)
    ok = (m < T)[:, None]
    xs = x_ptr + m[:, None] * K + k[None, :]
    ws = w_ptr + (head * D + d)[None, :] * K + k[:, None]
    acc = tl.zeros((BM, D), tl.float32)
    for _ in range(0, K, BK):
        acc = tl.dot(tl.load(xs, mask=ok, other=0.0), tl.load(ws), acc)
        xs += BK
        ws += BK
    acc += tl.load(b_ptr + head * D + d)[None, :]
    if head < HQ + HK:
        angle = tl.load(angle_ptr + m[:, None] * (D // 2) + tl.arange(0, D // 2)[None, :], mask=ok, other=0.0)
        even, odd = tl.split(tl.reshape(acc, (BM, D // 2, 2)))
        c, s = tl.cos(angle), tl.sin(angle)
        acc = tl.reshape(tl.join(even * c - odd * s, even * s + odd * c), (BM, D))
    if head < HQ:
        tl.store(q_ptr + (m[:, None] * HQ + head) * D + d[None, :], acc.to(q_ptr.dtype.element_ty), mask=ok)
    else:
        slot = tl.load(slot_ptr + m, mask=m < T, other=-1)
        at = (slot.to(tl.int64) * (2 * HK) + head - HQ)[:, None] * D
        tl.store(cache_ptr + at + d[None, :], acc.to(cache_ptr.dtype.element_ty), mask=(slot >= 0)[:, None])


@case
def foundry_of_heads_turned_and_put_to_slots_128x128(t=1000, k=1024, hq=12, hk=3):
    d, slots = 128, 1300
    x, w, b = rand(t, k, dtype="bfloat16"), rand((hq + 2 * hk) * d, k, dtype="bfloat16") / 32, f32((hq + 2 * hk) * d)
    angle, slot = uniform(t, d // 2) * 6.28, torch.randperm(slots)[:t].to(torch.int32).cuda()
    q, cache = zeros(t, hq, d, dtype="bfloat16"), zeros(slots, 2 * hk, d, dtype="bfloat16")
    args = x, w, b, angle, slot, q, cache, t, k, hq, hk
    launched = run(heads_to_slots, (cdiv(t, 128), hq + 2 * hk), args, (q, cache), D=d, BM=128, BK=64, num_warps=8, num_stages=3)

    def reference():
        z = (x.float() @ w.float().t() + b).reshape(t, -1, d)
        c, s = angle.cos()[:, None], angle.sin()[:, None]
        even, odd = z[:, : hq + hk, 0::2], z[:, : hq + hk, 1::2]
        turned = torch.stack([even * c - odd * s, even * s + odd * c], 3).flatten(2)
        out = zeros(slots, 2 * hk, d, dtype="float32")
        out[slot.long()] = torch.cat([turned[:, hq:], z[:, hq + hk :]], 1)
        return turned[:, :hq], out

    return against(launched, reference)


@triton.jit
def bytes_and_a_thin_pair(x_ptr, w_ptr, s_ptr, a_ptr, b_ptr, which_ptr, y_ptr, M, N, K, R: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Weights of bytes, and an adapter a tile of rows: its first half is multiplied in the same loop, its second one behind it.
    m, n, k, r = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN), tl.arange(0, BK), tl.arange(0, R)
    which = tl.load(which_ptr + tl.program_id(0))
    a_at = a_ptr + which * K * R + r[None, :]
    acc = tl.zeros((BM, BN), tl.float32)
    thin = tl.zeros((BM, R), tl.float32)
    for k0 in range(0, K, BK):
        x = tl.load(x_ptr + m[:, None] * K + (k0 + k)[None, :])
        w = tl.load(w_ptr + (k0 + k)[:, None] * N + n[None, :])
        thin = tl.dot(x, tl.load(a_at + (k0 + k)[:, None] * R), thin)
        acc = tl.dot(x, w.to(x.dtype), acc)
    acc *= tl.load(s_ptr + n)[None, :]
    b = tl.load(b_ptr + which * R * N + r[:, None] * N + n[None, :])
    acc = tl.dot(thin.to(b.dtype), b, acc)
    tl.store(y_ptr + m[:, None] * N + n[None, :], acc.to(y_ptr.dtype.element_ty))


@case
def foundry_of_bytes_and_an_adapter_a_tile_64x256(m=1024, n=2048, k=1024, adapters=5):
    r = 32
    x, w, s = rand(m, k, dtype="bfloat16"), ints(-127, 128, k, n, dtype="int8"), uniform(n) / 2000
    a, b = rand(adapters, k, r, dtype="bfloat16") / 32, rand(adapters, r, n, dtype="bfloat16") / 8
    which, y = ints(0, adapters, m // 64), zeros(m, n, dtype="bfloat16")
    launched = run(bytes_and_a_thin_pair, (m // 64, n // 256), (x, w, s, a, b, which, y, m, n, k), y, R=r, BM=64, BN=256, BK=64, num_warps=8, num_stages=3)

    def reference():
        thin = torch.cat([x[i * 64 : i * 64 + 64].float() @ a[which[i]].float() for i in range(m // 64)])
        more = torch.cat([thin[i * 64 : i * 64 + 64] @ b[which[i]].float() for i in range(m // 64)])
        return x.float() @ (w.float() * s) + more

    return against(launched, reference)


@triton.jit
def expert_gradients(x_ptr, dy_ptr, start_ptr, row_ptr, share_ptr, dw_ptr, N, K, BN: tl.constexpr, BK: tl.constexpr, BT: tl.constexpr):
    # The long axis of an expert's gradient is as many gathered tokens as it had, a share each; both operands stand on it.
    expert = tl.program_id(2)
    n, k, t = tl.program_id(0) * BN + tl.arange(0, BN), tl.program_id(1) * BK + tl.arange(0, BK), tl.arange(0, BT)
    begin, end = tl.load(start_ptr + expert), tl.load(start_ptr + expert + 1)
    acc = tl.zeros((BN, BK), tl.float32)
    for at in range(begin, end, BT):
        ok = at + t < end
        row = tl.load(row_ptr + at + t, mask=ok, other=0)
        share = tl.load(share_ptr + at + t, mask=ok, other=0.0)
        dy = tl.load(dy_ptr + (at + t)[:, None] * N + n[None, :], mask=ok[:, None], other=0.0)
        x = tl.load(x_ptr + row[:, None] * K + k[None, :], mask=ok[:, None], other=0.0)
        acc = tl.dot((dy * share[:, None]).to(x.dtype).T, x, acc)
    tl.store(dw_ptr + (expert * N + n)[:, None] * K + k[None, :], acc.to(dw_ptr.dtype.element_ty))


@case
def foundry_of_gradients_of_ragged_experts_256x64x32(tokens=2000, e=10, n=512, k=512, top=3):
    x, dy = rand(tokens, k, dtype="bfloat16"), rand(tokens * top, n, dtype="bfloat16")
    share, row = uniform(tokens * top), ints(0, tokens, tokens * top)
    counts = torch.randint(0, e, (tokens * top,)).bincount(minlength=e)
    start = F.pad(counts.cumsum(0), (1, 0)).to(torch.int32).cuda()
    dw = zeros(e, n, k, dtype="bfloat16")
    launched = run(expert_gradients, (n // 256, k // 64, e), (x, dy, start, row, share, dw, n, k), dw, BN=256, BK=64, BT=32, num_warps=8, num_stages=4)

    def reference():
        at = [0, *counts.cumsum(0).tolist()]
        spans = [slice(at[i], at[i + 1]) for i in range(e)]
        return torch.stack([(dy[s].float() * share[s, None]).t() @ x[row[s].long()].float() for s in spans])

    return against(launched, reference)
