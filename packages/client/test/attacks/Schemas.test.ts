/** Schemas of a hostile server. Tool results and form input are checked against them in bounded time. */
import { assert, describe, it } from "@effect/vitest"
import * as ScriptedServer from "@skein/testing/ScriptedServer"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Client from "../../src/Client.ts"
import * as Elicitation from "../../src/Elicitation.ts"
import { connect } from "../input/kit.ts"
import { until } from "../http/support/connection.ts"
import { type Json, result } from "./kit.ts"
import { withCpuTime } from "../support/cpuTime.ts"

const nested = (depth: number, wrap: (inner: Json) => Json, inner: Json = { type: "string" }): Json => {
  let schema = inner
  for (let at = 0; at < depth; at++) schema = wrap(schema)
  return schema
}

const many = <A>(count: number, of: (at: number) => A): ReadonlyArray<A> =>
  Array.from({ length: count }, (_, at) => of(at))

const patterns = [
  "^(a+)+$",
  "^(a|a)*$",
  "^(a|aa)+$",
  "(.*.*.*.*.*)x$",
  "^(([a-z])+.)+[A-Z]([a-z])+$",
  "(a?){50}a{50}",
  "^(\\w+\\s?)*$",
  "(?=(a+))*b",
  "^(?:a{0,1000}){0,1000}$",
  "a{1000000000}",
  "(".repeat(5_000) + ")".repeat(5_000),
  "[",
  "(?<=a+)b",
  "\\p{L}{1,999}",
  "(x+x+)+y",
  "^" + "a".repeat(200_000) + "$",
  "a".repeat(100_000) + "b",
  "^a*a{30000}b",
  "^" + "\\p{L}".repeat(20_000) + "$"
]

const bombs: ReadonlyArray<readonly [name: string, schema: Json, value: Json]> = [
  ...patterns.map((pattern) =>
    [`pattern ${pattern.slice(0, 32)}`, { type: "object", properties: { a: { type: "string", pattern } } }, {
      a: "a".repeat(50_000) + "!"
    }] as const
  ),
  [
    "many patterns of many letters",
    { type: "object", properties: { a: { allOf: many(5_000, (at) => ({ pattern: `[\\p{L}\\p{N}_:${at}]` })) } } },
    { a: "!" }
  ],
  ["patternProperties", {
    type: "object",
    patternProperties: Object.fromEntries(patterns.map((pattern) => [pattern, false]))
  }, Object.fromEntries(many(200, (at) => ["a".repeat(200) + at, 1]))],
  ["uniqueItems of 20,000 objects", { type: "object", properties: { a: { type: "array", uniqueItems: true } } }, {
    a: many(20_000, (at) => ({ x: 1, y: [at] }))
  }],
  ["uniqueItems of equal hashes", { type: "object", properties: { a: { type: "array", uniqueItems: true } } }, {
    a: many(3_000, (at) => nested(30, (x) => [x], at))
  }],
  ["4 MiB of {}", {
    type: "object",
    properties: { a: { type: "array", items: { anyOf: many(50, () => ({ type: "string" })) } } }
  }, { a: many(1_300_000, () => ({})) }],
  ["anyOf to the power", { type: "object", properties: { a: nested(12, (x) => ({ anyOf: [x, x] })) } }, { a: 1 }],
  ["allOf to the power of a $ref", {
    type: "object",
    $defs: Object.fromEntries(
      many(40, (at) => {
        const next = at === 39 ? { type: "string" } : { $ref: `#/$defs/d${at + 1}` }
        return [`d${at}`, { allOf: [next, next] }]
      })
    ),
    properties: { a: { $ref: "#/$defs/d0" } }
  }, { a: 1 }],
  ["a $ref to itself", { type: "object", properties: { a: { $ref: "#/properties/a" } } }, { a: 1 }],
  ["a $ref to the root, in a loop", { $ref: "#", type: "object" }, { a: 1 }],
  ["$dynamicRef loops", { type: "object", $dynamicAnchor: "a", allOf: [{ $dynamicRef: "#a" }] }, { a: 1 }],
  ["a $ref elsewhere", { type: "object", properties: { a: { $ref: "http://127.0.0.1:1/schema" } } }, { a: 1 }],
  ["a $ref to a file", { type: "object", properties: { a: { $ref: "file:///etc/passwd" } } }, { a: 1 }],
  ["oneOf of 100,000", { type: "object", properties: { a: { oneOf: many(100_000, (at) => ({ const: at })) } } }, {
    a: -1
  }],
  ["enum of 100,000 objects", {
    type: "object",
    properties: { a: { type: "array", items: { enum: many(100_000, (at) => ({ at })) } } }
  }, { a: many(10_000, () => ({ at: -1 })) }],
  ["required of 200,000", { type: "object", required: many(200_000, (at) => `r${at}`) }, {}],
  ["dependentRequired", { type: "object", dependentRequired: { a: many(200_000, (at) => `r${at}`) } }, { a: 1 }],
  ["multipleOf", { type: "object", properties: { a: { multipleOf: 1e-308 } } }, { a: 1e308 }],
  ["lengths of surrogates", { type: "object", properties: { a: { type: "string", maxLength: 3 } } }, {
    a: "😀".repeat(1_000_000)
  }],
  [
    "names of prototypes",
    JSON.parse(
      "{\"type\":\"object\",\"properties\":{\"__proto__\":{\"type\":\"string\"},\"constructor\":{\"type\":\"string\"}},\"additionalProperties\":false,\"required\":[\"toString\"],\"dependentRequired\":{\"__proto__\":[\"valueOf\"]}}"
    ),
    JSON.parse("{\"__proto__\":{\"polluted\":1},\"constructor\":1}")
  ],
  [
    "unevaluatedProperties",
    nested(30, (x) => ({ allOf: [x, { properties: { a: {} } }], unevaluatedProperties: false })),
    { b: 1 }
  ]
]

