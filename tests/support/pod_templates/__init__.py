"""Pod templates with every field, and what the Pod Security Standards say of each."""
