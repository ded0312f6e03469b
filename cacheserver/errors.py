"""The errors of the runtime server."""


class JobFailed(Exception):  # noqa: N818 - the outcome of a job
    """A job has failed; the message becomes part of its result."""


class StartupError(Exception):
    """The server cannot start with this configuration; the message is for its operator."""
