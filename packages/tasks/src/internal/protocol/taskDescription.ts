/** Describes a task to a model: as text, and as structured content. */
import { isObject, type JsonObject } from "@skein/protocol/JsonRpc"
import * as Method from "@skein/protocol/Method"
import { isFinal, type Question, type State } from "../../TaskState.ts"
import { amountOf, taskOf } from "./wire.ts"

/**
 * Whether a question is a form. A model can answer forms, after it has asked its user; only the client can answer other
 * questions.
 */
export const isForm = ({ method, params }: Question): boolean =>
  method === Method.Elicit.name && (params?.["mode"] ?? "form") === "form" && isObject(params?.["requestedSchema"])

const statusLine = (state: State): string => {
  const { progress } = state
  const { status, statusMessage } = taskOf(state)
  const amount = progress === undefined || isFinal(state) ? undefined : amountOf(progress)
  const details = [...new Set([statusMessage, amount, amount === undefined ? undefined : progress?.message])]
    .filter((each) => each !== undefined)
  return details.length === 0 ? status : `${status} (${details.join("; ")})`
}

const questionText = (question: Question): string => {
  const { key, method, params } = question
  if (!isForm(question)) return `- ${JSON.stringify(key)} (${method}): task_answer cannot answer this question`
  return `- ${JSON.stringify(key)}: ${String(params?.["message"])}\n` +
    `  JSON Schema of the content: ${JSON.stringify(params?.["requestedSchema"])}`
}

/** The status of a task, and how to continue, as a text. */
export const describeTask = (state: State): string => {
  const lines = [`Task ${state.id} of the tool ${state.tool}: ${statusLine(state)}`]
  if (state.questions.length > 0) {
    lines.push(
      "The task needs answers to these questions. Ask the user, do not invent an answer, and call task_answer:",
      ...state.questions.map(questionText)
    )
  }
  if (!isFinal(state)) {
    lines.push(
      "Call task_status with this task id to read its status and its result, or task_cancel to cancel it."
    )
  }
  return lines.join("\n")
}

/** A question as structured content. */
export const questionData = (question: Question) => ({
  question: question.key,
  message: String(question.params?.["message"] ?? question.method),
  answerable: isForm(question),
  ...(isForm(question) ? { schema: question.params!["requestedSchema"] as JsonObject } : undefined)
})

/** The last valid date. A client may request a time to live beyond it if the server sets no `maxTtl`. */
const maxDateMs = 8.64e15

/** The task as structured content. The output schemas of `TaskTools` describe the members. */
export const taskData = (state: State) => {
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
    expiresAt: ttlMs === null ? null : new Date(Math.min(state.createdAt + ttlMs, maxDateMs)).toISOString(),
    questions: state.questions.map(questionData),
    ...(outcome?._tag === "Result" ? { result: outcome.result } : undefined),
    ...(outcome?._tag === "Error" ? { error: { ...outcome.error } } : undefined)
  }
}
