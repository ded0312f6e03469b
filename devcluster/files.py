"""Files that nobody but their owner may read."""

import os
from pathlib import Path
from tempfile import NamedTemporaryFile


def write_private(path: Path, text: str) -> None:
    """Replace a file as a whole with mode 0600; a reader sees the old content or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with NamedTemporaryFile("w", dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
        Path(file.name).chmod(0o600)
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    Path(file.name).replace(path)
