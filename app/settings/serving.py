"""Settings of what serves HTTP: addresses, limits of bodies, connections and open answers, the order of a shutdown."""

from typing import Annotated, TypeAlias
from urllib.parse import urlsplit

from pydantic import BeforeValidator, Field
from pydantic_settings import BaseSettings, NoDecode

from app.api.browsers import LOOPBACK_HOSTS
from app.api.settings import HttpSettings
from app.http_server.limits import ServerLimits
from app.services.lasting import LastingLimits


def _split(value: object) -> object:
    return tuple(item.strip() for item in value.split(",") if item.strip()) if isinstance(value, str) else value


# A comma-separated list in an environment variable.
Names: TypeAlias = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split)]


class ServingSettings(BaseSettings):
    """Times are seconds and sizes bytes unless the text says otherwise."""

    host: Annotated[str, Field(description="address to serve on")] = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535, description="port to serve on; 0 takes a free one")] = 8080
    server_url: Annotated[
        str | None,
        Field(description="where pods reach this gateway; by default the address that this process serves on"),
    ] = None
    shutdown_timeout: Annotated[
        float,
        Field(gt=0, description="from SIGTERM until the process ends, whatever hangs; Kubernetes kills it after 30 s"),
    ] = 25.0
    cors_origins: Annotated[Names, Field(description="comma-separated origins that browsers may call from")] = ()
    open_access: Annotated[
        bool, Field(description="serve without tokens, as an admin; refused on anything but a loopback address")
    ] = False
    allowed_hosts: Annotated[
        Names,
        Field(description="comma-separated host names, beside loopback's, that open access answers to"),
    ] = ()
    max_body_bytes: Annotated[int, Field(ge=1024, description="largest request body")] = 3 * 1024 * 1024
    max_bodies_bytes: Annotated[
        int,
        Field(
            ge=1024,
            description="request bodies over 16 KiB held at once: 8 of the largest, which decoded take 600 MiB at most",
        ),
    ] = 24 * 1024 * 1024
    max_open: Annotated[
        int,
        Field(ge=1, description="streams, long polls and logs that a process holds open; each is a socket and 100 KiB"),
    ] = 5000
    max_open_per_token: Annotated[
        int, Field(ge=1, description="of these those of one token: half, so that no token keeps others out")
    ] = 2500
    max_open_logs: Annotated[
        int, Field(ge=1, description="of these logs: each holds one of 100 connections to the API server")
    ] = 50
    max_header_bytes: Annotated[
        int, Field(ge=8192, description="largest request line with headers; proxies commonly send 8 to 32 KiB at most")
    ] = 64 * 1024
    max_connections: Annotated[
        int,
        Field(ge=8, description="connections served at once: all that MAX_OPEN allows, and 1000 for other requests"),
    ] = 6000
    max_connections_per_address: Annotated[
        int, Field(ge=1, description="connections of one client address: half; behind a proxy, as many as in total")
    ] = 3000
    header_timeout: Annotated[
        float, Field(gt=0, description="for a request's headers; a working client sends them in one packet")
    ] = 10.0
    body_timeout: Annotated[
        float, Field(gt=0, description="for a request's body; the largest one then needs 0.5 Mbit/s")
    ] = 60.0
    idle_timeout: Annotated[
        float, Field(gt=0, description="between two requests of a connection; longer than proxies keep them, 60 s")
    ] = 75.0
    send_timeout: Annotated[
        float,
        Field(gt=0, description="for a client to take the next 16 KiB of an answer: 273 B/s, which any link can do"),
    ] = 60.0
    max_stall: Annotated[
        float,
        Field(ge=0, description="CPU time of one callback that is logged with its stack as loop.stalled; 0 for never"),
    ] = 0.0
    drain_seconds: Annotated[
        float, Field(ge=0, description="served on after SIGTERM, not ready, until load balancers know")
    ] = 5.0

    def lasting(self) -> LastingLimits:
        return LastingLimits(total=self.max_open, per_token=self.max_open_per_token, logs=self.max_open_logs)

    def http(self) -> HttpSettings:
        return HttpSettings(
            max_body_bytes=self.max_body_bytes,
            max_bodies_bytes=max(self.max_bodies_bytes, self.max_body_bytes),
            cors_origins=self.cors_origins,
            hosts=self._hosts(),
        )

    def _hosts(self) -> tuple[str, ...]:
        """With open access, the names of this gateway: any other one in a Host header is a web page's trick."""
        if not self.open_access:
            return ()
        bound = f"[{self.host}]" if ":" in self.host else self.host
        told = urlsplit(self.server_url).netloc if self.server_url else bound
        return (*LOOPBACK_HOSTS, bound, told, *self.allowed_hosts)

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
