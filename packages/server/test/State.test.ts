import { describe, expect, it } from "@effect/vitest"
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import * as NodePath from "@effect/platform-node/NodePath"
import type { Origin } from "@skein/runtime/Connection"
import * as Elicitation from "@skein/server/Elicitation"
import type * as McpServer from "@skein/server/McpServer"
import { once } from "@skein/server/Once"
import * as SqlStateStore from "@skein/server/SqlStateStore"
import * as State from "@skein/server/State"
import { StateError } from "@skein/server/StateError"
import * as StateStore from "@skein/server/StateStore"
import * as Tool from "@skein/server/Tool"
import * as SqliteClient from "@skein/sql/SqliteClient"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as KeyValueStore from "effect/persistence/KeyValueStore"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/testing/TestClock"
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as input from "./input/kit.ts"
import * as kit from "./kit.ts"
import * as support from "./middleware/support.ts"

const Text = { text: Schema.String }
const Items = Schema.Array(Schema.String)

/** The tools `add`, `show` and `clear` of a state. */
const toolsOf = (cart: State.State<ReadonlyArray<string>>) =>
  Layer.mergeAll(
    Tool.layer(Tool.make("add", { input: Text }), ({ text }) =>
      Effect.map(cart.update((items) => [...items, text]), (items) => items.join(" "))),
    Tool.layer(Tool.make("show"), () =>
      Effect.map(cart.get, (items) => items.join(" "))),
    Tool.layer(Tool.make("clear"), () => Effect.as(cart.remove, "cleared"))
  )

const cartOf = (options: Partial<State.Options<ReadonlyArray<string>>> = {}) =>
  State.make("cart", { schema: Items, initial: [], ...options })

const serverOf = (options: Partial<State.Options<ReadonlyArray<string>>> = {}) => kit.server(toolsOf(cartOf(options)))

const call = (client: kit.Client, name: string, text?: string): Effect.Effect<string> =>
  Effect.map(client.call(name, text === undefined ? undefined : { text }), (result) => result.content[0].text)

const hostile = [
  "ada",
  "ada ",
  " ada",
  "principal ada",
  "session 1",
  "user cart",
  "",
  "\u0000",
  "../../x",
  "[\"a\",\"b\"]",
  "__proto__",
  "constructor",
  "a".repeat(10_000),
  "\ud800",
  "Ada",
  "ad\u0061\u0301"
]

const stores: ReadonlyArray<readonly [string, Layer.Layer<never>]> = [
  ["in memory", StateStore.layerMemory()],
  ["in a KeyValueStore", StateStore.layerKeyValue().pipe(Layer.provide(KeyValueStore.layerMemory))],
  [
    "in SQLite",
    SqlStateStore.layer().pipe(Layer.provide(SqliteClient.layer({ filename: ":memory:" })), Layer.orDie)
  ]
]

