/** The clauses of 2026-07-28, server/utilities/caching. */
import {
  Closed,
  ConnectionFailed,
  HttpError,
  InvalidResponse,
  LimitExceeded,
  Timeout,
  Unauthorized
} from "@skein/client/ClientError"
import { assert, describe, it } from "@effect/vitest"
import * as Method from "@skein/protocol/Method"
import type { ListToolsResult } from "@skein/protocol/Tool"
import * as Revision from "@skein/protocol/Revision"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/testing/TestClock"
import * as Client from "../../src/Client.ts"
import { ClientError, type Reason } from "../../src/ClientError.ts"
import type { RequestOptions } from "../../src/Client.ts"
import * as ScriptedServer from "@skein/testing/ScriptedServer"
import { cacheWith, client, counted, countOf, minute, now } from "./cached.ts"
import { fieldsOf } from "../support/fields.ts"

const gets: Readonly<
  Record<string, (client: Client.Client, options?: RequestOptions) => Effect.Effect<unknown, unknown>>
> = {
  "server/discover": (client, options) => client.request(Method.Discover, {}, options),
  "tools/list": (client, options) => client.listToolsPage(options),
  "prompts/list": (client, options) => client.listPromptsPage(options),
  "resources/list": (client, options) => client.listResourcesPage(options),
  "resources/templates/list": (client, options) => client.listResourceTemplatesPage(options),
  "resources/read": (client, options) => client.readResource("r:1", options)
}

describe("freshness", () => {
  for (const [method, get] of Object.entries(gets)) {
    it.effect(`2026-07-28 · ${method}: considered fresh while now < t_received + ttlMs, then SHOULD re-fetch on next access`, () =>
      Effect.gen(function*() {
        const { client: it } = yield* client(counted(minute))
        const first = yield* get(it)
        assert.strictEqual(countOf(first), 1)
        yield* TestClock.adjust(59_999)
        assert.deepStrictEqual(yield* get(it), first)
        yield* TestClock.adjust(1)
        assert.strictEqual(countOf(yield* get(it)), 2)
        assert.strictEqual(countOf(yield* get(it)), 2)
      }))
  }

  for (
    const [what, hints] of [["0", { ttlMs: 0 }], ["absent", {}], ["negative, SHOULD treat it as 0", {
      ttlMs: -5
    }]] as const
  ) {
    it.effect(`2026-07-28 · a ttlMs of ${what}: immediately stale`, () =>
      Effect.gen(function*() {
        const { client: it } = yield* client(counted({ cacheScope: "public", ...hints }))
        assert.strictEqual(countOf(yield* it.listToolsPage()), 1)
        assert.strictEqual(countOf(yield* it.listToolsPage()), 2)
      }))
  }

  it.effect("2026-07-28 · SHOULD NOT treat TTL as a polling interval: sends no request without a caller", () =>
    Effect.gen(function*() {
      const { client: it, server } = yield* client(counted(minute))
      yield* it.listToolsPage()
      yield* TestClock.adjust("2 hours")
      assert.strictEqual(server.requests("tools/list").length, 1)
    }))

  it.effect("maxTtl: bounds ttlMs, to 24 hours by default", () =>
    Effect.gen(function*() {
      const { client: long } = yield* client(counted({ ...minute, ttlMs: Number.MAX_SAFE_INTEGER }))
      const { client: short } = yield* client(counted(minute), { maxTtl: "1 second" })
      yield* long.listToolsPage()
      yield* short.listToolsPage()
      yield* TestClock.adjust(1_000)
      assert.strictEqual(countOf(yield* short.listToolsPage()), 2)
      yield* TestClock.adjust(24 * 3_600_000 - 1_001)
      assert.strictEqual(countOf(yield* long.listToolsPage()), 1)
      yield* TestClock.adjust(1)
      assert.strictEqual(countOf(yield* long.listToolsPage()), 2)
    }))

  for (const revision of Revision.all.filter((revision) => revision < "2026-07-28")) {
    it.effect(`${revision} · caches nothing, even if a server sends ttlMs, which the revision does not have`, () =>
      Effect.gen(function*() {
        const server = ScriptedServer.make(ScriptedServer.handshake(revision, counted(minute)))
        const it = yield* Client.make(server.transport)
        yield* it.listToolsPage()
        yield* it.listToolsPage()
        assert.strictEqual(server.requests("tools/list").length, 2)
      }))
  }
})

