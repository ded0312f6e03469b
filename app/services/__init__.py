"""The use cases of the API. Each runs in one transaction, and none of them calls the cluster.

The one exception is `logs`, which reads the log of a running container. The caller of a service has checked with
`access` what the principal may do. Clocks and randomness are arguments.
"""
