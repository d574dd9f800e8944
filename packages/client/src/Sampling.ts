/**
 * Handlers for `sampling/createMessage`: the server asks the client's language model. Deprecated since 2026-07-28
 * (SEP-2577), but supported there.
 *
 * "For trust & safety and security, there SHOULD always be a human in the loop with the ability to deny sampling
 * requests." The handler is the place for that: it receives the request before the model does, and returns the response
 * before the server receives it.
 *
 * The handler "MAY modify or ignore" the system prompt, `includeContext`, `temperature`, `stopSequences` and
 * `metadata`. But "the client MUST respect the `maxTokens` parameter".
 *
 * For a language model of `effect/ai` use `LanguageModelSampling`.
 *
 * @example
 * const Asking = Sampling.layer((request) =>
 *   Effect.flatMap(approve(request), (yes) => yes ? askModel(request) : Effect.fail(new Sampling.SamplingRefused({}))))
 * const Live = Client.layer(transport).pipe(Layer.provide(Asking))
 */
import { InputRefused } from "./ClientError.ts"
import * as Codec from "@skein/protocol/Codec"
import * as McpError from "@skein/protocol/McpError"
import { CreateMessage } from "@skein/protocol/Method"
import * as Wire from "@skein/protocol/Sampling"
import { hasToolUse, problemOf } from "@skein/protocol/SamplingMessages"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import type { RequestingServer } from "./RequestingServer.ts"
import {
  captureServices,
  invalidRequest,
  type Refusal,
  Sampling,
  undeclaredFeature
} from "./internal/input/services.ts"

/** A sampling request, and the server that sent it. */
export interface Request extends Omit<Wire.CreateMessageRequestParams, "_meta" | "task"> {
  /** The server that requests input. Show it to the user. */
  readonly server: RequestingServer
}

/** The response of the model. */
export type Answer = Wire.CreateMessageResult

/**
 * The user refused the request, or refused to send the response. In a session the server receives an error with the
 * code `-1` and the message ("User rejected sampling request" by default). In 2026-07-28 the call fails with
 * `InputRefused`, and nothing is sent.
 */
export class SamplingRefused extends Data.TaggedError("SamplingRefused")<{ readonly message?: string | undefined }> {}

/** The options of sampling. */
export interface Options {
  /**
   * Whether requests may have tools, since 2025-11-25: false by default. With `false` a request with `tools` or
   * `toolChoice` is refused with `-32602` before the handler runs.
   */
  readonly tools?: boolean | undefined
  /**
   * Whether the handler supports `includeContext`, the context of this server and of others: false by default. With
   * `false` the member is removed from each request, as "the client MAY modify or ignore this field".
   */
  readonly context?: boolean | undefined
}

/**
 * Handles one request. A handler fails only with `SamplingRefused`. Convert other errors to it, or to a defect, which
 * is logged.
 */
export type Handler<R = never> = (request: Request) => Effect.Effect<Answer, SamplingRefused, R>

export { Sampling }

const refusal = (cause: SamplingRefused): Refusal => ({
  reason: InputRefused,
  // 2025-11-25, sampling, error handling: "User rejected sampling request: -1". Older revisions have the same example.
  error: McpError.other(-1, cause.message === "" ? "User rejected sampling request" : cause.message),
  cause
})

const unsent = (why: string) => Effect.die(new Error(`the response to ${CreateMessage.name} was not sent: ${why}`))

const check = (request: Request, answer: Answer): Effect.Effect<Answer> => {
  const read = Codec.decode(Wire.CreateMessageResult, "2026-07-28", answer, "result")
  if (Result.isFailure(read)) return unsent(read.failure)
  if (!hasToolUse(answer.content)) return Effect.succeed(answer)
  if (request.tools === undefined) return unsent("it uses a tool, but the request has no tools")
  // "`{mode: "none"}`: Model MUST NOT use any tools"
  return request.toolChoice?.mode === "none" ? unsent("it uses a tool, but toolChoice is none") : Effect.succeed(answer)
}

/**
 * Provides a handler. The services that it needs are captured when the layer is built; each request has a `Scope` of
 * its own. A response that is not a valid `CreateMessageResult`, that uses tools which the request does not have, or
 * that the revision does not support is logged and never sent.
 *
 * @example
 * const Asking = Sampling.layer((request) => askModel(request), { tools: true })
 */
export const layer = <R = never>(
  handler: Handler<R>,
  { context = false, tools = false }: Options = {}
): Layer.Layer<Sampling, never, Exclude<R, Scope.Scope>> =>
  Layer.effect(
    Sampling,
    Effect.map(captureServices<R>(), (provide) => ({
      tools,
      context,
      handle: (given, server) => {
        const { _meta: _, includeContext, task: __, ...params } = given
        // "The client MUST return an error if this field is provided but ClientCapabilities.sampling.tools is not
        // declared."
        if (!tools && (params.tools !== undefined || params.toolChoice !== undefined)) {
          return undeclaredFeature("The client did not declare sampling.tools")
        }
        const wrong = problemOf(params.messages)
        if (wrong !== undefined) return invalidRequest(wrong)
        const request: Request = {
          ...params,
          ...(context && includeContext !== undefined ? { includeContext } : undefined),
          server
        }
        const answered = Effect.mapError(provide(Effect.suspend(() => handler(request))), refusal)
        return Result.succeed(Effect.flatMap(answered, (answer) => check(request, answer)))
      }
    }))
  )
