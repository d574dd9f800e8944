/** The log messages of servers. */
import { assert, describe, it } from "@effect/vitest"
import type * as JsonRpc from "@skein/protocol/JsonRpc"
import * as Revision from "@skein/protocol/Revision"
import * as InMemoryTransport from "@skein/runtime/InMemoryTransport"
import * as McpServer from "@skein/server/McpServer"
import * as Tool from "@skein/server/Tool"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as References from "effect/References"
import * as Stream from "effect/Stream"
import * as Client from "../../src/Client.ts"
import * as Logging from "../../src/Logging.ts"
import { metaOf, open, pass, settle } from "../subscriptions/kit.ts"
import * as ScriptedServer from "@skein/testing/ScriptedServer"

const capabilities = { logging: {} }
const meta = "io.modelcontextprotocol/logLevel"

interface Line {
  readonly level: string
  readonly message: unknown
  readonly annotations: Readonly<Record<string, unknown>>
}

/** Records log lines. */
const keep = (lines: Array<Line>) =>
  Logger.layer([
    Logger.make(({ fiber, logLevel, message }) => {
      const [text] = Array.isArray(message) ? message : [message]
      lines.push({ level: logLevel, message: text, annotations: fiber.getRef(References.CurrentLogAnnotations) })
    })
  ])

describe("client.logs", () => {
  for (const revision of Revision.all) {
    it.effect(`${revision} · emits the messages of a Skein server at the requested level and above`, () =>
      Effect.gen(function*() {
        const work = Tool.layer(Tool.make("work"), () =>
          Effect.gen(function*() {
            yield* Effect.logInfo("quiet")
            yield* Effect.logWarning("loud")
            yield* Effect.logError("louder")
            return "done"
          }))
        const layer = McpServer.layer({ name: "talking", version: "1.0.0" }, work)
        const { serve } = Context.get(yield* Layer.build(layer), McpServer.McpServer)
        const client = yield* Client.make(InMemoryTransport.transport(serve), { revisions: [revision] })
        const logs = yield* Effect.forkChild(Stream.runCollect(Stream.take(client.logs, 2)), { startImmediately: true })
        yield* client.setLoggingLevel("warning")
        yield* client.callTool("work")
        const messages = yield* Fiber.join(logs)
        assert.deepStrictEqual(messages.map(({ params: { level } }) => level), ["warning", "error"])
        assert.include(JSON.stringify(messages[0]?.params.data), "loud")
      }).pipe(Effect.provide(Logger.layer([]))))
  }

  it.effect("counts only log messages against its buffer", () =>
    Effect.gen(function*() {
      const { client, server } = yield* open("2025-11-25", () => ScriptedServer.success({}), {
        limits: { maxBufferedNotifications: 2 }
      })
      const seen: Array<unknown> = []
      const reading = Stream.runForEach(client.logs, ({ params: { data } }) =>
        Effect.andThen(Effect.sync(() => seen.push(data)), Effect.sleep(1000)))
      yield* Effect.forkChild(reading, { startImmediately: true })
      const log = (data: number) =>
        server.notify("notifications/message", { level: "info", data })
      log(0)
      yield* settle
      log(1)
      for (let n = 0; n < 10; n++) server.notify("notifications/tools/list_changed")
      log(2)
      for (let n = 0; n < 3; n++) yield* pass(1000)
      assert.deepStrictEqual(seen, [0, 1, 2])
    }))
})

