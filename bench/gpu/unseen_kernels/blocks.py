"""Blocks of networks fused into few kernels: attention along one axis, excitation, phases of convolutions, chains of dots and sums."""

import torch
import torch.nn.functional as F
import triton
import triton.language as tl
from triton.language.extra import libdevice

from .common import against, arange, case, cdiv, f32, ints, rand, run, uniform, zeros


@triton.jit
def transposed_by_phases(x_ptr, w_ptr, b_ptr, y_ptr, N, H, W, C, O, BP: tl.constexpr, BO: tl.constexpr, BC: tl.constexpr):
    # A transposed convolution of 4x4 by 2: outputs of one phase see 2x2 inputs; the phase is an axis of the grid.
    phase = tl.program_id(2)
    py, px = phase // 2, phase % 2
    p, o = tl.program_id(0) * BP + tl.arange(0, BP), tl.program_id(1) * BO + tl.arange(0, BO)
    n, h, w = p // (H * W), p // W % H, p % W
    acc = tl.zeros((BP, BO), tl.float32)
    for dy in tl.static_range(2):
        for dx in tl.static_range(2):
            ih, iw = h + dy - 1 + py, w + dx - 1 + px
            ok = (ih >= 0) & (ih < H) & (iw >= 0) & (iw < W) & (p < N * H * W)
            kh, kw = 3 - 2 * dy - py, 3 - 2 * dx - px
            for c0 in range(0, C, BC):
                c = c0 + tl.arange(0, BC)
                x = tl.load(x_ptr + ((n * H + ih) * W + iw)[:, None] * C + c[None, :], mask=ok[:, None] & (c < C)[None, :], other=0.0)
                u = tl.load(w_ptr + ((kh * 4 + kw) * C + c)[:, None] * O + o[None, :], mask=(c < C)[:, None] & (o < O)[None, :], other=0.0)
                acc = tl.dot(x, u, acc)
    acc += tl.load(b_ptr + o, mask=o < O, other=0.0)[None, :]
    acc = acc * tl.sigmoid(acc)
    row = (n * 2 * H + 2 * h + py) * 2 * W + 2 * w + px
    tl.store(y_ptr + row[:, None] * O + o[None, :], acc.to(y_ptr.dtype.element_ty), mask=(p < N * H * W)[:, None] & (o < O)[None, :])


@case
def conv_transpose2d_4x4_by_phases_channels_last():
    n, h, w, c, o = 8, 31, 29, 96, 80
    x, weight, b, y = rand(n, h, w, c), rand(4, 4, c, o) / 20, f32(o), zeros(n, 2 * h, 2 * w, o)
    grid = cdiv(n * h * w, 64), cdiv(o, 32), 4
    launched = run(transposed_by_phases, grid, (x, weight, b, y, n, h, w, c, o), y, BP=64, BO=32, BC=32)

    def reference():
        made = F.conv_transpose2d(x.permute(0, 3, 1, 2).float(), weight.permute(2, 3, 0, 1).float(), b, stride=2, padding=1)
        return F.silu(made).permute(0, 2, 3, 1)

    return against(launched, reference)


@triton.jit
def expand_then_depthwise(x_ptr, we_ptr, be_ptr, wd_ptr, bd_ptr, y_ptr, H, C: tl.constexpr, E, W: tl.constexpr, BE: tl.constexpr):
    # Three rows are expanded by dots; each is shifted along the row by gathers for the three taps of its channel.
    h, n = tl.program_id(1), tl.program_id(2)
    e = tl.program_id(0) * BE + tl.arange(0, BE)
    w, c = tl.arange(0, W), tl.arange(0, C)
    we = tl.load(we_ptr + e[None, :] * C + c[:, None])
    be = tl.load(be_ptr + e)
    acc = tl.zeros((W, BE), tl.float32) + tl.load(bd_ptr + e)[None, :]
    left = tl.broadcast_to(tl.maximum(w - 1, 0)[:, None], (W, BE))
    right = tl.broadcast_to(tl.minimum(w + 1, W - 1)[:, None], (W, BE))
    for i in range(3):
        row = h + i - 1
        if (row >= 0) & (row < H):
            x = tl.load(x_ptr + ((n * H + row) * W + w)[:, None] * C + c[None, :])
            a = tl.dot(x, we) + be[None, :]
            a = tl.minimum(tl.maximum(a, 0.0), 6.0)
            k0, k1, k2 = tl.load(wd_ptr + e * 9 + i * 3), tl.load(wd_ptr + e * 9 + i * 3 + 1), tl.load(wd_ptr + e * 9 + i * 3 + 2)
            acc += a * k1[None, :]
            acc += tl.where((w > 0)[:, None], tl.gather(a, left, 0), 0.0) * k0[None, :]
            acc += tl.where((w < W - 1)[:, None], tl.gather(a, right, 0), 0.0) * k2[None, :]
    y = tl.minimum(tl.maximum(acc, 0.0), 6.0)
    tl.store(y_ptr + ((n * H + h) * W + w)[:, None] * E + e[None, :], y.to(y_ptr.dtype.element_ty))


@case
def expansion_and_depthwise_rows_shifted_by_gathers():
    n, h, w, c, e = 16, 56, 64, 32, 192
    x, we, be, wd, bd = rand(n, h, w, c), rand(e, c) / 3, f32(e), f32(e, 3, 3) / 3, f32(e)
    y = zeros(n, h, w, e)
    args = x, we, be, wd, bd, y, h
    launched = run(expand_then_depthwise, (cdiv(e, 32), h, n), (*args,), y, C=c, E=e, W=w, BE=32)

    def reference():
        a = F.relu6(x.float() @ we.float().t() + be).permute(0, 3, 1, 2)
        return F.relu6(F.conv2d(a, wd[:, None], bd, padding=1, groups=e)).permute(0, 2, 3, 1)

    return against(launched, reference)


