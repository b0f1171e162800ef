"""Prints TTGIR without the barriers behind `rocdl.s.setprio 0`."""
import sys

lines = open(sys.argv[1]).read().split("\n")
print("\n".join(line for before, line in zip([""] + lines, lines)
                if not ("rocdl.s.setprio 0" in before and "ttg.barrier" in line)))