for (const revision of support.eras) {
  for (const [name, store] of stores) {
    describe(`${revision} · the state of a user, ${name}`, () => {
      const connecting = (options: Partial<State.Options<ReadonlyArray<string>>> = {}) =>
        Effect.map(
          support.build(serverOf(options).pipe(Layer.provide(Layer.fresh(store)))),
          (server) => (origin: Origin) => support.connect(server, revision, origin)
        )

      it.effect("stays between requests and connections, and is never visible to another user, hostile ids included", () =>
        Effect.gen(function*() {
          const connect = yield* connecting()
          for (const [n, id] of hostile.entries()) {
            expect(yield* call(yield* connect(support.as(id)), "show")).toBe("")
            expect(yield* call(yield* connect(support.as(id)), "add", `mine${n}`)).toBe(`mine${n}`)
          }
          for (const [n, id] of hostile.entries()) {
            const client = yield* connect(support.as(id))
            expect(yield* call(client, "show")).toBe(`mine${n}`)
            expect(yield* call(client, "add", "more")).toBe(`mine${n} more`)
          }
          yield* call(yield* connect(support.as("ada")), "clear")
          expect(yield* call(yield* connect(support.as("ada")), "show")).toBe("")
          expect(yield* call(yield* connect(support.as("ada ")), "show")).toBe("mine1 more")
        }))

      it.effect("loses no concurrent update", () =>
        Effect.gen(function*() {
          const connect = yield* connecting()
          const clients = [yield* connect(support.as("ada")), yield* connect(support.as("ada"))]
          const names = Array.from({ length: 20 }, (_, n) => `${n}`)
          yield* Effect.all(names.map((text, n) => call(clients[n % 2]!, "add", text)), { concurrency: "unbounded" })
          const items = (yield* call(clients[0]!, "show")).split(" ")
          expect(items.toSorted()).toEqual(names.toSorted())
        }))

      it.effect("expires after the lifetime since its last write", () =>
        Effect.gen(function*() {
          const connect = yield* connecting({ lifetime: "10 seconds" })
          const client = yield* connect(support.as("ada"))
          yield* call(client, "add", "a")
          yield* TestClock.adjust("9 seconds")
          expect(yield* call(client, "add", "b")).toBe("a b")
          yield* TestClock.adjust("9 seconds")
          expect(yield* call(client, "show")).toBe("a b")
          yield* TestClock.adjust("1 second")
          expect(yield* call(client, "show")).toBe("")
          expect(yield* call(client, "add", "c")).toBe("c")
        }))

      it.effect("refuses a value that is too large, and keeps the earlier one", () =>
        Effect.gen(function*() {
          const connect = yield* connecting({ maxBytes: 20 })
          const client = yield* connect(support.as("ada"))
          yield* call(client, "add", "a")
          expect(yield* call(client, "add", "\u4e16".repeat(6))).toBe("The state cart exceeds maxBytes (20 bytes)")
          expect(yield* call(client, "show")).toBe("a")
        }))
    })
  }

  describe(`${revision} · owners`, () => {
    it.effect("an anonymous caller has no state of a user, or that of its session if the author says so", () =>
      Effect.gen(function*() {
        const refused = "The state cart belongs to a user, and the caller is anonymous"
        const strict = yield* support.build(serverOf())
        expect(yield* call(yield* support.connect(strict, revision), "add", "a")).toBe(refused)
        const server = yield* support.build(serverOf({ anonymous: "session" }))
        const one = yield* support.connect(server, revision)
        const other = yield* support.connect(server, revision)
        if (revision === "2026-07-28") return expect(yield* call(one, "add", "a")).toBe(refused)
        yield* call(one, "add", "a")
        expect(yield* call(one, "show")).toBe("a")
        expect(yield* call(other, "show")).toBe("")
      }))

    it.effect("a session has a state of its own in session-based revisions; a stateless request has that of its user, or none", () =>
      Effect.gen(function*() {
        for (const stateless of ["fail", "user"] as const) {
          const server = yield* support.build(serverOf({ scope: "session", stateless }))
          const one = yield* support.connect(server, revision, support.as("ada"))
          const other = yield* support.connect(server, revision, support.as("ada"))
          const bob = yield* support.connect(server, revision, support.as("bob"))
          const added = yield* call(one, "add", "a")
          const seen = [yield* call(one, "show"), yield* call(other, "show"), yield* call(bob, "show")]
          const none = "The state cart belongs to a session, and the request has none"
          if (revision === "2025-11-25") expect([added, seen]).toEqual(["a", ["a", "", ""]])
          else if (stateless === "user") expect([added, seen]).toEqual(["a", ["a", "a", ""]])
          else expect([added, seen]).toEqual([none, [none, none, none]])
          const anonymous = yield* support.connect(server, revision)
          expect(yield* call(anonymous, "show")).toBe(revision === "2025-11-25" ? "" : none)
        }
      }))

    it.effect("states of another name, another scope and another server are apart", () =>
      Effect.gen(function*() {
        const named = (name: string, tool: string, scope: "user" | "session") => {
          const count = State.make(name, { initial: 0, scope, stateless: "user" })
          return Tool.layer(Tool.make(tool), () => Effect.map(count.update((n) => n + 1), String))
        }
        const definitions = [named("a", "a", "user"), named("b", "b", "user"), named("a", "c", "session")] as const
        for (let n = 0; n < 2; n++) {
          const server = yield* support.build(kit.server(...definitions))
          const client = yield* support.connect(server, revision, support.as("ada"))
          expect(yield* call(client, "a")).toBe("1")
          expect(yield* call(client, "a")).toBe("2")
          expect(yield* call(client, "b")).toBe("1")
          expect(yield* call(client, "c")).toBe("1")
        }
      }))
  })

  describe(`${revision} · handlers`, () => {
    it.effect("async ones use the state of their context, and see the errors of operations", () =>
      Effect.gen(function*() {
        const count = State.make<number>("count", { schema: Schema.Int, initial: 0 })
        const counting = Tool.async(Tool.make("count"), async (_, { state }) => {
          const { get, modify, remove, set, update } = state(count)
          const seen = [await get(), await update((n) => n + 1), await get(), await modify((n) => [n + 100, n + 1])]
          await set(10)
          seen.push(await get())
          await remove()
          seen.push(await get())
          const error = await set(1.5).catch((error: unknown) => error)
          return `${seen.join(" ")} ${error instanceof StateError ? error.reason._tag : "none"}`
        })
        const server = yield* support.build(kit.server(counting))
        expect(yield* call(yield* support.connect(server, revision, support.as("ada")), "count"))
          .toBe("0 1 1 101 10 0 InvalidValue")
        expect(yield* call(yield* support.connect(server, revision), "count"))
          .toBe("The state count belongs to a user, and the caller is anonymous")
      }))

    it.effect("update once in several rounds of input requests, with once", () =>
      Effect.gen(function*() {
        const count = State.make("count", { initial: 0 })
        const ask = Tool.layer(Tool.make("ask"), () =>
          Effect.gen(function*() {
            const n = yield* once("count", Schema.Number, count.update((n) => n + 1))
            yield* Elicitation.accepted(Elicitation.form("Sure?", { sure: Schema.Boolean }))
            return `${n} ${yield* count.get}`
          }))
        const client = yield* input.client(kit.server(ask), {
          revision,
          principal: { id: "ada" },
          answer: () => input.accept({ sure: true })
        })
        expect(yield* client.call("ask")).toBe("1 1")
        expect(yield* client.call("ask")).toBe("2 2")
      }))

    it.effect("return another result of a change, and refuse values that have no JSON form", () =>
      Effect.gen(function*() {
        const queue = State.make<ReadonlyArray<unknown>>("queue", { initial: ["a", "b"] })
        const take = Tool.layer(Tool.make("take"), () => queue.modify(([first, ...rest]) => [String(first), rest]))
        const bad = Tool.layer(Tool.make("bad"), () => Effect.as(queue.set([() => {}]), "stored"))
        const server = yield* support.build(kit.server(take, bad))
        const client = yield* support.connect(server, revision, support.as("ada"))
        expect([yield* call(client, "take"), yield* call(client, "take")]).toEqual(["a", "b"])
        expect(yield* call(client, "bad")).toBe("The value of the state queue is invalid: it has no JSON form")
      }))
  })
}

