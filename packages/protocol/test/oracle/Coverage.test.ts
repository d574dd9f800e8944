import * as Definitions from "./Definitions.ts"
import { expect, it } from "vitest"
import * as Spec from "./Spec.ts"

Spec.describeSpec("the registry of definitions", () => {
  const counts: Readonly<Record<Spec.DocumentName, number>> = {
    "2024-11-05": 79,
    "2025-03-26": 83,
    "2025-06-18": 91,
    "2025-11-25": 145,
    "2026-07-28": 155,
    tasks: 76
  }

  for (const source of Spec.names) {
    it(`${source} · the official schema has ${counts[source]} definitions`, () => {
      expect(Object.keys(Spec.load(source).definitions).length).toBe(counts[source])
    })

    it(`${source} · contains every official definition, and no other`, () => {
      const answers = Definitions.definitions(source)
      const official = Object.keys(Spec.load(source).definitions)
      expect(official.filter((name) => !answers.has(name)), "missing").toEqual([])
      expect([...answers.keys()].filter((name) => !official.includes(name)), "stale").toEqual([])
      expect([...answers].filter(([name, definition]) => definition.name !== name).map(([name]) => name), "misnamed")
        .toEqual([])
    })
  }

  it("2026-07-28 · contains the definition of every folder of examples", () => {
    const answers = Definitions.definitions("2026-07-28")
    const examples = Spec.examples()
    expect(examples.length).toBeGreaterThanOrEqual(129)
    expect(examples.filter((example) => !answers.has(example.definition)).map((example) => example.file)).toEqual([])
  })
})
