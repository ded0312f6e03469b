"""Requests that Schemathesis derives from the OpenAPI document. `make test-openapi` runs this suite."""