describe("the cache key", () => {
  it.effect("2026-07-28 · MUST NOT serve a cached response for a request whose method or parameters differ", () =>
    Effect.gen(function*() {
      const { client: it, server } = yield* client(counted(minute))
      for (let times = 0; times < 2; times++) {
        for (const cursor of [undefined, "", "a", "b"]) yield* it.listToolsPage({ cursor })
        for (const uri of ["r:1", "r:2"]) yield* it.readResource(uri)
        yield* it.listPromptsPage()
        yield* it.request(Method.ReadResource, { uri: "r:1", _meta: { "example.com/tenant": "a" } })
      }
      assert.strictEqual(server.requests("tools/list").length, 4)
      assert.strictEqual(server.requests("resources/read").length, 3)
      assert.strictEqual(server.requests("prompts/list").length, 1)
    }))

  it.effect("ignores the protocol's own fields in _meta of a request: progress and traces", () =>
    Effect.gen(function*() {
      const { client: it, server } = yield* client(counted(minute))
      yield* it.listToolsPage()
      yield* it.listToolsPage({ onProgress: () => {} })
      yield* it.request(Method.ListTools, {
        _meta: { traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01" }
      })
      yield* it.setLoggingLevel("error").pipe(Effect.ignore)
      yield* it.listToolsPage()
      assert.strictEqual(server.requests("tools/list").length, 1)
    }))

  it.effect("2026-07-28 · requests carrying inputResponses or requestState MUST NOT be cached, nor answered from the cache", () =>
    Effect.gen(function*() {
      const { client: it, server } = yield* client(counted(minute))
      yield* it.readResource("r:1")
      for (let times = 0; times < 2; times++) {
        yield* it.request(Method.ReadResource, { uri: "r:1", requestState: "s" })
        yield* it.request(Method.ReadResource, { uri: "r:1", inputResponses: {} })
      }
      assert.strictEqual(server.requests("resources/read").length, 5)
      yield* it.readResource("r:1")
      assert.strictEqual(server.requests("resources/read").length, 5)
    }))

  it.effect("2026-07-28 · results produced through multi round-trip requests MUST NOT be cached", () =>
    Effect.gen(function*() {
      const { client: it, server } = yield* client((request, server) =>
        request.params?.["requestState"] === undefined
          ? ScriptedServer.success({ resultType: "input_required", requestState: "s" })
          : counted(minute)(request, server)
      )
      yield* it.readResource("r:1")
      yield* it.readResource("r:1")
      assert.strictEqual(server.requests("resources/read").length, 4)
    }))
})

describe("notifications", () => {
  const kinds: ReadonlyArray<readonly [string, ReadonlyArray<string>]> = [
    ["tools", ["tools/list"]],
    ["prompts", ["prompts/list"]],
    ["resources", ["resources/list", "resources/templates/list"]]
  ]
  for (const [kind, listings] of kinds) {
    it.effect(`2026-07-28 · notifications/${kind}/list_changed invalidates the cached responses of its methods only`, () =>
      Effect.gen(function*() {
        const { client: it, server } = yield* client(counted(minute))
        for (const get of Object.values(gets)) yield* get(it)
        server.notify(`notifications/${kind}/list_changed`)
        yield* it.ping()
        const asked = server.received.length
        for (let times = 0; times < 2; times++) for (const get of Object.values(gets)) yield* get(it)
        assert.deepStrictEqual(server.methods.slice(asked).sort(), [...listings])
      }))
  }

  it.effect("2026-07-28 · notifications/resources/updated invalidates the resource and the resources that may contain it", () =>
    Effect.gen(function*() {
      const { client: it, server } = yield* client(counted(minute))
      const uris = ["file:///a/b", "file:///a/", "file:///a", "file:///b", "file:///a/b/c"]
      for (const uri of uris) yield* it.readResource(uri)
      yield* it.listResourcesPage()
      server.notify("notifications/resources/updated", { uri: "file:///a/b" })
      yield* it.ping()
      const asked = server.received.length
      for (const uri of uris) yield* it.readResource(uri)
      yield* it.listResourcesPage()
      const read = server.received.slice(asked).map((message) => "params" in message && message.params?.["uri"])
      assert.deepStrictEqual(read, ["file:///a/b", "file:///a/", "file:///a"])
    }))

  it.effect("2026-07-28 · notifications/subscriptions/acknowledged invalidates the covered entries, which may have changed before", () =>
    Effect.gen(function*() {
      const { client: it, server } = yield* client(counted(minute))
      const all = Effect.forEach(Object.values(gets), (get) => get(it))
      for (
        const [notifications, asked] of [
          [{ toolsListChanged: true }, ["tools/list"]],
          [{ promptsListChanged: true, resourcesListChanged: false }, ["prompts/list"]],
          [{ resourcesListChanged: true }, ["resources/list", "resources/templates/list"]],
          [{ resourceSubscriptions: ["r:1", 7] }, ["resources/read"]],
          [{}, []],
          [undefined, []]
        ] as const
      ) {
        yield* all
        server.notify("notifications/subscriptions/acknowledged", notifications === undefined ? {} : { notifications })
        yield* it.ping()
        const before = server.received.length
        yield* all
        assert.deepStrictEqual(server.methods.slice(before), [...asked])
      }
    }))

  it.effect("prevent the caching of a response in flight, which may be older", () =>
    Effect.gen(function*() {
      const { client: it, server } = yield* client(() => "no response")
      const asking = yield* Effect.forkChild(it.listToolsPage(), { startImmediately: true })
      while (server.requests("tools/list").length === 0) yield* Effect.yieldNow
      server.notify("notifications/tools/list_changed")
      const [{ id }] = server.requests("tools/list") as [{ readonly id: number }, ...ReadonlyArray<unknown>]
      server.send({ _tag: "Success", id, result: { resultType: "complete", tools: [], ...minute } })
      yield* Fiber.join(asking)
      const again = yield* Effect.forkChild(it.listToolsPage(), { startImmediately: true })
      while (server.requests("tools/list").length === 1) yield* Effect.yieldNow
      yield* Fiber.interrupt(again)
    }))

  it.effect("clearCache removes all entries of the server", () =>
    Effect.gen(function*() {
      const { client: it, server } = yield* client(counted(minute))
      for (const get of Object.values(gets)) yield* get(it)
      yield* it.clearCache
      const asked = server.received.length
      for (const get of Object.values(gets)) yield* get(it)
      assert.strictEqual(server.received.length - asked, Object.keys(gets).length)
    }))
})

describe("pages", () => {
  it.effect("2026-07-28 · the freshness clock for each page starts at the time that page was received", () =>
    Effect.gen(function*() {
      const { client: it, server } = yield* client(counted(minute))
      yield* it.listToolsPage()
      yield* TestClock.adjust(30_000)
      yield* it.listToolsPage({ cursor: "b" })
      yield* TestClock.adjust(30_000)
      yield* it.listToolsPage({ cursor: "b" })
      assert.strictEqual(server.requests("tools/list").length, 2)
      yield* it.listToolsPage()
      assert.strictEqual(server.requests("tools/list").length, 3)
    }))

  it.effect("2026-07-28 · a cursor that becomes invalid: SHOULD discard all cached pages and re-fetch from the beginning", () =>
    Effect.gen(function*() {
      let generation = 1
      const { client: it, server } = yield* client(({ params }) => {
        const cursor = params?.["cursor"]
        const hints = { resultType: "complete", ...minute }
        const tool = (name: string) => ({ name, inputSchema: { type: "object" } })
        if (cursor === undefined) {
          return ScriptedServer.success({ ...hints, tools: [tool(`a${generation}`)], nextCursor: `${generation}` })
        }
        if (cursor !== `${generation}`) return ScriptedServer.failure(-32602, "Unknown cursor")
        return ScriptedServer.success({ ...hints, tools: [tool(`b${generation}`)], ttlMs: 1_000 })
      })
      const names = Effect.map(it.listTools(), (tools) => tools.map(({ name }) => name))
      assert.deepStrictEqual(yield* names, ["a1", "b1"])
      yield* TestClock.adjust(2_000)
      generation = 2
      // The first page is fresh, and its cursor is no longer valid.
      assert.deepStrictEqual(yield* names, ["a2", "b2"])
      assert.strictEqual(server.requests("tools/list").length, 5)
    }))

  it.effect("fetches all pages again with refresh, and caches them", () =>
    Effect.gen(function*() {
      const { client: it, server } = yield* client(({ params }) =>
        ScriptedServer.success({
          resultType: "complete",
          tools: [],
          ...minute,
          ...(params?.["cursor"] === undefined ? { nextCursor: "b" } : {})
        })
      )
      const asked = () => server.requests("tools/list").length
      yield* it.listTools()
      yield* it.listTools()
      assert.strictEqual(asked(), 2)
      yield* TestClock.adjust(50_000)
      yield* it.listTools({ cache: "refresh" })
      assert.strictEqual(asked(), 4)
      yield* TestClock.adjust(50_000)
      yield* it.listTools()
      assert.strictEqual(asked(), 4)
    }))

  it.effect("fails if the cursor is invalid again after one restart", () =>
    Effect.gen(function*() {
      const { client: it, server } = yield* client(({ params }) =>
        params?.["cursor"] === undefined
          ? ScriptedServer.success({ resultType: "complete", tools: [], nextCursor: "x", ...minute })
          : ScriptedServer.failure(-32602, "Unknown cursor")
      )
      const error = yield* Effect.flip(it.listTools())
      assert.strictEqual(fieldsOf(error).error?.reason, "InvalidParams")
      assert.strictEqual(server.requests("tools/list").length, 4)
    }))
})

describe("the cache option of a call", () => {
  it.effect("refresh requests and caches a response; bypass requests one and leaves the cached one", () =>
    Effect.gen(function*() {
      const { client: it } = yield* client(counted(minute))
      assert.strictEqual(countOf(yield* it.listToolsPage()), 1)
      assert.strictEqual(countOf(yield* it.listToolsPage({ cache: "bypass" })), 2)
      assert.strictEqual(countOf(yield* it.listToolsPage({ cache: "use" })), 1)
      assert.strictEqual(countOf(yield* it.listToolsPage({ cache: "refresh" })), 3)
      assert.strictEqual(countOf(yield* it.listToolsPage()), 3)
    }))

  it.effect("refresh removes the cached response if the new one has ttlMs 0 or is an error", () =>
    Effect.gen(function*() {
      let answer: "kept" | "stale" | "gone" = "kept"
      const { client: it, server } = yield* client(() =>
        answer === "gone"
          ? ScriptedServer.failure(-32602, "Resource not found", { uri: "r:1" })
          : now({ contents: [], ...(answer === "kept" ? minute : {}) })
      )
      for (const next of ["stale", "gone"] as const) {
        answer = "kept"
        yield* it.readResource("r:1", { cache: "refresh" })
        answer = next
        yield* Effect.ignore(it.readResource("r:1", { cache: "refresh" }))
        const asked = server.received.length
        yield* Effect.ignore(it.readResource("r:1"))
        assert.strictEqual(server.received.length, asked + 1, next)
      }
    }))

  it.effect("ping always sends a request and caches nothing", () =>
    Effect.gen(function*() {
      const { client: it, server } = yield* client(counted(minute))
      yield* it.request(Method.Discover, {})
      const asked = server.requests("server/discover").length
      yield* it.ping()
      yield* it.ping()
      assert.strictEqual(server.requests("server/discover").length, asked + 2)
    }))

  it.effect("cache: false on the client caches nothing", () =>
    Effect.gen(function*() {
      const { client: it } = yield* client(counted(minute), false)
      assert.strictEqual(countOf(yield* it.listToolsPage()), 1)
      assert.strictEqual(countOf(yield* it.listToolsPage()), 2)
      yield* it.clearCache
    }))

  it.effect("returns an independent copy to each caller", () =>
    Effect.gen(function*() {
      const { client: it } = yield* client(counted(minute))
      for (let times = 0; times < 3; times++) {
        const { tools } = yield* it.listToolsPage()
        assert.deepStrictEqual(tools, [{ name: "t", inputSchema: { type: "object" } }])
        const spoiled = tools as Array<{ name: string; inputSchema: { type: string } }>
        spoiled[0]!.inputSchema.type = "nonsense"
        spoiled.pop()
      }
    }))
})

describe("staleIfError", () => {
  const outage = () => {
    let up = true
    const fresh = counted(minute)
    return {
      script: ((request, server) => up ? fresh(request, server) : "no response") as typeof fresh,
      begin: () => void (up = false),
      end: () => void (up = true)
    }
  }
  const failing = (it: Client.Client, options?: RequestOptions) =>
    Effect.gen(function*() {
      const asking = yield* Effect.forkChild(Effect.exit(it.listToolsPage(options)), { startImmediately: true })
      yield* TestClock.adjust("60 seconds")
      return yield* Effect.flatten(Fiber.join(asking))
    })

  it.effect("2026-07-28 · MAY serve stale responses if errors occur during re-fetching: does not by default", () =>
    Effect.gen(function*() {
      const { begin, script } = outage()
      const { client: it } = yield* client(script)
      yield* it.listToolsPage()
      begin()
      yield* TestClock.adjust(60_000)
      assert.strictEqual((yield* Effect.flip(failing(it))).reason._tag, "Timeout")
    }))

  it.effect("serves stale responses during an outage for its duration, but not for refresh, and not invalidated ones", () =>
    Effect.gen(function*() {
      const { begin, end, script } = outage()
      const { client: it, server } = yield* client(script, { staleIfError: "5 minutes" })
      yield* it.listToolsPage()
      begin()
      yield* TestClock.adjust(60_000)
      assert.strictEqual(countOf(yield* failing(it)), 1)
      assert.strictEqual((yield* Effect.flip(failing(it, { cache: "refresh" }))).reason._tag, "Timeout")
      assert.strictEqual(countOf(yield* failing(it)), 1)
      yield* TestClock.adjust("5 minutes")
      assert.strictEqual((yield* Effect.flip(failing(it))).reason._tag, "Timeout")
      end()
      yield* it.listToolsPage()
      begin()
      yield* TestClock.adjust(60_000)
      server.notify("notifications/tools/list_changed")
      assert.strictEqual((yield* Effect.flip(failing(it))).reason._tag, "Timeout")
    }))

  it.effect("applies to Closed, Timeout, ConnectionFailed and HttpError with status 500 or more", () =>
    Effect.gen(function*() {
      const cache = yield* cacheWith({ staleIfError: "1 minute" })
      const result = { tools: [], ...minute } as ListToolsResult
      yield* cache.through(Method.ListTools, {}, "use", Effect.succeed({ result, keep: true }), (page) => page)
      yield* TestClock.adjust(60_000)
      const failing = (reason: Reason) =>
        cache.through(
          Method.ListTools,
          {},
          "use",
          Effect.fail(new ClientError({ reason })),
          (page) => page
        )
      const message = "no"
      for (const Outage of [Closed, Timeout, ConnectionFailed, HttpError]) {
        assert.deepStrictEqual((yield* failing(new Outage({ message }))).tools, [])
      }
      assert.deepStrictEqual((yield* failing(new HttpError({ message, status: 503 }))).tools, [])
      for (
        const reason of [
          new HttpError({ message, status: 404 }),
          new Unauthorized({ message, status: 401 }),
          new InvalidResponse({ message }),
          new LimitExceeded({ message })
        ]
      ) {
        assert.strictEqual((yield* Effect.flip(failing(reason))).reason, reason)
      }
    }))

  it.effect("does not apply to an error response of the server", () =>
    Effect.gen(function*() {
      let up = true
      const fresh = counted(minute)
      const { client: it } = yield* client(
        (request, server) => up ? fresh(request, server) : ScriptedServer.failure(-32603, "no"),
        { staleIfError: "5 minutes" }
      )
      yield* it.listToolsPage()
      up = false
      yield* TestClock.adjust(60_000)
      assert.strictEqual((yield* Effect.flip(it.listToolsPage())).reason._tag, "ProtocolError")
    }))
})
