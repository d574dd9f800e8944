/**
 * What changes on a server, as it happens: one way to hear of it in all revisions, {@link Client.changes}.
 *
 * In the request era each run of the stream is a `subscriptions/listen` of its own. In the session era lists are announced without
 * being asked, and each resource is subscribed to once, however many runs watch it, and unsubscribed from when the last of them ends.
 *
 * - First comes `Subscribed`, with what the server agreed to tell; what it did not agree to is not there, and no error.
 * - What came between two subscriptions is lost: after a `Gap` and the `Subscribed` that follows, read anew what you hold.
 * - Ending the stream cancels on the wire.
 * - Tasks are told of in the request era alone, by the extension `io.modelcontextprotocol/tasks`, which that request declares. What a
 *   server says of one is the whole task, so that nothing has to be asked for; after a `Gap` its state may be another one.
 * - Over HTTP in the session era a server tells what changes on a stream of its own. One that has none is `Unsupported`, whatever it
 *   declares; where that stream broke and could not be resumed, a `Gap` and `Subscribed` say so.
 *
 * @example
 * client.changes({ tools: true, uris: ["file:///notes.md"] }).pipe(
 *   Stream.runForEach((change) => {
 *     switch (change._tag) {
 *       case "Subscribed": return reread
 *       case "ToolListChanged": return relist
 *       case "ResourceUpdated": return read(change.uri)
 *       default: return Effect.void
 *     }
 *   })
 * )
 */
import type { DetailedTask } from "@skein/protocol/Task"
import type * as Duration from "effect/Duration"
import type { ClientError } from "./ClientError.ts"
import type * as Reconnect from "./Reconnect.ts"

/** Which changes are of interest. What is absent is not. */
export interface Filter {
  /** `notifications/tools/list_changed`. */
  readonly tools?: boolean | undefined
  /** `notifications/prompts/list_changed`. */
  readonly prompts?: boolean | undefined
  /** `notifications/resources/list_changed`. */
  readonly resources?: boolean | undefined
  /** `notifications/resources/updated` of these resources. */
  readonly uris?: ReadonlyArray<string> | undefined
  /** `notifications/tasks` of these tasks; in the request era alone, and never honoured in a session. */
  readonly taskIds?: ReadonlyArray<string> | undefined
}

/** What the server agreed to tell: a part of what was asked for. */
export interface Honoured {
  readonly tools: boolean
  readonly prompts: boolean
  readonly resources: boolean
  readonly uris: ReadonlyArray<string>
  readonly taskIds: ReadonlyArray<string>
}

/** From here on what is in `honoured` is told. Comes first, and again after each `Gap` but those for `Overflow`. */
export interface Subscribed {
  readonly _tag: "Subscribed"
  readonly honoured: Honoured
}

/** The list of tools has changed. */
export interface ToolListChanged {
  readonly _tag: "ToolListChanged"
}

/** The list of prompts has changed. */
export interface PromptListChanged {
  readonly _tag: "PromptListChanged"
}

/** The list of resources, or of resource templates, has changed. */
export interface ResourceListChanged {
  readonly _tag: "ResourceListChanged"
}

/**
 * A resource has changed. "This might be a sub-resource of the one that the client actually subscribed to" (all revisions, the schema's
 * `ResourceUpdatedNotificationParams`): `uri` is what the server named. A session does not say whom it tells: a run hears of what it
 * watches, of what is below that by its URI, and of what is below nothing that any run watches.
 */
export interface ResourceUpdated {
  readonly _tag: "ResourceUpdated"
  readonly uri: string
}

/**
 * A task has changed. "Each notification carries a complete `DetailedTask` for the current status, identical to what `tasks/get`
 * would have returned at that moment" (the extension, task status notifications).
 */
export interface TaskChanged {
  readonly _tag: "TaskChanged"
  readonly task: DetailedTask
}

/**
 * Something may have been missed: the server ended the subscription (`Ended`), it was lost with the connection or broke otherwise
 * (`Lost`, and `cause` says how), or this stream was read too slowly (`Overflow`).
 */
export interface Gap {
  readonly _tag: "Gap"
  readonly reason: "Ended" | "Lost" | "Overflow"
  readonly cause: ClientError | undefined
}

/** What a run of the stream gives. */
export type Change =
  | Subscribed
  | ToolListChanged
  | PromptListChanged
  | ResourceListChanged
  | ResourceUpdated
  | TaskChanged
  | Gap

/** How changes are listened to. */
export interface Options {
  /**
   * How many changes wait for whoever reads the stream: the client's `maxBufferedNotifications` by default, 256, and at least 1. When that
   * many wait the oldest is dropped, and a `Gap` for `Overflow` comes in its place.
   */
  readonly maxBufferedChanges?: number | undefined
  /**
   * How long the server may take to agree: the timeout of the client's requests by default, 60 seconds. Then the attempt counts as
   * failed, with `Timeout`.
   */
  readonly timeout?: Duration.Input | undefined
  /**
   * When to subscribe again after a subscription has ended or was lost while the connection went on: as the client's `reconnect` says,
   * or else the defaults of the policy. Ends that were graceful count as well. When it gives up the stream fails with `Closed`, and the
   * `cause` is a `ReconnectExhausted`. How often a connection is opened again is the client's matter alone.
   */
  readonly reconnect?: Reconnect.Policy | undefined
}
