"""Errands of many trades in unusual tiles: codes, curves, strings, sounds, pictures, learning of vectors, dots of odd shapes, axes in the middle."""

import math

import torch
import triton
import triton.language as tl

from .common import against, arange, case, cdiv, cleared, f32, ints, rand, run, uniform, viewed, zeros


@triton.jit
def two_least(a0, b0, s0, a1, b1, s1):
    return tl.minimum(a0, a1), tl.minimum(tl.maximum(a0, a1), tl.minimum(b0, b1)), s0 ^ s1


@triton.jit
def check_nodes(msg_ptr, out_ptr, CHECKS, WORDS, DEG: tl.constexpr, P: tl.constexpr, BC: tl.constexpr, BW: tl.constexpr):
    # Messages of a check to each of its bits: the least of the others, by the two least of all; edges are a middle axis.
    c, e, w = tl.program_id(0) * BC + tl.arange(0, BC)[:, None, None], tl.arange(0, P)[None, :, None], tl.program_id(1) * BW + tl.arange(0, BW)[None, None, :]
    at = (c * DEG + e) * WORDS + w
    ok = (c < CHECKS) & (e < DEG) & (w < WORDS)
    x = tl.load(msg_ptr + at, mask=ok, other=60000.0).to(tl.float32)
    size, sign = tl.abs(x), (x < 0).to(tl.int32)
    least, second, signs = tl.reduce((size, tl.full((BC, P, BW), 60000.0, tl.float32), sign), 1, two_least, keep_dims=True)
    value = tl.where(size == least, second, least) * 0.75
    tl.store(out_ptr + at, tl.where((sign ^ signs) != 0, -value, value).to(tl.float16), mask=ok)


@case
def messages_of_parity_checks_by_the_two_least():
    checks, words, deg = 3000, 200, 7
    msg, out = rand(checks, deg, words), zeros(checks, deg, words)
    launched = run(check_nodes, (cdiv(checks, 4), cdiv(words, 64)), (msg, out, checks, words), out, DEG=deg, P=8, BC=4, BW=64)

    def reference():
        x = msg.float()
        rest = [torch.cat([x[:, :i], x[:, i + 1 :]], 1) for i in range(deg)]
        return torch.stack([r.abs().amin(1) * r.sign().prod(1) * 0.75 for r in rest], 1)

    return against(launched, reference)


