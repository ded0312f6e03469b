"""The routes that only jobs have."""
