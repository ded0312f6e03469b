"""Golden files: expected output in tests/data, which is compared as a whole.

`pytest --update-golden` writes the files again, so that a review shows the difference.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest
import yaml
from typing_extensions import override

from app.domain.plan import Manifest

Golden: TypeAlias = Callable[[Path, Any], None]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write golden files instead of comparing them")
    parser.addoption("--screenshots", metavar="DIRECTORY", help="write the screenshots of docs/dashboard.md")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    """Compare a value with the file (.json or .yaml), or write it to the file."""
    update = bool(request.config.getoption("--update-golden"))

    def compare(path: Path, value: Any) -> None:
        text = _render(path, value)
        if update:
            path.write_text(text, encoding="utf-8")
        assert path.exists(), f"{path} is missing: run pytest --update-golden and read what it wrote"
        assert text == path.read_text(encoding="utf-8")

    return compare


def load_manifest(cases: Path, case: str) -> Manifest:
    """The manifest of a case of a kind, whose cases are the folders of `cases`."""
    manifest: Manifest = yaml.safe_load((cases / case / "manifest.yaml").read_text(encoding="utf-8"))
    return manifest


class _Plain(yaml.SafeDumper):
    """A YAML dumper without anchors, which would hide the content of an object."""

    @override
    def ignore_aliases(self, data: Any) -> bool:
        return True


def _render(path: Path, value: Any) -> str:
    if path.suffix == ".json":
        return json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
    documents = value if isinstance(value, list) else [value]
    return yaml.dump_all(documents, Dumper=_Plain, sort_keys=True, allow_unicode=True, width=120)
