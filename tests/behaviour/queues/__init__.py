"""Jobs that wait for their admission by Kueue. The tests need a cluster with Kueue, and are skipped without it."""
