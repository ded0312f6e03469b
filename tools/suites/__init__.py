"""The suites of tests that need more than this repository, and the property tests with random examples."""
