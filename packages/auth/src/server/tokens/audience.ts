/**
 * For whom a token was issued. A resource accepts only tokens that were issued for it: another resource that received a
 * token could use it here (2025-06-18 and later, authorization, token audience).
 */
import { invalid, textsOf } from "./parseToken.ts"
import type { InvalidToken } from "./verifiedToken.ts"

/** The tokens that are accepted beside those for the resource itself. */
export interface AudienceOptions {
  /**
   * The accepted audiences beside the resource, for an issuer without resource indicators: `["api://…"]` of Entra. None
   * by default. An audience is compared as text.
   */
  readonly audiences?: ReadonlyArray<string> | undefined
  /**
   * The clients whose tokens are accepted without an audience, for an issuer that does not write any: Cognito. Their
   * tokens are then valid at every resource that accepts these clients, so they must be for this server only. None by
   * default. A token with another audience is always refused.
   */
  readonly clients?: ReadonlyArray<string> | undefined
}

/** Whether one of the audiences is accepted. They are compared as text: no slash or case is normalized. */
export const isFor = (audiences: ReadonlyArray<string>, accepted: ReadonlyArray<string>): boolean =>
  audiences.some((audience) => accepted.includes(audience))

export const otherAudience = (accepted: ReadonlyArray<string>, received: unknown): InvalidToken =>
  invalid("Audience", `the token was not issued for ${accepted.join(" or ")}`, received)

export const audienceProblem = (
  { aud, client_id }: { readonly [claim: string]: unknown },
  resource: string,
  { audiences = [], clients = [] }: AudienceOptions
): InvalidToken | undefined => {
  const accepted = [resource, ...audiences]
  if (aud === undefined) {
    return typeof client_id === "string" && clients.includes(client_id) ? undefined : otherAudience(accepted, undefined)
  }
  const received = textsOf(aud)
  if (received === undefined) return invalid("Malformed", "aud of the token is neither a text nor a list of texts")
  return isFor(received, accepted) ? undefined : otherAudience(accepted, aud)
}
