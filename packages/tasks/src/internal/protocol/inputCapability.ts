/**
 * Which clients may be asked the questions of a task.
 */
import * as Capabilities from "@skein/protocol/Capabilities"
import * as Method from "@skein/protocol/Method"
import type { Caller } from "@skein/runtime/RequestContext"
import type { Question } from "../../TaskState.ts"

/**
 * A caller with all input capabilities, for a task with `inputFrom: "anyone"`: its questions wait for a client that
 * declares them.
 */
export const withAllInputCapabilities = (caller: Caller): Caller => ({
  ...caller,
  capabilities: {
    ...caller.capabilities,
    elicitation: { form: {}, url: {} },
    sampling: { tools: {}, context: {} },
    roots: {}
  }
})

/**
 * Whether a client declares the capabilities that a question needs. It may be a different client from the one that
 * created the task. A client that does not declare them MUST NOT be asked.
 */
export const canAsk = (caller: Caller, { method, params }: Pick<Question, "method" | "params">): boolean => {
  const { revision } = caller
  if (Method.request(method, revision) === undefined && Method.inputRequest(method, revision) === undefined) {
    return false
  }
  const declares = (...path: ReadonlyArray<string>) => Capabilities.declares(caller.capabilities, ...path)
  switch (method) {
    case Method.Elicit.name:
      return Capabilities.elicits(caller.capabilities, params?.["mode"] === "url" ? "url" : "form")
    case Method.CreateMessage.name: {
      const tools = params?.["tools"] !== undefined || params?.["toolChoice"] !== undefined
      const context = params?.["includeContext"] !== undefined && params["includeContext"] !== "none"
      return declares("sampling") && (!tools || declares("sampling", "tools")) &&
        (!context || declares("sampling", "context"))
    }
    case Method.ListRoots.name:
      return declares("roots")
    default:
      return false
  }
}
