import { describe, expect, it } from "@effect/vitest"
import * as Catalog from "@skein/server/Catalog"
import * as Elicitation from "@skein/server/Elicitation"
import * as Principal from "@skein/server/Principal"
import * as ResultCache from "@skein/server/ResultCache"
import * as Resource from "@skein/server/Resource"
import * as Tool from "@skein/server/Tool"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Exit from "effect/Exit"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import * as TestClock from "effect/testing/TestClock"
import { OwnedStore } from "../../src/internal/base/ownedStore.ts"
import * as owners from "../../src/internal/state/ownerOf.ts"
import * as httpFixtures from "../http/fixtures.ts"
import * as http from "../http/kit.ts"
import * as input from "../input/kit.ts"
import * as kit from "../kit.ts"
import * as support from "./support.ts"

const Text = { text: Schema.String }
const who = Effect.map(Principal.current, Option.match({ onNone: () => "nobody", onSome: ({ id }) => id }))

/** A tool that returns the number of its run and its caller. */
const counting = (name = "count", options: object = { annotations: { readOnlyHint: true } }) => {
  const seen = { runs: 0 }
  const definition = Tool.layer(
    Tool.make(name, { input: Text, ...options }),
    ({ text }) => Effect.map(who, (id) => `${text} ${++seen.runs} ${id}`)
  )
  return { definition, seen }
}

const users = { cache: {}, other: {} }

const textOf = (result: kit.Json): string => result.content[0].text
const call = (client: kit.Client, text: string, name = "count") => Effect.map(client.call(name, { text }), textOf)

