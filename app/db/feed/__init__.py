"""The feed of changes: transactions announce changes, the publisher numbers them, and readers follow the numbers."""
