/**
 * What went wrong with a task, as far as a listing tells: it has no outcomes.
 */
import { isObject } from "@skein/protocol/JsonRpc"
import type { Outcome } from "../TaskState.ts"
import { line } from "./text.ts"

// A line, not a page: the whole of it is in the result.
const longest = 500

/** Whether an outcome is a result that says of itself that the tool has failed. */
export const isError = (outcome: Outcome): boolean => outcome._tag === "Result" && outcome.result["isError"] === true

/** What went wrong, in one line; `undefined` where nothing did, or nothing was said. */
export const diagnosis = (outcome: Outcome): string | undefined => {
  if (outcome._tag === "Error") return line(outcome.error.message)
  if (!isError(outcome)) return undefined
  const { content } = outcome.result
  const text: unknown = Array.isArray(content) && isObject(content[0]) ? content[0]["text"] : undefined
  return typeof text === "string" ? text.slice(0, longest) : undefined
}
