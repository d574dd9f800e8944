/**
 * The last line of a test run: `N passed, N failed, N skipped`, for people in a hurry and for machines.
 *
 * A file that could not be loaded, and an error that no test caught, count as one failure each: neither is a test, and neither
 * may pass unseen.
 */
import type { Reporter, TestModule } from "vitest/node"

export interface Counts {
  readonly passed: number
  readonly failed: number
  readonly skipped: number
}

/** What one result adds to the counts. */
type Outcome = keyof Counts

const outcome = (state: "passed" | "failed" | "skipped" | "pending"): Outcome =>
  state === "passed" ? "passed" : state === "skipped" ? "skipped" : "failed"

/** Counts the tests of the modules. A test that never ended (`pending`) is a failure. */
export const count = (modules: ReadonlyArray<TestModule>, unhandled: number): Counts => {
  const counts = { passed: 0, failed: unhandled, skipped: 0 }
  for (const module of modules) {
    let tests = 0
    for (const test of module.children.allTests()) {
      tests++
      counts[outcome(test.result().state)]++
    }
    if (tests === 0 && module.state() === "failed") counts.failed++
    else counts.failed += module.errors().length
  }
  return counts
}

/** Why tests were skipped, where their names say so: `what · not checked: why`. The default reporter shows no names. */
export const skipped = (modules: ReadonlyArray<TestModule>): ReadonlyArray<string> => {
  const reasons = new Map<string, number>()
  for (const module of modules) {
    for (const test of module.children.allTests("skipped")) {
      const reason = test.name.split(" · not checked: ")[1]
      if (reason !== undefined) reasons.set(reason, (reasons.get(reason) ?? 0) + 1)
    }
  }
  return Array.from(reasons, ([reason, count]) => `${count} skipped: ${reason}`)
}

/** The line itself. */
export const line = (counts: Counts): string =>
  `${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped`

export default class LastLine implements Reporter {
  onTestRunEnd(modules: ReadonlyArray<TestModule>, errors: ReadonlyArray<unknown>): void {
    const text = [...skipped(modules), line(count(modules, errors.length))].join("\n")
    // vitest's own summary is written by another reporter at the same event: say ours when the process is about to leave.
    process.once("exit", () => process.stdout.write(`${text}\n`))
  }
}
