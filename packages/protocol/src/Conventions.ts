/**
 * Names and attributes of the OpenTelemetry semantic conventions for MCP, for the spans and metrics of clients and
 * servers.
 */
import { isObject, type JsonObject } from "./JsonRpc.ts"

/** Replaces unknown method names in attributes, so that a peer cannot create any number of time series. */
export const otherMethod = "_OTHER"

/** The `error.type` of a tool call whose result has `isError`. */
export const toolError = "tool_error"

/** Whether requests of this method have a target with a name (a tool or a prompt), and not with a URI. */
export const isNamed = (method: string): boolean => method === "tools/call" || method === "prompts/get"

/** Returns the target of a request: the name of a tool or a prompt, or the URI of a resource. */
export const targetOf = (method: string, params: JsonObject | undefined): string | undefined => {
  const target = isNamed(method) ? params?.["name"] : params?.["uri"]
  return typeof target === "string" ? target : undefined
}

/** The attributes of a request whose target is a tool or a prompt. */
export const named = (method: string, target: string): { readonly [key: string]: string } =>
  method === "tools/call"
    ? { "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": target }
    : { "gen_ai.prompt.name": target }

/** The attributes of a request's target, for spans. Metrics must not have them: there can be any number of URIs. */
export const about = (method: string, target: string): { readonly [key: string]: string } =>
  isNamed(method) ? named(method, target) : { "mcp.resource.uri": target }

/** The name of a span: "`{mcp.method.name} {target}`". The target is left out where it is a URI. */
export const spanName = (method: string, target: string | undefined): string =>
  target !== undefined && isNamed(method) ? `${method} ${target}` : method

/** Whether a result is a tool's result with `isError`. */
export const isToolError = (result: unknown): boolean => isObject(result) && result["isError"] === true
