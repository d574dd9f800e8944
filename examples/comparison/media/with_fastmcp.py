"""Plays melodies: asks how they should sound, and reports each note. Over stdio."""

from typing import Annotated, Literal

from fastmcp import Context, FastMCP
from fastmcp.exceptions import ToolError
from fastmcp.tools import ToolResult
from fastmcp.utilities.types import Audio
from mcp.types import TextContent
from pydantic import BaseModel, Field

from tones import tone, wav

mcp = FastMCP("media", version="1.0.0")


class Sound(BaseModel):
    instrument: Literal["sine", "square"]
    tempo: int = Field(default=120, ge=40, le=240)


Note = Annotated[str, Field(pattern=r"^[A-G]#?[1-7]$")]


@mcp.tool
async def play_melody(notes: Annotated[list[Note], Field(min_length=1, max_length=64)], ctx: Context) -> ToolResult:
    """Plays notes such as C4, F#4, A4."""
    answer = await ctx.elicit("How should it sound?", response_type=Sound)
    if answer.action != "accept":
        raise ToolError("The user did not say how it should sound")
    instrument, tempo = answer.data.instrument, answer.data.tempo
    parts: list[bytes] = []
    for index, note in enumerate(notes):
        parts.append(tone(note, instrument, 60 / tempo))
        await ctx.report_progress(index + 1, len(notes), note)
    text = TextContent(type="text", text=f"{len(notes)} notes at {tempo} beats a minute")
    return ToolResult(content=[text, Audio(data=wav(parts), format="wav").to_audio_content()])


if __name__ == "__main__":
    mcp.run(show_banner=False)
