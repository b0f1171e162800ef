"""The script that runs Triton's tests, on tests of our own."""

import json
import subprocess
import sys
from pathlib import Path

TESTS = """
import os, pytest

@pytest.mark.parametrize("what", ["good", "refused", "wrong", "crash", "fault", "after", "skip", "bad"])
def test(what):
    if what == "skip":
        pytest.skip("not here")
    if what == "bad":
        assert False, "also without ttopt"
    if os.environ["TTOPT"] == "strict":
        if what == "refused":
            raise RuntimeError("ttopt does not compile k: k.py:3:4: error: no 'foo' of 16")
        if what == "wrong":
            assert False, "Mismatched elements: 3"
        if what == "crash":
            os._exit(3)
        if what == "fault":
            raise RuntimeError("CUDA error: an illegal memory access was encountered")
"""


def test_outcomes_are_counted_and_crashes_lose_one_test(tmp_path):
    (tmp_path / "test_it.py").write_text(TESTS)
    out = tmp_path / "out.json"
    script = Path(__file__).with_name("triton_language_tests.py")
    command = [sys.executable, script, tmp_path / "test_it.py", "--root", tmp_path, "--jobs", "1", "--out", out]
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=120)
    assert "passed 2 of 6" in done.stdout, done.stdout + done.stderr
    found = json.loads(out.read_text())
    outcomes = {name.split("[")[1][:-1]: one["outcome"] for name, one in found["ttopt"].items()}
    failed = {"refused": "failed", "wrong": "failed", "crash": "crashed", "fault": "failed"}
    assert outcomes == {"good": "passed", "after": "passed", **failed}
    assert set(found["classes"]) == {"refused", "wrong number", "crashed", "other"}
