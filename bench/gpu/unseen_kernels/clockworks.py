"""Clockworks: small wheels that turn exactly: puzzles, codes, trees and lists by integers, springs and flows, speech, and weights in odd order."""

import torch
import torch.nn.functional as F
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

from .common import against, arange, case, cdiv, cleared, f32, ints, rand, run, uniform, zeros


@triton.jit
def gptq_act_order_kernel(
    a_ptr, qweight_ptr, scales_ptr, qzeros_ptr, g_idx_ptr, c_ptr, M, N, K, stride_am, stride_cm,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
):
    # Weights of four bits, eight rows in a word, whose groups follow a table since columns were ordered by their activations.
    pid = tl.program_id(0)
    grid_m, grid_n = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    width = GROUP_M * grid_n
    group = pid // width
    size = min(grid_m - group * GROUP_M, GROUP_M)
    pid_m, pid_n = group * GROUP_M + pid % size, pid % width // size
    offs_m = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_k = tl.arange(0, BLOCK_K)
    mask_m, mask_n = offs_m < M, offs_n < N
    a_ptrs = a_ptr + offs_m[:, None] * stride_am + offs_k[None, :]
    b_ptrs = qweight_ptr + (offs_k // 8)[:, None] * N + offs_n[None, :]
    shift = (offs_k % 8) * 4
    zero_shift = (offs_n % 8) * 4
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BLOCK_K)):
        g = tl.load(g_idx_ptr + k * BLOCK_K + offs_k)
        scale = tl.load(scales_ptr + g[:, None] * N + offs_n[None, :], mask=mask_n[None, :], other=0.0)
        zero = tl.load(qzeros_ptr + g[:, None] * (N // 8) + (offs_n // 8)[None, :], mask=mask_n[None, :], other=0)
        zero = ((zero >> zero_shift[None, :]) & 0xF) + 1
        a = tl.load(a_ptrs, mask=mask_m[:, None], other=0.0)
        b = (tl.load(b_ptrs, mask=mask_n[None, :], other=0) >> shift[:, None]) & 0xF
        acc += tl.dot(a, ((b - zero) * scale).to(a.dtype))
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K // 8 * N
    tl.store(c_ptr + offs_m[:, None] * stride_cm + offs_n[None, :], acc.to(c_ptr.dtype.element_ty), mask=mask_m[:, None] & mask_n[None, :])


def words(nibbles, dim):
    """Int32 words of eight nibbles each along `dim`, the first lowest."""
    parts = nibbles.long().unflatten(dim, (-1, 8)).movedim(dim + 1, -1)
    word = sum(parts[..., i] << (4 * i) for i in range(8))
    return torch.where(word >= 1 << 31, word - (1 << 32), word).int().contiguous()


@case
def clockwork_weights_in_the_order_of_activations(m=90, n=4096, k=2048, group=128):
    a, codes, zero = rand(m, k), ints(0, 16, k, n), ints(0, 15, k // group, n)
    scales, g = uniform(k // group, n).half() / 64, (torch.randperm(k, device="cuda") // group).int()
    c = zeros(m, n)
    args = a, words(codes, 0), scales, words(zero, 1), g, c, m, n, k, a.stride(0), c.stride(0)
    flags = dict(BLOCK_M=32, BLOCK_N=64, BLOCK_K=64, GROUP_M=8)
    launched = run(gptq_act_order_kernel, (cdiv(m, 32) * cdiv(n, 64),), args, c, num_warps=4, num_stages=3, **flags)

    def reference():
        at = g.long()
        w = (codes.float() - zero[at].float() - 1) * scales[at].float()
        return a.float() @ w.half().float()

    return against(launched, reference)


@triton.jit
def build_tree_kernel(parent_ptr, mask_ptr, depth_ptr, sibling_ptr, count_ptr, N, BLOCK: tl.constexpr):
    # Of drafted tokens with their parents: who sees whom, how deep each is, its next sibling, and how many children it has.
    req = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    ok = i < N
    parent = tl.load(parent_ptr + req * N + i, mask=ok, other=-1)
    seen = i[:, None] == i[None, :]
    depth = tl.zeros((BLOCK,), dtype=tl.int32)
    now = parent
    while tl.max(now, axis=0) >= 0:
        seen = seen | (i[None, :] == now[:, None])
        depth += (now >= 0).to(tl.int32)
        now = tl.load(parent_ptr + req * N + now, mask=now >= 0, other=-1)
    kids = (parent[None, :] == i[:, None]) & ok[None, :]
    later = (parent[None, :] == parent[:, None]) & (i[None, :] > i[:, None]) & ok[None, :] & (parent >= 0)[:, None]
    sibling = tl.min(tl.where(later, i[None, :], BLOCK), axis=1)
    tl.store(mask_ptr + (req * N + i[:, None]) * N + i[None, :], seen, mask=ok[:, None] & ok[None, :])
    tl.store(depth_ptr + req * N + i, depth, mask=ok)
    tl.store(sibling_ptr + req * N + i, tl.where(sibling < BLOCK, sibling, -1), mask=ok)
    tl.store(count_ptr + req * N + i, tl.sum(kids.to(tl.int32), axis=1), mask=ok)


@case
def clockwork_drafts_that_branch(reqs=1500, n=60):
    parent = torch.minimum((uniform(reqs, n) * arange(n)).int(), arange(n) - 1)
    seen, depth = zeros(reqs, n, n, dtype="bool"), zeros(reqs, n, dtype="int32")
    sibling, count = zeros(reqs, n, dtype="int32"), zeros(reqs, n, dtype="int32")
    outs = seen, depth, sibling, count
    launched = run(build_tree_kernel, (reqs,), (parent, *outs, n), outs, BLOCK=64, num_warps=4)

    def reference():
        i = torch.arange(n, device=parent.device)
        up = parent[:, :, None] == i
        see = torch.eye(n, device=parent.device, dtype=torch.bool).repeat(reqs, 1, 1)
        for row in range(1, n):
            see[:, row] |= see.gather(1, parent[:, row].long()[:, None, None].expand(-1, 1, n))[:, 0]
        same = (parent[:, :, None] == parent[:, None]) & (i > i[:, None]) & (parent >= 0)[:, :, None]
        after = torch.where(same, i, n).amin(2)
        return see, see.sum(2).int() - 1, torch.where(after < n, after, -1).int(), up.sum(1).int()

    return against(launched, reference)


@triton.jit
def dry_match_kernel(hist_ptr, len_ptr, longest_ptr, stride, V, MAX_LEN: tl.constexpr, BLOCK: tl.constexpr):
    # Don't repeat yourself: for each token that followed words like the last ones, the longest such run, kept by a maximum.
    row = tl.program_id(0)
    n = tl.load(len_ptr + row)
    j = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    active = (j >= 1) & (j < n)
    token = tl.load(hist_ptr + row * stride + j, mask=active, other=0)
    length = tl.zeros((BLOCK,), dtype=tl.int32)
    i = 0
    matching = active
    while (i < MAX_LEN) and (tl.sum(matching.to(tl.int32), axis=0) > 0):
        matching = matching & (j - 1 - i >= 0)
        a = tl.load(hist_ptr + row * stride + j - 1 - i, mask=matching, other=-1)
        b = tl.load(hist_ptr + row * stride + tl.maximum(n - 1 - i, 0))
        matching = matching & (a == b)
        length += matching.to(tl.int32)
        i += 1
    tl.atomic_max(longest_ptr + row * V + token, length, mask=active & (length > 0))


@case
def clockwork_runs_that_repeat_themselves(rows=256, most=4000, v=30000, longest=24):
    hist, n = ints(0, v, rows, 97).repeat(1, cdiv(most, 97))[:, :most].contiguous(), ints(most // 2, most, rows)
    hist = torch.where(uniform(rows, most) < 0.05, ints(0, v, rows, most), hist)
    table = zeros(rows, v, dtype="int32")
    launched = run(dry_match_kernel, (rows, cdiv(most, 512)), (hist, n, table, most, v), table, MAX_LEN=longest, BLOCK=512, num_warps=4)

    def reference():
        j = torch.arange(most, device=hist.device)[None]
        match = (j >= 1) & (j < n[:, None])
        length = torch.zeros(rows, most, device=hist.device, dtype=torch.int32)
        for i in range(longest):
            a = hist.gather(1, (j - 1 - i).clamp(min=0).expand(rows, -1))
            b = hist.gather(1, (n[:, None] - 1 - i).clamp(min=0).long())
            match = match & (j - 1 - i >= 0) & (a == b)
            length += match.int()
        return torch.zeros_like(table).scatter_reduce_(1, hist.long(), length, "amax")

    return against(cleared(launched, table), reference)


@triton.jit
def adc_scan_topk(codes_ptr, lut_ptr, out_ptr, N, CODES: tl.constexpr, BLOCK: tl.constexpr, TOP: tl.constexpr):
    # Distances of coded vectors to a query by tables, the nearest of each chunk as keys of distance and place in one long.
    chunk, query = tl.program_id(0), tl.program_id(1)
    n = chunk * BLOCK + tl.arange(0, BLOCK)
    mask = n < N
    lut = lut_ptr + query * CODES * 256
    dist = tl.zeros((BLOCK,), dtype=tl.float32)
    for m in range(CODES):
        code = tl.load(codes_ptr + n * CODES + m, mask=mask, other=0)
        dist += tl.load(lut + m * 256 + code.to(tl.int32))
    dist = tl.where(mask, dist, 3.0e38)
    key = (dist.to(tl.int32, bitcast=True).to(tl.int64) << 32) | n.to(tl.int64)
    best = tl.topk(-key, TOP)
    tl.store(out_ptr + (query * tl.num_programs(0) + chunk) * TOP + tl.arange(0, TOP), -best)


@case
def clockwork_nearest_codes_by_tables(n=60000, queries=40, codes=16):
    code, lut = ints(0, 256, n, codes, dtype="uint8"), ints(0, 4000, queries, codes, 256).float() / 64
    chunks = cdiv(n, 1024)
    out = zeros(queries, chunks, 16, dtype="int64")
    launched = run(adc_scan_topk, (chunks, queries), (code, lut, out, n), out, CODES=codes, BLOCK=1024, TOP=16, num_warps=4)

    def reference():
        dist = sum(lut[:, m, code[:, m].long()] for m in range(codes))
        dist = F.pad(dist, (0, chunks * 1024 - n), value=3.0e38)
        key = (dist.view(torch.int32).long() << 32) | torch.arange(chunks * 1024, device=code.device)
        return key.reshape(queries, chunks, 1024).sort(2).values[..., :16]

    return against(launched, reference)


@triton.jit
def springs_of_one_color(pos_ptr, w_ptr, pair_ptr, rest_ptr, lam_ptr, out_ptr, lam_out, E, compliance, BLOCK: tl.constexpr):
    # Extended position-based dynamics: springs that share no point are all satisfied at once.
    e = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = e < E
    i = tl.load(pair_ptr + e * 2, mask=mask, other=0)
    j = tl.load(pair_ptr + e * 2 + 1, mask=mask, other=0)
    xi, yi, zi = tl.load(pos_ptr + i * 3, mask=mask), tl.load(pos_ptr + i * 3 + 1, mask=mask), tl.load(pos_ptr + i * 3 + 2, mask=mask)
    xj, yj, zj = tl.load(pos_ptr + j * 3, mask=mask), tl.load(pos_ptr + j * 3 + 1, mask=mask), tl.load(pos_ptr + j * 3 + 2, mask=mask)
    wi = tl.load(w_ptr + i, mask=mask, other=0.0)
    wj = tl.load(w_ptr + j, mask=mask, other=0.0)
    lam = tl.load(lam_ptr + e, mask=mask, other=0.0)
    dx, dy, dz = xi - xj, yi - yj, zi - zj
    length = tl.sqrt(dx * dx + dy * dy + dz * dz)
    c = length - tl.load(rest_ptr + e, mask=mask, other=0.0)
    total = wi + wj + compliance
    dl = tl.where(total > 0, (-c - compliance * lam) / total, 0.0)
    scale = tl.where(length > 1e-6, dl / length, 0.0)
    tl.store(out_ptr + i * 3, xi + wi * scale * dx, mask=mask)
    tl.store(out_ptr + i * 3 + 1, yi + wi * scale * dy, mask=mask)
    tl.store(out_ptr + i * 3 + 2, zi + wi * scale * dz, mask=mask)
    tl.store(out_ptr + j * 3, xj - wj * scale * dx, mask=mask)
    tl.store(out_ptr + j * 3 + 1, yj - wj * scale * dy, mask=mask)
    tl.store(out_ptr + j * 3 + 2, zj - wj * scale * dz, mask=mask)
    tl.store(lam_out + e, lam + dl, mask=mask)


@case
def clockwork_springs_that_share_no_point(points=600000, e=250000):
    pos, w = f32(points, 3), (uniform(points) - 0.1).clamp(min=0) * 2
    pair = torch.randperm(points, device="cuda")[: 2 * e].reshape(e, 2).int()
    rest, lam, out, lam_out = uniform(e) * 2, f32(e) / 8, pos.clone(), zeros(e, dtype="float32")
    args = pos, w, pair, rest, lam, out, lam_out, e, 0.05
    launched = run(springs_of_one_color, (cdiv(e, 256),), args, (out, lam_out), BLOCK=256, num_warps=4)

    def reference():
        i, j = pair.long().unbind(1)
        d = pos[i] - pos[j]
        length = d.norm(dim=1)
        dl = (-(length - rest) - 0.05 * lam) / (w[i] + w[j] + 0.05)
        move, new = (dl / length)[:, None] * d, pos.clone()
        new[i], new[j] = pos[i] + w[i, None] * move, pos[j] - w[j, None] * move
        return new, lam + dl

    return against(launched, reference)


@triton.jit
def stokeslet_kernel(x_ptr, f_ptr, u_ptr, N, eps2, mu, BI: tl.constexpr, BJ: tl.constexpr):
    # Slow flow at each point from forces at all of them, the singularity smoothed.
    i = tl.program_id(0) * BI + tl.arange(0, BI)
    ok = i < N
    xi = tl.load(x_ptr + i * 3 + 0, mask=ok, other=0.0)
    yi = tl.load(x_ptr + i * 3 + 1, mask=ok, other=0.0)
    zi = tl.load(x_ptr + i * 3 + 2, mask=ok, other=0.0)
    ux = tl.zeros((BI,), dtype=tl.float32)
    uy = tl.zeros((BI,), dtype=tl.float32)
    uz = tl.zeros((BI,), dtype=tl.float32)
    for start in range(0, N, BJ):
        j = start + tl.arange(0, BJ)
        mj = j < N
        dx = xi[:, None] - tl.load(x_ptr + j * 3 + 0, mask=mj, other=0.0)[None, :]
        dy = yi[:, None] - tl.load(x_ptr + j * 3 + 1, mask=mj, other=0.0)[None, :]
        dz = zi[:, None] - tl.load(x_ptr + j * 3 + 2, mask=mj, other=0.0)[None, :]
        fx = tl.load(f_ptr + j * 3 + 0, mask=mj, other=0.0)[None, :]
        fy = tl.load(f_ptr + j * 3 + 1, mask=mj, other=0.0)[None, :]
        fz = tl.load(f_ptr + j * 3 + 2, mask=mj, other=0.0)[None, :]
        r2 = dx * dx + dy * dy + dz * dz
        inv = tl.rsqrt(r2 + eps2)
        inv3 = inv * inv * inv
        along = (fx * dx + fy * dy + fz * dz) * inv3
        iso = (r2 + 2.0 * eps2) * inv3
        ux += tl.sum(iso * fx + along * dx, axis=1)
        uy += tl.sum(iso * fy + along * dy, axis=1)
        uz += tl.sum(iso * fz + along * dz, axis=1)
    s = 1.0 / (8.0 * 3.14159265358979 * mu)
    tl.store(u_ptr + i * 3 + 0, ux * s, mask=ok)
    tl.store(u_ptr + i * 3 + 1, uy * s, mask=ok)
    tl.store(u_ptr + i * 3 + 2, uz * s, mask=ok)


@case
def clockwork_swimmers_in_syrup(n=5003):
    x, f, u = f32(n, 3), f32(n, 3), zeros(n, 3, dtype="float32")
    launched = run(stokeslet_kernel, (cdiv(n, 32),), (x, f, u, n, 0.01, 0.9), u, BI=32, BJ=64, num_warps=4)

    def reference():
        rows = []
        for part in x.split(500):
            d = part[:, None] - x
            r2 = d.square().sum(2)
            inv3 = (r2 + 0.01) ** -1.5
            rows.append(((r2 + 0.02) * inv3) @ f + (((d * f).sum(2) * inv3)[..., None] * d).sum(1))
        return torch.cat(rows) / (8 * 3.14159265358979 * 0.9)

    return against(launched, reference)


@triton.jit
def _least(a, b):
    return tl.minimum(a, b)


@triton.jit
def belief_messages(cost_ptr, in_ptr, out_ptr, H, W, slope, cap, LABELS: tl.constexpr, BX: tl.constexpr, BACK: tl.constexpr):
    # Messages of belief propagation one way over a picture: the least over labels of cost and of a slope up to a cap, by two scans.
    y = tl.program_id(1)
    x = tl.program_id(0) * BX + tl.arange(0, BX)
    label = tl.arange(0, LABELS)
    plane = H * W * LABELS
    ok = (x < W)[:, None]
    at = (y * W + x[:, None]) * LABELS + label[None, :]
    h = tl.load(cost_ptr + at, mask=ok, other=0.0)
    for way in tl.static_range(4):
        if way != BACK:
            fx = x - (1 if way == 0 else (-1 if way == 1 else 0))
            fy = y - (1 if way == 2 else (-1 if way == 3 else 0))
            there = (fx >= 0) & (fx < W) & (fy >= 0) & (fy < H)
            h += tl.load(in_ptr + way * plane + at, mask=ok & there[:, None], other=0.0)
    ramp = label.to(tl.float32)[None, :] * slope
    up = tl.associative_scan(h - ramp, 1, _least) + ramp
    down = tl.associative_scan(h + ramp, 1, _least, reverse=True) - ramp
    message = tl.minimum(tl.minimum(up, down), tl.min(h, axis=1)[:, None] + cap)
    message -= tl.sum(message, axis=1)[:, None] / LABELS
    tx = x + (1 if BACK == 1 else (-1 if BACK == 0 else 0))
    ty = y + (1 if BACK == 3 else (-1 if BACK == 2 else 0))
    inside = (x < W) & (tx >= 0) & (tx < W) & (ty >= 0) & (ty < H)
    tl.store(out_ptr + (ty * W + tx[:, None]) * LABELS + label[None, :], message, mask=inside[:, None])


@case
def clockwork_beliefs_passed_to_the_right(h=200, w=310, labels=64):
    cost, msg, out = uniform(h, w, labels) * 8, f32(4, h, w, labels), zeros(h, w, labels, dtype="float32")
    flags = dict(LABELS=labels, BX=16, BACK=1)
    launched = run(belief_messages, (cdiv(w, 16), h), (cost, msg, out, h, w, 0.7, 3.0), out, num_warps=4, **flags)

    def reference():
        m = msg.clone()
        m[0, :, 0], m[1, :, -1], m[2, 0], m[3, -1] = 0, 0, 0, 0
        total, line = cost + m[0] + m[2] + m[3], torch.arange(labels, device=cost.device).float() * 0.7
        up = (total - line).cummin(2).values + line
        down = (total + line).flip(2).cummin(2).values.flip(2) - line
        best = torch.minimum(torch.minimum(up, down), total.amin(2, keepdim=True) + 3.0)
        best -= best.mean(2, keepdim=True)
        return F.pad(best[:, :-1], (0, 0, 1, 0))

    return against(launched, reference)


@triton.jit
def community_counts(indptr_ptr, nbr_ptr, comm_ptr, inside_ptr, degree_ptr, own_ptr, N, BLOCK: tl.constexpr):
    # For modularity: edges of each community that stay within it and all of them, one program a node.
    node = tl.program_id(0)
    start = tl.load(indptr_ptr + node)
    end = tl.load(indptr_ptr + node + 1)
    mine = tl.load(comm_ptr + node)
    same = 0
    for k in range(start, end, BLOCK):
        offs = k + tl.arange(0, BLOCK)
        mask = offs < end
        nbr = tl.load(nbr_ptr + offs, mask=mask, other=0)
        theirs = tl.load(comm_ptr + nbr, mask=mask, other=-1)
        same += tl.sum((theirs == mine).to(tl.int32), axis=0)
    tl.store(own_ptr + node, same)
    tl.atomic_add(inside_ptr + mine, same)
    tl.atomic_add(degree_ptr + mine, end - start)


@case
def clockwork_wheels_that_keep_together(n=30000, most=60, communities=300):
    degree = ints(0, most, n)
    indptr = torch.cat((zeros(1, dtype="int32"), degree.cumsum(0).int()))
    total = int(degree.sum())
    nbr, comm = ints(0, n, total), ints(0, communities, n)
    inside, all_of, own = zeros(communities, dtype="int32"), zeros(communities, dtype="int32"), zeros(n, dtype="int32")
    launched = run(community_counts, (n,), (indptr, nbr, comm, inside, all_of, own, n), (inside, all_of, own), BLOCK=32, num_warps=1)

    def reference():
        owner = torch.repeat_interleave(torch.arange(n, device=nbr.device), degree.long())
        same = (comm[owner] == comm[nbr.long()]).int()
        mine = torch.zeros_like(own).index_add_(0, owner, same)
        at = comm.long()
        return torch.zeros_like(inside).index_add_(0, at, mine), torch.zeros_like(all_of).index_add_(0, at, degree), mine

    return against(cleared(launched, inside, all_of), reference)


@triton.jit
def transducer_joint_kernel(
    enc_ptr, pred_ptr, w_ptr, bias_ptr, label_ptr, blank_ptr, emit_ptr, T, U, V,
    BLANK: tl.constexpr, HID: tl.constexpr, BT: tl.constexpr, BU: tl.constexpr, BV: tl.constexpr, BK: tl.constexpr,
):
    # The joint of a transducer for a tile of times and words without the logits: log chances of silence and of the next word.
    pid_t, pid_u, b = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    row = tl.arange(0, BT * BU)
    t = pid_t * BT + row // BU
    u = pid_u * BU + row % BU
    ok = (t < T) & (u < U)
    top = tl.full((BT * BU,), float("-inf"), dtype=tl.float32)
    total = tl.zeros((BT * BU,), dtype=tl.float32)
    blank = tl.zeros((BT * BU,), dtype=tl.float32)
    emit = tl.zeros((BT * BU,), dtype=tl.float32)
    label = tl.load(label_ptr + b * (U - 1) + u, mask=ok & (u < U - 1), other=-1)
    for v0 in range(0, V, BV):
        v = v0 + tl.arange(0, BV)
        acc = tl.zeros((BT * BU, BV), dtype=tl.float32)
        for k0 in range(0, HID, BK):
            k = k0 + tl.arange(0, BK)
            e = tl.load(enc_ptr + (b * T + t)[:, None] * HID + k[None, :], mask=ok[:, None], other=0.0).to(tl.float32)
            p = tl.load(pred_ptr + (b * U + u)[:, None] * HID + k[None, :], mask=ok[:, None], other=0.0).to(tl.float32)
            both = 2.0 * tl.sigmoid(2.0 * (e + p)) - 1.0
            w = tl.load(w_ptr + v[None, :] * HID + k[:, None], mask=(v < V)[None, :], other=0.0)
            acc = tl.dot(both.to(tl.float16), w, acc)
        acc += tl.load(bias_ptr + v, mask=v < V, other=0.0)[None, :]
        acc = tl.where((v < V)[None, :], acc, float("-inf"))
        new = tl.maximum(top, tl.max(acc, axis=1))
        total = total * tl.exp(top - new) + tl.sum(tl.exp(acc - new[:, None]), axis=1)
        top = new
        blank += tl.sum(tl.where((v == BLANK)[None, :], acc, 0.0), axis=1)
        emit += tl.sum(tl.where(v[None, :] == label[:, None], acc, 0.0), axis=1)
    norm = top + tl.log(total)
    tl.store(blank_ptr + (b * T + t) * U + u, blank - norm, mask=ok)
    tl.store(emit_ptr + (b * T + t) * (U - 1) + u, emit - norm, mask=ok & (u < U - 1))


@case
def clockwork_that_speaks_by_transducers(b=4, t=150, u=31, v=1000, hid=256):
    enc, pred, w, bias = rand(b, t, hid), rand(b, u, hid), rand(v, hid) / 8, f32(v)
    label, blank, emit = ints(1, v, b, u - 1), zeros(b, t, u, dtype="float32"), zeros(b, t, u - 1, dtype="float32")
    args = enc, pred, w, bias, label, blank, emit, t, u, v
    flags = dict(BLANK=0, HID=hid, BT=8, BU=8, BV=128, BK=64)
    launched = run(transducer_joint_kernel, (cdiv(t, 8), cdiv(u, 8), b), args, (blank, emit), num_warps=4, num_stages=2, **flags)

    def reference():
        h = torch.tanh(enc.float()[:, :, None] + pred.float()[:, None]).half().float()
        logp = (h @ w.float().t() + bias).log_softmax(3)
        index = label.long()[:, None, :, None].expand(b, t, u - 1, 1)
        return logp[..., 0], logp[:, :, :-1].gather(3, index)[..., 0]

    return against(launched, reference)


@triton.jit
def relative_shift_attention(
    q_ptr, k_ptr, v_ptr, r_ptr, bu_ptr, bv_ptr, o_ptr, T, H, sm_scale, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
):
    # Attention with terms of distance: scores with a band of distances are made by a dot and shifted into place by a gather.
    start_m, bh = tl.program_id(0) * BM, tl.program_id(1)
    head = bh % H
    base = bh.to(tl.int64) * T * D
    il, jl, d = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, D)
    m = start_m + il
    q = tl.load(q_ptr + base + m[:, None] * D + d[None, :], mask=(m < T)[:, None], other=0.0)
    qu = q + tl.load(bu_ptr + head * D + d)[None, :]
    qv = q + tl.load(bv_ptr + head * D + d)[None, :]
    shift = il[:, None] - jl[None, :] + (BN - 1)
    band = tl.arange(0, BM + BN)
    top = tl.full((BM,), -1e30, dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    acc = tl.zeros((BM, D), dtype=tl.float32)
    for start_n in range(0, tl.minimum(start_m + BM, T), BN):
        n = start_n + jl
        k = tl.load(k_ptr + base + n[None, :] * D + d[:, None], mask=(n < T)[None, :], other=0.0)
        away = start_m - start_n - (BN - 1) + band
        near = (away >= 0) & (away < T)
        r = tl.load(r_ptr + (head * T + away)[None, :] * D + d[:, None], mask=near[None, :], other=0.0)
        s = (tl.dot(qu, k) + tl.gather(tl.dot(qv, r), shift, 1)) * sm_scale
        s = tl.where(m[:, None] >= n[None, :], s, -1e30)
        new = tl.maximum(top, tl.max(s, axis=1))
        p = tl.exp(s - new[:, None])
        keep = tl.exp(top - new)
        total = total * keep + tl.sum(p, axis=1)
        v = tl.load(v_ptr + base + n[:, None] * D + d[None, :], mask=(n < T)[:, None], other=0.0)
        acc = acc * keep[:, None] + tl.dot(p.to(v.dtype), v)
        top = new
    tl.store(o_ptr + base + m[:, None] * D + d[None, :], (acc / total[:, None]).to(o_ptr.dtype.element_ty), mask=(m < T)[:, None])


@case
def clockwork_scores_shifted_by_distance(b=2, h=8, t=1000, d=64):
    q, k, v, r = rand(b, h, t, d), rand(b, h, t, d), rand(b, h, t, d), rand(h, t, d)
    bu, bv, o = rand(h, d), rand(h, d), zeros(b, h, t, d)
    args = q, k, v, r, bu, bv, o, t, h, d**-0.5
    launched = run(relative_shift_attention, (cdiv(t, 64), b * h), args, o, D=d, BM=64, BN=64, num_warps=8, num_stages=2)

    def reference():
        one, two = (q + bu[:, None]).float(), (q + bv[:, None]).float()
        away = torch.arange(t, device=q.device)[:, None] - torch.arange(t, device=q.device)
        far_scores = (two @ r.float().transpose(1, 2)).gather(3, away.clamp(min=0).expand(b, h, t, t))
        s = (one @ k.float().transpose(2, 3) + far_scores) * d**-0.5
        return torch.where(away >= 0, s, float("-inf")).softmax(3) @ v.float()

    return against(launched, reference)


@triton.jit
def _then(a1, b1, a2, b2):
    return a1 * a2, b1 * a2 + b2


@triton.jit
def rg_lru_scan(x_ptr, i_ptr, r_ptr, lam_ptr, seg_ptr, y_ptr, last_ptr, T, D, BT: tl.constexpr, BD: tl.constexpr):
    # A gated linear unit with real decays, blocks of time scanned at once; where a document starts, nothing is kept.
    d = tl.program_id(0) * BD + tl.arange(0, BD)
    b = tl.program_id(1).to(tl.int64)
    lam = tl.load(lam_ptr + d, mask=d < D, other=0.0)
    rate = -8.0 * tl.log(1.0 + tl.exp(lam))
    state = tl.zeros((BD,), dtype=tl.float32)
    steps = tl.arange(0, BT)
    for t0 in range(0, T, BT):
        t = t0 + steps
        mask = (t < T)[:, None] & (d < D)[None, :]
        at = (b * T + t[:, None]) * D + d[None, :]
        starts = tl.load(seg_ptr + b * T + t, mask=t < T, other=0) != 0
        x = tl.load(x_ptr + at, mask=mask, other=0.0).to(tl.float32)
        gate = tl.sigmoid(tl.load(i_ptr + at, mask=mask, other=0.0).to(tl.float32))
        log_a = rate[None, :] * tl.sigmoid(tl.load(r_ptr + at, mask=mask, other=0.0).to(tl.float32))
        a = tl.exp(log_a)
        scale = tl.sqrt(tl.maximum(1.0 - a * a, 0.0))
        a = tl.where(starts[:, None], 0.0, a)
        scale = tl.where(starts[:, None], 1.0, scale)
        a = tl.where(mask, a, 1.0)
        kept, y = tl.associative_scan((a, scale * gate * x), 0, _then)
        y += kept * state[None, :]
        tl.store(y_ptr + at, y.to(y_ptr.dtype.element_ty), mask=mask)
        state = tl.sum(tl.where((steps == BT - 1)[:, None], y, 0.0), axis=0)
    tl.store(last_ptr + b * D + d, state, mask=d < D)


@case
def clockwork_that_forgets_at_new_documents(b=4, t=1201, d=1056):
    x, i, r = (rand(b, t, d, dtype="bfloat16") for _ in range(3))
    lam, seg = f32(d) - 2, (uniform(b, t) < 0.005).to(torch.uint8)
    y, last = zeros(b, t, d, dtype="bfloat16"), zeros(b, d, dtype="float32")
    args = x, i, r, lam, seg, y, last, t, d
    launched = run(rg_lru_scan, (cdiv(d, 32), b), args, (y, last), BT=64, BD=32, num_warps=4)

    def reference():
        a = torch.exp(-8 * F.softplus(lam) * torch.sigmoid(r.float()))
        scale, new = (1 - a * a).clamp(min=0).sqrt(), (seg != 0)[..., None]
        a, scale = torch.where(new, 0.0, a), torch.where(new, 1.0, scale)
        step, state, out = scale * torch.sigmoid(i.float()) * x.float(), torch.zeros(b, d, device=x.device), []
        for n in range(t):
            state = a[:, n] * state + step[:, n]
            out.append(state)
        return torch.stack(out, 1), state

    return against(launched, reference)


@triton.jit
def gdn_gating_cumsum_kernel(A_log, a, b, dt_bias, g, beta, num_tokens, HEADS: tl.constexpr, BT: tl.constexpr, BH: tl.constexpr, THRESHOLD: tl.constexpr):
    # Gates of gated delta networks from their projections: log decays summed within chunks, from either end, and the strengths of writing.
    i_t, i_h = tl.program_id(0), tl.program_id(1)
    t = i_t * BT + tl.arange(0, BT)
    h = i_h * BH + tl.arange(0, BH)
    mask = (t < num_tokens)[:, None] & (h < HEADS)[None, :]
    off = t[:, None] * HEADS + h[None, :]
    blk_a = tl.load(a + off, mask=mask, other=0.0).to(tl.float32)
    blk_b = tl.load(b + off, mask=mask, other=0.0).to(tl.float32)
    bias = tl.load(dt_bias + h, mask=h < HEADS, other=0.0).to(tl.float32)
    x = blk_a + bias[None, :]
    softplus_x = tl.where(x <= THRESHOLD, tl.log(1 + tl.exp(x)), x)
    blk_g = -tl.exp(tl.load(A_log + h, mask=h < HEADS, other=0.0).to(tl.float32))[None, :] * softplus_x
    blk_g = tl.where(mask, blk_g, 0.0)
    total = tl.sum(blk_g, axis=0)
    b_s = tl.cumsum(blk_g, axis=0)
    tl.store(g + off * 2, b_s, mask=mask)
    tl.store(g + off * 2 + 1, total[None, :] - b_s, mask=mask)
    tl.store(beta + off, tl.sigmoid(blk_b).to(beta.dtype.element_ty), mask=mask)


@case
def clockwork_gates_summed_by_chunks(tokens=50001, heads=48):
    alog, a, b, bias = f32(heads) / 2, rand(tokens, heads, dtype="bfloat16"), rand(tokens, heads, dtype="bfloat16"), rand(heads, dtype="bfloat16")
    g, beta = zeros(tokens, heads, 2, dtype="float32"), zeros(tokens, heads, dtype="bfloat16")
    flags = dict(HEADS=heads, BT=64, BH=16, THRESHOLD=20.0)
    launched = run(gdn_gating_cumsum_kernel, (cdiv(tokens, 64), heads // 16), (alog, a, b, bias, g, beta, tokens), (g, beta), num_warps=2, **flags)

    def reference():
        step = -alog.exp() * F.softplus(a.float() + bias.float())
        chunks = F.pad(step, (0, 0, 0, -tokens % 64)).reshape(-1, 64, heads)
        sums = chunks.cumsum(1)
        both = torch.stack((sums, chunks.sum(1, keepdim=True) - sums), 3)
        return both.reshape(-1, heads, 2)[:tokens], torch.sigmoid(b.float())

    return against(launched, reference)


@triton.jit
def dora_norm_kernel(w_ptr, a_ptr, b_ptr, m_ptr, norm_ptr, gain_ptr, N, K, scaling, eps, R: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Norms of rows of a weight with its low-rank change, without that sum in memory, and what the learned magnitudes make of them.
    n = tl.program_id(0) * BN + tl.arange(0, BN)
    r = tl.arange(0, R)
    low = tl.load(b_ptr + n[:, None] * R + r[None, :], mask=(n < N)[:, None], other=0.0)
    squares = tl.zeros((BN,), dtype=tl.float32)
    for k0 in range(0, K, BK):
        k = k0 + tl.arange(0, BK)
        a = tl.load(a_ptr + r[:, None] * K + k[None, :], mask=(k < K)[None, :], other=0.0)
        w = tl.load(w_ptr + n[:, None] * K + k[None, :], mask=(n < N)[:, None] & (k < K)[None, :], other=0.0).to(tl.float32)
        w += tl.dot(low, a) * scaling
        squares += tl.sum(w * w, axis=1)
    norm = tl.sqrt(squares)
    tl.store(norm_ptr + n, norm, mask=n < N)
    tl.store(gain_ptr + n, tl.load(m_ptr + n, mask=n < N, other=0.0) / (norm + eps), mask=n < N)


@case
def clockwork_magnitudes_of_adapted_rows(n=5000, k=4100, r=16):
    w, a, b = rand(n, k, dtype="bfloat16"), rand(r, k, dtype="bfloat16"), rand(n, r, dtype="bfloat16") / 4
    magnitude, norm, gain = uniform(n) * 60 + 1, zeros(n, dtype="float32"), zeros(n, dtype="float32")
    args = w, a, b, magnitude, norm, gain, n, k, 0.5, 1e-6
    launched = run(dora_norm_kernel, (cdiv(n, 32),), args, (norm, gain), R=r, BN=32, BK=128, num_warps=4, num_stages=3)

    def reference():
        size = (w.float() + 0.5 * (b.float() @ a.float())).norm(dim=1)
        return size, magnitude / (size + 1e-6)

    return against(launched, reference)


@triton.jit
def move_to_front_kernel(sym_ptr, out_ptr, L, SYMBOLS: tl.constexpr):
    # Each byte becomes how many others were seen since it was last; one program per block, one byte after another.
    row = tl.program_id(0)
    s = tl.arange(0, SYMBOLS)
    rank = s
    for i in range(L):
        c = tl.load(sym_ptr + row * L + i).to(tl.int32)
        r = tl.sum(tl.where(s == c, rank, 0), axis=0)
        tl.store(out_ptr + row * L + i, r.to(tl.uint8))
        rank = tl.where(s == c, 0, tl.where(rank < r, rank + 1, rank))


@case
def clockwork_bytes_moved_to_the_front(rows=4000, length=300):
    sym, out = (uniform(rows, length).square() * 256).clamp(max=255).to(torch.uint8), zeros(rows, length, dtype="uint8")
    launched = run(move_to_front_kernel, (rows,), (sym, out, length), out, SYMBOLS=256, num_warps=1)

    def reference():
        rank = torch.arange(256, device=sym.device).repeat(rows, 1)
        result = torch.empty_like(out)
        for i in range(length):
            c = sym[:, i : i + 1].long()
            r = rank.gather(1, c)
            result[:, i] = r[:, 0].to(torch.uint8)
            rank = torch.where(rank < r, rank + 1, rank).scatter(1, c, 0)
        return result

    return against(launched, reference)


@triton.jit
def _either(a, b):
    return a | b


@triton.jit
def sudoku_propagate_kernel(mask_ptr, out_ptr, turns_ptr, MAX_TURNS: tl.constexpr):
    # What is left for each square of a puzzle when solved squares strike their digit from row, column and box, until nothing changes.
    board = tl.program_id(0)
    r = tl.arange(0, 16)[:, None]
    c = tl.arange(0, 16)[None, :]
    valid = (r < 9) & (c < 9)
    at = board * 81 + r * 9 + c
    m = tl.load(mask_ptr + at, mask=valid, other=0)
    box = r // 3 * 3 + c // 3
    changed = 1
    turns = 0
    while (changed > 0) and (turns < MAX_TURNS):
        solved = (m != 0) & ((m & (m - 1)) == 0)
        digit = tl.where(solved, m, 0)
        in_row = tl.reduce(digit, 1, _either)
        in_col = tl.reduce(digit, 0, _either)
        strike = in_row[:, None] | in_col[None, :]
        for b in tl.static_range(9):
            here = valid & (box == b)
            used = tl.reduce(tl.reduce(tl.where(here, digit, 0), 1, _either), 0, _either)
            strike = tl.where(here, strike | used, strike)
        new = tl.where(solved, m, m & (511 - (strike & 511)))
        changed = tl.sum(tl.sum((new != m).to(tl.int32), axis=1), axis=0)
        m = new
        turns += 1
    tl.store(out_ptr + at, m, mask=valid)
    tl.store(turns_ptr + board, turns)


@case
def clockwork_squares_of_nine_digits(boards=20000):
    r, c = torch.meshgrid(arange(9, dtype="int64"), arange(9, dtype="int64"), indexing="ij")
    digits = torch.rand(boards, 9, device="cuda").argsort(1)[:, ((r % 3 * 3 + r // 3 + c) % 9).flatten()]
    given = torch.where(uniform(boards, 81) < uniform(boards, 1) * 0.5 + 0.3, 1 << digits, 511).int()
    out, turns = zeros(boards, 81, dtype="int32"), zeros(boards, dtype="int32")
    launched = run(sudoku_propagate_kernel, (boards,), (given, out, turns), (out, turns), MAX_TURNS=30, num_warps=1)

    def reference():
        kind = torch.stack((r.flatten(), c.flatten(), (r // 3 * 3 + c // 3).flatten()))
        peers = (kind[:, :, None] == kind[:, None]).any(0).float()
        m, count = given.clone(), torch.zeros_like(turns)
        going = torch.ones(boards, device=m.device, dtype=torch.bool)
        for _ in range(30):
            solved = (m != 0) & ((m & (m - 1)) == 0)
            strike = torch.zeros_like(m)
            for bit in range(9):
                strike |= ((torch.where(solved, m >> bit & 1, 0).float() @ peers) > 0).int() << bit
            new = torch.where(solved, m, m & ~strike)
            count += going.int()
            going &= (new != m).any(1)
            m = new
        return m, count

    return against(launched, reference)


@triton.jit
def clause_scores_kernel(assign_ptr, clause_ptr, make_ptr, break_ptr, unsat_ptr, C, V, BLOCK: tl.constexpr):
    # For local search: how many clauses a flip of each variable would make true or break, for many assignments.
    s = tl.program_id(1)
    c = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = c < C
    l0 = tl.load(clause_ptr + c * 3, mask=mask, other=1)
    l1 = tl.load(clause_ptr + c * 3 + 1, mask=mask, other=1)
    l2 = tl.load(clause_ptr + c * 3 + 2, mask=mask, other=1)
    v0, v1, v2 = tl.abs(l0) - 1, tl.abs(l1) - 1, tl.abs(l2) - 1
    t0 = (tl.load(assign_ptr + s * V + v0, mask=mask, other=0) != 0) == (l0 > 0)
    t1 = (tl.load(assign_ptr + s * V + v1, mask=mask, other=0) != 0) == (l1 > 0)
    t2 = (tl.load(assign_ptr + s * V + v2, mask=mask, other=0) != 0) == (l2 > 0)
    true = t0.to(tl.int32) + t1.to(tl.int32) + t2.to(tl.int32)
    none = mask & (true == 0)
    one = mask & (true == 1)
    critical = tl.where(t0, v0, tl.where(t1, v1, v2))
    tl.atomic_add(break_ptr + s * V + critical, 1, mask=one)
    tl.atomic_add(make_ptr + s * V + v0, 1, mask=none)
    tl.atomic_add(make_ptr + s * V + v1, 1, mask=none)
    tl.atomic_add(make_ptr + s * V + v2, 1, mask=none)
    tl.atomic_add(unsat_ptr + s, tl.sum(none.to(tl.int32), axis=0))


@case
def clockwork_clauses_made_and_broken(samples=200, v=2000, c=8400):
    assign, sign = ints(0, 2, samples, v, dtype="int8"), ints(0, 2, c, 3) * 2 - 1
    clause = (ints(1, v + 1, c, 3) * sign).int()
    make, brk, unsat = zeros(samples, v, dtype="int32"), zeros(samples, v, dtype="int32"), zeros(samples, dtype="int32")
    args = assign, clause, make, brk, unsat, c, v
    launched = run(clause_scores_kernel, (cdiv(c, 256), samples), args, (make, brk, unsat), BLOCK=256, num_warps=4)

    def reference():
        var = clause.abs().long() - 1
        true = (assign[:, var] != 0) == (clause > 0)
        n = true.sum(2)
        made = torch.zeros_like(make).scatter_add_(1, var.reshape(1, -1).expand(samples, -1), (n == 0).int().repeat_interleave(3, 1))
        only = (true & (n == 1)[..., None]).int().reshape(samples, -1)
        broken = torch.zeros_like(brk).scatter_add_(1, var.reshape(1, -1).expand(samples, -1), only)
        return made, broken, (n == 0).sum(1).int()

    return against(cleared(launched, make, brk, unsat), reference)


@triton.jit
def sliding_tile_attention(
    q_desc, k_desc, v_desc, o_desc, tokens, sm_scale, TT: tl.constexpr, TH: tl.constexpr, TW: tl.constexpr,
    WT: tl.constexpr, WH: tl.constexpr, WW: tl.constexpr, TILE: tl.constexpr, D: tl.constexpr,
):
    # Attention of video whose tokens lie in tiles of a volume: each tile sees the tiles of a window, pushed inward at borders.
    tile, head = tl.program_id(0), tl.program_id(1)
    base = head * tokens
    t, y, x = tile // (TH * TW), tile // TW % TH, tile % TW
    t0 = tl.minimum(tl.maximum(t - WT // 2, 0), TT - WT)
    y0 = tl.minimum(tl.maximum(y - WH // 2, 0), TH - WH)
    x0 = tl.minimum(tl.maximum(x - WW // 2, 0), TW - WW)
    q = q_desc.load([base + tile * TILE, 0])
    scale = sm_scale * 1.4426950408889634
    m_i = tl.full((TILE,), float("-inf"), dtype=tl.float32)
    l_i = tl.zeros((TILE,), dtype=tl.float32)
    acc = tl.zeros((TILE, D), dtype=tl.float32)
    for i in tl.range(0, WT * WH * WW):
        kt, ky, kx = t0 + i // (WH * WW), y0 + i // WW % WH, x0 + i % WW
        row = base + ((kt * TH + ky) * TW + kx) * TILE
        k = k_desc.load([row, 0])
        s = tl.dot(q, k.T) * scale
        m_new = tl.maximum(m_i, tl.max(s, 1))
        p = tl.math.exp2(s - m_new[:, None])
        alpha = tl.math.exp2(m_i - m_new)
        l_i = l_i * alpha + tl.sum(p, 1)
        acc = tl.dot(p.to(tl.bfloat16), v_desc.load([row, 0]), acc * alpha[:, None])
        m_i = m_new
    o_desc.store([base + tile * TILE, 0], (acc / l_i[:, None]).to(tl.bfloat16))


@case
def clockwork_filmed_in_sliding_tiles(heads=4, tt=4, th=6, tw=8, tile=64, d=128, window=(3, 3, 3)):
    tokens, (wt, wh, ww) = tt * th * tw * tile, window
    q, k, v, o = (rand(heads, tokens, d, dtype="bfloat16") for _ in range(4))
    boxes = [TensorDescriptor.from_tensor(z.view(-1, d), [tile, d]) for z in (q, k, v, o)]
    flags = dict(TT=tt, TH=th, TW=tw, WT=wt, WH=wh, WW=ww, TILE=tile, D=d)
    launched = run(sliding_tile_attention, (tt * th * tw, heads), (*boxes, tokens, d**-0.5), o, num_warps=4, num_stages=2, **flags)

    def reference():
        result = torch.empty(heads, tokens, d, device=q.device)
        for n in range(tt * th * tw):
            t, y, x = n // (th * tw), n // tw % th, n % tw
            t0, y0, x0 = min(max(t - wt // 2, 0), tt - wt), min(max(y - wh // 2, 0), th - wh), min(max(x - ww // 2, 0), tw - ww)
            ks, vs = (z.reshape(heads, tt, th, tw, tile, d)[:, t0 : t0 + wt, y0 : y0 + wh, x0 : x0 + ww].reshape(heads, -1, d).float() for z in (k, v))
            rows = slice(n * tile, n * tile + tile)
            result[:, rows] = (q[:, rows].float() @ ks.transpose(1, 2) * d**-0.5).softmax(2) @ vs
        return result

    return against(launched, reference)
