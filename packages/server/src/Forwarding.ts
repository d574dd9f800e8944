/**
 * Functions for a server that stands before another server: they pass on to the client of a request what the other
 * server asks and logs while it handles that request.
 *
 * A server with handlers of its own uses `Elicitation`, `Sampling`, `Roots` and Effect's logging instead.
 *
 * @example
 * const answer = yield* Forwarding.inputRequest({ method: "roots/list" }, { key: "roots" })
 */
import type { InputRequest, InputResponse } from "@skein/protocol/InputRequired"
import type { LoggingMessageNotificationParams } from "@skein/protocol/Logging"
import type { CallOptions, McpRequest, RequestContext } from "@skein/runtime/RequestContext"
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import * as Catalog from "./Catalog.ts"
import type { InputError } from "./InputError.ts"
import * as inputs from "./internal/input/inputRequests.ts"
import { requestInput } from "./internal/input/requestInput.ts"
import { CurrentForwarder } from "./internal/base/logs.ts"

/** Options of a forwarded input request: `timeout`, and `key` of the stateless revision. See `Elicitation.Options`. */
export type Options = Pick<CallOptions, "key" | "timeout">

/**
 * Sends an input request of another server to the client of the present request, in the form of the client's revision,
 * and returns the client's response as it is. The params are those of the newest revision.
 *
 * Fails with `InputError`, as `Elicitation.form`, `Elicitation.url`, `Sampling.createMessage` and `Roots.list` do. A form
 * that the user declined is a response, not a failure.
 */
export const inputRequest = (
  question: InputRequest,
  options?: Options
): Effect.Effect<InputResponse, InputError, McpRequest> => {
  switch (question.method) {
    case "roots/list":
      return requestInput(inputs.listRoots(question.params), options)
    case "sampling/createMessage":
      return requestInput(inputs.createMessage(question.params), options, true)
    case "elicitation/create": {
      const { params } = question
      // Only 2025-11-25 has the id, and requires it.
      const input = params.mode === "url"
        ? inputs.elicitUrl({ elicitationId: globalThis.crypto.randomUUID(), ...params })
        : inputs.elicitForm(params)
      return requestInput(input, options, true)
    }
  }
}

/**
 * Sends a log message of another server to the client of a request (`notifications/message`), if the client has
 * requested its level and this server declares `logging`. The data is cut at `maxChars` of `Logging.Options`. It
 * does not wait: while the client is slow to read, messages are dropped and counted.
 *
 * @example
 * Forwarding.logMessage(catalog, request, { level: "warning", logger: "index", data: "The index is stale" })
 */
export const logMessage = (
  catalog: Catalog.Catalog["Service"],
  request: RequestContext,
  message: LoggingMessageNotificationParams
): void => Context.getOrUndefined(Catalog.requestServices(catalog), CurrentForwarder)?.forward(request, message)
