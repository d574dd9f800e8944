/**
 * The state that an endpoint shares with its sessions and its stateless requests.
 */
import type * as Limits from "@skein/runtime/Limits"
import type { RequestRunner } from "@skein/runtime/RequestRunner"
import type * as Context from "effect/Context"
import type { ServerCore } from "../dispatch/serverCore.ts"
import type { KeepAlive } from "./keepAlive.ts"
import type { Resolved } from "./options.ts"
import type { Refuse } from "./refusals.ts"

export interface EndpointContext {
  readonly core: ServerCore
  readonly options: Resolved
  readonly limits: Limits.Resolved
  /** The services that every request starts with. */
  readonly context: Context.Context<never>
  /** Runs the requests, of sessions and stateless ones. */
  readonly runner: RequestRunner
  readonly keepAlive: KeepAlive
  readonly load: LoadCounters
  readonly refuse: Refuse
}

/** The load of an endpoint, of sessions and stateless requests together. */
export class LoadCounters {
  /** Streams without an end of their own: `subscriptions/listen` and GET. */
  streams = 0
  /** Requests that have suspended, without `subscriptions/listen`. */
  requests = 0
  /** The bodies of suspended requests, in characters, and the bodies that are being read, in bytes. */
  bodies = 0

  /**
   * Counts a request or stream that has suspended, or removes one that has ended (`by` -1). `size` is the length of its
   * body in characters.
   */
  count(kind: "requests" | "streams", size: number, by: 1 | -1): void {
    this[kind] += by
    this.bodies += by * size
  }
}
