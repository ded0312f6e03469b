"""The cache status of a SampleSet, aggregated from the reports of its runtime servers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from app.domain.errors import shorten

_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
_KIB: Final = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheStatus:
    """The status for users: sizes as text with units, `disk_usage_rate` in percent."""

    total_size: str = ""
    total_files: str = ""
    cached_size: str = ""
    disk_size: str = ""
    disk_used: str = ""
    disk_avail: str = ""
    disk_usage_rate: str = ""
    error_message: str = ""

    def native(self) -> dict[str, str]:
        """Return the known fields under upstream's names, one of which is misspelt."""
        fields = {
            "totalSize": self.total_size,
            "totalFiles": self.total_files,
            "cachedSize": self.cached_size,
            "diskSize": self.disk_size,
            "diskUsed": self.disk_used,
            "diskAvail": self.disk_avail,
            "diskUsageRate": self.disk_usage_rate,
            "errorMassage": self.error_message,
        }
        return {name: value for name, value in fields.items() if value}


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerReport:
    """The report of the server on a node: integers as text, those of disks in KiB. Empty means unknown."""

    node: str
    total_size: str = ""
    total_files: str = ""
    cached_size: str = ""
    disk_size: str = ""
    disk_used: str = ""
    disk_avail: str = ""
    error_message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheSummary:
    """The status and the exact sums behind it."""

    status: CacheStatus
    total_bytes: int
    cached_bytes: int

    @property
    def is_whole(self) -> bool:
        """Whether all of the data is cached."""
        return 0 < self.total_bytes <= self.cached_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimePod:
    index: int
    name: str
    node: str
    is_running: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeCache:
    """What a node of the set has cached, as `server`, the name of a pod, reports it.

    `cached_bytes` of None means unknown. `message` says why, unless the server was not asked.
    """

    node: str
    server: str
    cached_bytes: int | None
    message: str = ""


@dataclass(slots=True)
class _Node:
    cached: int = 0
    size: int = 0
    used: int = 0
    avail: int = 0


def aggregate(reports: Sequence[ServerReport | None]) -> CacheSummary | None:
    """Aggregate the reports. Return None if a server did not answer, or if none knows the size of the volume.

    Servers on one node report the same directories and disks, which count once. The cached size is not limited to the
    size of the volume: if it is larger, several nodes cache the same data.
    """
    answered = [report for report in reports if report is not None]
    if not answered or len(answered) < len(reports):
        return None
    errors = [report.error_message for report in answered if report.error_message]
    nodes: dict[str, _Node] = {}
    totals = []
    for report in answered:
        figures = {name: _number(name, getattr(report, name), errors) for name in _NUMBERS}
        totals.append(figures["total_size"])
        read = {name: figure or 0 for name, figure in figures.items()}
        node = nodes.setdefault(report.node, _Node())
        # The servers of a node measure the same directories, but not at the same time. The largest figure counts.
        node.cached = max(node.cached, read["cached_size"])
        if read["disk_size"] > node.size:
            node.size, node.used, node.avail = read["disk_size"], read["disk_used"], read["disk_avail"]
    if all(each is None for each in totals):
        return None
    total = next(filter(None, totals), 0)
    cached = sum(node.cached for node in nodes.values())
    status = _with_units(total, cached, list(nodes.values()))
    files = next((report.total_files for report in answered if report.total_files.strip("0")), "0")
    status = replace(status, total_files=_group_digits(files), error_message="; ".join(dict.fromkeys(errors)))
    return CacheSummary(status=status, total_bytes=total, cached_bytes=cached)


def node_caches(pods: Sequence[RuntimePod], reports: Mapping[int, ServerReport | None]) -> tuple[NodeCache, ...]:
    """Return the cache of each node of these pods. `reports` has those of the servers that were asked, by index.

    Servers on one node measure the same directories, so the largest figure is that of the node.
    """
    found: dict[str, NodeCache] = {}
    for pod in pods:
        now = NodeCache(node=pod.node, server=pod.name, cached_bytes=None)
        if pod.index in reports:
            now = _add_report(now, reports[pod.index])
        if pod.node not in found or _known_bytes(now) > _known_bytes(found[pod.node]):
            found[pod.node] = now
    return tuple(found.values())


def _known_bytes(cache: NodeCache) -> int:
    return -1 if cache.cached_bytes is None else cache.cached_bytes


def _add_report(unknown: NodeCache, report: ServerReport | None) -> NodeCache:
    if report is None:
        return replace(unknown, message=_SILENT)
    errors = [report.error_message] if report.error_message else []
    cached = _number("cached_size", report.cached_size, errors)
    return replace(unknown, cached_bytes=cached, message=shorten("; ".join(errors)))


_SILENT: Final = "the server does not answer"
_NUMBERS: Final = ("total_size", "cached_size", "disk_size", "disk_used", "disk_avail")
# More digits than any storage has bytes. Python's int() takes quadratic time.
_MAX_DIGITS: Final = 30


def _number(name: str, text: str, errors: list[str]) -> int | None:
    if not text:
        return None
    if _is_number(text):
        return int(text)
    errors.append(f"{name.replace('_', ' ')} {shorten(text)} is not a number")
    return None


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= _MAX_DIGITS


def _group_digits(count: str) -> str:
    return f"{int(count):,}" if _is_number(count) else shorten(count)


def _with_units(total: int, cached: int, nodes: Sequence[_Node]) -> CacheStatus:
    size, used = sum(node.size for node in nodes), sum(node.used for node in nodes)
    return CacheStatus(
        total_size=iec(total),
        cached_size=iec(cached),
        disk_size=iec(size * _KIB),
        disk_used=iec(used * _KIB),
        disk_avail=iec(sum(node.avail for node in nodes) * _KIB),
        disk_usage_rate=percent(used, size),
    )


def iec(amount: int) -> str:
    """Format a size in binary units, with one decimal below ten: "1.5 GiB", "82 MiB", "0 B"."""
    # Integers, since a float is not exact for sizes above 8 PiB.
    power = 0
    # The next unit starts half a unit early, at an amount that is rounded to 1024.
    while power < len(_UNITS) - 1 and amount + _KIB**power // 2 >= _KIB ** (power + 1):
        power += 1
    unit = _KIB**power
    tenths = (amount * 20 + unit) // (2 * unit)  # rounded half up
    if power == 0:
        return f"{amount} B"
    if tenths < 100:
        return f"{tenths // 10}.{tenths % 10} {_UNITS[power]}"
    # From the amount: rounded twice, 10.46 would become 10.5 and then 11.
    return f"{(amount * 2 + unit) // (2 * unit)} {_UNITS[power]}"


def percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f}%" if whole else "0.0%"
