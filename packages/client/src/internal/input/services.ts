/**
 * What a host may provide to be asked, as the client knows it. What answers is in the public modules of the same names,
 * so that a client loads nothing of it that its host does not use.
 */
import type * as Elicit from "@skein/protocol/Elicitation"
import * as McpError from "@skein/protocol/McpError"
import type { Root } from "@skein/protocol/Roots"
import type * as Sample from "@skein/protocol/Sampling"
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type * as Stream from "effect/Stream"
import { type InputRefused, InvalidResponse, Unsupported } from "../../ClientError.ts"
import type { RequestingServer } from "../../RequestingServer.ts"

/**
 * Why a question is not answered: what the server is told in the session era, and why the call fails in the request
 * era.
 */
export interface Refusal {
  readonly reason: typeof Unsupported | typeof InvalidResponse | typeof InputRefused
  readonly error: McpError.McpError
  readonly cause?: unknown
}

/** A question that may be put to the host, or why it may not. An answer that must not be sent is a defect. */
export type PreparedInput<A> = Result.Result<Effect.Effect<A, Refusal>, Refusal>

/** The server asked for what was not declared. */
export const unsupportedMethod = (method: string, what: string): PreparedInput<never> =>
  Result.fail({
    reason: Unsupported,
    error: McpError.methodNotFound(method, { reason: `Client does not have ${what} capability` })
  })

/** The server asked for something that it was not told it may. */
export const undeclaredFeature = (message: string): PreparedInput<never> =>
  Result.fail({ reason: Unsupported, error: McpError.invalidParams(message) })

/** The question breaks the rules. */
export const invalidRequest = (message: string): PreparedInput<never> =>
  Result.fail({ reason: InvalidResponse, error: McpError.invalidParams(message) })

/** What the user said to an address. */
export interface UrlConsent {
  readonly action: Elicit.ElicitResult["action"]
  readonly done?: Effect.Effect<unknown> | undefined
}

/** How the user is asked. */
export interface ElicitationHandler {
  /** Puts a form; absent where the host has none. `forms` is how many come with it, itself among them: 1 by default. */
  readonly form:
    | ((
      params: Elicit.ElicitRequestFormParams,
      asker: RequestingServer,
      forms?: number
    ) => PreparedInput<Elicit.ElicitResult>)
    | undefined
  /** Puts an address; absent where the host has none. `required` where a call waits for the end of the visit. */
  readonly url:
    | ((params: Elicit.ElicitRequestURLParams, asker: RequestingServer, required: boolean) => PreparedInput<UrlConsent>)
    | undefined
}

/** Answers `elicitation/create`. Made by `layer`. */
export class Elicitation extends Context.Service<Elicitation, ElicitationHandler>()("@skein/client/Elicitation") {}

/** How a language model is asked. */
export interface SamplingHandler {
  readonly tools: boolean
  readonly context: boolean
  readonly handle: (
    params: Sample.CreateMessageRequestParams,
    asker: RequestingServer
  ) => PreparedInput<Sample.CreateMessageResult>
}

/** Answers `sampling/createMessage`. Made by `layer`. */
export class Sampling extends Context.Service<Sampling, SamplingHandler>()("@skein/client/Sampling") {}

/** The places that the host works in. */
export interface RootsHandler {
  readonly list: (asker: RequestingServer) => Effect.Effect<ReadonlyArray<Root>>
  /** One element for each change, several that come at once may be one; absent where nothing changes. */
  readonly changes: Stream.Stream<unknown> | undefined
}

/** Answers `roots/list`. Made by `layer`, `layerStream` or `layerEffect`. */
export class Roots extends Context.Service<Roots, RootsHandler>()("@skein/client/Roots") {}
