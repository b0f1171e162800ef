"""corpus_layouts.py TTC TTOPT CORPUS TESTS TARGET...: determinism and idempotence of the layout engine.

Compiles the kernels of a corpus to TTGIR for each target, for the first one twice, and runs the engine on what
came out. Runs it twice on all inputs of lit tests in a folder that it can work on.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

ENGINE = "--tritongpu-remove-layout-conversions"


def run(*command):
    result = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    return result.stdout, result.stderr if result.returncode else None


def compile(ttc, path, target):
    launch = json.loads(path.with_suffix(".json").read_text())
    out, error = run(ttc, path, "--target", target, "--num-warps", launch["num_warps"], "--emit", "ttgir")
    if error is not None:
        sys.exit(f"{path} for {target}: {error}")
    return out


def changed(ttopt, modules):
    """The first line that the engine changes in text of several modules, as it was and as it is then."""
    with tempfile.NamedTemporaryFile("w", suffix=".mlir") as file:
        file.write(modules)
        file.flush()
        (before, _), (after, error) = (run(ttopt, file.name, "-split-input-file", *p) for p in ([], [ENGINE]))
    lines = zip(before.splitlines() + ["the end"], after.splitlines() + ["the end"])
    return error or next((f"{a}\n{b}" for a, b in lines if a != b), None)


def main():
    ttc, ttopt, corpus, tests, *targets = sys.argv[1:]
    failed, kernels = [], sorted(pathlib.Path(corpus).glob("*.ttir"))
    for target in targets:
        modules = [compile(ttc, path, target) for path in kernels]
        if target == targets[0]:
            again = zip(kernels, modules)
            failed += [f"two runs differ: {path}" for path, text in again if compile(ttc, path, target) != text]
        if change := changed(ttopt, "// -----\n".join(modules)):
            failed.append(f"the engine changes its own work for {target}:\n{change}")
    inputs = 0
    for path in sorted(pathlib.Path(tests).glob("*.mlir")):
        once, error = run(ttopt, path, "-split-input-file", ENGINE)
        if error is None:
            inputs += 1
            if change := changed(ttopt, once):
                failed.append(f"a second run changes something in {path}:\n{change}")
    print("\n".join(failed) or f"{len(kernels)} kernels and {inputs} files agree")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
