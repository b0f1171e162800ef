"""torch.compile with our code, on a GPU: TTOPT=1 python torch_compile_check.py

Fused pointwise operations, a reduction, a template of a matrix product and attention are compiled by Inductor in its worker
processes, and compared with eager PyTorch. Says which kernels are ours, and fails where a result differs or none is.
"""

import glob
import json
import os
import tempfile

cache = tempfile.mkdtemp(prefix="ttopt-inductor-")
os.environ["TORCHINDUCTOR_CACHE_DIR"] = cache
os.environ["TRITON_CACHE_DIR"] = os.path.join(cache, "triton")

import torch  # noqa: E402
import torch._inductor.config as config  # noqa: E402

config.max_autotune_gemm_backends = "TRITON"


def pointwise(x, y):
    return torch.nn.functional.gelu(x) * torch.sigmoid(y) + x.abs().sqrt()


def reduction(x):
    return torch.softmax(x.float(), -1) + torch.nn.functional.layer_norm(x, x.shape[-1:]).var(-1, keepdim=True)


def product(x, w):
    return torch.relu(x @ w)


def attention(q, k, v):
    from torch.nn.attention.flex_attention import flex_attention

    return flex_attention(q, k, v, score_mod=lambda score, b, h, i, j: torch.where(i >= j, score, -float("inf")))


def main():
    torch.manual_seed(0)
    half = dict(device="cuda", dtype=torch.float16)
    x, y, w = (torch.randn(2048, 2048, **half) for _ in range(3))
    heads = [torch.randn(2, 8, 1024, 64, **half) for _ in range(3)]
    failed = False
    cases = [
        (pointwise, (x, y), None),
        (reduction, (x,), None),
        (product, (x, w / 45), "max-autotune-no-cudagraphs"),
        (attention, heads, None),
    ]
    for function, args, mode in cases:
        wanted = function(*args).float()
        got = torch.compile(function, mode=mode)(*args).float()
        error = ((got - wanted).abs() / (1 + wanted.abs())).max().item()
        print(f"{function.__name__}: largest relative difference {error:.2e}")
        failed |= not error < 2e-2
    ours, others = [], []
    for path in glob.glob(os.path.join(cache, "**", "*.json"), recursive=True):
        with open(path) as file:
            try:
                facts = json.load(file)
            except ValueError:
                continue
        if isinstance(facts, dict) and "num_warps" in facts and "name" in facts:
            (ours if "compiled_by" in facts else others).append(facts["name"])
    print(f"{len(ours)} kernels are ttopt's: {', '.join(sorted(set(ours)))}")
    print(f"{len(others)} are Triton's: {', '.join(sorted(set(others)))}")
    raise SystemExit(failed or not ours)


if __name__ == "__main__":
    main()
