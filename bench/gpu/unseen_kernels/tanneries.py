"""Tanneries: chances, prices, graphs, strings, places and packings: paths of options, walkers, trees of prices, shared neighbors, frontiers in bits, edits, subsequences in words, likeliest states, nearest and means, packed pixels, odd axes, escape in fixed point, closures, polygons, deltas."""

import math

import torch
import torch.nn.functional as F
import triton
import triton.language as tl
from triton.language.extra import libdevice

from .common import against, arange, case, cdiv, cleared, f32, ints, run, uniform, viewed, zeros


@triton.jit
def paths_of_averages_kernel(price_ptr, var_ptr, seed, n_paths, n_steps, spot, strike, drift, vol, BLOCK: tl.constexpr):
    # Asian options by Monte Carlo: normal numbers by Box and Muller from Philox, two steps of each pair of them.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ok = i < n_paths
    log_s = tl.zeros((BLOCK,), dtype=tl.float32)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for step in range(n_steps // 2):
        u, v, _, _ = tl.rand4x(seed, step * n_paths + i)
        radius = tl.sqrt(-2.0 * tl.log(tl.maximum(u, 1.0e-7)))
        log_s += drift + vol * radius * tl.cos(6.2831853 * v)
        total += tl.exp(log_s)
        log_s += drift + vol * radius * tl.sin(6.2831853 * v)
        total += tl.exp(log_s)
    pay = tl.maximum(spot * total / n_steps - strike, 0.0)
    pay = tl.where(ok, pay, 0.0)
    mean = tl.sum(pay, 0) / BLOCK
    tl.store(price_ptr + tl.program_id(0), mean)
    tl.store(var_ptr + tl.program_id(0), tl.sum(pay * pay, 0) / BLOCK - mean * mean)


def philox(seed, counter):
    """Four words of Philox of ten rounds, as 64-bit integers, for each counter below 2^32."""
    word = 0xFFFFFFFF
    c0, c1, c2, c3 = counter, 0 * counter, 0 * counter, 0 * counter
    k0, k1 = seed & word, seed >> 32
    for _ in range(10):
        p, q = 0xD2511F53 * c0, 0xCD9E8D57 * c2
        c0, c1, c2, c3 = (q >> 32 & word) ^ c1 ^ k0, q & word, (p >> 32 & word) ^ c3 ^ k1, p & word
        k0, k1 = k0 + 0x9E3779B9 & word, k1 + 0xBB67AE85 & word
    return c0, c1, c2, c3


@case
def tannery_of_paths_of_averages(n_paths=400_000, n_steps=64, seed=20240607, block=512):
    spot, strike, drift, vol = 100.0, 95.0, 0.0005, 0.03
    price, var = zeros(cdiv(n_paths, block), dtype="float32"), zeros(cdiv(n_paths, block), dtype="float32")
    args = price, var, seed, n_paths, n_steps, spot, strike, drift, vol
    launched = run(paths_of_averages_kernel, (cdiv(n_paths, block),), args, (price, var), BLOCK=block, num_warps=4)

    def reference():
        i = arange(n_paths, "int64")
        log_s = total = torch.zeros(n_paths, dtype=torch.float64, device=i.device)
        for step in range(n_steps // 2):
            u, v = philox(seed, step * n_paths + i)[:2]
            u, v = (torch.where(w >= 2**31, 2**32 - 1 - w, w).float() * 4.6566127342e-10 for w in (u, v))
            radius = (-2 * u.clamp(min=1e-7).double().log()).sqrt()
            for wave in (torch.cos, torch.sin):
                log_s = log_s + drift + vol * radius * wave(2 * math.pi * v.double())
                total = total + log_s.exp()
        pay = F.pad((spot * total / n_steps - strike).clamp(min=0), (0, -n_paths % block)).view(-1, block)
        return pay.mean(1), pay.var(1, correction=0)

    return against(launched, reference)


@triton.jit
def walkers_with_own_dice_kernel(xy_ptr, far_ptr, n, steps, seed, BLOCK: tl.constexpr):
    # Walkers on a lattice that reflect at walls; the dice are a congruential generator of 64 bits with mixed outputs.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    state = (i.to(tl.uint64) * 2 + 1) * 0x9E3779B97F4A7C15 + seed.to(tl.uint64)
    x = tl.zeros((BLOCK,), tl.int32)
    y = tl.zeros((BLOCK,), tl.int32)
    most = tl.zeros((BLOCK,), tl.int32)
    for _ in range(steps):
        state = state * 6364136223846793005 + 1442695040888963407
        mixed = (((state >> 18) ^ state) >> 27).to(tl.uint32)
        turn = (state >> 59).to(tl.uint32)
        word = (mixed >> turn) | (mixed << ((32 - turn) & 31))
        way = (word & 3).to(tl.int32)
        dx = tl.where(way == 0, 1, tl.where(way == 1, -1, 0))
        dy = tl.where(way == 2, 1, tl.where(way == 3, -1, 0))
        x = tl.where(tl.abs(x + dx) > 12, x - dx, x + dx)
        y = tl.where(tl.abs(y + dy) > 9, y - dy, y + dy)
        most = tl.maximum(most, tl.abs(x) + tl.abs(y))
    tl.store(xy_ptr + i * 2, x, mask=i < n)
    tl.store(xy_ptr + i * 2 + 1, y, mask=i < n)
    tl.store(far_ptr + i, most, mask=i < n)


@case
def tannery_of_walkers(n=150_000, steps=200, seed=77):
    xy, most = zeros(n, 2, dtype="int32"), zeros(n, dtype="int32")
    launched = run(walkers_with_own_dice_kernel, (cdiv(n, 256),), (xy, most, n, steps, seed), (xy, most), BLOCK=256, num_warps=2)

    def reference():
        i = arange(n, "int64")
        state = (i * 2 + 1) * (0x9E3779B97F4A7C15 - 2**64) + seed
        x, y, m = torch.zeros_like(i), torch.zeros_like(i), torch.zeros_like(i)
        for _ in range(steps):
            state = state * 6364136223846793005 + 1442695040888963407
            mixed = (((state >> 18 & (1 << 46) - 1) ^ state) >> 27) & 0xFFFFFFFF
            turn = state >> 59 & 31
            way = (mixed | mixed << 32) >> turn & 3
            dx, dy = (way == 0).long() - (way == 1).long(), (way == 2).long() - (way == 3).long()
            x = torch.where((x + dx).abs() > 12, x - dx, x + dx)
            y = torch.where((y + dy).abs() > 9, y - dy, y + dy)
            m = torch.maximum(m, x.abs() + y.abs())
        return torch.stack([x, y], 1), m

    return against(launched, reference)


@triton.jit
def tree_of_put_prices_kernel(s_ptr, k_ptr, vol_ptr, out_ptr, rate, years, steps, BLOCK: tl.constexpr):
    # American puts on a binomial tree: a level of it is a vector, whose neighbor comes by a gather.
    o = tl.program_id(0)
    s = tl.load(s_ptr + o)
    k = tl.load(k_ptr + o)
    vol = tl.load(vol_ptr + o)
    dt = years / steps
    up = vol * tl.sqrt(dt)
    grow = tl.exp(rate * dt)
    d = tl.exp(-up)
    p = (grow - d) / (tl.exp(up) - d)
    j = tl.arange(0, BLOCK)
    next_j = tl.minimum(j + 1, BLOCK - 1)
    log_s = tl.log(s)
    value = tl.maximum(k - tl.exp(log_s + up * (2 * j - steps).to(tl.float32)), 0.0)
    value = tl.where(j <= steps, value, 0.0)
    for back in range(1, steps + 1):
        level = steps - back
        held = (p * tl.gather(value, next_j, 0) + (1.0 - p) * value) / grow
        now = k - tl.exp(log_s + up * (2 * j - level).to(tl.float32))
        value = tl.where(j <= level, tl.maximum(held, now), 0.0)
    tl.store(out_ptr + o, tl.sum(tl.where(j == 0, value, 0.0), 0))


@case
def tannery_of_put_trees(n=4000, steps=240, rate=0.03, years=1.0):
    s, k, vol, out = uniform(n) * 40 + 80, uniform(n) * 40 + 80, uniform(n) * 0.3 + 0.1, zeros(n, dtype="float32")
    launched = run(tree_of_put_prices_kernel, (n,), (s, k, vol, out, rate, years, steps), out, BLOCK=256, num_warps=2)

    def reference():
        dt = years / steps
        up = vol.double() * dt**0.5
        grow = math.exp(rate * dt)
        p = ((grow - (-up).exp()) / (up.exp() - (-up).exp()))[:, None]

        def exercised(level):
            return k[:, None] - s[:, None] * (up[:, None] * (2 * arange(level + 1) - level)).exp()

        v = exercised(steps).clamp(min=0)
        for level in range(steps - 1, -1, -1):
            v = torch.maximum((p * v[:, 1:] + (1 - p) * v[:, :-1]) / grow, exercised(level))
        return v[:, 0]

    return against(launched, reference)


@triton.jit
def shared_neighbors_kernel(ptr_ptr, adj_ptr, u_ptr, v_ptr, shared_ptr, jaccard_ptr, n_edges, BLOCK: tl.constexpr):
    # For each edge: how many neighbors its ends share, by a binary search in the second's sorted list for each of the first's.
    e = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ok = e < n_edges
    u = tl.load(u_ptr + e, mask=ok, other=0)
    v = tl.load(v_ptr + e, mask=ok, other=0)
    ub = tl.load(ptr_ptr + u)
    ue = tl.where(ok, tl.load(ptr_ptr + u + 1), ub)
    vb = tl.load(ptr_ptr + v)
    ve = tl.load(ptr_ptr + v + 1)
    count = tl.zeros((BLOCK,), dtype=tl.int32)
    longest = tl.max(ue - ub, 0)
    i = 0
    while i < longest:
        live = ub + i < ue
        w = tl.load(adj_ptr + ub + i, mask=live, other=-1)
        lo = vb
        hi = tl.where(live, ve, vb)
        while tl.max((lo < hi).to(tl.int32), 0) > 0:
            mid = (lo + hi) // 2
            x = tl.load(adj_ptr + mid, mask=lo < hi, other=0)
            less = (x < w) & (lo < hi)
            hi = tl.where((lo < hi) & (x >= w), mid, hi)
            lo = tl.where(less, mid + 1, lo)
        hit = tl.load(adj_ptr + lo, mask=live & (lo < ve), other=-2) == w
        count += (live & hit).to(tl.int32)
        i += 1
    union = (ue - ub) + (ve - vb) - count
    tl.store(shared_ptr + e, count, mask=ok)
    tl.store(jaccard_ptr + e, count.to(tl.float32) / tl.maximum(union, 1).to(tl.float32), mask=ok)


@case
def tannery_of_shared_neighbors(nodes=4000, share=0.008, edges=150_000):
    dense = uniform(nodes, nodes) < share
    where = dense.nonzero()
    ptr = F.pad(dense.sum(1).cumsum(0), (1, 0)).to(torch.int32)
    adj = where[:, 1].to(torch.int32).contiguous()
    u, v = ints(0, nodes, edges), ints(0, nodes, edges)
    shared, jaccard = zeros(edges, dtype="int32"), zeros(edges, dtype="float32")
    launched = run(shared_neighbors_kernel, (cdiv(edges, 64),), (ptr, adj, u, v, shared, jaccard, edges), (shared, jaccard), BLOCK=64, num_warps=2)

    def reference():
        both = (dense.float() @ dense.float().t()).round()[u.long(), v.long()]
        degree = dense.sum(1)
        return both, both / (degree[u.long()] + degree[v.long()] - both).clamp(min=1)

    return against(launched, reference)


@triton.jit
def frontier_in_bits_kernel(src_ptr, dst_ptr, frontier_ptr, visited_ptr, next_ptr, edges, BLOCK: tl.constexpr):
    # A step of breadth first search over edges in any order; sets of nodes are bits of words.
    for start in range(tl.program_id(0) * BLOCK, edges, tl.num_programs(0) * BLOCK):
        e = start + tl.arange(0, BLOCK)
        ok = e < edges
        s = tl.load(src_ptr + e, mask=ok, other=0, eviction_policy="evict_first")
        d = tl.load(dst_ptr + e, mask=ok, other=0, eviction_policy="evict_first")
        on = ok & (((tl.load(frontier_ptr + (s >> 5), mask=ok, other=0) >> (s & 31)) & 1) != 0)
        seen = ((tl.load(visited_ptr + (d >> 5), mask=on, other=-1) >> (d & 31)) & 1) != 0
        bit = tl.full((BLOCK,), 1, tl.int32) << (d & 31)
        tl.atomic_or(next_ptr + (d >> 5), bit, mask=on & (~seen))


def bits_of(words):
    return ((words[:, None] >> arange(32)) & 1).flatten()


@case
def tannery_of_frontiers(nodes=1 << 20, edges=8_000_000):
    src, dst = ints(0, nodes, edges), ints(0, nodes, edges)
    frontier = ints(-(2**31), 2**31, nodes // 32) & ints(-(2**31), 2**31, nodes // 32) & ints(-(2**31), 2**31, nodes // 32)
    visited = frontier | ints(-(2**31), 2**31, nodes // 32)
    new = zeros(nodes // 32, dtype="int32")
    launched = run(frontier_in_bits_kernel, (1056,), (src, dst, frontier, visited, new, edges), new, BLOCK=1024, num_warps=4)

    def reference():
        reached = torch.zeros(nodes, dtype=torch.int32, device=src.device)
        reached[dst[bits_of(frontier)[src.long()] != 0].long()] = 1
        return reached * (1 - bits_of(visited))

    return against(viewed(cleared(launched, new), bits_of), reference)


@triton.jit
def _least(a, b):
    return tl.minimum(a, b)


@triton.jit
def edits_of_pairs_kernel(a_ptr, b_ptr, la_ptr, lb_ptr, out_ptr, L, BLOCK: tl.constexpr):
    # Levenshtein's distance of a pair of strings: rows of the table, where insertions are a running least.
    p = tl.program_id(0)
    la = tl.load(la_ptr + p)
    lb = tl.load(lb_ptr + p)
    j = tl.arange(0, BLOCK)
    prev = tl.maximum(j - 1, 0)
    b = tl.load(b_ptr + p * L + j - 1, mask=(j > 0) & (j <= lb), other=0).to(tl.int32)
    row = j
    for i in range(la):
        c = tl.load(a_ptr + p * L + i).to(tl.int32)
        diagonal = tl.gather(row, prev, 0) + tl.where(b == c, 0, 1)
        best = tl.where(j == 0, i + 1, tl.minimum(diagonal, row + 1))
        row = tl.associative_scan(best - j, 0, _least) + j
    tl.store(out_ptr + p, tl.sum(tl.where(j == lb, row, 0), 0))


@case
def tannery_of_edits(pairs=3000, length=120):
    a, b = ints(65, 69, pairs, length, dtype="uint8"), ints(65, 69, pairs, length, dtype="uint8")
    la, lb = ints(length // 2, length + 1, pairs), ints(length // 2, length + 1, pairs)
    out = zeros(pairs, dtype="int32")
    launched = run(edits_of_pairs_kernel, (pairs,), (a, b, la, lb, out, length), out, BLOCK=128, num_warps=1)

    def reference():
        i = arange(pairs, "int64")
        table = torch.zeros(length + 1, length + 1, pairs, dtype=torch.int32, device=a.device)
        table[0] = arange(length + 1)[:, None]
        table[:, 0] = arange(length + 1)[:, None]
        at, bt = a.t().contiguous(), b.t().contiguous()
        # Cells of an antidiagonal do not depend on one another.
        for d in range(2, 2 * length + 1):
            r = torch.arange(max(1, d - length), min(length, d - 1) + 1, device=a.device)
            c = d - r
            other = torch.minimum(table[r - 1, c], table[r, c - 1]) + 1
            table[r, c] = torch.minimum(table[r - 1, c - 1] + (at[r - 1] != bt[c - 1]).int(), other)
        return table[la.long(), lb.long(), i]

    return against(launched, reference)


@triton.jit
def subsequences_in_words_kernel(pat_ptr, text_ptr, out_ptr, pairs, P, T, BLOCK: tl.constexpr):
    # The longest common subsequence of a short and a long string of four letters: a word of 64 bits is a row of the table.
    q = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ok = q < pairs
    one = tl.full((BLOCK,), 1, tl.int64)
    m0 = tl.zeros((BLOCK,), tl.int64)
    m1 = tl.zeros((BLOCK,), tl.int64)
    m2 = tl.zeros((BLOCK,), tl.int64)
    m3 = tl.zeros((BLOCK,), tl.int64)
    for i in range(P):
        c = tl.load(pat_ptr + i * pairs + q, mask=ok, other=0)
        bit = one << i
        m0 |= tl.where(c == 0, bit, 0)
        m1 |= tl.where(c == 1, bit, 0)
        m2 |= tl.where(c == 2, bit, 0)
        m3 |= tl.where(c == 3, bit, 0)
    row = tl.full((BLOCK,), -1, tl.int64)
    for t in range(T):
        c = tl.load(text_ptr + t * pairs + q, mask=ok, other=0)
        m = tl.where(c == 0, m0, tl.where(c == 1, m1, tl.where(c == 2, m2, m3)))
        both = row & m
        row = (row + both) | (row & (~m))
    length = tl.zeros((BLOCK,), tl.int32)
    for i in range(P):
        length += 1 - ((row >> i) & 1).to(tl.int32)
    tl.store(out_ptr + q, length.to(tl.int8), mask=ok)


@case
def tannery_of_subsequences(pairs=200_000, p=61, t=200):
    pat, text = ints(0, 4, p, pairs, dtype="int8"), ints(0, 4, t, pairs, dtype="int8")
    out = zeros(pairs, dtype="int8")
    launched = run(subsequences_in_words_kernel, (cdiv(pairs, 256),), (pat, text, out, pairs, p, t), out, BLOCK=256, num_warps=4)

    def reference():
        row = torch.zeros(p + 1, pairs, dtype=torch.int16, device=pat.device)
        for i in range(t):
            take = torch.where(pat == text[i], row[:-1] + 1, row[1:])
            row = F.pad(take.t(), (1, 0)).t().cummax(0)[0]
        return row[-1]

    return against(launched, reference)


@triton.jit
def likeliest_states_kernel(obs_ptr, trans_ptr, emit_ptr, back_ptr, score_ptr, path_ptr, T, SYMBOLS, S: tl.constexpr):
    # Viterbi's way of one sequence in a program: forward with pointers kept as bytes, then back along them.
    b = tl.program_id(0)
    i = tl.arange(0, S)
    trans = tl.load(trans_ptr + i[:, None] * S + i[None, :])
    first = tl.load(obs_ptr + b * T).to(tl.int32)
    score = tl.load(emit_ptr + i * SYMBOLS + first)
    for t in range(1, T):
        o = tl.load(obs_ptr + b * T + t).to(tl.int32)
        cand = score[:, None] + trans
        best, arg = tl.max(cand, axis=0, return_indices=True)
        tl.store(back_ptr + (b * T + t) * S + i, arg.to(tl.int8))
        score = best + tl.load(emit_ptr + i * SYMBOLS + o)
    top, last = tl.max(score, axis=0, return_indices=True)
    tl.store(score_ptr + b, top)
    tl.store(path_ptr + b * T + T - 1, last.to(tl.int8))
    tl.debug_barrier()
    state = last
    for k in range(1, T):
        t = T - k
        row = tl.load(back_ptr + (b * T + t) * S + i).to(tl.int32)
        state = tl.sum(tl.where(i == state, row, 0), axis=0)
        tl.store(path_ptr + b * T + t - 1, state.to(tl.int8))


@case
def tannery_of_likeliest_states(batch=3000, t=120, s=32, symbols=10):
    obs = ints(0, symbols, batch, t, dtype="int16")
    trans, emit = -ints(0, 64, s, s).float(), -ints(0, 64, s, symbols).float()
    back, score, path = zeros(batch, t, s, dtype="int8"), zeros(batch, dtype="float32"), zeros(batch, t, dtype="int8")
    launched = run(likeliest_states_kernel, (batch,), (obs, trans, emit, back, score, path, t, symbols), (score, path), S=s, num_warps=1)

    def reference():
        v, pointers = emit[:, obs[:, 0].long()].t(), []
        for i in range(1, t):
            cand = v[:, :, None] + trans
            best = cand.amax(1)
            pointers.append(torch.where(cand == best[:, None], arange(s, "int64")[:, None], s).amin(1))
            v = best + emit[:, obs[:, i].long()].t()
        top = v.amax(1)
        state = torch.where(v == top[:, None], arange(s, "int64"), s).amin(1)
        states = [state]
        for p in pointers[::-1]:
            state = p.gather(1, state[:, None])[:, 0]
            states.append(state)
        return top, torch.stack(states[::-1], 1)

    return against(launched, reference)


@triton.jit
def nearest_with_place_kernel(q_ptr, r_ptr, norm_ptr, dist_ptr, place_ptr, NQ, NR, D: tl.constexpr, BQ: tl.constexpr, BR: tl.constexpr):
    # The nearest reference of each query and where it is: products by dots, the least of each column of tiles kept in lanes till the end.
    q = tl.program_id(0) * BQ + tl.arange(0, BQ)
    d = tl.arange(0, D)
    x = tl.load(q_ptr + q[:, None] * D + d[None, :], mask=q[:, None] < NQ, other=0.0)
    best = tl.full((BQ, BR), float("inf"), dtype=tl.float32)
    where = tl.zeros((BQ, BR), dtype=tl.int32)
    for r0 in tl.range(0, NR, BR, num_stages=3):
        r = r0 + tl.arange(0, BR)
        y = tl.load(r_ptr + r[:, None] * D + d[None, :], mask=r[:, None] < NR, other=0.0)
        n = tl.load(norm_ptr + r, mask=r < NR, other=float("inf"))
        dist = n[None, :] - 2.0 * tl.dot(x, y.T)
        closer = dist < best
        best = tl.where(closer, dist, best)
        where = tl.where(closer, r[None, :], where)
    least = tl.min(best, axis=1)
    place = tl.min(tl.where(best == least[:, None], where, 2147483647), axis=1)
    xf = x.to(tl.float32)
    tl.store(dist_ptr + q, least + tl.sum(xf * xf, axis=1), mask=q < NQ)
    tl.store(place_ptr + q, place, mask=q < NQ)


@case
def tannery_of_nearest_with_place(nq=12000, nr=9001, d=64):
    q, r = ints(-9, 10, nq, d).half(), ints(-9, 10, nr, d).half()
    norm = r.float().square().sum(1)
    dist, place = zeros(nq, dtype="float32"), zeros(nq, dtype="int32")
    launched = run(nearest_with_place_kernel, (cdiv(nq, 64),), (q, r, norm, dist, place, nq, nr), (dist, place), D=d, BQ=64, BR=128, num_warps=8)

    def reference():
        least, at = [], []
        for part in q.float().split(2000):
            d2 = (part.square().sum(1)[:, None] + norm - 2 * (part.double() @ r.double().t())).round()
            low = d2.amin(1)
            least.append(low)
            at.append(torch.where(d2 == low[:, None], arange(nr, "int64"), nr).amin(1))
        return torch.cat(least), torch.cat(at)

    return against(launched, reference)


@triton.jit
def sums_of_clusters_kernel(x_ptr, c_ptr, sum_ptr, count_ptr, N, K: tl.constexpr, D: tl.constexpr, BLOCK: tl.constexpr):
    # Half of a round of k means: points go to their center, and one-hot rows times points add up what each center gets.
    d = tl.arange(0, D)
    k = tl.arange(0, K)
    centers = tl.load(c_ptr + k[:, None] * D + d[None, :])
    cf = centers.to(tl.float32)
    cn = tl.sum(cf * cf, axis=1)
    sums = tl.zeros((K, D), dtype=tl.float32)
    counts = tl.zeros((K,), dtype=tl.int32)
    for start in range(tl.program_id(0) * BLOCK, N, tl.num_programs(0) * BLOCK):
        i = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + i[:, None] * D + d[None, :], mask=i[:, None] < N, other=0.0)
        score = cn[None, :] - 2.0 * tl.dot(x, tl.trans(centers))
        mine = tl.argmin(score, axis=1)
        hot = (mine[:, None] == k[None, :]) & (i[:, None] < N)
        sums = tl.dot(tl.trans(hot.to(tl.float16)), x, sums)
        counts += tl.sum(hot.to(tl.int32), axis=0)
    tl.atomic_add(sum_ptr + k[:, None] * D + d[None, :], sums)
    tl.atomic_add(count_ptr + k, counts)


@case
def tannery_of_sums_of_clusters(n=600_000, k=64, d=32, programs=264):
    x, c = ints(-15, 16, n, d).half(), ints(-15, 16, k, d).half()
    sums, counts = zeros(k, d, dtype="float32"), zeros(k, dtype="int32")
    launched = run(sums_of_clusters_kernel, (programs,), (x, c, sums, counts, n), (sums, counts), K=k, D=d, BLOCK=128, num_warps=4, num_stages=2)

    def reference():
        s = (c.double().square().sum(1) - 2 * (x.double() @ c.double().t())).round()
        mine = torch.where(s == s.amin(1, keepdim=True), arange(k, "int64"), k).amin(1)
        return torch.zeros(k, d, device=x.device, dtype=torch.float64).index_add_(0, mine, x.double()), torch.bincount(mine, minlength=k)

    return against(cleared(launched, sums, counts), reference)


@triton.jit
def pixels_of_twelve_bits_kernel(raw_ptr, gain_ptr, out_ptr, H, W, row_bytes, black, BLOCK: tl.constexpr):
    # Two pixels of twelve bits in three bytes, as cameras send them; black is taken away and each color of the mosaic has its gain.
    y = tl.program_id(0)
    p = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    ok = p < W // 2
    at = raw_ptr + y * row_bytes + 3 * p
    high0 = tl.load(at, mask=ok, other=0).to(tl.int32)
    high1 = tl.load(at + 1, mask=ok, other=0).to(tl.int32)
    low = tl.load(at + 2, mask=ok, other=0).to(tl.int32)
    a = (high0 << 4) | (low & 15)
    b = (high1 << 4) | (low >> 4)
    color = gain_ptr + (y & 1) * 2
    fa = tl.maximum(a - black, 0).to(tl.float32) * tl.load(color)
    fb = tl.maximum(b - black, 0).to(tl.float32) * tl.load(color + 1)
    both = tl.interleave(fa, fb)
    x = tl.program_id(1) * (2 * BLOCK) + tl.arange(0, 2 * BLOCK)
    tl.store(out_ptr + y * W + x, tl.minimum(both, 1.0).to(tl.float16), mask=x < W)


@case
def tannery_of_pixels_of_twelve_bits(h=4000, w=6000, pad=16):
    raw = ints(0, 256, h, w // 2 * 3 + pad, dtype="uint8")
    gain, out = (uniform(4) + 1) / 4096, zeros(h, w)
    launched = run(pixels_of_twelve_bits_kernel, (h, cdiv(w // 2, 1024)), (raw, gain, out, h, w, raw.stride(0), 256), out, BLOCK=1024, num_warps=8)

    def reference():
        t = raw[:, : w // 2 * 3].int().view(h, w // 2, 3)
        v = torch.stack([t[..., 0] * 16 + t[..., 2] % 16, t[..., 1] * 16 + t[..., 2] // 16], 2).view(h, w)
        g = gain.view(2, 2).repeat(h // 2, w // 2)
        return ((v - 256).clamp(min=0) * g).clamp(max=1)

    return against(launched, reference)


@triton.jit
def shared_exponents_kernel(p_ptr, rgb_ptr, stat_ptr, n, exposure, BLOCK: tl.constexpr):
    # Colors with nine bits each and five of an exponent to tone-mapped bytes' place: as floats of three planes, and log brightness summed.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ok = i < n
    v = tl.load(p_ptr + i, mask=ok, other=0).to(tl.uint32, bitcast=True)
    e = (v >> 27).to(tl.int32) - 24
    scale = ((e + 127) << 23).to(tl.float32, bitcast=True) * exposure
    r = (v & 511).to(tl.float32) * scale
    g = ((v >> 9) & 511).to(tl.float32) * scale
    b = ((v >> 18) & 511).to(tl.float32) * scale
    luma = 0.2126 * r + 0.7152 * g + 0.0722 * b
    shrink = 1.0 / (1.0 + luma)
    tl.store(rgb_ptr + i, r * shrink, mask=ok)
    tl.store(rgb_ptr + n + i, g * shrink, mask=ok)
    tl.store(rgb_ptr + 2 * n + i, b * shrink, mask=ok)
    tl.store(stat_ptr + tl.program_id(0), tl.sum(tl.where(ok, tl.log2(luma + 1e-4), 0.0), axis=0))


@case
def tannery_of_shared_exponents(n=9_000_001, exposure=0.5):
    p = (ints(0, 1 << 27, n) | ints(10, 16, n) << 27)
    rgb, stat = zeros(3, n, dtype="float32"), zeros(cdiv(n, 2048), dtype="float32")
    launched = run(shared_exponents_kernel, (cdiv(n, 2048),), (p, rgb, stat, n, exposure), (rgb, stat), BLOCK=2048, num_warps=32)

    def reference():
        v = p.long() & 0xFFFFFFFF
        scale = torch.exp2((v >> 27).double() - 24) * exposure
        c = torch.stack([(v >> s & 511) * scale for s in (0, 9, 18)])
        luma = 0.2126 * c[0] + 0.7152 * c[1] + 0.0722 * c[2]
        return c / (1 + luma), F.pad((luma + 1e-4).log2(), (0, -n % 2048)).view(-1, 2048).sum(1)

    return against(launched, reference)


@triton.jit
def second_and_fourth_axes_kernel(x_ptr, sum_ptr, min_ptr, A, B: tl.constexpr, C, D, E, PD: tl.constexpr, PE: tl.constexpr):
    # Of five axes the second and fourth are reduced: a loop over one, a tile's axis for the other.
    a = tl.program_id(0)
    c = tl.program_id(1)
    d = tl.arange(0, PD)[:, None]
    e = tl.program_id(2) * PE + tl.arange(0, PE)
    ok = (d < D) & (e[None, :] < E)
    total = tl.zeros((PE,), dtype=tl.float32)
    low = tl.full((PE,), float("inf"), dtype=tl.float32)
    for b in range(B):
        at = (((a * B + b) * C + c) * D + d) * E + e[None, :]
        x = tl.load(x_ptr + at, mask=ok, other=0.0).to(tl.float32)
        total += tl.sum(x * x, axis=0)
        low = tl.minimum(low, tl.min(tl.where(ok, x, float("inf")), axis=0))
    tl.store(sum_ptr + (a * C + c) * E + e, total / (B * D), mask=e < E)
    tl.store(min_ptr + (a * C + c) * E + e, low, mask=e < E)


@case
def tannery_of_second_and_fourth_axes(a=12, b=14, c=40, d=27, e=190):
    x = f32(a, b, c, d, e).half()
    total, low = zeros(a, c, e, dtype="float32"), zeros(a, c, e, dtype="float32")
    launched = run(second_and_fourth_axes_kernel, (a, c, cdiv(e, 64)), (x, total, low, a), (total, low), B=b, C=c, D=d, E=e, PD=32, PE=64, num_warps=4)
    return against(launched, lambda: (x.float().square().mean((1, 3)), x.float().amin((1, 3))))


@triton.jit
def first_peak_in_the_middle_kernel(x_ptr, arg_ptr, val_ptr, M, N, BM: tl.constexpr, BN: tl.constexpr):
    # Where along the middle axis bytes are largest, the first such place; blocks of that axis one after another.
    b = tl.program_id(1).to(tl.int64)
    n = tl.program_id(0) * BN + tl.arange(0, BN)
    best = tl.full((BN,), -129, dtype=tl.int32)
    arg = tl.zeros((BN,), dtype=tl.int32)
    for m0 in range(0, M, BM):
        m = m0 + tl.arange(0, BM)
        x = tl.load(x_ptr + (b * M + m[:, None]) * N + n[None, :], mask=(m[:, None] < M) & (n[None, :] < N), other=-128).to(tl.int32)
        top = tl.max(x, axis=0)
        at = tl.argmax(x, axis=0) + m0
        arg = tl.where(top > best, at, arg)
        best = tl.maximum(best, top)
    tl.store(arg_ptr + b * N + n, arg, mask=n < N)
    tl.store(val_ptr + b * N + n, best.to(tl.int8), mask=n < N)


@case
def tannery_of_first_peaks(b=64, m=700, n=1500):
    x = ints(-120, 121, b, m, n, dtype="int8")
    arg, val = zeros(b, n, dtype="int32"), zeros(b, n, dtype="int8")
    launched = run(first_peak_in_the_middle_kernel, (cdiv(n, 128), b), (x, arg, val, m, n), (arg, val), BM=32, BN=128, num_warps=4)

    def reference():
        top = x.amax(1)
        place = torch.stack([torch.where(x[i] == top[i], arange(m)[:, None], m).amin(0) for i in range(b)])
        return place, top

    return against(launched, reference)


@triton.jit
def escape_in_fixed_point_kernel(out_ptr, W, H, left, top, step, limit, BLOCK: tl.constexpr):
    # How long points stay in Mandelbrot's set, in fixed point with 28 bits behind the point: a tile goes on while any of its points is inside.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    cx = left + (i % W).to(tl.int64) * step
    cy = top + (i // W).to(tl.int64) * step
    x = tl.zeros((BLOCK,), tl.int64)
    y = tl.zeros((BLOCK,), tl.int64)
    count = tl.zeros((BLOCK,), tl.int32)
    alive = i < W * H
    it = 0
    while (it < limit) & (tl.max(alive.to(tl.int32), axis=0) > 0):
        xx = (x * x) >> 28
        yy = (y * y) >> 28
        alive = alive & (xx + yy <= (4 << 28))
        xy = (x * y) >> 27
        x = tl.where(alive, xx - yy + cx, x)
        y = tl.where(alive, xy + cy, y)
        count += alive.to(tl.int32)
        it += 1
    tl.store(out_ptr + i, count, mask=i < W * H)


@case
def tannery_of_escapes(w=1500, h=1000, limit=100):
    left, top, step = -(2 << 28), -(1 << 28), (3 << 28) // w
    out = zeros(h, w, dtype="int32")
    launched = run(escape_in_fixed_point_kernel, (cdiv(w * h, 128),), (out, w, h, left, top, step, limit), out, BLOCK=128, num_warps=1)

    def reference():
        cx, cy = (left + arange(w, "int64") * step).expand(h, w), (top + arange(h, "int64") * step)[:, None].expand(h, w)
        x, y, n = torch.zeros_like(cx), torch.zeros_like(cx), torch.zeros_like(cx)
        alive = torch.ones_like(cx, dtype=torch.bool)
        for _ in range(limit):
            xx, yy = x * x >> 28, y * y >> 28
            alive = alive & (xx + yy <= 4 << 28)
            x, y = torch.where(alive, xx - yy + cx, x), torch.where(alive, (x * y >> 27) + cy, y)
            n += alive
        return n

    return against(launched, reference)


@triton.jit
def _return_step(g_a, v_a, g_b, v_b):
    # The scan runs from the end, so that `a` is later than `b`.
    return g_a * g_b, v_b + g_b * v_a


@triton.jit
def returns_from_the_end_kernel(r_ptr, done_ptr, out_ptr, T, N, gamma, BT: tl.constexpr, BN: tl.constexpr):
    # Discounted sums from the end of time, started anew after a flag: blocks from the last to the first, each a scan in reverse.
    n = tl.program_id(0) * BN + tl.arange(0, BN)
    carry = tl.zeros((BN,), dtype=tl.float32)
    blocks = tl.cdiv(T, BT)
    for k in range(blocks):
        t = (blocks - 1 - k) * BT + tl.arange(0, BT)
        ok = (t[:, None] < T) & (n[None, :] < N)
        at = t[:, None] * N + n[None, :]
        r = tl.load(r_ptr + at, mask=ok, other=0.0)
        done = tl.load(done_ptr + at, mask=ok, other=0)
        g = tl.where(done != 0, 0.0, gamma)
        decay, value = tl.associative_scan((g, r), 0, _return_step, reverse=True)
        value += decay * carry[None, :]
        tl.store(out_ptr + at, value, mask=ok)
        carry = tl.sum(tl.where(tl.arange(0, BT)[:, None] == 0, value, 0.0), axis=0)


@case
def tannery_of_returns_from_the_end(t=1000, n=9000, gamma=0.98):
    r, done, out = f32(t, n), uniform(t, n) < 0.02, zeros(t, n, dtype="float32")
    launched = run(returns_from_the_end_kernel, (cdiv(n, 32),), (r, done, out, t, n, gamma), out, BT=64, BN=32, num_warps=4)

    def reference():
        v, all_ = 0, []
        for i in range(t - 1, -1, -1):
            v = r[i].double() + gamma * torch.where(done[i], 0.0, v)
            all_.append(v)
        return torch.stack(all_[::-1])

    return against(launched, reference)


@triton.jit
def _or(a, b):
    return a | b


@triton.jit
def reached_in_two_steps_kernel(bits_ptr, out_ptr, degree_ptr, N, WORDS, BK: tl.constexpr, BW: tl.constexpr):
    # Who is reached in at most two steps: rows of bits of all neighbors are joined by a reduction with or.
    row = tl.program_id(0)
    w = tl.program_id(1) * BW + tl.arange(0, BW)
    acc = tl.load(bits_ptr + row * WORDS + w, mask=w < WORDS, other=0)
    for k0 in range(0, N, BK):
        k = k0 + tl.arange(0, BK)
        mine = tl.load(bits_ptr + row * WORDS + (k >> 5), mask=k < N, other=0)
        on = ((mine >> (k & 31)) & 1) != 0
        theirs = tl.load(bits_ptr + k[:, None] * WORDS + w[None, :], mask=on[:, None] & (w[None, :] < WORDS), other=0)
        acc |= tl.reduce(theirs, 0, _or)
    tl.store(out_ptr + row * WORDS + w, acc, mask=w < WORDS)
    v = acc.to(tl.uint32, bitcast=True)
    count = tl.zeros((BW,), tl.int32)
    for _ in range(32):
        count += (v & 1).to(tl.int32)
        v = v >> 1
    tl.atomic_add(degree_ptr + row, tl.sum(count, axis=0))


@case
def tannery_of_two_steps(n=3200, share=0.012):
    some = uniform(n, n) < share
    words = (some.view(n, n // 32, 32).long() << arange(32, "int64")).sum(2)
    words = torch.where(words >= 2**31, words - 2**32, words).to(torch.int32)
    out, degree = torch.zeros_like(words), zeros(n, dtype="int32")
    launched = run(reached_in_two_steps_kernel, (n, cdiv(n // 32, 64)), (words, out, degree, n, n // 32), (out, degree), BK=64, BW=64, num_warps=4)

    def view(outs):
        return bits_of(outs[0].flatten()), outs[1]

    def reference():
        two = (some | ((some.float() @ some.float()) > 0.5)).int()
        return two.flatten(), two.sum(1)

    return against(viewed(cleared(launched, degree), view), reference)


@triton.jit
def inside_of_polygons_kernel(pt_ptr, vx_ptr, vy_ptr, start_ptr, which_ptr, wind_ptr, n, polygons, BLOCK: tl.constexpr):
    # Which is the last of several polygons that a point is in, and how many it is in: crossings of each edge.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ok = i < n
    px = tl.load(pt_ptr + 2 * i, mask=ok, other=0.0)
    py = tl.load(pt_ptr + 2 * i + 1, mask=ok, other=0.0)
    which = tl.full((BLOCK,), -1, tl.int32)
    many = tl.zeros((BLOCK,), tl.int32)
    for p in range(polygons):
        a = tl.load(start_ptr + p)
        z = tl.load(start_ptr + p + 1)
        odd = tl.zeros((BLOCK,), tl.int32)
        x0 = tl.load(vx_ptr + z - 1)
        y0 = tl.load(vy_ptr + z - 1)
        for e in range(a, z):
            x1 = tl.load(vx_ptr + e)
            y1 = tl.load(vy_ptr + e)
            if y0 != y1:
                between = (y0 > py) != (y1 > py)
                cross = (x1 - x0) * (py - y0) - (px - x0) * (y1 - y0)
                odd ^= (between & ((cross > 0) == (y1 > y0))).to(tl.int32)
            x0 = x1
            y0 = y1
        which = tl.where(odd != 0, p, which)
        many += odd
    tl.store(which_ptr + i, which, mask=ok)
    tl.store(wind_ptr + i, many.to(tl.int8), mask=ok)


@case
def tannery_of_polygons(n=300_000, polygons=24):
    # Whole numbers, so that nothing rounds.
    counts = ints(3, 20, polygons)
    start = F.pad(counts.cumsum(0), (1, 0)).to(torch.int32)
    total = int(start[-1])
    vx, vy = ints(-900, 900, total).float(), ints(-900, 900, total).float()
    pt = ints(-1000, 1000, n, 2).float()
    which, many = zeros(n, dtype="int32"), zeros(n, dtype="int8")
    launched = run(inside_of_polygons_kernel, (cdiv(n, 128),), (pt, vx, vy, start, which, many, n, polygons), (which, many), BLOCK=128, num_warps=4)

    def reference():
        x, y = pt.double().t()
        w, c = torch.full((n,), -1, device=x.device), torch.zeros(n, dtype=torch.int32, device=x.device)
        for p in range(polygons):
            corners = list(range(int(start[p]), int(start[p + 1])))
            odd = torch.zeros(n, dtype=torch.bool, device=x.device)
            for a, b in zip(corners[-1:] + corners, corners):
                ax, ay, bx, by = (float(v) for v in (vx[a], vy[a], vx[b], vy[b]))
                if ay != by:
                    odd ^= ((ay > y) != (by > y)) & ((x - ax) * abs(by - ay) < (bx - ax) * (y - ay) * (1 if by > ay else -1))
            w, c = torch.where(odd, p, w), c + odd.int()
        return w, c

    return against(launched, reference)


@triton.jit
def deltas_with_signs_below_kernel(d_ptr, first_ptr, out_ptr, out32_ptr, per, BLOCK: tl.constexpr):
    # Columns stored as differences with the sign as lowest bit: undone by running sums of 64 bits.
    c = tl.program_id(0)
    base = tl.load(first_ptr + c)
    for s in range(0, per, BLOCK):
        i = s + tl.arange(0, BLOCK)
        z = tl.load(d_ptr + c * per + i, mask=i < per, other=0).to(tl.int32)
        d = (z >> 1) ^ (-(z & 1))
        run_ = tl.cumsum(d.to(tl.int64), 0) + base
        tl.store(out_ptr + c * per + i, run_, mask=i < per)
        tl.store(out32_ptr + c * per + i, (run_ & 1023).to(tl.int16), mask=i < per)
        base += tl.sum(d.to(tl.int64), 0)


@case
def tannery_of_deltas(columns=1500, per=5000):
    d, first = ints(0, 256, columns, per, dtype="uint8"), ints(-(1 << 40), 1 << 40, columns, dtype="int64")
    out, low = zeros(columns, per, dtype="int64"), zeros(columns, per, dtype="int16")
    launched = run(deltas_with_signs_below_kernel, (columns,), (d, first, out, low, per), (out, low), BLOCK=1024, num_warps=4)

    def reference():
        z = d.long()
        v = torch.where(z % 2 == 1, -(z + 1) // 2, z // 2).cumsum(1) + first[:, None]
        return v, v % 1024

    return against(launched, reference)


@triton.jit
def volatility_implied_kernel(price_ptr, s_ptr, k_ptr, t_ptr, vol_ptr, n, rate, BLOCK: tl.constexpr):
    # The volatility that a call's price implies: a few of Newton's steps that stay within bounds, in full numbers.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    price = tl.load(price_ptr + i, mask=m, other=10.0)
    s = tl.load(s_ptr + i, mask=m, other=100.0)
    k = tl.load(k_ptr + i, mask=m, other=100.0)
    t = tl.load(t_ptr + i, mask=m, other=1.0)
    root = tl.sqrt(t)
    paid = k * tl.exp(-rate * t)
    distance = tl.log(s / paid)
    vol = tl.full((BLOCK,), 0.4, tl.float32)
    for _ in range(7):
        width = vol * root
        d1 = distance / width + 0.5 * width
        value = s * libdevice.normcdf(d1) - paid * libdevice.normcdf(d1 - width)
        vega = s * root * 0.3989422804 * tl.exp(-0.5 * d1 * d1)
        vol = tl.minimum(tl.maximum(vol - (value - price) / tl.maximum(vega, 1e-3), 0.05), 2.0)
    tl.store(vol_ptr + i, vol, mask=m)


@case
def tannery_of_implied_volatility(n=3_000_000, rate=0.02):
    s, t, true = uniform(n) * 10 + 95, uniform(n) + 0.5, uniform(n) * 0.4 + 0.2
    k, vol = s * (0.9 + 0.2 * uniform(n)), zeros(n, dtype="float32")

    def value(v):
        width = v.double() * t.double().sqrt()
        paid = k.double() * torch.exp(-rate * t.double())
        d1 = (s / paid).log() / width + width / 2
        return s * torch.special.ndtr(d1) - paid * torch.special.ndtr(d1 - width)

    launched = run(volatility_implied_kernel, (cdiv(n, 256),), (value(true).float(), s, k, t, vol, n, rate), vol, BLOCK=256, num_warps=8)
    return against(launched, lambda: true)
