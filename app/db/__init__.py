"""All SQL of jobgate. Callers pass and receive values. They never see a query or an error of the driver.

Functions of this package do no I/O except to PostgreSQL, and no transaction outlives the call that opened it. Leases
expire by the clock of the database; every other time is an argument.
"""
