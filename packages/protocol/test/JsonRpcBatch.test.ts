import * as JsonRpc from "@skein/protocol/JsonRpc"
import { assert, describe, it } from "@effect/vitest"
import * as Schema from "effect/Schema"
import * as Spec from "./oracle/Spec.ts"
import * as Validate from "./oracle/Validate.ts"
import * as Timed from "./timed.ts"

const batch = (text: string): JsonRpc.Batch<JsonRpc.Message | JsonRpc.Invalid> => {
  const read = JsonRpc.parseText(text)
  assert.strictEqual(read._tag, "Batch")
  return read as JsonRpc.Batch<JsonRpc.Message | JsonRpc.Invalid>
}

const good: ReadonlyArray<JsonRpc.Message> = [
  JsonRpc.request(1, "ping"),
  JsonRpc.request("a", "tools/call", { name: "x" }),
  JsonRpc.notification("notifications/initialized"),
  JsonRpc.success(2, { a: 1 }),
  JsonRpc.failure(3, { code: -32601, message: "m" })
]
const bad: ReadonlyArray<unknown> = [
  1,
  null,
  "x",
  [],
  [{ jsonrpc: "2.0", id: 1, method: "m" }],
  {},
  { jsonrpc: "2.0", id: 9 },
  { jsonrpc: "2.0", id: null, method: "m" },
  { jsonrpc: "2.0", id: 9, method: "m", params: [] },
  { jsonrpc: "2.0", id: 9, result: 1 }
]

describe("batches", () => {
  it("2025-03-26 · MUST support receiving JSON-RPC batches: reads every member in order", () => {
    assert.deepStrictEqual(batch(JsonRpc.encode({ _tag: "Batch", members: good })).members, good)
  })

  it("refuses a batch of more than maxBatch members, 10,000 by default, without reading them", () => {
    const of = (count: number) => `[${Array(count).fill("{}").join(",")}]`
    assert.lengthOf(batch(of(10_000)).members, 10_000)
    for (const [read, most] of [[JsonRpc.parseText(of(10_001)), 10_000], [JsonRpc.parseText(of(3), 2), 2]] as const) {
      assert.deepStrictEqual(read, {
        _tag: "Invalid",
        answer: false,
        id: undefined,
        error: { code: -32600, message: `Invalid Request: a batch must have at most ${most} messages` }
      })
    }
  })

  it("reads a batch of one member as a batch", () => {
    assert.lengthOf(batch(`[{"jsonrpc":"2.0","id":1,"method":"m"}]`).members, 1)
  })

  it("JSON-RPC, batch · returns one Invalid for an empty array", () => {
    for (const text of ["[]", " [ ] "]) {
      const read = JsonRpc.parseText(text)
      assert.strictEqual(read._tag, "Invalid")
      if (read._tag === "Invalid") {
        assert.strictEqual(read.error.code, -32600)
        assert.isUndefined(read.id)
        assert.isFalse(read.answer)
      }
    }
  })

  it("JSON-RPC, batch · returns one parse error for an array that is not valid JSON", () => {
    const read = JsonRpc.parseText(`[{"jsonrpc":"2.0","id":1,"method":"m"},{"jsonrpc"]`)
    assert.isTrue(read._tag === "Invalid" && read.error.code === -32700)
  })

  it.prop(
    "returns an error with its id for each invalid member, and keeps every valid member",
    [Schema.Array(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: good.length + bad.length - 1 })))],
    ([choice]) => {
      if (choice.length === 0) return
      const texts = choice.map((i) => i < good.length ? JsonRpc.encode(good[i]!) : JSON.stringify(bad[i - good.length]))
      const { members } = batch(`[${texts.join(",")}]`)
      assert.lengthOf(members, choice.length)
      for (const [at, i] of choice.entries()) {
        const member = members[at]!
        if (i < good.length) {
          assert.deepStrictEqual(member, good[i]!)
          continue
        }
        const value = bad[i - good.length] as { readonly id?: unknown } | null
        assert.isTrue(member._tag === "Invalid" && member.error.code === -32600)
        if (member._tag === "Invalid") assert.strictEqual(member.id, value?.id === 9 ? 9 : undefined)
      }
    }
  )

  it("reads members with the same id independently", () => {
    const text = JsonRpc.encode({ _tag: "Batch", members: [good[0]!, good[0]!] })
    assert.deepStrictEqual(batch(text).members, [good[0]!, good[0]!])
  })

  it("reads a batch of 100,000 members in linear time, where maxBatch allows it", () => {
    const text = `[${Array.from({ length: 100_000 }, (_, i) => `{"jsonrpc":"2.0","id":${i},"method":"m"}`).join(",")}]`
    Timed.linear(() => {
      assert.strictEqual(JsonRpc.parseText(text, 100_000)._tag, "Batch")
    })
  })
})

Spec.describeSpec("the official schema of batches", () => {
  it("2025-03-26 · written batches validate: requests with notifications, and responses", () => {
    const document = Spec.load("2025-03-26")
    const written = (members: ReadonlyArray<JsonRpc.Message>) =>
      JSON.parse(JsonRpc.encode({ _tag: "Batch", members })) as unknown
    assert.isUndefined(Validate.refusal(document, "JSONRPCBatchRequest", written(good.slice(0, 3))))
    assert.isUndefined(Validate.refusal(document, "JSONRPCBatchResponse", written(good.slice(3))))
    assert.isString(Validate.refusal(document, "JSONRPCBatchResponse", written(good)))
  })
})