for (const revision of support.eras) {
  describe(`${revision} · a cache of results`, () => {
    it.effect("runs equal calls of a principal once until the lifetime passes, and never shares with another principal", () =>
      Effect.gen(function*() {
        const server = yield* support.build(
          kit.server(ResultCache.layer({ lifetime: "10 seconds" }), counting().definition)
        )
        const ada = yield* support.connect(server, revision, support.as("ada"))
        const again = yield* support.connect(server, revision, support.as("ada"))
        const bob = yield* support.connect(server, revision, support.as("bob"))
        expect(yield* call(ada, "a")).toBe("a 1 ada")
        expect(yield* call(again, "a")).toBe("a 1 ada")
        expect(yield* call(bob, "a")).toBe("a 2 bob")
        expect(yield* call(ada, "b")).toBe("b 3 ada")
        yield* TestClock.adjust("9 seconds")
        expect(yield* call(ada, "a")).toBe("a 1 ada")
        yield* TestClock.adjust("1 second")
        expect(yield* call(ada, "a")).toBe("a 4 ada")
      }))

    it.effect("keeps principals apart whose ids look like keys of others", () =>
      Effect.gen(function*() {
        const server = yield* support.build(kit.server(ResultCache.layer(), counting().definition))
        const ids = ["a", "a ", "session 1", "connection 1", "1:a", "", "principal a", "__proto__"]
        for (const id of ids) {
          const client = yield* support.connect(server, revision, support.as(id))
          expect((yield* call(client, "x")).slice(4)).toBe(id)
          expect((yield* call(client, "x")).slice(4)).toBe(id)
        }
      }))

    it.effect("caches for an anonymous caller within its connection, and not beyond", () =>
      Effect.gen(function*() {
        const { definition, seen } = counting()
        const server = yield* support.build(kit.server(ResultCache.layer(), definition))
        for (let n = 1; n <= 2; n++) {
          const client = yield* support.connect(server, revision)
          expect(yield* call(client, "x")).toBe(`x ${n} nobody`)
          expect(yield* call(client, "x")).toBe(`x ${n} nobody`)
        }
        expect(seen.runs).toBe(2)
      }))

    it.effect("shares results between all callers where the author says so", () =>
      Effect.gen(function*() {
        const server = yield* support.build(kit.server(ResultCache.layer({ share: true }), counting().definition))
        for (const id of ["ada", "bob"]) {
          expect(yield* call(yield* support.connect(server, revision, support.as(id)), "x")).toBe("x 1 ada")
        }
      }))

    it.effect("caches neither failures, nor tools and results that their author keeps out, nor other tools", () =>
      Effect.gen(function*() {
        let runs = 0
        const named = (
          name: string,
          handler: Effect.Effect<unknown, any, any>,
          metadata?: typeof ResultCache.uncached
        ) =>
          Tool.layer(
            Tool.make(name, { annotations: { readOnlyHint: true }, metadata }),
            () => Effect.andThen(Effect.sync(() => ++runs), handler) as never
          )
        const client = yield* kit.client(
          kit.server(
            ResultCache.layer(),
            named("fails", Effect.fail({ message: "no" })),
            named("made", Effect.succeed(Tool.result({ content: "no", isError: true }))),
            named("dies", Effect.die("no")),
            named("out", Effect.succeed("x"), ResultCache.uncached),
            named("skips", Effect.as(ResultCache.skip, "x")),
            counting("other", {}).definition
          ),
          revision
        )
        for (const name of ["fails", "made", "dies", "out", "skips"]) {
          runs = 0
          yield* client.request("tools/call", { name })
          yield* client.request("tools/call", { name })
          expect([name, runs]).toEqual([name, 2])
        }
        expect(yield* call(client, "x", "other")).toBe("x 1 nobody")
        expect(yield* call(client, "x", "other")).toBe("x 2 nobody")
      }))

    it.effect("never caches a call that asked the client, and others do not wait for the answer", () =>
      Effect.gen(function*() {
        let runs = 0
        const ask = Tool.layer(Tool.make("ask"), () =>
          Effect.map(
            Effect.andThen(
              Effect.sync(() => ++runs),
              Elicitation.accepted(Elicitation.form("Name?", { name: Schema.String }))
            ),
            ({ name }) => name
          ))
        let names = 0
        const client = yield* input.client(kit.server(ResultCache.layer({ tools: ["ask"] }), ask), {
          revision,
          principal: { id: "ada" },
          answer: () => input.accept({ name: `name ${++names}` })
        })
        const both = yield* Effect.all([client.call("ask"), client.call("ask")], { concurrency: 2 })
        expect(both.toSorted()).toEqual(["name 1", "name 2"])
        expect(yield* client.call("ask")).toBe("name 3")
        expect(client.asked).toHaveLength(3)
      }))

    it.effect("runs concurrent equal calls once, and another one runs if that is cancelled", () =>
      Effect.gen(function*() {
        const gate = yield* Deferred.make<string>()
        let runs = 0
        const slow = Tool.layer(
          Tool.make("slow", { annotations: { readOnlyHint: true } }),
          () => Effect.andThen(Effect.sync(() => ++runs), Deferred.await(gate))
        )
        const server = yield* support.build(kit.server(ResultCache.layer(), slow))
        const client = yield* support.connect(server, revision, support.as("ada"))
        const first = client.send("tools/call", { name: "slow" })
        const waiting = yield* Effect.forkChild(
          Effect.all([client.call("slow"), client.call("slow"), client.call("slow")], { concurrency: 3 })
        )
        yield* kit.settle
        expect(runs).toBe(1)
        client.notify("notifications/cancelled", { requestId: first })
        yield* kit.settle
        expect(runs).toBe(2)
        yield* Deferred.succeed(gate, "done")
        expect((yield* Fiber.join(waiting)).map(textOf)).toEqual(["done", "done", "done"])
        expect(textOf(yield* client.call("slow"))).toBe("done")
        expect(runs).toBe(2)
      }))

    it.effect("drops the least recently used result of the owner with the most, and refuses larger ones", () =>
      Effect.gen(function*() {
        const { definition, seen } = counting()
        const server = yield* support.build(
          kit.server(ResultCache.layer({ maxEntries: 3, maxBytes: 1_000 }), definition)
        )
        const small = yield* support.connect(server, revision, support.as("small"))
        const greedy = yield* support.connect(server, revision, support.as("greedy"))
        yield* call(small, "mine")
        for (let n = 0; n < 10; n++) yield* call(greedy, `${n}`)
        expect(seen.runs).toBe(11)
        yield* call(small, "mine")
        yield* call(greedy, "9")
        expect(seen.runs).toBe(11)
        yield* call(greedy, "0")
        expect(seen.runs).toBe(12)
        yield* call(small, "x".repeat(1_000))
        yield* call(small, "x".repeat(1_000))
        expect(seen.runs).toBe(14)
        yield* call(small, "mine")
        expect(seen.runs).toBe(14)
      }))

    it.effect("caches resources until they change, for the ttlMs of the result at most", () =>
      Effect.gen(function*() {
        const runs: Record<string, number> = {}
        const resource = (uri: string, ttlMs?: number) =>
          Resource.layer(
            Resource.make(uri, ttlMs === undefined ? {} : { ttlMs }),
            Effect.sync(() => `${runs[uri] = (runs[uri] ?? 0) + 1}`)
          )
        const touch = Tool.layer(Tool.make("touch"), () => Catalog.updated("a://changing"))
        const client = yield* kit.client(
          kit.server(
            ResultCache.layer({ resources: ({ uri }) => uri.startsWith("a://"), lifetime: "1 hour" }),
            touch,
            resource("a://changing"),
            resource("a://short", 1_000),
            resource("a://never", 0),
            resource("b://other")
          ),
          revision
        )
        const read = (uri: string) =>
          Effect.map(client.result("resources/read", { uri }), ({ contents }) => contents[0].text)
        for (let n = 0; n < 2; n++) {
          for (const uri of ["a://changing", "a://short", "a://never", "b://other"]) yield* read(uri)
        }
        expect(runs).toEqual({ "a://changing": 1, "a://short": 1, "a://never": 2, "b://other": 2 })
        yield* client.call("touch")
        expect(yield* read("a://changing")).toBe("2")
        yield* TestClock.adjust("1 second")
        expect(yield* read("a://short")).toBe("2")
      }))

    it.effect("does not answer with the result of a tool that was replaced, or after clear", () =>
      Effect.gen(function*() {
        const { definition, seen } = counting()
        const clear = Tool.layer(
          Tool.make("clear", { input: { name: Schema.optionalKey(Schema.String) } }),
          ({ name }) => Effect.as(ResultCache.clear(name), "cleared")
        )
        const replace = Tool.layer(Tool.make("replace"), () =>
          Effect.as(
            Effect.orDie(Catalog.persistent(Tool.replace(
              Tool.make("count", { input: Text, annotations: { readOnlyHint: true } }),
              () => Effect.succeed("new")
            ))),
            "replaced"
          ))
        const client = yield* kit.client(kit.server(ResultCache.layer(), definition, clear, replace), revision)
        yield* call(client, "x")
        yield* client.call("clear", { name: "other" })
        yield* call(client, "x")
        expect(seen.runs).toBe(1)
        yield* client.call("clear", { name: "count" })
        yield* call(client, "x")
        expect(seen.runs).toBe(2)
        yield* client.call("replace")
        expect(yield* call(client, "x")).toBe("new")
      }))

    it.effect("checks whether the caller may see the tool before it answers", () =>
      Effect.gen(function*() {
        let isOpen = true
        const { definition } = counting()
        const server = yield* support.build(
          kit.server(ResultCache.layer({ share: true }), Catalog.visibleTo(() => isOpen, definition))
        )
        const client = yield* support.connect(server, revision, support.as("ada"))
        yield* call(client, "x")
        isOpen = false
        expect(yield* client.error("tools/call", { name: "count", arguments: { text: "x" } })).toMatchObject({
          code: -32602
        })
      }))
  })
}

