"""Orchards: what grows in blocks and is picked: experts, codes, packets of bytes, neighbors, small systems and states."""

import torch
import torch.nn.functional as F
import triton
import triton.language as tl
from triton.language.extra import libdevice

from .common import against, arange, case, cdiv, f32, ints, rand, run, uniform, viewed, zeros


@triton.jit
def three_of_both(m1, l1, w1, m2, l2, w2):
    m = tl.maximum(m1, m2)
    e1, e2 = tl.exp(m1 - m), tl.exp(m2 - m)
    return m, l1 * e1 + l2 * e2, e1 * (w1 + l1 * (m1 - m)) + e2 * (w2 + l2 * (m2 - m))


@triton.jit
def surprise_beside_entropy(x_ptr, y_ptr, h_ptr, V, BLOCK: tl.constexpr):
    # How far the surprise of each token is from the entropy of its row: largest, mass and weighted sum go together, in one pass.
    row, cols = tl.program_id(0), tl.arange(0, BLOCK)
    x_row, y_row = x_ptr + row.to(tl.int64) * V, y_ptr + row.to(tl.int64) * V
    m, l, w = tl.full((BLOCK,), -1e30, tl.float32), tl.zeros((BLOCK,), tl.float32), tl.zeros((BLOCK,), tl.float32)
    for v0 in range(0, V, BLOCK):
        ok = v0 + cols < V
        x = tl.where(ok, tl.load(x_row + v0 + cols, mask=ok, other=0.0).to(tl.float32), -1e30)
        m, l, w = three_of_both(m, l, w, x, ok.to(tl.float32), tl.zeros((BLOCK,), tl.float32))
    m, l, w = tl.reduce((m, l, w), 0, three_of_both)
    lse = m + tl.log(l)
    entropy = tl.log(l) - w / l
    tl.store(h_ptr + row, entropy)
    for v0 in range(0, V, BLOCK):
        ok = v0 + cols < V
        x = tl.load(x_row + v0 + cols, mask=ok, other=0.0).to(tl.float32)
        tl.store(y_row + v0 + cols, tl.abs(lse - x - entropy), mask=ok)


@case
def orchard_of_surprises_beside_the_entropy(rows=396, v=32_064):
    x, y, h = rand(rows, v), zeros(rows, v, dtype="float32"), zeros(rows, dtype="float32")
    launched = run(surprise_beside_entropy, (rows,), (x, y, h, v), (y, h), BLOCK=2048, num_warps=8)

    def reference():
        lp = x.float().log_softmax(1)
        entropy = -(lp.exp() * lp).sum(1)
        return (-lp - entropy[:, None]).abs(), entropy

    return against(launched, reference)


