import { describe, expect, it } from "@effect/vitest"
import * as Revision from "@skein/protocol/Revision"
import * as Catalog from "@skein/server/Catalog"
import * as McpServer from "@skein/server/McpServer"
import * as Middleware from "@skein/server/Middleware"
import * as Resource from "@skein/server/Resource"
import * as ResourceTemplate from "@skein/server/ResourceTemplate"
import * as Tool from "@skein/server/Tool"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import * as TestClock from "effect/testing/TestClock"
import * as kit from "../kit.ts"

const tool = (name: string) => Tool.layer(Tool.make(name), () => Effect.succeed(name))

/** Builds a layer and lets all of its delays end. */
const built = <A, E>(layer: Layer.Layer<A, E>) =>
  Effect.gen(function*() {
    const fiber = yield* Effect.forkScoped(Layer.build(layer), { startImmediately: true })
    yield* TestClock.adjust("1 minute")
    return yield* Fiber.join(fiber)
  })

const namesOf = (page: kit.Json): ReadonlyArray<string> => page.tools.map((tool: kit.Json) => tool.name)

class Slow extends Context.Service<Slow, number>()("test/Slow") {
  static readonly after = (seconds: number) =>
    Layer.effect(Slow, Effect.as(Effect.sleep(`${seconds} seconds`), seconds))
}

/** Four ways in which a definition may be registered late. */
const late: Record<string, (name: string, seconds: number) => McpServer.Definitions> = {
  "whose service is slow": (name, seconds) =>
    Tool.layer(Tool.make(name), () => Effect.map(Slow, String)).pipe(Layer.provide(Slow.after(seconds))),
  "that an effect returns": (name, seconds) => Layer.unwrap(Effect.as(Effect.sleep(`${seconds} seconds`), tool(name))),
  "that an effect adds": (name, seconds) =>
    Layer.effectDiscard(Effect.andThen(
      Effect.sleep(`${seconds} seconds`),
      Tool.add(Tool.make(name), () => Effect.succeed(name))
    )),
  "in a nested merge": (name, seconds) =>
    Layer.mergeAll(
      Layer.effectDiscard(Effect.sleep(`${seconds} seconds`)),
      Layer.unwrap(Effect.as(Effect.sleep(`${seconds} seconds`), Layer.mergeAll(tool(name))))
    )
}

