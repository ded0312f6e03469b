"""All SQL there is. Callers pass values and get values; none of them ever sees a query or a driver's error.

Nothing here calls the network beside Postgres, and no transaction outlives the call that opened it. Expiry of leases
is by the database's clock; every other moment is an argument.
"""
