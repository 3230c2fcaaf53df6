"""The metadata service: what guests ask at 169.254.169.254, answered from what is known of their servers."""
