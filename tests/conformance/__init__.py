"""Tests that hold our APIs against the reference's own behaviour."""
