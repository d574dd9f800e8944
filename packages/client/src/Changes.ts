/**
 * The changes on a server, as a stream that works in all revisions: `Client.changes`.
 *
 * In 2026-07-28 each run of the stream is one `subscriptions/listen` request. In a session the server announces changes
 * of lists without a request. Each resource is subscribed to once for all runs, and unsubscribed from when the last run
 * ends.
 *
 * - The first element is `Subscribed`, with the part of the filter that the server agreed to. The server omits the rest
 *   without an error.
 * - Changes between two subscriptions are lost. After a `Gap` and the following `Subscribed`, read again the data that
 *   you hold.
 * - Ending the stream cancels the subscription on the server.
 * - A slow reader has a buffer of `limits.maxBufferedNotifications` changes. Beyond that the oldest one is dropped, and
 *   replaced by a `Gap` with the reason `Overflow`.
 * - Tasks are supported since 2026-07-28 only, by the extension `io.modelcontextprotocol/tasks`, which the request
 *   declares. A `TaskChanged` contains the whole task. After a `Gap` its state may have changed.
 * - A session over HTTP receives changes on its standalone stream. A server without that stream fails with
 *   `Unsupported`, even if it declares the changes. If that stream was lost, and was opened again without being
 *   resumed, a `Gap` and a `Subscribed` follow.
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

/** The changes to subscribe to. An absent member is not subscribed to. */
export interface Filter {
  /** `notifications/tools/list_changed`. */
  readonly tools?: boolean | undefined
  /** `notifications/prompts/list_changed`. */
  readonly prompts?: boolean | undefined
  /** `notifications/resources/list_changed`. */
  readonly resources?: boolean | undefined
  /** `notifications/resources/updated` of these resources. */
  readonly uris?: ReadonlyArray<string> | undefined
  /** `notifications/tasks` of these tasks. Since 2026-07-28; a session never honours it. */
  readonly taskIds?: ReadonlyArray<string> | undefined
}

/** The part of a filter that the server agreed to. */
export interface Honoured {
  readonly tools: boolean
  readonly prompts: boolean
  readonly resources: boolean
  readonly uris: ReadonlyArray<string>
  readonly taskIds: ReadonlyArray<string>
}

/**
 * The subscription has begun: the changes in `honoured` follow. It is the first element of the stream, and follows each
 * `Gap` except those with the reason `Overflow`.
 */
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
 * A resource has changed. "This might be a sub-resource of the one that the client actually subscribed to" (all
 * revisions, the schema's `ResourceUpdatedNotificationParams`): `uri` is the resource that the server named. In a
 * session a notification does not name its subscription: a run receives the updates of its own URIs, of URIs below
 * them, and of URIs that are not below any URI of a run.
 */
export interface ResourceUpdated {
  readonly _tag: "ResourceUpdated"
  readonly uri: string
}

/**
 * A task has changed. "Each notification carries a complete `DetailedTask` for the current status, identical to what
 * `tasks/get` would have returned at that moment" (the extension, task status notifications).
 */
export interface TaskChanged {
  readonly _tag: "TaskChanged"
  readonly task: DetailedTask
}

/**
 * Changes may have been missed: the server ended the subscription (`Ended`), the connection or the subscription failed
 * (`Lost`, with the `cause`), or the stream was read too slowly (`Overflow`).
 */
export interface Gap {
  readonly _tag: "Gap"
  readonly reason: "Ended" | "Lost" | "Overflow"
  readonly cause: ClientError | undefined
}

/** An element of the stream. */
export type Change =
  | Subscribed
  | ToolListChanged
  | PromptListChanged
  | ResourceListChanged
  | ResourceUpdated
  | TaskChanged
  | Gap

/** The options of a stream of changes. */
export interface Options {
  /**
   * How long the server may take to acknowledge the subscription: the timeout of the client's requests by default (60
   * seconds). Then the attempt has failed with `Timeout`. Raise it for a server that checks many resources first.
   */
  readonly timeout?: Duration.Input | undefined
  /**
   * When to subscribe again after a subscription has ended or failed on a connection that is still open: the client's
   * `reconnect` by default. Graceful ends count as well. After `maxAttempts` the stream fails with `Closed`, whose
   * `cause` is a `ReconnectExhausted`. Reconnecting lost connections follows the client's own `reconnect` option.
   */
  readonly reconnect?: Reconnect.Policy | undefined
}
