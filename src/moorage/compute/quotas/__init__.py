"""Quotas, and what projects use of them."""
