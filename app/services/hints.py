"""Hints between processes: of new work for the controller, and of new entries of the feed. A hint may be lost."""

from collections.abc import Callable, Coroutine
from typing import Any, TypeAlias

Hint: TypeAlias = Callable[[], None]
"""Announces a changed intent to the controller."""
FeedHint: TypeAlias = Callable[[], Coroutine[Any, Any, None]]
"""Waits until the feed may have new entries, at the latest for its polling interval."""
