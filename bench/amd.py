#!/usr/bin/env python3
"""Registers, memory and instructions of AMDGCN assembly, ours beside another compiler's.

    amd.py OURS [THEIRS] [--names NAME ...] [--markdown]

OURS and THEIRS are folders of NAME.amdgcn, as `ttc --emit amdgcn` and Triton write them. Per kernel: vector and
accumulator registers, spilled registers and bytes of private memory, bytes of LDS, and the instructions of the innermost
loop with the most matrix instructions (of all innermost loops together where none has any): matrix, LDS reads and
writes by width in bits, global reads and writes (a tensor operation is one), waits, barriers, other vector instructions. Instructions multiply tiles of
several sizes, so loads and LDS reads are also compared by what is multiplied: the summands of all products of the loop. The overlap of such a loop is
the part of its matrix instructions that are issued after a global load and before the wait for it, on average. Its longest run is
how many accesses to the LDS and to global memory follow each other at most without a matrix instruction between them. At the end are
the kernels in which OURS is worse.
"""
import argparse
import collections
import math
import pathlib
import re

WIDTHS = {"u8": 8, "i8": 8, "u16": 16, "i16": 16, "b8": 8, "b16": 16, "b32": 32, "b64": 64, "b96": 96, "b128": 128,
          "dword": 32, "dwordx2": 64, "dwordx3": 96, "dwordx4": 128, "ubyte": 8, "sbyte": 8, "byte": 8, "ushort": 16,
          "sshort": 16, "short": 16}


def kind(op):
    """Class of an instruction, by its mnemonic."""
    if op.startswith(("v_mfma", "v_wmma", "v_smfma", "v_swmma")):
        return "matrix"
    if op.startswith(("ds_read", "ds_load")):
        return "lds read"
    if op.startswith(("ds_write", "ds_store")):
        return "lds write"
    if op.startswith("ds_"):
        return "lds other"
    if op.startswith(("global_load", "buffer_load", "flat_load", "tensor_load")):
        return "load"
    if op.startswith(("global_store", "buffer_store", "flat_store", "tensor_store")):
        return "store"
    if op.startswith(("global_atomic", "buffer_atomic", "flat_atomic")):
        return "atomic"
    if op.startswith("scratch_"):
        return "scratch"
    if op.startswith("s_wait"):
        return "wait"
    if op.startswith("s_barrier"):
        return "barrier"
    if op.startswith("v_accvgpr"):
        return "acc move"
    if op.startswith("v_"):
        return "valu"
    if op.startswith("s_"):
        return "salu"
    return None


def summands(op):
    """How many products an instruction adds up."""
    shape = re.search(r"_(\d+)x(\d+)x(\d+)(?:_(\d+)b)?", op)
    return math.prod(int(part) for part in shape.groups() if part) if kind(op) == "matrix" and shape else 0


def parse(text):
    """(metadata, list of (label or mnemonic, operands)) of one kernel's assembly."""
    meta = {}
    for key in ["vgpr_count", "agpr_count", "sgpr_count", "vgpr_spill_count", "sgpr_spill_count",
                "private_segment_fixed_size", "group_segment_fixed_size"]:
        found = re.search(rf"^\s*\.{key}:\s*(\d+)", text, re.M)
        meta[key] = int(found.group(1)) if found else 0
    code = []
    for line in text.splitlines():
        line = line.split(";")[0].split("//")[0].rstrip()
        label = re.match(r"^(\.?[A-Za-z_$][\w$.]*):", line)
        if label:
            code.append((":" + label.group(1), ""))
            continue
        op = re.match(r"^\s+([a-z]\w+)\s*(.*)$", line)
        if op:
            code.append((op.group(1), op.group(2)))
    return meta, code


def innermost(code):
    """The innermost loops, each a list of mnemonics."""
    return [[op for op, _ in body] for body in bodies(code)]


def blocks_of(code):
    """Basic blocks, each the range of its code and the numbers of the blocks that may follow it."""
    ends = ("s_branch", "s_cbranch", "s_endpgm", "s_setpc")
    starts = [i for i, (op, _) in enumerate(code)
              if i == 0 or op.startswith(":") or code[i - 1][0].startswith(ends)]
    number = {start: i for i, start in enumerate(starts)}
    at = {name[1:]: number[i] for i, (name, _) in enumerate(code) if name.startswith(":")}
    blocks = []
    for i, (start, end) in enumerate(zip(starts, starts[1:] + [len(code)])):
        op, operands = code[end - 1]
        follow = [at[operands.strip()]] if op.startswith(ends[:2]) and operands.strip() in at else []
        if not op.startswith(("s_branch", "s_endpgm", "s_setpc")) and i + 1 < len(starts):
            follow.append(i + 1)
        blocks.append((range(start, end), follow))
    return blocks


