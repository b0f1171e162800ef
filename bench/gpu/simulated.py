"""Runs the first programs of kernels of `unseen.py`, or of another file with cases, in the simulator, for several targets, and compares what they write. No GPU.

    python bench/gpu/simulated.py TTSIM [--targets cuda:90,hip:gfx942] [--cases NAME] [--only REGEX] [--share I/N] [--programs N] [--seconds N] [--report FILE]

Needs PyTorch and its Triton. A case makes its tensors on the CPU; where it launches a kernel, the kernel's TTIR and its arguments go to `ttsim`
(`--case`), which runs N programs at most, the first ones, one of kernels that ask for the number of programs. What each further target writes must be what the first one does, but for rounding:
numbers may differ by a hundredth of themselves and of the mean of those that differ, or their median where that is less, integers and numbers of eight bits in one of a hundred elements.
A line for each kernel: its name, and for each target `same`, `close`, what ttsim says, or how far it is off.
"""

import argparse
import importlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

import torch
from triton.backends.compiler import GPUTarget
from triton.compiler.compiler import ASTSource, make_backend
from triton.runtime.jit import JITFunction

import kernels_of

# Types in PyTorch and in a case of ttsim.
TYPES = {
    torch.float64: "f64",
    torch.float32: "f32",
    torch.float16: "f16",
    torch.bfloat16: "bf16",
    torch.float8_e4m3fn: "f8e4m3",
    torch.float8_e5m2: "f8e5m2",
    torch.int64: "i64",
    torch.int32: "i32",
    torch.int16: "i16",
    torch.int8: "i8",
    torch.uint8: "u8",
    torch.bool: "i1",
}
# Names of scalars in a signature that a case of ttsim calls otherwise.
SCALARS = {"fp32": "f32", "fp64": "f64", "fp16": "f16", "u64": "i64", "u1": "i1"}


def bytes_of(tensor):
    """What a kernel can reach behind a tensor's first element, as bytes."""
    storage = torch.empty(0, dtype=torch.uint8)
    storage.set_(tensor.untyped_storage())
    return storage[tensor.storage_offset() * tensor.element_size() :]


def ttir(source, target, options):
    """The TTIR that Triton's front end makes for a target, `cuda:90` or `hip:gfx942`."""
    vendor, arch = target.split(":")
    arch = int(arch) if vendor == "cuda" else arch
    target = GPUTarget(vendor, arch, 64 if str(arch).startswith("gfx9") else 32)
    backend = make_backend(target)
    asked = {name: getattr(options, name) for name in ("num_warps", "num_stages", "num_ctas", "enable_fp_fusion", "debug")}
    capability = [arch] if vendor == "cuda" else []
    return kernels_of.ttir(source, target, backend, backend.parse_options(asked), *capability)


def distance(ours, first, dtype):
    """`same`, `close`, or how far two buffers of a type are apart."""
    if torch.equal(ours, first):
        return "same"
    size = torch.empty(0, dtype=dtype).element_size()
    length = len(first) // size * size
    ours, first = ours[:length].view(dtype), first[:length].view(dtype)
    if not dtype.is_floating_point:
        share = (ours != first).double().mean().item()
        return f"close ({share:.1e})" if share < 0.01 else f"FAR: {share:.3f} of {len(first)} integers"
    ours, first = ours.double(), first.double()
    if not torch.equal(ours.isnan(), first.isnan()):
        return f"FAR: {(ours.isnan() != first.isnan()).sum().item()} of {len(first)} are NaN in one"
    off = (ours - first).abs().nan_to_num(0, 0, 0)
    moved = first[off > 0].abs()
    finite = moved[moved.isfinite()]
    # A few large numbers would hide many small ones behind their mean.
    scale = min(finite.mean().item(), finite.median().item()) if len(finite) else 0.0
    wrong = (off > 0.01 * first.abs().nan_to_num(0, 0, 0) + 0.01 * scale) | (ours.isinf() != first.isinf())
    wrong = wrong.sum().item()
    count = max(1, len(moved))
    said = f"{wrong} of {count} that differ, by {off.max().item():.2e} at most of {scale:.2e}"
    if wrong == 0:
        return "close"
    # Numbers of eight bits are codes that may round either way.
    return f"close ({said})" if size == 1 and wrong < 0.01 * len(first) else f"FAR: {said}"


class Simulated(kernels_of.Launched):
    """A kernel whose launches run in the simulator."""

    def __init__(self, run, name, source, signature, options):
        self.simulate, self.name, self.source, self.signature, self.options = run, name, source, signature, options

    def run(self, x, y, z, _stream, _function, _packed, _metadata, _enter, _exit, *args):
        self.simulate(self, (x, y, z), args)


