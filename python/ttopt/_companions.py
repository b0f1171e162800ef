"""Finds what is not in the wheel: ptxas and libdevice, LLVM's linker and AMD's device functions.

A variable of the environment comes first, then the wheels of Triton and of NVIDIA, then common places.
"""

import functools
import importlib.util
import os
import shutil
from pathlib import Path


def _package(name):
    """The folders of an installed package, which is not imported."""
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return []
    return [Path(place) for place in spec.submodule_search_locations or []] if spec else []


def _toolkits():
    wheels = [root / part for root in _package("nvidia") for part in ("cu13", "cuda_nvcc", "cuda_nvvm")]
    named = [Path(os.environ[name]) for name in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(name)]
    return named + wheels + [Path("/usr/local/cuda")]


def _first(candidates):
    return next((str(path) for path in candidates if path.exists()), None)


def _named(variable):
    return os.environ.get(variable) or None


@functools.lru_cache(maxsize=None)
def ptxas():
    """NVIDIA's assembler."""
    triton = [root / "backends/nvidia/bin/ptxas" for root in _package("triton")]
    found = _first(triton + [root / "bin/ptxas" for root in _toolkits()])
    return _named("TTOPT_PTXAS") or found or shutil.which("ptxas")


@functools.lru_cache(maxsize=None)
def nvdisasm():
    """NVIDIA's disassembler."""
    triton = [root / "backends/nvidia/bin/nvdisasm" for root in _package("triton")]
    found = _first(triton + [root / "bin/nvdisasm" for root in _toolkits()])
    return _named("TTOPT_NVDISASM") or found or shutil.which("nvdisasm")


@functools.lru_cache(maxsize=None)
def libdevice():
    """NVIDIA's device functions."""
    triton = [root / "backends/nvidia/lib/libdevice.10.bc" for root in _package("triton")]
    below = [root / "nvvm/libdevice/libdevice.10.bc" for root in _toolkits()]
    return _named("TTOPT_LIBDEVICE") or _first(triton + below)


@functools.lru_cache(maxsize=None)
def lld():
    """LLVM's linker."""
    triton = [root / "backends/amd/llvm/bin/ld.lld" for root in _package("triton")]
    places = [Path("/opt/rocm/llvm/bin/ld.lld"), Path("/usr/lib/llvm-22/bin/ld.lld")]
    found = _first(triton + places)
    return _named("TTOPT_LLD") or found or shutil.which("ld.lld-22") or shutil.which("ld.lld")


@functools.lru_cache(maxsize=None)
def device_libraries():
    """The folder of AMD's device functions."""
    triton = [root / "backends/amd/lib" for root in _package("triton")]
    places = ["/opt/rocm/amdgcn/bitcode", "/usr/lib/x86_64-linux-gnu/amdgcn/bitcode"]
    folders = triton + [Path(place) for place in places]
    found = next((str(folder) for folder in folders if (folder / "ocml.bc").exists()), None)
    return _named("TTOPT_DEVICE_LIBS") or found


def all_of_them():
    """As options of a compilation."""
    found = {"ptxas": ptxas(), "nvdisasm": nvdisasm(), "libdevice": libdevice(), "lld": lld()}
    return {**found, "device_libraries": device_libraries()}
