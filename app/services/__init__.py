"""The use cases of the API. Each runs in one transaction, and none of them calls the cluster.

`gateway` holds the services of a process. `access` says who may do what.
"""
