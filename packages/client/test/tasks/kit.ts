/** What the tests of tasks share: a scripted server with one task in either shape, and a client of it. */
import type * as JsonRpc from "@skein/protocol/JsonRpc"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import * as Client from "../../src/Client.ts"
import type { ClientError } from "../../src/ClientError.ts"
import type { RemoteTask, State } from "../../src/RemoteTask.ts"
import { ok, refuse, type Reply, type Script, type Scripted, scripted, speaks, unknown } from "../support/scripted.ts"

export type Json = any

/** The two revisions that have tasks. */
export const shapes = ["2025-11-25", "2026-07-28"] as const
export type Shape = (typeof shapes)[number]

export const extension = "io.modelcontextprotocol/tasks"
const subscriptionId = "io.modelcontextprotocol/subscriptionId"

/** Lets whatever is under way arrive. What is loaded on demand takes a turn of the process. */
export const settle = Effect.gen(function*() {
  yield* Effect.promise(() => import("../../src/internal/tasks/taskClient.ts"))
  for (let turns = 0; turns < 5; turns++) {
    yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
    yield* TestClock.adjust(0)
  }
})

/** Lets a time pass, and everything that it wakes. */
export const pass = (time: Duration.Input) => Effect.andThen(TestClock.adjust(time), settle)

export const result = (text: string, more?: Json): Json => ({ content: [{ type: "text", text }], ...more })

/** What a scripted task is at some moment: the names are those of 2026-07-28. */
export interface Task {
  status: string
  statusMessage?: string
  ttlMs: Json
  pollIntervalMs?: Json
  result?: Json
  error?: Json
  inputRequests?: Json
  lastUpdatedAt: string
  taskId: Json
}

const created = Date.parse("2026-11-01T10:30:00Z")

/** A server with one tool, `t`, each call of which is the task `task`. */
export class TaskServer {
  readonly shape: Shape
  readonly server: Scripted
  readonly task: Task = {
    taskId: "t1",
    status: "working",
    ttlMs: null,
    pollIntervalMs: 1000,
    lastUpdatedAt: new Date(created).toISOString()
  }
  /** What is answered instead, by method. */
  readonly instead: { [method: string]: Script | undefined } = {}
  support: string | undefined = "required"
  outputSchema: Json = undefined
  /** What the client has answered, by key. */
  readonly answers: { [key: string]: Json } = {}
  readonly listening = new Map<JsonRpc.Id, ReadonlyArray<string>>()
  capabilities: Json = {
    tools: { listChanged: true },
    tasks: { list: {}, cancel: {}, requests: { tools: { call: {} } } },
    extensions: { [extension]: {} }
  }
  #changes = 0
  #blocked: Array<JsonRpc.Id> = []

