/**
 * Helpers of the HTTP tests: a server on a free port, and a client that sends exactly the given bytes, over `node:http`
 * or over a bare socket.
 */
import * as Header from "@skein/protocol/Header"
import type * as JsonRpc from "@skein/protocol/JsonRpc"
import type * as Catalog from "@skein/server/Catalog"
import type { HttpAnswer, HttpRequest } from "@skein/server/Http"
import type * as McpServer from "@skein/server/McpServer"
import * as NodeHttp from "@skein/server/NodeHttp"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import type { IncomingHttpHeaders, IncomingMessage, OutgoingHttpHeaders } from "node:http"
import { request as httpRequest } from "node:http"
import { connect, type Socket } from "node:net"
import { type Json, meta } from "../kit.ts"
import type { FixedBounds } from "../../src/internal/base/fixedBounds.ts"
import { bounds } from "../fixedBounds.ts"
import { watch, type Watcher } from "./watch.ts"

export { type Json, meta } from "../kit.ts"

/** A server that listens on a free port for the duration of the test. */
export const serve = (
  server: Layer.Layer<McpServer.McpServer | Catalog.Catalog, unknown>,
  options?: NodeHttp.Options
): Effect.Effect<NodeHttp.Server["Service"], never, Scope.Scope> => {
  const listening = NodeHttp.layer({ port: 0, ...options }).pipe(Layer.provide(server))
  return Effect.map(Effect.orDie(Layer.build(listening)), (context) => Context.get(context, NodeHttp.Server))
}

/** Lowers bounds that have no option. */
export const bounded = (changed: Partial<FixedBounds>) => Effect.provide(bounds(changed))

/** A request to send. A header of `undefined` is left out. */
export interface Request {
  readonly method?: string
  readonly path?: string
  readonly headers?: { readonly [name: string]: string | ReadonlyArray<string> | undefined }
  /** A string or bytes are sent as they are; any other value is sent as JSON. */
  readonly body?: unknown
  /** The address of this machine to send from, as another client: 127.0.0.1 by default. */
  readonly localAddress?: string
}

/** One event of a stream. A comment has only its text. */
export interface Event {
  readonly id?: string
  readonly event?: string
  readonly retry?: number
  readonly data?: string
  readonly comment?: string
  /** The data as JSON, if it is JSON. */
  readonly json?: Json
}

/** A complete response. */
export interface Reply {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
  /** The body as JSON, if it is JSON. */
  readonly json: Json
  /** The events of a stream, and the messages in them. */
  readonly events: ReadonlyArray<Event>
  readonly messages: ReadonlyArray<Json>
}

/** A response that is read as it arrives. */
export interface Stream {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  /** Returns the next event, without comments. Dies if the stream ends before it. */
  readonly next: Effect.Effect<Event>
  /** Returns the next event or comment. */
  readonly nextRaw: Effect.Effect<Event>
  /** Returns the next message. */
  readonly message: Effect.Effect<Json>
  /** Returns the complete body of a response that is not a stream. */
  readonly text: Effect.Effect<string>
  /** How the response ended: completely, or aborted. */
  readonly ended: Effect.Effect<"end" | "cut">
  /** The received and unread events. */
  readonly waiting: () => ReadonlyArray<Event>
  readonly pause: () => void
  readonly resume: () => void
  /** Destroys the connection. */
  readonly leave: () => void
}

