"""Runs programs without giving them more than they need: argument lists, confinement by the kernel, hidden secrets."""
