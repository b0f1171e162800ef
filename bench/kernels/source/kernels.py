"""All kernels; each part_*.py holds kernels with their launches next to them."""
import importlib
import os

_here = os.path.dirname(os.path.abspath(__file__))
for _part in sorted(f[:-3] for f in os.listdir(_here) if f.startswith("part_") and f.endswith(".py")):
    globals().update({k: v for k, v in vars(importlib.import_module(_part)).items() if not k.startswith("__")})
