"""Researches a topic in steps: searches, asks which sources to read, reads them, and writes a report. Over stdio."""

import asyncio
from typing import Annotated

from fastmcp import Context, FastMCP
from fastmcp.exceptions import ToolError
from pydantic import Field

from library import read, search

mcp = FastMCP("research", version="1.0.0")


async def read_with_retry(id: str) -> str:
    delay = 0.05
    for _ in range(3):
        try:
            return await read(id)
        except RuntimeError:
            await asyncio.sleep(delay)
            delay *= 2
    return await read(id)


@mcp.tool
async def research(topic: Annotated[str, Field(min_length=2)], ctx: Context) -> str:
    """Researches a topic and returns a report. Asks which sources to read."""
    found = await search(topic)
    if not found:
        raise ToolError(f'No source knows "{topic}": try another topic')
    options = {id: {"title": title} for id, title in found.items()}
    answer = await ctx.elicit("Which sources shall I read?", response_type=[options])
    if answer.action != "accept" or not answer.data:
        raise ToolError("The user chose no source")
    ids = answer.data
    done = 0

    async def read_one(id: str) -> str:
        nonlocal done
        text = await read_with_retry(id)
        done += 1
        await ctx.report_progress(done, len(ids), found[id])
        return f"## {found[id]}\n\n{text}"

    texts = await asyncio.gather(*map(read_one, ids))
    return f"# {topic}\n\n" + "\n\n".join(texts)


if __name__ == "__main__":
    mcp.run(show_banner=False)
