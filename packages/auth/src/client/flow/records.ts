/**
 * The values in a `TokenStore`, and their keys. Values are JSON; a value that cannot be read counts as absent.
 */
import { sha256Hex } from "@skein/runtime/Digest"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import type { OAuthError } from "../protocol/OAuthError.ts"
import type { TokenStore } from "../stores/TokenStore.ts"
import type { DpopKey } from "../protocol/dpop.ts"
import { storeFailed } from "../protocol/errors.ts"
import { serverUrl } from "../protocol/urls.ts"
import { parseJson } from "../../shared/web.ts"

const strings = Schema.Array(Schema.String)

const DpopKey: Schema.Codec<DpopKey> = Schema.Struct({
  algorithm: Schema.String,
  privateJwk: Schema.Record(Schema.String, Schema.Unknown),
  publicJwk: Schema.Record(Schema.String, Schema.Unknown)
})

/** How the client became known to the authorization server. */
export const RegistrationKind = Schema.Literals(["given", "document", "dynamic"])

/** The tokens of one account at one server. Times are in milliseconds since the epoch. */
export const SavedTokens = Schema.Struct({
  issuer: Schema.String,
  /** The `resource` of the requests; absent if it was left out. */
  resource: Schema.optional(Schema.String),
  /** The URL of the metadata that a challenge named. */
  resourceMetadataUrl: Schema.optional(Schema.String),
  clientId: Schema.String,
  registration: RegistrationKind,
  accessToken: Schema.String,
  tokenType: Schema.Literals(["Bearer", "DPoP"]),
  refreshToken: Schema.optional(Schema.String),
  obtainedAt: Schema.Number,
  expiresAt: Schema.optional(Schema.Number),
  /** The requested scopes, which later requests must contain too. */
  requestedScopes: strings,
  grantedScopes: strings,
  /** When the grant itself was made, by a person or a program. A refresh keeps it. */
  grantedAt: Schema.Number,
  dpop: Schema.optional(DpopKey),
  /** The person who signed in, by an ID token. */
  person: Schema.optional(Schema.Struct({ subject: Schema.String, name: Schema.optionalKey(Schema.String) }))
})
export type SavedTokens = typeof SavedTokens.Type

/** A dynamic registration (RFC 7591). */
export const Registration = Schema.Struct({
  clientId: Schema.String,
  clientSecret: Schema.optional(Schema.String),
  /** `token_endpoint_auth_method` of the answer. */
  authenticationMethod: Schema.optional(Schema.String),
  /** In milliseconds since the epoch. */
  secretExpiresAt: Schema.optional(Schema.Number),
  redirectUri: Schema.String,
  /** The scopes that were named in it: some servers hold the client to them. */
  scopes: strings,
  /** Whether it is not used for further sign-ins. */
  isDoubtful: Schema.optional(Schema.Boolean)
})
export type Registration = typeof Registration.Type

/** The registrations of one client name at one issuer, the newest first. */
export const Registrations = Schema.Array(Registration)

/** A sign-in that has begun and has to be finished with the answer of the person. */
export const PendingSignIn = Schema.Struct({
  account: Schema.String,
  /** The URL of the server. */
  url: Schema.String,
  /** The metadata that the answer is judged by: recorded before the redirect (RFC 9207). */
  server: Schema.Record(Schema.String, Schema.Unknown),
  resource: Schema.optional(Schema.String),
  resourceMetadataUrl: Schema.optional(Schema.String),
  redirectUri: Schema.String,
  codeVerifier: Schema.String,
  clientId: Schema.String,
  registration: RegistrationKind,
  requestedScopes: strings,
  dpop: Schema.optional(DpopKey),
  expiresAt: Schema.Number
})
export type PendingSignIn = typeof PendingSignIn.Type

/** A sign-in that has begun, in the list of them. `owner` is the digest of the key of its tokens. */
const PendingState = Schema.Struct({ state: Schema.String, owner: Schema.String, expiresAt: Schema.Number })
export type PendingState = typeof PendingState.Type

/** The sign-ins of all accounts that have begun, the newest first. */
export const PendingStates = Schema.Array(PendingState)

/** A person is being asked, in some process, until `expiresAt` at most; or did not sign in at `failedAt`. */
export const SignInMark = Schema.Struct({ expiresAt: Schema.Number, failedAt: Schema.optional(Schema.Number) })

/** The token endpoint has failed so often in a row, and is left alone until `until`. */
export const FailureMark = Schema.Struct({
  failures: Schema.Int,
  until: Schema.Number,
  /** The members of the `TokenRequestFailed`. */
  reason: Schema.Struct({
    message: Schema.String,
    error: Schema.optional(Schema.String),
    status: Schema.optional(Schema.Number),
    retryAfter: Schema.optional(Schema.Number)
  })
})

// The parts are quoted, so that no part of one key can look like another key.
const key = (...parts: ReadonlyArray<string>): string => parts.map((part) => JSON.stringify(part)).join(" ")

/** The key of the tokens of an account at a server, which is also the key of their lock. */
export const tokensKey = (account: string, url: URL): string => key("tokens", account, serverUrl(url))

export const registrationsKey = (issuer: string, clientName: string): string => key("registrations", issuer, clientName)
export const pendingKey = (state: string): string => key("sign-in", state)
/** The key of the list of sign-ins, which is also the key of its lock. */
export const pendingStatesKey = "sign-ins"
export const signInMarkKey = (tokensKey: string): string => `signing-in ${tokensKey}`
export const failureMarkKey = (tokensKey: string): string => `failed ${tokensKey}`

/** Reads a value. */
export const read = <A>(
  store: TokenStore["Service"],
  schema: Schema.Codec<A, unknown>,
  key: string
): Effect.Effect<A | undefined, OAuthError> =>
  Effect.flatMap(
    Effect.mapError(store.get(key), storeFailed),
    Option.match({
      onNone: () => Effect.succeed(undefined),
      onSome: (text) => {
        const value = Option.getOrUndefined(Schema.decodeUnknownOption(schema)(parseJson(Redacted.value(text))))
        return value === undefined
          ? Effect.as(
            Effect.logWarning("a value of the token store was ignored: it is not in the expected format"),
            undefined
          )
          : Effect.succeed(value)
      }
    })
  )

/** Whether there is a value. */
export const isPresent = (store: TokenStore["Service"], key: string): Effect.Effect<boolean, OAuthError> =>
  Effect.mapBoth(store.get(key), { onFailure: storeFailed, onSuccess: Option.isSome })

/** Writes a value. */
export const write = (store: TokenStore["Service"], key: string, value: unknown): Effect.Effect<void, OAuthError> =>
  Effect.mapError(store.set(key, Redacted.make(JSON.stringify(value))), storeFailed)

/** Removes a value. */
export const remove = (store: TokenStore["Service"], key: string): Effect.Effect<void, OAuthError> =>
  Effect.mapError(store.remove(key), storeFailed)

/** A short text that stands for a key: half of its SHA-256, in hexadecimal. */
export const digest = (key: string): Effect.Effect<string> => Effect.map(sha256Hex(key), (hash) => hash.slice(0, 32))

/** Runs an effect in the lock of a key. Jobs that wait for a person use `Jobs.locked`, which waits longer. */
export const locked = <A>(
  store: TokenStore["Service"],
  key: string,
  effect: Effect.Effect<A, OAuthError>
): Effect.Effect<A, OAuthError> =>
  Effect.catchTag(store.withLock(key, effect), "TokenStoreError", (error) => Effect.fail(storeFailed(error)))

/** The time in milliseconds since the epoch. */
export const now = Clock.currentTimeMillis
