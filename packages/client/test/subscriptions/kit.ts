/** Scripted servers with subscriptions, and a run that records the changes of a client. */
import type * as JsonRpc from "@skein/protocol/JsonRpc"
import type * as Revision from "@skein/protocol/Revision"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import type { Change, Filter, Options } from "../../src/Changes.ts"
import * as Client from "../../src/Client.ts"
import type { ClientError } from "../../src/ClientError.ts"
import * as ScriptedServer from "@skein/testing/ScriptedServer"

export const id = "io.modelcontextprotocol/subscriptionId"
export const updated = "notifications/resources/updated"
export const acknowledged = "notifications/subscriptions/acknowledged"
export const listen = "subscriptions/listen"

export interface Seen {
  readonly changes: ReadonlyArray<Change>
  /** Their tags, and the URIs of updates. */
  readonly tags: ReadonlyArray<string>
  readonly error: Effect.Effect<ClientError>
  readonly stop: Effect.Effect<void>
}

const tagOf = (change: Change): string => {
  switch (change._tag) {
    case "ResourceUpdated":
      return change.uri
    case "Gap":
      return `Gap ${change.reason}`
    default:
      return change._tag
  }
}

/** Lets pending messages arrive. */
export const settle = TestClock.adjust(0)

/** Advances the test clock and lets pending messages arrive. */
export const pass = (time: Duration.Input) => Effect.andThen(TestClock.adjust(time), settle)

/** Runs a stream of changes until it is stopped. */
export const run = (client: Client.Client, filter: Filter, options?: Options) =>
  Effect.gen(function*() {
    const changes: Array<Change> = []
    const running = Stream.runForEach(client.changes(filter, options), (change) =>
      Effect.sync(() => changes.push(change)))
    const fiber = yield* Effect.forkChild(
      Effect.flip(Effect.andThen(running, Effect.die("a stream of changes ends with an error"))),
      { startImmediately: true }
    )
    yield* settle
    const seen: Seen = {
      changes,
      get tags() {
        return changes.map(tagOf)
      },
      error: Fiber.join(fiber),
      stop: Effect.andThen(Fiber.interrupt(fiber), settle)
    }
    return seen
  })

/** Opens a client of a scripted server. */
export const open = (
  revision: Revision.Revision,
  script: ScriptedServer.Script,
  options?: Client.Options,
  capabilities?: JsonRpc.JsonObject
) =>
  Effect.gen(function*() {
    const server = ScriptedServer.make(ScriptedServer.handshake(revision, script, capabilities ?? everything))
    const client = yield* Client.make(server.transport, options)
    return { server, client }
  })

export const everything = {
  tools: { listChanged: true },
  prompts: { listChanged: true },
  resources: { listChanged: true, subscribe: true }
}

export const acknowledge = (
  server: ScriptedServer.ScriptedServer,
  { id: of, params }: JsonRpc.Request,
  notifications = params?.["notifications"]
) => server.notify(acknowledged, { _meta: { [id]: of }, notifications: notifications as JsonRpc.JsonObject })

/** Acknowledges every subscription with the notifications that it requests. */
export const acceptSubscriptions: ScriptedServer.Script = (request, server) => {
  if (request.method === listen) acknowledge(server, request)
  return request.method === listen ? "no response" : ScriptedServer.success({})
}

/** Sends a notification of the last subscription, or of the given one. */
export const notifySubscription = (
  server: ScriptedServer.ScriptedServer,
  method: string,
  params: JsonRpc.JsonObject = {},
  of = server.requests(listen).at(-1)?.id
) => server.notify(method, { ...params, _meta: { [id]: of } })

/** Ends a subscription in order, with a response. */
export const endSubscription = (server: ScriptedServer.ScriptedServer, of = server.requests(listen).at(-1)!.id) =>
  server.send({ _tag: "Success", id: of, result: { resultType: "complete", _meta: { [id]: of } } })

/** The `_meta` of a request. */
export const metaOf = ({ params }: JsonRpc.Request): JsonRpc.JsonObject =>
  (params?.["_meta"] ?? {}) as JsonRpc.JsonObject

export const cancelled = (server: ScriptedServer.ScriptedServer): ReadonlyArray<unknown> =>
  server.notifications("notifications/cancelled").map(({ params }) => params?.["requestId"])
