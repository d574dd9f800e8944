import { assert, describe, it } from "@effect/vitest"
import * as Revision from "@skein/protocol/Revision"
import { OpenFailed, TransportError } from "@skein/runtime/TransportError"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Scope from "effect/Scope"
import * as TestClock from "effect/testing/TestClock"
import * as Client from "../../src/Client.ts"
import * as Stdio from "../../src/Stdio.ts"
import type { ClientError } from "../../src/ClientError.ts"
import manifest from "../../package.json" with { type: "json" }
import * as ScriptedServer from "@skein/testing/ScriptedServer"
import { fieldsOf } from "../support/fields.ts"
import { peerOf } from "../support/peer.ts"

const protocolVersion = "io.modelcontextprotocol/protocolVersion"

const metaOf = (request: { readonly params: { readonly [key: string]: unknown } | undefined } | undefined) =>
  request?.params?.["_meta"] as { readonly [key: string]: unknown }

const failureOf = <A>(effect: Effect.Effect<A, ClientError, Scope.Scope>) => Effect.scoped(Effect.flip(effect))

describe("the handshake", () => {
  for (const revision of Revision.sessionBased) {
    it.effect(`${revision} · sends initialize, then notifications/initialized, to a server without server/discover`, () =>
      Effect.gen(function*() {
        const server = ScriptedServer.make(ScriptedServer.handshake(revision))
        const client = yield* Client.make(server.transport)
        yield* client.ping()
        assert.strictEqual(client.revision, revision)
        assert.strictEqual(client.era, "session")
        assert.strictEqual(client.server?.name, "scripted")
        assert.strictEqual(client.instructions, "Read the script.")
        assert.deepStrictEqual(peerOf(client).session?.revision, revision)
        assert.deepStrictEqual(server.methods, ["server/discover", "initialize", "notifications/initialized", "ping"])
        assert.strictEqual(server.requests("initialize")[0]?.params?.["protocolVersion"], "2025-11-25")
      }))
  }

  it.effect("2026-07-28 · stdio · uses the stateless revision after a DiscoverResult", () =>
    Effect.gen(function*() {
      const server = ScriptedServer.make(ScriptedServer.handshake("2026-07-28"))
      const client = yield* Client.make(server.transport, { info: { name: "host", version: "7" } })
      assert.strictEqual(client.revision, "2026-07-28")
      assert.strictEqual(client.era, "stateless")
      assert.deepStrictEqual(client.server, { name: "scripted", version: "1.0.0" })
      assert.strictEqual(client.instructions, "Read the script.")
      assert.deepStrictEqual(Object.keys(client.capabilities), [
        "tools",
        "resources",
        "prompts",
        "completions",
        "logging"
      ])
      assert.deepStrictEqual(server.methods, ["server/discover"])
      assert.deepStrictEqual(metaOf(server.requests("server/discover")[0]), {
        [protocolVersion]: "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { name: "host", version: "7" },
        "io.modelcontextprotocol/clientCapabilities": { extensions: { "io.modelcontextprotocol/tasks": {} } }
      })
    }))

  for (const end of ["its timeout", "an interruption"]) {
    it.effect(`2025-11-25 · MUST NOT cancel initialize: sends no notification after ${end}`, () =>
      Effect.gen(function*() {
        const server = ScriptedServer.make(() => "no response")
        const opening = yield* Effect.forkChild(
          Effect.scoped(Client.make(server.transport, { revisions: ["2025-11-25"] })),
          { startImmediately: true }
        )
        yield* TestClock.adjust("1 second")
        assert.deepStrictEqual(server.methods, ["initialize"])
        yield* end === "its timeout" ? TestClock.adjust("2 hours") : Fiber.interrupt(opening)
        assert.isTrue(Exit.isFailure(yield* Fiber.await(opening)))
        assert.deepStrictEqual(server.methods, ["initialize"])
      }))
  }

  it.effect("2026-07-28 · reads null as absent in a DiscoverResult", () =>
    Effect.gen(function*() {
      const server = ScriptedServer.make(
        () =>
          ScriptedServer.success({
            resultType: null,
            supportedVersions: ["2026-07-28"],
            capabilities: { tools: null, prompts: { listChanged: null } },
            instructions: null,
            _meta: null
          })
      )
      const client = yield* Client.make(server.transport)
      assert.strictEqual(client.revision, "2026-07-28")
      assert.deepStrictEqual<unknown>(client.capabilities, { prompts: {} })
      assert.isUndefined(client.instructions)
    }))

  it.effect("2026-07-28 · every request MUST carry the protocol version and the client's capabilities", () =>
    Effect.gen(function*() {
      const server = ScriptedServer.make(
        ScriptedServer.handshake(
          "2026-07-28",
          () => ScriptedServer.success({ resultType: "complete", tools: [], ttlMs: 0, cacheScope: "private" })
        )
      )
      const client = yield* Client.make(server.transport)
      yield* client.listToolsPage()
      const meta = metaOf(server.requests("tools/list")[0])
      assert.strictEqual(meta[protocolVersion], "2026-07-28")
      const extensions = { "io.modelcontextprotocol/tasks": {} }
      assert.deepStrictEqual(meta["io.modelcontextprotocol/clientCapabilities"], { extensions })
      // Clients SHOULD identify themselves: by default with the name and the version of this package.
      assert.deepStrictEqual(meta["io.modelcontextprotocol/clientInfo"], { name: "skein", version: manifest.version })
    }))

  for (const revision of ["2026-07-28", "2025-11-25"] as const) {
    it.effect(`${revision} · declares the extensions of the host`, () =>
      Effect.gen(function*() {
        const server = ScriptedServer.make(
          ScriptedServer.handshake(
            revision,
            () => ScriptedServer.success({ resultType: "complete", tools: [], ttlMs: 0, cacheScope: "private" })
          )
        )
        const ui = { mimeTypes: ["text/html;profile=mcp-app"] }
        const client = yield* Client.make(server.transport, { extensions: { "io.modelcontextprotocol/ui": ui } })
        yield* client.listToolsPage()
        const declared = revision === "2025-11-25"
          ? server.requests("initialize")[0]?.params?.["capabilities"]
          : metaOf(server.requests("tools/list")[0])["io.modelcontextprotocol/clientCapabilities"]
        assert.deepNestedPropertyVal(declared, "extensions.io\\.modelcontextprotocol/ui", ui)
      }))
  }

  for (
    const [name, answer] of [
      ["-32601", ScriptedServer.methodNotFound("server/discover")],
      ["-32602", ScriptedServer.failure(-32602, "Invalid request parameters")],
      ["-32000", ScriptedServer.failure(-32000, "Not initialized")],
      ["-32001", ScriptedServer.failure(-32001, "Header mismatch: it was a draft that said so")],
      [
        "-32004",
        ScriptedServer.failure(-32004, "Unsupported protocol version", {
          supported: ["2026-07-28"],
          requested: "2026-07-28"
        })
      ],
      ["a result that is not a DiscoverResult", ScriptedServer.success({})],
      [
        "a result with an unknown resultType",
        ScriptedServer.success({ resultType: "later", supportedVersions: [], capabilities: {} })
      ]
    ] as const
  ) {
    it.effect(`2026-07-28 · stdio · the fallback MUST NOT be keyed to one specific error code: ${name}`, () =>
      Effect.gen(function*() {
        const legacy = ScriptedServer.handshake("2025-06-18")
        const server = ScriptedServer.make((request, server) =>
          request.method === "server/discover" ? answer : legacy(request, server)
        )
        const client = yield* Client.make(server.transport)
        assert.strictEqual(client.revision, "2025-06-18")
        assert.strictEqual(server.connections, 1)
      }))
  }

  describe("a server that responds with UnsupportedProtocolVersion", () => {
    const answer = (supported: ReadonlyArray<string>): ScriptedServer.Script => (request, server) =>
      request.method === "server/discover"
        ? ScriptedServer.failure(-32022, "Unsupported protocol version", { supported, requested: "2026-07-28" })
        : ScriptedServer.handshake("2025-06-18")(request, server)

    it.effect("2026-07-28 · stdio · with no version in common: do not fall back to initialize", () =>
      Effect.gen(function*() {
        const server = ScriptedServer.make(answer(["2027-01-01"]))
        const error = yield* failureOf(Client.make(server.transport))
        assert.strictEqual(error.reason._tag, "NegotiationFailed")
        assert.include(error.message, "2027-01-01")
        assert.deepStrictEqual(server.methods, ["server/discover"])
      }))

    it.effect("2026-07-28 · versioning · and lists the requested version: SHOULD select a supported version, and retry", () =>
      Effect.gen(function*() {
        const server = ScriptedServer.make((request, server) =>
          request.method === "server/discover" && server.methods.length === 1
            ? ScriptedServer.failure(-32022, "Unsupported protocol version", {
              supported: ["2026-07-28"],
              requested: "2026-07-28"
            })
            : ScriptedServer.handshake("2026-07-28")(request, server)
        )
        const client = yield* Client.make(server.transport)
        assert.strictEqual(client.revision, "2026-07-28")
        assert.deepStrictEqual(server.methods, ["server/discover", "server/discover"])
      }))

    it.effect("2026-07-28 · versioning · and lists the version that it refuses again: gets two probes at most", () =>
      Effect.gen(function*() {
        const server = ScriptedServer.make(answer(["2026-07-28"]))
        const error = yield* failureOf(Client.make(server.transport))
        assert.strictEqual(error.reason._tag, "NegotiationFailed")
        assert.strictEqual(error.message, "The server refuses \"2026-07-28\", although it lists it as supported")
        assert.deepStrictEqual(server.methods, ["server/discover", "server/discover"])
      }))

    it.effect("2026-07-28 · versioning · and lists the version that it refuses again, and a session-based one: gets initialize", () =>
      Effect.gen(function*() {
        const server = ScriptedServer.make(answer(["2026-07-28", "2025-06-18"]))
        const client = yield* Client.make(server.transport)
        assert.strictEqual(client.revision, "2025-06-18")
        assert.deepStrictEqual(server.methods.slice(0, 3), ["server/discover", "server/discover", "initialize"])
      }))

    it.effect("2026-07-28 · stdio · and lists only session-based versions: gets initialize with the newest", () =>
      Effect.gen(function*() {
        const server = ScriptedServer.make(answer(["2024-11-05", "2025-06-18"]))
        const client = yield* Client.make(server.transport)
        assert.strictEqual(client.revision, "2025-06-18")
        assert.strictEqual(server.requests("initialize")[0]?.params?.["protocolVersion"], "2025-06-18")
      }))
  })

  it.effect("2026-07-28 · another error that only a modern server sends fails the client: do not fall back", () =>
    Effect.gen(function*() {
      const server = ScriptedServer.make(() =>
        ScriptedServer.failure(-32021, "Missing", { requiredCapabilities: { sampling: {} } })
      )
      const error = yield* failureOf(Client.make(server.transport))
      assert.strictEqual(error.reason._tag, "ProtocolError")
      assert.strictEqual(fieldsOf(error).error?.reason, "MissingRequiredClientCapability")
      assert.deepStrictEqual(server.methods, ["server/discover"])
    }))

  it.effect("2026-07-28 · sends initialize after a DiscoverResult that lists only session-based versions", () =>
    Effect.gen(function*() {
      const legacy = ScriptedServer.handshake("2025-11-25")
      const server = ScriptedServer.make((request, server) =>
        request.method === "server/discover"
          ? ScriptedServer.success({
            resultType: "complete",
            supportedVersions: ["2025-11-25"],
            capabilities: {},
            ttlMs: 0,
            cacheScope: "private"
          })
          : legacy(request, server)
      )
      const client = yield* Client.make(server.transport)
      assert.strictEqual(client.revision, "2025-11-25")
    }))

  it.effect("sends initialize after probeTimeout without a response, and does not store that the server is silent", () =>
    Effect.gen(function*() {
      const legacy = ScriptedServer.handshake("2025-03-26")
      const server = ScriptedServer.make((request, server) =>
        request.method === "server/discover" ? "no response" : legacy(request, server)
      )
      const fiber = yield* Effect.forkChild(Client.make(server.transport), { startImmediately: true })
      yield* TestClock.adjust(2_999)
      assert.deepStrictEqual(server.methods, ["server/discover"])
      yield* TestClock.adjust(1)
      const client = yield* Fiber.join(fiber)
      yield* client.ping()
      assert.strictEqual(client.revision, "2025-03-26")
      assert.isUndefined(client.serverProfile)
      // The probe may still be answered, within the timeout of a request.
      assert.deepStrictEqual(server.methods, ["server/discover", "initialize", "notifications/initialized", "ping"])
      yield* TestClock.adjust("60 seconds")
      assert.strictEqual(server.methods.at(-1), "notifications/cancelled")
      assert.isUndefined(client.serverProfile)
    }))

  it.effect("stores a session-based revision once the server has refused the probe", () =>
    Effect.gen(function*() {
      const legacy = ScriptedServer.handshake("2025-03-26")
      const server = ScriptedServer.make((request, server) =>
        request.method === "server/discover" ? "no response" : legacy(request, server)
      )
      const fiber = yield* Effect.forkChild(Client.make(server.transport), { startImmediately: true })
      yield* TestClock.adjust("3 seconds")
      const client = yield* Fiber.join(fiber)
      const { id } = server.requests("server/discover")[0]!
      server.send({ _tag: "Failure", id, error: { code: -32601, message: "Method not found" } })
      yield* client.ping()
      assert.strictEqual(client.serverProfile?.revision, "2025-03-26")
    }))

  it.effect("waits for a transport as long as it says", () =>
    Effect.gen(function*() {
      const server = ScriptedServer.make(ScriptedServer.handshake("2026-07-28"))
      const transport = { ...Stdio.transport({ command: "true" }), connect: server.transport.connect }
      assert.strictEqual(transport.probeTimeout, "10 seconds")
      const silent = ScriptedServer.make(({ method }) => method === "server/discover" ? "no response" : undefined)
      yield* Effect.forkChild(Client.make({ ...transport, connect: silent.transport.connect }), {
        startImmediately: true
      })
      yield* TestClock.adjust(9_999)
      assert.deepStrictEqual(silent.methods, ["server/discover"])
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(silent.methods, ["server/discover", "initialize"])
    }))

  it.effect("2024-10-07 · is read as the oldest revision", () =>
    Effect.gen(function*() {
      const oldest = ScriptedServer.handshake("2024-11-05")
      const server = ScriptedServer.make((request, server) => {
        const reply = oldest(request, server)
        return request.method === "initialize"
          ? ScriptedServer.success({
            ...(reply as { readonly result: object }).result,
            protocolVersion: "2024-10-07"
          })
          : reply
      })
      const client = yield* Client.make(server.transport)
      assert.strictEqual(client.revision, "2024-11-05")
      yield* client.ping()
    }))

  it.effect("reads a response whose id is the text of a number", () =>
    Effect.gen(function*() {
      const script = ScriptedServer.handshake("2025-06-18")
      const server = ScriptedServer.make((request, server) => {
        const reply = script(request, server)
        if (typeof reply !== "object") return reply
        server.send({ _tag: "result" in reply ? "Success" : "Failure", id: String(request.id), ...reply } as never)
        return undefined
      })
      const client = yield* Client.make(server.transport)
      yield* client.ping()
      assert.strictEqual(client.revision, "2025-06-18")
    }))

  it.effect("waits for the probe as long as the option probeTimeout", () =>
    Effect.gen(function*() {
      const legacy = ScriptedServer.handshake("2025-03-26")
      const server = ScriptedServer.make((request, server) =>
        request.method === "server/discover" ? "no response" : legacy(request, server)
      )
      const fiber = yield* Effect.forkChild(Client.make(server.transport, { probeTimeout: 100 }), {
        startImmediately: true
      })
      yield* TestClock.adjust(100)
      assert.strictEqual((yield* Fiber.join(fiber)).revision, "2025-03-26")
    }))

  it.effect("uses a late response to the probe for the next connection if the server accepts initialize", () =>
    Effect.gen(function*() {
      const modern = ScriptedServer.handshake("2026-07-28")
      const legacy = ScriptedServer.handshake("2025-11-25")
      const server = ScriptedServer.make((request, server) => {
        if (request.method === "server/discover") return "no response"
        if (request.method === "initialize") {
          const late = modern(server.requests("server/discover")[0]!, server) as { readonly result: {} }
          server.send({ _tag: "Success", id: server.requests("server/discover")[0]!.id, result: late.result })
        }
        return (request.method === "tools/call" ? modern : legacy)(request, server)
      })
      const made = Client.make(server.transport, { reconnect: { initialDelay: 1, jitter: "none" } })
      const fiber = yield* Effect.forkChild(made, { startImmediately: true })
      yield* TestClock.adjust("3 seconds")
      const client = yield* Fiber.join(fiber)
      assert.strictEqual(client.revision, "2025-11-25")
      assert.notInclude(server.methods, "notifications/cancelled")
      assert.strictEqual(client.serverProfile?.revision, "2026-07-28")
      assert.deepStrictEqual(
        Object.keys(client.serverProfile ?? {}).sort(),
        ["capabilities", "httpMode", "info", "instructions", "revision"]
      )
      server.disconnect()
      yield* TestClock.adjust(1)
      assert.strictEqual(client.revision, "2026-07-28")
      assert.strictEqual(server.connections, 2)
    }))

  it.effect("2026-07-28 · uses a modern server's late response to the probe if it refuses initialize", () =>
    Effect.gen(function*() {
      const modern = ScriptedServer.handshake("2026-07-28")
      const server = ScriptedServer.make((request, server) => {
        if (request.method === "server/discover") return "no response"
        const late = modern(server.requests("server/discover")[0]!, server) as { readonly result: {} }
        server.send({ _tag: "Success", id: server.requests("server/discover")[0]!.id, result: late.result })
        return ScriptedServer.methodNotFound(request.method)
      })
      const fiber = yield* Effect.forkChild(Client.make(server.transport), { startImmediately: true })
      yield* TestClock.adjust("3 seconds")
      const client = yield* Fiber.join(fiber)
      assert.strictEqual(client.revision, "2026-07-28")
    }))

  it.effect("2025-11-25 · a client that does not support the version in the server's response SHOULD disconnect", () =>
    Effect.gen(function*() {
      const server = ScriptedServer.make((request) =>
        request.method === "initialize"
          ? ScriptedServer.success({
            protocolVersion: "1999-01-01",
            capabilities: {},
            serverInfo: { name: "s", version: "1" }
          })
          : ScriptedServer.methodNotFound(request.method)
      )
      const error = yield* failureOf(Client.make(server.transport))
      assert.strictEqual(error.reason._tag, "NegotiationFailed")
      assert.include(error.message, "1999-01-01")
      assert.notInclude(server.methods, "notifications/initialized")
    }))

  it.effect("2025-11-25 · fails with NegotiationFailed and the server's error if the server refuses initialize", () =>
    Effect.gen(function*() {
      const server = ScriptedServer.make((request) =>
        request.method === "initialize"
          ? ScriptedServer.failure(-32602, "Unsupported protocol version", {
            supported: ["1999-01-01"],
            requested: "2025-11-25"
          })
          : ScriptedServer.methodNotFound(request.method)
      )
      const error = yield* failureOf(Client.make(server.transport))
      assert.strictEqual(error.reason._tag, "NegotiationFailed")
      assert.strictEqual(fieldsOf(error).error?.reason, "UnsupportedProtocolVersion")
    }))

  it.effect("fails with InvalidResponse if the response to initialize has no protocolVersion", () =>
    Effect.gen(function*() {
      const server = ScriptedServer.make((request) =>
        request.method === "initialize" ? ScriptedServer.success({}) : ScriptedServer.methodNotFound(request.method)
      )
      assert.strictEqual((yield* failureOf(Client.make(server.transport))).reason._tag, "InvalidResponse")
    }))

  it.effect("fails with Timeout if the server never responds to initialize", () =>
    Effect.gen(function*() {
      const server = ScriptedServer.make(() => "no response")
      const fiber = yield* Effect.forkChild(failureOf(Client.make(server.transport)), { startImmediately: true })
      yield* TestClock.adjust("63 seconds")
      assert.strictEqual((yield* Fiber.join(fiber)).reason._tag, "Timeout")
    }))
})

