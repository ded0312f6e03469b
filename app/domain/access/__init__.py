"""Who can do what: namespaces that a token or an installation reaches, roles, and credentials of pods and servers."""
