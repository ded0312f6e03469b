"""The HTTP API of the embedded cluster: reads requests, calls the registry, and writes answers.

Every error answer is a Kubernetes Status.
"""