@triton.jit
def excite_in_one(x_ptr, w1_ptr, b1_ptr, w2_ptr, b2_ptr, y_ptr, HW, C, R: tl.constexpr, BC: tl.constexpr, BP: tl.constexpr):
    # One sample a program: means of all channels, two layers by sums, and the scaled sample, pixel tiles twice.
    n = tl.program_id(0)
    c, r = tl.arange(0, BC), tl.arange(0, R)
    acc = tl.zeros((BC, BP), tl.float32)
    for p0 in range(0, HW, BP):
        p = p0 + tl.arange(0, BP)
        acc += tl.load(x_ptr + (n * C + c[:, None]) * HW + p[None, :], mask=(c < C)[:, None] & (p < HW)[None, :], other=0.0).to(tl.float32)
    mean = tl.sum(acc, axis=1) / HW
    a = tl.sum(tl.load(w1_ptr + r[:, None] * C + c[None, :], mask=(c < C)[None, :], other=0.0) * mean[None, :], axis=1) + tl.load(b1_ptr + r)
    a = a * tl.sigmoid(a)
    s = tl.sum(tl.load(w2_ptr + c[:, None] * R + r[None, :], mask=(c < C)[:, None], other=0.0) * a[None, :], axis=1)
    s += tl.load(b2_ptr + c, mask=c < C, other=0.0)
    s = tl.minimum(tl.maximum(s / 6.0 + 0.5, 0.0), 1.0)
    for p0 in range(0, HW, BP):
        p = p0 + tl.arange(0, BP)
        ok = (c < C)[:, None] & (p < HW)[None, :]
        at = (n * C + c[:, None]) * HW + p[None, :]
        x = tl.load(x_ptr + at, mask=ok, other=0.0).to(tl.float32)
        tl.store(y_ptr + at, (x * s[:, None]).to(y_ptr.dtype.element_ty), mask=ok)


@case
def excitation_of_a_sample_in_one_program():
    n, c, r, h = 256, 240, 64, 14
    x, w1, b1, w2, b2, y = rand(n, c, h, h), f32(r, c), f32(r), f32(c, r) / 4, f32(c), zeros(n, c, h, h)
    launched = run(excite_in_one, (n,), (x, w1, b1, w2, b2, y, h * h, c), y, R=r, BC=256, BP=32, num_warps=8)

    def reference():
        a = F.silu(x.float().mean((2, 3)) @ w1.t() + b1)
        return x.float() * F.hardsigmoid(a @ w2.t() + b2)[:, :, None, None]

    return against(launched, reference)


