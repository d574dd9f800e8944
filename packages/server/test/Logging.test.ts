import { describe, expect, it } from "@effect/vitest"
import * as Revision from "@skein/protocol/Revision"
import * as InMemoryTransport from "@skein/runtime/InMemoryTransport"
import * as Logging from "@skein/server/Logging"
import * as McpServer from "@skein/server/McpServer"
import * as Middleware from "@skein/server/Middleware"
import * as Progress from "@skein/server/Progress"
import * as Prompt from "@skein/server/Prompt"
import * as Resource from "@skein/server/Resource"
import * as Tool from "@skein/server/Tool"
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Redacted from "effect/Redacted"
import * as References from "effect/References"
import * as TestClock from "effect/testing/TestClock"
import * as kit from "./kit.ts"

const message = "notifications/message"
const levels = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"] as const
const logs = (effect: Effect.Effect<unknown>, name = "t") =>
  Tool.layer(Tool.make(name), () => Effect.as(effect, "done"))
const isSession = (revision: Revision.Revision) => Revision.era(revision) === "session"

/** A message of every kind that Effect can log. */
const everything = Effect.gen(function*() {
  yield* Effect.logTrace("trace")
  yield* Effect.logDebug("debug")
  yield* Effect.logInfo("info")
  yield* Effect.logInfo("notice").pipe(Logging.as("notice"))
  yield* Effect.logWarning("warning")
  yield* Effect.logError("error")
  yield* Effect.logFatal("critical")
  yield* Effect.logFatal("alert").pipe(Logging.as("alert"))
  yield* Effect.logFatal("emergency").pipe(Logging.as("emergency"))
})

/** Calls a tool with a log level in the form of the revision, and returns the log notifications. */
const ask = (client: kit.Client, level: Logging.Level | undefined, name = "t") =>
  Effect.gen(function*() {
    const before = client.notices(message).length
    if (level !== undefined && isSession(client.revision)) yield* client.result("logging/setLevel", { level })
    const _meta = level === undefined || isSession(client.revision) ? {} : { "io.modelcontextprotocol/logLevel": level }
    yield* client.result("tools/call", { name, _meta })
    yield* kit.settle
    return client.notices(message).slice(before).map(({ params }): kit.Json => params)
  })

