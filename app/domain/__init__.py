"""The pure core of jobgate: functions of values, without I/O, clock or randomness.

`dialects` turn manifests into plans, and `manifests` turns plans into Kubernetes objects; they meet only in the plan.
`planning` serves both to the API and to the controller. `status` turns raw pods into observations, and `reconcile`
compares plan, intent, record and observed pods, and decides what to do next.
"""
