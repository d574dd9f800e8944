import { describe, expect, it } from "vitest"
import { runSelection } from "./judgeServer.ts"
import { report } from "./report.ts"
import { listScenarios, type Selection } from "./suite.ts"

describe("the conformance suite", () => {
  it("lists the scenarios of each selection, scored and unscored", async () => {
    const sizes = async (selection: Selection) => {
      const scenarios = await listScenarios("server", selection)
      const scored = scenarios.filter(({ scored }) => scored).length
      return [scored, scenarios.length - scored]
    }
    expect(await sizes({ revision: "2025-11-25" })).toEqual([30, 3])
    expect(await sizes({ revision: "2026-07-28" })).toEqual([37, 13])
    // Without the ten scenarios of the tasks extension.
    expect(await sizes({ revision: "2026-07-28", coreOnly: true })).toEqual([37, 3])
    expect(await sizes({ revision: "2025-06-18", whole: true })).toEqual([27, 0])
    expect(await sizes({ revision: "2025-03-26", whole: true })).toEqual([1, 0])
  })

  it("reports a scenario without a result file as failed, with the suite's message", async () => {
    // The suite rejects such a URL before it runs a scenario.
    const outcome = await runSelection("nowhere", { revision: "2025-03-26", whole: true })
    const reason = expect.stringMatching(/^the scenario did not complete: [^]*Invalid/)
    expect(outcome.scenarios).toEqual([{ name: "server-session-lifecycle", scored: true, checks: reason }])
    expect(report([outcome]).passed).toBe(false)
  })

  it("fails when no server listens at the URL", async () => {
    const outcome = await runSelection("http://127.0.0.1:1/mcp", { revision: "2025-03-26", whole: true })
    expect(report([outcome]).text).toContain("Failed to exercise session lifecycle")
  })
})
