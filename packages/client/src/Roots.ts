/**
 * Answers a server that asks in which places the host works, `roots/list`. Deprecated since 2026-07-28 (SEP-2577),
 * where it still works.
 *
 * ```ts
 * const Static = Roots.layer([{ uri: "file:///home/me/project", name: "Project" }])
 * const Live = Client.layer(transport).pipe(Layer.provide(Static))
 *
 * const open = yield* SubscriptionRef.make<ReadonlyArray<Roots.Root>>([])
 * const Changing = Roots.layerStream(SubscriptionRef.changes(open))
 * ```
 *
 * "Clients SHOULD: Prompt users for consent before exposing roots to servers. Provide clear user interfaces for root
 * management. Validate root accessibility before exposing." What is handed over here is what every server is told whose
 * client has this layer; `layerEffect` tells them apart.
 */
import type { Root } from "@skein/protocol/Roots"
import * as Data from "effect/Data"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import * as SubscriptionRef from "effect/SubscriptionRef"
import type { RequestingServer } from "./RequestingServer.ts"
import { capture, type Needed } from "./internal/input/captureServices.ts"
import { rootUriProblem } from "./internal/input/url.ts"
import { Roots } from "./internal/input/services.ts"

export type {
  /** A directory or a file, as a `file://` URI, and what to call it. */
  Root
}

export { Roots }

/** A root that may not be told: it is no `file://` URI, or one that leads out of itself. */
export class InvalidRoot extends Data.TaggedError("InvalidRoot")<{ readonly uri: string; readonly message: string }> {}

const invalid = (roots: ReadonlyArray<Root>): ReadonlyArray<InvalidRoot> =>
  roots.flatMap(({ uri }) => {
    const wrong = rootUriProblem(uri)
    return wrong === undefined ? [] : [new InvalidRoot({ uri, message: `${JSON.stringify(uri)} ${wrong}` })]
  })

const withoutInvalid = (roots: ReadonlyArray<Root>): Effect.Effect<ReadonlyArray<Root>> => {
  const wrong = invalid(roots)
  if (wrong.length === 0) return Effect.succeed(roots)
  return Effect.as(
    Effect.logError("Roots were left out", ...wrong.map(({ message }) => message)),
    roots.filter(({ uri }) => rootUriProblem(uri) === undefined)
  )
}

/** Answers with roots that stay the same. One that is invalid fails the layer. */
export const layer = (roots: ReadonlyArray<Root>): Layer.Layer<Roots, InvalidRoot> =>
  Layer.effect(
    Roots,
    Effect.suspend(() => {
      const [first] = invalid(roots)
      const list = Effect.succeed(roots)
      return first === undefined ? Effect.succeed({ list: () => list, changes: undefined }) : Effect.fail(first)
    })
  )

/**
 * Answers with the latest element of a stream, which runs for as long as the layer, and tells the servers of the
 * session era that the roots have changed (`notifications/roots/list_changed`) when one comes that differs. Until the
 * first has come, a server that asks waits; when the stream ends, its last element stays. Roots that are invalid are
 * left out, and the log says so.
 */
export const layerStream = <R>(
  roots: Stream.Stream<ReadonlyArray<Root>, never, R>
): Layer.Layer<Roots, never, Needed<R>> =>
  Layer.effect(
    Roots,
    Effect.gen(function*() {
      const provide = yield* capture<R>()
      const latest = yield* SubscriptionRef.make<{ readonly text: string; readonly roots: ReadonlyArray<Root> }>({
        text: "",
        roots: []
      })
      const known = yield* Deferred.make<void>()
      const running = Stream.runForEach(roots, (next) =>
        Effect.gen(function*() {
          const sound = yield* withoutInvalid(next)
          const text = JSON.stringify(sound)
          if (SubscriptionRef.getUnsafe(latest).text !== text) {
            yield* SubscriptionRef.set(latest, { text, roots: sound })
          }
          yield* Deferred.succeed(known, undefined)
        }))
      yield* Effect.forkScoped(provide(running), { startImmediately: true })
      return {
        list: () => Effect.andThen(Deferred.await(known), Effect.sync(() => SubscriptionRef.getUnsafe(latest).roots)),
        // What is there when a connection opens is no change; and changes while a slow server is told of one are one
        // more.
        changes: SubscriptionRef.changes(latest).pipe(
          Stream.drop(1),
          Stream.buffer({ capacity: 1, strategy: "sliding" })
        )
      }
    })
  )

/**
 * Answers each question with an effect, which sees who asks: to "prompt users for consent before exposing roots to
 * servers", for instance. A server that is to have no roots gets none of them. Roots that are invalid are left out, and
 * the log says so.
 */
export const layerEffect = <R = never>(
  list: (asker: RequestingServer) => Effect.Effect<ReadonlyArray<Root>, never, R>
): Layer.Layer<Roots, never, Needed<R>> =>
  Layer.effect(
    Roots,
    Effect.map(capture<R>(), (provide) => ({
      list: (asker: RequestingServer) => Effect.flatMap(provide(Effect.suspend(() => list(asker))), withoutInvalid),
      changes: undefined
    }))
  )
