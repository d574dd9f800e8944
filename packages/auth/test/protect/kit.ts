/** Helpers of the tests of protected servers: a server over real HTTP, and clients of all revisions. */
import * as Protect from "@skein/auth/Protect"
import * as TokenVerifier from "@skein/auth/TokenVerifier"
import type * as Http from "@skein/server/Http"
import * as LegacySse from "@skein/server/LegacySse"
import * as McpServer from "@skein/server/McpServer"
import * as NodeHttp from "@skein/server/NodeHttp"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import { request } from "node:http"
import * as ports from "../../../../scripts/freePort.ts"

export type Json = any

export const resource = "https://tea.example/mcp"
export const issuer = "https://login.example"
export const metadata = "https://tea.example/.well-known/oauth-protected-resource/mcp"

/** The tokens that the verifier of the tests accepts, and how often it was asked. */
export class Tokens {
  readonly known = new Map<string, Partial<TokenVerifier.OwnToken>>()
  verifications = 0
  /** Runs before each verification. */
  before: Effect.Effect<void, TokenVerifier.VerifierUnavailable> = Effect.void

  add(token: string, facts: Partial<TokenVerifier.OwnToken> = {}): string {
    this.known.set(token, facts)
    return token
  }

  readonly verifier: TokenVerifier.TokenVerifier = TokenVerifier.make({
    issuer,
    verify: (token) =>
      Effect.andThen(
        Effect.suspend(() => {
          this.verifications++
          return this.before
        }),
        Effect.suspend(() => {
          const facts = this.known.get(token)
          return facts === undefined
            ? Effect.fail(new TokenVerifier.InvalidToken({ message: "the token is unknown", problem: "Inactive" }))
            : Effect.succeed({ subject: "ada", audiences: [resource], expiresAt: undefined, clientId: "app", ...facts })
        })
      )
  })
}

export interface Reply {
  readonly status: number
  readonly headers: { readonly [name: string]: string | undefined }
  readonly text: string
  /** The body as JSON, or the last message of a stream. */
  readonly json: Json
}

export interface Sent {
  readonly method?: string
  readonly path?: string
  readonly headers?: { readonly [name: string]: string | undefined }
  readonly body?: unknown
  readonly localAddress?: string
}

const parse = (text: string): Json => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Sends a request and reads the complete response, or until `enough` of it has arrived. */
export const send = (
  { port }: { readonly port: number },
  { body, headers = {}, localAddress, method = "POST", path = "/mcp" }: Sent,
  enough: (text: string) => boolean = () => false
): Effect.Effect<Reply> =>
  Effect.callback((resume) => {
    const sent = request({
      host: "127.0.0.1",
      port,
      method,
      path,
      agent: false,
      headers: Object.fromEntries(Object.entries(headers).filter(([, value]) => value !== undefined)) as never,
      ...(localAddress === undefined ? {} : { localAddress })
    }, (response) => {
      let text = ""
      const done = (): void => {
        const data = [...text.matchAll(/^data: (.+)$/gm)].map(([, line]) => parse(line!)).filter((one) => one)
        const all = response.headers as { readonly [name: string]: string | undefined }
        resume(Effect.succeed({ status: response.statusCode!, headers: all, text, json: parse(text) ?? data.at(-1) }))
      }
      response.setEncoding("utf8")
      response.on("data", (chunk: string) => {
        text += chunk
        if (!enough(text)) return
        done()
        sent.destroy()
      })
      response.on("error", () => {})
      response.on("end", done)
    })
    sent.on("error", (error) => resume(Effect.die(error)))
    sent.end(body === undefined || typeof body === "string" ? body : JSON.stringify(body))
    return Effect.sync(() => void sent.destroy())
  })

export const posting = { "content-type": "application/json", accept: "application/json, text/event-stream" }

export type Server = NodeHttp.Server["Service"]

/** Serves definitions on a free port with a protection. */
export const serve = (
  protection: Http.Options["protection"],
  definitions: ReadonlyArray<McpServer.Definitions>,
  options: NodeHttp.Options = {}
): Effect.Effect<Server, never, Scope.Scope> => {
  const server = McpServer.layer({ name: "tea", version: "1.0.0" }, ...definitions)
  const listening = NodeHttp.layer({ port: 0, legacySse: LegacySse.make(), ...options, protection })
  return Effect.map(
    Effect.orDie(Layer.build(Layer.provide(listening, server as Layer.Layer<McpServer.McpServer>))),
    (context) => Context.get(context, NodeHttp.Server)
  )
}

/** A port without a listener: the resource of a server has it before the server starts. */
export const freePort: Effect.Effect<number> = Effect.promise(ports.freePort)

/** A protection with the tokens of a test. */
export const protect = (tokens: Tokens, options: Partial<Protect.Options> = {}): Effect.Effect<Http.Protection> =>
  Protect.make({ resource, verify: tokens.verifier, maxFailures: 0, ...options })

export const bearer = (token: string | undefined): { readonly authorization: string | undefined } => ({
  authorization: token === undefined ? undefined : `Bearer ${token}`
})

