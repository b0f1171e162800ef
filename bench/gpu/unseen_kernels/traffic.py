"""Traffic: kernels that mostly move memory, with odd blocks and several outputs, each read once and written where it is wanted."""

import torch
import torch.nn.functional as F
import triton
import triton.language as tl

from .common import against, arange, case, cdiv, cleared, f32, far, far8, ints, rand, run, uniform, viewed, zeros


@triton.jit
def norm_to_bytes_and_more(x_ptr, r_ptr, w_ptr, sum_ptr, code_ptr, scale_ptr, rstd_ptr, zero_ptr, N, B: tl.constexpr):
    # Residual added, normed, and made unsigned bytes of the row's own range: five outputs of two inputs.
    row = tl.program_id(0).to(tl.int64)
    n = tl.arange(0, B)
    ok = n < N
    x = tl.load(x_ptr + row * N + n, mask=ok, other=0.0).to(tl.float32) + tl.load(r_ptr + row * N + n, mask=ok, other=0.0)
    tl.store(sum_ptr + row * N + n, x.to(sum_ptr.dtype.element_ty), mask=ok)
    rstd = 1.0 / tl.sqrt(tl.sum(x * x, 0) / N + 1e-5)
    y = x * rstd * tl.load(w_ptr + n, mask=ok, other=0.0)
    low, high = tl.minimum(tl.min(y, 0), 0.0), tl.maximum(tl.max(y, 0), 0.0)
    scale = (high - low) / 255.0
    zero = tl.floor(-low / scale + 0.5)
    code = tl.minimum(tl.maximum(tl.floor(y / scale + 0.5) + zero, 0.0), 255.0)
    tl.store(code_ptr + row * N + n, code.to(tl.uint8), mask=ok)
    tl.store(scale_ptr + row, scale)
    tl.store(zero_ptr + row, zero.to(tl.int32))
    tl.store(rstd_ptr + row, rstd)


@case
def traffic_of_a_norm_to_bytes_with_zeros_of_rows_of_2900():
    m, n = 6000, 2900
    x, r, w = rand(m, n, dtype="bfloat16"), f32(m, n), uniform(n) + 0.5
    total, code = zeros(m, n, dtype="bfloat16"), zeros(m, n, dtype="uint8")
    scale, rstd, zero = zeros(m, dtype="float32"), zeros(m, dtype="float32"), zeros(m, dtype="int32")
    outs = total, code, scale, rstd, zero
    launched = run(norm_to_bytes_and_more, (m,), (x, r, w, total, code, scale, rstd, zero, n), outs, B=4096, num_warps=8)

    def view(outs):
        return (outs[0], far(outs[1]), *outs[2:4], far(outs[4]))

    def reference():
        s = x.float() + r
        k = (s.square().mean(1, keepdim=True) + 1e-5).rsqrt()
        y = s * k * w
        low, high = y.amin(1, keepdim=True).clamp(max=0), y.amax(1, keepdim=True).clamp(min=0)
        by = (high - low) / 255
        z = torch.floor(-low / by + 0.5)
        return s.bfloat16(), far((torch.floor(y / by + 0.5) + z).clamp(0, 255)), by[:, 0], k[:, 0], far(z[:, 0])

    return against(viewed(launched, view), reference)


@triton.jit
def losses_and_hits(x_ptr, y_ptr, w_ptr, loss_ptr, hit_ptr, rank_ptr, V, ignore, BV: tl.constexpr):
    # Weighted cross entropy with ignored rows, whether the label won, and how many classes are above it.
    row = tl.program_id(0)
    y = tl.load(y_ptr + row)
    if y == ignore:
        tl.store(loss_ptr + row, 0.0)
        tl.store(hit_ptr + row, 0)
        tl.store(rank_ptr + row, -1)
        return
    own = tl.load(x_ptr + row.to(tl.int64) * V + y).to(tl.float32)
    m = own
    total = 0.0
    above = 0
    for v0 in range(0, V, BV):
        v = v0 + tl.arange(0, BV)
        x = tl.load(x_ptr + row.to(tl.int64) * V + v, mask=v < V, other=float("-inf")).to(tl.float32)
        new = tl.maximum(m, tl.max(x, 0))
        total = total * tl.exp(m - new) + tl.sum(tl.exp(x - new), 0)
        above += tl.sum((x > own).to(tl.int32), 0)
        m = new
    tl.store(loss_ptr + row, (m + tl.log(total) - own) * tl.load(w_ptr + y))
    tl.store(hit_ptr + row, (above == 0).to(tl.int8))
    tl.store(rank_ptr + row, above)


