"""Quarries: what is cut from codes, films, sounds, lists, formulas, molecules and clicks, and products with what is left out put back."""

import math

import torch
import triton
import triton.language as tl

from .common import against, arange, case, cdiv, cleared, f32, ints, rand, run, uniform, zeros


def field_tables():
    """Powers and logarithms of the generator of the field of 256 elements, twice as many powers as elements."""
    powers, x = [], 1
    for _ in range(255):
        powers.append(x)
        x = (x << 1) ^ (0x11D if x & 128 else 0)
    logs = [0] * 256
    for k, p in enumerate(powers):
        logs[p] = k
    return torch.tensor((powers * 3)[:512], dtype=torch.uint8).cuda(), torch.tensor(logs, dtype=torch.int32).cuda()


@triton.jit
def syndromes(word_ptr, exp_ptr, log_ptr, out_ptr, bad_ptr, WORDS, N, ROOTS: tl.constexpr, BW: tl.constexpr):
    # Reed and Solomon: a word as a polynomial at 32 powers of the generator, by Horner, with tables of logarithms.
    w = tl.program_id(0) * BW + tl.arange(0, BW)
    r = tl.arange(0, ROOTS)
    acc = tl.zeros((BW, ROOTS), tl.int32)
    for n in range(N):
        symbol = tl.load(word_ptr + w * N + n, mask=w < WORDS, other=0).to(tl.int32)
        product = tl.load(exp_ptr + tl.load(log_ptr + acc) + r[None, :]).to(tl.int32)
        acc = tl.where(acc == 0, 0, product) ^ symbol[:, None]
    tl.store(out_ptr + w[:, None] * ROOTS + r[None, :], acc.to(tl.uint8), mask=(w < WORDS)[:, None])
    bad = tl.max(acc, 1) > 0
    tl.atomic_add(bad_ptr, tl.sum((bad & (w < WORDS)).to(tl.int32), 0))


@case
def quarry_of_syndromes_of_words_of_255(words=5000, n=255):
    exp, log = field_tables()
    word = ints(0, 256, words, n, dtype="uint8")
    word[::3] = 0
    out, bad = zeros(words, 32, dtype="uint8"), zeros(1, dtype="int32")
    launched = run(syndromes, (cdiv(words, 8),), (word, exp, log, out, bad, words, n), (out, bad), ROOTS=32, BW=8, num_warps=4)

    def reference():
        acc = torch.zeros(words, 32, dtype=torch.long, device="cuda")
        for i in range(n):
            acc = torch.where(acc == 0, 0, exp.long()[log.long()[acc] + arange(32, "int64")]) ^ word[:, i : i + 1].long()
        return acc, (acc != 0).any(1).sum().reshape(1)

    return against(cleared(launched, bad), reference)


