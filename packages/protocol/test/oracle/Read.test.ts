import * as Definitions from "@skein/protocol/Definitions"
import { expect, it } from "vitest"
import * as Check from "./Check.ts"
import * as Exceptions from "./Exceptions.ts"
import * as JsonSchemaArbitrary from "./JsonSchemaArbitrary.ts"
import * as Spec from "./Spec.ts"

const count = 200

Spec.describeSpec("what is read", () => {
  for (const source of Spec.names) {
    for (const [name, definition] of Definitions.definitions(source)) {
      it(`${source} · ${name} · what the official schema allows is read, and written back unchanged`, () => {
        const document = Exceptions.load(source)
        const arbitrary = JsonSchemaArbitrary.make(document)
        for (let seed = 0; seed < count; seed++) {
          const complaint = Check.read(definition, document, arbitrary.value(name, seed))
          if (complaint !== undefined) expect.fail(complaint)
        }
      })
    }
  }
})

Spec.describeSpec("the official examples", () => {
  const definitions = Definitions.definitions("2026-07-28")
  for (const example of Spec.present ? Spec.examples() : []) {
    it(`2026-07-28 · ${example.file} · the example is read, and written back unchanged`, () => {
      const definition = definitions.get(example.definition)
      if (definition === undefined) return expect.fail(`the model has no answer for ${example.definition}`)
      const complaint = Check.read(definition, Exceptions.load("2026-07-28"), example.value)
      if (complaint !== undefined) expect.fail(complaint)
    })
  }
})
