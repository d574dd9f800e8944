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

/** The scenarios that ran at one revision. */
export interface Outcome {
  readonly revision: string
  /** The label of the scored scenarios in the table: `scored` in a requirement set, `all` in a whole suite. */
  readonly label: string
  readonly scenarios: ReadonlyArray<Scenario>
}

/**
 * The one scenario that need not pass, about `notifications/tasks`. The suite has no check in it yet and skips it. It
 * counts as soon as the suite checks something.
 */
export const isUnimplemented = (revision: string, { checks, name, scored }: Scenario): boolean =>
  revision === "2026-07-28" && !scored && name === "tasks-status-notifications" &&
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

/** Why a scenario failed, one line per check. */
const failureLines = (scenario: Scenario): ReadonlyArray<string> => {
  if (typeof scenario.checks === "string") return [scenario.checks]
  const failed = decidedChecks(scenario).filter((check) => !isSuccess(check))
  return failed.length === 0
    ? ["the scenario has no checks"]
    : failed.map(({ name, status, errorMessage, description }) =>
      `${name}${status === "WARNING" ? " (a SHOULD)" : ""}: ${errorMessage ?? description}`
    )
}

const clip = (text: string, length: number): string => text.length > length ? `${text.slice(0, length)}…` : text

const row = (revision: string, label: string, scenarios: string, checks: string): string =>
  `${revision.padEnd(12)}${label.padEnd(10)}${scenarios.padStart(10)}${checks.padStart(10)}`

const ratio = ({ passed, total }: Totals): string => `${passed}/${total}`

/** The printed text, and whether every scenario and bound passed. */
export interface Report {
  readonly text: string
  readonly passed: boolean
}

export interface Options {
  /** Longer messages are clipped to this many characters: 500 by default. */
  readonly width?: number | undefined
  /**
   * The minimum number of decided checks: under `<revision>` for scored checks, under `<revision> unscored` for the
   * others. Without it, a check that the suite makes informational would disappear unnoticed.
   */
  readonly minChecks?: { readonly [revision: string]: number } | undefined
}

/** Formats a table, followed by the skipped scenarios and the failures. */
export const report = (outcomes: ReadonlyArray<Outcome>, { minChecks = {}, width = 500 }: Options = {}): Report => {
  const lines = [row("revision", "", "scenarios", "checks")]
  const notes: Array<string> = []
  const failures: Array<string> = []
  for (const { label, revision, scenarios } of outcomes) {
    const judged = scenarios.filter((scenario) => !isUnimplemented(revision, scenario))
    for (const scored of [true, false]) {
      const group = judged.filter((scenario) => scenario.scored === scored)
      const checks = totals(group.flatMap(decidedChecks), isSuccess)
      if (group.length > 0) {
        lines.push(
          row(scored ? revision : "", scored ? label : "unscored", ratio(totals(group, isPassed)), ratio(checks))
        )
      }
      const key = scored ? revision : `${revision} unscored`
      const minimum = minChecks[key] ?? 0
      if (checks.total < minimum) failures.push("", `✗ ${key}: ${checks.total} checks, expected at least ${minimum}`)
    }
    const skipped = scenarios.filter((scenario) => isUnimplemented(revision, scenario)).map(({ name }) => name)
    if (skipped.length > 0) notes.push("", `Skipped by the suite at ${revision}, unscored: ${skipped.join(", ")}`)
    for (const scenario of judged.filter((scenario) => !isPassed(scenario))) {
      failures.push("", `✗ ${revision} ${scenario.name}${scenario.scored ? "" : " (unscored)"}`)
      for (const line of failureLines(scenario)) {
        failures.push(`    ${clip(line.replaceAll(/\s+/g, " "), width)}`)
      }
    }
  }
  return { text: [...lines, ...notes, ...failures].join("\n"), passed: failures.length === 0 }
}
