/**
 * The script of the sandbox proxy: loads the page of an app into a frame of its own, and passes messages between the host
 * and the page ("Sandbox proxy", 2026-01-26). It sends no requests, and trusts neither side's messages beyond their source.
 */
import type { SandboxResource } from "../src/shared/UiMessage.ts"

const settings = JSON.parse(document.getElementById("settings")!.textContent!) as {
  readonly hostOrigins: ReadonlyArray<string>
  readonly allow: string
}
const reserved = "ui/notifications/sandbox-"

const methodOf = (data: unknown): string => {
  const method = (data as { readonly method?: unknown } | null)?.method
  return typeof method === "string" ? method : ""
}

/** Whether the host can be reached as an object: then it has the origin of the proxy, and the sandbox protects nothing. */
const isHostReachable = (): boolean => {
  try {
    return parent.document !== undefined
  } catch {
    return false
  }
}

let frame: HTMLIFrameElement | undefined

const load = ({ html, sandbox = "allow-scripts allow-forms" }: SandboxResource): void => {
  frame?.remove()
  frame = document.createElement("iframe")
  frame.setAttribute("sandbox", sandbox)
  frame.setAttribute("allow", settings.allow)
  frame.srcdoc = html
  document.body.append(frame)
}

if (parent === window) document.body.textContent = "This page is for the frame of a host."
else if (isHostReachable()) document.body.textContent = "The sandbox must have another origin than the host."
else {
  let hostOrigin: string | undefined
  addEventListener("message", ({ data, origin, source }) => {
    if (source === parent) {
      if (!settings.hostOrigins.includes(origin)) return
      hostOrigin = origin
      const method = methodOf(data)
      if (method === `${reserved}resource-ready`) load((data as { readonly params: SandboxResource }).params)
      else if (!method.startsWith(reserved)) frame?.contentWindow?.postMessage(data, "*")
    } else if (frame !== undefined && source === frame.contentWindow && hostOrigin !== undefined) {
      if (!methodOf(data).startsWith(reserved)) parent.postMessage(data, hostOrigin)
    }
  })
  // It contains nothing, so any parent may receive it.
  parent.postMessage({ jsonrpc: "2.0", method: `${reserved}proxy-ready`, params: {} }, "*")
}
