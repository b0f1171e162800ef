"""Imports the kernels of packages of which only some files are wanted: everything else of them, and what they need, are stubs.

Inference engines are large, and need many packages for their servers; their kernels need PyTorch and Triton. Of each
package in `packages` below a folder, only files with kernels, and those in `real`, are executed; other modules are stubs, of
which one can ask and call anything. What a kernel takes from a stub fails when it is compiled.
"""

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
import types

# Packages that files with kernels import for other functions of theirs.
OTHERS = ("cutlass", "deep_ep", "deep_gemm", "flashinfer", "helion", "jaxtyping", "msgspec", "sgl_kernel", "tqdm", "transformers", "tvm_ffi")


class Stub:
    """What may be asked, called, subscripted and compared; is false, and empty. As a decorator it changes nothing."""

    def __init__(self, name):
        self._name = name

    def __call__(self, *args, **named):
        if len(args) == 1 and callable(args[0]) and not isinstance(args[0], (Stub, type)):
            return args[0]
        last = self._name.rsplit(".", 1)[-1]
        if last in ("get_device_name", "get_device_name_as_file_name"):
            return "GPU"
        if last == "get_device_capability":
            return importlib.import_module("torch").cuda.get_device_capability()
        if last in ("get_device_core_count", "num_compute_units"):
            return 132
        if last in ("is_cuda", "is_cuda_alike", "is_nvidia"):
            return True
        if last in ("fp8_dtype",):
            return constant(last)
        if last.startswith(("_is", "has_", "is_", "on_", "supports_", "use_")):
            return False
        return Stub(self._name + "()")

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Stub(f"{self._name}.{name}")

    def __getitem__(self, key):
        return Stub(self._name + "[]")

    def __mro_entries__(self, bases):
        return (object,)

    def __hash__(self):
        return id(self)

    def __eq__(self, other):
        return False

    __lt__ = __le__ = lambda self, other: True
    __gt__ = __ge__ = lambda self, other: False
    __or__ = __ror__ = lambda self, other: other
    __bool__ = lambda self: False
    __iter__ = lambda self: iter(())
    __len__ = lambda self: 0


def constant(name):
    """What kernels and the functions that call them take from modules that are stubs here; `None` for other names."""
    import torch
    import triton

    if name.startswith(("_is_", "_use_", "SGLANG_")):
        return False
    known = {
        "HAS_TRITON": True,
        "LOG2E": 1.4426950408889634,
        "NULL_BLOCK_ID": 0,
        "PAD_SLOT_ID": -1,
        "RCP_LN2": 1.4426950408889634,
        "Version": importlib.import_module("packaging.version").Version,
        "cdiv": triton.cdiv,
        "e4m3_dtype": torch.float8_e4m3fn,
        "fp8_dtype": torch.float8_e4m3fn,
        "get_fp8_min_max": lambda: (-448.0, 448.0),
        "is_weak_contiguous": lambda tensor: True,
        "libdevice_find": lambda name: getattr(importlib.import_module("triton.language.extra.libdevice"), name),
        "next_power_of_2": triton.next_power_of_2,
        "round_up": lambda number, step: triton.cdiv(number, step) * step,
        "tl": importlib.import_module("triton.language"),
        "triton": triton,
    }
    return known.get(name)


class Module(types.ModuleType):
    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        known = constant(name)
        return Stub(f"{self.__name__}.{name}") if known is None else known


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def __init__(self, folder, packages, real):
        self.folder, self.packages, self.real = folder, packages, real

    def find_spec(self, name, path, target=None):
        top = name.split(".")[0]
        stub = importlib.machinery.ModuleSpec(name, self, is_package=True)
        if top not in self.packages:
            missing = top in OTHERS and importlib.machinery.PathFinder.find_spec(top) is None
            return stub if missing else None
        file = os.path.join(self.folder, *name.split(".")) + ".py"
        if os.path.exists(file):
            with open(file) as text:
                if name in self.real or "@triton.jit" in text.read():
                    return importlib.util.spec_from_file_location(name, file)
        return stub

    def create_module(self, spec):
        module = Module(spec.name)
        module.__path__ = [os.path.join(self.folder, *spec.name.split("."))]
        return module

    def exec_module(self, module):
        pass


def install(folder, packages, real):
    """From now on `packages`, whose files are below `folder`, are imported so."""
    sys.meta_path.insert(0, Finder(folder, packages, real))