@case
def traffic_of_losses_hits_and_ranks_among_32003_classes():
    m, v = 2048, 32003
    x, y, w = rand(m, v, dtype="bfloat16"), ints(0, v, m), uniform(v) + 0.5
    y[::7] = -100
    loss, hit, rank = zeros(m, dtype="float32"), zeros(m, dtype="int8"), zeros(m, dtype="int32")
    launched = run(losses_and_hits, (m,), (x, y, w, loss, hit, rank, v, -100), (loss, hit, rank), BV=2048, num_warps=4)

    def reference():
        at = y.clamp(min=0).long()
        f = x.float()
        above = (f > f.gather(1, at[:, None])).sum(1)
        lost = (f.logsumexp(1) - f.gather(1, at[:, None])[:, 0]) * w[at]
        return torch.where(y < 0, 0.0, lost), torch.where(y < 0, 0, (above == 0).int()), torch.where(y < 0, -1, above)

    return against(launched, reference)


@triton.jit
def turn_a_part(q_ptr, k_ptr, pos_ptr, cos_ptr, sin_ptr, qo_ptr, ko_ptr, QH, KH, D: tl.constexpr, R: tl.constexpr, BH: tl.constexpr):
    # The first 48 of 80 channels of each head turn by halves, the others pass; heads of queries, then those of keys.
    t = tl.program_id(0)
    p = tl.load(pos_ptr + t)
    c, h0 = tl.arange(0, R), tl.arange(0, BH)
    half: tl.constexpr = 24
    cos = tl.load(cos_ptr + p * half + c, mask=c < half, other=0.0)[None, :]
    sin = tl.load(sin_ptr + p * half + c, mask=c < half, other=0.0)[None, :]
    rest = 2 * half + tl.arange(0, 32)
    h = h0
    for at in range(0, QH + KH, BH):
        h = at + h0
        of_q = h < QH
        src = tl.where(of_q, t * QH + h, 0)[:, None] * D
        ksrc = tl.where(of_q, 0, t * KH + h - QH)[:, None] * D
        ok_q = of_q[:, None] & (c < half)[None, :]
        ok_k = ((h >= QH) & (h < QH + KH))[:, None] & (c < half)[None, :]
        a = tl.load(q_ptr + src + c[None, :], mask=ok_q, other=0.0).to(tl.float32) + tl.load(k_ptr + ksrc + c[None, :], mask=ok_k, other=0.0).to(tl.float32)
        b = tl.load(q_ptr + src + half + c[None, :], mask=ok_q, other=0.0).to(tl.float32) + tl.load(k_ptr + ksrc + half + c[None, :], mask=ok_k, other=0.0).to(tl.float32)
        y, z = a * cos - b * sin, b * cos + a * sin
        tl.store(qo_ptr + src + c[None, :], y.to(qo_ptr.dtype.element_ty), mask=ok_q)
        tl.store(qo_ptr + src + half + c[None, :], z.to(qo_ptr.dtype.element_ty), mask=ok_q)
        tl.store(ko_ptr + ksrc + c[None, :], y.to(ko_ptr.dtype.element_ty), mask=ok_k)
        tl.store(ko_ptr + ksrc + half + c[None, :], z.to(ko_ptr.dtype.element_ty), mask=ok_k)
        pass_q, pass_k = of_q[:, None] & (rest < D)[None, :], ((h >= QH) & (h < QH + KH))[:, None] & (rest < D)[None, :]
        tl.store(qo_ptr + src + rest[None, :], tl.load(q_ptr + src + rest[None, :], mask=pass_q), mask=pass_q)
        tl.store(ko_ptr + ksrc + rest[None, :], tl.load(k_ptr + ksrc + rest[None, :], mask=pass_k), mask=pass_k)


@case
def traffic_of_heads_of_80_of_which_48_turn():
    t, qh, kh, d, places = 6000, 20, 5, 80, 4096
    q, k, pos = rand(t, qh, d), rand(t, kh, d), ints(0, places, t)
    angle = uniform(places, 24) * 6
    cos, sin = angle.cos(), angle.sin()
    qo, ko = zeros(t, qh, d), zeros(t, kh, d)
    launched = run(turn_a_part, (t,), (q, k, pos, cos, sin, qo, ko, qh, kh), (qo, ko), D=d, R=32, BH=8, num_warps=2)

    def reference():
        c, s = cos[pos.long()][:, None], sin[pos.long()][:, None]

        def turned(x):
            a, b = x[..., :24].float(), x[..., 24:48].float()
            return torch.cat([a * c - b * s, b * c + a * s, x[..., 48:].float()], 2)

        return turned(q), turned(k)

    return against(launched, reference)


