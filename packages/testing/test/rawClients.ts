/** Clients that send and read raw bytes. */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { spawn } from "node:child_process"
import { connect } from "node:net"

/** The text of an HTTP request. */
export const requestText = (
  method: string,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
  path = "/mcp"
): string => {
  const text = body === undefined ? "" : JSON.stringify(body)
  const lines = Object.entries({
    host: "localhost",
    connection: "close",
    "content-type": "application/json",
    "content-length": String(Buffer.byteLength(text)),
    ...headers
  }).map(([name, value]) => `${name}: ${value}`)
  return `${method} ${path} HTTP/1.1\r\n${lines.join("\r\n")}\r\n\r\n${text}`
}

/** Sends bytes, reads until the connection ends, and returns the bytes with the cause of the end. */
export const bytes = (
  port: number,
  text: string
): Effect.Effect<{ readonly text: string; readonly pieces: number; readonly end: string }> =>
  Effect.callback((resume) => {
    let got = Buffer.alloc(0)
    let pieces = 0
    let end = "end"
    const socket = connect({ port, host: "127.0.0.1" }, () => socket.write(text))
    socket.on("data", (chunk) => {
      pieces++
      got = Buffer.concat([got, chunk])
    })
    socket.on("error", (error) => {
      end = (error as { readonly code?: string }).code ?? "error"
    })
    socket.on("close", () => resume(Effect.succeed({ text: got.toString("utf8"), pieces, end })))
    return Effect.sync(() => socket.destroy())
  })

export const call = (id: unknown, name: string, args: object = {}, meta?: object) => ({
  jsonrpc: "2.0",
  id,
  method: "tools/call",
  params: { name, arguments: args, ...(meta === undefined ? undefined : { _meta: meta }) }
})

export const initialize = (id: unknown = 0) => ({
  jsonrpc: "2.0",
  id,
  method: "initialize",
  params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "test", version: "1" } }
})

const headers = { "content-type": "application/json", accept: "application/json, text/event-stream" }

/** POSTs a message and reads the whole response. */
export const post = (url: string, message: unknown, more: Readonly<Record<string, string>> = {}) =>
  Effect.promise(async (signal) => {
    const reply = await fetch(url, {
      method: "POST",
      headers: { ...headers, ...more },
      body: JSON.stringify(message),
      redirect: "manual",
      signal
    })
    return { status: reply.status, headers: reply.headers, text: await reply.text() }
  })

/** The messages in a stream of events. */
export const messages = (text: string): ReadonlyArray<any> =>
  text.split(/\r\n\r\n|\n\n|\r\r/).flatMap((frame) => {
    const data = frame.split(/\r\n|[\r\n]/).filter((line) => line.startsWith("data:")).map((line) => line.slice(5))
    const text = data.join("\n").trim()
    return text === "" ? [] : [JSON.parse(text)]
  })

/** The ids of the events in a stream. */
export const ids = (text: string): ReadonlyArray<string> => Array.from(text.matchAll(/^id: (.*)$/gm), ([, id]) => id!)

/** Opens a session and returns its `mcp-session-id` header. */
export const session = (url: string): Effect.Effect<Record<string, string>> =>
  Effect.map(post(url, initialize()), (reply) => ({ "mcp-session-id": reply.headers.get("mcp-session-id") ?? "" }))

/** Starts a process, and writes to its stdin and reads its stdout. */
export const program = (
  command: string,
  args: ReadonlyArray<string>
): Effect.Effect<
  {
    readonly send: (message: unknown) => void
    readonly close: () => void
    readonly ended: Effect.Effect<{ readonly code: number | null; readonly text: string }>
    readonly until: (mark: string) => Effect.Effect<string>
  },
  never,
  Scope.Scope
> =>
  Effect.gen(function*() {
    const child = spawn(command, [...args], { stdio: ["pipe", "pipe", "inherit"] })
    yield* Effect.addFinalizer(() => Effect.sync(() => child.kill("SIGKILL")))
    let text = ""
    const listeners = new Set<() => void>()
    child.stdout.setEncoding("utf8").on("data", (chunk: string) => {
      text += chunk
      for (const listener of listeners) listener()
    })
    child.stdin.on("error", () => {})
    const exited = new Promise<number | null>((resolve) => child.once("close", resolve))
    return {
      send: (message) => void child.stdin.write(typeof message === "string" ? message : `${JSON.stringify(message)}\n`),
      close: () => child.stdin.end(),
      ended: Effect.promise(async () => ({ code: await exited, text })),
      until: (mark) =>
        Effect.callback<string>((resume) => {
          const look = () => {
            if (text.includes(mark)) resume(Effect.succeed(text))
          }
          listeners.add(look)
          look()
          return Effect.sync(() => listeners.delete(look))
        })
    }
  })
