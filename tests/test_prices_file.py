"""JOBGATE_PRICES_FILE and JOBGATE_USAGE_LABELS: what is accepted, and the messages about errors."""

from decimal import Decimal
from pathlib import Path

import pytest
from pydantic import ValidationError

from app.settings import Settings


@pytest.mark.parametrize("given", [None, ""])
def test_without_a_file_there_are_no_prices(given: str | None) -> None:
    assert Settings(prices_file=given).prices() is None


def test_prices_are_as_exact_as_they_are_written(tmp_path: Path) -> None:
    file = tmp_path / "prices.yaml"
    file.write_text("{currency: EUR, hourly: {cpu: 0.1, memory: '0.000000000000000000001', a.b/gpu: 2}}")
    prices = Settings(prices_file=str(file)).prices()
    assert prices is not None
    assert prices.hourly == {"cpu": Decimal("0.1"), "memory": Decimal("1e-21"), "a.b/gpu": Decimal(2)}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, "cannot be read: No such file"),
        ("currency: [", "prices.yaml"),
        ("{}", "/currency: the field is required"),
        ("{currency: EUR, hourly: {cpu: -1}}", "/hourly/cpu"),
        ("{currency: EUR, hourly: {cpu: much}}", "/hourly/cpu"),
        ("{currency: EUR, hourly: {cpu: .nan}}", "prices.yaml"),
        ("{currency: EUR, hourly: {cpu: true}}", "/hourly/cpu"),
        ("{currency: EUR, prices: {}}", '/prices: unknown field "prices"'),
    ],
)
def test_an_error_in_the_file_stops_the_start(tmp_path: Path, text: str | None, words: str) -> None:
    file = tmp_path / "prices.yaml"
    if text is not None:
        file.write_text(text)
    with pytest.raises(ValidationError) as refused:
        Settings(prices_file=str(file))
    assert words in refused.value.errors()[0]["msg"]


def test_labels_are_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JOBGATE_USAGE_LABELS", "team, example.com/project")
    assert Settings().controller().usage_labels == ("team", "example.com/project")
    for wrong, words in (("team=a", "expected keys of labels"), (",".join("abcdefghi"), "9 keys; accepted: 8 at most")):
        monkeypatch.setenv("JOBGATE_USAGE_LABELS", wrong)
        with pytest.raises(ValidationError, match=words):
            Settings()