describe("the option revisions", () => {
  it.effect("sends no probe with session-based revisions only", () =>
    Effect.gen(function*() {
      const server = ScriptedServer.make(ScriptedServer.handshake("2025-06-18"))
      const client = yield* Client.make(server.transport, { revisions: ["2024-11-05", "2025-06-18"] })
      yield* client.ping()
      assert.strictEqual(client.revision, "2025-06-18")
      assert.deepStrictEqual(server.methods, ["initialize", "notifications/initialized", "ping"])
      assert.strictEqual(server.requests("initialize")[0]?.params?.["protocolVersion"], "2025-06-18")
    }))

  it.effect("rejects a supported revision that is not enabled", () =>
    Effect.gen(function*() {
      const server = ScriptedServer.make(ScriptedServer.handshake("2025-03-26"))
      const error = yield* failureOf(Client.make(server.transport, { revisions: ["2025-11-25"] }))
      assert.strictEqual(error.reason._tag, "NegotiationFailed")
    }))

  it.effect("2026-07-28 · fails with NegotiationFailed, without initialize, on a legacy server if only stateless revisions are enabled", () =>
    Effect.gen(function*() {
      const server = ScriptedServer.make(ScriptedServer.handshake("2025-11-25"))
      const error = yield* failureOf(Client.make(server.transport, { revisions: ["2026-07-28"] }))
      assert.strictEqual(error.reason._tag, "NegotiationFailed")
      assert.deepStrictEqual(server.methods, ["server/discover"])
    }))

  it.effect("fails with NegotiationFailed without a connection if it is empty", () =>
    Effect.gen(function*() {
      const server = ScriptedServer.make(ScriptedServer.handshake("2025-11-25"))
      const error = yield* failureOf(Client.make(server.transport, { revisions: [] }))
      assert.strictEqual(error.reason._tag, "NegotiationFailed")
      assert.strictEqual(server.connections, 0)
    }))
})

