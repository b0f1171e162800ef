"""Warehouse: what only moves and adds: losses of long rows, norms there and back, bytes and scales, selections, segments, scans, counts and stencils."""

import torch
import torch.nn.functional as F
import triton
import triton.language as tl

from .common import against, arange, case, cdiv, f32, far, far8, full, ints, rand, run, uniform, viewed, zeros


@triton.jit
def smoothed_loss_and_gradient(x_ptr, y_ptr, loss_ptr, z_ptr, dx_ptr, V, smooth, z_weight, inverse, B: tl.constexpr):
    # One loop for the maximum, the sum of powers and the plain sum; one for the gradient. Rows without a label have none.
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * V
    dx_ptr += row * V
    label = tl.load(y_ptr + row)
    i = tl.arange(0, B)
    if label == -100:
        for at in range(0, V, B):
            tl.store(dx_ptr + at + i, tl.zeros((B,), dx_ptr.dtype.element_ty), mask=at + i < V)
        tl.store(loss_ptr + row, 0.0)
        tl.store(z_ptr + row, 0.0)
        return
    top = float("-inf")
    total = 0.0
    plain = 0.0
    for at in range(0, V, B):
        x = tl.load(x_ptr + at + i, mask=at + i < V, other=float("-inf")).to(tl.float32)
        new = tl.maximum(top, tl.max(x, 0))
        total = total * tl.exp(top - new) + tl.sum(tl.exp(x - new), 0)
        plain += tl.sum(tl.where(at + i < V, x, 0.0), 0)
        top = new
    lse = top + tl.log(total)
    hit = tl.load(x_ptr + label).to(tl.float32)
    z = z_weight * lse * lse
    tl.store(loss_ptr + row, (lse - (1.0 - smooth) * hit - smooth * plain / V + z) * inverse)
    tl.store(z_ptr + row, z * inverse)
    for at in range(0, V, B):
        x = tl.load(x_ptr + at + i, mask=at + i < V, other=float("-inf"), eviction_policy="evict_first").to(tl.float32)
        p = tl.exp(x - lse) * (1.0 + 2.0 * z_weight * lse) - smooth / V
        p = tl.where(at + i == label, p - (1.0 - smooth), p)
        tl.store(dx_ptr + at + i, (p * inverse).to(dx_ptr.dtype.element_ty), mask=at + i < V)


@case
def warehouse_losses_of_32003_smoothed_with_squares_of_sums(rows=1100, v=32003):
    x, y = rand(rows, v, dtype="bfloat16") * 2, ints(0, v, rows)
    y = torch.where(uniform(rows) < 0.1, -100, y).to(torch.int32)
    loss, z, dx = zeros(rows, dtype="float32"), zeros(rows, dtype="float32"), zeros(rows, v, dtype="bfloat16")
    args = x, y, loss, z, dx, v, 0.1, 1e-3, 1.0
    launched = run(smoothed_loss_and_gradient, (rows,), args, (loss, z, dx), B=4096, num_warps=8)

    def reference():
        a = x.detach().float().requires_grad_()
        with torch.enable_grad():
            squares = 1e-3 * a.logsumexp(1) ** 2 * (y != -100)
            each = F.cross_entropy(a, y.long(), label_smoothing=0.1, reduction="none") + squares
            (grad,) = torch.autograd.grad(each.sum(), a)
        return each.detach(), squares.detach(), grad

    return against(launched, reference)


@triton.jit
def norm_back_in_parts(x_ptr, dy_ptr, w_ptr, mean_ptr, rstd_ptr, dx_ptr, dw_ptr, db_ptr, M, D, B: tl.constexpr):
    # A program takes every so many rows, with sums for weights and biases in registers.
    first, step = tl.program_id(0), tl.num_programs(0)
    i = tl.arange(0, B)
    ok = i < D
    w = tl.load(w_ptr + i, mask=ok, other=0.0).to(tl.float32)
    dw = tl.zeros((B,), tl.float32)
    db = tl.zeros((B,), tl.float32)
    for row in range(first, M, step):
        x = tl.load(x_ptr + row * D + i, mask=ok, other=0.0).to(tl.float32)
        dy = tl.load(dy_ptr + row * D + i, mask=ok, other=0.0).to(tl.float32)
        mean, rstd = tl.load(mean_ptr + row), tl.load(rstd_ptr + row)
        xhat = tl.where(ok, (x - mean) * rstd, 0.0)
        g = dy * w
        a, b = tl.sum(g * xhat, 0) / D, tl.sum(g, 0) / D
        tl.store(dx_ptr + row * D + i, ((g - xhat * a - b) * rstd).to(dx_ptr.dtype.element_ty), mask=ok)
        dw += dy * xhat
        db += dy
    tl.store(dw_ptr + first * D + i, dw, mask=ok)
    tl.store(db_ptr + first * D + i, db, mask=ok)


@triton.jit
def columns_of_parts(dw_ptr, db_ptr, dw_out_ptr, db_out_ptr, PARTS, D, BP: tl.constexpr, BD: tl.constexpr):
    p, i = tl.arange(0, BP), tl.program_id(0) * BD + tl.arange(0, BD)
    dw = tl.zeros((BP, BD), tl.float32)
    db = tl.zeros((BP, BD), tl.float32)
    for at in range(0, PARTS, BP):
        ok = (at + p < PARTS)[:, None] & (i < D)[None, :]
        dw += tl.load(dw_ptr + (at + p)[:, None] * D + i[None, :], mask=ok, other=0.0)
        db += tl.load(db_ptr + (at + p)[:, None] * D + i[None, :], mask=ok, other=0.0)
    tl.store(dw_out_ptr + i, tl.sum(dw, 0).to(dw_out_ptr.dtype.element_ty), mask=i < D)
    tl.store(db_out_ptr + i, tl.sum(db, 0).to(db_out_ptr.dtype.element_ty), mask=i < D)


