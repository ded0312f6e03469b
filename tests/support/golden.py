"""Golden files: what the product renders, kept in tests/data and compared whole.

`pytest --update-golden` writes them anew; the difference is then read in review.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest
import yaml
from typing_extensions import override

Golden: TypeAlias = Callable[[Path, Any], None]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write golden files instead of comparing them")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    """Compare a value to the file (.json or .yaml), or write it there."""
    update = bool(request.config.getoption("--update-golden"))

    def compare(path: Path, value: Any) -> None:
        text = _render(path, value)
        if update:
            path.write_text(text, encoding="utf-8")
        assert path.exists(), f"{path} is missing: run pytest --update-golden and read what it wrote"
        assert text == path.read_text(encoding="utf-8")

    return compare


class _Plain(yaml.SafeDumper):
    """Without anchors, which would hide what an object holds."""

    @override
    def ignore_aliases(self, data: Any) -> bool:
        return True


def _render(path: Path, value: Any) -> str:
    if path.suffix == ".json":
        return json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
    documents = value if isinstance(value, list) else [value]
    return yaml.dump_all(documents, Dumper=_Plain, sort_keys=True, allow_unicode=True, width=120)
