"""The only code that speaks Kubernetes. It knows objects, not jobs.

Bytes become small frozen structs here and nowhere else, cleaned of what Postgres could not store; every call has
a timeout; every failure is a `app.k8s.errors.KubeError`. kubernetes_asyncio is used for configuration alone.
"""