describe("the log level", () => {
  const reconnect = { initialDelay: 1000, jitter: "none" } as const

  it.effect("2025-11-25 · is sent again after a reconnect, before any other request", () =>
    Effect.gen(function*() {
      const { client, server } = yield* open(
        "2025-11-25",
        () => ScriptedServer.success({ content: [] }),
        { reconnect },
        capabilities
      )
      yield* client.setLoggingLevel("error")
      yield* client.setLoggingLevel("debug")
      server.disconnect()
      yield* settle
      const call = yield* Effect.forkChild(client.callTool("t"), { startImmediately: true }).pipe(
        Effect.provideService(Client.Client, client)
      )
      yield* pass(1000)
      yield* Fiber.await(call)
      const levels = server.requests("logging/setLevel").map(({ params }) => params?.["level"])
      assert.deepStrictEqual(levels, ["error", "debug", "debug"])
      assert.strictEqual(
        server.methods.lastIndexOf("notifications/initialized") + 1,
        server.methods.lastIndexOf("logging/setLevel")
      )
    }))

  it.effect("is not sent again after the server rejected it, or if none was set", () =>
    Effect.gen(function*() {
      const { client, server } = yield* open(
        "2025-11-25",
        () => ScriptedServer.failure(-32602, "No"),
        { reconnect },
        capabilities
      )
      yield* Effect.flip(client.setLoggingLevel("error"))
      server.disconnect()
      yield* pass(1000)
      assert.strictEqual(server.connections, 2)
      assert.strictEqual(server.requests("logging/setLevel").length, 1)
    }))

  it.effect("causes only a warning if the server rejects it after a reconnect", () => {
    const lines: Array<Line> = []
    return Effect.gen(function*() {
      const { client, server } = yield* open(
        "2025-11-25",
        ({ method }, server) =>
          server.connections > 1 && method === "logging/setLevel"
            ? ScriptedServer.failure(-32602, "No")
            : ScriptedServer.success({ content: [] }),
        { reconnect },
        {
          logging: {},
          tools: {}
        }
      )
      yield* client.setLoggingLevel("error")
      server.disconnect()
      yield* pass(1000)
      yield* client.callTool("t")
      assert.deepStrictEqual(lines.map(({ level }) => level), ["Warn"])
    }).pipe(Effect.provide(keep(lines)))
  })

  it.effect("2026-07-28 · is sent with each request, also after a reconnect", () =>
    Effect.gen(function*() {
      const { client, server } = yield* open("2026-07-28", () =>
        ScriptedServer.success({ resultType: "complete", content: [] }), {
        reconnect
      }, {
        logging: {},
        tools: {}
      })
      yield* client.callTool("t")
      yield* client.setLoggingLevel("notice")
      yield* client.callTool("t")
      server.disconnect()
      yield* pass(1000)
      yield* client.callTool("t")
      const levels = server.requests("tools/call").map((request) =>
        metaOf(request)[meta]
      )
      assert.deepStrictEqual(levels, [undefined, "notice", "notice"])
    }))
})

