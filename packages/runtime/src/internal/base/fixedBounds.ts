/**
 * The bounds of a connection that have no option, because no deployment has a reason to change them. Tests provide the
 * reference with lower ones.
 */
import * as Context from "effect/Context"

/** The fixed bounds. `docs/limits.md` lists them. */
export const fixedBounds = {
  /** Outbound requests that wait for a response. A further call fails with `RequestError` `LimitExceeded`. */
  maxPendingRequests: 1_024,
  /**
   * Inbound notifications whose handlers are still running. At the bound the next notification is dropped if its handler
   * has to wait. The first drop is logged, and their number when a handler ends. Progress and cancellations are not
   * counted and never dropped.
   */
  maxRunningNotifications: 256,
  /**
   * How long the end of a session waits for interrupted handlers and the finalizers of the session's scope, together, in
   * milliseconds. Handlers that still run then are abandoned, and logged.
   */
  interruptTimeout: 5_000,
  /**
   * Messages that may wait for a slow reader on each side of an in-memory transport before `send` returns `false`.
   * Further messages are accepted all the same.
   */
  highWaterMark: 1_024
}

export type FixedBounds = Readonly<typeof fixedBounds>

export const Bounds = /* @__PURE__ */ Context.Reference<FixedBounds>("@skein/runtime/internal/Bounds", {
  defaultValue: () => fixedBounds
})
