import * as Codec from "@skein/protocol/Codec"
import { Encoded } from "@skein/protocol/JsonRpc"
import * as Method from "@skein/protocol/Method"
import * as Revision from "@skein/protocol/Revision"
import * as Result from "effect/Result"
import { describe, expect, it } from "vitest"

const read = <A, E>(result: Result.Result<A, E>): A => Result.getOrThrow(result)
const refusal = <A, E>(result: Result.Result<A, E>): E => Result.getOrThrow(Result.flip(result))

describe("params", () => {
  it("reads absent params of tools/list as {}", () => {
    for (const revision of Revision.all) {
      expect(read(Codec.decodeParams(Method.ListTools, revision, undefined))).toEqual({})
    }
  })

  it("returns an error of one line that names the path", () => {
    expect(refusal(Codec.decodeParams(Method.CallTool, "2025-11-25", undefined))).toBe("params.name: Missing key")
    expect(refusal(Codec.decodeParams(Method.CallTool, "2025-11-25", { name: "a", arguments: [] }))).toBe(
      "params.arguments: Expected an object"
    )
    expect(
      refusal(Codec.decodeResult(Method.ListTools, "2025-11-25", {
        tools: [{ name: "a", inputSchema: { type: "object" } }, { name: 7, inputSchema: { type: "object" } }]
      }))
    ).toBe("result.tools[1].name: Expected string")
    expect(refusal(Codec.decodeParams(Method.GetPrompt, "2025-11-25", { name: "a", arguments: { "a b": 1 } }))).toBe(
      "params.arguments[\"a b\"]: Expected string"
    )
  })

  it("returns the received params by reference, unknown members included", () => {
    const raw = { name: "a", arguments: { x: 1 }, _meta: { progressToken: 1, "com.example/a": {} }, more: [1] }
    expect(read(Codec.decodeParams(Method.CallTool, "2026-07-28", raw))).toBe(raw)
  })

  it("ignores a `_meta` that is not an object", () => {
    expect(read(Codec.decodeParams(Method.CallTool, "2025-06-18", { name: "a", _meta: 7 }))).toEqual({ name: "a" })
  })

  it("2025-11-25 · reads `task`, which other revisions keep if it is well-formed", () => {
    const raw = { name: "a", task: { ttl: 1 } }
    expect(read(Codec.decodeParams(Method.CallTool, "2025-11-25", raw))).toBe(raw)
    expect(read(Codec.decodeParams(Method.CallTool, "2025-06-18", raw))).toBe(raw)
    expect(read(Codec.decodeParams(Method.CallTool, "2025-06-18", { name: "a", task: 7 }))).toEqual({ name: "a" })
    expect(refusal(Codec.decodeParams(Method.CallTool, "2025-11-25", { name: "a", task: 7 }))).toContain("params.task")
  })

  it("2025-06-18 · refuses to write a URL elicitation", () => {
    const params = { mode: "url", message: "m", url: "https://example.com" } as const
    const refused = refusal(Codec.encodeParams(Method.Elicit, "2025-06-18", params))
    expect(refused._tag).toBe("Unrepresentable")
    expect(refused.message).toBe("2025-06-18 does not support elicitation by URL")
    const written = read(Codec.encodeParams(Method.Elicit, "2025-11-25", params))
    expect(written).toMatchObject(params)
    expect(written["elicitationId"]).toMatch(/^[0-9a-f-]{36}$/)
    expect(read(Codec.encodeParams(Method.Elicit, "2026-07-28", { ...params, elicitationId: "1" }))).toEqual(params)
  })

  it("2025-06-18 · writes a titled choice with enumNames, and refuses a multiple choice", () => {
    const form = (field: object) => ({
      mode: "form" as const,
      message: "m",
      requestedSchema: { type: "object" as const, properties: { a: field as never } }
    })
    const options = [{ const: "r", title: "Red" }, { const: "b", title: "Blue" }]
    expect(
      read(Codec.encodeParams(Method.Elicit, "2025-06-18", form({ type: "string", oneOf: options, default: "r" })))
    ).toEqual({
      message: "m",
      requestedSchema: {
        type: "object",
        properties: { a: { type: "string", enum: ["r", "b"], enumNames: ["Red", "Blue"] } }
      }
    })
    const several = form({ type: "array", items: { anyOf: options } })
    expect(refusal(Codec.encodeParams(Method.Elicit, "2025-06-18", several)).message).toContain(
      "does not support multiple choice in a form"
    )
  })

  it("2025-06-18 · refuses tools in sampling, and writes an array of one block as that block", () => {
    const text = { type: "text", text: "a" } as const
    const params = (content: typeof text | ReadonlyArray<typeof text>) => ({
      messages: [{ role: "user" as const, content }],
      maxTokens: 1
    })
    expect(read(Codec.encodeParams(Method.CreateMessage, "2025-06-18", params([text])))).toEqual(params(text))
    expect(refusal(Codec.encodeParams(Method.CreateMessage, "2025-06-18", params([text, text]))).message)
      .toContain("one block per sampling message")
    const tools = [{ name: "a", inputSchema: { type: "object" as const } }]
    expect(refusal(Codec.encodeParams(Method.CreateMessage, "2025-06-18", { ...params(text), tools })).message)
      .toBe("2025-06-18 does not support tools in sampling")
    expect(Result.isSuccess(Codec.encodeParams(Method.CreateMessage, "2025-11-25", { ...params(text), tools }))).toBe(
      true
    )
  })

  it("2025-06-18 · does not declare elicitation for a client that supports URLs only, since it would mean forms", () => {
    const params = (elicitation: { readonly form?: {}; readonly url?: {} }) => ({
      protocolVersion: "2025-06-18",
      clientInfo: { name: "a", version: "1" },
      capabilities: { elicitation }
    })
    const written = (elicitation: { readonly form?: {}; readonly url?: {} }) =>
      read(Codec.encodeParams(Method.Initialize, "2025-06-18", params(elicitation)))["capabilities"]
    expect(written({ url: {} })).toEqual({})
    expect(written({ url: {}, form: {} })).toEqual({ elicitation: {} })
    expect(written({})).toEqual({ elicitation: {} })
  })

  it("2025-11-25 · writes a cancellation without requestId, which other revisions refuse", () => {
    expect(read(Codec.encodeParams(Method.Cancelled, "2025-11-25", { reason: "r" }))).toEqual({ reason: "r" })
    expect(refusal(Codec.encodeParams(Method.Cancelled, "2025-06-18", { reason: "r" }))._tag).toBe("Unrepresentable")
  })
})

