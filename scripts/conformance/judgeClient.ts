/**
 * Judges `examples/everything-client`: every scenario except authorization, of both requirement sets and of the whole
 * suite at the older revisions.
 *
 * The suite starts a new client process for each scenario, with the command of `npm run everything-client` but without
 * npm.
 */
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { type Check, type Outcome, type Report, report, type Scenario } from "./report.ts"
import {
  failureReason,
  listAllScenarios,
  type ListedScenario,
  listScenarios,
  readChecks,
  runSuite,
  scenarioTimeout,
  type Selection,
  shorten
} from "./suite.ts"

const main = join(dirname(dirname(import.meta.dirname)), "examples", "everything-client", "main.ts")

/**
 * Quotes a word of a command for a shell. The suite splits the command at each space, joins it again, and passes it to
 * a shell.
 */
export const quoted = (word: string): string => `'${word.replaceAll("'", "'\\''")}'`
const clientCommand = `${quoted(process.execPath)} --conditions=@skein/source ${quoted(main)}`

/** The configurations of the client. */
const configurations = [
  { title: "revision given, over node:http", command: clientCommand },
  {
    title: "revision negotiated, over fetch",
    command: `env -u MCP_CONFORMANCE_PROTOCOL_VERSION ${clientCommand} --fetch`
  }
]

/** The selections to run, newest first. */
export const selections: ReadonlyArray<Selection> = [
  { revision: "2026-07-28" },
  { revision: "2025-11-25" },
  { revision: "2025-06-18", whole: true },
  { revision: "2025-03-26", whole: true }
]

/** The minimum number of checks per revision. */
const minChecks = {
  "2026-07-28": 55,
  "2026-07-28 unscored": 9,
  "2025-11-25": 11,
  "2025-11-25 unscored": 9,
  "2025-06-18": 3
}

/** How many scenarios run at the same time. Each consists of two processes that wait for each other. */
const concurrency = 2

const isOfAuthorization = ({ name }: ListedScenario): boolean => name.startsWith("auth/")

/** The skills extension, which belongs to no revision. */
const isOfSkills = ({ name }: ListedScenario): boolean => name.startsWith("sep-2640-")

/**
 * An additional check: the client process exits with 0. The suite does not check it, since a few scenarios allow a
 * client to give up. This client must not give up.
 */
const exitChecks = (stderr: string): ReadonlyArray<Check> => {
  const [, message] = /^((?:Client exited with code|Client timed out after)[^]*)/m.exec(stderr) ?? []
  if (message === undefined) return []
  const output = message.split(/^(?:Results saved to|Checks:)/m)[0] ?? ""
  return [{
    name: "ExitCode",
    description: "The client exits with 0",
    status: "FAILURE",
    errorMessage: shorten(output.trim())
  }]
}

/** Runs one scenario with the client that `command` starts. */
export const runOne = async (
  command: string,
  { revision }: Selection,
  one: ListedScenario,
  env: Readonly<Record<string, string>> = {}
): Promise<Scenario> => {
  const folder = await mkdtemp(join(tmpdir(), "skein-conformance-"))
  try {
    const args = ["--command", command, "--scenario", one.name, "--spec-version", revision]
    const output = await runSuite(["client", ...args, "--timeout", `${scenarioTimeout}`, "-o", folder], env)
    const checks = (await readChecks("client", folder)).get(one.name)
    return { ...one, checks: checks?.concat(exitChecks(output.stderr)) ?? failureReason(one.name, output) }
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

/** Splits the scenarios of a selection into those that run and those that are left out. */
export const planSelection = async (selection: Selection) => {
  const scenarios = await listScenarios("client", selection)
  return {
    selection,
    run: scenarios.filter((one) => !isOfAuthorization(one)),
    omitted: scenarios.filter(isOfAuthorization)
  }
}

const names = (scenarios: ReadonlyArray<ListedScenario>): string => scenarios.map(({ name }) => name).join(", ")

const judgeWith = async (env: Readonly<Record<string, string>>, width: number | undefined): Promise<Report> => {
  const plans = await Promise.all(selections.map(planSelection))
  const reports: Array<Report> = []
  for (const { command, title } of configurations) {
    const tasks = plans.flatMap(({ run, selection }) => run.map((one) => ({ one, selection })))
    const scenarios = await runConcurrently(tasks, ({ one, selection }) => runOne(command, selection, one, env))
    const outcomes = plans.map(({ selection }): Outcome => ({
      revision: selection.revision,
      label: selection.whole ? "all" : "scored",
      scenarios: scenarios.filter((_, index) => tasks[index]?.selection === selection)
    }))
    const { passed, text } = report(outcomes, { minChecks, width })
    reports.push({ passed, text: `${title}\n${text}\n` })
  }
  const planned = new Set(plans.flatMap(({ omitted, run }) => [...omitted, ...run]).map(({ name }) => name))
  const others = (await listAllScenarios("client")).filter(({ name }) => !planned.has(name))
  const unplanned = others.filter((one) => !isOfSkills(one))
  const notes = [
    ...plans.filter(({ omitted }) => omitted.length > 0).map(({ omitted, selection }) =>
      `Not run at ${selection.revision} (authorization): ${names(omitted)}`
    ),
    `Not run (skills extension, part of no revision): ${names(others.filter(isOfSkills))}`,
    ...(unplanned.length === 0 ? [] : [`✗ Scenarios in no selection: ${names(unplanned)}`])
  ]
  return {
    passed: unplanned.length === 0 && reports.every(({ passed }) => passed),
    text: [...reports.map(({ text }) => text), ...notes].join("\n")
  }
}

/** Judges the client in both configurations. `width` clips messages. */
export const judgeClient = async (width: number | undefined): Promise<Report> => {
  // The same two programs start thirty times; the cache keeps their compiled code.
  const cache = await mkdtemp(join(tmpdir(), "skein-conformance-"))
  try {
    return await judgeWith({ NODE_COMPILE_CACHE: cache }, width)
  } finally {
    await rm(cache, { recursive: true, force: true })
  }
}
