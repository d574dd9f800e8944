/**
 * Credentials of the requests of a client over HTTP.
 */
import * as Core from "@skein/client/Credentials"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import type { Credentials } from "../base/http.ts"
import type { JsonObject } from "../base/messages.ts"
import type { Awaitable } from "../base/types.ts"

/** The request that credentials are for. */
export interface CredentialsRequest {
  readonly method: "GET" | "POST" | "DELETE"
  /** The URL of this request. After a redirect and in HTTP+SSE it is not the URL of the server. */
  readonly url: URL
  /** The URL that the transport was given, which identifies the server. */
  readonly server?: URL | undefined
}

/** A response of a server. */
export interface CredentialsReply {
  /** The URL of the request. */
  readonly url: URL
  /** The URL of the server. */
  readonly server?: URL | undefined
  readonly status: number
  /** Reads a header of the response. */
  readonly header: (name: string) => string | undefined
}

/** A request that a server refused with status 401 or 403. */
export interface Challenge extends CredentialsReply {
  /** 401: credentials are missing or not accepted. 403: these credentials do not allow the request. */
  readonly status: 401 | 403
  /** The header `WWW-Authenticate` as it was received. */
  readonly wwwAuthenticate: string | undefined
  /** The header `Authorization` of the refused request. A log of the challenge does not contain it. */
  readonly authorization: string | undefined
  /** How often this request has been refused with 401 or 403, from 1. */
  readonly attempt: number
}

/** The functions of credentials. They may take up to 15 minutes: the timeouts of calls stand still meanwhile. */
export interface CredentialsFunctions {
  /** Returns the headers to add to a request. If it rejects, the request fails with `HttpError`, and nothing is sent. */
  readonly headers: (
    request: CredentialsRequest,
    context: { readonly signal: AbortSignal }
  ) => Awaitable<{ readonly [name: string]: string }>
  /**
   * Runs when a request is refused, one refusal at a time. `true` means that `headers` returns other credentials now: the
   * request is sent again, at most three times. Otherwise it fails with `Unauthorized`, and so it does without the function.
   */
  readonly refused?:
    | ((challenge: Challenge, context: { readonly signal: AbortSignal }) => Awaitable<boolean>)
    | undefined
  /** Receives the status and the headers of each response. It must not throw. */
  readonly replied?: ((reply: CredentialsReply) => void) | undefined
  /** Extensions for authorization that the credentials implement, by their identifiers, with their settings. */
  readonly extensions?: { readonly [extension: string]: JsonObject } | undefined
  /**
   * Returns for whom the requests to a server act: a text without a secret, which stays the same while tokens are renewed. A
   * `ServerProfile` is used only while it is the same.
   */
  readonly authorizationContext?: ((server: URL) => Awaitable<string | undefined>) | undefined
}

/**
 * Makes credentials of async functions. Check the `url` of each request: the same credentials may be given to several servers.
 *
 * @example
 * Http.transport({ url, credentials: credentials({ headers: async () => ({ "x-api-key": await readKey() }) }) })
 */
export const credentials: (functions: CredentialsFunctions) => Credentials = Core.async as never

/**
 * Makes credentials that send a bearer token (`Authorization: Bearer …`). A function runs for each request, so that it can
 * cache a token and renew it. After a 401 it runs once more, in case it returns another token.
 *
 * @example
 * const client = await AsyncClient.connect({ url, credentials: bearer(() => session.accessToken()) })
 */
export const bearer = (token: string | (() => Awaitable<string>)): Credentials =>
  Core.bearer(
    typeof token === "string"
      ? Redacted.make(token)
      : Effect.map(Effect.catchDefect(Effect.promise(async () => token()), (error) => Effect.fail(error)), (token) =>
        Redacted.make(token))
  ) as never
