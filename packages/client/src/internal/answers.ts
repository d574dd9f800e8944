/**
 * What the host answers when a server asks: in the session era as requests, in the request era inside results.
 */
import type { ClientCapabilities } from "@skein/protocol/Capabilities"
import type { InputRequests, InputResponses } from "@skein/protocol/InputRequired"
import type { JsonObject } from "@skein/protocol/JsonRpc"
import * as McpError from "@skein/protocol/McpError"
import type { Dispatcher } from "@skein/runtime/Exchange"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { ClientError } from "../ClientError.ts"
import type { Line } from "./line.ts"

/** See the module's text. */
export interface Answers {
  /** What is declared: what is provided. */
  readonly capabilities: ClientCapabilities
  /** Answers the requests of the server, in the session era. */
  readonly dispatch: Dispatcher
  /** Answers the questions of an `input_required`, in parallel, for the sake of one request. */
  readonly fulfil: (
    line: Line,
    method: string,
    questions: InputRequests
  ) => Effect.Effect<InputResponses, ClientError>
  /** Runs for each connection, once the handshake is over: what has to be told while it lasts. */
  readonly opened: (line: Line) => Effect.Effect<void, never, Scope.Scope>
}

const unsupported = (method: string, questions: InputRequests): ClientError => {
  const asked = [...new Set(Object.values(questions).map((question) => question.method))].join(", ")
  const message = `The server wants ${asked} before it answers ${method}`
  return new ClientError({ reason: "Unsupported", method, message })
}

/** The answers that the services of the host give. */
export const make: Effect.Effect<Answers> = Effect.sync(() => ({
  capabilities: {},
  dispatch: (exchange): Effect.Effect<JsonObject, McpError.McpError> =>
    exchange.method === "ping" ? Effect.succeed({}) : Effect.fail(McpError.methodNotFound(exchange.method)),
  fulfil: (_, method, questions) => Effect.fail(unsupported(method, questions)),
  opened: () => Effect.void
}))