for (const revision of Revision.all) {
  describe(revision, () => {
    it.effect(`${revision} · servers that emit log message notifications MUST declare the logging capability`, () =>
      Effect.gen(function*() {
        const hello = isSession(revision) ? "initialize" : "server/discover"
        for (const logging of [undefined, false] as const) {
          const options = { name: "test", version: "1.0.0", ...(logging === undefined ? {} : { logging }) }
          const context = yield* Layer.build(McpServer.layer(options, logs(everything)))
          const first = yield* Effect.provide(kit.link(revision), context)
          expect((yield* first.result(hello, kit.hello(revision))).capabilities.logging).toEqual(
            logging === false ? undefined : {}
          )
          if (logging !== false) continue
          const client = yield* Effect.provide(kit.connect(revision), context)
          if (isSession(revision)) {
            expect((yield* client.error("logging/setLevel", { level: "debug" })).code).toBe(-32601)
          } else {
            expect(yield* ask(client, "debug")).toEqual([])
          }
        }
      }))

    it.effect(`${revision} · sends only messages at or above the requested level`, () =>
      Effect.gen(function*() {
        const client = yield* kit.client(kit.server(logs(everything)), revision)
        for (const [i, level] of levels.entries()) {
          const logged = yield* ask(client, level)
          const expected = level === "debug" ? ["debug", ...levels] : levels.slice(i)
          expect(logged.map((params) => params.level)).toEqual(expected)
          expect(logged.map(({ data }) => data).slice(level === "debug" ? 1 : 0)).toEqual(levels.slice(i))
        }
        if (Revision.era(revision) === "stateless") return
        // "Only sends error level and above": the most recent level applies.
        expect((yield* ask(client, "error")).length).toBe(4)
        expect((yield* ask(client, undefined)).length).toBe(4)
      }))

    it.effect(`${revision} · sends from info on without a requested level in a session, and nothing otherwise`, () =>
      Effect.gen(function*() {
        const client = yield* kit.client(kit.server(logs(everything)), revision)
        const sent = (yield* ask(client, undefined)).map(({ level }) => level)
        expect(sent).toEqual(isSession(revision) ? levels.slice(1) : [])
      }))

    it.effect(`${revision} · sends nothing without a requested level with defaultLevel: false`, () =>
      Effect.gen(function*() {
        const options = { name: "test", version: "1.0.0", logging: { defaultLevel: false } } as const
        const client = yield* kit.client(McpServer.layer(options, logs(everything)), revision)
        expect(yield* ask(client, undefined)).toEqual([])
        expect(client.received.filter((m) => m.method !== undefined)).toEqual([])
      }))

    it.effect(`${revision} · invalid log level: -32602`, () =>
      Effect.gen(function*() {
        const client = yield* kit.client(kit.server(logs(everything)), revision)
        // In `_meta` the level is optional, so that `null` counts as absent there.
        for (const level of ["loud", "INFO", "", 1, {}, ...(isSession(revision) ? [null] : [])]) {
          const error = isSession(revision)
            ? yield* client.error("logging/setLevel", { level })
            : yield* client.error("tools/call", { name: "t", _meta: { "io.modelcontextprotocol/logLevel": level } })
          expect(error.code).toBe(-32602)
        }
        expect(client.notices(message)).toEqual([])
      }))

    it.effect(`${revision} · sends the logs of resources and prompts, and of fibers that a handler forks`, () =>
      Effect.gen(function*() {
        const logging = (text: string) => Effect.as(Effect.logInfo(text), text)
        const forks = Effect.gen(function*() {
          yield* Effect.all([Effect.logInfo("one"), Effect.logInfo("two")], { concurrency: 2 })
          yield* Fiber.join(yield* Effect.forkChild(Effect.logInfo("three")))
        })
        const client = yield* kit.client(
          kit.server(
            logs(forks),
            Resource.layer(Resource.make("r://r"), logging("read")),
            Prompt.layer(Prompt.make("p"), () => logging("got"))
          ),
          revision
        )
        expect((yield* ask(client, "info")).map(({ data }) => data)).toEqual(["one", "two", "three"])
        const _meta = isSession(revision) ? {} : { "io.modelcontextprotocol/logLevel": "info" }
        yield* client.result("resources/read", { uri: "r://r", _meta })
        yield* client.result("prompts/get", { name: "p", _meta })
        expect(client.notices(message).map(({ params }) => params.data).slice(-2)).toEqual(["read", "got"])
      }))

    it.effect(`${revision} · sends logs and progress in their order before the response, and nothing after it`, () =>
      Effect.gen(function*() {
        let late: Effect.Effect<void> = Effect.void
        const work = Effect.gen(function*() {
          yield* Effect.logInfo(1)
          yield* Progress.report({ progress: 2 })
          yield* Effect.sleep("1 second")
          yield* Effect.logInfo(3)
          const context = yield* Effect.context<never>()
          late = Effect.provide(Effect.logInfo("late"), context)
        })
        const client = yield* kit.client(kit.server(logs(work as Effect.Effect<void>)), revision)
        if (isSession(revision)) yield* client.result("logging/setLevel", { level: "info" })
        const before = client.received.length
        const id = client.send("tools/call", {
          name: "t",
          _meta: { progressToken: "p", ...(isSession(revision) ? {} : { "io.modelcontextprotocol/logLevel": "info" }) }
        })
        yield* kit.settle
        yield* TestClock.adjust("1 second")
        yield* client.answer(id)
        yield* late
        yield* kit.settle
        const order = client.received.slice(before).map(({ method, params }) =>
          params?.data ?? params?.progress ?? method
        )
        expect(order).toEqual([1, 2, 3, undefined])
      }))
  })
}

