"""A cluster and a controller as values, and what holds after every reconcile."""
