/**
 * Requests to an authorization server: for its metadata, its keys, and its introspection of a token.
 */
import * as Options from "@skein/runtime/Options"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { isSafe, maxRedirects, parseJson, readText, redirectTarget, staysOnOrigin } from "../../shared/web.ts"
import { VerifierUnavailable } from "./verifiedToken.ts"

/** Options of the requests of a verifier to its authorization server. */
export interface FetchOptions {
  /** How long a request may take, with its body: 5 seconds by default. Raise it for a server that answers slowly. */
  readonly requestTimeout?: Duration.Input | undefined
  /** The largest response that is read, in bytes: 262,144 by default. Raise it for an issuer with very many keys. */
  readonly maxDocumentBytes?: number | undefined
  /**
   * Allows `http:` addresses of other machines, for an authorization server inside a private network. Anybody between
   * this server and that one can then replace the keys. Off by default: only `https:`, and `http:` on loopback.
   */
  readonly allowHttp?: boolean | undefined
  /** The function that sends requests: `fetch` of the platform by default. */
  readonly fetch?: typeof globalThis.fetch | undefined
}

/** A response: its status, and its body as JSON; undefined if the body is not JSON. */
export interface Document {
  readonly status: number
  /** The redirect that was not followed, as a part of a message; empty if there was none. */
  readonly redirect: string
  readonly json: unknown
}

/** Throws if an address of an option may not be used. */
export const checkAddress = (option: string, address: string, { allowHttp = false }: FetchOptions): void => {
  if (isSafe(URL.parse(address), allowHttp)) return
  throw new Error(`${option} must be an https address, or http on loopback (see allowHttp): ${address}`)
}

/** The error of a request whose next attempt may succeed, after some seconds. */
export const unavailable = (message: string, retryAfterSeconds = 5, cause?: unknown): VerifierUnavailable =>
  new VerifierUnavailable({ message, retryAfterSeconds, ...(cause === undefined ? {} : { cause }) })

/**
 * Sends a request. Fails if there is no response, and not for its status. Of a request without a body up to three
 * redirects of the same origin are followed: those of another origin have another operator.
 */
export const fetchText = (
  address: string,
  init: RequestInit,
  options: FetchOptions,
  redirects = 0
): Effect.Effect<
  { readonly status: number; readonly text: string; readonly redirect: string },
  VerifierUnavailable
> => {
  const { allowHttp, fetch, maxDocumentBytes, requestTimeout } = Options.resolve(
    options,
    { allowHttp: false, fetch: globalThis.fetch, maxDocumentBytes: 262_144 },
    { requestTimeout: "5 seconds" }
  )
  if (!isSafe(URL.parse(address), allowHttp)) {
    return Effect.fail(unavailable(`${address} is not an https address, nor http on loopback`))
  }
  const duration = Duration.millis(requestTimeout)
  return Effect.tryPromise({
    try: async (signal) => {
      const response = await fetch(address, { ...init, redirect: "manual", signal })
      const text = await readText(
        response,
        maxDocumentBytes,
        () => new Error(`the response exceeds maxDocumentBytes (${maxDocumentBytes})`)
      )
      const { headers, status } = response
      return { status, text, target: redirectTarget(status, headers, new URL(address)) }
    },
    catch: (cause) => {
      const reason = cause instanceof Error
        ? String((cause.cause as Error | undefined)?.message ?? cause.message)
        : cause
      return unavailable(`the request to ${address} failed: ${String(reason)}`, undefined, cause)
    }
  }).pipe(Effect.timeoutOrElse({
    duration,
    orElse: () =>
      Effect.fail(unavailable(`the request to ${address} exceeded requestTimeout (${Duration.format(duration)})`))
  })).pipe(Effect.flatMap(({ target, ...answer }) => {
    if (target === undefined) return Effect.succeed({ ...answer, redirect: "" })
    const isFollowed = init.body === undefined && redirects < maxRedirects && staysOnOrigin(target, new URL(address))
    return isFollowed
      ? fetchText(target.href, init, options, redirects + 1)
      : Effect.succeed({
        ...answer,
        redirect: `, a redirect to ${target.origin}${target.pathname} that is not followed`
      })
  }))
}

/** Sends a request for a JSON document. Fails as `fetchText` does. */
export const fetchDocument = (
  address: string,
  init: RequestInit,
  options: FetchOptions
): Effect.Effect<Document, VerifierUnavailable> =>
  Effect.map(
    fetchText(address, init, options),
    ({ redirect, status, text }) => ({ status, redirect, json: parseJson(text) })
  )
