/** Bounds of an `OAuth` that no deployment has a reason to change. Tests lower them. */
import * as Context from "effect/Context"

/** The bounds. Durations are in milliseconds. */
const fixedBounds = {
  /** How often a person is asked for more scopes of one server within `signInInterval`. */
  maxStepUps: 3,
  /** The scopes of one sign-in: the URL of a sign-in page has no space for more. */
  maxScopes: 200,
  /** A discovery that led to no tokens is not repeated earlier. A refused request has the same outcome meanwhile. */
  discoveryInterval: 5_000,
  /** The longest delay after token requests and registrations that failed in a row. */
  maxRetryDelay: 60_000,
  /** The servers in memory. The one that was used least recently is dropped; its tokens remain in the store. */
  maxServers: 1_000
}

export type FlowBounds = Readonly<typeof fixedBounds>

/**
 * The bounds of the `OAuth` that an effect makes.
 *
 * @example
 * const oauth = yield* Effect.updateService(OAuth.make({ grant }), FlowBounds, (bounds) => ({ ...bounds, maxServers: 1 }))
 */
export const FlowBounds: Context.Reference<FlowBounds> = Context.Reference("@skein/auth/FlowBounds", {
  defaultValue: () => fixedBounds
})
