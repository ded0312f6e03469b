"""Logs, metrics and spans as a test reads them."""
