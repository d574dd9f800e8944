/**
 * Sends the request of a call to the API, with its credentials and within its time.
 */
import type { JsonObject } from "@skein/protocol/JsonRpc"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as HttpClient from "effect/http/HttpClient"
import type { HttpClientError } from "effect/http/HttpClientError"
import type { HttpMethod } from "effect/http/HttpMethod"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as boundedBody from "../answer/boundedBody.ts"
import type { Operation } from "../document/operations.ts"
import * as answers from "../answer/answer.ts"
import { type ApiRequest, makeRequest, type RequestPlan } from "./request.ts"
import { encode } from "../arguments/serialize.ts"

/** A text, or a secret one that logs do not show. */
export type Value = string | Redacted.Redacted

/** The parts of a request that an operator adds. */
export interface Credentials {
  /** Headers, such as `authorization`. They replace headers of the same name. */
  readonly headers?: Readonly<Record<string, Value>> | undefined
  /** Query parameters. They replace parameters of the same name, also those that a model gave. */
  readonly query?: Readonly<Record<string, Value>> | undefined
}

/** The options of sending, with their defaults. */
export interface SendOptions<E, R> {
  readonly client: HttpClient.HttpClient
  readonly headers: Readonly<Record<string, Value>>
  readonly credentials: ((operation: Operation) => Effect.Effect<Credentials, E, R>) | undefined
  readonly timeout: Duration.Input
  readonly maxResultBytes: number
}

/** The outcome of a call: the answer of the API, or a message for the model. */
export type Outcome =
  | { readonly _tag: "Answered"; readonly answer: answers.Answer }
  | { readonly _tag: "Failed"; readonly message: string; readonly status: number | undefined }

const failed = (message: string, status?: number): Outcome => ({ _tag: "Failed", message, status })

const reveal = (value: Value): string => Redacted.isRedacted(value) ? Redacted.value(value) : value

const revealAll = (values: Credentials["headers"]): ReadonlyArray<readonly [string, string]> =>
  Object.entries(values ?? {}).map(([name, value]) => [name, reveal(value)])

// Headers whose values are public, and names of credentials.
const harmless = /^(?:accept(?:-.*)?|content-.*|user-agent|host|origin|referer|cache-control|pragma|date|from|te|via)$/i
const secretName = /auth|key|token|secret|passw|credential|signature|session|cookie|jwt/i

/** Whether a plain text is words of letters, such as the name of a product. */
const isWords = (text: string): boolean => text.length <= 40 && /^[a-z]{1,20}(?:[ ._/-][a-z]{1,20})*$/i.test(text)

/**
 * The texts that no message may contain: values that are `Redacted`, and those of headers and query parameters that are
 * not known to be harmless. A scheme such as `Bearer` is not a secret, and nor is the name of a cookie.
 */
const secretsOf = (...all: ReadonlyArray<Credentials["headers"]>): ReadonlyArray<string> =>
  all.flatMap((values) => Object.entries(values ?? {})).flatMap(([name, given]) => {
    const value = reveal(given)
    const isSecret = Redacted.isRedacted(given) || secretName.test(name) || !(harmless.test(name) || isWords(value))
    return isSecret ? partsOf(name, value) : []
  }).flatMap((secret) => [secret, encode(secret)]).toSorted((a, b) => b.length - a.length)

/** The value without the scheme of its credentials, or the values of cookies. */
const partsOf = (name: string, value: string): ReadonlyArray<string> => {
  if (name.toLowerCase() === "cookie") return value.split(/;\s*/).map((pair) => pair.slice(pair.indexOf("=") + 1))
  const [, scheme, rest = ""] = /^([A-Za-z][\w-]*) +(\S.*)$/.exec(value) ?? []
  if (scheme === undefined || !schemes.has(scheme.toLowerCase())) return [value]
  const parameters = Array.from(rest.matchAll(/\w+="([^"]*)"/g), ([, parameter = ""]) => parameter)
  return [rest, ...parameters]
}

/** The authentication schemes of the IANA registry, and those in use beside them. */
const schemes: ReadonlySet<string> = new Set([
  ...["basic", "bearer", "digest", "dpop", "gnap", "hoba", "mutual", "negotiate", "oauth", "privatetoken"],
  ...["scram-sha-1", "scram-sha-256", "vapid", "token", "apikey", "api-key", "key", "jwt", "ntlm", "hmac", "sso-key"],
  ...["aws4-hmac-sha256", "zoho-oauthtoken", "genie-key", "klaviyo-api-key", "splunk", "bot", "ssws", "secret"]
])

