"""The Table format, which clients such as `kubectl get` request with `application/json;as=Table`."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from devcluster import clock
from devcluster.columns import columns_of
from devcluster.errors import bad_request
from devcluster.formats.objects import Object
from devcluster.registry.store import Record
from devcluster.resources import ApiResource

_INCLUDED = ("", "None", "Metadata", "Object")


def is_wanted(accept: str) -> bool:
    """Return whether a table is the first media type in the Accept header that this server supports."""
    for entry in accept.split(","):
        media_type, *parameters = (part.strip() for part in entry.split(";"))
        if media_type not in ("application/json", "application/*", "*/*"):
            continue
        given = dict(parameter.partition("=")[::2] for parameter in parameters)
        if "as" not in given:
            return False
        if (given["as"], given.get("g"), given.get("v")) == ("Table", "meta.k8s.io", "v1"):
            return True
    return False


class Tables:
    """Renders records of one resource as a table."""

    def __init__(self, resource: ApiResource, query: Mapping[str, str]) -> None:
        self._columns = columns_of(resource.kind)
        self._includes = query.get("includeObject", "")
        if self._includes not in _INCLUDED:
            listed = ", ".join(_INCLUDED[1:])
            raise bad_request(f"includeObject: {self._includes!r} is not one of {listed}")

    def document(self, metadata: Object, records: Iterable[Record], *, headers: bool = True) -> bytes:
        table: dict[str, Any] = {"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": metadata}
        table["columnDefinitions"] = [column.definition() for column in self._columns] if headers else None
        table["rows"] = [self._row(record) for record in records]
        return msgspec.json.encode(table)

    def _row(self, record: Record) -> Object:
        now = clock.now()
        row: Object = {"cells": [column.cell(record.object, now) for column in self._columns]}
        if self._includes == "Object":
            row["object"] = msgspec.Raw(record.full_body())
        elif self._includes != "None":
            kind = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1"}
            row["object"] = kind | {"metadata": record.object["metadata"]}
        return row
