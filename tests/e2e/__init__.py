"""Tests of the whole product: `jobgate serve` and `jobgate dev` as processes, with real jobs on a real node."""
