"""The commands for users of a gateway. Functions that render are pure; `commands.py` and `following.py` do the I/O."""
