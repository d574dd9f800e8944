/**
 * A call whose client is being asked when the call ends: whether the client refused, left, or is about to lose a server
 * that stops.
 */
import { describe, expect, it } from "@effect/vitest"
import type { Connection } from "@skein/runtime/Connection"
import * as InMemoryTransport from "@skein/runtime/InMemoryTransport"
import { ConnectionLost, TransportError } from "@skein/runtime/TransportError"
import * as Elicitation from "@skein/server/Elicitation"
import * as LegacySse from "@skein/server/LegacySse"
import * as McpServer from "@skein/server/McpServer"
import * as Roots from "@skein/server/Roots"
import * as Sampling from "@skein/server/Sampling"
import * as SqliteTasks from "@skein/tasks/SqliteTasks"
import * as Step from "@skein/tasks/Step"
import * as Task from "@skein/tasks/Task"
import { TaskEngine } from "@skein/tasks/TaskEngine"
import * as Tasks from "@skein/tasks/Tasks"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import { TestClock } from "effect/testing"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as http from "../../../server/test/http/kit.ts"
import * as asking from "../../../server/test/input/kit.ts"
import * as fake from "../fakeEngine.ts"
import * as kit from "./kit.ts"
import * as tools from "./tools.ts"

const form = Elicitation.form("Whose name?", { name: Schema.String })
const sample = Sampling.createMessage({ messages: "Which cake?", maxTokens: 10 })
const second = Elicitation.form("How many?", { people: Schema.Int })

/** The questions of each tool. */
const questions = {
  elicit: [form],
  sample: [sample],
  roots: [Roots.list()],
  several: [form, second, sample, Roots.list()]
} as const
type Name = keyof typeof questions

const definitions = (Object.keys(questions) as ReadonlyArray<Name>).map((name) =>
  Task.layer(Task.make(name), () =>
    Effect.as(
      Effect.all(questions[name] as ReadonlyArray<typeof form>, { concurrency: "unbounded" }),
      "asked"
    ))
)

const cases = [
  ["2024-11-05", "sample"],
  ["2024-11-05", "roots"],
  ["2025-03-26", "sample"],
  ["2025-06-18", "elicit"],
  ["2025-06-18", "several"],
  ["2025-11-25", "elicit"],
  ["2025-11-25", "sample"],
  ["2025-11-25", "roots"],
  ["2025-11-25", "several"]
] as const

const broken = new TransportError({ reason: new ConnectionLost({ message: "broken" }) })

/** A client that was asked all questions of a tool, and does not answer; and its task. */
const asked = (revision: (typeof cases)[number][0], name: Name, scope: Scope.Scope) =>
  Effect.gen(function*() {
    const { context, fake } = yield* kit.server(definitions)
    const client = yield* Effect.provide(asking.connect({ revision }), context).pipe(Scope.provide(scope))
    const requestId = client.send("tools/call", { name })
    yield* kit.settle
    expect(client.asked).toHaveLength(questions[name].length)
    const [row] = [...fake.rows.values()]
    return { client, fake, requestId, row: row! }
  })

