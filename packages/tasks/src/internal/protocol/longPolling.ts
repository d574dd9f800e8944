/**
 * A call of a task by a client that has no tasks, where the model has tools for them (`TaskTools`): it waits for a while, and is
 * then answered with where the task stands, and how to go on.
 */
import * as Capabilities from "@skein/protocol/Capabilities"
import type { CallToolResult } from "@skein/protocol/CallTool"
import { related } from "@skein/protocol/LegacyTask"
import type * as McpError from "@skein/protocol/McpError"
import type { Caller } from "@skein/runtime/RequestContext"
import type { ToolCall, ToolCallResult } from "@skein/server/Extension"
import * as Content from "@skein/server/Content"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { isFinal, type State } from "../../TaskState.ts"
import { can } from "./inputCapability.ts"
import { type Face, type ModelTools, told } from "./taskService.ts"
import { describe } from "./status.ts"

/** The tools that the model of a call has; none for a tool of which clients never see a task. */
export const toolsOf = (face: Face, { request: exchange, tool }: ToolCall): ModelTools | undefined => {
  const { tools } = face
  if (tools === undefined || face.held(tool)?.support === "forbidden") return undefined
  return tools.offered(exchange.caller) ? tools : undefined
}

/**
 * A caller whose model can answer forms, whatever the client itself can be asked. Before 2025-06-18 there were no forms: the task of
 * an older client asks as in that revision, and only the model reads it.
 */
export const answering = ({ capabilities, info, principal, revision }: Caller): Caller => ({
  revision: revision < "2025-06-18" ? "2025-06-18" : revision,
  info,
  principal,
  capabilities: Capabilities.elicits(capabilities, "form") ? capabilities : {
    ...capabilities,
    elicitation: { ...capabilities["elicitation"] as object | undefined, form: {} }
  }
})

/** Waits for the end of a task: for at most `maxWait`, or until it asks what the client cannot be asked. */
export const within = (
  face: Face,
  { maxWait }: ModelTools,
  call: ToolCall,
  id: string,
  ended: ToolCallResult
): ToolCallResult => {
  const { caller } = call.request
  const stuck = told(Stream.runDrain(Stream.takeUntil(
    face.engine.watch(id),
    ({ questions }) => questions.some((question) => !can(caller, question))
  )))
  // A watch that ends with the task has nothing to say: the result is on its way.
  const asks = Effect.andThen(
    stuck,
    Effect.flatMap(
      told(face.engine.get(id)),
      (state) => state === undefined || isFinal(state) ? Effect.never : Effect.void
    )
  )
  const enough = Effect.raceFirst(Effect.sleep(maxWait), asks)
  return Effect.raceFirst(ended, Effect.andThen(enough, pending(face, call, id)))
}

/** Where the task stands. Of one that is over the result is on its way. */
const pending = (face: Face, call: ToolCall, id: string): Effect.Effect<CallToolResult, McpError.McpError> =>
  Effect.flatMap(
    told(face.engine.get(id)),
    (state) => state === undefined || isFinal(state) ? Effect.never : Effect.succeed(answer(call, state))
  )

/**
 * "Servers MUST provide structured results that conform to this schema": where there is an output schema, an answer that is not
 * the result says so by `isError`.
 */
const answer = ({ tool }: ToolCall, state: State): CallToolResult => ({
  content: [Content.text(`This takes longer, and is not done yet. It goes on by itself.\n${describe(state)}`)],
  ...(tool.definition.outputSchema === undefined ? undefined : { isError: true }),
  _meta: related(state.id)
})
