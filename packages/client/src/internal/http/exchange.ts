/**
 * One HTTP exchange of a transport: adds the headers of the options and of the credentials, passes responses and
 * refusals to the credentials, and follows redirects.
 */
import type { Headers } from "@skein/runtime/Connection"
import { TransportError } from "@skein/runtime/TransportError"
import * as Cause from "effect/Cause"
import type * as Context from "effect/Context"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import type { Challenge, CredentialsReply, CredentialsRequest } from "../../Credentials.ts"
import type { CallClock } from "../base/callClock.ts"
import { notDelivered } from "../base/errors.ts"
import { type Outcome, release, report, type ReportOwner } from "./challenges.ts"
import { customHeaders, headersConflict, invalidHeader, type Resolved } from "./settings.ts"
import type { HttpClient, HttpRequest, HttpResponse } from "./httpClient.ts"

/** The request must be sent again, after a redirect or with other credentials. */
class Repeat extends Data.Class<{
  readonly request: HttpRequest
  readonly redirects: number
  readonly challenges: number
}> {}

/**
 * Adds the headers that the effect of the options or of the credentials returns, without the headers of the protocol. A
 * header that was added earlier is replaced. The failure of the effect may quote a secret, so it is the cause of the
 * error but not part of the message.
 */
const addHeaders = (
  request: HttpRequest,
  what: string,
  headers: Effect.Effect<Headers, unknown>
): Effect.Effect<HttpRequest, TransportError> =>
  Effect.flatMap(
    Effect.catchCause(
      headers,
      (cause) => Effect.fail(notDelivered(`${what} could not be obtained`, undefined, Cause.squash(cause)))
    ),
    (headers) => {
      const kept = customHeaders(headers)
      const wrong = invalidHeader(kept)
      return wrong === undefined
        ? Effect.succeed({ ...request, headers: { ...request.headers, ...kept } })
        : Effect.fail(notDelivered(`The header ${JSON.stringify(wrong)} cannot be sent`))
    }
  )

/**
 * The target of a redirect, or an error if it must not be followed: "credentials must not follow to another origin".
 */
const redirectTarget = (
  request: HttpRequest,
  reply: HttpResponse,
  redirects: number,
  maxRedirects: number
): URL | TransportError => {
  const { status } = reply
  const location = reply.header("location")
  const where = `${request.url.origin} redirects (${status})`
  if (status !== 307 && status !== 308) return notDelivered(`${where}; only 307 and 308 are followed`, status)
  if (redirects >= maxRedirects) return notDelivered(`${where} more than ${maxRedirects} times`, status)
  const url = location === undefined ? null : URL.parse(location, request.url.href)
  if (url === null) return notDelivered(`${where} without a valid Location header`, status)
  // The origin of a `blob:` URL is that of the URL in it, so the schemes are compared as well.
  if (url.origin !== request.url.origin || url.protocol !== request.url.protocol) {
    return notDelivered(`${where} to another origin`, status)
  }
  if (url.username !== "" || url.password !== "") {
    return notDelivered(`${where} to a URL with a user name or a password`, status)
  }
  url.hash = ""
  return url
}

/** The report of a refused request. Its secret is private, so that a log of the object does not contain it. */
class RefusedRequest implements Challenge {
  readonly status: 401 | 403
  readonly wwwAuthenticate: string | undefined
  readonly url: URL
  readonly server: URL
  readonly attempt: number
  readonly #reply: HttpResponse

  constructor(reply: HttpResponse, status: 401 | 403, url: URL, server: URL, attempt: number) {
    this.#reply = reply
    this.status = status
    this.wwwAuthenticate = reply.header("www-authenticate")
    this.url = url
    this.server = server
    this.attempt = attempt
  }

  get authorization(): string | undefined {
    return this.#reply.sentHeaders?.["authorization"]
  }

  get header(): (name: string) => string | undefined {
    return (name) => this.#reply.header(name.toLowerCase())
  }
}

const replyOf = (url: URL, server: URL, reply: HttpResponse): CredentialsReply => ({
  url,
  server,
  status: reply.status,
  header: (name) => reply.header(name.toLowerCase())
})

/** Makes the HTTP exchanges of one connection. */
export class Exchanger implements ReportOwner {
  readonly #client: HttpClient
  readonly settings: Resolved
  readonly callClock: CallClock
  readonly #context: Context.Context<never>
  // How often the credentials were renewed.
  #renewals = 0

