"""The half that carries intent to Kubernetes and mirrors pods back. Runs only where the lease is held.

    reflector -> mirror -> work queue -> reconciler: load, decide (domain), persist, then act (actuator)

It may be killed at any line: what was decided is in Postgres before it is done, and doing it again is harmless. It does
not go through `app.services`, which serve requests, and it speaks to the cluster through `app.k8s` alone.
"""
