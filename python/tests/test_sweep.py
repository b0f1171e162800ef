"""Sweeps: what they return, what their stores keep, and on what they run."""

import sys
import types
from pathlib import Path

import pytest

import ttopt

ADD = (Path(__file__).parents[2] / "test/corpus/vector_add.ttir").read_text()
KERNELS = {"add": ADD, "wrong": "nonsense"}
CHOICES = [{"num_warps": 4}, {"num_warps": 8}]


try:
    from triton.runtime.cache import RemoteCacheBackend
except ImportError:
    RemoteCacheBackend = object


class FolderBackend(RemoteCacheBackend):
    """A remote cache as Triton has them, without a remote: files of this folder."""

    folder = None

    def __init__(self, key):
        self.key = key

    def get(self, filenames):
        paths = {name: self.folder / f"{self.key}-{name}" for name in filenames}
        return {name: path.read_bytes() for name, path in paths.items() if path.exists()}

    def put(self, filename, data):
        (self.folder / f"{self.key}-{filename}").write_bytes(data)


def check(jobs, cached):
    """Results of a sweep of KERNELS by CHOICES, of which those that compile are cached or not."""
    assert [job.kernel for job in jobs] == ["add"] * 2 + ["wrong"] * 2
    assert [job.metadata.get("threads") for job in jobs] == [128, 256, None, None]
    assert [job.cached for job in jobs] == [cached, cached, False, False]
    assert all(".entry vector_add" in job.asm["ptx"] for job in jobs[:2]) and all(job.error for job in jobs[2:])


@pytest.mark.parametrize("workers", [1, 2])
def test_a_folder_keeps_what_was_made(tmp_path, workers):
    first = ttopt.sweep(KERNELS, CHOICES, workers=workers, store=tmp_path)
    check(first, cached=False)
    second = ttopt.sweep(KERNELS, CHOICES, workers=workers, store=str(tmp_path))
    check(second, cached=True)
    assert [job.asm for job in first] == [job.asm for job in second]
    # What depends on something else is something else.
    for other in ({"targets": ["cuda:80"]}, {"emit": "bin"}, {"keep": ("ttgir",)}):
        assert not any(job.cached for job in ttopt.sweep({"add": ADD}, store=tmp_path, workers=1, **other))
    assert not ttopt.sweep({"sum": ADD}, store=tmp_path, workers=1)[0].cached
    assert not ttopt.sweep({"add": ADD + "\n"}, store=tmp_path, workers=1)[0].cached


def test_binaries_come_back(tmp_path):
    sweep = lambda: ttopt.sweep({"add": ADD}, emit="bin", keep=("ptx", "cubin"), workers=1, store=tmp_path)
    [first], [second] = sweep(), sweep()
    assert second.cached and second.asm == first.asm and second.asm["cubin"].startswith(b"\x7fELF")
    assert second.resources == first.resources and second.resources["registers"] > 0


def test_what_is_damaged_is_made_again(tmp_path):
    sweep = lambda: ttopt.sweep({"add": ADD}, workers=1, store=tmp_path)[0]
    made = sweep()
    [file] = [path for path in tmp_path.rglob("*") if path.is_file()]
    data = bytearray(file.read_bytes())
    data[-10] ^= 1
    file.write_bytes(data)
    again = sweep()
    assert not again.cached and again.asm == made.asm and sweep().cached


def test_remote_caches_of_triton_are_stores(tmp_path, monkeypatch):
    monkeypatch.setattr(FolderBackend, "folder", tmp_path)
    check(ttopt.sweep(KERNELS, CHOICES, workers=1, store=FolderBackend), cached=False)
    check(ttopt.sweep(KERNELS, CHOICES, workers=1, store=FolderBackend), cached=True)
    # What a remote cache returns is not trusted.
    for path in tmp_path.iterdir():
        path.write_bytes(path.read_bytes()[:-1])
    check(ttopt.sweep(KERNELS, CHOICES, workers=1, store=FolderBackend), cached=False)


def test_redis_is_a_store(monkeypatch):
    """Before a server that is a dictionary."""
    from ttopt import _store

    kept = {}

    class Redis:
        def __init__(self, host, port):
            assert (host, port) == ("somewhere", 6379)

        def mget(self, keys):
            return [kept.get(key) for key in keys]

        def set(self, key, data):
            kept[key] = data

    monkeypatch.setitem(sys.modules, "redis", types.SimpleNamespace(Redis=Redis))
    monkeypatch.setenv("TRITON_REDIS_HOST", "somewhere")
    _store._server.cache_clear()
    check(ttopt.sweep(KERNELS, CHOICES, workers=1, store="redis"), cached=False)
    assert len(kept) == 2 and all(key.startswith("triton:") for key in kept)
    check(ttopt.sweep(KERNELS, CHOICES, workers=1, store="redis"), cached=True)
    _store._server.cache_clear()


def test_a_sweep_runs_on_a_ray_cluster(tmp_path):
    """Starts a cluster on this machine where ``ray`` is installed, which ./dev setup does not: it is large."""
    ray = pytest.importorskip("ray")
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        check(ttopt.sweep(KERNELS, CHOICES, ray=True, store=tmp_path), cached=False)
        check(ttopt.sweep(KERNELS, CHOICES, ray=True, store=tmp_path), cached=True)
        # Its tasks and this process share the folder.
        check(ttopt.sweep(KERNELS, CHOICES, workers=1, store=tmp_path), cached=True)
    finally:
        ray.shutdown()
