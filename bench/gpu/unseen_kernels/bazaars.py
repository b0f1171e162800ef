"""Bazaars: quotes, risks and auctions, tables joined and ranked, sketches, indexes of words, and models that guess what somebody will buy."""

import torch
import triton
import triton.language as tl

from .common import against, arange, case, cdiv, cleared, f32, ints, rand, run, uniform, zeros

LOG2E = 1.4426950408889634


@triton.jit
def smile_parts(log_ratio, z, rho, beta):
    root = tl.sqrt(1.0 - 2.0 * rho * z + z * z)
    x = tl.log((root + z - rho) / (1.0 - rho))
    near = tl.abs(z) < 1e-7
    ratio = tl.where(near, 1.0 - 0.5 * rho * z, z / tl.where(near, 1.0, x))
    c = (1.0 - beta) * (1.0 - beta) * log_ratio * log_ratio
    return ratio, 1.0 + c / 24.0 + c * c / 1920.0


@triton.jit
def stochastic_beta_vols(f_ptr, strike_ptr, t_ptr, a_ptr, rho_ptr, nu_ptr, out_ptr, STRIKES, BETA: tl.constexpr, BLOCK: tl.constexpr):
    # Implied volatilities of a grid of strikes for each curve by Hagan's expansion, in double.
    curve = tl.program_id(0)
    j = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    ok = j < STRIKES
    f = tl.load(f_ptr + curve)
    t = tl.load(t_ptr + curve)
    a, rho, nu = tl.load(a_ptr + curve), tl.load(rho_ptr + curve), tl.load(nu_ptr + curve)
    k = tl.load(strike_ptr + curve * STRIKES + j, mask=ok, other=1.0)
    log_ratio = tl.log(f / k)
    mid = tl.exp(tl.log(f * k) * ((1.0 - BETA) * 0.5))
    ratio, under = smile_parts(log_ratio, nu / a * mid * log_ratio, rho, BETA)
    drift = (1.0 - BETA) * (1.0 - BETA) / 24.0 * a * a / (mid * mid) + rho * BETA * nu * a / (4.0 * mid) + (2.0 - 3.0 * rho * rho) / 24.0 * nu * nu
    tl.store(out_ptr + curve * STRIKES + j, a / (mid * under) * ratio * (1.0 + drift * t), mask=ok)


@case
def bazaar_of_smiles_in_double(curves=1500, strikes=701, beta=0.6):
    def spread(low, high, *shape):
        return (uniform(*shape) * (high - low) + low).double()

    f, t, a = spread(0.01, 0.1, curves), spread(0.1, 10, curves), spread(0.02, 0.1, curves)
    rho, nu = spread(-0.7, 0.7, curves), spread(0.2, 0.8, curves)
    k = f[:, None] * spread(0.4, 2.5, curves, strikes)
    out = zeros(curves, strikes, dtype="float64")
    launched = run(stochastic_beta_vols, (curves, cdiv(strikes, 256)), (f, k, t, a, rho, nu, out, strikes), out, BETA=beta, BLOCK=256, num_warps=4)

    def reference():
        ff, tt, aa, rr, nn = (x[:, None] for x in (f, t, a, rho, nu))
        b1, log = 1 - beta, torch.log(ff / k)
        mid = (ff * k) ** (b1 / 2)
        z = nn / aa * mid * log
        x = torch.log((torch.sqrt(1 - 2 * rr * z + z * z) + z - rr) / (1 - rr))
        ratio = torch.where(z.abs() < 1e-7, 1 - rr * z / 2, z / x)
        drift = b1**2 / 24 * aa**2 / mid**2 + rr * beta * nn * aa / (4 * mid) + (2 - 3 * rr**2) / 24 * nn**2
        return aa / (mid * (1 + b1**2 * log**2 / 24 + b1**4 * log**4 / 1920)) * ratio * (1 + drift * tt)

    return against(launched, reference)


@triton.jit
def tail_losses(r_ptr, w_ptr, var_ptr, tail_ptr, ASSETS, WORST: tl.constexpr, S: tl.constexpr):
    # Losses of a portfolio in all scenarios, sorted: the one that few exceed, and the mean of those that do.
    p = tl.program_id(0)
    s = tl.arange(0, S)
    loss = tl.zeros((S,), tl.float32)
    for a in range(ASSETS):
        loss -= tl.load(w_ptr + p * ASSETS + a) * tl.load(r_ptr + a * S + s)
    loss = tl.sort(loss, descending=True)
    tl.store(var_ptr + p, tl.sum(tl.where(s == WORST, loss, 0.0), 0))
    tl.store(tail_ptr + p, tl.sum(tl.where(s < WORST, loss, 0.0), 0) / WORST)


@case
def bazaar_losses_of_portfolios_in_the_worst_scenarios(portfolios=2000, assets=40):
    r, w = f32(assets, 1024), uniform(portfolios, assets) / assets
    var, tail = zeros(portfolios, dtype="float32"), zeros(portfolios, dtype="float32")
    launched = run(tail_losses, (portfolios,), (r, w, var, tail, assets), (var, tail), WORST=51, S=1024, num_warps=4)

    def reference():
        loss = -(w.double() @ r.double()).sort(1).values
        return loss[:, 51], loss[:, :51].mean(1)

    return against(launched, reference)


