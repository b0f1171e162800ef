"""Signals in time: spectra, filters with and without memory, pitch, wavelets, prices and their models, positions on earth."""

import math

import torch
import triton
import triton.language as tl

from .common import arange, case, cdiv, f32, far, ints, run, uniform, viewed, zeros


@triton.jit
def stft_power_kernel(x_ptr, win_ptr, cos_ptr, sin_ptr, out_ptr, n_frames, hop, n_bins, stride_c, N_FFT: tl.constexpr, BLOCK_T: tl.constexpr,
                      BLOCK_F: tl.constexpr, BLOCK_K: tl.constexpr):
    # Frames are read in place, windowed, and met with both tables of the transform.
    t = tl.program_id(0) * BLOCK_T + tl.arange(0, BLOCK_T)
    f = tl.program_id(1) * BLOCK_F + tl.arange(0, BLOCK_F)
    c = tl.program_id(2)
    tm, fm = t < n_frames, f < n_bins
    re = tl.zeros((BLOCK_T, BLOCK_F), dtype=tl.float32)
    im = tl.zeros((BLOCK_T, BLOCK_F), dtype=tl.float32)
    for k0 in range(0, N_FFT, BLOCK_K):
        k = k0 + tl.arange(0, BLOCK_K)
        frame = tl.load(x_ptr + c * stride_c + t[:, None] * hop + k[None, :], mask=tm[:, None], other=0.0)
        frame = frame * tl.load(win_ptr + k)[None, :]
        wr = tl.load(cos_ptr + k[:, None] * n_bins + f[None, :], mask=fm[None, :], other=0.0)
        wi = tl.load(sin_ptr + k[:, None] * n_bins + f[None, :], mask=fm[None, :], other=0.0)
        re = tl.dot(frame, wr, re, input_precision="tf32")
        im = tl.dot(frame, wi, im, input_precision="tf32")
    out = out_ptr + (c * n_frames + t[:, None]) * n_bins + f[None, :]
    tl.store(out, re * re + im * im, mask=tm[:, None] & fm[None, :])


@case
def stft_power_by_dots():
    channels, samples, n_fft, hop = 8, 160000, 400, 160
    bins, frames = 201, (160000 - 400) // 160 + 1
    padded = 416
    k = torch.arange(padded, device="cuda", dtype=torch.float32)[:, None] * torch.arange(bins, device="cuda", dtype=torch.float32)[None, :]
    angle = 2 * math.pi * (k % n_fft) / n_fft
    window = torch.zeros(padded, device="cuda")
    window[:n_fft] = torch.hann_window(n_fft, device="cuda")
    out = zeros(channels, frames, bins, dtype="float32")
    args = f32(channels, samples + padded), window, torch.cos(angle), torch.sin(angle), out, frames, hop, bins, samples + padded
    grid = cdiv(frames, 64), cdiv(bins, 64), channels
    return run(stft_power_kernel, grid, args, out, N_FFT=padded, BLOCK_T=64, BLOCK_F=64, BLOCK_K=32, num_warps=4, num_stages=3)


@triton.jit
def log_mel_kernel(power_ptr, start_ptr, len_ptr, weight_ptr, out_ptr, frames, n_bins, n_mels, MAX_LEN: tl.constexpr, BLOCK_T: tl.constexpr):
    # A triangle of the filter bank a program: a range of bins, weights padded to a common length.
    mel = tl.program_id(1)
    t = tl.program_id(0) * BLOCK_T + tl.arange(0, BLOCK_T)
    k = tl.arange(0, MAX_LEN)
    start, length = tl.load(start_ptr + mel), tl.load(len_ptr + mel)
    km = k < length
    w = tl.load(weight_ptr + mel * MAX_LEN + k, mask=km, other=0.0)
    p = tl.load(power_ptr + t[:, None] * n_bins + start + k[None, :], mask=(t < frames)[:, None] & km[None, :], other=0.0)
    e = tl.sum(p * w[None, :], axis=1)
    db = tl.log2(tl.maximum(e, 1e-10)) * 0.30102999566
    tl.store(out_ptr + mel * frames + t, (db + 4.0) * 0.25, mask=t < frames)


@case
def log_mel_of_sparse_triangles():
    frames, bins, mels, longest = 30000, 513, 80, 32
    start = (arange(mels).float() ** 1.4).int()
    args = uniform(frames, bins) + 0.01, start, ints(2, longest, mels), uniform(mels, longest), zeros(mels, frames, dtype="float32")
    return run(log_mel_kernel, (cdiv(frames, 64), mels), (*args, frames, bins, mels), args[-1], MAX_LEN=longest, BLOCK_T=64, num_warps=4)


