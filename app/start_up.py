"""Garbage collection while a process of the server starts, and after."""

import gc


def begin_start_up() -> None:
    """Stop garbage collection until `end_start_up`.

    Imports make hundreds of thousands of objects that live until the end of the process, and almost no garbage. The
    search for it would take a fifth of the time of a start.
    """
    gc.disable()


def end_start_up() -> None:
    """Exclude the objects of start-up from garbage collection, and begin it.

    They include about two thousand objects of garbage, which are not worth a search.
    """
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)  # a request makes thousands of objects and few cycles
    gc.enable()
