"""A text that is redacted while its job is exported is not in the folder afterwards."""

from pathlib import Path
from typing import Any, BinaryIO
from uuid import UUID

import pytest
import zstandard

from app.db.objects.resources import RowVersion
from app.exports import archive as archives
from app.exports import exporter
from app.exports.folders import ExportFolder
from tests.api.routes.test_redaction import redact
from tests.exports.ended_jobs import UNUSUAL, ended_job, exported
from tests.exports.test_archive import archive
from tests.support.gateways.gateway import Gateway

SECRET = "separator"

REDACTED_AT = pytest.mark.parametrize("when", ["after it was read", "while it is put"])


def texts(folder: Path) -> list[bytes]:
    return [zstandard.ZstdDecompressor().stream_reader(file.read_bytes()).read() for file in folder.rglob("*.zst")]


class Redacting:
    """Redacts the job once, at a moment of its export."""

    def __init__(self, gateway: Gateway, uid: str) -> None:
        self._gateway = gateway
        self._uid = uid
        self.changed = 0

    async def once(self) -> None:
        if not self.changed:
            self.changed = (await redact(self._gateway, self._uid, {"texts": [SECRET]})).json()["changed"]

    def at(self, monkeypatch: pytest.MonkeyPatch, when: str) -> None:
        put_segment, put_object = exporter.put_unredacted, ExportFolder.put

        async def after_read(*arguments: Any) -> bool:
            await self.once()
            return await put_segment(*arguments)

        async def while_put(folder: ExportFolder, name: str, file: BinaryIO) -> None:
            await put_object(folder, name, file)
            await self.once()

        if when == "while it is put":
            monkeypatch.setattr(ExportFolder, "put", while_put)
        else:
            monkeypatch.setattr(exporter, "put_unredacted", after_read)
            monkeypatch.setattr(archives, "put_unredacted", after_read)


@REDACTED_AT
async def test_an_export_has_the_job_without_the_text(
    gateway: Gateway, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    assert SECRET in UNUSUAL
    uid = await ended_job(gateway)
    redacting = Redacting(gateway, uid)
    redacting.at(monkeypatch, when)
    assert (await exported(gateway.db, tmp_path)).added == 1
    assert redacting.changed
    [text] = texts(tmp_path)
    assert uid.encode() in text
    assert SECRET.encode() not in text


@REDACTED_AT
async def test_an_archive_has_the_job_without_the_text(
    gateway: Gateway, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    uid = await ended_job(gateway)
    redacting = Redacting(gateway, uid)
    redacting.at(monkeypatch, when)
    await archive(gateway.db, tmp_path).copy([RowVersion(UUID(uid), 1)])
    assert redacting.changed
    [text] = texts(tmp_path)
    assert uid.encode() in text
    assert SECRET.encode() not in text
