"""Linear algebra: factorizations and solves in tiles, batches of small matrices, updates, and products of several forms."""

import torch
import triton
import triton.language as tl

from .common import PROGRAMS, case, cdiv, cleared, f8, f32, far, rand, run, viewed, zeros


def allocate():
    """Descriptors that kernels make need memory."""
    triton.set_allocator(lambda size, align, stream: torch.empty(size, dtype=torch.int8, device="cuda"))


@triton.jit
def trsm_lower_tile(L, B, X, ldl, ldb, batch_l, batch_b, NRHS, N: tl.constexpr, BN: tl.constexpr):
    # Forward substitution: rows leave the tile by a masked sum.
    pid = tl.program_id(0)
    col = tl.program_id(1) * BN + tl.arange(0, BN)
    r = tl.arange(0, N)
    b = tl.load(B + pid * batch_b + r[:, None] * ldb + col[None, :], mask=(col < NRHS)[None, :], other=0.0)
    for i in range(N):
        diag = tl.load(L + pid * batch_l + i * ldl + i)
        row = tl.sum(tl.where((r == i)[:, None], b, 0.0), axis=0) / diag
        below = tl.load(L + pid * batch_l + r * ldl + i, mask=r > i, other=0.0)
        b = tl.where((r == i)[:, None], row[None, :], b - below[:, None] * row[None, :])
    tl.store(X + pid * batch_b + r[:, None] * ldb + col[None, :], b, mask=(col < NRHS)[None, :])


@case
def trsm_forward_substitution():
    batch, n, rhs = 64, 64, 300
    low = torch.tril(f32(batch, n, n) * 0.1, -1) + 2 * torch.eye(n, device="cuda")
    b, x = f32(batch, n, rhs), zeros(batch, n, rhs, dtype="float32")
    return run(trsm_lower_tile, (batch, cdiv(rhs, 64)), (low, b, x, n, rhs, n * n, n * rhs, rhs), x, N=n, BN=64, num_warps=4)


@triton.jit
def cholesky_in_tile(A, L, N: tl.constexpr):
    pid = tl.program_id(0)
    i, j = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    a = tl.load(A + pid * N * N + i * N + j)
    for k in range(N):
        pivot = tl.sqrt(tl.sum(tl.sum(tl.where((i == k) & (j == k), a, 0.0), 1), 0))
        c = tl.sum(tl.where(j == k, a, 0.0), 1) / pivot
        c = tl.where(tl.arange(0, N) >= k, c, 0.0)
        ct = tl.trans(c[:, None])
        a = tl.where(j == k, c[:, None], tl.where(j > k, a - c[:, None] * ct, a))
    tl.store(L + pid * N * N + i * N + j, tl.where(i >= j, a, 0.0))


@case
def cholesky_batched_32():
    batch, n = 4096, 32
    x = f32(batch, n, n)
    a = x @ x.transpose(1, 2) + n * torch.eye(n, device="cuda")
    out = zeros(batch, n, n, dtype="float32")
    return run(cholesky_in_tile, (batch,), (a.contiguous(), out), out, N=n, num_warps=1)


@triton.jit
def qr_panel(A, V, TAU, R, M, BM: tl.constexpr, BN: tl.constexpr):
    # A panel of Householder reflections, held in registers.
    pid = tl.program_id(0)
    r, c = tl.arange(0, BM), tl.arange(0, BN)
    a = tl.load(A + pid * M * BN + r[:, None] * BN + c[None, :], mask=(r < M)[:, None], other=0.0)
    for k in tl.static_range(BN):
        x = tl.sum(tl.where((c == k)[None, :], a, 0.0), 1)
        x = tl.where(r >= k, x, 0.0)
        norm = tl.sqrt(tl.sum(x * x))
        head = tl.sum(tl.where(r == k, x, 0.0))
        alpha = tl.where(head > 0, -norm, norm)
        v = tl.where(r == k, x - alpha, x)
        tau = 2.0 / (tl.sum(v * v) + 1e-20)
        w = tl.sum(v[:, None] * a, 0) * tau
        a -= v[:, None] * w[None, :]
        tl.store(V + pid * M * BN + r * BN + k, v, mask=r < M)
        tl.store(TAU + pid * BN + k, tau)
    tl.store(R + pid * BN * BN + r[:, None] * BN + c[None, :], a, mask=(r[:, None] <= c[None, :]) & (r < BN)[:, None])


