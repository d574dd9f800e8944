/**
 * Answers a server that asks the host's language model, `sampling/createMessage`. Deprecated since 2026-07-28
 * (SEP-2577), where it still works.
 *
 * ```ts
 * const Asking = Sampling.layer((request) =>
 *   Effect.flatMap(approve(request), (yes) => yes ? askModel(request) : Effect.fail(new Sampling.SamplingRefused({}))))
 * const Live = Client.layer(transport).pipe(Layer.provide(Asking))
 * ```
 *
 * "For trust & safety and security, there SHOULD always be a human in the loop with the ability to deny sampling
 * requests." The handler is where they stand: it sees the request before the model does, and the answer before the
 * server.
 *
 * What a handler is told is a wish of the server's: it "MAY modify or ignore" the system prompt, `includeContext`,
 * `temperature`, `stopSequences` and `metadata`. But "the client MUST respect the `maxTokens` parameter".
 *
 * A language model of `effect/ai` answers with `LanguageModelSampling`.
 */
import { InputRefused } from "./ClientError.ts"
import * as Codec from "@skein/protocol/Codec"
import * as McpError from "@skein/protocol/McpError"
import { CreateMessage } from "@skein/protocol/Method"
import * as Wire from "@skein/protocol/Sampling"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import type { RequestingServer } from "./RequestingServer.ts"
import { capture, type Needed } from "./internal/input/captured.ts"
import { imbalance, usesTools } from "./internal/input/messages.ts"
import { malformed, type Refusal, Sampling, unasked } from "./internal/input/services.ts"

/** What the model is asked, and by whom. */
export interface Request extends Omit<Wire.CreateMessageRequestParams, "_meta" | "task"> {
  /** Who asks. Show it to the user. */
  readonly server: RequestingServer
}

/** What the model answered. */
export type Answer = Wire.CreateMessageResult

/**
 * The user does not want the model to be asked, or the server to have its answer. In the session era the server is told
 * so, with the code `-1` and the message ("User rejected sampling request" by default); in the request era the call
 * fails with `InputRefused`, and the server hears nothing.
 */
export class SamplingRefused extends Data.TaggedError("SamplingRefused")<{ readonly message?: string | undefined }> {}

/** What else the host can do. */
export interface Options {
  /**
   * Whether the model may be given tools, since 2025-11-25: false by default. Then a request that has `tools` or a
   * `toolChoice` is refused with `-32602`, and no handler sees it.
   */
  readonly tools?: boolean | undefined
  /**
   * Whether the model may be given what the host knows from this server and others: false by default. Then
   * `includeContext` is taken out of every request, as "the client MAY modify or ignore this field".
   */
  readonly context?: boolean | undefined
}

/**
 * Answers one request. What else may go wrong in a handler it has to make a refusal of, or a defect, which is logged.
 */
export type Handler<R = never> = (request: Request) => Effect.Effect<Answer, SamplingRefused, R>

export { Sampling }

const refusal = (cause: SamplingRefused): Refusal => ({
  reason: InputRefused,
  // 2025-11-25, sampling, error handling: "User rejected sampling request: -1". Older revisions show the same.
  error: McpError.other(-1, cause.message === "" ? "User rejected sampling request" : cause.message),
  cause
})

const unsent = (why: string) => Effect.die(new Error(`The host's answer to ${CreateMessage.name} was not sent: ${why}`))

const check = (request: Request, answer: Answer): Effect.Effect<Answer> => {
  const read = Codec.decode(Wire.CreateMessageResult, "2026-07-28", answer, "result")
  if (Result.isFailure(read)) return unsent(read.failure)
  if (!usesTools(answer.content)) return Effect.succeed(answer)
  if (request.tools === undefined) return unsent("it uses a tool, and the request has none")
  // "`{mode: "none"}`: Model MUST NOT use any tools"
  return request.toolChoice?.mode === "none" ? unsent("it uses a tool, and none may be used") : Effect.succeed(answer)
}

/**
 * Answers with a handler. What it needs besides a scope, of which each request has its own, is captured here. An answer
 * that is no `CreateMessageResult`, that uses tools where there are none, or that the revision cannot carry, is never
 * sent.
 */
export const layer = <R = never>(
  handler: Handler<R>,
  { context = false, tools = false }: Options = {}
): Layer.Layer<Sampling, never, Needed<R>> =>
  Layer.effect(
    Sampling,
    Effect.map(capture<R>(), (provide) => ({
      tools,
      context,
      put: (given, asker) => {
        const { _meta: _, includeContext, task: __, ...params } = given
        // "The client MUST return an error if this field is provided but ClientCapabilities.sampling.tools is not
        // declared."
        if (!tools && (params.tools !== undefined || params.toolChoice !== undefined)) {
          return unasked("The client did not declare sampling.tools")
        }
        const wrong = imbalance(params.messages)
        if (wrong !== undefined) return malformed(wrong)
        const request: Request = {
          ...params,
          ...(context && includeContext !== undefined ? { includeContext } : undefined),
          server: asker
        }
        const answered = Effect.mapError(provide(Effect.suspend(() => handler(request))), refusal)
        return Result.succeed(Effect.flatMap(answered, (answer) => check(request, answer)))
      }
    }))
  )
