/**
 * The results of the official conformance suite, and their table.
 */
import type { Colors } from "../base/colors.ts"
import { cell, denseTable } from "../base/textTable.ts"

/** One check, as the suite writes it to its result file. */
export interface Check {
  readonly id?: string | undefined
  readonly name: string
  readonly status: string
  readonly description?: string | undefined
  readonly errorMessage?: string | undefined
}

/** A scenario with its checks, or the reason why it did not complete. */
export interface ScenarioResult {
  readonly name: string
  readonly checks: ReadonlyArray<Check>
  readonly problem?: string | undefined
}

/** How a scenario ended. `expected`: it failed, as the file of expected failures says. `stale`: it did not fail. */
export type Verdict = "passed" | "warnings" | "failed" | "skipped" | "expected" | "stale"

/** A judged scenario. */
export interface Judged {
  readonly scenario: string
  readonly verdict: Verdict
  readonly passed: number
  readonly failed: number
  readonly warnings: number
  /** The first failure. */
  readonly detail?: string | undefined
}

const isProblem = ({ status }: Check): boolean => status === "FAILURE" || status === "WARNING"

const verdictOf = (checks: ReadonlyArray<Check>, problem: string | undefined): Verdict => {
  const has = (status: string): boolean => checks.some((check) => check.status === status)
  if (problem !== undefined || has("FAILURE")) return "failed"
  if (has("WARNING")) return "warnings"
  return has("SUCCESS") ? "passed" : "skipped"
}

const judgeOne = ({ checks, name, problem }: ScenarioResult, expected: ReadonlySet<string>): Verdict => {
  const verdict = verdictOf(checks, problem)
  const isBad = verdict === "failed" || verdict === "warnings"
  if (expected.has(name)) return isBad ? "expected" : "stale"
  // An entry can name one check of a scenario.
  const listed = [...expected].filter((entry) => entry.startsWith(`${name}:`)).map((entry) =>
    entry.slice(name.length + 1)
  )
  if (listed.length === 0) return verdict
  if (listed.some((id) => !checks.some((check) => check.id === id && isProblem(check)))) return "stale"
  const rest = checks.filter(({ id }) => id === undefined || !listed.includes(id))
  const others = verdictOf(rest, problem)
  return others === "failed" || others === "warnings" ? others : "expected"
}

/**
 * Judges the scenarios, by their names. `expected` are those that are expected to fail: `<scenario>`, or
 * `<scenario>:<id of a check>`.
 */
export const judge = (results: ReadonlyArray<ScenarioResult>, expected: ReadonlySet<string>): ReadonlyArray<Judged> =>
  results.map((result) => {
    const { checks, name, problem } = result
    const count = (status: string): number => checks.filter((check) => check.status === status).length
    const first = checks.find(({ status }) => status === "FAILURE") ?? checks.find(isProblem)
    return {
      scenario: name,
      verdict: judgeOne(result, expected),
      passed: count("SUCCESS"),
      failed: count("FAILURE"),
      warnings: count("WARNING"),
      detail: problem ?? (first === undefined ? undefined : first.errorMessage ?? first.description ?? first.name)
    }
  }).toSorted((a, b) => a.scenario < b.scenario ? -1 : 1)

/** Whether no scenario failed that was not expected to. */
export const isConformant = (judged: ReadonlyArray<Judged>): boolean =>
  judged.every(({ verdict }) => verdict !== "failed" && verdict !== "stale")

const words: Readonly<Record<Verdict, string>> = {
  passed: "passed",
  warnings: "warnings",
  failed: "FAILED",
  skipped: "skipped",
  expected: "failed, as expected",
  stale: "PASSED, not expected"
}

/** The report for a person. */
export const formatReport = (judged: ReadonlyArray<Judged>, colors?: Colors): string => {
  const rows = judged.map(({ detail = "", failed, passed, scenario, verdict, warnings }) => [
    cell(scenario),
    words[verdict],
    `${passed}/${passed + failed + warnings}`,
    verdict === "passed" ? "" : cell(detail)
  ])
  const counts = (Object.keys(words) as ReadonlyArray<Verdict>).flatMap((verdict) => {
    const count = judged.filter((one) => one.verdict === verdict).length
    return count === 0 ? [] : [`${count} ${words[verdict]}`]
  })
  return `${denseTable(["SCENARIO", "RESULT", "CHECKS", "FIRST PROBLEM"], rows, colors)}\n\n${judged.length} ${
    judged.length === 1 ? "scenario" : "scenarios"
  }: ${counts.join("; ")}`
}

/**
 * The names under `server` in a file of expected failures, which is the YAML of the suite: `server:`, and then lines
 * with `- <name>`. Returns undefined for another text.
 */
export const parseExpected = (text: string): ReadonlySet<string> | undefined => {
  const names = new Set<string>()
  let section: string | undefined
  for (const line of text.split(/\r?\n/)) {
    const content = line.replace(/(^|\s)#.*$/, "").trimEnd()
    if (content.trim() === "" || content === "---") continue
    const [, key, inline] = /^(\w+):\s*(\[\s*\])?$/.exec(content) ?? []
    if (key !== undefined) section = inline === undefined ? key : undefined
    else {
      const [, name] = /^\s*-\s+["']?([^"'\s]+)["']?$/.exec(content) ?? []
      if (name === undefined || section === undefined) return undefined
      if (section === "server") names.add(name)
    }
  }
  return names
}
