import * as Definitions from "./Definitions.ts"
import * as Result from "effect/Result"
import { expect, it } from "vitest"
import * as Check from "./Check.ts"
import * as Exceptions from "./Exceptions.ts"
import * as Spec from "./Spec.ts"

const count = 200

/** The definitions whose values a revision may refuse, because leaving a part out would change the meaning. */
const refuses = (source: Spec.DocumentName, name: string): boolean => {
  const cancellation = /^(CancelledNotification(Params)?|(Client|Server)Notification)$/.test(name)
  if (source === "2026-07-28") return cancellation
  if (source === "2025-11-25" || source === "tasks") return false
  const sampling = /^(SamplingMessage|CreateMessage(Request|Result)|ServerRequest|ClientResult)$/.test(name)
  const form = source === "2025-06-18" && /^(EnumSchema|PrimitiveSchemaDefinition|Elicit(Request|Result))$/.test(name)
  return cancellation || sampling || form
}

Spec.describeSpec("writing", () => {
  for (const source of Spec.names) {
    for (const [name, definition] of Definitions.definitions(source)) {
      it(`${source} · ${name} · writes values that the official schema accepts`, () => {
        const document = Exceptions.load(source)
        const values = Check.canonical(definition, `${source} ${name}`, count)
        expect(values.length).toBe(count)
        for (const value of values) {
          const complaint = Check.write(definition, document, value)
          if (complaint !== undefined) expect.fail(complaint)
        }
        // Only listed definitions may refuse: otherwise a writer that refuses everything would pass.
        const written = values.filter((value) => Result.isSuccess(definition.write(value))).length
        if (refuses(source, name)) {
          expect(written).toBeGreaterThanOrEqual(count / 10)
          expect(written).toBeLessThan(count)
        } else expect(written).toBe(count)
      })
    }
  }
})
