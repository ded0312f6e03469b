"""Settings of the HTTP server: addresses, limits on bodies, connections and open answers, and shutdown."""

import ipaddress
from typing import Annotated, Literal, TypeAlias
from urllib.parse import urlsplit

from pydantic import BeforeValidator, Field, field_validator
from pydantic_settings import NoDecode

from app.api.http_settings import LOOPBACK_HOSTS, HttpSettings
from app.base.cores import default_workers, usable_cores
from app.http_server.forwarding import Network, TrustedProxies
from app.http_server.limits import ServerLimits
from app.services.limits.long_request_limits import LongRequestLimits
from app.settings.kept_logs import KeptLogSettings


def _split(value: object) -> object:
    return tuple(item.strip() for item in value.split(",") if item.strip()) if isinstance(value, str) else value


# A comma-separated list in an environment variable.
# NoDecode, because pydantic-settings decodes a list as JSON by default.
Names: TypeAlias = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split)]


def _networks(listed: tuple[str, ...]) -> tuple[Network, ...]:
    """Return the networks of a list of addresses and networks.

    Raises:
        ValueError: an entry is neither. The message names it.
    """
    try:
        return tuple(ipaddress.ip_network(each) for each in listed)
    except ValueError as error:
        raise ValueError(f"{error}; expected addresses or networks, such as 10.0.0.0/8") from None


