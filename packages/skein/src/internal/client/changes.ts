/**
 * The reports of an open client: changes on the server, notifications, and the state of the connection.
 */
import type { Implementation, JsonObject, LoggingMessage, Meta, Revision } from "../base/messages.ts"
import type { Duration } from "../base/types.ts"
import type { Abortable } from "./calls.ts"
import type { ClientError, SessionEnd } from "./errors.ts"
import type { ReconnectPolicy } from "./options.ts"
import type { InputRequests, ListedTask } from "./results.ts"

/** The changes to subscribe to. An absent member is not subscribed to. */
export interface ChangesFilter {
  /** The list of tools. */
  readonly tools?: boolean | undefined
  /** The list of prompts. */
  readonly prompts?: boolean | undefined
  /** The lists of resources and of resource templates. */
  readonly resources?: boolean | undefined
  /** The resources with these URIs. */
  readonly uris?: ReadonlyArray<string> | undefined
  /** The tasks with these ids. Since 2026-07-28. */
  readonly taskIds?: ReadonlyArray<string> | undefined
}

/** The options of `changes`. */
export interface ChangesOptions extends Abortable {
  /** How long the server may take to acknowledge the subscription: the timeout of the client's requests by default. */
  readonly timeout?: Duration | undefined
  /**
   * When to subscribe again after a subscription has ended on a connection that is still open: `reconnect` of the client by
   * default. After `maxAttempts` the loop throws `Closed`.
   */
  readonly reconnect?: ReconnectPolicy | undefined
}

/** A task that has changed, with the members that depend on its status. */
export type DetailedTask =
  & Omit<ListedTask, "status">
  & (
    | { readonly status: "working" }
    | { readonly status: "input_required"; readonly inputRequests: InputRequests }
    | { readonly status: "completed"; readonly result: JsonObject }
    | {
      readonly status: "failed"
      readonly error: { readonly code: number; readonly message: string; readonly data?: unknown }
    }
    | { readonly status: "cancelled" }
  )

/**
 * A change on the server. `Subscribed` comes first: the changes in `honoured` follow. After a `Gap` changes may have been
 * missed: the server ended the subscription (`Ended`), it was lost (`Lost`), or the loop was too slow (`Overflow`).
 *
 * @example
 * for await (const change of client.changes({ tools: true })) {
 *   if (change._tag === "Subscribed" || change._tag === "ToolListChanged") show(await client.listTools())
 * }
 */
export type Change =
  | {
    readonly _tag: "Subscribed"
    /** The part of the filter that the server agreed to. */
    readonly honoured: {
      readonly tools: boolean
      readonly prompts: boolean
      readonly resources: boolean
      readonly uris: ReadonlyArray<string>
      readonly taskIds: ReadonlyArray<string>
    }
  }
  | { readonly _tag: "ToolListChanged" }
  | { readonly _tag: "PromptListChanged" }
  | { readonly _tag: "ResourceListChanged" }
  | {
    readonly _tag: "ResourceUpdated"
    /** The resource that the server named: one of the filter, or one below it. */
    readonly uri: string
  }
  | { readonly _tag: "TaskChanged"; readonly task: DetailedTask }
  | {
    readonly _tag: "Gap"
    readonly reason: "Ended" | "Lost" | "Overflow"
    readonly cause: ClientError | undefined
  }

interface Of<Tag extends string, Params> {
  readonly _tag: Tag
  readonly method: string
  readonly params: Params
}

/** Params without members of their own. */
interface NoParams {
  readonly _meta?: Meta
}

/**
 * A notification of the server. Progress and cancellation belong to requests and are not included. `Other` is a notification
 * of an extension or of a vendor.
 */
export type Notification =
  | Of<"LoggingMessage", LoggingMessage>
  | Of<"ToolListChanged", NoParams>
  | Of<"ResourceListChanged", NoParams>
  | Of<"ResourceUpdated", NoParams & { readonly uri: string }>
  | Of<"PromptListChanged", NoParams>
  | Of<"ElicitationComplete", NoParams & { readonly elicitationId: string }>
  | Of<"SubscriptionsAcknowledged", NoParams & { readonly notifications: JsonObject }>
  | Of<"Other", JsonObject>

/**
 * The connection status of a client. Over HTTP `Connected` reflects the last request: a client without a `heartbeat` may not
 * notice that the server is gone until the next call.
 */
export type Status =
  | {
    /** The connection is open. After a reconnect, the server and its revision may have changed. */
    readonly _tag: "Connected"
    readonly revision: Revision
    /** Name and version of the server, as it sent them. Do not trust them. */
    readonly info: Implementation | undefined
  }
  | {
    /** The connection is lost, and the client reopens it. */
    readonly _tag: "Reconnecting"
    /** The number of the attempt in a row, from 1. */
    readonly attempt: number
    /** The delay before the attempt, in milliseconds. */
    readonly delay: number
    /** How the connection ended, or why the previous attempt failed. */
    readonly cause: SessionEnd | ClientError
  }
  | {
    /** The client has ended: it was closed, it lost its connection without a policy to reopen it, or it gave up. */
    readonly _tag: "Ended"
    readonly end: SessionEnd
  }
