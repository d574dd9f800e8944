/**
 * Reads the messages that real peers send although no revision has them: newer members, `null`, malformed hints and
 * malformed items of lists.
 */
import { essential, fallback, since } from "@skein/protocol/Annotate"
import * as Codec from "@skein/protocol/Codec"
import { isObject, type JsonObject } from "@skein/protocol/JsonRpc"
import * as Method from "@skein/protocol/Method"
import * as Revision from "@skein/protocol/Revision"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as AST from "effect/SchemaAST"
import { describe, expect, it } from "vitest"
import * as Check from "./oracle/Check.ts"
import * as Json from "./oracle/Json.ts"

const result = (method: Method.AnyRequest, revision: Revision.Revision, raw: object) => {
  const ignored: Array<string> = []
  const read = Codec.decodeResult(method, revision, raw as JsonObject, ignored)
  return { read: Result.isSuccess(read) ? read.success as JsonObject : read.failure, ignored }
}

const tool = { name: "a", inputSchema: { type: "object" } }

describe("members that are newer than the negotiated revision", () => {
  it("are kept in results, and dropped from what is written", () => {
    const raw = {
      resultType: "complete",
      ttlMs: 5,
      cacheScope: "public",
      tools: [{
        ...tool,
        title: "A",
        icons: [{ src: "https://example.com/a.png" }],
        outputSchema: { type: "object" },
        annotations: { readOnlyHint: true },
        execution: { taskSupport: "optional" },
        _meta: { a: 1 }
      }]
    }
    for (const revision of Revision.all) {
      const { ignored, read } = result(Method.ListTools, revision, raw)
      expect(read).toBe(raw)
      expect(ignored).toEqual([])
    }
    expect(Codec.encodeResult(Method.ListTools, "2024-11-05", raw as never)).toEqual(Result.succeed({ tools: [tool] }))
  })

  it("are kept in content, resources, prompts and server descriptions", () => {
    const call = {
      content: [{ type: "text", text: "a", _meta: { a: 1 }, annotations: { lastModified: "2025-01-01" } }],
      structuredContent: [1],
      resultType: "complete"
    }
    const initialize = {
      protocolVersion: "2024-11-05",
      capabilities: { completions: {}, tasks: { list: {} } },
      serverInfo: { name: "a", version: "1", title: "A", websiteUrl: "https://example.com", description: "d" }
    }
    expect(result(Method.CallTool, "2024-11-05", call).read).toBe(call)
    expect(result(Method.Initialize, "2024-11-05", initialize).read).toBe(initialize)
  })

  it("are kept in params", () => {
    const params = {
      ref: { type: "ref/prompt", name: "a", title: "A" },
      argument: { name: "a", value: "" },
      context: {}
    }
    for (const revision of Revision.all) {
      expect(Codec.decodeParams(Method.Complete, revision, params)).toEqual(Result.succeed(params))
    }
  })

  it("are kept in every request, result and notification, and are dropped when writing only", () => {
    let kept = 0
    for (const method of [...Method.requests, ...Method.notifications]) {
      const schemas = [method.params, ...(method.kind === "request" ? [method.result] : [])]
      for (const schema of schemas) {
        for (const value of Check.canonical({ schema: schema as never }, `newer ${method.name}`, 5)) {
          // Generated values have the newest names of members that an older revision renames. `null` is a value of
          // structuredContent in 2026-07-28 only.
          const changed = /"(?:ttlMs|pollIntervalMs)":|"structuredContent":null/
          if (!isObject(value) || changed.test(JSON.stringify(value))) continue
          const newest = Codec.decode(schema, "2026-07-28", value)
          if (Result.isFailure(newest) || Json.difference(value, newest.success) !== undefined) continue
          for (const revision of Revision.all) {
            const read = Codec.decode(schema, revision, value)
            if (Result.isFailure(read)) continue
            const { resultType: _, ...members } = read.success as JsonObject
            const { resultType: __, ...expected } = value
            const lost = Json.difference(expected, members)
            if (lost !== undefined) expect.fail(`${revision} ${method.name}: ${lost} of ${JSON.stringify(value)}`)
            kept++
          }
        }
      }
    }
    expect(kept).toBeGreaterThan(500)
  })

  it("are left out if they are malformed", () => {
    const raw = { tools: [{ ...tool, title: 7, icons: "none" }] }
    const { ignored, read } = result(Method.ListTools, "2024-11-05", raw)
    expect(read).toEqual({ tools: [tool], resultType: "complete" })
    expect(ignored).toEqual(["result.tools[0].title: Expected string", "result.tools[0].icons: Expected array"])
  })
})

