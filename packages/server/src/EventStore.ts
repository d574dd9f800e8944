/**
 * What was sent on the streams of HTTP sessions, for clients that lost their connection and come back (`Last-Event-ID`).
 *
 * Give a service of your own to the layer of the endpoint to keep the events elsewhere. Without one each endpoint keeps them in
 * memory, within the bounds of `Bounds`. Nothing is kept of a request that is answered with JSON: only streams have events.
 */
import * as Context from "effect/Context"
import * as Layer from "effect/Layer"
import { type Bounds, type Log, MemoryEventStore } from "./internal/http/eventStore.ts"

export type { Bounds, Log } from "./internal/http/eventStore.ts"

/** Where endpoints keep the events of their streams. */
export class EventStore extends Context.Service<EventStore, Log>()("@skein/server/EventStore") {}

/** Keeps the events in memory. That is what endpoints do by themselves; this is for other bounds. */
export const memory = (bounds?: Bounds): Log => new MemoryEventStore(bounds)

/** The layer of `memory`. */
export const layerMemory = (bounds?: Bounds): Layer.Layer<EventStore> => Layer.sync(EventStore, () => memory(bounds))
