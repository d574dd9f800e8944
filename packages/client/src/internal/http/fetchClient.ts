/**
 * The HTTP client over `fetch`.
 */
import { ByteBuffer } from "@skein/runtime/ByteBuffer"
import type { TransportError } from "@skein/runtime/TransportError"
import * as Effect from "effect/Effect"
import { connectionLost, notDelivered, openFailed } from "../base/errors.ts"
import { bodyTooLong, type HttpClient, type HttpRequest, type HttpResponse, withoutBom } from "./httpClient.ts"

// The error codes of Node for a connection that could not be made. Other platforms give no code.
const unreachableCodes: ReadonlySet<unknown> = new Set(
  ["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH", "UND_ERR_CONNECT_TIMEOUT"]
)

// The error codes of Node for a request that it does not send because of its headers.
const invalidRequestCodes: ReadonlySet<unknown> = new Set(["UND_ERR_INVALID_ARG", "UND_ERR_NOT_SUPPORTED"])

/** The origin of the page or of the page's worker that this code runs in. `undefined` outside browsers. */
const pageOrigin = (): string | undefined => {
  const { location } = globalThis as { readonly location?: { readonly origin?: unknown } | undefined }
  return typeof location?.origin === "string" ? location.origin : undefined
}

// The error may come from another realm, where `instanceof` does not recognize it.
const memberOf = (error: unknown, name: string): unknown =>
  typeof error === "object" && error !== null ? (error as { readonly [name: string]: unknown })[name] : undefined

const messageOf = (error: unknown): string => {
  const messages = [memberOf(memberOf(error, "cause"), "message"), memberOf(error, "message"), error]
  return String(messages.find((message) => message !== undefined && message !== ""))
}

/** The error of a request that `fetch` refuses to send, whether or not a server listens there. */
const notSent = ({ url }: HttpRequest, why: string, cause: unknown): TransportError =>
  openFailed(`fetch cannot send the request to ${url.origin}: ${why}`, cause, true)

const failureOf = (request: HttpRequest, cause: unknown): TransportError => {
  const { origin, port } = request.url
  const reason = memberOf(cause, "cause")
  const code = memberOf(reason, "code")
  const message = messageOf(cause)
  if (message === "bad port") {
    return notSent(request, `port ${port} is blocked (bad port); use NodeHttp.transport or another port`, cause)
  }
  if (invalidRequestCodes.has(code)) return notSent(request, message, cause)
  if (unreachableCodes.has(code)) {
    return openFailed(`${origin} cannot be reached: ${memberOf(reason, "message") || code}`, cause, true)
  }
  const page = pageOrigin()
  if (page === undefined || memberOf(cause, "name") !== "TypeError" || reason !== undefined) {
    return connectionLost(`The request to ${origin} failed: ${message}`, cause)
  }
  // A page cannot see either whether the server has begun to handle the request, so the error is not `undelivered`.
  return openFailed(
    `The request to ${origin} failed: ${message}. Browsers do not report the reason. Possible reasons: no server ` +
      `listens there; the server does not allow pages of ${page} (CORS); the browser does not allow this page to send ` +
      "the request (mixed content, Content-Security-Policy, access to the local network)",
    cause
  )
}

const interrupted = (cause: unknown): TransportError =>
  connectionLost(`The response broke off: ${messageOf(cause)}`, cause)

// A body of at most this many bytes is read with one call. Node stores its chunks separately, and each may be one byte.
const maxAtOnce = 65_536

/** A response of `fetch`. An exchange whose body was not read to its end is aborted. */
class FetchResponse implements HttpResponse {
  readonly status: number
  readonly #response: Response
  readonly #aborted: AbortSignal
  isRead = false

  constructor(response: Response, aborted: AbortSignal) {
    this.status = response.status
    this.#response = response
    this.#aborted = aborted
    this.isRead = response.body === null
  }

  header(name: string): string | undefined {
    return this.#response.headers.get(name) ?? undefined
  }

