/**
 * Turns the answer of an endpoint into the result of a tool, and describes the answers that it declares.
 */
import type { JsonObject } from "@skein/protocol/JsonRpc"
import { clip } from "@skein/protocol/Text"
import * as JsonSchema from "@skein/server/JsonSchema"
import * as Tool from "@skein/server/Tool"
import * as HttpApiSchema from "effect/http-api/HttpApiSchema"
import type { Top as Endpoint } from "effect/http-api/HttpApiEndpoint"
import * as Schema from "effect/Schema"
import * as AST from "effect/SchemaAST"
import * as answers from "../answer/answer.ts"
import { Unsupported } from "./endpointArguments.ts"
import type { AnswerTooLarge } from "./inProcess.ts"

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
  return () => JsonSchema.ofResult(json.length === 1 ? json[0]! : Schema.Union(json))
}

const isJson = (mediaType: string): boolean => /[/+]json$/.test(mediaType)
/**
 * The credentials in the headers of a call: some; none, because the caller has none; or none, because the server may
 * not pass on those of the caller.
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

/** Returns the advice for a model after a status that concerns the caller or the endpoint. */
const adviceOf = (credentials: Credentials) => (status: number): string | undefined => {
  switch (status) {
    case 401:
      return adviceWithout[credentials]
    case 403:
      return "The account of the caller lacks the permission. Do not repeat the call: tell the user"
    case 415:
      return "The endpoint does not accept this payload"
    case 503:
      return "Call again later"
  }
  return undefined
}

const failed = (content: string) => Tool.result({ isError: true, content })

/**
 * Makes the result for an endpoint whose request matches no route of the router. A router refuses a long value in a
 * path (100 characters by default) in the same way, which the model can correct.
 */
export const withoutRoute = (method: string, path: string) =>
  failed(
    `The server has no route for ${method} ${path}. ` +
      (/[:*]/.test(path)
        ? "If an argument in the path is long, shorten it. Otherwise tell the user that the MCP server must be corrected"
        : "Do not repeat the call: tell the user that the MCP server must be corrected")
  )

/** Makes the result for an answer above `maxResultBytes`. */
export const tooLarge = (name: string, answer: AnswerTooLarge, argumentNames: ReadonlyArray<string>) =>
  failed(answers.tooLarge(name, answer, answer.body.bytes.length, argumentNames))

/** The circumstances of a result. */
export interface ResultOptions {
  readonly hasOutputSchema: boolean
  readonly credentials: Credentials
  /** The present time, in milliseconds. */
  readonly now: number
}

/**
 * Makes the result for an answer: structured content for JSON, and a block of its kind for any other body. A status
 * other than 2xx is a failure that the model can act on. A tool with an output schema must have structured content, so
 * that another answer of such an endpoint, which its handler made itself, is a failure.
 */
export const toResult = (
  name: string,
  received: answers.Received,
  { credentials, hasOutputSchema, now }: ResultOptions
): Tool.Result<unknown> => {
  const { status } = received
  if (status < 200 || status > 299) {
    const source = { name, who: "The endpoint", advise: adviceOf(credentials), secrets: [] }
    return failed(answers.failure(source, received, now))
  }
  const answer = answers.read(received)
  if (isJson(answer.mediaType)) {
    const { inexact, value } = answers.parseJson(answer.text ?? "") ?? { inexact: undefined, value: undefined }
    if (inexact === undefined && value !== undefined) return Tool.result({ structured: value })
    if (inexact !== undefined && hasOutputSchema) {
      return failed(
        `${name} succeeded with status ${status}, but its answer has the number ${
          clip(inexact, 40)
        }, which JSON numbers ` +
          "cannot have exactly. Tell the user that the endpoint must write it as a text"
      )
    }
  }
  if (hasOutputSchema) {
    return failed(`${name} answered with status ${status} and without the JSON that its schema describes`)
  }
  return Tool.result({
    content: answers.toContent(
      answer,
      `httpapi:///${encodeURIComponent(name)}`,
      `${name} succeeded with status ${status}`
    )
  })
}
