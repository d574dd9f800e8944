/** Bounds of an `OAuth` that no deployment has a reason to change. Tests lower them. */
import * as Context from "effect/Context"

/** The bounds. Durations are in milliseconds. */
export interface FlowBounds {
  /** How often a person is asked for more scopes of one server within `signInInterval`. */
  readonly maxStepUps: number
  /** The scopes of one sign-in: the URL of a sign-in page has no space for more. */
  readonly maxScopes: number
  /** A discovery that led to no tokens is not repeated earlier. A refused request has the same outcome meanwhile. */
  readonly discoveryInterval: number
  /** The longest delay after token requests and registrations that failed in a row. */
  readonly maxRetryDelay: number
  /** The servers in memory. The one that was used least recently is dropped; its tokens remain in the store. */
  readonly maxServers: number
}

/**
 * The bounds of the `OAuth` that an effect makes.
 *
 * @example
 * const oauth = yield* Effect.updateService(OAuth.make({ grant }), FlowBounds, (bounds) => ({ ...bounds, maxServers: 1 }))
 */
export const FlowBounds: Context.Reference<FlowBounds> = Context.Reference("@skein/auth/FlowBounds", {
  defaultValue: () => ({
    maxStepUps: 3,
    maxScopes: 200,
    discoveryInterval: 5_000,
    maxRetryDelay: 60_000,
    maxServers: 1_000
  })
})
