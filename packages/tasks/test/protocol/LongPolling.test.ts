import { expect, it } from "@effect/vitest"
import * as Task from "@skein/tasks/Task"
import * as TaskTools from "@skein/tasks/TaskTools"
import * as Effect from "effect/Effect"
import * as kit from "./kit.ts"

const slow = Task.layer(Task.make("slow"), () => Effect.never)

for (
  const [patience, most] of [["20 seconds", 20], ["1 day", 3600], [Infinity, 3600], ["500 millis", 0], [
    -1000,
    0
  ]] as const
) {
  it.effect(`with a waitTimeout of ${patience}, task_status waits ${most} seconds at most`, () =>
    Effect.scoped(Effect.gen(function*() {
      const { connect } = yield* kit.server([slow, TaskTools.layer({ waitTimeout: patience })])
      const client = yield* connect({ revision: "2025-06-18" })
      const { tools } = yield* client.result("tools/list")
      const look = tools.find(({ name }: kit.Json) => name === "task_status")
      expect(look.inputSchema.properties.waitSeconds).toMatchObject({ minimum: 0, maximum: most })
    })))
}
