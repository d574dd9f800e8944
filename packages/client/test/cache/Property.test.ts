/** No order of events makes the cache return a stale result or a private result of another principal. */
import { assert, describe, it } from "@effect/vitest"
import * as Method from "@skein/protocol/Method"
import type { ReadResourceResult } from "@skein/protocol/Resource"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/testing/TestClock"
import type * as Cache from "../../src/internal/calls/cache/cache.ts"
import * as ResponseCache from "../../src/ResponseCache.ts"
import { cacheWith } from "./cached.ts"

const who = ["ada", "bob"] as const
const uris = ["r:1", "r:2", "r:1/part"]

const Step = Schema.Struct({
  what: Schema.Literals(["get", "get", "get", "get", "refresh", "bypass", "notice", "list changed", "wait", "forget"]),
  who: Schema.Literals(who),
  uri: Schema.Literals([0, 1, 2]),
  cacheScope: Schema.Literals(["public", "private"]),
  /** In steps of 10 ms. */
  ttl: Schema.Literals([0, 1, 2, 5, 50]),
  wait: Schema.Literals([0, 1, 2, 10]),
  /** The number of turns that the server and the store take. */
  turns: Schema.Literals([0, 0, 1, 3])
})
type Step = typeof Step.Type

/** The properties of a response, as its content. */
interface Response {
  readonly by: string
  readonly uri: string
  readonly at: number
  readonly ttl: number
  readonly cacheScope: string
  /** The number of notifications about the resource that its client had received when the server responded. */
  readonly changes: number
}

const turns = (count: number) => Effect.forEach(Array.from({ length: count }), () => Effect.yieldNow, { discard: true })

/** A store that takes several turns for each operation, like a remote one. */
const slow = (store: ResponseCache.Store, count: () => number): ResponseCache.Store => ({
  get: (key) => Effect.andThen(turns(count()), Effect.tap(store.get(key), () => turns(count()))),
  set: (key, entry) => Effect.andThen(turns(count()), store.set(key, entry)),
  invalidate: (stale) => Effect.andThen(turns(count()), store.invalidate(stale))
})

const concerns = (notice: string, uri: string): boolean => uri === notice || notice.startsWith(`${uri}/`)

const play = (steps: ReadonlyArray<Step>, isSlow: boolean, concurrency: number) =>
  Effect.gen(function*() {
    let pace = 0
    const memory = ResponseCache.make({ maxEntries: 4 })
    const store = isSlow ? slow(memory, () => pace) : memory
    const changes = new Map<string, number>()
    const caches = new Map<string, Cache.Cached>()
    for (const partition of who) caches.set(partition, yield* cacheWith({ store, server: "s", partition }))
    const changesOf = (who: string, uri: string): number => changes.get(`${who} ${uri}`) ?? 0
    const change = (who: string, notice: string) => {
      for (const uri of uris) if (concerns(notice, uri)) changes.set(`${who} ${uri}`, changesOf(who, uri) + 1)
    }
    const counts = { asked: 0, given: 0 }

    const get = (step: Step, mode: "use" | "refresh" | "bypass"): Effect.Effect<void> =>
      Effect.gen(function*() {
        const uri = uris[step.uri]!
        let wasAsked = false
        const answer = Effect.gen(function*() {
          wasAsked = true
          const changes = changesOf(step.who, uri)
          yield* turns(step.turns)
          const { cacheScope, ttl } = step
          const response: Response = {
            by: step.who,
            uri,
            at: yield* Clock.currentTimeMillis,
            ttl: ttl * 10,
            cacheScope,
            changes
          }
          const result: ReadResourceResult = {
            contents: [{ uri, text: JSON.stringify(response) }],
            ttlMs: ttl * 10,
            cacheScope
          }
          return { result, keep: true }
        })
        const begun = yield* Clock.currentTimeMillis
        const result = yield* mode === "bypass"
          ? Effect.map(answer, ({ result }) => result)
          : caches.get(step.who)!.through(Method.ReadResource, { uri }, mode, answer, (result) => result)
        const [content] = result.contents
        const response = JSON.parse((content as { readonly text: string }).text) as Response
        assert.strictEqual(response.uri, uri)
        counts[wasAsked ? "asked" : "given"]++
        if (wasAsked) return assert.strictEqual(response.by, step.who)
        assert.strictEqual(mode, "use")
        assert.isTrue(response.by === step.who || response.cacheScope === "public", "of another principal")
        assert.isBelow(begun, response.at + response.ttl, "stale by its age")
        if (response.by === step.who) assert.isAtLeast(response.changes, changesOf(step.who, uri), "stale by a notice")
      }).pipe(Effect.orDie)

    const run = (step: Step): Effect.Effect<void> => {
      pace = step.turns
      const cache = caches.get(step.who)!
      switch (step.what) {
        case "get":
          return get(step, "use")
        case "refresh":
        case "bypass":
          return get(step, step.what)
        case "wait":
          return TestClock.adjust(step.wait * 10)
        case "forget":
          for (const uri of uris) changes.set(`${step.who} ${uri}`, changesOf(step.who, uri) + 1)
          return Effect.sync(cache.forget)
        case "list changed":
          return Effect.sync(() => cache.notice({ method: "notifications/resources/list_changed" }))
        case "notice":
          return Effect.sync(() => {
            const uri = uris[step.uri]!
            change(step.who, uri)
            cache.notice({ method: "notifications/resources/updated", params: { uri } })
          })
      }
    }
    yield* Effect.forEach(steps, run, { concurrency, discard: true })
    return counts
  }).pipe(Effect.scoped)

const many = Schema.Array(Step).check(Schema.isMinLength(20), Schema.isMaxLength(60))

describe("any order of reads, notifications and time", () => {
  const total = { asked: 0, given: 0 }
  for (
    const [what, isSlow, concurrency] of [
      ["sequentially", false, 1],
      ["concurrently", false, 4],
      ["with a slow store", true, 4]
    ] as const
  ) {
    it.effect.prop(
      `2026-07-28 · MUST NOT return a stale response or one of another principal: ${what}`,
      [many],
      ([steps]) =>
        Effect.map(play(steps, isSlow, concurrency), ({ asked, given }) => {
          total.asked += asked
          total.given += given
        })
    )
  }

  it("returns both cached and new responses in these runs", () => {
    assert.isAbove(total.given, 100)
    assert.isAbove(total.asked, 100)
  })
})
