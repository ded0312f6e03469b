"""What tests log is shown with plain tracebacks.

By default structlog formats them with rich, if it is installed. The first one takes a second of CPU time.
"""

import structlog

*_processors, _ = structlog.get_config()["processors"]
_plain = structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback)
structlog.configure(processors=[*_processors, _plain])
