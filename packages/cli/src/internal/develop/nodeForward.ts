/**
 * Forwards requests to a protected server: a listener on the loopback interface that adds headers and credentials to each
 * request, and changes nothing else. The conformance suite has no options for headers.
 */
import type { Credentials } from "@skein/client/Credentials"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { randomUUID } from "node:crypto"
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  request as httpRequest,
  type ServerResponse
} from "node:http"
import { request as httpsRequest } from "node:https"
import type { AddressInfo } from "node:net"
import { type CommandFailed, failed } from "../base/process.ts"

/** The server that requests are forwarded to. */
export interface Forwarded {
  readonly url: URL
  readonly headers: Readonly<Record<string, string>>
  /** Undefined if the headers authorize the requests. */
  readonly credentials: Credentials["Service"] | undefined
  /** The number of bytes in the body of a request. A larger one is answered with 413. */
  readonly maxBodyBytes: number
}

// How often one request is sent again with other credentials.
const maxChallenges = 2

// Headers of one connection (RFC 9110, 7.6.1), and the length of the body, which is known again.
const ofConnection: ReadonlySet<string> = /* @__PURE__ */ new Set([
  "connection",
  "keep-alive",
  "proxy-connection",
  "transfer-encoding",
  "upgrade",
  "content-length"
])

const without = (headers: IncomingHttpHeaders): Record<string, string | ReadonlyArray<string>> =>
  Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) =>
      value === undefined || ofConnection.has(name) ? [] : [[name, value]]
    )
  )

const readBody = async (request: IncomingMessage, most: number): Promise<Buffer | undefined> => {
  const chunks: Array<Buffer> = []
  let size = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length
    if (size <= most) chunks.push(chunk)
  }
  return size > most ? undefined : Buffer.concat(chunks)
}

/** Sends a request, and returns the response when its headers have arrived. */
const send = (
  to: URL,
  method: string,
  headers: Record<string, string | ReadonlyArray<string>>,
  body: Buffer,
  signal: AbortSignal
): Promise<IncomingMessage> =>
  new Promise((resolve, reject) => {
    const options = { method, headers: headers as Record<string, string | Array<string>>, signal }
    const request = (to.protocol === "https:" ? httpsRequest : httpRequest)(to, options, resolve)
    request.on("error", reject)
    request.end(body)
  })

const methods = ["GET", "POST", "DELETE"] as const

const forwardRequest = async (
  { credentials, headers: given, maxBodyBytes, url }: Forwarded,
  own: string,
  to: URL,
  request: IncomingMessage,
  response: ServerResponse,
  signal: AbortSignal
): Promise<void> => {
  const body = await readBody(request, maxBodyBytes)
  if (body === undefined) return void response.writeHead(413).end()
  const { method: text = "GET" } = request
  const method = methods.find((each) => each === text)
  const received = without(request.headers)
  // Other values are those of a scenario about DNS rebinding.
  if (received["host"] === own) received["host"] = url.host
  if (received["origin"] === `http://${own}`) received["origin"] = url.origin
  if (body.length > 0) received["content-length"] = String(body.length)
  for (const [name, value] of Object.entries(given)) received[name.toLowerCase()] = value
  const called = method === undefined ? undefined : { method, url: to, server: url }
  for (let attempt = 1;; attempt++) {
    const added = credentials === undefined || called === undefined
      ? {}
      : await Effect.runPromise(credentials.headers(called), { signal })
    const answer = await send(to, text, { ...received, ...added }, body, signal)
    const { statusCode: status = 502 } = answer
    const reply = {
      url: to,
      server: url,
      header: (name: string) => {
        const value = answer.headers[name.toLowerCase()]
        return Array.isArray(value) ? value.join(", ") : value
      }
    }
    credentials?.replied?.({ ...reply, status })
    if (
      credentials !== undefined && called !== undefined && (status === 401 || status === 403) &&
      attempt <= maxChallenges
    ) {
      const challenge = {
        ...reply,
        status,
        wwwAuthenticate: reply.header("www-authenticate"),
        authorization: added["authorization"],
        attempt
      } as const
      if (await Effect.runPromise(credentials.refused(challenge), { signal })) {
        answer.resume()
        continue
      }
    }
    response.writeHead(status, without(answer.headers) as Record<string, string | Array<string>>)
    answer.on("error", () => response.destroy())
    return void answer.pipe(response)
  }
}

/**
 * Listens until the scope closes. Returns the URL to use instead of that of the server. Its path begins with a random
 * part: other pages and programs of this computer cannot use the credentials.
 */
export const forward = (forwarded: Forwarded): Effect.Effect<string, CommandFailed, Scope.Scope> =>
  Effect.gen(function*() {
    const { url } = forwarded
    const prefix = `/${randomUUID()}`
    let own = ""
    const server = createServer((request, response) => {
      const { pathname, search } = new URL(request.url ?? "/", "http://127.0.0.1")
      if (!pathname.startsWith(`${prefix}/`)) return void response.writeHead(404).end()
      const to = new URL(url)
      to.pathname = pathname.slice(prefix.length)
      to.search = search
      const abort = new AbortController()
      response.on("close", () => abort.abort())
      forwardRequest(forwarded, own, to, request, response, abort.signal).catch(() => {
        if (response.headersSent) return response.destroy()
        response.writeHead(502).end()
      })
    })
    yield* Effect.acquireRelease(
      Effect.callback<void, CommandFailed>((resume) => {
        server.once("error", ({ message }) => resume(failed(3, `A port of this computer cannot be used: ${message}`)))
        server.listen(0, "127.0.0.1", () => resume(Effect.void))
      }),
      () =>
        Effect.sync(() => {
          server.closeAllConnections()
          server.close()
        })
    )
    own = `127.0.0.1:${(server.address() as AddressInfo).port}`
    return `http://${own}${prefix}${url.pathname}${url.search}`
  })
