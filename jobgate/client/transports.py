"""How requests reach a gateway: through which proxy, and which certificates it may have."""

import ssl

import httpx2

from jobgate.client.errors import CutOffError, InvalidAuthorityError, ProxyError, UnreachableError
from jobgate.client.files import check_file
from jobgate.client.proxies import Proxy


def make_transport(proxy: Proxy | None, ca_file: str | None) -> httpx2.HTTPTransport:
    """Return the transport of a synchronous client.

    Raises:
        InvalidAuthorityError: the file of certificate authorities cannot be used.
    """
    return httpx2.HTTPTransport(verify=tls_of(ca_file), proxy=proxy.url if proxy else None)


def make_async_transport(proxy: Proxy | None, ca_file: str | None) -> httpx2.AsyncHTTPTransport:
    """Return the transport of an asynchronous client."""
    return httpx2.AsyncHTTPTransport(verify=tls_of(ca_file), proxy=proxy.url if proxy else None)


def tls_of(ca_file: str | None) -> ssl.SSLContext:
    """Return the context that accepts the authorities of the system, and those of the file."""
    context = httpx2.create_ssl_context()
    if ca_file is None:
        return context
    try:
        check_file(ca_file)
        context.load_verify_locations(cafile=ca_file)
    except ssl.SSLError:
        raise InvalidAuthorityError(f"{ca_file} has no certificate; accepted: certificates in the format PEM") from None
    except OSError as error:
        raise InvalidAuthorityError(f"the file of certificate authorities {ca_file}: {error.strerror}") from None
    return context


def cut_off(url: str, error: Exception) -> CutOffError:
    """Return the error of an answer whose connection ended within its body."""
    return CutOffError(f"the answer of {url} is cut off: {_cause(error)}")


def unreachable(url: str, proxy: Proxy | None, error: Exception) -> UnreachableError:
    """Return the error of a request without an answer. It names the proxy if there is one: that was asked first."""
    cause = _cause(error)
    if proxy is None:
        return UnreachableError(f"no answer from {url}: {cause}")
    where = proxy.described
    if isinstance(error, httpx2.ProxyError):
        return ProxyError(f"{where} gives no connection to {url}: {cause}")
    if isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout):
        return ProxyError(f"no answer from {where}, through which {url} is reached: {cause}")
    return ProxyError(f"no answer from {url} through {where}: {cause}")


def _cause(error: Exception) -> str:
    return str(error) or type(error).__name__