describe("the store in memory", () => {
  const users = (server: McpServer.McpServer["Service"]) => (id: string) =>
    support.connect(server, "2026-07-28", support.as(id))

  it.effect("bounds the values of one owner, and keeps them", () =>
    Effect.gen(function*() {
      const one = State.make("one", { initial: "" })
      const two = State.make("two", { initial: "" })
      const set = (name: string, state: State.State<string>) =>
        Tool.layer(Tool.make(name, { input: Text }), ({ text }) => Effect.as(state.set(text), "stored"))
      const server = yield* support.build(
        kit.server(set("one", one), set("two", two)).pipe(
          Layer.provide(StateStore.layerMemory({ maxBytesPerClient: 50 }))
        )
      )
      const ada = yield* users(server)("ada")
      expect(yield* call(ada, "one", "x".repeat(30))).toBe("stored")
      expect(yield* call(ada, "two", "x".repeat(30))).toBe("The state two exceeds maxBytesPerClient (50 bytes)")
      expect(yield* call(ada, "one", "x".repeat(40))).toBe("stored")
      expect(yield* call(yield* users(server)("bob"), "two", "x".repeat(30))).toBe("stored")
    }))

  it.effect("takes room from the owner with the most, and refuses a write of that owner", () =>
    Effect.gen(function*() {
      const server = yield* support.build(
        serverOf().pipe(Layer.provide(StateStore.layerMemory({ maxBytes: 100, maxEntries: 10 })))
      )
      const greedy = yield* users(server)("greedy")
      const small = yield* users(server)("small")
      expect(yield* call(small, "add", "mine")).toBe("mine")
      expect(yield* call(greedy, "add", "x".repeat(60))).toBe("x".repeat(60))
      expect(yield* call(greedy, "add", "x".repeat(60))).toMatch(/^The state cart cannot be stored: the store is full/)
      expect(yield* call(greedy, "show")).toBe("x".repeat(60))
      expect(yield* call(small, "add", "y".repeat(40))).toBe(`mine ${"y".repeat(40)}`)
      expect(yield* call(greedy, "show")).toBe("")
    }))
})

