/**
 * Webhooks: requests with which another service reports events, such as a payment, signed as
 * [Standard Webhooks](https://www.standardwebhooks.com) describes. A route verifies the signature before its handler runs.
 *
 * The signature is `v1`: an HMAC-SHA256 of the id, the time and the body, with a secret that both sides have. The headers are
 * `webhook-id`, `webhook-timestamp` and `webhook-signature`. The response is
 *
 * - 204 after the handler, and 500 if it fails. Services then send the webhook again, for days.
 * - 401 if no signature matches a secret, or the time is further from the clock of the server than `tolerance`.
 * - 400 for a malformed header or a body that is not UTF-8, and 413 for a body above `maxBodyBytes`.
 *
 * A service sends a webhook again if it has not received the response. It then has the same id: use it as an idempotency key.
 *
 * @example
 * const Payments = Webhook.layer("/webhooks/payments", { secrets }, ({ body, id }) => recordPayment(id, JSON.parse(body)))
 * NodeHttp.runMain(Server, { routes: NodeRoutes.make(Payments) })
 */
import * as Clock from "effect/Clock"
import { timingSafeEqual } from "effect/crypto/Mac"
import * as Data from "effect/Data"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Base64 from "effect/encoding/Base64"
import * as HttpRouter from "effect/http/HttpRouter"
import { HttpServerRequest, toWeb } from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"

/** How webhooks are verified. */
export interface Options {
  /**
   * The secret that the service shows: `whsec_` and base64 of 24 to 64 bytes. Several ones while the service changes to a new
   * one. An invalid secret, and an empty list, are a defect at the start.
   */
  readonly secrets: Secret | ReadonlyArray<Secret>
  /** How far `webhook-timestamp` may be from the clock of the server, before and after: 5 minutes by default. */
  readonly tolerance?: Duration.Input | undefined
  /** Bytes of a body: 1,048,576 by default. */
  readonly maxBodyBytes?: number | undefined
}

/** A secret, as text or from a `Config`. */
export type Secret = string | Redacted.Redacted<string>

/** A webhook whose signature is verified. */
export interface Received {
  /** The id of the event that it reports, up to 512 characters. It is the same when the service sends it again. */
  readonly id: string
  /** When the service sent it, in milliseconds of Unix time. */
  readonly timestamp: number
  /** The body as text, mostly JSON. */
  readonly body: string
}

/** Bytes of a body, by default. */
const defaultMaxBodyBytes = 1_048_576

/** Characters of an id. */
const maxIdChars = 512

/** Bytes of an HMAC-SHA256. */
const signatureBytes = 32

class Refused extends Data.Error<{ readonly status: number; readonly message: string }> {}

const refuse = (status: number, message: string) => Effect.fail(new Refused({ status, message }))

/** The bytes of a secret. */
const bytesOf = (secret: Secret): Uint8Array<ArrayBuffer> => {
  const text = Redacted.isRedacted(secret) ? Redacted.value(secret) : secret
  const bytes = Base64.decode(text.startsWith("whsec_") ? text.slice("whsec_".length) : text)
  if (Result.isFailure(bytes) || bytes.success.length < 24 || bytes.success.length > 64) {
    throw new TypeError("a secret of Webhook must be \"whsec_\" and base64 of 24 to 64 bytes")
  }
  return new Uint8Array(bytes.success)
}

/** The bytes of a body, up to a bound. */
const readBody = async (request: Request, maxBytes: number): Promise<Uint8Array<ArrayBuffer> | undefined> => {
  if (Number(request.headers.get("content-length") ?? 0) > maxBytes) return undefined
  const chunks: Array<Uint8Array> = []
  let length = 0
  for await (const chunk of request.body ?? []) {
    length += chunk.length
    if (length > maxBytes) return undefined
    chunks.push(chunk)
  }
  const body = new Uint8Array(length)
  let at = 0
  for (const chunk of chunks) {
    body.set(chunk, at)
    at += chunk.length
  }
  return body
}

/** The signatures of a header: `v1,<base64>`, separated by spaces. Those of other versions are left out. */
const signaturesOf = (header: string): ReadonlyArray<Uint8Array> =>
  header.split(" ").flatMap((each) => {
    const bytes = each.startsWith("v1,") ? Base64.decode(each.slice("v1,".length)) : undefined
    return bytes !== undefined && Result.isSuccess(bytes) && bytes.success.length === signatureBytes
      ? [bytes.success]
      : []
  })

const utf8Encoder = new TextEncoder()

