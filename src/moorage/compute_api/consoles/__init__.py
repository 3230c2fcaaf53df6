"""What only the agent of a server knows of it: its consoles, and what it uses."""
