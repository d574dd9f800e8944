/**
 * The sessions of an HTTP endpoint: who may use which, how many there are, and when they end.
 */
import type * as JsonRpc from "@skein/protocol/JsonRpc"
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type { Host } from "../host.ts"
import type { HttpAnswer, HttpRequest } from "./door.ts"
import type { Resolved } from "./options.ts"

/** What the sessions are made of. */
export interface Parts {
  readonly host: Host
  readonly options: Resolved
  /** The services of the endpoint; an `EventLog` among them is used. */
  readonly context: Context.Context<never>
  /** How many streams are open on the endpoint that last as long as their client wants. */
  readonly gauge: { streams: number }
}

export class Sessions {
  constructor(_parts: Parts) {}

  get size(): number {
    return 0
  }

  /** A message by POST. The guards are passed, and the body is parsed: `initialize` is among them, and what belongs to a session. */
  post(_message: JsonRpc.Inbound, _request: HttpRequest, answer: HttpAnswer): void {
    answer.reply(501, {}, "")
  }

  /** A stream by GET. */
  get(_request: HttpRequest, answer: HttpAnswer): void {
    answer.reply(501, {}, "")
  }

  /** The end of a session by DELETE. */
  delete(_request: HttpRequest, answer: HttpAnswer): void {
    answer.reply(501, {}, "")
  }

  /** Ends all sessions: what is in flight may finish within the grace, then it is interrupted. */
  get close(): Effect.Effect<void> {
    return Effect.void
  }
}
