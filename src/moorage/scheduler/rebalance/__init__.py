"""Which few servers to move so that hosts are used more evenly, or so that hosts become free. Pure."""
