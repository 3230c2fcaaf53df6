"""The files around the programs: made by the programs themselves, so that they can't be out of date."""
