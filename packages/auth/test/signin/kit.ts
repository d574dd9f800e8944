/** A browser of single requests, and sign-ins that are open. */
import type * as SignIn from "@skein/auth/SignIn"
import * as Effect from "effect/Effect"
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { type IncomingHttpHeaders, request } from "node:http"
import { connect } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"

/** The sign-in page, which the tests do not visit. */
export const page = new URL("https://login.example/authorize?client_id=tea&state=s1")

/** A client that is not registered yet. */
export const unregistered: SignIn.OpenOptions = {
  redirectUris: [],
  fixed: false,
  resource: "https://tea.example/mcp"
}

/** A client that is registered with these redirect URIs and no others. */
export const registered = (...redirectUris: ReadonlyArray<string>): SignIn.OpenOptions => ({
  ...unregistered,
  redirectUris,
  fixed: true
})

export interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

/** Sends one request, as written. */
export const send = (
  url: string,
  options: { readonly method?: string; readonly headers?: Record<string, string>; readonly body?: string } = {}
): Promise<Answer> =>
  new Promise((resolve, reject) => {
    const { body: sent, headers, method } = options
    const outgoing = request(url, { method, headers, agent: false }, (response) => {
      let body = ""
      response.setEncoding("utf8").on("data", (text: string) => void (body += text))
      response.on("end", () => resolve({ status: response.statusCode!, headers: response.headers, body }))
      response.on("error", reject)
    })
    outgoing.on("error", reject)
    outgoing.end(sent)
  })

/** Whether something listens there. */
export const listens = (port: number, host = "127.0.0.1"): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect({ port, host })
    socket.on("connect", () => {
      socket.destroy()
      resolve(true)
    })
    socket.on("error", () => resolve(false))
  })

/** A directory that is removed with its scope. */
export const directory = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "skein-signin-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
)

/** Writes a program of Node into a directory, and returns its path. */
export const program = (directory: string, name: string, source: string): string => {
  const path = join(directory, name)
  writeFileSync(path, `#!${process.execPath}\n${source}`)
  chmodSync(path, 0o755)
  return path
}
