/**
 * The optional members of public types, under `exactOptionalPropertyTypes`. The compiler checks most of this file: optional
 * members of hand-written types accept `undefined`, and decoded values pass to the constructors.
 */
import * as Annotate from "@skein/protocol/Annotate"
import * as Codec from "@skein/protocol/Codec"
import * as Header from "@skein/protocol/Header"
import * as JsonRpc from "@skein/protocol/JsonRpc"
import * as McpError from "@skein/protocol/McpError"
import * as Method from "@skein/protocol/Method"
import * as RequestMeta from "@skein/protocol/RequestMeta"
import * as Stamp from "@skein/protocol/Stamp"
import * as SchemaValidation from "@skein/protocol/SchemaValidation"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { describe, expect, it } from "vitest"

const listed = {
  tools: [{
    name: "add",
    title: "Add",
    inputSchema: { type: "object" },
    annotations: { readOnlyHint: true },
    icons: [{ src: "https://example.com/a.png" }]
  }]
}

describe("a decoded value", () => {
  it("can be encoded again in another revision", () => {
    const { tools } = Result.getOrThrow(Codec.decodeResult(Method.ListTools, "2025-11-25", listed))
    const written = Result.getOrThrow(Codec.encodeResult(Method.ListTools, "2025-06-18", { tools }))
    const { icons: _, ...tool } = listed.tools[0]!
    expect(written).toEqual({ tools: [tool] })
  })

  it("can be passed to the constructors of this package", () => {
    const { capabilities, clientInfo, protocolVersion } = Result.getOrThrow(
      Codec.decodeParams(Method.Initialize, "2025-11-25", {
        protocolVersion: "2025-11-25",
        capabilities: { roots: {} },
        clientInfo: { name: "a", version: "1", icons: listed.tools[0]!.icons }
      })
    )
    const stamped = Stamp.stamp({}, { protocolVersion, clientCapabilities: capabilities, clientInfo })
    expect(Result.getOrThrow(RequestMeta.read(stamped)).clientInfo).toEqual(clientInfo)

    const task = Result.getOrThrow(Codec.decodeResult(Method.GetTask, "2026-07-28", {
      taskId: "t",
      status: "failed",
      createdAt: "2026-07-28T00:00:00Z",
      lastUpdatedAt: "2026-07-28T00:00:00Z",
      ttlMs: null,
      error: { code: -32603, message: "m" }
    }))
    if (task.status !== "failed") return expect.fail("the task has another status")
    expect(JsonRpc.failure(1, task.error).error).toEqual({ code: -32603, message: "m" })
    expect(McpError.fromErrorObject(task.error, "2026-07-28").reason).toBe("InternalError")
  })
})

describe("an optional member of undefined", () => {
  it("treats an optional member of undefined as absent", () => {
    const error = new McpError.McpError({ reason: "Other", message: "m", data: undefined, code: undefined })
    expect(McpError.toErrorObject(error, "2025-11-25")).toEqual({ code: -32603, message: "m" })
    const bounds = { maxSchemaChars: undefined, maxSteps: undefined }
    expect(Result.isSuccess(SchemaValidation.compile({ not: {} }, { ...bounds, nativePatterns: undefined }))).toBe(true)
    expect(Header.standard({ protocolVersion: "2026-07-28", method: "ping", name: undefined })).not.toHaveProperty(
      "Mcp-Name"
    )
    const stamp = { protocolVersion: "2026-07-28", clientCapabilities: {}, clientInfo: undefined, logLevel: undefined }
    expect(Stamp.stamp(undefined, stamp)).toEqual(
      Stamp.stamp(undefined, { protocolVersion: "2026-07-28", clientCapabilities: {} })
    )
    const Item = Schema.Struct({
      a: Annotate.field(Schema.optionalKey(Schema.String), { default: undefined, lower: undefined, until: undefined })
    })
    expect(Codec.decode(Item, "2025-11-25", {})).toEqual(Result.succeed({}))
    expect(Method.has({}, { side: "server", path: ["tools"], since: undefined }, "2025-11-25")).toBe(false)
  })
})
