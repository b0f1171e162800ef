"""Mutated modules, as text and as bytecode, for ttopt and ttc: none may crash, hang, panic or fail in silence.

    inputs.py --ttopt TTOPT --ttc TTC --corpus DIR [--tests DIR] [--count N] [--first N] [--seed N] [--jobs N] [--keep DIR]

Each input is a kernel of the corpus, in TTIR or in TTGIR, with some of its lines, tokens or bytes changed. It follows
from its number and the seed alone. Half of the inputs go to ttopt (parser, verifier, canonicalize, cse), half to ttc,
for each target by turns: most to layouts or the llvm dialect, some to assembly. What is wrong is printed and, with
--keep, left in a folder. Exits with 1 when anything is.

With --tests, inputs are modules of lit tests below that folder instead, mutated so that most of them stay valid: a size,
a type, a layout or an attribute changes wherever it stands, or operations are repeated, left out and given other operands. ttopt runs one of our passes on each, whichever level
of IR that is for, and ttc compiles for a target, whichever the module is for.
"""

import argparse
import concurrent.futures
import functools
import os
import pathlib
import random
import re
import subprocess
import sys

GPUS = ["cuda:80", "cuda:86", "cuda:89", "cuda:90", "cuda:100", "hip:gfx90a", "hip:gfx942", "hip:gfx950", "hip:gfx1100", "hip:gfx1201",
        "hip:gfx1250"]
# Assembly takes most of the time, and little of what an input breaks is left by then.
STAGES = ["llvm", "ttgir", "llvm", "asm", "ttgir", "llvm", "llvmir", "llvm"]
TOKEN = re.compile(r"%?[\w.$#!]+|[^\w\s]")
NUMBERS = ["0", "1", "-1", "2", "3", "7", "16", "31", "64", "127", "255", "4096", "65537", "2147483648", "99999999999999999999"]
TYPES = ["i1", "i8", "i16", "i32", "i64", "f16", "bf16", "f32", "f64", "index", "f8E4M3FN", "!tt.ptr<f32>", "none",
         "tensor<16xf32>", "tensor<*xf32>", "tensor<3x5xi32>", "tensor<f32>", "!ttg.async.token", "vector<4xf32>"]
SECONDS = 60
RESULT = re.compile(r"\s*(%\w+) = ")
# What a back end says, and where in the source that is.
REFUSES = ["refused", "<inline asm>", "LLVM"]
PLACE = re.compile(r"^(?:<unknown>:0|\S+:\d+:\d+): error", re.M)
# Passes of ours begin so, but for one.
OURS = re.compile(r"^ +--((?:convert-triton|triton|allocate-shared)[\w-]*) ", re.M)
# What may stand for what, everywhere in a module at once.
ALIKE = [
    [str(n) for n in (0, 1, 2, 3, 4, 5, 8, 16, 24, 32, 64, 100, 128, 256, 1024, 65536, 2147483648)],
    ["i1", "i8", "i16", "i32", "i64", "i128", "f16", "bf16", "f32", "f64", "f128", "tf32", "f8E4M3FN", "f8E5M2", "f4E2M1FN",
     "index", "!tt.ptr<f16>", "!tt.ptr<i1>", "!tt.ptr<!tt.ptr<f32>>"],
    ["true", "false", "unit", "-1 : i32", "3 : i64", "0 : i32", '"x"', "[1, 2]", "dense<3> : tensor<1xi32>", "dense<[]> : tensor<0xi32>"],
    [f'"{gpu}"' for gpu in ["cuda:70", "hip:gfx906", "", *GPUS]],
]
IS_ALIKE = [re.compile(r"\d+"), re.compile(r"[if]\d+|bf16|f8E\w+|index"), re.compile(r"true|false|-?\d+ : [if]\d+"),
            re.compile(r'"(?:cuda|hip):\w+"')]