describe("null", () => {
  /** Sets each optional member of a value to `null`, one at a time. */
  const nulled = (ast: AST.AST, value: unknown): ReadonlyArray<unknown> => {
    if (!AST.isObjects(ast)) return []
    return ast.propertySignatures.flatMap(({ name, type }) =>
      type.context?.isOptional === true ? [{ ...value as object, [name]: null }] : []
    )
  }

  it("reads as an absent member for every optional member of every message", () => {
    let tried = 0
    for (const revision of Revision.all) {
      for (const method of [...Method.requests, ...Method.notifications]) {
        const schemas = [method.params, ...(method.kind === "request" ? [method.result] : [])]
        for (const schema of schemas) {
          for (const value of Check.canonical({ schema: schema as never }, `null ${method.name}`, 3)) {
            if (Result.isFailure(Codec.decode(schema, revision, value))) continue
            for (const raw of nulled(schema.ast, value)) {
              tried++
              const required = method.name === "notifications/cancelled" && "requestId" in (raw as object)
              const read = Codec.decode(schema, revision, raw)
              if (!required && Result.isFailure(read)) expect.fail(`${revision} ${method.name}: ${read.failure}`)
            }
          }
        }
      }
    }
    expect(tried).toBeGreaterThan(1_000)
  })

  it("reads as absent inside of items and records", () => {
    const raw = {
      tools: [{
        ...tool,
        title: null,
        annotations: { title: null, readOnlyHint: true },
        outputSchema: null,
        _meta: null
      }],
      nextCursor: null
    }
    expect(result(Method.ListTools, "2025-06-18", raw)).toEqual({
      read: { tools: [{ ...tool, annotations: { readOnlyHint: true } }], resultType: "complete" },
      ignored: []
    })
    const params = { name: "a", arguments: { b: null, c: "1" } }
    expect(Codec.decodeParams(Method.GetPrompt, "2025-06-18", params)).toEqual(
      Result.succeed({ name: "a", arguments: { c: "1" } })
    )
  })

  it("reads as absent where it would decide about the kind of a message", () => {
    const raw = { tools: [tool], resultType: null }
    expect(result(Method.ListTools, "2026-07-28", raw).read).toEqual({ tools: [tool], resultType: "complete" })
    const answer = { content: [], task: null }
    expect(result(Method.CallTool, "2025-11-25", answer).read).toEqual({ ...answer, resultType: "complete" })
    expect(result(Method.CallTool, "2025-11-25", { structuredContent: {}, task: null }).read).toMatchObject({
      content: []
    })
    const created = { task: { taskId: "t" }, content: null }
    expect(result(Method.CallTool, "2025-11-25", created).read).toContain("result.task")
  })

  it("does not hide the other extensions", () => {
    const capabilities = { extensions: { a: {}, b: null, c: 7 } }
    const read = result(Method.Initialize, "2025-11-25", {
      protocolVersion: "2025-11-25",
      capabilities,
      serverInfo: { name: "a", version: "1" }
    })
    expect(read.read).toMatchObject({ capabilities: { extensions: { a: {} } } })
    expect((read.read as { readonly capabilities: object }).capabilities).toEqual({ extensions: { a: {} } })
  })

  it("reads as an empty list for a required list of a result", () => {
    expect(result(Method.ListTools, "2025-06-18", { tools: null }).read).toEqual({ tools: [], resultType: "complete" })
    expect(result(Method.Complete, "2025-06-18", { completion: { values: null } }).read).toEqual({
      completion: { values: [] },
      resultType: "complete"
    })
    expect(result(Method.ListTools, "2025-06-18", {}).read).toBe("result.tools: Missing key")
  })

  it("stays where it is a value", () => {
    const content = { content: [], structuredContent: null, resultType: "complete" }
    expect(result(Method.CallTool, "2026-07-28", content).read).toBe(content)
    expect(result(Method.CallTool, "2025-06-18", content).read).toEqual({ content: [], resultType: "complete" })
  })

  it("costs linear time in a record of many", () => {
    const many = Object.fromEntries(Array.from({ length: 50_000 }, (_, index) => [`k${index}`, null]))
    const started = process.cpuUsage().user
    expect(Codec.decodeParams(Method.GetPrompt, "2025-06-18", { name: "a", arguments: many })).toEqual(
      Result.succeed({ name: "a", arguments: {} })
    )
    expect(process.cpuUsage().user - started).toBeLessThan(5_000_000)
  })
})

