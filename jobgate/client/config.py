"""Which gateway a command talks to: options, then environment variables, then the current context."""

import os
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import msgspec

from jobgate.client.errors import JobgateError
from jobgate.client.files import check_file
from jobgate.client.retries import RetryPolicy

if TYPE_CHECKING:
    from jobgate.client import AsyncClient, Client

DEFAULT_SERVER: Final = "http://127.0.0.1:8080"
DEFAULT_NAMESPACE: Final = "default"
# The environment variables of the client. None of them is a setting of the gateway.
SERVER: Final = "JOBGATE_SERVER"
TOKEN: Final = "JOBGATE_TOKEN"  # noqa: S105 - the name of a variable
NAMESPACE: Final = "JOBGATE_NAMESPACE"
CONTEXT: Final = "JOBGATE_CONTEXT"
CONFIG: Final = "JOBGATE_CONFIG"
VARIABLES: Final = frozenset({SERVER, TOKEN, NAMESPACE, CONTEXT, CONFIG})


class Context(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A gateway, the token for it, and the namespace of commands without `-n`.

    `ca_file` is a file of certificate authorities that the client accepts beside those of the system.

    A token of an OIDC issuer expires, and the refresh token yields the next one.
    """

    server: str
    token: str | None = None
    namespace: str = DEFAULT_NAMESPACE
    refresh_token: str | None = None
    expires_at: datetime | None = None
    ca_file: str | None = None


class Contexts(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The file of the contexts by name."""

    current: str | None = None
    contexts: dict[str, Context] = {}


class ContextError(JobgateError):
    """The file of contexts, the name of a context, an address or a token is invalid, so a command has no gateway."""


def contexts_file(environment: Mapping[str, str]) -> Path:
    if given := environment.get(CONFIG):
        return Path(given)
    base = environment.get("XDG_CONFIG_HOME") or str(Path(environment.get("HOME", "~")).expanduser() / ".config")
    return Path(base) / "jobgate" / "config.yaml"


def load(path: Path) -> Contexts:
    try:
        check_file(path)
        return msgspec.yaml.decode(path.read_bytes(), type=Contexts)
    except FileNotFoundError:
        return Contexts()
    except OSError as error:
        raise ContextError(f"{path}: {error.strerror}") from None
    except msgspec.MsgspecError as error:
        raise ContextError(f"{path} is not a file of contexts: {error}") from None


def save(path: Path, contexts: Contexts) -> None:
    """Write the file so that only its user can read it: it contains tokens."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        content = msgspec.yaml.encode(contexts)
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        temporary.replace(path)
    except UnicodeEncodeError as error:
        raise ContextError(f"{error.object!r} is not valid text; accepted: UTF-8") from None
    except OSError as error:
        with suppress(OSError):
            temporary.unlink()
        raise ContextError(f"{path}: {error.strerror}") from None


def name_of(contexts: Contexts, environment: Mapping[str, str], context: str | None = None) -> str | None:
    """Return the name of the context of a command; None if there is none."""
    return context or environment.get(CONTEXT) or contexts.current


def resolve(
    contexts: Contexts,
    environment: Mapping[str, str],
    *,
    server: str | None = None,
    namespace: str | None = None,
    context: str | None = None,
) -> Context:
    """Return the gateway of a command. A token belongs to its server, so another server does not get it."""
    name = name_of(contexts, environment, context)
    if name is not None and name not in contexts.contexts:
        known = ", ".join(sorted(contexts.contexts)) or "none; create one with `jobgate login`"
        raise ContextError(f"there is no context {name}; accepted: {known}")
    chosen = contexts.contexts[name] if name is not None else Context(server=DEFAULT_SERVER)
    address = checked_address(server or environment.get(SERVER) or chosen.server)
    chosen_namespace = namespace or environment.get(NAMESPACE) or chosen.namespace
    is_other = address != chosen.server.rstrip("/")
    if is_other or environment.get(TOKEN):
        ca_file = None if is_other else chosen.ca_file
        token = checked_token(environment.get(TOKEN))
        return Context(server=address, token=token, namespace=chosen_namespace, ca_file=ca_file)
    checked_token(chosen.token)
    return msgspec.structs.replace(chosen, server=address, namespace=chosen_namespace)


def checked_address(server: str) -> str:
    """Return the address of a gateway without a slash at its end.

    Raises:
        ContextError: it is not an HTTP URL with a host, or has a user, who would replace the token.
    """
    # Here, because the help of a command does not need the HTTP library.
    from httpx2 import URL, InvalidURL  # noqa: PLC0415

    try:
        parts = urlsplit(server)
        is_url = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
        has_user = "@" in parts.netloc
        URL(server)
    except (ValueError, InvalidURL):  # such as a port that is no number, or a host that no name server can know
        is_url = has_user = False
    if has_user:
        raise ContextError(
            "the address of the server has a user or a password; accepted: http://HOST:PORT or https://HOST, and a "
            "token in JOBGATE_TOKEN or of `jobgate login`"
        )
    if not is_url or any(character.isspace() for character in server):
        raise ContextError(f"the server {server} is no address; accepted: http://HOST:PORT or https://HOST")
    return server.rstrip("/")


def checked_token(token: str | None) -> str | None:
    """Return the token, after checking that an HTTP header can contain it.

    Raises:
        ContextError: a header cannot contain it. The message does not show it.
    """
    if token and not (token.isascii() and token.isprintable() and " " not in token):
        raise ContextError("the token is not valid; accepted: printable ASCII characters without spaces or line ends")
    return token


def with_context(contexts: Contexts, name: str, context: Context) -> Contexts:
    """Return the contexts with this one, which becomes the current one."""
    return Contexts(current=name, contexts={**contexts.contexts, name: context})


def replace_context(contexts: Contexts, name: str, context: Context) -> Contexts:
    """Return the contexts with this one in the place of that with its name."""
    return Contexts(current=contexts.current, contexts={**contexts.contexts, name: context})


def chosen_context(contexts: Contexts, name: str | None, namespace: str | None) -> Contexts:
    """Return the contexts with another current one, or with another namespace of that one."""
    chosen = name or contexts.current
    if chosen is None or chosen not in contexts.contexts:
        known = ", ".join(sorted(contexts.contexts)) or "none; create one with `jobgate login`"
        raise ContextError(f"there is no context {chosen or 'yet'}; accepted: {known}")
    old = contexts.contexts[chosen]
    return with_context(contexts, chosen, msgspec.structs.replace(old, namespace=namespace or old.namespace))


def connect(context: Context, retries: RetryPolicy | None = None) -> "Client":
    # Here, because the help of a command does not need the HTTP library.
    from jobgate.client.synchronous.client import Client  # noqa: PLC0415

    return Client(
        context.server,
        token=context.token,
        namespace=context.namespace,
        ca_file=context.ca_file,
        retries=retries,
    )


def connect_async(context: Context) -> "AsyncClient":
    from jobgate.client.asynchronous.client import AsyncClient  # noqa: PLC0415

    return AsyncClient(context.server, token=context.token, namespace=context.namespace, ca_file=context.ca_file)
