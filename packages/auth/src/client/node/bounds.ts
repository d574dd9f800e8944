/** Bounds of `Loopback` and `PasteSignIn` that no deployment has a reason to change. Tests lower them. */
import * as Options from "@skein/runtime/Options"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"

/** The bounds of one sign-in. */
export interface SignInBounds {
  /** Connections at the same time. At the bound, the oldest connection is closed. */
  readonly maxConnections: number
  /** Requests that are not the answer. Further ones are not answered. */
  readonly maxRequests: number
  /** The bytes of the first line and the headers of a request. Node answers a longer one with 431. */
  readonly maxRequestBytes: number
  /** The pasted texts that are not the answer. Then the sign-in fails. */
  readonly maxPastes: number
}

/**
 * The bounds of the sign-in that an effect opens.
 *
 * @example
 * const answer = yield* Effect.updateService(signIn, SignInBounds, (bounds) => ({ ...bounds, maxPastes: 2 }))
 */
export const SignInBounds: Context.Reference<SignInBounds> = Context.Reference("@skein/auth/SignInBounds", {
  defaultValue: () => ({ maxConnections: 16, maxRequests: 1_000, maxRequestBytes: 16_384, maxPastes: 10 })
})

/** The time that a person has for a sign-in. */
export const timeoutOf = (
  { signInTimeout }: { readonly signInTimeout?: Duration.Input | undefined }
): Duration.Duration =>
  Duration.millis(Options.resolve({ signInTimeout }, {}, { signInTimeout: "5 minutes" }).signInTimeout)
