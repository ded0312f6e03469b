"""Who a job's own pods are: they carry a credential that opens their job and nothing else."""

from uuid import UUID

from app.domain.access.credentials import is_credential_of


class JobCredentials:
    """Of the installation whose key this is."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def opens(self, uid: UUID, token: str) -> bool:
        """Whether the token is that of the job, in constant time."""
        return is_credential_of(self._key, str(uid), token)
