import { execFile } from "node:child_process"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { describe, expect, it } from "vitest"
import { programs } from "../../examples/everything-client/programs.ts"
import { plan, quoted, runOne, selections } from "./client.ts"
import { type Check, isPassed, type Scenario } from "./report.ts"

const run = promisify(execFile)
const file = (name: string): string => fileURLToPath(new URL(name, import.meta.url))
const errors = ({ checks }: Scenario): ReadonlyArray<string | undefined> =>
  typeof checks === "string"
    ? [checks]
    : checks.filter(({ status }: Check) => status === "FAILURE").map((check) => check.errorMessage)
const one = { name: "tools_call", scored: true }

const plans = Promise.all(selections.map(plan))

describe("the client's leg", () => {
  it("runs what is not of authorization, and names what is", async () => {
    const [modern, session, older, oldest] = await plans
    const names = (scenarios: typeof modern.run, scored: boolean) =>
      scenarios.filter((one) => one.scored === scored).map(({ name }) => name).toSorted()
    expect(names(modern.run, true)).toEqual([
      "http-custom-headers",
      "http-invalid-tool-headers",
      "http-standard-headers",
      "json-schema-ref-no-deref",
      "request-metadata",
      "sep-2322-client-request-state",
      "tools_call"
    ])
    expect(names(session.run, true)).toEqual([
      "elicitation-sep1034-client-defaults",
      "initialize",
      "sse-retry",
      "tools_call"
    ])
    expect(names(modern.run, false)).toEqual(["json-schema-2020-12-preservation"])
    expect(names(session.run, false)).toEqual(["json-schema-2020-12-preservation"])
    expect(names(older.run, true)).toEqual(["initialize", "tools_call"])
    expect(oldest?.run).toEqual([])
    for (const { left } of [modern, session]) {
      expect(left.length).toBeGreaterThan(10)
      expect(left.filter(({ name }) => !name.startsWith("auth/"))).toEqual([])
    }
  })

  it("there is a program for each scenario that is run, and none without one", async () => {
    const names = new Set((await plans).flatMap(({ run }) => run.map(({ name }) => name)))
    expect(Object.keys(programs).toSorted()).toEqual([...names].toSorted())
  })

  it("the referee starts the client as anybody does: npm run -s everything-client -- <url>", async () => {
    const scenario = await runOne("npm run -s everything-client --", { revision: "2026-07-28" }, one)
    expect(errors(scenario)).toEqual([])
    expect(isPassed(scenario)).toBe(true)
  }, 30_000)

  it("a client that does nothing has not passed", async () => {
    const scenario = await runOne("true", { revision: "2026-07-28" }, one)
    expect(isPassed(scenario)).toBe(false)
  })

  it("a client that does everything and ends with an error has not passed, and what it said is told", async () => {
    const command = `sh ${quoted(file("fixtures/sulking.sh"))} ${quoted(process.execPath)}`
    const scenario = await runOne(command, { revision: "2026-07-28" }, one)
    expect(errors(scenario)).toEqual([expect.stringMatching(/Client exited with code 7[^]*I do not want to/)])
    expect(isPassed(scenario)).toBe(false)
  })

  it("the shell that the referee starts gets a path as it is, with spaces and quotes", async () => {
    const odd = "/Ada's  tea $HOUSE/node"
    // Cut and put together as the referee does it.
    const [command = "", ...rest] = `echo ${quoted(odd)}`.split(" ")
    const { stdout } = await run(command, rest, { shell: true })
    expect(stdout).toBe(`${odd}\n`)
  })

  it("a scenario that the referee does not know is in the outcome, as failed", async () => {
    const scenario = await runOne("true", { revision: "2026-07-28" }, { name: "juggling", scored: true })
    expect(scenario.checks).toMatch(/^the scenario did not end: /)
    expect(isPassed(scenario)).toBe(false)
  })
})
