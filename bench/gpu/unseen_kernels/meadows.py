"""Meadows: what grows side by side: streams of models and their caches, sparse rows, triangles, jagged fields, prices, frames and sounds."""

import math

import torch
import torch.nn.functional as F
import triton
import triton.language as tl

from .common import against, arange, case, cdiv, cleared, f32, ints, rand, run, uniform, viewed, zeros


@triton.jit
def rotate_quantize_and_cache_kernel(
    k_ptr, had_ptr, slot_ptr, cache_ptr, scale_ptr, num_tokens, stride_kt, stride_kh, stride_cs, stride_ch,
    HEADS: tl.constexpr, D: tl.constexpr, BLOCK_T: tl.constexpr,
):
    # Keys are turned by a Hadamard matrix, so that no channel stands out, then coded by nibbles between their least and largest.
    head = tl.program_id(1)
    t = tl.program_id(0) * BLOCK_T + tl.arange(0, BLOCK_T)
    d = tl.arange(0, D)
    slot = tl.load(slot_ptr + t, mask=t < num_tokens, other=-1)
    k = tl.load(k_ptr + t[:, None] * stride_kt + head * stride_kh + d[None, :], mask=(t < num_tokens)[:, None], other=0.0)
    h = tl.load(had_ptr + d[:, None] * D + d[None, :])
    y = tl.dot(k, h)
    low = tl.min(y, axis=1)
    step = tl.maximum((tl.max(y, axis=1) - low) / 15.0, 1e-6)
    code = tl.minimum(tl.maximum(tl.floor((y - low[:, None]) / step[:, None] + 0.5), 0.0), 15.0).to(tl.int32)
    first, second = tl.split(tl.permute(tl.reshape(code, (BLOCK_T, 2, D // 2)), (0, 2, 1)))
    packed = (first | (second << 4)).to(tl.uint8)
    half = tl.arange(0, D // 2)
    keep = slot >= 0
    tl.store(cache_ptr + slot[:, None] * stride_cs + head * stride_ch + half[None, :], packed, mask=keep[:, None])
    tl.store(scale_ptr + (slot * HEADS + head) * 2, step.to(tl.float16), mask=keep)
    tl.store(scale_ptr + (slot * HEADS + head) * 2 + 1, low.to(tl.float16), mask=keep)


@case
def meadow_keys_turned_and_kept_by_nibbles(tokens=5000, heads=8, d=128, slots=6400):
    k, had = rand(tokens, heads, d, dtype="bfloat16"), torch.ones(1, 1, device="cuda")
    while had.shape[0] < d:
        had = torch.cat((torch.cat((had, had), 1), torch.cat((had, -had), 1)))
    had = (had / math.sqrt(d)).bfloat16()
    slot = torch.where(arange(tokens) % 17 == 3, -1, torch.randperm(slots, device="cuda")[:tokens])
    cache, scale = zeros(slots, heads, d // 2, dtype="uint8"), zeros(slots, heads, 2)
    args = k, had, slot, cache, scale, tokens, k.stride(0), k.stride(1), cache.stride(0), cache.stride(1)
    launched = run(rotate_quantize_and_cache_kernel, (cdiv(tokens, 32), heads), args, (cache, scale), HEADS=heads, D=d, BLOCK_T=32, num_warps=4)

    def see(outs):
        codes = outs[0].int()
        return torch.cat((codes & 15, codes >> 4), 2).float() + 200, outs[1]

    def reference():
        y = k.float() @ had.float()
        low = y.amin(2)
        step = ((y.amax(2) - low) / 15).clamp(min=1e-6)
        code = torch.floor((y - low[..., None]) / step[..., None] + 0.5).clamp(0, 15)
        codes, scales, on = torch.zeros(slots, heads, d, device=k.device), torch.zeros(slots, heads, 2, device=k.device), slot >= 0
        codes[slot[on]], scales[slot[on]] = code[on], torch.stack((step, low), 2)[on]
        return codes + 200, scales

    return against(viewed(launched, see), reference)


@triton.jit
def antidiagonal_scores_kernel(
    q_ptr, k_ptr, out_ptr, stride_h, stride_t, sm_scale, blocks,
    STRIDE: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, D: tl.constexpr, PER: tl.constexpr,
):
    # What blocks of keys are worth to blocks of queries: sums of scores along antidiagonals, and the best of them in each block.
    pid_n, pid_m, head = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    gm = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    gn = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    d = tl.arange(0, D)
    bm = pid_m * (BLOCK_M // PER) + tl.arange(0, BLOCK_M // PER)
    bn = pid_n * (BLOCK_N // PER) + tl.arange(0, BLOCK_N // PER)
    out = out_ptr + head * blocks * blocks + bm[:, None] * blocks + bn[None, :]
    if pid_n * BLOCK_N > pid_m * BLOCK_M + BLOCK_M - 1:
        tl.store(out, tl.full((BLOCK_M // PER, BLOCK_N // PER), -8.0, tl.float32))
        return
    q_ptr += head.to(tl.int64) * stride_h
    k_ptr += head.to(tl.int64) * stride_h
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for r in range(STRIDE):
        q = tl.load(q_ptr + (gm * STRIDE + r)[:, None] * stride_t + d[None, :])
        k = tl.load(k_ptr + (gn * STRIDE + STRIDE - 1 - r)[None, :] * stride_t + d[:, None])
        acc = tl.dot(q, k, acc)
    acc = tl.where(gm[:, None] >= gn[None, :], acc * sm_scale, -8.0)
    acc = tl.reshape(acc, (BLOCK_M // PER, PER, BLOCK_N // PER, PER))
    tl.store(out, tl.max(tl.max(acc, axis=3), axis=1))


@case
def meadow_blocks_judged_by_antidiagonals(heads=16, t=4096, d=128, stride=8):
    q, k, blocks = rand(heads, t, d, dtype="bfloat16"), rand(heads, t, d, dtype="bfloat16"), t // 128
    out = zeros(heads, blocks, blocks, dtype="float32")
    groups = t // stride
    flags = dict(STRIDE=stride, BLOCK_M=64, BLOCK_N=128, D=d, PER=128 // stride)
    args = q, k, out, q.stride(0), q.stride(1), d**-0.5 / stride, blocks
    launched = run(antidiagonal_scores_kernel, (groups // 128, groups // 64, heads), args, out, num_warps=4, num_stages=3, **flags)

    def reference():
        a = q.float().reshape(heads, groups, stride * d)
        b = k.float().reshape(heads, groups, stride, d).flip(2).reshape(heads, groups, stride * d)
        s = a @ b.transpose(1, 2) * (d**-0.5 / stride)
        s = torch.where(torch.ones(groups, groups, device=s.device, dtype=torch.bool).tril(), s, -8.0)
        return s.reshape(heads, blocks, groups // blocks, blocks, groups // blocks).amax((2, 4))

    return against(launched, reference)


@triton.jit
def sell_matvec(val_ptr, col_ptr, start_ptr, width_ptr, perm_ptr, x_ptr, y_ptr, alpha, N, C: tl.constexpr, UNROLL: tl.constexpr):
    # A sparse matrix in sorted slices of C rows, column by column within a slice, times a vector; rows go back to their places.
    s = tl.program_id(0)
    lane = tl.arange(0, C)
    step = tl.arange(0, UNROLL)
    start = tl.load(start_ptr + s)
    width = tl.load(width_ptr + s)
    acc = tl.zeros((C,), dtype=tl.float64)
    j = 0
    while j < width:
        at = start + (j + step)[None, :] * C + lane[:, None]
        ok = (j + step < width)[None, :]
        col = tl.load(col_ptr + at, mask=ok, other=0)
        value = tl.load(val_ptr + at, mask=ok, other=0.0)
        acc += tl.sum(value * tl.load(x_ptr + col, mask=ok, other=0.0), axis=1)
        j += UNROLL
    row = s * C + lane
    to = tl.load(perm_ptr + row, mask=row < N, other=0)
    tl.store(y_ptr + to, alpha * acc, mask=row < N)


@case
def meadow_of_slices_of_sorted_rows(n=100000, widest=40, c=64):
    slices = cdiv(n, c)
    width = ints(1, widest, slices).sort(descending=True).values
    start = torch.cumsum(width.long() * c, 0) - width.long() * c
    total = int((width.long() * c).sum())
    value, col = torch.randn(total, device="cuda", dtype=torch.float64), ints(0, n, total)
    perm, x, y = torch.randperm(n, device="cuda").int(), torch.randn(n, device="cuda", dtype=torch.float64), zeros(n, dtype="float64")
    launched = run(sell_matvec, (slices,), (value, col, start, width, perm, x, y, 0.5, n), y, C=c, UNROLL=4, num_warps=2)

    def reference():
        owner = torch.repeat_interleave(torch.arange(slices, device=x.device), width.long() * c)
        row = owner * c + (torch.arange(total, device=x.device) - start[owner]) % c
        sums = torch.zeros(slices * c, device=x.device, dtype=torch.float64).index_add_(0, row, value * x[col.long()])
        result = torch.empty_like(y)
        result[perm.long()] = 0.5 * sums[:n]
        return result

    return against(launched, reference)


@triton.jit
def triangles_of_edges(src_ptr, dst_ptr, indptr_ptr, adj_ptr, count_ptr, total_ptr, E, BLOCK: tl.constexpr):
    # Common neighbors of both ends of each edge, by merging two sorted lists a lane until all lanes are done.
    e = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = e < E
    u = tl.load(src_ptr + e, mask=mask, other=0)
    v = tl.load(dst_ptr + e, mask=mask, other=0)
    i = tl.load(indptr_ptr + u, mask=mask, other=0)
    i_end = tl.load(indptr_ptr + u + 1, mask=mask, other=0)
    j = tl.load(indptr_ptr + v, mask=mask, other=0)
    j_end = tl.load(indptr_ptr + v + 1, mask=mask, other=0)
    count = tl.zeros((BLOCK,), dtype=tl.int32)
    active = (i < i_end) & (j < j_end)
    while tl.max(active.to(tl.int32), axis=0) > 0:
        a = tl.load(adj_ptr + i, mask=active, other=-1)
        b = tl.load(adj_ptr + j, mask=active, other=-2)
        count += (active & (a == b)).to(tl.int32)
        i += (active & (a <= b)).to(tl.int32)
        j += (active & (b <= a)).to(tl.int32)
        active = (i < i_end) & (j < j_end)
    tl.store(count_ptr + e, count, mask=mask)
    tl.atomic_add(total_ptr, tl.sum(count, axis=0))


@case
def meadow_paths_that_close_to_triangles(n=3000, edges=120000):
    a, b = ints(0, n, edges, dtype="int64"), ints(0, n, edges, dtype="int64")
    lo, hi = torch.minimum(a, b), torch.maximum(a, b)
    key = torch.unique((lo * n + hi)[lo < hi])
    src, dst = (key // n).int(), (key % n).int()
    indptr = torch.zeros(n + 1, device="cuda", dtype=torch.int32)
    indptr[1:] = torch.bincount(src, minlength=n).cumsum(0)
    count, total = zeros(src.numel(), dtype="int32"), zeros(1, dtype="int32")
    args = src, dst, indptr, dst, count, total, src.numel()
    launched = run(triangles_of_edges, (cdiv(src.numel(), 128),), args, (count, total), BLOCK=128, num_warps=4)

    def reference():
        dense = torch.zeros(n, n, device=src.device)
        dense[src.long(), dst.long()] = 1
        common = (dense @ dense.t())[src.long(), dst.long()].round().int()
        return common, common.sum().int().reshape(1)

    return against(cleared(launched, total), reference)


@triton.jit
def ademamix_update_kernel(
    p_ptr, g_ptr, fast_ptr, slow_ptr, v_ptr, p_out, fast_out, slow_out, v_out, n_elements,
    lr, beta1, beta2, beta3, alpha, eps, weight_decay, bc1, bc2, BLOCK_SIZE: tl.constexpr, DECOUPLED: tl.constexpr,
):
    # AdEMAMix: a fast and a slow average of gradients together.
    offs = tl.program_id(0).to(tl.int64) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < n_elements
    p = tl.load(p_ptr + offs, mask=mask).to(tl.float32)
    g = tl.load(g_ptr + offs, mask=mask).to(tl.float32)
    fast = tl.load(fast_ptr + offs, mask=mask)
    slow = tl.load(slow_ptr + offs, mask=mask)
    v = tl.load(v_ptr + offs, mask=mask)
    if not DECOUPLED:
        g += weight_decay * p
    fast = beta1 * fast + (1.0 - beta1) * g
    slow = beta3 * slow + (1.0 - beta3) * g
    v = beta2 * v + (1.0 - beta2) * g * g
    update = (fast / bc1 + alpha * slow) / (tl.sqrt(v / bc2) + eps)
    if DECOUPLED:
        update += weight_decay * p
    tl.store(p_out + offs, (p - lr * update).to(p_out.dtype.element_ty), mask=mask)
    tl.store(fast_out + offs, fast, mask=mask)
    tl.store(slow_out + offs, slow, mask=mask)
    tl.store(v_out + offs, v, mask=mask)


@case
def meadow_grown_by_fast_and_slow_averages(n=4000001):
    p, g, fast, slow, v = rand(n, dtype="bfloat16"), rand(n, dtype="bfloat16"), f32(n) / 8, f32(n) / 16, uniform(n) + 0.01
    outs = torch.empty_like(p), torch.empty_like(fast), torch.empty_like(slow), torch.empty_like(v)
    args = p, g, fast, slow, v, *outs, n, 0.01, 0.9, 0.999, 0.9999, 5.0, 1e-8, 0.1, 0.19, 0.002
    launched = run(ademamix_update_kernel, (cdiv(n, 1024),), args, outs, BLOCK_SIZE=1024, DECOUPLED=True, num_warps=4)

    def reference():
        gf = g.float()
        a, b, c = 0.9 * fast + 0.1 * gf, 0.9999 * slow + 0.0001 * gf, 0.999 * v + 0.001 * gf * gf
        step = (a / 0.19 + 5 * b) / ((c / 0.002).sqrt() + 1e-8) + 0.1 * p.float()
        return p.float() - 0.01 * step, a, b, c

    return against(launched, reference)


@triton.jit
def sequence_policy_loss_kernel(
    logp_ptr, old_ptr, label_ptr, adv_ptr, loss_ptr, grad_ptr, clipped_ptr, stride_b, T, eps_low, eps_high,
    IGNORE_INDEX: tl.constexpr, BLOCK_T: tl.constexpr,
):
    # Policy loss with one ratio a sequence, the geometric mean of tokens' ratios, clipped; tokens of labels to ignore count for nothing.
    b = tl.program_id(0).to(tl.int64)
    total = 0.0
    count = 0.0
    for start in range(0, T, BLOCK_T):
        t = start + tl.arange(0, BLOCK_T)
        label = tl.load(label_ptr + b * stride_b + t, mask=t < T, other=IGNORE_INDEX)
        use = label != IGNORE_INDEX
        delta = tl.load(logp_ptr + b * stride_b + t, mask=use, other=0.0) - tl.load(old_ptr + b * stride_b + t, mask=use, other=0.0)
        total += tl.sum(delta, axis=0)
        count += tl.sum(use.to(tl.float32), axis=0)
    count = tl.maximum(count, 1.0)
    adv = tl.load(adv_ptr + b)
    ratio = tl.exp(total / count)
    bounded = tl.minimum(tl.maximum(ratio, 1.0 - eps_low), 1.0 + eps_high)
    loss1, loss2 = -ratio * adv, -bounded * adv
    outside = loss2 > loss1
    tl.store(loss_ptr + b, tl.maximum(loss1, loss2))
    tl.store(clipped_ptr + b, outside.to(tl.int8))
    grad = tl.where(outside, 0.0, -ratio * adv / count)
    for start in range(0, T, BLOCK_T):
        t = start + tl.arange(0, BLOCK_T)
        label = tl.load(label_ptr + b * stride_b + t, mask=t < T, other=IGNORE_INDEX)
        tl.store(grad_ptr + b * stride_b + t, tl.where(label != IGNORE_INDEX, grad, 0.0), mask=t < T)


@case
def meadow_sequences_rewarded_as_wholes(b=1200, t=3001):
    logp, delta, label = -uniform(b, t), f32(b, 1) / 4, ints(0, 1000, b, t, dtype="int64")
    label = torch.where(arange(t)[None] < ints(1, 600, b, 1), -100, label)
    old, adv = logp + delta + f32(b, t) / 10, f32(b)
    loss, grad, clipped = zeros(b, dtype="float32"), zeros(b, t, dtype="float32"), zeros(b, dtype="int8")
    args = logp, old, label, adv, loss, grad, clipped, t, t, 0.0003, 0.0004
    outs = loss, grad, clipped
    launched = run(sequence_policy_loss_kernel, (b,), args, outs, IGNORE_INDEX=-100, BLOCK_T=1024, num_warps=4)

    def reference():
        use = label != -100
        n = use.sum(1).clamp(min=1)
        ratio = torch.exp(torch.where(use, logp - old, 0.0).sum(1) / n)
        one, two = -ratio * adv, -ratio.clamp(1 - 0.0003, 1 + 0.0004) * adv
        out = two > one
        return torch.maximum(one, two), torch.where(use, torch.where(out, 0.0, -ratio * adv / n)[:, None], 0.0), out.to(torch.int8)

    return against(launched, reference)


@triton.jit
def gini_and_l_moments(x_ptr, gini_ptr, l_ptr, N, BLOCK: tl.constexpr):
    # Inequality and the first three L-moments of each row, from the sorted row and the ranks.
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    mask = i < N
    x = tl.load(x_ptr + row * N + i, mask=mask, other=float("inf"))
    x = tl.where(mask, tl.sort(x), 0.0)
    rank = i.to(tl.float32)
    b0 = tl.sum(x, axis=0) / N
    b1 = tl.sum(x * rank, axis=0) / (N * (N - 1.0))
    b2 = tl.sum(x * rank * (rank - 1.0) / (N - 2.0), axis=0) / (N * (N - 1.0))
    tl.store(gini_ptr + row, (2.0 * b1 - b0) / b0)
    tl.store(l_ptr + row * 3, b0)
    tl.store(l_ptr + row * 3 + 1, 2.0 * b1 - b0)
    tl.store(l_ptr + row * 3 + 2, 6.0 * b2 - 6.0 * b1 + b0)


@case
def meadow_shares_of_sorted_harvests(rows=1100, n=1900):
    x, gini, moments = uniform(rows, n).square() * 5 + 0.1, zeros(rows, dtype="float32"), zeros(rows, 3, dtype="float32")
    launched = run(gini_and_l_moments, (rows,), (x, gini, moments, n), (gini, moments), BLOCK=2048, num_warps=8)

    def reference():
        s, i = x.double().sort(1).values, torch.arange(n, device=x.device)
        b0, b1, b2 = s.mean(1), (s * i).sum(1) / n / (n - 1), (s * i * (i - 1)).sum(1) / n / (n - 1) / (n - 2)
        return ((2 * b1 - b0) / b0).float(), torch.stack((b0, 2 * b1 - b0, 6 * b2 - 6 * b1 + b0), 1).float()

    return against(launched, reference)


@triton.jit
def _fade(a1, b1, a2, b2):
    return a1 * a2, b1 * a2 + b2


@triton.jit
def ewm_mean_var_kernel(x_ptr, alpha_ptr, mean_ptr, var_ptr, T, BLOCK: tl.constexpr):
    # Means and variances that forget, each by a scan of pairs; a block of time a turn, with what is carried from the last.
    row = tl.program_id(0).to(tl.int64)
    a = tl.load(alpha_ptr + row)
    mean_in = tl.load(x_ptr + row * T)
    var_in = 0.0
    cols = tl.arange(0, BLOCK)
    for start in range(0, T, BLOCK):
        t = start + cols
        x = tl.load(x_ptr + row * T + t, mask=t < T, other=0.0)
        keep = tl.full((BLOCK,), 1.0, tl.float32) - a
        decay, mean = tl.associative_scan((keep, a * x), 0, _fade)
        mean += decay * mean_in
        before = (mean - a * x) / (1.0 - a)
        gap = x - before
        decay2, var = tl.associative_scan((keep, a * (1.0 - a) * gap * gap), 0, _fade)
        var += decay2 * var_in
        tl.store(mean_ptr + row * T + t, mean, mask=t < T)
        tl.store(var_ptr + row * T + t, var, mask=t < T)
        mean_in = tl.sum(tl.where(cols == BLOCK - 1, mean, 0.0), axis=0)
        var_in = tl.sum(tl.where(cols == BLOCK - 1, var, 0.0), axis=0)


@case
def meadow_means_and_variances_that_forget(rows=2500, t=1300):
    x, alpha = f32(rows, t), uniform(rows) / 5 + 0.02
    mean, var = zeros(rows, t, dtype="float32"), zeros(rows, t, dtype="float32")
    launched = run(ewm_mean_var_kernel, (rows,), (x, alpha, mean, var, t), (mean, var), BLOCK=512, num_warps=4)

    def reference():
        m, v, out = x[:, 0], torch.zeros_like(alpha), []
        for i in range(t):
            gap = x[:, i] - m
            m, v = m + alpha * gap, (1 - alpha) * (v + alpha * gap * gap)
            out.append(torch.stack((m, v)))
        return tuple(torch.stack(out, 2))

    return against(launched, reference)


@triton.jit
def guided_step_kernel(
    cond_ptr, uncond_ptr, latent_ptr, out_ptr, stride_b, stride_c, N, C, guidance, rescale, dt, BLOCK: tl.constexpr, RESCALE: tl.constexpr,
):
    # Guidance of a video model without its washed-out colors: the guided guess gets the spread of the conditioned one, then a step of Euler.
    b, c = tl.program_id(0) // C, tl.program_id(0) % C
    base = b.to(tl.int64) * stride_b + c * stride_c
    offs = tl.arange(0, BLOCK)
    s1 = tl.zeros((BLOCK,), tl.float32)
    q1 = tl.zeros((BLOCK,), tl.float32)
    s2 = tl.zeros((BLOCK,), tl.float32)
    q2 = tl.zeros((BLOCK,), tl.float32)
    factor = 1.0
    if RESCALE:
        for start in range(0, N, BLOCK):
            mask = start + offs < N
            yes = tl.load(cond_ptr + base + start + offs, mask=mask, other=0.0).to(tl.float32)
            no = tl.load(uncond_ptr + base + start + offs, mask=mask, other=0.0).to(tl.float32)
            both = no + guidance * (yes - no)
            s1 += yes
            q1 += yes * yes
            s2 += both
            q2 += both * both
        m1, m2 = tl.sum(s1) / N, tl.sum(s2) / N
        std1 = tl.sqrt(tl.maximum(tl.sum(q1) / N - m1 * m1, 0.0))
        std2 = tl.sqrt(tl.maximum(tl.sum(q2) / N - m2 * m2, 1e-12))
        factor = rescale * std1 / std2 + (1.0 - rescale)
    for start in range(0, N, BLOCK):
        mask = start + offs < N
        yes = tl.load(cond_ptr + base + start + offs, mask=mask, other=0.0).to(tl.float32)
        no = tl.load(uncond_ptr + base + start + offs, mask=mask, other=0.0).to(tl.float32)
        x = tl.load(latent_ptr + base + start + offs, mask=mask, other=0.0)
        tl.store(out_ptr + base + start + offs, x + dt * factor * (no + guidance * (yes - no)), mask=mask)


@case
def meadow_filmed_with_rescaled_guidance(b=9, c=16, f=13, h=60, w=90):
    yes, no, x = rand(b, c, f, h, w, dtype="bfloat16"), rand(b, c, f, h, w, dtype="bfloat16"), f32(b, c, f, h, w)
    out, n = torch.empty_like(x), f * h * w
    args = yes, no, x, out, x.stride(0), x.stride(1), n, c, 6.0, 0.7, -0.02
    launched = run(guided_step_kernel, (b * c,), args, out, BLOCK=2048, RESCALE=True, num_warps=8)

    def reference():
        a, z = yes.float(), no.float()
        both = z + 6 * (a - z)
        factor = 0.7 * a.std((2, 3, 4), keepdim=True, correction=0) / both.std((2, 3, 4), keepdim=True, correction=0) + 0.3
        return x - 0.02 * factor * both

    return against(launched, reference)


@triton.jit
def hyper_connections_post(x_ptr, y_ptr, raw_ptr, out_ptr, hidden, ITERS: tl.constexpr, N: tl.constexpr, BLOCK_C: tl.constexpr):
    # Hyper-connections held to doubly stochastic mixtures: streams are mixed by a matrix that Sinkhorn's turns balance; a layer's result is added.
    token = tl.program_id(0).to(tl.int64)
    c = tl.program_id(1) * BLOCK_C + tl.arange(0, BLOCK_C)
    i, j = tl.arange(0, N), tl.arange(0, N)
    raw = raw_ptr + token * (N * N + N)
    mix = tl.load(raw + i[:, None] * N + j[None, :])
    mix = tl.exp(mix - tl.max(mix, axis=1)[:, None])
    for _ in range(ITERS):
        mix = mix / (tl.sum(mix, axis=1)[:, None] + 1e-6)
        mix = mix / (tl.sum(mix, axis=0)[None, :] + 1e-6)
    post = 2.0 * tl.sigmoid(tl.load(raw + N * N + i))
    mask = c < hidden
    x = tl.load(x_ptr + (token * N + j[:, None]) * hidden + c[None, :], mask=mask[None, :], other=0.0).to(tl.float32)
    y = tl.load(y_ptr + token * hidden + c, mask=mask, other=0.0).to(tl.float32)
    out = tl.sum(mix[:, :, None] * x[None, :, :], axis=1) + post[:, None] * y[None, :]
    tl.store(out_ptr + (token * N + i[:, None]) * hidden + c[None, :], out.to(out_ptr.dtype.element_ty), mask=mask[None, :])


@case
def meadow_of_four_streams_in_balance(tokens=3000, hidden=1280, n=4):
    x, y, raw = rand(tokens, n, hidden, dtype="bfloat16"), rand(tokens, hidden, dtype="bfloat16"), f32(tokens, n * n + n)
    out = torch.empty_like(x)
    grid = tokens, cdiv(hidden, 512)
    launched = run(hyper_connections_post, grid, (x, y, raw, out, hidden), out, ITERS=20, N=n, BLOCK_C=512, num_warps=4)

    def reference():
        mix = raw[:, : n * n].reshape(tokens, n, n).softmax(2)
        for _ in range(20):
            mix = mix / (mix.sum(2, keepdim=True) + 1e-6)
            mix = mix / (mix.sum(1, keepdim=True) + 1e-6)
        return mix @ x.float() + 2 * torch.sigmoid(raw[:, n * n :])[..., None] * y.float()[:, None]

    return against(launched, reference)


@triton.jit
def engram_lookup_kernel(
    tok_ptr, mult_ptr, prime_ptr, offset_ptr, table_ptr, out_ptr, T, total, pad_id,
    MAX_N: tl.constexpr, HEADS: tl.constexpr, D: tl.constexpr, BLOCK_T: tl.constexpr,
):
    # A memory of word groups: the last two or three tokens are hashed by several heads, each into rows of its own part of a table.
    t = tl.program_id(0) * BLOCK_T + tl.arange(0, BLOCK_T)
    head = tl.program_id(1)
    n = head // HEADS + 2
    d = tl.arange(0, D)
    ok = t < total
    place = t % T
    key = tl.zeros((BLOCK_T,), dtype=tl.int64)
    for k in tl.static_range(MAX_N):
        if k < n:
            token = tl.load(tok_ptr + t - k, mask=ok & (place >= k), other=pad_id).to(tl.int64)
            key ^= token * tl.load(mult_ptr + head * MAX_N + k)
    row = key % tl.load(prime_ptr + head) + tl.load(offset_ptr + head)
    values = tl.load(table_ptr + row[:, None] * D + d[None, :], mask=ok[:, None], other=0.0)
    heads = tl.num_programs(1)
    tl.store(out_ptr + (t[:, None] * heads + head) * D + d[None, :], values, mask=ok[:, None])


@case
def meadow_words_remembered_in_pairs_and_threes(b=4, t=3000, d=64, heads=4):
    primes = torch.tensor([50021, 50023, 50033, 50047, 50051, 50053, 50069, 50077][: 2 * heads], device="cuda", dtype=torch.int64)
    offset, mult = primes.cumsum(0) - primes, ints(1, 1 << 30, 2 * heads, 3, dtype="int64") * 2 + 1
    tok, table, out = ints(0, 120000, b, t), rand(50100 * 2 * heads, d, dtype="bfloat16"), zeros(b, t, 2 * heads, d, dtype="bfloat16")
    args = tok, mult, primes, offset, table, out, t, b * t, 2
    launched = run(engram_lookup_kernel, (cdiv(b * t, 32), 2 * heads), args, out, MAX_N=3, HEADS=heads, D=d, BLOCK_T=32, num_warps=4)

    def reference():
        padded = torch.cat((torch.full((b, 2), 2, device=tok.device), tok), 1).long()
        rows = []
        for head in range(2 * heads):
            key = torch.zeros(b, t, device=tok.device, dtype=torch.int64)
            for k in range(head // heads + 2):
                key ^= padded[:, 2 - k : 2 - k + t] * mult[head, k]
            rows.append(key % primes[head] + offset[head])
        return table[torch.stack(rows, 2)]

    return against(launched, reference)


@triton.jit(do_not_specialize=["T"])
def wy_rows_recomputed(
    k, v, beta, w, u, A, g, cu_seqlens, chunk_indices, T, H: tl.constexpr, K: tl.constexpr, V: tl.constexpr,
    BT: tl.constexpr, BK: tl.constexpr, BV: tl.constexpr, IS_VARLEN: tl.constexpr,
):
    # Rows w and u of a chunk from its inverted triangle and gated keys and values, sequences packed one after another.
    i_t, i_h = tl.program_id(0), tl.program_id(1)
    bos = 0
    if IS_VARLEN:
        i_n, i_t = tl.load(chunk_indices + i_t * 2).to(tl.int32), tl.load(chunk_indices + i_t * 2 + 1).to(tl.int32)
        bos, eos = tl.load(cu_seqlens + i_n).to(tl.int32), tl.load(cu_seqlens + i_n + 1).to(tl.int32)
        T = eos - bos
    p_beta = tl.make_block_ptr(beta + bos * H + i_h, (T,), (H,), (i_t * BT,), (BT,), (0,))
    p_g = tl.make_block_ptr(g + bos * H + i_h, (T,), (H,), (i_t * BT,), (BT,), (0,))
    p_A = tl.make_block_ptr(A + (bos * H + i_h) * BT, (T, BT), (H * BT, 1), (i_t * BT, 0), (BT, BT), (1, 0))
    b_beta = tl.load(p_beta, boundary_check=(0,))
    b_g = tl.exp(tl.load(p_g, boundary_check=(0,)))
    b_A = tl.load(p_A, boundary_check=(0, 1))
    for i_v in range(tl.cdiv(V, BV)):
        p_v = tl.make_block_ptr(v + (bos * H + i_h) * V, (T, V), (H * V, 1), (i_t * BT, i_v * BV), (BT, BV), (1, 0))
        p_u = tl.make_block_ptr(u + (bos * H + i_h) * V, (T, V), (H * V, 1), (i_t * BT, i_v * BV), (BT, BV), (1, 0))
        b_v = tl.load(p_v, boundary_check=(0, 1))
        b_vb = (b_v * b_beta[:, None]).to(b_v.dtype)
        b_u = tl.dot(b_A, b_vb, allow_tf32=False)
        tl.store(p_u, b_u.to(p_u.dtype.element_ty), boundary_check=(0, 1))
    for i_k in range(tl.cdiv(K, BK)):
        p_k = tl.make_block_ptr(k + (bos * H + i_h) * K, (T, K), (H * K, 1), (i_t * BT, i_k * BK), (BT, BK), (1, 0))
        p_w = tl.make_block_ptr(w + (bos * H + i_h) * K, (T, K), (H * K, 1), (i_t * BT, i_k * BK), (BT, BK), (1, 0))
        b_k = tl.load(p_k, boundary_check=(0, 1))
        b_kb = (b_k * (b_beta * b_g)[:, None]).to(b_k.dtype)
        b_w = tl.dot(b_A, b_kb)
        tl.store(p_w, b_w.to(p_w.dtype.element_ty), boundary_check=(0, 1))


@case
def meadow_rows_of_chunks_behind_their_triangles(lengths=(1500, 37, 64, 2300, 700), h=8, k=128, v=128, bt=64):
    total, bounds = sum(lengths), [0]
    for length in lengths:
        bounds.append(bounds[-1] + length)
    cu = torch.tensor(bounds, device="cuda", dtype=torch.int32)
    chunks = [(n, c) for n, length in enumerate(lengths) for c in range(cdiv(length, bt))]
    index = torch.tensor(chunks, device="cuda", dtype=torch.int32)
    kk, vv = rand(total, h, k, dtype="bfloat16"), rand(total, h, v, dtype="bfloat16")
    a = rand(total, h, bt, dtype="bfloat16") / 8
    beta, g = uniform(total, h), -uniform(total, h)
    w, u = zeros(total, h, k, dtype="bfloat16"), zeros(total, h, v, dtype="bfloat16")
    args = kk, vv, beta, w, u, a, g, cu, index, total
    flags = dict(H=h, K=k, V=v, BT=bt, BK=64, BV=64, IS_VARLEN=True)
    launched = run(wy_rows_recomputed, (len(chunks), h), args, (w, u), num_warps=4, num_stages=2, **flags)

    def reference():
        ws, us = torch.zeros(total, h, k, device=kk.device), torch.zeros(total, h, v, device=kk.device)
        for n, c in chunks:
            lo, hi = bounds[n] + c * bt, min(bounds[n] + c * bt + bt, bounds[n + 1])
            tri = a[lo:hi, :, : hi - lo].float()
            us[lo:hi] = torch.einsum("ihj,jhv->ihv", tri, vv[lo:hi].float() * beta[lo:hi, :, None])
            ws[lo:hi] = torch.einsum("ihj,jhk->ihk", tri, kk[lo:hi].float() * (beta * g.exp())[lo:hi, :, None])
        return ws, us

    return against(launched, reference)


@triton.jit
def concat_jagged_kernel(a_off, a_ptr, b_off, b_ptr, out_ptr, D, BLOCK_D: tl.constexpr):
    # Two jagged tensors to one: for each sequence its rows of the first, then its rows of the second; one row an iteration.
    n = tl.program_id(0)
    cols = tl.arange(0, BLOCK_D)
    mask = cols < D
    a0, a1 = tl.load(a_off + n), tl.load(a_off + n + 1)
    b0, b1 = tl.load(b_off + n), tl.load(b_off + n + 1)
    to = a0 + b0
    row = a0
    while row < a1:
        x = tl.load(a_ptr + row * D + cols, mask=mask)
        tl.store(out_ptr + to * D + cols, x, mask=mask)
        row += 1
        to += 1
    row = b0
    while row < b1:
        x = tl.load(b_ptr + row * D + cols, mask=mask)
        tl.store(out_ptr + to * D + cols, x, mask=mask)
        row += 1
        to += 1


@case
def meadow_jagged_fences_joined(seqs=1500, most=50, d=200):
    la, lb = ints(0, most, seqs, dtype="int64"), ints(0, most, seqs, dtype="int64")
    zero = torch.zeros(1, device="cuda", dtype=torch.int64)
    oa, ob = torch.cat((zero, la.cumsum(0))), torch.cat((zero, lb.cumsum(0)))
    na, nb = int(la.sum()), int(lb.sum())
    a, b, out = rand(na, d), rand(nb, d), zeros(na + nb, d)
    launched = run(concat_jagged_kernel, (seqs,), (oa, a, ob, b, out, d), out, BLOCK_D=256, num_warps=4)

    def reference():
        result = torch.empty_like(out)
        ia = torch.arange(na, device=a.device) + torch.repeat_interleave(ob[:-1], la)
        ib = torch.arange(nb, device=a.device) + torch.repeat_interleave(oa[1:], lb)
        result[ia], result[ib] = a, b
        return result

    return against(launched, reference)


@triton.jit
def _six(p, at0, at1, at2, at3, at4, at5):
    a = tl.load(p + at0).to(tl.int32) + tl.load(p + at5).to(tl.int32)
    b = tl.load(p + at1).to(tl.int32) + tl.load(p + at4).to(tl.int32)
    c = tl.load(p + at2).to(tl.int32) + tl.load(p + at3).to(tl.int32)
    return a - 5 * b + 20 * c


@triton.jit
def half_samples_kernel(src_ptr, out_ptr, H, W, BH: tl.constexpr, BW: tl.constexpr):
    # Samples between those of a frame for motion of halves: six taps along rows, along columns, and along both without rounding between.
    y = (tl.program_id(0) * BH + tl.arange(0, BH))[:, None]
    x = (tl.program_id(1) * BW + tl.arange(0, BW))[None, :]
    inside = (y < H) & (x < W)
    src = src_ptr + tl.program_id(2) * H * W
    out = out_ptr + tl.program_id(2) * 4 * H * W + y * W + x
    x0, x1, x2 = tl.minimum(tl.maximum(x - 2, 0), W - 1), tl.minimum(tl.maximum(x - 1, 0), W - 1), tl.minimum(x, W - 1)
    x3, x4, x5 = tl.minimum(x + 1, W - 1), tl.minimum(x + 2, W - 1), tl.minimum(x + 3, W - 1)
    yc = tl.minimum(y, H - 1)
    both = tl.zeros((BH, BW), dtype=tl.int32)
    row = both
    for tap in tl.static_range(6):
        yt = tl.minimum(tl.maximum(y + (tap - 2), 0), H - 1) * W
        h = _six(src, yt + x0, yt + x1, yt + x2, yt + x3, yt + x4, yt + x5)
        if tap == 0 or tap == 5:
            both += h
        elif tap == 1 or tap == 4:
            both -= 5 * h
        else:
            both += 20 * h
        if tap == 2:
            row = h
    up0, up1 = tl.maximum(y - 2, 0), tl.maximum(y - 1, 0)
    y0, y1 = tl.minimum(up0, H - 1) * W, tl.minimum(up1, H - 1) * W
    y3, y4, y5 = tl.minimum(y + 1, H - 1) * W, tl.minimum(y + 2, H - 1) * W, tl.minimum(y + 3, H - 1) * W
    column = _six(src, y0 + x2, y1 + x2, yc * W + x2, y3 + x2, y4 + x2, y5 + x2)
    whole = tl.load(src + yc * W + x2)
    row = tl.minimum(tl.maximum((row + 16) >> 5, 0), 255)
    column = tl.minimum(tl.maximum((column + 16) >> 5, 0), 255)
    both = tl.minimum(tl.maximum((both + 512) >> 10, 0), 255)
    tl.store(out, whole, mask=inside)
    tl.store(out + H * W, row.to(tl.uint8), mask=inside)
    tl.store(out + 2 * H * W, column.to(tl.uint8), mask=inside)
    tl.store(out + 3 * H * W, both.to(tl.uint8), mask=inside)


@case
def meadow_filmed_between_its_pixels(n=3, h=1080, w=1916):
    src, out = ints(0, 256, n, h, w, dtype="uint8"), zeros(n, 4, h, w, dtype="uint8")
    launched = run(half_samples_kernel, (cdiv(h, 8), cdiv(w, 128), n), (src, out, h, w), out, BH=8, BW=128, num_warps=4)

    def reference():
        f = F.pad(src.float()[:, None], (2, 3, 2, 3), mode="replicate")
        taps = torch.tensor([1.0, -5, 20, 20, -5, 1], device=src.device)

        def along(z, dim):
            return sum(taps[i] * z.narrow(dim, i, z.shape[dim] - 5) for i in range(6))

        row, column, both = along(f[:, :, 2:-3], 3), along(f[..., 2:-3], 2), along(along(f, 3), 2)
        rounded = [torch.floor((z + s / 2) / s).clamp(0, 255) for z, s in ((row, 32), (column, 32), (both, 1024))]
        return torch.cat([src[:, None].float(), *rounded], 1).to(torch.uint8)

    return against(launched, reference)


@triton.jit
def rice_choice_kernel(x_ptr, order_ptr, k_ptr, bits_ptr, N, BLOCK: tl.constexpr, MAX_K: tl.constexpr):
    # Of five fixed predictors of a block of sound the one with the least residuals, and the parameter of Rice codes that needs fewest bits.
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    base = x_ptr + row * N + i
    ok = i < N
    x0 = tl.load(base, mask=ok, other=0).to(tl.int32)
    x1 = tl.load(base - 1, mask=ok & (i >= 1), other=0).to(tl.int32)
    x2 = tl.load(base - 2, mask=ok & (i >= 2), other=0).to(tl.int32)
    x3 = tl.load(base - 3, mask=ok & (i >= 3), other=0).to(tl.int32)
    x4 = tl.load(base - 4, mask=ok & (i >= 4), other=0).to(tl.int32)
    best_sum = tl.sum(tl.where(ok & (i >= 4), tl.abs(x0), 0), axis=0)
    best = x0
    order = 0
    for o in tl.static_range(1, 5):
        if o == 1:
            e = x0 - x1
        elif o == 2:
            e = x0 - 2 * x1 + x2
        elif o == 3:
            e = x0 - 3 * x1 + 3 * x2 - x3
        else:
            e = x0 - 4 * x1 + 6 * x2 - 4 * x3 + x4
        total = tl.sum(tl.where(ok & (i >= 4), tl.abs(e), 0), axis=0)
        better = total < best_sum
        best = tl.where(better, e, best)
        order = tl.where(better, o, order)
        best_sum = tl.minimum(best_sum, total)
    folded = tl.where(best < 0, -2 * best - 1, 2 * best)
    use = ok & (i >= order)
    least = 1 << 30
    chosen = 0
    for k in range(MAX_K):
        bits = tl.sum(tl.where(use, (folded >> k) + 1 + k, 0), axis=0)
        chosen = tl.where(bits < least, k, chosen)
        least = tl.minimum(bits, least)
    tl.store(order_ptr + row, order)
    tl.store(k_ptr + row, chosen)
    tl.store(bits_ptr + row, least)


@case
def meadow_birdsong_by_predictors_and_rice_codes(rows=2500, n=2304):
    t = torch.arange(rows * n, device="cuda", dtype=torch.float32).reshape(rows, n)
    speed, size = uniform(rows, 1) * 0.4, uniform(rows, 1).square() * 20
    x = (torch.sin(t % 4099 * speed) * 3000 + f32(rows, n) * size).to(torch.int16)
    order, k, bits = zeros(rows, dtype="int32"), zeros(rows, dtype="int32"), zeros(rows, dtype="int32")
    launched = run(rice_choice_kernel, (rows,), (x, order, k, bits, n), (order, k, bits), BLOCK=4096, MAX_K=15, num_warps=8)

    def reference():
        wide, errors = F.pad(x.long(), (4, 0)), []
        errors.append(wide)
        for _ in range(4):
            errors.append(F.pad(errors[-1][:, 1:] - errors[-1][:, :-1], (1, 0)))
        stacked = torch.stack(errors)[:, :, 4:]
        sums = stacked[:, :, 4:].abs().sum(2)
        best, which = sums[0].clone(), torch.zeros(rows, device=x.device, dtype=torch.int64)
        for o in range(1, 5):
            which = torch.where(sums[o] < best, o, which)
            best = torch.minimum(best, sums[o])
        e = stacked.gather(0, which[None, :, None].expand(1, rows, n))[0]
        folded = torch.where(e < 0, -2 * e - 1, 2 * e)
        use = torch.arange(n, device=x.device) >= which[:, None]
        costs = torch.stack([torch.where(use, (folded >> r) + 1 + r, 0).sum(1) for r in range(15)])
        lowest = costs.amin(0)
        first = torch.where(costs == lowest, torch.arange(15, device=x.device)[:, None], 99).amin(0)
        return which.int(), first.int(), lowest.int()

    return against(launched, reference)


@triton.jit
def alibi_window_bwd_dq(
    Q, K, V, DO, LSE, Delta, Slopes, DQ, stride_z, stride_h, stride_t, H, T, sm_scale, WINDOW: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, HEAD_DIM: tl.constexpr,
):
    # Gradients of queries of attention with slopes and a sliding window, weights made again from the logs of sums.
    start_m = tl.program_id(0) * BLOCK_M
    off_z, off_h = tl.program_id(1) // H, tl.program_id(1) % H
    base = off_z.to(tl.int64) * stride_z + off_h.to(tl.int64) * stride_h
    offs_m, offs_d = start_m + tl.arange(0, BLOCK_M), tl.arange(0, HEAD_DIM)
    at_m = base + offs_m[:, None] * stride_t + offs_d[None, :]
    in_m = (offs_m < T)[:, None]
    q, do = tl.load(Q + at_m, mask=in_m, other=0.0), tl.load(DO + at_m, mask=in_m, other=0.0)
    lse = tl.load(LSE + tl.program_id(1) * T + offs_m, mask=offs_m < T, other=0.0)
    delta = tl.load(Delta + tl.program_id(1) * T + offs_m, mask=offs_m < T, other=0.0)
    slope = tl.load(Slopes + off_h) * 1.4426950408889634
    qk_scale = sm_scale * 1.4426950408889634
    dq = tl.zeros((BLOCK_M, HEAD_DIM), dtype=tl.float32)
    lo = tl.maximum(start_m - WINDOW + 1, 0) // BLOCK_N * BLOCK_N
    hi = tl.minimum(start_m + BLOCK_M, T)
    for start_n in range(lo, hi, BLOCK_N):
        offs_n = start_n + tl.arange(0, BLOCK_N)
        at_n = base + offs_n[None, :] * stride_t + offs_d[:, None]
        kT = tl.load(K + at_n, mask=(offs_n < T)[None, :], other=0.0)
        vT = tl.load(V + at_n, mask=(offs_n < T)[None, :], other=0.0)
        back = offs_m[:, None] - offs_n[None, :]
        qk = tl.dot(q, kT) * qk_scale - slope * back.to(tl.float32)
        p = tl.where((back >= 0) & (back < WINDOW), tl.math.exp2(qk - lse[:, None] * 1.4426950408889634), 0.0)
        dp = tl.dot(do, vT)
        ds = p * (dp - delta[:, None])
        dq = tl.dot(ds.to(kT.dtype), tl.trans(kT), dq)
    tl.store(DQ + at_m, (dq * sm_scale).to(DQ.dtype.element_ty), mask=in_m)


@case
def meadow_slopes_in_windows_back_to_queries(b=1, h=20, t=1600, d=64, window=500):
    q, k, v, do = (rand(b, h, t, d, dtype="float16") for _ in range(4))
    slopes, dq = torch.pow(2.0, -8.0 / h * (arange(h) + 1).float()), zeros(b, h, t, d, dtype="float16")
    back = arange(t)[:, None] - arange(t)[None]
    s = q.float() @ k.float().transpose(2, 3) * d**-0.5 - slopes[:, None, None] * back
    s = torch.where((back >= 0) & (back < window), s, -1e30)
    lse = torch.logsumexp(s, 3)
    delta = ((s.softmax(3) @ v.float()) * do.float()).sum(3)
    args = q, k, v, do, lse, delta, slopes, dq, q.stride(0), q.stride(1), q.stride(2), h, t, d**-0.5
    flags = dict(WINDOW=window, BLOCK_M=64, BLOCK_N=32, HEAD_DIM=d)
    del s
    launched = run(alibi_window_bwd_dq, (cdiv(t, 64), b * h), args, dq, num_warps=4, num_stages=3, **flags)

    def reference():
        score = q.float() @ k.float().transpose(2, 3) * d**-0.5 - slopes[:, None, None] * back
        p = torch.where((back >= 0) & (back < window), torch.exp(score - lse[..., None]), 0.0)
        ds = p * (do.float() @ v.float().transpose(2, 3) - delta[..., None])
        return ds @ k.float() * d**-0.5

    return against(launched, reference)


@triton.jit
def xpos_rotary_pairs(x_ptr, pos_ptr, y_ptr, heads, base, scale_base, UP: tl.constexpr, D: tl.constexpr, BH: tl.constexpr):
    # Rotary turns of neighboring pairs whose length fades with distance, every pair by its own factor.
    token = tl.program_id(0).to(tl.int64)
    h = tl.program_id(1) * BH + tl.arange(0, BH)
    i = tl.arange(0, D // 2)
    pos = tl.load(pos_ptr + token).to(tl.float32)
    angle = pos * tl.exp2(-(i.to(tl.float32) * 2.0 / D) * tl.log2(base))
    fade = (2.0 * i.to(tl.float32) / D + 0.4) / 1.4
    power = pos / scale_base
    size = tl.exp2(tl.log2(fade) * (power if UP else -power))
    c, s = tl.cos(angle) * size, tl.sin(angle) * size
    at = (token * heads + h[:, None]) * D + tl.arange(0, D)[None, :]
    mask = (h < heads)[:, None]
    x = tl.load(x_ptr + at, mask=mask, other=0.0).to(tl.float32)
    even, odd = tl.split(tl.reshape(x, (BH, D // 2, 2)))
    y = tl.join(even * c[None, :] - odd * s[None, :], odd * c[None, :] + even * s[None, :])
    tl.store(y_ptr + at, tl.reshape(y, (BH, D)).to(y_ptr.dtype.element_ty), mask=mask)


@case
def meadow_keys_that_turn_and_grow(tokens=6000, heads=12, d=128):
    x, pos = rand(tokens, heads, d, dtype="bfloat16"), ints(0, 600, tokens, dtype="int64")
    y = zeros(tokens, heads, d)
    args = x, pos, y, heads, 10000.0, 512.0
    launched = run(xpos_rotary_pairs, (tokens, cdiv(heads, 8)), args, y, UP=False, D=d, BH=8, num_warps=4)

    def reference():
        i, p = torch.arange(d // 2, device=x.device, dtype=torch.float64), pos.double()[:, None]
        angle = p * 10000.0 ** (-2 * i / d)
        size = ((2 * i / d + 0.4) / 1.4) ** (-p / 512)
        c, s = (angle.cos() * size).float()[:, None], (angle.sin() * size).float()[:, None]
        even, odd = x.float().unflatten(2, (-1, 2)).unbind(3)
        return torch.stack((even * c - odd * s, odd * c + even * s), 3).reshape(tokens, heads, d)

    return against(launched, reference)
