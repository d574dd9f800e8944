/** The client passes tool schemas to the application as the server wrote them. */
import { assert, describe, it } from "@effect/vitest"
import * as Revision from "@skein/protocol/Revision"
import * as Effect from "effect/Effect"
import { opened, page, tool } from "./listed.ts"

const schema = {
  $schema: "https://json-schema.org/draft/2020-12/schema",
  $id: "https://example.com/tool",
  type: "object",
  $defs: {
    address: {
      $anchor: "address",
      type: "object",
      properties: { street: { type: "string" }, city: { type: "string", "x-vendor": { deep: [1, null] } } }
    }
  },
  properties: {
    name: { type: "string", "x-mcp-header": "Name" },
    address: { $ref: "#/$defs/address", description: "beside $ref" },
    remote: { $ref: "https://example.com/other.json#/$defs/x" },
    list: { prefixItems: [{ type: "string" }], unevaluatedItems: false },
    ["__proto__"]: { type: "string" }
  },
  anyOf: [{ required: ["name"] }, { required: ["address"] }],
  ...JSON.parse(
    "{\"if\":{\"required\":[\"name\"]},\"then\":{\"dependentRequired\":{\"name\":[\"address\"]}},\"else\":false}"
  ),
  additionalProperties: false,
  unknownKeyword: { kept: true },
  default: { name: "x" }
}

describe("the schemas of a tool", () => {
  for (const revision of Revision.all) {
    it.effect(`${revision} · keeps $defs, $ref, $anchor, unknown keywords and all other members as they were on the wire`, () =>
      Effect.gen(function*() {
        const wire = JSON.parse(JSON.stringify(tool("t", { inputSchema: schema, outputSchema: schema })))
        const { client } = yield* opened(revision, () => page(revision, wire))
        for (const [listed] of [(yield* client.listToolsPage()).tools, yield* client.listTools()]) {
          assert.strictEqual(JSON.stringify(listed?.inputSchema), JSON.stringify(wire.inputSchema))
          assert.deepStrictEqual(listed?.inputSchema, wire.inputSchema)
          if (revision >= "2025-06-18") assert.deepStrictEqual(listed?.outputSchema, wire.outputSchema)
        }
      }))
  }
})
