"""Loops around dots: loads that feed them next to others that do not, sums that move on, lists, bits and flags that steer, one to sixteen warps."""

import torch
import torch.nn.functional as F
import triton
import triton.language as tl

from .common import PROGRAMS, against, arange, case, cdiv, cleared, f32, ints, rand, run, uniform, zeros


@triton.jit
def product_fetched_ahead(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Pipelined by the author: the next tiles are loaded before this step's dot and handed on.
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    rows, cols = (m < M)[:, None], (n < N)[None, :]
    a_at = a_ptr + m[:, None] * K + k[None, :]
    b_at = b_ptr + k[:, None] * N + n[None, :]
    a = tl.load(a_at, mask=rows & (k < K)[None, :], other=0.0)
    b = tl.load(b_at, mask=cols & (k < K)[:, None], other=0.0)
    acc = tl.zeros((BM, BN), tl.float32)
    for k0 in range(BK, K, BK):
        a_at += BK
        b_at += BK * N
        a_next = tl.load(a_at, mask=rows & (k < K - k0)[None, :], other=0.0)
        b_next = tl.load(b_at, mask=cols & (k < K - k0)[:, None], other=0.0)
        acc = tl.dot(a, b, acc)
        a, b = a_next, b_next
    acc = tl.dot(a, b, acc)
    tl.store(c_ptr + m[:, None] * N + n[None, :], acc.to(c_ptr.dtype.element_ty), mask=rows & cols)


@case
def product_whose_author_fetches_ahead():
    m, n, k = 1000, 1304, 776
    a, b, c = rand(m, k, dtype="bfloat16"), rand(k, n, dtype="bfloat16"), zeros(m, n, dtype="bfloat16")
    launched = run(product_fetched_ahead, (cdiv(m, 128), cdiv(n, 64)), (a, b, c, m, n, k), c, BM=128, BN=64, BK=32)
    return against(launched, lambda: a.float() @ b.float())


@triton.jit
def taps_in_moving_sums(x_ptr, w_ptr, y_ptr, B, T, C: tl.constexpr, O: tl.constexpr, BM: tl.constexpr):
    # Three taps in time: each frame is loaded once, goes to three sums, and the oldest of them is done and leaves.
    b, c, o = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, C), tl.arange(0, O)
    w0 = tl.load(w_ptr + c[:, None] * O + o[None, :])
    w1 = tl.load(w_ptr + C * O + c[:, None] * O + o[None, :])
    w2 = tl.load(w_ptr + 2 * C * O + c[:, None] * O + o[None, :])
    older = tl.zeros((BM, O), tl.float32)
    newer = tl.zeros((BM, O), tl.float32)
    for t in range(T):
        x = tl.load(x_ptr + (b * T + t)[:, None] * C + c[None, :], mask=(b < B)[:, None], other=0.0)
        done = tl.dot(x, w2, older)
        tl.store(y_ptr + (b * T + t)[:, None] * O + o[None, :], done.to(y_ptr.dtype.element_ty), mask=(b < B)[:, None])
        older = tl.dot(x, w1, newer)
        newer = tl.dot(x, w0)


@case
def three_taps_in_time_with_sums_that_move_on():
    b, t, c, o = 4200, 24, 64, 64
    x, w, y = rand(b, t, c), rand(3, c, o) / 14, zeros(b, t, o)
    launched = run(taps_in_moving_sums, (cdiv(b, 32),), (x, w, y, b, t), y, C=c, O=o, BM=32, num_warps=4)
    return against(launched, lambda: F.conv1d(F.pad(x.float().mT, (2, 0)), w.float().permute(2, 1, 0)).mT)


