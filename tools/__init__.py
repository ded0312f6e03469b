"""Tools for the repository itself: generated files, the suites on a real cluster, lock files, what is published."""
