"""Sweeps: what they return, what their stores keep, and on what they run."""

import shutil
import socket
import subprocess
import time
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


def test_jobs_say_what_to_expect(tmp_path):
    matmul = (Path(__file__).parents[2] / "test/corpus/matmul_f16.ttir").read_text()
    sweep = lambda emit="asm", targets=["cuda:90"], **more: ttopt.sweep(
        {"matmul": matmul}, [{"num_warps": 8}], targets, emit=emit, workers=1, store=tmp_path, **more
    )
    jobs = sweep("bin", ["cuda:90", "hip:gfx942"])
    for job in jobs:
        used, asked = job.resources, job.estimate
        assert used["registers"] > 0 and used["warps"] == used["ctas"] * job.metadata["num_warps"]
        assert used["occupancy"] == used["warps"] / used["most_warps"] > 0
        assert asked["dots"] > 0 and asked["loaded"] > 0 and asked["stored"] > 0 and sum(asked["cycles"].values()) > 0
    again = sweep("bin", ["cuda:90", "hip:gfx942"])
    assert [job.estimate for job in again] == [job.estimate for job in jobs] and all(job.cached for job in again)
    # K is argument 5, of which an iteration takes 64.
    launches = [{"matmul": {"grid": (8, 8), "args": {3: 1024, 4: 2048, 5: K}}} for K in (64, 6400)]
    short, long = (sweep(launches=launch)[0] for launch in launches)
    assert not short.cached and not long.cached and long.estimate["dots"] == 100 * short.estimate["dots"]
    # TTGIR has been scheduled.
    ttgir = ttopt.compile(ADD, emit="ttgir").asm["ttgir"]
    assert ttopt.compile(ttgir, estimate={}).estimate is None
    with pytest.raises(ValueError, match="not gird"):
        ttopt.compile(ADD, estimate={"gird": (1,)})


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


@pytest.fixture
def redis_server(tmp_path, monkeypatch):
    """A server on this machine; where it listens is in Triton's variables."""
    redis = pytest.importorskip("redis")
    # Debian's redis-tools has the server by this name, which does what it is called as, and starts none by itself.
    program = shutil.which("redis-server") or shutil.which("redis-check-rdb")
    if program is None:
        pytest.skip("there is no redis-server")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(tmp_path)]
    with subprocess.Popen(command, executable=program, stdout=subprocess.DEVNULL) as server:
        try:
            client = redis.Redis(host="127.0.0.1", port=port)
            for attempt in range(100):
                try:
                    client.ping()
                    break
                except redis.ConnectionError:
                    assert server.poll() is None and attempt < 99
                    time.sleep(0.1)
            monkeypatch.setenv("TRITON_REDIS_HOST", "127.0.0.1")
            monkeypatch.setenv("TRITON_REDIS_PORT", str(port))
            yield client
        finally:
            server.terminate()


def test_redis_is_a_store(redis_server):
    check(ttopt.sweep(KERNELS, CHOICES, workers=1, store="redis"), cached=False)
    keys = redis_server.keys()
    assert len(keys) == 2 and all(key.startswith(b"triton:") for key in keys)
    # Other processes find it there.
    check(ttopt.sweep(KERNELS, CHOICES, workers=2, store="redis"), cached=True)
    for key in keys:
        redis_server.set(key, redis_server.get(key)[:-1])
    check(ttopt.sweep(KERNELS, CHOICES, workers=1, store="redis"), cached=False)


def test_a_sweep_runs_on_a_ray_cluster(tmp_path):
    """Which it starts on this machine."""
    ray = pytest.importorskip("ray")
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        check(ttopt.sweep(KERNELS, CHOICES, ray=True, store=tmp_path), cached=False)
        check(ttopt.sweep(KERNELS, CHOICES, ray=True, store=tmp_path), cached=True)
        # Its tasks and this process share the folder.
        check(ttopt.sweep(KERNELS, CHOICES, workers=1, store=tmp_path), cached=True)
    finally:
        ray.shutdown()
