"""Brickyards: triangles and frames drawn, heaps that touch, patterns in turned texts, survival of bricks, and experts, chunks, caches and samplers of models."""

import torch
import torch.nn.functional as F
import triton
import triton.language as tl

from .common import against, arange, case, cdiv, cleared, f32, ints, rand, run, uniform, zeros


@triton.jit
def edge_of(ax, ay, bx, by, px, py):
    return (bx - ax) * (py - ay) - (by - ay) * (px - ax)


@triton.jit
def draw_triangles_of_sixteenths(v_ptr, buffer_ptr, W, H, TX: tl.constexpr, TY: tl.constexpr):
    # One triangle a program, corners in sixteenths of a pixel: pixels inside keep the nearest depth and whose it is.
    t = tl.program_id(0)
    v = v_ptr + t * 9
    x0, y0, z0 = tl.load(v), tl.load(v + 1), tl.load(v + 2)
    x1, y1, z1 = tl.load(v + 3), tl.load(v + 4), tl.load(v + 5)
    x2, y2, z2 = tl.load(v + 6), tl.load(v + 7), tl.load(v + 8)
    area = edge_of(x0, y0, x1, y1, x2, y2)
    if area == 0:
        return
    sign = tl.where(area > 0, 1, -1)
    area = area * sign
    left = tl.maximum(tl.minimum(tl.minimum(x0, x1), x2) >> 4, 0)
    right = tl.minimum(tl.maximum(tl.maximum(x0, x1), x2) >> 4, W - 1)
    top = tl.maximum(tl.minimum(tl.minimum(y0, y1), y2) >> 4, 0)
    bottom = tl.minimum(tl.maximum(tl.maximum(y0, y1), y2) >> 4, H - 1)
    y = top
    while y <= bottom:
        x = left
        while x <= right:
            px = x + tl.arange(0, TX)[None, :]
            py = y + tl.arange(0, TY)[:, None]
            cx, cy = px * 16 + 8, py * 16 + 8
            w0 = edge_of(x1, y1, x2, y2, cx, cy) * sign
            w1 = edge_of(x2, y2, x0, y0, cx, cy) * sign
            w2 = area - w0 - w1
            inside = (w0 >= 0) & (w1 >= 0) & (w2 >= 0) & (px <= right) & (py <= bottom)
            depth = (w0.to(tl.int64) * z0 + w1.to(tl.int64) * z1 + w2.to(tl.int64) * z2) // area
            key = ((65535 - depth) << 32) | (t + 1)
            tl.atomic_max(buffer_ptr + py * W + px, key, mask=inside, sem="relaxed")
            x += TX
        y += TY


@case
def brickyard_triangles_drawn_with_their_depths(n=20_000, w=1111, h=999):
    center = torch.stack([ints(-160, w * 16 + 160, n), ints(-160, h * 16 + 160, n)], 1)
    corners = center[:, None] + ints(-250, 251, n, 3, 2)
    v = torch.cat([corners, ints(0, 65536, n, 3, 1)], 2).contiguous()
    buffer = zeros(h, w, dtype="int64")
    launched = cleared(run(draw_triangles_of_sixteenths, (n,), (v, buffer, w, h), buffer, TX=16, TY=8, num_warps=4), buffer)

    def reference():
        out = torch.zeros(h * w, device="cuda", dtype=torch.int64)
        for s in range(0, n, 500):
            q = v[s : s + 500].long()
            x, y, z = q[:, :, 0, None, None], q[:, :, 1, None, None], q[:, :, 2, None, None]
            px = (x.amin(1) >> 4) + torch.arange(34, device="cuda")[None, None, :]
            py = (y.amin(1) >> 4) + torch.arange(34, device="cuda")[None, :, None]

            def side(i, j, ax, ay):
                return (x[:, j] - x[:, i]) * (ay - y[:, i]) - (y[:, j] - y[:, i]) * (ax - x[:, i])

            area = side(0, 1, x[:, 2], y[:, 2])
            way = area.sign()
            w0, w1, w2 = (side(i, j, px * 16 + 8, py * 16 + 8) * way for i, j in ((1, 2), (2, 0), (0, 1)))
            ok = (w0 >= 0) & (w1 >= 0) & (w2 >= 0) & (way != 0) & (px >= 0) & (py >= 0) & (px < w) & (py < h)
            depth = (w0 * z[:, 0] + w1 * z[:, 1] + w2 * z[:, 2]) // area.abs().clamp(min=1)
            number = (s + 1 + torch.arange(q.shape[0], device="cuda"))[:, None, None]
            key = ((65535 - depth) << 32) | number
            out.scatter_reduce_(0, (py * w + px)[ok], key[ok], "amax")
        return out.reshape(h, w)

    return against(launched, reference)


@triton.jit
def hook_roots(u_ptr, v_ptr, parent_ptr, E, BLOCK: tl.constexpr):
    # Each edge climbs from both ends to roots and hangs the larger one under the smaller one by compare-and-swap.
    e = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ok = e < E
    u = tl.load(u_ptr + e, mask=ok, other=0)
    v = tl.load(v_ptr + e, mask=ok, other=0)
    active = u != v
    while tl.max(active.to(tl.int32), axis=0) > 0:
        pu = tl.load(parent_ptr + u, mask=active, other=0, volatile=True)
        pv = tl.load(parent_ptr + v, mask=active, other=0, volatile=True)
        roots = active & (pu == u) & (pv == v) & (u != v)
        high, low = tl.maximum(u, v), tl.minimum(u, v)
        old = tl.atomic_cas(parent_ptr + high, tl.where(roots, high, -1), tl.where(roots, low, -1))
        hung = roots & (old == high)
        u = tl.where(active, pu, u)
        v = tl.where(active, pv, v)
        active = active & (hung == 0) & (u != v)