describe("a server that ends during the handshake", () => {
  const fragile: ScriptedServer.Script = (request, server) =>
    request.method === "server/discover" ? "disconnect" : ScriptedServer.handshake("2025-06-18")(request, server)

  it.effect("is connected to once more if it ended on the probe, and gets initialize first", () =>
    Effect.gen(function*() {
      const server = ScriptedServer.make(fragile)
      const client = yield* Client.make(server.transport)
      assert.strictEqual(client.revision, "2025-06-18")
      assert.strictEqual(server.connections, 2)
      yield* client.ping()
      assert.deepStrictEqual(server.methods, ["server/discover", "initialize", "notifications/initialized", "ping"])
    }))

  it.effect("fails the client with Closed after two connections", () =>
    Effect.gen(function*() {
      const server = ScriptedServer.make(() => "disconnect")
      const error = yield* failureOf(Client.make(server.transport))
      assert.strictEqual(error.reason._tag, "Closed")
      assert.strictEqual(fieldsOf(error).end?._tag, "ClosedByPeer")
      assert.strictEqual(error.method, "initialize")
      assert.strictEqual(server.connections, 2)
    }))

  it.effect("is not connected to again if it ended on the probe and no session-based revision is enabled", () =>
    Effect.gen(function*() {
      const server = ScriptedServer.make(fragile)
      const error = yield* failureOf(Client.make(server.transport, { revisions: ["2026-07-28"] }))
      assert.strictEqual(error.reason._tag, "Closed")
      assert.strictEqual(server.connections, 1)
    }))

  it.effect("has its failed connection closed before the next is opened", () =>
    Effect.gen(function*() {
      const server = ScriptedServer.make(fragile)
      const log: Array<string> = []
      const connect = Effect.acquireRelease(
        Effect.sync(() => void log.push("open")),
        () => Effect.sync(() => void log.push("close"))
      ).pipe(Effect.andThen(server.transport.connect))
      const scope = yield* Scope.make()
      yield* Client.make({ connect }).pipe(Scope.provide(scope))
      assert.deepStrictEqual(log, ["open", "close", "open"])
      yield* Scope.close(scope, Exit.void)
      assert.deepStrictEqual(log, ["open", "close", "open", "close"])
    }))

  it.effect("fails with ConnectionFailed and the cause if the transport cannot connect", () =>
    Effect.gen(function*() {
      const cause = new TransportError({ reason: new OpenFailed({ message: "no such file: server" }) })
      const error = yield* failureOf(Client.make({ connect: Effect.fail(cause) }))
      assert.strictEqual(error.reason._tag, "ConnectionFailed")
      assert.strictEqual(error.message, "no such file: server")
      assert.strictEqual(error.cause, cause)
    }))
})

describe("the layer", () => {
  it.effect("provides the client and closes the connection with its scope", () =>
    Effect.gen(function*() {
      const server = ScriptedServer.make(ScriptedServer.handshake("2025-11-25"))
      const { ended } = yield* Effect.gen(function*() {
        const client = yield* Client.Client
        yield* client.ping()
        return { ended: client.ended }
      }).pipe(Effect.provide(Client.layer(server.transport)))
      assert.strictEqual((yield* ended)._tag, "ClosedByUs")
    }))
})

describe("many clients", () => {
  it.live("leave no timer behind after they are closed", () =>
    Effect.gen(function*() {
      const timers = () => process.getActiveResourcesInfo().filter((name) => name === "Timeout").length
      const before = timers()
      for (let n = 0; n < 200; n++) {
        const client = yield* Effect.scoped(
          Client.make(ScriptedServer.make(ScriptedServer.handshake("2025-11-25")).transport)
        )
        assert.strictEqual((yield* client.ended)._tag, "ClosedByUs")
      }
      assert.isAtMost(timers(), before + 1)
    }))
})
