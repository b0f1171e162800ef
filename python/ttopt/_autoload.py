"""What ttopt.pth imports where TTOPT is set: waits for Triton to be imported, then enables ttopt for it.

Nothing else is imported here: this runs at the start of every Python process.
"""

import os
import sys

# The module after which Triton's compiler and its settings are there.
_AWAITED = "triton.compiler.compiler"


class _Finder:
    """Finds the awaited module as others do, and enables ttopt once it has been executed."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name != _AWAITED:
            return None
        sys.meta_path.remove(_Finder)
        from importlib.util import find_spec

        spec = find_spec(name)
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def exec_module(module):
            execute(module)
            from . import triton

            triton._enable_from_environment()

        spec.loader.exec_module = exec_module
        return spec


def _wait():
    if _AWAITED in sys.modules:
        from . import triton

        triton._enable_from_environment()
    elif _Finder not in sys.meta_path:
        sys.meta_path.insert(0, _Finder)


# Inductor's caches of compiled graphs hold kernels: they must not be shared with programs that compile otherwise.
_TAG = "TORCH_COMPILE_CACHE_KEY_TAG"
if "ttopt" not in os.environ.get(_TAG, ""):
    os.environ[_TAG] = os.environ.get(_TAG, "") + "ttopt"
_wait()
