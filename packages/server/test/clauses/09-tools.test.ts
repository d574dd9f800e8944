/** Tools (server/tools): names, lists and calls, over every transport. */
import { describe, expect, it } from "@effect/vitest"
import * as Revision from "@skein/protocol/Revision"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as catalog from "../catalog.ts"
import * as kit from "../kit.ts"
import * as transports from "./transports.ts"

const lists = ["tools/list", "resources/list", "resources/templates/list", "prompts/list"]

for (const [{ connect, name }, revision] of transports.each) {
  describe(`${revision} · ${name}`, () => {
    if (Revision.era(revision) === "stateless") {
      it.live(`${revision} · ${name} · lists MUST NOT vary per connection or as a side effect of other requests, in a deterministic order`, () =>
        Effect.gen(function*() {
          const server = Layer.succeedContext(yield* Layer.build(catalog.server))
          const all = (client: transports.Client) => Effect.forEach(lists, (method) => client.result(method))
          const first = yield* connect(server, revision)
          const before = yield* all(first)
          yield* first.result("tools/call", { name: "add", arguments: { a: 1, b: 2 } })
          yield* first.error("tools/call", { name: "nonsense" })
          yield* first.result("prompts/get", { name: "gallery" })
          expect(yield* all(first)).toEqual(before)
          // A session beside it does not change them either.
          yield* connect(server, "2025-11-25")
          const second = yield* connect(server, revision)
          expect(yield* all(second)).toEqual(before)
          expect(before[0].tools.map(({ name }: kit.Json) => name)).toEqual(["add", "numbers", "show", "steps"])
        }))
    }

    it.live(`${revision} · ${name} · processes a request for a task normally if the server did not declare tasks`, () =>
      Effect.gen(function*() {
        const client = yield* connect(catalog.server, revision)
        const result = yield* client.result("tools/call", {
          name: "add",
          arguments: { a: 1, b: 2 },
          task: { ttl: 1000 }
        })
        expect(result.content).toEqual([{ type: "text", text: "{\"sum\":3}" }])
        expect("task" in result).toBe(false)
      }))
  })
}

describe("tool names", () => {
  const good = ["getUser", "DATA_EXPORT_v2", "admin.tools.list", "a", "-", "0", "x".repeat(128)]
  const bad = ["", "x".repeat(129), "a b", "a,b", "a/b", "é", "a\n", "\u0000"]
  const offer = (names: ReadonlyArray<string>) =>
    kit.logged((lines) =>
      Effect.map(
        Layer.build(kit.server(...names.map((name) => Tool.layer(Tool.make(name), () => Effect.succeed("ok"))))),
        () => lines
      )
    )

  it.effect("2025-11-25 · accepts names of 1 to 128 letters, digits, underscores, hyphens and dots", () =>
    Effect.gen(function*() {
      expect(yield* offer(good)).toEqual([])
    }))

  it.effect("2025-11-25 · SHOULD be the only allowed characters: offers other names, and logs each once", () =>
    Effect.gen(function*() {
      const lines = yield* offer(bad)
      expect(lines.length).toBe(bad.length)
      for (const [at, name] of bad.entries()) {
        expect(lines[at]).toContain(name.length > 128 ? "xxx…" : JSON.stringify(name))
        expect(lines[at]!.length).toBeLessThan(300)
      }
    }))
})
