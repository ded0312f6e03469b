"""What keeps the repository itself in order: lock files, generated files, the cluster suites."""
