/**
 * What the tests of the examples share: an example as a process, and what to ask it over HTTP.
 */
import * as Revision from "@skein/protocol/Revision"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { spawn } from "node:child_process"
import { once } from "node:events"
import { join } from "node:path"

/** What came over the wire, whatever it is. */
export type Json = any

/** The path of a file of the examples. */
export const path = (file: string): string => join(import.meta.dirname, file)

/** How this Node runs an example. */
export const program = (file: string, ...args: ReadonlyArray<string>) => ({
  command: process.execPath,
  args: ["--conditions=@skein/source", "--disable-warning=ExperimentalWarning", path(file), ...args]
})

/** A process that runs, and what it has said so far. */
export interface Running {
  readonly out: () => string
  readonly err: () => string
  /** Waits until it has said something on stdout or stderr, or has ended. Gives what was matched. */
  readonly until: (what: RegExp) => Promise<string>
  readonly kill: (signal: NodeJS.Signals) => void
  /** How it ended: when nobody has its stdout any more, its own children neither. */
  readonly ended: Promise<number | string>
}

/** Starts a program. The scope kills it. */
export const start = (
  { args, command }: { readonly command: string; readonly args: ReadonlyArray<string> }
): Effect.Effect<Running, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const child = spawn(command, args, { cwd: path(".."), stdio: ["ignore", "pipe", "pipe"] })
      let out = ""
      let err = ""
      child.stdout.setEncoding("utf8").on("data", (text: string) => void (out += text))
      child.stderr.setEncoding("utf8").on("data", (text: string) => void (err += text))
      const ended = once(child, "close").then(([code, signal]) => code ?? signal)
      const until = (what: RegExp): Promise<string> =>
        new Promise((resolve, reject) => {
          const look = () => {
            const found = what.exec(out) ?? what.exec(err)
            if (found !== null) resolve(found[0])
          }
          child.stdout.on("data", look)
          child.stderr.on("data", look)
          ended.then(() => reject(new Error(`It ended without a word of ${what}:\n${out}\n${err}`)), reject)
          look()
        })
      return { child, out: () => out, err: () => err, until, ended, kill: (signal) => void child.kill(signal) } as const
    }),
    ({ child }) => Effect.sync(() => void child.kill("SIGKILL"))
  )

/** Where a server that was started listens. */
export const urlOf = ({ until }: Running): Effect.Effect<string> =>
  Effect.promise(() => until(/http:\/\/127\.0\.0\.1:\d+\/mcp/))

const accept = "application/json, text/event-stream"

const post = async (url: string, headers: Readonly<Record<string, string>>, message: Json): Promise<Response> =>
  fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json", accept, ...headers },
    body: JSON.stringify({ jsonrpc: "2.0", ...message })
  })

/** The answer, which is JSON or the last message of a stream. */
const answerOf = async (response: Response): Promise<Json> => {
  const text = await response.text()
  if (!response.headers.get("content-type")?.startsWith("text/event-stream")) return JSON.parse(text)
  return JSON.parse(text.split("\n").findLast((line) => line.startsWith("data: {"))!.slice("data: ".length))
}

/** Asks, and gives the whole answer. */
export type Ask = (method: string, params?: Json) => Effect.Effect<Json>

/** What asks a server in the request era: one request, and nothing before it. */
const alone = (url: string): Ask => (method, params = {}) =>
  Effect.promise(async () => {
    const name = params.name ?? params.uri
    const headers = {
      "mcp-protocol-version": "2026-07-28",
      "mcp-method": method,
      ...(name === undefined ? undefined : { "mcp-name": name })
    }
    const _meta = {
      "io.modelcontextprotocol/protocolVersion": "2026-07-28",
      "io.modelcontextprotocol/clientCapabilities": {}
    }
    return answerOf(await post(url, headers, { id: 1, method, params: { _meta, ...params } }))
  })

/** What asks a server within a session. */
const session = (url: string, revision: Revision.Revision): Effect.Effect<Ask> =>
  Effect.promise(async () => {
    const params = { protocolVersion: revision, capabilities: {}, clientInfo: { name: "test", version: "1" } }
    const opened = await post(url, {}, { id: 0, method: "initialize", params })
    const headers = { "mcp-session-id": opened.headers.get("mcp-session-id")!, "mcp-protocol-version": revision }
    await answerOf(opened)
    await (await post(url, headers, { method: "notifications/initialized" })).text()
    let id = 0
    return (method, params) =>
      Effect.promise(async () => answerOf(await post(url, headers, { id: ++id, method, params })))
  })

/** What asks the server at an address, in a revision. */
export const asking = (url: string, revision: Revision.Revision): Effect.Effect<Ask> =>
  Revision.era(revision) === "request" ? Effect.succeed(alone(url)) : session(url, revision)

/** The revisions that have Streamable HTTP. */
export const overHttp = Revision.all.filter((revision) => revision >= "2025-03-26")