  /** A report to the credentials runs with the services of the context. */
  constructor(client: HttpClient, settings: Resolved, callClock: CallClock, context: Context.Context<never>) {
    this.#client = client
    this.settings = settings
    this.callClock = callClock
    this.#context = context
  }

  runDetached<A>(effect: Effect.Effect<A>): Fiber.Fiber<A> {
    return Effect.runForkWith(this.#context)(effect)
  }

  renewed(): void {
    this.#renewals++
  }

  /** The connection has ended: its requests no longer wait for credentials. */
  release(isClosedByUs: boolean): void {
    const { credentials } = this.settings
    if (credentials !== undefined) release(this, credentials, isClosedByUs)
  }

  /**
   * Sends a request. `use` receives the first response that is neither a redirect nor a refusal after which the
   * credentials let the request be sent again.
   */
  exchange<A, E>(
    request: HttpRequest,
    use: (reply: HttpResponse) => Effect.Effect<A, E>,
    redirects = 0,
    challenges = 0
  ): Effect.Effect<A, E | TransportError> {
    const { credentials, headers: fixed, maxChallenges, maxRedirects } = this.settings
    const renewals = this.#renewals
    const onResponse = (reply: HttpResponse, sent?: Headers): Effect.Effect<A | Repeat, E | TransportError> => {
      const { status } = reply
      if (sent !== undefined) reply.sentHeaders = sent
      if (credentials?.replied !== undefined) credentials.replied(replyOf(request.url, this.settings.url, reply))
      if (status >= 300 && status < 400) {
        const url = redirectTarget(request, reply, redirects, maxRedirects)
        if (url instanceof TransportError) return Effect.fail(url)
        return Effect.succeed(new Repeat({ request: { ...request, url }, redirects: redirects + 1, challenges }))
      }
      // A DELETE ends the session. It does not start a sign-in.
      const isReported = credentials !== undefined && request.method !== "DELETE" && challenges < maxChallenges
      if (isReported && (status === 401 || status === 403)) {
        const attempt = challenges + 1
        const challenge = new RefusedRequest(reply, status, request.url, this.settings.url, attempt)
        const reported = report(this, credentials, challenge, () => this.#renewals !== renewals)
        return Effect.flatMap(
          this.callClock.stoppedDuring(reported),
          ({ failure, isRenewed }: Outcome): Effect.Effect<A | Repeat, E> => {
            if (isRenewed) return Effect.succeed(new Repeat({ request, redirects, challenges: attempt }))
            reply.credentialsFailure = failure
            return use(reply)
          }
        )
      }
      return use(reply)
    }
    const client = this.#client
    const ready = this.#withHeaders(request)
    const made = Effect.isEffect(ready)
      ? Effect.flatMap(ready, (request) => client.exchange(request, (reply) => onResponse(reply, request.headers)))
      : client.exchange(ready, fixed === undefined ? onResponse : (reply) => onResponse(reply, ready.headers))
    return Effect.flatMap(made, (done) =>
      done instanceof Repeat
        ? this.exchange(done.request, use, done.redirects, done.challenges)
        : Effect.succeed(done))
  }

  /** The headers of the credentials. While they are being obtained, the timeouts of calls stand still. */
  #credentialsHeaders(request: CredentialsRequest): Effect.Effect<Headers, unknown> {
    const { credentials, credentialsTimeout } = this.settings
    return Effect.suspend(() => {
      const headers = credentials!.headers(request)
      if (Exit.isExit(headers)) return headers
      const orElse = () => Effect.fail(notDelivered(`No headers within ${credentialsTimeout} ms`))
      return this.callClock.stoppedDuring(
        Effect.timeoutOrElse(headers, { duration: credentialsTimeout, orElse })
      )
    })
  }

  /** Adds the headers of the options and of the credentials to a request. */
  #withHeaders(request: HttpRequest): Effect.Effect<HttpRequest, TransportError> | HttpRequest {
    const { credentials, dynamic, headers: fixed } = this.settings
    const base = fixed === undefined ? request : { ...request, headers: { ...fixed, ...request.headers } }
    if (dynamic === undefined && credentials === undefined) return base
    const more = dynamic === undefined ? Effect.succeed(base) : addHeaders(base, "The headers", dynamic)
    if (credentials === undefined) return more
    const { method, url } = request
    const own = this.#credentialsHeaders({ method, url, server: this.settings.url })
    // Added last: the headers of the credentials take precedence over those of the transport.
    return Effect.flatMap(more, (request) =>
      "authorization" in request.headers
        ? Effect.fail(notDelivered(headersConflict))
        : addHeaders(request, "The credentials", own))
  }
}
