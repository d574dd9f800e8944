/**
 * A server profile that the host stores and passes to a later client: the requests that it saves, and the behaviour
 * when it is out of date.
 */
import { assert, describe, it } from "@effect/vitest"
import * as RawServer from "@skein/testing/RawServer"
import * as ScriptedHttpServer from "@skein/testing/ScriptedHttpServer"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Logger from "effect/Logger"
import * as TestClock from "effect/testing/TestClock"
import * as Client from "../../src/Client.ts"
import type { ServerProfile } from "../../src/ServerProfile.ts"
import * as NodeHttp from "../../src/NodeHttp.ts"
import { patient } from "./support/patient.ts"
import * as ScriptedServer from "@skein/testing/ScriptedServer"
import { type Exchange, type Json, until } from "./support/connection.ts"
import * as Servers from "./support/servers.ts"
import { fieldsOf } from "../support/fields.ts"

const { asked, capabilities, serverInfo } = Servers

const discover = "POST server/discover"
const initialize = "POST initialize"
const call = "POST tools/call"

const kept = (revision: ServerProfile["revision"], variant?: string): ServerProfile => ({
  revision,
  capabilities,
  httpMode: variant
})
const open = (url: URL, serverProfile: unknown, options: Client.Options = {}) =>
  Client.make(NodeHttp.transport({ url }), { ...options, serverProfile: serverProfile as ServerProfile })

const text = (client: Client.Client) =>
  Effect.map(client.callTool("echo", {}), ({ content }) => (content[0] as { readonly text: string }).text)

/** Serializes and parses a profile, like a host that stores it in a file. */
const stored = (value: unknown): unknown => JSON.parse(JSON.stringify(value))

describe("a stored server profile", () => {
  for (
    const [name, script, first, again] of [
      ["stateless revision: sends nothing before the first call", Servers.modern, [discover], []],
      [
        "sessions: starts with `initialize`",
        Servers.stateless(true),
        [discover, initialize],
        [initialize]
      ],
      [
        "HTTP+SSE: starts with the GET for its stream",
        Servers.sseOnly(),
        [discover, initialize, "GET", initialize],
        ["GET", initialize]
      ]
    ] as ReadonlyArray<readonly [string, Servers.Script, Array<string>, Array<string>]>
  ) {
    it.live(`2026-07-28 · Clients MAY persist the result across restarts · ${name}`, () =>
      Effect.gen(function*() {
        const { exchanges, url } = yield* ScriptedHttpServer.make<Json>(script)
        const posts = () =>
          asked(exchanges).filter((what) => what !== "POST notifications/initialized" && what !== "DELETE")
        const before = yield* Effect.scoped(Effect.gen(function*() {
          const client = yield* open(url, undefined)
          assert.deepStrictEqual(posts().slice(0, first.length), first)
          return stored(client.serverProfile)
        }))
        assert.deepInclude(before, { info: serverInfo, capabilities, instructions: "Read the script." })
        const count = exchanges.length
        const client = yield* open(url, before)
        assert.deepStrictEqual(asked(exchanges.slice(count)).filter((what) => what === discover), [])
        assert.deepStrictEqual(
          posts().slice(first.length).filter((what) => what !== "GET" || again[0] === "GET"),
          again
        )
        assert.deepStrictEqual(stored(client.serverProfile), before)
        assert.deepStrictEqual(client.server, serverInfo)
        assert.strictEqual(client.instructions, "Read the script.")
        assert.strictEqual(yield* text(client), "echo")
      }))
  }

  it.live("makes `initialize` request the revision that was negotiated before", () =>
    Effect.gen(function*() {
      const { exchanges, url } = yield* ScriptedHttpServer.make<Json>(Servers.stateful)
      yield* open(url, kept("2025-06-18", "streamable"))
      assert.strictEqual(exchanges[0]!.json.params.protocolVersion, "2025-06-18")
    }))

  it.live("skips the probe on stdio and in memory too", () =>
    Effect.gen(function*() {
      const session = ScriptedServer.make(ScriptedServer.handshake("2025-03-26"))
      const client = yield* Client.make(session.transport, { serverProfile: kept("2025-03-26") })
      yield* client.ping()
      assert.deepStrictEqual(session.methods, ["initialize", "notifications/initialized", "ping"])
      const request = ScriptedServer.make(ScriptedServer.handshake("2026-07-28"))
      assert.strictEqual(
        (yield* Client.make(request.transport, { serverProfile: kept("2026-07-28") })).era,
        "stateless"
      )
      assert.deepStrictEqual(request.methods, [])
    }))
})