@triton.jit
def second_price_slots(bid_ptr, quality_ptr, floor_ptr, winner_ptr, price_ptr, Q, ROWS: tl.constexpr, N: tl.constexpr, SLOTS: tl.constexpr):
    # Bidders are ranked by bid times quality; each of the first pays what keeps its place before the next.
    q = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    n = tl.arange(0, N)
    ok = (q < Q)[:, None]
    bid = tl.load(bid_ptr + q[:, None] * N + n[None, :], mask=ok, other=0.0)
    quality = tl.load(quality_ptr + q[:, None] * N + n[None, :], mask=ok, other=1.0)
    key = ((bid * quality).to(tl.int32, bitcast=True).to(tl.int64) << 8) | (255 - n)[None, :]
    key = tl.sort(key, 1, descending=True)
    who = 255 - (key & 255).to(tl.int32)
    score = (key >> 8).to(tl.int32).to(tl.float32, bitcast=True)
    follower = tl.gather(score, tl.broadcast_to(tl.minimum(n + 1, N - 1)[None, :], (ROWS, N)), 1)
    price = tl.maximum(follower / tl.gather(quality, who, 1), tl.load(floor_ptr + q, mask=q < Q, other=0.0)[:, None])
    out = q[:, None] * SLOTS + n[None, :]
    shown = ok & (n < SLOTS)[None, :]
    tl.store(winner_ptr + out, who, mask=shown)
    tl.store(price_ptr + out, price, mask=shown)


@case
def bazaar_places_sold_at_the_next_price(q=30_001, n=64, slots=5):
    bid, quality, floor = uniform(q, n), uniform(q, n) / 2 + 0.1, uniform(q) / 4
    winner, price = zeros(q, slots, dtype="int32"), zeros(q, slots, dtype="float32")
    launched = run(second_price_slots, (cdiv(q, 8),), (bid, quality, floor, winner, price, q), (winner, price), ROWS=8, N=n, SLOTS=slots, num_warps=4)

    def reference():
        score, who = (bid * quality).sort(dim=1, descending=True, stable=True)
        paid = score[:, 1 : slots + 1] / quality.gather(1, who[:, :slots])
        return who[:, :slots].int(), torch.maximum(paid, floor[:, None])

    return against(launched, reference)


@triton.jit
def slot_of_long(key, BITS: tl.constexpr):
    x = key.to(tl.uint64, bitcast=True)
    x = (x ^ (x >> 31)) * 0x9E3779B97F4A7C15
    return (x >> (64 - BITS)).to(tl.int32)


@triton.jit
def build_open_table(key_ptr, table_ptr, value_ptr, N, BITS: tl.constexpr, BLOCK: tl.constexpr):
    # Each key claims the first empty slot from its hash on by compare-and-swap, and leaves its row's number there.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    key = tl.load(key_ptr + i, mask=i < N, other=-1)
    pending = i < N
    slot = slot_of_long(key, BITS)
    while tl.max(pending.to(tl.int32), 0) > 0:
        # Lanes that are done compare with what is never there.
        seen = tl.atomic_cas(table_ptr + slot, tl.where(pending, 0, -1).to(tl.int64), tl.where(pending, key, -1))
        won = pending & (seen == 0)
        tl.store(value_ptr + slot, i, mask=won)
        pending = pending & (seen != 0)
        slot = tl.where(pending, (slot + 1) & ((1 << BITS) - 1), slot)


@triton.jit
def probe_open_table(key_ptr, table_ptr, value_ptr, out_ptr, N, BITS: tl.constexpr, BLOCK: tl.constexpr):
    # Keys of the other side walk from their hash to an equal key or an empty slot.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    key = tl.load(key_ptr + i, mask=i < N, other=0)
    going = i < N
    slot = slot_of_long(key, BITS)
    row = tl.full((BLOCK,), -1, tl.int32)
    while tl.max(going.to(tl.int32), 0) > 0:
        there = tl.load(table_ptr + slot, mask=going, other=0)
        row = tl.where(going & (there == key), tl.load(value_ptr + slot, mask=going & (there == key), other=-1), row)
        going = going & (there != key) & (there != 0)
        slot = (slot + 1) & ((1 << BITS) - 1)
    tl.store(out_ptr + i, row, mask=i < N)


@case
def bazaar_ledgers_joined_by_hashed_long_keys(build=300_001, probe=1_500_000, bits=19):
    order = torch.randperm(2 * build, device="cuda")
    left = (order[:build] + 1) * 2654435761
    asked = ints(0, 2 * build, probe, dtype="int64")
    right = (asked + 1) * 2654435761
    table, value = zeros(1 << bits, dtype="int64"), zeros(1 << bits, dtype="int32")
    out = zeros(probe, dtype="int32")

    def launch(left, right, table, value, out):
        build_open_table[(cdiv(build, 256),)](left, table, value, build, BITS=bits, BLOCK=256, num_warps=4)
        probe_open_table[(cdiv(probe, 512),)](right, table, value, out, probe, BITS=bits, BLOCK=512, num_warps=4)
        return out

    def reference():
        where = torch.full((2 * build,), -1, dtype=torch.int32, device="cuda")
        where[order[:build]] = arange(build)
        return where[asked]

    return against(cleared((launch, (left, right, table, value, out)), table), reference)


@triton.jit
def merged_groups(f0, s0, l0, h0, n0, f1, s1, l1, h1, n1):
    s = tl.where(f1 != 0, s1, s0 + s1)
    l = tl.where(f1 != 0, l1, tl.minimum(l0, l1))
    h = tl.where(f1 != 0, h1, tl.maximum(h0, h1))
    n = tl.where(f1 != 0, n1, n0 + n1)
    return f0 | f1, s, l, h, n


