"""Jobs whose size changes, and large ones."""
