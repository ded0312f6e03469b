"""Structures that every layer may use. They know nothing of jobgate, and do no I/O."""
