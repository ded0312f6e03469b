"""The jobs of a cache driver on one server. JuiceFS is the only driver."""
