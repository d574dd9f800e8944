/**
 * A size limit: how many bytes an encoded result may have. One limit applies to all tools of the server.
 *
 * A larger result is not sent. The call of a tool is answered with a result with `isError` instead, so that the model
 * can ask for less. Every other method is answered with `-32603`. Both messages contain the size. The result is encoded
 * once: the measured text is the one that is sent.
 *
 * Errors, notifications and input requests are not measured. List middleware that changes results after this one:
 * middleware before it receives results as JSON text.
 *
 * @example
 * const limit = MaxResponseSize.layer({ maxBytes: 256 * 1024 })
 */
import * as Json from "@skein/protocol/Json"
import * as JsonRpc from "@skein/protocol/JsonRpc"
import type * as McpError from "@skein/protocol/McpError"
import type { Answer, RequestContext } from "@skein/runtime/RequestContext"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import type { Catalog } from "./Catalog.ts"
import type { DefinitionError } from "./DefinitionError.ts"
import { internals } from "./internal/catalog/catalogState.ts"
import { registerLayer } from "./internal/handlers/captureServices.ts"
import { EncodedResult } from "./internal/base/outcome.ts"
import { describeRequest, failureAnswer } from "./internal/middleware/failureAnswer.ts"
import * as Middleware from "./Middleware.ts"

/** The limit, and the requests that it applies to. */
export interface Options {
  /** The largest result, in bytes of UTF-8: 4 MiB by default. */
  readonly maxBytes?: number | undefined
  /** The methods that the limit applies to: `all` by default. */
  readonly methods?: Middleware.Methods | undefined
}

/**
 * Limits how large a result may be.
 *
 * @example
 * MaxResponseSize.layer({ maxBytes: 256 * 1024, methods: ["tools/call", "resources/read"] })
 */
export const layer = (options: Options = {}): Layer.Layer<never, DefinitionError, Catalog> =>
  registerLayer<never>((catalog) => {
    const maxBytes = Math.max(0, options.maxBytes ?? 4 * 1024 * 1024)
    const appliesTo = Middleware.includes(options.methods ?? "all")
    return catalog[internals].middleware.add((next) => (request) =>
      appliesTo(request.method)
        ? Effect.flatMap(next(request), (answer) => check(request, answer, maxBytes))
        : next(request)
    )
  })

const check = (
  request: RequestContext,
  answer: Answer,
  maxBytes: number
): Effect.Effect<Answer, McpError.McpError> => {
  // A result without a JSON form is a defect, with or without a limit.
  const text: string | undefined = answer instanceof JsonRpc.Encoded ? answer.text : Json.stringify(answer)
  // A result that is not an object is refused later, where all results are.
  if (text === undefined || !text.startsWith("{")) return Effect.succeed(answer)
  if (!exceeds(text, maxBytes)) {
    return Effect.succeed(answer instanceof JsonRpc.Encoded ? answer : new EncodedResult(text, answer))
  }
  const bytes = encoder.encode(text).byteLength
  const problem = `The result of ${describeRequest(request)} has ${bytes} bytes, more than the maximum of ${maxBytes}`
  return failureAnswer(request, `${problem}. Ask for less`, { bytes, maxBytes })
}

const encoder = new TextEncoder()

/** A UTF-16 unit has one to three bytes in UTF-8, so most texts need no exact count. */
const exceeds = (text: string, maxBytes: number): boolean =>
  text.length > maxBytes || (text.length * 3 > maxBytes && encoder.encode(text).byteLength > maxBytes)
