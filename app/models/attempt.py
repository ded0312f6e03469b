"""An attempt that has ended: what a replica's row says no longer once it has been replaced."""

from sqlalchemy import Table

from app.models.base import attempt_fields, attempt_key, metadata

attempts = Table("attempts", metadata, *attempt_key(), *attempt_fields())
