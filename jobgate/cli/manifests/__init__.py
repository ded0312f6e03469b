"""The manifests of `-f`: where they are read, and what options change in them."""
