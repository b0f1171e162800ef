"""Habits of authors: functions that are called, not inlined, words of the language that few use, registers told, loops flattened."""

import math

import torch
import torch.nn.functional as F
import triton
import triton.language as tl
from triton.language.extra import libdevice

from .common import PROGRAMS, arange, case, cdiv, cleared, f32, full, ints, rand, run, uniform, zeros
from .recipes import philox


@triton.jit(noinline=True)
def add_debye(T, OUT, start, theta, N, BLOCK: tl.constexpr):
    # An integral of x^3 / (e^x - 1) by eight points of Gauss, added to what memory holds; its largest is returned.
    i = start + tl.arange(0, BLOCK)
    x = theta / tl.load(T + i, mask=i < N, other=1.0)
    total = tl.zeros((BLOCK,), tl.float32)
    for k in tl.static_range(4):
        for side in tl.static_range(2):
            node = (0.1834346425, 0.5255324099, 0.7966664774, 0.9602898565)[k]
            t = x * 0.5 * ((1 + node) if side == 0 else (1 - node))
            total += (0.3626837834, 0.3137066459, 0.2223810345, 0.1012285363)[k] * t * t * t / (tl.exp(t) - 1)
    total *= 1.5 / (x * x)
    tl.store(OUT + i, tl.load(OUT + i, mask=i < N, other=0.0) + total, mask=i < N)
    return tl.max(tl.where(i < N, total, 0.0), 0)


@triton.jit
def heat_capacities(T, THETA, OUT, LARGEST, N, M: tl.constexpr, BLOCK: tl.constexpr):
    # A function of its own called in three places, in a loop too.
    start = tl.program_id(0) * BLOCK
    i = start + tl.arange(0, BLOCK)
    tl.store(OUT + i, tl.zeros((BLOCK,), tl.float32), mask=i < N)
    most = add_debye(T, OUT, start, 1.0, N, BLOCK)
    most += add_debye(T, OUT, start, 0.5, N, BLOCK)
    for k in range(M):
        most += add_debye(T, OUT, start, tl.load(THETA + k), N, BLOCK)
    tl.store(LARGEST + tl.program_id(0), most)


@case
def integrals_by_a_function_that_is_called():
    n, m = 1_000_007, 6
    t, theta, out = uniform(n) * 2 + 0.2, uniform(m) + 0.2, zeros(n, dtype="float32")
    largest = zeros(cdiv(n, 512), dtype="float32")
    launch, args = run(heat_capacities, (cdiv(n, 512),), (t, theta, out, largest, n), (out, largest), M=m, BLOCK=512, num_warps=4)

    def one(x):
        total = 0
        for k in range(4):
            node = (0.1834346425, 0.5255324099, 0.7966664774, 0.9602898565)[k]
            weight = (0.3626837834, 0.3137066459, 0.2223810345, 0.1012285363)[k]
            for s in (x * 0.5 * (1 + node), x * 0.5 * (1 - node)):
                total = total + weight * s**3 / torch.expm1(s)
        return 1.5 * total / x**2

    def reference(*_):
        each = [one(v / t.double()) for v in [1.0, 0.5, *theta.double()]]
        return sum(each), sum(F.pad(v, (0, -n % 512)).view(-1, 512).amax(1) for v in each)

    launch.reference = reference
    return launch, args


@triton.jit(noinline=True)
def place_in(EDGES, first, count, x):
    # Bisection in memory: returns the place, and how far the value is into its interval.
    low, high = first, first + count - 1
    while high - low > 1:
        middle = (low + high) // 2
        if tl.load(EDGES + middle) <= x:
            low = middle
        else:
            high = middle
    a, b = tl.load(EDGES + low), tl.load(EDGES + low + 1)
    return low, (x - a) / (b - a)


