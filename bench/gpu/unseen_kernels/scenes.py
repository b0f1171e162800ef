"""Scenes and fields: boxes and regions, clouds of points, splats and rays, filters of pictures, convolutions, flows on grids."""

import torch
import triton
import triton.language as tl

from .common import arange, case, cdiv, f32, ints, rand, run, uniform, zeros


@triton.jit
def _bilinear(ptr, y, x, H, W, mask):
    y = tl.maximum(y, 0.0)
    x = tl.maximum(x, 0.0)
    y0 = tl.minimum(y.to(tl.int32), H - 1)
    x0 = tl.minimum(x.to(tl.int32), W - 1)
    y1, x1 = tl.minimum(y0 + 1, H - 1), tl.minimum(x0 + 1, W - 1)
    ly = tl.minimum(y - y0, 1.0)
    lx = tl.minimum(x - x0, 1.0)
    v00 = tl.load(ptr + y0 * W + x0, mask=mask, other=0.0).to(tl.float32)
    v01 = tl.load(ptr + y0 * W + x1, mask=mask, other=0.0).to(tl.float32)
    v10 = tl.load(ptr + y1 * W + x0, mask=mask, other=0.0).to(tl.float32)
    v11 = tl.load(ptr + y1 * W + x1, mask=mask, other=0.0).to(tl.float32)
    return (1 - ly) * ((1 - lx) * v00 + lx * v01) + ly * ((1 - lx) * v10 + lx * v11)


@triton.jit
def roi_align_kernel(feat_ptr, roi_ptr, out_ptr, C, H, W, scale, POOL: tl.constexpr, RATIO: tl.constexpr, BLOCK: tl.constexpr):
    # A region and channel a program; bins are lanes, samples of a bin a loop.
    roi, c = tl.program_id(0), tl.program_id(1)
    batch = tl.load(roi_ptr + roi * 5).to(tl.int32)
    x1 = tl.load(roi_ptr + roi * 5 + 1) * scale - 0.5
    y1 = tl.load(roi_ptr + roi * 5 + 2) * scale - 0.5
    bw = (tl.load(roi_ptr + roi * 5 + 3) * scale - 0.5 - x1) / POOL
    bh = (tl.load(roi_ptr + roi * 5 + 4) * scale - 0.5 - y1) / POOL
    bins = tl.arange(0, BLOCK)
    mask = bins < POOL * POOL
    py, px = bins // POOL, bins % POOL
    base = feat_ptr + (batch * C + c) * H * W
    acc = tl.zeros((BLOCK,), tl.float32)
    for iy in tl.static_range(RATIO):
        for ix in tl.static_range(RATIO):
            y = y1 + py * bh + (iy + 0.5) * bh / RATIO
            x = x1 + px * bw + (ix + 0.5) * bw / RATIO
            ok = mask & (y > -1.0) & (y < H) & (x > -1.0) & (x < W)
            acc += _bilinear(base, y, x, H, W, ok)
    tl.store(out_ptr + (roi * C + c) * POOL * POOL + bins, (acc / (RATIO * RATIO)).to(out_ptr.dtype.element_ty), mask=mask)


@case
def roi_align_7x7():
    rois, b, c, h, w = 300, 2, 128, 100, 152
    corner = uniform(rois, 2) * torch.tensor([1000.0, 600.0], device="cuda")
    box = torch.cat((ints(0, b, rois, 1).float(), corner, corner + uniform(rois, 2) * 300 + 20), 1).contiguous()
    out = zeros(rois, c, 7, 7)
    return run(roi_align_kernel, (rois, c), (rand(b, c, h, w), box, out, c, h, w, 1 / 8), out, POOL=7, RATIO=2, BLOCK=64, num_warps=2)


@triton.jit
def voxel_scatter(points_ptr, feat_ptr, count_ptr, sum_ptr, coord_ptr, n, inv_size, gx, gy, gz, F: tl.constexpr, BLOCK: tl.constexpr):
    # Points to voxels: counts and sums of features; a point outside belongs to none.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    x = tl.floor(tl.load(points_ptr + i * 3, mask=m, other=-1.0) * inv_size).to(tl.int32)
    y = tl.floor(tl.load(points_ptr + i * 3 + 1, mask=m, other=-1.0) * inv_size).to(tl.int32)
    z = tl.floor(tl.load(points_ptr + i * 3 + 2, mask=m, other=-1.0) * inv_size).to(tl.int32)
    inside = m & (x >= 0) & (x < gx) & (y >= 0) & (y < gy) & (z >= 0) & (z < gz)
    voxel = (z * gy + y) * gx + x
    tl.atomic_add(count_ptr + voxel, 1, mask=inside, sem="relaxed")
    f = tl.arange(0, F)
    v = tl.load(feat_ptr + i[:, None] * F + f[None, :], mask=m[:, None], other=0.0)
    tl.atomic_add(sum_ptr + voxel[:, None] * F + f[None, :], v, mask=inside[:, None], sem="relaxed")
    tl.store(coord_ptr + i, tl.where(inside, voxel, -1), mask=m)


@triton.jit
def voxel_means(count_ptr, sum_ptr, mean_ptr, voxels, F: tl.constexpr, BLOCK: tl.constexpr):
    v = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    f = tl.arange(0, F)
    m = v < voxels
    c = tl.load(count_ptr + v, mask=m, other=0)
    s = tl.load(sum_ptr + v[:, None] * F + f[None, :], mask=m[:, None] & (c > 0)[:, None], other=0.0)
    tl.store(mean_ptr + v[:, None] * F + f[None, :], (s / tl.maximum(c, 1)[:, None].to(tl.float32)).to(tl.float16), mask=m[:, None])


@case
def voxel_means_of_points():
    n, f, gx, gy, gz = 200000, 4, 128, 128, 16
    voxels = gx * gy * gz
    points = (uniform(n, 3) * torch.tensor([132.0, 132.0, 16.0], device="cuda") * 64).floor() / 64
    count, total, mean, where = zeros(voxels, dtype="int32"), zeros(voxels, f, dtype="float32"), zeros(voxels, f), zeros(n, dtype="int32")

    def launch(points, feat):
        count.zero_()
        total.zero_()
        voxel_scatter[(cdiv(n, 256),)](points, feat, count, total, where, n, 1.0, gx, gy, gz, F=f, BLOCK=256, num_warps=4)
        voxel_means[(cdiv(voxels, 256),)](count, total, mean, voxels, F=f, BLOCK=256, num_warps=4)
        return mean, where

    return launch, (points, f32(n, f))


@triton.jit
def deformable_conv_kernel(x_ptr, off_ptr, mask_ptr, w_ptr, y_ptr, H, W, C, COUT, stride_xb, stride_ob, stride_mb, stride_yb,
                           BLOCK_P: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_C: tl.constexpr):
    # Nine taps at places of their own, channels last: samples become the left side of a dot.
    p = tl.program_id(0) * BLOCK_P + tl.arange(0, BLOCK_P)
    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    b = tl.program_id(2)
    pm, nm = p < H * W, n < COUT
    oy, ox = p // W, p % W
    acc = tl.zeros((BLOCK_P, BLOCK_N), tl.float32)
    for tap in range(9):
        dy = tl.load(off_ptr + b * stride_ob + p * 18 + tap * 2, mask=pm, other=0.0)
        dx = tl.load(off_ptr + b * stride_ob + p * 18 + tap * 2 + 1, mask=pm, other=0.0)
        mod = tl.load(mask_ptr + b * stride_mb + p * 9 + tap, mask=pm, other=0.0)
        y = oy + tap // 3 - 1 + dy
        x = ox + tap % 3 - 1 + dx
        y0f, x0f = tl.floor(y), tl.floor(x)
        ly, lx = y - y0f, x - x0f
        y0, x0 = y0f.to(tl.int32), x0f.to(tl.int32)
        for c0 in range(0, C, BLOCK_C):
            c = c0 + tl.arange(0, BLOCK_C)
            v = tl.zeros((BLOCK_P, BLOCK_C), tl.float32)
            for corner in tl.static_range(4):
                cy, cx = y0 + corner // 2, x0 + corner % 2
                wy = ly if corner // 2 == 1 else 1.0 - ly
                wx = lx if corner % 2 == 1 else 1.0 - lx
                ok = pm & (cy >= 0) & (cy < H) & (cx >= 0) & (cx < W)
                s = tl.load(x_ptr + b * stride_xb + (cy * W + cx)[:, None] * C + c[None, :], mask=ok[:, None], other=0.0)
                v += s.to(tl.float32) * (wy * wx * mod)[:, None]
            w = tl.load(w_ptr + (tap * C + c)[:, None] * COUT + n[None, :], mask=nm[None, :], other=0.0)
            acc += tl.dot(v.to(w.dtype), w)
    tl.store(y_ptr + b * stride_yb + p[:, None] * COUT + n[None, :], acc.to(y_ptr.dtype.element_ty), mask=pm[:, None] & nm[None, :])


