/**
 * The input requests that the specification has, each with the capabilities that it needs and the faults that its schema
 * does not express.
 */
import * as Capabilities from "@skein/protocol/Capabilities"
import * as Method from "@skein/protocol/Method"
import type * as Wire from "@skein/protocol/Sampling"
import * as SamplingMessages from "@skein/protocol/SamplingMessages"
import { quote } from "@skein/protocol/Text"
import type { InputRequest } from "./requestInput.ts"

type Missing = InputRequest<never, never>["missing"]
type ParamsOf<M> = M extends Method.RequestMethod<infer P, infer _R> ? P : never

/**
 * The capability that an elicitation of a mode needs. Before 2025-11-25 forms were the only mode, and had no capability
 * of their own.
 */
const missingElicitation = (mode: "form" | "url"): Missing => (capabilities, revision) => {
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
const missingSampling = (
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
const missingRoots: Missing = (capabilities) => Capabilities.declares(capabilities, "roots") ? undefined : { roots: {} }

/** A request to fill in a form. */
export const elicitForm = (params: ParamsOf<typeof Method.Elicit>) => ({
  method: Method.Elicit,
  params,
  missing: missingElicitation("form")
})

/** A request to visit a URL: "The `url` parameter MUST contain a valid URL". */
export const elicitUrl = (params: ParamsOf<typeof Method.Elicit> & { readonly url: string }) => ({
  method: Method.Elicit,
  params,
  missing: missingElicitation("url"),
  problem: URL.canParse(params.url) ? undefined : `invalid URL: ${quote(params.url)}`
})

/** A request for a message of the client's model. */
export const createMessage = (params: Wire.CreateMessageRequestParams) => ({
  method: Method.CreateMessage,
  params,
  missing: missingSampling(params),
  problem: SamplingMessages.problemOf(params.messages)
})

/** A request for the roots of the client. */
export const listRoots = (params: ParamsOf<typeof Method.ListRoots> = {}) => ({
  method: Method.ListRoots,
  params,
  missing: missingRoots
})
