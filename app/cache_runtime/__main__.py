"""`python -m app.cache_runtime`: the same command without the rest of jobgate."""

from app.cache_runtime.cli import runtime

if __name__ == "__main__":
    runtime()
