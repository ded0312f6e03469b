"""Starts the processes of containers in mount namespaces, waits for them, and kills them with all descendants."""
