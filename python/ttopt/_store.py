"""Results of sweeps that processes and machines share: in a folder, or behind Triton's interface of remote caches.

What is kept is JSON, not pickled objects: whoever can write to a store must not be able to run code where it is read. Each
entry has its own hash, so that what was damaged on the way is made again.
"""

import base64
import functools
import hashlib
import json
import os
from pathlib import Path

from . import _companions, _ttopt
from ._compile import build, contents

_FILE = "sweep.json"


@functools.lru_cache(maxsize=None)
def _hash_of(path):
    """Of a file's contents, or of the bitcode in a folder: the same on all machines that have the same."""
    path = Path(path)
    files = sorted(path.glob("*.bc")) if path.is_dir() else [path]
    digest = hashlib.sha256()
    for file in files:
        digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()


def key(source, name, target, options, emit, keep):
    """Of all that a result depends on: the compiler, the tools and libraries that may be used, the options, the input."""
    given = {**_companions.all_of_them(), **options}
    tools = {}
    for option in ("ptxas", "nvdisasm", "libdevice", "lld", "device_libraries"):
        path = given.pop(option, None)
        tools[option] = _hash_of(str(path)) if path and os.path.exists(path) else None
    tools["libraries"] = [_hash_of(str(path)) for path in given.pop("libraries", None) or ()]
    source = contents(source)
    facts = [build(), tools, sorted(given.items()), name, target, emit, list(keep), hashlib.sha256(source).hexdigest()]
    return hashlib.sha256(json.dumps(facts, default=str).encode()).hexdigest()


def pack(fields):
    """As bytes, with their hash."""

    def plain(value):
        return {"base64": base64.b64encode(value).decode()} if isinstance(value, bytes) else value

    fields = {**fields, "asm": {stage: plain(made) for stage, made in fields["asm"].items()}}
    text = json.dumps(fields).encode()
    return hashlib.sha256(text).hexdigest().encode() + b"\n" + text


def unpack(data):
    """The fields of :func:`pack`; None where the bytes are not whole."""
    head, _, text = bytes(data).partition(b"\n")
    if hashlib.sha256(text).hexdigest().encode() != head:
        return None
    fields = json.loads(text)
    asm = {stage: base64.b64decode(made["base64"]) if isinstance(made, dict) else made for stage, made in fields["asm"].items()}
    return {**fields, "asm": asm}


@functools.lru_cache(maxsize=None)
def _folder(path, most_bytes):
    return _ttopt.Store(path, most_bytes)


class _Folder:
    """A folder with the interface of a remote cache."""

    def __init__(self, path, most_bytes, key):
        self.store = _folder(path, most_bytes)
        self.key = key

    def _name(self, filename):
        return f"{self.key}/{filename}".encode()

    def get(self, filenames):
        found = {filename: self.store.get(self._name(filename)) for filename in filenames}
        return {filename: data for filename, data in found.items() if data is not None}

    def put(self, filename, data):
        self.store.put(self._name(filename), data)


@functools.lru_cache(maxsize=None)
def _server(host, port):
    import redis

    return redis.Redis(host=host, port=port)


class _Redis:
    """A server, by the variables that Triton reads. Its own class for Redis fails in Triton 3.9: it looks for these
    settings where they are not."""

    def __init__(self, key):
        variable = os.environ.get
        self.server = _server(variable("TRITON_REDIS_HOST", "localhost"), int(variable("TRITON_REDIS_PORT", "6379")))
        self.format = variable("TRITON_REDIS_KEY_FORMAT", "triton:{key}:{filename}")
        self.key = key

    def _name(self, filename):
        return self.format.format(key=self.key, filename=filename)

    def get(self, filenames):
        found = zip(filenames, self.server.mget([self._name(filename) for filename in filenames]))
        return {filename: data for filename, data in found if data is not None}

    def put(self, filename, data):
        self.server.set(self._name(filename), data)


def entry(store, most_bytes, key):
    """The entry of a key in a store: a folder, ``"redis"``, or a class with the interface of Triton's
    ``RemoteCacheBackend``."""
    if store == "redis":
        return _Redis(key)
    if isinstance(store, (str, os.PathLike)):
        return _Folder(os.fspath(store), most_bytes, key)
    return store(key)


def get(place):
    """What was kept there, if it is there and whole."""
    data = place.get([_FILE]).get(_FILE)
    return unpack(data) if data is not None else None


def put(place, fields):
    """Keeps it there."""
    place.put(_FILE, pack(fields))
