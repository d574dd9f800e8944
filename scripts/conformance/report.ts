/**
 * Evaluates and prints the results of the conformance suite.
 *
 * The suite itself passes a scenario without any check, and one with warnings. Here both fail: a warning is a violated
 * SHOULD, and a scenario without checks proves nothing.
 */

/** One check, as the suite writes it to its result file. */
export interface Check {
  readonly name: string
  readonly description: string
  readonly status: "SUCCESS" | "FAILURE" | "WARNING" | "SKIPPED" | "INFO"
  readonly errorMessage?: string
}

/** A scenario and its checks, or the reason why it did not complete. */
export interface Scenario {
  readonly name: string
  readonly scored: boolean
  readonly checks: ReadonlyArray<Check> | string
}

/** The scenarios of one selection. */
export interface Outcome {
  /** The revision, or the name of a suite that has scenarios of several revisions. */
  readonly selection: string
  /** The label of the scored scenarios in the table: `scored` in a requirement set, `all` in a whole suite. */
  readonly label: string
  readonly scenarios: ReadonlyArray<Scenario>
}

/**
 * Whether a scenario need not pass: `tasks-status-notifications` at 2026-07-28, unscored, in which the suite has no check
 * yet. It counts as soon as the suite checks something.
 */
export const isSkipped = (selection: string, { checks, name, scored }: Scenario): boolean =>
  selection === "2026-07-28" && !scored && name === "tasks-status-notifications" &&
  typeof checks !== "string" && checks.length > 0 && checks.every(({ status }) => status === "SKIPPED")

interface Totals {
  readonly passed: number
  readonly total: number
}

const totals = <A>(items: ReadonlyArray<A>, passes: (item: A) => boolean): Totals => ({
  passed: items.filter(passes).length,
  total: items.length
})

/** The checks that passed, failed or warned. Skipped and informational checks do not count. */
const decidedChecks = ({ checks }: Scenario): ReadonlyArray<Check> =>
  typeof checks === "string"
    ? []
    : checks.filter(({ status }) => status === "SUCCESS" || status === "FAILURE" || status === "WARNING")

const isSuccess = ({ status }: Check): boolean => status === "SUCCESS"

/** Whether a scenario completed, had at least one check, and no check failed or warned. */
export const isPassed = (scenario: Scenario): boolean => {
  const checks = decidedChecks(scenario)
  return checks.length > 0 && checks.every(isSuccess)
}

/**
 * Why a scenario fails, one line per check. Empty if it passes, except for the expected differences. A difference that
 * was not found is a failure too.
 */
const failureLines = (scenario: Scenario, differences: Differences = {}): ReadonlyArray<string> => {
  if (typeof scenario.checks === "string") return [scenario.checks]
  const checks = decidedChecks(scenario)
  if (checks.length === 0) return ["the scenario has no checks"]
  const failed = checks.filter((check) => !isSuccess(check))
  return [
    ...failed.filter(({ name }) => !Object.hasOwn(differences, name)).map((check) =>
      `${check.name}${check.status === "WARNING" ? " (a SHOULD)" : ""}: ${check.errorMessage ?? check.description}`
    ),
    ...Object.keys(differences).filter((difference) => !failed.some(({ name }) => name === difference))
      .map((difference) => `${difference}: ${unfound}`)
  ]
}

const unfound = "listed as an expected difference, but it does not fail. Remove it from the list"

const clip = (text: string, length: number): string => text.length > length ? `${text.slice(0, length)}…` : text

const row = (selection: string, label: string, scenarios: string, checks: string): string =>
  `${selection.padEnd(18)}${label.padEnd(10)}${scenarios.padStart(10)}${checks.padStart(10)}`

const ratio = ({ passed, total }: Totals): string => `${passed}/${total}`

/** The printed text, and whether every scenario and bound passed. */
export interface Report {
  readonly text: string
  readonly passed: boolean
}

/** The minimum results of a selection. */
export interface Expectation {
  /** The exact number of scenarios. A list that the suite changes is noticed by it. */
  readonly scenarios?: number
  /**
   * The minimum number of decided checks. Without it, a check that the suite makes informational would disappear
   * unnoticed.
   */
  readonly minChecks?: number
}

/** Checks of a scenario that are expected to fail, by name: why, in words. */
export interface Differences {
  readonly [check: string]: string
}

/** Expectations by selection: `<selection>` for scored scenarios, `<selection> unscored` for the others. */
export interface Expectations {
  readonly [selection: string]: Expectation
}

export interface Options {
  /** Longer messages are clipped to this many characters: 500 by default. */
  readonly width?: number | undefined
  readonly expected?: Expectations | undefined
  /**
   * The checks that are expected to fail, by selection and scenario. They are listed with their reasons. The report fails
   * if another check fails, and if one of them does not.
   */
  readonly differences?:
    | { readonly [selection: string]: { readonly [scenario: string]: Differences } }
    | undefined
}

const expectationFailures = (
  key: string,
  { minChecks = 0, scenarios }: Expectation,
  found: { readonly scenarios: number; readonly checks: number }
): ReadonlyArray<string> => [
  ...(scenarios === undefined || scenarios === found.scenarios
    ? []
    : ["", `✗ ${key}: ${found.scenarios} scenarios, expected ${scenarios}`]),
  ...(found.checks < minChecks ? ["", `✗ ${key}: ${found.checks} checks, expected at least ${minChecks}`] : [])
]

/** Formats a table, followed by the skipped scenarios, the expected differences and the failures. */
export const report = (
  outcomes: ReadonlyArray<Outcome>,
  { differences = {}, expected = {}, width = 500 }: Options = {}
): Report => {
  const lines = [row("selection", "", "scenarios", "checks")]
  const notes: Array<string> = []
  const failures: Array<string> = []
  for (const { label, scenarios, selection } of outcomes) {
    const skipped = scenarios.filter((scenario) => isSkipped(selection, scenario))
    const judged = scenarios.filter((scenario) => !skipped.includes(scenario))
    for (const scored of [true, false]) {
      const group = judged.filter((scenario) => scenario.scored === scored)
      const checks = totals(group.flatMap(decidedChecks), isSuccess)
      if (group.length > 0) {
        lines.push(
          row(scored ? selection : "", scored ? label : "unscored", ratio(totals(group, isPassed)), ratio(checks))
        )
      }
      const key = scored ? selection : `${selection} unscored`
      const all = scenarios.filter((scenario) => scenario.scored === scored).length
      failures.push(...expectationFailures(key, expected[key] ?? {}, { scenarios: all, checks: checks.total }))
    }
    if (skipped.length > 0) {
      notes.push("", `Skipped by the suite (${selection}): ${skipped.map(({ name }) => name).join(", ")}`)
    }
    const known = differences[selection] ?? {}
    for (const [name, checks] of Object.entries(known)) {
      notes.push("", `Expected differences (${selection} ${name}):`)
      for (const [check, reason] of Object.entries(checks)) notes.push(`    ${check}: ${reason}`)
      if (!judged.some((scenario) => scenario.name === name)) {
        failures.push("", `✗ ${selection} ${name}: listed with expected differences, but it did not run`)
      }
    }
    for (const scenario of judged) {
      const lines = failureLines(scenario, known[scenario.name])
      if (lines.length === 0) continue
      failures.push("", `✗ ${selection} ${scenario.name}${scenario.scored ? "" : " (unscored)"}`)
      for (const line of lines) {
        failures.push(`    ${clip(line.replaceAll(/\s+/g, " "), width)}`)
      }
    }
  }
  return { text: [...lines, ...notes, ...failures].join("\n"), passed: failures.length === 0 }
}
