"""Actions that are about a server and an image: rescue, createImage, createBackup, shelve and their like."""
