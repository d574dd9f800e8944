/**
 * The names of the OpenTelemetry semantic conventions for MCP, for the spans and metrics of both sides.
 */
import { isObject, type JsonObject } from "./JsonRpc.ts"

/** Stands for every method that there is not: names that the other side makes up are not to fill any table. */
export const otherMethod = "_OTHER"

/** The `error.type` of a tool that failed as a tool may, with `isError`. */
export const toolError = "tool_error"

/** Whether what a request of that method is about has a name, and not a URI. */
export const isNamed = (method: string): boolean => method === "tools/call" || method === "prompts/get"

/** What a request is about, as it says: a tool or a prompt by its name, a resource by its URI. */
export const targetOf = (method: string, params: JsonObject | undefined): string | undefined => {
  const target = isNamed(method) ? params?.["name"] : params?.["uri"]
  return typeof target === "string" ? target : undefined
}

/** The attributes of a tool or a prompt, by its name. */
export const named = (method: string, target: string): { readonly [key: string]: string } =>
  method === "tools/call"
    ? { "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": target }
    : { "gen_ai.prompt.name": target }

/** The attributes of what a request is about; a URI is not for the attributes of a metric, for there is no end of them. */
export const about = (method: string, target: string): { readonly [key: string]: string } =>
  isNamed(method) ? named(method, target) : { "mcp.resource.uri": target }

/** "`{mcp.method.name} {target}`", without a target where that is a URI. */
export const spanName = (method: string, target: string | undefined): string =>
  target !== undefined && isNamed(method) ? `${method} ${target}` : method

/** Whether a result is that of a tool that failed. */
export const isToolError = (result: unknown): boolean => isObject(result) && result["isError"] === true
