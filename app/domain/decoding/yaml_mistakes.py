"""Recognizes common mistakes in YAML that cannot be decoded, so that the error can name the next step."""

import re
from typing import Final

KEEP_NEWLINES: Final = "YAML with its newlines; curl -d @FILE removes them, and curl --data-binary @FILE keeps them"
REPLACE_TABS: Final = "spaces as indentation: replace each tab, for example with the command expand"
RENDER: Final = "a manifest without {{ … }} and {% … %}: render the template first, for example with helm template"
_MANIFEST_KEY: Final = re.compile(r"apiVersion:|kind:|metadata:|spec:")
# An expression of Helm or Jinja outside of quotes: a value of its own, or a line of its own.
_TEMPLATE: Final = re.compile(r"^\s*(?:- )?(?:[\w./-]+:)? *(?:\{\{|\{%)", re.MULTILINE)
_INDENTATION: Final = re.compile(r"[\s-]*")


def lost_newlines(text: str) -> bool:
    """Return whether text that is no valid YAML is a manifest in a single line."""
    line = text.strip()
    return "\n" not in line and "\r" not in line and len(set(_MANIFEST_KEY.findall(line))) > 1


def is_indented_by_tab(text: str, line: int) -> bool:
    """Return whether a tab precedes the content of this line, counted from 0."""
    lines = text.split("\n", line + 1)
    indentation = _INDENTATION.match(lines[line]) if line < len(lines) else None
    return indentation is not None and "\t" in indentation[0]


def is_template(text: str) -> bool:
    """Return whether text that is no valid manifest is a template of Helm or Jinja that has not been rendered."""
    return _TEMPLATE.search(text) is not None
