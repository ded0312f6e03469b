"""The roles of API tokens."""

from enum import StrEnum


class Role(StrEnum):
    """Each role includes the one before it; docs/operations.md has the table."""

    VIEWER = "viewer"
    SUBMITTER = "submitter"
    ADMIN = "admin"
