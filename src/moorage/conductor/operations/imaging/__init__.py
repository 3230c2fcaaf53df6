"""What makes images of servers: snapshots, and servers that are shelved in them."""
