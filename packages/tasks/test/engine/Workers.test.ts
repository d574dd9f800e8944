import { it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { expect } from "vitest"
import { Workers } from "../../src/internal/engine/workers.ts"

it.effect("resumes at most 10,000 waiting tasks when a handler is added: those that checked last", () =>
  Effect.scoped(Effect.gen(function*() {
    const woken: Array<string> = []
    const workers = new Workers((execution) => Effect.sync(() => void woken.push(execution)), "1 second")
    for (let n = 0; n < 10_000; n++) expect(workers.noteMissingHandler(`t${n}`)).toBe(0)
    // It has checked again, so it is no longer the oldest.
    expect(workers.noteMissingHandler("t0")).toBe(1)
    expect(workers.noteMissingHandler("one more")).toBe(0)
    expect(workers.waitingCount).toBe(10_000)
    expect(workers.stopWaiting("t1")).toBe(false)
    expect(workers.stopWaiting("t2")).toBe(true)
    yield* workers.add(() => undefined)
    expect(woken).toHaveLength(9999)
    expect(woken).toContain("t0")
    expect(woken).toContain("one more")
    expect(woken).not.toContain("t1")
  })))
