"""The sweep over the language: its cases, its comparisons, and a few of them through the compiler."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("triton")

from language_sweep_cases import EXACT, SAME_VALUE, Near, all_cases, decode, difference, encode  # noqa: E402

SCRIPT = Path(__file__).with_name("language_sweep.py")
FAMILIES = (
    "arithmetic division comparison bitwise unary select promotion scalar math cast reduction scan sort histogram gather "
    "join move memory block-pointer descriptor atomic dot batched-dot dot-scaled dot-loop dot-chain flow random assembly "
    "libdevice"
).split()


def sweep(*options):
    command = [sys.executable, str(SCRIPT), *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


def memory(case):
    return {name: buffer.bytes(case.seed(name)) for name, buffer in case.buffers()}


def test_cases_are_many_and_named_apart():
    names = sweep("--list").stdout.split()
    assert len(names) == len(set(names)) >= 2500
    assert {name.split("/")[0] for name in names} == set(FAMILIES)
    assert names == [case.id for case in all_cases()]


def test_data_are_the_same_in_every_process():
    case = all_cases()[0]
    assert memory(case) == memory(case)
    for case in all_cases():
        for name, buffer in case.buffers():
            size = buffer.start + buffer.count * len(encode([0], buffer.dtype).tobytes()) + buffer.GUARD
            assert len(buffer.bytes(case.seed(name))) == size, case.id


@pytest.mark.parametrize("dtype", ["bfloat16", "float8e4nv", "float8e5"])
def test_narrow_floats_survive_encoding(dtype):
    values = np.array([0.0, -0.0, 1.0, -1.5, 0.25, 3.0, 448.0, -(2.0**-6), np.nan])
    back = decode(encode(values, dtype), dtype)
    assert np.array_equal(back, values, equal_nan=True) and np.signbit(back[1])
    assert decode(encode([1.06], "float8e4nv"), "float8e4nv") == [1.0]
    assert decode(encode([1.07], "float8e4nv"), "float8e4nv") == [1.125]
    assert np.isinf(decode(encode([np.inf], "float8e5"), "float8e5"))


def test_rules_tell_what_differs():
    def differs(rule, a, b, dtype="float32"):
        return bool(rule.differs(encode([a], dtype), encode([b], dtype), dtype)[0])

    nan, inf = float("nan"), float("inf")
    for rule in (EXACT, SAME_VALUE, Near(2)):
        assert not differs(rule, nan, nan) and not differs(rule, inf, inf)
        assert differs(rule, nan, 1.0) and differs(rule, inf, -inf) and differs(rule, 1.0, 1.001)
    assert differs(EXACT, 0.0, -0.0) and not differs(SAME_VALUE, 0.0, -0.0)
    assert not differs(Near(2), 1.0, 1.0 + 2**-22) and differs(Near(2), 1.0, 1.0 + 2**-20)
    assert not differs(Near(1, 0.5), 0.0, 0.25) and differs(Near(2), 3, 4, "int32")
    assert not differs(Near(1), 1.0, 1.0078125, "bfloat16") and differs(Near(1), 1.0, 1.03125, "bfloat16")


def test_a_difference_says_where():
    case = next(case for case in all_cases() if case.id == "memory/copy-float32")
    wanted = memory(case)
    assert difference(case, wanted, wanted) is None
    start = case.args["out"].start
    wrong = bytearray(wanted["out"])
    wrong[start + 4 * 7 + 3] ^= 0x40
    assert difference(case, wanted, {**wanted, "out": bytes(wrong)}).startswith("out[7]: Triton ")
    outside = bytearray(wanted["x"])
    outside[start - 1] ^= 1
    assert difference(case, wanted, {**wanted, "x": bytes(outside)}) == "x: bytes outside of it differ"


def test_a_sample_compiles_and_is_written_down(tmp_path):
    out = tmp_path / "out.json"
    done = sweep("--compile", "--sample", "40", "--seed", "7", "--out", str(out))
    found = json.loads(out.read_text())
    assert done.returncode == 0, done.stdout + done.stderr
    counts = {name: sum(row.get(name, 0) for row in found["table"].values()) for name in ("cases", "ours pass", "not run")}
    assert counts["cases"] == 40 and counts["ours pass"] >= 30 and counts["not run"] == 0
    assert found["failures"] == [] and found["ended"] is None
