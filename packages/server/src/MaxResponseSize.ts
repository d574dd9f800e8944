/**
 * A size limit: how many bytes a result may have, as it is written.
 *
 * A result that is larger is not sent. In its place a tool's call is answered with a result that has `isError`, from which a model
 * can learn to ask for less; everything else with `-32603`. Both say how large it was. The result is written once: what is counted
 * is what is sent.
 *
 * Errors, notifications, and the questions that a handler asks the client, are not counted. Middleware that changes results
 * belongs after this one in the list; to what is before, a result is JSON text.
 *
 * @example
 * const limit = MaxResponseSize.layer({ maxBytes: 256 * 1024 })
 */
import * as JsonRpc from "@skein/protocol/JsonRpc"
import type * as McpError from "@skein/protocol/McpError"
import type { Answer, RequestContext } from "@skein/runtime/RequestContext"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import type { Catalog } from "./Catalog.ts"
import type { DefinitionError } from "./DefinitionError.ts"
import * as captured from "./internal/definitions/captureServices.ts"
import { Written } from "./internal/observability/outcome.ts"
import * as refusal from "./internal/limits/failRequest.ts"
import * as Middleware from "./Middleware.ts"

/** The bound. */
export interface Options {
  /** The bytes of a result, in UTF-8: 4 MiB by default. */
  readonly maxBytes?: number | undefined
  /** The methods that it is about: `all` by default. */
  readonly methods?: Middleware.Methods | undefined
}

/** Limits how large a result may be. */
export const layer = (options: Options = {}): Layer.Layer<never, DefinitionError, Catalog> =>
  captured.layer<never>((catalog) => {
    const maxBytes = Math.max(0, options.maxBytes ?? 4 * 1024 * 1024)
    const counts = Middleware.includes(options.methods ?? "all")
    return catalog.middleware.add((next) => (exchange) =>
      counts(exchange.method)
        ? Effect.flatMap(next(exchange), (answer) => check(exchange, answer, maxBytes))
        : next(exchange)
    )
  })

const check = (
  exchange: RequestContext,
  answer: Answer,
  maxBytes: number
): Effect.Effect<Answer, McpError.McpError> => {
  // What has no JSON form is a defect, here as without a limit.
  const text: string | undefined = answer instanceof JsonRpc.Encoded ? answer.text : JSON.stringify(answer)
  // What is no object is found out by the exchange.
  if (text === undefined || !text.startsWith("{")) return Effect.succeed(answer)
  if (!exceeds(text, maxBytes)) {
    return Effect.succeed(answer instanceof JsonRpc.Encoded ? answer : new Written(text, answer))
  }
  const bytes = encoder.encode(text).byteLength
  const problem = `The result of ${
    refusal.describeRequest(exchange)
  } has ${bytes} bytes, and at most ${maxBytes} are sent`
  return refusal.failRequest(exchange, `${problem}. Ask for less`, { bytes, maxBytes })
}

const encoder = new TextEncoder()

/** A unit of UTF-16 is one to three bytes of UTF-8, so that the bytes are seldom counted. */
const exceeds = (text: string, maxBytes: number): boolean =>
  text.length > maxBytes || (text.length * 3 > maxBytes && encoder.encode(text).byteLength > maxBytes)
