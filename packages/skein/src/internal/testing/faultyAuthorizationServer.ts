/**
 * An authorization server that misbehaves on purpose, and the server that it protects.
 */
import * as CoreScenario from "@skein/testing/AuthorizationScenario"
import * as Core from "@skein/testing/FaultyAuthorizationServer"
import * as Effect from "effect/Effect"
import type { JsonObject, Revision } from "../base/messages.ts"
import type { CarriedOutCall, FaultTimes } from "./faultyServer.ts"
import { open, type Opened } from "./opened.ts"

/**
 * The endpoints: the protected server, the metadata of both servers, and those of the authorization server. `token` is the
 * token endpoint, except for `refresh`, the grant `refresh_token`.
 */
export type AuthorizationEndpoint =
  | "server"
  | "resource metadata"
  | "server metadata"
  | "registration"
  | "authorization"
  | "token"
  | "refresh"
  | "revocation"

/** A value of JSON. */
export type Json = null | number | boolean | string | ReadonlyArray<Json> | { readonly [name: string]: Json }

/**
 * A fault of one response: another response, changed members of its JSON or of a redirect, a large, deep or endless body, a
 * server that sends nothing more, or a closed connection. With `isHandled` the request is carried out first. Texts may contain
 * `{server}`, `{origin}`, `{issuer}`, `{other}` (a server that must receive nothing), `{n}`, `{body}` and `{token}`.
 */
export type AuthorizationFault =
  | {
    readonly _tag: "Respond"
    readonly status: number
    readonly headers?: { readonly [name: string]: string | ReadonlyArray<string> }
    readonly body?: string
    readonly encoding?: "utf-8" | "latin1"
    readonly isHandled?: boolean
  }
  | {
    readonly _tag: "Members"
    readonly set?: { readonly [name: string]: Json }
    readonly remove?: ReadonlyArray<string>
  }
  | { readonly _tag: "LargeBody"; readonly bytes: number }
  | { readonly _tag: "DeepBody"; readonly depth: number }
  | { readonly _tag: "EndlessBody" }
  | { readonly _tag: "Stall"; readonly after: "request" | "head"; readonly isHandled?: boolean }
  | { readonly _tag: "Cut"; readonly isHandled?: boolean }

/** A fault, and when it happens: to the `nth` request to its endpoint, counted from 0, and to the `times - 1` after it. */
export interface AuthorizationRule {
  readonly on: AuthorizationEndpoint
  readonly nth: number
  readonly times: number
  readonly fault: AuthorizationFault
}

/** The features of the servers, and their faults. It is plain data. */
export interface AuthorizationScenario {
  /** The one revision that the protected server speaks: `2026-07-28` by default. */
  readonly revision?: Revision
  /** The `expires_in` of access tokens, in seconds: 3,600 by default. The server accepts them until `expireTokens`. */
  readonly tokenLifetimeSeconds?: number
  /** The faults. An empty list makes well-behaved servers. */
  readonly faults: ReadonlyArray<AuthorizationRule>
}

/** Makes the rules of scenarios. */
export const AuthorizationScenario: {
  /**
   * A fault, and when it happens: to every request to the endpoint by default.
   *
   * @example
   * // The first refresh is carried out, and its answer is lost.
   * AuthorizationScenario.rule("refresh", { _tag: "Cut", isHandled: true }, { times: 1 })
   */
  readonly rule: (on: AuthorizationEndpoint, fault: AuthorizationFault, when?: FaultTimes) => AuthorizationRule
  /** The fault `Members`: sets members of a JSON body, or parameters of a redirect, and removes others. */
  readonly members: (set: { readonly [name: string]: Json }, remove?: ReadonlyArray<string>) => AuthorizationFault
  /** The fault `Respond`, with a body of JSON, or of a text as it is. */
  readonly respond: (
    status: number,
    body?: Json,
    headers?: { readonly [name: string]: string | ReadonlyArray<string> }
  ) => AuthorizationFault
} = {
  rule: CoreScenario.rule,
  members: CoreScenario.members as (set: JsonObject, remove?: ReadonlyArray<string>) => AuthorizationFault,
  respond: CoreScenario.respond
}

/** The servers. Counts and lists are getters: each read returns the current state. */
export interface FaultyAuthorizationServer extends Opened {
  /** The URL of the protected server. */
  readonly url: string
  /** The issuer of the authorization server. */
  readonly issuer: string
  /** The endpoints that were requested, in order. */
  readonly requests: ReadonlyArray<AuthorizationEndpoint>
  /** The number of requests to an endpoint. */
  readonly requestCount: (endpoint: AuthorizationEndpoint) => number
  /** The number of requests to the server that must receive none (`{other}`). */
  readonly otherRequestCount: number
  /** How often a refresh token was used that had been replaced. */
  readonly reuseCount: number
  /** The secrets that the servers issued or received, which a client must not print. */
  readonly secrets: ReadonlyArray<string>
  /** The tool calls that the protected server carried out, in order. */
  readonly calls: ReadonlyArray<CarriedOutCall>
  /** Replaces the faults. Requests are counted from 0 again for the new ones. */
  readonly use: (faults: ReadonlyArray<AuthorizationRule>) => void
  /** From now on the protected server refuses the access tokens that were issued so far. */
  readonly expireTokens: () => void
}

const describe = (server: Core.FaultyAuthorizationServer): Omit<FaultyAuthorizationServer, keyof Opened> => ({
  url: server.url,
  issuer: server.issuer,
  requests: server.requests,
  requestCount: (endpoint) => server.requestCount(endpoint),
  get otherRequestCount() {
    return server.otherRequestCount
  },
  get reuseCount() {
    return server.reuseCount
  },
  get secrets() {
    return server.secrets
  },
  calls: server.calls,
  use: (faults) => Effect.runSync(server.use(faults)),
  expireTokens: () => Effect.runSync(server.expireTokens)
})

/** Starts an authorization server and the server that it protects. */
export const FaultyAuthorizationServer: {
  /**
   * Starts the servers on free ports of 127.0.0.1. Without faults they are correct: PKCE is checked, codes work once, refresh
   * tokens rotate, and a refresh token that is used twice ends its grant.
   *
   * @example
   * await using server = await FaultyAuthorizationServer.make({
   *   faults: [AuthorizationScenario.rule("token", AuthorizationScenario.respond(503))]
   * })
   */
  readonly make: (scenario: AuthorizationScenario) => Promise<FaultyAuthorizationServer>
} = { make: (scenario) => open(Core.make(scenario), describe) }
