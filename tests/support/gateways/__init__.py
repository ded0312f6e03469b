"""Gateways for tests, in this process and as processes of their own, and the tokens of their clients."""
