"""TTIR and TTGIR to any later stage."""

import functools
import json
import os
from dataclasses import dataclass, field
from pathlib import Path

from . import _companions, _ttopt

Cancellation = _ttopt.Cancellation


@functools.lru_cache(maxsize=None)
def build():
    """What tells builds of the compiler apart: the linker's build id, or the file's size and time."""
    path = Path(_ttopt.__file__)
    with path.open("rb") as file:
        head = file.read(1 << 16)
    # A note of type 3, NT_GNU_BUILD_ID (LSB, "Note Sections"): sizes of name and contents, type, name, contents.
    at = head.find(b"\x03\x00\x00\x00GNU\x00")
    if at >= 8:
        size = int.from_bytes(head[at - 4 : at], "little")
        return head[at + 8 : at + 8 + size].hex()
    facts = path.stat()
    return f"{facts.st_size:x}-{facts.st_mtime_ns:x}"


def contents(source):
    """The bytes of text, bytes or a file."""
    if isinstance(source, os.PathLike):
        return Path(source).read_bytes()
    if isinstance(source, str):
        return source.encode()
    # Not bytes(source), which makes zeros of a number.
    if isinstance(source, (bytes, bytearray, memoryview)):
        return bytes(source)
    raise TypeError(f"a kernel is text, bytes or a path, not {type(source).__name__}")


@dataclass(frozen=True)
class Diagnostic:
    """A message at a place. Lines and columns count from 1; 0 where nobody knows."""

    severity: str
    message: str
    file: str = ""
    line: int = 0
    column: int = 0
    end_line: int = 0
    end_column: int = 0
    notes: tuple = ()

    @classmethod
    def _of(cls, raw):
        return cls(**{**raw, "notes": tuple(cls._of(note) for note in raw["notes"])})

    def __str__(self):
        place = f"{self.file}:{self.line}:{self.column}: " if self.file else ""
        return "\n".join([f"{place}{self.severity}: {self.message}", *map(str, self.notes)])


class CompileError(RuntimeError):
    """Compilation failed. ``diagnostics`` say why; ``kind`` is diagnosed, cancelled or internal."""

    def __init__(self, message, kind, diagnostics):
        super().__init__(message)
        self.kind = kind
        self.diagnostics = diagnostics

    def __reduce__(self):
        return CompileError, (str(self), self.kind, self.diagnostics)


class Schedules(list):
    """The software pipelines of loops, or why they have none, as ``ttc --schedules`` has them; a picture in a notebook."""

    def __init__(self, json_text, svg):
        super().__init__(json.loads(json_text))
        self.svg = svg

    def _repr_svg_(self):
        return self.svg