  text(maxBytes: number): Effect.Effect<string, TransportError> {
    const { headers, type } = this.#response
    const length = headers.get("content-length")
    // `Content-Length` is the length of the received body only without a content encoding. A page cannot see the
    // encoding of a response from another origin.
    const known = length !== null && type !== "cors" && headers.get("content-encoding") === null
    if (known && Number(length) > maxBytes) return Effect.fail(bodyTooLong(maxBytes))
    if (!known || Number(length) > maxAtOnce) return this.#gather(maxBytes)
    return Effect.callback((resume) => {
      this.#response.text().then(
        (text) =>
          resume(Effect.sync(() => {
            this.isRead = true
            return text
          })),
        (cause: unknown) => resume(Effect.fail(interrupted(cause)))
      )
    })
  }

  #gather(maxBytes: number): Effect.Effect<string, TransportError> {
    const buffer = new ByteBuffer()
    const read = this.chunks((chunk) => {
      if (buffer.size + chunk.length > maxBytes) return bodyTooLong(maxBytes)
      buffer.add(chunk, true)
      return undefined
    })
    return Effect.map(read, () => withoutBom(buffer.text))
  }

  chunks(onChunk: (chunk: Uint8Array) => TransportError | undefined): Effect.Effect<void, TransportError> {
    return Effect.callback((resume) => {
      const { body } = this.#response
      if (body === null) return resume(Effect.void)
      const reader = body.getReader()
      const fail = (cause: unknown) => resume(Effect.fail(interrupted(cause)))
      const next = () => void reader.read().then(take, fail)
      const take = ({ done, value }: { readonly done: boolean; readonly value?: Uint8Array | undefined }): void => {
        if (this.#aborted.aborted) return
        try {
          const refused = value === undefined ? undefined : onChunk(value)
          if (refused !== undefined) return resume(Effect.fail(refused))
        } catch (defect) {
          return resume(Effect.die(defect))
        }
        if (!done) return next()
        this.isRead = true
        resume(Effect.void)
      }
      next()
    })
  }
}

/**
 * Further options for requests from a page. They are not needed elsewhere, and not supported everywhere.
 *
 * - `no-store`: browsers otherwise cache the body of a stream, and when the stream is aborted, Chromium sends a DELETE
 *   request to the same address a second time.
 * - `keepalive`: the DELETE request of a session is sent even if the user leaves the page.
 */
const pageOptions = { GET: { cache: "no-store" }, POST: undefined, DELETE: { keepalive: true } } as const

/** Makes an HTTP client over a `fetch` function. It has no connections of its own, so `close` does nothing. */
export const make = (fetch: typeof globalThis.fetch): HttpClient => ({
  exchange: (request, use) =>
    Effect.suspend(() => {
      const controller = new AbortController()
      let taken: FetchResponse | undefined
      const received = Effect.callback<FetchResponse, TransportError>((resume) => {
        let response: Promise<Response>
        try {
          response = fetch(request.url, {
            method: request.method,
            headers: request.headers,
            body: request.body ?? null,
            redirect: "manual",
            signal: controller.signal,
            ...(pageOrigin() === undefined ? undefined : pageOptions[request.method])
          })
        } catch (cause) {
          return resume(Effect.fail(notSent(request, messageOf(cause), cause)))
        }
        response.then(
          (response) =>
            resume(
              response.type === "opaqueredirect"
                // A page cannot see the target of a redirect.
                ? Effect.fail(notDelivered(
                  `${request.url.origin} redirects, and a page cannot see where: use the URL that it redirects to`
                ))
                : Effect.succeed(new FetchResponse(response, controller.signal))
            ),
          (cause: unknown) => resume(Effect.fail(failureOf(request, cause)))
        )
      })
      const used = Effect.flatMap(received, (reply) => use(taken = reply))
      return Effect.onExitPrimitive(used, () => {
        if (taken?.isRead !== true) controller.abort()
        return undefined
      })
    }),
  close: Effect.void
})