@triton.jit
def without_and_with_bit(x, R: tl.constexpr, N: tl.constexpr, S: tl.constexpr):
    # The elements whose index lacks bit S, and those that have it.
    return tl.split(tl.permute(tl.reshape(x, (R, N // (2 * S), 2, S)), (0, 1, 3, 2)))


@triton.jit
def together(a, b, R: tl.constexpr, N: tl.constexpr):
    return tl.reshape(tl.permute(tl.join(a, b), (0, 1, 3, 2)), (R, N))


@triton.jit
def polar_encode(info_ptr, place_ptr, out_ptr, ROWS, K, N: tl.constexpr, LEVELS: tl.constexpr, R: tl.constexpr):
    # Bits go to the reliable places of a word of 1,024, are combined over ten levels, and leave packed.
    row = tl.program_id(0) * R + tl.arange(0, R)
    n = tl.arange(0, N)
    place = tl.load(place_ptr + n)
    ok = (row < ROWS)[:, None] & (place >= 0)[None, :]
    x = tl.load(info_ptr + row[:, None] * K + place[None, :], mask=ok, other=0).to(tl.int32)
    for level in tl.static_range(LEVELS):
        a, b = without_and_with_bit(x, R, N, 1 << level)
        x = together(a ^ b, b, R, N)
    bits = tl.reshape(x, (R, N // 8, 8)) << (7 - tl.arange(0, 8))[None, None, :]
    b = tl.arange(0, N // 8)
    tl.store(out_ptr + row[:, None] * (N // 8) + b[None, :], tl.sum(bits, 2).to(tl.uint8), mask=(row < ROWS)[:, None])


@case
def quarry_of_polar_words_of_1024(rows=7001, k=500, levels=10):
    n = 1 << levels
    chosen = torch.randperm(n)[:k].sort()[0]
    place = torch.full((n,), -1, dtype=torch.int32)
    place[chosen] = torch.arange(k, dtype=torch.int32)
    info, place, out = ints(0, 2, rows, k, dtype="int8"), place.cuda(), zeros(rows, n // 8, dtype="uint8")
    launched = run(polar_encode, (cdiv(rows, 2),), (info, place, out, rows, k), out, N=n, LEVELS=levels, R=2, num_warps=4)

    def reference():
        x = torch.zeros(rows, n, dtype=torch.long, device="cuda")
        x[:, chosen.cuda()] = info.long()
        for level in range(levels):
            y = x.reshape(rows, -1, 2, 1 << level)
            x = torch.stack([y[:, :, 0] ^ y[:, :, 1], y[:, :, 1]], 2).reshape(rows, n)
        return (x.reshape(rows, n // 8, 8) << (7 - arange(8, "int64"))).sum(2)

    return against(launched, reference)


@triton.jit
def predict_and_measure(x_ptr, order_ptr, param_ptr, bits_ptr, BLOCKS, LONG: tl.constexpr, PARTS: tl.constexpr, PART: tl.constexpr):
    # Five fixed predictors of a block of sound; for each part the parameter of Rice's code with the fewest bits; the best predictor stays.
    block = tl.program_id(0)
    p = tl.arange(0, PARTS)
    i = p[:, None] * PART + tl.arange(0, PART)[None, :]
    x = x_ptr + block * LONG + i
    a = tl.load(x).to(tl.int32)
    b = tl.load(x - 1, mask=i >= 1, other=0).to(tl.int32)
    c = tl.load(x - 2, mask=i >= 2, other=0).to(tl.int32)
    d = tl.load(x - 3, mask=i >= 3, other=0).to(tl.int32)
    e = tl.load(x - 4, mask=i >= 4, other=0).to(tl.int32)
    least, chosen = 1 << 30, 0
    params = tl.zeros((PARTS,), tl.int32)
    for order in tl.static_range(5):
        if order == 0:
            left = a
        elif order == 1:
            left = a - b
        elif order == 2:
            left = a - 2 * b + c
        elif order == 3:
            left = a - 3 * b + 3 * c - d
        else:
            left = a - 4 * b + 6 * c - 4 * d + e
        code = (left << 1) ^ (left >> 31)
        few = tl.full((PARTS,), 1 << 30, tl.int32)
        best = tl.zeros((PARTS,), tl.int32)
        for k in range(15):
            size = tl.sum(code >> k, 1) + PART * (k + 1)
            best = tl.where(size < few, k, best)
            few = tl.minimum(few, size)
        total = tl.sum(few, 0) + order * 16
        if total < least:
            least = total
            chosen = order
            params = best
    tl.store(order_ptr + block, chosen)
    tl.store(bits_ptr + block, least)
    tl.store(param_ptr + block * PARTS + p, params.to(tl.uint8))


@case
def quarry_of_sound_by_five_predictors_and_codes_of_rice(blocks=900, parts=16, part=256):
    long = parts * part
    x = ((f32(blocks, long) * 3).cumsum(1) + f32(blocks, long) * uniform(blocks, 1) * 60).clamp(-32000, 32000).to(torch.int16)
    order, param, bits = zeros(blocks, dtype="int32"), zeros(blocks, parts, dtype="uint8"), zeros(blocks, dtype="int32")
    args = x, order, param, bits, blocks
    launched = run(predict_and_measure, (blocks,), args, (order, param, bits), LONG=long, PARTS=parts, PART=part, num_warps=8)

    def reference():
        a, kept = x.long(), None
        b, c, d, e = (torch.nn.functional.pad(a, (s, 0))[:, :long] for s in (1, 2, 3, 4))
        for o, left in enumerate((a, a - b, a - 2 * b + c, a - 3 * b + 3 * c - d, a - 4 * b + 6 * c - 4 * d + e)):
            code = torch.where(left < 0, -2 * left - 1, 2 * left).reshape(blocks, parts, part)
            few, best = torch.stack([(code >> k).sum(2) + part * (k + 1) for k in range(15)]).min(0)
            total = few.sum(1) + 16 * o
            now = total, torch.full_like(total, o), best
            if kept is not None:
                less = total < kept[0]
                now = [torch.where(less[:, None] if n.dim() > 1 else less, n, k) for n, k in zip(now, kept)]
            kept = now
        return kept[1], kept[2], kept[0]

    return against(launched, reference)


@triton.jit
def unpack_lists(control_ptr, data_ptr, at_ptr, base_ptr, out_ptr, N, BLOCK: tl.constexpr):
    # Numbers of one to four bytes, whose lengths lie apart in two bits each; differences are summed to sorted identifiers.
    block = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    n = block * BLOCK + i
    ok = n < N
    control = tl.load(control_ptr + n // 4, mask=ok, other=0).to(tl.int32)
    length = tl.where(ok, ((control >> (n % 4 * 2)) & 3) + 1, 0)
    at = tl.load(at_ptr + block) + tl.cumsum(length, 0) - length
    value = tl.load(data_ptr + at, mask=ok, other=0).to(tl.int32)
    for byte in tl.static_range(1, 4):
        value |= tl.load(data_ptr + at + byte, mask=ok & (length > byte), other=0).to(tl.int32) << (8 * byte)
    tl.store(out_ptr + n, tl.load(base_ptr + block) + tl.cumsum(value.to(tl.int64), 0), mask=ok)


@case
def quarry_of_lists_in_bytes_with_their_lengths_apart(n=1_000_003, block=256):
    value = torch.randint(0, 1 << 30, (n,)) >> (torch.randint(0, 4, (n,)) * 8)
    length = 1 + (value >= 1 << 8).long() + (value >= 1 << 16).long() + (value >= 1 << 24).long()
    ends = length.cumsum(0)
    begins = ends - length
    data = torch.zeros(int(ends[-1]), dtype=torch.uint8)
    for byte in range(4):
        has = length > byte
        data[begins[has] + byte] = ((value[has] >> (8 * byte)) & 255).to(torch.uint8)
    padded = torch.nn.functional.pad(length - 1, (0, -n % 4)).reshape(-1, 4)
    control = (padded << torch.tensor([0, 2, 4, 6])).sum(1).to(torch.uint8)
    sums = value.cumsum(0)
    at, base = begins[::block].int().cuda(), (sums - value)[::block].contiguous().cuda()
    out = zeros(n, dtype="int64")
    launched = run(unpack_lists, (cdiv(n, block),), (control.cuda(), data.cuda(), at, base, out, n), out, BLOCK=block, num_warps=2)
    return against(launched, lambda: sums)


@triton.jit
def hadamard_cost(x, B: tl.constexpr):
    for level in tl.static_range(6):
        a, b = without_and_with_bit(x, B, 64, 1 << level)
        x = together(a + b, a - b, B, 64)
    return tl.sum(tl.abs(x), 1)


@triton.jit
def cheapest_prediction(frame_ptr, mode_ptr, cost_ptr, W, ACROSS, BLOCKS, B: tl.constexpr):
    # Four predictions of a block of 8x8 from the pixels around it; the one whose transformed error is least.
    n = tl.program_id(0) * B + tl.arange(0, B)
    p = tl.arange(0, 64)
    ok = n < BLOCKS
    y0, x0 = n // ACROSS * 8 + 1, n % ACROSS * 8 + 1
    corner = frame_ptr + y0 * W + x0
    y, x = p // 8, p % 8
    both = ok[:, None]
    block = tl.load(corner[:, None] + y[None, :] * W + x[None, :], mask=both, other=0).to(tl.int32)
    top = tl.load(corner[:, None] - W + x[None, :], mask=both, other=0).to(tl.int32)
    left = tl.load(corner[:, None] + y[None, :] * W - 1, mask=both, other=0).to(tl.int32)
    edge = tl.load(corner - W - 1, mask=ok, other=0).to(tl.int32)
    mean = (tl.sum(top, 1) // 8 + tl.sum(left, 1) // 8 + 8) >> 4
    best, mode = hadamard_cost(block - mean[:, None], B), tl.zeros((B,), tl.int32)
    cost = hadamard_cost(block - top, B)
    mode = tl.where(cost < best, 1, mode)
    best = tl.minimum(best, cost)
    cost = hadamard_cost(block - left, B)
    mode = tl.where(cost < best, 2, mode)
    best = tl.minimum(best, cost)
    paeth = tl.minimum(tl.maximum(top + left - edge[:, None], 0), 255)
    cost = hadamard_cost(block - paeth, B)
    mode = tl.where(cost < best, 3, mode)
    best = tl.minimum(best, cost)
    tl.store(mode_ptr + n, mode.to(tl.int8), mask=ok)
    tl.store(cost_ptr + n, best, mask=ok)


@case
def quarry_of_predictions_of_blocks_by_transformed_errors(down=135, across=241):
    h, w, blocks = down * 8 + 1, across * 8 + 1, down * across
    y, x = torch.arange(h, device="cuda")[:, None].float(), torch.arange(w, device="cuda")[None, :].float()
    stripes = torch.where((y // 50 + x // 50) % 3 == 0, torch.sin(x * 0.8), torch.where((y // 50 + x // 50) % 3 == 1, torch.sin(y * 0.8), 0.0))
    frame = ((y * 0.5 + x * 0.3) % 160 + 40 + 30 * stripes + f32(h, w) * 2).to(torch.uint8)
    mode, cost = zeros(blocks, dtype="int8"), zeros(blocks, dtype="int32")
    launched = run(cheapest_prediction, (cdiv(blocks, 16),), (frame, mode, cost, w, across, blocks), (mode, cost), B=16, num_warps=4)

    def reference():
        one = torch.tensor([[1.0, 1], [1, -1]], device="cuda")
        h8 = torch.kron(torch.kron(one, one), one).double()
        f = frame.double()
        block = f[1:, 1:].reshape(down, 8, across, 8).permute(0, 2, 1, 3)
        top = f[:-1:8, 1:].reshape(down, across, 1, 8).expand_as(block)
        left = f[1:, :-1:8].reshape(down, 8, across, 1).permute(0, 2, 1, 3).expand_as(block)
        edge = f[:-1:8, :-1:8].reshape(down, across, 1, 1)
        mean = ((top[:, :, :1].sum(3, True) + left[..., :1].sum(2, True) + 8) / 16).floor()
        guesses = mean.expand_as(block), top, left, (top + left - edge).clamp(0, 255)
        cost, mode = torch.stack([(h8 @ (block - g) @ h8).abs().sum((2, 3)) for g in guesses]).min(0)
        return mode.reshape(-1), cost.reshape(-1)

    return against(launched, reference)


@triton.jit
def smooth_edges(x_ptr, strength_ptr, table_ptr, out_ptr, H, W, EDGES, alpha, beta, BY: tl.constexpr, BE: tl.constexpr):
    # Edges between blocks of a film: four pixels at each side, changed where the step is small enough to be the coder's fault.
    y = tl.program_id(1) * BY + tl.arange(0, BY)[:, None]
    e = tl.program_id(0) * BE + tl.arange(0, BE)[None, :]
    ok = (y < H) & (e < EDGES)
    at = y * W + e * 8
    p3, p2 = tl.load(x_ptr + at, mask=ok, other=0).to(tl.int16), tl.load(x_ptr + at + 1, mask=ok, other=0).to(tl.int16)
    p1, p0 = tl.load(x_ptr + at + 2, mask=ok, other=0).to(tl.int16), tl.load(x_ptr + at + 3, mask=ok, other=0).to(tl.int16)
    q0, q1 = tl.load(x_ptr + at + 4, mask=ok, other=0).to(tl.int16), tl.load(x_ptr + at + 5, mask=ok, other=0).to(tl.int16)
    q2, q3 = tl.load(x_ptr + at + 6, mask=ok, other=0).to(tl.int16), tl.load(x_ptr + at + 7, mask=ok, other=0).to(tl.int16)
    strength = tl.load(strength_ptr + y // 4 * EDGES + e, mask=ok, other=0).to(tl.int32)
    fault = (strength > 0) & (tl.abs(p0 - q0) < alpha) & (tl.abs(p1 - p0) < beta) & (tl.abs(q1 - q0) < beta)
    flat_p, flat_q = tl.abs(p2 - p0) < beta, tl.abs(q2 - q0) < beta
    limit = tl.load(table_ptr + strength).to(tl.int16)
    wide = limit + flat_p.to(tl.int16) + flat_q.to(tl.int16)
    step = tl.minimum(tl.maximum((((q0 - p0) << 2) + (p1 - q1) + 4) >> 3, -wide), wide)
    soft_p0 = tl.minimum(tl.maximum(p0 + step, 0), 255)
    soft_q0 = tl.minimum(tl.maximum(q0 - step, 0), 255)
    soft_p1 = p1 + tl.minimum(tl.maximum((p2 + ((p0 + q0 + 1) >> 1) - (p1 << 1)) >> 1, -limit), limit)
    soft_q1 = q1 + tl.minimum(tl.maximum((q2 + ((p0 + q0 + 1) >> 1) - (q1 << 1)) >> 1, -limit), limit)
    strong = strength == 4
    near = tl.abs(p0 - q0) < ((alpha >> 2) + 2)
    hard_p0 = tl.where(flat_p & near, (p2 + 2 * p1 + 2 * p0 + 2 * q0 + q1 + 4) >> 3, (2 * p1 + p0 + q1 + 2) >> 2)
    hard_q0 = tl.where(flat_q & near, (q2 + 2 * q1 + 2 * q0 + 2 * p0 + p1 + 4) >> 3, (2 * q1 + q0 + p1 + 2) >> 2)
    hard_p1 = tl.where(flat_p & near, (p2 + p1 + p0 + q0 + 2) >> 2, p1)
    hard_q1 = tl.where(flat_q & near, (q2 + q1 + q0 + p0 + 2) >> 2, q1)
    hard_p2 = tl.where(flat_p & near, (2 * p3 + 3 * p2 + p1 + p0 + q0 + 4) >> 3, p2)
    hard_q2 = tl.where(flat_q & near, (2 * q3 + 3 * q2 + q1 + q0 + p0 + 4) >> 3, q2)
    tl.store(out_ptr + at, p3.to(tl.uint8), mask=ok)
    tl.store(out_ptr + at + 1, tl.where(fault & strong, hard_p2, p2).to(tl.uint8), mask=ok)
    tl.store(out_ptr + at + 2, tl.where(fault, tl.where(strong, hard_p1, tl.where(flat_p, soft_p1, p1)), p1).to(tl.uint8), mask=ok)
    tl.store(out_ptr + at + 3, tl.where(fault, tl.where(strong, hard_p0, soft_p0), p0).to(tl.uint8), mask=ok)
    tl.store(out_ptr + at + 4, tl.where(fault, tl.where(strong, hard_q0, soft_q0), q0).to(tl.uint8), mask=ok)
    tl.store(out_ptr + at + 5, tl.where(fault, tl.where(strong, hard_q1, tl.where(flat_q, soft_q1, q1)), q1).to(tl.uint8), mask=ok)
    tl.store(out_ptr + at + 6, tl.where(fault & strong, hard_q2, q2).to(tl.uint8), mask=ok)
    tl.store(out_ptr + at + 7, q3.to(tl.uint8), mask=ok)


@case
def quarry_of_edges_between_blocks_smoothed_in_shorts(h=2160, w=3840):
    edges = w // 8
    tone = (uniform(h // 4, w // 4) * 30 + 100).repeat_interleave(4, 0).repeat_interleave(4, 1)
    x = (tone + f32(h, w) * 3).clamp(0, 255).to(torch.uint8)
    strength, table, out = ints(0, 5, h // 4, edges, dtype="int8"), torch.tensor([0, 1, 2, 4, 6], dtype=torch.int8).cuda(), zeros(h, w, dtype="uint8")
    args = x, strength, table, out, h, w, edges, 25, 8
    launched = run(smooth_edges, (cdiv(edges, 64), cdiv(h, 4)), args, out, BY=4, BE=64, num_warps=4)

    def reference():
        p3, p2, p1, p0, q0, q1, q2, q3 = x.reshape(h, edges, 8).long().unbind(2)
        s = strength.long().repeat_interleave(4, 0)
        fault = (s > 0) & ((p0 - q0).abs() < 25) & ((p1 - p0).abs() < 8) & ((q1 - q0).abs() < 8)
        limit, strong, near = table.long()[s], s == 4, (p0 - q0).abs() < 8
        outs, wide = [], limit + ((p2 - p0).abs() < 8) + ((q2 - q0).abs() < 8)
        step = torch.clamp(((q0 - p0) * 4 + (p1 - q1) + 4) >> 3, -wide, wide)
        for a3, a2, a1, a0, b0, b1, sign in ((p3, p2, p1, p0, q0, q1, 1), (q3, q2, q1, q0, p0, p1, -1)):
            flat = (a2 - a0).abs() < 8
            soft0 = (a0 + sign * step).clamp(0, 255)
            soft1 = torch.where(flat, a1 + torch.clamp((a2 + ((p0 + q0 + 1) >> 1) - 2 * a1) >> 1, -limit, limit), a1)
            hard0 = torch.where(flat & near, (a2 + 2 * a1 + 2 * a0 + 2 * b0 + b1 + 4) >> 3, (2 * a1 + a0 + b1 + 2) >> 2)
            hard1 = torch.where(flat & near, (a2 + a1 + a0 + b0 + 2) >> 2, a1)
            hard2 = torch.where(flat & near, (2 * a3 + 3 * a2 + a1 + a0 + b0 + 4) >> 3, a2)
            three = torch.where(strong, hard0, soft0), torch.where(strong, hard1, soft1), torch.where(strong, hard2, a2)
            outs.append([a3] + [torch.where(fault, new, old) for new, old in zip(three[::-1], (a2, a1, a0))])
        return torch.stack(outs[0] + outs[1][::-1], 2).reshape(h, w)

    return against(launched, reference)


@triton.jit
def directions(x_ptr, lines_ptr, weight_ptr, way_ptr, var_ptr, W, ACROSS, BLOCKS, BB: tl.constexpr):
    # The direction of a block of 8x8: sums along the lines of eight directions by one dot with what lies on which line.
    n = tl.program_id(0) * BB + tl.arange(0, BB)
    p, c = tl.arange(0, 64), tl.arange(0, 128)
    corner = x_ptr + n // ACROSS * 8 * W + n % ACROSS * 8
    x = tl.load(corner[:, None] + (p // 8 * W + p % 8)[None, :], mask=(n < BLOCKS)[:, None], other=0)
    x = (x.to(tl.int32) - 128).to(tl.float16)
    sums = tl.dot(x, tl.load(lines_ptr + p[:, None] * 128 + c[None, :])).to(tl.int32)
    cost = tl.sum(tl.reshape(sums * sums * tl.load(weight_ptr + c)[None, :], (BB, 8, 16)), 2)
    best, way = tl.max(cost, 1, return_indices=True)
    across = tl.gather(cost, ((way + 4) & 7)[:, None], 1)
    tl.store(way_ptr + n, way.to(tl.uint8), mask=n < BLOCKS)
    tl.store(var_ptr + n, (best - tl.reshape(across, (BB,))) >> 10, mask=n < BLOCKS)


@case
def quarry_of_directions_of_blocks_by_dots_with_lines(down=270, across=480):
    i, j = (v.reshape(-1) for v in torch.meshgrid(torch.arange(8), torch.arange(8), indexing="ij"))
    line = torch.stack([i + j, i + j // 2, i, 3 + i - j // 2, 7 + i - j, 3 - i // 2 + j, j, i // 2 + j])
    lines = torch.zeros(64, 8, 16)
    for d in range(8):
        lines[torch.arange(64), d, line[d]] = 1
    weight = torch.where(lines.sum(0) > 0, 840 / lines.sum(0).clamp(min=1), 0).round().int().reshape(-1).cuda()
    lines = lines.reshape(64, 128).half().cuda()
    h, w, blocks = down * 8, across * 8, down * across
    slope = (torch.arange(h)[:, None] * torch.arange(w)[None, :] * 0.0007).cuda()
    x = (128 + 60 * torch.sin(slope) + f32(h, w) * 8).clamp(0, 255).to(torch.uint8)
    way, var = zeros(blocks, dtype="uint8"), zeros(blocks, dtype="int32")
    launched = run(directions, (cdiv(blocks, 64),), (x, lines, weight, way, var, w, across, blocks), (way, var), BB=64, num_warps=8, num_stages=1)

    def reference():
        b = x.reshape(down, 8, across, 8).permute(0, 2, 1, 3).reshape(blocks, 64).double() - 128
        cost = ((b @ lines.double()).square() * weight).reshape(blocks, 8, 16).sum(2)
        best, k = cost.max(1)
        return k, ((best - cost.gather(1, ((k + 4) & 7)[:, None])[:, 0]) / 1024).floor()

    return against(launched, reference)


@triton.jit
def makes_and_breaks(clause_ptr, value_ptr, make_ptr, break_ptr, unmet_ptr, list_ptr, CLAUSES, BLOCK: tl.constexpr):
    # A formula in clauses of three: what a flip of each variable would mend and spoil; clauses that are not met are listed.
    c = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ok = c < CLAUSES
    a, b, d = tl.load(clause_ptr + c * 3, mask=ok, other=0), tl.load(clause_ptr + c * 3 + 1, mask=ok, other=0), tl.load(clause_ptr + c * 3 + 2, mask=ok, other=0)
    met_a = ok & (tl.load(value_ptr + (a >> 1), mask=ok, other=0) != (a & 1))
    met_b = ok & (tl.load(value_ptr + (b >> 1), mask=ok, other=0) != (b & 1))
    met_d = ok & (tl.load(value_ptr + (d >> 1), mask=ok, other=0) != (d & 1))
    met = met_a.to(tl.int32) + met_b.to(tl.int32) + met_d.to(tl.int32)
    only = tl.where(met_a, a, tl.where(met_b, b, d)) >> 1
    tl.atomic_add(break_ptr + only, 1, mask=ok & (met == 1), sem="relaxed")
    unmet = ok & (met == 0)
    tl.atomic_add(make_ptr + (a >> 1), 1, mask=unmet, sem="relaxed")
    tl.atomic_add(make_ptr + (b >> 1), 1, mask=unmet, sem="relaxed")
    tl.atomic_add(make_ptr + (d >> 1), 1, mask=unmet, sem="relaxed")
    count = unmet.to(tl.int32)
    at = tl.atomic_add(unmet_ptr, tl.sum(count, 0)) + tl.cumsum(count, 0) - count
    tl.store(list_ptr + at, c, mask=unmet)


@case
def quarry_of_clauses_met_and_unmet(clauses=1_500_000, variables=400_000):
    clause = ints(0, 2 * variables, clauses, 3)
    value = ints(0, 2, variables, dtype="int8")
    make, breaks, unmet, listed = zeros(variables, dtype="int32"), zeros(variables, dtype="int32"), zeros(1, dtype="int32"), zeros(clauses, dtype="int32")
    args = clause, value, make, breaks, unmet, listed, clauses
    launched = cleared(run(makes_and_breaks, (cdiv(clauses, 512),), args, None, BLOCK=512, num_warps=4), make, breaks, unmet, listed)
    launch, args = launched

    def see(*args):
        launch(*args)
        return make, breaks, unmet, listed.sort(descending=True)[0]

    def reference():
        met = value.long()[(clause >> 1).long()] != (clause & 1)
        variable, n = (clause >> 1).long(), met.sum(1)
        none = (n == 0).nonzero()[:, 0]
        full_list = torch.zeros(clauses, dtype=torch.long, device="cuda")
        full_list[: len(none)] = none.flip(0)
        return (
            torch.bincount(variable[none].reshape(-1), minlength=variables),
            torch.bincount(variable[met & (n == 1)[:, None]], minlength=variables),
            (n == 0).sum().reshape(1),
            full_list,
        )

    return against((see, args), reference)


@triton.jit
def first_and_second(a0, s0, i0, a1, s1, i1):
    ahead = (a1 > a0) | ((a1 == a0) & (i1 < i0))
    return tl.maximum(a0, a1), tl.maximum(tl.minimum(a0, a1), tl.maximum(s0, s1)), tl.where(ahead, i1, i0)


@triton.jit
def bid_for_objects(benefit_ptr, price_ptr, owner_ptr, want_ptr, bid_ptr, PERSONS, OBJECTS, eps, BP: tl.constexpr, BO: tl.constexpr):
    # An auction that assigns: who has nothing bids for the best object what it is worth over the next one; the highest bid stays.
    person = tl.program_id(0) * BP + tl.arange(0, BP)
    free = (person < PERSONS) & (tl.load(owner_ptr + person, mask=person < PERSONS, other=0) < 0)
    best = tl.full((BP,), -(1 << 30), tl.int32)
    second = best
    place = tl.zeros((BP,), tl.int32)
    if tl.max(free.to(tl.int32), 0) > 0:
        for o0 in range(0, OBJECTS, BO):
            o = o0 + tl.arange(0, BO)
            worth = tl.load(benefit_ptr + person[:, None] * OBJECTS + o[None, :], mask=free[:, None] & (o < OBJECTS)[None, :], other=0)
            value = tl.where((o < OBJECTS)[None, :], worth - tl.load(price_ptr + o, mask=o < OBJECTS, other=0)[None, :], -(1 << 30))
            low = tl.full((BP, BO), -(1 << 30), tl.int32)
            one, two, where = tl.reduce((value, low, o[None, :] + tl.zeros((BP, BO), tl.int32)), 1, first_and_second)
            best, second, place = first_and_second(best, second, place, one, two, where)
        bid = tl.load(price_ptr + place, mask=free, other=0) + best - second + eps
        tl.atomic_max(bid_ptr + place, (bid.to(tl.int64) << 32) | person.to(tl.int64), mask=free)
    tl.store(want_ptr + person, tl.where(free, place, -1), mask=person < PERSONS)


@case
def quarry_of_bids_of_those_who_have_nothing(persons=3000, objects=3100):
    benefit, price = ints(0, 1 << 20, persons, objects), ints(0, 1 << 16, objects)
    owner = torch.where(uniform(persons) < 0.4, -1, 0).int()
    want, bid = zeros(persons, dtype="int32"), zeros(objects, dtype="int64")
    args = benefit, price, owner, want, bid, persons, objects, 3
    launched = run(bid_for_objects, (cdiv(persons, 4),), args, (want, bid), BP=4, BO=256, num_warps=2)

    def reference():
        value = benefit.long() - price.long()
        two, place = value.sort(dim=1, descending=True, stable=True)
        free, first = owner < 0, place[:, 0]
        packed = ((price.long()[first] + two[:, 0] - two[:, 1] + 3) << 32) | arange(persons, "int64")
        bids = torch.zeros(objects, dtype=torch.long, device="cuda").scatter_reduce(0, first[free], packed[free], "amax")
        return torch.where(free, first, -1), bids

    return against(cleared(launched, bid), reference)


@triton.jit
def ranked_pairs(user_ptr, good_ptr, other_ptr, u_ptr, i_ptr, bias_ptr, du_ptr, di_ptr, db_ptr, loss_ptr, N, decay, D: tl.constexpr, BLOCK: tl.constexpr):
    # Taken before not taken: gradients of a user and of two items, added to tables.
    n = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    d = tl.arange(0, D)
    ok = n < N
    user, good, other = tl.load(user_ptr + n, mask=ok, other=0), tl.load(good_ptr + n, mask=ok, other=0), tl.load(other_ptr + n, mask=ok, other=0)
    u = tl.load(u_ptr + user[:, None] * D + d[None, :], mask=ok[:, None], other=0.0).to(tl.float32)
    p = tl.load(i_ptr + good[:, None] * D + d[None, :], mask=ok[:, None], other=0.0).to(tl.float32)
    q = tl.load(i_ptr + other[:, None] * D + d[None, :], mask=ok[:, None], other=0.0).to(tl.float32)
    x = tl.sum(u * (p - q), 1) + tl.load(bias_ptr + good, mask=ok, other=0.0) - tl.load(bias_ptr + other, mask=ok, other=0.0)
    g = tl.where(ok, 1.0 / (1.0 + tl.exp(x)), 0.0)
    tl.store(loss_ptr + n, tl.maximum(-x, 0.0) + tl.log(1.0 + tl.exp(-tl.abs(x))), mask=ok)
    tl.atomic_add(du_ptr + user[:, None] * D + d[None, :], decay * u - g[:, None] * (p - q), mask=ok[:, None], sem="relaxed")
    tl.atomic_add(di_ptr + good[:, None] * D + d[None, :], decay * p - g[:, None] * u, mask=ok[:, None], sem="relaxed")
    tl.atomic_add(di_ptr + other[:, None] * D + d[None, :], decay * q + g[:, None] * u, mask=ok[:, None], sem="relaxed")
    tl.atomic_add(db_ptr + good, -g, mask=ok, sem="relaxed")
    tl.atomic_add(db_ptr + other, g, mask=ok, sem="relaxed")


@case
def quarry_of_clicks_before_what_was_not_clicked(n=50_000, users=20_000, items=9_000, d=64):
    user, good, other = ints(0, users, n), ints(0, items, n), ints(0, items, n)
    u, i, bias = (rand(users, d) / 4).bfloat16(), (rand(items, d) / 4).bfloat16(), f32(items) / 4
    du, di, db, loss = zeros(users, d, dtype="float32"), zeros(items, d, dtype="float32"), zeros(items, dtype="float32"), zeros(n, dtype="float32")
    args = user, good, other, u, i, bias, du, di, db, loss, n, 0.01
    launched = run(ranked_pairs, (cdiv(n, 32),), args, (du, di, db, loss), D=d, BLOCK=32, num_warps=4)

    def reference():
        a, p, q = u.double()[user.long()], i.double()[good.long()], i.double()[other.long()]
        x = (a * (p - q)).sum(1) + bias.double()[good.long()] - bias.double()[other.long()]
        g = torch.sigmoid(-x)[:, None]
        one = torch.zeros(users, d, dtype=torch.float64, device="cuda").index_add(0, user.long(), 0.01 * a - g * (p - q))
        two = torch.zeros(items, d, dtype=torch.float64, device="cuda").index_add(0, good.long(), 0.01 * p - g * a).index_add(0, other.long(), 0.01 * q + g * a)
        three = torch.zeros(items, dtype=torch.float64, device="cuda").index_add(0, good.long(), -g[:, 0]).index_add(0, other.long(), g[:, 0])
        return one, two, three, torch.nn.functional.softplus(-x)

    return against(cleared(launched, du, di, db), reference)


@triton.jit
def towers(q_ptr, c_ptr, item_ptr, log_q_ptr, loss_ptr, hit_ptr, B, temperature, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    # Queries against all items of the batch: frequencies are taken off, the same item elsewhere does not count; softmax on the way.
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    d = tl.arange(0, D)
    q = tl.load(q_ptr + m[:, None] * D + d[None, :], mask=(m < B)[:, None], other=0.0)
    mine = tl.load(item_ptr + m, mask=m < B, other=-1)
    high, total = tl.full((BM,), -1e30, tl.float32), tl.zeros((BM,), tl.float32)
    own = tl.zeros((BM,), tl.float32)
    above = tl.zeros((BM,), tl.float32) - 1e30
    for n0 in tl.range(0, B, BN, num_stages=3):
        n = n0 + tl.arange(0, BN)
        c = tl.load(c_ptr + n[:, None] * D + d[None, :], mask=(n < B)[:, None], other=0.0)
        item = tl.load(item_ptr + n, mask=n < B, other=-2)
        s = tl.dot(q, tl.trans(c)) * temperature - tl.load(log_q_ptr + n, mask=n < B, other=0.0)[None, :]
        self = m[:, None] == n[None, :]
        own += tl.sum(tl.where(self, s, 0.0), 1)
        s = tl.where((n < B)[None, :] & (self | (mine[:, None] != item[None, :])), s, -1e30)
        above = tl.maximum(above, tl.max(tl.where(self, -1e30, s), 1))
        new = tl.maximum(high, tl.max(s, 1))
        total = total * tl.exp(high - new) + tl.sum(tl.exp(s - new[:, None]), 1)
        high = new
    tl.store(loss_ptr + m, high + tl.log(total) - own, mask=m < B)
    tl.store(hit_ptr + m, own - above, mask=m < B)


@case
def quarry_of_two_towers_with_frequencies_taken_off(b=6100, d=96, padded=128):
    q, c = torch.nn.functional.pad(rand(b, d), (0, padded - d)), torch.nn.functional.pad(rand(b, d), (0, padded - d))
    item, log_q = ints(0, b // 2, b), -uniform(b) * 8
    loss, hit = zeros(b, dtype="float32"), zeros(b, dtype="float32")
    args = q, c, item, log_q, loss, hit, b, 0.5
    launched = run(towers, (cdiv(b, 64),), args, (loss, hit), D=padded, BM=64, BN=128, num_warps=4)

    def reference():
        s = q.float() @ c.float().t() * 0.5 - log_q
        own = s.diagonal().clone()
        other = ~torch.eye(b, dtype=torch.bool, device="cuda")
        s = s.masked_fill((item[:, None] == item[None, :]) & other, -1e30)
        return s.logsumexp(1) - own, own - s.masked_fill(~other, -1e30).amax(1)

    return against(launched, reference)


@triton.jit
def interest(hist_ptr, start_ptr, target_ptr, wh_ptr, wp_ptr, wt_ptr, b_ptr, v_ptr, out_ptr, slope, D: tl.constexpr, H: tl.constexpr, BL: tl.constexpr):
    # What a user did, weighed against what is offered by a small network for each act; lists of all lengths, two dots an act.
    user = tl.program_id(0)
    begin, end = tl.load(start_ptr + user), tl.load(start_ptr + user + 1)
    d, h = tl.arange(0, D), tl.arange(0, H)
    target = tl.load(target_ptr + user * D + d)
    wt = tl.load(wt_ptr + d[:, None] * H + h[None, :])
    bias = tl.load(b_ptr + h) + tl.sum(target.to(tl.float32)[:, None] * wt.to(tl.float32), 0)
    wh = tl.load(wh_ptr + d[:, None] * H + h[None, :])
    wp = tl.load(wp_ptr + d[:, None] * H + h[None, :])
    v = tl.load(v_ptr + h)
    acc = tl.zeros((D,), tl.float32)
    for l0 in range(begin, end, BL):
        at = l0 + tl.arange(0, BL)
        x = tl.load(hist_ptr + at[:, None] * D + d[None, :], mask=(at < end)[:, None], other=0.0)
        hidden = tl.dot(x, wh)
        hidden = tl.dot(x * target[None, :], wp, hidden) + bias[None, :]
        hidden = tl.where(hidden > 0, hidden, hidden * slope)
        weight = tl.sum(hidden * v[None, :], 1)
        acc += tl.sum(weight[:, None] * x.to(tl.float32), 0)
    tl.store(out_ptr + user * D + d, acc)


@case
def quarry_of_acts_weighed_against_an_offer(users=2500, longest=200, d=32, h=64):
    length = torch.randint(0, longest, (users,))
    start = torch.cat([torch.zeros(1, dtype=torch.long), length.cumsum(0)])
    total = int(start[-1])
    hist, target = rand(total, d), rand(users, d)
    wh, wp, wt, b, v = rand(d, h) / 6, rand(d, h) / 6, rand(d, h) / 6, f32(h), f32(h) / 8
    out = zeros(users, d, dtype="float32")
    args = hist, start.int().cuda(), target, wh, wp, wt, b, v, out, 0.2
    launched = run(interest, (users,), args, out, D=d, H=h, BL=32, num_warps=1, num_stages=2)

    def reference():
        owner = torch.repeat_interleave(torch.arange(users), length).cuda()
        x, t = hist.float(), target.float()[owner]
        hidden = x @ wh.float() + (hist * target[owner]).float() @ wp.float() + t @ wt.float() + b
        weight = torch.where(hidden > 0, hidden, hidden * 0.2) @ v
        return torch.zeros(users, d, device="cuda").index_add(0, owner, weight[:, None] * x)

    return against(launched, reference)


@triton.jit
def experts_of_two_tasks(x_ptr, w_ptr, b_ptr, gate_ptr, y_ptr, M, N, K, E, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # All experts of all rows, rectified, and mixed by the gates of two tasks into two results; loops in loops.
    m, n = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    one, two = tl.zeros((BM, BN), tl.float32), tl.zeros((BM, BN), tl.float32)
    for e in range(E):
        acc = tl.zeros((BM, BN), tl.float32)
        for k0 in range(0, K, BK):
            k = k0 + tl.arange(0, BK)
            x = tl.load(x_ptr + m[:, None] * K + k[None, :], mask=(m < M)[:, None] & (k < K)[None, :], other=0.0)
            w = tl.load(w_ptr + (e * K + k[:, None]) * N + n[None, :], mask=(k < K)[:, None] & (n < N)[None, :], other=0.0)
            acc = tl.dot(x, w, acc)
        acc = tl.maximum(acc + tl.load(b_ptr + e * N + n, mask=n < N, other=0.0)[None, :], 0.0)
        one += acc * tl.load(gate_ptr + m * E + e, mask=m < M, other=0.0)[:, None]
        two += acc * tl.load(gate_ptr + (M + m) * E + e, mask=m < M, other=0.0)[:, None]
    at = m[:, None] * N + n[None, :]
    ok = (m < M)[:, None] & (n < N)[None, :]
    tl.store(y_ptr + at, one.to(y_ptr.dtype.element_ty), mask=ok)
    tl.store(y_ptr + M * N + at, two.to(y_ptr.dtype.element_ty), mask=ok)


@case
def quarry_of_experts_mixed_for_two_tasks(m=4000, n=240, k=500, e=6, dtype="bfloat16"):
    x, w, b = rand(m, k, dtype=dtype), rand(e, k, n, dtype=dtype) / 16, f32(e, n)
    gate, y = f32(2, m, e).softmax(2), zeros(2, m, n, dtype=dtype)
    args = x, w, b, gate, y, m, n, k, e
    launched = run(experts_of_two_tasks, (cdiv(m, 64), cdiv(n, 64)), args, y, BM=64, BN=64, BK=64, num_warps=4, num_stages=3)

    def reference():
        h = torch.relu(torch.einsum("mk,ekn->emn", x.float(), w.float()) + b[:, None])
        return torch.einsum("emn,tme->tmn", h, gate)

    return against(launched, reference)


@triton.jit
def two_kept_of_four(x_ptr, value_ptr, meta_ptr, y_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BG: tl.constexpr):
    # Weights of which two of every four were kept, put back to their places in registers before the dot.
    m, n = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    k = tl.arange(0, 4 * BG)
    for g0 in range(0, K // 4, BG):
        g = g0 + tl.arange(0, BG)
        pair = tl.arange(0, 2 * BG) + 2 * g0
        v = tl.load(value_ptr + n[:, None] * (K // 2) + pair[None, :], mask=(n < N)[:, None], other=0.0)
        first, second = tl.split(tl.reshape(v, (BN, BG, 2)))
        meta = tl.load(meta_ptr + n[:, None] * (K // 4) + g[None, :], mask=(n < N)[:, None], other=0).to(tl.int32)
        p, q = meta & 3, meta >> 2
        c0 = tl.where(p == 0, first, 0.0)
        c1 = tl.where(p == 1, first, tl.where(q == 1, second, 0.0))
        c2 = tl.where(p == 2, first, tl.where(q == 2, second, 0.0))
        c3 = tl.where(q == 3, second, 0.0)
        w = tl.reshape(tl.join(tl.join(c0, c2), tl.join(c1, c3)), (BN, 4 * BG)).to(v.dtype)
        x = tl.load(x_ptr + m[:, None] * K + 4 * g0 + k[None, :], mask=(m < M)[:, None], other=0.0)
        acc = tl.dot(x, tl.trans(w), acc)
    tl.store(y_ptr + m[:, None] * N + n[None, :], acc.to(y_ptr.dtype.element_ty), mask=(m < M)[:, None] & (n < N)[None, :])


@case
def quarry_of_weights_two_of_four_put_back(m=300, n=2900, k=2048):
    x, values = rand(m, k), rand(n, k // 2) / 16
    choice = torch.tensor([0 | 1 << 2, 0 | 2 << 2, 0 | 3 << 2, 1 | 2 << 2, 1 | 3 << 2, 2 | 3 << 2], dtype=torch.uint8, device="cuda")
    pick = ints(0, 6, n, k // 4)
    meta, y = choice[pick.long()], zeros(m, n)
    launched = run(two_kept_of_four, (cdiv(m, 64), cdiv(n, 64)), (x, values, meta, y, m, n, k), y, BM=64, BN=64, BG=16, num_warps=4, num_stages=3)

    def reference():
        w = torch.zeros(n, k // 4, 4, device="cuda")
        w.scatter_(2, (meta & 3).long()[..., None], values.float().reshape(n, k // 4, 2)[..., :1])
        w.scatter_(2, (meta >> 2).long()[..., None], values.float().reshape(n, k // 4, 2)[..., 1:])
        return x.float() @ w.reshape(n, k).t()

    return against(launched, reference)


@triton.jit
def fold_molecules(seq_ptr, table_ptr, out_ptr, L, BL: tl.constexpr):
    # The most pairs that a strand can make with itself: diagonal after diagonal of a table in memory, with all ways to cut it in two.
    strand = tl.program_id(0)
    table = table_ptr + strand * L * L
    seq = seq_ptr + strand * L
    i = tl.arange(0, BL)
    tl.store(table + i, tl.zeros((BL,), tl.int16), mask=i < L)
    tl.debug_barrier()
    for span in range(1, L):
        ok = i + span < L
        a, b = tl.load(seq + i, mask=ok, other=0).to(tl.int32), tl.load(seq + i + span, mask=ok, other=0).to(tl.int32)
        pairs = (a + b == 3) | (a + b == 5) & (a != b)
        best = tl.zeros((BL,), tl.int16)
        for cut in range(span):
            left = tl.load(table + cut * L + i, mask=ok, other=0)
            right = tl.load(table + (span - cut - 1) * L + i + cut + 1, mask=ok, other=0)
            best = tl.maximum(best, left + right)
        if span > 3:
            inner = tl.load(table + (span - 2) * L + i + 1, mask=ok, other=0)
            best = tl.maximum(best, inner + tl.where(pairs, 1, 0).to(tl.int16))
        tl.store(table + span * L + i, best, mask=ok)
        tl.debug_barrier()
    tl.store(out_ptr + strand, tl.load(table + (L - 1) * L))


@case
def quarry_of_strands_folded_onto_themselves(strands=500, l=60):
    seq, table, out = ints(0, 4, strands, l, dtype="int8"), zeros(strands, l, l, dtype="int16"), zeros(strands, dtype="int16")
    launched = run(fold_molecules, (strands,), (seq, table, out, l), out, BL=triton.next_power_of_2(l), num_warps=1)

    def reference():
        s = seq.long()
        t = torch.zeros(strands, l + 1, l + 1, dtype=torch.long, device="cuda")
        for span in range(1, l):
            for i in range(l - span):
                j = i + span
                best = (t[:, i, i:j] + t[:, i + 1 : j + 1, j]).amax(1)
                if span > 3:
                    total = s[:, i] + s[:, j]
                    pairs = (total == 3) | ((total == 5) & (s[:, i] != s[:, j]))
                    best = torch.maximum(best, t[:, i + 1, j - 1] + pairs)
                t[:, i, j] = best
        return t[:, 0, l - 1]

    return against(launched, reference)


@triton.jit
def scaled_then_added(d0, x0, d1, x1):
    return d0 * d1, x0 * d1 + x1


@triton.jit
def read_given_haplotype(read_ptr, quality_ptr, hap_ptr, pair_ptr, out_ptr, R, H, gap, extend, BH: tl.constexpr):
    # How likely a read is given a haplotype: states of a row of matches, insertions and deletions, the last by a scan along the row.
    pair = tl.program_id(0)
    r, h = tl.load(pair_ptr + 2 * pair), tl.load(pair_ptr + 2 * pair + 1)
    j = tl.arange(0, BH)
    before = tl.maximum(j - 1, 0)
    base = tl.load(hap_ptr + h * H + j, mask=j < H, other=-1)
    start = 1.0e15 / H
    m, ins = tl.zeros((BH,), tl.float32), tl.zeros((BH,), tl.float32)
    dele = tl.full((BH,), start, tl.float32)
    stay = 1.0 - 2.0 * gap
    for i in range(R):
        letter = tl.load(read_ptr + r * R + i)
        error = tl.exp2(tl.load(quality_ptr + r * R + i).to(tl.float32) * -0.33219281)
        prior = tl.where(base == letter, 1.0 - error, error / 3.0)
        edge = tl.where(i == 0, start, 0.0)
        shifted_m = tl.where(j == 0, 0.0, tl.gather(m, before, 0))
        shifted_i = tl.where(j == 0, 0.0, tl.gather(ins, before, 0))
        shifted_d = tl.where(j == 0, edge, tl.gather(dele, before, 0))
        ins = m * gap + ins * extend
        m = tl.where(j < H, prior * (stay * shifted_m + (1.0 - extend) * (shifted_i + shifted_d)), 0.0)
        opened = tl.where(j == 0, 0.0, tl.gather(m, before, 0)) * gap
        _, dele = tl.associative_scan((tl.full((BH,), extend, tl.float32), opened), 0, scaled_then_added)
    total = tl.sum(tl.where(j < H, m + ins, 0.0), 0)
    tl.store(out_ptr + pair, tl.log(total) - 34.538776394910684)


@case
def quarry_of_reads_given_haplotypes(pairs=1500, reads=300, haps=20, r=80, h=200):
    # Haplotypes of one region differ at few places, so that all pairs are likely enough for floats.
    hap = torch.where(uniform(haps, h) < 0.02, ints(0, 4, haps, h, dtype="int8"), ints(0, 4, 1, h, dtype="int8")).contiguous()
    begin, source = ints(0, h - r, reads), ints(0, haps, reads)
    read = hap[source.long()[:, None], begin.long()[:, None] + arange(r, "int64")[None]]
    read = torch.where(uniform(reads, r) < 0.02, ints(0, 4, reads, r, dtype="int8"), read).contiguous()
    quality, pair, out = ints(10, 41, reads, r, dtype="int8"), torch.stack([ints(0, reads, pairs), ints(0, haps, pairs)], 1), zeros(pairs, dtype="float32")
    args = read, quality, hap, pair, out, r, h, 0.001, 0.1
    launched = run(read_given_haplotype, (pairs,), args, out, BH=triton.next_power_of_2(h), num_warps=2)

    def reference():
        a, q, b = read[pair[:, 0].long()], quality[pair[:, 0].long()].double(), hap[pair[:, 1].long()]
        m, ins = torch.zeros(pairs, h + 1, dtype=torch.float64, device="cuda"), torch.zeros(pairs, h + 1, dtype=torch.float64, device="cuda")
        dele = torch.full((pairs, h + 1), 1.0 / h, dtype=torch.float64, device="cuda")
        for i in range(r):
            e = (10 ** (-q[:, i] / 10))[:, None]
            prior = torch.where(b == a[:, i : i + 1], 1 - e, e / 3)
            new_m, new_i, new_d = torch.zeros_like(m), m * 0.001 + ins * 0.1, torch.zeros_like(m)
            new_i[:, 0] = 0
            new_m[:, 1:] = prior * (0.998 * m[:, :-1] + 0.9 * (ins[:, :-1] + dele[:, :-1]))
            for j in range(1, h + 1):
                new_d[:, j] = new_m[:, j - 1] * 0.001 + new_d[:, j - 1] * 0.1
            m, ins, dele = new_m, new_i, new_d
        return (m + ins)[:, 1:].sum(1).log()

    return against(launched, reference)
