"""Ferries: what is carried across: new tokens to their prefix, heads to pages, rows to experts and through norms, cars, ships, tours, and gradients on their way back."""

import math

import torch
import torch.nn.functional as F
import triton
import triton.language as tl
from triton.language.extra import libdevice

from .common import against, arange, case, cdiv, f8, f32, ints, rand, run, uniform, zeros


@triton.jit
def capped_by_a_sigmoid(x, CAP: tl.constexpr):
    if CAP > 0:
        x = CAP * (2.0 * tl.sigmoid(2.0 * x / CAP) - 1.0)
    return x


@triton.jit
def ferry_extend_fwd_kernel(
    Q_Extend, K_Extend, V_Extend, O_Extend, K_Buffer, V_Buffer, qo_indptr, kv_indptr, kv_indices, sm_scale,
    stride_qbs, stride_qh, stride_kbs, stride_kh, stride_vbs, stride_vh, stride_obs, stride_oh, stride_buf_kbs, stride_buf_kh, stride_buf_vbs, stride_buf_vh,
    kv_group_num: tl.constexpr, LOGIT_CAP: tl.constexpr, WINDOW: tl.constexpr, Lq: tl.constexpr, BLOCK_DMODEL: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):
    # New tokens see a window of a prefix whose slots are listed, then each other; logits are capped.
    cur_seq = tl.program_id(0)
    cur_head = tl.program_id(1)
    cur_block_m = tl.program_id(2)
    cur_kv_head = cur_head // kv_group_num
    cur_seq_start = tl.load(qo_indptr + cur_seq)
    cur_len_extend = tl.load(qo_indptr + cur_seq + 1) - cur_seq_start
    cur_kv_start = tl.load(kv_indptr + cur_seq)
    cur_len_prefix = tl.load(kv_indptr + cur_seq + 1) - cur_kv_start
    if cur_block_m * BLOCK_M >= cur_len_extend:
        return
    offs_d = tl.arange(0, BLOCK_DMODEL)
    offs_m = cur_block_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = tl.arange(0, BLOCK_N)
    mask_m = offs_m < cur_len_extend
    mask_d = offs_d < Lq
    q_pos = cur_len_prefix + offs_m
    q = tl.load(Q_Extend + (cur_seq_start + offs_m[:, None]) * stride_qbs + cur_head * stride_qh + offs_d[None, :], mask=mask_m[:, None] & mask_d[None, :], other=0.0)
    acc = tl.zeros([BLOCK_M, BLOCK_DMODEL], dtype=tl.float32)
    deno = tl.zeros([BLOCK_M], dtype=tl.float32)
    e_max = tl.zeros([BLOCK_M], dtype=tl.float32) - 1.0e20
    first = 0
    if WINDOW > 0:
        first = tl.maximum(cur_len_prefix + cur_block_m * BLOCK_M - WINDOW, 0) // BLOCK_N * BLOCK_N
    for start_n in range(first, cur_len_prefix, BLOCK_N):
        start_n = tl.multiple_of(start_n, BLOCK_N)
        n = start_n + offs_n
        mask_n = n < cur_len_prefix
        final_mask = mask_m[:, None] & mask_n[None, :]
        if WINDOW > 0:
            final_mask &= q_pos[:, None] - n[None, :] <= WINDOW
        loc = tl.load(kv_indices + cur_kv_start + n, mask=mask_n, other=0)
        k = tl.load(K_Buffer + loc[None, :] * stride_buf_kbs + cur_kv_head * stride_buf_kh + offs_d[:, None], mask=mask_n[None, :] & mask_d[:, None], other=0.0)
        qk = tl.dot(q.to(k.dtype), k) * sm_scale
        qk = tl.where(final_mask, capped_by_a_sigmoid(qk, LOGIT_CAP), float("-inf"))
        n_e_max = tl.maximum(tl.max(qk, 1), e_max)
        re_scale = tl.exp(e_max - n_e_max)
        p = tl.exp(qk - n_e_max[:, None])
        deno = deno * re_scale + tl.sum(p, 1)
        v = tl.load(V_Buffer + loc[:, None] * stride_buf_vbs + cur_kv_head * stride_buf_vh + offs_d[None, :], mask=mask_n[:, None] & mask_d[None, :], other=0.0)
        acc = acc * re_scale[:, None] + tl.dot(p.to(v.dtype), v)
        e_max = n_e_max
    cur_block_m_end = tl.minimum(cur_len_extend, (cur_block_m + 1) * BLOCK_M)
    for start_n in range(0, cur_block_m_end, BLOCK_N):
        start_n = tl.multiple_of(start_n, BLOCK_N)
        n = start_n + offs_n
        mask_n = n < cur_block_m_end
        final_mask = mask_m[:, None] & mask_n[None, :] & (offs_m[:, None] >= n[None, :])
        if WINDOW > 0:
            final_mask &= offs_m[:, None] - n[None, :] <= WINDOW
        k = tl.load(K_Extend + (cur_seq_start + n[None, :]) * stride_kbs + cur_kv_head * stride_kh + offs_d[:, None], mask=mask_n[None, :] & mask_d[:, None], other=0.0)
        qk = tl.dot(q, k, out_dtype=tl.float32) * sm_scale
        qk = tl.where(final_mask, capped_by_a_sigmoid(qk, LOGIT_CAP), float("-inf"))
        n_e_max = tl.maximum(tl.max(qk, 1), e_max)
        re_scale = tl.exp(e_max - n_e_max)
        p = tl.exp(qk - n_e_max[:, None])
        deno = deno * re_scale + tl.sum(p, 1)
        v = tl.load(V_Extend + (cur_seq_start + n[:, None]) * stride_vbs + cur_kv_head * stride_vh + offs_d[None, :], mask=mask_n[:, None] & mask_d[None, :], other=0.0)
        acc = acc * re_scale[:, None] + tl.dot(p.to(v.dtype), v)
        e_max = n_e_max
    out = O_Extend + (cur_seq_start + offs_m[:, None]) * stride_obs + cur_head * stride_oh + offs_d[None, :]
    tl.store(out, acc / deno[:, None], mask=mask_m[:, None] & mask_d[None, :])


