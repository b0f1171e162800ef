"""Recipes of training and of serving: losses and steps with their own gradients, noise made again, sorts that sample, weights in strange orders."""

import torch
import torch.nn.functional as F
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

from .common import PROGRAMS, arange, case, cdiv, cleared, f8, f32, far, far8, full, ints, rand, run, uniform, viewed, zeros


def philox(seed, at):
    """The four words that ten rounds of Philox give at places `at`, as long integers."""
    low = 0xFFFFFFFF
    c0, c1, c2, c3 = at & low, torch.zeros_like(at), torch.zeros_like(at), torch.zeros_like(at)
    k0, k1 = seed & low, seed >> 32 & low

    def product(a, c):
        split = (c >> 16) * a, (c & 0xFFFF) * a
        upper = (split[0] + (split[1] >> 16)) >> 16
        return upper & low, (a * (c & 0xFFFF) + (((a * (c >> 16)) & 0xFFFF) << 16)) & low

    for _ in range(10):
        (ah, al), (bh, bl) = product(0xD2511F53, c0), product(0xCD9E8D57, c2)
        c0, c1, c2, c3 = bh ^ c1 ^ k0, bl, ah ^ c3 ^ k1, al
        k0, k1 = (k0 + 0x9E3779B9) & low, (k1 + 0xBB67AE85) & low
    return c0, c1, c2, c3


def drawn(seed, at):
    """What `tl.rand` gives."""
    x = philox(seed, at)[0]
    x = torch.where(x >= 1 << 31, (1 << 32) - 1 - x, x)
    return x.double() * 4.6566127342e-10


@triton.jit
def logits_to_gradients(LOGITS, TARGET, LOSS, ZLOSS, stride, V, z_weight, smooth, scale, IGNORED: tl.constexpr, BLOCK: tl.constexpr):
    # A row's statistics in a loop, then its gradient over it in another: smoothed targets, and a weight on the normalizer's square.
    row = tl.program_id(0).to(tl.int64)
    target = tl.load(TARGET + row)
    p = LOGITS + row * stride
    if target == IGNORED:
        at = 0
        while at < V:
            tl.store(p + at + tl.arange(0, BLOCK), tl.zeros((BLOCK,), LOGITS.dtype.element_ty), mask=at + tl.arange(0, BLOCK) < V)
            at += BLOCK
        tl.store(LOSS + row, 0.0)
        tl.store(ZLOSS + row, 0.0)
        return
    top, total, plain = -float("inf"), 0.0, 0.0
    at = 0
    while at < V:
        v = at + tl.arange(0, BLOCK)
        x = tl.load(p + v, mask=v < V, other=-float("inf")).to(tl.float32)
        new = tl.maximum(top, tl.max(x, 0))
        total = total * tl.exp(top - new) + tl.sum(tl.exp(x - new), 0)
        plain += tl.sum(tl.where(v < V, x, 0.0), 0)
        top = new
        at += BLOCK
    lse = top + tl.log(total)
    right = tl.load(p + target).to(tl.float32)
    tl.store(LOSS + row, (1 - smooth) * (lse - right) + smooth * (lse - plain / V))
    tl.store(ZLOSS + row, z_weight * lse * lse)
    tl.debug_barrier()
    slope = 1 + 2 * z_weight * lse
    for at in range(0, V, BLOCK):
        v = at + tl.arange(0, BLOCK)
        x = tl.load(p + v, mask=v < V, other=0.0).to(tl.float32)
        g = tl.exp(x - lse) * slope - smooth / V
        g = tl.where(v == target, g - (1 - smooth), g)
        tl.store(p + v, (g * scale).to(LOGITS.dtype.element_ty), mask=v < V)


@case
def logits_become_their_gradients_with_squared_normalizer():
    rows, v, stride = 1024, 50_257, 50_265
    start = rand(rows, stride, dtype="bfloat16")
    target = ints(0, v, rows, dtype="int64")
    target[::13] = -100
    logits, loss, z = start.clone(), zeros(rows, dtype="float32"), zeros(rows, dtype="float32")

    def launch(*_):
        logits.copy_(start)
        options = dict(IGNORED=-100, BLOCK=4096, num_warps=8)
        logits_to_gradients[(rows,)](logits, target, loss, z, stride, v, 1e-3, 0.1, 1000.0, **options)
        return logits[:, :v], loss, z

    def reference(*_):
        x = start[:, :v].float()
        lse, live = x.logsumexp(1), target >= 0
        t = target.clamp(min=0)
        g = (x - lse[:, None]).exp() * (1 + 2e-3 * lse)[:, None] - 0.1 / v
        g.scatter_add_(1, t[:, None], torch.full((rows, 1), -0.9, device=x.device))
        right = x.gather(1, t[:, None])[:, 0]
        each = 0.9 * (lse - right) + 0.1 * (lse - x.mean(1))
        return g * live[:, None] * 1000, each * live, 1e-3 * lse * lse * live

    launch.reference = reference
    return launch, (start, target)


@triton.jit
def cast_with_history(X, OUT, SCALE, HISTORY, N, MOST: tl.constexpr, BLOCK: tl.constexpr):
    # Values by the scale of before; the largest of now goes into a history, as bits that integers compare.
    scale, best = tl.load(SCALE), tl.zeros((BLOCK,), tl.float32)
    for start in tl.range(tl.program_id(0) * BLOCK, N, tl.num_programs(0) * BLOCK, num_stages=3):
        i = start + tl.arange(0, BLOCK)
        x = tl.load(X + i, mask=i < N, other=0.0, eviction_policy="evict_first").to(tl.float32)
        best = tl.maximum(best, tl.abs(x))
        tl.store(OUT + i, tl.clamp(x * scale, -MOST, MOST).to(OUT.dtype.element_ty), mask=i < N)
    tl.atomic_max(HISTORY, tl.max(best, 0).to(tl.int32, bitcast=True), sem="relaxed")


@triton.jit
def roll_histories(HISTORY, SCALES, T, most, LENGTH: tl.constexpr, TENSORS: tl.constexpr):
    # Scales of powers of two from the largest of each history; histories move by one, and their first places are cleared.
    t, h = tl.program_id(0) * TENSORS + tl.arange(0, TENSORS), tl.arange(0, LENGTH)
    at = HISTORY + t[:, None] * LENGTH + h[None, :]
    bits = tl.load(at, mask=(t < T)[:, None], other=0)
    largest = tl.max(bits, 1).to(tl.float32, bitcast=True)
    exponent = tl.floor(tl.log2(most / tl.maximum(largest, 1e-12)))
    power = ((exponent.to(tl.int32) + 127) << 23).to(tl.float32, bitcast=True)
    tl.store(SCALES + t, tl.where(largest > 0, power, 1.0), mask=t < T)
    moved = tl.gather(bits, tl.broadcast_to(tl.maximum(h - 1, 0)[None, :], (TENSORS, LENGTH)), 1)
    tl.store(at, tl.where((h == 0)[None, :], 0, moved), mask=(t < T)[:, None])