describe("results", () => {
  const result = {
    content: [
      { type: "text", text: "a", _meta: {} },
      { type: "audio", data: "", mimeType: "audio/wav" },
      { type: "resource_link", uri: "file:///a", name: "a", title: "A" }
    ],
    structuredContent: [1],
    _meta: { a: 1 }
  } as const

  it("2024-11-05 · leaves newer fields out, and writes newer content as text", () => {
    expect(read(Codec.encodeResult(Method.CallTool, "2024-11-05", result))).toEqual({
      content: [
        { type: "text", text: "a" },
        { type: "text", text: "[audio: audio/wav]" },
        { type: "text", text: "[resource: A] file:///a" }
      ],
      _meta: { a: 1 }
    })
  })

  it("2025-11-25 · leaves out structuredContent that is not an object", () => {
    expect(read(Codec.encodeResult(Method.CallTool, "2025-11-25", result))).not.toHaveProperty("structuredContent")
    expect(read(Codec.encodeResult(Method.CallTool, "2025-11-25", { content: [], structuredContent: {} })))
      .toEqual({ content: [], structuredContent: {} })
  })

  it("2026-07-28 · fills resultType in when writing, and when reading an older peer's result", () => {
    expect(read(Codec.encodeResult(Method.CallTool, "2026-07-28", { content: [] }))).toEqual({
      content: [],
      resultType: "complete"
    })
    expect(read(Codec.decodeResult(Method.CallTool, "2024-11-05", { content: [] })).resultType).toBe("complete")
    expect(read(Codec.encodeResult(Method.CallTool, "2024-11-05", { content: [], resultType: "complete" })))
      .toEqual({ content: [] })
  })

  it("2026-07-28 · Servers MUST provide a ttlMs value that is >= 0", () => {
    const write = (fields: object) => read(Codec.encodeResult(Method.ListTools, "2026-07-28", { tools: [], ...fields }))
    expect(write({})).toEqual({ tools: [], resultType: "complete", ttlMs: 0, cacheScope: "private" })
    expect(write({ ttlMs: -5, cacheScope: "public" })).toMatchObject({ ttlMs: 0, cacheScope: "public" })
    expect(write({ ttlMs: 5 })).toMatchObject({ ttlMs: 5 })
    expect(read(Codec.decodeResult(Method.ListTools, "2025-11-25", { tools: [] }))).not.toHaveProperty("ttlMs")
  })

  it("2026-07-28 · ignores a malformed caching hint, and returns a result with valid ones by reference", () => {
    const list = (hints: object) =>
      read(Codec.decodeResult(Method.ListTools, "2026-07-28", { tools: [], ...hints }, []))
    for (const ttlMs of ["60000", 1e308, Infinity, NaN, 0.5, null, {}, [1], true]) {
      expect(list({ ttlMs, cacheScope: "public" })).toEqual({ tools: [], cacheScope: "public", resultType: "complete" })
    }
    for (const cacheScope of ["everybody", "Public", "__proto__", null, {}, ["public"], 1]) {
      expect(list({ ttlMs: 5, cacheScope })).toEqual({ tools: [], ttlMs: 5, resultType: "complete" })
    }
    const raw = { tools: [], ttlMs: 5, cacheScope: "public", resultType: "complete" }
    expect(read(Codec.decodeResult(Method.ListTools, "2026-07-28", raw))).toBe(raw)
  })

  it("2026-07-28 · if ttlMs is negative, clients SHOULD ignore it and treat it as 0", () => {
    const ttl = (ttlMs?: unknown) =>
      read(Codec.decodeResult(Method.ListTools, "2026-07-28", { tools: [], ...(ttlMs === undefined ? {} : { ttlMs }) }))
        .ttlMs
    expect([-1, -0.5, 0, 5].map(ttl)).toEqual([0, 0, 0, 5])
    expect(ttl()).toBeUndefined()
  })

  it("2026-07-28 · pagination · reads a nextCursor of null as absent, and keeps an empty string", () => {
    for (const revision of Revision.all) {
      const page = (nextCursor: unknown) => Codec.decodeResult(Method.ListTools, revision, { tools: [], nextCursor })
      expect(read(page(null))).not.toHaveProperty("nextCursor")
      expect(read(page("")).nextCursor).toBe("")
      expect(page(5)._tag).toBe("Failure")
    }
  })

  it("2025-11-25 · writes boolean property schemas as objects, and leaves out an outputSchema that is not of an object", () => {
    const tools = [{
      name: "a",
      inputSchema: { type: "object" as const, properties: { any: true, none: false, s: { type: "string" } } },
      outputSchema: { type: "array" }
    }]
    expect(read(Codec.encodeResult(Method.ListTools, "2025-11-25", { tools }))).toEqual({
      tools: [{
        name: "a",
        inputSchema: { type: "object", properties: { any: {}, none: { not: {} }, s: { type: "string" } } }
      }]
    })
    expect(read(Codec.encodeResult(Method.ListTools, "2026-07-28", { tools }))).toMatchObject({ tools })
  })

  it("returns an Encoded result as it is", () => {
    const encoded = new Encoded("{\"tools\":[]}")
    expect(read(Codec.encodeResult(Method.ListTools, "2024-11-05", encoded))).toBe(encoded)
  })

  it("leaves out completion values beyond 100", () => {
    const values = Array.from({ length: 120 }, (_, i) => String(i))
    const written = read(Codec.encodeResult(Method.Complete, "2025-11-25", { completion: { values, total: 120 } }))
    expect(written).toEqual({ completion: { values: values.slice(0, 100), total: 120 } })
  })

  it("encode returns an error, and does not throw, for a value outside the model", () => {
    const broken = {
      content: [{
        get type() {
          throw new Error("no")
        }
      }]
    } as never
    expect(refusal(Codec.encodeResult(Method.CallTool, "2024-11-05", broken))._tag).toBe("Unrepresentable")
  })
})

