"""Patterns of clients: what they match, and which are refused before they cost anything."""

import re

import pytest

from app.services.logs.search import LinePattern, PatternError

LINE = b"2026-01-02 step 7: loss \xc3\xa4 0.25"


@pytest.mark.parametrize(
    ("pattern", "is_found"),
    [
        ("step [0-9]+", True),
        (r"\bloss ä", True),
        ("(?i)LOSS Ä", True),
        ("LOSS", False),
        ("^2026", True),
        ("0.25$", True),
        ("^step", False),
        (r"step\s.*\sloss", True),
        (r"\p{L}+ 0", True),
    ],
)
def test_a_pattern_matches_within_its_line(pattern: str, is_found: bool) -> None:  # noqa: FBT001 - a case
    found = LinePattern(pattern).find(b"before\n" + LINE + b"\nafter\n", len(b"before\n"))
    assert (found is not None) is is_found


@pytest.mark.parametrize("pattern", ["a\nb", r"a\sb", "a[^x]b", "(?s)a.b"])
def test_no_match_exceeds_its_line(pattern: str) -> None:
    assert LinePattern(pattern).find(b"a\nb\n", 0) is None


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("((", "missing ): (("),  # without what jobgate adds
        ("a**", "bad repetition operator"),
        (r"(a)\1", "invalid escape sequence"),
        ("(?=a)", "invalid perl operator"),
        ("a{1001}", "invalid repetition size"),
        ("((a{100}){100}){100}", "invalid repetition size"),
        ("(x?){900}", "too large"),
        (r"[^\p{L}]{50}", "too large"),
    ],
)
def test_a_pattern_that_is_not_valid_or_too_large_is_refused(pattern: str, reason: str) -> None:
    with pytest.raises(PatternError, match=re.escape(reason)):
        LinePattern(pattern)


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|a)*b", "(a|aa)+$", "(.*)*x", "(x?){300}y"])
def test_the_search_for_a_hostile_pattern_ends(pattern: str) -> None:
    text = b"a" * 64 * 1024 + b"!\n"
    # A search that backtracks would never end.
    assert LinePattern(pattern).find(text, 0) in {None, 0}
