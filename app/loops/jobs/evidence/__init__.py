"""What pods leave behind: the ends of their logs and their Events."""
