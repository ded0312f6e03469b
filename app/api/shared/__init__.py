"""What requests of one process share: views, events and long polls that are rendered once."""
