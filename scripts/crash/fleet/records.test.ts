import { describe, expect, it } from "@effect/vitest"
import { Records } from "./records.ts"

/** Records of a walk, without the times of its problems. */
const problemsOf = ({ problems }: Records): ReadonlyArray<string> =>
  problems.map((problem) => problem.replaceAll(/\d+\.\d s/g, "…"))

const none = new Set<number>()

const failure = { key: "a", why: "status 502", isRefused: false, from: 0, to: 100 }

describe("the records of a walk", () => {
  it("reports calls that ran twice, or were answered twice or without having run", () => {
    const records = new Records()
    records.answered.set("a", 1).set("b", 2).set("c", 1)
    records.compare([["a", 1], ["b", 1], ["a", 2]], none)
    expect(problemsOf(records)).toEqual([
      "call a has run 2 times",
      "call b was answered 2 times",
      "call c was answered, and has not run"
    ])
  })

  it("reports a failed call without a fault, and a refused one that has run", () => {
    const records = new Records()
    records.failures.push(failure, { ...failure, key: "b", isRefused: true })
    records.compare([["b", 1]], none)
    expect(problemsOf(records)).toEqual([
      "call a failed from … to …, without a fault: status 502",
      "call b has run, and was refused: status 502",
      "call b failed from … to …, without a fault: status 502"
    ])
  })

  it("accepts a failed call that has run only if its node was killed, or the database", () => {
    const records = new Records()
    records.faults.push({ what: "a node stopped", from: 0, to: 1_000, pids: none })
    records.failures.push(failure, { ...failure, key: "b" })
    records.compare([["a", 1], ["b", 2]], new Set([1]))
    expect(problemsOf(records)).toEqual(["call b failed from … to …, and its node was not killed: status 502"])
    records.faults.push({ what: "the database killed", from: 0, to: 1_000, pids: none })
    records.compare([["a", 1], ["b", 2]], new Set([1]))
    expect(problemsOf(records)).toHaveLength(1)
  })

  it("accepts a failed call of a node that was taken for gone, and of one that shut down beside another fault", () => {
    const records = new Records()
    records.failures.push(failure)
    const calls = [["a", 1]] as const
    const fault = { from: 0, to: 1_000, pids: new Set([1]) }
    const add = (what: string, pids = fault.pids): number => {
      records.problems.length = 0
      records.faults.push({ ...fault, what, pids })
      records.compare(calls, none)
      return records.problems.length
    }
    expect(add("a node stopped", new Set([2]))).toBe(1)
    expect(add("a node drains")).toBe(0)
    records.faults.length = 0
    expect(add("a node drains")).toBe(1)
    expect(add("a node stopped")).toBe(0)
  })

  it("accepts a failed call until a while after a fault", () => {
    const records = new Records()
    records.faults.push({ what: "a node killed", from: 0, to: 1_000, pids: none })
    records.failures.push({ ...failure, from: 5_000, to: 6_000 })
    records.compare([], none)
    expect(problemsOf(records)).toEqual([])
    records.failures.push({ ...failure, from: 20_000, to: 21_000 })
    records.compare([], none)
    expect(problemsOf(records)).toHaveLength(1)
  })

  it("reports changes that were acknowledged and of which no notification has arrived", () => {
    const records = new Records()
    for (const uri of ["walk://a/0", "walk://b/0", "walk://c/0"]) {
      records.touches.set(uri, { uri, from: 0, isAcknowledged: uri !== "walk://c/0" })
    }
    records.heard("walk://a/0")
    expect(records.unheard).toEqual(["walk://b/0 changed at 0.0 s, and its subscriber was not notified (faults: )"])
  })
})
