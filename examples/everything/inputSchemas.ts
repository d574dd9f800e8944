/**
 * Tools with special input schemas: raw JSON Schema, and an argument that clients repeat in an HTTP header.
 */
import * as JsonSchema from "@skein/server/JsonSchema"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"

const contact = JsonSchema.make({
  $schema: "https://json-schema.org/draft/2020-12/schema",
  type: "object",
  $defs: {
    address: {
      $anchor: "addressDef",
      type: "object",
      properties: { street: { type: "string" }, city: { type: "string" } }
    }
  },
  properties: {
    name: { type: "string" },
    address: { $ref: "#/$defs/address" },
    contactMethod: { type: "string", enum: ["phone", "email"] },
    phone: { type: "string" },
    email: { type: "string" }
  },
  allOf: [{ anyOf: [{ required: ["phone"] }, { required: ["email"] }] }],
  if: { properties: { contactMethod: { const: "phone" } }, required: ["contactMethod"] },
  // oxlint-disable-next-line unicorn/no-thenable -- a keyword of JSON Schema
  then: { required: ["phone"] },
  else: { required: ["email"] },
  additionalProperties: false
})

const verbatim = Tool.layer(
  Tool.make("json_schema_2020_12_tool", { description: "Has a raw JSON Schema as its input schema.", input: contact }),
  (args) => Effect.succeed(`JSON Schema 2020-12 tool called with: ${JSON.stringify(args)}`)
)

const mirrored = Tool.layer(
  Tool.make("test_header_mirror", {
    description: "Has an argument that clients repeat in the header Mcp-Param-Region.",
    input: { region: Schema.String.annotate({ description: "The region to work in", "x-mcp-header": "Region" }) }
  }),
  ({ region }) => Effect.succeed(`Working in ${region}.`)
)

export const inputSchemas = Layer.mergeAll(verbatim, mirrored)
