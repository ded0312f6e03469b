"""Tests of app/http_server. `tests/attack` has the tests with hostile clients."""
