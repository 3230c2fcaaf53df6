"""What is done to servers with images: rescues, snapshots and backups of them, shelving."""
