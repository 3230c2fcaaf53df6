"""Key pairs of users."""
