/**
 * The options of HTTP endpoints, listeners and processes.
 */
import type { IncomingMessage } from "node:http"
import type { Principal, Protection } from "../base/http.ts"
import type { Duration } from "../base/types.ts"
import type { LogOptions } from "./options.ts"

/** The options of an endpoint. Every member is optional. */
export interface EndpointOptions {
  /** The path: `/mcp` by default. Other paths are answered with 404. `"*"` answers on every path, behind a router. */
  readonly path?: string | undefined
  /**
   * The allowed names in the `Host` header: `localhost`, `127.0.0.1` and `[::1]` by default. Any other name is answered with
   * 403. A name allows any port, `name:port` that port only. `"any"` allows every name: then a web site can reach a server that
   * runs locally (DNS rebinding), unless a proxy validates the header.
   */
  readonly allowedHosts?: ReadonlyArray<string> | "any" | undefined
  /**
   * The origins of web pages that are allowed, such as `https://app.example.com`: those of `localhost`, `127.0.0.1` and `[::1]`
   * by default. Any other origin is answered with 403. `"any"` allows every origin.
   */
  readonly allowedOrigins?: ReadonlyArray<string> | "any" | undefined
  /**
   * The number of proxies in front of the server that append to `X-Forwarded-For`: 0 by default. Clients without a principal are
   * distinguished by their address. Do not set it higher than the number of your proxies.
   */
  readonly trustedProxies?: number | undefined
  /** How often a comment is sent on a quiet stream: 15 seconds by default, 0 for never. */
  readonly keepAliveInterval?: Duration | undefined
  /** How long a request may be in progress before its answer becomes a stream: 5 seconds by default, 0 for never. */
  readonly streamAfter?: Duration | undefined
  /** Answers every request with a stream; `"session"`: only in sessions. Off by default. */
  readonly alwaysStream?: boolean | "session" | undefined
  /** Requires `Mcp-Method`, `Mcp-Name` and `Mcp-Param-*` in sessions too. Off by default: there they are validated if present. */
  readonly requireMcpHeaders?: boolean | undefined
  /** Lets the web pages of `allowedOrigins` read the answers. `true` for the defaults. Off by default. */
  readonly cors?: CorsOptions | boolean | undefined
  /** Authenticates the requests: see `skein/auth`. Requests with a `principal` are not authenticated again. Off by default. */
  readonly protection?: Protection | undefined
  /**
   * The headers with credentials that handlers and middleware may read: none by default. In a request with a principal they
   * cannot read `authorization`, `cookie`, `dpop` and `proxy-authorization`, so that no handler passes them on.
   */
  readonly readableCredentials?: ReadonlyArray<string> | undefined
  /** Experimental: a document by which clients find the server, at `<path>/server-card`. None by default. */
  readonly serverCard?: ServerCardOptions | undefined
  /** Whether streams end when the credentials that they were opened with expire: `"end"` by default. */
  readonly expiredStreams?: "end" | "keep" | undefined
  /**
   * Serves without sessions: each POST is independent, and GET and DELETE are answered with 405. Clients before 2026-07-28 then
   * receive neither requests nor later notifications. For deployments in which the next request may reach another process. Off
   * by default.
   */
  readonly stateless?: boolean | undefined
  /**
   * Where workers handle sessions: `"anywhere"` by default. With `"home"` the worker that has opened a session handles all of
   * its messages, for handlers that keep a browser or a child process. If that worker exits, the client opens another session.
   */
  readonly sessions?: "anywhere" | "home" | undefined
  /** Serves clients of the HTTP+SSE transport of 2024-11-05 as well. `true` for the defaults. Off by default. */
  readonly legacySse?: LegacySseOptions | boolean | undefined
  /** The bounds of what clients can use. All clients share them, but no client can lock out the others. */
  readonly limits?: EndpointLimits | undefined
  /**
   * How long requests in flight may continue after the endpoint has begun to close: 5 seconds by default. Then they are
   * interrupted. A request that arrives too late is answered with 503 and `Retry-After`.
   */
  readonly shutdownTimeout?: Duration | undefined
}