@triton.jit
def experts_of_best_groups(
    s_ptr, bias_ptr, id_ptr, w_ptr, scale, T, E: tl.constexpr, GROUPS: tl.constexpr, KEEP: tl.constexpr, K: tl.constexpr, BT: tl.constexpr
):  # fmt: skip
    # Groups are ranked by the sum of their two best experts; of those in the best groups, the best are chosen, by words of score and place.
    t, e = tl.program_id(0) * BT + tl.arange(0, BT), tl.arange(0, E)
    s = tl.load(s_ptr + t[:, None] * E + e[None, :], mask=(t < T)[:, None], other=0.0)
    z = tl.reshape(s + tl.load(bias_ptr + e)[None, :], (BT, GROUPS, E // GROUPS))
    lane, g = tl.arange(0, E // GROUPS), tl.arange(0, GROUPS)
    first, at = tl.max(z, 2, return_indices=True)
    second = tl.max(tl.where(lane[None, None, :] == at[:, :, None], -1.0, z), 2)
    sums = first + second
    equal = (sums[:, None, :] == sums[:, :, None]) & (g[None, None, :] < g[None, :, None])
    rank = tl.sum(((sums[:, None, :] > sums[:, :, None]) | equal).to(tl.int32), 2)
    z = tl.reshape(tl.where((rank < KEEP)[:, :, None], z, 0.0), (BT, E))
    word = (z.to(tl.int32, bitcast=True).to(tl.int64) << 32) | (E - 1 - e)[None, :].to(tl.int64)
    best = tl.topk(word, K)
    chosen = E - 1 - (best & 0xFFFFFFFF).to(tl.int32)
    w = tl.gather(s, chosen, 1)
    w = w / tl.sum(w, 1)[:, None] * scale
    out = t[:, None] * K + tl.arange(0, K)[None, :]
    tl.store(id_ptr + out, chosen, mask=(t < T)[:, None])
    tl.store(w_ptr + out, w, mask=(t < T)[:, None])


@case
def orchard_of_experts_of_the_best_groups(t=10_001):
    e, groups, keep, k = 256, 8, 4, 8
    s, bias = (ints(0, 1 << 16, t, e) + 1).float() / (1 << 16), (ints(0, 1 << 12, e) + 1).float() / (1 << 16)
    chosen, w = zeros(t, k, dtype="int32"), zeros(t, k, dtype="float32")
    launched = run(experts_of_best_groups, (cdiv(t, 4),), (s, bias, chosen, w, 2.5, t), (chosen, w), E=e, GROUPS=groups, KEEP=keep, K=k, BT=4, num_warps=4)

    def reference():
        z = (s + bias).reshape(t, groups, e // groups)
        order = z.topk(2, 2).values.sum(2).sort(dim=1, descending=True, stable=True).indices[:, :keep]
        on = torch.zeros(t, groups, device=s.device).scatter_(1, order, 1.0)
        ids = (z * on[..., None]).reshape(t, e).sort(dim=1, descending=True, stable=True).indices[:, :k]
        q = s.gather(1, ids)
        return ids, q / q.sum(1, keepdim=True) * 2.5

    return against(launched, reference)


@triton.jit
def packets_of_six_bit_scales(q_ptr, y_ptr, BLOCKS, B: tl.constexpr):
    # Packets of 144 bytes: two halves, eight scales and eight minima of six bits in twelve bytes, 256 nibbles.
    block, i = tl.program_id(0) * B + tl.arange(0, B)[:, None], tl.arange(0, 256)[None, :]
    ok = block < BLOCKS
    packet = q_ptr + block * 144
    d = tl.load(packet.to(tl.pointer_type(tl.float16)), mask=ok, other=0.0).to(tl.float32)
    low = tl.load((packet + 2).to(tl.pointer_type(tl.float16)), mask=ok, other=0.0).to(tl.float32)
    j = i // 32
    a = tl.load(packet + 4 + j, mask=ok, other=0).to(tl.int32)
    b = tl.load(packet + 8 + j, mask=ok, other=0).to(tl.int32)
    c = tl.load(packet + j, mask=ok & (j >= 4), other=0).to(tl.int32)
    scale = tl.where(j < 4, a & 63, (b & 15) | ((c >> 6) << 4))
    least = tl.where(j < 4, b & 63, (b >> 4) | ((a >> 6) << 4))
    byte = tl.load(packet + 16 + (i // 64) * 32 + i % 32, mask=ok, other=0).to(tl.int32)
    q = (byte >> (4 * (j & 1))) & 15
    y = d * scale.to(tl.float32) * q.to(tl.float32) - low * least.to(tl.float32)
    tl.store(y_ptr + block * 256 + i, y.to(y_ptr.dtype.element_ty), mask=ok)


@case
def orchard_of_packets_with_scales_of_six_bits(blocks=60_001):
    d = (uniform(blocks, 2) / 64).half()
    q = torch.cat([d.view(torch.uint8), ints(0, 256, blocks, 140, dtype="uint8")], 1)
    y = zeros(blocks, 256)
    launched = run(packets_of_six_bit_scales, (cdiv(blocks, 8),), (q, y, blocks), y, B=8, num_warps=4)

    def reference():
        b = q[:, 4:16].int()
        scale = torch.cat([b[:, :4] & 63, (b[:, 8:] & 15) | ((b[:, :4] >> 6) << 4)], 1).float()
        least = torch.cat([b[:, 4:8] & 63, (b[:, 8:] >> 4) | ((b[:, 4:8] >> 6) << 4)], 1).float()
        n = q[:, 16:].int().reshape(blocks, 4, 1, 32)
        codes = torch.cat([n & 15, n >> 4], 2).reshape(blocks, 8, 32).float()
        z = d[:, :1, None].float() * scale[..., None] * codes - d[:, 1:, None].float() * least[..., None]
        return z.reshape(blocks, 256)

    return against(launched, reference)


@triton.jit
def gated_residual_then_shifted_norm(x_ptr, a_ptr, gate_ptr, shift_ptr, scale_ptr, r_ptr, y_ptr, eps, T, D, STRIDE, BLOCK: tl.constexpr):
    # A residual with a gate of its image, then a norm without weights, scaled and shifted by what the image asks.
    row, d = tl.program_id(0), tl.arange(0, BLOCK)
    image, ok = row // T, d < D
    at = row * D + d
    x = tl.load(x_ptr + at, mask=ok, other=0.0).to(tl.float32)
    a = tl.load(a_ptr + at, mask=ok, other=0.0).to(tl.float32)
    x += tl.load(gate_ptr + image * STRIDE + d, mask=ok, other=0.0).to(tl.float32) * a
    tl.store(r_ptr + at, x.to(r_ptr.dtype.element_ty), mask=ok)
    mean = tl.sum(x, 0) / D
    away = tl.where(ok, x - mean, 0.0)
    y = away * tl.rsqrt(tl.sum(away * away, 0) / D + eps)
    scale = tl.load(scale_ptr + image * STRIDE + d, mask=ok, other=0.0).to(tl.float32)
    shift = tl.load(shift_ptr + image * STRIDE + d, mask=ok, other=0.0).to(tl.float32)
    tl.store(y_ptr + at, (y * (1.0 + scale) + shift).to(y_ptr.dtype.element_ty), mask=ok)


@case
def orchard_of_norms_shifted_by_images(images=32, t=256, d=1152):
    x, a, six = rand(images, t, d, dtype="bfloat16"), rand(images, t, d, dtype="bfloat16"), rand(images, 6, d, dtype="bfloat16")
    r, y = zeros(images, t, d, dtype="bfloat16"), zeros(images, t, d, dtype="bfloat16")
    args = x, a, six[:, 2], six[:, 3], six[:, 4], r, y, 1e-6, t, d, 6 * d
    launched = run(gated_residual_then_shifted_norm, (images * t,), args, (r, y), BLOCK=2048, num_warps=4)

    def reference():
        z = x.float() + six[:, None, 2].float() * a.float()
        return z, F.layer_norm(z, (d,), eps=1e-6) * (1 + six[:, None, 4].float()) + six[:, None, 3].float()

    return against(launched, reference)


@triton.jit
def averages_of_many_tensors(x_at_ptr, avg_at_ptr, out_at_ptr, size_ptr, which_ptr, chunk_ptr, decay, CHUNK: tl.constexpr, B: tl.constexpr):
    # Weights of many tensors move slowly into their averages: a program looks up which tensor, and which chunk of it.
    pid = tl.program_id(0)
    which = tl.load(which_ptr + pid)
    size = tl.load(size_ptr + which)
    x_ptr = tl.load(x_at_ptr + which).to(tl.pointer_type(tl.bfloat16))
    avg_ptr = tl.load(avg_at_ptr + which).to(tl.pointer_type(tl.float32))
    out_ptr = tl.load(out_at_ptr + which).to(tl.pointer_type(tl.float32))
    first = tl.load(chunk_ptr + pid) * CHUNK
    for c0 in range(first, tl.minimum(first + CHUNK, size), B):
        at = c0 + tl.arange(0, B)
        ok = at < size
        avg = tl.load(avg_ptr + at, mask=ok, other=0.0)
        x = tl.load(x_ptr + at, mask=ok, other=0.0).to(tl.float32)
        tl.store(out_ptr + at, avg + (1.0 - decay) * (x - avg), mask=ok)


@case
def orchard_of_averages_of_many_tensors(sizes=(4_000_000, 1000, 77, 2_500_001, 6_000_000, 3, 1_048_576, 999_999, 128, 65_537)):
    chunk = 16_384
    xs, avgs = [rand(n, dtype="bfloat16") for n in sizes], [f32(n) for n in sizes]
    outs = [zeros(n, dtype="float32") for n in sizes]
    held = [torch.tensor([x.data_ptr() for x in some], device="cuda", dtype=torch.int64) for some in (xs, avgs, outs)]
    work = [(i, c) for i, n in enumerate(sizes) for c in range(cdiv(n, chunk))]
    size, which, start = (torch.tensor(one, device="cuda", dtype=torch.int32) for one in (sizes, [w[0] for w in work], [w[1] for w in work]))
    launched = run(averages_of_many_tensors, (len(work),), (*held, size, which, start, 0.9), outs, CHUNK=chunk, B=1024, num_warps=4)
    return against(launched, lambda: [a + (1 - 0.9) * (x.float() - a) for x, a in zip(xs, avgs)])


@triton.jit
def squared_relu_with_bits(x_ptr, y_ptr, bit_ptr, N, B: tl.constexpr):
    # Squares of what is positive, and where it was, as 32 bits a word.
    row, c = tl.program_id(0) * B + tl.arange(0, B), tl.arange(0, 32)
    at = row[:, None] * 32 + c[None, :]
    x = tl.load(x_ptr + at, mask=at < N, other=0.0).to(tl.float32)
    on = x > 0.0
    y = tl.where(on, x * x, 0.0)
    tl.store(y_ptr + at, y.to(y_ptr.dtype.element_ty), mask=at < N)
    word = tl.sum(on.to(tl.int32) << c[None, :], 1)
    tl.store(bit_ptr + row, word, mask=row * 32 < N)


@case
def orchard_of_squares_with_bits_of_what_was_positive(n=24_000_008):
    x, y, bits = rand(n, dtype="bfloat16"), zeros(n, dtype="bfloat16"), zeros(cdiv(n, 32), dtype="int32")
    launched = run(squared_relu_with_bits, (cdiv(n, 32 * 128),), (x, y, bits, n), (y, bits), B=128, num_warps=4)

    def reference():
        z = x.float().clamp(min=0)
        on = F.pad(z > 0, (0, -n % 32)).reshape(-1, 32).long()
        word = (on << arange(32, dtype="int64")).sum(1)
        return z * z, torch.where(word >= 2**31, word - 2**32, word)

    return against(launched, reference)


@triton.jit
def frames_laid_over(x_ptr, win_ptr, y_ptr, FRAMES, N, W: tl.constexpr, HOP: tl.constexpr, OVER: tl.constexpr, B: tl.constexpr):
    # Sound from frames that overlap: each sample sums what lies over it under the window, and divides by the window's squares.
    n, channel = tl.program_id(0) * B + tl.arange(0, B), tl.program_id(1)
    total, norm = tl.zeros((B,), tl.float32), tl.zeros((B,), tl.float32)
    for j in tl.static_range(OVER):
        frame = n // HOP - j
        off = n - frame * HOP
        ok = (frame >= 0) & (frame < FRAMES) & (off < W) & (n < N)
        win = tl.load(win_ptr + off, mask=ok, other=0.0)
        total += win * tl.load(x_ptr + (channel * FRAMES + frame) * W + off, mask=ok, other=0.0).to(tl.float32)
        norm += win * win
    tl.store(y_ptr + channel * N + n, total / tl.maximum(norm, 1e-6), mask=n < N)


@case
def orchard_of_sound_from_frames_that_overlap(channels=40, frames=800):
    w, hop = 400, 160
    n = (frames - 1) * hop + w
    x, win, y = rand(channels, frames, w), torch.hamming_window(w, device="cuda"), zeros(channels, n, dtype="float32")
    launched = run(frames_laid_over, (cdiv(n, 1024), channels), (x, win, y, frames, n), y, W=w, HOP=hop, OVER=3, B=1024, num_warps=4)

    def reference():
        def laid(z):
            return F.fold(z.transpose(1, 2), (1, n), (1, w), stride=(1, hop))[:, 0, 0]

        return laid(x.float() * win) / laid((win * win).expand(channels, frames, w))

    return against(launched, reference)


@triton.jit
def smoothed_by_likeness(x_ptr, y_ptr, near, like, H, W, R: tl.constexpr, BY: tl.constexpr, BX: tl.constexpr):
    # A bilateral filter: neighbors count by how near and how alike they are; edges repeat.
    x, y = tl.program_id(0) * BX + tl.arange(0, BX)[None, :], tl.program_id(1) * BY + tl.arange(0, BY)[:, None]
    inside = (y < H) & (x < W)
    mid = tl.load(x_ptr + y * W + x, mask=inside, other=0.0)
    total, mass = tl.zeros((BY, BX), tl.float32), tl.zeros((BY, BX), tl.float32)
    for dy in tl.static_range(-R, R + 1):
        for dx in tl.static_range(-R, R + 1):
            yy, xx = tl.minimum(tl.maximum(y + dy, 0), H - 1), tl.minimum(tl.maximum(x + dx, 0), W - 1)
            v = tl.load(x_ptr + yy * W + xx, mask=inside, other=0.0)
            w = tl.exp(-(dy * dy + dx * dx) * near - (v - mid) * (v - mid) * like)
            total += w * v
            mass += w
    tl.store(y_ptr + y * W + x, total / mass, mask=inside)


@case
def orchard_of_pictures_smoothed_by_likeness(h=1500, w=2100):
    x, y, r = uniform(h, w), zeros(h, w, dtype="float32"), 2
    launched = run(smoothed_by_likeness, (cdiv(w, 128), cdiv(h, 8)), (x, y, 0.2, 5.0, h, w), y, R=r, BY=8, BX=128, num_warps=4)

    def reference():
        p = F.pad(x[None, None], (r, r, r, r), mode="replicate")[0, 0]
        total, mass = torch.zeros_like(x), torch.zeros_like(x)
        for i in range(2 * r + 1):
            for j in range(2 * r + 1):
                v = p[i : i + h, j : j + w]
                q = torch.exp(-((i - r) ** 2 + (j - r) ** 2) * 0.2 - (v - x) ** 2 * 5.0)
                total += q * v
                mass += q
        return total / mass

    return against(launched, reference)


@triton.jit
def soft_pushes_in_a_box(p_ptr, f_ptr, u_ptr, side, reach, N, BI: tl.constexpr, BJ: tl.constexpr):
    # Particles in a box without walls push each other softly when near; forces and energies of all pairs, tile by tile.
    i, jj = tl.program_id(0) * BI + tl.arange(0, BI), tl.arange(0, BJ)
    ok = i < N
    xi, yi = tl.load(p_ptr + i, mask=ok, other=0.0)[:, None], tl.load(p_ptr + N + i, mask=ok, other=0.0)[:, None]
    zi = tl.load(p_ptr + 2 * N + i, mask=ok, other=0.0)[:, None]
    fx, fy, fz, u = tl.zeros((BI,), tl.float32), tl.zeros((BI,), tl.float32), tl.zeros((BI,), tl.float32), tl.zeros((BI,), tl.float32)
    inverse = 1.0 / side
    for j0 in tl.range(0, N, BJ, num_stages=2):
        j = j0 + jj
        live = j < N
        dx = xi - tl.load(p_ptr + j, mask=live, other=0.0)[None, :]
        dy = yi - tl.load(p_ptr + N + j, mask=live, other=0.0)[None, :]
        dz = zi - tl.load(p_ptr + 2 * N + j, mask=live, other=0.0)[None, :]
        dx -= side * tl.floor(dx * inverse + 0.5)
        dy -= side * tl.floor(dy * inverse + 0.5)
        dz -= side * tl.floor(dz * inverse + 0.5)
        gap = 1.0 - (dx * dx + dy * dy + dz * dz) / (reach * reach)
        gap = tl.where(live[None, :] & (i[:, None] != j[None, :]), tl.maximum(gap, 0.0), 0.0)
        push = gap * gap
        fx += tl.sum(push * dx, 1)
        fy += tl.sum(push * dy, 1)
        fz += tl.sum(push * dz, 1)
        u += tl.sum(push * gap, 1)
    tl.store(f_ptr + i * 3, fx, mask=ok)
    tl.store(f_ptr + i * 3 + 1, fy, mask=ok)
    tl.store(f_ptr + i * 3 + 2, fz, mask=ok)
    tl.store(u_ptr + i, u, mask=ok)


@case
def orchard_of_soft_pushes_in_a_box_without_walls(n=9000):
    side, reach = 10.0, 2.5
    p, f, u = uniform(3, n) * side, zeros(n, 3, dtype="float32"), zeros(n, dtype="float32")
    launched = run(soft_pushes_in_a_box, (cdiv(n, 32),), (p, f, u, side, reach, n), (f, u), BI=32, BJ=64, num_warps=4)

    def reference():
        fs, us = [], []
        for i0 in range(0, n, 1000):
            d = p[:, i0 : i0 + 1000, None] - p[:, None, :]
            d = d - side * torch.floor(d / side + 0.5)
            gap = (1 - d.square().sum(0) / reach**2).clamp(min=0)
            here = arange(gap.shape[0]).long()
            gap[here, here + i0] = 0.0
            fs.append(torch.einsum("ij,cij->ic", gap**2, d))
            us.append((gap**3).sum(1))
        return torch.cat(fs), torch.cat(us)

    return against(launched, reference)


@triton.jit
def products_at_edges(q_ptr, k_ptr, row_ptr, col_ptr, bias_ptr, y_ptr, scale, E, H: tl.constexpr, C: tl.constexpr, BC: tl.constexpr, BE: tl.constexpr):
    # What two ends of an edge have in common, head by head, with the edge's bias, leaky below zero.
    e, h, c = tl.program_id(0) * BE + tl.arange(0, BE), tl.arange(0, H), tl.arange(0, BC)
    row = tl.load(row_ptr + e, mask=e < E, other=0)
    col = tl.load(col_ptr + e, mask=e < E, other=0)
    inner = h[None, :, None] * C + c[None, None, :]
    ok = (e < E)[:, None, None] & (c < C)[None, None, :]
    q = tl.load(q_ptr + row[:, None, None] * (H * C) + inner, mask=ok, other=0.0).to(tl.float32)
    k = tl.load(k_ptr + col[:, None, None] * (H * C) + inner, mask=ok, other=0.0).to(tl.float32)
    out = e[:, None] * H + h[None, :]
    y = tl.sum(q * k, 2) * scale + tl.load(bias_ptr + out, mask=(e < E)[:, None], other=0.0)
    tl.store(y_ptr + out, tl.where(y > 0.0, y, 0.2 * y), mask=(e < E)[:, None])


@case
def orchard_of_products_at_the_ends_of_edges(nodes=9000, edges=200_003):
    h, c = 4, 20
    q, k, bias = rand(nodes, h, c), rand(nodes, h, c), f32(edges, h)
    row, col, y = ints(0, nodes, edges).sort().values, ints(0, nodes, edges), zeros(edges, h, dtype="float32")
    launched = run(products_at_edges, (cdiv(edges, 32),), (q, k, row, col, bias, y, c**-0.5, edges), y, H=h, C=c, BC=32, BE=32, num_warps=4)
    return against(launched, lambda: F.leaky_relu((q[row].float() * k[col].float()).sum(2) * c**-0.5 + bias, 0.2))


@triton.jit
def either_not_both(a, b):
    return a ^ b


@triton.jit
def points_that_fill_evenly(v_ptr, shift_ptr, y_ptr, first, N, DIMS: tl.constexpr, B: tl.constexpr):
    # Points of a digital sequence: directions where the Gray code of a number has bits, joined by a reduction of its own, and shifted.
    i, bit = tl.program_id(0) * B + tl.arange(0, B), tl.arange(0, 32)
    number = first + i
    gray = number ^ (number >> 1)
    on = ((gray[:, None] >> bit[None, :]) & 1) != 0
    for dim in range(DIMS):
        v = tl.load(v_ptr + dim * 32 + bit)
        x = tl.reduce(tl.where(on, v[None, :], 0), 1, either_not_both)
        word = (x ^ tl.load(shift_ptr + dim)).to(tl.uint32, bitcast=True)
        tl.store(y_ptr + dim * N + i, (word >> 8).to(tl.float32) * (1.0 / 16777216.0), mask=i < N)


@case
def orchard_of_points_that_fill_a_cube_evenly(n=70_001, dims=24):
    v, shift, y = ints(-(2**31), 2**31 - 1, dims, 32), ints(-(2**31), 2**31 - 1, dims), zeros(dims, n, dtype="float32")
    launched = run(points_that_fill_evenly, (cdiv(n, 128),), (v, shift, y, 1000, n), y, DIMS=dims, B=128, num_warps=4)

    def reference():
        number = arange(n, dtype="int64") + 1000
        gray = number ^ (number >> 1)
        x = torch.zeros(dims, n, device=v.device, dtype=torch.int64) ^ shift.long()[:, None]
        for b in range(32):
            x = x ^ torch.where(((gray >> b) & 1)[None, :] > 0, v[:, b].long()[:, None], 0)
        return ((x & 0xFFFFFFFF) >> 8).float() / 2**24

    return against(launched, reference)


@triton.jit
def places_by_expert(id_ptr, order_ptr, place_ptr, start_ptr, N, E, B: tl.constexpr):
    # Each program has an expert: it counts what goes before, then gives those that chose it their places, in order.
    e, i = tl.program_id(0), tl.arange(0, B)
    less = tl.zeros((B,), tl.int32)
    for i0 in range(0, N, B):
        less += (tl.load(id_ptr + i0 + i, mask=i0 + i < N, other=2147483647) < e).to(tl.int32)
    at = tl.sum(less, 0)
    tl.store(start_ptr + e, at)
    for i0 in range(0, N, B):
        hit = (tl.load(id_ptr + i0 + i, mask=i0 + i < N, other=-1) == e).to(tl.int32)
        place = at + tl.cumsum(hit, 0) - 1
        tl.store(order_ptr + place, i0 + i, mask=hit != 0)
        tl.store(place_ptr + i0 + i, place, mask=hit != 0)
        at += tl.sum(hit, 0)
    if e == E - 1:
        tl.store(start_ptr + E, at)


@case
def orchard_of_places_in_order_of_experts(n=20_003, experts=160):
    ids, order, place, start = ints(0, experts, n), zeros(n, dtype="int32"), zeros(n, dtype="int32"), zeros(experts + 1, dtype="int32")
    launched = run(places_by_expert, (experts,), (ids, order, place, start, n, experts), (order, place, start), B=1024, num_warps=4)

    def reference():
        by = ids.sort(stable=True).indices
        where = torch.empty_like(by).scatter_(0, by, arange(n, dtype="int64"))
        return by, where, F.pad(torch.bincount(ids.long(), minlength=experts).cumsum(0), (1, 0))

    return against(launched, reference)


@triton.jit
def small_systems_cleared(a_ptr, b_ptr, x_ptr, det_ptr, BATCH, S: tl.constexpr, BB: tl.constexpr):
    # Systems of eight with a positive diagonal are solved by clearing column after column; the logarithms of pivots are summed.
    n, i, j = tl.program_id(0) * BB + tl.arange(0, BB), tl.arange(0, S), tl.arange(0, S)
    at = n[:, None, None] * (S * S) + i[None, :, None] * S + j[None, None, :]
    unit = (i[:, None] == j[None, :]).to(tl.float32)[None, :, :]
    a = tl.load(a_ptr + at, mask=(n < BATCH)[:, None, None], other=0.0)
    a = tl.where((n < BATCH)[:, None, None], a, unit)
    b = tl.load(b_ptr + n[:, None] * S + i[None, :], mask=(n < BATCH)[:, None], other=0.0)
    det = tl.zeros((BB,), tl.float32)
    for k in tl.static_range(S):
        row = tl.sum(tl.where((i == k)[None, :, None], a, 0.0), 1)
        col = tl.sum(tl.where((j == k)[None, None, :], a, 0.0), 2)
        pivot = tl.sum(tl.where((j == k)[None, :], row, 0.0), 1)
        right = tl.sum(tl.where((i == k)[None, :], b, 0.0), 1) / pivot
        row = row / pivot[:, None]
        factor = tl.where((i == k)[None, :], pivot[:, None] - 1.0, col)
        a = a - factor[:, :, None] * row[:, None, :]
        b = b - factor * right[:, None]
        det += tl.log(pivot)
    tl.store(x_ptr + n[:, None] * S + i[None, :], b, mask=(n < BATCH)[:, None])
    tl.store(det_ptr + n, det, mask=n < BATCH)


@case
def orchard_of_systems_of_eight_cleared_by_columns(batch=60_001):
    s = 8
    m = f32(batch, s, s)
    a, b = m @ m.transpose(1, 2) / s + torch.eye(s, device="cuda"), f32(batch, s)
    x, det = zeros(batch, s, dtype="float32"), zeros(batch, dtype="float32")
    launched = run(small_systems_cleared, (cdiv(batch, 32),), (a, b, x, det, batch), (x, det), S=s, BB=32, num_warps=4)
    return against(launched, lambda: (torch.linalg.solve(a, b[..., None])[..., 0], torch.linalg.slogdet(a).logabsdet))


@triton.jit
def channels_mixed_then_hard(x_ptr, s_ptr, w_ptr, bias_ptr, y_ptr, C, O, P, BO: tl.constexpr, BP: tl.constexpr, BC: tl.constexpr):
    # A convolution of one place over channels that lie first, with a factor for each channel of an image, ends in a hard swish.
    p, o, image = tl.program_id(0) * BP + tl.arange(0, BP), tl.program_id(1) * BO + tl.arange(0, BO), tl.program_id(2)
    c = tl.arange(0, BC)
    acc = tl.zeros((BO, BP), tl.float32)
    for c0 in range(0, C, BC):
        cc = c0 + c
        w = tl.load(w_ptr + o[:, None] * C + cc[None, :], mask=(o < O)[:, None] & (cc < C)[None, :], other=0.0)
        s = tl.load(s_ptr + image * C + cc, mask=cc < C, other=0.0)
        x = tl.load(x_ptr + (image * C + cc)[:, None] * P + p[None, :], mask=(cc < C)[:, None] & (p < P)[None, :], other=0.0)
        acc = tl.dot((w * s[None, :]).to(w.dtype), x, acc)
    y = acc + tl.load(bias_ptr + o, mask=o < O, other=0.0)[:, None]
    y = y * tl.minimum(tl.maximum(y + 3.0, 0.0), 6.0) * (1.0 / 6.0)
    tl.store(y_ptr + (image * O + o)[:, None] * P + p[None, :], y.to(y_ptr.dtype.element_ty), mask=(o < O)[:, None] & (p < P)[None, :])


@case
def orchard_of_channels_mixed_under_their_factors(images=48, c=240, o=112, side=27):
    p = side * side
    x, s, w, bias, y = rand(images, c, p), uniform(images, c).half(), rand(o, c) / 8, f32(o), zeros(images, o, p)
    grid = cdiv(p, 64), cdiv(o, 64), images
    launched = run(channels_mixed_then_hard, grid, (x, s, w, bias, y, c, o, p), y, BO=64, BP=64, BC=32, num_warps=4, num_stages=3)

    def reference():
        return F.hardswish((w[None] * s[:, None, :]).float() @ x.float() + bias[:, None])

    return against(launched, reference)


@triton.jit
def counts_beyond_chance(x_ptr, mu_ptr, theta_ptr, loss_ptr, GENES, BLOCK: tl.constexpr):
    # The negative log likelihood of a cell's counts under negative binomials, a dispersion for each gene.
    cell, i = tl.program_id(0), tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for g0 in range(0, GENES, BLOCK):
        ok = g0 + i < GENES
        x = tl.load(x_ptr + cell * GENES + g0 + i, mask=ok, other=0).to(tl.float32)
        mu = tl.load(mu_ptr + cell * GENES + g0 + i, mask=ok, other=1.0)
        theta = tl.load(theta_ptr + g0 + i, mask=ok, other=1.0)
        both = libdevice.log(theta + mu + 1e-8)
        chance = theta * (libdevice.log(theta + 1e-8) - both) + x * (libdevice.log(mu + 1e-8) - both)
        chance += libdevice.lgamma(x + theta) - libdevice.lgamma(theta) - libdevice.lgamma(x + 1.0)
        total -= tl.where(ok, chance, 0.0)
    tl.store(loss_ptr + cell, tl.sum(total, 0))


@case
def orchard_of_counts_of_genes_beyond_chance(cells=3000, genes=2001):
    mu, theta = uniform(cells, genes) * 10 + 0.1, uniform(genes) * 5 + 0.2
    x, loss = (mu * uniform(cells, genes) * 2).int(), zeros(cells, dtype="float32")
    launched = run(counts_beyond_chance, (cells,), (x, mu, theta, loss, genes), loss, BLOCK=512, num_warps=4)

    def reference():
        n, m, t = x.double(), mu.double(), theta.double()[None, :]
        both = torch.log(t + m + 1e-8)
        chance = t * (torch.log(t + 1e-8) - both) + n * (torch.log(m + 1e-8) - both)
        return -(chance + torch.lgamma(n + t) - torch.lgamma(t) - torch.lgamma(n + 1)).sum(1)

    return against(launched, reference)


@triton.jit
def states_that_fade_by_head(q_ptr, k_ptr, v_ptr, o_ptr, s_ptr, scale, T, H, D: tl.constexpr, DV: tl.constexpr, BV: tl.constexpr, C: tl.constexpr):
    # A state fades with a rate of its head; chunk after chunk asks what is inside, then the state, and adds to it.
    bh, c_v = tl.program_id(0), tl.program_id(1) * BV + tl.arange(0, BV)
    i, d = tl.arange(0, C), tl.arange(0, D)
    rate = tl.log2(1.0 - tl.exp2(-5.0 - (bh % H).to(tl.float32)))
    away = i[:, None] - i[None, :]
    inside = tl.where(away >= 0, tl.exp2(rate * away.to(tl.float32)), 0.0)
    state = tl.zeros((D, BV), tl.float32)
    for t0 in tl.range(0, T, C, num_stages=2):
        t = t0 + i
        ok = (t < T)[:, None]
        q = tl.load(q_ptr + (bh * T + t)[:, None] * D + d[None, :], mask=ok, other=0.0)
        k = tl.load(k_ptr + (bh * T + t)[:, None] * D + d[None, :], mask=ok, other=0.0)
        v = tl.load(v_ptr + (bh * T + t)[:, None] * DV + c_v[None, :], mask=ok, other=0.0)
        a = tl.dot(q, tl.trans(k)) * inside
        o = tl.dot(a.to(v.dtype), v)
        o += tl.dot(q, state.to(q.dtype)) * tl.exp2(rate * (i + 1).to(tl.float32))[:, None]
        tl.store(o_ptr + (bh * T + t)[:, None] * DV + c_v[None, :], (o * scale).to(o_ptr.dtype.element_ty), mask=ok)
        length = tl.minimum(C, T - t0)
        left = tl.exp2(rate * tl.maximum(length - 1 - i, 0).to(tl.float32))
        state = state * tl.exp2(rate * length.to(tl.float32))
        state += tl.dot(tl.trans(k), (v * left[:, None]).to(v.dtype))
    tl.store(s_ptr + (bh * D + d)[:, None] * DV + c_v[None, :], state)


@case
def orchard_of_states_that_fade_by_head(b=6, h=8, t=1000):
    d, dv = 64, 128
    q, k, v = rand(b * h, t, d), rand(b * h, t, d) / 8, rand(b * h, t, dv)
    o, s = zeros(b * h, t, dv), zeros(b * h, d, dv, dtype="float32")
    launched = run(states_that_fade_by_head, (b * h, dv // 32), (q, k, v, o, s, d**-0.5, t, h), (o, s), D=d, DV=dv, BV=32, C=64, num_warps=4)

    def reference():
        gamma = 1 - torch.exp2(-5.0 - arange(h).float()).repeat(b)[:, None, None]
        away = arange(t)[:, None] - arange(t)[None, :]
        decay = torch.where(away >= 0, gamma ** away.clamp(min=0), 0.0)
        y = (q.float() @ k.float().transpose(1, 2) * decay) @ v.float() * d**-0.5
        return y, (k.float() * gamma ** (t - 1 - arange(t))[None, :, None]).transpose(1, 2) @ v.float()

    return against(launched, reference)


@triton.jit
def latents_asked_in_parts(
    q_ptr, c_ptr, table_ptr, len_ptr, part_ptr, lse_ptr, scale, TABLE, H: tl.constexpr, SPLITS: tl.constexpr, P: tl.constexpr, BN: tl.constexpr
):  # fmt: skip
    # All heads share one latent of 512 and 64 turned values a token; it is key and, turned over, value. A program has a part of the tokens.
    b, part = tl.program_id(0), tl.program_id(1)
    h, n, d, r = tl.arange(0, H), tl.arange(0, BN), tl.arange(0, 512), tl.arange(0, 64)
    q = tl.load(q_ptr + (b * H + h)[:, None] * 576 + d[None, :])
    q_turned = tl.load(q_ptr + (b * H + h)[:, None] * 576 + 512 + r[None, :])
    m, l = tl.full((H,), -1e30, tl.float32), tl.zeros((H,), tl.float32)
    acc = tl.zeros((H, 512), tl.float32)
    length = tl.load(len_ptr + b)
    size = tl.cdiv(tl.cdiv(length, SPLITS), BN) * BN
    for n0 in range(part * size, tl.minimum(part * size + size, length), BN):
        j = n0 + n
        ok = j < length
        slot = tl.load(table_ptr + b * TABLE + j // P, mask=ok, other=0) * P + j % P
        c = tl.load(c_ptr + slot[:, None] * 576 + d[None, :], mask=ok[:, None], other=0.0)
        turned = tl.load(c_ptr + slot[None, :] * 576 + 512 + r[:, None], mask=ok[None, :], other=0.0)
        s = tl.dot(q, tl.trans(c))
        s = tl.dot(q_turned, turned, s) * scale
        s = tl.where(ok[None, :], s, -1e30)
        top = tl.maximum(m, tl.max(s, 1))
        p = tl.exp2(s - top[:, None])
        keep = tl.exp2(m - top)
        l = l * keep + tl.sum(p, 1)
        acc = tl.dot(p.to(c.dtype), c, acc * keep[:, None])
        m = top
    row = (b * SPLITS + part) * H + h
    tl.store(part_ptr + row[:, None] * 512 + d[None, :], acc / tl.where(l > 0.0, l, 1.0)[:, None])
    tl.store(lse_ptr + row, tl.where(l > 0.0, m + tl.log2(tl.maximum(l, 1e-30)), -1e30))


@triton.jit
def latents_of_parts_joined(part_ptr, lse_ptr, o_ptr, H: tl.constexpr, SPLITS: tl.constexpr):
    b, h = tl.program_id(0), tl.program_id(1)
    s, d = tl.arange(0, SPLITS), tl.arange(0, 512)
    row = (b * SPLITS + s) * H + h
    lse = tl.load(lse_ptr + row)
    w = tl.exp2(lse - tl.max(lse, 0))
    o = tl.sum(w[:, None] * tl.load(part_ptr + row[:, None] * 512 + d[None, :]), 0) / tl.sum(w, 0)
    tl.store(o_ptr + (b * H + h) * 512 + d, o.to(o_ptr.dtype.element_ty))


@case
def orchard_of_latents_asked_by_all_heads_in_parts(b=48, most=2500):
    h, splits, p = 16, 4, 64
    width = cdiv(most, p)
    q, c = rand(b, h, 576, dtype="bfloat16"), rand(b * width * p, 576, dtype="bfloat16")
    table, lengths = torch.randperm(b * width, device="cuda").reshape(b, width).int(), ints(1, most + 1, b)
    part, lse, o = zeros(b, splits, h, 512, dtype="float32"), zeros(b, splits, h, dtype="float32"), zeros(b, h, 512, dtype="bfloat16")
    scale = 192**-0.5

    def launch(q, c, table, lengths, part, lse, o):
        latents_asked_in_parts[(b, splits)](
            q, c, table, lengths, part, lse, scale * 1.44269504, width, H=h, SPLITS=splits, P=p, BN=32, num_warps=4, num_stages=2
        )
        latents_of_parts_joined[(b, h)](part, lse, o, H=h, SPLITS=splits, num_warps=4)
        return o

    def reference():
        outs = []
        for i, n in enumerate(lengths.tolist()):
            at = (table[i].long()[:, None] * p + arange(p)[None, :]).reshape(-1)[:n]
            s = q[i].float() @ c[at].float().t() * scale
            outs.append(s.softmax(1) @ c[at, :512].float())
        return torch.stack(outs)

    return against((launch, (q, c, table, lengths, part, lse, o)), reference)


@triton.jit
def bytes_about_their_middles(
    a_ptr, b_ptr, sa_ptr, za_ptr, sb_ptr, sum_ptr, bias_ptr, y_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):  # fmt: skip
    # Bytes times bytes in whole numbers; what rows have as their zero is taken off with the sums of columns.
    m, n, k = tl.program_id(1) * BM + tl.arange(0, BM), tl.program_id(0) * BN + tl.arange(0, BN), tl.arange(0, BK)
    a, b = a_ptr + m[:, None] * K + k[None, :], b_ptr + n[None, :] * K + k[:, None]
    acc = tl.zeros((BM, BN), tl.int32)
    for k0 in range(0, K, BK):
        x = tl.load(a, mask=(m < M)[:, None] & (k0 + k < K)[None, :], other=0)
        w = tl.load(b, mask=(n < N)[None, :] & (k0 + k < K)[:, None], other=0)
        acc = tl.dot(x, w, acc, out_dtype=tl.int32)
        a += BK
        b += BK
    zero = tl.load(za_ptr + m, mask=m < M, other=0)
    acc -= zero[:, None] * tl.load(sum_ptr + n, mask=n < N, other=0)[None, :]
    scale = tl.load(sa_ptr + m, mask=m < M, other=0.0)[:, None] * tl.load(sb_ptr + n, mask=n < N, other=0.0)[None, :]
    y = acc.to(tl.float32) * scale + tl.load(bias_ptr + n, mask=n < N, other=0.0)[None, :]
    tl.store(y_ptr + m[:, None] * N + n[None, :], y.to(y_ptr.dtype.element_ty), mask=(m < M)[:, None] & (n < N)[None, :])


@case
def orchard_of_bytes_about_the_middles_of_rows(m=1100, n=3000, k=1520):
    a, b = ints(-128, 128, m, k, dtype="int8"), ints(-127, 128, n, k, dtype="int8")
    sa, za, sb, bias = uniform(m) / 100 + 0.001, ints(-60, 60, m), uniform(n) / 100 + 0.001, f32(n)
    sums, y = b.int().sum(1, dtype=torch.int32), zeros(m, n, dtype="bfloat16")
    args = a, b, sa, za, sb, sums, bias, y, m, n, k
    launched = run(bytes_about_their_middles, (cdiv(n, 128), cdiv(m, 64)), args, y, BM=64, BN=128, BK=64, num_warps=4, num_stages=4)

    def reference():
        whole = (a.double() - za[:, None]) @ b.double().t()
        return whole * sa[:, None] * sb[None, :] + bias

    return against(launched, reference)


@triton.jit
def keys_gathered_by_exchange(x_ptr, key_ptr, count_ptr, N, MASK: tl.constexpr, B: tl.constexpr):
    # A set grows by compare and exchange: lanes walk on from where another key sits; each key counts how often it came. -1 is empty.
    i = tl.program_id(0) * B + tl.arange(0, B)
    live = i < N
    x = tl.load(x_ptr + i, mask=live, other=0)
    slot = ((x.to(tl.uint32) * 2654435769) >> 8).to(tl.int32) & MASK
    while tl.max(live.to(tl.int32), 0) > 0:
        wanted = tl.where(live, -1, -2)
        seen = tl.atomic_cas(key_ptr + slot, wanted, tl.where(live, x, -2), sem="relaxed")
        hit = live & ((seen == -1) | (seen == x))
        tl.atomic_add(count_ptr + slot, 1, mask=hit, sem="relaxed")
        live = live & (hit == 0)
        slot = (slot + 1) & MASK


@case
def orchard_of_keys_gathered_by_exchange(n=400_003, distinct=50_000, bits=17):
    size = 1 << bits
    x, keys, count = ints(0, distinct, n) * 7 + 3, zeros(size, dtype="int32"), zeros(size, dtype="int32")
    grid = (cdiv(n, 256),)

    def launch(x, keys, count):
        keys.fill_(-1)
        count.zero_()
        keys_gathered_by_exchange[grid](x, keys, count, n, MASK=size - 1, B=256, num_warps=4)
        return keys, count

    def view(outs):
        return ((outs[0].long() << 24) + outs[1]).sort().values

    def reference():
        some, often = x.unique(return_counts=True)
        empty = torch.full((size - len(some),), -(1 << 24), device=x.device, dtype=torch.int64)
        return torch.cat([empty, (some.long() << 24) + often])

    return against(viewed((launch, (x, keys, count)), view), reference)


@triton.jit
def steps_down_to_one(step_ptr, peak_ptr, first, N, B: tl.constexpr):
    # Halved when even, tripled and one more when odd, in 64 bits, until all lanes are at one: how many steps, and the highest.
    i = tl.program_id(0) * B + tl.arange(0, B)
    x = tl.where(i < N, first + i, 1).to(tl.int64)
    steps, peak = tl.zeros((B,), tl.int32), x
    while tl.max(x, 0) > 1:
        steps += (x > 1).to(tl.int32)
        x = tl.where(x > 1, tl.where((x & 1) == 0, x >> 1, 3 * x + 1), x)
        peak = tl.maximum(peak, x)
    tl.store(step_ptr + i, steps, mask=i < N)
    tl.store(peak_ptr + i, peak, mask=i < N)


@case
def orchard_of_steps_down_to_one_in_64_bits(n=150_003):
    steps, peak = zeros(n, dtype="int32"), zeros(n, dtype="int64")
    launched = run(steps_down_to_one, (cdiv(n, 128),), (steps, peak, 1, n), (steps, peak), B=128, num_warps=2)

    def reference():
        x = arange(n, dtype="int64") + 1
        count, top = torch.zeros_like(x), x
        while int(x.max()) > 1:
            count = count + (x > 1)
            x = torch.where(x > 1, torch.where(x % 2 == 0, x // 2, 3 * x + 1), x)
            top = torch.maximum(top, x)
        return count, top

    return against(launched, reference)
