"""The containers of a pod: what each one runs, when it restarts, its probes and hooks, and its log."""
