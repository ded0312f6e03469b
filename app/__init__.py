"""jobgate: one HTTP API in front of Kubernetes for distributed training jobs.

Two halves that meet only in Postgres: requests write intent and read the mirror, loops carry intent to
Kubernetes and mirror pods back. `app.domain` between them says what a job means, and does no I/O.
"""
