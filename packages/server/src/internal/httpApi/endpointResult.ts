/**
 * Turns the answer of an endpoint into the result of a tool, and describes the answers that it declares.
 */
import type { JsonObject } from "@skein/protocol/JsonRpc"
import { clip, printableLines } from "@skein/protocol/Text"
import * as HttpApiSchema from "effect/http-api/HttpApiSchema"
import type { Top as Endpoint } from "effect/http-api/HttpApiEndpoint"
import type { Headers } from "effect/http/Headers"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as AST from "effect/SchemaAST"
import * as Content from "../../Content.ts"
import * as jsonSchema from "../schema/jsonSchema.ts"
import { ToolResult } from "../handlers/toolCall.ts"
import { Unsupported } from "./endpointArguments.ts"
import type { AnswerTooLarge } from "./inProcess.ts"

/** An answer of an endpoint, whole. */
export interface EndpointAnswer {
  readonly status: number
  readonly headers: Headers
  readonly bytes: Uint8Array
}

// `asJson`, `asText` and so on, and `encodeToWithHeaders`, leave these annotations. `effect/http-api` exports no functions
// that read them.
const encodingOf = AST.resolveAt<{ readonly _tag: string }>("~httpApiEncoding")
const withHeadersOf = AST.resolveAt<unknown>("~httpApiWithHeaders")

/** Whether the body of a success is JSON, without a transformation between the body and its headers. */
const isJsonBody = ({ ast }: Schema.Top): boolean =>
  !HttpApiSchema.isNoContent(ast) && withHeadersOf(ast) === undefined && (encodingOf(ast)?._tag ?? "Json") === "Json"

/**
 * Makes the function for the JSON Schema of the structured content, or `undefined` if a success may have none.
 * `buffered` are the successes with a body that is read as a whole, by status. Throws `Unsupported` if there are others.
 */
export const outputSchemaOf = (
  { success }: Endpoint,
  buffered: ReadonlyMap<number, ReadonlyArray<Schema.Top>>
): (() => JsonObject) | undefined => {
  const schemas = [...buffered.values()].flat()
  if (schemas.length < success.size) {
    throw new Unsupported("it answers with a stream or upgrades the connection, which a tool cannot do")
  }
  const bodies = schemas.map((schema): Schema.Top => HttpApiSchema.isWithHeaders(schema) ? schema.schema : schema)
  if (bodies.length === 0 || !bodies.every(isJsonBody)) return undefined
  // A body below headers is not encoded as JSON yet.
  const json = bodies.map((body) => Schema.toCodecJson(body))
  return () => jsonSchema.output(json.length === 1 ? json[0]! : Schema.Union(json))
}

const isJson = (mediaType: string): boolean => /[/+]json$/.test(mediaType)
const isText = (mediaType: string): boolean =>
  /^text\/|[/+](?:json|xml|yaml|javascript|csv|x-www-form-urlencoded|x-ndjson)$/.test(mediaType)

const mediaTypeOf = (headers: Headers): string => (headers["content-type"] ?? "").split(";")[0]!.trim().toLowerCase()

const textOf = (bytes: Uint8Array): string => new TextDecoder().decode(bytes)

const advices: Readonly<Record<number, string>> = {
  400: "Check the arguments",
  403: "The account of the caller lacks the permission. Do not repeat the call: tell the user",
  404: "Check the ids among the arguments",
  409: "The call conflicts with the present state. Read the state before you call again",
  413: "Send less",
  415: "The endpoint does not accept this payload",
  422: "Check the arguments",
  429: "Too many calls. Wait before you call again",
  503: "Call again later"
}

/**
 * The credentials in the headers of a call: some; none, because the caller has none; or none, because the server may not
 * pass on those of the caller.
 */
export type Credentials = "sent" | "absent" | "unforwarded"

