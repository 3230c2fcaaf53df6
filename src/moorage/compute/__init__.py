"""Service 2: the records and rules of the Compute API, a package for each family of them."""
