import * as Definitions from "./Definitions.ts"
import * as Revision from "@skein/protocol/Revision"
import { expect, it } from "vitest"
import * as Check from "./Check.ts"
import * as Exceptions from "./Exceptions.ts"
import * as JsonSchemaArbitrary from "./JsonSchemaArbitrary.ts"
import * as Spec from "./Spec.ts"
import * as Validate from "./Validate.ts"

const count = 200

Spec.describeSpec("reading", () => {
  for (const source of Spec.names) {
    for (const [name, definition] of Definitions.definitions(source)) {
      it(`${source} · ${name} · reads generated values, and writes them back unchanged`, () => {
        const document = Exceptions.load(source)
        const arbitrary = JsonSchemaArbitrary.make(document)
        for (let seed = 0; seed < count; seed++) {
          const complaint = Check.roundTrip(definition, document, arbitrary.value(name, seed))
          if (complaint !== undefined) expect.fail(complaint)
        }
      })
    }
  }
})

Spec.describeSpec("reading messages of newer revisions", () => {
  for (const [index, source] of Revision.all.entries()) {
    for (const newer of Revision.all.slice(index + 1)) {
      it(`${source} · ignores members of ${newer} that the official schema allows`, () => {
        const document = Exceptions.load(source)
        const arbitrary = JsonSchemaArbitrary.make(Exceptions.load(newer))
        let tried = 0
        for (const [name, definition] of Definitions.definitions(source)) {
          if (!(name in Spec.load(newer).definitions)) continue
          for (let seed = 0; seed < 20; seed++) {
            const raw = arbitrary.value(name, seed)
            if (Validate.refusal(document, name, raw) !== undefined) continue
            tried++
            const complaint = Check.read(definition, document, raw)
            if (complaint !== undefined) expect.fail(`${name}: ${complaint}`)
          }
        }
        expect(tried).toBeGreaterThan(300)
      })
    }
  }
})

Spec.describeSpec("reading unknown members with the names of known ones", () => {
  for (const source of Spec.names) {
    it(`${source} · ignores a name that another definition has, whatever its value is`, () => {
      const document = Exceptions.load(source)
      const arbitrary = JsonSchemaArbitrary.make(document, Spec.memberNames())
      for (const [name, definition] of Definitions.definitions(source)) {
        for (let seed = 0; seed < 50; seed++) {
          const complaint = Check.read(definition, document, arbitrary.value(name, seed))
          if (complaint !== undefined) expect.fail(`${name}: ${complaint}`)
        }
      }
    })
  }
})

/**
 * The only example without required members of 2026-07-28: its result has no `ttlMs` and no `cacheScope`. (The official
 * schema accepts it as an `InputRequiredResult`, which requires only `resultType`.) Writing fills the safe values in.
 */
const withoutHints = "ReadResourceResultResponse/read-resource-result-response.json"
const hinted = (value: unknown): unknown => {
  const answer = value as { readonly result: object }
  return { ...answer, result: { ...answer.result, ttlMs: 0, cacheScope: "private" } }
}

Spec.describeSpec("reading the official examples", () => {
  const definitions = Definitions.definitions("2026-07-28")
  for (const example of Spec.present ? Spec.examples() : []) {
    it(`2026-07-28 · ${example.file} · reads the example, and writes it back unchanged`, () => {
      const definition = definitions.get(example.definition)
      if (definition === undefined) return expect.fail(`the model has no definition ${example.definition}`)
      const expected = example.file === withoutHints ? hinted(example.value) : example.value
      const complaint = Check.roundTrip(definition, Exceptions.load("2026-07-28"), example.value, expected)
      if (complaint !== undefined) expect.fail(complaint)
    })
  }
})
