"""Products and attention with the parameters that autotuners try, timed one by one: compiled by Triton, and by ttopt.

    python bench/gpu/sweeps.py [--only REGEX] [--shares N] [--json FILE] [--keep FOLDER]

Needs a GPU, PyTorch with its Triton, and this project's wheel (`./dev wheel`). An autotuner takes the fastest of these; a user who fixes
one gets that one, and what is chosen for tiles of one shape must not be good for that shape alone. How it is timed and compared: `paired.py`.
"""

import paired
import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def product(A, B, C, M, N, K, am, ak, bk, bn, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr):
    rows, columns = tl.cdiv(M, BM), tl.cdiv(N, BN)
    pid = tl.program_id(0)
    group = pid // (GROUP * columns)
    height = min(rows - group * GROUP, GROUP)
    row, column = group * GROUP + pid % (GROUP * columns) % height, pid % (GROUP * columns) // height
    m, n, k = (row * BM + tl.arange(0, BM)) % M, (column * BN + tl.arange(0, BN)) % N, tl.arange(0, BK)
    a, b = A + m[:, None] * am + k[None, :] * ak, B + k[:, None] * bk + n[None, :] * bn
    acc = tl.zeros((BM, BN), tl.float32)
    for step in range(0, tl.cdiv(K, BK)):
        left = tl.load(a, mask=k[None, :] < K - step * BK, other=0.0)
        right = tl.load(b, mask=k[:, None] < K - step * BK, other=0.0)
        acc = tl.dot(left, right, acc)
        a += BK * ak
        b += BK * bk
    m, n = row * BM + tl.arange(0, BM), column * BN + tl.arange(0, BN)
    tl.store(C + m[:, None] * N + n[None, :], acc.to(C.dtype.element_ty), mask=(m[:, None] < M) & (n[None, :] < N))


