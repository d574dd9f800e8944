/** The development server: its port, its engine, its users and what happened. */
import { isLoopback } from "@skein/protocol/Hostname"
import * as Settings from "@skein/runtime/Options"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as jose from "jose"
import { randomBytes, randomUUID } from "node:crypto"
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import type { ClientMetadata, JWK, KoaContextWithOIDC } from "oidc-provider"
import type { Records } from "../proxy/adapter.ts"
import { makeMemory } from "../proxy/ProxyStore.ts"
import { type Engine, type EngineOptions, interactionPath, makeEngine } from "../proxy/engine.ts"
import { sendMessage } from "../proxy/html.ts"
import { loadLibrary } from "../proxy/library.ts"
import { makeSealedStore } from "../proxy/sealedRecords.ts"
import { makeSealing } from "../proxy/sealing.ts"
import { seconds, StartError, startFailed } from "../proxy/resolveOptions.ts"
import { isSafe } from "../shared/web.ts"
import { answerPage, type PageOptions, sendHome } from "./devPages.ts"
import type { Client, Counts, Event, Options, Service } from "./devServerOptions.ts"
import { makeAssertionVerifier } from "./jwtBearer.ts"

const metadataOf = (client: Client): ClientMetadata => {
  const interactive = (client.redirectUris ?? []).length > 0
  const method = client.jwks !== undefined
    ? "private_key_jwt"
    : client.clientSecret !== undefined
    ? "client_secret_basic"
    : "none"
  const grants = client.grantTypes ??
    (interactive ? ["authorization_code", "refresh_token"] : ["client_credentials"])
  return {
    client_id: client.clientId,
    ...client.clientSecret !== undefined && { client_secret: client.clientSecret },
    ...client.clientName !== undefined && { client_name: client.clientName },
    ...client.jwks !== undefined && { jwks: client.jwks },
    redirect_uris: [...client.redirectUris ?? []],
    grant_types: [...grants],
    response_types: grants.includes("authorization_code") ? ["code"] : [],
    application_type: client.applicationType ?? "native",
    token_endpoint_auth_method: client.tokenEndpointAuthMethod ?? method
  } as ClientMetadata
}

/** The options with their defaults, checked. */
const resolve = (options: Options) => {
  const host = options.host ?? "127.0.0.1"
  if (!isLoopback(host)) {
    throw new StartError({
      message: `DevServer listens on loopback only, not on ${host}: it lets everybody sign in as any of its users`
    })
  }
  const users = options.users ?? [
    { name: "ada", claims: { name: "Ada Lovelace", email: "ada@example.com" } },
    { name: "grace", claims: { name: "Grace Hopper", email: "grace@example.com" } }
  ]
  const scopes = options.scopes ?? ["mcp:read", "mcp:write"]
  const { resources, signInAs } = options
  if (signInAs !== undefined && !users.some(({ name }) => name === signInAs)) {
    throw new StartError({ message: `signInAs must be the name of a user: ${signInAs}` })
  }
  const { accessTokenLifetime, refreshTokenLifetime } = Settings.resolve<
    Pick<Options, "accessTokenLifetime" | "refreshTokenLifetime">
  >(options, {}, { accessTokenLifetime: "10 minutes", refreshTokenLifetime: "720 hours" })
  return {
    host: host === "[::1]" ? "::1" : host,
    users,
    scopes,
    signInAs,
    defaultScopes: options.defaultScopes ?? scopes.slice(0, 1),
    defaultResource: resources?.length === 1 ? resources[0] : undefined,
    isResource: (resource: string): boolean => resources?.includes(resource) ?? isSafe(URL.parse(resource)),
    alg: options.signingAlgorithm ?? "ES256",
    accessTokenFormat: options.accessTokenFormat ?? "jwt",
    accessTokenSeconds: seconds("accessTokenLifetime", accessTokenLifetime),
    refreshTokenSeconds: seconds("refreshTokenLifetime", refreshTokenLifetime),
    rotationGraceMillis: 0
  } as const
}
type Resolved = ReturnType<typeof resolve>

const newKey = async (alg: Resolved["alg"]): Promise<JWK> => {
  const { privateKey } = await jose.generateKeyPair(alg, { extractable: true })
  return { ...await jose.exportJWK(privateKey), kid: randomUUID(), use: "sig", alg } as JWK
}

