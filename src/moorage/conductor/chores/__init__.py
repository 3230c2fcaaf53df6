"""What has to be done now and then, by one conductor at a time."""
