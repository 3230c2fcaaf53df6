"""The processes of a cloud in pieces, one file a program, and what they have in common: workers, signals, and
what is checked before a start."""
