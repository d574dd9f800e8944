/**
 * The client that an authorization server knows: registered by hand, described by a document, or registered
 * dynamically, in this order (2025-11-25, Client Registration Approaches).
 */
import { quote } from "@skein/protocol/Text"
import * as Effect from "effect/Effect"
import * as jose from "jose"
import * as oauth from "oauth4webapi"
import type { AuthorizationCodeOptions, ClientAuthentication } from "../grants/Grant.ts"
import { CredentialUnavailable, IssuerMismatch, type OAuthError } from "../protocol/OAuthError.ts"
import type { Environment } from "./environment.ts"
import { fail, oauthError } from "../protocol/errors.ts"
import type { Discovery } from "../protocol/discovery.ts"
import type { ServerMetadata } from "../protocol/metadata.ts"
import { register, registrationFailed } from "../protocol/registration.ts"
import { locked, now, read, type Registration, Registrations, registrationsKey, remove, write } from "./records.ts"
import * as Scopes from "../protocol/scopes.ts"
import { type AuthenticatedClient, secretAuthentication } from "../protocol/tokenEndpoint.ts"
import { sameIssuer } from "../protocol/urls.ts"

/** Fails if credentials belong to another authorization server than `server`. Nothing has been sent to it. */
export const checkIssuer = (
  clientId: string,
  issuer: string | undefined,
  server: ServerMetadata
): Effect.Effect<void, OAuthError> =>
  issuer === undefined || issuer === "discovered" || sameIssuer(issuer, server.issuer) ? Effect.void : fail(
    new IssuerMismatch({
      message: `The client ${quote(clientId)} is registered with ${quote(issuer)}, ` +
        `but the server requires tokens of ${quote(server.issuer)}. ` +
        `Configure a client that is registered there, and its issuer${server.seen ?? ""}`,
      expected: issuer,
      actual: server.issuer
    })
  )

/** A client with the secret or the key of its configuration. */
export const configuredClient = Effect.fnUntraced(function*(
  environment: Environment,
  server: ServerMetadata,
  clientId: string,
  { clientSecret, privateKey }: ClientAuthentication
): Effect.fn.Return<AuthenticatedClient, OAuthError> {
  if (privateKey !== undefined) {
    const { algorithm, keyId } = privateKey
    const pem = yield* environment.secret(privateKey.pem, `The private key of the client ${quote(clientId)}`)
    const key = yield* Effect.tryPromise({
      try: () => jose.importPKCS8(pem, algorithm),
      // The error of the parser may quote the key.
      catch: () =>
        oauthError(
          new CredentialUnavailable({
            message: `The private key of the client ${quote(clientId)} is not a PKCS #8 key for ${quote(algorithm)} ` +
              "in the format PEM"
          })
        )
    })
    const authenticate = oauth.PrivateKeyJwt(keyId === undefined ? key : { key, kid: keyId })
    return { clientId, authenticate, secrets: [] }
  }
  if (clientSecret === undefined) return { clientId, authenticate: oauth.None(), secrets: [] }
  const secret = yield* environment.secret(clientSecret, `The secret of the client ${quote(clientId)}`)
  return { clientId, authenticate: secretAuthentication(secret, server, undefined), secrets: [secret] }
})

/** How the client of a person becomes known to an authorization server. */
export const registrationKind = (
  options: AuthorizationCodeOptions,
  server: ServerMetadata
): "given" | "document" | "dynamic" =>
  options.client !== undefined
    ? "given"
    : options.clientMetadataUrl !== undefined && server.client_id_metadata_document_supported === true
    ? "document"
    : "dynamic"

const key = (options: AuthorizationCodeOptions, issuer: string): string => registrationsKey(issuer, options.clientName)

/** The redirect URIs that a client is registered with. */
export const redirectUris = (
  environment: Environment,
  options: AuthorizationCodeOptions,
  server: ServerMetadata
): Effect.Effect<ReadonlyArray<string>, OAuthError> => {
  const kind = registrationKind(options, server)
  if (kind === "given") return Effect.succeed(options.client?.redirectUris ?? [])
  if (kind === "document") return Effect.succeed(options.redirectUris ?? [])
  return Effect.map(
    read(environment.store, Registrations, key(options, server.issuer)),
    (all) => (all ?? []).map(({ redirectUri }) => redirectUri)
  )
}

const isUsable = (registration: Registration, now: number): boolean =>
  registration.secretExpiresAt === undefined || registration.secretExpiresAt > now

const registered = (registration: Registration, server: ServerMetadata): AuthenticatedClient => {
  const { authenticationMethod, clientId, clientSecret } = registration
  return clientSecret === undefined
    ? { clientId, authenticate: oauth.None(), secrets: [] }
    : {
      clientId,
      authenticate: secretAuthentication(clientSecret, server, authenticationMethod),
      secrets: [clientSecret]
    }
}

/** At most so many registrations per issuer are kept: one per redirect URI. */
const maxRegistrations = 8

/** The client of a sign-in. */
export interface SignInClient extends AuthenticatedClient {
  /** Whether it is an earlier registration, which the authorization server may not know any longer. */
  readonly isStored: boolean
}

