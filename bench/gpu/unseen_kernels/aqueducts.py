"""Aqueducts: gradients and products that are led through lists, phases, codes of four bits and chunks, and flows of levels, waves, bits and returns."""

import torch
import torch.nn.functional as F
import triton
import triton.language as tl

from .common import against, case, cdiv, cleared, f8, f32, ints, rand, run, uniform, zeros


@triton.jit
def chosen_blocks_dkdv_kernel(
    q_ptr, k_ptr, v_ptr, do_ptr, lse_ptr, delta_ptr, start_ptr, query_ptr, dk_ptr, dv_ptr, scale, T,
    HQ: tl.constexpr, H: tl.constexpr, G: tl.constexpr, D: tl.constexpr, BS: tl.constexpr,
):
    # A block of keys goes through the list of queries that chose it, all heads of a group at a time; later keys count for nothing.
    i_s = tl.program_id(0)
    i_h = tl.program_id(1)
    o_s = i_s * BS + tl.arange(0, BS)
    o_d = tl.arange(0, D)
    o_g = i_h * G + tl.arange(0, G)
    m_s = o_s < T
    at = (o_s[:, None] * H + i_h) * D + o_d[None, :]
    b_k = tl.load(k_ptr + at, mask=m_s[:, None], other=0.0)
    b_v = tl.load(v_ptr + at, mask=m_s[:, None], other=0.0)
    b_dk = tl.zeros([BS, D], dtype=tl.float32)
    b_dv = tl.zeros([BS, D], dtype=tl.float32)
    bos = tl.load(start_ptr + i_h * (tl.num_programs(0) + 1) + i_s)
    eos = tl.load(start_ptr + i_h * (tl.num_programs(0) + 1) + i_s + 1)
    for i in range(bos, eos):
        t = tl.load(query_ptr + i)
        p_q = (t * HQ + o_g)[:, None] * D + o_d[None, :]
        b_q = tl.load(q_ptr + p_q)
        b_q = (b_q * scale).to(b_q.dtype)
        b_do = tl.load(do_ptr + p_q)
        b_lse = tl.load(lse_ptr + t * HQ + o_g)
        b_delta = tl.load(delta_ptr + t * HQ + o_g)
        b_s = tl.dot(b_k, tl.trans(b_q))
        b_p = tl.where((o_s <= t)[:, None], tl.exp(b_s - b_lse[None, :]), 0.0)
        b_dv += tl.dot(b_p.to(b_do.dtype), b_do)
        b_dp = tl.dot(b_v, tl.trans(b_do))
        b_ds = b_p * (b_dp - b_delta[None, :])
        b_dk += tl.dot(b_ds.to(b_q.dtype), b_q)
    tl.store(dk_ptr + at, b_dk.to(dk_ptr.dtype.element_ty), mask=m_s[:, None])
    tl.store(dv_ptr + at, b_dv.to(dv_ptr.dtype.element_ty), mask=m_s[:, None])


