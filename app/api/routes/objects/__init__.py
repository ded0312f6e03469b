"""The routes that all resources have. `app.api.resources` describes what differs between resources."""
