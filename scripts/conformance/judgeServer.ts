/**
 * Judges a server, `examples/everything` on a free port or the one at a URL: both requirement sets, the whole suite at the
 * older revisions, and the skills extension, which belongs to no requirement set.
 */
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { type Kind, startProcesses } from "./processes.ts"
import { startEverythingServer } from "./serverProcess.ts"
import { type Expectations, type Outcome, type Report, report, type Scenario } from "./report.ts"
import {
  failureReason,
  listAllScenarios,
  listScenarios,
  readChecks,
  runSuite,
  scenarioTimeout,
  type Selection
} from "./suite.ts"

/**
 * The selections of one round run at the same time. The scenarios of 2026-07-28 run alone: they change the server's
 * lists, and they check time limits of half a second.
 */
const rounds = (coreOnly: boolean): ReadonlyArray<ReadonlyArray<Selection>> => [
  [{ revision: "2025-11-25" }, { revision: "2025-06-18", whole: true }, { revision: "2025-03-26", whole: true }],
  [{ revision: "2026-07-28", coreOnly }]
]

/** The minimum results of `examples/everything`. 44 of the unscored checks are about the tasks extension. */
const expected: Expectations = {
  "2026-07-28": { scenarios: 37, minChecks: 120 },
  "2026-07-28 unscored": { scenarios: 13, minChecks: 76 },
  "2025-11-25": { scenarios: 30, minChecks: 70 },
  "2025-11-25 unscored": { scenarios: 3, minChecks: 14 },
  "2025-06-18": { scenarios: 27, minChecks: 56 },
  "2025-03-26": { scenarios: 1, minChecks: 3 },
  "skills extension": { scenarios: 3, minChecks: 45 }
}

/**
 * Runs a selection against the server at `url`. A scenario of the selection without a result is in the outcome as
 * failed.
 */
export const runSelection = async (url: string, selection: Selection): Promise<Outcome> => {
  const { coreOnly = false, revision, whole = false } = selection
  const listed = await listScenarios("server", selection)
  const select = whole || coreOnly
    ? ["--suite", "all", "--spec-version", revision]
    : ["--requirements", revision]
  const folder = await mkdtemp(join(tmpdir(), "skein-conformance-"))
  try {
    const output = await runSuite(["server", "--url", url, ...select, "--timeout", `${scenarioTimeout}`, "-o", folder])
    const checks = await readChecks("server", folder)
    const scenarios = listed.map((one) => ({ ...one, checks: checks.get(one.name) ?? failureReason(one.name, output) }))
    return { selection: revision, label: whole ? "all" : "scored", scenarios }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** The selections that run against a server. */
interface Rounds {
  /** Whether the scenarios of extensions are left out: false by default. */
  readonly coreOnly?: boolean
  /** Whether the selections run one after another: false by default. */
  readonly oneByOne?: boolean
  /** The revisions that run: all by default. */
  readonly revisions?: ReadonlyArray<string> | undefined
}

/** Runs the selections of all rounds against the server at `url`, the newest revision first. */
export const runRounds = async (
  url: string,
  { coreOnly = false, oneByOne = false, revisions }: Rounds = {}
): Promise<Array<Outcome>> => {
  const outcomes: Array<Outcome> = []
  const selected = rounds(coreOnly)
    .map((round) => round.filter(({ revision }) => revisions?.includes(revision) ?? true))
  for (const round of oneByOne ? selected.flat().map((selection) => [selection]) : selected) {
    outcomes.push(...await Promise.all(round.map((selection) => runSelection(url, selection))))
  }
  return outcomes.sort((a, b) => a.selection < b.selection ? 1 : -1)
}

/** Runs the scenarios of the skills extension (SEP-2640) against the server at `url`, one after another. */
export const runSkills = async (url: string): Promise<Outcome> => {
  const listed = (await listAllScenarios("server")).filter(({ name }) => name.startsWith("sep-2640-"))
  const folder = await mkdtemp(join(tmpdir(), "skein-conformance-"))
  try {
    const scenarios: Array<Scenario> = []
    for (const one of listed) {
      const select = ["--scenario", one.name, "--timeout", `${scenarioTimeout}`]
      const output = await runSuite(["server", "--url", url, ...select, "-o", folder])
      const checks = await readChecks("server", folder)
      scenarios.push({ ...one, checks: checks.get(one.name) ?? failureReason(one.name, output) })
    }
    return { selection: "skills extension", label: "all", scenarios }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** The server to judge: the one at a URL, or `examples/everything`, in one process or in several that share sessions. */
export interface Subject {
  readonly url?: string | undefined
  readonly sessions?: { readonly kind: Kind; readonly count: number } | undefined
}

/** Judges a server. `width` clips messages. */
export const judgeServer = async ({ sessions, url }: Subject, width: number | undefined): Promise<Report> => {
  const start = () => sessions === undefined ? startEverythingServer() : startProcesses(sessions.kind, sessions.count)
  const server = url === undefined ? await start() : { url, stop: async () => {} }
  try {
    console.log(`against ${server.url}\n`)
    const outcomes = await runRounds(server.url)
    // Another server may have no skills.
    if (url === undefined) outcomes.push(await runSkills(server.url))
    return report(outcomes, {
      width,
      // Another server may respond with JSON where some checks apply to streams only.
      expected: url === undefined ? expected : undefined
    })
  } finally {
    await server.stop()
  }
}
