"""Directories of the repository that the gateway reads when it runs: `migrations`, `examples` and `dashboard/built`.

A checkout has them at its top level. `setup.py` copies them into this package of a wheel, because top-level packages of
such common names would collide with those of other projects. This package contains no other code.
"""

from importlib.resources import files
from importlib.resources.abc import Traversable


def bundled_directory(name: str) -> Traversable:
    """Return a directory that setup.py bundles: inside this package in a wheel, at the top level in a checkout."""
    inside = files(__name__).joinpath(name)
    return inside if inside.is_dir() else files("app").joinpath("..", name)
