"""Sundials: what is told by a shadow: windows in one 3-D block, padded rows, words by their cluster, gathers before products, sorted and broken sticks, turns along a line, steps until one."""

import torch
import torch.nn.functional as F
import triton
import triton.language as tl

from .common import against, case, cdiv, cleared, f32, ints, rand, run, uniform, zeros


@triton.jit
def windows_attend_in_3d_kernel(q_ptr, k_ptr, v_ptr, out_ptr, n_windows, scale, H: tl.constexpr, T: tl.constexpr, D: tl.constexpr, PER: tl.constexpr):
    # All heads of a window attend at once: 3-D products of (heads, tokens, channels).
    pid = tl.program_id(0)
    h = tl.arange(0, H)[:, None, None]
    t = tl.arange(0, T)[None, :, None]
    d = tl.arange(0, D)[None, None, :]
    for i in range(PER):
        w = pid * PER + i
        if w < n_windows:
            offs = w * (T * H * D) + t * (H * D) + h * D + d
            q = tl.load(q_ptr + offs)
            k = tl.load(k_ptr + offs)
            v = tl.load(v_ptr + offs)
            s = tl.dot(q, tl.permute(k, (0, 2, 1))) * scale
            s = s - tl.max(s, axis=2, keep_dims=True)
            p = tl.exp(s)
            p = p / tl.sum(p, axis=2, keep_dims=True)
            o = tl.dot(p.to(v.dtype), v)
            tl.store(out_ptr + offs, o.to(out_ptr.dtype.element_ty))


@case
def sundial_of_windows_in_one_block(windows=3001, t=16, heads=4, d=32):
    q, k, v = (rand(windows, t, heads, d) for _ in range(3))
    out = zeros(windows, t, heads, d)
    launched = run(windows_attend_in_3d_kernel, (cdiv(windows, 3),), (q, k, v, out, windows, d**-0.5), out, H=heads, T=t, D=d, PER=3, num_warps=4)

    def reference():
        a, b, c = (x.float().transpose(1, 2) for x in (q, k, v))
        return ((a @ b.transpose(2, 3) * d**-0.5).softmax(3) @ c).transpose(1, 2)

    return against(launched, reference)


