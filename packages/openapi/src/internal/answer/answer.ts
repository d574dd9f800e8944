/**
 * The calls of an API, as `OpenApi` and `HttpApiTools` show them to a model: hints by the method, the content of an answer
 * as blocks, and the message about a failure.
 */
import { isObject, type JsonObject } from "@skein/protocol/JsonRpc"
import { clip, printableLines } from "@skein/protocol/Text"
import type { ToolAnnotations } from "@skein/protocol/Tool"
import * as RetryAfter from "@skein/runtime/RetryAfter"
import * as Content from "@skein/server/Content"
import type { Headers } from "effect/http/Headers"
import * as Result from "effect/Result"
import type { Body } from "./boundedBody.ts"

/** The longest part of the body of an error that a model receives, in UTF-16 units. */
const maxErrorChars = 2_000

/** The most bytes of an answer by default. */
export const defaultMaxResultBytes = 262_144

/** The hints of a tool, by the meaning of the methods in RFC 9110. `POST` may do anything, and so has the defaults of the protocol. */
export const hintsOfMethods: Readonly<Record<string, ToolAnnotations>> = {
  GET: { readOnlyHint: true },
  HEAD: { readOnlyHint: true },
  OPTIONS: { readOnlyHint: true },
  QUERY: { readOnlyHint: true },
  PUT: { readOnlyHint: false, destructiveHint: true, idempotentHint: true },
  DELETE: { readOnlyHint: false, destructiveHint: true, idempotentHint: true },
  PATCH: { readOnlyHint: false, destructiveHint: true },
  POST: { readOnlyHint: false }
}

/** An answer of the API that succeeded. */
export interface Answer {
  readonly status: number
  readonly mediaType: string
  /** The body as text, unless it is binary. */
  readonly text: string | undefined
  readonly bytes: Uint8Array
  /** The body if it is a JSON object, and has no number that JavaScript changes. */
  readonly object: JsonObject | undefined
  /** A number of the body, as its text, that JavaScript changes: an identifier of 64 bits, for example. */
  readonly inexact: string | undefined
}

/** The parts of an answer. */
export interface Received {
  readonly status: number
  readonly headers: Headers
  readonly body: Body
}

const textual =
  /^text\/|[/+](?:json|xml|yaml|x-yaml|javascript|ecmascript|csv|x-www-form-urlencoded|x-ndjson|graphql|jwt|problem\+json)$/

const mediaTypeOf = (headers: Headers): { readonly mediaType: string; readonly charset: string } => {
  const value = headers["content-type"] ?? ""
  const [, charset = "utf-8"] = /charset="?([\w.:-]+)/i.exec(value) ?? []
  return { mediaType: value.split(";")[0]!.trim().toLowerCase(), charset }
}

const decode = (bytes: Uint8Array, charset: string, fatal: boolean): string | undefined => {
  try {
    return new TextDecoder(charset, { fatal }).decode(bytes)
  } catch {
    return fatal ? undefined : new TextDecoder().decode(bytes)
  }
}

/** The value of a JSON text, and its first number that JavaScript changes. */
interface Json {
  readonly value: unknown
  readonly inexact: string | undefined
}

/**
 * Parses a JSON text. A number is inexact if it is a whole number in its text and another one in JavaScript, or beyond
 * the largest number.
 */
export const parseJson = (text: string): Json | undefined => {
  let inexact: string | undefined
  const revive = (_: string, value: unknown, { source = "" }: { readonly source?: string } = {}): unknown => {
    if (inexact === undefined && typeof value === "number" && !Number.isSafeInteger(value) && !isExact(value, source)) {
      inexact = source
    }
    return value
  }
  const value = Result.try((): unknown => JSON.parse(text, revive as (key: string, value: unknown) => unknown))
  return Result.isFailure(value) ? undefined : { value: value.success, inexact }
}

const isExact = (value: number, source: string): boolean =>
  Number.isFinite(value) && (!/^-?\d+$/.test(source) || BigInt(source) === BigInt(value))

/** The note beside the text of an answer with a number that structured content cannot have. */
export const inexactNote = (number: string): string =>
  `The number ${
    clip(number, 40)
  } is exact in the text only, and there is no structured content, because JSON numbers ` +
  `are exact up to ${Number.MAX_SAFE_INTEGER}.`

