import { expect, it } from "@effect/vitest"
import * as AuditLog from "@skein/server/AuditLog"
import * as Effect from "effect/Effect"
import * as kit from "./kit.ts"
import * as tools from "./tools.ts"

const who = { principal: { id: "ada" } }

it.effect("2025-11-25, 2026-07-28 · SHOULD log task creation and retrieval, with the auth context: the audit log names the task", () =>
  Effect.gen(function*() {
    const entries: Array<AuditLog.Entry> = []
    const log = AuditLog.layer({ sink: (entry) => Effect.sync(() => void entries.push(entry)) })
    const { connect } = yield* kit.server([log, tools.gated().definition, tools.never])
    for (
      const [client, made] of [
        [yield* connect(who), (result: kit.Json) => result.taskId],
        [yield* connect({ ...who, revision: "2025-11-25" }), (result: kit.Json) => result.task.taskId]
      ] as const
    ) {
      entries.length = 0
      const id = made(yield* client.result("tools/call", { name: "bake", task: {} }))
      yield* kit.get(client, id)
      yield* client.result("tasks/cancel", { taskId: id })
      yield* client.call("never")
      // Eight characters identify the task, and are not enough to use it.
      const task = `${id.slice(0, 8)}…`
      expect(entries.map(({ method, principal, target, task }) => ({ method, principal, target, task }))).toEqual([
        { method: "tools/call", principal: "ada", target: "bake", task },
        { method: "tasks/get", principal: "ada", target: undefined, task },
        { method: "tasks/cancel", principal: "ada", target: undefined, task },
        { method: "tools/call", principal: "ada", target: "never", task: undefined }
      ])
      expect(JSON.stringify(entries)).not.toContain(id)
    }
  }))
