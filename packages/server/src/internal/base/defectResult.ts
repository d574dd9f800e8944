/** The result of a call whose handler has died. The log has the cause; only in development does the result. */
import type * as Wire from "@skein/protocol/CallTool"
import * as MetaKey from "@skein/protocol/MetaKey"
import type { Tool } from "@skein/protocol/Tool"
import { clip } from "@skein/protocol/Text"
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import { Development } from "../../HandlerError.ts"

/** The most characters of the message of a cause. */
const maxMessageChars = 2_000

interface Defect {
  readonly base: Context.Context<never>
  readonly cause: Cause.Cause<unknown>
  readonly reference: string
}

/**
 * Makes the result of a call whose handler has died. It has `isError`, and is not a JSON-RPC error, because hosts show
 * results to their models. Log the cause with the same reference. `base` has the services of the server: in development
 * (`HandlerError.Development`) the text has the message and the line of the cause.
 *
 * @example
 * const result = Extension.defectResult("bake", tool.definition, { base, cause, reference: randomUUID() })
 */
export const defectResult = (
  tool: string,
  definition: Pick<Tool, "annotations"> | undefined,
  { base, cause, reference }: Defect
): Wire.CallToolResult => {
  const { idempotentHint, readOnlyHint } = definition?.annotations ?? {}
  const shown = Context.get(base, Development) ? `: ${describe(Cause.squash(cause))}` : ""
  const again = idempotentHint === true || readOnlyHint === true ? " The call may be tried again." : ""
  const text = `The tool ${clip(tool)} failed unexpectedly${shown}.${again} ` +
    `The log of the server has the cause, with the reference ${reference}`
  return { content: [{ type: "text", text }], isError: true, _meta: { [MetaKey.reference]: reference } }
}

/** The name, the message and the line of an error. `Effect.tryPromise` without `catch` wraps the error. */
const describe = (defect: unknown): string => {
  if (Cause.isUnknownError(defect) && defect.cause !== undefined) return describe(defect.cause)
  const text = clip(String(defect), maxMessageChars)
  const line = defect instanceof Error ? lineOf(defect) : undefined
  return line === undefined ? text : `${text} (${line})`
}

/** The place of the first frame that belongs neither to Node nor to an installed package. */
const lineOf = ({ stack = "" }: Error): string | undefined => {
  for (const frame of stack.split("\n")) {
    const [, place] = /^\s+at (?:.*\()?((?:file:|\/|[A-Za-z]:\\).*:\d+:\d+)\)?$/.exec(frame) ?? []
    if (place !== undefined && !/[\\/]node_modules[\\/]/.test(place)) return place.replace(/^file:\/\//, "")
  }
  return undefined
}
