"""The Kubernetes client. No other package sends requests to the cluster, and this one does not know about jobs.

It decodes answers into small frozen structs, without characters that Postgres cannot store. Every call has a timeout,
and every failure is an `app.k8s.errors.KubeError`. kubernetes_asyncio is used only to read the configuration.
"""
