"""One process with all of Moorage in it (`moorage up`): its parts joined, seeded, and its credentials."""
