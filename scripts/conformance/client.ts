/**
 * The client's leg: every scenario outside of authorization, of both requirement sets and of the suite at the older revisions, run by
 * `examples/everything-client`.
 *
 * The referee starts the client anew for each scenario, which it does as `npm run` would, but without npm.
 */
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { all, ends, excuse, expected, type Listed, read, referee, scenarioTimeout, type Selection } from "./referee.ts"
import { type Check, type Outcome, type Report, report, type Scenario } from "./report.ts"

const main = join(dirname(dirname(import.meta.dirname)), "examples", "everything-client", "main.ts")

/** A word of a command, which the referee cuts at each space, puts together again, and hands to a shell. */
export const quoted = (word: string): string => `'${word.replaceAll("'", "'\\''")}'`
const direct = `${quoted(process.execPath)} --conditions=@skein/source ${quoted(main)}`

/** The ways that the client goes. */
const ways = [
  { title: "told what to speak, over the sockets of Node", command: direct },
  {
    title: "finding out what to speak, over fetch",
    command: `env -u MCP_CONFORMANCE_PROTOCOL_VERSION ${direct} --fetch`
  }
]

/** What is run, newest first. */
export const selections: ReadonlyArray<Selection> = [
  { revision: "2026-07-28" },
  { revision: "2025-11-25" },
  { revision: "2025-06-18", whole: true },
  { revision: "2025-03-26", whole: true }
]

/** How many checks there are. */
const least = {
  "2026-07-28": 55,
  "2026-07-28 unscored": 9,
  "2025-11-25": 11,
  "2025-11-25 unscored": 9,
  "2025-06-18": 3
}

/** How many scenarios run at the same time. Each is two processes, that wait for each other. */
const lanes = 2

const isOfAuthorization = ({ name }: Listed): boolean => name.startsWith("auth/")

/** An extension that is no part of any revision: skills. */
const isOfSkills = ({ name }: Listed): boolean => name.startsWith("sep-2640-")

/**
 * That the client did not end well is no check of the referee's: it is one here. A few scenarios allow it, since a client may well
 * give up there; this one does not have to.
 */
const ending = (stderr: string): ReadonlyArray<Check> => {
  const [, how] = /^((?:Client exited with code|Client timed out after)[^]*)/m.exec(stderr) ?? []
  if (how === undefined) return []
  const said = how.split(/^(?:Results saved to|Checks:)/m)[0] ?? ""
  return [{ name: "Ending", description: "The client ends well", status: "FAILURE", errorMessage: ends(said.trim()) }]
}

/** Runs one scenario with the client that `command` starts. */
export const runOne = async (
  command: string,
  { revision }: Selection,
  one: Listed,
  env: Readonly<Record<string, string>> = {}
): Promise<Scenario> => {
  const folder = await mkdtemp(join(tmpdir(), "skein-conformance-"))
  try {
    const args = ["--command", command, "--scenario", one.name, "--spec-version", revision]
    const output = await referee(["client", ...args, "--timeout", `${scenarioTimeout}`, "-o", folder], env)
    const checks = (await read("client", folder)).get(one.name)
    return { ...one, checks: checks?.concat(ending(output.stderr)) ?? excuse(one.name, output) }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** Does each task, a few at a time, and keeps the order. */
const inLanes = async <A, B>(tasks: ReadonlyArray<A>, run: (task: A) => Promise<B>): Promise<ReadonlyArray<B>> => {
  const done: Array<B> = []
  const waiting = tasks.entries()
  const lane = async () => {
    for (const [index, task] of waiting) done[index] = await run(task)
  }
  await Promise.all(Array.from({ length: lanes }, lane))
  return done
}

/** What of a selection is run, and what is left out. */
export const plan = async (selection: Selection) => {
  const scenarios = await expected("client", selection)
  return {
    selection,
    run: scenarios.filter((one) => !isOfAuthorization(one)),
    left: scenarios.filter(isOfAuthorization)
  }
}

const names = (scenarios: ReadonlyArray<Listed>): string => scenarios.map(({ name }) => name).join(", ")

const judgeWith = async (env: Readonly<Record<string, string>>, width: number | undefined): Promise<Report> => {
  const plans = await Promise.all(selections.map(plan))
  const reports: Array<Report> = []
  for (const { command, title } of ways) {
    const tasks = plans.flatMap(({ run, selection }) => run.map((one) => ({ one, selection })))
    const scenarios = await inLanes(tasks, ({ one, selection }) => runOne(command, selection, one, env))
    const outcomes = plans.map(({ selection }): Outcome => ({
      revision: selection.revision,
      label: selection.whole ? "all" : "scored",
      scenarios: scenarios.filter((_, index) => tasks[index]?.selection === selection)
    }))
    const { passed, text } = report(outcomes, { least, width })
    reports.push({ passed, text: `${title}\n${text}\n` })
  }
  const planned = new Set(plans.flatMap(({ left, run }) => [...left, ...run]).map(({ name }) => name))
  const others = (await all("client")).filter(({ name }) => !planned.has(name))
  const stray = others.filter((one) => !isOfSkills(one))
  const notes = [
    ...plans.filter(({ left }) => left.length > 0).map(({ left, selection }) =>
      `Left out of ${selection.revision}, authorization: ${names(left)}`
    ),
    `Left out, the skills extension, of no revision: ${names(others.filter(isOfSkills))}`,
    ...(stray.length === 0 ? [] : [`✗ In nothing that is run: ${names(stray)}`])
  ]
  return {
    passed: stray.length === 0 && reports.every(({ passed }) => passed),
    text: [...reports.map(({ text }) => text), ...notes].join("\n")
  }
}

/** Judges the client. `width` clips messages. */
export const judge = async (width: number | undefined): Promise<Report> => {
  // Thirty times the same two programs: what they compile to is kept.
  const cache = await mkdtemp(join(tmpdir(), "skein-conformance-"))
  try {
    return await judgeWith({ NODE_COMPILE_CACHE: cache }, width)
  } finally {
    await rm(cache, { recursive: true, force: true })
  }
}
