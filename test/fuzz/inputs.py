"""Mutated modules, as text and as bytecode, for ttopt and ttc: none may crash, hang, panic or fail in silence.

    inputs.py --ttopt TTOPT --ttc TTC --corpus DIR [--count N] [--first N] [--seed N] [--jobs N] [--keep DIR]

Each input is a kernel of the corpus, in TTIR or in TTGIR, with some of its lines, tokens or bytes changed. It follows
from its number and the seed alone. Half of the inputs go to ttopt (parser, verifier, canonicalize, cse), half to ttc,
for each target by turns: most to layouts or the llvm dialect, some to assembly. What is wrong is printed and, with
--keep, left in a folder. Exits with 1 when anything is.
"""

import argparse
import concurrent.futures
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile

GPUS = ["cuda:80", "cuda:90", "hip:gfx90a", "hip:gfx942", "hip:gfx950", "hip:gfx1100", "hip:gfx1201"]
# Assembly takes most of the time, and little of what an input breaks is left by then.
STAGES = ["llvm", "ttgir", "llvm", "asm", "ttgir", "llvm", "llvmir", "llvm"]
TOKEN = re.compile(r"%?[\w.$#!]+|[^\w\s]")
NUMBERS = ["0", "1", "-1", "2", "3", "7", "16", "31", "64", "127", "255", "4096", "65537", "2147483648", "99999999999999999999"]
TYPES = ["i1", "i8", "i16", "i32", "i64", "f16", "bf16", "f32", "f64", "index", "f8E4M3FN", "!tt.ptr<f32>", "none",
         "tensor<16xf32>", "tensor<*xf32>", "tensor<3x5xi32>", "tensor<f32>", "!ttg.async.token", "vector<4xf32>"]
SECONDS = 60


def mutate_lines(rng, lines):
    i = rng.randrange(len(lines))
    match rng.randrange(5):
        case 0:
            del lines[i]
        case 1:
            lines.insert(rng.randrange(len(lines)), lines[i])
        case 2:
            j = rng.randrange(len(lines))
            lines[i], lines[j] = lines[j], lines[i]
        case 3:
            del lines[i:i + rng.randrange(1, 6)]
        case _:
            del lines[i + 1:]
    return lines or [""]


def mutate_tokens(rng, lines, pool):
    i = rng.randrange(len(lines))
    found = list(TOKEN.finditer(lines[i]))
    if not found:
        return lines
    token = rng.choice(found)
    match rng.randrange(6):
        case 0:
            new = rng.choice(NUMBERS)
        case 1:
            new = rng.choice(TYPES)
        case 2 | 3:
            new = rng.choice(pool)
        case 4:
            new = ""
        case _:
            new = token[0] + rng.choice([",", "<", ">", "[", "}", " x ", '"', "#", "-"])
    lines[i] = lines[i][:token.start()] + new + lines[i][token.end():]
    return lines


def mutated_text(rng, text):
    lines = text.split("\n")
    pool = TOKEN.findall(text)
    for _ in range(rng.choice([1, 1, 1, 2, 3, 6])):
        lines = mutate_lines(rng, lines) if rng.random() < 0.25 else mutate_tokens(rng, lines, pool)
    return "\n".join(lines).encode()


def mutated_bytes(rng, data):
    data = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 4, 16])):
        i = rng.randrange(len(data))
        match rng.randrange(4):
            case 0:
                data[i] ^= 1 << rng.randrange(8)
            case 1:
                data[i] = rng.randrange(256)
            case 2:
                del data[i:i + rng.randrange(1, 5)]
            case _:
                data = data[:max(i, 5)] if rng.random() < 0.2 else data[:i] + bytes([rng.randrange(256)]) + data[i:]
        if not data:
            data = bytearray(b"ML")
    return bytes(data)


def verdict(command, data):
    """What is wrong with how a program takes an input; None when nothing is."""
    try:
        run = subprocess.run(command, input=data, capture_output=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return f"takes longer than {SECONDS} s"
    said = run.stderr.decode(errors="replace")
    if run.returncode < 0 or run.returncode > 128:
        return f"signal {run.returncode}: {said[-600:]}"
    for word in ["panicked at", "internal error", "PLEASE submit a bug report", "LLVM ERROR", "Assertion"]:
        if word in said:
            return f"{word}: {said[-600:]}"
    if run.returncode and "error" not in said:
        return f"exit code {run.returncode}, and no error: {said[-300:]}"
    return None


def seeds(args, folder):
    """Texts and bytecode of the corpus, in TTIR and TTGIR."""
    out = []

    def add(text):
        """A module as (text, bytecode, whether it is in TTGIR), one of the first two None."""
        layouts = "ttg.num-warps" in text
        written = subprocess.run([args.ttopt, "-", "--emit-bytecode"], input=text.encode(), capture_output=True, check=True)
        out.extend([(text, None, layouts), (None, written.stdout, layouts)])

    names = sorted(pathlib.Path(args.corpus).glob("*.ttir"))
    for path in names:
        add(path.read_text())
    for path in names[:: max(1, len(names) // 40)]:
        for target in GPUS:
            run = subprocess.run([args.ttc, path, "--target", target, "--emit", "ttgir"], capture_output=True, text=True)
            if run.returncode == 0:
                add(run.stdout)
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ttopt", default="ttopt")
    parser.add_argument("--ttc", default="ttc")
    parser.add_argument("--corpus", required=True)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0, help="the number of the first input")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--keep", type=pathlib.Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        given = seeds(args, folder)

        def one(number):
            rng = random.Random(args.seed * 1_000_003 + number)
            text, bytecode, layouts = rng.choice(given)
            data = mutated_text(rng, text) if text is not None else mutated_bytes(rng, bytecode)
            if number % 2:
                # The numbers of targets and stages have no common factor: every pair has its turn.
                target, stage = GPUS[number // 2 % len(GPUS)], STAGES[number // 2 % len(STAGES)]
                # What a module in TTGIR is for is its own matter.
                command = [args.ttc, "-", "--emit", stage, "-o", os.devnull] + ([] if layouts else ["--target", target])
            else:
                command = [args.ttopt, "-", "--canonicalize", "--cse", "-o", os.devnull]
            wrong = verdict(command, data)
            return wrong and (number, [str(part) for part in command], data, wrong)

        bad = 0
        with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
            for result in filter(None, pool.map(one, range(args.first, args.first + args.count))):
                number, command, data, wrong = result
                bad += 1
                print(f"input {number}: {' '.join(command)}\n  {wrong}", flush=True)
                if args.keep:
                    args.keep.mkdir(parents=True, exist_ok=True)
                    (args.keep / f"{args.seed}-{number}").write_bytes(data)
    print(f"{args.count} inputs, {bad} wrong")
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
