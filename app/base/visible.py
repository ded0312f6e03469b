r"""Makes characters visible that a terminal would interpret, in lines of the log and in what commands print. Pure.

Any text may come from a tenant, a container, or an object of the cluster. Such characters are written as escapes, for
example `\x1b` and `\u202e`.
"""

import re
from typing import Final

# Control characters of ASCII and Latin-1, marks that change the direction of text, line and paragraph separators, and
# surrogates without a partner, which no stream can encode. The client has the same ones, in
# jobgate/cli/rendering/visible.py.
_UNSAFE: Final = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def visible_line(text: str) -> str:
    """Return text that has to stay within one line."""
    return _UNSAFE.sub(lambda found: found.group().encode("unicode_escape").decode("ascii"), text)


def visible_lines(text: str) -> str:
    """Return text that may have several lines."""
    return "\n".join(map(visible_line, text.split("\n")))
