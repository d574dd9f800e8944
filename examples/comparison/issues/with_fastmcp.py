"""An issue tracker over HTTP. Every request needs a token of the issuer; changes need the scope issues:write."""

import os
from typing import Annotated, Literal

from fastmcp import Context, FastMCP
from fastmcp.exceptions import ResourceError, ToolError
from fastmcp.server.auth import RemoteAuthProvider, require_scopes
from fastmcp.server.auth.providers.jwt import JWTVerifier
from fastmcp.server.dependencies import get_access_token
from pydantic import AnyHttpUrl, BaseModel, Field


class Comment(BaseModel):
    author: str
    text: str


class Issue(BaseModel):
    id: int
    title: str
    body: str
    labels: list[str]
    status: Literal["open", "closed"]
    author: str
    comments: list[Comment]


port = int(os.environ.get("PORT", "3000"))
issuer = os.environ.get("ISSUER", "https://login.example")
url = f"http://127.0.0.1:{port}"
verifier = JWTVerifier(
    jwks_uri=f"{issuer}/jwks", issuer=issuer, audience=f"{url}/mcp", required_scopes=["issues:read"]
)
auth = RemoteAuthProvider(token_verifier=verifier, authorization_servers=[AnyHttpUrl(issuer)], base_url=url)
mcp = FastMCP("issues", version="1.0.0", auth=auth)
issues: dict[int, Issue] = {}


def user() -> str:
    return str(get_access_token().claims["sub"])


def find(id: int) -> Issue:
    if id not in issues:
        raise ToolError(f"No issue {id}: call list_issues")
    return issues[id]


async def save(issue: Issue, ctx: Context) -> Issue:
    issues[issue.id] = issue
    await ctx.session.send_resource_updated(f"issues://{issue.id}")
    return issue


@mcp.tool(annotations={"readOnlyHint": True})
def list_issues(status: Literal["open", "closed"] | None = None, label: str | None = None) -> dict[str, list[Issue]]:
    """Lists issues, the newest first."""
    found = reversed(issues.values())
    return {"issues": [i for i in found if status in (None, i.status) and (label is None or label in i.labels)]}


@mcp.tool(auth=require_scopes("issues:write"))
async def create_issue(
    title: Annotated[str, Field(min_length=1, max_length=200)],
    ctx: Context,
    body: str = "",
    labels: list[str] = [],
) -> Issue:
    """Creates an issue."""
    id = len(issues) + 1
    issue = Issue(id=id, title=title, body=body, labels=labels, status="open", author=user(), comments=[])
    return await save(issue, ctx)


@mcp.tool(auth=require_scopes("issues:write"))
async def add_comment(id: int, text: str, ctx: Context) -> Issue:
    """Adds a comment to an issue."""
    issue = find(id)
    comments = [*issue.comments, Comment(author=user(), text=text)]
    return await save(issue.model_copy(update={"comments": comments}), ctx)


@mcp.tool(auth=require_scopes("issues:write"), annotations={"idempotentHint": True})
async def close_issue(id: int, ctx: Context) -> Issue:
    """Closes an issue."""
    return await save(find(id).model_copy(update={"status": "closed"}), ctx)


@mcp.resource("issues://{id}", name="issue", mime_type="application/json")
def issue(id: int) -> str:
    if id not in issues:
        raise ResourceError(f"No issue {id}")
    return issues[id].model_dump_json()


@mcp.prompt
def triage(id: int) -> str:
    """Asks for a label and a next step."""
    return f"Suggest one label and the next step for this issue: {find(id).model_dump_json()}"


if __name__ == "__main__":
    mcp.run(transport="http", port=port)
