/**
 * Protects a server whose users have their accounts at a provider that registers no clients: GitHub, Google, Entra. MCP
 * clients register with the proxy and get its tokens; the proxy is the one client of the provider. A handler gets the
 * provider's token of its caller from `UpstreamToken`.
 *
 * A person is asked for consent each time, before anything reaches the provider. The provider's tokens are encrypted in
 * the store and never leave the server. The engine is `oidc-provider`, an optional peer dependency that you install; it
 * needs Node. This module needs the package `@skein/server` too.
 *
 * A proxy is an authorization server: read `docs/proxy.md` and `docs/tokens-and-threats.md` first. On a host that is not loopback it needs https and
 * `keys`, or it does not start.
 *
 * @example
 * const proxy = yield* Proxy.make({
 *   resource: "https://tea.example/mcp",
 *   scopes: ["tea:read", "tea:write"],
 *   keys: [yield* Config.Redacted("PROXY_KEY")],
 *   upstream: {
 *     name: "Example",
 *     issuer: "https://login.example",
 *     clientId: "tea",
 *     clientSecret: yield* Config.Redacted("EXAMPLE_SECRET"),
 *     scope: "openid profile"
 *   }
 * })
 * const serve = NodeHttp.serve({ port: 3000, allowedHosts: ["tea.example"], protection: proxy.protection })
 * yield* Effect.provide(serve, Layer.provide(Server, proxy.layer))
 */
import * as PrintableError from "@skein/protocol/PrintableError"
import type * as Http from "@skein/server/Http"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { makeProxy } from "./makeProxy.ts"
import type { IdentityProvider, Options, RegisteredClient } from "./proxyOptions.ts"
import * as Protect from "../server/Protect.ts"
import type { ProxyStore } from "./ProxyStore.ts"
import { UpstreamToken } from "./UpstreamToken.ts"

export type { IdentityProvider, Options, RegisteredClient }
export type { IdTokenClaims, UpstreamOptions, UpstreamUser } from "./upstream.ts"

/** The proxy cannot start: an option is wrong, the store does not answer, or `oidc-provider` is missing. */
export class ProxyError extends PrintableError.tagged("ProxyError")<{
  readonly cause?: unknown
}> {}

/** A proxy. */
export interface Proxy {
  /** The issuer of the proxy's tokens: the origin of `resource`. */
  readonly issuer: string
  /** The option `protection` of the adapter. The pages of the authorization server are among its pages. */
  readonly protection: Http.Protection
  /** The upstream tokens, for handlers. Provide it to the server. */
  readonly layer: Layer.Layer<UpstreamToken>
}

/**
 * Makes a proxy. Everything that it has to remember is in the store, so several instances can share one.
 *
 * The claim `grant` of a principal names the sign-in that its token belongs to. Your own `principal` gets it too. It is
 * also called when a person has signed in, with the claims that all tokens of the sign-in have: its `id` must be the same
 * each time, since `UpstreamToken` finds the sign-ins of a task's owner by it.
 *
 * @example
 * const { protection } = yield* Proxy.make({ resource, scopes: ["tea"], upstream, keys: [key] })
 */
export const make = (options: Options): Effect.Effect<Proxy, ProxyError, ProxyStore> =>
  Effect.gen(function*() {
    const { principal = (token) => ({ id: Protect.idOf(token) }) } = options
    const proxy = yield* Effect.mapError(
      makeProxy(options, (token) => principal(token).id),
      ({ cause, message }) => new ProxyError({ message: `Proxy: ${message}`, cause })
    )
    const protection = yield* Protect.make({
      ...options,
      scopes: [],
      scopesSupported: options.scopesSupported ?? options.scopes,
      verify: proxy.verifier,
      principal: (token) => ({ ...principal(token), grant: token.claims["grant"] })
    })
    return {
      issuer: proxy.origin,
      layer: Layer.succeed(UpstreamToken, proxy.tokens),
      protection: {
        ...protection,
        paths: [...protection.paths ?? [], ...proxy.paths],
        pages: (request, answer) => protection.pages?.(request, answer) === true || proxy.pages(request, answer)
      }
    }
  })