describe("a call that is asked when it ends", () => {
  for (const [revision, name] of cases) {
    it.effect(`${revision} · ${name}: the server stops, and the questions stay open`, () =>
      Effect.gen(function*() {
        const scope = yield* Scope.make()
        const { client, fake, requestId, row } = yield* asked(revision, name, scope)
        yield* Scope.close(scope, Exit.void)
        yield* kit.settle
        expect([row.state.status, row.state.questions.length]).toEqual(["input_required", questions[name].length])
        expect(fake.answered).toEqual([])
        expect(client.received.filter(({ id, method }) => id === requestId && method === undefined)).toEqual([])
        // They are answered in another way.
        for (const { key } of row.state.questions) fake.answer(row.state.id, key, answerTo(key, row.state.questions))
        yield* kit.settle
        expect(row.history.filter((status) => status === "failed" || status === "cancelled")).toEqual([])
      }))

    for (const end of [{ _tag: "ClosedByPeer" }, { _tag: "Lost", cause: broken }] as const) {
      it.effect(`${revision} · ${name}: the client's connection ends (${end._tag}), and the task is cancelled, not refused`, () =>
        Effect.gen(function*() {
          const { client, fake, row } = yield* asked(revision, name, yield* Effect.scope)
          client.peer.close(end)
          yield* kit.settle
          yield* TestClock.adjust("5 seconds")
          yield* kit.settle
          expect([row.state.status, row.history.includes("failed")]).toEqual(["cancelled", false])
          expect(fake.answered).toEqual([])
        }))
    }

    it.effect(`${revision} · ${name}: the client cancels the call, and the task is cancelled, not refused`, () =>
      Effect.gen(function*() {
        const { client, fake, requestId, row } = yield* asked(revision, name, yield* Effect.scope)
        client.notify("notifications/cancelled", { requestId })
        yield* kit.settle
        expect([row.state.status, row.history.includes("failed")]).toEqual(["cancelled", false])
        expect(fake.answered).toEqual([])
      }))
  }

  it.effect("2025-11-25 · a peer whose end stops the server, as on stdio: the question stays open", () =>
    Effect.gen(function*() {
      const { fake, server } = yield* kit.server([tools.asking])
      const [near, far] = yield* InMemoryTransport.make()
      const { close, drained } = near
      const connection: Connection = {
        open: (receiver) => near.open(receiver),
        send: (message) => near.send(message),
        close,
        drained,
        stopsWithPeer: true
      }
      const client = new asking.Client(far, yield* server.serve(connection), { revision: "2025-11-25" })
      yield* client.once("initialize", { ...hello, capabilities: client.capabilities })
      client.notify("notifications/initialized", {})
      client.send("tools/call", { name: "asking" })
      yield* kit.settle
      yield* far.close
      yield* kit.settle
      yield* TestClock.adjust("5 seconds")
      yield* kit.settle
      const [row] = [...fake.rows.values()]
      expect([row!.state.status, fake.answered]).toEqual(["input_required", []])
    }))

  it.effect("2025-11-25 · an answer that arrives just before the end is stored", () =>
    Effect.gen(function*() {
      const { context, fake } = yield* kit.server([tools.asking])
      const scope = yield* Scope.make()
      const gate = Deferred.makeUnsafe<void>()
      fake.answering = Deferred.await(gate)
      const client = yield* Effect.provide(
        asking.connect({
          revision: "2025-11-25",
          answer: ({ params }) => params.message === "First?" ? asking.accept({ name: "a" }) : undefined
        }),
        context
      ).pipe(Scope.provide(scope))
      client.send("tools/call", { name: "asking" })
      yield* kit.settle
      const closing = yield* Effect.forkChild(Scope.close(scope, Exit.void))
      yield* kit.settle
      yield* Deferred.succeed(gate, undefined)
      yield* Fiber.join(closing)
      yield* kit.settle
      expect(fake.answered).toEqual([["first", asking.accept({ name: "a" })]])
      expect([...fake.rows.values()][0]!.state.questions.map(({ key }) => key)).toEqual(["second"])
    }))
})

const hello = { protocolVersion: "2025-11-25", clientInfo: { name: "test", version: "1" } }

const answerTo = (key: string, open: ReadonlyArray<{ readonly key: string; readonly method: string }>): kit.Json => {
  switch (open.find((question) => question.key === key)!.method) {
    case "sampling/createMessage":
      return { role: "assistant", model: "m", content: { type: "text", text: "Lemon" }, stopReason: "endTurn" }
    case "roots/list":
      return { roots: [] }
    default:
      return { action: "decline" }
  }
}

const capabilities = { elicitation: {} }
const until = (done: () => boolean): Effect.Effect<unknown> => Effect.repeat(Effect.sleep(2), { until: done })

/** Opens a session over Streamable HTTP, and returns the headers of its requests. */
const enter = (at: { readonly port: number }) =>
  Effect.gen(function*() {
    const opened = yield* http.post(at, {
      jsonrpc: "2.0",
      id: 0,
      method: "initialize",
      params: { ...hello, capabilities }
    })
    const session = String(opened.headers["mcp-session-id"])
    const headers = { ...http.posting, "mcp-session-id": session, "mcp-protocol-version": "2025-11-25" }
    yield* http.send(at, { headers, body: { jsonrpc: "2.0", method: "notifications/initialized" } })
    return headers
  })

const call = (name: string) => ({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name } })