@triton.jit
def axes_of_five_moved(x_ptr, y_ptr, A, B, C, D, E, BX: tl.constexpr):
    # (A, B, C, D, E) to (D, A, E, C, B), with places of the source from flat places of the target by four divisions.
    at = tl.program_id(0) * BX + tl.arange(0, BX)
    total = A * B * C * D * E
    b = at % B
    c = at // B % C
    e = at // (B * C) % E
    a = at // (B * C * E) % A
    d = at // (B * C * E * A)
    x = tl.load(x_ptr + (((a * B + b) * C + c) * D + d) * E + e, mask=at < total)
    tl.store(y_ptr + at, x, mask=at < total)


@case
def traffic_of_five_axes_moved_by_divisions():
    a, b, c, d, e = 9, 33, 21, 35, 18
    x = rand(a, b, c, d, e)
    y = zeros(d, a, e, c, b)
    launched = run(axes_of_five_moved, (cdiv(x.numel(), 1024),), (x, y, a, b, c, d, e), y, BX=1024, num_warps=8)
    return against(launched, lambda: x.permute(3, 0, 4, 2, 1))


@triton.jit
def signs_with_two_copies(p_ptr, g_ptr, m_ptr, low_ptr, ema_ptr, po_ptr, mo_ptr, norm_ptr, N, lr, b1, b2, decay, clip, B: tl.constexpr):
    # A step by signs smoothed around zero; a short copy, an average of weights and the squared step of a block are made at once.
    n = tl.program_id(0) * B + tl.arange(0, B)
    ok = n < N
    g = tl.load(g_ptr + n, mask=ok, other=0.0).to(tl.float32)
    g = tl.minimum(tl.maximum(g, -clip), clip)
    m = tl.load(m_ptr + n, mask=ok, other=0.0).to(tl.float32)
    p = tl.load(p_ptr + n, mask=ok, other=0.0)
    c = b1 * m + (1.0 - b1) * g
    step = lr * (c / (tl.abs(c) + 1e-3) + decay * p)
    new = p - step
    tl.store(po_ptr + n, new, mask=ok)
    tl.store(mo_ptr + n, (b2 * m + (1.0 - b2) * g).to(mo_ptr.dtype.element_ty), mask=ok)
    tl.store(low_ptr + n, new.to(low_ptr.dtype.element_ty), mask=ok)
    ema = tl.load(ema_ptr + n, mask=ok, other=0.0)
    tl.store(ema_ptr + N + n, ema + 0.01 * (new - ema), mask=ok)
    tl.store(norm_ptr + tl.program_id(0), tl.sum(tl.where(ok, step * step, 0.0), 0))


@case
def traffic_of_a_step_by_soft_signs_with_copies():
    n, b = 3_000_017, 1024
    p, g, m = f32(n), rand(n, dtype="bfloat16"), rand(n, dtype="bfloat16")
    ema = f32(2, n)
    po, mo, low, norm = zeros(n, dtype="float32"), zeros(n, dtype="bfloat16"), zeros(n, dtype="bfloat16"), zeros(cdiv(n, b), dtype="float32")
    args = p, g, m, low, ema, po, mo, norm, n, 0.01, 0.9, 0.98, 0.1, 1.0
    launched = run(signs_with_two_copies, (cdiv(n, b),), args, (po, mo, low, ema, norm), B=b, num_warps=2)

    def reference():
        gg = g.float().clamp(-1, 1)
        c = 0.9 * m.float() + 0.1 * gg
        step = 0.01 * (c / (c.abs() + 1e-3) + 0.1 * p)
        new = p - step
        sums = F.pad(step * step, (0, -n % b)).reshape(-1, b).sum(1)
        return new, 0.98 * m.float() + 0.02 * gg, new, torch.stack([ema[0], ema[0] + 0.01 * (new - ema[0])]), sums

    return against(launched, reference)


@triton.jit
def two_layouts_of_fp8(x_ptr, y_ptr, yt_ptr, s_ptr, st_ptr, M, N, BM: tl.constexpr, BN: tl.constexpr):
    # FP8 for a product and for its gradients: rows in groups of 64 columns, and turned, columns in groups of 64 rows.
    m, n = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    ok = (m < M)[:, None] & (n < N)[None, :]
    x = tl.load(x_ptr + m[:, None] * N + n[None, :], mask=ok, other=0.0).to(tl.float32)
    rows = tl.maximum(tl.max(tl.abs(x), 1), 1e-4) / 448.0
    columns = tl.maximum(tl.max(tl.abs(x), 0), 1e-4) / 448.0
    tl.store(y_ptr + m[:, None] * N + n[None, :], (x / rows[:, None]).to(tl.float8e4nv), mask=ok)
    tl.store(yt_ptr + n[:, None] * M + m[None, :], tl.trans((x / columns[None, :]).to(tl.float8e4nv)), mask=tl.trans(ok))
    tl.store(s_ptr + m * tl.num_programs(1) + tl.program_id(1), rows, mask=m < M)
    tl.store(st_ptr + n * tl.num_programs(0) + tl.program_id(0), columns, mask=n < N)