describe("the scope of a level", () => {
  it.effect("2025-11-25 · is the session, from the moment of setLevel", () =>
    Effect.gen(function*() {
      const work = Effect.andThen(
        Effect.andThen(Effect.logInfo("before"), Effect.sleep("1 second")),
        Effect.logInfo("after")
      )
      const options = { name: "test", version: "1.0.0", logging: { defaultLevel: false } } as const
      const context = yield* Layer.build(McpServer.layer(options, logs(work)))
      const one = yield* Effect.provide(kit.connect("2025-11-25"), context)
      const two = yield* Effect.provide(kit.connect("2025-11-25"), context)
      const ids = [one, two].map((client) => client.send("tools/call", { name: "t" }))
      yield* kit.settle
      yield* one.result("logging/setLevel", { level: "info" })
      yield* TestClock.adjust("1 second")
      yield* one.answer(ids[0]!)
      yield* two.answer(ids[1]!)
      expect(one.notices(message).map(({ params }) => params.data)).toEqual(["after"])
      expect(two.notices(message)).toEqual([])
    }))

  it.effect("2026-07-28 · MUST NOT emit for a request that does not include the level, regardless of other requests", () =>
    Effect.gen(function*() {
      const work = Effect.andThen(
        Effect.sleep("1 second"),
        Effect.flatMap(Effect.fiberId, () => Effect.logInfo("said"))
      )
      const client = yield* kit.client(kit.server(logs(work)))
      const level = { "io.modelcontextprotocol/logLevel": "debug" }
      const ids = [{}, level, {}].map((_meta) => client.send("tools/call", { name: "t", _meta }))
      yield* kit.settle
      yield* TestClock.adjust("1 second")
      for (const id of ids) yield* client.answer(id)
      expect(client.notices(message).length).toBe(1)
    }))

  it.effect("2026-07-28 · MUST NOT be delivered on a subscriptions/listen stream", () =>
    Effect.gen(function*() {
      const chatty = Middleware.layer((next) => (exchange) =>
        Effect.andThen(Effect.logError(`${exchange.method} came`), next(exchange))
      )
      const client = yield* kit.client(kit.server(chatty, logs(Effect.void)))
      const _meta = { "io.modelcontextprotocol/logLevel": "debug" }
      client.send("subscriptions/listen", { notifications: { toolsListChanged: true }, _meta })
      yield* kit.settle
      expect(client.received.map(({ method }) => method)).toEqual(["notifications/subscriptions/acknowledged"])
      yield* client.result("tools/list", { _meta })
      expect(client.notices(message).map(({ params }) => params.data)).toEqual(["tools/list came"])
    }))

  it.effect("2025-11-25 · if no setLevel has been sent the server MAY decide: with defaultLevel it sends from that level on", () =>
    Effect.gen(function*() {
      const options = { name: "test", version: "1.0.0", logging: { defaultLevel: "error" } } as const
      const client = yield* kit.client(McpServer.layer(options, logs(everything)), "2025-11-25")
      expect((yield* ask(client, undefined)).map(({ level }) => level)).toEqual(levels.slice(4))
      expect((yield* ask(client, "emergency")).length).toBe(1)
      const modern = yield* kit.client(McpServer.layer(options, logs(everything)))
      expect(yield* ask(modern, undefined)).toEqual([])
    }))
})

