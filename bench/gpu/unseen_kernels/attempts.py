"""Attempts at what programs for other GPUs do a thread each: a program for a pixel, a string or a matrix, loops over scalars, early ends, barriers."""

import torch
import torch.nn.functional as F
import triton
import triton.language as tl
from triton.language.extra import libdevice

from .common import against, arange, case, cdiv, cleared, f32, far, ints, run, uniform, viewed, zeros


@triton.jit
def gcd_scalar(a_ptr, b_ptr, g_ptr, N):
    # Euclid's steps, one pair of numbers a program and then the next one far away.
    i = tl.program_id(0)
    while i < N:
        a, b = tl.load(a_ptr + i), tl.load(b_ptr + i)
        while b != 0:
            a, b = b, a % b
        tl.store(g_ptr + i, a)
        i += tl.num_programs(0)


@case
def common_divisors_one_pair_after_another():
    n = 60_000
    a, b, g = ints(1, 1_000_000, n), ints(1, 1_000_000, n), zeros(n, dtype="int32")
    return against(run(gcd_scalar, (5000,), (a, b, g, n), g, num_warps=1), lambda: torch.gcd(a, b))


@triton.jit
def shortest_paths_of_small_graphs(d_ptr, out_ptr, N: tl.constexpr, P: tl.constexpr):
    # Every vertex as the middle one in turn: its row and its column taken out of the tile by masked sums.
    g = tl.program_id(0)
    i = tl.arange(0, P)
    at = i[:, None] * N + i[None, :]
    ok = (i < N)[:, None] & (i < N)[None, :]
    d = tl.load(d_ptr + g * N * N + at, mask=ok, other=1e9)
    for k in range(N):
        row = tl.min(tl.where((i == k)[:, None], d, 1e9), 0)
        column = tl.min(tl.where((i == k)[None, :], d, 1e9), 1)
        d = tl.minimum(d, column[:, None] + row[None, :])
    tl.store(out_ptr + g * N * N + at, d, mask=ok)


@case
def shortest_paths_of_all_pairs_in_graphs_of_50():
    graphs, n = 1500, 50
    d = uniform(graphs, n, n) * 10
    out = zeros(graphs, n, n, dtype="float32")
    launched = run(shortest_paths_of_small_graphs, (graphs,), (d, out), out, N=n, P=64)

    def reference():
        left = d.clone()
        for k in range(n):
            left = torch.minimum(left, left[:, :, k : k + 1] + left[:, k : k + 1])
        return left

    return against(launched, reference)


@triton.jit
def knapsack(weights_ptr, values_ptr, best_ptr, ITEMS, CAPACITY, BLOCK: tl.constexpr):
    # A row of best values in memory, rewritten from the top for each item, with barriers between reading and writing.
    bag = tl.program_id(0)
    row = best_ptr + bag * (CAPACITY + 1)
    for item in range(ITEMS):
        w, v = tl.load(weights_ptr + bag * ITEMS + item), tl.load(values_ptr + bag * ITEMS + item)
        start = CAPACITY
        while start >= 0:
            c = start - tl.arange(0, BLOCK)
            old = tl.load(row + c, mask=c >= 0, other=0)
            other = tl.load(row + c - w, mask=c >= w, other=-1000000)
            tl.debug_barrier()
            tl.store(row + c, tl.maximum(old, other + v), mask=c >= 0)
            tl.debug_barrier()
            start -= BLOCK


@case
def sacks_filled_by_rows_of_memory_and_barriers():
    bags, items, capacity = 264, 40, 700
    weights, values = ints(3, 90, bags, items), ints(1, 1000, bags, items)
    best = zeros(bags, capacity + 1, dtype="int32")
    launched = run(knapsack, (bags,), (weights, values, best, items, capacity), best, BLOCK=256, num_warps=4)

    def reference():
        row = torch.zeros(bags, capacity + 1, dtype=torch.int64, device=best.device)
        at = arange(capacity + 1, "int64")[None]
        for item in range(items):
            w, v = weights[:, item : item + 1].long(), values[:, item : item + 1].long()
            other = row.gather(1, (at - w).clamp(min=0)) + v
            row = torch.maximum(row, torch.where(at >= w, other, -1))
        return row

    return against(cleared(launched, best), reference)


@triton.jit
def count_matches_at_every_place(text_ptr, pattern_ptr, hits_ptr, T, P, BLOCK: tl.constexpr):
    # The pattern's letters in turn, until no place of the block is left.
    start = tl.program_id(0) * BLOCK
    i = start + tl.arange(0, BLOCK)
    alive = (i <= T - P).to(tl.int32)
    j = 0
    while j < P and tl.sum(alive, 0) > 0:
        c = tl.load(pattern_ptr + j)
        t = tl.load(text_ptr + i + j, mask=i + j < T, other=0)
        alive = alive * (t == c).to(tl.int32)
        j += 1
    tl.atomic_add(hits_ptr, tl.sum(alive, 0))