describe("a profile of a session-based revision", () => {
  const day = 24 * 3_600_000

  /** A server that learns the stateless revision. */
  const upgraded = () => {
    const session = ScriptedServer.handshake("2025-11-25")
    const stateless = ScriptedServer.handshake("2026-07-28")
    const state = { isNew: false }
    const server = ScriptedServer.make((request, server) =>
      (state.isNew && request.method !== "initialize" ? stateless : session)(request, server)
    )
    return { server, state }
  }

  it.effect("expires 24 hours after the probe that led to it, whether it was used meanwhile or not", () =>
    Effect.gen(function*() {
      const { server, state } = upgraded()
      const use = (serverProfile: unknown) =>
        Effect.scoped(Effect.map(
          Client.make(server.transport, { serverProfile: serverProfile as ServerProfile }),
          (client) => [client.revision, stored(client.serverProfile)] as const
        ))
      const [first, before] = yield* use(undefined)
      assert.strictEqual(first, "2025-11-25")
      state.isNew = true
      yield* TestClock.adjust(day)
      const [second, after] = yield* use(before)
      assert.deepStrictEqual([second, after], ["2025-11-25", before])
      yield* TestClock.adjust(1)
      assert.strictEqual((yield* use(after))[0], "2026-07-28")
    }))

  it.effect("counts from its first use if it has no time, or one in the future", () =>
    Effect.gen(function*() {
      const { server } = upgraded()
      yield* TestClock.adjust(day)
      for (const negotiatedAt of [undefined, 10 * day, "x"]) {
        const serverProfile = { ...kept("2025-11-25"), negotiatedAt } as ServerProfile
        const client = yield* Client.make(server.transport, { serverProfile })
        assert.strictEqual(client.serverProfile?.negotiatedAt, day)
      }
      assert.notInclude(server.methods, "server/discover")
    }))

  it.effect("expires within a client too", () =>
    Effect.gen(function*() {
      const { server, state } = upgraded()
      const connect = Effect.map(server.transport.connect, (connection) =>
        Object.assign(connection, { httpMode: "streamable" }))
      const client = yield* Client.make(
        {
          ...server.transport,
          connect,
          connectWith: () =>
            connect
        },
        { serverProfile: kept("2025-11-25", "streamable"), reconnect: { initialDelay: 0 } }
      )
      state.isNew = true
      const reconnected = Effect.gen(function*() {
        server.disconnect()
        yield* TestClock.adjust("1 minute")
        return client.revision
      })
      assert.strictEqual(yield* reconnected, "2025-11-25")
      yield* TestClock.adjust(day)
      assert.strictEqual(yield* reconnected, "2026-07-28")
    }))
})