/** The server card (SEP-2127). The title, version, icons, website and revisions are those of the server. It is public. */
export interface ServerCardOptions {
  /** The public URL of the endpoint, as clients reach it: an https address, or http on this machine. */
  readonly url: string
  /** A reversed domain and a name: `com.example/weather`. By default those of the URL and of the server. */
  readonly name?: string | undefined
  /** The server in at most 100 characters. By default its description, or else its title or name. */
  readonly description?: string | undefined
  /** The source code: its URL, the service that has it, such as `github`, and the folder of the server in it. */
  readonly repository?:
    | {
      readonly url: string
      readonly source: string
      readonly subfolder?: string | undefined
      readonly id?: string | undefined
    }
    | undefined
  /** Headers of each request, such as that of an API key. Not `Authorization` for OAuth, which clients find. */
  readonly headers?:
    | ReadonlyArray<{
      readonly name: string
      readonly description?: string | undefined
      readonly isRequired?: boolean | undefined
      readonly isSecret?: boolean | undefined
    }>
    | undefined
  /** Answers `/.well-known/ai-catalog.json` with this card: `true` by default. `false` for all servers but one of a domain. */
  readonly catalog?: boolean | undefined
}

/** Options of the CORS headers. */
export interface CorsOptions {
  /** Lets browsers send cookies and client certificates. False by default. Not together with `allowedOrigins: "any"`. */
  readonly credentials?: boolean | undefined
  /** Allowed request headers in addition to those of MCP, OAuth and trace context. */
  readonly allowedHeaders?: ReadonlyArray<string> | undefined
  /** Response headers that pages may read, besides `Mcp-Session-Id`, `WWW-Authenticate`, `DPoP-Nonce` and `Retry-After`. */
  readonly exposedHeaders?: ReadonlyArray<string> | undefined
  /** Lets pages from public addresses reach an endpoint in a private network. False by default. */
  readonly privateNetwork?: boolean | undefined
}

/** Options of the HTTP+SSE transport. */
export interface LegacySseOptions {
  /** The path of the stream, which users configure in their clients: `/sse` by default. */
  readonly path?: string | undefined
  /** The path that clients post to: `/messages` by default. */
  readonly messages?: string | undefined
  /** Serves a client that sends requests on a new stream without `initialize`, as some do after a lost stream. On by default. */
  readonly assumeInitialized?: boolean | undefined
}

/** The bounds of an endpoint, for all of its clients together. */
export interface EndpointLimits {
  /** The largest body of a request, in bytes: 4 MiB by default. A larger body is answered with 413. */
  readonly maxMessageBytes?: number | undefined
  /**
   * The memory that the endpoint retains for all clients together, in bytes: 128 MiB by default. At the bound the client that
   * retains the most gives up what waits for it (503). Lower it in a container with little memory.
   */
  readonly maxRetainedBytes?: number | undefined
  /** Requests that are handled at the same time: 10,000 by default. The next one is answered with 503 and `Retry-After`. */
  readonly maxInFlightRequests?: number | undefined
  /** Long-lived streams: 10,000 by default. The next one is answered with 503, or replaces one of a client with many. */
  readonly maxStreams?: number | undefined
  /** Open sessions: 10,000 by default. At the bound an idle session ends, or `initialize` is answered with 503. */
  readonly maxSessions?: number | undefined
  /** Open sessions of one principal: 1,000 by default. Then its `initialize` is answered with 503. */
  readonly maxSessionsPerPrincipal?: number | undefined
  /** How long a session is open without requests in flight or open streams: 30 minutes by default. */
  readonly idleTimeout?: Duration | undefined
}

/** The bounds of an endpoint and of its listener. */
export interface HttpLimits extends EndpointLimits {
  /** How long a whole request may take to arrive: 60 seconds by default. Then the answer is 408. */
  readonly requestTimeout?: Duration | undefined
  /** How long a connection may be idle between requests: 65 seconds by default. Keep it above the idle time of your proxy. */
  readonly keepAliveTimeout?: Duration | undefined
  /** The number of connections: 20,000 by default. At the bound an idle one is closed, or the new one. */
  readonly maxConnections?: number | undefined
}

