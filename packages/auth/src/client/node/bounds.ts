/** Bounds of `Loopback` and `PasteSignIn` that no deployment has a reason to change. Tests lower them. */
import * as Options from "@skein/runtime/Options"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { SignInError } from "../grants/SignIn.ts"

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

/** Bounds the wait for a person by `signInTimeout`. `problem` begins the message of the failure. */
export const withinTimeout = <A, E, R>(
  wait: Effect.Effect<A, E, R>,
  { signInTimeout }: { readonly signInTimeout?: Duration.Input | undefined },
  problem: string
): Effect.Effect<A, E | SignInError, R> => {
  const duration = Duration.millis(Options.resolve({ signInTimeout }, {}, { signInTimeout: "5 minutes" }).signInTimeout)
  return Effect.timeoutOrElse(wait, {
    duration,
    orElse: () =>
      Effect.fail(
        new SignInError({ message: `${problem} within ${Duration.format(duration)} (signInTimeout). Start it again.` })
      )
  })
}