DIMS = re.compile(r"(?<=[<x])\d+(?=x)")
LAYOUT = re.compile(r"^(#\w+) = (#.*)$", re.M)
LAYOUTS = [
    "#ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>",
    "#ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 4], warpsPerCTA = [2, 2], order = [1, 0]}>",
    "#ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 64], warpsPerCTA = [4, 1], order = [0, 1]}>",
    "#ttg.blocked<{sizePerThread = [1, 2, 4], threadsPerWarp = [2, 4, 4], warpsPerCTA = [1, 2, 2], order = [2, 0, 1]}>",
    "#ttg.slice<{dim = 0, parent = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>}>",
    "#ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>",
    "#ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>",
    "#ttg.amd_mfma<{version = 3, warpsPerCTA = [2, 2], instrShape = [32, 32, 8], isTransposed = true}>",
    "#ttg.linear<{register = [[0, 1], [1, 0]], lane = [[0, 2], [0, 4], [2, 0], [4, 0], [8, 0]], warp = [[0, 8], [16, 0]], block = []}>",
    "#ttg.swizzled_shared<{vec = 8, perPhase = 2, maxPhase = 4, order = [1, 0]}>",
    "#ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>",
    "#ttg.padded_shared<[64:+8] {order = [1, 0], shape = [64, 64]}>",
    "#ttg.shared_linear<{offset = [[0, 1], [0, 2], [1, 0], [2, 0]]}, alignment = 16>",
    "#ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>",
    "#ttg.shared_memory",
]


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


def swapped(rng, text):
    """The text with one size, type, layout or attribute changed, mostly wherever it stands, or operands dropped."""
    match rng.randrange(10):
        case 0 | 1 | 2:
            # A size of tensors; layouts stay.
            found = sorted(set(DIMS.findall(text)))
            if found:
                old, new = rng.choice(found), rng.choice(ALIKE[0])
                return re.sub(rf"(?<=[<x]){old}(?=x)", new, text)
        case 3 | 4:
            found = list(LAYOUT.finditer(text))
            if found:
                at = rng.choice(found)
                new = rng.choice(LAYOUTS + [other[2] for other in found])
                return text[:at.start(2)] + new + text[at.end(2):]
        case 5:
            # One number in one layout or in the module's attributes.
            found = [*LAYOUT.finditer(text), *re.finditer(r"module attributes \{(.*)\} \{", text)]
            if found:
                at = rng.choice(found)
                numbers = list(re.finditer(r"(?<![\w:])\d+(?!\w)", at[0]))
                if numbers:
                    number = rng.choice(numbers)
                    start = at.start() + number.start()
                    return text[:start] + rng.choice(ALIKE[0]) + text[start + len(number[0]):]
        case 6 | 7:
            kind = rng.randrange(1, len(ALIKE))
            found = sorted({token[0] for token in re.finditer(rf"(?<![\w.%#]){IS_ALIKE[kind].pattern}(?!\w)", text)})
            if found:
                old, new = rng.choice(found), rng.choice(ALIKE[kind])
                return re.sub(rf"(?<![\w.%#]){re.escape(old)}(?!\w)", lambda _: new, text)
        case 8:
            # Another attribute in the place of one.
            found = list(re.finditer(r"(?<== )(?:-?\d+ : i\d+|true|false|dense<\w+> : tensor<[\w]+>)", text))
            if found:
                at = rng.choice(found)
                return text[:at.start()] + rng.choice(ALIKE[2]) + text[at.end():]
        case _:
            # A constant.
            found = list(re.finditer(r"(?<=arith.constant )(?:dense<)?-?\d+", text))
            if found:
                at = rng.choice(found)
                number = rng.choice(["0", "1", "-1", "2", "3", "7", "64", "2147483647", "-2147483648"])
                return text[:at.start()] + ("dense<" if at[0].startswith("d") else "") + number + text[at.end():]
    return text


def types_of(lines):
    """The types of values, as far as lines say them at their ends."""
    types = {}
    for line in lines:
        made = RESULT.match(line)
        if made and " : " in line and not line.rstrip().endswith("{"):
            types[made[1]] = line.rstrip().rsplit(" : ", 1)[1].rsplit(" -> ", 1)[-1]
        types.update(re.findall(r"(%\w+): ([^,(){]+)", line) if "func" in line else [])
    return types


def rearranged(rng, text):
    """The text with an operation repeated or left out, or another operand of the same type: what it says changes, and it mostly
    stays valid."""
    lines = text.split("\n")
    types = types_of(lines)
    here = [i for i, line in enumerate(lines) if RESULT.match(line) and not line.rstrip().endswith("{")]
    if not here:
        return text
    i = rng.choice(here)
    name = RESULT.match(lines[i])[1]
    before = "\n".join(lines[:i])
    alike = sorted(value for value, ty in types.items() if ty == types.get(name) and re.search(rf"{value}\b", before))
    match rng.randrange(3):
        case 0:
            lines.insert(i + 1, lines[i].replace(name, f"%again{rng.randrange(1000)}", 1))
        case 1 if alike:
            new = rng.choice(alike)
            lines[i + 1:] = [re.sub(rf"{name}\b", new, line) for line in lines[i + 1:]]
            del lines[i]
        case _:
            made, rest = lines[i].split(" = ", 1)
            operands = [value for value in re.findall(r"%\w+", rest) if value in types]
            if operands:
                old = rng.choice(operands)
                others = sorted(value for value, ty in types.items() if ty == types[old] and re.search(rf"{value}\b", before))
                if others:
                    lines[i] = f"{made} = " + re.sub(rf"{old}\b", rng.choice(others), rest)
    return "\n".join(lines)