const configurationOf = (
  options: Options,
  { users }: Resolved,
  nonceSecret: Buffer
): EngineOptions["configuration"] => {
  const documents = options.metadataDocuments ?? {}
  const claimNames = [...new Set(users.flatMap(({ claims }) => Object.keys(claims ?? {})))]
  return {
    clients: (options.clients ?? []).map(metadataOf),
    rotateRefreshToken: options.rotateRefreshTokens ?? true,
    claims: { openid: ["sub", ...claimNames] },
    findAccount: (_ctx, accountId) => ({
      accountId,
      claims: () => ({ ...users.find(({ name }) => name === accountId)?.claims, sub: accountId })
    }),
    extraTokenClaims: (_ctx, token) =>
      users.find(({ name }) => "accountId" in token && name === token.accountId)?.claims as Record<string, never>,
    // Documents that no server of a test has are here. All others are fetched, from public addresses only.
    fetch: (url, init) => {
      const document = documents[String(url)]
      return document === undefined ? fetch(url, init as RequestInit) : Promise.resolve(Response.json(document))
    },
    features: {
      registration: { enabled: options.dynamicRegistration ?? true },
      clientCredentials: { enabled: true },
      // A public client has nothing to authenticate with (RFC 7662, 2.1).
      introspection: { enabled: true, allowedPolicy: (_ctx, client) => client.clientAuthMethod !== "none" },
      clientIdMetadataDocument: { enabled: options.clientIdMetadataDocuments ?? true, ack: "draft-02" },
      dPoP: { enabled: true, nonceSecret, requireNonce: () => options.requireDpopNonce ?? false }
    }
  }
}

/** Counts what happens at a server, and reports it. */
const makeLog = (onEvent: (event: Event) => void = () => {}) => {
  const counts = {
    registrations: 0,
    authorizations: 0,
    tokens: 0,
    refreshes: 0,
    refreshReuses: 0,
    revocations: 0
  } satisfies Counts
  const count = (name: keyof Counts, event: Event): void => {
    counts[name]++
    onEvent(event)
  }
  const clientOf = ({ oidc }: KoaContextWithOIDC): string => oidc.client?.clientId ?? ""
  return {
    counts,
    refused: (event: string, detail: Readonly<Record<string, unknown>>): void =>
      onEvent({ type: "refusal", event, detail }),
    attach: ({ provider }: Engine): void => {
      provider.on(
        "registration_create.success",
        (_ctx, { clientId }: { readonly clientId: string }) =>
          count("registrations", { type: "registration", clientId })
      )
      provider.on("authorization.success", (ctx: KoaContextWithOIDC) => {
        const subject = ctx.oidc.session?.accountId ?? ""
        count("authorizations", { type: "authorization", clientId: clientOf(ctx), subject })
      })
      provider.on("grant.success", (ctx: KoaContextWithOIDC) => {
        const grantType = String(ctx.oidc.params?.["grant_type"])
        if (grantType === "refresh_token") counts.refreshes++
        count("tokens", { type: "token", clientId: clientOf(ctx), grantType })
      })
      provider.on("grant.error", (ctx: KoaContextWithOIDC, error: { readonly error_detail?: string | undefined }) => {
        if (error.error_detail !== "refresh token already used") return
        count("refreshReuses", { type: "refreshReuse", clientId: clientOf(ctx) })
      })
      provider.use(async (ctx, next) => {
        await next()
        const { oidc } = ctx as Partial<KoaContextWithOIDC>
        if (oidc?.route !== "revocation" || ctx.status !== 200) return
        count("revocations", { type: "revocation", clientId: oidc.client?.clientId ?? "" })
      })
    }
  }
}

const open = (server: Server, port: number, host: string): Effect.Effect<number, StartError, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.callback((resume) => {
      server.once(
        "error",
        (cause: NodeJS.ErrnoException) =>
          resume(
            Effect.fail(
              new StartError({
                message: `cannot listen on ${host}:${port} (${cause.code})${
                  cause.code === "EADDRINUSE" ? ": end the program that uses the port, or choose another port" : ""
                }`,
                cause
              })
            )
          )
      )
      server.listen(port, host, () => resume(Effect.succeed((server.address() as AddressInfo).port)))
    }),
    () =>
      Effect.callback<void>((resume) => {
        server.close(() => resume(Effect.void))
        server.closeAllConnections()
      })
  )

