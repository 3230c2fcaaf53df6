"""Moves: resizes, migrations, evacuations, and the record of each."""