@case
def traffic_of_fp8_in_rows_and_turned_in_columns():
    m, n = 4000, 3000
    x = rand(m, n, dtype="bfloat16")
    y, yt = zeros(m, n, dtype="float8_e4m3fn"), zeros(n, m, dtype="float8_e4m3fn")
    s, st = zeros(m, cdiv(n, 64), dtype="float32"), zeros(n, cdiv(m, 64), dtype="float32")
    launched = run(two_layouts_of_fp8, (cdiv(m, 64), cdiv(n, 64)), (x, y, yt, s, st, m, n), (y, yt, s, st), BM=64, BN=64, num_warps=4)

    def scaled(z):
        rows, columns = z.shape
        groups = F.pad(z.float(), (0, -columns % 64)).reshape(rows, -1, 64)
        by = groups.abs().amax(2).clamp(min=1e-4) / 448
        return far8((groups / by[..., None]).to(torch.float8_e4m3fn).reshape(rows, -1)[:, :columns]), by

    def reference():
        (y, s), (yt, st) = scaled(x), scaled(x.t())
        return y, yt, s, st

    return against(viewed(launched, lambda outs: (far8(outs[0]), far8(outs[1]), outs[2], outs[3])), reference)


@triton.jit
def norm_backward_in_strips(dy_ptr, x_ptr, w_ptr, mean_ptr, rstd_ptr, dx_ptr, dw_ptr, db_ptr, M, N, STRIP, BM: tl.constexpr, BN: tl.constexpr):
    # Two rows at a time of a strip of rows; sums for weight and bias stay in registers for the strip.
    n, r = tl.arange(0, BN), tl.arange(0, BM)
    okn = n < N
    w = tl.load(w_ptr + n, mask=okn, other=0.0)
    dw = tl.zeros((BM, BN), tl.float32)
    db = tl.zeros((BM, BN), tl.float32)
    first = tl.program_id(0) * STRIP
    for m0 in range(first, tl.minimum(first + STRIP, M), BM):
        m = m0 + r
        ok = (m < tl.minimum(first + STRIP, M))[:, None] & okn[None, :]
        at = m[:, None] * N + n[None, :]
        dy = tl.load(dy_ptr + at, mask=ok, other=0.0).to(tl.float32)
        mean = tl.load(mean_ptr + m, mask=m < M, other=0.0)
        rstd = tl.load(rstd_ptr + m, mask=m < M, other=0.0)
        x = tl.where(ok, (tl.load(x_ptr + at, mask=ok, other=0.0).to(tl.float32) - mean[:, None]) * rstd[:, None], 0.0)
        g = dy * w[None, :]
        dx = (g - (tl.sum(g, 1) / N)[:, None] - x * (tl.sum(g * x, 1) / N)[:, None]) * rstd[:, None]
        tl.store(dx_ptr + at, dx.to(dx_ptr.dtype.element_ty), mask=ok)
        dw += dy * x
        db += dy
    tl.store(dw_ptr + tl.program_id(0) * N + n, tl.sum(dw, 0), mask=okn)
    tl.store(db_ptr + tl.program_id(0) * N + n, tl.sum(db, 0), mask=okn)


