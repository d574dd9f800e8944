import { describe, expect, expectTypeOf, it } from "@effect/vitest"
import * as Catalog from "@skein/server/Catalog"
import type { DefinitionError } from "@skein/server/DefinitionError"
import type { McpServer } from "@skein/server/McpServer"
import { Registry } from "@skein/server/Registry"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import * as kit from "./kit.ts"

const Step = Schema.Struct({
  what: Schema.Literals(["add", "replace", "remove", "enable", "disable", "on", "off", "undo"]),
  name: Schema.Literals(["a", "b"]),
  /** Selects the change to undo among the current ones. */
  which: Schema.Int
})

/** A recorded change. The expected entries follow from the list of the current changes. */
interface Change {
  readonly what: (typeof Step.Type)["what"]
  readonly name: string
  readonly entry: { readonly definition: number }
  readonly scope: Scope.Closeable
  readonly removed: ReadonlyArray<Change>
}

/** The entries of a name, those that removals hide included, in the order of addition. */
const added = (all: ReadonlyArray<Change>, name: string): ReadonlyArray<Change> =>
  all.filter((change) => change.name === name && (change.what === "add" || change.what === "replace"))

/** The entries of a name that no removal hides. */
const entries = (all: ReadonlyArray<Change>, name: string): ReadonlyArray<Change> =>
  added(all, name).filter((change) => !all.some(({ removed }) => removed.includes(change)))

const switches: ReadonlySet<string> = new Set(["enable", "disable", "on", "off"])
const isLasting = ({ what }: Change): boolean => what === "on" || what === "off"

/** A persistent switch is removed with the last entry of its name, even if that entry is hidden. */
const settled = (all: ReadonlyArray<Change>): ReadonlyArray<Change> =>
  all.filter((change) =>
    !isLasting(change) || all.some(({ name, what }) => name === change.name && (what === "add" || what === "replace"))
  )

/** The expected entry of a name. */
const expected = (all: ReadonlyArray<Change>, name: string): number | undefined => {
  const lastSwitch = all.findLast((change) => change.name === name && switches.has(change.what))
  return lastSwitch?.what === "disable" || lastSwitch?.what === "off"
    ? undefined
    : entries(all, name).at(-1)?.entry.definition
}

describe("a registry", () => {
  it.effect.prop(
    "offers the result of its current changes in any order of undoing, and is empty once all are undone",
    [Schema.Array(Step)],
    ([steps]) =>
      Effect.gen(function*() {
        const registry = new Registry<{ readonly definition: number }>("tool")
        let all: ReadonlyArray<Change> = []
        const agrees = () => {
          for (const name of ["a", "b"]) expect(registry.get(name)?.definition).toBe(expected(all, name))
          const offered = ["a", "b"].filter((name) => expected(all, name) !== undefined)
          expect(registry.sorted.map(([name]) => name)).toEqual(offered)
          expect(registry.size).toBe(offered.length)
        }
        const undo = (which: number) =>
          Effect.gen(function*() {
            const scoped = all.filter((change) => !isLasting(change))
            const change = scoped[Math.abs(which) % scoped.length]
            if (change === undefined) return
            all = settled(all.filter((other) => other !== change))
            yield* Scope.close(change.scope, Exit.void)
          })
        for (const [i, { name, what, which }] of steps.entries()) {
          if (what === "undo") {
            yield* undo(which)
          } else {
            const scope = yield* Scope.make()
            const entry = { definition: i }
            const before = entries(all, name)
            const made = yield* Effect.exit(Scope.provide(
              what === "add" || what === "replace"
                ? registry[what](name, entry)
                : what === "remove"
                ? registry.remove(name)
                : what === "on" || what === "off"
                ? registry.setEnabled(name, what === "on")
                : registry.enable(name, what === "enable"),
              scope
            ))
            // An existing entry cannot be added, and a missing entry cannot be changed.
            expect(Exit.isSuccess(made)).toBe((what === "add") === (before.length === 0))
            if (Exit.isSuccess(made)) {
              // A persistent switch replaces the previous persistent switch.
              if (what === "on" || what === "off") all = all.filter((other) => !isLasting(other) || other.name !== name)
              all = [...all, { what, name, entry, scope, removed: what === "remove" ? added(all, name) : [] }]
            }
          }
          agrees()
        }
        while (all.length > 0) {
          yield* undo(all.length * 7)
          agrees()
        }
        expect(registry.size).toBe(0)
      })
  )

  it("a handler that changes the catalog needs only services that its server provides", () => {
    const grow = Tool.layer(
      Tool.make("grow"),
      () => Effect.as(Catalog.persistent(Tool.add(Tool.make("more"), () => Effect.succeed("more"))), "grown")
    )
    const server: Layer.Layer<McpServer | Catalog.Catalog, DefinitionError> = kit.server(
      Catalog.visibleTo(() => true, Catalog.disabled(grow))
    )
    expect(server).toBeDefined()
    const unscoped = Tool.layer(
      Tool.make("grow"),
      () => Effect.as(Tool.add(Tool.make("more"), () => Effect.succeed("more")), "grown")
    )
    // A handler that adds a tool without a lifetime has a requirement that cannot be provided.
    expectTypeOf<Layer.Services<typeof unscoped>>().toEqualTypeOf<Catalog.Catalog | Catalog.UnscopedHandler>()
  })
})

