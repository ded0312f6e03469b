"""`python -m cacheserver`: the command `jobgate cache-runtime` without the rest of jobgate."""

from cacheserver.cli import runtime

if __name__ == "__main__":
    runtime()
