/** Messages of the model as a peer writes them, and values in them that reach more of the code than random ones. */
import * as Codec from "@skein/protocol/Codec"
import type * as JsonRpc from "@skein/protocol/JsonRpc"
import * as Method from "@skein/protocol/Method"
import type * as Revision from "@skein/protocol/Revision"
import * as Result from "effect/Result"
import type * as Random from "../../packages/protocol/test/oracle/Random.ts"
import * as Hostile from "./hostileJson.ts"

/** A value of a schema as the revision writes it, or as the model has it. */
export const written = (
  random: Random.Random,
  method: Method.AnyRequest | Method.AnyNotification,
  revision: Revision.Revision,
  part: "params" | "result"
): unknown => {
  const schema = part === "params" ? method.params : (method as Method.AnyRequest).result
  const value = random.pick(Hostile.samples(schema, `${method.name} ${part}`))
  const encoded = part === "params"
    ? Codec.encodeParams(method, revision, value as JsonRpc.JsonObject)
    : Codec.encodeResult(method as Method.AnyRequest, revision, value as JsonRpc.JsonObject)
  return Result.isSuccess(encoded) ? encoded.success : value
}

/** A text that would control a terminal, and is invisible in part. */
export const escapes =
  "\u001b]0;title\u0007\u001b[2J\u009b31m\u202eabc\u2066\u200b\u0000\u0008\rover\u2028\ufeff\u{e0041}"

/** Whether a text has characters that could control a terminal, apart from line breaks and tabs. */
export const isUnprintable = (text: string): boolean => /[\p{Cf}\p{Zl}\p{Zp}]|[^\n\t\P{Cc}]/u.test(text)

const icons = (random: Random.Random): unknown => [
  {
    src: random.pick(["https://a/b.png", "javascript:alert(1)", "data:image/png;base64,AA==", "http://[::1", escapes])
  },
  { src: "https://a/c.svg", mimeType: escapes, sizes: random.pick([["1x1"], "any", [escapes], 1, null]) }
]

/** A JSON Schema of a tool or of a form. */
export const jsonSchema = (random: Random.Random): Hostile.Anything => {
  const property = () =>
    random.pick<Hostile.Anything>([
      {},
      { type: "string", format: "email", default: "x" },
      { type: "string", enum: ["a", "b"], enumNames: ["A", escapes], default: "c" },
      { type: "string", oneOf: [{ const: "a", title: escapes }], title: escapes, description: escapes },
      { type: "array", items: { type: "string", enum: ["a", "b"] }, default: ["a"], minItems: 0, maxItems: 1 },
      { type: "array", items: { anyOf: [{ const: "a", title: "A" }] } },
      { type: "integer", minimum: -1, maximum: 1e308, default: 1.5 },
      { type: "number", multipleOf: 0 },
      { type: "boolean", default: "yes" },
      { type: "string", pattern: "^(a+)+$", minLength: -1 },
      { type: ["string", { toString: 1, valueOf: 1 }, null] },
      { const: { toJSON: 1 } },
      { enum: [1, null, "x"] },
      { anyOf: [{ type: "string" }, { $ref: "#" }] },
      { $ref: "#/properties/a" },
      { $ref: "http://127.0.0.1:1/schema" },
      { type: "string", "x-mcp-header": random.pick(["X-A", "A", escapes, "", "a b", 1]) },
      { "x-mcp-header": "A" }
    ])
  return {
    type: random.chance(0.9) ? "object" : random.pick(["array", "string", null, {}]),
    properties: { a: property(), [random.pick(["b", "a b", "__proto__", escapes, ""])]: property() },
    ...(random.chance(0.3) ? { required: ["a"] } : undefined),
    ...(random.chance(0.2) ? { additionalProperties: random.pick([false, {}, 1]) } : undefined),
    ...(random.chance(0.1)
      ? { $schema: random.pick(["http://json-schema.org/draft-07/schema#", escapes, 1]) }
      : undefined)
  }
}

/** The names of the tools that a hostile server lists. */
export const toolNames: ReadonlyArray<string> = ["t0", "t1", "t2", "t3", "__proto__", escapes]

const tool = (random: Random.Random, name: string): unknown => ({
  name,
  inputSchema: jsonSchema(random),
  ...(random.chance(0.5) ? { outputSchema: jsonSchema(random) } : undefined),
  ...(random.chance(0.3) ? { title: escapes, description: escapes } : undefined),
  ...(random.chance(0.3) ? { icons: icons(random) } : undefined),
  ...(random.chance(0.4) ? { annotations: { title: escapes, readOnlyHint: true, idempotentHint: true } } : undefined),
  ...(random.chance(0.5)
    ? { execution: { taskSupport: random.pick(["required", "optional", "forbidden", escapes]) } }
    : undefined),
  ...(random.chance(0.2) ? { _meta: { a: escapes } } : undefined)
})