describe("HTTP: a call whose client leaves", () => {
  const serve = (
    definition: McpServer.Definitions | Layer.Layer<never, unknown, never>,
    options: Parameters<typeof http.serve>[1] = {}
  ) =>
    Effect.gen(function*() {
      const engine = yield* Layer.build(fake.layer)
      const scope = yield* Scope.fork(yield* Effect.scope)
      const server = McpServer.layer({ name: "test", version: "1.0.0" }, definition as never, Tasks.layer())
      const at = yield* Scope.provide(
        http.serve(Layer.provide(server, Layer.succeedContext(engine)), { shutdownTimeout: "1 minute", ...options }),
        scope
      )
      return { at, fake: Context.get(engine, fake.FakeTasks), stop: Scope.close(scope, Exit.void) }
    })

  /** Begins to stop a server. It ends a stream without a call first. */
  const begin = (at: Parameters<typeof http.open>[0], stop: Effect.Effect<void>) =>
    Effect.gen(function*() {
      const idle = yield* http.open(at, { method: "GET", path: "/sse" })
      yield* idle.next
      const stopping = yield* Effect.forkChild(stop)
      yield* idle.ended
      return stopping
    })

  it.live("2025-11-25 · before it is asked: the call goes on, and the question stays open", () =>
    Effect.scoped(Effect.gen(function*() {
      const gate = Deferred.makeUnsafe<void>()
      const definition = Task.layer(
        Task.make("late"),
        () => Effect.as(Effect.andThen(Deferred.await(gate), form), "asked")
      )
      const { at, fake } = yield* serve(definition)
      const headers = yield* enter(at)
      const created = until(() => fake.rows.size === 1)
      yield* Effect.raceFirst(http.send(at, { headers, body: call("late") }), created)
      // The server notices the end of the connection.
      yield* Effect.sleep(50)
      yield* Deferred.succeed(gate, undefined)
      const [row] = [...fake.rows.values()]
      yield* until(() => row!.state.questions.length === 1)
      yield* Effect.sleep(50)
      expect([row!.state.status, fake.answered]).toEqual(["input_required", []])
      yield* http.send(at, { method: "DELETE", headers })
      yield* until(() => row!.state.status === "cancelled")
      expect(fake.answered).toEqual([])
    })))

  it.live("2026-07-28 · while the server stops: the task is not cancelled", () =>
    Effect.scoped(Effect.gen(function*() {
      const { definition, seen } = tools.gated()
      const { at, fake, stop } = yield* serve(definition, { legacySse: LegacySse.make() })
      const waiting = yield* Effect.forkScoped(http.send(at, http.modern("tools/call", { name: "bake" })))
      yield* until(() => seen.runs === 1)
      const stopping = yield* begin(at, stop)
      yield* Fiber.interrupt(waiting)
      yield* Fiber.join(stopping)
      expect([...fake.rows.values()].map(({ state: { status } }) => status)).toEqual(["working"])
    })))

  it.live("HTTP+SSE · while the server stops: the question stays open", () =>
    Effect.scoped(Effect.gen(function*() {
      const { at, fake, stop } = yield* serve(tools.asking, { legacySse: LegacySse.make() })
      const stream = yield* http.open(at, { method: "GET", path: "/sse" })
      const path = (yield* stream.next).data!
      const say = (body: kit.Json) => http.send(at, { path, headers: http.posting, body })
      yield* say({ jsonrpc: "2.0", id: 0, method: "initialize", params: { ...hello, capabilities } })
      yield* stream.message
      yield* say({ jsonrpc: "2.0", method: "notifications/initialized" })
      yield* say(call("asking"))
      yield* stream.message
      yield* stream.message
      const stopping = yield* begin(at, stop)
      stream.leave()
      yield* Fiber.join(stopping)
      const [row] = [...fake.rows.values()]
      expect(row!.history.filter((status) => status === "failed" || status === "cancelled")).toEqual([])
      expect(fake.answered).toEqual([])
    })))

  it.live("HTTP+SSE · while the server runs: the task is cancelled, not refused", () =>
    Effect.scoped(Effect.gen(function*() {
      const { at, fake } = yield* serve(tools.asking, { legacySse: LegacySse.make() })
      const stream = yield* http.open(at, { method: "GET", path: "/sse" })
      const path = (yield* stream.next).data!
      const say = (body: kit.Json) => http.send(at, { path, headers: http.posting, body })
      yield* say({ jsonrpc: "2.0", id: 0, method: "initialize", params: { ...hello, capabilities } })
      yield* stream.message
      yield* say({ jsonrpc: "2.0", method: "notifications/initialized" })
      yield* say(call("asking"))
      yield* stream.message
      stream.leave()
      const [row] = [...fake.rows.values()]
      yield* until(() => row!.state.status === "cancelled")
      expect([row!.history.includes("failed"), fake.answered]).toEqual([false, []])
    })))
})