@case
def places_of_a_pattern_letter_by_letter():
    t = 20_000_000
    text = ints(97, 99, t, dtype="uint8")
    pattern = torch.tensor([97, 98, 97, 97, 98, 98, 97, 98, 97], device="cuda", dtype=torch.uint8)
    hits = zeros(1, dtype="int32")
    launched = run(count_matches_at_every_place, (cdiv(t, 1024),), (text, pattern, hits, t, 9), hits, BLOCK=1024)

    def reference():
        ok = torch.ones(t - 8, dtype=torch.bool, device=text.device)
        for j in range(9):
            ok &= text[j : t - 8 + j] == pattern[j]
        return ok.sum()[None]

    return against(cleared(launched, hits), reference)


@triton.jit
def flock_step(pos_ptr, vel_ptr, newpos_ptr, newvel_ptr, N, dt):
    # One bird a program that looks at all others, one at a time; scalars only.
    i = tl.program_id(0)
    px, py = tl.load(pos_ptr + 2 * i), tl.load(pos_ptr + 2 * i + 1)
    vx, vy = tl.load(vel_ptr + 2 * i), tl.load(vel_ptr + 2 * i + 1)
    cx, cy, ax, ay, sx, sy, count = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0
    for j in range(N):
        qx, qy = tl.load(pos_ptr + 2 * j), tl.load(pos_ptr + 2 * j + 1)
        dx, dy = qx - px, qy - py
        d2 = dx * dx + dy * dy
        if d2 < 0.04 and i != j:
            cx += qx
            cy += qy
            ax += tl.load(vel_ptr + 2 * j)
            ay += tl.load(vel_ptr + 2 * j + 1)
            count += 1
            if d2 < 0.0025:
                sx -= dx
                sy -= dy
    if count > 0:
        inv = 1.0 / count
        vx += 0.01 * (cx * inv - px) + 0.05 * (ax * inv - vx) + 0.3 * sx
        vy += 0.01 * (cy * inv - py) + 0.05 * (ay * inv - vy) + 0.3 * sy
    speed = tl.sqrt(vx * vx + vy * vy)
    if speed > 1.0:
        vx = vx / speed
        vy = vy / speed
    tl.store(newvel_ptr + 2 * i, vx)
    tl.store(newvel_ptr + 2 * i + 1, vy)
    tl.store(newpos_ptr + 2 * i, px + vx * dt)
    tl.store(newpos_ptr + 2 * i + 1, py + vy * dt)


@case
def birds_one_a_program_that_look_at_all_others():
    n = 1500
    pos, vel = uniform(n, 2), f32(n, 2) / 2
    newpos, newvel = zeros(n, 2, dtype="float32"), zeros(n, 2, dtype="float32")
    launched = run(flock_step, (n,), (pos, vel, newpos, newvel, n, 0.01), (newpos, newvel), num_warps=1)

    def reference():
        p, v = pos.double(), vel.double()
        d2 = (p[None] - p[:, None]).square().sum(2)
        near = (d2 < 0.04) & ~torch.eye(n, dtype=torch.bool, device=pos.device)
        close = (near & (d2 < 0.0025)).double()
        count = near.sum(1, keepdim=True).clamp(min=1)
        near = near.double()
        s = p * close.sum(1, keepdim=True) - close @ p
        w = v + 0.01 * (near @ p / count - p) + 0.05 * (near @ v / count - v) + 0.3 * s
        w = torch.where(near.sum(1, keepdim=True) > 0, w, v)
        w = w / w.norm(dim=1, keepdim=True).clamp(min=1)
        return p + w * 0.01, w

    return against(launched, reference)


@triton.jit
def follow_lists(next_ptr, value_ptr, heads_ptr, sum_ptr, length_ptr):
    # A list a program: an address leads to the next one until one is negative.
    i = tl.program_id(0)
    at = tl.load(heads_ptr + i)
    total, length = 0.0, 0
    while at >= 0:
        total += tl.load(value_ptr + at)
        length += 1
        at = tl.load(next_ptr + at)
    tl.store(sum_ptr + i, total)
    tl.store(length_ptr + i, length)


@case
def linked_lists_summed_from_their_heads():
    n, lists = 1_000_000, 20_000
    order = torch.randperm(n, device="cuda").int()
    following = torch.full((n,), -1, device="cuda", dtype=torch.int32)
    each = n // lists
    chains = order.view(lists, each)
    following[chains[:, :-1].reshape(-1).long()] = chains[:, 1:].reshape(-1)
    value, heads = f32(n), chains[:, 0].contiguous()
    total, length = zeros(lists, dtype="float32"), zeros(lists, dtype="int32")
    launched = run(follow_lists, (lists,), (following, value, heads, total, length), (total, length), num_warps=1)
    return against(launched, lambda: (value.double()[chains.long()].sum(1), torch.full_like(length, each)))


