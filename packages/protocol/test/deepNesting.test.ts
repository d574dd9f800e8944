/** JSON that is nested 100,000 levels deep, deeper than the stack: it is read or refused, and nothing throws. */
import * as Codec from "@skein/protocol/Codec"
import * as Definitions from "./oracle/Definitions.ts"
import * as Introduction from "@skein/protocol/Introduction"
import type { JsonObject } from "@skein/protocol/JsonRpc"
import * as JsonRpc from "@skein/protocol/JsonRpc"
import * as Method from "@skein/protocol/Method"
import * as RequestMeta from "@skein/protocol/RequestMeta"
import * as Revision from "@skein/protocol/Revision"
import * as XMcpHeader from "@skein/protocol/XMcpHeader"
import * as Result from "effect/Result"
import { describe, expect, it } from "vitest"

const depth = 100_000

const nest = (wrap: (inner: unknown) => object): JsonObject => {
  let value: unknown = {}
  for (let i = 0; i < depth; i++) value = wrap(value)
  return value as JsonObject
}

const shapes: ReadonlyArray<JsonObject> = [
  nest((inner) => [inner]),
  nest((inner) => ({ a: inner })),
  nest((inner) => ({ type: "object", properties: { a: inner } })),
  nest((inner) => ({ type: "tool_result", toolUseId: "a", content: [inner] })),
  nest((inner) => ({ role: "user", content: inner }))
]

/** Params or results that contain the shape under the name of every field. */
const everywhere = (shape: JsonObject): ReadonlyArray<JsonObject> => {
  const names =
    "_meta arguments argument capabilities clientInfo content contents context cursor inputResponses level " +
    "messages metadata modelPreferences notifications prompts ref requestedSchema result resources structuredContent task tools uri"
  const fields = names.split(" ").map((name) => [name, shape] as const)
  return [shape, ...fields.map(([name]) => ({ [name]: [shape] })), Object.fromEntries(fields)]
}

describe("values nested deeper than the stack", () => {
  it("parseText returns a message, a batch or an error", () => {
    const arrays = "[".repeat(depth) + "]".repeat(depth)
    const text = (params: string) => `{"jsonrpc":"2.0","id":1,"method":"a","params":${params}}`
    expect(JsonRpc.parseText(text(`{"a":${arrays}}`))._tag).toBe("Request")
    expect(JsonRpc.parseText(text(arrays))).toMatchObject({ _tag: "Invalid", id: 1 })
    expect(JsonRpc.parseText(arrays)._tag).toBe("Batch")
    expect(JsonRpc.parseText("[".repeat(depth))).toMatchObject({ _tag: "Invalid", error: { code: -32700 } })
  })

  it("encode throws a RangeError", () => {
    for (const shape of shapes) expect(() => JsonRpc.encode(JsonRpc.success(1, { shape }))).toThrow(RangeError)
  })

  for (const revision of Revision.all) {
    it(`${revision} · the params and the result of every method are decoded and encoded, or refused`, () => {
      const seen = { Success: 0, Failure: 0 }
      for (const value of shapes.flatMap(everywhere)) {
        for (const method of Method.requests) {
          seen[Codec.decodeParams(method, revision, value)._tag]++
          seen[Codec.decodeAnswer(method, revision, value)._tag]++
          seen[Codec.encodeParams(method, revision, value)._tag]++
          seen[Codec.encodeResult(method, revision, value)._tag]++
        }
        for (const method of Method.notifications) seen[Codec.decodeParams(method, revision, value)._tag]++
      }
      expect(seen.Success).toBeGreaterThan(100)
      expect(seen.Failure).toBeGreaterThan(100)
    })
  }

  for (const source of [...Revision.all, "tasks"] as const) {
    it(`${source} · every official definition is read and written, or refused`, () => {
      for (const definition of Definitions.definitions(source).values()) {
        if (definition.kind === "envelope") continue
        for (const shape of shapes) {
          expect(Result.isResult(definition.read(shape))).toBe(true)
          expect(Result.isResult(definition.write(shape))).toBe(true)
        }
      }
    })
  }

  it("the handshake, the metadata of a request and x-mcp-header are read or refused", () => {
    for (const shape of shapes) {
      expect(Result.isFailure(Introduction.read({ protocolVersion: shape, capabilities: shape }))).toBe(true)
      expect(Result.isFailure(RequestMeta.read({ _meta: shape }))).toBe(true)
      const meta = { [RequestMeta.protocolVersion]: "a", [RequestMeta.clientCapabilities]: { shape } }
      expect(Result.isSuccess(RequestMeta.read({ _meta: meta }))).toBe(true)
      expect(Result.isFailure(RequestMeta.read({ _meta: { ...meta, [RequestMeta.logLevel]: shape } }))).toBe(true)
      expect(Result.isResult(XMcpHeader.fromSchema(shape))).toBe(true)
    }
  })
})
