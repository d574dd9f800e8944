/**
 * Handles the input requests of servers: JSON-RPC requests in sessions, and members of an `InputRequiredResult` in
 * 2026-07-28.
 */
import type { ClientCapabilities } from "@skein/protocol/Capabilities"
import * as Codec from "@skein/protocol/Codec"
import type { InputRequest, InputRequests, InputResponse, InputResponses } from "@skein/protocol/InputRequired"
import * as JsonRpc from "@skein/protocol/JsonRpc"
import { relatedTask } from "@skein/protocol/LegacyTask"
import * as McpError from "@skein/protocol/McpError"
import * as Method from "@skein/protocol/Method"
import type { Dispatcher, RequestContext } from "@skein/runtime/RequestContext"
import * as Limits from "@skein/runtime/Limits"
import type { Peer } from "@skein/runtime/Peer"
import * as Cause from "effect/Cause"
import type * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { type ClientError, InputRefused, LimitExceeded } from "../../ClientError.ts"
import {
  capabilitiesOf,
  concernsTasks,
  handleInputRequest,
  handlersFrom,
  type InputHandlers,
  inputRequestConcurrency,
  isAboutTasks,
  maxInputRequests,
  refusalOf as unanswered,
  requestingServerOf,
  taskCapabilityOf
} from "../input/handlers.ts"
import type { Refusal } from "../input/services.ts"
import { clientError } from "../base/errors.ts"
import type { NegotiatedConnection } from "./connection.ts"
import type { Options } from "./clientOptions.ts"
import { Visits } from "../input/visits.ts"
import type { Tasks } from "../input/legacyTasks/tasks.ts"
import { quote } from "@skein/protocol/Text"

/** The members of a connection that input is requested on. */
type InputConnection = Pick<NegotiatedConnection, "agreement" | "isStateless" | "peer" | "revision">

const inputMethods: ReadonlyMap<string, Method.AnyRequest> = new Map(
  [Method.CreateMessage, Method.ListRoots, Method.Elicit].map((method) => [method.name, method as Method.AnyRequest])
)

/** The params without `task`. */
const withoutTask = (params: JsonRpc.JsonObject): JsonRpc.JsonObject => {
  const { task: _, ...rest } = params
  return rest
}

/**
 * The key that links a request to a task of the server, which the response must repeat: "All requests, notifications,
 * and responses related to a task MUST include the `io.modelcontextprotocol/related-task` key" (2025-11-25, tasks).
 */
const relatedOf = ({ caller, params }: RequestContext): JsonRpc.JsonObject | undefined => {
  const meta = params?.["_meta"]
  if (caller.revision !== "2025-11-25" || !JsonRpc.isObject(meta) || !Object.hasOwn(meta, relatedTask)) return undefined
  return { _meta: { [relatedTask]: meta[relatedTask] } }
}

/** The request of this client on whose stream a request of the server arrived. */
const requestIdOf = ({ origin }: RequestContext): number | undefined =>
  typeof origin?.about === "number" ? origin.about : undefined

/** The effect that answers a request, or why the request is refused before the host receives it. */
type Ready = Result.Result<Effect.Effect<JsonRpc.JsonObject, McpError.McpError>, McpError.McpError>

const refuse = (error: McpError.McpError): Ready => Result.fail(error)

