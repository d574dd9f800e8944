/**
 * Errors for HTTP responses that do not answer a request of the protocol.
 */
import { clip, cut } from "@skein/protocol/Text"
import * as JsonRpc from "@skein/protocol/JsonRpc"
import { ByteBuffer } from "@skein/runtime/ByteBuffer"
import type { Headers } from "@skein/runtime/Connection"
import * as RetryAfter from "@skein/runtime/RetryAfter"
import { MessageRejected, TransportError } from "@skein/runtime/TransportError"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { connectionLost, isUnhandledStatus } from "../base/errors.ts"
import type { HttpChannel } from "./protocol.ts"
import { customHeaders } from "./settings.ts"
import { type HttpResponse, withoutBom } from "./httpClient.ts"

// How many characters of a body an error message quotes.
const quoted = 300

/** The part of a response that is needed for an error message. */
type Answered = Pick<HttpResponse, "status" | "sentHeaders">

const quote = (text: string, { sentHeaders }: Answered): string => {
  const line = cut(redactHeaders(text, sentHeaders), 4 * quoted).replace(/[\p{Cc}\p{Cf}\s]+/gu, " ").trim()
  return line === "" ? "" : `: ${clip(line, quoted)}`
}

/** Whether a response has a status of success. */
export const is2xx = ({ status }: Answered): boolean => status >= 200 && status < 300

/** The media type of a response, in lower case and without its parameters. */
export const mediaType = (reply: HttpResponse): string => {
  const header = reply.header("content-type") ?? ""
  const end = header.indexOf(";")
  return (end === -1 ? header : header.slice(0, end)).trim().toLowerCase()
}

// Ends the reading of a body. No message contains it.
const enough = connectionLost("enough")

/**
 * The body of an error response, as far as it arrives within `refusalTimeout`, since it may never end. An event stream
 * is not read.
 */
export const errorText = (
  reply: HttpResponse,
  { settings: { maxMessageBytes, refusalTimeout } }: HttpChannel
): Effect.Effect<string> => {
  if (mediaType(reply) === "text/event-stream") return Effect.succeed("")
  const buffer = new ByteBuffer()
  const read = reply.chunks((chunk) => {
    buffer.add(chunk.subarray(0, maxMessageBytes - buffer.size))
    return buffer.size < maxMessageBytes ? undefined : enough
  })
  return Effect.map(Effect.timeoutOption(Effect.ignore(read), refusalTimeout), () => withoutBom(buffer.text))
}

/** The JSON-RPC error in a body, if it has one. */
export const failureIn = (text: string): JsonRpc.Failure | undefined => {
  if (text === "") return undefined
  const parsed = JsonRpc.parseText(text)
  return parsed._tag === "Failure" ? parsed : undefined
}

/** The error for a response with a status other than 2xx. */
export const refusal = (
  reply: HttpResponse,
  text: string,
  failure = failureIn(text)
): Effect.Effect<TransportError> =>
  Effect.map(Clock.currentTimeMillis, (now) => {
    const after = RetryAfter.parse(reply.header("retry-after"), now)
    const { credentialsFailure, status } = reply
    const failed = credentialsFailure === undefined ? "" : ", and the credentials failed (see the cause)"
    return new TransportError({
      reason: new MessageRejected({
        message: `The server answered with status ${status}${failed}${quote(failure?.error.message ?? text, reply)}`,
        status,
        cause: credentialsFailure?.cause
      }),
      retryAfter: after,
      undelivered: isUnhandledStatus(status, after) || undefined
    })
  })

/** Reads the body of a response with a status other than 2xx, and returns the error for it. */
export const readRefusal = (reply: HttpResponse, channel: HttpChannel): Effect.Effect<TransportError> =>
  Effect.flatMap(errorText(reply, channel), (text) => refusal(reply, text))

/** The error for a response with a 2xx status that does not answer the request. */
export const unusable = (reply: Answered, what: string, text = ""): TransportError => {
  const { status } = reply
  return new TransportError({
    reason: new MessageRejected({ message: `The server answered with ${what}${quote(text, reply)}`, status })
  })
}

// Shorter parts of a header are words that any text may contain, and are not secrets.
const minSecretLength = 8

const redacted = "[redacted]"

/**
 * Redacts the values of the headers of the options and of the credentials, and each word of them: the token of
 * `Bearer <token>` is one.
 */
const redactHeaders = (text: string, sent: Headers | undefined): string => {
  if (sent === undefined || text === "") return text
  const secrets = new Set<string>()
  for (const value of Object.values(customHeaders(sent))) {
    for (const part of [value, ...value.split(/\s+/)]) if (part.length >= minSecretLength) secrets.add(part)
  }
  // Longer secrets first, since one may contain a shorter one.
  return [...secrets].sort((one, other) => other.length - one.length)
    .reduce((kept, secret) => kept.replaceAll(secret, redacted), text)
}
