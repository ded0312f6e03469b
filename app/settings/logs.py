"""Settings of the log."""

from typing import Annotated, Literal

from pydantic import Field
from pydantic_settings import BaseSettings


class LogSettings(BaseSettings):
    """The settings of the log."""

    log_format: Annotated[
        Literal["json", "text"], Field(description="format of log lines: json for programs, text for people")
    ] = "json"
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"], Field(description="lowest severity that is logged")
    ] = "info"
    access_log: Annotated[
        Literal["on", "off"],
        Field(description="whether a line of the severity info is logged for each request, except successful probes"),
    ] = "on"

    def writes_access_log(self) -> bool:
        return self.access_log == "on" and self.log_level in ("debug", "info")
