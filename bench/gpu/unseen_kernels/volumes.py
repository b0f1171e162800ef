"""Volumes: bricks transformed along their axes, features sampled and spread, stencils, patches and rays, in tiles of three to six axes."""

import math

import torch
import torch.nn.functional as F
import triton
import triton.language as tl

from .common import against, arange, case, cdiv, cleared, f8, f32, ints, rand, run, uniform, zeros


@triton.jit
def along_last(x, w, S: tl.constexpr):
    return tl.reshape(tl.dot(tl.reshape(x, (S * S, S)), w, input_precision="tf32"), (S, S, S))


@triton.jit
def bricks_denoised(x_ptr, basis_ptr, y_ptr, D, H, W, threshold, S: tl.constexpr):
    # A brick of 16x16x16 to frequencies along each axis, small ones away, and back: six dots with turns between.
    i = tl.arange(0, S)
    z, y, x = tl.program_id(2) * S + i[:, None, None], tl.program_id(1) * S + i[None, :, None], tl.program_id(0) * S + i[None, None, :]
    ok = (z < D) & (y < H) & (x < W)
    w = tl.load(basis_ptr + i[:, None] * S + i[None, :])
    v = tl.load(x_ptr + (z * H + y) * W + x, mask=ok, other=0.0)
    v = along_last(v, w.T, S)
    v = along_last(tl.permute(v, (0, 2, 1)), w.T, S)
    v = along_last(tl.permute(v, (2, 1, 0)), w.T, S)
    v = v * v * v / (v * v + threshold)
    v = along_last(v, w, S)
    v = along_last(tl.permute(v, (2, 1, 0)), w, S)
    v = along_last(tl.permute(v, (0, 2, 1)), w, S)
    tl.store(y_ptr + (z * H + y) * W + x, v, mask=ok)


@case
def bricks_of_16_transformed_along_three_axes_and_back():
    d, h, w, s = 130, 150, 170, 16
    i = torch.arange(s, device="cuda", dtype=torch.float32)
    basis = torch.cos(math.pi / s * (i + 0.5) * i[:, None]) * torch.where(i == 0, 1 / s, 2 / s).sqrt()[:, None]
    x, y = f32(d, h, w), zeros(d, h, w, dtype="float32")
    launched = run(bricks_denoised, (cdiv(w, s), cdiv(h, s), cdiv(d, s)), (x, basis, y, d, h, w, 0.5), y, S=s, num_warps=8)

    def reference():
        padded = F.pad(x, (0, -w % s, 0, -h % s, 0, -d % s))
        v = padded.unfold(0, s, s).unfold(1, s, s).unfold(2, s, s)
        v = torch.einsum("zyxabc,ia,jb,kc->zyxijk", v, basis, basis, basis)
        v = v**3 / (v * v + 0.5)
        v = torch.einsum("zyxijk,ia,jb,kc->zyxabc", v, basis, basis, basis)
        return v.permute(0, 3, 1, 4, 2, 5).reshape(padded.shape)[:d, :h, :w]

    return against(launched, reference)


@triton.jit
def corner(grid_ptr, z, y, x, wz, wy, wx, G, C: tl.constexpr):
    at = (z * G + y) * G + x
    f = tl.load(grid_ptr + at[:, None] * C + tl.arange(0, C)[None, :])
    return f * (wz * wy * wx)[:, None]


@triton.jit
def rays_through_a_grid(grid_ptr, from_ptr, to_ptr, w_ptr, out_ptr, R, G, step, C: tl.constexpr, O: tl.constexpr, BR: tl.constexpr, S: tl.constexpr):
    # S samples on each of BR rays: eight corners of features a sample, a dot for colors, densities summed along the ray, colors along it.
    r, s, o = tl.program_id(0) * BR + tl.arange(0, BR), tl.arange(0, S), tl.arange(0, O)
    at = tl.reshape((s.to(tl.float32)[None, :] + 0.5) / S + tl.zeros((BR, 1), tl.float32), (BR * S,))
    ray = tl.reshape(r[:, None] + tl.zeros((1, S), tl.int32), (BR * S,))
    ray = tl.minimum(ray, R - 1)
    x = tl.load(from_ptr + 3 * ray) * (1 - at) + tl.load(to_ptr + 3 * ray) * at
    y = tl.load(from_ptr + 3 * ray + 1) * (1 - at) + tl.load(to_ptr + 3 * ray + 1) * at
    z = tl.load(from_ptr + 3 * ray + 2) * (1 - at) + tl.load(to_ptr + 3 * ray + 2) * at
    x, y, z = x * (G - 1.001), y * (G - 1.001), z * (G - 1.001)
    x0, y0, z0 = x.to(tl.int32), y.to(tl.int32), z.to(tl.int32)
    fx, fy, fz = x - x0.to(tl.float32), y - y0.to(tl.float32), z - z0.to(tl.float32)
    f = corner(grid_ptr, z0, y0, x0, 1 - fz, 1 - fy, 1 - fx, G, C) + corner(grid_ptr, z0, y0, x0 + 1, 1 - fz, 1 - fy, fx, G, C)
    f += corner(grid_ptr, z0, y0 + 1, x0, 1 - fz, fy, 1 - fx, G, C) + corner(grid_ptr, z0, y0 + 1, x0 + 1, 1 - fz, fy, fx, G, C)
    f += corner(grid_ptr, z0 + 1, y0, x0, fz, 1 - fy, 1 - fx, G, C) + corner(grid_ptr, z0 + 1, y0, x0 + 1, fz, 1 - fy, fx, G, C)
    f += corner(grid_ptr, z0 + 1, y0 + 1, x0, fz, fy, 1 - fx, G, C) + corner(grid_ptr, z0 + 1, y0 + 1, x0 + 1, fz, fy, fx, G, C)
    w = tl.load(w_ptr + tl.arange(0, C)[:, None] * O + o[None, :])
    color = tl.reshape(tl.sigmoid(tl.dot(f.to(w.dtype), w)), (BR, S, O))
    density = tl.reshape(tl.maximum(tl.sum(tl.where(tl.arange(0, C)[None, :] == 0, f, 0.0), axis=1), 0.0), (BR, S)) * step
    before = tl.cumsum(density, axis=1) - density
    weight = tl.exp(-before) * (1.0 - tl.exp(-density))
    out = tl.sum(weight[:, :, None] * color, axis=1)
    tl.store(out_ptr + r[:, None] * O + o[None, :], out, mask=(r < R)[:, None])


