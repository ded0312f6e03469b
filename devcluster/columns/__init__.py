"""The columns that `kubectl get` shows for each kind, with the cells that a real API server computes.

This package is pure: a cell is a function of an object and the current time. It does not read the store.
"""

from devcluster.columns import kueue, pods, simple
from devcluster.columns.base import AGE, NAME, Column

_COLUMNS: dict[str, tuple[Column, ...]] = {"Pod": pods.COLUMNS, **simple.COLUMNS, **kueue.COLUMNS}
_DEFAULT = (NAME, AGE)


def columns_of(kind: str) -> tuple[Column, ...]:
    return _COLUMNS.get(kind, _DEFAULT)
