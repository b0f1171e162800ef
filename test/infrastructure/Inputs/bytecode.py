"""MLIR bytecode through the tools: what is written is read again, and what is broken is refused.

Usage: bytecode.py round_trip CORPUS DIRECTORY TTOPT TTC PLUGIN
       bytecode.py broken CORPUS DIRECTORY TTOPT TTC PLUGIN
"""

import concurrent.futures
import pathlib
import random
import subprocess
import sys


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


def check(tools, path, directory):
    """What of a module does not survive, by name."""
    wrong = []

    def same(what, one, other):
        if one != other:
            wrong.append(f"{path.name}: {what}")

    def trip(stage, source):
        """The file as bytecode, and that it says what the text says to all that read it."""
        with_locations = text_of(tools.ttopt, source, "--mlir-print-debuginfo")
        files = []
        for name, command in [("ttopt", tools.ttopt), ("mlir-opt", tools.stock)]:
            file = directory / f"{path.stem}.{stage}.{name}.mlirbc"
            text_of(command, source, "--verify-roundtrip", "--emit-bytecode", "-o", file)
            same(f"{stage}: {name} writes no bytecode", file.read_bytes()[:4], b"ML\xefR")
            files.append(file)
        same(f"{stage}: the tools write different bytes", files[0].read_bytes(), files[1].read_bytes())
        # Of the same bytes: it is enough that one of them is read.
        read = text_of(tools.ttopt, files[0], "--mlir-print-debuginfo")
        same(f"{stage}: ttopt reads something else", with_locations, read)
        return files[0]

    ttir = trip("ttir", path)
    ttgir = directory / f"{path.stem}.ttgir"
    ttgir.write_bytes(text_of(tools.ttc, path, "--emit", "ttgir", "-o", "-"))
    same("ttc reads something else from a file", text_of(tools.ttc, ttir, "--emit", "ttgir", "-o", "-"), ttgir.read_bytes())
    piped = run(*tools.ttc, "-", "--emit", "ttgir", "-o", "-", data=ttir.read_bytes())
    same("ttc reads something else from stdin", piped.stdout, ttgir.read_bytes())
    lower = trip("ttgir", ttgir)
    same("ttc reads something else of TTGIR", text_of(tools.ttc, lower, "--emit", "ttgir", "-o", "-"), ttgir.read_bytes())
    return wrong


def round_trip(corpus, directory, tools):
    paths = sorted(corpus.glob("*.ttir"))
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        results = list(pool.map(lambda path: check(tools, path, directory), paths))
    for result in results:
        print("\n".join(result), end="\n" if result else "")
    print(f"{len(paths)} modules, {sum(map(len, results))} differences")


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