@case
def warehouse_norms_of_1537_back_in_parts_of_300(m=9000, d=1537, parts=300):
    x, dy, w = rand(m, d), rand(m, d) + 0.5, rand(d)
    mean, var = x.float().mean(1), x.float().var(1, unbiased=False)
    rstd = (var + 1e-5).rsqrt()
    dx, dw, db = zeros(m, d), zeros(d), zeros(d)
    dw_part, db_part = zeros(parts, d, dtype="float32"), zeros(parts, d, dtype="float32")

    def launch(*_):
        norm_back_in_parts[(parts,)](x, dy, w, mean, rstd, dx, dw_part, db_part, m, d, B=2048, num_warps=8)
        columns_of_parts[(cdiv(d, 32),)](dw_part, db_part, dw, db, parts, d, BP=32, BD=32, num_warps=4)
        return dx, dw, db

    def reference():
        xhat = (x.float() - mean[:, None]) * rstd[:, None]
        g = dy.float() * w.float()
        back = (g - xhat * (g * xhat).mean(1, keepdim=True) - g.mean(1, keepdim=True)) * rstd[:, None]
        return back, (dy.float() * xhat).sum(0), dy.float().sum(0)

    return against((launch, ()), reference)


@triton.jit
def groups_of_ten_then_swish(x_ptr, w_ptr, b_ptr, shift_ptr, y_ptr, mean_ptr, rstd_ptr, HW, C, GROUPS, EACH: tl.constexpr, BC: tl.constexpr, BR: tl.constexpr):
    # Channels last: ten channels of 320 are a group; its moments by Welford's way over tiles, then scaled, shifted and swished.
    group, batch = tl.program_id(0), tl.program_id(1)
    r, c = tl.arange(0, BR), tl.arange(0, BC)
    x_ptr += batch.to(tl.int64) * HW * C + group * EACH
    y_ptr += batch.to(tl.int64) * HW * C + group * EACH
    count = 0.0
    mean = 0.0
    spread = 0.0
    for at in range(0, HW, BR):
        ok = (at + r < HW)[:, None] & (c < EACH)[None, :]
        x = tl.load(x_ptr + (at + r)[:, None] * C + c[None, :], mask=ok, other=0.0).to(tl.float32)
        more = (tl.minimum(HW - at, BR) * EACH).to(tl.float32)
        theirs = tl.sum(x) / more
        off = tl.where(ok, x - theirs, 0.0)
        delta = theirs - mean
        both = count + more
        spread += tl.sum(off * off) + delta * delta * count * more / both
        mean += delta * more / both
        count = both
    rstd = tl.rsqrt(spread / count + 1e-6)
    tl.store(mean_ptr + batch * GROUPS + group, mean)
    tl.store(rstd_ptr + batch * GROUPS + group, rstd)
    w = tl.load(w_ptr + group * EACH + c, mask=c < EACH, other=0.0) * rstd
    b = tl.load(b_ptr + group * EACH + c, mask=c < EACH, other=0.0) - mean * w
    b += tl.load(shift_ptr + batch * C + group * EACH + c, mask=c < EACH, other=0.0)
    for at in range(0, HW, BR):
        ok = (at + r < HW)[:, None] & (c < EACH)[None, :]
        x = tl.load(x_ptr + (at + r)[:, None] * C + c[None, :], mask=ok, other=0.0).to(tl.float32)
        z = x * w[None, :] + b[None, :]
        tl.store(y_ptr + (at + r)[:, None] * C + c[None, :], (z / (1.0 + tl.exp(-z))).to(y_ptr.dtype.element_ty), mask=ok)


@case
def warehouse_groups_of_ten_channels_last_swished(batch=12, hw=56 * 56, c=320):
    groups = c // 10
    x, w, b, shift = rand(batch, hw, c, dtype="bfloat16"), f32(c), f32(c), f32(batch, c)
    y, mean, rstd = zeros(batch, hw, c, dtype="bfloat16"), zeros(batch, groups, dtype="float32"), zeros(batch, groups, dtype="float32")
    x += 1
    args = x, w, b, shift, y, mean, rstd, hw, c, groups
    launched = run(groups_of_ten_then_swish, (groups, batch), args, (y, mean, rstd), EACH=10, BC=16, BR=256, num_warps=8)

    def reference():
        z = x.float().reshape(batch, hw, groups, 10)
        var, m = torch.var_mean(z, (1, 3), unbiased=False)
        r = (var + 1e-6).rsqrt()
        z = ((z - m[:, None, :, None]) * r[:, None, :, None]).reshape(batch, hw, c) * w + b + shift[:, None]
        return F.silu(z), m, r

    return against(launched, reference)


@triton.jit
def added_normed_and_quantized(x_ptr, r_ptr, w_ptr, smooth_ptr, sum_ptr, byte_ptr, scale_ptr, f8_ptr, inverse, N, eps, B: tl.constexpr):
    # What was there and what comes are added, normed, and leave as bytes with a scale of the row and as fp8 with a fixed one.
    row = tl.program_id(0)
    i = tl.arange(0, B)
    ok = i < N
    x = tl.load(x_ptr + row * N + i, mask=ok, other=0.0).to(tl.float32) + tl.load(r_ptr + row * N + i, mask=ok, other=0.0).to(tl.float32)
    low = x.to(sum_ptr.dtype.element_ty)
    tl.store(sum_ptr + row * N + i, low, mask=ok)
    x = low.to(tl.float32)
    y = x * tl.rsqrt(tl.sum(x * x, 0) / N + eps) * (1.0 + tl.load(w_ptr + i, mask=ok, other=0.0))
    tl.store(f8_ptr + row * N + i, (y * inverse).to(f8_ptr.dtype.element_ty), mask=ok)
    y /= tl.load(smooth_ptr + i, mask=ok, other=1.0)
    top = tl.maximum(tl.max(tl.abs(y), 0), 1e-8)
    z = y * (127.0 / top)
    z = tl.where(z >= 0.0, z + 0.5, z - 0.5)
    tl.store(byte_ptr + row * N + i, z.to(tl.int8), mask=ok)
    tl.store(scale_ptr + row, top / 127.0)


