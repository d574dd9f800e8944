/**
 * How the processes of one server tell each other what has changed, so that whoever listens to any of them hears of it.
 *
 * A server alone needs none: its own changes reach its own clients. Where several processes stand behind one load balancer, give
 * each of them a bus over what they share (Redis, NATS, PostgreSQL's `NOTIFY`): provide the service to the layer of the server.
 *
 * @example
 * const bus = Layer.succeed(EventBus.EventBus, {
 *   publish: (change) => Effect.ignore(Effect.tryPromise(() => redis.publish("changes", JSON.stringify(change)))),
 *   subscribe: (heard) => Effect.acquireRelease(
 *     Effect.promise(() => redis.subscribe("changes", (text) => heard(JSON.parse(text)))),
 *     () => Effect.promise(() => redis.unsubscribe("changes")))
 * })
 * const live = Layer.provide(McpServer.layer(options, ...definitions), bus)
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"

/** The lists of which clients hear. Templates belong to the resources. */
export type ListKind = "tools" | "resources" | "prompts"

/** Something that has changed; it is plain JSON. */
export type Change =
  | { readonly _tag: "List"; readonly kind: ListKind }
  /** A resource, and the one that it is a part of, where there is one. */
  | { readonly _tag: "Resource"; readonly uri: string; readonly parent?: string | undefined }

/** What carries changes from each process to all, the one that they come from included. */
export class EventBus extends Context.Service<EventBus, {
  /**
   * Tells everybody. Changes of lists are gathered before (`listChangedDebounce`); those of resources come as they are said, and
   * `Catalog.updated` waits for this. It must not fail: what cannot be told is lost.
   */
  readonly publish: (change: Change) => Effect.Effect<void>
  /** Hears of every change until the scope closes, those that were published here too. What it calls returns at once. */
  readonly subscribe: (heard: (change: Change) => void) => Effect.Effect<void, never, Scope.Scope>
}>()("@skein/server/EventBus") {}

/** A bus in memory, for several servers in one process. */
export const memory: Effect.Effect<EventBus["Service"]> = Effect.sync(() => {
  const all = new Set<(change: Change) => void>()
  return {
    publish: (change) => Effect.sync(() => all.forEach((heard) => heard(change))),
    subscribe: (heard) => {
      const own = (change: Change): void => heard(change)
      return Effect.acquireRelease(
        Effect.sync(() => void all.add(own)),
        () => Effect.sync(() => void all.delete(own))
      )
    }
  }
})

/** Provides a bus in memory. */
export const layerMemory: Layer.Layer<EventBus> = Layer.effect(EventBus, memory)
