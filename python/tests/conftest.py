"""What tests of the hook share."""

import pytest


@pytest.fixture
def enabled(tmp_path, monkeypatch):
    """ttopt is on, and nothing was compiled before."""
    import ttopt.triton

    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("TTOPT", "0")
    monkeypatch.setenv("TORCH_COMPILE_CACHE_KEY_TAG", "")
    ttopt.triton.enable(strict=True)
    yield
    ttopt.triton.disable()