describe("the content of a message", () => {
  const messagesOf = (effect: Effect.Effect<unknown>, logging: Logging.Options = {}) =>
    Effect.gen(function*() {
      const client = yield* kit.client(McpServer.layer({ name: "test", version: "1.0.0", logging }, logs(effect)))
      return yield* ask(client, "debug")
    })

  it.effect("is the message itself if there is nothing else, or an object with annotations and the cause", () =>
    Effect.gen(function*() {
      const cases: ReadonlyArray<readonly [Effect.Effect<void>, unknown]> = [
        [Effect.logInfo("text"), "text"],
        [Effect.logInfo({ error: "x", details: { port: 5432, list: [1, null, true] } }), {
          error: "x",
          details: { port: 5432, list: [1, null, true] }
        }],
        [Effect.logInfo("a", 1, { b: 2 }), ["a", 1, { b: 2 }]],
        [Effect.logInfo(), []],
        [Effect.logInfo("text").pipe(Effect.annotateLogs({ table: "users", n: 1 })), {
          message: "text",
          annotations: { table: "users", n: 1 }
        }],
        [
          Effect.andThen(TestClock.adjust(20), Effect.logInfo("text")).pipe(Effect.withLogSpan("query")),
          { message: "text", spans: { query: 20 } }
        ],
        [Effect.logError("text", Cause.die(new TypeError("boom"))), { message: "text", causes: ["TypeError: boom"] }],
        [Effect.logError(Cause.fail("why")), { message: [], causes: ["Error: why"] }]
      ]
      for (const [effect, data] of cases) {
        expect((yield* messagesOf(effect)).map((params) => params.data)).toEqual([data])
      }
    }))

  it.effect("names the part of the server as logger", () =>
    Effect.gen(function*() {
      const part = Effect.andThen(Effect.logInfo("in"), Effect.logInfo("deep").pipe(Logging.named("cache")))
      const params = yield* messagesOf(Effect.andThen(part.pipe(Logging.named("database")), Effect.logInfo("out")))
      expect(params).toEqual([
        { level: "info", logger: "database", data: "in" },
        { level: "info", logger: "cache", data: "deep" },
        { level: "info", data: "out" }
      ])
    }))

  it.effect("does not contain the warning about the name of a tool that a handler adds", () =>
    Effect.gen(function*() {
      const bad = Tool.add(Tool.make("bad name"), () => Effect.succeed("called"))
      const adding = Tool.layer(Tool.make("t"), () => Effect.scoped(Effect.as(bad, "done")))
      const lines: Array<unknown> = []
      const logger = Logger.make<unknown, void>(({ message }) => void lines.push(message))
      const server = Layer.provideMerge(
        McpServer.layer({ name: "test", version: "1.0.0" }, adding),
        Logger.layer([logger])
      )
      expect(yield* ask(yield* kit.client(server), "debug")).toEqual([])
      expect(lines.flat()).toContain(`The tool name "bad name" should be 1 to 128 characters of A-Z a-z 0-9 _ - .`)
    }))

  it.effect("MUST NOT contain credentials or system details: no redacted values, stacks or withheld messages", () =>
    Effect.gen(function*() {
      const secret = Redacted.make("hunter2")
      const effect = Effect.gen(function*() {
        yield* Effect.logInfo("login", { password: secret }).pipe(Effect.annotateLogs("token", secret))
        yield* Effect.logError("failed", Cause.die(new Error("boom")))
        yield* Effect.logError(new Error("plain"))
        yield* Effect.logInfo("hunter2").pipe(Logging.withheld)
      })
      const params = yield* messagesOf(effect)
      expect(params.length).toBe(3)
      const text = JSON.stringify(params)
      expect(text).not.toContain("hunter2")
      expect(text).not.toContain(".ts")
      expect(text).not.toContain(" at ")
      expect(text).toContain("<redacted>")
    }))

  it.effect("is text for circles, functions, big numbers, throwing getters, maps, sets and dates", () =>
    Effect.gen(function*() {
      const circle: { self?: unknown } = {}
      circle.self = circle
      const odd = {
        circle,
        f: function named() {},
        symbol: Symbol("s"),
        big: 10n ** 30n,
        nan: NaN,
        nothing: undefined,
        map: new Map<unknown, unknown>([["a", 1], [2, "b"]]),
        set: new Set([1, 2]),
        date: new Date(0),
        error: new RangeError("r"),
        json: { toJSON: () => ({ written: true }) },
        ["__proto__"]: "own"
      }
      const hostile = Object.defineProperty({}, "x", {
        enumerable: true,
        get: () => {
          throw new Error("never")
        }
      })
      const [params] = yield* messagesOf(Effect.logInfo(odd, hostile))
      expect(params.data).toEqual([
        {
          circle: { self: "[Circular]" },
          f: "[Function named]",
          symbol: "Symbol(s)",
          big: "1000000000000000000000000000000",
          nan: "NaN",
          map: { a: 1, "2": "b" },
          set: [1, 2],
          date: "1970-01-01T00:00:00.000Z",
          error: "RangeError: r",
          json: { written: true },
          ["__proto__"]: "own"
        },
        "[Unreadable]"
      ])
    }))

  it.effect("has at most 16,384 characters of data, or maxChars", () =>
    Effect.gen(function*() {
      const wide = Object.fromEntries(Array.from({ length: 100_000 }, (_, i) => [`key${i}`, i]))
      const deep = Array.from({ length: 10_000 }).reduce<unknown>((inner) => [inner], "x")
      const values = [
        "x".repeat(1_000_000),
        wide,
        Array.from({ length: 100_000 }, () => "ab"),
        deep,
        "😀".repeat(50_000)
      ]
      for (const [maxSize, bound] of [[undefined, 16_384], [1000, 1000], [0, 256]] as const) {
        for (const value of values) {
          const [params] = yield* messagesOf(Effect.logInfo(value), { maxChars: maxSize })
          const size = JSON.stringify(params.data).length
          expect(size).toBeLessThanOrEqual(bound + 32)
          if (value !== deep) expect(size).toBeGreaterThan(bound * 0.5)
        }
        const [params] = yield* messagesOf(Effect.logInfo("x".repeat(1_000_000)), { maxChars: maxSize })
        expect(params.data.endsWith("x…")).toBe(true)
      }
    }))
})

