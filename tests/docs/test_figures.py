"""A figure matches its data, and so does the page that quotes it."""

import json
import re
from typing import Any

import pytest

from tests.docs.test_docs import read
from tools.autoscaled_figure import figure


@pytest.fixture
def run() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(read("docs/figures/autoscaled-run.json"))
    return found


def test_the_figure_is_drawn_from_its_data(run: dict[str, Any]) -> None:
    assert read("docs/figures/autoscaled-run.svg") == figure(run)


def test_quoted_decisions_are_in_the_data(run: dict[str, Any]) -> None:
    section = read("docs/autoscaling.md").partition("## A run on the embedded cluster")[2].partition("\n## ")[0]
    said = [message for found in run["runs"] for message in found["decisions"].values()]
    quoted = re.findall(r"`((?:grows|shrinks|stays|one more)[^`]*)`", section)
    assert len(quoted) >= 8
    assert [quote for quote in quoted if not any(quote in message for message in said)] == []


def test_the_run_ended_with_the_sizes_that_fit(run: dict[str, Any]) -> None:
    assert run["sizes"][-1]["running"] == {"vision": 0, "speech": 4, "ranking": 4}
