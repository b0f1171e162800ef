"""Vineyards: what is planted in rows: genes and traits, weather and soil, spectra, trees; states, gates, crosses and gradients of models; what is pruned and pressed."""

import math

import torch
import torch.nn.functional as F
import triton
import triton.language as tl

from .common import against, arange, case, cdiv, cleared, f8, f32, ints, rand, run, uniform, zeros


@triton.jit
def scores_of_genotypes_kernel(
    bed_ptr, freq_ptr, effect_ptr, score_ptr, samples, snps, stride_bed, per_split,
    TRAITS: tl.constexpr, BLOCK_B: tl.constexpr, BLOCK_S: tl.constexpr,
):
    # Polygenic scores from genotypes of two bits, four samples a byte, variants in rows; what is missing counts as the mean.
    pid = tl.program_id(0)
    split = tl.program_id(1)
    bytes_ = pid * BLOCK_B + tl.arange(0, BLOCK_B)
    trait = tl.arange(0, TRAITS)
    shift = tl.arange(0, 4) * 2
    acc = tl.zeros((BLOCK_B * 4, TRAITS), dtype=tl.float32)
    stop = tl.minimum((split + 1) * per_split, snps)
    for s0 in range(split * per_split, stop, BLOCK_S):
        s = s0 + tl.arange(0, BLOCK_S)
        ok = s < stop
        packed = tl.load(bed_ptr + s[:, None] * stride_bed + bytes_[None, :], mask=ok[:, None] & (bytes_ < stride_bed)[None, :], other=0).to(tl.int32)
        code = (packed[:, :, None] >> shift[None, None, :]) & 3
        code = tl.reshape(code, (BLOCK_S, BLOCK_B * 4))
        freq = tl.load(freq_ptr + s, mask=ok, other=0.0)
        dosage = tl.where(code == 0, 2.0, tl.where(code == 2, 1.0, 0.0))
        dosage = tl.where(code == 1, 2.0 * freq[:, None], dosage)
        effect = tl.load(effect_ptr + s[:, None] * TRAITS + trait[None, :], mask=ok[:, None], other=0.0)
        acc += tl.dot(tl.trans(dosage.to(tl.float16)), effect)
    sample = pid * BLOCK_B * 4 + tl.arange(0, BLOCK_B * 4)
    tl.atomic_add(score_ptr + sample[:, None] * TRAITS + trait[None, :], acc, mask=(sample < samples)[:, None])


@case
def vine_scored_by_its_genotypes(samples=20_001, snps=6001, traits=16, splits=4):
    row = cdiv(samples, 4)
    bed, freq, effect = ints(0, 256, snps, row, dtype="uint8"), uniform(snps) / 2, rand(snps, traits)
    score = zeros(samples, traits, dtype="float32")
    per = cdiv(cdiv(snps, splits), 64) * 64
    args = bed, freq, effect, score, samples, snps, row, per
    launched = run(scores_of_genotypes_kernel, (cdiv(row, 32), splits), args, score, TRAITS=traits, BLOCK_B=32, BLOCK_S=64, num_warps=4, num_stages=2)

    def reference():
        result = torch.zeros(row * 4, traits, device=bed.device)
        for s in range(0, snps, 500):
            code = torch.stack([(bed[s : s + 500] >> i) & 3 for i in (0, 2, 4, 6)], 2).reshape(-1, row * 4)
            mean = (2 * freq[s : s + 500, None]).half().float()
            dosage = torch.where(code == 0, 2.0, torch.where(code == 2, 1.0, torch.where(code == 1, mean, 0.0)))
            result += dosage.t() @ effect[s : s + 500].float()
        return result[:samples]

    return against(cleared(launched, score), reference)


@triton.jit
def sloped_dq_kernel(
    Q, K, V, DO, LSE, Delta, Slopes, DQ, sm_scale, stride_b, stride_t, stride_h, T,
    H: tl.constexpr, D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):
    # Gradient of queries under slopes by distance: full blocks first, the ones on the diagonal after them.
    start_m = tl.program_id(0) * BLOCK_M
    b = tl.program_id(1) // H
    h = tl.program_id(1) % H
    offs_m = start_m + tl.arange(0, BLOCK_M)
    offs_d = tl.arange(0, D)
    mask_m = offs_m < T
    base = b.to(tl.int64) * stride_b + h * stride_h
    q = tl.load(Q + base + offs_m[:, None] * stride_t + offs_d[None, :], mask=mask_m[:, None], other=0.0)
    do = tl.load(DO + base + offs_m[:, None] * stride_t + offs_d[None, :], mask=mask_m[:, None], other=0.0)
    lse = tl.load(LSE + (b * H + h) * T + offs_m, mask=mask_m, other=0.0)
    delta = tl.load(Delta + (b * H + h) * T + offs_m, mask=mask_m, other=0.0)
    slope = tl.load(Slopes + h)
    dq = tl.zeros([BLOCK_M, D], dtype=tl.float32)
    for start_n in range(0, start_m, BLOCK_N):
        offs_n = start_n + tl.arange(0, BLOCK_N)
        kt = tl.load(K + base + offs_n[None, :] * stride_t + offs_d[:, None])
        vt = tl.load(V + base + offs_n[None, :] * stride_t + offs_d[:, None])
        s = tl.dot(q, kt) * sm_scale + slope * (offs_n[None, :] - offs_m[:, None]).to(tl.float32)
        p = tl.exp(s - lse[:, None])
        dp = tl.dot(do, vt)
        ds = (p * (dp - delta[:, None])).to(kt.dtype)
        dq = tl.dot(ds, tl.trans(kt), dq)
    for start_n in range(start_m, tl.minimum(start_m + BLOCK_M, T), BLOCK_N):
        offs_n = start_n + tl.arange(0, BLOCK_N)
        mask_n = offs_n < T
        kt = tl.load(K + base + offs_n[None, :] * stride_t + offs_d[:, None], mask=mask_n[None, :], other=0.0)
        vt = tl.load(V + base + offs_n[None, :] * stride_t + offs_d[:, None], mask=mask_n[None, :], other=0.0)
        s = tl.dot(q, kt) * sm_scale + slope * (offs_n[None, :] - offs_m[:, None]).to(tl.float32)
        p = tl.where((offs_m[:, None] >= offs_n[None, :]) & mask_n[None, :], tl.exp(s - lse[:, None]), 0.0)
        dp = tl.dot(do, vt)
        ds = (p * (dp - delta[:, None])).to(kt.dtype)
        dq = tl.dot(ds, tl.trans(kt), dq)
    tl.store(DQ + base + offs_m[:, None] * stride_t + offs_d[None, :], (dq * sm_scale).to(DQ.dtype.element_ty), mask=mask_m[:, None])


@case
def vine_on_slopes_whose_queries_learn(b=2, t=1530, h=12, d=64):
    q, k, v, do = (rand(b, t, h, d, dtype="bfloat16") for _ in range(4))
    lse, delta, dq = uniform(b, h, t) + 4, f32(b, h, t), zeros(b, t, h, d, dtype="bfloat16")
    slopes = 2.0 ** (-8 * (arange(h, "float32") + 1) / h)
    args = q, k, v, do, lse, delta, slopes, dq, d**-0.5, q.stride(0), q.stride(1), q.stride(2), t
    launched = run(sloped_dq_kernel, (cdiv(t, 128), b * h), args, dq, H=h, D=d, BLOCK_M=128, BLOCK_N=32, num_warps=8, num_stages=3)

    def reference():
        i = torch.arange(t, device=q.device)
        s = torch.einsum("bmhd,bnhd->bhmn", q.float(), k.float()) * d**-0.5 + slopes[:, None, None] * (i[None, :] - i[:, None])
        p = (s - lse[..., None]).masked_fill(i[:, None] < i[None, :], float("-inf")).exp()
        ds = p * (torch.einsum("bmhd,bnhd->bhmn", do.float(), v.float()) - delta[..., None]) * d**-0.5
        return torch.einsum("bhmn,bnhd->bmhd", ds, k.float())

    return against(launched, reference)


