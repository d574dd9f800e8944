"""A library with a few texts, for the Python server of this folder. It is often busy: every second read fails."""

import asyncio

TEXTS = {
    "t1": ("Green tea", "Green tea is heated soon after the harvest, so that it stays green."),
    "t2": ("Black tea", "Black tea is oxidized before it is dried."),
    "t3": ("Coffee", "Coffee is made of roasted beans."),
}
reads: dict[str, int] = {}


async def search(topic: str) -> dict[str, str]:
    """Finds texts about a topic: their titles by id."""
    await asyncio.sleep(0.02)
    return {id: title for id, (title, text) in TEXTS.items() if topic.lower() in text.lower()}


async def read(id: str) -> str:
    """Reads a text."""
    await asyncio.sleep(0.02)
    reads[id] = reads.get(id, 0) + 1
    if reads[id] % 2 == 1:
        raise RuntimeError("The library is busy")
    return TEXTS[id][1]
