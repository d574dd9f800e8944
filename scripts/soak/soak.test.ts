import { describe, expect, it } from "@effect/vitest"
import { host } from "./client/process.ts"
import { type Plan, soak } from "./soak.ts"
import { growth } from "./snapshot.ts"

const plan: Plan = { warmUp: 200, goal: 300, slices: 1, maxGrowth: 2_000_000, maxObjects: 100, args: ["--leak"] }

describe("a soak", () => {
  it("sessions and streams that are dropped rudely leave nothing behind, and what would be left is found", {
    timeout: 120_000
  }, async () => {
    const lines: Array<string> = []
    const problems = await soak(plan, (line) => lines.push(line))
    // One of the tools forgets a timer in each call; nothing else is said to be wrong.
    const [timers, objects, ...others] = problems.filter((problem) => !problem.startsWith(" "))
    expect(timers).toMatch(/^timers: \d+, and not \d+$/)
    expect(objects).toMatch(/^\d+ more of: object Timeout/)
    expect(others).toEqual([])
    expect(lines[0]).toContain("fibers")
  })

  it(
    "clients that are opened and closed, and lose their servers, leave nothing behind",
    { timeout: 120_000 },
    async () => {
      const lines: Array<string> = []
      expect(await host(0.01, (line) => lines.push(line))).toEqual([])
      expect(lines.map((line) => / {2,}\d+ (.*?) {2,}/.exec(line)?.[1])).toEqual([
        "clients in memory",
        "clients over HTTP, by fetch",
        "clients over HTTP, by node:http",
        "clients over stdio",
        "servers lost, 2025-11-25",
        "servers lost, 2026-07-28",
        "servers lost, 2025-11-25",
        "servers lost, 2026-07-28"
      ])
    }
  )

  it("what a host would forget is found", { timeout: 120_000 }, async () => {
    const problems = await host(0.0001, () => {}, ["--leak"])
    const found = problems.map((problem) => /^ {2}clients in memory: (\w+): \d+, and not \d+$/.exec(problem)?.[1])
    expect(found).toEqual(["fibers", "servers", "timers", "listeners"])
  })

  it("what a heap has more is told by its size, the largest first", () => {
    const before = new Map([["object A", { count: 2, size: 20 }], ["object B", { count: 9, size: 90 }]])
    const after = new Map([
      ["object A", { count: 3, size: 30 }],
      ["object B", { count: 8, size: 80 }],
      ["string", { count: 1, size: 40 }]
    ])
    expect(growth(before, after)).toEqual([["string", { count: 1, size: 40 }], ["object A", { count: 1, size: 10 }]])
  })
})