@case
def warehouse_sums_normed_to_bytes_and_to_fp8_at_once(m=5000, n=3584):
    x, r, w, smooth = rand(m, n, dtype="bfloat16"), rand(m, n, dtype="bfloat16"), f32(n) / 8, uniform(n) + 0.5
    total, codes, scale = zeros(m, n, dtype="bfloat16"), zeros(m, n, dtype="int8"), zeros(m, dtype="float32")
    low = zeros(m, n).to(torch.float8_e4m3fn)
    args = x, r, w, smooth, total, codes, scale, low, 4.0, n, 1e-6
    launched = run(added_normed_and_quantized, (m,), args, (total, codes, scale, low), B=4096, num_warps=8)

    def view(outs):
        return outs[0], far(outs[1]), outs[2], far8(outs[3])

    def reference():
        s = (x.float() + r.float()).to(x.dtype)
        y = s.float() * (s.float().square().mean(1, keepdim=True) + 1e-6).rsqrt() * (1 + w)
        z = y / smooth
        top = z.abs().amax(1, keepdim=True)
        z = z * (127 / top)
        return view((s, torch.trunc(z + torch.where(z >= 0, 0.5, -0.5)), top[:, 0] / 127, (y * 4).to(low.dtype)))

    return against(viewed(launched, view), reference)


@triton.jit
def kth_by_digits(x_ptr, bound_ptr, index_ptr, N, K, BK: tl.constexpr, B: tl.constexpr):
    # Floats as words that sort alike; four counts of eight bits find the K-th, ones above it and as many like it go out in order.
    row = tl.program_id(0)
    i = tl.arange(0, B)
    word = tl.load(x_ptr + row * N + i, mask=i < N, other=float("-inf")).to(tl.int32, bitcast=True)
    key = (word ^ ((word >> 31) | -2147483648)).to(tl.uint32, bitcast=True)
    bins = tl.arange(0, 256)
    alive = i < N
    left = K
    prefix = tl.full((), 0, tl.uint32)
    for step in tl.static_range(4):
        shift = 24 - 8 * step
        digit = ((key >> shift) & 255).to(tl.int32)
        counts = tl.histogram(digit, 256, mask=alive)
        at_least = tl.cumsum(counts, 0, reverse=True)
        found = tl.max(tl.where(at_least >= left, bins, 0), 0)
        left -= tl.sum(tl.where(bins > found, counts, 0), 0)
        alive = alive & (digit == found)
        prefix = prefix | (found.to(tl.uint32) << shift)
    above = (key > prefix) & (i < N)
    like = (key == prefix) & (i < N)
    like = like & (tl.cumsum(like.to(tl.int32), 0) <= left)
    taken = above | like
    place = tl.cumsum(taken.to(tl.int32), 0) - 1
    tl.store(index_ptr + row * K + place, i, mask=taken)
    bits = prefix.to(tl.int32, bitcast=True)
    bits = tl.where(bits < 0, bits ^ -2147483648, ~bits)
    tl.store(bound_ptr + row, bits.to(tl.float32, bitcast=True))


@case
def warehouse_hundred_highest_of_5000_by_counts_of_digits(rows=2000, n=5000, k=100):
    x = f32(rows, n)
    bound, index = zeros(rows, dtype="float32"), zeros(rows, k, dtype="int32")
    launched = run(kth_by_digits, (rows,), (x, bound, index, n, k), (bound, index), BK=128, B=8192, num_warps=8)

    def reference():
        values, places = x.topk(k, 1)
        return values[:, -1], places.sort(1)[0]

    return against(launched, reference)


@triton.jit
def neighbors_four_ways(x_ptr, start_ptr, neighbor_ptr, out_ptr, D, BD: tl.constexpr, BE: tl.constexpr):
    # Of a node's neighbors: mean, highest, lowest and deviation of 75 features, times a factor that grows with their count.
    node = tl.program_id(0)
    begin, end = tl.load(start_ptr + node), tl.load(start_ptr + node + 1)
    d, e = tl.arange(0, BD), tl.arange(0, BE)
    total = tl.zeros((BE, BD), tl.float32)
    squares = tl.zeros((BE, BD), tl.float32)
    high = tl.full((BE, BD), float("-inf"), tl.float32)
    low = tl.full((BE, BD), float("inf"), tl.float32)
    for at in range(begin, end, BE):
        other = tl.load(neighbor_ptr + at + e, mask=at + e < end, other=-1)
        ok = (other >= 0)[:, None] & (d < D)[None, :]
        x = tl.load(x_ptr + other[:, None] * D + d[None, :], mask=ok, other=0.0).to(tl.float32)
        total += x
        squares += x * x
        high = tl.maximum(high, tl.where(ok, x, float("-inf")))
        low = tl.minimum(low, tl.where(ok, x, float("inf")))
    count = (end - begin).to(tl.float32)
    n = tl.maximum(count, 1.0)
    mean = tl.sum(total, 0) / n
    deviation = tl.sqrt(tl.maximum(tl.sum(squares, 0) / n - mean * mean, 0.0) + 1e-3)
    factor = tl.log(count + 1.0) / 3.0
    out = out_ptr + node * (4 * D) + d
    some = count > 0.0
    tl.store(out, mean * factor, mask=d < D)
    tl.store(out + D, tl.where(some, tl.max(high, 0), 0.0) * factor, mask=d < D)
    tl.store(out + 2 * D, tl.where(some, tl.min(low, 0), 0.0) * factor, mask=d < D)
    tl.store(out + 3 * D, deviation * factor, mask=d < D)


