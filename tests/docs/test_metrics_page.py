"""docs/metrics.md has a row for each metric of the code, with its type, labels and meaning, and one for each label."""

import re
from pathlib import Path

import pytest

from tests.support.telemetry.metrics import defined_metrics, table_rows

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "metrics.md").read_text()
# migration.md also names metrics that no longer exist, and sdks/python.md packages.
PAGES = sorted(
    path
    for path in DOCS.rglob("*.md")
    if "jobgate_" in path.read_text() and path.name not in {"migration.md", "python.md"}
)


def section(heading: str) -> str:
    return re.split(r"^## ", PAGE.partition(f"## {heading}\n")[2], flags=re.MULTILINE)[0]


def test_every_metric_has_its_row() -> None:
    metrics = defined_metrics()
    assert len(metrics) > 20
    written = [line for line in section("All metrics").splitlines() if line.startswith("| `")]
    assert written == list(table_rows(metrics))


def test_every_label_is_explained() -> None:
    cells = [line.split("|")[1] for line in section("Labels").splitlines() if line.startswith("| `")]
    explained = {label for cell in cells for label in re.findall(r"`(\w+)`", cell)}
    assert explained == {label for metric in defined_metrics() for label in metric.labels}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_metrics_that_a_page_names_exist(page: Path) -> None:
    text = page.read_text()
    series = {name for metric in defined_metrics() for name in {metric.name, *metric.series}}
    prefixes = re.findall(r"`(jobgate_\w+_)\*`", text)
    assert set(re.findall(r"`(jobgate_\w+)[`{]", text)) <= series
    assert [prefix for prefix in prefixes if not any(name.startswith(prefix) for name in series)] == []