/** Validates a request of the server, and returns the effect of its response. */
const prepare = (services: InputHandlers, request: RequestContext, declared: boolean): Ready => {
  const { caller: { info, revision }, method: name, params } = request
  const method = Method.request(name, revision) === undefined ? undefined : inputMethods.get(name)
  if (method === undefined) return refuse(McpError.methodNotFound(name))
  const refused = unanswered(services, name as InputRequest["method"])
  if (refused !== undefined && Result.isFailure(refused)) return refuse(refused.failure.error)
  // "Receivers that do not declare the task capability for a request type MUST process requests of that type normally,
  // ignoring any task-augmentation metadata if present."
  const given = declared || params === undefined || !Object.hasOwn(params, "task") ? params : withoutTask(params)
  const read = Codec.decodeParams(method, revision, given)
  if (Result.isFailure(read)) return refuse(McpError.invalidParams(read.failure))
  const question = { method: name, params: read.success } as InputRequest
  const related = relatedOf(request)
  return Result.mapBoth(
    handleInputRequest(
      services,
      question,
      requestingServerOf(services, info, revision, undefined, requestIdOf(request))
    ),
    {
      onFailure: ({ error }) => error,
      onSuccess: (asked) =>
        Effect.flatMap(Effect.mapError(asked, ({ error }) => error), (result) => {
          const written = Codec.encodeResult(method, revision, result)
          if (Result.isFailure(written)) return Effect.die(written.failure)
          // The result of an object is an object.
          const answer = written.success as JsonRpc.JsonObject
          return Effect.succeed(related === undefined ? answer : { ...answer, ...related })
        })
    }
  )
}

interface InputContext {
  readonly key: string
  readonly question: InputRequest
  readonly method: string
}

// The server receives "method not found". The error of the call names the missing service.
const serviceNames: Readonly<Record<InputRequest["method"], string>> = {
  "elicitation/create": "Elicitation",
  "roots/list": "Roots",
  "sampling/createMessage": "Sampling"
}

const callError = ({ key, method, question }: InputContext, { cause, error, reason: Reason }: Refusal): ClientError => {
  const asked = `${quote(key)} (${question.method})`
  const why = error.reason === "MethodNotFound"
    ? `the client was made without the service ${serviceNames[question.method]}`
    : error.message
  const message = `${method} requires input ${asked}: ${why}`
  return clientError(Reason, message, method, cause)
}

/** The key of an input request, and the effect that handles it. */
export type ReadyReply = readonly [key: string, reply: Effect.Effect<InputResponse, ClientError>]

/** Handles one input request of a result. A defect of the handler is logged and fails the call. */
const reply = (
  asked: InputContext,
  effect: Effect.Effect<InputResponse, Refusal>
): Effect.Effect<InputResponse, ClientError> =>
  effect.pipe(
    Effect.mapError((refusal) => callError(asked, refusal)),
    Effect.catchCauseIf(
      (cause) => !Cause.hasFails(cause),
      (cause) =>
        Effect.andThen(
          Effect.logError(`${asked.question.method} for ${asked.method} failed`, cause),
          Effect.fail(callError(asked, {
            reason: InputRefused,
            error: McpError.internal(),
            cause: Cause.squash(cause)
          }))
        )
    )
  )

/** Handles the input requests of one client. */
export class InputRequestHandler {
  readonly #services: InputHandlers
  readonly #options: Options
  #visits: Visits | undefined = undefined
  // The input requests that were sent as tasks on the connection that the client has now.
  #tasks: Tasks | undefined = undefined

  /** Uses the handlers in the context. */
  constructor(context: Context.Context<never>, options: Options) {
    this.#services = handlersFrom(context, options.label)
    this.#options = options
  }