@triton.jit
def aggregate_sorted(key_ptr, x_ptr, key_out, sum_ptr, low_ptr, high_ptr, n_ptr, groups_ptr, N: tl.constexpr):
    # Groups of equal keys of a sorted page: sum, least, largest and count by one segmented scan, written one after another.
    page = tl.program_id(0)
    i = tl.arange(0, N)
    key = tl.load(key_ptr + page * N + i)
    x = tl.load(x_ptr + page * N + i)
    before = tl.load(key_ptr + page * N + i - 1, mask=i > 0, other=-1)
    after = tl.load(key_ptr + page * N + i + 1, mask=i < N - 1, other=-1)
    first = ((i == 0) | (before != key)).to(tl.int32)
    last = (i == N - 1) | (after != key)
    one = tl.full((N,), 1, tl.int32)
    _, s, low, high, n = tl.associative_scan((first, x.to(tl.int64), x, x, one), 0, merged_groups)
    at = page * N + tl.cumsum(first, 0) - 1
    tl.store(key_out + at, key, mask=last)
    tl.store(sum_ptr + at, s, mask=last)
    tl.store(low_ptr + at, low, mask=last)
    tl.store(high_ptr + at, high, mask=last)
    tl.store(n_ptr + at, n, mask=last)
    tl.store(groups_ptr + page, tl.sum(first, 0))


@case
def bazaar_sales_summed_by_sorted_keys(pages=1500, n=1024):
    key = ints(0, 300, pages, n).sort(1).values
    x = ints(-(1 << 30), 1 << 30, pages, n)
    outs = [zeros(pages, n, dtype=d) for d in ("int32", "int64", "int32", "int32", "int32")]
    groups = zeros(pages, dtype="int32")
    launched = run(aggregate_sorted, (pages,), (key, x, *outs, groups), (*outs, groups), N=n, num_warps=4)

    def reference():
        new = torch.ones(pages, n, dtype=torch.bool, device="cuda")
        new[:, 1:] = key[:, 1:] != key[:, :-1]
        at = new.long().cumsum(1) - 1
        empty = torch.zeros(pages, n, dtype=torch.int64, device="cuda")
        keys = empty.scatter(1, at, key.long())
        total, count = empty.scatter_add(1, at, x.long()), empty.scatter_add(1, at, torch.ones_like(at))
        low = empty.scatter_reduce(1, at, x.long(), "amin", include_self=False)
        high = empty.scatter_reduce(1, at, x.long(), "amax", include_self=False)
        return keys.int(), total, low.int(), high.int(), count.int(), new.sum(1).int()

    return against(launched, reference)


@triton.jit
def later(a, b):
    return tl.maximum(a, b)


@triton.jit
def ranks_in_partitions(part_ptr, x_ptr, rank_ptr, dense_ptr, lag_ptr, N: tl.constexpr):
    # Rank, dense rank and the row before, over partitions of rows that are sorted already.
    page = tl.program_id(0)
    i = tl.arange(0, N)
    part = tl.load(part_ptr + page * N + i)
    x = tl.load(x_ptr + page * N + i)
    part_before = tl.load(part_ptr + page * N + i - 1, mask=i > 0, other=-1)
    x_before = tl.load(x_ptr + page * N + i - 1, mask=i > 0, other=0.0)
    opens = part != part_before
    new = opens | (x != x_before)
    start = tl.associative_scan(tl.where(opens, i, 0), 0, later)
    tie = tl.associative_scan(tl.where(new, i, 0), 0, later)
    seen = tl.cumsum(new.to(tl.int32), 0)
    base = tl.associative_scan(tl.where(opens, seen, 0), 0, later)
    tl.store(rank_ptr + page * N + i, tie - start + 1)
    tl.store(dense_ptr + page * N + i, seen - base + 1)
    tl.store(lag_ptr + page * N + i, tl.where(opens, -1.0, x_before))


@case
def bazaar_sellers_ranked_with_ties(pages=1800, n=2048):
    key = (ints(0, 40, pages, n) * 64 + ints(0, 64, pages, n)).sort(1).values
    part, x = key // 64, (key % 64).float() / 4
    rank, dense, lag = zeros(pages, n, dtype="int32"), zeros(pages, n, dtype="int32"), zeros(pages, n, dtype="float32")
    launched = run(ranks_in_partitions, (pages,), (part, x, rank, dense, lag), (rank, dense, lag), N=n, num_warps=8)

    def reference():
        i = arange(n)[None, :].expand(pages, n)
        edge = torch.full((pages, 1), True, device="cuda")
        opens = torch.cat([edge, part[:, 1:] != part[:, :-1]], 1)
        new = torch.cat([edge, key[:, 1:] != key[:, :-1]], 1)
        start, tie = (torch.where(m, i, 0).cummax(1).values for m in (opens, new))
        seen = new.int().cumsum(1)
        base = torch.where(opens, seen, 0).cummax(1).values
        before = torch.cat([x[:, :1], x[:, :-1]], 1)
        return (tie - start + 1).int(), (seen - base + 1).int(), before.masked_fill(opens, -1.0)

    return against(launched, reference)


@triton.jit
def words_found(term_ptr, idf_ptr, start_ptr, doc_ptr, tf_ptr, length_ptr, score_ptr, average, DOCS, TERMS, BLOCK: tl.constexpr):
    # One word of a query: its list of documents adds to their scores by BM25.
    q, word = tl.program_id(0), tl.program_id(1)
    term = tl.load(term_ptr + q * TERMS + word)
    begin, end = tl.load(start_ptr + term), tl.load(start_ptr + term + 1)
    idf = tl.load(idf_ptr + term)
    for p0 in range(begin + tl.program_id(2) * BLOCK, end, BLOCK * tl.num_programs(2)):
        p = p0 + tl.arange(0, BLOCK)
        ok = p < end
        doc = tl.load(doc_ptr + p, mask=ok, other=0)
        tf = tl.load(tf_ptr + p, mask=ok, other=0).to(tl.float32)
        length = tl.load(length_ptr + doc, mask=ok, other=1).to(tl.float32)
        score = idf * tf * 2.2 / (tf + 1.2 * (0.25 + 0.75 * length / average))
        tl.atomic_add(score_ptr + q * DOCS + doc, score, mask=ok, sem="relaxed")


