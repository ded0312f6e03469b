"""The use cases of the API. None calls the cluster, except for logs, for dry runs and to find its APIs of gangs.

Each stores its result in one transaction, except a redaction, which works in batches.
`gateway` holds the services of a process. `access` says who may do what. `di_server` serves the pods of DIJobs.
"""
