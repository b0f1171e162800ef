"""Wards: rows that are sampled, normalized, packed and watched over one by one, with a few products among them."""

import torch
import torch.nn.functional as F
import triton
import triton.language as tl

from .common import against, arange, case, cdiv, cleared, f32, far, ints, rand, run, uniform, viewed, zeros


@triton.jit
def survivors_of_top_k(x_ptr, k_ptr, y_ptr, V, BLOCK: tl.constexpr):
    # The k-th largest logit of a row is found by bisection of ordered bits; the softmax of what is not less is written.
    row = tl.program_id(0)
    x_row, y_row = x_ptr + row.to(tl.int64) * V, y_ptr + row.to(tl.int64) * V
    k = tl.load(k_ptr + row)
    cols = tl.arange(0, BLOCK)
    low, high = -32768, 32767
    while low < high:
        mid = (low + high + 1) >> 1
        count = tl.zeros((BLOCK,), tl.int32)
        for v0 in range(0, V, BLOCK):
            bits = tl.load(x_row + v0 + cols, mask=v0 + cols < V, other=float("-inf")).to(tl.int16, bitcast=True).to(tl.int32)
            key = bits ^ ((bits >> 15) & 0x7FFF)
            count += (key >= mid).to(tl.int32)
        if tl.sum(count, 0) >= k:
            low = mid
        else:
            high = mid - 1
    best = tl.full((BLOCK,), float("-inf"), tl.float32)
    for v0 in range(0, V, BLOCK):
        best = tl.maximum(best, tl.load(x_row + v0 + cols, mask=v0 + cols < V, other=float("-inf")).to(tl.float32))
    top = tl.max(best, 0)
    total = tl.zeros((BLOCK,), tl.float32)
    for v0 in range(0, V, BLOCK):
        x = tl.load(x_row + v0 + cols, mask=v0 + cols < V, other=float("-inf"))
        bits = x.to(tl.int16, bitcast=True).to(tl.int32)
        total += tl.where((bits ^ ((bits >> 15) & 0x7FFF)) >= low, tl.exp(x.to(tl.float32) - top), 0.0)
    scale = 1.0 / tl.sum(total, 0)
    for v0 in range(0, V, BLOCK):
        x = tl.load(x_row + v0 + cols, mask=v0 + cols < V, other=float("-inf"))
        bits = x.to(tl.int16, bitcast=True).to(tl.int32)
        p = tl.where((bits ^ ((bits >> 15) & 0x7FFF)) >= low, tl.exp(x.to(tl.float32) - top) * scale, 0.0)
        tl.store(y_row + v0 + cols, p, mask=v0 + cols < V)


@case
def ward_of_top_k_by_ordered_bits_of_bfloats(rows=264, v=32_003):
    x, k, y = rand(rows, v, dtype="bfloat16"), ints(1, 200, rows), zeros(rows, v, dtype="float32")
    launched = run(survivors_of_top_k, (rows,), (x, k, y, v), y, BLOCK=2048, num_warps=8)

    def reference():
        kth = x.float().sort(1, descending=True).values.gather(1, k.long()[:, None] - 1)
        return torch.where(x.float() >= kth, x.float(), float("-inf")).softmax(1)

    return against(launched, reference)


@triton.jit
def penalties_of_history(x_ptr, hist_ptr, len_ptr, rep_ptr, freq_ptr, pres_ptr, y_ptr, V, L, BV: tl.constexpr, BL: tl.constexpr):
    # Tokens of a history are counted by comparison with those of a block; repeated ones get their three penalties.
    row, tok = tl.program_id(1), tl.program_id(0) * BV + tl.arange(0, BV)
    length = tl.load(len_ptr + row)
    count = tl.zeros((BV,), tl.int32)
    for l0 in range(0, length, BL):
        l = l0 + tl.arange(0, BL)
        seen = tl.load(hist_ptr + row * L + l, mask=l < length, other=-1)
        count += tl.sum((seen[None, :] == tok[:, None]).to(tl.int32), 1)
    x = tl.load(x_ptr + row * V + tok, mask=tok < V, other=0.0).to(tl.float32)
    rep = tl.load(rep_ptr + row)
    once = count > 0
    x = tl.where(once, tl.where(x > 0.0, x / rep, x * rep), x)
    x -= tl.load(freq_ptr + row) * count.to(tl.float32) + tl.where(once, tl.load(pres_ptr + row), 0.0)
    tl.store(y_ptr + row * V + tok, x, mask=tok < V)


