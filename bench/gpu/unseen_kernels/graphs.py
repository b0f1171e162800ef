"""Graphs and sparse matrices: formats of rows, messages over edges, samples, walks, neighbors, blocks."""

import torch
import triton
import triton.language as tl

from .common import arange, case, cdiv, cleared, f32, ints, rand, run, uniform, zeros


def csr(rows, columns, low, high, ordered=False):
    """Row pointers and columns of a random sparse matrix whose rows have `low` to `high - 1` entries."""
    degree = ints(low, high, rows)
    start = zeros(rows + 1, dtype="int32")
    start[1:] = torch.cumsum(degree, 0)
    total = int(start[-1])
    index = ints(0, columns, total)
    if ordered:
        row = torch.repeat_interleave(arange(rows, dtype="int64"), degree.long())
        key = torch.sort(row * columns + index)[0]
        index = (key % columns).int()
    return start, index, total


@triton.jit
def ell_spmv_kernel(val_ptr, col_ptr, x_ptr, y_ptr, n_rows, width, BLOCK_SIZE: tl.constexpr):
    # ELLPACK, column major; slots that hold no entry have column -1.
    rows = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    in_range = rows < n_rows
    acc = tl.zeros([BLOCK_SIZE], dtype=tl.float32)
    for k in range(0, width):
        col = tl.load(col_ptr + k * n_rows + rows, mask=in_range, other=-1)
        valid = col >= 0
        v = tl.load(val_ptr + k * n_rows + rows, mask=valid, other=0.0)
        acc += v * tl.load(x_ptr + col, mask=valid, other=0.0)
    tl.store(y_ptr + rows, acc, mask=in_range)


@case
def ell_spmv():
    n, width = 400000, 24
    col = torch.where(uniform(width, n) < 0.7, ints(0, n, width, n), -1).int()
    y = zeros(n, dtype="float32")
    return run(ell_spmv_kernel, (cdiv(n, 256),), (f32(width, n), col, f32(n), y, n, width), y, BLOCK_SIZE=256, num_warps=4)


@triton.jit
def sell_spmm_kernel(slice_ptr, col_ptr, val_ptr, perm_ptr, x_ptr, y_ptr, n_rows, F, C: tl.constexpr, BLOCK_F: tl.constexpr):
    # Slices of C rows, each as wide as its longest row; rows were sorted, so results go back through a permutation.
    s = tl.program_id(0)
    f = tl.program_id(1) * BLOCK_F + tl.arange(0, BLOCK_F)
    lane = tl.arange(0, C)
    begin = tl.load(slice_ptr + s)
    end = tl.load(slice_ptr + s + 1)
    acc = tl.zeros((C, BLOCK_F), dtype=tl.float32)
    f_mask = f < F
    for at in range(begin, end, C):
        col = tl.load(col_ptr + at + lane)
        val = tl.load(val_ptr + at + lane)
        x = tl.load(x_ptr + col[:, None] * F + f[None, :], mask=f_mask[None, :], other=0.0)
        acc += val[:, None] * x.to(tl.float32)
    row = s * C + lane
    out = tl.load(perm_ptr + row, mask=row < n_rows, other=0)
    tl.store(y_ptr + out[:, None] * F + f[None, :], acc.to(y_ptr.dtype.element_ty), mask=(row < n_rows)[:, None] & f_mask[None, :])


@case
def sell_c_sigma_spmm():
    n, c, feats = 50000, 16, 100
    slices = cdiv(n, c)
    start = zeros(slices + 1, dtype="int32")
    start[1:] = torch.cumsum(ints(1, 17, slices).sort(descending=True)[0], 0) * c
    total = int(start[-1])
    y = zeros(n, feats)
    args = start, ints(0, n, total), f32(total), torch.randperm(n, device="cuda").int(), rand(n, feats), y, n, feats
    return run(sell_spmm_kernel, (slices, cdiv(feats, 64)), args, y, C=c, BLOCK_F=64, num_warps=4)


@triton.jit
def bsr_spmm_kernel(crow_ptr, col_ptr, values_ptr, dense_ptr, out_ptr, N, stride_vb, stride_dk, stride_om, BS: tl.constexpr,
                    BN: tl.constexpr, ALLOW_TF32: tl.constexpr):
    # Rows of square blocks times a dense matrix.
    pid_m, pid_n = tl.program_id(0), tl.program_id(1)
    begin = tl.load(crow_ptr + pid_m)
    nnz = tl.load(crow_ptr + pid_m + 1) - begin
    r = tl.arange(0, BS)
    offs_n = pid_n * BN + tl.arange(0, BN)
    n_mask = offs_n < N
    block_ptrs = values_ptr + begin.to(tl.int64) * stride_vb + r[:, None] * BS + r[None, :]
    dense_ptrs = dense_ptr + r[:, None] * stride_dk + offs_n[None, :]
    acc = tl.zeros((BS, BN), dtype=tl.float32)
    for i in range(nnz):
        col = tl.load(col_ptr + begin + i)
        a = tl.load(block_ptrs)
        b = tl.load(dense_ptrs + col * BS * stride_dk, mask=n_mask[None, :], other=0.0)
        acc += tl.dot(a, b, allow_tf32=ALLOW_TF32)
        block_ptrs += stride_vb
    offs_m = pid_m * BS + r
    tl.store(out_ptr + offs_m[:, None] * stride_om + offs_n[None, :], acc.to(out_ptr.dtype.element_ty), mask=n_mask[None, :])