  /** The capabilities of the provided handlers. */
  get capabilities(): ClientCapabilities {
    const tasks = this.#options.taskReceiver === false ? undefined : taskCapabilityOf(this.#services)
    const capabilities = capabilitiesOf(this.#services)
    return tasks === undefined ? capabilities : { ...capabilities, tasks }
  }

  /** Handles a request of the server in a session. */
  dispatch(request: RequestContext, peer: Peer): ReturnType<Dispatcher> {
    if (request.method === "ping") return Effect.succeed({})
    const { taskReceiver = true } = this.#options
    const concerns = taskReceiver && concernsTasks(this.#services, request)
    if (concerns && isAboutTasks(request.method)) {
      return Effect.flatMap(this.#tasksOf(peer), (tasks) => tasks.answer(request))
    }
    const asked = prepare(this.#services, request, taskReceiver)
    if (Result.isFailure(asked)) return Effect.fail(asked.failure)
    return concerns
      ? Effect.flatMap(this.#tasksOf(peer), (tasks) => tasks.create(request, asked.success))
      : asked.success
  }

  /** The tasks of a connection. Their module is loaded when the first one arrives. */
  #tasksOf(peer: Peer): Effect.Effect<Tasks> {
    return Effect.suspend(() => {
      if (this.#tasks?.peer === peer) return Effect.succeed(this.#tasks)
      return Effect.flatMap(Effect.promise(() => import("../input/legacyTasks/tasks.ts")), ({ make }) =>
        // Another request may have created it in the meantime.
        this.#tasks?.peer === peer ? Effect.succeed(this.#tasks) : Effect.map(make(peer), (tasks) => {
          this.#tasks = tasks
          return tasks
        }))
    })
  }

  /** Whether a handler runs for a task of the server, while no request of the server is open. */
  hasRunningTask(peer: Peer): boolean {
    return this.#tasks?.peer === peer && this.#tasks.isRunning()
  }

  /** Handles the input requests of one result in parallel, within the bounds. */
  handleAll(
    connection: InputConnection,
    method: string,
    questions: InputRequests
  ): Effect.Effect<InputResponses, ClientError> {
    const count = Object.keys(questions).length
    if (count > maxInputRequests) {
      const message = `The result of ${method} has ${count} input requests, more than ${maxInputRequests}`
      return Effect.fail(clientError(LimitExceeded, message, method))
    }
    const ready = this.ready(connection, method, questions, count)
    if (Result.isFailure(ready)) return Effect.fail(ready.failure)
    const replies = Effect.forEach(
      ready.success,
      ([key, reply]) => Effect.map(reply, (answer) => [key, answer] as const),
      { concurrency: inputRequestConcurrency }
    )
    // Entries define own members, so that a key may be `__proto__`.
    return Effect.map(replies, (answers) => Object.fromEntries(answers))
  }

  /**
   * Validates input requests, `count` of which are open, and returns the effects that handle them. All of them are
   * validated before the first one runs, so that the user is not asked when another request makes the call fail.
   */
  ready(
    connection: InputConnection,
    method: string,
    questions: InputRequests,
    count: number
  ): Result.Result<ReadonlyArray<ReadyReply>, ClientError> {
    const server = requestingServerOf(this.#services, connection.agreement.info, connection.revision, method)
    const replies: Array<ReadyReply> = []
    for (const [key, question] of Object.entries(questions)) {
      const asked = { key, question, method }
      const ready = handleInputRequest(this.#services, question, server, count)
      if (Result.isFailure(ready)) return Result.fail(callError(asked, ready.failure))
      replies.push([key, reply(asked, ready.success)])
    }
    return Result.succeed(replies)
  }

  /** Whether there is a handler for URLs. */
  get visitsUrls(): boolean {
    return this.#services.elicitation?.url !== undefined
  }

  /**
   * Handles a call that failed until a URL has been visited, with a handler for URLs. Returns whether the call may be
   * repeated.
   */
  visitUrls(
    { agreement, revision }: InputConnection,
    method: string,
    error: McpError.McpError,
    maxTimeout: Duration.Input | undefined
  ): Effect.Effect<boolean> {
    return (this.#visits ??= new Visits()).awaitAll(
      this.#services.elicitation!.url!,
      error,
      requestingServerOf(this.#services, agreement.info, revision, method),
      maxTimeout ?? Limits.resolve(this.#options.limits).maxTimeout
    )
  }

  /** Handles each notification of the server. */
  onNotification(notification: JsonRpc.Notification): void {
    this.#visits?.onNotification(notification)
  }

  /**
   * Runs for each connection after the handshake. It notifies the server of changed roots while the connection is open.
   */
  opened({ isStateless, peer }: InputConnection): Effect.Effect<void, never, Scope.Scope> {
    const { changes } = this.#services.roots ?? {}
    return isStateless || changes === undefined
      ? Effect.void
      : Effect.asVoid(Effect.forkScoped(
        Stream.runForEach(changes, () => peer.notify(Method.RootsListChanged.name)),
        { startImmediately: true }
      ))
  }
}
