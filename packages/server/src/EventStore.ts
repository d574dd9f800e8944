/**
 * An event store: the messages of the SSE streams of HTTP sessions, for clients that reconnect after a lost connection
 * (`Last-Event-ID`).
 *
 * Each endpoint has its own store in memory by default, with the defaults of `Bounds`. Provide another store to the
 * layer of the endpoint to keep the events elsewhere. A request that is answered with JSON has no events.
 *
 * @example
 * NodeHttp.layer().pipe(Layer.provide(EventStore.layerMemory({ retention: "1 minute" })))
 */
import * as Context from "effect/Context"
import * as Layer from "effect/Layer"
import { type Bounds, MemoryEventStore, type Store } from "./internal/http/limits/eventStore.ts"

export type { Bounds, Store } from "./internal/http/limits/eventStore.ts"

/** Stores the events of an endpoint's streams. */
export class EventStore extends Context.Service<EventStore, Store>()("@skein/server/EventStore") {}

/** Makes a store in memory, for bounds other than the defaults. */
export const make = (bounds?: Bounds): Store => new MemoryEventStore(bounds)

/**
 * Provides a store in memory.
 *
 * @example
 * NodeHttp.layer().pipe(Layer.provide(EventStore.layerMemory({ maxTotalChars: 8_000_000 })))
 */
export const layerMemory = (bounds?: Bounds): Layer.Layer<EventStore> => Layer.sync(EventStore, () => make(bounds))
