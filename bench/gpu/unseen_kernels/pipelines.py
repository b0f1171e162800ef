"""Loops that are hard to pipeline: loads of many strides, addresses behind loads, dots of several sizes, loops in loops, early ends."""

import torch
import triton
import triton.language as tl

from .common import PROGRAMS, arange, case, cdiv, f32, full, ints, rand, run, uniform, zeros


@triton.jit
def two_products_four_layouts(A, B, P, Q, C, M, N, K, sam, sak, sbk, sbn, spm, spk, sqk, sqn, alpha, BM: tl.constexpr, BN: tl.constexpr,
                              BK: tl.constexpr):
    # C = A B + alpha P Q: four operands, each with its own fast axis.
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    a, p = A + m[:, None] * sam + k[None, :] * sak, P + m[:, None] * spm + k[None, :] * spk
    b, q = B + k[:, None] * sbk + n[None, :] * sbn, Q + k[:, None] * sqk + n[None, :] * sqn
    one = tl.zeros((BM, BN), tl.float32)
    two = tl.zeros((BM, BN), tl.float32)
    for left in range(K, 0, -BK):
        inside = k < left
        one = tl.dot(tl.load(a, mask=inside[None, :], other=0.0), tl.load(b, mask=inside[:, None], other=0.0), one)
        two = tl.dot(tl.load(p, mask=inside[None, :], other=0.0), tl.load(q, mask=inside[:, None], other=0.0), two)
        a += BK * sak
        b += BK * sbk
        p += BK * spk
        q += BK * sqk
    y = one + alpha * two
    tl.store(C + m[:, None] * N + n[None, :], y.to(C.dtype.element_ty), mask=(m < M)[:, None] & (n < N)[None, :])


