"""Harbors: what arrives in turn and is taken in: drafts, bytes, sequences and groups, by searches, scans and tiles."""

import torch
import torch.nn.functional as F
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

from .common import PROGRAMS, against, arange, case, cdiv, cleared, f32, ints, rand, run, uniform, viewed, zeros


@triton.jit
def candidates_within_mass(p_ptr, id_ptr, mass_ptr, token_ptr, kept_ptr, count_ptr, floor, C: tl.constexpr):
    # Candidates sorted by words of probability and place; kept while less than the wanted mass lies before them and they are not too small.
    row, i = tl.program_id(0), tl.arange(0, C)
    p = tl.load(p_ptr + row * C + i)
    word = (p.to(tl.int32, bitcast=True).to(tl.int64) << 32) | (C - 1 - i).to(tl.int64)
    word = tl.sort(word, descending=True)
    p = (word >> 32).to(tl.int32).to(tl.float32, bitcast=True)
    place = C - 1 - (word & 0xFFFFFFFF).to(tl.int32)
    before = tl.cumsum(p, 0) - p
    keep = (before < tl.load(mass_ptr + row)) & (p >= floor * tl.max(p, 0))
    kept = tl.where(keep, p, 0.0)
    tl.store(kept_ptr + row * C + i, kept / tl.sum(kept, 0))
    tl.store(token_ptr + row * C + i, tl.load(id_ptr + row * C + place))
    tl.store(count_ptr + row, tl.sum(keep.to(tl.int32), 0))


@case
def harbor_of_candidates_sorted_and_kept_within_a_mass(rows=2000):
    c = 1024
    p = (ints(0, 1 << 10, rows, c) + 1).float() / (1 << 20)
    ids, mass = ints(0, 128_000, rows, c), uniform(rows) / 4 + 0.1
    token, kept, count = zeros(rows, c, dtype="int32"), zeros(rows, c, dtype="float32"), zeros(rows, dtype="int32")
    launched = run(candidates_within_mass, (rows,), (p, ids, mass, token, kept, count, 0.25), (token, kept, count), C=c, num_warps=4)

    def reference():
        q, place = p.sort(dim=1, descending=True, stable=True)
        keep = (q.cumsum(1) - q < mass[:, None]) & (q >= 0.25 * q[:, :1])
        z = q * keep
        return ids.gather(1, place), z / z.sum(1, keepdim=True), keep.sum(1)

    return against(launched, reference)


@triton.jit
def drafts_taken_or_replaced(draft_ptr, p_ptr, q_ptr, u_ptr, noise_ptr, bonus_ptr, out_ptr, V, K, BLOCK: tl.constexpr):
    # Drafted tokens are taken while chance allows; the first that is not is drawn again from what the target has more.
    req = tl.program_id(0)
    place = 0
    going = 1
    while going == 1:
        token = tl.load(draft_ptr + req * K + place)
        at = (req * K + place).to(tl.int64) * V + token
        if tl.load(u_ptr + req * K + place) * tl.load(q_ptr + at) < tl.load(p_ptr + at):
            tl.store(out_ptr + req * (K + 1) + place, token)
            place += 1
            if place == K:
                going = 0
        else:
            going = 0
    if place == K:
        tl.store(out_ptr + req * (K + 1) + K, tl.load(bonus_ptr + req))
    else:
        base = (req * K + place).to(tl.int64) * V
        best = tl.full((BLOCK,), -1.0, tl.float32)
        which = tl.zeros((BLOCK,), tl.int32)
        for v0 in range(0, V, BLOCK):
            v = v0 + tl.arange(0, BLOCK)
            p = tl.load(p_ptr + base + v, mask=v < V, other=0.0)
            q = tl.load(q_ptr + base + v, mask=v < V, other=0.0)
            chance = tl.maximum(p - q, 0.0) * tl.load(noise_ptr + req * V + v, mask=v < V, other=0.0)
            which = tl.where(chance > best, v, which)
            best = tl.maximum(best, chance)
        top = tl.max(best, 0)
        tl.store(out_ptr + req * (K + 1) + place, tl.min(tl.where(best == top, which, 2147483647), 0))


@case
def harbor_of_drafts_taken_until_one_is_replaced(requests=96, k=5, v=32_001):
    draft, bonus = ints(0, v, requests, k), ints(0, v, requests)
    p, q = (2 * f32(requests, k, v)).softmax(2), f32(requests, k, v).softmax(2)
    u, noise = uniform(requests, k), 1.0 / (0.01 + uniform(requests, v))
    out = torch.full((requests, k + 1), -1, device="cuda", dtype=torch.int32)
    launched = run(drafts_taken_or_replaced, (requests,), (draft, p, q, u, noise, bonus, out, v, k), out, BLOCK=2048, num_warps=8)

    def reference():
        at = draft.long()[..., None]
        taken = (u * q.gather(2, at)[..., 0] < p.gather(2, at)[..., 0]).int().cumprod(1)
        count = taken.sum(1)
        again = ((p - q).clamp(min=0) * noise[:, None]).argmax(2)
        last = torch.cat([again, bonus[:, None]], 1).gather(1, count[:, None])
        place = arange(k + 1)[None, :]
        tokens = torch.where(place < count[:, None], F.pad(draft, (0, 1)), -1)
        return torch.where(place == count[:, None], last, tokens)

    return against(launched, reference)


