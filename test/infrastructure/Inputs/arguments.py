"""Runs a tool on a file that is not there and whose name is not UTF-8."""

import subprocess
import sys

result = subprocess.run([sys.argv[1].encode(), b"no-\xff-file.mlir"], capture_output=True)
print("exit code", result.returncode)
print(result.stderr.decode(errors="replace"))
