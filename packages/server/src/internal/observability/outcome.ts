/** How a request ended, for those who keep a record of it. */
import * as JsonRpc from "@skein/protocol/JsonRpc"
import * as McpError from "@skein/protocol/McpError"
import type { Peer } from "@skein/runtime/Peer"
import type { Answer, RequestContext } from "@skein/runtime/RequestContext"
import * as Cause from "effect/Cause"
import type * as Exit from "effect/Exit"

/**
 * `ok`: it was answered. `tool_error`: with a tool's result that has `isError`. `input_required`: with questions to the client.
 * `error`: with a JSON-RPC error. `cancelled`: by the client, or by the end of its connection. `defect`: something broke.
 */
export type Outcome = "ok" | "tool_error" | "input_required" | "error" | "cancelled" | "defect"

/** A result that was written out already, and what it was before. */
export class Written extends JsonRpc.Encoded {
  readonly result: JsonRpc.JsonObject

  constructor(text: string, result: JsonRpc.JsonObject) {
    super(text)
    this.result = result
  }
}

const ofAnswer = (answer: Answer): Outcome => {
  const result = answer instanceof Written ? answer.result : answer as JsonRpc.JsonObject
  return result["isError"] === true ? "tool_error" : result["resultType"] === "input_required" ? "input_required" : "ok"
}

/** The JSON-RPC error that a request ended with, if it did: nothing else may be wrong beside it. */
export const errorOf = (exit: Exit.Exit<Answer, McpError.McpError>): McpError.McpError | undefined => {
  if (exit._tag === "Success" || exit.cause.reasons.some(Cause.isDieReason)) return undefined
  const error = exit.cause.reasons.find(Cause.isFailReason)?.error
  return McpError.isMcpError(error) ? error : undefined
}

/** How it ended. Asked when the handler is over, and before the exchange is. */
export const outcomeOf = (exchange: RequestContext, exit: Exit.Exit<Answer, McpError.McpError>): Outcome => {
  if (exchange.cancelled) return "cancelled"
  if (exit._tag === "Success") return ofAnswer(exit.value)
  if (errorOf(exit) !== undefined) return "error"
  // The handler was interrupted because it asks something, which is answered in its stead.
  return exchange.instead !== undefined && Cause.hasInterruptsOnly(exit.cause) ? "input_required" : "defect"
}

export interface ServerObserver {
  /** A connection is over: a session, where it had shaken hands. Called by the `Host`, for every transport. */
  readonly sessionClosed: (peer: Peer) => void
  /** A stream of server-sent events has begun. Each call is followed by one of `streamClosed`. */
  readonly streamOpened: () => void
  readonly streamClosed: () => void
  /** An HTTP request was refused with this status before it became a request of the protocol. */
  readonly refused: (status: number) => void
}
