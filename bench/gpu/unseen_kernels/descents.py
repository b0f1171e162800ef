"""Descents: steps that optimizers seldom take, and gradients that are made with what leads to them or with the step that follows."""

import torch
import torch.nn.functional as F
import triton
import triton.language as tl

from .common import PROGRAMS, against, arange, case, cdiv, cleared, f32, far, full, ints, rand, run, uniform, viewed, zeros


@triton.jit
def cautious_signs(p_ptr, g_ptr, m_ptr, s_ptr, po_ptr, mo_ptr, so_ptr, N, lr, decay, b1, b2, ROWS: tl.constexpr, B: tl.constexpr):
    # Signs of a momentum kept as bytes of blocks; steps against their gradient are left out and the others made longer.
    block = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    at = block[:, None] * B + tl.arange(0, B)[None, :]
    ok = at < N
    p = tl.load(p_ptr + at, mask=ok, other=0.0).to(tl.float32)
    g = tl.load(g_ptr + at, mask=ok, other=0.0).to(tl.float32)
    there = block * B < N
    m = tl.load(m_ptr + at, mask=ok, other=0).to(tl.float32) * tl.load(s_ptr + block, mask=there, other=0.0)[:, None]
    u = b1 * m + (1.0 - b1) * g
    u = (u > 0.0).to(tl.float32) - (u < 0.0).to(tl.float32)
    agree = (u * g > 0.0).to(tl.float32)
    share = tl.sum(agree, 1) / B
    u = u * agree / tl.maximum(share, 1e-3)[:, None]
    tl.store(po_ptr + at, (p * (1.0 - lr * decay) - lr * u).to(po_ptr.dtype.element_ty), mask=ok)
    m = b2 * m + (1.0 - b2) * g
    scale = tl.maximum(tl.max(tl.abs(m), 1), 1e-12) / 127.0
    tl.store(mo_ptr + at, tl.floor(m / scale[:, None] + 0.5).to(tl.int8), mask=ok)
    tl.store(so_ptr + block, scale, mask=there)


@case
def descent_by_cautious_signs_with_momentum_of_bytes(n=20_000_001):
    b = 256
    blocks = cdiv(n, b)
    p, g = rand(n, dtype="bfloat16"), rand(n, dtype="bfloat16")
    m, s = ints(-127, 128, n, dtype="int8"), uniform(blocks) / 100 + 0.001
    po, mo, so = zeros(n, dtype="bfloat16"), zeros(n, dtype="int8"), zeros(blocks, dtype="float32")
    args = p, g, m, s, po, mo, so, n, 0.02, 0.1, 0.9, 0.99
    launched = run(cautious_signs, (cdiv(blocks, 8),), args, (po, mo, so), ROWS=8, B=b, num_warps=4)

    def reference():
        def blocked(x):
            return F.pad(x.float(), (0, blocks * b - n)).reshape(blocks, b)

        w, y, old = blocked(p), blocked(g), blocked(m) * s[:, None]
        u = torch.sign(0.9 * old + 0.1 * y)
        agree = (u * y > 0).float()
        u = u * agree / agree.mean(1, keepdim=True).clamp(min=1e-3)
        new = 0.99 * old + 0.01 * y
        scale = new.abs().amax(1).clamp(min=1e-12) / 127
        codes = torch.floor(new / scale[:, None] + 0.5)
        return (w * (1 - 0.002) - 0.02 * u).reshape(-1)[:n], far(codes.reshape(-1)[:n]), scale

    return against(viewed(launched, lambda outs: (outs[0], far(outs[1]), outs[2])), reference)


@triton.jit
def covered_step(w_ptr, g_ptr, r_ptr, c_ptr, wo_ptr, ro_ptr, co_ptr, M, N, lr, BM: tl.constexpr, BN: tl.constexpr):
    # The lesser of what covers a row and a column, plus the square; new covers are the largest sums of rows and columns.
    m, n = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    ok = (m < M)[:, None] & (n < N)[None, :]
    at = m[:, None] * N + n[None, :]
    g = tl.load(g_ptr + at, mask=ok, other=0.0).to(tl.float32)
    r, c = tl.load(r_ptr + m, mask=m < M, other=0.0), tl.load(c_ptr + n, mask=n < N, other=0.0)
    sums = tl.where(ok, tl.minimum(r[:, None], c[None, :]) + g * g, 0.0)
    w = tl.load(w_ptr + at, mask=ok, other=0.0)
    tl.store(wo_ptr + at, w - lr * g * tl.rsqrt(sums + 1e-10), mask=ok)
    tl.atomic_max(ro_ptr + m, tl.max(sums, 1), mask=m < M)
    tl.atomic_max(co_ptr + n, tl.max(sums, 0), mask=n < N)


@case
def descent_with_covers_of_rows_and_columns(m=3000, n=4300):
    w, g, r, c = f32(m, n), rand(m, n, dtype="bfloat16"), uniform(m) + 0.1, uniform(n) + 0.1
    wo, ro, co = zeros(m, n, dtype="float32"), zeros(m, dtype="float32"), zeros(n, dtype="float32")
    args = w, g, r, c, wo, ro, co, m, n, 0.1
    launched = run(covered_step, (cdiv(m, 32), cdiv(n, 128)), args, (wo, ro, co), BM=32, BN=128, num_warps=4)

    def reference():
        sums = torch.minimum(r[:, None], c[None, :]) + g.float().square()
        return w - 0.1 * g.float() * (sums + 1e-10).rsqrt(), sums.amax(1), sums.amax(0)

    return against(cleared(launched, ro, co), reference)


