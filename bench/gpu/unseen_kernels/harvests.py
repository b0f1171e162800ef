"""Harvests: what is gathered from pages, experts, genomes, cubes of volatility, tremors, layers of glass and packed columns, and products that bring it home."""

import math

import torch
import torch.nn.functional as F
import triton
import triton.language as tl

from .common import PROGRAMS, against, case, cdiv, cleared, f32, full, ints, rand, run, uniform, zeros


@triton.jit
def soft_capped(x, cap: tl.constexpr):
    z = 2.0 * x / cap
    return cap * (1.0 - 2.0 / (tl.exp(z) + 1.0))


@triton.jit
def grouped_pages_in_splits_kernel(
    q_ptr, k_cache_ptr, v_cache_ptr, block_table_ptr, seq_lens_ptr, mid_ptr, lse_ptr, sm_scale,
    stride_qb, stride_qh, stride_cb, stride_cs, stride_ch, stride_tb, stride_mb, stride_mh, stride_ms,
    PAGE_SIZE: tl.constexpr, GROUP: tl.constexpr, BLOCK_H: tl.constexpr, BLOCK_N: tl.constexpr, D: tl.constexpr, SPLITS: tl.constexpr,
    LOGIT_CAP: tl.constexpr, WINDOW: tl.constexpr,
):
    # First stage of decoding: a split of a sequence's pages for all heads of a group, under a soft cap, in a window of recent keys.
    b = tl.program_id(0)
    kvh = tl.program_id(1)
    split = tl.program_id(2)
    length = tl.load(seq_lens_ptr + b)
    first = 0
    if WINDOW > 0:
        first = tl.maximum(length - WINDOW, 0)
    per = tl.cdiv(tl.cdiv(length - first, SPLITS), BLOCK_N) * BLOCK_N
    start = first + split * per
    end = tl.minimum(start + per, length)
    h = tl.arange(0, BLOCK_H)
    head = kvh * GROUP + h
    mask_h = h < GROUP
    d = tl.arange(0, D)
    n = tl.arange(0, BLOCK_N)
    if end > start:
        q = tl.load(q_ptr + b * stride_qb + head[:, None] * stride_qh + d[None, :], mask=mask_h[:, None], other=0.0)
        m_i = tl.full([BLOCK_H], float("-inf"), dtype=tl.float32)
        l_i = tl.zeros([BLOCK_H], dtype=tl.float32)
        acc = tl.zeros([BLOCK_H, D], dtype=tl.float32)
        for at in range(start, end, BLOCK_N):
            pos = at + n
            ok = pos < end
            page = tl.load(block_table_ptr + b * stride_tb + pos // PAGE_SIZE, mask=ok, other=0).to(tl.int64)
            base = page * stride_cb + (pos % PAGE_SIZE) * stride_cs + kvh * stride_ch
            k = tl.load(k_cache_ptr + base[None, :] + d[:, None], mask=ok[None, :], other=0.0)
            s = tl.dot(q, k) * sm_scale
            if LOGIT_CAP > 0:
                s = soft_capped(s, LOGIT_CAP)
            s = tl.where(mask_h[:, None] & ok[None, :], s, float("-inf"))
            m_new = tl.maximum(tl.max(s, 1), m_i)
            m_use = tl.where(m_new == float("-inf"), 0.0, m_new)
            alpha = tl.exp(m_i - m_use)
            p = tl.exp(s - m_use[:, None])
            v = tl.load(v_cache_ptr + base[:, None] + d[None, :], mask=ok[:, None], other=0.0)
            acc = acc * alpha[:, None] + tl.dot(p.to(v.dtype), v)
            l_i = l_i * alpha + tl.sum(p, 1)
            m_i = m_new
        at_mid = b * stride_mb + head * stride_mh + split * stride_ms
        tl.store(mid_ptr + at_mid[:, None] + d[None, :], acc / l_i[:, None], mask=mask_h[:, None])
        tl.store(lse_ptr + at_mid // D, m_i + tl.log(l_i), mask=mask_h)
    else:
        tl.store(lse_ptr + (b * stride_mb + head * stride_mh + split * stride_ms) // D, tl.full([BLOCK_H], float("-inf"), tl.float32), mask=mask_h)


@triton.jit
def splits_with_sink_kernel(mid_ptr, lse_ptr, sink_ptr, out_ptr, stride_mb, stride_mh, stride_ms, stride_ob, stride_oh, SPLITS: tl.constexpr, D: tl.constexpr):
    # Second stage: splits that had keys are merged one after another; each head's sink takes its share of the weight.
    b = tl.program_id(0)
    head = tl.program_id(1)
    d = tl.arange(0, D)
    m = tl.load(sink_ptr + head).to(tl.float32)
    total = 1.0
    acc = tl.zeros([D], dtype=tl.float32)
    base = b * stride_mb + head * stride_mh
    for split in range(SPLITS):
        lse = tl.load(lse_ptr + (base + split * stride_ms) // D)
        if lse != float("-inf"):
            part = tl.load(mid_ptr + base + split * stride_ms + d)
            m_new = tl.maximum(m, lse)
            old = tl.exp(m - m_new)
            share = tl.exp(lse - m_new)
            acc = acc * old + part * share
            total = total * old + share
            m = m_new
    tl.store(out_ptr + b * stride_ob + head * stride_oh + d, (acc / total).to(out_ptr.dtype.element_ty))


@case
def harvest_of_recent_pages_with_sinks(batch=32, heads=40, kv_heads=8, d=128, page=16, most=2500, window=2048, splits=8):
    lengths = (ints(1, most + 1, batch)).to(torch.int32)
    lengths[0], lengths[1] = 5, most
    pages = cdiv(most, page)
    table = torch.randperm(batch * pages, device="cuda").int().reshape(batch, pages)
    q = rand(batch, heads, d, dtype="bfloat16")
    k, v = (rand(batch * pages, page, kv_heads, d, dtype="bfloat16") for _ in range(2))
    sink = f32(heads)
    mid, lse, out = zeros(batch, heads, splits, d, dtype="float32"), zeros(batch, heads, splits, dtype="float32"), torch.zeros_like(q)
    group, scale, cap = heads // kv_heads, d**-0.5, 30.0

    def launch(q, k, v, table, lengths, mid, lse, sink, out):
        grouped_pages_in_splits_kernel[(batch, kv_heads, splits)](
            q, k, v, table, lengths, mid, lse, scale, *q.stride()[:2], *k.stride()[:3], table.stride(0), *mid.stride()[:3],
            PAGE_SIZE=page, GROUP=group, BLOCK_H=16, BLOCK_N=64, D=d, SPLITS=splits, LOGIT_CAP=cap, WINDOW=window, num_warps=4, num_stages=2,
        )
        splits_with_sink_kernel[(batch, heads)](mid, lse, sink, out, *mid.stride()[:3], *out.stride()[:2], SPLITS=splits, D=d, num_warps=4, num_stages=2)
        return out

    def reference():
        result = torch.zeros(batch, heads, d, device=q.device)
        for b in range(batch):
            n = int(lengths[b])
            at = torch.arange(max(n - window, 0), n, device=q.device)
            rows = table[b].long()[at // page], at % page
            keys, values = k[rows].float().repeat_interleave(group, 1), v[rows].float().repeat_interleave(group, 1)
            s = cap * torch.tanh(torch.einsum("hd,nhd->hn", q[b].float(), keys) * scale / cap)
            p = torch.softmax(torch.cat((s, sink[:, None]), 1), 1)[:, :-1]
            result[b] = torch.einsum("hn,nhd->hd", p, values)
        return result

    return against((launch, (q, k, v, table, lengths, mid, lse, sink, out)), reference)


@triton.jit
def fused_moe_bytes_kernel(
    a_ptr, b_ptr, c_ptr, b_scale_ptr, topk_weights_ptr, sorted_token_ids_ptr, expert_ids_ptr, num_tokens_post_padded_ptr,
    N, K, EM, num_valid_tokens, stride_am, stride_ak, stride_be, stride_bk, stride_bn, stride_cm, stride_cn, stride_bse, stride_bsn,
    BLOCK_SIZE_M: tl.constexpr, BLOCK_SIZE_N: tl.constexpr, BLOCK_SIZE_K: tl.constexpr, GROUP_SIZE_M: tl.constexpr,
    MUL_ROUTED_WEIGHT: tl.constexpr, top_k: tl.constexpr, compute_type: tl.constexpr, even_Ks: tl.constexpr,
):
    # Rows of tokens, sorted by experts and padded, times their expert's weights of bytes with a scale for each channel.
    pid = tl.program_id(axis=0)
    num_pid_m = tl.cdiv(EM, BLOCK_SIZE_M)
    num_pid_n = tl.cdiv(N, BLOCK_SIZE_N)
    num_pid_in_group = GROUP_SIZE_M * num_pid_n
    group_id = pid // num_pid_in_group
    first_pid_m = group_id * GROUP_SIZE_M
    group_size_m = min(num_pid_m - first_pid_m, GROUP_SIZE_M)
    pid_m = first_pid_m + ((pid % num_pid_in_group) % group_size_m)
    pid_n = (pid % num_pid_in_group) // group_size_m
    num_tokens_post_padded = tl.load(num_tokens_post_padded_ptr)
    if pid_m * BLOCK_SIZE_M >= num_tokens_post_padded:
        return
    offs_token_id = pid_m * BLOCK_SIZE_M + tl.arange(0, BLOCK_SIZE_M).to(tl.int64)
    offs_token = tl.load(sorted_token_ids_ptr + offs_token_id)
    token_mask = offs_token < num_valid_tokens
    off_experts = tl.load(expert_ids_ptr + pid_m).to(tl.int64)
    offs_bn = (pid_n * BLOCK_SIZE_N + tl.arange(0, BLOCK_SIZE_N).to(tl.int64)) % N
    offs_k = tl.arange(0, BLOCK_SIZE_K)
    a_ptrs = a_ptr + (offs_token[:, None] // top_k * stride_am + offs_k[None, :] * stride_ak)
    b_ptrs = b_ptr + off_experts * stride_be + (offs_k[:, None] * stride_bk + offs_bn[None, :] * stride_bn)
    b_scale = tl.load(b_scale_ptr + off_experts * stride_bse + offs_bn[None, :] * stride_bsn)
    accumulator = tl.zeros((BLOCK_SIZE_M, BLOCK_SIZE_N), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BLOCK_SIZE_K)):
        if even_Ks:
            a = tl.load(a_ptrs, mask=token_mask[:, None], other=0.0)
            b = tl.load(b_ptrs)
        else:
            a = tl.load(a_ptrs, mask=token_mask[:, None] & (offs_k[None, :] < K - k * BLOCK_SIZE_K), other=0.0)
            b = tl.load(b_ptrs, mask=offs_k[:, None] < K - k * BLOCK_SIZE_K, other=0)
        accumulator = tl.dot(a, b.to(compute_type), acc=accumulator)
        a_ptrs += BLOCK_SIZE_K * stride_ak
        b_ptrs += BLOCK_SIZE_K * stride_bk
    if MUL_ROUTED_WEIGHT:
        moe_weight = tl.load(topk_weights_ptr + offs_token, mask=token_mask, other=0)
        accumulator = accumulator * moe_weight[:, None]
    accumulator = (accumulator * b_scale).to(compute_type)
    offs_cn = pid_n * BLOCK_SIZE_N + tl.arange(0, BLOCK_SIZE_N)
    c_ptrs = c_ptr + stride_cm * offs_token[:, None] + stride_cn * offs_cn[None, :]
    tl.store(c_ptrs, accumulator, mask=token_mask[:, None] & (offs_cn[None, :] < N))


@case
def harvest_of_experts_by_bytes_a_channel(tokens=700, experts=24, top_k=3, n=1112, k=1500, dtype="bfloat16"):
    a, w = rand(tokens, k, dtype=dtype), ints(-127, 128, experts, n, k, dtype="int8")
    scale = uniform(experts, n) / 1000 + 0.001
    gate, choice = uniform(tokens, experts).topk(top_k, 1)
    gate, flat, block = gate / gate.sum(1, keepdim=True), choice.reshape(-1), 64
    counts = torch.bincount(flat, minlength=experts)
    padded = (counts + block - 1) // block * block
    em, valid = int(padded.sum()), tokens * top_k
    ends = padded.cumsum(0)
    order = flat.argsort(stable=True)
    rank = torch.arange(valid, device=flat.device) - (counts.cumsum(0) - counts)[flat[order]]
    ids = torch.full((em + 2 * block,), valid, device=flat.device, dtype=torch.int32)
    ids[(ends - padded)[flat[order]] + rank] = order.int()
    blocks = torch.searchsorted(ends, torch.arange(0, em, block, device=flat.device), right=True).int()
    blocks = torch.cat((blocks, torch.zeros(2, device=flat.device, dtype=torch.int32)))
    post = full(em, 1, dtype="int32")
    em += 2 * block
    c = zeros(valid, n, dtype=dtype)
    flags = dict(BLOCK_SIZE_M=block, BLOCK_SIZE_N=128, BLOCK_SIZE_K=64, GROUP_SIZE_M=8, MUL_ROUTED_WEIGHT=True, top_k=top_k)
    args = a, w, c, scale, gate, ids, blocks, post, n, k, em, valid, *a.stride(), w.stride(0), w.stride(2), w.stride(1), *c.stride(), *scale.stride()
    grid = (cdiv(em, block) * cdiv(n, 128),)
    launched = run(fused_moe_bytes_kernel, grid, args, c, compute_type=getattr(tl, dtype), even_Ks=k % 64 == 0, num_warps=4, num_stages=3, **flags)

    def reference():
        result, x = torch.zeros(valid, n, device=a.device), a.float().repeat_interleave(top_k, 0)
        for e in range(experts):
            rows = (flat == e).nonzero()[:, 0]
            result[rows] = x[rows] @ (w[e].float() * scale[e][:, None]).t()
        return result * gate.reshape(-1, 1)

    return against(launched, reference)


@triton.jit
def linear_with_adapter_kernel(
    x_ptr, w_ptr, la_ptr, lb_ptr, bias_ptr, out_ptr, M, N, K, scaling, stride_xm, stride_wn, stride_ar, stride_bn, stride_om,
    R: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, HAS_BIAS: tl.constexpr,
):
    # A frozen layer and its low-rank adapter in one pass over the input; the second factor is applied in the end.
    pid_m = tl.program_id(0)
    pid_n = tl.program_id(1)
    offs_m = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_k = tl.arange(0, BLOCK_K)
    offs_r = tl.arange(0, R)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    side = tl.zeros((BLOCK_M, R), dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        mask_k = k + offs_k < K
        x = tl.load(x_ptr + offs_m[:, None] * stride_xm + k + offs_k[None, :], mask=(offs_m[:, None] < M) & mask_k[None, :], other=0.0)
        w = tl.load(w_ptr + offs_n[None, :] * stride_wn + k + offs_k[:, None], mask=(offs_n[None, :] < N) & mask_k[:, None], other=0.0)
        a = tl.load(la_ptr + offs_r[None, :] * stride_ar + k + offs_k[:, None], mask=mask_k[:, None], other=0.0)
        acc = tl.dot(x, w, acc)
        side = tl.dot(x, a, side)
    b = tl.load(lb_ptr + offs_n[None, :] * stride_bn + offs_r[:, None], mask=offs_n[None, :] < N, other=0.0)
    acc += tl.dot((side * scaling).to(b.dtype), b)
    if HAS_BIAS:
        acc += tl.load(bias_ptr + offs_n, mask=offs_n < N, other=0.0).to(tl.float32)[None, :]
    tl.store(out_ptr + offs_m[:, None] * stride_om + offs_n[None, :], acc.to(out_ptr.dtype.element_ty), mask=(offs_m[:, None] < M) & (offs_n[None, :] < N))


@case
def harvest_of_a_frozen_layer_and_its_adapter(m=1900, n=2000, k=1352, r=32):
    x, w, bias = rand(m, k), rand(n, k) / 16, rand(n)
    la, lb, out = rand(r, k) / 16, rand(n, r), zeros(m, n)
    args = x, w, la, lb, bias, out, m, n, k, 0.5, x.stride(0), w.stride(0), la.stride(0), lb.stride(0), out.stride(0)
    launched = run(linear_with_adapter_kernel, (cdiv(m, 64), cdiv(n, 128)), args, out, R=r, BLOCK_M=64, BLOCK_N=128, BLOCK_K=32, HAS_BIAS=True)

    def reference():
        return x.float() @ w.float().t() + 0.5 * (x.float() @ la.float().t()) @ lb.float().t() + bias.float()

    return against(launched, reference)


@triton.jit
def mac_loop(a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_bk, stride_cm, total_iters_per_tile, start, end, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    tile = start // total_iters_per_tile
    tiles_n = tl.cdiv(N, BN)
    m = tile // tiles_n * BM + tl.arange(0, BM)
    n = tile % tiles_n * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    k0 = start % total_iters_per_tile * BK
    a = a_ptr + m[:, None] * stride_am + k0 + k[None, :]
    b = b_ptr + (k0 + k)[:, None] * stride_bk + n[None, :]
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for i in range(start, end):
        left = K - i % total_iters_per_tile * BK
        acc += tl.dot(tl.load(a, mask=(m[:, None] < M) & (k[None, :] < left), other=0.0), tl.load(b, mask=(n[None, :] < N) & (k[:, None] < left), other=0.0))
        a += BK
        b += BK * stride_bk
    c = c_ptr + m[:, None] * stride_cm + n[None, :]
    ok = (m[:, None] < M) & (n[None, :] < N)
    if end % total_iters_per_tile == 0 and start % total_iters_per_tile == 0:
        tl.store(c, acc, mask=ok)
    else:
        tl.atomic_add(c, acc, mask=ok)


@triton.jit
def shares_of_all_steps_kernel(a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_bk, stride_cm, iters_per_tile, full_shares, rest, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Each program takes as many steps of inner products as every other one, wherever tiles begin and end.
    pid = tl.program_id(0)
    start = pid * full_shares + tl.minimum(pid, rest)
    last = (pid + 1) * full_shares + tl.minimum(pid + 1, rest)
    while start < last:
        end = tl.minimum(start + (iters_per_tile - start % iters_per_tile), last)
        mac_loop(a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_bk, stride_cm, iters_per_tile, start, end, BM, BN, BK)
        start = end


@case
def harvest_shared_out_evenly_by_steps(m=1100, n=1400, k=2080, programs=PROGRAMS):
    a, b, c = rand(m, k), rand(k, n) / 16, zeros(m, n, dtype="float32")
    per_tile = cdiv(k, 32)
    steps = cdiv(m, 128) * cdiv(n, 128) * per_tile
    args = a, b, c, m, n, k, a.stride(0), b.stride(0), c.stride(0), per_tile, steps // programs, steps % programs
    launched = run(shares_of_all_steps_kernel, (programs,), args, c, BM=128, BN=128, BK=32, num_warps=8, num_stages=3)
    return against(cleared(launched, c), lambda: a.float() @ b.float())


@triton.jit
def standardized(packed, mean, inv, ok):
    # Codes 0, 2 and 3 are two, one and no copies; 1 is missing.
    copies = tl.where(packed == 0, 2.0, tl.where(packed == 2, 1.0, 0.0))
    return tl.where((packed == 1) | (ok == 0), 0.0, (copies - mean) * inv)


@triton.jit
def kinship_of_packed_kernel(bed_ptr, mean_ptr, inv_ptr, out_ptr, people, markers, stride_bed, BLOCK_I: tl.constexpr, BLOCK_J: tl.constexpr, BLOCK_S: tl.constexpr):
    # Relationships between people from markers packed by four in a byte: standardized in registers, only the lower half.
    pi = tl.program_id(0)
    pj = tl.program_id(1)
    if pj * BLOCK_J > pi * BLOCK_I + BLOCK_I - 1:
        return
    i = pi * BLOCK_I + tl.arange(0, BLOCK_I)
    j = pj * BLOCK_J + tl.arange(0, BLOCK_J)
    acc = tl.zeros((BLOCK_I, BLOCK_J), dtype=tl.float32)
    for s0 in range(0, markers, BLOCK_S):
        s = s0 + tl.arange(0, BLOCK_S)
        ok = s < markers
        mean = tl.load(mean_ptr + s, mask=ok, other=0.0)
        inv = tl.load(inv_ptr + s, mask=ok, other=0.0)
        bytes_i = tl.load(bed_ptr + s[None, :] * stride_bed + i[:, None] // 4, mask=ok[None, :] & (i[:, None] < people), other=0)
        bytes_j = tl.load(bed_ptr + s[:, None] * stride_bed + j[None, :] // 4, mask=ok[:, None] & (j[None, :] < people), other=0)
        gi = standardized((bytes_i >> (i[:, None] % 4 * 2).to(tl.uint8)) & 3, mean[None, :], inv[None, :], ok[None, :])
        gj = standardized((bytes_j >> (j[None, :] % 4 * 2).to(tl.uint8)) & 3, mean[:, None], inv[:, None], ok[:, None])
        acc += tl.dot(gi.to(tl.float16), gj.to(tl.float16))
    acc = acc / markers
    tl.store(out_ptr + i[:, None] * people + j[None, :], acc, mask=(i[:, None] < people) & (j[None, :] <= i[:, None]))


@case
def harvest_of_markers_to_kinship(people=1003, markers=3001):
    bed = ints(0, 256, markers, cdiv(people, 4), dtype="uint8")
    share = uniform(markers) * 0.8 + 0.1
    mean, inv, out = 2 * share, (2 * share * (1 - share)).rsqrt(), zeros(people, people, dtype="float32")
    args = bed, mean, inv, out, people, markers, bed.stride(0)
    launched = run(kinship_of_packed_kernel, (cdiv(people, 64), cdiv(people, 64)), args, out, BLOCK_I=64, BLOCK_J=64, BLOCK_S=64, num_warps=4)

    def reference():
        code = ((bed.int()[:, :, None] >> (torch.arange(4, device=bed.device) * 2)) & 3).reshape(markers, -1)[:, :people]
        copies = torch.tensor([2.0, 0.0, 1.0, 0.0], device=bed.device)[code.long()]
        g = torch.where(code == 1, 0.0, (copies - mean[:, None]) * inv[:, None]).half().float()
        return (g.t() @ g / markers).tril()

    return against(launched, reference)


@triton.jit
def crossed_layer_kernel(x0_ptr, x_ptr, w_ptr, b_ptr, y_ptr, batch, dim, BLOCK_SIZE_M: tl.constexpr, BLOCK_SIZE_N: tl.constexpr, BLOCK_SIZE_K: tl.constexpr):
    # One layer of a deep and cross network: the first features times a linear layer of the last ones, plus the last ones.
    pid_m = tl.program_id(0)
    pid_n = tl.program_id(1)
    rm = pid_m * BLOCK_SIZE_M + tl.arange(0, BLOCK_SIZE_M)
    rn = pid_n * BLOCK_SIZE_N + tl.arange(0, BLOCK_SIZE_N)
    rk = tl.arange(0, BLOCK_SIZE_K)
    acc = tl.zeros((BLOCK_SIZE_M, BLOCK_SIZE_N), dtype=tl.float32)
    for k in range(0, tl.cdiv(dim, BLOCK_SIZE_K)):
        kk = k * BLOCK_SIZE_K + rk
        x = tl.load(x_ptr + rm[:, None] * dim + kk[None, :], mask=(rm[:, None] < batch) & (kk[None, :] < dim), other=0.0)
        w = tl.load(w_ptr + rn[None, :] * dim + kk[:, None], mask=(rn[None, :] < dim) & (kk[:, None] < dim), other=0.0)
        acc += tl.dot(x, w, allow_tf32=True)
    mask = (rm[:, None] < batch) & (rn[None, :] < dim)
    b = tl.load(b_ptr + rn, mask=rn < dim, other=0.0)
    x0 = tl.load(x0_ptr + rm[:, None] * dim + rn[None, :], mask=mask, other=0.0)
    x = tl.load(x_ptr + rm[:, None] * dim + rn[None, :], mask=mask, other=0.0)
    tl.store(y_ptr + rm[:, None] * dim + rn[None, :], x0 * (acc + b[None, :]) + x, mask=mask)


@case
def harvest_of_features_crossed_again(batch=8200, dim=429):
    x0, x, w, b = f32(batch, dim), f32(batch, dim), f32(dim, dim) / 16, f32(dim)
    y = zeros(batch, dim, dtype="float32")
    launched = run(crossed_layer_kernel, (cdiv(batch, 64), cdiv(dim, 64)), (x0, x, w, b, y, batch, dim), y, BLOCK_SIZE_M=64, BLOCK_SIZE_N=64, BLOCK_SIZE_K=32)
    return against(launched, lambda: (x0.double() * (x.double() @ w.double().t() + b) + x).float())


@triton.jit
def verified_branches_kernel(
    q_ptr, k_ptr, v_ptr, dk_ptr, dv_ptr, ancestors_ptr, lens_ptr, out_ptr, scale, max_len,
    HEADS: tl.constexpr, KV_HEADS: tl.constexpr, NODES: tl.constexpr, D: tl.constexpr, BLOCK_N: tl.constexpr,
):
    # Nodes of a tree of drafts see all of the sequence before, then those of their ancestors whose bits are set in a long.
    b = tl.program_id(0)
    head = tl.program_id(1)
    kvh = head // (HEADS // KV_HEADS)
    length = tl.load(lens_ptr + b)
    node = tl.arange(0, NODES)
    d = tl.arange(0, D)
    q = tl.load(q_ptr + ((b * NODES + node[:, None]) * HEADS + head) * D + d[None, :])
    q = (q * (scale * 1.44269504)).to(k_ptr.dtype.element_ty)
    m_i = tl.full([NODES], -1.0e30, dtype=tl.float32)
    l_i = tl.zeros([NODES], dtype=tl.float32)
    acc = tl.zeros([NODES, D], dtype=tl.float32)
    k_block = tl.make_block_ptr(k_ptr + (b.to(tl.int64) * max_len * KV_HEADS + kvh) * D, (D, length), (1, KV_HEADS * D), (0, 0), (D, BLOCK_N), (0, 1))
    v_block = tl.make_block_ptr(v_ptr + (b.to(tl.int64) * max_len * KV_HEADS + kvh) * D, (length, D), (KV_HEADS * D, 1), (0, 0), (BLOCK_N, D), (1, 0))
    for start in range(0, length, BLOCK_N):
        s = tl.dot(q, tl.load(k_block, boundary_check=(1,), padding_option="zero"))
        s = tl.where((start + tl.arange(0, BLOCK_N) < length)[None, :], s, -1.0e30)
        m_new = tl.maximum(m_i, tl.max(s, 1))
        alpha = tl.exp2(m_i - m_new)
        p = tl.exp2(s - m_new[:, None])
        l_i = l_i * alpha + tl.sum(p, 1)
        v = tl.load(v_block, boundary_check=(0,), padding_option="zero")
        acc = tl.dot(p.to(v.dtype), v, acc * alpha[:, None])
        m_i = m_new
        k_block = tl.advance(k_block, (0, BLOCK_N))
        v_block = tl.advance(v_block, (BLOCK_N, 0))
    other = ((b * NODES + node) * KV_HEADS + kvh) * D
    sees = (tl.load(ancestors_ptr + b * NODES + node)[:, None] >> node[None, :].to(tl.int64)) & 1
    s = tl.dot(q, tl.load(dk_ptr + other[None, :] + d[:, None]))
    s = tl.where(sees != 0, s, -1.0e30)
    m_new = tl.maximum(m_i, tl.max(s, 1))
    alpha = tl.exp2(m_i - m_new)
    p = tl.exp2(s - m_new[:, None])
    l_i = l_i * alpha + tl.sum(p, 1)
    v = tl.load(dv_ptr + other[:, None] + d[None, :])
    acc = tl.dot(p.to(v.dtype), v, acc * alpha[:, None])
    tl.store(out_ptr + ((b * NODES + node[:, None]) * HEADS + head) * D + d[None, :], (acc / l_i[:, None]).to(out_ptr.dtype.element_ty))


@case
def harvest_of_branches_verified_by_longs(batch=16, heads=28, kv_heads=4, nodes=64, d=128, most=1500):
    q = rand(batch, nodes, heads, d)
    k, v, dk, dv = rand(batch, most, kv_heads, d), rand(batch, most, kv_heads, d), rand(batch, nodes, kv_heads, d), rand(batch, nodes, kv_heads, d)
    lengths = ints(1, most + 1, batch)
    lengths[0] = most
    parents = [0] + [(i * 7 + 3) % i for i in range(1, nodes)]
    bits = []
    for i in range(nodes):
        bits.append((1 << i) | (bits[parents[i]] if i else 0))
    bits = torch.tensor([x - (1 << 64) if x >> 63 else x for x in bits], device="cuda", dtype=torch.int64)
    ancestors, out = bits.repeat(batch, 1).contiguous(), torch.zeros_like(q)
    args = q, k, v, dk, dv, ancestors, lengths, out, d**-0.5, most
    flags = dict(HEADS=heads, KV_HEADS=kv_heads, NODES=nodes, D=d, BLOCK_N=64)
    launched = run(verified_branches_kernel, (batch, heads), args, out, num_warps=4, num_stages=2, **flags)

    def reference():
        result, group = torch.zeros(batch, nodes, heads, d, device=q.device), heads // kv_heads
        sees = ((ancestors[0][:, None] >> torch.arange(nodes, device=q.device)) & 1).bool()
        for b in range(batch):
            n = int(lengths[b])
            keys = torch.cat((k[b, :n], dk[b])).float().repeat_interleave(group, 1)
            values = torch.cat((v[b, :n], dv[b])).float().repeat_interleave(group, 1)
            s = torch.einsum("mhd,nhd->hmn", q[b].float(), keys) * d**-0.5
            s[:, :, n:] = s[:, :, n:].masked_fill(~sees, float("-inf"))
            result[b] = torch.einsum("hmn,nhd->mhd", s.softmax(2), values)
        return result

    return against(launched, reference)


@triton.jit
def upsampled_by_phases_kernel(
    x_ptr, w_ptr, b_ptr, y_ptr, T, C_IN: tl.constexpr, C_OUT, slope, STRIDE: tl.constexpr, BLOCK_T: tl.constexpr, BLOCK_C: tl.constexpr, BLOCK_K: tl.constexpr,
):
    # A transposed convolution of a vocoder by phases: what is between two frames is made of both; a leaky unit comes before it.
    t = tl.program_id(0) * BLOCK_T + tl.arange(0, BLOCK_T)
    c = tl.program_id(1) * BLOCK_C + tl.arange(0, BLOCK_C)
    phase = tl.program_id(2) % STRIDE
    b = tl.program_id(2) // STRIDE
    k = tl.arange(0, BLOCK_K)
    acc = tl.zeros((BLOCK_C, BLOCK_T), dtype=tl.float32)
    x_row = x_ptr + b * C_IN * T
    for k0 in range(0, C_IN, BLOCK_K):
        now = tl.load(x_row + (k0 + k)[:, None] * T + t[None, :], mask=(t < T)[None, :], other=0.0)
        before = tl.load(x_row + (k0 + k)[:, None] * T + t[None, :] - 1, mask=((t >= 1) & (t <= T))[None, :], other=0.0)
        now = tl.where(now > 0, now, now * slope).to(x_ptr.dtype.element_ty)
        before = tl.where(before > 0, before, before * slope).to(x_ptr.dtype.element_ty)
        w = w_ptr + ((k0 + k)[None, :] * C_OUT + c[:, None]) * (2 * STRIDE) + phase
        acc = tl.dot(tl.load(w, mask=(c < C_OUT)[:, None], other=0.0), now, acc)
        acc = tl.dot(tl.load(w + STRIDE, mask=(c < C_OUT)[:, None], other=0.0), before, acc)
    acc += tl.load(b_ptr + c, mask=c < C_OUT, other=0.0)[:, None]
    to = y_ptr + (b * C_OUT + c[:, None]) * (STRIDE * (T + 1)) + t[None, :] * STRIDE + phase
    tl.store(to, acc.to(y_ptr.dtype.element_ty), mask=(c < C_OUT)[:, None] & (t <= T)[None, :])


@case
def harvest_of_voices_between_frames(batch=4, t=1037, c_in=192, c_out=100, stride=4):
    x, w, bias = rand(batch, c_in, t), rand(c_in, c_out, 2 * stride) / 8, f32(c_out)
    y = zeros(batch, c_out, stride * (t + 1))
    flags = dict(C_IN=c_in, STRIDE=stride, BLOCK_T=64, BLOCK_C=64, BLOCK_K=32)
    args = x, w, bias, y, t
    grid = (cdiv(t + 1, 64), cdiv(c_out, 64), batch * stride)
    launched = run(upsampled_by_phases_kernel, grid, args, y, C_OUT=c_out, slope=0.1, num_warps=4, num_stages=3, **flags)

    def reference():
        z = F.leaky_relu(x.float(), 0.1).half().float()
        return F.conv_transpose1d(z, w.float(), bias, stride=stride)

    return against(launched, reference)


@triton.jit
def chunk_inputs_from_states_kernel(
    x_ptr, b_ptr, dt_ptr, da_ptr, dstates_ptr, dx_ptr, ddt_ptr, seqlen, stride_xb, stride_xl, stride_xh, stride_bb, stride_bl, stride_bg, stride_dh,
    HEADS_PER_GROUP: tl.constexpr, CHUNK: tl.constexpr, HEADDIM: tl.constexpr, DSTATE: tl.constexpr, BLOCK_M: tl.constexpr,
):
    # Gradients of a chunk's inputs and steps from the gradient of the state that the chunk leaves, decayed to its end.
    pid_c = tl.program_id(0)
    batch = tl.program_id(1)
    head = tl.program_id(2)
    chunks = tl.num_programs(0)
    offs_n = tl.arange(0, DSTATE)
    offs_p = tl.arange(0, HEADDIM)
    row = (batch * tl.num_programs(2) + head) * stride_dh
    limit = tl.minimum(CHUNK, seqlen - pid_c * CHUNK)
    last = tl.load(da_ptr + row + pid_c * CHUNK + limit - 1)
    dstate = tl.load(dstates_ptr + (((batch * chunks + pid_c) * tl.num_programs(2) + head) * HEADDIM + offs_p[None, :]) * DSTATE + offs_n[:, None])
    dstate = dstate.to(b_ptr.dtype.element_ty)
    for m in range(0, limit, BLOCK_M):
        offs_m = m + tl.arange(0, BLOCK_M)
        ok = offs_m < limit
        l = pid_c * CHUNK + offs_m
        b = tl.load(b_ptr + batch * stride_bb + l[:, None] * stride_bl + head // HEADS_PER_GROUP * stride_bg + offs_n[None, :], mask=ok[:, None], other=0.0)
        acc = tl.dot(b, dstate)
        da = tl.load(da_ptr + row + l, mask=ok, other=0.0)
        dt = tl.load(dt_ptr + row + l, mask=ok, other=0.0)
        decay = tl.exp(tl.where(ok, last - da, 0.0))
        acc *= decay[:, None]
        at = batch * stride_xb + l[:, None] * stride_xl + head * stride_xh + offs_p[None, :]
        x = tl.load(x_ptr + at, mask=ok[:, None], other=0.0).to(tl.float32)
        tl.store(ddt_ptr + row + l, tl.sum(acc * x, axis=1), mask=ok)
        tl.store(dx_ptr + at, (acc * dt[:, None]).to(dx_ptr.dtype.element_ty), mask=ok[:, None])


@case
def harvest_of_chunks_from_the_states_they_left(batch=2, t=3900, heads=24, groups=2, p=64, n=128, chunk=256):
    x, b = rand(batch, t, heads, p, dtype="bfloat16"), rand(batch, t, groups, n, dtype="bfloat16")
    dt, chunks = uniform(batch, heads, t) * 0.1, cdiv(t, chunk)
    padded = F.pad(-dt, (0, chunks * chunk - t)).reshape(batch, heads, chunks, chunk).cumsum(3)
    da = padded.reshape(batch, heads, -1)[:, :, :t].contiguous()
    dstates, dx, ddt = f32(batch, chunks, heads, p, n), torch.zeros_like(x), torch.zeros_like(dt)
    args = x, b, dt, da, dstates, dx, ddt, t, *x.stride()[:3], *b.stride()[:3], dt.stride(1)
    flags = dict(HEADS_PER_GROUP=heads // groups, CHUNK=chunk, HEADDIM=p, DSTATE=n, BLOCK_M=64)
    launched = run(chunk_inputs_from_states_kernel, (chunks, batch, heads), args, (dx, ddt), num_warps=4, num_stages=3, **flags)

    def reference():
        at = torch.arange(t, device=x.device) // chunk
        lasts = da[:, :, ((at + 1) * chunk - 1).clamp(max=t - 1)]
        keys = b.float().repeat_interleave(heads // groups, 2)
        state = dstates.bfloat16().float()
        g = torch.zeros(batch, t, heads, p, device=x.device)
        for c in range(chunks):
            rows = slice(c * chunk, min((c + 1) * chunk, t))
            g[:, rows] = torch.einsum("blhn,bhpn->blhp", keys[:, rows], state[:, c])
        g *= (lasts - da).exp().transpose(1, 2)[..., None]
        return g * dt.transpose(1, 2)[..., None], (g * x.float()).sum(3).transpose(1, 2)

    return against(launched, reference)


@triton.jit
def decimal_floats_kernel(words_ptr, offset_ptr, base_ptr, width_ptr, factor_ptr, place_ptr, value_ptr, count_ptr, out_ptr, MOST: tl.constexpr, VECTOR: tl.constexpr):
    # Doubles that were decimals: integers of a vector's own width above its base, times a power of ten; exceptions are patched in.
    v = tl.program_id(0)
    i = tl.arange(0, VECTOR)
    width = tl.load(width_ptr + v)
    words = words_ptr + tl.load(offset_ptr + v)
    bit = i * width
    word = bit >> 5
    shift = (bit & 31).to(tl.uint64)
    low = tl.load(words + word).to(tl.uint32, bitcast=True).to(tl.uint64)
    high = tl.load(words + word + 1).to(tl.uint32, bitcast=True).to(tl.uint64)
    mask = (tl.full((VECTOR,), 1, tl.uint64) << width.to(tl.uint64)) - 1
    code = ((low | (high << 32)) >> shift) & mask
    value = (code.to(tl.int64) + tl.load(base_ptr + v)).to(tl.float64) * tl.load(factor_ptr + v)
    e = tl.arange(0, MOST)
    use = e < tl.load(count_ptr + v)
    tl.store(out_ptr + v * VECTOR + i, value)
    tl.debug_barrier()
    place = tl.load(place_ptr + v * MOST + e, mask=use, other=0).to(tl.int32)
    tl.store(out_ptr + v * VECTOR + place, tl.load(value_ptr + v * MOST + e, mask=use, other=0.0), mask=use)


@case
def harvest_of_doubles_that_were_decimals(vectors=6000, most=16):
    size = 1024
    width = ints(1, 31, vectors)
    lengths = width.long() * (size // 32) + 1
    offset = lengths.cumsum(0) - lengths
    words = ints(-(2**31), 2**31, int(lengths.sum()), dtype="int64").int()
    base, factor = ints(-(10**9), 10**9, vectors, dtype="int64"), 10.0 ** (-ints(0, 9, vectors).double())
    count = ints(0, most + 1, vectors)
    place = (torch.arange(most, device="cuda") * 61 + ints(0, 60, vectors, 1)).to(torch.int16)
    value, out = torch.randn(vectors, most, device="cuda", dtype=torch.float64), zeros(vectors, size, dtype="float64")
    args = words, offset, base, width, factor, place, value, count, out
    launched = run(decimal_floats_kernel, (vectors,), args, out, MOST=most, VECTOR=size, num_warps=4)

    def reference():
        bit = torch.arange(size, device=words.device) * width.long()[:, None]
        at, longs = offset[:, None] + (bit >> 5), words.long() & 0xFFFFFFFF
        pair = longs[at] >> (bit & 31) | (longs[at + 1] << (32 - (bit & 31)))
        code = pair & ((1 << width.long()) - 1)[:, None]
        result = (code + base[:, None]).double() * factor[:, None]
        use = torch.arange(most, device=words.device) < count[:, None]
        rows = torch.arange(vectors, device=words.device)[:, None].expand(-1, most)
        result[rows[use], place.long()[use]] = value[use]
        return result

    return against(launched, reference)


@triton.jit
def tremor_trigger_kernel(x_ptr, ratio_ptr, first_ptr, n_samples, short_len, long_len, threshold, BLOCK: tl.constexpr):
    # Short against long averages of energy at each station: windows by shifted sums, carried between blocks; the first time above.
    row = tl.program_id(0)
    base = row * n_samples
    idx = tl.arange(0, BLOCK)
    sta = 0.0
    lta = 0.0
    found = n_samples
    for start in range(0, n_samples, BLOCK):
        i = start + idx
        ok = i < n_samples
        x = tl.load(x_ptr + base + i, mask=ok, other=0.0)
        gone_s = tl.load(x_ptr + base + i - short_len, mask=ok & (i >= short_len), other=0.0)
        gone_l = tl.load(x_ptr + base + i - long_len, mask=ok & (i >= long_len), other=0.0)
        step_s = x * x - gone_s * gone_s
        step_l = x * x - gone_l * gone_l
        s = sta + tl.cumsum(step_s, axis=0)
        l = lta + tl.cumsum(step_l, axis=0)
        ratio = tl.where(i >= long_len - 1, (s / short_len) / (l / long_len + 1e-3), 0.0)
        tl.store(ratio_ptr + base + i, ratio, mask=ok)
        hit = tl.min(tl.where(ok & (ratio > threshold), i, n_samples), axis=0)
        found = tl.minimum(found, hit)
        sta += tl.sum(step_s, axis=0)
        lta += tl.sum(step_l, axis=0)
    tl.store(first_ptr + row, found)


@case
def harvest_of_tremors_by_two_averages(stations=400, n=9000, short=50, long=1000):
    x = (f32(stations, n) * 8).round() / 8
    x[:, n // 2 :] *= 1 + (torch.arange(stations, device=x.device) % 3)[:, None]
    ratio, first = torch.zeros_like(x), zeros(stations, dtype="int32")
    args = x, ratio, first, n, short, long, 2.50013
    launched = run(tremor_trigger_kernel, (stations,), args, (ratio, first), BLOCK=1024, num_warps=4)

    def reference():
        sums = F.pad((x.double() ** 2).cumsum(1), (1, 0))
        i = torch.arange(n, device=x.device)
        s = sums[:, i + 1] - sums[:, (i + 1 - short).clamp(min=0)]
        l = sums[:, i + 1] - sums[:, (i + 1 - long).clamp(min=0)]
        r = torch.where(i >= long - 1, (s / short) / (l / long + 1e-3), 0.0).float()
        return r, torch.where(r > 2.50013, i, n).amin(1).int()

    return against(launched, reference)


@triton.jit
def glass_in_order_kernel(depth_ptr, color_ptr, count_ptr, out_ptr, pixels, LAYERS: tl.constexpr, BLOCK: tl.constexpr):
    # Fragments of each pixel are sorted by depth and laid over each other from the front; a key is a depth's bits and a fragment's number.
    p = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    f = tl.arange(0, LAYERS)
    ok = p < pixels
    n = tl.load(count_ptr + p, mask=ok, other=0)
    here = f[None, :] < n[:, None]
    depth = tl.load(depth_ptr + p[:, None] * LAYERS + f[None, :], mask=here, other=float("inf"))
    key = (depth.to(tl.int32, bitcast=True).to(tl.int64) << 32) | f[None, :].to(tl.int64)
    key = tl.sort(key, dim=1)
    place = (key & (LAYERS - 1)).to(tl.int32)
    color = tl.load(color_ptr + p[:, None] * LAYERS + place, mask=here, other=0).to(tl.uint32, bitcast=True)
    alpha = (color >> 24).to(tl.float32) * (1.0 / 255.0)
    through = tl.cumprod(1.0 - alpha, axis=1)
    weight = through / tl.maximum(1.0 - alpha, 1e-6) * alpha
    red = tl.sum(weight * (color & 255).to(tl.float32), axis=1)
    green = tl.sum(weight * ((color >> 8) & 255).to(tl.float32), axis=1)
    blue = tl.sum(weight * ((color >> 16) & 255).to(tl.float32), axis=1)
    tl.store(out_ptr + p * 4, red / 255.0, mask=ok)
    tl.store(out_ptr + p * 4 + 1, green / 255.0, mask=ok)
    tl.store(out_ptr + p * 4 + 2, blue / 255.0, mask=ok)
    tl.store(out_ptr + p * 4 + 3, 1.0 - tl.min(through, axis=1), mask=ok)


@case
def harvest_of_panes_of_glass_in_order(pixels=200_003, layers=16):
    depth = torch.rand(pixels, layers, device="cuda")
    color = ints(0, 2**24, pixels, layers) + (ints(0, 120, pixels, layers) << 24)
    count, out = ints(0, layers + 1, pixels), zeros(pixels, 4, dtype="float32")
    launched = run(glass_in_order_kernel, (cdiv(pixels, 64),), (depth, color, count, out, pixels), out, LAYERS=layers, BLOCK=64, num_warps=4)

    def reference():
        here = torch.arange(layers, device=depth.device) < count[:, None]
        order = torch.where(here, depth, 2.0).sort(dim=1, stable=True).indices
        c = torch.where(here, color, 0).gather(1, order)
        a = (c >> 24).double() / 255
        through = (1 - a).cumprod(1)
        weight = F.pad(through[:, :-1], (1, 0), value=1) * a
        parts = [(weight * ((c >> s) & 255)).sum(1) / 255 for s in (0, 8, 16)]
        return torch.stack((*parts, 1 - through[:, -1]), 1).float()

    return against(launched, reference)


@triton.jit
def stochastic_vol_smile_kernel(f_ptr, k_ptr, t_ptr, alpha_ptr, rho_ptr, nu_ptr, out_ptr, n_strikes, beta, BLOCK_SIZE: tl.constexpr):
    # Implied volatilities of a stochastic model by its expansion, one smile a row, doubles.
    row = tl.program_id(0)
    offs = tl.program_id(1) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < n_strikes
    f = tl.load(f_ptr + row)
    t = tl.load(t_ptr + row)
    alpha = tl.load(alpha_ptr + row)
    rho = tl.load(rho_ptr + row)
    nu = tl.load(nu_ptr + row)
    k = tl.load(k_ptr + row * n_strikes + offs, mask=mask, other=1.0)
    one_beta = 1.0 - beta
    log_fk = tl.log(f / k)
    fk = tl.exp(0.5 * one_beta * tl.log(f * k))
    z = nu / alpha * fk * log_fk
    xi = tl.log((tl.sqrt(1.0 - 2.0 * rho * z + z * z) + z - rho) / (1.0 - rho))
    small = tl.abs(z) < 1e-6
    ratio = tl.where(small, 1.0 - 0.5 * rho * z, z / tl.where(small, 1.0, xi))
    b2 = one_beta * one_beta * log_fk * log_fk
    denom = fk * (1.0 + b2 / 24.0 + b2 * b2 / 1920.0)
    term = one_beta * one_beta / 24.0 * alpha * alpha / (fk * fk)
    term += 0.25 * rho * beta * nu * alpha / fk
    term += (2.0 - 3.0 * rho * rho) / 24.0 * nu * nu
    tl.store(out_ptr + row * n_strikes + offs, alpha / denom * ratio * (1.0 + term * t), mask=mask)


@case
def harvest_of_smiles_of_a_stochastic_model(rows=3000, strikes=201):
    f, t = uniform(rows).double() * 50 + 75, uniform(rows).double() * 5 + 0.1
    alpha, rho, nu = uniform(rows).double() * 2 + 1, uniform(rows).double() * 1.4 - 0.9, uniform(rows).double() * 0.6 + 0.1
    k = f[:, None] * torch.linspace(0.5, 1.8, strikes, device="cuda", dtype=torch.float64)
    k[:, 7] = f
    out = zeros(rows, strikes, dtype="float64")
    launched = run(stochastic_vol_smile_kernel, (rows, 1), (f, k, t, alpha, rho, nu, out, strikes, 0.5), out, BLOCK_SIZE=256)

    def reference():
        a, r, v, log_fk, fk = alpha[:, None], rho[:, None], nu[:, None], (f[:, None] / k).log(), (f[:, None] * k) ** 0.25
        z = v / a * fk * log_fk
        xi = (((1 - 2 * r * z + z * z).sqrt() + z - r) / (1 - r)).log()
        ratio = torch.where(z.abs() < 1e-6, 1 - 0.5 * r * z, z / torch.where(z.abs() < 1e-6, 1.0, xi))
        b2 = 0.25 * log_fk**2
        term = a * a / fk**2 / 96 + 0.125 * r * v * a / fk + (2 - 3 * r * r) / 24 * v * v
        return a / (fk * (1 + b2 / 24 + b2 * b2 / 1920)) * ratio * (1 + term * t[:, None])

    return against(launched, reference)


@triton.jit
def sign_of(x):
    return (x > 0).to(tl.int32) - (x < 0).to(tl.int32)


@triton.jit
def edge_offset_statistics_kernel(
    rec_ptr, org_ptr, sums_ptr, counts_ptr, height, width, blocks_x, dx, dy, CTU: tl.constexpr, LINES: tl.constexpr,
):
    # A video encoder looks for offsets of edges: classes of pixels by two neighbors, sums of errors and counts of each in a block of 64.
    block = tl.program_id(0)
    x0 = block % blocks_x * CTU
    y0 = block // blocks_x * CTU
    x = x0 + tl.arange(0, CTU)[None, :]
    edge = tl.arange(0, 8)
    sums = tl.zeros((8,), dtype=tl.int32)
    counts = tl.zeros((8,), dtype=tl.int32)
    for line in range(0, CTU, LINES):
        y = y0 + line + tl.arange(0, LINES)[:, None]
        inside = (x >= 1) & (x < width - 1) & (y >= 1) & (y < height - 1)
        at = y * width + x
        c = tl.load(rec_ptr + at, mask=inside, other=0).to(tl.int32)
        a = tl.load(rec_ptr + at + dy * width + dx, mask=inside, other=0).to(tl.int32)
        b = tl.load(rec_ptr + at - dy * width - dx, mask=inside, other=0).to(tl.int32)
        org = tl.load(org_ptr + at, mask=inside, other=0).to(tl.int32)
        kind = tl.reshape(tl.where(inside, 2 + sign_of(c - a) + sign_of(c - b), 7), (CTU * LINES,))
        error = tl.reshape(tl.where(inside, org - c, 0), (CTU * LINES,))
        one = kind[:, None] == edge[None, :]
        sums += tl.sum(tl.where(one, error[:, None], 0), axis=0)
        counts += tl.sum(one.to(tl.int32), axis=0)
    tl.store(sums_ptr + block * 8 + edge, sums, mask=edge < 5)
    tl.store(counts_ptr + block * 8 + edge, counts, mask=edge < 5)


@case
def harvest_of_edges_for_offsets_of_a_codec(height=1080, width=1920, dx=1, dy=1):
    rec = ints(0, 256, height, width, dtype="uint8")
    org = (rec.int() + ints(-9, 10, height, width)).clamp(0, 255).to(torch.uint8)
    bx, by = cdiv(width, 64), cdiv(height, 64)
    sums, counts = zeros(bx * by, 8, dtype="int32"), zeros(bx * by, 8, dtype="int32")
    args = rec, org, sums, counts, height, width, bx, dx, dy
    launched = run(edge_offset_statistics_kernel, (bx * by,), args, (sums, counts), CTU=64, LINES=8, num_warps=4)

    def reference():
        c, o = rec.int(), org.int()
        a, b = c.roll((-dy, -dx), (0, 1)), c.roll((dy, dx), (0, 1))
        kind = 2 + (c - a).sign() + (c - b).sign()
        y, x = torch.meshgrid(torch.arange(height, device=c.device), torch.arange(width, device=c.device), indexing="ij")
        inside = (x >= 1) & (x < width - 1) & (y >= 1) & (y < height - 1)
        key = ((y // 64 * bx + x // 64) * 8 + kind)[inside].long()
        s = torch.zeros(bx * by * 8, device=c.device, dtype=torch.int64).index_add_(0, key, (o - c)[inside].long())
        n = torch.bincount(key, minlength=bx * by * 8)
        return s.reshape(-1, 8).int(), n.reshape(-1, 8).int()

    return against(launched, reference)


@triton.jit
def pitch_by_differences_kernel(x_ptr, out_ptr, lag_ptr, hop, n_lags, threshold, W: tl.constexpr, LAGS: tl.constexpr, PER: tl.constexpr):
    # Pitch of a frame: squared differences with all lags, over their running mean; the first lag below a bound, or the least.
    frame = tl.program_id(0)
    base = x_ptr + frame * hop
    lag = tl.arange(0, LAGS)
    ok = lag < n_lags
    diff = tl.zeros((LAGS,), dtype=tl.float32)
    for j in range(0, W, PER):
        at = j + tl.arange(0, PER)
        x = tl.load(base + at)
        y = tl.load(base + at[None, :] + lag[:, None], mask=ok[:, None], other=0.0)
        e = x[None, :] - y
        diff += tl.sum(e * e, axis=1)
    total = tl.cumsum(diff, axis=0)
    cmnd = tl.where(lag == 0, 1.0, diff * lag / tl.maximum(total, 1e-12))
    tl.store(out_ptr + frame * n_lags + lag, cmnd, mask=ok)
    below = tl.min(tl.where(ok & (lag >= 2) & (cmnd < threshold), lag, LAGS), axis=0)
    least = tl.argmin(tl.where(ok & (lag >= 2), cmnd, float("inf")), axis=0)
    tl.store(lag_ptr + frame, tl.where(below < LAGS, below, least))


@case
def harvest_of_pitches_by_running_means(frames=2000, hop=160, w=512, lags=250):
    n = (frames - 1) * hop + w + lags
    t = torch.arange(n, device="cuda", dtype=torch.float64) / 16000
    x = (torch.sin(2 * math.pi * (180 * t + 2.0 * torch.sin(7 * t))) + 0.5 * torch.sin(2 * math.pi * 3 * 180.3 * t)).float() + 0.1 * f32(n)
    out, lag = zeros(frames, lags, dtype="float32"), zeros(frames, dtype="int32")
    launched = run(pitch_by_differences_kernel, (frames,), (x, out, lag, hop, lags, 0.15), (out, lag), W=w, LAGS=256, PER=16, num_warps=4)

    def reference():
        windows = x.double().unfold(0, w + lags, hop)[:frames]
        base = windows[:, :w]
        diff = torch.stack([(base - windows[:, i : i + w]).square().sum(1) for i in range(lags)], 1)
        i = torch.arange(lags, device=x.device)
        cmnd = torch.where(i == 0, 1.0, diff * i / diff.cumsum(1).clamp(min=1e-12)).float()
        below = torch.where((i >= 2) & (cmnd < 0.15), i, 256).amin(1)
        least = torch.where(i >= 2, cmnd, float("inf")).argmin(1)
        return cmnd, torch.where(below < 256, below, least).int()

    return against(launched, reference)


@triton.jit
def channelwise_scaled_update_kernel(
    p_ptr, g_ptr, m_ptr, v_ptr, low_ptr, prev_norm_ptr, p_out_ptr, norm_out_ptr, cols, rank, lr, beta1, beta2, eps, wd, growth,
    BLOCK: tl.constexpr, RANK: tl.constexpr,
):
    # A gradient's channel is scaled as an adaptive step scales its projection of few numbers; norms may grow by little.
    row = tl.program_id(0).to(tl.int64)
    r = tl.arange(0, RANK)
    ok = r < rank
    low = tl.load(low_ptr + row * rank + r, mask=ok, other=0.0)
    m = beta1 * tl.load(m_ptr + row * rank + r, mask=ok, other=0.0) + (1.0 - beta1) * low
    v = beta2 * tl.load(v_ptr + row * rank + r, mask=ok, other=0.0) + (1.0 - beta2) * low * low
    step = tl.where(ok, m / (tl.sqrt(v) + eps), 0.0)
    scale = tl.sqrt(tl.sum(step * step, 0)) / (tl.sqrt(tl.sum(low * low, 0)) + 1e-8)
    square = tl.zeros((BLOCK,), dtype=tl.float32)
    for c in range(0, cols, BLOCK):
        at = c + tl.arange(0, BLOCK)
        g = tl.load(g_ptr + row * cols + at, mask=at < cols, other=0.0).to(tl.float32) * scale
        square += g * g
    norm = tl.sqrt(tl.sum(square, 0))
    previous = tl.load(prev_norm_ptr + row)
    limit = tl.where(previous > 0, tl.minimum(1.0, growth * previous / (norm + 1e-8)), 1.0)
    for c in range(0, cols, BLOCK):
        at = c + tl.arange(0, BLOCK)
        g = tl.load(g_ptr + row * cols + at, mask=at < cols, other=0.0).to(tl.float32) * (scale * limit)
        p = tl.load(p_ptr + row * cols + at, mask=at < cols, other=0.0).to(tl.float32)
        tl.store(p_out_ptr + row * cols + at, (p * (1.0 - lr * wd) - lr * g).to(p_out_ptr.dtype.element_ty), mask=at < cols)
    tl.store(norm_out_ptr + row, norm * limit)


@case
def harvest_of_channels_scaled_by_projections(rows=4001, cols=3333, rank=24):
    p, g = rand(rows, cols, dtype="bfloat16"), rand(rows, cols, dtype="bfloat16")
    low, m, v = f32(rows, rank), f32(rows, rank) / 4, uniform(rows, rank) + 0.1
    previous = uniform(rows) * 60 - 5
    p_out, norm = torch.zeros_like(p), zeros(rows, dtype="float32")
    args = p, g, m, v, low, previous, p_out, norm, cols, rank, 0.01, 0.9, 0.99, 1e-8, 0.1, 1.01
    launched = run(channelwise_scaled_update_kernel, (rows,), args, (p_out, norm), BLOCK=1024, RANK=32, num_warps=8)

    def reference():
        step = (0.9 * m + 0.1 * low) / ((0.99 * v + 0.01 * low * low).sqrt() + 1e-8)
        z = g.float() * (step.norm(dim=1) / (low.norm(dim=1) + 1e-8))[:, None]
        n = z.norm(dim=1)
        limit = torch.where(previous > 0, (1.01 * previous / (n + 1e-8)).clamp(max=1), 1.0)
        return p.float() * (1 - 0.01 * 0.1) - 0.01 * z * limit[:, None], n * limit

    return against(launched, reference)
