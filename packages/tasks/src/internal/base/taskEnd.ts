/**
 * The end of a task, for the code that waits for it: its value, or why it has none. The log of a parent task has it as
 * JSON.
 */
import { isObject, type JsonObject } from "@skein/protocol/JsonRpc"
import { Cancelled, Expired, Failed, LimitExceeded, NotStarted, type Reason, TaskError } from "../../TaskError.ts"
import type { Outcome, State } from "../../TaskState.ts"
import { failureMessage, isErrorResult } from "./text.ts"

/** The end of a task. */
export type TaskEnd =
  /** The structured content of its result. */
  | { readonly value: unknown }
  /** The text of a result without structured content. */
  | { readonly text: string }
  /** Why it has no value. */
  | {
    readonly failure: "Failed" | "Cancelled" | "Expired" | "LimitExceeded" | "NotStarted"
    readonly message: string
    readonly outcome?: Outcome | undefined
  }

const expired: TaskEnd = {
  failure: "Expired",
  message: "the task has exceeded its time to live, or is deleted: its result cannot be read"
}

const textOf = (result: JsonObject): string => {
  const blocks: ReadonlyArray<unknown> = Array.isArray(result["content"]) ? result["content"] : []
  return blocks.flatMap((block) => isObject(block) && typeof block["text"] === "string" ? [block["text"]] : [])
    .join("\n")
}

/** The end of a task in its final state; `undefined`: it is deleted. */
export const endOf = (state: State | undefined): TaskEnd => {
  if (state === undefined) return expired
  const { createdAt, outcome, statusMessage, ttlMs, updatedAt } = state
  if (outcome === undefined) {
    return ttlMs !== null && updatedAt >= createdAt + ttlMs
      ? expired
      : { failure: "Cancelled", message: statusMessage ?? "the task was cancelled" }
  }
  if (outcome._tag === "Error" || isErrorResult(outcome)) {
    return { failure: "Failed", message: failureMessage(outcome) ?? "the task has failed", outcome }
  }
  const { structuredContent } = outcome.result
  return structuredContent === undefined ? { text: textOf(outcome.result) } : { value: structuredContent }
}

/** Why a task that has no value could not be started, as it is recorded; `undefined` for an error that may pass. */
export const notStartedOf = ({ message, reason: { _tag } }: TaskError): TaskEnd | undefined =>
  _tag === "LimitExceeded" || _tag === "NotStarted" ? { failure: _tag, message } : undefined

/** The error for the end of a task without a value. */
export const errorOf = ({ failure, message, outcome }: Extract<TaskEnd, { readonly failure: unknown }>): TaskError => {
  const reason = (): Reason => {
    switch (failure) {
      case "Failed":
        return new Failed({ message, outcome: outcome! })
      case "Cancelled":
        return new Cancelled({ message })
      case "Expired":
        return new Expired({ message })
      case "LimitExceeded":
        return new LimitExceeded({ message })
      case "NotStarted":
        return new NotStarted({ message })
    }
  }
  return new TaskError({ reason: reason() })
}
