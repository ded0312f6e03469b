"""The whole product as its users meet it: `jobgate serve` and `jobgate dev` as processes, real jobs on a real node."""
