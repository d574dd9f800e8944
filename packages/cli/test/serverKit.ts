/** Runs `skein` in this process, against the server of `teaHouse.ts` over stdio and HTTP. */
import * as NodeHttp from "@skein/server/NodeHttp"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { mkdtempSync, rmSync } from "node:fs"
import { createServer, type RequestListener } from "node:http"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { flag } from "../../../scripts/compileCache.ts"
import { type Console, Process, type Terminal } from "../src/internal/base/process.ts"
import { runCommand } from "../src/internal/commands/runCommand.ts"
import { skeinArguments, skeinCommand } from "../src/internal/commands/skeinCommand.ts"
import { TeaHouse } from "./teaHouse.ts"

/** The command that starts the server over stdio, as one word. */
export const teaHouse = [process.execPath, "--conditions=@skein/source", flag, join(import.meta.dirname, "teaHouse.ts")]
  .map((word) => `"${word}"`)
  .join(" ")

/** A folder that is deleted with the scope. */
export const folder: Effect.Effect<string, never, Scope.Scope> = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "skein-cli-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
)

/** Listens on a free port. Returns the URL. */
export const listen = (listener: RequestListener): Effect.Effect<string, never, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(
      Effect.promise(async () => {
        const http = createServer(listener)
        await new Promise<void>((listening) => http.listen(0, "127.0.0.1", listening))
        return http
      }),
      (http) =>
        Effect.sync(() => {
          http.closeAllConnections()
          http.close()
        })
    ),
    (http) => `http://127.0.0.1:${(http.address() as AddressInfo).port}/mcp`
  )

/** Serves a server of 2025-06-18 that has only these results. Other requests fail with the error. */
export const answering = (
  results: Readonly<Record<string, object | (() => object)>>,
  errorOf: (method: string) => object
): Effect.Effect<string, never, Scope.Scope> =>
  listen(async (request, response) => {
    let body = ""
    for await (const chunk of request) body += String(chunk)
    if (request.method !== "POST") return void response.writeHead(405).end()
    const { id, method } = JSON.parse(body)
    if (id === undefined) return void response.writeHead(202).end()
    const given = results[method]
    const result: unknown = typeof given === "function" ? given() : given
    response.writeHead(200, { "content-type": "application/json" })
    response.end(
      JSON.stringify({ jsonrpc: "2.0", id, ...result === undefined ? { error: errorOf(method) } : { result } })
    )
  })

/** Serves the tea house over HTTP. Returns its URL. */
export const teaHouseUrl: Effect.Effect<string, never, Scope.Scope> = Effect.gen(function*() {
  const mounted = yield* Effect.acquireRelease(
    Effect.promise(() => NodeHttp.mount(TeaHouse)),
    (mounted) => Effect.promise(() => mounted.close())
  )
  return yield* listen((request, response) => void mounted.handler(request, response))
})

export interface Ran {
  code: number
  readonly out: Array<string>
  readonly err: Array<string>
  readonly bytes: Array<Uint8Array>
}

export interface Surroundings {
  readonly terminal?: Terminal
  readonly isTerminal?: boolean
  readonly env?: Readonly<Record<string, string | undefined>>
}

/** Starts `skein`. The output is available while it runs. */
export const starting = (
  argv: ReadonlyArray<string>,
  { env = {}, isTerminal = false, terminal }: Surroundings = {}
) => {
  const ran: Ran = { code: -1, out: [], err: [], bytes: [] }
  const console: Console = {
    isTerminal,
    print: (text) => Effect.sync(() => void ran.out.push(text)),
    printBytes: (bytes) => Effect.sync(() => void ran.bytes.push(bytes)),
    warn: (line) => void ran.err.push(line)
  }
  const running = runCommand(skeinCommand, skeinArguments(argv)).pipe(
    Effect.provideService(Process, { env: { PATH: process.env["PATH"], HOME: "/nowhere", ...env }, console, terminal }),
    Effect.map((code) => {
      ran.code = code
      return ran
    })
  )
  return { ran, running }
}

/** Runs `skein` to its end. */
export const skein = (...argv: ReadonlyArray<string>): Effect.Effect<Ran> => starting(argv).running

/** Waits until a condition holds. */
export const until = (condition: () => boolean): Effect.Effect<void> =>
  Effect.gen(function*() {
    while (!condition()) yield* Effect.sleep("10 millis")
  })