@case
def aqueduct_to_keys_from_queries_that_chose_them(t=2000, h=6, g=16, d=128, bs=64, top=2, dtype="bfloat16"):
    hq, blocks = h * g, cdiv(t, bs)
    q, do = rand(t, hq, d, dtype=dtype), rand(t, hq, d, dtype=dtype)
    k, v = rand(t, h, d, dtype=dtype), rand(t, h, d, dtype=dtype)
    lse, delta = uniform(t, hq) + 2, f32(t, hq)
    own = torch.arange(t, device="cuda") // bs
    score = torch.where(torch.arange(blocks, device="cuda") <= own[:, None], uniform(h, t, blocks) * torch.arange(1, blocks + 1, device="cuda"), -1.0)
    best = score.topk(min(top, blocks), 2)
    picked = torch.zeros(h, t, blocks, device="cuda", dtype=torch.bool).scatter_(2, best.indices, best.values >= 0)
    lists = picked.transpose(1, 2).nonzero()
    counts = picked.sum(1)
    start = torch.zeros(h, blocks + 1, device="cuda", dtype=torch.int32)
    start[:, 1:] = counts.cumsum(1)
    start += (counts.sum(1).cumsum(0) - counts.sum(1))[:, None].int()
    dk, dv = torch.zeros_like(k), torch.zeros_like(v)
    args = q, k, v, do, lse, delta, start, lists[:, 2].int().contiguous(), dk, dv, d**-0.5, t
    launched = run(chosen_blocks_dkdv_kernel, (blocks, h), args, (dk, dv), HQ=hq, H=h, G=g, D=d, BS=bs, num_warps=4, num_stages=2)

    def reference():
        gk, gv = torch.zeros(t, h, d, device=q.device), torch.zeros(t, h, d, device=q.device)
        order = torch.arange(t, device=q.device)
        for i in range(hq):
            sees = picked[i // g][:, order // bs] & (order[None, :] <= order[:, None])
            z = (q[:, i].float() * d**-0.5).to(q.dtype).float()
            p = torch.where(sees, (z @ k[:, i // g].float().t() - lse[:, i, None]).exp(), 0.0)
            gv[:, i // g] += p.to(q.dtype).float().t() @ do[:, i].float()
            ds = p * (do[:, i].float() @ v[:, i // g].float().t() - delta[:, i, None])
            gk[:, i // g] += ds.to(q.dtype).float().t() @ z
        return gk, gv

    return against(launched, reference)


@triton.jit
def four_bits_to_value(c):
    mag = (c & 7).to(tl.int32)
    value = tl.where(mag < 4, mag.to(tl.float32) * 0.5, tl.where(mag < 6, mag.to(tl.float32) - 2.0, mag.to(tl.float32) * 2.0 - 8.0))
    return tl.where((c & 8) != 0, -value, value)


@triton.jit
def mxfp4_gathered_swiglu_kernel(
    x_ptr, gather_ptr, w_ptr, ws_ptr, bias_ptr, y_ptr, M, N, K, stride_xm, stride_wn, stride_sn, stride_ym, alpha, limit,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    # Gathered rows through weights of four bits with a power of two for each 32; gates and units alternate, both are clamped.
    pid_m = tl.program_id(0)
    pid_n = tl.program_id(1)
    offs_m = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_k = tl.arange(0, BLOCK_K)
    offs_b = tl.arange(0, BLOCK_K // 2)
    offs_s = tl.arange(0, BLOCK_K // 32)
    mask_n = offs_n < 2 * N
    rows = tl.load(gather_ptr + offs_m, mask=offs_m < M, other=0)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        x = tl.load(x_ptr + rows[:, None] * stride_xm + k + offs_k[None, :], mask=(offs_m < M)[:, None], other=0.0)
        packed = tl.load(w_ptr + offs_n[:, None] * stride_wn + k // 2 + offs_b[None, :], mask=mask_n[:, None], other=0)
        scale = tl.load(ws_ptr + offs_n[:, None] * stride_sn + k // 32 + offs_s[None, :], mask=mask_n[:, None], other=127)
        factor = (scale.to(tl.int32) << 23).to(tl.float32, bitcast=True)
        w = tl.join(four_bits_to_value(packed & 15), four_bits_to_value(packed >> 4)).reshape(BLOCK_N, BLOCK_K // 32, 32)
        w = (w * factor[:, :, None]).reshape(BLOCK_N, BLOCK_K).to(x.dtype)
        acc = tl.dot(x, w.T, acc)
    acc += tl.load(bias_ptr + offs_n, mask=mask_n, other=0.0)[None, :]
    gate, up = tl.split(acc.reshape(BLOCK_M, BLOCK_N // 2, 2))
    gate = tl.minimum(gate, limit)
    up = tl.minimum(tl.maximum(up, -limit), limit)
    y = gate / (1.0 + tl.exp(-alpha * gate)) * (up + 1.0)
    half = pid_n * (BLOCK_N // 2) + tl.arange(0, BLOCK_N // 2)
    tl.store(y_ptr + offs_m[:, None] * stride_ym + half[None, :], y.to(y_ptr.dtype.element_ty), mask=(offs_m < M)[:, None] & (half < N)[None, :])


@case
def aqueduct_of_nibbles_to_clamped_gates(tokens=900, m=1500, n=1440, k=1408):
    x, gather = rand(tokens, k, dtype="bfloat16"), ints(0, tokens, m)
    w, ws = ints(0, 256, 2 * n, k // 2, dtype="uint8"), ints(119, 124, 2 * n, k // 32, dtype="uint8")
    bias, y = f32(2 * n), zeros(m, n, dtype="bfloat16")
    args = x, gather, w, ws, bias, y, m, n, k, x.stride(0), w.stride(0), ws.stride(0), y.stride(0), 1.702, 7.0
    launched = run(mxfp4_gathered_swiglu_kernel, (cdiv(m, 128), cdiv(2 * n, 128)), args, y, BLOCK_M=128, BLOCK_N=128, BLOCK_K=64, num_warps=8, num_stages=3)

    def reference():
        table = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6], device=x.device)
        z = table[torch.stack((w & 15, w >> 4), 2).reshape(2 * n, k).long()].reshape(2 * n, k // 32, 32)
        z = (z * torch.exp2(ws.float() - 127)[..., None]).reshape(2 * n, k)
        h = x.float()[gather.long()] @ z.t() + bias
        gate, up = h[:, ::2].clamp(max=7), h[:, 1::2].clamp(-7, 7)
        return gate * torch.sigmoid(1.702 * gate) * (up + 1)

    return against(launched, reference)


@triton.jit
def varlen_dq_kernel(
    q_ptr, k_ptr, v_ptr, do_ptr, lse_ptr, delta_ptr, cu_ptr, dq_ptr, scale, total, stride_qt, stride_qh, stride_kt, stride_kh,
    GROUP: tl.constexpr, HEAD_DIM: tl.constexpr, BLOCK_D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, IS_CAUSAL: tl.constexpr,
):
    # Gradients of queries of packed sequences; the head's width is padded, and sequences that are too short for the grid leave early.
    start_m = tl.program_id(0) * BLOCK_M
    head = tl.program_id(1)
    seq = tl.program_id(2)
    begin = tl.load(cu_ptr + seq)
    length = tl.load(cu_ptr + seq + 1) - begin
    if start_m >= length:
        return
    m = start_m + tl.arange(0, BLOCK_M)
    n = tl.arange(0, BLOCK_N)
    d = tl.arange(0, BLOCK_D)
    mask_m = m < length
    mask_d = d < HEAD_DIM
    at_q = (begin + m)[:, None] * stride_qt + head * stride_qh + d[None, :]
    q = tl.load(q_ptr + at_q, mask=mask_m[:, None] & mask_d[None, :], other=0.0)
    do = tl.load(do_ptr + at_q, mask=mask_m[:, None] & mask_d[None, :], other=0.0)
    lse = tl.load(lse_ptr + head * total + begin + m, mask=mask_m, other=0.0)
    delta = tl.load(delta_ptr + head * total + begin + m, mask=mask_m, other=0.0)
    dq = tl.zeros((BLOCK_M, BLOCK_D), dtype=tl.float32)
    end_n = length
    if IS_CAUSAL:
        end_n = tl.minimum(start_m + BLOCK_M, length)
    for start_n in range(0, end_n, BLOCK_N):
        start_n = tl.multiple_of(start_n, BLOCK_N)
        cols = start_n + n
        at_k = (begin + cols)[None, :] * stride_kt + head // GROUP * stride_kh + d[:, None]
        ok = (cols < length)[None, :] & mask_d[:, None]
        kt = tl.load(k_ptr + at_k, mask=ok, other=0.0)
        vt = tl.load(v_ptr + at_k, mask=ok, other=0.0)
        s = tl.dot(q, kt) * scale
        sees = (cols < length)[None, :] & mask_m[:, None]
        if IS_CAUSAL:
            sees = sees & (m[:, None] >= cols[None, :])
        p = tl.where(sees, tl.exp(s - lse[:, None]), 0.0)
        dp = tl.dot(do, vt)
        ds = (p * (dp - delta[:, None])).to(kt.dtype)
        dq += tl.dot(ds, tl.trans(kt))
    tl.store(dq_ptr + at_q, (dq * scale).to(dq_ptr.dtype.element_ty), mask=mask_m[:, None] & mask_d[None, :])


@case
def aqueduct_back_to_queries_of_packed_sequences(lengths=(700, 33, 1, 512, 911, 260, 128), heads=20, group=5, d=96):
    cu = torch.tensor([0, *lengths], device="cuda").cumsum(0).int()
    total = sum(lengths)
    q, do = rand(total, heads, d), rand(total, heads, d)
    k, v = rand(total, heads // group, d), rand(total, heads // group, d)
    lse, delta, dq = uniform(heads, total) + 3, f32(heads, total), torch.zeros_like(q)
    args = q, k, v, do, lse, delta, cu, dq, d**-0.5, total, *q.stride()[:2], *k.stride()[:2]
    flags = dict(GROUP=group, HEAD_DIM=d, BLOCK_D=128, BLOCK_M=64, BLOCK_N=32, IS_CAUSAL=True)
    launched = run(varlen_dq_kernel, (cdiv(max(lengths), 64), heads, len(lengths)), args, dq, num_warps=4, num_stages=2, **flags)

    def reference():
        result, at = torch.zeros(total, heads, d, device=q.device), 0
        for n in lengths:
            rows = slice(at, at + n)
            keys, values = k[rows].float().repeat_interleave(group, 1), v[rows].float().repeat_interleave(group, 1)
            s = torch.einsum("mhd,nhd->hmn", q[rows].float(), keys) * d**-0.5
            p = (s - lse[:, rows, None]).exp().tril()
            ds = p * (torch.einsum("mhd,nhd->hmn", do[rows].float(), values) - delta[:, rows, None])
            result[rows] = torch.einsum("hmn,nhd->mhd", ds, keys) * d**-0.5
            at += n
        return result

    return against(launched, reference)


@triton.jit
def retention_chunk_bwd_kernel(
    q, k, v, do, h, dh, dq, dk, dv, scale, T, H: tl.constexpr, K: tl.constexpr, V: tl.constexpr, BT: tl.constexpr, BV: tl.constexpr,
):
    # Retention: gradients of a chunk's queries, keys and values, from the state before it and the gradient of the state behind.
    i_t = tl.program_id(0)
    i_bh = tl.program_id(1)
    i_b = i_bh // H
    i_h = i_bh % H
    NT = tl.num_programs(0)
    b_b = tl.math.log2(1.0 - tl.math.exp2(-5.0 - i_h * 1.0))
    o_i = tl.arange(0, BT)
    n = tl.minimum(BT, T - i_t * BT)
    m_i = o_i < n
    d_q = tl.exp2((o_i + 1) * b_b) * scale
    d_k = tl.where(m_i, tl.exp2((n - o_i - 1) * b_b), 0.0)
    d_s = tl.where((o_i[:, None] >= o_i[None, :]) & m_i[:, None], tl.exp2((o_i[:, None] - o_i[None, :]) * b_b), 0.0) * scale
    base_k = (i_b * T * H + i_h) * K
    base_v = (i_b * T * H + i_h) * V
    p_q = tl.make_block_ptr(q + base_k, (T, K), (H * K, 1), (i_t * BT, 0), (BT, K), (1, 0))
    p_k = tl.make_block_ptr(k + base_k, (T, K), (H * K, 1), (i_t * BT, 0), (BT, K), (1, 0))
    b_q = tl.load(p_q, boundary_check=(0,), padding_option="zero")
    b_k = tl.load(p_k, boundary_check=(0,), padding_option="zero")
    b_s = tl.dot(b_k, tl.trans(b_q)) * tl.trans(d_s)
    b_ds = tl.zeros([BT, BT], dtype=tl.float32)
    b_dq = tl.zeros([BT, K], dtype=tl.float32)
    b_dk = tl.zeros([BT, K], dtype=tl.float32)
    for i_v in range(tl.cdiv(V, BV)):
        p_v = tl.make_block_ptr(v + base_v, (T, V), (H * V, 1), (i_t * BT, i_v * BV), (BT, BV), (1, 0))
        p_do = tl.make_block_ptr(do + base_v, (T, V), (H * V, 1), (i_t * BT, i_v * BV), (BT, BV), (1, 0))
        p_dv = tl.make_block_ptr(dv + base_v, (T, V), (H * V, 1), (i_t * BT, i_v * BV), (BT, BV), (1, 0))
        p_h = tl.make_block_ptr(h + (i_bh * NT + i_t) * K * V, (V, K), (1, V), (i_v * BV, 0), (BV, K), (0, 1))
        p_dh = tl.make_block_ptr(dh + (i_bh * NT + i_t) * K * V, (V, K), (1, V), (i_v * BV, 0), (BV, K), (0, 1))
        b_v = tl.load(p_v, boundary_check=(0,), padding_option="zero")
        b_do = tl.load(p_do, boundary_check=(0,), padding_option="zero")
        b_h = tl.load(p_h)
        b_dh = tl.load(p_dh)
        b_ds += tl.dot(b_do, tl.trans(b_v))
        b_dq += tl.dot(b_do, b_h)
        b_dk += tl.dot(b_v, b_dh)
        b_dv = tl.dot(b_k, tl.trans(b_dh)) * d_k[:, None]
        b_dv += tl.dot(b_s.to(b_do.dtype), b_do)
        tl.store(p_dv, b_dv.to(b_v.dtype), boundary_check=(0,))
    b_ds = (b_ds * d_s).to(b_q.dtype)
    b_dq = b_dq * d_q[:, None] + tl.dot(b_ds, b_k)
    b_dk = b_dk * d_k[:, None] + tl.dot(tl.trans(b_ds), b_q)
    p_dq = tl.make_block_ptr(dq + base_k, (T, K), (H * K, 1), (i_t * BT, 0), (BT, K), (1, 0))
    p_dk = tl.make_block_ptr(dk + base_k, (T, K), (H * K, 1), (i_t * BT, 0), (BT, K), (1, 0))
    tl.store(p_dq, b_dq.to(b_q.dtype), boundary_check=(0,))
    tl.store(p_dk, b_dk.to(b_q.dtype), boundary_check=(0,))


@case
def aqueduct_of_retained_chunks_backwards(b=2, t=3999, heads=8, dk=64, dv=128, c=64):
    chunks = cdiv(t, c)
    q, k = rand(b, t, heads, dk, dtype="bfloat16"), rand(b, t, heads, dk, dtype="bfloat16")
    v, do = rand(b, t, heads, dv, dtype="bfloat16"), rand(b, t, heads, dv, dtype="bfloat16")
    h, dh = rand(b, heads, chunks, dk, dv, dtype="bfloat16"), rand(b, heads, chunks, dk, dv, dtype="bfloat16")
    outs = torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(v)
    args = q, k, v, do, h, dh, *outs, dk**-0.5, t
    launched = run(retention_chunk_bwd_kernel, (chunks, b * heads), args, outs, H=heads, K=dk, V=dv, BT=c, BV=64, num_warps=4, num_stages=2)

    def reference():
        scale, pad = dk**-0.5, chunks * c - t
        a, e, x, y = (F.pad(z.float(), (0, 0, 0, 0, 0, pad)).reshape(b, chunks, c, heads, -1).permute(0, 3, 1, 2, 4) for z in (q, k, v, do))
        log = torch.log2(1 - torch.exp2(-5.0 - torch.arange(heads, device=q.device)))[:, None]
        i = torch.arange(c, device=q.device)
        before = torch.exp2((i + 1) * log)[None, :, None, :, None] * scale
        size = torch.full((chunks,), c, device=q.device)
        size[-1] = c - pad
        left = size[:, None] - 1 - i
        behind = torch.where(left >= 0, torch.exp2(left * log[..., None]), 0.0)[None, ..., None]
        d = torch.exp2((i[:, None] - i).clamp(min=0) * log[..., None]).tril()[None, :, None] * scale
        state, later = h.float(), dh.float()
        ds = (y @ x.transpose(-1, -2)) * d
        s = (a @ e.transpose(-1, -2)) * d
        gq = ds @ e + before * (y @ state.transpose(-1, -2))
        gk = ds.transpose(-1, -2) @ a + behind * (x @ later.transpose(-1, -2))
        gv = s.transpose(-1, -2) @ y + behind * (e @ later)
        return tuple(z.permute(0, 2, 3, 1, 4).reshape(b, chunks * c, heads, -1)[:, :t] for z in (gq, gk, gv))

    return against(launched, reference)


@triton.jit
def dilated_conv_nhwc_kernel(
    x_ptr, w_ptr, b_ptr, y_ptr, N, H, W, OH, OW, C_OUT, stride_h, stride_w, pad, dilation,
    C_IN: tl.constexpr, R: tl.constexpr, S: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    # A convolution as a product that is never unfolded: channels last, taps apart, one loop over taps and channels together; swish.
    pid_m = tl.program_id(0)
    pid_n = tl.program_id(1)
    m = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    co = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    img = m // (OH * OW)
    oh = m % (OH * OW) // OW
    ow = m % OW
    c = tl.arange(0, BLOCK_K)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for step in range(0, R * S * (C_IN // BLOCK_K)):
        tap = step // (C_IN // BLOCK_K)
        c0 = step % (C_IN // BLOCK_K) * BLOCK_K
        ih = oh * stride_h - pad + tap // S * dilation
        iw = ow * stride_w - pad + tap % S * dilation
        inside = (img < N) & (ih >= 0) & (ih < H) & (iw >= 0) & (iw < W)
        x = tl.load(x_ptr + ((img * H + ih) * W + iw)[:, None] * C_IN + c0 + c[None, :], mask=inside[:, None], other=0.0)
        w = tl.load(w_ptr + (co[None, :] * (R * S) + tap) * C_IN + c0 + c[:, None], mask=(co < C_OUT)[None, :], other=0.0)
        acc = tl.dot(x, w, acc)
    acc += tl.load(b_ptr + co, mask=co < C_OUT, other=0.0).to(tl.float32)[None, :]
    acc = acc * tl.sigmoid(acc)
    tl.store(y_ptr + m[:, None] * C_OUT + co[None, :], acc.to(y_ptr.dtype.element_ty), mask=(img < N)[:, None] & (co < C_OUT)[None, :])


@case
def aqueduct_through_taps_of_dilated_squares(n=8, h=57, w=61, c_in=96, c_out=168, dilation=2):
    x, weight, bias = rand(n, h, w, c_in), rand(c_out, 3, 3, c_in) / 16, rand(c_out)
    oh, ow = (h + 2 - 2 * dilation - 1) // 2 + 1, w + 2 - 2 * dilation
    y = zeros(n, oh, ow, c_out)
    args = x, weight, bias, y, n, h, w, oh, ow, c_out, 2, 1, 1, dilation
    grid = (cdiv(n * oh * ow, 128), cdiv(c_out, 64))
    launched = run(dilated_conv_nhwc_kernel, grid, args, y, C_IN=c_in, R=3, S=3, BLOCK_M=128, BLOCK_N=64, BLOCK_K=32, num_warps=4, num_stages=4)

    def reference():
        z = F.conv2d(x.float().permute(0, 3, 1, 2), weight.float().permute(0, 3, 1, 2), bias.float(), (2, 1), 1, dilation)
        return F.silu(z).permute(0, 2, 3, 1)

    return against(launched, reference)


@triton.jit
def turned_harmonics_kernel(
    x_ptr, src_ptr, turn_ptr, radial_ptr, y_ptr, n_edges, ORDERS: tl.constexpr, PAD: tl.constexpr, C: tl.constexpr, EDGES: tl.constexpr,
):
    # Features of seven orders of a sender are turned by an edge's own matrix and weighed by what its length gives each channel.
    m = tl.arange(0, PAD)
    k = tl.arange(0, PAD)
    c = tl.arange(0, C)
    for i in range(EDGES):
        e = tl.program_id(0) * EDGES + i
        if e < n_edges:
            node = tl.load(src_ptr + e)
            turn = tl.load(turn_ptr + e * ORDERS * ORDERS + m[:, None] * ORDERS + k[None, :], mask=(m[:, None] < ORDERS) & (k[None, :] < ORDERS), other=0.0)
            x = tl.load(x_ptr + (node * ORDERS + k[:, None]) * C + c[None, :], mask=k[:, None] < ORDERS, other=0.0)
            y = tl.dot(turn, x, input_precision="tf32x3")
            y *= tl.load(radial_ptr + e * C + c)[None, :]
            tl.store(y_ptr + (e * ORDERS + m[:, None]) * C + c[None, :], y, mask=m[:, None] < ORDERS)


@case
def aqueduct_of_harmonics_along_edges(edges=30_001, nodes=5000, c=64):
    x, src, turn = f32(nodes, 7, c), ints(0, nodes, edges), f32(edges, 7, 7)
    radial, y = f32(edges, c), zeros(edges, 7, c, dtype="float32")
    launched = run(turned_harmonics_kernel, (cdiv(edges, 8),), (x, src, turn, radial, y, edges), y, ORDERS=7, PAD=16, C=c, EDGES=8, num_warps=2)
    return against(launched, lambda: torch.bmm(turn.double(), x[src.long()].double()).float() * radial[:, None, :])


@triton.jit
def few_rows_block_scaled_kernel(
    a_ptr, b_ptr, as_ptr, bs_ptr, c_ptr, M, N, K, stride_am, stride_bn, stride_asm, stride_bsn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, SPLIT_K: tl.constexpr,
):
    # Few rows of fp8 with a scale for each 128 of them, times weights with a scale for each square; parts of the sum meet in memory.
    pid_n = tl.program_id(0)
    pid_k = tl.program_id(1)
    offs_m = tl.arange(0, BLOCK_M)
    offs_n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_k = pid_k * BLOCK_K + tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + (offs_m % M)[:, None] * stride_am + offs_k[None, :]
    b_ptrs = b_ptr + offs_n[None, :] * stride_bn + offs_k[:, None]
    as_ptrs = as_ptr + (offs_m % M) * stride_asm + pid_k
    bs_ptrs = bs_ptr + pid_n * BLOCK_N // 128 * stride_bsn + pid_k
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(pid_k, tl.cdiv(K, BLOCK_K), SPLIT_K):
        a = tl.load(a_ptrs)
        b = tl.load(b_ptrs)
        acc += tl.dot(a, b) * tl.load(as_ptrs)[:, None] * tl.load(bs_ptrs)
        a_ptrs += BLOCK_K * SPLIT_K
        b_ptrs += BLOCK_K * SPLIT_K
        as_ptrs += SPLIT_K
        bs_ptrs += SPLIT_K
    tl.atomic_add(c_ptr + offs_m[:, None] * N + offs_n[None, :], acc, mask=offs_m[:, None] < M, sem="relaxed")


@case
def aqueduct_of_three_rows_in_scaled_squares(m=3, n=5120, k=7168, splits=4):
    a, b = f8(m, k), f8(n, k)
    sa, sb, c = uniform(m, k // 128) / 32, uniform(n // 128, k // 128) / 4, zeros(m, n, dtype="float32")
    args = a, b, sa, sb, c, m, n, k, a.stride(0), b.stride(0), sa.stride(0), sb.stride(0)
    launched = run(few_rows_block_scaled_kernel, (n // 64, splits), args, c, BLOCK_M=16, BLOCK_N=64, BLOCK_K=128, SPLIT_K=splits, num_warps=4, num_stages=4)

    def reference():
        x = a.float().reshape(m, k // 128, 128) * sa[..., None]
        w = b.float().reshape(n // 128, 128, k // 128, 128) * sb[:, None, :, None]
        return x.reshape(m, k) @ w.reshape(n, k).t()

    return against(cleared(launched, c), reference)


@triton.jit
def attention_alibi_fp32(
    Q, K, V, O, slopes, seq_len, head_dim, sm_scale, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
):
    # Full attention in single precision where what is farther counts for less, in both directions.
    pid = tl.program_id(0)
    bh = tl.program_id(1)
    slope = tl.load(slopes + bh)
    base = bh * seq_len * head_dim
    offs_m = pid * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_d = tl.arange(0, BLOCK_D)
    q_mask = (offs_m[:, None] < seq_len) & (offs_d[None, :] < head_dim)
    q = tl.load(Q + base + offs_m[:, None] * head_dim + offs_d[None, :], mask=q_mask, other=0.0)
    m_i = tl.zeros([BLOCK_M], dtype=tl.float32) - float("inf")
    l_i = tl.zeros([BLOCK_M], dtype=tl.float32)
    acc = tl.zeros([BLOCK_M, BLOCK_D], dtype=tl.float32)
    for start_n in range(0, seq_len, BLOCK_N):
        offs_n = start_n + tl.arange(0, BLOCK_N)
        kv_mask = (offs_n[:, None] < seq_len) & (offs_d[None, :] < head_dim)
        k = tl.load(K + base + offs_n[:, None] * head_dim + offs_d[None, :], mask=kv_mask, other=0.0)
        v = tl.load(V + base + offs_n[:, None] * head_dim + offs_d[None, :], mask=kv_mask, other=0.0)
        qk = tl.dot(q, tl.trans(k), input_precision="ieee") * sm_scale
        distance = tl.abs(offs_m[:, None] - offs_n[None, :]).to(tl.float32)
        qk = qk - slope * distance
        qk = tl.where(offs_n[None, :] < seq_len, qk, float("-inf"))
        m_new = tl.maximum(m_i, tl.max(qk, axis=1))
        p = tl.exp(qk - m_new[:, None])
        alpha = tl.exp(m_i - m_new)
        l_i = l_i * alpha + tl.sum(p, axis=1)
        acc = acc * alpha[:, None] + tl.dot(p, v, input_precision="ieee")
        m_i = m_new
    tl.store(O + base + offs_m[:, None] * head_dim + offs_d[None, :], acc / l_i[:, None], mask=q_mask)


@case
def aqueduct_that_falls_with_distance(batch=2, heads=12, t=777, d=40):
    q, k, v = f32(batch, heads, t, d), f32(batch, heads, t, d), f32(batch, heads, t, d)
    slopes = torch.exp2(-8.0 * (torch.arange(heads, device="cuda") + 1) / heads).repeat(batch)
    out = torch.zeros_like(q)
    args = q, k, v, out, slopes, t, d, d**-0.5
    launched = run(attention_alibi_fp32, (cdiv(t, 32), batch * heads), args, out, BLOCK_M=32, BLOCK_N=32, BLOCK_D=64)

    def reference():
        i = torch.arange(t, device=q.device)
        s = q.double() @ k.double().transpose(2, 3) * d**-0.5 - slopes.reshape(batch, heads, 1, 1) * (i[:, None] - i).abs()
        return (s.softmax(3) @ v.double()).float()

    return against(launched, reference)


@triton.jit
def systems_of_users_kernel(y_ptr, indptr_ptr, item_ptr, rating_ptr, gram_ptr, a_ptr, b_ptr, alpha, reg, K: tl.constexpr, BLOCK: tl.constexpr):
    # Alternating least squares of implicit ratings: the system of one user from factors of what the user took.
    user = tl.program_id(0)
    f = tl.arange(0, K)
    start = tl.load(indptr_ptr + user)
    end = tl.load(indptr_ptr + user + 1)
    a = tl.load(gram_ptr + f[:, None] * K + f[None, :])
    a += tl.where(f[:, None] == f[None, :], reg, 0.0)
    b = tl.zeros((K,), dtype=tl.float32)
    while start < end:
        i = start + tl.arange(0, BLOCK)
        ok = i < end
        item = tl.load(item_ptr + i, mask=ok, other=0)
        weight = alpha * tl.load(rating_ptr + i, mask=ok, other=0.0)
        y = tl.load(y_ptr + item[:, None] * K + f[None, :], mask=ok[:, None], other=0.0)
        a = tl.dot(tl.trans(y), (y * weight[:, None]).to(y.dtype), a)
        b += tl.sum(y.to(tl.float32) * (1.0 + weight)[:, None], axis=0)
        start += BLOCK
    tl.store(a_ptr + user * K * K + f[:, None] * K + f[None, :], a)
    tl.store(b_ptr + user * K + f, b)


@case
def aqueduct_from_ratings_to_systems(users=6000, items=8000, most=160, k=64):
    counts = ints(0, most, users)
    indptr = F.pad(counts.cumsum(0), (1, 0)).int()
    total = int(indptr[-1])
    y, item, rating = rand(items, k), ints(0, items, total), ints(1, 6, total).float()
    gram = (y.float().t() @ y.float()) / 64
    a, b = zeros(users, k, k, dtype="float32"), zeros(users, k, dtype="float32")
    launched = run(systems_of_users_kernel, (users,), (y, indptr, item, rating, gram, a, b, 0.5, 3.0), (a, b), K=k, BLOCK=32, num_warps=4)

    def reference():
        left, right = gram.repeat(users, 1, 1) + 3 * torch.eye(k, device=y.device), torch.zeros(users, k, device=y.device)
        owner = torch.repeat_interleave(torch.arange(users, device=y.device), counts.long())
        z, w = y.float()[item.long()], 0.5 * rating
        right.index_add_(0, owner, z * (1 + w)[:, None])
        for at in range(0, total, 1 << 15):
            rows = slice(at, at + (1 << 15))
            left.index_add_(0, owner[rows], z[rows, :, None] * (z[rows] * w[rows, None]).half().float()[:, None, :])
        return left, right

    return against(launched, reference)


@triton.jit
def prefix_codes_to_bytes_kernel(words_ptr, table_ptr, out_ptr, used_ptr, lanes, stride_words, COUNT: tl.constexpr, BITS: tl.constexpr, BLOCK: tl.constexpr):
    # Many streams of a prefix code, one a lane: eleven bits look a byte and its length up in a table.
    lane = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ok = lane < lanes
    words = words_ptr + lane * stride_words
    bit = tl.zeros((BLOCK,), dtype=tl.int32)
    for i in range(COUNT):
        at = bit >> 5
        low = tl.load(words + at, mask=ok, other=0).to(tl.uint32, bitcast=True).to(tl.uint64)
        high = tl.load(words + at + 1, mask=ok, other=0).to(tl.uint32, bitcast=True).to(tl.uint64)
        window = (((high << 32) | low) >> (bit & 31).to(tl.uint64)).to(tl.int32) & ((1 << BITS) - 1)
        entry = tl.load(table_ptr + window)
        tl.store(out_ptr + lane * COUNT + i, (entry & 255).to(tl.uint8), mask=ok)
        bit += (entry >> 8).to(tl.int32)
    tl.store(used_ptr + lane, bit, mask=ok)


@case
def aqueduct_of_bits_to_bytes_by_a_prefix_code(lanes=60_003, count=96, bits=11):
    leaves, seed = [(0, 0)], 12345
    while len(leaves) < 256:
        seed = (seed * 1103515245 + 12345) % 2**31
        i = (seed >> 8) % len(leaves)
        prefix, length = leaves[i]
        if length < bits:
            leaves[i] = (prefix, length + 1)
            leaves.append((prefix | 1 << length, length + 1))
    table = [0] * 2**bits
    for symbol, (prefix, length) in enumerate(leaves):
        for rest in range(2 ** (bits - length)):
            table[prefix | rest << length] = symbol | length << 8
    table = torch.tensor(table, device="cuda", dtype=torch.int16)
    size = cdiv(count * bits, 32) + 2
    words = ints(-(2**31), 2**31, lanes, size, dtype="int64").int()
    out, used = zeros(lanes, count, dtype="uint8"), zeros(lanes, dtype="int32")
    launched = run(prefix_codes_to_bytes_kernel, (cdiv(lanes, 128),), (words, table, out, used, lanes, size), (out, used), COUNT=count, BITS=bits, BLOCK=128)

    def reference():
        result, longs = torch.zeros_like(out), words.long() & 0xFFFFFFFF
        bit = torch.zeros(lanes, device=words.device, dtype=torch.int64)
        for i in range(count):
            low, high = (longs.gather(1, (bit // 32 + j)[:, None])[:, 0] for j in (0, 1))
            window = (low >> bit % 32 | high << 32 - bit % 32) & (2**bits - 1)
            entry = table.long()[window]
            result[:, i] = entry & 255
            bit = bit + (entry >> 8)
        return result, bit.int()

    return against(launched, reference)


@triton.jit
def back_in_time(a1, b1, a2, b2):
    return a1 * a2, b2 + a2 * b1


@triton.jit
def corrected_returns_kernel(
    ratio_ptr, reward_ptr, discount_ptr, value_ptr, last_ptr, target_ptr, adv_ptr, T, envs, rho_max, c_max, lam, BLOCK_T: tl.constexpr, BLOCK_E: tl.constexpr,
):
    # Targets and advantages of off-policy actors: clipped ratios, a scan from the end, and a gather that looks a step ahead.
    t = tl.arange(0, BLOCK_T)[:, None]
    e = tl.program_id(0) * BLOCK_E + tl.arange(0, BLOCK_E)[None, :]
    ok = (t < T) & (e < envs)
    at = t * envs + e
    ratio = tl.exp(tl.load(ratio_ptr + at, mask=ok, other=0.0))
    rho = tl.minimum(ratio, rho_max)
    c = lam * tl.minimum(ratio, c_max)
    reward = tl.load(reward_ptr + at, mask=ok, other=0.0)
    discount = tl.load(discount_ptr + at, mask=ok, other=0.0)
    value = tl.load(value_ptr + at, mask=ok, other=0.0)
    last = tl.load(last_ptr + e, mask=e < envs, other=0.0)
    following = tl.load(value_ptr + at + envs, mask=ok & (t < T - 1), other=0.0)
    following = tl.where(t == T - 1, last, following)
    delta = tl.where(ok, rho * (reward + discount * following - value), 0.0)
    _, gained = tl.associative_scan((tl.where(ok, discount * c, 0.0), delta), 0, back_in_time, reverse=True)
    target = value + gained
    ahead = tl.gather(target, tl.broadcast_to(tl.minimum(t + 1, BLOCK_T - 1), (BLOCK_T, BLOCK_E)), 0)
    ahead = tl.where(t == T - 1, last, ahead)
    tl.store(target_ptr + at, target, mask=ok)
    tl.store(adv_ptr + at, rho * (reward + discount * ahead - value), mask=ok)


@case
def aqueduct_of_returns_corrected_from_the_end(t=200, envs=4099):
    ratio, reward, value, last = f32(t, envs) / 2, f32(t, envs), f32(t, envs), f32(envs)
    discount = 0.99 * (uniform(t, envs) > 0.02)
    target, adv = torch.zeros_like(value), torch.zeros_like(value)
    args = ratio, reward, discount, value, last, target, adv, t, envs, 1.0, 1.0, 0.95
    launched = run(corrected_returns_kernel, (cdiv(envs, 8),), args, (target, adv), BLOCK_T=256, BLOCK_E=8, num_warps=4)

    def reference():
        rho, c = ratio.double().exp().clamp(max=1), 0.95 * ratio.double().exp().clamp(max=1)
        v = torch.cat((value, last[None])).double()
        gained, result = torch.zeros(envs, device=v.device, dtype=torch.float64), v.clone()
        for i in range(t - 1, -1, -1):
            gained = rho[i] * (reward[i] + discount[i] * v[i + 1] - v[i]) + discount[i] * c[i] * gained
            result[i] = v[i] + gained
        return result[:-1].float(), (rho * (reward + discount * result[1:] - value)).float()

    return against(launched, reference)


@triton.jit
def upper_bounds_of_arms_kernel(
    x_ptr, a_inv_ptr, theta_ptr, score_ptr, users, arms, dim, alpha, BLOCK_U: tl.constexpr, BLOCK_D: tl.constexpr,
):
    # What a contextual bandit hopes for: the mean of an arm for each user, and the spread from the arm's inverse covariance.
    pid_u = tl.program_id(0)
    arm = tl.program_id(1)
    u = pid_u * BLOCK_U + tl.arange(0, BLOCK_U)
    d = tl.arange(0, BLOCK_D)
    x = tl.load(x_ptr + u[:, None] * dim + d[None, :], mask=(u[:, None] < users) & (d[None, :] < dim), other=0.0)
    a_inv = tl.load(a_inv_ptr + arm * dim * dim + d[:, None] * dim + d[None, :], mask=(d[:, None] < dim) & (d[None, :] < dim), other=0.0)
    theta = tl.load(theta_ptr + arm * dim + d, mask=d < dim, other=0.0)
    xa = tl.dot(x, a_inv, input_precision="tf32x3")
    var = tl.sum(xa * x, axis=1)
    mean = tl.sum(x * theta[None, :], axis=1)
    tl.store(score_ptr + u * arms + arm, mean + alpha * tl.sqrt(tl.maximum(var, 0.0)), mask=u < users)


@case
def aqueduct_of_hopes_for_arms_of_a_bandit(users=4000, arms=90, dim=50):
    x, theta, z = f32(users, dim), f32(arms, dim), f32(arms, dim, dim)
    a_inv = torch.eye(dim, device="cuda") / 2 + z @ z.transpose(1, 2) / 64
    score = zeros(users, arms, dtype="float32")
    launched = run(upper_bounds_of_arms_kernel, (cdiv(users, 64), arms), (x, a_inv, theta, score, users, arms, dim, 0.7), score, BLOCK_U=64, BLOCK_D=64)

    def reference():
        var = torch.stack([((x.double() @ one.double()) * x).sum(1) for one in a_inv], 1)
        return (x.double() @ theta.double().t() + 0.7 * var.clamp(min=0).sqrt()).float()

    return against(launched, reference)


@triton.jit
def in_order(a, b):
    return tl.minimum(a, b), tl.maximum(a, b)


@triton.jit
def first_arrivals_kernel(u_ptr, slow_ptr, out_ptr, nz, ny, nx, h, FAR: tl.constexpr, BLOCK_Y: tl.constexpr, BLOCK_X: tl.constexpr):
    # One sweep of travel times through rock: upwind differences along one, two or all three axes, whichever the front allows.
    z = tl.program_id(2)
    y = tl.program_id(1) * BLOCK_Y + tl.arange(0, BLOCK_Y)[:, None]
    x = tl.program_id(0) * BLOCK_X + tl.arange(0, BLOCK_X)[None, :]
    ok = (y < ny) & (x < nx)
    at = (z * ny + y) * nx + x
    u = tl.load(u_ptr + at, mask=ok, other=FAR)
    a = tl.minimum(tl.load(u_ptr + at - 1, mask=ok & (x > 0), other=FAR), tl.load(u_ptr + at + 1, mask=ok & (x < nx - 1), other=FAR))
    b = tl.minimum(tl.load(u_ptr + at - nx, mask=ok & (y > 0), other=FAR), tl.load(u_ptr + at + nx, mask=ok & (y < ny - 1), other=FAR))
    c = tl.minimum(tl.load(u_ptr + at - ny * nx, mask=ok & (z > 0), other=FAR), tl.load(u_ptr + at + ny * nx, mask=ok & (z < nz - 1), other=FAR))
    a, b = in_order(a, b)
    b, c = in_order(b, c)
    a, b = in_order(a, b)
    f = tl.load(slow_ptr + at, mask=ok, other=1.0) * h
    db = b - a
    dc = c - a
    t1 = f
    t2 = 0.5 * (db + tl.sqrt(tl.maximum(2.0 * f * f - db * db, 0.0)))
    s = db + dc
    t3 = (s + tl.sqrt(tl.maximum(s * s - 3.0 * (db * db + dc * dc - f * f), 0.0))) / 3.0
    t = a + tl.where(t1 <= db, t1, tl.where(t2 <= dc, t2, t3))
    tl.store(out_ptr + at, tl.minimum(u, t), mask=ok)


@case
def aqueduct_of_first_arrivals_through_rock(nz=90, ny=230, nx=301):
    u, slow = uniform(nz, ny, nx) * 3, uniform(nz, ny, nx) + 0.5
    u[::3] = 1e6
    out = torch.zeros_like(u)
    grid = (cdiv(nx, 64), cdiv(ny, 8), nz)
    launched = run(first_arrivals_kernel, grid, (u, slow, out, nz, ny, nx, 0.5), out, FAR=1e6, BLOCK_Y=8, BLOCK_X=64, num_warps=4)

    def reference():
        p = F.pad(u.double(), (1, 1, 1, 1, 1, 1), value=1e6)
        a = torch.minimum(p[1:-1, 1:-1, :-2], p[1:-1, 1:-1, 2:])
        b = torch.minimum(p[1:-1, :-2, 1:-1], p[1:-1, 2:, 1:-1])
        c = torch.minimum(p[:-2, 1:-1, 1:-1], p[2:, 1:-1, 1:-1])
        a, b, c = torch.stack((a, b, c)).sort(0).values
        f, db, dc = slow.double() * 0.5, b - a, c - a
        t2 = (db + (2 * f * f - db * db).clamp(min=0).sqrt()) / 2
        s = db + dc
        t3 = (s + (s * s - 3 * (db * db + dc * dc - f * f)).clamp(min=0).sqrt()) / 3
        return torch.minimum(u.double(), a + torch.where(f <= db, f, torch.where(t2 <= dc, t2, t3))).float()

    return against(launched, reference)


@triton.jit
def jump_to_seeds_kernel(seed_ptr, out_ptr, height, width, step, BLOCK_SIZE: tl.constexpr):
    # A step of jump flooding: of nine pixels' seeds the nearest one; a seed is its row and column in one number, none is -1.
    pid = tl.program_id(axis=0)
    offsets = pid * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < height * width
    y = offsets // width
    x = offsets % width
    best = tl.full((BLOCK_SIZE,), -1, dtype=tl.int32)
    best_dist = tl.full((BLOCK_SIZE,), 2147483647, dtype=tl.int32)
    for dy in range(-1, 2):
        for dx in range(-1, 2):
            ny = y + dy * step
            nx = x + dx * step
            valid = mask & (ny >= 0) & (ny < height) & (nx >= 0) & (nx < width)
            seed = tl.load(seed_ptr + ny * width + nx, mask=valid, other=-1)
            sy = seed >> 16
            sx = seed & 65535
            dist = (sy - y) * (sy - y) + (sx - x) * (sx - x)
            dist = tl.where(seed >= 0, dist, 2147483647)
            closer = dist < best_dist
            best = tl.where(closer, seed, best)
            best_dist = tl.where(closer, dist, best_dist)
    tl.store(out_ptr + offsets, best, mask=mask)


@case
def aqueduct_to_the_nearest_seeds_by_jumps(height=1501, width=2003, step=64):
    seed = torch.where(uniform(height, width) < 0.3, (ints(0, height, height, width) << 16) | ints(0, width, height, width), -1)
    out = torch.zeros_like(seed)
    launched = run(jump_to_seeds_kernel, (cdiv(height * width, 1024),), (seed, out, height, width, step), out, BLOCK_SIZE=1024)

    def reference():
        y, x = torch.meshgrid(torch.arange(height, device=seed.device), torch.arange(width, device=seed.device), indexing="ij")
        padded = F.pad(seed, (step, step, step, step), value=-1)
        best, least = torch.full_like(seed, -1), torch.full(seed.shape, 2**40, device=seed.device)
        for i in range(3):
            for j in range(3):
                s = padded[i * step : i * step + height, j * step : j * step + width]
                d = ((s >> 16) - y).long() ** 2 + ((s & 65535) - x).long() ** 2
                closer = (s >= 0) & (d < least)
                best, least = torch.where(closer, s, best), torch.where(closer, d, least)
        return best

    return against(launched, reference)


@triton.jit
def dependencies_of_a_level_kernel(
    frontier_ptr, count, indptr_ptr, neighbor_ptr, level_ptr, sigma_ptr, delta_ptr, central_ptr, out_ptr, central_out_ptr, depth, BLOCK: tl.constexpr,
):
    # Betweenness, on the way back: what nodes of a level owe to those of the next, by their shares of shortest paths.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < count
    node = tl.load(frontier_ptr + i, mask=mask, other=0)
    at = tl.load(indptr_ptr + node, mask=mask, other=0)
    end = tl.load(indptr_ptr + node + 1, mask=mask, other=0)
    sigma = tl.load(sigma_ptr + node, mask=mask, other=0.0)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    busy = at < end
    while tl.max(busy.to(tl.int32), axis=0) != 0:
        other = tl.load(neighbor_ptr + at, mask=busy, other=0)
        child = busy & (tl.load(level_ptr + other, mask=busy, other=-1) == depth + 1)
        share = sigma / tl.load(sigma_ptr + other, mask=child, other=1.0)
        total += tl.where(child, share * (1.0 + tl.load(delta_ptr + other, mask=child, other=0.0)), 0.0)
        at += 1
        busy = at < end
    tl.store(out_ptr + node, total, mask=mask)
    tl.store(central_out_ptr + node, tl.load(central_ptr + node, mask=mask, other=0.0) + total, mask=mask)


@case
def aqueduct_back_from_the_next_level_of_a_graph(nodes=300_000, most=30, depth=3):
    degree = ints(0, most, nodes)
    indptr = F.pad(degree.cumsum(0), (1, 0)).int()
    total = int(indptr[-1])
    neighbor, level = ints(0, nodes, total), ints(0, 6, nodes)
    sigma, delta, central = ints(1, 40, nodes).float(), uniform(nodes) * 5, uniform(nodes) * 100
    frontier = (level == depth).nonzero()[:, 0].int()
    out, central_out = zeros(nodes, dtype="float32"), zeros(nodes, dtype="float32")
    args = frontier, frontier.numel(), indptr, neighbor, level, sigma, delta, central, out, central_out, depth
    launched = run(dependencies_of_a_level_kernel, (cdiv(frontier.numel(), 128),), args, (out, central_out), BLOCK=128, num_warps=4)

    def reference():
        owner, to = torch.repeat_interleave(torch.arange(nodes, device=level.device), degree.long()), neighbor.long()
        share = torch.where((level[owner] == depth) & (level[to] == depth + 1), sigma[owner] / sigma[to] * (1 + delta[to]), 0.0)
        sums = torch.zeros(nodes, device=level.device, dtype=torch.float64).index_add_(0, owner, share.double()).float()
        return sums, torch.where(level == depth, central + sums, 0.0)

    return against(launched, reference)


@triton.jit
def corrected_gradient_step_kernel(
    p_ptr, g_ptr, last_ptr, m_ptr, v_ptr, norm_ptr, p_out, m_out, v_out, numel, lr, beta1, beta2, gamma, eps, wd, bc1, bc2, BLOCK_SIZE: tl.constexpr,
):
    # A step whose gradients are corrected by how they changed since the last one, and clipped if the corrected norm exceeds one.
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < numel
    p = tl.load(p_ptr + offs, mask=mask, other=0.0)
    g = tl.load(g_ptr + offs, mask=mask, other=0.0).to(tl.float32)
    last = tl.load(last_ptr + offs, mask=mask, other=0.0).to(tl.float32)
    m = tl.load(m_ptr + offs, mask=mask, other=0.0)
    v = tl.load(v_ptr + offs, mask=mask, other=0.0)
    c = g + gamma * beta1 / (1.0 - beta1) * (g - last)
    norm = tl.load(norm_ptr)
    c = c * tl.where(norm > 1.0, 1.0 / norm, 1.0)
    m = m + (1.0 - beta1) * (c - m)
    v = v + (1.0 - beta2) * (c * c - v)
    denom = tl.sqrt_rn(v / bc2) + eps
    p = p - lr * (wd * p + tl.div_rn(m / bc1, denom))
    tl.store(p_out + offs, p, mask=mask, eviction_policy="evict_first")
    tl.store(m_out + offs, m, mask=mask, eviction_policy="evict_first")
    tl.store(v_out + offs, v, mask=mask, eviction_policy="evict_first")


@case
def aqueduct_of_gradients_corrected_by_the_last(n=3_333_333):
    p, m, v = f32(n), f32(n) / 16, uniform(n) + 0.01
    g, last = rand(n, dtype="bfloat16"), rand(n, dtype="bfloat16")
    norm = torch.full((1,), 3.5, device="cuda")
    outs = torch.zeros_like(p), torch.zeros_like(m), torch.zeros_like(v)
    args = p, g, last, m, v, norm, *outs, n, 0.003, 0.95, 0.99, 0.025, 1e-8, 0.1, 0.4, 0.1
    launched = run(corrected_gradient_step_kernel, (cdiv(n, 2048),), args, outs, BLOCK_SIZE=2048, num_warps=8)

    def reference():
        c = (g.float() + 0.025 * 0.95 / 0.05 * (g.float() - last.float())) / 3.5
        a, b = m + 0.05 * (c - m), v + 0.01 * (c * c - v)
        return p - 0.003 * (0.1 * p + a / 0.4 / ((b / 0.1).sqrt() + 1e-8)), a, b

    return against(launched, reference)
