"""Gluon kernels with our stages behind their TTGIR, without a GPU: they compile, and the simulator runs them."""

import logging

import numpy
import pytest

import ttopt
import ttopt.triton

triton = pytest.importorskip("triton")
pytest.importorskip("triton.experimental.gluon._runtime", reason="this Triton compiles no Gluon without a GPU")

import gluon_kernels as gluon  # noqa: E402
from triton.backends.compiler import GPUTarget  # noqa: E402

by_name = pytest.mark.parametrize("case", gluon.CASES, ids=lambda case: case[0].__name__)


pytestmark = pytest.mark.usefixtures("enabled")


def compile(case):
    return triton.compile(gluon.source(case), target=GPUTarget("cuda", 90, 32), options={"num_warps": 4})


@by_name
def test_gluon_kernels_compile_behind_their_ttgir(case):
    kernel = compile(case)
    assert kernel.metadata.compiled_by == ttopt.triton.key()[0]
    assert kernel.asm["cubin"][:4] == b"\x7fELF"
    ttopt.triton.disable()
    theirs = compile(case)
    assert kernel.asm["ttgir"] == theirs.asm["ttgir"], "the author's layouts are kept"
    for fact in ("num_ctas", "tensordesc_meta", "global_scratch_size"):
        assert getattr(kernel.metadata, fact) == getattr(theirs.metadata, fact), fact


@by_name
def test_the_simulator_finds_the_right_numbers(case):
    kernel = compile(case)
    grid, args, result, expected = case[2](numpy)
    run = ttopt.simulate(kernel.asm["ttgir"], grid, *args, target="cuda:90")
    assert not run.findings, run.findings
    numpy.testing.assert_allclose(result, expected, rtol=1e-3, atol=1e-2)


def test_partitions_have_warps_and_registers_of_their_own():
    kernel = compile(next(case for case in gluon.CASES if case[0].__name__ == "specialized"))
    # Four warps that multiply, one that loads, and three that complete its warp group.
    assert kernel.metadata.num_warps == 8
    ptx = kernel.asm["ptx"]
    assert ".reqntid 256" in ptx and "setmaxnreg.inc" in ptx and "setmaxnreg.dec" in ptx


def test_what_is_refused_is_tritons(caplog, monkeypatch):
    ttopt.triton.enable(strict=False)
    monkeypatch.setattr(ttopt.triton, "_refusal", lambda options: "for this test")
    with caplog.at_level(logging.WARNING, "ttopt"):
        kernel = compile(gluon.CASES[0])
    assert getattr(kernel.metadata, "compiled_by", None) is None
    assert "left to Triton: for this test" in caplog.text
