"""Belfries: what rings in rows, bands and codebooks: films seen at a distance, latent keys, antennas, words of graphs, voices, spins, bonds and bright pixels."""

import math

import torch
import torch.nn.functional as F
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

from .common import PROGRAMS, against, case, cdiv, cleared, f32, far, ints, rand, run, uniform, viewed, zeros


@triton.jit
def film_seen_by_distance_kernel(
    q_ptr, k_ptr, v_ptr, o_ptr, sm_scale, T, stride_h, stride_t, PER_FRAME: tl.constexpr, D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):
    # Attention in a film: places that a frame sees of another one halve each time that their distance doubles; the first frame is seen by all.
    start_m = tl.program_id(0)
    head = tl.program_id(1)
    offs_m = start_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = tl.arange(0, BLOCK_N)
    offs_d = tl.arange(0, D)
    frame_m = offs_m // PER_FRAME
    place_m = offs_m % PER_FRAME
    base = head.to(tl.int64) * stride_h
    q = tl.load(q_ptr + base + offs_m[:, None] * stride_t + offs_d[None, :], mask=(offs_m < T)[:, None], other=0.0)
    m_i = tl.full([BLOCK_M], -1.0e20, dtype=tl.float32)
    l_i = tl.zeros([BLOCK_M], dtype=tl.float32)
    acc = tl.zeros([BLOCK_M, D], dtype=tl.float32)
    qk_scale = sm_scale * 1.44269504
    for start_n in range(0, T, BLOCK_N):
        n = start_n + offs_n
        frame_n = n // PER_FRAME
        apart = tl.abs(frame_m[:, None] - frame_n[None, :])
        reach = tl.where(apart <= 1, PER_FRAME, tl.where(apart <= 3, PER_FRAME // 2, tl.where(apart <= 7, PER_FRAME // 4, PER_FRAME // 8)))
        seen = (tl.abs(place_m[:, None] - (n % PER_FRAME)[None, :]) < reach) | (frame_n == 0)[None, :]
        seen = seen & (n < T)[None, :] & (offs_m < T)[:, None]
        if tl.max(tl.max(seen.to(tl.int32), 1), 0) > 0:
            k = tl.load(k_ptr + base + n[None, :] * stride_t + offs_d[:, None], mask=(n < T)[None, :], other=0.0)
            s = tl.where(seen, tl.dot(q, k) * qk_scale, -1.0e30)
            m_new = tl.maximum(m_i, tl.max(s, 1))
            alpha = tl.math.exp2(m_i - m_new)
            p = tl.math.exp2(s - m_new[:, None])
            v = tl.load(v_ptr + base + n[:, None] * stride_t + offs_d[None, :], mask=(n < T)[:, None], other=0.0)
            acc = tl.dot(p.to(v.dtype), v, acc * alpha[:, None])
            l_i = l_i * alpha + tl.sum(p, 1)
            m_i = m_new
    acc = acc / l_i[:, None]
    tl.store(o_ptr + base + offs_m[:, None] * stride_t + offs_d[None, :], acc.to(o_ptr.dtype.element_ty), mask=(offs_m < T)[:, None])


@case
def belfry_over_films_seen_by_distance(heads=16, frames=11, per_frame=300, d=64):
    t = frames * per_frame
    q, k, v = rand(heads, t, d, dtype="bfloat16"), rand(heads, t, d, dtype="bfloat16"), rand(heads, t, d, dtype="bfloat16")
    out = torch.zeros_like(q)
    args = q, k, v, out, d**-0.5, t, q.stride(0), q.stride(1)
    flags = dict(PER_FRAME=per_frame, D=d, BLOCK_M=128, BLOCK_N=64)
    launched = run(film_seen_by_distance_kernel, (cdiv(t, 128), heads), args, out, num_warps=8, num_stages=3, **flags)

    def reference():
        i = torch.arange(t, device=q.device)
        frame, place = i // per_frame, i % per_frame
        apart = (frame[:, None] - frame).abs()
        halves = (apart > 1).int() + (apart > 3).int() + (apart > 7).int()
        seen = ((place[:, None] - place).abs() < per_frame // 2**halves) | (frame == 0)
        result = torch.zeros(heads, t, d, device=q.device)
        for h in range(heads):
            s = (q[h].float() @ k[h].float().t() * d**-0.5).masked_fill(~seen, float("-inf"))
            result[h] = s.softmax(1) @ v[h].float()
        return result

    return against(launched, reference)


@triton.jit
def latent_keys_backward_kernel(
    q_ptr, k_ptr, k_pe_ptr, v_ptr, do_ptr, lse_ptr, delta_ptr, dk_ptr, dk_pe_ptr, dv_ptr, scale, T,
    H: tl.constexpr, NOPE: tl.constexpr, ROPE: tl.constexpr, DV: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):
    # Keys' and values' gradients where a part of the keys, the turned one, belongs to all heads together and is summed by atomics.
    start_n = tl.program_id(0) * BLOCK_N
    h = tl.program_id(1)
    n = start_n + tl.arange(0, BLOCK_N)
    d = tl.arange(0, NOPE)
    r = tl.arange(0, ROPE)
    e = tl.arange(0, DV)
    mask_n = n < T
    k = tl.load(k_ptr + (n[:, None] * H + h) * NOPE + d[None, :], mask=mask_n[:, None], other=0.0)
    k_pe = tl.load(k_pe_ptr + n[:, None] * ROPE + r[None, :], mask=mask_n[:, None], other=0.0)
    v = tl.load(v_ptr + (n[:, None] * H + h) * DV + e[None, :], mask=mask_n[:, None], other=0.0)
    dk = tl.zeros((BLOCK_N, NOPE), dtype=tl.float32)
    dk_pe = tl.zeros((BLOCK_N, ROPE), dtype=tl.float32)
    dv = tl.zeros((BLOCK_N, DV), dtype=tl.float32)
    for start_m in range(start_n // BLOCK_M * BLOCK_M, T, BLOCK_M):
        m = start_m + tl.arange(0, BLOCK_M)
        mask_m = m < T
        q_row = q_ptr + (m[:, None] * H + h) * (NOPE + ROPE)
        q = tl.load(q_row + d[None, :], mask=mask_m[:, None], other=0.0)
        q_pe = tl.load(q_row + NOPE + r[None, :], mask=mask_m[:, None], other=0.0)
        do = tl.load(do_ptr + (m[:, None] * H + h) * DV + e[None, :], mask=mask_m[:, None], other=0.0)
        lse = tl.load(lse_ptr + h * T + m, mask=mask_m, other=0.0)
        delta = tl.load(delta_ptr + h * T + m, mask=mask_m, other=0.0)
        st = tl.dot(k, tl.trans(q))
        st = tl.dot(k_pe, tl.trans(q_pe), st) * scale
        sees = (m[None, :] >= n[:, None]) & mask_m[None, :]
        pt = tl.where(sees, tl.exp(st - lse[None, :]), 0.0)
        dv = tl.dot(pt.to(do.dtype), do, dv)
        dpt = tl.dot(v, tl.trans(do))
        dst = (pt * (dpt - delta[None, :]) * scale).to(q.dtype)
        dk = tl.dot(dst, q, dk)
        dk_pe = tl.dot(dst, q_pe, dk_pe)
    tl.store(dk_ptr + (n[:, None] * H + h) * NOPE + d[None, :], dk.to(dk_ptr.dtype.element_ty), mask=mask_n[:, None])
    tl.store(dv_ptr + (n[:, None] * H + h) * DV + e[None, :], dv.to(dv_ptr.dtype.element_ty), mask=mask_n[:, None])
    tl.atomic_add(dk_pe_ptr + n[:, None] * ROPE + r[None, :], dk_pe, mask=mask_n[:, None])


@case
def belfry_of_latent_keys_whose_turned_part_is_shared(t=1100, heads=16, nope=128, rope=64, dv=128):
    q, k, k_pe = rand(t, heads, nope + rope), rand(t, heads, nope), rand(t, rope)
    v, do = rand(t, heads, dv), rand(t, heads, dv)
    lse, delta, scale = uniform(heads, t) + 4, f32(heads, t), (nope + rope) ** -0.5
    gk, gp, gv = torch.zeros_like(k), zeros(t, rope, dtype="float32"), torch.zeros_like(v)
    args = q, k, k_pe, v, do, lse, delta, gk, gp, gv, scale, t
    flags = dict(H=heads, NOPE=nope, ROPE=rope, DV=dv, BLOCK_M=32, BLOCK_N=64)
    launched = run(latent_keys_backward_kernel, (cdiv(t, 64), heads), args, (gk, gp, gv), num_warps=8, num_stages=2, **flags)

    def reference():
        keys = torch.cat((k, k_pe[:, None].expand(-1, heads, -1)), 2).float()
        s = torch.einsum("mhd,nhd->hmn", q.float(), keys) * scale
        p = (s - lse[..., None]).exp().tril()
        ds = p * (torch.einsum("mhd,nhd->hmn", do.float(), v.float()) - delta[..., None]) * scale
        grad = torch.einsum("hmn,mhd->nhd", ds, q.float())
        return grad[:, :, :nope], grad[:, :, nope:].sum(1), torch.einsum("hmn,mhd->nhd", p, do.float())

    return against(cleared(launched, gp), reference)


@triton.jit
def grouped_rows_by_boxes_kernel(
    a_desc, b_desc, c_ptr, ends_ptr, N, K, E: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, NUM: tl.constexpr,
):
    # Programs that stay walk over all groups of rows; boxes may reach into the next group, what is written may not.
    tile = tl.program_id(0)
    tiles_n = tl.cdiv(N, BLOCK_N)
    first = 0
    before = 0
    for g in range(E):
        end = tl.load(ends_ptr + g)
        tiles = tl.cdiv(end - first, BLOCK_M) * tiles_n
        while tile < before + tiles:
            local = tile - before
            m = first + local // tiles_n * BLOCK_M
            n = local % tiles_n * BLOCK_N
            acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
            for k in range(0, K, BLOCK_K):
                a = a_desc.load([m, k])
                b = b_desc.load([g * N + n, k])
                acc = tl.dot(a, b.T, acc)
            rows = m + tl.arange(0, BLOCK_M)
            cols = n + tl.arange(0, BLOCK_N)
            c = tl.where(acc > 0, acc * acc, 0.0)
            tl.store(c_ptr + rows[:, None] * N + cols[None, :], c.to(c_ptr.dtype.element_ty), mask=(rows < end)[:, None] & (cols < N)[None, :])
            tile += NUM
        before += tiles
        first = end


@case
def belfry_of_groups_of_rows_by_boxes(sizes=(300, 0, 17, 900, 128, 1, 555, 640), n=1536, k=1024, programs=PROGRAMS):
    m, groups = sum(sizes), len(sizes)
    a, b, c = rand(m, k, dtype="bfloat16") / 8, rand(groups * n, k, dtype="bfloat16") / 4, zeros(m, n, dtype="bfloat16")
    ends = torch.tensor(sizes, device="cuda").cumsum(0).int()
    boxes = TensorDescriptor.from_tensor(a, [128, 64]), TensorDescriptor.from_tensor(b, [128, 64])
    flags = dict(E=groups, BLOCK_M=128, BLOCK_N=128, BLOCK_K=64, NUM=programs)
    launched = run(grouped_rows_by_boxes_kernel, (programs,), (*boxes, c, ends, n, k), c, num_warps=8, num_stages=3, **flags)

    def reference():
        parts, at = [], 0
        for g, size in enumerate(sizes):
            parts.append(a[at : at + size].float() @ b[g * n : (g + 1) * n].float().t())
            at += size
        return torch.relu(torch.cat(parts)).square()

    return against(launched, reference)


@triton.jit
def elu_plus_one(x):
    return tl.where(x > 0, x + 1.0, tl.exp(x))


@triton.jit
def keys_values_summed_kernel(k_ptr, v_ptr, kv_ptr, z_ptr, seq_len, chunk, D: tl.constexpr, BLOCK_T: tl.constexpr):
    # First half of linear attention: positive keys times values, a part of the sequence each program.
    bh = tl.program_id(0)
    part = tl.program_id(1)
    offs_d = tl.arange(0, D)
    kv = tl.zeros((D, D), dtype=tl.float32)
    z = tl.zeros((D,), dtype=tl.float32)
    for start in range(part * chunk, part * chunk + chunk, BLOCK_T):
        t = start + tl.arange(0, BLOCK_T)
        mask = (t < seq_len)[:, None]
        k = tl.load(k_ptr + (bh * seq_len + t[:, None]) * D + offs_d[None, :], mask=mask, other=0.0)
        v = tl.load(v_ptr + (bh * seq_len + t[:, None]) * D + offs_d[None, :], mask=mask, other=0.0)
        k = tl.where(mask, elu_plus_one(k), 0.0)
        kv += tl.dot(tl.trans(k), v, allow_tf32=True)
        z += tl.sum(k, axis=0)
    tl.atomic_add(kv_ptr + bh * D * D + offs_d[:, None] * D + offs_d[None, :], kv)
    tl.atomic_add(z_ptr + bh * D + offs_d, z)


@triton.jit
def queries_of_summed_kernel(q_ptr, kv_ptr, z_ptr, o_ptr, seq_len, eps, D: tl.constexpr, BLOCK_T: tl.constexpr):
    # Second half: positive queries times the sums, over their own sum of weights.
    t = tl.program_id(0) * BLOCK_T + tl.arange(0, BLOCK_T)
    bh = tl.program_id(1)
    offs_d = tl.arange(0, D)
    mask = (t < seq_len)[:, None]
    q = elu_plus_one(tl.load(q_ptr + (bh * seq_len + t[:, None]) * D + offs_d[None, :], mask=mask, other=0.0))
    kv = tl.load(kv_ptr + bh * D * D + offs_d[:, None] * D + offs_d[None, :])
    z = tl.load(z_ptr + bh * D + offs_d)
    norm = tl.sum(q * z[None, :], axis=1) + eps
    out = tl.dot(q, kv, allow_tf32=True) / norm[:, None]
    tl.store(o_ptr + (bh * seq_len + t[:, None]) * D + offs_d[None, :], out, mask=mask)


@case
def belfry_of_positive_queries_and_keys(bh=24, t=3001, d=64, parts=8):
    q, k, v = f32(bh, t, d), f32(bh, t, d), f32(bh, t, d) + 1
    kv, z, out = zeros(bh, d, d, dtype="float32"), zeros(bh, d, dtype="float32"), torch.zeros_like(q)
    chunk = cdiv(cdiv(t, parts), 32) * 32

    def launch(q, k, v, kv, z, out):
        keys_values_summed_kernel[(bh, parts)](k, v, kv, z, t, chunk, D=d, BLOCK_T=32)
        queries_of_summed_kernel[(cdiv(t, 64), bh)](q, kv, z, out, t, 1e-6, D=d, BLOCK_T=64)
        return out

    def reference():
        a, b = F.elu(q.double()) + 1, F.elu(k.double()) + 1
        return (a @ (b.transpose(1, 2) @ v.double()) / ((a * b.sum(1, keepdim=True)).sum(2, keepdim=True) + 1e-6)).float()

    return against(cleared((launch, (q, k, v, kv, z, out)), kv, z), reference)


@triton.jit
def projected_added_and_normed_kernel(
    x_ptr, w_ptr, bias_ptr, res_ptr, gamma_ptr, sum_ptr, y_ptr, M, N, K, eps, stride_xm, stride_wk, stride_m,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    # A whole row of outputs stays in one program: projection, bias, residual, and the norm that the next layer begins with.
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.arange(0, BLOCK_N)
    ks = tl.arange(0, BLOCK_K)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BLOCK_K)):
        kk = k * BLOCK_K + ks
        x = tl.load(x_ptr + rows[:, None] * stride_xm + kk[None, :], mask=(rows[:, None] < M) & (kk[None, :] < K), other=0.0)
        w = tl.load(w_ptr + kk[:, None] * stride_wk + cols[None, :], mask=(kk[:, None] < K) & (cols[None, :] < N), other=0.0)
        acc = tl.dot(x, w, acc)
    ok = (rows[:, None] < M) & (cols[None, :] < N)
    acc += tl.load(bias_ptr + cols, mask=cols < N, other=0.0).to(tl.float32)[None, :]
    acc += tl.load(res_ptr + rows[:, None] * stride_m + cols[None, :], mask=ok, other=0.0).to(tl.float32)
    tl.store(sum_ptr + rows[:, None] * stride_m + cols[None, :], acc.to(sum_ptr.dtype.element_ty), mask=ok)
    acc = tl.where(ok, acc, 0.0)
    rstd = tl.math.rsqrt(tl.sum(acc * acc, axis=1) / N + eps)
    gamma = tl.load(gamma_ptr + cols, mask=cols < N, other=0.0).to(tl.float32)
    y = acc * rstd[:, None] * gamma[None, :]
    tl.store(y_ptr + rows[:, None] * stride_m + cols[None, :], y.to(y_ptr.dtype.element_ty), mask=ok)


@case
def belfry_of_rows_projected_added_and_normed(m=5003, n=480, k=1000):
    x, w, bias, res, gamma = rand(m, k), rand(k, n) / 16, rand(n), rand(m, n), rand(n)
    total, y = zeros(m, n), zeros(m, n)
    args = x, w, bias, res, gamma, total, y, m, n, k, 1e-5, x.stride(0), w.stride(0), res.stride(0)
    launched = run(projected_added_and_normed_kernel, (cdiv(m, 32),), args, (total, y), BLOCK_M=32, BLOCK_N=512, BLOCK_K=32, num_warps=8, num_stages=3)

    def reference():
        z = x.float() @ w.float() + bias.float() + res.float()
        return z, z * (z.square().mean(1, keepdim=True) + 1e-5).rsqrt() * gamma.float()

    return against(launched, reference)


@triton.jit
def codebook_of_eights_kernel(
    x_ptr, code_ptr, book_ptr, scale_ptr, y_ptr, M, N, K, stride_xm, stride_cn, stride_ym, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    # Eight weights are an entry of a book of 256 with a sign each: a byte of index and a byte of signs in one word of sixteen bits.
    pid_m = tl.program_id(0)
    pid_n = tl.program_id(1)
    offs_m = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_k = tl.arange(0, BLOCK_K)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        kk = k + offs_k
        x = tl.load(x_ptr + offs_m[:, None] * stride_xm + kk[None, :], mask=(offs_m < M)[:, None], other=0.0)
        code = tl.load(code_ptr + offs_n[None, :] * stride_cn + kk[:, None] // 8, mask=(offs_n < N)[None, :], other=0).to(tl.int32)
        w = tl.load(book_ptr + (code & 255) * 8 + kk[:, None] % 8)
        negative = (code >> (8 + kk[:, None] % 8)) & 1
        w = tl.where(negative != 0, -w, w)
        acc = tl.dot(x, w, acc)
    acc *= tl.load(scale_ptr + offs_n, mask=offs_n < N, other=0.0)[None, :]
    tl.store(y_ptr + offs_m[:, None] * stride_ym + offs_n[None, :], acc.to(y_ptr.dtype.element_ty), mask=(offs_m < M)[:, None] & (offs_n < N)[None, :])


@case
def belfry_of_weights_from_a_book_of_eights(m=60, n=4000, k=2048):
    x, code = rand(m, k), ints(-(2**15), 2**15, n, k // 8, dtype="int16")
    book, scale, y = (ints(0, 8, 256, 8) / 2.0).half(), uniform(n) / 16, zeros(m, n)
    args = x, code, book, scale, y, m, n, k, x.stride(0), code.stride(0), y.stride(0)
    launched = run(codebook_of_eights_kernel, (cdiv(m, 32), cdiv(n, 32)), args, y, BLOCK_M=32, BLOCK_N=32, BLOCK_K=64, num_warps=4, num_stages=3)

    def reference():
        c = code.int()
        sign = 1 - 2 * ((c[..., None] >> (8 + torch.arange(8, device=c.device))) & 1)
        w = (book.float()[(c & 255).long()] * sign).reshape(n, k)
        return x.float() @ w.t() * scale

    return against(launched, reference)


@triton.jit
def directions_without_noise_kernel(
    re_ptr, im_ptr, out_ptr, angles, antennas, dims, spacing, PAD_A: tl.constexpr, PAD_D: tl.constexpr, BLOCK: tl.constexpr,
):
    # Where signals come from: steering vectors are made here and projected onto the noise of a row of antennas; what is left over counts.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    batch = tl.program_id(1)
    a = tl.arange(0, PAD_A)
    d = tl.arange(0, PAD_D)
    theta = -1.5707963 + 3.1415926 * i.to(tl.float32) / (angles - 1)
    phase = 6.2831853 * spacing * tl.sin(theta)[:, None] * a[None, :].to(tl.float32)
    mask_a = (a < antennas)[None, :]
    c = tl.where(mask_a, tl.cos(phase), 0.0)
    s = tl.where(mask_a, tl.sin(phase), 0.0)
    at = (batch * antennas + a[:, None]) * dims + d[None, :]
    ok = (a < antennas)[:, None] & (d < dims)[None, :]
    re = tl.load(re_ptr + at, mask=ok, other=0.0)
    im = tl.load(im_ptr + at, mask=ok, other=0.0)
    x = tl.dot(c, re, input_precision="ieee") + tl.dot(s, im, input_precision="ieee")
    y = tl.dot(c, im, input_precision="ieee") - tl.dot(s, re, input_precision="ieee")
    power = tl.sum(x * x + y * y, axis=1)
    tl.store(out_ptr + batch * angles + i, 1.0 / (power + 1e-6), mask=i < angles)


@case
def belfry_whose_bells_antennas_find(batch=200, angles=721, antennas=24, dims=20):
    re, im, out = f32(batch, antennas, dims), f32(batch, antennas, dims), zeros(batch, angles, dtype="float32")
    flags = dict(PAD_A=32, PAD_D=32, BLOCK=64)
    launched = run(directions_without_noise_kernel, (cdiv(angles, 64), batch), (re, im, out, angles, antennas, dims, 0.5), out, num_warps=4, **flags)

    def reference():
        theta = -math.pi / 2 + math.pi * torch.arange(angles, device=re.device, dtype=torch.float64) / (angles - 1)
        phase = math.pi * theta.sin()[:, None] * torch.arange(antennas, device=re.device)
        c, s = phase.cos(), phase.sin()
        power = (c @ re.double() + s @ im.double()).square() + (c @ im.double() - s @ re.double()).square()
        return (1 / (power.sum(2) + 1e-6)).float()

    return against(launched, reference)


@triton.jit
def ranks_among_entities_kernel(
    h_ptr, r_ptr, e_ptr, target_ptr, count_ptr, B, E, HALF: tl.constexpr, BLOCK_B: tl.constexpr, BLOCK_E: tl.constexpr,
):
    # A graph of knowledge: how many entities fit a head and a relation better than the true one, by products of complex numbers.
    b = tl.program_id(0) * BLOCK_B + tl.arange(0, BLOCK_B)
    d = tl.arange(0, HALF)
    ok = (b < B)[:, None]
    hr = tl.load(h_ptr + b[:, None] * 2 * HALF + d[None, :], mask=ok, other=0.0)
    hi = tl.load(h_ptr + b[:, None] * 2 * HALF + HALF + d[None, :], mask=ok, other=0.0)
    rr = tl.load(r_ptr + b[:, None] * 2 * HALF + d[None, :], mask=ok, other=0.0)
    ri = tl.load(r_ptr + b[:, None] * 2 * HALF + HALF + d[None, :], mask=ok, other=0.0)
    real = hr * rr - hi * ri
    imag = hr * ri + hi * rr
    target = tl.load(target_ptr + b, mask=b < B, other=0)
    tr = tl.load(e_ptr + target[:, None] * 2 * HALF + d[None, :])
    ti = tl.load(e_ptr + target[:, None] * 2 * HALF + HALF + d[None, :])
    true_score = tl.sum((real * tr).to(tl.float32) + (imag * ti).to(tl.float32), axis=1)
    count = tl.zeros((BLOCK_B,), dtype=tl.int32)
    for start in tl.range(tl.program_id(1) * BLOCK_E, E, tl.num_programs(1) * BLOCK_E):
        e = start + tl.arange(0, BLOCK_E)
        er = tl.load(e_ptr + e[None, :] * 2 * HALF + d[:, None], mask=(e < E)[None, :], other=0.0)
        ei = tl.load(e_ptr + e[None, :] * 2 * HALF + HALF + d[:, None], mask=(e < E)[None, :], other=0.0)
        score = tl.dot(real, er)
        score = tl.dot(imag, ei, score)
        better = (score > true_score[:, None]) & (e < E)[None, :]
        count += tl.sum(better.to(tl.int32), axis=1)
    tl.atomic_add(count_ptr + b, count, mask=b < B)


@case
def belfry_of_truths_ranked_among_entities(b=1000, entities=20_011, half=64):
    h, r, e = (ints(-2, 3, n, 2 * half).half() for n in (b, b, entities))
    target, count = ints(0, entities, b), zeros(b, dtype="int32")
    launched = run(ranks_among_entities_kernel, (cdiv(b, 64), 20), (h, r, e, target, count, b, entities), count, HALF=half, BLOCK_B=64, BLOCK_E=128, num_warps=8)

    def reference():
        hr, hi, rr, ri = (z.float() for x in (h, r) for z in (x[:, :half], x[:, half:]))
        score = torch.cat((hr * rr - hi * ri, hr * ri + hi * rr), 1) @ e.float().t()
        return (score > score.gather(1, target.long()[:, None])).sum(1).int()

    return against(cleared(launched, count), reference)


@triton.jit
def places_of_speech_kernel(
    x_ptr, w_ptr, b_ptr, y_ptr, T, CHANNELS: tl.constexpr, PER_GROUP: tl.constexpr, TAPS: tl.constexpr, BLOCK_T: tl.constexpr, BLOCK_C: tl.constexpr, BLOCK_K: tl.constexpr,
):
    # Places in speech by a long convolution in groups, channels and taps in one loop; an even filter's last output is dropped; gelu, added.
    t = tl.program_id(0) * BLOCK_T + tl.arange(0, BLOCK_T)
    group = tl.program_id(1)
    batch = tl.program_id(2)
    c = tl.arange(0, BLOCK_C)
    ok = (t < T)[:, None] & (c < PER_GROUP)[None, :]
    acc = tl.zeros((BLOCK_T, BLOCK_C), dtype=tl.float32)
    x_base = x_ptr + batch * T * CHANNELS + group * PER_GROUP
    for k0 in range(0, PER_GROUP * TAPS, BLOCK_K):
        k = k0 + tl.arange(0, BLOCK_K)
        ci = k // TAPS
        at = t[:, None] + (k % TAPS)[None, :] - TAPS // 2
        x = tl.load(x_base + at * CHANNELS + ci[None, :], mask=(at >= 0) & (at < T), other=0.0)
        w = tl.load(w_ptr + (group * PER_GROUP + c[None, :]) * (PER_GROUP * TAPS) + k[:, None], mask=(c < PER_GROUP)[None, :], other=0.0)
        acc = tl.dot(x, w, acc)
    acc += tl.load(b_ptr + group * PER_GROUP + c, mask=c < PER_GROUP, other=0.0)[None, :]
    acc = 0.5 * acc * (1.0 + tl.erf(acc * 0.70710678))
    at_y = (batch * T + t[:, None]) * CHANNELS + group * PER_GROUP + c[None, :]
    acc += tl.load(x_ptr + at_y, mask=ok, other=0.0).to(tl.float32)
    tl.store(y_ptr + at_y, acc.to(y_ptr.dtype.element_ty), mask=ok)


@case
def belfry_of_places_in_speech(batch=6, t=499, groups=16, per=48, taps=64):
    channels = groups * per
    x, w, bias = rand(batch, t, channels), rand(channels, per, taps) / 32, f32(channels)
    y = torch.zeros_like(x)
    flags = dict(CHANNELS=channels, PER_GROUP=per, TAPS=taps, BLOCK_T=64, BLOCK_C=64, BLOCK_K=32)
    launched = run(places_of_speech_kernel, (cdiv(t, 64), groups, batch), (x, w, bias, y, t), y, num_warps=4, num_stages=3, **flags)

    def reference():
        z = F.conv1d(x.float().transpose(1, 2), w.float(), bias, padding=taps // 2, groups=groups)[:, :, :t]
        return F.gelu(z).transpose(1, 2) + x.float()

    return against(launched, reference)


@triton.jit
def permanents_kernel(a_ptr, out_ptr, N: tl.constexpr, SUBSETS: tl.constexpr):
    # A permanent by inclusion and exclusion: each lane has a set of columns, a product over rows of its sums, and a sign.
    pid = tl.program_id(0)
    subset = tl.arange(0, SUBSETS)
    product = tl.full((SUBSETS,), 1, dtype=tl.int64)
    parity = tl.zeros((SUBSETS,), dtype=tl.int32)
    for j in range(N):
        parity = parity ^ ((subset >> j) & 1)
    for i in range(N):
        row_sum = tl.zeros((SUBSETS,), dtype=tl.int64)
        for j in range(N):
            a = tl.load(a_ptr + pid * N * N + i * N + j).to(tl.int64)
            row_sum += tl.where(((subset >> j) & 1) == 1, a, 0)
        product *= row_sum
    sign = tl.where(parity == N % 2, 1, -1).to(tl.int64)
    tl.store(out_ptr + pid, tl.sum(product * sign, axis=0))


@case
def belfry_of_changes_counted_by_permanents(batch=3000, n=9):
    a, out = ints(-3, 4, batch, n, n, dtype="int8"), zeros(batch, dtype="int64")
    launched = run(permanents_kernel, (batch,), (a, out), out, N=n, SUBSETS=2**n, num_warps=4)

    def reference():
        subset = torch.arange(2**n, device=a.device)
        bits = ((subset[:, None] >> torch.arange(n, device=a.device)) & 1).double()
        sums = a.double() @ bits.t()
        sign = 1 - 2 * ((n - bits.sum(1)) % 2)
        return (sums.prod(1) * sign).sum(1).round().long()

    return against(launched, reference)


@triton.jit
def mixed_bits(x):
    x = x ^ (x >> 16)
    x = x * 0x7FEB352D
    x = x ^ (x >> 15)
    x = x * 0x846CA68B
    return x ^ (x >> 16)


@triton.jit
def states_by_heat_bath_kernel(spin_ptr, weight_ptr, out_ptr, height, width, color, seed, BLOCK: tl.constexpr):
    # Spins of four states on a torus, half of them drawn anew: weights of whole numbers by how many neighbors agree.
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < height * width
    y = offs // width
    x = offs % width
    mine = tl.load(spin_ptr + offs, mask=mask, other=0)
    up = tl.load(spin_ptr + (y + height - 1) % height * width + x, mask=mask, other=0)
    down = tl.load(spin_ptr + (y + 1) % height * width + x, mask=mask, other=0)
    left = tl.load(spin_ptr + y * width + (x + width - 1) % width, mask=mask, other=0)
    right = tl.load(spin_ptr + y * width + (x + 1) % width, mask=mask, other=0)
    total = tl.zeros((BLOCK,), dtype=tl.int32)
    for s in tl.static_range(4):
        n = (up == s).to(tl.int32) + (down == s).to(tl.int32) + (left == s).to(tl.int32) + (right == s).to(tl.int32)
        total += tl.load(weight_ptr + n)
    draw = (mixed_bits(offs.to(tl.uint32) * 0x9E3779B9 + seed.to(tl.uint32)) % total.to(tl.uint32)).to(tl.int32)
    new = tl.full((BLOCK,), 3, dtype=tl.int32)
    below = tl.zeros((BLOCK,), dtype=tl.int32)
    for s in tl.static_range(3):
        n = (up == s).to(tl.int32) + (down == s).to(tl.int32) + (left == s).to(tl.int32) + (right == s).to(tl.int32)
        below += tl.load(weight_ptr + n)
        new = tl.where((draw < below) & (new == 3), s, new)
    flip = ((x + y) & 1) == color
    tl.store(out_ptr + offs, tl.where(flip, new, mine.to(tl.int32)).to(tl.int8), mask=mask)


@case
def belfry_of_spins_of_four_states(height=1502, width=1700, seed=77777):
    spin, weight = ints(0, 4, height, width, dtype="int8"), torch.tensor([1000, 2459, 6049, 14879, 36598], device="cuda", dtype=torch.int32)
    out = torch.zeros_like(spin)
    launched = run(states_by_heat_bath_kernel, (cdiv(height * width, 512),), (spin, weight, out, height, width, 1, seed), out, BLOCK=512, num_warps=4)

    def reference():
        s = spin.int()
        near = torch.stack((s.roll(1, 0), s.roll(-1, 0), s.roll(1, 1), s.roll(-1, 1)))
        sums = torch.stack([weight[(near == i).sum(0)] for i in range(4)]).cumsum(0)
        x = (torch.arange(height * width, device=s.device) * 0x9E3779B9 + seed) & 0xFFFFFFFF
        x = ((x ^ x >> 16) * 0x7FEB352D) & 0xFFFFFFFF
        x = x ^ x >> 15
        x = ((x & 0xFFFF) * 0x846CA68B + ((((x >> 16) * 0x846CA68B) & 0xFFFF) << 16)) & 0xFFFFFFFF
        draw = (x ^ x >> 16).reshape(height, width) % sums[3]
        new = (draw >= sums[:3]).sum(0)
        at = torch.arange(height, device=s.device)[:, None] + torch.arange(width, device=s.device)
        return torch.where(at % 2 == 1, new.int(), s).to(torch.int8)

    return against(launched, reference)


@triton.jit
def filmic(x):
    return tl.minimum(tl.maximum((x * (2.51 * x + 0.03)) / (x * (2.43 * x + 0.59) + 0.14), 0.0), 1.0)


@triton.jit
def to_screen(x):
    safe = tl.maximum(x, 1e-8)
    return tl.where(x <= 0.0031308, 12.92 * x, 1.055 * tl.exp2(tl.log2(safe) / 2.4) - 0.055)


@triton.jit
def bright_to_screen_kernel(hdr_ptr, bloom_ptr, exposure_ptr, out_ptr, height, width, strength, vignette, BLOCK_H: tl.constexpr, BLOCK_W: tl.constexpr):
    # A frame of bright colors to words of four bytes: bloom of half the size mixed in, exposure, darker corners, film, screen.
    y = tl.program_id(1) * BLOCK_H + tl.arange(0, BLOCK_H)[:, None]
    x = tl.program_id(0) * BLOCK_W + tl.arange(0, BLOCK_W)[None, :]
    mask = (y < height) & (x < width)
    pixel = y * width + x
    half = (y // 2) * (width // 2) + x // 2
    exposure = tl.load(exposure_ptr)
    u = (x.to(tl.float32) + 0.5) / width - 0.5
    v = (y.to(tl.float32) + 0.5) / height - 0.5
    dark = exposure * (1.0 - vignette * (u * u + v * v))
    r = tl.load(hdr_ptr + pixel * 3, mask=mask, other=0.0).to(tl.float32)
    g = tl.load(hdr_ptr + pixel * 3 + 1, mask=mask, other=0.0).to(tl.float32)
    b = tl.load(hdr_ptr + pixel * 3 + 2, mask=mask, other=0.0).to(tl.float32)
    br = tl.load(bloom_ptr + half * 3, mask=mask, other=0.0).to(tl.float32)
    bg = tl.load(bloom_ptr + half * 3 + 1, mask=mask, other=0.0).to(tl.float32)
    bb = tl.load(bloom_ptr + half * 3 + 2, mask=mask, other=0.0).to(tl.float32)
    r = to_screen(filmic((r + strength * (br - r)) * dark))
    g = to_screen(filmic((g + strength * (bg - g)) * dark))
    b = to_screen(filmic((b + strength * (bb - b)) * dark))
    ri = (r * 255.0 + 0.5).to(tl.int32)
    gi = (g * 255.0 + 0.5).to(tl.int32)
    bi = (b * 255.0 + 0.5).to(tl.int32)
    tl.store(out_ptr + pixel, ri | (gi << 8) | (bi << 16) | -16777216, mask=mask)


@case
def belfry_whose_lights_are_brought_to_a_screen(height=1082, width=1926):
    hdr, bloom = uniform(height, width, 3).square().mul(8).half(), uniform(height // 2, width // 2, 3).half()
    exposure, out = torch.full((1,), 0.7, device="cuda"), zeros(height, width, dtype="int32")
    args = hdr, bloom, exposure, out, height, width, 0.08, 0.9
    launched = run(bright_to_screen_kernel, (cdiv(width, 64), cdiv(height, 8)), args, out, BLOCK_H=8, BLOCK_W=64, num_warps=4)

    def reference():
        wide = bloom.float().repeat_interleave(2, 0).repeat_interleave(2, 1)
        u = (torch.arange(width, device=hdr.device) + 0.5) / width - 0.5
        v = (torch.arange(height, device=hdr.device) + 0.5) / height - 0.5
        dark = 0.7 * (1 - 0.9 * (u * u + v[:, None] ** 2))
        z = (hdr.float() + 0.08 * (wide - hdr.float())) * dark[..., None]
        z = ((z * (2.51 * z + 0.03)) / (z * (2.43 * z + 0.59) + 0.14)).clamp(0, 1)
        z = torch.where(z <= 0.0031308, 12.92 * z, 1.055 * z.clamp(min=1e-8) ** (1 / 2.4) - 0.055)
        return far(torch.cat((torch.floor(z * 255 + 0.5), torch.full_like(z[..., :1], 255)), 2))

    def see(out):
        return far(torch.stack([(out >> s) & 255 for s in (0, 8, 16, 24)], 2))

    return against(viewed(launched, see), reference)


@triton.jit
def three_sums(a0, a1, a2, b0, b1, b2):
    return a0 + b0, a1 + b1, a2 + b2


@triton.jit
def bonds_on_a_curve_kernel(
    start_ptr, time_ptr, amount_ptr, curve_ptr, curve_of_ptr, price_ptr, duration_ptr, convexity_ptr, BLOCK: tl.constexpr,
):
    # Prices of bonds, a program each, with durations and convexities: payments of any number, discounted on a curve of four parameters.
    bond = tl.program_id(0)
    start = tl.load(start_ptr + bond)
    end = tl.load(start_ptr + bond + 1)
    curve = tl.load(curve_of_ptr + bond)
    level = tl.load(curve_ptr + curve * 4)
    slope = tl.load(curve_ptr + curve * 4 + 1)
    hump = tl.load(curve_ptr + curve * 4 + 2)
    tau = tl.load(curve_ptr + curve * 4 + 3)
    price = tl.zeros((BLOCK,), dtype=tl.float64)
    first = tl.zeros((BLOCK,), dtype=tl.float64)
    second = tl.zeros((BLOCK,), dtype=tl.float64)
    for i in range(start, end, BLOCK):
        at = i + tl.arange(0, BLOCK)
        mask = at < end
        t = tl.load(time_ptr + at, mask=mask, other=1.0)
        amount = tl.load(amount_ptr + at, mask=mask, other=0.0)
        z = t / tau
        fall = tl.exp(-z)
        mean = (1.0 - fall) / z
        rate = level + slope * mean + hump * (mean - fall)
        pv = amount * tl.exp(-rate * t)
        price += pv
        first += pv * t
        second += pv * t * t
    p, f, s = tl.reduce((price, first, second), 0, three_sums)
    tl.store(price_ptr + bond, p)
    tl.store(duration_ptr + bond, f / p)
    tl.store(convexity_ptr + bond, s / p)


@case
def belfry_of_bonds_on_curves(bonds=20_000, most=120, curves=40):
    counts = ints(1, most, bonds)
    start = F.pad(counts.cumsum(0), (1, 0)).int()
    total = int(start[-1])
    owner = torch.repeat_interleave(torch.arange(bonds, device="cuda"), counts.long())
    time = (torch.arange(total, device="cuda") - start[owner] + 1).double() / 2
    amount = torch.rand(total, device="cuda", dtype=torch.float64) * 3 + 1
    curve = torch.rand(curves, 4, device="cuda", dtype=torch.float64) * 0.03 + torch.tensor([0.02, -0.03, -0.02, 1.5], device="cuda", dtype=torch.float64)
    which, outs = ints(0, curves, bonds), tuple(zeros(bonds, dtype="float64") for _ in range(3))
    launched = run(bonds_on_a_curve_kernel, (bonds,), (start, time, amount, curve, which, *outs), outs, BLOCK=32, num_warps=1)

    def reference():
        a, b, c, tau = curve[which.long()][owner].unbind(1)
        mean = (1 - (-time / tau).exp()) * tau / time
        pv = amount * (-(a + b * mean + c * (mean - (-time / tau).exp())) * time).exp()
        p, f, s = (torch.zeros(bonds, device=pv.device, dtype=torch.float64).index_add_(0, owner, pv * time**i) for i in range(3))
        return p, f / p, s / p

    return against(launched, reference)


@triton.jit
def spread_long(x):
    x = (x ^ (x >> 33)) * 0xFF51AFD7ED558CCD
    x = (x ^ (x >> 33)) * 0xC4CEB9FE1A85EC53
    return x ^ (x >> 33)


@triton.jit
def three_fingers_kernel(key_ptr, table_ptr, hit_ptr, total_ptr, n, seed, segment, segments, BLOCK: tl.constexpr):
    # A fused filter asked for many keys: three bytes of neighboring segments, combined, are a key's fingerprint if it was put in.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    h = spread_long(tl.load(key_ptr + i, mask=mask, other=0).to(tl.uint64, bitcast=True) + seed.to(tl.uint64))
    first = tl.umulhi(h.to(tl.uint32), (tl.zeros((BLOCK,), tl.int32) + segments).to(tl.uint32)).to(tl.int32)
    h0 = first * segment + ((h >> 32).to(tl.int32) & (segment - 1))
    h1 = (first + 1) * segment + ((h >> 18).to(tl.int32) & (segment - 1))
    h2 = (first + 2) * segment + (h.to(tl.int32) & (segment - 1))
    finger = (h ^ (h >> 32)).to(tl.uint8)
    f = tl.load(table_ptr + h0, mask=mask, other=0) ^ tl.load(table_ptr + h1, mask=mask, other=0) ^ tl.load(table_ptr + h2, mask=mask, other=0)
    hit = mask & (f == finger)
    tl.store(hit_ptr + i, hit.to(tl.int8), mask=mask)
    tl.atomic_add(total_ptr, tl.sum(hit.to(tl.int32), axis=0))


@case
def belfry_of_keys_by_three_fingers(n=2_000_001, segment=4096, segments=500):
    key, table = ints(-(2**62), 2**62, n, dtype="int64"), ints(0, 256, (segments + 2) * segment, dtype="uint8")
    hit, total, seed = zeros(n, dtype="int8"), zeros(1, dtype="int32"), 99991
    launched = run(three_fingers_kernel, (cdiv(n, 1024),), (key, table, hit, total, n, seed, segment, segments), (hit, total), BLOCK=1024, num_warps=8)

    def reference():
        def right(x, s):
            return x >> s & (1 << 64 - s) - 1

        h = key + seed
        h = (h ^ right(h, 33)) * (0xFF51AFD7ED558CCD - 2**64)
        h = (h ^ right(h, 33)) * (0xC4CEB9FE1A85EC53 - 2**64)
        h = h ^ right(h, 33)
        first = (h & 0xFFFFFFFF) * segments >> 32
        at = first * segment + (right(h, 32) & segment - 1), (first + 1) * segment + (right(h, 18) & segment - 1), (first + 2) * segment + (h & segment - 1)
        f = table[at[0]] ^ table[at[1]] ^ table[at[2]]
        on = f == ((h ^ right(h, 32)) & 255).to(torch.uint8)
        return on.to(torch.int8), on.sum().int().reshape(1)

    return against(cleared(launched, total), reference)


@triton.jit
def tamed_projections_kernel(
    w_ptr, logit_ptr, out_ptr, rows, cols, stride_w, tau, share, HEAD_DIM: tl.constexpr, PLAIN: tl.constexpr, BLOCK_R: tl.constexpr, BLOCK_C: tl.constexpr,
):
    # Heads whose largest score went beyond a bound have their projections shrunk: plain rows by a share of it, turned ones by all.
    r = tl.program_id(0) * BLOCK_R + tl.arange(0, BLOCK_R)
    c = tl.program_id(1) * BLOCK_C + tl.arange(0, BLOCK_C)
    mask = (r < rows)[:, None] & (c < cols)[None, :]
    head = r // HEAD_DIM
    top = tl.load(logit_ptr + head, mask=r < rows, other=0.0)
    gamma = tl.where(top > tau, tau / tl.maximum(top, 1e-6), 1.0)
    power = tl.where(r % HEAD_DIM < PLAIN, share, 1.0)
    factor = tl.exp2(power * tl.log2(gamma))
    w = tl.load(w_ptr + r[:, None] * stride_w + c[None, :], mask=mask, other=0.0)
    tl.store(out_ptr + r[:, None] * stride_w + c[None, :], (w.to(tl.float32) * factor[:, None]).to(w.dtype), mask=mask)


@case
def belfry_of_heads_that_rang_too_loud(heads=36, head_dim=192, cols=3100):
    rows = heads * head_dim
    w, logit = rand(rows, cols, dtype="bfloat16"), uniform(heads) * 200
    out = torch.zeros_like(w)
    args = w, logit, out, rows, cols, w.stride(0), 100.0, 0.5
    grid = (cdiv(rows, 16), cdiv(cols, 256))
    launched = run(tamed_projections_kernel, grid, args, out, HEAD_DIM=head_dim, PLAIN=128, BLOCK_R=16, BLOCK_C=256, num_warps=4)

    def reference():
        gamma = torch.where(logit > 100, 100 / logit, 1.0).repeat_interleave(head_dim)[:, None]
        power = torch.where(torch.arange(rows, device=w.device) % head_dim < 128, 0.5, 1.0)[:, None]
        return w.float() * gamma**power

    return against(launched, reference)


@triton.jit
def biases_of_elapsed_time_kernel(ds_ptr, seconds_ptr, offset_ptr, grad_ptr, most, heads, BUCKETS: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    # Gradients of biases that depend on how long ago something happened, by powers of two of seconds, over ragged histories.
    start_m = tl.program_id(0) * BLOCK_M
    seq = tl.program_id(1)
    head = tl.program_id(2)
    begin = tl.load(offset_ptr + seq)
    length = tl.load(offset_ptr + seq + 1) - begin
    if start_m < length:
        m = start_m + tl.arange(0, BLOCK_M)
        bucket_ids = tl.arange(0, BUCKETS)
        grad = tl.zeros((BUCKETS,), dtype=tl.float32)
        tm = tl.load(seconds_ptr + begin + m, mask=m < length, other=0)
        for start_n in range(0, tl.minimum(start_m + BLOCK_M, length), BLOCK_N):
            n = start_n + tl.arange(0, BLOCK_N)
            tn = tl.load(seconds_ptr + begin + n, mask=n < length, other=0)
            ok = (m < length)[:, None] & (n[None, :] <= m[:, None])
            passed = tl.maximum(tm[:, None] - tn[None, :], 1).to(tl.float32)
            bucket = tl.minimum((passed.to(tl.int32, bitcast=True) >> 23) - 127, BUCKETS - 1)
            ds = tl.load(ds_ptr + (begin.to(tl.int64) + m[:, None]) * heads * most + head * most + n[None, :], mask=ok, other=0.0).to(tl.float32)
            for i in range(BUCKETS):
                grad += tl.where(bucket_ids == i, tl.sum(tl.where(bucket == i, ds, 0.0)), 0.0)
        tl.atomic_add(grad_ptr + head * BUCKETS + bucket_ids, grad)


@case
def belfry_of_hours_that_have_passed(seqs=24, most=333, heads=4, buckets=16):
    counts = ints(1, most + 1, seqs)
    offset = F.pad(counts.cumsum(0), (1, 0)).int()
    total = int(offset[-1])
    ds, seconds = rand(total, heads, most), ints(1, 400, total).cumsum(0).int()
    grad = zeros(heads, buckets, dtype="float32")
    args = ds, seconds, offset, grad, most, heads
    launched = run(biases_of_elapsed_time_kernel, (cdiv(most, 32), seqs, heads), args, grad, BUCKETS=buckets, BLOCK_M=32, BLOCK_N=64, num_warps=4)

    def reference():
        result = torch.zeros(buckets, heads, device=ds.device, dtype=torch.float64)
        for b in range(seqs):
            first, last = int(offset[b]), int(offset[b + 1])
            t = seconds[first:last]
            passed = (t[:, None] - t).clamp(min=1).float()
            bucket = ((passed.view(torch.int32) >> 23) - 127).clamp(max=buckets - 1)
            on = torch.ones_like(bucket, dtype=torch.bool).tril()
            values = ds[first:last, :, : last - first].double().permute(0, 2, 1)
            result.index_add_(0, bucket[on].long(), values[on])
        return result.t().float()

    return against(cleared(launched, grad), reference)