@case
def ward_of_three_penalties_for_tokens_said(rows=48, v=50_257, length=300):
    x, hist, lengths = rand(rows, v), ints(0, v // 50, rows, length), ints(0, length + 1, rows)
    rep, freq, pres, y = uniform(rows) + 1.0, uniform(rows), uniform(rows), zeros(rows, v, dtype="float32")
    launched = run(penalties_of_history, (cdiv(v, 256), rows), (x, hist, lengths, rep, freq, pres, y, v, length), y, BV=256, BL=16, num_warps=4)

    def reference():
        on = (arange(length)[None, :] < lengths[:, None]).float()
        count = torch.zeros(rows, v, device=x.device).scatter_add_(1, hist.long(), on)
        z, r, once = x.float(), rep[:, None], count > 0
        z = torch.where(once, torch.where(z > 0, z / r, z * r), z)
        return z - freq[:, None] * count - pres[:, None] * once

    return against(launched, reference)


@triton.jit
def nibbles_in_gemm_order(x_ptr, q_ptr, s_ptr, z_ptr, N, K, BN: tl.constexpr, GROUP: tl.constexpr):
    # Groups of a row are quantized to four bits between their least and most; eight go to a word, even ones first.
    n, g = tl.program_id(0) * BN + tl.arange(0, BN), tl.program_id(1)
    k = tl.arange(0, GROUP)
    x = tl.load(x_ptr + n[:, None] * K + g * GROUP + k[None, :], mask=(n < N)[:, None], other=0.0).to(tl.float32)
    least, most = tl.minimum(tl.min(x, 1), 0.0), tl.maximum(tl.max(x, 1), 0.0)
    scale = tl.maximum((most - least) / 15.0, 1e-5)
    zero = tl.floor(-least / scale + 0.5)
    code = tl.floor(x / scale[:, None] + 0.5) + zero[:, None]
    code = tl.minimum(tl.maximum(code, 0.0), 15.0).to(tl.int32)
    words = tl.reshape(code, (BN, GROUP // 8, 8))
    p = tl.arange(0, 8)
    shift = ((p & 1) * 4 + (p >> 1)) * 4
    word = tl.sum(words << shift[None, None, :], 2)
    w = g * (GROUP // 8) + tl.arange(0, GROUP // 8)
    tl.store(q_ptr + n[:, None] * (K // 8) + w[None, :], word, mask=(n < N)[:, None])
    tl.store(s_ptr + n * (K // GROUP) + g, scale.to(s_ptr.dtype.element_ty), mask=n < N)
    tl.store(z_ptr + n * (K // GROUP) + g, zero.to(tl.uint8), mask=n < N)


@case
def ward_that_packs_eight_nibbles_even_first(n=5000, k=4096):
    x, q = rand(n, k), zeros(n, k // 8, dtype="int32")
    s, z = zeros(n, k // 128), zeros(n, k // 128, dtype="uint8")
    shifts = torch.tensor([0, 16, 4, 20, 8, 24, 12, 28], device="cuda", dtype=torch.int32)

    def view(outs):
        return far((outs[0][..., None] >> shifts) & 15).reshape(n, k), outs[1], far(outs[2])

    launched = run(nibbles_in_gemm_order, (cdiv(n, 16), k // 128), (x, q, s, z, n, k), (q, s, z), BN=16, GROUP=128, num_warps=4)

    def reference():
        y = x.float().reshape(n, -1, 128)
        least, most = y.amin(2).clamp(max=0), y.amax(2).clamp(min=0)
        scale = ((most - least) / 15).clamp(min=1e-5)
        zero = (-least / scale + 0.5).floor()
        code = ((y / scale[..., None] + 0.5).floor() + zero[..., None]).clamp(0, 15)
        return far(code).reshape(n, k), scale, far(zero)

    return against(viewed(launched, view), reference)


@triton.jit
def four_bits_with_power_scales(x_ptr, q_ptr, e_ptr, N, B: tl.constexpr):
    # 32 values share a power of two, taken from the bits of their largest; two codes of one sign, two exponent and one fraction bit a byte.
    row = tl.program_id(0) * B + tl.arange(0, B)
    c = tl.arange(0, 32)
    x = tl.load(x_ptr + row[:, None] * 32 + c[None, :], mask=(row < N)[:, None], other=0.0).to(tl.float32)
    top = tl.max(tl.abs(x), 1)
    e = tl.maximum((top.to(tl.int32, bitcast=True) >> 23) - 2, 1)
    inverse = ((254 - e) << 23).to(tl.float32, bitcast=True)
    y = tl.abs(x) * inverse[:, None]
    code = (y > 0.25).to(tl.int32) + (y >= 0.75).to(tl.int32) + (y > 1.25).to(tl.int32) + (y >= 1.75).to(tl.int32)
    code += (y > 2.5).to(tl.int32) + (y >= 3.5).to(tl.int32) + (y > 5.0).to(tl.int32)
    code |= tl.where(x < 0.0, 8, 0)
    low, high = tl.split(tl.reshape(code, (B, 16, 2)))
    half = tl.arange(0, 16)
    tl.store(q_ptr + row[:, None] * 16 + half[None, :], (low | (high << 4)).to(tl.uint8), mask=(row < N)[:, None])
    tl.store(e_ptr + row, e.to(tl.uint8), mask=row < N)


@case
def ward_of_values_in_four_bits_with_powers_of_two(rows=3000, k=5120):
    x, q, e = rand(rows, k, dtype="bfloat16"), zeros(rows, k // 2, dtype="uint8"), zeros(rows, k // 32, dtype="uint8")
    blocks = rows * k // 32

    def view(outs):
        return far(outs[0] & 15), far(outs[0] >> 4), far(outs[1])

    launched = run(four_bits_with_power_scales, (cdiv(blocks, 128),), (x, q, e, blocks), (q, e), B=128, num_warps=4)

    def reference():
        y = x.float().reshape(-1, 32)
        exponent = (torch.frexp(y.abs().amax(1))[1] + 126 - 2).clamp(min=1)
        size = torch.ldexp(y.abs(), 127 - exponent[:, None])
        edges = [(0.25, False), (0.75, True), (1.25, False), (1.75, True), (2.5, False), (3.5, True), (5.0, False)]
        code = sum(((size >= edge) if even else (size > edge)).int() for edge, even in edges) + 8 * (y < 0).int()
        code = code.reshape(rows, k // 2, 2)
        return far(code[..., 0]), far(code[..., 1]), far(exponent).reshape(rows, k // 32)

    return against(viewed(launched, view), reference)


@triton.jit
def groups_last_then_silu(x_ptr, w_ptr, b_ptr, y_ptr, eps, HW, C, CG: tl.constexpr, BG: tl.constexpr, BP: tl.constexpr):
    # A group of channels that lie last, over all places: moments in one pass, y * sigmoid(y) in another.
    n, g = tl.program_id(0), tl.program_id(1)
    c, p = tl.arange(0, BG), tl.arange(0, BP)
    base = n.to(tl.int64) * HW * C + g * CG
    total, square = tl.zeros((BP, BG), tl.float32), tl.zeros((BP, BG), tl.float32)
    for p0 in tl.range(0, HW, BP):
        ok = (p0 + p < HW)[:, None] & (c < CG)[None, :]
        x = tl.load(x_ptr + base + (p0 + p)[:, None] * C + c[None, :], mask=ok, other=0.0).to(tl.float32)
        total += x
        square += x * x
    count = (HW * CG).to(tl.float32)
    mean = tl.sum(total) / count
    rstd = tl.rsqrt(tl.sum(square) / count - mean * mean + eps)
    w = tl.load(w_ptr + g * CG + c, mask=c < CG, other=0.0) * rstd
    b = tl.load(b_ptr + g * CG + c, mask=c < CG, other=0.0) - mean * w
    for p0 in tl.range(0, HW, BP):
        ok = (p0 + p < HW)[:, None] & (c < CG)[None, :]
        at = base + (p0 + p)[:, None] * C + c[None, :]
        y = tl.load(x_ptr + at, mask=ok, other=0.0).to(tl.float32) * w[None, :] + b[None, :]
        tl.store(y_ptr + at, (y * tl.sigmoid(y)).to(y_ptr.dtype.element_ty), mask=ok)


@case
def ward_of_groups_of_20_channels_that_lie_last(n=12, hw=32 * 52, c=640):
    x, w, b, y = rand(n, hw, c), f32(c), f32(c), zeros(n, hw, c)
    launched = run(groups_last_then_silu, (n, 32), (x, w, b, y, 1e-5, hw, c), y, CG=c // 32, BG=32, BP=64, num_warps=8)
    return against(launched, lambda: F.silu(F.group_norm(x.float().transpose(1, 2), 32, w, b, 1e-5).transpose(1, 2)))


@triton.jit
def least_not_above(x, table_ptr):
    # The place of the table's entry that is nearest.
    low = tl.zeros_like(x).to(tl.int32)
    for i in tl.static_range(8):
        probe = low + (128 >> i)
        low = tl.where(tl.load(table_ptr + probe) <= x, probe, low)
    high = tl.minimum(low + 1, 255)
    below, above = tl.load(table_ptr + low), tl.load(table_ptr + high)
    return tl.where(above - x < x - below, high, low)


@triton.jit
def adam_of_coded_moments(
    p_ptr, g_ptr, m_ptr, v_ptr, mmax_ptr, vmax_ptr, mt_ptr, vt_ptr, po_ptr, mo_ptr, vo_ptr, mm_ptr, vm_ptr, lr, beta1, beta2, eps, decay, N, B: tl.constexpr
):  # fmt: skip
    # Moments are bytes of a table with a largest value for each block: read, moved, coded again by a search.
    pid = tl.program_id(0)
    at = pid * B + tl.arange(0, B)
    ok = at < N
    g = tl.load(g_ptr + at, mask=ok, other=0.0).to(tl.float32)
    p = tl.load(p_ptr + at, mask=ok, other=0.0).to(tl.float32)
    m = tl.load(mt_ptr + tl.load(m_ptr + at, mask=ok, other=0).to(tl.int32)) * tl.load(mmax_ptr + pid)
    v = tl.load(vt_ptr + tl.load(v_ptr + at, mask=ok, other=0).to(tl.int32)) * tl.load(vmax_ptr + pid)
    m = tl.where(ok, m * beta1 + (1.0 - beta1) * g, 0.0)
    v = tl.where(ok, v * beta2 + (1.0 - beta2) * g * g, 0.0)
    p = p * (1.0 - lr * decay) - lr * m / (tl.sqrt(v) + eps)
    tl.store(po_ptr + at, p.to(po_ptr.dtype.element_ty), mask=ok)
    m_top, v_top = tl.maximum(tl.max(tl.abs(m), 0), 1e-20), tl.maximum(tl.max(v, 0), 1e-20)
    tl.store(mo_ptr + at, least_not_above(m / m_top, mt_ptr).to(tl.uint8), mask=ok)
    tl.store(vo_ptr + at, least_not_above(v / v_top, vt_ptr).to(tl.uint8), mask=ok)
    tl.store(mm_ptr + pid, m_top)
    tl.store(vm_ptr + pid, v_top)


@case
def ward_of_adam_with_moments_in_tables(n=3_000_100):
    b = 512
    blocks = cdiv(n, b)
    p, g = f32(n), rand(n, dtype="bfloat16")
    m, v, mmax, vmax = ints(0, 256, n, dtype="uint8"), ints(0, 256, n, dtype="uint8"), uniform(blocks) + 0.1, uniform(blocks) + 0.1
    ramp = arange(256, dtype="float32")
    mt, vt = ((ramp - 127.5) / 127.5).pow(3), (ramp / 255).square()
    po, mo, vo = zeros(n, dtype="float32"), zeros(n, dtype="uint8"), zeros(n, dtype="uint8")
    mm, vm = zeros(blocks, dtype="float32"), zeros(blocks, dtype="float32")
    lr, beta1, beta2, eps, decay = 0.01, 0.9, 0.98, 1e-6, 0.1
    args = p, g, m, v, mmax, vmax, mt, vt, po, mo, vo, mm, vm, lr, beta1, beta2, eps, decay, n
    launched = run(adam_of_coded_moments, (blocks,), args, (po, mo, vo, mm, vm), B=b, num_warps=4)

    def coded(x, table):
        low = (torch.searchsorted(table, x, right=True) - 1).clamp(0, 255)
        high = (low + 1).clamp(max=255)
        return far(torch.where(table[high] - x < x - table[low], high, low))

    def reference():
        block = arange(n).long() // b
        x = mt[m.long()] * mmax[block] * beta1 + (1 - beta1) * g.float()
        y = vt[v.long()] * vmax[block] * beta2 + (1 - beta2) * g.float().square()
        new = p * (1 - lr * decay) - lr * x / (y.sqrt() + eps)
        x_top, y_top = (F.pad(z.abs(), (0, blocks * b - n)).reshape(blocks, b).amax(1) for z in (x, y))
        return new, coded(x / x_top[block], mt), coded(y / y_top[block], vt), x_top, y_top

    return against(viewed(launched, lambda outs: (outs[0], far(outs[1]), far(outs[2]), outs[3], outs[4])), reference)


@triton.jit
def turned_by_three_places(x_ptr, place_ptr, cos_ptr, sin_ptr, y_ptr, T, H, FIRST: tl.constexpr, SECOND: tl.constexpr, HALF: tl.constexpr, BH: tl.constexpr):
    # A token has a time, a row and a column; parts of each head turn by one of them.
    t = tl.program_id(0)
    j, h = tl.arange(0, HALF), tl.arange(0, BH)
    axis = tl.where(j < FIRST, 0, tl.where(j < FIRST + SECOND, 1, 2))
    place = tl.load(place_ptr + axis * T + t)
    cos = tl.load(cos_ptr + place * HALF + j)[None, :]
    sin = tl.load(sin_ptr + place * HALF + j)[None, :]
    for h0 in range(0, H, BH):
        at = (t * H + h0 + h)[:, None] * (2 * HALF) + j[None, :]
        ok = (h0 + h < H)[:, None]
        a = tl.load(x_ptr + at, mask=ok, other=0.0).to(tl.float32)
        b = tl.load(x_ptr + at + HALF, mask=ok, other=0.0).to(tl.float32)
        tl.store(y_ptr + at, (a * cos - b * sin).to(y_ptr.dtype.element_ty), mask=ok)
        tl.store(y_ptr + at + HALF, (b * cos + a * sin).to(y_ptr.dtype.element_ty), mask=ok)


@case
def ward_of_heads_turned_by_time_row_and_column(t=5000, h=28):
    x, place = rand(t, h, 128, dtype="bfloat16"), ints(0, 2000, 3, t)
    angle = arange(2000, dtype="float32")[:, None] * (10_000.0 ** (-arange(64, dtype="float32") / 64))[None, :]
    cos, sin, y = angle.cos(), angle.sin(), zeros(t, h, 128, dtype="bfloat16")
    launched = run(turned_by_three_places, (t,), (x, place, cos, sin, y, t, h), y, FIRST=16, SECOND=24, HALF=64, BH=8, num_warps=4)

    def reference():
        axis = torch.tensor([0] * 16 + [1] * 24 + [2] * 24, device=x.device)
        at, column = place.long()[axis].t(), arange(64).long()[None, :]
        c, s = cos[at, column][:, None, :], sin[at, column][:, None, :]
        a, b = x.float().chunk(2, 2)
        return torch.cat([a * c - b * s, b * c + a * s], 2)

    return against(launched, reference)


@triton.jit
def keys_into_pages_of_bytes(k_ptr, v_ptr, slot_ptr, kc_ptr, vc_ptr, ks_ptr, vs_ptr, H, P: tl.constexpr, D: tl.constexpr, X: tl.constexpr):
    # A head of a token goes to its page: keys in runs of X channels with places between, values with places last, by a factor of the head. Slots below zero are skipped.
    t, h = tl.program_id(0), tl.program_id(1)
    slot = tl.load(slot_ptr + t)
    if slot >= 0:
        page, place = slot // P, slot % P
        d = tl.arange(0, D)
        k = tl.load(k_ptr + (t * H + h) * D + d).to(tl.float32) * tl.load(ks_ptr + h)
        v = tl.load(v_ptr + (t * H + h) * D + d).to(tl.float32) * tl.load(vs_ptr + h)
        k = tl.minimum(tl.maximum(k, -448.0), 448.0).to(kc_ptr.dtype.element_ty)
        v = tl.minimum(tl.maximum(v, -448.0), 448.0).to(vc_ptr.dtype.element_ty)
        base = (page * H + h) * D * P
        tl.store(kc_ptr + base + (d // X) * (P * X) + place * X + d % X, k)
        tl.store(vc_ptr + base + d * P + place, v)


@case
def ward_that_writes_keys_to_pages_in_fp8(t=2500, h=8, pages=400):
    p, d, x = 16, 128, 16
    k, v = rand(t, h, d, dtype="bfloat16"), rand(t, h, d, dtype="bfloat16")
    slot = torch.randperm(pages * p, device="cuda")[:t]
    slot = torch.where(arange(t) % 7 == 3, -1, slot)
    ks, vs = 2.0 ** ints(-1, 7, h).float(), 2.0 ** ints(-1, 7, h).float()
    kc = torch.zeros(pages, h, d // x, p, x, device="cuda", dtype=torch.float8_e4m3fn)
    vc = torch.zeros(pages, h, d, p, device="cuda", dtype=torch.float8_e4m3fn)
    launched = run(keys_into_pages_of_bytes, (t, h), (k, v, slot, kc, vc, ks, vs, h), (kc, vc), P=p, D=d, X=x, num_warps=1)

    def reference():
        on = slot >= 0
        page, place = slot[on] // p, slot[on] % p
        rk, rv = torch.zeros(kc.shape, device=k.device), torch.zeros(vc.shape, device=k.device)
        rk[page, :, :, place] = (k[on].float() * ks[:, None]).clamp(-448, 448).to(torch.float8_e4m3fn).float().reshape(-1, h, d // x, x)
        rv[page, :, :, place] = (v[on].float() * vs[:, None]).clamp(-448, 448).to(torch.float8_e4m3fn).float()
        return rk, rv

    return against(viewed(launched, lambda outs: tuple(o.float() for o in outs)), reference)


@triton.jit
def two_peaks(m1, l1, m2, l2):
    m = tl.maximum(m1, m2)
    return m, l1 * tl.exp(m1 - m) + l2 * tl.exp(m2 - m)


@triton.jit
def loss_of_smoothed_labels(x_ptr, label_ptr, loss_ptr, lse_ptr, V, smooth, z_weight, IGNORE: tl.constexpr, BLOCK: tl.constexpr):
    # The largest and the sum of exponents go together through a reduction of pairs; rows of the ignored label lose nothing.
    row = tl.program_id(0)
    label = tl.load(label_ptr + row)
    if label == IGNORE:
        tl.store(loss_ptr + row, 0.0)
        tl.store(lse_ptr + row, 0.0)
    else:
        start = x_ptr + row.to(tl.int64) * V
        cols = tl.arange(0, BLOCK)
        m, l, total = tl.full((BLOCK,), -1e30, tl.float32), tl.zeros((BLOCK,), tl.float32), tl.zeros((BLOCK,), tl.float32)
        for v0 in range(0, V, BLOCK):
            ok = v0 + cols < V
            x = tl.load(start + v0 + cols, mask=ok, other=0.0).to(tl.float32)
            total += x
            new = tl.where(ok, tl.maximum(m, x), m)
            l = l * tl.exp(m - new) + tl.where(ok, tl.exp(x - new), 0.0)
            m = new
        top, mass = tl.reduce((m, l), 0, two_peaks)
        lse = top + tl.log(mass)
        at_label = tl.load(start + label).to(tl.float32)
        loss = lse - (1.0 - smooth) * at_label - smooth * tl.sum(total, 0) / V + z_weight * lse * lse
        tl.store(loss_ptr + row, loss)
        tl.store(lse_ptr + row, lse)


@case
def ward_of_losses_smoothed_and_some_ignored(rows=1320, v=50_257):
    x, label = rand(rows, v, dtype="bfloat16"), ints(0, v, rows, dtype="int64")
    label[::5] = -100
    loss, lse = zeros(rows, dtype="float32"), zeros(rows, dtype="float32")
    launched = run(loss_of_smoothed_labels, (rows,), (x, label, loss, lse, v, 0.1, 1e-3), (loss, lse), IGNORE=-100, BLOCK=4096, num_warps=8)

    def reference():
        on, y = label >= 0, x.float()
        z = y.logsumexp(1)
        got = z - 0.9 * y.gather(1, label.clamp(min=0)[:, None])[:, 0] - 0.1 * y.mean(1) + 1e-3 * z * z
        return torch.where(on, got, 0.0), torch.where(on, z, 0.0)

    return against(launched, reference)


@triton.jit
def shades_of_planes(x_ptr, count_ptr, SIZE, STEPS, BLOCK: tl.constexpr):
    # The histogram of a part of a plane of bytes, joined with those of other parts by atomics.
    plane, part = tl.program_id(1), tl.program_id(0)
    i, shade = tl.arange(0, BLOCK), tl.arange(0, 256)
    count = tl.zeros((256,), tl.int32)
    for step in range(STEPS):
        at = (part * STEPS + step) * BLOCK + i
        ok = at < SIZE
        x = tl.load(x_ptr + plane.to(tl.int64) * SIZE + at, mask=ok, other=0).to(tl.int32)
        count += tl.histogram(x, 256, mask=ok)
    tl.atomic_add(count_ptr + plane * 256 + shade, count, mask=count > 0)


@case
def ward_of_shades_of_planes_of_bytes(planes=60, size=500 * 333):
    x, count = ints(0, 256, planes, size, dtype="uint8"), zeros(planes, 256, dtype="int32")
    launched = run(shades_of_planes, (cdiv(size, 8 * 2048), planes), (x, count, size, 8), count, BLOCK=2048, num_warps=4)

    def reference():
        at = x.long() + 256 * arange(planes).long()[:, None]
        return torch.bincount(at.reshape(-1), minlength=256 * planes).reshape(planes, 256)

    return against(cleared(launched, count), reference)


@triton.jit
def heat_through_layers(u_ptr, k_ptr, y_ptr, dt, NZ, NY, NX, DEPTH: tl.constexpr, BY: tl.constexpr, BX: tl.constexpr):
    # A tile walks down through a volume with three layers in hand; outside it is cold.
    x, y = tl.program_id(0) * BX + tl.arange(0, BX)[None, :], tl.program_id(1) * BY + tl.arange(0, BY)[:, None]
    z0 = tl.program_id(2) * DEPTH
    layer = NY * NX
    inside = (y < NY) & (x < NX)
    at = y * NX + x
    above = tl.load(u_ptr + (z0 - 1) * layer + at, mask=inside & (z0 > 0), other=0.0)
    here = tl.load(u_ptr + z0 * layer + at, mask=inside & (z0 < NZ), other=0.0)
    for i in range(DEPTH):
        z = z0 + i
        live = inside & (z < NZ)
        below = tl.load(u_ptr + (z + 1) * layer + at, mask=inside & (z + 1 < NZ), other=0.0)
        spot = u_ptr + z * layer + at
        west = tl.load(spot - 1, mask=live & (x > 0), other=0.0)
        east = tl.load(spot + 1, mask=live & (x + 1 < NX), other=0.0)
        north = tl.load(spot - NX, mask=live & (y > 0), other=0.0)
        south = tl.load(spot + NX, mask=live & (y + 1 < NY), other=0.0)
        k = tl.load(k_ptr + z * layer + at, mask=live, other=0.0)
        tl.store(y_ptr + z * layer + at, here + dt * k * (above + below + west + east + north + south - 6.0 * here), mask=live)
        above, here = here, below


@case
def ward_of_heat_through_a_volume_by_layers(nz=150, ny=250, nx=300):
    u, k, y = f32(nz, ny, nx), uniform(nz, ny, nx), zeros(nz, ny, nx, dtype="float32")
    grid = cdiv(nx, 128), cdiv(ny, 8), cdiv(nz, 25)
    launched = run(heat_through_layers, grid, (u, k, y, 0.1, nz, ny, nx), y, DEPTH=25, BY=8, BX=128, num_warps=4)

    def reference():
        p = F.pad(u, (1, 1, 1, 1, 1, 1))
        c = slice(1, -1)
        near = p[:-2, c, c] + p[2:, c, c] + p[c, :-2, c] + p[c, 2:, c] + p[c, c, :-2] + p[c, c, 2:]
        return u + 0.1 * k * (near - 6 * u)

    return against(launched, reference)


@triton.jit
def slices_of_rows_times_vector(value_ptr, col_ptr, x_ptr, y_ptr, width_ptr, start_ptr, M, S: tl.constexpr):
    # Sliced ELL: a slice of rows has a width of its own, its entries lie column after column; -1 fills up.
    s, r = tl.program_id(0), tl.arange(0, S)
    row = s * S + r
    width = tl.load(width_ptr + s)
    at = tl.load(start_ptr + s) + r
    acc = tl.zeros((S,), tl.float64)
    for _ in range(width):
        col = tl.load(col_ptr + at)
        on = col >= 0
        value = tl.load(value_ptr + at, mask=on, other=0.0)
        acc += value.to(tl.float64) * tl.load(x_ptr + col, mask=on, other=0.0)
        at += S
    tl.store(y_ptr + row, acc, mask=row < M)


@case
def ward_of_sliced_rows_times_a_vector_of_doubles(m=150_007, n=100_000):
    s = 128
    slices = cdiv(m, s)
    width = ints(3, 40, slices)
    start = torch.cat([torch.zeros(1, device="cuda", dtype=torch.int64), (width.long() * s).cumsum(0)])
    size = slices * 40 * s
    col = torch.where(uniform(size) < 0.1, -1, ints(0, n, size))
    value, x, y = f32(size), f32(n).double(), zeros(m, dtype="float64")
    launched = run(slices_of_rows_times_vector, (slices,), (value, col, x, y, width, start, m), y, S=s, num_warps=2)

    def reference():
        used = slices * s
        total = torch.zeros(used, device=x.device, dtype=torch.float64)
        lane = arange(s).long()
        for j in range(40):
            at = (start[:-1, None] + j * s + lane[None, :]).clamp(max=size - 1)
            c = col[at].long()
            on = (c >= 0) & (j < width)[:, None]
            total += torch.where(on, value[at].double() * x[c.clamp(min=0)], 0.0).reshape(-1)
        return total[:m]

    return against(launched, reference)


@triton.jit
def dropped_by_fours(x_ptr, res_ptr, y_ptr, seed, p, N, B: tl.constexpr):
    # One draw gives four numbers: for four quarters of what a program has; what is left of x is added to the residual.
    pid, i = tl.program_id(0), tl.arange(0, B)
    r0, r1, r2, r3 = tl.rand4x(seed, pid * B + i)
    keep = 1.0 / (1.0 - p)
    for q in tl.static_range(4):
        r = r0 if q == 0 else (r1 if q == 1 else (r2 if q == 2 else r3))
        at = (pid * 4 + q) * B + i
        x = tl.load(x_ptr + at, mask=at < N, other=0.0).to(tl.float32)
        y = tl.load(res_ptr + at, mask=at < N, other=0.0).to(tl.float32) + tl.where(r >= p, x * keep, 0.0)
        tl.store(y_ptr + at, y.to(y_ptr.dtype.element_ty), mask=at < N)


def high_product(a, b):
    """The high 32 bits of products of 32 bits."""
    a0, a1, b0, b1 = a & 0xFFFF, a >> 16, b & 0xFFFF, b >> 16
    middle = ((a0 * b0) >> 16) + a1 * b0
    return a1 * b1 + (middle >> 16) + (((middle & 0xFFFF) + a0 * b1) >> 16)


def four_draws(seed, offset):
    """Philox 4x32-10 of counters (offset, 0, 0, 0), as numbers from 0 to 1."""
    mask = 0xFFFFFFFF
    c0, c1, c2, c3 = offset.long(), *(torch.zeros_like(offset, dtype=torch.int64) for _ in range(3))
    k0, k1 = seed & mask, seed >> 32
    for _ in range(10):
        old0, old2 = c0, c2
        c0 = high_product(old2, 0xCD9E8D57) ^ c1 ^ k0
        c2 = high_product(old0, 0xD2511F53) ^ c3 ^ k1
        c1 = ((old2 & 0xFFFF) * 0xCD9E8D57 + ((((old2 >> 16) * 0xCD9E8D57) & 0xFFFF) << 16)) & mask
        c3 = ((old0 & 0xFFFF) * 0xD2511F53 + ((((old0 >> 16) * 0xD2511F53) & 0xFFFF) << 16)) & mask
        k0, k1 = (k0 + 0x9E3779B9) & mask, (k1 + 0xBB67AE85) & mask
    signed = [torch.where(c >= 2**31, c - 2**32, c) for c in (c0, c1, c2, c3)]
    return [torch.where(c < 0, -c - 1, c).float() * 4.6566127342e-10 for c in signed]


@case
def ward_that_drops_by_four_draws_and_adds(n=20_000_000 - 96):
    b, seed, p = 512, 1234567, 0.3
    x, res, y = rand(n), rand(n), zeros(n)
    programs = cdiv(n, 4 * b)
    launched = run(dropped_by_fours, (programs,), (x, res, y, seed, p, n), y, B=b, num_warps=4)

    def reference():
        draws = four_draws(seed, arange(programs * b))
        r = torch.stack([d.reshape(programs, b) for d in draws], 1).reshape(-1)[:n]
        return res.float() + torch.where(r >= p, x.float() / (1 - p), 0.0)

    return against(launched, reference)


@triton.jit
def greatest_of_neighbors(a_ptr, b_ptr, src_ptr, dst_ptr, y_ptr, E, C: tl.constexpr, BE: tl.constexpr):
    # An edge sends relu(a of where it ends + b of where it starts); a node keeps the greatest by atomics.
    e, c = tl.program_id(0) * BE + tl.arange(0, BE), tl.arange(0, C)
    ok = (e < E)[:, None]
    src = tl.load(src_ptr + e, mask=e < E, other=0)
    dst = tl.load(dst_ptr + e, mask=e < E, other=0)
    a = tl.load(a_ptr + dst[:, None] * C + c[None, :], mask=ok, other=0.0)
    b = tl.load(b_ptr + src[:, None] * C + c[None, :], mask=ok, other=0.0)
    message = tl.maximum(a + b, 0.0)
    tl.atomic_max(y_ptr + dst[:, None] * C + c[None, :], message, mask=ok & (message > 0.0), sem="relaxed")


@case
def ward_of_edges_that_send_the_greatest(nodes=15_000, edges=160_001):
    c = 64
    a, b, y = f32(nodes, c), f32(nodes, c), zeros(nodes, c, dtype="float32")
    src, dst = ints(0, nodes, edges, dtype="int64"), ints(0, nodes, edges, dtype="int64")
    launched = run(greatest_of_neighbors, (cdiv(edges, 32),), (a, b, src, dst, y, edges), y, C=c, BE=32, num_warps=4)

    def reference():
        message = torch.relu(a[dst] + b[src])
        return torch.zeros_like(y).scatter_reduce(0, dst[:, None].expand(-1, c), message, "amax")

    return against(cleared(launched, y), reference)


@triton.jit
def experts_with_turns_of_gates(
    x_ptr, w_ptr, ws_ptr, bias_ptr, id_ptr, expert_ptr, y_ptr, limit, TOKENS, N, K, TOPK: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):  # fmt: skip
    # Rows sorted by expert times bytes; gates and what they gate take turns in columns, so the product is split, bounded and joined.
    pid_m, pid_n = tl.program_id(1), tl.program_id(0)
    expert = tl.load(expert_ptr + pid_m).to(tl.int64)
    ids = tl.load(id_ptr + pid_m * BM + tl.arange(0, BM))
    ok = ids < TOKENS * TOPK
    n, k = pid_n * BN + tl.arange(0, BN), tl.arange(0, BK)
    x = x_ptr + (ids // TOPK)[:, None] * K + k[None, :]
    w = w_ptr + (expert * N + n)[None, :] * K + k[:, None]
    acc = tl.zeros((BM, BN), tl.float32)
    for _ in range(0, K, BK):
        acc = tl.dot(tl.load(x, mask=ok[:, None], other=0.0), tl.load(w).to(tl.bfloat16), acc)
        x += BK
        w += BK
    acc = acc * tl.load(ws_ptr + expert * N + n)[None, :] + tl.load(bias_ptr + expert * N + n)[None, :]
    gate, up = tl.split(tl.reshape(acc, (BM, BN // 2, 2)))
    gate = tl.minimum(gate, limit)
    up = tl.minimum(tl.maximum(up, -limit), limit)
    y = gate * tl.sigmoid(1.702 * gate) * (up + 1.0)
    half = pid_n * (BN // 2) + tl.arange(0, BN // 2)
    tl.store(y_ptr + ids[:, None] * (N // 2) + half[None, :], y.to(y_ptr.dtype.element_ty), mask=ok[:, None])


@case
def ward_of_experts_whose_gates_take_turns(tokens=900, experts=12, n=1536, k=1024):
    topk, bm = 2, 64
    x, w = rand(tokens, k, dtype="bfloat16"), ints(-127, 128, experts, n, k, dtype="int8")
    ws, bias, y = uniform(experts, n) / 2000, f32(experts, n), zeros(tokens * topk, n // 2, dtype="bfloat16")
    chosen = torch.stack([arange(tokens) * 5 % experts, (arange(tokens) * 5 + 1 + arange(tokens) % 7) % experts], 1).reshape(-1).tolist()
    ids, owners = [], []
    for e in range(experts):
        mine = [i for i, one in enumerate(chosen) if one == e]
        mine += [tokens * topk] * (-len(mine) % bm)
        ids += mine
        owners += [e] * (len(mine) // bm)
    ids, owners = (torch.tensor(one, device="cuda", dtype=torch.int32) for one in (ids, owners))
    args = x, w, ws, bias, ids, owners, y, 7.0, tokens, n, k
    launched = run(experts_with_turns_of_gates, (n // 128, len(owners)), args, y, TOPK=topk, BM=bm, BN=128, BK=64, num_warps=4, num_stages=3)

    def reference():
        out = torch.zeros(tokens * topk, n // 2, device=x.device)
        for e in range(experts):
            mine = torch.tensor([i for i, one in enumerate(chosen) if one == e], device=x.device, dtype=torch.int64)
            z = x[mine // topk].float() @ w[e].float().t() * ws[e] + bias[e]
            gate, up = z[:, ::2].clamp(max=7), z[:, 1::2].clamp(-7, 7)
            out[mine] = gate * torch.sigmoid(1.702 * gate) * (up + 1)
        return out

    return against(launched, reference)


@triton.jit
def varied_lengths_with_sinks(
    q_ptr, k_ptr, v_ptr, sink_ptr, start_ptr, o_ptr, scale, H, HK, WINDOW: tl.constexpr, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr
):  # fmt: skip
    # Sequences lie end to end; each query sees a window behind it, and a sink that takes a part of the mass.
    m0, h, seq = tl.program_id(0) * BM, tl.program_id(1), tl.program_id(2)
    begin = tl.load(start_ptr + seq)
    length = tl.load(start_ptr + seq + 1) - begin
    if m0 >= length:
        return
    i, n, d = m0 + tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, D)
    hk = h // (H // HK)
    row = ((begin + i) * H + h)[:, None] * D + d[None, :]
    q = tl.load(q_ptr + row, mask=(i < length)[:, None], other=0.0)
    sink = tl.load(sink_ptr + h) * 1.44269504
    m = tl.zeros((BM,), tl.float32) + sink
    l = tl.full((BM,), 1.0, tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    first = tl.maximum(m0 - WINDOW + 1, 0) // BN * BN
    for n0 in range(first, tl.minimum(m0 + BM, length), BN):
        j = n0 + n
        at = ((begin + j) * HK + hk) * D
        k = tl.load(k_ptr + at[None, :] + d[:, None], mask=(j < length)[None, :], other=0.0)
        s = tl.dot(q, k) * (scale * 1.44269504)
        away = i[:, None] - j[None, :]
        s = tl.where((away >= 0) & (away < WINDOW), s, -1e30)
        top = tl.maximum(m, tl.max(s, 1))
        p = tl.exp2(s - top[:, None])
        keep = tl.exp2(m - top)
        l = l * keep + tl.sum(p, 1)
        v = tl.load(v_ptr + at[:, None] + d[None, :], mask=(j < length)[:, None], other=0.0)
        acc = tl.dot(p.to(v.dtype), v, acc * keep[:, None])
        m = top
    tl.store(o_ptr + row, (acc / l[:, None]).to(o_ptr.dtype.element_ty), mask=(i < length)[:, None])


@case
def ward_of_sinks_and_windows_over_sequences_end_to_end(lengths=(700, 1, 333, 1500, 64, 902), h=16, hk=2, window=200):
    d, total = 64, sum(lengths)
    q, k, v = rand(total, h, d, dtype="bfloat16"), rand(total, hk, d, dtype="bfloat16"), rand(total, hk, d, dtype="bfloat16")
    starts = [sum(lengths[:i]) for i in range(len(lengths) + 1)]
    sink, o = f32(h), zeros(total, h, d, dtype="bfloat16")
    start = torch.tensor(starts, device="cuda", dtype=torch.int32)
    args = q, k, v, sink, start, o, d**-0.5, h, hk
    launched = run(varied_lengths_with_sinks, (cdiv(max(lengths), 64), h, len(lengths)), args, o, WINDOW=window, D=d, BM=64, BN=64, num_warps=4, num_stages=2)

    def reference():
        outs = []
        for a, b in zip(starts, starts[1:]):
            kk, vv = (x[a:b].float().repeat_interleave(h // hk, 1) for x in (k, v))
            s = torch.einsum("ihd,jhd->hij", q[a:b].float(), kk) * d**-0.5
            away = arange(b - a)[:, None] - arange(b - a)[None, :]
            s = s.masked_fill((away < 0) | (away >= window), float("-inf"))
            s = torch.cat([s, sink[:, None, None].expand(h, b - a, 1)], 2).softmax(2)[..., :-1]
            outs.append(torch.einsum("hij,jhd->ihd", s, vv))
        return torch.cat(outs)

    return against(launched, reference)


@triton.jit
def gated_chunk_with_its_state(q_ptr, k_ptr, v_ptr, g_ptr, s_ptr, o_ptr, scale, T, DK: tl.constexpr, DV: tl.constexpr, BV: tl.constexpr, C: tl.constexpr):
    # Decays of channels are summed down a chunk; queries and keys are scaled by them for what is inside, queries for the state before.
    chunk, bh, d_v = tl.program_id(0), tl.program_id(1), tl.program_id(2) * BV + tl.arange(0, BV)
    i, d = tl.arange(0, C), tl.arange(0, DK)
    t = chunk * C + i
    ok = (t < T)[:, None]
    at = (bh * T + t)[:, None] * DK + d[None, :]
    g = tl.cumsum(tl.load(g_ptr + at, mask=ok, other=0.0), 0)
    q = (tl.load(q_ptr + at, mask=ok, other=0.0).to(tl.float32) * tl.exp(g) * scale).to(tl.bfloat16)
    k = (tl.load(k_ptr + at, mask=ok, other=0.0).to(tl.float32) * tl.exp(-g)).to(tl.bfloat16)
    a = tl.where(i[:, None] >= i[None, :], tl.dot(q, tl.trans(k)), 0.0)
    v_at = (bh * T + t)[:, None] * DV + d_v[None, :]
    v = tl.load(v_ptr + v_at, mask=ok, other=0.0)
    s = tl.load(s_ptr + ((bh * tl.num_programs(0) + chunk) * DK + d)[:, None] * DV + d_v[None, :])
    o = tl.dot(a.to(v.dtype), v)
    o = tl.dot(q, s, o)
    tl.store(o_ptr + v_at, o.to(o_ptr.dtype.element_ty), mask=ok)


@case
def ward_of_gated_chunks_with_states_before_them(bh=24, t=2000):
    dk, dv, c = 64, 128, 64
    chunks = cdiv(t, c)
    q, k, v = rand(bh, t, dk, dtype="bfloat16"), rand(bh, t, dk, dtype="bfloat16"), rand(bh, t, dv, dtype="bfloat16")
    g, s, o = -uniform(bh, t, dk) / 16, rand(bh, chunks, dk, dv, dtype="bfloat16"), zeros(bh, t, dv, dtype="bfloat16")
    args = q, k, v, g, s, o, dk**-0.5, t
    launched = run(gated_chunk_with_its_state, (chunks, bh, dv // 64), args, o, DK=dk, DV=dv, BV=64, C=c, num_warps=4)

    def reference():
        def cut(x):
            return F.pad(x.float(), (0, 0, 0, chunks * c - t)).reshape(bh, chunks, c, -1)

        e = cut(g).cumsum(2)
        qq, kk = cut(q) * e.exp() * dk**-0.5, cut(k) * (-e).exp()
        y = (qq @ kk.transpose(2, 3)).tril() @ cut(v) + qq @ s.float()
        return y.reshape(bh, chunks * c, dv)[:, :t]

    return against(launched, reference)
