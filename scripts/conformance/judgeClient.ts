/**
 * Judges `examples/everything-client`: every scenario of both requirement sets, of the whole suite at the older revisions,
 * and of the suites `all`, `auth`, `extensions`, `backcompat` and `metadata`. A scenario that several of these selections
 * run at the same revision runs once, and counts in each of them.
 *
 * The suite starts a new client process for each scenario, with the command of `npm run everything-client` but without
 * npm.
 */
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { basename, dirname, join } from "node:path"
import { type Check, type Expectations, type Outcome, type Report, report, type Scenario } from "./report.ts"
import {
  failureReason,
  type ListedScenario,
  listScenarios,
  readChecks,
  runSuite,
  scenarioTimeout,
  shorten
} from "./suite.ts"

const main = join(dirname(dirname(import.meta.dirname)), "examples", "everything-client", "main.ts")

/**
 * Quotes a word of a command for a shell. The suite splits the command at each space, joins it again, and passes it to
 * a shell.
 */
export const quoted = (word: string): string => `'${word.replaceAll("'", "'\\''")}'`
/** The command that starts the client. */
export const clientCommand = `${quoted(process.execPath)} --conditions=@skein/source ${quoted(main)}`

/** The configurations of the client: by default it is judged in the first. */
const configurations = [
  { title: "revision given, over node:http", command: clientCommand },
  {
    title: "revision negotiated, over fetch",
    command: `env -u MCP_CONFORMANCE_PROTOCOL_VERSION ${clientCommand} --fetch`
  }
]

/** Scenarios to run: by a requirement set, by a revision, or by the name of a suite. */
export interface ClientSelection {
  /** The revision, or `suite <name>`. */
  readonly name: string
  /** The arguments that select the scenarios. */
  readonly args: ReadonlyArray<string>
  /** Whether the selection is the requirement set of the revision, which has scored and unscored scenarios. */
  readonly isRequirementSet: boolean
}

const requirements = (revision: string): ClientSelection => ({
  name: revision,
  args: ["--requirements", revision],
  isRequirementSet: true
})
const wholeRevision = (revision: string): ClientSelection => ({
  name: revision,
  args: ["--suite", "all", "--spec-version", revision],
  isRequirementSet: false
})
const suite = (name: string): ClientSelection => ({
  name: `suite ${name}`,
  args: ["--suite", name],
  isRequirementSet: false
})

/** The selections to run: revisions, newest first, then suites. */
export const selections: ReadonlyArray<ClientSelection> = [
  requirements("2026-07-28"),
  requirements("2025-11-25"),
  wholeRevision("2025-06-18"),
  wholeRevision("2025-03-26"),
  ...["all", "auth", "extensions", "backcompat", "metadata"].map(suite)
]

const expected: Expectations = {
  "2026-07-28": { scenarios: 32, minChecks: 408 },
  "2026-07-28 unscored": { scenarios: 7, minChecks: 66 },
  "2025-11-25": { scenarios: 18, minChecks: 243 },
  "2025-11-25 unscored": { scenarios: 7, minChecks: 68 },
  "2025-06-18": { scenarios: 5, minChecks: 60 },
  "2025-03-26": { scenarios: 2, minChecks: 19 },
  "suite all": { scenarios: 48, minChecks: 505 },
  "suite auth": { scenarios: 14, minChecks: 232 },
  "suite extensions": { scenarios: 6, minChecks: 59 },
  "suite backcompat": { scenarios: 2, minChecks: 19 },
  "suite metadata": { scenarios: 4, minChecks: 72 }
}

/** How many scenarios run at the same time. Each consists of two processes that wait for each other. */
const concurrency = 2

/**
 * The scenarios in which a client must refuse to go on: the authorization server or the metadata of the server is not
 * trustworthy, or the server requires further scopes again and again. There the client exits with 1.
 */
export const refusals: ReadonlySet<string> = new Set([
  "auth/iss-normalized",
  "auth/iss-supported-missing",
  "auth/iss-unexpected",
  "auth/iss-wrong-issuer",
  "auth/metadata-issuer-mismatch",
  "auth/resource-mismatch",
  "auth/scope-retry-limit"
])

/**
 * An additional check: the client process exits with 0, or with 1 in a scenario in which it must refuse to go on. The
 * suite does not check it, since a few scenarios allow a client to give up.
 */
const exitChecks = (name: string, stderr: string): ReadonlyArray<Check> => {
  const [, message] = /^((?:Client exited with code|Client timed out after)[^]*)/m.exec(stderr) ?? []
  const expected = refusals.has(name) ? 1 : 0
  if (expected === 0 ? message === undefined : message?.startsWith("Client exited with code 1\n")) return []
  const output = message?.split(/^(?:Results saved to|Checks:)/m)[0] ?? "Client exited with code 0"
  return [{
    name: "ExitCode",
    description: `The client exits with ${expected}`,
    status: "FAILURE",
    errorMessage: shorten(output.trim())
  }]
}

