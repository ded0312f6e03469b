"""Draws the SVG of an autoscaled run from the JSON of `tools.autoscaled_run`."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any, TypeAlias

Point: TypeAlias = tuple[float, float]

WIDTH, HEIGHT = 860, 460
LEFT, RIGHT = 56, 84
SIZES, CPU = (64, 236), (276, 416)  # top and bottom of the two panels
COLOURS = {"vision": "#1f6fb4", "speech": "#c4570c", "ranking": "#2f8540"}
LIFT = {"vision": 2.5, "speech": 0.0, "ranking": -2.5}  # so that overlapping lines remain visible
INK, FAINT, RED = "#333333", "#dddddd", "#b3261e"
_LOAD = 0.97


def figure(run: Mapping[str, Any]) -> str:
    end = run["seconds"]
    most = max(max(sample["running"].values()) for sample in run["sizes"])
    total = run["runs"][-1]["totalCpu"] / 1000
    x = _Scale(end, LEFT, WIDTH - RIGHT)
    sizes, cpu = _Scale(most, SIZES[1], SIZES[0]), _Scale(total + 2, CPU[1], CPU[0])
    parts = [
        *_frame(x, end),
        *_events(run["events"], x),
        _text(LEFT, SIZES[0] - 8, "trainers that run", weight="bold"),
        *(_level(sizes(size), str(size)) for size in range(0, most + 1, 2)),
        *_curves(run["sizes"], end, x, sizes),
        _text(LEFT, CPU[0] - 8, "CPUs requested, and waiting for room (red)", weight="bold"),
        *(_level(cpu(value), f"{value:g}") for value in (0, 4)),
        *_waits(run["runs"], x),
        _level(cpu(total * _LOAD), f"{total * _LOAD:g} load", colour=RED, at_right=True),
        _line(_steps([(found["t"], found["requestedCpu"] / 1000) for found in run["runs"]], end, x, cpu), INK),
    ]
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif">'
    return "\n".join([head, f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>', *parts, "</svg>", ""])


class _Scale:
    """Converts a value to a coordinate: 0 to `start`, `high` to `end`, and others linearly."""

    def __init__(self, high: float, start: float, end: float) -> None:
        self._start = start
        self._unit = (end - start) / high

    def __call__(self, value: float) -> float:
        return round(self._start + value * self._unit, 1)


def _frame(x: _Scale, end: float) -> list[str]:
    marks = range(0, int(end) + 1, 10)
    return [_text(x(second), CPU[1] + 18, f"{second} s", anchor="middle") for second in marks]


def _events(events: Iterable[Mapping[str, Any]], x: _Scale) -> list[str]:
    parts = []
    for event in events:
        at = x(event["t"])
        parts.append(f'<path d="M{at} 34V{CPU[1]}" stroke="{FAINT}" stroke-dasharray="4 3"/>')
        parts.append(_text(at, 26, f"{event['what']} {event['job']}", anchor="middle"))
    return parts


def _curves(samples: Sequence[Mapping[str, Any]], end: float, x: _Scale, y: _Scale) -> list[str]:
    """Return the line of each job, which begins at its first trainer, and its label."""
    parts = []
    for number, (job, colour) in enumerate(COLOURS.items()):
        there = [(sample["t"], sample["running"][job]) for sample in samples]
        first = next(place for place, (_, size) in enumerate(there) if size)
        parts.append(_line(_steps(there[first:], end, x, y, LIFT[job]), colour, width=2.5))
        parts.append(_text(WIDTH - RIGHT + 8, SIZES[0] + 14 + 18 * number, job, colour=colour, weight="bold"))
    return parts


def _waits(runs: Sequence[Mapping[str, Any]], x: _Scale) -> list[str]:
    return [f'<circle cx="{x(run["t"])}" cy="{CPU[1] - 8}" r="3.5" fill="{RED}"/>' for run in runs if run["waiting"]]


def _steps(points: Sequence[Point], end: float, x: _Scale, y: _Scale, lift: float = 0.0) -> str:
    """Return the path of a step function: each value holds until the next point."""
    path, last = [], None
    for at, value in points:
        if value != last:
            path.append(f"M{x(at)} {y(value) - lift:.1f}" if last is None else f"H{x(at)}V{y(value) - lift:.1f}")
            last = value
    return "".join([*path, f"H{x(end)}"])


def _line(path: str, colour: str, width: float = 1.8) -> str:
    return f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="{width}" stroke-linejoin="round"/>'


def _level(at: float, label: str, *, colour: str = FAINT, at_right: bool = False) -> str:
    line = f'<path d="M{LEFT} {at}H{WIDTH - RIGHT}" stroke="{colour}" stroke-width="1"/>'
    place, anchor = (WIDTH - RIGHT + 8, "start") if at_right else (LEFT - 8, "end")
    return line + _text(place, at + 4, label, anchor=anchor, colour=colour if at_right else INK)


def _text(x: float, y: float, text: str, *, anchor: str = "start", colour: str = INK, weight: str = "normal") -> str:
    style = f'fill="{colour}" font-size="12" font-weight="{weight}" text-anchor="{anchor}"'
    return f'<text x="{x}" y="{y}" {style}>{escape(text)}</text>'
