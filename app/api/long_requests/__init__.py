"""Answers to long-running requests: streams, long polls and merged logs."""