  constructor(shape: Shape) {
    this.shape = shape
    this.server = scripted((request, server) => {
      const { method } = request
      const instead = this.instead[method]
      return instead === undefined
        ? speaks(shape, (request) => this.#answer(request), this.capabilities)(request, server)
        : instead(request, server)
    })
  }

  /** The task changes. */
  become(change: Partial<Task>): void {
    Object.assign(this.task, change)
    this.#changes++
    this.task.lastUpdatedAt = new Date(created + this.#changes * 1000).toISOString()
    if (this.over) {
      for (const id of this.#blocked.splice(0)) this.#send(id, this.payload)
    }
  }

  get over(): boolean {
    return this.task.status !== "working" && this.task.status !== "input_required"
  }

  /** Tells of it, whoever listens. */
  notify(): void {
    if (this.shape === "2025-11-25") return this.server.notify("notifications/tasks/status", this.told)
    for (const id of this.listening.keys()) {
      this.server.notify("notifications/tasks", { ...this.told, _meta: { [subscriptionId]: id } })
    }
  }

  /** The task as this shape tells it. */
  get told(): Json {
    const { error, inputRequests, pollIntervalMs, result, ttlMs, ...task } = this.task
    const common = { ...task, createdAt: new Date(created).toISOString() }
    if (this.shape === "2025-11-25") {
      const failed = task.status === "completed" && result?.isError === true
      return {
        ...common,
        ttl: ttlMs,
        ...(pollIntervalMs === undefined ? undefined : { pollInterval: pollIntervalMs }),
        ...(failed ? { status: "failed" } : undefined)
      }
    }
    return {
      ...common,
      ttlMs,
      ...(pollIntervalMs === undefined ? undefined : { pollIntervalMs }),
      ...(task.status === "completed" ? { result } : undefined),
      ...(task.status === "failed" ? { error } : undefined),
      ...(task.status === "input_required" ? { inputRequests: inputRequests ?? {} } : undefined)
    }
  }

  get payload(): Reply {
    const { error, result, taskId } = this.task
    return error === undefined
      ? ok({ ...result, _meta: { "io.modelcontextprotocol/related-task": { taskId } } })
      : { error }
  }

  get methods(): ReadonlyArray<string> {
    return this.server.methods.filter((method) =>
      !["server/discover", "initialize", "notifications/initialized"].includes(method)
    )
  }

  count(method: string): number {
    return this.server.requests(method).length
  }

  #send(id: JsonRpc.Id, reply: Reply): void {
    if (typeof reply === "string") return
    this.server.send(
      "result" in reply
        ? { _tag: "Success", id, result: reply.result }
        : { _tag: "Failure", id, error: reply.error }
    )
  }

  #answer({ id, method, params }: JsonRpc.Request): Reply {
    const modern = this.shape === "2026-07-28"
    const known = params?.["taskId"] === this.task.taskId
    const absent = refuse(-32602, "Failed to retrieve task: Task not found")
    switch (method) {
      case "tools/list":
        return ok({
          ...(modern ? { resultType: "complete", ttlMs: 0, cacheScope: "private" } : undefined),
          tools: [{
            name: "t",
            inputSchema: { type: "object" },
            ...(this.outputSchema === undefined ? undefined : { outputSchema: this.outputSchema }),
            ...(this.support === undefined ? undefined : { execution: { taskSupport: this.support } })
          }]
        })
      case "tools/call":
        if (modern) return ok({ resultType: "task", ...this.told })
        if (params!["task"] === undefined) {
          return this.support === "required" ? refuse(-32601, "Tool t requires a task") : ok(result("at once"))
        }
        return ok({ task: this.told })
      case "tasks/get":
        return known ? ok({ ...(modern ? { resultType: "complete" } : undefined), ...this.told }) : absent
      case "tasks/result":
        if (!known) return absent
        if (this.over) return this.payload
        this.#blocked.push(id)
        return "silence"
      case "tasks/update":
        if (!known) return absent
        Object.assign(this.answers, params!["inputResponses"])
        return ok({ resultType: "complete" })
      case "tasks/cancel":
        if (!known) return absent
        if (this.over && !modern) return refuse(-32602, "Cannot cancel task: already in terminal status")
        if (!this.over) this.become({ status: "cancelled" })
        return ok(modern ? { resultType: "complete" } : this.told)
      case "tasks/list":
        return ok({ tasks: [this.told] })
      case "subscriptions/listen": {
        const { taskIds } = params!["notifications"] as Json
        this.listening.set(id, taskIds)
        this.server.notify("notifications/subscriptions/acknowledged", {
          _meta: { [subscriptionId]: id },
          notifications: { taskIds }
        })
        return "silence"
      }
      default:
        return unknown(method)
    }
  }
}

/** Refuses to be listened to. */
export const deaf: Script = ({ method }) => unknown(method)

/** A server, and a client of it. The client has seen the tools. */
export const open = (shape: Shape, options?: Client.Options, change?: (server: TaskServer) => void) =>
  Effect.gen(function*() {
    const server = new TaskServer(shape)
    change?.(server)
    const client = yield* Client.make(server.server.transport, options)
    yield* client.listToolsPage()
    return { server, client }
  })

/** Runs something to its end, and says how. */
export const run = <A>(effect: Effect.Effect<A, ClientError>) =>
  Effect.gen(function*() {
    const fiber = yield* Effect.forkChild(Effect.result(effect), { startImmediately: true })
    yield* settle
    return {
      fiber,
      get done() {
        return fiber.pollUnsafe() !== undefined
      },
      value: Effect.flatMap(Fiber.join(fiber), Effect.fromResult),
      error: Effect.flip(Effect.flatMap(Fiber.join(fiber), Effect.fromResult)),
      stop: Effect.andThen(Fiber.interrupt(fiber), settle)
    }
  })

/** The states of a task as they come, until it is over. */
export const watch = (task: RemoteTask) =>
  Effect.gen(function*() {
    const states: Array<State> = []
    const ran = yield* run(Stream.runForEach(task.states, (state) => Effect.sync(() => states.push(state))))
    return {
      ...ran,
      states,
      get statuses() {
        return states.map(({ status }) => status)
      }
    }
  })

/** A call that has become a task. */
export const started = (client: Client.Client, options?: Client.CallToolOptions) =>
  Effect.gen(function*() {
    const started = yield* client.startTask("t", {}, options)
    if (started._tag !== "RemoteTask") return yield* Effect.die("no task")
    return started
  })
