"""Translates HTTP requests into calls of `app.services`, and their results into answers.

This package contains no rule about jobs. Services raise DomainErrors, and only `answers.errors` maps them to HTTP
statuses. Views that clients poll are rendered once for each version of an object and served as bytes.
"""
