"""The formats of Kubernetes: objects, names, quantities, selectors, patches and encodings. Pure."""