@case
def warehouse_neighbors_of_75_features_four_ways(nodes=20000, most=40, d=75):
    counts = torch.randint(0, most, (nodes,))
    start = F.pad(counts.cumsum(0), (1, 0)).to(torch.int32).cuda()
    edges = int(counts.sum())
    x, other = rand(nodes, d), ints(0, nodes, edges)
    out = zeros(nodes, 4, d, dtype="float32")
    launched = run(neighbors_four_ways, (nodes,), (x, start, other, out, d), out, BD=128, BE=8, num_warps=4)

    def reference():
        owner = torch.repeat_interleave(torch.arange(nodes), counts).to(x.device)[:, None].expand(edges, d)
        z = x[other.long()].float()
        n = counts.to(x.device)[:, None].clamp(min=1)
        mean = zeros(nodes, d, dtype="float32").scatter_add_(0, owner, z) / n
        square = zeros(nodes, d, dtype="float32").scatter_add_(0, owner, z * z) / n
        ends = [zeros(nodes, d, dtype="float32").scatter_reduce_(0, owner, z, way, include_self=False) for way in ("amax", "amin")]
        deviation = ((square - mean * mean).clamp(min=0) + 1e-3).sqrt()
        return torch.stack([mean, *ends, deviation], 1) * ((counts.to(x.device) + 1).float().log() / 3)[:, None, None]

    return against(launched, reference)


@triton.jit
def third_first_second_last(x_ptr, s_ptr, y_ptr, A, B, C, D, BB: tl.constexpr, BD: tl.constexpr):
    # (A, B, C, D) to (C, A, D, B): a tile of two axes turned for each pair of the others, bytes times a scale of the last.
    pair = tl.program_id(2)
    a, c = pair % A, pair // A
    b, d = tl.program_id(1) * BB + tl.arange(0, BB), tl.program_id(0) * BD + tl.arange(0, BD)
    x = tl.load(x_ptr + ((a * B + b) * C + c)[:, None] * D + d[None, :], mask=(b < B)[:, None] & (d < D)[None, :], other=0)
    y = x.to(tl.float32) * tl.load(s_ptr + d, mask=d < D, other=0.0)[None, :]
    out = y_ptr + ((c * A + a) * D + d)[:, None] * B + b[None, :]
    tl.store(out, y.T.to(y_ptr.dtype.element_ty), mask=(d < D)[:, None] & (b < B)[None, :])


@case
def warehouse_bytes_of_four_axes_turned_third_first_last_second(a=14, b=230, c=37, d=190):
    x, s, y = ints(-128, 128, a, b, c, d, dtype="int8"), uniform(d), zeros(c, a, d, b)
    launched = run(third_first_second_last, (cdiv(d, 64), cdiv(b, 64), a * c), (x, s, y, a, b, c, d), y, BB=64, BD=64, num_warps=4)
    return against(launched, lambda: (x.float() * s).permute(2, 0, 3, 1))


@triton.jit
def shrunk_by_triangles(x_ptr, y_ptr, H, W, OH, OW, scale_y, scale_x, TAPS: tl.constexpr, BY: tl.constexpr, BX: tl.constexpr):
    # Each pixel of the smaller image is a sum under a triangle as wide as its footprint; weights are made on the way.
    image = tl.program_id(2)
    oy, ox = tl.program_id(1) * BY + tl.arange(0, BY), tl.program_id(0) * BX + tl.arange(0, BX)
    cy, cx = (oy + 0.5) * scale_y, (ox + 0.5) * scale_x
    y0, x0 = (cy - scale_y + 0.5).to(tl.int32), (cx - scale_x + 0.5).to(tl.int32)
    acc = tl.zeros((BY, BX), tl.float32)
    weights_y = tl.zeros((BY,), tl.float32)
    weights_x = tl.zeros((BX,), tl.float32)
    for j in range(TAPS):
        y = y0 + j
        wy = tl.maximum(1.0 - tl.abs((y + 0.5 - cy) / scale_y), 0.0)
        wy = tl.where((y >= 0) & (y < H), wy, 0.0)
        weights_y += wy
        line = tl.zeros((BY, BX), tl.float32)
        for i in tl.static_range(TAPS):
            x = x0 + i
            wx = tl.maximum(1.0 - tl.abs((x + 0.5 - cx) / scale_x), 0.0)
            wx = tl.where((x >= 0) & (x < W), wx, 0.0)
            if j == 0:
                weights_x += wx
            value = tl.load(x_ptr + (image * H + y)[:, None] * W + x[None, :], mask=(wy > 0.0)[:, None] & (wx > 0.0)[None, :], other=0.0)
            line += value.to(tl.float32) * wx[None, :]
        acc += line * wy[:, None]
    acc /= weights_y[:, None] * weights_x[None, :]
    tl.store(y_ptr + (image * OH + oy)[:, None] * OW + ox[None, :], acc.to(y_ptr.dtype.element_ty), mask=(oy < OH)[:, None] & (ox < OW)[None, :])


@case
def warehouse_images_shrunk_by_triangles_five_to_two(images=24, h=500, w=755):
    oh, ow = h * 2 // 5, w * 2 // 5
    x, y = rand(images, h, w), zeros(images, oh, ow)
    args = x, y, h, w, oh, ow, h / oh, w / ow
    launched = run(shrunk_by_triangles, (cdiv(ow, 64), cdiv(oh, 8), images), args, y, TAPS=6, BY=8, BX=64, num_warps=4)
    return against(launched, lambda: F.interpolate(x.float()[:, None], (oh, ow), mode="bilinear", antialias=True)[:, 0])


