/** A scripted server with one task, in the form of either revision, and clients for it. */
import type * as JsonRpc from "@skein/protocol/JsonRpc"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import * as Client from "../../src/Client.ts"
import type { ClientError } from "../../src/ClientError.ts"
import type { RemoteTask, State } from "../../src/RemoteTask.ts"
import * as ScriptedServer from "@skein/testing/ScriptedServer"

export type Json = any

/** The two revisions that have tasks. */
export const shapes = ["2025-11-25", "2026-07-28"] as const
export type Shape = (typeof shapes)[number]

export const extension = "io.modelcontextprotocol/tasks"
const subscriptionId = "io.modelcontextprotocol/subscriptionId"

/** Lets pending messages arrive. A module that is loaded on demand needs turns of the event loop. */
export const settle = Effect.gen(function*() {
  yield* Effect.promise(() => import("../../src/internal/calls/tasks/taskClient.ts"))
  for (let turns = 0; turns < 5; turns++) {
    yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
    yield* TestClock.adjust(0)
  }
})

/** Advances the test clock and lets pending messages arrive. */
export const pass = (time: Duration.Input) => Effect.andThen(TestClock.adjust(time), settle)

export const result = (text: string, more?: Json): Json => ({ content: [{ type: "text", text }], ...more })

/** The state of the task, with the names of 2026-07-28. */
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
  readonly server: ScriptedServer.ScriptedServer
  readonly task: Task = {
    taskId: "t1",
    status: "working",
    ttlMs: null,
    pollIntervalMs: 1000,
    lastUpdatedAt: new Date(created).toISOString()
  }
  /** Scripts that replace the server's own response, by method. */
  readonly overrides: { [method: string]: ScriptedServer.Script | undefined } = {}
  support: string | undefined = "required"
  outputSchema: Json = undefined
  /** The input responses of the client, by key. */
  readonly inputResponses: { [key: string]: Json } = {}
  readonly subscriptions = new Map<JsonRpc.Id, ReadonlyArray<string>>()
  capabilities: Json = {
    tools: { listChanged: true },
    tasks: { list: {}, cancel: {}, requests: { tools: { call: {} } } },
    extensions: { [extension]: {} }
  }
  #changes = 0
  #blocked: Array<JsonRpc.Id> = []

  constructor(shape: Shape) {
    this.shape = shape
    this.server = ScriptedServer.make((request, server) => {
      const { method } = request
      const override = this.overrides[method]
      return override === undefined
        ? ScriptedServer.handshake(shape, (request) => this.#answer(request), this.capabilities)(request, server)
        : override(request, server)
    })
  }

  /** Changes the task, and responds to pending `tasks/result` requests once it is terminal. */
  update(change: Partial<Task>): void {
    Object.assign(this.task, change)
    this.#changes++
    this.task.lastUpdatedAt = new Date(created + this.#changes * 1000).toISOString()
    if (this.isTerminal) {
      for (const id of this.#blocked.splice(0)) this.#send(id, this.payload)
    }
  }

  get isTerminal(): boolean {
    return this.task.status !== "working" && this.task.status !== "input_required"
  }

  /** Notifies every subscriber of the task. */
  notify(): void {
    if (this.shape === "2025-11-25") return this.server.notify("notifications/tasks/status", this.wireTask)
    for (const id of this.subscriptions.keys()) {
      this.server.notify("notifications/tasks", { ...this.wireTask, _meta: { [subscriptionId]: id } })
    }
  }

  /** The task in the form of the revision. */
  get wireTask(): Json {
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

  get payload(): ScriptedServer.Reply {
    const { error, result, taskId } = this.task
    return error === undefined
      ? ScriptedServer.success({ ...result, _meta: { "io.modelcontextprotocol/related-task": { taskId } } })
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

  #send(id: JsonRpc.Id, reply: ScriptedServer.Reply): void {
    if (typeof reply === "string") return
    this.server.send(
      "result" in reply
        ? { _tag: "Success", id, result: reply.result }
        : { _tag: "Failure", id, error: reply.error }
    )
  }

  #answer({ id, method, params }: JsonRpc.Request): ScriptedServer.Reply {
    const modern = this.shape === "2026-07-28"
    const known = params?.["taskId"] === this.task.taskId
    const absent = ScriptedServer.failure(-32602, "Failed to retrieve task: Task not found")
    switch (method) {
      case "tools/list":
        return ScriptedServer.success({
          ...(modern ? { resultType: "complete", ttlMs: 0, cacheScope: "private" } : undefined),
          tools: [{
            name: "t",
            inputSchema: { type: "object" },
            ...(this.outputSchema === undefined ? undefined : { outputSchema: this.outputSchema }),
            ...(this.support === undefined ? undefined : { execution: { taskSupport: this.support } })
          }]
        })
      case "tools/call":
        if (modern) return ScriptedServer.success({ resultType: "task", ...this.wireTask })
        if (params!["task"] === undefined) {
          return this.support === "required"
            ? ScriptedServer.failure(-32601, "Tool t requires a task")
            : ScriptedServer.success(result("at once"))
        }
        return ScriptedServer.success({ task: this.wireTask })
      case "tasks/get":
        return known
          ? ScriptedServer.success({ ...(modern ? { resultType: "complete" } : undefined), ...this.wireTask })
          : absent
      case "tasks/result":
        if (!known) return absent
        if (this.isTerminal) return this.payload
        this.#blocked.push(id)
        return "no response"
      case "tasks/update":
        if (!known) return absent
        Object.assign(this.inputResponses, params!["inputResponses"])
        return ScriptedServer.success({ resultType: "complete" })
      case "tasks/cancel":
        if (!known) return absent
        if (this.isTerminal && !modern) {
          return ScriptedServer.failure(-32602, "Cannot cancel task: already in terminal status")
        }
        if (!this.isTerminal) this.update({ status: "cancelled" })
        return ScriptedServer.success(modern ? { resultType: "complete" } : this.wireTask)
      case "tasks/list":
        return ScriptedServer.success({ tasks: [this.wireTask] })
      case "subscriptions/listen": {
        const { taskIds } = params!["notifications"] as Json
        this.subscriptions.set(id, taskIds)
        this.server.notify("notifications/subscriptions/acknowledged", {
          _meta: { [subscriptionId]: id },
          notifications: { taskIds }
        })
        return "no response"
      }
      default:
        return ScriptedServer.methodNotFound(method)
    }
  }
}

/** Refuses `subscriptions/listen`. */
export const refuseSubscriptions: ScriptedServer.Script = ({ method }) => ScriptedServer.methodNotFound(method)

/** A server, and a client that has listed its tools. */
export const open = (shape: Shape, options?: Client.Options, change?: (server: TaskServer) => void) =>
  Effect.gen(function*() {
    const server = new TaskServer(shape)
    change?.(server)
    const client = yield* Client.make(server.server.transport, options)
    yield* client.listToolsPage()
    return { server, client }
  })

/** Runs an effect and reports its exit. */
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

/** Collects the states of a task until it is terminal. */
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

/** A call that became a task. */
export const started = (client: Client.Client, options?: Client.CallToolOptions) =>
  Effect.gen(function*() {
    const started = yield* client.startTask("t", {}, options)
    if (started._tag !== "RemoteTask") return yield* Effect.die("no task")
    return started
  })