@triton.jit
def table_of_two_axes(X, Y, EDGES, STARTS, TABLE, OUT, NX, NY, C, BLOCK: tl.constexpr):
    # A query a program: its cell by a called function of scalars, then a row of channels from four corners.
    i, split, c = tl.program_id(0), tl.load(STARTS), tl.arange(0, BLOCK)
    p, u = place_in(EDGES, 0, NX, tl.load(X + i))
    q, v = place_in(EDGES, split, NY, tl.load(Y + i))
    at = TABLE + ((q - split) * NX + p) * C + c
    live = c < C
    low = tl.load(at, mask=live, other=0.0) * (1 - u) + tl.load(at + C, mask=live, other=0.0) * u
    at += NX * C
    high = tl.load(at, mask=live, other=0.0) * (1 - u) + tl.load(at + C, mask=live, other=0.0) * u
    tl.store(OUT + i * C + c, low * (1 - v) + high * v, mask=live)


@case
def tables_of_uneven_axes_by_called_bisection():
    n, nx, ny, c = 60_001, 150, 130, 250
    axis = lambda k: torch.cat([uniform(1) * 0, torch.sort(uniform(k - 2))[0] * 0.98 + 0.01, full(1.0, 1)])  # noqa: E731
    ax, ay = axis(nx), axis(ny)
    x, y, table, out = uniform(n) * 0.999, uniform(n) * 0.999, f32(ny, nx, c), zeros(n, c, dtype="float32")
    args = x, y, torch.cat([ax, ay]), full(nx, 1, dtype="int32"), table, out, nx, ny, c
    launch, args = run(table_of_two_axes, (n,), args, out, BLOCK=256, num_warps=2)

    def reference(*_):
        p, q = torch.searchsorted(ax, x, right=True) - 1, torch.searchsorted(ay, y, right=True) - 1
        u, v = ((x - ax[p]) / (ax[p + 1] - ax[p]))[:, None], ((y - ay[q]) / (ay[q + 1] - ay[q]))[:, None]
        low, high = table[q, p] * (1 - u) + table[q, p + 1] * u, table[q + 1, p] * (1 - u) + table[q + 1, p + 1] * u
        return low * (1 - v) + high * v

    launch.reference = reference
    return launch, args


@triton.jit(noinline=True)
def step_scalar(state, low, high):
    state = (state * 6364136223846793005 + 1442695040888963407).to(tl.int64)
    return state, low + ((state >> 33) & 0x3FFFFFFF) % (high - low)


@triton.jit
def shuffled_windows(X, OUT, N, ROUNDS, WIDTH: tl.constexpr):
    # Sums of windows that begin anywhere: where, scalars of a called function tell.
    state, acc = tl.program_id(0).to(tl.int64) * 7919 + 17, tl.zeros((WIDTH,), tl.float32)
    for _ in range(ROUNDS):
        state, start = step_scalar(state, 0, N - WIDTH)
        acc += tl.load(X + start + tl.arange(0, WIDTH)).to(tl.float32)
    tl.store(OUT + tl.program_id(0) * WIDTH + tl.arange(0, WIDTH), acc)


@case
def windows_told_by_a_called_function_of_scalars():
    n, programs, rounds, width = 20_000_000, 2048, 60, 512
    x, out = rand(n, dtype="bfloat16"), zeros(programs, width, dtype="float32")
    launch, args = run(shuffled_windows, (programs,), (x, out, n, rounds), out, WIDTH=width, num_warps=2)

    def reference(*_):
        state, total = arange(programs, "int64") * 7919 + 17, torch.zeros(programs, width, device=x.device)
        for _ in range(rounds):
            state = state * 6364136223846793005 + 1442695040888963407
            start = ((state >> 33) & 0x3FFFFFFF) % (n - width)
            total += x[start[:, None] + arange(width)].float()
        return total

    launch.reference = reference
    return launch, args