@dataclass(frozen=True)
class Kernel:
    """What was compiled. ``asm`` has the stages: ttir, ttgir, llir, ptx or amdgcn, cubin or hsaco, sass."""

    asm: dict = field(repr=False)
    metadata: dict
    resources: dict
    seconds: dict = field(repr=False)
    diagnostics: tuple = field(repr=False)
    schedules: "Schedules" = field(default=None, repr=False)
    estimate: dict = field(default=None, repr=False)
    second: str = field(default=None, repr=False)

    @property
    def name(self):
        """The kernel's symbol."""
        return self.metadata["name"]

    def dump(self, folder):
        """Writes each stage to ``folder/NAME.STAGE``, as ``ttc --dump`` does; returns the paths by stage."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        paths = {stage: folder / f"{self.metadata.get('name', 'module')}.{stage}" for stage in self.asm}
        for stage, path in paths.items():
            made = self.asm[stage]
            path.write_bytes(made if isinstance(made, bytes) else made.encode())
        return paths


def _overrides(given):
    """As the extension takes them: stages, names for diagnostics, contents."""
    listed = []
    for stage, source in given.items():
        called = str(source) if isinstance(source, os.PathLike) else f"<{stage}>"
        listed.append((stage, called, contents(source)))
    return listed


def _launch(given):
    """A launch as JSON: sizes of the grid, and integer arguments by their numbers."""
    unknown = set(given) - {"grid", "args"}
    if unknown:
        raise ValueError(f"a launch has grid and args, not {', '.join(sorted(unknown))}")
    launch = {}
    if given.get("grid") is not None:
        sizes = [int(size) for size in given["grid"]]
        launch["grid"] = sizes + [1] * (3 - len(sizes))
    values = {int(at): int(value) for at, value in dict(given.get("args") or {}).items()}
    launch["args"] = [{"value": values[at]} if at in values else {} for at in range(max(values, default=-1) + 1)]
    return json.dumps(launch)


def compile(
    source, *, target=None, emit="asm", name=None, cancellation=None, overrides=None, estimate=None, **options
):
    """Compiles TTIR or TTGIR: text, bytecode, or a path.

    ``target`` is ``cuda:80``, ``cuda:90``, ``hip:gfx942`` and so on; without one, what the module says, or ``cuda:90``.
    ``emit`` is the last stage: ttir, ttgir, llir, asm (ptx, amdgcn), bin (cubin, hsaco) or sass. Options: ``num_warps``,
    ``num_stages``, ``num_ctas``, ``explain``, ``schedules``, ``verify_each``, ``all_tensor_maps``, ``locations``, ``line_info``, ``second``, ``max_registers``,
    ``waves_per_eu``, ``fp_fusion``, ``flush_denormals``, ``ptxas_options``, ``libraries`` (bitcode files), and ``ptxas``, ``nvdisasm``, ``libdevice``,
    ``lld``, ``device_libraries`` (paths). Other threads run meanwhile.

    ``estimate`` is a launch, ``{"grid": (gx, gy, gz), "args": {number: value}}`` as far as it is known, or ``{}``: then the
    kernel has what the objective counts for a program of it, as ``ttc --estimate``.

    With ``second`` the kernel has other PTX for the same launch beside the first where registers decide which of the two is better.

    ``overrides`` maps stages (ttir, ttgir, llir, ptx, amdgcn) to text or paths that take the place of what would be made; what
    follows is made from them. They must be of the same kernel, target and launch, and one that is not used is an error.
    """
    if isinstance(source, os.PathLike):
        name = name or str(source)
    data = contents(source)
    given = {**_companions.all_of_them(), **options, "target": target, "emit": emit}
    if overrides:
        given["overrides"] = _overrides(overrides)
    if estimate is not None:
        given["estimate"] = _launch(estimate)
    raw = _ttopt.compile(data, name or "<ttir>", given, cancellation)
    diagnostics = tuple(Diagnostic._of(one) for one in raw["diagnostics"])
    if "error" in raw:
        raise CompileError(raw["error"], raw["kind"], diagnostics)
    metadata = json.loads(raw["metadata"]) if raw["metadata"] else {}
    is_amd = metadata.get("target", "").startswith("hip:")
    vendor = {"asm": "amdgcn", "bin": "hsaco"} if is_amd else {"asm": "ptx", "bin": "cubin"}
    asm = {vendor.get(stage, stage): made for stage, made in raw["artifacts"].items()}
    schedules = Schedules(*raw["schedules"]) if "schedules" in raw else None
    estimated = json.loads(raw["estimate"]) if "estimate" in raw else None
    used, second = raw.get("resources") or {}, raw.get("second")
    return Kernel(asm, metadata, used, raw["seconds"], diagnostics, schedules, estimated, second)


class Explanation(str):
    """Text that a notebook shows as it is."""

    def _repr_html_(self):
        import html

        return f"<pre>{html.escape(self)}</pre>"


def explain(source, **options):
    """What was chosen for a kernel and why: its size first, then remarks by source line."""
    kernel = source if isinstance(source, Kernel) else compile(source, explain=True, **options)
    facts = kernel.metadata
    lines = []
    if facts:
        lines.append(
            f"kernel {facts['name']} for {facts['target']}: {facts['num_warps']} warps = {facts['threads']} threads, "
            f"{facts['shared']} bytes of shared memory"
        )
    if kernel.resources:
        used = kernel.resources
        lines.append(
            f"{used['registers']} registers a thread, {used['spill_stores']} bytes of spill stores, "
            f"{used['spill_loads']} bytes of spill loads"
        )
    remarks = [one for one in kernel.diagnostics if one.severity == "remark"]
    for one in sorted(remarks, key=lambda one: (one.file, one.line)):
        lines.append(str(one))
    return Explanation("\n".join(lines))
