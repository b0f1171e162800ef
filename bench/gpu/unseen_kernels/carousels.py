"""Carousels: kernels as one asks for them: dots of three axes, loops that stay, boxes, descriptors, complex pairs, scans that start anew, erosion, confusion, retrieval, tries, shuffles, labels."""

import torch
import torch.nn.functional as F
import triton
import triton.language as tl

from .common import against, case, cdiv, cleared, f32, far, ints, rand, run, uniform, viewed, zeros


@triton.jit
def batched_small_relu_kernel(a_ptr, b_ptr, bias_ptr, c_ptr, B, M, N, K, BB: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Four small products a program by dots of three axes, with padding on all sides, a bias and ReLU.
    bb = tl.program_id(0) * BB + tl.arange(0, BB)[:, None, None]
    m = tl.arange(0, BM)[None, :, None]
    n = tl.arange(0, BN)[None, None, :]
    acc = tl.zeros((BB, BM, BN), dtype=tl.float32)
    for k0 in range(0, K, BK):
        ka = k0 + tl.arange(0, BK)[None, None, :]
        kb = k0 + tl.arange(0, BK)[None, :, None]
        a = tl.load(a_ptr + bb * M * K + m * K + ka, mask=(bb < B) & (m < M) & (ka < K), other=0.0)
        b = tl.load(b_ptr + bb * K * N + kb * N + n, mask=(bb < B) & (kb < K) & (n < N), other=0.0)
        acc = tl.dot(a, b, acc)
    bias = tl.load(bias_ptr + tl.arange(0, BN), mask=tl.arange(0, BN) < N, other=0.0)
    acc = tl.maximum(acc + bias[None, None, :], 0.0)
    tl.store(c_ptr + bb * M * N + m * N + n, acc.to(tl.float16), mask=(bb < B) & (m < M) & (n < N))


@case
def carousel_of_small_products_four_at_a_time(b=3001, m=27, n=45, k=100):
    x, y, bias, z = rand(b, m, k), rand(b, k, n), f32(n), zeros(b, m, n)
    launched = run(batched_small_relu_kernel, (cdiv(b, 4),), (x, y, bias, z, b, m, n, k), z, BB=4, BM=32, BN=64, BK=32, num_warps=4, num_stages=4)
    return against(launched, lambda: (torch.bmm(x.float(), y.float()) + bias).relu())


@triton.jit
def staying_cross_attention_kernel(q_ptr, k_ptr, v_ptr, o_ptr, scale, total, T, S, D: tl.constexpr, DP: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    # Programs stay and take tile after tile of queries; keys come two steps at a time, heads of 40 are padded to 64.
    tile = tl.program_id(0)
    tiles = tl.cdiv(T, BM)
    d = tl.arange(0, DP)
    while tile < total:
        head = (tile // tiles).to(tl.int64)
        m = (tile % tiles) * BM + tl.arange(0, BM)
        q = tl.load(q_ptr + head * T * D + m[:, None] * D + d[None, :], mask=(m[:, None] < T) & (d[None, :] < D), other=0.0)
        best = tl.full((BM,), -1.0e30, dtype=tl.float32)
        total_p = tl.zeros((BM,), dtype=tl.float32)
        acc = tl.zeros((BM, DP), dtype=tl.float32)
        for s0 in tl.range(0, S, BN, loop_unroll_factor=2):
            s = s0 + tl.arange(0, BN)
            kt = tl.load(k_ptr + head * S * D + s[None, :] * D + d[:, None], mask=(s[None, :] < S) & (d[:, None] < D), other=0.0)
            logits = tl.where(s[None, :] < S, tl.dot(q, kt) * scale, -1.0e30)
            new = tl.maximum(best, tl.max(logits, 1))
            p = tl.exp2(logits - new[:, None])
            shrink = tl.exp2(best - new)
            v = tl.load(v_ptr + head * S * D + s[:, None] * D + d[None, :], mask=(s[:, None] < S) & (d[None, :] < D), other=0.0)
            acc = tl.dot(p.to(tl.float16), v, acc * shrink[:, None])
            total_p = total_p * shrink + tl.sum(p, 1)
            best = new
        acc = acc / total_p[:, None]
        tl.store(o_ptr + head * T * D + m[:, None] * D + d[None, :], acc.to(tl.float16), mask=(m[:, None] < T) & (d[None, :] < D))
        tile += tl.num_programs(0)


@case
def carousel_of_tiles_of_queries_until_none_is_left(heads=40, t=1100, s=333, d=40, programs=132):
    q, k, v, o = rand(heads, t, d), rand(heads, s, d), rand(heads, s, d), zeros(heads, t, d)
    args = q, k, v, o, 1.4427 * d**-0.5, heads * cdiv(t, 128), t, s
    launched = run(staying_cross_attention_kernel, (programs,), args, o, D=d, DP=64, BM=128, BN=32, num_warps=8, num_stages=3)
    return against(launched, lambda: (torch.bmm(q.float(), k.float().transpose(1, 2)) * (1.4427 * 0.6931472 * d**-0.5)).softmax(2) @ v.float())


@triton.jit
def e5m2_boxes_extremes_kernel(a_ptr, b_ptr, c_ptr, high_ptr, low_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Eight-bit floats through block pointers, one of them turned; besides the product, rows' largest and least numbers in each tile.
    pm = tl.program_id(0)
    pn = tl.program_id(1)
    a_box = tl.make_block_ptr(a_ptr, shape=(M, K), strides=(K, 1), offsets=(pm * BM, 0), block_shape=(BM, BK), order=(1, 0))
    b_box = tl.make_block_ptr(b_ptr, shape=(K, N), strides=(1, K), offsets=(0, pn * BN), block_shape=(BK, BN), order=(0, 1))
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for _ in range(0, K, BK):
        a = tl.load(a_box, boundary_check=(0,))
        b = tl.load(b_box, boundary_check=(1,))
        acc += tl.dot(a, b)
        a_box = tl.advance(a_box, (0, BK))
        b_box = tl.advance(b_box, (BK, 0))
    c_box = tl.make_block_ptr(c_ptr, shape=(M, N), strides=(N, 1), offsets=(pm * BM, pn * BN), block_shape=(BM, BN), order=(1, 0))
    tl.store(c_box, acc.to(tl.bfloat16), boundary_check=(0, 1))
    m = pm * BM + tl.arange(0, BM)
    inside = (pn * BN + tl.arange(0, BN))[None, :] < N
    tl.store(high_ptr + m * tl.num_programs(1) + pn, tl.max(tl.where(inside, acc, -1.0e30), axis=1), mask=m < M)
    tl.store(low_ptr + m * tl.num_programs(1) + pn, tl.min(tl.where(inside, acc, 1.0e30), axis=1), mask=m < M)


@case
def carousel_of_boxes_of_e5m2_and_their_extremes(m=1400, n=1500, k=1024):
    a, b = rand(m, k).to(torch.float8_e5m2), rand(n, k).to(torch.float8_e5m2)
    tiles = cdiv(n, 128)
    c, high, low = zeros(m, n, dtype="bfloat16"), zeros(m, tiles, dtype="float32"), zeros(m, tiles, dtype="float32")
    launched = run(e5m2_boxes_extremes_kernel, (cdiv(m, 64), tiles), (a, b, c, high, low, m, n, k), (c, high, low), BM=64, BN=128, BK=64, num_warps=4, num_stages=5)

    def reference():
        y = a.float() @ b.float().t()
        parts = y.split(128, 1)
        return y, torch.stack([p.amax(1) for p in parts], 1), torch.stack([p.amin(1) for p in parts], 1)

    return against(launched, reference)


@triton.jit
def described_rows_of_batches_kernel(x_ptr, w_ptr, bias_ptr, y_ptr, B, T, C, N, BT: tl.constexpr, BN: tl.constexpr, BC: tl.constexpr):
    # Descriptors of three axes: a program goes along all rows of a sample for its columns.
    x_desc = tl.make_tensor_descriptor(x_ptr, shape=[B, T, C], strides=[T * C, C, 1], block_shape=[1, BT, BC])
    w_desc = tl.make_tensor_descriptor(w_ptr, shape=[N, C], strides=[C, 1], block_shape=[BN, BC])
    y_desc = tl.make_tensor_descriptor(y_ptr, shape=[B, T, N], strides=[T * N, N, 1], block_shape=[1, BT, BN])
    n0 = tl.program_id(0) * BN
    b = tl.program_id(1)
    n = n0 + tl.arange(0, BN)
    bias = tl.load(bias_ptr + n, mask=n < N, other=0.0)
    for t0 in range(0, T, BT):
        acc = tl.zeros((BT, BN), dtype=tl.float32) + bias[None, :]
        for c0 in range(0, C, BC):
            x = tl.reshape(x_desc.load([b, t0, c0]), (BT, BC))
            w = w_desc.load([n0, c0])
            acc = tl.dot(x, tl.trans(w), acc)
        acc = tl.where(acc > 0, acc, acc * 0.1)
        y_desc.store([b, t0, n0], tl.reshape(acc.to(tl.bfloat16), (1, BT, BN)))


@case
def carousel_of_described_rows_of_batches(b=40, t=300, c=328, n=520):
    x, w, bias, y = rand(b, t, c, dtype="bfloat16"), rand(n, c, dtype="bfloat16"), f32(n), zeros(b, t, n, dtype="bfloat16")
    launch, args = run(described_rows_of_batches_kernel, (cdiv(n, 64), b), (x, w, bias, y, b, t, c, n), y, BT=64, BN=64, BC=64, num_warps=4, num_stages=3)

    def told(*args):
        triton.set_allocator(lambda size, align, stream: torch.empty(size, device="cuda", dtype=torch.int8))
        return launch(*args)

    return against((told, args), lambda: F.leaky_relu(x.float() @ w.float().t() + bias, 0.1))


@triton.jit
def complex_by_three_products_kernel(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Complex matrices whose parts lie side by side: split in registers, three real products instead of four, joined again.
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    part = tl.arange(0, 2)
    first = tl.zeros((BM, BN), dtype=tl.float32)
    second = tl.zeros((BM, BN), dtype=tl.float32)
    third = tl.zeros((BM, BN), dtype=tl.float32)
    for k0 in range(0, K, BK):
        k = k0 + tl.arange(0, BK)
        a = tl.load(a_ptr + (m[:, None, None] * K + k[None, :, None]) * 2 + part[None, None, :], mask=(m[:, None, None] < M) & (k[None, :, None] < K), other=0.0)
        b = tl.load(b_ptr + (k[:, None, None] * N + n[None, :, None]) * 2 + part[None, None, :], mask=(k[:, None, None] < K) & (n[None, :, None] < N), other=0.0)
        ar, ai = tl.split(a)
        br, bi = tl.split(b)
        first = tl.dot(ar, br, first)
        second = tl.dot(ai, bi, second)
        third = tl.dot(ar + ai, br + bi, third)
    c = tl.join(first - second, third - first - second)
    tl.store(c_ptr + (m[:, None, None] * N + n[None, :, None]) * 2 + part[None, None, :], c, mask=(m[:, None, None] < M) & (n[None, :, None] < N))


@case
def carousel_of_complex_pairs_by_three_products(m=1000, n=900, k=500):
    a, b, c = rand(m, k, 2), rand(k, n, 2), zeros(m, n, 2, dtype="float32")
    launched = run(complex_by_three_products_kernel, (cdiv(m, 64), cdiv(n, 64)), (a, b, c, m, n, k), c, BM=64, BN=64, BK=32, num_warps=8, num_stages=2)
    return against(launched, lambda: torch.view_as_real(torch.view_as_complex(a.float()) @ torch.view_as_complex(b.float())))


@triton.jit
def _then(a1, b1, n1, a2, b2, n2):
    return a1 * a2, b1 * a2 + b2, tl.where(a2 == 0.0, n2, n1 + n2)


@triton.jit
def averages_that_start_anew_kernel(x_ptr, reset_ptr, decay_ptr, y_ptr, since_ptr, T, C, BT: tl.constexpr, BC: tl.constexpr):
    # Fading sums down columns that start anew where a byte says so, and how many steps ago that was; scans of triples over axis 0 with a carry.
    c = tl.program_id(0) * BC + tl.arange(0, BC)
    base = tl.program_id(1) * T
    decay = tl.load(decay_ptr + c, mask=c < C, other=0.5)
    carry = tl.zeros((BC,), dtype=tl.float32)
    ago = tl.zeros((BC,), dtype=tl.int32)
    for t0 in range(0, T, BT):
        t = t0 + tl.arange(0, BT)
        mask = (t[:, None] < T) & (c[None, :] < C)
        fresh = tl.load(reset_ptr + base + t, mask=t < T, other=0) != 0
        x = tl.load(x_ptr + (base + t)[:, None] * C + c[None, :], mask=mask, other=0.0)
        a = tl.where(fresh[:, None], 0.0, tl.broadcast_to(decay[None, :], (BT, BC)))
        n = tl.where(tl.broadcast_to(fresh[:, None], (BT, BC)), 0, 1)
        a, y, n = tl.associative_scan((a, x, n), 0, _then)
        y += a * carry[None, :]
        n = tl.where(a == 0.0, n, n + ago[None, :])
        tl.store(y_ptr + (base + t)[:, None] * C + c[None, :], y, mask=mask)
        tl.store(since_ptr + (base + t)[:, None] * C + c[None, :], n.to(tl.int16), mask=mask)
        last = tl.arange(0, BT)[:, None] == BT - 1
        carry = tl.sum(tl.where(last, y, 0.0), axis=0)
        ago = tl.sum(tl.where(last, n, 0), axis=0)


@case
def carousel_of_averages_that_start_anew(batch=16, t=700, c=300):
    x, reset, decay = f32(batch, t, c), (uniform(batch, t) < 0.02).to(torch.uint8), uniform(c) * 0.3 + 0.7
    y, since = zeros(batch, t, c, dtype="float32"), zeros(batch, t, c, dtype="int16")
    launched = run(averages_that_start_anew_kernel, (cdiv(c, 32), batch), (x, reset, decay, y, since, t, c), (y, since), BT=64, BC=32, num_warps=8)

    def reference():
        total, n, ys, ns = torch.zeros(batch, c, device=x.device), torch.zeros(batch, c, device=x.device), [], []
        for i in range(t):
            go = reset[:, i, None] == 0
            total, n = torch.where(go, total * decay, 0) + x[:, i], torch.where(go, n + 1, 0)
            ys.append(total)
            ns.append(n)
        return torch.stack(ys, 1), torch.stack(ns, 1)

    return against(launched, reference)


@triton.jit
def erosion_with_border_branch_kernel(img_ptr, on_ptr, out_ptr, seen_ptr, H, W, R: tl.constexpr, BH: tl.constexpr, BW: tl.constexpr):
    # The least byte around each pixel among those that are on; programs away from the border load without masks.
    y = tl.program_id(1) * BH + tl.arange(0, BH)[:, None]
    x = tl.program_id(0) * BW + tl.arange(0, BW)[None, :]
    top = tl.program_id(1) * BH
    left = tl.program_id(0) * BW
    least = tl.full((BH, BW), 255, dtype=tl.int32)
    seen = tl.zeros((BH, BW), dtype=tl.int32)
    interior = (top >= R) & (top + BH + R <= H) & (left >= R) & (left + BW + R <= W)
    if interior:
        for dy in tl.static_range(-R, R + 1):
            for dx in tl.static_range(-R, R + 1):
                at = (y + dy) * W + x + dx
                on = tl.load(on_ptr + at)
                v = tl.load(img_ptr + at).to(tl.int32)
                least = tl.where(on, tl.minimum(least, v), least)
                seen += on.to(tl.int32)
    else:
        for dy in range(-R, R + 1):
            for dx in range(-R, R + 1):
                ok = (y + dy >= 0) & (y + dy < H) & (x + dx >= 0) & (x + dx < W)
                at = (y + dy) * W + x + dx
                on = tl.load(on_ptr + at, mask=ok, other=0).to(tl.int1)
                v = tl.load(img_ptr + at, mask=ok, other=255).to(tl.int32)
                least = tl.where(on, tl.minimum(least, v), least)
                seen += on.to(tl.int32)
    keep = (y < H) & (x < W)
    tl.store(out_ptr + y * W + x, least.to(tl.uint8), mask=keep)
    tl.store(seen_ptr + y * W + x, seen.to(tl.int8), mask=keep)


@case
def carousel_of_the_least_bytes_around(height=1501, width=2003):
    img, on = ints(0, 256, height, width, dtype="uint8"), uniform(height, width) < 0.7
    out, seen = zeros(height, width, dtype="uint8"), zeros(height, width, dtype="int8")
    launched = run(erosion_with_border_branch_kernel, (cdiv(width, 128), cdiv(height, 4)), (img, on, out, seen, height, width), (out, seen), R=2, BH=4, BW=128, num_warps=1)

    def reference():
        x = torch.where(on, img.float(), 255.0)
        least = -F.max_pool2d(-F.pad(x, (2, 2, 2, 2), value=255.0)[None, None], 5, 1)[0, 0]
        return least, F.conv2d(on.float()[None, None], torch.ones(1, 1, 5, 5, device=x.device), padding=2)[0, 0]

    return against(launched, reference)


@triton.jit
def confusion_of_classes_kernel(logits_ptr, label_ptr, guess_ptr, table_ptr, right_ptr, N, CLASSES: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr):
    # Which class is mistaken for which, by one atomic a row, and how many are right, by one a program.
    r = tl.arange(0, ROWS)
    c = tl.arange(0, COLS)
    right = 0
    for start in range(tl.program_id(0) * ROWS, N, tl.num_programs(0) * ROWS):
        row = start + r
        x = tl.load(logits_ptr + row[:, None] * CLASSES + c[None, :], mask=(row[:, None] < N) & (c[None, :] < CLASSES), other=float("-inf"))
        guess = tl.argmax(x, axis=1)
        label = tl.load(label_ptr + row, mask=row < N, other=255).to(tl.int32)
        known = (row < N) & (label != 255)
        tl.atomic_add(table_ptr + label * CLASSES + guess, 1, mask=known)
        right += tl.sum((known & (label == guess)).to(tl.int32), axis=0)
        tl.store(guess_ptr + row, guess.to(tl.uint8), mask=row < N)
    tl.atomic_add(right_ptr, right)


@case
def carousel_of_classes_that_are_confused(n=400003, classes=21, programs=528):
    x, label = f32(n, classes), ints(0, classes, n, dtype="uint8")
    label = torch.where(uniform(n) < 0.1, 255, label).to(torch.uint8)
    guess, table, right = zeros(n, dtype="uint8"), zeros(classes, classes, dtype="int32"), zeros(1, dtype="int32")
    launched = run(confusion_of_classes_kernel, (programs,), (x, label, guess, table, right, n), (guess, table, right), CLASSES=classes, ROWS=64, COLS=32, num_warps=2)

    def reference():
        g, known = x.argmax(1), label != 255
        t = torch.bincount(label[known].long() * classes + g[known], minlength=classes * classes).reshape(classes, classes)
        return g, t, t.diag().sum()[None]

    return against(cleared(launched, table, right), reference)


@triton.jit
def retrieved_keys_attention_kernel(q_ptr, corpus_ptr, where_ptr, out_ptr, lse_ptr, S, scale, H: tl.constexpr, HP: tl.constexpr, D: tl.constexpr, BS: tl.constexpr):
    # Eight heads, padded to sixteen rows, ask vectors of a large store that a list of long places names; places below zero count for nothing.
    b = tl.program_id(0)
    h = tl.arange(0, HP)
    d = tl.arange(0, D)
    q = tl.load(q_ptr + (b * H + h[:, None]) * D + d[None, :], mask=h[:, None] < H, other=0.0)
    m = tl.full((HP,), float("-inf"), tl.float32)
    l = tl.zeros((HP,), tl.float32)
    acc = tl.zeros((HP, D), tl.float32)
    i = 0
    while i < S:
        s = i + tl.arange(0, BS)
        place = tl.load(where_ptr + b * S + s, mask=s < S, other=-1)
        ok = place >= 0
        x = tl.load(corpus_ptr + place[:, None] * D + d[None, :], mask=ok[:, None], other=0.0)
        logits = tl.dot(q, tl.trans(x)) * scale
        logits = tl.where(ok[None, :], logits, -60000.0)
        m_new = tl.maximum(m, tl.max(logits, axis=1))
        alpha = tl.exp(m - m_new)
        p = tl.exp(logits - m_new[:, None])
        l = l * alpha + tl.sum(p, axis=1)
        acc = acc * alpha[:, None] + tl.dot(p.to(x.dtype), x)
        m = m_new
        i += BS
    tl.store(out_ptr + (b * H + h[:, None]) * D + d[None, :], (acc / l[:, None]).to(out_ptr.dtype.element_ty), mask=h[:, None] < H)
    tl.store(lse_ptr + b * H + h, m + tl.log(l), mask=h < H)


@case
def carousel_of_vectors_from_a_store(batch=396, s=700, stored=100003, heads=8, d=128):
    q, corpus = rand(batch, heads, d), rand(stored, d)
    where = ints(0, stored, batch, s, dtype="int64")
    where = torch.where(uniform(batch, s) < 0.15, -1, where)
    out, lse = zeros(batch, heads, d), zeros(batch, heads, dtype="float32")
    launched = run(retrieved_keys_attention_kernel, (batch,), (q, corpus, where, out, lse, s, 0.0884), (out, lse), H=heads, HP=16, D=d, BS=64, num_warps=4, num_stages=1)

    def reference():
        z = torch.stack([q[b].float() @ corpus[where[b].clamp_min(0)].float().t() for b in range(batch)]) * 0.0884
        z = z.masked_fill((where < 0)[:, None], float("-inf"))
        return torch.stack([z[b].softmax(1) @ corpus[where[b].clamp_min(0)].float() for b in range(batch)]), z.logsumexp(2)

    return against(launched, reference)


@triton.jit
def folded_pixels_linear_kernel(x_ptr, w_ptr, bias_ptr, y_ptr, B, C, H, W, N, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Squares of 3 x 2 pixels of all channels through one layer and an exact GELU: all places come by division, for rows and in the loop.
    OH = H // 3
    OW = W // 2
    pid = tl.program_id(0)
    m = (pid // tl.cdiv(N, BN)) * BM + tl.arange(0, BM)
    n = (pid % tl.cdiv(N, BN)) * BN + tl.arange(0, BN)
    ow = m % OW
    oh = (m // OW) % OH
    b = m // (OW * OH)
    K = C * 6
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for i in range(tl.cdiv(K, BK)):
        k = i * BK + tl.arange(0, BK)
        c = k // 6
        dy = k % 6 // 2
        dx = k % 2
        row = ((b * C)[:, None] + c[None, :]) * H + (oh * 3)[:, None] + dy[None, :]
        x = tl.load(x_ptr + row * W + (ow * 2)[:, None] + dx[None, :], mask=(b < B)[:, None] & (k < K)[None, :], other=0.0)
        w = tl.load(w_ptr + n[None, :] * K + k[:, None], mask=(n < N)[None, :] & (k < K)[:, None], other=0.0)
        acc += tl.dot(x, w)
    acc += tl.load(bias_ptr + n, mask=n < N, other=0.0)[None, :]
    acc = 0.5 * acc * (1.0 + tl.erf(acc * 0.7071067811865476))
    tl.store(y_ptr + m[:, None] * N + n[None, :], acc.to(y_ptr.dtype.element_ty), mask=(b < B)[:, None] & (n < N)[None, :])


@case
def carousel_of_pixels_folded_three_by_two(b=4, c=60, height=150, width=202, n=200):
    x, w, bias = rand(b, c, height, width, dtype="bfloat16"), rand(n, c * 6, dtype="bfloat16") * 0.1, f32(n)
    oh, ow = height // 3, width // 2
    y = zeros(b * oh * ow, n, dtype="bfloat16")
    grid = (cdiv(b * oh * ow, 64) * cdiv(n, 64),)
    launched = run(folded_pixels_linear_kernel, grid, (x, w, bias, y, b, c, height, width, n), y, BM=64, BN=64, BK=64, num_warps=4, num_stages=3)

    def reference():
        z = x.float().reshape(b, c, oh, 3, ow, 2).permute(0, 2, 4, 1, 3, 5).reshape(b * oh * ow, c * 6)
        return F.gelu(z @ w.float().t() + bias)

    return against(launched, reference)


@triton.jit
def weighted_gram_one_warp_kernel(x_ptr, weight_ptr, g_ptr, N, K, per, BM: tl.constexpr, BK: tl.constexpr):
    # Weighted products of columns with columns, 16 x 16 by one warp in full precision; only pairs above the diagonal, stored twice.
    i = tl.program_id(0)
    j = tl.program_id(1)
    if j < i:
        return
    a = i * BM + tl.arange(0, BM)
    b = j * BM + tl.arange(0, BM)
    start = tl.program_id(2) * per
    acc = tl.zeros((BM, BM), dtype=tl.float32)
    for r0 in range(start, min(start + per, N), BK):
        r = r0 + tl.arange(0, BK)
        live = (r < start + per) & (r < N)
        weight = tl.load(weight_ptr + r, mask=live, other=0.0)
        left = tl.load(x_ptr + r[None, :] * K + a[:, None], mask=live[None, :] & (a[:, None] < K), other=0.0)
        right = tl.load(x_ptr + r[:, None] * K + b[None, :], mask=live[:, None] & (b[None, :] < K), other=0.0)
        acc = tl.dot(left * weight[None, :], right, acc, input_precision="ieee")
    ok = (a[:, None] < K) & (b[None, :] < K)
    tl.atomic_add(g_ptr + a[:, None] * K + b[None, :], acc, mask=ok)
    if i != j:
        tl.atomic_add(g_ptr + b[None, :] * K + a[:, None], acc, mask=ok)


@case
def carousel_of_columns_that_meet_columns(n=20011, k=100, parts=40):
    x, weight, g = f32(n, k), uniform(n), zeros(k, k, dtype="float32")
    tiles = cdiv(k, 16)
    launched = run(weighted_gram_one_warp_kernel, (tiles, tiles, parts), (x, weight, g, n, k, cdiv(n, parts)), g, BM=16, BK=16, num_warps=1, num_stages=5)
    return against(cleared(launched, g), lambda: (x.double().t() @ (x.double() * weight[:, None])).float())


@triton.jit
def mlp_and_its_facts_kernel(x_ptr, w1_ptr, b1_ptr, w2_ptr, y_ptr, square_ptr, active_ptr, M, D: tl.constexpr, H: tl.constexpr, BM: tl.constexpr, BH: tl.constexpr, BK: tl.constexpr):
    # Two layers at once, the hidden one in unrolled parts, each a loop of its own; also how large and how often positive hidden numbers are.
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    d = tl.arange(0, D)
    y = tl.zeros((BM, D), dtype=tl.float32)
    square = tl.zeros((BM,), dtype=tl.float32)
    active = tl.zeros((BM,), dtype=tl.int32)
    for part in tl.static_range(H // BH):
        h = part * BH + tl.arange(0, BH)
        hidden = tl.zeros((BM, BH), dtype=tl.float32)
        for k0 in range(0, D, BK):
            k = k0 + tl.arange(0, BK)
            x = tl.load(x_ptr + m[:, None] * D + k[None, :], mask=m[:, None] < M, other=0.0)
            w1 = tl.load(w1_ptr + k[:, None] * H + h[None, :])
            hidden = tl.dot(x, w1, hidden)
        hidden += tl.load(b1_ptr + h)[None, :]
        active += tl.sum((hidden > 0.0).to(tl.int32), axis=1)
        hidden = hidden * tl.sigmoid(1.702 * hidden)
        square += tl.sum(hidden * hidden, axis=1)
        w2 = tl.load(w2_ptr + h[:, None] * D + d[None, :])
        y = tl.dot(hidden.to(tl.float16), w2, y)
    tl.store(y_ptr + m[:, None] * D + d[None, :], y.to(tl.float16), mask=m[:, None] < M)
    tl.store(square_ptr + m, square, mask=m < M)
    tl.store(active_ptr + m, active, mask=m < M)


@case
def carousel_of_two_layers_and_their_facts(m=20001, d=128, hidden=320):
    x, w1, b1, w2 = rand(m, d), rand(d, hidden) * 0.1, f32(hidden), rand(hidden, d) * 0.1
    y, square, active = zeros(m, d), zeros(m, dtype="float32"), zeros(m, dtype="int32")
    launched = run(mlp_and_its_facts_kernel, (cdiv(m, 64),), (x, w1, b1, w2, y, square, active, m), (y, square, active), D=d, H=hidden, BM=64, BH=64, BK=32, num_warps=4, num_stages=3)

    def reference():
        h = x.float() @ w1.float() + b1
        g = h * (1.702 * h).sigmoid()
        return g @ w2.float(), g.square().sum(1), (h > 0).sum(1)

    return against(launched, reference)


@triton.jit
def packed_argsort_rows_kernel(value_ptr, load_ptr, order_ptr, upto_ptr, rows, cols, ROWS: tl.constexpr, COLS: tl.constexpr):
    # Rows ordered by short numbers packed with their places, largest last; what belongs to them is gathered and summed from the end.
    r = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    c = tl.arange(0, COLS)[None, :]
    mask = (r < rows) & (c < cols)
    value = tl.load(value_ptr + r * cols + c, mask=mask, other=0).to(tl.int32)
    packed = tl.where(mask, value * COLS + c, 0x7FFFFFFF)
    packed = tl.sort(packed, dim=1)
    order = packed & (COLS - 1)
    load = tl.load(load_ptr + r * cols + c, mask=mask, other=0.0).to(tl.float32)
    load = tl.gather(load, order, axis=1)
    load = tl.where(c < cols, load, 0.0)
    upto = tl.cumsum(tl.flip(load, 1), axis=1)
    tl.store(order_ptr + r * cols + c, order.to(tl.uint8), mask=mask)
    tl.store(upto_ptr + r * cols + c, tl.flip(upto, 1), mask=mask)


@case
def carousel_of_rows_in_order_with_what_they_carry(rows=10001, cols=200):
    value, load = ints(-300, 300, rows, cols, dtype="int16"), uniform(rows, cols).half()
    order, upto = zeros(rows, cols, dtype="uint8"), zeros(rows, cols, dtype="float32")
    launched = run(packed_argsort_rows_kernel, (cdiv(rows, 2),), (value, load, order, upto, rows, cols), (order, upto), ROWS=2, COLS=256, num_warps=2)

    def reference():
        at = value.int().argsort(dim=1, stable=True)
        return at, load.float().gather(1, at).flip(1).cumsum(1).flip(1)

    return against(launched, reference)


@triton.jit
def octree_descent_kernel(code_ptr, child_ptr, value_ptr, leaf_ptr, depth_ptr, sum_ptr, points, root, LEVELS: tl.constexpr, BLOCK: tl.constexpr):
    # Points go down a tree of eight children a node, as far as it has nodes; loads depend on loads until no lane goes on.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    live = i < points
    code = tl.load(code_ptr + i, mask=live, other=0)
    node = tl.zeros((BLOCK,), dtype=tl.int32) + root
    total = tl.load(value_ptr + node, mask=live, other=0.0)
    depth = tl.zeros((BLOCK,), dtype=tl.int32)
    going = live
    while tl.max(going.to(tl.int32), axis=0) > 0:
        digit = ((code >> (3 * (LEVELS - 1 - depth))) & 7).to(tl.int32)
        child = tl.load(child_ptr + node * 8 + digit, mask=going, other=-1)
        going = going & (child >= 0)
        node = tl.where(going, child, node)
        depth += going.to(tl.int32)
        total += tl.load(value_ptr + node, mask=going, other=0.0)
        going = going & (depth < LEVELS)
    tl.store(leaf_ptr + i, node, mask=live)
    tl.store(depth_ptr + i, depth.to(tl.int8), mask=live)
    tl.store(sum_ptr + i, total, mask=live)


@case
def carousel_of_points_down_a_tree(points=500009, nodes=60000, levels=10):
    at = torch.arange(nodes, device="cuda")
    place = torch.randperm(nodes, device="cuda")
    below = at[:, None] * 8 + torch.arange(1, 9, device="cuda")
    there = (below < nodes) & (uniform(nodes, 8) < 0.8)
    child = torch.empty(nodes, 8, dtype=torch.int32, device="cuda")
    child[place] = torch.where(there, place[below.clamp_max(nodes - 1)], -1).to(torch.int32)
    value, code, root = f32(nodes), ints(0, 1 << (3 * levels), points, dtype="int64"), int(place[0])
    leaf, depth, total = zeros(points, dtype="int32"), zeros(points, dtype="int8"), zeros(points, dtype="float32")
    args = code, child, value, leaf, depth, total, points, root
    launched = run(octree_descent_kernel, (cdiv(points, 128),), args, (leaf, depth, total), LEVELS=levels, BLOCK=128, num_warps=2)

    def reference():
        node = torch.full((points,), root, dtype=torch.int64, device=code.device)
        deep, go, sums = torch.zeros_like(node), torch.ones_like(node, dtype=torch.bool), value[node]
        for i in range(levels):
            down = child[node, (code >> (3 * (levels - 1 - i))) & 7].long()
            go = go & (down >= 0)
            node = torch.where(go, down, node)
            deep, sums = deep + go, sums + torch.where(go, value[node], 0)
        return node, deep, sums

    return against(launched, reference)


@triton.jit
def shuffled_groups_linear_kernel(x_ptr, w_ptr, y_ptr, T, N, G: tl.constexpr, CG: tl.constexpr, BT: tl.constexpr, BN: tl.constexpr):
    # Groups of channels are normed, shuffled by a permutation of three axes and multiplied, block of outputs by block, which are stored with times last.
    t = tl.program_id(0) * BT + tl.arange(0, BT)
    b = tl.program_id(1)
    g = tl.arange(0, G)
    c = tl.arange(0, CG)
    at = ((b * G + g[:, None, None]) * CG + c[None, :, None]) * T + t[None, None, :]
    x = tl.load(x_ptr + at, mask=tl.broadcast_to((t < T)[None, None, :], (G, CG, BT)), other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=1) / CG
    x -= tl.expand_dims(mean, 1)
    x *= tl.rsqrt(tl.sum(x * x, axis=1) / CG + 1e-5)[:, None, :]
    z = tl.reshape(tl.permute(x, (2, 1, 0)), (BT, CG * G)).to(tl.bfloat16)
    k = tl.arange(0, G * CG)
    for n0 in tl.range(0, N, BN, num_stages=2):
        n = n0 + tl.arange(0, BN)
        w = tl.load(w_ptr + n[None, :] * (G * CG) + k[:, None], mask=n[None, :] < N, other=0.0)
        y = tl.dot(z, w)
        tl.store(y_ptr + (b * N + n[:, None]) * T + t[None, :], tl.trans(y).to(y_ptr.dtype.element_ty), mask=(n[:, None] < N) & (t[None, :] < T))


@case
def carousel_of_groups_of_channels_shuffled(b=24, t=1500, n=200):
    x, w, y = rand(b, 4, 16, t, dtype="bfloat16"), rand(n, 64, dtype="bfloat16"), zeros(b, n, t, dtype="bfloat16")
    launched = run(shuffled_groups_linear_kernel, (cdiv(t, 64), b), (x, w, y, t, n), y, G=4, CG=16, BT=64, BN=32, num_warps=4, num_stages=2)

    def reference():
        z = F.layer_norm(x.float().transpose(2, 3), (16,)).transpose(2, 3)
        return torch.einsum("bkt,nk->bnt", z.transpose(1, 2).reshape(b, 64, t), w.float())

    return against(launched, reference)


@triton.jit
def bytes_requantized_kernel(x_ptr, w_ptr, colsum_ptr, mult_ptr, y_ptr, M, N, K, x_zero, y_zero, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Unsigned bytes made signed by one bit, times signed bytes; sums go back to bytes by long multiplications, shifts and bounds.
    m = tl.program_id(1) * BM + tl.arange(0, BM)
    n = tl.program_id(0) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.int32)
    for k0 in range(0, K, BK):
        k = k0 + tl.arange(0, BK)
        x = tl.load(x_ptr + m[:, None] * K + k[None, :], mask=(m[:, None] < M) & (k[None, :] < K), other=128)
        w = tl.load(w_ptr + k[:, None] * N + n[None, :], mask=(k[:, None] < K) & (n[None, :] < N), other=0)
        acc += tl.dot((x ^ 0x80).to(tl.int8, bitcast=True), w)
    colsum = tl.load(colsum_ptr + n, mask=n < N, other=0)
    mult = tl.load(mult_ptr + n, mask=n < N, other=0).to(tl.int64)
    acc += (128 - x_zero) * colsum[None, :]
    y = ((acc.to(tl.int64) * mult[None, :] + 32768) >> 16).to(tl.int32) + y_zero
    y = tl.minimum(tl.maximum(y, 0), 255)
    tl.store(y_ptr + m[:, None] * N + n[None, :], y.to(tl.uint8), mask=(m[:, None] < M) & (n[None, :] < N))


@case
def carousel_of_bytes_that_become_bytes(m=1600, n=1500, k=1000):
    x, w = ints(0, 256, m, k, dtype="uint8"), ints(-127, 128, k, n, dtype="int8")
    colsum, mult, y = w.int().sum(0).to(torch.int32), ints(5, 15, n), zeros(m, n, dtype="uint8")
    args = x, w, colsum, mult, y, m, n, k, 120, 111
    launched = run(bytes_requantized_kernel, (cdiv(n, 64), cdiv(m, 32)), args, y, BM=32, BN=64, BK=64, num_warps=2, num_stages=4)

    def reference():
        acc = ((x.double() - 120) @ w.double()).round().long()
        return far((((acc * mult.long() + 32768) >> 16) + 111).clamp(0, 255))

    return against(viewed(launched, far), reference)


@triton.jit
def supervised_contrast_kernel(z_ptr, label_ptr, loss_ptr, pairs_ptr, N, inv_t, D: tl.constexpr, DP: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    # Rows against all rows: those with the same label ought to be near; sums and maxima of what is near are kept step by step.
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    d = tl.arange(0, DP)
    z = tl.load(z_ptr + m[:, None] * D + d[None, :], mask=(m[:, None] < N) & (d[None, :] < D), other=0.0)
    mine = tl.load(label_ptr + m, mask=m < N, other=-1)
    top = tl.full((BM,), -1.0e9, dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    same = tl.zeros((BM,), dtype=tl.float32)
    pairs = tl.zeros((BM,), dtype=tl.int32)
    for start in tl.range(0, N, BN, num_stages=4):
        n = start + tl.arange(0, BN)
        other = tl.load(z_ptr + n[:, None] * D + d[None, :], mask=(n[:, None] < N) & (d[None, :] < D), other=0.0)
        theirs = tl.load(label_ptr + n, mask=n < N, other=-2)
        s = tl.dot(z, other.T) * inv_t
        ok = (n[None, :] < N) & (m[:, None] != n[None, :])
        s = tl.where(ok, s, -1.0e9)
        new = tl.maximum(top, tl.max(s, axis=1))
        total = total * tl.exp(top - new) + tl.sum(tl.exp(s - new[:, None]), axis=1)
        top = new
        match = ok & (mine[:, None] == theirs[None, :])
        same += tl.sum(tl.where(match, s, 0.0), axis=1)
        pairs += tl.sum(match.to(tl.int32), axis=1)
    loss = top + tl.log(total) - same / tl.maximum(pairs, 1).to(tl.float32)
    tl.store(loss_ptr + m, loss, mask=m < N)
    tl.store(pairs_ptr + m, pairs, mask=m < N)


@case
def carousel_of_rows_near_those_of_their_label(n=6001, d=48, labels=50):
    z, label = F.normalize(f32(n, d), dim=1).half(), ints(0, labels, n)
    loss, pairs = zeros(n, dtype="float32"), zeros(n, dtype="int32")
    launched = run(supervised_contrast_kernel, (cdiv(n, 32),), (z, label, loss, pairs, n, 10.0), (loss, pairs), D=d, DP=64, BM=32, BN=64, num_warps=2)

    def reference():
        s = z.float() @ z.float().t() * 10
        s.fill_diagonal_(float("-inf"))
        match = (label[:, None] == label).fill_diagonal_(False)
        count = match.sum(1)
        return s.logsumexp(1) - torch.where(match, s, 0).sum(1) / count.clamp_min(1), count

    return against(launched, reference)
