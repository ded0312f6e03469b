"""Generates the synchronous client from the asynchronous one (`make openapi`).

Both clients then have the same methods and the same behaviour. Only words are replaced, so the modules of
`jobgate/client/asynchronous` must not use what has no synchronous counterpart, such as tasks.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from tools.generators.formatting import format_module

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "jobgate" / "client" / "asynchronous"
TARGET = ROOT / "jobgate" / "client" / "synchronous"
MODULES = ("client.py", "logs.py", "objects.py", "pages.py", "queues.py", "usage.py")
NOTE = "`make openapi` generates this module from its asynchronous counterpart."
# In this order. The prefix Async of names of types goes last.
REPLACEMENTS = (
    (r"asyncio\.sleep", "time.sleep"),
    (r"^import asyncio\nimport time$", "import time"),
    (r"^import asyncio\nimport os\nimport random$", "import os\nimport random\nimport time"),
    (r"\basync (?=def|with|for)", ""),
    (r"\bawait ", ""),
    (r"\basynccontextmanager\b", "contextmanager"),
    (r"\b__a(enter|exit)__\b", r"__\1__"),
    (r"\ba(close|read|iter_bytes)\b", r"\1"),
    (r"\bmake_async_", "make_"),
    (r"\basynchronous\b", "synchronous"),
    (r"\bAsync(?=[A-Z])", ""),
)


def synchronous(text: str) -> str:
    for pattern, replacement in REPLACEMENTS:
        text = re.sub(pattern, replacement, text, flags=re.MULTILINE)
    summary, rest = text.split("\n", 1)
    # The source has a docstring of one line, which becomes the first paragraph.
    return f'{summary.removesuffix(chr(34) * 3)}\n\n{NOTE}\n"""\n{rest}'


def generate_files() -> Iterator[tuple[Path, str]]:
    """Yield each generated file with its text."""
    for name in MODULES:
        text = synchronous((SOURCE / name).read_text(encoding="utf-8"))
        yield TARGET / name, format_module(text, TARGET / name)


def main() -> int:
    for path, text in generate_files():
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
