"""The embedded cluster's HTTP face: it reads requests and writes answers, and leaves what they mean to the registry.

Its law: only this package knows aiohttp's server. Every refusal is a Kubernetes Status.
"""
