"""Almanacs: suns, moons and transits, calendars and seasons, tables of harmonics, mixtures and mirrored windows, and what models note down of their keys."""

import math

import torch
import torch.nn.functional as F
import triton
import triton.language as tl
from triton.language.extra import libdevice

from .common import against, arange, case, cdiv, cleared, f8, f32, far, far8, ints, rand, run, uniform, viewed, zeros


@triton.jit
def harmonics_from_latitudes_kernel(
    f_ptr, p_ptr, out_ptr, L, LAT, C, stride_fm, stride_fl, stride_pm, stride_pl, stride_om, stride_ol,
    BLOCK_L: tl.constexpr, BLOCK_C: tl.constexpr, BLOCK_LAT: tl.constexpr,
):
    # From rings of latitude to spherical harmonics of an order: a triangle of products, what lies under it is zero.
    m = tl.program_id(0)
    l = tl.program_id(1) * BLOCK_L + tl.arange(0, BLOCK_L)
    c = tl.program_id(2) * BLOCK_C + tl.arange(0, BLOCK_C)
    acc = tl.zeros((BLOCK_L, BLOCK_C), dtype=tl.float32)
    if (tl.program_id(1) + 1) * BLOCK_L > m:
        for start in range(0, LAT, BLOCK_LAT):
            lat = start + tl.arange(0, BLOCK_LAT)
            p = tl.load(p_ptr + m * stride_pm + l[:, None] * stride_pl + lat[None, :], mask=((l >= m) & (l < L))[:, None] & (lat < LAT)[None, :], other=0.0)
            f = tl.load(f_ptr + m * stride_fm + lat[:, None] * stride_fl + c[None, :], mask=(lat < LAT)[:, None] & (c < C)[None, :], other=0.0)
            acc = tl.dot(p, f, acc, input_precision="ieee")
    tl.store(out_ptr + m * stride_om + l[:, None] * stride_ol + c[None, :], acc, mask=(l < L)[:, None] & (c < C)[None, :])


@case
def almanac_of_harmonics_of_the_weather(order=170, degree=181, lat=241, channels=69):
    f, p, out = f32(order, lat, channels), f32(order, degree, lat), zeros(order, degree, channels, dtype="float32")
    args = f, p, out, degree, lat, channels, f.stride(0), f.stride(1), p.stride(0), p.stride(1), out.stride(0), out.stride(1)
    launched = run(harmonics_from_latitudes_kernel, (order, cdiv(degree, 32), cdiv(channels, 32)), args, out, BLOCK_L=32, BLOCK_C=32, BLOCK_LAT=16, num_warps=4)

    def reference():
        keep = torch.arange(degree, device=f.device) >= torch.arange(order, device=f.device)[:, None]
        return torch.bmm(p.double() * keep[..., None], f.double())

    return against(launched, reference)


@triton.jit
def profile_of_windows_kernel(x_ptr, mean_ptr, inv_ptr, best_ptr, N, M: tl.constexpr, ZONE: tl.constexpr, BLOCK_I: tl.constexpr, BLOCK_J: tl.constexpr):
    # Matrix profile: how like each window of a series is to the one most like it elsewhere; windows are loaded as they overlap.
    i = tl.program_id(0) * BLOCK_I + tl.arange(0, BLOCK_I)
    k = tl.arange(0, M)
    mask_i = i < N
    a = tl.load(x_ptr + i[:, None] + k[None, :], mask=mask_i[:, None], other=0.0)
    mean_i = tl.load(mean_ptr + i, mask=mask_i, other=0.0)
    inv_i = tl.load(inv_ptr + i, mask=mask_i, other=0.0)
    best = tl.full((BLOCK_I,), -2.0, tl.float32)
    for start in range(0, N, BLOCK_J):
        j = start + tl.arange(0, BLOCK_J)
        mask_j = j < N
        b = tl.load(x_ptr + j[None, :] + k[:, None], mask=mask_j[None, :], other=0.0)
        mean_j = tl.load(mean_ptr + j, mask=mask_j, other=0.0)
        inv_j = tl.load(inv_ptr + j, mask=mask_j, other=0.0)
        qt = tl.dot(a, b, allow_tf32=False)
        corr = (qt / M - mean_i[:, None] * mean_j[None, :]) * inv_i[:, None] * inv_j[None, :]
        far_apart = tl.abs(i[:, None] - j[None, :]) > ZONE
        corr = tl.where(far_apart & mask_j[None, :], corr, -2.0)
        best = tl.maximum(best, tl.max(corr, axis=1))
    tl.store(best_ptr + i, best, mask=mask_i)


