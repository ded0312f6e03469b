"""What the objects of all resources share: reads, history, and stored answers of the requests that create them."""
