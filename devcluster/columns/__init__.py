"""What `kubectl get` shows of each kind: the columns and cells that a real API server computes.

Its law: values only. A cell is a function of an object and the present moment; nothing here reads the store.
"""

from devcluster.columns import pods, simple
from devcluster.columns.base import AGE, NAME, Column

_COLUMNS: dict[str, tuple[Column, ...]] = {"Pod": pods.COLUMNS, **simple.COLUMNS}
_DEFAULT = (NAME, AGE)


def columns_of(kind: str) -> tuple[Column, ...]:
    return _COLUMNS.get(kind, _DEFAULT)
