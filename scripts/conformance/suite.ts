/**
 * Runs the referee, `@modelcontextprotocol/conformance`, as the process that it is, and reads what it writes down.
 */
import { spawn } from "node:child_process"
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import type { Check, Outcome, Scenario } from "./report.ts"

const manifest = fileURLToPath(import.meta.resolve("@modelcontextprotocol/conformance/package.json"))

/** The version of the referee that is installed. */
export const version = async (): Promise<string> => JSON.parse(await readFile(manifest, "utf8")).version

/** What to run: a revision's requirement set, or the whole suite at that revision. */
export interface Selection {
  readonly revision: string
  readonly whole?: boolean
}

interface Output {
  readonly stdout: string
  readonly stderr: string
}

/** How long the referee may take for a set, in milliseconds. One that passes takes seconds. */
const patience = 120_000

/** How long one scenario may take, in milliseconds. None that passes needs more than two seconds. */
const scenarioTimeout = 20_000

/** Runs the referee. It exits 1 when a scenario fails, which its files say better, so that no exit code is read here. */
const referee = (args: ReadonlyArray<string>): Promise<Output> =>
  new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [join(dirname(manifest), "dist", "index.js"), ...args], {
      stdio: ["ignore", "pipe", "pipe"],
      timeout: patience,
      killSignal: "SIGKILL"
    })
    let stdout = ""
    let stderr = ""
    child.stdout.setEncoding("utf8").on("data", (text: string) => stdout += text)
    child.stderr.setEncoding("utf8").on("data", (text: string) => stderr += text)
    child.on("error", reject)
    child.on("close", (_, signal) => {
      if (signal !== null) stderr += `\nthe referee was stopped after ${patience} ms (${signal})`
      resolve({ stdout, stderr })
    })
  })

/**
 * Reads what `list` prints: under "Server scenarios" those that count, and below those of either side that are run without
 * being counted.
 */
const listed = (text: string): ReadonlyArray<Pick<Scenario, "name" | "scored">> => {
  const found: Array<Pick<Scenario, "name" | "scored">> = []
  let heading = ""
  for (const line of text.split("\n")) {
    if (/^\S.*:$/.test(line)) heading = line
    const counted = heading.startsWith("Server scenarios") ? /^ {2}- (\S+)/.exec(line) : null
    const uncounted = heading.startsWith("Run and reported") ? /^ {4}- (\S+) \[server\]$/.exec(line) : null
    const name = counted?.[1] ?? uncounted?.[1]
    if (name !== undefined) found.push({ name, scored: counted !== null })
  }
  return found
}

/** The checks of the scenarios that came to an end, from the files in `folder`: `server-<name>-<time>/checks.json`. */
const read = async (folder: string): Promise<ReadonlyMap<string, ReadonlyArray<Check>>> => {
  const checks = new Map<string, ReadonlyArray<Check>>()
  for (const entry of await readdir(folder)) {
    const name = /^server-(.+)-\d{4}-\d\d-\d\dT[\d-]+Z$/.exec(entry)?.[1]
    if (name === undefined) continue
    const text = await readFile(join(folder, entry, "checks.json"), "utf8").catch(() => undefined)
    if (text !== undefined) checks.set(name, JSON.parse(text))
  }
  return checks
}

/** Why a scenario has left no file: what the referee said of it, else how it began and ended to complain. */
const excuse = (name: string, { stderr }: Output): string => {
  const said = (stderr.split(`Failed to run scenario ${name}:`)[1] ?? stderr).trim()
  return `the scenario did not end: ${said.length > 400 ? `${said.slice(0, 200)} … ${said.slice(-200)}` : said}`
}

/** The scenarios that a selection consists of. */
export const expected = async ({ revision, whole }: Selection): Promise<ReturnType<typeof listed>> => {
  const list = await referee(
    whole ? ["list", "--server", "--spec-version", revision] : ["list", "--requirements", revision]
  )
  const scenarios = listed(list.stdout)
  if (scenarios.length === 0) throw new Error(`The referee lists no scenario for ${revision}:\n${list.stderr}`)
  return scenarios
}

/** Runs what is selected against the server at `url`. What ought to have run and did not is in the outcome, as failed. */
export const run = async (url: string, selection: Selection): Promise<Outcome> => {
  const { revision, whole = false } = selection
  const all = await expected(selection)
  const select = whole ? ["--suite", "all", "--spec-version", revision] : ["--requirements", revision]
  const folder = await mkdtemp(join(tmpdir(), "skein-conformance-"))
  try {
    const output = await referee(["server", "--url", url, ...select, "--timeout", `${scenarioTimeout}`, "-o", folder])
    const checks = await read(folder)
    const scenarios = all.map((one) => ({ ...one, checks: checks.get(one.name) ?? excuse(one.name, output) }))
    return { revision, label: whole ? "all" : "scored", scenarios }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}