@triton.jit
def _sides(here, r: tl.constexpr, PX, ok):
    across = tl.load(here + r, mask=ok, other=0.0) + tl.load(here - r, mask=ok, other=0.0)
    return across + tl.load(here + r * PX, mask=ok, other=0.0) + tl.load(here - r * PX, mask=ok, other=0.0)


@triton.jit
def waves_down_planes(u_ptr, old_ptr, v_ptr, sponge_ptr, new_ptr, NZ, NY, NX, PY, PX, BY: tl.constexpr, BX: tl.constexpr):
    # Eighth order in three axes: nine planes of a column of tiles move through registers, the other axes come from memory.
    y, x = tl.program_id(1) * BY + tl.arange(0, BY), tl.program_id(0) * BX + tl.arange(0, BX)
    ok = (y < NY)[:, None] & (x < NX)[None, :]
    plane = PY * PX
    at = (y + 4)[:, None] * PX + (x + 4)[None, :]
    u = u_ptr + at
    p0 = tl.load(u, mask=ok, other=0.0)
    p1 = tl.load(u + plane, mask=ok, other=0.0)
    p2 = tl.load(u + 2 * plane, mask=ok, other=0.0)
    p3 = tl.load(u + 3 * plane, mask=ok, other=0.0)
    p4 = tl.load(u + 4 * plane, mask=ok, other=0.0)
    p5 = tl.load(u + 5 * plane, mask=ok, other=0.0)
    p6 = tl.load(u + 6 * plane, mask=ok, other=0.0)
    p7 = tl.load(u + 7 * plane, mask=ok, other=0.0)
    fade = tl.load(sponge_ptr + y, mask=y < NY, other=0.0)[:, None] * tl.load(sponge_ptr + NY + x, mask=x < NX, other=0.0)[None, :]
    for z in range(NZ):
        here = u + (z + 4) * plane
        p8 = tl.load(here + 4 * plane, mask=ok, other=0.0)
        sum_ = p4 * (-205.0 / 72.0 * 3.0)
        sum_ += 1.6 * (p3 + p5) - 0.2 * (p2 + p6) + 8.0 / 315.0 * (p1 + p7) - 1.0 / 560.0 * (p0 + p8)
        sum_ += 1.6 * _sides(here, 1, PX, ok) - 0.2 * _sides(here, 2, PX, ok)
        sum_ += 8.0 / 315.0 * _sides(here, 3, PX, ok) - 1.0 / 560.0 * _sides(here, 4, PX, ok)
        place = at + (z + 4) * plane
        speed = tl.load(v_ptr + place, mask=ok, other=0.0)
        old = tl.load(old_ptr + place, mask=ok, other=0.0)
        tl.store(new_ptr + place, (2.0 * p4 - old * fade + speed * speed * sum_) * fade, mask=ok)
        p0, p1, p2, p3 = p1, p2, p3, p4
        p4, p5, p6, p7 = p5, p6, p7, p8


@case
def warehouse_waves_of_eighth_order_down_planes_in_registers(nz=60, ny=300, nx=500):
    shape = nz + 8, ny + 8, nx + 8
    u, old, new = f32(*shape), f32(*shape), zeros(*shape, dtype="float32")
    v, sponge = uniform(*shape) / 4, 1 - uniform(ny + nx) / 16
    args = u, old, v, sponge, new, nz, ny, nx, ny + 8, nx + 8
    launched = run(waves_down_planes, (cdiv(nx, 128), cdiv(ny, 4)), args, new, BY=4, BX=128, num_warps=4)

    def reference():
        cut = lambda t, z=0, y=0, x=0: t[4 + z : 4 + z + nz, 4 + y : 4 + y + ny, 4 + x : 4 + x + nx]  # noqa: E731
        total = cut(u) * (-205 / 72 * 3)
        for r, c in enumerate((1.6, -0.2, 8 / 315, -1 / 560), 1):
            for s in (-r, r):
                total = total + c * (cut(u, s) + cut(u, 0, s) + cut(u, 0, 0, s))
        fade = sponge[:ny, None] * sponge[None, ny:]
        out = torch.zeros_like(new)
        cut(out).copy_((2 * cut(u) - cut(old) * fade + cut(v) ** 2 * total) * fade)
        return out

    return against(launched, reference)


@triton.jit
def _run_on(new_a, sum_a, top_a, new_b, sum_b, top_b):
    return new_a | new_b, tl.where(new_b != 0, sum_b, sum_a + sum_b), tl.where(new_b != 0, top_b, tl.maximum(top_a, top_b))


@triton.jit
def runs_along_rows(x_ptr, flag_ptr, sum_ptr, top_ptr, N, B: tl.constexpr):
    # Running sums and maxima begin anew where a byte says so; what a chunk ends with goes on into the next.
    row = tl.program_id(0)
    i = tl.arange(0, B)
    carried = tl.full((), 0.0, tl.float32)
    highest = tl.full((), float("-inf"), tl.float32)
    for at in range(0, N, B):
        ok = at + i < N
        x = tl.load(x_ptr + row * N + at + i, mask=ok, other=0.0).to(tl.float32)
        flag = tl.load(flag_ptr + row * N + at + i, mask=ok, other=0).to(tl.int32)
        begun, total, top = tl.associative_scan((flag, x, x), 0, _run_on)
        total = tl.where(begun != 0, total, total + carried)
        top = tl.where(begun != 0, top, tl.maximum(top, highest))
        tl.store(sum_ptr + row * N + at + i, total, mask=ok)
        tl.store(top_ptr + row * N + at + i, top.to(top_ptr.dtype.element_ty), mask=ok)
        last = i == B - 1
        carried = tl.sum(tl.where(last, total, 0.0), 0)
        highest = tl.max(tl.where(last, top, float("-inf")), 0)


