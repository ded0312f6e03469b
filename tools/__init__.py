"""Tools for the repository itself: lock files, generated files, the suites on a real cluster."""