@case
def householder_qr_panels():
    batch, m, n = 512, 200, 16
    v, tau, r = zeros(batch, m, n, dtype="float32"), zeros(batch, n, dtype="float32"), zeros(batch, n, n, dtype="float32")
    return run(qr_panel, (batch,), (f32(batch, m, n), v, tau, r, m), (v, tau, r), BM=256, BN=n, num_warps=8)


@triton.jit
def jacobi_sweeps(A, W, B, SWEEPS: tl.constexpr, N: tl.constexpr, BB: tl.constexpr):
    # Eigenvalues of small symmetric matrices: two rows, then two columns are rotated, pair by pair.
    at = tl.program_id(0) * BB + tl.arange(0, BB)
    i, j = tl.arange(0, N)[None, :, None], tl.arange(0, N)[None, None, :]
    live = (at < B)[:, None, None]
    a = tl.load(A + at[:, None, None] * N * N + i * N + j, mask=live, other=0.0)
    for _ in range(SWEEPS):
        for p in range(N - 1):
            for q in range(p + 1, N):
                rp, rq = tl.sum(tl.where(i == p, a, 0.0), 1), tl.sum(tl.where(i == q, a, 0.0), 1)
                n = tl.arange(0, N)[None, :]
                app = tl.sum(tl.where(n == p, rp, 0.0), 1)
                apq = tl.sum(tl.where(n == q, rp, 0.0), 1)
                aqq = tl.sum(tl.where(n == q, rq, 0.0), 1)
                safe = tl.where(tl.abs(apq) < 1e-9, 1.0, apq)
                theta = (aqq - app) / (2.0 * safe)
                t = tl.where(theta >= 0, 1.0, -1.0) / (tl.abs(theta) + tl.sqrt(theta * theta + 1.0))
                t = tl.where(tl.abs(apq) < 1e-9, 0.0, t)
                c = 1.0 / tl.sqrt(t * t + 1.0)
                s = (t * c)[:, None]
                c = c[:, None]
                a = tl.where(i == p, (c * rp - s * rq)[:, None, :], tl.where(i == q, (s * rp + c * rq)[:, None, :], a))
                cp, cq = tl.sum(tl.where(j == p, a, 0.0), 2), tl.sum(tl.where(j == q, a, 0.0), 2)
                a = tl.where(j == p, (c * cp - s * cq)[:, :, None], tl.where(j == q, (s * cp + c * cq)[:, :, None], a))
    w = tl.sum(tl.where(i == j, a, 0.0), 2)
    tl.store(W + at[:, None] * N + tl.arange(0, N)[None, :], tl.sort(w), mask=(at < B)[:, None])


@case
def jacobi_eigenvalues_8x8():
    batch, n = 5000, 8
    a = f32(batch, n, n)
    w = zeros(batch, n, dtype="float32")
    return run(jacobi_sweeps, (cdiv(batch, 4),), ((a + a.transpose(1, 2)).contiguous(), w, batch), w, SWEEPS=4, N=n, BB=4, num_warps=4)


@triton.jit
def power_iteration(A, V, LAMBDA, ITERS, N: tl.constexpr):
    pid = tl.program_id(0)
    r = tl.arange(0, N)
    a = tl.load(A + pid * N * N + r[:, None] * N + r[None, :])
    v = tl.full((N,), 1.0, tl.float32) / tl.sqrt(N * 1.0)
    lam = 0.0
    for _ in range(ITERS):
        y = tl.sum(a.to(tl.float32) * v[None, :], axis=1)
        lam = tl.sum(y * v)
        v = y * tl.rsqrt(tl.sum(y * y) + 1e-12)
    tl.store(V + pid * N + r, v)
    tl.store(LAMBDA + pid, lam)


@case
def power_iteration_128():
    batch, n = 264, 128
    v, lam = zeros(batch, n, dtype="float32"), zeros(batch, dtype="float32")
    a = (torch.rand(batch, n, n, device="cuda") + 0.1).half()
    return run(power_iteration, (batch,), (a, v, lam, 12), (v, lam), N=n, num_warps=8)


