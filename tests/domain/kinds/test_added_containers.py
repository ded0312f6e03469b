"""Containers that jobgate adds to the pods of a kind: a quota refuses a pod with one that has no resources."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

DATA: Final = Path(__file__).parents[2] / "data"
CASES: Final = sorted(path.parent for path in DATA.glob("*/*/objects.yaml"))


def containers(value: Any) -> Iterator[dict[str, Any]]:
    """The containers in any document."""
    if isinstance(value, dict):
        for name in ("containers", "initContainers"):
            yield from value.get(name) or ()
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for item in items:
        yield from containers(item)


@pytest.mark.parametrize("case", CASES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_each_added_container_has_requests_and_limits(case: Path) -> None:
    (manifest,) = yaml.safe_load_all((case / "manifest.yaml").read_text("utf-8"))
    # A TrainingJob declares the resources of two containers without declaring the containers.
    declared = {one["name"] for one in containers(manifest)} | {"pserver", "trainer"}
    added = [
        one
        for document in yaml.safe_load_all((case / "objects.yaml").read_text("utf-8"))
        for one in containers(document)
        if one["name"] not in declared
    ]
    for one in added:
        for amounts in ("requests", "limits"):
            assert set(one["resources"][amounts]) >= {"cpu", "memory"}, one["name"]
    assert added or case.parent.name != "sample_set"
