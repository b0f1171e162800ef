"""What tests of the hook share."""

import os

import pytest


def pytest_sessionfinish(session):
    """With TTOPT_REQUIRE_ALL, as ./dev test sets it, a test that is skipped is a failure: it proves nothing."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if os.environ.get("TTOPT_REQUIRE_ALL") and reporter and reporter.stats.get("skipped"):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


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
