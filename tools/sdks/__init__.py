"""`make sdks`: generates clients from the OpenAPI document, compiles them, and runs a scenario with each.

Rule: everything that depends on a language or a generator is a row of a table in `catalog.py`.
"""
