"""What is kept of what is over, and for how long."""
