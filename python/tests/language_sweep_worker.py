"""The processes of the language sweep: each takes cases by number from its input, and answers with one line of JSON.

Modes: compile:90 (a capability, or gfx942 and so on; no GPU), run:0 and run:strict (a GPU and torch), simulate and interpret (numpy alone).
"""

import gc
import hashlib
import importlib.util
import inspect
import json
import logging
import os
import re
import sys
import traceback
import warnings
from pathlib import Path

from language_sweep_cases import FP8, TYPES, Buffer, all_cases, bits


def features_missing(needs, capability):
    """What of a case's needs this Triton or this target does not have."""
    import triton
    import triton.language as tl

    def parameters(function):
        return inspect.signature(getattr(function, "fn", function)).parameters

    def has(need):
        base, _, rest = need.partition(".")
        if need == "cuda90":
            return capability >= 90
        if need == "cuda":
            return capability > 0
        if base == "libdevice" and not capability:
            # An AMD GPU: Triton maps a part of these functions to ocml's, and refuses the others.
            from triton.language.extra.hip import libdevice

            return hasattr(libdevice, rest)
        if need == "block pointers":
            return "boundary_check" in parameters(tl.load)
        if need == "TensorDescriptor":
            return importlib.util.find_spec("triton.tools.tensor_descriptor") is not None
        if need == "constexpr_function":
            return hasattr(triton, need)
        if base == "libdevice":
            from triton.language.extra import libdevice

            return hasattr(libdevice, rest)
        if base == "range":
            return rest in parameters(tl.range.__init__)
        return hasattr(tl, base) and (not rest or rest in parameters(getattr(tl, base)))

    return [need for need in needs if not has(need)]


