#!/usr/bin/env python3
"""replace_extension.py WHEEL LIBRARY: puts LIBRARY in the place of the extension module of a wheel of ttopt."""
import base64
import hashlib
import os
import pathlib
import sys
import zipfile

EXTENSION = "ttopt/_ttopt.abi3.so"


def main():
    wheel, library = map(pathlib.Path, sys.argv[1:])
    data = library.read_bytes()
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    fresh, found = wheel.with_suffix(".new"), 0
    with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(fresh, "w", zipfile.ZIP_DEFLATED) as new:
        for entry in old.infolist():
            content = old.read(entry)
            if entry.filename == EXTENSION:
                content = data
                found += 1
            elif entry.filename.endswith(".dist-info/RECORD"):
                lines = content.decode().splitlines()
                lines = [f"{EXTENSION},sha256={digest},{len(data)}" if line.startswith(EXTENSION) else line for line in lines]
                content = ("\n".join(lines) + "\n").encode()
            new.writestr(entry, content)
    if found != 1:
        sys.exit(f"{wheel} has {found} files {EXTENSION}")
    os.replace(fresh, wheel)


if __name__ == "__main__":
    main()
