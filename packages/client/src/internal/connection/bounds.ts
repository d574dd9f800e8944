/**
 * The options of a client that say how it stays connected, with their defaults.
 */
import type { Transport } from "@skein/runtime/Connection"
import * as Limits from "@skein/runtime/Limits"
import * as Reconnect from "../../Reconnect.ts"
import type { SupervisorOptions, Timeouts } from "./supervisor.ts"

/** The part of the client's options that matters here. */
export interface ReconnectOptions {
  readonly reconnect?: Reconnect.Policy | boolean | undefined
  readonly maxRetries?: number | undefined
  readonly limits?: Limits.Limits | undefined
}

const patienceOf = (options: ReconnectOptions, backoff: Reconnect.Resolved): Timeouts => {
  const { maxTimeout, timeout } = Limits.resolve(options.limits)
  return { timeout, maxTimeout, maxRetries: options.maxRetries ?? 3, backoff }
}

// That of most clients.
const usual = patienceOf({}, Reconnect.resolve())

/** Fills the defaults in: a transport says itself whether it is opened anew. */
export const resolveReconnect = (
  options: ReconnectOptions,
  transport: Transport
): Pick<SupervisorOptions, "policy" | "timeouts"> => {
  const asked = options.reconnect ?? transport.reconnects ?? false
  const backoff = Reconnect.resolve(typeof asked === "object" ? asked : undefined)
  const isUsual = backoff === usual.backoff && options.limits === undefined && options.maxRetries === undefined
  return {
    policy: asked === false ? undefined : backoff,
    timeouts: isUsual ? usual : patienceOf(options, backoff)
  }
}
