"""The operations of a pet shop's API as tools, from its OpenAPI document. Over stdio."""

import json
import os
from pathlib import Path

import httpx2
from fastmcp import FastMCP

client = httpx2.AsyncClient(base_url=os.environ.get("PETS_URL", "https://pets.example/v1"))
document = json.loads(Path(__file__).with_name("pets.json").read_text())
mcp = FastMCP.from_openapi(openapi_spec=document, client=client, name="pets")

if __name__ == "__main__":
    mcp.run(show_banner=False)