@case
def casts_to_fp8_by_histories_of_largest():
    n, tensors, length = 24_000_001, 3001, 16
    x, out, scale = rand(n, dtype="bfloat16"), zeros(n, dtype="float32").to(torch.float8_e5m2), full(64.0, 1)
    first = f32(tensors, length).abs().view(torch.int32)
    history, scales = first.clone(), zeros(tensors, dtype="float32")

    def launch(*_):
        history.copy_(first)
        cast_with_history[(2 * PROGRAMS,)](x, out, scale, history, n, MOST=57344.0, BLOCK=4096, num_warps=8)
        now = history[0, 0].clone()
        roll_histories[(cdiv(tensors, 16),)](history, scales, tensors, 448.0, LENGTH=length, TENSORS=16, num_warps=1)
        return far8(out), now.view(1).view(torch.float32), scales, history.view(torch.float32)

    def reference(*_):
        bits = first.clone()
        bits[0, 0] = torch.maximum(bits[0, 0], x.float().abs().max().view(torch.int32))
        largest = bits.view(torch.float32).amax(1)
        moved = torch.cat([torch.zeros_like(bits[:, :1]), bits[:, :-1]], 1).view(torch.float32)
        codes = (x.float() * 64).clamp(-57344, 57344).to(torch.float8_e5m2)
        return far8(codes), bits[0, 0].view(1).view(torch.float32), torch.exp2(torch.floor(torch.log2(448 / largest))), moved

    launch.reference = reference
    return launch, (x,)


