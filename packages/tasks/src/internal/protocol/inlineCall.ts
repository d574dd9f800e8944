/**
 * A call that waits for the result of its task, for clients without tasks and for calls that do not become tasks.
 *
 * It reports the progress of the task, and asks the task's questions as its own. When the client cancels the call, the
 * task is cancelled; when the server stops, it is not, and its questions stay open. Since 2026-07-28 the client calls
 * again with its answers: the round keeps the id of the task. No other client has the id, so the task is deleted soon
 * after its result.
 *
 * With `TaskTools`, the call of a client without tasks waits for a while, and then returns the status of the task and how
 * to continue.
 */
import type { CallToolResult } from "@skein/protocol/CallTool"
import * as Capabilities from "@skein/protocol/Capabilities"
import type { ErrorObject, JsonObject } from "@skein/protocol/JsonRpc"
import { related } from "@skein/protocol/LegacyTask"
import * as McpError from "@skein/protocol/McpError"
import * as Revision from "@skein/protocol/Revision"
import type { Caller, RequestContext } from "@skein/runtime/RequestContext"
import type { RequestError } from "@skein/runtime/RequestError"
import * as Content from "@skein/server/Content"
import type { ToolCall, ToolCallResult } from "@skein/server/Extension"
import * as Logging from "@skein/server/Logging"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { isFinal, type Question, type State } from "../../TaskState.ts"
import { makeRefusal } from "../engine/taskRequest.ts"
import { NotStarted } from "./beforeTask.ts"
import { canAsk } from "./inputCapability.ts"
import { describeTask } from "./taskDescription.ts"
import { cancelUnwanted, type ModelTools, type TaskService, withMcpErrors } from "./taskService.ts"
import * as wire from "./wire.ts"

/** The key under which a round of the stateless revision remembers the task. */
const onceKey = "@skein/tasks"

/** Starts the task of a prepared call, or returns the task that an earlier round has started. */
const startTask = (
  tasks: TaskService["Service"],
  call: ToolCall,
  args: JsonObject,
  tools: ModelTools | undefined
): Effect.Effect<string, McpError.McpError> => {
  const { request } = call
  const inputCaller = tools === undefined ? request.caller : withFormCapability(request.caller)
  const round = request.startRound()
  const started = Effect.map(tasks.submit(call, args, undefined, inputCaller), ({ id }) => id)
  return round === undefined ? started : round.once(onceKey, started) as typeof started
}

/** Runs a call that waits for its task. */
export const runInline = (tasks: TaskService["Service"], call: ToolCall): ToolCallResult => {
  const { request } = call
  const tools = modelToolsFor(tasks, call)
  return Effect.uninterruptibleMask((restore) =>
    // Preparing is not in `once`, in which a handler may not ask for input: it runs in each round, with its recorded
    // answers.
    Effect.flatMap(restore(tasks.prepare(call)), (args) => {
      if (args instanceof NotStarted) return Effect.succeed(args.result)
      // This is uninterruptible until the id is known: without the id, a started task could not be cancelled.
      return Effect.flatMap(startTask(tasks, call, args, tools), (id) => {
        const last = Effect.tap(
          waitForEnd(tasks, request, id, tools),
          () => withMcpErrors(tasks.engine.expireSoon(id))
        )
        const ended = Effect.flatMap(last, wire.callOutcome)
        const result = tools === undefined ? ended : orStatusAfterTimeout(tasks, tools, call, id, ended)
        return Effect.onInterrupt(restore(result), () => onInterrupted(tasks, request, id))
      })
    })
  )
}

/**
 * A call that is interrupted for the questions of a round is repeated by the client, and a server that stops does not
 * end its tasks. After any other interruption the result has no receiver.
 */
const onInterrupted = (tasks: TaskService["Service"], request: RequestContext, id: string): Effect.Effect<void> =>
  request.stopped || (request.exchange.state === "Replacing" && !request.cancelled)
    ? Effect.void
    : cancelUnwanted(tasks, id)

/** Waits for the end of a task, and relays its progress and its questions meanwhile. */
const waitForEnd = (
  tasks: TaskService["Service"],
  request: RequestContext,
  id: string,
  tools: ModelTools | undefined
): Effect.Effect<State, McpError.McpError> =>
  Effect.scoped(Effect.gen(function*() {
    const asking = new Map<string, Fiber.Fiber<void>>()
    const last = yield* withMcpErrors(
      Stream.runLast(
        Stream.tap(tasks.watch(id, request.caller), (state) => relayState(tasks, request, asking, state, tools))
      )
    )
    if (Option.isSome(last) && isFinal(last.value)) return last.value
    return yield* Effect.fail(
      new McpError.McpError({ reason: "InternalError", message: "The task of this call no longer exists" })
    )
  }))

/** Reports progress, asks new questions, and withdraws questions that are no longer open. */
const relayState = Effect.fnUntraced(function*(
  tasks: TaskService["Service"],
  request: RequestContext,
  asking: Map<string, Fiber.Fiber<void>>,
  state: State,
  tools: ModelTools | undefined
): Effect.fn.Return<void, never, Scope.Scope> {
  const open = new Set(state.questions.map(({ key }) => key))
  for (const [key, fiber] of asking) {
    if (open.has(key)) continue
    asking.delete(key)
    yield* Fiber.interrupt(fiber)
  }
  for (const question of state.questions) {
    if (asking.has(question.key)) continue
    // The model answers it, after it has asked its user.
    if (tools !== undefined && !canAsk(request.caller, question)) continue
    asking.set(question.key, yield* Effect.forkScoped(relayQuestion(tasks, request, state.id, question)))
  }
  if (state.progress !== undefined) yield* request.progress(state.progress)
})

