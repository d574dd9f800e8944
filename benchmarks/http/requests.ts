/**
 * The requests to a server over HTTP, and the checks of its responses.
 */
import { type Era, initialize, meta, revisionOf } from "../stdio/messages.ts"
import type { Request, Response } from "./httpClient.ts"

/** The placeholder for a request id, which has seven digits too. */
export const placeholder = "0000000"

/** The request with an id. */
export const withId = (request: Request, id: number): Request => ({
  ...request,
  body: request.body.replaceAll(placeholder, String(id))
})

const accept = { "content-type": "application/json", accept: "application/json, text/event-stream" }

/** A request that opens a session, and the notification that ends the handshake. */
export const opening: Request = { method: "POST", headers: accept, body: initialize(1).trimEnd() }

const inSession = (session: string | undefined): Record<string, string> => ({
  "mcp-protocol-version": revisionOf.session,
  ...(session === undefined ? undefined : { "mcp-session-id": session })
})

export const initialized = (session: string | undefined): Request => ({
  method: "POST",
  headers: { ...accept, ...inSession(session) },
  body: JSON.stringify({ jsonrpc: "2.0", method: "notifications/initialized" })
})

/** A GET that opens the standalone stream of a session. */
export const stream = (session: string): Request => ({
  method: "GET",
  headers: { accept: "text/event-stream", ...inSession(session) },
  body: ""
})

const request = (
  era: Era,
  session: string | undefined,
  method: string,
  params: { readonly name?: string; readonly _meta?: object; readonly [member: string]: unknown }
): Request => {
  const name: Record<string, string> = params.name === undefined ? {} : { "mcp-name": params.name }
  const headers = era === "session"
    ? inSession(session)
    : { "mcp-protocol-version": revisionOf.request, "mcp-method": method, ...name }
  const all = era === "session" ? params : { ...params, _meta: { ...meta, ...params._meta } }
  const body = JSON.stringify({ jsonrpc: "2.0", id: placeholder, method, params: all })
  return { method: "POST", headers: { ...accept, ...headers }, body: body.replace(`"${placeholder}"`, placeholder) }
}

/** A `subscriptions/listen` request (2026-07-28). */
export const listen: Request = request("request", undefined, "subscriptions/listen", {
  notifications: { toolsListChanged: true }
})

/** A repeated request, and the checks of its response. */
export interface Operation {
  readonly request: (era: Era, session: string | undefined) => Request
  /** Command line arguments of the server programs. */
  readonly args: ReadonlyArray<string>
  /** Texts that each correct response contains, whichever server sends it. */
  readonly marks: ReadonlyArray<string>
  /** Throws if the messages of a response are wrong. */
  readonly check: (messages: ReadonlyArray<any>) => void
}

/** Returns the result in the last message. Throws if the message is not a result. */
const resultOf = (messages: ReadonlyArray<any>): any => {
  const result = messages.at(-1)?.result
  if (result === undefined || result.isError === true) {
    throw new Error(`not a result: ${JSON.stringify(messages.at(-1) ?? null).slice(0, 300)}`)
  }
  return result
}

/** Checks a text. effect/ai sends it as structured content too, and its text is JSON then. */
const checkText = (result: any, expected: string): void => {
  const text = result.content?.length === 1 ? result.content[0].text : undefined
  if (text !== expected && !(result.structuredContent === expected && text === JSON.stringify(expected))) {
    throw new Error(`expected "${expected}": ${JSON.stringify(result).slice(0, 300)}`)
  }
}

/** A call with small arguments. */
export const call: Operation = {
  request: (era, session) =>
    request(era, session, "tools/call", { name: "echo", arguments: { message: "wind", times: 2 } }),
  args: [],
  marks: [`"result":`, "windwind"],
  check: (messages) => checkText(resultOf(messages), "windwind")
}

/** The number of listed tools. */
export const toolCount = 100

/** The list of all tools, on one page. */
export const list: Operation = {
  request: (era, session) => request(era, session, "tools/list", {}),
  args: [`--tools=${toolCount}`],
  marks: [`"result":`, `"count"`, `"tool-${toolCount - 3}"`],
  check: (messages) => {
    const { tools } = resultOf(messages)
    if (tools?.length !== toolCount) throw new Error(`${tools?.length} tools instead of ${toolCount}`)
  }
}

/** The number of progress notifications in a response. */
export const eventCount = 500

/** A call whose response is a stream of progress notifications and the result. */
export const count: Operation = {
  request: (era, session) =>
    request(era, session, "tools/call", {
      name: "count",
      arguments: { to: eventCount },
      _meta: { progressToken: `count-${placeholder}` }
    }),
  args: [],
  marks: [`"progress":1,`, `"progress":${eventCount},`, `Counted to ${eventCount}`],
  check: (messages) => {
    const progress = messages.slice(0, -1).map((message) => message.params?.progress)
    const missing = progress.length !== eventCount || progress.some((value, index) => value !== index + 1)
    if (missing) throw new Error(`${progress.length} progress notifications, expected 1 to ${eventCount} in order`)
    checkText(resultOf(messages), `Counted to ${eventCount}`)
  }
}

/** The messages of a response: one JSON message, or those of a stream. */
export const messagesOf = ({ body, status, type }: Response): ReadonlyArray<unknown> => {
  if (status !== 200) throw new Error(`${status} ${body.slice(0, 300)}`)
  if (!type.startsWith("text/event-stream")) return [JSON.parse(body)]
  return body.split("\n").filter((line) => line.startsWith("data: {")).map((line) => JSON.parse(line.slice(6)))
}
