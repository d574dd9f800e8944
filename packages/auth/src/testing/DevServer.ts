/**
 * An authorization server for development and tests: on loopback, with users whose names you choose, and without
 * passwords. It is a real one, `oidc-provider`, so what works with it works elsewhere; do not use it for anything that
 * has to be protected. It needs the package `oidc-provider`.
 *
 * It supports authorization codes with PKCE, refresh tokens with rotation, client credentials, JWT bearer assertions,
 * resource indicators, dynamic registration, client ID metadata documents, DPoP, `iss` in its answers, revocation and
 * introspection, and publishes its metadata both as RFC 8414 and as OpenID Connect Discovery.
 *
 * @example
 * const program = Effect.gen(function*() {
 *   const { issuer } = yield* DevServer.DevServer
 * }).pipe(Effect.provide(DevServer.layer({ port: 4000, scopes: ["tea:read", "tea:write"] })))
 */
import * as PrintableError from "@skein/protocol/PrintableError"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import { listen } from "./listen.ts"
import type {
  AssertionIssuer,
  Client,
  Counts,
  Event,
  Options,
  Service,
  TokenOptions,
  User
} from "./devServerOptions.ts"

/** The server cannot start: its port is taken, its address is not loopback, or its options are wrong. */
export class DevServerError extends PrintableError.tagged("DevServerError")<{
  readonly cause?: unknown
}> {}

export type { AssertionIssuer, Client, Counts, Event, Options, Service, TokenOptions, User }

/** The development server of a program. */
export class DevServer extends Context.Service<DevServer, Service>()("@skein/auth/DevServer") {}

/**
 * Starts a server that ends with the scope.
 *
 * @example
 * const { issuer } = yield* DevServer.make({ users: [{ name: "ada", claims: { email: "ada@tea.example" } }] })
 */
export const make = (options: Options = {}): Effect.Effect<Service, DevServerError, Scope.Scope> =>
  Effect.mapError(listen(options), ({ cause, message }) => new DevServerError({ message, cause }))

/**
 * Starts a server for a program. See {@link make}.
 *
 * @example
 * const DevServerLive = DevServer.layer({ port: 4000, resources: ["http://127.0.0.1:3000/mcp"] })
 */
export const layer = (options: Options = {}): Layer.Layer<DevServer, DevServerError> =>
  Layer.effect(DevServer, make(options))

/** A development server that runs outside of Effect. */
export interface Started extends Pick<Service, "issuer" | "scopes" | "users">, AsyncDisposable {
  /** Returns the counts of the events so far. */
  readonly counts: () => Counts
  /** Signs with a new key from now on. Keys of earlier tokens stay published. */
  readonly rotateKeys: () => Promise<void>
  /** Removes all grants: their refresh tokens work no longer. */
  readonly revokeAll: () => Promise<void>
  /** Issues a signed access token without a client, for tests of a protected server. */
  readonly issueToken: (options: TokenOptions) => Promise<string>
  /** Stops the server. `await using` does so at the end of a block. */
  readonly close: () => Promise<void>
}

/**
 * Starts a server outside of Effect. Call `close` at the end.
 *
 * @example
 * const server = await DevServer.start({ port: 4000 })
 * const token = await server.issueToken({ resource: "http://127.0.0.1:3000/mcp" })
 */
export const start = async (options: Options = {}): Promise<Started> => {
  const scope = Scope.makeUnsafe()
  const { counts, issueToken, issuer, revokeAll, rotateKeys, scopes, users } = await Effect.runPromise(
    Scope.provide(make(options), scope)
  )
  const close = () => Effect.runPromise(Scope.close(scope, Exit.void))
  return {
    issuer,
    scopes,
    users,
    counts: () => Effect.runSync(counts),
    rotateKeys: () => Effect.runPromise(rotateKeys),
    revokeAll: () => Effect.runPromise(revokeAll),
    issueToken: (options) => Effect.runPromise(issueToken(options)),
    close,
    [Symbol.asyncDispose]: close
  }
}
