"""The last Kubernetes events about an ended attempt's pod."""

from sqlalchemy import Table

from app.models.base import attempt_key, json_column, metadata

attempt_events = Table("attempt_events", metadata, *attempt_key(), json_column("events", "[]"))
