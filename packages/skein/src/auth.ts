/**
 * Authorization: servers that require access tokens, and clients that obtain them.
 *
 * `protect` makes the option `protection` of a server over HTTP, and `Scopes` protects single tools, resources and prompts. `OAuth`
 * makes the credentials of a client: it signs a person or a program in, and renews the tokens.
 *
 * @example
 * const protection = protect({
 *   resource: "https://tea.example/mcp",
 *   verify: TokenVerifier.jwt({ issuer: "https://login.example" })
 * })
 * server.runHttp({ port: 3000, allowedHosts: ["tea.example"], protection })
 *
 * @example
 * const oauth = await OAuth.make({ grant: Grant.authorizationCode({ clientName: "Tea House" }), signIn: loopback() })
 * const client = await AsyncClient.connect({ url: "https://tea.example/mcp", credentials: oauth })
 */
export * from "./internal/auth/devServer.ts"
export * from "./internal/auth/errors.ts"
export * as Grant from "./internal/auth/grant.ts"
export * from "./internal/auth/oauth.ts"
export * from "./internal/auth/protect.ts"
export * as Providers from "./internal/auth/providers.ts"
export * from "./internal/auth/replayStore.ts"
export * as RequestVerifier from "./internal/auth/requestVerifier.ts"
export * as Scopes from "./internal/auth/scopes.ts"
export type { ClientAuthentication, PrivateKey, Secret } from "./internal/auth/secret.ts"
export * from "./internal/auth/signIn.ts"
export * from "./internal/auth/sqlStores.ts"
export * from "./internal/auth/testUser.ts"
export * as TokenVerifier from "./internal/auth/tokenVerifier.ts"
export * from "./internal/auth/tokenStore.ts"
export type { PostgresOptions, SqliteOptions, TlsOptions } from "./internal/base/database.ts"
export type { Credentials, HttpRequest, Principal, Protection } from "./internal/base/http.ts"
