"""The models of all answers. The OpenAPI document takes its schemas from them."""