@triton.jit
def two_sided_step(w_ptr, g_ptr, m_ptr, left_ptr, right_ptr, wo_ptr, mo_ptr, fit_ptr, N, lr, beta, B: tl.constexpr):
    # A block of the gradient between inverses of two factors, into a momentum; how far it goes along the gradient is kept.
    i, j, b = tl.program_id(0), tl.program_id(1), tl.arange(0, B)
    square = b[:, None] * B + b[None, :]
    at = (i * B + b)[:, None] * N + (j * B + b)[None, :]
    g = tl.load(g_ptr + at)
    left, right = tl.load(left_ptr + i * B * B + square), tl.load(right_ptr + j * B * B + square)
    step = tl.dot(tl.dot(left, g, input_precision="tf32"), right, input_precision="tf32")
    m = beta * tl.load(m_ptr + at) + step
    tl.store(mo_ptr + at, m)
    tl.store(wo_ptr + at, tl.load(w_ptr + at) - lr * m)
    tl.store(fit_ptr + i * tl.num_programs(1) + j, tl.sum(tl.sum(tl.abs(step * g), 1), 0))


@case
def descent_between_inverses_of_two_factors(m=2048, n=2560):
    b = 64
    w, g, old = f32(m, n), f32(m, n), f32(m, n)
    left, right = f32(m // b, b, b) / 8, f32(n // b, b, b) / 8
    wo, mo, fit = zeros(m, n, dtype="float32"), zeros(m, n, dtype="float32"), zeros(m // b, n // b, dtype="float32")
    args = w, g, old, left, right, wo, mo, fit, n, 0.1, 0.9
    launched = run(two_sided_step, (m // b, n // b), args, (wo, mo, fit), B=b, num_warps=4)

    def reference():
        tiles = g.reshape(m // b, b, n // b, b).transpose(1, 2)
        step = left[:, None] @ tiles @ right[None]
        new = 0.9 * old + step.transpose(1, 2).reshape(m, n)
        return w - 0.1 * new, new, (step * tiles).abs().sum((2, 3))

    return against(launched, reference)


@triton.jit
def norm_gradients_from_results(y_ptr, dy_ptr, w_ptr, b_ptr, rstd_ptr, res_ptr, dx_ptr, dw_ptr, db_ptr, M, N, B: tl.constexpr):
    # Inputs of the norm were not kept: its results are taken back through the affine part. Each program stays for many rows.
    n = tl.arange(0, B)
    ok = n < N
    w, b = tl.load(w_ptr + n, mask=ok, other=1.0), tl.load(b_ptr + n, mask=ok, other=0.0)
    dw, db = tl.zeros((B,), tl.float32), tl.zeros((B,), tl.float32)
    for row in range(tl.program_id(0), M, tl.num_programs(0)):
        at = row * N + n
        hat = (tl.load(y_ptr + at, mask=ok, other=0.0).to(tl.float32) - b) / w
        dy = tl.load(dy_ptr + at, mask=ok, other=0.0).to(tl.float32)
        by = dy * w
        slope, shift = tl.sum(hat * by, 0) / N, tl.sum(by, 0) / N
        dx = (by - hat * slope - shift) * tl.load(rstd_ptr + row) + tl.load(res_ptr + at, mask=ok, other=0.0)
        tl.store(dx_ptr + at, dx.to(dx_ptr.dtype.element_ty), mask=ok)
        dw += hat * dy
        db += dy
    tl.store(dw_ptr + tl.program_id(0) * N + n, dw, mask=ok)
    tl.store(db_ptr + tl.program_id(0) * N + n, db, mask=ok)


@triton.jit
def parts_to_gradients(dw_ptr, db_ptr, wo_ptr, bo_ptr, PARTS, N, BP: tl.constexpr, BN: tl.constexpr):
    n = tl.program_id(0) * BN + tl.arange(0, BN)
    dw, db = tl.zeros((BN,), tl.float32), tl.zeros((BN,), tl.float32)
    for p0 in range(0, PARTS, BP):
        p = p0 + tl.arange(0, BP)
        ok = (p < PARTS)[:, None] & (n < N)[None, :]
        dw += tl.sum(tl.load(dw_ptr + p[:, None] * N + n[None, :], mask=ok, other=0.0), 0)
        db += tl.sum(tl.load(db_ptr + p[:, None] * N + n[None, :], mask=ok, other=0.0), 0)
    tl.store(wo_ptr + n, dw, mask=n < N)
    tl.store(bo_ptr + n, db, mask=n < N)


@case
def descent_through_a_norm_from_its_results(m=6000, n=2500, programs=PROGRAMS * 2):
    y, dy, res = rand(m, n, dtype="bfloat16"), rand(m, n, dtype="bfloat16"), rand(m, n, dtype="bfloat16")
    w, b, rstd = uniform(n) + 0.5, f32(n), uniform(m) + 0.5
    dx = zeros(m, n, dtype="bfloat16")
    dw, db = zeros(programs, n, dtype="float32"), zeros(programs, n, dtype="float32")
    wo, bo = zeros(n, dtype="float32"), zeros(n, dtype="float32")

    def launch(y, dy, w, b, rstd, res, dx, dw, db, wo, bo):
        norm_gradients_from_results[(programs,)](y, dy, w, b, rstd, res, dx, dw, db, m, n, B=triton.next_power_of_2(n), num_warps=8)
        parts_to_gradients[(cdiv(n, 64),)](dw, db, wo, bo, programs, n, BP=32, BN=64, num_warps=4)
        return dx, wo, bo

    def reference():
        hat, by = (y.float() - b) / w, dy.float() * w
        grad = (by - hat * (hat * by).mean(1, keepdim=True) - by.mean(1, keepdim=True)) * rstd[:, None] + res.float()
        return grad, (hat * dy.float()).sum(0), dy.float().sum(0)

    return against((launch, (y, dy, w, b, rstd, res, dx, dw, db, wo, bo)), reference)


@triton.jit
def chunk_statistics_of_a_shard(x_ptr, y_ptr, stat_ptr, V, C, first, B: tl.constexpr):
    # A chunk of the words that this shard has: largest, sum of exponentials, sum, and the label's score if it is here.
    row, chunk = tl.program_id(0), tl.program_id(1)
    v = chunk * B + tl.arange(0, B)
    x = tl.load(x_ptr + row.to(tl.int64) * V + v, mask=v < V, other=float("-inf")).to(tl.float32)
    top = tl.max(x, 0)
    label = tl.load(y_ptr + row) - first
    out = stat_ptr + (row * C + chunk) * 4
    tl.store(out, top)
    tl.store(out + 1, tl.sum(tl.exp(x - top), 0))
    tl.store(out + 2, tl.sum(tl.where(v < V, x, 0.0), 0))
    tl.store(out + 3, tl.sum(tl.where(v == label, x, 0.0), 0))


@triton.jit
def chunk_gradients_of_a_shard(x_ptr, y_ptr, stat_ptr, loss_ptr, V, C, ALL, first, smooth, ROWS, B: tl.constexpr, BC: tl.constexpr):
    # Statistics of all chunks together, then the gradient of one chunk in place of its scores.
    row, chunk, c = tl.program_id(0), tl.program_id(1), tl.arange(0, BC)
    ok = c < C
    stat = stat_ptr + (row * C + c) * 4
    tops = tl.load(stat, mask=ok, other=float("-inf"))
    top = tl.max(tops, 0)
    lse = top + tl.log(tl.sum(tl.load(stat + 1, mask=ok, other=0.0) * tl.exp(tops - top), 0))
    label = tl.load(y_ptr + row)
    if chunk == 0:
        mean = tl.sum(tl.load(stat + 2, mask=ok, other=0.0), 0) / ALL
        own = tl.sum(tl.load(stat + 3, mask=ok, other=0.0), 0)
        tl.store(loss_ptr + row, tl.where(label < 0, 0.0, lse - (1.0 - smooth) * own - smooth * mean))
    v = chunk * B + tl.arange(0, B)
    at = row.to(tl.int64) * V + v
    x = tl.load(x_ptr + at, mask=v < V, other=float("-inf")).to(tl.float32)
    g = tl.exp(x - lse) - smooth / ALL - tl.where(v == label - first, 1.0 - smooth, 0.0)
    g = tl.where(label < 0, 0.0, g) / ROWS
    tl.store(x_ptr + at, g.to(x_ptr.dtype.element_ty), mask=v < V)


@case
def descent_of_words_in_chunks_of_shards(rows=768, v=25001, b=4096):
    c = cdiv(v, b)
    kept, y = rand(rows, v, dtype="bfloat16") * 2, ints(0, v, rows, dtype="int64")
    y[::5] = -100
    x, stat, loss = zeros(rows, v, dtype="bfloat16"), zeros(rows, c, 4, dtype="float32"), zeros(rows, dtype="float32")

    def launch(kept, x, y, stat, loss):
        x.copy_(kept)
        chunk_statistics_of_a_shard[(rows, c)](x, y, stat, v, c, 0, B=b, num_warps=8)
        chunk_gradients_of_a_shard[(rows, c)](x, y, stat, loss, v, c, v, 0, 0.1, 4, B=b, BC=triton.next_power_of_2(c), num_warps=8)
        return x, loss

    def reference():
        s = kept.float()
        soft = full(0.1 / v, rows, v).scatter_add(1, y.clamp(min=0)[:, None], full(0.9, rows, 1))
        keep = (y >= 0)[:, None]
        return torch.where(keep, s.softmax(1) - soft, 0.0) / 4, torch.where(keep, -(soft * s.log_softmax(1)), 0.0).sum(1)

    return against((launch, (kept, x, y, stat, loss)), reference)


@triton.jit
def gates_on_the_way(g_ptr, u_ptr, dh_ptr, wg_ptr, wu_ptr, dx_ptr, dg_ptr, du_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Gradients of gate and of what it gates are made from tiles and used at once; programs of the first column keep them.
    m, n = tl.program_id(1) * BM + tl.arange(0, BM), tl.program_id(0) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for k0 in range(0, K, BK):
        k = k0 + tl.arange(0, BK)
        at = m[:, None] * K + k[None, :]
        ok = (m < M)[:, None]
        g = tl.load(g_ptr + at, mask=ok, other=0.0).to(tl.float32)
        u = tl.load(u_ptr + at, mask=ok, other=0.0).to(tl.float32)
        dh = tl.load(dh_ptr + at, mask=ok, other=0.0).to(tl.float32)
        s = tl.sigmoid(g)
        du = (dh * g * s).to(wu_ptr.dtype.element_ty)
        dg = (dh * u * s * (1.0 + g * (1.0 - s))).to(wg_ptr.dtype.element_ty)
        if tl.program_id(0) == 0:
            tl.store(dg_ptr + at, dg, mask=ok)
            tl.store(du_ptr + at, du, mask=ok)
        w = k[:, None] * N + n[None, :]
        acc = tl.dot(dg, tl.load(wg_ptr + w), acc)
        acc = tl.dot(du, tl.load(wu_ptr + w), acc)
    tl.store(dx_ptr + m[:, None] * N + n[None, :], acc.to(dx_ptr.dtype.element_ty), mask=(m < M)[:, None])


@case
def descent_to_inputs_with_gates_made_on_the_way(m=1000, n=1024, k=2816):
    g, u, dh = (rand(m, k, dtype="bfloat16") for _ in range(3))
    wg, wu = rand(k, n, dtype="bfloat16") / 32, rand(k, n, dtype="bfloat16") / 32
    dx, dg, du = zeros(m, n, dtype="bfloat16"), zeros(m, k, dtype="bfloat16"), zeros(m, k, dtype="bfloat16")
    args = g, u, dh, wg, wu, dx, dg, du, m, n, k
    launched = run(gates_on_the_way, (n // 128, cdiv(m, 64)), args, (dx, dg, du), BM=64, BN=128, BK=32, num_warps=4, num_stages=3)

    def reference():
        s = g.float().sigmoid()
        b = dh.float() * g.float() * s
        a = dh.float() * u.float() * s * (1 + g.float() * (1 - s))
        return a.bfloat16().float() @ wg.float() + b.bfloat16().float() @ wu.float(), a, b

    return against(launched, reference)


@triton.jit
def gradients_of_decays(c_ptr, b_ptr, x_ptr, dy_ptr, a_ptr, da_ptr, dc_ptr, L: tl.constexpr, S: tl.constexpr, P: tl.constexpr):
    # Within a chunk: each pair's share of the loss rises with the decays between its two places; sums of rows less columns.
    chunk = tl.program_id(0)
    i, s, p = tl.arange(0, L), tl.arange(0, S), tl.arange(0, P)
    state, value = chunk * L * S + i[:, None] * S + s[None, :], chunk * L * P + i[:, None] * P + p[None, :]
    c, b = tl.load(c_ptr + state), tl.load(b_ptr + state)
    scores = tl.dot(c, tl.trans(b))
    pairs = tl.dot(tl.load(dy_ptr + value), tl.trans(tl.load(x_ptr + value)))
    gone = tl.cumsum(tl.load(a_ptr + chunk * L + i), 0)
    decay = tl.where(i[:, None] >= i[None, :], tl.exp(gone[:, None] - gone[None, :]), 0.0)
    ds = pairs * decay
    share = ds * scores
    da = tl.cumsum(tl.sum(share, 1) - tl.sum(share, 0), 0, reverse=True)
    tl.store(da_ptr + chunk * L + i, da)
    tl.store(dc_ptr + state, tl.dot(ds.to(b.dtype), b).to(dc_ptr.dtype.element_ty))


@case
def descent_of_decays_within_chunks(chunks=3000):
    l, s, p = 64, 64, 32
    c, b = rand(chunks, l, s) / 4, rand(chunks, l, s) / 4
    x, dy, a = rand(chunks, l, p), rand(chunks, l, p), -uniform(chunks, l) / 4
    da, dc = zeros(chunks, l, dtype="float32"), zeros(chunks, l, s)
    launched = run(gradients_of_decays, (chunks,), (c, b, x, dy, a, da, dc), (da, dc), L=l, S=s, P=p, num_warps=4)

    def reference():
        gone = a.cumsum(1)
        decay = torch.tril(torch.exp((gone[:, :, None] - gone[:, None, :]).clamp(max=0)))
        ds = dy.float() @ x.float().mT * decay
        share = ds * (c.float() @ b.float().mT)
        return (share.sum(2) - share.sum(1)).flip(1).cumsum(1).flip(1), ds.half().float() @ b.float()

    return against(launched, reference)


@triton.jit
def simple_cells_backward(x_ptr, z_ptr, f_ptr, r_ptr, c_ptr, dy_ptr, dx_ptr, dz_ptr, df_ptr, dr_ptr, first_ptr, T, N, B: tl.constexpr):
    # Cells that forget and let through by gates of their inputs only: states were kept, gradients run from the end.
    n = tl.program_id(0) * B + tl.arange(0, B)
    ok = n < N
    at = (T - 1) * N + n
    dc = tl.zeros((B,), tl.float32)
    c = tl.load(c_ptr + at + N, mask=ok, other=0.0)
    for _ in range(T):
        before = tl.load(c_ptr + at, mask=ok, other=0.0)
        f = tl.sigmoid(tl.load(f_ptr + at, mask=ok, other=0.0).to(tl.float32))
        r = tl.sigmoid(tl.load(r_ptr + at, mask=ok, other=0.0).to(tl.float32))
        x, z = tl.load(x_ptr + at, mask=ok, other=0.0).to(tl.float32), tl.load(z_ptr + at, mask=ok, other=0.0).to(tl.float32)
        dy = tl.load(dy_ptr + at, mask=ok, other=0.0).to(tl.float32)
        t = 2.0 * tl.sigmoid(2.0 * c) - 1.0
        dc += dy * r * (1.0 - t * t)
        tl.store(dx_ptr + at, (dy * (1.0 - r)).to(dx_ptr.dtype.element_ty), mask=ok)
        tl.store(dr_ptr + at, (dy * (t - x) * r * (1.0 - r)).to(dr_ptr.dtype.element_ty), mask=ok)
        tl.store(dz_ptr + at, (dc * (1.0 - f)).to(dz_ptr.dtype.element_ty), mask=ok)
        tl.store(df_ptr + at, (dc * (before - z) * f * (1.0 - f)).to(df_ptr.dtype.element_ty), mask=ok)
        dc *= f
        c = before
        at -= N
    tl.store(first_ptr + n, dc, mask=ok)


@case
def descent_back_through_simple_gated_cells(t=200, n=24000):
    x, z, f, r, dy = (rand(t, n) for _ in range(5))
    c = f32(t + 1, n) * 0.5
    outs = *(zeros(t, n) for _ in range(4)), zeros(n, dtype="float32")
    launched = run(simple_cells_backward, (cdiv(n, 64),), (x, z, f, r, c, dy, *outs, t, n), outs, B=64, num_warps=2)

    def reference():
        fg, rg, th, d = f.float().sigmoid(), r.float().sigmoid(), c[1:].tanh(), dy.float()
        local = d * rg * (1 - th.square())
        dc, carry = torch.empty_like(local), torch.zeros_like(local[0])
        for i in reversed(range(t)):
            dc[i] = carry + local[i]
            carry = dc[i] * fg[i]
        return d * (1 - rg), dc * (1 - fg), dc * (c[:-1] - z.float()) * fg * (1 - fg), d * (th - x.float()) * rg * (1 - rg), carry

    return against(launched, reference)


@triton.jit
def rows_of_tables_step(row_ptr, begin_ptr, bag_ptr, weight_ptr, inverse_ptr, g_ptr, w_ptr, s_ptr, wo_ptr, so_ptr, lr, D: tl.constexpr, BI: tl.constexpr, BD: tl.constexpr):
    # Uses of a row lie together after sorting: their bags' gradients are added up, and the row makes its step at once.
    run_ = tl.program_id(0)
    row = tl.load(row_ptr + run_).to(tl.int64)
    i, d = tl.arange(0, BI), tl.arange(0, BD)
    end = tl.load(begin_ptr + run_ + 1)
    acc = tl.zeros((BI, BD), tl.float32)
    for i0 in range(tl.load(begin_ptr + run_), end, BI):
        ok = i0 + i < end
        bag = tl.load(bag_ptr + i0 + i, mask=ok, other=0)
        by = tl.load(weight_ptr + i0 + i, mask=ok, other=0.0) * tl.load(inverse_ptr + bag, mask=ok, other=0.0)
        acc += by[:, None] * tl.load(g_ptr + bag[:, None] * D + d[None, :], mask=ok[:, None] & (d < D)[None, :], other=0.0)
    g = tl.sum(acc, 0)
    s = tl.load(s_ptr + row) + tl.sum(g * g, 0) / D
    w = tl.load(w_ptr + row * D + d, mask=d < D, other=0.0).to(tl.float32)
    tl.store(wo_ptr + row * D + d, (w - lr * g / (tl.sqrt(s) + 1e-6)).to(wo_ptr.dtype.element_ty), mask=d < D)
    tl.store(so_ptr + row, s)


@case
def descent_of_rows_used_by_many_bags(uses=200_000, bags=16384, rows=60_000):
    d = 104
    of = torch.sort((uniform(uses) ** 1.5 * rows).to(torch.int32))[0]
    row, count = torch.unique_consecutive(of, return_counts=True)
    row, runs = row.to(torch.int32), row.numel()
    begin = torch.cat([torch.zeros_like(row[:1]), count.cumsum(0).to(torch.int32)])
    bag, weight, inverse = ints(0, bags, uses), uniform(uses) + 0.5, uniform(bags) + 0.1
    g, w, s = f32(bags, d), rand(rows, d), uniform(rows) + 0.01
    wo, so = zeros(rows, d), zeros(rows, dtype="float32")
    args = row, begin, bag, weight, inverse, g, w, s, wo, so, 0.1
    launched = run(rows_of_tables_step, (runs,), args, (wo, so), D=d, BI=4, BD=128, num_warps=2)

    def reference():
        total = zeros(rows, d, dtype="float32").index_add(0, of.long(), g[bag.long()] * (weight * inverse[bag.long()])[:, None])
        new = s + total.square().mean(1)
        used = torch.zeros_like(s, dtype=torch.bool)
        used[of.long()] = True
        step = w.float() - 0.1 * total / (new.sqrt() + 1e-6)[:, None]
        return step * used[:, None], new * used

    return against(launched, reference)


@triton.jit
def queries_and_sinks(q_ptr, k_ptr, v_ptr, do_ptr, lse_ptr, delta_ptr, sink_ptr, dq_ptr, ds_ptr, T, scale, W: tl.constexpr, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    # Gradients of queries in a band of W keys, and of the sink that each head's softmax has besides its keys.
    h, i = tl.program_id(1), tl.program_id(0) * BM + tl.arange(0, BM)
    d, n = tl.arange(0, D), tl.arange(0, BN)
    ok = (i < T)[:, None]
    at = (h * T + i)[:, None] * D + d[None, :]
    q, do = tl.load(q_ptr + at, mask=ok, other=0.0), tl.load(do_ptr + at, mask=ok, other=0.0)
    lse = tl.load(lse_ptr + h * T + i, mask=i < T, other=0.0)
    delta = tl.load(delta_ptr + h * T + i, mask=i < T, other=0.0)
    dq = tl.zeros((BM, D), tl.float32)
    first = tl.maximum(tl.program_id(0) * BM - W + 1, 0) // BN * BN
    for j0 in range(first, tl.minimum((tl.program_id(0) + 1) * BM, T), BN):
        j = j0 + n
        key = (h * T + j)[:, None] * D + d[None, :]
        k = tl.load(k_ptr + key, mask=(j < T)[:, None], other=0.0)
        v = tl.load(v_ptr + key, mask=(j < T)[:, None], other=0.0)
        s = tl.dot(q, tl.trans(k)) * scale
        see = (j[None, :] <= i[:, None]) & (j[None, :] > i[:, None] - W)
        p = tl.where(see, tl.exp(s - lse[:, None]), 0.0)
        ds = p * (tl.dot(do, tl.trans(v)) - delta[:, None])
        dq = tl.dot(ds.to(k.dtype), k, dq)
    tl.store(dq_ptr + at, (dq * scale).to(dq_ptr.dtype.element_ty), mask=ok)
    sink = tl.exp(tl.load(sink_ptr + h) - lse)
    tl.atomic_add(ds_ptr + h, -tl.sum(tl.where(i < T, sink * delta, 0.0), 0))


@case
def descent_of_queries_and_sinks_in_a_band(h=12, t=1500):
    d, w = 64, 300
    q, k, v, do = (rand(h, t, d) for _ in range(4))
    sink = f32(h) + 1
    i, j = arange(t)[:, None], arange(t)[None, :]
    see = (j <= i) & (j > i - w)
    s = (q.float() @ k.float().mT * d**-0.5).masked_fill(~see, float("-inf"))
    lse = torch.logaddexp(s.logsumexp(2), sink[:, None])
    p = torch.exp(s - lse[:, :, None])
    delta = ((p @ v.float()) * do.float()).sum(2)
    delta = delta + 0.3
    dq, ds = zeros(h, t, d), zeros(h, dtype="float32")
    args = q, k, v, do, lse, delta, sink, dq, ds, t, d**-0.5
    launched = run(queries_and_sinks, (cdiv(t, 64), h), args, (dq, ds), W=w, D=d, BM=64, BN=64, num_warps=4, num_stages=2)

    def reference():
        score = p * (do.float() @ v.float().mT - delta[:, :, None])
        return score @ k.float() * d**-0.5, -(torch.exp(sink[:, None] - lse) * delta).sum(1)

    return against(cleared(launched, ds), reference)


@triton.jit
def sparse_teacher(x_ptr, id_ptr, logp_ptr, g_ptr, loss_ptr, V, heat, K: tl.constexpr, B: tl.constexpr):
    # A teacher told only its K best words: the divergence from them, and its gradient over all words.
    row = tl.program_id(0)
    x_ptr += row.to(tl.int64) * V
    g_ptr += row.to(tl.int64) * V
    v, k = tl.arange(0, B), tl.arange(0, K)
    m = tl.full((B,), float("-inf"), tl.float32)
    z = tl.zeros((B,), tl.float32)
    for v0 in range(0, V, B):
        x = tl.load(x_ptr + v0 + v, mask=v0 + v < V, other=float("-inf")).to(tl.float32) / heat
        top = tl.maximum(m, x)
        z = z * tl.exp(m - top) + tl.exp(x - top)
        m = top
    top = tl.max(m, 0)
    lse = top + tl.log(tl.sum(z * tl.exp(m - top), 0))
    word = tl.load(id_ptr + row * K + k)
    logp = tl.load(logp_ptr + row * K + k)
    p = tl.exp(logp)
    own = tl.load(x_ptr + word).to(tl.float32) / heat - lse
    tl.store(loss_ptr + row, tl.sum(p * (logp - own), 0) * heat * heat)
    mass = tl.sum(p, 0)
    for v0 in range(0, V, B):
        x = tl.load(x_ptr + v0 + v, mask=v0 + v < V, other=float("-inf")).to(tl.float32) / heat
        tl.store(g_ptr + v0 + v, (tl.exp(x - lse) * mass * heat).to(g_ptr.dtype.element_ty), mask=v0 + v < V)
    tl.debug_barrier()
    tl.store(g_ptr + word, ((tl.exp(own) * mass - p) * heat).to(g_ptr.dtype.element_ty))


@case
def descent_to_a_teacher_that_names_32_words(rows=1000, v=32003):
    k, heat = 32, 2.0
    x = rand(rows, v, dtype="bfloat16") * 3
    word = arange(k)[None, :] * (v // k) + ints(0, v // k, rows, k)
    logp = torch.log_softmax(f32(rows, k), 1) - 0.1
    g, loss = zeros(rows, v, dtype="bfloat16"), zeros(rows, dtype="float32")
    launched = run(sparse_teacher, (rows,), (x, word, logp, g, loss, v, heat), (g, loss), K=k, B=2048, num_warps=8)

    def reference():
        own = (x.float() / heat).log_softmax(1)
        p = logp.exp()
        lost = (p * (logp - own.gather(1, word.long()))).sum(1) * heat * heat
        grad = own.exp() * p.sum(1, keepdim=True)
        return grad.scatter_add(1, word.long(), -p) * heat, lost

    return against(launched, reference)


@triton.jit
def subspace_step(w_ptr, g_ptr, p_ptr, m_ptr, v_ptr, wo_ptr, mo_ptr, vo_ptr, M, N, lr, b1, b2, eps, R: tl.constexpr, BK: tl.constexpr, BN: tl.constexpr):
    # The gradient's columns are projected to R numbers, whose moments make the step, which is projected back into the weights.
    n, r, k = tl.program_id(0) * BN + tl.arange(0, BN), tl.arange(0, R), tl.arange(0, BK)
    low = tl.zeros((R, BN), tl.float32)
    for k0 in range(0, M, BK):
        p = tl.load(p_ptr + (k0 + k)[:, None] * R + r[None, :])
        low = tl.dot(tl.trans(p), tl.load(g_ptr + (k0 + k)[:, None] * N + n[None, :]), low)
    at = r[:, None] * N + n[None, :]
    m = b1 * tl.load(m_ptr + at) + (1.0 - b1) * low
    v = b2 * tl.load(v_ptr + at) + (1.0 - b2) * low * low
    tl.store(mo_ptr + at, m)
    tl.store(vo_ptr + at, v)
    step = (m / (tl.sqrt(v) + eps)).to(p_ptr.dtype.element_ty)
    for k0 in range(0, M, BK):
        p = tl.load(p_ptr + (k0 + k)[:, None] * R + r[None, :])
        there = (k0 + k)[:, None] * N + n[None, :]
        w = tl.load(w_ptr + there)
        tl.store(wo_ptr + there, w - lr * tl.dot(p, step))


@case
def descent_in_a_subspace_of_64(m=1536, n=8192):
    r = 64
    w, g, p = f32(m, n), rand(m, n, dtype="bfloat16"), rand(m, r, dtype="bfloat16") / 32
    old, sq = f32(r, n), uniform(r, n) + 0.1
    wo, mo, vo = zeros(m, n, dtype="float32"), zeros(r, n, dtype="float32"), zeros(r, n, dtype="float32")
    args = w, g, p, old, sq, wo, mo, vo, m, n, 0.1, 0.9, 0.95, 1e-6
    launched = run(subspace_step, (n // 64,), args, (wo, mo, vo), R=r, BK=64, BN=64, num_warps=4, num_stages=3)

    def reference():
        low = p.float().T @ g.float()
        a, b = 0.9 * old + 0.1 * low, 0.95 * sq + 0.05 * low.square()
        return w - 0.1 * p.float() @ (a / (b.sqrt() + 1e-6)).bfloat16().float(), a, b

    return against(launched, reference)


@triton.jit
def snake_gradients(x_ptr, dy_ptr, a_ptr, dx_ptr, da_ptr, C, T, B: tl.constexpr):
    # x + sin(ax)^2 / a with a frequency a channel, whose gradient is a sum over time.
    row = tl.program_id(0)
    a = tl.load(a_ptr + row % C)
    t = tl.arange(0, B)
    da = tl.zeros((B,), tl.float32)
    for t0 in range(0, T, B):
        at = row.to(tl.int64) * T + t0 + t
        ok = t0 + t < T
        x = tl.load(x_ptr + at, mask=ok, other=0.0).to(tl.float32)
        dy = tl.load(dy_ptr + at, mask=ok, other=0.0).to(tl.float32)
        sin, cos = tl.sin(a * x), tl.cos(a * x)
        twice = 2.0 * sin * cos
        tl.store(dx_ptr + at, (dy * (1.0 + twice)).to(dx_ptr.dtype.element_ty), mask=ok)
        da += dy * (x * twice - sin * sin / a) / a
    tl.store(da_ptr + row, tl.sum(da, 0))


@case
def descent_through_snakes_and_their_frequencies(batch=16, c=192, t=5001):
    x, dy, a = rand(batch, c, t), rand(batch, c, t) + 0.2, uniform(c) * 3 + 0.3
    dx, da = zeros(batch, c, t), zeros(batch, c, dtype="float32")
    launched = run(snake_gradients, (batch * c,), (x, dy, a, dx, da, c, t), (dx, da), B=1024, num_warps=4)

    def reference():
        f, d, b = x.float(), dy.float(), a[:, None]
        twice = torch.sin(2 * b * f)
        return d * (1 + twice), (d * (f * twice - torch.sin(b * f).square() / b) / b).sum(2)

    return against(launched, reference)


@triton.jit
def learned_steps_backward(w_ptr, s_ptr, dy_ptr, dw_ptr, ds_ptr, K, gain, low: tl.constexpr, high: tl.constexpr, BR: tl.constexpr, BK: tl.constexpr):
    # Weights rounded to a learned step a row: gradients pass inside the range, the step's gradient is what rounding changed.
    r = tl.program_id(0) * BR + tl.arange(0, BR)
    s = tl.load(s_ptr + r)
    ds = tl.zeros((BR,), tl.float32)
    for k0 in range(0, K, BK):
        k = k0 + tl.arange(0, BK)
        at, ok = r[:, None] * K + k[None, :], (k < K)[None, :]
        q = tl.load(w_ptr + at, mask=ok, other=0.0).to(tl.float32) / s[:, None]
        dy = tl.load(dy_ptr + at, mask=ok, other=0.0).to(tl.float32)
        inside = (q > low) & (q < high)
        change = tl.where(inside, tl.floor(q + 0.5) - q, tl.where(q <= low, low * 1.0, high * 1.0))
        tl.store(dw_ptr + at, tl.where(inside, dy, 0.0).to(dw_ptr.dtype.element_ty), mask=ok)
        ds += tl.sum(dy * change, 1)
    tl.store(ds_ptr + r, ds * gain)


@case
def descent_of_learned_steps_of_rows_of_4100(rows=4096, k=4100):
    w, dy, s = rand(rows, k, dtype="bfloat16"), rand(rows, k, dtype="bfloat16"), torch.exp2(-ints(1, 4, rows).float())
    dw, ds, gain = zeros(rows, k, dtype="bfloat16"), zeros(rows, dtype="float32"), (7 * k) ** -0.5
    launched = run(learned_steps_backward, (rows // 4,), (w, s, dy, dw, ds, k, gain), (dw, ds), low=-8, high=7, BR=4, BK=512, num_warps=4)

    def reference():
        q, d = w.float() / s[:, None], dy.float()
        inside = (q > -8) & (q < 7)
        change = torch.where(inside, torch.floor(q + 0.5) - q, torch.where(q <= -8, -8.0, 7.0))
        return d * inside, (d * change).sum(1) * gain

    return against(launched, reference)


@triton.jit
def combined_experts_backward(dy_ptr, out_ptr, at_ptr, score_ptr, dout_ptr, ds_ptr, H, K: tl.constexpr, BK: tl.constexpr, B: tl.constexpr):
    # A token is the sum of its experts' rows by scores made to sum to one: gradients of the rows and of the scores.
    t = tl.program_id(0).to(tl.int64)
    h, k = tl.arange(0, B), tl.arange(0, BK)
    ok = h < H
    dy = tl.load(dy_ptr + t * H + h, mask=ok, other=0.0).to(tl.float32)
    score = tl.load(score_ptr + t * K + k, mask=k < K, other=0.0)
    total = tl.sum(score, 0)
    dw = tl.zeros((BK,), tl.float32)
    for i in tl.static_range(K):
        row = tl.load(at_ptr + t * K + i).to(tl.int64)
        if row >= 0:
            y = tl.load(out_ptr + row * H + h, mask=ok, other=0.0).to(tl.float32)
            dw = tl.where(k == i, tl.sum(y * dy, 0), dw)
            by = tl.load(score_ptr + t * K + i) / total
            tl.store(dout_ptr + row * H + h, (dy * by).to(dout_ptr.dtype.element_ty), mask=ok)
    mean = tl.sum(dw * score, 0) / total
    tl.store(ds_ptr + t * K + k, (dw - mean) / total, mask=k < K)


@case
def descent_through_sums_of_six_experts(t=3000, h=1800):
    k = 6
    dy, out = rand(t, h, dtype="bfloat16"), rand(t * k, h, dtype="bfloat16")
    at = torch.randperm(t * k, device="cuda").to(torch.int32).reshape(t, k)
    dropped = uniform(t, k) < 0.1
    at = torch.where(dropped, -1, at)
    score = uniform(t, k) + 0.05
    dout, ds = zeros(t * k, h, dtype="bfloat16"), zeros(t, k, dtype="float32")
    launched = run(combined_experts_backward, (t,), (dy, out, at, score, dout, ds, h), (dout, ds), K=k, BK=8, B=triton.next_power_of_2(h), num_warps=4)

    def reference():
        there = (at >= 0)[:, :, None]
        rows = out[at.clamp(min=0).long()].float() * there
        dw, total = (rows * dy.float()[:, None]).sum(2), score.sum(1, keepdim=True)
        grad = torch.zeros(t * k + 1, h, device="cuda")
        grad[torch.where(at < 0, t * k, at).long()] = dy.float()[:, None] * (score / total)[:, :, None]
        return grad[:-1], (dw - (dw * score).sum(1, keepdim=True) / total) / total

    return against(launched, reference)