@triton.jit
def checksums(X, XORS, ORS, SUMS, N, BLOCK: tl.constexpr, PARTS: tl.constexpr):
    # Words of a page by exclusive or, by or, and by weighed sums; loads that stay out of the first cache.
    page = tl.program_id(0).to(tl.int64)
    odd, any_, total = tl.zeros((BLOCK,), tl.int64), tl.zeros((BLOCK,), tl.int64), tl.zeros((BLOCK,), tl.int64)
    for k in tl.range(PARTS, loop_unroll_factor=4):
        i = k * BLOCK + tl.arange(0, BLOCK)
        x = tl.load(X + page * N + i, mask=i < N, other=0, cache_modifier=".cg")
        odd ^= x
        any_ |= x
        total += x * (i + 1)
    tl.store(XORS + page, tl.xor_sum(odd, 0), cache_modifier=".cs")
    tl.store(ORS + page, tl.reduce_or(any_, 0), cache_modifier=".wt")
    tl.store(SUMS + page, tl.sum(total, 0))


@case
def checksums_of_pages_of_long_words():
    pages, n = 4000, 1500
    x = (torch.randint(0, 2**62, (pages, n), device="cuda") & torch.randint(0, 2**62, (pages, n), device="cuda")) << 1
    x[:, ::7] = 0
    outs = [zeros(pages, dtype="int64") for _ in range(3)]
    launch, args = run(checksums, (pages,), (x, *outs, n), tuple(outs), BLOCK=256, PARTS=6, num_warps=4)

    def seen(*args):
        return tuple(half.float() + 2.0**32 for v in launch(*args) for half in (v >> 32 & 0xFFFFFFFF, v & 0xFFFFFFFF))

    def reference(*_):
        odd, any_ = x[:, 0].clone(), x[:, 0].clone()
        for k in range(1, n):
            odd ^= x[:, k]
            any_ |= x[:, k]
        total = (x * arange(1 + n, "int64")[1:]).sum(1)
        return tuple(half.float() + 2.0**32 for v in (odd, any_, total) for half in (v >> 32 & 0xFFFFFFFF, v & 0xFFFFFFFF))

    seen.reference = reference
    return seen, args


@triton.jit
def noised(X, STEP, TABLE, OUT, TARGET, N, seed, BLOCK: tl.constexpr):
    # Samples of a batch at their own steps of noise, with normal numbers of the language, and what is to be foretold.
    i, b = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), tl.program_id(1)
    keep = tl.load(TABLE + tl.load(STEP + b))
    noise = tl.randn(seed, b * N + i)
    x = tl.load(X + b * N + i, mask=i < N, other=0.0).to(tl.float32)
    a, s = tl.sqrt_rn(keep), tl.sqrt_rn(1 - keep)
    tl.store(OUT + b * N + i, (a * x + s * noise).to(OUT.dtype.element_ty), mask=i < N)
    tl.store(TARGET + b * N + i, (a * noise - s * x).to(TARGET.dtype.element_ty), mask=i < N)


@case
def samples_noised_by_normal_numbers():
    b, n, seed = 32, 4 * 128 * 129, 4242
    x, step, table = rand(b, n, dtype="bfloat16"), ints(0, 1000, b, dtype="int64"), torch.linspace(0.999, 0.005, 1000, device="cuda")
    out, target = zeros(b, n, dtype="bfloat16"), zeros(b, n, dtype="bfloat16")
    launch, args = run(noised, (cdiv(n, 1024), b), (x, step, table, out, target, n, seed), (out, target), BLOCK=1024, num_warps=4)

    def reference(*_):
        words = torch.stack(philox(seed, arange(b * n, "int64"))[:2])
        words = torch.where(words >= 1 << 31, (1 << 32) - 1 - words, words).double() * 4.6566127342e-10
        noise = ((-2 * words[0].clamp(min=1e-7).log()).sqrt() * torch.cos(2 * math.pi * words[1])).view(b, n)
        keep = table[step].double()[:, None]
        return keep.sqrt() * x + (1 - keep).sqrt() * noise, keep.sqrt() * noise - (1 - keep).sqrt() * x

    launch.reference = reference
    return launch, args


