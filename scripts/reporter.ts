/**
 * Prints the last line of a test run, `N passed, N failed, N skipped`, which people and programs can read.
 *
 * A file that cannot be loaded and an error outside a test count as one failure each. vitest does not count them as
 * tests.
 */
import type { Reporter, TestModule } from "vitest/node"

export interface Counts {
  readonly passed: number
  readonly failed: number
  readonly skipped: number
}

/** The member of the counts that a result increments. */
type Outcome = keyof Counts

const outcome = (state: "passed" | "failed" | "skipped" | "pending"): Outcome =>
  state === "passed" ? "passed" : state === "skipped" ? "skipped" : "failed"

/** Counts the tests of the modules. A test that did not end (`pending`) is a failure. */
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

/**
 * Returns the reasons of skipped tests, from names of the form `what · not checked: why`. The default reporter omits
 * the names.
 */
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

/** Formats the counts as the last line. */
export const line = (counts: Counts): string =>
  `${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped`

export default class LastLine implements Reporter {
  onTestRunEnd(modules: ReadonlyArray<TestModule>, errors: ReadonlyArray<unknown>): void {
    const text = [...skipped(modules), line(count(modules, errors.length))].join("\n")
    // Another reporter writes vitest's summary at the same event, so this line is written when the process exits.
    process.once("exit", () => process.stdout.write(`${text}\n`))
  }
}
