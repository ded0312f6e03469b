"""One session with the API server: requests, their errors, limits, metrics and spans, and the lines of a watch."""