describe("responses", () => {
  const inputRequired = { resultType: "input_required", requestState: "s" } as const
  const task = {
    resultType: "task",
    taskId: "t",
    status: "working",
    createdAt: "2026-07-28T00:00:00Z",
    lastUpdatedAt: "2026-07-28T00:00:00Z",
    ttlMs: null
  } as const

  it("2026-07-28 · decodes a result, a request for input and a task", () => {
    const answer = (raw: object) => read(Codec.decodeAnswer(Method.CallTool, "2026-07-28", raw as never))._tag
    expect(answer({ content: [] })).toBe("Complete")
    expect(answer(inputRequired)).toBe("InputRequired")
    expect(answer(task)).toBe("Task")
  })

  it("2026-07-28 · refuses a resultType that the method does not allow", () => {
    expect(refusal(Codec.decodeAnswer(Method.ListTools, "2026-07-28", inputRequired))).toBe(
      "result.resultType: \"input_required\" is not allowed for tools/list"
    )
    expect(Result.isFailure(Codec.decodeAnswer(Method.GetPrompt, "2026-07-28", task))).toBe(true)
    expect(Result.isFailure(Codec.decodeAnswer(Method.CallTool, "2026-07-28", { resultType: "new", content: [] })))
      .toBe(true)
    expect(Result.isFailure(Codec.decodeResult(Method.CallTool, "2026-07-28", inputRequired))).toBe(true)
  })

  it("refuses a result that is not an object, and does not throw", () => {
    for (const result of [null, undefined, 7, "a", [1]]) {
      for (const revision of Revision.all) {
        expect(refusal(Codec.encodeResult(Method.Ping, revision, result as never)).message).toBe(
          "a result must be an object"
        )
      }
    }
  })

  it("2026-07-28 · refuses a resultType that is not a string or is long, without repeating it in full", () => {
    const error = (resultType: unknown) =>
      refusal(Codec.decodeAnswer(Method.CallTool, "2026-07-28", { resultType, content: [] }))
    expect(error(JSON.parse("[".repeat(100_000) + "]".repeat(100_000)))).toBe(
      "result.resultType: a value of type object is not allowed for tools/call"
    )
    expect(error(7)).toBe("result.resultType: a value of type number is not allowed for tools/call")
    expect(error("x".repeat(1_000_000)).length).toBeLessThan(200)
  })

  it("names the path of a problem, with at most 128 characters of each key", () => {
    const error = (name: string) =>
      refusal(Codec.decodeParams(Method.GetPrompt, "2025-11-25", { name: "a", arguments: { [name]: 7 } }))
    expect(error("b")).toBe("params.arguments.b: Expected string")
    expect(error("b".repeat(128))).toBe(`params.arguments.${"b".repeat(128)}: Expected string`)
    expect(error("b".repeat(1_000_000))).toBe(`params.arguments["${"b".repeat(128)}…"]: Expected string`)
  })

  it("session era · refuses to write a request for input or a task of the extension", () => {
    for (const revision of Revision.sessionBased) {
      expect(refusal(Codec.encodeResult(Method.CallTool, revision, inputRequired))._tag).toBe("Unrepresentable")
      expect(refusal(Codec.encodeResult(Method.CallTool, revision, task))._tag).toBe("Unrepresentable")
    }
    expect(read(Codec.encodeResult(Method.CallTool, "2026-07-28", task))).toEqual(task)
    expect(refusal(Codec.encodeResult(Method.ListTools, "2026-07-28", inputRequired))._tag).toBe("Unrepresentable")
  })

  it("2025-11-25 · writes a task in the member `task`, with ttl and pollInterval", () => {
    const { resultType: _, ...fields } = task
    const legacy = { task: { ...fields, pollIntervalMs: 5 } }
    const written = read(Codec.encodeResult(Method.CallTool, "2025-11-25", legacy))
    const { ttlMs, ...rest } = fields
    expect(written).toEqual({ task: { ...rest, ttl: ttlMs, pollInterval: 5 } })
    const answer = read(Codec.decodeAnswer(Method.CallTool, "2025-11-25", written as never))
    expect(answer).toEqual({ _tag: "LegacyTask", result: legacy })
  })

  it("2025-11-25 · writes ttl and pollInterval in tasks/get; 2026-07-28 · ttlMs and pollIntervalMs", () => {
    const { resultType: _, ...fields } = task
    expect(read(Codec.encodeResult(Method.LegacyGetTask, "2025-11-25", { ...fields, ttlMs: 1 }))).toMatchObject({
      ttl: 1
    })
    expect(read(Codec.encodeResult(Method.GetTask, "2026-07-28", fields))).toEqual({
      ...fields,
      resultType: "complete"
    })
  })
})