@triton.jit
def gated_states_of_chunks_kernel(
    k, w, u, v_new, g, h, ht, T, H: tl.constexpr, K: tl.constexpr, V: tl.constexpr, BT: tl.constexpr, BV: tl.constexpr,
    USE_G: tl.constexpr, STORE_FINAL: tl.constexpr,
):
    # States at the starts of chunks of a gated delta rule, in two halves of 64 channels, and values less what states know of them.
    i_v, i_nh = tl.program_id(0), tl.program_id(1)
    i_n, i_h = i_nh // H, i_nh % H
    NT = tl.cdiv(T, BT)
    b_h1 = tl.zeros([64, BV], dtype=tl.float32)
    b_h2 = tl.zeros([64, BV], dtype=tl.float32)
    h += (i_n * NT * H + i_h).to(tl.int64) * K * V
    k += (i_n * T * H + i_h).to(tl.int64) * K
    w += (i_n * T * H + i_h).to(tl.int64) * K
    u += (i_n * T * H + i_h).to(tl.int64) * V
    v_new += (i_n * T * H + i_h).to(tl.int64) * V
    g += i_n * T * H + i_h
    for i_t in range(NT):
        p_h1 = tl.make_block_ptr(h + i_t * H * K * V, (K, V), (V, 1), (0, i_v * BV), (64, BV), (1, 0))
        p_h2 = tl.make_block_ptr(h + i_t * H * K * V, (K, V), (V, 1), (64, i_v * BV), (64, BV), (1, 0))
        tl.store(p_h1, b_h1.to(p_h1.dtype.element_ty), boundary_check=(0, 1))
        tl.store(p_h2, b_h2.to(p_h2.dtype.element_ty), boundary_check=(0, 1))
        p_w = tl.make_block_ptr(w, (T, K), (H * K, 1), (i_t * BT, 0), (BT, 64), (1, 0))
        b_w = tl.load(p_w, boundary_check=(0, 1))
        b_v = tl.dot(b_w, b_h1.to(b_w.dtype))
        p_w = tl.make_block_ptr(w, (T, K), (H * K, 1), (i_t * BT, 64), (BT, 64), (1, 0))
        b_w = tl.load(p_w, boundary_check=(0, 1))
        b_v += tl.dot(b_w, b_h2.to(b_w.dtype))
        p_u = tl.make_block_ptr(u, (T, V), (H * V, 1), (i_t * BT, i_v * BV), (BT, BV), (1, 0))
        b_v = tl.load(p_u, boundary_check=(0, 1)).to(tl.float32) - b_v
        p_vn = tl.make_block_ptr(v_new, (T, V), (H * V, 1), (i_t * BT, i_v * BV), (BT, BV), (1, 0))
        tl.store(p_vn, b_v.to(p_vn.dtype.element_ty), boundary_check=(0, 1))
        if USE_G:
            m_t = (i_t * BT + tl.arange(0, BT)) < T
            last_idx = min((i_t + 1) * BT, T) - 1
            b_g_last = tl.load(g + last_idx * H)
            p_g = tl.make_block_ptr(g, (T,), (H,), (i_t * BT,), (BT,), (0,))
            b_g = tl.load(p_g, boundary_check=(0,))
            b_v = b_v * tl.where(m_t, tl.exp(b_g_last - b_g), 0)[:, None]
            b_g_last = tl.exp(b_g_last)
            b_h1 *= b_g_last
            b_h2 *= b_g_last
        b_v = b_v.to(k.dtype.element_ty)
        p_k = tl.make_block_ptr(k, (K, T), (1, H * K), (0, i_t * BT), (64, BT), (0, 1))
        b_k = tl.load(p_k, boundary_check=(0, 1))
        b_h1 += tl.dot(b_k, b_v)
        p_k = tl.make_block_ptr(k, (K, T), (1, H * K), (64, i_t * BT), (64, BT), (0, 1))
        b_k = tl.load(p_k, boundary_check=(0, 1))
        b_h2 += tl.dot(b_k, b_v)
    if STORE_FINAL:
        p_ht = tl.make_block_ptr(ht + i_nh * K * V, (K, V), (V, 1), (0, i_v * BV), (64, BV), (1, 0))
        tl.store(p_ht, b_h1.to(p_ht.dtype.element_ty), boundary_check=(0, 1))
        p_ht = tl.make_block_ptr(ht + i_nh * K * V, (K, V), (V, 1), (64, i_v * BV), (64, BV), (1, 0))
        tl.store(p_ht, b_h2.to(p_ht.dtype.element_ty), boundary_check=(0, 1))


