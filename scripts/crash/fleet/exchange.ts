/**
 * HTTP requests of a client that sees each status, each event, and how a response ends. Each has its own connection.
 */
import { type IncomingHttpHeaders, request } from "node:http"

export type Json = any

/** One event of a stream. */
export interface Event {
  readonly id?: string
  readonly retry?: number
  readonly json?: Json
}

export interface Exchange {
  readonly method: "POST" | "GET" | "DELETE"
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: Json
  readonly signal?: AbortSignal
  /** Called with the events of a stream as they arrive. */
  readonly onEvent?: (event: Event) => void
  readonly onHead?: (status: number) => void
}

/** A response. The status is 0 if none has arrived. */
export interface Reply {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  /** The body, if it is JSON. */
  readonly json: Json
  /** Whether it has ended completely. */
  readonly isComplete: boolean
}

const jsonOf = (text: string): Json => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const eventOf = (block: string): Event => {
  const fields = new Map(
    block.split("\n").map((line) => {
      const colon = line.indexOf(":")
      return [line.slice(0, colon), line.slice(colon + 1).replace(/^ /, "")] as const
    })
  )
  const [id, retry, data] = [fields.get("id"), fields.get("retry"), fields.get("data")]
  return {
    ...(id === undefined ? {} : { id }),
    ...(retry === undefined ? {} : { retry: Number(retry) }),
    ...(data === undefined || data === "" ? {} : { json: jsonOf(data) })
  }
}

/** Sends a request to a port of loopback, and reads the response to its end. It never fails. */
export const exchange = (port: number, { body, headers, method, onEvent, onHead, signal }: Exchange): Promise<Reply> =>
  new Promise((resolve) => {
    const text = body === undefined ? undefined : JSON.stringify(body)
    const sent = request({
      host: "127.0.0.1",
      port,
      method,
      path: "/mcp",
      agent: false,
      ...(signal === undefined ? {} : { signal }),
      headers: {
        accept: method === "GET" ? "text/event-stream" : "application/json, text/event-stream",
        ...(text === undefined
          ? {}
          : { "content-type": "application/json", "content-length": Buffer.byteLength(text) }),
        ...headers
      }
    })
    const broken = (): void => resolve({ status: 0, headers: {}, json: undefined, isComplete: false })
    sent.on("error", broken)
    sent.on("response", (response) => {
      const { headers, statusCode: status = 0 } = response
      onHead?.(status)
      const isStream = headers["content-type"] === "text/event-stream"
      let rest = ""
      response.setEncoding("utf8").on("data", (chunk: string) => {
        rest += chunk
        if (!isStream) return
        const blocks = rest.split("\n\n")
        rest = blocks.pop()!
        for (const block of blocks) if (!block.startsWith(":")) onEvent?.(eventOf(block))
      })
      response.on("error", () => {})
      response.on(
        "close",
        () => resolve({ status, headers, json: isStream ? undefined : jsonOf(rest), isComplete: response.complete })
      )
    })
    sent.end(text)
  })