/** The options of an endpoint on `node:http`. */
export interface NodeOptions extends EndpointOptions {
  /**
   * Finds the principal of a request: it reads what the middleware of a framework has set, or authenticates the request. It
   * returns `undefined` for an anonymous caller, and throws a `Refusal` to refuse the request. Any other error is logged, and the
   * answer is 500.
   *
   * @example
   * new AsyncServer(description).runHttp({ principal: async (request) => verify(request.headers.authorization) })
   */
  readonly principal?: FindPrincipal | undefined
}

/** Finds the principal of a request. Its parameter may have a subtype of `IncomingMessage`, such as Express's `Request`. */
export type FindPrincipal = {
  // A method, because the parameters of methods are bivariant.
  find(request: IncomingMessage): Principal | undefined | Promise<Principal | undefined>
}["find"]

/** The paths for probes, and the condition of being ready. */
export interface HealthOptions {
  /** The path that responds with 200 as long as the process handles requests: `/livez` by default. */
  readonly live?: string | undefined
  /** The path that responds with 200 while the server is ready for requests, and else with 503: `/readyz` by default. */
  readonly ready?: string | undefined
  /**
   * Whether the server is ready, for example whether its database responds. It is not if the function throws, rejects or returns
   * `false`, or after 1 second: then its `signal` aborts. It runs for each probe, and never twice at the same time.
   */
  readonly check?: ((signal: AbortSignal) => unknown) | undefined
}

/** Options of a listening server. */
export interface HttpOptions extends NodeOptions {
  /** The port: 3000 by default, 0 for any free port. */
  readonly port?: number | undefined
  /** The address to listen on: `127.0.0.1` by default, so that other machines cannot reach the server. */
  readonly host?: string | undefined
  /** The bounds of the endpoint and of its listener. */
  readonly limits?: HttpLimits | undefined
  /**
   * Answers the probes of a platform: `true` for `/livez` and `/readyz`, or other paths and a `check`. They need no credentials.
   * Off by default.
   *
   * @example
   * server.runHttp({ health: { check: () => database.ping() }, drainDelay: "10 seconds" })
   */
  readonly health?: boolean | HealthOptions | undefined
  /**
   * How long the server continues to accept requests after the shutdown has begun: 0 by default. Meanwhile the `ready` path
   * responds with 503, so that load balancers stop sending requests.
   */
  readonly drainDelay?: Duration | undefined
  /**
   * The keys of the state of requests that wait for input (2026-07-28), which all instances behind a load balancer need: secrets
   * of at least 32 bytes. The first one encrypts, all of them decrypt. One random key by default.
   */
  readonly stateKeys?: ReadonlyArray<Uint8Array | string> | undefined
}

/** Several processes of a server. */
export interface WorkerOptions {
  /** Their number, or `"auto"` for one for each processor that the process may use, at most 8. */
  readonly count: number | "auto"
  /** Whether the server starts with parts that each worker has apart, such as tasks in memory. `false` by default. */
  readonly allowLocal?: boolean | undefined
}

/** Options of a process that is a server on HTTP. Variables such as `SKEIN_PORT` set the options that the code leaves out. */
export interface HttpMainOptions extends HttpOptions, LogOptions {
  /**
   * Serves with several processes: their number, or `"auto"` for one for each processor that the process may use, at most 8.
   * 1 by default: this process alone. Any worker handles any request, since they share sessions; each has variables of its
   * own. With stores in memory, which they cannot share, the start fails with their names, unless `allowLocal` is `true`.
   * SIGTERM stops all of them, and SIGHUP replaces them, one after the other.
   *
   * @example
   * server.runHttp({ port: 3000, workers: "auto" })
   */
  readonly workers?: number | "auto" | WorkerOptions | undefined
  /** Runs once the server listens, instead of logging the URL. */
  readonly onListening?:
    | ((listening: { readonly host: string; readonly port: number; readonly url: string }) => unknown)
    | undefined
}