def mutated_module(rng, text):
    for _ in range(rng.choice([0, 1, 1, 1, 2, 3])):
        text = rearranged(rng, text) if rng.random() < 0.3 else swapped(rng, text)
    if rng.random() < 0.15:
        return mutated_text(rng, text)
    return text.encode()


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
    # An input may say that its places are unknown.
    if run.returncode and any(what in said for what in REFUSES) and not PLACE.search(said):
        return f"no place in the source: {said[-300:]}"
    return None


def seeds(args):
    """Kernels of the corpus, in TTIR and, for some targets, in TTGIR, each as text and as bytecode. What they say is only made
    where it is picked."""
    names = sorted(pathlib.Path(args.corpus).glob("*.ttir"))
    some = enumerate(names[:: max(1, len(names) // 40)])
    kernels = [(path, None) for path in names] + [(path, target) for i, path in some for target in GPUS[i % 2 :: 2]]
    return [(*kernel, as_bytecode) for kernel in kernels for as_bytecode in (False, True)]


@functools.cache
def text_of(ttc, path, target):
    """A kernel in TTGIR for a target, in TTIR without one; what a target does not have stays in TTIR."""
    if target:
        run = subprocess.run([ttc, path, "--target", target, "--emit", "ttgir"], capture_output=True, text=True)
        if run.returncode == 0:
            return run.stdout
    return path.read_text()


@functools.cache
def bytecode_of(ttopt, text):
    return subprocess.run([ttopt, "-", "--emit-bytecode"], input=text.encode(), capture_output=True, check=True).stdout


def modules(args):
    """The modules of the lit tests below a folder, but for those that are refused, and which of them have layouts."""
    out = []
    for path in sorted(pathlib.Path(args.tests).rglob("*.mlir")):
        for text in re.split(r"^// -----.*$", path.read_text(), flags=re.M):
            lines = [line for line in text.split("\n") if not line.lstrip().startswith("//")]
            if any(lines) and "expected-error" not in text:
                out.append(("\n".join(lines), "ttg.num-warps" in text))
    return out


def passes(args):
    """The names of our passes."""
    return OURS.findall(subprocess.run([args.ttopt, "--help"], capture_output=True, text=True, check=True).stdout)


def command_of_test(args, rng, ours, number, layouts):
    """What a module of a test is given to: one of our passes, or the compiler."""
    target = GPUS[number // 2 % len(GPUS)]
    if number % 2:
        stage = STAGES[number // 2 % len(STAGES)]
        more = [f"--num-{what}={rng.choice(['0', '-1', '1', '3', '4', '16', '64', '4294967296'])}"
                for what in ("warps", "ctas", "stages") if rng.random() < 0.2]
        return [args.ttc, "-", "--emit", stage, "-o", os.devnull, *([] if layouts else ["--target", target, *more])]
    name = rng.choice(ours)
    if name == "convert-triton-to-tritongpu":
        name += f"=target={target} num-warps={rng.choice([1, 4, 4, 4, 8, 3, 0, -1])} num-ctas={rng.choice([1, 1, 1, 2, 3])}"
    return [args.ttopt, "-", f"--{name}", "-o", os.devnull]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ttopt", default="ttopt")
    parser.add_argument("--ttc", default="ttc")
    parser.add_argument("--corpus", required=True)
    parser.add_argument("--tests", help="mutate the modules of the lit tests below this folder instead")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0, help="the number of the first input")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--keep", type=pathlib.Path)
    args = parser.parse_args()
    given, ours = (modules(args), passes(args)) if args.tests else (seeds(args), [])

    def one(number):
        rng = random.Random(args.seed * 1_000_003 + number)
        if args.tests:
            text, layouts = rng.choice(given)
            data = mutated_module(rng, text)
            command = command_of_test(args, rng, ours, number, layouts)
            wrong = verdict(command, data)
            return wrong and (number, [str(part) for part in command], data, wrong)
        path, target, as_bytecode = rng.choice(given)
        text = text_of(args.ttc, path, target)
        layouts = "ttg.num-warps" in text
        data = mutated_bytes(rng, bytecode_of(args.ttopt, text)) if as_bytecode else mutated_text(rng, text)
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