describe("2026-07-28 · re-probing if the cached assumption later fails", () => {
  it.live("replaces a session-based revision by a stateless one", () =>
    Effect.gen(function*() {
      const { exchanges, url } = yield* ScriptedHttpServer.make<Json>(Servers.modern)
      const client = yield* open(url, kept("2025-11-25", "streamable"))
      assert.strictEqual(client.revision, "2026-07-28")
      assert.deepStrictEqual(asked(exchanges), [initialize, discover])
    }))

  it.live("replaces HTTP+SSE by Streamable HTTP", () =>
    Effect.gen(function*() {
      const { exchanges, url } = yield* ScriptedHttpServer.make<Json>(Servers.stateful)
      const client = yield* open(url, kept("2024-11-05", "sse"))
      assert.strictEqual(client.serverProfile?.httpMode, "streamable")
      assert.strictEqual(yield* text(client), "echo")
      assert.deepStrictEqual(asked(exchanges).slice(0, 3), ["GET", discover, initialize])
    }))

  it.live("replaces Streamable HTTP by HTTP+SSE, which `initialize` reveals without a probe", () =>
    Effect.gen(function*() {
      const { exchanges, url } = yield* ScriptedHttpServer.make<Json>(Servers.sseOnly())
      const client = yield* open(url, kept("2025-11-25", "streamable"))
      assert.deepInclude(stored(client.serverProfile), { revision: "2024-11-05", httpMode: "sse" })
      assert.deepStrictEqual(asked(exchanges).slice(0, 3), [initialize, "GET", initialize])
    }))

  it.live("replaces a stateless revision by a session-based one on the first call", () =>
    Effect.gen(function*() {
      const { exchanges, url } = yield* ScriptedHttpServer.make<Json>(Servers.stateful)
      const client = yield* open(url, kept("2026-07-28", "streamable"))
      assert.deepStrictEqual(asked(exchanges), [])
      assert.strictEqual(yield* text(client), "echo")
      assert.strictEqual(client.revision, "2025-06-18")
      // The call was sent once in the form that the server accepts.
      assert.strictEqual(
        exchanges.filter((hit) => asked([hit])[0] === call && hit.headers["mcp-session-id"] === "s-1").length,
        1
      )
    }))

  it.effect("detects the server again if its HTTP+SSE stream sends no endpoint in time", () =>
    Effect.gen(function*() {
      const { exchanges, url } = yield* ScriptedHttpServer.make<Json>((hit) =>
        hit.method === "GET" ? void hit.openStream(": wait\n\n") : Servers.modern(hit)
      )
      const fiber = yield* Effect.forkChild(open(url, kept("2024-11-05", "sse")), { startImmediately: true })
      yield* until(() => exchanges.length === 1)
      yield* TestClock.adjust("10 seconds")
      assert.strictEqual((yield* Fiber.join(fiber)).revision, "2026-07-28")
      yield* until(() => exchanges[0]!.closedByClient)
    }))

  for (const status of [401, 403, 429, 503]) {
    for (const [variant, what] of [["streamable", initialize], ["sse", "GET"]] as const) {
      it.live(`${status} fails at once, and the client tries nothing else (${variant})`, () =>
        Effect.gen(function*() {
          const { exchanges, url } = yield* ScriptedHttpServer.make<Json>(Servers.always(status, "no"))
          const error = yield* Effect.flip(open(url, kept("2025-03-26", variant)))
          assert.deepInclude(fieldsOf(error), { reason: status < 404 ? "Unauthorized" : "HttpError", status })
          assert.deepStrictEqual(asked(exchanges), [what])
        }))
    }
  }

  it.live("a network failure fails at once, and the client tries nothing else", () =>
    Effect.gen(function*() {
      const { url } = yield* Effect.scoped(RawServer.tcp(() => {}))
      for (const variant of ["streamable", "sse"]) {
        assert.strictEqual((yield* Effect.flip(open(url, kept("2025-03-26", variant)))).reason._tag, "ConnectionFailed")
      }
      const { exchanges, url: rude } = yield* ScriptedHttpServer.make<Json>((hit) => hit.cut())
      assert.strictEqual((yield* Effect.flip(open(rude, kept("2025-03-26", "streamable")))).reason._tag, "Closed")
      assert.deepStrictEqual(asked(exchanges), [initialize, initialize])
    }))

  it.live("closes the connection of the failed attempt before it opens the next", () =>
    Effect.gen(function*() {
      const { closed, sockets, url } = yield* RawServer.tcp((socket) =>
        socket.on("data", (bytes) => {
          if (String(bytes).startsWith("GET")) socket.write("HTTP/1.1 405 No\r\nContent-Length: 0\r\n\r\n")
        })
      )
      const fiber = yield* Effect.forkChild(Client.make(patient(url), { serverProfile: kept("2024-11-05", "sse") }))
      yield* until(() => sockets.length === 2)
      yield* until(() => sockets[0]!.destroyed)
      yield* Fiber.interrupt(fiber)
      yield* closed
    }))
})