describe("the owner of results", () => {
  it.effect("is released once when its scope closes, for each user of it", () =>
    Effect.gen(function*() {
      const scope = yield* Scope.make()
      const owner = { key: "session 1", scope }
      const released: Array<string> = []
      for (const name of ["cache", "cache", "other"] as const) {
        const user = users[name]
        yield* owners.whenGone(user, owner, () => void released.push(name))
      }
      expect(released).toEqual([])
      yield* Scope.close(scope, Exit.void)
      expect(released.toSorted()).toEqual(["cache", "other"])
    }))

  it.live("2026-07-28 · does not exist for anonymous callers over HTTP: their results are not cached", () =>
    Effect.scoped(Effect.gen(function*() {
      const { definition, seen } = counting()
      const at = yield* http.serve(httpFixtures.server(ResultCache.layer(), definition))
      const request = http.modern("tools/call", { name: "count", arguments: { text: "x" } })
      for (let n = 1; n <= 2; n++) {
        expect((yield* http.send(at, request)).json.result.content[0].text).toBe(`x ${n} nobody`)
      }
      expect(seen.runs).toBe(2)
    })))
})

describe("a table that owners share", () => {
  const operation = Schema.Struct({
    owner: Schema.Literals(["a", "b", "c"]),
    key: Schema.Literals(["1", "2", "3", "4", "5"]),
    bytes: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 60 })),
    kind: Schema.Literals(["set", "polite", "get", "remove"])
  })

  it.effect.prop(
    "stays within its bounds, and counts what it has",
    [Schema.Array(operation)],
    ([operations]) =>
      Effect.sync(() => {
        const store = new OwnedStore<number>({ maxEntries: 6, maxBytes: 100 })
        const owners = ["a", "b", "c"]
        for (const [now, { bytes, key, kind, owner }] of operations.entries()) {
          const others = owners.filter((other) => other !== owner).map((other) => store.bytesOf(other))
          if (kind === "get") store.get(owner, key, now)
          else if (kind === "remove") store.remove(owner, key)
          else {
            const before = store.get(owner, key, now)
            const stored = store.set(owner, key, { value: now, bytes, expires: Infinity }, now, kind === "polite")
            expect(store.get(owner, key, now)).toBe(stored ? now : before)
            if (!stored) {
              expect(owners.filter((other) => other !== owner).map((other) => store.bytesOf(other))).toEqual(others)
            }
          }
          expect(store.size).toBeLessThanOrEqual(6)
          expect(store.bytes).toBeLessThanOrEqual(100)
          expect(owners.reduce((sum, each) => sum + store.bytesOf(each), 0)).toBe(store.bytes)
        }
        for (const owner of owners) store.removeOwner(owner)
        expect([store.size, store.bytes]).toEqual([0, 0])
      })
  )
})