@triton.jit
def product_of_descriptors(a, b, c, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    row, column = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        acc = tl.dot(a.load([row, k]), b.load([column, k]).T, acc)
    c.store([row, column], acc.to(tl.float16))


@triton.jit
def attend(q, K, V, start, low, high, m, l, acc, scale, rows, MASKED: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):
    n, d = tl.arange(0, BN), tl.arange(0, D)
    for at in tl.range(low, high, BN):
        k = tl.load(K + (at + n)[None, :] * D + d[:, None])
        s = tl.dot(q, k)
        if MASKED:
            s = s * scale + tl.where(rows[:, None] >= (at + n)[None, :], 0, -1.0e6)
            top = tl.maximum(m, tl.max(s, 1))
            s -= top[:, None]
        else:
            top = tl.maximum(m, tl.max(s, 1) * scale)
            s = s * scale - top[:, None]
        p = tl.math.exp2(s)
        shrink = tl.math.exp2(m - top)
        sum = tl.sum(p, 1)
        acc = acc * shrink[:, None]
        v = tl.load(V + (at + n)[:, None] * D + d[None, :])
        acc = tl.dot(p.to(v.dtype), v, acc)
        l = l * shrink + sum
        m = top
    return acc, l, m


@triton.jit
def attention(Q, K, V, O, L, length, scale, CAUSAL: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):
    start, head = tl.program_id(0), tl.program_id(1).to(tl.int64) * length
    rows, d = start * BM + tl.arange(0, BM), tl.arange(0, D)
    q = tl.load(Q + head * D + rows[:, None] * D + d[None, :])
    m = tl.zeros((BM,), tl.float32) - float("inf")
    l = tl.zeros((BM,), tl.float32) + 1.0
    acc = tl.zeros((BM, D), tl.float32)
    scale *= 1.44269504
    K += head * D
    V += head * D
    if CAUSAL:
        acc, l, m = attend(q, K, V, start, 0, start * BM, m, l, acc, scale, rows, False, BN, D)
        acc, l, m = attend(q, K, V, start, start * BM, start * BM + BM, m, l, acc, scale, rows, True, BN, D)
    else:
        acc, l, m = attend(q, K, V, start, 0, length, m, l, acc, scale, rows, False, BN, D)
    tl.store(L + head + rows, m + tl.math.log2(l))
    tl.store(O + head * D + rows[:, None] * D + d[None, :], (acc / l[:, None]).to(O.dtype.element_ty))


@triton.jit
def attention_of_descriptors(q, k, v, o, length, scale, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):
    row, head = tl.program_id(0) * BM, tl.program_id(1) * length
    left = q.load([head + row, 0])
    m = tl.zeros((BM,), tl.float32) - float("inf")
    l = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    scale *= 1.44269504
    for at in range(0, length, BN):
        s = tl.dot(left, k.load([head + at, 0]).T)
        top = tl.maximum(m, tl.max(s, 1) * scale)
        p = tl.math.exp2(s * scale - top[:, None])
        shrink = tl.math.exp2(m - top)
        l = l * shrink + tl.sum(p, 1)
        acc = tl.dot(p.to(tl.float16), v.load([head + at, 0]), acc * shrink[:, None])
        m = top
    o.store([head + row, 0], (acc / l[:, None]).to(tl.float16))


def products():
    shapes = [(128, 256, 64, 3, 8), (64, 256, 32, 4, 4), (128, 128, 32, 4, 4), (128, 64, 32, 4, 4), (64, 128, 32, 4, 4), (128, 32, 32, 4, 4)]
    shapes += [(64, 32, 32, 5, 2), (32, 64, 32, 5, 2), (128, 256, 128, 3, 8), (256, 128, 128, 3, 8), (256, 64, 128, 4, 4), (64, 256, 128, 4, 4)]
    shapes += [(128, 128, 128, 4, 4), (128, 64, 64, 4, 4), (64, 128, 64, 4, 4), (128, 32, 64, 4, 4), (64, 64, 64, 3, 4), (128, 128, 64, 3, 8), (256, 128, 64, 4, 8)]
    kinds = {"f16": (torch.float16, False), "f16_nt": (torch.float16, True), "f8_nt": (torch.float8_e4m3fn, True), "odd_bf16": (torch.bfloat16, False)}
    for kind, (dtype, turned) in kinds.items():
        for bm, bn, bk, stages, warps in shapes:
            if (bm + bn) * bk * stages * dtype.itemsize > 227 << 10:
                continue

            def make(kind=kind, dtype=dtype, turned=turned, bm=bm, bn=bn, bk=bk, stages=stages, warps=warps):
                m, n, k = (3000, 4104, 2056) if kind == "odd_bf16" else (4096, 4096, 4096)
                a, b = torch.randn(m, k, device="cuda").to(dtype), torch.randn(n if turned else k, k if turned else n, device="cuda").to(dtype)
                c = torch.empty(m, n, device="cuda", dtype=torch.float16 if dtype.itemsize == 1 else dtype)
                grid = triton.cdiv(m, bm) * triton.cdiv(n, bn), 1
                along, across = (1, b.stride(0)) if turned else (b.stride(0), 1)

                def launch(a, b):
                    product[grid](a, b, c, m, n, k, a.stride(0), 1, along, across, BM=bm, BN=bn, BK=bk, GROUP=8, num_warps=warps, num_stages=stages)
                    return c

                return launch, (a, b)

            yield f"product_{kind}_{bm}x{bn}x{bk}_w{warps}_s{stages}", make
    for bm, bn, bk, stages, warps in shapes:
        if (bm + bn) * bk * stages * 2 > 227 << 10:
            continue

        def make(bm=bm, bn=bn, bk=bk, stages=stages, warps=warps):
            a, b = (torch.randn(4096, 4096, device="cuda", dtype=torch.float16) for _ in range(2))
            c = torch.empty(4096, 4096, device="cuda", dtype=torch.float16)
            args = [TensorDescriptor.from_tensor(x, list(block)) for x, block in ((a, (bm, bk)), (b, (bn, bk)), (c, (bm, bn)))]

            def launch(*args):
                product_of_descriptors[(4096 // bm, 4096 // bn)](*args, 4096, BM=bm, BN=bn, BK=bk, num_warps=warps, num_stages=stages)
                return c

            return launch, args

        yield f"product_desc_{bm}x{bn}x{bk}_w{warps}_s{stages}", make


def attentions():
    for d in (64, 128):
        for bm, bn, warps in ((64, 32, 4), (64, 64, 4), (64, 128, 4), (128, 32, 4), (128, 64, 4), (128, 32, 8), (128, 64, 8), (128, 128, 8)):
            for stages in (2, 3, 4):
                for kind in ("causal", "full", "desc"):

                    def make(d=d, bm=bm, bn=bn, warps=warps, stages=stages, kind=kind):
                        heads, length = 32, 4096
                        q, k, v = (torch.randn(heads * length, d, device="cuda", dtype=torch.float16) for _ in range(3))
                        o, sums = torch.empty_like(q), torch.empty(heads * length, device="cuda")
                        grid = length // bm, heads

                        def launch(q, k, v):
                            if kind == "desc":
                                names = [TensorDescriptor.from_tensor(x, [rows, d]) for x, rows in ((q, bm), (k, bn), (v, bn), (o, bm))]
                                attention_of_descriptors[grid](*names, length, d**-0.5, BM=bm, BN=bn, D=d, num_warps=warps, num_stages=stages)
                                return o
                            attention[grid](q, k, v, o, sums, length, d**-0.5, CAUSAL=kind == "causal", BM=bm, BN=bn, D=d, num_warps=warps, num_stages=stages)
                            return o, sums

                        return launch, (q, k, v)

                    yield f"attention_{kind}_{d}_{bm}x{bn}_w{warps}_s{stages}", make


def cases():
    yield from products()
    yield from attentions()


if __name__ == "__main__":
    paired.main(__doc__.splitlines()[0], cases, shares=4)
