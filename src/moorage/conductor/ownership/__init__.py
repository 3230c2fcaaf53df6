"""Who owns the nodes that several hosts could."""
