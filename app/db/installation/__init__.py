"""What is stored once for the whole installation: its identity and time, leases, heartbeats and API tokens.

The figures of `/api/v1/system` and those of the metrics of the installation are computed here, too.
"""