@triton.jit
def flatten_to_roots(parent_ptr, label_ptr, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ok = i < N
    p = tl.load(parent_ptr + i, mask=ok, other=0)
    moved = ok
    while tl.max(moved.to(tl.int32), axis=0) > 0:
        above = tl.load(parent_ptr + p, mask=moved, other=0)
        moved = moved & (above != p)
        p = tl.where(moved, above, p)
    tl.store(label_ptr + i, p, mask=ok)


@case
def brickyard_heaps_that_touch_become_one(n=400_000, e=260_000):
    u, v, own = ints(0, n, e), ints(0, n, e), arange(n)
    parent, label = zeros(n, dtype="int32"), zeros(n, dtype="int32")

    def launch(u, v, own, parent, label):
        parent.copy_(own)
        hook_roots[(cdiv(e, 256),)](u, v, parent, e, BLOCK=256, num_warps=4)
        flatten_to_roots[(cdiv(n, 512),)](parent, label, n, BLOCK=512, num_warps=4)
        return label

    def reference():
        least, a, b = own.long(), u.long(), v.long()
        while True:
            new = least.scatter_reduce(0, a, least[b], "amin").scatter_reduce(0, b, least[a], "amin")
            new = new[new]
            if torch.equal(new, least):
                return least.int()
            least = new

    return against((launch, (u, v, own, parent, label)), reference)


@triton.jit
def padded_experts_mm(
    a_ptr, b_ptr, c_ptr, b_scale_ptr, expert_num_tokens, N, K, max_num_tokens, stride_ae, stride_am, stride_ak, stride_be, stride_bk, stride_bn,
    stride_ce, stride_cm, stride_cn, stride_bse, stride_bsn, use_int8_w8a16: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    # Rows of every expert lie in a padded batch; tiles behind an expert's last row end at once; weights may be bytes with scales of columns.
    expert_id = tl.program_id(0).to(tl.int64)
    e_num_tokens = tl.load(expert_num_tokens + expert_id)
    if e_num_tokens == 0:
        return
    num_n = tl.cdiv(N, BLOCK_N)
    pid_m = tl.program_id(1) // num_n
    pid_n = tl.program_id(1) % num_n
    if pid_m * BLOCK_M >= e_num_tokens:
        return
    offs_m = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_k = tl.arange(0, BLOCK_K)
    mask_m, mask_n = offs_m < e_num_tokens, offs_n < N
    a_ptrs = a_ptr + expert_id * stride_ae + offs_m[:, None] * stride_am + offs_k[None, :] * stride_ak
    b_ptrs = b_ptr + expert_id * stride_be + offs_k[:, None] * stride_bk + offs_n[None, :] * stride_bn
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BLOCK_K)):
        left = K - k * BLOCK_K
        a = tl.load(a_ptrs, mask=mask_m[:, None] & (offs_k[None, :] < left), other=0.0)
        b = tl.load(b_ptrs, mask=(offs_k[:, None] < left) & mask_n[None, :], other=0)
        if use_int8_w8a16:
            acc = tl.dot(a, b.to(a.dtype), acc=acc)
        else:
            acc += tl.dot(a, b)
        a_ptrs += BLOCK_K * stride_ak
        b_ptrs += BLOCK_K * stride_bk
    if use_int8_w8a16:
        scale = tl.load(b_scale_ptr + expert_id * stride_bse + offs_n * stride_bsn, mask=mask_n, other=0.0)
        acc = acc * scale[None, :]
    c_ptrs = c_ptr + expert_id * stride_ce + offs_m[:, None] * stride_cm + offs_n[None, :] * stride_cn
    tl.store(c_ptrs, acc.to(c_ptr.dtype.element_ty), mask=mask_m[:, None] & mask_n[None, :])


@case
def brickyard_padded_experts_of_uneven_loads(e=24, most=320, n=1400, k=1100):
    a, b = rand(e, most, k, dtype="bfloat16"), ints(-127, 128, e, n, k, dtype="int8")
    scale, c = uniform(e, n) / 64, zeros(e, most, n, dtype="bfloat16")
    loads = (arange(e) * 97) % (most + 1)
    args = a, b, c, scale, loads, n, k, most, *a.stride(), b.stride(0), b.stride(2), b.stride(1), *c.stride(), *scale.stride()
    grid = (e, cdiv(most, 64) * cdiv(n, 128))
    launched = run(padded_experts_mm, grid, args, c, use_int8_w8a16=True, BLOCK_M=64, BLOCK_N=128, BLOCK_K=64, num_warps=4, num_stages=3)

    def reference():
        y = torch.bmm(a.float(), b.float().transpose(1, 2)) * scale[:, None]
        return torch.where((torch.arange(most, device="cuda")[None, :] < loads[:, None])[..., None], y, 0.0)

    return against(launched, reference)


@triton.jit(do_not_specialize=["T"])
def scaled_dots_of_decaying_keys(
    k, g, beta, A, cu_seqlens, chunk_indices, T, H: tl.constexpr, K: tl.constexpr, BT: tl.constexpr, BK: tl.constexpr, USE_G: tl.constexpr, IS_VARLEN: tl.constexpr
):
    # Keys of a chunk against those before them, less what the gate lets fade in between, times how much is written.
    i_t, i_bh = tl.program_id(0), tl.program_id(1)
    i_b, i_h = i_bh // H, i_bh % H
    if IS_VARLEN:
        i_n, i_t = tl.load(chunk_indices + i_t * 2).to(tl.int32), tl.load(chunk_indices + i_t * 2 + 1).to(tl.int32)
        bos, eos = tl.load(cu_seqlens + i_n).to(tl.int32), tl.load(cu_seqlens + i_n + 1).to(tl.int32)
        T = eos - bos
    else:
        bos, eos = i_b * T, i_b * T + T
    o_t = i_t * BT + tl.arange(0, BT)
    m_t = o_t < T
    p_beta = tl.make_block_ptr(beta + bos * H + i_h, (T,), (H,), (i_t * BT,), (BT,), (0,))
    b_beta = tl.load(p_beta, boundary_check=(0,)).to(tl.float32)
    b_A = tl.zeros([BT, BT], dtype=tl.float32)
    for i_k in range(tl.cdiv(K, BK)):
        p_k = tl.make_block_ptr(k + (bos * H + i_h) * K, (T, K), (H * K, 1), (i_t * BT, i_k * BK), (BT, BK), (1, 0))
        b_k = tl.load(p_k, boundary_check=(0, 1))
        b_A += tl.dot(b_k, tl.trans(b_k))
    if USE_G:
        p_g = tl.make_block_ptr(g + bos * H + i_h, (T,), (H,), (i_t * BT,), (BT,), (0,))
        b_g = tl.load(p_g, boundary_check=(0,))
        b_A = b_A * tl.exp(b_g[:, None] - b_g[None, :])
    b_A *= b_beta[:, None]
    m_A = (o_t[:, None] > o_t[None, :]) & (m_t[:, None] & m_t)
    b_A = tl.where(m_A, b_A, 0)
    p_A = tl.make_block_ptr(A + (bos * H + i_h) * BT, (T, BT), (BT * H, 1), (i_t * BT, 0), (BT, BT), (1, 0))
    tl.store(p_A, b_A.to(p_A.dtype.element_ty), boundary_check=(0, 1))


@case
def brickyard_of_chunks_of_keys_that_fade(lens=(1000, 37, 2222, 641, 4000), h=8, kd=96, bt=64):
    total, ends = sum(lens), [0]
    for n in lens:
        ends.append(ends[-1] + n)
    chunks = [(i, j) for i, n in enumerate(lens) for j in range(cdiv(n, bt))]
    k, beta = F.normalize(f32(1, total, h, kd), dim=-1).bfloat16(), uniform(1, total, h).bfloat16()
    g, a = -uniform(1, total, h) * 2, zeros(1, total, h, bt, dtype="float32")
    cu, table = torch.tensor(ends).cuda(), torch.tensor(chunks).cuda()
    args = k, g, beta, a, cu, table, total
    options = dict(H=h, K=kd, BT=bt, BK=64, USE_G=True, IS_VARLEN=True, num_warps=4, num_stages=3)
    launched = run(scaled_dots_of_decaying_keys, (len(chunks), h), args, a, **options)

    def reference():
        out = torch.zeros_like(a)
        for i, j in chunks:
            s, e = ends[i] + j * bt, min(ends[i] + (j + 1) * bt, ends[i + 1])
            key, gate = k[0, s:e].float().transpose(0, 1), g[0, s:e].t()
            dots = (key @ key.transpose(1, 2)) * (gate[:, :, None] - gate[:, None, :]).exp() * beta[0, s:e].float().t()[:, :, None]
            out[0, s:e, :, : e - s] = dots.tril(-1).transpose(0, 1)
        return out

    return against(launched, reference)


