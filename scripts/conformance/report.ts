/**
 * What the referee found, judged and printed.
 *
 * The referee's own verdict passes a scenario in which nothing was checked, and one that only warns. Here both count as failed:
 * a warning is a SHOULD that is not kept, and silence proves nothing.
 */

/** One thing that was looked at, as the referee writes it down. */
export interface Check {
  readonly name: string
  readonly description: string
  readonly status: "SUCCESS" | "FAILURE" | "WARNING" | "SKIPPED" | "INFO"
  readonly errorMessage?: string
}

/** A scenario of a set: what was checked, or why it never came to an end. */
export interface Scenario {
  readonly name: string
  readonly scored: boolean
  readonly checks: ReadonlyArray<Check> | string
}

/** The scenarios that were run at one revision. */
export interface Outcome {
  readonly revision: string
  /** What the scored ones are called: `scored` in a requirement set, `all` in a whole suite. */
  readonly label: string
  readonly scenarios: ReadonlyArray<Scenario>
}

/**
 * The one scenario that need not pass: the referee has nothing in it yet, and skips it itself. What it says of
 * `notifications/tasks` counts as soon as it checks something.
 */
export const isPending = (revision: string, { checks, name, scored }: Scenario): boolean =>
  revision === "2026-07-28" && !scored && name === "tasks-status-notifications" &&
  typeof checks !== "string" && checks.length > 0 && checks.every(({ status }) => status === "SKIPPED")

interface Tally {
  readonly passed: number
  readonly counted: number
}

const tally = <A>(of: ReadonlyArray<A>, passes: (one: A) => boolean): Tally => ({
  passed: of.filter(passes).length,
  counted: of.length
})

/** The checks that were decided. What is for information, or was skipped, is not. */
const decided = ({ checks }: Scenario): ReadonlyArray<Check> =>
  typeof checks === "string"
    ? []
    : checks.filter(({ status }) => status === "SUCCESS" || status === "FAILURE" || status === "WARNING")

const isSuccess = ({ status }: Check): boolean => status === "SUCCESS"

/** Whether a scenario came to its end, checked something, and found nothing to say against it. */
export const isPassed = (scenario: Scenario): boolean => {
  const checks = decided(scenario)
  return checks.length > 0 && checks.every(isSuccess)
}

/** Why a scenario did not pass, one line for each thing that is wrong. */
const complaints = (scenario: Scenario): ReadonlyArray<string> => {
  if (typeof scenario.checks === "string") return [scenario.checks]
  const wrong = decided(scenario).filter((check) => !isSuccess(check))
  return wrong.length === 0
    ? ["nothing was checked"]
    : wrong.map(({ name, status, errorMessage, description }) =>
      `${name}${status === "WARNING" ? " (a SHOULD)" : ""}: ${errorMessage ?? description}`
    )
}

const clip = (text: string, length: number): string => text.length > length ? `${text.slice(0, length)}…` : text

const row = (revision: string, label: string, scenarios: string, checks: string): string =>
  `${revision.padEnd(12)}${label.padEnd(10)}${scenarios.padStart(10)}${checks.padStart(10)}`

const ratio = ({ passed, counted }: Tally): string => `${passed}/${counted}`

/** What is printed, and whether all that should pass does. */
export interface Report {
  readonly text: string
  readonly passed: boolean
}

/** How a report is made. */
export interface Options {
  /** Messages of more characters are clipped: 500 by default. */
  readonly width?: number | undefined
  /**
   * How many scored checks are to be decided at a revision, at least, and under `<revision> unscored` how many others: one that
   * becomes information would go unnoticed.
   */
  readonly least?: { readonly [revision: string]: number } | undefined
}

/** The table, what was skipped, and what failed. */
export const report = (outcomes: ReadonlyArray<Outcome>, { least = {}, width = 500 }: Options = {}): Report => {
  const lines = [row("revision", "", "scenarios", "checks")]
  const notes: Array<string> = []
  const failures: Array<string> = []
  for (const { label, revision, scenarios } of outcomes) {
    const judged = scenarios.filter((scenario) => !isPending(revision, scenario))
    for (const scored of [true, false]) {
      const group = judged.filter((scenario) => scenario.scored === scored)
      const checks = tally(group.flatMap(decided), isSuccess)
      if (group.length > 0) {
        lines.push(
          row(scored ? revision : "", scored ? label : "unscored", ratio(tally(group, isPassed)), ratio(checks))
        )
      }
      const counted = scored ? revision : `${revision} unscored`
      const wanted = least[counted] ?? 0
      if (checks.counted < wanted) failures.push("", `✗ ${counted}: ${checks.counted} checks, and not ${wanted}`)
    }
    const left = scenarios.filter((scenario) => isPending(revision, scenario)).map(({ name }) => name)
    if (left.length > 0) notes.push("", `Skipped by the referee itself at ${revision}, unscored: ${left.join(", ")}`)
    for (const scenario of judged.filter((scenario) => !isPassed(scenario))) {
      failures.push("", `✗ ${revision} ${scenario.name}${scenario.scored ? "" : " (unscored)"}`)
      for (const complaint of complaints(scenario)) {
        failures.push(`    ${clip(complaint.replaceAll(/\s+/g, " "), width)}`)
      }
    }
  }
  return { text: [...lines, ...notes, ...failures].join("\n"), passed: failures.length === 0 }
}
