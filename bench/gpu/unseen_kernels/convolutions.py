"""Convolutions as they are first written for a module of PyTorch: loops over channels and taps, one output or one row a program."""

import torch
import torch.nn.functional as F
import triton
import triton.language as tl

from .common import against, case, cdiv, cleared, f32, rand, run, zeros


@triton.jit
def conv1d_rows(x_ptr, w_ptr, b_ptr, y_ptr, C_IN, C_OUT, L, L_OUT, K: tl.constexpr, BLOCK_L: tl.constexpr):
    # A program takes one output channel of one sample; weights are scalars.
    pid_nc, pid_l = tl.program_id(0), tl.program_id(1)
    n, oc = pid_nc // C_OUT, pid_nc % C_OUT
    offs = pid_l * BLOCK_L + tl.arange(0, BLOCK_L)
    mask = offs < L_OUT
    acc = tl.zeros((BLOCK_L,), dtype=tl.float32)
    for ic in range(C_IN):
        for k in range(K):
            x = tl.load(x_ptr + n * C_IN * L + ic * L + offs + k, mask=mask, other=0.0)
            w = tl.load(w_ptr + oc * C_IN * K + ic * K + k)
            acc += x * w
    acc += tl.load(b_ptr + oc)
    tl.store(y_ptr + n * C_OUT * L_OUT + oc * L_OUT + offs, acc, mask=mask)


@case
def conv1d_one_output_channel_a_program():
    n, ci, co, length, k = 16, 32, 64, 2000, 3
    x, w, b = f32(n, ci, length), f32(co, ci, k), f32(co)
    out = length - k + 1
    y = zeros(n, co, out, dtype="float32")
    launched = run(conv1d_rows, (n * co, cdiv(out, 512)), (x, w, b, y, ci, co, length, out), y, K=k, BLOCK_L=512)
    return against(launched, lambda: F.conv1d(x, w, b))