/** A client of one revision, which sends any headers with each request. */
export interface Client {
  /** Opens a session with these headers. Returns the reply that refuses it, if it is refused. */
  readonly open: (headers: Sent["headers"]) => Effect.Effect<Reply | undefined, never, Scope.Scope>
  /** Sends a request. Over HTTP+SSE the status is that of the POST, and the message is that of the stream. */
  readonly request: (method: string, params?: Json, headers?: Sent["headers"]) => Effect.Effect<Reply>
  /** The headers of the session. */
  readonly session: () => Sent["headers"]
}

const initialize = (protocolVersion: string): Json => ({
  jsonrpc: "2.0",
  id: "init",
  method: "initialize",
  params: { protocolVersion, capabilities: {}, clientInfo: { name: "test", version: "1" } }
})

const sessionClient = (server: Server, revision: string): Client => {
  let session: Sent["headers"] = {}
  let id = 0
  return {
    session: () => session,
    open: (headers) =>
      Effect.gen(function*() {
        const reply = yield* send(server, { headers: { ...posting, ...headers }, body: initialize(revision) })
        if (reply.status !== 200) return reply
        session = { "mcp-session-id": reply.headers["mcp-session-id"], "mcp-protocol-version": revision }
        const body = { jsonrpc: "2.0", method: "notifications/initialized" }
        yield* send(server, { headers: { ...posting, ...session, ...headers }, body })
        return undefined
      }),
    request: (method, params = {}, headers) =>
      send(server, {
        headers: { ...posting, ...session, ...headers },
        body: { jsonrpc: "2.0", id: ++id, method, params }
      })
  }
}

const statelessClient = (server: Server): Client => ({
  session: () => ({}),
  open: () => Effect.undefined,
  request: (method, params = {}, headers) => {
    const meta = {
      "io.modelcontextprotocol/protocolVersion": "2026-07-28",
      "io.modelcontextprotocol/clientInfo": { name: "test", version: "1" },
      "io.modelcontextprotocol/clientCapabilities": {}
    }
    const name = params.name ?? params.uri
    return send(server, {
      headers: {
        ...posting,
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": method,
        "mcp-name": name,
        ...headers
      },
      body: { jsonrpc: "2.0", id: 1, method, params: { ...params, _meta: { ...meta, ...params._meta } } }
    })
  }
})

const sseClient = (server: Server): Client => {
  let path = ""
  let text = ""
  let wake = (): void => {}
  let id = 0
  const received = (found: () => Json): Effect.Effect<Json> =>
    Effect.callback((resume) => {
      const look = (): void => {
        const value = found()
        if (value !== undefined) resume(Effect.succeed(value))
      }
      wake = look
      look()
    })
  const messages = (): ReadonlyArray<Json> =>
    [...text.matchAll(/^data: (\{.*)$/gm)].map(([, line]) => parse(line!)).filter((one) => one !== undefined)
  const post = (body: Json, headers: Sent["headers"]) =>
    send(server, { path, headers: { ...posting, ...headers }, body })
  return {
    session: () => ({}),
    open: (headers) =>
      Effect.gen(function*() {
        const get = { method: "GET", path: "/sse", headers: { accept: "text/event-stream", ...headers } }
        const sent = yield* Effect.acquireRelease(
          Effect.sync(() => request({ host: "127.0.0.1", port: server.port, agent: false, ...get } as never)),
          (sent) => Effect.sync(() => void sent.destroy())
        )
        const refused = yield* Effect.callback<Reply | undefined>((resume) => {
          sent.on("error", () => {})
          sent.on("response", (response) => {
            response.setEncoding("utf8")
            response.on("error", () => {})
            response.on("data", (chunk: string) => {
              text += chunk
              wake()
              path = /^data: (\/messages\S+)$/m.exec(text)?.[1] ?? ""
              if (path !== "") resume(Effect.undefined)
            })
            response.on("end", () => {
              const headers = response.headers as Reply["headers"]
              resume(Effect.succeed({ status: response.statusCode!, headers, text, json: parse(text) }))
            })
          })
          sent.end()
        })
        if (refused !== undefined) return refused
        const reply = yield* post(initialize("2024-11-05"), headers)
        if (reply.status !== 202) return reply
        yield* received(() => messages().find(({ id }) => id === "init"))
        yield* post({ jsonrpc: "2.0", method: "notifications/initialized" }, headers)
        return undefined
      }),
    request: (method, params = {}, headers) =>
      Effect.gen(function*() {
        const own = ++id
        const reply = yield* post({ jsonrpc: "2.0", id: own, method, params }, headers)
        if (reply.status !== 202) return reply
        const json = yield* received(() => messages().find((one) => one.id === own))
        return { ...reply, json }
      })
  }
}

/** The revisions, each with its client. 2024-11-05 is HTTP+SSE. */
export const revisions: ReadonlyArray<readonly [revision: string, client: (server: Server) => Client]> = [
  ["2024-11-05", sseClient],
  ["2025-03-26", (server) => sessionClient(server, "2025-03-26")],
  ["2025-06-18", (server) => sessionClient(server, "2025-06-18")],
  ["2025-11-25", (server) => sessionClient(server, "2025-11-25")],
  ["2026-07-28", statelessClient]
]

/** The parameters of the first challenge of a reply. */
export const challengeOf = ({ headers }: Reply): { readonly [name: string]: string } =>
  Object.fromEntries(
    [...(headers["www-authenticate"] ?? "").split(/, DPoP /)[0]!.matchAll(/(\w+)="([^"]*)"/g)]
      .map(([, name, value]) => [name!, value!])
  )