@triton.jit
def spread_of_batch(X, MEAN, SPREAD, B, S, C, TB: tl.constexpr, TS: tl.constexpr, TC: tl.constexpr):
    # Over the first axis of three, in two passes over memory; the spread's mean over the middle axis is taken at once.
    c, s = tl.program_id(0) * TC + tl.arange(0, TC), tl.program_id(1) * TS + tl.arange(0, TS)
    b = tl.arange(0, TB)
    ok = (s < S)[:, None] & (c < C)[None, :]
    total = tl.zeros((TS, TC), tl.float32)
    for b0 in range(0, B, TB):
        live = (b0 + b < B)[:, None, None] & ok[None]
        at = ((b0 + b)[:, None, None] * S + s[None, :, None]) * C + c[None, None, :]
        total += tl.sum(tl.load(X + at, mask=live, other=0.0).to(tl.float32), axis=0)
    mean = total / B
    total = tl.zeros((TS, TC), tl.float32)
    for b0 in range(0, B, TB):
        live = (b0 + b < B)[:, None, None] & ok[None]
        at = ((b0 + b)[:, None, None] * S + s[None, :, None]) * C + c[None, None, :]
        d = tl.where(live, tl.load(X + at, mask=live, other=0.0).to(tl.float32) - mean[None], 0.0)
        total += tl.sum(d * d, axis=0)
    tl.store(MEAN + s[:, None] * C + c[None, :], mean, mask=ok)
    spread = tl.sum(tl.where(ok, tl.sqrt(total / B + 1e-8), 0.0), axis=0, keep_dims=True)
    tl.store(SPREAD + tl.program_id(1) * C + c[None, :], spread, mask=(c < C)[None, :])


@case
def spread_of_a_batch_over_its_first_axis():
    b, s, c = 50, 196, 390
    x, mean, spread = rand(b, s, c, dtype="bfloat16"), zeros(s, c, dtype="float32"), zeros(cdiv(s, 8), c, dtype="float32")
    grid = cdiv(c, 64), cdiv(s, 8)
    launch, args = run(spread_of_batch, grid, (x, mean, spread, b, s, c), (mean, spread), TB=16, TS=8, TC=64, num_warps=16)

    def reference(*_):
        v = x.float()
        d = (v.var(0, unbiased=False) + 1e-8).sqrt()
        return v.mean(0), F.pad(d, (0, 0, 0, -s % 8)).view(-1, 8, c).sum(1)

    launch.reference = reference
    return launch, args


