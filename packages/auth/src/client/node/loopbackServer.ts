/**
 * The HTTP server that a browser comes back to after a sign-in (RFC 8252, 7.3). It answers one redirect URI, and ends a
 * sign-in only with an answer that has its `state`.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { createHash } from "node:crypto"
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http"
import type { AddressInfo, Socket } from "node:net"
import { escapeHtml } from "../../shared/web.ts"
import { type LoopbackHost, parseLoopback } from "../protocol/redirectUri.ts"
import type { SignInBounds } from "./bounds.ts"

/**
 * The subject of a page. `received`: the answer arrived, and the program continues with it. `refused`: the answer is an
 * error. `unknown`: the request is not an answer that the program waits for.
 */
type Kind = "received" | "refused" | "unknown"

const style = `
:root { color-scheme: light dark; --text: #1c1f26; --muted: #555c68; --ground: #f4f5f7; --card: #fff; --line: #d9dce2 }
@media (prefers-color-scheme: dark) {
  :root { --text: #eceef2; --muted: #a7adb9; --ground: #14161a; --card: #1e2127; --line: #343943 }
}
* { box-sizing: border-box }
body { margin: 0; min-height: 100vh; display: grid; place-items: center; padding: 1.5rem; background: var(--ground);
  color: var(--text); font: 1rem/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif }
main { max-width: 30rem; width: 100%; padding: 2rem 2.25rem; background: var(--card); border: 1px solid var(--line);
  border-radius: .75rem; border-top: .25rem solid var(--mark) }
.received { --mark: #2e8b57 } .refused { --mark: #c4532d } .unknown { --mark: #8a919e }
h1 { margin: 0 0 .75rem; font-size: 1.35rem; line-height: 1.3; overflow-wrap: anywhere }
p { margin: 0; color: var(--muted); overflow-wrap: anywhere } p + p { margin-top: .5rem }
`

const texts = (name: string): Readonly<Record<Kind, readonly [title: string, text: string]>> => ({
  received: ["Sign-in received", `${name} completes it now, and shows whether you are signed in.`],
  refused: ["You are not signed in", `The sign-in was refused or cancelled. ${name} shows the reason.`],
  unknown: ["No sign-in uses this page", `If you are not signed in yet, start again in ${name}.`]
})

/**
 * The HTML of a page that a browser shows when a person comes back. It has no scripts, contains nothing of the request, and
 * loads nothing. `name` is the program that the person signs in with.
 */