describe("the order of a shutdown, while a call is asked", () => {
  const folder = Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "skein-order-"))),
    (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
  )

  /** Servers with one task on one file, one after the other; and its steps. */
  const servers = (ttl: Duration.Input) =>
    Effect.gen(function*() {
      const filename = join(yield* folder, "tasks.db")
      const log: Array<string> = []
      const write = (line: string) => Effect.sync(() => void log.push(line))
      const order = Task.layer(Task.make("order", { ttl }), () =>
        Effect.gen(function*() {
          yield* Step.run("oven", {}, () => write("oven on")).pipe(
            Step.withCompensation((_, why) => write(`oven off: ${why}`))
          )
          yield* form
          yield* Step.run("cake", {}, () => write("cake"))
          return "A cake"
        }))
      const server = McpServer.layer({ name: "test", version: "1" }, order, Tasks.layer())
      const start = Effect.gen(function*() {
        const all = yield* Effect.scope
        const scopes = { engine: yield* Scope.fork(all), server: yield* Scope.fork(all) }
        const context = yield* Scope.provide(
          Effect.orDie(Layer.build(SqliteTasks.layer({ filename, shutdownTimeout: 50, pollInterval: 50 }))),
          scopes.engine
        )
        const at = yield* Scope.provide(
          http.serve(Layer.provide(server, Layer.succeedContext(context)), { shutdownTimeout: 50 }),
          scopes.server
        )
        const stop = (...parts: ReadonlyArray<keyof typeof scopes>) =>
          Effect.forEach(parts, (part) => Scope.close(scopes[part], Exit.void), { discard: true })
        return { at, engine: Context.get(context, TaskEngine), stop }
      })
      return { log, start }
    })

  for (const first of ["the server", "the engine"] as const) {
    it.live(
      `2025-11-25 · ${first} first: the question is open in the next process, and its answer continues the task`,
      () =>
        Effect.scoped(Effect.gen(function*() {
          const { log, start } = yield* servers("1 hour")
          const one = yield* start
          const headers = yield* enter(one.at)
          const stream = yield* http.open(one.at, { headers, body: call("order") })
          expect((yield* stream.message).method).toBe("elicitation/create")
          const [task] = yield* one.engine.list([null], { limit: 1 })
          yield* first === "the engine" ? one.stop("engine", "server") : one.stop("server", "engine")
          expect(log).toEqual(["oven on"])
          const two = yield* start
          const state = (yield* two.engine.get(task!.id))!
          expect([state.status, state.questions.length]).toEqual(["input_required", 1])
          yield* two.engine.answer(state.id, state.questions[0]!.key, { action: "decline" })
          yield* until(() => log.includes("cake"))
          expect(log).toEqual(["oven on", "cake"])
          yield* two.stop("server", "engine")
        })),
      120_000
    )
  }

  it.live(
    "2025-11-25 · a question that nobody answers in the next process ends with the time to live of the task",
    () =>
      Effect.scoped(Effect.gen(function*() {
        const { log, start } = yield* servers("3 seconds")
        const one = yield* start
        const headers = yield* enter(one.at)
        const stream = yield* http.open(one.at, { headers, body: call("order") })
        expect((yield* stream.message).method).toBe("elicitation/create")
        const [task] = yield* one.engine.list([null], { limit: 1 })
        yield* one.stop("server", "engine")
        const two = yield* start
        yield* until(() => log.includes("oven off: cancelled"))
        expect(log).toEqual(["oven on", "oven off: cancelled"])
        yield* Effect.repeat(Effect.andThen(Effect.sleep(5), two.engine.get(task!.id)), {
          until: (state) => state === undefined
        })
        yield* two.stop("server", "engine")
      })),
    120_000
  )
})
