"""What a change of the program costs: each compares this checkout with another one, alternately."""
