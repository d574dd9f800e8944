/** Searches for schemas and values that stop a process, for longer than the short tests can. */
import { assert, it } from "@effect/vitest"
import { generate } from "./generate.ts"
import { violation } from "./measure.ts"

// The time of the search. Set it, and the first seed, to search for longer in other cases.
const seconds = Number(process.env["SKEIN_SEARCH_SECONDS"] ?? 120)
const firstSeed = Number(process.env["SKEIN_SEARCH_SEED"] ?? 1_000)

it("pauses soon and ends in all random cases of two minutes", () => {
  const end = performance.now() + seconds * 1_000
  let seed = firstSeed
  for (; performance.now() < end; seed++) {
    assert.isUndefined(violation(generate(seed, seed % 4 === 0 ? 3_000_000 : 200_000)))
  }
  assert.isAbove(seed, firstSeed)
}, (seconds + 120) * 1_000)
