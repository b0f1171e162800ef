"""Cloisters: matrices and physics: factors of small matrices, roots of three, doubles by dots, waves in a room, sparse rows and blocks, bodies, lattices, orbits, colors of a sweep, gates, tridiagonal systems, products over middle axes."""

import torch
import torch.nn.functional as F
import triton
import triton.language as tl

from .common import against, arange, case, cdiv, f32, ints, rand, run, uniform, zeros


@triton.jit
def lower_factor_of_32_kernel(a_ptr, l_ptr, logdet_ptr, N: tl.constexpr):
    # Cholesky's factor of a matrix held in registers, column after column.
    b = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, N)
    r, c = i[:, None], i[None, :]
    a = tl.load(a_ptr + b * N * N + r * N + c)
    low = tl.zeros((N, N), dtype=tl.float32)
    logdet = 0.0
    for k in range(N):
        col = tl.sum(tl.where(c == k, a, 0.0), axis=1)
        pivot = tl.sum(tl.where(i == k, col, 0.0), axis=0)
        root = tl.sqrt(pivot)
        l = tl.where(i >= k, col / root, 0.0)
        logdet += 2 * tl.log(root)
        low = tl.where(c == k, l[:, None], low)
        a = a - l[:, None] * l[None, :]
    tl.store(l_ptr + b * N * N + r * N + c, low)
    tl.store(logdet_ptr + b, logdet)


@case
def cloister_of_lower_factors(batch=12000, n=32):
    x = f32(batch, n, n)
    a = x @ x.transpose(1, 2) / n + torch.eye(n, device=x.device)
    low, logdet = torch.zeros_like(a), zeros(batch, dtype="float32")
    launched = run(lower_factor_of_32_kernel, (batch,), (a, low, logdet), (low, logdet), N=n, num_warps=2)

    def reference():
        return torch.linalg.cholesky(a.double()), torch.logdet(a.double())

    return against(launched, reference)


@triton.jit
def lu_of_several_kernel(a_ptr, lu_ptr, growth_ptr, batch, n, MATS: tl.constexpr, P: tl.constexpr):
    # LU without pivots of several padded matrices in one program; both factors in one place.
    m = tl.program_id(0) * MATS + tl.arange(0, MATS)[:, None, None]
    r = tl.arange(0, P)[None, :, None]
    c = tl.arange(0, P)[None, None, :]
    ok = (m < batch) & (r < n) & (c < n)
    a = tl.load(a_ptr + m * n * n + r * n + c, mask=ok, other=0.0)
    a = tl.where((r == c) & (~ok), 1.0, a)
    for k in range(n - 1):
        row = tl.sum(tl.where(r == k, a, 0.0), axis=1, keep_dims=True)
        col = tl.sum(tl.where(c == k, a, 0.0), axis=2, keep_dims=True)
        piv = tl.sum(tl.where(c == k, row, 0.0), axis=2, keep_dims=True)
        f = tl.where(r > k, col / piv, 0.0)
        a = tl.where((r > k) & (c > k), a - f * row, tl.where((r > k) & (c == k), f, a))
    tl.store(lu_ptr + m * n * n + r * n + c, a, mask=ok)
    peak = tl.max(tl.max(tl.where(ok, tl.abs(a), 0.0), axis=2), axis=1)
    mm = tl.program_id(0) * MATS + tl.arange(0, MATS)
    tl.store(growth_ptr + mm, peak, mask=mm < batch)


@case
def cloister_of_lu_of_several(batch=40001, n=13):
    a = f32(batch, n, n) + 2.5 * n * torch.eye(n, device="cuda")
    lu, growth = torch.zeros_like(a), zeros(batch, dtype="float32")
    launched = run(lu_of_several_kernel, (cdiv(batch, 4),), (a, lu, growth, batch, n), (lu, growth), MATS=4, P=16, num_warps=4)

    def reference():
        w = a.double().clone()
        for k in range(n - 1):
            w[:, k + 1 :, k] /= w[:, k, k, None]
            w[:, k + 1 :, k + 1 :] -= w[:, k + 1 :, k, None] * w[:, k, None, k + 1 :]
        return w, w.abs().amax((1, 2))

    return against(launched, reference)


@triton.jit
def tall_orthogonal_columns_kernel(a_ptr, q_ptr, r_ptr, M, BLOCK_M: tl.constexpr, N: tl.constexpr):
    # Gram and Schmidt's way, modified, on tall matrices: columns become orthonormal one by one, R leaves by rows.
    b = tl.program_id(0).to(tl.int64)
    rows = tl.arange(0, BLOCK_M)[:, None]
    cols = tl.arange(0, N)
    mask = rows < M
    a = tl.load(a_ptr + b * M * N + rows * N + cols[None, :], mask=mask, other=0.0)
    for j in tl.range(0, N, num_stages=1):
        v = tl.sum(tl.where(cols[None, :] == j, a, 0.0), axis=1)
        norm = tl.sqrt(tl.sum(v * v, axis=0))
        q = v / norm
        proj = tl.sum(q[:, None] * a, axis=0)
        proj = tl.where(cols > j, proj, 0.0)
        a = tl.where(cols[None, :] == j, q[:, None], a - q[:, None] * proj[None, :])
        tl.store(r_ptr + b * N * N + j * N + cols, tl.where(cols == j, norm, proj))
    tl.store(q_ptr + b * M * N + rows * N + cols[None, :], a, mask=mask)


