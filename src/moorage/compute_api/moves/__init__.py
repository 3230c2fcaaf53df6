"""Actions that move servers, plans, and the records of moves."""