@triton.jit
def small_products_by_sums(A, B, C, BATCH, S: tl.constexpr, BB: tl.constexpr):
    # No dots: a tile of four dimensions is summed over the third.
    b = tl.program_id(0) * BB + tl.arange(0, BB)
    x = tl.arange(0, S)
    live = (b < BATCH)[:, None, None]
    at = b[:, None, None] * (S * S) + x[None, :, None] * S + x[None, None, :]
    l, r = tl.load(A + at, mask=live, other=0.0), tl.load(B + at, mask=live, other=0.0)
    c = tl.sum(l[:, :, :, None] * r[:, None, :, :], axis=2)
    tl.store(C + at, c, mask=live)


@case
def matmul_8x8_by_sums():
    batch, s = 100001, 8
    c = zeros(batch, s, s, dtype="float32")
    return run(small_products_by_sums, (cdiv(batch, 8),), (f32(batch, s, s), f32(batch, s, s), c, batch), c, S=s, BB=8, num_warps=4)


@triton.jit
def batched_dot_3d(A, B, C, alpha, BATCH, BB: tl.constexpr, S: tl.constexpr):
    b = (tl.program_id(0) * BB + tl.arange(0, BB))[:, None, None]
    i, j = tl.arange(0, S)[None, :, None], tl.arange(0, S)[None, None, :]
    at = b * S * S + i * S + j
    l = tl.load(A + at, mask=b < BATCH, other=0)
    r = tl.load(B + at, mask=b < BATCH, other=0)
    tl.store(C + at, (tl.dot(l, tl.permute(r, (0, 2, 1))) * alpha).to(C.dtype.element_ty), mask=b < BATCH)


@case
def matmul_32x32_dot_of_batches():
    batch, s = 16386, 32
    c = zeros(batch, s, s, dtype="bfloat16")
    args = rand(batch, s, s, dtype="bfloat16"), rand(batch, s, s, dtype="bfloat16"), c, 0.5, batch
    return run(batched_dot_3d, (cdiv(batch, 4),), args, c, BB=4, S=s, num_warps=4)


@triton.jit
def symm_lower(A, B, C, M, N, lda, BM: tl.constexpr, BN: tl.constexpr):
    # Only the lower triangle of A holds values: blocks above it are read transposed, the diagonal one twice.
    pm, pn = tl.program_id(0), tl.program_id(1)
    m, n, k0 = pm * BM + tl.arange(0, BM), pn * BN + tl.arange(0, BN), tl.arange(0, BM)
    acc = tl.zeros((BM, BN), tl.float32)
    for kb in range(0, tl.cdiv(M, BM)):
        k = kb * BM + k0
        inside = (m < M)[:, None] & (k < M)[None, :]
        if kb < pm:
            a = tl.load(A + m[:, None] * lda + k[None, :], mask=inside, other=0.0)
        elif kb > pm:
            a = tl.load(A + k[None, :] * lda + m[:, None], mask=inside, other=0.0)
        else:
            lower = tl.load(A + m[:, None] * lda + k[None, :], mask=inside & (m[:, None] >= k[None, :]), other=0.0)
            upper = tl.load(A + k[None, :] * lda + m[:, None], mask=inside & (m[:, None] < k[None, :]), other=0.0)
            a = lower + upper
        b = tl.load(B + k[:, None] * N + n[None, :], mask=(k < M)[:, None] & (n < N)[None, :], other=0.0)
        acc += tl.dot(a, b)
    tl.store(C + m[:, None] * N + n[None, :], acc.to(tl.float16), mask=(m < M)[:, None] & (n < N)[None, :])


@case
def symm_lower_half():
    m, n = 2000, 1024
    c = zeros(m, n)
    args = rand(m, m), rand(m, n), c, m, n, m
    return run(symm_lower, (cdiv(m, 64), cdiv(n, 128)), args, c, BM=64, BN=128, num_warps=4, num_stages=3)