def bsr(blocks, size, low, high, n, dtype, bn, warps, stages):
    start, index, total = csr(blocks, blocks, low, high, ordered=True)
    out = zeros(blocks * size, n, dtype=dtype)
    args = start, index, rand(total, size, size, dtype=dtype), rand(blocks * size, n, dtype=dtype), out, n, size * size, n, n
    return run(bsr_spmm_kernel, (blocks, cdiv(n, bn)), args, out, BS=size, BN=bn, ALLOW_TF32=True, num_warps=warps, num_stages=stages)


@case
def bsr_spmm_blocks_of_64_bf16():
    return bsr(64, 64, 8, 24, 2000, "bfloat16", 128, 4, 3)


@case
def bsr_spmm_blocks_of_16_tf32():
    return bsr(256, 16, 10, 40, 1024, "float32", 64, 2, 2)


@triton.jit
def _leaky(x, slope):
    return tl.where(x > 0, x, x * slope)


@triton.jit
def gat_aggregate_kernel(rowptr, colidx, el_ptr, er_ptr, feat_ptr, out_ptr, attn_max_ptr, slope, H: tl.constexpr, D: tl.constexpr,
                         BLOCK_E: tl.constexpr):
    # One node and head a program: softmax over incoming edges as they come, then the weighted sum of neighbors.
    node, head = tl.program_id(0), tl.program_id(1)
    start, end = tl.load(rowptr + node), tl.load(rowptr + node + 1)
    er = tl.load(er_ptr + node * H + head)
    d = tl.arange(0, D)
    e_off = tl.arange(0, BLOCK_E)
    m_i = -float("inf")
    l_i = 0.0
    acc = tl.zeros([D], dtype=tl.float32)
    for e in range(start, end, BLOCK_E):
        mask = e + e_off < end
        src = tl.load(colidx + e + e_off, mask=mask, other=0)
        score = _leaky(tl.load(el_ptr + src * H + head, mask=mask, other=0.0) + er, slope)
        score = tl.where(mask, score, -float("inf"))
        m_new = tl.maximum(m_i, tl.max(score, axis=0))
        p = tl.exp(score - m_new)
        alpha = tl.exp(m_i - m_new)
        f = tl.load(feat_ptr + (src * H + head)[:, None] * D + d[None, :], mask=mask[:, None], other=0.0)
        acc = acc * alpha + tl.sum(p[:, None] * f.to(tl.float32), axis=0)
        l_i = l_i * alpha + tl.sum(p, axis=0)
        m_i = m_new
    acc = acc / tl.maximum(l_i, 1e-12)
    acc = tl.where(acc > 0, acc, tl.exp(acc) - 1.0)
    tl.store(out_ptr + (node * H + head) * D + d, acc.to(out_ptr.dtype.element_ty))
    tl.store(attn_max_ptr + node * H + head, m_i)


@case
def gat_online_softmax_elu():
    n, h, d = 20000, 4, 64
    start, index, _ = csr(n, n, 1, 40)
    out, top = zeros(n, h, d), zeros(n, h, dtype="float32")
    args = start, index, f32(n, h), f32(n, h), rand(n, h, d), out, top, 0.2
    return run(gat_aggregate_kernel, (n, h), args, (out, top), H=h, D=d, BLOCK_E=16, num_warps=2)


@triton.jit
def sddmm_edges(src_ptr, dst_ptr, q_ptr, k_ptr, bias_ptr, out_ptr, E, F, BLOCK_E: tl.constexpr, BLOCK_F: tl.constexpr):
    e = tl.program_id(0) * BLOCK_E + tl.arange(0, BLOCK_E)
    live = e < E
    s = tl.load(src_ptr + e, mask=live, other=0)
    t = tl.load(dst_ptr + e, mask=live, other=0)
    acc = tl.zeros((BLOCK_E,), tl.float32)
    for f0 in range(0, F, BLOCK_F):
        f = f0 + tl.arange(0, BLOCK_F)
        mask = live[:, None] & (f < F)[None, :]
        q = tl.load(q_ptr + s[:, None] * F + f[None, :], mask=mask, other=0.0)
        k = tl.load(k_ptr + t[:, None] * F + f[None, :], mask=mask, other=0.0)
        acc += tl.sum(q.to(tl.float32) * k.to(tl.float32), axis=1)
    acc += tl.load(bias_ptr + e, mask=live, other=0.0)
    tl.store(out_ptr + e, tl.sigmoid(acc), mask=live)


