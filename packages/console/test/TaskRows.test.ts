/** The rows of tasks whose steps are slow, or report heartbeats. */
import { describe, expect, it } from "@effect/vitest"
import type { ExecutingStep, InspectedTask } from "@skein/tasks/TaskAdmin"
import * as TaskRows from "../src/internal/tasks/taskRows.ts"

const now = 1_000_000
const step = (name: string, members: Partial<ExecutingStep> = {}): ExecutingStep => ({
  ...{ name, attempt: 1, startedAt: now - 5_001, medianMs: undefined, heartbeat: undefined },
  ...members
})

const task = (...steps: ReadonlyArray<ExecutingStep>) =>
  ({
    state: {
      ...{ id: "t".repeat(32), tool: "bake", pool: "default", owner: null, status: "working", createdAt: 0 },
      caller: { revision: "2026-07-28", capabilities: {}, info: undefined, principal: undefined }
    },
    ...{ labels: {}, events: 0, log: [], questions: [], needsAttention: false },
    place: { _tag: "Running", worker: "w", runs: 1, attempts: 0, process: undefined, steps }
  }) as unknown as InspectedTask

describe("steps that run", () => {
  it("a step that takes more than ten times its median is called slow", () => {
    const { details, more, waitsFor } = TaskRows.liveNode(now)(
      task(step("quick", { medianMs: 501 }), step("slow", { medianMs: 500 }), step("unknown"))
    )
    expect(waitsFor).toBe("step quick, step slow, which is slow, step unknown")
    expect(details!["steps"]).toMatch(
      /^quick, since [^;]*Z; slow, since [^;]*Z: slow, its median is 500 ms; unknown, since [^;]*Z$/
    )
    expect(more).toMatchObject({ total: 3 })
  })

  it("its rows have the last heartbeats, with details only if they were asked for", () => {
    const heartbeat = (details: string | undefined) => ({ heartbeat: { at: 0, details } })
    const { nodes } = TaskRows.toLogPage(
      "task/t",
      task(
        step("a", { ...heartbeat("{\"row\":7}"), medianMs: 1 }),
        step("b", heartbeat(undefined)),
        step("c", { attempt: 2 })
      ),
      now,
      TaskRows.start,
      10
    )
    const at = "1970-01-01T00:00:00.000Z"
    expect(nodes).toMatchObject([
      {
        ...{ id: "task/t/running/a", kind: "step", state: "running", since: now - 5_001 },
        summary: "slow: its median is 1 ms",
        details: { attempt: 1, heartbeat: at, "heartbeat details": "{\"row\":7}" }
      },
      { id: "task/t/running/b", summary: undefined, details: { attempt: 1, heartbeat: at } },
      { id: "task/t/running/c", details: { attempt: 2 } }
    ])
    expect(nodes[1]!.details).not.toHaveProperty("heartbeat details")
  })
})