@triton.jit
def exposed_points(xyz_ptr, r_ptr, sphere_ptr, nbr_ptr, area_ptr, count_ptr, MOST, POINTS, probe, BLOCK: tl.constexpr):
    # Points around one atom that a drop of water can touch: those in no neighbor's sphere.
    atom = tl.program_id(0)
    p = tl.arange(0, BLOCK)
    ok = p < POINTS
    x = tl.load(xyz_ptr + atom * 3)
    y = tl.load(xyz_ptr + atom * 3 + 1)
    z = tl.load(xyz_ptr + atom * 3 + 2)
    r = tl.load(r_ptr + atom) + probe
    px = x + tl.floor(r * tl.load(sphere_ptr + p * 3, mask=ok, other=0.0))
    py = y + tl.floor(r * tl.load(sphere_ptr + p * 3 + 1, mask=ok, other=0.0))
    pz = z + tl.floor(r * tl.load(sphere_ptr + p * 3 + 2, mask=ok, other=0.0))
    free = ok
    k = 0
    j = tl.load(nbr_ptr + atom * MOST)
    while (k < MOST) & (j >= 0):
        dx = px - tl.load(xyz_ptr + j * 3)
        dy = py - tl.load(xyz_ptr + j * 3 + 1)
        dz = pz - tl.load(xyz_ptr + j * 3 + 2)
        reach = tl.load(r_ptr + j) + probe
        free = free & (dx * dx + dy * dy + dz * dz >= reach * reach)
        k += 1
        j = tl.load(nbr_ptr + atom * MOST + k, mask=k < MOST, other=-1)
    count = tl.sum(free.to(tl.int32), axis=0)
    tl.store(count_ptr + atom, count)
    tl.store(area_ptr + atom, 12.566371 * r * r * count / POINTS)


@case
def brickyard_bricks_that_water_can_touch(atoms=4000, most=40, points=100):
    # Whole units of 1/64, directions in 64ths: all distances are exact.
    xyz = ints(0, 1500, atoms, 3).float()
    r = ints(90, 130, atoms).float()
    turn = arange(points).float() + 0.5
    high, angle = 1 - 2 * turn / points, turn * 2.3999632
    flat = (1 - high * high).clamp(min=0).sqrt()
    sphere = (torch.stack([flat * angle.cos(), flat * angle.sin(), high], 1) * 64).round() / 64
    nbr = ints(0, atoms, atoms, most)
    near = (xyz[nbr.long()] - xyz[:, None]).square().sum(2) < 600.0**2
    nbr = torch.where(near & (nbr != arange(atoms)[:, None]), nbr, torch.full_like(nbr, -1)).sort(1, descending=True)[0].contiguous()
    area, count, probe = zeros(atoms, dtype="float32"), zeros(atoms, dtype="int32"), 90.0
    args = xyz, r, sphere.contiguous(), nbr, area, count, most, points, probe
    launched = run(exposed_points, (atoms,), args, (area, count), BLOCK=128, num_warps=1)

    def reference():
        place = xyz.double()[:, None] + ((r.double() + probe)[:, None, None] * sphere.double()).floor()
        free = torch.ones(atoms, points, dtype=torch.bool, device="cuda")
        for k in range(most):
            j = nbr[:, k].long()
            away = (place - xyz.double()[j.clamp(min=0)][:, None]).square().sum(2) >= (r.double()[j.clamp(min=0)] + probe).square()[:, None]
            free &= away | (j < 0)[:, None]
        n = free.sum(1)
        return (12.566371 * (r + probe).square() * n / points), n.int()

    return against(launched, reference)


@triton.jit
def rank_in_text(bwt_ptr, occ_ptr, letter, i, active):
    block = i // 64
    c = tl.arange(0, 64)
    text = tl.load(bwt_ptr + (block * 64)[:, None] + c[None, :], mask=active[:, None] & (c[None, :] < (i % 64)[:, None]), other=9)
    found = tl.sum((text.to(tl.int32) == letter[:, None]).to(tl.int32), axis=1)
    return found + tl.load(occ_ptr + block * 4 + letter, mask=active, other=0)


@triton.jit
def count_patterns_backward(bwt_ptr, occ_ptr, first_ptr, pattern_ptr, count_ptr, Q, N, LENGTH: tl.constexpr, BLOCK: tl.constexpr):
    # Letters of patterns from the last one back narrow a range of sorted suffixes, by ranks from checkpoints every 64 letters.
    q = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ok = q < Q
    low = tl.zeros((BLOCK,), tl.int32)
    high = tl.zeros((BLOCK,), tl.int32) + N
    active = ok
    step = 0
    while (step < LENGTH) & (tl.max(active.to(tl.int32), axis=0) > 0):
        letter = tl.load(pattern_ptr + q * LENGTH + (LENGTH - 1 - step), mask=active, other=0).to(tl.int32)
        first = tl.load(first_ptr + letter)
        new_low = first + rank_in_text(bwt_ptr, occ_ptr, letter, low, active)
        new_high = first + rank_in_text(bwt_ptr, occ_ptr, letter, high, active)
        low = tl.where(active, new_low, low)
        high = tl.where(active, new_high, high)
        active = active & (high > low)
        step += 1
    tl.store(count_ptr + q, high - low, mask=ok)


@case
def brickyard_patterns_counted_in_a_turned_text(n=300_001, q=20_000, length=9):
    text = ints(0, 4, n - 1, dtype="int64").cpu()
    rank, step = torch.cat([text + 1, torch.zeros(1, dtype=torch.int64)]), 1
    while True:
        after = torch.cat([rank[step:] + 1, torch.zeros(min(step, n), dtype=torch.int64)])[:n]
        _, rank = torch.unique(rank * (n + 2) + after, return_inverse=True)
        if int(rank.max()) == n - 1:
            break
        step *= 2
    order = torch.argsort(rank)
    bwt = torch.cat([text, torch.tensor([4])])[(order - 1) % n]
    padded = F.pad(bwt, (0, 64 - n % 64), value=4)
    held = F.one_hot(padded, 5)[:, :4].reshape(-1, 64, 4).sum(1).cumsum(0)
    occ = torch.cat([torch.zeros(1, 4, dtype=torch.int64), held]).int().cuda()
    first = (1 + F.pad(torch.bincount(text, minlength=4).cumsum(0), (1, 0))[:4]).int().cuda()
    pattern, count = ints(0, 4, q, length, dtype="uint8"), zeros(q, dtype="int32")
    args = padded.to(torch.uint8).cuda(), occ, first, pattern, count, q, n
    launched = run(count_patterns_backward, (cdiv(q, 32),), args, count, LENGTH=length, BLOCK=32, num_warps=4)

    def reference():
        powers = 4 ** torch.arange(length - 1, -1, -1)
        grams = (text.unfold(0, length, 1) * powers).sum(1)
        return torch.bincount(grams, minlength=4**length)[(pattern.cpu().long() * powers).sum(1)].int().cuda()

    return against(launched, reference)


