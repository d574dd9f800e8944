import { describe, expect, it } from "vitest"
import { type Check, isPassed, report, type Scenario } from "./report.ts"
import { expected, type Selection } from "./referee.ts"
import * as Suite from "./suite.ts"

const check = (status: Check["status"], errorMessage?: string): Check => ({
  name: "Checked",
  description: "It is looked at",
  status,
  ...(errorMessage === undefined ? undefined : { errorMessage })
})
const scenario = (checks: Scenario["checks"], name = "ping", scored = true): Scenario => ({ name, scored, checks })
const success = check("SUCCESS")

describe("the referee's report", () => {
  it("a scenario passes when something was checked and nothing failed", () => {
    expect(isPassed(scenario([success, check("INFO"), check("SKIPPED")]))).toBe(true)
    expect(isPassed(scenario([success, check("FAILURE")]))).toBe(false)
  })

  it("a warning, silence, and a scenario that did not end are failures", () => {
    expect(isPassed(scenario([success, check("WARNING")]))).toBe(false)
    expect(isPassed(scenario([check("INFO")]))).toBe(false)
    expect(isPassed(scenario([]))).toBe(false)
    expect(isPassed(scenario("the scenario did not end"))).toBe(false)
  })

  it("counts scored and unscored apart, and passes when all of them do", () => {
    const scenarios = [scenario([success, success]), scenario([success], "more", false)]
    const { passed, text } = report([{ revision: "2025-11-25", label: "scored", scenarios }])
    expect(passed).toBe(true)
    expect(text).toMatch(/2025-11-25 +scored +1\/1 +2\/2\n +unscored +1\/1 +1\/1$/)
  })

  it("names what failed, scored or not, with its messages on one line each", () => {
    const scenarios = [
      scenario([success, check("FAILURE", "not\n  so"), check("WARNING")]),
      scenario("the scenario did not end", "more", false)
    ]
    const { passed, text } = report([{ revision: "2025-11-25", label: "scored", scenarios }])
    expect(passed).toBe(false)
    expect(text).toContain("0/1       1/3")
    expect(text).toContain("✗ 2025-11-25 ping\n    Checked: not so\n    Checked (a SHOULD): It is looked at")
    expect(text).toContain("✗ 2025-11-25 more (unscored)\n    the scenario did not end")
  })

  it("fails when fewer checks were decided than ought to be, whatever they say", () => {
    const scenarios = [scenario([success, check("INFO")]), scenario([success, success], "more", false)]
    const judge = (least: number) =>
      report([{ revision: "2025-11-25", label: "scored", scenarios }], { least: { "2025-11-25": least } })
    expect(judge(1).passed).toBe(true)
    expect(judge(2).passed).toBe(false)
    expect(judge(2).text).toContain("✗ 2025-11-25: 1 checks, and not 2")
    const unscored = report([{ revision: "2025-11-25", label: "scored", scenarios }], {
      least: { "2025-11-25 unscored": 3 }
    })
    expect(unscored.passed).toBe(false)
    expect(unscored.text).toContain("✗ 2025-11-25 unscored: 2 checks, and not 3")
    const none = report([{ revision: "2025-11-25", label: "scored", scenarios: [] }], { least: { "2025-11-25": 1 } })
    expect(none.passed).toBe(false)
  })

  it("clips long messages", () => {
    const scenarios = [scenario([check("FAILURE", "x".repeat(1000))])]
    const { text } = report([{ revision: "2025-11-25", label: "scored", scenarios }], { width: 20 })
    expect(text).toMatch(/Checked: x{11}…$/)
  })

  it("says which scenario the referee itself skips as a whole, at 2026-07-28 and unscored, and lets no other be silent", () => {
    const judge = (revision: string, one: Scenario) => report([{ revision, label: "scored", scenarios: [one] }])
    const skipped = check("SKIPPED")
    const pending = (checks: Scenario["checks"], scored = false) =>
      scenario(checks, "tasks-status-notifications", scored)
    const { passed, text } = judge("2026-07-28", pending([skipped]))
    expect(passed).toBe(true)
    expect(text).toContain("Skipped by the referee itself at 2026-07-28, unscored: tasks-status-notifications")
    for (const checks of [[skipped, check("FAILURE")], [check("INFO")], [], "the scenario did not end"]) {
      expect(judge("2026-07-28", pending(checks)).passed).toBe(false)
    }
    expect(judge("2026-07-28", pending([skipped, success])).text).not.toContain("Skipped")
    expect(judge("2026-07-28", pending([skipped], true)).passed).toBe(false)
    expect(judge("2025-11-25", pending([skipped])).passed).toBe(false)
    expect(judge("2026-07-28", scenario([skipped], "tasks-lifecycle", false)).passed).toBe(false)
  })
})

describe("the referee", () => {
  it("lists the scenarios of each selection, those that count first", async () => {
    const sizes = async (selection: Selection) => {
      const scenarios = await expected("server", selection)
      const scored = scenarios.filter(({ scored }) => scored).length
      return [scored, scenarios.length - scored]
    }
    expect(await sizes({ revision: "2025-11-25" })).toEqual([30, 3])
    expect(await sizes({ revision: "2026-07-28" })).toEqual([37, 13])
    expect(await sizes({ revision: "2025-06-18", whole: true })).toEqual([27, 0])
    expect(await sizes({ revision: "2025-03-26", whole: true })).toEqual([1, 0])
  })

  it("a scenario that ought to have run and left nothing behind is in the outcome, with what the referee said", async () => {
    // The referee refuses to start with such an address, so that no scenario runs.
    const outcome = await Suite.run("nowhere", { revision: "2025-03-26", whole: true })
    const excuse = expect.stringMatching(/^the scenario did not end: [^]*Invalid/)
    expect(outcome.scenarios).toEqual([{ name: "server-session-lifecycle", scored: true, checks: excuse }])
    expect(report([outcome]).passed).toBe(false)
  })

  it("a server that is not there fails", async () => {
    const outcome = await Suite.run("http://127.0.0.1:1/mcp", { revision: "2025-03-26", whole: true })
    expect(report([outcome]).text).toContain("Failed to exercise session lifecycle")
  })
})
