/** A task, in words for a model, and as data. */
import { isObject, type JsonObject } from "@skein/protocol/JsonRpc"
import * as Method from "@skein/protocol/Method"
import type { Question, State } from "../../TaskState.ts"
import { isFinal } from "../../TaskState.ts"
import { taskOf } from "./legacy/legacyWire.ts"

/** A question that a model can answer, once it has asked its user: a form. Anything else is the client's alone. */
export const isForm = ({ method, params }: Question): boolean =>
  method === Method.Elicit.name && (params?.["mode"] ?? "form") === "form" && isObject(params?.["requestedSchema"])

const standing = (state: State): string => {
  const { progress } = state
  const { status, statusMessage } = taskOf(state)
  const far = progress === undefined || isFinal(state)
    ? undefined
    : `${progress.progress}${progress.total === undefined ? "" : ` of ${progress.total}`}`
  const said = [statusMessage, far, far === undefined ? undefined : progress?.message]
  const more = [...new Set(said)].filter((each) => each !== undefined)
  return more.length === 0 ? status : `${status} (${more.join("; ")})`
}

const asking = (question: Question): string => {
  const { key, method, params } = question
  if (!isForm(question)) return `- ${JSON.stringify(key)} (${method}): it cannot be answered with task_answer`
  return `- ${JSON.stringify(key)}: ${String(params?.["message"])}\n` +
    `  JSON Schema of the content: ${JSON.stringify(params?.["requestedSchema"])}`
}

/** Where a task stands, and how to go on. */
export const describe = (state: State): string => {
  const lines = [`Task ${state.id} of the tool ${state.tool}: ${standing(state)}`]
  if (state.questions.length > 0) {
    lines.push(
      "It waits for answers. Ask the user, do not make an answer up, and call task_answer:",
      ...state.questions.map(asking)
    )
  }
  if (!isFinal(state)) {
    lines.push(
      "Call task_status with this task id to see how it goes on and to get its result, or task_cancel to end it."
    )
  }
  return lines.join("\n")
}

/** A client may ask for a time to live beyond all dates, where the host bounds none. */
const lastDate = 8.64e15

/** The same as data. The members are told by the output schemas of `TaskTools`. */
export const data = (state: State) => {
  const { createdAt, lastUpdatedAt, status, statusMessage, taskId, ttlMs } = taskOf(state)
  const { outcome, progress } = state
  return {
    taskId,
    tool: state.tool,
    status,
    ...(statusMessage === undefined ? undefined : { message: statusMessage }),
    ...(progress === undefined ? undefined : {
      progress: {
        progress: progress.progress,
        ...(progress.total === undefined ? undefined : { total: progress.total }),
        ...(progress.message === undefined ? undefined : { message: progress.message })
      }
    }),
    createdAt,
    lastUpdatedAt,
    expiresAt: ttlMs === null ? null : new Date(Math.min(state.createdAt + ttlMs, lastDate)).toISOString(),
    questions: state.questions.map((question) => ({
      question: question.key,
      message: String(question.params?.["message"] ?? question.method),
      answerable: isForm(question),
      ...(isForm(question) ? { schema: question.params!["requestedSchema"] as JsonObject } : undefined)
    })),
    ...(outcome?._tag === "Result" ? { result: outcome.result } : undefined),
    ...(outcome?._tag === "Error" ? { error: { ...outcome.error } } : undefined)
  }
}
