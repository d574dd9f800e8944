/**
 * Tools that stand for another one: a call of `call_tool` is replaced by the call of the tool that it names, before any
 * middleware runs.
 */
import * as McpError from "@skein/protocol/McpError"
import { clip } from "@skein/protocol/Text"
import type { RequestContext } from "@skein/runtime/RequestContext"
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

/**
 * Makes the function that returns the request that a request stands for, or the reason to refuse it. A request of the
 * server itself (`isInner`) may be for an indirect tool.
 */
export const redirecting = (
  { tools }: Catalog["Service"]
): (request: RequestContext, isInner?: boolean) => RequestContext | McpError.McpError => {
  let version = -1
  let applies = false
  return (request, isInner = false) => {
    if (version !== tools.version) {
      version = tools.version
      applies = tools.sorted.some(([, { indirect, redirect }]) => indirect !== undefined || redirect !== undefined)
    }
    if (!applies || request.method !== "tools/call") return request
    const { caller, params, target } = request
    const tool = target === undefined ? undefined : tools.seen(target, caller)
    if (!isInner && tool?.indirect?.() === true) return McpError.invalidParams(`Unknown tool: ${clip(target!)}`)
    const other = params && tool?.guard?.(caller) === undefined ? tool?.redirect?.(params, caller) : undefined
    return other === undefined ? request : request.with({ params: other })
  }
}
