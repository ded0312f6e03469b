"""`python -m app.cache_runtime`: the command `jobgate cache-runtime` without the rest of jobgate."""

from app.cache_runtime.cli import runtime

if __name__ == "__main__":
    runtime()
