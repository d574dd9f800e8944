/** What the tests of changes share: a scripted server that listens, or is subscribed to, and a run that remembers what it saw. */
import type * as JsonRpc from "@skein/protocol/JsonRpc"
import type * as Revision from "@skein/protocol/Revision"
import type { Connection, Receiver } from "@skein/runtime/Connection"
import type { TransportError } from "@skein/runtime/TransportError"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import type { Change, Filter, Options } from "../../src/Changes.ts"
import * as Client from "../../src/Client.ts"
import type { ClientError } from "../../src/ClientError.ts"
import { ok, type Script, type Scripted, scripted, speaks } from "../support/scripted.ts"

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

/** Lets whatever is under way arrive. */
export const settle = TestClock.adjust(0)

/** Lets a time pass, and everything that it wakes. */
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
  script: Script,
  options?: Client.Options,
  capabilities?: JsonRpc.JsonObject
) =>
  Effect.gen(function*() {
    const server = scripted(speaks(revision, script, capabilities ?? everything))
    const client = yield* Client.make(server.transport, options)
    return { server, client }
  })

export const everything = {
  tools: { listChanged: true },
  prompts: { listChanged: true },
  resources: { listChanged: true, subscribe: true }
}

export const acknowledge = (
  server: Scripted,
  { id: of, params }: JsonRpc.Request,
  notifications = params?.["notifications"]
) => server.notify(acknowledged, { _meta: { [id]: of }, notifications: notifications as JsonRpc.JsonObject })

/** Agrees to whatever is asked for. */
export const agreeable: Script = (request, server) => {
  if (request.method === listen) acknowledge(server, request)
  return request.method === listen ? "silence" : ok({})
}

/** Tells something about the last subscription, or about that one. */
export const tell = (
  server: Scripted,
  method: string,
  params: JsonRpc.JsonObject = {},
  of = server.requests(listen).at(-1)?.id
) => server.notify(method, { ...params, _meta: { [id]: of } })

/** Ends a subscription as a server should: with an answer. */
export const end = (server: Scripted, of = server.requests(listen).at(-1)!.id) =>
  server.send({ _tag: "Success", id: of, result: { resultType: "complete", _meta: { [id]: of } } })

/** The `_meta` of a request. */
export const metaOf = ({ params }: JsonRpc.Request): JsonRpc.JsonObject =>
  (params?.["_meta"] ?? {}) as JsonRpc.JsonObject

export const cancelled = (server: Scripted): ReadonlyArray<unknown> =>
  server.received.flatMap((message) =>
    message._tag === "Notification" && message.method === "notifications/cancelled"
      ? [message.params?.["requestId"]]
      : []
  )

/** Opens a client, and gives what its transport tells it beside messages. */
export const told = (revision: Revision.Revision, script: Script, options?: Client.Options) =>
  Effect.gen(function*() {
    const server = scripted(speaks(revision, script, everything))
    let receiver: Receiver | undefined
    const connect = Effect.map(server.transport.connect, (connection): Connection => ({
      open: (opened) => {
        receiver = opened
        connection.open(opened)
      },
      send: (message) => connection.send(message),
      drained: connection.drained,
      close: connection.close
    }))
    const client = yield* Client.make({ connect }, options)
    return {
      client,
      server,
      missed: (error?: TransportError) => Effect.andThen(Effect.sync(() => receiver!.gap!(error)), settle),
      refuse: (request: JsonRpc.Request, error: TransportError) =>
        Effect.andThen(Effect.sync(() => receiver!.refused!(request.id, error)), settle)
    }
  })