@triton.jit
def scan_by_doubling(x_ptr, a_ptr, b_ptr, N, BLOCK: tl.constexpr):
    # A row a program; sums over twice as many in each pass, from one buffer in memory to the other.
    row = tl.program_id(0)
    a, b = a_ptr + row * N, b_ptr + row * N
    for start in range(0, N, BLOCK):
        i = start + tl.arange(0, BLOCK)
        tl.store(a + i, tl.load(x_ptr + row * N + i, mask=i < N), mask=i < N)
    tl.debug_barrier()
    step = 1
    while step < N:
        for start in range(0, N, BLOCK):
            i = start + tl.arange(0, BLOCK)
            v = tl.load(a + i, mask=i < N, other=0.0) + tl.load(a + i - step, mask=(i >= step) & (i < N), other=0.0)
            tl.store(b + i, v, mask=i < N)
        tl.debug_barrier()
        a, b = b, a
        step *= 2


@case
def running_sums_by_passes_of_doubled_steps():
    rows, n = 264, 4000
    x, a, b = uniform(rows, n), zeros(rows, n, dtype="float32"), zeros(rows, n, dtype="float32")
    # Twelve passes: the last one wrote to the first buffer.
    launched = run(scan_by_doubling, (rows,), (x, a, b, n), a, BLOCK=1024)
    return against(launched, lambda: x.double().cumsum(1))