@triton.jit
def sums_of_sigmoids(x_ptr, w_ptr, b_ptr, sum_ptr, lse_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # A block of rows walks all tiles of columns: sums of sigmoids and a running logsumexp of the same products.
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    total = tl.zeros((BM,), tl.float32)
    top, norm = tl.full((BM,), float("-inf"), tl.float32), tl.zeros((BM,), tl.float32)
    for n0 in range(0, N, BN):
        n = n0 + tl.arange(0, BN)
        acc = tl.zeros((BM, BN), tl.float32)
        for k0 in range(0, K, BK):
            k = k0 + tl.arange(0, BK)
            x = tl.load(x_ptr + m[:, None] * K + k[None, :], mask=(m < M)[:, None] & (k < K)[None, :], other=0.0)
            w = tl.load(w_ptr + n[:, None] * K + k[None, :], mask=(n < N)[:, None] & (k < K)[None, :], other=0.0)
            acc += tl.dot(x, tl.trans(w))
        z = acc + tl.load(b_ptr + n, mask=n < N, other=0.0)[None, :]
        ok = (n < N)[None, :]
        total += tl.sum(tl.where(ok, tl.sigmoid(z), 0.0), axis=1)
        z = tl.where(ok, z, float("-inf"))
        high = tl.maximum(top, tl.max(z, axis=1))
        norm = norm * tl.exp(top - high) + tl.sum(tl.exp(z - high[:, None]), axis=1)
        top = high
    tl.store(sum_ptr + m, total, mask=m < M)
    tl.store(lse_ptr + m, top + tl.log(norm), mask=m < M)


@case
def linear_sums_of_sigmoids_and_logsumexp_of_rows():
    m, n, k = 4096, 1000, 200
    x, w, b, s, lse = f32(m, k), f32(n, k) / 14, f32(n), zeros(m, dtype="float32"), zeros(m, dtype="float32")
    launched = run(sums_of_sigmoids, (cdiv(m, 16),), (x, w, b, s, lse, m, n, k), (s, lse), BM=16, BN=64, BK=32)

    def reference():
        z = F.linear(x, w, b)
        return z.sigmoid().sum(1), z.logsumexp(1)

    return against(launched, reference)


@triton.jit
def implicit_product(
    x_ptr, w_ptr, scale_ptr, shift_ptr, y_ptr, N, H, W, O, C: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    # K runs over taps and channels at once: both come of a division for each element of the tile of 48 channels.
    m, o = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    n, h, w = m // (H * W), m // W % H, m % W
    acc = tl.zeros((BM, BN), tl.float32)
    for k0 in tl.range(0, 9 * C, BK, num_stages=4):
        k = k0 + tl.arange(0, BK)
        tap, c = k // C, k % C
        ih, iw = h[:, None] + (tap // 3 - 1)[None, :], w[:, None] + (tap % 3 - 1)[None, :]
        ok = (ih >= 0) & (ih < H) & (iw >= 0) & (iw < W) & (m < N * H * W)[:, None] & (k < 9 * C)[None, :]
        x = tl.load(x_ptr + ((n[:, None] * H + ih) * W + iw) * C + c[None, :], mask=ok, other=0.0)
        u = tl.load(w_ptr + o[None, :] * 9 * C + k[:, None], mask=(o < O)[None, :] & (k < 9 * C)[:, None], other=0.0)
        acc = tl.dot(x, u, acc)
    y = acc * tl.load(scale_ptr + o, mask=o < O, other=0.0)[None, :] + tl.load(shift_ptr + o, mask=o < O, other=0.0)[None, :]
    y = y * tl.sigmoid(y)
    tl.store(y_ptr + m[:, None] * O + o[None, :], y.to(y_ptr.dtype.element_ty), mask=(m < N * H * W)[:, None] & (o < O)[None, :])


@case
def conv2d_3x3_of_taps_and_channels_by_divisions():
    n, h, w, c, o = 16, 45, 47, 48, 72
    x, weight, scale, shift, y = rand(n, h, w, c), rand(o, 3, 3, c) / 20, uniform(o), f32(o), zeros(n, h, w, o)
    grid = cdiv(n * h * w, 64), cdiv(o, 64)
    launched = run(implicit_product, grid, (x, weight, scale, shift, y, n, h, w, o), y, C=c, BM=64, BN=64, BK=32)

    def reference():
        made = F.conv2d(x.permute(0, 3, 1, 2).float(), weight.permute(0, 3, 1, 2).float(), padding=1).permute(0, 2, 3, 1)
        return F.silu(made * scale + shift)

    return against(launched, reference)


@triton.jit
def conv_logsumexp(x_ptr, w_ptr, b_ptr, y_ptr, H, W, OH, OW, C: tl.constexpr, O: tl.constexpr, BP: tl.constexpr):
    # All output channels of a few pixels of NCHW; the sum of exponentials over channels never leaves the program.
    n = tl.program_id(1)
    p = tl.program_id(0) * BP + tl.arange(0, BP)
    oh, ow = p // OW, p % OW
    c, o = tl.arange(0, C), tl.arange(0, O)
    acc = tl.zeros((O, BP), tl.float32) + tl.load(b_ptr + o)[:, None]
    for tap in range(9):
        at = (oh + tap // 3) * W + ow + tap % 3
        x = tl.load(x_ptr + (n * C + c[:, None]) * H * W + at[None, :], mask=(p < OH * OW)[None, :], other=0.0)
        u = tl.load(w_ptr + (o[:, None] * C + c[None, :]) * 9 + tap)
        acc += tl.dot(u, x)
    top = tl.max(acc, axis=0)
    z = top + tl.log(tl.sum(tl.exp(acc - top[None, :]), axis=0))
    z = z * tl.minimum(tl.maximum(z + 3.0, 0.0), 6.0) / 6.0
    tl.store(y_ptr + n * OH * OW + p, z, mask=p < OH * OW)


@case
def conv2d_logsumexp_over_channels_hard_swish():
    n, h, c, o = 16, 66, 16, 128
    x, w, b, y = f32(n, c, h, h), f32(o, c, 3, 3) / 12, f32(o), zeros(n, h - 2, h - 2, dtype="float32")
    launched = run(conv_logsumexp, (cdiv((h - 2) ** 2, 32), n), (x, w, b, y, h, h, h - 2, h - 2), y, C=c, O=o, BP=32)
    return against(launched, lambda: F.hardswish(F.conv2d(x, w, b).logsumexp(1)))


@triton.jit
def window_heads(qkv_ptr, bias_ptr, o_ptr, L, scale, HEADS: tl.constexpr, HP: tl.constexpr, BL: tl.constexpr, D: tl.constexpr):
    # All heads of a window in one program: dots of three axes.
    win = tl.program_id(0)
    h, l, d = tl.arange(0, HP)[:, None, None], tl.arange(0, BL), tl.arange(0, D)
    rows = (win * L + l) * 3 * HEADS * D
    at = rows[None, :, None] + h * D + d[None, None, :]
    ok = (h < HEADS) & (l < L)[None, :, None]
    q = tl.load(qkv_ptr + at, mask=ok, other=0.0)
    k = tl.load(qkv_ptr + at + HEADS * D, mask=ok, other=0.0)
    v = tl.load(qkv_ptr + at + 2 * HEADS * D, mask=ok, other=0.0)
    s = tl.dot(q, tl.permute(k, (0, 2, 1))) * scale
    inside = (h < HEADS) & (l < L)[None, :, None] & (l < L)[None, None, :]
    s += tl.load(bias_ptr + (h * L + l[None, :, None]) * L + l[None, None, :], mask=inside, other=0.0)
    s = tl.where((l < L)[None, None, :], s, float("-inf"))
    s = tl.exp(s - tl.max(s, axis=2, keep_dims=True))
    s = s / tl.sum(s, axis=2, keep_dims=True)
    y = tl.dot(s.to(v.dtype), v)
    out = (win * L + l)[None, :, None] * HEADS * D + h * D + d[None, None, :]
    tl.store(o_ptr + out, y.to(o_ptr.dtype.element_ty), mask=ok)


@case
def attention_of_windows_with_heads_as_an_axis_of_dots():
    windows, length, heads, d = 3000, 49, 3, 32
    qkv, bias, o = rand(windows, length, 3, heads, d), f32(heads, length, length), zeros(windows, length, heads, d)
    launched = run(window_heads, (windows,), (qkv, bias, o, length, d**-0.5), o, HEADS=heads, HP=4, BL=64, D=d, num_warps=8)

    def reference():
        q, k, v = qkv.float().permute(2, 0, 3, 1, 4)
        return (((q @ k.transpose(2, 3)) * d**-0.5 + bias).softmax(-1) @ v).transpose(1, 2)

    return against(launched, reference)


@triton.jit
def gelu_by_powers(x_ptr, g_ptr, y_ptr, dx_ptr, N, BLOCK: tl.constexpr):
    # The tanh form and its derivative, cubes by the library's power, 16 elements a lane.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ok = i < N
    x = tl.load(x_ptr + i, mask=ok, other=0.0).to(tl.float32)
    t = libdevice.tanh(0.7978845608028654 * (x + 0.044715 * libdevice.pow(x, 3.0)))
    tl.store(y_ptr + i, (0.5 * x * (1.0 + t)).to(y_ptr.dtype.element_ty), mask=ok)
    g = tl.load(g_ptr + i, mask=ok, other=0.0).to(tl.float32)
    slope = 0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * 0.7978845608028654 * (1.0 + 0.134145 * libdevice.pow(x, 2.0))
    tl.store(dx_ptr + i, (g * slope).to(dx_ptr.dtype.element_ty), mask=ok)


@case
def new_gelu_and_its_slope_by_powers_of_the_library():
    n = 9_000_001
    x, g, y, dx = rand(n, dtype="bfloat16"), rand(n, dtype="bfloat16"), zeros(n, dtype="bfloat16"), zeros(n, dtype="bfloat16")
    launched = run(gelu_by_powers, (cdiv(n, 4096),), (x, g, y, dx, n), (y, dx), BLOCK=4096, num_warps=8)

    def reference():
        z = x.float().requires_grad_()
        made = F.gelu(z, approximate="tanh")
        return made.detach(), torch.autograd.grad(made, z, g.float())[0]

    return against(launched, reference)


@triton.jit
def multilabel_margins(x_ptr, label_ptr, out_ptr, B, C, BB: tl.constexpr, L: tl.constexpr, BC: tl.constexpr):
    # Every right class against every wrong class: three axes, in blocks of classes.
    b = tl.program_id(0) * BB + tl.arange(0, BB)
    l = tl.arange(0, L)
    label = tl.load(label_ptr + b[:, None] * L + l[None, :], mask=(b < B)[:, None], other=-1)
    right = tl.load(x_ptr + b[:, None] * C + label, mask=label >= 0, other=0.0)
    total = tl.zeros((BB,), tl.float32)
    for c0 in range(0, C, BC):
        c = c0 + tl.arange(0, BC)
        x = tl.load(x_ptr + b[:, None] * C + c[None, :], mask=(b < B)[:, None] & (c < C)[None, :], other=0.0)
        same = (label[:, :, None] == c[None, None, :]).to(tl.int32)
        wrong = (tl.max(same, axis=1) == 0) & (c < C)[None, :]
        hinge = tl.maximum(1.0 - (right[:, :, None] - x[:, None, :]), 0.0)
        hinge = tl.where((label >= 0)[:, :, None] & wrong[:, None, :], hinge, 0.0)
        total += tl.sum(tl.sum(hinge, axis=2), axis=1)
    tl.store(out_ptr + b, total / C, mask=b < B)


@case
def margins_of_right_and_wrong_classes_in_three_axes():
    b, c, most = 6000, 1000, 8
    x = f32(b, c)
    label = torch.rand(b, c, device="cuda").topk(most, dim=1).indices.int()
    label = torch.where(arange(most) < ints(1, most + 1, b)[:, None], label, -1)
    out = zeros(b, dtype="float32")
    launched = run(multilabel_margins, (cdiv(b, 4),), (x, label, out, b, c), out, BB=4, L=most, BC=64)

    def reference():
        padded = F.pad(label.long(), (0, c - most), value=-1)
        return F.multilabel_margin_loss(x, padded, reduction="none")

    return against(launched, reference)


@triton.jit
def lstm_both_ways(g_ptr, w_ptr, y_ptr, B, T, BM: tl.constexpr, H: tl.constexpr):
    # The direction is an axis of the grid; the state goes through four dots a step.
    direction = tl.program_id(1)
    b, j, k = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, H), tl.arange(0, H)
    ok = (b < B)[:, None]
    at = w_ptr + direction * 4 * H * H + k[:, None] + j[None, :] * H
    wi, wf, wg, wo = tl.load(at), tl.load(at + H * H), tl.load(at + 2 * H * H), tl.load(at + 3 * H * H)
    h, c = tl.zeros((BM, H), tl.float16), tl.zeros((BM, H), tl.float32)
    for step in range(T):
        t = step
        if direction == 1:
            t = T - 1 - step
        g = g_ptr + ((direction * T + t) * B + b)[:, None] * 4 * H + j[None, :]
        i = tl.sigmoid(tl.dot(h, wi) + tl.load(g, mask=ok, other=0.0))
        f = tl.sigmoid(tl.dot(h, wf) + tl.load(g + H, mask=ok, other=0.0))
        u = 2.0 * tl.sigmoid(2.0 * (tl.dot(h, wg) + tl.load(g + 2 * H, mask=ok, other=0.0))) - 1.0
        o = tl.sigmoid(tl.dot(h, wo) + tl.load(g + 3 * H, mask=ok, other=0.0))
        c = f * c + i * u
        h = (o * (2.0 * tl.sigmoid(2.0 * c) - 1.0)).to(tl.float16)
        tl.store(y_ptr + (t * B + b)[:, None] * 2 * H + direction * H + j[None, :], h, mask=ok)


@case
def lstm_of_32_units_in_both_directions():
    b, t, h = 500, 60, 32
    g, w, y = rand(2, t, b, 4 * h), rand(2, 4 * h, h) / 5, zeros(t, b, 2 * h)
    launched = run(lstm_both_ways, (cdiv(b, 16), 2), (g, w, y, b, t), y, BM=16, H=h, num_warps=2)

    def reference():
        made = torch.zeros(t, b, 2, h, device=g.device)
        for way in range(2):
            state, cell = torch.zeros(b, h, device=g.device), torch.zeros(b, h, device=g.device)
            for step in range(t):
                at = t - 1 - step if way else step
                i, f, u, o = (g[way, at].float() + state @ w[way].float().t()).chunk(4, 1)
                cell = f.sigmoid() * cell + i.sigmoid() * u.tanh()
                state = o.sigmoid() * cell.tanh()
                made[at, :, way] = state
        return made.view(t, b, 2 * h)

    return against(launched, reference)


@triton.jit
def transition(x_ptr, scale_ptr, shift_ptr, w_ptr, y_ptr, C, H, W, O, OH, OW, BP: tl.constexpr, BO: tl.constexpr, BC: tl.constexpr):
    # Norm and ReLU of the four pixels of a pool, their mean, and then the pointwise product.
    n = tl.program_id(2)
    p, o = tl.program_id(0) * BP + tl.arange(0, BP), tl.program_id(1) * BO + tl.arange(0, BO)
    at = p // OW * 2 * W + p % OW * 2
    live = (p < OH * OW)[None, :]
    acc = tl.zeros((BO, BP), tl.float32)
    for c0 in range(0, C, BC):
        c = c0 + tl.arange(0, BC)
        scale = tl.load(scale_ptr + c, mask=c < C, other=0.0)[:, None]
        shift = tl.load(shift_ptr + c, mask=c < C, other=0.0)[:, None]
        base = x_ptr + (n * C + c[:, None]) * H * W + at[None, :]
        ok = live & (c < C)[:, None]
        pooled = tl.maximum(tl.load(base, mask=ok, other=0.0) * scale + shift, 0.0)
        pooled += tl.maximum(tl.load(base + 1, mask=ok, other=0.0) * scale + shift, 0.0)
        pooled += tl.maximum(tl.load(base + W, mask=ok, other=0.0) * scale + shift, 0.0)
        pooled += tl.maximum(tl.load(base + W + 1, mask=ok, other=0.0) * scale + shift, 0.0)
        w = tl.load(w_ptr + o[:, None] * C + c[None, :], mask=(o < O)[:, None] & (c < C)[None, :], other=0.0)
        acc = tl.dot(w, pooled * 0.25, acc)
    tl.store(y_ptr + (n * O + o)[:, None] * OH * OW + p[None, :], acc, mask=(o < O)[:, None] & live)


@case
def norm_relu_pool_of_four_pixels_then_pointwise():
    n, c, o, h, w = 24, 200, 104, 56, 54
    x, scale, shift, weight = f32(n, c, h, w), f32(c), f32(c), f32(o, c) / 14
    y = zeros(n, o, h // 2, w // 2, dtype="float32")
    grid = cdiv(h * w // 4, 64), cdiv(o, 64), n
    launched = run(transition, grid, (x, scale, shift, weight, y, c, h, w, o, h // 2, w // 2), y, BP=64, BO=64, BC=16)

    def reference():
        a = F.avg_pool2d((x * scale[:, None, None] + shift[:, None, None]).relu(), 2)
        return torch.einsum("oc,nchw->nohw", weight, a)

    return against(launched, reference)


@triton.jit
def random_features(q_ptr, k_ptr, v_ptr, w_ptr, o_ptr, S, D: tl.constexpr, M: tl.constexpr, BN: tl.constexpr):
    # exp(w x - |x|^2 / 2) of keys, summed with values in one loop; of queries, divided in another; one head a program.
    head = tl.program_id(0)
    d, m = tl.arange(0, D), tl.arange(0, M)
    w = tl.load(w_ptr + m[None, :] * D + d[:, None])
    state, norm = tl.zeros((M, D), tl.float32), tl.zeros((M,), tl.float32)
    for n0 in range(0, S, BN):
        n = n0 + tl.arange(0, BN)
        k = tl.load(k_ptr + (head * S + n)[:, None] * D + d[None, :], mask=(n < S)[:, None], other=0.0)
        kf = k.to(tl.float32)
        phi = tl.exp(tl.dot(k, w) - 0.5 * tl.sum(kf * kf, axis=1)[:, None])
        phi = tl.where((n < S)[:, None], phi, 0.0)
        v = tl.load(v_ptr + (head * S + n)[:, None] * D + d[None, :], mask=(n < S)[:, None], other=0.0)
        state += tl.dot(tl.trans(phi).to(v.dtype), v)
        norm += tl.sum(phi, axis=0)
    small = (state * (1.0 / S)).to(q_ptr.dtype.element_ty)
    for n0 in range(0, S, BN):
        n = n0 + tl.arange(0, BN)
        q = tl.load(q_ptr + (head * S + n)[:, None] * D + d[None, :], mask=(n < S)[:, None], other=0.0)
        qf = q.to(tl.float32)
        phi = tl.exp(tl.dot(q, w) - 0.5 * tl.sum(qf * qf, axis=1)[:, None])
        y = tl.dot(phi.to(q.dtype), small) / (tl.sum(phi * norm[None, :], axis=1) * (1.0 / S) + 1e-6)[:, None]
        tl.store(o_ptr + (head * S + n)[:, None] * D + d[None, :], y.to(o_ptr.dtype.element_ty), mask=(n < S)[:, None])


@case
def attention_by_positive_random_features():
    heads, s, d, m = 264, 500, 64, 128
    q, k, v = rand(heads, s, d, dtype="bfloat16") / 4, rand(heads, s, d, dtype="bfloat16") / 4, rand(heads, s, d, dtype="bfloat16")
    w, o = rand(m, d, dtype="bfloat16"), zeros(heads, s, d, dtype="bfloat16")
    launched = run(random_features, (heads,), (q, k, v, w, o, s), o, D=d, M=m, BN=64, num_warps=8, num_stages=2)

    def reference():
        a, b, x = q.float(), k.float(), v.float()
        pa, pb = ((z @ w.float().t() - z.square().sum(-1, keepdim=True) / 2).exp() for z in (a, b))
        return (pa @ (pb.transpose(1, 2) @ x) / s) / ((pa * pb.sum(1, keepdim=True)).sum(-1, keepdim=True) / s + 1e-6)

    return against(launched, reference)


@triton.jit
def axial_attention(qkv_ptr, o_ptr, H, W, scale, HEADS: tl.constexpr, D: tl.constexpr, BH: tl.constexpr):
    # Attention along the height of one column of an image: rows of tiles are a whole image row apart.
    w, head, b = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    h, d = tl.arange(0, BH), tl.arange(0, D)
    row = ((b * H + h) * W + w)[:, None]
    ok = (h < H)[:, None]
    at = row * 3 * HEADS * D + head * D + d[None, :]
    q = tl.load(qkv_ptr + at, mask=ok, other=0.0)
    k = tl.load(qkv_ptr + at + HEADS * D, mask=ok, other=0.0)
    v = tl.load(qkv_ptr + at + 2 * HEADS * D, mask=ok, other=0.0)
    s = tl.dot(q, k.T) * scale
    s = tl.where((h < H)[None, :], s, float("-inf"))
    p = tl.exp(s - tl.max(s, axis=1)[:, None])
    y = tl.dot(p.to(v.dtype), v) / tl.sum(p, axis=1)[:, None]
    tl.store(o_ptr + row * HEADS * D + head * D + d[None, :], y.to(o_ptr.dtype.element_ty), mask=ok)


@case
def attention_down_columns_of_images():
    b, h, w, heads, d = 8, 60, 64, 8, 32
    qkv, o = rand(b, h, w, 3, heads, d), zeros(b, h, w, heads, d)
    launched = run(axial_attention, (w, heads, b), (qkv, o, h, w, d**-0.5), o, HEADS=heads, D=d, BH=64, num_warps=2)

    def reference():
        q, k, v = qkv.float().permute(3, 0, 2, 4, 1, 5)
        return ((q @ k.transpose(-1, -2) * d**-0.5).softmax(-1) @ v).permute(0, 3, 1, 2, 4)

    return against(launched, reference)


@triton.jit
def channel_extremes(x_ptr, s_ptr, C, HW, BLOCK: tl.constexpr):
    n = tl.program_id(1)
    p = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ok = p < HW
    top, total = tl.full((BLOCK,), float("-inf"), tl.float32), tl.zeros((BLOCK,), tl.float32)
    for c in tl.range(0, C, loop_unroll_factor=4):
        x = tl.load(x_ptr + (n * C + c) * HW + p, mask=ok, other=0.0).to(tl.float32)
        top = tl.maximum(top, x)
        total += x
    tl.store(s_ptr + n * 2 * HW + p, top, mask=ok)
    tl.store(s_ptr + (n * 2 + 1) * HW + p, total / C, mask=ok)


@triton.jit
def spatial_gate(x_ptr, s_ptr, w_ptr, y_ptr, C, H, W, BH: tl.constexpr, BW: tl.constexpr):
    # 98 taps over two maps, a sigmoid, and all channels of the tile times it.
    n = tl.program_id(2)
    h, w = (tl.program_id(1) * BH + tl.arange(0, BH))[:, None], (tl.program_id(0) * BW + tl.arange(0, BW))[None, :]
    acc = tl.zeros((BH, BW), tl.float32)
    for part in range(2):
        for i in range(7):
            for j in tl.static_range(7):
                y, x = h + i - 3, w + j - 3
                ok = (y >= 0) & (y < H) & (x >= 0) & (x < W)
                acc += tl.load(s_ptr + ((n * 2 + part) * H + y) * W + x, mask=ok, other=0.0) * tl.load(w_ptr + (part * 7 + i) * 7 + j)
    gate = tl.sigmoid(acc)
    ok = (h < H) & (w < W)
    for c in range(C):
        at = ((n * C + c) * H + h) * W + w
        x = tl.load(x_ptr + at, mask=ok, other=0.0).to(tl.float32)
        tl.store(y_ptr + at, (x * gate).to(y_ptr.dtype.element_ty), mask=ok)


@case
def gate_of_places_by_7x7_of_two_maps():
    n, c, h, w = 16, 100, 72, 75
    x, weight, s, y = rand(n, c, h, w), f32(1, 2, 7, 7) / 5, zeros(n, 2, h, w, dtype="float32"), zeros(n, c, h, w)

    def launch(*args):
        channel_extremes[(cdiv(h * w, 256), n)](x, s, c, h * w, BLOCK=256)
        spatial_gate[(cdiv(w, 32), cdiv(h, 8), n)](x, s, weight, y, c, h, w, BH=8, BW=32)
        return y

    def reference():
        z = x.float()
        maps = torch.cat((z.amax(1, keepdim=True), z.mean(1, keepdim=True)), 1)
        return z * F.conv2d(maps, weight, padding=3).sigmoid()

    return against((launch, (x,)), reference)


@triton.jit
def dense_graph(a_ptr, x_ptr, w_ptr, b_ptr, y_ptr, N, BM: tl.constexpr, BK: tl.constexpr, I: tl.constexpr, O: tl.constexpr):
    # Neighbors' features by a dot over nodes, degrees in the same loop, then the layer's weights by another dot.
    g = tl.program_id(1)
    m, i, o = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, I), tl.arange(0, O)
    acc, degree = tl.zeros((BM, I), tl.float32), tl.zeros((BM,), tl.float32)
    for k0 in range(0, N, BK):
        k = k0 + tl.arange(0, BK)
        a = tl.load(a_ptr + (g * N + m)[:, None] * N + k[None, :], mask=(m < N)[:, None] & (k < N)[None, :], other=0).to(tl.float16)
        x = tl.load(x_ptr + (g * N + k)[:, None] * I + i[None, :], mask=(k < N)[:, None], other=0.0)
        acc = tl.dot(a, x, acc)
        degree += tl.sum(a.to(tl.float32), axis=1)
    mean = acc / tl.maximum(degree, 1.0)[:, None]
    w = tl.load(w_ptr + i[:, None] * O + o[None, :])
    y = tl.dot(mean.to(tl.float16), w) + tl.load(b_ptr + o)[None, :]
    y = tl.where(y > 0, y, tl.exp(y) - 1.0)
    tl.store(y_ptr + (g * N + m)[:, None] * O + o[None, :], y.to(y_ptr.dtype.element_ty), mask=(m < N)[:, None])


@case
def dense_graphs_of_bytes_mean_of_neighbors_then_layer():
    graphs, n, i, o = 40, 500, 64, 128
    a, x, w, b = ints(0, 2, graphs, n, n, dtype="uint8"), rand(graphs, n, i), rand(i, o) / 2, f32(o)
    y = zeros(graphs, n, o)
    launched = run(dense_graph, (cdiv(n, 64), graphs), (a, x, w, b, y, n), y, BM=64, BK=64, I=i, O=o)

    def reference():
        mean = a.float() @ x.float() / a.float().sum(2, keepdim=True).clamp(min=1)
        return F.elu(mean @ w.float() + b)

    return against(launched, reference)


@triton.jit
def space_to_depth_norm(x_ptr, g_ptr, y_ptr, H, W, C: tl.constexpr, BW: tl.constexpr):
    # A tile of five axes is turned in registers, made flat, normalized and stored as it lies.
    w0, h, n = tl.program_id(0) * BW, tl.program_id(1), tl.program_id(2)
    c = tl.arange(0, C)[:, None, None, None, None]
    i = tl.arange(0, 1)[None, :, None, None, None]
    j = tl.arange(0, 2)[None, None, :, None, None]
    w = tl.arange(0, BW)[None, None, None, :, None]
    k = tl.arange(0, 2)[None, None, None, None, :]
    at = ((n * C + c) * 2 * H + 2 * (h + i) + j) * 2 * W + 2 * (w0 + w) + k
    x = tl.load(x_ptr + at, mask=w0 + w < W, other=0.0)
    x = tl.reshape(tl.permute(x, (3, 1, 2, 4, 0)), (BW, 4 * C)).to(tl.float32)
    f = tl.arange(0, 4 * C)
    rstd = 1.0 / tl.sqrt(tl.sum(x * x, axis=1) / (4 * C) + 1e-6)
    y = x * rstd[:, None] * tl.load(g_ptr + f)[None, :]
    to = ((n * H + h) * W + w0 + tl.arange(0, BW))[:, None] * 4 * C + f[None, :]
    tl.store(y_ptr + to, y.to(y_ptr.dtype.element_ty), mask=(w0 + tl.arange(0, BW) < W)[:, None])


@case
def merged_patches_of_a_tile_of_five_axes_normalized():
    n, c, h, w = 16, 64, 49, 56
    x, g, y = rand(n, c, 2 * h, 2 * w), f32(4 * c), zeros(n, h, w, 4 * c)
    launched = run(space_to_depth_norm, (cdiv(w, 16), h, n), (x, g, y, h, w), y, C=c, BW=16)

    def reference():
        z = x.float().view(n, c, h, 2, w, 2).permute(0, 2, 4, 3, 5, 1).reshape(n, h, w, 4 * c)
        return z * (z.square().mean(-1, keepdim=True) + 1e-6).rsqrt() * g

    return against(launched, reference)


@triton.jit
def global_context(x_ptr, w_ptr, y_ptr, P, C: tl.constexpr, BP: tl.constexpr):
    # One sample a program: weights of places by an online softmax of a 1x1 convolution, and the weighted sum of channels.
    n = tl.program_id(0)
    c = tl.arange(0, C)
    w = tl.load(w_ptr + c)
    acc, top, total = tl.zeros((C,), tl.float32), -float("inf"), 0.0
    for p0 in range(0, P, BP):
        p = p0 + tl.arange(0, BP)
        x = tl.load(x_ptr + (n * C + c[:, None]) * P + p[None, :], mask=(p < P)[None, :], other=0.0).to(tl.float32)
        s = tl.where(p < P, tl.sum(x * w[:, None], axis=0), float("-inf"))
        high = tl.maximum(top, tl.max(s, axis=0))
        e, shrink = tl.exp(s - high), tl.exp(top - high)
        acc = acc * shrink + tl.sum(x * e[None, :], axis=1)
        total = total * shrink + tl.sum(e, axis=0)
        top = high
    tl.store(y_ptr + n * C + c, acc / total)


@case
def context_of_a_sample_by_softmax_over_places():
    n, c, p = 132, 256, 31 * 33
    x, w, y = rand(n, c, p), f32(c) / 6, zeros(n, c, dtype="float32")
    launched = run(global_context, (n,), (x, w, y, p), y, C=c, BP=16, num_warps=4)
    return against(launched, lambda: (x.float() * (w @ x.float()).softmax(-1)[:, None]).sum(-1))


@triton.jit
def spatial_gating(u_ptr, v_ptr, g_ptr, w_ptr, b_ptr, y_ptr, S, C, BS: tl.constexpr, BC: tl.constexpr, BK: tl.constexpr):
    # Tokens mixed by a matrix; their statistics over channels were made by a loop before it, here for each block again.
    n = tl.program_id(2)
    s, c = tl.program_id(0) * BS + tl.arange(0, BS), tl.program_id(1) * BC + tl.arange(0, BC)
    gain = tl.load(g_ptr + c, mask=c < C, other=0.0)
    acc = tl.zeros((BS, BC), tl.float32)
    for k0 in range(0, S, BK):
        k = k0 + tl.arange(0, BK)
        row = (n * S + k)[:, None] * C
        one, two = tl.zeros((BK,), tl.float32), tl.zeros((BK,), tl.float32)
        for d0 in range(0, C, BC):
            d = d0 + tl.arange(0, BC)
            z = tl.load(v_ptr + row + d[None, :], mask=(k < S)[:, None] & (d < C)[None, :], other=0.0).to(tl.float32)
            one += tl.sum(z, axis=1)
            two += tl.sum(z * z, axis=1)
        mean = one / C
        rstd = 1.0 / tl.sqrt(two / C - mean * mean + 1e-5)
        v = tl.load(v_ptr + row + c[None, :], mask=(k < S)[:, None] & (c < C)[None, :], other=0.0).to(tl.float32)
        v = (v - mean[:, None]) * rstd[:, None] * gain[None, :]
        w = tl.load(w_ptr + s[:, None] * S + k[None, :], mask=(s < S)[:, None] & (k < S)[None, :], other=0.0)
        acc += tl.dot(w, v.to(w.dtype))
    ok = (s < S)[:, None] & (c < C)[None, :]
    acc += tl.load(b_ptr + s, mask=s < S, other=0.0)[:, None]
    u = tl.load(u_ptr + (n * S + s)[:, None] * C + c[None, :], mask=ok, other=0.0)
    tl.store(y_ptr + (n * S + s)[:, None] * C + c[None, :], (u * acc).to(y_ptr.dtype.element_ty), mask=ok)


@case
def gating_of_tokens_with_norms_inside_the_product():
    n, s, c = 16, 256, 384
    u, v, g, w, b, y = rand(n, s, c), rand(n, s, c), f32(c), rand(s, s) / 16, f32(s), zeros(n, s, c)
    launched = run(spatial_gating, (cdiv(s, 64), cdiv(c, 64), n), (u, v, g, w, b, y, s, c), y, BS=64, BC=64, BK=32)

    def reference():
        z = F.layer_norm(v.float(), (c,), g)
        return u.float() * (w.float() @ z + b[:, None])

    return against(launched, reference)


@triton.jit
def pooled_by_gated_attention(x_ptr, v_ptr, u_ptr, w_ptr, y_ptr, S, D: tl.constexpr, A: tl.constexpr, BN: tl.constexpr):
    # tanh and sigmoid of two products make a weight for each instance; an online softmax pools the bag.
    bag = tl.program_id(0)
    d, a = tl.arange(0, D), tl.arange(0, A)
    wv, wu = tl.load(v_ptr + d[:, None] * A + a[None, :]), tl.load(u_ptr + d[:, None] * A + a[None, :])
    w = tl.load(w_ptr + a)
    top, total, acc = float("-inf"), 0.0, tl.zeros((D,), tl.float32)
    for n0 in range(0, S, BN):
        n = n0 + tl.arange(0, BN)
        x = tl.load(x_ptr + (bag * S + n)[:, None] * D + d[None, :], mask=(n < S)[:, None], other=0.0)
        gate = (2.0 * tl.sigmoid(2.0 * tl.dot(x, wv)) - 1.0) * tl.sigmoid(tl.dot(x, wu))
        s = tl.where(n < S, tl.sum(gate * w[None, :], axis=1), float("-inf"))
        high = tl.maximum(top, tl.max(s))
        p, shrink = tl.exp(s - high), tl.exp(top - high)
        acc = acc * shrink + tl.sum(x.to(tl.float32) * p[:, None], axis=0)
        total = total * shrink + tl.sum(p)
        top = high
    tl.store(y_ptr + bag * D + d, acc / total)


@case
def bags_pooled_by_gated_attention_of_64():
    bags, s, d, a = 400, 600, 128, 64
    x, v, u, w, y = rand(bags, s, d), rand(d, a) / 11, rand(d, a) / 11, f32(a), zeros(bags, d, dtype="float32")
    launched = run(pooled_by_gated_attention, (bags,), (x, v, u, w, y, s), y, D=d, A=a, BN=32)

    def reference():
        z = x.float()
        weight = (((z @ v.float()).tanh() * (z @ u.float()).sigmoid()) @ w).softmax(1)
        return (z * weight[:, :, None]).sum(1)

    return against(launched, reference)


@triton.jit
def factorization_machine(index_ptr, table_ptr, linear_ptr, y_ptr, B, F: tl.constexpr, FP: tl.constexpr, D: tl.constexpr, BB: tl.constexpr):
    # Rows of 26 tables gathered to a tile of three axes: the square of their sum less the sum of their squares.
    b, f, d = tl.program_id(0) * BB + tl.arange(0, BB), tl.arange(0, FP), tl.arange(0, D)
    ok = (b < B)[:, None] & (f < F)[None, :]
    row = tl.load(index_ptr + b[:, None] * F + f[None, :], mask=ok, other=0)
    v = tl.load(table_ptr + row[:, :, None] * D + d[None, None, :], mask=ok[:, :, None], other=0.0).to(tl.float32)
    total = tl.sum(v, axis=1)
    pairs = 0.5 * tl.sum(total * total - tl.sum(v * v, axis=1), axis=1)
    first = tl.sum(tl.load(linear_ptr + row, mask=ok, other=0.0), axis=1)
    tl.store(y_ptr + b, tl.sigmoid(first + pairs), mask=b < B)


@case
def factors_of_26_fields_gathered_to_three_axes():
    b, fields, d, rows = 30000, 26, 16, 200000
    index, table, linear, y = ints(0, rows, b, fields, dtype="int64"), rand(rows, d) / 8, f32(rows) / 5, zeros(b, dtype="float32")
    launched = run(factorization_machine, (cdiv(b, 8),), (index, table, linear, y, b), y, F=fields, FP=32, D=d, BB=8)

    def reference():
        v = table[index].float()
        return (linear[index].sum(1) + 0.5 * (v.sum(1).square() - v.square().sum(1)).sum(1)).sigmoid()

    return against(launched, reference)


@triton.jit
def compressed_interactions(
    x_ptr, h_ptr, w_ptr, y_ptr, F: tl.constexpr, FP: tl.constexpr, M: tl.constexpr, D: tl.constexpr, O: tl.constexpr,
):  # fmt: skip
    # Products of two sets of fields for each coordinate: a dot over pairs, of which the tile is made by a reshape.
    b = tl.program_id(0)
    d, f, m, o = tl.arange(0, D), tl.arange(0, FP), tl.arange(0, M), tl.arange(0, O)
    x = tl.load(x_ptr + (b * F + f)[:, None] * D + d[None, :], mask=(f < F)[:, None], other=0.0)
    acc = tl.zeros((O, D), tl.float32)
    for m0 in range(0, 2 * M, M):
        h = tl.load(h_ptr + (b * 2 * M + m0 + m)[:, None] * D + d[None, :])
        pairs = tl.reshape(h[:, None, :] * x[None, :, :], (M * FP, D))
        k = tl.arange(0, M * FP)
        w = tl.load(w_ptr + o[:, None] * (2 * M * FP) + m0 * FP + k[None, :])
        acc = tl.dot(w, pairs, acc)
    y = tl.sum(tl.maximum(acc, 0.0), axis=1)
    tl.store(y_ptr + b * O + o, y)


@case
def interactions_of_fields_compressed_by_dots_of_reshaped_pairs():
    b, fields, m, d, o = 4000, 26, 8, 16, 32
    x, h = rand(b, fields, d), rand(b, 2 * m, d)
    w, y = rand(o, 2 * m, 32) / 20, zeros(b, o, dtype="float32")
    launched = run(compressed_interactions, (b,), (x, h, w, y), y, F=fields, FP=32, M=m, D=d, O=o)

    def reference():
        pairs = h.float()[:, :, None] * F.pad(x.float(), (0, 0, 0, 32 - fields))[:, None]
        return torch.einsum("omf,bmfd->bod", w.float(), pairs).relu().sum(2)

    return against(launched, reference)