def bodies(code):
    """The innermost loops, each a list of (mnemonic, operands): natural ones, with whatever blocks of theirs lie elsewhere."""
    blocks = blocks_of(code)
    before = [[] for _ in blocks]
    for i, (_, follow) in enumerate(blocks):
        for to in follow:
            before[to].append(i)
    # Which blocks are on every way to a block.
    everything = (1 << len(blocks)) - 1
    dominators = [1] + [everything] * (len(blocks) - 1)
    changed = True
    while changed:
        changed = False
        for i in range(1, len(blocks)):
            on_all = everything
            for other in before[i]:
                on_all &= dominators[other]
            changed |= dominators[i] != on_all | 1 << i
            dominators[i] = on_all | 1 << i
    reached, todo = set(), [0]
    while todo:
        block = todo.pop()
        if block not in reached:
            reached.add(block)
            todo += blocks[block][1]
    loops = {}
    for i in sorted(reached):
        for head in blocks[i][1]:
            if dominators[i] >> head & 1:
                inside, todo = loops.setdefault(head, {head}), [i]
                while todo:
                    block = todo.pop()
                    if block not in inside:
                        inside.add(block)
                        todo += before[block]
    inner = [inside for head, inside in loops.items() if not any(h != head and h in inside for h in loops)]
    return [[code[at] for block in sorted(inside) for at in blocks[block][0] if not code[at][0].startswith(":")]
            for inside in inner]


def multiplying(text):
    """The innermost loop with the most matrix instructions of those that load."""
    best = []
    for body in bodies(parse(text)[1]):
        count = sum(kind(op) == "matrix" for op, _ in body)
        if any(kind(op) == "load" for op, _ in body) and count > sum(kind(op) == "matrix" for op, _ in best):
            best = body
    return best


def longest_run(text):
    """The most accesses of a loop that follow each other without a matrix instruction between them, from one iteration to the next, too;
    None where no loop loads and multiplies."""
    best = run = 0
    body = multiplying(text)
    for op, _ in body + body:
        run = 0 if kind(op) == "matrix" else run + (kind(op) in ("load", "store", "lds read", "lds write"))
        best = max(best, run)
    return best if body else None


def counter_of(op, apart):
    """The counter of an access to global memory: where they are `apart`, as from gfx12 on, copies, stores and tensor operations have
    their own."""
    if not apart:
        return "load"
    return "tensor" if op.startswith("tensor_") else "async" if "_async_to_lds_" in op else kind(op)


def left_by(op, operands):
    """How many accesses of which counters a wait leaves under way."""
    wait = re.search(r"vmcnt\((\d+)\)", operands) if op == "s_waitcnt" else None
    if wait:
        return {"load": int(wait.group(1))}
    name = re.fullmatch(r"s_wait_(async|store|tensor|load)cnt(_dscnt)?", op)
    # Of two counters the second is in the lower byte.
    return {name[1]: int(operands, 0) >> (8 if name[2] else 0)} if name else {}


def overlap(text):
    """The part of a loop's matrix instructions between a global load and the wait for it, on average over its loads;
    None where no loop loads and multiplies."""
    best = multiplying(text)
    apart = any(re.match(r"s_wait_\w+cnt", op) for op, _ in best)
    parts = []
    for at, (op, _) in enumerate(best):
        if kind(op) != "load":
            continue
        later = matrix = 0
        counter = counter_of(op, apart)
        for other, operands in best[at + 1:] + best[:at]:
            later += kind(other) in ("load", "store") and counter_of(other, apart) == counter
            matrix += kind(other) == "matrix"
            left = left_by(other, operands).get(counter)
            if left is not None and left <= later:
                break
        parts.append(matrix / sum(kind(op) == "matrix" for op, _ in best))
    return sum(parts) / len(parts) if parts else None