@case
def two_products_of_four_layouts():
    m, n, k = 2048, 2048, 1000
    a, b, p, q, c = rand(m, k), rand(n, k).t(), rand(k, m).t(), rand(k, n), zeros(m, n)
    args = a, b, p, q, c, m, n, k, *a.stride(), *b.stride(), *p.stride(), *q.stride(), 0.5
    launch, args = run(two_products_four_layouts, (m // 128, n // 64), args, c, BM=128, BN=64, BK=32, num_warps=8, num_stages=3)
    launch.reference = lambda *_: a.float() @ b.float() + 0.5 * (p.float() @ q.float())
    return launch, args


@triton.jit
def rows_through_two_tables(X, W, PAGES, SLOTS, OUT, SPAN, T, D: tl.constexpr, BM: tl.constexpr, BK: tl.constexpr):
    # Tokens lie in pages that a table of slots names: an address takes two loads; weights are of the token's place.
    seq, col = tl.program_id(0), tl.program_id(1) * BM + tl.arange(0, BM)
    acc = tl.zeros((BM, D), tl.float32)
    d = tl.arange(0, D)
    for t0 in range(0, T, BK):
        t = t0 + tl.arange(0, BK)
        slot = tl.load(SLOTS + seq * T + t)
        page = tl.load(PAGES + (slot >> 4))
        row = page.to(tl.int64) * 16 + (slot & 15)
        x = tl.load(X + row[:, None] * D + d[None, :])
        w = tl.load(W + (seq * SPAN + col)[:, None] * T + t[None, :])
        acc = tl.dot(w, x, acc)
    tl.store(OUT + (seq * SPAN + col)[:, None] * D + d[None, :], acc.to(OUT.dtype.element_ty))


@case
def pooled_tokens_through_two_tables():
    seqs, span, t, d, pages = 32, 128, 1024, 128, 4096
    table, slots, out = torch.randperm(pages, device="cuda").to(torch.int32), ints(0, pages * 16, seqs, t), zeros(seqs, span, d)
    args = rand(pages * 16, d), rand(seqs, span, t), table, slots, out, span, t
    return run(rows_through_two_tables, (seqs, span // 64), args, out, D=d, BM=64, BK=64, num_warps=4, num_stages=4)


@triton.jit
def streamed_network(X, W1, W2, W3, Y, G, HID, D: tl.constexpr, E: tl.constexpr, BM: tl.constexpr, BH: tl.constexpr):
    # Hidden units in blocks: y += relu(x W1)^2 W2 and g += relu(x W1)^2 W3; three dots of three sizes in a step.
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    d, e = tl.arange(0, D), tl.arange(0, E)
    x = tl.load(X + m[:, None] * D + d[None, :])
    y = tl.zeros((BM, D), tl.float32)
    g = tl.zeros((BM, E), tl.float32)
    for h0 in range(0, HID, BH):
        h = h0 + tl.arange(0, BH)
        u = tl.maximum(tl.dot(x, tl.load(W1 + d[:, None] * HID + h[None, :])), 0.0)
        u = (u * u).to(x.dtype)
        y = tl.dot(u, tl.load(W2 + h[:, None] * D + d[None, :]), y)
        g = tl.dot(u, tl.load(W3 + e[None, :] * HID + h[:, None]), g)
    tl.store(Y + m[:, None] * D + d[None, :], y.to(Y.dtype.element_ty))
    tl.store(G + m[:, None] * E + e[None, :], g)


@case
def squared_relu_network_and_gates():
    m, d, hid, e = 8192, 128, 1024, 16
    y, g = zeros(m, d, dtype="bfloat16"), zeros(m, e, dtype="float32")
    x, w1, w2, w3 = (rand(*s, dtype="bfloat16") * 0.1 for s in ((m, d), (d, hid), (hid, d), (e, hid)))
    launch, args = run(streamed_network, (m // 64,), (x, w1, w2, w3, y, g, hid), (y, g), D=d, E=e, BM=64, BH=64, num_warps=4, num_stages=3)

    def reference(*_):
        u = (x.float() @ w1.float()).relu().square()
        return u @ w2.float(), u @ w3.float().t()

    launch.reference = reference
    return launch, args


@triton.jit
def inner_products_then_outer(A, B, C, OUT, TERMS, K, sa_t, sb_t, sc_t, M, N, BM: tl.constexpr, BR: tl.constexpr, BN: tl.constexpr,
                              BK: tl.constexpr):
    # A sum of terms (A_t B_t) C_t: a loop over K inside the one over terms, and a dot of another size after it.
    m, n, r = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN), tl.arange(0, BR)
    acc = tl.zeros((BM, BN), tl.float32)
    for t in range(TERMS):
        mid = tl.zeros((BM, BR), tl.float32)
        for k0 in range(0, K, BK):
            k = k0 + tl.arange(0, BK)
            a = tl.load(A + t * sa_t + m[:, None] * K + k[None, :])
            b = tl.load(B + t * sb_t + k[:, None] * BR + r[None, :])
            mid = tl.dot(a, b, mid)
        c = tl.load(C + t * sc_t + r[:, None] * N + n[None, :])
        acc = tl.dot(mid.to(c.dtype), c, acc)
    tl.store(OUT + m[:, None] * N + n[None, :], acc.to(OUT.dtype.element_ty))


@case
def sum_of_low_rank_terms():
    terms, m, n, k, r = 6, 2048, 512, 512, 32
    out, a, b, c = zeros(m, n), rand(terms, m, k), rand(terms, k, r) * 0.05, rand(terms, r, n)
    args = a, b, c, out, terms, k, m * k, k * r, r * n, m, n
    launch, args = run(inner_products_then_outer, (m // 64, n // 128), args, out, BM=64, BR=r, BN=128, BK=64, num_warps=4, num_stages=4)
    launch.reference = lambda *_: torch.einsum("tmk,tkr,trn->mn", a.float(), b.float(), c.float())
    return launch, args


@triton.jit
def tiles_of_lists(A, B, C, HEAD, NEXT, COL, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Each block of rows has a linked list of blocks of columns that are wanted.
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    at = tl.load(HEAD + tl.program_id(0))
    while at >= 0:
        n = tl.load(COL + at) * BN + tl.arange(0, BN)
        acc = tl.zeros((BM, BN), tl.float32)
        for k0 in range(0, K, BK):
            k = k0 + tl.arange(0, BK)
            acc = tl.dot(tl.load(A + m[:, None] * K + k[None, :]), tl.load(B + n[None, :] * K + k[:, None]), acc)
        tl.store(C + at.to(tl.int64) * BM * BN + tl.arange(0, BM)[:, None] * BN + tl.arange(0, BN)[None, :], acc.to(C.dtype.element_ty))
        at = tl.load(NEXT + at)


@case
def gemm_tiles_of_linked_lists():
    rows, cols, each, k, block = 132, 64, 5, 1024, 64
    nodes = rows * each
    order = torch.randperm(nodes, device="cuda").to(torch.int32).view(rows, each)
    head, follow = order[:, 0].contiguous(), full(-1, nodes, dtype="int32")
    follow[order[:, :-1].reshape(-1).long()] = order[:, 1:].reshape(-1)
    c = zeros(nodes, block, block)
    args = rand(rows * block, k), rand(cols * block, k), c, head, follow, ints(0, cols, nodes), cols * block, k
    return run(tiles_of_lists, (rows,), args, c, BM=block, BN=block, BK=64, num_warps=4, num_stages=3)


@triton.jit
def attend_until_spent(Q, K, V, ORDER, BOUND, O, COUNT, T, scale, limit, BLOCKS, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    # Blocks of keys from the most to the least promising; ends when what the next can add is small.
    h, m = tl.program_id(1), tl.program_id(0) * BM + tl.arange(0, BM)
    d = tl.arange(0, D)
    q = tl.load(Q + (h * T + m)[:, None] * D + d[None, :])
    top, total, acc = tl.full((BM,), -1e30, tl.float32), tl.zeros((BM,), tl.float32), tl.zeros((BM, D), tl.float32)
    at = 0
    row = (h * tl.num_programs(0) + tl.program_id(0)) * BLOCKS
    bound = tl.load(BOUND + row)
    while (at < BLOCKS) & (bound > limit):
        n = tl.load(ORDER + row + at) * BN + tl.arange(0, BN)
        k = tl.load(K + (h * T + n)[None, :] * D + d[:, None])
        v = tl.load(V + (h * T + n)[:, None] * D + d[None, :])
        s = tl.dot(q, k) * scale
        new = tl.maximum(top, tl.max(s, 1))
        p, a = tl.exp2(s - new[:, None]), tl.exp2(top - new)
        total = total * a + tl.sum(p, 1)
        acc = tl.dot(p.to(v.dtype), v, acc * a[:, None])
        top = new
        at += 1
        bound = tl.load(BOUND + row + at, mask=at < BLOCKS, other=0.0)
    tl.store(O + (h * T + m)[:, None] * D + d[None, :], (acc / total[:, None]).to(O.dtype.element_ty))
    tl.store(COUNT + h * tl.num_programs(0) + tl.program_id(0), at)


@case
def attn_of_blocks_until_budget_spent():
    h, t, d, block = 16, 4096, 64, 64
    blocks = t // block
    bound, order = uniform(h, blocks, blocks).sort(-1, descending=True)
    bound[..., 0] = 2.0
    o, count = zeros(h, t, d, dtype="bfloat16"), zeros(h, blocks, dtype="int32")
    q, k, v = (rand(h, t, d, dtype="bfloat16") for _ in range(3))
    args = q, k, v, order.to(torch.int32), bound, o, count, t, d**-0.5 * 1.44269504, 0.7, blocks
    return run(attend_until_spent, (blocks, h), args, (o, count), D=d, BM=block, BN=block, num_warps=4, num_stages=3)


@triton.jit
def products_of_a_table(TABLE, SIZES, GROUPS, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Operands of each product by address; programs take tiles of all products in turn.
    tile, group, before = tl.program_id(0), 0, 0
    while group < GROUPS:
        M, N, K = tl.load(SIZES + group * 3), tl.load(SIZES + group * 3 + 1), tl.load(SIZES + group * 3 + 2)
        across = tl.cdiv(N, BN)
        tiles = tl.cdiv(M, BM) * across
        a_base = tl.load(TABLE + group * 3).to(tl.pointer_type(tl.bfloat16))
        b_base = tl.load(TABLE + group * 3 + 1).to(tl.pointer_type(tl.bfloat16))
        c_base = tl.load(TABLE + group * 3 + 2).to(tl.pointer_type(tl.bfloat16))
        while tile < before + tiles:
            at = tile - before
            m, n = at // across * BM + tl.arange(0, BM), at % across * BN + tl.arange(0, BN)
            acc = tl.zeros((BM, BN), tl.float32)
            for k0 in range(0, K, BK):
                k = k0 + tl.arange(0, BK)
                a = tl.load(a_base + m[:, None] * K + k[None, :], mask=(m < M)[:, None] & (k < K)[None, :], other=0.0)
                b = tl.load(b_base + n[None, :] * K + k[:, None], mask=(n < N)[None, :] & (k < K)[:, None], other=0.0)
                acc = tl.dot(a, b, acc)
            tl.store(c_base + m[:, None] * N + n[None, :], acc.to(tl.bfloat16), mask=(m < M)[:, None] & (n < N)[None, :])
            tile += tl.num_programs(0)
        before += tiles
        group += 1


@case
def gemms_of_a_table_of_addresses():
    sizes = [(128 + 72 * g, 256 + 128 * (g % 5), 256 + 64 * (g % 7)) for g in range(16)]
    held = [(rand(m, k, dtype="bfloat16"), rand(n, k, dtype="bfloat16"), zeros(m, n, dtype="bfloat16")) for m, n, k in sizes]
    table = torch.tensor([[x.data_ptr() for x in one] for one in held], dtype=torch.int64, device="cuda")
    args = table, torch.tensor(sizes, dtype=torch.int32, device="cuda"), len(sizes)
    launch, args = run(products_of_a_table, (PROGRAMS,), args, [c for *_, c in held], BM=64, BN=128, BK=64, num_warps=4, num_stages=3)
    launch.reference = lambda *_: [a.float() @ b.float().t() for a, b, _ in held]
    return launch, args


@triton.jit
def radial_features(X, Z, ALPHA, XX, ZZ, OUT, N, gamma, D: tl.constexpr, O: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    # exp(-gamma |x - z|^2) alpha, centers in blocks; the second dot's operand is computed of three loads.
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    d, o = tl.arange(0, D), tl.arange(0, O)
    x = tl.load(X + m[:, None] * D + d[None, :])
    xx = tl.load(XX + m)
    acc = tl.zeros((BM, O), tl.float32)
    for n0 in range(0, N, BN):
        n = n0 + tl.arange(0, BN)
        live = n < N
        z = tl.load(Z + n[:, None] * D + d[None, :], mask=live[:, None], other=0.0)
        s = tl.dot(x, tl.trans(z), input_precision="tf32")
        far = xx[:, None] + tl.load(ZZ + n, mask=live, other=0.0)[None, :] - 2.0 * s
        w = tl.where(live[None, :], tl.exp(-gamma * tl.maximum(far, 0.0)), 0.0)
        acc = tl.dot(w, tl.load(ALPHA + n[:, None] * O + o[None, :], mask=live[:, None], other=0.0), acc, input_precision="tf32")
    tl.store(OUT + m[:, None] * O + o[None, :], acc)


@case
def kernel_ridge_predictions_tf32():
    m, n, d, o = 16384, 2000, 32, 32
    x, z, alpha, out = f32(m, d), f32(n, d), f32(n, o), zeros(m, o, dtype="float32")
    args = x, z, alpha, x.square().sum(1), z.square().sum(1), out, n, 0.05
    launch, args = run(radial_features, (m // 128,), args, out, D=d, O=o, BM=128, BN=64, num_warps=8, num_stages=3)
    launch.reference = lambda *_: torch.exp(-0.05 * torch.cdist(x, z).square()) @ alpha
    return launch, args


@triton.jit
def joined_operands(P, Q, W, OUT, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Real and imaginary planes are woven to rows of pairs, as the weights want them; a third operand is the planes' product.
    m, n, k = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN), tl.arange(0, BK)
    k2 = tl.arange(0, 2 * BK)
    acc = tl.zeros((BM, BN), tl.float32)
    cross = tl.zeros((BM, BN), tl.float32)
    for k0 in range(0, K, BK):
        p = tl.load(P + m[:, None] * K + (k0 + k)[None, :])
        q = tl.load(Q + m[:, None] * K + (k0 + k)[None, :])
        both = tl.interleave(p, q)
        w = tl.load(W + (2 * k0 + k2)[:, None] * N + n[None, :])
        acc = tl.dot(both, w, acc)
        even, odd = tl.split(tl.permute(tl.reshape(w, (BK, 2, BN)), (0, 2, 1)))
        cross = tl.dot(p * q, even - odd, cross)
    y = acc + tl.sigmoid(cross)
    tl.store(OUT + m[:, None] * N + n[None, :], y.to(OUT.dtype.element_ty))


@case
def gemm_of_woven_planes_and_their_product():
    m, n, k = 2048, 1024, 512
    p, q, w, out = rand(m, k), rand(m, k), rand(2 * k, n) * 0.05, zeros(m, n)
    launch, args = run(joined_operands, (m // 64, n // 64), (p, q, w, out, n, k), out, BM=64, BN=64, BK=32, num_warps=4, num_stages=3)

    def reference(*_):
        a, b, f = p.float(), q.float(), w.float()
        return a @ f[0::2] + b @ f[1::2] + torch.sigmoid((p * q).float() @ (f[0::2] - f[1::2]))

    launch.reference = reference
    return launch, args


@triton.jit
def gathered_inside_blocks(X, W, ORDER, OUT, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Channels are permuted inside each block of K: rows of the weights stay, those of x are gathered in registers.
    m, n, k = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for k0 in range(0, K, BK):
        order = tl.load(ORDER + k0 + k).to(tl.int32)
        x = tl.load(X + m[:, None] * K + (k0 + k)[None, :])
        x = tl.gather(x, tl.broadcast_to(order[None, :], (BM, BK)), 1)
        w = tl.load(W + n[:, None] * K + (k0 + k)[None, :])
        acc = tl.dot(x, w.T, acc)
    tl.store(OUT + m[:, None] * N + n[None, :], acc.to(OUT.dtype.element_ty))


@case
def gemm_of_channels_permuted_in_blocks():
    m, n, k, bk = 1024, 1024, 1024, 64
    order = torch.argsort(uniform(k // bk, bk), dim=1).to(torch.uint8)
    x, w, out = rand(m, k), rand(n, k) * 0.1, zeros(m, n)
    launch, args = run(gathered_inside_blocks, (m // 64, n // 64), (x, w, order, out, n, k), out, BM=64, BN=64, BK=bk, num_warps=4, num_stages=3)

    def reference(*_):
        index = order.long().view(1, k // bk, bk).expand(m, -1, -1)
        return x.float().view(m, k // bk, bk).gather(2, index).view(m, k) @ w.float().t()

    launch.reference = reference
    return launch, args


@triton.jit
def normal_equations(X, Y, WEIGHT, XTX, XTY, SUM, ENERGY, T, D: tl.constexpr, R: tl.constexpr, BT: tl.constexpr):
    # Weighted moments of a problem: a square accumulator, a thin one, a row and a number.
    b, d, r = tl.program_id(0), tl.arange(0, D), tl.arange(0, R)
    square = tl.zeros((D, D), tl.float32)
    thin = tl.zeros((D, R), tl.float32)
    row = tl.zeros((D,), tl.float32)
    energy = 0.0
    for t0 in range(0, T, BT):
        t = t0 + tl.arange(0, BT)
        live = t < T
        x = tl.load(X + (b * T + t)[:, None] * D + d[None, :], mask=live[:, None], other=0.0)
        y = tl.load(Y + (b * T + t)[:, None] * R + r[None, :], mask=live[:, None], other=0.0)
        w = tl.load(WEIGHT + b * T + t, mask=live, other=0.0)
        xw = (x * w[:, None]).to(x.dtype)
        square = tl.dot(tl.trans(xw), x, square)
        thin = tl.dot(tl.trans(xw), y, thin)
        row += tl.sum(xw.to(tl.float32), 0)
        energy += tl.sum(w * tl.sum(y.to(tl.float32) * y.to(tl.float32), 1))
    tl.store(XTX + (b * D + d)[:, None] * D + d[None, :], square)
    tl.store(XTY + (b * D + d)[:, None] * R + r[None, :], thin)
    tl.store(SUM + b * D + d, row)
    tl.store(ENERGY + b, energy)


@case
def normal_equations_of_four_sums():
    b, t, d, r = 396, 1500, 64, 16
    outs = zeros(b, d, d, dtype="float32"), zeros(b, d, r, dtype="float32"), zeros(b, d, dtype="float32"), zeros(b, dtype="float32")
    x, y, w = rand(b, t, d, dtype="bfloat16"), rand(b, t, r, dtype="bfloat16"), uniform(b, t)
    launch, args = run(normal_equations, (b,), (x, y, w, *outs, t), outs, D=d, R=r, BT=64, num_warps=4, num_stages=3)

    def reference(*_):
        xw = (x * w[..., None]).to(x.dtype).float()
        return xw.mT @ x.float(), xw.mT @ y.float(), xw.sum(1), (w * y.float().square().sum(-1)).sum(-1)

    launch.reference = reference
    return launch, args


@triton.jit
def merged_blocks(AP, AC, AV, BP, BR, BV, OUT, ROWS, COLS, B: tl.constexpr):
    # A block of the product of two block-sparse matrices: lists of a row and of a column are merged.
    i, j = tl.program_id(0), tl.program_id(1)
    p, p1, q, q1 = tl.load(AP + i), tl.load(AP + i + 1), tl.load(BP + j), tl.load(BP + j + 1)
    r, c = tl.arange(0, B)[:, None], tl.arange(0, B)[None, :]
    acc = tl.zeros((B, B), tl.float32)
    while (p < p1) & (q < q1):
        ka, kb = tl.load(AC + p), tl.load(BR + q)
        if ka == kb:
            a = tl.load(AV + p.to(tl.int64) * B * B + r * B + c)
            b = tl.load(BV + q.to(tl.int64) * B * B + r * B + c)
            acc = tl.dot(a, b, acc)
        p += (ka <= kb).to(tl.int32)
        q += (kb <= ka).to(tl.int32)
    tl.store(OUT + (i * B + r) * COLS * B + j * B + c, acc.to(OUT.dtype.element_ty))


@case
def sparse_blocks_times_sparse_blocks():
    rows, cols, inner, each, b = 48, 48, 128, 40, 32
    ac = uniform(rows, inner).argsort(1)[:, :each].sort(1)[0].to(torch.int32)
    br = uniform(cols, inner).argsort(1)[:, :each].sort(1)[0].to(torch.int32)
    av, bv, out = rand(rows * each, b, b), rand(cols * each, b, b), zeros(rows * b, cols * b)
    args = arange(rows + 1) * each, ac, av, arange(cols + 1) * each, br, bv, out, rows, cols
    launch, args = run(merged_blocks, (rows, cols), args, out, B=b, num_warps=1, num_stages=3)

    def reference(*_):
        a = torch.zeros(rows, inner, b, b, device="cuda")
        a[arange(rows).long()[:, None], ac.long()] = av.float().view(rows, each, b, b)
        w = torch.zeros(cols, inner, b, b, device="cuda")
        w[arange(cols).long()[:, None], br.long()] = bv.float().view(cols, each, b, b)
        return torch.einsum("iaxy,jayz->ixjz", a, w).reshape(rows * b, cols * b)

    launch.reference = reference
    return launch, args


@triton.jit
def conv_weight_gradient(X, DY, DW, NB, H, W, KH: tl.constexpr, KW: tl.constexpr, C: tl.constexpr, O: tl.constexpr, BP: tl.constexpr):
    # A tap's gradient: pixels are the inner axis, in a loop over rows in a loop over images.
    kh, kw, part = tl.program_id(0) // KW, tl.program_id(0) % KW, tl.program_id(1)
    c, o, p = tl.arange(0, C), tl.arange(0, O), tl.arange(0, BP)
    acc = tl.zeros((C, O), tl.float32)
    for image in range(part, NB, tl.num_programs(1)):
        for y in range(0, H):
            sy = y + kh - KH // 2
            for x0 in range(0, W, BP):
                x = x0 + p
                sx = x + kw - KW // 2
                ok = (sx >= 0) & (sx < W) & (sy >= 0) & (sy < H)
                a = tl.load(X + ((image * H + sy) * W + sx)[None, :] * C + c[:, None], mask=ok[None, :], other=0.0)
                g = tl.load(DY + ((image * H + y) * W + x)[:, None] * O + o[None, :], mask=(x < W)[:, None], other=0.0)
                acc = tl.dot(a, g, acc)
    at = (part * KH * KW + tl.program_id(0)) * C * O
    tl.store(DW + at + c[:, None] * O + o[None, :], acc)


@case
def conv2d_weight_gradient_three_loops():
    nb, h, w, c, o, parts = 32, 28, 28, 64, 64, 16
    x, dy, dw = rand(nb, h, w, c), rand(nb, h, w, o), zeros(parts, 9, c, o, dtype="float32")
    launch, args = run(conv_weight_gradient, (9, parts), (x, dy, dw, nb, h, w), dw, KH=3, KW=3, C=c, O=o, BP=32, num_warps=4, num_stages=4)

    def reference(*_):
        pad = torch.nn.functional.pad(x.float(), (0, 0, 1, 1, 1, 1))
        taps = [pad[:, i : i + h, j : j + w].reshape(nb, -1, c).mT @ dy.float().reshape(nb, -1, o) for i in range(3) for j in range(3)]
        return torch.stack(taps, 1).view(nb // parts, parts, 9, c, o).sum(0)

    launch.reference = reference
    return launch, args


@triton.jit
def recurrent_state(X, U, BIAS, H0, OUT, T, B, D: tl.constexpr, BB: tl.constexpr):
    # h = tanh(x_t + h U): the accumulator of a step is the operand of the next one; x_t is loaded meanwhile.
    b, d = tl.program_id(0) * BB + tl.arange(0, BB), tl.arange(0, D)
    u = tl.load(U + d[:, None] * D + d[None, :])
    bias = tl.load(BIAS + d)
    h = tl.load(H0 + b[:, None] * D + d[None, :])
    for t in range(0, T):
        x = tl.load(X + (t * B + b)[:, None] * D + d[None, :]).to(tl.float32)
        z = tl.dot(h, u, x) + bias[None, :]
        e = tl.exp(-2.0 * tl.abs(z))
        y = (1.0 - e) / (1.0 + e)
        h = tl.where(z < 0, -y, y).to(h.dtype)
        tl.store(OUT + (t * B + b)[:, None] * D + d[None, :], h)


@case
def rnn_tanh_state_in_registers():
    t, b, d = 256, 1024, 128
    out = zeros(t, b, d, dtype="bfloat16")
    x, u, bias, h0 = rand(t, b, d, dtype="bfloat16"), rand(d, d, dtype="bfloat16") * 0.05, f32(d), rand(b, d, dtype="bfloat16")
    return run(recurrent_state, (b // 16,), (x, u, bias, h0, out, t, b), out, D=d, BB=16, num_warps=4, num_stages=3)


@triton.jit
def streamed_codes(X, BOOK, MEANS, OUT, CODES, LEVELS, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, N: tl.constexpr):
    # Residual codes: in each level the nearest of N words by a dot, and the word, found by address, is taken off.
    m, d = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, D)
    left = tl.load(X + m[:, None] * D + d[None, :]).to(tl.float32)
    for level in range(LEVELS):
        best, where = tl.full((BM,), float("inf"), tl.float32), tl.zeros((BM,), tl.int32)
        r = left.to(X.dtype.element_ty)
        for n0 in range(0, N, BN):
            n = level * N + n0 + tl.arange(0, BN)
            word = tl.load(BOOK + n[None, :] * D + d[:, None])
            far = tl.load(MEANS + n)[None, :] - 2.0 * tl.dot(r, word)
            low, at = tl.min(far, 1, return_indices=True)
            where = tl.where(low < best, n0 + at, where)
            best = tl.minimum(low, best)
        left -= tl.load(BOOK + (level * N + where)[:, None] * D + d[None, :]).to(tl.float32)
        tl.store(CODES + m * LEVELS + level, where.to(tl.int16))
    tl.store(OUT + m[:, None] * D + d[None, :], left)


@case
def residual_codes_of_four_levels():
    m, n, d, levels = 16384, 512, 64, 4
    # Small integers: sums are exact, so all agree on what is nearest.
    book = ints(-6, 7, levels * n, d).to(torch.float16)
    out, codes = zeros(m, d, dtype="float32"), zeros(m, levels, dtype="int16")
    args = ints(-20, 21, m, d).to(torch.float16), book, book.float().square().sum(1), out, codes, levels
    return run(streamed_codes, (m // 64,), args, out, D=d, BM=64, BN=64, N=n, num_warps=4, num_stages=3)
