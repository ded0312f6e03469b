"""Formats of Kubernetes: objects, names, quantities, label selectors, and the keys of labels."""
