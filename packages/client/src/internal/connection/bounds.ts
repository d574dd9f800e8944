/**
 * The options of a client for reconnecting and retrying, with their defaults.
 */
import type { Transport } from "@skein/runtime/Connection"
import * as Limits from "@skein/runtime/Limits"
import * as Reconnect from "../../Reconnect.ts"
import type { Options } from "./clientOptions.ts"
import type { SupervisorOptions, Timeouts } from "./supervisor.ts"

const patienceOf = (options: Options, backoff: Reconnect.Resolved): Timeouts => {
  const { maxTimeout, timeout } = Limits.resolve(options.limits)
  return { timeout, maxTimeout, maxRetries: options.maxRetries ?? 3, backoff }
}

// The defaults, which most clients share.
const usual = patienceOf({}, Reconnect.resolve())

/** Applies the defaults: the transport decides whether its connections are reopened by default. */
export const resolveReconnect = (
  options: Options,
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
