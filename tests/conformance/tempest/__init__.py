"""A cloud for Tempest to judge, and the figures of that."""