@case
def sddmm_coo_long_indices():
    n, e, f = 100000, 500001, 72
    out = zeros(e, dtype="float32")
    args = ints(0, n, e, dtype="int64"), ints(0, n, e, dtype="int64"), rand(n, f) * 0.2, rand(n, f) * 0.2, f32(e), out, e, f
    return run(sddmm_edges, (cdiv(e, 32),), args, out, BLOCK_E=32, BLOCK_F=32, num_warps=4)


@triton.jit
def _first_of_larger(a, ai, b, bi):
    take = (a > b) | ((a == b) & (ai < bi))
    return tl.where(take, a, b), tl.where(take, ai, bi)


@triton.jit
def edge_conv_max(x_ptr, nbr_ptr, wx_ptr, wd_ptr, out_ptr, arg_ptr, N, K: tl.constexpr, C: tl.constexpr, BLOCK_N: tl.constexpr):
    # EdgeConv with weights per channel: max over K neighbors of w0 * x_i + w1 * (x_j - x_i), and who it was.
    i = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    c = tl.arange(0, C)
    k = tl.arange(0, K)
    m = i < N
    xi = tl.load(x_ptr + i[:, None] * C + c[None, :], mask=m[:, None], other=0.0)
    j = tl.load(nbr_ptr + i[:, None] * K + k[None, :], mask=m[:, None], other=0)
    xj = tl.load(x_ptr + j[:, :, None] * C + c[None, None, :], mask=m[:, None, None], other=0.0)
    w0, w1 = tl.load(wx_ptr + c), tl.load(wd_ptr + c)
    h = w0[None, None, :] * xi[:, None, :] + w1[None, None, :] * (xj - xi[:, None, :])
    which = tl.broadcast_to(k[None, :, None], (BLOCK_N, K, C))
    best, arg = tl.reduce((h, which), 1, _first_of_larger)
    tl.store(out_ptr + i[:, None] * C + c[None, :], tl.maximum(best, 0.0), mask=m[:, None])
    tl.store(arg_ptr + i[:, None] * C + c[None, :], arg.to(tl.int8), mask=m[:, None])


@case
def edge_conv_max_of_neighbors():
    n, k, c = 60001, 16, 32
    out, arg = zeros(n, c, dtype="float32"), zeros(n, c, dtype="int8")
    args = f32(n, c), ints(0, n, n, k), f32(c), f32(c), out, arg, n
    return run(edge_conv_max, (cdiv(n, 8),), args, out, K=k, C=c, BLOCK_N=8, num_warps=4)


@triton.jit
def sample_neighbors(rowptr, col, seeds, out_ptr, eid_ptr, n_seeds, rng_seed, FANOUT: tl.constexpr, BLOCK: tl.constexpr):
    # With replacement; nodes without neighbors keep -1.
    s = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = s < n_seeds
    node = tl.load(seeds + s, mask=mask, other=0)
    lo = tl.load(rowptr + node, mask=mask, other=0)
    deg = tl.load(rowptr + node + 1, mask=mask, other=0) - lo
    for f in tl.static_range(0, FANOUT, 4):
        r0, r1, r2, r3 = tl.randint4x(rng_seed, s * FANOUT + f)
        for t in tl.static_range(4):
            if t == 0:
                r = r0
            elif t == 1:
                r = r1
            elif t == 2:
                r = r2
            else:
                r = r3
            pick = tl.umulhi(r.to(tl.uint32, bitcast=True), deg.to(tl.uint32, bitcast=True)).to(tl.int32)
            has = mask & (deg > 0)
            nbr = tl.load(col + lo + pick, mask=has, other=-1)
            tl.store(out_ptr + s * FANOUT + f + t, nbr, mask=mask)
            tl.store(eid_ptr + s * FANOUT + f + t, tl.where(has, lo + pick, -1), mask=mask)


@case
def sample_neighbors_fanout_8():
    n, seeds = 200000, 300000
    start, index, _ = csr(n, n, 0, 30)
    out, eid = zeros(seeds, 8, dtype="int32"), zeros(seeds, 8, dtype="int32")
    args = start, index, ints(0, n, seeds), out, eid, seeds, 77
    return run(sample_neighbors, (cdiv(seeds, 256),), args, (out, eid), FANOUT=8, BLOCK=256, num_warps=4)


@triton.jit
def random_walk_biased(rowptr, col, start_ptr, walk_ptr, n_walks, length, seed, p_return, BLOCK: tl.constexpr):
    # At each step back to where it came from with probability p_return, else to a random neighbor.
    w = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = w < n_walks
    cur = tl.load(start_ptr + w, mask=mask, other=0)
    prev = cur
    tl.store(walk_ptr + w * (length + 1), cur, mask=mask)
    for step in range(length):
        u0, u1, u2, u3 = tl.rand4x(seed, w * length + step)
        lo = tl.load(rowptr + cur, mask=mask, other=0)
        hi = tl.load(rowptr + cur + 1, mask=mask, other=0)
        deg = hi - lo
        k = tl.minimum((u0 * deg.to(tl.float32)).to(tl.int32), deg - 1)
        nxt = tl.load(col + lo + k, mask=mask & (deg > 0), other=0)
        nxt = tl.where((u1 < p_return) | (deg == 0), prev, nxt)
        prev = cur
        cur = nxt
        tl.store(walk_ptr + w * (length + 1) + step + 1, cur, mask=mask)