@triton.jit
def heads_backward(DQ, Q, WEIGHT, COS, SIN, RSTD, DX, DW, rows, H: tl.constexpr, D: tl.constexpr, ROWS: tl.constexpr):
    # Back through a rotation and a norm of each head; the norm's weights have their gradients by sums of tiles, then by atomics.
    h, half = tl.arange(0, H), tl.arange(0, D // 2)
    w0, w1 = tl.load(WEIGHT + half)[None, :], tl.load(WEIGHT + D // 2 + half)[None, :]
    dw0, dw1 = tl.zeros((D // 2,), tl.float32), tl.zeros((D // 2,), tl.float32)
    first = tl.program_id(0) * ROWS
    for row in range(first, min(first + ROWS, rows)):
        cos, sin = tl.load(COS + row * (D // 2) + half)[None, :], tl.load(SIN + row * (D // 2) + half)[None, :]
        at = (row * H + h)[:, None] * D + half[None, :]
        g0, g1 = tl.load(DQ + at).to(tl.float32), tl.load(DQ + at + D // 2).to(tl.float32)
        x0, x1 = tl.load(Q + at).to(tl.float32), tl.load(Q + at + D // 2).to(tl.float32)
        r = tl.load(RSTD + row * H + h)[:, None]
        u0, u1 = g0 * cos + g1 * sin, g1 * cos - g0 * sin
        n0, n1 = x0 * r, x1 * r
        dw0 += tl.sum(u0 * n0, 0)
        dw1 += tl.sum(u1 * n1, 0)
        u0, u1 = u0 * w0, u1 * w1
        mean = tl.sum(u0 * n0 + u1 * n1, 1)[:, None] / D
        tl.store(DX + at, ((u0 - n0 * mean) * r).to(DX.dtype.element_ty))
        tl.store(DX + at + D // 2, ((u1 - n1 * mean) * r).to(DX.dtype.element_ty))
    tl.atomic_add(DW + half, dw0, sem="relaxed")
    tl.atomic_add(DW + D // 2 + half, dw1, sem="relaxed")


@case
def norm_and_rotation_of_heads_backward():
    rows, heads, d = 4001, 16, 128
    dq, q, weight = rand(rows, heads, d, dtype="bfloat16"), rand(rows, heads, d, dtype="bfloat16"), f32(d) + 1
    angle = uniform(rows, d // 2) * 6
    rstd = torch.rsqrt(q.float().square().mean(-1) + 1e-6)
    dx, dw = zeros(rows, heads, d, dtype="bfloat16"), zeros(d, dtype="float32")
    args = dq, q, weight, angle.cos(), angle.sin(), rstd, dx, dw, rows
    launch, args = cleared(run(heads_backward, (cdiv(rows, 8),), args, (dx, dw), H=heads, D=d, ROWS=8, num_warps=4), dw)

    def reference(*_):
        with torch.enable_grad():
            x, w = q.float().requires_grad_(), weight.clone().requires_grad_()
            n = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * w
            a, b = n.chunk(2, -1)
            cos, sin = angle.cos()[:, None], angle.sin()[:, None]
            torch.cat([a * cos - b * sin, b * cos + a * sin], -1).backward(dq.float())
            return x.grad, w.grad

    launch.reference = reference
    return launch, args


@triton.jit
def drop_to_bits(X, OUT, BITS, N, seed, keep, BLOCK: tl.constexpr):
    # Four draws a place of noise; what is kept is told by bits, 32 a word, so that the way back draws nothing.
    q = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a, b, c, d = tl.rand4x(seed, q)
    draws = tl.interleave(tl.interleave(a, c), tl.interleave(b, d))
    kept = draws < keep
    i = tl.program_id(0) * BLOCK * 4 + tl.arange(0, BLOCK * 4)
    x = tl.load(X + i, mask=i < N, other=0.0).to(tl.float32)
    tl.store(OUT + i, tl.where(kept, x / keep, 0.0).to(OUT.dtype.element_ty), mask=i < N)
    words = tl.sum(tl.reshape(kept.to(tl.int32), (BLOCK // 8, 32)) << tl.arange(0, 32)[None, :], 1)
    w = tl.program_id(0) * (BLOCK // 8) + tl.arange(0, BLOCK // 8)
    tl.store(BITS + w, words, mask=w * 32 < N)


@case
def dropout_with_its_bits_in_words():
    n, keep, seed = 16_000_000, 0.875, 20_240_607
    x, out, bits = rand(n, dtype="bfloat16"), zeros(n, dtype="bfloat16"), zeros(n // 32, dtype="int32")
    launch, args = run(drop_to_bits, (cdiv(n, 4096),), (x, out, bits, n, seed, keep), (out, bits), BLOCK=1024, num_warps=4)

    def seen(*args):
        out, bits = launch(*args)
        return out, (bits >> 16) & 0xFFFF, bits & 0xFFFF

    def reference(*_):
        parts = []
        for at in arange(n // 4, "int64").split(1 << 20):
            words = torch.stack(philox(seed, at), 1)
            words = torch.where(words >= 1 << 31, (1 << 32) - 1 - words, words)
            parts.append((words.double() * 4.6566127342e-10 < keep).view(-1))
        kept = torch.cat(parts)
        words = (kept.view(-1, 32).long() << arange(32, "int64")).sum(1)
        return torch.where(kept, x.float() / keep, 0.0), words >> 16, words & 0xFFFF

    seen.reference = reference
    return seen, args


@triton.jit
def sorted_hinge(LOGITS, LABELS, LOSS, GRAD, P, TILE: tl.constexpr):
    # Errors sorted with their labels in one long word; the steps of the index of both sets along the order weigh them.
    row, i = tl.program_id(0), tl.arange(0, TILE)
    x, label = tl.load(LOGITS + row * P + i, mask=i < P, other=0.0), tl.load(LABELS + row * P + i, mask=i < P, other=0).to(tl.int32)
    error = tl.where(i < P, 1 - x * (2 * label - 1).to(tl.float32), -1e30)
    bits = error.to(tl.int32, bitcast=True)
    key = bits ^ ((bits >> 31) & 0x7FFFFFFF)
    packed = (key.to(tl.int64) << 32) | (i << 1 | label).to(tl.int64)
    packed = tl.sort(packed, descending=True)
    key = (packed >> 32).to(tl.int32)
    error = (key ^ ((key >> 31) & 0x7FFFFFFF)).to(tl.float32, bitcast=True)
    label, at = (packed & 1).to(tl.float32), ((packed >> 1) & (TILE - 1)).to(tl.int32)
    total = tl.sum(label, 0)
    seen = tl.cumsum(label, 0)
    other = (i + 1).to(tl.float32) - seen
    jaccard = 1 - (total - seen) / tl.maximum(total + other, 1e-6)
    seen_before = seen - label
    before = tl.where(i == 0, 0.0, 1 - (total - seen_before) / tl.maximum(total + i.to(tl.float32) - seen_before, 1e-6))
    weight = jaccard - before
    live = (error > 0) & (i < P)
    tl.store(LOSS + row, tl.sum(tl.where(live, error * weight, 0.0), 0))
    tl.store(GRAD + row * P + at, tl.where(live, (1 - 2 * label) * weight, 0.0), mask=at < P)


@case
def hinge_of_sorted_errors_of_masks():
    rows, p = 1024, 2000
    x, labels = f32(rows, p), (uniform(rows, p) < 0.3).to(torch.uint8)
    loss, grad = zeros(rows, dtype="float32"), zeros(rows, p, dtype="float32")
    launch, args = run(sorted_hinge, (rows,), (x, labels, loss, grad, p), (loss, grad), TILE=2048, num_warps=8)

    def reference(*_):
        sign = labels.float() * 2 - 1
        error, order = (1 - x * sign).sort(1, descending=True)
        g = labels.double().gather(1, order)
        total = g.sum(1, keepdim=True)
        jaccard = 1 - (total - g.cumsum(1)) / (total + (1 - g).cumsum(1))
        weight = torch.cat([jaccard[:, :1], jaccard[:, 1:] - jaccard[:, :-1]], 1)
        slope = torch.where(error > 0, (1 - 2 * g) * weight, 0.0)
        return (error.clamp(min=0) * weight).sum(1), torch.zeros_like(slope).scatter(1, order, slope)

    launch.reference = reference
    return launch, args


@triton.jit
def correlate_views(A, B, MEANS, RSTDS, LOSS, N, D, off, BI: tl.constexpr, BJ: tl.constexpr, BK: tl.constexpr):
    # Columns of two views, standardized after the product; a tile of correlations leaves one number.
    i, j = tl.program_id(0) * BI + tl.arange(0, BI), tl.program_id(1) * BJ + tl.arange(0, BJ)
    pa = tl.make_block_ptr(A, (D, N), (1, D), (tl.program_id(0) * BI, 0), (BI, BK), (0, 1))
    pb = tl.make_block_ptr(B, (N, D), (D, 1), (0, tl.program_id(1) * BJ), (BK, BJ), (1, 0))
    acc = tl.zeros((BI, BJ), tl.float32)
    for _ in range(0, N, BK):
        acc = tl.dot(tl.load(pa, boundary_check=(0, 1), padding_option="zero"), tl.load(pb, boundary_check=(0, 1), padding_option="zero"), acc)
        pa, pb = tl.advance(pa, (0, BK)), tl.advance(pb, (BK, 0))
    ma, mb = tl.load(MEANS + i, mask=i < D, other=0.0), tl.load(MEANS + D + j, mask=j < D, other=0.0)
    ra, rb = tl.load(RSTDS + i, mask=i < D, other=0.0), tl.load(RSTDS + D + j, mask=j < D, other=0.0)
    c = (acc / N - ma[:, None] * mb[None, :]) * ra[:, None] * rb[None, :]
    same = i[:, None] == j[None, :]
    each = tl.where(same, (c - 1) * (c - 1), off * c * c)
    each = tl.where((i < D)[:, None] & (j < D)[None, :], each, 0.0)
    tl.store(LOSS + tl.program_id(0) * tl.num_programs(1) + tl.program_id(1), tl.sum(each))


@case
def correlations_of_two_views_to_a_loss():
    n, d = 2000, 2056
    a = rand(n, d)
    b = (a * 0.5 + rand(n, d) + 0.2).to(torch.float16)
    both = torch.stack([a.float(), b.float()])
    means, rstds = both.mean(1), both.var(1, unbiased=False).rsqrt()
    grid = cdiv(d, 128), cdiv(d, 128)
    loss = zeros(*grid, dtype="float32")
    launch, args = run(correlate_views, grid, (a, b, means, rstds, loss, n, d, 0.005), loss, BI=128, BJ=128, BK=32, num_warps=8, num_stages=3)

    def reference(*_):
        x = (both - means[:, None]) * rstds[:, None]
        c = x[0].t() @ x[1] / n
        each = 0.005 * c * c
        each.diagonal().copy_((c.diagonal() - 1) ** 2)
        side = grid[0] * 128 - d
        return F.pad(each, (0, side, 0, side)).view(grid[0], 128, grid[1], 128).sum((1, 3))

    launch.reference = reference
    return launch, args


@triton.jit
def step_of_four_bits(P, G, M, MSCALE, LEVELS, V, lr, decay, N, GROUP: tl.constexpr, ROWS: tl.constexpr):
    # A first moment of four bits by levels of a table, a second one of a row: nearest levels by comparisons with all of them.
    r, c, l = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, GROUP // 2), tl.arange(0, 16)
    live = (r < N)[:, None]
    packed = tl.load(M + r[:, None] * (GROUP // 2) + c[None, :], mask=live, other=0).to(tl.int32)
    scale = tl.load(MSCALE + r, mask=r < N, other=0.0)
    levels = tl.load(LEVELS + l)
    codes = tl.reshape(tl.join(packed & 15, packed >> 4), (ROWS, GROUP))
    at = r[:, None] * GROUP + tl.arange(0, GROUP)[None, :]
    g = tl.load(G + at, mask=live, other=0.0).to(tl.float32)
    m = tl.load(LEVELS + codes) * scale[:, None] * 0.9 + 0.1 * g
    v = tl.load(V + r, mask=r < N, other=0.0) * 0.99 + 0.01 * tl.sum(g * g, 1) / GROUP
    tl.store(V + r, v, mask=r < N)
    p = tl.load(P + at, mask=live, other=0.0).to(tl.float32)
    p -= lr * (m / (tl.sqrt(v) + 1e-8)[:, None] + decay * p)
    tl.store(P + at, p.to(P.dtype.element_ty), mask=live)
    scale = tl.max(tl.abs(m), 1)
    tl.store(MSCALE + r, scale, mask=r < N)
    share = m / tl.maximum(scale, 1e-20)[:, None]
    code = tl.argmin(tl.abs(share[:, :, None] - levels[None, None, :]), 2)
    low, high = tl.split(tl.reshape(code, (ROWS, GROUP // 2, 2)))
    tl.store(M + r[:, None] * (GROUP // 2) + c[None, :], (low | high << 4).to(tl.uint8), mask=live)


@case
def step_with_a_moment_of_four_bits():
    n, group = 60_001, 128
    levels = torch.sort(torch.cat([arange(15).float() / 7 - 1, full(0.05, 1)]))[0]
    p0, g, m0 = rand(n, group, dtype="bfloat16"), rand(n, group, dtype="bfloat16"), ints(0, 256, n, group // 2, dtype="uint8")
    s0, v0 = uniform(n) + 0.1, uniform(n) + 0.5
    p, m, s, v = p0.clone(), m0.clone(), s0.clone(), v0.clone()

    def see(p, s, v, m):
        codes = torch.stack([m & 15, m >> 4], -1).view(n, group).long()
        return p, s, v, levels[codes] + 2

    def launch(*_):
        for a, b in ((p, p0), (m, m0), (s, s0), (v, v0)):
            a.copy_(b)
        step_of_four_bits[(cdiv(n, 4),)](p, g, m, s, levels, v, 0.01, 0.1, n, GROUP=group, ROWS=4, num_warps=4)
        return see(p, s, v, m)

    def reference(*_):
        codes = torch.stack([m0 & 15, m0 >> 4], -1).view(n, group).long()
        x = g.float()
        new = levels[codes] * s0[:, None] * 0.9 + 0.1 * x
        second = v0 * 0.99 + 0.01 * x.square().mean(1)
        w = p0.float()
        w = w - 0.01 * (new / (second.sqrt() + 1e-8)[:, None] + 0.1 * w)
        scale = new.abs().amax(1)
        share = new / scale[:, None]
        middle = (levels[1:] + levels[:-1]) / 2
        return w, scale, second, levels[torch.searchsorted(middle, share)] + 2

    launch.reference = reference
    return launch, (p0, g, m0)


@triton.jit
def norm_over_planes(X, W, B, OUT, C, S, eps, TILE_C: tl.constexpr, BLOCK: tl.constexpr):
    # Channels first, their number no power of two: a program has all channels of some pixels.
    c, s = tl.arange(0, TILE_C), tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    at = tl.program_id(1).to(tl.int64) * C * S + c[:, None] * S + s[None, :]
    ok = (c < C)[:, None] & (s < S)[None, :]
    x = tl.load(X + at, mask=ok, other=0.0).to(tl.float32)
    mean = tl.sum(x, 0) / C
    d = tl.where(ok, x - mean[None, :], 0.0)
    r = tl.rsqrt(tl.sum(d * d, 0) / C + eps)
    w, b = tl.load(W + c, mask=c < C, other=0.0), tl.load(B + c, mask=c < C, other=0.0)
    tl.store(OUT + at, (d * r[None, :] * w[:, None] + b[:, None]).to(OUT.dtype.element_ty), mask=ok)


@case
def norm_of_channels_first_of_192():
    n, c, s = 16, 192, 57 * 55
    x, w, b, out = rand(n, c, s), f32(c), f32(c), zeros(n, c, s)
    launch, args = run(norm_over_planes, (cdiv(s, 32), n), (x, w, b, out, c, s, 1e-6), out, TILE_C=256, BLOCK=32, num_warps=8)
    launch.reference = lambda *_: F.layer_norm(x.float().transpose(1, 2), (c,), w, b, 1e-6).transpose(1, 2)
    return launch, args


@triton.jit
def dropped_gelu_product(X, W, OUT, M, N, K, seed, keep, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # What went into a layer is made again from what was kept: an activation and its dropout in front of each dot.
    m, n, k = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for k0 in range(0, K, BK):
        at = m[:, None] * K + (k0 + k)[None, :]
        x = tl.load(X + at, mask=(m < M)[:, None], other=0.0).to(tl.float32)
        y = 0.5 * x * (1 + tl.erf(x * 0.70710678))
        y = tl.where(tl.rand(seed, at) < keep, y / keep, 0.0)
        w = tl.load(W + (k0 + k)[:, None] * N + n[None, :], mask=(n < N)[None, :], other=0.0)
        acc = tl.dot(y.to(w.dtype), w, acc)
    tl.store(OUT + m[:, None] * N + n[None, :], acc.to(OUT.dtype.element_ty), mask=(m < M)[:, None] & (n < N)[None, :])


@case
def gemm_of_gelu_and_dropout_made_again():
    m, n, k, seed = 1000, 520, 2048, 99
    x, w, out = rand(m, k, dtype="bfloat16"), rand(k, n, dtype="bfloat16"), zeros(m, n, dtype="bfloat16")
    args = x, w, out, m, n, k, seed, 0.9
    launch, args = run(dropped_gelu_product, (cdiv(m, 64), cdiv(n, 128)), args, out, BM=64, BN=128, BK=32, num_warps=4, num_stages=3)

    def reference(*_):
        kept = drawn(seed, arange(m * k, "int64")).view(m, k) < torch.tensor(0.9)
        y = torch.where(kept, F.gelu(x.float()) / 0.9, 0.0).to(torch.bfloat16)
        return y.float() @ w.float()

    launch.reference = reference
    return launch, args


@triton.jit
def router_losses(LOGITS, PROBS, COUNTS, ZSUM, T, E: tl.constexpr, K: tl.constexpr, ROWS: tl.constexpr):
    # Sums of probabilities of experts, counts of the K best by a histogram, and squares of normalizers: persistent, three atomics at its end.
    e = tl.arange(0, E)
    sums, counts, squares = tl.zeros((E,), tl.float32), tl.zeros((E,), tl.int32), tl.zeros((ROWS,), tl.float32)
    for t0 in range(tl.program_id(0) * ROWS, T, tl.num_programs(0) * ROWS):
        t = t0 + tl.arange(0, ROWS)
        x = tl.load(LOGITS + t[:, None] * E + e[None, :], mask=(t < T)[:, None], other=0.0).to(tl.float32)
        top = tl.max(x, 1)
        p = tl.exp(x - top[:, None])
        total = tl.sum(p, 1)
        lse = top + tl.log(total)
        live = (t < T).to(tl.float32)
        sums += tl.sum(p * (live / total)[:, None], 0)
        squares += lse * lse * live
        bits = x.to(tl.int32, bitcast=True)
        key = ((bits ^ ((bits >> 31) & 0x7FFFFFFF)).to(tl.int64) << 8) | (E - 1 - e)[None, :].to(tl.int64)
        best = tl.topk(key, K)
        chosen = (E - 1 - (best & 255)).to(tl.int32)
        ok = tl.broadcast_to((t < T)[:, None], (ROWS, K))
        counts += tl.histogram(tl.reshape(chosen, (ROWS * K,)), E, mask=tl.reshape(ok, (ROWS * K,)))
    tl.atomic_add(PROBS + e, sums, sem="relaxed")
    tl.atomic_add(COUNTS + e, counts, sem="relaxed")
    tl.atomic_add(ZSUM, tl.sum(squares, 0), sem="relaxed")


@case
def losses_of_a_router_by_topk_and_histogram():
    t, e, k = 30_001, 128, 8
    logits, probs, counts, z = rand(t, e, dtype="bfloat16"), zeros(e, dtype="float32"), zeros(e, dtype="int32"), zeros(1, dtype="float32")
    launched = run(router_losses, (2 * PROGRAMS,), (logits, probs, counts, z, t), (probs, counts, z), E=e, K=k, ROWS=16, num_warps=4)
    launch, args = cleared(launched, probs, counts, z)

    def reference(*_):
        x = logits.float()
        chosen = x.sort(dim=1, descending=True, stable=True)[1][:, :k]
        return x.softmax(1).sum(0), torch.bincount(chosen.reshape(-1), minlength=e), x.logsumexp(1).square().sum().view(1)

    launch.reference = reference
    return launch, args


@triton.jit
def dkdv_with_dropout(
    Q, K, V, DO, LSE, DELTA, DK, DV, T, seed, keep, scale, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr
):
    # Noise of the forward pass is drawn again from places of scores.
    n, m, d, bh = tl.program_id(0) * BN + tl.arange(0, BN), tl.arange(0, BM), tl.arange(0, D), tl.program_id(1)
    base = bh * T * D
    k = tl.load(K + base + n[:, None] * D + d[None, :], mask=(n < T)[:, None], other=0.0)
    v = tl.load(V + base + n[:, None] * D + d[None, :], mask=(n < T)[:, None], other=0.0)
    dk, dv = tl.zeros((BN, D), tl.float32), tl.zeros((BN, D), tl.float32)
    for m0 in tl.range(tl.program_id(0) * BN // BM * BM, T, BM, num_stages=2):
        r = m0 + m
        q = tl.load(Q + base + r[:, None] * D + d[None, :], mask=(r < T)[:, None], other=0.0)
        do = tl.load(DO + base + r[:, None] * D + d[None, :], mask=(r < T)[:, None], other=0.0)
        lse, delta = tl.load(LSE + bh * T + r, mask=r < T, other=float("inf")), tl.load(DELTA + bh * T + r, mask=r < T, other=0.0)
        p = tl.exp2(tl.dot(k, tl.trans(q)) * scale - lse[None, :])
        p = tl.where((r[None, :] >= n[:, None]) & (n < T)[:, None], p, 0.0)
        kept = tl.rand(seed, (bh * T + r)[None, :] * T + n[:, None]) < keep
        dv = tl.dot(tl.where(kept, p / keep, 0.0).to(do.dtype), do, dv)
        dp = tl.where(kept, tl.dot(v, tl.trans(do)) / keep, 0.0)
        dk = tl.dot((p * (dp - delta[None, :])).to(q.dtype), q, dk)
    tl.store(DK + base + n[:, None] * D + d[None, :], (dk * (scale * 0.6931472)).to(DK.dtype.element_ty), mask=(n < T)[:, None])
    tl.store(DV + base + n[:, None] * D + d[None, :], dv.to(DV.dtype.element_ty), mask=(n < T)[:, None])


@case
def attn_gradients_of_keys_through_drawn_dropout():
    bh, t, d, seed = 24, 1000, 64, 7
    q, k, v, do = (rand(bh, t, d, dtype="bfloat16") for _ in range(4))
    scale = d**-0.5 * 1.44269504
    causal = torch.ones(t, t, device="cuda", dtype=torch.bool).tril()
    s = (q.float() @ k.float().transpose(1, 2) * d**-0.5).masked_fill(~causal, -float("inf"))
    lse = s.logsumexp(2) * 1.44269504
    delta, dk, dv = f32(bh, t) * 0.1, zeros(bh, t, d, dtype="bfloat16"), zeros(bh, t, d, dtype="bfloat16")
    args = q, k, v, do, lse, delta, dk, dv, t, seed, 0.8, scale
    launch, args = run(dkdv_with_dropout, (cdiv(t, 64), bh), args, (dk, dv), D=d, BM=64, BN=64, num_warps=4, num_stages=2)

    def reference(*_):
        kept = drawn(seed, arange(bh * t * t, "int64")).view(bh, t, t) < torch.tensor(0.8)
        p = s.softmax(2)
        dropped = torch.where(kept, p / 0.8, 0.0)
        dp = torch.where(kept, do.float() @ v.float().transpose(1, 2) / 0.8, 0.0)
        ds = p * (dp - delta[..., None])
        return ds.transpose(1, 2) @ q.float() * d**-0.5, dropped.transpose(1, 2) @ do.float()

    launch.reference = reference
    return launch, args


@triton.jit
def two_halves_of_nibbles(words):
    # Four bits to halves through the mantissa of 1024: low nibbles of both halves of a word, two at a time.
    return tl.inline_asm_elementwise(
        """
        {
            .reg .b32 t<4>;
            shr.u32 t0, $4, 4;
            shr.u32 t1, $4, 8;
            shr.u32 t2, $4, 12;
            lop3.b32 $0, $4, 0x000f000f, 0x64006400, 0xea;
            lop3.b32 $1, t0, 0x000f000f, 0x64006400, 0xea;
            lop3.b32 $2, t1, 0x000f000f, 0x64006400, 0xea;
            lop3.b32 $3, t2, 0x000f000f, 0x64006400, 0xea;
        }
        """,
        "=r,=r,=r,=r,r", [words], dtype=(tl.uint32, tl.uint32, tl.uint32, tl.uint32), is_pure=True, pack=1,
    )  # fmt: skip


@triton.jit
def halves_of(word):
    low = (word & 0xFFFF).to(tl.uint16).to(tl.float16, bitcast=True) - 1032.0
    high = (word >> 16).to(tl.uint16).to(tl.float16, bitcast=True) - 1032.0
    return tl.join(low, high)


@triton.jit
def nibble_words_product(
    X, W, SCALES, OUT, M, N, K, GROUP: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    # Weights of four bits by inline instructions; a word has two sets of four of k, and columns keep k together.
    m, n = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    word, k = tl.arange(0, BK // 8), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for k0 in range(0, K, BK):
        x = tl.load(X + m[:, None] * K + (k0 + k)[None, :], mask=(m < M)[:, None], other=0.0)
        w = tl.load(W + n[:, None] * (K // 8) + (k0 // 8 + word)[None, :]).to(tl.uint32, bitcast=True)
        a, b, c, d = two_halves_of_nibbles(w)
        ab = tl.join(halves_of(a), halves_of(b))
        cd = tl.join(halves_of(c), halves_of(d))
        w = tl.reshape(tl.permute(tl.join(ab, cd), (0, 1, 4, 3, 2)), (BN, BK))
        scale = tl.load(SCALES + n * (K // GROUP) + k0 // GROUP)
        acc = tl.dot(x, tl.trans(w * scale[:, None]), acc)
    tl.store(OUT + m[:, None] * N + n[None, :], acc.to(tl.float16), mask=(m < M)[:, None])


@case
def gemm_of_nibbles_by_inline_instructions():
    m, n, k, group = 100, 4096, 4096, 128
    x, scales, out = rand(m, k), uniform(n, k // group).half() * 0.1, zeros(m, n)
    words = torch.randint(-(2**31), 2**31, (n, k // 8), device="cuda").to(torch.int32)
    args = x, words, scales, out, m, n, k
    options = dict(GROUP=group, BM=64, BN=64, BK=128, num_warps=4, num_stages=3)
    launch, args = run(nibble_words_product, (cdiv(m, 64), n // 64), args, out, **options)

    def reference(*_):
        # Of a word, nibbles 0 and 4 are neighbors, then 1 and 5, 2 and 6, 3 and 7.
        shift = torch.tensor([0, 16, 4, 20, 8, 24, 12, 28], device=x.device)
        w = ((words[..., None] >> shift) & 15).view(n, k).half() - 8
        w = (w.view(n, -1, group) * scales[..., None]).view(n, k)
        return x.float() @ w.float().t()

    launch.reference = reference
    return launch, args


@triton.jit
def typical_sample(LOGITS, DRAW, TOKEN, KEPT, V, mass, TILE: tl.constexpr):
    # Tokens whose surprise is nearest the mean one, until they have a share of the probability; one of them by a draw.
    row, i = tl.program_id(0), tl.arange(0, TILE)
    x = tl.load(LOGITS + row * V + i, mask=i < V, other=-float("inf")).to(tl.float32)
    top = tl.max(x, 0)
    e = tl.exp(x - top)
    log_p = x - top - tl.log(tl.sum(e, 0))
    p = e / tl.sum(e, 0)
    mean = -tl.sum(tl.where(i < V, p * log_p, 0.0), 0)
    far = tl.where(i < V, tl.abs(log_p + mean), float("inf"))
    packed = (far.to(tl.int32, bitcast=True).to(tl.int64) << 16) | i.to(tl.int64)
    packed = tl.sort(packed)
    which = (packed & 0xFFFF).to(tl.int32)
    p = tl.gather(p, which, 0)
    sums = tl.cumsum(p, 0)
    kept = sums - p < mass
    count = tl.sum(kept.to(tl.int32), 0)
    total = tl.max(tl.where(kept, sums, 0.0), 0)
    place = tl.sum((sums <= tl.load(DRAW + row) * total).to(tl.int32), 0)
    place = tl.minimum(place, count - 1)
    tl.store(TOKEN + row, tl.sum(tl.where(i == place, which, 0), 0))
    tl.store(KEPT + row, count)


@case
def sampling_of_typical_tokens_by_sort():
    rows, v = 512, 4000
    logits, draw = f32(rows, v) * 2, uniform(rows)
    token, kept = zeros(rows, dtype="int32"), zeros(rows, dtype="int32")
    launch, args = run(typical_sample, (rows,), (logits, draw, token, kept, v, 0.9), (token, kept), TILE=4096, num_warps=8)

    def seen(*args):  # A draw near a border may take the token beside: surprise of tokens taken on the whole is compared.
        token, kept = launch(*args)
        taken = torch.log_softmax(logits, 1).gather(1, token.long()[:, None])
        return taken.mean().view(1), kept

    def reference(*_):
        log_p = torch.log_softmax(logits.double(), 1)
        far = (log_p - (log_p.exp() * log_p).sum(1, keepdim=True)).abs()
        order = far.argsort(1)
        p = log_p.exp().gather(1, order)
        sums = p.cumsum(1)
        count = (sums - p < 0.9).sum(1)
        total = sums.gather(1, count[:, None] - 1)
        place = (sums <= draw[:, None] * total).sum(1).minimum(count - 1)
        return log_p.gather(1, order.gather(1, place[:, None])).mean().view(1), count

    seen.reference = reference
    return seen, args


@triton.jit
def smoothed_product(X, SMOOTH, W, WSCALE, OUT, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Rows are measured in a first loop, made eight-bit integers in the second one, and multiplied as such.
    m, n, k = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN), tl.arange(0, BK)
    most = tl.zeros((BM,), tl.float32)
    for k0 in range(0, K, BK):
        x = tl.load(X + m[:, None] * K + (k0 + k)[None, :], mask=(m < M)[:, None] & (k0 + k < K)[None, :], other=0.0).to(tl.float32)
        most = tl.maximum(most, tl.max(tl.abs(x * tl.load(SMOOTH + k0 + k, mask=k0 + k < K, other=0.0)[None, :]), 1))
    scale = 127.0 / tl.maximum(most, 1e-6)
    acc = tl.zeros((BM, BN), tl.int32)
    for k0 in range(0, K, BK):
        live = k0 + k < K
        x = tl.load(X + m[:, None] * K + (k0 + k)[None, :], mask=(m < M)[:, None] & live[None, :], other=0.0).to(tl.float32)
        x = x * tl.load(SMOOTH + k0 + k, mask=live, other=0.0)[None, :] * scale[:, None]
        x = (x + tl.where(x >= 0, 0.5, -0.5)).to(tl.int8)
        w = tl.load(W + n[None, :] * K + (k0 + k)[:, None], mask=(n < N)[None, :] & live[:, None], other=0)
        acc = tl.dot(x, w, acc, out_dtype=tl.int32)
    y = acc.to(tl.float32) / scale[:, None] * tl.load(WSCALE + n, mask=n < N, other=0.0)[None, :]
    tl.store(OUT + m[:, None] * N + n[None, :], y.to(OUT.dtype.element_ty), mask=(m < M)[:, None] & (n < N)[None, :])


@case
def gemm_of_rows_smoothed_to_eight_bits():
    m, n, k = 700, 1000, 1360
    x, smooth, w = rand(m, k, dtype="bfloat16"), uniform(k) + 0.5, ints(-127, 128, n, k, dtype="int8")
    wscale, out = uniform(n) * 0.01 + 0.01, zeros(m, n, dtype="bfloat16")
    args = x, smooth, w, wscale, out, m, n, k
    launch, args = run(smoothed_product, (cdiv(m, 64), cdiv(n, 64)), args, out, BM=64, BN=64, BK=64, num_warps=4, num_stages=3)

    def reference(*_):
        v = x.float() * smooth
        scale = 127 / v.abs().amax(1, keepdim=True)
        q = v * scale
        q = (q + torch.where(q >= 0, 0.5, -0.5)).trunc()
        return (q.double() @ w.double().t()) / scale * wscale

    launch.reference = reference
    return launch, args


@triton.jit
def snapped_scores(Q, K, LSE, OUT, T, WINDOW, scale, D: tl.constexpr, BN: tl.constexpr, BM: tl.constexpr, POOL: tl.constexpr):
    # How much the last queries look at each key: columns' sums of probabilities, then the largest of POOL neighbors, by registers.
    inner: tl.constexpr = BN - POOL + 1
    head, i = tl.program_id(1), tl.arange(0, BN)
    n, m, d = tl.program_id(0) * inner - POOL // 2 + i, tl.arange(0, BM), tl.arange(0, D)
    k = tl.load(K + (head * T + n)[None, :] * D + d[:, None], mask=((n >= 0) & (n < T))[None, :], other=0.0)
    total = tl.zeros((BN,), tl.float32)
    for m0 in range(0, WINDOW, BM):
        q = tl.load(Q + (head * WINDOW + m0 + m)[:, None] * D + d[None, :])
        lse = tl.load(LSE + head * WINDOW + m0 + m)
        p = tl.exp2(tl.dot(q, k) * scale - lse[:, None])
        total += tl.sum(tl.where(n[None, :] <= (T - WINDOW + m0 + m)[:, None], p, 0.0), 0)
    total = tl.where((n >= 0) & (n < T), total, 0.0)
    best = total
    for shift in tl.static_range(1, POOL // 2 + 1):
        best = tl.maximum(best, tl.gather(total, tl.maximum(i - shift, 0), 0))
        best = tl.maximum(best, tl.gather(total, tl.minimum(i + shift, BN - 1), 0))
    keep = (i >= POOL // 2) & (i < BN - POOL // 2) & (n < T)
    tl.store(OUT + head * T + n, best, mask=keep)


@case
def attn_columns_of_last_queries_pooled():
    heads, t, window, d, pool = 32, 8011, 64, 128, 7
    q, k, out = rand(heads, window, d), rand(heads, t, d), zeros(heads, t, dtype="float32")
    s = q.float() @ k.float().transpose(1, 2) * d**-0.5
    hidden = arange(t)[None, :] > (arange(window) + t - window)[:, None]
    lse = s.masked_fill(hidden, -float("inf")).logsumexp(2) * 1.44269504
    args = q, k, lse, out, t, window, d**-0.5 * 1.44269504
    launch, args = run(snapped_scores, (cdiv(t, 122), heads), args, out, D=d, BN=128, BM=32, POOL=pool, num_warps=4, num_stages=2)

    def reference(*_):
        p = s.masked_fill(hidden, -float("inf")).softmax(2).sum(1)
        return F.max_pool1d(p, pool, 1, pool // 2)

    launch.reference = reference
    return launch, args


@triton.jit
def matrix_memory_step(Q, K, V, I, FORGET, C, N, M, SLOT, OUT, D: tl.constexpr, DV: tl.constexpr):
    # One token of a matrix memory: the state of a slot is read, changed and written where it was.
    b, h, part = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    heads, width = tl.num_programs(1), DV * tl.num_programs(2)
    d, e = tl.arange(0, D), part * DV + tl.arange(0, DV)
    slot = tl.load(SLOT + b).to(tl.int64) * heads + h
    i, f, m = tl.load(I + b * heads + h), tl.load(FORGET + b * heads + h), tl.load(M + slot)
    f = tl.minimum(f, 0.0) - tl.log(1 + tl.exp(-tl.abs(f)))
    new = tl.maximum(f + m, i)
    keep, put = tl.exp(f + m - new), tl.exp(i - new)
    q, k = tl.load(Q + (b * heads + h) * D + d).to(tl.float32) * (D**-0.5), tl.load(K + (b * heads + h) * D + d).to(tl.float32)
    v = tl.load(V + (b * heads + h) * width + e).to(tl.float32)
    at = C + (slot * D + d[:, None]) * width + e[None, :]
    c = tl.load(at) * keep + put * k[:, None] * v[None, :]
    n = tl.load(N + slot * D + d) * keep + put * k
    tl.store(at, c)
    z = tl.maximum(tl.abs(tl.sum(n * q, 0)), tl.exp(-new))
    tl.store(OUT + (b * heads + h) * width + e, (tl.sum(c * q[:, None], 0) / z).to(OUT.dtype.element_ty))


@case
def matrix_memories_of_slots_step():
    b, heads, d, dv, slots = 64, 8, 128, 128, 80
    q, k, v = (rand(b, heads, d, dtype="bfloat16") for _ in range(3))
    i, f, m = f32(b, heads), f32(b, heads) + 2, f32(slots, heads)
    c0, n = f32(slots, heads, d, dv), f32(slots, heads, d)
    slot, out, c = torch.randperm(slots, device="cuda")[:b], zeros(b, heads, dv, dtype="bfloat16"), c0.clone()

    def launch(*_):
        c.copy_(c0)
        matrix_memory_step[(b, heads, 4)](q, k, v, i, f, c, n, m, slot, out, D=d, DV=dv // 4, num_warps=4)
        return out, c

    def reference(*_):
        forget = F.logsigmoid(f) + m[slot]
        new = torch.maximum(forget, i)
        keep, put = (forget - new).exp(), (i - new).exp()
        state = c0[slot] * keep[..., None, None] + put[..., None, None] * k.float()[..., :, None] * v.float()[..., None, :]
        norm = n[slot] * keep[..., None] + put[..., None] * k.float()
        x = q.float() * d**-0.5
        z = torch.maximum((norm * x).sum(-1).abs(), (-new).exp())
        all_ = c0.clone()
        all_[slot] = state
        return (state * x[..., None]).sum(2) / z[..., None], all_

    launch.reference = reference
    return launch, (q, k, v)


@triton.jit
def ranks_of_tokens(LOGITS, TOKEN, LOGP, RANK, V, BLOCK: tl.constexpr):
    # A chosen token's log-probability and how many tokens are above it.
    row = tl.program_id(0).to(tl.int64)
    mine = tl.load(LOGITS + row * V + tl.load(TOKEN + row)).to(tl.float32)
    m, l, above = tl.full((BLOCK,), -float("inf"), tl.float32), tl.zeros((BLOCK,), tl.float32), tl.zeros((BLOCK,), tl.int32)
    for v0 in tl.range(0, V, BLOCK, num_stages=4):
        v = v0 + tl.arange(0, BLOCK)
        x = tl.load(LOGITS + row * V + v, mask=v < V, other=-1e30, eviction_policy="evict_first").to(tl.float32)
        new = tl.maximum(m, x)
        l = l * tl.exp2((m - new) * 1.44269504) + tl.exp2((x - new) * 1.44269504)
        m = new
        above += (x > mine).to(tl.int32)
    top = tl.max(m, 0)
    total = tl.sum(l * tl.exp2((m - top) * 1.44269504), 0)
    tl.store(LOGP + row, mine - top - tl.log(total))
    tl.store(RANK + row, tl.sum(above, 0) + 1)


@case
def ranks_and_log_probabilities_of_tokens():
    rows, v = 700, 128_259
    logits, token = rand(rows, v), ints(0, v, rows, dtype="int64")
    logp, rank = zeros(rows, dtype="float32"), zeros(rows, dtype="int32")
    launch, args = run(ranks_of_tokens, (rows,), (logits, token, logp, rank, v), (logp, rank), BLOCK=2048, num_warps=8)

    def reference(*_):
        x = logits.float()
        mine = x.gather(1, token[:, None])
        return (mine - x.logsumexp(1, keepdim=True))[:, 0], (x > mine).sum(1) + 1

    launch.reference = reference
    return launch, args


@triton.jit
def turned_tiles_product(X, W, SCALES, OUT, M, N, K, BM: tl.constexpr, TN: tl.constexpr, TK: tl.constexpr):
    # Weights lie tile after tile, in an order of eights within a tile that a reshape and a permute undo; one long load each.
    m, tile_n = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1)
    k, n = tl.arange(0, TK), tile_n * TN + tl.arange(0, TN)
    i = tl.arange(0, TN * TK)
    acc = tl.zeros((BM, TN), tl.float32)
    for tile_k in range(0, K // TK):
        x = tl.load(X + m[:, None] * K + (tile_k * TK + k)[None, :], mask=(m < M)[:, None], other=0.0)
        w = tl.load(W + (tile_n * (K // TK) + tile_k) * (TN * TK) + i)
        w = tl.reshape(w, (TK // 16, TN // 8, 8, 4, 2, 2))
        w = tl.reshape(tl.permute(w, (0, 4, 3, 5, 1, 2)), (TK, TN))
        acc = tl.dot(x, w.to(x.dtype), acc)
    acc *= tl.load(SCALES + n)[None, :]
    tl.store(OUT + m[:, None] * N + n[None, :], acc.to(OUT.dtype.element_ty), mask=(m < M)[:, None])


@case
def gemm_of_turned_tiles_of_fp8():
    m, n, k, tn, tk = 130, 4096, 2048, 64, 64
    x, scales, out = rand(m, k), uniform(n) + 0.5, zeros(m, n)
    w = f8(k, n)
    turned = w.view(torch.uint8).view(k // tk, tk // 16, 2, 4, 2, n // tn, tn // 8, 8).permute(5, 0, 1, 6, 7, 3, 2, 4).contiguous()
    args = x, turned.view(torch.float8_e4m3fn), scales, out, m, n, k
    launch, args = run(turned_tiles_product, (cdiv(m, 64), n // tn), args, out, BM=64, TN=tn, TK=tk, num_warps=4, num_stages=3)
    launch.reference = lambda *_: (x.float() @ w.float()) * scales
    return launch, args


@triton.jit
def active_rows(X, ACTIVE, COUNT, W, OUT, D, BLOCK: tl.constexpr, CHUNK: tl.constexpr):
    # Of a layer only some neurons are alive: their rows are gathered, weighed and summed; parts of the list by atomics.
    d, n = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), tl.load(COUNT)
    acc = tl.zeros((BLOCK,), tl.float32)
    for at in range(tl.program_id(1) * CHUNK, n, tl.num_programs(1) * CHUNK):
        i = at + tl.arange(0, CHUNK)
        row, x = tl.load(ACTIVE + i, mask=i < n, other=0), tl.load(X + i, mask=i < n, other=0.0)
        w = tl.load(W + row.to(tl.int64)[:, None] * D + d[None, :], mask=(i < n)[:, None] & (d < D)[None, :], other=0.0)
        acc += tl.sum(w.to(tl.float32) * x[:, None], 0)
    tl.atomic_add(OUT + d, acc, mask=d < D, sem="relaxed")


@case
def rows_of_active_neurons_summed():
    neurons, d, alive = 16384, 5120, 6001
    active = torch.randperm(neurons, device="cuda")[:neurons].to(torch.int32)
    x, count, w, out = f32(neurons), full(alive, 1, dtype="int32"), rand(neurons, d, dtype="bfloat16"), zeros(d, dtype="float32")
    launched = run(active_rows, (cdiv(d, 256), 13), (x, active, count, w, out, d), out, BLOCK=256, CHUNK=16, num_warps=4, num_stages=3)
    launch, args = cleared(launched, out)
    launch.reference = lambda *_: (w[active[:alive].long()].float() * x[:alive, None]).sum(0)
    return launch, args


@triton.jit
def local_chunks(Q, K, V, O, T, CHUNK, H: tl.constexpr, G: tl.constexpr, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    # Causal within chunks only, and queries warmer the later they come; descriptors of three axes.
    start, h, b = tl.program_id(0) * BM, tl.program_id(1), tl.program_id(2)
    i = start + tl.arange(0, BM)
    q = tl.reshape(Q.load([b, h, start, 0]), (BM, D))
    warm = tl.log(tl.floor((i + 1).to(tl.float32) / 512) + 1) * 0.1 + 1
    q = (q.to(tl.float32) * warm[:, None] * 0.125).to(tl.float16)
    m, l, acc = tl.full((BM,), -1e30, tl.float32), tl.zeros((BM,), tl.float32), tl.zeros((BM, D), tl.float32)
    for n0 in tl.range(start // CHUNK * CHUNK, tl.minimum(start + BM, T), BN, loop_unroll_factor=2):
        n = n0 + tl.arange(0, BN)
        k = tl.reshape(K.load([b, h // G, n0, 0]), (BN, D))
        s = tl.dot(q, k.T) * 1.44269504
        s = tl.where((i[:, None] >= n[None, :]) & (i[:, None] // CHUNK == n[None, :] // CHUNK), s, -1e30)
        new = tl.maximum(m, tl.max(s, 1))
        p, back = tl.exp2(s - new[:, None]), tl.exp2(m - new)
        v = tl.reshape(V.load([b, h // G, n0, 0]), (BN, D))
        acc = tl.dot(p.to(v.dtype), v, acc * back[:, None])
        l = l * back + tl.sum(p, 1)
        m = new
    O.store([b, h, start, 0], tl.reshape((acc / l[:, None]).to(tl.float16), (1, 1, BM, D)))


@case
def attn_in_chunks_with_warmer_queries():
    b, hq, hk, t, d, chunk, bm, bn = 2, 16, 4, 2500, 64, 768, 128, 64
    q, k, v, o = rand(b, hq, t, d), rand(b, hk, t, d), rand(b, hk, t, d), zeros(b, hq, t, d)
    boxes = [TensorDescriptor.from_tensor(x, [1, 1, n, d]) for x, n in ((q, bm), (k, bn), (v, bn), (o, bm))]
    options = dict(H=hq, G=hq // hk, D=d, BM=bm, BN=bn, num_warps=8, num_stages=2)
    launch, args = run(local_chunks, (cdiv(t, bm), hq, b), (*boxes, t, chunk), o, **options)

    def reference(*_):
        i = arange(t)
        warm = torch.log(torch.floor((i + 1) / 512) + 1) * 0.1 + 1
        mask = (i[:, None] >= i[None, :]) & (i[:, None] // chunk == i[None, :] // chunk)
        kk, vv = (x.float().repeat_interleave(hq // hk, 1) for x in (k, v))
        s = ((q.float() * warm[:, None] / 8) @ kk.transpose(2, 3)).masked_fill(~mask, -float("inf"))
        return s.softmax(3) @ vv

    launch.reference = reference
    return launch, args


@triton.jit
def prodigy_sums(G, P, P0, S, M, V, SUMS, d_lr, beta, N, BLOCK: tl.constexpr):
    # Moments move; a step size that learns itself needs two sums over all weights, in double.
    up, size = tl.zeros((BLOCK,), tl.float64), tl.zeros((BLOCK,), tl.float64)
    for start in tl.range(tl.program_id(0) * BLOCK, N, tl.num_programs(0) * BLOCK, num_stages=2):
        i = start + tl.arange(0, BLOCK)
        live = i < N
        g, p, p0 = tl.load(G + i, mask=live, other=0.0).to(tl.float32), tl.load(P + i, mask=live, other=0.0), tl.load(P0 + i, mask=live, other=0.0)
        m, v, s = tl.load(M + i, mask=live, other=0.0), tl.load(V + i, mask=live, other=0.0), tl.load(S + i, mask=live, other=0.0)
        tl.store(M + i, 0.9 * m + 0.1 * d_lr * g, mask=live)
        tl.store(V + i, 0.999 * v + 0.001 * d_lr * d_lr * g * g, mask=live)
        s = beta * s + (1 - beta) * d_lr * g
        tl.store(S + i, s, mask=live)
        up += (g * (p0 - p)).to(tl.float64)
        size += tl.abs(s).to(tl.float64)
    tl.atomic_add(SUMS, tl.sum(up, 0), sem="relaxed")
    tl.atomic_add(SUMS + 1, tl.sum(size, 0), sem="relaxed")


@case
def step_sizes_that_learn_themselves():
    n = 8_000_003
    g, p, p0 = rand(n, dtype="bfloat16"), f32(n), f32(n)
    old = f32(n), f32(n), uniform(n)
    s, m, v = (t.clone() for t in old)
    sums = zeros(2, dtype="float64")

    def launch(*_):
        for a, b in zip((s, m, v), old):
            a.copy_(b)
        sums.zero_()
        prodigy_sums[(4 * PROGRAMS,)](g, p, p0, s, m, v, sums, 0.01, 0.95, n, BLOCK=1024, num_warps=4)
        return s, m, v, sums[1:]

    def reference(*_):
        x = g.float()
        new = 0.95 * old[0] + 0.05 * 0.01 * x
        return new, 0.9 * old[1] + 0.001 * x, 0.999 * old[2] + 1e-7 * x * x, new.double().abs().sum().view(1)

    launch.reference = reference
    return launch, (g, p)


@triton.jit
def codes_of(x, scale):
    return tl.clamp(x * scale, -448.0, 448.0).to(tl.float8e4nv)


@triton.jit
def swiglu_backward_two_casts(DY, GATE, UP, OUT, SCALES, TURNED, TURNED_SCALES, M, N, B: tl.constexpr):
    # Both gradients of a gated layer, as FP8 by rows of B and, turned, by columns of B: what both products need that come after.
    m, n = tl.program_id(0) * B + tl.arange(0, B), tl.program_id(1) * B + tl.arange(0, B)
    at = m[:, None] * N + n[None, :]
    dy, gate, up = tl.load(DY + at).to(tl.float32), tl.load(GATE + at).to(tl.float32), tl.load(UP + at).to(tl.float32)
    s = 1 / (1 + tl.exp(-gate))
    for half in tl.static_range(2):
        d = dy * up * s * (1 + gate * (1 - s)) if half == 0 else dy * gate * s
        row = tl.maximum(tl.max(tl.abs(d), 1), 1e-12)
        column = tl.maximum(tl.max(tl.abs(d), 0), 1e-12)
        c = half * N + n
        tl.store(OUT + m[:, None] * (2 * N) + c[None, :], codes_of(d, (448.0 / row)[:, None]))
        tl.store(SCALES + m * (2 * N // B) + half * (N // B) + tl.program_id(1), row / 448.0)
        tl.store(TURNED + c[:, None] * M + m[None, :], tl.trans(codes_of(d, (448.0 / column)[None, :])))
        tl.store(TURNED_SCALES + c * (M // B) + tl.program_id(0), column / 448.0)


@case
def gated_gradients_cast_both_ways():
    m, n, b = 2048, 3072, 128
    dy, gate, up = (rand(m, n, dtype="bfloat16") for _ in range(3))
    out, scales = zeros(m, 2 * n, dtype="float32").to(torch.float8_e4m3fn), zeros(m, 2 * n // b, dtype="float32")
    turned, more = zeros(2 * n, m, dtype="float32").to(torch.float8_e4m3fn), zeros(2 * n, m // b, dtype="float32")
    args = dy, gate, up, out, scales, turned, more, m, n
    launched = run(swiglu_backward_two_casts, (m // b, n // b), args, (out, scales, turned, more), B=b, num_warps=8)
    launch, args = viewed(launched, lambda v: (far8(v[0]), v[1], far8(v[2]), v[3]))

    def reference(*_):
        g, s = gate.float(), gate.float().sigmoid()
        d = torch.cat([dy.float() * up.float() * s * (1 + g * (1 - s)), dy.float() * g * s], 1)
        results = []
        for x in (d, d.t()):
            blocks = x.reshape(x.shape[0], -1, b)
            most = blocks.abs().amax(2).clamp(min=1e-12)
            codes = (blocks * (448 / most)[..., None]).clamp(-448, 448).to(torch.float8_e4m3fn)
            results += [far8(codes.reshape(x.shape)), most / 448]
        return tuple(results)

    launch.reference = reference
    return launch, args
