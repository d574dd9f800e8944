import { execFile } from "node:child_process"
import { mkdtemp, readFile, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { describe, expect, it } from "vitest"
import { programOf, scenarios } from "../../examples/everything-client/scenarios.ts"
import { clientCommand, distinct, planSelection, quoted, refusals, runOne, selections } from "./judgeClient.ts"
import { runSuite } from "./suite.ts"
import { type Check, isPassed, type Scenario } from "./report.ts"

const run = promisify(execFile)
const file = (name: string): string => fileURLToPath(new URL(name, import.meta.url))
const errors = ({ checks }: Scenario): ReadonlyArray<string | undefined> =>
  typeof checks === "string"
    ? [checks]
    : checks.filter(({ status }: Check) => status === "FAILURE").map((check) => check.errorMessage)
const one = { name: "tools_call", scored: true, revision: "2026-07-28" }

const plans = Promise.all(selections.map(planSelection))

describe("judging the client", () => {
  it("runs all scenarios of each revision and suite, scored and unscored", async () => {
    const counts = (await plans).map((run, index) => [
      selections[index]?.name,
      run.filter(({ scored }) => scored).length,
      run.filter(({ scored }) => !scored).length,
      run.filter(({ name }) => name.startsWith("auth/")).length
    ])
    expect(counts).toEqual([
      ["2026-07-28", 32, 7, 31],
      ["2025-11-25", 18, 7, 20],
      ["2025-06-18", 5, 0, 3],
      ["2025-03-26", 2, 0, 2],
      ["suite all", 48, 0, 33],
      ["suite auth", 14, 0, 14],
      ["suite extensions", 6, 0, 6],
      ["suite backcompat", 2, 0, 2],
      ["suite metadata", 4, 0, 4]
    ])
  }, 60_000)

  it("runs each scenario at the revision of the suite, and once for all selections", async () => {
    const all = await plans
    const revisionsOf = (index: number) => [...new Set(all[index]?.map(({ revision }) => revision))].toSorted()
    expect(selections.map((_, index) => revisionsOf(index))).toEqual([
      ["2026-07-28"],
      ["2025-11-25"],
      ["2025-06-18"],
      ["2025-03-26"],
      ["2025-11-25", "2026-07-28"],
      ["2025-11-25"],
      ["2025-11-25"],
      ["2025-11-25"],
      ["2025-11-25"]
    ])
    const revisions = selections.findIndex(({ name }) => name === "suite all")
    const added = distinct(all).slice(distinct(all.slice(0, revisions)).length)
    expect(added.map(({ name, revision }) => `${name} ${revision}`)).toEqual([
      "auth/2025-03-26-oauth-endpoint-fallback 2025-11-25",
      "auth/2025-03-26-oauth-metadata-backcompat 2025-11-25",
      "sep-2640-client-no-prefetch 2025-11-25",
      "sep-2640-client-verify-digest 2025-11-25",
      "sep-2640-client-verify-frontmatter 2025-11-25",
      "sep-2640-client-verify-size 2025-11-25"
    ])
  }, 60_000)

  it("has a program for each scenario that runs, and no others", async () => {
    const names = [...new Set((await plans).flatMap((run) => run.map(({ name }) => name)))]
    expect(names.filter((name) => programOf(name) === undefined)).toEqual([])
    expect(Object.keys(scenarios).filter((name) => !names.includes(name))).toEqual([])
    expect([...refusals].filter((name) => !names.includes(name))).toEqual([])
  }, 60_000)

  it("passes a scenario in which the client signs in, and again with further scopes", async () => {
    const scenario = await runOne(clientCommand, { ...one, name: "auth/scope-step-up" })
    expect(errors(scenario)).toEqual([])
    expect(isPassed(scenario)).toBe(true)
  }, 60_000)

  it("fails a client that exits with 0 where it must refuse to go on", async () => {
    const scenario = await runOne("true", { ...one, name: "auth/iss-wrong-issuer" })
    expect(errors(scenario)).toContain("Client exited with code 0")
  })

  it("passes a scenario with the command npm run -s everything-client -- <url>", async () => {
    const scenario = await runOne("npm run -s everything-client --", one)
    expect(errors(scenario)).toEqual([])
    expect(isPassed(scenario)).toBe(true)
  }, 120_000)

  it("fails a client that sends no message", async () => {
    const scenario = await runOne("true", one)
    expect(isPassed(scenario)).toBe(false)
  })

  it("fails a client that passes all checks but exits with an error, and reports its stderr", async () => {
    const command = `sh ${quoted(file("fixtures/failingClient.sh"))} ${quoted(process.execPath)}`
    const scenario = await runOne(command, one)
    expect(errors(scenario)).toEqual([expect.stringMatching(/Client exited with code 7[^]*exiting with an error/)])
    expect(isPassed(scenario)).toBe(false)
  })

  it("kills the suite after its time limit, together with the client that it has started", async () => {
    const folder = await mkdtemp(join(tmpdir(), "skein-conformance-"))
    try {
      const pidFile = join(folder, "pid")
      const command = `echo $$ > ${quoted(pidFile)}; exec sleep 1000 #`
      const args = ["--command", command, "--scenario", one.name, "--spec-version", "2026-07-28", "-o", folder]
      const { code, stderr } = await runSuite(["client", ...args, "--timeout", "600000"], {}, 5000)
      expect(code).toBe(null)
      expect(stderr).toContain("the conformance suite was killed after 5000 ms (SIGKILL)")
      const pid = Number(await readFile(pidFile, "utf8"))
      expect(pid).toBeGreaterThan(0)
      // A killed process has no state, or is a zombie until its new parent notices its end.
      const state = () => run("ps", ["-o", "stat=", "-p", String(pid)]).then(({ stdout }) => stdout, () => "")
      await expect.poll(state, { timeout: 60_000 }).toMatch(/^(Z.*\s*)?$/)
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
  }, 60_000)

  it("quotes a path with spaces and quotes for the suite's shell", async () => {
    const odd = "/Ada's  programs $HOME/node"
    // Split and joined as the suite does it.
    const [command = "", ...rest] = `echo ${quoted(odd)}`.split(" ")
    const { stdout } = await run(command, rest, { shell: true })
    expect(stdout).toBe(`${odd}\n`)
  })

  it("reports a scenario that the suite does not have as failed", async () => {
    const scenario = await runOne("true", { ...one, name: "unknown" })
    expect(scenario.checks).toMatch(/^the scenario did not complete: /)
    expect(isPassed(scenario)).toBe(false)
  })
})
