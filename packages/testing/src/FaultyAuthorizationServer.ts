/**
 * An authorization server that misbehaves on purpose, and an MCP server that it protects, for the tests of OAuth
 * clients. An `AuthorizationScenario` describes the faults of both. Without faults they are correct: PKCE is checked,
 * codes work once, refresh tokens rotate, and a refresh token that is used twice ends its grant.
 *
 * The servers use no OAuth library, so that no library prevents a fault. They have two origins on the loopback
 * interface. A third server counts the requests that a client sends there, where it must send none.
 */
import * as Effect from "effect/Effect"
import * as FiberSet from "effect/FiberSet"
import type * as Scope from "effect/Scope"
import type { IncomingMessage, ServerResponse } from "node:http"
import type { AuthorizationScenario, Endpoint, Rule } from "./AuthorizationScenario.ts"
import { AuthorizationEndpoints } from "./internal/authorizationEndpoints.ts"
import { AuthorizationFaults, type Reply, sendWithFaults } from "./internal/authorizationFaults.ts"
import { FaultyHttpServer } from "./internal/httpServer.ts"
import type { ToolCall } from "./internal/protocolHandler.ts"
import * as RawServer from "./RawServer.ts"

/** The servers. Counts and lists are getters: each read returns the current state. */
export interface FaultyAuthorizationServer {
  /** The URL of the protected server. */
  readonly url: string
  /** The issuer of the authorization server. */
  readonly issuer: string
  /** The endpoints that were requested, in order. */
  readonly requests: ReadonlyArray<Endpoint>
  /** The number of requests to an endpoint. */
  readonly requestCount: (endpoint: Endpoint) => number
  /** The number of requests to the third server (`{other}`). */
  readonly otherRequestCount: number
  /** How often a refresh token was used that had been replaced. */
  readonly reuseCount: number
  /** The secrets that the servers issued or received, which a client must not print. */
  readonly secrets: ReadonlyArray<string>
  /** The tool calls that the protected server carried out, in order. */
  readonly calls: ReadonlyArray<ToolCall>
  /** Replaces the faults. Requests are counted from 0 again for the new ones. */
  readonly use: (faults: ReadonlyArray<Rule>) => Effect.Effect<void>
  /** From now on the protected server refuses the access tokens that were issued so far. Refresh tokens remain valid. */
  readonly expireTokens: Effect.Effect<void>
}

/** The endpoints of the authorization server, by their paths, with the methods that answer their requests. */
const endpoints: {
  readonly [path: string]: readonly [Endpoint, "metadata" | "authorize" | "register" | "revoke" | "token"]
} = {
  "/.well-known/oauth-authorization-server": ["server metadata", "metadata"],
  "/authorize": ["authorization", "authorize"],
  "/register": ["registration", "register"],
  "/revoke": ["revocation", "revoke"],
  "/token": ["token", "token"]
}

/**
 * Starts the servers on free ports of 127.0.0.1. The scope stops them. Dies if no port can be opened.
 *
 * @example
 * const server = yield* FaultyAuthorizationServer.make({
 *   faults: [AuthorizationScenario.rule("token", AuthorizationScenario.respond(503))]
 * })
 * const client = Client.make(NodeHttp.transport({ url: server.url, credentials: oauth }))
 */
export const make = Effect.fnUntraced(function*(
  scenario: AuthorizationScenario
): Effect.fn.Return<FaultyAuthorizationServer, never, Scope.Scope> {
  const faults = new AuthorizationFaults(scenario.faults)
  const authorization = new AuthorizationEndpoints(scenario.tokenLifetimeSeconds ?? 3_600)
  const requests: Array<Endpoint> = []
  let otherRequestCount = 0
  const names = { server: "", origin: "", issuer: "", other: "" }

  const next = (endpoint: Endpoint) => {
    requests.push(endpoint)
    return faults.next(endpoint)
  }
  const send = (
    endpoint: Endpoint,
    response: ServerResponse,
    body: string,
    handle: () => Reply
  ): void => {
    const own = next(endpoint)
    sendWithFaults(response, own, handle, { ...names, body, n: String(own.count) })
  }

  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { pathname, searchParams } = new URL(request.url ?? "/", "http://127.0.0.1")
    const body = await RawServer.readBody(request)
    const found = endpoints[pathname]
    if (found === undefined) return void response.writeHead(404).end()
    const [named, method] = found
    const form = new URLSearchParams(body)
    const endpoint = named === "token" && form.get("grant_type") === "refresh_token" ? "refresh" : named
    const received = { query: searchParams, form, headers: request.headers, body }
    authorization.receive(received)
    send(endpoint, response, body, () => authorization[method](received))
  }

  // Returns whether the request was answered: the others are those of the MCP server.
  const guard = (request: IncomingMessage, response: ServerResponse): boolean => {
    if (request.url?.startsWith("/.well-known/oauth-protected-resource/mcp") === true) {
      send("resource metadata", response, "", () => ({
        status: 200,
        json: { resource: names.server, authorization_servers: [names.issuer] }
      }))
      return true
    }
    if (request.url !== "/mcp") {
      response.writeHead(404).end()
      return true
    }
    const own = next("server")
    const challenge = `Bearer resource_metadata="${names.origin}/.well-known/oauth-protected-resource/mcp"`
    const token = request.headers.authorization?.split(" ")[1]
    if (own.fault === undefined && token !== undefined && authorization.accepts(token)) return false
    const refuse = (): Reply => ({ status: 401, headers: { "www-authenticate": challenge } })
    // Members of an MCP response are not changed: `Scenario` has faults of messages.
    sendWithFaults(response, { ...own, members: [] }, refuse, {
      ...names,
      n: String(own.count),
      token: token ?? ""
    })
    return true
  }

  const fork = yield* FiberSet.makeRuntime<never, void, never>()
  const mcp = new FaultyHttpServer({ revision: scenario.revision ?? "2026-07-28", faults: [] }, fork, guard)
  yield* Effect.acquireRelease(mcp.start, () => mcp.stop)
  const issuer = yield* RawServer.http((request, response) => {
    answer(request, response).catch(() => response.destroy())
  })
  const other = yield* RawServer.http((_, response) => {
    otherRequestCount++
    response.writeHead(404).end()
  })
  Object.assign(names, {
    server: mcp.url,
    origin: new URL(mcp.url).origin,
    issuer: issuer.url.origin,
    other: other.url.origin
  })
  authorization.issuer = names.issuer
  return {
    url: names.server,
    issuer: names.issuer,
    requests,
    requestCount: (endpoint) => requests.filter((each) => each === endpoint).length,
    get otherRequestCount() {
      return otherRequestCount
    },
    get reuseCount() {
      return authorization.reuseCount
    },
    get secrets() {
      return [...authorization.secrets]
    },
    calls: mcp.calls,
    use: (rules) => Effect.sync(() => faults.use(rules)),
    expireTokens: Effect.sync(() => authorization.expireTokens())
  }
})
