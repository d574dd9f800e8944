/**
 * The protection that made a principal. Handlers see plain claims; the challenge for further scopes is found here.
 */
import type { JsonObject } from "@skein/protocol/JsonRpc"
import * as McpError from "@skein/protocol/McpError"
import type { Principal } from "@skein/server/Principal"
import { type ChallengeParams, makeChallenge } from "./challenge.ts"

/** The part of a protection that refuses scopes. */
export interface ScopeChallenger {
  /** The scopes that every request needs. */
  readonly scopes: ReadonlyArray<string>
  readonly metadata: string | undefined
  readonly challenge: ReturnType<typeof makeChallenge>
}

// A member that copies of a principal have too, and that JSON leaves out: an application may add members of its own.
const challengerKey = /* @__PURE__ */ Symbol("@skein/auth/challenger")

/** Whether a text is a scope. "scope-token = 1*( %x21 / %x23-5B / %x5D-7E )" (RFC 6749, 3.3). */
const isScope = (text: string): boolean => /^[\x21\x23-\x5b\x5d-\x7e]+$/.test(text)

/** Checks that a list of scopes can be sent. */
export const checkScopes = (name: string, scopes: ReadonlyArray<string>): ReadonlyArray<string> => {
  const wrong = scopes.find((scope) => !isScope(scope))
  if (wrong !== undefined) throw new Error(`${name} has ${JSON.stringify(wrong)}, which is not a scope`)
  return scopes
}

/** For principals that the application has found without `Protect`. */
const unprotected: ScopeChallenger = {
  scopes: [],
  metadata: undefined,
  challenge: makeChallenge({ bearer: true, dpop: undefined }, undefined)
}

export const setChallenger = (principal: Principal, challenger: ScopeChallenger): void =>
  void Object.defineProperty(principal, challengerKey, { value: challenger, enumerable: true })

const challengerOf = (principal: Principal | undefined): ScopeChallenger =>
  (principal as { readonly [challengerKey]?: ScopeChallenger } | undefined)?.[challengerKey] ?? unprotected

/** The scopes of a principal, with those that they imply. None for an anonymous caller. */
export const scopesOf = (principal: Principal | undefined): ReadonlyArray<unknown> => {
  const scopes = principal?.["scopes"]
  return Array.isArray(scopes) ? scopes : []
}

/** Whether a principal has all of these scopes. */
export const hasScopes = (principal: Principal | undefined, scopes: ReadonlyArray<string>): boolean => {
  const granted = scopesOf(principal)
  return scopes.every((scope) => granted.includes(scope))
}

/**
 * The error for an operation that needs these scopes, beside those that every request needs. "Servers SHOULD include all
 * scopes required for the current operation in a single challenge" (2026-07-28, authorization, scope challenge handling).
 */
export const insufficientScope = (
  principal: Principal | undefined,
  needed: ReadonlyArray<string>
): McpError.McpError => {
  const challenger = challengerOf(principal)
  const scope = [...new Set([...challenger.scopes, ...needed])].join(" ")
  const params = { error: "insufficient_scope", error_description: `This operation needs the scopes: ${scope}`, scope }
  return refusal(challenger, 403, "Forbidden", params, {
    error: params.error,
    scope,
    ...(challenger.metadata === undefined ? undefined : { resource_metadata: challenger.metadata })
  })
}

/** The error for a caller whose sign-in has ended elsewhere: 401, and the client signs its user in and calls again. */
export const signInRequired = (principal: Principal | undefined, description: string): McpError.McpError => {
  const challenger = challengerOf(principal)
  const params = { error: "invalid_token", error_description: description, scope: challenger.scopes.join(" ") }
  return refusal(challenger, 401, "Unauthorized", params, { error: params.error })
}

/** An error whose HTTP response has a challenge. */
const refusal = (
  { challenge }: ScopeChallenger,
  status: number,
  title: string,
  params: ChallengeParams,
  data: JsonObject
): McpError.McpError =>
  McpError.withHttp(McpError.invalidRequest(`${title}: ${params.error_description}`, data), {
    status,
    headers: { "www-authenticate": challenge(params) }
  })