describe("the outputSchema of a tool", () => {
  for (const revision of ["2025-11-25", "2026-07-28"] as const) {
    for (const [name, schema, value] of bombs) {
      it.live(`${revision} · ${name}: returns a result or an error quickly`, () =>
        Effect.gen(function*() {
          const server = ScriptedServer.make(
            ScriptedServer.handshake(revision, ({ id, method }: Json, { sendText }: ScriptedServer.ScriptedServer) =>
              sendText(result(
                id,
                JSON.stringify({
                  resultType: "complete",
                  ttlMs: 0,
                  cacheScope: "private",
                  ...(method === "tools/list"
                    ? { tools: [{ name: "t", inputSchema: schema, outputSchema: schema }] }
                    : { content: [], structuredContent: value })
                })
              )))
          )
          const client = yield* Client.make(server.transport)
          const [, listing] = yield* withCpuTime(Effect.result(client.listTools()))
          const [called, calling] = yield* withCpuTime(Effect.result(client.callTool("t", {})))
          if (called._tag === "Failure") {
            assert.strictEqual(called.failure.reason._tag, "InvalidResponse")
          }
          assert.isBelow(listing, 10_000)
          assert.isBelow(calling, 10_000)
          assert.isUndefined((Object.prototype as Json).polluted)
        }).pipe(Effect.scoped))
    }
  }
})

describe("a validation that takes long", () => {
  const schema = { type: "object", properties: { a: { items: { allOf: many(200, () => ({ minimum: 0 })) } } } }
  const content = { a: many(500_000, (at) => at % 7) }
  const connected = Effect.gen(function*() {
    const server = ScriptedServer.make(
      ScriptedServer.handshake(
        "2025-11-25",
        ({ id, method }: Json, { sendText }: ScriptedServer.ScriptedServer) =>
          sendText(result(
            id,
            JSON.stringify(
              method === "tools/list"
                ? { tools: [{ name: "t", inputSchema: { type: "object" }, outputSchema: schema }] }
                : { content: [], structuredContent: content }
            )
          ))
      )
    )
    const client = yield* Client.make(server.transport)
    yield* client.listTools()
    return client
  })

  it.live("yields to timers", () =>
    Effect.gen(function*() {
      const client = yield* connected
      let fired = 0
      const timer = yield* Effect.forkChild(Effect.forever(Effect.delay(Effect.sync(() => fired++), 1)))
      const { reason } = yield* Effect.flip(client.callTool("t", {}))
      yield* Fiber.interrupt(timer)
      assert.strictEqual(reason._tag, "InvalidResponse")
      assert.isAbove(fired, 20)
    }).pipe(Effect.scoped))

  it.live("ends when the call is interrupted", () =>
    Effect.gen(function*() {
      const client = yield* connected
      let fired = 0
      const call = yield* Effect.forkChild(client.callTool("t", {}))
      // The validation has started when the timers of the client fire between its parts.
      for (; fired < 3; fired++) yield* Effect.sleep(1)
      yield* Fiber.interrupt(call)
      const [, took] = yield* withCpuTime(Effect.sleep(200))
      assert.isBelow(took, 100)
    }).pipe(Effect.scoped))
})

