/**
 * `npm run gateway-schema`: writes `packages/gateway/mcp.schema.json`, the JSON Schema of a configuration with the member
 * `gateway`, for editors. A test compares the file with the code.
 */
import * as Schema from "effect/Schema"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { Members } from "../packages/gateway/src/internal/servers/members.ts"

export const path = join(import.meta.dirname, "../packages/gateway/mcp.schema.json")

const text = { type: "string" }
const texts = { type: "array", items: text }
const record = { type: "object", additionalProperties: { type: ["string", "null"] } }

/** The schema of the file. Hosts have members of their own, which are allowed everywhere but in `gateway`. */
export const render = (): string => {
  const { definitions, schema } = Schema.toJsonSchemaDocument(Members, { onExcessProperty: "error" })
  const entry = {
    type: "object",
    properties: {
      type: { enum: ["stdio", "http", "sse"], description: "The transport. Default: by the other members" },
      command: { ...text, description: "The program of a server on stdio" },
      args: { ...texts, description: "Its arguments" },
      env: { ...record, description: "Its environment variables; null removes one" },
      cwd: { ...text, description: "Its working directory" },
      envFile: { ...text, description: "A file with environment variables" },
      url: { ...text, description: "The URL of a server over HTTP" },
      headers: { ...record, description: "The headers of each request" },
      disabled: { type: "boolean", description: "Whether the server is left out. Default: false" },
      gateway: { ...schema, description: "How the gateway offers the server" }
    }
  }
  const servers = { type: "object", additionalProperties: { $ref: "#/$defs/server" } }
  const document = {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    title: "Servers behind a gateway of Skein",
    type: "object",
    properties: { $schema: text, mcpServers: servers, servers, inputs: { type: "array" } },
    $defs: { server: entry, ...definitions }
  }
  return `${JSON.stringify(document, undefined, 2)}\n`
}

if (import.meta.main) writeFileSync(path, render())
