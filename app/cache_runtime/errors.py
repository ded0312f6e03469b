"""What a job or the server's operator is told when something cannot be."""


class JobFailed(Exception):  # noqa: N818 - the outcome of a job, told to whoever posted it
    """A job cannot be done; the message becomes its result."""


class NotServable(Exception):  # noqa: N818 - a message for the operator
    """The server cannot start as it was told to."""