/** The client of a sign-in that is about to begin. A client that is not known yet is registered, once for all who wait. */
export const clientForSignIn = Effect.fnUntraced(function*(
  environment: Environment,
  options: AuthorizationCodeOptions,
  { resource, server }: Discovery,
  redirectUri: string,
  scopes: ReadonlyArray<string>
): Effect.fn.Return<SignInClient, OAuthError> {
  if (registrationKind(options, server) !== "dynamic") {
    return { ...yield* knownClient(environment, options, server, ""), isStored: false }
  }
  const { outbound, store } = environment
  const at = key(options, server.issuer)
  const find = Effect.gen(function*() {
    const time = yield* now
    const all = ((yield* read(store, Registrations, at)) ?? []).filter((each) => isUsable(each, time))
    const same = all.find((each) => each.redirectUri === redirectUri && each.isDoubtful !== true)
    if (same !== undefined && (same.scopes.length === 0 || Scopes.covers(same.scopes, scopes))) {
      return { ...registered(same, server), isStored: true }
    }
    // Some servers hold a client to the scopes of its registration: a step-up must not need another one.
    const named = Scopes.union(scopes, same?.scopes ?? [], resource?.scopesSupported ?? [])
    if (options.clientMetadataUrl === undefined && server.client_id_metadata_document_supported === true) {
      yield* Effect.logInfo(
        "a client is registered dynamically, which is deprecated since 2026-07-28: this authorization server supports " +
          "client ID metadata documents (clientMetadataUrl)",
        { issuer: server.issuer }
      )
    }
    const made = yield* register(outbound, server, {
      clientName: options.clientName,
      clientUri: options.clientUri,
      redirectUri,
      scopes: named,
      applicationType: environment.signIn?.applicationType ?? "native",
      hasDocument: options.clientMetadataUrl !== undefined
    })
    const others = all.filter((each) => each.redirectUri !== redirectUri || each.isDoubtful === true)
    yield* write(store, at, [made, ...others].slice(0, maxRegistrations))
    return { ...registered(made, server), isStored: false }
  })
  return yield* locked(store, at, find)
})

/** The client that tokens or codes were issued to, if it is still known. */
export const knownClient = Effect.fnUntraced(function*(
  environment: Environment,
  options: AuthorizationCodeOptions,
  server: ServerMetadata,
  clientId: string
): Effect.fn.Return<AuthenticatedClient, OAuthError> {
  switch (registrationKind(options, server)) {
    case "given": {
      const { client } = options
      yield* checkIssuer(client!.clientId, client!.issuer, server)
      return yield* configuredClient(environment, server, client!.clientId, client!)
    }
    case "document":
      return { clientId: options.clientMetadataUrl!, authenticate: oauth.None(), secrets: [] }
    case "dynamic": {
      const all = yield* read(environment.store, Registrations, key(options, server.issuer))
      const found = all?.find((each) => each.clientId === clientId)
      return found === undefined
        ? yield* registrationFailed(server, `the registration of the client ${quote(clientId)} is gone`)
        : registered(found, server)
    }
  }
})

/** Changes the registrations of a client at an authorization server, in their lock. */
const changeRegistrations = (
  { store }: Environment,
  options: AuthorizationCodeOptions,
  server: ServerMetadata,
  change: (all: ReadonlyArray<Registration>) => ReadonlyArray<Registration>
): Effect.Effect<void, OAuthError> => {
  const at = key(options, server.issuer)
  const changed = Effect.flatMap(read(store, Registrations, at), (all = []) => {
    const rest = change(all)
    if (rest === all) return Effect.void
    return rest.length === 0 ? remove(store, at) : write(store, at, rest)
  })
  return locked(store, at, changed)
}

/**
 * Excludes an earlier registration from further sign-ins, after a sign-in that ended without an answer. An authorization
 * server that has lost the registration reports it on a page to the person only, so the client would use the registration
 * for every later sign-in too. Tokens of the registration are still refreshed with it, because the person may just have
 * given up.
 */
export const doubtClient = (
  environment: Environment,
  options: AuthorizationCodeOptions,
  server: ServerMetadata,
  clientId: string
): Effect.Effect<void, OAuthError> =>
  changeRegistrations(environment, options, server, (all) => {
    const one = all.find((each) => each.clientId === clientId)
    if (one === undefined) return all
    // One for each redirect URI is enough: the later ones have no tokens, or they would have been answered.
    const isSecond = all.some((each) => each.isDoubtful === true && each.redirectUri === one.redirectUri)
    return all.flatMap((each) => each !== one ? [each] : isSecond ? [] : [{ ...each, isDoubtful: true }])
  })

/** Forgets a dynamic registration that the authorization server does not know any longer. */
export const forgetClient = (
  environment: Environment,
  options: AuthorizationCodeOptions,
  server: ServerMetadata,
  clientId: string
): Effect.Effect<void, OAuthError> =>
  changeRegistrations(environment, options, server, (all) => all.filter((each) => each.clientId !== clientId))
