/** Verifies tokens, and returns the outcome as a value. */
import type { InvalidToken, TokenProblem, TokenVerifier, VerifiedToken } from "@skein/auth/TokenVerifier"
import * as Effect from "effect/Effect"
import { resource } from "./authorizationServer.ts"

/** Verifies a token for the resource of the tests. */
export const verify = (verifier: TokenVerifier, token: string, of: string = resource) =>
  Effect.suspend(() => {
    const verification = verifier.verify(token, { resource: of })
    return Effect.isEffect(verification) ? verification : Effect.succeed(verification)
  })

/** The problem of a token, `"unavailable"`, or undefined if it was accepted. */
export const problemOf = (
  verifier: TokenVerifier,
  token: string,
  of?: string
): Effect.Effect<TokenProblem | "unavailable" | undefined> =>
  Effect.match(verify(verifier, token, of), {
    onSuccess: () => undefined,
    onFailure: (error) => error._tag === "InvalidToken" ? error.problem : "unavailable"
  })

export type { InvalidToken, VerifiedToken }
