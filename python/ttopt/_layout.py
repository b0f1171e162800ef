"""Layouts as pictures and text."""

import json
from dataclasses import dataclass

from . import _ttopt


@dataclass(frozen=True)
class Layout:
    """A layout attribute for a shape. A notebook shows a picture where the tensor is small enough, else the bases."""

    text: str
    shape: tuple
    dtype: str = "f32"
    target: str = "cuda:90"

    def _show(self, style, to=None):
        return _ttopt.show_layout(self.text, list(self.shape), style, self.dtype, self.target, to)

    def __post_init__(self):
        self._show("bases")

    @property
    def bases(self):
        """The bases by input dimension: ``{"register": [[0, 1], ...], "lane": ...}``."""
        return json.loads(self._show("json"))["in_dims"]

    @property
    def matrix(self):
        """The matrix over F2, as text."""
        return self._show("matrix")

    @property
    def table(self):
        """Who holds which element, as text."""
        return self._show("table")

    @property
    def svg(self):
        """A picture."""
        return self._show("svg")

    def __str__(self):
        return self._show("bases")

    def _repr_svg_(self):
        try:
            return self.svg
        except ValueError:
            return None

    def _repr_html_(self):
        import html

        picture = self._repr_svg_()
        return picture or f"<pre>{html.escape(str(self))}</pre>"

    def to(self, other):
        """The conversion to another layout, an attribute or a ``Layout``."""
        return Conversion(self, other.text if isinstance(other, Layout) else other)


@dataclass(frozen=True)
class Conversion:
    """How a tensor gets from one layout to another."""

    source: Layout
    destination: str

    @property
    def plan(self):
        """Its kind, instructions, wavefronts, shared memory and cycles."""
        return json.loads(self.source._show("json", self.destination))

    @property
    def cycles(self):
        """The plan's cost."""
        return self.plan["cycles"]

    def __str__(self):
        return self.source._show("table", self.destination)

    def _repr_svg_(self):
        try:
            return self.source._show("svg", self.destination)
        except ValueError:
            return None

    def _repr_html_(self):
        import html

        return self._repr_svg_() or f"<pre>{html.escape(str(self))}</pre>"


def layout(text, shape, *, dtype="f32", target="cuda:90"):
    """The layout that an attribute such as ``#ttg.blocked<{...}>`` gives a tensor of this shape."""
    shape = (shape,) if isinstance(shape, int) else tuple(int(size) for size in shape)
    return Layout(text, shape, dtype, target)