describe("a KeyValueStore", () => {
  const folder = Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "skein-state-"))),
    (path) => Effect.sync(() => rmSync(path, { recursive: true }))
  )
  const files = (path: string) =>
    StateStore.layerKeyValue().pipe(
      Layer.provide(KeyValueStore.layerFileSystem(path)),
      Layer.provide([NodeFileSystem.layer, NodePath.layer]),
      Layer.orDie
    )

  it.effect("of files keeps the state of users when the server starts again, hostile ids included", () =>
    Effect.gen(function*() {
      const path = yield* folder
      const run = (use: (id: string, n: number) => (client: kit.Client) => Effect.Effect<unknown>) =>
        Effect.scoped(Effect.gen(function*() {
          const server = yield* support.build(serverOf().pipe(Layer.provide(Layer.fresh(files(path)))))
          for (const [n, id] of hostile.entries()) {
            yield* use(id, n)(yield* support.connect(server, "2026-07-28", support.as(id)))
          }
        }))
      yield* run((_, n) => (client) => call(client, "add", `mine${n}`))
      yield* run((_, n) => (client) =>
        Effect.map(call(client, "add", "more"), (text) => expect(text).toBe(`mine${n} more`))
      )
      expect(readdirSync(path).every((name) => /^skein-state-[\da-f]{64}$/.test(name))).toBe(true)
    }))

  it.effect("fails with a typed error for a damaged value, and for one that does not match the schema", () =>
    Effect.gen(function*() {
      const path = yield* folder
      const tags = (state: State.State<number>) =>
        Tool.layer(
          Tool.make("tag"),
          () => Effect.catch(Effect.map(state.get, String), ({ reason }) => Effect.succeed<string>(reason._tag))
        )
      const counts = State.make("cart", { schema: Schema.Int, initial: 0 })
      const reset = Tool.layer(Tool.make("reset"), () => Effect.as(counts.set(1), "reset"))
      const server = yield* support.build(
        kit.server(toolsOf(cartOf()), tags(counts), reset).pipe(Layer.provide(files(path)))
      )
      const client = yield* support.connect(server, "2026-07-28", support.as("ada"))
      yield* call(client, "add", "a")
      expect(yield* call(client, "tag")).toBe("InvalidValue")
      expect(yield* call(client, "show")).toBe("a")
      yield* call(client, "reset")
      expect(yield* call(client, "tag")).toBe("1")
      const [file] = readdirSync(path)
      for (const text of ["{", "[]", "{\"json\":1}", "null"]) {
        writeFileSync(join(path, file!), text)
        expect(yield* call(client, "tag")).toBe("Unavailable")
        expect(readFileSync(join(path, file!), "utf8")).toBe(text)
      }
    }))
})

describe("a store of an application", () => {
  it.effect("whose writes always conflict fails with Conflict", () =>
    Effect.gen(function*() {
      let attempts = 0
      const contended: StateStore.Store = {
        get: () => Effect.succeed({ json: "[]", version: "1" }),
        set: () => Effect.sync(() => ++attempts < 0),
        remove: () => Effect.void
      }
      const server = yield* support.build(serverOf().pipe(Layer.provide(StateStore.layer(contended))))
      const client = yield* support.connect(server, "2026-07-28", support.as("ada"))
      expect(yield* call(client, "add", "a")).toBe(
        "The state cart was changed by others each time: 100 attempts failed"
      )
      expect(attempts).toBe(100)
    }))
})