describe("Logging.forward", () => {
  for (const revision of Revision.all) {
    it.effect(`${revision} · requests the messages of a level after it has subscribed`, () => {
      const lines: Array<Line> = []
      return Effect.gen(function*() {
        const { client, server } = yield* open(
          revision,
          ({ method }, server) => {
            if (method === "logging/setLevel") {
              server.notify("notifications/message", { level: "error", data: "at once" })
            }
            return ScriptedServer.success({ resultType: "complete", content: [] })
          },
          undefined,
          { logging: {}, tools: {} }
        )
        const fiber = yield* Effect.forkChild(Logging.forward(client, { level: "notice" }), { startImmediately: true })
        yield* settle
        yield* client.callTool("t")
        const asked = revision === "2026-07-28"
          ? server.requests("tools/call").map((request) => metaOf(request)[meta])
          : server.requests("logging/setLevel").map(({ params }) => params?.["level"])
        assert.deepStrictEqual(asked, ["notice"])
        server.notify("notifications/message", { level: "error", data: "later" })
        yield* settle
        server.disconnect()
        yield* Fiber.join(fiber)
        const texts = lines.flatMap(({ level, message }) => level === "Error" ? [message] : [])
        assert.deepStrictEqual(texts, revision === "2026-07-28" ? ["later"] : ["at once", "later"])
      }).pipe(Effect.provide(keep(lines)))
    })
  }

  it.effect("does not ask a server without levels, and forwards its messages under the host's name for it", () => {
    const lines: Array<Line> = []
    return Effect.gen(function*() {
      const { client, server } = yield* open("2025-11-25", () => ScriptedServer.success({}), { label: "files" }, {})
      const fiber = yield* Effect.forkChild(Logging.forward(client, { level: "debug" }), { startImmediately: true })
      server.notify("notifications/message", { level: "error", data: "loud" })
      yield* settle
      assert.deepStrictEqual(lines.map(({ level }) => level), ["Error"])
      assert.strictEqual(lines[0]!.annotations["mcp.server"], "files")
      assert.deepStrictEqual(server.requests("logging/setLevel"), [])
      yield* Fiber.interrupt(fiber)
    }).pipe(Effect.provide(keep(lines)))
  })

  it.effect("warns if the server refuses the level", () => {
    const lines: Array<Line> = []
    return Effect.gen(function*() {
      const { client } = yield* open("2025-11-25", () => ScriptedServer.failure(-32602, "No"), undefined, {
        logging: {}
      })
      const fiber = yield* Effect.forkChild(Logging.forward(client, { level: "debug" }), { startImmediately: true })
      yield* settle
      assert.deepStrictEqual(lines.map(({ level }) => level), ["Warn"])
      yield* Fiber.interrupt(fiber)
    }).pipe(Effect.provide(keep(lines)))
  })

  const forwarded = (params: ReadonlyArray<JsonRpc.JsonObject>, options?: Logging.Options) => {
    const lines: Array<Line> = []
    return Effect.gen(function*() {
      const { client, server } = yield* open("2025-11-25", () => ScriptedServer.success({}))
      const fiber = yield* Effect.forkChild(Logging.forward(client, options), { startImmediately: true })
      for (const message of params) server.notify("notifications/message", message)
      yield* settle
      server.disconnect()
      // The forwarding ends with the client.
      yield* Fiber.join(fiber)
      return lines.filter(({ annotations }) => "mcp.level" in annotations)
    }).pipe(
      Effect.provide(keep(lines)),
      Effect.provideService(References.MinimumLogLevel, "All")
    )
  }

  it.effect("2025-11-25 · maps the levels of RFC 5424 to Effect's, and annotates the names of server and logger", () =>
    Effect.gen(function*() {
      const levels = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]
      const lines = yield* forwarded(levels.map((level) => ({ level, logger: "db", data: `at ${level}` })))
      assert.deepStrictEqual(lines.map(({ level }) => level), [
        "Debug",
        "Info",
        "Info",
        "Warn",
        "Error",
        "Fatal",
        "Fatal",
        "Fatal"
      ])
      assert.deepStrictEqual(lines[2], {
        level: "Info",
        message: "at notice",
        annotations: { "mcp.server": "scripted", "mcp.level": "notice", "mcp.logger": "db" }
      })
    }))

  it.effect("writes values that are not strings as JSON", () =>
    Effect.gen(function*() {
      const lines = yield* forwarded([{ level: "info", data: { a: [1, "x"] } }, { level: "info", data: null }, {
        level: "info",
        data: 7
      }])
      assert.deepStrictEqual(lines.map(({ message }) => message), [`{"a":[1,"x"]}`, "null", "7"])
    }))

  it.effect("escapes line breaks, control and invisible characters of hostile text, and truncates it at maxChars (default 4,096)", () =>
    Effect.gen(function*() {
      const data = "a\n[12:00] ERROR (#1): fake\r\u001b[2J\u0000\u202e\u2028\ud800 é 漢 😀"
      const [line] = yield* forwarded([{ level: "info", logger: "x\ny", data }])
      assert.strictEqual(
        line?.message,
        "a\\u{a}[12:00] ERROR (#1): fake\\u{d}\\u{1b}[2J\\u{0}\\u{202e}\\u{2028}\ufffd é 漢 😀"
      )
      assert.strictEqual(line?.annotations["mcp.logger"], "x\\u{a}y")
      const long = "x".repeat(10_000)
      const messages = [{ level: "info", logger: long, data: long }, { level: "info", data: { long } }]
      const lines = yield* forwarded(messages)
      for (const { message } of lines) assert.strictEqual((message as string).length, 4097)
      assert.strictEqual(String(lines[0]?.annotations["mcp.logger"]).length, 129)
    }))
})
