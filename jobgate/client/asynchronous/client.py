"""Sends requests to a gateway, and repeats those that it may repeat."""

import asyncio
import os
import random
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, Final, Self, TypeVar

import httpx2

from jobgate.client.asynchronous.objects import AsyncJobs, AsyncSampleJobs, AsyncSampleSets
from jobgate.client.asynchronous.queues import AsyncQueues
from jobgate.client.asynchronous.usage import AsyncUsage
from jobgate.client.errors import ProblemError, problem_error
from jobgate.client.log_bytes import LineSplitter
from jobgate.client.proxies import proxy_of
from jobgate.client.renewal import context_of
from jobgate.client.retries import Failure, RetryPolicy, failure_of, seconds_of
from jobgate.client.transports import cut_off, make_async_transport, unreachable
from jobgate.client.types import Caller, Kind
from jobgate.client.wire import API, Call, Page, decode

T = TypeVar("T")

# Errors before the request was sent: it is safe to repeat any request after one of them.
_NOT_SENT: Final = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)
_ONCE: Final = RetryPolicy(attempts=1)


class AsyncClient:
    """A client of one gateway. Close it, or use it as a context manager.

    Without `url`, it is the gateway of JOBGATE_SERVER or of `jobgate login`, with the token, namespace and certificate
    authorities that are set or saved with it. A saved token of an OIDC issuer that ends soon is renewed by a request
    first. `namespace` applies to all methods that are not given another one. `ca_file` has certificate authorities that
    are accepted beside those of the system. `timeout` limits each wait for the gateway, in seconds. Lost and refused
    requests are repeated according to `retries`; a submission carries an Idempotency-Key, so its repetition creates no
    second object.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        token: str | None = None,
        namespace: str | None = None,
        ca_file: str | None = None,
        timeout: float = 30.0,
        retries: RetryPolicy | None = None,
        headers: Mapping[str, str] | None = None,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        chosen = context_of(url, token=token, namespace=namespace, ca_file=ca_file)
        bearer = {"Authorization": f"Bearer {chosen.token}"} if chosen.token else {}
        self._proxy = None if transport else proxy_of(chosen.server, os.environ)
        self._http = httpx2.AsyncClient(
            base_url=chosen.server,
            headers={**bearer, **(headers or {})},
            timeout=timeout,
            transport=transport or make_async_transport(self._proxy, chosen.ca_file),
        )
        self._via = self._proxy.described if self._proxy else None
        self._timeout = timeout
        self._retries = retries or RetryPolicy()
        self.url = chosen.server
        self.jobs = AsyncJobs(self, chosen.namespace)
        self.sample_sets = AsyncSampleSets(self, chosen.namespace)
        self.sample_jobs = AsyncSampleJobs(self, chosen.namespace)
        self.queues = AsyncQueues(self, chosen.namespace)
        self.usage = AsyncUsage(self, chosen.namespace)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        await self._http.aclose()

    async def kinds(self) -> list[Kind]:
        """Return the kinds that the gateway accepts, with their resources and JSON schemas."""
        return (await self.send(Call(method="GET", path=f"{API}/kinds", answer=Page[Kind]))).items

    async def whoami(self) -> Caller:
        """Return the identity and the roles of the credential that this client sends."""
        return await self.send(Call(method="GET", path=f"{API}/whoami", answer=Caller))

    async def version(self) -> str:
        """Return the version of the gateway."""
        document = await self.send(Call(method="GET", path="/openapi.json", answer=dict[str, Any]))
        return str(document["info"]["version"])

    async def send(self, call: Call[T]) -> T:
        """Send a request and return the decoded body of its answer.

        Raises:
            ProblemError: the gateway answered with an error; its subclasses name the most common ones.
            UnreachableError: there is no answer.
        """
        return decode((await self.exchange(call)).content, call.answer)

    async def exchange(self, call: Call[Any], *, wait: float = 0.0) -> httpx2.Response:
        """Send a request and return its answer, 304 included. `wait` is how long the gateway may delay the answer."""
        return await self._answer_to(call, self._timeout + wait, self._retries)

    @asynccontextmanager
    async def stream(
        self, call: Call[bytes], *, read_timeout: float | None, is_repeated: bool = False
    ) -> AsyncIterator[httpx2.Response]:
        """Send a request and return its answer while the body arrives. `read_timeout` limits each silence.

        It is sent once, or, if `is_repeated`, as other requests are: until an answer begins.
        """
        retries = self._retries if is_repeated else _ONCE
        answer = await self._answer_to(call, read_timeout, retries, is_stream=True)
        try:
            yield answer
        except httpx2.TransportError as error:
            raise cut_off(self.url, error) from error
        finally:
            await answer.aclose()

    @staticmethod
    async def lines_of(answer: httpx2.Response) -> AsyncIterator[str]:
        """Yield the lines of an answer whose body is arriving. A line that a lost connection cuts off is not one."""
        splitter = LineSplitter()
        async for chunk in answer.aiter_bytes():
            for line in splitter.feed(chunk):
                yield line
        for line in splitter.rest():
            yield line

    @staticmethod
    def events_of(answer: httpx2.Response) -> httpx2.EventSource:
        """Return the server-sent events of an answer whose body is arriving."""
        return httpx2.EventSource(answer)

    async def _answer_to(
        self, call: Call[Any], read_timeout: float | None, retries: RetryPolicy, *, is_stream: bool = False
    ) -> httpx2.Response:
        """Send a request, again after failures that `retries` permits, and return its answer, which is no error."""
        attempt = 1
        while True:
            try:
                answer = await self._http.send(self._request(call, read_timeout), stream=is_stream)
                if answer.status_code < 400:
                    return answer
                problem = await self._problem_of(answer)
            except httpx2.TransportError as error:
                failure = Failure.NOT_SENT if isinstance(error, _NOT_SENT) else Failure.UNKNOWN
                delay = _delay(retries, call, failure, attempt)
                if delay is None:
                    raise unreachable(self.url, self._proxy, error) from error
            else:
                again = failure_of(answer.status_code, problem.code)
                after = seconds_of(answer.headers.get("Retry-After"))
                delay = None if again is None else _delay(retries, call, again, attempt, after)
                if delay is None:
                    raise problem
            await asyncio.sleep(delay)
            attempt += 1

    async def _problem_of(self, answer: httpx2.Response) -> ProblemError:
        try:
            return problem_error(answer.status_code, await answer.aread(), self._via)
        finally:
            await answer.aclose()

    def _request(self, call: Call[Any], read_timeout: float | None) -> httpx2.Request:
        return self._http.build_request(
            call.method,
            call.path,
            params=list(call.query),
            headers=dict(call.headers),
            content=call.content,
            timeout=httpx2.Timeout(self._timeout, read=read_timeout),
        )


def _delay(
    retries: RetryPolicy, call: Call[Any], failure: Failure, attempt: int, retry_after: float | None = None
) -> float | None:
    return retries.delay(
        failure,
        attempt=attempt,
        is_repeatable=call.is_repeatable,
        retry_after=retry_after,
        random=random.random(),  # noqa: S311 - spreads repetitions, protects nothing
    )
