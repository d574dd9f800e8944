/**
 * HTTP requests as the functions of a program see them, their senders, and the values that protect an endpoint or
 * authenticate a client.
 */
import type { Opaque } from "./definition.ts"

/** The authenticated sender of a request. */
export interface Principal {
  /** Unique and unchanging. Sessions, tasks, and the answers to questions belong to it. */
  readonly id: string
  /**
   * When the credentials of the request expire, in seconds since 1970, as in the `exp` of a token. Streams that are open
   * then end.
   */
  readonly expiresAt?: number | undefined
  /** Any other claims: a name, scopes, a tenant. */
  readonly [claim: string]: unknown
}

/** An HTTP request whose body was not read yet. */
export interface HttpRequest {
  readonly method: string
  /** The path without the query, not decoded. */
  readonly path: string
  /** The query without its question mark, if there is one. */
  readonly query?: string | undefined
  /** Reads a header by its name in lower case. Repeated headers are joined by a comma. */
  readonly header: (name: string) => string | undefined
  /** The network address of the client: behind proxies, that of the client of the outermost trusted one. */
  readonly address?: string | undefined
  /** The network address of the other end of the connection: the last proxy, or the client. No header changes it. */
  readonly peerAddress?: string | undefined
  /** The verified certificate of the client in DER form, if TLS ends in this process. */
  readonly clientCertificate?: Uint8Array | undefined
}

/**
 * Protects an endpoint: the option `protection` of a server over HTTP. `protect` of `skein/auth` makes one.
 *
 * @example
 * const protection = protect({ resource: "https://tea.example/mcp", verify: TokenVerifier.jwt({ issuer }) })
 * server.runHttp({ port: 3000, protection })
 */
export interface Protection extends Opaque<"protection"> {
  /** The paths of its pages, such as `/.well-known/oauth-protected-resource`, for a router that passes single paths. */
  readonly paths: ReadonlyArray<string>
}

/**
 * Authenticates the requests of a client: the option `credentials` of a server that a client connects to by its URL.
 * `OAuth` of `skein/auth` is one.
 */
export interface Credentials extends Opaque<"credentials"> {}