@triton.jit
def warp_perspective_kernel(src_ptr, h_ptr, out_ptr, H, W, OH, OW, mean, inv_std, BLOCK_H: tl.constexpr, BLOCK_W: tl.constexpr):
    # Output pixels through a matrix of nine to places of the source, four bytes blended for each of three channels, then normalized.
    b = tl.program_id(2)
    y = tl.program_id(1) * BLOCK_H + tl.arange(0, BLOCK_H)[:, None]
    x = tl.program_id(0) * BLOCK_W + tl.arange(0, BLOCK_W)[None, :]
    ok = (y < OH) & (x < OW)
    m = h_ptr + b * 9
    fx, fy = x.to(tl.float32), y.to(tl.float32)
    den = tl.load(m + 6) * fx + tl.load(m + 7) * fy + tl.load(m + 8)
    sx = (tl.load(m) * fx + tl.load(m + 1) * fy + tl.load(m + 2)) / den
    sy = (tl.load(m + 3) * fx + tl.load(m + 4) * fy + tl.load(m + 5)) / den
    x0f, y0f = tl.floor(sx), tl.floor(sy)
    wx, wy = sx - x0f, sy - y0f
    x0, y0 = x0f.to(tl.int32), y0f.to(tl.int32)
    for c in range(3):
        acc = tl.zeros((BLOCK_H, BLOCK_W), dtype=tl.float32)
        for dy in range(2):
            for dx in range(2):
                xx, yy = x0 + dx, y0 + dy
                inside = ok & (xx >= 0) & (xx < W) & (yy >= 0) & (yy < H)
                pixel = tl.load(src_ptr + ((b * H + yy) * W + xx) * 3 + c, mask=inside, other=0).to(tl.float32)
                weight = (wx if dx == 1 else 1.0 - wx) * (wy if dy == 1 else 1.0 - wy)
                acc += pixel * weight
        tl.store(out_ptr + ((b * 3 + c) * OH + y) * OW + x, ((acc - mean) * inv_std).to(tl.float16), mask=ok)


@case
def brickyard_pictures_of_walls_set_upright(b=6, h=720, w=1001, oh=640, ow=640):
    src = ints(0, 256, b, h, w, 3, dtype="uint8")
    base = torch.tensor([1.3, 0.2, -40.0, -0.1, 1.1, 30.0, 2e-4, -1e-4, 1.0]).cuda()
    m = (base * (1 + f32(b, 9) / 20)).contiguous()
    out = zeros(b, 3, oh, ow)
    args = src, m, out, h, w, oh, ow, 118.0, 1 / 64
    launched = run(warp_perspective_kernel, (cdiv(ow, 64), cdiv(oh, 4), b), args, out, BLOCK_H=4, BLOCK_W=64, num_warps=4)

    def reference():
        y, x = torch.meshgrid(torch.arange(oh, device="cuda"), torch.arange(ow, device="cuda"), indexing="ij")
        place = m.double().reshape(b, 3, 3) @ torch.stack([x, y, torch.ones_like(x)]).reshape(3, -1).double()
        sx, sy = place[:, 0] / place[:, 2], place[:, 1] / place[:, 2]
        image, total = src.reshape(b, h * w, 3).double(), 0
        for dy in (0, 1):
            for dx in (0, 1):
                xx, yy = sx.floor() + dx, sy.floor() + dy
                weight = (1 - (sx - xx).abs()) * (1 - (sy - yy).abs()) * ((xx >= 0) & (xx < w) & (yy >= 0) & (yy < h))
                at = (yy.clamp(0, h - 1) * w + xx.clamp(0, w - 1)).long()
                total = total + image.gather(1, at[..., None].expand(-1, -1, 3)) * weight[..., None]
        return ((total - 118) / 64).transpose(1, 2).reshape(b, 3, oh, ow).float()

    return against(launched, reference)


@triton.jit
def contextual_positions_attention(
    Q, K, V, E, O, sm_scale, stride_h, H, T, D: tl.constexpr, NPOS: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_T: tl.constexpr
):
    # A key's distance is the sum of gates between it and the query; terms of distance are taken between two whole ones.
    pid_m, pid_h = tl.program_id(0), tl.program_id(1)
    m, t, d = pid_m * BLOCK_M + tl.arange(0, BLOCK_M), tl.arange(0, BLOCK_T), tl.arange(0, D)
    q = tl.load(Q + pid_h * stride_h + m[:, None] * D + d[None, :], mask=(m < T)[:, None], other=0.0)
    k = tl.load(K + pid_h * stride_h + t[None, :] * D + d[:, None], mask=(t < T)[None, :], other=0.0)
    e = tl.load(E + pid_h % H * D * NPOS + d[:, None] * NPOS + tl.arange(0, NPOS)[None, :])
    seen = (t[None, :] <= m[:, None]) & (t < T)[None, :]
    s = tl.dot(q, k) * sm_scale
    gates = tl.where(seen, tl.sigmoid(s), 0.0)
    pos = tl.minimum(tl.cumsum(gates, axis=1, reverse=True), NPOS - 1.0)
    by_pos = tl.dot(q, e)
    low = tl.floor(pos).to(tl.int32)
    high = tl.minimum(low + 1, NPOS - 1)
    w = pos - low.to(tl.float32)
    s += tl.gather(by_pos, high, axis=1) * w + tl.gather(by_pos, low, axis=1) * (1.0 - w)
    s = tl.where(seen, s, float("-inf"))
    p = tl.exp(s - tl.max(s, axis=1)[:, None])
    p = p / tl.sum(p, axis=1)[:, None]
    v = tl.load(V + pid_h * stride_h + t[:, None] * D + d[None, :], mask=(t < T)[:, None], other=0.0)
    o = tl.dot(p.to(v.dtype), v)
    tl.store(O + pid_h * stride_h + m[:, None] * D + d[None, :], o.to(O.dtype.element_ty), mask=(m < T)[:, None])


@case
def brickyard_attention_that_counts_what_matters(b=4, h=8, t=250, d=64, npos=64):
    q, k, v = (rand(b * h, t, d, dtype="bfloat16") for _ in range(3))
    e, o = rand(h, d, npos, dtype="bfloat16") / 8, zeros(b * h, t, d, dtype="bfloat16")
    args = q, k, v, e, o, d**-0.5, t * d, h, t
    grid = (cdiv(t, 16), b * h)
    launched = run(contextual_positions_attention, grid, args, o, D=d, NPOS=npos, BLOCK_M=16, BLOCK_T=triton.next_power_of_2(t), num_warps=4)

    def reference():
        s = q.float() @ k.float().transpose(1, 2) * d**-0.5
        seen = torch.ones(t, t, device="cuda", dtype=torch.bool).tril()
        pos = torch.where(seen, s.sigmoid(), 0.0).flip(-1).cumsum(-1).flip(-1).clamp(max=npos - 1)
        terms = q.float() @ e.float().repeat(b, 1, 1)
        low = pos.floor()
        high = (low + 1).clamp(max=npos - 1)
        s = s + terms.gather(2, high.long()) * (pos - low) + terms.gather(2, low.long()) * (1 - pos + low)
        return s.masked_fill(~seen, float("-inf")).softmax(-1) @ v.float()

    return against(launched, reference)


@triton.jit
def rotated_left(x, n: tl.constexpr):
    return (x << n) | (x >> (64 - n))


@triton.jit
def keyed_sip_round(v0, v1, v2, v3):
    v0 += v1
    v1 = rotated_left(v1, 13) ^ v0
    v0 = rotated_left(v0, 32)
    v2 += v3
    v3 = rotated_left(v3, 16) ^ v2
    v0 += v3
    v3 = rotated_left(v3, 21) ^ v0
    v2 += v1
    v1 = rotated_left(v1, 17) ^ v2
    v2 = rotated_left(v2, 32)
    return v0, v1, v2, v3


