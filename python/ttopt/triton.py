"""Compiles ``@triton.jit`` kernels with ttopt: Triton's stages ttgir, llir and ptx or amdgcn are ours, the rest Triton's.

``enable()``, or ``TTOPT=1`` in the environment of a process. A kernel that ttopt refuses is compiled by Triton's own
stages, and one line of the logger ``ttopt`` says why; with ``TTOPT=strict`` it is an error. TTGIR of Gluon kernels is
their author's, made by Triton's own stage; the stages behind it are ours.
"""

import functools
import logging
import os
import re
import sys
import threading
from pathlib import Path

from . import _companions, _ttopt
from ._compile import CompileError, build, compile

log = logging.getLogger("ttopt")

_state = {"mode": "off", "before": None, "patched": ()}
_counts = {"compiled": 0, "fallbacks": 0}
_reasons = {}
_lock = threading.Lock()


class Refused(RuntimeError):
    """ttopt does not compile this kernel, and ``TTOPT=strict`` says that nobody else shall."""


@functools.lru_cache(maxsize=None)
def key():
    """What Triton's cache keys get, so that its caches tell our kernels from its own. A constant of the process."""
    text = f"ttopt-{_ttopt.__version__}-{build()}"
    return text, text


def stats():
    """How many kernels were compiled here, how many were left to Triton, and why."""
    with _lock:
        return {**_counts, "reasons": dict(_reasons)}


def _hook(*args, **kwargs):
    """What Triton calls: without arguments for the key, else with the stages of a backend to change."""
    before = _state["before"]
    if not args and not kwargs:
        if before is None:
            return key()
        return tuple(mine + theirs for mine, theirs in zip(key(), before()))
    if before is not None:
        before(*args, **kwargs)
    _replace_stages(*args, **kwargs)


def _replace_stages(backend, stages, options, language=None, capability=None):
    assembly = {"cuda": "ptx", "hip": "amdgcn"}.get(backend.target.backend)
    ours = {"TRITON": ("ttgir", "llir", assembly), "GLUON": ("llir", assembly)}.get(getattr(language, "name", "TRITON"), ())
    if not ours or any(name not in stages for name in ours):
        return
    compilation = _Compilation(backend, options, assembly, dict(stages))
    for name in ours:
        stages[name] = functools.partial(compilation.run, name)
    if "cubin" in stages:
        stages["cubin"] = compilation.assemble


# Options that change what a kernel computes, or are instrumentation, and that we do not have.
_REFUSED = {
    "instrumentation_mode": "",
    "fpsan_homomorphic_casts": False,
    "clc": False,
    "min_shared_mem": None,
    "llvm_fn_attrs": (),
    "wgp_cu_mode": "wgp",
    "allow_flush_denorm": False,
}


def _refusal(options):
    for name, neutral in _REFUSED.items():
        value = getattr(options, name, neutral)
        if value != neutral and value not in (None, "", ()):
            return f"the option {name}={value!r} is not supported"
    try:
        from triton import knobs
    except ImportError:
        return None
    compilation = getattr(knobs, "compilation", None)
    if getattr(compilation, "use_ir_loc", None):
        return "USE_IR_LOC replaces locations of Triton's own modules"
    if getattr(compilation, "enable_asan", False):
        return "the address sanitizer is not supported"
    if getattr(compilation, "instrumentation_mode", ""):
        return "instrumentation is not supported"
    return None


def _launcher_rounds():
    """Whether this Triton's launcher passes `round_f32_to_tf32` with the parts of a descriptor, as ttopt's kernels expect."""
    try:
        from triton.backends import driver

        return "round_f32_to_tf32" in driver.decompose_descriptor.__code__.co_names
    except (ImportError, AttributeError):
        return False


@functools.lru_cache(maxsize=None)
def _prepare_llvm():
    """What Triton's stage llir does for the stages behind it, which assemble AMD's code."""
    from triton._C.libtriton import llvm

    getattr(llvm, "init_targets", lambda: None)()