export const render = (kind: Kind, name: string): string => {
  const [title, text] = texts(escapeHtml(name))[kind]
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>${title}</title>
<link rel="icon" href="data:,">
<style>${style}</style>
</head>
<body class="${kind}">
<main>
<h1>${title}</h1>
<p>${text}</p>
${kind === "unknown" ? "" : "<p>You may close this page.</p>\n"}</main>
</body>
</html>
`
}

/** The headers of each page. The address of the page contains the authorization code, so no other site may learn it. */
const makeHeaders = (): Readonly<Record<string, string>> => {
  const styleHash = createHash("sha256").update(style).digest("base64")
  return {
    "content-type": "text/html; charset=utf-8",
    "content-security-policy": `default-src 'none'; style-src 'sha256-${styleHash}'; img-src data:; base-uri 'none'; ` +
      "form-action 'none'; frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    connection: "close"
  }
}

// How long a browser may take to send a request, in milliseconds.
const maxRequestTime = 10_000

/** A server that listens. */
export interface LoopbackServer {
  readonly port: number
  /**
   * Sets the redirect URI that is answered, and waits for the parameters of its first request with this `state`. The
   * page has been sent to the browser when it succeeds.
   */
  readonly answer: (redirectUri: string, state: string) => Effect.Effect<URLSearchParams>
}

/** The pages that are fetched before a person asks for them, and thrown away if they fail. */
const isPrefetch = ({ headers }: IncomingMessage): boolean =>
  [headers["sec-purpose"], headers["purpose"], headers["x-purpose"], headers["x-moz"]].some((value) =>
    /prefetch|prerender|preview/i.test(String(value ?? ""))
  )

interface Waiting {
  readonly authority: string
  readonly path: string
  readonly state: string
  readonly resolve: (answer: URLSearchParams) => void
}

/** The answer to a request: a status, a page, and the parameters if they end the sign-in. */
interface Reply {
  readonly status: number
  readonly kind: Kind
  readonly answer?: URLSearchParams
}

const replyTo = (request: IncomingMessage, waiting: Waiting | undefined): Reply => {
  const unknown = (status: number): Reply => ({ status, kind: "unknown" })
  const target = request.url ?? ""
  const query = target.indexOf("?")
  if (waiting === undefined || query < 0) return unknown(404)
  // A page of another site whose name leads to this computer (DNS rebinding) sends its own name.
  if (request.headers.host?.toLowerCase() !== waiting.authority) return unknown(421)
  const params = new URLSearchParams(target.slice(query))
  const states = params.getAll("state")
  if (target.slice(0, query) !== waiting.path || states.length !== 1 || states[0] !== waiting.state) return unknown(404)
  if (request.method !== "GET") return unknown(405)
  if (isPrefetch(request)) return unknown(503)
  return { status: 200, kind: params.has("error") ? "refused" : "received", answer: params }
}

/** Listens on one address. The error is that of `node:net`: `EADDRINUSE`, for example. */
const listen = (server: Server, port: number, address: string): Effect.Effect<number, NodeJS.ErrnoException> =>
  Effect.callback((resume) => {
    const failed = (error: NodeJS.ErrnoException): void => resume(Effect.fail(error))
    server.once("error", failed)
    server.listen({ port, host: address, exclusive: true }, () => {
      server.off("error", failed)
      resume(Effect.succeed((server.address() as AddressInfo).port))
    })
  })

// A computer without IPv6 has no other address for the name `localhost`.
const hasNoIpv6 = ({ code }: NodeJS.ErrnoException): boolean => code === "EADDRNOTAVAIL" || code === "EAFNOSUPPORT"

/**
 * Starts a server on the port, 0 for any that is free. For `localhost` it listens on both addresses of that name, so
 * that no other program can receive the answer on one of them. It is closed with its scope.
 */
export const start = (
  host: LoopbackHost,
  port: number,
  name: string,
  { maxConnections, maxRequestBytes, maxRequests }: SignInBounds
): Effect.Effect<LoopbackServer, NodeJS.ErrnoException, Scope.Scope> => {
  const headers = makeHeaders()
  let waiting: Waiting | undefined
  let requests = 0

  const onRequest = (request: IncomingMessage, response: ServerResponse): void => {
    const { answer, kind, status } = replyTo(request, waiting)
    // The answer of the person arrives whatever else was sent.
    if (answer === undefined && ++requests > maxRequests) return void request.socket.destroy()
    const page = render(kind, name)
    response.writeHead(status, {
      ...headers,
      ...(status === 405 ? { allow: "GET" } : {}),
      "content-length": Buffer.byteLength(page)
    })
    response.end(request.method === "HEAD" ? undefined : page)
    if (answer === undefined) return
    const { resolve } = waiting!
    waiting = undefined
    // The sign-in closes this server, so it goes on when the browser has the page.
    response.once("close", () => resolve(answer))
  }

  const sockets = new Set<Socket>()
  const onConnection = (socket: Socket): void => {
    sockets.add(socket)
    socket.once("close", () => sockets.delete(socket))
    // Connections that are held open must not keep the answer out.
    if (sockets.size > maxConnections) { for (const oldest of sockets) return void oldest.destroy() }
  }

  const listenOn = (address: string, at: number) =>
    Effect.gen(function*() {
      const server = yield* Effect.acquireRelease(
        Effect.sync(() =>
          createServer({
            maxHeaderSize: maxRequestBytes,
            requestTimeout: maxRequestTime,
            headersTimeout: maxRequestTime,
            connectionsCheckingInterval: 1_000
          }, onRequest)
            .on("connection", onConnection)
        ),
        (server) =>
          Effect.callback<void>((resume) => {
            server.close(() => resume(Effect.void))
            server.closeAllConnections()
          })
      )
      return yield* listen(server, at, address)
    })

  const listening = host === "localhost"
    ? Effect.flatMap(listenOn("127.0.0.1", port), (chosen) =>
      Effect.as(
        Effect.catchIf(listenOn("::1", chosen), hasNoIpv6, () => Effect.succeed(chosen)),
        chosen
      ))
    : listenOn(host === "[::1]" ? "::1" : host, port)

  return Effect.map(listening, (port) => ({
    port,
    answer: (redirectUri, state) =>
      Effect.callback((resume) => {
        waiting = {
          authority: new URL(redirectUri).host,
          path: parseLoopback(redirectUri)?.path ?? "/",
          state,
          resolve: (answer) => resume(Effect.succeed(answer))
        }
        return Effect.sync(() => {
          waiting = undefined
        })
      })
  }))
}