@triton.jit
def siphash_strings(text_ptr, offset_ptr, out_ptr, key0, key1, N, BLOCK: tl.constexpr):
    # Strings of all lengths under two keyed words: two rounds for eight bytes, four at the end.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ok = i < N
    start = tl.load(offset_ptr + i, mask=ok, other=0)
    length = tl.load(offset_ptr + i + 1, mask=ok, other=0) - start
    zero = tl.zeros((BLOCK,), tl.uint64)
    k0, k1 = zero + key0.to(tl.uint64), zero + key1.to(tl.uint64)
    v0, v1, v2, v3 = k0 ^ 0x736F6D6570736575, k1 ^ 0x646F72616E646F6D, k0 ^ 0x6C7967656E657261, k1 ^ 0x7465646279746573
    words = length // 8 + 1
    word = 0
    while word < tl.max(words, axis=0):
        active = ok & (word < words)
        m = zero
        for byte in tl.static_range(8):
            at = word * 8 + byte
            m |= tl.load(text_ptr + start + at, mask=active & (at < length), other=0).to(tl.uint64) << (8 * byte)
        m = tl.where(word == words - 1, m | ((length.to(tl.uint64) & 255) << 56), m)
        n0, n1, n2, n3 = keyed_sip_round(v0, v1, v2, v3 ^ m)
        n0, n1, n2, n3 = keyed_sip_round(n0, n1, n2, n3)
        v0, v1 = tl.where(active, n0 ^ m, v0), tl.where(active, n1, v1)
        v2, v3 = tl.where(active, n2, v2), tl.where(active, n3, v3)
        word += 1
    v2 ^= 255
    for _ in tl.static_range(4):
        v0, v1, v2, v3 = keyed_sip_round(v0, v1, v2, v3)
    tl.store(out_ptr + i, (v0 ^ v1 ^ v2 ^ v3).to(tl.int64), mask=ok)


