"""What a job means. Values in, values out: no I/O, no clock, no randomness.

dialects (user spec -> plan) and manifests (plan -> plain dicts) meet only in the plan; status turns raw
pods into conclusions; `reconcile` holds plan, intent and observation together and says what to do next.
"""
