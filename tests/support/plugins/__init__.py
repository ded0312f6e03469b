"""How pytest runs: golden files, profiles of properties, the order and the repetition of tests."""
