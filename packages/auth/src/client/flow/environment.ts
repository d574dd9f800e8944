/**
 * What the parts of an `OAuth` share: its options with their defaults, its store, and its way out.
 */
import type * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
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

/** What one server needs that the specification does not provide for. */
export interface ServerOptions {
  /** The `resource` parameter of requests for this server, byte for byte; `omit` leaves it out. */
  readonly resource?: string | undefined
  /** Whether its authorization server supports PKCE with S256 although it does not announce it. `false` by default. */
  readonly assumePkce?: boolean | undefined
}

/** The options of `OAuth.make` with their defaults. Durations are in milliseconds. */
export interface Settings {
  readonly account: string
  readonly scopes: ReadonlyArray<string> | undefined
  readonly offlineAccess: boolean
  readonly dpop: "auto" | "always" | "never"
  /** The `resource` of servers; `"omit"` to leave it out, `undefined` for the one of the metadata. */
  readonly resource: string | undefined
  /** The options of single servers, by their URLs (`serverUrl`). */
  readonly servers: ReadonlyMap<string, ServerOptions>
  readonly assumePkce: ReadonlyArray<string>
  readonly refreshBefore: number
  readonly signInInterval: number
  readonly maxStepUps: number
  readonly maxScopes: number
  readonly discoveryInterval: number
  readonly maxRetryDelay: number
  readonly maxRetryAfter: number
  readonly signInTimeout: number
}

/** What the parts share. */
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

/** A duration in milliseconds. */
export const millis = (duration: Duration.Input | undefined, fallback: Duration.Input): number =>
  Duration.toMillis(Duration.fromInputUnsafe(duration ?? fallback))