class Simulator:
    def __init__(self, options):
        self.options, self.case, self.seen, self.texts = options, None, set(), {}
        self.targets = options.targets.split(",")
        self.report = open(options.report, "a") if options.report else None

    def compiled(self):
        simulator = self

        def compiled(kernel, key, signature, device, constexprs, options, attrs, warmup):
            cache, *_ = kernel.device_caches[device]
            name = kernels_of.name_of(kernel, simulator.case, simulator.seen)
            simulator.seen.add(name)
            source = ASTSource(kernel, signature, constexprs, attrs)
            cache[key] = Simulated(simulator.run, name, source, signature, options)
            return cache[key]

        return compiled

    def say(self, name, said):
        line = f"{name}: {', '.join(said)}"
        print(line, flush=True)
        if self.report:
            self.report.write(line + "\n")
            self.report.flush()

    def run(self, kernel, grid, values):
        left = self.options.programs
        self.texts = {}
        # Who asks for the number of programs is told of all, of which the first one runs: the others may have other tiles on other targets
        # (docs/passes.md, "The order of tiles"). Else the grid is small, too small to be put in another order.
        part, asks = [], "tt.get_num_programs" in self.text(kernel, self.targets[0])
        for extent in grid:
            part.append(max(1, min(extent, 1 if asks else left)))
            left //= part[-1]
        grid = grid if asks else part
        folder = tempfile.mkdtemp(dir=self.options.scratch)
        try:
            self.say(kernel.name, self.compare(kernel, grid, part, values, folder))
        finally:
            shutil.rmtree(folder)

    def text(self, kernel, target):
        """TTIR for a target; the front end sees vendors, and whether there are matrix instructions for a type."""
        if target not in self.texts:
            self.texts[target] = ttir(kernel.source, target, kernel.options)
        return self.texts[target]

    def compare(self, kernel, grid, part, values, folder):
        arguments, buffers = [], {}
        for (name, kind), value in zip(kernel.signature.items(), values):
            if kind == "constexpr":
                continue
            if isinstance(value, torch.Tensor) and value.dtype in TYPES:
                buffers[name] = (bytes_of(value), value.dtype)
                data = buffers[name][0]
                with open(os.path.join(folder, f"{name}.bin"), "wb") as file:
                    file.write(memoryview(data.numpy())[: len(data) // value.element_size() * value.element_size()])
                shape = [len(data) // value.element_size()]
                arguments.append({"name": name, "kind": "ptr", "dtype": TYPES[value.dtype], "shape": shape, "init": {"kind": "zeros"}})
            elif isinstance(value, (int, float)):
                arguments.append({"name": name, "kind": "scalar", "dtype": SCALARS.get(kind, kind), "value": value})
            else:
                return [f"skipped: an argument {kind}"]
        case = {"name": "case", "kernel": "case", "targets": self.targets, "num_warps": kernel.options.num_warps}
        case |= {"num_stages": kernel.options.num_stages, "num_ctas": kernel.options.num_ctas, "grid": list(grid)}
        case |= {"args": arguments, "outputs": list(buffers), "rtol": 0, "atol": 0}
        with open(os.path.join(folder, "case.json"), "w") as file:
            json.dump(case, file)
        programs = ",".join(map(str, part))
        said, first = [], None
        for target in self.targets:
            try:
                with open(os.path.join(folder, "case.ttir"), "w") as file:
                    file.write(self.text(kernel, target))
            except Exception as error:  # noqa: BLE001: what Triton's front end refuses
                said.append(f"{target} is refused by Triton: {str(error).strip().splitlines()[-1][:150]}")
                continue
            command = [self.options.ttsim, "-q", "-j1", "--target", target, "--first", programs, "--case", os.path.join(folder, "case.json"), "--data", folder]
            command += ["--no-checks"] if self.options.no_checks else []
            try:
                done = subprocess.run(command, capture_output=True, text=True, timeout=self.options.seconds)
            except subprocess.TimeoutExpired:
                said.append(f"{target} takes too long")
                if first is None:
                    break
                continue
            if done.returncode != 0:
                errors = [line for line in (done.stderr + done.stdout).splitlines() if line.strip()]
                said.append(f"{target} fails: {' | '.join(errors)[:300]}")
                continue
            out = {}
            for name in buffers:
                path = os.path.join(folder, f"{name}.out.bin")
                out[name] = torch.frombuffer(bytearray(open(path, "rb").read()), dtype=torch.uint8)
                os.remove(path)
            if first is None:
                first = out
                changed = [name for name in out if not torch.equal(out[name], buffers[name][0][: len(out[name])])]
                said.append(f"{target} writes {'+'.join(changed) or 'nothing'}")
            else:
                apart = {name: distance(out[name], first[name], buffers[name][1]) for name in out}
                apart = {name: far for name, far in apart.items() if far != "same"}
                said.append(f"{target} " + ("; ".join(f"{name} {far}" for name, far in apart.items()) or "same"))
        return said


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("ttsim")
    parser.add_argument("--targets", default="cuda:90,hip:gfx942", help="the first is what others are compared with")
    parser.add_argument("--cases", default="unseen", help="the file with the cases (default %(default)s)")
    parser.add_argument("--only", default="", help="cases whose names match this expression")
    parser.add_argument("--share", default="0/1", help="of N processes, those of the I-th")
    parser.add_argument("--programs", type=int, default=2, help="programs of a launch at most")
    parser.add_argument("--seconds", type=float, default=60, help="for one target")
    parser.add_argument("--no-checks", action="store_true", help="passed to ttsim")
    parser.add_argument("--report", help="a file that the lines are added to")
    parser.add_argument("--scratch", default="/dev/shm", help="where tensors are written")
    options = parser.parse_args()
    share, shares = map(int, options.share.split("/"))
    kernels_of.without_gpu()
    simulator = Simulator(options)
    JITFunction._do_compile = simulator.compiled()
    cases = [one for one in importlib.import_module(options.cases).cases() if re.search(options.only, one[0])]
    for name, make in cases[share::shares]:
        simulator.case = name
        try:
            with kernels_of.Elsewhere("cpu"):
                torch.manual_seed(0)
                function, args = make()
                function(*args)
        except Exception as error:  # noqa: BLE001: one case that fails must not end the others
            simulator.say(name, [f"no case: {type(error).__name__}: {str(error)[:150]}"])


if __name__ == "__main__":
    sys.exit(main())