class ServingSettings(KeptLogSettings):
    """The settings of the HTTP server. Times are in seconds and sizes in bytes, unless a description says otherwise."""

    role: Annotated[
        Literal["api", "controller", "logs", "all"],
        Field(description="role of this process: serve the API, run the controller, keep whole logs, or all of them"),
    ] = "all"
    host: Annotated[str, Field(description="address to serve on")] = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535, description="port to serve on; 0 chooses a free port")] = 8080
    metrics_port: Annotated[
        int | None,
        Field(
            ge=0,
            le=65535,
            description="port on which /metrics is served, and nothing else; 0 chooses a free port. By default that of "
            "the API serves it, to everybody who reaches that port",
        ),
    ] = None
    workers: Annotated[
        int | None,
        Field(
            ge=1,
            le=64,
            description="API processes on one socket; by default one less than the cores, from 1 to 4. The controller "
            "has its own process, unless this is 1, or unset with one core",
        ),
    ] = None
    server_url: Annotated[
        str | None,
        Field(description="URL at which pods reach this gateway; by default the address of this process"),
    ] = None
    shutdown_timeout: Annotated[
        float,
        Field(gt=0, description="longest time from SIGTERM to the end of the process; Kubernetes kills it after 30 s"),
    ] = 25.0
    cors_origins: Annotated[Names, Field(description="comma-separated origins from which browsers may call")] = ()
    open_access: Annotated[
        bool, Field(description="serve without tokens, each caller as admin; only on a loopback address")
    ] = False
    allowed_hosts: Annotated[
        Names,
        Field(description="comma-separated host names that open access accepts, besides those of loopback"),
    ] = ()
    max_body_bytes: Annotated[int, Field(ge=1024, description="largest request body")] = 3 * 1024 * 1024
    max_bodies_bytes: Annotated[
        int,
        Field(
            ge=1024,
            description="total size of request bodies over 16 KiB at once: 8 of the largest, half of one caller",
        ),
    ] = 24 * 1024 * 1024
    gzip_min_bytes: Annotated[
        int,
        Field(
            ge=0,
            description="smallest answer that is compressed: a shorter one fits into three packets; 0 compresses none",
        ),
    ] = 4096
    max_open: Annotated[
        int,
        Field(ge=1, description="most open streams, long polls, logs and CSVs of a process; each needs 100 KiB"),
    ] = 5000
    max_open_per_token: Annotated[
        int, Field(ge=1, description="most of these for one token: half, so that one token cannot exclude the others")
    ] = 2500
    max_open_logs: Annotated[
        int,
        Field(
            ge=1,
            description="most of these that are logs: each uses a connection to the API server, besides 100 for other "
            "calls, and a merged log counts once for each replica",
        ),
    ] = 150
    max_waiting_submissions: Annotated[
        int,
        Field(
            ge=1,
            description="most submissions that wait for their turn: what a process stores in a few seconds. When more "
            "arrive, the newest one of the token with the most waiting ones is refused",
        ),
    ] = 1000
    dry_run_rate: Annotated[
        float,
        Field(
            ge=0,
            le=1000,
            description="most objects per second that dry runs have the cluster check: a tenth of the creates that a "
            "small API server carries out; 0 never involves the cluster",
        ),
    ] = 20.0
    max_header_bytes: Annotated[
        int,
        Field(ge=8192, description="largest size of request line and headers; common proxies send at most 8 to 32 KiB"),
    ] = 64 * 1024
    max_connections: Annotated[
        int,
        Field(ge=8, description="most open connections: those of MAX_OPEN, and 1000 for other requests"),
    ] = 6000
    max_connections_per_address: Annotated[
        int,
        Field(
            ge=1, description="most connections of one client address: half. Behind a proxy, set it to MAX_CONNECTIONS"
        ),
    ] = 3000
    trusted_proxies: Annotated[
        Names,
        Field(
            description="comma-separated addresses or networks of proxies whose X-Forwarded-For names the client of a "
            "request, in the access log and for limits on sign-ins"
        ),
    ] = ()
    header_timeout: Annotated[
        float, Field(gt=0, description="longest time for headers; a working client sends them in one packet")
    ] = 10.0
    body_timeout: Annotated[
        float, Field(gt=0, description="longest time for a body; the largest one then needs 0.5 Mbit/s")
    ] = 60.0
    idle_timeout: Annotated[
        float, Field(gt=0, description="longest time between two requests; longer than the 60 s of common proxies")
    ] = 75.0
    send_timeout: Annotated[
        float,
        Field(gt=0, description="longest time for a client to take 16 KiB of an answer: 273 B/s, slower than any link"),
    ] = 60.0
    max_stall: Annotated[
        float,
        Field(ge=0, description="CPU time of a callback above which it is logged as loop.stalled; 0 disables it"),
    ] = 0.0
    drain_seconds: Annotated[
        float,
        Field(
            ge=0,
            description="shortest time after SIGTERM in which it serves but is not ready, so that load balancers learn "
            "of it; then it serves until no request has come for a second",
        ),
    ] = 5.0

    @field_validator("trusted_proxies")
    @classmethod
    def _proxies_are_networks(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        _networks(value)
        return value

    def api_workers(self) -> int:
        return self.workers or default_workers(usable_cores())

    def needs_supervisor(self) -> bool:
        """Return whether workers and controller have processes of their own, which a supervisor starts."""
        if self.role == "all" and self.workers is None:
            return usable_cores() > 1
        return self.role not in {"controller", "logs"} and self.api_workers() > 1

    def keeps_logs(self) -> bool:
        """Return whether a process of this role keeps whole logs."""
        return self.role == "logs" or (self.role == "all" and bool(self.log_store))

    def serves_loopback(self) -> bool:
        """Return whether the address can be reached from this machine only."""
        try:
            return self.host == "localhost" or ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    def long_requests(self) -> LongRequestLimits:
        return LongRequestLimits(total=self.max_open, per_token=self.max_open_per_token, logs=self.max_open_logs)

    def http(self) -> HttpSettings:
        return HttpSettings(
            max_body_bytes=self.max_body_bytes,
            # Otherwise the largest body would never be accepted.
            max_bodies_bytes=max(self.max_bodies_bytes, self.max_body_bytes),
            cors_origins=self.cors_origins,
            gzip_min_bytes=self.gzip_min_bytes,
            access_log=self.writes_access_log(),
            serves_metrics=self.metrics_port is None,
            hosts=self._hosts(),
            proxies=TrustedProxies(_networks(self.trusted_proxies)),
        )

    def _hosts(self) -> tuple[str, ...]:
        """Return the accepted Host names of open access: another name can come from a web page (DNS rebinding)."""
        if not self.open_access:
            return ()
        bound = f"[{self.host}]" if ":" in self.host else self.host
        public = urlsplit(self.server_url).netloc if self.server_url else bound
        return (*LOOPBACK_HOSTS, bound, public, *self.allowed_hosts)

    def server_limits(self) -> ServerLimits:
        return ServerLimits(
            max_header_bytes=self.max_header_bytes,
            max_connections=self.max_connections,
            max_connections_per_address=self.max_connections_per_address,
            header_timeout=self.header_timeout,
            body_timeout=self.body_timeout,
            idle_timeout=self.idle_timeout,
            send_timeout=self.send_timeout,
        )
