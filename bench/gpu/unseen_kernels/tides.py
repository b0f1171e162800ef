"""Tides: harmonics of sea levels, ground that shakes and pulls, rates of interest, books of orders, trees of species, antennas, regulators."""

import math

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice

from .common import against, case, cdiv, cleared, f32, ints, rand, run, uniform, zeros
from .recipes import philox


@triton.jit
def harmonic_normals(level_ptr, freq_ptr, gram_ptr, right_ptr, T, C: tl.constexpr, BT: tl.constexpr):
    # Normal equations of a harmonic fit for one gauge: cosines and sines are made on the way, hours without a reading are NaN.
    gauge = tl.program_id(0)
    c = tl.arange(0, C)
    freq = tl.load(freq_ptr + c // 2)
    quarter = tl.where(c % 2 == 0, 0.0, 0.25)
    gram = tl.zeros((C, C), tl.float32)
    right = tl.zeros((C,), tl.float32)
    for t0 in range(0, T, BT):
        t = t0 + tl.arange(0, BT)
        y = tl.load(level_ptr + gauge * T + t, mask=t < T, other=float("nan"))
        seen = y == y
        turns = t.to(tl.float32)[:, None] * freq[None, :] - quarter[None, :]
        turns -= tl.floor(turns)
        basis = tl.where(seen[:, None], tl.cos(turns * 6.283185307179586), 0.0)
        gram = tl.dot(tl.trans(basis), basis, gram, input_precision="ieee")
        right += tl.sum(basis * tl.where(seen, y, 0.0)[:, None], 0)
    tl.store(gram_ptr + gauge * C * C + c[:, None] * C + c[None, :], gram)
    tl.store(right_ptr + gauge * C + c, right)


@case
def tide_gauges_to_normal_equations_of_sixteen_harmonics(gauges=600, t=3000, c=32):
    level = torch.where(uniform(gauges, t) < 0.05, math.nan, f32(gauges, t))
    freq = torch.tensor([0, 0.0805, 0.0833, 0.0790, 0.0418, 0.0387, 0.0416, 0.0372, 0.1610, 0.1638, 0.2415, 0.0014, 0.0028, 0.0001, 0.0777, 0.0820], device="cuda")
    gram, right = zeros(gauges, c, c, dtype="float32"), zeros(gauges, c, dtype="float32")
    launched = run(harmonic_normals, (gauges,), (level, freq, gram, right, t), (gram, right), C=c, BT=64, num_warps=4, num_stages=2)

    def reference():
        turns = torch.arange(t, device="cuda").double()[:, None] * freq.double()[None, :]
        basis = torch.stack([torch.cos(2 * math.pi * turns), torch.sin(2 * math.pi * turns)], 2).reshape(t, c)
        seen = (~level.isnan()).double()
        return torch.einsum("gt,ta,tb->gab", seen, basis, basis), level.nan_to_num().double() @ basis

    return against(launched, reference)


@triton.jit
def pull_of_corner(x, y, z):
    r = tl.sqrt(x * x + y * y + z * z)
    return x * tl.log(y + r) + y * tl.log(x + r) - z * libdevice.atan2(x * y, z * r)


@triton.jit
def pull_of_prisms(px_ptr, py_ptr, box_ptr, density_ptr, out_ptr, STATIONS, BOXES, BLOCK: tl.constexpr):
    # Vertical attraction of rectangular prisms at stations on the ground, by eight corners each, in double.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    px, py = tl.load(px_ptr + i, mask=i < STATIONS, other=0.0), tl.load(py_ptr + i, mask=i < STATIONS, other=0.0)
    total = tl.zeros((BLOCK,), tl.float64)
    for b in range(BOXES):
        inner = tl.zeros((BLOCK,), tl.float64)
        for corner in tl.static_range(8):
            x = tl.load(box_ptr + b * 6 + (corner & 1)) - px
            y = tl.load(box_ptr + b * 6 + 2 + ((corner >> 1) & 1)) - py
            z = tl.load(box_ptr + b * 6 + 4 + (corner >> 2))
            if (corner & 1) ^ ((corner >> 1) & 1) ^ (corner >> 2):
                inner += pull_of_corner(x, y, z)
            else:
                inner -= pull_of_corner(x, y, z)
        total += inner * tl.load(density_ptr + b)
    tl.store(out_ptr + i, total * 6.674e-6, mask=i < STATIONS)


@case
def tide_of_rock_that_pulls_on_stations_in_double(stations=8000, boxes=20):
    px, py = (uniform(stations) * 1000).double(), (uniform(stations) * 1000).double()
    low = torch.stack([uniform(boxes) * 900, uniform(boxes) * 900, uniform(boxes) * 200 + 10], 1)
    box = torch.stack([low, low + 20 + uniform(boxes, 3) * 100], 2).reshape(boxes, 6).double()
    density = (uniform(boxes) * 1000 + 2000).double()
    out = zeros(stations, dtype="float64")
    launched = run(pull_of_prisms, (cdiv(stations, 64),), (px, py, box, density, out, stations, boxes), out, BLOCK=64, num_warps=2)

    def reference():
        total = torch.zeros_like(px)
        for b in range(boxes):
            for corner in range(8):
                i, j, k = corner & 1, (corner >> 1) & 1, corner >> 2
                x, y, z = box[b, i] - px, box[b, 2 + j] - py, box[b, 4 + k]
                r = torch.sqrt(x * x + y * y + z * z)
                term = x * torch.log(y + r) + y * torch.log(x + r) - z * torch.atan2(x * y, z * r)
                total += density[b] * (term if i ^ j ^ k else -term)
        return total * 6.674e-6

    return against(launched, reference)


@triton.jit
def migrate(trace_ptr, source_ptr, receiver_ptr, image_ptr, NX, NZ, TRACES, NT, slow, per_second, BZ: tl.constexpr, BX: tl.constexpr):
    # A point of the image sums samples of all traces at the time that its path takes, between two samples each.
    z = tl.program_id(1) * BZ + tl.arange(0, BZ)[:, None]
    x = tl.program_id(0) * BX + tl.arange(0, BX)[None, :]
    depth = (z + 1).to(tl.float32) * 5.0
    place = x.to(tl.float32) * 5.0
    acc = tl.zeros((BZ, BX), tl.float32)
    for n in range(TRACES):
        ds, dr = place - tl.load(source_ptr + n), place - tl.load(receiver_ptr + n)
        rs, rr = tl.sqrt(ds * ds + depth * depth), tl.sqrt(dr * dr + depth * depth)
        at = (rs + rr) * slow * per_second
        low = tl.floor(at)
        f = at - low
        k = low.to(tl.int32)
        ok = k < NT - 1
        a = tl.load(trace_ptr + n * NT + k, mask=ok, other=0.0)
        b = tl.load(trace_ptr + n * NT + k + 1, mask=ok, other=0.0)
        acc += (a + (b - a) * f) * depth / (rs * rr) * 100.0
    tl.store(image_ptr + z * NX + x, acc, mask=(z < NZ) & (x < NX))


@case
def tide_of_echoes_moved_to_where_they_came_from(nx=500, nz=300, traces=200, nt=1500):
    trace = f32(traces, nt)
    trace = (trace + trace.roll(1, 1) + trace.roll(2, 1)) / 3
    source, receiver, image = uniform(traces) * 5 * nx, uniform(traces) * 5 * nx, zeros(nz, nx, dtype="float32")
    args = trace, source, receiver, image, nx, nz, traces, nt, 1 / 3000.0, 500.0
    launched = run(migrate, (cdiv(nx, 64), cdiv(nz, 8)), args, image, BZ=8, BX=64, num_warps=4)

    def reference():
        depth = (torch.arange(nz, device="cuda")[:, None] + 1).double() * 5
        place = torch.arange(nx, device="cuda")[None, :].double() * 5
        acc = torch.zeros(nz, nx, dtype=torch.float64, device="cuda")
        for n in range(traces):
            rs, rr = (place - source[n]).square().add(depth**2).sqrt(), (place - receiver[n]).square().add(depth**2).sqrt()
            at = (rs + rr) / 3000 * 500
            k = at.floor().long()
            ok = k < nt - 1
            k = k.clamp(max=nt - 2)
            a, b = trace[n].double()[k], trace[n].double()[k + 1]
            acc += torch.where(ok, (a + (b - a) * (at - at.floor())) * depth / (rs * rr) * 100, 0)
        return acc

    return against(launched, reference)


@triton.jit
def two_averages(a0, x0, b0, y0, a1, x1, b1, y1):
    return a0 * a1, x0 * a1 + x1, b0 * b1, y0 * b1 + y1


@triton.jit
def last_word(s0, s1):
    return tl.where(s1 != 0, s1, s0)


@triton.jit
def shakes(x_ptr, ratio_ptr, count_ptr, first_ptr, T, short, long, high, low, BT: tl.constexpr):
    # Short over long averages of power; on above one threshold until below another; onsets are counted and the first one is kept.
    row = tl.program_id(0).to(tl.int64)
    t = tl.arange(0, BT)
    s, l, state, onsets, first = 0.0, 1.0, -1, 0, T
    for t0 in range(0, T, BT):
        ok = t0 + t < T
        x = tl.load(x_ptr + row * T + t0 + t, mask=ok, other=0.0).to(tl.float32)
        p = x * x
        keep_s, keep_l = tl.full((BT,), 1.0, tl.float32) - short, tl.full((BT,), 1.0, tl.float32) - long
        ds, ps, dl, pl = tl.associative_scan((keep_s, p * short, keep_l, p * long), 0, two_averages)
        ss, ll = ps + ds * s, pl + dl * l
        ratio = ss / ll
        word = tl.where(ok & (ratio > high), 1, tl.where(ok & (ratio < low), -1, 0))
        word = tl.where((t == 0) & (word == 0), state, word)
        on = tl.associative_scan(word, 0, last_word)
        before = tl.where(t == 0, state, tl.gather(on, tl.maximum(t - 1, 0), 0))
        rise = (on > 0) & (before < 0)
        onsets += tl.sum(rise.to(tl.int32), 0)
        first = tl.minimum(first, tl.min(tl.where(rise, t0 + t, T), 0))
        tl.store(ratio_ptr + row * T + t0 + t, ratio, mask=ok)
        last = t == BT - 1
        s, l = tl.sum(tl.where(last, ss, 0.0), 0), tl.sum(tl.where(last, ll, 0.0), 0)
        state = tl.sum(tl.where(last, on, 0), 0)
    tl.store(count_ptr + row, onsets)
    tl.store(first_ptr + row, first)


@case
def tide_of_shakes_that_set_off_stations(rows=700, t=9000, bt=1024):
    x = (f32(rows, t) * (1 + 4 * (uniform(rows, cdiv(t, 300)) < 0.1).repeat_interleave(300, 1)[:, :t])).half()
    ratio, count, first = zeros(rows, t, dtype="float32"), zeros(rows, dtype="int32"), zeros(rows, dtype="int32")
    args = x, ratio, count, first, t, 0.05, 0.002, 3.0, 1.2
    launched = run(shakes, (rows,), args, (ratio, count, first), BT=bt, num_warps=4)

    def reference():
        s, l = torch.zeros(rows, dtype=torch.float64, device="cuda"), torch.ones(rows, dtype=torch.float64, device="cuda")
        on = torch.zeros(rows, dtype=torch.bool, device="cuda")
        n, f = torch.zeros(rows, dtype=torch.long, device="cuda"), torch.full((rows,), t, device="cuda")
        power, out = x.double().square().t().contiguous(), []
        for i in range(t):
            s, l = s * 0.95 + power[i] * 0.05, l * 0.998 + power[i] * 0.002
            r = s / l
            now = (r > 3.0) | (on & ~(r < 1.2))
            rise = now & ~on
            n += rise
            f = torch.where(rise & (f == t), i, f)
            on = now
            out.append(r)
        return torch.stack(out, 1), n, f

    return against(launched, reference)


@triton.jit
def flows_downhill(height_ptr, to_ptr, inflow_ptr, H, W, BY: tl.constexpr, BX: tl.constexpr):
    # Water of a cell goes to the steepest of eight neighbors, or nowhere; cells count who flows into them.
    y = tl.program_id(1) * BY + tl.arange(0, BY)[:, None]
    x = tl.program_id(0) * BX + tl.arange(0, BX)[None, :]
    inside = (y < H) & (x < W)
    here = tl.load(height_ptr + y * W + x, mask=inside, other=0.0)
    best = tl.zeros((BY, BX), tl.float32)
    way = tl.full((BY, BX), -1, tl.int32)
    for d in tl.static_range(9):
        if d != 4:
            yy, xx = y + (d // 3 - 1), x + (d % 3 - 1)
            ok = inside & (yy >= 0) & (yy < H) & (xx >= 0) & (xx < W)
            drop = here - tl.load(height_ptr + yy * W + xx, mask=ok, other=float("inf"))
            if d % 2 == 0:
                drop = drop * 0.70710678
            better = drop > best
            best = tl.where(better, drop, best)
            way = tl.where(better, d, way)
    tl.store(to_ptr + y * W + x, way.to(tl.int8), mask=inside)
    target = (y + way // 3 - 1) * W + x + way % 3 - 1
    tl.atomic_add(inflow_ptr + target, 1, mask=inside & (way >= 0), sem="relaxed")


@case
def tide_of_rain_to_the_steepest_neighbor(h=1500, w=2100):
    height, to, inflow = f32(h, w) * 10, zeros(h, w, dtype="int8"), zeros(h, w, dtype="int32")
    launched = run(flows_downhill, (cdiv(w, 128), cdiv(h, 8)), (height, to, inflow, h, w), (to, inflow), BY=8, BX=128, num_warps=8)

    def reference():
        padded = torch.nn.functional.pad(height, (1, 1, 1, 1), value=math.inf)
        best, way = torch.zeros_like(height), torch.full_like(height, -1).long()
        for d in (0, 1, 2, 3, 5, 6, 7, 8):
            drop = height - padded[d // 3 : d // 3 + h, d % 3 : d % 3 + w]
            drop = drop * 0.70710678 if d % 2 == 0 else drop
            way, best = torch.where(drop > best, d, way), torch.maximum(drop, best)
        y, x = torch.arange(h, device="cuda")[:, None], torch.arange(w, device="cuda")[None, :]
        target = ((y + way // 3 - 1) * w + x + way % 3 - 1)[way >= 0]
        return way, torch.bincount(target, minlength=h * w).reshape(h, w)

    return against(cleared(launched, inflow), reference)


@triton.jit
def along_branch(p_ptr, a, c, g, t):
    # What a node sees of a child through the matrix of the branch between them.
    ra = tl.load(p_ptr) * a + tl.load(p_ptr + 1) * c + tl.load(p_ptr + 2) * g + tl.load(p_ptr + 3) * t
    rc = tl.load(p_ptr + 4) * a + tl.load(p_ptr + 5) * c + tl.load(p_ptr + 6) * g + tl.load(p_ptr + 7) * t
    rg = tl.load(p_ptr + 8) * a + tl.load(p_ptr + 9) * c + tl.load(p_ptr + 10) * g + tl.load(p_ptr + 11) * t
    rt = tl.load(p_ptr + 12) * a + tl.load(p_ptr + 13) * c + tl.load(p_ptr + 14) * g + tl.load(p_ptr + 15) * t
    return ra, rc, rg, rt


@triton.jit
def partials_of(node, tip_ptr, work_ptr, i, ok, SITES, TAXA):
    if node < TAXA:
        letter = tl.load(tip_ptr + node * SITES + i, mask=ok, other=4)
        a = ((letter == 0) | (letter > 3)).to(tl.float32)
        c = ((letter == 1) | (letter > 3)).to(tl.float32)
        g = ((letter == 2) | (letter > 3)).to(tl.float32)
        t = ((letter == 3) | (letter > 3)).to(tl.float32)
    else:
        at = work_ptr + (node - TAXA) * 4 * SITES + i
        a, c = tl.load(at, mask=ok, other=0.0), tl.load(at + SITES, mask=ok, other=0.0)
        g, t = tl.load(at + 2 * SITES, mask=ok, other=0.0), tl.load(at + 3 * SITES, mask=ok, other=0.0)
    return a, c, g, t


@triton.jit
def likelihoods_of_a_tree(tip_ptr, child_ptr, p_ptr, work_ptr, out_ptr, SITES, TAXA, RATES: tl.constexpr, BLOCK: tl.constexpr):
    # Nodes in the order in which children come first; likelihoods of the four letters of nodes wait in memory.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ok = i < SITES
    nodes = 2 * TAXA - 1
    total = tl.zeros((BLOCK,), tl.float32)
    for rate in range(RATES):
        for n in range(TAXA - 1):
            left, right = tl.load(child_ptr + 2 * n), tl.load(child_ptr + 2 * n + 1)
            a, c, g, t = partials_of(left, tip_ptr, work_ptr, i, ok, SITES, TAXA)
            la, lc, lg, lt = along_branch(p_ptr + (rate * nodes + left) * 16, a, c, g, t)
            a, c, g, t = partials_of(right, tip_ptr, work_ptr, i, ok, SITES, TAXA)
            ra, rc, rg, rt = along_branch(p_ptr + (rate * nodes + right) * 16, a, c, g, t)
            at = work_ptr + n * 4 * SITES + i
            tl.store(at, la * ra, mask=ok)
            tl.store(at + SITES, lc * rc, mask=ok)
            tl.store(at + 2 * SITES, lg * rg, mask=ok)
            tl.store(at + 3 * SITES, lt * rt, mask=ok)
            tl.debug_barrier()
        a, c, g, t = partials_of(2 * TAXA - 2, tip_ptr, work_ptr, i, ok, SITES, TAXA)
        total += 0.25 * (a + c + g + t)
    tl.store(out_ptr + i, tl.log(total / RATES), mask=ok)


@case
def tide_of_species_up_their_tree(sites=40_000, taxa=20, rates=3):
    order = torch.randperm(taxa).tolist()
    children, pool, following = [], order, taxa
    while len(pool) > 1:
        children += [pool[0], pool[1]]
        pool, following = pool[2:] + [following], following + 1
    child = torch.tensor(children, dtype=torch.int32).cuda()
    same = torch.rand(rates, 2 * taxa - 1, 1, 1) * 0.6 + 0.3
    p = (same * torch.eye(4) + (1 - same) / 4).contiguous().cuda()
    tip = torch.where(uniform(taxa, sites) < 0.03, 4, ints(0, 4, taxa, sites)).to(torch.int8)
    work, out = zeros(taxa - 1, 4, sites, dtype="float32"), zeros(sites, dtype="float32")
    launched = run(likelihoods_of_a_tree, (cdiv(sites, 128),), (tip, child, p, work, out, sites, taxa), out, RATES=rates, BLOCK=128, num_warps=4)

    def reference():
        total = 0
        for rate in range(rates):
            parts = [((tip[k][None] == torch.arange(4, device="cuda")[:, None]) | (tip[k][None] > 3)).double() for k in range(taxa)]
            for n in range(taxa - 1):
                one, two = children[2 * n], children[2 * n + 1]
                parts.append((p[rate, one].double() @ parts[one]) * (p[rate, two].double() @ parts[two]))
            total = total + parts[-1].mean(0)
        return (total / rates).log()

    return against(launched, reference)


@triton.jit
def market_model(z_ptr, start_ptr, load_ptr, out_ptr, PATHS, STEPS, strike, delta, FACTORS: tl.constexpr, RATES: tl.constexpr, BP: tl.constexpr):
    # Forward rates move together; drifts are running sums over rates that have not expired; a payer swap is valued at the end.
    path = tl.program_id(0) * BP + tl.arange(0, BP)
    r = tl.arange(0, RATES)
    rates = tl.zeros((BP, RATES), tl.float32) + tl.load(start_ptr + r)[None, :]
    numeraire = tl.full((BP,), 1.0, tl.float32)
    root = tl.sqrt(delta)
    for step in range(STEPS):
        expiring = tl.sum(tl.where((r == step)[None, :], rates, 0.0), 1)
        numeraire *= 1.0 + delta * expiring
        alive = r > step
        share = tl.where(alive[None, :], delta * rates / (1.0 + delta * rates), 0.0)
        moved = tl.zeros((BP, RATES), tl.float32)
        for f in tl.static_range(FACTORS):
            size = tl.load(load_ptr + f * RATES + r)
            z = tl.load(z_ptr + (step * FACTORS + f) * PATHS + path, mask=path < PATHS, other=0.0)
            drift = tl.cumsum(share * size[None, :], 1)
            moved += size[None, :] * (drift * delta + z[:, None] * root) - 0.5 * delta * (size * size)[None, :]
        rates = tl.where(alive[None, :], rates * tl.exp(moved), rates)
    live = (r >= STEPS)[None, :]
    bonds = tl.exp(-tl.cumsum(tl.where(live, tl.log(1.0 + delta * rates), 0.0), 1))
    value = tl.sum(tl.where(live, delta * (rates - strike) * bonds, 0.0), 1)
    tl.store(out_ptr + path, tl.maximum(value, 0.0) / numeraire, mask=path < PATHS)


@case
def tide_of_sixteen_forward_rates_to_a_swaption(paths=100_000, steps=9, factors=3, bp=32):
    z, start = f32(steps, factors, paths), 0.03 + uniform(16) * 0.02
    loads, out = 0.05 + uniform(factors, 16) * 0.15, zeros(paths, dtype="float32")
    launched = run(market_model, (cdiv(paths, bp),), (z, start, loads, out, paths, steps, 0.035, 0.5), out, FACTORS=factors, RATES=16, BP=bp, num_warps=4)

    def reference():
        rates, numeraire = start.double()[None].repeat(paths, 1), 1.0
        for step in range(steps):
            numeraire = numeraire * (1 + 0.5 * rates[:, step])
            alive = torch.arange(16, device="cuda") > step
            share = torch.where(alive, 0.5 * rates / (1 + 0.5 * rates), 0)
            moved = 0
            for f in range(factors):
                size = loads[f].double()
                moved = moved + size * ((share * size).cumsum(1) * 0.5 + z[step, f].double()[:, None] * 0.5**0.5) - 0.25 * size**2
            rates = torch.where(alive, rates * moved.exp(), rates)
        live = torch.arange(16, device="cuda") >= steps
        bonds = (-torch.where(live, (1 + 0.5 * rates).log(), 0).cumsum(1)).exp()
        return torch.where(live, 0.5 * (rates - 0.035) * bonds, 0).sum(1).clamp(min=0) / numeraire

    return against(launched, reference)


@triton.jit
def regulator_gains(a_ptr, b_ptr, q_ptr, gain_ptr, cost_ptr, SYSTEMS, STEPS, N: tl.constexpr, BS: tl.constexpr, P: tl.constexpr):
    # Riccati's recursion backward in time for linear systems of twelve states and one input, four systems in dots of three axes.
    s = tl.program_id(0) * BS + tl.arange(0, BS)
    i, j = tl.arange(0, P), tl.arange(0, P)
    ok = (s < SYSTEMS)[:, None, None] & (i < N)[None, :, None] & (j < N)[None, None, :]
    at = s[:, None, None] * N * N + i[None, :, None] * N + j[None, None, :]
    a = tl.load(a_ptr + at, mask=ok, other=0.0)
    turned = tl.trans(a, 0, 2, 1)
    b = tl.load(b_ptr + s[:, None] * N + i[None, :], mask=(s < SYSTEMS)[:, None] & (i < N)[None, :], other=0.0)
    q = tl.load(q_ptr + i, mask=i < N, other=0.0)
    diagonal = tl.where((i[:, None] == j[None, :])[None, :, :], q[None, :, None], 0.0)
    p = tl.zeros((BS, P, P), tl.float32) + diagonal
    for step in range(STEPS):
        pa = tl.dot(p, a, input_precision="ieee")
        pb = tl.sum(p * b[:, None, :], 2)
        scale = 1.0 / (1.0 + tl.sum(pb * b, 1))
        bpa = tl.sum(b[:, :, None] * pa, 1)
        gain = bpa * scale[:, None]
        p = tl.dot(turned, pa, input_precision="ieee") + diagonal - bpa[:, :, None] * gain[:, None, :]
        tl.store(gain_ptr + ((STEPS - 1 - step) * SYSTEMS + s[:, None]) * N + i[None, :], gain, mask=(s < SYSTEMS)[:, None] & (i < N)[None, :])
    tl.store(cost_ptr + at, p, mask=ok)


@case
def tide_of_gains_backward_for_systems_of_twelve_states(systems=3001, n=12, steps=20):
    a, b, q = f32(systems, n, n) * 0.28, f32(systems, n), uniform(n) + 0.5
    gain, cost = zeros(steps, systems, n, dtype="float32"), zeros(systems, n, n, dtype="float32")
    launched = run(regulator_gains, (cdiv(systems, 4),), (a, b, q, gain, cost, systems, steps), (gain, cost), N=n, BS=4, P=16, num_warps=4)

    def reference():
        x, y, p, gains = a.double(), b.double(), torch.diag(q.double())[None], []
        for _ in range(steps):
            pa = p @ x
            bpa = torch.einsum("si,sij->sj", y, pa)
            g = bpa / (1 + torch.einsum("si,sij,sj->s", y, p.expand(systems, n, n), y))[:, None]
            p = x.mT @ pa + torch.diag(q.double()) - bpa[:, :, None] * g[:, None, :]
            gains.insert(0, g)
        return torch.stack(gains), p

    return against(launched, reference)


@triton.jit
def replay_book(event_ptr, out_ptr, filled_ptr, EVENTS, LEVELS: tl.constexpr):
    # A book of orders in a tile of prices: an order takes from the other side up to its price, and what is left of it rests.
    book = tl.program_id(0)
    level = tl.arange(0, LEVELS)
    bids, asks = tl.where(level < LEVELS // 2 - 2, 3, 0), tl.where(level > LEVELS // 2 + 2, 3, 0)
    filled = tl.zeros((), tl.int64)
    for e in range(EVENTS):
        packed = tl.load(event_ptr + book * EVENTS + e)
        price, size = packed & 0xFFFF, (packed >> 16) & 0xFF
        if (packed >> 24) & 1:
            open_ = tl.where(level <= price, asks, 0)
            before = tl.cumsum(open_, 0) - open_
            taken = tl.minimum(tl.maximum(size - before, 0), open_)
            asks -= taken
            done = tl.sum(taken, 0)
            bids += tl.where(level == price, size - done, 0)
        else:
            open_ = tl.where(level >= price, bids, 0)
            before = tl.cumsum(open_, 0, reverse=True) - open_
            taken = tl.minimum(tl.maximum(size - before, 0), open_)
            bids -= taken
            done = tl.sum(taken, 0)
            asks += tl.where(level == price, size - done, 0)
        filled += tl.sum(taken.to(tl.int64) * level, 0)
        best_bid = tl.max(tl.where(bids > 0, level, -1), 0)
        best_ask = tl.min(tl.where(asks > 0, level, LEVELS), 0)
        tl.store(out_ptr + (book * EVENTS + e) * 2, best_bid)
        tl.store(out_ptr + (book * EVENTS + e) * 2 + 1, best_ask)
    tl.store(filled_ptr + book, filled)


@case
def tide_of_orders_through_books_of_256_prices(books=800, events=120, levels=256):
    price = (levels // 2 + (f32(books, events) * 8).round().int()).clamp(0, levels - 1)
    event = price | (ints(1, 8, books, events) << 16) | (ints(0, 2, books, events) << 24)
    out, filled = zeros(books, events, 2, dtype="int32"), zeros(books, dtype="int64")
    launched = run(replay_book, (books,), (event, out, filled, events), (out, filled), LEVELS=levels, num_warps=2)

    def reference():
        level = torch.arange(levels, device="cuda")
        bids = torch.where(level < levels // 2 - 2, 3, 0)[None].repeat(books, 1)
        asks = torch.where(level > levels // 2 + 2, 3, 0)[None].repeat(books, 1)
        total, outs = torch.zeros(books, dtype=torch.long, device="cuda"), []
        for e in range(events):
            p, s, buys = event[:, e : e + 1] & 0xFFFF, (event[:, e : e + 1] >> 16) & 0xFF, (event[:, e : e + 1] >> 24) & 1 > 0
            open_ = torch.where(level <= p, asks, 0)
            take = torch.minimum((s - (open_.cumsum(1) - open_)).clamp(min=0), open_) * buys
            open_ = torch.where(level >= p, bids, 0)
            give = torch.minimum((s - (open_.flip(1).cumsum(1).flip(1) - open_)).clamp(min=0), open_) * ~buys
            asks = asks - take + torch.where((level == p) & ~buys, s - give.sum(1, True), 0)
            bids = bids - give + torch.where((level == p) & buys, s - take.sum(1, True), 0)
            total += ((take + give) * level).sum(1)
            bid, ask = torch.where(bids > 0, level, -1).amax(1), torch.where(asks > 0, level, levels).amin(1)
            outs.append(torch.stack([bid, ask], 1))
        return torch.stack(outs, 1), total

    return against(launched, reference)


@triton.jit
def fit_to_a_bell(x_ptr, d_ptr, a2_ptr, COLS, N: tl.constexpr):
    # How far samples are from a normal distribution of their own mean and spread: the largest gap, and squares weighed at the tails.
    row = tl.program_id(0)
    i = tl.arange(0, N)
    ok = i < COLS
    x = tl.load(x_ptr + row * COLS + i, mask=ok, other=float("inf"))
    x = tl.sort(x)
    clean = tl.where(ok, x, 0.0)
    mean = tl.sum(clean, 0) / COLS
    off = tl.where(ok, clean - mean, 0.0)
    spread = tl.sqrt(tl.sum(off * off, 0) / (COLS - 1))
    f = 0.5 * (1.0 + tl.erf(off / spread * 0.70710678118))
    f = tl.minimum(tl.maximum(f, 1e-6), 1.0 - 1e-6)
    place = i.to(tl.float32) / COLS
    gap = tl.where(ok, tl.maximum(place + 1.0 / COLS - f, f - place), 0.0)
    mirror = tl.gather(f, tl.maximum(COLS - 1 - i, 0), 0)
    terms = (2 * i + 1).to(tl.float32) * (tl.log(f) + tl.log(1.0 - mirror))
    tl.store(d_ptr + row, tl.max(gap, 0))
    tl.store(a2_ptr + row, -COLS - tl.sum(tl.where(ok, terms, 0.0), 0) / COLS)


@case
def tide_of_samples_held_against_a_bell(rows=2500, cols=1000):
    x = f32(rows, cols) + 0.5 * f32(rows, cols).square()
    d, a2 = zeros(rows, dtype="float32"), zeros(rows, dtype="float32")
    launched = run(fit_to_a_bell, (rows,), (x, d, a2, cols), (d, a2), N=triton.next_power_of_2(cols), num_warps=4)

    def reference():
        s = x.double().sort(1)[0]
        f = (0.5 * (1 + torch.erf((s - s.mean(1, True)) / s.std(1, keepdim=True) / 2**0.5))).clamp(1e-6, 1 - 1e-6)
        i = torch.arange(cols, device="cuda").double()
        gap = torch.maximum((i + 1) / cols - f, f - i / cols).amax(1)
        return gap, -cols - ((2 * i + 1) * (f.log() + (1 - f.flip(1)).log())).sum(1) / cols

    return against(launched, reference)


@triton.jit
def fade_then_add(d0, x0, d1, x1):
    return d0 * d1, x0 * d1 + x1


@triton.jit
def excited_events(time_ptr, start_ptr, mu_ptr, alpha_ptr, beta_ptr, out_ptr, horizon, BE: tl.constexpr):
    # Log likelihood of a point process whose events excite later ones, for sequences of uneven length.
    seq = tl.program_id(0)
    begin, end = tl.load(start_ptr + seq), tl.load(start_ptr + seq + 1)
    mu, alpha, beta = tl.load(mu_ptr + seq), tl.load(alpha_ptr + seq), tl.load(beta_ptr + seq)
    e = tl.arange(0, BE)
    carried = 0.0
    logs, left = tl.zeros((BE,), tl.float32), tl.zeros((BE,), tl.float32)
    for at in range(begin, end, BE):
        ok = at + e < end
        t = tl.load(time_ptr + at + e, mask=ok, other=0.0)
        before = tl.load(time_ptr + at + e - 1, mask=ok & (at + e > begin), other=0.0)
        fade = tl.where(ok, tl.where(at + e > begin, tl.exp(-beta * (t - before)), 0.0), 1.0)
        kept, added = tl.associative_scan((fade, tl.where(ok, fade, 0.0)), 0, fade_then_add)
        excited = added + kept * carried
        logs += tl.where(ok, tl.log(mu + alpha * excited), 0.0)
        left += tl.where(ok, 1.0 - tl.exp(-beta * (horizon - t)), 0.0)
        carried = tl.sum(tl.where(e == BE - 1, excited, 0.0), 0)
    tl.store(out_ptr + seq, tl.sum(logs, 0) - mu * horizon - alpha / beta * tl.sum(left, 0))


@case
def tide_of_events_that_excite_others(sequences=1500, longest=1400, be=256):
    length = torch.randint(1, longest, (sequences,))
    start = torch.cat([torch.zeros(1, dtype=torch.long), length.cumsum(0)])
    total = int(start[-1])
    owner = torch.repeat_interleave(torch.arange(sequences), length).cuda()
    time = torch.rand(total).cuda().double() * 50 + owner * 100.0
    time = (time.sort()[0] - owner * 100.0).float()
    mu, alpha, beta = uniform(sequences) + 0.2, uniform(sequences) * 0.7 + 0.1, uniform(sequences) + 1
    begins, out = start.int().cuda(), zeros(sequences, dtype="float32")
    launched = run(excited_events, (sequences,), (time, begins, mu, alpha, beta, out, 50.0), out, BE=be, num_warps=2)

    def reference():
        longs = int(length.max())
        place = start[:-1, None] + torch.arange(longs)[None]
        ok = (torch.arange(longs)[None] < length[:, None]).cuda()
        t = time.double()[place.clamp(max=total - 1).cuda()]
        m, a, b = mu.double(), alpha.double(), beta.double()
        excited, logs = torch.zeros_like(m), torch.zeros_like(m)
        for i in range(longs):
            if i:
                excited = torch.exp(-b * (t[:, i] - t[:, i - 1]).clamp(min=0)) * (1 + excited)
            logs += torch.where(ok[:, i], torch.log(m + a * excited), 0)
        left = torch.where(ok, 1 - torch.exp(-b[:, None] * (50 - t)), 0).sum(1)
        return logs - m * 50 - a / b * left

    return against(launched, reference)


@triton.jit
def bridges(out_ptr, PATHS, seed, spot, rate, sigma, horizon, LEVELS: tl.constexpr, BP: tl.constexpr):
    # Paths of Brown from the end to ever finer middles: new points are woven between old ones; numbers drawn in place; a lookback.
    path = tl.program_id(0) * BP + tl.arange(0, BP)
    ends = (tl.randn(seed, path * (1 << LEVELS)) * tl.sqrt(horizon))[:, None]
    for level in tl.static_range(LEVELS):
        k = tl.arange(0, 1 << level)
        if level == 0:
            begins = tl.zeros((BP, 1 << level), tl.float32)
        else:
            begins = tl.where((k > 0)[None, :], tl.gather(ends, tl.zeros((BP, 1 << level), tl.int32) + tl.maximum(k - 1, 0)[None, :], 1), 0.0)
        z = tl.randn(seed, path[:, None] * (1 << LEVELS) + (1 << level) + k[None, :])
        middle = 0.5 * (begins + ends) + z * tl.sqrt(horizon / (4 << level))
        ends = tl.reshape(tl.join(middle, ends), (BP, 2 << level))
    N: tl.constexpr = 1 << LEVELS
    t = (tl.arange(0, N) + 1).to(tl.float32) * (horizon / N)
    logs = (rate - 0.5 * sigma * sigma) * t[None, :] + sigma * ends
    high = tl.maximum(tl.max(logs, 1), 0.0)
    last = tl.sum(tl.where((tl.arange(0, N) == N - 1)[None, :], logs, 0.0), 1)
    tl.store(out_ptr + path, spot * (tl.exp(high) - tl.exp(last)), mask=path < PATHS)


@case
def tide_of_paths_bridged_from_their_ends(paths=60_000, levels=6, bp=16):
    out, seed = zeros(paths, dtype="float32"), 1234
    launched = run(bridges, (cdiv(paths, bp),), (out, paths, seed, 100.0, 0.02, 0.3, 1.5), out, LEVELS=levels, BP=bp, num_warps=2)

    def reference():
        n = 1 << levels
        words = philox(seed, torch.arange(paths * n, device="cuda"))
        u = [torch.where(w >= 1 << 31, (1 << 32) - 1 - w, w).double() * 4.6566127342e-10 for w in words[:2]]
        z = (torch.sqrt(-2 * u[0].clamp(min=1e-7).log()) * torch.cos(2 * math.pi * u[1])).reshape(paths, n)
        ends = z[:, :1] * 1.5**0.5
        for level in range(levels):
            k = 1 << level
            begins = torch.cat([torch.zeros_like(ends[:, :1]), ends[:, :-1]], 1)
            middle = 0.5 * (begins + ends) + z[:, k : 2 * k] * (1.5 / (4 * k)) ** 0.5
            ends = torch.stack([middle, ends], 2).reshape(paths, 2 * k)
        t = (torch.arange(n, device="cuda") + 1).double() * (1.5 / n)
        logs = (0.02 - 0.045) * t + 0.3 * ends
        return 100 * (logs.amax(1).clamp(min=0).exp() - logs[:, -1].exp())

    return against(launched, reference)


@triton.jit
def every_fourth_with_sinks(
    q_ptr, k_ptr, v_ptr, o_ptr, T, scale, cap, GROUP: tl.constexpr, STEP: tl.constexpr, WINDOW: tl.constexpr, SINKS: tl.constexpr, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr
):
    # A query sees every STEP-th token before it, WINDOW of them, and the first tokens of all; scores are capped.
    tile, residue, head = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    kv = head // GROUP
    d = tl.arange(0, D)
    m = tile * BM + tl.arange(0, BM)
    q_at = residue + STEP * m
    q = tl.load(q_ptr + (head * T + q_at)[:, None] * D + d[None, :], mask=(q_at < T)[:, None], other=0.0)
    first = tl.arange(0, 16)
    sink_k = tl.load(k_ptr + (kv * T + first)[None, :] * D + d[:, None])
    sink_v = tl.load(v_ptr + (kv * T + first)[:, None] * D + d[None, :])
    few = tl.dot(q, sink_k) * scale
    few = cap * (2.0 / (1.0 + tl.exp(-2.0 * few / cap)) - 1.0)
    behind = q_at[:, None] - first[None, :]
    listed = (behind % STEP == 0) & (behind // STEP < WINDOW)
    few = tl.where((first < SINKS)[None, :] & (behind >= 0) & (listed == 0), few, float("-inf"))
    high = tl.maximum(tl.max(few, 1), -1e6)
    few = tl.exp(few - high[:, None])
    total = tl.sum(few, 1)
    acc = tl.dot(few.to(tl.float16), sink_v)
    begin = tl.maximum(tile * BM - WINDOW + 1, 0) // BN * BN
    for n0 in range(begin, (tile + 1) * BM, BN):
        n = n0 + tl.arange(0, BN)
        k_at = residue + STEP * n
        k = tl.load(k_ptr + (kv * T + k_at)[None, :] * D + d[:, None], mask=(k_at < T)[None, :], other=0.0)
        s = tl.dot(q, k) * scale
        s = cap * (2.0 / (1.0 + tl.exp(-2.0 * s / cap)) - 1.0)
        back = m[:, None] - n[None, :]
        s = tl.where((back >= 0) & (back < WINDOW), s, float("-inf"))
        new = tl.maximum(high, tl.max(s, 1))
        p = tl.exp(s - new[:, None])
        fade = tl.exp(high - new)
        total = total * fade + tl.sum(p, 1)
        v = tl.load(v_ptr + (kv * T + k_at)[:, None] * D + d[None, :], mask=(k_at < T)[:, None], other=0.0)
        acc = tl.dot(p.to(tl.float16), v, acc * fade[:, None])
        high = new
    tl.store(o_ptr + (head * T + q_at)[:, None] * D + d[None, :], (acc / total[:, None]).to(tl.float16), mask=(q_at < T)[:, None])


@case
def tide_of_every_fourth_key_with_sinks_and_a_cap(t=4100, heads=16, group=4, step=4, window=200, d=64, bm=64, bn=64):
    q, k, v, o = rand(heads, t, d), rand(heads // group, t, d), rand(heads // group, t, d), zeros(heads, t, d)
    args = q, k, v, o, t, d**-0.5, 15.0
    grid = cdiv(cdiv(t, step), bm), step, heads
    launched = run(every_fourth_with_sinks, grid, args, o, GROUP=group, STEP=step, WINDOW=window, SINKS=5, D=d, BM=bm, BN=bn, num_warps=4, num_stages=2)

    def reference():
        i = torch.arange(t, device="cuda")
        back = i[:, None] - i[None, :]
        seen = (back >= 0) & (((back % step == 0) & (back // step < window)) | (i < 5)[None, :])
        outs = []
        for h in range(heads):
            s = 15 * torch.tanh(q[h].float() @ k[h // group].float().t() * d**-0.5 / 15)
            outs.append(s.masked_fill(~seen, -math.inf).softmax(1) @ v[h // group].float())
        return torch.stack(outs)

    return against(launched, reference)


@triton.jit
def halves_of_bytes(byte):
    return (byte >> 4).to(tl.int8), ((byte << 4).to(tl.int8) >> 4).to(tl.int8)


@triton.jit
def correlate_antennas(x_ptr, out_ptr, ANTENNAS, TIMES, BA: tl.constexpr, BT: tl.constexpr):
    # Samples of two signed nibbles a byte, of all pairs of antennas of a channel: four dots of bytes in whole numbers; one triangle.
    pair, channel = tl.program_id(0), tl.program_id(1)
    row = 0
    while (row + 1) * (row + 2) // 2 <= pair:
        row += 1
    col = pair - row * (row + 1) // 2
    a, b, t = row * BA + tl.arange(0, BA), col * BA + tl.arange(0, BA), tl.arange(0, BT)
    base = x_ptr + channel.to(tl.int64) * TIMES * ANTENNAS
    rr, ii, ri, ir = tl.zeros((BA, BA), tl.int32), tl.zeros((BA, BA), tl.int32), tl.zeros((BA, BA), tl.int32), tl.zeros((BA, BA), tl.int32)
    for t0 in range(0, TIMES, BT):
        x = tl.load(base + (t0 + t)[None, :] * ANTENNAS + a[:, None], mask=(t0 + t < TIMES)[None, :] & (a < ANTENNAS)[:, None], other=0)
        y = tl.load(base + (t0 + t)[:, None] * ANTENNAS + b[None, :], mask=(t0 + t < TIMES)[:, None] & (b < ANTENNAS)[None, :], other=0)
        xr, xi = halves_of_bytes(x)
        yr, yi = halves_of_bytes(y)
        rr = tl.dot(xr, yr, rr, out_dtype=tl.int32)
        ii = tl.dot(xi, yi, ii, out_dtype=tl.int32)
        ri = tl.dot(xr, yi, ri, out_dtype=tl.int32)
        ir = tl.dot(xi, yr, ir, out_dtype=tl.int32)
    at = out_ptr + ((channel * ANTENNAS + a[:, None]) * ANTENNAS + b[None, :]) * 2
    ok = (a < ANTENNAS)[:, None] & (b < ANTENNAS)[None, :] & (a[:, None] >= b[None, :])
    tl.store(at, rr + ii, mask=ok)
    tl.store(at + 1, ir - ri, mask=ok)


@case
def tide_of_the_sky_in_nibbles_between_all_antennas(antennas=176, channels=72, times=1000, ba=64, bt=64):
    x = ints(-128, 128, channels, times, antennas, dtype="int8")
    out = zeros(channels, antennas, antennas, 2, dtype="int32")
    rows = cdiv(antennas, ba)
    launched = run(correlate_antennas, (rows * (rows + 1) // 2, channels), (x, out, antennas, times), out, BA=ba, BT=bt, num_warps=4, num_stages=4)

    def reference():
        high, low = (x >> 4).float(), ((x << 4) >> 4).float()
        z = torch.complex(high, low).to(torch.complex128)
        return torch.view_as_real(torch.tril(torch.einsum("cta,ctb->cab", z, z.conj())))

    return against(launched, reference)


@triton.jit
def arrive(old, a, b, c, s):
    # Of three sorted arrivals, the time at which a front passes a node of slowness s.
    t = a + s
    two = 0.5 * (a + b + tl.sqrt(tl.maximum(2.0 * s * s - (a - b) * (a - b), 0.0)))
    t = tl.where(t > b, two, t)
    mean = a + b + c
    under = mean * mean - 3.0 * (a * a + b * b + c * c - s * s)
    t = tl.where(t > c, (mean + tl.sqrt(tl.maximum(under, 0.0))) / 3.0, t)
    return tl.minimum(old, t)


@triton.jit
def fronts(time_ptr, slow_ptr, out_ptr, NX, NY, NZ, BY: tl.constexpr, BX: tl.constexpr):
    # One step of first arrivals in a volume: the earlier neighbor of each axis, three of them sorted.
    z = tl.program_id(2)
    y, x = tl.program_id(1) * BY + tl.arange(0, BY)[:, None], tl.program_id(0) * BX + tl.arange(0, BX)[None, :]
    inside = (y < NY) & (x < NX)
    at = (z * NY + y) * NX + x
    far: tl.constexpr = 1000.0
    old = tl.load(time_ptr + at, mask=inside, other=far)
    tx = tl.minimum(tl.load(time_ptr + at - 1, mask=inside & (x > 0), other=far), tl.load(time_ptr + at + 1, mask=inside & (x + 1 < NX), other=far))
    ty = tl.minimum(tl.load(time_ptr + at - NX, mask=inside & (y > 0), other=far), tl.load(time_ptr + at + NX, mask=inside & (y + 1 < NY), other=far))
    tz = tl.minimum(tl.load(time_ptr + at - NY * NX, mask=inside & (z > 0), other=far), tl.load(time_ptr + at + NY * NX, mask=inside & (z + 1 < NZ), other=far))
    low, high = tl.minimum(tx, ty), tl.maximum(tx, ty)
    a, c = tl.minimum(low, tz), tl.maximum(high, tz)
    b = tl.maximum(low, tl.minimum(high, tz))
    tl.store(out_ptr + at, arrive(old, a, b, c, tl.load(slow_ptr + at, mask=inside, other=1.0)), mask=inside)


@case
def tide_of_first_arrivals_in_a_volume(nz=90, ny=250, nx=300):
    time, slow, out = uniform(nz, ny, nx) * 4 + 1, uniform(nz, ny, nx) + 0.5, zeros(nz, ny, nx, dtype="float32")
    launched = run(fronts, (cdiv(nx, 64), cdiv(ny, 4), nz), (time, slow, out, nx, ny, nz), out, BY=4, BX=64, num_warps=2)

    def reference():
        t, s = torch.nn.functional.pad(time.double(), (1, 1, 1, 1, 1, 1), value=1000.0), slow.double()
        pairs = [torch.minimum(*(t[1 + i * p : nz + 1 + i * p, 1 + j * p : ny + 1 + j * p, 1 + k * p : nx + 1 + k * p] for p in (-1, 1))) for i, j, k in ((1, 0, 0), (0, 1, 0), (0, 0, 1))]
        a, b, c = torch.stack(pairs).sort(0)[0]
        new = a + s
        new = torch.where(new > b, (a + b + (2 * s * s - (a - b) ** 2).clamp(min=0).sqrt()) / 2, new)
        m = a + b + c
        new = torch.where(new > c, (m + (m * m - 3 * (a * a + b * b + c * c - s * s)).clamp(min=0).sqrt()) / 3, new)
        return torch.minimum(time.double(), new)

    return against(launched, reference)


@triton.jit
def filter_then_filter(a0, b0, c0, e0, j0, a1, b1, c1, e1, j1):
    # Two stretches of a filter of one state become one.
    d = 1.0 / (1.0 + c0 * j1)
    return a1 * d * a0, a1 * d * (b0 + c0 * e1) + b1, a1 * d * c0 * a1 + c1, a0 * d * (e1 - j1 * b0) + e0, a0 * d * j1 * a0 + j0


@triton.jit
def filtered_by_scans(y_ptr, mean_ptr, var_ptr, T, f, q, r, BT: tl.constexpr):
    # Kalman's filter of a noisy level along rows, as one scan of five numbers; what is not a number was not measured.
    row = tl.program_id(0)
    t = tl.arange(0, BT)
    y = tl.load(y_ptr + row * T + t, mask=t < T, other=float("nan"))
    seen = y == y
    z = tl.where(seen, y, 0.0)
    s = q + r
    gain = tl.where(seen, q / s, 0.0)
    first = t == 0
    gain0 = tl.where(seen, 1.0 / (1.0 + r), 0.0)
    a = tl.where(first, 0.0, (1.0 - gain) * f)
    b = tl.where(first, gain0 * z, gain * z)
    c = tl.where(first, 1.0 - gain0, (1.0 - gain) * q)
    e = tl.where(first | (seen == 0), 0.0, f * z / s)
    j = tl.where(first | (seen == 0), 0.0, f * f / s)
    _, mean, var, _, _ = tl.associative_scan((a, b, c, e, j), 0, filter_then_filter)
    tl.store(mean_ptr + row * T + t, mean, mask=t < T)
    tl.store(var_ptr + row * T + t, var, mask=t < T)


@case
def tide_of_levels_filtered_by_scans_of_five(rows=3000, t=1000):
    y = torch.where(uniform(rows, t) < 0.2, math.nan, (f32(rows, t) * 0.2).cumsum(1) + f32(rows, t))
    mean, var = zeros(rows, t, dtype="float32"), zeros(rows, t, dtype="float32")
    launched = run(filtered_by_scans, (rows,), (y, mean, var, t, 0.98, 0.05, 1.0), (mean, var), BT=triton.next_power_of_2(t), num_warps=4)

    def reference():
        m, p, means, variances = torch.zeros(rows, dtype=torch.float64, device="cuda"), torch.ones(rows, dtype=torch.float64, device="cuda"), [], []
        for i in range(t):
            if i:
                m, p = 0.98 * m, 0.98**2 * p + 0.05
            z = y[:, i].double()
            g = torch.where(z.isnan(), 0, p / (p + 1.0))
            m, p = m + g * (z.nan_to_num() - m), (1 - g) * p
            means.append(m)
            variances.append(p)
        return torch.stack(means, 1), torch.stack(variances, 1)

    return against(launched, reference)
