import { assert, describe, it } from "@effect/vitest"
import { formatReport, isConformant, judge, parseExpected } from "../src/internal/develop/conformanceReport.ts"

const check = (status: string, id = status, errorMessage?: string) => ({ id, name: id, status, errorMessage })

const results = [
  { name: "ping", checks: [check("SUCCESS"), check("INFO")] },
  { name: "tools-call", checks: [check("SUCCESS"), check("FAILURE", "text", "no text\nat all")] },
  { name: "logging", checks: [check("WARNING", "level", "should be sent")] },
  { name: "sse", checks: [check("SKIPPED")] },
  { name: "crashed", checks: [], problem: "fetch failed" }
]

const verdicts = (expected: ReadonlyArray<string>) =>
  Object.fromEntries(judge(results, new Set(expected)).map(({ scenario, verdict }) => [scenario, verdict]))

describe("the report of skein conformance", () => {
  it("judges scenarios by their checks", () => {
    assert.deepStrictEqual(verdicts([]), {
      crashed: "failed",
      logging: "warnings",
      ping: "passed",
      sse: "skipped",
      "tools-call": "failed"
    })
    assert.isFalse(isConformant(judge(results, new Set())))
  })

  it("excuses scenarios and single checks that are expected to fail, and rejects those that passed", () => {
    assert.deepInclude(verdicts(["crashed", "tools-call:text", "logging"]), {
      crashed: "expected",
      "tools-call": "expected",
      logging: "expected"
    })
    assert.isTrue(isConformant(judge(results, new Set(["crashed", "tools-call:text"]))))
    assert.deepInclude(verdicts(["ping", "tools-call:SUCCESS"]), { ping: "stale", "tools-call": "stale" })
    assert.isFalse(isConformant(judge(results.slice(0, 1), new Set(["ping"]))))
  })

  it("prints a table with the first problem of each scenario", () => {
    assert.strictEqual(
      formatReport(judge(results, new Set(["crashed"]))),
      [
        "SCENARIO    RESULT               CHECKS  FIRST PROBLEM",
        "crashed     failed, as expected  0/0     fetch failed",
        "logging     warnings             0/1     should be sent",
        "ping        passed               1/1",
        "sse         skipped              0/0",
        "tools-call  FAILED               1/2     no text at all",
        "",
        "5 scenarios: 1 passed; 1 warnings; 1 FAILED; 1 skipped; 1 failed, as expected"
      ].join("\n")
    )
  })

  it("reads the scenarios of servers in a file of expected failures", () => {
    const text = "# known\nserver:\n  - ping # slow\n  - 'tools-call:text'\nclient:\n  - sse-retry\n"
    assert.deepStrictEqual([...parseExpected(text)!], ["ping", "tools-call:text"])
    assert.deepStrictEqual([...parseExpected("server: []\nclient:\n  - a")!], [])
    assert.isUndefined(parseExpected("server: ping"))
    assert.isUndefined(parseExpected("- ping"))
  })
})
