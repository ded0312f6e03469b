"""Kubernetes for tests: clusters, nodes, clients, and a proxy that injects faults."""
