"""Foreign programs that integration tests run for real, each from an environment of its own."""
