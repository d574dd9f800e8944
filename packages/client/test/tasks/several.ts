/** A scripted server of a stateless revision with several tasks at the same time. */
import type * as JsonRpc from "@skein/protocol/JsonRpc"
import * as ScriptedServer from "@skein/testing/ScriptedServer"
import { extension, type Json, result } from "./kit.ts"

const shape = "2026-07-28"
const subscriptionId = "io.modelcontextprotocol/subscriptionId"

/** A server on which each call becomes a task of its own: `t1`, `t2`, … */
export class SeveralTasks {
  readonly tasks = new Map<string, Json>()
  /** The requested task ids of each open subscription. */
  readonly open = new Map<JsonRpc.Id, ReadonlyArray<string>>()
  /** The maximum number of tasks that it acknowledges. */
  most = Infinity
  /** Whether it leaves further subscriptions unacknowledged. */
  slow = false
  readonly script = ScriptedServer.make(
    ScriptedServer.handshake(shape, (request) => this.#answer(request), { tools: {}, extensions: { [extension]: {} } })
  )

  #changes = 0

  update(id: string, change: Json): void {
    const time = new Date(Date.parse("2026-11-01T10:30:00Z") + ++this.#changes * 1000).toISOString()
    this.tasks.set(id, { ...this.tasks.get(id), lastUpdatedAt: time, ...change })
    for (const [listen, ids] of this.open) {
      if (!ids.includes(id)) continue
      this.script.notify("notifications/tasks", { ...this.tasks.get(id), _meta: { [subscriptionId]: listen } })
    }
  }

  finish(...ids: ReadonlyArray<string>): void {
    for (const id of ids) this.update(id, { status: "completed", result: result(id) })
  }

  agree(id: JsonRpc.Id, taskIds: ReadonlyArray<string>): void {
    this.script.notify("notifications/subscriptions/acknowledged", {
      _meta: { [subscriptionId]: id },
      notifications: { taskIds }
    })
    this.open.set(id, taskIds)
  }

  /** The requested task ids of all subscriptions, in order. */
  get asked(): ReadonlyArray<ReadonlyArray<string>> {
    return this.script.requests("subscriptions/listen").map(({ params }) => (params!["notifications"] as Json).taskIds)
  }

  /** The ids of cancelled subscriptions. */
  get left(): ReadonlyArray<JsonRpc.Id> {
    return this.script.received.flatMap((message) =>
      message._tag === "Notification" && message.method === "notifications/cancelled"
        ? [message.params!["requestId"] as JsonRpc.Id]
        : []
    )
  }

  /** The number of open subscriptions. */
  get standing(): number {
    const left = new Set(this.left)
    return [...this.open.keys()].filter((id) => !left.has(id)).length
  }

  looks(id: string): number {
    return this.script.requests("tasks/get").filter(({ params }) => params!["taskId"] === id).length
  }

  #answer({ id, method, params }: JsonRpc.Request): ScriptedServer.Reply {
    const taskId = (params as Json).taskId as string
    switch (method) {
      case "tools/call": {
        const taskId = `t${this.tasks.size + 1}`
        const at = "2026-11-01T10:30:00Z"
        const task = { taskId, status: "working", createdAt: at, lastUpdatedAt: at, ttlMs: null, pollIntervalMs: 1000 }
        this.tasks.set(taskId, task)
        return ScriptedServer.success({ resultType: "task", ...task })
      }
      case "tasks/get":
        return ScriptedServer.success({ resultType: "complete", ...this.tasks.get(taskId) })
      case "tasks/cancel":
        return ScriptedServer.success({ resultType: "complete" })
      case "subscriptions/listen": {
        const { taskIds } = params!["notifications"] as Json
        if (!this.slow) this.agree(id, taskIds.slice(0, this.most))
        return "no response"
      }
      default:
        return ScriptedServer.methodNotFound(method)
    }
  }
}