/** A scenario of a selection, with the revision that the suite runs it at. */
export interface PlannedScenario extends ListedScenario {
  readonly revision: string
}

/** Runs one scenario with the client that `command` starts. */
export const runOne = async (
  command: string,
  { name, revision, scored }: PlannedScenario,
  env: Readonly<Record<string, string>> = {}
): Promise<Scenario> => {
  const folder = await mkdtemp(join(tmpdir(), "skein-conformance-"))
  try {
    // A requirement set runs extensions, which belong to no revision, and a suite runs scenarios of all revisions. So does
    // `--force`.
    const args = ["--command", command, "--scenario", name, "--spec-version", revision, "--force"]
    const output = await runSuite(["client", ...args, "--timeout", `${scenarioTimeout}`, "-o", folder], env)
    const checks = (await readChecks("client", folder)).get(name)
    return {
      name,
      scored,
      checks: checks?.concat(exitChecks(name, output.stderr)) ?? failureReason(name, output)
    }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** Runs the tasks, `concurrency` at a time, and returns the results in the order of the tasks. */
const runConcurrently = async <A, B>(
  tasks: ReadonlyArray<A>,
  run: (task: A) => Promise<B>
): Promise<ReadonlyArray<B>> => {
  const results: Array<B> = []
  const pending = tasks.entries()
  const worker = async () => {
    for (const [index, task] of pending) results[index] = await run(task)
  }
  await Promise.all(Array.from({ length: concurrency }, worker))
  return results
}

/** A client that prints what the suite tells it. The suite appends its URL, which the shell reads as a comment. */
const planCommand = "printenv MCP_CONFORMANCE_SCENARIO MCP_CONFORMANCE_PROTOCOL_VERSION #"

/** The scenarios of a selection. The suite itself runs them, with a client that only prints their names and revisions. */
export const planSelection = async (
  { args, isRequirementSet, name }: ClientSelection
): Promise<ReadonlyArray<PlannedScenario>> => {
  const listed = isRequirementSet ? await listScenarios("client", { revision: name }) : []
  const unscored = new Set(listed.filter(({ scored }) => !scored).map(({ name }) => name))
  const folder = await mkdtemp(join(tmpdir(), "skein-conformance-"))
  try {
    const { stderr } = await runSuite(["client", ...args, "--command", planCommand, "-o", folder])
    const files = (await readdir(folder, { recursive: true })).filter((file) => basename(file) === "stdout.txt")
    const texts = await Promise.all(files.map((file) => readFile(join(folder, file), "utf8")))
    const planned = texts.toSorted().map((text): PlannedScenario => {
      const [scenario = "", revision = ""] = text.split("\n")
      return { name: scenario, revision, scored: !unscored.has(scenario) }
    })
    if (planned.length === 0) throw new Error(`the conformance suite runs no scenario of ${name}:\n${stderr}`)
    return planned
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

const keyOf = ({ name, revision }: PlannedScenario): string => `${name} ${revision}`

/** The scenarios of all selections, each once at each of its revisions. */
export const distinct = (plans: ReadonlyArray<ReadonlyArray<PlannedScenario>>): ReadonlyArray<PlannedScenario> => [
  ...new Map(plans.flat().map((one) => [keyOf(one), one])).values()
]

const judgeWith = async (
  env: Readonly<Record<string, string>>,
  width: number | undefined,
  all: boolean
): Promise<Report> => {
  const plans = await Promise.all(selections.map(planSelection))
  const tasks = distinct(plans)
  const reports: Array<Report> = []
  for (const { command, title } of all ? configurations : configurations.slice(0, 1)) {
    const results = await runConcurrently(tasks, (one) => runOne(command, one, env))
    const byKey = new Map(tasks.map((one, index) => [keyOf(one), results[index]!]))
    const outcomes = selections.map(({ isRequirementSet, name }, index): Outcome => ({
      selection: name,
      label: isRequirementSet ? "scored" : "all",
      scenarios: plans[index]!.map((one) => ({ ...byKey.get(keyOf(one))!, scored: one.scored }))
    }))
    const { passed, text } = report(outcomes, { expected, width })
    reports.push({ passed, text: `${title}\n${text}\n` })
  }
  return {
    passed: reports.every(({ passed }) => passed),
    text: [...reports.map(({ text }) => text), `${tasks.length} scenarios ran in each configuration`].join("\n")
  }
}

/** Judges the client, with `all` in both configurations. `width` clips messages. */
export const judgeClient = async (width: number | undefined, all = false): Promise<Report> => {
  // The same two programs start about 150 times; the cache keeps their compiled code.
  const cache = await mkdtemp(join(tmpdir(), "skein-conformance-"))
  try {
    return await judgeWith({ NODE_COMPILE_CACHE: cache }, width, all)
  } finally {
    await rm(cache, { recursive: true, force: true })
  }
}
