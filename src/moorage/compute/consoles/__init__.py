"""Who may see the console of which server, and where it is seen."""