@triton.jit
def wide_tile_few_registers(A, B, BIAS, C, M, N, K, sa, sb, sc, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    tl.assume(sa > 0)
    tl.assume(sb > 0)
    m, n, k = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN), tl.arange(0, BK)
    m_in, n_in = tl.where(m < M, m, 0), tl.where(n < N, n, 0)
    m_in, n_in = tl.max_contiguous(tl.multiple_of(m_in, BM), BM), tl.max_contiguous(tl.multiple_of(n_in, BN), BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for k0 in tl.range(0, tl.cdiv(K, BK), disallow_acc_multi_buffer=True):
        left = K - k0 * BK
        a = tl.load(A + m_in[:, None] * sa + (k0 * BK + k)[None, :], mask=k[None, :] < left, other=0.0)
        b = tl.load(B + (k0 * BK + k)[:, None] * sb + n_in[None, :], mask=k[:, None] < left, other=0.0)
        acc = tl.dot(a, b, acc)
    acc = tl.where(acc > 0, acc, 0.1 * acc) + tl.load(BIAS + n, mask=n < N, other=0.0)[None, :]
    tl.store(C + m[:, None] * sc + n[None, :], acc.to(tl.bfloat16), mask=(m < M)[:, None] & (n < N)[None, :])


@case
def gemm_of_16_warps_with_registers_told():
    m, n, k, row = 1500, 2300, 1000, 2312
    a, b, bias, c = rand(m, k, dtype="bfloat16"), rand(k, row, dtype="bfloat16"), f32(n), zeros(m, n, dtype="bfloat16")
    args = a, b, bias, c, m, n, k, k, row, n
    options = dict(BM=128, BN=256, BK=64, num_warps=16, num_stages=3, maxnreg=128)
    launch, args = run(wide_tile_few_registers, (cdiv(m, 128), cdiv(n, 256)), args, c, **options)
    launch.reference = lambda *_: F.leaky_relu(a.float() @ b.float()[:, :n], 0.1) + bias
    return launch, args


@triton.jit
def flattened_softmax(X, OUT, ROWS, COLS, temperature, BLOCK: tl.constexpr):
    # Rows of a program in a loop, and blocks of a row in loops within: told to be flattened.
    for row in tl.range(tl.program_id(0), ROWS, tl.num_programs(0), flatten=True):
        p = X + row.to(tl.int64) * COLS
        top, total = -float("inf"), 0.0
        for c0 in tl.range(0, COLS, BLOCK):
            c = c0 + tl.arange(0, BLOCK)
            x = tl.load(p + c, mask=c < COLS, other=-float("inf")).to(tl.float32) * temperature
            new = tl.maximum(top, tl.max(x, 0))
            total = total * tl.exp(top - new) + tl.sum(tl.exp(x - new), 0)
            top = new
        for c0 in tl.range(0, COLS, BLOCK, num_stages=3):
            c = c0 + tl.arange(0, BLOCK)
            x = tl.load(p + c, mask=c < COLS, other=0.0).to(tl.float32) * temperature
            tl.store(OUT + row.to(tl.int64) * COLS + c, (tl.exp(x - top) / total).to(OUT.dtype.element_ty), mask=c < COLS)


@case
def softmax_of_rows_in_flattened_loops():
    rows, cols = 3001, 9001
    x, out = rand(rows, cols), zeros(rows, cols)
    launch, args = run(flattened_softmax, (4 * PROGRAMS,), (x, out, rows, cols, 0.7), out, BLOCK=2048, num_warps=8)
    launch.reference = lambda *_: (x.float() * 0.7).softmax(1)
    return launch, args


@triton.jit
def joined_quantiles(A, B, PLACES, OUT, NA, NB, Q: tl.constexpr, TILE: tl.constexpr):
    # Two ragged rows joined, sorted as one, and read between places.
    row, i = tl.program_id(0), tl.arange(0, TILE)
    a = tl.load(A + row * NA + i, mask=i < NA, other=float("inf"))
    b = tl.load(B + row * NB + i, mask=i < NB, other=float("inf"))
    s = tl.sort(tl.cat(a, b, can_reorder=True))
    q = tl.arange(0, Q)
    place = tl.load(PLACES + q) * (NA + NB - 1)
    low = place.to(tl.int32)
    f = place - low
    x, y = tl.gather(s, low, 0), tl.gather(s, tl.minimum(low + 1, NA + NB - 1), 0)
    tl.store(OUT + row * Q + q, x + f * (y - x))


@case
def quantiles_of_two_rows_joined():
    rows, na, nb, q = 4096, 400, 491, 16
    a, b, places, out = f32(rows, na), f32(rows, nb) * 2, uniform(q) * 0.99, zeros(rows, q, dtype="float32")
    launch, args = run(joined_quantiles, (rows,), (a, b, places, out, na, nb), out, Q=q, TILE=512, num_warps=4)
    launch.reference = lambda *_: torch.quantile(torch.cat([a, b], 1), places, 1).t()
    return launch, args


@triton.jit
def halve_or_triple(STARTS, STEPS, PEAKS, N, LIMIT: tl.constexpr, BLOCK: tl.constexpr):
    # Numbers halved or tripled until all of a block are one: eight steps between looks at whether all are.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(STARTS + i, mask=i < N, other=1)
    peak, steps, rounds = x, tl.zeros((BLOCK,), tl.int32), 0
    while (tl.max(x, 0) > 1) & (rounds < LIMIT):
        for _ in tl.static_range(8):
            more = x > 1
            x = tl.where(more, tl.where((x & 1) == 0, x >> 1, 3 * x + 1), x)
            steps += more.to(tl.int32)
            peak = tl.maximum(peak, x)
        rounds += 1
    tl.store(STEPS + i, steps.to(tl.int16), mask=i < N)
    tl.store(PEAKS + i, libdevice.clz(tl.minimum(peak >> 4, 0x7FFFFFFF).to(tl.int32)).to(tl.uint8), mask=i < N)


@case
def numbers_halved_or_tripled_until_one():
    n = 1_000_003
    starts, steps, peaks = torch.randint(1, 2**31, (n,), device="cuda"), zeros(n, dtype="int16"), zeros(n, dtype="uint8")
    launch, args = run(halve_or_triple, (cdiv(n, 128),), (starts, steps, peaks, n), (steps, peaks), LIMIT=200, BLOCK=128, num_warps=4)

    def reference(*_):
        x, peak, steps = starts.clone(), starts.clone(), torch.zeros_like(starts)
        for _ in range(1000):
            more = x > 1
            if not more.any():
                break
            x = torch.where(more, torch.where((x & 1) == 0, x >> 1, 3 * x + 1), x)
            steps += more
            peak = torch.maximum(peak, x)
        top = (peak >> 4).clamp(max=0x7FFFFFFF)
        return steps, sum((top < (1 << b)).long() for b in range(31)) + 1

    launch.reference = reference
    return launch, args


@triton.jit
def vote_of_masks(LOGITS, CLASS, MARGIN, SURE, S, K: tl.constexpr, BS: tl.constexpr):
    # The class of each pixel, its lead over the second one, and whether all pixels around a block agree; ties go anywhere.
    s = tl.program_id(0) * BS + tl.arange(0, BS)
    k = tl.arange(0, K)
    x = tl.load(LOGITS + tl.program_id(1) * K * S + k[:, None] * S + s[None, :], mask=(s < S)[None, :], other=0.0).to(tl.float32)
    best, which = tl.max(x, axis=0, return_indices=True, return_indices_tie_break_left=False)
    second = tl.max(tl.where(k[:, None] == which[None, :], -float("inf"), x), axis=0)
    p = tl.softmax(x, 0)
    at = tl.program_id(1) * S + s
    tl.store(CLASS + at, which.to(tl.uint8), mask=s < S)
    tl.store(MARGIN + at, (best - second).to(tl.float16), mask=s < S)
    sure = tl.reduce_or(((tl.max(p, 0) > 0.9) & (s < S)).to(tl.int32), 0)
    if sure != 0:
        tl.atomic_add(SURE + tl.program_id(1), 1, sem="relaxed")


@case
def classes_of_pixels_and_their_leads():
    n, k, size = 8, 32, 200 * 203
    x, which, margin = f32(n, k, size), zeros(n, size, dtype="uint8"), zeros(n, size)
    sure = zeros(n, dtype="int32")
    launched = run(vote_of_masks, (cdiv(size, 64), n), (x * 2, which, margin, sure, size), (which, margin, sure), K=k, BS=64, num_warps=4)
    launch, args = cleared(launched, sure)

    def reference(*_):
        best = (x * 2).topk(2, 1)
        hit = F.pad((x * 2).softmax(1).amax(1) > 0.9, (0, -size % 64)).view(n, -1, 64).any(2)
        return best[1][:, 0], best[0][:, 0] - best[0][:, 1], hit.sum(1)

    launch.reference = reference
    return launch, args
