/**
 * Passes input requests of a server to the handlers of the services `Elicitation`, `Sampling` and `Roots`.
 */
import type * as Capabilities from "@skein/protocol/Capabilities"
import type { ElicitRequestParams } from "@skein/protocol/Elicitation"
import type { InputRequest, InputResponse } from "@skein/protocol/InputRequired"
import { isObject, type JsonObject } from "@skein/protocol/JsonRpc"
import * as Method from "@skein/protocol/Method"
import type { Revision } from "@skein/protocol/Revision"
import type { RequestContext } from "@skein/runtime/RequestContext"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { RequestingServer } from "../../RequestingServer.ts"
import { implementationOf } from "../base/serverInfo.ts"
import {
  Elicitation,
  type ElicitationHandler,
  type PreparedInput,
  Roots,
  type RootsHandler,
  Sampling,
  type SamplingHandler,
  undeclaredFeature,
  unsupportedMethod
} from "./services.ts"

/**
 * How many input requests one response may contain. A request whose response has more fails with `LimitExceeded`, and the
 * host receives none of them. An error that lists more URLs to visit than that (2025-11-25, `-32042`) is passed on
 * unchanged.
 */
export const maxInputRequests = 32

/**
 * How many input requests of one response are passed to the host at the same time. The others wait until one of them is
 * answered. Input requests that a server of a session-based revision sends as requests are bounded by
 * `limits.maxInFlightRequests`.
 */
export const inputRequestConcurrency = 8

/** The handlers of a client, and its label for the server. */
export interface InputHandlers {
  readonly label: string | undefined
  readonly elicitation: ElicitationHandler | undefined
  readonly sampling: SamplingHandler | undefined
  readonly roots: RootsHandler | undefined
}

// Most clients have no handlers and share this value.
const nothing: InputHandlers = { label: undefined, elicitation: undefined, sampling: undefined, roots: undefined }

/** The handlers in the context in which a client is made. */
export const handlersFrom = (context: Context.Context<never>, label: string | undefined): InputHandlers => {
  const elicitation = Context.getOrUndefined(context, Elicitation)
  const sampling = Context.getOrUndefined(context, Sampling)
  const roots = Context.getOrUndefined(context, Roots)
  return label === undefined && elicitation === undefined && sampling === undefined && roots === undefined
    ? nothing
    : { label, elicitation, sampling, roots }
}

const elicits = (elicitation: ElicitationHandler | undefined): elicitation is ElicitationHandler =>
  elicitation?.form !== undefined || elicitation?.url !== undefined

/** The capabilities of the handlers, in the form of the newest revision. */
export const capabilitiesOf = ({ elicitation, roots, sampling }: InputHandlers): Capabilities.ClientCapabilities => ({
  ...(roots === undefined ? undefined : { roots: roots.changes === undefined ? {} : { listChanged: true } }),
  ...(sampling === undefined ? undefined : {
    sampling: { ...(sampling.tools ? { tools: {} } : undefined), ...(sampling.context ? { context: {} } : undefined) }
  }),
  // "Clients declaring the `elicitation` capability MUST support at least one mode (`form` or `url`)."
  ...(!elicits(elicitation) ? undefined : {
    elicitation: {
      ...(elicitation.form === undefined ? undefined : { form: {} }),
      ...(elicitation.url === undefined ? undefined : { url: {} })
    }
  })
})

/**
 * The capability of handlers whose requests may be sent as tasks (2025-11-25): "The set of capabilities in
 * `capabilities.tasks.requests` is exhaustive."
 */
export const taskCapabilityOf = (
  { elicitation, sampling }: InputHandlers
): Capabilities.ClientTasksCapability | undefined =>
  sampling === undefined && !elicits(elicitation) ? undefined : {
    list: {},
    cancel: {},
    requests: {
      ...(sampling === undefined ? undefined : { sampling: { createMessage: {} } }),
      ...(elicits(elicitation) ? { elicitation: { create: {} } } : undefined)
    }
  }

const taskMethods: ReadonlySet<string> = new Set(
  [Method.LegacyGetTask, Method.LegacyGetTaskPayload, Method.LegacyListTasks, Method.LegacyCancelTask]
    .map(({ name }) => name)
)

/** Whether a method is about a task that the server has created here (2025-11-25). */
export const isAboutTasks = (method: string): boolean => taskMethods.has(method)

/** Whether a request creates a task or is about one, as the client declared. */
export const concernsTasks = (
  { elicitation, sampling }: InputHandlers,
  { caller, method, params }: RequestContext
): boolean => {
  if (caller.revision !== "2025-11-25") return false
  switch (method) {
    case Method.CreateMessage.name:
      return sampling !== undefined && isObject(params?.["task"])
    case Method.Elicit.name:
      return elicits(elicitation) && isObject(params?.["task"])
    default:
      return isAboutTasks(method) && (sampling !== undefined || elicits(elicitation))
  }
}

/** The server that requests input, as handlers receive it. */
export const requestingServerOf = (
  { label }: InputHandlers,
  info: JsonObject | undefined,
  revision: Revision,
  method: string | undefined,
  requestId?: number
): RequestingServer => ({
  label,
  info: info === undefined ? undefined : implementationOf(info, revision),
  revision,
  method,
  ...(requestId === undefined ? undefined : { requestId })
})

const elicit = (
  forms: ElicitationHandler | undefined,
  params: ElicitRequestParams,
  server: RequestingServer,
  count: number
): PreparedInput<InputResponse> => {
  const { name } = Method.Elicit
  if (!elicits(forms)) return unsupportedMethod(name, "elicitation")
  // "Server sends an `elicitation/create` request with a mode not declared in client capabilities: `-32602` (Invalid
  // params)"
  if (params.mode === "url") {
    return forms.url === undefined
      ? undeclaredFeature("The client did not declare elicitation.url")
      : Result.map(forms.url(params, server, false), (visit) => Effect.map(visit, ({ action }) => ({ action })))
  }
  if (forms.form !== undefined) return forms.form(params, server, count)
  // Before 2025-11-25 a client with only URL mode declares no elicitation.
  return server.revision < "2025-11-25"
    ? unsupportedMethod(name, "elicitation")
    : undeclaredFeature("The client did not declare elicitation.form")
}

const capabilityOf: Readonly<Record<InputRequest["method"], Exclude<keyof InputHandlers, "label">>> = {
  "elicitation/create": "elicitation",
  "roots/list": "roots",
  "sampling/createMessage": "sampling"
}

/** The refusal of a method without a handler. Checked before the params are decoded. */
export const refusalOf = (
  handlers: InputHandlers,
  method: InputRequest["method"]
): PreparedInput<never> | undefined => {
  const capability = capabilityOf[method]
  return handlers[capability] === undefined ? unsupportedMethod(method, capability) : undefined
}

/** Validates one of `count` input requests that arrived together, and returns the effect that handles it. */
export const handleInputRequest = (
  services: InputHandlers,
  question: InputRequest,
  server: RequestingServer,
  count = 1
): PreparedInput<InputResponse> => {
  const refused = refusalOf(services, question.method)
  if (refused !== undefined) return refused
  switch (question.method) {
    case "sampling/createMessage":
      return services.sampling!.handle(question.params, server)
    case "roots/list":
      return Result.succeed(Effect.map(services.roots!.list(server), (roots) => ({ roots })))
    case "elicitation/create":
      return elicit(services.elicitation, question.params, server, count)
  }
}
