"""What a gateway serves to browsers beside the API: the dashboard and Swagger UI."""