/** Verifies requests. Throws for invalid options. */
const verifier = (
  { maxBodyBytes = defaultMaxBodyBytes, secrets, tolerance = "5 minutes" }: Options
): (request: Request) => Effect.Effect<Received, Refused> => {
  const { subtle } = globalThis.crypto
  const raw = (typeof secrets === "string" || Redacted.isRedacted(secrets) ? [secrets] : secrets).map(bytesOf)
  if (raw.length === 0) throw new TypeError("Webhook needs at least one secret")
  const toleranceMs = Duration.toMillis(tolerance)
  const sign = async (secret: Uint8Array<ArrayBuffer>, content: Uint8Array<ArrayBuffer>) => {
    const key = await subtle.importKey("raw", secret, { name: "HMAC", hash: "SHA-256" }, false, ["sign"])
    return new Uint8Array(await subtle.sign("HMAC", key, content))
  }
  return Effect.fnUntraced(function*(request) {
    const id = request.headers.get("webhook-id") ?? ""
    const seconds = request.headers.get("webhook-timestamp") ?? ""
    // The parts of the signed content are separated by full stops.
    if (id === "" || id.length > maxIdChars || id.includes(".")) {
      return yield* refuse(400, `webhook-id must have 1 to ${maxIdChars} characters, and no full stop`)
    }
    if (!/^\d{1,12}$/.test(seconds)) return yield* refuse(400, "webhook-timestamp must be a time in seconds")
    const signatures = signaturesOf(request.headers.get("webhook-signature") ?? "")
    if (signatures.length === 0) return yield* refuse(400, "webhook-signature has no signature v1,<base64>")
    const timestamp = Number(seconds) * 1000
    if (Math.abs((yield* Clock.currentTimeMillis) - timestamp) > toleranceMs) {
      return yield* refuse(401, "webhook-timestamp is too far from the time of the server")
    }
    const body = yield* Effect.tryPromise({
      try: () => readBody(request, maxBodyBytes),
      // The sender has disconnected.
      catch: () => new Refused({ status: 400, message: "the body has not arrived" })
    })
    if (body === undefined) return yield* refuse(413, `the body exceeds maxBodyBytes (${maxBodyBytes})`)
    const head = utf8Encoder.encode(`${id}.${seconds}.`)
    const content = new Uint8Array(head.length + body.length)
    content.set(head)
    content.set(body, head.length)
    const expected = yield* Effect.promise(() => Promise.all(raw.map((secret) => sign(secret, content))))
    // One signature for each secret, however many the request has.
    if (!signatures.some((signature) => expected.some((bytes) => timingSafeEqual(signature, bytes)))) {
      return yield* refuse(401, "no signature in webhook-signature matches")
    }
    return yield* Effect.try({
      try: () => ({ id, timestamp, body: new TextDecoder("utf-8", { fatal: true }).decode(body) }),
      catch: () => new Refused({ status: 400, message: "the body is not UTF-8" })
    })
  })
}

/**
 * Makes a route for webhooks: `POST` of a path, for `NodeRoutes.make` and any `HttpRouter`. The handler has the services of the
 * server's layers.
 *
 * @example
 * const Payments = Webhook.layer("/webhooks/payments", { secrets }, ({ body, id }) =>
 *   Effect.gen(function*() {
 *     const { order, receipt } = yield* Schema.decodeEffect(Schema.fromJsonString(Payment))(body)
 *     const engine = yield* TaskEngine
 *     yield* engine.sendAll("paid", `order/${order}`, { receipt }, { key: id })
 *   }))
 */
export const layer = <E, R>(
  path: HttpRouter.PathInput,
  options: Options,
  handle: (webhook: Received) => Effect.Effect<unknown, E, R>
) =>
  Layer.unwrap(Effect.sync(() => {
    const verify = verifier(options)
    const respond = Effect.gen(function*() {
      const request = yield* Effect.flatMap(HttpServerRequest, (request) => toWeb(request))
      const received = yield* Effect.result(verify(request))
      if (Result.isFailure(received)) {
        const { message, status } = received.failure
        yield* Effect.logDebug("HTTP: a webhook was refused:", status, message)
        return HttpServerResponse.text(message, { status })
      }
      yield* handle(received.success)
      return HttpServerResponse.empty({ status: 204 })
    })
    return HttpRouter.add("POST", path, respond)
  }))

/**
 * Makes a handler for webhooks with an async function: for `NodeRoutes.handlers`, `AsyncServer.route`, and platforms with
 * `Request` and `Response`. The request must be a `POST`, and gets 405 otherwise. Rejects if the function does, which these
 * answer with 500. Throws for invalid options.
 *
 * @example
 * const payments = Webhook.handler({ secrets }, ({ body, id }) => tasks.send(taskOf(body), "paid", JSON.parse(body), { key: id }))
 * NodeHttp.runMain(Server, { routes: NodeRoutes.handlers({ "/webhooks/payments": payments }) })
 */
export const handler = (
  options: Options,
  handle: (webhook: Received) => unknown
): (request: Request) => Promise<Response> => {
  const verify = verifier(options)
  return async (request) => {
    if (request.method !== "POST") return new Response(null, { status: 405, headers: { allow: "POST" } })
    const received = await Effect.runPromise(Effect.result(verify(request)))
    if (Result.isFailure(received)) {
      return new Response(received.failure.message, { status: received.failure.status })
    }
    await handle(received.success)
    return new Response(null, { status: 204 })
  }
}