describe("a session that is reopened", () => {
  const gone = (hit: Exchange) => hit.respondJson(Servers.fault(-32001, "Session not found"), {}, 404)
  const reconnect = { initialDelay: 1, jitter: "none" } as const

  it.live("2026-07-28 · SHOULD cache the result for the lifetime of the origin: does not probe again", () =>
    Effect.gen(function*() {
      let lost = false
      const { exchanges, url } = yield* ScriptedHttpServer.make<Json>((hit) => {
        if (!lost || hit.json?.method !== "tools/call") return Servers.stateful(hit)
        lost = false
        gone(hit)
      })
      const client = yield* open(url, undefined, { reconnect })
      yield* text(client)
      lost = true
      const count = exchanges.length
      yield* text(client)
      const posts = asked(exchanges).slice(count).filter((what) => what.startsWith("POST"))
      assert.deepStrictEqual(posts, [call, initialize, "POST notifications/initialized", call])
    }))

  it.live("detects the server again if it refuses `initialize` after an upgrade", () =>
    Effect.gen(function*() {
      let modern = false
      const { exchanges, url } = yield* ScriptedHttpServer.make<Json>((hit) => {
        if (!modern) return Servers.stateful(hit)
        if (hit.headers["mcp-session-id"] !== undefined) return gone(hit)
        return hit.json?.method === "initialize"
          ? hit.respondJson(Servers.fault(-32601, "Method not found: initialize"), {}, 400)
          : Servers.modern(hit)
      })
      const client = yield* open(url, undefined, { reconnect })
      yield* text(client)
      modern = true
      const count = exchanges.length
      yield* text(client)
      assert.strictEqual(client.revision, "2026-07-28")
      const posts = asked(exchanges).slice(count).filter((what) => what.startsWith("POST"))
      assert.deepStrictEqual(posts, [call, initialize, discover, call])
    }))
})

describe("a server profile that cannot be used", () => {
  for (
    const malformed of [
      {},
      [],
      "2026-07-28",
      7,
      true,
      { revision: "2026-07-28" },
      { revision: "1999-01-01", capabilities: {} },
      { revision: 7, capabilities: {} },
      { revision: "2025-11-25", capabilities: [] },
      { revision: "2025-11-25", capabilities: {}, httpMode: 7 },
      { capabilities: {}, httpMode: "sse" }
    ]
  ) {
    it.live(`is ignored with a log entry if it is malformed: ${JSON.stringify(malformed)}`, () =>
      Effect.gen(function*() {
        const lines: Array<string> = []
        const logger = Logger.make<unknown, void>(({ message }) => void lines.push(String(message)))
        const { exchanges, url } = yield* ScriptedHttpServer.make<Json>(Servers.modern)
        const client = yield* Effect.provide(open(url, malformed), Logger.layer([logger]))
        assert.strictEqual(client.revision, "2026-07-28")
        assert.deepStrictEqual(asked(exchanges), [discover])
        assert.deepStrictEqual(lines, ["serverProfile is malformed and was ignored"])
      }))
  }

  it.live("is used without its malformed optional members and its unknown members", () =>
    Effect.gen(function*() {
      const { exchanges, url } = yield* ScriptedHttpServer.make<Json>(Servers.modern)
      const serverProfile = { ...kept("2026-07-28"), httpMode: null, info: 7, instructions: {}, more: 1 }
      const client = yield* open(url, serverProfile)
      assert.deepStrictEqual(stored(client.serverProfile), {
        revision: "2026-07-28",
        capabilities,
        httpMode: "streamable"
      })
      assert.isUndefined(client.server)
      assert.deepStrictEqual(asked(exchanges), [])
    }))

  it.live("is ignored if it is null, as in JSON", () =>
    Effect.gen(function*() {
      const { exchanges, url } = yield* ScriptedHttpServer.make<Json>(Servers.modern)
      yield* open(url, null)
      assert.deepStrictEqual(asked(exchanges), [discover])
    }))

  it.live("is ignored if its revision is not enabled", () =>
    Effect.gen(function*() {
      const { exchanges, url } = yield* ScriptedHttpServer.make<Json>(Servers.stateful)
      const client = yield* open(url, kept("2026-07-28"), { revisions: ["2025-06-18"] })
      assert.strictEqual(client.revision, "2025-06-18")
      assert.strictEqual(asked(exchanges)[0], initialize)
    }))

  it.live("is detected again if the transport does not support its httpMode", () =>
    Effect.gen(function*() {
      const { url } = yield* ScriptedHttpServer.make<Json>(Servers.sseOnly())
      const client = yield* open(url, kept("2024-11-05", "carrier pigeon"))
      assert.strictEqual(client.serverProfile?.httpMode, "sse")
    }))
})

