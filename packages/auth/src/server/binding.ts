/**
 * Whether a token is presented by the method that it is bound by.
 */
import { invalid } from "./tokens/parseToken.ts"
import type { InvalidToken, VerifiedToken } from "./tokens/verifiedToken.ts"

/** How a token was presented. */
export interface Presentation {
  /** The scheme of the `Authorization` header. */
  readonly scheme: "Bearer" | "DPoP"
  /** Whether tokens must be bound to a key of DPoP. */
  readonly requireDpop: boolean
  /** The thumbprint of the certificate of the client (`x5t#S256`), if it has one. */
  readonly certificate: string | undefined
}

/**
 * Why a token must not be accepted as it was presented. Undefined if it may; a token with `jkt` then needs a proof.
 *
 * A bound token that comes as a bearer token may have been stolen from its client, and must be refused (RFC 9449, 7.2),
 * and so must a token whose certificate is not that of the connection (RFC 8705, 3).
 */
export const bindingProblem = (
  { confirmation }: VerifiedToken,
  { certificate, requireDpop, scheme }: Presentation
): InvalidToken | undefined => {
  const { jkt, unsupported, x5tS256 } = confirmation ?? {}
  if (unsupported !== undefined) return invalid("Binding", "the token is bound by a method that is not supported")
  if (x5tS256 !== undefined && x5tS256 !== certificate) {
    return invalid("Binding", "the token is bound to another certificate than that of the connection")
  }
  if (jkt === undefined && scheme === "DPoP") {
    return invalid("Binding", "the token is not bound to a key: it needs the scheme Bearer")
  }
  if (jkt === undefined && requireDpop) {
    return invalid("Binding", "this server requires a token that is bound to a key (DPoP)")
  }
  if (jkt !== undefined && scheme === "Bearer") {
    return invalid("Binding", "the token is bound to a key: it needs the scheme DPoP and a proof")
  }
  return undefined
}
