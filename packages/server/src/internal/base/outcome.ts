/** The outcomes of requests, for audit logs and telemetry, and the observer of events that are not requests. */
import * as JsonRpc from "@skein/protocol/JsonRpc"
import type * as McpError from "@skein/protocol/McpError"
import type { Origin } from "@skein/runtime/Connection"
import type { Peer } from "@skein/runtime/Peer"
import type { Answer, RequestContext, SessionPeer } from "@skein/runtime/RequestContext"
import { errorOf } from "@skein/runtime/RequestRunner"
import * as Cause from "effect/Cause"
import type * as Exit from "effect/Exit"

/**
 * How a request ended: `ok`, a result; `tool_error`, a tool's result with `isError`; `input_required`, input requests
 * to the client; `error`, a JSON-RPC error; `cancelled`, by the client or by the end of its connection; `defect`, an
 * exception that the log contains.
 */
export type Outcome = "ok" | "tool_error" | "input_required" | "error" | "cancelled" | "defect"

/** An encoded result, with the result that was encoded. */
export class EncodedResult extends JsonRpc.Encoded {
  readonly result: JsonRpc.JsonObject

  constructor(text: string, result: JsonRpc.JsonObject) {
    super(text)
    this.result = result
  }
}

/** The members of a result. Those of a result that was encoded without it are not known. */
export const resultOf = (answer: Answer): JsonRpc.JsonObject =>
  answer instanceof EncodedResult ? answer.result : answer as JsonRpc.JsonObject

const ofAnswer = (answer: Answer): Outcome => {
  const result = resultOf(answer)
  return result["isError"] === true ? "tool_error" : result["resultType"] === "input_required" ? "input_required" : "ok"
}

/** Returns the outcome of a request. Call it after the handler has ended and before the answer is sent. */
export const outcomeOf = (request: RequestContext, exit: Exit.Exit<Answer, McpError.McpError>): Outcome => {
  if (request.cancelled) return "cancelled"
  if (exit._tag === "Success") return ofAnswer(exit.value)
  if (errorOf(exit) !== undefined) return "error"
  // The handler was interrupted to answer the request with its input requests.
  return request.exchange.state === "Replacing" && Cause.hasInterruptsOnly(exit.cause) ? "input_required" : "defect"
}

/**
 * Receives events that are not requests. A server has an observer only if `Telemetry.layer` is among its definitions. A
 * transport calls `core.observer?.…`, which costs nothing otherwise.
 */
export interface ServerObserver {
  /** A session was opened without `initialize`. */
  readonly sessionOpened: (peer: SessionPeer, origin: Origin | undefined) => void
  /** A connection has ended. It was a session if its handshake had completed. Called for every transport. */
  readonly sessionClosed: (peer: Peer) => void
  /** A stream of server-sent events has started. One call of `streamClosed` follows each call. */
  readonly streamOpened: () => void
  readonly streamClosed: () => void
  /** An HTTP request was refused with this status before its message was read. */
  readonly refused: (status: number) => void
  /** An endpoint is ready, which refuses requests with these statuses. */
  readonly refusing: (statuses: ReadonlyArray<number>) => void
}
