"""The use cases of the API. Each runs in one transaction. None calls the cluster, except for logs and for dry runs.

`gateway` holds the services of a process. `access` says who may do what.
"""