@triton.jit
def matmul_with_while_kernel(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # C = A @ B, with a while loop over an inner extent that is no multiple of anything.
    pid = tl.program_id(0)
    num_n = tl.cdiv(N, BN)
    row = (pid // num_n) * BM + tl.arange(0, BM)
    col = (pid % num_n) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    k0 = 0
    left = K
    while left > 0:
        kk = k0 + tl.arange(0, BK)
        a = tl.load(a_ptr + row[:, None] * K + kk[None, :], mask=(row[:, None] < M) & (kk[None, :] < K), other=0.0)
        b = tl.load(b_ptr + kk[:, None] * N + col[None, :], mask=(kk[:, None] < K) & (col[None, :] < N), other=0.0)
        acc += tl.dot(a, b, input_precision="ieee")
        k0 += BK
        left -= BK
    tl.store(c_ptr + row[:, None] * N + col[None, :], acc, mask=(row[:, None] < M) & (col[None, :] < N))


@case
def sundial_of_a_product_while_some_is_left(m=2003, n=1001, k=77):
    a, b, c = f32(m, k), f32(k, n), zeros(m, n, dtype="float32")
    launched = run(matmul_with_while_kernel, (cdiv(m, 64) * cdiv(n, 32),), (a, b, c, m, n, k), c, BM=64, BN=32, BK=32, num_warps=2, num_stages=2)
    return against(launched, lambda: a @ b)


@triton.jit
def int8_block_pointer_kernel(
    a_ptr, w_ptr, sa_ptr, sw_ptr, bias_ptr, y_ptr, M, N, K, stride_am, stride_ak, stride_wn, stride_wk, stride_ym, stride_yn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    # Bytes times bytes through block pointers that check every border, five stages deep.
    pid_n = tl.program_id(0)
    pid_m = tl.program_id(1)
    a_blk = tl.make_block_ptr(a_ptr, (M, K), (stride_am, stride_ak), (pid_m * BLOCK_M, 0), (BLOCK_M, BLOCK_K), (1, 0))
    w_blk = tl.make_block_ptr(w_ptr, (K, N), (stride_wk, stride_wn), (0, pid_n * BLOCK_N), (BLOCK_K, BLOCK_N), (0, 1))
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.int32)
    for _ in range(0, tl.cdiv(K, BLOCK_K)):
        a = tl.load(a_blk, boundary_check=(0, 1), padding_option="zero")
        w = tl.load(w_blk, boundary_check=(0, 1), padding_option="zero")
        acc = tl.dot(a, w, acc, out_dtype=tl.int32)
        a_blk = tl.advance(a_blk, (0, BLOCK_K))
        w_blk = tl.advance(w_blk, (BLOCK_K, 0))
    m = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    y = acc.to(tl.float32) * tl.load(sa_ptr + m, m < M)[:, None] * tl.load(sw_ptr + n, n < N)[None, :] + tl.load(bias_ptr + n, n < N)[None, :]
    y_blk = tl.make_block_ptr(y_ptr, (M, N), (stride_ym, stride_yn), (pid_m * BLOCK_M, pid_n * BLOCK_N), (BLOCK_M, BLOCK_N), (1, 0))
    tl.store(y_blk, y.to(tl.bfloat16), boundary_check=(0, 1))


@case
def sundial_of_bytes_by_block_pointers(m=900, n=2100, k=1552):
    a, w = ints(-127, 128, m, k, dtype="int8"), ints(-127, 128, n, k, dtype="int8")
    sa, sw, bias, y = uniform(m) * 0.01, uniform(n) * 0.01, f32(n), zeros(m, n, dtype="bfloat16")
    args = a, w, sa, sw, bias, y, m, n, k, *a.stride(), *w.stride(), *y.stride()
    launched = run(int8_block_pointer_kernel, (cdiv(n, 64), cdiv(m, 128)), args, y, BLOCK_M=128, BLOCK_N=64, BLOCK_K=64, num_warps=8, num_stages=5)
    return against(launched, lambda: (a.double() @ w.double().t()).float() * sa[:, None] * sw + bias)


@triton.jit
def tiles_flattened_with_peaks_kernel(a_desc, b_desc, c_desc, peak_ptr, M, N, K, NUM: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # A persistent flattened loop over tiles; rows' largest magnitudes are joined through atomics on the bits of floats.
    start = tl.program_id(0)
    num_m = tl.cdiv(M, BM)
    tiles = num_m * tl.cdiv(N, BN)
    for tile in tl.range(start, tiles, NUM, flatten=True):
        pm = tile % num_m
        pn = tile // num_m
        acc = tl.zeros((BM, BN), tl.float32)
        for k in range(0, K, BK):
            a = a_desc.load([pm * BM, k])
            b = b_desc.load([pn * BN, k])
            acc = tl.dot(a, b.T, acc)
        c_desc.store([pm * BM, pn * BN], acc.to(tl.float16))
        rows = pm * BM + tl.arange(0, BM)
        tl.atomic_max(peak_ptr + rows, tl.max(tl.abs(acc), axis=1), mask=rows < M)


@triton.jit
def tiles_flattened_with_peaks(a_ptr, b_ptr, c_ptr, peak_ptr, M, N, K, NUM: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Descriptors are made in the kernel, one for each matrix.
    a_desc = tl.make_tensor_descriptor(a_ptr, [M, K], [K, 1], [BM, BK])
    b_desc = tl.make_tensor_descriptor(b_ptr, [N, K], [K, 1], [BN, BK])
    c_desc = tl.make_tensor_descriptor(c_ptr, [M, N], [N, 1], [BM, BN])
    tiles_flattened_with_peaks_kernel(a_desc, b_desc, c_desc, peak_ptr, M, N, K, NUM, BM, BN, BK)


@case
def sundial_of_flattened_tiles_and_their_peaks(m=1500, n=2008, k=520, programs=132):
    a, b, c, peak = rand(m, k), rand(n, k), zeros(m, n), zeros(m, dtype="float32")
    launch, args = run(tiles_flattened_with_peaks, (programs,), (a, b, c, peak, m, n, k), (c, peak), NUM=programs, BM=64, BN=128, BK=64, num_warps=4, num_stages=3)

    def told(*args):
        triton.set_allocator(lambda size, align, stream: torch.empty(size, device="cuda", dtype=torch.int8))
        return launch(*args)

    def reference():
        y = a.float() @ b.float().t()
        return y, y.abs().amax(1)

    return against(cleared((told, args), peak), reference)


@triton.jit
def _first_of_greatest(av, ai, bv, bi):
    take = (av > bv) | ((av == bv) & (ai < bi))
    return tl.where(take, av, bv), tl.where(take, ai, bi)


@triton.jit
def three_rows_wide_block_kernel(x_ptr, best_ptr, where_ptr, soft_ptr, N, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    # Three rows at once in a block of 4 x 1024: which of them is greatest in each column, and their softmax down the columns.
    batch = tl.program_id(0)
    r = tl.arange(0, 4)
    for start in range(0, N, BLOCK):
        c = start + tl.arange(0, BLOCK)
        mask = (r[:, None] < ROWS) & (c[None, :] < N)
        x = tl.load(x_ptr + (batch * ROWS + r[:, None]) * N + c[None, :], mask=mask, other=float("-inf")).to(tl.float32)
        value, at = tl.reduce((x, tl.broadcast_to(r[:, None], x.shape)), 0, _first_of_greatest)
        e = tl.exp(x - value[None, :])
        e = e / tl.sum(e, axis=0)[None, :]
        tl.store(best_ptr + batch * N + c, value, mask=c < N)
        tl.store(where_ptr + batch * N + c, at.to(tl.int8), mask=c < N)
        tl.store(soft_ptr + (batch * ROWS + r[:, None]) * N + c[None, :], e, mask=mask)


@case
def sundial_of_three_rows_in_a_wide_block(batch=700, n=3333):
    x = rand(batch, 3, n)
    best, where, soft = zeros(batch, n, dtype="float32"), zeros(batch, n, dtype="int8"), zeros(batch, 3, n)
    launched = run(three_rows_wide_block_kernel, (batch,), (x, best, where, soft, n), (best, where, soft), ROWS=3, BLOCK=1024, num_warps=16)

    def reference():
        y = x.float()
        first = torch.where(y == y.amax(1, keepdim=True), torch.arange(3, device=x.device)[:, None], 3).amin(1)
        return y.amax(1), first, y.softmax(1)

    return against(launched, reference)


@triton.jit
def _hamilton(aw, ax, ay, az, bw, bx, by, bz):
    w = aw * bw - ax * bx - ay * by - az * bz
    x = aw * bx + ax * bw + ay * bz - az * by
    y = aw * by - ax * bz + ay * bw + az * bx
    z = aw * bz + ax * by - ay * bx + az * bw
    return w, x, y, z


@triton.jit
def quaternions_along_a_chain_kernel(q_ptr, out_ptr, links, ROWS: tl.constexpr, LINKS: tl.constexpr):
    # Products of the quaternions of all links before each one of a chain.
    chain = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    link = tl.arange(0, LINKS)
    live = link[None, :] < links
    offs = (chain[:, None] * links + link[None, :]) * 4
    w = tl.load(q_ptr + offs, mask=live, other=1.0)
    x = tl.load(q_ptr + offs + 1, mask=live, other=0.0)
    y = tl.load(q_ptr + offs + 2, mask=live, other=0.0)
    z = tl.load(q_ptr + offs + 3, mask=live, other=0.0)
    norm = tl.rsqrt(w * w + x * x + y * y + z * z)
    w, x, y, z = tl.associative_scan((w * norm, x * norm, y * norm, z * norm), 1, _hamilton)
    out = tl.join(tl.join(w, y), tl.join(x, z))
    out = tl.reshape(out, (ROWS, LINKS, 4))
    at = (chain[:, None, None] * links + link[None, :, None]) * 4 + tl.arange(0, 4)[None, None, :]
    tl.store(out_ptr + at, out, mask=tl.broadcast_to((link < links)[None, :, None], out.shape))


@case
def sundial_of_turns_along_chains(chains=12000, links=100):
    q, out = f32(chains, links, 4), zeros(chains, links, 4, dtype="float32")
    launched = run(quaternions_along_a_chain_kernel, (chains // 4,), (q, out, links), out, ROWS=4, LINKS=128, num_warps=2)

    def reference():
        u = F.normalize(q.double(), dim=2)
        total, result = u[:, 0], [u[:, 0]]
        for i in range(1, links):
            (a, b, c, d), (w, x, y, z) = total.unbind(1), u[:, i].unbind(1)
            total = torch.stack((a * w - b * x - c * y - d * z, a * x + b * w + c * z - d * y, a * y - b * z + c * w + d * x, a * z + b * y - c * x + d * w), 1)
            result.append(total)
        return torch.stack(result, 1).float()

    return against(launched, reference)


@triton.jit
def gather_columns_then_dot_kernel(x_ptr, perm_ptr, sign_ptr, w_ptr, y_ptr, M, K, N, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Columns of each group of 64 are put in another order in registers, their signs set, and then they are multiplied.
    pid_m = tl.program_id(0)
    pid_n = tl.program_id(1)
    m = pid_m * BM + tl.arange(0, BM)
    n = pid_n * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for g in tl.range(0, K // BK, num_stages=3):
        k = tl.arange(0, BK)
        x = tl.load(x_ptr + m[:, None] * K + (g * BK + k)[None, :], mask=m[:, None] < M, other=0.0)
        order = tl.load(perm_ptr + g * BK + k).to(tl.int32)
        x = tl.gather(x, tl.broadcast_to(order[None, :], (BM, BK)), axis=1)
        flip = tl.load(sign_ptr + g * BK + k)
        x = tl.where(flip[None, :] != 0, -x, x)
        w = tl.load(w_ptr + (g * BK + k)[:, None] * N + n[None, :], mask=n[None, :] < N, other=0.0)
        acc += tl.dot(x, w)
    tl.store(y_ptr + m[:, None] * N + n[None, :], acc.to(y_ptr.dtype.element_ty), mask=(m[:, None] < M) & (n[None, :] < N))


@case
def sundial_of_columns_in_another_order(m=1100, k=1024, n=1000):
    x, w, y = rand(m, k), rand(k, n), zeros(m, n)
    perm = torch.stack([torch.randperm(64, device="cuda") for _ in range(k // 64)]).to(torch.uint8)
    sign = ints(0, 2, k, dtype="int8").to(torch.bool)
    launched = run(gather_columns_then_dot_kernel, (cdiv(m, 64), cdiv(n, 64)), (x, perm, sign, w, y, m, k, n), y, BM=64, BN=64, BK=64, num_warps=4, num_stages=2)

    def reference():
        z = torch.gather(x.float().reshape(m, k // 64, 64), 2, perm.long().expand(m, -1, -1)).reshape(m, k)
        return torch.where(sign, -z, z) @ w.float()

    return against(launched, reference)


@triton.jit
def gini_of_rows_kernel(x_ptr, gini_ptr, median_ptr, rows, cols, R: tl.constexpr, C: tl.constexpr):
    # Rows are sorted to tell how unequal their shares are, and which is in the middle.
    r = tl.program_id(0) * R + tl.arange(0, R)
    c = tl.arange(0, C)
    mask = (r[:, None] < rows) & (c[None, :] < cols)
    x = tl.load(x_ptr + r[:, None] * cols + c[None, :], mask=mask, other=3.0e38)
    x = tl.sort(x, 1)
    x = tl.where(c[None, :] < cols, x, 0.0)
    weight = 2.0 * (c + 1).to(tl.float32) - cols - 1.0
    total = tl.sum(x, 1)
    gini = tl.sum(x * weight[None, :], 1) / (cols * total)
    middle = tl.sum(tl.where(c[None, :] == (cols - 1) // 2, x, 0.0), 1)
    tl.store(gini_ptr + r, gini, mask=r < rows)
    tl.store(median_ptr + r, middle, mask=r < rows)


@case
def sundial_of_unequal_shares(rows=6001, cols=200):
    x = uniform(rows, cols).square() * 100 + 0.01
    gini, median = zeros(rows, dtype="float32"), zeros(rows, dtype="float32")
    launched = run(gini_of_rows_kernel, (cdiv(rows, 4),), (x, gini, median, rows, cols), (gini, median), R=4, C=256, num_warps=8)

    def reference():
        s = x.double().sort(1).values
        weight = 2 * torch.arange(1, cols + 1, device=x.device) - cols - 1
        return ((s * weight).sum(1) / (cols * s.sum(1))).float(), s[:, (cols - 1) // 2].float()

    return against(launched, reference)


@triton.jit
def histogram_of_steps_kernel(img_ptr, hist_ptr, H, W, BLOCK: tl.constexpr, BINS: tl.constexpr):
    # Counts of how much neighbors in a row of bytes differ, all columns of a row in a loop.
    row = tl.program_id(0)
    img = tl.program_id(1)
    base = img_ptr + (img.to(tl.int64) * H + row) * W
    counts = tl.zeros((BINS,), dtype=tl.int32)
    for c0 in range(0, W - 1, BLOCK):
        c = c0 + tl.arange(0, BLOCK)
        ok = c < W - 1
        left = tl.load(base + c, mask=ok, other=0).to(tl.int32)
        right = tl.load(base + c + 1, mask=ok, other=0).to(tl.int32)
        step = tl.abs(right - left) // 4
        counts += tl.histogram(step, BINS, mask=ok)
    b = tl.arange(0, BINS)
    tl.atomic_add(hist_ptr + img * BINS + b, counts, mask=counts > 0)


@case
def sundial_of_steps_between_pixels(images=8, height=480, width=1283):
    img = ints(0, 256, images, height, width, dtype="uint8")
    hist = zeros(images, 64, dtype="int32")
    launched = run(histogram_of_steps_kernel, (height, images), (img, hist, height, width), hist, BLOCK=512, BINS=64, num_warps=1)

    def reference():
        x = img.int()
        steps = (x[..., 1:] - x[..., :-1]).abs() // 4
        return torch.stack([torch.bincount(s.reshape(-1), minlength=64) for s in steps])

    return against(cleared(launched, hist), reference)


@triton.jit
def conv_of_pixels_nested_kernel(
    x_ptr, w_ptr, y_ptr, H, W, HO, WO, CIN: tl.constexpr, COUT: tl.constexpr, KS: tl.constexpr, STRIDE: tl.constexpr, DIL: tl.constexpr, BP: tl.constexpr, BC: tl.constexpr,
):
    # A dilated, strided convolution of bytes of channels-last images: loops over taps within loops over channels.
    pid = tl.program_id(0)
    b = tl.program_id(1)
    p = pid * BP + tl.arange(0, BP)
    oy = p // WO
    ox = p % WO
    o = tl.arange(0, COUT)
    acc = tl.zeros((BP, COUT), dtype=tl.float32)
    for c0 in range(0, CIN, BC):
        c = c0 + tl.arange(0, BC)
        for ky in range(KS):
            for kx in tl.static_range(KS):
                iy = oy * STRIDE + ky * DIL - DIL
                ix = ox * STRIDE + kx * DIL - DIL
                ok = (p < HO * WO) & (iy >= 0) & (iy < H) & (ix >= 0) & (ix < W)
                x = tl.load(x_ptr + ((b * H + iy[:, None]) * W + ix[:, None]) * CIN + c[None, :], mask=ok[:, None], other=128)
                x = (x.to(tl.float16) - 128) * 0.0078125
                w = tl.load(w_ptr + ((ky * KS + kx) * CIN + c[:, None]) * COUT + o[None, :])
                acc = tl.dot(x, w, acc)
    acc = tl.where(acc > 0, acc, 0.1 * acc)
    tl.store(y_ptr + (b * HO * WO + p[:, None]) * COUT + o[None, :], acc.to(tl.float16), mask=p[:, None] < HO * WO)


@case
def sundial_of_pixels_with_wide_steps(batch=6, height=61, width=83, cin=64, cout=32):
    ho, wo = (height - 1) // 2 + 1, (width - 1) // 2 + 1
    x, w = ints(0, 256, batch, height, width, cin, dtype="uint8"), rand(3, 3, cin, cout) * 0.1
    y = zeros(batch, ho, wo, cout)
    launched = run(conv_of_pixels_nested_kernel, (cdiv(ho * wo, 64), batch), (x, w, y, height, width, ho, wo), y, CIN=cin, COUT=cout, KS=3, STRIDE=2, DIL=2, BP=64, BC=32, num_warps=2, num_stages=4)

    def reference():
        z = F.pad(((x.float() - 128) / 128).permute(0, 3, 1, 2), (2, 2, 2, 2))
        return F.leaky_relu(F.conv2d(z, w.float().permute(3, 2, 0, 1), stride=2, dilation=2), 0.1)[:, :, :ho, :wo].permute(0, 2, 3, 1)

    return against(launched, reference)


@triton.jit
def collatz_kernel(start_ptr, steps_ptr, peak_ptr, n, BLOCK: tl.constexpr):
    # How many steps a number takes to one, and how high it gets, while any of the block is not there.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(start_ptr + i, mask=i < n, other=1)
    steps = tl.zeros((BLOCK,), tl.int32)
    peak = x
    while tl.max(x, axis=0) > 1:
        going = x > 1
        odd = (x & 1) == 1
        y = tl.where(odd, 3 * x + 1, x >> 1)
        x = tl.where(going, y, x)
        steps += going.to(tl.int32)
        peak = tl.maximum(peak, x)
    tl.store(steps_ptr + i, steps, mask=i < n)
    tl.store(peak_ptr + i, peak, mask=i < n)


@case
def sundial_of_steps_until_one(n=1_000_003, most=3_000_000):
    start = ints(1, most, n, dtype="int64")
    steps, peak = zeros(n, dtype="int32"), zeros(n, dtype="int64")
    launched = run(collatz_kernel, (cdiv(n, 128),), (start, steps, peak, n), (steps, peak), BLOCK=128, num_warps=1)

    def reference():
        x, count, top = start.clone(), torch.zeros_like(start), start.clone()
        while bool((x > 1).any()):
            going = x > 1
            x = torch.where(going, torch.where(x % 2 == 1, 3 * x + 1, x // 2), x)
            count += going
            top = torch.maximum(top, x)
        return count, top

    return against(launched, reference)


@triton.jit
def three_askers_kernel(
    q_ptr, k_ptr, v_ptr, keep_ptr, o_ptr, lse_ptr, S, scale, stride_kb, stride_kh, stride_ks, NQ: tl.constexpr, HEADS: tl.constexpr, D: tl.constexpr, BLOCK_Q: tl.constexpr, BLOCK_S: tl.constexpr,
):
    # Three queries of each head, padded to sixteen rows, over keys in fp8, of which a bool says which count.
    bh = tl.program_id(0)
    b = bh // HEADS
    h = bh % HEADS
    rows = tl.arange(0, BLOCK_Q)
    d = tl.arange(0, D)
    q = tl.load(q_ptr + (bh * NQ + rows[:, None]) * D + d[None, :], mask=rows[:, None] < NQ, other=0.0)
    m_i = tl.full([BLOCK_Q], -1e30, tl.float32)
    l_i = tl.zeros([BLOCK_Q], tl.float32)
    acc = tl.zeros([BLOCK_Q, D], tl.float32)
    for s0 in range(0, S, BLOCK_S):
        s = s0 + tl.arange(0, BLOCK_S)
        keep = tl.load(keep_ptr + b * S + s, mask=s < S, other=0)
        any_kept = tl.max(keep.to(tl.int32), 0)
        if any_kept > 0:
            at = b * stride_kb + h * stride_kh + s[:, None].to(tl.int64) * stride_ks + d[None, :]
            k = tl.load(k_ptr + at, mask=s[:, None] < S, other=0.0).to(tl.float16)
            v = tl.load(v_ptr + at, mask=s[:, None] < S, other=0.0).to(tl.float16)
            qk = tl.dot(q, tl.trans(k)) * scale
            qk = tl.where(keep[None, :] != 0, qk, -1e30)
            m_new = tl.maximum(m_i, tl.max(qk, 1))
            p = tl.where(keep[None, :] != 0, tl.exp(qk - m_new[:, None]), 0.0)
            alpha = tl.exp(m_i - m_new)
            l_i = l_i * alpha + tl.sum(p, 1)
            acc = acc * alpha[:, None] + tl.dot(p.to(tl.float16), v)
            m_i = m_new
    tl.store(o_ptr + (bh * NQ + rows[:, None]) * D + d[None, :], acc / l_i[:, None], mask=rows[:, None] < NQ)
    tl.store(lse_ptr + bh * NQ + rows, m_i + tl.log(l_i), mask=rows < NQ)


@case
def sundial_of_three_askers_and_kept_keys(batch=9, heads=16, nq=3, s=1999, d=64):
    q, k, v = rand(batch, heads, nq, d), rand(batch, s, heads, d).to(torch.float8_e4m3fn), rand(batch, s, heads, d).to(torch.float8_e4m3fn)
    keep = uniform(batch, s) < 0.6
    keep[:, 256:512] = False
    o, lse = zeros(batch, heads, nq, d, dtype="float32"), zeros(batch, heads, nq, dtype="float32")
    args = q, k, v, keep, o, lse, s, d**-0.5, k.stride(0), k.stride(2), k.stride(1)
    launched = run(three_askers_kernel, (batch * heads,), args, (o, lse), NQ=nq, HEADS=heads, D=d, BLOCK_Q=16, BLOCK_S=64, num_warps=1, num_stages=5)

    def reference():
        a = torch.einsum("bhqd,bshd->bhqs", q.float(), k.float()) * d**-0.5
        a = a.masked_fill(~keep[:, None, None], float("-inf"))
        return torch.einsum("bhqs,bshd->bhqd", a.softmax(3), v.float()), a.logsumexp(3)

    return against(launched, reference)


@triton.jit
def words_by_cluster_matmul_kernel(tok_ptr, cluster_ptr, row_ptr, table_ptr, w_ptr, out_ptr, T, E, N, BT: tl.constexpr, BN: tl.constexpr, BE: tl.constexpr):
    # A token tells its cluster, a cluster its row of the table, and the row is multiplied.
    t = tl.program_id(0) * BT + tl.arange(0, BT)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    tok = tl.load(tok_ptr + t, mask=t < T, other=-1)
    cluster = tl.load(cluster_ptr + tok, mask=tok >= 0, other=0)
    row = tl.load(row_ptr + cluster).to(tl.int64)
    acc = tl.zeros((BT, BN), tl.float32)
    for e0 in range(0, E, BE):
        e = e0 + tl.arange(0, BE)
        x = tl.load(table_ptr + row[:, None] * E + e[None, :], mask=(tok[:, None] >= 0) & (e[None, :] < E), other=0.0)
        w = tl.load(w_ptr + n[None, :] * E + e[:, None], mask=(n[None, :] < N) & (e[:, None] < E), other=0.0)
        acc += tl.dot(x, w)
    tl.store(out_ptr + t[:, None] * N + n[None, :], acc, mask=(t[:, None] < T) & (n[None, :] < N))


@case
def sundial_of_words_by_their_cluster(tokens=3000, vocabulary=50000, clusters=700, rows=300, e=300, n=500):
    tok, cluster = ints(0, vocabulary, tokens, dtype="int64"), ints(0, clusters, vocabulary, dtype="int16")
    tok[::11] = -1
    row, table, w = ints(0, rows, clusters), rand(rows, e), rand(n, e)
    out = zeros(tokens, n, dtype="float32")
    launched = run(words_by_cluster_matmul_kernel, (cdiv(tokens, 32), cdiv(n, 128)), (tok, cluster, row, table, w, out, tokens, e, n), out, BT=32, BN=128, BE=32, num_warps=8, num_stages=3)

    def reference():
        y = table.float()[row.long()[cluster.long()[tok.clamp(min=0)]]] @ w.float().t()
        return torch.where(tok[:, None] >= 0, y, 0)

    return against(launched, reference)


@triton.jit
def adds_in_the_loop_kernel(x_ptr, w_ptr, out_ptr, M, N, K, CHUNK: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Each program has some columns of x and goes down all rows, and adds each partial product to the result at once.
    pk = tl.program_id(0)
    pn = tl.program_id(1)
    n = pn * BN + tl.arange(0, BN)
    for m0 in range(0, M, BM):
        m = m0 + tl.arange(0, BM)
        acc = tl.zeros((BM, BN), dtype=tl.float32)
        for j in range(0, CHUNK, BK):
            k = pk * CHUNK + j + tl.arange(0, BK)
            x = tl.load(x_ptr + m[:, None] * K + k[None, :], mask=(m[:, None] < M) & (k[None, :] < K), other=0.0)
            w = tl.load(w_ptr + k[:, None] * N + n[None, :], mask=(k[:, None] < K) & (n[None, :] < N), other=0.0)
            acc = tl.dot(x, w, acc)
        tl.atomic_add(out_ptr + m[:, None] * N + n[None, :], acc, mask=(m[:, None] < M) & (n[None, :] < N))


@case
def sundial_of_sums_added_in_the_loop(m=100, n=600, k=9000):
    x, w, out = rand(m, k, dtype="bfloat16"), rand(k, n, dtype="bfloat16"), zeros(m, n, dtype="float32")
    launched = run(adds_in_the_loop_kernel, (cdiv(k, 512), cdiv(n, 64)), (x, w, out, m, n, k), out, CHUNK=512, BM=32, BN=64, BK=64, num_warps=4, num_stages=1)
    return against(cleared(launched, out), lambda: x.float() @ w.float())


@triton.jit
def gate_split_then_down_kernel(x_ptr, w1_ptr, w2_ptr, y_ptr, M, D: tl.constexpr, HID: tl.constexpr, BM: tl.constexpr, BH: tl.constexpr):
    # A whole gated layer whose gates and values alternate among columns: the hidden block is split in registers.
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    d = tl.arange(0, D)
    x = tl.load(x_ptr + m[:, None] * D + d[None, :], mask=m[:, None] < M, other=0.0)
    y = tl.zeros((BM, D), tl.float32)
    for h0 in range(0, HID, BH):
        c = 2 * h0 + tl.arange(0, 2 * BH)
        w1 = tl.load(w1_ptr + d[:, None] * (2 * HID) + c[None, :])
        both = tl.dot(x, w1).reshape(BM, BH, 2)
        gate, up = tl.split(both)
        hidden = gate * tl.sigmoid(1.702 * gate) * (up + 1.0)
        h = h0 + tl.arange(0, BH)
        w2 = tl.load(w2_ptr + h[:, None] * D + d[None, :])
        y = tl.dot(hidden.to(x.dtype), w2, y)
    tl.store(y_ptr + m[:, None] * D + d[None, :], y.to(y_ptr.dtype.element_ty), mask=m[:, None] < M)


@case
def sundial_of_gates_that_alternate(m=8003, d=128, hidden=256):
    x, w1, w2 = rand(m, d, dtype="bfloat16"), rand(d, 2 * hidden, dtype="bfloat16") * 0.1, rand(hidden, d, dtype="bfloat16") * 0.1
    y = zeros(m, d, dtype="bfloat16")
    launched = run(gate_split_then_down_kernel, (cdiv(m, 64),), (x, w1, w2, y, m), y, D=d, HID=hidden, BM=64, BH=32, num_warps=4, num_stages=2)

    def reference():
        gate, up = (x.float() @ w1.float()).reshape(m, hidden, 2).unbind(2)
        return (gate * torch.sigmoid(1.702 * gate) * (up + 1)) @ w2.float()

    return against(launched, reference)


@triton.jit
def circulant_product_kernel(c_ptr, x_ptr, y_ptr, n, cols, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, UNROLL: tl.constexpr):
    # A matrix whose rows are one row turned, which is never written down, times another.
    i = tl.program_id(0) * BM + tl.arange(0, BM)
    j = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k0 in tl.range(0, n, BK, loop_unroll_factor=UNROLL):
        k = k0 + tl.arange(0, BK)
        turn = (i[:, None] - k[None, :] + n) % n
        c = tl.load(c_ptr + turn, mask=(i[:, None] < n) & (k[None, :] < n), other=0.0)
        x = tl.load(x_ptr + k[:, None] * cols + j[None, :], mask=(k[:, None] < n) & (j[None, :] < cols), other=0.0)
        acc += tl.dot(c, x, allow_tf32=True)
    tl.store(y_ptr + i[:, None] * cols + j[None, :], acc, mask=(i[:, None] < n) & (j[None, :] < cols))


@case
def sundial_of_a_row_that_turns(n=1500, cols=640):
    c, x, y = rand(n), rand(n, cols), zeros(n, cols)
    launched = run(circulant_product_kernel, (cdiv(n, 32), cdiv(cols, 64)), (c, x, y, n, cols), y, BM=32, BN=64, BK=32, UNROLL=2, num_warps=4, num_stages=4)

    def reference():
        i = torch.arange(n, device=c.device)
        return c.float()[(i[:, None] - i) % n] @ x.float()

    return against(launched, reference)


@triton.jit
def sticks_broken_kernel(logit_ptr, w_ptr, rest_ptr, rows, N, BLOCK: tl.constexpr, STAGES: tl.constexpr):
    # Rows in a persistent loop: each number breaks its share off what those before it have left.
    c = tl.arange(0, BLOCK)
    for row in tl.range(tl.program_id(0), rows, tl.num_programs(0), num_stages=STAGES):
        x = tl.load(logit_ptr + row * N + c, mask=c < N, other=float("-inf")).to(tl.float32)
        share = tl.sigmoid(x)
        kept = tl.cumprod(1.0 - share, axis=0)
        before = kept / (1.0 - share)
        tl.store(w_ptr + row * N + c, share * before, mask=c < N)
        tl.store(rest_ptr + row, tl.min(kept, axis=0))


@case
def sundial_of_broken_sticks(rows=20001, n=500, programs=264):
    logits = rand(rows, n) * 1.5 - 4
    w, rest = zeros(rows, n, dtype="float32"), zeros(rows, dtype="float32")
    launched = run(sticks_broken_kernel, (programs,), (logits, w, rest, rows, n), (w, rest), BLOCK=512, STAGES=3, num_warps=2)

    def reference():
        share = torch.sigmoid(logits.double())
        kept = (1 - share).cumprod(1)
        return (share * F.pad(kept[:, :-1], (1, 0), value=1)).float(), kept[:, -1].float()

    return against(launched, reference)


@triton.jit
def column_facts_kernel(x_ptr, low_ptr, high_ptr, at_ptr, mean_ptr, count_ptr, M, N, BM: tl.constexpr, BN: tl.constexpr):
    # Five facts of each column of numbers of which some are missing, sixteen warps for eight columns.
    n = tl.program_id(0) * BN + tl.arange(0, BN)
    low = tl.full((BN,), 1e30, tl.float32)
    high = tl.full((BN,), -1e30, tl.float32)
    at = tl.zeros((BN,), tl.int64)
    total = tl.zeros((BN,), tl.float32)
    count = tl.zeros((BN,), tl.int32)
    for m0 in range(0, M, BM):
        m = m0 + tl.arange(0, BM)
        x = tl.load(x_ptr + m[:, None].to(tl.int64) * N + n[None, :], mask=(m[:, None] < M) & (n[None, :] < N), other=float("nan")).to(tl.float32)
        there = x == x
        value, index = tl.max(tl.where(there, x, -1e30), axis=0, return_indices=True)
        at = tl.where(value > high, m0 + index, at)
        high = tl.maximum(high, value)
        low = tl.minimum(low, tl.min(tl.where(there, x, 1e30), axis=0))
        total += tl.sum(tl.where(there, x, 0.0), axis=0)
        count += tl.sum(there.to(tl.int32), axis=0)
    tl.store(low_ptr + n, low, mask=n < N)
    tl.store(high_ptr + n, high, mask=n < N)
    tl.store(at_ptr + n, at, mask=n < N)
    tl.store(mean_ptr + n, total / count, mask=n < N)
    tl.store(count_ptr + n, count, mask=n < N)


@case
def sundial_of_columns_with_missing_numbers(m=5000, n=2500):
    x = f32(m, n)
    x[uniform(m, n) < 0.1] = float("nan")
    low, high, at, mean, count = (zeros(n, dtype=t) for t in ("float32", "float32", "int64", "float32", "int32"))
    launched = run(column_facts_kernel, (cdiv(n, 8),), (x, low, high, at, mean, count, m, n), (low, high, at, mean, count), BM=256, BN=8, num_warps=16)

    def reference():
        there = ~x.isnan()
        top = torch.where(there, x, -1e30)
        return torch.where(there, x, 1e30).amin(0), top.amax(0), top.argmax(0), x.double().nanmean(0).float(), there.sum(0)

    return against(launched, reference)
