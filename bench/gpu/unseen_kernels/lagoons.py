"""Lagoons: shallow flows of gas, ways between islands, shells laid on each other, amplitudes, soundings, and what streams through models and their pages."""

import base64

import torch
import torch.nn.functional as F
import triton
import triton.language as tl

from .common import against, case, cdiv, f32, f8, ints, rand, run, uniform, zeros


@triton.jit
def gas_speed_and_pressure(rho, mx, my, energy, gamma):
    u, v = mx / rho, my / rho
    p = (gamma - 1.0) * (energy - 0.5 * rho * (u * u + v * v))
    return u, p, tl.sqrt(gamma * p / rho)


@triton.jit
def gas_flux_of_two_waves(rl, xl, yl, el, rr, xr, yr, er, gamma):
    ul, pl, cl = gas_speed_and_pressure(rl, xl, yl, el, gamma)
    ur, pr, cr = gas_speed_and_pressure(rr, xr, yr, er, gamma)
    sl = tl.minimum(tl.minimum(ul - cl, ur - cr), 0.0)
    sr = tl.maximum(tl.maximum(ul + cl, ur + cr), 0.0)
    d = 1.0 / (sr - sl)
    f0 = (sr * xl - sl * xr + sl * sr * (rr - rl)) * d
    f1 = (sr * (xl * ul + pl) - sl * (xr * ur + pr) + sl * sr * (xr - xl)) * d
    f2 = (sr * yl * ul - sl * yr * ur + sl * sr * (yr - yl)) * d
    f3 = (sr * (el + pl) * ul - sl * (er + pr) * ur + sl * sr * (er - el)) * d
    return f0, f1, f2, f3


@triton.jit
def gas_at(q_ptr, at, plane, ok):
    rho = tl.load(q_ptr + at, mask=ok, other=1.0)
    mx = tl.load(q_ptr + plane + at, mask=ok, other=0.0)
    my = tl.load(q_ptr + 2 * plane + at, mask=ok, other=0.0)
    return rho, mx, my, tl.load(q_ptr + 3 * plane + at, mask=ok, other=2.5)


@triton.jit
def hll_sweep_of_rows(q_ptr, out_ptr, rate, gamma, NY, NX, BLOCK: tl.constexpr):
    # One sweep along x of a gas of four conserved numbers, fluxes of Harten, Lax and van Leer, periodic.
    y = tl.program_id(1)
    x = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ok = x < NX
    plane = NY * NX
    a0, a1, a2, a3 = gas_at(q_ptr, y * NX + (x + NX - 1) % NX, plane, ok)
    b0, b1, b2, b3 = gas_at(q_ptr, y * NX + x, plane, ok)
    c0, c1, c2, c3 = gas_at(q_ptr, y * NX + (x + 1) % NX, plane, ok)
    l0, l1, l2, l3 = gas_flux_of_two_waves(a0, a1, a2, a3, b0, b1, b2, b3, gamma)
    r0, r1, r2, r3 = gas_flux_of_two_waves(b0, b1, b2, b3, c0, c1, c2, c3, gamma)
    to = out_ptr + y * NX + x
    tl.store(to, b0 - rate * (r0 - l0), mask=ok)
    tl.store(to + plane, b1 - rate * (r1 - l1), mask=ok)
    tl.store(to + 2 * plane, b2 - rate * (r2 - l2), mask=ok)
    tl.store(to + 3 * plane, b3 - rate * (r3 - l3), mask=ok)


@case
def lagoon_of_gas_pushed_along_rows_by_two_waves(ny=1500, nx=1777):
    rho, u, v, p = uniform(ny, nx) + 0.5, f32(ny, nx) / 2, f32(ny, nx) / 2, uniform(ny, nx) + 0.5
    gamma, rate = 1.4, 0.2
    q = torch.stack([rho, rho * u, rho * v, p / (gamma - 1) + 0.5 * rho * (u * u + v * v)]).contiguous()
    out = zeros(4, ny, nx, dtype="float32")
    launched = run(hll_sweep_of_rows, (cdiv(nx, 256), ny), (q, out, rate, gamma, ny, nx), out, BLOCK=256, num_warps=4)

    def reference():
        a = q.double()
        b = a.roll(-1, 2)

        def parts(s):
            w = s[1] / s[0]
            pressure = (gamma - 1) * (s[3] - (s[1] ** 2 + s[2] ** 2) / s[0] / 2)
            flux = torch.stack([s[1], s[1] * w + pressure, s[2] * w, (s[3] + pressure) * w])
            return w, (gamma * pressure / s[0]).sqrt(), flux

        (ua, ca, fa), (ub, cb, fb) = parts(a), parts(b)
        low, high = torch.minimum(ua - ca, ub - cb).clamp(max=0), torch.maximum(ua + ca, ub + cb).clamp(min=0)
        right = (high * fa - low * fb + low * high * (b - a)) / (high - low)
        return (a - rate * (right - right.roll(1, 2))).float()

    return against(launched, reference)


@triton.jit
def shorter_ways_by_block(d_ptr, out_ptr, pivot, N, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, STEP: tl.constexpr):
    # Ways between all islands that may pass those of one block: least of sums instead of sum of products.
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    ok = (rows < N)[:, None] & (cols < N)[None, :]
    best = tl.load(d_ptr + rows[:, None] * N + cols[None, :], mask=ok, other=float("inf"))
    for k0 in range(0, BK, STEP):
        k = pivot + k0 + tl.arange(0, STEP)
        a = tl.load(d_ptr + rows[:, None] * N + k[None, :], mask=(rows < N)[:, None] & (k < N)[None, :], other=float("inf"))
        b = tl.load(d_ptr + k[:, None] * N + cols[None, :], mask=(k < N)[:, None] & (cols < N)[None, :], other=float("inf"))
        best = tl.minimum(best, tl.min(a[:, :, None] + b[None, :, :], axis=1))
    tl.store(out_ptr + rows[:, None] * N + cols[None, :], best, mask=ok)


