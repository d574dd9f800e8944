/** The comparison of the catalogs of the nodes. */
import { describe, expect, it } from "@effect/vitest"
import * as Catalog from "@skein/server/Catalog"
import * as Fleet from "@skein/server/Fleet"
import * as Http from "@skein/server/Http"
import * as McpServer from "@skein/server/McpServer"
import * as Tool from "@skein/server/Tool"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Scope from "effect/Scope"
import * as TestClock from "effect/testing/TestClock"
import { internals } from "../../../src/internal/catalog/catalogState.ts"
import { MemoryFleet } from "./memoryFleet.ts"

/** A tool that does nothing. */
const tool = (name: string, description = "") => Tool.layer(Tool.make(name, { description }), () => Effect.succeed(""))

/** Starts nodes, and collects their log messages. */
const makeNodes = (fleet = new MemoryFleet(() => 5)) => {
  const logs: Array<string> = []
  const start = (...tools: ReadonlyArray<Layer.Layer<never, unknown, Catalog.Catalog>>) =>
    Effect.gen(function*() {
      const { layer, node } = yield* fleet.node()
      const logger = Logger.make(({ logLevel, message }) => {
        // On a slow machine the test clock warns that it does not advance while the nodes start.
        if (String(message).startsWith("the nodes of the fleet")) logs.push(`${node} ${logLevel}: ${String(message)}`)
      })
      const server = McpServer.layer({ name: "nodes", version: "1" }, ...tools)
      const scope = yield* Scope.make()
      yield* Effect.addFinalizer(() => Scope.close(scope, Exit.void))
      const context = yield* Effect.orDie(
        Layer.buildWithScope(
          Layer.effectDiscard(Http.make()).pipe(
            Layer.provideMerge(server),
            Layer.provide(layer),
            Layer.provideMerge(Logger.layer([logger]))
          ),
          scope
        )
      )
      const { catalog } = Context.get(context, McpServer.McpServer)[internals]
      const run = <A, E>(effect: Effect.Effect<A, E, Catalog.Catalog>) =>
        Effect.provideService(Effect.orDie(effect), Catalog.Catalog, catalog)
      const stop = Effect.andThen(Effect.sync(() => fleet.stop(node)), Scope.close(scope, Exit.void))
      return { node, run, stop }
    })
  return { fleet, logs, start }
}

/** Passes time in steps, so that the messages of each step arrive. */
const pass = (seconds: number) =>
  Effect.forEach(Array.from({ length: seconds * 2 }), () => TestClock.adjust(500), { discard: true })

const warning = (differences: string): string =>
  `the nodes of the fleet have different catalogs for more than a minute: ${differences}. ` +
  "Make a change of the catalog at each node, or finish the deploy"

describe("nodes with different catalogs", () => {
  it.effect("are reported by one node after a minute, with the names of the differing definitions", () =>
    Effect.gen(function*() {
      const { logs, start } = makeNodes()
      const all = [tool("order"), tool("menu")]
      yield* start(...all)
      const second = yield* start(...all)
      yield* start(tool("order", "Orders a tea."), tool("pay"))
      yield* second.run(Catalog.persistent(Tool.add(Tool.make("grown"), () => Effect.succeed(""))))
      yield* pass(59)
      expect(logs).toEqual([])
      yield* pass(120)
      expect(logs).toEqual([
        `1 Warn: ${
          warning(
            "node 1 lacks tool grown; " +
              "node 3 lacks tool menu, node 1 lacks tool pay, node 3 has other definitions of tool order"
          )
        }`
      ])
    }))

  it.effect("are not reported if a rolling deploy replaces them within a minute", () =>
    Effect.gen(function*() {
      const { logs, start } = makeNodes()
      const old = [yield* start(tool("a")), yield* start(tool("a")), yield* start(tool("a"))]
      yield* pass(100)
      for (const node of old) {
        yield* start(tool("a"), tool("b"))
        yield* pass(15)
        yield* node.stop
      }
      yield* pass(300)
      expect(logs).toEqual([])
    }))

  it.effect("are reported again by another node if the first one stops, and once they agree", () =>
    Effect.gen(function*() {
      const { logs, start } = makeNodes()
      const first = yield* start(tool("a"))
      const second = yield* start(tool("a"))
      const third = yield* start(tool("a"), tool("b"))
      yield* pass(100)
      yield* first.stop
      yield* pass(60)
      yield* third.run(Catalog.setEnabled("tool", "b", false))
      yield* pass(30)
      expect(logs).toEqual([
        `1 Warn: ${warning("node 1 lacks tool b")}`,
        `${second.node} Warn: ${warning("node 2 lacks tool b")}`,
        "2 Info: the nodes of the fleet have the same catalog again"
      ])
    }))

  it.effect("have at most 10 names and 5 nodes in the warning", () =>
    Effect.gen(function*() {
      const { logs, start } = makeNodes()
      yield* start(tool("a"))
      for (const index of Array.from({ length: 7 }).keys()) {
        const names = Array.from({ length: 12 }, (_, at) => tool(`t${index}-${String(at).padStart(2, "0")}`))
        yield* start(tool("a"), ...names)
      }
      yield* pass(120)
      expect(logs).toHaveLength(1)
      expect(logs[0]!.split("; ")).toHaveLength(5)
      expect(logs[0]).toContain("tool t0-09 and 2 more;")
    }))

  it.effect("are reported although a node does not answer with its names", () =>
    Effect.gen(function*() {
      const { fleet, logs, start } = makeNodes()
      yield* start(tool("a"))
      const { layer } = yield* fleet.node()
      const other = Context.get(yield* Layer.build(layer), Fleet.Fleet)
      yield* TestClock.adjust(1_000)
      for (const _ of Array.from({ length: 12 })) {
        other.broadcast({ _tag: "Catalog", from: other.node, digest: "x" })
        yield* pass(10)
      }
      expect(logs).toEqual([`1 Warn: ${warning("node 2 has not sent the names of its definitions")}`])
    }))

  it.effect("compares the first 2,000 definitions of each by name", () =>
    Effect.gen(function*() {
      const { logs, start } = makeNodes()
      const names = Array.from({ length: 2_000 }, (_, at) => tool(`t${String(at).padStart(4, "0")}`))
      yield* start(...names)
      yield* start(...names, tool("u"))
      yield* pass(120)
      expect(logs).toEqual([`1 Warn: ${warning("node 2 has other definitions")}`])
    }))

  it.effect("do not each answer a node that has just started", () =>
    Effect.gen(function*() {
      const { fleet, start } = makeNodes()
      for (let node = 1; node <= 10; node++) yield* start(tool("a"))
      yield* pass(30)
      expect(fleet.counts["send Catalog"]).toBeUndefined()
      expect(fleet.counts["broadcast Catalog"]).toBe(10)
    }))
})