class Sources:
    """Kernels as functions of files, which is what Triton reads them from."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.modules = {}

    def kernel(self, case):
        text = case.text()
        name = "sweep_" + hashlib.sha256(text.encode()).hexdigest()[:16]
        if name not in self.modules:
            path = self.folder / f"{name}.py"
            if not path.exists():
                # Others write the same at the same time.
                mine = path.with_suffix(f".{os.getpid()}")
                mine.write_text(text)
                mine.replace(path)
            spec = importlib.util.spec_from_file_location(name, path)
            module = importlib.util.module_from_spec(spec)
            sys.modules[name] = module
            spec.loader.exec_module(module)
            self.modules[name] = module
        return self.modules[name].kernel


def as_compiled(case, fn):
    """What a launch would tell the compiler: types, constants, and what is known of values."""
    signature, constants, attributes = {}, dict(case.constants), {}
    for at, name in enumerate(fn.arg_names):
        aligned = False
        if name in case.constants:
            kind = "constexpr"
        else:
            value = case.args[name]
            if value is None or value is not True and isinstance(value, int) and value == 1:
                kind, constants[name] = "constexpr", value
            elif isinstance(value, Buffer):
                kind = f"*{TYPES[value.dtype][0]}"
                if value.block:
                    kind = f"tensordesc<{kind[1:]}{list(value.block)}>"
                aligned = not value.block and value.offset * bits(value.dtype) // 8 % 16 == 0
            elif isinstance(value, bool):
                kind = "u1"
            elif isinstance(value, int):
                kind, aligned = "i32" if -(2**31) <= value < 2**31 else "i64", value % 16 == 0
            else:
                kind = "fp32"
        signature[name] = kind
        if aligned:
            attributes[(at,)] = [["tt.divisibility", 16]]
    return signature, constants, attributes


def first_lines(error):
    """What went wrong, in one line, with the kind of error; the last cause is what the compiler said."""
    while error.__cause__ is not None and type(error).__name__ in ("CompilationError", "InterpreterError"):
        error = error.__cause__
    text = [line.strip() for line in str(error).splitlines() if line.strip()]
    told = [line for line in text if "fatal" in line] or [line for line in text if "error" in line.lower()] or text
    told = text[-1:] if type(error).__name__ == "CompilationError" else told
    return f"{type(error).__name__}: {' | '.join(told[:3])[:600]}"


def is_tritons(outcome):
    """Whether a failure is neither of ttopt nor of a GPU. Triton 3.6 fails on some kernels once, then compiles them."""
    return not re.search("ttopt|ptxas|shared|CUDA", outcome["reason"])


class Worker:
    def __init__(self, mode, folder):
        self.mode, self.folder = mode, Path(folder)
        self.sources = Sources(self.folder)
        os.environ["TRITON_CACHE_DIR"] = str(self.folder / f"cache-{mode.replace(':', '-')}")
        if mode == "interpret":
            os.environ["TRITON_INTERPRET"] = "1"
        warnings.simplefilter("ignore")
        logging.disable(logging.WARNING)

    def use_ours(self):
        import ttopt.triton

        ttopt.triton.enable(strict=True)
        return ttopt.triton

    def is_ours(self, kernel):
        return "ttopt" in str(getattr(kernel.metadata, "compiled_by", ""))

    def save(self, number, data):
        """Leaves the memory of a run for the parent: all buffers, one behind the other."""
        path = self.folder / f"{self.mode.replace(':', '-')}-{number}.bin"
        path.write_bytes(b"".join(data))
        return {"status": "ok", "file": str(path)}

    def failed(self, error, **more):
        # What a failed compilation refers to would otherwise live as long as its traceback.
        outcome = {"status": "failed", "reason": first_lines(error), **more}
        traceback.clear_frames(error.__traceback__)
        return outcome


class Compiles(Worker):
    """Kernels to binaries. One that ttopt refuses is given to Triton alone, whose refusal is not held against ttopt."""

    def __init__(self, mode, folder):
        super().__init__(mode, folder)
        import triton
        from triton.backends.compiler import GPUTarget

        self.triton, self.hook = triton, self.use_ours()
        self.arch = mode.split(":")[1]
        self.capability = int(self.arch) if self.arch.isdigit() else 0
        is_cdna = self.arch in ("gfx90a", "gfx942", "gfx950")
        amd = GPUTarget("hip", self.arch, 64 if is_cdna else 32)
        self.target = GPUTarget("cuda", self.capability, 32) if self.capability else amd

    def compile(self, case):
        fn = self.sources.kernel(case)
        signature, constants, attributes = as_compiled(case, fn)
        source = self.triton.compiler.ASTSource(fn, signature=signature, constexprs=constants, attrs=attributes)
        return self.triton.compile(source, target=self.target, options=dict(case.options))

    def take(self, number, case):
        missing = features_missing(case.needs, self.capability)
        if missing:
            return {"status": "missing", "reason": missing[0]}
        outcome = None
        for _ in range(2):
            try:
                kernel = self.compile(case)
                return {"status": "ok"} if self.is_ours(kernel) else {"status": "not ours", "reason": "compiled by Triton"}
            except Exception as error:
                outcome = self.failed(error)
            if not is_tritons(outcome):
                break
        self.hook.disable()
        try:
            kernel = self.compile(case)
            path = self.folder / f"refused-{self.arch}-{number}.ttir"
            path.write_text(kernel.asm["ttir"])
            return {**outcome, "status": "refused", "file": str(path)}
        except Exception as error:
            return {**self.failed(error), "status": "triton fails"}
        finally:
            self.hook.enable(strict=True)


class Runs(Worker):
    """Kernels on the GPU, as a program launches them."""

    def __init__(self, mode, folder):
        os.environ["TTOPT"] = mode.split(":")[1]
        super().__init__(mode, folder)
        import torch
        import triton

        self.torch, self.ours = torch, mode == "run:strict"
        if self.ours:
            self.use_ours()
        if hasattr(triton, "set_allocator"):
            triton.set_allocator(lambda size, alignment, stream: torch.empty(size, dtype=torch.int8, device="cuda"))
        major, minor = torch.cuda.get_device_capability()
        self.capability = major * 10 + minor
        torch.cuda.synchronize()

    def argument(self, raw, buffer):
        """The part of an allocation behind its guard, in the type that Triton shall see."""
        import triton
        import triton.language as tl

        names = {"float8e4nv": "float8_e4m3fn", "float8e5": "float8_e5m2", "int1": "bool"}
        dtype = getattr(self.torch, names.get(buffer.dtype, buffer.dtype), None)
        data = raw[buffer.start : buffer.start + buffer.count * bits(buffer.dtype) // 8]
        if dtype is None:
            return triton.reinterpret(data, getattr(tl, buffer.dtype))
        data = data.view(dtype)
        if not buffer.block:
            return data
        from triton.tools.tensor_descriptor import TensorDescriptor

        return TensorDescriptor.from_tensor(data.reshape(buffer.shape), list(buffer.block))

    def take(self, number, case):
        missing = features_missing(case.needs, self.capability)
        if missing:
            return {"status": "missing", "reason": missing[0]}
        import numpy as np

        memory, args = [], {}
        for name, value in case.args.items():
            if isinstance(value, Buffer):
                raw = np.frombuffer(value.bytes(case.seed(name)), np.uint8).copy()
                memory.append(self.torch.from_numpy(raw).cuda())
                value = self.argument(memory[-1], value)
            args[name] = value
        outcome = None
        while True:
            try:
                kernel = self.sources.kernel(case)[case.grid](**args, **case.constants, **case.options)
                break
            except Exception as error:
                again = outcome is not None
                outcome = self.failed(error, stage="launch", fatal="CUDA" in str(error))
            if again or not is_tritons(outcome):
                return outcome
        try:
            self.torch.cuda.synchronize()
            outcome = self.save(number, [part.cpu().numpy().tobytes() for part in memory])
        except Exception as error:
            return self.failed(error, stage="execution", fatal=True)
        if self.ours and not self.is_ours(kernel):
            return {"status": "not ours", "reason": "the kernel was compiled by Triton"}
        return outcome


class Simulates(Compiles):
    """Kernels in ttopt's simulator, from Triton's TTIR."""

    def __init__(self, mode, folder):
        super().__init__("compile:90", folder)
        self.mode = mode

    def take(self, number, case):
        if "block pointers" in case.needs or any(value.block for _, value in case.buffers()):
            return {"status": "missing", "reason": "descriptors and block pointers as arguments"}
        missing = features_missing(case.needs, self.capability)
        if missing:
            return {"status": "missing", "reason": missing[0]}
        import numpy as np
        import ttopt

        try:
            fn = self.sources.kernel(case)
            _, constants, _ = as_compiled(case, fn)
            text = self.compile(case).asm["ttir"]
            memory, args = {}, []
            for name in fn.arg_names:
                if name in constants:
                    continue
                value = case.args[name]
                if isinstance(value, Buffer):
                    data = value.bytes(case.seed(name))
                    size = value.count * bits(value.dtype) // 8
                    memory[name] = data, value.start, np.frombuffer(data[value.start : value.start + size], np.uint8).copy()
                    value = memory[name][2]
                args.append(value)
            options = {name: case.options[name] for name in ("num_warps", "num_stages", "num_ctas") if name in case.options}
            found = ttopt.simulate(text, case.grid, *args, target="cuda:90", jobs=1, **options).findings
        except Exception as error:
            return self.failed(error)
        parts = []
        for name, value in case.buffers():
            if name not in memory:
                parts.append(value.bytes(case.seed(name)))
                continue
            data, start, array = memory[name]
            parts.append(data[:start] + array.tobytes() + data[start + len(array) :])
        outcome = self.save(number, parts)
        return {**outcome, "findings": [str(one) for one in found][:3]} if found else outcome


class HostArray:
    """Memory of numpy's as Triton's interpreter takes tensors."""

    def __init__(self, array, start, dtype):
        self.array, self.start, self.dtype = array, start, dtype

    def data_ptr(self):
        return self.array.ctypes.data + self.start

    def untyped_storage(self):
        return self

    def new_empty(self, *_, **__):
        return self

    def cpu(self):
        return self

    def storage_offset(self):
        return 0

    size = stride = storage_offset

    def set_(self, *_):
        return self

    copy_ = set_


class Interprets(Worker):
    """Kernels in Triton's interpreter, which computes with numpy and shares no code with a compiler."""

    def take(self, number, case):
        import numpy as np
        import triton.language as tl

        missing = features_missing(case.needs, 90)
        if any(name in case.text() for name in ("bfloat16", "float8")) or any(
            buffer.dtype in ("bfloat16", *FP8) for _, buffer in case.buffers()
        ):
            missing = ["bfloat16 and 8-bit floats in the interpreter"]
        if missing:
            return {"status": "missing", "reason": missing[0]}
        memory, args = [], {}
        for name, value in case.args.items():
            if isinstance(value, Buffer):
                memory.append(np.frombuffer(value.bytes(case.seed(name)), np.uint8).copy())
                value = HostArray(memory[-1], value.start, getattr(tl, value.dtype))
            args[name] = value
        try:
            with np.errstate(all="ignore"):
                self.sources.kernel(case)[case.grid](**args, **case.constants)
        except Exception as error:
            return self.failed(error)
        return self.save(number, [part.tobytes() for part in memory])


def main(mode, folder):
    """Answers on what was standard output: kernels and compilers write to standard error meanwhile."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def say(**what):
        answers.write(json.dumps(what) + "\n")
        answers.flush()

    kinds = {"compile": Compiles, "run": Runs, "simulate": Simulates, "interpret": Interprets}
    try:
        cases = all_cases()
        worker = kinds[mode.split(":")[0]](mode, folder)
    except BaseException as error:
        say(status="broken", reason=first_lines(error), trace=traceback.format_exc()[-2000:])
        return
    say(status="ready")
    for count, line in enumerate(sys.stdin):
        number = int(line)
        try:
            outcome = worker.take(number, cases[number])
        except BaseException as error:
            outcome = {"status": "failed", "reason": first_lines(error), "fatal": True}
        say(number=number, **outcome)
        if outcome.get("fatal"):
            # A fault leaves the context unusable.
            os._exit(0)
        if count % 200 == 199:
            gc.collect()


if __name__ == "__main__":
    main(*sys.argv[1:])