describe("the order of lists", () => {
  for (const [what, define] of Object.entries(late)) {
    for (const revision of ["2025-11-25", "2026-07-28"] as const) {
      it.effect(`${revision} · is that of the definitions, with merged definitions ${what}`, () =>
        Effect.gen(function*() {
          const context = yield* built(kit.server(
            tool("z"),
            Layer.mergeAll(
              define("d", 3),
              tool("c"),
              Layer.merge(define("b", 1), define("a", 2)),
              tool("e")
            ),
            tool("y")
          ) as kit.Server)
          const client = yield* Effect.provide(kit.connect(revision), context)
          expect(namesOf(yield* client.result("tools/list"))).toEqual(["z", "d", "c", "b", "a", "e", "y"])
        }))
    }
  }

  it.effect.prop(
    "does not depend on how long each of several nested layers takes",
    [Schema.Array(Schema.Int), Schema.Array(Schema.Literals(["layer", "merge", "wrapped", "seen"]))],
    ([delays, shapes]) =>
      Effect.gen(function*() {
        let left: ReadonlyArray<McpServer.Definitions> = Array.from({ length: 12 }, (_, i) =>
          late["that an effect returns"]!(`t${i}`, Math.abs((delays[i] ?? i) % 7)))
        const names = left.map((_, i) =>
          `t${i}`
        )
        for (const shape of shapes) {
          const [one, two, ...rest] = left
          if (one === undefined || two === undefined) break
          const joined: McpServer.Definitions = shape === "layer"
            ? Layer.mergeAll(one, two)
            : shape === "merge"
            ? Layer.merge(one, two)
            : shape === "wrapped"
            ? Layer.unwrap(Effect.as(Effect.sleep("1 second"), Layer.merge(one, two)))
            : Catalog.visibleTo(() => true, one, two)
          left = [joined, ...rest]
        }
        const context = yield* built(kit.server(Layer.mergeAll(...left as [McpServer.Definitions])) as kit.Server)
        const client = yield* Effect.provide(kit.connect("2026-07-28"), context)
        expect(namesOf(yield* client.result("tools/list"))).toEqual(names)
      }),
    { arbitrary: { runs: 10 } }
  )

  it.effect("is that of the definitions for middleware, too", () =>
    Effect.gen(function*() {
      const seen: Array<string> = []
      const noting = (name: string) =>
        Middleware.layer((next) => (request) => {
          if (request.method === "tools/list") seen.push(name)
          return next(request)
        })
      const slow = Layer.unwrap(Effect.as(Effect.sleep("1 second"), noting("first")))
      const context = yield* built(kit.server(Layer.mergeAll(slow, noting("second")), tool("a")))
      const client = yield* Effect.provide(kit.connect("2026-07-28"), context)
      yield* client.result("tools/list")
      expect(seen).toEqual(["first", "second"])
    }))

  it.effect("is that of the definitions for the templates that a URI matches", () =>
    Effect.gen(function*() {
      const template = (text: string) =>
        ResourceTemplate.layer(ResourceTemplate.make(text, { name: text }), () => Effect.succeed(text))
      const slow = Layer.unwrap(Effect.as(Effect.sleep("1 second"), template("a://{z}")))
      const context = yield* built(kit.server(Layer.mergeAll(slow, template("a://{b}"))))
      const client = yield* Effect.provide(kit.connect("2026-07-28"), context)
      const { contents } = yield* client.result("resources/read", { uri: "a://1" })
      expect(contents[0].text).toBe("a://{z}")
    }))

  it.effect("keeps the place of an entry that is replaced, or disabled for a while", () =>
    Effect.gen(function*() {
      const context = yield* built(kit.server(tool("c"), tool("b"), tool("a")))
      const client = yield* Effect.provide(kit.connect("2026-07-28"), context)
      const scope = yield* Scope.make()
      const run = <A, E>(effect: Effect.Effect<A, E, Catalog.Catalog | Scope.Scope>) =>
        Scope.provide(Effect.provide(effect, context), scope)
      yield* run(Tool.replace(Tool.make("b", { title: "New" }), () => Effect.succeed("")))
      expect(namesOf(yield* client.result("tools/list"))).toEqual(["c", "b", "a"])
      yield* run(Catalog.setEnabled("tool", "c", false))
      expect(namesOf(yield* client.result("tools/list"))).toEqual(["b", "a"])
      yield* run(Catalog.setEnabled("tool", "c", true))
      expect(namesOf(yield* client.result("tools/list"))).toEqual(["c", "b", "a"])
      yield* Scope.close(scope, Exit.void)
      expect(namesOf(yield* client.result("tools/list"))).toEqual(["c", "b", "a"])
    }))

  it.effect("puts entries that are added while the server runs at the end, by name", () =>
    Effect.gen(function*() {
      const context = yield* built(kit.server(Resource.layer(Resource.make("r://z"), Effect.succeed(""))))
      const client = yield* Effect.provide(kit.connect("2026-07-28"), context)
      for (const uri of ["r://c", "r://a", "r://b"]) {
        yield* Effect.provide(Resource.add(Resource.make(uri), Effect.succeed("")), context)
      }
      const { resources } = yield* client.result("resources/list")
      expect(resources.map(({ uri }: kit.Json) => uri)).toEqual(["r://z", "r://a", "r://b", "r://c"])
    }))

  it.effect.prop(
    "returns entries that stay exactly once and in order, whatever is added and removed between the pages",
    [Schema.Array(Schema.Struct({ name: Schema.Literals(["a", "e", "k", "p", "x"]), index: Schema.Int }))],
    ([changes]) =>
      Effect.gen(function*() {
        const stay = ["q", "c", "m", "f", "b", "z"]
        const revision = Revision.all[changes.length % Revision.all.length]!
        const definitions = stay.flatMap((name) => [tool(name), tool(`${name}-leaves`)])
        const context = yield* built(
          McpServer.layer({ name: "test", version: "1.0.0", pageSize: 2 }, ...definitions) as kit.Server
        )
        const client = yield* Effect.provide(kit.connect(revision), context)
        const catalog = Context.get(context, Catalog.Catalog)
        const added = new Map<string, Scope.Closeable>()
        const seen: Array<string> = []
        let left = changes
        for (let cursor: string | undefined, page = 0; page === 0 || cursor !== undefined; page++) {
          const result: kit.Json = yield* client.result("tools/list", cursor === undefined ? {} : { cursor })
          seen.push(...namesOf(result))
          cursor = result.nextCursor
          const [change, ...rest] = left
          left = rest
          if (change === undefined) continue
          const leaving = `${stay[Math.abs(change.index) % stay.length]!}-leaves`
          yield* catalog.tools.setEnabled(leaving, change.index % 2 === 0)
          const scope = added.get(change.name)
          if (scope !== undefined) {
            yield* Scope.close(scope, Exit.void)
            added.delete(change.name)
          } else {
            const made = yield* Scope.make()
            added.set(change.name, made)
            yield* Scope.provide(
              Effect.provide(Tool.add(Tool.make(change.name), () => Effect.succeed("")), context),
              made
            )
          }
        }
        expect(seen.filter((name) => stay.includes(name))).toEqual(stay)
        expect(new Set(seen).size).toBe(seen.length)
      }),
    { arbitrary: { runs: 20 } }
  )
})
