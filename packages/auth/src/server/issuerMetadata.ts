/**
 * The metadata of the authorization server, at the origin of the resource.
 *
 * A client of 2025-03-26 knows no metadata of resources. It requests `/.well-known/oauth-authorization-server` at the
 * origin of the MCP server (2025-03-26, authorization, 2.3), and without it the endpoints `/authorize` and `/token` there.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { findMetadata } from "./tokens/discovery.ts"
import { checkAddress, type FetchOptions } from "./tokens/fetchDocument.ts"
import { type AnswerPage, metadataHeaders } from "./metadata.ts"
import { SharedEffects } from "./tokens/sharedEffects.ts"
import type { VerifierUnavailable } from "./tokens/verifiedToken.ts"

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

interface Found {
  readonly body: string
  readonly fetchedAt: number
}

/** The metadata of one issuer. It is fetched when a client requests it, once for all clients. */
class IssuerMetadata {
  readonly #issuer: string
  readonly #options: FetchOptions
  readonly #fetching = new SharedEffects<string, VerifierUnavailable>()
  #found: Found | undefined
  #nextFetch = -Infinity

  constructor(issuer: string, options: IssuerMetadataOptions) {
    checkAddress("issuer", issuer, options)
    this.#issuer = issuer
    this.#options = options
  }

  /** The text of the document. Undefined if there is none now. */
  readonly find: Effect.Effect<string | undefined> = Effect.suspend(() =>
    Effect.flatMap(Clock.currentTimeMillis, (now) => {
      const found = this.#found
      if (found !== undefined && now - found.fetchedAt < refreshInterval) return Effect.succeed(found.body)
      if (now < this.#nextFetch && this.#fetching.size === 0) return Effect.succeed(found?.body)
      return Effect.catch(this.#fetching.run("", this.#fetch), () => Effect.succeed(found?.body))
    })
  )

  readonly #fetch: Effect.Effect<string, VerifierUnavailable> = Effect.suspend(() =>
    Effect.clockWith((clock) =>
      findMetadata(this.#issuer, "members", JSON.stringify, this.#options).pipe(
        Effect.tap((body) =>
          Effect.sync(() => void (this.#found = { body, fetchedAt: clock.currentTimeMillisUnsafe() }))
        ),
        Effect.tapError((failure) =>
          Effect.suspend(() => {
            this.#nextFetch = clock.currentTimeMillisUnsafe() + retryAfterSeconds * 1_000
            return Effect.logWarning("failed to fetch the metadata of an authorization server", failure)
          })
        )
      )
    )
  )
}

/**
 * Makes the page. Its document has the members of the issuer's own, without a change: `issuer` is the authorization
 * server. A client of a later revision that looks here compares it with the origin, and does not use it (RFC 8414, 3.3).
 */
export const issuerMetadataPage = (
  issuer: string,
  options: IssuerMetadataOptions
): Effect.Effect<AnswerPage> =>
  Effect.gen(function*() {
    const run = Effect.runForkWith(yield* Effect.context<never>())
    const { find } = new IssuerMetadata(issuer, options)
    const headers = metadataHeaders
    const unavailable = { "access-control-allow-origin": "*", "retry-after": String(retryAfterSeconds) }
    return (answer) =>
      void run(Effect.map(find, (body) =>
        body === undefined ? answer.reply(503, unavailable, "") : answer.reply(200, headers, body)))
  })
