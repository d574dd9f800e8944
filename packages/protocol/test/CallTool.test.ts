import { describe, expect, it } from "@effect/vitest"
import * as CallTool from "@skein/protocol/CallTool"
import * as Codec from "@skein/protocol/Codec"
import type { JsonObject } from "@skein/protocol/JsonRpc"
import * as Method from "@skein/protocol/Method"
import * as Revision from "@skein/protocol/Revision"
import * as Result from "effect/Result"

const members: ReadonlyArray<readonly [string, ReadonlyArray<unknown>]> = [
  ["name", ["a", "", 1, null, {}]],
  ["arguments", [{}, { a: [1, { b: null }] }, JSON.parse("{\"__proto__\":1}"), [], "x", null]],
  ["_meta", [{}, { progressToken: 1 }, [], 1, null]],
  ["task", [{ ttl: 1 }, 1, null]],
  ["inputResponses", [{}, 1, null]],
  ["requestState", ["x", 1]],
  ["else", [1]]
]

/** Params with every combination of members: each member has one of its values, or is absent. */
const every = (at = 0): ReadonlyArray<JsonObject> => {
  const member = members[at]
  if (member === undefined) return [{}]
  const [name, values] = member
  return every(at + 1).flatMap((rest) => [rest, ...values.map((value) => ({ [name]: value, ...rest }))])
}

describe("the params of tools/call", () => {
  it("isPlain accepts only params that are valid in every revision and decode to themselves", () => {
    const plain = every().filter(CallTool.isPlain)
    expect(plain).toHaveLength(2 * 4 * 3)
    for (const revision of Revision.all) {
      for (const params of plain) {
        expect(Codec.decodeParams(Method.CallTool, revision, params)).toEqual(Result.succeed(params))
      }
    }
    expect(CallTool.isPlain(undefined)).toBe(false)
  })
})
