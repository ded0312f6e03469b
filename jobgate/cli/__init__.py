"""The commands for users of a gateway. A module may do I/O unless its docstring or that of its package says `Pure`."""