@case
def warehouse_runs_of_sums_and_maxima_along_30001(rows=264, n=30001):
    x = rand(rows, n, dtype="bfloat16") + 1
    flag = (uniform(rows, n) < 0.01).to(torch.uint8)
    flag[:, 0] = 1
    total, top = zeros(rows, n, dtype="float32"), zeros(rows, n, dtype="bfloat16")
    launched = run(runs_along_rows, (rows,), (x, flag, total, top, n), (total, top), B=2048, num_warps=8)

    def reference():
        double = x.double().cumsum(1)
        first = (flag.int() * arange(n)).cummax(1)[0].long()
        sums = double - (double - x.double()).gather(1, first)
        # Runs lie far apart when each is raised by more than the values span.
        number = flag.double().cumsum(1)
        tops = (x.double() + number * 64).cummax(1)[0] - number * 64
        return sums, tops

    return against(launched, reference)


@triton.jit
def parted_by_variance(x_ptr, bound_ptr, share_ptr, y_ptr, N, B: tl.constexpr):
    # Counts of bytes of an image, in which the split with the most variance between its sides is sought; then black and white.
    image = tl.program_id(0).to(tl.int64)
    i, bins = tl.arange(0, B), tl.arange(0, 256)
    counts = tl.zeros((256,), tl.int32)
    for at in range(0, N, B):
        x = tl.load(x_ptr + image * N + at + i, mask=at + i < N, other=0).to(tl.int32)
        counts += tl.histogram(x, 256, mask=at + i < N)
    below = tl.cumsum(counts, 0).to(tl.float64)
    mass = tl.cumsum(counts * bins, 0).to(tl.float64)
    all_mass = tl.sum(counts * bins, 0).to(tl.float64)
    above = N - below
    off = mass * N - below * all_mass
    between = tl.where((below > 0) & (above > 0), off * off / (below * above), 0.0)
    most = tl.max(between, 0)
    bound = tl.min(tl.where(between == most, bins, 256), 0)
    tl.store(bound_ptr + image, bound)
    tl.store(share_ptr + image, tl.sum(tl.where(bins > bound, counts, 0), 0).to(tl.float32) / N)
    for at in range(0, N, B):
        x = tl.load(x_ptr + image * N + at + i, mask=at + i < N, other=0).to(tl.int32)
        tl.store(y_ptr + image * N + at + i, tl.where(x > bound, 255, 0).to(tl.uint8), mask=at + i < N)


@case
def warehouse_images_parted_where_variance_between_sides_is_most(images=500, n=300 * 301):
    dark, bright = 60 + 20 * f32(images, n), 150 + 30 * f32(images, n)
    x = torch.where(uniform(images, n) < 0.6, dark, bright).clamp(0, 255).to(torch.uint8)
    bound, share, y = zeros(images, dtype="int32"), zeros(images, dtype="float32"), zeros(images, n, dtype="uint8")
    launched = run(parted_by_variance, (images,), (x, bound, share, y, n), (bound, share, y), B=4096, num_warps=8)

    def reference():
        counts = zeros(images, 256, dtype="int64").scatter_add_(1, x.long(), torch.ones_like(x, dtype=torch.int64)).double()
        below, mass = counts.cumsum(1), (counts * arange(256)).cumsum(1)
        off = mass * n - below * mass[:, -1:]
        between = (off * off / (below * (n - below))).nan_to_num(0, 0, 0)
        at = between.argmax(1)
        on = x > at[:, None]
        return at, on.float().mean(1), on * 255

    return against(launched, reference)


@triton.jit
def bags_of_byte_rows(table_ptr, index_ptr, weight_ptr, start_ptr, y_ptr, STRIDE, D: tl.constexpr, BD: tl.constexpr):
    # Rows of 100 bytes end with a half for their scale and one for their least value; a bag's rows are added with weights.
    bag = tl.program_id(0)
    d = tl.arange(0, BD)
    acc = tl.zeros((BD,), tl.float32)
    for at in range(tl.load(start_ptr + bag), tl.load(start_ptr + bag + 1)):
        row = table_ptr + tl.load(index_ptr + at) * STRIDE
        codes = tl.load(row + d, mask=d < D, other=0).to(tl.float32)
        tail = (row + D).to(tl.pointer_type(tl.float16))
        scale, least = tl.load(tail).to(tl.float32), tl.load(tail + 1).to(tl.float32)
        weight = tl.load(weight_ptr + at)
        acc += weight * (codes * scale + least)
    tl.store(y_ptr + bag * D + d, acc.to(y_ptr.dtype.element_ty), mask=d < D)


@case
def warehouse_bags_of_rows_of_100_bytes_and_two_halves(bags=16000, rows=100000, most=30):
    d = 100
    codes, ends = ints(0, 256, rows, d, dtype="uint8"), (uniform(rows, 2) / 128).half()
    table = torch.cat([codes, ends.view(torch.uint8)], 1)
    counts = torch.randint(0, most, (bags,))
    start = F.pad(counts.cumsum(0), (1, 0)).to(torch.int32).cuda()
    total = int(counts.sum())
    index, weight, y = ints(0, rows, total, dtype="int64"), uniform(total), zeros(bags, d)
    launched = run(bags_of_byte_rows, (bags,), (table, index, weight, start, y, d + 4), y, D=d, BD=128, num_warps=1)

    def reference():
        z = (codes[index].float() * ends[index, :1].float() + ends[index, 1:].float()) * weight[:, None]
        owner = torch.repeat_interleave(torch.arange(bags), counts).to(z.device)
        return zeros(bags, d, dtype="float32").index_add_(0, owner, z)

    return against(launched, reference)