// Only the user can sign in or set a token, so each advice sends the model to the user.
const adviceWithout: Readonly<Record<Credentials, string>> = {
  sent:
    "The endpoint refused the credentials of the caller. Do not repeat the call: ask the user to sign in again or to " +
    "renew the token of the MCP client",
  absent: "The call had no credentials. Do not repeat it: ask the user to sign in or to set a token in the MCP client",
  unforwarded:
    "The call reached the endpoint without credentials. Do not repeat it: ask the user to sign in or to check the " +
    "token of the MCP client. If that does not help, tell the user that the MCP server passes no credentials on to this endpoint"
}

/** The choices and the circumstances of a result. */
export interface ResultOptions {
  readonly hasOutputSchema: boolean
  readonly maxErrorChars: number
  readonly credentials: Credentials
}

/** Writes the message for a model about an answer that is not a success. */
const failure = (
  name: string,
  { bytes, headers, status }: EndpointAnswer,
  { credentials, maxErrorChars }: ResultOptions
): string => {
  const advice = status === 401 ? adviceWithout[credentials] : advices[status]
  const retryAfter = headers["retry-after"]
  const mediaType = mediaTypeOf(headers)
  const body = bytes.length > 0 && (isText(mediaType) || mediaType === "") ? textOf(bytes).trim() : ""
  return [
    `${name} failed with status ${status}.`,
    advice === undefined ? "" : `${advice}.`,
    retryAfter !== undefined && /^\d{1,9}$/.test(retryAfter) ? `Call again after ${retryAfter} seconds.` : "",
    body === "" ? "" : `The endpoint answered:\n${printableLines(body, maxErrorChars)}`
  ].filter((part) => part !== "").join(" ")
}

const failed = (content: string): ToolResult<never> => new ToolResult({ isError: true, content })

/**
 * Makes the result for an endpoint whose request matches no route of the router. A router refuses a long value in a path
 * (100 characters by default) in the same way, which the model can correct.
 */
export const withoutRoute = (method: string, path: string): ToolResult<never> =>
  failed(
    `The server has no route for ${method} ${path}. ` +
      (/[:*]/.test(path)
        ? "If an argument in the path is long, shorten it. Otherwise tell the user that the MCP server must be corrected"
        : "Do not repeat the call: tell the user that the MCP server must be corrected")
  )

/** Makes the result for an answer above `maxAnswerBytes`. */
export const tooLarge = (
  name: string,
  { bytes }: AnswerTooLarge,
  maxErrorChars: number
): ToolResult<never> =>
  failed(
    `The answer of ${name} has more than ${bytes.length} bytes, which is too large. Ask for less. It begins with:\n` +
      printableLines(clip(textOf(bytes.subarray(0, 4 * maxErrorChars)), maxErrorChars), maxErrorChars)
  )

/**
 * Makes the result for an answer: structured content for JSON, and a block of its kind for any other body. A status other
 * than 2xx is a failure that the model can act on. A tool with an output schema must have structured content, so that
 * another answer of such an endpoint, which its handler made itself, is a failure.
 */
export const toResult = (
  name: string,
  answer: EndpointAnswer,
  options: ResultOptions
): ToolResult<unknown> => {
  const { bytes, headers, status } = answer
  if (status < 200 || status > 299) return failed(failure(name, answer, options))
  const mediaType = mediaTypeOf(headers)
  if (isJson(mediaType)) {
    const structured = Result.try({ try: (): unknown => JSON.parse(textOf(bytes)), catch: String })
    if (Result.isSuccess(structured)) return new ToolResult({ structured: structured.success })
  }
  if (options.hasOutputSchema) {
    return failed(`${name} answered with status ${status} and without the JSON that its schema describes`)
  }
  if (bytes.length === 0) return new ToolResult({ content: `${name} succeeded with status ${status}` })
  if (isText(mediaType)) return new ToolResult({ content: textOf(bytes) })
  if (mediaType.startsWith("image/")) return new ToolResult({ content: [Content.image(bytes, mediaType)] })
  if (mediaType.startsWith("audio/")) return new ToolResult({ content: [Content.audio(bytes, mediaType)] })
  const mimeType = mediaType === "" ? "application/octet-stream" : mediaType
  return new ToolResult({ content: [Content.resource(`httpapi:///${encodeURIComponent(name)}`, bytes, { mimeType })] })
}