@case
def random_walks_with_return():
    n, walks, length = 100000, 100000, 20
    start, index, _ = csr(n, n, 0, 25)
    out = zeros(walks, length + 1, dtype="int32")
    args = start, index, ints(0, n, walks), out, walks, length, 5, 0.25
    return run(random_walk_biased, (cdiv(walks, 128),), args, out, BLOCK=128, num_warps=4)


@triton.jit
def pagerank_pull(rowptr, col, rank_ptr, inv_deg_ptr, new_ptr, delta_ptr, n, damping, base, BLOCK_R: tl.constexpr, BLOCK_E: tl.constexpr):
    # A tile of rows, as many steps as the longest of them needs.
    r = tl.program_id(0) * BLOCK_R + tl.arange(0, BLOCK_R)
    live = r < n
    lo = tl.load(rowptr + r, mask=live, other=0)
    hi = tl.load(rowptr + r + 1, mask=live, other=0)
    longest = tl.max(hi - lo, axis=0)
    e = tl.arange(0, BLOCK_E)
    acc = tl.zeros((BLOCK_R, BLOCK_E), tl.float32)
    for s in range(0, longest, BLOCK_E):
        at = lo[:, None] + s + e[None, :]
        ok = at < hi[:, None]
        j = tl.load(col + at, mask=ok, other=0)
        acc += tl.load(rank_ptr + j, mask=ok, other=0.0) * tl.load(inv_deg_ptr + j, mask=ok, other=0.0)
    new = base + damping * tl.sum(acc, axis=1)
    old = tl.load(rank_ptr + r, mask=live, other=0.0)
    tl.store(new_ptr + r, new, mask=live)
    tl.store(delta_ptr + tl.program_id(0), tl.sum(tl.where(live, tl.abs(new - old), 0.0), axis=0))


@case
def pagerank_pull_step():
    n = 300000
    start, index, _ = csr(n, n, 0, 28)
    new, delta = zeros(n, dtype="float32"), zeros(cdiv(n, 32), dtype="float32")
    args = start, index, uniform(n), uniform(n), new, delta, n, 0.85, 0.15
    return run(pagerank_pull, (cdiv(n, 32),), args, (new, delta), BLOCK_R=32, BLOCK_E=8, num_warps=4)


