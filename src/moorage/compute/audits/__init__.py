"""Audits of all that exists twice, as they are asked for, and what they found."""
