/** Which clients a question of a task may be put to. */
import * as Capabilities from "@skein/protocol/Capabilities"
import * as Method from "@skein/protocol/Method"
import type { Caller } from "@skein/runtime/RequestContext"
import type { Question } from "../../TaskState.ts"

/** A caller whose task may ask whatever some client can be asked: it waits for one that has declared it. */
export const asIfAny = (caller: Caller): Caller => ({
  ...caller,
  capabilities: {
    ...caller.capabilities,
    elicitation: { form: {}, url: {} },
    sampling: { tools: {}, context: {} },
    roots: {}
  }
})

/**
 * Whether a client has declared what a question needs: it may be another one than the one that made the task. Whoever has not
 * MUST NOT be asked.
 */
export const can = (caller: Caller, { method, params }: Pick<Question, "method" | "params">): boolean => {
  const { revision } = caller
  if (Method.request(method, revision) === undefined && Method.inputRequest(method, revision) === undefined) {
    return false
  }
  const capabilities = caller.capabilities as Capabilities.ClientCapabilities
  switch (method) {
    case Method.Elicit.name:
      return Capabilities.elicits(capabilities, params?.["mode"] === "url" ? "url" : "form")
    case Method.CreateMessage.name: {
      const { sampling } = capabilities
      const tools = params?.["tools"] !== undefined || params?.["toolChoice"] !== undefined
      const context = params?.["includeContext"] !== undefined && params["includeContext"] !== "none"
      return sampling !== undefined && (!tools || sampling.tools !== undefined) &&
        (!context || sampling.context !== undefined)
    }
    case Method.ListRoots.name:
      return capabilities.roots !== undefined
    default:
      return false
  }
}
