"""A neighbour that takes connections and never says a word: worse than one that is away."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def black_hole() -> Iterator[int]:
    """Its port."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(128)  # the kernel takes what comes; nobody ever accepts
        yield listening.getsockname()[1]
