/**
 * Runs the official conformance suite, `@modelcontextprotocol/conformance`, as a child process, and reads its result
 * files.
 */
import { spawn } from "node:child_process"
import { readdir, readFile } from "node:fs/promises"
import { dirname, join, sep } from "node:path"
import { fileURLToPath } from "node:url"
import type { Check, Scenario } from "./report.ts"

const manifest = fileURLToPath(import.meta.resolve("@modelcontextprotocol/conformance/package.json"))

/** The installed version of the suite. */
export const suiteVersion = async (): Promise<string> => JSON.parse(await readFile(manifest, "utf8")).version

/** The side under test: an MCP server, an MCP client, or an authorization server. */
export type Side = "server" | "client" | "authorization"

/** The names of a side in the lists of the suite, and in its result folders. */
const namesOf: { readonly [side in Side]: { readonly heading: string; readonly prefix: string } } = {
  server: { heading: "server scenarios", prefix: "server-" },
  client: { heading: "client scenarios", prefix: "" },
  authorization: { heading: "authorization server scenarios", prefix: "authorization-server-" }
}

/** The scenarios to run: the requirement set of a revision or, with `whole`, all scenarios at that revision. */
export interface Selection {
  readonly revision: string
  readonly whole?: boolean
  /** Whether the scenarios of extensions, which a requirement set reports without scoring them, are left out. */
  readonly coreOnly?: boolean
}

/** The output of the suite and its exit code, which is 1 when a scenario failed. */
export interface Output {
  readonly stdout: string
  readonly stderr: string
  readonly code: number | null
}

/** How long a run of the suite may take, in milliseconds. A run that passes takes seconds. */
const suiteTimeout = 120_000

/** How long one scenario may take, in milliseconds. The longest, about tasks, wait five seconds. */
export const scenarioTimeout = 20_000

/**
 * Runs the suite with additional environment variables. The results of its scenarios are in its files, see
 * `readChecks`. After `timeout` milliseconds the suite is killed with its clients.
 */
export const runSuite = (
  args: ReadonlyArray<string>,
  env: Readonly<Record<string, string>> = {},
  timeout = suiteTimeout
): Promise<Output> =>
  new Promise((resolve, reject) => {
    // The suite leads a process group, which contains the clients that it starts: a client that outlives the suite would
    // keep its pipes open, and this promise would wait for them.
    const child = spawn(process.execPath, [join(dirname(manifest), "dist", "index.js"), ...args], {
      env: { ...process.env, ...env },
      stdio: ["ignore", "pipe", "pipe"],
      detached: true
    })
    const killGroup = () => {
      try {
        process.kill(-child.pid!, "SIGKILL")
      } catch {
        // The group has ended.
      }
    }
    const timer = setTimeout(killGroup, timeout)
    process.once("exit", killGroup)
    let stdout = ""
    let stderr = ""
    child.stdout.setEncoding("utf8").on("data", (text: string) => stdout += text)
    child.stderr.setEncoding("utf8").on("data", (text: string) => stderr += text)
    const release = () => {
      clearTimeout(timer)
      process.off("exit", killGroup)
    }
    child.on("error", (error) => {
      release()
      reject(error)
    })
    child.on("exit", killGroup)
    child.on("close", (code, signal) => {
      release()
      if (signal !== null) stderr += `\nthe conformance suite was killed after ${timeout} ms (${signal})`
      resolve({ stdout, stderr, code })
    })
  })

/** A scenario in the output of `list`. */
export type ListedScenario = Pick<Scenario, "name" | "scored">

/**
 * Parses the output of `list`. The scored scenarios are under "Server scenarios" or "Client scenarios". The unscored
 * ones of both sides are under "Run and reported".
 */
const parseList = (text: string, side: Side): ReadonlyArray<ListedScenario> => {
  const found: Array<ListedScenario> = []
  let heading = ""
  for (const line of text.split("\n")) {
    if (/^\S.*:$/.test(line)) heading = line
    const scored = heading.toLowerCase().startsWith(namesOf[side].heading) ? /^ {2}- (\S+)/.exec(line) : null
    const unscored = heading.startsWith("Run and reported") ? /^ {4}- (\S+) \[(\w+)\]$/.exec(line) : null
    const name = scored?.[1] ?? (unscored?.[2] === side ? unscored[1] : undefined)
    if (name !== undefined) found.push({ name, scored: scored !== null })
  }
  return found
}

const list = async (side: Side, what: string, args: ReadonlyArray<string>): Promise<ReadonlyArray<ListedScenario>> => {
  const { stderr, stdout } = await runSuite(["list", ...args])
  const scenarios = parseList(stdout, side)
  if (scenarios.length === 0) throw new Error(`the conformance suite lists no scenario for ${what}:\n${stderr}`)
  return scenarios
}

/** The scenarios of a selection. */
export const listScenarios = async (
  side: Side,
  { coreOnly = false, revision, whole = false }: Selection
): Promise<ReadonlyArray<ListedScenario>> => {
  const listWhole = () => list(side, revision, [`--${side}`, "--spec-version", revision])
  if (whole) return listWhole()
  const required = await list(side, revision, ["--requirements", revision])
  if (!coreOnly) return required
  // Only the scenarios of the core protocol have a revision.
  const core = new Set((await listWhole()).map(({ name }) => name))
  return required.filter(({ name }) => core.has(name))
}

/** All scenarios, including those of extensions that belong to no revision. */
export const listAllScenarios = (side: Side): Promise<ReadonlyArray<ListedScenario>> =>
  list(side, `the side ${side}`, [`--${side}`])

/**
 * Reads the checks of all completed scenarios from the result files in `folder`: `server-<name>-<time>/checks.json`,
 * without `server-` for a client. A name may contain a slash.
 */
export const readChecks = async (side: Side, folder: string): Promise<ReadonlyMap<string, ReadonlyArray<Check>>> => {
  const checks = new Map<string, ReadonlyArray<Check>>()
  const { prefix } = namesOf[side]
  for (const entry of await readdir(folder, { recursive: true })) {
    const name = /^(.+)-\d{4}-\d\d-\d\dT[\d-]+Z$/.exec(entry.replaceAll(sep, "/"))?.[1]
    if (name === undefined || !name.startsWith(prefix)) continue
    const text = await readFile(join(folder, entry, "checks.json"), "utf8").catch(() => undefined)
    if (text !== undefined) checks.set(name.slice(prefix.length), JSON.parse(text))
  }
  return checks
}

/** Shortens a long text to its beginning and its end. */
export const shorten = (text: string): string =>
  text.length > 400 ? `${text.slice(0, 200)} … ${text.slice(-200)}` : text

/**
 * Why a scenario has no result file: the suite's message about it if there is one, else the beginning and end of
 * stderr.
 */
export const failureReason = (name: string, { stderr }: Output): string =>
  `the scenario did not complete: ${shorten((stderr.split(`Failed to run scenario ${name}:`)[1] ?? stderr).trim())}`
