"""The clients of Python, `jobgate.client`."""
