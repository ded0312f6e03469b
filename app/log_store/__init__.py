"""The object store of whole logs: a folder, S3, Google Cloud Storage or Azure. It knows nothing of logs and jobs."""

from app.log_store.store import LogStore, ObjectMissing, StoredObject, StoreUnavailable, open_store

__all__ = ["LogStore", "ObjectMissing", "StoreUnavailable", "StoredObject", "open_store"]
