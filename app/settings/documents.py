"""Documents that settings name by their path."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from app.base.configured_files import check_file
from app.domain.decoding import decode_yaml
from app.domain.errors import DomainError

_Read = TypeVar("_Read")


def read_document(path: str, convert: Callable[[Any], _Read]) -> _Read:
    """Return the converted YAML document of a file; an empty file has an empty object.

    Raises:
        ValueError: the file cannot be read, is no YAML, or `convert` refuses the document. The message has the path.
    """
    try:
        check_file(path)
        documents = decode_yaml(Path(path).read_bytes())
        return convert(documents[0] if documents else {})
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}") from error
    except DomainError as error:
        raise ValueError(f"{path}: {error}") from error
