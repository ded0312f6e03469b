"""The commands for users of a gateway. A module may do I/O unless its docstring says `Pure`."""
