/** A cache under attack, by cache hints and change notifications of a server and by a store with malformed entries. */
import { assert, describe, it } from "@effect/vitest"
import * as ScriptedServer from "@skein/testing/ScriptedServer"
import * as Effect from "effect/Effect"
import * as Client from "../../src/Client.ts"
import * as ResponseCache from "../../src/ResponseCache.ts"
import * as TestClock from "effect/testing/TestClock"
import { type Json, result } from "./kit.ts"
import { withCpuTime } from "../support/cpuTime.ts"

const tools = (hints: string, name: string) =>
  `{"resultType":"complete",${hints}"tools":[{"name":${JSON.stringify(name)},"inputSchema":{"type":"object"}}]}`

const lists = (hints: () => string) => {
  let count = 0
  return ScriptedServer.make(
    ScriptedServer.handshake(
      "2026-07-28",
      ({ id, method }: Json, { sendText }: ScriptedServer.ScriptedServer) =>
        sendText(result(
          id,
          method === "resources/read"
            ? `{"resultType":"complete","ttlMs":60000,"cacheScope":"private","contents":[]}`
            : tools(hints(), `t${++count}`)
        ))
    )
  )
}

const named = (client: Client.Client) => Effect.map(client.listToolsPage(), ({ tools }) => tools[0]!.name)

