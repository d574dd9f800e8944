/**
 * What an endpoint shares with its parts.
 */
import type * as Limits from "@skein/runtime/Limits"
import type * as Context from "effect/Context"
import type { Host } from "../dispatch/serverCore.ts"
import type { Gauge } from "./gauge.ts"
import type { KeepAlive } from "./keepAlive.ts"
import type { Resolved } from "./options.ts"
import type { Refusals } from "./refusals.ts"

/** What those of one endpoint have in common. */
export interface Parts {
  readonly host: Host
  readonly options: Resolved
  readonly limits: Limits.Resolved
  /** The services of the endpoint, which every request starts with. */
  readonly context: Context.Context<never>
  readonly keepAlive: KeepAlive
  readonly gauge: Gauge
  readonly refusals: Refusals
}
