/** The types of `skein/auth` are those of `@skein/auth` without Effect, and lead their user to a program that works. */
import { describe, expectTypeOf, it } from "@effect/vitest"
import type * as CoreBrowserStore from "@skein/auth/BrowserTokenStore"
import type * as CoreDev from "@skein/auth/DevServer"
import type * as CoreFileStore from "@skein/auth/FileTokenStore"
import type * as CoreGrant from "@skein/auth/Grant"
import type * as CoreLoopback from "@skein/auth/Loopback"
import type * as CoreOAuth from "@skein/auth/OAuth"
import type * as CoreOAuthError from "@skein/auth/OAuthError"
import type * as CoreOutbound from "@skein/auth/Outbound"
import type * as CorePaste from "@skein/auth/PasteSignIn"
import type * as CoreProtect from "@skein/auth/Protect"
import type * as CoreProviders from "@skein/auth/Providers"
import type * as CoreReplay from "@skein/auth/ReplayStore"
import type * as CoreRequest from "@skein/auth/RequestVerifier"
import type * as CoreSignIn from "@skein/auth/SignIn"
import type * as CoreTestUser from "@skein/auth/TestUser"
import type * as CoreSqlStore from "@skein/auth/SqlTokenStore"
import type * as CoreStoreError from "@skein/auth/TokenStoreError"
import type * as CoreStore from "@skein/auth/TokenStore"
import type * as CoreVerifier from "@skein/auth/TokenVerifier"
import type * as CoreWeb from "@skein/auth/WebSignIn"
import type * as CorePg from "@skein/sql/PgClient"
import type * as CoreSqlite from "@skein/sql/SqliteClient"
import type { Principal as CorePrincipal } from "@skein/server/Principal"
import type { HttpRequest as CoreRequestOfHttp } from "@skein/server/Http"
import {
  type BrowserTokenStoreOptions,
  customSignIn,
  type DevCounts,
  type DevEvent,
  type DevServer,
  type DevServerOptions,
  type DevTokenOptions,
  type DpopOptions,
  type FileTokenStoreOptions,
  Grant,
  type HttpRequest,
  loopback,
  type LoopbackOptions,
  type MemoryReplayOptions,
  OAuth,
  type OAuthErrorReason,
  type OAuthPolicy,
  type OpenOptions,
  type OutboundOptions,
  type PasteSignInOptions,
  type PostgresOptions,
  type Principal,
  type PrincipalIdOptions,
  type ProofUse,
  protect,
  type ProtectOptions,
  type Providers,
  RequestVerifier,
  Scopes,
  type ServerOptions,
  type SignInChange,
  type SignInState,
  type SqliteOptions,
  type SqlTokenStoreOptions,
  type TestUser,
  type TestUserOptions,
  type TokenStoreErrorReason,
  type TokenStoreOptions,
  TokenVerifier,
  type WebSignInOptions
} from "skein/auth"

/** The members that a reason has besides those of an error. */
type Members<R> = R extends { readonly _tag: infer Tag } ? { readonly tag: Tag; readonly keys: KeyOf<R> } : never
type KeyOf<R> = Exclude<
  keyof R,
  keyof Error | "_tag" | "toJSON" | "toString" | "asEffect" | "pipe" | symbol | `~${string}`
>

