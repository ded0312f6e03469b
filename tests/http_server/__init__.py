"""Tests of app/http_server; `tests/attack` tries it against hostile clients."""
