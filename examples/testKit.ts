/**
 * Shared by the tests of the examples: runs an example as a process, and sends it requests over HTTP.
 */
import * as Revision from "@skein/protocol/Revision"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { spawn } from "node:child_process"
import { once } from "node:events"
import { join } from "node:path"
import * as ports from "../scripts/freePort.ts"

/** Parsed JSON of any shape. */
export type Json = any

/** The absolute path of a file in this folder. */
export const path = (file: string): string => join(import.meta.dirname, file)

/** The command that runs an example with the current Node. */
export const program = (file: string, ...args: ReadonlyArray<string>) => ({
  command: process.execPath,
  args: ["--conditions=@skein/source", path(file), ...args]
})

/** A running process and its output so far. */
export interface RunningProcess {
  readonly out: () => string
  readonly err: () => string
  /** Waits until stdout or stderr matches, and returns the match. Rejects if the process ends before that. */
  readonly until: (pattern: RegExp) => Promise<string>
  readonly kill: (signal: NodeJS.Signals) => void
  /** The exit code or signal, once the process and all children that share its stdout have ended. */
  readonly ended: Promise<number | string>
}

/** Starts a program, with these variables in addition to those of this process. Closing the scope kills it. */
export const start = (
  { args, command }: { readonly command: string; readonly args: ReadonlyArray<string> },
  env: Readonly<Record<string, string>> = {}
): Effect.Effect<RunningProcess, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const child = spawn(command, args, {
        cwd: path(".."),
        env: { ...process.env, ...env },
        stdio: ["ignore", "pipe", "pipe"]
      })
      let out = ""
      let err = ""
      child.stdout.setEncoding("utf8").on("data", (text: string) => void (out += text))
      child.stderr.setEncoding("utf8").on("data", (text: string) => void (err += text))
      const ended = once(child, "close").then(([code, signal]) => code ?? signal)
      const until = (pattern: RegExp): Promise<string> =>
        new Promise((resolve, reject) => {
          const check = () => {
            const match = pattern.exec(out) ?? pattern.exec(err)
            if (match !== null) resolve(match[0])
          }
          child.stdout.on("data", check)
          child.stderr.on("data", check)
          ended.then(
            () => reject(new Error(`the process ended before its output matched ${pattern}:\n${out}\n${err}`)),
            reject
          )
          check()
        })
      return { child, out: () => out, err: () => err, until, ended, kill: (signal) => void child.kill(signal) } as const
    }),
    ({ child }) => Effect.sync(() => void child.kill("SIGKILL"))
  )

/** The URL that a started server has printed. */
export const urlOf = ({ until }: RunningProcess): Effect.Effect<string> =>
  Effect.promise(() => until(/http:\/\/127\.0\.0\.1:\d+\/mcp/))

/** A port of this computer that is free now. */
export const freePort = Effect.promise(ports.freePort)

const accept = "application/json, text/event-stream"

const post = async (url: string, headers: Readonly<Record<string, string>>, message: Json): Promise<Response> =>
  fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json", accept, ...headers },
    body: JSON.stringify({ jsonrpc: "2.0", ...message })
  })

/** The response message: a JSON body, or the last message of a stream. */
const readResponse = async (response: Response): Promise<Json> => {
  const text = await response.text()
  if (!response.headers.get("content-type")?.startsWith("text/event-stream")) return JSON.parse(text)
  return JSON.parse(text.split("\n").findLast((line) => line.startsWith("data: {"))!.slice("data: ".length))
}

/** Sends a request and returns the whole response message. */
export type SendRequest = (method: string, params?: Json) => Effect.Effect<Json>

/** Sends requests of 2026-07-28, each without a session. */
const stateless = (url: string): SendRequest => (method, params = {}) =>
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
    return readResponse(await post(url, headers, { id: 1, method, params: { _meta, ...params } }))
  })

/** Opens a session and sends requests in it. */
const openSession = (url: string, revision: Revision.Revision): Effect.Effect<SendRequest> =>
  Effect.promise(async () => {
    const params = { protocolVersion: revision, capabilities: {}, clientInfo: { name: "test", version: "1" } }
    const opened = await post(url, {}, { id: 0, method: "initialize", params })
    const headers = { "mcp-session-id": opened.headers.get("mcp-session-id")!, "mcp-protocol-version": revision }
    await readResponse(opened)
    await (await post(url, headers, { method: "notifications/initialized" })).text()
    let id = 0
    return (method, params) =>
      Effect.promise(async () => readResponse(await post(url, headers, { id: ++id, method, params })))
  })

/** Connects to the server at a URL with a revision. */
export const connect = (url: string, revision: Revision.Revision): Effect.Effect<SendRequest> =>
  Revision.era(revision) === "stateless" ? Effect.succeed(stateless(url)) : openSession(url, revision)

/** The revisions that have Streamable HTTP. */
export const httpRevisions = Revision.all.filter((revision) => revision >= "2025-03-26")