describe("the requestedSchema of a form", () => {
  const fields: ReadonlyArray<readonly [string, Json]> = [
    ...patterns.map((pattern) =>
      [pattern.slice(0, 32), { type: "string", pattern, default: "a".repeat(50_000) + "!" }] as const
    ),
    ["enum of many", { type: "string", enum: many(100_000, String), default: "x" }],
    ["oneOf of many", {
      type: "string",
      oneOf: many(50_000, (at) => ({ const: String(at), title: "t" })),
      default: "x"
    }],
    ["a default of many", {
      type: "array",
      items: { type: "string", enum: ["a"] },
      uniqueItems: true,
      default: many(100_000, () => "a")
    }],
    ["a format", { type: "string", format: "email", default: "@".repeat(100_000) }],
    ["a uri", { type: "string", format: "uri", default: "a:" + "/".repeat(1_000_000) }]
  ]
  /** Requests a form with these fields. It is presented or refused within five seconds of CPU time. */
  const soon = (properties: object) =>
    Effect.gen(function*() {
      const server = ScriptedServer.make(ScriptedServer.handshake("2025-11-25", () => "no response"))
      const host = Elicitation.layer({ form: () => Effect.succeed(Elicitation.accept({})) })
      yield* connect(server.transport, host, { revisions: ["2025-11-25"] })
      const params = { message: "m", requestedSchema: { type: "object", properties } }
      const [, took] = yield* withCpuTime(Effect.suspend(() => {
        server.sendText(JSON.stringify({ jsonrpc: "2.0", id: "e", method: "elicitation/create", params }))
        return until(() => server.responses.some(({ id }) => id === "e"))
      }))
      assert.isBelow(took, 5_000)
    }).pipe(Effect.scoped)

  for (const [name, field] of fields) {
    it.live(`2025-11-25 · ${name}: presents or refuses the form quickly`, () =>
      soon(Object.fromEntries(many(5, (at) => [`f${at}`, field]))))
  }

  it.live("2025-11-25 · bounds the total time of many slow fields", () => {
    const field = { type: "string", pattern: "^(?:a?){900}$", default: "a".repeat(6_000) + "!" }
    return soon(Object.fromEntries(many(300, (at) => [`f${at}`, field])))
  })

  it.live("2025-11-25 · treats fields with the names of prototypes like other fields", () =>
    Effect.gen(function*() {
      const server = ScriptedServer.make(ScriptedServer.handshake("2025-11-25", () => "no response"))
      const host = Elicitation.layer({ form: ({ defaults }) => Effect.succeed(Elicitation.accept(defaults)) })
      yield* connect(server.transport, host, { revisions: ["2025-11-25"] })
      server.sendText(
        `{"jsonrpc":"2.0","id":"e","method":"elicitation/create","params":{"message":"m","requestedSchema":{"type":"object","required":["__proto__"],"properties":{"__proto__":{"type":"string","default":"p"},"constructor":{"type":"string"},"toString":{"type":"number","default":1}}}}}`
      )
      yield* until(() => server.responses.some(({ id }) => id === "e"))
      const { result } = server.responses.find(({ id }) => id === "e") as Json
      assert.deepEqual(Object.entries(result.content), [["__proto__", "p"], ["toString", 1]])
    }).pipe(Effect.scoped))
})
