"""corpus_layouts.py TTC TTOPT CORPUS TARGET...: determinism and idempotence of the layout engine."""

import json
import pathlib
import subprocess
import sys
import tempfile


def run(*command):
    result = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if result.returncode:
        sys.exit(f"{' '.join(map(str, command))}: {result.stderr}")
    return result.stdout


def main():
    ttc, ttopt, corpus, *targets = sys.argv[1:]
    failed, kernels = [], sorted(pathlib.Path(corpus).glob("*.ttir"))
    with tempfile.TemporaryDirectory() as folder:
        for target in targets:
            for path in kernels:
                launch = json.loads(path.with_suffix(".json").read_text())
                compile = [ttc, path, "--target", target, "--num-warps", launch["num_warps"], "--emit", "ttgir"]
                once = run(*compile)
                if run(*compile) != once:
                    failed.append(f"{path.stem} for {target}: two runs differ")
                file = pathlib.Path(folder) / "once.mlir"
                file.write_text(once)
                passes = "tritongpu-remove-layout-conversions,tritongpu-reorder-instructions,canonicalize,cse"
                again = run(ttopt, file, f"--pass-pipeline=builtin.module({passes})")
                if again.strip() != run(ttopt, file).strip():
                    failed.append(f"{path.stem} for {target}: a second run changes something")
    print("\n".join(failed) or f"{len(kernels)} kernels agree")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
