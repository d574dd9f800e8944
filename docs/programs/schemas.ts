import * as JsonSchema from "@skein/server/JsonSchema"
import * as McpServer from "@skein/server/McpServer"
import * as StandardSchema from "@skein/server/StandardSchema"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as v from "valibot"
import { z } from "zod"

// #region effect
// The client sends text. The handler receives a `Date`, and a `limit` that is always set.
const Days = {
  since: Schema.DateFromString,
  limit: Schema.Int.pipe(Schema.withDecodingDefaultKey(Effect.succeed(10)))
}
const recent = Tool.layer(
  Tool.make("recent", { input: Days }),
  ({ since, limit }) => Effect.succeed(`${limit} since ${since.getUTCFullYear()}`)
)
// #endregion

// #region standard
// Zod (4.2 and later) and ArkType provide their own JSON Schema.
const Query = z.object({ query: z.string().min(1), limit: z.int().default(10) })
const search = Tool.layer(
  Tool.make("search", { input: Query }),
  ({ query, limit }) => Effect.succeed(`${limit} results for ${query}`)
)

// For a library that does not, pass the JSON Schema beside the schema.
const City = StandardSchema.withJsonSchema(v.object({ city: v.string() }), {
  type: "object",
  properties: { city: { type: "string" } },
  required: ["city"]
})
const forecast = Tool.layer(Tool.make("forecast", { input: City }), ({ city }) => Effect.succeed(`Rain in ${city}`))
// #endregion

// Clients get this schema unchanged, and it validates the arguments. The type argument is your declaration of their type.
const Point = JsonSchema.make<{ readonly x: number; readonly y: number }>({
  type: "object",
  properties: { x: { type: "number", minimum: 0 }, y: { type: "number", minimum: 0 } },
  required: ["x", "y"],
  additionalProperties: false
})
const move = Tool.layer(Tool.make("move", { input: Point }), ({ x, y }) => Effect.succeed(`Moved to ${x}, ${y}`))

// Clients of 2026-07-28 also send `region` as the header `Mcp-Param-Region`, so that gateways can route by it.
const report = Tool.layer(
  Tool.make("report", { input: { region: Schema.String.annotate({ "x-mcp-header": "Region" }) } }),
  ({ region }) => Effect.succeed(`All is well in ${region}`)
)

export const Schemas = McpServer.layer(
  { name: "schemas", version: "1.0.0" },
  recent,
  search,
  forecast,
  move,
  report
)
