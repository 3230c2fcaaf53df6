"""What `moorage` is asked: where a server went or would go, what there is, what this machine lacks."""
