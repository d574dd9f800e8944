import { expect, it } from "@effect/vitest"
import type { TestModule } from "vitest/node"
import { count, line, skipped } from "./reporter.ts"

const module = (states: ReadonlyArray<string>, state = "passed", errors = 0): TestModule =>
  ({
    state: () => state,
    errors: () => Array.from({ length: errors }),
    children: { allTests: () => states.map((state) => ({ result: () => ({ state }) })) }
  }) as unknown as TestModule

it("counts each test once, by its outcome", () => {
  const modules = [module(["passed", "failed", "passed"], "failed"), module(["skipped", "passed"])]
  expect(line(count(modules, 0))).toBe("3 passed, 1 failed, 1 skipped")
})

it("counts a file that cannot be loaded, an error outside a test and a test that does not end as failures", () => {
  expect(count([module([], "failed", 1)], 0)).toEqual({ passed: 0, failed: 1, skipped: 0 })
  expect(count([module(["passed"], "passed")], 2)).toEqual({ passed: 1, failed: 2, skipped: 0 })
  expect(count([module(["skipped"], "failed", 1)], 0)).toEqual({ passed: 0, failed: 1, skipped: 1 })
  expect(count([module(["pending"])], 0)).toEqual({ passed: 0, failed: 1, skipped: 0 })
})

it("prints the reason of skipped tests once", () => {
  const named = (names: ReadonlyArray<string>): TestModule =>
    ({ children: { allTests: () => names.map((name) => ({ name })) } }) as unknown as TestModule
  const modules = [
    named(["a · not checked: no schemas", "b · not checked: no schemas"]),
    named(["c", "d · not checked: no"])
  ]
  expect(skipped(modules)).toEqual(["2 skipped: no schemas", "1 skipped: no"])
})