@triton.jit
def overlap_add(frames_ptr, win_ptr, out_ptr, n_frames, total, HOP: tl.constexpr, N: tl.constexpr, BLOCK: tl.constexpr):
    # Every sample gathers the frames over it, divided by the sum of squared windows.
    row = tl.program_id(1)
    t = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    last = t // HOP
    acc = tl.zeros((BLOCK,), tl.float32)
    norm = tl.zeros((BLOCK,), tl.float32)
    for back in tl.static_range(N // HOP):
        f = last - back
        k = t - f * HOP
        ok = (f >= 0) & (f < n_frames) & (t < total)
        w = tl.load(win_ptr + k, mask=ok, other=0.0)
        acc += w * tl.load(frames_ptr + (row * n_frames + f) * N + k, mask=ok, other=0.0)
        norm += w * w
    tl.store(out_ptr + row * total + t, acc / tl.where(norm > 1e-8, norm, 1.0), mask=t < total)


@case
def istft_overlap_add():
    rows, frames, hop, n = 16, 1200, 256, 1024
    total = (frames - 1) * hop + n
    out = zeros(rows, total, dtype="float32")
    window = torch.hann_window(n, device="cuda") + 0.01
    return run(overlap_add, (cdiv(total, 1024), rows), (f32(rows, frames, n), window, out, frames, total), out, HOP=hop, N=n, BLOCK=1024, num_warps=4)


@triton.jit
def resample_rational(x_ptr, h_ptr, y_ptr, n_in, n_out, L: tl.constexpr, M: tl.constexpr, TAPS: tl.constexpr, BLOCK: tl.constexpr):
    # Up by L, down by M: the phase of an output picks its taps.
    row = tl.program_id(1).to(tl.int64)
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    at = o * M
    phase = at % L
    first = at // L
    acc = tl.zeros((BLOCK,), tl.float32)
    for k in range(TAPS):
        i = first + k - TAPS // 2
        x = tl.load(x_ptr + row * n_in + i, mask=(i >= 0) & (i < n_in) & (o < n_out), other=0.0)
        acc += x * tl.load(h_ptr + phase * TAPS + k)
    tl.store(y_ptr + row * n_out + o, acc, mask=o < n_out)


@case
def resample_441_to_480():
    rows, n_in, l, m, taps = 32, 88200, 160, 147, 24
    n_out = n_in * l // m
    y = zeros(rows, n_out, dtype="float32")
    return run(resample_rational, (cdiv(n_out, 512), rows), (f32(rows, n_in), f32(l, taps), y, n_in, n_out), y, L=l, M=m, TAPS=taps, BLOCK=512, num_warps=4)


@triton.jit
def _biquad(x, s1, s2, b0, b1, b2, a1, a2):
    y = b0 * x + s1
    return y, b1 * x - a1 * y + s2, b2 * x - a2 * y


@triton.jit
def biquad_cascade(x_ptr, coef_ptr, y_ptr, T, C, BLOCK: tl.constexpr):
    # Three sections in series for each channel, transposed direct form; time is a loop, channels are lanes.
    c = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = c < C
    p = coef_ptr + c * 15
    b00, b01, b02, a01, a02 = tl.load(p, m, 0.0), tl.load(p + 1, m, 0.0), tl.load(p + 2, m, 0.0), tl.load(p + 3, m, 0.0), tl.load(p + 4, m, 0.0)
    b10, b11, b12, a11, a12 = tl.load(p + 5, m, 0.0), tl.load(p + 6, m, 0.0), tl.load(p + 7, m, 0.0), tl.load(p + 8, m, 0.0), tl.load(p + 9, m, 0.0)
    b20, b21, b22, a21, a22 = tl.load(p + 10, m, 0.0), tl.load(p + 11, m, 0.0), tl.load(p + 12, m, 0.0), tl.load(p + 13, m, 0.0), tl.load(p + 14, m, 0.0)
    z = tl.zeros((BLOCK,), tl.float32)
    s00, s01, s10, s11, s20, s21 = z, z, z, z, z, z
    for t in range(T):
        x = tl.load(x_ptr + t * C + c, mask=m, other=0.0)
        x, s00, s01 = _biquad(x, s00, s01, b00, b01, b02, a01, a02)
        x, s10, s11 = _biquad(x, s10, s11, b10, b11, b12, a11, a12)
        x, s20, s21 = _biquad(x, s20, s21, b20, b21, b22, a21, a22)
        tl.store(y_ptr + t * C + c, x, mask=m)


@case
def biquad_cascade_of_channels():
    t, c = 480, 20000
    coef = torch.tensor([0.2, 0.3, 0.1, -0.6, 0.2] * 3, device="cuda") * (uniform(c, 15) * 0.2 + 0.9)
    y = zeros(t, c, dtype="float32")
    return run(biquad_cascade, (cdiv(c, 64),), (f32(t, c), coef.contiguous(), y, t, c), y, BLOCK=64, num_warps=2)


@triton.jit
def _affine(a1, b1, a2, b2):
    return a1 * a2, b1 * a2 + b2


@triton.jit
def dc_block_and_smooth(x_ptr, y_ptr, env_ptr, T, pole, alpha, BLOCK: tl.constexpr):
    # y[t] = x[t] - x[t-1] + pole y[t-1], then the average of its magnitude; both as scans with a carry.
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    y_last = 0.0
    e_last = 0.0
    for t0 in range(0, T, BLOCK):
        t = t0 + i
        m = t < T
        x = tl.load(x_ptr + row * T + t, mask=m, other=0.0)
        x1 = tl.load(x_ptr + row * T + t - 1, mask=m & (t > 0), other=0.0)
        a, y = tl.associative_scan((tl.full((BLOCK,), 1.0, tl.float32) * pole, x - x1), 0, _affine)
        y += a * y_last
        g, e = tl.associative_scan((tl.full((BLOCK,), 1.0, tl.float32) * (1.0 - alpha), tl.abs(y) * alpha), 0, _affine)
        e += g * e_last
        tl.store(y_ptr + row * T + t, y, mask=m)
        tl.store(env_ptr + row * T + t, e, mask=m)
        y_last = tl.sum(tl.where(i == BLOCK - 1, y, 0.0), axis=0)
        e_last = tl.sum(tl.where(i == BLOCK - 1, e, 0.0), axis=0)


@case
def dc_blocker_and_envelope_scans():
    rows, t = 512, 16000
    y, env = zeros(rows, t, dtype="float32"), zeros(rows, t, dtype="float32")
    return run(dc_block_and_smooth, (rows,), (f32(rows, t) + 0.3, y, env, t, 0.995, 0.01), (y, env), BLOCK=1024, num_warps=4)


@triton.jit
def _affine_2x2(a, b, c, d, u, v, a2, b2, c2, d2, u2, v2):
    return (a2 * a + b2 * c, a2 * b + b2 * d, c2 * a + d2 * c, c2 * b + d2 * d, a2 * u + b2 * v + u2, c2 * u + d2 * v + v2)


@triton.jit
def modulated_resonator(x_ptr, freq_ptr, y_ptr, T, damping, BLOCK: tl.constexpr):
    # A rotation that shrinks, with an angle of its own at each sample: maps of the plane, composed by a scan.
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    p, q = 0.0, 0.0
    for t0 in tl.range(0, T, BLOCK):
        m = t0 + i < T
        x = tl.load(x_ptr + row * T + t0 + i, mask=m, other=0.0)
        w = tl.load(freq_ptr + row * T + t0 + i, mask=m, other=0.0)
        c, s = damping * tl.cos(w), damping * tl.sin(w)
        a, b, d, e, u, v = tl.associative_scan((c, -s, s, c, x, tl.zeros_like(x)), 0, _affine_2x2)
        re = a * p + b * q + u
        im = d * p + e * q + v
        tl.store(y_ptr + row * T + t0 + i, re, mask=m)
        last = i == BLOCK - 1
        p = tl.sum(tl.where(last, re, 0.0), 0)
        q = tl.sum(tl.where(last, im, 0.0), 0)


@case
def resonator_scan_of_2x2_maps():
    rows, t = 264, 8192
    y = zeros(rows, t, dtype="float32")
    return run(modulated_resonator, (rows,), (f32(rows, t), uniform(rows, t), y, t, 0.99), y, BLOCK=512, num_warps=4)


@triton.jit
def compressor_gain(x_ptr, y_ptr, T, C, threshold, ratio, attack, release, makeup, BLOCK: tl.constexpr):
    # Level in decibels, one coefficient when it rises and another when it falls.
    c = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = c < C
    env = tl.zeros((BLOCK,), tl.float32)
    for t in range(T):
        x = tl.load(x_ptr + t * C + c, mask=m, other=0.0)
        level = 6.0205999 * tl.log2(tl.maximum(tl.abs(x), 1e-6))
        over = tl.maximum(level - threshold, 0.0) * (1.0 - 1.0 / ratio)
        k = tl.where(over > env, attack, release)
        env = over + k * (env - over)
        tl.store(y_ptr + t * C + c, x * tl.exp2((makeup - env) * 0.16609640), mask=m)


@case
def compressor_attack_release():
    t, c = 300, 30000
    y = zeros(t, c, dtype="float32")
    return run(compressor_gain, (cdiv(c, 128),), (f32(t, c), y, t, c, -12.0, 4.0, 0.9, 0.998, 3.0), y, BLOCK=128, num_warps=4)


@triton.jit
def mu_law_round_trip(x_ptr, code_ptr, back_ptr, n, inv_log, BLOCK: tl.constexpr, MU: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    x = tl.load(x_ptr + i, mask=m, other=0.0).to(tl.float32)
    x = tl.clamp(x, -1.0, 1.0)
    mag = tl.log(1.0 + MU * tl.abs(x)) * inv_log
    y = tl.where(x < 0, -mag, mag)
    code = ((y + 1.0) * 0.5 * MU + 0.5).to(tl.int32)
    tl.store(code_ptr + i, code.to(tl.uint8), mask=m)
    z = 2.0 * code.to(tl.float32) / MU - 1.0
    w = (tl.exp(tl.abs(z) / inv_log) - 1.0) / MU
    tl.store(back_ptr + i, tl.where(z < 0, -w, w).to(tl.float16), mask=m)


@case
def mu_law_codes():
    n = 5000001
    code, back = zeros(n, dtype="uint8"), zeros(n)
    args = (f32(n) * 0.3).half(), code, back, n, 1.0 / math.log(256.0)
    return viewed(run(mu_law_round_trip, (cdiv(n, 1024),), args, (code, back), BLOCK=1024, MU=255.0, num_warps=4), lambda outs: far(outs[0]))


@triton.jit
def yin_differences(x_ptr, d_ptr, hop, n_frames, W: tl.constexpr, TAU: tl.constexpr, BLOCK: tl.constexpr):
    # The squared difference of a frame and itself tau later, over the mean of those before.
    f = tl.program_id(0)
    tau = tl.arange(0, TAU)
    d = tl.zeros((TAU,), tl.float32)
    for k0 in range(0, W, BLOCK):
        k = k0 + tl.arange(0, BLOCK)
        a = tl.load(x_ptr + f * hop + k)
        b = tl.load(x_ptr + f * hop + k[None, :] + tau[:, None])
        e = a[None, :] - b
        d += tl.sum(e * e, axis=1)
    total = tl.cumsum(d, 0)
    norm = tl.where(tau == 0, 1.0, d * tau / tl.maximum(total, 1e-9))
    tl.store(d_ptr + f * TAU + tau, norm)


@case
def yin_pitch_differences():
    frames, hop, w, tau = 2000, 160, 512, 256
    d = zeros(frames, tau, dtype="float32")
    return run(yin_differences, (frames,), (f32(frames * hop + w + tau), d, hop, frames), d, W=w, TAU=tau, BLOCK=32, num_warps=4)


@triton.jit
def levinson_durbin(r_ptr, a_ptr, err_ptr, n, ORDER: tl.constexpr, P: tl.constexpr, BLOCK: tl.constexpr):
    # Predictors of all orders in turn; coefficients are a row, reversed by a gather.
    b = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = b < n
    j = tl.arange(0, P)
    r = tl.load(r_ptr + b[:, None] * P + j[None, :], mask=m[:, None], other=1.0)
    e = tl.sum(tl.where(j[None, :] == 0, r, 0.0), axis=1) * 1.0001
    a = tl.broadcast_to(tl.where(j == 0, 1.0, 0.0)[None, :], (BLOCK, P))
    for i in range(1, ORDER + 1):
        lag = i - j
        back = tl.broadcast_to(tl.where(lag >= 0, lag, 0)[None, :], (BLOCK, P))
        acc = tl.sum(tl.where((lag > 0)[None, :], a * tl.gather(r, back, 1), 0.0), axis=1)
        k = -acc / e
        mirrored = tl.where((lag >= 0)[None, :], tl.gather(a, back, 1), 0.0)
        a = a + k[:, None] * mirrored
        e = e * (1.0 - k * k)
    tl.store(a_ptr + b[:, None] * P + j[None, :], a, mask=m[:, None] & (j <= ORDER)[None, :])
    tl.store(err_ptr + b, e, mask=m)


@case
def levinson_durbin_order_12():
    n, p = 60000, 16
    lag = torch.arange(p, device="cuda", dtype=torch.float32)
    r = (uniform(n, 1) * 0.5 + 0.3) ** lag * torch.cos(lag * uniform(n, 1)) + (lag == 0) * 0.5
    a, err = zeros(n, p, dtype="float32"), zeros(n, dtype="float32")
    return run(levinson_durbin, (cdiv(n, 16),), (r.contiguous(), a, err, n), (a, err), ORDER=12, P=p, BLOCK=16, num_warps=1)


@triton.jit
def goertzel(x_ptr, coef_ptr, out_ptr, n_frames, N, hop, BINS: tl.constexpr, BLOCK: tl.constexpr):
    f = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = f < n_frames
    k = tl.arange(0, BINS)
    coef = tl.load(coef_ptr + k)[None, :]
    s1 = tl.zeros((BLOCK, BINS), tl.float32)
    s2 = tl.zeros((BLOCK, BINS), tl.float32)
    for t in tl.range(0, N, num_stages=4):
        x = tl.load(x_ptr + f * hop + t, mask=m, other=0.0)
        s0 = x[:, None] + coef * s1 - s2
        s2 = s1
        s1 = s0
    power = s1 * s1 + s2 * s2 - coef * s1 * s2
    tl.store(out_ptr + f[:, None] * BINS + k[None, :], power, mask=m[:, None])


@case
def goertzel_eight_tones():
    frames, n, hop, bins = 40000, 205, 80, 8
    tones = torch.tensor([697.0, 770.0, 852.0, 941.0, 1209.0, 1336.0, 1477.0, 1633.0], device="cuda")
    out = zeros(frames, bins, dtype="float32")
    args = f32(frames * hop + n), 2 * torch.cos(2 * math.pi * tones / 8000), out, frames, n, hop
    return run(goertzel, (cdiv(frames, 32),), args, out, BINS=bins, BLOCK=32, num_warps=2)


@triton.jit
def _mirror(i, n):
    i = tl.abs(i)
    return tl.where(i >= n, 2 * (n - 1) - i, i)


@triton.jit
def wavelet_97(x_ptr, h_ptr, g_ptr, low_ptr, high_ptr, n, BLOCK: tl.constexpr):
    # One level of the 9/7 wavelet: nine taps below, seven above, mirrored at the ends.
    row = tl.program_id(1)
    half = n // 2
    j = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = j < half
    x = x_ptr + row * n
    low = tl.zeros((BLOCK,), tl.float32)
    high = tl.zeros((BLOCK,), tl.float32)
    for k in tl.static_range(-4, 5):
        w = tl.load(h_ptr + (k if k >= 0 else -k))
        low += w * tl.load(x + _mirror(2 * j + k, n), mask=m, other=0.0)
    for k in tl.static_range(-3, 4):
        w = tl.load(g_ptr + (k if k >= 0 else -k))
        high += w * tl.load(x + _mirror(2 * j + 1 + k, n), mask=m, other=0.0)
    tl.store(low_ptr + row * half + j, low, mask=m)
    tl.store(high_ptr + row * half + j, high, mask=m)


@case
def wavelet_cdf_97_level():
    rows, n = 1024, 4096
    h = torch.tensor([0.602949, 0.266864, -0.078223, -0.016864, 0.026749], device="cuda")
    g = torch.tensor([1.115087, -0.591272, -0.057544, 0.091272], device="cuda")
    low, high = zeros(rows, n // 2, dtype="float32"), zeros(rows, n // 2, dtype="float32")
    return run(wavelet_97, (n // 1024, rows), (f32(rows, n), h, g, low, high, n), (low, high), BLOCK=512, num_warps=4)


@triton.jit
def median_of_nine_sorted(x_ptr, out_ptr, n, RADIUS: tl.constexpr, PAD: tl.constexpr, BLOCK: tl.constexpr):
    # Windows as rows that are sorted; what pads them is infinite.
    row = tl.program_id(1)
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    k = tl.arange(0, PAD)
    at = tl.minimum(tl.maximum(i[:, None] + k[None, :] - RADIUS, 0), n - 1)
    x = tl.load(x_ptr + row * n + at, mask=(k < 2 * RADIUS + 1)[None, :], other=float("inf"))
    s = tl.sort(x, dim=1)
    med = tl.sum(tl.where(k[None, :] == RADIUS, s, 0.0), axis=1)
    center = tl.load(x_ptr + row * n + i, mask=i < n, other=0.0)
    tl.store(out_ptr + row * n + i, tl.where(tl.abs(center - med) > 1.5, med, center), mask=i < n)


@case
def despike_by_median_of_nine():
    rows, n = 64, 20000
    out = zeros(rows, n, dtype="float32")
    return run(median_of_nine_sorted, (cdiv(n, 128), rows), (f32(rows, n), out, n), out, RADIUS=4, PAD=16, BLOCK=128, num_warps=4)


@triton.jit
def rolling_bands(close_ptr, z_ptr, rsi_ptr, T, S, WINDOW: tl.constexpr, BLOCK_T: tl.constexpr, BLOCK_S: tl.constexpr):
    # Bollinger's z-score and the relative strength of a window, for days x symbols.
    t = tl.program_id(0) * BLOCK_T + tl.arange(0, BLOCK_T)
    s = tl.program_id(1) * BLOCK_S + tl.arange(0, BLOCK_S)
    mask = (t < T)[:, None] & (s < S)[None, :]
    at = t[:, None] * S + s[None, :]
    now = tl.load(close_ptr + at, mask=mask, other=1.0)
    total = tl.zeros((BLOCK_T, BLOCK_S), tl.float32)
    square = tl.zeros((BLOCK_T, BLOCK_S), tl.float32)
    gain = tl.zeros((BLOCK_T, BLOCK_S), tl.float32)
    loss = tl.zeros((BLOCK_T, BLOCK_S), tl.float32)
    later = now
    for k in range(WINDOW):
        ok = mask & (t >= k)[:, None]
        p = tl.load(close_ptr + at - k * S, mask=ok, other=0.0)
        d = tl.where(ok, p - now, 0.0)
        total += d
        square += d * d
        step = tl.where(ok, later - p, 0.0)
        gain += tl.maximum(step, 0.0)
        loss += tl.maximum(-step, 0.0)
        later = tl.where(ok, p, later)
    count = tl.minimum(t + 1, WINDOW).to(tl.float32)[:, None]
    mean = total / count
    var = tl.maximum(square / count - mean * mean, 0.0)
    tl.store(z_ptr + at, -mean / tl.sqrt(var + 1e-6), mask=mask)
    tl.store(rsi_ptr + at, 100.0 - 100.0 / (1.0 + gain / (loss + 1e-6)), mask=mask)


@case
def rolling_z_score_and_rsi():
    t, s = 2500, 700
    close = 100 + torch.cumsum(f32(t, s), 0)
    z, rsi = zeros(t, s, dtype="float32"), zeros(t, s, dtype="float32")
    return run(rolling_bands, (cdiv(t, 16), cdiv(s, 64)), (close.contiguous(), z, rsi, t, s), (z, rsi), WINDOW=20, BLOCK_T=16, BLOCK_S=64, num_warps=4)


@triton.jit
def heston_paths(out_ptr, s0, v0, strike, kappa, theta, xi, rho, dt, steps, seed, BLOCK: tl.constexpr):
    # Euler's scheme with full truncation, each path with its mirror image.
    pid = tl.program_id(0)
    path = pid * BLOCK + tl.arange(0, BLOCK)
    root = tl.sqrt(dt)
    x1, x2 = tl.zeros((BLOCK,), tl.float32), tl.zeros((BLOCK,), tl.float32)
    v1, v2 = x1 + v0, x2 + v0
    for i in range(steps):
        z1, z2, z3, z4 = tl.randn4x(seed, path * steps + i)
        w = rho * z1 + tl.sqrt(1.0 - rho * rho) * z2
        p1, p2 = tl.maximum(v1, 0.0), tl.maximum(v2, 0.0)
        r1, r2 = tl.sqrt(p1) * root, tl.sqrt(p2) * root
        x1 += -0.5 * p1 * dt + r1 * z1
        x2 += -0.5 * p2 * dt - r2 * z1
        v1 += kappa * (theta - p1) * dt + xi * r1 * w
        v2 += kappa * (theta - p2) * dt - xi * r2 * w
    pay = 0.5 * (tl.maximum(s0 * tl.exp(x1) - strike, 0.0) + tl.maximum(s0 * tl.exp(x2) - strike, 0.0))
    mean = tl.sum(pay, axis=0) / BLOCK
    dev = pay - mean
    tl.store(out_ptr + pid * 2, mean)
    tl.store(out_ptr + pid * 2 + 1, tl.sum(dev * dev, axis=0) / (BLOCK - 1))


@case
def heston_antithetic_paths():
    programs = 1500
    out = zeros(programs, 2, dtype="float32")
    return run(heston_paths, (programs,), (out, 100.0, 0.04, 100.0, 1.5, 0.04, 0.5, -0.7, 1.0 / 64, 64, 20), out, BLOCK=256, num_warps=4)


@triton.jit
def implied_volatility(price_ptr, k_ptr, t_ptr, out_ptr, n, s, r, tol, MAX_ITER: tl.constexpr, BLOCK: tl.constexpr):
    # Newton's steps, kept between bounds, until no lane moves.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    c = tl.load(price_ptr + i, mask=m, other=10.0)
    k, t = tl.load(k_ptr + i, mask=m, other=100.0), tl.load(t_ptr + i, mask=m, other=1.0)
    root, disc = tl.sqrt(t), k * tl.exp(-r * t)
    base = tl.log(s / k) + r * t
    vol = tl.full((BLOCK,), 0.5, tl.float32)
    worst = 1.0
    it = 0
    while (worst > tol) & (it < MAX_ITER):
        d1 = base / (vol * root) + 0.5 * vol * root
        d2 = d1 - vol * root
        n1 = 0.5 * (1.0 + tl.math.erf(d1 * 0.70710678))
        n2 = 0.5 * (1.0 + tl.math.erf(d2 * 0.70710678))
        vega = s * root * 0.39894228 * tl.exp(-0.5 * d1 * d1)
        new = vol - (s * n1 - disc * n2 - c) / tl.maximum(vega, 1e-3)
        new = tl.minimum(tl.maximum(new, 0.01), 3.0)
        worst = tl.max(tl.where(m, tl.abs(new - vol), 0.0), axis=0)
        vol = new
        it += 1
    tl.store(out_ptr + i, vol, mask=m)


@case
def implied_volatility_newton():
    n = 1000000
    k, t, v = uniform(n) * 30 + 85, uniform(n) * 1.5 + 0.3, uniform(n) * 0.4 + 0.2
    root = v * t.sqrt()
    d1 = (torch.log(100 / k) + 0.02 * t) / root + root / 2
    cdf = lambda x: 0.5 * (1 + torch.erf(x * 0.70710678))
    price = 100 * cdf(d1) - k * torch.exp(-0.02 * t) * cdf(d1 - root)
    out = zeros(n, dtype="float32")
    return run(implied_volatility, (cdiv(n, 256),), (price, k, t, out, n, 100.0, 0.02, 1e-4), out, MAX_ITER=12, BLOCK=256, num_warps=4)


@triton.jit
def bond_values(start_ptr, time_ptr, cash_ptr, knot_ptr, rate_ptr, pv_ptr, dur_ptr, n, shift, KNOTS: tl.constexpr, BLOCK_B: tl.constexpr,
                BLOCK_C: tl.constexpr):
    # Cash flows of bonds of any length, discounted with a curve that is linear between its knots.
    b = tl.program_id(0) * BLOCK_B + tl.arange(0, BLOCK_B)
    m = b < n
    lo = tl.load(start_ptr + b, mask=m, other=0)
    hi = tl.load(start_ptr + b + 1, mask=m, other=0)
    pv = tl.zeros((BLOCK_B,), tl.float32)
    weighted = tl.zeros((BLOCK_B,), tl.float32)
    for c0 in range(0, tl.max(hi - lo, 0), BLOCK_C):
        at = lo[:, None] + c0 + tl.arange(0, BLOCK_C)[None, :]
        ok = at < hi[:, None]
        t = tl.load(time_ptr + at, mask=ok, other=0.0)
        below = tl.zeros((BLOCK_B, BLOCK_C), tl.int32)
        for k in tl.static_range(1, KNOTS - 1):
            below += (t >= tl.load(knot_ptr + k)).to(tl.int32)
        t0, t1 = tl.load(knot_ptr + below), tl.load(knot_ptr + below + 1)
        r0, r1 = tl.load(rate_ptr + below), tl.load(rate_ptr + below + 1)
        rate = r0 + (r1 - r0) * (t - t0) / (t1 - t0) + shift
        value = tl.load(cash_ptr + at, mask=ok, other=0.0) * tl.exp(-rate * t)
        pv += tl.sum(value, axis=1)
        weighted += tl.sum(value * t, axis=1)
    tl.store(pv_ptr + b, pv, mask=m)
    tl.store(dur_ptr + b, weighted / pv, mask=m)


@case
def bonds_on_a_curve():
    n, knots = 50000, 12
    start = zeros(n + 1, dtype="int32")
    start[1:] = torch.cumsum(ints(2, 60, n), 0)
    total = int(start[-1])
    pv, duration = zeros(n, dtype="float32"), zeros(n, dtype="float32")
    knot = torch.tensor([0, 0.25, 0.5, 1, 2, 3, 5, 7, 10, 15, 20, 31], device="cuda")
    args = start, uniform(total) * 30, uniform(total) * 5 + 1, knot, uniform(knots) * 0.04 + 0.01, pv, duration, n, 0.0001
    return run(bond_values, (cdiv(n, 32),), args, (pv, duration), KNOTS=knots, BLOCK_B=32, BLOCK_C=16, num_warps=4)


@triton.jit
def crank_nicolson(v_ptr, sig_ptr, cp_ptr, dp_ptr, batch, N, dt, r, STEPS: tl.constexpr, BLOCK: tl.constexpr):
    # A system of three diagonals a lane, solved by Thomas' sweeps with two rows of scratch; prices on a grid of spots.
    b = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = b < batch
    sig = tl.load(sig_ptr + b, mask=m, other=0.2)
    for _ in range(STEPS):
        c_prev = tl.zeros((BLOCK,), tl.float32)
        d_prev = tl.load(v_ptr + b, mask=m, other=0.0)
        left, mid = d_prev, tl.load(v_ptr + batch + b, mask=m, other=0.0)
        for i in range(1, N - 1):
            right = tl.load(v_ptr + (i + 1) * batch + b, mask=m, other=0.0)
            q = 0.25 * dt * (sig * sig * i * i)
            s = 0.25 * dt * r * i
            lower, upper, diag = q - s, q + s, -2.0 * q - 0.5 * dt * r
            rhs = lower * left + (1.0 + diag) * mid + upper * right
            w = 1.0 / (1.0 - diag + lower * c_prev)
            d_prev = (rhs + lower * d_prev) * w
            c_prev = -upper * w
            tl.store(cp_ptr + i * batch + b, c_prev, mask=m)
            tl.store(dp_ptr + i * batch + b, d_prev, mask=m)
            left, mid = mid, right
        x = mid
        for back in range(1, N - 1):
            i = N - 1 - back
            x = tl.load(dp_ptr + i * batch + b, mask=m, other=0.0) - tl.load(cp_ptr + i * batch + b, mask=m, other=0.0) * x
            tl.store(v_ptr + i * batch + b, x, mask=m)


@case
def crank_nicolson_thomas():
    batch, n = 8000, 64
    v, cp, dp = (zeros(n, batch, dtype="float32") for _ in range(3))
    pay = torch.clamp(torch.arange(n, device="cuda", dtype=torch.float32) - 30, min=0)[:, None]
    launch, args = run(crank_nicolson, (cdiv(batch, 32),), (v, uniform(batch) * 0.3 + 0.1, cp, dp, batch, n, 0.01, 0.02), v, STEPS=8, BLOCK=32, num_warps=1)

    def again(*args):
        v.copy_(pay.expand(n, batch))
        return launch(*args)

    return again, args


@triton.jit
def garch_likelihood(r_ptr, par_ptr, out_ptr, T, n, BLOCK: tl.constexpr):
    # One series, many parameters: the variance of a day from the day before.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    omega, alpha, beta = tl.load(par_ptr + i, mask=m, other=0.1), tl.load(par_ptr + n + i, mask=m, other=0.1), tl.load(par_ptr + 2 * n + i, mask=m, other=0.8)
    h = omega / (1.0 - alpha - beta)
    total = tl.zeros((BLOCK,), tl.float32)
    for t in range(T):
        r = tl.load(r_ptr + t)
        total += tl.log(h) + r * r / h
        h = omega + alpha * r * r + beta * h
    tl.store(out_ptr + i, -0.5 * total, mask=m)


@case
def garch_likelihoods():
    n, t = 60000, 1000
    par = torch.stack((uniform(n) * 0.1 + 0.05, uniform(n) * 0.1 + 0.02, uniform(n) * 0.3 + 0.5)).contiguous()
    out = zeros(n, dtype="float32")
    return run(garch_likelihood, (cdiv(n, 128),), (f32(t), par, out, t, n), out, BLOCK=128, num_warps=4)


@triton.jit
def _inverse_normal(u):
    # The tail and the middle by polynomials of -log(4 u (1 - u)).
    x = 2.0 * u - 1.0
    w = -tl.log((1.0 - x) * (1.0 + x))
    a = w - 2.5
    p = 2.81022636e-08
    p = 3.43273939e-07 + p * a
    p = -3.5233877e-06 + p * a
    p = -4.39150654e-06 + p * a
    p = 0.00021858087 + p * a
    p = -0.00125372503 + p * a
    p = -0.00417768164 + p * a
    p = 0.246640727 + p * a
    p = 1.50140941 + p * a
    b = tl.sqrt(w) - 3.0
    q = -0.000200214257
    q = 0.000100950558 + q * b
    q = 0.00134934322 + q * b
    q = -0.00367342844 + q * b
    q = 0.00573950773 + q * b
    q = -0.0076224613 + q * b
    q = 0.00943887047 + q * b
    q = 1.00167406 + q * b
    q = 2.83297682 + q * b
    return 1.41421356 * x * tl.where(w < 5.0, p, q)


@triton.jit
def sobol_basket(dir_ptr, chol_ptr, out_ptr, strike, vol, D: tl.constexpr, BITS: tl.constexpr, BLOCK: tl.constexpr):
    # Points of a Sobol sequence in D dimensions, made normal and correlated: the mean payoff of a basket.
    pid = tl.program_id(0)
    n = pid * BLOCK + tl.arange(0, BLOCK)
    gray = n ^ (n >> 1)
    d = tl.arange(0, D)
    x = tl.zeros((BLOCK, D), tl.int32)
    for b in range(BITS):
        v = tl.load(dir_ptr + b * D + d)
        x ^= tl.where((((gray >> b) & 1) != 0)[:, None], v[None, :], 0)
    u = (x.to(tl.uint32, bitcast=True) >> 9).to(tl.float32) * 1.1920929e-07 + 5.9604645e-08
    z = _inverse_normal(u)
    chol = tl.load(chol_ptr + d[:, None] * D + d[None, :])
    y = tl.dot(z, tl.trans(chol), input_precision="ieee")
    basket = tl.sum(tl.exp(vol * y - 0.5 * vol * vol), axis=1) * (100.0 / D)
    pay = tl.maximum(basket - strike, 0.0)
    tl.store(out_ptr + pid, tl.sum(pay, axis=0) / BLOCK)


@case
def sobol_basket_option():
    points, d, block = 1 << 19, 16, 128
    chol = torch.tril(f32(d, d) * 0.2) + torch.eye(d, device="cuda") * 0.5
    out = zeros(points // block, dtype="float32")
    args = ints(-(2**31), 2**31, 19, d), chol, out, 95.0, 0.3
    return run(sobol_basket, (points // block,), args, out, D=d, BITS=19, BLOCK=block, num_warps=4)


@triton.jit
def haversine_nearest(lat_ptr, lon_ptr, site_lat, site_lon, dist_ptr, sum_ptr, n, sites, bandwidth, BLOCK_P: tl.constexpr, BLOCK_S: tl.constexpr):
    # Kilometers to the nearest site, and a kernel density of sites.
    p = tl.program_id(0) * BLOCK_P + tl.arange(0, BLOCK_P)
    m = p < n
    la, lo = tl.load(lat_ptr + p, mask=m, other=0.0), tl.load(lon_ptr + p, mask=m, other=0.0)
    ca = tl.cos(la)
    best = tl.full((BLOCK_P,), 2.0, tl.float32)
    density = tl.zeros((BLOCK_P,), tl.float32)
    for s0 in range(0, sites, BLOCK_S):
        s = s0 + tl.arange(0, BLOCK_S)
        sm = s < sites
        lb, lb2 = tl.load(site_lat + s, mask=sm, other=0.0), tl.load(site_lon + s, mask=sm, other=0.0)
        u = tl.sin(0.5 * (la[:, None] - lb[None, :]))
        v = tl.sin(0.5 * (lo[:, None] - lb2[None, :]))
        h = u * u + ca[:, None] * tl.cos(lb)[None, :] * v * v
        h = tl.where(sm[None, :], h, 2.0)
        best = tl.minimum(best, tl.min(h, axis=1))
        density += tl.sum(tl.where(sm[None, :], tl.exp(-h * bandwidth), 0.0), axis=1)
    h = tl.minimum(best, 1.0)
    # The arc sine of a small root, by its series.
    arc = tl.sqrt(h) * (1.0 + h * (0.16666667 + h * (0.075 + h * 0.04464286)))
    tl.store(dist_ptr + p, 12742.0 * arc, mask=m)
    tl.store(sum_ptr + p, density, mask=m)


@case
def haversine_nearest_site():
    n, sites = 100000, 700
    dist, density = zeros(n, dtype="float32"), zeros(n, dtype="float32")
    args = f32(n) * 0.5, f32(n), f32(sites) * 0.5, f32(sites), dist, density, n, sites, 200.0
    return run(haversine_nearest, (cdiv(n, 64),), args, (dist, density), BLOCK_P=64, BLOCK_S=32, num_warps=4)


@triton.jit
def _spread(x):
    x = (x | (x << 16)) & 0x0000FFFF0000FFFF
    x = (x | (x << 8)) & 0x00FF00FF00FF00FF
    x = (x | (x << 4)) & 0x0F0F0F0F0F0F0F0F
    x = (x | (x << 2)) & 0x3333333333333333
    return (x | (x << 1)) & 0x5555555555555555


@triton.jit
def geohash_letters(lat_ptr, lon_ptr, code_ptr, text_ptr, alphabet_ptr, n, CHARS: tl.constexpr, BLOCK: tl.constexpr):
    # Degrees in millionths to the interleaved code, and its letters.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    lat = tl.load(lat_ptr + i, mask=m, other=0).to(tl.int64) + 90000000
    lon = tl.load(lon_ptr + i, mask=m, other=0).to(tl.int64) + 180000000
    y = (lat << 30) // 180000000
    x = (lon << 30) // 360000000
    code = (_spread(x) << 1) | _spread(y)
    tl.store(code_ptr + i, code, mask=m)
    for c in tl.static_range(CHARS):
        five = (code >> (55 - 5 * c)) & 31
        tl.store(text_ptr + i * CHARS + c, tl.load(alphabet_ptr + five), mask=m)


@case
def geohash_of_positions():
    n, chars = 2000000, 8
    code, text = zeros(n, dtype="int64"), zeros(n, chars, dtype="uint8")
    alphabet = torch.tensor(list(b"0123456789bcdefghjkmnpqrstuvwxyz"), device="cuda", dtype=torch.uint8)
    args = ints(-90000000, 90000000, n), ints(-180000000, 180000000, n), code, text, alphabet, n
    return run(geohash_letters, (cdiv(n, 256),), args, (code, text), CHARS=chars, BLOCK=256, num_warps=4)


@triton.jit
def points_in_polygons(px_ptr, py_ptr, start_ptr, vx_ptr, vy_ptr, out_ptr, n, polygons, BLOCK_P: tl.constexpr, BLOCK_V: tl.constexpr):
    # Crossings of a ray with edges of rings, exact in integers; the first polygon that a point lies in.
    p = tl.program_id(0) * BLOCK_P + tl.arange(0, BLOCK_P)
    m = p < n
    x, y = tl.load(px_ptr + p, mask=m, other=0), tl.load(py_ptr + p, mask=m, other=0)
    found = tl.full((BLOCK_P,), -1, tl.int32)
    for g in range(polygons):
        lo, hi = tl.load(start_ptr + g), tl.load(start_ptr + g + 1)
        odd = tl.zeros((BLOCK_P,), tl.int32)
        for v0 in range(lo, hi, BLOCK_V):
            v = v0 + tl.arange(0, BLOCK_V)
            vm = v < hi
            w = tl.where(v + 1 == hi, lo, v + 1)
            x0, y0 = tl.load(vx_ptr + v, mask=vm, other=0)[None, :], tl.load(vy_ptr + v, mask=vm, other=0)[None, :]
            x1, y1 = tl.load(vx_ptr + w, mask=vm, other=0)[None, :], tl.load(vy_ptr + w, mask=vm, other=0)[None, :]
            spans = (y0 > y[:, None]) != (y1 > y[:, None])
            side = (x1 - x0) * (y[:, None] - y0) - (x[:, None] - x0) * (y1 - y0)
            cross = spans & tl.where(y1 > y0, side > 0, side < 0) & vm[None, :]
            odd ^= tl.xor_sum(cross.to(tl.int32), axis=1)
        found = tl.where((found < 0) & (odd != 0), g, found)
    tl.store(out_ptr + p, found, mask=m)


@case
def points_in_polygons_exact():
    n, polygons, vertices = 100000, 20, 60
    angle = torch.arange(vertices, device="cuda", dtype=torch.float32) * (2 * math.pi / vertices)
    radius = uniform(polygons, vertices) * 3000 + 1500
    vx = (torch.cos(angle) * radius + uniform(polygons, 1) * 30000).int()
    vy = (torch.sin(angle) * radius + uniform(polygons, 1) * 30000).int()
    out = zeros(n, dtype="int32")
    args = ints(0, 30000, n), ints(0, 30000, n), arange(polygons + 1) * vertices, vx, vy, out, n, polygons
    return run(points_in_polygons, (cdiv(n, 64),), args, out, BLOCK_P=64, BLOCK_V=32, num_warps=4)


@triton.jit
def _bar(o1, h1, l1, c1, v1, n1, o2, h2, l2, c2, v2, n2):
    return (tl.where(n1 > 0, o1, o2), tl.maximum(h1, h2), tl.minimum(l1, l2), tl.where(n2 > 0, c2, c1), v1 + v2, n1 + n2)


@triton.jit
def ticks_to_bars(price_ptr, size_ptr, start_ptr, bars_ptr, vwap_ptr, BLOCK: tl.constexpr):
    # Open, high, low, close and volume: the pieces of a bar in order.
    bar = tl.program_id(0)
    lo, hi = tl.load(start_ptr + bar), tl.load(start_ptr + bar + 1)
    o, h, l, c, vol, n = 0.0, -1e30, 1e30, 0.0, 0.0, 0
    turnover = 0.0
    for t0 in range(lo, hi, BLOCK):
        t = t0 + tl.arange(0, BLOCK)
        m = t < hi
        p = tl.load(price_ptr + t, mask=m, other=0.0)
        s = tl.load(size_ptr + t, mask=m, other=0.0)
        bo, bh, bl, bc, bv, bn = tl.reduce((p, tl.where(m, p, -1e30), tl.where(m, p, 1e30), p, s, m.to(tl.int32)), 0, _bar)
        o, h, l, c, vol, n = _bar(o, h, l, c, vol, n, bo, bh, bl, bc, bv, bn)
        turnover += tl.sum(p * s, axis=0)
    tl.store(bars_ptr + bar * 5, o)
    tl.store(bars_ptr + bar * 5 + 1, h)
    tl.store(bars_ptr + bar * 5 + 2, l)
    tl.store(bars_ptr + bar * 5 + 3, c)
    tl.store(bars_ptr + bar * 5 + 4, vol)
    tl.store(vwap_ptr + bar, turnover / tl.maximum(vol, 1e-9))


@case
def bars_of_ticks():
    bars = 20000
    start = zeros(bars + 1, dtype="int32")
    start[1:] = torch.cumsum(ints(1, 400, bars), 0)
    total = int(start[-1])
    out, vwap = zeros(bars, 5, dtype="float32"), zeros(bars, dtype="float32")
    return run(ticks_to_bars, (bars,), (uniform(total) + 50, uniform(total), start, out, vwap), (out, vwap), BLOCK=128, num_warps=1)


@triton.jit
def bootstrap_means(x_ptr, out_ptr, n, resamples, seed, BLOCK_R: tl.constexpr, BLOCK_N: tl.constexpr):
    # Means and squares of samples drawn with replacement.
    r = tl.program_id(0) * BLOCK_R + tl.arange(0, BLOCK_R)
    total = tl.zeros((BLOCK_R,), tl.float32)
    square = tl.zeros((BLOCK_R,), tl.float32)
    for n0 in range(0, n, BLOCK_N):
        k = n0 + tl.arange(0, BLOCK_N)
        u = tl.rand(seed, r[:, None] * n + k[None, :])
        i = tl.minimum((u * n).to(tl.int32), n - 1)
        x = tl.load(x_ptr + i, mask=(k < n)[None, :], other=0.0)
        total += tl.sum(x, axis=1)
        square += tl.sum(x * x, axis=1)
    mean = total / n
    tl.store(out_ptr + r * 2, mean, mask=r < resamples)
    tl.store(out_ptr + r * 2 + 1, tl.sqrt(tl.maximum(square / n - mean * mean, 0.0)), mask=r < resamples)


@case
def bootstrap_of_a_series():
    n, resamples = 1500, 10000
    out = zeros(resamples, 2, dtype="float32")
    return run(bootstrap_means, (cdiv(resamples, 16),), (f32(n) + 1, out, n, resamples, 99), out, BLOCK_R=16, BLOCK_N=64, num_warps=4)
