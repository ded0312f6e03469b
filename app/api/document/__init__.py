"""The OpenAPI document: what FastAPI derives from the routes, completed for readers and client generators."""
