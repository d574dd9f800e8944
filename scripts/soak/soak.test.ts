import { describe, expect, it } from "@effect/vitest"
import { DeadlineError } from "../deadline.ts"
import { soakClient } from "./client/soakClient.ts"
import { growth } from "./server/heapSnapshot.ts"
import { type Plan, soakServer } from "./server/soakServer.ts"

const plan: Plan = { warmUp: 200, goal: 300, slices: 1, maxGrowth: 2_000_000, maxObjects: 100, args: ["--leak"] }

describe("soak", () => {
  it("reports a leaked timer of the server, and no other leak after abandoned sessions and streams", {
    timeout: 120_000
  }, async () => {
    const lines: Array<string> = []
    const problems = await soakServer(plan, (line) => lines.push(line))
    // With --leak one of the tools leaves a timer behind in each call.
    const [timers, objects, ...others] = problems.filter((problem) => !problem.startsWith(" "))
    expect(timers).toMatch(/^timers: \d+ instead of \d+$/)
    expect(objects).toMatch(/^heap: \d+ more of object Timeout/)
    expect(others).toEqual([])
    expect(lines[0]).toContain("fibers")
  })

  it(
    "reports no leak after clients were opened and closed, and their servers restarted",
    { timeout: 120_000 },
    async () => {
      const lines: Array<string> = []
      expect(await soakClient(0.01, (line) => lines.push(line))).toEqual([])
      expect(lines.map((line) => / {2,}\d+ (.*?) {2,}/.exec(line)?.[1])).toEqual([
        "clients in memory",
        "clients over HTTP, fetch",
        "clients over HTTP, node:http",
        "clients over stdio",
        "server restarts, 2025-11-25",
        "server restarts, 2026-07-28",
        "server restarts, 2025-11-25",
        "server restarts, 2026-07-28"
      ])
    }
  )

  it("reports leaked fibers, sockets, timers and listeners of the client", { timeout: 120_000 }, async () => {
    const problems = await soakClient(0.0001, () => {}, ["--leak"])
    const found = problems.map((problem) => /^ {2}clients in memory: (\w+): \d+ instead of \d+$/.exec(problem)?.[1])
    expect(found).toEqual(["fibers", "servers", "timers", "listeners"])
  })

  it("fails when the load does not end, with the running scenarios", { timeout: 120_000 }, async () => {
    const failure = await soakServer({ ...plan, maxSliceMillis: 1 }, () => {}).catch((error: unknown) => error)
    expect(failure).toBeInstanceOf(DeadlineError)
    expect(failure).toHaveProperty(
      "message",
      expect.stringMatching(
        /^the warm-up has not ended within 1 ms\nrunning scenarios:\n[^]*the state of the server: \{"/
      )
    )
  })

  it("fails when the program of the client half does not end, with its fibers", { timeout: 120_000 }, async () => {
    const failure = await soakClient(1, () => {}, [], 10_000).catch((error: unknown) => error)
    expect(failure).toBeInstanceOf(DeadlineError)
    expect(failure).toHaveProperty("message", expect.stringMatching(/within 10000 ms\nfibers of \d+:/))
  })

  it("lists the classes that have grown, the largest growth in bytes first", () => {
    const before = new Map([["object A", { count: 2, size: 20 }], ["object B", { count: 9, size: 90 }]])
    const after = new Map([
      ["object A", { count: 3, size: 30 }],
      ["object B", { count: 8, size: 80 }],
      ["string", { count: 1, size: 40 }]
    ])
    expect(growth(before, after)).toEqual([["string", { count: 1, size: 40 }], ["object A", { count: 1, size: 10 }]])
  })
})
