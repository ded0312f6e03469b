"""`jobgate demo`: runs every example on a development server, as any HTTP client would, by its public API alone."""
