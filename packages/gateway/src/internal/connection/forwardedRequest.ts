/**
 * A request of a caller that is in progress at a remote server.
 */
import type { InputRequest, InputResponse } from "@skein/protocol/InputRequired"
import type { JsonObject } from "@skein/protocol/JsonRpc"
import type { Caller, RequestContext } from "@skein/runtime/RequestContext"
import type { InputError } from "@skein/server/InputError"
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"

/** Passes an input request of the remote server to the caller. */
export type Ask = (question: InputRequest, key?: string) => Effect.Effect<InputResponse, InputError>

/** A request that is in progress at a remote server. */
export interface ForwardedRequest {
  /** The caller of its first round. */
  readonly caller: Caller
  /** Identifies the caller for as long as it can be asked: its connection, its principal, or the request alone. */
  readonly owner: unknown
  /** The key of the client, for the bounds that clients share: see `ClientKey`. */
  readonly client: string | undefined
  /**
   * The request that receives progress and log messages: that of the present round. Undefined while the call waits for
   * the next round.
   */
  request: RequestContext | undefined
  readonly ask: Ask
  /** The ids with which it was sent to the remote server. A repeated request has a new one. */
  readonly sentIds: Array<number>
  /** The capabilities that the caller lacks for what the remote server asked of it: none at first. */
  lacking: JsonObject | undefined
}

/**
 * The identity of a caller. Two requests with the same identity come from the same user. Anonymous requests without a
 * connection of their own are all different.
 */
export const ownerOf = (request: RequestContext): unknown => {
  const { caller: { principal }, peer } = request
  return peer ?? (principal === undefined ? request : `principal ${principal.id}`)
}

/** The forwarded request that a fiber works for. */
export const CurrentRequest: Context.Reference<ForwardedRequest | undefined> = Context.Reference<
  ForwardedRequest | undefined
>("@skein/gateway/CurrentRequest", { defaultValue: () => undefined })
