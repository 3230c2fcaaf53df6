"""`moorage-manage`: what an operator does to the database, to passwords, to consoles, to who owns what."""