/** An input request of a server: its method and params. */
export const inputRequest = (random: Random.Random, revision: Revision.Revision): Hostile.Anything => {
  const method = random.pick(["elicitation/create", "elicitation/create", "sampling/createMessage", "roots/list"])
  if (method === "elicitation/create" && random.chance(0.7)) {
    return random.chance(0.7)
      ? { method, params: { mode: "form", message: escapes, requestedSchema: jsonSchema(random) } }
      : {
        method,
        params: {
          mode: "url",
          message: "m",
          elicitationId: random.pick(["e", escapes]),
          url: random.pick(["https://a/b", "javascript:alert(1)", "http://[::1", "https://u:p@xn--a/", escapes])
        }
      }
  }
  const known = Method.request(method, revision) ?? Method.inputRequest(method, "2026-07-28")
  return { method, params: known === undefined ? {} : written(random, known, revision, "params") }
}

/** A task, in the form of either revision. */
export const task = (random: Random.Random, revision: Revision.Revision, taskId: string): Hostile.Anything => {
  const legacy = revision === "2025-11-25"
  const status = random.pick(["working", "working", "input_required", "completed", "failed", "cancelled"])
  return {
    taskId,
    status,
    createdAt: random.pick(["2026-01-01T00:00:00Z", "1970-01-01T00:00:00Z", "never"]),
    lastUpdatedAt: random.pick(["2026-01-01T00:00:00Z", "+275760-09-13T00:00:00.001Z"]),
    ...(random.chance(0.3) ? { statusMessage: escapes } : undefined),
    [legacy ? "ttl" : "ttlMs"]: random.pick([60_000, null, 0, 1]),
    [legacy ? "pollInterval" : "pollIntervalMs"]: random.pick([1, 1_000, 0, 1e15]),
    ...(status === "input_required" && !legacy
      ? { inputRequests: { a: inputRequest(random, revision), [escapes]: inputRequest(random, revision) } }
      : undefined),
    ...(status === "completed" && !legacy ? { result: toolResult(random, revision) } : undefined),
    ...(status === "failed" && !legacy ? { error: { code: -32_000, message: escapes, data: {} } } : undefined)
  }
}

const toolResult = (random: Random.Random, revision: Revision.Revision): Hostile.Anything =>
  random.chance(0.5) ? written(random, Method.CallTool, revision, "result") : {
    content: random.pick([[], [{ type: "text", text: escapes }], [{ type: "text", text: "{\"a\":1}" }]]),
    ...(random.chance(0.7) ? { structuredContent: random.pick([{}, { a: "a" }, { a: {} }, null, [], 1]) } : undefined),
    ...(random.chance(0.2) ? { isError: true } : undefined)
  }

/** The result of a request of the client. `taskId` is the task of the server. */
export const result = (
  random: Random.Random,
  revision: Revision.Revision,
  method: string,
  taskId: string
): Hostile.Anything => {
  const stateless = revision === "2026-07-28"
  const complete = (members: object) =>
    stateless
      ? { resultType: "complete", ttlMs: random.pick([0, 60_000, -1]), cacheScope: "private", ...members }
      : members
  if (method === "tools/list" && random.chance(0.8)) {
    const next = random.chance(0.2) ? { nextCursor: random.pick(["", "2", escapes]) } : undefined
    return complete({ tools: toolNames.map((name) => tool(random, name)), ...next })
  }
  if (["tools/call", "prompts/get", "resources/read"].includes(method) && stateless && random.chance(0.25)) {
    const inputRequests = {
      a: inputRequest(random, revision),
      [random.pick(["b", "__proto__", escapes])]: inputRequest(random, revision)
    }
    return { resultType: "input_required", inputRequests, requestState: random.pick(["s", escapes, ""]) }
  }
  if (method === "tools/call" && random.chance(0.4)) {
    const state = task(random, revision, taskId)
    return stateless ? { resultType: "task", ...state } : { task: state }
  }
  if (method === "tools/call" || method === "tasks/result") return complete(toolResult(random, revision))
  if (method.startsWith("tasks/") && method !== "tasks/list" && random.chance(0.9)) {
    return complete(task(random, revision, taskId))
  }
  const known = Method.request(method, revision)
  return known === undefined ? {} : written(random, known, revision, "result")
}