@triton.jit
def likely_words_only(x_ptr, heat_ptr, p_ptr, entropy_ptr, best_ptr, V, log_share, B: tl.constexpr):
    # Words less likely than a share of the likeliest are left out: a loop for it, one for what remains, one to write.
    row = tl.program_id(0).to(tl.int64)
    cold = 1.0 / tl.load(heat_ptr + row)
    i = tl.arange(0, B)
    tops = tl.full((B,), float("-inf"), tl.float32)
    at_tops = tl.zeros((B,), tl.int32)
    for at in range(0, V, B):
        x = tl.load(x_ptr + row * V + at + i, mask=at + i < V, other=float("-inf")) * cold
        at_tops = tl.where(x > tops, at + i, at_tops)
        tops = tl.maximum(tops, x)
    top = tl.max(tops, 0)
    best = tl.min(tl.where(tops == top, at_tops, V), 0)
    total = tl.zeros((B,), tl.float32)
    moment = tl.zeros((B,), tl.float32)
    for at in range(0, V, B):
        x = tl.load(x_ptr + row * V + at + i, mask=at + i < V, other=float("-inf")) * cold - top
        w = tl.where(x >= log_share, tl.exp(x), 0.0)
        total += w
        moment += tl.where(w > 0.0, w * x, 0.0)
    sum_ = tl.sum(total, 0)
    tl.store(entropy_ptr + row, tl.log(sum_) - tl.sum(moment, 0) / sum_)
    tl.store(best_ptr + row, best)
    for at in range(0, V, B):
        x = tl.load(x_ptr + row * V + at + i, mask=at + i < V, other=float("-inf")) * cold - top
        p = tl.where(x >= log_share, tl.exp(x), 0.0) / sum_
        tl.store(p_ptr + row * V + at + i, p.to(p_ptr.dtype.element_ty), mask=at + i < V)


@case
def warehouse_words_at_least_a_tenth_as_likely_as_the_best(rows=300, v=50257):
    x, heat = f32(rows, v), uniform(rows) + 0.5
    p, entropy, best = zeros(rows, v), zeros(rows, dtype="float32"), zeros(rows, dtype="int32")
    args = x, heat, p, entropy, best, v, -2.302585
    launched = run(likely_words_only, (rows,), args, (p, entropy, best), B=2048, num_warps=4)

    def reference():
        z = x / heat[:, None]
        z = (z - z.amax(1, keepdim=True)).masked_fill(z < z.amax(1, keepdim=True) - 2.302585, float("-inf"))
        q = z.softmax(1)
        return q, -(q * q.clamp(min=1e-30).log()).sum(1), x.argmax(1)

    return against(launched, reference)


