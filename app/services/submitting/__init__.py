"""Submission of new objects.

`objects` has the steps for all resources; `jobs` and `samples` add what only they need. `cluster_*` check new objects
against the cluster, and `request_keys` has the Idempotency-Keys.
"""
