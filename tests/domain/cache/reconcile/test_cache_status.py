"""The aggregation of the reports of several servers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.cache.reconcile.cache_status import CacheStatus, ServerReport, aggregate, iec, percent
from tests.support.json_values import UNHURRIED

GIB = 1024**3


def a_report(node: str = "n0", **figures: int | str) -> ServerReport:
    return ServerReport(node=node, **{name: str(value) for name, value in figures.items()})


def whole(node: str = "n0", **figures: int | str) -> ServerReport:
    disk = {"disk_size": 1000, "disk_used": 250, "disk_avail": 750}
    return a_report(node, **{"total_size": 10 * GIB, "total_files": "1,281,167", "cached_size": GIB, **disk, **figures})


def status_of(*reports: ServerReport | None) -> CacheStatus:
    summary = aggregate(reports)
    assert summary
    return summary.status


def test_the_report_of_one_server_is_formatted() -> None:
    assert status_of(whole()).native() == {
        "totalSize": "10 GiB",
        "totalFiles": "1,281,167",
        "cachedSize": "1.0 GiB",
        "diskSize": "1000 KiB",
        "diskUsed": "250 KiB",
        "diskAvail": "750 KiB",
        "diskUsageRate": "25.0%",
    }


def test_totals_are_the_first_that_are_known_and_the_rest_is_summed() -> None:
    status = status_of(whole("n0", total_size=0, total_files="0"), whole("n1", total_files="7", disk_used=500))
    assert (status.total_size, status.total_files, status.cached_size) == ("10 GiB", "7", "2.0 GiB")
    assert (status.disk_size, status.disk_used, status.disk_usage_rate) == ("2.0 MiB", "750 KiB", "37.5%")


def test_of_two_totals_the_first_counts() -> None:
    status = status_of(whole("n0"), whole("n1", total_size=20 * GIB, total_files="8"))
    assert (status.total_size, status.total_files) == ("10 GiB", "1,281,167")


def test_files_are_counted_in_groups_of_three() -> None:
    assert status_of(whole(total_files="1281167")).total_files == "1,281,167"
    assert status_of(whole(total_files="999")).total_files == "999"


def test_an_empty_volume_has_a_status_and_is_never_whole() -> None:
    """Servers distinguish zero from unknown."""
    summary = aggregate([whole(total_size=0, total_files=0, cached_size=0)])
    assert summary
    assert (summary.status.total_size, summary.status.total_files, summary.status.cached_size) == ("0 B", "0", "0 B")
    assert not summary.is_whole


def test_servers_of_one_node_report_the_same_disks() -> None:
    status = status_of(whole("n0"), whole("n0", cached_size=2 * GIB), whole("n1"))
    assert (status.cached_size, status.disk_size) == ("3.0 GiB", "2.0 MiB")


def test_sums_are_not_limited_to_the_size_of_the_volume() -> None:
    summary = aggregate([whole("n0", cached_size=8 * GIB), whole("n1", cached_size=8 * GIB)])
    assert summary
    assert summary.status.cached_size == "16 GiB"
    assert summary.is_whole


@pytest.mark.parametrize(
    "reports", [[], [None], [whole(), None], [a_report()], [whole(total_size="")], [whole(total_size="many")]]
)
def test_without_every_answer_or_a_known_size_there_is_no_status(reports: list[ServerReport | None]) -> None:
    assert aggregate(reports) is None


def test_errors_are_joined_without_duplicates() -> None:
    status = status_of(whole(error_message="a;b"), whole("n1", error_message="c"), whole("n2", error_message="c"))
    assert status.native()["errorMassage"] == "a;b; c"


def test_values_that_are_not_numbers_are_reported_and_count_as_zero() -> None:
    status = status_of(whole(cached_size="-5", disk_size="9" * 99))
    assert (status.cached_size, status.disk_usage_rate) == ("0 B", "0.0%")
    assert "cached size -5 is not a number" in status.error_message
    status = status_of(whole(disk_used="-5", disk_avail=""))
    assert (status.disk_size, status.disk_used, status.disk_avail) == ("1000 KiB", "0 B", "0 B")


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        (0, "0 B"),
        (1, "1 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (1536, "1.5 KiB"),
        (10 * 1024 - 1, "10 KiB"),
        (10 * 1024, "10 KiB"),
        (10 * 1024 + 511, "10 KiB"),
        (10 * 1024 + 512, "11 KiB"),
        (1024**2 - 513, "1023 KiB"),
        (1024**2 - 512, "1.0 MiB"),
        (GIB - 1, "1.0 GiB"),
        (GIB + GIB // 2, "1.5 GiB"),
        (1024**6, "1.0 EiB"),
        (1024**7, "1024 EiB"),
    ],
)
def test_sizes_with_units(amount: int, text: str) -> None:
    assert iec(amount) == text


@pytest.mark.parametrize(("part", "of", "text"), [(0, 0, "0.0%"), (1, 3, "33.3%"), (3, 3, "100.0%")])
def test_percentages(part: int, of: int, text: str) -> None:
    assert percent(part, of) == text


@UNHURRIED
@given(st.lists(st.tuples(st.sampled_from(["n0", "n1"]), st.integers(0, 2**60), st.integers(1, 2**60)), min_size=1))
def test_the_order_of_servers_does_not_matter_for_sums(figures: list[tuple[str, int, int]]) -> None:
    reports = [whole(node, cached_size=cached, disk_size=size, disk_used=size) for node, cached, size in figures]
    one, other = status_of(*reports), status_of(*reversed(reports))
    assert (one.cached_size, one.disk_size) == (other.cached_size, other.disk_size)
    assert one.disk_usage_rate == "100.0%"
