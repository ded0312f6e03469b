"""What the documents of the project define: fields, routes and codes."""
