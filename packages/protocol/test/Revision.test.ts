import * as Revision from "@skein/protocol/Revision"
import { assert, describe, it } from "@effect/vitest"
import * as Schema from "effect/Schema"
import * as Spec from "./oracle/Spec.ts"

describe("Revision", () => {
  it("lists the five published revisions, oldest first", () => {
    assert.deepStrictEqual(Revision.all, ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"])
    assert.deepStrictEqual([...Revision.all].sort(), [...Revision.all])
    assert.deepStrictEqual(Revision.all.map(Revision.indexOf), [0, 1, 2, 3, 4])
  })

  it("assigns revisions up to 2025-11-25 to the session era, and 2026-07-28 to the stateless era", () => {
    assert.deepStrictEqual([...Revision.sessionBased, ...Revision.stateless], [...Revision.all])
    for (const revision of Revision.all) {
      assert.strictEqual(Revision.era(revision), revision === "2026-07-28" ? "stateless" : "session")
      assert.strictEqual(Revision.stateless.includes(revision), Revision.era(revision) === "stateless")
    }
  })

  it("names the newest revision, and the newest of the session era", () => {
    assert.strictEqual(Revision.latest, Revision.all.at(-1))
    assert.strictEqual(Revision.latestSession, Revision.sessionBased.at(-1))
  })

  it("is accepts published revisions only", () => {
    for (const revision of Revision.all) assert.isTrue(Revision.is(revision))
    for (
      const other of [
        "",
        "2024-11-5",
        "2025-03-27",
        "DRAFT-2026-v1",
        " 2025-11-25",
        "1900-01-01",
        20_251_125,
        null,
        undefined,
        {},
        ["2025-11-25"]
      ]
    ) assert.isFalse(Revision.is(other))
  })

  it.prop("within includes since and excludes until", [
    Schema.Literals(Revision.all),
    Schema.Literals(Revision.all),
    Schema.Union([Schema.Literals(Revision.all), Schema.Undefined])
  ], ([revision, since, until]) => {
    const at = Revision.indexOf(revision)
    const expected = at >= Revision.indexOf(since) && (until === undefined || at < Revision.indexOf(until))
    assert.strictEqual(Revision.within(revision, since, until), expected)
  })
})

Spec.describeSpec("the official schemas and the eras", () => {
  it("only the session era defines initialize, and only the stateless era server/discover", () => {
    for (const revision of Revision.all) {
      const { definitions } = Spec.load(revision)
      assert.strictEqual(definitions["InitializeRequest"] !== undefined, Revision.era(revision) === "session", revision)
      assert.strictEqual(definitions["DiscoverRequest"] !== undefined, Revision.era(revision) === "stateless", revision)
    }
  })
})