def describe(text):
    meta, code = parse(text)
    loops = innermost(code)
    with_matrix = [loop for loop in loops if any(kind(op) == "matrix" for op in loop)]
    chosen = [max(with_matrix, key=lambda loop: sum(kind(op) == "matrix" for op in loop))] if with_matrix else loops
    ops = [op for loop in chosen for op in loop] if chosen else [op for op, _ in code if not op.startswith(":")]
    counts = collections.Counter(kind(op) for op in ops)
    widths = collections.Counter()
    for op in ops:
        if kind(op) in ("lds read", "lds write", "load", "store"):
            parts = [WIDTHS[part] for part in op.split("_") if part in WIDTHS]
            widths[kind(op), (parts or [0])[0] * (2 if "2" in op.split("_")[1] else 1)] += 1
    counts["summands"] = sum(map(summands, ops))
    return meta, counts, widths, bool(chosen)


def spilled(meta):
    return meta["vgpr_spill_count"] + meta["sgpr_spill_count"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ours", type=pathlib.Path)
    parser.add_argument("theirs", type=pathlib.Path, nargs="?")
    parser.add_argument("--names", nargs="*")
    parser.add_argument("--markdown", action="store_true")
    args = parser.parse_args()
    folders = [args.ours] + ([args.theirs] if args.theirs else [])
    names = args.names or sorted(path.stem for path in args.ours.glob("*.amdgcn"))
    columns = ["matrix", "lds read", "lds write", "load", "store", "wait", "barrier", "valu", "scratch"]
    ratios, overlaps, runs = [], [], []
    worse = collections.defaultdict(list)
    if args.markdown:
        print("| kernel | VGPR | AGPR | SGPR | spills | scratch B | " + " | ".join(columns) + " |")
        print("| --- |" + " ---: |" * (5 + len(columns)))
    for name in names:
        rows = []
        for folder in folders:
            path = folder / f"{name}.amdgcn"
            if not path.is_file() or not path.stat().st_size:
                break
            rows.append(describe(path.read_text()))
        if len(rows) < len(folders):
            continue
        cell = lambda get: " / ".join(str(get(*row)) for row in rows)
        cells = [cell(lambda m, c, w, l: m["vgpr_count"]), cell(lambda m, c, w, l: m["agpr_count"]),
                 cell(lambda m, c, w, l: m["sgpr_count"]), cell(lambda m, c, w, l: spilled(m)),
                 cell(lambda m, c, w, l: m["private_segment_fixed_size"])]
        cells += [cell(lambda m, c, w, l: c[key]) for key in columns]
        print(("| " + " | ".join([name] + cells) + " |") if args.markdown else f"{name:32} " + "  ".join(
            f"{key}={text}" for key, text in zip(["vgpr", "agpr", "sgpr", "spills", "scratch"] + columns, cells)))
        if len(rows) == 2:
            (m, c, w, _), (n, d, v, _) = rows
            parts = [overlap((folder / f"{name}.amdgcn").read_text()) for folder in folders]
            overlaps += [parts] if None not in parts else []
            longest = [longest_run((folder / f"{name}.amdgcn").read_text()) for folder in folders]
            runs += [longest] if None not in longest else []
            ratios.append(m["vgpr_count"] / max(n["vgpr_count"], 1))
            more = lambda key, by: min(c[by], d[by]) > 0 and c[key] * d[by] > d[key] * c[by]
            for what, holds in {
                "spills": spilled(m) > spilled(n),
                "loads per matrix instruction": more("load", "matrix"),
                "LDS reads per matrix instruction": more("lds read", "matrix"),
                "summands": min(c["summands"], d["summands"]) > 0 and c["summands"] > d["summands"],
                "loads per summand": more("load", "summands"),
                "LDS reads per summand": more("lds read", "summands"),
                "no matrix instructions where they have some": d["matrix"] > 0 and c["matrix"] == 0,
                "global accesses without matrix instructions": c["matrix"] == d["matrix"] == 0 and (
                    c["load"] + c["store"] > d["load"] + d["store"]),
            }.items():
                worse[what] += [name] if holds else []
    if ratios:
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        print(f"\n{len(ratios)} kernels; VGPRs ours / theirs in the geometric mean: {mean:.3f}")
        if overlaps:
            ours, theirs = (sum(part) / len(overlaps) for part in zip(*overlaps))
            print(f"overlap of loads and matrix instructions in {len(overlaps)} loops, on average: {ours:.2f}, {theirs:.2f}")
            ours, theirs = (sum(part) / len(runs) for part in zip(*runs))
            print(f"longest runs of accesses in {len(runs)} loops, on average: {ours:.1f}, {theirs:.1f}")
        print("\n".join(" ".join([f"worse in {what}: {len(those)}"] + those) for what, those in worse.items()))


if __name__ == "__main__":
    main()
