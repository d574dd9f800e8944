import * as Definitions from "@skein/protocol/Definitions"
import * as Result from "effect/Result"
import { expect, it } from "vitest"
import * as Check from "./Check.ts"
import * as Exceptions from "./Exceptions.ts"
import * as Spec from "./Spec.ts"

const count = 200

Spec.describeSpec("what is written", () => {
  for (const source of Spec.names) {
    for (const [name, definition] of Definitions.definitions(source)) {
      it(`${source} · ${name} · what is written is accepted by the official schema`, () => {
        const document = Exceptions.load(source)
        const values = Check.canonical(definition, `${source} ${name}`, count)
        expect(values.length).toBe(count)
        for (const value of values) {
          const complaint = Check.write(definition, document, value)
          if (complaint !== undefined) expect.fail(complaint)
        }
        // A writer that refuses everything would pass otherwise.
        const written = values.filter((value) => Result.isSuccess(definition.write(value))).length
        expect(written).toBeGreaterThanOrEqual(count / 10)
      })
    }
  }
})
