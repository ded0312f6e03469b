"""The logs of replicas: which ones an argument names, several at once, and their lines."""