/** Starts the server. It ends with the scope. */
export const listen = (options: Options): Effect.Effect<Service, StartError, Scope.Scope> =>
  Effect.gen(function*() {
    const resolved = yield* Effect.try({
      try: () => resolve(options),
      catch: startFailed
    })
    const log = makeLog(options.onEvent)
    const runFork = Effect.runForkWith(yield* Effect.context<never>())
    const { library, notices } = yield* Effect.tryPromise({ try: loadLibrary, catch: startFailed })
    yield* Effect.forEach(notices, (notice) => Effect.logDebug(notice), { discard: true })
    const server = createServer()
    const port = yield* open(server, options.port ?? 0, resolved.host)
    const authority = `${resolved.host === "::1" ? "[::1]" : resolved.host}:${port}`
    const issuer = `http://${authority}`
    const sealing = yield* makeSealing([randomBytes(32).toString("base64url")])
    const store = makeSealedStore(makeMemory(), sealing)
    const grants = new Set<string>()
    const records: Records = {
      ...store.records,
      set: (key, value, options) => {
        if (options?.group !== undefined) grants.add(options.group)
        return store.records.set(key, value, options)
      },
      removeGroup: (group) => {
        grants.delete(group)
        return store.records.removeGroup(group)
      }
    }
    const keys = [yield* Effect.promise(() => newKey(resolved.alg))]
    const nonceSecret = randomBytes(32)
    const pages: PageOptions = { ...resolved, issuer }
    const { assertionIssuers = [] } = options
    const build = (): Engine => {
      const engine = makeEngine({
        ...resolved,
        library,
        records,
        issuer,
        jwks: { keys },
        cookieKeys: sealing.cookieKeys,
        signInSeconds: 600,
        cookiePrefix: `skein_dev_${port}_`,
        verifyAssertion: assertionIssuers.length === 0
          ? undefined
          : makeAssertionVerifier(issuer, assertionIssuers, resolved.scopes, library),
        configuration: configurationOf(options, resolved, nonceSecret),
        onProblem: (event, detail) => {
          log.refused(event, detail)
          runFork(Effect.logDebug(`authorization server: ${event}`, detail))
        }
      })
      log.attach(engine)
      return engine
    }
    let engine = yield* Effect.try({
      try: build,
      catch: (cause) =>
        new StartError({ message: `the options are refused: ${cause instanceof Error ? cause.message : cause}`, cause })
    })
    server.on("request", (request: IncomingMessage, response: ServerResponse) => {
      const path = (request.url ?? "/").split("?")[0]!
      // The engine makes addresses of this header, and a page of another name must not reach the server (DNS rebinding).
      if (request.headers.host !== authority) {
        return sendMessage(response, 421, "Unknown host", `This server answers at ${issuer} only.`)
      }
      if (path === "/" && request.method === "GET") return sendHome(response, pages)
      if (!path.startsWith(interactionPath)) return engine.handle(request, response)
      answerPage(engine.provider, pages, request, response).catch((error: unknown) => {
        log.refused("page", { error: String(error) })
        runFork(Effect.logDebug("authorization server: page", { error: String(error) }))
        sendMessage(
          response,
          400,
          "This sign-in cannot go on",
          "It has expired, or another browser began it. Start again in the application."
        )
      })
    })
    return {
      issuer,
      scopes: resolved.scopes,
      users: resolved.users,
      counts: Effect.sync((): Counts => ({ ...log.counts })),
      rotateKeys: Effect.promise(async () => {
        keys.unshift(await newKey(resolved.alg))
        engine = build()
      }),
      revokeAll: Effect.suspend(() => {
        const all = [...grants]
        grants.clear()
        return Effect.orDie(
          Effect.forEach(all, (grant) => Effect.andThen(store.removeGroup(grant), store.remove(`Grant ${grant}`)), {
            discard: true
          })
        )
      }),
      issueToken: ({ accessTokenLifetime, claims, clientId, resource, scopes, subject }) =>
        Effect.promise(async () => {
          const now = Math.floor(Date.now() / 1000)
          const lifetime = accessTokenLifetime === undefined
            ? resolved.accessTokenSeconds
            : Duration.toSeconds(Duration.fromInputUnsafe(accessTokenLifetime))
          const { kid } = keys[0]!
          const sub = subject ?? resolved.users[0]?.name ?? "nobody"
          return new jose.SignJWT({
            ...resolved.users.find(({ name }) => name === sub)?.claims,
            iss: issuer,
            sub,
            aud: resource,
            client_id: clientId ?? "test",
            scope: (scopes ?? resolved.scopes).join(" "),
            iat: now,
            exp: now + lifetime,
            jti: randomUUID(),
            ...claims
          }).setProtectedHeader({ alg: resolved.alg, typ: "at+jwt", ...kid !== undefined && { kid } }).sign(
            await jose.importJWK(keys[0] as jose.JWK, resolved.alg)
          )
        })
    } satisfies Service
  })