const toHttp = (
  request: ApiRequest,
  fixed: Credentials["headers"],
  credentials: Credentials
): HttpClientRequest.HttpClientRequest => {
  const own = revealAll(credentials.query)
  const replaced = new Set(own.map(([name]) => encode(name)))
  const query = [
    ...request.query.filter(([name]) => !replaced.has(name)),
    ...own.map(([name, value]) => [encode(name), encode(value)] as const)
  ].map(([name, value]) => value === "" ? name : `${name}=${value}`).join("&")
  const added = [...revealAll(fixed), ...revealAll(credentials.headers)].map(([name, value]) =>
    [name.toLowerCase(), value] as const
  )
  const headers = new Map([...Object.entries(request.headers), ...added])
  const cookies = [...request.cookies, ...added.filter(([name]) => name === "cookie").map(([, value]) => value)]
  if (cookies.length > 0) headers.set("cookie", cookies.join("; "))
  return HttpClientRequest.make(request.method as HttpMethod)(request.url + (query === "" ? "" : `?${query}`)).pipe(
    HttpClientRequest.setBody(request.body),
    HttpClientRequest.setHeaders(headers)
  )
}

const codeOf = (error: HttpClientError): string => {
  let at: unknown = error
  for (let depth = 0; depth < 4 && typeof at === "object" && at !== null; depth++) {
    const { cause, code } = at as { readonly code?: unknown; readonly cause?: unknown }
    if (typeof code === "string" && /^[A-Z_]{3,40}$/.test(code)) return ` (${code})`
    at = cause
  }
  return ""
}

const maxRedirects = 3

/**
 * The redirects of an answer that are followed: of a reading request, to the same origin, so that credentials stay
 * there.
 */
const redirectOf = (
  request: HttpClientRequest.HttpClientRequest,
  status: number,
  location: string | undefined
): string | undefined => {
  if (![301, 302, 307, 308].includes(status) || location === undefined) return undefined
  if (request.method !== "GET" && request.method !== "HEAD") return undefined
  const from = new URL(request.url)
  const to = Result.getOrUndefined(Result.try(() => new URL(location, from)))
  return to !== undefined && to.origin === from.origin ? to.href : undefined
}

const execute = Effect.fnUntraced(function*(
  client: HttpClient.HttpClient,
  first: HttpClientRequest.HttpClientRequest,
  maxResultBytes: number
) {
  let request = first
  for (let count = 0;; count++) {
    const response = yield* client.execute(request)
    const next = count < maxRedirects ? redirectOf(request, response.status, response.headers["location"]) : undefined
    if (next === undefined) {
      const body = yield* boundedBody.read(response, maxResultBytes)
      return { status: response.status, headers: response.headers, body }
    }
    request = HttpClientRequest.setUrl(request, next)
  }
})

/** Returns the advice for a model after a status that concerns the credentials or the address of the API. */
const advise = (status: number): string | undefined => {
  if (status === 401) {
    return "The API does not accept the credentials of this server. Do not call again with the same request"
  }
  if (status === 403) return "The API does not allow this with the credentials of this server"
  if (status === 405) return "The API does not support this operation here"
  if (status >= 300 && status < 400) return "The API redirects elsewhere, which is not followed"
  return status >= 500 ? "The API failed. Call again later" : undefined
}

/** Calls the API. It fails only if making the credentials fails. */
export const send = <E, R>(
  plan: RequestPlan,
  args: JsonObject,
  { client, credentials, headers, maxResultBytes, timeout }: SendOptions<E, R>
): Effect.Effect<Outcome, E, R> =>
  Effect.gen(function*() {
    const { operation } = plan
    const name = `${operation.method} ${operation.path}`
    const request = makeRequest(plan, args)
    if (Result.isFailure(request)) return failed(request.failure)
    const own: Credentials = credentials === undefined ? {} : yield* credentials(operation)
    const http = toHttp(request.success, headers, own)
    const received = yield* execute(client, http, maxResultBytes).pipe(
      Effect.provideService(FetchHttpClient.RequestInit, { redirect: "manual" }),
      // The URL in a span would show the credentials of the query.
      own.query === undefined ? (self) => self : Effect.provideService(HttpClient.TracerDisabledWhen, () => true),
      Effect.timeoutOption(timeout),
      Effect.result
    )
    if (Result.isFailure(received)) {
      return failed(
        `${name} failed: no answer from ${new URL(operation.baseUrl).host}, the connection failed${
          codeOf(received.failure)
        }. Call again later.`
      )
    }
    if (received.success._tag === "None") {
      const after = Duration.format(Duration.fromInputUnsafe(timeout))
      return failed(
        `${name} failed: no complete answer within ${after}. ` +
          (operation.method === "GET"
            ? "Call again later, or ask for less."
            : "The API may have done the work: check before you call again.")
      )
    }
    const { value } = received.success
    const { body, status } = value
    if (status < 200 || status >= 300) {
      const secrets = secretsOf(headers, own.headers, own.query)
      const now = yield* Clock.currentTimeMillis
      return failed(answers.failure({ name, who: "The API", advise, secrets }, value, now), status)
    }
    if (body.isCut) {
      return failed(answers.tooLarge(name, value, maxResultBytes, plan.arguments.list.map((each) => each.name)), status)
    }
    return { _tag: "Answered", answer: answers.read(value) }
  })
