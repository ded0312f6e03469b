"""What clients read: objects and their parts, manifests, runs of the autoscaler, and the state of the installation.

Logs and watches have packages of their own.
"""