@triton.jit
def sort_in_memory(x_ptr, N, BLOCK: tl.constexpr):
    # Bitonic exchanges in memory: N a power of two, a row a program, a barrier after each pass.
    row = x_ptr + tl.program_id(0) * N
    size = 2
    while size <= N:
        step = size // 2
        while step > 0:
            for start in range(0, N // 2, BLOCK):
                t = start + tl.arange(0, BLOCK)
                i = t // step * (2 * step) + t % step
                a, b = tl.load(row + i), tl.load(row + i + step)
                swap = ((i & size) == 0) == (a > b)
                tl.store(row + i, tl.where(swap, b, a))
                tl.store(row + i + step, tl.where(swap, a, b))
            tl.debug_barrier()
            step = step // 2
        size = size * 2


@case
def rows_of_2048_sorted_in_memory():
    rows, n = 400, 2048
    x, y = f32(rows, n), zeros(rows, n, dtype="float32")
    launch, args = run(sort_in_memory, (rows,), (y, n), y, BLOCK=512)

    def fresh(*args):
        y.copy_(x)
        return launch(*args)

    return against((fresh, args), lambda: x.sort(1)[0])


@triton.jit
def multiply_4x4(a_ptr, b_ptr, c_ptr, N):
    # Two matrices a program: each of 16 numbers of the product from scalars.
    m = tl.program_id(0)
    if m >= N:
        return
    for i in tl.static_range(4):
        for j in tl.static_range(4):
            total = 0.0
            for k in tl.static_range(4):
                total += tl.load(a_ptr + m * 16 + i * 4 + k) * tl.load(b_ptr + m * 16 + k * 4 + j)
            tl.store(c_ptr + m * 16 + i * 4 + j, total)


@case
def products_of_4x4_matrices_by_scalars():
    n = 100_000
    a, b, c = f32(n, 4, 4), f32(n, 4, 4), zeros(n, 4, 4, dtype="float32")
    return against(run(multiply_4x4, (n + 7,), (a, b, c, n), c, num_warps=1), lambda: a.double() @ b.double())


@triton.jit
def hue_of_pixels(rgb_ptr, hsv_ptr, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ok = i < N
    r = tl.load(rgb_ptr + 3 * i, mask=ok, other=0).to(tl.float32) / 255.0
    g = tl.load(rgb_ptr + 3 * i + 1, mask=ok, other=0).to(tl.float32) / 255.0
    b = tl.load(rgb_ptr + 3 * i + 2, mask=ok, other=0).to(tl.float32) / 255.0
    high, low = tl.maximum(r, tl.maximum(g, b)), tl.minimum(r, tl.minimum(g, b))
    d = high - low
    h = tl.where(high == r, (g - b) / d, tl.where(high == g, 2.0 + (b - r) / d, 4.0 + (r - g) / d))
    h = tl.where(d == 0, 0.0, h * 60.0)
    h = tl.where(h < 0, h + 360.0, h)
    tl.store(hsv_ptr + 3 * i, h, mask=ok)
    tl.store(hsv_ptr + 3 * i + 1, tl.where(high > 0, d / high, 0.0), mask=ok)
    tl.store(hsv_ptr + 3 * i + 2, high, mask=ok)


@case
def hue_and_saturation_of_pixels_of_three_bytes():
    n = 5_000_001
    rgb, hsv = ints(0, 256, n, 3, dtype="uint8"), zeros(n, 3, dtype="float32")
    return run(hue_of_pixels, (cdiv(n, 256),), (rgb, hsv, n), hsv, BLOCK=256)


@triton.jit
def to_letters_of_64(src_ptr, dst_ptr, N, BLOCK: tl.constexpr):
    # Three bytes to four letters; which letter by ranges of the value; ends filled by equal signs.
    t = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ok = t * 3 < N
    word = tl.load(src_ptr + 3 * t, mask=ok, other=0).to(tl.int32) << 16
    word |= tl.load(src_ptr + 3 * t + 1, mask=3 * t + 1 < N, other=0).to(tl.int32) << 8
    word |= tl.load(src_ptr + 3 * t + 2, mask=3 * t + 2 < N, other=0).to(tl.int32)
    for j in tl.static_range(4):
        v = (word >> (18 - 6 * j)) & 63
        letter = tl.where(v < 26, v + 65, tl.where(v < 52, v + 71, tl.where(v < 62, v - 4, tl.where(v == 62, 43, 47))))
        if j >= 2:
            letter = tl.where(3 * t + j - 1 < N, letter, 61)
        tl.store(dst_ptr + 4 * t + j, letter.to(tl.uint8), mask=ok)


@case
def three_bytes_to_four_letters():
    n = 30_000_001
    src, dst = ints(0, 256, n, dtype="uint8"), zeros(cdiv(n, 3) * 4, dtype="uint8")
    return run(to_letters_of_64, (cdiv(cdiv(n, 3), 512),), (src, dst, n), dst, BLOCK=512)


@triton.jit
def digest_round(a, b, c, d, f, word, k: tl.constexpr, s: tl.constexpr):
    t = a + f + word + k
    return d, b + ((t << s) | (t >> (32 - s))), b, c


@triton.jit
def message_digests(m_ptr, out_ptr, N, BLOCK: tl.constexpr):
    # One block of 64 bytes a lane, 64 steps of four kinds, all written out when compiled.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ok = i < N
    a = tl.full((BLOCK,), 0x67452301, tl.uint32)
    b = tl.full((BLOCK,), 0xEFCDAB89, tl.uint32)
    c = tl.full((BLOCK,), 0x98BADCFE, tl.uint32)
    d = tl.full((BLOCK,), 0x10325476, tl.uint32)
    for r in tl.static_range(16):
        w = tl.load(m_ptr + i * 16 + r, mask=ok, other=0)
        a, b, c, d = digest_round(a, b, c, d, (b & c) | (~b & d), w, 0xD76AA478 ^ (r * 0x1234567), 7 + r % 4 * 5)
    for r in tl.static_range(16):
        w = tl.load(m_ptr + i * 16 + (5 * r + 1) % 16, mask=ok, other=0)
        a, b, c, d = digest_round(a, b, c, d, (d & b) | (~d & c), w, 0xF61E2562 ^ (r * 0x2345671), 5 + r % 4 * 5)
    for r in tl.static_range(16):
        w = tl.load(m_ptr + i * 16 + (3 * r + 5) % 16, mask=ok, other=0)
        a, b, c, d = digest_round(a, b, c, d, b ^ c ^ d, w, 0xFFFA3942 ^ (r * 0x3456712), 4 + r % 4 * 6)
    for r in tl.static_range(16):
        w = tl.load(m_ptr + i * 16 + (7 * r) % 16, mask=ok, other=0)
        a, b, c, d = digest_round(a, b, c, d, c ^ (b | ~d), w, 0xF4292244 ^ (r * 0x4567123), 6 + r % 4 * 5)
    tl.store(out_ptr + i * 4, a + 0x67452301, mask=ok)
    tl.store(out_ptr + i * 4 + 1, b + 0xEFCDAB89, mask=ok)
    tl.store(out_ptr + i * 4 + 2, c + 0x98BADCFE, mask=ok)
    tl.store(out_ptr + i * 4 + 3, d + 0x10325476, mask=ok)


@case
def digests_of_64_steps_a_block_a_lane():
    n = 1_000_000
    m, out = ints(-(2**31), 2**31 - 1, n, 16).view(torch.uint32), zeros(n, 4, dtype="int32").view(torch.uint32)
    launch, args = run(message_digests, (cdiv(n, 128),), (m, out, n), out.view(torch.int32), BLOCK=128)
    return launch, args


@triton.jit
def cipher_rounds(state_ptr, key_ptr, box_ptr, out_ptr, N, ROUNDS: tl.constexpr, BLOCK: tl.constexpr):
    # A byte of 16 in a lane: through a table, rows shifted by gathers, columns mixed by doubling in the field of 256.
    b, j = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)[:, None], tl.arange(0, 16)[None, :]
    ok = b < N
    shifted = tl.broadcast_to((j + 4 * (j % 4)) % 16, (BLOCK, 16))
    s = tl.load(state_ptr + b * 16 + j, mask=ok, other=0).to(tl.int32) ^ tl.load(key_ptr + j).to(tl.int32)
    for r in range(1, ROUNDS + 1):
        s = tl.load(box_ptr + s).to(tl.int32)
        s = tl.gather(s, shifted, 1)
        if r < ROUNDS:
            one = tl.gather(s, tl.broadcast_to(j // 4 * 4 + (j + 1) % 4, (BLOCK, 16)), 1)
            two = tl.gather(s, tl.broadcast_to(j // 4 * 4 + (j + 2) % 4, (BLOCK, 16)), 1)
            three = tl.gather(s, tl.broadcast_to(j // 4 * 4 + (j + 3) % 4, (BLOCK, 16)), 1)
            mixed = s ^ one
            doubled = (mixed << 1) ^ tl.where(mixed & 128 != 0, 0x11B, 0)
            s = doubled ^ one ^ two ^ three
        s = s ^ tl.load(key_ptr + r * 16 + j).to(tl.int32)
    tl.store(out_ptr + b * 16 + j, s.to(tl.uint8), mask=ok)


@case
def blocks_of_16_bytes_through_rounds_of_tables():
    n = 40_000
    state, key = ints(0, 256, n, 16, dtype="uint8"), ints(0, 256, 11, 16, dtype="uint8")
    box, out = torch.randperm(256, device="cuda").to(torch.uint8), zeros(n, 16, dtype="uint8")
    launched = run(cipher_rounds, (cdiv(n, 16),), (state, key, box, out, n), out, ROUNDS=10, BLOCK=16, num_warps=4)

    def reference():
        j = arange(16, "int64")
        s, keys = state.long() ^ key[0].long(), key.long()
        for r in range(1, 11):
            s = box.long()[s][:, (j + 4 * (j % 4)) % 16]
            if r < 10:
                one, two, three = (s[:, j // 4 * 4 + (j + k) % 4] for k in (1, 2, 3))
                mixed = s ^ one
                s = (mixed << 1) ^ torch.where(mixed & 128 != 0, 0x11B, 0) ^ one ^ two ^ three
            s = s ^ keys[r]
        return s

    return against(launched, reference)


@triton.jit
def squares_in_order(grid_ptr, ok_ptr, N):
    # 81 digits a program: rows, columns and boxes seen as bits, ending at the first that was seen before.
    puzzle = grid_ptr + tl.program_id(0) * 81
    good = 1
    unit = 0
    while (unit < 27) & (good == 1):
        seen = 0
        for k in range(9):
            kind, u = unit // 9, unit % 9
            cell = u * 9 + k
            if kind == 1:
                cell = k * 9 + u
            if kind == 2:
                cell = (u // 3 * 3 + k // 3) * 9 + u % 3 * 3 + k % 3
            bit = 1 << tl.load(puzzle + cell).to(tl.int32)
            if (seen & bit) != 0:
                good = 0
            seen = seen | bit
        unit += 1
    tl.store(ok_ptr + tl.program_id(0), good.to(tl.int8))


@case
def squares_of_nine_digits_checked_until_one_is_twice():
    n = 40_000
    at = arange(81, "int64")
    base = (at // 9 * 3 + at // 27 + at % 9) % 9
    grids = torch.stack([torch.randperm(9, device="cuda")[base] for _ in range(64)]).repeat(n // 64, 1)
    spoiled = ints(0, 81, n // 2, 1, dtype="int64")
    grids[: n // 2].scatter_(1, spoiled, 4)
    ok, grids = zeros(n, dtype="int8"), grids.to(torch.uint8).contiguous()
    launched = run(squares_in_order, (n,), (grids, ok, n), ok, num_warps=1)

    def reference():
        rows = grids.view(n, 9, 9).long()
        boxes = rows.view(n, 3, 3, 3, 3).transpose(2, 3).reshape(n, 9, 9)
        units = torch.cat([rows, rows.transpose(1, 2), boxes], 1)
        return (units.sort(2)[0] == arange(9, "int64")).all(2).all(1).to(torch.int8)

    return against(launched, reference)


@triton.jit
def draw_lines(ends_ptr, canvas_ptr, N, H, W):
    # A line a program, a pixel a step, error in integers, brightness added.
    i = tl.program_id(0)
    x0, y0 = tl.load(ends_ptr + 4 * i), tl.load(ends_ptr + 4 * i + 1)
    x1, y1 = tl.load(ends_ptr + 4 * i + 2), tl.load(ends_ptr + 4 * i + 3)
    dx, dy = tl.abs(x1 - x0), -tl.abs(y1 - y0)
    sx = tl.where(x0 < x1, 1, -1)
    sy = tl.where(y0 < y1, 1, -1)
    err = dx + dy
    going = 1
    while going == 1:
        tl.atomic_add(canvas_ptr + y0 * W + x0, 1, sem="relaxed")
        if (x0 == x1) & (y0 == y1):
            going = 0
        twice = 2 * err
        if twice >= dy:
            err += dy
            x0 += sx
        if twice <= dx:
            err += dx
            y0 += sy


@case
def lines_drawn_a_pixel_a_step():
    n, h, w = 20_000, 600, 801
    ends = torch.stack([ints(0, w, n), ints(0, h, n), ints(0, w, n), ints(0, h, n)], 1)
    ends[:, 2:] = ends[:, :2] + (ends[:, 2:] - ends[:, :2]) // 8
    canvas = zeros(h, w, dtype="int32")
    return cleared(run(draw_lines, (n,), (ends, canvas, n, h, w), canvas, num_warps=1), canvas)


@triton.jit
def distances_along_rows(image_ptr, d_ptr, H, W, BLOCK: tl.constexpr):
    # Rows of a block: to the nearest set pixel on the left, then back from the right, a column at a time.
    r = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ok = r < H
    d = tl.full((BLOCK,), 9999, tl.int32)
    for x in range(W):
        set_here = tl.load(image_ptr + r * W + x, mask=ok, other=0) != 0
        d = tl.where(set_here, 0, d + 1)
        tl.store(d_ptr + r * W + x, d, mask=ok)
    d = tl.full((BLOCK,), 9999, tl.int32)
    for back in range(W):
        x = W - 1 - back
        old = tl.load(d_ptr + r * W + x, mask=ok, other=0)
        d = tl.minimum(old, d + 1)
        tl.store(d_ptr + r * W + x, d, mask=ok)


@case
def distances_to_set_pixels_of_rows_there_and_back():
    h, w = 8000, 300
    image, d = (uniform(h, w) < 0.02).to(torch.uint8), zeros(h, w, dtype="int32")
    return run(distances_along_rows, (cdiv(h, 32),), (image, d, h, w), d, BLOCK=32, num_warps=1)


@triton.jit
def best_trades(price_ptr, best_ptr, T, N, K: tl.constexpr, BLOCK: tl.constexpr):
    # Days in order; money after each purchase and each sale of at most K pairs as values of the loop.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ok = i < N
    b0, s0 = tl.full((BLOCK,), -1e30, tl.float32), tl.zeros((BLOCK,), tl.float32)
    b1, s1 = b0, s0
    b2, s2 = b0, s0
    t = 0
    while t < T:
        p = tl.load(price_ptr + t * N + i, mask=ok, other=1.0)
        b0 = tl.maximum(b0, -p)
        s0 = tl.maximum(s0, b0 + p)
        if K > 1:
            b1 = tl.maximum(b1, s0 - p)
            s1 = tl.maximum(s1, b1 + p)
        if K > 2:
            b2 = tl.maximum(b2, s1 - p)
            s2 = tl.maximum(s2, b2 + p)
        t += 1
    tl.store(best_ptr + i, s2 if K > 2 else s1 if K > 1 else s0, mask=ok)


@case
def best_of_three_purchases_and_sales():
    t, n = 250, 100_000
    price, best = uniform(t, n) + 1, zeros(n, dtype="float32")
    return run(best_trades, (cdiv(n, 128),), (price, best, t, n), best, K=3, BLOCK=128, num_warps=4)


@triton.jit
def bessel_series(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    # Terms of a series in double until the largest of the block no longer counts.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < N, other=0.0).to(tl.float64)
    q = -0.25 * x * x
    term = tl.full((BLOCK,), 1.0, tl.float64)
    total = term
    k = 1
    left = tl.max(tl.abs(term), 0)
    while left > 1e-14:
        term = term * q / (k * k).to(tl.float64)
        total += term
        left = tl.max(tl.abs(term), 0)
        k += 1
    tl.store(y_ptr + i, total.to(tl.float32), mask=i < N)


@case
def bessel_functions_by_series_in_double():
    n = 1_000_003
    x, y = uniform(n) * 8, zeros(n, dtype="float32")
    launched = run(bessel_series, (cdiv(n, 128),), (x, y, n), y, BLOCK=128, num_warps=2)
    return against(launched, lambda: torch.special.bessel_j0(x.double()))


@triton.jit
def spread_of_infection(state_ptr, next_ptr, start_ptr, list_ptr, days_ptr, N, seed, beta, BLOCK: tl.constexpr):
    # Persons of a block; contacts one after another as long as anybody of the block has some.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ok = i < N
    s = tl.load(state_ptr + i, mask=ok, other=2).to(tl.int32)
    at, end = tl.load(start_ptr + i, mask=ok, other=0), tl.load(start_ptr + i + 1, mask=ok, other=0)
    escape = tl.full((BLOCK,), 1.0, tl.float32)
    at = tl.where(s == 0, at, end)
    while tl.max((at < end).to(tl.int32), 0) > 0:
        more = at < end
        who = tl.load(list_ptr + at, mask=more, other=0)
        ill = tl.load(state_ptr + who, mask=more, other=0)
        escape *= tl.where(ill == 1, 1.0 - beta, 1.0)
        at += 1
    draw = tl.rand(seed, i)
    days = tl.load(days_ptr + i, mask=ok, other=0)
    s = tl.where((s == 0) & (draw > escape), 1, tl.where((s == 1) & (days <= 1), 2, s))
    tl.store(next_ptr + i, s.to(tl.int8), mask=ok)


@case
def a_day_of_infection_over_lists_of_contacts():
    n = 400_000
    counts = ints(0, 24, n)
    start = torch.cat([zeros(1, dtype="int32"), counts.cumsum(0).int()])
    state, after, days = (uniform(n) < 0.1).to(torch.int8), zeros(n, dtype="int8"), ints(0, 9, n)
    contacts = ints(0, n, n * 24)
    return run(spread_of_infection, (cdiv(n, 256),), (state, after, start, contacts, days, n, 77, 0.2), after, BLOCK=256)


@triton.jit
def burning_ship(out_ptr, W, H, LIMIT, scale):
    # A row a program, pixels of it in blocks; each step under a mask until all are far or the limit is met.
    y = tl.program_id(0)
    for x0 in range(0, W, 64):
        x = x0 + tl.arange(0, 64)
        cr, ci = x.to(tl.float32) * scale - 2.2, tl.full((64,), 0, tl.float32) + y * scale - 1.8
        zr, zi = tl.zeros((64,), tl.float32), tl.zeros((64,), tl.float32)
        n, step, inside = tl.zeros((64,), tl.int32), 0, 64
        while (step < LIMIT) & (inside > 0):
            near = zr * zr + zi * zi < 4.0
            t = zr * zr - zi * zi + cr
            zi = tl.where(near, 2 * tl.abs(zr * zi) + ci, zi)
            zr = tl.where(near, t, zr)
            n += near.to(tl.int32)
            inside = tl.sum(near.to(tl.int32), 0)
            step += 1
        tl.store(out_ptr + y * W + x, tl.minimum(n, 20).to(tl.uint8), mask=x < W)


@case
def ships_that_burn_a_row_a_program():
    h, w = 700, 1000
    out = zeros(h, w, dtype="uint8")
    # At the edge a count may be another one where sums round otherwise.
    return viewed(run(burning_ship, (h,), (out, w, h, 20, 0.004), out, num_warps=2), far)


@triton.jit
def merge_by_cross_ranks(a_ptr, b_ptr, out_ptr, NA, NB, BLOCK: tl.constexpr):
    # Where each goes: its own place and, by bisection of a fixed number of steps, how many of the other list are before it.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    second = tl.program_id(1)
    mine, other = a_ptr, b_ptr
    n, m = NA, NB
    if second == 1:
        mine, other = b_ptr, a_ptr
        n, m = NB, NA
    v = tl.load(mine + i, mask=i < n, other=0)
    low, high = tl.zeros((BLOCK,), tl.int32), tl.zeros((BLOCK,), tl.int32) + m
    while tl.max(high - low, 0) > 0:
        middle = (low + high) // 2
        going = low < high
        o = tl.load(other + middle, mask=going, other=0)
        right = ((o < v) | ((o == v) & (second == 1))) & going
        low = tl.where(right, middle + 1, low)
        high = tl.where(going & ~right, middle, high)
    tl.store(out_ptr + i + low, v, mask=i < n)


@case
def sorted_lists_merged_by_ranks_in_each_other():
    na, nb = 1_000_000, 700_001
    a, b = ints(0, 5_000_000, na).sort()[0], ints(0, 5_000_000, nb).sort()[0]
    out = zeros(na + nb, dtype="int32")
    launched = run(merge_by_cross_ranks, (cdiv(na, 512), 2), (a, b, out, na, nb), out, BLOCK=512)
    return against(launched, lambda: torch.cat([a, b]).sort()[0])


@triton.jit
def sandpile_topples(pile_ptr, out_ptr, moved_ptr, H, W, BLOCK: tl.constexpr):
    # A flat cell with its four neighbors by division and remainder: what topples leaves four, what neighbors lose comes.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ok = i < H * W
    y, x = i // W, i % W
    s = tl.load(pile_ptr + i, mask=ok, other=0)
    new = tl.where(s >= 4, s - 4, s)
    new += tl.where(tl.load(pile_ptr + i - 1, mask=ok & (x > 0), other=0) >= 4, 1, 0)
    new += tl.where(tl.load(pile_ptr + i + 1, mask=ok & (x < W - 1), other=0) >= 4, 1, 0)
    new += tl.where(tl.load(pile_ptr + i - W, mask=ok & (y > 0), other=0) >= 4, 1, 0)
    new += tl.where(tl.load(pile_ptr + i + W, mask=ok & (y < H - 1), other=0) >= 4, 1, 0)
    tl.store(out_ptr + i, new, mask=ok)
    moved = tl.sum((s >= 4).to(tl.int32), 0)
    if moved > 0:
        tl.atomic_add(moved_ptr, moved, sem="relaxed")


@case
def piles_of_sand_topple_once():
    h, w = 3000, 3333
    pile, out, moved = ints(0, 8, h, w), zeros(h, w, dtype="int32"), zeros(1, dtype="int32")
    launched = run(sandpile_topples, (cdiv(h * w, 1024),), (pile, out, moved, h, w), (out, moved), BLOCK=1024)

    def reference():
        falls = (pile >= 4).int()
        p = F.pad(falls, (1, 1, 1, 1))
        return pile - 4 * falls + p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:], falls.sum()[None].int()

    return against(cleared(launched, moved), reference)


@triton.jit
def queens_of_first_rows(count_ptr, N: tl.constexpr, BLOCK: tl.constexpr):
    # Queens of the first three rows by the lane's number; the rest by a stack of bits, one lane beside another.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    full_row = (1 << N) - 1
    columns, left, right, live = tl.zeros((BLOCK,), tl.int32), tl.zeros((BLOCK,), tl.int32), tl.zeros((BLOCK,), tl.int32), i < N * N * N
    rest = i
    for _ in tl.static_range(3):
        bit = 1 << (rest % N)
        rest = rest // N
        live = live & ((columns | left | right) & bit == 0)
        columns, left, right = columns | bit, ((left | bit) << 1) & full_row, (right | bit) >> 1
    # Two rows more by loops; of the sixth the free places are counted.
    total = tl.zeros((BLOCK,), tl.int32)
    for a in range(N):
        first = 1 << a
        fits = live & ((columns | left | right) & first == 0)
        c, lo, hi = columns | first, ((left | first) << 1) & full_row, (right | first) >> 1
        for b in range(N):
            second = 1 << b
            both = fits & ((c | lo | hi) & second == 0)
            c2, l2, h2 = c | second, ((lo | second) << 1) & full_row, (hi | second) >> 1
            free = ~(c2 | l2 | h2) & full_row
            free = (free & 0x55555555) + ((free >> 1) & 0x55555555)
            free = (free & 0x33333333) + ((free >> 2) & 0x33333333)
            free = (free & 0x0F0F0F0F) + ((free >> 4) & 0x0F0F0F0F)
            free = (free & 0xFF) + ((free >> 8) & 0xFF)
            total += tl.where(both, free, 0)
    tl.atomic_add(count_ptr, tl.sum(total.to(tl.int64), 0), sem="relaxed")


@case
def queens_of_six_rows_counted_by_bits():
    n = 15
    count = zeros(1, dtype="int64")
    launched = run(queens_of_first_rows, (cdiv(n**3, 64),), (count,), count, N=n, BLOCK=64, num_warps=2)
    return cleared(launched, count)


@triton.jit
def turn_points(p_ptr, axis_ptr, out_ptr, N, BLOCK: tl.constexpr):
    # Records of three floats about axes of their own by the angle that an axis's length is.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ok = i < N
    x, y, z = tl.load(p_ptr + i * 3 + 0, ok, 0.0), tl.load(p_ptr + i * 3 + 1, ok, 0.0), tl.load(p_ptr + i * 3 + 2, ok, 0.0)
    a, b, c = tl.load(axis_ptr + i * 3 + 0, ok, 0.0), tl.load(axis_ptr + i * 3 + 1, ok, 0.0), tl.load(axis_ptr + i * 3 + 2, ok, 1.0)
    angle = tl.sqrt(a * a + b * b + c * c) + 1e-9
    a, b, c = a / angle, b / angle, c / angle
    cosine, sine = libdevice.cos(angle), libdevice.sin(angle)
    dot = (a * x + b * y + c * z) * (1 - cosine)
    tl.store(out_ptr + i * 3 + 0, x * cosine + (b * z - c * y) * sine + a * dot, ok)
    tl.store(out_ptr + i * 3 + 1, y * cosine + (c * x - a * z) * sine + b * dot, ok)
    tl.store(out_ptr + i * 3 + 2, z * cosine + (a * y - b * x) * sine + c * dot, ok)


@case
def points_turned_about_axes_of_their_own():
    n = 4_000_001
    p, axis, out = f32(n, 3), f32(n, 3), zeros(n, 3, dtype="float32")
    launched = run(turn_points, (cdiv(n, 256),), (p, axis, out, n), out, BLOCK=256)

    def reference():
        q, v = p.double(), axis.double()
        angle = v.norm(dim=1, keepdim=True)
        k = v / angle
        return q * angle.cos() + torch.linalg.cross(k, q) * angle.sin() + k * (k * q).sum(1, keepdim=True) * (1 - angle.cos())

    return against(launched, reference)


@triton.jit
def field_of_charges(charge_ptr, where_ptr, field_ptr, W, N, step):
    # One place of the grid a program; charges in blocks of 32, with a sum at the end.
    x, y = tl.program_id(0) * step, tl.program_id(1) * step
    ex, ey = tl.zeros((32,), tl.float32), tl.zeros((32,), tl.float32)
    for j in range(0, N, 32):
        k = j + tl.arange(0, 32)
        q = tl.load(charge_ptr + k, mask=k < N, other=0.0)
        dx, dy = x - tl.load(where_ptr + 2 * k, mask=k < N, other=0.0), y - tl.load(where_ptr + 2 * k + 1, mask=k < N, other=0.0)
        inv = 1.0 / (dx * dx + dy * dy + 0.01)
        ex += q * dx * inv
        ey += q * dy * inv
    at = (tl.program_id(1) * W + tl.program_id(0)) * 2
    tl.store(field_ptr + at, tl.sum(ex))
    tl.store(field_ptr + at + 1, tl.sum(ey))


@case
def fields_of_charges_one_place_a_program():
    h, w, n = 200, 300, 333
    q, where, field = f32(n), uniform(n, 2) * 3, zeros(h, w, 2, dtype="float32")
    launched = run(field_of_charges, (w, h), (q, where, field, w, n, 0.01), field, num_warps=1)

    def reference():
        at = torch.stack([arange(w).double().expand(h, w), arange(h).double()[:, None].expand(h, w)], 2) * 0.01
        d = at[:, :, None] - where.double()
        return (q.double()[:, None] * d / (d.square().sum(3, keepdim=True) + 0.01)).sum(2)

    return against(launched, reference)
