import { describe, expect, it } from "@effect/vitest"
import * as Elicitation from "@skein/server/Elicitation"
import * as McpServer from "@skein/server/McpServer"
import type * as NodeHttp from "@skein/server/NodeHttp"
import * as Progress from "@skein/server/Progress"
import * as MemoryTasks from "@skein/tasks/MemoryTasks"
import * as Task from "@skein/tasks/Task"
import * as Tasks from "@skein/tasks/Tasks"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import { type Child, run } from "../../../server/test/stdio/Child.ts"
import * as http from "../../../server/test/http/kit.ts"
import * as Talk from "../../../server/test/oracle.ts"
import * as kit from "./kit.ts"

/** A server on a free port, on the real engine, and the gates that its tools wait for. */
const serve = (options: NodeHttp.Options = {}) =>
  Effect.gen(function*() {
    const gate = Latch.makeUnsafe(false)
    const definitions = [
      Task.layer(Task.make("book"), () =>
        Effect.map(
          Elicitation.accepted(Elicitation.form("How many?", { people: Schema.Int })),
          ({ people }) => `A table for ${people}`
        )),
      Task.layer(Task.make("bake"), () =>
        Effect.gen(function*() {
          yield* Progress.report({ progress: 1, total: 2 })
          yield* gate.await
          return "A cake"
        }))
    ]
    const server = McpServer.layer({ name: "test", version: "1" }, ...definitions, Tasks.layer()).pipe(
      Layer.provide(MemoryTasks.layer({ pollInterval: "50 millis" }))
    )
    const listening = yield* http.serve(server, {
      principal: ({ headers }) => headers["x-user"] === undefined ? undefined : { id: String(headers["x-user"]) },
      ...options
    })
    return { gate, listening }
  })

type At = Effect.Success<ReturnType<typeof serve>>["listening"]

class Session {
  readonly #at: At
  readonly #headers: http.Request["headers"]
  #id = 0

  constructor(at: At, headers: http.Request["headers"]) {
    this.#at = at
    this.#headers = headers
  }

