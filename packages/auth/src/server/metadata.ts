/**
 * The metadata of a protected resource, and the pages of a protection (RFC 9728, 2 and 3).
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type { HttpAnswer, PageRequest } from "@skein/server/Http"
import { isSafe } from "../shared/web.ts"
import { findMetadata } from "./tokens/discovery.ts"
import { checkAddress, type FetchOptions } from "./tokens/fetchDocument.ts"
import { SharedEffects } from "./tokens/sharedEffects.ts"
import type { VerifierUnavailable } from "./tokens/verifiedToken.ts"

const wellKnown = "/.well-known/oauth-protected-resource"

// The parts of the resource as it was written: a `URL` would normalize them.
const parts = /^(https?:\/\/[^/?#]+)([^?#]*)(\?[^#]*)?$/i

/** Where the metadata of a resource is. */
export interface MetadataAddress {
  /** The address in challenges. */
  readonly url: string
  /** The paths of the page: the one of the address, and the root for clients that look there. */
  readonly paths: ReadonlyArray<string>
}

/**
 * The address of the metadata: the well-known path is inserted between the host and the path of the resource, "by
 * inserting [it] between the host component and the path and/or query components" (RFC 9728, 3.1). Throws if the resource
 * is not an https address without a fragment (RFC 9728, 1.2). Its metadata and its tokens could be read and replaced on
 * the way.
 */
export const addressOf = (resource: string, allowHttp: boolean): MetadataAddress => {
  const [, origin, path = "", query = ""] = parts.exec(resource) ?? []
  const url = URL.parse(resource)
  if (origin === undefined || url === null) {
    throw new Error(`Protect: the resource is not an http or https address without a fragment: ${resource}`)
  }
  if (!isSafe(url, allowHttp)) {
    throw new Error(`Protect: the resource must be an https address, or http on loopback (see allowHttp): ${resource}`)
  }
  // "Any terminating slash (/) following the host component MUST be removed" (RFC 9728, 3.1).
  const at = path === "/" ? wellKnown : `${wellKnown}${path}`
  return { url: `${origin}${at}${query}`, paths: [...new Set([at, wellKnown])] }
}

/** Answers a request for a page: `GET`, or `HEAD`, whose body the adapter leaves out. */
export type AnswerPage = (answer: HttpAnswer) => void

const shared = { "access-control-allow-origin": "*" }

/** The headers of metadata. Web pages of every origin may read it. */
const metadataHeaders = {
  ...shared,
  "content-type": "application/json",
  "cache-control": "public, max-age=300"
}

/**
 * Makes the function that answers requests for pages, each at its path. "A successful response MUST use the 200 OK HTTP
 * status code and return a JSON object using the application/json content type" (RFC 9728, 3.2).
 */
export const pagesOf =
  (pages: ReadonlyMap<string, AnswerPage>) => ({ method, path }: PageRequest, answer: HttpAnswer): boolean => {
    const page = pages.get(path)
    if (page === undefined) return false
    if (method === "GET" || method === "HEAD") page(answer)
    else if (method === "OPTIONS") {
      const allowed = {
        ...shared,
        "access-control-allow-methods": "GET, HEAD",
        "access-control-allow-headers": "*",
        "access-control-max-age": "7200"
      }
      answer.reply(204, allowed, "")
    } else answer.reply(405, { ...shared, allow: "GET, HEAD, OPTIONS" }, "")
    return true
  }

/** The page of a document that does not change. */
export const pageOf = (document: object): AnswerPage => {
  const body = JSON.stringify(document)
  return (answer) => answer.reply(200, metadataHeaders, body)
}

/** Options of the metadata of the authorization server at the origin of the resource. */
export interface IssuerMetadataOptions extends FetchOptions {
  /** The authorization server: the first issuer of the verifier by default. */
  readonly issuer?: string | undefined
}

/** The path of the metadata. */
export const issuerMetadataPath = "/.well-known/oauth-authorization-server"

/** The metadata is used for this time before it is fetched again. While the issuer is unavailable the last is used. */
const refreshInterval = 600_000

// After a failure requests are answered without another attempt for this time.
const retryAfterSeconds = 5

/**
 * The text of the metadata of an issuer; undefined if there is none now. It is fetched when a client requests it, once for
 * all clients.
 */
const findIssuerMetadata = (issuer: string, options: FetchOptions): Effect.Effect<string | undefined> => {
  const fetching = new SharedEffects<string, VerifierUnavailable>()
  let body: string | undefined
  let fetchedAt = -Infinity
  let nextFetch = -Infinity
  const fetch = Effect.clockWith((clock) =>
    findMetadata(issuer, "members", JSON.stringify, options).pipe(
      Effect.tap((found) =>
        Effect.sync(() => {
          body = found
          fetchedAt = clock.currentTimeMillisUnsafe()
        })
      ),
      Effect.tapError((failure) =>
        Effect.suspend(() => {
          nextFetch = clock.currentTimeMillisUnsafe() + retryAfterSeconds * 1_000
          return Effect.logWarning("failed to fetch the metadata of an authorization server", failure)
        })
      )
    )
  )
  return Effect.flatMap(
    Clock.currentTimeMillis,
    (now) =>
      now - fetchedAt < refreshInterval || (now < nextFetch && fetching.size === 0)
        ? Effect.succeed(body)
        : Effect.catch(fetching.run("", fetch), () => Effect.succeed(body))
  )
}

/**
 * Makes the page of the metadata of the authorization server, at the origin of the resource. A client of 2025-03-26 knows
 * no metadata of resources. It requests `/.well-known/oauth-authorization-server` at the origin of the MCP server
 * (2025-03-26, authorization, 2.3), and without it the endpoints `/authorize` and `/token` there.
 *
 * The document has the members of the issuer's own, without a change: `issuer` is the authorization server. A client of a
 * later revision that looks here compares it with the origin, and does not use it (RFC 8414, 3.3).
 */
export const issuerMetadataPage = (issuer: string, options: IssuerMetadataOptions): Effect.Effect<AnswerPage> =>
  Effect.gen(function*() {
    checkAddress("issuer", issuer, options)
    const run = Effect.runForkWith(yield* Effect.context<never>())
    const find = findIssuerMetadata(issuer, options)
    const unavailable = { ...shared, "retry-after": String(retryAfterSeconds) }
    return (answer) =>
      void run(
        Effect.map(find, (body) =>
          body === undefined ? answer.reply(503, unavailable, "") : answer.reply(200, metadataHeaders, body))
      )
  })
