"""Runs the Gluon kernels of gluon_kernels.py on a GPU through ttopt.

    TTOPT=strict python python/tests/gluon_gpu.py

Needs a GPU, PyTorch with its Triton, and this project's wheel. Each kernel's numbers are compared with numpy's; prints a
line per kernel, and exits with the number of kernels that fail.
"""

import sys

import gluon_kernels
import numpy
import torch
import triton


def device(value):
    return torch.from_numpy(value).cuda() if isinstance(value, numpy.ndarray) else value


def run(case):
    """The largest difference of any element from what it should be."""
    kernel, constants, launch = case
    grid, args, result, expected = launch(numpy)
    there = [device(arg) for arg in args]
    compiled = kernel[grid](*there, num_warps=4, **constants)
    torch.cuda.synchronize()
    if getattr(compiled.metadata, "compiled_by", None) is None:
        raise RuntimeError("compiled by Triton, not by ttopt")
    at = next(i for i, arg in enumerate(args) if arg is result)
    found = there[at].cpu().numpy()
    numpy.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-2)
    return abs(found - expected).max()


def main():
    triton.set_allocator(lambda size, alignment, stream: torch.empty(size, dtype=torch.int8, device="cuda"))
    failed = 0
    for case in gluon_kernels.CASES:
        name = case[0].__name__
        try:
            print(f"{name}: right, the largest difference is {run(case):.2g}", flush=True)
        except Exception as error:  # noqa: BLE001: the next kernel runs all the same
            failed += 1
            print(f"{name}: {type(error).__name__}: {error}", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
