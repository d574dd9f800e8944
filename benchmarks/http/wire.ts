/**
 * What is said to a server over HTTP, and what it must answer.
 */
import { type Era, initialize, meta, revisionOf } from "../stdio/wire.ts"
import type { Answer, Request } from "./client.ts"

/** Stands where an id goes, of seven digits too: one that was not used before. */
export const placeholder = "0000000"

/** The request with an id in its place. */
export const numbered = (request: Request, id: number): Request => ({
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

/** A GET that opens a session's stream. */
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

/** A request that opens a stream of change notices in the request era. */
export const listen: Request = request("request", undefined, "subscriptions/listen", {
  notifications: { toolsListChanged: true }
})

/** What is asked again and again, and how its answer is known to be right. */
export interface Question {
  readonly request: (era: Era, session: string | undefined) => Request
  /** Arguments for the programs. */
  readonly args: ReadonlyArray<string>
  /** What is in each right answer, whatever server wrote it. */
  readonly marks: ReadonlyArray<string>
  /** Fails unless the messages of an answer are right. */
  readonly check: (messages: ReadonlyArray<any>) => void
}

/** The last message must be a result; anything else is what went wrong. */
const resultOf = (messages: ReadonlyArray<any>): any => {
  const result = messages.at(-1)?.result
  if (result === undefined || result.isError === true) {
    throw new Error(`Not a result: ${JSON.stringify(messages.at(-1) ?? null).slice(0, 300)}`)
  }
  return result
}

/** A server may give the text as structured content too, and then mirror it as JSON, as effect/ai does. */
const checkText = (result: any, expected: string): void => {
  const said = result.content?.length === 1 ? result.content[0].text : undefined
  if (said !== expected && !(result.structuredContent === expected && said === JSON.stringify(expected))) {
    throw new Error(`Not "${expected}": ${JSON.stringify(result).slice(0, 300)}`)
  }
}

/** A call with small arguments. */
export const call: Question = {
  request: (era, session) =>
    request(era, session, "tools/call", { name: "echo", arguments: { message: "wind", times: 2 } }),
  args: [],
  marks: [`"result":`, "windwind"],
  check: (messages) => checkText(resultOf(messages), "windwind")
}

/** How many tools are listed. */
export const listed = 100

/** The list of all tools, on one page. */
export const list: Question = {
  request: (era, session) => request(era, session, "tools/list", {}),
  args: [`--tools=${listed}`],
  marks: [`"result":`, `"count"`, `"tool-${listed - 3}"`],
  check: (messages) => {
    const { tools } = resultOf(messages)
    if (tools?.length !== listed) throw new Error(`${tools?.length} tools, not ${listed}`)
  }
}

/** How many progress notifications an answer brings. */
export const events = 500

/** A call whose answer is a stream: many progress notifications, then the result. */
export const count: Question = {
  request: (era, session) =>
    request(era, session, "tools/call", {
      name: "count",
      arguments: { to: events },
      _meta: { progressToken: `count-${placeholder}` }
    }),
  args: [],
  marks: [`"progress":1,`, `"progress":${events},`, `Counted to ${events}`],
  check: (messages) => {
    const told = messages.slice(0, -1).map((message) => message.params?.progress)
    const missing = told.length !== events || told.some((progress, index) => progress !== index + 1)
    if (missing) throw new Error(`${told.length} progress notifications, not 1 to ${events} in order`)
    checkText(resultOf(messages), `Counted to ${events}`)
  }
}

/** The messages of an answer: one, or those of a stream. */
export const messagesOf = ({ body, status, type }: Answer): ReadonlyArray<unknown> => {
  if (status !== 200) throw new Error(`${status} ${body.slice(0, 300)}`)
  if (!type.startsWith("text/event-stream")) return [JSON.parse(body)]
  return body.split("\n").filter((line) => line.startsWith("data: {")).map((line) => JSON.parse(line.slice(6)))
}