describe("the result of a tool", () => {
  it("without content has an empty list", () => {
    for (const revision of Revision.all) {
      for (const raw of [{ structuredContent: { a: 1 } }, { structuredContent: { a: 1 }, content: null }]) {
        expect(result(Method.CallTool, revision, raw).read).toEqual({
          structuredContent: { a: 1 },
          content: [],
          resultType: "complete"
        })
      }
    }
    expect(result(Method.CallTool, "2025-06-18", { content: 7 }).read).toBe("result.content: Expected array")
  })

  it("keeps its other blocks if one cannot be read, which a text names", () => {
    const raw = { content: [{ type: "text", text: "a" }, { type: "video", url: "u" }, { type: "text" }, null] }
    const { ignored, read } = result(Method.CallTool, "2025-06-18", raw)
    expect((read as JsonObject)["content"]).toEqual([
      { type: "text", text: "a" },
      { type: "text", text: "[content that could not be read, of type \"video\"]" },
      { type: "text", text: "[content that could not be read, of type \"text\"]" }
    ])
    expect(ignored).toHaveLength(3)
  })

  it("without content in a message to a model has an empty list", () => {
    const params = {
      messages: [{ role: "user", content: { type: "tool_result", toolUseId: "t" } }],
      maxTokens: 1
    }
    const read = Codec.decodeParams(Method.CreateMessage, "2025-11-25", params)
    expect(Result.getOrThrow(read)).toMatchObject({ messages: [{ content: { toolUseId: "t", content: [] } }] })
  })

  it("is refused if `isError` is malformed: it would look like a success", () => {
    expect(result(Method.CallTool, "2025-06-18", { content: [], isError: "yes" }).read).toBe(
      "result.isError: Expected boolean"
    )
  })
})

describe("capabilities", () => {
  const serverInfo = { name: "a", version: "1" }
  const read = (capabilities: JsonObject) => {
    const raw = { protocolVersion: "2025-11-25", serverInfo, capabilities }
    return (result(Method.Initialize, "2025-11-25", raw).read as JsonObject)["capabilities"]
  }

  it("are declared by an empty list, as PHP writes an empty object, and by true", () => {
    for (const declared of [[], true]) {
      expect(read({
        logging: declared,
        completions: declared,
        tools: declared,
        prompts: declared,
        resources: declared,
        experimental: { a: declared },
        extensions: { b: declared },
        tasks: { list: declared, requests: { tools: { call: declared } } }
      })).toEqual({
        logging: {},
        completions: {},
        tools: {},
        prompts: {},
        resources: {},
        experimental: { a: {} },
        extensions: { b: {} },
        tasks: { list: {}, requests: { tools: { call: {} } } }
      })
    }
  })

  it("are not declared by other values", () => {
    expect(read({ logging: false, tools: [1], prompts: "yes", resources: null, completions: 0 })).toEqual({})
  })
})

