/**
 * Calls of tasks whose model has tools for tasks (`TaskTools`), from clients without tasks: the call waits for a while,
 * and then returns the status of the task and how to continue.
 */
import type { CallToolResult } from "@skein/protocol/CallTool"
import * as Capabilities from "@skein/protocol/Capabilities"
import { related } from "@skein/protocol/LegacyTask"
import type * as McpError from "@skein/protocol/McpError"
import type { Caller } from "@skein/runtime/RequestContext"
import type { ToolCall, ToolCallResult } from "@skein/server/Extension"
import * as Content from "@skein/server/Content"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { isFinal, type State } from "../../TaskState.ts"
import { canAsk } from "./inputCapability.ts"
import { describeTask } from "./taskDescription.ts"
import { type ModelTools, type TaskService, withMcpErrors } from "./taskService.ts"

/** The tools for tasks that the model of a call has; `undefined` for a tool whose tasks clients never see. */
export const modelToolsFor = (
  tasks: TaskService["Service"],
  { request, tool }: ToolCall
): ModelTools | undefined => {
  const modelTools = tasks.modelTools()
  if (modelTools === undefined || tasks.policyFor(tool)?.support === "forbidden") return undefined
  return modelTools.visible(request.caller) ? modelTools : undefined
}

/**
 * A caller that supports forms, since its model answers them. Revisions before 2025-06-18 have no forms: the task of an
 * older client asks as in 2025-06-18, and only the model reads the question.
 */
export const withFormCapability = ({ capabilities, info, principal, revision }: Caller): Caller => ({
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
export const orStatusAfterTimeout = (
  tasks: TaskService["Service"],
  { waitTimeout }: ModelTools,
  call: ToolCall,
  id: string,
  ended: ToolCallResult
): ToolCallResult => {
  const { caller } = call.request
  const untilQuestion = withMcpErrors(Stream.runDrain(Stream.takeUntil(
    tasks.engine.watch(id),
    ({ questions }) => questions.some((question) => !canAsk(caller, question))
  )))
  // The stream also ends with the task. Then `ended` returns the result.
  const hasQuestion = Effect.andThen(
    untilQuestion,
    Effect.flatMap(
      withMcpErrors(tasks.engine.get(id)),
      (state) => state === undefined || isFinal(state) ? Effect.never : Effect.void
    )
  )
  const hasWaited = Effect.raceFirst(Effect.sleep(waitTimeout), hasQuestion)
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
    (state) => state === undefined || isFinal(state) ? Effect.never : Effect.succeed(statusResult(call, state))
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
