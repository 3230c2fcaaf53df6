"""A machine whose first process is systemd."""
