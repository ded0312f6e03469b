"""The Kubernetes API as the node uses it: a client, informers, Events, and the ConfigMaps and Secrets of pods."""
