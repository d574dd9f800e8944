/**
 * Handlers for `roots/list`: the directories and files that the server may work in. Deprecated since 2026-07-28
 * (SEP-2577), but supported there.
 *
 * "Clients SHOULD: Prompt users for consent before exposing roots to servers. Provide clear user interfaces for root
 * management. Validate root accessibility before exposing." Every server whose client has the layer receives the roots.
 * `layerEffect` can return different roots for different servers.
 *
 * @example
 * const Static = Roots.layer([{ uri: "file:///home/me/project", name: "Project" }])
 * const Live = Client.layer(transport).pipe(Layer.provide(Static))
 *
 * const open = yield* SubscriptionRef.make<ReadonlyArray<Roots.Root>>([])
 * const Changing = Roots.layerStream(SubscriptionRef.changes(open))
 */
import * as PrintableError from "@skein/protocol/PrintableError"
import type { Root } from "@skein/protocol/Roots"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as SubscriptionRef from "effect/SubscriptionRef"
import type { RequestingServer } from "./RequestingServer.ts"
import { rootUriProblem } from "./internal/input/url.ts"
import { captureServices, Roots } from "./internal/input/services.ts"

export type {
  /** A directory or a file as a `file://` URI, with an optional name. */
  Root
}

export { Roots }

/** A root that must not be sent: it is not a `file://` URI, or has a segment such as `..`. */
export class InvalidRoot extends PrintableError.tagged("InvalidRoot")<{ readonly uri: string }> {}

const invalid = (roots: ReadonlyArray<Root>): ReadonlyArray<InvalidRoot> =>
  roots.flatMap(({ uri }) => {
    const wrong = rootUriProblem(uri)
    return wrong === undefined ? [] : [new InvalidRoot({ uri, message: `${JSON.stringify(uri)} ${wrong}` })]
  })

const withoutInvalid = (roots: ReadonlyArray<Root>): Effect.Effect<ReadonlyArray<Root>> => {
  const wrong = invalid(roots)
  if (wrong.length === 0) return Effect.succeed(roots)
  return Effect.as(
    Effect.logError("invalid roots were left out", ...wrong.map(({ message }) => message)),
    roots.filter(({ uri }) => rootUriProblem(uri) === undefined)
  )
}

/**
 * Provides fixed roots. An invalid root fails the layer.
 *
 * @example
 * Roots.layer([{ uri: "file:///home/me/project", name: "Project" }])
 */
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
 * Provides the latest element of a stream, which runs while the layer exists. When an element differs from the one
 * before, the servers of sessions receive `notifications/roots/list_changed`. Requests wait for the first element.
 * After the end of the stream its last element remains. Invalid roots are left out and logged.
 *
 * @example
 * Roots.layerStream(SubscriptionRef.changes(openFolders))
 */
export const layerStream = <R>(
  roots: Stream.Stream<ReadonlyArray<Root>, never, R>
): Layer.Layer<Roots, never, Exclude<R, Scope.Scope>> =>
  Layer.effect(
    Roots,
    Effect.gen(function*() {
      const provide = yield* captureServices<R>()
      const latest = yield* SubscriptionRef.make<ReadonlyArray<Root>>([])
      const known = yield* Deferred.make<void>()
      const running = roots.pipe(
        Stream.mapEffect(withoutInvalid),
        Stream.changesWith((one, other) => JSON.stringify(one) === JSON.stringify(other)),
        Stream.runForEach((next) =>
          Effect.andThen(SubscriptionRef.set(latest, next), Deferred.succeed(known, undefined))
        )
      )
      yield* Effect.forkScoped(provide(running), { startImmediately: true })
      return {
        list: () => Effect.andThen(Deferred.await(known), Effect.sync(() => SubscriptionRef.getUnsafe(latest))),
        // The roots at the time of connecting are not a change. Changes during a slow notification are joined into one.
        changes: SubscriptionRef.changes(latest).pipe(
          Stream.drop(1),
          Stream.buffer({ capacity: 1, strategy: "sliding" })
        )
      }
    })
  )

/**
 * Provides roots by an effect that runs for each request and receives the server: to "prompt users for consent before
 * exposing roots to servers", for example. Return an empty list for a server that must not have roots. Invalid roots
 * are left out and logged.
 *
 * @example
 * Roots.layerEffect((server) => server.label === "files" ? listRoots : Effect.succeed([]))
 */
export const layerEffect = <R = never>(
  list: (server: RequestingServer) => Effect.Effect<ReadonlyArray<Root>, never, R>
): Layer.Layer<Roots, never, Exclude<R, Scope.Scope>> =>
  Layer.effect(
    Roots,
    Effect.map(captureServices<R>(), (provide) => ({
      list: (server: RequestingServer) => Effect.flatMap(provide(Effect.suspend(() => list(server))), withoutInvalid),
      changes: undefined
    }))
  )
