"""The controller: it brings Kubernetes to the intent that Postgres holds, and mirrors pods back.

It runs only in the process that holds the lease.

    reflector -> mirror -> work queue -> reconciler: load, reconcile (domain), persist, then act (actuator)

The process may be killed at any line: a decision is stored before its actions run, and every action may be repeated.
This package does not use `app.services`, which serve requests, and it reaches the cluster only through `app.k8s`.
"""
