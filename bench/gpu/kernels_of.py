"""Writes the TTIR of kernels of `unseen.py`, or of another file with cases, without a GPU.

    python bench/gpu/kernels_of.py FOLDER [--cases NAME] [--only REGEX] [--share I/N]

NAME is that of a file here, without its ending (`libraries`), which says what it needs. Needs PyTorch and its Triton. The cases run with tensors that have no data (or, where values decide something, data on the CPU), and
where a kernel would be compiled and launched its TTIR is written: FOLDER/CASE.KERNEL.ttir, with a number behind where a case has
several of one name, and its options beside it, as JSON: w(arps), s(tages), c(tas), r(egisters of a thread, or null), ff (fused multiply-adds).
"""

import argparse
import contextlib
import importlib
import json
import os
import re
import types

import torch
from torch.overrides import TorchFunctionMode
from triton._C.libtriton import ir
from triton.backends.compiler import GPUTarget
from triton.compiler.compiler import ASTSource
from triton.runtime import driver
from triton.runtime.jit import JITFunction

CAPABILITY = 90
MULTIPROCESSORS = 132


class Elsewhere(TorchFunctionMode):
    """What is asked for on the GPU is on another device."""

    def __init__(self, device):
        super().__init__()
        self.device = device

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        if "cuda" in str(kwargs.get("device", "")):
            kwargs["device"] = self.device
        if getattr(function, "__name__", "") == "cuda":
            return args[0].to(self.device)
        moved = (self.device if isinstance(arg, str) and arg.startswith("cuda") else arg for arg in args)
        return function(*moved, **kwargs)


class Driver:
    """As if there were a GPU."""

    class utils:
        @staticmethod
        def get_device_properties(_):
            return {"multiprocessor_count": MULTIPROCESSORS, "max_shared_mem": 232448}

    def get_current_target(self):
        return GPUTarget("cuda", CAPABILITY, 32)

    def get_current_device(self):
        return 0

    def get_current_stream(self, _):
        return 0

    def get_active_torch_device(self):
        return torch.device("cpu")


class Launched:
    """A kernel whose launches do nothing."""

    function = packed_metadata = None
    n_regs = n_spills = 0
    metadata = types.SimpleNamespace(shared=0)

    def launch_metadata(self, *_):
        return None

    def run(self, *_):
        pass


def name_of(kernel, case, seen):
    """What a kernel of a case is called where some of it were `seen`: with a number behind if one of its name was."""
    first = name = f"{case}.{kernel.__name__}"
    number = 0
    while name in seen:
        number += 1
        name = f"{first}.{number}"
    return name


def ttir(source, target, backend, options, *capability):
    """The module that Triton's front end makes of a kernel's source for a target."""
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    codegen = backend.get_codegen_implementation(options)
    module = source.make_ir(target, options, codegen, backend.get_module_map(), context)
    return str(backend.make_ttir(module, {}, options, *capability))


def without_gpu():
    """Has Triton and PyTorch take it that there is a GPU."""
    driver.set_active(Driver())
    cuda = torch.cuda
    facts = {"name": "NVIDIA H100", "multi_processor_count": MULTIPROCESSORS, "major": 9, "minor": 0}
    facts |= {"shared_memory_per_block_optin": 232448, "total_memory": 80 << 30, "warp_size": 32, "L2_cache_size": 50 << 20}
    cuda.synchronize = lambda *_: None
    cuda.is_available = lambda: True
    cuda.device_count = lambda: 1
    cuda.current_device = lambda: 0
    cuda.current_stream = lambda *_: types.SimpleNamespace(cuda_stream=0)
    cuda.device = lambda *_: contextlib.nullcontext()
    cuda.get_device_properties = lambda *_: types.SimpleNamespace(**facts)
    cuda.get_device_name = lambda *_: facts["name"]
    cuda.get_device_capability = lambda *_: (9, 0)


def writer(folder, case):
    """What compiles instead of Triton: `case` has the name of the case that runs."""
    seen = set()

    def compiled(self, key, signature, device, constexprs, options, attrs, warmup):
        cache, _, target, backend, _ = self.device_caches[device]
        text = ttir(ASTSource(self, signature, constexprs, attrs), target, backend, options, CAPABILITY)
        name = name_of(self, case[0], seen)
        seen.add(name)
        with open(os.path.join(folder, f"{name}.ttir"), "w") as file:
            file.write(text)
        facts = {"w": options.num_warps, "s": options.num_stages, "c": options.num_ctas}
        facts |= {"r": options.maxnreg, "ff": options.enable_fp_fusion}
        with open(os.path.join(folder, f"{name}.json"), "w") as file:
            json.dump(facts, file)
        cache[key] = Launched()
        return cache[key]

    return compiled, seen


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder")
    parser.add_argument("--cases", default="unseen", help="the file with the cases (default %(default)s)")
    parser.add_argument("--only", default="", help="cases whose names match this expression")
    parser.add_argument("--share", default="0/1", help="of N processes, those of the I-th")
    options = parser.parse_args()
    share, shares = map(int, options.share.split("/"))
    without_gpu()
    os.makedirs(options.folder, exist_ok=True)
    case = [None]
    JITFunction._do_compile, seen = writer(options.folder, case)
    failed = []
    cases = [one for one in importlib.import_module(options.cases).cases() if re.search(options.only, one[0])]
    for name, make in cases[share::shares]:
        case[0], failure = name, None
        for device in ("meta", "cpu"):
            try:
                with Elsewhere(device):
                    torch.manual_seed(0)
                    function, args = make()
                    function(*args)
                failure = None
                break
            except Exception as error:  # noqa: BLE001: one case that fails must not end the others
                failure = f"{name}: {type(error).__name__}: {str(error)[:150]}"
        failed += [failure] if failure else []
    print(*failed, f"{len(seen)} kernels of {len(cases[share::shares])} cases", sep="\n")


if __name__ == "__main__":
    main()