@triton.jit
def hilbert_place(x_ptr, y_ptr, out_ptr, n, LEVELS: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x, y = tl.load(x_ptr + i, mask=i < n, other=0), tl.load(y_ptr + i, mask=i < n, other=0)
    place = tl.zeros((BLOCK,), tl.int64)
    side = 1 << (LEVELS - 1)
    while side > 0:
        rx, ry = ((x & side) != 0).to(tl.int32), ((y & side) != 0).to(tl.int32)
        place += ((3 * rx) ^ ry).to(tl.int64) * side * side
        turn = ry == 0
        flip = turn & (rx == 1)
        x, y = tl.where(flip, side - 1 - (x & (side - 1)), x & (side - 1)), tl.where(flip, side - 1 - (y & (side - 1)), y & (side - 1))
        x, y = tl.where(turn, y, x), tl.where(turn, x, y)
        side = side >> 1
    tl.store(out_ptr + i, place, mask=i < n)


@case
def places_along_a_curve_that_fills_the_plane():
    n, levels = 2_000_000, 20
    x, y, out = ints(0, 1 << levels, n), ints(0, 1 << levels, n), zeros(n, dtype="int64")
    return run(hilbert_place, (cdiv(n, 256),), (x, y, out, n), out, LEVELS=levels, BLOCK=256)


@triton.jit
def bit_parallel_distance(pattern_ptr, text_ptr, table_ptr, out_ptr, PAIRS, T, M: tl.constexpr, BLOCK: tl.constexpr):
    # A pair a lane: a column of 64 differences in two long words, a letter of the text a step; masks of letters in memory.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ok = i < PAIRS
    for j in range(M):
        letter = tl.load(pattern_ptr + i * M + j, mask=ok, other=0).to(tl.int32)
        old = tl.load(table_ptr + letter * PAIRS + i, mask=ok, other=0)
        tl.store(table_ptr + letter * PAIRS + i, old | (tl.full((BLOCK,), 1, tl.int64) << j), mask=ok)
    tl.debug_barrier()
    up, down = tl.full((BLOCK,), -1, tl.int64), tl.zeros((BLOCK,), tl.int64)
    score = tl.full((BLOCK,), M, tl.int32)
    for t in range(T):
        letter = tl.load(text_ptr + i * T + t, mask=ok, other=0).to(tl.int32)
        eq = tl.load(table_ptr + letter * PAIRS + i, mask=ok, other=0)
        xv = eq | down
        xh = (((eq & up) + up) ^ up) | eq
        ph, mh = down | ~(xh | up), up & xh
        score += tl.where((ph >> (M - 1)) & 1 != 0, 1, 0) - tl.where((mh >> (M - 1)) & 1 != 0, 1, 0)
        ph, mh = (ph << 1) | 1, mh << 1
        up, down = mh | ~(xv | ph), ph & xv
    tl.store(out_ptr + i, score, mask=ok)


@case
def distances_of_strings_of_48_by_columns_in_long_words():
    pairs, t, m = 30_000, 60, 48
    pattern, text = ints(0, 20, pairs, m, dtype="uint8"), ints(0, 20, pairs, t, dtype="uint8")
    table, out = zeros(20, pairs, dtype="int64"), zeros(pairs, dtype="int32")
    return cleared(run(bit_parallel_distance, (cdiv(pairs, 64),), (pattern, text, table, out, pairs, t), out, M=m, BLOCK=64, num_warps=2), table)


@triton.jit
def hex_to_words(text_ptr, out_ptr, bad_ptr, N, BLOCK: tl.constexpr):
    # Eight letters to a word, case does not matter; what is no digit is counted.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    j = tl.arange(0, 8)
    ok = (i < N)[:, None]
    c = tl.load(text_ptr + i[:, None] * 8 + j[None, :], mask=ok, other=48).to(tl.int32)
    low = c | 32
    digit = (c >= 48) & (c <= 57)
    letter = (low >= 97) & (low <= 102)
    value = tl.where(digit, c - 48, tl.where(letter, low - 87, 0))
    word = tl.sum(value.to(tl.int64) << ((7 - j) * 4)[None, :], 1)
    tl.store(out_ptr + i, word.to(tl.int32), mask=i < N)
    bad = tl.sum(tl.sum((~(digit | letter) & ok).to(tl.int32), 1), 0)
    if bad > 0:
        tl.atomic_add(bad_ptr, bad)


@case
def eight_letters_to_a_word_with_others_counted():
    n = 2_000_000
    letters = torch.tensor(list(b"0123456789abcdefABCDEF?"), dtype=torch.uint8, device="cuda")
    pick = torch.where(uniform(n * 8) < 1e-4, 22, ints(0, 22, n * 8))
    text, out, bad = letters[pick.long()], zeros(n, dtype="int32"), zeros(1, dtype="int32")
    return cleared(run(hex_to_words, (cdiv(n, 256),), (text, out, bad, n), (out, bad), BLOCK=256), bad)


@triton.jit
def gamma_draws(shape_ptr, out_ptr, tries_ptr, n, seed, BLOCK: tl.constexpr):
    # Rejection until every lane has its draw; normal numbers from a counter that all lanes share.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(shape_ptr + i, mask=i < n, other=2.0)
    d = a - 1.0 / 3.0
    c = 1.0 / tl.sqrt(9.0 * d)
    value, found = tl.zeros((BLOCK,), tl.float32), i >= n
    tries, step = tl.zeros((BLOCK,), tl.int32), 0
    while tl.min(found.to(tl.int32), 0) == 0:
        u1, u2, u3, _ = tl.rand4x(seed + step, i)
        z, _ = tl.pair_uniform_to_normal(u1, u2)
        v = 1.0 + c * z
        v = v * v * v
        inside = (v > 0) & (tl.log(u3) < 0.5 * z * z + d - d * v + d * tl.log(tl.maximum(v, 1e-20)))
        value = tl.where(inside & ~found, d * v, value)
        tries += tl.where(found, 0, 1)
        found = found | inside
        step += 1
    tl.store(out_ptr + i, value, mask=i < n)
    tl.store(tries_ptr + i, tries.to(tl.int8), mask=i < n)


@case
def gamma_numbers_drawn_until_all_are_taken():
    n = 1_000_000
    a, out, tries = uniform(n) * 5 + 1, zeros(n, dtype="float32"), zeros(n, dtype="int8")
    return viewed(run(gamma_draws, (cdiv(n, 512),), (a, out, tries, n, 77), (out, tries), BLOCK=512), lambda outs: (outs[0], outs[1] + 100.0))


@triton.jit
def plain_quadrants(x_ptr, out_ptr, H, W, R: tl.constexpr, BH: tl.constexpr, BW: tl.constexpr):
    # The mean of the quadrant of least variance around each pixel; quadrants share their middle row and column.
    y, x = tl.program_id(1) * BH + tl.arange(0, BH)[:, None], tl.program_id(0) * BW + tl.arange(0, BW)[None, :]
    best, value = tl.full((BH, BW), 1e30, tl.float32), tl.zeros((BH, BW), tl.float32)
    for quadrant in tl.static_range(4):
        total, squares = tl.zeros((BH, BW), tl.int32), tl.zeros((BH, BW), tl.int32)
        for a in range(R + 1):
            for b in range(R + 1):
                yy = tl.clamp((y + (a if quadrant < 2 else -a)).to(tl.float32), 0.0, H - 1.0).to(tl.int32)
                xx = tl.clamp((x + (b if quadrant % 2 == 0 else -b)).to(tl.float32), 0.0, W - 1.0).to(tl.int32)
                p = tl.load(x_ptr + yy * W + xx).to(tl.int32)
                total += p
                squares += p * p
        spread = (squares * (R + 1) * (R + 1) - total * total).to(tl.float32)
        value = tl.where(spread < best, total.to(tl.float32) / ((R + 1) * (R + 1)), value)
        best = tl.minimum(best, spread)
    tl.store(out_ptr + y * W + x, value, mask=(y < H) & (x < W))


@case
def pixels_to_means_of_their_plainest_quadrants():
    h, w = 1080, 1700
    x, out = ints(0, 256, h, w, dtype="uint8"), zeros(h, w, dtype="float32")
    return run(plain_quadrants, (cdiv(w, 64), cdiv(h, 8)), (x, out, h, w), out, R=3, BH=8, BW=64)


@triton.jit
def lapped_frames(x_ptr, basis_ptr, window_ptr, out_ptr, FRAMES, N: tl.constexpr, BF: tl.constexpr, BK: tl.constexpr):
    # Frames of 2 N samples that overlap by half, windowed, folded to N by a dot with cosines; 16 warps.
    f, k = tl.program_id(0) * BF + tl.arange(0, BF), tl.arange(0, N)
    acc = tl.zeros((BF, N), tl.float32)
    for j0 in range(0, 2 * N, BK):
        j = j0 + tl.arange(0, BK)
        x = tl.load(x_ptr + f[:, None] * N + j[None, :], mask=(f < FRAMES)[:, None], other=0.0)
        x = (x.to(tl.float32) * tl.load(window_ptr + j)[None, :]).to(tl.float16)
        acc = tl.dot(x, tl.load(basis_ptr + j[:, None] * N + k[None, :]), acc)
    tl.store(out_ptr + f[:, None] * N + k[None, :], acc, mask=(f < FRAMES)[:, None])


@case
def lapped_frames_to_256_cosines_by_sixteen_warps():
    frames, n = 6000, 256
    x, out = rand((frames + 1) * n), zeros(frames, n, dtype="float32")
    j, k = arange(2 * n).double(), arange(n).double()
    basis = ((j[:, None] + 0.5 + n / 2) * (k[None] + 0.5) * math.pi / n).cos().half()
    window = ((j + 0.5) * math.pi / (2 * n)).sin().float()
    launched = run(lapped_frames, (cdiv(frames, 64),), (x, basis, window, out, frames), out, N=n, BF=64, BK=32, num_warps=16)
    return against(launched, lambda: (x.float().unfold(0, 2 * n, n) * window) @ basis.float())


@triton.jit
def plucked_strings(delay_ptr, length_ptr, out_ptr, STRINGS, STEPS, BLOCK: tl.constexpr):
    # A string a lane, its delay line a ring in memory: the mean of the oldest two goes back in.
    s = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ok = s < STRINGS
    length = tl.load(length_ptr + s, mask=ok, other=2)
    at = tl.zeros((BLOCK,), tl.int32)
    old = tl.load(delay_ptr + s, mask=ok, other=0.0)
    for t in range(STEPS):
        following = tl.where(at + 1 == length, 0, at + 1)
        new = tl.load(delay_ptr + following * STRINGS + s, mask=ok, other=0.0)
        value = 0.498 * (old + new)
        tl.store(delay_ptr + at * STRINGS + s, value, mask=ok)
        tl.store(out_ptr + t * STRINGS + s, value, mask=ok)
        # What was just written is the next one's neighbor only where the ring is one long.
        old, at = new, following


@case
def plucked_strings_as_rings_of_their_own_length():
    strings, steps, cap = 4000, 300, 128
    first, length = f32(cap, strings), ints(20, cap, strings)
    delay, out = zeros(cap, strings, dtype="float32"), zeros(steps, strings, dtype="float32")
    launch, args = run(plucked_strings, (cdiv(strings, 32),), (delay, length, out, strings, steps), out, BLOCK=32, num_warps=1)

    def plucked(*args):
        delay.copy_(first)
        return launch(*args)

    return plucked, args


@triton.jit
def skip_gram_step(in_ptr, out_ptr, center_ptr, context_ptr, din_ptr, dout_ptr, N, D: tl.constexpr, K: tl.constexpr, BN: tl.constexpr):
    # A word, one that was near and seven drawn: scores of sigmoids, gradients added to both tables by atomics.
    i, k, d = tl.program_id(0) * BN + tl.arange(0, BN), tl.arange(0, K), tl.arange(0, D)
    ok = i < N
    center = tl.load(center_ptr + i, mask=ok, other=0)
    context = tl.load(context_ptr + i[:, None] * K + k[None, :], mask=ok[:, None], other=0)
    u = tl.load(in_ptr + center[:, None] * D + d[None, :])
    v = tl.load(out_ptr + context[:, :, None] * D + d[None, None, :])
    score = tl.sum(u[:, None, :] * v, 2)
    g = tl.where((k == 0)[None, :], 1.0, 0.0) - tl.sigmoid(score)
    tl.atomic_add(din_ptr + center[:, None] * D + d[None, :], tl.sum(g[:, :, None] * v, 1), mask=ok[:, None], sem="relaxed")
    tl.atomic_add(dout_ptr + context[:, :, None] * D + d[None, None, :], g[:, :, None] * u[:, None, :], mask=ok[:, None, None], sem="relaxed")


@case
def gradients_of_words_and_their_neighbors_by_atomics():
    n, d, k, words = 12_000, 128, 8, 30_000
    first, second = f32(words, d) / 8, f32(words, d) / 8
    center, context = ints(0, words, n), ints(0, words, n, k)
    din, dout = zeros(words, d, dtype="float32"), zeros(words, d, dtype="float32")
    args = first, second, center, context, din, dout, n
    launched = cleared(run(skip_gram_step, (cdiv(n, 4),), args, (din, dout), D=d, K=k, BN=4), din, dout)

    def reference():
        u, v = first[center.long()], second[context.long()]
        g = (arange(k) == 0).float() - (u[:, None] * v).sum(2).sigmoid()
        a, b = torch.zeros_like(first), torch.zeros_like(second)
        a.index_add_(0, center.long(), (g[..., None] * v).sum(1))
        b.index_add_(0, context.flatten().long(), (g[..., None] * u[:, None]).flatten(0, 1))
        return a, b

    return against(launched, reference)


@triton.jit
def user_equations(starts_ptr, items_ptr, rating_ptr, factors_ptr, a_ptr, b_ptr, damping, F: tl.constexpr, BK: tl.constexpr):
    # A user's rated items gathered 16 at a time: the sum of their outer products as a dot, in tf32, two warps.
    user = tl.program_id(0)
    first, last = tl.load(starts_ptr + user), tl.load(starts_ptr + user + 1)
    f = tl.arange(0, F)
    acc, right = tl.zeros((F, F), tl.float32), tl.zeros((F,), tl.float32)
    for i0 in range(first, last, BK):
        i = i0 + tl.arange(0, BK)
        item = tl.load(items_ptr + i, mask=i < last, other=0)
        r = tl.load(rating_ptr + i, mask=i < last, other=0.0)
        x = tl.load(factors_ptr + item[:, None] * F + f[None, :], mask=(i < last)[:, None], other=0.0)
        acc = tl.dot(x.T, x, acc)
        right += tl.sum(x * r[:, None], 0)
    acc += tl.where(f[:, None] == f[None, :], damping, 0.0)
    tl.store(a_ptr + user * F * F + f[:, None] * F + f[None, :], acc)
    tl.store(b_ptr + user * F + f, right)


@case
def equations_of_users_by_dots_of_16_gathered_items():
    users, items, f = 3000, 5000, 32
    counts = ints(1, 80, users, dtype="int64")
    starts = torch.cat([zeros(1, dtype="int64"), counts.cumsum(0)]).int()
    total = users * 80
    item, rating, factors = ints(0, items, total), uniform(total), f32(items, f)
    a, b = zeros(users, f, f, dtype="float32"), zeros(users, f, dtype="float32")
    launched = run(user_equations, (users,), (starts, item, rating, factors, a, b, 0.1), (a, b), F=f, BK=16, num_warps=2)

    def reference():
        eye = 0.1 * torch.eye(f, device=a.device)
        parts = [factors[item[s:e].long()] for s, e in zip(starts[:-1].tolist(), starts[1:].tolist())]
        return torch.stack([x.t() @ x + eye for x in parts]), torch.stack([x.t() @ rating[s : s + len(x)] for x, s in zip(parts, starts.tolist())])

    return against(launched, reference)


@triton.jit
def profile_of_windows(x_ptr, mean_ptr, inv_ptr, best_ptr, N, M, FAR, STEPS, BLOCK: tl.constexpr):
    # Windows of a series compared along diagonals: the next dot from the last by one product more and one less.
    k = FAR + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    i0 = tl.program_id(1) * STEPS
    dot = tl.zeros((BLOCK,), tl.float32)
    for j in range(M):
        dot += tl.load(x_ptr + i0 + j) * tl.load(x_ptr + i0 + k + j, mask=i0 + k + j < N, other=0.0)
    for s in range(STEPS):
        i = i0 + s
        ok = (i + k <= N - M) & (i <= N - M)
        mean, inv = tl.load(mean_ptr + i, mask=i <= N - M, other=0.0), tl.load(inv_ptr + i, mask=i <= N - M, other=0.0)
        r = (dot - M * mean * tl.load(mean_ptr + i + k, mask=ok, other=0.0)) * inv * tl.load(inv_ptr + i + k, mask=ok, other=0.0)
        near = tl.max(tl.where(ok, r, -2.0), 0)
        tl.atomic_max(best_ptr + i, near + 4.0, mask=i <= N - M, sem="relaxed")
        dot += tl.load(x_ptr + i + M, mask=i + M < N, other=0.0) * tl.load(x_ptr + i + k + M, mask=i + k + M < N, other=0.0)
        dot -= tl.load(x_ptr + i, mask=i < N, other=0.0) * tl.load(x_ptr + i + k, mask=i + k < N, other=0.0)


@case
def nearest_later_windows_of_a_series_along_diagonals():
    n, m, far, steps = 5000, 50, 20, 64
    x = f32(n)
    w = x.double().unfold(0, m, 1)
    mean, inv = w.mean(1).float(), (1 / (w.std(1, unbiased=False) * math.sqrt(m))).float()
    best = zeros(n, dtype="float32")
    grid = cdiv(n - m + 1, 128), cdiv(n - m + 1, steps)
    launched = cleared(run(profile_of_windows, grid, (x, mean, inv, best, n, m, far, steps), best, BLOCK=128), best)
    return launched


@triton.jit
def incircle_signs(p_ptr, tri_ptr, point_ptr, out_ptr, flags_ptr, N, BLOCK: tl.constexpr):
    # Whether a point lies in a triangle's circle, in double, with a bound of what rounding can do.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ok = i < N
    d = tl.load(point_ptr + i, mask=ok, other=0)
    dx, dy = tl.load(p_ptr + 2 * d), tl.load(p_ptr + 2 * d + 1)
    a, b, c = tl.load(tri_ptr + 3 * i, mask=ok, other=0), tl.load(tri_ptr + 3 * i + 1, mask=ok, other=0), tl.load(tri_ptr + 3 * i + 2, mask=ok, other=0)
    ax, ay = tl.load(p_ptr + 2 * a) - dx, tl.load(p_ptr + 2 * a + 1) - dy
    bx, by = tl.load(p_ptr + 2 * b) - dx, tl.load(p_ptr + 2 * b + 1) - dy
    cx, cy = tl.load(p_ptr + 2 * c) - dx, tl.load(p_ptr + 2 * c + 1) - dy
    la, lb, lc = ax * ax + ay * ay, bx * bx + by * by, cx * cx + cy * cy
    value = la * (bx * cy - by * cx) + lb * (cx * ay - cy * ax) + lc * (ax * by - ay * bx)
    bound = 1e-15 * (la * (tl.abs(bx * cy) + tl.abs(by * cx)) + lb * (tl.abs(cx * ay) + tl.abs(cy * ax)) + lc * (tl.abs(ax * by) + tl.abs(ay * bx)))
    tl.store(out_ptr + i, value, mask=ok)
    tl.store(flags_ptr + i, tl.where(value > bound, 1, tl.where(value < -bound, -1, 0)).to(tl.int8), mask=ok)


@case
def points_in_circles_of_triangles_with_bounds():
    n, points = 1_500_000, 100_000
    p, tri, point = uniform(points, 2).double(), ints(0, points, n, 3), ints(0, points, n)
    out, flags = zeros(n, dtype="float64"), zeros(n, dtype="int8")
    launched = run(incircle_signs, (cdiv(n, 256),), (p, tri, point, out, flags, n), (out, flags), BLOCK=256)
    return viewed(launched, lambda outs: (outs[0] + 2, outs[1].float() + 100))


@triton.jit
def quiet_axes(x_ptr, mean_ptr, top_ptr, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr, D: tl.constexpr):
    # Five axes in one tile: the mean over the second and fourth, the largest over the third.
    n = tl.program_id(0)
    a, b, c, d = tl.arange(0, A), tl.arange(0, B), tl.arange(0, C), tl.arange(0, D)
    place = ((a[:, None, None, None] * B + b[None, :, None, None]) * C + c[None, None, :, None]) * D + d[None, None, None, :]
    x = tl.load(x_ptr + n * A * B * C * D + place).to(tl.float32)
    mean = tl.sum(tl.sum(x, 3), 1) / (B * D)
    top = tl.max(x, 2)
    tl.store(mean_ptr + n * A * C + a[:, None] * C + c[None, :], mean)
    tl.store(top_ptr + n * A * B * D + (a[:, None, None] * B + b[None, :, None]) * D + d[None, None, :], top)


@case
def means_and_maxima_over_middle_axes_of_four():
    n, a, b, c, d = 3000, 4, 16, 32, 4
    x = rand(n, a, b, c, d, dtype="bfloat16")
    mean, top = zeros(n, a, c, dtype="float32"), zeros(n, a, b, d, dtype="float32")
    launched = run(quiet_axes, (n,), (x, mean, top), (mean, top), A=a, B=b, C=c, D=d, num_warps=8)
    return against(launched, lambda: (x.float().mean((2, 4)), x.float().amax(3)))


@triton.jit
def survival_down(hazard_ptr, out_ptr, half_ptr, T, C, BT: tl.constexpr, BC: tl.constexpr):
    # Products from the end, down columns, in double; where they first fall below a half.
    t, c = tl.arange(0, BT), tl.program_id(0) * BC + tl.arange(0, BC)
    ok = (t < T)[:, None] & (c < C)[None, :]
    h = tl.load(hazard_ptr + t[:, None] * C + c[None, :], mask=ok, other=0.0).to(tl.float64)
    left = tl.cumprod(1.0 - h, 0, reverse=True)
    tl.store(out_ptr + t[:, None] * C + c[None, :], left, mask=ok)
    first = tl.min(tl.where(left > 0.5, t[:, None], BT), 0)
    tl.store(half_ptr + c, first, mask=c < C)


@case
def products_from_the_end_down_columns_in_double():
    t, c = 250, 30_000
    hazard, out, half = uniform(t, c) / 50, zeros(t, c, dtype="float64"), zeros(c, dtype="int32")
    launched = run(survival_down, (cdiv(c, 8),), (hazard, out, half, t, c), (out, half), BT=256, BC=8)

    def reference():
        left = (1 - hazard.double()).flip(0).cumprod(0).flip(0)
        first = torch.where(left > 0.5, arange(t)[:, None], 256).amin(0)
        return left, first

    return against(launched, reference)


@triton.jit
def medians_of_columns(x_ptr, out_ptr, C, N: tl.constexpr, BC: tl.constexpr):
    # Sorting wants the last axis: columns of short floats are turned, sorted downwards, turned back.
    n, c = tl.arange(0, N), tl.program_id(0) * BC + tl.arange(0, BC)
    x = tl.load(x_ptr + n[:, None] * C + c[None, :], mask=(c < C)[None, :], other=0.0)
    down = tl.trans(tl.sort(tl.trans(x), descending=True))
    tl.store(out_ptr + n[:, None] * C + c[None, :], down, mask=(c < C)[None, :])


@case
def columns_of_64_short_floats_sorted_downwards():
    c, n = 60_000, 64
    x, out = rand(n, c, dtype="bfloat16"), zeros(n, c, dtype="bfloat16")
    launched = run(medians_of_columns, (cdiv(c, 32),), (x, out, c), out, N=n, BC=32)
    return against(launched, lambda: x.sort(0, descending=True).values)


@triton.jit
def permuted_rows_of_tile(x_ptr, order_ptr, out_ptr, R: tl.constexpr, C: tl.constexpr):
    # Rows of a tile in an order of its own for every column: a gather along the first axis, sixteen-bit words.
    tile = tl.program_id(0)
    r, c = tl.arange(0, R)[:, None], tl.arange(0, C)[None, :]
    at = tile * R * C + r * C + c
    x, order = tl.load(x_ptr + at), tl.load(order_ptr + at).to(tl.int32)
    y = tl.gather(x, order, 0)
    z = tl.gather(y, (R - 1 - r) + tl.zeros((R, C), tl.int32), 0)
    tl.store(out_ptr + at, y - z)


@case
def columns_of_words_in_orders_of_their_own_less_reversed():
    tiles, r, c = 2000, 64, 32
    x, order = ints(-1000, 1000, tiles, r, c, dtype="int16"), ints(0, r, tiles, r, c, dtype="uint8")
    out = zeros(tiles, r, c, dtype="int16")
    launched = run(permuted_rows_of_tile, (tiles,), (x, order, out), out, R=r, C=c)

    def reference():
        y = x.gather(1, order.long())
        return y - y.flip(1)

    return against(launched, reference)


@triton.jit
def narrow_products(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Doubles: A lies along M, B along K, tiles of 16 by 16 by a warp.
    m, n, k = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float64)
    for k0 in range(0, K, BK):
        a = tl.load(a_ptr + (k0 + k)[None, :] * M + m[:, None], mask=(m < M)[:, None] & (k0 + k < K)[None, :], other=0.0)
        b = tl.load(b_ptr + n[None, :] * K + (k0 + k)[:, None], mask=(n < N)[None, :] & (k0 + k < K)[:, None], other=0.0)
        acc = tl.dot(a, b, acc, out_dtype=tl.float64)
    tl.store(c_ptr + m[:, None] * N + n[None, :], acc, mask=(m < M)[:, None] & (n < N)[None, :])


@case
def gemm_of_doubles_16x16_of_turned_operands_one_warp():
    m, n, k = 700, 500, 330
    a, b, c = f32(k, m).double(), f32(n, k).double(), zeros(m, n, dtype="float64")
    launched = run(narrow_products, (cdiv(m, 16), cdiv(n, 16)), (a, b, c, m, n, k), c, BM=16, BN=16, BK=16, num_warps=1)
    return against(launched, lambda: a.t() @ b.t())


@triton.jit
def slim_products(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # 128 rows by 16 columns a program of eight warps; the columns are experts' scores, so softmax follows.
    m, n, k = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for k0 in range(0, K, BK):
        a = tl.load(a_ptr + m[:, None] * K + (k0 + k)[None, :], mask=(m < M)[:, None], other=0.0)
        b = tl.load(b_ptr + n[None, :] * K + (k0 + k)[:, None], mask=(n < N)[None, :], other=0.0)
        acc = tl.dot(a, b, acc)
    acc = tl.where((n < N)[None, :], acc, -float("inf"))
    tl.store(c_ptr + m[:, None] * N + n[None, :], tl.softmax(acc, 1, keep_dims=True), mask=(m < M)[:, None] & (n < N)[None, :])


@case
def gemm_128x16_to_probabilities_by_eight_warps():
    m, n, k = 12_000, 12, 1024
    a, b, c = rand(m, k, dtype="bfloat16"), rand(n, k, dtype="bfloat16") / 16, zeros(m, n, dtype="float32")
    launched = run(slim_products, (cdiv(m, 128),), (a, b, c, m, n, k), c, BM=128, BN=16, BK=128, num_warps=8, num_stages=3)
    return against(launched, lambda: (a.float() @ b.float().t()).softmax(1))


@triton.jit
def class_distances(x_ptr, mean_ptr, factor_ptr, out_ptr, N, D: tl.constexpr, CLASSES: tl.constexpr, BN: tl.constexpr):
    # Squares of what is left of a class's mean times its factor: a dot a class, then a sum; the least and its class.
    i, d = tl.program_id(0) * BN + tl.arange(0, BN), tl.arange(0, D)
    x = tl.load(x_ptr + i[:, None] * D + d[None, :], mask=(i < N)[:, None], other=0.0).to(tl.float32)
    least = tl.full((BN,), float("inf"), tl.float32)
    for c in range(CLASSES):
        mean = tl.load(mean_ptr + c * D + d)
        l = tl.load(factor_ptr + c * D * D + d[:, None] * D + d[None, :])
        z = tl.dot((x - mean[None, :]).to(tl.float16), l)
        least = tl.minimum(least, tl.sum(z * z, 1))
    tl.store(out_ptr + i, least, mask=i < N)


@case
def least_distances_to_ten_classes_with_shapes_of_their_own():
    n, d, classes = 30_000, 64, 10
    x, mean, factor, out = rand(n, d), f32(classes, d), rand(classes, d, d) / 8, zeros(n, dtype="float32")
    launched = run(class_distances, (cdiv(n, 64),), (x, mean, factor, out, n), out, D=d, CLASSES=classes, BN=64, num_warps=4)

    def reference():
        return torch.stack([((x.float() - mean[c]) @ factor[c].float()).square().sum(1) for c in range(classes)]).amin(0)

    return against(launched, reference)


@triton.jit
def oscillators(theta_ptr, omega_ptr, out_ptr, N, coupling, step, BI: tl.constexpr, BJ: tl.constexpr):
    # Each pulls all others by the sine of what lies between them; sines and cosines of the others made once a block.
    i = tl.program_id(0) * BI + tl.arange(0, BI)
    a = tl.load(theta_ptr + i, mask=i < N, other=0.0)
    pull = tl.zeros((BI,), tl.float32)
    for j0 in range(0, N, BJ):
        j = j0 + tl.arange(0, BJ)
        b = tl.load(theta_ptr + j, mask=j < N, other=0.0)
        distance = tl.abs(i[:, None] - j[None, :]).to(tl.float32)
        weight = tl.where(j < N, 1.0, 0.0)[None, :] / (1.0 + 0.01 * distance)
        pull += tl.sum(weight * tl.sin(b[None, :] - a[:, None]), 1)
    tl.store(out_ptr + i, a + step * (tl.load(omega_ptr + i, mask=i < N, other=0.0) + coupling * pull), mask=i < N)


@case
def oscillators_pulled_by_all_others_less_if_far():
    n = 6000
    theta, omega, out = uniform(n) * 6, f32(n), zeros(n, dtype="float32")
    launched = run(oscillators, (cdiv(n, 32),), (theta, omega, out, n, 0.01, 0.1), out, BI=32, BJ=64, num_warps=2)

    def reference():
        a, i = theta.double(), arange(n).double()
        weight = 1 / (1 + 0.01 * (i[:, None] - i[None]).abs())
        return a + 0.1 * (omega + 0.01 * (weight * (a[None] - a[:, None]).sin()).sum(1))

    return against(launched, reference)


@triton.jit
def color_by_cells(seed_ptr, out_ptr, H, W, CELL: tl.constexpr, BH: tl.constexpr, BW: tl.constexpr):
    # Distance to the nearest and the second nearest of points hidden one in a cell, by their cell's hash.
    y, x = tl.program_id(1) * BH + tl.arange(0, BH)[:, None], tl.program_id(0) * BW + tl.arange(0, BW)[None, :]
    seed = tl.load(seed_ptr)
    cy, cx = y // CELL, x // CELL
    near, second = tl.full((BH, BW), 1e9, tl.float32), tl.full((BH, BW), 1e9, tl.float32)
    for a in tl.static_range(-1, 2):
        for b in tl.static_range(-1, 2):
            h = ((cy + a) * 73856093) ^ ((cx + b) * 19349663) ^ seed
            h = (h ^ (h >> 13)) * 1274126177
            py = (cy + a) * CELL + ((h >> 8) & 255) * CELL // 256
            px = (cx + b) * CELL + (h & 255) * CELL // 256
            d = tl.sqrt(((y - py) * (y - py) + (x - px) * (x - px)).to(tl.float32))
            second = tl.minimum(second, tl.maximum(near, d))
            near = tl.minimum(near, d)
    tl.store(out_ptr + y * W + x, (second - near).to(tl.float16), mask=(y < H) & (x < W))


@case
def borders_of_cells_around_points_hidden_by_a_hash():
    h, w = 1500, 2000
    seed, out = ints(0, 1 << 30, 1), zeros(h, w)
    return run(color_by_cells, (cdiv(w, 32), cdiv(h, 16)), (seed, out, h, w), out, CELL=24, BH=16, BW=32)


@triton.jit
def masked_histograms(x_ptr, keep_ptr, out_ptr, N, BINS: tl.constexpr, BLOCK: tl.constexpr):
    # Counts of what a mask keeps, by a histogram with a mask, of a block each; sums of blocks by rows of the grid.
    row = tl.program_id(0)
    total = tl.zeros((BINS,), tl.int32)
    for n0 in range(0, N, BLOCK):
        n = n0 + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * N + n, mask=n < N, other=0).to(tl.int32)
        keep = tl.load(keep_ptr + row * N + n, mask=n < N, other=0) != 0
        total += tl.histogram(x, BINS, mask=keep & (n < N))
    share = total.to(tl.float32) / tl.maximum(tl.sum(total, 0), 1)
    tl.store(out_ptr + row * BINS + tl.arange(0, BINS), tl.cumsum(share, 0))


@case
def shares_so_far_of_bytes_that_a_mask_keeps():
    m, n = 1200, 5000
    x, keep, out = ints(0, 256, m, n, dtype="uint8"), ints(0, 3, m, n, dtype="int8"), zeros(m, 256, dtype="float32")
    launched = run(masked_histograms, (m,), (x, keep, out, n), out, BINS=256, BLOCK=1024)

    def reference():
        counts = torch.zeros(m, 256, device=x.device, dtype=torch.float64).scatter_add_(1, x.long(), (keep != 0).double())
        return counts.cumsum(1) / counts.sum(1, keepdim=True)

    return against(launched, reference)