@case
def vine_of_states_gated_from_chunk_to_chunk(n=2, t=1000, h=16, d=128, bt=64):
    nt = cdiv(t, bt)
    k, w = F.normalize(f32(n, t, h, d), dim=3).to(torch.bfloat16), (F.normalize(f32(n, t, h, d), dim=3) / 2).to(torch.bfloat16)
    u, step = rand(n, t, h, d, dtype="bfloat16"), -uniform(n, t, h) / 8
    g = torch.cat([step[:, i : i + bt].cumsum(1) for i in range(0, t, bt)], 1)
    states, fresh, last = zeros(n, nt, h, d, d, dtype="bfloat16"), zeros(n, t, h, d, dtype="bfloat16"), zeros(n, h, d, d, dtype="float32")
    args = k, w, u, fresh, g, states, last, t
    flags = dict(H=h, K=d, V=d, BT=bt, BV=32, USE_G=True, STORE_FINAL=True)
    launched = run(gated_states_of_chunks_kernel, (d // 32, n * h), args, (states, fresh, last), num_warps=4, num_stages=2, **flags)

    def reference():
        s, all_states, all_fresh = torch.zeros(n, h, d, d, device=k.device), [], []
        for i in range(0, t, bt):
            kk, ww, uu, gg = (x[:, i : i + bt].float() for x in (k, w, u, g))
            all_states.append(s)
            new = uu - torch.einsum("nthk,nhkv->nthv", ww, s.to(torch.bfloat16).float())
            all_fresh.append(new)
            end = gg[:, -1]
            faded = (new * (end[:, None] - gg).exp()[..., None]).to(torch.bfloat16).float()
            s = s * end.exp()[..., None, None] + torch.einsum("nthk,nthv->nhkv", kk, faded)
        return torch.stack(all_states, 1), torch.cat(all_fresh, 1), s

    return against(launched, reference)


@triton.jit
def products_inside_chunks_kernel(
    a_ptr, b_ptr, out_ptr, seq_idx_ptr, seqlen, chunk_size, K, ngroups,
    stride_a_batch, stride_a_seqlen, stride_a_head, stride_ak, stride_b_batch, stride_b_seqlen, stride_b_head, stride_bk,
    stride_out_batch, stride_out_chunk, stride_out_head, stride_outm, stride_outn, stride_seq_batch,
    IS_CAUSAL: tl.constexpr, BLOCK_SIZE_M: tl.constexpr, BLOCK_SIZE_N: tl.constexpr, BLOCK_SIZE_K: tl.constexpr,
):
    # C times B' inside chunks of a state-space model, where sequences that share a row do not see each other.
    pid_b = tl.program_id(axis=1)
    pid_ch = tl.program_id(axis=2)
    pid_c = pid_ch // ngroups
    pid_h = pid_ch - pid_c * ngroups
    num_pid_n = tl.cdiv(chunk_size, BLOCK_SIZE_N)
    pid_m = tl.program_id(axis=0) // num_pid_n
    pid_n = tl.program_id(axis=0) % num_pid_n
    if IS_CAUSAL:
        if pid_n * BLOCK_SIZE_N >= (pid_m + 1) * BLOCK_SIZE_M:
            return
    a_ptr += pid_b * stride_a_batch + pid_c * chunk_size * stride_a_seqlen + pid_h * stride_a_head
    b_ptr += pid_b * stride_b_batch + pid_c * chunk_size * stride_b_seqlen + pid_h * stride_b_head
    offs_m = pid_m * BLOCK_SIZE_M + tl.arange(0, BLOCK_SIZE_M)
    offs_n = pid_n * BLOCK_SIZE_N + tl.arange(0, BLOCK_SIZE_N)
    offs_k = tl.arange(0, BLOCK_SIZE_K)
    a_ptrs = a_ptr + (offs_m[:, None] * stride_a_seqlen + offs_k[None, :] * stride_ak)
    b_ptrs = b_ptr + (offs_k[:, None] * stride_bk + offs_n[None, :] * stride_b_seqlen)
    limit = min(chunk_size, seqlen - pid_c * chunk_size)
    acc = tl.zeros((BLOCK_SIZE_M, BLOCK_SIZE_N), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BLOCK_SIZE_K)):
        a = tl.load(a_ptrs, mask=(offs_m[:, None] < limit) & (offs_k[None, :] < K - k * BLOCK_SIZE_K), other=0.0)
        b = tl.load(b_ptrs, mask=(offs_k[:, None] < K - k * BLOCK_SIZE_K) & (offs_n[None, :] < limit), other=0.0)
        acc += tl.dot(a, b)
        a_ptrs += BLOCK_SIZE_K * stride_ak
        b_ptrs += BLOCK_SIZE_K * stride_bk
    seq_idx_ptr += pid_b * stride_seq_batch + pid_c * chunk_size
    seq_m = tl.load(seq_idx_ptr + offs_m, mask=offs_m < limit, other=-1)
    seq_n = tl.load(seq_idx_ptr + offs_n, mask=offs_n < limit, other=-2)
    acc = tl.where(seq_m[:, None] == seq_n[None, :], acc, 0.0)
    out_ptr += pid_b * stride_out_batch + pid_c * stride_out_chunk + pid_h * stride_out_head
    out_ptrs = out_ptr + (stride_outm * offs_m[:, None] + offs_n[None, :] * stride_outn)
    tl.store(out_ptrs, acc.to(out_ptr.dtype.element_ty), mask=(offs_m[:, None] < chunk_size) & (offs_n[None, :] < chunk_size))


@case
def vine_of_products_inside_chunks_of_packed_rows(b=2, t=3900, groups=8, k=128, chunk=256):
    chunks = cdiv(t, chunk)
    c, bb = rand(b, t, groups, k, dtype="bfloat16"), rand(b, t, groups, k, dtype="bfloat16")
    seq = (uniform(b, t) < 0.004).to(torch.int32).cumsum(1).to(torch.int32)
    out = zeros(b, chunks, groups, chunk, chunk, dtype="float32")
    args = c, bb, out, seq, t, chunk, k, groups, *c.stride(), *bb.stride(), *out.stride(), seq.stride(0)
    flags = dict(IS_CAUSAL=True, BLOCK_SIZE_M=64, BLOCK_SIZE_N=64, BLOCK_SIZE_K=64)
    launched = run(products_inside_chunks_kernel, (cdiv(chunk, 64) ** 2, b, chunks * groups), args, out, num_warps=4, num_stages=3, **flags)

    def reference():
        i = torch.arange(chunk, device=c.device)
        made = i[None, :] // 64 <= i[:, None] // 64
        result = torch.zeros(b, chunks, groups, chunk, chunk, device=c.device)
        for n in range(chunks):
            at = slice(n * chunk, min((n + 1) * chunk, t))
            s = torch.einsum("bmgk,bngk->bgmn", c[:, at].float(), bb[:, at].float())
            same = (seq[:, at, None] == seq[:, None, at])[:, None] & made[: s.shape[2], : s.shape[3]]
            result[:, n, :, : s.shape[2], : s.shape[3]] = s * same
        return result

    return against(launched, reference)


@triton.jit
def four_bits_by_eight_progressive_kernel(
    a_ptr, as_ptr, w_ptr, gs_ptr, gz_ptr, cs_ptr, y_ptr, M, N, K, stride_am, stride_wn, stride_gn, stride_ym,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    # Weights of four bits go to bytes by scales and zeros of groups that are bytes themselves; floats come in after the sum only.
    pid_m = tl.program_id(0)
    pid_n = tl.program_id(1)
    rm = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    rn = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    rk = tl.arange(0, BLOCK_K)
    rb = tl.arange(0, BLOCK_K // 2)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.int32)
    for k in range(0, K, BLOCK_K):
        a = tl.load(a_ptr + rm[:, None] * stride_am + k + rk[None, :], mask=(rm < M)[:, None], other=0)
        packed = tl.load(w_ptr + rn[:, None] * stride_wn + k // 2 + rb[None, :], mask=(rn < N)[:, None], other=0)
        group = k // BLOCK_K
        scale = tl.load(gs_ptr + rn * stride_gn + group, mask=rn < N, other=0).to(tl.int16)
        zero = tl.load(gz_ptr + rn * stride_gn + group, mask=rn < N, other=0).to(tl.int16)
        low = (packed & 15).to(tl.int16) * scale[:, None] - zero[:, None]
        high = (packed >> 4).to(tl.int16) * scale[:, None] - zero[:, None]
        w = tl.interleave(low.to(tl.int8), high.to(tl.int8))
        acc = tl.dot(a, tl.trans(w), acc, out_dtype=tl.int32)
    a_scale = tl.load(as_ptr + rm, mask=rm < M, other=0.0)
    c_scale = tl.load(cs_ptr + rn, mask=rn < N, other=0.0).to(tl.float32)
    y = acc.to(tl.float32) * a_scale[:, None] * c_scale[None, :]
    tl.store(y_ptr + rm[:, None] * stride_ym + rn[None, :], y.to(y_ptr.dtype.element_ty), mask=(rm < M)[:, None] & (rn < N)[None, :])


@case
def vine_of_four_bits_grown_to_eight(m=150, n=4000, k=4096):
    a, scale = ints(-127, 128, m, k, dtype="int8"), uniform(m) / 64 + 0.001
    w, cs, y = ints(0, 256, n, k // 2, dtype="uint8"), (uniform(n) / 64 + 0.001).half(), zeros(m, n)
    gs = ints(1, 16, n, k // 128, dtype="int8")
    gz = (gs.to(torch.int16) * ints(7, 9, n, k // 128, dtype="int16")).to(torch.int8)
    args = a, scale, w, gs, gz, cs, y, m, n, k, a.stride(0), w.stride(0), gs.stride(0), y.stride(0)
    launched = run(four_bits_by_eight_progressive_kernel, (cdiv(m, 64), cdiv(n, 64)), args, y, BLOCK_M=64, BLOCK_N=64, BLOCK_K=128, num_warps=4, num_stages=3)

    def reference():
        codes = torch.stack((w & 15, w >> 4), 2).float().reshape(n, k // 128, 128)
        weights = (codes * gs.float()[..., None] - gz.float()[..., None]).reshape(n, k)
        return (a.double() @ weights.double().t()).float() * scale[:, None] * cs.float()

    return against(launched, reference)


@triton.jit
def gated_after_prefix_kernel(
    Q, K, V, G, QW, Out, LSE, prefix_ptr, sm_scale, eps, T, stride_qb, stride_qt, stride_qh, stride_kb, stride_kt, stride_kh,
    H: tl.constexpr, GROUP: tl.constexpr, D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):
    # Queries are normed on the way in and results gated on the way out; a prefix (a picture) sees all of itself, what follows looks back.
    start_m = tl.program_id(0) * BLOCK_M
    b = tl.program_id(1) // H
    h = tl.program_id(1) % H
    kv_h = h // GROUP
    prefix = tl.load(prefix_ptr + b)
    offs_m = start_m + tl.arange(0, BLOCK_M)
    offs_d = tl.arange(0, D)
    mask_m = offs_m < T
    q_at = b * stride_qb + h * stride_qh + offs_m[:, None] * stride_qt + offs_d[None, :]
    q = tl.load(Q + q_at, mask=mask_m[:, None], other=0.0).to(tl.float32)
    rstd = tl.rsqrt(tl.sum(q * q, 1) / D + eps)
    q = q * rstd[:, None] * (1.0 + tl.load(QW + offs_d).to(tl.float32))[None, :]
    q = (q * (sm_scale * 1.44269504)).to(K.dtype.element_ty)
    m_i = tl.full([BLOCK_M], -1.0e30, tl.float32)
    l_i = tl.zeros([BLOCK_M], tl.float32)
    acc = tl.zeros([BLOCK_M, D], tl.float32)
    end = tl.minimum(tl.maximum(start_m + BLOCK_M, tl.where(start_m < prefix, prefix, 0)), T)
    for start_n in range(0, end, BLOCK_N):
        offs_n = start_n + tl.arange(0, BLOCK_N)
        mask_n = offs_n < T
        k = tl.load(K + b * stride_kb + kv_h * stride_kh + offs_n[None, :] * stride_kt + offs_d[:, None], mask=mask_n[None, :], other=0.0)
        s = tl.dot(q, k)
        sees = (offs_m[:, None] >= offs_n[None, :]) | ((offs_m < prefix)[:, None] & (offs_n < prefix)[None, :])
        s = tl.where(sees & mask_n[None, :], s, -1.0e30)
        m_new = tl.maximum(m_i, tl.max(s, 1))
        alpha = tl.math.exp2(m_i - m_new)
        p = tl.math.exp2(s - m_new[:, None])
        v = tl.load(V + b * stride_kb + kv_h * stride_kh + offs_n[:, None] * stride_kt + offs_d[None, :], mask=mask_n[:, None], other=0.0)
        acc = acc * alpha[:, None] + tl.dot(p.to(v.dtype), v)
        l_i = l_i * alpha + tl.sum(p, 1)
        m_i = m_new
    tl.store(LSE + (b * H + h) * T + offs_m, (m_i + tl.log2(l_i)) * 0.6931471806, mask=mask_m)
    gate = tl.load(G + q_at, mask=mask_m[:, None], other=0.0).to(tl.float32)
    o = acc / l_i[:, None] * tl.sigmoid(gate)
    tl.store(Out + q_at, o.to(Out.dtype.element_ty), mask=mask_m[:, None])


@case
def vine_gated_after_a_prefix_that_sees_itself(b=3, t=1700, h=12, hk=2, d=128):
    q, k, v, g = rand(b, t, h, d), rand(b, t, hk, d), rand(b, t, hk, d), rand(b, t, h, d)
    qw, prefix = rand(d) / 4, ints(t // 16, t // 2, b)
    lse, out = zeros(b, h, t, dtype="float32"), zeros(b, t, h, d)
    args = q, k, v, g, qw, out, lse, prefix, d**-0.5, 1e-6, t, *q.stride()[:3], *k.stride()[:3]
    launched = run(gated_after_prefix_kernel, (cdiv(t, 128), b * h), args, (out, lse), H=h, GROUP=h // hk, D=d, BLOCK_M=128, BLOCK_N=64, num_warps=8, num_stages=2)

    def reference():
        kk, vv = k.float().repeat_interleave(h // hk, 2), v.float().repeat_interleave(h // hk, 2)
        x = q.float() * torch.rsqrt(q.float().square().mean(3, keepdim=True) + 1e-6) * (1 + qw.float())
        s = torch.einsum("bmhd,bnhd->bhmn", x, kk) * d**-0.5
        i = torch.arange(t, device=q.device)
        first = i[None, :] < prefix[:, None]
        sees = (i[:, None] >= i) | (first[:, :, None] & first[:, None, :])
        s = s.masked_fill(~sees[:, None], float("-inf"))
        return torch.einsum("bhmn,bnhd->bmhd", s.softmax(3), vv) * torch.sigmoid(g.float()), s.logsumexp(3)

    return against(launched, reference)


@triton.jit
def crossed_by_low_rank_kernel(
    x0_ptr, xl_ptr, u_ptr, v_ptr, b_ptr, out_ptr, M, D, stride_m, R: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_D: tl.constexpr,
):
    # A cross layer of a recommender: x0 times (x through two thin matrices plus bias) plus x; what is between stays in registers.
    rm = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    rr = tl.arange(0, R)
    mask_m = rm < M
    thin = tl.zeros((BLOCK_M, R), dtype=tl.float32)
    for d0 in range(0, D, BLOCK_D):
        d = d0 + tl.arange(0, BLOCK_D)
        x = tl.load(xl_ptr + rm[:, None] * stride_m + d[None, :], mask=mask_m[:, None] & (d < D)[None, :], other=0.0)
        u = tl.load(u_ptr + d[:, None] * R + rr[None, :], mask=(d < D)[:, None], other=0.0)
        thin += tl.dot(x, u)
    thin = thin.to(xl_ptr.dtype.element_ty)
    for d0 in range(0, D, BLOCK_D):
        d = d0 + tl.arange(0, BLOCK_D)
        ok = mask_m[:, None] & (d < D)[None, :]
        v = tl.load(v_ptr + rr[:, None] * D + d[None, :], mask=(d < D)[None, :], other=0.0)
        y = tl.dot(thin, v) + tl.load(b_ptr + d, mask=d < D, other=0.0).to(tl.float32)[None, :]
        x0 = tl.load(x0_ptr + rm[:, None] * stride_m + d[None, :], mask=ok, other=0.0).to(tl.float32)
        xl = tl.load(xl_ptr + rm[:, None] * stride_m + d[None, :], mask=ok, other=0.0).to(tl.float32)
        tl.store(out_ptr + rm[:, None] * stride_m + d[None, :], (x0 * y + xl).to(out_ptr.dtype.element_ty), mask=ok)


@case
def vine_crossed_by_two_thin_matrices(m=8000, d=1000, r=64):
    x0, xl, u, v, bias, out = rand(m, d), rand(m, d), rand(d, r) / 16, rand(r, d) / 8, rand(d), zeros(m, d)
    launched = run(crossed_by_low_rank_kernel, (cdiv(m, 32),), (x0, xl, u, v, bias, out, m, d, d), out, R=r, BLOCK_M=32, BLOCK_D=64, num_warps=4)

    def reference():
        thin = (xl.float() @ u.float()).half().float()
        return x0.float() * (thin @ v.float() + bias.float()) + xl.float()

    return against(launched, reference)


@triton.jit
def places_relative_to_speech_kernel(
    q_ptr, k_ptr, v_ptr, p_ptr, bias_u_ptr, bias_v_ptr, len_ptr, o_ptr, scale, T,
    H: tl.constexpr, D: tl.constexpr, BLOCK: tl.constexpr,
):
    # Attention of a speech encoder: scores of relative places are a band of dots that is shifted by a gather.
    start_m = tl.program_id(0) * BLOCK
    h = tl.program_id(1)
    b = tl.program_id(2)
    length = tl.load(len_ptr + b)
    i = tl.arange(0, BLOCK)
    r = tl.arange(0, 2 * BLOCK)
    d = tl.arange(0, D)
    m = start_m + i
    q = tl.load(q_ptr + ((b * T + m)[:, None] * H + h) * D + d[None, :], mask=(m < T)[:, None], other=0.0)
    qu = (q.to(tl.float32) + tl.load(bias_u_ptr + h * D + d)[None, :]).to(q.dtype)
    qv = (q.to(tl.float32) + tl.load(bias_v_ptr + h * D + d)[None, :]).to(q.dtype)
    shift = i[:, None] - i[None, :] + BLOCK - 1
    m_i = tl.full((BLOCK,), -1e30, tl.float32)
    l_i = tl.zeros((BLOCK,), tl.float32)
    acc = tl.zeros((BLOCK, D), tl.float32)
    for start_n in range(0, length, BLOCK):
        n = start_n + i
        ok = n < length
        k = tl.load(k_ptr + ((b * T + n)[None, :] * H + h) * D + d[:, None], mask=ok[None, :], other=0.0)
        place = start_m - start_n - (BLOCK - 1) + T - 1 + r
        p = tl.load(p_ptr + (place[None, :] * H + h) * D + d[:, None], mask=((place >= 0) & (place < 2 * T - 1))[None, :], other=0.0)
        band = tl.dot(qv, p)
        s = (tl.dot(qu, k) + tl.gather(band, shift, 1)) * scale
        s = tl.where(ok[None, :], s, -1e30)
        m_new = tl.maximum(m_i, tl.max(s, 1))
        keep = tl.exp(m_i - m_new)
        w = tl.exp(s - m_new[:, None])
        v = tl.load(v_ptr + ((b * T + n)[:, None] * H + h) * D + d[None, :], mask=ok[:, None], other=0.0)
        acc = tl.dot(w.to(v.dtype), v, acc * keep[:, None])
        l_i = l_i * keep + tl.sum(w, 1)
        m_i = m_new
    o = acc / l_i[:, None]
    tl.store(o_ptr + ((b * T + m)[:, None] * H + h) * D + d[None, :], o.to(o_ptr.dtype.element_ty), mask=(m < T)[:, None])


@case
def vine_of_places_relative_to_speech(b=4, t=499, h=8, d=64):
    q, k, v, p = rand(b, t, h, d), rand(b, t, h, d), rand(b, t, h, d), rand(2 * t - 1, h, d)
    bu, bv, out = f32(h, d), f32(h, d), zeros(b, t, h, d)
    lengths = ints(t // 2, t + 1, b)
    launched = run(places_relative_to_speech_kernel, (cdiv(t, 32), h, b), (q, k, v, p, bu, bv, lengths, out, d**-0.5, t), out, H=h, D=d, BLOCK=32, num_warps=4)

    def reference():
        qu, qv = (q.float() + bu).half().float(), (q.float() + bv).half().float()
        i = torch.arange(t, device=q.device)
        band = torch.einsum("bmhd,rhd->bhmr", qv, p.float())
        band = band.gather(3, (i[:, None] - i[None, :] + t - 1).expand(b, h, t, t))
        s = (torch.einsum("bmhd,bnhd->bhmn", qu, k.float()) + band) * d**-0.5
        s = s.masked_fill((i[None, :] >= lengths[:, None])[:, None, None], float("-inf"))
        return torch.einsum("bhmn,bnhd->bmhd", s.softmax(3), v.float())

    return against(launched, reference)


@triton.jit
def conv_to_shuffled_pixels_kernel(
    x_ptr, w_ptr, bias_ptr, y_ptr, B, H, W, CIN, COUT, UP: tl.constexpr, BLOCK_P: tl.constexpr, BLOCK_O: tl.constexpr, BLOCK_K: tl.constexpr,
):
    # Last layer of an upscaler: a convolution of 3x3 as one long product, whose channels become pixels when they are stored.
    p = tl.program_id(0) * BLOCK_P + tl.arange(0, BLOCK_P)
    o = tl.program_id(1) * BLOCK_O + tl.arange(0, BLOCK_O)
    total = B * H * W
    b = p // (H * W)
    y = (p // W) % H
    x = p % W
    K = 9 * CIN
    acc = tl.zeros((BLOCK_P, BLOCK_O), dtype=tl.float32)
    for k0 in range(0, K, BLOCK_K):
        k = k0 + tl.arange(0, BLOCK_K)
        tap = k // CIN
        c = k % CIN
        yy = y[:, None] + (tap // 3)[None, :] - 1
        xx = x[:, None] + (tap % 3)[None, :] - 1
        ok = (p < total)[:, None] & (k < K)[None, :] & (yy >= 0) & (yy < H) & (xx >= 0) & (xx < W)
        data = tl.load(x_ptr + ((b[:, None] * H + yy) * W + xx) * CIN + c[None, :], mask=ok, other=0.0)
        w = tl.load(w_ptr + k[:, None] * COUT + o[None, :], mask=(k < K)[:, None] & (o < COUT)[None, :], other=0.0)
        acc = tl.dot(data, w, acc)
    acc += tl.load(bias_ptr + o, mask=o < COUT, other=0.0).to(tl.float32)[None, :]
    acc = tl.minimum(tl.maximum(acc * 64.0 + 128.0, 0.0), 255.0)
    channel = o // (UP * UP)
    dy = o // UP % UP
    dx = o % UP
    out_y = y[:, None] * UP + dy[None, :]
    out_x = x[:, None] * UP + dx[None, :]
    at = ((b[:, None] * (COUT // (UP * UP)) + channel[None, :]) * (H * UP) + out_y) * (W * UP) + out_x
    tl.store(y_ptr + at, acc.to(y_ptr.dtype.element_ty), mask=(p < total)[:, None] & (o < COUT)[None, :])


@case
def vine_of_channels_that_become_pixels(b=2, h=135, w=241, cin=60, up=4):
    cout = 3 * up * up
    x, weight, bias = rand(b, h, w, cin), rand(9 * cin, cout) / 24, rand(cout)
    y = zeros(b, 3, h * up, w * up)
    launched = run(conv_to_shuffled_pixels_kernel, (cdiv(b * h * w, 128), 1), (x, weight, bias, y, b, h, w, cin, cout), y, UP=up, BLOCK_P=128, BLOCK_O=64, BLOCK_K=32, num_warps=4)

    def reference():
        kernel = weight.float().reshape(3, 3, cin, cout).permute(3, 2, 0, 1)
        z = F.conv2d(x.float().permute(0, 3, 1, 2), kernel, bias.float(), padding=1)
        return F.pixel_shuffle((z * 64 + 128).clamp(0, 255), up)

    return against(launched, reference)


@triton.jit
def bytes_with_zeros_of_rows_kernel(
    a_ptr, b_ptr, c_ptr, scale_a_ptr, scale_b_ptr, azp_ptr, azp_adj_ptr, bias_ptr, M, N, K,
    stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
    BLOCK_SIZE_M: tl.constexpr, BLOCK_SIZE_N: tl.constexpr, BLOCK_SIZE_K: tl.constexpr, PER_TOKEN_AZP: tl.constexpr, HAS_BIAS: tl.constexpr,
):
    # Bytes by bytes where those of the activations have a zero point a token: sums of weights' columns take it out again.
    pid = tl.program_id(axis=0)
    num_pid_n = tl.cdiv(N, BLOCK_SIZE_N)
    pid_m = pid // num_pid_n
    pid_n = pid % num_pid_n
    offsets_am = pid_m * BLOCK_SIZE_M + tl.arange(0, BLOCK_SIZE_M).to(tl.int64)
    offsets_bn = pid_n * BLOCK_SIZE_N + tl.arange(0, BLOCK_SIZE_N).to(tl.int64)
    masks_am = offsets_am < M
    masks_bn = offsets_bn < N
    offsets_k = tl.arange(0, BLOCK_SIZE_K).to(tl.int64)
    a_ptrs = a_ptr + stride_am * offsets_am[:, None] + stride_ak * offsets_k[None, :]
    b_ptrs = b_ptr + stride_bk * offsets_k[:, None] + stride_bn * offsets_bn[None, :]
    accumulator = tl.zeros((BLOCK_SIZE_M, BLOCK_SIZE_N), dtype=tl.int32)
    for k in range(0, tl.cdiv(K, BLOCK_SIZE_K)):
        masks_k = offsets_k < K
        a = tl.load(a_ptrs, mask=masks_am[:, None] & masks_k[None, :], other=0)
        b = tl.load(b_ptrs, mask=masks_k[:, None] & masks_bn[None, :], other=0)
        accumulator = tl.dot(a, b, accumulator, out_dtype=tl.int32)
        offsets_k += BLOCK_SIZE_K
        a_ptrs += BLOCK_SIZE_K * stride_ak
        b_ptrs += BLOCK_SIZE_K * stride_bk
    adj = tl.load(azp_adj_ptr + offsets_bn, mask=masks_bn, other=0)
    if PER_TOKEN_AZP:
        accumulator -= tl.load(azp_ptr + offsets_am, mask=masks_am, other=0)[:, None] * adj[None, :]
    else:
        accumulator -= adj[None, :]
    scale_a = tl.load(scale_a_ptr + offsets_am, mask=masks_am, other=0.0)
    scale_b = tl.load(scale_b_ptr + offsets_bn, mask=masks_bn, other=0.0)
    c = scale_a[:, None] * accumulator.to(tl.float32)
    c = scale_b[None, :] * c
    c = c.to(c_ptr.type.element_ty)
    if HAS_BIAS:
        c += tl.load(bias_ptr + offsets_bn, mask=masks_bn, other=0.0)[None, :]
    c_ptrs = c_ptr + stride_cm * offsets_am[:, None] + stride_cn * offsets_bn[None, :]
    tl.store(c_ptrs, c, mask=masks_am[:, None] & masks_bn[None, :])


@case
def vine_of_bytes_with_a_zero_a_token(m=777, n=3080, k=2056):
    a, b = ints(-128, 128, m, k, dtype="int8"), ints(-127, 128, n, k, dtype="int8").t()
    sa, sb, azp = uniform(m) / 128 + 0.001, uniform(n) / 128 + 0.001, ints(-100, 100, m)
    adj = b.to(torch.int32).sum(0).to(torch.int32)
    bias, c = rand(n), zeros(m, n)
    args = a, b, c, sa, sb, azp, adj, bias, m, n, k, *a.stride(), *b.stride(), *c.stride()
    flags = dict(BLOCK_SIZE_M=64, BLOCK_SIZE_N=128, BLOCK_SIZE_K=128, PER_TOKEN_AZP=True, HAS_BIAS=True)
    launched = run(bytes_with_zeros_of_rows_kernel, (cdiv(m, 64) * cdiv(n, 128),), args, c, num_warps=4, num_stages=3, **flags)

    def reference():
        z = (a.double() - azp.double()[:, None]) @ b.double()
        return z.float() * sa[:, None] * sb + bias.float()

    return against(launched, reference)


@triton.jit
def weights_gradient_of_experts_kernel(
    dy_ptr, x_ptr, token_ptr, offset_ptr, prev_ptr, dw_ptr, N, K, stride_dy, stride_x,
    BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, BLOCK_T: tl.constexpr,
):
    # Gradients of experts' weights: rows of an expert lie together on one side and are gathered on the other; sums of earlier steps are added.
    pid_n = tl.program_id(0)
    pid_k = tl.program_id(1)
    e = tl.program_id(2)
    begin = tl.load(offset_ptr + e)
    end = tl.load(offset_ptr + e + 1)
    rn = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    rk = pid_k * BLOCK_K + tl.arange(0, BLOCK_K)
    acc = tl.zeros((BLOCK_N, BLOCK_K), dtype=tl.float32)
    for t0 in range(begin, end, BLOCK_T):
        t = t0 + tl.arange(0, BLOCK_T)
        ok = t < end
        token = tl.load(token_ptr + t, mask=ok, other=0)
        dy = tl.load(dy_ptr + t[:, None] * stride_dy + rn[None, :], mask=ok[:, None] & (rn < N)[None, :], other=0.0)
        x = tl.load(x_ptr + token[:, None] * stride_x + rk[None, :], mask=ok[:, None] & (rk < K)[None, :], other=0.0)
        acc = tl.dot(dy.T, x, acc)
    at = (e * N + rn)[:, None].to(tl.int64) * K + rk[None, :]
    ok = (rn < N)[:, None] & (rk < K)[None, :]
    prev = tl.load(prev_ptr + at, mask=ok, other=0.0)
    tl.store(dw_ptr + at, prev + acc, mask=ok)


@case
def vine_of_experts_weights_that_gather_gradients(rows=6000, tokens=2500, experts=12, n=768, k=1000):
    owner = ints(0, experts - 1, rows).sort()[0]
    offsets = torch.searchsorted(owner, arange(experts + 1)).to(torch.int32)
    dy, x, token = rand(rows, n, dtype="bfloat16"), rand(tokens, k, dtype="bfloat16"), ints(0, tokens, rows)
    prev, dw = f32(experts, n, k), zeros(experts, n, k, dtype="float32")
    args = dy, x, token, offsets, prev, dw, n, k, dy.stride(0), x.stride(0)
    launched = run(weights_gradient_of_experts_kernel, (cdiv(n, 128), cdiv(k, 128), experts), args, dw, BLOCK_N=128, BLOCK_K=128, BLOCK_T=32, num_warps=8, num_stages=3)

    def reference():
        result = prev.clone()
        for e in range(experts):
            mine = owner == e
            result[e] += dy[mine].float().t() @ x[token[mine].long()].float()
        return result

    return against(launched, reference)


@triton.jit
def five_rows_of_fp8_weights_kernel(
    x_ptr, w_ptr, s_ptr, bias_ptr, y_ptr, M, N, K, stride_xm, stride_wn, stride_ym,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, SPLIT_K: tl.constexpr,
):
    # Few rows by fp8 weights: parts of the sum are added by atomics, the first of them brings the bias.
    pid_n = tl.program_id(0)
    pid_k = tl.program_id(1)
    rm = tl.arange(0, BLOCK_M)
    rn = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    rk = pid_k * BLOCK_K + tl.arange(0, BLOCK_K)
    x_ptrs = x_ptr + rm[:, None] * stride_xm + rk[None, :]
    w_ptrs = w_ptr + rn[None, :] * stride_wn + rk[:, None]
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BLOCK_K * SPLIT_K)):
        left = K - k * (BLOCK_K * SPLIT_K)
        x = tl.load(x_ptrs, mask=(rm < M)[:, None] & (rk < left)[None, :], other=0.0)
        w = tl.load(w_ptrs, mask=(rn < N)[None, :] & (rk < left)[:, None], other=0.0)
        acc = tl.dot(x, w.to(x.dtype), acc)
        x_ptrs += BLOCK_K * SPLIT_K
        w_ptrs += BLOCK_K * SPLIT_K
    acc *= tl.load(s_ptr + rn, mask=rn < N, other=0.0)[None, :]
    if pid_k == 0:
        acc += tl.load(bias_ptr + rn, mask=rn < N, other=0.0).to(tl.float32)[None, :]
    tl.atomic_add(y_ptr + rm[:, None] * stride_ym + rn[None, :], acc, mask=(rm < M)[:, None] & (rn < N)[None, :], sem="relaxed")


@case
def vine_of_five_rows_and_fp8_in_six_parts(m=5, n=5000, k=5200, split=6):
    x, w, s = rand(m, k, dtype="bfloat16"), f8(n, k), uniform(n) / 16 + 0.01
    bias, y = rand(n, dtype="bfloat16"), zeros(m, n, dtype="float32")
    args = x, w, s, bias, y, m, n, k, x.stride(0), w.stride(0), y.stride(0)
    launched = run(five_rows_of_fp8_weights_kernel, (cdiv(n, 64), split), args, y, BLOCK_M=16, BLOCK_N=64, BLOCK_K=128, SPLIT_K=split, num_warps=4, num_stages=4)

    def reference():
        return x.float() @ w.float().t() * s + bias.float()

    return against(cleared(launched, y), reference)


@triton.jit
def vapor_pressure(t):
    return 0.6108 * tl.exp(17.27 * t / (t + 237.3))


@triton.jit
def evaporation_kernel(t_ptr, rh_ptr, u_ptr, rs_ptr, z_ptr, ra_ptr, et_ptr, n, BLOCK: tl.constexpr):
    # What a field of grass evaporates in an hour after Penman and Monteith, from weather, by day and by night.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    temp = tl.load(t_ptr + i, mask=mask, other=20.0)
    rh = tl.load(rh_ptr + i, mask=mask, other=50.0)
    wind = tl.load(u_ptr + i, mask=mask, other=1.0)
    rs = tl.load(rs_ptr + i, mask=mask, other=0.0)
    z = tl.load(z_ptr + i, mask=mask, other=0.0)
    ra = tl.load(ra_ptr + i, mask=mask, other=1.0)
    base = (293.0 - 0.0065 * z) / 293.0
    pressure = 101.3 * tl.exp(5.26 * tl.log(base))
    gamma = 0.000665 * pressure
    es = vapor_pressure(temp)
    ea = es * rh / 100.0
    slope = 4098.0 * es / ((temp + 237.3) * (temp + 237.3))
    rso = (0.75 + 2e-5 * z) * ra
    rel = tl.where(rso > 0.05, rs / tl.maximum(rso, 0.05), 0.7)
    rel = tl.minimum(tl.maximum(rel, 0.3), 1.0)
    kelvin = (temp + 273.16) * 0.01
    k2 = kelvin * kelvin
    rnl = 2.043e-2 * k2 * k2 * (0.34 - 0.14 * tl.sqrt(ea)) * (1.35 * rel - 0.35)
    rn = 0.77 * rs - rnl
    day = rs > 0.02
    ground = tl.where(day, 0.1, 0.5) * rn
    cd = tl.where(day, 0.24, 0.96)
    top = 0.408 * slope * (rn - ground) + gamma * 37.0 / (temp + 273.0) * wind * (es - ea)
    et = top / (slope + gamma * (1.0 + cd * wind))
    tl.store(et_ptr + i, tl.maximum(et, 0.0), mask=mask)


@case
def vine_that_evaporates_by_the_hour(n=3_000_001):
    temp, rh, wind = uniform(n) * 35 - 2, uniform(n) * 80 + 15, uniform(n) * 8
    rs, z, ra, et = (uniform(n) - 0.3).clamp(min=0) * 4, uniform(n) * 1500, uniform(n) * 5, zeros(n, dtype="float32")
    launched = run(evaporation_kernel, (cdiv(n, 1024),), (temp, rh, wind, rs, z, ra, et, n), et, BLOCK=1024, num_warps=4)

    def reference():
        gamma = 0.000665 * 101.3 * ((293 - 0.0065 * z) / 293) ** 5.26
        es = 0.6108 * torch.exp(17.27 * temp / (temp + 237.3))
        ea, slope = es * rh / 100, 4098 * es / (temp + 237.3) ** 2
        rso = (0.75 + 2e-5 * z) * ra
        rel = torch.where(rso > 0.05, rs / rso.clamp(min=0.05), 0.7).clamp(0.3, 1)
        rn = 0.77 * rs - 2.043e-2 * ((temp + 273.16) / 100) ** 4 * (0.34 - 0.14 * ea.sqrt()) * (1.35 * rel - 0.35)
        day = rs > 0.02
        top = 0.408 * slope * rn * torch.where(day, 0.9, 0.5) + gamma * 37 / (temp + 273) * wind * (es - ea)
        return (top / (slope + gamma * (1 + torch.where(day, 0.24, 0.96) * wind))).clamp(min=0)

    return against(launched, reference)


@triton.jit
def water_in_soil_kernel(rain_ptr, pet_ptr, temp_ptr, cap_ptr, soil_ptr, snow_ptr, flow_ptr, cells, days, BLOCK: tl.constexpr):
    # Snow and water of cells of soil, day after day: what falls, melts, evaporates, seeps and runs off.
    c = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = c < cells
    cap = tl.load(cap_ptr + c, mask=mask, other=100.0)
    soil = cap * 0.5
    snow = tl.zeros((BLOCK,), dtype=tl.float32)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for day in range(days):
        rain = tl.load(rain_ptr + day * cells + c, mask=mask, other=0.0)
        pet = tl.load(pet_ptr + day * cells + c, mask=mask, other=0.0)
        temp = tl.load(temp_ptr + day * cells + c, mask=mask, other=0.0)
        cold = temp < 0.0
        snow += tl.where(cold, rain, 0.0)
        melt = tl.minimum(snow, tl.maximum(temp, 0.0) * 3.0)
        snow -= melt
        soil += melt + tl.where(cold, 0.0, rain)
        over = tl.maximum(soil - cap, 0.0)
        soil -= over
        wet = soil / cap
        soil -= tl.minimum(soil, pet * tl.minimum(wet / 0.6, 1.0))
        wet = soil / cap
        seep = soil * 0.05 * wet * wet
        soil -= seep
        total += over + seep
    tl.store(soil_ptr + c, soil, mask=mask)
    tl.store(snow_ptr + c, snow, mask=mask)
    tl.store(flow_ptr + c, total, mask=mask)


@case
def vine_whose_soil_is_watered_for_180_days(cells=70_001, days=180):
    rain, pet, temp = (uniform(days, cells) - 0.6).clamp(min=0) * 40, uniform(days, cells) * 6, uniform(days, cells) * 25 - 5
    cap = uniform(cells) * 150 + 50
    soil, snow, flow = zeros(cells, dtype="float32"), zeros(cells, dtype="float32"), zeros(cells, dtype="float32")
    launched = run(water_in_soil_kernel, (cdiv(cells, 128),), (rain, pet, temp, cap, soil, snow, flow, cells, days), (soil, snow, flow), BLOCK=128, num_warps=4)

    def reference():
        s, white, total = cap * 0.5, torch.zeros_like(cap), torch.zeros_like(cap)
        for r, e, t in zip(rain, pet, temp):
            white = white + torch.where(t < 0, r, 0.0)
            melt = torch.minimum(white, t.clamp(min=0) * 3)
            white = white - melt
            s = s + melt + torch.where(t < 0, 0.0, r)
            over = (s - cap).clamp(min=0)
            s = s - over
            s = s - torch.minimum(s, e * (s / cap / 0.6).clamp(max=1))
            seep = s * 0.05 * (s / cap) ** 2
            s, total = s - seep, total + over + seep
        return s, white, total

    return against(launched, reference)


@triton.jit
def derivative_of_spectra_kernel(x_ptr, coef_ptr, y_ptr, n, stride, WINDOW: tl.constexpr, BLOCK: tl.constexpr):
    # Spectra of leaves: each less its mean over its deviation, then its slope by a smoothing filter with mirrored ends.
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    mask = i < n
    x = tl.load(x_ptr + row * stride + i, mask=mask, other=0.0)
    mean = tl.sum(x, axis=0) / n
    diff = tl.where(mask, x - mean, 0.0)
    std = tl.sqrt(tl.sum(diff * diff, axis=0) / (n - 1))
    half = WINDOW // 2
    out = tl.zeros((BLOCK,), dtype=tl.float32)
    for t in range(WINDOW):
        j = i + t - half
        j = tl.where(j < 0, -j, j)
        j = tl.where(j >= n, 2 * (n - 1) - j, j)
        value = tl.load(x_ptr + row * stride + j, mask=mask, other=0.0)
        out += tl.load(coef_ptr + t) * (value - mean)
    tl.store(y_ptr + row * stride + i, out / std, mask=mask)


@case
def vine_leaves_told_by_slopes_of_their_spectra(rows=6000, n=1051, window=11):
    x = uniform(rows, n).cumsum(1) / 16 + uniform(rows, n)
    coef, y = (arange(window, "float32") - window // 2) / 110, zeros(rows, n, dtype="float32")
    launched = run(derivative_of_spectra_kernel, (rows,), (x, coef, y, n, x.stride(0)), y, WINDOW=window, BLOCK=triton.next_power_of_2(n), num_warps=4)

    def reference():
        z = (x - x.mean(1, keepdim=True)) / x.std(1, keepdim=True)
        z = F.pad(z[:, None], (window // 2, window // 2), mode="reflect")
        return F.conv1d(z, coef[None, None])[:, 0]

    return against(launched, reference)


@triton.jit
def green_apart_from_soil_kernel(img_ptr, mask_ptr, level_ptr, count_ptr, H, W, TILE: tl.constexpr, BINS: tl.constexpr):
    # Plants in tiles of a picture: excess of green, its histogram, the level that parts it best, then ones and zeros.
    ty = tl.program_id(0)
    tx = tl.program_id(1)
    y = ty * TILE + tl.arange(0, TILE)
    x = tx * TILE + tl.arange(0, TILE)
    at = (y[:, None] * W + x[None, :]) * 3
    ok = (y < H)[:, None] & (x < W)[None, :]
    r = tl.load(img_ptr + at, mask=ok, other=0).to(tl.int32)
    g = tl.load(img_ptr + at + 1, mask=ok, other=0).to(tl.int32)
    b = tl.load(img_ptr + at + 2, mask=ok, other=0).to(tl.int32)
    green = tl.minimum(tl.maximum(2 * g - r - b + 128, 0), 255) // (256 // BINS)
    hist = tl.histogram(tl.reshape(green, (TILE * TILE,)), BINS, mask=tl.reshape(ok, (TILE * TILE,)))
    bins = tl.arange(0, BINS)
    total = tl.sum(hist, 0).to(tl.float64)
    weight = tl.cumsum(hist, 0).to(tl.float64)
    moment = tl.cumsum(hist * bins, 0).to(tl.float64)
    whole = tl.sum(hist * bins, 0).to(tl.float64)
    apart = whole * weight - moment * total
    below = weight * (total - weight)
    between = tl.where(below > 0, apart * apart / tl.maximum(below, 1.0), -1.0)
    best = tl.max(between, 0)
    level = tl.min(tl.where(between == best, bins, BINS), 0)
    plant = green > level
    tl.store(mask_ptr + y[:, None] * W + x[None, :], plant.to(tl.uint8), mask=ok)
    tile = ty * tl.num_programs(1) + tx
    tl.store(level_ptr + tile, level)
    tl.store(count_ptr + tile, tl.sum(tl.sum((plant & ok).to(tl.int32), 1), 0))


@case
def vine_rows_found_by_their_green(h=1500, w=2100, tile=64):
    img = ints(0, 200, h, w, 3, dtype="uint8")
    img[..., 1] += (uniform(h, w) > 0.6).to(torch.uint8) * 55
    ny, nx = cdiv(h, tile), cdiv(w, tile)
    plant, level, count = zeros(h, w, dtype="uint8"), zeros(ny * nx, dtype="int32"), zeros(ny * nx, dtype="int32")
    launched = run(green_apart_from_soil_kernel, (ny, nx), (img, plant, level, count, h, w), (plant, level, count), TILE=tile, BINS=64, num_warps=4)

    def reference():
        x = img.int()
        green = (2 * x[..., 1] - x[..., 0] - x[..., 2] + 128).clamp(0, 255) // 4
        full = torch.full((ny * tile, nx * tile), -1, dtype=torch.int32, device=img.device)
        full[:h, :w] = green
        tiles = full.reshape(ny, tile, nx, tile).permute(0, 2, 1, 3).reshape(ny * nx, tile * tile)
        bins = torch.arange(64, device=img.device)
        hist = torch.stack([(tiles == i).sum(1) for i in range(64)], 1)
        weight, moment = hist.cumsum(1).double(), (hist * bins).cumsum(1).double()
        total, whole = weight[:, -1:], moment[:, -1:]
        apart, below = whole * weight - moment * total, weight * (total - weight)
        between = torch.where(below > 0, apart * apart / below.clamp(min=1), -1.0)
        best = torch.where(between == between.amax(1, keepdim=True), bins, 64).amin(1)
        on = (tiles > best[:, None]).reshape(ny, nx, tile, tile).permute(0, 2, 1, 3).reshape(ny * tile, nx * tile)[:h, :w]
        return on.to(torch.uint8), best.to(torch.int32), (tiles > best[:, None]).sum(1).to(torch.int32)

    return against(launched, reference)


@triton.jit
def gain_of_split(g, h, lam):
    return g * g / (h + lam)


@triton.jit
def best_split_kernel(hist_ptr, gain_ptr, left_ptr, features, lam, gamma, min_hess, BINS: tl.constexpr):
    # Best split of a leaf by a feature from sums of gradients in bins, with what is missing sent to either side.
    f = tl.program_id(0)
    leaf = tl.program_id(1)
    i = tl.arange(0, BINS)
    base = hist_ptr + (leaf * features + f) * BINS * 2
    g = tl.load(base + 2 * i)
    h = tl.load(base + 2 * i + 1)
    missing_g = tl.sum(tl.where(i == BINS - 1, g, 0.0), 0)
    missing_h = tl.sum(tl.where(i == BINS - 1, h, 0.0), 0)
    all_g = tl.sum(g, 0)
    all_h = tl.sum(h, 0)
    lg = tl.cumsum(tl.where(i == BINS - 1, 0.0, g), 0)
    lh = tl.cumsum(tl.where(i == BINS - 1, 0.0, h), 0)
    parent = gain_of_split(all_g, all_h, lam)
    best = -1.0
    way = 0
    for side in tl.static_range(2):
        left_g = lg + side * missing_g
        left_h = lh + side * missing_h
        right_g = all_g - left_g
        right_h = all_h - left_h
        ok = (left_h >= min_hess) & (right_h >= min_hess) & (i < BINS - 2)
        gain = 0.5 * (gain_of_split(left_g, left_h, lam) + gain_of_split(right_g, right_h, lam) - parent) - gamma
        top = tl.max(tl.where(ok, gain, -1.0), 0)
        if top > best:
            best = top
            way = side
    tl.store(gain_ptr + leaf * features + f, best)
    tl.store(left_ptr + leaf * features + f, way)


@case
def vine_split_where_gradients_part_best(leaves=63, features=301, bins=256):
    hist = torch.stack((f32(leaves, features, bins), uniform(leaves, features, bins)), 3).contiguous()
    gain, way = zeros(leaves, features, dtype="float32"), zeros(leaves, features, dtype="int32")
    launched = run(best_split_kernel, (features, leaves), (hist, gain, way, features, 1.0, 0.1, 3.0), gain, BINS=bins, num_warps=2)

    def reference():
        x = hist.double()
        whole, missing = x.sum(2, keepdim=True), x[:, :, -1:]
        left, tops = x[:, :, :-2].cumsum(2), []
        for side in (0, 1):
            a = left + side * missing
            b = whole - a
            s = 0.5 * (a[..., 0] ** 2 / (a[..., 1] + 1) + b[..., 0] ** 2 / (b[..., 1] + 1) - whole[..., 0] ** 2 / (whole[..., 1] + 1)) - 0.1
            tops.append(s.masked_fill((a[..., 1] < 3) | (b[..., 1] < 3), -1).amax(2))
        return torch.stack(tops).amax(0).clamp(min=-1)

    return against(launched, reference)


@triton.jit
def parents_from_children_kernel(left_ptr, right_ptr, pl_ptr, pr_ptr, out_ptr, log_ptr, sites, CATS: tl.constexpr, BLOCK: tl.constexpr):
    # Likelihoods of four bases at a node of a tree of species from those at its two children, scaled by the largest of a site.
    s = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = s < sites
    j = tl.arange(0, 4)
    top = tl.zeros((BLOCK,), dtype=tl.float32)
    for c in range(CATS):
        at = (c * sites + s)[:, None] * 4 + j[None, :]
        left = tl.load(left_ptr + at, mask=mask[:, None], other=0.0)
        right = tl.load(right_ptr + at, mask=mask[:, None], other=0.0)
        for i in range(4):
            a = tl.sum(left * tl.load(pl_ptr + (c * 4 + i) * 4 + j)[None, :], axis=1)
            b = tl.sum(right * tl.load(pr_ptr + (c * 4 + i) * 4 + j)[None, :], axis=1)
            top = tl.maximum(top, a * b)
    top = tl.where(mask, top, 1.0)
    for c in range(CATS):
        at = (c * sites + s)[:, None] * 4 + j[None, :]
        left = tl.load(left_ptr + at, mask=mask[:, None], other=0.0)
        right = tl.load(right_ptr + at, mask=mask[:, None], other=0.0)
        for i in range(4):
            a = tl.sum(left * tl.load(pl_ptr + (c * 4 + i) * 4 + j)[None, :], axis=1)
            b = tl.sum(right * tl.load(pr_ptr + (c * 4 + i) * 4 + j)[None, :], axis=1)
            tl.store(out_ptr + (c * sites + s) * 4 + i, a * b / top, mask=mask)
    tl.store(log_ptr + s, tl.log(top), mask=mask)


@case
def vine_varieties_and_their_forebears(sites=400_003, cats=4):
    left, right = uniform(cats, sites, 4) + 1e-3, uniform(cats, sites, 4) + 1e-3
    pl, pr = uniform(cats, 4, 4).softmax(2).contiguous(), uniform(cats, 4, 4).softmax(2).contiguous()
    out, logs = zeros(cats, sites, 4, dtype="float32"), zeros(sites, dtype="float32")
    launched = run(parents_from_children_kernel, (cdiv(sites, 256),), (left, right, pl, pr, out, logs, sites), (out, logs), CATS=cats, BLOCK=256, num_warps=4)

    def reference():
        z = torch.einsum("csj,cij->csi", left.double(), pl.double()) * torch.einsum("csj,cij->csi", right.double(), pr.double())
        top = z.amax((0, 2))
        return z / top[:, None], top.log()

    return against(launched, reference)


@triton.jit
def pruned_cache_kernel(
    k_ptr, v_ptr, keep_ptr, ko_ptr, vo_ptr, count_ptr, T, MOST, D: tl.constexpr, BLOCK: tl.constexpr,
):
    # Of each head's cache what is to be kept moves to the front in order; places come from running sums of flags.
    head = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    d = tl.arange(0, D)
    done = 0
    for start in range(0, T, BLOCK):
        t = start + i
        flag = tl.load(keep_ptr + head * T + t, mask=t < T, other=0).to(tl.int32)
        n = tl.sum(flag, 0)
        if n > 0:
            place = done + tl.cumsum(flag, 0) - 1
            ok = (flag != 0) & (place < MOST)
            src = (head.to(tl.int64) * T + t)[:, None] * D + d[None, :]
            dst = (head.to(tl.int64) * MOST + place)[:, None] * D + d[None, :]
            k = tl.load(k_ptr + src, mask=ok[:, None])
            v = tl.load(v_ptr + src, mask=ok[:, None])
            tl.store(ko_ptr + dst, k, mask=ok[:, None])
            tl.store(vo_ptr + dst, v, mask=ok[:, None])
        done += n
    tl.store(count_ptr + head, tl.minimum(done, MOST))


@case
def vine_pruned_to_a_quarter_of_its_cache(heads=264, t=1900, d=128, most=512):
    k, v = rand(heads, t, d, dtype="bfloat16"), rand(heads, t, d, dtype="bfloat16")
    keep = uniform(heads, t) < uniform(heads, 1) / 2
    ko, vo, count = zeros(heads, most, d, dtype="bfloat16"), zeros(heads, most, d, dtype="bfloat16"), zeros(heads, dtype="int32")
    launched = run(pruned_cache_kernel, (heads,), (k, v, keep, ko, vo, count, t, most), (ko, vo, count), D=d, BLOCK=64, num_warps=4)

    def reference():
        ks, vs, n = torch.zeros_like(ko), torch.zeros_like(vo), torch.zeros_like(count)
        for i in range(heads):
            at = keep[i].nonzero()[:most, 0]
            ks[i, : len(at)], vs[i, : len(at)], n[i] = k[i, at], v[i, at], len(at)
        return ks, vs, n

    return against(launched, reference)
