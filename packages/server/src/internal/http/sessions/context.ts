/**
 * The state that an endpoint shares with its sessions and its stateless requests.
 */
import type { RequestRunner } from "@skein/runtime/RequestRunner"
import type * as Context from "effect/Context"
import type { ServerCore } from "../../dispatch/serverCore.ts"
import type { KeepAlive } from "../limits/keepAlive.ts"
import type { Load } from "../limits/load.ts"
import type { SilentAnswers } from "../limits/silentAnswers.ts"
import type { Store } from "../limits/eventStore.ts"
import type { Resolved } from "../access/options.ts"
import type { Refuse } from "../messages/refusals.ts"
import type { StreamExpiry } from "./streamExpiry.ts"

export interface EndpointContext {
  /** The server. */
  readonly core: ServerCore
  /** The options of the endpoint, with their defaults. */
  readonly options: Resolved
  /** The services that every request starts with. */
  readonly context: Context.Context<never>
  /** Runs the requests, of sessions and stateless ones. */
  readonly runner: RequestRunner
  readonly keepAlive: KeepAlive
  readonly silentAnswers: SilentAnswers
  /** The streams that end with the credentials of their principals. */
  readonly streamExpiry: StreamExpiry
  /** The requests, streams, sessions and bytes of the endpoint, by client. */
  readonly load: Load
  /** The events of the streams of sessions: the service `EventStore`, or a store in memory. */
  readonly eventStore: Store
  readonly refuse: Refuse
  /** Whether the endpoint shuts down: it accepts no new requests and sessions. */
  isClosing: boolean
}
