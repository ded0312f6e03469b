"""Settings of what is kept of logs: their ends, and whole logs, where, how much and for how long."""

from typing import Annotated

from pydantic import Field, field_validator

from app.log_store import open_store
from app.loops.controller_settings import EvidenceSettings
from app.loops.logs.limits import UNLIMITED, LogLimits
from app.settings.logs import LogSettings


class KeptLogSettings(LogSettings):
    """The settings of what is kept of logs. Times are in seconds and sizes in bytes."""

    evidence_log_bytes: Annotated[
        int, Field(ge=0, description="bytes at the end of each container's log that are stored")
    ] = 64 * 1024
    evidence_deadline: Annotated[
        float, Field(ge=0, description="longest time for reading the logs of an ended attempt")
    ] = 60.0
    log_store: Annotated[
        str,
        Field(
            description="where whole logs are kept: s3://bucket/prefix, gs://bucket/prefix, az://container/prefix "
            "or file:///folder; empty: only the ends of logs are stored"
        ),
    ] = ""
    log_deadline: Annotated[
        float,
        Field(ge=0, description="longest time for which an ended pod waits until its logs are kept whole"),
    ] = 60.0
    log_flush_after: Annotated[
        float, Field(gt=0, description="time after which text of a log is written although it is less than a chunk")
    ] = 120.0
    max_followed_logs: Annotated[
        int,
        Field(
            ge=1,
            description="most logs that a process of the role logs reads at once: each uses a connection to the API "
            "server and about 100 KiB. With more, logs take turns",
        ),
    ] = 1000
    max_unwritten_log_bytes: Annotated[
        int,
        Field(ge=1024 * 1024, description="text of logs that waits in a process of the role logs until it is written"),
    ] = 64 * 1024 * 1024
    max_log_bytes_per_job: Annotated[
        int, Field(ge=0, description="most text that is kept of the logs of one job; 0: no limit")
    ] = 10 * 1024**3
    max_log_bytes_per_namespace: Annotated[
        int, Field(ge=0, description="most text that is kept of the logs of one namespace; 0: no limit")
    ] = 0

    @field_validator("log_store")
    @classmethod
    def _log_store_can_be_opened(cls, value: str) -> str:
        if value:
            open_store(value)
        return value

    def evidence(self) -> EvidenceSettings:
        return EvidenceSettings(
            log_bytes=self.evidence_log_bytes,
            deadline=self.evidence_deadline,
            whole_logs_deadline=self.log_deadline if self.log_store else None,
        )

    def kept_logs(self) -> LogLimits:
        return LogLimits(
            followed=self.max_followed_logs,
            memory=self.max_unwritten_log_bytes,
            flush_after=self.log_flush_after,
            job_bytes=self.max_log_bytes_per_job or UNLIMITED,
            namespace_bytes=self.max_log_bytes_per_namespace or UNLIMITED,
        )