@triton.jit
def three_tokens_in_table(text_ptr, key_ptr, value_ptr, out_ptr, N, MASK: tl.constexpr, B: tl.constexpr):
    # Three tokens in a row are looked up in a table of open addresses; lanes walk on until all have found, or met an empty place.
    i = tl.program_id(0) * B + tl.arange(0, B)
    live = i + 2 < N
    code = tl.full((B,), 2166136261, tl.uint32)
    key = tl.zeros((B,), tl.int64)
    for j in tl.static_range(3):
        token = tl.load(text_ptr + i + j, mask=live, other=0)
        code = (code ^ token.to(tl.uint32)) * 16777619
        key |= token.to(tl.int64) << (16 * j)
    slot = ((code >> 7) & MASK).to(tl.int32)
    found = tl.full((B,), -1, tl.int32)
    while tl.max(live.to(tl.int32), 0) > 0:
        seen = tl.load(key_ptr + slot, mask=live, other=-1)
        hit = live & (seen == key)
        found = tl.where(hit, tl.load(value_ptr + slot, mask=hit, other=-1), found)
        live = live & (seen != key) & (seen != -1)
        slot = (slot + 1) & MASK
    tl.store(out_ptr + i, found, mask=i < N)


@case
def harbor_of_three_tokens_looked_up_in_a_table(n=2_000_003, bits=18):
    size = 1 << bits
    text = ints(0, 5000, n, dtype="int16")
    wide = text.long()
    grams = wide[:-2] | (wide[1:-1] << 16) | (wide[2:] << 32)
    keys = grams[::17].unique()
    value = (keys % 1_000_003).to(torch.int32)
    code = torch.full_like(keys, 2166136261)
    for j in range(3):
        code = ((code ^ ((keys >> (16 * j)) & 0xFFFF)) * 16777619) & 0xFFFFFFFF
    slot = (code >> 7) & (size - 1)
    table, values = torch.full((size,), -1, device="cuda", dtype=torch.int64), zeros(size, dtype="int32")
    left = arange(len(keys)).long()
    while len(left):
        owner = torch.full((size,), -1, device="cuda", dtype=torch.int64)
        free = left[table[slot[left]] < 0]
        owner[slot[free]] = free
        mine = owner[owner >= 0]
        table[slot[mine]], values[slot[mine]] = keys[mine], value[mine]
        left = left[table[slot[left]] != keys[left]]
        slot[left] = (slot[left] + 1) & (size - 1)
    out = zeros(n, dtype="int32")
    launched = run(three_tokens_in_table, (cdiv(n, 512),), (text, table, values, out, n), out, MASK=size - 1, B=512, num_warps=4)

    def reference():
        at = torch.searchsorted(keys, grams).clamp(max=len(keys) - 1)
        return F.pad(torch.where(keys[at] == grams, value[at], -1), (0, 2), value=-1)

    return against(launched, reference)


@triton.jit
def bytes_with_four_scales_a_word(x_ptr, q_ptr, s_ptr, M, K, S_STRIDE, BM: tl.constexpr):
    # Groups of 128 become fp8 under powers of two; four of those are one word, and words of a column lie together.
    m, k = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * 512 + tl.arange(0, 512)
    ok = (m < M)[:, None]
    x = tl.load(x_ptr + m[:, None] * K + k[None, :], mask=ok, other=0.0).to(tl.float32)
    x = tl.reshape(x, (BM, 4, 128))
    top = tl.max(tl.abs(x), 2).to(tl.int32, bitcast=True)
    e = (top >> 23) - 8 + ((top & 0x7FFFFF) > 0x600000).to(tl.int32)
    e = tl.maximum(e, 1)
    y = x * ((254 - e) << 23).to(tl.float32, bitcast=True)[:, :, None]
    y = tl.reshape(y, (BM, 512))
    tl.store(q_ptr + m[:, None] * K + k[None, :], y.to(q_ptr.dtype.element_ty), mask=ok)
    word = tl.sum(e << (8 * tl.arange(0, 4))[None, :], 1)
    tl.store(s_ptr + tl.program_id(1) * S_STRIDE + m, word, mask=m < M)


