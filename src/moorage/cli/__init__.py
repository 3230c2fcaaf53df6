"""The commands. They set up their processes, and know all other packages.

A program of ours makes some hundred thousand objects while it imports, and keeps them all: looking for
garbage among them, again and again, took a quarter of the time until it served.
"""

import gc

gc.set_threshold(50_000, 20, 20)
