"""Values are those of upstream's quantity_test.go, and of what its fuzzers look for."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.errors import InvalidManifest
from app.domain.kubernetes.quantity import format_quantity, parse_quantity, whole
from tests.support.json_values import UNHURRIED

PARSED = [
    *((f"0{suffix}", "0") for suffix in ("", "n", "u", "m", "k", "Ki", "M", "Mi", "G", "Gi", "T", "Ti")),
    ("1", "1"), ("9", "9"),
    ("1Ki", 1024), ("8Ki", 8 * 1024), ("7Mi", 7 * 1024**2), ("6Gi", 6 * 1024**3), ("5Ti", 5 * 1024**4),
    ("4Pi", 4 * 1024**5), ("3Ei", 3 * 1024**6), ("10Ti", 10 * 1024**4), ("100Ti", 100 * 1024**4),
    ("5n", "5e-9"), ("4u", "4e-6"), ("3m", "3e-3"), ("8k", "8e3"), ("50k", "5e4"), ("7M", "7e6"), ("6G", "6e9"),
    ("5T", "5e12"), ("40T", "4e13"), ("300T", "3e14"), ("2P", "2e15"), ("1E", "1e18"), ("12E", "12e18"),
    ("1E-3", "1e-3"), ("1e3", "1e3"), ("1E6", "1e6"), ("1e9", "1e9"), ("1E12", "1e12"), ("1e15", "1e15"),
    ("1E18", "1e18"), ("1e14", "1e14"), ("1e13", "1e13"), ("12E6", "12e6"), ("100.035k", "100035"),
    ("0.001", "0.001"), ("0.0005k", "0.5"), ("0.005", "0.005"), ("0.05", "0.05"), ("0.5", "0.5"),
    ("0.00050k", "0.5"), ("0.00500", "0.005"), ("0.5e0", "0.5"), ("0.5e-1", "0.05"), ("0.5e-2", "0.005"),
    ("10.035M", "10035e3"), ("1.2e3", "1200"), ("1.3E+6", "13e5"), ("1.40e9", "14e8"), ("1.53E12", "153e10"),
    ("1.6e15", "16e14"), ("1.7E18", "17e17"), ("9.01", "9.01"), ("8.1k", "8100"), ("7.123456M", "7123456"),
    ("6.987654321G", "6987654321"), ("5.444T", "5444e9"), ("40.1T", "401e11"), ("300.2T", "3002e11"),
    ("2.5P", "25e14"), ("1.01E", "101e16"),
    ("3.001n", "4e-9"), ("1.1E-9", "2e-9"), ("0.0000000001", "1e-9"), ("0.0000000005", "1e-9"),
    ("0.00000000050", "1e-9"), ("0.5e-9", "1e-9"), ("0.9n", "1e-9"), ("0.00000012345", "124e-9"),
    ("0.00000012354", "124e-9"), ("9Ei", 2**63 - 1), ("9223372036854775807Ki", 2**63 - 1),
    ("100.035Ki", "102435.84"), ("0.5Mi", 1024**2 // 2), ("0.05Gi", "53687091.2"), ("0.025Ti", "27487790694.4"),
    ("0.000000000001Ki", "2e-9"), (".001", "0.001"), (".0001k", "0.1"), ("1.", "1"), ("1.G", "1e9"),
    ("1e21", "1e21"), ("1000E", "1e21"), ("10e69", "1e70"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "value"), PARSED)
def test_parse_with_any_sign(text: str, value: str | int) -> None:
    assert parse_quantity(text) == Decimal(value)
    assert parse_quantity(f"+{text}") == Decimal(value)
    assert parse_quantity(f"-{text}") == -Decimal(value)


@pytest.mark.parametrize("text", [" 1", "1 ", "1\n", "\t1 "])
def test_white_space_around_a_quantity_is_ignored(text: str) -> None:
    assert parse_quantity(text) == 1


@pytest.mark.parametrize(
    "text",
    [
        "", "1.1.M", "1+1.0M", "0.1mi", "0.1am", "aoeu", ".5i", "1i", "-3.01i", "-3.01e-", "1e4294967297", "1 k",
        ".", "-", "+", "-.", "--1", "1e", "1E+", "1e3Gi", "1Kii", "1ki", "1KI", "1K", "NaN", "Infinity", "inf",
        "1e999", "1e-999", "0x1", "1_000", "1,5", "\u0661", "1\u0661", "1" * 65, "1e2147483647", "9" * 5000, "1\0",
    ],
)  # fmt: skip
def test_what_is_not_a_quantity(text: str) -> None:
    with pytest.raises(InvalidManifest) as refused:
        parse_quantity(text)
    assert refused.value.code == "InvalidQuantity"
    assert len(refused.value.message) < 300


@UNHURRIED
@given(st.text() | st.from_regex(r"[+-]?[0-9.]{0,80}[a-zA-Z]{0,2}[+-]?[0-9]{0,12}"))
def test_any_text_is_a_finite_quantity_or_refused(text: str) -> None:
    try:
        value = parse_quantity(text)
    except InvalidManifest:
        return
    assert value.is_finite()
    assert parse_quantity(format_quantity(value)) == value or abs(value) > Decimal("1e63")


CANONICAL = [
    (1024**3, True, "1Gi"), (300 * 1024**2, True, "300Mi"), (6 * 1024, True, "6Ki"),
    (1001 * 1024**3, True, "1001Gi"), (1024**4, True, "1Ti"), (5, True, "5"), ("0.5", True, "500m"),
    ("1e9", False, "1G"), ("1000e6", False, "1G"), ("1e-3", False, "1m"), ("0.08", False, "80m"),
    ("1.08", False, "1080m"), ("300e6", False, "300M"), ("1e12", False, "1T"), ("1e18", False, "1E"),
    ("1e21", False, "1e21"), ("5e21", False, "5e21"), ("1e24", False, "1e24"), ("1234567e6", False, "1234567M"),
    ("1234.567", True, "1234567m"), ("3e3", False, "3k"), (1025, True, "1025"), (0, False, "0"), (0, True, "0"),
    ("1e-9", False, "1n"), ("80e-9", False, "80n"), ("1080e-9", False, "1080n"), ("1e-6", False, "1u"),
    (2000, True, "2000"), (2**70, True, "1180591620717411303424"), ("1e70", True, "10e69"), ("1.5", False, "1500m"),
    ("1.024", True, "1024m"), ("1.024e-9", False, "1024e-12"),
]  # fmt: skip


@pytest.mark.parametrize(("value", "binary", "text"), CANONICAL)
def test_canonical_form(value: str | int, *, binary: bool, text: str) -> None:
    assert format_quantity(Decimal(value), binary=binary) == text
    if value != 0:
        assert format_quantity(-Decimal(value), binary=binary) == f"-{text}"


@UNHURRIED
@given(nanos=st.integers(-(10**27), 10**27), binary=st.booleans())
def test_written_quantities_read_back(nanos: int, *, binary: bool) -> None:
    value = Decimal(nanos).scaleb(-9)
    assert parse_quantity(format_quantity(value, binary=binary)) == value


@pytest.mark.parametrize(("text", "units"), [("1", 1), ("250m", 1), ("1u", 1), ("0.5", 1), ("-1500u", 0)])
def test_scheduler_units_round_up(text: str, units: int) -> None:
    assert whole(parse_quantity(text)) == units
