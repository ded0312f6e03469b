import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.kubernetes import names
from tests.support.json_values import UNHURRIED

Check = Callable[[str], str | None]

GOOD: list[tuple[Check, list[str]]] = [
    (names.dns_label, ["a", "ab", "a1", "a-1", "a--1--2", "0", "01", "1-a", "a" * 63]),
    (names.dns_subdomain, ["a", "a.b", "a.b-c.0", "1.2.3", "a" * 253, "a--b.c"]),
    (names.dns_1035_label, ["a", "ab", "a-1", "a" * 63]),
    (names.label_key, ["simple", "now-with-dashes", "1-starts", "1234", "simple/simple", "a.b/c_d.e", "1.2.3.4/5678",
                       "Uppercase_Is_OK_123", "example.com/Uppercase", "a" * 63, f"{'a' * 253}/{'b' * 63}"]),
    (names.annotation_key, ["simple", "Example.Com/X", "requests.storage-foo"]),
    (names.label_value, ["", "simple", "now-with-dashes", "1.2", "UPPER_case", "a" * 63]),
    (names.port_name, ["telnet", "re-mail-ck", "pop3", "a", "a-1", "1-a", "a" * 15]),
    (names.env_name, ["abc", "my.env-name", "MY_ENV", "1abc", "a b", "a/b", "-x"]),
    (names.config_key, ["a", "good", "good-good", "still.good", ".so-is-this", "THIS_IS_GOOD", "a" * 253]),
]  # fmt: skip
BAD: list[tuple[Check, list[str]]] = [
    (names.dns_label, ["", "A", "a_b", "-", "a-", "-a", ".", "a.b", "a b", "a\n", "\u0661", "ä", "a" * 64]),
    (names.dns_subdomain, ["", "A", "a.", ".a", "a..b", "a_b", "a-.b", "a\n", "a/b", "a" * 254]),
    (names.dns_1035_label, ["", "0", "1-a", "a-", "a.b", "A", "a\n", "a" * 64]),
    (names.label_key, ["", "/", "a/", "/a", "a/b/c", "Upper.Case/x", "nospecial%^=@", "-x", "x-", "x\n", "a" * 64,
                       f"{'a' * 254}/b", "a_b/c"]),
    (names.annotation_key, ["", "/", "a//b", "_x"]),
    (names.label_value, ["nospecial%^=@", "-x", "x.", "a b", "x\n", "\u0661", "a" * 64]),
    (names.port_name, ["", "1234", "a--b", "-a", "a-", "A", "a_b", "a\n", "a" * 16]),
    (names.env_name, ["", "a=b", "a\n", "\x7f", "ä", "a\0"]),
    (names.config_key, ["", ".", "..", "..bad", "b*d", "bad\n", "a" * 254]),
]  # fmt: skip


@pytest.mark.parametrize(("check", "name"), [(check, name) for check, names_ in GOOD for name in names_])
def test_good(check: Check, name: str) -> None:
    assert check(name) is None


@pytest.mark.parametrize(("check", "name"), [(check, name) for check, names_ in BAD for name in names_])
def test_bad(check: Check, name: str) -> None:
    message = check(name)
    assert message
    assert len(message) < 400


@pytest.mark.parametrize("name", [*GOOD[0][1], *BAD[0][1], "a" * 62 + "-", "a" * 62 + "b"])
def test_the_pattern_of_the_document_accepts_what_the_check_accepts(name: str) -> None:
    assert (re.search(rf"{names.DNS_LABEL_PATTERN[:-1]}\Z", name) is not None) == (names.dns_label(name) is None)


@UNHURRIED
@given(st.text())
def test_no_valid_name_contains_a_line_break(text: str) -> None:
    for check, _ in GOOD:
        if check(text) is None:
            assert text.isascii()
            assert text.isprintable()


def test_the_messages_are_those_of_kubernetes() -> None:
    assert names.dns_label("A_b") == (
        "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and "
        "end with an alphanumeric character (e.g. 'my-name' or '123-abc', regex used for validation is "
        "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
    )
    assert names.dns_label("a.b") == "must not contain dots"
    assert names.dns_label("a" * 64) == "must be no more than 63 characters"
