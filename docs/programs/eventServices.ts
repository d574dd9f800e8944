import * as Catalog from "@skein/server/Catalog"
import * as EventBus from "@skein/server/EventBus"
import * as McpServer from "@skein/server/McpServer"
import * as Resource from "@skein/server/Resource"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"

const menu = Resource.layer(Resource.make("shop://menu"), Effect.succeed("Tea"))
const touch = Tool.layer(
  Tool.make("touch"),
  () => Effect.as(Catalog.updated("shop://menu"), "Published")
)

// #region bus
/** A channel that your processes share: Redis, NATS, PostgreSQL's NOTIFY. */
export interface Channel {
  readonly publish: (text: string) => Promise<void>
  readonly subscribe: (onMessage: (text: string) => void) => Promise<() => Promise<void>>
}

export const busOver = (channel: Channel): Layer.Layer<EventBus.EventBus> =>
  Layer.succeed(EventBus.EventBus, {
    publish: (change) => Effect.ignore(Effect.tryPromise(() => channel.publish(JSON.stringify(change)))),
    subscribe: (onEvent) =>
      Effect.asVoid(Effect.acquireRelease(
        Effect.promise(() => channel.subscribe((text) => onEvent(JSON.parse(text)))),
        (unsubscribe) => Effect.promise(unsubscribe)
      ))
  })

export const shopOver = (channel: Channel) =>
  McpServer.layer({ name: "shop", version: "1.0.0" }, menu, touch).pipe(Layer.provide(busOver(channel)))
// #endregion