@case
def ferry_of_new_tokens_to_a_window_of_their_prefix(prefix=(900, 0, 2500, 333, 64), extend=(200, 450, 130, 1, 301), heads=16, kv_heads=4, d=96, window=700):
    total, slots, seqs = sum(extend), sum(prefix) + 77, len(prefix)
    q, k, v = rand(total, heads, d, dtype="bfloat16"), rand(total, kv_heads, d, dtype="bfloat16"), rand(total, kv_heads, d, dtype="bfloat16")
    kb, vb, out = rand(slots, kv_heads, d, dtype="bfloat16"), rand(slots, kv_heads, d, dtype="bfloat16"), zeros(total, heads, d, dtype="bfloat16")
    qo = torch.tensor([sum(extend[:i]) for i in range(seqs + 1)], dtype=torch.int32, device="cuda")
    kv = torch.tensor([sum(prefix[:i]) for i in range(seqs + 1)], dtype=torch.int32, device="cuda")
    where = torch.randperm(slots, device="cuda")[: sum(prefix)].to(torch.int64)
    strides = [s for x in (q, k, v, out, kb, vb) for s in x.stride()[:2]]
    args = q, k, v, out, kb, vb, qo, kv, where, d**-0.5, *strides
    flags = dict(kv_group_num=heads // kv_heads, LOGIT_CAP=30, WINDOW=window, Lq=d, BLOCK_DMODEL=128, BLOCK_M=64, BLOCK_N=64)
    launched = run(ferry_extend_fwd_kernel, (seqs, heads, cdiv(max(extend), 64)), args, out, num_warps=4, num_stages=1, **flags)

    def reference():
        result, a, b = torch.zeros(total, heads, d, device=q.device), 0, 0
        for pre, new in zip(prefix, extend):
            keys = torch.cat((kb[where[b : b + pre]], k[a : a + new])).float().repeat_interleave(heads // kv_heads, 1)
            values = torch.cat((vb[where[b : b + pre]], v[a : a + new])).float().repeat_interleave(heads // kv_heads, 1)
            s = 30 * torch.tanh(torch.einsum("mhd,nhd->hmn", q[a : a + new].float(), keys) * d**-0.5 / 30)
            apart = (pre + torch.arange(new, device=q.device))[:, None] - torch.arange(pre + new, device=q.device)
            s = s.masked_fill((apart < 0) | (apart > window), float("-inf"))
            result[a : a + new] = torch.einsum("hmn,nhd->mhd", s.softmax(2), values)
            a, b = a + new, b + pre
        return result

    return against(launched, reference)


@triton.jit
def seven_heads_a_key_stage1(
    Q, K_Buffer, V_Buffer, sm_scale, k_scale, v_scale, Req_to_tokens, B_Seqlen, Att_Out, Att_Lse,
    stride_req, stride_qb, stride_qh, stride_kt, stride_kh, stride_mb, stride_mh, stride_ms,
    GROUP: tl.constexpr, BLOCK_H: tl.constexpr, D: tl.constexpr, BLOCK_N: tl.constexpr, NUM_KV_SPLITS: tl.constexpr, MIN_BLOCK_KV: tl.constexpr,
):
    # A part of the fp8 keys of a sequence for the seven heads that share them, in 16 rows.
    cur_batch = tl.program_id(0)
    cur_kv_head = tl.program_id(1)
    split_kv_id = tl.program_id(2)
    offs_h = tl.arange(0, BLOCK_H)
    mask_h = offs_h < GROUP
    cur_head = cur_kv_head * GROUP + offs_h
    offs_d = tl.arange(0, D)
    seq_len = tl.load(B_Seqlen + cur_batch)
    kv_len_per_split = tl.cdiv(tl.cdiv(seq_len, NUM_KV_SPLITS), MIN_BLOCK_KV) * MIN_BLOCK_KV
    split_start = kv_len_per_split * split_kv_id
    split_end = tl.minimum(split_start + kv_len_per_split, seq_len)
    e_max = tl.zeros([BLOCK_H], dtype=tl.float32) - float("inf")
    e_sum = tl.zeros([BLOCK_H], dtype=tl.float32)
    acc = tl.zeros([BLOCK_H, D], dtype=tl.float32)
    if split_end > split_start:
        q = tl.load(Q + cur_batch * stride_qb + cur_head[:, None] * stride_qh + offs_d[None, :], mask=mask_h[:, None], other=0.0)
        for start_n in range(split_start, split_end, BLOCK_N):
            offs_n = start_n + tl.arange(0, BLOCK_N)
            kv_loc = tl.load(Req_to_tokens + cur_batch * stride_req + offs_n, mask=offs_n < split_end, other=0)
            k = tl.load(K_Buffer + kv_loc[None, :] * stride_kt + cur_kv_head * stride_kh + offs_d[:, None], mask=offs_n[None, :] < split_end, other=0.0)
            qk = tl.dot(q, k.to(q.dtype))
            qk *= sm_scale * k_scale
            qk = tl.where(mask_h[:, None] & (offs_n[None, :] < split_end), qk, float("-inf"))
            qk = tl.where(mask_h[:, None], qk, 0.0)
            v = tl.load(V_Buffer + kv_loc[:, None] * stride_kt + cur_kv_head * stride_kh + offs_d[None, :], mask=offs_n[:, None] < split_end, other=0.0)
            n_e_max = tl.maximum(tl.max(qk, 1), e_max)
            re_scale = tl.exp(e_max - n_e_max)
            p = tl.exp(qk - n_e_max[:, None])
            acc *= re_scale[:, None]
            acc += tl.dot(p.to(q.dtype), v.to(q.dtype))
            e_sum = e_sum * re_scale + tl.sum(p, 1)
            e_max = n_e_max
        mid = cur_batch * stride_mb + cur_head * stride_mh + split_kv_id * stride_ms
        tl.store(Att_Out + mid[:, None] + offs_d[None, :], acc * v_scale / e_sum[:, None], mask=mask_h[:, None])
        tl.store(Att_Lse + mid // D, e_max + tl.log(e_sum), mask=mask_h)


@triton.jit
def seven_heads_a_key_stage2(
    Mid_O, Mid_Lse, O, B_Seqlen, sink_ptr, stride_mb, stride_mh, stride_ms, stride_ob, stride_oh,
    NUM_KV_SPLITS: tl.constexpr, MIN_BLOCK_KV: tl.constexpr, D: tl.constexpr,
):
    # The parts of a head are joined; a learned sink takes its share at the end.
    cur_batch = tl.program_id(0)
    cur_head = tl.program_id(1)
    seq_len = tl.load(B_Seqlen + cur_batch)
    kv_len_per_split = tl.cdiv(tl.cdiv(seq_len, NUM_KV_SPLITS), MIN_BLOCK_KV) * MIN_BLOCK_KV
    offs_d = tl.arange(0, D)
    e_sum = 0.0
    e_max = -float("inf")
    acc = tl.zeros([D], dtype=tl.float32)
    at = cur_batch * stride_mb + cur_head * stride_mh
    for split_kv_id in range(0, NUM_KV_SPLITS):
        split_start = kv_len_per_split * split_kv_id
        split_end = tl.minimum(split_start + kv_len_per_split, seq_len)
        if split_end > split_start:
            tv = tl.load(Mid_O + at + split_kv_id * stride_ms + offs_d)
            tlogic = tl.load(Mid_Lse + (at + split_kv_id * stride_ms) // D)
            n_e_max = tl.maximum(tlogic, e_max)
            old_scale = tl.exp(e_max - n_e_max)
            exp_logic = tl.exp(tlogic - n_e_max)
            acc = acc * old_scale + exp_logic * tv
            e_sum = e_sum * old_scale + exp_logic
            e_max = n_e_max
    e_sum += tl.exp(tl.load(sink_ptr + cur_head) - e_max)
    tl.store(O + cur_batch * stride_ob + cur_head * stride_oh + offs_d, acc / e_sum)


@case
def ferry_of_seven_heads_a_key_over_bytes_in_eight_parts(lengths=(3000, 17, 4100, 1, 900, 2048, 129, 5000, 777, 64, 65, 3333), kv_heads=4, group=7, d=128, splits=8):
    b, heads, most = len(lengths), kv_heads * group, max(lengths)
    slots = sum(lengths)
    q, k, v = rand(b, heads, d, dtype="bfloat16"), f8(slots, kv_heads, d), f8(slots, kv_heads, d)
    perm = torch.randperm(slots, device="cuda").to(torch.int32)
    table = zeros(b, most, dtype="int32")
    for i, n in enumerate(lengths):
        table[i, :n] = perm[sum(lengths[:i]) : sum(lengths[:i]) + n]
    size = torch.tensor(lengths, dtype=torch.int32, device="cuda")
    mid, lse, sinks, out = f32(b, heads, splits, d), f32(b, heads, splits), f32(heads), zeros(b, heads, d, dtype="bfloat16")
    scale, ks, vs = d**-0.5, 0.75, 1.25

    def launch(q, k, v, table, size, mid, lse, sinks, out):
        seven_heads_a_key_stage1[(b, kv_heads, splits)](
            q, k, v, scale, ks, vs, table, size, mid, lse, table.stride(0), q.stride(0), q.stride(1), k.stride(0), k.stride(1), *mid.stride()[:3],
            GROUP=group, BLOCK_H=16, D=d, BLOCK_N=32, NUM_KV_SPLITS=splits, MIN_BLOCK_KV=32, num_warps=4, num_stages=2,
        )  # fmt: skip
        seven_heads_a_key_stage2[(b, heads)](
            mid, lse, out, size, sinks, *mid.stride()[:3], out.stride(0), out.stride(1), NUM_KV_SPLITS=splits, MIN_BLOCK_KV=32, D=d, num_warps=4, num_stages=2
        )
        return out

    def reference():
        result = torch.zeros(b, heads, d, device=q.device)
        for i, n in enumerate(lengths):
            keys, values = (x[table[i, :n].long()].float().repeat_interleave(group, 1) for x in (k, v))
            s = torch.einsum("hd,nhd->hn", q[i].float(), keys) * scale * ks
            p = torch.cat((s, sinks[:, None]), 1).softmax(1)[:, :-1]
            result[i] = torch.einsum("hn,nhd->hd", p, values) * vs
        return result

    return against((launch, (q, k, v, table, size, mid, lse, sinks, out)), reference)


@triton.jit
def capped_groups_dkdv_kernel(
    Q, K, V, DO, LSE, DELTA, DK, DV, cu_seqlens, sm_scale, total, stride_qt, stride_qh, stride_kt, stride_kh,
    GROUP: tl.constexpr, CAP: tl.constexpr, D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):
    # Gradients of keys and values of packed sequences: each program goes through all heads of its group, logits were capped by tanh.
    start_n = tl.program_id(0) * BLOCK_N
    kv_head = tl.program_id(1)
    seq = tl.program_id(2)
    begin = tl.load(cu_seqlens + seq)
    length = tl.load(cu_seqlens + seq + 1) - begin
    if start_n >= length:
        return
    offs_n = start_n + tl.arange(0, BLOCK_N)
    offs_d = tl.arange(0, D)
    mask_n = offs_n < length
    kv_off = (begin + offs_n)[:, None] * stride_kt + kv_head * stride_kh + offs_d[None, :]
    k = tl.load(K + kv_off, mask=mask_n[:, None], other=0.0)
    v = tl.load(V + kv_off, mask=mask_n[:, None], other=0.0)
    dk = tl.zeros([BLOCK_N, D], dtype=tl.float32)
    dv = tl.zeros([BLOCK_N, D], dtype=tl.float32)
    for g in range(GROUP):
        head = kv_head * GROUP + g
        for start_m in range(start_n // BLOCK_M * BLOCK_M, length, BLOCK_M):
            offs_m = start_m + tl.arange(0, BLOCK_M)
            mask_m = offs_m < length
            q_off = (begin + offs_m)[:, None] * stride_qt + head * stride_qh + offs_d[None, :]
            q = tl.load(Q + q_off, mask=mask_m[:, None], other=0.0)
            do = tl.load(DO + q_off, mask=mask_m[:, None], other=0.0)
            lse = tl.load(LSE + head * total + begin + offs_m, mask=mask_m, other=0.0)
            delta = tl.load(DELTA + head * total + begin + offs_m, mask=mask_m, other=0.0)
            s = tl.dot(q, tl.trans(k)) * (sm_scale / CAP)
            t = 2.0 / (1.0 + tl.exp(-2.0 * s)) - 1.0
            keep = (offs_m[:, None] >= offs_n[None, :]) & mask_m[:, None] & mask_n[None, :]
            p = tl.where(keep, tl.exp(t * CAP - lse[:, None]), 0.0)
            dv += tl.dot(tl.trans(p.to(do.dtype)), do)
            dp = tl.dot(do, tl.trans(v))
            ds = p * (dp - delta[:, None]) * (1.0 - t * t)
            dk += tl.dot(tl.trans(ds.to(q.dtype)), q)
    tl.store(DK + kv_off, (dk * sm_scale).to(DK.dtype.element_ty), mask=mask_n[:, None])
    tl.store(DV + kv_off, dv.to(DV.dtype.element_ty), mask=mask_n[:, None])


@case
def ferry_of_capped_gradients_back_to_shared_keys(lengths=(700, 33, 512, 901), kv_heads=8, group=3, d=64):
    total, heads, cap, scale = sum(lengths), kv_heads * group, 15.0, d**-0.5
    q, do = rand(total, heads, d), rand(total, heads, d)
    k, v = rand(total, kv_heads, d), rand(total, kv_heads, d)
    lse, delta = uniform(heads, total) + 4, f32(heads, total)
    dk, dv = zeros(total, kv_heads, d), zeros(total, kv_heads, d)
    cu = torch.tensor([sum(lengths[:i]) for i in range(len(lengths) + 1)], dtype=torch.int32, device="cuda")
    args = q, k, v, do, lse, delta, dk, dv, cu, scale, total, q.stride(0), q.stride(1), k.stride(0), k.stride(1)
    flags = dict(GROUP=group, CAP=cap, D=d, BLOCK_M=64, BLOCK_N=64)
    launched = run(capped_groups_dkdv_kernel, (cdiv(max(lengths), 64), kv_heads, len(lengths)), args, (dk, dv), num_warps=4, num_stages=2, **flags)

    def reference():
        gk, gv, a = torch.zeros(total, kv_heads, d, device=q.device), torch.zeros(total, kv_heads, d, device=q.device), 0
        for n in lengths:
            at = slice(a, a + n)
            keys, values = (x[at].float().repeat_interleave(group, 1) for x in (k, v))
            t = torch.tanh(torch.einsum("mhd,nhd->hmn", q[at].float(), keys) * scale / cap)
            p = (t * cap - lse[:, at, None]).exp().tril()
            ds = p * (torch.einsum("mhd,nhd->hmn", do[at].float(), values) - delta[:, at, None]) * (1 - t * t) * scale
            gk[at] = torch.einsum("hmn,mhd->nhd", ds, q[at].float()).reshape(n, kv_heads, group, d).sum(2)
            gv[at] = torch.einsum("hmn,mhd->nhd", p, do[at].float()).reshape(n, kv_heads, group, d).sum(2)
            a += n
        return gk, gv

    return against(launched, reference)


@triton.jit
def two_maps_one_value_kernel(
    q_ptr, k_ptr, v_ptr, lam_ptr, g_ptr, o_ptr, scale, lambda_init, eps, T,
    H: tl.constexpr, D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):
    # Differential attention: two softmaxes of halves of heads over one value of twice their width, subtracted, then normed by head.
    start_m = tl.program_id(0) * BLOCK_M
    b = tl.program_id(1) // H
    h = tl.program_id(1) % H
    offs_m = start_m + tl.arange(0, BLOCK_M)
    offs_d = tl.arange(0, D)
    offs_e = tl.arange(0, 2 * D)
    mask_m = offs_m < T
    row = (b * T + offs_m) * (2 * H) + 2 * h
    q1 = tl.load(q_ptr + row[:, None] * D + offs_d[None, :], mask=mask_m[:, None], other=0.0)
    q2 = tl.load(q_ptr + (row + 1)[:, None] * D + offs_d[None, :], mask=mask_m[:, None], other=0.0)
    m1 = tl.full([BLOCK_M], -1e30, tl.float32)
    m2 = tl.full([BLOCK_M], -1e30, tl.float32)
    l1 = tl.zeros([BLOCK_M], tl.float32)
    l2 = tl.zeros([BLOCK_M], tl.float32)
    acc1 = tl.zeros([BLOCK_M, 2 * D], tl.float32)
    acc2 = tl.zeros([BLOCK_M, 2 * D], tl.float32)
    qk_scale = scale * 1.44269504
    for start_n in tl.range(0, tl.minimum(start_m + BLOCK_M, T), BLOCK_N):
        offs_n = start_n + tl.arange(0, BLOCK_N)
        mask_n = offs_n < T
        key = (b * T + offs_n) * (2 * H) + 2 * h
        k1 = tl.load(k_ptr + key[None, :] * D + offs_d[:, None], mask=mask_n[None, :], other=0.0)
        k2 = tl.load(k_ptr + (key + 1)[None, :] * D + offs_d[:, None], mask=mask_n[None, :], other=0.0)
        v = tl.load(v_ptr + key[:, None] * D + offs_e[None, :], mask=mask_n[:, None], other=0.0)
        ok = (offs_m[:, None] >= offs_n[None, :]) & mask_n[None, :]
        s1 = tl.where(ok, tl.dot(q1, k1) * qk_scale, -1e30)
        s2 = tl.where(ok, tl.dot(q2, k2) * qk_scale, -1e30)
        n1 = tl.maximum(m1, tl.max(s1, 1))
        n2 = tl.maximum(m2, tl.max(s2, 1))
        p1 = tl.exp2(s1 - n1[:, None])
        p2 = tl.exp2(s2 - n2[:, None])
        a1 = tl.exp2(m1 - n1)
        a2 = tl.exp2(m2 - n2)
        acc1 = tl.dot(p1.to(v.dtype), v, acc1 * a1[:, None])
        acc2 = tl.dot(p2.to(v.dtype), v, acc2 * a2[:, None])
        l1 = l1 * a1 + tl.sum(p1, 1)
        l2 = l2 * a2 + tl.sum(p2, 1)
        m1 = n1
        m2 = n2
    lam = tl.load(lam_ptr + h)
    o = acc1 / l1[:, None] - lam * (acc2 / l2[:, None])
    rstd = tl.rsqrt(tl.sum(o * o, 1) / (2 * D) + eps)
    o = o * rstd[:, None] * tl.load(g_ptr + offs_e).to(tl.float32)[None, :] * (1.0 - lambda_init)
    tl.store(o_ptr + row[:, None] * D + offs_e[None, :], o.to(o_ptr.dtype.element_ty), mask=mask_m[:, None])


@case
def ferry_that_weighs_two_maps_against_each_other(b=2, t=1500, h=8, d=64):
    q, k, v = rand(b, t, h, 2, d, dtype="bfloat16"), rand(b, t, h, 2, d, dtype="bfloat16"), rand(b, t, h, 2 * d, dtype="bfloat16")
    lam, g, out = uniform(h), rand(2 * d, dtype="bfloat16"), zeros(b, t, h, 2 * d, dtype="bfloat16")
    args = q, k, v, lam, g, out, d**-0.5, 0.2, 1e-3, t
    launched = run(two_maps_one_value_kernel, (cdiv(t, 64), b * h), args, out, H=h, D=d, BLOCK_M=64, BLOCK_N=64, num_warps=8, num_stages=2)

    def reference():
        s = torch.einsum("bmhcd,bnhcd->bhcmn", q.float(), k.float()) * d**-0.5
        causal = torch.ones(t, t, dtype=torch.bool, device=q.device).tril()
        p = s.masked_fill(~causal, float("-inf")).softmax(4)
        o = torch.einsum("bhmn,bnhe->bmhe", p[:, :, 0] - lam[None, :, None, None] * p[:, :, 1], v.float())
        return o * torch.rsqrt(o.square().mean(3, keepdim=True) + 1e-3) * g.float() * 0.8

    return against(launched, reference)


@triton.jit
def levels_of_four_bits(code):
    # E2M1: 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their opposites.
    mag = (code & 7).to(tl.float32)
    value = tl.where(mag < 4, mag * 0.5, tl.where(mag < 6, mag - 2.0, mag * 2.0 - 8.0))
    return tl.where((code & 8) != 0, -value, value)


@triton.jit
def experts_of_mxfp4_swiglu_kernel(
    x_ptr, w_ptr, s_ptr, bias_ptr, y_ptr, sorted_token_ids, expert_ids, num_valid, N, K, alpha, limit,
    stride_xm, stride_we, stride_wn, stride_se, stride_sn, stride_ym,
    top_k: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    # Rows of an expert by four-bit weights with a power of two for each 32; gates and linear parts alternate in columns and are clamped.
    pid_m = tl.program_id(0)
    pid_n = tl.program_id(1)
    expert = tl.load(expert_ids + pid_m).to(tl.int64)
    offs_token = tl.load(sorted_token_ids + pid_m * BLOCK_M + tl.arange(0, BLOCK_M)).to(tl.int64)
    token_mask = offs_token < num_valid
    offs_n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_k = tl.arange(0, BLOCK_K)
    offs_byte = tl.arange(0, BLOCK_K // 2)
    offs_group = tl.arange(0, BLOCK_K // 32)
    n_mask = offs_n < N
    x_ptrs = x_ptr + (offs_token // top_k)[:, None] * stride_xm + offs_k[None, :]
    w_ptrs = w_ptr + expert * stride_we + offs_n[:, None] * stride_wn + offs_byte[None, :]
    s_ptrs = s_ptr + expert * stride_se + offs_n[:, None] * stride_sn + offs_group[None, :]
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        x = tl.load(x_ptrs, mask=token_mask[:, None] & (k + offs_k < K)[None, :], other=0.0)
        packed = tl.load(w_ptrs, mask=n_mask[:, None] & (k // 2 + offs_byte < K // 2)[None, :], other=0)
        exponent = tl.load(s_ptrs, mask=n_mask[:, None] & (k // 32 + offs_group < K // 32)[None, :], other=0).to(tl.int32)
        scale = (exponent << 23).to(tl.float32, bitcast=True)
        w = tl.join(levels_of_four_bits(packed & 15), levels_of_four_bits(packed >> 4))
        w = tl.reshape(w, (BLOCK_N, BLOCK_K // 32, 32)) * scale[:, :, None]
        w = tl.reshape(w, (BLOCK_N, BLOCK_K)).to(x.dtype)
        acc = tl.dot(x, tl.trans(w), acc)
        x_ptrs += BLOCK_K
        w_ptrs += BLOCK_K // 2
        s_ptrs += BLOCK_K // 32
    acc += tl.load(bias_ptr + expert * N + offs_n, mask=n_mask, other=0.0)[None, :]
    gate, linear = tl.split(tl.reshape(acc, (BLOCK_M, BLOCK_N // 2, 2)))
    gate = tl.minimum(gate, limit)
    linear = tl.maximum(tl.minimum(linear, limit), -limit)
    y = gate * tl.sigmoid(alpha * gate) * (linear + 1.0)
    offs_y = pid_n * (BLOCK_N // 2) + tl.arange(0, BLOCK_N // 2)
    tl.store(y_ptr + offs_token[:, None] * stride_ym + offs_y[None, :], y.to(y_ptr.dtype.element_ty), mask=token_mask[:, None] & (offs_y < N // 2)[None, :])


@case
def ferry_of_rows_to_experts_of_four_bits(tokens=300, top_k=4, experts=16, n=1440, k=1472, block=32):
    x = rand(tokens, k, dtype="bfloat16") / 8
    w, s = ints(0, 256, experts, n, k // 2, dtype="uint8"), ints(121, 126, experts, n, k // 32, dtype="uint8")
    bias, y = f32(experts, n), zeros(tokens * top_k, n // 2, dtype="bfloat16")
    chosen = ints(0, experts, tokens * top_k)
    flat, ids, owners = chosen.tolist(), [], []
    for e in range(experts):
        mine = [i for i, at in enumerate(flat) if at == e]
        blocks = cdiv(len(mine), block)
        ids += mine + [tokens * top_k] * (blocks * block - len(mine))
        owners += [e] * blocks
    ids, owners = (torch.tensor(z, dtype=torch.int32, device="cuda") for z in (ids, owners))
    args = x, w, s, bias, y, ids, owners, tokens * top_k, n, k, 1.702, 7.0, x.stride(0), w.stride(0), w.stride(1), s.stride(0), s.stride(1), y.stride(0)
    launched = run(experts_of_mxfp4_swiglu_kernel, (len(owners), cdiv(n, 128)), args, y, top_k=top_k, BLOCK_M=block, BLOCK_N=128, BLOCK_K=64, num_warps=4, num_stages=3)

    def reference():
        levels = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6], device=x.device)
        result = torch.zeros(tokens * top_k, n // 2, device=x.device)
        for e in range(experts):
            codes = torch.stack((w[e] & 15, w[e] >> 4), 2).long().reshape(n, k)
            weights = (levels[codes].reshape(n, k // 32, 32) * torch.exp2(s[e].float() - 127)[..., None]).reshape(n, k)
            at = (chosen == e).nonzero()[:, 0]
            z = x[at // top_k].float() @ weights.t() + bias[e]
            gate, linear = z[:, 0::2].clamp(max=7), z[:, 1::2].clamp(-7, 7)
            result[at] = gate * torch.sigmoid(1.702 * gate) * (linear + 1)
        return result

    return against(launched, reference)


@triton.jit
def norm_then_project_kernel(
    x_ptr, gamma_ptr, w_ptr, y_ptr, rstd_ptr, M, N, K, eps, stride_xm, stride_wn, stride_ym,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr, EVEN_K: tl.constexpr,
):
    # The norm before a projection goes into its loop: squares are summed next to the dots, rows are scaled at the end.
    pid = tl.program_id(0)
    num_m = tl.cdiv(M, BLOCK_M)
    num_n = tl.cdiv(N, BLOCK_N)
    width = GROUP_M * num_n
    group_id = pid // width
    group_size = min(num_m - group_id * GROUP_M, GROUP_M)
    pid_m = group_id * GROUP_M + (pid % group_size)
    pid_n = (pid % width) // group_size
    rm = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    rn = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    ram = tl.max_contiguous(tl.multiple_of(rm % M, BLOCK_M), BLOCK_M)
    rbn = tl.max_contiguous(tl.multiple_of(rn % N, BLOCK_N), BLOCK_N)
    rk = tl.arange(0, BLOCK_K)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    ss = tl.zeros((BLOCK_M,), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BLOCK_K)):
        kk = k * BLOCK_K + rk
        if EVEN_K:
            x = tl.load(x_ptr + ram[:, None] * stride_xm + kk[None, :])
            w = tl.load(w_ptr + rbn[None, :] * stride_wn + kk[:, None])
            g = tl.load(gamma_ptr + kk)
        else:
            x = tl.load(x_ptr + ram[:, None] * stride_xm + kk[None, :], mask=kk[None, :] < K, other=0.0)
            w = tl.load(w_ptr + rbn[None, :] * stride_wn + kk[:, None], mask=kk[:, None] < K, other=0.0)
            g = tl.load(gamma_ptr + kk, mask=kk < K, other=0.0)
        xf = x.to(tl.float32)
        ss += tl.sum(xf * xf, axis=1)
        scaled = (xf * (1.0 + g.to(tl.float32))[None, :]).to(w.dtype)
        acc += tl.dot(scaled, w)
    rstd = 1.0 / tl.sqrt(ss / K + eps)
    if pid_n == 0:
        tl.store(rstd_ptr + rm, rstd, mask=rm < M)
    y = acc * rstd[:, None]
    tl.store(y_ptr + rm[:, None] * stride_ym + rn[None, :], y.to(y_ptr.dtype.element_ty), mask=(rm < M)[:, None] & (rn < N)[None, :])


@case
def ferry_of_rows_normed_while_they_are_projected(m=1999, n=2500, k=2308):
    x, gamma, w = rand(m, k, dtype="bfloat16") * 3, rand(k, dtype="bfloat16") / 4, rand(n, k, dtype="bfloat16")
    y, rstd = zeros(m, n, dtype="bfloat16"), zeros(m, dtype="float32")
    args = x, gamma, w, y, rstd, m, n, k, 1e-6, x.stride(0), w.stride(0), y.stride(0)
    flags = dict(BLOCK_M=128, BLOCK_N=128, BLOCK_K=32, GROUP_M=8, EVEN_K=k % 32 == 0)
    launched = run(norm_then_project_kernel, (cdiv(m, 128) * cdiv(n, 128),), args, (y, rstd), num_warps=4, num_stages=4, **flags)

    def reference():
        r = torch.rsqrt(x.float().square().mean(1) + 1e-6)
        scaled = (x.float() * (1 + gamma.float())).to(torch.bfloat16).float()
        return (scaled @ w.float().t()) * r[:, None], r

    return against(launched, reference)


@triton.jit
def edges_of_triangles_kernel(
    a_ptr, b_ptr, gate_ptr, mask_ptr, o_ptr, N, C, OUTGOING: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, BC: tl.constexpr,
):
    # Triangle update of pairs: eight channels are a batch of small dots, since channels are the last axis; a gate on the way out.
    pid_i = tl.program_id(0)
    pid_j = tl.program_id(1)
    c = tl.program_id(2) * BC + tl.arange(0, BC)
    i = pid_i * BM + tl.arange(0, BM)
    j = pid_j * BN + tl.arange(0, BN)
    if OUTGOING:
        stride_r = N
        stride_k = 1
    else:
        stride_r = 1
        stride_k = N
    acc = tl.zeros((BC, BM, BN), dtype=tl.float32)
    for k0 in range(0, N, BK):
        k = k0 + tl.arange(0, BK)
        a_at = i[:, None] * stride_r + k[None, :] * stride_k
        b_at = j[:, None] * stride_r + k[None, :] * stride_k
        a_ok = (i < N)[:, None] & (k < N)[None, :]
        b_ok = (j < N)[:, None] & (k < N)[None, :]
        a_keep = tl.load(mask_ptr + a_at, mask=a_ok, other=0.0)
        a = tl.load(a_ptr + a_at[:, :, None] * C + c[None, None, :], mask=a_ok[:, :, None], other=0.0) * a_keep[:, :, None]
        a = a.to(b_ptr.dtype.element_ty)
        b = tl.load(b_ptr + b_at[:, :, None] * C + c[None, None, :], mask=b_ok[:, :, None], other=0.0)
        acc += tl.dot(tl.permute(a, (2, 0, 1)), tl.permute(b, (2, 1, 0)))
    out = tl.permute(acc, (1, 2, 0))
    at = (i[:, None, None] * N + j[None, :, None]) * C + c[None, None, :]
    ok = (i < N)[:, None, None] & (j < N)[None, :, None]
    gate = tl.load(gate_ptr + at, mask=ok, other=0.0).to(tl.float32)
    tl.store(o_ptr + at, (out * tl.sigmoid(gate)).to(o_ptr.dtype.element_ty), mask=ok)


@case
def ferry_along_two_sides_of_triangles(n=200, c=64):
    a, b, gate = rand(n, n, c, dtype="bfloat16"), rand(n, n, c, dtype="bfloat16"), rand(n, n, c, dtype="bfloat16")
    keep, out = (uniform(n, n) > 0.1).float(), zeros(n, n, c, dtype="bfloat16")
    args = a, b, gate, keep, out, n, c
    launched = run(edges_of_triangles_kernel, (cdiv(n, 32), cdiv(n, 32), c // 8), args, out, OUTGOING=False, BM=32, BN=32, BK=16, BC=8, num_warps=4)

    def reference():
        return torch.einsum("kic,kjc->ijc", a.float() * keep[..., None], b.float()) * torch.sigmoid(gate.float())

    return against(launched, reference)


@triton.jit
def halve_frames_conv_kernel(
    x_ptr, w_ptr, bias_ptr, y_ptr, B, CIN, COUT, L, LOUT,
    stride_xb, stride_xc, stride_wo, stride_wi, stride_yb, stride_yc,
    BLOCK_O: tl.constexpr, BLOCK_L: tl.constexpr, BLOCK_C: tl.constexpr,
):
    # Convolution of three taps and stride two over frames of sound, then GELU: a loop over taps around one over channels.
    pid_l = tl.program_id(0)
    pid_o = tl.program_id(1)
    b = tl.program_id(2)
    o = pid_o * BLOCK_O + tl.arange(0, BLOCK_O)
    l = pid_l * BLOCK_L + tl.arange(0, BLOCK_L)
    acc = tl.zeros((BLOCK_O, BLOCK_L), dtype=tl.float32)
    for tap in range(3):
        t = l * 2 + tap - 1
        ok_t = (t >= 0) & (t < L) & (l < LOUT)
        for c0 in range(0, CIN, BLOCK_C):
            c = c0 + tl.arange(0, BLOCK_C)
            x = tl.load(x_ptr + b * stride_xb + c[:, None] * stride_xc + t[None, :], mask=(c < CIN)[:, None] & ok_t[None, :], other=0.0)
            w = tl.load(w_ptr + o[:, None] * stride_wo + c[None, :] * stride_wi + tap, mask=(o < COUT)[:, None] & (c < CIN)[None, :], other=0.0)
            acc += tl.dot(w, x)
    acc += tl.load(bias_ptr + o, mask=o < COUT, other=0.0).to(tl.float32)[:, None]
    y = 0.5 * acc * (1.0 + tl.erf(acc * 0.7071067811865476))
    tl.store(y_ptr + b * stride_yb + o[:, None] * stride_yc + l[None, :], y.to(y_ptr.dtype.element_ty), mask=(o < COUT)[:, None] & (l < LOUT)[None, :])


@case
def ferry_that_halves_frames_of_sound(b=4, cin=400, cout=384, length=2999):
    out = (length + 1) // 2
    x, w, bias, y = rand(b, cin, length), rand(cout, cin, 3) / 16, rand(cout), zeros(b, cout, out)
    args = x, w, bias, y, b, cin, cout, length, out, x.stride(0), x.stride(1), w.stride(0), w.stride(1), y.stride(0), y.stride(1)
    launched = run(halve_frames_conv_kernel, (cdiv(out, 128), cdiv(cout, 64), b), args, y, BLOCK_O=64, BLOCK_L=128, BLOCK_C=32, num_warps=4, num_stages=3)

    def reference():
        return F.gelu(F.conv1d(x.float(), w.float(), bias.float(), stride=2, padding=1))

    return against(launched, reference)


@triton.jit
def channels_that_fade_wy_kernel(
    k_ptr, v_ptr, g_ptr, beta_ptr, w_ptr, u_ptr, a_ptr, T, H: tl.constexpr, K: tl.constexpr, V: tl.constexpr, BT: tl.constexpr,
):
    # Delta rule whose channels fade each by itself: products of a chunk, the inverse by rows, then what it makes of keys and values.
    i_t, i_h = tl.program_id(0), tl.program_id(1)
    o_i = tl.arange(0, BT)
    o_k = tl.arange(0, K)
    o_v = tl.arange(0, V)
    t = i_t * BT + o_i
    m_t = t < T
    p_k = (t[:, None] * H + i_h) * K + o_k[None, :]
    p_v = (t[:, None] * H + i_h) * V + o_v[None, :]
    b_k = tl.load(k_ptr + p_k, mask=m_t[:, None], other=0.0).to(tl.float32)
    b_g = tl.cumsum(tl.load(g_ptr + p_k, mask=m_t[:, None], other=0.0), axis=0)
    b_beta = tl.load(beta_ptr + t * H + i_h, mask=m_t, other=0.0)
    b_mid = tl.sum(tl.where((o_i == BT // 2)[:, None], b_g, 0.0), 0)
    b_up = b_k * tl.exp(b_g - b_mid[None, :])
    b_down = b_k * tl.exp(b_mid[None, :] - b_g)
    b_A = tl.dot(b_up, tl.trans(b_down), input_precision="tf32") * b_beta[:, None]
    b_A = -tl.where(o_i[:, None] > o_i[None, :], b_A, 0.0)
    for i in range(1, BT):
        b_a = tl.sum(tl.where((o_i == i)[:, None], b_A, 0.0), 0)
        b_a += tl.sum(b_a[:, None] * b_A, 0)
        b_A = tl.where((o_i == i)[:, None], b_a[None, :], b_A)
    b_A += (o_i[:, None] == o_i[None, :]).to(tl.float32)
    tl.store(a_ptr + (t[:, None] * H + i_h) * BT + o_i[None, :], b_A.to(a_ptr.dtype.element_ty), mask=m_t[:, None])
    b_v = tl.load(v_ptr + p_v, mask=m_t[:, None], other=0.0)
    b_vb = (b_v.to(tl.float32) * b_beta[:, None]).to(b_v.dtype)
    b_kb = (b_k * tl.exp(b_g) * b_beta[:, None]).to(b_v.dtype)
    b_Ab = b_A.to(b_v.dtype)
    b_u = tl.dot(b_Ab, b_vb)
    b_w = tl.dot(b_Ab, b_kb)
    tl.store(u_ptr + p_v, b_u.to(u_ptr.dtype.element_ty), mask=m_t[:, None])
    tl.store(w_ptr + p_k, b_w.to(w_ptr.dtype.element_ty), mask=m_t[:, None])


@case
def ferry_of_chunks_whose_channels_fade(t=2000, h=16, k=128, v=128, bt=32):
    keys = F.normalize(f32(t, h, k), dim=2).to(torch.bfloat16)
    values, g, beta = rand(t, h, v, dtype="bfloat16"), -uniform(t, h, k) / 8, uniform(t, h)
    w, u, a = zeros(t, h, k, dtype="bfloat16"), zeros(t, h, v, dtype="bfloat16"), zeros(t, h, bt, dtype="bfloat16")
    args = keys, values, g, beta, w, u, a, t
    launched = run(channels_that_fade_wy_kernel, (cdiv(t, bt), h), args, (w, u, a), H=h, K=k, V=v, BT=bt, num_warps=4, num_stages=2)

    def reference():
        n = cdiv(t, bt)

        def chunks(x):
            pad = torch.zeros(n * bt - t, *x.shape[1:], device=x.device)
            return torch.cat((x.float(), pad)).reshape(n, bt, h, -1).permute(0, 2, 1, 3)

        def flat(x):
            return x.permute(0, 2, 1, 3).reshape(n * bt, h, -1)[:t]

        kk, vv, gg, bb = chunks(keys), chunks(values), chunks(g).cumsum(2), chunks(beta)
        low = torch.einsum("chik,chjk->chij", kk * gg.exp(), kk * (-gg).exp()).tril(-1) * bb
        inverse = torch.linalg.inv(torch.eye(bt, device=low.device) + low)
        return flat(inverse @ (kk * gg.exp() * bb)), flat(inverse @ (vv * bb)), flat(inverse)

    return against(launched, reference)


@triton.jit
def cars_on_a_ring_kernel(x_ptr, v_ptr, want_ptr, gap_ptr, xo_ptr, vo_ptr, mean_ptr, road, dt, steps, N: tl.constexpr, BLOCK: tl.constexpr):
    # Cars that follow each other around a ring by the intelligent driver model; each looks at the one before it by a gather.
    lane = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    mask = i < N
    ahead = tl.where(i + 1 < N, i + 1, 0)
    x = tl.load(x_ptr + lane * N + i, mask=mask, other=0.0)
    v = tl.load(v_ptr + lane * N + i, mask=mask, other=0.0)
    want = tl.load(want_ptr + lane * N + i, mask=mask, other=1.0)
    headway = tl.load(gap_ptr + lane * N + i, mask=mask, other=1.0)
    total = 0.0
    for step in range(steps):
        leader_x = tl.gather(x, ahead, 0)
        leader_v = tl.gather(v, ahead, 0)
        gap = leader_x - x - 5.0
        gap = tl.where(i == N - 1, gap + road, gap)
        gap = tl.maximum(gap, 0.1)
        closing = v - leader_v
        s_star = 2.0 + tl.maximum(0.0, v * headway + v * closing / (2.0 * 1.2247449))
        ratio = v / want
        ratio2 = ratio * ratio
        acc = 1.0 * (1.0 - ratio2 * ratio2 - (s_star / gap) * (s_star / gap))
        acc = tl.maximum(acc, -8.0)
        v_new = tl.maximum(v + acc * dt, 0.0)
        x += 0.5 * (v + v_new) * dt
        v = v_new
        total += tl.sum(tl.where(mask, v, 0.0), 0) / N
    tl.store(xo_ptr + lane * N + i, x, mask=mask)
    tl.store(vo_ptr + lane * N + i, v, mask=mask)
    tl.store(mean_ptr + lane, total / steps)


@case
def ferry_that_waits_for_cars_on_rings(lanes=528, n=300, steps=50):
    road = n * 25.0
    x = arange(n, "float32")[None, :] * 25 + uniform(lanes, n) * 8
    v, want, headway = uniform(lanes, n) * 5 + 10, uniform(lanes, n) * 10 + 25, uniform(lanes, n) * 0.5 + 1
    xo, vo, mean = zeros(lanes, n, dtype="float32"), zeros(lanes, n, dtype="float32"), zeros(lanes, dtype="float32")
    args = x, v, want, headway, xo, vo, mean, road, 0.25, steps
    launched = run(cars_on_a_ring_kernel, (lanes,), args, (xo, vo, mean), N=n, BLOCK=triton.next_power_of_2(n), num_warps=4)

    def reference():
        a, s, w, h = (z.double() for z in (x, v, want, headway))
        total = 0
        wrap = torch.zeros(n, device=x.device, dtype=torch.float64)
        wrap[-1] = road
        for _ in range(steps):
            gap = (a.roll(-1, 1) - a - 5 + wrap).clamp(min=0.1)
            star = 2 + (s * h + s * (s - s.roll(-1, 1)) / (2 * 1.2247449)).clamp(min=0)
            new = (s + (1 - (s / w) ** 4 - (star / gap) ** 2).clamp(min=-8) * 0.25).clamp(min=0)
            a, s = a + 0.5 * (s + new) * 0.25, new
            total = total + s.mean(1)
        return a, s, total / steps

    return against(launched, reference)


@triton.jit
def savings_of_pairs_kernel(xy_ptr, demand_ptr, best_ptr, sum_ptr, n, depot_x, depot_y, capacity, shape, BLOCK: tl.constexpr):
    # What it saves to serve two customers in one tour, for one of them with all others: the best and the sum of what is positive.
    i = tl.program_id(0)
    xi = tl.load(xy_ptr + i * 2)
    yi = tl.load(xy_ptr + i * 2 + 1)
    di = tl.load(demand_ptr + i)
    home_i = tl.sqrt((xi - depot_x) * (xi - depot_x) + (yi - depot_y) * (yi - depot_y))
    best = -1.0e9
    total = 0.0
    for start in range(0, n, BLOCK):
        j = start + tl.arange(0, BLOCK)
        mask = j < n
        xj = tl.load(xy_ptr + j * 2, mask=mask, other=0.0)
        yj = tl.load(xy_ptr + j * 2 + 1, mask=mask, other=0.0)
        dj = tl.load(demand_ptr + j, mask=mask, other=0)
        home_j = tl.sqrt((xj - depot_x) * (xj - depot_x) + (yj - depot_y) * (yj - depot_y))
        between = tl.sqrt((xi - xj) * (xi - xj) + (yi - yj) * (yi - yj))
        saving = home_i + home_j - shape * between
        ok = mask & (j != i) & (di + dj <= capacity)
        saving = tl.where(ok, saving, -1.0e9)
        best = tl.maximum(best, tl.max(saving, axis=0))
        total += tl.sum(tl.where(saving > 0, saving, 0.0), axis=0)
    tl.store(best_ptr + i, best)
    tl.store(sum_ptr + i, total)


@case
def ferry_that_saves_the_way_back_to_the_depot(n=7001):
    xy, demand, best, total = uniform(n, 2) * 100, ints(1, 60, n), zeros(n, dtype="float32"), zeros(n, dtype="float32")
    launched = run(savings_of_pairs_kernel, (n,), (xy, demand, best, total, n, 50.0, 40.0, 70, 1.1), (best, total), BLOCK=1024, num_warps=4)

    def reference():
        home = (xy - torch.tensor([50.0, 40.0], device=xy.device)).norm(dim=1)
        tops, sums = [], []
        for i in range(0, n, 1000):
            part = xy[i : i + 1000]
            apart = ((part[:, None, 0] - xy[None, :, 0]) ** 2 + (part[:, None, 1] - xy[None, :, 1]) ** 2).sqrt()
            s = home[i : i + 1000, None] + home - 1.1 * apart
            ok = demand[i : i + 1000, None] + demand <= 70
            ok &= torch.arange(i, i + len(part), device=xy.device)[:, None] != torch.arange(n, device=xy.device)
            s = s.masked_fill(~ok, -1e9)
            tops.append(s.amax(1))
            sums.append(s.clamp(min=0).sum(1))
        return torch.cat(tops), torch.cat(sums)

    return against(launched, reference)


@triton.jit
def around(angle):
    return angle - tl.floor(angle / 6.283185307179586) * 6.283185307179586


@triton.jit
def dubins_kernel(start_ptr, goal_ptr, out_ptr, word_ptr, radius, n, BLOCK: tl.constexpr):
    # Shortest way of a vehicle that cannot turn sharply from pose to pose: the best of six words, in doubles.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    x0 = tl.load(start_ptr + i * 3, mask=mask, other=0.0)
    y0 = tl.load(start_ptr + i * 3 + 1, mask=mask, other=0.0)
    t0 = tl.load(start_ptr + i * 3 + 2, mask=mask, other=0.0)
    x1 = tl.load(goal_ptr + i * 3, mask=mask, other=1.0)
    y1 = tl.load(goal_ptr + i * 3 + 1, mask=mask, other=1.0)
    t1 = tl.load(goal_ptr + i * 3 + 2, mask=mask, other=0.0)
    dx = x1 - x0
    dy = y1 - y0
    d = tl.sqrt(dx * dx + dy * dy) / radius
    theta = around(libdevice.atan2(dy, dx))
    a = around(t0 - theta)
    b = around(t1 - theta)
    sa = tl.sin(a)
    sb = tl.sin(b)
    ca = tl.cos(a)
    cb = tl.cos(b)
    cab = tl.cos(a - b)
    best = tl.full((BLOCK,), 1e30, tl.float64)
    word = tl.full((BLOCK,), -1, tl.int32)
    # LSL
    p2 = 2.0 + d * d - 2.0 * cab + 2.0 * d * (sa - sb)
    tmp = libdevice.atan2(cb - ca, d + sa - sb)
    length = around(tmp - a) + tl.sqrt(tl.maximum(p2, 0.0)) + around(b - tmp)
    take = (p2 >= 0) & (length < best)
    best = tl.where(take, length, best)
    word = tl.where(take, 0, word)
    # RSR
    p2 = 2.0 + d * d - 2.0 * cab + 2.0 * d * (sb - sa)
    tmp = libdevice.atan2(ca - cb, d - sa + sb)
    length = around(a - tmp) + tl.sqrt(tl.maximum(p2, 0.0)) + around(tmp - b)
    take = (p2 >= 0) & (length < best)
    best = tl.where(take, length, best)
    word = tl.where(take, 1, word)
    # LSR
    p2 = d * d - 2.0 + 2.0 * cab + 2.0 * d * (sa + sb)
    p = tl.sqrt(tl.maximum(p2, 0.0))
    tmp = libdevice.atan2(-ca - cb, d + sa + sb) - libdevice.atan2(tl.full((BLOCK,), -2.0, tl.float64), p)
    length = around(tmp - a) + p + around(tmp - b)
    take = (p2 >= 0) & (length < best)
    best = tl.where(take, length, best)
    word = tl.where(take, 2, word)
    # RSL
    p2 = d * d - 2.0 + 2.0 * cab - 2.0 * d * (sa + sb)
    p = tl.sqrt(tl.maximum(p2, 0.0))
    tmp = libdevice.atan2(ca + cb, d - sa - sb) - libdevice.atan2(tl.full((BLOCK,), 2.0, tl.float64), p)
    length = around(a - tmp) + p + around(b - tmp)
    take = (p2 >= 0) & (length < best)
    best = tl.where(take, length, best)
    word = tl.where(take, 3, word)
    # RLR
    c = (6.0 - d * d + 2.0 * cab + 2.0 * d * (sa - sb)) / 8.0
    p = around(6.283185307179586 - libdevice.acos(tl.maximum(tl.minimum(c, 1.0), -1.0)))
    t = around(a - libdevice.atan2(ca - cb, d - sa + sb) + p / 2.0)
    length = t + p + around(a - b - t + p)
    take = (tl.abs(c) <= 1.0) & (length < best)
    best = tl.where(take, length, best)
    word = tl.where(take, 4, word)
    # LRL
    c = (6.0 - d * d + 2.0 * cab + 2.0 * d * (sb - sa)) / 8.0
    p = around(6.283185307179586 - libdevice.acos(tl.maximum(tl.minimum(c, 1.0), -1.0)))
    t = around(-a - libdevice.atan2(ca - cb, d + sa - sb) + p / 2.0)
    length = t + p + around(b - a - t + p)
    take = (tl.abs(c) <= 1.0) & (length < best)
    best = tl.where(take, length, best)
    word = tl.where(take, 5, word)
    tl.store(out_ptr + i, best * radius, mask=mask)
    tl.store(word_ptr + i, word, mask=mask)


@case
def ferry_that_cannot_turn_sharply(n=150_001):
    reach = torch.tensor([6.0, 6.0, 6.283185307179586], device="cuda", dtype=torch.float64)
    start, goal = (torch.rand(n, 3, device="cuda", dtype=torch.float64) * reach for _ in range(2))
    out, word = zeros(n, dtype="float64"), zeros(n, dtype="int32")
    launched = run(dubins_kernel, (cdiv(n, 256),), (start, goal, out, word, 1.5, n), (out, word), BLOCK=256, num_warps=4)

    def reference():
        tau = 2 * math.pi
        dx, dy = (goal - start)[:, 0], (goal - start)[:, 1]
        d = torch.hypot(dx, dy) / 1.5
        theta = torch.atan2(dy, dx)
        a, b = (start[:, 2] - theta) % tau, (goal[:, 2] - theta) % tau
        sa, sb, ca, cb, cab = a.sin(), b.sin(), a.cos(), b.cos(), (a - b).cos()
        none, ways = torch.full_like(d, 1e30), []
        p2 = 2 + d * d - 2 * cab + 2 * d * (sa - sb)
        z = torch.atan2(cb - ca, d + sa - sb)
        ways.append(torch.where(p2 >= 0, (z - a) % tau + p2.clamp(min=0).sqrt() + (b - z) % tau, none))
        p2 = 2 + d * d - 2 * cab + 2 * d * (sb - sa)
        z = torch.atan2(ca - cb, d - sa + sb)
        ways.append(torch.where(p2 >= 0, (a - z) % tau + p2.clamp(min=0).sqrt() + (z - b) % tau, none))
        p2 = d * d - 2 + 2 * cab + 2 * d * (sa + sb)
        p = p2.clamp(min=0).sqrt()
        z = torch.atan2(-ca - cb, d + sa + sb) - torch.atan2(torch.full_like(p, -2), p)
        ways.append(torch.where(p2 >= 0, (z - a) % tau + p + (z - b) % tau, none))
        p2 = d * d - 2 + 2 * cab - 2 * d * (sa + sb)
        p = p2.clamp(min=0).sqrt()
        z = torch.atan2(ca + cb, d - sa - sb) - torch.atan2(torch.full_like(p, 2), p)
        ways.append(torch.where(p2 >= 0, (a - z) % tau + p + (b - z) % tau, none))
        for sign in (1, -1):
            c = (6 - d * d + 2 * cab + sign * 2 * d * (sa - sb)) / 8
            p = (tau - c.clamp(-1, 1).acos()) % tau
            z = torch.atan2(ca - cb, d - sign * (sa - sb))
            t = (sign * a - z + p / 2) % tau
            ways.append(torch.where(c.abs() <= 1, t + p + (sign * (a - b) - t + p) % tau, none))
        best, at = torch.stack(ways).min(0)
        return best * 1.5, at.to(torch.int32)

    return against(launched, reference)


@triton.jit
def bounds_of_pages_kernel(
    q_ptr, min_ptr, max_ptr, table_ptr, len_ptr, score_ptr, stride_qb, stride_qh, stride_page, stride_ph, stride_table, stride_sb, stride_sh,
    GROUP: tl.constexpr, D: tl.constexpr, PAGE: tl.constexpr, BLOCK_P: tl.constexpr,
):
    # The most that keys of a page can score, from the least and the greatest of each channel; the best of the heads that share them.
    pid_p = tl.program_id(0)
    kv_head = tl.program_id(1)
    b = tl.program_id(2)
    pages = tl.cdiv(tl.load(len_ptr + b), PAGE)
    p = pid_p * BLOCK_P + tl.arange(0, BLOCK_P)
    d = tl.arange(0, D)
    ok = p < pages
    page = tl.load(table_ptr + b * stride_table + p, mask=ok, other=0).to(tl.int64)
    low = tl.load(min_ptr + page[:, None] * stride_page + kv_head * stride_ph + d[None, :], mask=ok[:, None], other=0.0).to(tl.float32)
    high = tl.load(max_ptr + page[:, None] * stride_page + kv_head * stride_ph + d[None, :], mask=ok[:, None], other=0.0).to(tl.float32)
    best = tl.full((BLOCK_P,), -1e30, tl.float32)
    for g in tl.static_range(GROUP):
        q = tl.load(q_ptr + b * stride_qb + (kv_head * GROUP + g) * stride_qh + d).to(tl.float32)
        best = tl.maximum(best, tl.sum(tl.maximum(q[None, :] * low, q[None, :] * high), 1))
    tl.store(score_ptr + b * stride_sb + kv_head * stride_sh + p, best, mask=ok)


@case
def ferry_to_pages_by_what_they_may_hold(lengths=(30_000, 1, 12_345, 20_000, 16, 9_999, 31_990, 4_000), heads=32, kv_heads=8, d=128, page=16):
    b, most = len(lengths), cdiv(max(lengths), page)
    pool = b * most
    q = rand(b, heads, d, dtype="bfloat16")
    one, two = rand(pool, kv_heads, d, dtype="bfloat16"), rand(pool, kv_heads, d, dtype="bfloat16")
    low, high = torch.minimum(one, two), torch.maximum(one, two)
    table = torch.randperm(pool, device="cuda").reshape(b, most).to(torch.int32)
    size, score = torch.tensor(lengths, dtype=torch.int32, device="cuda"), zeros(b, kv_heads, most, dtype="float32")
    args = q, low, high, table, size, score, q.stride(0), q.stride(1), low.stride(0), low.stride(1), table.stride(0), score.stride(0), score.stride(1)
    launched = run(bounds_of_pages_kernel, (cdiv(most, 32), kv_heads, b), args, score, GROUP=heads // kv_heads, D=d, PAGE=page, BLOCK_P=32, num_warps=4)

    def reference():
        result = torch.zeros(b, kv_heads, most, device=q.device)
        for i, n in enumerate(lengths):
            at = table[i, : cdiv(n, page)].long()
            x = q[i].float().reshape(1, kv_heads, -1, d)
            s = torch.maximum(x * low[at].float()[:, :, None], x * high[at].float()[:, :, None]).sum(3)
            result[i, :, : len(at)] = s.amax(2).t()
        return result

    return against(launched, reference)


@triton.jit
def proposals_kernel(pref_ptr, next_ptr, held_ptr, LIST: tl.constexpr, EMPTY: tl.constexpr):
    # Stable matching without rounds: who is displaced goes on asking in the hands of who displaced them.
    me = tl.program_id(0).to(tl.int64)
    asking = True
    while asking:
        turn = tl.atomic_add(next_ptr + me, 1)
        if turn >= LIST:
            asking = False
        else:
            other = tl.load(pref_ptr + me * LIST + turn).to(tl.int64)
            rank = ((other * 2654435761 + me * 40503) ^ (me * 97 + other)) & 0xFFFFFF
            key = (rank << 32) | me
            old = tl.atomic_min(held_ptr + other, key)
            if old > key:
                if old == EMPTY:
                    asking = False
                else:
                    me = old & 0xFFFFFFFF


@case
def ferry_places_given_to_who_is_liked_best(n=4000, places=5500, wishes=24):
    empty = 1 << 62
    pref = torch.argsort(uniform(n, places), 1)[:, :wishes].to(torch.int32).contiguous()
    nexts, held = zeros(n, dtype="int32"), zeros(places, dtype="int64")

    def launch(pref, nexts, held):
        nexts.zero_()
        held.fill_(empty)
        proposals_kernel[(n,)](pref, nexts, held, LIST=wishes, EMPTY=empty, num_warps=1)
        return torch.where(held == empty, -1, held & 0xFFFFFFFF).to(torch.int32), nexts.clamp(max=wishes)

    def reference():
        lists, turn, have = pref.tolist(), [0] * n, [empty] * places
        for one in range(n):
            me = one
            while True:
                if turn[me] >= wishes:
                    break
                other = lists[me][turn[me]]
                turn[me] += 1
                key = ((((other * 2654435761 + me * 40503) ^ (me * 97 + other)) & 0xFFFFFF) << 32) | me
                if key < have[other]:
                    key, have[other] = have[other], key
                    if key == empty:
                        break
                    me = key & 0xFFFFFFFF
        have = [-1 if key == empty else key & 0xFFFFFFFF for key in have]
        return torch.tensor(have, dtype=torch.int32, device=pref.device), torch.tensor(turn, dtype=torch.int32, device=pref.device)

    return against((launch, (pref, nexts, held)), reference)


@triton.jit
def closest_approach_kernel(pos_ptr, vel_ptr, length_ptr, out_ptr, near_ptr, n, horizon, BLOCK_I: tl.constexpr, BLOCK_J: tl.constexpr):
    # How near each ship will come to any other within the horizon if all keep course, less half their lengths.
    i = tl.program_id(0) * BLOCK_I + tl.arange(0, BLOCK_I)
    mask_i = i < n
    px = tl.load(pos_ptr + i * 2, mask=mask_i, other=0.0)
    py = tl.load(pos_ptr + i * 2 + 1, mask=mask_i, other=0.0)
    vx = tl.load(vel_ptr + i * 2, mask=mask_i, other=0.0)
    vy = tl.load(vel_ptr + i * 2 + 1, mask=mask_i, other=0.0)
    size = tl.load(length_ptr + i, mask=mask_i, other=0.0)
    best = tl.full((BLOCK_I,), 1e9, tl.float32)
    now = tl.full((BLOCK_I,), 1e9, tl.float32)
    for j0 in range(0, n, BLOCK_J):
        j = j0 + tl.arange(0, BLOCK_J)
        mask_j = j < n
        dx = tl.load(pos_ptr + j * 2, mask=mask_j, other=0.0)[None, :] - px[:, None]
        dy = tl.load(pos_ptr + j * 2 + 1, mask=mask_j, other=0.0)[None, :] - py[:, None]
        ux = tl.load(vel_ptr + j * 2, mask=mask_j, other=0.0)[None, :] - vx[:, None]
        uy = tl.load(vel_ptr + j * 2 + 1, mask=mask_j, other=0.0)[None, :] - vy[:, None]
        other = tl.load(length_ptr + j, mask=mask_j, other=0.0)
        speed2 = ux * ux + uy * uy + 1e-6
        t = -(dx * ux + dy * uy) / speed2
        t = tl.minimum(tl.maximum(t, 0.0), horizon)
        cx = dx + ux * t
        cy = dy + uy * t
        apart = tl.sqrt(cx * cx + cy * cy) - 0.5 * (size[:, None] + other[None, :])
        valid = mask_j[None, :] & (i[:, None] != j[None, :])
        best = tl.minimum(best, tl.min(tl.where(valid, apart, 1e9), axis=1))
        now = tl.minimum(now, tl.min(tl.where(valid, tl.sqrt(dx * dx + dy * dy), 1e9), axis=1))
    tl.store(out_ptr + i, best, mask=mask_i)
    tl.store(near_ptr + i, now, mask=mask_i)


@case
def ferry_that_asks_how_near_ships_will_come(n=9001):
    pos, vel, length = uniform(n, 2) * 40_000, f32(n, 2) * 6, uniform(n) * 0.3 + 0.02
    out, near = zeros(n, dtype="float32"), zeros(n, dtype="float32")
    launched = run(closest_approach_kernel, (cdiv(n, 16),), (pos, vel, length, out, near, n, 120.0), (out, near), BLOCK_I=16, BLOCK_J=128, num_warps=4)

    def reference():
        outs, nears = [], []
        for i in range(0, n, 500):
            d, u = pos[None] - pos[i : i + 500, None], vel[None] - vel[i : i + 500, None]
            t = (-(d * u).sum(2) / (u.square().sum(2) + 1e-6)).clamp(0, 120)
            apart = (d + u * t[..., None]).norm(dim=2) - 0.5 * (length[i : i + 500, None] + length)
            same = torch.arange(i, i + len(t), device=d.device)[:, None] == torch.arange(n, device=d.device)
            outs.append(apart.masked_fill(same, 1e9).amin(1))
            nears.append(d.norm(dim=2).masked_fill(same, 1e9).amin(1))
        return torch.cat(outs), torch.cat(nears)

    return against(launched, reference)


@triton.jit
def turned_by_three_places_kernel(
    qkv_ptr, qw_ptr, kw_ptr, cos_ptr, sin_ptr, pos_ptr, slot_ptr, q_out_ptr, k_cache_ptr, v_cache_ptr, T, eps, stride_qkv, stride_slot, stride_kh,
    HQ: tl.constexpr, HK: tl.constexpr, D: tl.constexpr, H_SECTION: tl.constexpr, W_SECTION: tl.constexpr,
):
    # Heads are normed, turned by places in time, height and width that take turns among frequencies, and keys and values go to their slots.
    t = tl.program_id(0)
    h = tl.program_id(1)
    half = tl.arange(0, D // 2)
    slot = tl.load(slot_ptr + t)
    row = qkv_ptr + t.to(tl.int64) * stride_qkv + h * D
    if h < HQ + HK:
        is_q = h < HQ
        x1 = tl.load(row + half).to(tl.float32)
        x2 = tl.load(row + D // 2 + half).to(tl.float32)
        rstd = tl.rsqrt((tl.sum(x1 * x1, 0) + tl.sum(x2 * x2, 0)) / D + eps)
        w_ptr = qw_ptr if is_q else kw_ptr
        x1 = x1 * rstd * tl.load(w_ptr + half).to(tl.float32)
        x2 = x2 * rstd * tl.load(w_ptr + D // 2 + half).to(tl.float32)
        h_mask = (half % 3 == 1) & (half < H_SECTION * 3)
        w_mask = (half % 3 == 2) & (half < W_SECTION * 3)
        axis = tl.where(h_mask, 1, tl.where(w_mask, 2, 0))
        place = tl.load(pos_ptr + axis * T + t)
        cos = tl.load(cos_ptr + place * (D // 2) + half)
        sin = tl.load(sin_ptr + place * (D // 2) + half)
        y1 = x1 * cos - x2 * sin
        y2 = x2 * cos + x1 * sin
        if is_q:
            out = q_out_ptr + (t.to(tl.int64) * HQ + h) * D
            tl.store(out + half, y1.to(q_out_ptr.dtype.element_ty))
            tl.store(out + D // 2 + half, y2.to(q_out_ptr.dtype.element_ty))
        elif slot >= 0:
            out = k_cache_ptr + slot * stride_slot + (h - HQ) * stride_kh
            tl.store(out + half, y1.to(k_cache_ptr.dtype.element_ty))
            tl.store(out + D // 2 + half, y2.to(k_cache_ptr.dtype.element_ty))
    elif slot >= 0:
        d = tl.arange(0, D)
        tl.store(v_cache_ptr + slot * stride_slot + (h - HQ - HK) * stride_kh + d, tl.load(row + d))


@case
def ferry_of_heads_turned_by_time_height_and_width(t=1501, hq=16, hk=4, d=128, slots=4000, most=2048):
    qkv, qw, kw = rand(t, (hq + 2 * hk) * d, dtype="bfloat16"), rand(d, dtype="bfloat16"), rand(d, dtype="bfloat16")
    angle = uniform(most, d // 2) * 6
    cos, sin, pos = angle.cos(), angle.sin(), ints(0, most, 3, t, dtype="int64")
    slot = torch.randperm(slots, device="cuda")[:t]
    slot[::13] = -1
    q, k, v = zeros(t, hq, d, dtype="bfloat16"), zeros(slots, hk, d, dtype="bfloat16"), zeros(slots, hk, d, dtype="bfloat16")
    args = qkv, qw, kw, cos, sin, pos, slot, q, k, v, t, 1e-6, qkv.stride(0), k.stride(0), k.stride(1)
    flags = dict(HQ=hq, HK=hk, D=d, H_SECTION=20, W_SECTION=20)
    launched = run(turned_by_three_places_kernel, (t, hq + 2 * hk), args, (q, k, v), num_warps=1, **flags)

    def reference():
        x = qkv.float().reshape(t, -1, d)
        j = torch.arange(d // 2, device=x.device)
        axis = torch.where((j % 3 == 1) & (j < 60), 1, torch.where((j % 3 == 2) & (j < 60), 2, 0))
        place = pos[axis].t()
        c, s = cos[place, j][:, None], sin[place, j][:, None]

        def turned(y, w):
            y = y * torch.rsqrt(y.square().mean(2, keepdim=True) + 1e-6) * w.float()
            one, two = y[..., : d // 2], y[..., d // 2 :]
            return torch.cat((one * c - two * s, two * c + one * s), 2)

        ks, vs, live = torch.zeros(slots, hk, d, device=x.device), torch.zeros(slots, hk, d, device=x.device), slot >= 0
        ks[slot[live]] = turned(x[:, hq : hq + hk], kw)[live]
        vs[slot[live]] = x[:, hq + hk :][live]
        return turned(x[:, :hq], qw), ks, vs

    return against(launched, reference)
