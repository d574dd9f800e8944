import { assert, describe, it } from "@effect/vitest"
import * as Schema from "effect/Schema"
import { uniqueNames } from "../../src/internal/toolkit/names.ts"

const accepted = /^[a-zA-Z0-9_-]{1,64}$/

const names = (...all: ReadonlyArray<readonly [string | undefined, string]>) =>
  uniqueNames(all.map(([server, tool]) => ({ server, tool })))

describe("the names of remote tools", () => {
  it("are `<server>_<tool>`, or the tool's own for a single client", () => {
    assert.deepStrictEqual(names(["files", "read"], [undefined, "read"]), ["files_read", "read"])
  })

  it("contain only characters that providers accept", () => {
    assert.deepStrictEqual(names(["my server", "admin.tools/list é"]), ["my_server_admin_tools_list__"])
  })

  it("end with a digest when they are too long, within 64 characters", () => {
    const long = "a".repeat(100)
    const [one, two] = names(["s", `${long}1`], ["s", `${long}2`])
    assert.match(one!, accepted)
    assert.strictEqual(one!.length, 64)
    assert.notStrictEqual(one, two)
    assert.match(names([undefined, ""])[0]!, accepted)
    assert.strictEqual(names(["s", "a".repeat(62)])[0], `s_${"a".repeat(62)}`)
  })

  it("get a digest each when they would be equal, in any order of registration", () => {
    const pair = [["a", "b_c"], ["a_b", "c"]] as const
    const [one, two] = names(...pair)
    assert.match(one!, /^a_b_c_[0-9a-f]{8}$/)
    assert.match(two!, /^a_b_c_[0-9a-f]{8}$/)
    assert.notStrictEqual(one, two)
    assert.deepStrictEqual(names(...pair.toReversed()), [two, one])
    // They stay the same when other tools are added.
    assert.deepStrictEqual(names(["x", "y"], ...pair), ["x_y", one, two])
  })

  it("stay unique when a tool is named like the digest of another tool", () => {
    const [one] = names(["a", "b_c"], ["a_b", "c"])
    const hostile = ["evil", one!.slice("evil_".length)] as const
    const all = names(["a", "b_c"], ["a_b", "c"], [undefined, one!], hostile)
    assert.strictEqual(new Set(all).size, 4)
    // This tool has the name already, so the other one gets another digest.
    assert.strictEqual(all[2], one)
  })

  it.prop(
    "are distinct, accepted, and the same in any order",
    [Schema.Array(Schema.Tuple([Schema.Literals(["a", "a_b", "é", ""]), Schema.Literals(["b", "b_c", "c", "_", ""])]))],
    ([all]) => {
      const unique = [...new Map(all.map((pair) => [JSON.stringify(pair), pair])).values()]
      const forth = names(...unique)
      assert.strictEqual(new Set(forth).size, unique.length)
      for (const name of forth) assert.match(name, accepted)
      assert.deepStrictEqual(names(...unique.toReversed()).toReversed(), forth)
    }
  )
})
