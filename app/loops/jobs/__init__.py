"""The controller of jobs: it loads and reconciles them, stores each decision, and then executes its actions.

`mirror` has the observed pods, `expectations` what the cluster answered that no pod shows, and `plan_cache` the plans.
"""