@case
def rays_of_32_samples_between_voxels_to_16_channels():
    r, g, c, o, s = 6000, 64, 16, 16, 32
    grid, begin, end, w, out = rand(g, g, g, c), uniform(r, 3), uniform(r, 3), rand(c, o), zeros(r, o, dtype="float32")
    args = grid, begin, end, w, out, r, g, 0.25
    launched = run(rays_through_a_grid, (cdiv(r, 4),), args, out, C=c, O=o, BR=4, S=s, num_warps=4)

    def reference():
        at = ((torch.arange(s, device=grid.device) + 0.5) / s)[:, None]
        p = (begin[:, None] * (1 - at) + end[:, None] * at) * ((g - 1.001) / (g - 1)) * 2 - 1
        volume = grid.float().permute(3, 0, 1, 2)[None]
        f = F.grid_sample(volume, p[None, None], align_corners=True)[0, :, 0].permute(1, 2, 0)
        color, density = (f.half().float() @ w.float()).sigmoid(), f[..., 0].relu() * 0.25
        weight = torch.exp(density - density.cumsum(1)) * (1 - torch.exp(-density))
        return (weight[..., None] * color).sum(1)

    return against(launched, reference)


@triton.jit
def vorticity_of_staggered(u_ptr, v_ptr, w_ptr, out_ptr, D, H, W, BZ: tl.constexpr, BY: tl.constexpr, BX: tl.constexpr):
    # Velocities on the faces of cells, six differences on edges, and the strength of their turning where edges meet.
    z = tl.program_id(2) * BZ + tl.arange(0, BZ)[:, None, None]
    y = tl.program_id(1) * BY + tl.arange(0, BY)[None, :, None]
    x = tl.program_id(0) * BX + tl.arange(0, BX)[None, None, :]
    ok = (z < D) & (y < H) & (x < W)
    above, right, up = tl.where(z + 1 < D, H * W, 0), tl.where(x + 1 < W, 1, 0), tl.where(y + 1 < H, W, 0)
    at = (z * H + y) * W + x
    u, v, w = tl.load(u_ptr + at, mask=ok, other=0.0), tl.load(v_ptr + at, mask=ok, other=0.0), tl.load(w_ptr + at, mask=ok, other=0.0)
    a = tl.load(w_ptr + at + up, mask=ok, other=0.0) - w - tl.load(v_ptr + at + above, mask=ok, other=0.0) + v
    b = tl.load(u_ptr + at + above, mask=ok, other=0.0) - u - tl.load(w_ptr + at + right, mask=ok, other=0.0) + w
    c = tl.load(v_ptr + at + right, mask=ok, other=0.0) - v - tl.load(u_ptr + at + up, mask=ok, other=0.0) + u
    tl.store(out_ptr + at, tl.sqrt(a * a + b * b + c * c), mask=ok)


@case
def turning_of_velocities_on_faces_of_odd_boxes():
    d, h, w = 75, 190, 333
    u, v, z, out = f32(d, h, w), f32(d, h, w), f32(d, h, w), zeros(d, h, w, dtype="float32")
    launched = run(vorticity_of_staggered, (cdiv(w, 64), cdiv(h, 4), cdiv(d, 4)), (u, v, z, out, d, h, w), out, BZ=4, BY=4, BX=64, num_warps=4)

    def reference():
        ahead = lambda f, axis: torch.diff(f, dim=axis, append=f.narrow(axis, -1, 1))  # noqa: E731
        a, b, c = ahead(z, 1) - ahead(v, 0), ahead(u, 0) - ahead(z, 2), ahead(v, 2) - ahead(u, 1)
        return (a * a + b * b + c * c).sqrt()

    return against(launched, reference)