@case
def traffic_back_through_a_norm_two_rows_at_a_time():
    m, n, strip = 9000, 960, 30
    dy, x, w = rand(m, n), rand(m, n) + 1, uniform(n) + 0.5
    mean, rstd = x.float().mean(1), x.float().var(1, correction=0).rsqrt()
    dx, dw, db = zeros(m, n), zeros(m // strip, n, dtype="float32"), zeros(m // strip, n, dtype="float32")
    args = dy, x, w, mean, rstd, dx, dw, db, m, n, strip
    launched = run(norm_backward_in_strips, (m // strip,), args, (dx, dw, db), BM=2, BN=1024, num_warps=4, num_stages=2)

    def reference():
        h = (x.float() - mean[:, None]) * rstd[:, None]
        g = dy.float() * w
        d = (g - g.mean(1, keepdim=True) - h * (g * h).mean(1, keepdim=True)) * rstd[:, None]
        return d, (dy.float() * h).reshape(-1, strip, n).sum(1), dy.float().reshape(-1, strip, n).sum(1)

    return against(launched, reference)


@triton.jit
def trits_five_a_byte(x_ptr, byte_ptr, scale_ptr, N: tl.constexpr):
    # Weights as -1, 0 and 1 by the mean of magnitudes of 1,280: five neighbors a byte in base three, by a sum over an axis of eight.
    group = tl.program_id(0)
    b, i = tl.arange(0, 256), tl.arange(0, 8)
    at = b[:, None] * 5 + i[None, :]
    ok = (i < 5)[None, :] & (b < N // 5)[:, None]
    x = tl.load(x_ptr + group * N + at, mask=ok, other=0.0).to(tl.float32)
    scale = tl.sum(tl.sum(tl.abs(x), 1), 0) / N
    t = tl.where(x > 0.5 * scale, 2, tl.where(x < -0.5 * scale, 0, 1))
    power = tl.where(i == 0, 1, tl.where(i == 1, 3, tl.where(i == 2, 9, tl.where(i == 3, 27, 81))))
    packed = tl.sum(tl.where(ok, t * power[None, :], 0), 1)
    tl.store(byte_ptr + group * (N // 5) + b, packed.to(tl.uint8), mask=b < N // 5)
    tl.store(scale_ptr + group, scale)


@case
def traffic_of_trits_five_a_byte():
    g, n = 9000, 1280
    x = rand(g, n)
    packed, scale = zeros(g, n // 5, dtype="uint8"), zeros(g, dtype="float32")
    launched = run(trits_five_a_byte, (g,), (x, packed, scale), (packed, scale), N=n, num_warps=4)

    def view(outs):
        digits = torch.stack([outs[0].int() // 3**i % 3 for i in range(5)], 2)
        return far(digits), outs[1]

    def reference():
        s = x.float().abs().mean(1, keepdim=True)
        t = torch.where(x.float() > 0.5 * s, 2, torch.where(x.float() < -0.5 * s, 0, 1))
        return far(t.reshape(g, n // 5, 5)), s[:, 0]

    return against(viewed(launched, view), reference)


@triton.jit
def two_best_and_loads(x_ptr, bias_ptr, which_ptr, weight_ptr, load_ptr, prob_ptr, M, E: tl.constexpr, BM: tl.constexpr):
    # Two of 48 experts by logits with a bias that only steers; loads by atomics of a tile's counts, probabilities summed a tile.
    m, e = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, 64)
    ok = (m < M)[:, None] & (e < E)[None, :]
    x = tl.load(x_ptr + m[:, None] * E + e[None, :], mask=ok, other=0.0).to(tl.float32)
    p = tl.where(ok, tl.sigmoid(x), 0.0)
    s = tl.where(ok, x + tl.load(bias_ptr + e, mask=e < E, other=0.0)[None, :], -1e9)
    _, one = tl.max(s, 1, return_indices=True)
    s = tl.where(e[None, :] == one[:, None], -2e9, s)
    _, two = tl.max(s, 1, return_indices=True)
    first, second = e[None, :] == one[:, None], e[None, :] == two[:, None]
    a, b = tl.sum(tl.where(first, p, 0.0), 1), tl.sum(tl.where(second, p, 0.0), 1)
    tl.store(which_ptr + m * 2, one.to(tl.int16), mask=m < M)
    tl.store(which_ptr + m * 2 + 1, two.to(tl.int16), mask=m < M)
    tl.store(weight_ptr + m * 2, a / (a + b), mask=m < M)
    tl.store(weight_ptr + m * 2 + 1, b / (a + b), mask=m < M)
    tl.atomic_add(load_ptr + e, tl.sum(((first | second) & ok).to(tl.int32), 0), mask=e < E)
    tl.store(prob_ptr + tl.program_id(0) * E + e, tl.sum(p, 0), mask=e < E)


@case
def traffic_of_two_of_48_experts_steered_by_a_bias():
    m, e = 50000, 48
    x, bias = f32(m, e), f32(e) / 10
    which, weight = zeros(m, 2, dtype="int16"), zeros(m, 2, dtype="float32")
    load, prob = zeros(e, dtype="int32"), zeros(cdiv(m, 64), e, dtype="float32")
    launched = run(two_best_and_loads, (cdiv(m, 64),), (x, bias, which, weight, load, prob, m), (which, weight, load, prob), E=e, BM=64, num_warps=4)

    def reference():
        p = x.sigmoid()
        at = (x + bias).topk(2, 1).indices
        w = p.gather(1, at)
        sums = F.pad(p, (0, 0, 0, -m % 64)).reshape(-1, 64, e).sum(1)
        return far(at), w / w.sum(1, keepdim=True), at.flatten().bincount(minlength=e), sums

    cleared_ = cleared(launched, load)
    return against(viewed(cleared_, lambda outs: (far(outs[0]), *outs[1:])), reference)


@triton.jit
def _greater(v, i, w, j):
    more = (w > v) | ((w == v) & (j < i))
    return tl.where(more, w, v), tl.where(more, j, i)


@triton.jit
def records_so_far(x_ptr, best_ptr, where_ptr, drop_ptr, T, N, BT: tl.constexpr, BN: tl.constexpr):
    # The highest so far, when it was, and the deepest fall from it, of columns of prices; blocks of 128 steps by scans.
    n, r = tl.program_id(0) * BN + tl.arange(0, BN), tl.arange(0, BT)
    best = tl.full((BN,), float("-inf"), tl.float32)
    when = tl.zeros((BN,), tl.int32)
    drop = tl.zeros((BN,), tl.float32)
    for t0 in range(0, T, BT):
        t = t0 + r
        ok = (t < T)[:, None] & (n < N)[None, :]
        x = tl.load(x_ptr + t[:, None] * N + n[None, :], mask=ok, other=float("-inf"))
        v, i = tl.associative_scan((x, tl.broadcast_to(t[:, None], (BT, BN))), 0, _greater)
        old = best[None, :] >= v
        i = tl.where(old, when[None, :], i)
        v = tl.where(old, best[None, :], v)
        tl.store(best_ptr + t[:, None] * N + n[None, :], v, mask=ok)
        tl.store(where_ptr + t[:, None] * N + n[None, :], i, mask=ok)
        drop = tl.maximum(drop, tl.max(tl.where(ok, v - x, 0.0), 0))
        best = tl.max(v, 0)
        when = tl.max(i, 0)
    tl.store(drop_ptr + n, drop, mask=n < N)


@case
def traffic_of_records_so_far_and_deepest_falls():
    t, n = 1500, 5000
    x = f32(t, n).cumsum(0)
    best, when, drop = zeros(t, n, dtype="float32"), zeros(t, n, dtype="int32"), zeros(n, dtype="float32")
    launched = run(records_so_far, (cdiv(n, 32),), (x, best, when, drop, t, n), (best, when, drop), BT=128, BN=32, num_warps=8)

    def reference():
        v, i = x.cummax(0)
        return v, i, (v - x).amax(0)

    return against(launched, reference)


@triton.jit
def twice_as_wide(x_ptr, y_ptr, H, W, BH: tl.constexpr, BW: tl.constexpr):
    # Planes twice as large, bilinear: four new pixels from nine old ones, columns woven by joins, rows stored apart.
    h, w = tl.program_id(1) * BH + tl.arange(0, BH), tl.program_id(2) * BW + tl.arange(0, BW)
    plane = tl.program_id(0) * H * W
    up, down = tl.maximum(h - 1, 0), tl.minimum(h + 1, H - 1)
    left, right = tl.maximum(w - 1, 0), tl.minimum(w + 1, W - 1)
    ok = (h < H)[:, None] & (w < W)[None, :]
    at = x_ptr + plane + w[None, :]
    a = tl.load(x_ptr + plane + up[:, None] * W + left[None, :], mask=ok, other=0.0).to(tl.float32)
    b = tl.load(at + up[:, None] * W, mask=ok, other=0.0).to(tl.float32)
    c = tl.load(x_ptr + plane + up[:, None] * W + right[None, :], mask=ok, other=0.0).to(tl.float32)
    d = tl.load(x_ptr + plane + h[:, None] * W + left[None, :], mask=ok, other=0.0).to(tl.float32)
    e = tl.load(at + h[:, None] * W, mask=ok, other=0.0).to(tl.float32)
    f = tl.load(x_ptr + plane + h[:, None] * W + right[None, :], mask=ok, other=0.0).to(tl.float32)
    g = tl.load(x_ptr + plane + down[:, None] * W + left[None, :], mask=ok, other=0.0).to(tl.float32)
    i = tl.load(at + down[:, None] * W, mask=ok, other=0.0).to(tl.float32)
    j = tl.load(x_ptr + plane + down[:, None] * W + right[None, :], mask=ok, other=0.0).to(tl.float32)
    above = tl.join(0.25 * (0.25 * a + 0.75 * b) + 0.75 * (0.25 * d + 0.75 * e), 0.25 * (0.75 * b + 0.25 * c) + 0.75 * (0.75 * e + 0.25 * f))
    below = tl.join(0.75 * (0.25 * d + 0.75 * e) + 0.25 * (0.25 * g + 0.75 * i), 0.75 * (0.75 * e + 0.25 * f) + 0.25 * (0.75 * i + 0.25 * j))
    wide = tl.program_id(2) * 2 * BW + tl.arange(0, 2 * BW)
    out = y_ptr + 4 * plane + (2 * h)[:, None] * (2 * W) + wide[None, :]
    ok = (h < H)[:, None] & (wide < 2 * W)[None, :]
    tl.store(out, tl.reshape(above, (BH, 2 * BW)).to(y_ptr.dtype.element_ty), mask=ok)
    tl.store(out + 2 * W, tl.reshape(below, (BH, 2 * BW)).to(y_ptr.dtype.element_ty), mask=ok)


@case
def traffic_of_planes_twice_as_large_woven_by_joins():
    p, h, w = 96, 70, 150
    x = rand(p, h, w)
    y = zeros(p, 2 * h, 2 * w)
    launched = run(twice_as_wide, (p, cdiv(h, 8), cdiv(w, 64)), (x, y, h, w), y, BH=8, BW=64, num_warps=4)
    return against(launched, lambda: F.interpolate(x.float()[None], scale_factor=2, mode="bilinear", align_corners=False)[0])


@triton.jit
def ranks_by_pairs(x_ptr, rank_ptr, sorted_ptr, tie_ptr, N: tl.constexpr, B: tl.constexpr, C: tl.constexpr):
    # Ranks of 500 by comparing all pairs, 32 at a time; then each goes where its rank says, and ties are counted.
    row = tl.program_id(0)
    i = tl.arange(0, B)
    x = tl.load(x_ptr + row * N + i, mask=i < N, other=0)
    rank = tl.zeros((B,), tl.int32)
    tie = tl.zeros((B,), tl.int32)
    for j0 in range(0, N, C):
        j = j0 + tl.arange(0, C)
        y = tl.load(x_ptr + row * N + j, mask=j < N, other=32767)
        before = (y[None, :] < x[:, None]) | ((y[None, :] == x[:, None]) & (j[None, :] < i[:, None]))
        rank += tl.sum((before & (j < N)[None, :]).to(tl.int32), 1)
        tie += tl.sum(((y[None, :] == x[:, None]) & (j < N)[None, :]).to(tl.int32), 1)
    tl.store(rank_ptr + row * N + i, rank.to(tl.int16), mask=i < N)
    tl.store(sorted_ptr + row * N + rank, x, mask=i < N)
    tl.store(tie_ptr + row, tl.max(tl.where(i < N, tie, 0), 0).to(tl.int16))


@case
def traffic_of_ranks_of_500_short_integers_by_pairs():
    m, n = 2000, 500
    x = ints(-300, 300, m, n, dtype="int16")
    rank, ordered, tie = zeros(m, n, dtype="int16"), zeros(m, n, dtype="int16"), zeros(m, dtype="int16")
    launched = run(ranks_by_pairs, (m,), (x, rank, ordered, tie), (rank, ordered, tie), N=n, B=512, C=32, num_warps=8)

    def reference():
        s, at = x.sort(dim=1, stable=True)
        r = torch.empty_like(at).scatter_(1, at, arange(n, dtype="int64").expand(m, n))
        return r, s, torch.stack([(x == v).sum(1) for v in range(-300, 300)]).amax(0)

    return against(launched, reference)


@triton.jit
def lengths_to_masks_and_places(len_ptr, tok_ptr, flat_ptr, pos_ptr, seq_ptr, start_ptr, L, PAD, B: tl.constexpr):
    # Padded rows of tokens closed up: each program sums the lengths before its own, then copies, numbers and names them.
    s = tl.program_id(0)
    before = tl.arange(0, 1024)
    start = tl.sum(tl.load(len_ptr + before, mask=before < s, other=0), 0)
    length = tl.load(len_ptr + s)
    tl.store(start_ptr + s, start)
    for t0 in range(0, length, B):
        t = t0 + tl.arange(0, B)
        ok = t < length
        token = tl.load(tok_ptr + s * L + t, mask=ok, other=0)
        token = tl.where(token == PAD, 0, token)
        tl.store(flat_ptr + start + t, token, mask=ok)
        tl.store(pos_ptr + start + t, (length - 1 - t).to(tl.int16), mask=ok)
        tl.store(seq_ptr + start + t, s.to(tl.int16), mask=ok)


@case
def traffic_of_padded_rows_closed_up_numbered_and_named():
    n, longest = 1000, 3000
    lengths, tokens = ints(1, longest, n), ints(0, 50000, n, longest, dtype="int64")
    total = n * longest
    flat, pos, seq, start = zeros(total, dtype="int64"), zeros(total, dtype="int16"), zeros(total, dtype="int16"), zeros(n, dtype="int32")
    launched = run(lengths_to_masks_and_places, (n,), (lengths, tokens, flat, pos, seq, start, longest, 7), (flat, pos, seq, start), B=512, num_warps=4)

    def reference():
        t = arange(longest)[None, :]
        ok = t < lengths[:, None]
        fill = lambda x: F.pad(x[ok], (0, total - int(ok.sum())))  # noqa: E731
        of = arange(n)[:, None].expand(n, longest)
        return fill(torch.where(tokens == 7, 0, tokens)), fill(lengths[:, None] - 1 - t), fill(of), lengths.cumsum(0) - lengths

    return against(launched, reference)


@triton.jit
def bits_to_masked_means(bit_ptr, x_ptr, mean_ptr, count_ptr, kept_ptr, M, N, BM: tl.constexpr, BN: tl.constexpr):
    # A bit an element says what counts: values where it is set and zero else, counts and means of rows of 3 x 1,000.
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    total = tl.zeros((BM,), tl.float32)
    count = tl.zeros((BM,), tl.int32)
    for n0 in range(0, N, BN):
        n = n0 + tl.arange(0, BN)
        ok = (m < M)[:, None] & (n < N)[None, :]
        word = tl.load(bit_ptr + m[:, None] * (N // 8) + n[None, :] // 8, mask=ok, other=0).to(tl.int32)
        set_ = ((word >> (n % 8)[None, :]) & 1) == 1
        x = tl.load(x_ptr + m[:, None] * N + n[None, :], mask=ok & set_, other=0.0)
        tl.store(kept_ptr + m[:, None] * N + n[None, :], x, mask=ok)
        total += tl.sum(x.to(tl.float32), 1)
        count += tl.sum((set_ & ok).to(tl.int32), 1)
    tl.store(mean_ptr + m, total / tl.maximum(count, 1), mask=m < M)
    tl.store(count_ptr + m, count, mask=m < M)


@case
def traffic_of_elements_kept_by_bits_of_bytes():
    m, n = 3001, 3000
    bits, x = ints(0, 256, m, n // 8, dtype="uint8"), rand(m, n) + 2
    mean, count, kept = zeros(m, dtype="float32"), zeros(m, dtype="int32"), zeros(m, n)
    launched = run(bits_to_masked_means, (cdiv(m, 4),), (bits, x, mean, count, kept, m, n), (mean, count, kept), BM=4, BN=512, num_warps=4)

    def reference():
        b = ((bits[:, :, None].int() >> arange(8)) & 1).reshape(m, n)
        return (x.float() * b).sum(1) / b.sum(1).clamp(min=1), b.sum(1), x * b

    return against(launched, reference)


@triton.jit
def bars_of_three_channels(x_ptr, edge_ptr, bar_ptr, low_ptr, high_ptr, P, BP: tl.constexpr, BINS: tl.constexpr):
    # Bars of pixels' three channels between edges of an image's own, a program a channel and strip, and its extremes by atomics.
    image, channel, strip = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    low = tl.load(edge_ptr + image * 2)
    by = BINS / (tl.load(edge_ptr + image * 2 + 1) - low)
    bars = tl.zeros((BINS,), tl.int32)
    least = float("inf")
    most = float("-inf")
    for p0 in range(0, 4 * BP, BP):
        p = strip * 4 * BP + p0 + tl.arange(0, BP)
        x = tl.load(x_ptr + (image * P + p) * 3 + channel, mask=p < P, other=0.0).to(tl.float32)
        bin = tl.minimum(tl.maximum(tl.floor((x - low) * by).to(tl.int32), 0), BINS - 1)
        bars += tl.histogram(bin, BINS, mask=p < P)
        least = tl.minimum(least, tl.min(tl.where(p < P, x, float("inf")), 0))
        most = tl.maximum(most, tl.max(tl.where(p < P, x, float("-inf")), 0))
    tl.atomic_add(bar_ptr + (image * 3 + channel) * BINS + tl.arange(0, BINS), bars, sem="relaxed")
    tl.atomic_min(low_ptr + image * 3 + channel, least)
    tl.atomic_max(high_ptr + image * 3 + channel, most)


@case
def traffic_of_bars_between_edges_of_an_images_own():
    n, p = 40, 90_000
    x = rand(n, p, 3)
    edge = torch.stack([-uniform(n) - 1.5, uniform(n) + 1.5], 1)
    bars, low, high = zeros(n, 3, 64, dtype="int32"), zeros(n, 3, dtype="float32"), zeros(n, 3, dtype="float32")
    launched = run(bars_of_three_channels, (n, 3, cdiv(p, 8192)), (x, edge, bars, low, high, p), (bars, low, high), BP=2048, BINS=64, num_warps=8)

    def reference():
        z = x.float().permute(0, 2, 1)
        at = torch.floor((z - edge[:, 0, None, None]) * (64 / (edge[:, 1] - edge[:, 0]))[:, None, None]).clamp(0, 63).long()
        return torch.zeros(n, 3, 64, device=x.device).scatter_add_(2, at, torch.ones_like(z)), z.amin(2), z.amax(2)

    return against(cleared(launched, bars, low, high), reference)
