import * as Codec from "@skein/protocol/Codec"
import { Encoded } from "@skein/protocol/JsonRpc"
import * as Method from "@skein/protocol/Method"
import * as Revision from "@skein/protocol/Revision"
import * as Result from "effect/Result"
import { describe, expect, it } from "vitest"

const read = <A, E>(result: Result.Result<A, E>): A => Result.getOrThrow(result)
const refusal = <A, E>(result: Result.Result<A, E>): E => Result.getOrThrow(Result.flip(result))

describe("params", () => {
  it("tools/list without params is read as a request for the first page", () => {
    for (const revision of Revision.all) {
      expect(read(Codec.decodeParams(Method.ListTools, revision, undefined))).toEqual({})
    }
  })

  it("an error is one line that names the path", () => {
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

  it("what was read is what was sent, by reference, with the members that the model does not know", () => {
    const raw = { name: "a", arguments: { x: 1 }, _meta: { progressToken: 1, "com.example/a": {} }, more: [1] }
    expect(read(Codec.decodeParams(Method.CallTool, "2026-07-28", raw))).toBe(raw)
  })

  it("a `_meta` that is no object is ignored", () => {
    expect(read(Codec.decodeParams(Method.CallTool, "2025-06-18", { name: "a", _meta: 7 }))).toEqual({ name: "a" })
  })

  it("2025-11-25 · a task is asked for there, and is an unknown member elsewhere", () => {
    const raw = { name: "a", task: { ttl: 1 } }
    expect(read(Codec.decodeParams(Method.CallTool, "2025-11-25", raw))).toBe(raw)
    expect(read(Codec.decodeParams(Method.CallTool, "2025-06-18", raw))).toEqual({ name: "a" })
    expect(read(Codec.decodeParams(Method.CallTool, "2026-07-28", raw))).toEqual({ name: "a" })
  })

  it("2025-06-18 · a URL elicitation is refused when writing", () => {
    const params = { mode: "url", message: "m", url: "https://example.com" } as const
    const refused = refusal(Codec.encodeParams(Method.Elicit, "2025-06-18", params))
    expect(refused._tag).toBe("Unrepresentable")
    expect(refused.message).toBe("2025-06-18 does not support elicitation by URL")
    const written = read(Codec.encodeParams(Method.Elicit, "2025-11-25", params))
    expect(written).toMatchObject(params)
    expect(written["elicitationId"]).toMatch(/^[0-9a-f-]{36}$/)
    expect(read(Codec.encodeParams(Method.Elicit, "2026-07-28", { ...params, elicitationId: "1" }))).toEqual(params)
  })

  it("2025-06-18 · a choice with titles is written in the older way, a choice of several is refused", () => {
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

  it("2025-06-18 · sampling with tools is refused, and one block stands for an array of one", () => {
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

  it("2025-06-18 · a client that elicits by URL alone does not say elicitation, which would mean forms", () => {
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

  it("a cancellation without a request is 2025-11-25's alone", () => {
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

  it("2024-11-05 · what it does not know is left out or becomes text", () => {
    expect(read(Codec.encodeResult(Method.CallTool, "2024-11-05", result))).toEqual({
      content: [
        { type: "text", text: "a" },
        { type: "text", text: "[audio: audio/wav]" },
        { type: "text", text: "[resource: A] file:///a" }
      ],
      _meta: { a: 1 }
    })
  })

  it("2025-11-25 · structured content that is no object is left out", () => {
    expect(read(Codec.encodeResult(Method.CallTool, "2025-11-25", result))).not.toHaveProperty("structuredContent")
    expect(read(Codec.encodeResult(Method.CallTool, "2025-11-25", { content: [], structuredContent: {} })))
      .toEqual({ content: [], structuredContent: {} })
  })

  it("2026-07-28 · resultType is filled in when writing, and when an older peer did not send it", () => {
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

  it("2026-07-28 · a hint for caches that is malformed is ignored, and the rest is read; another is read by reference", () => {
    const list = (hints: object) => read(Codec.decodeResult(Method.ListTools, "2026-07-28", { tools: [], ...hints }))
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

  it("2026-07-28 · pagination · a nextCursor of null is none; an empty string is one", () => {
    for (const revision of Revision.all) {
      const page = (nextCursor: unknown) => Codec.decodeResult(Method.ListTools, revision, { tools: [], nextCursor })
      expect(read(page(null))).not.toHaveProperty("nextCursor")
      expect(read(page("")).nextCursor).toBe("")
      expect(page(5)._tag).toBe("Failure")
    }
  })

  it("2025-11-25 · a tool's schemas are of objects: what cannot be said is left out, boolean properties keep their meaning", () => {
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

  it("what is JSON text already passes through", () => {
    const encoded = new Encoded("{\"tools\":[]}")
    expect(read(Codec.encodeResult(Method.ListTools, "2024-11-05", encoded))).toBe(encoded)
  })

  it("completion: what is beyond 100 values is left out", () => {
    const values = Array.from({ length: 120 }, (_, i) => String(i))
    const written = read(Codec.encodeResult(Method.Complete, "2025-11-25", { completion: { values, total: 120 } }))
    expect(written).toEqual({ completion: { values: values.slice(0, 100), total: 120 } })
  })

  it("encode answers with a refusal, not an exception, to what is no value of the model", () => {
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

describe("answers", () => {
  const inputRequired = { resultType: "input_required", requestState: "s" } as const
  const task = {
    resultType: "task",
    taskId: "t",
    status: "working",
    createdAt: "2026-07-28T00:00:00Z",
    lastUpdatedAt: "2026-07-28T00:00:00Z",
    ttlMs: null
  } as const

  it("2026-07-28 · an answer is a result, a question or a task", () => {
    const answer = (raw: object) => read(Codec.decodeAnswer(Method.CallTool, "2026-07-28", raw as never))._tag
    expect(answer({ content: [] })).toBe("Complete")
    expect(answer(inputRequired)).toBe("InputRequired")
    expect(answer(task)).toBe("Task")
  })

  it("2026-07-28 · an answer that the method cannot have is an error", () => {
    expect(refusal(Codec.decodeAnswer(Method.ListTools, "2026-07-28", inputRequired))).toBe(
      "result.resultType: \"input_required\" is not allowed for tools/list"
    )
    expect(Result.isFailure(Codec.decodeAnswer(Method.GetPrompt, "2026-07-28", task))).toBe(true)
    expect(Result.isFailure(Codec.decodeAnswer(Method.CallTool, "2026-07-28", { resultType: "new", content: [] })))
      .toBe(true)
    expect(Result.isFailure(Codec.decodeResult(Method.CallTool, "2026-07-28", inputRequired))).toBe(true)
  })

  it("what an author without types gives for a result is refused, and does not throw", () => {
    for (const result of [null, undefined, 7, "a", [1]]) {
      for (const revision of Revision.all) {
        expect(refusal(Codec.encodeResult(Method.Ping, revision, result as never)).message).toBe(
          "a result must be an object"
        )
      }
    }
  })

  it("2026-07-28 · a resultType that is no text, or a long one, is an error that does not repeat it", () => {
    const error = (resultType: unknown) =>
      refusal(Codec.decodeAnswer(Method.CallTool, "2026-07-28", { resultType, content: [] }))
    expect(error(JSON.parse("[".repeat(100_000) + "]".repeat(100_000)))).toBe(
      "result.resultType: a value of type object is not allowed for tools/call"
    )
    expect(error(7)).toBe("result.resultType: a value of type number is not allowed for tools/call")
    expect(error("x".repeat(1_000_000)).length).toBeLessThan(200)
  })

  it("an error names the path to a fault, and of a long name on it the first 128 characters", () => {
    const error = (name: string) =>
      refusal(Codec.decodeParams(Method.GetPrompt, "2025-11-25", { name: "a", arguments: { [name]: 7 } }))
    expect(error("b")).toBe("params.arguments.b: Expected string")
    expect(error("b".repeat(128))).toBe(`params.arguments.${"b".repeat(128)}: Expected string`)
    expect(error("b".repeat(1_000_000))).toBe(`params.arguments["${"b".repeat(128)}…"]: Expected string`)
  })

  it("session era · an answer of the request era is refused when writing, not mistaken for a result", () => {
    for (const revision of Revision.sessionEra) {
      expect(refusal(Codec.encodeResult(Method.CallTool, revision, inputRequired))._tag).toBe("Unrepresentable")
      expect(refusal(Codec.encodeResult(Method.CallTool, revision, task))._tag).toBe("Unrepresentable")
    }
    expect(read(Codec.encodeResult(Method.CallTool, "2026-07-28", task))).toEqual(task)
    expect(refusal(Codec.encodeResult(Method.ListTools, "2026-07-28", inputRequired))._tag).toBe("Unrepresentable")
  })

  it("2025-11-25 · a task is answered inside a member, with ttl and pollInterval", () => {
    const { resultType: _, ...fields } = task
    const legacy = { task: { ...fields, pollIntervalMs: 5 } }
    const written = read(Codec.encodeResult(Method.CallTool, "2025-11-25", legacy))
    const { ttlMs, ...rest } = fields
    expect(written).toEqual({ task: { ...rest, ttl: ttlMs, pollInterval: 5 } })
    const answer = read(Codec.decodeAnswer(Method.CallTool, "2025-11-25", written as never))
    expect(answer).toEqual({ _tag: "LegacyTask", result: legacy })
  })

  it("2025-11-25 · tasks/get speaks of ttl and pollInterval, the extension of ttlMs and pollIntervalMs", () => {
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