describe("entries that share a name", () => {
  const entry = (definition: number) => ({ definition })

  it.effect("are offered in the order of the definitions, whichever was added first", () =>
    Effect.gen(function*() {
      const registry = new Registry<{ readonly definition: number }>("tool")
      const parts = [0, 1, 2].map((at) =>
        registry.part({ name: (own) => own, entry: (entry) => Result.succeed(entry) }, [at])
      )
      const scopes = new Map<number, Scope.Closeable>()
      for (const at of [1, 2, 0]) {
        const scope = yield* Scope.make()
        scopes.set(at, scope)
        yield* Scope.provide(parts[at]!.share("a", entry(at)), scope)
        expect(registry.get("a")?.definition).toBe(at === 0 ? 0 : 1)
        expect(parts[at]!.isContested("a")).toBe(at !== 1)
      }
      expect(registry.sorted).toHaveLength(1)
      // A change of one that is not offered changes nothing.
      yield* parts[2]!.share("a", entry(20))
      expect(registry.get("a")?.definition).toBe(0)
      yield* Scope.close(scopes.get(0)!, Exit.void)
      expect(registry.get("a")?.definition).toBe(1)
      yield* Scope.close(scopes.get(1)!, Exit.void)
      expect(registry.get("a")?.definition).toBe(20)
    }).pipe(Effect.scoped))

  it.effect("replace an older one of the same part, and never one that does not share its name", () =>
    Effect.gen(function*() {
      const registry = new Registry<{ readonly definition: number }>("tool")
      const scope = yield* Scope.make()
      yield* Scope.provide(registry.share("a", entry(1)), scope)
      yield* registry.share("a", entry(2))
      expect(registry.get("a")?.definition).toBe(2)
      yield* Scope.close(scope, Exit.void)
      expect(registry.get("a")?.definition).toBe(2)
      expect(registry.isContested("a")).toBe(false)
      expect(yield* Effect.flip(registry.add("a", entry(3)))).toMatchObject({ reason: { _tag: "DuplicateName" } })
      yield* registry.add("b", entry(4))
      expect(yield* Effect.flip(registry.share("b", entry(5)))).toMatchObject({ reason: { _tag: "DuplicateName" } })
      const part = registry.part({ name: (own) => own, entry: (entry) => Result.succeed(entry) }, [0])
      expect(yield* Effect.flip(part.share("b", entry(6)))).toMatchObject({ reason: { _tag: "DuplicateName" } })
    }).pipe(Effect.scoped))
})
