"""Menageries: kernels as one gets them: parted columns, three axes, looked-up tables, unfolded bits, best of both sides, states of heads, trimmed rows, ancestors, running leasts, planes of colors."""

import torch
import torch.nn.functional as F
import triton
import triton.language as tl

from .common import against, arange, case, cdiv, cleared, f8, f32, ints, rand, run, uniform, zeros


@triton.jit
def even_and_odd_columns_matmul_kernel(x_ptr, we_ptr, wo_ptr, y_ptr, s_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Columns of a tile are parted into even and odd ones, each with weights of its own; a row's mean square comes along.
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    sq = tl.zeros((BM,), dtype=tl.float32)
    for k0 in range(0, K, BK):
        k = k0 + tl.arange(0, BK)
        x = tl.load(x_ptr + m[:, None] * K + k[None, :], mask=(m[:, None] < M) & (k[None, :] < K), other=0.0)
        even, odd = tl.split(tl.reshape(x, (BM, BK // 2, 2)))
        h = k0 // 2 + tl.arange(0, BK // 2)
        wm = (h[:, None] < K // 2) & (n[None, :] < N)
        we = tl.load(we_ptr + h[:, None] * N + n[None, :], mask=wm, other=0.0)
        wo = tl.load(wo_ptr + h[:, None] * N + n[None, :], mask=wm, other=0.0)
        acc = tl.dot(even, we, acc)
        acc = tl.dot(odd, wo, acc)
        xf = x.to(tl.float32)
        sq += tl.sum(xf * xf, axis=1)
    tl.store(y_ptr + m[:, None] * N + n[None, :], acc.to(tl.float16), mask=(m[:, None] < M) & (n[None, :] < N))
    if tl.program_id(1) == 0:
        tl.store(s_ptr + m, sq / K, mask=m < M)


@case
def menagerie_of_even_and_odd_columns(m=1700, n=1300, k=1000):
    x, we, wo = rand(m, k), rand(k // 2, n), rand(k // 2, n)
    y, s = zeros(m, n), zeros(m, dtype="float32")
    launched = run(even_and_odd_columns_matmul_kernel, (cdiv(m, 64), cdiv(n, 128)), (x, we, wo, y, s, m, n, k), (y, s), BM=64, BN=128, BK=64, num_warps=8, num_stages=2)
    return against(launched, lambda: (x[:, ::2].float() @ we.float() + x[:, 1::2].float() @ wo.float(), (x.float() ** 2).mean(1)))


@triton.jit
def tiny_sequences_attention_kernel(q_ptr, k_ptr, v_ptr, o_ptr, B, T, scale, BB: tl.constexpr, BT: tl.constexpr, D: tl.constexpr):
    # Attention inside many tiny sequences, four at a time in blocks of three axes, by programs that stay.
    for g in tl.range(tl.program_id(0), tl.cdiv(B, BB), tl.num_programs(0), num_stages=2):
        b = g * BB + tl.arange(0, BB)[:, None, None]
        t = tl.arange(0, BT)[None, :, None]
        d = tl.arange(0, D)[None, None, :]
        at = b * T * D + t * D + d
        mask = (b < B) & (t < T)
        q = tl.load(q_ptr + at, mask=mask, other=0.0)
        k = tl.load(k_ptr + at, mask=mask, other=0.0)
        v = tl.load(v_ptr + at, mask=mask, other=0.0)
        s = tl.dot(q, tl.permute(k, (0, 2, 1))) * scale
        s = tl.where(tl.arange(0, BT)[None, None, :] < T, s, -1.0e30)
        p = tl.exp(s - tl.max(s, axis=2, keep_dims=True))
        p = p / tl.sum(p, axis=2, keep_dims=True)
        o = tl.dot(p.to(tl.float16), v)
        tl.store(o_ptr + at, o.to(tl.float16), mask=mask)


@case
def menagerie_of_tiny_sequences(b=7001, t=29, d=64, programs=264):
    q, k, v, o = rand(b, t, d), rand(b, t, d), rand(b, t, d), zeros(b, t, d)
    launched = run(tiny_sequences_attention_kernel, (programs,), (q, k, v, o, b, t, d**-0.5), o, BB=4, BT=32, D=d, num_warps=4)
    return against(launched, lambda: (q.float() @ k.float().transpose(1, 2) * d**-0.5).softmax(2) @ v.float())


@triton.jit
def described_experts_in_turn_kernel(x_ptr, w_ptr, r_ptr, y_ptr, B, M, N, K, gain, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # A batch of products with descriptors by programs that stay, in one flattened loop of tiles, with a residual and a bound at the end.
    xd = tl.make_tensor_descriptor(x_ptr, shape=[B, M, K], strides=[M * K, K, 1], block_shape=[1, BM, BK])
    wd = tl.make_tensor_descriptor(w_ptr, shape=[B, N, K], strides=[N * K, K, 1], block_shape=[1, BN, BK])
    tiles_m = tl.cdiv(M, BM)
    tiles_n = tl.cdiv(N, BN)
    for tile in tl.range(tl.program_id(0), B * tiles_m * tiles_n, tl.num_programs(0), flatten=True):
        b = tile // (tiles_m * tiles_n)
        rest = tile % (tiles_m * tiles_n)
        m0 = rest % tiles_m * BM
        n0 = rest // tiles_m * BN
        acc = tl.zeros((BM, BN), dtype=tl.float32)
        for k0 in range(0, K, BK):
            x = tl.reshape(xd.load([b, m0, k0]), (BM, BK))
            w = tl.reshape(wd.load([b, n0, k0]), (BN, BK))
            acc = tl.dot(x, tl.trans(w), acc)
        m = m0 + tl.arange(0, BM)[:, None]
        n = n0 + tl.arange(0, BN)[None, :]
        at = b.to(tl.int64) * M * N + m * N + n
        mask = (m < M) & (n < N)
        res = tl.load(r_ptr + at, mask=mask, other=0.0).to(tl.float32)
        out = tl.minimum(tl.maximum(acc * gain + res, -4.0), 4.0)
        tl.store(y_ptr + at, out.to(tl.bfloat16), mask=mask)


@case
def menagerie_of_products_in_turn(b=6, m=500, n=760, k=520, programs=132):
    x, w, r, y = (rand(*shape, dtype="bfloat16") for shape in ((b, m, k), (b, n, k), (b, m, n), (b, m, n)))
    args = x, w, r, y, b, m, n, k, 0.05
    launched = run(described_experts_in_turn_kernel, (programs,), args, y, BM=128, BN=128, BK=64, num_warps=8, num_stages=3)

    def prepared(*args):
        triton.set_allocator(lambda size, alignment, stream: torch.empty(size, dtype=torch.int8, device="cuda"))
        return launched[0](*args)

    return against((prepared, args), lambda: (0.05 * x.float() @ w.float().transpose(1, 2) + r.float()).clamp(-4, 4))


@triton.jit
def table_of_sixteen_matmul_kernel(x_ptr, codes_ptr, table_ptr, scale_ptr, y_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Weights are codes of sixteen values; each value is looked up with a gather in registers, then the product is scaled by column.
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    table = tl.load(table_ptr + tl.arange(0, 16))
    wide = tl.broadcast_to(tl.expand_dims(table, 0), (BK, 16))
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for step in tl.range(0, tl.cdiv(K, BK), num_stages=3):
        k = step * BK + tl.arange(0, BK)
        x = tl.load(x_ptr + m[:, None] * K + k[None, :], mask=(m[:, None] < M) & (k[None, :] < K), other=0.0)
        code = tl.load(codes_ptr + k[:, None] * N + n[None, :], mask=(k[:, None] < K) & (n[None, :] < N), other=0).to(tl.int32)
        w = tl.gather(wide, code & 15, 1)
        acc += tl.dot(x, w)
    acc = acc * tl.load(scale_ptr + n, mask=n < N, other=0.0)[None, :]
    tl.store(y_ptr + m[:, None] * N + n[None, :], acc.to(tl.float16), mask=(m[:, None] < M) & (n[None, :] < N))


@case
def menagerie_of_sixteen_values(m=256, n=2500, k=1500):
    x, codes, table, scale, y = rand(m, k), ints(0, 256, k, n, dtype="uint8"), rand(16), uniform(n) + 0.5, zeros(m, n)
    launched = run(table_of_sixteen_matmul_kernel, (cdiv(m, 64), cdiv(n, 64)), (x, codes, table, scale, y, m, n, k), y, BM=64, BN=64, BK=32, num_warps=4)
    return against(launched, lambda: (x.float() @ table.float()[(codes & 15).long()]) * scale)


@triton.jit
def softmax_of_channels_kernel(x_ptr, label_ptr, p_ptr, loss_ptr, C, HW, BC: tl.constexpr, BP: tl.constexpr, TILES: tl.constexpr):
    # Shares of 19 channels at every pixel, along the first axis of a block, and pixels' losses, where a label of 255 does not count.
    c = tl.arange(0, BC)[:, None]
    image = tl.program_id(1)
    for i in range(TILES):
        p = (tl.program_id(0) * TILES + i) * BP + tl.arange(0, BP)[None, :]
        at = image * C * HW + c * HW + p
        x = tl.load(x_ptr + at, mask=(c < C) & (p < HW), other=-float("inf")).to(tl.float32)
        x = x - tl.max(x, axis=0)[None, :]
        e = tl.exp(x)
        total = tl.sum(e, axis=0)
        tl.store(p_ptr + at, (e / total[None, :]).to(tl.float16), mask=(c < C) & (p < HW))
        q = (tl.program_id(0) * TILES + i) * BP + tl.arange(0, BP)
        label = tl.load(label_ptr + image * HW + q, mask=q < HW, other=255).to(tl.int32)
        hit = tl.sum(tl.where(c == label[None, :], x, 0.0), axis=0)
        tl.store(loss_ptr + image * HW + q, tl.where(label < C, tl.log(total) - hit, 0.0), mask=q < HW)


@case
def menagerie_of_shares_of_channels(images=4, c=19, hw=70003, tiles=4):
    x, label = rand(images, c, hw), ints(0, 24, images, hw, dtype="uint8")
    label[label >= c] = 255
    p, loss = zeros(images, c, hw), zeros(images, hw, dtype="float32")
    launched = run(softmax_of_channels_kernel, (cdiv(hw, 128 * tiles), images), (x, label, p, loss, c, hw), (p, loss), BC=32, BP=128, TILES=tiles, num_warps=4)

    def reference():
        return x.float().softmax(1), F.cross_entropy(x.float(), label.long(), ignore_index=255, reduction="none")

    return against(launched, reference)


@triton.jit
def _less_with_place(a, i, b, j):
    keep = a <= b
    return tl.where(keep, a, b), tl.where(keep, i, j)


@triton.jit
def running_least_down_columns_kernel(x_ptr, least_ptr, place_ptr, R, C, BR: tl.constexpr, BC: tl.constexpr):
    # The least number so far down every column, and its row: a scan of pairs in each block, and what was before is carried.
    c = tl.program_id(0) * BC + tl.arange(0, BC)
    best = tl.full((BC,), float("inf"), dtype=tl.float32)
    where = tl.zeros((BC,), dtype=tl.int32)
    for r0 in range(0, R, BR):
        r = r0 + tl.arange(0, BR)
        mask = (r[:, None] < R) & (c[None, :] < C)
        x = tl.load(x_ptr + r[:, None] * C + c[None, :], mask=mask, other=float("inf"))
        rows = tl.broadcast_to(r[:, None], (BR, BC))
        v, i = tl.associative_scan((x, rows), 0, _less_with_place)
        old = best[None, :] <= v
        v = tl.where(old, best[None, :], v)
        i = tl.where(old, where[None, :], i)
        tl.store(least_ptr + r[:, None] * C + c[None, :], v, mask=mask)
        tl.store(place_ptr + r[:, None] * C + c[None, :], i, mask=mask)
        best, where = tl.reduce((v, i), 0, _less_with_place)


@case
def menagerie_of_the_least_so_far(r=1003, c=4200):
    x = f32(r, c)
    least, place = zeros(r, c, dtype="float32"), zeros(r, c, dtype="int32")
    launched = run(running_least_down_columns_kernel, (cdiv(c, 32),), (x, least, place, r, c), (least, place), BR=32, BC=32, num_warps=2)
    return against(launched, lambda: tuple(x.cummin(0)))


@triton.jit
def histogram_of_differences_kernel(x_ptr, hist_ptr, H, W, BINS: tl.constexpr, BLOCK: tl.constexpr):
    # How often each difference of a pixel and its right neighbor comes up, image by image: rows are shared out, counts added up.
    image = tl.program_id(1)
    counts = tl.zeros((BINS,), dtype=tl.int32)
    row = tl.program_id(0)
    while row < H:
        for w0 in range(0, W - 1, BLOCK):
            w = w0 + tl.arange(0, BLOCK)
            ok = w < W - 1
            base = x_ptr + (image.to(tl.int64) * H + row) * W
            a = tl.load(base + w, mask=ok, other=0).to(tl.int32)
            b = tl.load(base + w + 1, mask=ok, other=0).to(tl.int32)
            bins = tl.minimum(tl.maximum((b - a) // 4 + BINS // 2, 0), BINS - 1)
            counts += tl.histogram(bins, BINS, mask=ok)
        row += tl.num_programs(0)
    tl.atomic_add(hist_ptr + image * BINS + tl.arange(0, BINS), counts)


@case
def menagerie_of_how_pixels_differ(images=6, height=700, width=1203, bins=128, programs=44):
    x, hist = ints(0, 256, images, height, width, dtype="uint8"), zeros(images, bins, dtype="int32")
    launched = run(histogram_of_differences_kernel, (programs, images), (x, hist, height, width), hist, BINS=bins, BLOCK=512, num_warps=4)

    def reference():
        d = x[:, :, 1:].int() - x[:, :, :-1].int()
        d = torch.where(d < 0, -(-d // 4), d // 4) + bins // 2
        at = d.clamp(0, bins - 1).reshape(images, -1) + bins * torch.arange(images, device=x.device)[:, None]
        return torch.bincount(at.reshape(-1), minlength=images * bins).reshape(images, bins)

    return against(cleared(launched, hist), reference)


@triton.jit
def trimmed_rows_kernel(x_ptr, median_ptr, trimmed_ptr, spread_ptr, rows, n, cut, BR: tl.constexpr, BN: tl.constexpr):
    # Rows of up to 128 numbers put in order: their middle one, the mean of those that are not at the ends, and how far quarters lie apart.
    r = tl.program_id(0) * BR + tl.arange(0, BR)
    i = tl.arange(0, BN)[None, :]
    x = tl.load(x_ptr + r[:, None] * n + i, mask=(r[:, None] < rows) & (i < n), other=float("inf"))
    x = tl.sort(x, dim=1)
    inner = (i >= cut) & (i < n - cut)
    trimmed = tl.sum(tl.where(inner, x, 0.0), axis=1) / (n - 2 * cut)
    median = tl.sum(tl.where((i == n // 2) | (i == (n - 1) // 2), x, 0.0), axis=1)
    if n % 2 == 0:
        median = median * 0.5
    spread = tl.sum(tl.where(i == 3 * n // 4, x, 0.0), axis=1) - tl.sum(tl.where(i == n // 4, x, 0.0), axis=1)
    tl.store(median_ptr + r, median, mask=r < rows)
    tl.store(trimmed_ptr + r, trimmed, mask=r < rows)
    tl.store(spread_ptr + r, spread, mask=r < rows)


@case
def menagerie_of_rows_without_their_ends(rows=40001, n=100, cut=10):
    x = f32(rows, n)
    outs = tuple(zeros(rows, dtype="float32") for _ in range(3))
    launched = run(trimmed_rows_kernel, (cdiv(rows, 8),), (x, *outs, rows, n, cut), outs, BR=8, BN=128, num_warps=8)

    def reference():
        s = x.sort(1)[0]
        return (s[:, n // 2] + s[:, (n - 1) // 2]) / 2, s[:, cut : n - cut].mean(1), s[:, 3 * n // 4] - s[:, n // 4]

    return against(launched, reference)


@triton.jit
def nearest_shared_ancestor_kernel(parent_ptr, depth_ptr, a_ptr, b_ptr, out_ptr, steps_ptr, n, BLOCK: tl.constexpr):
    # Pairs of nodes climb a tree until they meet: the deeper one goes up, or both; lanes that are done wait for the others.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ok = i < n
    a = tl.load(a_ptr + i, mask=ok, other=0)
    b = tl.load(b_ptr + i, mask=ok, other=0)
    steps = tl.zeros((BLOCK,), dtype=tl.int32)
    while tl.sum((a != b).to(tl.int32), axis=0) > 0:
        da = tl.load(depth_ptr + a)
        db = tl.load(depth_ptr + b)
        apart = a != b
        up_a = apart & (da >= db)
        up_b = apart & (db >= da)
        a = tl.where(up_a, tl.load(parent_ptr + a, mask=up_a, other=0), a)
        b = tl.where(up_b, tl.load(parent_ptr + b, mask=up_b, other=0), b)
        steps += apart.to(tl.int32)
    tl.store(out_ptr + i, a, mask=ok)
    tl.store(steps_ptr + i, steps, mask=ok)


@case
def menagerie_of_ancestors(nodes=200_000, n=300_001):
    i = arange(nodes, dtype="int64")
    parent = ((i - 1).clamp(min=0) - (i * 7919 % 97) * (i > 97)).clamp(min=0) * 3 // 5
    parent = parent.to(torch.int32)
    depth, at = torch.zeros_like(parent), parent.long() * 0 + i
    for _ in range(64):
        depth += (at > 0).to(torch.int32)
        at = parent[at].long()
    a, b = ints(0, nodes, n), ints(0, nodes, n)
    out, steps = zeros(n, dtype="int32"), zeros(n, dtype="int32")
    launched = run(nearest_shared_ancestor_kernel, (cdiv(n, 128),), (parent, depth, a, b, out, steps, n), (out, steps), BLOCK=128, num_warps=1)

    def reference():
        x, y, count = a.long(), b.long(), torch.zeros(n, dtype=torch.int64, device=a.device)
        for _ in range(128):
            dx, dy, apart = depth[x], depth[y], x != y
            count += apart
            x, y = torch.where(apart & (dx >= dy), parent[x].long(), x), torch.where(apart & (dy >= dx), parent[y].long(), y)
        return x, count

    return against(launched, reference)


@triton.jit
def best_of_both_sides_kernel(x_ptr, y_ptr, row_ptr, col_ptr, N, M, K, BN: tl.constexpr, BM: tl.constexpr, BK: tl.constexpr):
    # How similar every row of one side is to its most similar one of the other, and the other way around: least is zero, greatest kept by atomics.
    n = tl.program_id(0) * BN + tl.arange(0, BN)
    best = tl.zeros((BN,), dtype=tl.float32)
    for m0 in range(0, M, BM):
        m = m0 + tl.arange(0, BM)
        s = tl.zeros((BN, BM), dtype=tl.float32)
        for k0 in range(0, K, BK):
            k = k0 + tl.arange(0, BK)
            x = tl.load(x_ptr + n[:, None] * K + k[None, :], mask=(n[:, None] < N) & (k[None, :] < K), other=0.0)
            y = tl.load(y_ptr + m[None, :] * K + k[:, None], mask=(m[None, :] < M) & (k[:, None] < K), other=0.0)
            s = tl.dot(x, y, s)
        best = tl.maximum(best, tl.max(s, axis=1))
        tl.atomic_max(col_ptr + m, tl.maximum(tl.max(s, axis=0), 0.0), mask=m < M)
    tl.store(row_ptr + n, best, mask=n < N)


@case
def menagerie_of_best_matches_of_both_sides(n=8300, m=1500, k=200):
    x, y = F.normalize(f32(n, k), dim=1).to(torch.bfloat16), F.normalize(f32(m, k), dim=1).to(torch.bfloat16)
    row, col = zeros(n, dtype="float32"), zeros(m, dtype="float32")
    launched = run(best_of_both_sides_kernel, (cdiv(n, 64),), (x, y, row, col, n, m, k), (row, col), BN=64, BM=128, BK=64, num_warps=16, num_stages=2)

    def reference():
        s = (x.float() @ y.float().t()).clamp(min=0)
        return s.amax(1), s.amax(0)

    return against(cleared(launched, col), reference)


@triton.jit
def queries_keys_values_at_once_kernel(x_ptr, wq_ptr, wk_ptr, wv_ptr, q_ptr, k_ptr, v_ptr, M, C, DQ, DK, x_scale, BM: tl.constexpr, BD: tl.constexpr, BC: tl.constexpr):
    # Rows of e5m2 become halves and meet three weights in one loop; keys and values are half as wide as queries, which take two tiles.
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    d = tl.program_id(1) * BD + tl.arange(0, BD)
    d2 = DK + d
    q1 = tl.zeros((BM, BD), dtype=tl.float32)
    q2 = tl.zeros((BM, BD), dtype=tl.float32)
    kk = tl.zeros((BM, BD), dtype=tl.float32)
    vv = tl.zeros((BM, BD), dtype=tl.float32)
    for c0 in range(0, C, BC):
        c = c0 + tl.arange(0, BC)
        x = tl.load(x_ptr + m[:, None] * C + c[None, :], mask=(m[:, None] < M) & (c[None, :] < C), other=0.0).to(tl.float16)
        wm = (c[:, None] < C) & (d[None, :] < DK)
        q1 = tl.dot(x, tl.load(wq_ptr + c[:, None] * DQ + d[None, :], mask=wm, other=0.0), q1)
        q2 = tl.dot(x, tl.load(wq_ptr + c[:, None] * DQ + d2[None, :], mask=wm, other=0.0), q2)
        kk = tl.dot(x, tl.load(wk_ptr + c[:, None] * DK + d[None, :], mask=wm, other=0.0), kk)
        vv = tl.dot(x, tl.load(wv_ptr + c[:, None] * DK + d[None, :], mask=wm, other=0.0), vv)
    out = (m[:, None] < M) & (d[None, :] < DK)
    tl.store(q_ptr + m[:, None] * DQ + d[None, :], (q1 * x_scale).to(tl.float16), mask=out)
    tl.store(q_ptr + m[:, None] * DQ + d2[None, :], (q2 * x_scale).to(tl.float16), mask=out)
    tl.store(k_ptr + m[:, None] * DK + d[None, :], (kk * x_scale).to(tl.float16), mask=out)
    tl.store(v_ptr + m[:, None] * DK + d[None, :], (vv * x_scale).to(tl.float16), mask=out)


@case
def menagerie_of_three_weights_at_once(m=2500, c=900, dk=300):
    x, wq, wk, wv = f8(m, c, dtype="float8_e5m2"), rand(c, 2 * dk), rand(c, dk), rand(c, dk)
    q, k, v = zeros(m, 2 * dk), zeros(m, dk), zeros(m, dk)
    args = x, wq, wk, wv, q, k, v, m, c, 2 * dk, dk, 0.1
    launched = run(queries_keys_values_at_once_kernel, (cdiv(m, 64), cdiv(dk, 32)), args, (q, k, v), BM=64, BD=32, BC=64, num_warps=4, num_stages=4)
    return against(launched, lambda: tuple(0.1 * x.float() @ w.float() for w in (wq, wk, wv)))


@triton.jit
def linear_attention_two_loops_kernel(q_ptr, k_ptr, v_ptr, o_ptr, T, eps, D: tl.constexpr, DP: tl.constexpr, BT: tl.constexpr):
    # Attention without softmax for a head: one loop adds up keys times values, another asks that state; heads of 48 are padded.
    head = tl.program_id(0).to(tl.int64)
    d = tl.arange(0, DP)
    state = tl.zeros((DP, DP), dtype=tl.float32)
    total = tl.zeros((DP,), dtype=tl.float32)
    for t0 in range(0, T, BT):
        t = t0 + tl.arange(0, BT)
        at = head * T * D + t[:, None] * D + d[None, :]
        mask = (t[:, None] < T) & (d[None, :] < D)
        k = tl.load(k_ptr + at, mask=mask, other=0.0).to(tl.float32)
        k = tl.where(mask, tl.where(k > 0, k + 1.0, tl.exp(k)), 0.0)
        v = tl.load(v_ptr + at, mask=mask, other=0.0)
        state += tl.dot(tl.trans(k.to(tl.float16)), v)
        total += tl.sum(k, axis=0)
    half = (state / T).to(tl.float16)
    for t0 in range(0, T, BT):
        t = t0 + tl.arange(0, BT)
        at = head * T * D + t[:, None] * D + d[None, :]
        mask = (t[:, None] < T) & (d[None, :] < D)
        q = tl.load(q_ptr + at, mask=mask, other=0.0).to(tl.float32)
        q = tl.where(mask, tl.where(q > 0, q + 1.0, tl.exp(q)), 0.0)
        norm = tl.sum(q * total[None, :], axis=1) / T + eps
        o = tl.dot(q.to(tl.float16), half) / norm[:, None]
        tl.store(o_ptr + at, o.to(tl.float16), mask=mask)


@case
def menagerie_of_states_of_heads(heads=264, t=1001, d=48):
    q, k, v, o = rand(heads, t, d), rand(heads, t, d), rand(heads, t, d) + 0.5, zeros(heads, t, d)
    launched = run(linear_attention_two_loops_kernel, (heads,), (q, k, v, o, t, 1e-6), o, D=d, DP=64, BT=64, num_warps=4, num_stages=3)

    def reference():
        a, b = F.elu(q.float()) + 1, F.elu(k.float()) + 1
        return a @ (b.transpose(1, 2) @ v.float()) / (a @ b.sum(1)[..., None])

    return against(launched, reference)


@triton.jit
def signs_in_bits_matmul_kernel(x_ptr, bits_ptr, y_ptr, M, N, K8, BM: tl.constexpr, BN: tl.constexpr, BK8: tl.constexpr):
    # Bytes of eight signs unfold along an axis of their own and become plus and minus ones; exact products with eight-bit rows.
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.int32)
    bit = tl.arange(0, 8)[None, :, None]
    for k0 in range(0, K8, BK8):
        k8 = k0 + tl.arange(0, BK8)
        k = k0 * 8 + tl.arange(0, BK8 * 8)
        x = tl.load(x_ptr + m[:, None] * K8 * 8 + k[None, :], mask=(m[:, None] < M) & (k[None, :] < K8 * 8), other=0)
        packed = tl.load(bits_ptr + k8[:, None] * N + n[None, :], mask=(k8[:, None] < K8) & (n[None, :] < N), other=0).to(tl.int32)
        signs = ((packed[:, None, :] >> bit) & 1) * 2 - 1
        w = tl.reshape(signs.to(tl.int8), (BK8 * 8, BN))
        acc = tl.dot(x, w, acc, out_dtype=tl.int32)
    tl.store(y_ptr + m[:, None] * N + n[None, :], acc, mask=(m[:, None] < M) & (n[None, :] < N))


@case
def menagerie_of_signs_in_bits(m=500, n=2000, k8=190):
    x, bits, y = ints(-100, 101, m, k8 * 8, dtype="int8"), ints(0, 256, k8, n, dtype="uint8"), zeros(m, n, dtype="int32")
    launched = run(signs_in_bits_matmul_kernel, (cdiv(m, 64), cdiv(n, 64)), (x, bits, y, m, n, k8), y, BM=64, BN=64, BK8=8, num_warps=4, num_stages=3)

    def reference():
        w = (bits[:, None].int() >> torch.arange(8, device=x.device)[None, :, None] & 1) * 2 - 1
        return x.float() @ w.reshape(k8 * 8, n).float()

    return against(launched, reference)


@triton.jit
def _joined_facts(n1, m1, s1, n2, m2, s2):
    n = n1 + n2
    d = m2 - m1
    share = tl.where(n == 0.0, 0.0, n2 / tl.maximum(n, 1.0))
    return n, m1 + d * share, s1 + s2 + d * d * n1 * share


@triton.jit
def facts_where_there_are_any_kernel(x_ptr, there_ptr, mean_ptr, var_ptr, count_ptr, R, C, BR: tl.constexpr, BC: tl.constexpr):
    # Means and variances of columns where a mask of booleans has numbers: triples are reduced in each block, then joined to what was before.
    c = tl.program_id(0) * BC + tl.arange(0, BC)
    count = tl.zeros((BC,), dtype=tl.float32)
    mean = tl.zeros((BC,), dtype=tl.float32)
    squares = tl.zeros((BC,), dtype=tl.float32)
    for r0 in range(0, R, BR):
        r = r0 + tl.arange(0, BR)
        inside = (r[:, None] < R) & (c[None, :] < C)
        there = tl.load(there_ptr + r[:, None] * C + c[None, :], mask=inside, other=0).to(tl.int1)
        x = tl.load(x_ptr + r[:, None] * C + c[None, :], mask=there & inside, other=0.0).to(tl.float32)
        n, m, s = tl.reduce((there.to(tl.float32), x, tl.zeros((BR, BC), dtype=tl.float32)), 0, _joined_facts)
        count, mean, squares = _joined_facts(count, mean, squares, n, m, s)
    tl.store(mean_ptr + c, mean, mask=c < C)
    tl.store(var_ptr + c, squares / tl.maximum(count, 1.0), mask=c < C)
    tl.store(count_ptr + c, count.to(tl.int32), mask=c < C)


@case
def menagerie_of_facts_where_there_are_any(r=2003, c=5000):
    x, there = rand(r, c, dtype="bfloat16"), uniform(r, c) < 0.6
    mean, var, count = zeros(c, dtype="float32"), zeros(c, dtype="float32"), zeros(c, dtype="int32")
    launched = run(facts_where_there_are_any_kernel, (cdiv(c, 32),), (x, there, mean, var, count, r, c), (mean, var, count), BR=64, BC=32, num_warps=4)

    def reference():
        n = there.sum(0)
        m = torch.where(there, x.double(), 0).sum(0) / n
        return m.float(), (torch.where(there, (x.double() - m) ** 2, 0).sum(0) / n).float(), n

    return against(launched, reference)


@triton.jit
def colors_to_planes_kernel(px_ptr, planes_ptr, gray_ptr, dark_ptr, pixels, BLOCK: tl.constexpr):
    # Pixels of four bytes to planes of halves, their gray, and which are dark: bytes are parted twice by splits of a block of three axes.
    base = tl.program_id(0) * BLOCK
    i = base * 4 + tl.arange(0, BLOCK * 4)
    raw = tl.load(px_ptr + i, mask=i < pixels * 4, other=0)
    rgba = tl.reshape(raw.to(tl.float32) / 255.0, (BLOCK, 2, 2))
    first, second = tl.split(rgba)
    red, blue = tl.split(first)
    green, alpha = tl.split(second)
    red = red * alpha
    green = green * alpha
    blue = blue * alpha
    p = base + tl.arange(0, BLOCK)
    ok = p < pixels
    tl.store(planes_ptr + p, ((red - 0.485) / 0.229).to(tl.float16), mask=ok)
    tl.store(planes_ptr + pixels + p, ((green - 0.456) / 0.224).to(tl.float16), mask=ok)
    tl.store(planes_ptr + 2 * pixels + p, ((blue - 0.406) / 0.225).to(tl.float16), mask=ok)
    gray = 0.299 * red + 0.587 * green + 0.114 * blue
    tl.store(gray_ptr + p, gray, mask=ok)
    tl.store(dark_ptr + p, (red < 0.2501) & (green < 0.2501) & (blue < 0.2501), mask=ok)


@case
def menagerie_of_colors_to_planes(pixels=4_000_003):
    px = ints(0, 256, pixels, 4, dtype="uint8")
    px[:, 3] |= 255
    planes, gray, dark = zeros(3, pixels), zeros(pixels, dtype="float32"), zeros(pixels, dtype="bool")
    launched = run(colors_to_planes_kernel, (cdiv(pixels, 512),), (px, planes, gray, dark, pixels), (planes, gray, dark), BLOCK=512, num_warps=2)

    def reference():
        rgb = px[:, :3].float().t() / 255
        shift, size = torch.tensor([[0.485], [0.456], [0.406]], device=px.device), torch.tensor([[0.229], [0.224], [0.225]], device=px.device)
        return (rgb - shift) / size, 0.299 * rgb[0] + 0.587 * rgb[1] + 0.114 * rgb[2], (rgb < 0.2501).all(0)

    return against(launched, reference)


@triton.jit
def skinny_warps_gated_kernel(x_ptr, wg_ptr, wu_ptr, y_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # A gated pair of products in tiles of 16 by 32 with one warp, an unrolled loop in single precision, and no stages.
    pid = tl.program_id(0)
    m = pid // tl.cdiv(N, BN) * BM + tl.arange(0, BM)
    n = pid % tl.cdiv(N, BN) * BN + tl.arange(0, BN)
    g = tl.zeros((BM, BN), dtype=tl.float32)
    u = tl.zeros((BM, BN), dtype=tl.float32)
    for k0 in tl.range(0, K, BK, loop_unroll_factor=4):
        k = k0 + tl.arange(0, BK)
        x = tl.load(x_ptr + m[:, None] * K + k[None, :], mask=(m[:, None] < M) & (k[None, :] < K), other=0.0)
        wg = tl.load(wg_ptr + n[None, :] * K + k[:, None], mask=(n[None, :] < N) & (k[:, None] < K), other=0.0)
        wu = tl.load(wu_ptr + n[None, :] * K + k[:, None], mask=(n[None, :] < N) & (k[:, None] < K), other=0.0)
        g = tl.dot(x, wg, g, input_precision="tf32")
        u = tl.dot(x, wu, u, input_precision="tf32")
    y = g * tl.sigmoid(1.702 * g) * u
    tl.store(y_ptr + m[:, None] * N + n[None, :], y, mask=(m[:, None] < M) & (n[None, :] < N))


@case
def menagerie_of_one_warp_and_two_products(m=300, n=1100, k=700):
    x, wg, wu, y = f32(m, k), f32(n, k) * 0.05, f32(n, k) * 0.05, zeros(m, n, dtype="float32")
    launched = run(skinny_warps_gated_kernel, (cdiv(m, 16) * cdiv(n, 32),), (x, wg, wu, y, m, n, k), y, BM=16, BN=32, BK=32, num_warps=1, num_stages=1)

    def reference():
        g = x @ wg.t()
        return g * torch.sigmoid(1.702 * g) * (x @ wu.t())

    return against(launched, reference)


@triton.jit
def pooled_by_scores_kernel(x_ptr, score_ptr, out_ptr, weight_ptr, B, T, C, BB: tl.constexpr, BT: tl.constexpr, BC: tl.constexpr):
    # Tokens of several samples pooled with softmax over time in blocks of three axes; a first loop finds the sums, a second one the means.
    b = tl.program_id(0) * BB + tl.arange(0, BB)
    c = tl.program_id(1) * BC + tl.arange(0, BC)
    top = tl.full((BB,), -1.0e30, dtype=tl.float32)
    total = tl.zeros((BB,), dtype=tl.float32)
    for t0 in range(0, T, BT):
        t = t0 + tl.arange(0, BT)
        s = tl.load(score_ptr + b[:, None] * T + t[None, :], mask=(b[:, None] < B) & (t[None, :] < T), other=-1.0e30)
        new = tl.maximum(top, tl.max(s, axis=1))
        total = total * tl.exp(top - new) + tl.sum(tl.exp(s - new[:, None]), axis=1)
        top = new
    acc = tl.zeros((BB, BC), dtype=tl.float32)
    for t0 in range(0, T, BT):
        t = t0 + tl.arange(0, BT)
        live = (b[:, None] < B) & (t[None, :] < T)
        s = tl.load(score_ptr + b[:, None] * T + t[None, :], mask=live, other=-1.0e30)
        p = tl.exp(s - top[:, None]) / total[:, None]
        at = (b[:, None, None] * T + t[None, :, None]).to(tl.int64) * C + c[None, None, :]
        x = tl.load(x_ptr + at, mask=live[:, :, None] & (c[None, None, :] < C), other=0.0).to(tl.float32)
        acc += tl.sum(x * p[:, :, None], axis=1)
        if tl.program_id(1) == 0:
            tl.store(weight_ptr + b[:, None] * T + t[None, :], p, mask=live)
    tl.store(out_ptr + b[:, None] * C + c[None, :], acc, mask=(b[:, None] < B) & (c[None, :] < C))


@case
def menagerie_of_tokens_pooled_by_scores(b=120, t=700, c=320):
    x, s = rand(b, t, c) + 0.3, f32(b, t) * 2
    out, w = zeros(b, c, dtype="float32"), zeros(b, t, dtype="float32")
    launched = run(pooled_by_scores_kernel, (cdiv(b, 4), cdiv(c, 64)), (x, s, out, w, b, t, c), (out, w), BB=4, BT=16, BC=64, num_warps=8)
    return against(launched, lambda: ((s.softmax(1)[:, None] @ x.float())[:, 0], s.softmax(1)))
