/** Bounds on the stored schemas of listed tools. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type * as Client from "../../src/Client.ts"
import { sizeUpTo } from "@skein/protocol/Nesting"
import * as ScriptedServer from "@skein/testing/ScriptedServer"
import { opened, page, tool, warnings } from "./listed.ts"
import { bounded } from "../support/fixedBounds.ts"

const schema = (description: string) => ({
  type: "object",
  properties: { n: { type: "integer", description } },
  required: ["n"]
})

/**
 * A client that has listed tools with descriptions of the given lengths. Each call returns a result that does not
 * conform.
 */
const listed = (lengths: () => ReadonlyArray<number>, options?: Client.Options) =>
  Effect.gen(function*() {
    const { client } = yield* opened(
      "2025-11-25",
      ({ method }) =>
        method === "tools/list"
          ? page(
            "2025-11-25",
            ...lengths().map((length, at) => tool(`t${at}`, { outputSchema: schema("x".repeat(length)) }))
          )
          : ScriptedServer.success({ content: [], structuredContent: { n: "none" } }),
      options
    )
    yield* client.listToolsPage()
    return client
  })

const isChecked = (client: Client.Client, name: string) =>
  Effect.map(Effect.result(client.callTool(name)), Result.isFailure)

describe("the stored outputSchemas", () => {
  it.effect("exclude a schema beyond the validator's bound, and the log gives the reason once, at the first call", () =>
    Effect.gen(function*() {
      const { layer, logged: lines } = warnings()
      const run = Effect.gen(function*() {
        const client = yield* listed(() => [10, 300_000])
        assert.deepStrictEqual(lines, [])
        assert.isTrue(yield* isChecked(client, "t0"))
        assert.isFalse(yield* isChecked(client, "t1"))
        yield* client.listToolsPage()
        assert.isFalse(yield* isChecked(client, "t1"))
      })
      yield* Effect.provide(run, layer)
      assert.lengthOf(lines, 1)
      assert.include(
        lines[0],
        "\"t1\" are not validated, since its outputSchema cannot be used: The schema has more than 262144"
      )
    }))

  it.effect("maxOutputSchemaChars: schemas beyond the total are not checked; relisting or discarding one frees its share", () =>
    Effect.gen(function*() {
      let lengths = [400, 400, 400, 10]
      const client = yield* bounded({ maxOutputSchemaChars: 1_200 }, listed(() => lengths))
      const checked = () => Effect.forEach(["t0", "t1", "t2", "t3"], (name) => isChecked(client, name))
      assert.deepStrictEqual(yield* checked(), [true, true, false, true])
      yield* client.listToolsPage()
      assert.deepStrictEqual(yield* checked(), [true, true, false, true])
      lengths = [10, 400, 400, 10]
      yield* client.listToolsPage()
      assert.deepStrictEqual(yield* checked(), [true, true, true, true])
    }))

  it.effect("maxOutputSchemaChars: discarding a schema for maxItems frees its share too", () =>
    Effect.gen(function*() {
      const client = yield* bounded(
        { maxOutputSchemaChars: 1_700 },
        listed(() => [400, 400, 400, 400], { limits: { maxItems: 1 } })
      )
      assert.isFalse(yield* isChecked(client, "t0"))
      assert.isTrue(yield* isChecked(client, "t3"))
    }))

  it("are measured as half to all of their JSON length, and no further than the bound", () => {
    for (const value of [{}, [], 7, "a", schema("y"), { a: [1, [], { b: [true, null, "c"] }], "d e": -1 }]) {
      const size = JSON.stringify(value).length
      assert.isAtMost(sizeUpTo(value, Infinity), size)
      assert.isAtLeast(sizeUpTo(value, Infinity), size / 2)
    }
    assert.isBelow(sizeUpTo(Array.from({ length: 100_000 }, () => "xxxxxxxx"), 1_000), 1_100)
    let deep: unknown = 1
    for (let at = 0; at < 100_000; at++) deep = { a: deep }
    assert.isAbove(sizeUpTo(deep, 500_000), 500_000)
  })
})
