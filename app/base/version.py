"""The version of the gateway, which its answers, metrics and traces report."""

from importlib.metadata import version
from typing import Final

VERSION: Final = version("jobgate-server")
