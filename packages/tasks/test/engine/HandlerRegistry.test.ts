import { it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { expect } from "vitest"
import { HandlerRegistry } from "../../src/internal/engine/handlerRegistry.ts"

it.effect("wakes at most 10,000 waiting tasks when a handler is added: those that checked last", () =>
  Effect.scoped(Effect.gen(function*() {
    let woken: ReadonlyArray<string> = []
    const registry = new HandlerRegistry({
      onAdded: (waiting) => Effect.sync(() => void (woken = waiting)),
      shutdownTimeout: "1 second"
    })
    for (let n = 0; n < 10_000; n++) expect(registry.noteMissingHandler(`t${n}`)).toBe(0)
    // It has checked again, so it is no longer the oldest.
    expect(registry.noteMissingHandler("t0")).toBe(1)
    expect(registry.noteMissingHandler("one more")).toBe(0)
    expect(registry.waitingCount).toBe(10_000)
    expect(registry.stopWaiting("t1")).toBe(false)
    expect(registry.stopWaiting("t2")).toBe(true)
    yield* registry.add(() => undefined)
    expect(woken).toHaveLength(9999)
    expect(woken).toContain("t0")
    expect(woken).toContain("one more")
    expect(woken).not.toContain("t1")
  })))