describe("2026-07-28 · a cache under attack", () => {
  for (
    const [hints, kept] of [
      ["\"ttlMs\":1e308,\"cacheScope\":\"private\",", false],
      ["\"ttlMs\":9007199254740991,\"cacheScope\":\"private\",", true],
      ["\"ttlMs\":1e999,\"cacheScope\":\"private\",", false],
      ["\"ttlMs\":-1,\"cacheScope\":\"private\",", false],
      ["\"ttlMs\":-1e308,\"cacheScope\":\"public\",", false],
      ["\"ttlMs\":0.5,\"cacheScope\":\"private\",", false],
      ["\"ttlMs\":\"60000\",\"cacheScope\":\"private\",", false],
      ["\"ttlMs\":null,\"cacheScope\":null,", false],
      ["\"ttlMs\":{},\"cacheScope\":[],", false],
      ["\"ttlMs\":60000,\"cacheScope\":\"everybody\",", true],
      ["\"ttlMs\":60000,\"cacheScope\":\"__proto__\",", true],
      ["", false]
    ] as const
  ) {
    it.effect(`with ${hints || "nothing"} returns the list, and never stores it for longer than maxTtl`, () =>
      Effect.gen(function*() {
        const server = lists(() => hints)
        const client = yield* Client.make(server.transport)
        assert.strictEqual(yield* named(client), "t1")
        const again = yield* named(client)
        assert.strictEqual(again === "t1", kept)
        yield* TestClock.adjust("25 hours")
        assert.notStrictEqual(yield* named(client), again === "t1" ? "t1" : again)
      }))
  }

  const garbage: ReadonlyArray<unknown> = [
    null,
    0,
    "x",
    [],
    {},
    { text: null, receivedAt: 0, ttlMs: 1e9 },
    { text: "", receivedAt: 0, ttlMs: 1e9 },
    { text: "null", receivedAt: 0, ttlMs: 1e9 },
    { text: "[]", receivedAt: 0, ttlMs: 1e9 },
    { text: "{}", receivedAt: 0, ttlMs: 1e9 },
    { text: "{\"tools\":null}", receivedAt: 0, ttlMs: 1e9 },
    { text: "[".repeat(100_000), receivedAt: 0, ttlMs: 1e9 },
    { text: `{"tools":${"[".repeat(50_000)}${"]".repeat(50_000)}}`, receivedAt: 0, ttlMs: 1e9 },
    { text: tools("", "evil"), receivedAt: Number.NaN, ttlMs: 1e9 },
    { text: tools("", "evil"), receivedAt: 1e300, ttlMs: 1e9 },
    { text: tools("", "evil"), receivedAt: -1e300, ttlMs: 1e9 },
    { text: tools("", "evil"), receivedAt: 0, ttlMs: Number.NaN },
    { text: tools("", "evil"), receivedAt: 0, ttlMs: "1e9" },
    { text: tools("", "evil"), receivedAt: "0", ttlMs: 1e9 },
    { text: tools("", "evil"), receivedAt: 0n, ttlMs: 1n }
  ]

  garbage.forEach((entry, at) => {
    it.effect(`ignores malformed entries of a shared store (${at})`, () =>
      Effect.gen(function*() {
        yield* TestClock.adjust("1 hour")
        const store: ResponseCache.Store = {
          get: () => Effect.succeed(entry as ResponseCache.Entry),
          set: () => Effect.void,
          invalidate: () => Effect.void
        }
        const server = lists(() => "\"ttlMs\":60000,\"cacheScope\":\"public\",")
        const client = yield* Client.make(server.transport, { cache: { store, server: "s", partition: "p" } })
        assert.strictEqual(yield* named(client), "t1")
      }))
  })

  it.effect("completes calls when a store throws, or returns a value that is not an effect", () =>
    Effect.gen(function*() {
      for (
        const bad of [
          () => undefined,
          () => {
            throw new Error("x")
          },
          () => Effect.die("x"),
          () => Effect.fail("x"),
          () => Effect.interrupt
        ]
      ) {
        const store = { get: bad, set: bad, invalidate: bad } as unknown as ResponseCache.Store
        const server = lists(() => "\"ttlMs\":60000,\"cacheScope\":\"public\",")
        const client = yield* Client.make(server.transport, { cache: { store, server: "s", partition: "p" } })
        assert.strictEqual(yield* named(client), "t1")
        server.sendText(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
        assert.strictEqual(yield* named(client), "t2")
      }
    }))

  it.effect("MUST NOT be shared: does not return private results, or results with an unknown scope, to other callers", () =>
    Effect.gen(function*() {
      for (const scope of ["private", "Public", "", "public "]) {
        const store = ResponseCache.make()
        const server = lists(() => `"ttlMs":60000,"cacheScope":${JSON.stringify(scope)},`)
        const of = (partition: string | undefined) =>
          Effect.flatMap(
            Client.make(server.transport, { cache: { store, server: "s", partition } }),
            (client) => Effect.result(named(client))
          )
        const seen = [yield* of("a"), yield* of("b"), yield* of(undefined), yield* of("a\u0000"), yield* of("")]
        const names = seen.flatMap((got) => got._tag === "Success" ? [got.success] : [])
        assert.strictEqual(new Set(names).size, names.length, scope)
      }
    }))

  it.live(
    "handles notifications with huge uris, or with very many, at low cost",
    () =>
      Effect.gen(function*() {
        const server = lists(() => "\"ttlMs\":60000,\"cacheScope\":\"private\",")
        const client = yield* Client.make(server.transport)
        yield* Effect.forEach(
          Array.from({ length: 1_000 }, (_, at) => at),
          (at) => client.readResource(`file:///${at}`)
        )
        assert.strictEqual(server.requests("resources/read").length, 1_000)
        const slashes = `file:///${"a/".repeat(1_000_000)}`
        const uris = Array.from({ length: 200_000 }, (_, at) => `"file:///x/${at}"`).join()
        globalThis.gc!()
        const before = process.memoryUsage().rss
        const [, took] = yield* withCpuTime(Effect.suspend(() => {
          for (let at = 0; at < 5; at++) {
            server.sendText(
              `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"${slashes}"}}`
            )
          }
          server.sendText(
            `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{"resourceSubscriptions":[${uris}]}}}`
          )
          return Effect.asVoid(client.listToolsPage({ cache: "bypass" }))
        }))
        assert.isBelow(took, 10_000)
        assert.isBelow(process.memoryUsage().rss - before, 256 * 1024 * 1024)
      }),
    60_000
  )
})
