/**
 * Reading any input returns a value or an error and does not throw. The input is seeded, so a failure can be run again.
 */
import type { Unrepresentable } from "@skein/protocol/Annotate"
import * as Codec from "@skein/protocol/Codec"
import { wellFormed } from "@skein/protocol/Json"
import * as JsonRpc from "@skein/protocol/JsonRpc"
import * as Method from "@skein/protocol/Method"
import * as Revision from "@skein/protocol/Revision"
import * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import { describe, expect, it } from "vitest"
import * as Check from "./oracle/Check.ts"
import * as Json from "./oracle/Json.ts"
import * as Random from "./oracle/Random.ts"

const sound: ReadonlyArray<string> = [
  `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"b":[1,2.5,null,true,"c"]}}}`,
  `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"a","reason":"\\ud83e\\uddf6"}}`,
  `{"jsonrpc":"2.0","id":"x","result":{"content":[{"type":"text","text":"a"}],"_meta":{"__proto__":{"a":1}}}}`,
  `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error","data":{"a":[[]]}}}`,
  `[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","method":"notifications/initialized"},7,[]]`
]

const tokens = [
  "{",
  "}",
  "[",
  "]",
  ",",
  ":",
  "\"",
  "\\",
  "null",
  "true",
  "-",
  "1e999",
  "0",
  "\"id\"",
  "\"__proto__\":",
  "\u0000",
  "\ud800",
  " "
]

/** A valid text with a few edits, or a text of random tokens. */
const text = (random: Random.Random): string => {
  if (random.chance(0.2)) return Array.from({ length: random.below(20) }, () => random.pick(tokens)).join("")
  let value = random.pick(sound)
  for (let edits = random.below(4); edits > 0; edits--) {
    const at = random.below(value.length + 1)
    const end = at + random.below(random.chance(0.8) ? 3 : 30)
    value = value.slice(0, at) + (random.chance(0.6) ? random.pick(tokens) : "") + value.slice(end)
  }
  return value
}

/** An object with the members of a message, each one valid, unusual or absent. */
const message = (random: Random.Random): unknown => {
  const value: Record<string, unknown> = {}
  const member = (name: string, plain: ReadonlyArray<unknown>): void => {
    if (random.chance(0.4)) return
    Json.put(value, name, random.chance(0.6) ? random.pick(plain) : Json.value(random))
  }
  if (random.chance(0.9)) value["jsonrpc"] = "2.0"
  member("id", [0, "a", null, 1.5, -1, Number.MAX_SAFE_INTEGER + 1])
  member("method", ["ping", "tools/call", ""])
  member("params", [{}, { _meta: {} }])
  member("result", [{}, { content: [] }])
  member("error", [{ code: 1, message: "a" }, { code: 1.5, message: "a" }])
  return value
}

const tags = ["Request", "Notification", "Success", "Failure", "Invalid"]

const check = (inbound: JsonRpc.Inbound): void => {
  if (inbound._tag === "Batch") {
    expect(inbound.members.length).toBeGreaterThan(0)
    for (const member of inbound.members) check(member)
    return
  }
  expect(tags).toContain(inbound._tag)
  if (inbound._tag === "Invalid") {
    expect(Number.isInteger(inbound.error.code)).toBe(true)
    if (inbound.id !== undefined) expect(JsonRpc.isId(inbound.id)).toBe(true)
    return
  }
  // A message is the same after it is written and read again. (`JSON.parse` reads 1e999 as Infinity and keeps -0, which
  // have no JSON form. Lone surrogates become U+FFFD, except in ids.)
  const written = JSON.parse(wellFormed(JSON.stringify(inbound)))
  expect(JsonRpc.parseText(JsonRpc.encode(inbound))).toEqual("id" in inbound ? { ...written, id: inbound.id } : written)
}

describe("JsonRpc", () => {
  it("parseText returns a message, a batch or an error that can be sent for any text", () => {
    const random = Random.make(1)
    const seen = new Set<string>()
    for (let run = 0; run < 5_000; run++) {
      const inbound = JsonRpc.parseText(text(random))
      seen.add(inbound._tag)
      check(inbound)
    }
    expect([...seen].sort()).toEqual(["Batch", ...tags].sort())
  })

  it("parse returns a message or an error that can be sent for any JSON", () => {
    const random = Random.make(2)
    const seen = new Set<string>()
    for (let run = 0; run < 5_000; run++) {
      const inbound = JsonRpc.parse(random.chance(0.8) ? message(random) : Json.value(random))
      seen.add(inbound._tag)
      check(inbound)
    }
    expect([...seen].sort()).toEqual([...tags].sort())
  })

  it("parseText reads 100,000 nested brackets", () => {
    const depth = 100_000
    expect(JsonRpc.parseText("[".repeat(depth))._tag).toBe("Invalid")
    expect(JsonRpc.parseText("[".repeat(depth) + "]".repeat(depth))._tag).toBe("Batch")
    const nested = `{"jsonrpc":"2.0","id":1,"method":"a","params":${"{\"a\":".repeat(depth)}1${"}".repeat(depth)}}`
    expect(JsonRpc.parseText(nested)._tag).toBe("Request")
  })
})

/** The outcome of a codec: a value, or an error of one line. */
const answered = (result: Result.Result<unknown, string | Unrepresentable>): "success" | "failure" => {
  if (Result.isSuccess(result)) return "success"
  const line = typeof result.failure === "string" ? result.failure : result.failure.message
  expect(line).toMatch(/^[^\n]+$/)
  return "failure"
}

/** Values of a schema, most of them changed in one to three places, and arbitrary values. */
const damaged = (
  random: Random.Random,
  schema: Schema.Codec<unknown, unknown>,
  name: string
): ReadonlyArray<unknown> => {
  const sound = Check.canonical({ schema: schema as Schema.Codec<unknown> }, name, 12)
  return [
    ...sound.map((value) => {
      let changed = value
      for (let edits = random.below(4); edits > 0; edits--) changed = Json.mutate(random, changed)
      return changed
    }),
    ...Array.from({ length: 6 }, () => Json.value(random)),
    undefined,
    Object.create(null)
  ]
}

describe("Codec", () => {
  for (const revision of Revision.all) {
    it(`${revision} · the params of every message are decoded, or refused in one line`, () => {
      const random = Random.make(Random.hash(`params ${revision}`))
      const seen = { success: 0, failure: 0 }
      for (const method of [...Method.requests, ...Method.notifications]) {
        for (const raw of damaged(random, method.params, method.name)) {
          const params = raw as JsonRpc.JsonObject | undefined
          seen[answered(Codec.decodeParams(method, revision, params))]++
          answered(Codec.encodeParams(method, revision, params))
        }
      }
      expect(seen.success).toBeGreaterThan(100)
      expect(seen.failure).toBeGreaterThan(100)
    })

    it(`${revision} · the result of every request is decoded, or refused in one line`, () => {
      const random = Random.make(Random.hash(`result ${revision}`))
      const seen = { success: 0, failure: 0 }
      for (const method of Method.requests) {
        for (const raw of damaged(random, method.result, method.name)) {
          // `JsonRpc` refuses a result that is not an object.
          if (typeof raw !== "object" || raw === null || Array.isArray(raw)) continue
          const result = raw as JsonRpc.JsonObject
          seen[answered(Codec.decodeResult(method, revision, result))]++
          answered(Codec.decodeAnswer(method, revision, result))
          answered(Codec.encodeResult(method, revision, result))
        }
      }
      expect(seen.success).toBeGreaterThan(100)
      expect(seen.failure).toBeGreaterThan(50)
    })
  }
})