/**
 * The user may answer while the task exists; its end withdraws the question. In the stateless revision the call itself
 * ends.
 */
export const noTimeout = { timeout: Duration.infinity, maxTimeout: Duration.infinity }

/**
 * Asks one question through the call, and answers the task with the result. The handler receives a refusal of the
 * client. If the connection ends while the client is asked, the question stays open: what happens to the task is
 * decided where the call is interrupted.
 */
const relayQuestion = (
  tasks: TaskService["Service"],
  request: RequestContext,
  id: string,
  { key, method, params }: Question
): Effect.Effect<void> =>
  request.request(method, params, Revision.era(request.caller.revision) === "session" ? noTimeout : { key }).pipe(
    Effect.matchEffect({
      onSuccess: (answer) => storeAnswer(tasks, id, key, method, answer),
      onFailure: (error) =>
        hasEnded(error)
          ? Effect.void
          : storeAnswer(tasks, id, key, method, makeRefusal(toErrorObject(error, request)))
    })
  )

/** Stores an answer, even if the call that received it ends meanwhile. */
const storeAnswer = (
  { engine }: TaskService["Service"],
  id: string,
  key: string,
  method: string,
  answer: JsonObject
): Effect.Effect<void> =>
  Effect.uninterruptible(
    Effect.catchCause(
      Effect.asVoid(engine.answer(id, key, answer)),
      (cause) => Logging.withheld(Effect.logWarning(`failed to store the answer to ${method}`, cause))
    )
  )

/** Whether the client was not asked to the end, because its connection, its stream or the call has ended. */
const hasEnded = (error: McpError.McpError | RequestError): boolean =>
  !McpError.isMcpError(error) && error.reason._tag === "Closed"

const toErrorObject = (
  error: McpError.McpError | RequestError,
  { caller: { revision } }: RequestContext
): ErrorObject =>
  McpError.isMcpError(error) ? McpError.toErrorObject(error, revision) : { code: -32603, message: error.message }

/** The tools for tasks that the model of a call has; `undefined` for a tool whose tasks clients never see. */
const modelToolsFor = (
  tasks: TaskService["Service"],
  { request, tool }: ToolCall
): ModelTools | undefined => {
  const { modelTools } = tasks
  if (modelTools === undefined || tasks.policyFor(tool)?.support === "forbidden") return undefined
  return modelTools.visible(request.caller) ? modelTools : undefined
}

/**
 * A caller that supports forms, since its model answers them. Revisions before 2025-06-18 have no forms: the task of an
 * older client asks as in 2025-06-18, and only the model reads the question.
 */
const withFormCapability = ({ capabilities, info, principal, revision }: Caller): Caller => ({
  revision: revision < "2025-06-18" ? "2025-06-18" : revision,
  info,
  principal,
  capabilities: Capabilities.elicits(capabilities, "form") ? capabilities : {
    ...capabilities,
    elicitation: { ...capabilities["elicitation"] as object | undefined, form: {} }
  }
})

/**
 * Waits for the end of a task, or returns its status: after `waitTimeout`, or once the task asks a question that the client
 * cannot answer.
 */
const orStatusAfterTimeout = (
  tasks: TaskService["Service"],
  { waitTimeout }: ModelTools,
  call: ToolCall,
  id: string,
  ended: ToolCallResult
): ToolCallResult => {
  const { caller } = call.request
  const untilQuestion = withMcpErrors(Stream.runDrain(Stream.takeUntil(
    tasks.watch(id, caller),
    ({ questions }) => questions.some((question) => !canAsk(caller, question))
  )))
  // The stream also ends with the task. Then `ended` returns the result.
  const hasWaited = Effect.raceFirst(Effect.sleep(waitTimeout), untilQuestion)
  return Effect.raceFirst(ended, Effect.andThen(hasWaited, currentStatus(tasks, call, id)))
}

/** The status of a task as a result. Never returns for a task that has ended: `ended` returns its result. */
const currentStatus = (
  tasks: TaskService["Service"],
  call: ToolCall,
  id: string
): Effect.Effect<CallToolResult, McpError.McpError> =>
  Effect.flatMap(
    withMcpErrors(tasks.engine.get(id)),
    (state) =>
      state === undefined || isFinal(state)
        ? Effect.never
        : Effect.succeed(statusResult(call, tasks.viewOf(state, call.request.caller)))
  )

/**
 * "Servers MUST provide structured results that conform to this schema": for a tool with an output schema, a status is
 * a result with `isError`.
 */
const statusResult = ({ tool }: ToolCall, state: State): CallToolResult => ({
  content: [
    Content.text(`The task has not ended yet. It continues to run on the server.\n${describeTask(state)}`)
  ],
  ...(tool.definition.outputSchema === undefined ? undefined : { isError: true }),
  _meta: related(state.id)
})
