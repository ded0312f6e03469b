"""Whole logs as they are kept: their keys, the chunks into which a log is cut, and what is known of each of them."""