@case
def bazaar_goods_found_by_words(queries=48, docs=100_000, terms=5, vocabulary=500, mean=3000):
    sizes = ints(0, 2 * mean, vocabulary)
    start = torch.cat([zeros(1, dtype="int32"), sizes.cumsum(0).to(torch.int32)])
    n = vocabulary * 2 * mean
    # Documents of a list differ: steps of a prime from a place of its own.
    step = ints(1, max(docs // (2 * mean), 2), vocabulary, dtype="int64")
    term_of = torch.searchsorted(start.long(), torch.arange(n, device="cuda"), right=True).clamp(max=vocabulary) - 1
    doc = ((torch.arange(n, device="cuda") - start.long()[term_of]) * step[term_of] % docs).to(torch.int32)
    tf, length, idf = ints(1, 9, n, dtype="uint8"), ints(20, 400, docs), uniform(vocabulary) * 5
    term = ints(0, vocabulary, queries, terms)
    score = zeros(queries, docs, dtype="float32")
    args = term, idf, start, doc, tf, length, score, 210.0, docs, terms
    launched = cleared(run(words_found, (queries, terms, 4), args, score, BLOCK=512, num_warps=4), score)

    def reference():
        out = torch.zeros(queries, docs, dtype=torch.float64, device="cuda")
        d, f = doc.long(), tf.double()
        one = idf[term_of] * f * 2.2 / (f + 1.2 * (0.25 + 0.75 * length[d] / 210.0))
        begin = start.tolist()
        for q, words in enumerate(term.tolist()):
            for w in words:
                part = slice(begin[w], begin[w + 1])
                out[q].index_add_(0, d[part], one[part].double())
        return out

    return against(launched, reference)


@triton.jit
def in_batch_softmax(u_ptr, v_ptr, id_ptr, logq_ptr, loss_ptr, lse_ptr, inverse, B, D, BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr):
    # Users against all items of the batch, less the log of how often an item is sampled; the same item elsewhere does not count.
    i = tl.program_id(0) * BM + tl.arange(0, BM)
    d = tl.arange(0, BD)
    u = tl.load(u_ptr + i[:, None] * D + d[None, :], mask=(i < B)[:, None] & (d < D)[None, :], other=0.0)
    mine = tl.load(id_ptr + i, mask=i < B, other=-1)
    m = tl.full((BM,), -1e30, tl.float32)
    l = tl.zeros((BM,), tl.float32)
    own = tl.zeros((BM,), tl.float32)
    for j0 in range(0, B, BN):
        j = j0 + tl.arange(0, BN)
        v = tl.load(v_ptr + j[None, :] * D + d[:, None], mask=(j < B)[None, :] & (d < D)[:, None], other=0.0)
        logq = tl.load(logq_ptr + j, mask=j < B, other=0.0)
        other = tl.load(id_ptr + j, mask=j < B, other=-2)
        s = tl.dot(u, v) * inverse - logq[None, :]
        same = i[:, None] == j[None, :]
        own += tl.sum(tl.where(same, s, 0.0), 1)
        s = tl.where(((mine[:, None] != other[None, :]) | same) & (j < B)[None, :], s, float("-inf"))
        top = tl.maximum(m, tl.max(s, 1))
        l = l * tl.exp(m - top) + tl.sum(tl.exp(s - top[:, None]), 1)
        m = top
    lse = m + tl.log(l)
    tl.store(loss_ptr + i, lse - own, mask=i < B)
    tl.store(lse_ptr + i, lse, mask=i < B)


@case
def bazaar_buyers_and_goods_of_a_batch_without_accidental_hits(b=5000, d=96):
    u, v = rand(b, d), rand(b, d)
    ids, logq = ints(0, b, b), -uniform(b) * 8
    loss, lse = zeros(b, dtype="float32"), zeros(b, dtype="float32")
    args = u, v, ids, logq, loss, lse, 0.125, b, d
    launched = run(in_batch_softmax, (cdiv(b, 32),), args, (loss, lse), BM=32, BN=128, BD=128, num_warps=4, num_stages=3)

    def reference():
        s = u.float() @ v.float().t() * 0.125 - logq[None, :]
        same = torch.eye(b, dtype=torch.bool, device="cuda")
        total = s.masked_fill((ids[:, None] == ids[None, :]) & ~same, float("-inf")).logsumexp(1)
        return total - s.diagonal(), total

    return against(launched, reference)


@triton.jit
def ranking_pairs_gradients(user_ptr, item_ptr, who_ptr, yes_ptr, no_ptr, gu_ptr, gi_ptr, loss_ptr, decay, N, D, ROWS: tl.constexpr, BD: tl.constexpr):
    # Bayesian ranking: what was bought should score above what was not; gradients of three rows a triple by atomics.
    t = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    d = tl.arange(0, BD)
    on = t < N
    ok = on[:, None] & (d < D)[None, :]
    u_at = tl.load(who_ptr + t, mask=on, other=0)[:, None] * D + d[None, :]
    y_at = tl.load(yes_ptr + t, mask=on, other=0)[:, None] * D + d[None, :]
    n_at = tl.load(no_ptr + t, mask=on, other=0)[:, None] * D + d[None, :]
    u = tl.load(user_ptr + u_at, mask=ok, other=0.0)
    y = tl.load(item_ptr + y_at, mask=ok, other=0.0)
    n = tl.load(item_ptr + n_at, mask=ok, other=0.0)
    x = tl.sum(u * (y - n), 1)
    slope = -tl.sigmoid(-x)[:, None]
    tl.atomic_add(gu_ptr + u_at, slope * (y - n) + decay * u, mask=ok)
    tl.atomic_add(gi_ptr + y_at, slope * u + decay * y, mask=ok)
    tl.atomic_add(gi_ptr + n_at, -slope * u + decay * n, mask=ok)
    loss = tl.maximum(-x, 0.0) + tl.log(1.0 + tl.exp(-tl.abs(x)))
    tl.store(loss_ptr + t, loss, mask=on)


@case
def bazaar_what_was_bought_above_what_was_not(n=60_001, users=9000, items=20_000, d=48):
    user, item = f32(users, d) / 4, f32(items, d) / 4
    who, yes, no = ints(0, users, n), ints(0, items, n), ints(0, items, n)
    gu, gi, loss = zeros(users, d, dtype="float32"), zeros(items, d, dtype="float32"), zeros(n, dtype="float32")
    args = user, item, who, yes, no, gu, gi, loss, 0.01, n, d
    launched = cleared(run(ranking_pairs_gradients, (cdiv(n, 16),), args, (gu, gi, loss), ROWS=16, BD=64, num_warps=4), gu, gi)

    def reference():
        w, a, b = who.long(), yes.long(), no.long()
        u, y, m = user.double()[w], item.double()[a], item.double()[b]
        x = (u * (y - m)).sum(1)
        s = -torch.sigmoid(-x)[:, None]
        ru, ri = torch.zeros_like(user, dtype=torch.float64), torch.zeros_like(item, dtype=torch.float64)
        ru.index_add_(0, w, s * (y - m) + 0.01 * u)
        ri.index_add_(0, a, s * u + 0.01 * y)
        ri.index_add_(0, b, -s * u + 0.01 * m)
        return ru, ri, torch.nn.functional.softplus(-x)

    return against(launched, reference)


@triton.jit
def sketch_cell(x, k, WIDTH):
    # Multiply and shift with odd numbers of the row.
    a = (k * 0x3C6EF372 + 0x61C88647) | 1
    h = x.to(tl.uint32) * a.to(tl.uint32)
    h ^= h >> 15
    h *= 0x2C1B3C6D
    return tl.umulhi(h, WIDTH.to(tl.uint32)).to(tl.int32)


@triton.jit
def sketch_adds(x_ptr, by_ptr, table_ptr, N, WIDTH, BLOCK: tl.constexpr, DEPTH: tl.constexpr):
    # Amounts of items are added to a cell of each row of the sketch.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < N, other=0)
    by = tl.load(by_ptr + i, mask=i < N, other=0)
    k = tl.arange(0, DEPTH)
    cell = sketch_cell(x[:, None], k[None, :], WIDTH)
    tl.atomic_add(table_ptr + k[None, :] * WIDTH + cell, tl.broadcast_to(by[:, None], (BLOCK, DEPTH)), mask=(i < N)[:, None], sem="relaxed")


@triton.jit
def sketch_asks(x_ptr, table_ptr, out_ptr, N, WIDTH, BLOCK: tl.constexpr, DEPTH: tl.constexpr):
    # The least of an item's cells is not less than what it amounts to.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < N, other=0)
    k = tl.arange(0, DEPTH)
    cell = sketch_cell(x[:, None], k[None, :], WIDTH)
    count = tl.load(table_ptr + k[None, :] * WIDTH + cell, mask=(i < N)[:, None], other=0)
    tl.store(out_ptr + i, tl.min(count, 1), mask=i < N)


@case
def bazaar_visitors_counted_in_a_sketch(n=2_000_000, asked=500_001, width=60_013):
    x, by = (uniform(n) ** 4 * (1 << 22)).to(torch.int32), ints(1, 50, n)
    q = ints(0, 1 << 22, asked)
    table, out = zeros(4, width, dtype="int32"), zeros(asked, dtype="int32")

    def launch(x, by, q, table, out):
        sketch_adds[(cdiv(n, 512),)](x, by, table, n, width, BLOCK=512, DEPTH=4, num_warps=4)
        sketch_asks[(cdiv(asked, 512),)](q, table, out, asked, width, BLOCK=512, DEPTH=4, num_warps=8)
        return table, out

    def reference():
        mask = (1 << 32) - 1

        def cell(v, k):
            a = (k * 0x3C6EF372 + 0x61C88647) & mask | 1
            h = v.long() * a & mask
            h = h ^ (h >> 15)
            h = h * 0x2C1B3C6D & mask
            return h * width >> 32

        rows = [torch.zeros(width, dtype=torch.int64, device="cuda").index_add_(0, cell(x, k), by.long()) for k in range(4)]
        least = torch.stack([row[cell(q, k)] for k, row in enumerate(rows)]).amin(0)
        return torch.stack(rows).int(), least.int()

    return against(cleared((launch, (x, by, q, table, out)), table), reference)


@triton.jit
def has_short(word, short):
    # Whether one of four shorts of a long word is this one.
    x = word ^ (short * 0x0001000100010001)
    return ((x - 0x0001000100010001) & ~x & -0x7FFF7FFF7FFF8000) != 0


@triton.jit
def cuckoo_member(key_ptr, bucket_ptr, out_ptr, N, BITS: tl.constexpr, BLOCK: tl.constexpr):
    # Fingerprints of 16 bits, four a bucket, in one of two buckets that each lead to the other.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    key = tl.load(key_ptr + i, mask=i < N, other=1).to(tl.uint32)
    h = key * 0x9E3779B1
    h ^= h >> 13
    print_ = (h & 0xFFFF) | 1
    first = ((h * 0x85EBCA6B) >> (32 - BITS)).to(tl.int32)
    second = first ^ ((print_ * 0x5BD1E995) >> (32 - BITS)).to(tl.int32)
    short = print_.to(tl.int64)
    found = has_short(tl.load(bucket_ptr + first), short)
    if tl.min(found.to(tl.int32), 0) == 0:
        found = found | has_short(tl.load(bucket_ptr + second, mask=~found, other=0), short)
    tl.store(out_ptr + i, found, mask=i < N)


@case
def bazaar_names_in_a_filter_of_two_nests(n=3_000_003, bits=17):
    key = ints(0, 1 << 24, n)
    mask = (1 << 32) - 1
    h = key.long() * 0x9E3779B1 & mask
    h = h ^ (h >> 13)
    mark = h & 0xFFFF | 1
    first = (h * 0x85EBCA6B & mask) >> (32 - bits)
    second = first ^ (mark * 0x5BD1E995 & mask) >> (32 - bits)
    nests = ints(0, 1 << 15, 1 << bits, 4, dtype="int64") * 2
    here = torch.arange(0, n, 3, device="cuda")[: 1 << bits]
    nest = torch.where(here % 2 == 0, first[here], second[here]) * 4 + here % 4
    nests.view(-1).scatter_reduce_(0, nest, mark[here], "amax", include_self=False)
    word = nests[:, 0] | nests[:, 1] << 16 | nests[:, 2] << 32 | nests[:, 3] << 48
    out = zeros(n, dtype="bool")
    launched = run(cuckoo_member, (cdiv(n, 1024),), (key, word, out, n), out, BITS=bits, BLOCK=1024, num_warps=8)

    def reference():
        return ((nests[first] == mark[:, None]) | (nests[second] == mark[:, None])).any(1)

    return against(launched, reference)


@triton.jit
def words_of_codes(code_ptr, at_ptr, where_ptr, bytes_ptr, out_ptr, N, ROWS: tl.constexpr, LONGEST: tl.constexpr):
    # A column of codes back to its strings of up to 48 bytes, one after another.
    r = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    j = tl.arange(0, LONGEST)
    code = tl.load(code_ptr + r, mask=r < N, other=0).to(tl.int32)
    begin = tl.load(where_ptr + code)
    size = tl.load(where_ptr + code + 1) - begin
    to = tl.load(at_ptr + r, mask=r < N, other=0)
    ok = (r < N)[:, None] & (j[None, :] < size[:, None])
    letters = tl.load(bytes_ptr + begin[:, None] + j[None, :], mask=ok, other=0)
    tl.store(out_ptr + to[:, None] + j[None, :], letters, mask=ok)


@case
def bazaar_labels_written_out_from_codes(n=500_000, words=4000):
    sizes = ints(0, 49, words)
    where = torch.cat([zeros(1, dtype="int32"), sizes.cumsum(0).to(torch.int32)])
    letters = ints(32, 127, words * 48, dtype="uint8")
    code = ints(0, words, n, dtype="int16")
    lengths = sizes[code.long()].long()
    at = lengths.cumsum(0) - lengths
    out = zeros(n * 48, dtype="uint8")
    launched = run(words_of_codes, (cdiv(n, 64),), (code, at, where, letters, out, n), out, ROWS=64, LONGEST=64, num_warps=4)

    def reference():
        j = torch.arange(48, device="cuda")[None, :]
        ok = j < lengths[:, None]
        rows = letters[(where[code.long()].long()[:, None] + j).clamp(max=words * 48 - 1)]
        flat = rows[ok]
        return torch.cat([flat, torch.zeros(n * 48 - flat.numel(), dtype=torch.uint8, device="cuda")])

    return against(launched, reference)


@triton.jit
def interest_in_candidate(h_ptr, c_ptr, w_ptr, wx_ptr, wc_ptr, a_ptr, len_ptr, out_ptr, weight_ptr, L, D: tl.constexpr, HID: tl.constexpr, BL: tl.constexpr):
    # What somebody looked at before, weighted by a small network of it, the candidate, and their product.
    b = tl.program_id(0)
    d, e, j = tl.arange(0, D), tl.arange(0, HID), tl.arange(0, BL)
    length = tl.load(len_ptr + b)
    c = tl.load(c_ptr + b * D + d).to(tl.float32)
    w = tl.load(w_ptr + d[:, None] * HID + e[None, :])
    wx = tl.load(wx_ptr + d[:, None] * HID + e[None, :])
    bias = tl.sum(c[:, None] * tl.load(wc_ptr + d[:, None] * HID + e[None, :]).to(tl.float32), 0)
    a = tl.load(a_ptr + e)
    acc = tl.zeros((D,), tl.float32)
    for l0 in range(0, length, BL):
        ok = l0 + j < length
        h = tl.load(h_ptr + (b * L + l0 + j)[:, None] * D + d[None, :], mask=ok[:, None], other=0.0)
        z = tl.dot(h, w) + bias[None, :]
        z = tl.dot((h.to(tl.float32) * c[None, :]).to(h.dtype), wx, z)
        z = tl.where(z > 0, z, z * 0.2)
        weight = tl.where(ok, tl.sum(z * a[None, :], 1), 0.0)
        tl.store(weight_ptr + b * L + l0 + j, weight, mask=ok)
        acc += tl.sum(weight[:, None] * h.to(tl.float32), 0)
    tl.store(out_ptr + b * D + d, acc)


@case
def bazaar_interest_in_one_thing_after_many(b=1500, length=200):
    d, hid = 64, 32
    h, c = rand(b, length, d, dtype="bfloat16"), rand(b, d, dtype="bfloat16")
    w, wx, wc = (rand(d, hid, dtype="bfloat16") / 8 for _ in range(3))
    a, lengths = f32(hid) / 4, ints(0, length + 1, b)
    out, weight = zeros(b, d, dtype="float32"), zeros(b, length, dtype="float32")
    args = h, c, w, wx, wc, a, lengths, out, weight, length
    launched = run(interest_in_candidate, (b,), args, (out, weight), D=d, HID=hid, BL=64, num_warps=4, num_stages=2)

    def reference():
        z = h.float() @ w.float() + (h.float() * c.float()[:, None]).bfloat16().float() @ wx.float() + (c.float() @ wc.float())[:, None]
        weights = torch.nn.functional.leaky_relu(z, 0.2) @ a
        weights = weights * (arange(length)[None, :] < lengths[:, None])
        return torch.einsum("bl,bld->bd", weights, h.float()), weights

    return against(launched, reference)


@triton.jit
def experts_gated_for_two_tasks(x_ptr, w_ptr, b_ptr, g_ptr, y_ptr, M, N, K, E: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # All experts see all rows; two tasks mix them with gates of their own.
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    buys = tl.zeros((BM, BN), tl.float32)
    looks = tl.zeros((BM, BN), tl.float32)
    for e in range(E):
        acc = tl.zeros((BM, BN), tl.float32)
        for k0 in range(0, K, BK):
            x = tl.load(x_ptr + m[:, None] * K + k0 + k[None, :], mask=(m < M)[:, None] & (k0 + k < K)[None, :], other=0.0)
            w = tl.load(w_ptr + (e * K + k0 + k)[:, None] * N + n[None, :], mask=(k0 + k < K)[:, None] & (n < N)[None, :], other=0.0)
            acc = tl.dot(x, w, acc)
        acc += tl.load(b_ptr + e * N + n, mask=n < N, other=0.0).to(tl.float32)[None, :]
        acc = tl.maximum(acc, 0.0)
        buys += acc * tl.load(g_ptr + m * E + e, mask=m < M, other=0.0)[:, None]
        looks += acc * tl.load(g_ptr + (M + m) * E + e, mask=m < M, other=0.0)[:, None]
    ok = (m < M)[:, None] & (n < N)[None, :]
    at = m[:, None] * N + n[None, :]
    tl.store(y_ptr + at, buys.to(y_ptr.dtype.element_ty), mask=ok)
    tl.store(y_ptr + M * N + at, looks.to(y_ptr.dtype.element_ty), mask=ok)


@case
def bazaar_experts_shared_by_two_tasks(m=7000, n=200, k=304, e=6):
    x, w, bias = rand(m, k), rand(e, k, n) / 16, rand(e, n)
    g, y = torch.softmax(f32(2, m, e), 2), zeros(2, m, n)
    args = x, w, bias, g, y, m, n, k
    launched = run(experts_gated_for_two_tasks, (cdiv(m, 64), cdiv(n, 64)), args, y, E=e, BM=64, BN=64, BK=32, num_warps=4, num_stages=3)

    def reference():
        z = torch.relu(torch.einsum("mk,ekn->emn", x.float(), w.float()) + bias.float()[:, None])
        return torch.einsum("tme,emn->tmn", g, z)

    return against(launched, reference)


@triton.jit
def bags_of_nibble_rows(table_ptr, at_ptr, start_ptr, weight_ptr, out_ptr, D, STRIDE: tl.constexpr, HALF: tl.constexpr):
    # Rows begin with a short scale and a short bias, then two channels a byte; weighted sums of ragged bags.
    bag = tl.program_id(0)
    c = tl.arange(0, HALF)
    ok = c < D // 2
    begin, end = tl.load(start_ptr + bag), tl.load(start_ptr + bag + 1)
    low = tl.zeros((HALF,), tl.float32)
    high = tl.zeros((HALF,), tl.float32)
    for p in range(begin, end):
        row = table_ptr + tl.load(at_ptr + p).to(tl.int64) * STRIDE
        head = row.to(tl.pointer_type(tl.float16))
        weight = tl.load(weight_ptr + p)
        scale = tl.load(head).to(tl.float32) * weight
        bias = tl.load(head + 1).to(tl.float32) * weight
        byte = tl.load(row + 4 + c, mask=ok, other=0)
        low += (byte & 15).to(tl.float32) * scale + bias
        high += (byte >> 4).to(tl.float32) * scale + bias
    both = tl.interleave(low, high)
    d = tl.arange(0, 2 * HALF)
    tl.store(out_ptr + bag * D + d, both.to(out_ptr.dtype.element_ty), mask=d < D)


@case
def bazaar_baskets_of_rows_of_nibbles_with_heads(bags=4000, rows=200_000, d=120, longest=40):
    half = d // 2
    nibbles = ints(0, 256, rows, half, dtype="uint8")
    scale, bias = (uniform(rows, 1) / 8 + 0.01).half(), rand(rows, 1)
    table = torch.cat([scale.view(torch.uint8), bias.view(torch.uint8), nibbles], 1).contiguous()
    sizes = ints(0, longest + 1, bags)
    start = torch.cat([zeros(1, dtype="int32"), sizes.cumsum(0).to(torch.int32)])
    at, weight, out = ints(0, rows, bags * longest), uniform(bags * longest), zeros(bags, d)
    launched = run(bags_of_nibble_rows, (bags,), (table, at, start, weight, out, d), out, STRIDE=half + 4, HALF=64, num_warps=1, num_stages=2)

    def reference():
        x = torch.stack([nibbles & 15, nibbles >> 4], 2).reshape(rows, d)
        bag = torch.repeat_interleave(torch.arange(bags, device="cuda"), sizes)
        i = at[: bag.numel()].long()
        values = (x[i].float() * scale[i].float() + bias[i].float()) * weight[: bag.numel(), None]
        return torch.zeros(bags, d, device="cuda").index_add_(0, bag, values)

    return against(launched, reference)


@triton.jit
def beams_over_prompt(q_ptr, k_ptr, v_ptr, o_ptr, lse_ptr, scale, BEAMS, HK, L, G: tl.constexpr, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    # All beams of a request read the prompt they share at once: rows are beams times heads of a group.
    b, kvh, block = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    r = block * BM + tl.arange(0, BM)
    d, n = tl.arange(0, D), tl.arange(0, BN)
    live = r < BEAMS * G
    row = ((b * BEAMS + r // G) * HK + kvh) * G + r % G
    q = tl.load(q_ptr + row[:, None] * D + d[None, :], mask=live[:, None], other=0.0)
    m = tl.full((BM,), -1e30, tl.float32)
    l = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    base = (b * HK + kvh) * L
    for n0 in range(0, L, BN):
        ok = n0 + n < L
        k = tl.load(k_ptr + (base + n0 + n)[None, :] * D + d[:, None], mask=ok[None, :], other=0.0)
        v = tl.load(v_ptr + (base + n0 + n)[:, None] * D + d[None, :], mask=ok[:, None], other=0.0)
        s = tl.where(ok[None, :], tl.dot(q, k) * scale, float("-inf"))
        top = tl.maximum(m, tl.max(s, 1))
        p = tl.exp2(s - top[:, None])
        keep = tl.exp2(m - top)
        l = l * keep + tl.sum(p, 1)
        acc = tl.dot(p.to(v.dtype), v, acc * keep[:, None])
        m = top
    tl.store(o_ptr + row[:, None] * D + d[None, :], acc / l[:, None], mask=live[:, None])
    tl.store(lse_ptr + row, m + tl.log2(l), mask=live)


@triton.jit
def beams_own_words(q_ptr, k_ptr, v_ptr, parent_ptr, o_ptr, lse_ptr, y_ptr, scale, BEAMS, HK, T, G: tl.constexpr, D: tl.constexpr, BT: tl.constexpr):
    # Then each beam reads its own words, whose keys lie with the beams they came from, and joins both.
    b, beam, kvh = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    g, d, t = tl.arange(0, G), tl.arange(0, D), tl.arange(0, BT)
    row = ((b * BEAMS + beam) * HK + kvh) * G + g
    ok = t < T
    came = tl.load(parent_ptr + (b * BEAMS + beam) * T + t, mask=ok, other=0)
    at = (((b * BEAMS + came) * HK + kvh) * T + t)[:, None] * D + d[None, :]
    k = tl.load(k_ptr + at, mask=ok[:, None], other=0.0).to(tl.float32)
    v = tl.load(v_ptr + at, mask=ok[:, None], other=0.0).to(tl.float32)
    q = tl.load(q_ptr + row[:, None] * D + d[None, :]).to(tl.float32)
    s = tl.sum(q[:, None, :] * k[None, :, :], 2) * scale
    s = tl.where(ok[None, :], s, float("-inf"))
    before = tl.load(lse_ptr + row)
    top = tl.maximum(before, tl.max(s, 1))
    p = tl.exp2(s - top[:, None])
    w = tl.exp2(before - top)
    o = tl.load(o_ptr + row[:, None] * D + d[None, :]) * w[:, None] + tl.sum(p[:, :, None] * v[None, :, :], 1)
    y = o / (w + tl.sum(p, 1))[:, None]
    tl.store(y_ptr + row[:, None] * D + d[None, :], y.to(y_ptr.dtype.element_ty))


@case
def bazaar_of_beams_that_share_a_prompt(b=12, beams=10, hk=4, prompt=2100, t=27):
    g, d = 4, 64
    q = rand(b, beams, hk, g, d)
    k, v = rand(b, hk, prompt, d), rand(b, hk, prompt, d)
    kt, vt, parent = rand(b, beams, hk, t, d), rand(b, beams, hk, t, d), ints(0, beams, b, beams, t)
    o, lse, y = zeros(b, beams, hk, g, d, dtype="float32"), zeros(b, beams, hk, g, dtype="float32"), zeros(b, beams, hk, g, d)
    scale = d**-0.5 * LOG2E

    def launch(q, k, v, kt, vt, parent, o, lse, y):
        grid = b, hk, cdiv(beams * g, 16)
        beams_over_prompt[grid](q, k, v, o, lse, scale, beams, hk, prompt, G=g, D=d, BM=16, BN=128, num_warps=4, num_stages=3)
        beams_own_words[(b, beams, hk)](q, kt, vt, parent, o, lse, y, scale, beams, hk, t, G=g, D=d, BT=32, num_warps=2)
        return y

    def reference():
        i = parent[:, :, None, :, None].long().expand(b, beams, hk, t, d)
        keys, values = (torch.cat([x[:, None].expand(b, beams, hk, prompt, d), own.gather(1, i)], 3).float() for x, own in ((k, kt), (v, vt)))
        s = torch.einsum("bnhgd,bnhld->bnhgl", q.float(), keys) * d**-0.5
        return torch.einsum("bnhgl,bnhld->bnhgd", s.softmax(4), values)

    return against((launch, (q, k, v, kt, vt, parent, o, lse, y)), reference)