@case
def cloister_of_tall_orthogonal(batch=3000, m=200, n=16):
    a = f32(batch, m, n)
    q, r = torch.zeros_like(a), zeros(batch, n, n, dtype="float32")
    launched = run(tall_orthogonal_columns_kernel, (batch,), (a, q, r, m), (q, r), BLOCK_M=256, N=n, num_warps=4)

    def reference():
        r_ = torch.linalg.cholesky(a.double().transpose(1, 2) @ a.double()).transpose(1, 2)
        return torch.linalg.solve_triangular(r_, a.double(), upper=True, left=False), r_

    return against(launched, reference)


@triton.jit
def principal_stresses_kernel(s_ptr, out_ptr, mises_ptr, n, BLOCK: tl.constexpr):
    # Roots of symmetric matrices of three by Newton's steps from outside, then by the rest's quadratic; components lie apart.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    xx = tl.load(s_ptr + i, mask=m, other=0.0).to(tl.float64)
    yy = tl.load(s_ptr + n + i, mask=m, other=0.0).to(tl.float64)
    zz = tl.load(s_ptr + 2 * n + i, mask=m, other=0.0).to(tl.float64)
    xy = tl.load(s_ptr + 3 * n + i, mask=m, other=0.0).to(tl.float64)
    xz = tl.load(s_ptr + 4 * n + i, mask=m, other=0.0).to(tl.float64)
    yz = tl.load(s_ptr + 5 * n + i, mask=m, other=0.0).to(tl.float64)
    i1 = xx + yy + zz
    i2 = xx * yy + yy * zz + zz * xx - xy * xy - xz * xz - yz * yz
    i3 = xx * (yy * zz - yz * yz) - xy * (xy * zz - yz * xz) + xz * (xy * yz - yy * xz)
    radius = tl.maximum(tl.maximum(tl.abs(xx) + tl.abs(xy) + tl.abs(xz), tl.abs(yy) + tl.abs(xy) + tl.abs(yz)), tl.abs(zz) + tl.abs(xz) + tl.abs(yz))
    x = radius + 1.0
    for _ in range(24):
        f = ((x - i1) * x + i2) * x - i3
        d = (3.0 * x - 2.0 * i1) * x + i2
        x = x - tl.where(d > 1e-9, f / tl.where(d > 1e-9, d, 1.0), 0.0)
    half = 0.5 * (i1 - x)
    rest = i2 - x * (i1 - x)
    disc = tl.sqrt(tl.maximum(half * half - rest, 0.0))
    tl.store(out_ptr + i, x.to(tl.float32), mask=m)
    tl.store(out_ptr + n + i, (half + disc).to(tl.float32), mask=m)
    tl.store(out_ptr + 2 * n + i, (half - disc).to(tl.float32), mask=m)
    tl.store(mises_ptr + i, tl.sqrt(tl.maximum(i1 * i1 - 3.0 * i2, 0.0)).to(tl.float32), mask=m)


@case
def cloister_of_principal_stresses(n=1_500_007):
    # The values lie well apart so that each is well determined.
    lam = torch.stack([uniform(n) + 3, uniform(n) - 0.5, uniform(n) - 4.5]).double()
    basis = torch.linalg.qr(f32(4096, 3, 3).double())[0].repeat(cdiv(n, 4096), 1, 1)[:n]
    full_ = (basis * lam.t()[:, None, :]) @ basis.transpose(1, 2)
    s = torch.stack([full_[:, 0, 0], full_[:, 1, 1], full_[:, 2, 2], full_[:, 0, 1], full_[:, 0, 2], full_[:, 1, 2]]).float()
    out, mises = zeros(3, n, dtype="float32"), zeros(n, dtype="float32")
    launched = run(principal_stresses_kernel, (cdiv(n, 128),), (s, out, mises, n), (out, mises), BLOCK=128, num_warps=4)

    def reference():
        a, b, c = lam
        return lam, (0.5 * ((a - b) ** 2 + (b - c) ** 2 + (c - a) ** 2)).sqrt()

    return against(launched, reference)


@triton.jit
def doubles_product_kernel(a_ptr, b_ptr, c_ptr, m, n, k, alpha, beta, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # alpha A B + beta C in doubles, by outer products of thin slices: no matrix unit is asked for.
    i = tl.program_id(0) * BM + tl.arange(0, BM)
    j = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float64)
    for k0 in range(0, k, BK):
        for s in tl.static_range(BK):
            a = tl.load(a_ptr + i * k + k0 + s, mask=(i < m) & (k0 + s < k), other=0.0)
            b = tl.load(b_ptr + (k0 + s) * n + j, mask=(j < n) & (k0 + s < k), other=0.0)
            acc += a[:, None] * b[None, :]
    ok = (i[:, None] < m) & (j[None, :] < n)
    old = tl.load(c_ptr + i[:, None] * n + j[None, :], mask=ok, other=0.0)
    tl.store(c_ptr + m * n + i[:, None] * n + j[None, :], alpha * acc + beta * old, mask=ok)


@case
def cloister_of_doubles(m=700, n=900, k=500):
    a, b, c = rand(m, k, dtype="float64"), rand(k, n, dtype="float64"), rand(2, m, n, dtype="float64")
    launched = run(doubles_product_kernel, (cdiv(m, 32), cdiv(n, 64)), (a, b, c, m, n, k, 0.7, -0.3), c[1], BM=32, BN=64, BK=4, num_warps=8)
    return against(launched, lambda: 0.7 * a @ b - 0.3 * c[0])


