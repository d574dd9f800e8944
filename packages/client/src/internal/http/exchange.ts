/**
 * One HTTP exchange of a transport: adds the headers of the options and of the credentials, reports refusals to the
 * credentials, and follows redirects.
 */
import type { Headers } from "@skein/runtime/Connection"
import { TransportError } from "@skein/runtime/TransportError"
import * as Cause from "effect/Cause"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"
import type { Challenge, Credentials } from "../../Credentials.ts"
import { notDelivered } from "../errors.ts"
import { customHeaders, invalidHeader, type Resolved } from "./settings.ts"
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
  if (redirects >= maxRedirects) return notDelivered(`${where} more than ${maxRedirects} times (maxRedirects)`, status)
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

/** Makes the HTTP exchanges of one connection. It is its base class, which saves an object for each idle client. */
export class Exchanger {
  readonly settings: Resolved
  protected readonly client: HttpClient
  // How often the credentials were replaced. The lock ensures that one refusal at a time is reported to them.
  #renewals = 0
  #challengeLock: Semaphore.Semaphore | undefined = undefined

  constructor(client: HttpClient, settings: Resolved) {
    this.client = client
    this.settings = settings
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
      if (status >= 300 && status < 400) {
        const url = redirectTarget(request, reply, redirects, maxRedirects)
        if (url instanceof TransportError) return Effect.fail(url)
        return Effect.succeed(new Repeat({ request: { ...request, url }, redirects: redirects + 1, challenges }))
      }
      if ((status === 401 || status === 403) && credentials !== undefined && challenges < maxChallenges) {
        const attempt = challenges + 1
        const wwwAuthenticate = reply.header("www-authenticate")
        const challenge = { status, wwwAuthenticate, url: request.url, attempt } as const
        return Effect.flatMap(
          this.#answerChallenge(credentials, renewals, challenge),
          (again): Effect.Effect<A | Repeat, E> =>
            again ? Effect.succeed(new Repeat({ request, redirects, challenges: attempt })) : use(reply)
        )
      }
      return use(reply)
    }
    const { client } = this
    const ready = this.#withHeaders(request)
    const made = Effect.isEffect(ready)
      ? Effect.flatMap(ready, (request) => client.exchange(request, (reply) => onResponse(reply, request.headers)))
      : client.exchange(ready, fixed === undefined ? onResponse : (reply) => onResponse(reply, ready.headers))
    return Effect.flatMap(made, (done) =>
      done instanceof Repeat
        ? this.exchange(done.request, use, done.redirects, done.challenges)
        : Effect.succeed(done))
  }

  /**
   * Reports a refusal to the credentials and returns whether to send the request again. Refusals are reported one at a
   * time. If the credentials were replaced since the request was sent, there is no report.
   */
  #answerChallenge(
    credentials: Credentials["Service"],
    renewals: number,
    challenge: Challenge
  ): Effect.Effect<boolean> {
    return (this.#challengeLock ??= Semaphore.makeUnsafe(1)).withPermit(Effect.suspend(() =>
      this.#renewals !== renewals
        ? Effect.succeed(true)
        : Effect.suspend(() => credentials.refused(challenge)).pipe(
          Effect.tap((again) => Effect.sync(() => again && this.#renewals++)),
          Effect.catchCause(() => Effect.as(Effect.logWarning("credentials failed to handle a refused request"), false))
        )
    ))
  }

  /** Adds the headers of the options and of the credentials to a request. */
  #withHeaders(request: HttpRequest): Effect.Effect<HttpRequest, TransportError> | HttpRequest {
    const { credentials, dynamic, headers: fixed } = this.settings
    const base = fixed === undefined ? request : { ...request, headers: { ...fixed, ...request.headers } }
    if (dynamic === undefined && credentials === undefined) return base
    const more = dynamic === undefined ? Effect.succeed(base) : addHeaders(base, "The headers", dynamic)
    if (credentials === undefined) return more
    const { method, url } = request
    const own = Effect.suspend(() => credentials.headers({ method, url }))
    // Added last: the headers of the credentials take precedence over those of the transport.
    return Effect.flatMap(more, (request) => addHeaders(request, "The credentials", own))
  }
}