@case
def brickyard_marks_pressed_into_strings(n=150_000, most=60):
    lengths = ints(0, most, n, dtype="int64").cpu()
    offsets = F.pad(lengths.cumsum(0), (1, 0))
    text, out = ints(0, 256, int(offsets[-1]) + 1, dtype="uint8"), zeros(n, dtype="int64")
    keys = 0x0706050403020100, 0x0F0E0D0C0B0A0908
    args = text, offsets.cuda(), out, *keys, n
    launched = run(siphash_strings, (cdiv(n, 256),), args, out, BLOCK=256, num_warps=4)

    def reference():
        def rotate(x, s):
            return (x << s) | ((x >> (64 - s)) & ((1 << s) - 1))

        def turn(v):
            a, b, c, e = v
            a = a + b
            b = rotate(b, 13) ^ a
            a = rotate(a, 32)
            c = c + e
            e = rotate(e, 16) ^ c
            a = a + e
            e = rotate(e, 21) ^ a
            c = c + b
            b = rotate(b, 17) ^ c
            return a, b, rotate(c, 32), e

        start, size = offsets[:-1].cuda(), lengths.cuda()
        first = 0x736F6D6570736575, 0x646F72616E646F6D, 0x6C7967656E657261, 0x7465646279746573
        v = [torch.full((n,), keys[j % 2] ^ first[j], device="cuda", dtype=torch.int64) for j in range(4)]
        for word in range(most // 8 + 1):
            m = torch.zeros_like(v[0])
            for byte in range(8):
                at = word * 8 + byte
                value = text[(start + at).clamp(max=text.numel() - 1)].long()
                m |= torch.where(at < size, value, 0) << (8 * byte)
            m = torch.where(word == size // 8, m | (size << 56), m)
            new = turn(turn((v[0], v[1], v[2], v[3] ^ m)))
            new = new[0] ^ m, *new[1:]
            v = [torch.where(word <= size // 8, x, y) for x, y in zip(new, v)]
        v[2] = v[2] ^ 255
        for _ in range(4):
            v = turn(v)
        return v[0] ^ v[1] ^ v[2] ^ v[3]

    return against(launched, reference)


@triton.jit
def frame_pixel(ptr, y, x, H, W):
    y = tl.where(y < 0, -y, tl.where(y >= H, 2 * H - 2 - y, y))
    x = tl.minimum(tl.maximum(x, 0), W - 1)
    return tl.load(ptr + y * W + x).to(tl.int32)


@triton.jit
def deinterlace_kernel(prev_ptr, cur_ptr, next_ptr, out_ptr, H, W, PARITY: tl.constexpr, BLOCK: tl.constexpr):
    # Lines that a field lacks: along the edge that differs least, but not farther from the other fields than those move.
    y = tl.program_id(1)
    x = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ok = x < W
    own = frame_pixel(cur_ptr, y, x, H, W)
    if y % 2 == PARITY:
        tl.store(out_ptr + y * W + x, own.to(tl.uint8), mask=ok)
    else:
        c, e = frame_pixel(cur_ptr, y - 1, x, H, W), frame_pixel(cur_ptr, y + 1, x, H, W)
        before, after = frame_pixel(prev_ptr, y, x, H, W), frame_pixel(next_ptr, y, x, H, W)
        d = (before + after) >> 1
        diff0 = tl.abs(before - after) >> 1
        diff1 = (tl.abs(frame_pixel(prev_ptr, y - 1, x, H, W) - c) + tl.abs(frame_pixel(prev_ptr, y + 1, x, H, W) - e)) >> 1
        diff2 = (tl.abs(frame_pixel(next_ptr, y - 1, x, H, W) - c) + tl.abs(frame_pixel(next_ptr, y + 1, x, H, W) - e)) >> 1
        diff = tl.maximum(diff0, tl.maximum(diff1, diff2))
        guess = (c + e) >> 1
        best = tl.abs(c - e) - 1
        for k in tl.static_range(-1, 2, 2):
            best += tl.abs(frame_pixel(cur_ptr, y - 1, x + k, H, W) - frame_pixel(cur_ptr, y + 1, x + k, H, W))
        for j in tl.static_range(-2, 3):
            if j != 0:
                score = tl.zeros((BLOCK,), tl.int32)
                for k in tl.static_range(-1, 2):
                    score += tl.abs(frame_pixel(cur_ptr, y - 1, x + k + j, H, W) - frame_pixel(cur_ptr, y + 1, x + k - j, H, W))
                along = (frame_pixel(cur_ptr, y - 1, x + j, H, W) + frame_pixel(cur_ptr, y + 1, x - j, H, W)) >> 1
                guess = tl.where(score < best, along, guess)
                best = tl.minimum(score, best)
        guess = tl.where(guess > d + diff, d + diff, tl.where(guess < d - diff, d - diff, guess))
        tl.store(out_ptr + y * W + x, guess.to(tl.uint8), mask=ok)


@case
def brickyard_films_of_every_other_line_filled(h=1081, w=1919):
    films = [ints(0, 256, h, w, dtype="uint8") for _ in range(3)]
    out = zeros(h, w, dtype="uint8")
    launched = run(deinterlace_kernel, (cdiv(w, 512), h), (*films, out, h, w), out, PARITY=0, BLOCK=512, num_warps=4)

    def reference():
        rows, cols = torch.arange(h, device="cuda"), torch.arange(w, device="cuda")

        def at(which, dy, dx=0):
            y = (rows + dy).abs()
            y = torch.where(y >= h, 2 * h - 2 - y, y)
            return films[which].int()[y][:, (cols + dx).clamp(0, w - 1)]

        c, e, before, after = at(1, -1), at(1, 1), at(0, 0), at(2, 0)
        d = (before + after) // 2
        moves = [(before - after).abs() // 2] + [((at(f, -1) - c).abs() + (at(f, 1) - e).abs()) // 2 for f in (0, 2)]
        diff = torch.stack(moves).amax(0)
        guess, best = (c + e) // 2, sum((at(1, -1, k) - at(1, 1, k)).abs() for k in (-1, 0, 1)) - 1
        for j in (-2, -1, 1, 2):
            score = sum((at(1, -1, k + j) - at(1, 1, k - j)).abs() for k in (-1, 0, 1))
            guess = torch.where(score < best, (at(1, -1, j) + at(1, 1, -j)) // 2, guess)
            best = torch.minimum(best, score)
        filled = torch.minimum(torch.maximum(guess, d - diff), d + diff)
        return torch.where((rows % 2 == 0)[:, None], films[1].int(), filled).to(torch.uint8)

    return against(launched, reference)


@triton.jit
def rowwise_adagrad_of_segments(
    grad_ptr, sorted_bags_ptr, seg_ptr, unique_ptr, w_ptr, state_ptr, out_w_ptr, out_state_ptr, lr, eps, weight_decay, D, BLOCK_D: tl.constexpr, POOL_MEAN: tl.constexpr, bag_ptr
):
    # Gradients of all bags that used one row are added; one number a row remembers squares; the row takes its step.
    u = tl.program_id(0)
    lo, hi = tl.load(seg_ptr + u), tl.load(seg_ptr + u + 1)
    row = tl.load(unique_ptr + u)
    d = tl.arange(0, BLOCK_D)
    mask = d < D
    g = tl.zeros((BLOCK_D,), dtype=tl.float32)
    for i in range(lo, hi):
        bag = tl.load(sorted_bags_ptr + i)
        part = tl.load(grad_ptr + bag.to(tl.int64) * D + d, mask=mask, other=0.0).to(tl.float32)
        if POOL_MEAN:
            part = part / tl.load(bag_ptr + bag).to(tl.float32)
        g += part
    w = tl.load(w_ptr + row * D + d, mask=mask, other=0.0).to(tl.float32)
    g += weight_decay * w
    state = tl.load(state_ptr + row) + tl.sum(g * g, axis=0) / D
    w = w - lr * g / (tl.sqrt(state) + eps)
    tl.store(out_state_ptr + u, state)
    tl.store(out_w_ptr + u * D + d, w.to(out_w_ptr.dtype.element_ty), mask=mask)


@case
def brickyard_rows_of_tables_that_bags_have_used(bags=8000, uses=60_000, rows=50_000, d=100):
    which = (uniform(uses).square() * rows).to(torch.int64).cpu()
    bag = ints(0, bags, uses).cpu()
    order = torch.argsort(which, stable=True)
    unique, counts = torch.unique(which, return_counts=True)
    seg = F.pad(counts.cumsum(0), (1, 0)).int()
    grad, sizes = rand(bags, d, dtype="bfloat16"), torch.bincount(bag, minlength=bags).clamp(min=1).int().cuda()
    w, state, n = rand(rows, d), uniform(rows), unique.numel()
    out_w, out_state = zeros(n, d), zeros(n, dtype="float32")
    sorted_bags, unique = bag[order].cuda(), unique.cuda()
    args = grad, sorted_bags, seg.cuda(), unique, w, state, out_w, out_state, 0.05, 1e-6, 0.01, d
    launched = run(rowwise_adagrad_of_segments, (n,), args, (out_w, out_state), BLOCK_D=128, POOL_MEAN=True, bag_ptr=sizes, num_warps=1)

    def reference():
        g = torch.zeros(n, d, device="cuda")
        place = torch.repeat_interleave(torch.arange(n), counts).cuda()
        g.index_add_(0, place, grad.float()[sorted_bags.long()] / sizes[sorted_bags.long()][:, None])
        old = w.float()[unique]
        g = g + 0.01 * old
        new = state[unique] + g.square().mean(1)
        return old - 0.05 * g / (new.sqrt()[:, None] + 1e-6), new

    return against(launched, reference)


@triton.jit
def guided_multistep_update(
    x_ptr, cond_ptr, uncond_ptr, old_ptr, table_ptr, out_x_ptr, out_old_ptr, guidance, n, step, PREDICTS_V: tl.constexpr, FIRST: tl.constexpr, BLOCK: tl.constexpr
):
    # Two guesses to one by guidance, velocity to a clean picture, and a second order step along the logs of signal to noise.
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    row = table_ptr + step * 5
    alpha, sigma = tl.load(row), tl.load(row + 1)
    keep, gain, ratio = tl.load(row + 2), tl.load(row + 3), tl.load(row + 4)
    x = tl.load(x_ptr + offs, mask=mask, other=0.0).to(tl.float32)
    c = tl.load(cond_ptr + offs, mask=mask, other=0.0).to(tl.float32)
    u = tl.load(uncond_ptr + offs, mask=mask, other=0.0).to(tl.float32)
    v = u + guidance * (c - u)
    if PREDICTS_V:
        clean = alpha * x - sigma * v
    else:
        clean = (x - sigma * v) / alpha
    if FIRST:
        d = clean
    else:
        old = tl.load(old_ptr + offs, mask=mask, other=0.0).to(tl.float32)
        d = (1.0 + 0.5 / ratio) * clean - (0.5 / ratio) * old
    tl.store(out_x_ptr + offs, (keep * x + gain * d).to(out_x_ptr.dtype.element_ty), mask=mask)
    tl.store(out_old_ptr + offs, clean.to(out_old_ptr.dtype.element_ty), mask=mask)


@case
def brickyard_pictures_one_step_cleaner(b=2, c=16, f=21, h=60, w=104):
    n = b * c * f * h * w
    x, cond, uncond, old = (rand(n, dtype="bfloat16") for _ in range(4))
    table = torch.tensor([[0.3, 0.95, 0.9, 0.1, 1.0], [0.5, 0.866, 0.8, 0.3, 1.2], [0.7, 0.71, 0.7, 0.4, 0.8]]).cuda()
    ox, od = zeros(n, dtype="bfloat16"), zeros(n, dtype="float32")
    args = x, cond, uncond, old, table, ox, od, 5.0, n, 1
    launched = run(guided_multistep_update, (cdiv(n, 1024),), args, (ox, od), PREDICTS_V=True, FIRST=False, BLOCK=1024, num_warps=4)

    def reference():
        alpha, sigma, keep, gain, ratio = (table[1, k] for k in range(5))
        v = uncond.float() + 5 * (cond.float() - uncond.float())
        clean = alpha * x.float() - sigma * v
        return keep * x.float() + gain * ((1 + 0.5 / ratio) * clean - 0.5 / ratio * old.float()), clean

    return against(launched, reference)


@triton.jit
def pearson_matrix_kernel(x_ptr, out_ptr, N, F, BLOCK_F: tl.constexpr, BLOCK_N: tl.constexpr):
    # Correlations of all pairs of columns: means first, then products of what is above them.
    i = tl.program_id(0) * BLOCK_F + tl.arange(0, BLOCK_F)
    j = tl.program_id(1) * BLOCK_F + tl.arange(0, BLOCK_F)
    mean_i = tl.zeros((BLOCK_F,), dtype=tl.float32)
    mean_j = tl.zeros((BLOCK_F,), dtype=tl.float32)
    for start in range(0, N, BLOCK_N):
        n = start + tl.arange(0, BLOCK_N)
        a = tl.load(x_ptr + n[:, None] * F + i[None, :], mask=(n[:, None] < N) & (i[None, :] < F), other=0.0)
        b = tl.load(x_ptr + n[:, None] * F + j[None, :], mask=(n[:, None] < N) & (j[None, :] < F), other=0.0)
        mean_i += tl.sum(a, axis=0)
        mean_j += tl.sum(b, axis=0)
    mean_i = mean_i / N
    mean_j = mean_j / N
    cov = tl.zeros((BLOCK_F, BLOCK_F), dtype=tl.float32)
    var_i = tl.zeros((BLOCK_F,), dtype=tl.float32)
    var_j = tl.zeros((BLOCK_F,), dtype=tl.float32)
    for start in range(0, N, BLOCK_N):
        n = start + tl.arange(0, BLOCK_N)
        a = tl.load(x_ptr + n[:, None] * F + i[None, :], mask=(n[:, None] < N) & (i[None, :] < F), other=0.0)
        b = tl.load(x_ptr + n[:, None] * F + j[None, :], mask=(n[:, None] < N) & (j[None, :] < F), other=0.0)
        a = tl.where(n[:, None] < N, a - mean_i[None, :], 0.0)
        b = tl.where(n[:, None] < N, b - mean_j[None, :], 0.0)
        cov += tl.dot(tl.trans(a), b, input_precision="ieee")
        var_i += tl.sum(a * a, axis=0)
        var_j += tl.sum(b * b, axis=0)
    r = cov / tl.sqrt(var_i[:, None] * var_j[None, :] + 1e-12)
    tl.store(out_ptr + i[:, None] * F + j[None, :], r, mask=(i[:, None] < F) & (j[None, :] < F))


@case
def brickyard_clays_that_go_with_each_other(n=1001, f=700):
    x = f32(n, f) @ (f32(f, f) / f**0.5) + f32(1, f)
    out = zeros(f, f, dtype="float32")
    launched = run(pearson_matrix_kernel, (cdiv(f, 32), cdiv(f, 32)), (x, out, n, f), out, BLOCK_F=32, BLOCK_N=32)

    def reference():
        return torch.corrcoef(x.double().t()).float()

    return against(launched, reference)


@triton.jit
def lasting_product(a, b):
    return a * b


@triton.jit
def survival_of_groups(time_ptr, event_ptr, length_ptr, curve_ptr, spread_ptr, when_ptr, MOST, BLOCK: tl.constexpr):
    # A group's times are sorted, breaks before what was only seen so far; the curve is a running product, its variance a running sum.
    row = tl.program_id(0)
    length = tl.load(length_ptr + row)
    i = tl.arange(0, BLOCK)
    ok = i < length
    time = tl.load(time_ptr + row * MOST + i, mask=ok, other=0)
    event = tl.load(event_ptr + row * MOST + i, mask=ok, other=0).to(tl.int32)
    key = tl.sort(tl.where(ok, time * 2 + (1 - event), 2147483647))
    broke = ok & (key % 2 == 0)
    at_risk = tl.maximum(length - i, 1).to(tl.float32)
    curve = tl.associative_scan(tl.where(broke, 1.0 - 1.0 / at_risk, 1.0), 0, lasting_product)
    terms = tl.where(broke & (at_risk > 1.5), 1.0 / (at_risk * tl.maximum(at_risk - 1.0, 1.0)), 0.0)
    spread = curve * curve * tl.cumsum(terms, axis=0)
    tl.store(curve_ptr + row * MOST + i, curve, mask=ok)
    tl.store(spread_ptr + row * MOST + i, spread, mask=ok)
    breaks = broke.to(tl.int32)
    half = tl.cumsum(breaks, axis=0) * 2 >= tl.sum(breaks, axis=0)
    tl.store(when_ptr + row, tl.min(tl.where(ok & half, key // 2, 1000000), axis=0))


@case
def brickyard_bricks_that_last(groups=2500, most=900):
    time, event = ints(1, 5000, groups, most), ints(0, 3, groups, most, dtype="int8").clamp(max=1)
    length = most - (arange(groups) * 37) % (most - 10)
    curve, spread = zeros(groups, most, dtype="float32"), zeros(groups, most, dtype="float32")
    when = zeros(groups, dtype="int32")
    args = time, event, length, curve, spread, when, most
    launched = run(survival_of_groups, (groups,), args, (curve, spread, when), BLOCK=1024, num_warps=4)

    def reference():
        place = torch.arange(most, device="cuda")
        ok = place < length[:, None]
        key = torch.where(ok, time.long() * 2 + 1 - event, 1 << 40).sort(1)[0]
        risk = (length[:, None] - place).clamp(min=1).double()
        broke = ok & (key % 2 == 0)
        lasts = torch.where(broke, 1 - 1 / risk, 1.0).cumprod(1)
        terms = torch.where(broke & (risk > 1), 1 / (risk * (risk - 1).clamp(min=1)), 0.0).cumsum(1)
        half = broke.cumsum(1) * 2 >= broke.sum(1, keepdim=True)
        first = torch.where(ok & half, key // 2, 1000000).amin(1)
        return torch.where(ok, lasts, 0.0).float(), torch.where(ok, lasts**2 * terms, 0.0).float(), first.int()

    return against(launched, reference)


@triton.jit
def draft_branch_indices(
    req_pool_ptr, req_to_token_ptr, lens_ptr, kv_indices_ptr, kv_indptr_ptr, pool_len: tl.constexpr, kv_len: tl.constexpr, indptr_len: tl.constexpr,
    bs_upper: tl.constexpr, iter_upper: tl.constexpr, num_steps: tl.constexpr,
):
    # For each step of a draft and each of its branches: where the prompt's keys lie, then those of the branch up to this step.
    BLOCK_SIZE: tl.constexpr = 128
    iters = tl.program_id(0)
    bid = tl.program_id(1)
    topk_id = tl.program_id(2)
    num_seqs = tl.num_programs(1)
    topk = tl.num_programs(2)
    kv_indices_ptr += kv_len * iters
    kv_indptr_ptr += indptr_len * iters
    iters += 1
    load_offset = tl.arange(0, bs_upper)
    seq_lens = tl.load(lens_ptr + load_offset, mask=load_offset < bid, other=0)
    seq_len = tl.load(lens_ptr + bid)
    cum = tl.sum(seq_lens)
    kv_offset = cum * topk + bid * iters * topk + topk_id * (seq_len + iters)
    kv_ptr = kv_indices_ptr + kv_offset
    token_pool_ptr = req_to_token_ptr + tl.load(req_pool_ptr + bid) * pool_len
    kv_offset_in = tl.arange(0, BLOCK_SIZE)
    for _ in range(tl.cdiv(seq_len, BLOCK_SIZE)):
        mask = kv_offset_in < seq_len
        data = tl.load(token_pool_ptr + kv_offset_in, mask=mask, other=0)
        tl.store(kv_ptr + kv_offset_in, data, mask=mask)
        kv_offset_in += BLOCK_SIZE
    extend_offset = tl.arange(0, iter_upper)
    extend = tl.load(token_pool_ptr + seq_len + topk_id * num_steps + extend_offset, mask=extend_offset < iters, other=0)
    tl.store(kv_ptr + seq_len + extend_offset, extend, mask=extend_offset < iters)
    zid = bid * topk + topk_id
    if zid == 0:
        tl.store(kv_indptr_ptr, 0)
    tl.store(kv_indptr_ptr + zid + 1, kv_offset + seq_len + iters)


@case
def brickyard_drafts_whose_branches_list_their_keys(bs=48, topk=4, steps=5, most=6000):
    pool = most + topk * steps
    lens = 1 + (arange(bs) * 1237) % most
    held, table = (arange(bs) * 5) % (2 * bs), ints(0, 1 << 30, 2 * bs, pool)
    width = (bs * most + bs * steps) * topk
    out, indptr = zeros(steps, width, dtype="int32"), zeros(steps, bs * topk + 1, dtype="int32")
    args = held, table, lens, out, indptr, pool, width, bs * topk + 1
    options = dict(bs_upper=triton.next_power_of_2(bs), iter_upper=triton.next_power_of_2(steps), num_steps=steps)
    launched = run(draft_branch_indices, (steps, bs, topk), args, (out, indptr), **options)

    def reference():
        lists, ends = torch.zeros_like(out), torch.zeros_like(indptr)
        for step in range(steps):
            parts = []
            for i, n in enumerate(lens.tolist()):
                mine = table[int(held[i])]
                for k in range(topk):
                    parts.append(torch.cat([mine[:n], mine[n + k * steps : n + k * steps + step + 1]]))
            whole = torch.cat(parts)
            lists[step, : whole.numel()] = whole
            ends[step, 1:] = torch.tensor([p.numel() for p in parts]).cumsum(0)
        return lists, ends

    return against(launched, reference)


@triton.jit
def packed_keys_and_values_backward(
    Q, K, V, DO, LSE, Delta, DK, DV, cu_seqlens, sm_scale, stride_qm, stride_qh, stride_kn, stride_kh, total, GROUP: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, HEAD_DIM: tl.constexpr, CAUSAL: tl.constexpr,
):
    # Gradients of a block of keys and values of one of many sequences packed together, from all queries of all heads that share them.
    pid_n, kv_head, seq = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    start = tl.load(cu_seqlens + seq)
    length = tl.load(cu_seqlens + seq + 1) - start
    if pid_n * BLOCK_N >= length:
        return
    offs_n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_d = tl.arange(0, HEAD_DIM)
    mask_n = offs_n < length
    at_n = (start + offs_n)[:, None] * stride_kn + kv_head * stride_kh + offs_d[None, :]
    k = tl.load(K + at_n, mask=mask_n[:, None], other=0.0)
    v = tl.load(V + at_n, mask=mask_n[:, None], other=0.0)
    dk = tl.zeros([BLOCK_N, HEAD_DIM], dtype=tl.float32)
    dv = tl.zeros([BLOCK_N, HEAD_DIM], dtype=tl.float32)
    lo = pid_n * BLOCK_N // BLOCK_M * BLOCK_M if CAUSAL else 0
    for g in range(GROUP):
        head = kv_head * GROUP + g
        for start_m in range(lo, length, BLOCK_M):
            offs_m = start_m + tl.arange(0, BLOCK_M)
            mask_m = offs_m < length
            at_m = (start + offs_m)[:, None] * stride_qm + head * stride_qh + offs_d[None, :]
            q = tl.load(Q + at_m, mask=mask_m[:, None], other=0.0)
            do = tl.load(DO + at_m, mask=mask_m[:, None], other=0.0)
            lse = tl.load(LSE + head * total + start + offs_m, mask=mask_m, other=0.0)
            delta = tl.load(Delta + head * total + start + offs_m, mask=mask_m, other=0.0)
            s = tl.dot(k, tl.trans(q)) * sm_scale
            seen = mask_n[:, None] & mask_m[None, :]
            if CAUSAL:
                seen = seen & (offs_n[:, None] <= offs_m[None, :])
            p = tl.where(seen, tl.exp(s - lse[None, :]), 0.0)
            dv += tl.dot(p.to(do.dtype), do)
            dp = tl.dot(v, tl.trans(do))
            ds = p * (dp - delta[None, :])
            dk += tl.dot(ds.to(q.dtype), q)
    tl.store(DK + at_n, (dk * sm_scale).to(DK.dtype.element_ty), mask=mask_n[:, None])
    tl.store(DV + at_n, dv.to(DV.dtype.element_ty), mask=mask_n[:, None])


@case
def brickyard_keys_of_packed_sequences_learn(lens=(611, 1024, 77, 1500, 300), h=8, hk=4, d=64):
    ends = [0]
    for n in lens:
        ends.append(ends[-1] + n)
    total, scale = ends[-1], d**-0.5
    q, do = rand(total, h, d, dtype="bfloat16"), rand(total, h, d, dtype="bfloat16")
    k, v = rand(total, hk, d, dtype="bfloat16"), rand(total, hk, d, dtype="bfloat16")
    lse, delta = zeros(h, total, dtype="float32"), zeros(h, total, dtype="float32")

    def scores_of(i):
        part = slice(ends[i], ends[i + 1])
        keys = k[part].float().repeat_interleave(h // hk, 1)
        s = torch.einsum("mhd,nhd->hmn", q[part].float(), keys) * scale
        return part, s + torch.full_like(s[0], float("-inf")).triu(1)

    for i in range(len(lens)):
        part, s = scores_of(i)
        lse[:, part] = s.logsumexp(-1)
        o = torch.einsum("hmn,nhd->mhd", s.softmax(-1), v[part].float().repeat_interleave(h // hk, 1))
        delta[:, part] = (o * do[part].float()).sum(-1).t()
    dk, dv = zeros(total, hk, d, dtype="bfloat16"), zeros(total, hk, d, dtype="bfloat16")
    args = q, k, v, do, lse, delta, dk, dv, torch.tensor(ends, dtype=torch.int32).cuda(), scale, *q.stride()[:2], *k.stride()[:2], total
    options = dict(GROUP=h // hk, BLOCK_M=64, BLOCK_N=64, HEAD_DIM=d, CAUSAL=True, num_warps=4, num_stages=2)
    launched = run(packed_keys_and_values_backward, (cdiv(max(lens), 64), hk, len(lens)), args, (dk, dv), **options)

    def reference():
        ks, vs = torch.zeros(total, hk, d, device="cuda"), torch.zeros(total, hk, d, device="cuda")
        for i, n in enumerate(lens):
            part, s = scores_of(i)
            p = s.softmax(-1)
            values = v[part].float().repeat_interleave(h // hk, 1)
            dp = torch.einsum("mhd,nhd->hmn", do[part].float(), values)
            ds = p * (dp - delta[:, part][..., None]) * scale
            ks[part] = torch.einsum("hmn,mhd->nhd", ds, q[part].float()).reshape(n, hk, -1, d).sum(2)
            vs[part] = torch.einsum("hmn,mhd->nhd", p, do[part].float()).reshape(n, hk, -1, d).sum(2)
        return ks, vs

    return against(launched, reference)
