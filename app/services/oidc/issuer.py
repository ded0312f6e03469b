"""Reads the endpoints and keys of an OIDC issuer in the background. It keeps them while the issuer is unreachable."""

import asyncio
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Final

import structlog

from app.base.backoff import ExponentialBackoff
from app.base.cancellation import rounds
from app.base.clock import Clock
from app.services.oidc.http import IssuerAnswer, IssuerUnavailable, call
from app.services.oidc.metadata import DISCOVERY_PATH, IssuerMetadata, SigningKey, keys_of, metadata_of

# Seconds. A key that the issuer has withdrawn verifies tokens for this long at most.
_REFRESH: Final = 300.0
# Between two attempts while the issuer is unreachable.
_RETRY: Final = ExponentialBackoff(first=1.0, longest=60.0)
# Seconds. Tokens that no known key has signed, such as invented ones, cause no more requests than this.
_UNKNOWN_KEY_INTERVAL: Final = 5.0
# Keys with which a token without a key id is tried. Each takes 0.1 ms, and an issuer has two while it changes its key.
_MAX_TRIED: Final = 8

log = structlog.get_logger(__name__)


class Issuer:
    """An OIDC issuer. `run` reads its metadata and keys until cancelled."""

    def __init__(self, url: str, clock: Clock) -> None:
        self.url = url
        self.metadata: IssuerMetadata | None = None
        self.generation = 0
        """Increases with each change of the keys. Tokens that were verified before must be verified again."""
        self._clock = clock
        self._keys: Sequence[SigningKey] = ()
        self._published: Mapping[str, object] | None = None
        self._reading = asyncio.Lock()
        self._not_before = 0.0

    async def run(self) -> None:
        """Read metadata and keys at the start and then regularly."""
        failures = 0
        for _ in rounds():
            failures = 0 if await self._refresh() else failures + 1
            await asyncio.sleep(_RETRY.delay(failures) or _REFRESH)

    def keys(self, key_id: str | None, algorithm: str) -> Sequence[SigningKey]:
        """Return the known keys that may have signed a token with this key id and algorithm, the first ones if many."""
        usable = (key for key in self._keys if algorithm in key.algorithms and key_id in (None, key.id))
        return list(islice(usable, _MAX_TRIED))

    def require_keys(self) -> None:
        """Raise an error if the keys are unknown.

        Raises:
            IssuerUnavailable: the issuer has not answered yet.
        """
        if self._published is None:
            raise IssuerUnavailable("the issuer of the token has not been reached yet: send the request again")

    async def refresh_for_unknown_key(self) -> None:
        """Read the keys again, because none of them has signed a token. Frequent calls do nothing."""
        async with self._reading:
            # Requests that waited for the lock use what the first of them has read.
            if self._clock.monotonic() >= self._not_before:
                try:
                    await self._refresh()
                finally:
                    # The interval begins at the end of the read, because a read without an answer takes longer.
                    self._not_before = self._clock.monotonic() + _UNKNOWN_KEY_INTERVAL

    async def exchange(self, form: Mapping[str, str]) -> IssuerAnswer:
        """Send a form to the token endpoint.

        Raises:
            IssuerUnavailable: the issuer does not answer, or its endpoint is not known yet.
        """
        if self.metadata is None:
            raise IssuerUnavailable("the issuer has not been reached yet: send the request again")
        return await call(self.metadata.token, form)

    async def _refresh(self) -> bool:
        try:
            found = metadata_of((await call(self.url.rstrip("/") + DISCOVERY_PATH)).body, self.url)
            published = (await call(found.keys)).body
            keys = keys_of(published)
        except IssuerUnavailable as error:
            log.warning("oidc.issuer_unavailable", issuer=self.url, error=str(error))
            return False
        self.metadata = found
        if published != self._published:
            self._keys, self._published = keys, published
            self.generation += 1
        return True