@triton.jit
def largest_of_cubes(x_ptr, best_ptr, where_ptr, D, H, W, BZ: tl.constexpr, BY: tl.constexpr, BX: tl.constexpr):
    # The largest of each 2x2x2 and which it was: a tile of three axes taken apart in six, its pairs brought together.
    z = tl.program_id(2) * BZ + tl.arange(0, BZ)[:, None, None]
    y = tl.program_id(1) * BY + tl.arange(0, BY)[None, :, None]
    x = tl.program_id(0) * BX + tl.arange(0, BX)[None, None, :]
    v = tl.load(x_ptr + (z * H + y) * W + x, mask=(z < D) & (y < H) & (x < W), other=-1e30)
    v = tl.reshape(v, (BZ // 2, 2, BY // 2, 2, BX // 2, 2))
    v = tl.reshape(tl.permute(v, (0, 2, 4, 1, 3, 5)), (BZ // 2, BY // 2, BX // 2, 8))
    best, where = tl.max(v, axis=3, return_indices=True)
    z = tl.program_id(2) * (BZ // 2) + tl.arange(0, BZ // 2)[:, None, None]
    y = tl.program_id(1) * (BY // 2) + tl.arange(0, BY // 2)[None, :, None]
    x = tl.program_id(0) * (BX // 2) + tl.arange(0, BX // 2)[None, None, :]
    at = (z * (H // 2) + y) * (W // 2) + x
    ok = (z < D // 2) & (y < H // 2) & (x < W // 2)
    tl.store(best_ptr + at, best.to(best_ptr.dtype.element_ty), mask=ok)
    tl.store(where_ptr + at, where.to(tl.uint8), mask=ok)


@case
def largest_of_cubes_of_two_and_which_it_was():
    d, h, w = 90, 202, 310
    x = rand(d, h, w)
    best, where = zeros(d // 2, h // 2, w // 2), zeros(d // 2, h // 2, w // 2, dtype="uint8")
    launched = run(largest_of_cubes, (cdiv(w, 32), cdiv(h, 8), cdiv(d, 4)), (x, best, where, d, h, w), (best, where), BZ=4, BY=8, BX=32)

    def reference():
        v = x.reshape(d // 2, 2, h // 2, 2, w // 2, 2).permute(0, 2, 4, 1, 3, 5).reshape(d // 2, h // 2, w // 2, 8)
        top = v.amax(3)
        return top, torch.where(v == top[..., None], arange(8), 8).amin(3)

    return against(launched, reference)


@triton.jit
def row_correlations(left_ptr, right_ptr, out_ptr, H, W, C: tl.constexpr, S: tl.constexpr, BX: tl.constexpr, BC: tl.constexpr):
    # Pixels of a row against S places to their left in the other image: a square of products, of which gathers take a slanted band.
    row, x0 = tl.program_id(1), tl.program_id(0) * BX
    x, z, s = x0 + tl.arange(0, BX), x0 - S + tl.arange(0, BX + S), tl.arange(0, S)
    acc = tl.zeros((BX, BX + S), tl.float32)
    for c0 in range(0, C, BC):
        c = c0 + tl.arange(0, BC)
        a = tl.load(left_ptr + (row * W + x)[:, None] * C + c[None, :], mask=(x < W)[:, None], other=0.0)
        b = tl.load(right_ptr + (row * W + z)[None, :] * C + c[:, None], mask=((z >= 0) & (z < W))[None, :], other=0.0)
        acc = tl.dot(a, b, acc)
    place = tl.arange(0, BX)[:, None] + S - s[None, :]
    band = tl.gather(acc, place, 1)
    tl.store(out_ptr + (row * W + x)[:, None] * S + s[None, :], band.to(out_ptr.dtype.element_ty), mask=(x < W)[:, None])


@case
def slanted_bands_of_products_of_rows_by_gathers():
    h, w, c, s = 200, 330, 64, 32
    left, right, out = rand(h, w, c), rand(h, w, c), zeros(h, w, s)
    launched = run(row_correlations, (cdiv(w, 32), h), (left, right, out, h, w), out, C=c, S=s, BX=32, BC=32, num_warps=4)

    def reference():
        moved = F.pad(right.float(), (0, 0, s - 1, 0)).unfold(1, s, 1).flip(3)
        return torch.einsum("hwc,hwcs->hws", left.float(), moved)

    return against(launched, reference)


@triton.jit
def patches_embedded(x_ptr, w_ptr, place_ptr, g_ptr, y_ptr, P, PX, H, W, E: tl.constexpr, S: tl.constexpr, BP: tl.constexpr):
    # Patches of 8x8 pixels of four channels: a dot for each row of a patch, then places and a norm over the embedding.
    p, e, k = tl.program_id(0) * BP + tl.arange(0, BP), tl.arange(0, E), tl.arange(0, 4 * S)
    per_image = (H // S) * PX
    image, within = p // per_image, p % per_image
    corner_at = ((image * H + within // PX * S) * W + within % PX * S) * 4
    acc = tl.zeros((BP, E), tl.float32)
    for i in tl.range(S, num_stages=3):
        x = tl.load(x_ptr + corner_at[:, None] + i * W * 4 + k[None, :], mask=(p < P)[:, None], other=0.0)
        acc = tl.dot(x, tl.load(w_ptr + (i * 4 * S + k)[:, None] * E + e[None, :]), acc)
    acc += tl.load(place_ptr + within[:, None] * E + e[None, :]).to(tl.float32)
    acc -= (tl.sum(acc, axis=1) / E)[:, None]
    acc *= tl.rsqrt(tl.sum(acc * acc, axis=1) / E + 1e-5)[:, None] * tl.load(g_ptr + e)[None, :]
    tl.store(y_ptr + p[:, None] * E + e[None, :], acc.to(y_ptr.dtype.element_ty), mask=(p < P)[:, None])


@case
def patches_of_8x8_embedded_placed_and_normed():
    n, h, w, e, s = 10, 216, 232, 128, 8
    px, per_image = w // s, (h // s) * (w // s)
    x, weight, place, g, y = rand(n, h, w, 4), rand(s * s * 4, e) / 16, rand(per_image, e), f32(e), zeros(n * per_image, e)
    args = x, weight, place, g, y, n * per_image, px, h, w
    launched = run(patches_embedded, (cdiv(n * per_image, 64),), args, y, E=e, S=s, BP=64, num_warps=8)

    def reference():
        z = x.float().reshape(n, h // s, s, px, s * 4).transpose(2, 3).reshape(n, per_image, -1) @ weight.float() + place.float()
        return F.layer_norm(z, (e,)).mul(g).reshape(y.shape)

    return against(launched, reference)


@triton.jit
def affine_in_fixed_point(x_ptr, y_ptr, H, W, OH, OW, a, b, c, d, e, f, BY: tl.constexpr, BX: tl.constexpr):
    # Pixels of four bytes between four others, all in integers: places in 256ths, a channel at a time out of words and into one.
    y = tl.program_id(1) * BY + tl.arange(0, BY)[:, None]
    x = tl.program_id(0) * BX + tl.arange(0, BX)[None, :]
    u, v = a * x + b * y + c, d * x + e * y + f
    x0, y0, fx, fy = u >> 8, v >> 8, u & 255, v & 255
    inside = (x0 >= 0) & (x0 < W - 1) & (y0 >= 0) & (y0 < H - 1) & (x < OW) & (y < OH)
    at = y0 * W + x0
    p00, p01 = tl.load(x_ptr + at, mask=inside, other=0), tl.load(x_ptr + at + 1, mask=inside, other=0)
    p10, p11 = tl.load(x_ptr + at + W, mask=inside, other=0), tl.load(x_ptr + at + W + 1, mask=inside, other=0)
    word = tl.zeros((BY, BX), tl.int32)
    for channel in tl.static_range(4):
        s = 8 * channel
        top = ((p00 >> s) & 255) * (256 - fx) + ((p01 >> s) & 255) * fx
        low = ((p10 >> s) & 255) * (256 - fx) + ((p11 >> s) & 255) * fx
        word = word | (((top * (256 - fy) + low * fy + 32768) >> 16) << s)
    tl.store(y_ptr + y * OW + x, word, mask=(x < OW) & (y < OH))


@case
def pixels_of_four_bytes_turned_in_fixed_point():
    h, w, oh, ow = 1000, 1500, 1300, 1301
    x, y = ints(-(2**31), 2**31 - 1, h, w), zeros(oh, ow, dtype="int32")
    numbers = 230, -87, 60 * 256 + 11, 87, 230, -40 * 256 - 5
    launched = run(affine_in_fixed_point, (cdiv(ow, 64), cdiv(oh, 8)), (x, y, h, w, oh, ow, *numbers), y, BY=8, BX=64)

    def reference():
        a, b, c, d, e, f = numbers
        j, i = arange(ow, "int64"), arange(oh, "int64")[:, None]
        u, v = a * j + b * i + c, d * j + e * i + f
        x0, y0, fx, fy = u >> 8, v >> 8, (u & 255)[..., None], (v & 255)[..., None]
        inside = (x0 >= 0) & (x0 < w - 1) & (y0 >= 0) & (y0 < h - 1)
        x0, y0 = x0.clamp(0, w - 2), y0.clamp(0, h - 2)
        parts = x.view(torch.uint8).reshape(h, w, 4).long()
        top = parts[y0, x0] * (256 - fx) + parts[y0, x0 + 1] * fx
        low = parts[y0 + 1, x0] * (256 - fx) + parts[y0 + 1, x0 + 1] * fx
        z = ((top * (256 - fy) + low * fy + 32768) >> 16) * inside[..., None]
        return z.to(torch.uint8).contiguous().view(torch.int32)[..., 0]

    return against(launched, reference)


@triton.jit
def squared_distances_down_columns(x_ptr, y_ptr, H, W, BY: tl.constexpr, BX: tl.constexpr, BW: tl.constexpr):
    # min over v of x[v] + (y - v)^2 in blocks of rows: a tile of rows by rows by columns, least along its middle.
    y = tl.program_id(1) * BY + tl.arange(0, BY)
    x = tl.program_id(0) * BX + tl.arange(0, BX)
    image = tl.program_id(2) * H * W
    least = tl.full((BY, BX), 2147483647, tl.int32)
    for v0 in range(0, H, BW):
        v = v0 + tl.arange(0, BW)
        f = tl.load(x_ptr + image + v[:, None] * W + x[None, :], mask=(v < H)[:, None] & (x < W)[None, :], other=1 << 28)
        away = y[:, None] - v[None, :]
        least = tl.minimum(least, tl.min(f[None, :, :] + (away * away)[:, :, None], axis=1))
    tl.store(y_ptr + image + y[:, None] * W + x[None, :], least, mask=(y < H)[:, None] & (x < W)[None, :])


@case
def least_sums_of_squares_down_columns_along_a_middle_axis():
    n, h, w = 6, 200, 300
    x, y = ints(0, 30, n, h, w).square() * 20, zeros(n, h, w, dtype="int32")
    launched = run(squared_distances_down_columns, (cdiv(w, 16), cdiv(h, 16), n), (x, y, h, w), y, BY=16, BX=16, BW=16, num_warps=4)
    away = lambda: (arange(h)[:, None] - arange(h)).square()  # noqa: E731
    return against(launched, lambda: torch.stack([(image[None] + away()[..., None]).amin(1) for image in x]))


@triton.jit
def colors_by_local_maps(grid_ptr, guide_ptr, x_ptr, y_ptr, H, W, GH, GW, GD: tl.constexpr, BP: tl.constexpr):
    # A map of colors to colors for each pixel, between eight of a coarse grid: tiles of sixteen numbers, read as 4x4, times a vector.
    p, j = tl.program_id(0) * BP + tl.arange(0, BP), tl.arange(0, 16)
    ok = p < H * W
    gx = (p % W).to(tl.float32) * (GW - 1) / W
    gy = (p // W).to(tl.float32) * (GH - 1) / H
    gz = tl.load(guide_ptr + p, mask=ok, other=0.0) * (GD - 1.001)
    x0, y0, z0 = gx.to(tl.int32), gy.to(tl.int32), gz.to(tl.int32)
    fx, fy, fz = gx - x0.to(tl.float32), gy - y0.to(tl.float32), gz - z0.to(tl.float32)
    m = tl.zeros((BP, 16), tl.float32)
    for corner_of in tl.static_range(8):
        dx, dy, dz = corner_of & 1, (corner_of >> 1) & 1, corner_of >> 2
        weight = (fx if dx else 1 - fx) * (fy if dy else 1 - fy) * (fz if dz else 1 - fz)
        at = ((y0 + dy) * GW + x0 + dx) * GD + z0 + dz
        m += weight[:, None] * tl.load(grid_ptr + at[:, None] * 16 + j[None, :], mask=ok[:, None], other=0.0)
    c = tl.load(x_ptr + p[:, None] * 4 + tl.arange(0, 4)[None, :], mask=ok[:, None], other=0.0).to(tl.float32)
    out = tl.sum(tl.reshape(m, (BP, 4, 4)) * c[:, None, :], axis=2)
    tl.store(y_ptr + p[:, None] * 4 + tl.arange(0, 4)[None, :], out.to(y_ptr.dtype.element_ty), mask=ok[:, None])


@case
def colors_by_maps_between_eight_of_a_coarse_grid():
    h, w, gh, gw, gd = 500, 700, 17, 23, 8
    grid, guide, x, y = f32(gh, gw, gd, 16), uniform(h, w), rand(h, w, 4), zeros(h, w, 4)
    args = grid, guide, x, y, h, w, gh, gw
    launched = run(colors_by_local_maps, (cdiv(h * w, 64),), args, y, GD=gd, BP=64, num_warps=4)

    def reference():
        j, i = arange(w).float() * (gw - 1) / w, arange(h).float() * (gh - 1) / h
        gx, gy, gz = j.expand(h, w), i[:, None].expand(h, w), guide * (gd - 1.001)
        where = torch.stack([gz * 2 / (gd - 1) - 1, gx * 2 / (gw - 1) - 1, gy * 2 / (gh - 1) - 1], 2)
        m = F.grid_sample(grid.permute(3, 0, 1, 2)[None], where[None, None], align_corners=True)[0, :, 0]
        return torch.einsum("abhw,hwb->hwa", m.reshape(4, 4, h, w), x.float())

    return against(launched, reference)


@triton.jit
def cubes_of_taps(x_ptr, w_ptr, b_ptr, y_ptr, D, H, W, C: tl.constexpr, O: tl.constexpr, BY: tl.constexpr, BX: tl.constexpr):
    # 3x3x3 taps of 16 channels: boxes of four axes, past the borders too, are rows of the dots; two warps.
    z, y0, x0 = tl.program_id(2), tl.program_id(1) * BY, tl.program_id(0) * BX
    x = tl.make_tensor_descriptor(x_ptr, [D, H, W, C], [H * W * C, W * C, C, 1], [1, BY, BX, C])
    y = tl.make_tensor_descriptor(y_ptr, [D, H, W, O], [H * W * O, W * O, O, 1], [1, BY, BX, O])
    c, o = tl.arange(0, C), tl.arange(0, O)
    acc = tl.zeros((BY * BX, O), tl.float32) + tl.load(b_ptr + o)[None, :]
    for tap in range(27):
        box = x.load([z + tap // 9 - 1, y0 + tap // 3 % 3 - 1, x0 + tap % 3 - 1, 0])
        acc = tl.dot(tl.reshape(box, (BY * BX, C)), tl.load(w_ptr + (tap * C + c)[:, None] * O + o[None, :]), acc)
    acc = tl.where(acc > 0.0, acc, tl.exp(tl.minimum(acc, 0.0)) - 1.0)
    y.store([z, y0, x0, 0], tl.reshape(acc.to(y_ptr.dtype.element_ty), (1, BY, BX, O)))


@case
def cubes_of_taps_by_boxes_of_four_axes_two_warps():
    d, h, w, c, o = 40, 60, 70, 16, 32
    x, weight, bias, y = rand(d, h, w, c), rand(27, c, o) / 20, f32(o), zeros(d, h, w, o)
    grid = cdiv(w, 16), cdiv(h, 4), d
    launch, args = run(cubes_of_taps, grid, (x, weight, bias, y, d, h, w), y, C=c, O=o, BY=4, BX=16, num_warps=2, num_stages=3)

    def told(*args):
        triton.set_allocator(lambda size, align, stream: torch.empty(size, device="cuda", dtype=torch.int8))
        return launch(*args)

    def reference():
        taps = weight.float().reshape(3, 3, 3, c, o).permute(4, 3, 0, 1, 2)
        return F.elu(F.conv3d(x.float().permute(3, 0, 1, 2)[None], taps, bias, padding=1))[0].permute(1, 2, 3, 0)

    return against((told, args), reference)


@triton.jit
def points_spread_to_voxels(p_ptr, g_ptr, grid_ptr, N, G, C: tl.constexpr, BN: tl.constexpr):
    # Gradients of features between voxels: each goes to eight corners by its weights, in tiles of corners by channels.
    n, k, c = tl.program_id(0) * BN + tl.arange(0, BN)[:, None], tl.arange(0, 8)[None, :], tl.arange(0, C)
    x = tl.load(p_ptr + 3 * n, mask=n < N, other=0.0) * (G - 1.001)
    y = tl.load(p_ptr + 3 * n + 1, mask=n < N, other=0.0) * (G - 1.001)
    z = tl.load(p_ptr + 3 * n + 2, mask=n < N, other=0.0) * (G - 1.001)
    dx, dy, dz = k & 1, (k >> 1) & 1, k >> 2
    x0, y0, z0 = x.to(tl.int32), y.to(tl.int32), z.to(tl.int32)
    fx, fy, fz = x - x0.to(tl.float32), y - y0.to(tl.float32), z - z0.to(tl.float32)
    weight = tl.where(dx == 1, fx, 1 - fx) * tl.where(dy == 1, fy, 1 - fy) * tl.where(dz == 1, fz, 1 - fz)
    at = ((z0 + dz) * G + y0 + dy) * G + x0 + dx
    g = tl.load(g_ptr + n * C + c[None, :], mask=n < N, other=0.0).to(tl.float32)
    tl.atomic_add(grid_ptr + at[:, :, None] * C + c[None, None, :], weight[:, :, None] * g[:, None, :], mask=(n < N)[:, :, None], sem="relaxed")


@case
def gradients_of_points_spread_to_eight_corners():
    n, g, c = 30000, 48, 8
    p, grad, grid = uniform(n, 3), rand(n, c), zeros(g, g, g, c, dtype="float32")
    launched = run(points_spread_to_voxels, (cdiv(n, 16),), (p, grad, grid, n, g), grid, C=c, BN=16, num_warps=4)

    def reference():
        out, q = torch.zeros(g * g * g, c, device=p.device), p * (g - 1.001)
        low = q.long()
        f = q - low
        for k in range(8):
            d = torch.tensor([k & 1, k >> 1 & 1, k >> 2], device=p.device)
            weight, (x, y, z) = torch.where(d == 1, f, 1 - f).prod(1), (low + d).unbind(1)
            out.index_add_(0, (z * g + y) * g + x, weight[:, None] * grad.float())
        return out.reshape(g, g, g, c)

    return against(cleared(launched, grid), reference)


@triton.jit
def corners_of_running_sums(x_ptr, y_ptr, out_ptr, D, H, W, S: tl.constexpr):
    # Sums over all that is before, in bricks along three axes, of one volume; their mean product with another, a number a brick.
    i = tl.arange(0, S)
    z, y, x = tl.program_id(2) * S + i[:, None, None], tl.program_id(1) * S + i[None, :, None], tl.program_id(0) * S + i[None, None, :]
    ok = (z < D) & (y < H) & (x < W)
    at = (z * H + y) * W + x
    v = tl.load(x_ptr + at, mask=ok, other=0.0).to(tl.float32)
    v = tl.cumsum(tl.cumsum(tl.cumsum(v, axis=0), axis=1), axis=2)
    v = v * tl.load(y_ptr + at, mask=ok, other=0.0)
    total = tl.sum(tl.sum(tl.sum(v, axis=1), axis=1), axis=0)
    tl.store(out_ptr + (tl.program_id(2) * tl.num_programs(1) + tl.program_id(1)) * tl.num_programs(0) + tl.program_id(0), total)


@case
def running_sums_along_three_axes_of_bricks():
    d, h, w, s = 150, 170, 180, 16
    x, y, out = uniform(d, h, w).half(), uniform(d, h, w), zeros(cdiv(d, s), cdiv(h, s), cdiv(w, s), dtype="float32")
    launched = run(corners_of_running_sums, (cdiv(w, s), cdiv(h, s), cdiv(d, s)), (x, y, out, d, h, w), out, S=s, num_warps=8)

    def reference():
        bricks = [F.pad(v.float(), (0, -w % s, 0, -h % s, 0, -d % s)).unfold(0, s, s).unfold(1, s, s).unfold(2, s, s) for v in (x, y)]
        return (bricks[0].cumsum(3).cumsum(4).cumsum(5) * bricks[1]).sum((3, 4, 5))

    return against(launched, reference)


@triton.jit
def pixels_and_coarser_ones(x_ptr, w_ptr, coarse_ptr, y_ptr, P, H, W, C, O: tl.constexpr, BP: tl.constexpr, BC: tl.constexpr):
    # A product of each pixel's channels, planes apart, plus the coarser image's pixel that covers it, which lies with channels last.
    p, o = tl.program_id(0) * BP + tl.arange(0, BP), tl.arange(0, O)
    image, at = tl.program_id(1), p
    acc = tl.zeros((O, BP), tl.float32)
    for c0 in range(0, C, BC):
        c = c0 + tl.arange(0, BC)
        w = tl.load(w_ptr + o[:, None] * C + c[None, :], mask=(c < C)[None, :], other=0.0)
        x = tl.load(x_ptr + (image * C + c)[:, None] * P + at[None, :], mask=(c < C)[:, None] & (p < P)[None, :], other=0.0)
        acc = tl.dot(w, x, acc)
    covers = (p // W // 2) * (W // 2) + p % W // 2
    coarse = tl.load(coarse_ptr + (image * (P // 4) + covers)[:, None] * O + o[None, :], mask=(p < P)[:, None], other=0.0)
    y = acc.T + coarse.to(tl.float32)
    tl.store(y_ptr + (image * P + p)[:, None] * O + o[None, :], y.to(y_ptr.dtype.element_ty), mask=(p < P)[:, None])


@case
def pixels_of_planes_multiplied_plus_coarser_pixels():
    n, c, h, w, o = 8, 90, 62, 78, 64
    x, weight, coarse, y = rand(n, c, h, w), rand(o, c) / 9, rand(n, h // 2, w // 2, o), zeros(n, h, w, o)
    args = x, weight, coarse, y, h * w, h, w, c
    launched = run(pixels_and_coarser_ones, (cdiv(h * w, 64), n), args, y, O=o, BP=64, BC=32, num_warps=4)

    def reference():
        wide = coarse.float().repeat_interleave(2, 1).repeat_interleave(2, 2)
        return torch.einsum("nchw,oc->nhwo", x.float(), weight.float()) + wide

    return against(launched, reference)


@triton.jit
def merged_patches(x_ptr, w_ptr, column_ptr, b_ptr, y_ptr, M, H, W, C, N: tl.constexpr, BM: tl.constexpr, BK: tl.constexpr):
    # Four pixels become one of 4C channels, normed, multiplied: sums of the operand come from the loop, and the norm follows the product.
    m, n = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, N)
    column, row = m % (W // 2), m // (W // 2)
    corner_at = (row * 2 * W + column * 2) * C
    acc = tl.zeros((BM, N), tl.float32)
    one, two = tl.zeros((BM,), tl.float32), tl.zeros((BM,), tl.float32)
    for k0 in range(0, 4 * C, BK):
        k = k0 + tl.arange(0, BK)
        pixel = k // C
        at = ((pixel & 1) * W + (pixel >> 1)) * C + k % C
        x = tl.load(x_ptr + corner_at[:, None] + at[None, :], mask=(m < M)[:, None], other=0.0)
        wide = x.to(tl.float32)
        one += tl.sum(wide, axis=1)
        two += tl.sum(wide * wide, axis=1)
        acc = tl.dot(x, tl.load(w_ptr + k[:, None] * N + n[None, :]), acc)
    mean = one / (4 * C)
    rstd = tl.rsqrt(two / (4 * C) - mean * mean + 1e-5)
    y = (acc - mean[:, None] * tl.load(column_ptr + n)[None, :]) * rstd[:, None] + tl.load(b_ptr + n)[None, :]
    tl.store(y_ptr + m[:, None] * N + n[None, :], y.to(y_ptr.dtype.element_ty), mask=(m < M)[:, None])


@case
def merged_patches_normed_after_their_product():
    b, h, w, c, n = 12, 54, 50, 96, 128
    x, weight, bias = rand(b, h, w, c), rand(4 * c, n) / 20, f32(n)
    m, y = b * (h // 2) * (w // 2), zeros(b, h // 2, w // 2, n)
    args = x, weight, weight.float().sum(0), bias, y, m, h, w, c
    launched = run(merged_patches, (cdiv(m, 64),), args, y, N=n, BM=64, BK=32, num_warps=4, num_stages=4)

    def reference():
        four = torch.cat([x[:, i::2, j::2] for j in range(2) for i in range(2)], 3).float()
        return F.layer_norm(four, (4 * c,)) @ weight.float() + bias

    return against(launched, reference)


@triton.jit
def depths_by_sweep(ref_ptr, src_ptr, slope_ptr, out_ptr, P, W, near, gap, C: tl.constexpr, S: tl.constexpr, BP: tl.constexpr, BC: tl.constexpr):
    # For each pixel S places along a line in another image: products of features in tiles of three axes, then a softmax of depths.
    p, s = tl.program_id(0) * BP + tl.arange(0, BP), tl.arange(0, S)
    depth = near + gap * s.to(tl.float32)
    x = (p % W).to(tl.float32)[:, None] - tl.load(slope_ptr + p, mask=p < P, other=0.0)[:, None] / depth[None, :]
    x = tl.minimum(tl.maximum(x, 0.0), W - 1.001)
    x0 = x.to(tl.int32)
    f = (x - x0.to(tl.float32))[:, :, None]
    at = (p // W * W)[:, None] + x0
    score = tl.zeros((BP, S), tl.float32)
    for c0 in range(0, C, BC):
        c = c0 + tl.arange(0, BC)
        ok = (p < P)[:, None, None]
        a = tl.load(src_ptr + at[:, :, None] * C + c[None, None, :], mask=ok, other=0.0).to(tl.float32)
        b = tl.load(src_ptr + (at + 1)[:, :, None] * C + c[None, None, :], mask=ok, other=0.0).to(tl.float32)
        ref = tl.load(ref_ptr + p[:, None] * C + c[None, :], mask=(p < P)[:, None], other=0.0).to(tl.float32)
        score += tl.sum((a + (b - a) * f) * ref[:, None, :], axis=2)
    score = tl.exp(score - tl.max(score, axis=1)[:, None])
    tl.store(out_ptr + p, tl.sum(score * depth[None, :], axis=1) / tl.sum(score, axis=1), mask=p < P)


@case
def depths_expected_along_lines_of_another_image():
    h, w, c, s = 100, 161, 32, 32
    ref, src, slope, out = rand(h, w, c) / 4, rand(h, w, c), uniform(h, w) * 60, zeros(h, w, dtype="float32")
    launched = run(depths_by_sweep, (cdiv(h * w, 8),), (ref, src, slope, out, h * w, w, 2.0, 0.5), out, C=c, S=s, BP=8, BC=16, num_warps=4)

    def reference():
        depth = 2 + 0.5 * arange(s).float()
        x = (arange(w).float()[:, None] - slope[..., None] / depth).clamp(0, w - 1.001)
        x0 = x.long()
        rows = arange(h, "int64")[:, None, None]
        a, b = src[rows, x0].float(), src[rows, x0 + 1].float()
        score = ((a + (b - a) * (x - x0)[..., None]) * ref.float()[:, :, None]).sum(3)
        return (score.softmax(2) * depth).sum(2)

    return against(launched, reference)


@triton.jit
def residual_to_coarse(u_ptr, f_ptr, out_ptr, N, NC, h2, BZ: tl.constexpr, BY: tl.constexpr, BX: tl.constexpr):
    # What is left of a Poisson problem at 27 fine points around each coarse one, weighted 1 2 1 along each axis, in double.
    z = tl.program_id(2) * BZ + tl.arange(0, BZ)[:, None, None]
    y = tl.program_id(1) * BY + tl.arange(0, BY)[None, :, None]
    x = tl.program_id(0) * BX + tl.arange(0, BX)[None, None, :]
    ok = (z > 0) & (y > 0) & (x > 0) & (z < NC - 1) & (y < NC - 1) & (x < NC - 1)
    middle = (2 * z * N + 2 * y) * N + 2 * x
    total = tl.zeros((BZ, BY, BX), tl.float64)
    for i in range(-1, 2):
        for j in range(-1, 2):
            for k in tl.static_range(-1, 2):
                at = middle + (i * N + j) * N + k
                u = tl.load(u_ptr + at, mask=ok, other=0.0) * -6.0
                u += tl.load(u_ptr + at + 1, mask=ok, other=0.0) + tl.load(u_ptr + at - 1, mask=ok, other=0.0)
                u += tl.load(u_ptr + at + N, mask=ok, other=0.0) + tl.load(u_ptr + at - N, mask=ok, other=0.0)
                u += tl.load(u_ptr + at + N * N, mask=ok, other=0.0) + tl.load(u_ptr + at - N * N, mask=ok, other=0.0)
                left = tl.load(f_ptr + at, mask=ok, other=0.0) + u * h2
                total += left * ((2 - i * i) * (2 - j * j) * (2 - k * k)).to(tl.float64)
    tl.store(out_ptr + (z * NC + y) * NC + x, total / 64.0, mask=ok)


@case
def residuals_in_double_to_a_coarser_grid():
    n, nc = 129, 65
    u, f, out = rand(n, n, n, dtype="float64"), rand(n, n, n, dtype="float64"), zeros(nc, nc, nc, dtype="float64")
    launched = run(residual_to_coarse, (cdiv(nc, 16), cdiv(nc, 4), cdiv(nc, 4)), (u, f, out, n, nc, 4.0), out, BZ=4, BY=4, BX=16, num_warps=4)

    def reference():
        taps = torch.zeros(3, 3, 3, device=u.device, dtype=u.dtype)
        taps[1, 1, 1] = -6
        for k in ((0, 1, 1), (2, 1, 1), (1, 0, 1), (1, 2, 1), (1, 1, 0), (1, 1, 2)):
            taps[k] = 1
        left = f[1:-1, 1:-1, 1:-1] + 4 * F.conv3d(u[None, None], taps[None, None])[0, 0]
        w = torch.tensor([1.0, 2.0, 1.0], device=u.device, dtype=u.dtype)
        w = w[:, None, None] * w[:, None] * w / 64
        return F.pad(F.conv3d(left[None, None], w[None, None], stride=2)[0, 0], (1,) * 6)

    return against(launched, reference)


@triton.jit
def kernel_points(xyz_ptr, neighbor_ptr, f_ptr, point_ptr, w_ptr, y_ptr, N, C: tl.constexpr, O: tl.constexpr, BP: tl.constexpr, NB: tl.constexpr, KP: tl.constexpr):
    # A convolution on points: how near 16 neighbors are to 16 places of a kernel, times features, in a dot of three axes, then a wide dot.
    p, j, k, c, o = tl.program_id(0) * BP + tl.arange(0, BP), tl.arange(0, NB), tl.arange(0, KP), tl.arange(0, C), tl.arange(0, O)
    q = tl.load(neighbor_ptr + p[:, None] * NB + j[None, :], mask=(p < N)[:, None], other=0)
    near = tl.zeros((BP, KP, NB), tl.float32)
    for axis in tl.static_range(3):
        d = tl.load(xyz_ptr + q * 3 + axis) - tl.load(xyz_ptr + p * 3 + axis, mask=p < N, other=0.0)[:, None]
        d = d[:, None, :] - tl.load(point_ptr + k * 3 + axis)[None, :, None]
        near += d * d
    near = tl.maximum(1.0 - tl.sqrt(near), 0.0)
    f = tl.load(f_ptr + q[:, :, None] * C + c[None, None, :])
    g = tl.dot(near.to(f.dtype), f)
    g = tl.reshape(g, (BP, KP * C)).to(f.dtype)
    w = tl.load(w_ptr + tl.arange(0, KP * C)[:, None] * O + o[None, :])
    tl.store(y_ptr + p[:, None] * O + o[None, :], tl.dot(g, w).to(y_ptr.dtype.element_ty), mask=(p < N)[:, None])


@case
def points_convolved_by_16_neighbors_and_16_places():
    n, c, o, nb, kp = 30000, 16, 32, 16, 16
    xyz, neighbor, f = uniform(n, 3), ints(0, n, n, nb), rand(n, c)
    point, w, y = uniform(kp, 3) * 2 - 1, rand(kp * c, o) / 16, zeros(n, o)
    launched = run(kernel_points, (cdiv(n, 16),), (xyz, neighbor, f, point, w, y, n), y, C=c, O=o, BP=16, NB=nb, KP=kp, num_warps=4)

    def reference():
        q = neighbor.long()
        d = (xyz[q] - xyz[:, None])[:, None] - point[:, None]
        near = (1 - d.square().sum(3).sqrt()).clamp(min=0)
        return (near @ f[q].float()).reshape(n, kp * c) @ w.float()

    return against(launched, reference)


@triton.jit
def frames_at_pixels(q_ptr, k_ptr, v_ptr, o_ptr, P, HEADS, scale, T: tl.constexpr, D: tl.constexpr, BP: tl.constexpr):
    # Frames of a pixel attend to those before them: four pixels are an axis of FP8 dots of 16x32x16, and then of halves.
    head = tl.program_id(1)
    p = tl.program_id(0) * BP + tl.arange(0, BP)[:, None, None]
    t, s, d = tl.arange(0, T)[None, :, None], tl.arange(0, T)[None, None, :], tl.arange(0, D)[None, None, :]
    at = ((t * P + p) * HEADS + head) * D + d
    turned = ((s * P + p) * HEADS + head) * D + tl.arange(0, D)[None, :, None]
    q = tl.load(q_ptr + at, mask=p < P, other=0.0)
    k = tl.load(k_ptr + turned, mask=p < P, other=0.0)
    score = tl.where(s <= t, tl.dot(q, k) * scale, float("-inf"))
    score = tl.exp(score - tl.max(score, axis=2, keep_dims=True))
    score = score / tl.sum(score, axis=2, keep_dims=True)
    v = tl.load(v_ptr + at, mask=p < P, other=0.0).to(tl.float16)
    tl.store(o_ptr + at, tl.dot(score.to(tl.float16), v).to(o_ptr.dtype.element_ty), mask=p < P)


@case
def frames_of_four_pixels_attend_in_fp8_dots_of_three_axes():
    t, p, heads, d = 16, 6001, 4, 32
    q, k, v, o = f8(t, p, heads, d), f8(t, p, heads, d), f8(t, p, heads, d), zeros(t, p, heads, d)
    launched = run(frames_at_pixels, (cdiv(p, 4), heads), (q, k, v, o, p, heads, d**-0.5), o, T=t, D=d, BP=4, num_warps=4)

    def reference():
        a, b, c = (x.float().permute(1, 2, 0, 3) for x in (q, k, v))
        return F.scaled_dot_product_attention(a, b, c, is_causal=True).permute(2, 0, 1, 3)

    return against(launched, reference)