const jsonOf = (text: string | undefined): Json => {
  if (text === undefined || text === "") return undefined
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const eventOf = (block: string): Event => {
  const event: Record<string, Json> = {}
  for (const line of block.split("\n")) {
    if (line === "") continue
    const colon = line.indexOf(":")
    const value = line.slice(colon + 1).replace(/^ /, "")
    const field = line.slice(0, colon)
    if (field === "") event["comment"] = value
    else if (field === "retry") event["retry"] = Number(value)
    else if (field === "data" && event["data"] !== undefined) event["data"] += `\n${value}`
    else event[field] = value
  }
  const json = jsonOf(event["data"])
  return json === undefined ? event : { ...event, json }
}

const bytesOf = (body: unknown): string | Uint8Array | undefined =>
  body === undefined || typeof body === "string" || body instanceof Uint8Array ? body : JSON.stringify(body)

const start = (port: number, { body, headers, localAddress, method = "POST", path = "/mcp" }: Request) => {
  const sent = Object.fromEntries(Object.entries(headers ?? {}).filter(([, value]) => value !== undefined))
  const bytes = bytesOf(body)
  // Node would send the body of a GET without its length.
  const length = bytes === undefined || "transfer-encoding" in sent
    ? {}
    : { "content-length": Buffer.byteLength(bytes) }
  const request = httpRequest({
    host: "127.0.0.1",
    port,
    method,
    path,
    headers: { ...length, ...sent } as OutgoingHttpHeaders,
    agent: false,
    ...(localAddress === undefined ? {} : { localAddress })
  })
  request.end(bytes)
  return request
}

const headerOf = ({ headers }: IncomingMessage, name: string): string | undefined =>
  typeof headers[name] === "string" ? headers[name] : undefined

const observe = (watcher: Watcher, { data, event, json }: Event): void => {
  if (event !== undefined) watcher.named(event, data ?? "")
  watcher.message(json)
}

/**
 * Sends a request and reads the complete response. Every request has its own connection. Dies if the connection breaks.
 */
export const send = ({ port }: { readonly port: number }, request: Request): Effect.Effect<Reply> =>
  Effect.callback<Reply>((resume) => {
    const watcher = watch(request)
    const sent = start(port, request)
    sent.on("error", (error) => resume(Effect.die(error)))
    sent.on("response", (response) => {
      let text = ""
      response.setEncoding("utf8")
      response.on("data", (chunk: string) => void (text += chunk))
      response.on("error", (error) => resume(Effect.die(error)))
      response.on("end", () => {
        const stream = String(response.headers["content-type"]).startsWith("text/event-stream")
        const events = stream ? text.split("\n\n").filter((block) => block !== "").map(eventOf) : []
        watcher.head(response.statusCode!, (name) => headerOf(response, name))
        for (const event of events) observe(watcher, event)
        if (!stream) watcher.message(jsonOf(text))
        resume(Effect.succeed({
          status: response.statusCode!,
          headers: response.headers,
          text,
          json: stream ? undefined : jsonOf(text),
          events,
          messages: events.flatMap(({ json }) => json === undefined ? [] : [json])
        }))
      })
    })
    return Effect.sync(() => void sent.destroy())
  })

/**
 * Sends a request and reads its response as it arrives. The connection is destroyed with the scope, unless it is closed
 * before.
 */
export const open = (
  { port }: { readonly port: number },
  request: Request
): Effect.Effect<Stream, never, Scope.Scope> =>
  Effect.flatMap(
    Effect.acquireRelease(
      Effect.sync(() => start(port, request)),
      (sent) => Effect.sync(() => void sent.destroy())
    ),
    (sent) =>
      Effect.callback<Stream>((resume) => {
        const queue: Array<Event> = []
        let wake: (() => void) | undefined
        let over: "end" | "cut" | undefined
        const watcher = watch(request)
        sent.on("error", (error) => {
          over ??= "cut"
          wake?.()
          resume(Effect.die(error))
        })
        sent.on("response", (response) => {
          let text = ""
          watcher.head(response.statusCode!, (name) => headerOf(response, name))
          response.setEncoding("utf8")
          response.on("data", (chunk: string) => {
            const blocks = (text + chunk).split("\n\n")
            text = blocks.pop()!
            const events = blocks.filter((block) => block !== "").map(eventOf)
            for (const event of events) observe(watcher, event)
            queue.push(...events)
            wake?.()
          })
          response.on("end", () => {
            over ??= "end"
            watcher.message(jsonOf(text))
            wake?.()
          })
          response.on("error", () => {})
          response.on("close", () => {
            over ??= "cut"
            wake?.()
          })
          const change = Effect.callback<void>((resume) => {
            wake = () => resume(Effect.void)
          })
          const take = (wanted: (event: Event) => boolean): Effect.Effect<Event> =>
            Effect.suspend(() => {
              const at = queue.findIndex(wanted)
              if (at >= 0) return Effect.succeed(queue.splice(0, at + 1)[at]!)
              if (over !== undefined) return Effect.die(new Error(`The stream is over: ${over}`))
              return Effect.flatMap(change, () => take(wanted))
            })
          const ended: Effect.Effect<"end" | "cut"> = Effect.suspend(() =>
            over === undefined ? Effect.flatMap(change, () => ended) : Effect.succeed(over)
          )
          resume(Effect.succeed({
            status: response.statusCode!,
            headers: response.headers,
            next: take(({ comment }) => comment === undefined),
            nextRaw: take(() => true),
            text: Effect.map(ended, () => text),
            message: Effect.map(take(({ json }) => json !== undefined), ({ json }) => json),
            ended,
            waiting: () => queue,
            pause: () => void response.pause(),
            resume: () => void response.resume(),
            leave: () => void sent.destroy()
          }))
        })
      })
  )

/** A bare connection. */
export interface Raw {
  readonly write: (bytes: string | Uint8Array) => void
  /** Ends the sending side and continues to read. */
  readonly end: () => void
  /** Returns all received text once the other side has closed. */
  readonly closed: Effect.Effect<{ readonly text: string; readonly reset: boolean }>
  /** Returns all received text once it contains the given text. Dies if the connection is closed before. */
  readonly until: (text: string) => Effect.Effect<string>
  readonly socket: Socket
}

/** Opens a bare connection, which is destroyed with the scope. */
export const raw = (
  { port }: { readonly port: number },
  localAddress = "127.0.0.1"
): Effect.Effect<Raw, never, Scope.Scope> =>
  Effect.flatMap(
    Effect.acquireRelease(
      Effect.sync(() => connect({ host: "127.0.0.1", port, allowHalfOpen: true, localAddress })),
      (socket) => Effect.sync(() => void socket.destroy())
    ),
    (socket) =>
      Effect.callback<Raw>((resume) => {
        let text = ""
        let reset = false
        let over = false
        const waiting = new Set<() => void>()
        const wake = (): void => Array.from(waiting).forEach((one) => one())
        socket.setEncoding("utf8")
        socket.on("data", (chunk) => {
          text += String(chunk)
          wake()
        })
        socket.on("error", () => {
          reset = true
        })
        const end = (): void => {
          over = true
          wake()
        }
        socket.on("end", end)
        socket.on("close", end)
        const change = Effect.callback<void>((resume) => {
          const one = (): void => {
            waiting.delete(one)
            resume(Effect.void)
          }
          waiting.add(one)
          return Effect.sync(() => void waiting.delete(one))
        })
        const closed: Raw["closed"] = Effect.suspend(() =>
          over ? Effect.succeed({ text, reset }) : Effect.flatMap(change, () => closed)
        )
        const until = (part: string): Effect.Effect<string> =>
          Effect.suspend(() => {
            if (text.includes(part)) return Effect.succeed(text)
            if (over) return Effect.die(new Error(`The connection was closed before ${JSON.stringify(part)}: ${text}`))
            return Effect.flatMap(change, () => until(part))
          })
        socket.on("connect", () =>
          resume(Effect.succeed({
            write: (bytes) => void socket.write(bytes),
            end: () => void socket.end(),
            closed,
            until,
            socket
          })))
      })
  )

/** The headers that every POST has. */
export const posting = {
  "content-type": "application/json",
  accept: "application/json, text/event-stream"
} as const

/** Posts a message as it is. */
export const post = (
  server: { readonly port: number },
  body: unknown,
  headers?: Request["headers"]
): Effect.Effect<Reply> => send(server, { headers: { ...posting, ...headers }, body })

/** A request of the stateless revision, with its headers and its metadata. */
export const modern = (
  method: string,
  params: JsonRpc.JsonObject = {},
  { headers, id = 1, _meta }: {
    readonly id?: JsonRpc.Id
    readonly headers?: Request["headers"]
    readonly _meta?: JsonRpc.JsonObject
  } = {}
): Request => {
  const name = params["name"] ?? params["uri"]
  return {
    headers: {
      ...posting,
      ...Header.standard({
        protocolVersion: "2026-07-28",
        method,
        name: typeof name === "string" ? name : undefined
      }),
      ...headers
    },
    body: { jsonrpc: "2.0", id, method, params: { ...params, _meta: { ...meta(), ..._meta } } }
  }
}

/** A response without a connection: it records the calls of an adapter in order. */
export class RecordedAnswer implements HttpAnswer {
  readonly chunks: Array<string> = []
  status: number | undefined = undefined
  isClosed = false
  slow = false
  /** Disconnects, as a client does. */
  leave: () => void = () => {}
  readonly drained = Effect.void

  addHeaders(): void {}

  reply(status: number, _headers: object, body: string): void {
    this.status = status
    this.chunks.push(body)
    this.isClosed = true
  }

  open(status: number): void {
    this.status = status
  }

  write(chunk: string): boolean {
    this.chunks.push(chunk)
    return !this.slow
  }

  end(): void {
    this.isClosed = true
  }

  abort(): void {
    this.isClosed = true
  }

  onClose(left: () => void): void {
    this.leave = () => {
      this.isClosed = true
      left()
    }
  }
}

/** A request without a connection, for an endpoint that is tested with the test clock. */
export const recordedRequest = ({ body, headers = {}, method = "POST", path = "/mcp" }: Request): HttpRequest => {
  const sent = new Map(
    Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value as string | undefined])
  )
  return {
    method,
    path,
    params: undefined,
    principal: undefined,
    size: 0,
    header: (name) => name === "host" ? "localhost" : sent.get(name),
    read: (_limit, done) => done({ text: JSON.stringify(body) })
  }
}
