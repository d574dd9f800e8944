/**
 * The HTTP client over `fetch`.
 */
import { ConnectionLost, MessageRejected, OpenFailed, TransportError } from "@skein/runtime/TransportError"
import * as Effect from "effect/Effect"
import type { HttpClient, HttpRequest, HttpResponse } from "./httpClient.ts"

// The error codes of Node for a connection that could not be made. Other platforms give no code.
const unreachableCodes = new Set([
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "UND_ERR_CONNECT_TIMEOUT"
])

// The error codes of Node for a request that it does not send because of its headers.
const invalidRequestCodes = new Set(["UND_ERR_INVALID_ARG", "UND_ERR_NOT_SUPPORTED"])

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
const notSent = ({ url }: HttpRequest, why: string, cause: unknown): TransportError => {
  const message = `The request to ${url.origin} cannot be made by fetch: ${why}`
  return new TransportError({ reason: new OpenFailed({ message, cause }), undelivered: true })
}

const lost = (request: HttpRequest, cause: unknown): TransportError => {
  const { origin } = request.url
  const code = memberOf(memberOf(cause, "cause"), "code")
  if (messageOf(cause) === "bad port") {
    const why =
      `it never asks port ${request.url.port} (bad port). NodeHttp.transport does; or let the server listen on another one`
    return notSent(request, why, cause)
  }
  if (typeof code === "string" && invalidRequestCodes.has(code)) return notSent(request, messageOf(cause), cause)
  if (typeof code === "string" && unreachableCodes.has(code)) {
    const message = `${origin} cannot be reached: ${memberOf(memberOf(cause, "cause"), "message") || code}`
    return new TransportError({ reason: new OpenFailed({ message, cause }), undelivered: true })
  }
  const page = pageOrigin()
  if (page === undefined || memberOf(cause, "name") !== "TypeError" || memberOf(cause, "cause") !== undefined) {
    return broken(`The request to ${origin} failed: ${messageOf(cause)}`, cause)
  }
  // A page cannot see either whether the server has begun to handle the request, so the error is not `undelivered`.
  const message =
    `${origin} cannot be asked: ${messageOf(cause)}. A page is not told why. Perhaps nobody listens there; or the ` +
    `server does not let pages of ${page} in, or read its answers (CORS); or this page may not ask it (https: asks http:, ` +
    "Content-Security-Policy, the local network)"
  return new TransportError({ reason: new OpenFailed({ message, cause }) })
}

const broken = (message: string, cause?: unknown): TransportError =>
  new TransportError({ reason: new ConnectionLost({ message, cause }) })

const interrupted = (cause: unknown): TransportError => broken(`The response broke off: ${messageOf(cause)}`, cause)

const tooLong = (maxBytes: number): TransportError =>
  broken(`The response has more than ${maxBytes} bytes (maxMessageBytes)`)

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
    if (known && Number(length) > maxBytes) return Effect.fail(tooLong(maxBytes))
    if (!known) return this.#gather(maxBytes)
    return Effect.callback((resume) => {
      this.#response.text().then(
        (text) => resume(this.#whole(text)),
        (cause: unknown) => resume(Effect.fail(interrupted(cause)))
      )
    })
  }

  #whole(text: string): Effect.Effect<string> {
    this.isRead = true
    return Effect.succeed(text)
  }

  #gather(maxBytes: number): Effect.Effect<string, TransportError> {
    const texts: Array<string> = []
    let bytes = 0
    const read = this.#read((text, size) => {
      bytes += size
      if (bytes > maxBytes) return tooLong(maxBytes)
      texts.push(text)
      return undefined
    })
    return Effect.map(read, () => texts.join(""))
  }

  pieces(onText: (text: string) => TransportError | undefined): Effect.Effect<void, TransportError> {
    return this.#read(onText)
  }

  #read(onText: (text: string, bytes: number) => TransportError | undefined): Effect.Effect<void, TransportError> {
    return Effect.callback((resume) => {
      const { body } = this.#response
      if (body === null) return resume(Effect.void)
      const reader = body.getReader()
      const decoder = new TextDecoder()
      const fail = (cause: unknown) => resume(Effect.fail(interrupted(cause)))
      const next = () => void reader.read().then(take, fail)
      const take = ({ done, value }: { readonly done: boolean; readonly value?: Uint8Array | undefined }): void => {
        if (this.#aborted.aborted) return
        try {
          const text = done ? decoder.decode() : decoder.decode(value, { stream: true })
          const refused = text === "" && done ? undefined : onText(text, value?.byteLength ?? 0)
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

const responseOf = (
  { url }: HttpRequest,
  response: Response,
  aborted: AbortSignal
): Effect.Effect<FetchResponse, TransportError> => {
  if (response.type !== "opaqueredirect") return Effect.succeed(new FetchResponse(response, aborted))
  // A page cannot see the target of a redirect.
  const message = `${url.origin} redirects, and where to a page is not told: use the address that it leads to`
  return Effect.fail(new TransportError({ reason: new MessageRejected({ message }), undelivered: true }))
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
        let asked: Promise<Response>
        try {
          asked = fetch(request.url, {
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
        asked.then(
          (response) => resume(responseOf(request, response, controller.signal)),
          (cause: unknown) => resume(Effect.fail(lost(request, cause)))
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
