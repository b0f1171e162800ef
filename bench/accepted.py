"""Whether Triton 3.9 lowers our TTGIR: each module of the corpus for each target through its make_llir.

TTOPT_BIN_DIR has our binaries; run by a python with triton 3.9. Where Triton refuses our TTGIR it is asked
to compile the kernel by itself, too. Exits with 1 where it refuses ours alone.

`accepted.py DIR` takes the modules of DIR, *.ttir, instead; those without a launch, *.json, have 4 warps.
`accepted.py --write DIR` writes the TTGIR that Triton makes of the corpus instead, with its pipeliner for three
stages: NAME.cuda_80.ttgir, NAME.cuda_90.ttgir.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

from conversions import CORPUS, ROOT, TARGETS
from triton._C.libtriton import ir
from triton.backends.compiler import GPUTarget, Language
from triton.compiler.compiler import make_backend


def compile_by_triton(path, target, launch, stages, num_stages=1):
    """What Triton makes of a module by some of its stages; raises or aborts where it cannot."""
    kind, chip = target.split(":")
    gpu = GPUTarget("cuda", int(chip), 32) if kind == "cuda" else GPUTarget("hip", chip, 64)
    backend = make_backend(gpu)
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    module = ir.parse_mlir_module(str(path), context)
    module.context = context
    clusters = {"num_ctas": launch["num_ctas"]} if target == "cuda:90" else {}
    options = backend.parse_options({"num_warps": launch["num_warps"], "num_stages": num_stages, **clusters})
    metadata = {"target": gpu, **vars(options)}
    known = {}
    backend.add_stages(known, options, Language.TRITON)
    for stage in stages:
        module = known[stage](module, metadata)
    return str(module)


def succeeds(path, target, launch):
    """Whether Triton compiles a module to LLVM IR, in a process of its own, whose messages nobody sees."""
    child = os.fork()
    if child:
        return os.waitpid(child, 0)[1] == 0
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)
    try:
        stages = ["ttir", "ttgir", "llir"] if path.suffix == ".ttir" else ["llir"]
        compile_by_triton(path, target, launch, stages)
    except BaseException:
        os._exit(1)
    os._exit(0)


def write(folder):
    folder.mkdir(parents=True, exist_ok=True)
    for path in sorted(CORPUS.glob("*.ttir")):
        launch = json.loads(path.with_suffix(".json").read_text())
        for target in ("cuda:80", "cuda:90"):
            text = compile_by_triton(path, target, launch, ["ttir", "ttgir"], num_stages=3)
            (folder / f"{path.stem}.{target.replace(':', '_')}.ttgir").write_text(text)


def main(modules):
    binaries = pathlib.Path(os.environ.get("TTOPT_BIN_DIR", ROOT / "target" / "release"))
    refused = []
    with tempfile.TemporaryDirectory() as folder:
        output = pathlib.Path(folder) / "out.ttgir"
        for target in TARGETS:
            accepted, neither, kernels = 0, [], sorted(modules.glob("*.ttir"))
            for path in kernels:
                launch = {"num_warps": 4, "num_ctas": 1}
                if path.with_suffix(".json").exists():
                    launch = json.loads(path.with_suffix(".json").read_text())
                command = [binaries / "ttc", path, "--target", target, "--emit", "ttgir", "-o", output]
                command += ["--num-warps", launch["num_warps"], "--num-ctas", launch["num_ctas"]]
                subprocess.run([str(part) for part in command], check=True)
                if succeeds(output, target, launch):
                    accepted += 1
                elif succeeds(path, target, launch):
                    refused.append(f"{path.stem} ({target})")
                else:
                    neither.append(path.stem)
            print(f"{target}: {accepted} of {len(kernels)}; not its own either: {', '.join(neither) or 'none'}", flush=True)
    print(f"refused though Triton compiles the kernel itself: {', '.join(refused) or 'none'}")
    sys.exit(bool(refused))


if __name__ == "__main__":
    arguments = sys.argv[1:]
    write(pathlib.Path(arguments[1])) if arguments[:1] == ["--write"] else main(pathlib.Path(*arguments or [CORPUS]))