@triton.jit
def rank_k_update(A, U, V, Y, alpha, beta, M, N, sa, su, sv, K: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    m, n = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    mask = (m[:, None] < M) & (n[None, :] < N)
    acc = beta * tl.load(A + m[:, None] * sa + n[None, :], mask=mask)
    for k in tl.static_range(K):
        u = tl.load(U + m * su + k, mask=m < M)
        v = tl.load(V + k * sv + n, mask=n < N)
        acc += alpha * u[:, None] * v[None, :]
    tl.store(Y + m[:, None] * sa + n[None, :], acc, mask=mask)


@case
def ger_rank_3_update():
    m, n, k = 4099, 5000, 3
    y = zeros(m, n, dtype="float32")
    args = f32(m, n), f32(m, 4), f32(k, n), y, 0.5, 0.9, m, n, n, 4, n
    return run(rank_k_update, (cdiv(m, 32), cdiv(n, 128)), args, y, K=k, BM=32, BN=128, num_warps=4)


@triton.jit
def kronecker(A, B, C, P: tl.constexpr, Q: tl.constexpr):
    # C[(i, k), (j, l)] = A[i, j] * B[k, l], made by a reshape of four dimensions.
    pid = tl.program_id(0)
    p, q = tl.arange(0, P), tl.arange(0, Q)
    a = tl.load(A + pid * P * P + p[:, None] * P + p[None, :])
    b = tl.load(B + pid * Q * Q + q[:, None] * Q + q[None, :])
    c = a[:, None, :, None] * b[None, :, None, :]
    c = tl.reshape(c, (P * Q, P * Q))
    r = tl.arange(0, P * Q)
    tl.store(C + pid * P * P * Q * Q + r[:, None] * (P * Q) + r[None, :], c)


@case
def kronecker_8x16():
    batch, p, q = 2048, 8, 16
    c = zeros(batch, p * q, p * q)
    return run(kronecker, (batch,), (rand(batch, p, p), rand(batch, q, q), c), c, P=p, Q=q, num_warps=8)


@triton.jit
def gemv_transposed(A, X, part, M, N, s0, s1, CHUNK, BM: tl.constexpr, BN: tl.constexpr):
    n = tl.program_id(0) * BN + tl.arange(0, BN)
    lo = tl.program_id(1) * CHUNK
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for m0 in range(lo, min(lo + CHUNK, M), BM):
        m = m0 + tl.arange(0, BM)
        a = tl.load(A + m[:, None] * s0 + n[None, :] * s1, mask=(m < M)[:, None] & (n < N)[None, :], other=0.0)
        x = tl.load(X + m, mask=m < M, other=0.0)
        acc += a.to(tl.float32) * x.to(tl.float32)[:, None]
    tl.store(part + tl.program_id(1) * N + n, tl.sum(acc, 0), mask=n < N)


@case
def gemv_transposed_two_stages():
    m, n, parts = 12000, 3000, 12
    part = zeros(parts, n, dtype="float32")
    args = rand(m, n, dtype="bfloat16"), rand(m, dtype="bfloat16"), part, m, n, n, 1, m // parts
    return run(gemv_transposed, (cdiv(n, 128), parts), args, part, BM=8, BN=128, num_warps=4, num_stages=4)


@triton.jit
def gram_atomic(X, G, N, D, PER, BN: tl.constexpr, BD: tl.constexpr):
    d = tl.arange(0, BD)
    start = tl.program_id(0) * PER
    acc = tl.zeros((BD, BD), tl.float32)
    for s in range(start, start + PER, BN):
        n = s + tl.arange(0, BN)
        x = tl.load(X + n[:, None] * D + d[None, :], mask=(n < N)[:, None] & (d < D)[None, :], other=0.0)
        acc = tl.dot(tl.trans(x), x, acc, input_precision="tf32x3")
    tl.atomic_add(G + d[:, None] * D + d[None, :], acc, mask=(d < D)[:, None] & (d < D)[None, :])


@case
def gram_of_tall_matrix():
    n, d = 200000, 48
    g = zeros(d, d, dtype="float32")
    return cleared(run(gram_atomic, (264,), (f32(n, d), g, n, d, 768), g, BN=64, BD=64, num_warps=4, num_stages=2), g)


@triton.jit
def matrix_exponential(A, E, S: tl.constexpr, ORDER: tl.constexpr, SQUARE: tl.constexpr):
    pid = tl.program_id(0)
    r = tl.arange(0, S)
    at = pid * S * S + r[:, None] * S + r[None, :]
    eye = tl.where(r[:, None] == r[None, :], 1.0, 0.0)
    a = tl.load(A + at) / (1 << SQUARE)
    e = eye + a / ORDER
    for i in tl.static_range(1, ORDER):
        e = eye + tl.dot(a, e, input_precision="ieee") / (ORDER - i)
    for _ in range(SQUARE):
        e = tl.dot(e, e, input_precision="ieee")
    tl.store(E + at, e)


@case
def expm_by_squaring_16():
    batch, s = 8192, 16
    e = zeros(batch, s, s, dtype="float32")
    return run(matrix_exponential, (batch,), (f32(batch, s, s) * 0.3, e), e, S=s, ORDER=6, SQUARE=5, num_warps=1)


@triton.jit
def newton_schulz_tile(G, Y, STEPS: tl.constexpr, M: tl.constexpr, N: tl.constexpr):
    # Orthogonalizes whole tiles: the iterations of Muon.
    pid = tl.program_id(0)
    at = pid * M * N + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    g = tl.load(G + at).to(tl.float32)
    x = (g / (tl.sqrt(tl.sum(g * g)) + 1e-7)).to(tl.bfloat16)
    for _ in range(STEPS):
        a = tl.dot(x, tl.trans(x)).to(tl.bfloat16)
        b = (-4.7750 * a.to(tl.float32) + 2.0315 * tl.dot(a, a)).to(tl.bfloat16)
        x = (3.4445 * x.to(tl.float32) + tl.dot(b, x)).to(tl.bfloat16)
    tl.store(Y + at, x)


@case
def newton_schulz_64x128():
    batch, m, n = 792, 64, 128
    y = zeros(batch, m, n, dtype="bfloat16")
    launch, args = run(newton_schulz_tile, (batch,), (rand(batch, m, n, dtype="bfloat16"), y), y, STEPS=5, M=m, N=n, num_warps=4)

    def reference(g, y):
        x = g.float() / (g.float().norm(dim=(1, 2), keepdim=True) + 1e-7)
        for _ in range(5):
            a = x @ x.transpose(1, 2)
            x = 3.4445 * x + (-4.7750 * a + 2.0315 * a @ a) @ x
        return x

    launch.reference = reference
    return launch, args


@triton.jit
def symmetric_polynomial(A, C, M, K, a_coef, b_coef, BM: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr):
    # C = a*A + b*A@A' of a square A: only blocks of the lower triangle work, each writes its mirror image too.
    pid = tl.program_id(0)
    blocks = tl.cdiv(M, BM)
    group = GROUP * blocks
    first = pid // group * GROUP
    rows = min(blocks - first, GROUP)
    pm, pn = first + pid % group % rows, pid % group // rows
    if pm < pn:
        return
    m, n, k = pm * BM + tl.arange(0, BM), pn * BM + tl.arange(0, BM), tl.arange(0, BK)
    acc = tl.zeros((BM, BM), tl.float32)
    for k0 in range(0, K, BK):
        x = tl.load(A + m[:, None] * K + (k0 + k)[None, :])
        y = tl.load(A + n[None, :] * K + (k0 + k)[:, None])
        acc = tl.dot(x, y, acc)
    old = tl.load(A + m[:, None] * K + n[None, :]).to(tl.float32)
    c = (a_coef * old + b_coef * acc).to(tl.bfloat16)
    tl.store(C + m[:, None] * M + n[None, :], c)
    if pm != pn:
        tl.store(C + n[:, None] * M + m[None, :], c.T)


@case
def muon_symmetric_product():
    m = 2048
    c = zeros(m, m, dtype="bfloat16")
    a = rand(m, m, dtype="bfloat16")
    args = (a + a.T).contiguous(), c, m, m, -4.775, 2.0315
    return run(symmetric_polynomial, ((m // 128) ** 2,), args, c, BM=128, BK=64, GROUP=8, num_warps=8, num_stages=3)


@triton.jit
def stream_k(A, B, C, M, N, K, TOTAL, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Each program takes an equal run of (tile, step) pairs; parts of tiles are added to C.
    pid, programs = tl.program_id(0), tl.num_programs(0)
    steps = tl.cdiv(K, BK)
    at = (pid * TOTAL) // programs
    end = ((pid + 1) * TOTAL) // programs
    while at < end:
        tile = at // steps
        first = at % steps
        last = tl.minimum(steps, first + end - at)
        pm, pn = tile // tl.cdiv(N, BN), tile % tl.cdiv(N, BN)
        m, n = pm * BM + tl.arange(0, BM), pn * BN + tl.arange(0, BN)
        acc = tl.zeros((BM, BN), tl.float32)
        for step in range(first, last):
            k = step * BK + tl.arange(0, BK)
            a = tl.load(A + m[:, None] * K + k[None, :], mask=(m < M)[:, None], other=0.0)
            b = tl.load(B + k[:, None] * N + n[None, :], mask=(n < N)[None, :], other=0.0)
            acc = tl.dot(a, b, acc)
        mask = (m < M)[:, None] & (n < N)[None, :]
        if last - first == steps:
            tl.store(C + m[:, None] * N + n[None, :], acc, mask=mask)
        else:
            tl.atomic_add(C + m[:, None] * N + n[None, :], acc, mask=mask, sem="relaxed")
        at += last - first


@case
def gemm_stream_k():
    m, n, k, bm, bn, bk = 1500, 1536, 4096, 128, 128, 32
    c = zeros(m, n, dtype="float32")
    total = cdiv(m, bm) * cdiv(n, bn) * cdiv(k, bk)
    args = rand(m, k), rand(k, n), c, m, n, k, total
    return cleared(run(stream_k, (PROGRAMS,), args, c, BM=bm, BN=bn, BK=bk, num_warps=8, num_stages=4), c)


@triton.jit
def gemm_rows_to_int8(A, B, bias, Q, S, M, K, BM: tl.constexpr, N: tl.constexpr, BK: tl.constexpr):
    # Blocks hold whole rows of the result, which leave as bytes with a scale for each row.
    m, n, k = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, N), tl.arange(0, BK)
    pa = A + m[:, None] * K + k[None, :]
    pb = B + k[:, None] * N + n[None, :]
    acc = tl.zeros((BM, N), tl.float32)
    for _ in range(0, tl.cdiv(K, BK)):
        acc += tl.dot(tl.load(pa, mask=(m < M)[:, None], other=0.0), tl.load(pb))
        pa += BK
        pb += BK * N
    acc += tl.load(bias + n)[None, :]
    acc = acc * 0.5 * (1.0 + tl.erf(acc * 0.70710678))
    scale = tl.maximum(tl.max(tl.abs(acc), 1), 1e-6) / 127.0
    q = tl.floor(acc / scale[:, None] + 0.5)
    tl.store(Q + m[:, None] * N + n[None, :], q.to(tl.int8), mask=(m < M)[:, None])
    tl.store(S + m, scale, mask=m < M)


@case
def gemm_gelu_rows_to_int8():
    m, n, k = 9000, 256, 1024
    q, s = zeros(m, n, dtype="int8"), zeros(m, dtype="float32")
    args = rand(m, k), rand(k, n), f32(n), q, s, m, k
    launched = run(gemm_rows_to_int8, (cdiv(m, 64),), args, (q, s), BM=64, N=n, BK=64, num_warps=8, num_stages=3)
    return viewed(launched, lambda outs: (far(outs[0]), outs[1]))


@triton.jit
def nearest_code(X, CODES, NORMS, IDX, DIST, N, NC, D: tl.constexpr, BM: tl.constexpr, BC: tl.constexpr):
    # The product is only seen through the argmin of its rows.
    m, d = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, D)
    x = tl.load(X + m[:, None] * D + d[None, :], mask=(m < N)[:, None], other=0.0)
    best = tl.full((BM,), float("inf"), tl.float32)
    which = tl.zeros((BM,), tl.int32)
    for c0 in range(0, NC, BC):
        c = c0 + tl.arange(0, BC)
        y = tl.load(CODES + c[None, :] * D + d[:, None], mask=(c < NC)[None, :], other=0.0)
        dist = tl.load(NORMS + c, mask=c < NC, other=float("inf"))[None, :] - 2.0 * tl.dot(x, y)
        low, at = tl.min(dist, 1, return_indices=True)
        which = tl.where(low < best, c0 + at, which)
        best = tl.minimum(best, low)
    tl.store(IDX + m, which.to(tl.int64), mask=m < N)
    tl.store(DIST + m, best, mask=m < N)


@case
def gemm_argmin_of_codes():
    n, nc, d = 32768, 1000, 64
    x, codes = rand(n, d), rand(nc, d)
    idx, dist = zeros(n, dtype="int64"), zeros(n, dtype="float32")
    norms = (codes.float() ** 2).sum(1)
    return run(nearest_code, (cdiv(n, 128),), (x, codes, norms, idx, dist, n, nc), dist, D=d, BM=128, BC=64, num_warps=4, num_stages=3)


@triton.jit
def gemm_block_pointers_nt(A, B, C, R, M, N, K, sam, sak, sbn, sbk, scm, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    pm, pn = tl.program_id(1), tl.program_id(0)
    a = tl.make_block_ptr(A, (M, K), (sam, sak), (pm * BM, 0), (BM, BK), (1, 0))
    b = tl.make_block_ptr(B, (K, N), (sbk, sbn), (0, pn * BN), (BK, BN), (0, 1))
    acc = tl.zeros((BM, BN), tl.float32)
    for _ in range(0, K, BK):
        acc += tl.dot(tl.load(a, boundary_check=(0, 1), padding_option="zero"), tl.load(b, boundary_check=(0, 1), padding_option="zero"))
        a, b = tl.advance(a, (0, BK)), tl.advance(b, (BK, 0))
    r = tl.make_block_ptr(R, (M, N), (scm, 1), (pm * BM, pn * BN), (BM, BN), (1, 0))
    c = tl.make_block_ptr(C, (M, N), (scm, 1), (pm * BM, pn * BN), (BM, BN), (1, 0))
    acc += tl.load(r, boundary_check=(0, 1)).to(tl.float32)
    tl.store(c, acc.to(tl.bfloat16), boundary_check=(0, 1))


@case
def gemm_block_pointers_residual():
    m, n, k = 1000, 3000, 2056
    c = zeros(m, n, dtype="bfloat16")
    args = rand(m, k, dtype="bfloat16"), rand(n, k, dtype="bfloat16"), c, rand(m, n, dtype="bfloat16"), m, n, k, k, 1, k, 1, n
    return run(gemm_block_pointers_nt, (cdiv(n, 128), cdiv(m, 64)), args, c, BM=64, BN=128, BK=64, num_warps=4, num_stages=3)


@triton.jit
def gemm_descriptors_persistent(A, B, C, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, NUM: tl.constexpr):
    da = tl.make_tensor_descriptor(A, shape=[M, K], strides=[K, 1], block_shape=[BM, BK])
    db = tl.make_tensor_descriptor(B, shape=[N, K], strides=[K, 1], block_shape=[BN, BK])
    dc = tl.make_tensor_descriptor(C, shape=[M, N], strides=[N, 1], block_shape=[BM, BN])
    columns = tl.cdiv(N, BN)
    for tile in tl.range(tl.program_id(0), tl.cdiv(M, BM) * columns, NUM, flatten=True):
        m, n = tile // columns * BM, tile % columns * BN
        acc = tl.zeros((BM, BN), tl.float32)
        for k in range(0, tl.cdiv(K, BK)):
            acc = tl.dot(da.load([m, k * BK]), db.load([n, k * BK]).T, acc)
        dc.store([m, n], tl.maximum(acc, 0.0).to(C.dtype.element_ty))


@case
def gemm_descriptors_made_inside():
    allocate()
    m, n, k = 2000, 4000, 2048
    c = zeros(m, n)
    args = rand(m, k), rand(n, k), c, m, n, k
    return run(gemm_descriptors_persistent, (PROGRAMS,), args, c, BM=128, BN=128, BK=64, NUM=PROGRAMS, num_warps=8, num_stages=3)


@triton.jit
def gemm_fp8_tn(A, B, C, sa, sb, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # A is stored K x M, as the gradients of weights have it.
    m, n, k = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for k0 in range(0, K, BK):
        a = tl.load(A + (k0 + k)[:, None] * M + m[None, :])
        b = tl.load(B + (k0 + k)[:, None] * N + n[None, :])
        acc += tl.dot(tl.trans(a), b, out_dtype=tl.float32)
    acc *= tl.load(sa) * tl.load(sb)
    tl.store(C + m[:, None] * N + n[None, :], acc.to(tl.bfloat16))


@case
def gemm_fp8_transposed_a():
    m, n, k = 1024, 1536, 4096
    c = zeros(m, n, dtype="bfloat16")
    args = f8(k, m), f8(k, n), c, f32(1).abs(), f32(1).abs(), m, n, k
    return run(gemm_fp8_tn, (m // 128, n // 128), args, c, BM=128, BN=128, BK=64, num_warps=8, num_stages=3)