@triton.jit
def _fours(x, R: tl.constexpr, C: tl.constexpr):
    # Blocks of 32 along the last axis: a power of two that leaves values below eight, and the nearest of eight magnitudes.
    blocks = tl.reshape(x, (R, C // 32, 32))
    top = tl.max(tl.abs(blocks), 2)
    power = tl.maximum((top.to(tl.int32, bitcast=True) >> 23) - 2, 1)
    inverse = ((254 - power) << 23).to(tl.float32, bitcast=True)
    v = tl.abs(blocks) * inverse[:, :, None]
    code = (v > 0.25).to(tl.int32) + (v >= 0.75).to(tl.int32) + (v > 1.25).to(tl.int32) + (v >= 1.75).to(tl.int32)
    code += (v > 2.5).to(tl.int32) + (v >= 3.5).to(tl.int32) + (v > 5.0).to(tl.int32)
    code += tl.where(blocks < 0.0, 8, 0)
    even, odd = tl.split(tl.reshape(code, (R, C // 2, 2)))
    return (even | (odd << 4)).to(tl.uint8), power.to(tl.uint8)


@triton.jit
def fours_along_both_axes(x_ptr, a_ptr, as_ptr, b_ptr, bs_ptr, M, N, BM: tl.constexpr, BN: tl.constexpr):
    # A tile is made codes of four bits along its rows, and once more along its columns, turned.
    m, n = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    x = tl.load(x_ptr + m[:, None] * N + n[None, :]).to(tl.float32)
    codes, powers = _fours(x, BM, BN)
    half, block = tl.program_id(1) * (BN // 2) + tl.arange(0, BN // 2), tl.program_id(1) * (BN // 32) + tl.arange(0, BN // 32)
    tl.store(a_ptr + m[:, None] * (N // 2) + half[None, :], codes)
    tl.store(as_ptr + m[:, None] * (N // 32) + block[None, :], powers)
    codes, powers = _fours(x.T, BN, BM)
    half, block = tl.program_id(0) * (BM // 2) + tl.arange(0, BM // 2), tl.program_id(0) * (BM // 32) + tl.arange(0, BM // 32)
    tl.store(b_ptr + n[:, None] * (M // 2) + half[None, :], codes)
    tl.store(bs_ptr + n[:, None] * (M // 32) + block[None, :], powers)


@case
def warehouse_codes_of_four_bits_along_both_axes(m=4096, n=5120):
    x = rand(m, n, dtype="bfloat16")
    a, sa = zeros(m, n // 2, dtype="uint8"), zeros(m, n // 32, dtype="uint8")
    b, sb = zeros(n, m // 2, dtype="uint8"), zeros(n, m // 32, dtype="uint8")
    launched = run(fours_along_both_axes, (m // 64, n // 64), (x, a, sa, b, sb, m, n), (a, sa, b, sb), BM=64, BN=64, num_warps=4)

    def fours(z):
        blocks = z.float().reshape(z.shape[0], -1, 32)
        power = (blocks.abs().amax(2).view(torch.int32) >> 23) - 2
        v = blocks.abs() / (2.0 ** (power - 127).float())[..., None]
        code = sum((v > t).int() if way else (v >= t).int() for t, way in ((0.25, 1), (0.75, 0), (1.25, 1), (1.75, 0), (2.5, 1), (3.5, 0), (5, 1)))
        code = (code + 8 * (blocks < 0)).reshape(z.shape)
        return code[:, 0::2] | code[:, 1::2] << 4, power

    return against(launched, lambda: (*fours(x), *fours(x.t().contiguous())))


@triton.jit
def samples_moved_to_each_other(x_ptr, y_ptr, cost_ptr, square_ptr, N, B: tl.constexpr):
    # Two sets of 500 numbers are sorted; what it costs to move one onto the other, with distances and with their squares.
    row = tl.program_id(0)
    i = tl.arange(0, B)
    x = tl.sort(tl.load(x_ptr + row * N + i, mask=i < N, other=1e30))
    y = tl.sort(tl.load(y_ptr + row * N + i, mask=i < N, other=1e30))
    off = tl.where(i < N, x - y, 0.0)
    tl.store(cost_ptr + row, tl.sum(tl.abs(off), 0) / N)
    tl.store(square_ptr + row, tl.sqrt(tl.sum(off * off, 0) / N))


@case
def warehouse_costs_of_moving_500_numbers_to_500_others(rows=8000, n=500):
    x, y = f32(rows, n), f32(rows, n) * 1.5 + 1
    cost, square = zeros(rows, dtype="float32"), zeros(rows, dtype="float32")
    launched = run(samples_moved_to_each_other, (rows,), (x, y, cost, square, n), (cost, square), B=512, num_warps=4)

    def reference():
        off = x.sort(1)[0] - y.sort(1)[0]
        return off.abs().mean(1), off.square().mean(1).sqrt()

    return against(launched, reference)


@triton.jit
def _log_added(top_a, sum_a, top_b, sum_b):
    top = tl.maximum(top_a, top_b)
    return top, sum_a * tl.exp(top_a - top) + sum_b * tl.exp(top_b - top)


@triton.jit
def logs_of_sums_down_columns(x_ptr, y_ptr, T, N, BT: tl.constexpr, BN: tl.constexpr):
    # Down columns: logarithms of sums of powers so far, as pairs of maximum and sum, with a pair carried from chunk to chunk.
    t, n = tl.arange(0, BT), tl.program_id(0) * BN + tl.arange(0, BN)
    top_so_far = tl.full((BN,), -1e30, tl.float32)
    sum_so_far = tl.zeros((BN,), tl.float32)
    for t0 in range(0, T, BT):
        ok = (t0 + t < T)[:, None] & (n < N)[None, :]
        x = tl.load(x_ptr + (t0 + t)[:, None] * N + n[None, :], mask=ok, other=-1e30).to(tl.float32)
        top, total = tl.associative_scan((x, tl.full((BT, BN), 1.0, tl.float32)), 0, _log_added)
        new = tl.maximum(top, top_so_far[None, :])
        total = total * tl.exp(top - new) + sum_so_far[None, :] * tl.exp(top_so_far[None, :] - new)
        tl.store(y_ptr + (t0 + t)[:, None] * N + n[None, :], new + tl.log(total), mask=ok)
        last = (t == BT - 1)[:, None]
        top_so_far = tl.max(tl.where(last, new, -1e30), 0)
        sum_so_far = tl.sum(tl.where(last, total, 0.0), 0)


@case
def warehouse_logs_of_sums_so_far_down_9001_columns(t=1000, n=9001):
    x, y = rand(t, n) * 3, zeros(t, n, dtype="float32")
    launched = run(logs_of_sums_down_columns, (cdiv(n, 32),), (x, y, t, n), y, BT=64, BN=32, num_warps=4)
    return against(launched, lambda: x.double().logcumsumexp(0))


@triton.jit
def shared_information(x_ptr, y_ptr, joint_ptr, info_ptr, N, B: tl.constexpr):
    # Two images by fives of their bits: counts of pairs as a square, and what one image tells of the other.
    pair = tl.program_id(0)
    i = tl.arange(0, B)
    counts = tl.zeros((1024,), tl.int32)
    for at in range(0, N, B):
        ok = at + i < N
        x = tl.load(x_ptr + pair * N + at + i, mask=ok, other=0).to(tl.int32) >> 3
        y = tl.load(y_ptr + pair * N + at + i, mask=ok, other=0).to(tl.int32) >> 3
        counts += tl.histogram(x * 32 + y, 1024, mask=ok)
    tl.store(joint_ptr + pair * 1024 + tl.arange(0, 1024), counts)
    p = tl.reshape(counts, (32, 32)).to(tl.float32) / N
    px, py = tl.sum(p, 1), tl.sum(p, 0)
    each = tl.where(p > 0.0, p * tl.log(p / (px[:, None] * py[None, :] + 1e-20)), 0.0)
    entropy = tl.sum(tl.where(px > 0.0, -px * tl.log(px + 1e-20), 0.0), 0)
    tl.store(info_ptr + pair * 2, tl.sum(each))
    tl.store(info_ptr + pair * 2 + 1, entropy)


@case
def warehouse_what_one_image_tells_of_another_by_counts_of_pairs(pairs=400, n=201 * 300):
    x = ints(0, 256, pairs, n, dtype="uint8")
    y = (x.float() * 0.5 + uniform(pairs, n) * 100).to(torch.uint8)
    joint, info = zeros(pairs, 1024, dtype="int32"), zeros(pairs, 2, dtype="float32")
    launched = run(shared_information, (pairs,), (x, y, joint, info, n), (joint, info), B=2048, num_warps=8)

    def reference():
        code = (x.long() >> 3) * 32 + (y.long() >> 3)
        counts = zeros(pairs, 1024, dtype="int64").scatter_add_(1, code, torch.ones_like(code))
        p = counts.double().reshape(pairs, 32, 32) / n
        px, py = p.sum(2), p.sum(1)
        each = (p * (p / (px[:, :, None] * py[:, None, :])).log()).nan_to_num(0, 0, 0)
        return counts, torch.stack([each.sum((1, 2)), -(px * px.log()).nan_to_num(0, 0, 0).sum(1)], 1)

    return against(launched, reference)