@case
def lagoon_ways_that_pass_one_block_of_islands(n=2000, pivot=640):
    d = uniform(n, n) * 10
    d = torch.where(d < 4, d, torch.full_like(d, 99.0))
    out = zeros(n, n, dtype="float32")
    grid = (cdiv(n, 32), cdiv(n, 32))
    launched = run(shorter_ways_by_block, grid, (d, out, pivot, n), out, BM=32, BN=32, BK=64, STEP=8, num_warps=4)

    def reference():
        best = d.clone()
        for k in range(pivot, min(pivot + 64, n)):
            best = torch.minimum(best, d[:, k : k + 1] + d[k : k + 1])
        return best

    return against(launched, reference)


@triton.jit
def alloc_pages_for_extends(
    pre_lens_ptr, seq_lens_ptr, last_loc_ptr, free_page_ptr, out_indices, bs_upper: tl.constexpr, page_size: tl.constexpr, BLOCK: tl.constexpr
):
    # Slots of new tokens of each request: what is left of its last page, then whole new pages, then a part of one.
    pid = tl.program_id(0)
    load_offset = tl.arange(0, bs_upper)
    seq_lens = tl.load(seq_lens_ptr + load_offset, mask=load_offset <= pid, other=0)
    pre_lens = tl.load(pre_lens_ptr + load_offset, mask=load_offset <= pid, other=0)
    seq_len = tl.load(seq_lens_ptr + pid)
    pre_len = tl.load(pre_lens_ptr + pid)
    extend_len = seq_len - pre_len
    start = tl.sum(seq_lens - pre_lens) - extend_len
    pages_after = (seq_lens + page_size - 1) // page_size
    pages_before = (pre_lens + page_size - 1) // page_size
    own = (seq_len + page_size - 1) // page_size - (pre_len + page_size - 1) // page_size
    page_start = tl.sum(pages_after - pages_before) - own
    last_loc = tl.load(last_loc_ptr + pid)
    part1 = tl.minimum(seq_len, (pre_len + page_size - 1) // page_size * page_size) - pre_len
    one_page = tl.arange(0, page_size)
    tl.store(out_indices + start + one_page, last_loc + 1 + one_page, mask=one_page < part1)
    if pre_len + part1 == seq_len:
        return
    part2 = seq_len // page_size * page_size - (pre_len + page_size - 1) // page_size * page_size
    for k in range(0, part2, BLOCK):
        many = k + tl.arange(0, BLOCK)
        page = tl.load(free_page_ptr + page_start + many // page_size, mask=many < part2, other=0)
        tl.store(out_indices + start + part1 + many, page * page_size + many % page_size, mask=many < part2)
    if pre_len + part1 + part2 == seq_len:
        return
    part3 = seq_len - seq_len // page_size * page_size
    last = tl.load(free_page_ptr + page_start + own - 1)
    tl.store(out_indices + start + part1 + part2 + one_page, last * page_size + one_page, mask=one_page < part3)


@case
def lagoon_pages_given_to_growing_requests(bs=500, page=64):
    pre = ints(0, 3000, bs, dtype="int64").cpu()
    seq = pre + ints(1, 6000, bs, dtype="int64").cpu()
    pages_before, pages_after = (pre + page - 1) // page, (seq + page - 1) // page
    free = torch.randperm(int((pages_after - pages_before).sum()) + 1000).to(torch.int64)
    last = torch.where(pre > 0, (free.numel() + torch.arange(bs)) * page + (pre - 1) % page, torch.full_like(pre, -1))
    total = int((seq - pre).sum())
    out = zeros(total, dtype="int64")
    args = pre.cuda(), seq.cuda(), last.cuda(), free.cuda(), out
    launched = run(alloc_pages_for_extends, (bs,), args, out, bs_upper=triton.next_power_of_2(bs), page_size=page, BLOCK=1024)

    def reference():
        ways, used = [], 0
        for a, b, loc, before, after in zip(pre.tolist(), seq.tolist(), last.tolist(), pages_before.tolist(), pages_after.tolist()):
            place = torch.arange(a, b)
            mine = free[used : used + after - before]
            used += after - before
            new = place // page >= before
            table = mine[(place // page - before).clamp(0, max(after - before - 1, 0))] if after > before else torch.zeros_like(place)
            ways.append(torch.where(new, table * page + place % page, loc + 1 + place - a))
        return torch.cat(ways).cuda()

    return against(launched, reference)


@triton.jit
def additive_codebooks_gemv(
    codes_ptr, books_ptr, scales_ptr, x_ptr, y_ptr, rows, groups, stride_row, BLOCK_M: tl.constexpr, BLOCK_G: tl.constexpr, GROUP: tl.constexpr
):
    # Eight weights are the sum of two rows of codebooks; a matrix of such codes times one vector.
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    e = tl.arange(0, GROUP)
    acc = tl.zeros((BLOCK_M, BLOCK_G), dtype=tl.float32)
    for g0 in range(0, groups, BLOCK_G):
        g = g0 + tl.arange(0, BLOCK_G)
        mask = (m < rows)[:, None] & (g < groups)[None, :]
        at = codes_ptr + m[:, None] * stride_row + g[None, :] * 2
        first = tl.load(at, mask=mask, other=0).to(tl.int32)
        second = tl.load(at + 1, mask=mask, other=0).to(tl.int32)
        x = tl.load(x_ptr + g[:, None] * GROUP + e[None, :], mask=(g < groups)[:, None], other=0.0).to(tl.float32)
        w = tl.load(books_ptr + first[:, :, None] * GROUP + e[None, None, :]).to(tl.float32)
        w += tl.load(books_ptr + (256 + second)[:, :, None] * GROUP + e[None, None, :]).to(tl.float32)
        acc += tl.sum(w * x[None, :, :], axis=2)
    y = tl.sum(acc, axis=1) * tl.load(scales_ptr + m, mask=m < rows, other=0.0).to(tl.float32)
    tl.store(y_ptr + m, y.to(y_ptr.dtype.element_ty), mask=m < rows)


@case
def lagoon_weights_that_are_sums_of_two_codes_of_eight(rows=4100, groups=500):
    codes, books = ints(0, 256, rows, groups, 2, dtype="uint8"), rand(2, 256, 8)
    scales, x, y = uniform(rows).half(), rand(groups * 8) / 16, zeros(rows)
    args = codes, books, scales, x, y, rows, groups, codes.stride(0)
    launched = run(additive_codebooks_gemv, (cdiv(rows, 16),), args, y, BLOCK_M=16, BLOCK_G=16, GROUP=8, num_warps=4)

    def reference():
        w = books[0].float()[codes[..., 0].long()] + books[1].float()[codes[..., 1].long()]
        return (w.reshape(rows, -1) @ x.float()) * scales.float()

    return against(launched, reference)


@triton.jit
def generalized_jsd_kernel(
    X_ptr, X_stride, Y_ptr, Y_stride, loss_ptr, dX_ptr, label_ptr, beta: tl.constexpr, inv_n, ignore_index, n_cols, BLOCK: tl.constexpr
):
    # Divergence between log chances of student and teacher through their mixture, and its gradient; labels may be ignored.
    row = tl.program_id(0).to(tl.int64)
    X_ptr += row * X_stride
    Y_ptr += row * Y_stride
    dX_ptr += row * X_stride
    label = tl.load(label_ptr + row)
    if label == ignore_index:
        for i in range(0, n_cols, BLOCK):
            offs = i + tl.arange(0, BLOCK)
            tl.store(dX_ptr + offs, 0.0, mask=offs < n_cols)
        tl.store(loss_ptr + row, 0.0)
        return
    total = 0.0
    for i in range(0, n_cols, BLOCK):
        offs = i + tl.arange(0, BLOCK)
        mask = offs < n_cols
        X = tl.load(X_ptr + offs, mask=mask, other=float("-inf")).to(tl.float32)
        Y = tl.load(Y_ptr + offs, mask=mask, other=float("-inf")).to(tl.float32)
        if beta == 0.0:
            P = tl.exp(Y)
            loss = tl.where(mask, P * (Y - X), 0.0)
            dX = -P
        else:
            Q = tl.exp(X)
            P = tl.exp(Y)
            M = beta * P + (1.0 - beta) * Q
            log_M = tl.log(M)
            loss = tl.where(mask, beta * P * (Y - log_M) + (1.0 - beta) * Q * (X - log_M), 0.0)
            dX = (1.0 - beta) * Q * (X - log_M)
        total += tl.sum(loss, axis=0)
        tl.store(dX_ptr + offs, dX * inv_n, mask=mask)
    tl.store(loss_ptr + row, total * inv_n)


@case
def lagoon_losses_between_teacher_and_student_with_slopes(bt=1000, v=16_001, beta=0.3):
    x, y = torch.log_softmax(f32(bt, v), -1), torch.log_softmax(f32(bt, v) * 1.5, -1)
    labels = ints(0, 9, bt, dtype="int64")
    labels = torch.where(labels == 0, torch.full_like(labels, -100), labels)
    loss, dx = zeros(bt, dtype="float32"), zeros(bt, v, dtype="float32")
    args = x, x.stride(0), y, y.stride(0), loss, dx, labels, beta, 0.125, -100, v
    launched = run(generalized_jsd_kernel, (bt,), args, (loss, dx), BLOCK=4096, num_warps=8)

    def reference():
        q, p = x.double().exp(), y.double().exp()
        log_m = (beta * p + (1 - beta) * q).log()
        keep = (labels != -100)[:, None]
        each = beta * p * (y - log_m) + (1 - beta) * q * (x - log_m)
        slope = (1 - beta) * q * (x - log_m)
        return (each.sum(1) * keep[:, 0] * 0.125).float(), (slope * keep * 0.125).float()

    return against(launched, reference)


@triton.jit
def poly_norm_forward(Y_ptr, Y_stride, X_ptr, X_stride, W_ptr, B_ptr, R_ptr, R_stride, n_cols, eps, BLOCK_SIZE: tl.constexpr):
    # The first three powers of a row, each divided by its root of mean squares, weighted and added.
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    x = tl.load(X_ptr + row * X_stride + cols, mask=mask, other=0.0).to(tl.float32)
    w0, w1, w2, b = tl.load(W_ptr), tl.load(W_ptr + 1), tl.load(W_ptr + 2), tl.load(B_ptr)
    x2 = x * x
    x3 = x2 * x
    r3 = tl.rsqrt(tl.sum(x3 * x3, axis=0) / n_cols + eps)
    r2 = tl.rsqrt(tl.sum(x2 * x2, axis=0) / n_cols + eps)
    r1 = tl.rsqrt(tl.sum(x2, axis=0) / n_cols + eps)
    tl.store(R_ptr + row * R_stride, r3)
    tl.store(R_ptr + row * R_stride + 1, r2)
    tl.store(R_ptr + row * R_stride + 2, r1)
    y = w0 * x3 * r3 + w1 * x2 * r2 + w2 * x * r1 + b
    tl.store(Y_ptr + row * Y_stride + cols, y.to(Y_ptr.dtype.element_ty), mask=mask)


@case
def lagoon_norms_of_the_first_three_powers(rows=4096, cols=3000):
    x, w, b = rand(rows, cols, dtype="bfloat16"), uniform(3), uniform(1)
    y, r = zeros(rows, cols, dtype="bfloat16"), zeros(rows, 3, dtype="float32")
    args = y, cols, x, cols, w, b, r, 3, cols, 1e-6
    launched = run(poly_norm_forward, (rows,), args, (y, r), BLOCK_SIZE=triton.next_power_of_2(cols), num_warps=8)

    def reference():
        z, total, roots = x.float(), b, []
        for k in range(3):
            power = z ** (3 - k)
            roots.append((power.square().mean(1, keepdim=True) + 1e-6).rsqrt())
            total = total + w[k] * power * roots[k]
        return total, torch.cat(roots, 1)

    return against(launched, reference)


@triton.jit
def six_bits_to_letter(v):
    letter = tl.where(v < 26, v + 65, v + 71)
    letter = tl.where(v >= 52, v - 4, letter)
    letter = tl.where(v == 62, 43, letter)
    return tl.where(v == 63, 47, letter)


@triton.jit
def base64_encode_kernel(in_ptr, out_ptr, n_bytes, BLOCK: tl.constexpr):
    # Three bytes become four letters; what is missing at the end becomes signs of equality.
    pid = tl.program_id(0)
    group = pid * BLOCK + tl.arange(0, BLOCK)
    b0 = tl.load(in_ptr + group * 3, mask=group * 3 < n_bytes, other=0).to(tl.int32)
    b1 = tl.load(in_ptr + group * 3 + 1, mask=group * 3 + 1 < n_bytes, other=0).to(tl.int32)
    b2 = tl.load(in_ptr + group * 3 + 2, mask=group * 3 + 2 < n_bytes, other=0).to(tl.int32)
    word = (b0 << 16) | (b1 << 8) | b2
    c0 = six_bits_to_letter(word >> 18)
    c1 = six_bits_to_letter((word >> 12) & 63)
    c2 = tl.where(group * 3 + 1 < n_bytes, six_bits_to_letter((word >> 6) & 63), 61)
    c3 = tl.where(group * 3 + 2 < n_bytes, six_bits_to_letter(word & 63), 61)
    letters = tl.interleave(tl.interleave(c0, c2), tl.interleave(c1, c3))
    place = pid * BLOCK * 4 + tl.arange(0, BLOCK * 4)
    tl.store(out_ptr + place, letters.to(tl.uint8), mask=place < (n_bytes + 2) // 3 * 4)


@case
def lagoon_bytes_written_as_letters_by_threes(n=20_000_003):
    data = ints(0, 256, n, dtype="uint8")
    out = zeros((n + 2) // 3 * 4, dtype="uint8")
    launched = run(base64_encode_kernel, (cdiv(cdiv(n, 3), 1024),), (data, out, n), out, BLOCK=1024, num_warps=4)

    def reference():
        return torch.frombuffer(bytearray(base64.b64encode(data.cpu().numpy().tobytes())), dtype=torch.uint8).cuda()

    return against(launched, reference)


@triton.jit
def letter_to_base(c):
    return tl.where(c == 65, 0, tl.where(c == 67, 1, tl.where(c == 71, 2, tl.where(c == 84, 3, 4))))


@triton.jit
def six_frames_to_proteins(seq_ptr, table_ptr, out_ptr, n, length, BLOCK: tl.constexpr):
    # Triplets of letters to amino acids in three frames forward and three of the other strand from the end.
    frame = tl.program_id(1)
    shift = frame % 3
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    count = (n - shift) // 3
    ok = i < count
    table = tl.load(table_ptr + tl.arange(0, 64))
    code = tl.zeros((BLOCK,), tl.int32)
    bad = tl.zeros((BLOCK,), tl.int1)
    for k in tl.static_range(3):
        at = i * 3 + shift + k
        if frame >= 3:
            at = n - 1 - at
        base = letter_to_base(tl.load(seq_ptr + at, mask=ok, other=78).to(tl.int32))
        bad = bad | (base == 4)
        if frame >= 3:
            base = 3 - base
        code = code * 4 + (base & 3)
    acid = tl.gather(table, code, 0)
    acid = tl.where(bad, 88, acid.to(tl.int32))
    tl.store(out_ptr + frame * length + i, tl.where(ok, acid, 0).to(tl.uint8), mask=i < length)


ACIDS = "KNKNTTTTRSRSIIMIQHQHPPPPRRRRLLLLEDEDAAAAGGGGVVVV*Y*YSSSS*CWCLFLF"


@case
def lagoon_of_plankton_read_in_six_frames(n=9_000_001):
    letters = torch.tensor(list(b"ACGTACGTACGTACGTN"), dtype=torch.uint8).cuda()
    seq = letters[ints(0, 17, n, dtype="int64")]
    table, length = torch.tensor(list(ACIDS.encode()), dtype=torch.uint8).cuda(), n // 3
    out = zeros(6, length, dtype="uint8")
    launched = run(six_frames_to_proteins, (cdiv(length, 1024), 6), (seq, table, out, n, length), out, BLOCK=1024, num_warps=4)

    def reference():
        of = torch.full((256,), 99, dtype=torch.int64)
        of[list(b"ACGT")] = torch.arange(4)
        base, rows = of.cuda()[seq.long()], []
        for frame in range(6):
            strand = base if frame < 3 else torch.where(base < 4, 3 - base, base).flip(0)
            triplets = strand[frame % 3 : frame % 3 + (n - frame % 3) // 3 * 3].reshape(-1, 3)
            code = (triplets * torch.tensor([16, 4, 1]).cuda()).sum(1)
            acid = torch.where((triplets == 99).any(1), 88, table.long()[code.clamp(max=63)])
            rows.append(F.pad(acid, (0, length - acid.numel())))
        return torch.stack(rows).to(torch.uint8)

    return against(launched, reference)


@triton.jit
def boosted_trees_predict(
    x_ptr, feature_ptr, threshold_ptr, default_left_ptr, leaf_ptr, out_ptr, base_score, N, F, T, DEPTH: tl.constexpr, BLOCK: tl.constexpr
):
    # Every sample goes down every tree; missing values go where the node says; leaves are added to a chance.
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ok = row < N
    NODES: tl.constexpr = 2**DEPTH - 1
    score = tl.zeros((BLOCK,), dtype=tl.float32) + base_score
    for t in range(T):
        node = tl.zeros((BLOCK,), dtype=tl.int32)
        for _ in tl.static_range(DEPTH):
            feature = tl.load(feature_ptr + t * NODES + node).to(tl.int32)
            threshold = tl.load(threshold_ptr + t * NODES + node)
            missing_left = tl.load(default_left_ptr + t * NODES + node) != 0
            x = tl.load(x_ptr + row * F + feature, mask=ok, other=0.0)
            left = tl.where(x != x, missing_left, x < threshold)
            node = 2 * node + tl.where(left, 1, 2)
        score += tl.load(leaf_ptr + t * (NODES + 1) + node - NODES)
    tl.store(out_ptr + row, 1.0 / (1.0 + tl.exp(-score)), mask=ok)


@case
def lagoon_forest_of_boosted_trees(n=20_001, features=50, trees=60, depth=6):
    nodes = 2**depth - 1
    x = f32(n, features)
    x = torch.where(uniform(n, features) < 0.1, torch.full_like(x, float("nan")), x)
    feature, threshold = ints(0, features, trees, nodes, dtype="int16"), f32(trees, nodes)
    left, leaf = ints(0, 2, trees, nodes, dtype="int8"), f32(trees, nodes + 1) / 8
    out = zeros(n, dtype="float32")
    args = x, feature, threshold, left, leaf, out, -0.25, n, features, trees
    launched = run(boosted_trees_predict, (cdiv(n, 64),), args, out, DEPTH=depth, BLOCK=64, num_warps=2)

    def reference():
        score = torch.full((n,), -0.25, device="cuda", dtype=torch.float64)
        for t in range(trees):
            node = torch.zeros(n, device="cuda", dtype=torch.int64)
            for _ in range(depth):
                value = x.gather(1, feature[t].long()[node][:, None])[:, 0]
                goes = torch.where(value.isnan(), left[t][node] != 0, value < threshold[t][node])
                node = 2 * node + 2 - goes.long()
            score += leaf[t].double()[node - nodes]
        return score.sigmoid().float()

    return against(launched, reference)


@triton.jit
def token_shift_mixes(x, last, mu, out, T, D, stride_o, BT: tl.constexpr, BD: tl.constexpr, N_MIX: tl.constexpr, USE_LAST: tl.constexpr):
    # Each token moved toward the one before it by so much a channel, in several ways at once.
    i_d, i_t, i_b = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    o_t = i_t * BT + tl.arange(0, BT)
    o_d = i_d * BD + tl.arange(0, BD)
    m = (o_t < T)[:, None] & (o_d < D)[None, :]
    p = (i_b * T + o_t)[:, None] * D + o_d[None, :]
    b_x = tl.load(x + p, mask=m, other=0.0).to(tl.float32)
    b_prev = tl.load(x + p - D, mask=m & (o_t > 0)[:, None], other=0.0).to(tl.float32)
    if USE_LAST:
        b_last = tl.load(last + i_b * D + o_d, mask=o_d < D, other=0.0).to(tl.float32)
        b_prev = tl.where((o_t == 0)[:, None], b_last[None, :], b_prev)
    delta = b_prev - b_x
    for k in tl.static_range(N_MIX):
        b_mu = tl.load(mu + k * D + o_d, mask=o_d < D, other=0.0).to(tl.float32)
        tl.store(out + k * stride_o + p, (b_x + delta * b_mu[None, :]).to(out.dtype.element_ty), mask=m)


@case
def lagoon_tokens_mixed_six_ways_with_the_one_before(b=3, t=1111, d=1032):
    x, last, mu = rand(b, t, d, dtype="bfloat16"), rand(b, d, dtype="bfloat16"), uniform(6, d).bfloat16()
    out = zeros(6, b, t, d, dtype="bfloat16")
    args = x, last, mu, out, t, d, out.stride(0)
    launched = run(token_shift_mixes, (cdiv(d, 128), cdiv(t, 32), b), args, out, BT=32, BD=128, N_MIX=6, USE_LAST=True, num_warps=8)

    def reference():
        before = torch.cat([last[:, None], x[:, :-1]], 1).float()
        return x.float() + (before - x.float()) * mu.float()[:, None, None]

    return against(launched, reference)


@triton.jit
def gated_recurrence_backward(g, o, h0, do, dx, dg, dh0, T: tl.constexpr, D: tl.constexpr, BD: tl.constexpr, USE_INITIAL: tl.constexpr):
    # Back through h = exp(g) h + x from the last step to the first, a block of channels a program.
    i_d, i_b = tl.program_id(0), tl.program_id(1)
    o_d = i_d * BD + tl.arange(0, BD)
    mask = o_d < D
    p = (i_b * T + T - 1) * D + o_d
    p_g, p_do, p_dx, p_dg, p_o = g + p, do + p, dx + p, dg + p, o + p - D
    b_dh = tl.zeros([BD], dtype=tl.float32)
    for i in range(T - 1, -1, -1):
        b_g = tl.load(p_g, mask=mask, other=0).to(tl.float32)
        b_do = tl.load(p_do, mask=mask, other=0).to(tl.float32)
        if i > 0:
            b_o = tl.load(p_o, mask=mask, other=0).to(tl.float32)
        elif USE_INITIAL:
            b_o = tl.load(h0 + i_b * D + o_d, mask=mask, other=0).to(tl.float32)
        else:
            b_o = tl.zeros([BD], dtype=tl.float32)
        b_dh = b_dh + b_do
        b_dx = b_dh
        b_dh = b_dh * tl.exp(b_g)
        tl.store(p_dg, (b_dh * b_o).to(p_dg.dtype.element_ty), mask=mask)
        tl.store(p_dx, b_dx.to(p_dx.dtype.element_ty), mask=mask)
        p_g -= D
        p_o -= D
        p_do -= D
        p_dx -= D
        p_dg -= D
    tl.store(dh0 + i_b * D + o_d, b_dh, mask=mask)


@case
def lagoon_gates_back_from_the_last_tide(b=6, t=250, d=2000):
    g, o, h0, do = -uniform(b, t, d), f32(b, t, d), f32(b, d), f32(b, t, d)
    dx, dg, dh0 = zeros(b, t, d, dtype="float32"), zeros(b, t, d, dtype="float32"), zeros(b, d, dtype="float32")
    args = g, o, h0, do, dx, dg, dh0
    launched = run(gated_recurrence_backward, (cdiv(d, 64), b), args, (dx, dg, dh0), T=t, D=d, BD=64, USE_INITIAL=True, num_warps=1)

    def reference():
        carried, xs, gs = torch.zeros(b, d, device="cuda"), [], []
        for i in range(t - 1, -1, -1):
            carried = carried + do[:, i]
            xs.append(carried)
            carried = carried * g[:, i].exp()
            gs.append(carried * (o[:, i - 1] if i else h0))
        return torch.stack(xs[::-1], 1), torch.stack(gs[::-1], 1), carried

    return against(launched, reference)


@triton.jit
def features_meet_in_pairs(dense_ptr, sparse_ptr, out_ptr, N_SPARSE: tl.constexpr, D: tl.constexpr, FP: tl.constexpr, OUT: tl.constexpr):
    # A dense vector and rows of tables: all products of two of them, below the diagonal, behind the dense one.
    b = tl.program_id(0)
    f = tl.arange(0, FP)
    d = tl.arange(0, D)
    dense = tl.load(dense_ptr + b * D + d)
    rows = tl.load(sparse_ptr + (b * N_SPARSE + f - 1)[:, None] * D + d[None, :], mask=((f > 0) & (f <= N_SPARSE))[:, None], other=0.0)
    x = tl.where((f == 0)[:, None], dense[None, :], rows)
    products = tl.dot(x, tl.trans(x))
    tl.store(out_ptr + b * OUT + d, dense)
    place = f[:, None] * (f[:, None] - 1) // 2 + f[None, :]
    keep = (f[None, :] < f[:, None]) & (f <= N_SPARSE)[:, None]
    tl.store(out_ptr + b * OUT + D + place, products.to(out_ptr.dtype.element_ty), mask=keep)


@case
def lagoon_features_of_visitors_that_meet_in_pairs(batch=8192, sparse=26, d=64):
    dense, tables = rand(batch, d), rand(batch, sparse, d)
    width = d + (sparse + 1) * sparse // 2
    out = zeros(batch, width)
    args = dense, tables, out
    launched = run(features_meet_in_pairs, (batch,), args, out, N_SPARSE=sparse, D=d, FP=32, OUT=width, num_warps=2)

    def reference():
        x = torch.cat([dense[:, None], tables], 1).float()
        i, j = torch.tril_indices(sparse + 1, sparse + 1, -1)
        return torch.cat([dense.float(), (x @ x.transpose(1, 2))[:, i.to(x.device), j.to(x.device)]], 1)

    return against(launched, reference)


@triton.jit
def amplitude_pairs(psi_ptr, at):
    return tl.split(tl.load(psi_ptr + at[:, None] * 2 + tl.arange(0, 2)[None, :]))


@triton.jit
def gate_on_two_bits(psi_ptr, gate_ptr, out_ptr, LOW: tl.constexpr, HIGH: tl.constexpr, BLOCK: tl.constexpr):
    # A state of many qubits under a complex 4x4 matrix on two of them; reals and imaginaries lie side by side.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    i = ((i >> LOW) << (LOW + 1)) | (i & ((1 << LOW) - 1))
    i = ((i >> HIGH) << (HIGH + 1)) | (i & ((1 << HIGH) - 1))
    r0, m0 = amplitude_pairs(psi_ptr, i)
    r1, m1 = amplitude_pairs(psi_ptr, i | (1 << LOW))
    r2, m2 = amplitude_pairs(psi_ptr, i | (1 << HIGH))
    r3, m3 = amplitude_pairs(psi_ptr, i | (1 << LOW) | (1 << HIGH))
    for row in tl.static_range(4):
        g = gate_ptr + row * 8
        g0, h0, g1, h1 = tl.load(g), tl.load(g + 1), tl.load(g + 2), tl.load(g + 3)
        g2, h2, g3, h3 = tl.load(g + 4), tl.load(g + 5), tl.load(g + 6), tl.load(g + 7)
        re = g0 * r0 - h0 * m0 + g1 * r1 - h1 * m1 + g2 * r2 - h2 * m2 + g3 * r3 - h3 * m3
        im = g0 * m0 + h0 * r0 + g1 * m1 + h1 * r1 + g2 * m2 + h2 * r2 + g3 * m3 + h3 * r3
        to = i | ((row & 1) << LOW) | ((row >> 1) << HIGH)
        tl.store(out_ptr + to[:, None] * 2 + tl.arange(0, 2)[None, :], tl.join(re, im))


@case
def lagoon_of_amplitudes_turned_by_a_gate_of_two(bits=22, low=3, high=9):
    psi, gate = f32(1 << bits, 2), f32(4, 4, 2)
    out = zeros(1 << bits, 2, dtype="float32")
    launched = run(gate_on_two_bits, ((1 << (bits - 2)) // 512,), (psi, gate, out), out, LOW=low, HIGH=high, BLOCK=512, num_warps=4)

    def reference():
        shape = 1 << (bits - high - 1), 2, 1 << (high - low - 1), 2, 1 << low
        state = torch.view_as_complex(psi).reshape(shape)
        u = torch.view_as_complex(gate).reshape(2, 2, 2, 2)
        return torch.view_as_real(torch.einsum("abcd,xcydz->xaybz", u, state).reshape(-1).contiguous())

    return against(launched, reference)


@triton.jit
def superposed_rmsd(a_ptr, b_ptr, out_ptr, N, BLOCK: tl.constexpr, STEPS: tl.constexpr):
    # How far two chains are apart once laid on each other: the largest root of a quartic of quaternions by Newton's steps.
    pair = tl.program_id(0)
    a_ptr += pair * N * 3
    b_ptr += pair * N * 3
    ax, ay, az, bx, by, bz = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for s in range(0, N, BLOCK):
        i = s + tl.arange(0, BLOCK)
        ok = i < N
        ax += tl.sum(tl.load(a_ptr + i * 3, mask=ok, other=0.0), 0)
        ay += tl.sum(tl.load(a_ptr + i * 3 + 1, mask=ok, other=0.0), 0)
        az += tl.sum(tl.load(a_ptr + i * 3 + 2, mask=ok, other=0.0), 0)
        bx += tl.sum(tl.load(b_ptr + i * 3, mask=ok, other=0.0), 0)
        by += tl.sum(tl.load(b_ptr + i * 3 + 1, mask=ok, other=0.0), 0)
        bz += tl.sum(tl.load(b_ptr + i * 3 + 2, mask=ok, other=0.0), 0)
    zero = tl.zeros((BLOCK,), tl.float64)
    sxx, sxy, sxz, syx, syy, syz, szx, szy, szz, norms = zero, zero, zero, zero, zero, zero, zero, zero, zero, zero
    for s in range(0, N, BLOCK):
        i = s + tl.arange(0, BLOCK)
        ok = i < N
        px = tl.where(ok, tl.load(a_ptr + i * 3, mask=ok, other=0.0) - ax / N, 0.0).to(tl.float64)
        py = tl.where(ok, tl.load(a_ptr + i * 3 + 1, mask=ok, other=0.0) - ay / N, 0.0).to(tl.float64)
        pz = tl.where(ok, tl.load(a_ptr + i * 3 + 2, mask=ok, other=0.0) - az / N, 0.0).to(tl.float64)
        qx = tl.where(ok, tl.load(b_ptr + i * 3, mask=ok, other=0.0) - bx / N, 0.0).to(tl.float64)
        qy = tl.where(ok, tl.load(b_ptr + i * 3 + 1, mask=ok, other=0.0) - by / N, 0.0).to(tl.float64)
        qz = tl.where(ok, tl.load(b_ptr + i * 3 + 2, mask=ok, other=0.0) - bz / N, 0.0).to(tl.float64)
        sxx += px * qx
        sxy += px * qy
        sxz += px * qz
        syx += py * qx
        syy += py * qy
        syz += py * qz
        szx += pz * qx
        szy += pz * qy
        szz += pz * qz
        norms += px * px + py * py + pz * pz + qx * qx + qy * qy + qz * qz
    xx, xy, xz = tl.sum(sxx, 0), tl.sum(sxy, 0), tl.sum(sxz, 0)
    yx, yy, yz = tl.sum(syx, 0), tl.sum(syy, 0), tl.sum(syz, 0)
    zx, zy, zz = tl.sum(szx, 0), tl.sum(szy, 0), tl.sum(szz, 0)
    half = tl.sum(norms, 0) * 0.5
    c2 = -2.0 * (xx * xx + xy * xy + xz * xz + yx * yx + yy * yy + yz * yz + zx * zx + zy * zy + zz * zz)
    c1 = -8.0 * (xx * (yy * zz - yz * zy) - xy * (yx * zz - yz * zx) + xz * (yx * zy - yy * zx))
    k00, k11, k22, k33 = xx + yy + zz, xx - yy - zz, yy - xx - zz, zz - xx - yy
    k01, k02, k03 = yz - zy, zx - xz, xy - yx
    k12, k13, k23 = xy + yx, zx + xz, yz + zy
    s0, s1, s2 = k00 * k11 - k01 * k01, k00 * k12 - k02 * k01, k00 * k13 - k03 * k01
    s3, s4, s5 = k01 * k12 - k02 * k11, k01 * k13 - k03 * k11, k02 * k13 - k03 * k12
    t5, t4, t3 = k22 * k33 - k23 * k23, k12 * k33 - k13 * k23, k12 * k23 - k13 * k22
    t2, t1, t0 = k02 * k33 - k03 * k23, k02 * k23 - k03 * k22, k02 * k13 - k03 * k12
    c0 = s0 * t5 - s1 * t4 + s2 * t3 + s3 * t2 - s4 * t1 + s5 * t0
    root = half
    for _ in range(STEPS):
        square = root * root
        b = (square + c2) * root
        a = b + c1
        root = root - (a * root + c0) / (2.0 * square * root + b + a)
    tl.store(out_ptr + pair, tl.sqrt(tl.maximum(2.0 * (half - root) / N, 0.0)).to(tl.float32))


@case
def lagoon_shells_laid_on_each_other(pairs=3000, n=150):
    a = f32(pairs, n, 3)
    turn = torch.linalg.qr(f32(pairs, 3, 3).cpu())[0].cuda()
    b = (a @ turn + f32(pairs, n, 3) / 2 + f32(pairs, 1, 3)).contiguous()
    out = zeros(pairs, dtype="float32")
    launched = run(superposed_rmsd, (pairs,), (a, b, out, n), out, BLOCK=64, STEPS=24, num_warps=2)

    def reference():
        p, q = (x.double().cpu() - x.double().cpu().mean(1, keepdim=True) for x in (a, b))
        u, s, vh = torch.linalg.svd(p.transpose(1, 2) @ q)
        s = torch.cat([s[:, :2], s[:, 2:] * torch.linalg.det(u @ vh).sign()[:, None]], 1)
        return ((p.square().sum((1, 2)) + q.square().sum((1, 2)) - 2 * s.sum(1)).clamp(min=0) / n).sqrt().float().cuda()

    return against(launched, reference)


@triton.jit
def sevens_decode_stage1(
    Q, K, V, sm_scale, k_scale, v_scale, Lens, Mid, Mid_lse, stride_qb, stride_qh, stride_kb, stride_kn, stride_kh, stride_mb, stride_mh, stride_ms,
    GROUP: tl.constexpr, BLOCK_H: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr, SPLITS: tl.constexpr,
):
    # Part of a cache of fp8 for the heads of one group; what comes of it is normalized, with the log of its sum.
    cur_batch, cur_kv, split = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    offs_g = tl.arange(0, BLOCK_H)
    offs_d = tl.arange(0, BLOCK_D)
    head = cur_kv * GROUP + offs_g
    mask_h = offs_g < GROUP
    seq_len = tl.load(Lens + cur_batch)
    q = tl.load(Q + cur_batch * stride_qb + head[:, None] * stride_qh + offs_d[None, :], mask=mask_h[:, None], other=0.0)
    per_split = tl.cdiv(tl.cdiv(seq_len, SPLITS), BLOCK_N) * BLOCK_N
    lo = per_split * split
    hi = tl.minimum(lo + per_split, seq_len)
    e_max = tl.zeros([BLOCK_H], dtype=tl.float32) - float("inf")
    e_sum = tl.zeros([BLOCK_H], dtype=tl.float32)
    acc = tl.zeros([BLOCK_H, BLOCK_D], dtype=tl.float32)
    to_mid = cur_batch * stride_mb + head * stride_mh + split * stride_ms
    if hi > lo:
        for start in range(lo, hi, BLOCK_N):
            offs_n = start + tl.arange(0, BLOCK_N)
            at = cur_batch * stride_kb + offs_n * stride_kn + cur_kv * stride_kh
            k = tl.load(K + at[None, :] + offs_d[:, None], mask=(offs_n < hi)[None, :], other=0.0).to(q.dtype)
            qk = tl.dot(q, k) * (sm_scale * k_scale)
            qk = tl.where(mask_h[:, None] & (offs_n < hi)[None, :], qk, float("-inf"))
            v = tl.load(V + at[:, None] + offs_d[None, :], mask=(offs_n < hi)[:, None], other=0.0).to(q.dtype)
            n_max = tl.maximum(tl.max(qk, 1), e_max)
            n_max = tl.where(mask_h, n_max, 0.0)
            scale = tl.exp(e_max - n_max)
            p = tl.exp(qk - n_max[:, None])
            acc = acc * scale[:, None] + tl.dot(p.to(v.dtype), v)
            e_sum = e_sum * scale + tl.sum(p, 1)
            e_max = n_max
        tl.store(Mid + to_mid[:, None] + offs_d[None, :], acc / e_sum[:, None] * v_scale, mask=mask_h[:, None])
    tl.store(Mid_lse + to_mid // BLOCK_D, tl.where(hi > lo, e_max + tl.log(e_sum), float("-inf")), mask=mask_h)


@triton.jit
def sevens_decode_stage2(Mid, Mid_lse, Sinks, O, stride_mb, stride_mh, stride_ms, stride_ob, stride_oh, BLOCK_D: tl.constexpr, SPLITS: tl.constexpr):
    # Parts are weighed against each other and against a sink of the head that gives nothing.
    cur_batch, head = tl.program_id(0), tl.program_id(1)
    offs_d = tl.arange(0, BLOCK_D)
    e_max = tl.load(Sinks + head).to(tl.float32)
    e_sum = 1.0
    acc = tl.zeros([BLOCK_D], dtype=tl.float32)
    for split in range(0, SPLITS):
        at = cur_batch * stride_mb + head * stride_mh + split * stride_ms
        lse = tl.load(Mid_lse + at // BLOCK_D)
        if lse > float("-inf"):
            n_max = tl.maximum(lse, e_max)
            old = tl.exp(e_max - n_max)
            new = tl.exp(lse - n_max)
            acc = acc * old + new * tl.load(Mid + at + offs_d)
            e_sum = e_sum * old + new
            e_max = n_max
    tl.store(O + cur_batch * stride_ob + head * stride_oh + offs_d, (acc / e_sum).to(O.dtype.element_ty))


@case
def lagoon_asked_by_groups_of_seven_heads_in_parts(b=16, hk=4, s=4096, d=128, splits=8):
    h = hk * 7
    q, k, v = rand(b, h, d, dtype="bfloat16"), f8(b, s, hk, d), f8(b, s, hk, d)
    lens = ints(1, s + 1, b)
    lens[0] = 65
    sinks, mid, lse = rand(h, dtype="bfloat16"), zeros(b, h, splits, d, dtype="float32"), zeros(b, h, splits, dtype="float32")
    o, scale = zeros(b, h, d, dtype="bfloat16"), d**-0.5

    def launch(q, k, v, lens, sinks, mid, lse, o):
        strides = (*q.stride()[:2], *k.stride()[:3], *mid.stride()[:3])
        options = dict(GROUP=7, BLOCK_H=16, BLOCK_N=64, BLOCK_D=d, SPLITS=splits)
        sevens_decode_stage1[(b, hk, splits)](q, k, v, scale, 0.75, 1.25, lens, mid, lse, *strides, **options, num_warps=4, num_stages=2)
        sevens_decode_stage2[(b, h)](mid, lse, sinks, o, *mid.stride()[:3], *o.stride()[:2], BLOCK_D=d, SPLITS=splits, num_warps=4, num_stages=2)
        return o

    def reference():
        rows = []
        for i, n in enumerate(lens.tolist()):
            keys, values = (x[i, :n].float().repeat_interleave(7, 1) for x in (k, v))
            scores = torch.einsum("hd,nhd->hn", q[i].float(), keys) * (scale * 0.75)
            weights = torch.cat([scores, sinks.float()[:, None]], 1).softmax(1)[:, :-1]
            rows.append(torch.einsum("hn,nhd->hd", weights, values) * 1.25)
        return torch.stack(rows)

    return against((launch, (q, k, v, lens, sinks, mid, lse, o)), reference)


@triton.jit
def matern_between_points(x_ptr, z_ptr, alpha_ptr, y_ptr, inv_length, M, N, D: tl.constexpr, P: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    # What a Gaussian process with Matern's kernel guesses at new points, without that matrix in memory.
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    d = tl.arange(0, D)
    p = tl.arange(0, P)
    x = tl.load(x_ptr + m[:, None] * D + d[None, :], mask=(m < M)[:, None], other=0.0) * inv_length
    xx = tl.sum(x * x, axis=1)
    acc = tl.zeros((BM, P), dtype=tl.float32)
    for n0 in range(0, N, BN):
        n = n0 + tl.arange(0, BN)
        z = tl.load(z_ptr + n[:, None] * D + d[None, :], mask=(n < N)[:, None], other=0.0) * inv_length
        zz = tl.sum(z * z, axis=1)
        square = xx[:, None] + zz[None, :] - 2.0 * tl.dot(x, tl.trans(z), input_precision="ieee")
        r = tl.sqrt(5.0 * tl.maximum(square, 0.0))
        k = (1.0 + r + r * r * (1.0 / 3.0)) * tl.exp(-r)
        k = tl.where((n < N)[None, :], k, 0.0)
        a = tl.load(alpha_ptr + n[:, None] * P + p[None, :], mask=(n < N)[:, None], other=0.0)
        acc = tl.dot(k, a, acc, input_precision="tf32x3")
    tl.store(y_ptr + m[:, None] * P + p[None, :], acc, mask=(m < M)[:, None])


@case
def lagoon_depths_guessed_between_soundings(m=6000, n=1500, d=16, outputs=16):
    x, z, alpha = f32(m, d), f32(n, d), f32(n, outputs)
    y = zeros(m, outputs, dtype="float32")
    args = x, z, alpha, y, 0.4, m, n
    launched = run(matern_between_points, (cdiv(m, 32),), args, y, D=d, P=outputs, BM=32, BN=32, num_warps=4, num_stages=2)

    def reference():
        r = torch.cdist(x.double() * 0.4, z.double() * 0.4) * 5**0.5
        return ((1 + r + r * r / 3) * (-r).exp() @ alpha.double()).float()

    return against(launched, reference)
