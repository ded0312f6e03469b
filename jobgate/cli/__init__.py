"""The commands for users of a gateway. Functions of `rendering` are pure; `commands` do the I/O."""