class _Compilation:
    """The stages of one kernel. What the first of them makes serves the others."""

    def __init__(self, backend, options, assembly, originals):
        self.backend = backend
        self.options = options
        self.assembly = assembly
        self.originals = originals
        self.made = {}
        self.second = None
        self.fallen_back = None

    def run(self, stage, source, metadata):
        if self.fallen_back is None and self._can_take(stage, source):
            try:
                return self._take(stage, source, metadata)
            except CompileError as error:
                self._fall_back(str(error).splitlines()[0] if str(error) else "unknown error", source, error)
            except Refused as error:
                self._fall_back(str(error), source, error)
        return self.originals[stage](source, metadata)

    def _can_take(self, stage, source):
        """Whether the stage's input is IR of ours, or IR that we read."""
        if stage == self.assembly:
            return source is self.made.get("llir") or source == self.made.get("llir")
        return True

    def _fall_back(self, reason, source, error):
        mode = _state["mode"]
        name = _kernel_name(source)
        with _lock:
            _counts["fallbacks"] += 1
            _reasons[reason] = _reasons.get(reason, 0) + 1
        if mode == "strict":
            _raise_out_of_resources(reason)
            raise Refused(f"ttopt does not compile {name}: {reason}") from error
        self.fallen_back = reason
        if not isinstance(source, str):
            log.warning("%s is left to Triton: %s", name, reason)
            return
        raise Refused(f"ttopt cannot go on with {name}, and Triton cannot either: {reason}") from error

    def _take(self, stage, source, metadata):
        """What a stage makes; compiles to the end where the input is not what we made ourselves."""
        before = {"llir": "ttgir", self.assembly: "llir"}.get(stage)
        if before is None or self.made.get(before) is None or source != self.made[before]:
            self._compile(source, metadata)
        self._describe(metadata)
        return self.made[stage]

    def _compile(self, source, metadata):
        refusal = _refusal(self.options)
        if refusal:
            raise Refused(refusal)
        options, text = self.options, source if isinstance(source, str) else str(source)
        is_cuda = self.assembly == "ptx"
        target = f"cuda:{self._capability()}" if is_cuda else f"hip:{options.arch}"
        libraries = dict(options.extern_libs or ())
        known = {"libdevice": libraries.pop("libdevice", None)}
        if not is_cuda and "ocml" in libraries:
            known["device_libraries"] = str(Path(libraries.pop("ocml")).parent)
            libraries.pop("ockl", None)
        kernel = compile(
            text,
            target=target,
            emit="asm",
            name=_kernel_name(source),
            locations=True,
            second=is_cuda,
            num_warps=options.num_warps,
            num_stages=max(1, options.num_stages),
            num_ctas=options.num_ctas,
            max_registers=getattr(options, "maxnreg", None),
            waves_per_eu=getattr(options, "waves_per_eu", None) or None,
            fp_fusion=options.enable_fp_fusion,
            flush_denormals=getattr(options, "enable_reflect_ftz", True),
            all_tensor_maps=is_cuda and not _launcher_rounds(),
            libraries=list(libraries.values()),
            **{name: path for name, path in known.items() if path},
        )
        facts = kernel.metadata
        if is_cuda and not facts["tensordesc_meta"] and not _launcher_rounds() and _passes_descriptors(text):
            raise Refused("descriptors became pointers, which this version's launcher passes otherwise")
        if not is_cuda:
            _prepare_llvm()
        made = {stage: kernel.asm[stage] for stage in ("ttgir", "llir", self.assembly)}
        made[self.assembly] = self._finish(made[self.assembly])
        self.facts, self.made = facts, made
        self.second = kernel.second and self._finish(kernel.second)
        with _lock:
            _counts["compiled"] += 1

    def assemble(self, source, metadata):
        """Triton's assembler, and again for other texts that may be better (`best_text`).

        What the assembler refuses of these is left, with a warning.
        """
        theirs = self.originals["cubin"]
        cubin = theirs(source, metadata)
        if source != self.made.get("ptx"):
            return cubin

        def again(text):
            try:
                return theirs(text, dict(metadata))
            except Exception as error:
                log.warning("other text for a kernel is left: %s", error)
                return None

        # Whoever says how many registers a thread may have says how many CTAs there are.
        keeps_ctas = bool(getattr(self.options, "maxnreg", None))
        target = f"cuda:{self._capability()}"
        return _ttopt.best_binary(source, cubin, target, metadata.get("shared"), keeps_ctas, again, self.second)

    def _capability(self):
        match = re.fullmatch(r"sm_?(\d+)a?", str(getattr(self.options, "arch", None) or ""))
        return int(match.group(1)) if match else int(self.backend.target.arch)

    def _finish(self, assembly):
        """PTX is of the version that the caller asks for, or one that Triton's assembler reads."""
        if self.assembly != "ptx":
            return assembly
        version = getattr(self.options, "ptx_version", None)
        # Whatever runs on these GPUs reads older text.
        if not version and ".version 8.6\n" in assembly:
            from triton.backends.nvidia.compiler import get_ptx_version_from_options

            version = min(86, get_ptx_version_from_options(self.options, self._capability()))
        return _ttopt.in_version(assembly, version) if version else assembly

    def _describe(self, metadata):
        """What Triton's own stages write for launchers, drivers and users."""
        facts = self.facts
        metadata["name"] = facts["name"]
        metadata["num_warps"] = facts["num_warps"]
        metadata["shared"] = facts["shared"]
        metadata["tmem_size"] = 0 if self.assembly == "ptx" else None
        metadata["global_scratch_size"] = facts["global_scratch_size"]
        metadata["global_scratch_align"] = facts["global_scratch_align"]
        metadata["profile_scratch_size"] = facts["profile_scratch_size"]
        metadata["profile_scratch_align"] = 1
        metadata["tensordesc_meta"] = facts["tensordesc_meta"]
        metadata["compiled_by"] = key()[0]


