"""Prints TTGIR without the Nth barrier of the loop in which halves of the warps take turns: halves.py FILE N."""
import sys

lines = open(sys.argv[1]).read().split("\n")
start = next(i for i, line in enumerate(lines) if "amdg.cond_barrier" in line)
barriers = [i for i, line in enumerate(lines) if i > start and "ttg.barrier" in line]
del lines[barriers[int(sys.argv[2])]]
print("\n".join(lines))
