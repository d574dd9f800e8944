/**
 * An event bus: carries changes of the catalog between the processes of one server, so that every process notifies its
 * clients.
 *
 * A single process needs no bus. If several processes run behind a load balancer, provide each server with a bus over a
 * shared system (Redis, NATS, PostgreSQL's `NOTIFY`).
 *
 * @example
 * const bus = Layer.succeed(EventBus.EventBus, {
 *   publish: (change) => Effect.ignore(Effect.tryPromise(() => redis.publish("changes", JSON.stringify(change)))),
 *   subscribe: (onChange) => Effect.acquireRelease(
 *     Effect.promise(() => redis.subscribe("changes", (text) => onChange(JSON.parse(text)))),
 *     () => Effect.promise(() => redis.unsubscribe("changes")))
 * })
 * const live = Layer.provide(McpServer.layer(options, ...definitions), bus)
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"

/** The lists whose changes clients are notified of. Templates belong to the resources. */
export type ListKind = "tools" | "resources" | "prompts"

/** A change, as plain JSON. */
export type Change =
  | { readonly _tag: "List"; readonly kind: ListKind }
  /** A resource, and its parent if `Catalog.updated` was called with one. */
  | { readonly _tag: "Resource"; readonly uri: string; readonly parent?: string | undefined }

/** Carries changes from each process to all processes, including the publishing one. */
export class EventBus extends Context.Service<EventBus, {
  /**
   * Publishes a change. Changes of one list within 50 ms are one change. Changes of resources are
   * published immediately, and `Catalog.updated` waits for the effect. It must not fail; a change that cannot be
   * published is lost.
   */
  readonly publish: (change: Change) => Effect.Effect<void>
  /**
   * Calls the function with every change until the scope closes, including those of this process. The function returns
   * immediately.
   */
  readonly subscribe: (onChange: (change: Change) => void) => Effect.Effect<void, never, Scope.Scope>
}>()("@skein/server/EventBus") {}

/**
 * Makes a bus in memory, for several servers in one process.
 *
 * @example
 * const servers = Effect.flatMap(EventBus.make, (bus) => Effect.all([serve(1, bus), serve(2, bus)]))
 */
export const make: Effect.Effect<EventBus["Service"]> = Effect.sync(() => {
  const subscribers = new Set<(change: Change) => void>()
  return {
    publish: (change) => Effect.sync(() => subscribers.forEach((onChange) => onChange(change))),
    subscribe: (onChange) => {
      const own = (change: Change): void => onChange(change)
      return Effect.acquireRelease(
        Effect.sync(() => void subscribers.add(own)),
        () => Effect.sync(() => void subscribers.delete(own))
      )
    }
  }
})

/** Provides a bus in memory. Two servers share it only if they are built with the same layer. */
export const layerMemory: Layer.Layer<EventBus> = Layer.effect(EventBus, make)