@triton.jit
def wave_in_a_room_kernel(now_ptr, before_ptr, speed_ptr, next_ptr, NZ, NY, NX, BZ: tl.constexpr, BY: tl.constexpr, BX: tl.constexpr):
    # One step of the wave equation, fourth order, in three dimensions; each program goes up through BZ planes.
    x = tl.program_id(0) * BX + tl.arange(0, BX)[None, :]
    y = tl.program_id(1) * BY + tl.arange(0, BY)[:, None]
    plane = NY * NX
    ok = (x < NX) & (y < NY)
    inner = (x >= 2) & (x < NX - 2) & (y >= 2) & (y < NY - 2)
    for dz in range(BZ):
        z = tl.program_id(2) * BZ + dz
        if z < NZ:
            at = z * plane + y * NX + x
            u = tl.load(now_ptr + at, mask=ok, other=0.0)
            live = inner & (z >= 2) & (z < NZ - 2)
            lap = -7.5 * u
            for axis in tl.static_range(3):
                if axis == 0:
                    step = 1
                elif axis == 1:
                    step = NX
                else:
                    step = plane
                near = tl.load(now_ptr + at - step, mask=live, other=0.0) + tl.load(now_ptr + at + step, mask=live, other=0.0)
                distant = tl.load(now_ptr + at - 2 * step, mask=live, other=0.0) + tl.load(now_ptr + at + 2 * step, mask=live, other=0.0)
                lap += 1.3333333333 * near - 0.08333333333 * distant
            v = tl.load(speed_ptr + at, mask=live, other=0.0)
            old = tl.load(before_ptr + at, mask=live, other=0.0)
            tl.store(next_ptr + at, tl.where(live, 2.0 * u - old + v * lap, 0.0), mask=ok)


@case
def cloister_of_waves_in_a_room(nz=130, ny=310, nx=330):
    now, before, speed = f32(nz, ny, nx), f32(nz, ny, nx), uniform(nz, ny, nx) * 0.1
    new = torch.zeros_like(now)
    grid = (cdiv(nx, 64), cdiv(ny, 8), cdiv(nz, 10))
    launched = run(wave_in_a_room_kernel, grid, (now, before, speed, new, nz, ny, nx), new, BZ=10, BY=8, BX=64, num_warps=4)

    def reference():
        u = now.double()
        taps = torch.tensor([-1 / 12, 4 / 3, -2.5, 4 / 3, -1 / 12], device=u.device, dtype=torch.float64)
        out = torch.zeros_like(u)
        i = slice(2, -2)
        lap = sum(F.conv3d(u[None, None], taps.view([5 if a == b else 1 for b in range(3)])[None, None])[0, 0][tuple(slice(None) if a == b else i for b in range(3))] for a in range(3))
        out[i, i, i] = (2 * u - before)[i, i, i] + speed[i, i, i] * lap
        return out

    return against(launched, reference)