@case
def deformable_conv_v2_fused():
    b, h, w, c, cout = 2, 56, 56, 64, 128
    y = zeros(b, h * w, cout)
    args = rand(b, h * w, c), f32(b, h * w, 18), uniform(b, h * w, 9), rand(9, c, cout) * 0.1, y, h, w, c, cout
    args += h * w * c, h * w * 18, h * w * 9, h * w * cout
    return run(deformable_conv_kernel, (cdiv(h * w, 64), cout // 64, b), args, y, BLOCK_P=64, BLOCK_N=64, BLOCK_C=32, num_warps=4, num_stages=2)


@triton.jit
def bilateral_filter(img_ptr, out_ptr, H, W, inv_space, inv_range, R: tl.constexpr, BH: tl.constexpr, BW: tl.constexpr):
    y = tl.program_id(1) * BH + tl.arange(0, BH)[:, None]
    x = tl.program_id(0) * BW + tl.arange(0, BW)[None, :]
    plane = tl.program_id(2) * H * W
    inside = (y < H) & (x < W)
    center = tl.load(img_ptr + plane + y * W + x, mask=inside, other=0).to(tl.float32)
    acc = tl.zeros((BH, BW), tl.float32)
    norm = tl.zeros((BH, BW), tl.float32)
    for dy in range(-R, R + 1):
        yy = tl.minimum(tl.maximum(y + dy, 0), H - 1)
        for dx in tl.static_range(-R, R + 1):
            xx = tl.minimum(tl.maximum(x + dx, 0), W - 1)
            v = tl.load(img_ptr + plane + yy * W + xx, mask=inside, other=0).to(tl.float32)
            d = v - center
            w = tl.exp2(-(dx * dx + dy * dy) * inv_space - d * d * inv_range)
            acc += w * v
            norm += w
    tl.store(out_ptr + plane + y * W + x, acc / norm, mask=inside)


@case
def bilateral_7x7_of_bytes():
    h, w = 1080, 1920
    out = zeros(1, h, w, dtype="float32")
    args = ints(0, 256, 1, h, w, dtype="uint8"), out, h, w, 0.1, 0.0008
    return run(bilateral_filter, (cdiv(w, 64), cdiv(h, 8), 1), args, out, R=3, BH=8, BW=64, num_warps=4)


@triton.jit
def project_gaussians(mean_ptr, quat_ptr, scale_ptr, view_ptr, xy_ptr, conic_ptr, depth_ptr, radius_ptr, n, fx, fy, cx, cy, BLOCK: tl.constexpr):
    # Covariances from rotations and scales, seen by a camera: M = J R_view R S, conic = inverse of M M^T.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    px, py, pz = tl.load(mean_ptr + i * 3, m, 0.0), tl.load(mean_ptr + i * 3 + 1, m, 0.0), tl.load(mean_ptr + i * 3 + 2, m, 1.0)
    v00, v01, v02, v03 = tl.load(view_ptr), tl.load(view_ptr + 1), tl.load(view_ptr + 2), tl.load(view_ptr + 3)
    v10, v11, v12, v13 = tl.load(view_ptr + 4), tl.load(view_ptr + 5), tl.load(view_ptr + 6), tl.load(view_ptr + 7)
    v20, v21, v22, v23 = tl.load(view_ptr + 8), tl.load(view_ptr + 9), tl.load(view_ptr + 10), tl.load(view_ptr + 11)
    x = v00 * px + v01 * py + v02 * pz + v03
    y = v10 * px + v11 * py + v12 * pz + v13
    z = tl.maximum(v20 * px + v21 * py + v22 * pz + v23, 0.2)
    q0, q1, q2, q3 = tl.load(quat_ptr + i * 4, m, 1.0), tl.load(quat_ptr + i * 4 + 1, m, 0.0), tl.load(quat_ptr + i * 4 + 2, m, 0.0), tl.load(quat_ptr + i * 4 + 3, m, 0.0)
    inv = tl.rsqrt(q0 * q0 + q1 * q1 + q2 * q2 + q3 * q3)
    w, a, b, c = q0 * inv, q1 * inv, q2 * inv, q3 * inv
    s0, s1, s2 = tl.exp(tl.load(scale_ptr + i * 3, m, 0.0)), tl.exp(tl.load(scale_ptr + i * 3 + 1, m, 0.0)), tl.exp(tl.load(scale_ptr + i * 3 + 2, m, 0.0))
    r00, r01, r02 = (1 - 2 * (b * b + c * c)) * s0, 2 * (a * b - w * c) * s1, 2 * (a * c + w * b) * s2
    r10, r11, r12 = 2 * (a * b + w * c) * s0, (1 - 2 * (a * a + c * c)) * s1, 2 * (b * c - w * a) * s2
    r20, r21, r22 = 2 * (a * c - w * b) * s0, 2 * (b * c + w * a) * s1, (1 - 2 * (a * a + b * b)) * s2
    iz = 1.0 / z
    j0, j1 = fx * iz, fy * iz
    k0, k1 = -fx * x * iz * iz, -fy * y * iz * iz
    t00, t01, t02 = j0 * v00 + k0 * v20, j0 * v01 + k0 * v21, j0 * v02 + k0 * v22
    t10, t11, t12 = j1 * v10 + k1 * v20, j1 * v11 + k1 * v21, j1 * v12 + k1 * v22
    m00, m01, m02 = t00 * r00 + t01 * r10 + t02 * r20, t00 * r01 + t01 * r11 + t02 * r21, t00 * r02 + t01 * r12 + t02 * r22
    m10, m11, m12 = t10 * r00 + t11 * r10 + t12 * r20, t10 * r01 + t11 * r11 + t12 * r21, t10 * r02 + t11 * r12 + t12 * r22
    ca = m00 * m00 + m01 * m01 + m02 * m02 + 0.3
    cb = m00 * m10 + m01 * m11 + m02 * m12
    cc = m10 * m10 + m11 * m11 + m12 * m12 + 0.3
    det = 1.0 / (ca * cc - cb * cb)
    mid = 0.5 * (ca + cc)
    big = mid + tl.sqrt(tl.maximum(mid * mid - ca * cc + cb * cb, 0.1))
    tl.store(xy_ptr + i * 2, fx * x * iz + cx, mask=m)
    tl.store(xy_ptr + i * 2 + 1, fy * y * iz + cy, mask=m)
    tl.store(conic_ptr + i * 3, cc * det, mask=m)
    tl.store(conic_ptr + i * 3 + 1, -cb * det, mask=m)
    tl.store(conic_ptr + i * 3 + 2, ca * det, mask=m)
    tl.store(depth_ptr + i, z, mask=m)
    tl.store(radius_ptr + i, 3.0 * tl.sqrt(big), mask=m)


@case
def project_gaussians_to_screen():
    n = 500000
    view = torch.tensor([[0.96, 0.0, 0.28, 0.1], [0.0, 1.0, 0.0, -0.2], [-0.28, 0.0, 0.96, 6.0]], device="cuda")
    outs = zeros(n, 2, dtype="float32"), zeros(n, 3, dtype="float32"), zeros(n, dtype="float32"), zeros(n, dtype="float32")
    args = (f32(n, 3), f32(n, 4), f32(n, 3) * 0.5 - 2, view, *outs, n, 800.0, 800.0, 640.0, 360.0)
    return run(project_gaussians, (cdiv(n, 128),), args, (outs[0], outs[2], outs[3]), BLOCK=128, num_warps=4)


@triton.jit
def harmonics_to_color(dir_ptr, sh_ptr, rgb_ptr, n, BLOCK: tl.constexpr):
    # Sixteen coefficients for each of three channels.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    x, y, z = tl.load(dir_ptr + i * 3, m, 1.0), tl.load(dir_ptr + i * 3 + 1, m, 0.0), tl.load(dir_ptr + i * 3 + 2, m, 0.0)
    inv = tl.rsqrt(x * x + y * y + z * z + 1e-12)
    x, y, z = x * inv, y * inv, z * inv
    xx, yy, zz, xy, yz, xz = x * x, y * y, z * z, x * y, y * z, x * z
    for ch in tl.static_range(3):
        s = sh_ptr + i * 48 + ch
        c = 0.28209479 * tl.load(s, m, 0.0)
        c += 0.48860251 * (z * tl.load(s + 6, m, 0.0) - y * tl.load(s + 3, m, 0.0) - x * tl.load(s + 9, m, 0.0))
        c += 1.09254843 * (xy * tl.load(s + 12, m, 0.0) - yz * tl.load(s + 15, m, 0.0) - xz * tl.load(s + 21, m, 0.0))
        c += 0.31539157 * (2 * zz - xx - yy) * tl.load(s + 18, m, 0.0) + 0.54627422 * (xx - yy) * tl.load(s + 24, m, 0.0)
        c += -0.59004359 * y * (3 * xx - yy) * tl.load(s + 27, m, 0.0) + 2.89061144 * xy * z * tl.load(s + 30, m, 0.0)
        c += -0.45704580 * y * (4 * zz - xx - yy) * tl.load(s + 33, m, 0.0) + 0.37317633 * z * (2 * zz - 3 * xx - 3 * yy) * tl.load(s + 36, m, 0.0)
        c += -0.45704580 * x * (4 * zz - xx - yy) * tl.load(s + 39, m, 0.0) + 1.44530572 * z * (xx - yy) * tl.load(s + 42, m, 0.0)
        c += -0.59004359 * x * (xx - 3 * yy) * tl.load(s + 45, m, 0.0)
        tl.store(rgb_ptr + i * 3 + ch, tl.maximum(c + 0.5, 0.0), mask=m)


@case
def spherical_harmonics_colors():
    n = 400000
    rgb = zeros(n, 3, dtype="float32")
    return run(harmonics_to_color, (cdiv(n, 128),), (f32(n, 3), f32(n, 16, 3) * 0.3, rgb, n), rgb, BLOCK=128, num_warps=4)


@triton.jit
def composite_rays(sigma_ptr, rgb_ptr, t_ptr, color_ptr, depth_ptr, acc_ptr, n_rays, white, S: tl.constexpr, BLOCK_R: tl.constexpr):
    # Transmittance before a sample is the exponential of the sum of those in front of it.
    r = tl.program_id(0) * BLOCK_R + tl.arange(0, BLOCK_R)
    s = tl.arange(0, S)
    m = (r < n_rays)[:, None]
    at = r[:, None] * S + s[None, :]
    sigma = tl.load(sigma_ptr + at, mask=m, other=0.0)
    t0 = tl.load(t_ptr + r[:, None] * (S + 1) + s[None, :], mask=m, other=0.0)
    t1 = tl.load(t_ptr + r[:, None] * (S + 1) + s[None, :] + 1, mask=m, other=0.0)
    tau = tl.maximum(sigma, 0.0) * (t1 - t0)
    before = tl.cumsum(tau, axis=1) - tau
    w = tl.exp(-before) * (1.0 - tl.exp(-tau))
    total = tl.sum(w, axis=1)
    tl.store(acc_ptr + r, total, mask=r < n_rays)
    tl.store(depth_ptr + r, tl.sum(w * 0.5 * (t0 + t1), axis=1) / tl.maximum(total, 1e-6), mask=r < n_rays)
    for c in tl.static_range(3):
        v = tl.sigmoid(tl.load(rgb_ptr + at * 3 + c, mask=m, other=0.0).to(tl.float32))
        tl.store(color_ptr + r * 3 + c, tl.sum(w * v, axis=1) + (1.0 - total) * white, mask=r < n_rays)


@case
def composite_along_rays():
    rays, s = 30000, 128
    t = torch.sort(uniform(rays, s + 1) * 4 + 1, dim=1)[0].contiguous()
    color, depth, acc = zeros(rays, 3, dtype="float32"), zeros(rays, dtype="float32"), zeros(rays, dtype="float32")
    args = f32(rays, s), rand(rays, s, 3), t, color, depth, acc, rays, 1.0
    return run(composite_rays, (cdiv(rays, 4),), args, (color, depth, acc), S=s, BLOCK_R=4, num_warps=4)


@triton.jit
def hash_grid_encode(x_ptr, table_ptr, res_ptr, out_ptr, n, LEVELS: tl.constexpr, LOG2_T: tl.constexpr, BLOCK: tl.constexpr):
    # Eight corners of a cell at each resolution, hashed into a table of pairs of features.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    level = tl.program_id(1)
    m = i < n
    res = tl.load(res_ptr + level)
    x = tl.load(x_ptr + i * 3, mask=m, other=0.0) * res
    y = tl.load(x_ptr + i * 3 + 1, mask=m, other=0.0) * res
    z = tl.load(x_ptr + i * 3 + 2, mask=m, other=0.0) * res
    fx, fy, fz = tl.floor(x), tl.floor(y), tl.floor(z)
    wx, wy, wz = x - fx, y - fy, z - fz
    ix, iy, iz = fx.to(tl.int32).to(tl.uint32), fy.to(tl.int32).to(tl.uint32), fz.to(tl.int32).to(tl.uint32)
    f0 = tl.zeros((BLOCK,), tl.float32)
    f1 = tl.zeros((BLOCK,), tl.float32)
    table = table_ptr + level * (1 << LOG2_T) * 2
    for corner in tl.static_range(8):
        bx, by, bz = corner & 1, corner // 2 & 1, corner // 4
        h = (ix + bx) ^ ((iy + by) * 2654435761) ^ ((iz + bz) * 805459861)
        slot = (h & ((1 << LOG2_T) - 1)).to(tl.int32)
        w = (wx if bx == 1 else 1.0 - wx) * (wy if by == 1 else 1.0 - wy) * (wz if bz == 1 else 1.0 - wz)
        f0 += w * tl.load(table + slot * 2, mask=m, other=0.0).to(tl.float32)
        f1 += w * tl.load(table + slot * 2 + 1, mask=m, other=0.0).to(tl.float32)
    o = out_ptr + i * (LEVELS * 2) + level * 2
    tl.store(o, f0.to(tl.float16), mask=m)
    tl.store(o + 1, f1.to(tl.float16), mask=m)


@case
def hash_grid_encoding():
    n, levels, log2_t = 100000, 12, 17
    res = torch.tensor([float(int(16 * 1.4**l)) for l in range(levels)], device="cuda")
    out = zeros(n, levels * 2)
    args = (uniform(n, 3) * 4096).floor() / 4096 + 1 / 16384, rand(levels, 1 << log2_t, 2), res, out, n
    return run(hash_grid_encode, (cdiv(n, 256), levels), args, out, LEVELS=levels, LOG2_T=log2_t, BLOCK=256, num_warps=4)


@triton.jit
def stereo_volume(left_ptr, right_ptr, cost_ptr, best_ptr, C, H, W, DISP: tl.constexpr, BLOCK_X: tl.constexpr):
    # Correlations at all shifts of a row, and the mean shift that a softmax over them gives.
    y, b = tl.program_id(1), tl.program_id(2)
    x = tl.program_id(0) * BLOCK_X + tl.arange(0, BLOCK_X)
    d = tl.arange(0, DISP)
    acc = tl.zeros((DISP, BLOCK_X), tl.float32)
    for c in range(C):
        base = ((b * C + c) * H + y) * W
        l = tl.load(left_ptr + base + x, mask=x < W, other=0.0).to(tl.float32)
        shifted = x[None, :] - d[:, None]
        r = tl.load(right_ptr + base + shifted, mask=(shifted >= 0) & (x < W)[None, :], other=0.0).to(tl.float32)
        acc += l[None, :] * r
    acc = acc / C
    tl.store(cost_ptr + ((b * DISP + d)[:, None] * H + y) * W + x[None, :], acc.to(tl.float16), mask=(x < W)[None, :])
    p = tl.exp(acc - tl.max(acc, axis=0)[None, :])
    mean = tl.sum(p * d[:, None].to(tl.float32), axis=0) / tl.sum(p, axis=0)
    tl.store(best_ptr + (b * H + y) * W + x, mean, mask=x < W)


@case
def stereo_correlation_volume():
    b, c, h, w, disp = 1, 32, 136, 240, 64
    cost, best = zeros(b, disp, h, w), zeros(b, h, w, dtype="float32")
    return run(stereo_volume, (cdiv(w, 64), h, b), (rand(b, c, h, w), rand(b, c, h, w), cost, best, c, h, w), (cost, best), DISP=disp, BLOCK_X=64, num_warps=4)


@triton.jit
def farthest_points(p_ptr, out_ptr, N, samples, BLOCK: tl.constexpr):
    # A cloud a program, quantized coordinates: distances to what is chosen stay in registers.
    cloud = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    m = i < N
    base = p_ptr + cloud * N * 3
    x, y, z = tl.load(base + i * 3, m, 0), tl.load(base + i * 3 + 1, m, 0), tl.load(base + i * 3 + 2, m, 0)
    dist = tl.where(m, 2147483647, -1)
    chosen = 0
    for s in range(samples):
        tl.store(out_ptr + cloud * samples + s, chosen)
        cx, cy, cz = tl.load(base + chosen * 3), tl.load(base + chosen * 3 + 1), tl.load(base + chosen * 3 + 2)
        dx, dy, dz = x - cx, y - cy, z - cz
        dist = tl.minimum(dist, tl.where(m, dx * dx + dy * dy + dz * dz, -1))
        chosen = tl.argmax(dist, axis=0)


@case
def farthest_point_sampling():
    clouds, n, samples = 64, 4000, 256
    out = zeros(clouds, samples, dtype="int32")
    return run(farthest_points, (clouds,), (ints(0, 10000, clouds, n, 3), out, n, samples), out, BLOCK=4096, num_warps=8)


@triton.jit
def ball_query_kernel(center_ptr, point_ptr, idx_ptr, cnt_ptr, M, N, r2, K: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    # The first K points in a ball, in their order; places by a running count.
    b = tl.program_id(1)
    q = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    qm = q < M
    c = center_ptr + (b * M + q) * 3
    qx, qy, qz = tl.load(c, qm, 0.0), tl.load(c + 1, qm, 0.0), tl.load(c + 2, qm, 0.0)
    count = tl.zeros((BLOCK_M,), tl.int32)
    n0 = 0
    while (n0 < N) & (tl.min(tl.where(qm, count, K), axis=0) < K):
        n = n0 + tl.arange(0, BLOCK_N)
        nm = n < N
        p = point_ptr + (b * N + n) * 3
        dx = qx[:, None] - tl.load(p, nm, 1e9)[None, :]
        dy = qy[:, None] - tl.load(p + 1, nm, 1e9)[None, :]
        dz = qz[:, None] - tl.load(p + 2, nm, 1e9)[None, :]
        hit = ((dx * dx + dy * dy + dz * dz < r2) & nm[None, :] & qm[:, None]).to(tl.int32)
        slot = count[:, None] + tl.cumsum(hit, axis=1) - 1
        tl.store(idx_ptr + (b * M + q)[:, None] * K + slot, tl.broadcast_to(n[None, :], (BLOCK_M, BLOCK_N)), mask=(hit != 0) & (slot < K))
        count += tl.sum(hit, axis=1)
        n0 += BLOCK_N
    tl.store(cnt_ptr + b * M + q, tl.minimum(count, K), mask=qm)


@case
def ball_query_first_32():
    b, m, n, k = 8, 1024, 8192, 32
    points = (uniform(b, n, 3) * 256).floor() / 256
    idx, cnt = zeros(b, m, k, dtype="int32"), zeros(b, m, dtype="int32")
    args = points[:, :m].contiguous(), points, idx, cnt, m, n, 0.03
    return run(ball_query_kernel, (m // 16, b), args, (idx, cnt), K=k, BLOCK_M=16, BLOCK_N=128, num_warps=4)


@triton.jit
def three_nearest_interpolate(unknown_ptr, known_ptr, feat_ptr, out_ptr, n, m_known, C, BU: tl.constexpr, BK: tl.constexpr, BC: tl.constexpr):
    # The three smallest distances as they come by, then features weighted by their inverses.
    u = tl.program_id(0) * BU + tl.arange(0, BU)
    um = u < n
    ux, uy, uz = tl.load(unknown_ptr + u * 3, um, 0.0), tl.load(unknown_ptr + u * 3 + 1, um, 0.0), tl.load(unknown_ptr + u * 3 + 2, um, 0.0)
    d1, d2, d3 = tl.full((BU,), 1e30, tl.float32), tl.full((BU,), 1e30, tl.float32), tl.full((BU,), 1e30, tl.float32)
    i1, i2, i3 = tl.zeros((BU,), tl.int32), tl.zeros((BU,), tl.int32), tl.zeros((BU,), tl.int32)
    for k0 in range(0, m_known, BK):
        k = k0 + tl.arange(0, BK)
        km = k < m_known
        dx = ux[:, None] - tl.load(known_ptr + k * 3, km, 1e9)[None, :]
        dy = uy[:, None] - tl.load(known_ptr + k * 3 + 1, km, 1e9)[None, :]
        dz = uz[:, None] - tl.load(known_ptr + k * 3 + 2, km, 1e9)[None, :]
        d = dx * dx + dy * dy + dz * dz
        for _ in tl.static_range(3):
            near, where = tl.min(d, axis=1, return_indices=True)
            i = k0 + where
            d = tl.where(tl.arange(0, BK)[None, :] == where[:, None], 1e30, d)
            a1, a2, a3 = near < d1, near < d2, near < d3
            d3, i3 = tl.where(a2, d2, tl.where(a3, near, d3)), tl.where(a2, i2, tl.where(a3, i, i3))
            d2, i2 = tl.where(a1, d1, tl.where(a2, near, d2)), tl.where(a1, i1, tl.where(a2, i, i2))
            d1, i1 = tl.where(a1, near, d1), tl.where(a1, i, i1)
    w1, w2, w3 = 1.0 / (tl.sqrt(d1) + 1e-3), 1.0 / (tl.sqrt(d2) + 1e-3), 1.0 / (tl.sqrt(d3) + 1e-3)
    total = w1 + w2 + w3
    for c0 in range(0, C, BC):
        c = c0 + tl.arange(0, BC)
        mask = um[:, None] & (c < C)[None, :]
        f = (w1 / total)[:, None] * tl.load(feat_ptr + i1[:, None] * C + c[None, :], mask=mask, other=0.0)
        f += (w2 / total)[:, None] * tl.load(feat_ptr + i2[:, None] * C + c[None, :], mask=mask, other=0.0)
        f += (w3 / total)[:, None] * tl.load(feat_ptr + i3[:, None] * C + c[None, :], mask=mask, other=0.0)
        tl.store(out_ptr + u[:, None] * C + c[None, :], f.to(tl.float16), mask=mask)


@case
def three_nearest_interpolation():
    n, known, c = 20000, 1500, 96
    out = zeros(n, c)
    return run(three_nearest_interpolate, (cdiv(n, 32),), (uniform(n, 3), uniform(known, 3), f32(known, c), out, n, known, c), out, BU=32, BK=64, BC=64, num_warps=4)


@triton.jit
def _corner(ix, iy, dx, dy):
    h = (ix * 374761393 + iy * 668265263).to(tl.uint32, bitcast=True)
    h = (h ^ (h >> 13)) * 1274126177
    h = h ^ (h >> 16)
    gx = tl.where((h & 1) != 0, 1.0, -1.0)
    gy = tl.where((h & 2) != 0, 1.0, -1.0)
    steep = (h & 4) != 0
    return tl.where(steep, 0.5 * gx, gx) * dx + tl.where(steep, gy, 0.5 * gy) * dy


@triton.jit
def gradient_noise(out_ptr, H, W, scale, OCTAVES: tl.constexpr, BH: tl.constexpr, BW: tl.constexpr):
    y = tl.program_id(1) * BH + tl.arange(0, BH)[:, None]
    x = tl.program_id(0) * BW + tl.arange(0, BW)[None, :]
    v = tl.zeros((BH, BW), tl.float32)
    amp = 1.0
    freq = scale
    for o in range(OCTAVES):
        fx, fy = tl.broadcast_to(x, (BH, BW)) * freq, tl.broadcast_to(y, (BH, BW)) * freq
        x0, y0 = tl.floor(fx), tl.floor(fy)
        dx, dy = fx - x0, fy - y0
        ix, iy = x0.to(tl.int32) + o * 1000, y0.to(tl.int32)
        u = dx * dx * dx * (dx * (dx * 6.0 - 15.0) + 10.0)
        w = dy * dy * dy * (dy * (dy * 6.0 - 15.0) + 10.0)
        a, b = _corner(ix, iy, dx, dy), _corner(ix + 1, iy, dx - 1.0, dy)
        c, d = _corner(ix, iy + 1, dx, dy - 1.0), _corner(ix + 1, iy + 1, dx - 1.0, dy - 1.0)
        top, bottom = a + u * (b - a), c + u * (d - c)
        v += amp * tl.abs(top + w * (bottom - top))
        amp *= 0.5
        freq *= 2.0
    tl.store(out_ptr + y * W + x, v, mask=(y < H) & (x < W))


@case
def turbulence_of_gradient_noise():
    h, w = 2160, 3840
    out = zeros(h, w, dtype="float32")
    return run(gradient_noise, (cdiv(w, 128), cdiv(h, 8)), (out, h, w, 1 / 128), out, OCTAVES=6, BH=8, BW=128, num_warps=8)


@triton.jit
def tsdf_integrate(depth_ptr, tsdf_ptr, weight_ptr, pose_ptr, new_ptr, neww_ptr, D, H, W, size, trunc, fx, fy, cx, cy, BLOCK: tl.constexpr):
    # Every voxel looks into the picture of depths and averages what it sees.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < D * D * D
    vx, vy, vz = (i % D).to(tl.float32) * size, (i // D % D).to(tl.float32) * size, (i // (D * D)).to(tl.float32) * size
    x = tl.load(pose_ptr) * vx + tl.load(pose_ptr + 1) * vy + tl.load(pose_ptr + 2) * vz + tl.load(pose_ptr + 3)
    y = tl.load(pose_ptr + 4) * vx + tl.load(pose_ptr + 5) * vy + tl.load(pose_ptr + 6) * vz + tl.load(pose_ptr + 7)
    z = tl.load(pose_ptr + 8) * vx + tl.load(pose_ptr + 9) * vy + tl.load(pose_ptr + 10) * vz + tl.load(pose_ptr + 11)
    front = z > 0.1
    inv = 1.0 / tl.where(front, z, 1.0)
    u = fx * x * inv + cx
    v = fy * y * inv + cy
    seen = m & front & (u > 0.0) & (u < W - 1) & (v > 0.0) & (v < H - 1)
    d = _bilinear(depth_ptr, v, u, H, W, seen)
    sdf = d - z
    t = tl.minimum(sdf / trunc, 1.0)
    soft = tl.where(seen, tl.clamp(sdf / trunc + 1.5, 0.0, 1.0), 0.0)
    old, w = tl.load(tsdf_ptr + i, mask=m, other=0.0).to(tl.float32), tl.load(weight_ptr + i, mask=m, other=0.0).to(tl.float32)
    total = w + soft
    tl.store(new_ptr + i, (old * w + t * soft) / tl.maximum(total, 1e-6), mask=m)
    tl.store(neww_ptr + i, tl.minimum(total, 64.0), mask=m)


@case
def tsdf_fusion_of_a_depth_map():
    d, h, w = 160, 480, 640
    depth = 2 + 0.5 * torch.sin(torch.arange(h, device="cuda")[:, None] * 0.02) * torch.cos(torch.arange(w, device="cuda")[None, :] * 0.015)
    pose = torch.tensor([[1.0, 0, 0.05, -1.6], [0, 1.0, 0, -1.6], [-0.05, 0, 1.0, 0.6]], device="cuda")
    new, weight = zeros(d**3, dtype="float32"), zeros(d**3, dtype="float32")
    args = depth.float().contiguous(), rand(d**3) * 0.3, uniform(d**3) * 3, pose, new, weight, d, h, w, 0.02, 0.1, 500.0, 500.0, 320.0, 240.0
    return run(tsdf_integrate, (cdiv(d**3, 512),), args, (new, weight), BLOCK=512, num_warps=4)


@triton.jit
def lattice_d3q19(f_ptr, g_ptr, dir_ptr, weight_ptr, NX, NY, NZ, omega, gravity, BLOCK: tl.constexpr):
    # Directions from a table, twice around: moments first, then each population relaxes to where it is pulled.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    n = NX * NY * NZ
    m = i < n
    x, y, z = i % NX, i // NX % NY, i // (NX * NY)
    rho = tl.zeros((BLOCK,), tl.float32)
    ux, uy, uz = tl.zeros((BLOCK,), tl.float32), tl.zeros((BLOCK,), tl.float32), tl.zeros((BLOCK,), tl.float32)
    for q in range(19):
        cx, cy, cz = tl.load(dir_ptr + q * 3), tl.load(dir_ptr + q * 3 + 1), tl.load(dir_ptr + q * 3 + 2)
        sx, sy, sz = (x - cx + NX) % NX, (y - cy + NY) % NY, (z - cz + NZ) % NZ
        f = tl.load(f_ptr + q * n + (sz * NY + sy) * NX + sx, mask=m, other=0.0)
        rho += f
        ux += f * cx
        uy += f * cy
        uz += f * cz
    inv = 1.0 / tl.where(m, rho, 1.0)
    ux, uy, uz = ux * inv + gravity / omega, uy * inv, uz * inv
    square = 1.5 * (ux * ux + uy * uy + uz * uz)
    for q in range(19):
        cx, cy, cz = tl.load(dir_ptr + q * 3), tl.load(dir_ptr + q * 3 + 1), tl.load(dir_ptr + q * 3 + 2)
        w = tl.load(weight_ptr + q)
        sx, sy, sz = (x - cx + NX) % NX, (y - cy + NY) % NY, (z - cz + NZ) % NZ
        f = tl.load(f_ptr + q * n + (sz * NY + sy) * NX + sx, mask=m, other=0.0)
        cu = 3.0 * (cx * ux + cy * uy + cz * uz)
        eq = w * rho * (1.0 + cu + 0.5 * cu * cu - square)
        tl.store(g_ptr + q * n + i, f + omega * (eq - f), mask=m)


@case
def lattice_boltzmann_d3q19():
    nx, ny, nz = 128, 96, 80
    dirs = [(0, 0, 0)] + [d for d in ((x, y, z) for x in (-1, 0, 1) for y in (-1, 0, 1) for z in (-1, 0, 1)) if 0 < sum(map(abs, d)) < 3]
    weights = torch.tensor([{0: 1 / 3, 1: 1 / 18, 2: 1 / 36}[sum(map(abs, d))] for d in dirs], device="cuda")
    f = weights[:, None] * (1 + 0.1 * uniform(19, nx * ny * nz))
    g = zeros(19, nx * ny * nz, dtype="float32")
    args = f.contiguous(), g, torch.tensor(dirs, device="cuda", dtype=torch.int32), weights, nx, ny, nz, 1.2, 1e-4
    return run(lattice_d3q19, (cdiv(nx * ny * nz, 256),), args, g, BLOCK=256, num_warps=4)


@triton.jit
def fdtd_magnetic(ez_ptr, hx_ptr, hy_ptr, H, W, c, BLOCK: tl.constexpr):
    y = tl.program_id(1)
    x = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = x < W
    at = y * W + x
    ez = tl.load(ez_ptr + at, mask=m, other=0.0)
    up = tl.load(ez_ptr + at + W, mask=m & (y + 1 < H), other=0.0)
    right = tl.load(ez_ptr + at + 1, mask=x + 1 < W, other=0.0)
    tl.store(hx_ptr + at, tl.load(hx_ptr + at, mask=m, other=0.0) - c * (up - ez), mask=m)
    tl.store(hy_ptr + at, tl.load(hy_ptr + at, mask=m, other=0.0) + c * (right - ez), mask=m)


@triton.jit
def fdtd_electric(ez_ptr, hx_ptr, hy_ptr, eps_ptr, W, c, source_y, source_x, pulse, BLOCK: tl.constexpr):
    y = tl.program_id(1)
    x = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = x < W
    at = y * W + x
    curl = tl.load(hy_ptr + at, mask=m, other=0.0) - tl.load(hy_ptr + at - 1, mask=m & (x > 0), other=0.0)
    curl -= tl.load(hx_ptr + at, mask=m, other=0.0) - tl.load(hx_ptr + at - W, mask=m & (y > 0), other=0.0)
    ez = tl.load(ez_ptr + at, mask=m, other=0.0) + c * curl / tl.load(eps_ptr + at, mask=m, other=1.0)
    ez += tl.where((x == source_x) & (y == source_y), pulse, 0.0)
    tl.store(ez_ptr + at, ez, mask=m)


@case
def fdtd_two_kernels():
    h, w = 1500, 2001
    first = f32(h, w)
    ez, hx, hy, eps = zeros(h, w, dtype="float32"), zeros(h, w, dtype="float32"), zeros(h, w, dtype="float32"), uniform(h, w) * 2 + 1

    def launch(first, eps):
        ez.copy_(first)
        hx.zero_()
        hy.zero_()
        for step in range(3):
            fdtd_magnetic[(cdiv(w, 512), h)](ez, hx, hy, h, w, 0.5, BLOCK=512, num_warps=4)
            fdtd_electric[(cdiv(w, 512), h)](ez, hx, hy, eps, w, 0.5, h // 2, w // 2, 0.1 * step, BLOCK=512, num_warps=4)
        return ez, hx, hy

    return launch, (first, eps)


@triton.jit
def _cubic_kernel(q):
    near = 1.0 - 1.5 * q * q + 0.75 * q * q * q
    far = 0.25 * (2.0 - q) * (2.0 - q) * (2.0 - q)
    return tl.where(q < 1.0, near, tl.where(q < 2.0, far, 0.0))


@triton.jit
def sph_forces(pos_ptr, vel_ptr, rho_ptr, nbr_ptr, cnt_ptr, new_rho_ptr, acc_ptr, n, h, mass, stiffness, rest, viscosity, K: tl.constexpr,
               BLOCK: tl.constexpr):
    # Particles that are lists of at most K neighbors: density by the cubic spline, pressure and viscosity.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    x, y, z = tl.load(pos_ptr + i * 4, m, 0.0), tl.load(pos_ptr + i * 4 + 1, m, 0.0), tl.load(pos_ptr + i * 4 + 2, m, 0.0)
    vx, vy, vz = tl.load(vel_ptr + i * 4, m, 0.0), tl.load(vel_ptr + i * 4 + 1, m, 0.0), tl.load(vel_ptr + i * 4 + 2, m, 0.0)
    rho = tl.load(rho_ptr + i, m, 1.0)
    p = stiffness * (rho - rest) / (rho * rho)
    cnt = tl.load(cnt_ptr + i, m, 0)
    sigma = 0.31830989 / (h * h * h)
    density = tl.zeros((BLOCK,), tl.float32) + mass * sigma
    ax, ay, az = tl.zeros((BLOCK,), tl.float32), tl.zeros((BLOCK,), tl.float32), tl.zeros((BLOCK,), tl.float32)
    for k in range(K):
        on = k < cnt
        j = tl.load(nbr_ptr + k * n + i, mask=on, other=0)
        dx, dy, dz = x - tl.load(pos_ptr + j * 4, on, 0.0), y - tl.load(pos_ptr + j * 4 + 1, on, 0.0), z - tl.load(pos_ptr + j * 4 + 2, on, 0.0)
        r = tl.sqrt(dx * dx + dy * dy + dz * dz + 1e-8)
        q = r / h
        density += tl.where(on, mass * sigma * _cubic_kernel(q), 0.0)
        rj = tl.load(rho_ptr + j, on, 1.0)
        slope = sigma / h * tl.where(q < 1.0, -3.0 * q + 2.25 * q * q, tl.where(q < 2.0, -0.75 * (2.0 - q) * (2.0 - q), 0.0))
        f = -mass * (p + stiffness * (rj - rest) / (rj * rj)) * slope / r
        g = mass * viscosity * slope / (rj * r)
        ax += tl.where(on, f * dx + g * (vx - tl.load(vel_ptr + j * 4, on, 0.0)), 0.0)
        ay += tl.where(on, f * dy + g * (vy - tl.load(vel_ptr + j * 4 + 1, on, 0.0)), 0.0)
        az += tl.where(on, f * dz + g * (vz - tl.load(vel_ptr + j * 4 + 2, on, 0.0)), 0.0)
    tl.store(new_rho_ptr + i, density, mask=m)
    tl.store(acc_ptr + i * 4, ax, mask=m)
    tl.store(acc_ptr + i * 4 + 1, ay - 9.81, mask=m)
    tl.store(acc_ptr + i * 4 + 2, az, mask=m)


@case
def smoothed_particles_forces():
    n, k = 60000, 40
    pos = uniform(n, 4)
    near = (arange(n)[None, :] + ints(-2000, 2000, k, n)).clamp(0, n - 1).int()
    rho, acc = zeros(n, dtype="float32"), zeros(n, 4, dtype="float32")
    args = pos, f32(n, 4), uniform(n) + 0.5, near, ints(10, k + 1, n), rho, acc, n, 0.3, 0.02, 2.0, 1.0, 0.1
    return run(sph_forces, (cdiv(n, 128),), args, (rho, acc), K=k, BLOCK=128, num_warps=4)


@triton.jit
def red_black_sweep(u_ptr, f_ptr, H, W, h2, color, BH: tl.constexpr, BW: tl.constexpr):
    # In place: points of one color read only those of the other.
    y = tl.program_id(1) * BH + tl.arange(0, BH)[:, None] + 1
    k = tl.program_id(0) * BW + tl.arange(0, BW)[None, :]
    x = 1 + 2 * k + ((y + color) & 1)
    m = (y < H - 1) & (x < W - 1)
    at = u_ptr + y * W + x
    s = tl.load(at - 1, mask=m, other=0.0) + tl.load(at + 1, mask=m, other=0.0) + tl.load(at - W, mask=m, other=0.0) + tl.load(at + W, mask=m, other=0.0)
    old = tl.load(at, mask=m, other=0.0)
    new = 0.25 * (s + h2 * tl.load(f_ptr + y * W + x, mask=m, other=0.0))
    tl.store(at, old + 1.15 * (new - old), mask=m)


@triton.jit
def residual_restrict(u_ptr, f_ptr, r_ptr, H, W, HC, WC, inv_h2, BH: tl.constexpr, BW: tl.constexpr):
    # The residual at nine fine points, weighted, for each coarse one.
    cy = tl.program_id(1) * BH + tl.arange(0, BH)[:, None] + 1
    cx = tl.program_id(0) * BW + tl.arange(0, BW)[None, :] + 1
    m = (cy < HC - 1) & (cx < WC - 1)
    acc = tl.zeros((BH, BW), tl.float32)
    for dy in tl.static_range(-1, 2):
        for dx in tl.static_range(-1, 2):
            y, x = 2 * cy + dy, 2 * cx + dx
            ok = m & (y > 0) & (y < H - 1) & (x > 0) & (x < W - 1)
            at = u_ptr + y * W + x
            u = tl.load(at, mask=ok, other=0.0)
            lap = tl.load(at - 1, mask=ok, other=0.0) + tl.load(at + 1, mask=ok, other=0.0) + tl.load(at - W, mask=ok, other=0.0) + tl.load(at + W, mask=ok, other=0.0)
            r = tl.load(f_ptr + y * W + x, mask=ok, other=0.0) + (lap - 4.0 * u) * inv_h2
            acc += r * (0.25 if dy == 0 and dx == 0 else (0.125 if dy == 0 or dx == 0 else 0.0625))
    tl.store(r_ptr + cy * WC + cx, acc, mask=m)


@triton.jit
def prolong_and_add(u_ptr, e_ptr, out_ptr, H, W, WC, BH: tl.constexpr, BW: tl.constexpr):
    y = tl.program_id(1) * BH + tl.arange(0, BH)[:, None]
    x = tl.program_id(0) * BW + tl.arange(0, BW)[None, :]
    m = (y < H) & (x < W)
    cy, cx = y // 2, x // 2
    oy, ox = y % 2, x % 2
    a = tl.load(e_ptr + cy * WC + cx, mask=m, other=0.0)
    b = tl.load(e_ptr + cy * WC + cx + ox, mask=m, other=0.0)
    c = tl.load(e_ptr + (cy + oy) * WC + cx, mask=m, other=0.0)
    d = tl.load(e_ptr + (cy + oy) * WC + cx + ox, mask=m, other=0.0)
    tl.store(out_ptr + y * W + x, tl.load(u_ptr + y * W + x, mask=m, other=0.0) + 0.25 * (a + b + c + d), mask=m)


@case
def multigrid_smooth_restrict_prolong():
    h = w = 2049
    hc = wc = 1025
    u, r, out = zeros(h, w, dtype="float32"), zeros(hc, wc, dtype="float32"), zeros(h, w, dtype="float32")

    def launch(start, f, e):
        u.copy_(start)
        for color in (0, 1, 0, 1):
            red_black_sweep[(cdiv(w // 2, 64), cdiv(h - 2, 8))](u, f, h, w, 1.0, color, BH=8, BW=64, num_warps=4)
        residual_restrict[(cdiv(wc - 2, 64), cdiv(hc - 2, 8))](u, f, r, h, w, hc, wc, 1.0, BH=8, BW=64, num_warps=4)
        prolong_and_add[(cdiv(w, 64), cdiv(h, 8))](u, e, out, h, w, wc, BH=8, BW=64, num_warps=4)
        return u, r, out

    return launch, (f32(h, w), f32(h, w), f32(hc, wc))


@triton.jit
def depthwise_3x3_nhwc(x_ptr, w_ptr, b_ptr, y_ptr, H, W, C, OH, OW, STRIDE: tl.constexpr, BLOCK_X: tl.constexpr, BLOCK_C: tl.constexpr):
    ox = tl.program_id(0) * BLOCK_X + tl.arange(0, BLOCK_X)
    oy = tl.program_id(1) % OH
    b = tl.program_id(1) // OH
    c = tl.program_id(2) * BLOCK_C + tl.arange(0, BLOCK_C)
    cm, xm = c < C, ox < OW
    acc = tl.zeros((BLOCK_X, BLOCK_C), tl.float32) + tl.load(b_ptr + c, mask=cm, other=0.0).to(tl.float32)[None, :]
    for ky in tl.static_range(3):
        iy = oy * STRIDE + ky - 1
        for kx in tl.static_range(3):
            ix = ox * STRIDE + kx - 1
            ok = (ix >= 0) & (ix < W) & xm & (iy >= 0) & (iy < H)
            x = tl.load(x_ptr + ((b * H + iy) * W + ix)[:, None] * C + c[None, :], mask=ok[:, None] & cm[None, :], other=0.0)
            w = tl.load(w_ptr + (ky * 3 + kx) * C + c, mask=cm, other=0.0)
            acc += x.to(tl.float32) * w.to(tl.float32)[None, :]
    acc = acc * tl.sigmoid(acc)
    y = y_ptr + ((b * OH + oy) * OW + ox)[:, None] * C + c[None, :]
    tl.store(y, acc.to(y_ptr.dtype.element_ty), mask=xm[:, None] & cm[None, :])


@case
def conv2d_depthwise_nhwc_silu():
    b, h, w, c, stride = 32, 56, 56, 144, 1
    y = zeros(b, h, w, c)
    args = rand(b, h, w, c), rand(9, c), rand(c), y, h, w, c, h, w
    return run(depthwise_3x3_nhwc, (cdiv(w, 16), b * h, cdiv(c, 64)), args, y, STRIDE=stride, BLOCK_X=16, BLOCK_C=64, num_warps=4)


@case
def conv2d_depthwise_nhwc_stride_2():
    b, h, w, c = 32, 112, 112, 96
    y = zeros(b, 56, 56, c, dtype="bfloat16")
    args = rand(b, h, w, c, dtype="bfloat16"), rand(9, c, dtype="bfloat16"), rand(c, dtype="bfloat16"), y, h, w, c, 56, 56
    return run(depthwise_3x3_nhwc, (cdiv(56, 8), b * 56, cdiv(c, 128)), args, y, STRIDE=2, BLOCK_X=8, BLOCK_C=128, num_warps=4)


@triton.jit
def dilated_gated_conv(x_ptr, wf_ptr, wg_ptr, cond_ptr, y_ptr, T, C: tl.constexpr, dilation, TAPS: tl.constexpr, BLOCK_T: tl.constexpr, BLOCK_O: tl.constexpr):
    # WaveNet's layer: tanh of one causal convolution times the sigmoid of another, after a condition for each channel.
    t = tl.program_id(0) * BLOCK_T + tl.arange(0, BLOCK_T)
    o = tl.program_id(1) * BLOCK_O + tl.arange(0, BLOCK_O)
    b = tl.program_id(2)
    c = tl.arange(0, C)
    f = tl.zeros((BLOCK_T, BLOCK_O), tl.float32)
    g = tl.zeros((BLOCK_T, BLOCK_O), tl.float32)
    for k in tl.static_range(TAPS):
        s = t - (TAPS - 1 - k) * dilation
        x = tl.load(x_ptr + (b * T + s)[:, None] * C + c[None, :], mask=((s >= 0) & (t < T))[:, None], other=0.0)
        f = tl.dot(x, tl.load(wf_ptr + (k * C + c)[:, None] * C + o[None, :]), f)
        g = tl.dot(x, tl.load(wg_ptr + (k * C + c)[:, None] * C + o[None, :]), g)
    f += tl.load(cond_ptr + b * 2 * C + o)[None, :]
    g += tl.load(cond_ptr + b * 2 * C + C + o)[None, :]
    z = (2.0 * tl.sigmoid(2.0 * f) - 1.0) * tl.sigmoid(g)
    tl.store(y_ptr + (b * T + t)[:, None] * C + o[None, :], z.to(tl.float16), mask=(t < T)[:, None])


@case
def conv1d_dilated_gated():
    b, t, c = 4, 16000, 128
    y = zeros(b, t, c)
    args = rand(b, t, c), rand(3, c, c) * 0.05, rand(3, c, c) * 0.05, f32(b, 2 * c), y, t
    return run(dilated_gated_conv, (cdiv(t, 64), c // 64, b), args, y, C=c, dilation=16, TAPS=3, BLOCK_T=64, BLOCK_O=64, num_warps=4, num_stages=2)


@triton.jit
def advect_scalar_3d(q_ptr, u_ptr, v_ptr, w_ptr, out_ptr, NX, NY, NZ, dt, BLOCK: tl.constexpr):
    # Semi-Lagrangian: back along the velocity, then between eight cells.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < NX * NY * NZ
    x, y, z = i % NX, i // NX % NY, i // (NX * NY)
    px = tl.clamp(x - dt * tl.load(u_ptr + i, mask=m, other=0.0), 0.0, NX - 1.001)
    py = tl.clamp(y - dt * tl.load(v_ptr + i, mask=m, other=0.0), 0.0, NY - 1.001)
    pz = tl.clamp(z - dt * tl.load(w_ptr + i, mask=m, other=0.0), 0.0, NZ - 1.001)
    ix, iy, iz = px.to(tl.int32), py.to(tl.int32), pz.to(tl.int32)
    fx, fy, fz = px - ix, py - iy, pz - iz
    at = q_ptr + (iz * NY + iy) * NX + ix
    c00 = tl.load(at, mask=m, other=0.0) * (1 - fx) + tl.load(at + 1, mask=m, other=0.0) * fx
    c10 = tl.load(at + NX, mask=m, other=0.0) * (1 - fx) + tl.load(at + NX + 1, mask=m, other=0.0) * fx
    c01 = tl.load(at + NX * NY, mask=m, other=0.0) * (1 - fx) + tl.load(at + NX * NY + 1, mask=m, other=0.0) * fx
    c11 = tl.load(at + NX * NY + NX, mask=m, other=0.0) * (1 - fx) + tl.load(at + NX * NY + NX + 1, mask=m, other=0.0) * fx
    tl.store(out_ptr + i, (c00 * (1 - fy) + c10 * fy) * (1 - fz) + (c01 * (1 - fy) + c11 * fy) * fz, mask=m)


@case
def advection_semi_lagrangian():
    nx, ny, nz = 200, 160, 120
    n = nx * ny * nz
    out = zeros(n, dtype="float32")
    return run(advect_scalar_3d, (cdiv(n, 512),), (f32(n), f32(n), f32(n), f32(n), out, nx, ny, nz, 0.8), out, BLOCK=512, num_warps=4)


@triton.jit
def winograd_input_tiles(x_ptr, v_ptr, H, W, C, TH, TW, BLOCK_T: tl.constexpr, BLOCK_C: tl.constexpr):
    # B^T d B of tiles of 4x4 that overlap by two; sixteen planes of tiles x channels.
    t = tl.program_id(0) * BLOCK_T + tl.arange(0, BLOCK_T)
    c = tl.program_id(1) * BLOCK_C + tl.arange(0, BLOCK_C)
    b = tl.program_id(2)
    tiles = TH * TW
    m = (t < tiles)[:, None] & (c < C)[None, :]
    y0, x0 = t // TW * 2 - 1, t % TW * 2 - 1
    rows = ()
    for i in tl.static_range(4):
        d = ()
        for j in tl.static_range(4):
            y, x = y0 + i, x0 + j
            ok = m & ((y >= 0) & (y < H) & (x >= 0) & (x < W))[:, None]
            d = d + (tl.load(x_ptr + ((b * H + y) * W + x)[:, None] * C + c[None, :], mask=ok, other=0.0).to(tl.float32),)
        rows = rows + ((d[0] - d[2], d[1] + d[2], d[2] - d[1], d[1] - d[3]),)
    out = v_ptr + (b * tiles + t)[:, None] * C + c[None, :]
    plane = tl.num_programs(2) * tiles * C
    for j in tl.static_range(4):
        tl.store(out + j * plane, (rows[0][j] - rows[2][j]).to(tl.float16), mask=m)
        tl.store(out + (4 + j) * plane, (rows[1][j] + rows[2][j]).to(tl.float16), mask=m)
        tl.store(out + (8 + j) * plane, (rows[2][j] - rows[1][j]).to(tl.float16), mask=m)
        tl.store(out + (12 + j) * plane, (rows[1][j] - rows[3][j]).to(tl.float16), mask=m)


@case
def winograd_input_transform():
    b, h, w, c = 16, 56, 56, 128
    v = zeros(16, b, 28 * 28, c)
    return run(winograd_input_tiles, (cdiv(28 * 28, 16), c // 64, b), (rand(b, h, w, c), v, h, w, c, 28, 28), v, BLOCK_T=16, BLOCK_C=64, num_warps=4)


@triton.jit
def tile_histograms(img_ptr, lut_ptr, H, W, TILES, limit, TH: tl.constexpr, TW: tl.constexpr, ROWS: tl.constexpr):
    # CLAHE: a tile's histogram, clipped and spread, summed up to a table.
    ty, tx = tl.program_id(0), tl.program_id(1)
    x = tl.arange(0, TW)
    hist = tl.zeros((256,), tl.int32)
    for r0 in range(0, TH, ROWS):
        r = r0 + tl.arange(0, ROWS)
        v = tl.load(img_ptr + (ty * TH + r)[:, None] * W + tx * TW + x[None, :]).to(tl.int32)
        hist += tl.histogram(tl.reshape(v, (ROWS * TW,)), 256)
    over = tl.sum(tl.maximum(hist - limit, 0), axis=0)
    hist = tl.minimum(hist, limit) + over // 256
    cdf = tl.cumsum(hist, axis=0)
    tl.store(lut_ptr + (ty * TILES + tx) * 256 + tl.arange(0, 256), cdf.to(tl.float32) * (255.0 / (TH * TW)))


@triton.jit
def apply_tables(img_ptr, lut_ptr, out_ptr, H, W, TY, TX, TH: tl.constexpr, TW: tl.constexpr, BLOCK: tl.constexpr):
    y = tl.program_id(1)
    x = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = x < W
    v = tl.load(img_ptr + y * W + x, mask=m, other=0).to(tl.int32)
    fy = (y + 0.5) / TH - 0.5
    fx = (x + 0.5) / TW - 0.5
    y0 = tl.floor(fy)
    x0 = tl.floor(fx)
    wy, wx = fy - y0, fx - x0
    a, b = tl.maximum(y0.to(tl.int32), 0), tl.minimum(y0.to(tl.int32) + 1, TY - 1)
    c, d = tl.maximum(x0.to(tl.int32), 0), tl.minimum(x0.to(tl.int32) + 1, TX - 1)
    top = tl.load(lut_ptr + (a * TX + c) * 256 + v, mask=m, other=0.0) * (1 - wx) + tl.load(lut_ptr + (a * TX + d) * 256 + v, mask=m, other=0.0) * wx
    low = tl.load(lut_ptr + (b * TX + c) * 256 + v, mask=m, other=0.0) * (1 - wx) + tl.load(lut_ptr + (b * TX + d) * 256 + v, mask=m, other=0.0) * wx
    tl.store(out_ptr + y * W + x, (top * (1 - wy) + low * wy).to(tl.float16), mask=m)


@case
def adaptive_histogram_equalization():
    th, tw, ty, tx = 64, 128, 32, 30
    h, w = th * ty, tw * tx
    lut, out = zeros(ty, tx, 256, dtype="float32"), zeros(h, w)

    def launch(img):
        tile_histograms[(ty, tx)](img, lut, h, w, tx, 64, TH=th, TW=tw, ROWS=16, num_warps=4)
        apply_tables[(cdiv(w, 1024), h)](img, lut, out, h, w, ty, tx, TH=th, TW=tw, BLOCK=1024, num_warps=4)
        return lut, out

    return launch, ((f32(h, w) * 40 + 128).clamp(0, 255).to(torch.uint8),)


@triton.jit
def matching_costs(box_ptr, gt_ptr, logit_ptr, label_ptr, cost_ptr, N, M, CLASSES, w_l1, w_giou, w_class, BN: tl.constexpr, BM: tl.constexpr):
    # What assigning a query to a true box costs: distance of centers and sizes, generalized overlap, focal class cost.
    i = tl.program_id(0) * BN + tl.arange(0, BN)
    j = tl.program_id(1) * BM + tl.arange(0, BM)
    b = tl.program_id(2)
    im, jm = i < N, j < M
    p, q = box_ptr + (b * N + i) * 4, gt_ptr + (b * M + j) * 4
    ax, ay, aw, ah = tl.load(p, im, 0.0)[:, None], tl.load(p + 1, im, 0.0)[:, None], tl.load(p + 2, im, 1.0)[:, None], tl.load(p + 3, im, 1.0)[:, None]
    bx, by, bw, bh = tl.load(q, jm, 0.0)[None, :], tl.load(q + 1, jm, 0.0)[None, :], tl.load(q + 2, jm, 1.0)[None, :], tl.load(q + 3, jm, 1.0)[None, :]
    l1 = tl.abs(ax - bx) + tl.abs(ay - by) + tl.abs(aw - bw) + tl.abs(ah - bh)
    left, right = tl.maximum(ax - aw / 2, bx - bw / 2), tl.minimum(ax + aw / 2, bx + bw / 2)
    top, bottom = tl.maximum(ay - ah / 2, by - bh / 2), tl.minimum(ay + ah / 2, by + bh / 2)
    inter = tl.maximum(right - left, 0.0) * tl.maximum(bottom - top, 0.0)
    union = aw * ah + bw * bh - inter
    hull = (tl.maximum(ax + aw / 2, bx + bw / 2) - tl.minimum(ax - aw / 2, bx - bw / 2)) * (tl.maximum(ay + ah / 2, by + bh / 2) - tl.minimum(ay - ah / 2, by - bh / 2))
    giou = inter / union - (hull - union) / hull
    label = tl.load(label_ptr + b * M + j, jm, 0)
    x = tl.load(logit_ptr + (b * N + i)[:, None] * CLASSES + label[None, :], mask=im[:, None] & jm[None, :], other=0.0).to(tl.float32)
    prob = tl.sigmoid(x)
    pos = 0.25 * (1.0 - prob) * (1.0 - prob) * -tl.log(prob + 1e-8)
    neg = 0.75 * prob * prob * -tl.log(1.0 - prob + 1e-8)
    cost = w_l1 * l1 - w_giou * giou + w_class * (pos - neg)
    tl.store(cost_ptr + (b * N + i)[:, None] * M + j[None, :], cost, mask=im[:, None] & jm[None, :])


@case
def detection_matching_costs():
    b, n, m, classes = 16, 900, 300, 91
    cost = zeros(b, n, m, dtype="float32")
    args = uniform(b, n, 4) + 0.05, uniform(b, m, 4) + 0.05, rand(b, n, classes), ints(0, classes, b, m), cost, n, m, classes, 5.0, 2.0, 2.0
    return run(matching_costs, (cdiv(n, 32), cdiv(m, 32), b), args, cost, BN=32, BM=32, num_warps=4)
