/**
 * HTTP by `fetch`.
 */
import { ConnectionLost, MessageRejected, OpenFailed, TransportError } from "@skein/runtime/TransportError"
import * as Effect from "effect/Effect"
import type { HttpClient, HttpRequest, HttpResponse } from "./httpClient.ts"

// How Node names what happens before there is a connection. Elsewhere nothing is told.
const unreachableCodes = new Set([
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "UND_ERR_CONNECT_TIMEOUT"
])

// And how a header that it does not send.
const invalidRequestCodes = new Set(["UND_ERR_INVALID_ARG", "UND_ERR_NOT_SUPPORTED"])

/** Where the page is from, or the worker of a page, that this runs in. Elsewhere there is none. */
const pageOrigin = (): string | undefined => {
  const { location } = globalThis as { readonly location?: { readonly origin?: unknown } | undefined }
  return typeof location?.origin === "string" ? location.origin : undefined
}

// An error may be of another realm, where `instanceof` does not know it.
const memberOf = (error: unknown, name: string): unknown =>
  typeof error === "object" && error !== null ? (error as { readonly [name: string]: unknown })[name] : undefined

const messageOf = (error: unknown): string => {
  const messages = [memberOf(memberOf(error, "cause"), "message"), memberOf(error, "message"), error]
  return String(messages.find((message) => message !== undefined && message !== ""))
}

/** `fetch` will not make the request at all, whoever listens there. */
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
  // Whether the server has begun to handle it is not told either.
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

/** A response, and whether anything of it is left. */
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
    // What the length says counts where the body comes as it is sent; of another origin's response a page cannot see that.
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
  // A page may not see where a redirect leads.
  const message = `${url.origin} redirects, and where to a page is not told: use the address that it leads to`
  return Effect.fail(new TransportError({ reason: new MessageRejected({ message }), undelivered: true }))
}

/**
 * What a page says besides. Browsers keep what comes on a stream, and when that is given up Chromium sends a DELETE to the same address
 * a second time; so they shall not. And the end of a session gets out though the page is left. Where there are no pages there is no
 * need of either, and not everywhere it may be said.
 */
const pageOptions = { GET: { cache: "no-store" }, POST: undefined, DELETE: { keepalive: true } } as const

/** A wire over a `fetch`. It has no connections of its own to close. */
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