describe("a profile and its authorization context", () => {
  const secret = "token-of-nobody"
  const credentials = (who: () => string | undefined) => ({
    headers: () => Effect.succeed({ authorization: `Bearer ${secret}` }),
    refused: () => Effect.succeed(false),
    authorizationContext: (server: URL) =>
      Effect.sync(() => who() === undefined ? undefined : `${who()} at ${server.pathname}`)
  })

  it.live("is used only by the same one, and contains no credentials", () =>
    Effect.gen(function*() {
      const { exchanges, url } = yield* ScriptedHttpServer.make<Json>(Servers.stateful)
      const probes = () => asked(exchanges).filter((what) => what === discover).length
      const use = (who: string | undefined, serverProfile: ServerProfile | undefined) =>
        Effect.scoped(Effect.gen(function*() {
          const before = probes()
          const transport = NodeHttp.transport({ url, credentials: credentials(() => who) })
          const client = yield* Client.make(transport, { serverProfile })
          return { profile: stored(client.serverProfile) as ServerProfile, probed: probes() - before }
        }))
      const ada = yield* use("ada", undefined)
      assert.deepStrictEqual([ada.profile.authorizationContext, ada.probed], ["ada at /mcp", 1])
      assert.notInclude(JSON.stringify(ada.profile), secret)
      assert.deepStrictEqual(yield* use("ada", ada.profile), { profile: ada.profile, probed: 0 })
      const eve = yield* use("eve", ada.profile)
      assert.deepStrictEqual([eve.profile.authorizationContext, eve.probed], ["eve at /mcp", 1])
      const nobody = yield* use(undefined, ada.profile)
      assert.deepStrictEqual([nobody.profile.authorizationContext, nobody.probed], [undefined, 1])
      assert.strictEqual((yield* use(undefined, nobody.profile)).probed, 0)
      assert.strictEqual((yield* use("ada", nobody.profile)).probed, 1)
    }))

  it.effect("is not used for the next connection of a client after a sign-in as another person", () =>
    Effect.gen(function*() {
      let who = "ada"
      const server = ScriptedServer.make(ScriptedServer.handshake("2025-11-25"))
      const connect = Effect.map(
        server.transport.connect,
        (connection) =>
          Object.assign(connection, { httpMode: "streamable", authorizationContext: Effect.sync(() => who) })
      )
      const client = yield* Client.make({ ...server.transport, connect, connectWith: () => connect }, {
        reconnect: { initialDelay: 0 }
      })
      const probesOfReconnect = Effect.gen(function*() {
        const before = server.methods.length
        server.disconnect()
        yield* TestClock.adjust("1 minute")
        yield* client.ping()
        return server.methods.slice(before).filter((method) => method === "server/discover").length
      })
      assert.strictEqual(yield* probesOfReconnect, 0)
      who = "eve"
      assert.strictEqual(yield* probesOfReconnect, 1)
      assert.strictEqual(client.serverProfile?.authorizationContext, "eve")
      assert.strictEqual(yield* probesOfReconnect, 0)
    }))
})
