/**
 * An event store: the messages of the SSE streams of HTTP sessions, for clients that reconnect after a lost connection
 * (`Last-Event-ID`).
 *
 * Each endpoint has its own store in memory. Provide another store to the layer of the endpoint to keep the events
 * elsewhere. A request that is answered with JSON has no events.
 *
 * @example
 * NodeHttp.layer().pipe(Layer.provide(Layer.succeed(EventStore.EventStore, myStore)))
 */
import * as Context from "effect/Context"
import { MemoryEventStore, type Store } from "./internal/http/limits/eventStore.ts"

export type { Store } from "./internal/http/limits/eventStore.ts"

/** Stores the events of an endpoint's streams. */
export class EventStore extends Context.Service<EventStore, Store>()("@skein/server/EventStore") {}

/** Makes a store in memory, for a store of your own that adds to it, or that two endpoints share. */
export const make = (): Store => new MemoryEventStore()
