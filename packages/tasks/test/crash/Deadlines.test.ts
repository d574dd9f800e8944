/** The deadlines of `npm run crash`. */
import { describe, expect, it } from "vitest"
import { DeadlineError } from "../../../../scripts/deadline.ts"
import { required, unavailable } from "../../../sql/test/postgres.ts"
import { Caller } from "./postgres/caller.ts"
import { Parts, short } from "./postgres/run.ts"
import { watchForStandstill } from "./postgres/standstill.ts"

describe.skipIf(unavailable !== undefined && !required)("a part of the run on PostgreSQL", () => {
  it("fails at its deadline with the state of its tasks and processes, which end", { timeout: 180_000 }, async () => {
    const parts = new Parts({ ...short, workers: 1 }, () => {}, 10_000)
    const found = { task: "", pids: new Array<number>() }
    const hanging = parts.run("a part that does not end", async (fleet) => {
      found.pids.push(...[...fleet.workers].map(({ process }) => process.pid!), fleet.front!.process.pid!)
      const caller = await Caller.open(fleet.serverUrl)
      const { id } = await caller.start("held", { gates: ["outside"] })
      found.task = id
      fleet.describeStage = () => "it waits for a gate that nobody opens"
      return new Promise<never>(() => {})
    })
    await expect(hanging).rejects.toBeInstanceOf(DeadlineError)
    const [problem = "", ...more] = parts.problems
    expect(more).toEqual([])
    expect(problem).toContain("a part that does not end has not ended within 10000 ms")
    expect(problem).toContain("stage: it waits for a gate that nobody opens")
    expect(problem).toContain(`{"id":"${found.task}","tool":"held","status":"working"`)
    for (const pid of found.pids) {
      expect(problem).toContain(`process ${pid} (running)`)
      expect(problem).toContain(`fibers of ${pid}:`)
      expect(() => process.kill(pid, 0)).toThrow("ESRCH")
    }
    // The line at which the task waits in its handler.
    expect(problem).toMatch(/packages\/tasks\/test\/crash\/postgres\/tools\.ts:\d+/)
    await parts.close()
  })

  it("reports a task that no worker claims, and no task that a worker runs", { timeout: 180_000 }, async () => {
    const parts = new Parts({ ...short, workers: 1 }, () => {})
    const problems: Array<string> = []
    await parts.run("a standstill", async (fleet) => {
      const caller = await Caller.open(fleet.serverUrl)
      await caller.start("held", { gates: ["outside"] })
      await fleet.outside.until(() => fleet.outside.gates.length === 1, "at its gate")
      await fleet.query(
        "INSERT INTO skein_task_queue (task_id, pool, tool, state, wake_at) VALUES ('lonely', 'none', 'held', 0, 0)"
      )
      const watched = watchForStandstill(fleet, 1000)
      await new Promise((resolve) => setTimeout(resolve, 3000))
      problems.push(...await watched.stop())
      await caller.close()
      return ""
    })
    await parts.close()
    expect(parts.problems).toEqual([])
    expect(problems).toEqual([
      expect.stringMatching(/^a task stood still for \d+ s: lonely: nobody claims it \(run 0\)$/)
    ])
  })

  it("has new processes after a part that has failed", { timeout: 180_000 }, async () => {
    const lines: Array<string> = []
    const parts = new Parts({ ...short, workers: 1 }, (line) => lines.push(line))
    const urls: Array<string> = []
    await parts.run("the first part", ({ serverUrl }) => {
      urls.push(serverUrl)
      return Promise.reject(new Error("the first part is broken"))
    })
    await parts.run("the second part", ({ serverUrl }) => {
      urls.push(serverUrl)
      return Promise.resolve("passed")
    })
    await parts.close()
    expect(new Set(urls).size).toBe(2)
    expect(parts.problems.map((problem) => problem.split("\n")[0])).toEqual([
      "the first part: Error: the first part is broken"
    ])
    expect(lines.map((line) => line.replace(/[\d.]+ s$/, "… s"))).toEqual([
      "  the first part: failed; … s",
      "  the second part: passed; … s"
    ])
  })
})
