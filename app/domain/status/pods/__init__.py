"""What a raw pod means: whose it is, its phase and containers, and why it waits or was disrupted."""