@triton.jit
def conv1d_flat(x, w, y, total, C_in, L_in, C_out, L_out, K, stride, dilation, padding, BLOCK: tl.constexpr):
    # A flat index is split; everything is read again for each output; all parameters are of runtime.
    idx = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    live = idx < total
    l = idx % L_out
    oc = (idx // L_out) % C_out
    n = idx // (L_out * C_out)
    acc = tl.zeros([BLOCK], dtype=tl.float32)
    for ic in range(0, C_in):
        for k in range(0, K):
            pos = l * stride + k * dilation - padding
            ok = live & (pos >= 0) & (pos < L_in)
            acc += tl.load(x + (n * C_in + ic) * L_in + pos, mask=ok, other=0.0) * tl.load(w + (oc * C_in + ic) * K + k, mask=live, other=0.0)
    tl.store(y + idx, acc, mask=live)


@case
def conv1d_flat_strided_and_dilated():
    n, ci, co, length, k, stride, dilation, padding = 8, 24, 48, 9001, 5, 3, 4, 6
    out = (length + 2 * padding - dilation * (k - 1) - 1) // stride + 1
    x, w, y = f32(n, ci, length), f32(co, ci, k), zeros(n, co, out, dtype="float32")
    args = x, w, y, y.numel(), ci, length, co, out, k, stride, dilation, padding
    launched = run(conv1d_flat, (cdiv(y.numel(), 1024),), args, y, BLOCK=1024)
    return against(launched, lambda: F.conv1d(x, w, None, stride, padding, dilation))


@triton.jit
def conv2d_flat(
    input_ptr, weight_ptr, bias_ptr, output_ptr, N, C, H, W, OC, OH, OW, KH: tl.constexpr, KW: tl.constexpr, BLOCK_SIZE: tl.constexpr
):
    pid = tl.program_id(0)
    offsets = pid * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < N * OC * OH * OW
    ow = offsets % OW
    oh = offsets // OW % OH
    oc = offsets // (OW * OH) % OC
    n = offsets // (OW * OH * OC)
    acc = tl.load(bias_ptr + oc, mask=mask, other=0.0)
    for c in range(C):
        for kh in tl.static_range(KH):
            for kw in tl.static_range(KW):
                v = tl.load(input_ptr + ((n * C + c) * H + oh + kh) * W + ow + kw, mask=mask, other=0.0)
                u = tl.load(weight_ptr + ((oc * C + c) * KH + kh) * KW + kw, mask=mask, other=0.0)
                acc += v * u
    tl.store(output_ptr + offsets, acc, mask=mask)


@case
def conv2d_flat_of_3x5_taps():
    n, c, h, w, oc = 8, 12, 98, 77, 24
    x, weight, bias = f32(n, c, h, w), f32(oc, c, 3, 5), f32(oc)
    y = zeros(n, oc, h - 2, w - 4, dtype="float32")
    args = x, weight, bias, y, n, c, h, w, oc, h - 2, w - 4
    launched = run(conv2d_flat, (cdiv(y.numel(), 256),), args, y, KH=3, KW=5, BLOCK_SIZE=256)
    return against(launched, lambda: F.conv2d(x, weight, bias))


@triton.jit
def conv2d_one_pixel(X, W, Y, H, Wd, OH, OW, C: tl.constexpr, O: tl.constexpr, K: tl.constexpr, PAD: tl.constexpr):
    # A program makes all channels of one pixel: products of a vector and a matrix of each tap are added up by `tl.sum`.
    ow, oh, n = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    c, o = tl.arange(0, C), tl.arange(0, O)
    acc = tl.zeros((O,), tl.float32)
    for kh in range(K):
        for kw in range(K):
            ih, iw = oh + kh - PAD, ow + kw - PAD
            if ih >= 0 and ih < H and iw >= 0 and iw < Wd:
                x = tl.load(X + ((n * C + c) * H + ih) * Wd + iw)
                w = tl.load(W + ((o[:, None] * C + c[None, :]) * K + kh) * K + kw)
                acc += tl.sum(w * x[None, :], axis=1)
    tl.store(Y + ((n * O + o) * OH + oh) * OW + ow, tl.maximum(acc, 0.0))


@case
def conv2d_one_pixel_a_program_relu():
    n, c, h, w, o = 4, 32, 28, 30, 64
    x, weight, y = f32(n, c, h, w), f32(o, c, 3, 3), zeros(n, o, h, w, dtype="float32")
    launched = run(conv2d_one_pixel, (w, h, n), (x, weight, y, h, w, h, w), y, C=c, O=o, K=3, PAD=1)
    return against(launched, lambda: F.conv2d(x, weight, padding=1).relu())


@triton.jit
def conv2d_dot_taps(
    x_ptr, w_ptr, b_ptr, y_ptr, C, H, W, O, OH, OW, sxn, sxc, sxh, sxw, swo, swc, swh, sww, syn, syo, syh, syw,
    KH: tl.constexpr, KW: tl.constexpr, BLOCK_P: tl.constexpr, BLOCK_O: tl.constexpr, BLOCK_C: tl.constexpr,
):  # fmt: skip
    # Strides of every dimension; a dot for each tap of each block of channels; then bias, hard swish, and relu.
    pid_p, pid_o, n = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    offs_p = pid_p * BLOCK_P + tl.arange(0, BLOCK_P)
    offs_o = pid_o * BLOCK_O + tl.arange(0, BLOCK_O)
    oh, ow = offs_p // OW, offs_p % OW
    acc = tl.zeros((BLOCK_P, BLOCK_O), dtype=tl.float32)
    for kh in range(KH):
        for kw in range(KW):
            for c0 in range(0, C, BLOCK_C):
                offs_c = c0 + tl.arange(0, BLOCK_C)
                x = tl.load(
                    x_ptr + n * sxn + offs_c[None, :] * sxc + (oh + kh)[:, None] * sxh + (ow + kw)[:, None] * sxw,
                    mask=(offs_p[:, None] < OH * OW) & (offs_c[None, :] < C),
                    other=0.0,
                )
                w = tl.load(
                    w_ptr + offs_o[None, :] * swo + offs_c[:, None] * swc + kh * swh + kw * sww,
                    mask=(offs_o[None, :] < O) & (offs_c[:, None] < C),
                    other=0.0,
                )
                acc += tl.dot(x, w)
    acc += tl.load(b_ptr + offs_o, mask=offs_o < O, other=0.0)[None, :]
    acc = acc * tl.minimum(tl.maximum(acc + 3.0, 0.0), 6.0) / 6.0
    acc = tl.maximum(acc, 0.0)
    out = y_ptr + n * syn + offs_o[None, :] * syo + oh[:, None] * syh + ow[:, None] * syw
    tl.store(out, acc, mask=(offs_p[:, None] < OH * OW) & (offs_o[None, :] < O))


@case
def conv2d_dot_of_each_tap_hard_swish_relu():
    n, c, h, o = 16, 40, 66, 72
    x, w, b, y = f32(n, c, h, h), f32(o, c, 3, 3) / 19, f32(o), zeros(n, o, h - 2, h - 2, dtype="float32")
    args = x, w, b, y, c, h, h, o, h - 2, h - 2, *x.stride(), *w.stride(), *y.stride()
    grid = cdiv((h - 2) ** 2, 64), cdiv(o, 32), n
    launched = run(conv2d_dot_taps, grid, args, y, KH=3, KW=3, BLOCK_P=64, BLOCK_O=32, BLOCK_C=16)
    return against(launched, lambda: F.hardswish(F.conv2d(x, w, b)).relu())


@triton.jit
def conv2d_min_tanh(x_ptr, w_ptr, b_ptr, y_ptr, H, W, OH, OW, CIN: tl.constexpr, COUT: tl.constexpr, K: tl.constexpr, BLOCK_W: tl.constexpr):
    # All output channels of a piece of a row: their minimum goes through tanh twice.
    n, oh = tl.program_id(1), tl.program_id(0)
    ow = tl.program_id(2) * BLOCK_W + tl.arange(0, BLOCK_W)
    oc = tl.arange(0, COUT)
    mask = ow < OW
    acc = tl.zeros((BLOCK_W, COUT), dtype=tl.float32) + tl.load(b_ptr + oc)[None, :]
    for ic in range(CIN):
        for kh in range(K):
            for kw in tl.static_range(K):
                x = tl.load(x_ptr + ((n * CIN + ic) * H + oh + kh) * W + ow + kw, mask=mask, other=0.0)
                w = tl.load(w_ptr + ((oc * CIN + ic) * K + kh) * K + kw)
                acc += x[:, None] * w[None, :]
    low = tl.min(acc, axis=1)
    low = 2.0 / (1.0 + tl.exp(-2.0 * low)) - 1.0
    low = 2.0 / (1.0 + tl.exp(-2.0 * low)) - 1.0
    tl.store(y_ptr + (n * OH + oh) * OW + ow, low, mask=mask)


@case
def conv2d_min_over_channels_tanh_twice():
    n, ci, co, h = 16, 16, 64, 66
    x, w, b, y = f32(n, ci, h, h) / 12, f32(co, ci, 3, 3) / 3, f32(co) / 4, zeros(n, 1, h - 2, h - 2, dtype="float32")
    args = x, w, b, y, h, h, h - 2, h - 2
    launched = run(conv2d_min_tanh, (h - 2, n, cdiv(h - 2, 32)), args, y, CIN=ci, COUT=co, K=3, BLOCK_W=32)
    return against(launched, lambda: F.conv2d(x, w, b).amin(1, keepdim=True).tanh().tanh())


@triton.jit
def conv2d_grouped(x_ptr, w_ptr, y_ptr, H, W, C, O, P, BLOCK_P: tl.constexpr, CG: tl.constexpr, OG: tl.constexpr):
    # Groups by the third axis of the grid; the transposed tile of weights makes dots of 16 channels.
    n, g = tl.program_id(2) // (C // CG), tl.program_id(2) % (C // CG)
    p = tl.program_id(0) * BLOCK_P + tl.arange(0, BLOCK_P)
    y, x = p // W, p % W
    ci, co = g * CG + tl.arange(0, CG), g * OG + tl.arange(0, OG)
    acc = tl.zeros((OG, BLOCK_P), tl.float32)
    for tap in range(9):
        yy, xx = y + tap // 3 - 1, x + tap % 3 - 1
        ok = (yy >= 0) & (yy < H) & (xx >= 0) & (xx < W)
        v = tl.load(x_ptr + (n * C + ci[:, None]) * P + (yy * W + xx)[None, :], mask=ok[None, :], other=0.0)
        w = tl.load(w_ptr + (co[:, None] * CG + tl.arange(0, CG)[None, :]) * 9 + tap)
        acc = tl.dot(w, v, acc)
    tl.store(y_ptr + (n * O + co[:, None]) * P + p[None, :], acc.to(y_ptr.dtype.element_ty), mask=(p < P)[None, :])


@case
def conv2d_groups_of_16_by_32_in_nchw():
    n, h, w, groups = 16, 57, 55, 8
    c, o = groups * 16, groups * 32
    x, weight, y = rand(n, c, h, w), rand(o, 16, 3, 3) / 12, zeros(n, o, h, w)
    grid = cdiv(h * w, 128), 1, n * groups
    launched = run(conv2d_grouped, grid, (x, weight, y, h, w, c, o, h * w), y, BLOCK_P=128, CG=16, OG=32)
    return against(launched, lambda: F.conv2d(x.float(), weight.float(), padding=1, groups=groups))


@triton.jit
def depthwise_flat(x, w, b, y, C, H, W, OH, OW, total, KH: tl.constexpr, KW: tl.constexpr, DH: tl.constexpr, PH: tl.constexpr, PW: tl.constexpr, BLOCK: tl.constexpr):
    idx = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    live = idx < total
    ow, oh = idx % OW, idx // OW % OH
    plane = idx // (OW * OH)
    c = plane % C
    acc = tl.zeros((BLOCK,), tl.float32)
    for i in range(KH):
        for j in range(KW):
            ih, iw = oh + i * DH - PH, ow + j - PW
            ok = live & (ih >= 0) & (ih < H) & (iw >= 0) & (iw < W)
            v = tl.load(x + plane * H * W + ih * W + iw, mask=ok, other=0.0)
            acc += v * tl.load(w + (c * KH + i) * KW + j, mask=live)
    acc += tl.load(b + c, mask=live)
    tl.store(y + idx, acc, mask=live)


@case
def conv2d_depthwise_3x7_flat_long_offsets():
    n, c, h, w = 8, 60, 100, 130
    oh = h + 4 - 4
    x, weight, bias, y = f32(n, c, h, w), f32(c, 1, 3, 7), f32(c), zeros(n, c, oh, w, dtype="float32")
    args = x, weight, bias, y, c, h, w, oh, w, y.numel()
    launched = run(depthwise_flat, (cdiv(y.numel(), 512),), args, y, KH=3, KW=7, DH=2, PH=2, PW=3, BLOCK=512, num_warps=8)
    return against(launched, lambda: F.conv2d(x, weight, bias, padding=(2, 3), dilation=(2, 1), groups=c))


@triton.jit
def pointwise_strided(x_ptr, w_ptr, y_ptr, N, C, H, W, O, sxn, sxc, sxh, sxw, swo, swc, syn, syo, syh, syw, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # A product of 1x1: rows are pixels of all samples, each index split by divisions.
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    o = tl.program_id(1) * BN + tl.arange(0, BN)
    n, h, w = m // (H * W), m // W % H, m % W
    rows_in = x_ptr + n * sxn + h * sxh + w * sxw
    acc = tl.zeros((BM, BN), tl.float32)
    for k0 in range(0, C, BK):
        k = k0 + tl.arange(0, BK)
        a = tl.load(rows_in[:, None] + k[None, :] * sxc, mask=(m < N * H * W)[:, None] & (k < C)[None, :], other=0.0)
        b = tl.load(w_ptr + o[None, :] * swo + k[:, None] * swc, mask=(o < O)[None, :] & (k < C)[:, None], other=0.0)
        acc += tl.dot(a, b, allow_tf32=False)
    rows_out = y_ptr + n * syn + h * syh + w * syw
    tl.store(rows_out[:, None] + o[None, :] * syo, acc, mask=(m < N * H * W)[:, None] & (o < O)[None, :])


@case
def conv2d_pointwise_all_strides_ieee():
    n, c, h, w, o = 8, 64, 46, 50, 128
    x, weight, y = f32(n, c, h, w), f32(o, c), zeros(n, o, h, w, dtype="float32")
    args = x, weight, y, n, c, h, w, o, *x.stride(), *weight.stride(), *y.stride()
    launched = run(pointwise_strided, (cdiv(n * h * w, 64), cdiv(o, 64)), args, y, BM=64, BN=64, BK=32)
    return against(launched, lambda: F.conv2d(x.double(), weight.double()[:, :, None, None]))


@triton.jit
def transposed_1d(x, w, y, C, O, L, L_OUT, stride, padding, dilation, K: tl.constexpr, BLOCK_O: tl.constexpr, BLOCK_L: tl.constexpr):
    # Gathers what reaches an output: taps at which the division leaves a rest are masked out.
    n = tl.program_id(2)
    l = tl.program_id(0) * BLOCK_L + tl.arange(0, BLOCK_L)
    o = tl.program_id(1) * BLOCK_O + tl.arange(0, BLOCK_O)
    acc = tl.zeros((BLOCK_O, BLOCK_L), tl.float32)
    for c in range(0, C):
        for k in tl.static_range(K):
            t = l + padding - k * dilation
            i = t // stride
            ok = (t >= 0) & (t % stride == 0) & (i < L)
            v = tl.load(x + (n * C + c) * L + i, mask=ok, other=0.0)
            u = tl.load(w + (c * O + o) * K + k, mask=o < O, other=0.0)
            acc += u[:, None] * v[None, :]
    tl.store(y + (n * O + o[:, None]) * L_OUT + l[None, :], acc, mask=(o < O)[:, None] & (l < L_OUT)[None, :])


@case
def conv_transpose1d_strided_and_dilated():
    n, c, o, length, k, stride, padding, dilation = 8, 32, 60, 1111, 5, 2, 3, 3
    out = (length - 1) * stride - 2 * padding + dilation * (k - 1) + 1
    x, w, y = f32(n, c, length), f32(c, o, k), zeros(n, o, out, dtype="float32")
    args = x, w, y, c, o, length, out, stride, padding, dilation
    launched = run(transposed_1d, (cdiv(out, 128), cdiv(o, 16), n), args, y, K=k, BLOCK_O=16, BLOCK_L=128)
    return against(launched, lambda: F.conv_transpose1d(x, w, None, stride, padding, dilation=dilation))


@triton.jit
def transposed_2d(
    x_ptr, w_ptr, b_ptr, y_ptr, C_in, H_in, W_in, C_out, H_out, W_out, STRIDE: tl.constexpr, PAD: tl.constexpr, K: tl.constexpr, BLOCK: tl.constexpr
):
    # One channel of one sample for a flat block of pixels; taps outer, channels inner, branches by masks of `tl.where`.
    oc, n = tl.program_id(1), tl.program_id(2)
    pix = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = pix < H_out * W_out
    oh, ow = pix // W_out, pix % W_out
    acc = tl.zeros([BLOCK], dtype=tl.float32)
    for kh in range(K):
        for kw in range(K):
            th, tw = oh + PAD - kh, ow + PAD - kw
            ih, iw = th // STRIDE, tw // STRIDE
            ok = (th % STRIDE == 0) & (tw % STRIDE == 0) & (th >= 0) & (tw >= 0) & (ih < H_in) & (iw < W_in) & mask
            ih, iw = tl.where(ok, ih, 0), tl.where(ok, iw, 0)
            for ic in range(C_in):
                v = tl.load(x_ptr + ((n * C_in + ic) * H_in + ih) * W_in + iw)
                w = tl.load(w_ptr + ((ic * C_out + oc) * K + kh) * K + kw)
                acc += tl.where(ok, v, 0.0) * w
    acc += tl.load(b_ptr + oc)
    acc = 0.5 * acc * (1.0 + tl.erf(acc * 0.7071067811865476))
    tl.store(y_ptr + ((n * C_out + oc) * H_out + oh) * W_out + ow, acc, mask=mask)


@case
def conv_transpose2d_stride_3_gelu():
    n, ci, co, h, w = 4, 24, 20, 40, 37
    x, weight, bias = f32(n, ci, h, w), f32(ci, co, 4, 4) / 5, f32(co)
    want = lambda: F.gelu(F.conv_transpose2d(x, weight, bias, stride=3, padding=1))  # noqa: E731
    oh, ow = (h - 1) * 3 - 2 + 4, (w - 1) * 3 - 2 + 4
    y = zeros(n, co, oh, ow, dtype="float32")
    args = x, weight, bias, y, ci, h, w, co, oh, ow
    return against(run(transposed_2d, (cdiv(oh * ow, 512), co, n), args, y, STRIDE=3, PAD=1, K=4, BLOCK=512), want)


@triton.jit
def transposed_3d_scatter(X, W, Y, C, D, H, Wd, O, OD, OH, OW, stride, K: tl.constexpr, BLOCK_O: tl.constexpr):
    # Each input position is added to what it reaches, by atomics.
    pos, n = tl.program_id(0), tl.program_id(1)
    d, h, w = pos // (H * Wd), pos // Wd % H, pos % Wd
    o = tl.arange(0, BLOCK_O)
    tap = tl.arange(0, 32)
    kd, kh, kw = tap // (K * K), tap // K % K, tap % K
    live = (o < O)[:, None] & (tap < K * K * K)[None, :]
    acc = tl.zeros((BLOCK_O, 32), tl.float32)
    for c in range(0, C):
        v = tl.load(X + ((n * C + c) * D * H + d * H + h) * Wd + w)
        acc += v * tl.load(W + (c * O + o)[:, None] * (K * K * K) + tap[None, :], mask=live, other=0.0)
    od, oh, ow = d * stride + kd, h * stride + kh, w * stride + kw
    at = (n * O + o)[:, None] * OD * OH * OW + ((od * OH + oh) * OW + ow)[None, :]
    tl.atomic_add(Y + at, acc, mask=live)


@case
def conv_transpose3d_scattered_by_atomics():
    n, c, o, d, h, w = 2, 16, 12, 10, 14, 15
    x, weight = f32(n, c, d, h, w), f32(c, o, 3, 3, 3)
    size = [2 * (s - 1) + 3 for s in (d, h, w)]
    y = zeros(n, o, *size, dtype="float32")
    args = x, weight, y, c, d, h, w, o, *size, 2
    launched = run(transposed_3d_scatter, (d * h * w, n), args, y, K=3, BLOCK_O=16, num_warps=2)
    return against(cleared(launched, y), lambda: F.conv_transpose3d(x, weight, stride=2))


@triton.jit
def conv3d_dot(x_ptr, w_ptr, y_ptr, N, D, H, W, OD, OH, OW, KD: tl.constexpr, KH: tl.constexpr, KW: tl.constexpr, C: tl.constexpr, O: tl.constexpr, BLOCK_P: tl.constexpr):
    # Five dimensions, an uneven kernel; all channels by one dot a tap, in an NCDHW tensor.
    pos = tl.program_id(0) * BLOCK_P + tl.arange(0, BLOCK_P)
    live = pos < N * OD * OH * OW
    ow = pos % OW
    t = pos // OW
    oh = t % OH
    t = t // OH
    od = t % OD
    n = t // OD
    c, o = tl.arange(0, C), tl.arange(0, O)
    acc = tl.zeros((BLOCK_P, O), tl.float32)
    for kd in range(KD):
        for kh in range(KH):
            for kw in range(KW):
                at = (((n * C)[:, None] + c[None, :]) * D + (od + kd)[:, None]) * H + (oh + kh)[:, None]
                x = tl.load(x_ptr + at * W + (ow + kw)[:, None], mask=live[:, None], other=0.0)
                w = tl.load(w_ptr + (((o[None, :] * C + c[:, None]) * KD + kd) * KH + kh) * KW + kw)
                acc += tl.dot(x, w)
    at = (((n * O)[:, None] + o[None, :]) * OD + od[:, None]) * OH + oh[:, None]
    tl.store(y_ptr + at * OW + ow[:, None], acc, mask=live[:, None])


@case
def conv3d_of_3x5x7_taps_by_dots():
    n, c, o, d, h, w = 4, 16, 32, 12, 34, 38
    x, weight, y = f32(n, c, d, h, w), f32(o, c, 3, 5, 7) / 40, zeros(n, o, d - 2, h - 4, w - 6, dtype="float32")
    args = x, weight, y, n, d, h, w, d - 2, h - 4, w - 6
    launched = run(conv3d_dot, (cdiv(y.numel() // o, 64),), args, y, KD=3, KH=5, KW=7, C=c, O=o, BLOCK_P=64)
    return against(launched, lambda: F.conv3d(x, weight))


@triton.jit
def conv3d_softmax(x_ptr, w_ptr, b_ptr, y_ptr, D, H, W, OD, OH, OW, CI: tl.constexpr, CO: tl.constexpr, BLOCK_CO: tl.constexpr, BLOCK_W: tl.constexpr):
    # The softmax over channels is taken before the result is stored.
    row, n = tl.program_id(0), tl.program_id(1)
    od, oh = row // OH, row % OH
    ow, co = tl.arange(0, BLOCK_W), tl.arange(0, BLOCK_CO)
    acc = tl.zeros((BLOCK_CO, BLOCK_W), tl.float32) + tl.load(b_ptr + co, mask=co < CO, other=-1e30)[:, None]
    for ci in tl.static_range(CI):
        for kd in range(3):
            for kh in range(3):
                base = x_ptr + (((n * CI + ci) * D + od + kd) * H + oh + kh) * W
                for kw in range(3):
                    v = tl.load(base + ow + kw, mask=ow < OW, other=0.0)
                    w = tl.load(w_ptr + (co * CI + ci) * 27 + kd * 9 + kh * 3 + kw, mask=co < CO, other=0.0)
                    acc += w[:, None] * v[None, :]
    acc = tl.exp(acc - tl.max(acc, axis=0, keep_dims=True))
    acc = acc / tl.sum(acc, axis=0, keep_dims=True)
    out = y_ptr + ((n * CO + co[:, None]) * OD + od) * OH * OW + oh * OW + ow[None, :]
    tl.store(out, acc, mask=(co < CO)[:, None] & (ow < OW)[None, :])


@case
def conv3d_softmax_over_channels():
    n, ci, co, d, h, w = 16, 3, 16, 16, 32, 34
    x, weight, bias, y = f32(n, ci, d, h, w), f32(co, ci, 3, 3, 3) / 9, f32(co), zeros(n, co, d - 2, h - 2, w - 2, dtype="float32")
    args = x, weight, bias, y, d, h, w, d - 2, h - 2, w - 2
    grid = (d - 2) * (h - 2), n
    launched = run(conv3d_softmax, grid, args, y, CI=ci, CO=co, BLOCK_CO=16, BLOCK_W=32)
    return against(launched, lambda: F.conv3d(x, weight, bias).softmax(1))


@triton.jit
def fold_columns(cols, y, C, H, W, OH, OW, stride, total, K: tl.constexpr, BLOCK: tl.constexpr):
    # From columns back to an image: each pixel gathers the windows that hold it.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    live = i < total
    w, h, plane = i % W, i // W % H, i // (W * H)
    acc = tl.zeros((BLOCK,), tl.float32)
    for kh in tl.static_range(K):
        for kw in tl.static_range(K):
            th, tw = h - kh, w - kw
            oh, ow = th // stride, tw // stride
            ok = live & (th >= 0) & (tw >= 0) & (th % stride == 0) & (tw % stride == 0) & (oh < OH) & (ow < OW)
            acc += tl.load(cols + (plane * K * K + kh * K + kw) * OH * OW + oh * OW + ow, mask=ok, other=0.0)
    tl.store(y + i, acc, mask=live)


@case
def fold_of_columns_4x4_stride_2():
    n, c, h, w, k = 8, 24, 90, 94, 4
    oh, ow = (h - k) // 2 + 1, (w - k) // 2 + 1
    cols, y = f32(n, c * k * k, oh * ow), zeros(n, c, h, w, dtype="float32")
    args = cols, y, c, h, w, oh, ow, 2, y.numel()
    launched = run(fold_columns, (cdiv(y.numel(), 1024),), args, y, K=k, BLOCK=1024, num_warps=8)
    return against(launched, lambda: F.fold(cols, (h, w), k, stride=2))


@triton.jit
def conv2d_block_pointers(x_ptr, w_ptr, y_ptr, H, W, C, O, OH, OW, BW: tl.constexpr, BO: tl.constexpr, BC: tl.constexpr):
    # NHWC: a row of pixels is a matrix; the pointers of blocks are made again for each tap.
    oh, n = tl.program_id(1), tl.program_id(2)
    n_o = tl.cdiv(O, BO)
    w0, o0 = tl.program_id(0) // n_o * BW, tl.program_id(0) % n_o * BO
    acc = tl.zeros((BW, BO), tl.float32)
    for kh in range(3):
        for kw in range(3):
            row = x_ptr + ((n * H + oh + kh) * W + kw) * C
            a = tl.make_block_ptr(row, (OW, C), (C, 1), (w0, 0), (BW, BC), (1, 0))
            b = tl.make_block_ptr(w_ptr + (kh * 3 + kw) * C * O, (C, O), (O, 1), (0, o0), (BC, BO), (1, 0))
            for _ in range(0, C, BC):
                u = tl.load(a, boundary_check=(0, 1), padding_option="zero")
                v = tl.load(b, boundary_check=(0, 1), padding_option="zero")
                acc = tl.dot(u, v, acc)
                a = tl.advance(a, (0, BC))
                b = tl.advance(b, (BC, 0))
    acc = tl.where(acc >= 0, acc, acc * 0.01)
    y = tl.make_block_ptr(y_ptr + (n * OH + oh) * OW * O, (OW, O), (O, 1), (w0, o0), (BW, BO), (1, 0))
    tl.store(y, acc.to(y_ptr.dtype.element_ty), boundary_check=(0, 1))


@case
def conv2d_block_pointers_made_for_each_tap():
    n, h, w, c, o = 8, 58, 114, 72, 136
    x, weight, y = rand(n, h, w, c, dtype="bfloat16"), rand(9, c, o, dtype="bfloat16") / 25, zeros(n, h - 2, w - 2, o, dtype="bfloat16")
    args = x, weight, y, h, w, c, o, h - 2, w - 2
    grid = cdiv(w - 2, 64) * cdiv(o, 64), h - 2, n
    launched = run(conv2d_block_pointers, grid, args, y, BW=64, BO=64, BC=32)

    def reference():
        made = F.conv2d(x.float().permute(0, 3, 1, 2), weight.float().view(3, 3, c, o).permute(3, 2, 0, 1))
        return F.leaky_relu(made).permute(0, 2, 3, 1).contiguous()

    return against(launched, reference)


@triton.jit
def stem_one_dot(x_ptr, w_ptr, b_ptr, y_ptr, H, W, OH, OW, O: tl.constexpr, TAPS: tl.constexpr, BLOCK_K: tl.constexpr, BLOCK_P: tl.constexpr):
    # The first layer of a network for pictures: three channels and 7x7 taps are one padded K.
    n = tl.program_id(1)
    p = tl.program_id(0) * BLOCK_P + tl.arange(0, BLOCK_P)
    k, o = tl.arange(0, BLOCK_K), tl.arange(0, O)
    c, kh, kw = k // 49, k % 49 // 7, k % 7
    ih, iw = (p // OW * 2 - 3)[:, None] + kh[None, :], (p % OW * 2 - 3)[:, None] + kw[None, :]
    ok = (p < OH * OW)[:, None] & (k < TAPS)[None, :] & (ih >= 0) & (ih < H) & (iw >= 0) & (iw < W)
    x = tl.load(x_ptr + ((n * 3 + c[None, :]) * H + ih) * W + iw, mask=ok, other=0.0)
    w = tl.load(w_ptr + o[None, :] * TAPS + k[:, None], mask=(k < TAPS)[:, None], other=0.0)
    y = tl.dot(x, w) + tl.load(b_ptr + o)[None, :]
    tl.store(y_ptr + (n * O + o[None, :]) * OH * OW + p[:, None], tl.maximum(y, 0).to(tl.float16), mask=(p < OH * OW)[:, None])


@case
def conv2d_stem_7x7_in_one_dot():
    n, h, o = 32, 224, 64
    x, w, b, y = rand(n, 3, h, h), rand(o, 3, 7, 7) / 12, rand(o), zeros(n, o, 112, 112)
    args = x, w, b, y, h, h, 112, 112
    launched = run(stem_one_dot, (cdiv(112 * 112, 64), n), args, y, O=o, TAPS=147, BLOCK_K=256, BLOCK_P=64)
    return against(launched, lambda: F.conv2d(x.float(), w.float(), b.float(), 2, 3).relu())


@triton.jit
def conv2d_broadcast_sum(x_ptr, w_ptr, y_ptr, C, H, W, O, OH, OW, K: tl.constexpr, BW: tl.constexpr, BO: tl.constexpr, BC: tl.constexpr):
    # Products of three axes are added up over the last one, where a dot would do.
    oh, n = tl.program_id(1), tl.program_id(2)
    n_o = tl.cdiv(O, BO)
    ow = tl.program_id(0) // n_o * BW + tl.arange(0, BW)
    o = tl.program_id(0) % n_o * BO + tl.arange(0, BO)
    acc = tl.zeros((BW, BO), tl.float32)
    for c0 in range(0, C, BC):
        c = c0 + tl.arange(0, BC)
        for kh in range(K):
            for kw in range(K):
                x = tl.load(x_ptr + ((n * C + c[None, :]) * H + oh + kh) * W + (ow + kw)[:, None], mask=(ow < OW)[:, None] & (c < C)[None, :], other=0.0)
                w = tl.load(w_ptr + ((o[:, None] * C + c[None, :]) * K + kh) * K + kw, mask=(o < O)[:, None] & (c < C)[None, :], other=0.0)
                acc += tl.sum(x[:, None, :] * w[None, :, :], 2)
    y = acc - 0.5
    y = y * (2.0 / (1.0 + tl.exp(-2.0 * tl.log(1.0 + tl.exp(y)))) - 1.0)
    tl.store(y_ptr + ((n * O + o[None, :]) * OH + oh) * OW + ow[:, None], y, mask=(ow < OW)[:, None] & (o < O)[None, :])


@case
def conv2d_by_broadcast_and_sum_mish():
    n, c, o, h, w = 4, 16, 48, 34, 66
    x, weight, y = f32(n, c, h, w), f32(o, c, 3, 3) / 12, zeros(n, o, h - 2, w - 2, dtype="float32")
    grid = cdiv(w - 2, 32) * cdiv(o, 16), h - 2, n
    launched = run(conv2d_broadcast_sum, grid, (x, weight, y, c, h, w, o, h - 2, w - 2), y, K=3, BW=32, BO=16, BC=16)
    return against(launched, lambda: F.mish(F.conv2d(x, weight) - 0.5))


@triton.jit
def depthwise_1d_tile(x_ptr, w_ptr, y_ptr, T, taps, BLOCK_T: tl.constexpr, BLOCK_K: tl.constexpr):
    # Windows are gathered as a tile of positions and taps.
    t = tl.program_id(0) * BLOCK_T + tl.arange(0, BLOCK_T)
    k = tl.arange(0, BLOCK_K)
    row, c = tl.program_id(1), tl.program_id(1) % 96
    src = t[:, None] + k[None, :] - (taps - 1)
    x = tl.load(x_ptr + row * T + src, mask=(src >= 0) & (src < T) & (k < taps)[None, :], other=0.0)
    w = tl.load(w_ptr + c * taps + k, mask=k < taps, other=0.0)
    y = tl.sum(x.to(tl.float32) * w.to(tl.float32)[None, :], axis=1)
    tl.store(y_ptr + row * T + t, (y * tl.sigmoid(y)).to(tl.bfloat16), mask=t < T)


@case
def conv1d_depthwise_windows_of_31_in_a_tile():
    n, c, t, taps = 8, 96, 3000, 31
    x, w, y = rand(n, c, t, dtype="bfloat16"), rand(c, taps, dtype="bfloat16") / 5, zeros(n, c, t, dtype="bfloat16")
    launched = run(depthwise_1d_tile, (cdiv(t, 128), n * c), (x, w, y, t, taps), y, BLOCK_T=128, BLOCK_K=32)
    return against(launched, lambda: F.silu(F.conv1d(F.pad(x.float(), (taps - 1, 0)), w.float()[:, None], groups=c)))


@triton.jit
def conv_for_norm(x, w, b, y, C: tl.constexpr, H, W, O, OH, OW, BLOCK: tl.constexpr):
    n, o = tl.program_id(1) // O, tl.program_id(1) % O
    p = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    h, v = p // OW, p % OW
    acc = tl.zeros((BLOCK,), tl.float32) + tl.load(b + o)
    c = 0
    while c < C:
        for t in range(9):
            a = tl.load(x + ((n * C + c) * H + h + t // 3) * W + v + t % 3, mask=p < OH * OW, other=0.0)
            acc += a * tl.load(w + (o * C + c) * 9 + t)
        c += 1
    tl.store(y + (n * O + o) * OH * OW + p, acc, mask=p < OH * OW)


@triton.jit
def group_norm_pool(x, gamma, beta, scale, y, O, H, W, eps, GROUP: tl.constexpr, BLOCK: tl.constexpr):
    # A group's plane is read twice for its statistics, then window by window.
    n, g = tl.program_id(0), tl.program_id(1)
    size = GROUP * H * W
    base = x + (n * O + g * GROUP) * H * W
    total = 0.0
    for at in range(0, size, BLOCK):
        i = at + tl.arange(0, BLOCK)
        total += tl.sum(tl.load(base + i, mask=i < size, other=0.0))
    mean = total / size
    total = 0.0
    for at in range(0, size, BLOCK):
        i = at + tl.arange(0, BLOCK)
        d = tl.where(i < size, tl.load(base + i, mask=i < size, other=0.0) - mean, 0.0)
        total += tl.sum(d * d)
    rstd = 1 / tl.sqrt(total / size + eps)
    PH, PW = H // 2, W // 2
    for c in range(GROUP):
        ch = g * GROUP + c
        m = tl.load(gamma + ch) * tl.load(scale + ch) * rstd
        a = tl.load(beta + ch) * tl.load(scale + ch) - mean * m
        for at in range(0, PH * PW, BLOCK):
            i = at + tl.arange(0, BLOCK)
            ok = i < PH * PW
            best = tl.full((BLOCK,), float("-inf"), tl.float32)
            for t in tl.static_range(4):
                v = tl.load(base + c * H * W + (i // PW * 2 + t // 2) * W + i % PW * 2 + t % 2, mask=ok, other=float("-inf"))
                best = tl.maximum(best, v * m + a)
            tl.store(y + (n * O + ch) * PH * PW + i, tl.clamp(best, -0.5, 1.0), mask=ok)


@case
def conv2d_group_norm_scale_pool_clamp():
    n, c, o, h, w = 32, 8, 48, 60, 63
    oh, ow = h - 2, w - 2
    x, weight, bias, gamma, beta, scale = f32(n, c, h, w), f32(o, c, 3, 3) / 8, f32(o), f32(o), f32(o), f32(o)
    made, y = zeros(n, o, oh, ow, dtype="float32"), zeros(n, o, oh // 2, ow // 2, dtype="float32")

    def launch(*args):
        conv_for_norm[(cdiv(oh * ow, 1024), n * o)](x, weight, bias, made, c, h, w, o, oh, ow, BLOCK=1024)
        group_norm_pool[(n, o // 6)](made, gamma, beta, scale, y, o, oh, ow, 1e-5, GROUP=6, BLOCK=1024)
        return y

    def reference():
        normed = F.group_norm(F.conv2d(x, weight, bias), o // 6, gamma, beta) * scale[:, None, None]
        return F.max_pool2d(normed, 2).clamp(-0.5, 1.0)

    return against((launch, (x,)), reference)


@triton.jit
def separable_block(x_ptr, dw_ptr, pw_ptr, y_ptr, H, W, C, O, BLOCK_P: tl.constexpr, BLOCK_C: tl.constexpr, BLOCK_O: tl.constexpr):
    # Depthwise taps of a block of channels make an operand of the pointwise dot at once; NCHW, clamped to six.
    n = tl.program_id(2)
    p = tl.program_id(0) * BLOCK_P + tl.arange(0, BLOCK_P)
    o = tl.program_id(1) * BLOCK_O + tl.arange(0, BLOCK_O)
    h, w = p // W, p % W
    acc = tl.zeros((BLOCK_O, BLOCK_P), tl.float32)
    for c0 in range(0, C, BLOCK_C):
        c = c0 + tl.arange(0, BLOCK_C)
        mid = tl.zeros((BLOCK_C, BLOCK_P), tl.float32)
        for i in tl.static_range(3):
            for j in tl.static_range(3):
                ok = (h + i >= 1) & (h + i <= H) & (w + j >= 1) & (w + j <= W) & (p < H * W)
                v = tl.load(x_ptr + (n * C + c)[:, None] * H * W + (p + (i - 1) * W + j - 1)[None, :], mask=ok[None, :] & (c < C)[:, None], other=0.0)
                mid += v * tl.load(dw_ptr + c * 9 + i * 3 + j, mask=c < C, other=0.0)[:, None]
        mid = tl.minimum(tl.maximum(mid, 0.0), 6.0)
        u = tl.load(pw_ptr + o[:, None] * C + c[None, :], mask=(o < O)[:, None] & (c < C)[None, :], other=0.0)
        acc = tl.dot(u, mid, acc)
    tl.store(y_ptr + (n * O + o)[:, None] * H * W + p[None, :], acc, mask=(o < O)[:, None] & (p < H * W)[None, :])


@case
def conv2d_separable_block_of_mobile_network():
    n, c, o, h = 16, 96, 160, 28
    x, dw, pw, y = f32(n, c, h, h), f32(c, 1, 3, 3), f32(o, c) / 10, zeros(n, o, h, h, dtype="float32")
    args = x, dw, pw, y, h, h, c, o
    launched = run(separable_block, (cdiv(h * h, 64), cdiv(o, 64), n), args, y, BLOCK_P=64, BLOCK_C=32, BLOCK_O=64, num_stages=2)
    return against(launched, lambda: F.conv2d(F.relu6(F.conv2d(x, dw, padding=1, groups=c)), pw[:, :, None, None]))


@triton.jit
def conv_avg_sigmoid_sum(x_ptr, w_ptr, b_ptr, y_ptr, H, W, CI: tl.constexpr, CO: tl.constexpr, PH, PW, BLOCK: tl.constexpr):
    # A convolution, a mean over windows of 4x4, a sigmoid, and a sum over everything of a sample, in one kernel.
    n = tl.program_id(1)
    q = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    live = q < PH * PW
    total = tl.zeros((BLOCK,), tl.float32)
    for co in range(CO):
        pooled = tl.zeros((BLOCK,), tl.float32)
        bias = tl.load(b_ptr + co)
        for cell in range(16):
            oh, ow = q // PW * 4 + cell // 4, q % PW * 4 + cell % 4
            for ci in range(CI):
                for t in tl.static_range(9):
                    at = ((n * CI + ci) * H + oh + t // 3) * W + ow + t % 3
                    pooled += tl.load(x_ptr + at, mask=live, other=0.0) * tl.load(w_ptr + (co * CI + ci) * 9 + t)
        total += tl.sigmoid(pooled * (1.0 / 16) + bias)
    tl.atomic_add(y_ptr + n, tl.sum(tl.where(live, total, 0.0)))


@case
def conv2d_pooled_sigmoids_summed_by_atomics():
    n, ci, co, h, w = 64, 3, 8, 66, 62
    x, weight, bias, y = f32(n, ci, h, w), f32(co, ci, 3, 3) / 5, f32(co), zeros(n, dtype="float32")
    args = x, weight, bias, y, h, w
    ph, pw = (h - 2) // 4, (w - 2) // 4
    launched = run(conv_avg_sigmoid_sum, (cdiv(ph * pw, 128), n), (*args, ci, co, ph, pw), y, BLOCK=128)
    return against(cleared(launched, y), lambda: F.avg_pool2d(F.conv2d(x, weight, bias), 4).sigmoid().sum((1, 2, 3)))
