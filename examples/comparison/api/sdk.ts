/** The operations of a pet shop's API as tools, from its OpenAPI document. Over stdio. */
import { fromJsonSchema, McpServer } from "@modelcontextprotocol/server"
import { serveStdio } from "@modelcontextprotocol/server/stdio"
import { readFileSync } from "node:fs"

interface Parameter {
  readonly name: string
  readonly in: string
  readonly required?: boolean
  readonly schema: object
}
interface Operation {
  readonly operationId: string
  readonly summary: string
  readonly parameters?: ReadonlyArray<Parameter>
  readonly requestBody?: { readonly content: { readonly "application/json": { readonly schema: { $ref: string } } } }
}
type Path = { readonly parameters?: ReadonlyArray<Parameter> } & { readonly [method: string]: Operation }
interface BodySchema {
  readonly properties: { readonly [name: string]: object }
  readonly required: ReadonlyArray<string>
}

const baseUrl = process.env["PETS_URL"] ?? "https://pets.example/v1"
const text = readFileSync(new URL("pets.json", import.meta.url), "utf8").replaceAll("#/components/schemas/", "#/$defs/")
const { components: { schemas }, paths } = JSON.parse(text) as {
  readonly paths: { readonly [path: string]: Path }
  readonly components: { readonly schemas: { readonly [name: string]: BodySchema } }
}

// The SDK reads no OpenAPI: parameters and body become one schema, with the references of the document in it.
const register = (
  server: McpServer,
  path: string,
  method: string,
  operation: Operation,
  shared: Path["parameters"]
) => {
  const parameters = [...shared ?? [], ...operation.parameters ?? []]
  const body = operation.requestBody?.content["application/json"].schema
  const bodySchema = body && schemas[body.$ref.split("/").at(-1)!]
  const inputSchema = fromJsonSchema<Record<string, unknown>>({
    type: "object",
    properties: {
      ...Object.fromEntries(parameters.map(({ name, schema }) => [name, schema])),
      ...bodySchema?.properties
    },
    required: [
      ...parameters.filter(({ required }) => required).map(({ name }) => name),
      ...bodySchema?.required ?? []
    ],
    $defs: schemas
  })
  server.registerTool(
    operation.operationId,
    {
      description: operation.summary,
      inputSchema,
      annotations: { readOnlyHint: method === "get", destructiveHint: method === "delete" }
    },
    async (input, { mcpReq: { signal } }) => {
      const rest = { ...input }
      const take = (name: string) => {
        const value = rest[name]
        delete rest[name]
        return value
      }
      let url = baseUrl + path
      const query = new URLSearchParams()
      for (const { in: place, name } of parameters) {
        const value = take(name)
        if (value === undefined) continue
        if (place === "path") url = url.replace(`{${name}}`, encodeURIComponent(String(value)))
        else query.append(name, String(value))
      }
      const response = await fetch(query.size === 0 ? url : `${url}?${query}`, {
        method: method.toUpperCase(),
        signal,
        ...(bodySchema && { headers: { "content-type": "application/json" }, body: JSON.stringify(rest) })
      })
      const text = await response.text()
      if (!response.ok) throw new Error(`${response.status}: ${text}`)
      return { content: [{ type: "text", text }] }
    }
  )
}

serveStdio(() => {
  const server = new McpServer({ name: "pets", version: "1.0.0" })
  for (const [path, { parameters, ...operations }] of Object.entries(paths)) {
    for (const [method, operation] of Object.entries(operations)) register(server, path, method, operation, parameters)
  }
  return server
})
