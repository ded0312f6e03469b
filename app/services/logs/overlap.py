"""Where a stored log continues what was read of the log while it was live. Without I/O.

The stored log is the end of the log as text. It may begin within a line, before or after the first byte that was read.
"""


def length_of_overlap(read: bytes, stored: bytes, *, from_start: bool, is_whole: bool) -> int:
    """Return how many bytes at the beginning of the stored log are known from what was read.

    A log that repeats itself can have several answers. The result is then the one with the longest text in common, and
    of these the earliest in the stored log, so that no new text is lost.

    Args:
        read: the end of what was read.
        stored: the stored log.
        from_start: whether `read` begins with the first byte of the log.
        is_whole: whether `stored` does.
    """
    if from_start:
        if is_whole and (stored.startswith(read) or read.startswith(stored)):
            return min(len(read), len(stored))
        # The stored log starts later than the first byte, so an overlap cannot include that byte.
        return _longest_overlap(read[1:], stored)
    if read and (start := stored.find(read)) >= 0:
        return start + len(read)
    return _longest_overlap(read, stored)


def _longest_overlap(read: bytes, stored: bytes) -> int:
    """Return the length of the longest text with which `read` ends and `stored` begins."""
    if read.endswith(stored):
        return len(stored)
    # The prefix function of Knuth, Morris and Pratt, whose time is linear also for a log that repeats itself. The
    # number in the middle equals no byte.
    values = [*stored[: len(read)], -1, *read[-len(stored) :]]
    borders = [0] * len(values)
    for index in range(1, len(values)):
        length = borders[index - 1]
        while length and values[length] != values[index]:
            length = borders[length - 1]
        borders[index] = length + (values[length] == values[index])
    return borders[-1]