@triton.jit
def strided_conv_as_product_kernel(
    x_ptr, w_ptr, y_ptr, B, H, W, C, O, OH, OW, KH: tl.constexpr, KW: tl.constexpr, STRIDE: tl.constexpr, PAD: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BC: tl.constexpr,
):
    # A convolution with strides as a product, where one loop runs over taps and channels together.
    pix = tl.program_id(0) * BM + tl.arange(0, BM)
    o = tl.program_id(1) * BN + tl.arange(0, BN)
    b = pix // (OH * OW)
    oy = (pix // OW) % OH
    ox = pix % OW
    live = pix < B * OH * OW
    steps_c = tl.cdiv(C, BC)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for step in range(KH * KW * steps_c):
        tap = step // steps_c
        c = (step % steps_c) * BC + tl.arange(0, BC)
        iy = oy * STRIDE + tap // KW - PAD
        ix = ox * STRIDE + tap % KW - PAD
        ok = live & (iy >= 0) & (iy < H) & (ix >= 0) & (ix < W)
        x = tl.load(x_ptr + ((b * H + iy) * W + ix)[:, None] * C + c[None, :], mask=ok[:, None] & (c[None, :] < C), other=0.0)
        w = tl.load(w_ptr + (tap * C + c[:, None]) * O + o[None, :], mask=(c[:, None] < C) & (o[None, :] < O), other=0.0)
        acc = tl.dot(x, w, acc)
    tl.store(y_ptr + pix[:, None] * O + o[None, :], tl.maximum(acc, 0.0).to(tl.float16), mask=live[:, None] & (o[None, :] < O))


@case
def cloister_of_strided_conv(b=16, h=57, w=63, c=96, o=200):
    x, weight = rand(b, h, w, c), rand(5, 3, c, o) * 0.05
    oh, ow = (h + 2 - 5) // 2 + 1, (w + 2 - 3) // 2 + 1
    y = zeros(b, oh, ow, o)
    flags = dict(KH=5, KW=3, STRIDE=2, PAD=1, BM=64, BN=128, BC=32)
    launched = run(strided_conv_as_product_kernel, (cdiv(b * oh * ow, 64), cdiv(o, 128)), (x, weight, y, b, h, w, c, o, oh, ow), y, num_warps=4, num_stages=3, **flags)
    return against(launched, lambda: F.conv2d(x.float().permute(0, 3, 1, 2), weight.float().permute(3, 2, 0, 1), stride=2, padding=1).relu().permute(0, 2, 3, 1))


@triton.jit
def rows_of_doubles_spmv_kernel(ptr_ptr, col_ptr, val_ptr, x_ptr, y_ptr, n_rows, ROWS: tl.constexpr, LANES: tl.constexpr):
    # CSR times a vector in doubles: rows of a tile advance together until the longest is done.
    r = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    ok = r < n_rows
    begin = tl.load(ptr_ptr + r, mask=ok, other=0)
    end = tl.load(ptr_ptr + r + 1, mask=ok, other=0)
    acc = tl.zeros((ROWS, LANES), dtype=tl.float64)
    longest = tl.max(end - begin, axis=0)
    lane = tl.arange(0, LANES)[None, :]
    for off in range(0, longest, LANES):
        at = begin[:, None] + off + lane
        m = at < end[:, None]
        c = tl.load(col_ptr + at, mask=m, other=0)
        acc += tl.load(val_ptr + at, mask=m, other=0.0) * tl.load(x_ptr + c, mask=m, other=0.0)
    tl.store(y_ptr + r, tl.sum(acc, axis=1), mask=ok)


@case
def cloister_of_rows_of_doubles(rows=100_000, cols=80_000, most=40):
    counts = ints(0, most, rows)
    ptr = F.pad(counts.cumsum(0), (1, 0)).to(torch.int32)
    nnz = int(ptr[-1])
    col, val, x = ints(0, cols, nnz), rand(nnz, dtype="float64"), rand(cols, dtype="float64")
    y = zeros(rows, dtype="float64")
    launched = run(rows_of_doubles_spmv_kernel, (cdiv(rows, 16),), (ptr, col, val, x, y, rows), y, ROWS=16, LANES=8, num_warps=4)

    def reference():
        of = torch.repeat_interleave(arange(rows, "int64"), counts)
        return torch.zeros_like(y).index_add_(0, of, val * x[col.long()])

    return against(launched, reference)


@triton.jit
def sparse_blocks_times_dense_kernel(ptr_ptr, idx_ptr, blk_ptr, x_ptr, y_ptr, N, BS: tl.constexpr, BN: tl.constexpr):
    # Sparse matrix of square blocks by a dense one; empty rows are written too.
    row = tl.program_id(0)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    i = tl.arange(0, BS)
    acc = tl.zeros((BS, BN), dtype=tl.float32)
    at = tl.load(ptr_ptr + row)
    end = tl.load(ptr_ptr + row + 1)
    while at < end:
        bc = tl.load(idx_ptr + at)
        blk = tl.load(blk_ptr + at * (BS * BS) + i[:, None] * BS + i[None, :])
        x = tl.load(x_ptr + (bc * BS + i[:, None]) * N + n[None, :], mask=n[None, :] < N, other=0.0)
        acc = tl.dot(blk, x, acc)
        at += 1
    tl.store(y_ptr + (row * BS + i[:, None]) * N + n[None, :], acc.to(y_ptr.dtype.element_ty), mask=n[None, :] < N)


@case
def cloister_of_sparse_blocks(rows=200, cols=160, share=0.3, bs=32, n=500):
    some = uniform(rows, cols) < share
    some[3] = False
    where = some.nonzero()
    ptr = F.pad(some.sum(1).cumsum(0), (1, 0)).to(torch.int32)
    idx, blk = where[:, 1].to(torch.int32).contiguous(), rand(len(where), bs, bs, dtype="bfloat16")
    x, y = rand(cols * bs, n, dtype="bfloat16"), zeros(rows * bs, n, dtype="bfloat16")
    launched = run(sparse_blocks_times_dense_kernel, (rows, cdiv(n, 64)), (ptr, idx, blk, x, y, n), y, BS=bs, BN=64, num_warps=2, num_stages=3)

    def reference():
        dense = torch.zeros(rows, cols, bs, bs, device=x.device)
        dense[where[:, 0], where[:, 1]] = blk.float()
        return dense.transpose(1, 2).reshape(rows * bs, cols * bs) @ x.float()

    return against(launched, reference)


@triton.jit
def softened_bodies_kernel(p_ptr, acc_ptr, pot_ptr, n, eps2, BI: tl.constexpr, BJ: tl.constexpr):
    # Pulls of all bodies on each, with softening; position and mass are four numbers in a row.
    i = tl.program_id(0) * BI + tl.arange(0, BI)
    xi = tl.load(p_ptr + i * 4, mask=i < n, other=0.0)[:, None]
    yi = tl.load(p_ptr + i * 4 + 1, mask=i < n, other=0.0)[:, None]
    zi = tl.load(p_ptr + i * 4 + 2, mask=i < n, other=0.0)[:, None]
    ax = tl.zeros((BI, BJ), tl.float32)
    ay = tl.zeros((BI, BJ), tl.float32)
    az = tl.zeros((BI, BJ), tl.float32)
    pot = tl.zeros((BI, BJ), tl.float32)
    for j0 in range(0, n, BJ):
        j = j0 + tl.arange(0, BJ)
        dx = tl.load(p_ptr + j * 4, mask=j < n, other=0.0)[None, :] - xi
        dy = tl.load(p_ptr + j * 4 + 1, mask=j < n, other=0.0)[None, :] - yi
        dz = tl.load(p_ptr + j * 4 + 2, mask=j < n, other=0.0)[None, :] - zi
        mass = tl.load(p_ptr + j * 4 + 3, mask=j < n, other=0.0)[None, :]
        inv = tl.rsqrt(dx * dx + dy * dy + dz * dz + eps2)
        s = mass * inv
        pot -= s
        s = s * inv * inv
        ax += s * dx
        ay += s * dy
        az += s * dz
    tl.store(acc_ptr + i * 3, tl.sum(ax, 1), mask=i < n)
    tl.store(acc_ptr + i * 3 + 1, tl.sum(ay, 1), mask=i < n)
    tl.store(acc_ptr + i * 3 + 2, tl.sum(az, 1), mask=i < n)
    tl.store(pot_ptr + i, tl.sum(pot, 1), mask=i < n)


@case
def cloister_of_softened_bodies(n=12000, eps2=0.01):
    p = torch.cat([f32(n, 3), uniform(n, 1)], 1)
    acc, pot = zeros(n, 3, dtype="float32"), zeros(n, dtype="float32")
    launched = run(softened_bodies_kernel, (cdiv(n, 16),), (p, acc, pot, n, eps2), (acc, pot), BI=16, BJ=128, num_warps=4, num_stages=5)

    def reference():
        a, v = [], []
        for part in p.double().split(500):
            d = p[None, :, :3].double() - part[:, None, :3]
            inv = (d.square().sum(2) + eps2).rsqrt()
            a.append(((p[:, 3] * inv**3)[:, :, None] * d).sum(1))
            v.append(-(p[:, 3] * inv).sum(1))
        return torch.cat(a), torch.cat(v)

    return against(launched, reference)


@triton.jit
def pulled_and_relaxed_kernel(f_ptr, solid_ptr, out_ptr, rho_ptr, H, W, omega, BLOCK: tl.constexpr):
    # A lattice of nine velocities: pull from neighbors around the edges, bounce inside solid cells, relax elsewhere.
    y = tl.program_id(1)
    x = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ok = x < W
    n = H * W
    xm = tl.where(x == 0, W - 1, x - 1)
    xp = tl.where(x == W - 1, 0, x + 1)
    ym = tl.where(y == 0, H - 1, y - 1)
    yp = tl.where(y == H - 1, 0, y + 1)
    f0 = tl.load(f_ptr + y * W + x, mask=ok, other=0.0)
    f1 = tl.load(f_ptr + n + y * W + xm, mask=ok, other=0.0)
    f2 = tl.load(f_ptr + 2 * n + ym * W + x, mask=ok, other=0.0)
    f3 = tl.load(f_ptr + 3 * n + y * W + xp, mask=ok, other=0.0)
    f4 = tl.load(f_ptr + 4 * n + yp * W + x, mask=ok, other=0.0)
    f5 = tl.load(f_ptr + 5 * n + ym * W + xm, mask=ok, other=0.0)
    f6 = tl.load(f_ptr + 6 * n + ym * W + xp, mask=ok, other=0.0)
    f7 = tl.load(f_ptr + 7 * n + yp * W + xp, mask=ok, other=0.0)
    f8 = tl.load(f_ptr + 8 * n + yp * W + xm, mask=ok, other=0.0)
    solid = tl.load(solid_ptr + y * W + x, mask=ok, other=0) != 0
    rho = f0 + f1 + f2 + f3 + f4 + f5 + f6 + f7 + f8
    rho = tl.where(ok, rho, 1.0)
    ux = (f1 + f5 + f8 - f3 - f6 - f7) / rho
    uy = (f2 + f5 + f6 - f4 - f7 - f8) / rho
    base = 1.0 - 1.5 * (ux * ux + uy * uy)
    at = out_ptr + y * W + x
    w1 = rho * 0.1111111111
    w2 = rho * 0.02777777778
    a, b = ux + uy, ux - uy
    tl.store(at, tl.where(solid, f0, f0 + omega * (rho * 0.4444444444 * base - f0)), mask=ok)
    tl.store(at + n, tl.where(solid, f3, f1 + omega * (w1 * (base + 3.0 * ux + 4.5 * ux * ux) - f1)), mask=ok)
    tl.store(at + 2 * n, tl.where(solid, f4, f2 + omega * (w1 * (base + 3.0 * uy + 4.5 * uy * uy) - f2)), mask=ok)
    tl.store(at + 3 * n, tl.where(solid, f1, f3 + omega * (w1 * (base - 3.0 * ux + 4.5 * ux * ux) - f3)), mask=ok)
    tl.store(at + 4 * n, tl.where(solid, f2, f4 + omega * (w1 * (base - 3.0 * uy + 4.5 * uy * uy) - f4)), mask=ok)
    tl.store(at + 5 * n, tl.where(solid, f7, f5 + omega * (w2 * (base + 3.0 * a + 4.5 * a * a) - f5)), mask=ok)
    tl.store(at + 6 * n, tl.where(solid, f8, f6 + omega * (w2 * (base - 3.0 * b + 4.5 * b * b) - f6)), mask=ok)
    tl.store(at + 7 * n, tl.where(solid, f5, f7 + omega * (w2 * (base - 3.0 * a + 4.5 * a * a) - f7)), mask=ok)
    tl.store(at + 8 * n, tl.where(solid, f6, f8 + omega * (w2 * (base + 3.0 * b + 4.5 * b * b) - f8)), mask=ok)
    tl.store(rho_ptr + y * W + x, rho, mask=ok)


@case
def cloister_of_nine_velocities(h=1100, w=1500, omega=1.3):
    f, solid = uniform(9, h, w) * 0.1 + 0.1, (uniform(h, w) < 0.1).to(torch.uint8)
    out, rho = torch.zeros_like(f), zeros(h, w, dtype="float32")
    launched = run(pulled_and_relaxed_kernel, (cdiv(w, 256), h), (f, solid, out, rho, h, w, omega), (out, rho), BLOCK=256, num_warps=2)

    def reference():
        cx, cy = (0, 1, 0, -1, 0, 1, -1, -1, 1), (0, 0, 1, 0, -1, 1, 1, -1, -1)
        weight, back = (4 / 9, *[1 / 9] * 4, *[1 / 36] * 4), (0, 3, 4, 1, 2, 7, 8, 5, 6)
        g = torch.stack([f[i].double().roll((cy[i], cx[i]), (0, 1)) for i in range(9)])
        r = g.sum(0)
        ux, uy = sum(c * q for c, q in zip(cx, g)) / r, sum(c * q for c, q in zip(cy, g)) / r
        new = []
        for i in range(9):
            e = cx[i] * ux + cy[i] * uy
            new.append(torch.where(solid != 0, g[back[i]], g[i] + omega * (weight[i] * r * (1 + 3 * e + 4.5 * e * e - 1.5 * (ux * ux + uy * uy)) - g[i])))
        return torch.stack(new), r

    return against(launched, reference)


@triton.jit
def _pendulum_slopes(a, b, pa, pb, ratio):
    c = tl.cos(a - b)
    s = tl.sin(a - b)
    den = 1.0 / (2.0 - c * c)
    da = (pa - pb * c) * den
    db = (2.0 * pb - pa * c) * den
    x = da * db * s
    return da, db, -x - 2.0 * ratio * tl.sin(a), x - ratio * tl.sin(b)


@triton.jit
def double_pendulums_rk4_kernel(y_ptr, out_ptr, n, steps, dt, ratio, BLOCK: tl.constexpr):
    # Many double pendulums, each a lane, by Runge and Kutta's steps: a long chain of sines.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    a = tl.load(y_ptr + i, mask=m, other=0.0)
    b = tl.load(y_ptr + n + i, mask=m, other=0.0)
    p = tl.load(y_ptr + 2 * n + i, mask=m, other=0.0)
    q = tl.load(y_ptr + 3 * n + i, mask=m, other=0.0)
    for _ in range(steps):
        a1, b1, p1, q1 = _pendulum_slopes(a, b, p, q, ratio)
        h = dt * 0.5
        a2, b2, p2, q2 = _pendulum_slopes(a + h * a1, b + h * b1, p + h * p1, q + h * q1, ratio)
        a3, b3, p3, q3 = _pendulum_slopes(a + h * a2, b + h * b2, p + h * p2, q + h * q2, ratio)
        a4, b4, p4, q4 = _pendulum_slopes(a + dt * a3, b + dt * b3, p + dt * p3, q + dt * q3, ratio)
        w = dt / 6.0
        a += w * (a1 + 2.0 * (a2 + a3) + a4)
        b += w * (b1 + 2.0 * (b2 + b3) + b4)
        p += w * (p1 + 2.0 * (p2 + p3) + p4)
        q += w * (q1 + 2.0 * (q2 + q3) + q4)
    tl.store(out_ptr + i, a, mask=m)
    tl.store(out_ptr + n + i, b, mask=m)
    tl.store(out_ptr + 2 * n + i, p, mask=m)
    tl.store(out_ptr + 3 * n + i, q, mask=m)


@case
def cloister_of_double_pendulums(n=300_000, steps=20, dt=0.02, ratio=1.5):
    y = f32(4, n) * 0.7
    out = torch.zeros_like(y)
    launched = run(double_pendulums_rk4_kernel, (cdiv(n, 128),), (y, out, n, steps, dt, ratio), out, BLOCK=128, num_warps=4)

    def reference():
        def slopes(v):
            a, b, p, q = v
            c, s = torch.cos(a - b), torch.sin(a - b)
            da, db = (p - q * c) / (2 - c * c), (2 * q - p * c) / (2 - c * c)
            return torch.stack([da, db, -da * db * s - 2 * ratio * a.sin(), da * db * s - ratio * b.sin()])

        v = y.double()
        for _ in range(steps):
            k1 = slopes(v)
            k2 = slopes(v + dt / 2 * k1)
            k3 = slopes(v + dt / 2 * k2)
            v = v + dt / 6 * (k1 + 2 * k2 + 2 * k3 + slopes(v + dt * k3))
        return v

    return against(launched, reference)


@triton.jit
def one_color_of_a_sweep_kernel(u_ptr, rhs_ptr, out_ptr, res_ptr, H, W, omega, color, BY: tl.constexpr, BX: tl.constexpr):
    # Half of a red and black sweep with over-relaxation: cells of the other color are only copied; tiles tell how much changed.
    y = tl.program_id(0) * BY + tl.arange(0, BY)[:, None]
    x = tl.program_id(1) * BX + tl.arange(0, BX)[None, :]
    ok = (y < H) & (x < W)
    at = y * W + x
    u = tl.load(u_ptr + at, mask=ok, other=0.0)
    mine = ok & (((x + y) & 1) == color) & (y > 0) & (x > 0) & (y < H - 1) & (x < W - 1)
    up = tl.load(u_ptr + at - W, mask=mine, other=0.0)
    down = tl.load(u_ptr + at + W, mask=mine, other=0.0)
    left = tl.load(u_ptr + at - 1, mask=mine, other=0.0)
    right = tl.load(u_ptr + at + 1, mask=mine, other=0.0)
    f = tl.load(rhs_ptr + at, mask=mine, other=0.0)
    change = tl.where(mine, omega * (0.25 * (up + down + left + right - f) - u), 0.0)
    tl.store(out_ptr + at, u + change, mask=ok)
    tl.store(res_ptr + tl.program_id(0) * tl.num_programs(1) + tl.program_id(1), tl.sum(tl.sum(change * change, axis=1), axis=0))


@case
def cloister_of_one_color(h=3001, w=2999, omega=1.7, color=1):
    u, rhs = f32(h, w), f32(h, w)
    out, res = torch.zeros_like(u), zeros(cdiv(h, 16), cdiv(w, 64), dtype="float32")
    launched = run(one_color_of_a_sweep_kernel, tuple(res.shape), (u, rhs, out, res, h, w, omega, color), (out, res), BY=16, BX=64, num_warps=8)

    def reference():
        v = u.double()
        change = torch.zeros_like(v)
        i = slice(1, -1)
        change[i, i] = omega * (0.25 * (v[:-2, i] + v[2:, i] + v[i, :-2] + v[i, 2:] - rhs[i, i]) - v[i, i])
        change *= (arange(h)[:, None] + arange(w)) % 2 == color
        e = F.pad(change.square(), (0, -w % 64, 0, -h % 16))
        return v + change, e.view(res.shape[0], 16, res.shape[1], 64).sum((1, 3))

    return against(launched, reference)


@triton.jit
def gate_on_two_qubits_kernel(s_ptr, g_ptr, out_ptr, LOW: tl.constexpr, HIGH: tl.constexpr, BLOCK: tl.constexpr):
    # A gate of four by four complex numbers on two qubits of a state; parts of numbers alternate.
    k = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    base = ((k >> LOW) << (LOW + 1)) | (k & ((1 << LOW) - 1))
    base = ((base >> HIGH) << (HIGH + 1)) | (base & ((1 << HIGH) - 1))
    for r in tl.static_range(4):
        re = tl.zeros((BLOCK,), dtype=tl.float32)
        im = tl.zeros((BLOCK,), dtype=tl.float32)
        for c in tl.static_range(4):
            at = base + ((c & 1) << LOW) + ((c >> 1) << HIGH)
            x, y = tl.split(tl.load(s_ptr + at[:, None] * 2 + tl.arange(0, 2)[None, :]))
            gr = tl.load(g_ptr + (r * 4 + c) * 2)
            gi = tl.load(g_ptr + (r * 4 + c) * 2 + 1)
            re += gr * x - gi * y
            im += gr * y + gi * x
        to = base + ((r & 1) << LOW) + ((r >> 1) << HIGH)
        tl.store(out_ptr + to[:, None] * 2 + tl.arange(0, 2)[None, :], tl.join(re, im))


@case
def cloister_of_gates(qubits=23, low=3, high=14):
    s, g = f32(1 << qubits, 2), f32(4, 4, 2)
    out = torch.zeros_like(s)
    launched = run(gate_on_two_qubits_kernel, ((1 << qubits - 2) // 512,), (s, g, out), out, LOW=low, HIGH=high, BLOCK=512, num_warps=4)

    def reference():
        x = torch.view_as_complex(s).view(1 << qubits - high - 1, 2, 1 << high - low - 1, 2, 1 << low)
        y = torch.einsum("pqrs,artsb->aptqb", torch.view_as_complex(g).view(2, 2, 2, 2), x)
        return torch.view_as_real(y.reshape(-1))

    return against(launched, reference)


@triton.jit
def tridiagonal_columns_kernel(lo_ptr, di_ptr, up_ptr, rhs_ptr, work_ptr, x_ptr, n, systems, BLOCK: tl.constexpr):
    # Thomas' way for many systems side by side: down with the factors kept in memory, then back up.
    s = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = s < systems
    c = tl.zeros((BLOCK,), dtype=tl.float32)
    d = tl.zeros((BLOCK,), dtype=tl.float32)
    for i in range(n):
        at = i * systems + s
        a = tl.load(lo_ptr + at, mask=m, other=0.0)
        b = tl.load(di_ptr + at, mask=m, other=1.0)
        r = 1.0 / (b - a * c)
        d = (tl.load(rhs_ptr + at, mask=m, other=0.0) - a * d) * r
        c = tl.load(up_ptr + at, mask=m, other=0.0) * r
        tl.store(work_ptr + at, c, mask=m)
        tl.store(x_ptr + at, d, mask=m)
    tl.debug_barrier()
    x = d
    for back in range(1, n):
        at = (n - 1 - back) * systems + s
        x = tl.load(x_ptr + at, mask=m, other=0.0) - tl.load(work_ptr + at, mask=m, other=0.0) * x
        tl.store(x_ptr + at, x, mask=m)


@case
def cloister_of_tridiagonal_columns(n=128, systems=60000):
    lo, up, rhs, di = f32(n, systems), f32(n, systems), f32(n, systems), uniform(n, systems) + 9
    lo[0], up[-1] = 0, 0
    work, x = torch.zeros_like(lo), torch.zeros_like(lo)
    launched = run(tridiagonal_columns_kernel, (cdiv(systems, 128),), (lo, di, up, rhs, work, x, n, systems), x, BLOCK=128, num_warps=4)

    def reference():
        d, r = di.double().clone(), rhs.double().clone()
        for i in range(1, n):
            w = lo[i] / d[i - 1]
            d[i] -= w * up[i - 1]
            r[i] -= w * r[i - 1]
        y = torch.zeros_like(r)
        y[-1] = r[-1] / d[-1]
        for i in range(n - 2, -1, -1):
            y[i] = (r[i] - up[i] * y[i + 1]) / d[i]
        return y

    return against(launched, reference)


@triton.jit
def kronecker_applied_kernel(a_ptr, b_ptr, x_ptr, y_ptr, PA: tl.constexpr, PB: tl.constexpr):
    # (A x B) vec(X) for many X: two products in a row of a tile that stays.
    i = tl.program_id(0).to(tl.int64)
    ra = tl.arange(0, PA)
    rb = tl.arange(0, PB)
    a = tl.load(a_ptr + ra[:, None] * PA + ra[None, :])
    bt = tl.load(b_ptr + rb[None, :] * PB + rb[:, None])
    x = tl.load(x_ptr + i * (PA * PB) + ra[:, None] * PB + rb[None, :])
    t = tl.dot(a, x)
    y = tl.dot(t.to(tl.float16), bt)
    tl.store(y_ptr + i * (PA * PB) + ra[:, None] * PB + rb[None, :], y.to(tl.float16))


@case
def cloister_of_kroneckers(batch=6000, pa=64, pb=32):
    a, b, x = rand(pa, pa) * 0.1, rand(pb, pb) * 0.2, rand(batch, pa, pb)
    y = torch.zeros_like(x)
    launched = run(kronecker_applied_kernel, (batch,), (a, b, x, y), y, PA=pa, PB=pb, num_warps=4)
    return against(launched, lambda: (x.float().view(batch, -1) @ torch.kron(a.float(), b.float()).t()).view(batch, pa, pb))


@triton.jit
def forward_substitution_by_tiles_kernel(l_ptr, inv_ptr, b_ptr, x_ptr, N, COLS, stride_l, stride_b, T: tl.constexpr, BC: tl.constexpr):
    # L X = B by tiles: a tile of rows takes away what earlier ones make, then the inverse of its own corner is applied.
    first = tl.program_id(0) * BC
    rows = tl.arange(0, T)
    for i in range(N // T):
        b_block = tl.make_block_ptr(b_ptr, (N, COLS), (stride_b, 1), (i * T, first), (T, BC), (1, 0))
        acc = tl.load(b_block, boundary_check=(1,), padding_option="zero")
        for j in range(i):
            low = tl.load(l_ptr + (i * T + rows[:, None]) * stride_l + j * T + rows[None, :])
            x_block = tl.make_block_ptr(x_ptr, (N, COLS), (stride_b, 1), (j * T, first), (T, BC), (1, 0))
            acc -= tl.dot(low, tl.load(x_block, boundary_check=(1,), padding_option="zero"), input_precision="ieee")
        corner = tl.load(inv_ptr + i * T * T + rows[:, None] * T + rows[None, :])
        x = tl.dot(corner, acc, input_precision="ieee")
        out_block = tl.make_block_ptr(x_ptr, (N, COLS), (stride_b, 1), (i * T, first), (T, BC), (1, 0))
        tl.store(out_block, x, boundary_check=(1,))
        tl.debug_barrier()


@case
def cloister_of_forward_tiles(n=256, cols=9001, t=32):
    low = (f32(n, n) * 0.05).tril(-1) + torch.diag(uniform(n) + 1)
    inv = torch.stack([torch.linalg.inv(low[i : i + t, i : i + t].double()).float() for i in range(0, n, t)]).contiguous()
    b = f32(n, cols)
    x = torch.zeros_like(b)
    launched = run(forward_substitution_by_tiles_kernel, (cdiv(cols, 32),), (low, inv, b, x, n, cols, n, cols), x, T=t, BC=32, num_warps=4, num_stages=1)
    return against(launched, lambda: torch.linalg.solve_triangular(low.double(), b.double(), upper=False))


@triton.jit
def turned_shorts_kernel(x_ptr, y_ptr, H, W, WP, HP, BH: tl.constexpr, BW: tl.constexpr):
    # Pictures of sixteen bits turned about their diagonal, with descriptors of three axes; the least bit of each goes to the top.
    batch = tl.program_id(2)
    h0 = tl.program_id(0) * BH
    w0 = tl.program_id(1) * BW
    pictures = tl.num_programs(2)
    src = tl.make_tensor_descriptor(x_ptr, shape=[pictures, H, W], strides=[H * WP, WP, 1], block_shape=[1, BH, BW])
    dst = tl.make_tensor_descriptor(y_ptr, shape=[pictures, W, H], strides=[W * HP, HP, 1], block_shape=[1, BW, BH])
    v = src.load([batch, h0, w0]).reshape(BH, BW).to(tl.int32) & 0xFFFF
    v = (v >> 1) | ((v & 1) << 15)
    dst.store([batch, w0, h0], tl.trans(v).to(tl.int16).reshape(1, BW, BH))


@case
def cloister_of_turned_shorts(pictures=20, h=1000, w=1304):
    x, y = ints(-32768, 32768, pictures, h, w, dtype="int16"), zeros(pictures, w, h, dtype="int16")
    launch, args = run(turned_shorts_kernel, (cdiv(h, 64), cdiv(w, 64), pictures), (x, y, h, w, w, h), y, BH=64, BW=64, num_warps=4)

    def with_memory(*args):
        triton.set_allocator(lambda size, align, stream: torch.empty(size, device="cuda", dtype=torch.int8))
        return launch(*args)

    def reference():
        v = x.transpose(1, 2).int() & 0xFFFF
        v = v // 2 + v % 2 * 32768
        return torch.where(v >= 32768, v - 65536, v)

    return against((with_memory, args), reference)
