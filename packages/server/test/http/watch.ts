/**
 * Validates every message of an HTTP server in these tests against the official schemas, and checks that it is allowed
 * on its stream.
 */
import * as Revision from "@skein/protocol/Revision"
import { afterEach, expect } from "vitest"
import { type Json, Talk } from "../oracle.ts"

/** The faults found in this test. */
const faults: Array<string> = []

afterEach(() => {
  expect(faults.splice(0)).toEqual([])
})

/** Runs a check and collects the fault that it throws. The test fails with it at its end. */
export const watching = (look: () => void): void => {
  try {
    look()
  } catch (error) {
    faults.push((error as Error).message)
  }
}

/** The observer of a response. */
export interface Watcher {
  /** Receives the head. */
  readonly head: (status: number, header: (name: string) => string | undefined) => void
  /** Receives a message, of the body or of an event. */
  readonly message: (message: Json) => void
  /** Receives the data of an event that has a name. */
  readonly named: (event: string, data: string) => void
}

// The talks by session id, which is unique.
const sessions = new Map<string, Talk>()

const listenId = "io.modelcontextprotocol/subscriptionId"

const idOf = (path: string): string | undefined =>
  new URL(path, "http://localhost").searchParams.get("sessionId") ?? undefined

const parsed = (body: unknown): Json => {
  if (typeof body !== "string" && !(body instanceof Uint8Array)) return body
  try {
    return JSON.parse(typeof body === "string" ? body : new TextDecoder().decode(body))
  } catch {
    return undefined
  }
}

const versionOf = (message: Json): unknown => message?.params?._meta?.["io.modelcontextprotocol/protocolVersion"]

/**
 * Checks that a message other than the response may be on a stream of the stateless revision: it must belong to its
 * request.
 */
const belongs = (asked: Json, message: Json, first: boolean): string | undefined => {
  const about = (message.params ?? message.result)?._meta?.[listenId]
  if (asked.method === "subscriptions/listen") {
    if (message.error !== undefined) return undefined
    if (about !== asked.id) return "it does not say to which subscription it belongs"
    const acknowledged = message.method === "notifications/subscriptions/acknowledged"
    return acknowledged === first ? undefined : "the acknowledgment comes first, and once"
  }
  if (about !== undefined) return "there is no such subscription"
  switch (message.method) {
    case "notifications/progress":
      return message.params.progressToken === asked.params._meta.progressToken ? undefined : "it is of another request"
    case "notifications/message":
      return "io.modelcontextprotocol/logLevel" in asked.params._meta ? undefined : "nobody asked for it"
    case "notifications/test":
    case undefined:
      return undefined
    default:
      return "it does not belong on this stream"
  }
}

/** Watches the response to a request. */
export const watch = (
  { body, headers = {}, method = "POST", path = "/mcp" }: {
    readonly method?: string
    readonly path?: string
    readonly headers?: { readonly [name: string]: unknown }
    readonly body?: unknown
  }
): Watcher => {
  const asked = parsed(body)
  const header = (name: string): string | undefined => {
    const found = Object.entries(headers).find(([key]) => key.toLowerCase() === name)?.[1]
    return typeof found === "string" ? found : undefined
  }
  const stated = versionOf(asked) ?? header("mcp-protocol-version")
  const modern = (typeof stated === "string" && Revision.is(stated) && Revision.era(stated) === "stateless") ||
    versionOf(asked) !== undefined
  const sessionId = idOf(path) ?? header("mcp-session-id")
  const lone = new Talk(
    modern ? "2026-07-28" : typeof stated === "string" && Revision.is(stated) ? stated : "2025-03-26"
  )
  const talk = (!modern && sessionId !== undefined ? sessions.get(sessionId) : undefined) ?? lone
  talk.ask(asked)
  let legacy: Talk | undefined
  let status = 0
  let count = 0
  let answered = false
  const fault = (why: string, message: Json): void =>
    void faults.push(`${method} ${path} ${why}: ${JSON.stringify(message)}`)
  return {
    head: (code, header) => {
      status = code
      const id = header("mcp-session-id")
      if (id !== undefined && asked?.method === "initialize") sessions.set(id, talk)
      if (code === 202 && asked?.id !== undefined && asked.method !== undefined && idOf(path) === undefined) {
        fault("a request is not answered with 202", asked)
      }
    },
    named: (event, data) => {
      if (event === "endpoint") sessions.set(idOf(data)!, legacy = new Talk("2024-11-05"))
      else if (event !== "message") fault("no event has this name", event)
    },
    message: (message) => {
      if (typeof message !== "object" || message === null) return
      if (!Array.isArray(message) && !("jsonrpc" in message)) return
      try {
        // A refusal is a message of its own, and does not change the state of the session.
        const speaks = status === 200 ? legacy ?? talk : new Talk(lone.revision)
        if (status !== 200) speaks.ask(asked)
        speaks.receive(message)
      } catch (error) {
        fault("", (error as Error).message)
      }
      // "The server MUST NOT send a JSON-RPC response on the stream unless resuming" (2025-03-26 to 2025-11-25,
      // transports).
      const listens = method === "GET" && status === 200 && legacy === undefined
      if (listens && message.method === undefined && header("last-event-id") === undefined) {
        fault("a stream that resumes none has no answers", message)
      }
      if (answered) fault("nothing comes after the answer", message)
      if (!modern || asked?.method === undefined || message.error !== undefined) return
      const wrong = belongs(asked, message, count++ === 0)
      if (wrong !== undefined) fault(wrong, message)
      answered = message.method === undefined
    }
  }
}
