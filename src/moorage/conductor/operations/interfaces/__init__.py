"""What changes the ports and addresses of a server that is there."""
