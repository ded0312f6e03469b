"""The session of docs/cli.md: its commands, what they print, and what of it differs in each run."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "cli.md"
_BLOCK = re.compile(r"(?<=^```console session\n)(.*?)(?=^```$)", re.MULTILINE | re.DOTALL)
_MARK = re.compile(r"^@@\d+@@\n?", re.MULTILINE)
# Times of day, ages and durations.
_VARYING = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d|\b\d+(?:s|m|m\d+s)\b")
# On a busy machine, a short job ends before its controller sees it run. It then has no duration.
_OF_AN_ENDED_JOB = re.compile(r"(?<=  Succeeded)  …$")


@dataclass(frozen=True, slots=True)
class Step:
    """A command, with the lines that continue it, and what the screen shows after it."""

    command: str
    output: str

    @property
    def comparable(self) -> tuple[str, list[str]]:
        lines = [re.sub(r" {2,}", "  ", _VARYING.sub("…", line)).rstrip() for line in self.output.splitlines()]
        return self.command, [_OF_AN_ENDED_JOB.sub("", line) for line in lines]


def documented() -> list[Step]:
    """Return the steps of the page. A command begins with `$`, and its further lines with `>`."""
    (text,) = _BLOCK.findall(PAGE.read_text())
    found = []
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        first, *rest = part.rstrip("\n").split("\n")
        more = [line for line in rest if line.startswith("> ")]
        command = "\n".join([first, *(line.removeprefix("> ") for line in more)])
        found.append(Step(command, "\n".join(rest[len(more) :])))
    return found


def script(steps: Sequence[Step]) -> str:
    """Return the commands with a mark before each, which leaves `$?` as it is."""
    marked = (f"status=$?; echo '@@{number}@@'; (exit $status)\n{step.command}" for number, step in enumerate(steps))
    return "\n".join(marked) + "\n"


def observed(steps: Sequence[Step], screen: str) -> list[Step]:
    """Return the steps with what the screen shows of each."""
    _, *outputs = _MARK.split(screen)
    return [Step(step.command, output.rstrip("\n")) for step, output in zip(steps, outputs, strict=True)]


def write(steps: Sequence[Step]) -> None:
    """Write what was observed into the page."""
    text = ""
    for step in steps:
        first, *more = step.command.split("\n")
        lines = [f"$ {first}", *(f"> {line}" for line in more), *step.output.splitlines()]
        text += "\n".join(line.rstrip() for line in lines) + "\n"
    PAGE.write_text(_BLOCK.sub(lambda _: text, PAGE.read_text()))