describe("the types", () => {
  it("have the options of @skein/auth", () => {
    expectTypeOf<keyof ProtectOptions>().toEqualTypeOf<keyof CoreProtect.Options | "replayStore">()
    expectTypeOf<Omit<ProtectOptions, "dpop" | "replayStore" | "verify">>().toExtend<
      Omit<CoreProtect.Options, "dpop" | "verify">
    >()
    expectTypeOf<keyof DpopOptions>().toEqualTypeOf<keyof CoreProtect.DpopMode>()
    expectTypeOf<PrincipalIdOptions>().toEqualTypeOf<CoreProtect.IdOptions>()
    expectTypeOf<keyof TokenVerifier.JwtOptions>().toEqualTypeOf<keyof CoreVerifier.JwtOptions>()
    expectTypeOf<TokenVerifier.JwtOptions>().toExtend<CoreVerifier.JwtOptions>()
    expectTypeOf<keyof TokenVerifier.IntrospectionOptions>().toEqualTypeOf<keyof CoreVerifier.IntrospectionOptions>()
    expectTypeOf<keyof TokenVerifier.OwnOptions>().toEqualTypeOf<keyof CoreVerifier.OwnOptions>()
    expectTypeOf<TokenVerifier.OwnToken>().toEqualTypeOf<CoreVerifier.OwnToken>()
    expectTypeOf<RequestVerifier.CertificateOptions>().toEqualTypeOf<CoreRequest.CertificateOptions>()
    expectTypeOf<keyof RequestVerifier.SignedHeaderOptions>().toEqualTypeOf<
      keyof (CoreRequest.AssertionOptions & CoreRequest.AssertionPrincipal)
    >()
    expectTypeOf<RequestVerifier.AwsAlbOptions>().toExtend<CoreRequest.AlbOptions & CoreRequest.AssertionPrincipal>()
    expectTypeOf<keyof RequestVerifier.AwsAlbOptions>().toEqualTypeOf<
      keyof (CoreRequest.AlbOptions & CoreRequest.AssertionPrincipal)
    >()
    expectTypeOf<keyof RequestVerifier.TrustedHeaderOptions>().toEqualTypeOf<keyof CoreRequest.TrustedHeaderOptions>()
    expectTypeOf<RequestVerifier.RequestProtectionOptions>().toEqualTypeOf<CoreRequest.ProtectionOptions>()
    expectTypeOf<MemoryReplayOptions>().toEqualTypeOf<CoreReplay.MemoryOptions>()
    expectTypeOf<Providers.EntraOptions>().toEqualTypeOf<CoreProviders.EntraOptions>()
    expectTypeOf<Providers.OktaOptions>().toEqualTypeOf<CoreProviders.OktaOptions>()
    expectTypeOf<Providers.Auth0Options>().toEqualTypeOf<CoreProviders.Auth0Options>()
    expectTypeOf<Providers.CognitoOptions>().toEqualTypeOf<CoreProviders.CognitoOptions>()
    expectTypeOf<Providers.KeycloakOptions>().toEqualTypeOf<CoreProviders.KeycloakOptions>()
    expectTypeOf<Providers.WorkosOptions>().toEqualTypeOf<CoreProviders.WorkosOptions>()
    expectTypeOf<Providers.GithubOptions>().toEqualTypeOf<CoreProviders.GithubOptions>()
    expectTypeOf<keyof Providers.GithubVerifierOptions>().toEqualTypeOf<keyof CoreProviders.GithubVerifierOptions>()
    expectTypeOf<keyof Providers.GoogleVerifierOptions>().toEqualTypeOf<keyof CoreProviders.GoogleVerifierOptions>()
    expectTypeOf<keyof Grant.AuthorizationCodeOptions>().toEqualTypeOf<keyof CoreGrant.AuthorizationCodeOptions>()
    expectTypeOf<keyof Grant.PreregisteredClient>().toEqualTypeOf<keyof CoreGrant.PreregisteredClient>()
    expectTypeOf<keyof Grant.ClientCredentialsOptions>().toEqualTypeOf<keyof CoreGrant.ClientCredentialsOptions>()
    expectTypeOf<keyof Grant.JwtBearerOptions>().toEqualTypeOf<keyof CoreGrant.JwtBearerOptions>()
    expectTypeOf<keyof Grant.IdentityAssertionOptions>().toEqualTypeOf<keyof CoreGrant.IdentityAssertionOptions>()
    expectTypeOf<keyof Grant.IdentityProvider>().toEqualTypeOf<keyof CoreGrant.IdentityProvider>()
    expectTypeOf<Exclude<keyof OAuthPolicy, "store">>().toEqualTypeOf<Exclude<keyof CoreOAuth.Options, "grant">>()
    expectTypeOf<Omit<OAuthPolicy, "outbound" | "store">>().toExtend<Omit<CoreOAuth.Options, "grant" | "outbound">>()
    expectTypeOf<ServerOptions>().toEqualTypeOf<CoreOAuth.ServerOptions>()
    expectTypeOf<Exclude<keyof OutboundOptions, "refusePrivateAddresses">>().toEqualTypeOf<keyof CoreOutbound.Options>()
    expectTypeOf<Omit<OutboundOptions, "fetch" | "refusePrivateAddresses">>().toExtend<CoreOutbound.Options>()
    expectTypeOf<keyof LoopbackOptions>().toEqualTypeOf<keyof CoreLoopback.Options>()
    expectTypeOf<LoopbackOptions>().toExtend<CoreLoopback.Options>()
    expectTypeOf<keyof PasteSignInOptions>().toEqualTypeOf<keyof CorePaste.Options>()
    expectTypeOf<PasteSignInOptions>().toExtend<CorePaste.Options>()
    expectTypeOf<WebSignInOptions>().toEqualTypeOf<CoreWeb.Options>()
    expectTypeOf<keyof SqlTokenStoreOptions>().toEqualTypeOf<keyof CoreSqlStore.Options>()
    expectTypeOf<PostgresOptions>().toExtend<Omit<CorePg.Options, "ssl">>()
    expectTypeOf<keyof PostgresOptions>().toEqualTypeOf<
      Exclude<keyof CorePg.Options, "transformQueryNames" | "transformResultNames">
    >()
    expectTypeOf<SqliteOptions>().toExtend<CoreSqlite.Options>()
    expectTypeOf<keyof TokenStoreOptions>().toEqualTypeOf<keyof CoreStore.Options>()
    expectTypeOf<keyof BrowserTokenStoreOptions>().toEqualTypeOf<keyof CoreBrowserStore.Options>()
    expectTypeOf<FileTokenStoreOptions>().toExtend<CoreFileStore.Options>()
    expectTypeOf<keyof DevServerOptions>().toEqualTypeOf<keyof CoreDev.Options>()
    expectTypeOf<Omit<DevServerOptions, "assertionIssuers" | "clients">>().toExtend<
      Omit<CoreDev.Options, "assertionIssuers" | "clients">
    >()
    expectTypeOf<keyof DevTokenOptions>().toEqualTypeOf<keyof CoreDev.TokenOptions>()
    expectTypeOf<DevTokenOptions>().toExtend<CoreDev.TokenOptions>()
    expectTypeOf<TestUserOptions>().toEqualTypeOf<CoreTestUser.Options>()
  })

  it("have the results of @skein/auth", () => {
    expectTypeOf<CorePrincipal>().toEqualTypeOf<Principal>()
    expectTypeOf<CoreRequestOfHttp>().toExtend<HttpRequest>()
    expectTypeOf<CoreVerifier.VerifiedToken>().toEqualTypeOf<TokenVerifier.VerifiedToken>()
    expectTypeOf<CoreVerifier.VerifyContext>().toEqualTypeOf<TokenVerifier.VerifyContext>()
    expectTypeOf<CoreVerifier.TokenProblem>().toEqualTypeOf<TokenVerifier.TokenProblem>()
    expectTypeOf<CoreVerifier.InvalidToken>().toExtend<TokenVerifier.InvalidToken>()
    expectTypeOf<CoreVerifier.VerifierUnavailable>().toExtend<TokenVerifier.VerifierUnavailable>()
    expectTypeOf<CoreRequest.ClientCertificate>().toEqualTypeOf<RequestVerifier.ClientCertificate>()
    expectTypeOf<CoreReplay.Use>().toEqualTypeOf<ProofUse>()
    expectTypeOf<CoreGrant.AssertionRequest>().toEqualTypeOf<Grant.AssertionRequest>()
    expectTypeOf<CoreOAuth.SignInState>().toEqualTypeOf<SignInState>()
    expectTypeOf<CoreOAuth.SignInChange["status"]>().toEqualTypeOf<SignInChange["status"]>()
    expectTypeOf<CoreSignIn.OpenOptions>().toEqualTypeOf<OpenOptions>()
    expectTypeOf<Members<CoreOAuthError.Reason>>().toEqualTypeOf<Members<OAuthErrorReason>>()
    expectTypeOf<CoreOAuthError.Reason>().toExtend<OAuthErrorReason>()
    expectTypeOf<Members<CoreStoreError.Reason>>().toEqualTypeOf<Members<TokenStoreErrorReason>>()
    expectTypeOf<CoreDev.Counts>().toEqualTypeOf<DevCounts>()
    expectTypeOf<CoreDev.Event>().toExtend<DevEvent>()
    expectTypeOf<keyof CoreDev.Started>().toEqualTypeOf<keyof DevServer>()
    expectTypeOf<CoreDev.Started>().toExtend<DevServer>()
    expectTypeOf<keyof CoreTestUser.TestUser>().toEqualTypeOf<keyof TestUser>()
  })

  it("refuse a program that cannot work", () => {
    const verify = TokenVerifier.jwt({ issuer: "https://login.example" })
    const person = Grant.authorizationCode({ clientName: "Tea House" })
    const job = Grant.clientCredentials({ clientId: "job", clientSecret: "s", issuer: "https://login.example" })
    void (() => {
      // @ts-expect-error A person must be asked in some way.
      void OAuth.make({ grant: person })
      // @ts-expect-error A program is not asked.
      void OAuth.make({ grant: job, signIn: loopback() })
      void OAuth.make({ grant: job })
      void OAuth.make({ grant: person, signIn: loopback() })
      // @ts-expect-error A verifier is made by a function of TokenVerifier.
      protect({ resource: "https://tea.example/mcp", verify: async () => undefined })
      // @ts-expect-error The name of an option is wrong.
      protect({ resource: "https://tea.example/mcp", verify, scope: ["tea"] })
      // @ts-expect-error A verifier of your own says for whom a token was issued.
      TokenVerifier.make({ issuer: "i", verify: async () => ({ expiresAt: undefined, subject: "ada" }) })
      // @ts-expect-error A duration has a unit.
      protect({ resource: "https://tea.example/mcp", verify, verifiedLifetime: "10 s" })
      // @ts-expect-error The answer is the parameters of the redirect.
      customSignIn({ open: () => ({ redirectUri: "a://b", authorize: async () => "code" }) })
      // @ts-expect-error A verifier of tokens is not a definition.
      Scopes.required(["tea:write"], verify)
      // @ts-expect-error A principal has an id.
      RequestVerifier.make({ headers: [], verify: async () => ({ name: "ada" }) })
    })
  })
})