def _raise_out_of_resources(reason):
    """Too large a tile is what Triton's autotuner expects and skips."""
    needs = re.search(r"needs (\d+) bytes of shared memory, \S+ has (\d+)", reason)
    if needs:
        from triton.runtime.errors import OutOfResources

        raise OutOfResources(int(needs.group(1)), int(needs.group(2)), "shared memory")


def _kernel_name(source):
    """The kernel's symbol, for messages."""
    try:
        return source.get_entry_func_name()
    except AttributeError:
        match = re.search(r"tt\.func public @(\"[^\"]*\"|[\w$.]+)", source if isinstance(source, str) else str(source))
        return match.group(1) if match else "a kernel"


def _passes_descriptors(text):
    head = re.search(r"tt\.func public @.*", text)
    return bool(head) and "!tt.tensordesc" in head.group(0)


def enable(strict=None):
    """Compiles kernels of this process, and of those that it starts, with ttopt.

    ``strict``: whether a kernel that ttopt refuses is an error. Kernels that were compiled before stay as they are.
    """
    import triton
    from triton import knobs

    runtime = type(knobs.runtime)
    if not hasattr(runtime, "add_stages_inspection_hook"):
        raise RuntimeError(f"Triton {triton.__version__} cannot be extended by ttopt: it takes 3.6 to 3.9")
    if strict is None:
        strict = os.environ.get("TTOPT") == "strict"
    if _state["mode"] == "off":
        current = knobs.runtime.add_stages_inspection_hook
        _state["before"] = current if current is not _hook else None
        # The class keeps it where copies of the settings are made, as tests of Triton do.
        runtime.add_stages_inspection_hook = staticmethod(_hook)
        knobs.runtime.__dict__.pop("add_stages_inspection_hook", None)
        _state["patched"] = _extend_keys()
    _state["mode"] = "strict" if strict else "on"
    os.environ["TTOPT"] = "strict" if strict else "1"
    from . import _autoload  # noqa: F401  (tells Inductor's caches apart)

    torch = sys.modules.get("torch")
    config = getattr(getattr(torch, "compiler", None), "config", None)
    if config is not None and "ttopt" not in getattr(config, "cache_key_tag", "ttopt"):
        config.cache_key_tag += "ttopt"


def _extend_keys():
    """Triton 3.6 does not ask the hook for a key: there the key of each backend gets it."""
    import triton.compiler.compiler as compiler

    if "add_stages_inspection_hook" in compiler.compile.__code__.co_names:
        return ()
    patched = []
    for backend in compiler.backends.values():
        original = backend.compiler.hash
        backend.compiler.hash = functools.wraps(original)(lambda self, original=original: f"{original(self)}-{key()[0]}")
        patched.append((backend.compiler, original))
    return tuple(patched)


def disable():
    """Leaves kernels to Triton again. Those that were compiled stay as they are."""
    from triton import knobs

    if _state["mode"] == "off":
        return
    type(knobs.runtime).add_stages_inspection_hook = None
    if _state["before"] is not None:
        knobs.runtime.add_stages_inspection_hook = _state["before"]
    for compiler, original in _state["patched"]:
        compiler.hash = original
    _state.update(mode="off", before=None, patched=())
    os.environ["TTOPT"] = "0"


def _enable_from_environment():
    if os.environ.get("TTOPT", "0") in ("", "0"):
        return
    try:
        enable()
    except Exception as error:  # A program that would run without us must run with us.
        if os.environ.get("TTOPT") == "strict":
            raise
        log.warning("ttopt is not enabled: %s", error)
