import { execFile } from "node:child_process"
import { mkdtemp, readFile, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { describe, expect, it } from "vitest"
import { scenarios } from "../../examples/everything-client/scenarios.ts"
import { planSelection, quoted, runOne, selections } from "./judgeClient.ts"
import { runSuite } from "./suite.ts"
import { type Check, isPassed, type Scenario } from "./report.ts"

const run = promisify(execFile)
const file = (name: string): string => fileURLToPath(new URL(name, import.meta.url))
const errors = ({ checks }: Scenario): ReadonlyArray<string | undefined> =>
  typeof checks === "string"
    ? [checks]
    : checks.filter(({ status }: Check) => status === "FAILURE").map((check) => check.errorMessage)
const one = { name: "tools_call", scored: true }

const plans = Promise.all(selections.map(planSelection))

describe("judging the client", () => {
  it("runs all scenarios except authorization, and lists those", async () => {
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
    for (const { omitted } of [modern, session]) {
      expect(omitted.length).toBeGreaterThan(10)
      expect(omitted.filter(({ name }) => !name.startsWith("auth/"))).toEqual([])
    }
  })

  it("has one program per scenario that runs, and no others", async () => {
    const names = new Set((await plans).flatMap(({ run }) => run.map(({ name }) => name)))
    expect(Object.keys(scenarios).toSorted()).toEqual([...names].toSorted())
  })

  it("passes a scenario with the command npm run -s everything-client -- <url>", async () => {
    const scenario = await runOne("npm run -s everything-client --", { revision: "2026-07-28" }, one)
    expect(errors(scenario)).toEqual([])
    expect(isPassed(scenario)).toBe(true)
  }, 30_000)

  it("fails a client that sends no message", async () => {
    const scenario = await runOne("true", { revision: "2026-07-28" }, one)
    expect(isPassed(scenario)).toBe(false)
  })

  it("fails a client that passes all checks but exits with an error, and reports its stderr", async () => {
    const command = `sh ${quoted(file("fixtures/failingClient.sh"))} ${quoted(process.execPath)}`
    const scenario = await runOne(command, { revision: "2026-07-28" }, one)
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
      await expect.poll(state, { timeout: 20_000 }).toMatch(/^(Z.*\s*)?$/)
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
    const scenario = await runOne("true", { revision: "2026-07-28" }, { name: "unknown", scored: true })
    expect(scenario.checks).toMatch(/^the scenario did not complete: /)
    expect(isPassed(scenario)).toBe(false)
  })
})
