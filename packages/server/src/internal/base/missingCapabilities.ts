/**
 * The capabilities of clients that input requests need.
 */
import * as Capabilities from "@skein/protocol/Capabilities"
import type { JsonObject } from "@skein/protocol/JsonRpc"
import type { Revision } from "@skein/protocol/Revision"
import type * as Wire from "@skein/protocol/Sampling"
import * as SamplingMessages from "@skein/protocol/SamplingMessages"

/** Returns the capabilities that the client must declare and has not declared. */
export type Missing = (capabilities: JsonObject, revision: Revision) => JsonObject | undefined

/**
 * The capability that an elicitation of a mode needs. Before 2025-11-25 forms were the only mode, and had no capability
 * of their own.
 */
export const missingElicitation = (mode: "form" | "url"): Missing => (capabilities, revision) => {
  if (revision < "2025-11-25") {
    return Capabilities.declares(capabilities, "elicitation")
      ? undefined
      : { elicitation: {} }
  }
  return Capabilities.elicits(capabilities, mode)
    ? undefined
    : { elicitation: { [mode]: {} } }
}

/**
 * The capabilities that a sampling request needs: "Servers MUST NOT send tool-enabled sampling requests to Clients that
 * have not declared" it.
 */
export const missingSampling = (
  { includeContext, messages, toolChoice, tools }: Pick<
    Wire.CreateMessageRequestParams,
    "includeContext" | "messages" | "toolChoice" | "tools"
  >
): Missing => {
  const usesTools = tools !== undefined || toolChoice !== undefined ||
    messages.some(({ content }) => SamplingMessages.hasTools(content))
  const usesContext = includeContext !== undefined && includeContext !== "none"
  return (capabilities, revision) => {
    const lacks = (...path: ReadonlyArray<string>) => !Capabilities.declares(capabilities, "sampling", ...path)
    const needed = {
      ...(usesTools && lacks("tools") ? { tools: {} } : undefined),
      ...(usesContext && revision >= "2025-11-25" && lacks("context") ? { context: {} } : undefined)
    }
    return lacks() || Object.keys(needed).length > 0 ? { sampling: needed } : undefined
  }
}

/** The capability that a request for the roots needs. */
export const missingRoots: Missing = (capabilities) =>
  Capabilities.declares(capabilities, "roots") ? undefined : { roots: {} }