describe("the application's own loggers", () => {
  const host = () => {
    const lines: Array<string> = []
    return { lines, logger: Logger.make<unknown, void>(({ message }) => void lines.push(String(message))) }
  }
  const usual = ["info", "notice", "warning", "error", "critical", "alert", "emergency"]

  for (const revision of ["2025-11-25", "2026-07-28"] as const) {
    it.effect(`${revision} · receive the same messages, regardless of the client's level`, () =>
      Effect.gen(function*() {
        const { lines, logger } = host()
        const client = yield* Effect.provide(kit.client(kit.server(logs(everything)), revision), Logger.layer([logger]))
        for (const level of [undefined, "emergency", "debug"] as const) {
          lines.length = 0
          yield* ask(client, level)
          expect(lines).toEqual(usual)
        }
      }))
  }

  it.effect("share a minimum level of the server's author with clients", () =>
    Effect.gen(function*() {
      const minimum = (level: "Warn" | "Debug" | "Trace") => Layer.succeed(References.MinimumLogLevel, level)
      const { lines, logger } = host()
      const build = (server: kit.Server) => Effect.provide(kit.client(server), Logger.layer([logger]))
      const whole = yield* build(Layer.provide(kit.server(logs(everything)), minimum("Warn")))
      expect((yield* ask(whole, "debug")).map(({ data }) => data)).toEqual(levels.slice(3))
      const one = yield* build(
        kit.server(Layer.provide(logs(everything, "quiet"), minimum("Warn")), logs(everything))
      )
      expect((yield* ask(one, "debug", "quiet")).map(({ data }) => data)).toEqual(levels.slice(3))
      expect((yield* ask(one, "debug")).length).toBe(9)
      // A lower minimum applies to the application's loggers, too.
      lines.length = 0
      const loud = yield* build(kit.server(Layer.provide(logs(everything), minimum("Trace"))))
      expect((yield* ask(loud, "debug")).length).toBe(9)
      expect(lines.slice(0, 3)).toEqual(["trace", "debug", "info"])
    }))

  it.effect("are replaced by the loggers of a definition, and its clients still receive the messages", () =>
    Effect.gen(function*() {
      for (const mergeWithExisting of [false, true]) {
        const { lines, logger } = host()
        const own = Layer.provide(logs(everything), Logger.layer([logger], { mergeWithExisting }))
        const client = yield* kit.client(kit.server(own))
        expect((yield* ask(client, "debug")).length).toBe(9)
        expect(lines).toEqual(usual)
        yield* ask(client, undefined)
        expect(lines).toEqual([...usual, ...usual])
      }
    }))

  it.effect("are those of the program that serves the connection, if the server has no loggers of its own", () =>
    Effect.gen(function*() {
      const { lines, logger } = host()
      const context = yield* Layer.build(kit.server(logs(everything)))
      const client = yield* Effect.provide(Effect.provide(kit.connect(), context), Logger.layer([logger]))
      expect((yield* ask(client, "debug")).length).toBe(9)
      expect(lines).toEqual(usual)
    }))
})

describe("slow readers", () => {
  it.effect("do not suspend a handler; dropped messages are counted, and reported once the client reads", () =>
    Effect.gen(function*() {
      let handled = false
      const work = Effect.gen(function*() {
        for (let i = 0; i < 1000; i++) yield* Effect.logInfo(i)
        handled = true
        yield* Effect.sleep("1 second")
        yield* Effect.logInfo("back")
      })
      const context = yield* Layer.build(kit.server(logs(work)))
      const server = Context.get(context, McpServer.McpServer)
      const [near, far] = yield* InMemoryTransport.make()
      const slow = new kit.SlowReader(near, 10)
      const client = new kit.Client(far, yield* server.serve(slow), "2026-07-28")
      slow.pause()
      const id = client.send("tools/call", { name: "t", _meta: { "io.modelcontextprotocol/logLevel": "error" } })
      const other = client.send("tools/call", { name: "t", _meta: { "io.modelcontextprotocol/logLevel": "info" } })
      yield* kit.settle
      expect(handled).toBe(true)
      slow.resume()
      yield* kit.settle
      const sent = client.notices(message).map(({ params }): kit.Json => params)
      expect(sent.slice(0, 10).map(({ data }) => data)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
      expect(sent.slice(10)).toEqual([
        { level: "warning", data: "990 log messages were dropped: the client was slow to read" }
      ])
      yield* TestClock.adjust("1 second")
      yield* client.answer(id)
      yield* client.answer(other)
      expect(client.notices(message).at(-1).params.data).toBe("back")
    }))
})