  request(method: string, params: kit.Json): http.Request {
    return { headers: { ...http.posting, ...this.#headers }, body: { jsonrpc: "2.0", id: ++this.#id, method, params } }
  }

  post(method: string, params: kit.Json): Effect.Effect<http.Reply> {
    return http.send(this.#at, this.request(method, params))
  }

  stream(method: string, params: kit.Json): Effect.Effect<http.Stream, never, Scope.Scope> {
    return http.open(this.#at, this.request(method, params))
  }

  listen(): Effect.Effect<http.Stream, never, Scope.Scope> {
    return http.open(this.#at, { method: "GET", headers: { accept: "text/event-stream", ...this.#headers } })
  }

  reply(id: unknown, result: kit.Json): Effect.Effect<http.Reply> {
    return http.send(this.#at, {
      headers: { ...http.posting, ...this.#headers },
      body: { jsonrpc: "2.0", id, result }
    })
  }

  make(name: string, more: kit.Json = {}): Effect.Effect<string> {
    return Effect.map(
      this.post("tools/call", { name, task: {}, ...more }),
      ({ json, messages }) => (json ?? messages.at(-1)).result.task.taskId
    )
  }
}

const enter = (at: At, capabilities: kit.Json = kit.forms, headers: http.Request["headers"] = {}) =>
  Effect.gen(function*() {
    const params = { protocolVersion: kit.revision, capabilities, clientInfo: { name: "test", version: "1" } }
    const body = { jsonrpc: "2.0", id: "init", method: "initialize", params }
    const opened = yield* http.send(at, { headers: { ...http.posting, ...headers }, body })
    const session = {
      ...headers,
      "mcp-session-id": String(opened.headers["mcp-session-id"]),
      "mcp-protocol-version": kit.revision
    }
    yield* http.send(at, {
      headers: { ...http.posting, ...session },
      body: { jsonrpc: "2.0", method: "notifications/initialized" }
    })
    return new Session(at, session)
  })

const until = (session: Session, taskId: string, status: string): Effect.Effect<void> =>
  Effect.flatMap(
    session.post("tasks/get", { taskId }),
    ({ json, messages }) =>
      (json ?? messages.at(-1)).result.status === status
        ? Effect.void
        : Effect.andThen(Effect.sleep(5), until(session, taskId, status))
  )

describe("2025-11-25 · tasks over Streamable HTTP", () => {
  it.live("servers SHOULD NOT upgrade to an SSE stream in response to `tasks/get`: it is one JSON text", () =>
    Effect.scoped(Effect.gen(function*() {
      const { listening } = yield* serve()
      const session = yield* enter(listening)
      const taskId = yield* session.make("book")
      yield* until(session, taskId, "input_required")
      for (const method of ["tasks/get", "tasks/cancel"]) {
        const reply = yield* session.post(method, { taskId })
        expect(reply.headers["content-type"]).toContain("application/json")
        expect(reply.json.result.taskId).toBe(taskId)
      }
    })))

  it.live("questions are sent on the stream of `tasks/result`, whose last message is the result", () =>
    Effect.scoped(Effect.gen(function*() {
      const { listening } = yield* serve()
      const session = yield* enter(listening)
      const taskId = yield* session.make("book")
      const stream = yield* session.stream("tasks/result", { taskId })
      expect(stream.headers["content-type"]).toContain("text/event-stream")
      const question = yield* stream.message
      Talk.serverMessage(kit.revision, question)
      expect(question.params._meta).toEqual({ [kit.relatedTask]: { taskId } })
      expect((yield* session.reply(question.id, kit.accept({ people: 5 }))).status).toBe(202)
      expect((yield* stream.message).result.content[0].text).toBe("A table for 5")
      expect(yield* stream.ended).toBe("end")
    })))

  it.live("a `tasks/result` without questions is one JSON text, or a stream if the endpoint always streams", () =>
    Effect.scoped(Effect.gen(function*() {
      for (const alwaysStream of [false, true]) {
        const { gate, listening } = yield* serve({ alwaysStream })
        const session = yield* enter(listening)
        const taskId = yield* session.make("bake")
        yield* Effect.forkChild(Effect.andThen(Effect.sleep(30), gate.open))
        const reply = yield* session.post("tasks/result", { taskId })
        expect(reply.headers["content-type"]).toContain(alwaysStream ? "text/event-stream" : "application/json")
        expect((reply.json ?? reply.messages.at(-1)).result.content[0].text).toBe("A cake")
      }
    })))

  it.live("clients MAY disconnect from the stream of `tasks/result` at any time: the next request asks the question again", () =>
    Effect.scoped(Effect.gen(function*() {
      const { listening } = yield* serve()
      const session = yield* enter(listening)
      const taskId = yield* session.make("book")
      const lost = yield* session.stream("tasks/result", { taskId })
      const first = yield* lost.message
      lost.leave()
      const stream = yield* session.stream("tasks/result", { taskId })
      const second = yield* stream.message
      expect(second.id).not.toBe(first.id)
      expect(second.params).toEqual(first.params)
      yield* session.reply(second.id, kit.accept({ people: 2 }))
      expect((yield* stream.message).result.content[0].text).toBe("A table for 2")
    })))

  it.live("a question that is answered elsewhere is withdrawn on its stream", () =>
    Effect.scoped(Effect.gen(function*() {
      const { listening } = yield* serve()
      const [one, other] = [yield* enter(listening), yield* enter(listening)]
      const taskId = yield* one.make("book")
      const first = yield* one.stream("tasks/result", { taskId })
      const question = yield* first.message
      const second = yield* other.stream("tasks/result", { taskId })
      const again = yield* second.message
      expect(yield* first.message).toMatchObject({ method: kit.cancelled, params: { requestId: question.id } })
      yield* other.reply(again.id, kit.accept({ people: 3 }))
      for (const stream of [first, second]) {
        expect((yield* stream.message).result.content[0].text).toBe("A table for 3")
      }
    })))

  it.live("notifications are sent on the stream by GET: progress with the token of the call, and the status", () =>
    Effect.scoped(Effect.gen(function*() {
      const { gate, listening } = yield* serve()
      const session = yield* enter(listening)
      const stream = yield* session.listen()
      const taskId = yield* session.make("bake", { _meta: { progressToken: "p" } })
      const progress = yield* stream.message
      expect(progress).toMatchObject({
        method: "notifications/progress",
        params: { progressToken: "p", progress: 1, total: 2, _meta: { [kit.relatedTask]: { taskId } } }
      })
      yield* gate.open
      let notice = yield* stream.message
      while (notice.params.status === "working") notice = yield* stream.message
      expect(notice).toMatchObject({ method: kit.status, params: { taskId, status: "completed" } })
      Talk.serverMessage(kit.revision, notice)
    })))

  it.live("without sessions a client cannot be asked: tasks without questions work, and can be read again", () =>
    Effect.scoped(Effect.gen(function*() {
      const { gate, listening } = yield* serve({ stateless: true })
      const lone = new Session(listening, { "mcp-protocol-version": kit.revision, "x-user": "ann" })
      const asking = yield* lone.make("book")
      yield* until(lone, asking, "failed")
      const taskId = yield* lone.make("bake")
      yield* gate.open
      const reply = yield* lone.post("tasks/result", { taskId })
      expect(reply.json.result.content[0].text).toBe("A cake")
      const other = new Session(listening, { "mcp-protocol-version": kit.revision, "x-user": "bob" })
      expect((yield* other.post("tasks/get", { taskId })).json.error.code).toBe(-32602)
      const { json } = yield* lone.post("tasks/list", {})
      expect(json.result.tasks.map((task: kit.Json) => task.taskId).toSorted()).toEqual([asking, taskId].toSorted())
    })))
})

const message = (child: Child, wanted: (message: kit.Json) => boolean): Effect.Effect<kit.Json> =>
  Effect.promise(() => child.stdout.when(() => child.messages().find(wanted)))

describe("2025-11-25 · tasks over stdio", () => {
  it.live("creates a task, asks, receives the answer, lists it, and returns its result", () =>
    Effect.gen(function*() {
      // From the folder of the fixtures, in which this runs.
      const child = run("../../../../tasks/test/legacy/fixtures/booking.ts")
      const say = (body: kit.Json) =>
        void child.process.stdin!.write(`${JSON.stringify({ jsonrpc: "2.0", ...body })}\n`)
      const ask = (id: number, method: string, params: kit.Json = {}) => {
        say({ id, method, params })
        return message(child, (message) => message.id === id && message.method === undefined)
      }
      const { result } = yield* ask(1, "initialize", {
        protocolVersion: kit.revision,
        capabilities: kit.forms,
        clientInfo: { name: "test", version: "1" }
      })
      expect(result.capabilities.tasks).toEqual({ list: {}, cancel: {}, requests: { tools: { call: {} } } })
      say({ method: "notifications/initialized" })
      const { taskId } = (yield* ask(2, "tools/call", { name: "book", task: {} })).result.task
      yield* message(child, ({ method, params }) => method === kit.status && params.status === "input_required")
      const waiting = ask(3, "tasks/result", { taskId })
      const question = yield* message(child, ({ method }) => method === "elicitation/create")
      say({ id: question.id, result: kit.accept({ people: 6 }) })
      expect((yield* waiting).result.content[0].text).toBe("A table for 6")
      expect((yield* ask(4, "tasks/list")).result.tasks).toMatchObject([{ taskId, status: "completed" }])
      expect((yield* ask(5, "tasks/cancel", { taskId })).error.code).toBe(-32602)
      child.process.stdin!.end()
      expect(yield* Effect.promise(() => child.exit)).toBe(0)
    }), 120_000)
})
