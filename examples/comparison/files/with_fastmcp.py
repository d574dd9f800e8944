"""Files of the folders that the client shares as roots, over stdio."""

from pathlib import Path
from urllib.parse import urlparse
from urllib.request import url2pathname

from fastmcp import Context, FastMCP
from fastmcp.exceptions import ToolError

mcp = FastMCP("files", version="1.0.0")


async def shared(ctx: Context) -> list[Path]:
    roots = (await ctx.session.list_roots()).roots
    return [Path(url2pathname(urlparse(str(root.uri)).path)).resolve() for root in roots]


async def find(path: str, ctx: Context) -> Path:
    """Finds a path in a shared folder. Links out of the shared folders are refused."""
    roots = await shared(ctx)
    real = ((roots or [Path("/")])[0] / path).resolve()
    if any(real.is_relative_to(root) for root in roots):
        return real
    raise ToolError(f"{path} is not in a shared folder: {', '.join(map(str, roots)) or 'none is shared'}")


@mcp.tool(annotations={"readOnlyHint": True})
async def list_files(ctx: Context, folder: str = ".") -> str:
    """Lists a folder."""
    entries = (await find(folder, ctx)).iterdir()
    return "\n".join(f"{entry.name}/" if entry.is_dir() else entry.name for entry in entries)


@mcp.tool(annotations={"readOnlyHint": True})
async def read_file(path: str, ctx: Context) -> str:
    """Returns the text of a file."""
    return (await find(path, ctx)).read_text()


@mcp.tool
async def write_file(path: str, text: str, ctx: Context) -> str:
    """Writes the text of a file."""
    (await find(path, ctx)).write_text(text)
    return f"Wrote {len(text)} characters to {path}"


@mcp.tool(annotations={"readOnlyHint": True})
async def search(text: str, ctx: Context) -> str:
    """Finds 100 lines with a text in all files."""
    found: list[str] = []
    for root in await shared(ctx):
        for path in root.rglob("*"):
            if not path.is_file():
                continue
            for number, line in enumerate(path.read_text().split("\n"), 1):
                if text in line:
                    found.append(f"{path.relative_to(root)}:{number}: {line}")
                if len(found) == 100:
                    return "\n".join(found)
    return "\n".join(found)


if __name__ == "__main__":
    mcp.run(show_banner=False)