@triton.jit
def bfs_bottom_up(rowptr, col, frontier_ptr, level_ptr, new_level_ptr, next_ptr, n, depth, BLOCK: tl.constexpr):
    # Nodes not seen yet look for a parent in the frontier, a bitmap of words, and stop at the first.
    v = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    live = v < n
    level = tl.load(level_ptr + v, mask=live, other=0)
    lo = tl.load(rowptr + v, mask=live, other=0)
    hi = tl.load(rowptr + v + 1, mask=live, other=0)
    todo = live & (level < 0)
    found = tl.zeros((BLOCK,), tl.int32)
    at = lo
    searching = (todo & (at < hi)).to(tl.int32)
    while tl.sum(searching, axis=0) > 0:
        u = tl.load(col + at, mask=searching != 0, other=0)
        word = tl.load(frontier_ptr + (u >> 5), mask=searching != 0, other=0)
        hit = ((word >> (u & 31)) & 1) & searching
        found = found | hit
        at += 1
        searching = tl.where((hit == 0) & (at < hi), searching, 0)
    tl.store(new_level_ptr + v, tl.where(found != 0, depth, level), mask=live)
    bits = tl.reshape(found, (BLOCK // 32, 32)) << tl.arange(0, 32)[None, :]
    words = tl.reduce_or(bits, axis=1)
    tl.store(next_ptr + tl.program_id(0) * (BLOCK // 32) + tl.arange(0, BLOCK // 32), words)


@case
def bfs_bottom_up_bitmaps():
    n = 1 << 19
    start, index, _ = csr(n, n, 0, 32)
    level = torch.where(uniform(n) < 0.4, 3, -1).int()
    frontier = ints(-(2**31), 2**31, n // 32) & ints(-(2**31), 2**31, n // 32) & ints(-(2**31), 2**31, n // 32)
    new, following = zeros(n, dtype="int32"), zeros(n // 32, dtype="int32")
    return run(bfs_bottom_up, (n // 256,), (start, index, frontier, level, new, following, n, 4), (new, following), BLOCK=256, num_warps=8)


@triton.jit
def hook_and_jump(src_ptr, dst_ptr, parent_ptr, label_ptr, E, JUMPS: tl.constexpr, BLOCK: tl.constexpr):
    # Components: the larger root of an edge takes the smaller as its label, which order does not change.
    e = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    live = e < E
    a = tl.load(src_ptr + e, mask=live, other=0)
    b = tl.load(dst_ptr + e, mask=live, other=0)
    for _ in tl.static_range(JUMPS):
        a = tl.load(parent_ptr + a, mask=live, other=0)
        b = tl.load(parent_ptr + b, mask=live, other=0)
    high, low = tl.maximum(a, b), tl.minimum(a, b)
    tl.atomic_min(label_ptr + high, low, mask=live & (high != low), sem="relaxed")


@case
def components_hook_with_atomic_min():
    n, e = 300000, 2000003
    parent = torch.minimum(arange(n), ints(0, n, n))
    label = zeros(n, dtype="int32")
    launch, args = run(hook_and_jump, (cdiv(e, 512),), (ints(0, n, e), ints(0, n, e), parent, label, e), label, JUMPS=2, BLOCK=512, num_warps=4)

    def restart(*args):
        label.copy_(arange(n))
        return launch(*args)

    return restart, args


@triton.jit
def triangles_by_search(src_ptr, dst_ptr, rowptr, col, count_ptr, E, STEPS: tl.constexpr, BLOCK_E: tl.constexpr, BLOCK_N: tl.constexpr):
    # Common neighbors of an edge's ends: those of one are searched in the sorted row of the other.
    e = tl.program_id(0) * BLOCK_E + tl.arange(0, BLOCK_E)
    live = e < E
    u, v = tl.load(src_ptr + e, mask=live, other=0), tl.load(dst_ptr + e, mask=live, other=0)
    u0, u1 = tl.load(rowptr + u, mask=live, other=0), tl.load(rowptr + u + 1, mask=live, other=0)
    v0, v1 = tl.load(rowptr + v, mask=live, other=0), tl.load(rowptr + v + 1, mask=live, other=0)
    total = tl.zeros((BLOCK_E, BLOCK_N), tl.int32)
    for s in range(0, tl.max(u1 - u0, 0), BLOCK_N):
        at = u0[:, None] + s + tl.arange(0, BLOCK_N)[None, :]
        ok = at < u1[:, None]
        want = tl.load(col + at, mask=ok, other=-1)
        lo = tl.broadcast_to(v0[:, None], (BLOCK_E, BLOCK_N))
        hi = tl.broadcast_to(v1[:, None], (BLOCK_E, BLOCK_N))
        for _ in tl.static_range(STEPS):
            mid = (lo + hi) // 2
            c = tl.load(col + mid, mask=ok & (lo < hi), other=2147483647)
            less = (c < want) & (lo < hi)
            hi = tl.where(less, hi, tl.where(lo < hi, mid, hi))
            lo = tl.where(less, mid + 1, lo)
        there = ok & (lo < v1[:, None])
        total += (tl.load(col + lo, mask=there, other=-2) == want).to(tl.int32)
    tl.store(count_ptr + e, tl.sum(total, 1), mask=live)


@case
def triangle_counts_of_edges():
    n, e = 4000, 200000
    start, index, _ = csr(n, n, 5, 60, ordered=True)
    count = zeros(e, dtype="int32")
    args = ints(0, n, e), ints(0, n, e), start, index, count, e
    return run(triangles_by_search, (cdiv(e, 16),), args, count, STEPS=6, BLOCK_E=16, BLOCK_N=16, num_warps=4)


@triton.jit
def segment_softmax_backward_kernel(y_ptr, dy_ptr, offsets_ptr, dx_ptr, H, BLOCK_T: tl.constexpr, BLOCK_H: tl.constexpr):
    # dx = y * (dy - sum(y * dy)) over the rows of a segment, heads along the columns.
    seg = tl.program_id(0)
    h = tl.program_id(1) * BLOCK_H + tl.arange(0, BLOCK_H)
    hm = h < H
    start, stop = tl.load(offsets_ptr + seg), tl.load(offsets_ptr + seg + 1)
    dot = tl.zeros([BLOCK_H], dtype=tl.float32)
    for t0 in tl.range(start, stop, BLOCK_T):
        t = t0 + tl.arange(0, BLOCK_T)
        mask = (t < stop)[:, None] & hm[None, :]
        y = tl.load(y_ptr + t[:, None] * H + h[None, :], mask=mask, other=0.0).to(tl.float32)
        dy = tl.load(dy_ptr + t[:, None] * H + h[None, :], mask=mask, other=0.0).to(tl.float32)
        dot += tl.sum(y * dy, axis=0)
    for t0 in tl.range(start, stop, BLOCK_T):
        t = t0 + tl.arange(0, BLOCK_T)
        mask = (t < stop)[:, None] & hm[None, :]
        y = tl.load(y_ptr + t[:, None] * H + h[None, :], mask=mask, other=0.0, eviction_policy="evict_first").to(tl.float32)
        dy = tl.load(dy_ptr + t[:, None] * H + h[None, :], mask=mask, other=0.0, eviction_policy="evict_first").to(tl.float32)
        tl.store(dx_ptr + t[:, None] * H + h[None, :], y * (dy - dot[None, :]), mask=mask)


@case
def segment_softmax_backward():
    segments, h = 5000, 24
    start, _, total = csr(segments, 1, 1, 300)
    dx = zeros(total, h, dtype="float32")
    args = rand(total, h, dtype="bfloat16"), rand(total, h, dtype="bfloat16"), start, dx, h
    return run(segment_softmax_backward_kernel, (segments, 1), args, dx, BLOCK_T=64, BLOCK_H=32, num_warps=4)


@triton.jit
def _count_mean_m2(n1, m1, s1, n2, m2, s2):
    n = n1 + n2
    d = m2 - m1
    w = tl.where(n > 0, n2 / n, 0.0)
    return n, m1 + d * w, s1 + s2 + d * d * n1 * w


@triton.jit
def graph_norm(x_ptr, ptr_ptr, alpha_ptr, gamma_ptr, beta_ptr, out_ptr, F, eps, BLOCK_T: tl.constexpr, BLOCK_F: tl.constexpr):
    # Nodes of a graph are normalized together; a learned share of the mean is taken away.
    g = tl.program_id(0)
    f = tl.program_id(1) * BLOCK_F + tl.arange(0, BLOCK_F)
    fm = f < F
    lo, hi = tl.load(ptr_ptr + g), tl.load(ptr_ptr + g + 1)
    count = tl.zeros((BLOCK_F,), tl.float32)
    mean = tl.zeros((BLOCK_F,), tl.float32)
    m2 = tl.zeros((BLOCK_F,), tl.float32)
    for t0 in range(lo, hi, BLOCK_T):
        t = t0 + tl.arange(0, BLOCK_T)
        mask = (t < hi)[:, None] & fm[None, :]
        x = tl.load(x_ptr + t[:, None] * F + f[None, :], mask=mask, other=0.0)
        ones = tl.where(mask, 1.0, 0.0)
        bn, bm, bs = tl.reduce((ones, x, tl.zeros_like(x)), 0, _count_mean_m2)
        count, mean, m2 = _count_mean_m2(count, mean, m2, bn, bm, bs)
    alpha = tl.load(alpha_ptr + f, mask=fm, other=0.0)
    shift = alpha * mean
    var = m2 / count + (1.0 - alpha) * (1.0 - alpha) * mean * mean
    scale = tl.load(gamma_ptr + f, mask=fm, other=0.0) * tl.math.rsqrt(var + eps)
    beta = tl.load(beta_ptr + f, mask=fm, other=0.0)
    for t0 in range(lo, hi, BLOCK_T):
        t = t0 + tl.arange(0, BLOCK_T)
        mask = (t < hi)[:, None] & fm[None, :]
        x = tl.load(x_ptr + t[:, None] * F + f[None, :], mask=mask, other=0.0)
        tl.store(out_ptr + t[:, None] * F + f[None, :], (x - shift[None, :]) * scale[None, :] + beta[None, :], mask=mask)


@case
def graph_norm_welford():
    graphs, f = 1500, 130
    start, _, total = csr(graphs, 1, 10, 200)
    out = zeros(total, f, dtype="float32")
    args = f32(total, f) + 3, start, uniform(f), f32(f), f32(f), out, f, 1e-5
    return run(graph_norm, (graphs, cdiv(f, 64)), args, out, BLOCK_T=32, BLOCK_F=64, num_warps=4)


@triton.jit
def sage_mean_matmul(rowptr, col, x_ptr, wself_ptr, wnbr_ptr, bias_ptr, out_ptr, N, F, OUT, BM: tl.constexpr, BN: tl.constexpr,
                     BK: tl.constexpr):
    # GraphSAGE: x W0 + mean of neighbors W1; neighbors are summed into the tile that the dot takes.
    pid = tl.program_id(0)
    m = pid * BM + tl.arange(0, BM)
    n = tl.arange(0, BN)
    live = m < N
    lo = tl.load(rowptr + m, mask=live, other=0)
    hi = tl.load(rowptr + m + 1, mask=live, other=0)
    deg = hi - lo
    longest = tl.max(deg, axis=0)
    inv = 1.0 / tl.maximum(deg, 1).to(tl.float32)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k0 in range(0, F, BK):
        k = k0 + tl.arange(0, BK)
        xs = tl.load(x_ptr + m[:, None] * F + k[None, :], mask=live[:, None], other=0.0)
        agg = tl.zeros((BM, BK), dtype=tl.float32)
        for e in range(0, longest):
            on = e < deg
            j = tl.load(col + lo + e, mask=on, other=0)
            agg += tl.load(x_ptr + j[:, None] * F + k[None, :], mask=on[:, None], other=0.0).to(tl.float32)
        agg = (agg * inv[:, None]).to(x_ptr.dtype.element_ty)
        w0 = tl.load(wself_ptr + k[:, None] * OUT + n[None, :], mask=(n < OUT)[None, :], other=0.0)
        w1 = tl.load(wnbr_ptr + k[:, None] * OUT + n[None, :], mask=(n < OUT)[None, :], other=0.0)
        acc = tl.dot(xs, w0, acc)
        acc = tl.dot(agg, w1, acc)
    acc += tl.load(bias_ptr + n, mask=n < OUT, other=0.0)[None, :]
    tl.store(out_ptr + m[:, None] * OUT + n[None, :], tl.maximum(acc, 0.0).to(tl.float16), mask=live[:, None] & (n < OUT)[None, :])


@case
def sage_mean_and_matmul():
    n, f, out_f = 30000, 128, 96
    start, index, _ = csr(n, n, 0, 20)
    out = zeros(n, out_f)
    args = start, index, rand(n, f), rand(f, out_f) * 0.1, rand(f, out_f) * 0.1, f32(out_f), out, n, f, out_f
    return run(sage_mean_matmul, (cdiv(n, 32),), args, out, BM=32, BN=128, BK=64, num_warps=4, num_stages=2)


@triton.jit
def rgcn_messages(x_ptr, src_ptr, rel_start, norm_ptr, w_ptr, msg_ptr, IN, OUT: tl.constexpr, BM: tl.constexpr, BK: tl.constexpr):
    # Edges sorted by relation: each relation's edges gather their sources and meet its matrix.
    rel = tl.program_id(1)
    begin, end = tl.load(rel_start + rel), tl.load(rel_start + rel + 1)
    e = begin + tl.program_id(0) * BM + tl.arange(0, BM)
    if begin + tl.program_id(0) * BM >= end:
        return
    live = e < end
    src = tl.load(src_ptr + e, mask=live, other=0)
    n = tl.arange(0, OUT)
    k = tl.arange(0, BK)
    a_ptrs = x_ptr + src[:, None] * IN + k[None, :]
    b_ptrs = w_ptr + rel * IN * OUT + k[:, None] * OUT + n[None, :]
    acc = tl.zeros((BM, OUT), tl.float32)
    for k0 in range(0, tl.cdiv(IN, BK)):
        left = IN - k0 * BK
        a = tl.load(a_ptrs, mask=live[:, None] & (k < left)[None, :], other=0.0)
        b = tl.load(b_ptrs, mask=(k < left)[:, None], other=0.0)
        acc += tl.dot(a, b)
        a_ptrs += BK
        b_ptrs += BK * OUT
    norm = tl.load(norm_ptr + e, mask=live, other=0.0)
    tl.store(msg_ptr + e[:, None] * OUT + n[None, :], (acc * norm[:, None]).to(tl.bfloat16), mask=live[:, None])


@case
def rgcn_messages_by_relation():
    n, rels, width, out = 50000, 30, 120, 64
    start, _, e = csr(rels, 1, 1000, 8000)
    msg = zeros(e, out, dtype="bfloat16")
    args = rand(n, width, dtype="bfloat16"), ints(0, n, e), start, uniform(e), rand(rels, width, out, dtype="bfloat16"), msg, width
    return run(rgcn_messages, (cdiv(8000, 64), rels), args, msg, OUT=out, BM=64, BK=32, num_warps=4, num_stages=3)


@triton.jit
def knn_points(p_ptr, idx_ptr, dist_ptr, N, K: tl.constexpr, BQ: tl.constexpr, BN: tl.constexpr):
    # Distances above, index below in one long word: the K smallest of what was kept and a new tile, by sorting.
    q = tl.program_id(0) * BQ + tl.arange(0, BQ)
    qm = q < N
    qx = tl.load(p_ptr + q * 3, mask=qm, other=0.0)
    qy = tl.load(p_ptr + q * 3 + 1, mask=qm, other=0.0)
    qz = tl.load(p_ptr + q * 3 + 2, mask=qm, other=0.0)
    kept = tl.full((BQ, K), 0, tl.int64)
    for n0 in range(0, N, BN):
        n = n0 + tl.arange(0, BN)
        nm = n < N
        dx = qx[:, None] - tl.load(p_ptr + n * 3, mask=nm, other=0.0)[None, :]
        dy = qy[:, None] - tl.load(p_ptr + n * 3 + 1, mask=nm, other=0.0)[None, :]
        dz = qz[:, None] - tl.load(p_ptr + n * 3 + 2, mask=nm, other=0.0)[None, :]
        d2 = dx * dx + dy * dy + dz * dz
        near = 2139095040 - d2.to(tl.int32, bitcast=True)
        key = (near.to(tl.int64) << 32) | n[None, :].to(tl.int64)
        key = tl.where(nm[None, :] & (n[None, :] != q[:, None]), key, 0)
        best = tl.topk(key, K, dim=1)
        both = tl.reshape(tl.join(kept, best), (BQ, 2 * K))
        kept = tl.topk(both, K, dim=1)
    k = tl.arange(0, K)
    at = q[:, None] * K + k[None, :]
    d = (2139095040 - (kept >> 32)).to(tl.int32).to(tl.float32, bitcast=True)
    tl.store(idx_ptr + at, (kept & 0xFFFFFFFF).to(tl.int32), mask=qm[:, None])
    tl.store(dist_ptr + at, tl.sqrt(d), mask=qm[:, None])


@case
def knn_graph_of_points():
    n, k = 5000, 8
    idx, dist = zeros(n, k, dtype="int32"), zeros(n, k, dtype="float32")
    return run(knn_points, (cdiv(n, 16),), (uniform(n, 3), idx, dist, n), dist, K=k, BQ=16, BN=128, num_warps=4)


@triton.jit
def _run_add(key_a, a, key_b, b):
    return key_b, tl.where(key_a == key_b, a, 0.0) + b


@triton.jit
def coo_segments_spmv(row_ptr, col_ptr, val_ptr, x_ptr, y_ptr, nnz, BLOCK: tl.constexpr):
    # Entries sorted by row: a scan adds along runs of one row, and the last of a run adds to the result.
    e = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    live = e < nnz
    row = tl.load(row_ptr + e, mask=live, other=-1)
    after = tl.load(row_ptr + e + 1, mask=e + 1 < nnz, other=-1)
    col = tl.load(col_ptr + e, mask=live, other=0)
    prod = tl.load(val_ptr + e, mask=live, other=0.0) * tl.load(x_ptr + col, mask=live, other=0.0)
    _, total = tl.associative_scan((row, prod), 0, _run_add)
    last = live & ((row != after) | (tl.arange(0, BLOCK) == BLOCK - 1))
    tl.atomic_add(y_ptr + row, total, mask=last, sem="relaxed")


@case
def coo_spmv_scan_of_runs():
    n = 200000
    start, index, total = csr(n, n, 1, 20)
    row = torch.repeat_interleave(arange(n), (start[1:] - start[:-1]).long())
    y = zeros(n, dtype="float32")
    args = row, index, f32(total), f32(n), y, total
    return cleared(run(coo_segments_spmv, (cdiv(total, 1024),), args, y, BLOCK=1024, num_warps=4), y)


@triton.jit
def sparse_columns_gather_24(meta_ptr, val_ptr, x_ptr, y_ptr, M, K, N, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Two of four: a byte holds the places of two kept values of each of two groups; the matrix is made dense in registers.
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    kk = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for k0 in range(0, K, BK):
        k = k0 + kk
        byte = tl.load(meta_ptr + m[:, None] * (K // 8) + (k // 8)[None, :]).to(tl.int32)
        nibble = (byte >> ((k // 4 % 2) * 4)[None, :]) & 15
        first, second = nibble & 3, nibble >> 2
        place = (k % 4)[None, :]
        slot = m[:, None] * (K // 2) + (k // 4 * 2)[None, :]
        va, vb = tl.load(val_ptr + slot), tl.load(val_ptr + slot + 1)
        a = tl.where(place == first, va, 0.0) + tl.where(place == second, vb, 0.0)
        b = tl.load(x_ptr + k[:, None] * N + n[None, :])
        acc = tl.dot(a.to(tl.float16), b, acc)
    tl.store(y_ptr + m[:, None] * N + n[None, :], acc.to(tl.float16))


@case
def gemm_two_of_four_expanded():
    m, k, n = 2048, 1024, 512
    pairs = torch.tensor([4, 8, 12, 9, 13, 14], device="cuda", dtype=torch.int32)
    nibbles = pairs[ints(0, 6, m, k // 8, 2).long()]
    meta = (nibbles[..., 0] | nibbles[..., 1] << 4).to(torch.uint8)
    y = zeros(m, n)
    return run(sparse_columns_gather_24, (m // 64, n // 64), (meta, rand(m, k // 2), rand(k, n), y, m, k, n), y, BM=64, BN=64, BK=64, num_warps=4)


@triton.jit
def jaccard_of_edges(rowptr, col, src_ptr, dst_ptr, out_ptr, E, BLOCK: tl.constexpr):
    # A pair of nodes a program: rows against each other as tiles.
    for e in range(tl.program_id(0), E, tl.num_programs(0)):
        u, v = tl.load(src_ptr + e), tl.load(dst_ptr + e)
        u0, u1 = tl.load(rowptr + u), tl.load(rowptr + u + 1)
        v0, v1 = tl.load(rowptr + v), tl.load(rowptr + v + 1)
        common = tl.zeros((BLOCK,), tl.int32)
        for i in range(u0, u1, BLOCK):
            a_off = i + tl.arange(0, BLOCK)
            a = tl.load(col + a_off, mask=a_off < u1, other=-1)
            for j in range(v0, v1, BLOCK):
                b_off = j + tl.arange(0, BLOCK)
                b = tl.load(col + b_off, mask=b_off < v1, other=-2)
                common += tl.max((a[:, None] == b[None, :]).to(tl.int32), axis=1)
        both = tl.sum(common)
        union = (u1 - u0) + (v1 - v0) - both
        tl.store(out_ptr + e, both.to(tl.float32) / tl.maximum(union, 1).to(tl.float32))


@case
def jaccard_similarity_of_pairs():
    n, e = 2000, 60000
    start, index, _ = csr(n, n, 5, 90, ordered=True)
    out = zeros(e, dtype="float32")
    return run(jaccard_of_edges, (132 * 16,), (start, index, ints(0, n, e), ints(0, n, e), out, e), out, BLOCK=32, num_warps=1)