describe("malformed hints and items", () => {
  const resource = { uri: "file:///a", name: "a" }

  it("do not hide a resource", () => {
    const { ignored, read } = result(Method.ListResources, "2025-06-18", {
      resources: [{ ...resource, size: 1.5, annotations: { priority: 7, audience: ["user", "everybody"] } }, {
        name: "b"
      }]
    })
    expect((read as JsonObject)["resources"]).toEqual([{ ...resource, annotations: { audience: ["user"] } }])
    expect(ignored).toHaveLength(4)
    expect(ignored[0]).toContain("result.resources[0].size")
    expect(ignored.at(-1)).toBe("result.resources[1].uri: Missing key")
  })

  it("are refused in a request, whose sender receives the error", () => {
    const refused = (params: JsonObject) => Result.isFailure(Codec.decodeParams(Method.ListTools, "2025-06-18", params))
    expect(refused({ cursor: 7 })).toBe(true)
    expect(
      Codec.decodeParams(Method.CreateMessage, "2025-11-25", { messages: [], maxTokens: 1, temperature: "warm" })
    ).toEqual(Result.fail("params.temperature: Expected number"))
  })

  it("are refused where the message would have another meaning", () => {
    expect(result(Method.ListTools, "2025-06-18", { tools: [], nextCursor: 7 }).read).toContain("result.nextCursor")
    const contents = [{ uri: "a", text: "a" }, { uri: "b" }]
    expect(result(Method.ReadResource, "2025-06-18", { contents }).read).toContain("result.contents[1]")
    const messages = [{ role: "user", content: { type: "text", text: "a" } }, { role: "system", content: {} }]
    expect(result(Method.GetPrompt, "2025-06-18", { messages }).read).toContain("result.messages[1].role")
    const content = { a: 1, b: {} }
    expect(result(Method.Elicit, "2025-06-18", { action: "accept", content }).read).toContain("result.content.b")
  })

  it("report 64 problems at most", () => {
    const tools = Array.from({ length: 1_000 }, () => ({}))
    const { ignored, read } = result(Method.ListTools, "2025-06-18", { tools })
    expect((read as JsonObject)["tools"]).toEqual([])
    expect(ignored).toHaveLength(64)
  })

  it("follow the rules of a schema: essential members, fallbacks, own __proto__ members", () => {
    const Item = Schema.Struct({
      kind: Schema.Literal("a"),
      hint: Schema.optionalKey(Schema.String),
      key: essential(Schema.optionalKey(Schema.String)),
      young: since("2026-07-28", essential(Schema.optionalKey(Schema.String)))
    })
    const Any = fallback(Schema.Union([Item]), (value) => value === 7 ? { kind: "a" as const } : undefined)
    const read = (value: unknown) => Codec.decode(Schema.Array(Any), "2025-06-18", value, "v", [])
    expect(read([7, { kind: "a", hint: 1, young: 1 }, 8])).toEqual(Result.succeed([{ kind: "a" }, { kind: "a" }]))
    expect(read([{ kind: "a", key: 1 }])).toEqual(Result.succeed([]))
    const raw = JSON.parse("[{\"kind\":\"a\",\"hint\":1,\"__proto__\":{\"b\":1}}]")
    const out = Result.getOrThrow(read(raw))
    expect(JSON.stringify(out)).toBe("[{\"kind\":\"a\",\"__proto__\":{\"b\":1}}]")
    expect(raw[0].hint).toBe(1)
  })
})

describe("a tool", () => {
  it("without a schema takes any arguments, and a schema without `type` describes an object", () => {
    const { ignored, read } = result(Method.ListTools, "2025-06-18", {
      tools: [
        { name: "a" },
        { name: "b", inputSchema: null },
        { name: "c", inputSchema: {} },
        { name: "d", inputSchema: { properties: { e: {} }, type: null } },
        { name: "f", inputSchema: { type: "string" } },
        { name: "g", inputSchema: 7 }
      ]
    })
    expect((read as JsonObject)["tools"]).toEqual([
      { name: "a", inputSchema: { type: "object" } },
      { name: "b", inputSchema: { type: "object" } },
      { name: "c", inputSchema: { type: "object" } },
      { name: "d", inputSchema: { type: "object", properties: { e: {} } } }
    ])
    expect(ignored).toHaveLength(6)
  })

  it("is refused in a request for sampling, whose sender receives the error", () => {
    const params = { messages: [], maxTokens: 1, tools: [{ name: "a", inputSchema: {} }] }
    expect(Result.isFailure(Codec.decodeParams(Method.CreateMessage, "2025-11-25", params))).toBe(true)
  })
})

describe("versions", () => {
  it("2024-10-07 is read as the oldest revision, and other unknown versions are not revisions", () => {
    expect(Revision.read("2024-10-07")).toBe("2024-11-05")
    for (const revision of Revision.all) expect(Revision.read(revision)).toBe(revision)
    for (const other of ["2024-10-08", "", "latest", 7, null, undefined]) expect(Revision.read(other)).toBeUndefined()
  })
})
