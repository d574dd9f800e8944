import { describe, expect, it } from "vitest"
import { type Check, isPassed, report, type Scenario } from "./report.ts"

const check = (status: Check["status"], errorMessage?: string): Check => ({
  name: "Checked",
  description: "The check's description",
  status,
  ...(errorMessage === undefined ? undefined : { errorMessage })
})
const scenario = (checks: Scenario["checks"], name = "ping", scored = true): Scenario => ({ name, scored, checks })
const success = check("SUCCESS")

describe("the report", () => {
  it("passes a scenario with at least one check and no failure", () => {
    expect(isPassed(scenario([success, check("INFO"), check("SKIPPED")]))).toBe(true)
    expect(isPassed(scenario([success, check("FAILURE")]))).toBe(false)
  })

  it("fails a scenario that warns, has no checks, or did not complete", () => {
    expect(isPassed(scenario([success, check("WARNING")]))).toBe(false)
    expect(isPassed(scenario([check("INFO")]))).toBe(false)
    expect(isPassed(scenario([]))).toBe(false)
    expect(isPassed(scenario("the scenario did not complete"))).toBe(false)
  })

  it("counts scored and unscored scenarios separately, and passes when all of them pass", () => {
    const scenarios = [scenario([success, success]), scenario([success], "more", false)]
    const { passed, text } = report([{ selection: "2025-11-25", label: "scored", scenarios }])
    expect(passed).toBe(true)
    expect(text).toMatch(/2025-11-25 +scored +1\/1 +2\/2\n +unscored +1\/1 +1\/1$/)
  })

  it("lists failed scenarios, scored or not, with one line per message", () => {
    const scenarios = [
      scenario([success, check("FAILURE", "not\n  so"), check("WARNING")]),
      scenario("the scenario did not complete", "more", false)
    ]
    const { passed, text } = report([{ selection: "2025-11-25", label: "scored", scenarios }])
    expect(passed).toBe(false)
    expect(text).toContain("0/1       1/3")
    expect(text).toContain("✗ 2025-11-25 ping\n    Checked: not so\n    Checked (a SHOULD): The check's description")
    expect(text).toContain("✗ 2025-11-25 more (unscored)\n    the scenario did not complete")
  })

  it("fails when fewer checks than minChecks were decided, even if all of them passed", () => {
    const scenarios = [scenario([success, check("INFO")]), scenario([success, success], "more", false)]
    const judge = (minimum: number) =>
      report([{ selection: "2025-11-25", label: "scored", scenarios }], {
        expected: { "2025-11-25": { minChecks: minimum } }
      })
    expect(judge(1).passed).toBe(true)
    expect(judge(2).passed).toBe(false)
    expect(judge(2).text).toContain("✗ 2025-11-25: 1 checks, expected at least 2")
    const unscored = report([{ selection: "2025-11-25", label: "scored", scenarios }], {
      expected: { "2025-11-25 unscored": { minChecks: 3 } }
    })
    expect(unscored.passed).toBe(false)
    expect(unscored.text).toContain("✗ 2025-11-25 unscored: 2 checks, expected at least 3")
    const none = report([{ selection: "2025-11-25", label: "scored", scenarios: [] }], {
      expected: { "2025-11-25": { minChecks: 1 } }
    })
    expect(none.passed).toBe(false)
  })

  it("fails when the number of scenarios is not the expected one, skipped scenarios included", () => {
    const skipped = scenario([check("SKIPPED")], "tasks-status-notifications", false)
    const scenarios = [scenario([success], "one", false), scenario([success], "more", false), skipped]
    const judge = (count: number) =>
      report([{ selection: "2026-07-28", label: "all", scenarios }], {
        expected: { "2026-07-28 unscored": { scenarios: count } }
      })
    expect(judge(3).passed).toBe(true)
    expect(judge(3).text).toContain("Skipped by the suite (2026-07-28): tasks-status-notifications")
    for (const count of [2, 4]) {
      expect(judge(count).passed).toBe(false)
      expect(judge(count).text).toContain(`✗ 2026-07-28 unscored: 3 scenarios, expected ${count}`)
    }
  })

  describe("with expected differences", () => {
    const judge = (checks: Scenario["checks"], name = "ping") =>
      report([{
        selection: "2025-11-25",
        label: "scored",
        scenarios: [scenario(checks, name), scenario([success], "pass")]
      }], {
        differences: { "2025-11-25": { ping: { Checked: "why it differs" } } }
      })

    it("passes if the listed checks fail and no others do, and prints the reasons", () => {
      for (const status of ["FAILURE", "WARNING"] as const) {
        const { passed, text } = judge([{ ...success, name: "Other" }, check(status, "not so")])
        expect(passed).toBe(true)
        expect(text).toMatch(/2025-11-25 +scored +1\/2 +2\/3\n/)
        expect(text).toContain("Expected differences (2025-11-25 ping):\n    Checked: why it differs")
        expect(text).not.toContain("✗")
      }
    })

    it("fails if another check fails, or a scenario does not complete", () => {
      const { passed, text } = judge([check("FAILURE", "not so"), { ...check("FAILURE", "too"), name: "Other" }])
      expect(passed).toBe(false)
      expect(text).toMatch(/✗ 2025-11-25 ping\n {4}Other: too$/)
      expect(judge("the scenario did not complete").passed).toBe(false)
    })

    it("fails if a listed check passes, is missing, or its scenario did not run", () => {
      for (const checks of [[success], [{ ...success, name: "Other" }]]) {
        const { passed, text } = judge(checks)
        expect(passed).toBe(false)
        expect(text).toContain("✗ 2025-11-25 ping\n    Checked: listed as an expected difference, but it does not fail")
      }
      const { passed, text } = judge([success], "more")
      expect(passed).toBe(false)
      expect(text).toContain("✗ 2025-11-25 ping: listed with expected differences, but it did not run")
    })
  })

  it("clips long messages", () => {
    const scenarios = [scenario([check("FAILURE", "x".repeat(1000))])]
    const { text } = report([{ selection: "2025-11-25", label: "scored", scenarios }], { width: 20 })
    expect(text).toMatch(/Checked: x{11}…$/)
  })

  it("lists tasks-status-notifications as skipped by the suite at 2026-07-28, unscored, and fails any other scenario without checks", () => {
    const judge = (selection: string, one: Scenario) => report([{ selection, label: "scored", scenarios: [one] }])
    const skipped = check("SKIPPED")
    const unimplemented = (checks: Scenario["checks"], scored = false) =>
      scenario(checks, "tasks-status-notifications", scored)
    const { passed, text } = judge("2026-07-28", unimplemented([skipped]))
    expect(passed).toBe(true)
    expect(text).toContain("Skipped by the suite (2026-07-28): tasks-status-notifications")
    for (const checks of [[skipped, check("FAILURE")], [check("INFO")], [], "the scenario did not complete"]) {
      expect(judge("2026-07-28", unimplemented(checks)).passed).toBe(false)
    }
    expect(judge("2026-07-28", unimplemented([skipped, success])).text).not.toContain("Skipped")
    expect(judge("2026-07-28", unimplemented([skipped], true)).passed).toBe(false)
    expect(judge("2025-11-25", unimplemented([skipped])).passed).toBe(false)
    expect(judge("2026-07-28", scenario([skipped], "tasks-lifecycle", false)).passed).toBe(false)
  })
})
