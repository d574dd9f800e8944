/**
 * The values that the parts of an `OAuth` share: its options with their defaults, its store, and its way out.
 */
import * as Options from "@skein/runtime/Options"
import type * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as PubSub from "effect/PubSub"
import type { Definition } from "../grants/Grant.ts"
import { CredentialUnavailable, type OAuthError } from "../protocol/OAuthError.ts"
import type { Outbound } from "../../shared/Outbound.ts"
import { read, type Secret } from "../../shared/Secret.ts"
import { SignIn } from "../grants/SignIn.ts"
import type { TokenStore } from "../stores/TokenStore.ts"
import { oauthError } from "../protocol/errors.ts"

/** An event of one server. */
export interface SignInChange {
  readonly url: URL
  /**
   * `signing-in`: a person is asked. `refreshing`: tokens are renewed without a person. `signed-in`: tokens were
   * obtained or renewed. `failed`: they were not; the last `signed-in` may still be valid. `signed-out`: they were
   * removed.
   */
  readonly status: "signing-in" | "refreshing" | "signed-in" | "failed" | "signed-out"
  /** The reason of `failed`. */
  readonly error?: OAuthError | undefined
}

/** Deviations of one server from the specification. */
export interface ServerOptions {
  /**
   * The URL of its protected resource metadata, also of another origin, where the server names one of another origin. Found
   * from its challenge and its own URL by default. An https URL, or http on loopback.
   */
  readonly resourceMetadata?: string | undefined
  /** The `resource` parameter of requests for this server, byte for byte; `omit` leaves it out. */
  readonly resource?: string | undefined
  /** Whether its authorization server supports PKCE with S256 although it does not announce it. `false` by default. */
  readonly assumePkce?: boolean | undefined
}

/** The options of `OAuth.make` that have a default. */
export interface TokenPolicy {
  /** The id of the user in your application, where several users share a store. `""` by default. */
  readonly account?: string | undefined
  /** Whether to request a refresh token (`offline_access`) where the authorization server lists it. `true` by default. */
  readonly offlineAccess?: boolean | undefined
  /**
   * Whether tokens are bound to a key (DPoP, RFC 9449): `auto` by default, where both the server and the authorization
   * server ask for it; `always`; or `never`.
   */
  readonly dpop?: "auto" | "always" | "never" | undefined
  /**
   * The issuers of authorization servers that support PKCE with S256 and do not announce it, as Amazon Cognito and
   * Microsoft Entra. Empty by default: a sign-in there fails with `PkceUnsupported`.
   */
  readonly assumePkce?: ReadonlyArray<string> | undefined
  /**
   * A token with a shorter remaining lifetime is refreshed before a request: 30 seconds by default, and at most half of
   * the lifetime of the token. Raise it for requests that wait in a queue on their way.
   */
  readonly minTokenLifetime?: Duration.Input | undefined
  /**
   * The time for which a person is not asked again: 1 minute by default. When the server refuses a token that was just
   * granted, the request fails with `TokenRefused`; after a sign-in that was denied or not completed, in any process that
   * shares the store, with `SignInFailed`. `signIn` asks at any time. Set it to 0 in a program without a person.
   */
  readonly signInInterval?: Duration.Input | undefined
  /**
   * The time in which a sign-in can be finished with its answer: 10 minutes by default. Then `finish` fails with
   * `InvalidAuthorizationResponse`. Raise it where people need longer, for an approval for example.
   */
  readonly signInTimeout?: Duration.Input | undefined
}

/** Bounds of an `OAuth` that no deployment has a reason to change. Tests lower them. Durations are in milliseconds. */
const fixedBounds = {
  /** How often a person is asked for more scopes of one server within `signInInterval`. */
  maxStepUps: 3,
  /** The scopes of one sign-in: the URL of a sign-in page has no space for more. */
  maxScopes: 200,
  /** A discovery that led to no tokens is not repeated earlier. A refused request has the same outcome meanwhile. */
  discoveryInterval: 5_000,
  /** The longest delay after token requests and registrations that failed in a row. */
  maxRetryDelay: 60_000,
  /** The servers in memory. The one that was used least recently is dropped; its tokens remain in the store. */
  maxServers: 1_000
}

export type FlowBounds = Readonly<typeof fixedBounds>

/**
 * The bounds of the `OAuth` that an effect makes.
 *
 * @example
 * const oauth = yield* Effect.updateService(OAuth.make({ grant }), FlowBounds, (bounds) => ({ ...bounds, maxServers: 1 }))
 */
export const FlowBounds: Context.Reference<FlowBounds> = Context.Reference("@skein/auth/FlowBounds", {
  defaultValue: () => fixedBounds
})

/** The options of `OAuth.make` with their defaults, and the bounds. Durations are in milliseconds. */
export interface Settings extends Options.Resolved<TokenPolicy>, FlowBounds {
  readonly scopes: ReadonlyArray<string> | undefined
  /** The `resource` of servers; `"omit"` to leave it out, `undefined` for the one of the metadata. */
  readonly resource: string | undefined
  /** The options of single servers, by their URLs (`serverUrl`). */
  readonly servers: ReadonlyMap<string, ServerOptions>
}

/** Fills in the defaults of a policy. */
export const resolvePolicy = (given: TokenPolicy): Options.Resolved<TokenPolicy> =>
  Options.resolve(
    given,
    { account: "", offlineAccess: true, dpop: "auto", assumePkce: [] },
    { minTokenLifetime: "30 seconds", signInInterval: "1 minute", signInTimeout: "10 minutes" }
  )

/** The values that the parts share. */
export interface Environment {
  readonly settings: Settings
  readonly definition: Definition
  readonly store: TokenStore["Service"]
  readonly outbound: Outbound
  readonly changes: PubSub.PubSub<SignInChange>
  /** The clock of `OAuth.make`, for headers, which are made without an effect. */
  readonly clock: Clock.Clock
  /** The way to ask a person, for grants that need one. */
  readonly signIn: SignIn["Service"] | undefined
  /** Obtains a secret of the grant. `name` starts the message of a failure. */
  readonly secret: (secret: Secret, name: string) => Effect.Effect<string, OAuthError>
  /** Provides the services of the grant to an effect of it. */
  readonly provide: <A, E>(effect: Effect.Effect<A, E>) => Effect.Effect<A, E>
}

/** The `secret` and `provide` of an environment, from the services of the grant. */
export const fromServices = (
  services: Context.Context<never>
): Pick<Environment, "provide" | "secret" | "signIn"> => {
  const provide = <A, E>(effect: Effect.Effect<A, E>): Effect.Effect<A, E> => Effect.provideContext(effect, services)
  return {
    provide,
    signIn: Context.getOrUndefined(services as Context.Context<SignIn>, SignIn),
    secret: (secret, name) =>
      Effect.mapError(
        provide(read(secret)),
        () => oauthError(new CredentialUnavailable({ message: `${name} could not be obtained` }))
      )
  }
}