@case
def almanac_of_days_that_came_before(points=4200, window=64):
    n = points - window + 1
    x = f32(points) + torch.sin(arange(points, "float32") / 9)
    views = x.unfold(0, window, 1)
    mean, inv = views.mean(1).contiguous(), (1 / views.std(1, unbiased=False)).contiguous()
    best = zeros(n, dtype="float32")
    launched = run(profile_of_windows_kernel, (cdiv(n, 32),), (x, mean, inv, best, n), best, M=window, ZONE=window // 4, BLOCK_I=32, BLOCK_J=64, num_warps=4)

    def reference():
        z = x.double().unfold(0, window, 1)
        z = (z - z.mean(1, keepdim=True)) / z.std(1, unbiased=False, keepdim=True) / window**0.5
        i = torch.arange(n, device=x.device)
        return (z @ z.t()).masked_fill((i[:, None] - i).abs() <= window // 4, -2).amax(1)

    return against(launched, reference)


@triton.jit
def patches_of_series_kernel(
    x_ptr, seen_ptr, w_ptr, bias_ptr, place_ptr, out_ptr, mean_ptr, std_ptr, L, stride_x, stride_o, eps,
    PATCH: tl.constexpr, STRIDE: tl.constexpr, NUM: tl.constexpr, D: tl.constexpr, BLOCK_L: tl.constexpr, BLOCK_P: tl.constexpr, BLOCK_D: tl.constexpr,
):
    # A series is normed by what was observed of it, cut into patches that overlap, and each patch is projected and told its place.
    s = tl.program_id(0)
    at = tl.arange(0, BLOCK_L)
    ok = at < L
    x = tl.load(x_ptr + s * stride_x + at, mask=ok, other=0.0)
    seen = tl.load(seen_ptr + s * stride_x + at, mask=ok, other=0).to(tl.float32)
    count = tl.maximum(tl.sum(seen, 0), 1.0)
    mean = tl.sum(x * seen, 0) / count
    diff = (x - mean) * seen
    std = tl.sqrt(tl.sum(diff * diff, 0) / count + eps)
    tl.store(mean_ptr + s, mean)
    tl.store(std_ptr + s, std)
    p = tl.arange(0, BLOCK_P)
    j = tl.arange(0, PATCH)
    place = p[:, None] * STRIDE + j[None, :]
    inside = (p < NUM)[:, None] & (place < L)
    patch = tl.load(x_ptr + s * stride_x + place, mask=inside, other=0.0)
    known = tl.load(seen_ptr + s * stride_x + place, mask=inside, other=0)
    patch = tl.where(known != 0, (patch - mean) / std, 0.0).to(w_ptr.dtype.element_ty)
    for d0 in tl.static_range(0, D, BLOCK_D):
        d = d0 + tl.arange(0, BLOCK_D)
        w = tl.load(w_ptr + j[:, None] * D + d[None, :])
        y = tl.dot(patch, w) + tl.load(bias_ptr + d).to(tl.float32)[None, :]
        y += tl.load(place_ptr + p[:, None] * D + d[None, :], mask=(p < NUM)[:, None], other=0.0).to(tl.float32)
        tl.store(out_ptr + s * stride_o + p[:, None] * D + d[None, :], y.to(out_ptr.dtype.element_ty), mask=(p < NUM)[:, None])


@case
def almanac_of_series_cut_into_patches(series=1300, length=500, patch=16, stride=8, d=256):
    num = (length - patch) // stride + 1
    x, seen = uniform(series, 1) * 20 + f32(series, length), (uniform(series, length) > 0.15).to(torch.int8)
    w, bias, place = rand(patch, d), rand(d), rand(num, d)
    out, mean, std = zeros(series, num, d), zeros(series, dtype="float32"), zeros(series, dtype="float32")
    args = x, seen, w, bias, place, out, mean, std, length, x.stride(0), out.stride(0), 1e-5
    flags = dict(PATCH=patch, STRIDE=stride, NUM=num, D=d, BLOCK_L=triton.next_power_of_2(length), BLOCK_P=triton.next_power_of_2(num), BLOCK_D=64)
    launched = run(patches_of_series_kernel, (series,), args, (out, mean, std), num_warps=4, num_stages=1, **flags)

    def reference():
        on = seen.float()
        mu = (x * on).sum(1) / on.sum(1)
        sd = (((x - mu[:, None]) * on).square().sum(1) / on.sum(1) + 1e-5).sqrt()
        z = ((x - mu[:, None]) / sd[:, None] * on).half().float().unfold(1, patch, stride)
        return z @ w.float() + bias.float() + place.float(), mu, sd

    return against(launched, reference)


@triton.jit
def shares_of_mixtures_kernel(
    x_ptr, mu_ptr, iv_ptr, const_ptr, resp_ptr, lse_ptr, N, D, stride_x, COMPONENTS: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
):
    # How much of each point belongs to each of 64 Gaussians with their own variances: two dots and a softmax.
    n = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    g = tl.arange(0, COMPONENTS)
    acc = tl.zeros((BLOCK_N, COMPONENTS), dtype=tl.float32)
    for d0 in range(0, D, BLOCK_D):
        d = d0 + tl.arange(0, BLOCK_D)
        x = tl.load(x_ptr + n[:, None] * stride_x + d[None, :], mask=(n < N)[:, None] & (d < D)[None, :], other=0.0)
        mu = tl.load(mu_ptr + g[None, :] * D + d[:, None], mask=(d < D)[:, None], other=0.0)
        iv = tl.load(iv_ptr + g[None, :] * D + d[:, None], mask=(d < D)[:, None], other=0.0)
        acc += tl.dot(x, mu * iv, input_precision="tf32x3")
        acc += tl.dot(x * x, -0.5 * iv, input_precision="tf32x3")
    logp = acc + tl.load(const_ptr + g)[None, :]
    top = tl.max(logp, 1)
    e = tl.exp(logp - top[:, None])
    total = tl.sum(e, 1)
    tl.store(resp_ptr + n[:, None] * COMPONENTS + g[None, :], e / total[:, None], mask=(n < N)[:, None])
    tl.store(lse_ptr + n, top + tl.log(total), mask=n < N)


@case
def almanac_of_shares_of_64_mixed_bells(n=90_001, d=40, components=64):
    x, mu, iv = f32(n, d), f32(components, d), uniform(components, d) + 0.3
    const = (uniform(components) + 0.1).log() + 0.5 * iv.log().sum(1) - 0.5 * (mu.square() * iv).sum(1)
    resp, lse = zeros(n, components, dtype="float32"), zeros(n, dtype="float32")
    args = x, mu, iv, const, resp, lse, n, d, x.stride(0)
    launched = run(shares_of_mixtures_kernel, (cdiv(n, 64),), args, (resp, lse), COMPONENTS=components, BLOCK_N=64, BLOCK_D=16, num_warps=4, num_stages=2)

    def reference():
        logp = x.double() @ (mu * iv).double().t() - 0.5 * x.double().square() @ iv.double().t() + const.double()
        return logp.softmax(1), logp.logsumexp(1)

    return against(launched, reference)


@triton.jit
def smooth_bytes_inner(acc, l_i, m_i, q, q_scale, K_ptrs, K_scale_ptr, V_ptrs, stride_kn, stride_vn, start_m, offs_m, offs_n, kv_len,
                       BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, STAGE: tl.constexpr):  # fmt: skip
    if STAGE == 1:
        lo, hi = 0, start_m * BLOCK_M
    else:
        lo, hi = start_m * BLOCK_M, tl.minimum((start_m + 1) * BLOCK_M, kv_len)
        K_scale_ptr += lo // BLOCK_N
        K_ptrs += stride_kn * lo
        V_ptrs += stride_vn * lo
    for start_n in range(lo, hi, BLOCK_N):
        start_n = tl.multiple_of(start_n, BLOCK_N)
        k_mask = offs_n[None, :] < (kv_len - start_n)
        k = tl.load(K_ptrs, mask=k_mask, other=0)
        k_scale = tl.load(K_scale_ptr)
        qk = tl.dot(q, k).to(tl.float32) * (q_scale * k_scale)
        if STAGE == 2:
            mask = (offs_m[:, None] >= (start_n + offs_n[None, :])) & k_mask
            qk = qk + tl.where(mask, 0, -1.0e6)
        m_ij = tl.maximum(m_i, tl.max(qk, 1))
        qk -= m_ij[:, None]
        p = tl.math.exp2(qk)
        l_ij = tl.sum(p, 1)
        alpha = tl.math.exp2(m_i - m_ij)
        l_i = l_i * alpha + l_ij
        acc = acc * alpha[:, None]
        v = tl.load(V_ptrs, mask=offs_n[:, None] < (kv_len - start_n), other=0.0)
        acc += tl.dot(p.to(tl.float16), v, out_dtype=tl.float32)
        m_i = m_ij
        K_ptrs += BLOCK_N * stride_kn
        K_scale_ptr += 1
        V_ptrs += BLOCK_N * stride_vn
    return acc, l_i, m_i


@triton.jit
def smooth_bytes_attention_kernel(
    Q, K, V, Q_scale, K_scale, Out, stride_qz, stride_qh, stride_qn, stride_kz, stride_kh, stride_kn, qo_len, kv_len,
    H: tl.constexpr, num_kv_groups: tl.constexpr, HEAD_DIM: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):
    # Causal attention whose queries and keys are bytes with a scale a block, and whose values are halves; scales hold log2(e).
    start_m = tl.program_id(0)
    off_z = tl.program_id(2).to(tl.int64)
    off_h = tl.program_id(1).to(tl.int64)
    q_scale_offset = (off_z * H + off_h) * tl.cdiv(qo_len, BLOCK_M)
    k_scale_offset = (off_z * (H // num_kv_groups) + off_h // num_kv_groups) * tl.cdiv(kv_len, BLOCK_N)
    offs_m = start_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = tl.arange(0, BLOCK_N)
    offs_k = tl.arange(0, HEAD_DIM)
    Q_ptrs = Q + off_z * stride_qz + off_h * stride_qh + offs_m[:, None] * stride_qn + offs_k[None, :]
    K_ptrs = K + off_z * stride_kz + (off_h // num_kv_groups) * stride_kh + offs_n[None, :] * stride_kn + offs_k[:, None]
    V_ptrs = V + off_z * stride_kz + (off_h // num_kv_groups) * stride_kh + offs_n[:, None] * stride_kn + offs_k[None, :]
    O_ptrs = Out + off_z * stride_qz + off_h * stride_qh + offs_m[:, None] * stride_qn + offs_k[None, :]
    m_i = tl.zeros([BLOCK_M], dtype=tl.float32) - float("inf")
    l_i = tl.zeros([BLOCK_M], dtype=tl.float32) + 1.0
    acc = tl.zeros([BLOCK_M, HEAD_DIM], dtype=tl.float32)
    q = tl.load(Q_ptrs, mask=offs_m[:, None] < qo_len, other=0)
    q_scale = tl.load(Q_scale + q_scale_offset + start_m)
    acc, l_i, m_i = smooth_bytes_inner(acc, l_i, m_i, q, q_scale, K_ptrs, K_scale + k_scale_offset, V_ptrs, stride_kn, stride_kn,
                                       start_m, offs_m, offs_n, kv_len, BLOCK_M, BLOCK_N, 1)  # fmt: skip
    acc, l_i, m_i = smooth_bytes_inner(acc, l_i, m_i, q, q_scale, K_ptrs, K_scale + k_scale_offset, V_ptrs, stride_kn, stride_kn,
                                       start_m, offs_m, offs_n, kv_len, BLOCK_M, BLOCK_N, 2)  # fmt: skip
    acc = acc / l_i[:, None]
    tl.store(O_ptrs, acc.to(Out.type.element_ty), mask=offs_m[:, None] < qo_len)


@case
def almanac_of_keys_smoothed_to_bytes(b=2, h=16, hk=4, t=1900, d=64):
    q, k, v = ints(-127, 128, b, h, t, d, dtype="int8"), ints(-127, 128, b, hk, t, d, dtype="int8"), rand(b, hk, t, d)
    qs, ks = uniform(b, h, cdiv(t, 128)) / 4096 + 1e-5, uniform(b, hk, cdiv(t, 64)) / 8 + 0.01
    out = zeros(b, h, t, d)
    args = q, k, v, qs, ks, out, *q.stride()[:3], *k.stride()[:3], t, t
    flags = dict(H=h, num_kv_groups=h // hk, HEAD_DIM=d, BLOCK_M=128, BLOCK_N=64)
    launched = run(smooth_bytes_attention_kernel, (cdiv(t, 128), h, b), args, out, num_warps=4, num_stages=3, **flags)

    def reference():
        x = q.float() * qs.repeat_interleave(128, 2)[:, :, :t, None]
        y = (k.float() * ks.repeat_interleave(64, 2)[:, :, :t, None]).repeat_interleave(h // hk, 1)
        s = x @ y.transpose(2, 3) * math.log(2)
        s = s.masked_fill(torch.ones(t, t, dtype=torch.bool, device=q.device).triu(1), float("-inf"))
        p = s.softmax(3)
        # The sum starts at one where the maximum is minus infinity, which the first block takes away.
        return p @ v.float().repeat_interleave(h // hk, 1)

    return against(launched, reference)


@triton.jit
def tiles_of_film_dkdv_kernel(
    q_ptr, k_ptr, v_ptr, do_ptr, lse_ptr, delta_ptr, index_ptr, count_ptr, dk_ptr, dv_ptr, scale, T, MOST,
    D: tl.constexpr, BLOCK: tl.constexpr,
):
    # Gradients of keys and values of a block of a film, from the blocks of queries that have chosen it, by a list turned around.
    block = tl.program_id(0)
    head = tl.program_id(1)
    base = head.to(tl.int64) * T * D
    r = tl.arange(0, BLOCK)
    d = tl.arange(0, D)
    n = block * BLOCK + r
    k = tl.load(k_ptr + base + n[:, None] * D + d[None, :])
    v = tl.load(v_ptr + base + n[:, None] * D + d[None, :])
    dk = tl.zeros((BLOCK, D), dtype=tl.float32)
    dv = tl.zeros((BLOCK, D), dtype=tl.float32)
    row = head * (T // BLOCK) + block
    count = tl.load(count_ptr + row)
    for i in range(count):
        m = tl.load(index_ptr + row * MOST + i) * BLOCK + r
        q = tl.load(q_ptr + base + m[:, None] * D + d[None, :])
        do = tl.load(do_ptr + base + m[:, None] * D + d[None, :])
        lse = tl.load(lse_ptr + head * T + m)
        delta = tl.load(delta_ptr + head * T + m)
        pt = tl.math.exp2(tl.dot(k, tl.trans(q)) * (scale * 1.44269504) - lse[None, :] * 1.44269504)
        dv += tl.dot(pt.to(do.dtype), do)
        dpt = tl.dot(v, tl.trans(do))
        dst = pt * (dpt - delta[None, :])
        dk += tl.dot(dst.to(q.dtype), q)
    tl.store(dk_ptr + base + n[:, None] * D + d[None, :], (dk * scale).to(dk_ptr.dtype.element_ty))
    tl.store(dv_ptr + base + n[:, None] * D + d[None, :], dv.to(dv_ptr.dtype.element_ty))


@case
def almanac_of_tiles_of_film_that_were_chosen(heads=10, blocks=45, d=128, share=0.3):
    t, block = blocks * 64, 64
    q, k, v, do = (rand(heads, t, d, dtype="bfloat16") for _ in range(4))
    lse, delta = uniform(heads, t) + 4, f32(heads, t)
    chosen = uniform(heads, blocks, blocks) < share
    count = chosen.sum(1).to(torch.int32)
    index = torch.argsort(chosen.transpose(1, 2).int(), dim=2, descending=True, stable=True).to(torch.int32).contiguous()
    dk, dv = zeros(heads, t, d, dtype="bfloat16"), zeros(heads, t, d, dtype="bfloat16")
    args = q, k, v, do, lse, delta, index, count, dk, dv, d**-0.5, t, blocks
    launched = run(tiles_of_film_dkdv_kernel, (blocks, heads), args, (dk, dv), D=d, BLOCK=block, num_warps=4, num_stages=2)

    def reference():
        on = chosen.repeat_interleave(block, 1).repeat_interleave(block, 2)
        s = q.float() @ k.float().transpose(1, 2) * d**-0.5
        p = (s - lse[..., None]).exp() * on
        ds = p * (do.float() @ v.float().transpose(1, 2) - delta[..., None]) * d**-0.5
        return ds.transpose(1, 2) @ q.float(), p.transpose(1, 2) @ do.float()

    return against(launched, reference)


@triton.jit
def delayed_scaling_kernel(
    a_ptr, b_ptr, c_ptr, bias_ptr, scale_inv_a, scale_inv_b, scale_c, amax_ptr, M, N, K, stride_am, stride_bn, stride_cm,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr, GELU: tl.constexpr,
):
    # FP8 by FP8 to FP8 with scales of earlier steps; the largest that came out is left for the next one.
    pid = tl.program_id(0)
    grid_m = tl.cdiv(M, BLOCK_M)
    grid_n = tl.cdiv(N, BLOCK_N)
    width = GROUP_M * grid_n
    group_id = pid // width
    group_size = min(grid_m - group_id * GROUP_M, GROUP_M)
    pid_m = group_id * GROUP_M + (pid % group_size)
    pid_n = (pid % width) // group_size
    rm = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    rn = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    rk = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + (rm % M)[:, None] * stride_am + rk[None, :]
    b_ptrs = b_ptr + (rn % N)[None, :] * stride_bn + rk[:, None]
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        a = tl.load(a_ptrs, mask=(rk < K - k)[None, :], other=0.0)
        b = tl.load(b_ptrs, mask=(rk < K - k)[:, None], other=0.0)
        acc = tl.dot(a, b, acc)
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K
    y = acc * (tl.load(scale_inv_a) * tl.load(scale_inv_b))
    y += tl.load(bias_ptr + rn, mask=rn < N, other=0.0).to(tl.float32)[None, :]
    if GELU:
        y = y * tl.sigmoid(1.702 * y)
    ok = (rm < M)[:, None] & (rn < N)[None, :]
    tl.atomic_max(amax_ptr, tl.max(tl.max(tl.where(ok, tl.abs(y), 0.0), 1), 0))
    y = tl.minimum(tl.maximum(y * tl.load(scale_c), -448.0), 448.0)
    tl.store(c_ptr + rm[:, None] * stride_cm + rn[None, :], y.to(c_ptr.dtype.element_ty), mask=ok)


@case
def almanac_of_scales_of_the_steps_before(m=2000, n=3000, k=2064):
    a, b, bias = f8(m, k), f8(n, k), rand(n, dtype="bfloat16")
    scale_a, scale_b, scale_c = (torch.full((1,), value, device="cuda") for value in (0.1, 0.2, 11.0))
    c, amax = zeros(m, n).to(torch.float8_e4m3fn), zeros(1, dtype="float32")
    args = a, b, c, bias, scale_a, scale_b, scale_c, amax, m, n, k, a.stride(0), b.stride(0), c.stride(0)
    flags = dict(BLOCK_M=128, BLOCK_N=128, BLOCK_K=64, GROUP_M=8, GELU=True)
    launched = run(delayed_scaling_kernel, (cdiv(m, 128) * cdiv(n, 128),), args, (c, amax), num_warps=8, num_stages=3, **flags)

    def reference():
        y = a.float() @ b.float().t() * (scale_a * scale_b) + bias.float()
        y = y * torch.sigmoid(1.702 * y)
        return far8((y * 11).clamp(-448, 448).to(torch.float8_e4m3fn)), y.abs().amax().reshape(1)

    return against(viewed(cleared(launched, amax), lambda outs: (far8(outs[0]), outs[1])), reference)


@triton.jit
def learning_at_test_time_kernel(
    q_ptr, k_ptr, v_ptr, eta_ptr, w0_ptr, o_ptr, w_ptr, T, stride_h, D: tl.constexpr, BT: tl.constexpr,
):
    # A layer of weights that learns while it reads: each small batch descends on how it maps keys to values; queries see it in between.
    head = tl.program_id(0)
    i = tl.arange(0, BT)
    d = tl.arange(0, D)
    square = d[:, None] * D + d[None, :]
    w = tl.load(w0_ptr + head * D * D + square)
    q_ptr += head.to(tl.int64) * stride_h
    k_ptr += head.to(tl.int64) * stride_h
    v_ptr += head.to(tl.int64) * stride_h
    o_ptr += head.to(tl.int64) * stride_h
    for start in range(0, T, BT):
        t = start + i
        ok = (t < T)[:, None]
        at = t[:, None] * D + d[None, :]
        q = tl.load(q_ptr + at, mask=ok, other=0.0)
        k = tl.load(k_ptr + at, mask=ok, other=0.0)
        v = tl.load(v_ptr + at, mask=ok, other=0.0)
        eta = tl.load(eta_ptr + head * T + t, mask=t < T, other=0.0)
        w_low = w.to(k.dtype)
        grad = (tl.dot(k, w_low) - v.to(tl.float32)) * eta[:, None]
        grad = grad.to(k.dtype)
        seen = tl.where(i[:, None] >= i[None, :], tl.dot(q, tl.trans(k)), 0.0)
        o = tl.dot(q, w_low) - tl.dot(seen.to(k.dtype), grad)
        w -= tl.dot(tl.trans(k), grad)
        mean = tl.sum(o, 1) / D
        o = o - mean[:, None]
        o = o * tl.rsqrt(tl.sum(o * o, 1) / D + 1e-5)[:, None] + q.to(tl.float32)
        tl.store(o_ptr + at, o.to(o_ptr.dtype.element_ty), mask=ok)
    tl.store(w_ptr + head * D * D + square, w)


@case
def almanac_whose_weights_learn_as_it_is_read(heads=160, t=1000, d=64):
    q, k = (F.normalize(f32(heads, t, d), dim=2).to(torch.bfloat16) for _ in range(2))
    v, eta, w0 = rand(heads, t, d, dtype="bfloat16"), uniform(heads, t) / 4, f32(heads, d, d) / 8
    out, w = zeros(heads, t, d, dtype="bfloat16"), zeros(heads, d, d, dtype="float32")
    args = q, k, v, eta, w0, out, w, t, q.stride(0)
    launched = run(learning_at_test_time_kernel, (heads,), args, (out, w), D=d, BT=16, num_warps=4, num_stages=2)

    def reference():
        state, outs = w0.clone(), []
        for a in range(0, t, 16):
            x, y, z, e = (part[:, a : a + 16].float() for part in (q, k, v, eta))
            low = state.to(torch.bfloat16).float()
            grad = ((y @ low - z) * e[..., None]).to(torch.bfloat16).float()
            o = x @ low - (x @ y.transpose(1, 2)).tril().to(torch.bfloat16).float() @ grad
            state = state - y.transpose(1, 2) @ grad
            outs.append(F.layer_norm(o, (d,)) + x)
        return torch.cat(outs, 1), state

    return against(launched, reference)


@triton.jit
def votes_of_a_window_kernel(
    q_ptr, k_ptr, lse_ptr, score_ptr, scale, T, stride_qb, stride_qh, stride_kb, stride_kh, stride_kt,
    GROUP: tl.constexpr, WINDOW: tl.constexpr, D: tl.constexpr, BLOCK_N: tl.constexpr,
):
    # What share of attention each key had from the last queries of all heads that share it.
    n = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    kv_head = tl.program_id(1)
    b = tl.program_id(2)
    r = tl.arange(0, GROUP * WINDOW)
    d = tl.arange(0, D)
    head = kv_head * GROUP + r // WINDOW
    w = r % WINDOW
    q = tl.load(q_ptr + b * stride_qb + head[:, None] * stride_qh + w[:, None] * D + d[None, :])
    lse = tl.load(lse_ptr + (b * tl.num_programs(1) * GROUP + head) * WINDOW + w)
    k = tl.load(k_ptr + b * stride_kb + kv_head * stride_kh + n[None, :] * stride_kt + d[:, None], mask=(n < T)[None, :], other=0.0)
    s = tl.dot(q, k) * scale
    place = T - WINDOW + w
    p = tl.where((n[None, :] <= place[:, None]) & (n < T)[None, :], tl.exp(s - lse[:, None]), 0.0)
    tl.store(score_ptr + (b * tl.num_programs(1) + kv_head) * T + n, tl.sum(p, 0), mask=n < T)


@triton.jit
def votes_of_neighbors_kernel(score_ptr, pooled_ptr, T, WINDOW: tl.constexpr, KERNEL: tl.constexpr, BLOCK: tl.constexpr):
    # The best of seven neighbors; what is in the window itself is always kept.
    row = tl.program_id(1)
    n = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    best = tl.zeros((BLOCK,), dtype=tl.float32)
    for i in tl.static_range(KERNEL):
        at = n + i - KERNEL // 2
        best = tl.maximum(best, tl.load(score_ptr + row * T + at, mask=(at >= 0) & (at < T - WINDOW), other=0.0))
    best = tl.where(n >= T - WINDOW, 100.0, best)
    tl.store(pooled_ptr + row * T + n, best, mask=n < T)


@case
def almanac_of_keys_that_the_last_queries_vote_for(b=4, hk=8, group=4, t=6001, window=32, d=128):
    q, k = rand(b, hk * group, window, d, dtype="bfloat16"), rand(b, t, hk, d, dtype="bfloat16")
    lse, score, pooled = uniform(b, hk * group, window) + 7, zeros(b, hk, t, dtype="float32"), zeros(b, hk, t, dtype="float32")

    def launch(q, k, lse, score, pooled):
        votes_of_a_window_kernel[(cdiv(t, 64), hk, b)](
            q, k, lse, score, d**-0.5, t, q.stride(0), q.stride(1), k.stride(0), k.stride(2), k.stride(1),
            GROUP=group, WINDOW=window, D=d, BLOCK_N=64, num_warps=4, num_stages=1,
        )  # fmt: skip
        votes_of_neighbors_kernel[(cdiv(t, 1024), b * hk)](score, pooled, t, WINDOW=window, KERNEL=7, BLOCK=1024, num_warps=4)
        return score, pooled

    def reference():
        s = torch.einsum("bgrwd,bngd->bgrwn", q.float().reshape(b, hk, group, window, d), k.float()) * d**-0.5
        p = (s - lse.reshape(b, hk, group, window, 1)).exp().tril(t - window).sum((2, 3))
        best = F.max_pool1d(p[..., : t - window], 7, 1, 3)
        return p, torch.cat((F.pad(best, (0, 0)), torch.full((b, hk, window), 100.0, device=p.device)), 2)

    return against((launch, (q, k, lse, score, pooled)), reference)


@triton.jit
def rotated_to_four_bits_kernel(
    k_ptr, had_ptr, slot_ptr, code_ptr, scale_ptr, zero_ptr, T, H: tl.constexpr, D: tl.constexpr, GROUP: tl.constexpr, BLOCK_T: tl.constexpr,
):
    # New keys are rotated by a Hadamard matrix, cut to four bits by groups of 32 channels with the least as zero, and packed to their slots.
    t = tl.program_id(0) * BLOCK_T + tl.arange(0, BLOCK_T)
    h = tl.program_id(1)
    d = tl.arange(0, D)
    slot = tl.load(slot_ptr + t, mask=t < T, other=-1)
    ok = slot >= 0
    k = tl.load(k_ptr + (t[:, None] * H + h) * D + d[None, :], mask=(t < T)[:, None], other=0.0)
    had = tl.load(had_ptr + d[:, None] * D + d[None, :])
    y = tl.dot(k, had) * 0.08838834764831845
    y = tl.reshape(y, (BLOCK_T, D // GROUP, GROUP))
    low = tl.min(y, 2)
    high = tl.max(y, 2)
    scale = tl.maximum((high - low) / 15.0, 1e-5)
    code = tl.floor((y - low[:, :, None]) / scale[:, :, None] + 0.5)
    code = tl.minimum(tl.maximum(code, 0.0), 15.0).to(tl.uint8)
    even, odd = tl.split(tl.reshape(code, (BLOCK_T, D // 2, 2)))
    byte = even | (odd << 4)
    at = slot[:, None] * H + h
    c = tl.arange(0, D // 2)
    tl.store(code_ptr + at * (D // 2) + c[None, :], byte, mask=ok[:, None])
    g = tl.arange(0, D // GROUP)
    tl.store(scale_ptr + at * (D // GROUP) + g[None, :], scale.to(scale_ptr.dtype.element_ty), mask=ok[:, None])
    tl.store(zero_ptr + at * (D // GROUP) + g[None, :], low.to(zero_ptr.dtype.element_ty), mask=ok[:, None])


@case
def almanac_of_keys_rotated_to_four_bits(t=5000, h=8, d=128, slots=8000):
    k = rand(t, h, d, dtype="bfloat16")
    had = torch.ones(1, 1, device="cuda")
    while had.shape[0] < d:
        had = torch.cat((torch.cat((had, had), 1), torch.cat((had, -had), 1)))
    had = had.to(torch.bfloat16).contiguous()
    slot = torch.randperm(slots, device="cuda")[:t]
    slot[::17] = -1
    code, scale, zero = zeros(slots, h, d // 2, dtype="uint8"), zeros(slots, h, d // 32), zeros(slots, h, d // 32)
    launched = run(rotated_to_four_bits_kernel, (cdiv(t, 32), h), (k, had, slot, code, scale, zero, t), (code, scale, zero), H=h, D=d, GROUP=32, BLOCK_T=32, num_warps=4)

    def unpacked(outs):
        bytes_, a, b = outs
        return far(torch.stack((bytes_ & 15, bytes_ >> 4), 3)), a, b

    def reference():
        y = (k.float() @ had.float() / d**0.5).reshape(t, h, d // 32, 32)
        low = y.amin(3)
        s = ((y.amax(3) - low) / 15).clamp(min=1e-5)
        codes = torch.floor((y - low[..., None]) / s[..., None] + 0.5).clamp(0, 15).reshape(t, h, d // 2, 2)
        live = slot >= 0
        results = []
        for part in (codes, s, low):
            whole = torch.zeros(slots, *part.shape[1:], device=k.device)
            whole[slot[live]] = part[live]
            results.append(whole)
        return far(results[0]), results[1], results[2]

    return against(viewed(launched, unpacked), reference)


@triton.jit
def stiffness_of_bricks_kernel(xyz_ptr, dn_ptr, weight_ptr, lam_ptr, mu_ptr, ke_ptr, E, GAUSS: tl.constexpr):
    # Stiffness of a brick of eight nodes: gradients at eight points from its corners, then all pairs of nodes and axes in a tile of four axes.
    e = tl.program_id(0)
    a = tl.arange(0, 8)
    i = tl.arange(0, 4)
    x = tl.load(xyz_ptr + (e * 8 + a) * 3)
    y = tl.load(xyz_ptr + (e * 8 + a) * 3 + 1)
    z = tl.load(xyz_ptr + (e * 8 + a) * 3 + 2)
    lam = tl.load(lam_ptr + e)
    mu = tl.load(mu_ptr + e)
    same = (i[:, None] == i[None, :]).to(tl.float32)
    ke = tl.zeros((8, 8, 4, 4), dtype=tl.float32)
    for p in range(GAUSS):
        d0 = tl.load(dn_ptr + (p * 3 + 0) * 8 + a)
        d1 = tl.load(dn_ptr + (p * 3 + 1) * 8 + a)
        d2 = tl.load(dn_ptr + (p * 3 + 2) * 8 + a)
        j00 = tl.sum(d0 * x, 0)
        j01 = tl.sum(d0 * y, 0)
        j02 = tl.sum(d0 * z, 0)
        j10 = tl.sum(d1 * x, 0)
        j11 = tl.sum(d1 * y, 0)
        j12 = tl.sum(d1 * z, 0)
        j20 = tl.sum(d2 * x, 0)
        j21 = tl.sum(d2 * y, 0)
        j22 = tl.sum(d2 * z, 0)
        c00 = j11 * j22 - j12 * j21
        c01 = j12 * j20 - j10 * j22
        c02 = j10 * j21 - j11 * j20
        det = j00 * c00 + j01 * c01 + j02 * c02
        inv = 1.0 / det
        gx = (c00 * d0 + (j02 * j21 - j01 * j22) * d1 + (j01 * j12 - j02 * j11) * d2) * inv
        gy = (c01 * d0 + (j00 * j22 - j02 * j20) * d1 + (j02 * j10 - j00 * j12) * d2) * inv
        gz = (c02 * d0 + (j01 * j20 - j00 * j21) * d1 + (j00 * j11 - j01 * j10) * d2) * inv
        g = tl.where(i[None, :] == 0, gx[:, None], tl.where(i[None, :] == 1, gy[:, None], tl.where(i[None, :] == 2, gz[:, None], 0.0)))
        dots = tl.sum(g[:, None, :] * g[None, :, :], 2)
        first = g[:, None, :, None] * g[None, :, None, :]
        second = g[:, None, None, :] * g[None, :, :, None]
        ke += (lam * first + mu * (second + dots[:, :, None, None] * same[None, None, :, :])) * (det * tl.load(weight_ptr + p))
    row = a[:, None, None, None] * 3 + i[None, None, :, None]
    col = a[None, :, None, None] * 3 + i[None, None, None, :]
    ok = (i < 3)[None, None, :, None] & (i < 3)[None, None, None, :]
    tl.store(ke_ptr + e.to(tl.int64) * 576 + row * 24 + col, ke, mask=ok & (row >= 0) & (col >= 0))


@case
def almanac_of_bricks_and_how_stiff_they_are(elements=9001):
    corners = torch.tensor([[-1, -1, -1], [1, -1, -1], [1, 1, -1], [-1, 1, -1], [-1, -1, 1], [1, -1, 1], [1, 1, 1], [-1, 1, 1]], dtype=torch.float32, device="cuda")
    points = corners / 3**0.5
    f = 1 + points[:, None, :] * corners[None]
    dn = torch.stack([corners[None, :, i] * f[..., (i + 1) % 3] * f[..., (i + 2) % 3] / 8 for i in range(3)], 1).contiguous()
    xyz = corners[None] + (uniform(elements, 8, 3) - 0.5) / 3
    weight, lam, mu = uniform(8) / 4 + 0.9, uniform(elements) + 0.5, uniform(elements) + 0.5
    ke = zeros(elements, 24, 24, dtype="float32")
    launched = run(stiffness_of_bricks_kernel, (elements,), (xyz, dn, weight, lam, mu, ke, elements), ke, GAUSS=8, num_warps=2)

    def reference():
        j = torch.einsum("pka,eai->epki", dn.double(), xyz.double())
        g = torch.einsum("epik,pka->epai", torch.linalg.inv(j), dn.double())
        w = torch.linalg.det(j) * weight.double()
        first = torch.einsum("epai,epbj,ep->eaibj", g, g, w)
        second = torch.einsum("epaj,epbi,ep->eaibj", g, g, w)
        third = torch.einsum("epak,epbk,ep,ij->eaibj", g, g, w, torch.eye(3, device=g.device, dtype=g.dtype))
        z = lam.double()[:, None, None, None, None] * first + mu.double()[:, None, None, None, None] * (second + third)
        return z.reshape(elements, 24, 24)

    return against(launched, reference)


@triton.jit
def floor_div(a, b: tl.constexpr):
    q = a // b
    return tl.where(q * b > a, q - 1, q)


@triton.jit
def weeks_of_instants_kernel(us_ptr, year_ptr, week_ptr, day_ptr, n, BLOCK: tl.constexpr):
    # Year, week and weekday by ISO 8601 of microseconds since 1970, before it too.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    us = tl.load(us_ptr + i, mask=mask, other=0)
    days = floor_div(us, 86400000000)
    weekday = days + 3 - floor_div(days + 3, 7) * 7
    # The Thursday of a week decides to which year it belongs.
    z = days - weekday + 3 + 719468
    era = floor_div(z, 146097)
    doe = z - era * 146097
    yoe = (doe - doe // 1460 + doe // 36524 - doe // 146096) // 365
    doy = doe - (365 * yoe + yoe // 4 - yoe // 100)
    year = yoe + era * 400
    # Years begin in March here.
    after = doy >= 306
    year = tl.where(after, year + 1, year)
    leap = ((year % 4 == 0) & (year % 100 != 0)) | (year % 400 == 0)
    day_of_year = tl.where(after, doy - 306, doy + 59 + tl.where(leap, 1, 0))
    tl.store(year_ptr + i, year.to(tl.int32), mask=mask)
    tl.store(week_ptr + i, (day_of_year // 7 + 1).to(tl.int8), mask=mask)
    tl.store(day_ptr + i, (weekday + 1).to(tl.int8), mask=mask)


@case
def almanac_of_weeks_and_the_years_they_belong_to(n=2_000_001):
    us = torch.randint(-(2**52), 2**52, (n,), device="cuda", dtype=torch.int64)
    year, week, day = zeros(n, dtype="int32"), zeros(n, dtype="int8"), zeros(n, dtype="int8")
    launched = run(weeks_of_instants_kernel, (cdiv(n, 512),), (us, year, week, day, n), (year, week, day), BLOCK=512, num_warps=4)

    def reference():
        days = torch.div(us, 86400000000, rounding_mode="floor")
        weekday = (days + 3) % 7
        thursday = days - weekday + 3

        def first(y):
            y = y - 1
            return y * 365 + torch.div(y, 4, rounding_mode="floor") - torch.div(y, 100, rounding_mode="floor") + torch.div(y, 400, rounding_mode="floor") - 719162

        y = torch.floor(thursday.double() / 365.2425).long() + 1970
        y = torch.where(first(y) > thursday, y - 1, y)
        y = torch.where(first(y + 1) <= thursday, y + 1, y)
        return y.to(torch.int32), ((thursday - first(y)) // 7 + 1).to(torch.int8), (weekday + 1).to(torch.int8)

    return against(launched, reference)


@triton.jit
def sunrise_kernel(day_ptr, lat_ptr, lon_ptr, rise_ptr, length_ptr, places, BLOCK: tl.constexpr):
    # Minutes of sunrise and the length of the day at places, with refraction; where the sun stays up or down the day is full or nothing.
    day = tl.load(day_ptr + tl.program_id(1)).to(tl.float64)
    p = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = p < places
    rad: tl.constexpr = 0.017453292519943295
    lat = tl.load(lat_ptr + p, mask=mask, other=0.0)
    lon = tl.load(lon_ptr + p, mask=mask, other=0.0)
    t = (day - 2451545.0) / 36525.0
    l0 = 280.46646 + t * (36000.76983 + t * 0.0003032)
    l0 = (l0 - tl.floor(l0 / 360.0) * 360.0) * rad
    m = (357.52911 + t * (35999.05029 - 0.0001537 * t)) * rad
    ecc = 0.016708634 - t * (0.000042037 + 0.0000001267 * t)
    center = tl.sin(m) * (1.914602 - t * (0.004817 + 0.000014 * t)) + tl.sin(2.0 * m) * (0.019993 - 0.000101 * t) + tl.sin(3.0 * m) * 0.000289
    omega = (125.04 - 1934.136 * t) * rad
    lam = l0 + (center - 0.00569 - 0.00478 * tl.sin(omega)) * rad
    eps = (23.439291 - t * 0.0130042 + 0.00256 * tl.cos(omega)) * rad
    sin_dec = tl.sin(eps) * tl.sin(lam)
    cos_dec = tl.sqrt(1.0 - sin_dec * sin_dec)
    half = tl.sin(eps / 2.0) / tl.cos(eps / 2.0)
    y = half * half
    eq = y * tl.sin(2.0 * l0) - 2.0 * ecc * tl.sin(m) + 4.0 * ecc * y * tl.sin(m) * tl.cos(2.0 * l0)
    eq = 4.0 / rad * (eq - 0.5 * y * y * tl.sin(4.0 * l0) - 1.25 * ecc * ecc * tl.sin(2.0 * m))
    c = (-0.014538080 - tl.sin(lat * rad) * sin_dec) / (tl.cos(lat * rad) * cos_dec)
    angle = libdevice.acos(tl.minimum(tl.maximum(c, -1.0), 1.0)) / rad
    rise = 720.0 - 4.0 * (lon + angle) - eq
    tl.store(rise_ptr + tl.program_id(1) * places + p, rise.to(tl.float32), mask=mask)
    tl.store(length_ptr + tl.program_id(1) * places + p, (8.0 * angle).to(tl.float32), mask=mask)


@case
def almanac_of_sunrises(days=365, places=1500):
    day = arange(days, "float64") + 2460676.0
    lat = torch.rand(places, device="cuda", dtype=torch.float64) * 170 - 85
    lon = torch.rand(places, device="cuda", dtype=torch.float64) * 360 - 180
    rise, length = zeros(days, places, dtype="float32"), zeros(days, places, dtype="float32")
    launched = run(sunrise_kernel, (cdiv(places, 256), days), (day, lat, lon, rise, length, places), (rise, length), BLOCK=256, num_warps=4)

    def reference():
        rad = math.pi / 180
        t = ((day - 2451545) / 36525)[:, None]
        l0 = (280.46646 + t * (36000.76983 + t * 0.0003032)) % 360 * rad
        m = (357.52911 + t * (35999.05029 - 0.0001537 * t)) * rad
        ecc = 0.016708634 - t * (0.000042037 + 0.0000001267 * t)
        center = m.sin() * (1.914602 - t * (0.004817 + 0.000014 * t)) + (2 * m).sin() * (0.019993 - 0.000101 * t) + (3 * m).sin() * 0.000289
        omega = (125.04 - 1934.136 * t) * rad
        lam = l0 + (center - 0.00569 - 0.00478 * omega.sin()) * rad
        eps = (23.439291 - t * 0.0130042 + 0.00256 * omega.cos()) * rad
        dec = (eps.sin() * lam.sin()).asin()
        y = (eps / 2).tan() ** 2
        eq = y * (2 * l0).sin() - 2 * ecc * m.sin() + 4 * ecc * y * m.sin() * (2 * l0).cos() - 0.5 * y * y * (4 * l0).sin() - 1.25 * ecc**2 * (2 * m).sin()
        c = (-0.014538080 - (lat * rad).sin() * dec.sin()) / ((lat * rad).cos() * dec.cos())
        angle = c.clamp(-1, 1).acos() / rad
        return 720 - 4 * (lon + angle) - 4 / rad * eq, 8 * angle

    return against(launched, reference)


@triton.jit
def moon_by_terms_kernel(t_ptr, args_ptr, amp_ptr, lon_ptr, dist_ptr, n, TERMS: tl.constexpr, BLOCK: tl.constexpr):
    # Longitude and distance of the moon as sums of periodic terms: angles in doubles, their sines and cosines in floats.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    t = tl.load(t_ptr + i, mask=mask, other=0.0)
    mean = 218.3164477 + 481267.88123421 * t - 0.0015786 * t * t
    d = 297.8501921 + 445267.1114034 * t - 0.0018819 * t * t
    m = 357.5291092 + 35999.0502909 * t - 0.0001536 * t * t
    mp = 134.9633964 + 477198.8675055 * t + 0.0087414 * t * t
    f = 93.2720950 + 483202.0175233 * t - 0.0036539 * t * t
    ecc = (1.0 - 0.002516 * t - 0.0000074 * t * t).to(tl.float32)
    lon = tl.zeros((BLOCK,), dtype=tl.float32)
    dist = tl.zeros((BLOCK,), dtype=tl.float32)
    for k in range(TERMS):
        kd = tl.load(args_ptr + k * 4)
        km = tl.load(args_ptr + k * 4 + 1)
        kp = tl.load(args_ptr + k * 4 + 2)
        kf = tl.load(args_ptr + k * 4 + 3)
        angle = kd * d + km * m + kp * mp + kf * f
        turn = (angle - tl.floor(angle / 360.0) * 360.0).to(tl.float32) * 0.017453292519943295
        scale = tl.where(km == 0, 1.0, tl.where((km == 1) | (km == -1), ecc, ecc * ecc))
        lon += tl.load(amp_ptr + k * 2) * scale * tl.sin(turn)
        dist += tl.load(amp_ptr + k * 2 + 1) * scale * tl.cos(turn)
    mean = mean - tl.floor(mean / 360.0) * 360.0
    tl.store(lon_ptr + i, mean + lon.to(tl.float64) * 1e-6, mask=mask)
    tl.store(dist_ptr + i, 385000.56 + dist * 0.001, mask=mask)


@case
def almanac_of_the_moon_by_60_terms(n=200_001, terms=60):
    t = torch.rand(n, device="cuda", dtype=torch.float64) * 2 - 1
    multiples = torch.stack((ints(0, 5, terms), ints(-2, 3, terms), ints(-4, 5, terms), ints(-2, 3, terms)), 1).contiguous()
    amp = f32(terms, 2) * 1e5 / (arange(terms, "float32")[:, None] + 1)
    lon, dist = zeros(n, dtype="float64"), zeros(n, dtype="float32")
    launched = run(moon_by_terms_kernel, (cdiv(n, 256),), (t, multiples, amp, lon, dist, n), (lon, dist), TERMS=terms, BLOCK=256, num_warps=4)

    def reference():
        base = torch.stack((
            297.8501921 + 445267.1114034 * t - 0.0018819 * t * t,
            357.5291092 + 35999.0502909 * t - 0.0001536 * t * t,
            134.9633964 + 477198.8675055 * t + 0.0087414 * t * t,
            93.2720950 + 483202.0175233 * t - 0.0036539 * t * t,
        ))  # fmt: skip
        angle = (multiples.double() @ base) % 360 * (math.pi / 180)
        ecc = 1 - 0.002516 * t - 0.0000074 * t * t
        scale = ecc[None, :] ** multiples[:, 1:2].abs()
        mean = (218.3164477 + 481267.88123421 * t - 0.0015786 * t * t) % 360
        return mean + (amp[:, :1] * scale * angle.sin()).sum(0) * 1e-6, 385000.56 + (amp[:, 1:] * scale * angle.cos()).sum(0) * 0.001

    return against(launched, reference)


@triton.jit
def periods_of_uneven_times_kernel(t_ptr, y_ptr, w_ptr, power_ptr, n, freqs, f0, df, BLOCK_F: tl.constexpr, BLOCK_T: tl.constexpr):
    # Periodogram of a star that was seen at uneven times, weighted: sums of sines and cosines for each frequency.
    i = tl.program_id(0) * BLOCK_F + tl.arange(0, BLOCK_F)
    freq = f0 + i.to(tl.float32) * df
    yc = tl.zeros((BLOCK_F,), dtype=tl.float32)
    ys = tl.zeros((BLOCK_F,), dtype=tl.float32)
    cc = tl.zeros((BLOCK_F,), dtype=tl.float32)
    cs = tl.zeros((BLOCK_F,), dtype=tl.float32)
    yy = 0.0
    for start in range(0, n, BLOCK_T):
        j = start + tl.arange(0, BLOCK_T)
        mask = j < n
        t = tl.load(t_ptr + j, mask=mask, other=0.0)
        y = tl.load(y_ptr + j, mask=mask, other=0.0)
        w = tl.load(w_ptr + j, mask=mask, other=0.0)
        phase = freq[:, None] * t[None, :]
        phase = (phase - tl.floor(phase)) * 6.283185307179586
        c = tl.cos(phase)
        s = tl.sin(phase)
        wy = w * y
        yc += tl.sum(wy[None, :] * c, 1)
        ys += tl.sum(wy[None, :] * s, 1)
        cc += tl.sum(w[None, :] * c * c, 1)
        cs += tl.sum(w[None, :] * c * s, 1)
        yy += tl.sum(wy * y, 0)
    ss = 1.0 - cc
    det = cc * ss - cs * cs
    power = (ss * yc * yc + cc * ys * ys - 2.0 * cs * yc * ys) / (yy * det)
    tl.store(power_ptr + i, power, mask=i < freqs)


@case
def almanac_of_stars_seen_at_uneven_times(n=2500, freqs=5001):
    t = (uniform(n) * 40).sort()[0]
    y = torch.sin(t * 13.7) + f32(n)
    w = uniform(n) + 0.1
    w = w / w.sum()
    power = zeros(freqs, dtype="float32")
    launched = run(periods_of_uneven_times_kernel, (cdiv(freqs, 16),), (t, y, w, power, n, freqs, 0.25, 0.002), power, BLOCK_F=16, BLOCK_T=128, num_warps=4)

    def reference():
        a = 2 * math.pi * (0.25 + torch.arange(freqs, device=t.device, dtype=torch.float64) * 0.002)[:, None] * t.double()
        c, s, weight, v = a.cos(), a.sin(), w.double(), y.double()
        yc, ys, cc, cs = (weight * v * c).sum(1), (weight * v * s).sum(1), (weight * c * c).sum(1), (weight * c * s).sum(1)
        ss = 1 - cc
        return (ss * yc**2 + cc * ys**2 - 2 * cs * yc * ys) / ((weight * v * v).sum() * (cc * ss - cs**2))

    return against(launched, reference)


@triton.jit
def transits_in_folded_light_kernel(tick_ptr, flux_ptr, period_ptr, best_ptr, depth_ptr, n, BINS: tl.constexpr, BLOCK: tl.constexpr):
    # Light of a star folded by a trial period into bins, and the box of three widths in it that dims most.
    period = tl.load(period_ptr + tl.program_id(0))
    bins = tl.arange(0, BINS)
    total = tl.zeros((BINS,), dtype=tl.float32)
    count = tl.zeros((BINS,), dtype=tl.int32)
    for start in range(0, n, BLOCK):
        j = start + tl.arange(0, BLOCK)
        mask = j < n
        tick = tl.load(tick_ptr + j, mask=mask, other=0)
        flux = tl.load(flux_ptr + j, mask=mask, other=0.0)
        b = tl.where(mask, (tick % period) * BINS // period, BINS)
        hit = b[:, None] == bins[None, :]
        total += tl.sum(tl.where(hit, flux[:, None], 0.0), 0)
        count += tl.sum(hit.to(tl.int32), 0)
    run_total = tl.cumsum(total, 0)
    run_count = tl.cumsum(count, 0)
    all_total = tl.sum(total, 0)
    best = 0.0
    depth = 0.0
    for half in tl.static_range(3):
        width = 2 + 3 * half
        last = bins + width - 1
        wrapped = last >= BINS
        last = tl.where(wrapped, last - BINS, last)
        s = tl.gather(run_total, last, 0) - (run_total - total) + tl.where(wrapped, all_total, 0.0)
        r = tl.gather(run_count, last, 0) - (run_count - count) + tl.where(wrapped, n, 0)
        share = r.to(tl.float32) / n
        ok = (r > 0) & (r < n) & (s < 0.0)
        power = tl.where(ok, (s / n) * (s / n) / tl.maximum(share * (1.0 - share), 1e-9), 0.0)
        best = tl.maximum(best, tl.max(power, 0))
        depth = tl.minimum(depth, tl.min(tl.where(ok, s / tl.maximum(r, 1).to(tl.float32), 0.0), 0))
    tl.store(best_ptr + tl.program_id(0), best)
    tl.store(depth_ptr + tl.program_id(0), depth)


@case
def almanac_of_planets_that_dim_their_stars(n=3000, periods=1500):
    tick = ints(0, 1_000_000, n).sort()[0].to(torch.int32)
    flux = f32(n) / 8 - (tick % 61_234 < 2_500).float()
    flux = flux - flux.mean()
    period = 20_011 + arange(periods) * 53
    best, depth = zeros(periods, dtype="float32"), zeros(periods, dtype="float32")
    launched = run(transits_in_folded_light_kernel, (periods,), (tick, flux, period, best, depth, n), (best, depth), BINS=128, BLOCK=64, num_warps=4)

    def reference():
        b = (tick[None, :] % period[:, None]).long() * 128 // period[:, None]
        total = torch.zeros(periods, 128, device=flux.device, dtype=torch.float64).scatter_add_(1, b, flux.double().expand(periods, n))
        count = torch.zeros(periods, 128, device=flux.device, dtype=torch.float64).scatter_add_(1, b, torch.ones_like(b, dtype=torch.float64))
        tops, depths = [], []
        for width in (2, 5, 8):
            s = torch.stack([total.roll(-i, 1) for i in range(width)]).sum(0)
            r = torch.stack([count.roll(-i, 1) for i in range(width)]).sum(0)
            ok = (r > 0) & (r < n) & (s < 0)
            tops.append(torch.where(ok, (s / n) ** 2 / (r / n * (1 - r / n)).clamp(min=1e-9), 0.0).amax(1))
            depths.append(torch.where(ok, s / r.clamp(min=1), 0.0).amin(1))
        return torch.stack(tops).amax(0), torch.stack(depths).amin(0)

    return against(launched, reference)


@triton.jit
def seasons_smoothed_kernel(
    y_ptr, alpha_ptr, level_ptr, error_ptr, forecast_ptr, n, T, beta, gamma, phi, HORIZON: tl.constexpr, SEASON: tl.constexpr, BLOCK: tl.constexpr,
):
    # Level, damped trend and seven days of a week, smoothed for each series day by day, then two weeks of forecasts.
    s = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = s < n
    day = tl.arange(0, 8)
    alpha = tl.load(alpha_ptr + s, mask=mask, other=0.5)
    first = tl.load(y_ptr + s[:, None] * T + day[None, :], mask=mask[:, None] & (day < SEASON)[None, :], other=0.0)
    level = tl.sum(first, 1) / SEASON
    trend = tl.zeros((BLOCK,), dtype=tl.float32)
    season = tl.where((day < SEASON)[None, :], first - level[:, None], 0.0)
    error = tl.zeros((BLOCK,), dtype=tl.float32)
    for t in range(SEASON, T):
        y = tl.load(y_ptr + s * T + t, mask=mask, other=0.0)
        today = (day == t % SEASON)[None, :]
        of_day = tl.sum(tl.where(today, season, 0.0), 1)
        expected = level + phi * trend
        miss = y - expected - of_day
        error += miss * miss
        new_level = alpha * (y - of_day) + (1.0 - alpha) * expected
        trend = beta * (new_level - level) + (1.0 - beta) * phi * trend
        season = tl.where(today, (gamma * (y - expected) + (1.0 - gamma) * of_day)[:, None], season)
        level = new_level
    tl.store(level_ptr + s, level, mask=mask)
    tl.store(error_ptr + s, error / (T - SEASON), mask=mask)
    damp = 0.0
    power = 1.0
    for h in range(HORIZON):
        power *= phi
        damp += power
        of_day = tl.sum(tl.where((day == (T + h) % SEASON)[None, :], season, 0.0), 1)
        tl.store(forecast_ptr + s * HORIZON + h, level + damp * trend + of_day, mask=mask)


@case
def almanac_of_weeks_smoothed_and_foretold(n=20_001, t=150):
    y, alpha = uniform(n, 1) * 10 + f32(n, t) + 2 * torch.sin(arange(t, "float32") * (2 * math.pi / 7)), uniform(n) * 0.6 + 0.1
    level, error, forecast = zeros(n, dtype="float32"), zeros(n, dtype="float32"), zeros(n, 14, dtype="float32")
    args = y, alpha, level, error, forecast, n, t, 0.1, 0.3, 0.95
    launched = run(seasons_smoothed_kernel, (cdiv(n, 128),), args, (level, error, forecast), HORIZON=14, SEASON=7, BLOCK=128, num_warps=4)

    def reference():
        x, a = y.double(), alpha.double()
        l = x[:, :7].mean(1)
        b, s, e = torch.zeros_like(l), x[:, :7] - l[:, None], torch.zeros_like(l)
        for i in range(7, t):
            old, want = s[:, i % 7].clone(), l + 0.95 * b
            e = e + (x[:, i] - want - old) ** 2
            new = a * (x[:, i] - old) + (1 - a) * want
            b = 0.1 * (new - l) + 0.9 * 0.95 * b
            s[:, i % 7] = 0.3 * (x[:, i] - want) + 0.7 * old
            l = new
        ahead = [l + sum(0.95**k for k in range(1, h + 2)) * b + s[:, (t + h) % 7] for h in range(14)]
        return l, e / (t - 7), torch.stack(ahead, 1)

    return against(launched, reference)


@triton.jit
def sum_since_break(v1, f1, v2, f2):
    return tl.where(f2 != 0, v2, v1 + v2), f1 | f2


@triton.jit
def visits_of_users_kernel(ts_ptr, value_ptr, start_ptr, visit_ptr, spent_ptr, count_ptr, gap, BLOCK: tl.constexpr):
    # Events of a user in order of time: a new visit begins after half an hour of silence; what was spent in it is summed as it goes.
    user = tl.program_id(0)
    begin = tl.load(start_ptr + user)
    end = tl.load(start_ptr + user + 1)
    lane = tl.arange(0, BLOCK)
    visits = 0
    carry = 0.0
    for at in range(begin, end, BLOCK):
        i = at + lane
        mask = i < end
        ts = tl.load(ts_ptr + i, mask=mask, other=0)
        before = tl.load(ts_ptr + i - 1, mask=mask & (i > begin), other=0)
        fresh = ((i == begin) | (ts - before > gap)) & mask
        flag = fresh.to(tl.int32)
        value = tl.load(value_ptr + i, mask=mask, other=0.0)
        spent, broken = tl.associative_scan((value, flag), 0, sum_since_break)
        spent = tl.where(broken != 0, spent, spent + carry)
        number = visits + tl.cumsum(flag, 0)
        tl.store(visit_ptr + i, number - 1, mask=mask)
        tl.store(spent_ptr + i, spent, mask=mask)
        last = tl.minimum(end - at, BLOCK) - 1
        carry = tl.sum(tl.where(lane == last, spent, 0.0), 0)
        visits += tl.sum(flag, 0)
    tl.store(count_ptr + user, visits)


@case
def almanac_of_visits_half_an_hour_apart(users=3000, most=900):
    sizes = ints(0, most, users, dtype="int64")
    start = torch.cat((zeros(1, dtype="int64"), sizes.cumsum(0))).to(torch.int32)
    n = int(start[-1].item())
    ts = (uniform(n) * 1000).to(torch.int64) * (uniform(n) * 4).to(torch.int64)
    ts = ts.cumsum(0) + 1_700_000_000
    value = uniform(n)
    visit, spent, count = zeros(n, dtype="int32"), zeros(n, dtype="float32"), zeros(users, dtype="int32")
    launched = run(visits_of_users_kernel, (users,), (ts, value, start, visit, spent, count, 1800), (visit, spent, count), BLOCK=256, num_warps=4)

    def reference():
        first = torch.zeros(n, dtype=torch.bool, device=ts.device)
        first[start[:-1][sizes > 0].long()] = True
        fresh = first.clone()
        fresh[1:] |= ts[1:] - ts[:-1] > 1800
        number = fresh.long().cumsum(0)
        owner = torch.repeat_interleave(torch.arange(users, device=ts.device), sizes)
        per_user = torch.zeros(users, dtype=torch.int64, device=ts.device).scatter_add_(0, owner, fresh.long())
        offset = per_user.cumsum(0) - per_user
        total = value.double().cumsum(0)
        base = (total - value.double())[fresh][number - 1]
        return (number - 1 - offset[owner]).to(torch.int32), total - base, per_user.to(torch.int32)

    return against(launched, reference)


@triton.jit
def guided_after_a_fit_kernel(cond_ptr, uncond_ptr, x_ptr, out_ptr, alpha_ptr, n, guidance, dt, stride, BLOCK: tl.constexpr):
    # A step of a flow under guidance: what is unconditional is first scaled to fit what is conditional best, over the whole sample.
    sample = tl.program_id(0).to(tl.int64)
    cond_ptr += sample * stride
    uncond_ptr += sample * stride
    x_ptr += sample * stride
    out_ptr += sample * stride
    dot = tl.zeros((BLOCK,), dtype=tl.float32)
    norm = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        c = tl.load(cond_ptr + i, mask=i < n, other=0.0, eviction_policy="evict_last").to(tl.float32)
        u = tl.load(uncond_ptr + i, mask=i < n, other=0.0, eviction_policy="evict_last").to(tl.float32)
        dot += c * u
        norm += u * u
    alpha = tl.sum(dot, 0) / (tl.sum(norm, 0) + 1e-8)
    tl.store(alpha_ptr + sample, alpha)
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        c = tl.load(cond_ptr + i, mask=i < n, other=0.0, eviction_policy="evict_first").to(tl.float32)
        u = tl.load(uncond_ptr + i, mask=i < n, other=0.0, eviction_policy="evict_first").to(tl.float32) * alpha
        x = tl.load(x_ptr + i, mask=i < n, other=0.0)
        tl.store(out_ptr + i, x + dt * (u + guidance * (c - u)), mask=i < n)


@case
def almanac_of_pictures_led_one_step_on(samples=160, n=33_007):
    cond = rand(samples, n, dtype="bfloat16")
    uncond = (cond.float() * 0.8 + f32(samples, n) / 2).to(torch.bfloat16)
    x, out, alpha = f32(samples, n), zeros(samples, n, dtype="float32"), zeros(samples, dtype="float32")
    launched = run(guided_after_a_fit_kernel, (samples,), (cond, uncond, x, out, alpha, n, 4.5, -0.04, n), (out, alpha), BLOCK=1024, num_warps=8)

    def reference():
        c, u = cond.double(), uncond.double()
        a = (c * u).sum(1) / (u * u).sum(1)
        u = u * a[:, None]
        return x.double() - 0.04 * (u + 4.5 * (c - u)), a

    return against(launched, reference)
