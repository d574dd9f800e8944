/**
 * Tools that stand for another one: a call of `call_tool` is replaced by the call of the tool that it names, before any
 * middleware runs.
 */
import * as McpError from "@skein/protocol/McpError"
import { clip } from "@skein/protocol/Text"
import type { Dispatcher, McpRequest, RequestContext } from "@skein/runtime/RequestContext"
import * as Effect from "effect/Effect"
import type { Catalog, ToolEntry } from "../../Catalog.ts"

/** Returns the members of a tool that name other tools, for a registry in which tools have other names. */
export const redirectingTo = (
  { nameOf, redirect }: ToolEntry,
  outside: (own: string) => string
): Pick<ToolEntry, "nameOf" | "redirect"> => ({
  ...(nameOf === undefined ? undefined : { nameOf: (own) => outside(nameOf(own)) }),
  ...(redirect === undefined ? undefined : {
    redirect: (params, caller) => {
      const target = redirect(params, caller)
      return target && { ...target, name: outside(target["name"] as string) }
    }
  })
})

export type Tools = Catalog["Service"]["tools"]

/** Whether a tool redirects, or may be called by redirects only. */
export const hasRedirects = ({ sorted }: Tools): boolean =>
  sorted.some(([, { indirect, redirect }]) => indirect !== undefined || redirect !== undefined)

/**
 * Returns the request that a request stands for, or the reason to refuse it. A request of the server itself (`isInner`) may
 * be for an indirect tool.
 */
export const redirect = (
  tools: Tools,
  request: RequestContext,
  isInner = false
): RequestContext | McpError.McpError => {
  if (request.method !== "tools/call") return request
  const { caller, params, target } = request
  const tool = target === undefined ? undefined : tools.seen(target, caller)
  if (!isInner && tool?.indirect?.() === true) return McpError.invalidParams(`Unknown tool: ${clip(target!)}`)
  const other = params && tool?.guard?.(caller) === undefined ? tool?.redirect?.(params, caller) : undefined
  return other === undefined ? request : request.with({ params: other })
}

/** Redirects the requests to a dispatcher. */
export const redirecting = (tools: Tools, next: Dispatcher<McpRequest>): Dispatcher<McpRequest> => (received) => {
  const request = redirect(tools, received)
  return McpError.isMcpError(request) ? Effect.fail(request) : next(request)
}
