"""The commands for users, a module for each group of them. They do the I/O."""
