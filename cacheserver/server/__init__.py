"""The server of one partition: HTTP API, queue of jobs, stored results, and the regular measurement of the cache."""
