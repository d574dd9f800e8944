import * as Catalog from "@skein/server/Catalog"
import * as EventBus from "@skein/server/EventBus"
import * as EventStore from "@skein/server/EventStore"
import * as McpServer from "@skein/server/McpServer"
import * as NodeHttp from "@skein/server/NodeHttp"
import * as Resource from "@skein/server/Resource"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"

const menu = Resource.layer(Resource.make("shop://menu"), Effect.succeed("Tea"))
const touch = Tool.layer(
  Tool.make("touch"),
  () => Effect.as(Catalog.updated("shop://menu"), "Everybody knows")
)

// #region bus
/** What your processes share: Redis, NATS, PostgreSQL's NOTIFY. */
export interface Channel {
  readonly publish: (text: string) => Promise<void>
  readonly subscribe: (heard: (text: string) => void) => Promise<() => Promise<void>>
}

export const busOver = (channel: Channel): Layer.Layer<EventBus.EventBus> =>
  Layer.succeed(EventBus.EventBus, {
    publish: (change) => Effect.ignore(Effect.tryPromise(() => channel.publish(JSON.stringify(change)))),
    subscribe: (heard) =>
      Effect.asVoid(Effect.acquireRelease(
        Effect.promise(() => channel.subscribe((text) => heard(JSON.parse(text)))),
        (leave) => Effect.promise(leave)
      ))
  })

export const shopOver = (channel: Channel) =>
  McpServer.layer({ name: "shop", version: "1.0.0" }, menu, touch).pipe(Layer.provide(busOver(channel)))
// #endregion

// #region events
// Events of a stream in memory, with other bounds than the default ones.
const Events = EventStore.layerMemory({ maxEventsPerStream: 100, retention: "1 minute" })

export const Listening = NodeHttp.layer({ port: 0 }).pipe(
  Layer.provide([Events, McpServer.layer({ name: "shop", version: "1.0.0" }, menu, touch)])
)
// #endregion