/** Reads the answer of a request that succeeded. */
export const read = ({ body: { bytes }, headers, status }: Received): Answer => {
  const { charset, mediaType } = mediaTypeOf(headers)
  // Without a media type, a body that is valid UTF-8 is a text.
  const text = bytes.length === 0
    ? ""
    : textual.test(mediaType)
    ? decode(bytes, charset, false)
    : mediaType === "" || mediaType === "application/octet-stream"
    ? decode(bytes, "utf-8", true)
    : undefined
  const isJson = text !== undefined && /^\s*\{/.test(text) && (mediaType === "" || /[/+]json$/.test(mediaType))
  const { inexact, value } = (isJson ? parseJson(text) : undefined) ?? {}
  return {
    status,
    mediaType,
    text,
    bytes,
    object: isObject(value) && inexact === undefined ? value : undefined,
    inexact
  }
}

/**
 * The content of an answer, as blocks for a model. `uri` names the content if it is neither text, an image nor audio,
 * and
 * `empty` is the text for an answer without content.
 */
export const toContent = (
  { bytes, inexact, mediaType, text }: Answer,
  uri: string,
  empty: string
): ReadonlyArray<Content.ContentBlock> => {
  if (text !== undefined) {
    const note = inexact === undefined ? [] : [Content.text(inexactNote(inexact))]
    return [Content.text(text === "" ? empty : text), ...note]
  }
  if (/^image\/(?:png|jpeg|gif|webp|avif|bmp)$/.test(mediaType)) return [Content.image(bytes, mediaType)]
  if (mediaType.startsWith("audio/")) return [Content.audio(bytes, mediaType)]
  return [
    Content.resource(uri, bytes, {
      mimeType: /^[\w.+-]+\/[\w.+-]+$/.test(mediaType) ? mediaType : "application/octet-stream"
    })
  ]
}

/** The advice for a model after a status that is not a success, for any API. */
const advices: Readonly<Record<number, string>> = {
  400: "Check the arguments",
  404: "Check the ids among the arguments",
  409: "The request conflicts with the present state. Read the state before you call again",
  413: "Send less",
  422: "Check the arguments",
  429: "Too many requests. Wait before you call again"
}

const retryAfter = (headers: Headers, now: number): string => {
  const date = Date.parse(headers["date"] ?? "")
  const delay = RetryAfter.parse(headers["retry-after"], Number.isNaN(date) ? now : date)
  return delay === undefined ? "" : `Call again after ${Math.ceil(delay / 1_000)} seconds at the earliest.`
}

/** Removes credentials from a text that the API sent: some APIs repeat the request in their errors. */
const withoutSecrets = (text: string, secrets: ReadonlyArray<string>): string =>
  secrets.filter((secret) => secret.length >= 6).reduce((all, secret) => all.replaceAll(secret, "<redacted>"), text)

const errorBody = ({ body: { bytes }, headers }: Received, secrets: ReadonlyArray<string>): string => {
  const { charset, mediaType } = mediaTypeOf(headers)
  if (bytes.length === 0 || !(textual.test(mediaType) || mediaType === "")) return ""
  const text = decode(bytes, charset, false) ?? ""
  const shown = mediaType === "text/html" ? /<title>([^<]{0,200})/i.exec(text)?.[1] ?? "" : text
  return printableLines(withoutSecrets(shown.trim(), secrets), maxErrorChars)
}

/** The origin of an answer, for the messages about it. */
export interface Source {
  /** The name of the operation: `GET /pets`. */
  readonly name: string
  /** The subject that answered: `The API`. */
  readonly who: string
  /** Returns the advice for a model after a status, if it differs from the common advice. */
  readonly advise: (status: number) => string | undefined
  /** The texts that no message may contain. */
  readonly secrets: ReadonlyArray<string>
}

/** Writes the message for a model about an answer that is not a success. `now` is the present time in milliseconds. */
export const failure = ({ advise, name, secrets, who }: Source, received: Received, now: number): string => {
  const { headers, status } = received
  const advice = advise(status) ?? advices[status]
  const body = errorBody(received, secrets)
  return [
    `${name} failed with HTTP status ${status}.`,
    advice === undefined ? "" : `${advice}.`,
    retryAfter(headers, now),
    body === "" ? "" : `${who} answered:\n${body}`
  ].filter((part) => part !== "").join(" ")
}

// Arguments that make answers smaller, in the words of most APIs.
const limits =
  /^(?:limit|page|page_?size|per_?page|count|max_?results|first|top|offset|cursor|fields|select|filter|q|query)$/i

/** Writes the message for a model about an answer above `maxResultBytes`, with its beginning. */
export const tooLarge = (
  name: string,
  { body: { bytes }, headers }: Received,
  maxResultBytes: number,
  argumentNames: ReadonlyArray<string>
): string => {
  const helpful = argumentNames.filter((each) => limits.test(each))
  const advice = helpful.length === 0 ? "Ask for less" : `Ask for less with the arguments ${helpful.join(", ")}`
  const { charset, mediaType } = mediaTypeOf(headers)
  const start = textual.test(mediaType)
    ? clip(decode(bytes.subarray(0, 4 * maxErrorChars), charset, false) ?? "", maxErrorChars)
    : ""
  return `The answer to ${name} has more than ${maxResultBytes} bytes, which is too large. ${advice}.` +
    (start === "" ? "" : ` It begins with:\n${printableLines(start, maxErrorChars)}`)
}
