"""`/flavors`, and what is below a flavor."""
