/**
 * Short texts about a task: status messages, failure messages, and ids for the log.
 */
import { isObject } from "@skein/protocol/JsonRpc"
import * as MetaKey from "@skein/protocol/MetaKey"
import { clip, cut, printable } from "@skein/protocol/Text"
import type { Outcome, State } from "../../TaskState.ts"

/**
 * Characters (UTF-16 units) of a status message, or of a message about progress. Each change and each listing writes,
 * reads and sends the message again, so it is short.
 */
const maxLineChars = 4096

/** Cuts a text to `maxLineChars`, with "…" at the end of a text that was longer. */
export const truncateLine = (text: string): string => clip(text, maxLineChars)

/**
 * Shortens the task ids in a log line: the whole id may be enough to use the task, and eight characters identify it.
 */
export const redactTaskIds = (text: string): string => text.replace(/(?<![\w-])[\w-]{32}(?![\w-])/g, shortTaskId)

/** The first eight characters of a task id, for the log. See `redactTaskIds`. */
export const shortTaskId = (id: string): string => `${id.slice(0, 8)}…`

/** The message of a thrown value. */
export const messageOf = (error: unknown): string => error instanceof Error ? error.message : String(error)

/** The annotations of all log lines of a task, those of its handler included. */
export const logAnnotations = ({ id, owner, tool }: Pick<State, "id" | "owner" | "tool">): Record<string, unknown> => ({
  task: shortTaskId(id),
  tool,
  // The id of a principal is a text of its issuer.
  ...(owner === null ? undefined : { owner: printable(owner, Infinity) })
})

/** Characters of a failure message. The whole message is in the outcome. */
const maxFailureChars = 500

/** Whether an outcome is a tool result with `isError`. */
export const isErrorResult = (outcome: Outcome): boolean =>
  outcome._tag === "Result" && outcome.result["isError"] === true

/**
 * The reason for a failure, in one line, with the reference of a defect: listings have no outcomes. `undefined` for a
 * success, and for a failure without a text.
 */
export const failureMessage = (outcome: Outcome): string | undefined => {
  if (outcome._tag === "Error") {
    const { code, data, message } = outcome.error
    return withReference(
      truncateLine(message),
      code === internalError && isObject(data) ? data["reference"] : undefined
    )
  }
  if (!isErrorResult(outcome)) return undefined
  const { _meta, content } = outcome.result
  const text: unknown = Array.isArray(content) && isObject(content[0]) ? content[0]["text"] : undefined
  const reference = isObject(_meta) ? _meta[MetaKey.reference] : undefined
  return typeof text === "string" ? withReference(cut(text, maxFailureChars), reference) : undefined
}

const internalError = -32603

/** Adds the reference under which the log has the cause, unless the text has it. */
const withReference = (text: string, reference: unknown): string =>
  typeof reference !== "string" || text.includes(reference) ? text : `${text}, reference ${clip(reference)}`