@triton.jit
def margins_of_classes(x_ptr, w_ptr, label_ptr, out_ptr, M, N, K: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    # The label's score less the best other one, while scores stream by; the two best are kept, never the scores.
    m, k = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, K)
    x = tl.load(x_ptr + m[:, None] * K + k[None, :], mask=(m < M)[:, None], other=0.0)
    label = tl.load(label_ptr + m, mask=m < M, other=-1)
    own = tl.zeros((BM,), tl.float32)
    best = tl.full((BM,), float("-inf"), tl.float32)
    for n0 in range(0, N, BN):
        n = n0 + tl.arange(0, BN)
        w = tl.load(w_ptr + n[None, :] * K + k[:, None], mask=(n < N)[None, :], other=0.0)
        s = tl.dot(x, w)
        mine = n[None, :] == label[:, None]
        own += tl.sum(tl.where(mine, s, 0.0), axis=1)
        best = tl.maximum(best, tl.max(tl.where(mine | (n >= N)[None, :], float("-inf"), s), axis=1))
    tl.store(out_ptr + m, own - best, mask=m < M)


@case
def margins_between_a_label_and_the_best_other_class():
    m, n, k = 8000, 1777, 128
    x, w, label, out = rand(m, k), rand(n, k) / 11, ints(0, n, m, dtype="int64"), zeros(m, dtype="float32")
    launched = run(margins_of_classes, (cdiv(m, 64),), (x, w, label, out, m, n), out, K=k, BM=64, BN=64, num_stages=4)

    def reference():
        s = x.float() @ w.float().t()
        own = s.gather(1, label[:, None])[:, 0]
        return own - s.scatter(1, label[:, None], float("-inf")).amax(1)

    return against(launched, reference)


