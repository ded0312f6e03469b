r"""Makes characters visible that a terminal would interpret. Pure.

Names, messages and log lines come from tenants and their containers. A terminal obeys escape sequences in them: it
hides text, changes what was printed before, or answers as if the user had typed. Such characters are written as
escapes, for example `\x1b` and `\u202e`.
"""

import re
import sys
from collections.abc import Sequence
from typing import Any, Final

import yaml

# Control characters of ASCII and Latin-1, marks that change the direction of text, line and paragraph separators,
# and surrogates without a partner, which no stream can encode. Tabs and line ends are absent.
_UNSAFE: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_UNSAFE_IN_LINE: Final = re.compile(f"{_UNSAFE.pattern}|[\n\t]")
# What the error handler `surrogateescape` makes of the bytes 0x80 to 0xff where they are not UTF-8.
_BYTES: Final = range(0xDC80, 0xDD00)
_SGR: Final = re.compile("\x1b\\[([0-9;]{0,64})m")
_NAMED: Final = {"\n": r"\n", "\t": r"\t", "\r": r"\r"}
_RESET: Final = "\x1b[0m"
# The parameters of SGR (ECMA-48) for weight, underline and colours. Those that hide text or let it blink are absent.
_COLOURS: Final = frozenset(
    {0, 1, 2, 3, 4, 21, 22, 23, 24, *range(30, 38), *range(39, 48), 49, *range(90, 98), *range(100, 108)}
)
# The first parameter of other colours. After it follow 5 and a number of a palette, or 2 and three of RGB.
_EXTENDED: Final = frozenset({38, 48})
_FOLLOWING: Final = {5: 1, 2: 3}


def visible(text: str) -> str:
    """Return the text, which may have several lines, without characters that a terminal interprets."""
    return _UNSAFE.sub(_escape, text)


def visible_line(text: str) -> str:
    """Return text that has to stay within one line or one cell of a table."""
    return _UNSAFE_IN_LINE.sub(_escape, text)


def visible_in_json(document: str) -> str:
    r"""Return the same JSON with escapes such as `\u202e`. Outside of strings, JSON has none of these characters."""
    return _UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", document)


def dump_yaml(value: Any) -> str:
    """Return a document of YAML, in which strings with such characters are in double quotes and have escapes."""
    document = yaml.dump(value, Dumper=_Dumper, allow_unicode=True, sort_keys=False, width=sys.maxsize)
    return visible_in_json(document)


class _Dumper(yaml.SafeDumper):
    """Writes strings that need escapes in double quotes."""


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = '"' if _UNSAFE.search(text) else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _represent_text)


def visible_log_line(line: str) -> str:
    """Return a line of a log, whose colours remain. They end with the line, so that the next one is readable."""
    parts: list[str] = []
    end, is_coloured = 0, False
    for match in _SGR.finditer(line):
        parameters = [int(number or 0) for number in match[1].split(";")]
        if _are_colours(parameters):
            parts += [visible(line[end : match.start()]), match[0]]
            end, is_coloured = match.end(), any(parameters)
    return "".join(parts) + visible(line[end:]) + (_RESET if is_coloured else "")


def _are_colours(parameters: Sequence[int]) -> bool:
    waiting = list(reversed(parameters))
    while waiting:
        first = waiting.pop()
        if first in _EXTENDED and waiting and (count := _FOLLOWING.get(waiting.pop())) is not None:
            if len(waiting) < count or any(waiting.pop() > 255 for _ in range(count)):
                return False
        elif first not in _COLOURS:
            return False
    return True


def _escape(match: re.Match[str]) -> str:
    character = match[0]
    if character in _NAMED:
        return _NAMED[character]
    code = ord(character)
    if code in _BYTES:
        code -= _BYTES.start - 0x80
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"
