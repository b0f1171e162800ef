"""MLIR bytecode through the tools: what is written is read again, and what is broken is refused.

Usage: bytecode.py round_trip CORPUS DIRECTORY TTOPT TTC PLUGIN
       bytecode.py broken CORPUS DIRECTORY TTOPT TTC PLUGIN
"""

import concurrent.futures
import json
import pathlib
import random
import subprocess
import sys

MARKER = "// -----"


def run(*command, data=None):
    return subprocess.run(command, input=data, capture_output=True, timeout=240)


class Tools:
    def __init__(self, ttopt, ttc, plugin):
        self.ttopt = [ttopt]
        self.ttc = [ttc]
        self.stock = ["mlir-opt", f"--load-dialect-plugin={plugin}"]


def text_of(command, path, *options):
    result = run(*command, path, *options)
    if result.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))} {path}: {result.stderr.decode(errors='replace')[:400]}")
    return result.stdout


def parts_of(command, modules, *options):
    """What a tool makes of each of several modules, which it reads and writes in one go."""
    command = [*command, "-", "--split-input-file", f"--output-split-marker={MARKER}", *options]
    result = run(*command, data=f"\n{MARKER}\n".encode().join(modules))
    if result.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))}: {result.stderr.decode(errors='replace')[:400]}")
    parts = result.stdout.split(f"{MARKER}\n".encode())
    if len(parts) != len(modules):
        raise RuntimeError(f"{' '.join(map(str, command))}: {len(modules)} modules became {len(parts)}")
    return parts


def ttgir_of(tools, directory, paths):
    """The TTGIR of each, which `ttc` makes of all of them in one go."""
    outputs = [directory / f"{path.name}.again.ttgir" for path in paths]
    jobs = [json.dumps({"input": str(path), "output": str(output)}) for path, output in zip(paths, outputs)]
    result = run(*tools.ttc, "--batch", "-", "--emit", "ttgir", data="\n".join(jobs).encode())
    wrong = [line[:400] for line in result.stdout.decode().splitlines() if not json.loads(line)["ok"]]
    if result.returncode or wrong:
        raise RuntimeError(f"ttc --batch: {result.stderr.decode(errors='replace')[:400]} {wrong[:1]}")
    return [output.read_bytes() for output in outputs]


def round_trip(corpus, directory, tools):
    names = [path.stem for path in sorted(corpus.glob("*.ttir"))]
    wrong = []

    def same(what, all_of_one, all_of_other):
        wrong.extend(f"{name}: {what}" for name, a, b in zip(names, all_of_one, all_of_other, strict=True) if a != b)

    def trip(stage, texts):
        """Modules as bytecode, in files, which say what the texts say to all that read them."""
        files = [directory / f"{name}.{stage}.mlirbc" for name in names]
        ours, stock = [parts_of(tool, texts, "--verify-roundtrip", "--emit-bytecode") for tool in (tools.ttopt, tools.stock)]
        same(f"{stage}: no bytecode", [data[:4] for data in ours], [b"ML\xefR"] * len(names))
        same(f"{stage}: the tools write different bytes", ours, stock)
        for file, data in zip(files, ours):
            file.write_bytes(data)
        # Of the same bytes: it is enough that one of them is read.
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            read = list(pool.map(lambda file: text_of(tools.ttopt, file, "--mlir-print-debuginfo"), files))
        same(f"{stage}: ttopt reads something else", parts_of(tools.ttopt, texts, "--mlir-print-debuginfo"), read)
        return files

    sources = [corpus / f"{name}.ttir" for name in names]
    ttir = trip("ttir", [source.read_bytes() for source in sources])
    ttgir = ttgir_of(tools, directory, sources)
    same("ttc reads something else", ttgir_of(tools, directory, ttir), ttgir)
    lower = trip("ttgir", ttgir)
    same("ttc reads something else of TTGIR", ttgir_of(tools, directory, lower), ttgir)
    # From the command line and from stdin bytecode is read as from a list of jobs; a few say so.
    for name in ["vector_add", "matmul_desc", "map_scalar_fn", "flash_attn_fwd"]:
        at = names.index(name)
        for what, files in ("TTIR", ttir), ("TTGIR", lower):
            options = ["--emit", "ttgir", "-o", "-"]
            if text_of(tools.ttc, files[at], *options) != ttgir[at]:
                wrong.append(f"{name}: ttc reads something else of {what} from a file")
            if run(*tools.ttc, "-", *options, data=files[at].read_bytes()).stdout != ttgir[at]:
                wrong.append(f"{name}: ttc reads something else of {what} from stdin")
    print("\n".join(wrong), end="\n" if wrong else "")
    print(f"{len(names)} modules, {len(wrong)} differences")


def mutations(data, noise, count):
    """Truncated anywhere, or with a byte changed, removed or doubled."""
    for i in range(count):
        at = noise.randrange(4, len(data))
        yield [
            data[:at],
            data[:at] + bytes([noise.randrange(256)]) + data[at + 1:],
            data[:at] + bytes([data[at] ^ 1 << noise.randrange(8)]) + data[at + 1:],
            data[:at] + data[at + 1:],
            data[:at] + data[at:at + 1] + data[at:],
        ][i % 5]


def broken(corpus, directory, tools):
    noise = random.Random(11)
    cases = []
    for name, emit in [("vector_add", "ttir"), ("matmul_f16", "ttgir"), ("softmax_rows", "ttir")]:
        source = directory / f"{name}.{emit}"
        source.write_bytes(text_of(tools.ttc, corpus / f"{name}.ttir", "--emit", emit, "-o", "-"))
        file = directory / f"{name}.mlirbc"
        text_of(tools.ttopt, source, "--emit-bytecode", "-o", file)
        cases += [(name, data) for data in mutations(file.read_bytes(), noise, 40)]

    def judge(case):
        name, data = case
        for command in [tools.ttopt + ["-"], tools.ttc + ["-", "--emit", "ttir", "-o", "-"]]:
            result = run(*command, data=data)
            error = result.stderr.decode(errors="replace")
            if result.returncode not in [0, 1] or result.returncode == 1 and "error" not in error:
                (directory / "failed.mlirbc").write_bytes(data)
                return f"{name}: {command[0]}: exit code {result.returncode}: {error[:400]!r}"
        return None

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        wrong = [text for text in pool.map(judge, cases) if text]
    print("\n".join(wrong), end="\n" if wrong else "")
    print(f"{len(cases)} inputs, {len(wrong)} wrong")


if __name__ == "__main__":
    corpus, directory = pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
    directory.mkdir(parents=True, exist_ok=True)
    {"round_trip": round_trip, "broken": broken}[sys.argv[1]](corpus, directory, Tools(*sys.argv[4:]))