@case
def harbor_of_fp8_with_four_power_scales_a_word(m=3001, k=7168):
    x, q = rand(m, k, dtype="bfloat16"), torch.zeros(m, k, device="cuda", dtype=torch.float8_e4m3fn)
    stride = cdiv(m, 4) * 4
    s = zeros(k // 512, stride, dtype="int32")
    launched = run(bytes_with_four_scales_a_word, (cdiv(m, 8), k // 512), (x, q, s, m, k, stride), (q, s), BM=8, num_warps=4)

    def view(outs):
        return outs[0].float(), outs[1].view(torch.uint8)[:, : 4 * m].float()

    def reference():
        y = x.float().reshape(m, -1, 128)
        fraction, exponent = torch.frexp(y.abs().amax(2))
        e = (exponent + 126 - 8 + (fraction > 0.875).int()).clamp(min=1)
        codes = torch.ldexp(y, 127 - e[..., None]).to(torch.float8_e4m3fn).float().reshape(m, k)
        return codes, e.reshape(m, k // 512, 4).transpose(0, 1).reshape(k // 512, 4 * m).float()

    return against(viewed(launched, view), reference)


@triton.jit
def backward_of_mean_squares(dy_ptr, x_ptr, w_ptr, r_ptr, dx_ptr, dw_ptr, M, D, BLOCK: tl.constexpr):
    # Each program takes rows in turn with the others, keeps what the weights get in registers, and leaves it as its part.
    pid, programs = tl.program_id(0), tl.num_programs(0)
    d = tl.arange(0, BLOCK)
    ok = d < D
    w = tl.load(w_ptr + d, mask=ok, other=0.0).to(tl.float32)
    dw = tl.zeros((BLOCK,), tl.float32)
    for row in range(pid, M, programs):
        x = tl.load(x_ptr + row * D + d, mask=ok, other=0.0).to(tl.float32)
        dy = tl.load(dy_ptr + row * D + d, mask=ok, other=0.0).to(tl.float32)
        r = tl.load(r_ptr + row)
        hat = x * r
        wdy = w * dy
        dx = r * (wdy - hat * (tl.sum(hat * wdy, 0) / D))
        dw += dy * hat
        tl.store(dx_ptr + row * D + d, dx.to(dx_ptr.dtype.element_ty), mask=ok)
    tl.store(dw_ptr + pid * D + d, dw, mask=ok)


@case
def harbor_of_mean_squares_backward_by_rows_in_turn(m=6000, d=2880, programs=2 * PROGRAMS):
    dy, x, w = rand(m, d, dtype="bfloat16"), rand(m, d, dtype="bfloat16"), rand(d, dtype="bfloat16")
    r = torch.rsqrt(x.float().square().mean(1) + 1e-6)
    dx, dw = zeros(m, d, dtype="bfloat16"), zeros(programs, d, dtype="float32")
    launched = run(backward_of_mean_squares, (programs,), (dy, x, w, r, dx, dw, m, d), (dx, dw), BLOCK=4096, num_warps=8)

    def reference():
        hat, g = x.float() * r[:, None], dy.float()
        wdy = g * w.float()
        return r[:, None] * (wdy - hat * (hat * wdy).mean(1, keepdim=True)), (g * hat).sum(0)

    return against(viewed(launched, lambda outs: (outs[0], outs[1].sum(0))), reference)


@triton.jit
def symmetric_then_mirrored(x_ptr, y_ptr, b, c, N, BT: tl.constexpr, BK: tl.constexpr):
    # b A + c A A of a symmetric A: only tiles on and below the diagonal are made, others are their mirrors.
    pid = tl.program_id(0)
    i = ((tl.sqrt(8.0 * pid.to(tl.float32) + 1.0) - 1.0) * 0.5).to(tl.int32)
    while (i + 1) * (i + 2) // 2 <= pid:
        i += 1
    while i * (i + 1) // 2 > pid:
        i -= 1
    j = pid - i * (i + 1) // 2
    m, n, k = i * BT + tl.arange(0, BT), j * BT + tl.arange(0, BT), tl.arange(0, BK)
    acc = tl.zeros((BT, BT), tl.float32)
    for k0 in range(0, N, BK):
        kk = k0 + k
        left = tl.load(x_ptr + m[:, None] * N + kk[None, :], mask=(m < N)[:, None] & (kk < N)[None, :], other=0.0)
        right = tl.load(x_ptr + n[:, None] * N + kk[None, :], mask=(n < N)[:, None] & (kk < N)[None, :], other=0.0)
        acc = tl.dot(left, tl.trans(right), acc)
    ok = (m < N)[:, None] & (n < N)[None, :]
    x = tl.load(x_ptr + m[:, None] * N + n[None, :], mask=ok, other=0.0).to(tl.float32)
    y = (b * x + c * acc).to(y_ptr.dtype.element_ty)
    tl.store(y_ptr + m[:, None] * N + n[None, :], y, mask=ok)
    if i != j:
        tl.store(y_ptr + n[:, None] * N + m[None, :], tl.trans(y), mask=(n < N)[:, None] & (m < N)[None, :])


@case
def harbor_of_symmetric_products_made_by_half(n=2504):
    x = rand(n, n // 2)
    x = (x.float() @ x.float().t() / n).to(torch.bfloat16)
    x = torch.where(arange(n)[:, None] >= arange(n)[None, :], x, x.t()).contiguous()
    y, tiles = zeros(n, n, dtype="bfloat16"), cdiv(n, 128)
    launched = run(symmetric_then_mirrored, (tiles * (tiles + 1) // 2,), (x, y, -4.775, 2.0315, n), y, BT=128, BK=64, num_warps=8, num_stages=3)
    return against(launched, lambda: -4.775 * x.float() + 2.0315 * (x.float() @ x.float()))


@triton.jit
def normed_heads_turned_in_pairs(x_ptr, w_ptr, place_ptr, y_ptr, eps, log_base, T, H, D: tl.constexpr, BT: tl.constexpr):
    # A head is normed, then neighbors turn together; angles are made on the spot, pairs are split and joined.
    t, h = tl.program_id(0) * BT + tl.arange(0, BT), tl.program_id(1)
    d, f = tl.arange(0, D), tl.arange(0, D // 2)
    ok = (t < T)[:, None]
    at = (t * H + h)[:, None] * D + d[None, :]
    x = tl.load(x_ptr + at, mask=ok, other=0.0).to(tl.float32)
    x = x * tl.rsqrt(tl.sum(x * x, 1) / D + eps)[:, None] * tl.load(w_ptr + d)[None, :]
    place = tl.load(place_ptr + t, mask=t < T, other=0).to(tl.float32)
    angle = place[:, None] * tl.exp(f.to(tl.float32) * (-2.0 / D) * log_base)[None, :]
    cos, sin = tl.cos(angle), tl.sin(angle)
    a, b = tl.split(tl.reshape(x, (BT, D // 2, 2)))
    y = tl.reshape(tl.join(a * cos - b * sin, a * sin + b * cos), (BT, D))
    tl.store(y_ptr + at, y.to(y_ptr.dtype.element_ty), mask=ok)


@case
def harbor_of_normed_heads_whose_neighbors_turn(t=3000, h=20):
    x, w, place, y = rand(t, h, 128, dtype="bfloat16"), f32(128), ints(0, 500, t), zeros(t, h, 128, dtype="bfloat16")
    log_base = 9.2103404
    launched = run(normed_heads_turned_in_pairs, (cdiv(t, 16), h), (x, w, place, y, 1e-6, log_base, t, h), y, D=128, BT=16, num_warps=4)

    def reference():
        z = x.float() * torch.rsqrt(x.float().square().mean(2, keepdim=True) + 1e-6) * w
        angle = place.float()[:, None] * torch.exp(arange(64).float() * (-2 / 128) * log_base)[None, :]
        c, s = angle.cos()[:, None], angle.sin()[:, None]
        a, b = z[..., ::2], z[..., 1::2]
        return torch.stack([a * c - b * s, a * s + b * c], 3).reshape(t, h, 128)

    return against(launched, reference)


@triton.jit
def latent_bytes_gathered(cache_ptr, table_ptr, start_ptr, out_ptr, T, SEQS, TABLE, P: tl.constexpr, BYTES: tl.constexpr, BT: tl.constexpr):
    # A token finds its sequence by bisection and its page by the table; 512 bytes under four scales and 64 plain values become one row.
    first = tl.program_id(0) * BT
    d, r = tl.arange(0, 512), tl.arange(0, 64)
    for t in range(first, tl.minimum(first + BT, T)):
        low, high = 0, SEQS
        while high - low > 1:
            mid = (low + high) // 2
            if tl.load(start_ptr + mid) <= t:
                low = mid
            else:
                high = mid
        place = t - tl.load(start_ptr + low)
        page = tl.load(table_ptr + low * TABLE + place // P).to(tl.int64)
        row = cache_ptr + (page * P + place % P) * BYTES
        code = tl.load(row + d).to(tl.float8e4nv, bitcast=True)
        scale = tl.load((row + 512).to(tl.pointer_type(tl.float32)) + d // 128)
        rope = tl.load((row + 528).to(tl.pointer_type(tl.bfloat16)) + r)
        tl.store(out_ptr + t * 576 + d, (code.to(tl.float32) * scale).to(tl.bfloat16))
        tl.store(out_ptr + t * 576 + 512 + r, rope)


@case
def harbor_of_latents_gathered_from_pages_of_bytes(lengths=(3001, 64, 1, 2500, 777, 4096, 1200, 65), p=64):
    pages = [cdiv(n, p) for n in lengths]
    slots = sum(pages) * p
    code = f32(slots, 512).to(torch.float8_e4m3fn).view(torch.uint8)
    scale, rope = uniform(slots, 4) + 0.1, rand(slots, 64, dtype="bfloat16")
    cache = torch.cat([code, scale.view(torch.uint8), rope.view(torch.uint8)], 1)
    order, width, rows, used = torch.randperm(sum(pages), device="cuda").tolist(), max(pages), [], 0
    for n in pages:
        rows.append(order[used : used + n] + [0] * (width - n))
        used += n
    table = torch.tensor(rows, device="cuda", dtype=torch.int32)
    starts = [sum(lengths[:i]) for i in range(len(lengths) + 1)]
    total, start = starts[-1], torch.tensor(starts, device="cuda", dtype=torch.int32)
    out = zeros(total, 576, dtype="bfloat16")
    args = cache, table, start, out, total, len(lengths), width
    launched = run(latent_bytes_gathered, (cdiv(total, 4),), args, out, P=p, BYTES=656, BT=4, num_warps=4)

    def reference():
        outs = []
        values = torch.cat([code.view(torch.float8_e4m3fn).float() * scale.repeat_interleave(128, 1), rope.float()], 1)
        for row, n in zip(rows, lengths):
            at = (torch.tensor(row, device=code.device)[:, None] * p + arange(p)[None, :]).reshape(-1)[:n]
            outs.append(values[at])
        return torch.cat(outs)

    return against(launched, reference)


@triton.jit
def later_after_earlier(a1, b1, a2, b2):
    return a1 * a2, b1 * a2 + b2


@triton.jit
def advantages_from_the_end(r_ptr, v_ptr, done_ptr, adv_ptr, ret_ptr, gamma, lam, T, N, BT: tl.constexpr, BN: tl.constexpr):
    # Advantages of many games by one scan from the end; what a game's end cuts off has a factor of zero.
    t, n = tl.arange(0, BT), tl.program_id(0) * BN + tl.arange(0, BN)
    ok = (t < T)[:, None] & (n < N)[None, :]
    at = t[:, None] * N + n[None, :]
    r = tl.load(r_ptr + at, mask=ok, other=0.0)
    v = tl.load(v_ptr + at, mask=ok, other=0.0)
    after = tl.load(v_ptr + at + N, mask=ok, other=0.0)
    live = 1.0 - tl.load(done_ptr + at, mask=ok, other=0).to(tl.float32)
    delta = r + gamma * after * live - v
    _, adv = tl.associative_scan((gamma * lam * live, tl.where(ok, delta, 0.0)), 0, later_after_earlier, reverse=True)
    tl.store(adv_ptr + at, adv, mask=ok)
    tl.store(ret_ptr + at, adv + v, mask=ok)


@case
def harbor_of_advantages_scanned_from_the_end(t=500, n=5000):
    r, v, done = f32(t, n), f32(t + 1, n), (uniform(t, n) < 0.02).to(torch.int8)
    adv, ret = zeros(t, n, dtype="float32"), zeros(t, n, dtype="float32")
    launched = run(advantages_from_the_end, (cdiv(n, 8),), (r, v, done, adv, ret, 0.99, 0.95, t, n), (adv, ret), BT=512, BN=8, num_warps=4)

    def reference():
        last, outs = torch.zeros(n, device=r.device), []
        for i in reversed(range(t)):
            live = 1.0 - done[i].float()
            last = r[i] + 0.99 * v[i + 1] * live - v[i] + 0.99 * 0.95 * live * last
            outs.append(last)
        a = torch.stack(outs[::-1])
        return a, a + v[:t]

    return against(launched, reference)


@triton.jit
def log_of_three(a, b, c):
    m = tl.maximum(tl.maximum(a, b), c)
    return m + tl.log(tl.exp(a - m) + tl.exp(b - m) + tl.exp(c - m))


@triton.jit
def alignments_summed_over(lp_ptr, label_ptr, time_ptr, len_ptr, loss_ptr, T, B, C, LMAX: tl.constexpr, S: tl.constexpr):
    # All alignments of labels with blanks between: each state takes from itself and from those one and two before, by gathers.
    b, s = tl.program_id(0), tl.arange(0, S)
    frames, length = tl.load(time_ptr + b), tl.load(len_ptr + b)
    odd = (s & 1) == 1
    label = tl.load(label_ptr + b * LMAX + s // 2, mask=odd & (s // 2 < length), other=0)
    one, two = tl.maximum(s - 1, 0), tl.maximum(s - 2, 0)
    skips = odd & (s > 2) & (label != tl.gather(label, two, 0))
    states = 2 * length + 1
    here = lp_ptr + b * C + label
    alpha = tl.where(s < 2, tl.load(here), -1e30)
    for t in range(1, frames):
        here += B * C
        a = tl.where(s > 0, tl.gather(alpha, one, 0), -1e30)
        c = tl.where(skips, tl.gather(alpha, two, 0), -1e30)
        alpha = tl.where(s < states, log_of_three(alpha, a, c) + tl.load(here), -1e30)
    last = tl.max(tl.where(s == states - 1, alpha, -1e30), 0)
    other = tl.max(tl.where(s == states - 2, alpha, -1e30), 0)
    tl.store(loss_ptr + b, -log_of_three(last, other, -1e30))


@case
def harbor_of_alignments_with_blanks_between(b=396, t=120, c=61, most=30):
    lp = f32(t, b, c).log_softmax(2)
    label, frames, length = ints(1, c, b, most), ints(t // 2 + 5, t + 1, b), ints(1, most // 2, b)
    label[::3, 1] = label[::3, 0]
    loss = zeros(b, dtype="float32")
    launched = run(alignments_summed_over, (b,), (lp, label, frames, length, loss, t, b, c), loss, LMAX=most, S=64, num_warps=2)

    def reference():
        return F.ctc_loss(lp.double(), label.long(), frames.long(), length.long(), blank=0, reduction="none").float()

    return against(launched, reference)


@triton.jit
def two_by_two_after(a1, b1, c1, d1, x1, y1, a2, b2, c2, d2, x2, y2):
    return a2 * a1 + b2 * c1, a2 * b1 + b2 * d1, c2 * a1 + d2 * c1, c2 * b1 + d2 * d1, a2 * x1 + b2 * y1 + x2, c2 * x1 + d2 * y1 + y2


@triton.jit
def resonators_that_sweep(x_ptr, f_ptr, r_ptr, y_ptr, gain, C, T, BT: tl.constexpr):
    # A resonator whose pitch moves, as a scan of two by two matrices with something added; the state goes on from block to block.
    c, i = tl.program_id(0), tl.arange(0, BT)
    r = tl.load(r_ptr + c)
    before, earlier = 0.0, 0.0
    for t0 in range(0, T, BT):
        ok = t0 + i < T
        x = tl.load(x_ptr + c * T + t0 + i, mask=ok, other=0.0)
        turn = 2.0 * r * tl.cos(tl.load(f_ptr + c * T + t0 + i, mask=ok, other=0.0))
        zero = tl.zeros((BT,), tl.float32)
        m = tl.associative_scan((turn, zero - r * r, zero + 1.0, zero, x, zero), 0, two_by_two_after)
        now = m[0] * before + m[1] * earlier + m[4]
        past = m[2] * before + m[3] * earlier + m[5]
        tl.store(y_ptr + c * T + t0 + i, gain * (now - past), mask=ok)
        before = tl.sum(tl.where(i == BT - 1, now, 0.0), 0)
        earlier = tl.sum(tl.where(i == BT - 1, past, 0.0), 0)


@case
def harbor_of_resonators_whose_pitch_moves(c=1500, t=2000):
    x, r = f32(c, t), 0.5 + 0.45 * uniform(c)
    f = 0.5 + uniform(c)[:, None] + 0.3 * torch.sin(arange(t).float() / 300)[None, :]
    y = zeros(c, t, dtype="float32")
    launched = run(resonators_that_sweep, (c,), (x, f, r, y, 0.25, c, t), y, BT=256, num_warps=4)

    def reference():
        w, past, outs = torch.zeros(c, device=x.device), torch.zeros(c, device=x.device), []
        for i in range(t):
            w, past = 2 * r * f[:, i].cos() * w - r * r * past + x[:, i], w
            outs.append(0.25 * (w - past))
        return torch.stack(outs, 1)

    return against(launched, reference)


@triton.jit
def next_of_word(x):
    x ^= x << 13
    x ^= x >> 17
    return x ^ (x << 5)


@triton.jit
def darts_in_a_quarter(count_ptr, state_ptr, seed, STEPS, B: tl.constexpr):
    # Lanes throw darts by words that shift and mix; those in a quarter of a circle are counted in whole numbers.
    pid, i = tl.program_id(0), tl.arange(0, B)
    x = ((pid * B + i).to(tl.uint32) * 2654435761 + seed.to(tl.uint32)) | 1
    hits = tl.zeros((B,), tl.int32)
    for _ in range(STEPS):
        x = next_of_word(x)
        across = (x >> 16).to(tl.uint64)
        x = next_of_word(x)
        up = (x >> 16).to(tl.uint64)
        hits += (across * across + up * up < 4294967296).to(tl.int32)
    tl.atomic_add(count_ptr + pid % 64, tl.sum(hits, 0))
    tl.store(state_ptr + pid * B + i, x.to(tl.int32, bitcast=True))


@case
def harbor_of_darts_thrown_by_shifted_words(programs=6 * PROGRAMS, steps=100):
    b, seed = 1024, 77_777
    count, state = zeros(64, dtype="int32"), zeros(programs, b, dtype="int32")
    launched = run(darts_in_a_quarter, (programs,), (count, state, seed, steps), (count, state), B=b, num_warps=4)

    def reference():
        mask = 0xFFFFFFFF
        lane = arange(programs * b, dtype="int64")
        x = (((lane & 0xFFFF) * 2654435761 + ((((lane >> 16) * 2654435761) & 0xFFFF) << 16) + seed) & mask) | 1
        hits = torch.zeros_like(x)

        def step(x):
            x = x ^ ((x << 13) & mask)
            x = x ^ (x >> 17)
            return x ^ ((x << 5) & mask)

        for _ in range(steps):
            x = step(x)
            across, x = x >> 16, step(x)
            hits += (across * across + (x >> 16) ** 2 < 2**32).long()
        total = hits.reshape(programs, b).sum(1)
        part = torch.zeros(64, device=x.device, dtype=torch.int64).index_add_(0, arange(programs, dtype="int64") % 64, total)
        return part, torch.where(x >= 2**31, x - 2**32, x).reshape(programs, b)

    return against(cleared(launched, count), reference)


@triton.jit
def neighbors_by_degrees(x_ptr, start_ptr, col_ptr, bias_ptr, y_ptr, C, BE: tl.constexpr, BC: tl.constexpr):
    # A node adds its neighbors, each over the root of both degrees; a few edges are read at once. Itself is one of them.
    node = tl.program_id(0)
    e, c = tl.arange(0, BE), tl.arange(0, BC)
    begin, end = tl.load(start_ptr + node), tl.load(start_ptr + node + 1)
    mine = tl.rsqrt((end - begin + 1).to(tl.float32))
    acc = tl.load(x_ptr + node * C + c, mask=c < C, other=0.0).to(tl.float32) * mine
    for e0 in range(begin, end, BE):
        ok = e0 + e < end
        col = tl.load(col_ptr + e0 + e, mask=ok, other=0)
        degree = tl.load(start_ptr + col + 1, mask=ok, other=0) - tl.load(start_ptr + col, mask=ok, other=0)
        x = tl.load(x_ptr + col[:, None] * C + c[None, :], mask=ok[:, None] & (c < C)[None, :], other=0.0).to(tl.float32)
        acc += tl.sum(x * tl.rsqrt((degree + 1).to(tl.float32))[:, None], 0)
    y = tl.maximum(acc * mine + tl.load(bias_ptr + c, mask=c < C, other=0.0), 0.0)
    tl.store(y_ptr + node * C + c, y.to(y_ptr.dtype.element_ty), mask=c < C)


@case
def harbor_of_neighbors_over_roots_of_degrees(nodes=12_000, c=100):
    degree = (uniform(nodes).square() * 60).int()
    start = torch.cat([zeros(1, dtype="int32"), degree.cumsum(0).int()])
    edges = int(start[-1])
    col, x, bias, y = ints(0, nodes, edges), rand(nodes, c), f32(c), zeros(nodes, c)
    launched = run(neighbors_by_degrees, (nodes,), (x, start, col, bias, y, c), y, BE=8, BC=128, num_warps=2)

    def reference():
        norm = torch.rsqrt(degree.float() + 1)
        row = torch.repeat_interleave(arange(nodes).long(), degree.long())
        z = x.float() * norm[:, None]
        z = z.index_add(0, row, z[col.long()])
        return torch.relu(z * norm[:, None] + bias)

    return against(launched, reference)


@triton.jit
def groups_through_descriptors(a_desc, b_desc, y_ptr, start_ptr, tile_ptr, total, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Programs stay and take tiles of groups of rows in turn; a group is found by walking on, its last tile reads rows of the next.
    tiles_n = N // BN
    group = 0
    for tile in range(tl.program_id(0), total, tl.num_programs(0)):
        tile_m, tile_n = tile // tiles_n, tile % tiles_n
        while tl.load(tile_ptr + group + 1) <= tile_m:
            group += 1
        m0 = tl.load(start_ptr + group) + (tile_m - tl.load(tile_ptr + group)) * BM
        acc = tl.zeros((BM, BN), tl.float32)
        for k0 in range(0, K, BK):
            a = a_desc.load([m0, k0])
            b = b_desc.load([group * N + tile_n * BN, k0])
            acc = tl.dot(a, b.T, acc)
        m, n = m0 + tl.arange(0, BM), tile_n * BN + tl.arange(0, BN)
        tl.store(y_ptr + m[:, None] * N + n[None, :], acc.to(y_ptr.dtype.element_ty), mask=(m < tl.load(start_ptr + group + 1))[:, None])


@case
def harbor_of_groups_of_rows_through_descriptors(sizes=(700, 0, 129, 1500, 3, 64, 900, 256), n=1536, k=1024, programs=PROGRAMS):
    bm, bn, bk = 128, 128, 64
    starts, tiles = [0], [0]
    for size in sizes:
        starts.append(starts[-1] + size)
        tiles.append(tiles[-1] + cdiv(size, bm))
    a, b, y = rand(starts[-1], k), rand(len(sizes) * n, k), zeros(starts[-1], n)
    a_desc, b_desc = TensorDescriptor.from_tensor(a, [bm, bk]), TensorDescriptor.from_tensor(b, [bn, bk])
    start, tile = (torch.tensor(one, device="cuda", dtype=torch.int32) for one in (starts, tiles))
    args = a_desc, b_desc, y, start, tile, tiles[-1] * (n // bn), n, k
    launched = run(groups_through_descriptors, (programs,), args, y, BM=bm, BN=bn, BK=bk, num_warps=8, num_stages=3)

    def reference():
        parts = [a[i:j].float() @ b[g * n : (g + 1) * n].float().t() for g, (i, j) in enumerate(zip(starts, starts[1:]))]
        return torch.cat(parts)

    return against(launched, reference)


@triton.jit
def keys_backward_under_a_cap(
    q_ptr, k_ptr, v_ptr, do_ptr, lse_ptr, delta_ptr, dk_ptr, dv_ptr, scale, cap, N, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr
):  # fmt: skip
    # What keys and values get from queries at and after them, with scores under a soft cap, turned: keys in rows.
    n0, bh = tl.program_id(0) * BN, tl.program_id(1)
    j, i, d = n0 + tl.arange(0, BN), tl.arange(0, BM), tl.arange(0, D)
    base = bh * N * D
    at = base + j[:, None] * D + d[None, :]
    k = tl.load(k_ptr + at, mask=(j < N)[:, None], other=0.0)
    v = tl.load(v_ptr + at, mask=(j < N)[:, None], other=0.0)
    dk, dv = tl.zeros((BN, D), tl.float32), tl.zeros((BN, D), tl.float32)
    for m0 in range(n0 // BM * BM, N, BM):
        m = m0 + i
        ok = m < N
        q = tl.load(q_ptr + base + m[:, None] * D + d[None, :], mask=ok[:, None], other=0.0)
        do = tl.load(do_ptr + base + m[:, None] * D + d[None, :], mask=ok[:, None], other=0.0)
        lse = tl.load(lse_ptr + bh * N + m, mask=ok, other=0.0)
        delta = tl.load(delta_ptr + bh * N + m, mask=ok, other=0.0)
        flat = 1.0 - 2.0 / (tl.exp(tl.dot(k, tl.trans(q)) * (2.0 * scale / cap)) + 1.0)
        seen = (j[:, None] <= m[None, :]) & ok[None, :]
        p = tl.where(seen, tl.exp(cap * flat - lse[None, :]), 0.0)
        dv = tl.dot(p.to(do.dtype), do, dv)
        dp = tl.dot(v, tl.trans(do))
        ds = p * (dp - delta[None, :]) * (1.0 - flat * flat)
        dk = tl.dot(ds.to(q.dtype), q, dk)
    tl.store(dk_ptr + at, (dk * scale).to(dk_ptr.dtype.element_ty), mask=(j < N)[:, None])
    tl.store(dv_ptr + at, dv.to(dv_ptr.dtype.element_ty), mask=(j < N)[:, None])


@case
def harbor_of_keys_backward_under_a_soft_cap(bh=30, n=1000):
    d, cap = 64, 20.0
    q, k, v, do = (rand(bh, n, d, dtype="bfloat16") for _ in range(4))
    seen = arange(n)[:, None] >= arange(n)[None, :]
    s = (cap * torch.tanh(q.float() @ k.float().transpose(1, 2) * (d**-0.5 / cap))).masked_fill(~seen, float("-inf"))
    lse = s.logsumexp(2)
    delta = ((s.softmax(2) @ v.float()) * do.float()).sum(2)
    dk, dv = zeros(bh, n, d, dtype="bfloat16"), zeros(bh, n, d, dtype="bfloat16")
    args = q, k, v, do, lse, delta, dk, dv, d**-0.5, cap, n
    launched = run(keys_backward_under_a_cap, (cdiv(n, 64), bh), args, (dk, dv), D=d, BM=64, BN=64, num_warps=4, num_stages=2)

    def reference():
        kk, vv = k.float().requires_grad_(), v.float().requires_grad_()
        with torch.enable_grad():
            t = cap * torch.tanh(q.float() @ kk.transpose(1, 2) * (d**-0.5 / cap))
            o = t.masked_fill(~seen, float("-inf")).softmax(2) @ vv
            return torch.autograd.grad(o, (kk, vv), do.float())

    return against(launched, reference)


@triton.jit
def joined_to_tree(q, k, v, on, scale, m, l, acc):
    s = tl.where(on, tl.dot(q, k) * scale, -1e30)
    top = tl.maximum(m, tl.max(s, 1))
    p = tl.where(on, tl.exp2(s - top[:, None]), 0.0)
    keep = tl.exp2(m - top)
    return top, l * keep + tl.sum(p, 1), tl.dot(p.to(v.dtype), v, acc * keep[:, None])


@triton.jit
def tree_of_drafts_asks(
    q_ptr, k_ptr, v_ptr, tk_ptr, tv_ptr, mask_ptr, len_ptr, o_ptr, scale, L, HK, G: tl.constexpr, T: tl.constexpr, D: tl.constexpr, BN: tl.constexpr
):  # fmt: skip
    # Nodes of a tree of drafts see all that was before, and of the tree what bits of a word of theirs say.
    b, hk = tl.program_id(0), tl.program_id(1)
    r, n, d, t = tl.arange(0, T * G), tl.arange(0, BN), tl.arange(0, D), tl.arange(0, T)
    node, h = r // G, hk * G + r % G
    row = ((b * T + node) * HK * G + h)[:, None] * D + d[None, :]
    q = tl.load(q_ptr + row)
    m, l = tl.full((T * G,), -1e30, tl.float32), tl.zeros((T * G,), tl.float32)
    acc = tl.zeros((T * G, D), tl.float32)
    length = tl.load(len_ptr + b)
    for n0 in range(0, length, BN):
        ok = n0 + n < length
        at = ((b * L + n0 + n) * HK + hk) * D
        k = tl.load(k_ptr + at[None, :] + d[:, None], mask=ok[None, :], other=0.0)
        v = tl.load(v_ptr + at[:, None] + d[None, :], mask=ok[:, None], other=0.0)
        m, l, acc = joined_to_tree(q, k, v, ok[None, :], scale, m, l, acc)
    at = ((b * T + t) * HK + hk) * D
    bits = tl.load(mask_ptr + b * T + node)
    on = ((bits[:, None] >> t[None, :].to(tl.int64)) & 1) != 0
    k, v = tl.load(tk_ptr + at[None, :] + d[:, None]), tl.load(tv_ptr + at[:, None] + d[None, :])
    m, l, acc = joined_to_tree(q, k, v, on, scale, m, l, acc)
    tl.store(o_ptr + row, (acc / l[:, None]).to(o_ptr.dtype.element_ty))


@case
def harbor_of_trees_of_drafts_that_ask(b=32, hk=4, n=1500):
    t, g, d = 16, 4, 128
    q, tk, tv = rand(b, t, hk * g, d), rand(b, t, hk, d), rand(b, t, hk, d)
    k, v, lengths, o = rand(b, n, hk, d), rand(b, n, hk, d), ints(1, n + 1, b), zeros(b, t, hk * g, d)
    bits = torch.zeros(b, t, device="cuda", dtype=torch.int64)
    bits[:, 0] = 1
    for i in range(1, t):
        parent = ints(0, i, b, dtype="int64")
        bits[:, i] = bits.gather(1, parent[:, None])[:, 0] | (1 << i)
    args = q, k, v, tk, tv, bits, lengths, o, d**-0.5 * 1.44269504, n, hk
    launched = run(tree_of_drafts_asks, (b, hk), args, o, G=g, T=t, D=d, BN=64, num_warps=4, num_stages=2)

    def reference():
        before = (arange(n)[None, :] < lengths[:, None])[:, None, :].expand(b, t, n)
        tree = ((bits[:, :, None] >> arange(t).long()) & 1) > 0
        kk, vv = (torch.cat([x, y], 1).float().repeat_interleave(g, 2) for x, y in ((k, tk), (v, tv)))
        s = torch.einsum("bihd,bjhd->bhij", q.float(), kk) * d**-0.5
        s = s.masked_fill(~torch.cat([before, tree], 2)[:, None], float("-inf"))
        return torch.einsum("bhij,bjhd->bihd", s.softmax(3), vv)

    return against(launched, reference)


@triton.jit
def states_left_by_chunks(x_ptr, b_ptr, dt_ptr, bias_ptr, a_ptr, s_ptr, sum_ptr, T, H, HG, P: tl.constexpr, N: tl.constexpr, C: tl.constexpr, BK: tl.constexpr):
    # What a chunk leaves to the state: inputs times keys under what decays until its end, in steps along the chunk.
    chunk, h, batch = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    i, p, n, kk = tl.arange(0, C), tl.arange(0, P), tl.arange(0, N), tl.arange(0, BK)
    t = chunk * C + i
    bias, a = tl.load(bias_ptr + h), tl.load(a_ptr + h)
    raw = tl.load(dt_ptr + (batch * T + t) * H + h, mask=t < T, other=0.0).to(tl.float32) + bias
    dt = tl.where(t < T, tl.where(raw > 20.0, raw, tl.log(1.0 + tl.exp(raw))), 0.0)
    total = tl.sum(dt * a, 0)
    acc = tl.zeros((P, N), tl.float32)
    passed = 0.0
    groups = H // HG
    for k0 in range(0, C, BK):
        row = batch * T + chunk * C + k0 + kk
        ok = chunk * C + k0 + kk < T
        part = tl.load(dt_ptr + row * H + h, mask=ok, other=0.0).to(tl.float32) + bias
        step = tl.where(ok, tl.where(part > 20.0, part, tl.log(1.0 + tl.exp(part))), 0.0)
        run_to = tl.cumsum(step * a, 0) + passed
        x = tl.load(x_ptr + (row * H + h)[None, :] * P + p[:, None], mask=ok[None, :], other=0.0)
        b = tl.load(b_ptr + (row * groups + h // HG)[:, None] * N + n[None, :], mask=ok[:, None], other=0.0).to(tl.float32)
        acc = tl.dot(x, (b * (tl.exp(total - run_to) * step)[:, None]).to(x.dtype), acc)
        passed += tl.sum(step * a, 0)
    at = ((batch * tl.num_programs(0) + chunk) * H + h) * P * N
    tl.store(s_ptr + at + p[:, None] * N + n[None, :], acc)
    tl.store(sum_ptr + (batch * tl.num_programs(0) + chunk) * H + h, total)


@case
def harbor_of_states_that_chunks_leave(batch=2, t=3000, h=24):
    p, n, c, hg = 64, 128, 256, 12
    chunks = cdiv(t, c)
    x, b, dt = rand(batch, t, h, p, dtype="bfloat16"), rand(batch, t, h // hg, n, dtype="bfloat16"), rand(batch, t, h, dtype="bfloat16")
    bias, a = f32(h) / 4 - 3, -uniform(h) - 0.1
    s, total = zeros(batch, chunks, h, p, n, dtype="float32"), zeros(batch, chunks, h, dtype="float32")
    args = x, b, dt, bias, a, s, total, t, h, hg
    launched = run(states_left_by_chunks, (chunks, h, batch), args, (s, total), P=p, N=n, C=c, BK=64, num_warps=4, num_stages=2)

    def reference():
        step = F.softplus(dt.float() + bias)
        xx = F.pad(x.float(), (0, 0, 0, 0, 0, chunks * c - t)).reshape(batch, chunks, c, h, p)
        bb = F.pad(b.float().repeat_interleave(hg, 2), (0, 0, 0, 0, 0, chunks * c - t)).reshape(batch, chunks, c, h, n)
        step = F.pad(step, (0, 0, 0, chunks * c - t)).reshape(batch, chunks, c, h)
        run_to = (step * a).cumsum(2)
        w = (run_to[:, :, -1:] - run_to).exp() * step
        return torch.einsum("bcthp,bcthn,bcth->bchpn", xx, bb, w), run_to[:, :, -1]

    return against(launched, reference)
