/**
 * The services of input handlers. Their implementations are in the public modules of the same names, so that a client
 * loads only those that its program uses.
 */
import type * as Elicit from "@skein/protocol/Elicitation"
import * as McpError from "@skein/protocol/McpError"
import type { Root } from "@skein/protocol/Roots"
import type * as Sample from "@skein/protocol/Sampling"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import * as Scope from "effect/Scope"
import type * as Stream from "effect/Stream"
import * as Tracer from "effect/Tracer"
import { type InputRefused, InvalidResponse, Unsupported } from "../../ClientError.ts"
import type { RequestingServer } from "../../RequestingServer.ts"

/**
 * The refusal of an input request: `error` is the response to the server in a session, `reason` the error of the call
 * in 2026-07-28.
 */
export interface Refusal {
  readonly reason: typeof Unsupported | typeof InvalidResponse | typeof InputRefused
  readonly error: McpError.McpError
  readonly cause?: unknown
}

/** The effect that handles a valid input request, or its refusal. A response that must not be sent is a defect. */
export type PreparedInput<A> = Result.Result<Effect.Effect<A, Refusal>, Refusal>

/** The server sent a method whose capability the client did not declare. */
export const unsupportedMethod = (method: string, what: string): PreparedInput<never> =>
  Result.fail({
    reason: Unsupported,
    error: McpError.methodNotFound(method, { reason: `Client does not have ${what} capability` })
  })

/** The server used a feature of a method that the client did not declare. */
export const undeclaredFeature = (message: string): PreparedInput<never> =>
  Result.fail({ reason: Unsupported, error: McpError.invalidParams(message) })

/** The request is not valid. */
export const invalidRequest = (message: string): PreparedInput<never> =>
  Result.fail({ reason: InvalidResponse, error: McpError.invalidParams(message) })

/** The user's response to a URL. */
export interface UrlConsent {
  readonly action: Elicit.ElicitResult["action"]
  readonly done?: Effect.Effect<unknown> | undefined
}

/** The handlers of `elicitation/create`. */
export interface ElicitationHandler {
  /** Handles a form. `forms` is the number of forms in the same result: 1 by default. */
  readonly form:
    | ((
      params: Elicit.ElicitRequestFormParams,
      server: RequestingServer,
      forms?: number
    ) => PreparedInput<Elicit.ElicitResult>)
    | undefined
  /** Handles a URL. `required` if a call waits for the visit. */
  readonly url:
    | ((
      params: Elicit.ElicitRequestURLParams,
      server: RequestingServer,
      required: boolean
    ) => PreparedInput<UrlConsent>)
    | undefined
}

/** The service of elicitation handlers. Provided by `layer`. */
export class Elicitation extends Context.Service<Elicitation, ElicitationHandler>()("@skein/client/Elicitation") {}

/** The handler of `sampling/createMessage`. */
export interface SamplingHandler {
  readonly tools: boolean
  readonly context: boolean
  readonly handle: (
    params: Sample.CreateMessageRequestParams,
    server: RequestingServer
  ) => PreparedInput<Sample.CreateMessageResult>
}

/** The service of the sampling handler. Provided by `layer`. */
export class Sampling extends Context.Service<Sampling, SamplingHandler>()("@skein/client/Sampling") {}

/** The handler of `roots/list`. */
export interface RootsHandler {
  readonly list: (server: RequestingServer) => Effect.Effect<ReadonlyArray<Root>, Refusal>
  /** An element for each change, or for several at once. `undefined` if the roots never change. */
  readonly changes: Stream.Stream<unknown> | undefined
}

/** The service of the roots handler. Provided by `layer`, `layerStream` or `layerEffect`. */
export class Roots extends Context.Service<Roots, RootsHandler>()("@skein/client/Roots") {}

/**
 * Captures the services of handlers when their layer is built, except for those that belong to building it: its scope,
 * memo map and parent span. Returns a function that provides the services to a handler, with a scope of its own.
 */
export const captureServices = <R>(): Effect.Effect<
  <A, E>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E>,
  never,
  Exclude<R, Scope.Scope>
> =>
  Effect.map(Effect.context<Exclude<R, Scope.Scope>>(), (context) => {
    const services = Context.omit(Scope.Scope, Layer.CurrentMemoMap, Tracer.ParentSpan)(
      context as Context.Context<never>
    ) as Context.Context<Exclude<R, Scope.Scope>>
    return <A, E>(effect: Effect.Effect<A, E, R>) =>
      Effect.provideContext(Effect.scoped(effect), services) as Effect.Effect<A, E>
  })
