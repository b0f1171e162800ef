#!/usr/bin/env python3
"""What `./dev layout` compiles to count what code runs, and to see that code which was moved makes the same.

    training.py FOLDER            prints jobs for `ttc --batch`
    training.py FOLDER --by FILE  does these jobs by a library: libttopt.so, or the extension module of the Python package

Jobs are the kernels of bench/kernels, none of which the tables of compile times have, for GPUs of three kinds, but for those
that call NVIDIA's libdevice, which need not be there. What they make goes to FOLDER.
"""
import argparse
import concurrent.futures
import ctypes
import importlib.machinery
import importlib.util
import json
import pathlib
import sys

KERNELS = pathlib.Path(__file__).resolve().parent / "kernels"
PACKAGE = pathlib.Path(__file__).resolve().parent.parent / "python" / "ttopt"
TARGETS = ["hip:gfx942", "hip:gfx1100", "cuda:90"]
OPTIONS = ["num_warps", "num_stages", "num_ctas"]


def jobs(out):
    for path in sorted(KERNELS.glob("*.ttir")):
        if "__nv_" in path.read_text():
            continue
        launch = json.loads(path.with_suffix(".json").read_text())
        options = {key: launch[key] for key in OPTIONS}
        for target in TARGETS:
            output = out / f"{path.stem}.{target.replace(':', '_')}"
            yield {"input": str(path), "output": str(output), "target": target, "emit": "asm"} | options


class Options(ctypes.Structure):
    """The first fields of TtoptOptions: what a caller does not know is the default."""

    _fields_ = [
        ("size", ctypes.c_size_t), ("target", ctypes.c_char_p), ("num_warps", ctypes.c_uint32),
        ("num_stages", ctypes.c_uint32), ("num_ctas", ctypes.c_uint32), ("stop_after", ctypes.c_uint32),
        ("flags", ctypes.c_uint32), ("max_registers", ctypes.c_uint32),
    ]


def of_c(path):
    """A function that compiles a job by libttopt."""
    find_companions, stage_asm = 1 << 5, 4
    library = ctypes.CDLL(path)
    for name in ["ttoptSessionCreate", "ttoptResultArtifact"]:
        getattr(library, name).restype = ctypes.c_void_p
    session = ctypes.c_void_p(library.ttoptSessionCreate())

    def compile(job):
        text, result, size = pathlib.Path(job["input"]).read_bytes(), ctypes.c_void_p(), ctypes.c_size_t()
        options = Options(ctypes.sizeof(Options), job["target"].encode(), *(job[key] for key in OPTIONS), 0, find_companions)
        status = library.ttoptCompile(
            session, text, ctypes.c_size_t(len(text)), job["input"].encode(), ctypes.byref(options), ctypes.byref(result))
        if status:
            raise RuntimeError(f"{job['input']} for {job['target']}: status {status}")
        made = ctypes.string_at(library.ttoptResultArtifact(result, stage_asm, ctypes.byref(size)), size.value)
        library.ttoptResultDestroy(result)
        return made

    return compile


def of_python(path):
    """A function that compiles a job by the Python package with this extension module."""
    loader = importlib.machinery.ExtensionFileLoader("ttopt._ttopt", path)
    extension = importlib.util.module_from_spec(importlib.util.spec_from_loader("ttopt._ttopt", loader))
    sys.modules["ttopt._ttopt"] = extension
    loader.exec_module(extension)
    sys.path.insert(0, str(PACKAGE.parent))
    import ttopt

    def compile(job):
        options = {key: job[key] for key in OPTIONS}
        made = ttopt.compile(pathlib.Path(job["input"]), target=job["target"], **options).asm
        return (made.get("ptx") or made["amdgcn"]).encode()

    return compile


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", metavar="FOLDER", type=pathlib.Path)
    parser.add_argument("--by", metavar="FILE", type=pathlib.Path)
    parser.add_argument("--first", metavar="N", type=int, help="no more than so many jobs")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    todo = list(jobs(args.out))[: args.first]
    if not args.by:
        for job in todo:
            print(json.dumps(job))
        return
    compile = (of_python if args.by.name.startswith("_ttopt") else of_c)(str(args.by.absolute()))
    with concurrent.futures.ThreadPoolExecutor() as pool:
        list(pool.map(lambda job: pathlib.Path(job["output"]).write_bytes(compile(job)), todo))


if __name__ == "__main__":
    main()
