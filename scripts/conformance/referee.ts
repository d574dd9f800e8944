/**
 * The referee, `@modelcontextprotocol/conformance`, as the process that it is.
 */
import { spawn } from "node:child_process"
import { readdir, readFile } from "node:fs/promises"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import type { Check, Scenario } from "./report.ts"

const manifest = fileURLToPath(import.meta.resolve("@modelcontextprotocol/conformance/package.json"))

/** The version of the referee that is installed. */
export const version = async (): Promise<string> => JSON.parse(await readFile(manifest, "utf8")).version

/** Which side is judged. */
export type Side = "server" | "client"

/** What to run: a revision's requirement set, or the whole suite at that revision. */
export interface Selection {
  readonly revision: string
  readonly whole?: boolean
}

/** What the referee said, and how it ended: 1 when a scenario failed. */
export interface Output {
  readonly stdout: string
  readonly stderr: string
  readonly code: number | null
}

/** How long the referee may take for a set, in milliseconds. One that passes takes seconds. */
const patience = 120_000

/** How long one scenario may take, in milliseconds. Those of tasks wait for some: five seconds at most. */
export const scenarioTimeout = 20_000

/** Runs the referee, with more in its environment. What its scenarios found is in its files. */
export const referee = (args: ReadonlyArray<string>, env: Readonly<Record<string, string>> = {}): Promise<Output> =>
  new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [join(dirname(manifest), "dist", "index.js"), ...args], {
      env: { ...process.env, ...env },
      stdio: ["ignore", "pipe", "pipe"],
      timeout: patience,
      killSignal: "SIGKILL"
    })
    let stdout = ""
    let stderr = ""
    child.stdout.setEncoding("utf8").on("data", (text: string) => stdout += text)
    child.stderr.setEncoding("utf8").on("data", (text: string) => stderr += text)
    child.on("error", reject)
    child.on("close", (code, signal) => {
      if (signal !== null) stderr += `\nthe referee was stopped after ${patience} ms (${signal})`
      resolve({ stdout, stderr, code })
    })
  })

/** A scenario that is listed. */
export type Listed = Pick<Scenario, "name" | "scored">

/**
 * Reads what `list` prints: under "Server scenarios" or "Client scenarios" those that count, and below those of either side that are
 * run without being counted.
 */
const listed = (text: string, side: Side): ReadonlyArray<Listed> => {
  const found: Array<Listed> = []
  let heading = ""
  for (const line of text.split("\n")) {
    if (/^\S.*:$/.test(line)) heading = line
    const counted = heading.toLowerCase().startsWith(`${side} scenarios`) ? /^ {2}- (\S+)/.exec(line) : null
    const uncounted = heading.startsWith("Run and reported") ? /^ {4}- (\S+) \[(\w+)\]$/.exec(line) : null
    const name = counted?.[1] ?? (uncounted?.[2] === side ? uncounted[1] : undefined)
    if (name !== undefined) found.push({ name, scored: counted !== null })
  }
  return found
}

const list = async (side: Side, what: string, args: ReadonlyArray<string>): Promise<ReadonlyArray<Listed>> => {
  const { stderr, stdout } = await referee(["list", ...args])
  const scenarios = listed(stdout, side)
  if (scenarios.length === 0) throw new Error(`The referee lists no scenario for ${what}:\n${stderr}`)
  return scenarios
}

/** The scenarios that a selection consists of. */
export const expected = (side: Side, { revision, whole }: Selection): Promise<ReadonlyArray<Listed>> =>
  list(side, revision, whole ? [`--${side}`, "--spec-version", revision] : ["--requirements", revision])

/** All scenarios that there are, of any revision and of none. */
export const all = (side: Side): Promise<ReadonlyArray<Listed>> => list(side, `a ${side}`, [`--${side}`])

/**
 * The checks of the scenarios that came to an end, from the files in `folder`: `server-<name>-<time>/checks.json`, and without the
 * `server-` for a client.
 */
export const read = async (side: Side, folder: string): Promise<ReadonlyMap<string, ReadonlyArray<Check>>> => {
  const checks = new Map<string, ReadonlyArray<Check>>()
  const before = side === "server" ? "server-" : ""
  for (const entry of await readdir(folder)) {
    const name = /^(.+)-\d{4}-\d\d-\d\dT[\d-]+Z$/.exec(entry)?.[1]
    if (name === undefined || !name.startsWith(before)) continue
    const text = await readFile(join(folder, entry, "checks.json"), "utf8").catch(() => undefined)
    if (text !== undefined) checks.set(name.slice(before.length), JSON.parse(text))
  }
  return checks
}

/** How a long text begins and ends. */
export const ends = (text: string): string => text.length > 400 ? `${text.slice(0, 200)} … ${text.slice(-200)}` : text

/** Why a scenario has left no file: what the referee said of it, else how it began and ended to complain. */
export const excuse = (name: string, { stderr }: Output): string =>
  `the scenario did not end: ${ends((stderr.split(`Failed to run scenario ${name}:`)[1] ?? stderr).trim())}`
