/**
 * Sends one request through an `Outbound`, within its bounds.
 */
import * as PrintableError from "@skein/protocol/PrintableError"
import { quote } from "@skein/protocol/Text"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { Outbound } from "../../shared/Outbound.ts"
import { readText } from "../../shared/web.ts"
import { isSecure } from "./urls.ts"

/** A request that has no answer, or none that may be read. The message names the origin and path, and no parameter. */
export class SendError extends PrintableError.tagged("SendError")<{
  /** Whether the URL may not be used at all. */
  readonly insecure: boolean
}> {}

/** Origin and path of a URL: its query may contain a secret. */
export const place = (url: URL): string => quote(`${url.origin}${url.pathname}`)

const failure = (message: string, insecure = false): SendError => new SendError({ message, insecure })

/** The code of a failed socket, which Node's `fetch` has in the cause: `ECONNREFUSED`. Other texts may quote a header. */
const codeOf = (error: unknown): string => {
  for (let each = error, depth = 0; each instanceof Error && depth < 4; each = each.cause, depth++) {
    const { code } = each as { readonly code?: unknown }
    if (typeof code === "string" && /^[A-Z][A-Z0-9_]{2,40}$/.test(code)) return ` (${code})`
    if (each.name === "AddressRefused") return ": its address is private (refusePrivateAddresses)"
  }
  return ""
}

/** The method, headers and body of a request. */
export interface Request {
  readonly method?: "GET" | "POST"
  readonly headers?: Record<string, string>
  readonly body?: string | undefined
}

/** An answer whose body was read. */
export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
}

/**
 * Sends a request as a promise, for a library that takes a `fetch`. Rejects with `SendError`. The time is not bounded
 * here: the effect around the library has the timeout.
 */
export const sendPromise = async (
  outbound: Outbound,
  url: URL,
  request: Request,
  signal: AbortSignal
): Promise<Answer> => {
  if (!isSecure(url)) throw failure(`${place(url)} is neither https nor a loopback address`, true)
  try {
    const response = await outbound.fetch(url.href, {
      method: request.method ?? "GET",
      headers: request.headers ?? {},
      ...(request.body === undefined ? {} : { body: request.body }),
      redirect: "manual",
      signal
    })
    // In a browser a redirect that is not followed has the status 0.
    const status = response.type === "opaqueredirect" ? 302 : response.status
    const { maxDocumentBytes } = outbound
    const text = await readText(
      response,
      maxDocumentBytes,
      () => failure(`The answer of ${place(url)} exceeds maxDocumentBytes (${maxDocumentBytes})`)
    )
    return { status, headers: response.headers, text }
  } catch (error) {
    if (error instanceof SendError) throw error
    throw failure(`${place(url)} cannot be reached${codeOf(error)}`)
  }
}

/** Bounds an exchange by `requestTimeout`. */
export const bounded = <A, E>(
  outbound: Outbound,
  url: URL,
  effect: Effect.Effect<A, E>
): Effect.Effect<A, E | SendError> =>
  Effect.timeoutOrElse(effect, {
    duration: outbound.requestTimeout,
    orElse: () =>
      Effect.fail(failure(
        `${place(url)} did not answer within requestTimeout (${Duration.format(outbound.requestTimeout)})`
      ))
  })

/** Sends a request and reads its answer. */
export const send = (outbound: Outbound, url: URL, request: Request = {}): Effect.Effect<Answer, SendError> =>
  bounded(
    outbound,
    url,
    Effect.tryPromise({
      try: (signal) => sendPromise(outbound, url, request, signal),
      catch: (error) => error instanceof SendError ? error : failure(`${place(url)} cannot be reached`)
    })
  )
