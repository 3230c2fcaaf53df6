"""A screen in text mode, as a browser shows it: whether its picture is the one of a text."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

COLUMNS, ROWS = 80, 25
CELLS = """
const [columns, rows, width, height] = [80, 25, 9, 16];
const canvas = document.querySelector("canvas");
if (!canvas || canvas.width != columns * width || canvas.height != rows * height) return [];
const image = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
const pixels = new Uint32Array(image.data.buffer);
const cells = [];
for (let cell = 0; cell < columns * rows; cell++) {
    const first = Math.floor(cell / columns) * height * canvas.width + (cell % columns) * width;
    const lines = [];
    for (let y = 0; y < height; y++) {
        let line = 0;
        for (let x = 0; x < width; x++)
            line = line * 2 + ((pixels[first + y * canvas.width + x] & 0xffffff) ? 1 : 0);
        lines.push(line);
    }
    cells.push(lines.join(" "));
}
return cells;
"""
"""What a page has to be asked: the ink of each cell, row by row; nothing while it has another size."""
_CURSOR = 1
"""So many cells differ from what is written there."""


def shows(cells: Sequence[str], text: str) -> bool:
    """Whether each character of the text has a picture of its own, and that one wherever it occurs."""
    if len(cells) != len(text) or len(text) != COLUMNS * ROWS:
        return False
    seen: dict[str, Counter[str]] = defaultdict(Counter)
    for character, cell in zip(text, cells, strict=True):
        seen[character][cell] += 1
    pictures = {character: found.most_common(1)[0] for character, found in seen.items()}
    odd = sum(seen[character].total() - count for character, (_, count) in pictures.items())
    return odd <= _CURSOR and len({cell for cell, _ in pictures.values()}) == len(pictures)