@triton.jit
def bytes_scaled_now_and_then(x_ptr, w_ptr, s_ptr, y_ptr, M, N, K, G: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Bytes' scales change every fourth step: a branch loads them, and a sum that was not scaled joins the other one then.
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    total = tl.zeros((BM, BN), tl.float32)
    part = tl.zeros((BM, BN), tl.float32)
    for k0 in range(0, K, BK):
        x = tl.load(x_ptr + m[:, None] * K + k0 + k[None, :], mask=(m < M)[:, None], other=0.0)
        w = tl.load(w_ptr + (k0 + k)[:, None] * N + n[None, :]).to(x.dtype)
        part = tl.dot(x, w, part)
        if (k0 + BK) % G == 0:
            s = tl.load(s_ptr + (k0 // G) * N + n)
            total += part * s.to(tl.float32)[None, :]
            part = tl.zeros((BM, BN), tl.float32)
    tl.store(y_ptr + m[:, None] * N + n[None, :], total.to(y_ptr.dtype.element_ty), mask=(m < M)[:, None])


@case
def bytes_whose_scales_a_branch_loads_now_and_then():
    m, n, k, g = 250, 4096, 1024, 128
    x, w, s, y = rand(m, k), ints(-127, 128, k, n, dtype="int8"), (uniform(k // g, n) / 1000).half(), zeros(m, n)
    launched = run(bytes_scaled_now_and_then, (cdiv(m, 64), n // 128), (x, w, s, y, m, n, k), y, G=g, BM=64, BN=128, BK=32, num_stages=4)
    return against(launched, lambda: x.float() @ (w.float() * s.float().repeat_interleave(g, 0)))


@triton.jit
def skyline_rows(a_ptr, first_ptr, offset_ptr, x_ptr, y_ptr, N, C, S: tl.constexpr, BC: tl.constexpr):
    # A lower matrix of which each block row begins somewhere of its own; its blocks lie one after another.
    row = tl.program_id(0)
    c = tl.program_id(1) * BC + tl.arange(0, BC)
    i, j = tl.arange(0, S)[:, None], tl.arange(0, S)[None, :]
    first = tl.load(first_ptr + row)
    block = a_ptr + tl.load(offset_ptr + row) * S * S + i * S + j
    acc = tl.zeros((S, BC), tl.float32)
    for col in range(first, row):
        x = tl.load(x_ptr + (col * S + tl.arange(0, S))[:, None] * C + c[None, :], mask=(c < C)[None, :], other=0.0)
        acc = tl.dot(tl.load(block), x, acc)
        block += S * S
    last = tl.load(block)
    x = tl.load(x_ptr + (row * S + tl.arange(0, S))[:, None] * C + c[None, :], mask=(c < C)[None, :], other=0.0)
    acc = tl.dot(tl.where(i >= j, last, 0.0), x, acc)
    tl.store(y_ptr + (row * S + tl.arange(0, S))[:, None] * C + c[None, :], acc.to(y_ptr.dtype.element_ty), mask=(c < C)[None, :])


@case
def skyline_of_blocks_of_32_times_many_columns():
    blocks, s, c = 120, 32, 300
    row = arange(blocks)
    first = torch.minimum((uniform(blocks) * (row + 1)).to(torch.int32), row)
    lengths = row - first + 1
    offset = lengths.cumsum(0) - lengths
    a, x, y = rand(blocks * (blocks + 1) // 2, s, s), rand(blocks * s, c), zeros(blocks * s, c)
    launched = run(skyline_rows, (blocks, cdiv(c, 64)), (a, first, offset, x, y, blocks, c), y, S=s, BC=64, num_warps=2, num_stages=4)

    def reference():
        of_row = row.long().repeat_interleave(lengths)
        col = torch.arange(len(of_row), device=a.device) + (first - offset)[of_row]
        dense = torch.zeros(blocks, blocks, s, s, device=a.device)
        dense[of_row, col] = a[: len(of_row)].float()
        return dense.transpose(1, 2).reshape(blocks * s, blocks * s).tril() @ x.float()

    return against(launched, reference)


@triton.jit
def layer_with_moments(x_ptr, w_ptr, y_ptr, sum_ptr, square_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # A layer whose norm over the batch comes next: each tile's column sums and squares are added by atomics as it is stored.
    m = tl.program_id(1) * BM + tl.arange(0, BM)
    n = tl.program_id(0) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for k0 in range(0, K, BK):
        k = k0 + tl.arange(0, BK)
        x = tl.load(x_ptr + m[:, None] * K + k[None, :], mask=(m < M)[:, None], other=0.0)
        w = tl.load(w_ptr + k[:, None] * N + n[None, :], mask=(n < N)[None, :], other=0.0)
        acc = tl.dot(x, w, acc)
    y = acc.to(y_ptr.dtype.element_ty)
    tl.store(y_ptr + m[:, None] * N + n[None, :], y, mask=(m < M)[:, None] & (n < N)[None, :])
    y = y.to(tl.float32)
    tl.atomic_add(sum_ptr + n, tl.sum(y, axis=0), mask=n < N, sem="relaxed")
    tl.atomic_add(square_ptr + n, tl.sum(y * y, axis=0), mask=n < N, sem="relaxed")


@case
def layer_that_adds_moments_of_its_columns_by_atomics():
    m, n, k = 9000, 200, 256
    x, w, y = rand(m, k) + 1, (rand(k, n) + 0.3) / 16, zeros(m, n)
    total, squares = zeros(n, dtype="float32"), zeros(n, dtype="float32")
    launched = run(layer_with_moments, (cdiv(n, 128), cdiv(m, 128)), (x, w, y, total, squares, m, n, k), (y, total, squares), BM=128, BN=128, BK=64, num_warps=8)

    def reference():
        z = x.float() @ w.float()
        return z, z.sum(0), z.square().sum(0)

    return against(cleared(launched, total, squares), reference)


@triton.jit
def product_in_morton_order(a_ptr, b_ptr, c_ptr, M, N, K, tiles, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Programs stay and take tiles along a curve: the bits of a tile's number are dealt to its row and its column in a loop.
    for tile in range(tl.program_id(0), tiles, tl.num_programs(0)):
        left, row, col, bit = tile, 0, 0, 1
        while left > 0:
            col += (left & 1) * bit
            row += ((left >> 1) & 1) * bit
            left = left >> 2
            bit = bit * 2
        m, n = row * BM + tl.arange(0, BM), col * BN + tl.arange(0, BN)
        if (row * BM < M) & (col * BN < N):
            acc = tl.zeros((BM, BN), tl.float32)
            for k0 in range(0, K, BK):
                k = k0 + tl.arange(0, BK)
                a = tl.load(a_ptr + m[:, None] * K + k[None, :], mask=(m < M)[:, None], other=0.0)
                b = tl.load(b_ptr + n[None, :] * K + k[:, None], mask=(n < N)[None, :], other=0.0)
                acc = tl.dot(a, b, acc)
            tl.store(c_ptr + m[:, None] * N + n[None, :], acc.to(c_ptr.dtype.element_ty), mask=(m < M)[:, None] & (n < N)[None, :])


@case
def product_of_programs_that_stay_along_a_curve_16_warps():
    m, n, k = 1800, 1900, 1024
    a, b, c = rand(m, k), rand(n, k), zeros(m, n)
    launched = run(product_in_morton_order, (PROGRAMS,), (a, b, c, m, n, k, 256), c, BM=128, BN=128, BK=64, num_warps=16, num_stages=3)
    return against(launched, lambda: a.float() @ b.float().t())


@triton.jit
def dropped_operand(x_ptr, bits_ptr, w_ptr, y_ptr, M, N, K, scale, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Inputs are dropped where bits of a word a row and step are off, between their load and the dot.
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for step in range(0, tl.cdiv(K, BK)):
        x = tl.load(x_ptr + m[:, None] * K + step * BK + k[None, :], mask=(m < M)[:, None], other=0.0)
        word = tl.load(bits_ptr + m * (K // 32) + step, mask=m < M, other=0)
        x = tl.where((word[:, None] >> k[None, :]) & 1 != 0, x, 0.0)
        w = tl.load(w_ptr + n[None, :] * K + (step * BK + k)[:, None])
        acc = tl.dot(x, w, acc)
    tl.store(y_ptr + m[:, None] * N + n[None, :], (acc * scale).to(y_ptr.dtype.element_ty), mask=(m < M)[:, None])


@case
def inputs_dropped_by_words_of_bits_two_warps_five_stages():
    m, n, k = 2000, 512, 768
    x, bits, w, y = rand(m, k, dtype="bfloat16"), ints(-(2**31), 2**31 - 1, m, k // 32), rand(n, k, dtype="bfloat16") / 28, zeros(m, n, dtype="bfloat16")
    launched = run(dropped_operand, (cdiv(m, 32), n // 64), (x, bits, w, y, m, n, k, 2.0), y, BM=32, BN=64, BK=32, num_warps=2, num_stages=5)
    return against(launched, lambda: 2 * (x.float() * ((bits[:, :, None] >> arange(32)) & 1).reshape(m, k)) @ w.float().t())


@triton.jit
def chosen_inputs(x_ptr, chosen_ptr, w_ptr, y_ptr, M, N, K, KX, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Columns of x by a list, rows of the weights in order: the loop loads places and what lies there.
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for k0 in range(0, K, BK):
        k = k0 + tl.arange(0, BK)
        place = tl.load(chosen_ptr + k, mask=k < K, other=0)
        x = tl.load(x_ptr + m.to(tl.int64)[:, None] * KX + place[None, :], mask=(m < M)[:, None] & (k < K)[None, :], other=0.0)
        w = tl.load(w_ptr + k[:, None] * N + n[None, :], mask=(k < K)[:, None] & (n < N)[None, :], other=0.0)
        acc = tl.dot(x, w, acc)
    tl.store(y_ptr + m[:, None] * N + n[None, :], acc.to(y_ptr.dtype.element_ty), mask=(m < M)[:, None] & (n < N)[None, :])


@case
def chosen_columns_times_weights_by_one_warp():
    m, n, k, kx = 1500, 240, 200, 1100
    x, w, y = rand(m, kx), rand(k, n) / 14, zeros(m, n)
    chosen = torch.randperm(kx, device="cuda")[:k].to(torch.int32)
    launched = run(chosen_inputs, (cdiv(m, 16), cdiv(n, 32)), (x, chosen, w, y, m, n, k, kx), y, BM=16, BN=32, BK=16, num_warps=1, num_stages=3)
    return against(launched, lambda: x[:, chosen.long()].float() @ w.float())


@triton.jit
def blocks_of_set_bits(a_ptr, words_ptr, x_ptr, y_ptr, WORDS, K, C, S: tl.constexpr, BC: tl.constexpr):
    # Which blocks of a row are not zero is told by words of bits: a loop over words, and in it one while any bit is left.
    row = tl.program_id(0)
    c = tl.program_id(1) * BC + tl.arange(0, BC)
    i, j = tl.arange(0, S), tl.arange(0, S)
    acc = tl.zeros((S, BC), tl.float32)
    for w in range(WORDS):
        word = tl.load(words_ptr + row * WORDS + w)
        while word != 0:
            low = word & -word
            col = w * 32 + tl.sum(tl.where((low >> tl.arange(0, 32)) & 1 != 0, tl.arange(0, 32), 0), axis=0)
            a = tl.load(a_ptr + (row * S + i)[:, None] * K + (col * S + j)[None, :])
            x = tl.load(x_ptr + (col * S + j)[:, None] * C + c[None, :], mask=(c < C)[None, :], other=0.0)
            acc = tl.dot(a, x, acc)
            word = word & (word - 1)
    tl.store(y_ptr + (row * S + i)[:, None] * C + c[None, :], acc.to(y_ptr.dtype.element_ty), mask=(c < C)[None, :])


@case
def blocks_of_rows_by_the_bits_of_words():
    rows, words, s, c = 64, 2, 32, 500
    k = words * 32 * s
    bits = ints(0, 4, rows, words, 32) == 0
    word = (bits.long() << arange(32, dtype="int64")).sum(2)
    word = torch.where(word >= 2**31, word - 2**32, word).to(torch.int32)
    a, x, y = rand(rows * s, k), rand(k, c), zeros(rows * s, c)
    launched = run(blocks_of_set_bits, (rows, cdiv(c, 64)), (a, word, x, y, words, k, c), y, S=s, BC=64)
    kept = lambda: bits.reshape(rows, words * 32).repeat_interleave(s, 0).repeat_interleave(s, 1)  # noqa: E731
    return against(launched, lambda: (a.float() * kept()) @ x.float())


@triton.jit
def heads_gated_and_summed(x_ptr, w_ptr, gate_ptr, y_ptr, M, H, K: tl.constexpr, N: tl.constexpr, BM: tl.constexpr, BK: tl.constexpr):
    # Sum over heads of a gate of the row times x_h W_h: a head's product is finished, gated, and added, all in a loop over heads.
    m, n = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, N)
    total = tl.zeros((BM, N), tl.float32)
    for h in range(H):
        part = tl.zeros((BM, N), tl.float32)
        for k0 in tl.static_range(0, K, BK):
            k = k0 + tl.arange(0, BK)
            x = tl.load(x_ptr + (m[:, None] * H + h) * K + k[None, :], mask=(m < M)[:, None], other=0.0)
            part = tl.dot(x, tl.load(w_ptr + (h * K + k)[:, None] * N + n[None, :]), part)
        gate = tl.load(gate_ptr + h * M + m, mask=m < M, other=0.0).to(tl.float32)
        total += tl.sigmoid(gate)[:, None] * tl.maximum(part, 0.0)
    tl.store(y_ptr + m[:, None] * N + n[None, :], total.to(y_ptr.dtype.element_ty), mask=(m < M)[:, None])


@case
def products_of_heads_gated_by_rows_and_summed():
    m, h, k, n = 3000, 12, 64, 128
    x, w, gate, y = rand(m, h, k), rand(h, k, n) / 8, rand(h, m), zeros(m, n)
    launched = run(heads_gated_and_summed, (cdiv(m, 32),), (x, w, gate, y, m, h), y, K=k, N=n, BM=32, BK=32)
    return against(launched, lambda: (gate.float().sigmoid()[..., None] * torch.einsum("mhk,hkn->hmn", x.float(), w.float()).relu()).sum(0))


@triton.jit
def states_by_given_matrices(a_ptr, u_ptr, out_ptr, B, T, S: tl.constexpr, BB: tl.constexpr):
    # h = tanh(A_t h + u_t) with a matrix at every step and a few sequences a program: a product by a sum, and its result turned.
    b = tl.program_id(0) * BB + tl.arange(0, BB)
    i, j = tl.arange(0, S), tl.arange(0, S)
    at = b[:, None, None] * T * S * S + i[None, :, None] * S + j[None, None, :]
    h = tl.zeros((BB, S), tl.float32)
    for t in range(T):
        a = tl.load(a_ptr + at, mask=(b < B)[:, None, None], other=0.0).to(tl.float32)
        u = tl.load(u_ptr + (b[:, None] * T + t) * S + i[None, :], mask=(b < B)[:, None], other=0.0)
        z = tl.sum(a * h[:, None, :], axis=2) + u
        h = 1.0 - 2.0 / (tl.exp(2.0 * z) + 1.0)
        tl.store(out_ptr + (b[:, None] * T + t) * S + i[None, :], h, mask=(b < B)[:, None])
        at += S * S


@case
def states_by_matrices_that_come_at_each_step():
    b, t, s = 1050, 64, 16
    a, u, out = rand(b, t, s, s) / 8, f32(b, t, s), zeros(b, t, s, dtype="float32")
    launched = run(states_by_given_matrices, (cdiv(b, 4),), (a, u, out, b, t), out, S=s, BB=4, num_warps=2, num_stages=4)

    def reference():
        h, all_of = torch.zeros_like(u[:, 0]), []
        for i in range(t):
            h = ((a[:, i].float() @ h[..., None])[..., 0] + u[:, i]).tanh()
            all_of.append(h)
        return torch.stack(all_of, 1)

    return against(launched, reference)


@triton.jit
def batches_of_lengths(x_ptr, w_ptr, length_ptr, y_ptr, B, T, K, N, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Boxes of three axes of padded sequences; tiles past a sequence's length are zeros and load nothing.
    b = tl.program_id(2)
    m0, n0 = tl.program_id(1) * BM, tl.program_id(0) * BN
    length = tl.load(length_ptr + b)
    x = tl.make_tensor_descriptor(x_ptr, [B, T, K], [T * K, K, 1], [1, BM, BK])
    w = tl.make_tensor_descriptor(w_ptr, [K, N], [N, 1], [BK, BN])
    y = tl.make_tensor_descriptor(y_ptr, [B, T, N], [T * N, N, 1], [1, BM, BN])
    acc = tl.zeros((BM, BN), tl.float32)
    if m0 < length:
        for k0 in range(0, K, BK):
            acc = tl.dot(tl.reshape(x.load([b, m0, k0]), (BM, BK)), w.load([k0, n0]), acc)
        acc = tl.where((m0 + tl.arange(0, BM) < length)[:, None], acc, 0.0)
    y.store([b, m0, n0], tl.reshape(acc.to(y_ptr.dtype.element_ty), (1, BM, BN)))


@case
def sequences_of_lengths_through_boxes_of_three_axes():
    b, t, k, n = 24, 500, 512, 384
    x, w, y, length = rand(b, t, k), rand(k, n) / 22, zeros(b, t, n), ints(1, t + 1, b)
    grid = n // 128, cdiv(t, 128), b
    launch, args = run(batches_of_lengths, grid, (x, w, length, y, b, t, k, n), y, BM=128, BN=128, BK=64, num_warps=8, num_stages=3)

    def told(*args):
        triton.set_allocator(lambda size, align, stream: torch.empty(size, device="cuda", dtype=torch.int8))
        return launch(*args)

    return against((told, args), lambda: (x.float() @ w.float()) * (arange(t) < length[:, None])[..., None])


@triton.jit
def listed_pages(x_ptr, next_ptr, head_ptr, q_ptr, out_ptr, D: tl.constexpr, P: tl.constexpr, Q: tl.constexpr):
    # Pages in a linked list: the next page's number is loaded while this one's products with the queries are added by powers.
    seq = tl.program_id(0)
    q, p, d = tl.arange(0, Q), tl.arange(0, P), tl.arange(0, D)
    queries = tl.load(q_ptr + (seq * Q + q)[:, None] * D + d[None, :])
    acc = tl.zeros((Q, D), tl.float32)
    total = tl.zeros((Q,), tl.float32)
    page = tl.load(head_ptr + seq)
    while page >= 0:
        x = tl.load(x_ptr + page.to(tl.int64) * P * D + p[:, None] * D + d[None, :])
        page = tl.load(next_ptr + page)
        s = tl.dot(queries, x.T)
        s = tl.exp2(tl.minimum(s, 8.0))
        total += tl.sum(s, axis=1)
        acc = tl.dot(s.to(x.dtype), x, acc)
    tl.store(out_ptr + (seq * Q + q)[:, None] * D + d[None, :], (acc / total[:, None]).to(out_ptr.dtype.element_ty))


@case
def queries_to_pages_in_linked_lists():
    seqs, each, pages, p, d = 300, 16, 6000, 64, 64
    order = torch.randperm(pages, device="cuda")
    length = pages // seqs
    chain = order.reshape(seqs, length)
    following = torch.full((pages,), -1, device="cuda", dtype=torch.int32)
    following[chain[:, :-1].reshape(-1)] = chain[:, 1:].reshape(-1).to(torch.int32)
    x, q, out = rand(pages, p, d, dtype="bfloat16"), rand(seqs, each, d, dtype="bfloat16") / 4, zeros(seqs, each, d, dtype="bfloat16")
    launched = run(listed_pages, (seqs,), (x, following, chain[:, 0].to(torch.int32), q, out), out, D=d, P=p, Q=each, num_warps=4)

    def reference():
        keys = x[chain].reshape(seqs, length * p, d).float()
        s = torch.exp2((q.float() @ keys.mT).clamp(max=8))
        return s @ keys / s.sum(2, keepdim=True)

    return against(launched, reference)


@triton.jit
def fading_products(x_ptr, y_ptr, gamma_ptr, out_ptr, T, M, N, F: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    # From the last block of frames to the first: the sum fades by that block's factor before the block's dot is added to it.
    b = tl.program_id(2)
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    f = tl.arange(0, F)
    acc = tl.zeros((BM, BN), tl.float32)
    for block in range(T // F - 1, -1, -1):
        t = block * F + f
        x = tl.load(x_ptr + (b * T + t)[:, None] * M + m[None, :])
        y = tl.load(y_ptr + (b * T + t)[:, None] * N + n[None, :])
        acc = acc * tl.load(gamma_ptr + b * (T // F) + block)
        acc = tl.dot(x.T, y, acc)
    tl.store(out_ptr + (b * M + m)[:, None] * N + n[None, :], acc)


@case
def fading_sums_of_outer_products_from_the_last_frame():
    b, t, m, n, f = 20, 1024, 256, 256, 32
    x, y, gamma, out = rand(b, t, m), rand(b, t, n), uniform(b, t // f), zeros(b, m, n, dtype="float32")
    launched = run(fading_products, (m // 128, n // 128, b), (x, y, gamma, out, t, m, n), out, F=f, BM=128, BN=128, num_warps=8, num_stages=4)

    def reference():
        faded = torch.cat([torch.ones_like(gamma[:, :1]), gamma[:, :-1].cumprod(1)], 1).repeat_interleave(f, 1)
        return (x.float() * faded[..., None]).mT @ y.float()

    return against(launched, reference)


@triton.jit
def nibbles_with_minima(a_ptr, sa_ptr, w_ptr, sw_ptr, mw_ptr, y_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr):
    # Groups of 64: bytes by nibbles in two dots, then the group's scales, and its least weight times the sum of the bytes.
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, 32)
    groups = K // 64
    acc = tl.zeros((BM, BN), tl.float32)
    for g in range(groups):
        first = tl.load(a_ptr + m[:, None] * K + g * 64 + k[None, :], mask=(m < M)[:, None], other=0)
        second = tl.load(a_ptr + m[:, None] * K + g * 64 + 32 + k[None, :], mask=(m < M)[:, None], other=0)
        w = tl.load(w_ptr + n[None, :] * (K // 2) + (g * 32 + k)[:, None])
        exact = tl.dot(first, (w & 15).to(tl.int8), out_dtype=tl.int32)
        exact = tl.dot(second, (w >> 4).to(tl.int8), exact, out_dtype=tl.int32)
        sums = tl.sum(first.to(tl.int32), axis=1) + tl.sum(second.to(tl.int32), axis=1)
        sa = tl.load(sa_ptr + m * groups + g, mask=m < M, other=0.0).to(tl.float32)
        sw = tl.load(sw_ptr + n * groups + g).to(tl.float32)
        mw = tl.load(mw_ptr + n * groups + g).to(tl.float32)
        acc += sa[:, None] * (exact.to(tl.float32) * sw[None, :] + sums.to(tl.float32)[:, None] * mw[None, :])
    tl.store(y_ptr + m[:, None] * N + n[None, :], acc.to(y_ptr.dtype.element_ty), mask=(m < M)[:, None])


@case
def nibbles_in_halves_of_groups_with_their_minima():
    m, n, k = 120, 2048, 2048
    a, w, y = ints(-127, 128, m, k, dtype="int8"), ints(0, 256, n, k // 2, dtype="uint8"), zeros(m, n, dtype="float16")
    sa, sw, mw = ((uniform(rows, k // 64) / 50).half() for rows in (m, n, n))
    launched = run(nibbles_with_minima, (cdiv(m, 32), n // 64), (a, sa, w, sw, mw, y, m, n, k), y, BM=32, BN=64, num_warps=4, num_stages=3)

    def reference():
        halves = torch.stack([w & 15, w >> 4], 1).reshape(n, 2, k // 64, 32).transpose(1, 2).reshape(n, k)
        wide = halves.float() * sw.float().repeat_interleave(64, 1) + mw.float().repeat_interleave(64, 1)
        return (a.float() * sa.float().repeat_interleave(64, 1)) @ wide.t()

    return against(launched, reference)


@triton.jit
def best_shift_of_rows(x_ptr, t_ptr, best_ptr, M, N, L: tl.constexpr, S: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    # Rows against templates at S shifts: operands of the dots are the same row read one place further each time.
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, L)
    t = tl.load(t_ptr + n[None, :] * L + k[:, None], mask=(n < N)[None, :], other=0.0)
    best = tl.full((BM, BN), -1e9, tl.float32)
    for s in range(S):
        x = tl.load(x_ptr + m[:, None] * (L + S) + s + k[None, :], mask=(m < M)[:, None], other=0.0)
        best = tl.maximum(best, tl.dot(x, t))
    tl.store(best_ptr + m[:, None] * N + n[None, :], best.to(best_ptr.dtype.element_ty), mask=(m < M)[:, None] & (n < N)[None, :])


@case
def best_of_eleven_shifts_of_rows_against_templates():
    m, n, length, s = 5000, 150, 128, 11
    x, t, best = rand(m, length + s), rand(n, length), zeros(m, n)
    launched = run(best_shift_of_rows, (cdiv(m, 64), cdiv(n, 64)), (x, t, best, m, n), best, L=length, S=s, BM=64, BN=64, num_stages=2)
    return against(launched, lambda: torch.stack([x[:, i : i + length].float() @ t.float().t() for i in range(s)]).amax(0))


@triton.jit
def product_around_a_diagonal(a_ptr, d_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # A' diag(d) B' of floats in three parts of TF32: the diagonal is loaded in the loop and goes to the operand that is turned.
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for k0 in tl.range(0, K, BK, num_stages=4, loop_unroll_factor=2):
        k = k0 + tl.arange(0, BK)
        a = tl.load(a_ptr + k[:, None] * M + m[None, :], mask=(k < K)[:, None] & (m < M)[None, :], other=0.0)
        d = tl.load(d_ptr + k, mask=k < K, other=0.0)
        b = tl.load(b_ptr + n[:, None] * K + k[None, :], mask=(k < K)[None, :] & (n < N)[:, None], other=0.0)
        acc = tl.dot((a * d[:, None]).T, b.T, acc, input_precision="tf32x3")
    tl.store(c_ptr + m[:, None] * N + n[None, :], acc, mask=(m < M)[:, None] & (n < N)[None, :])


@case
def floats_around_a_diagonal_in_unrolled_pairs_of_steps():
    m, n, k = 700, 900, 513
    a, d, b, c = f32(k, m), f32(k), f32(n, k), zeros(m, n, dtype="float32")
    launched = run(product_around_a_diagonal, (cdiv(m, 64), cdiv(n, 32)), (a, d, b, c, m, n, k), c, BM=64, BN=32, BK=32, num_warps=2)
    return against(launched, lambda: (a.double() * d[:, None]).t() @ b.double().t())
