/** The presets of the pages in `providers`. */
import * as Grant from "@skein/auth/Grant"
import * as OAuth from "@skein/auth/OAuth"
import * as Protect from "@skein/auth/Protect"
import * as Providers from "@skein/auth/Providers"
import * as Proxy from "@skein/auth/Proxy"
import * as TokenVerifier from "@skein/auth/TokenVerifier"
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"

export const resource = "https://tea.example/mcp"
const tenant = "9122040d-6c67-4c5b-b112-36a304b66dad"

// #region github
export const github = Effect.gen(function*() {
  const { upstream } = Providers.github({ scopes: ["read:user"] })
  const clientSecret = yield* Config.Redacted("GITHUB_CLIENT_SECRET")
  const keys = [yield* Config.Redacted("PROXY_KEY")]
  return yield* Proxy.make({
    resource,
    scopes: ["tea"],
    keys,
    upstream: { ...upstream, clientId: "Iv1.tea", clientSecret }
  })
})
// #endregion

// #region google
export const google = Effect.gen(function*() {
  const { upstream } = Providers.google()
  const clientSecret = yield* Config.Redacted("GOOGLE_CLIENT_SECRET")
  const keys = [yield* Config.Redacted("PROXY_KEY")]
  return yield* Proxy.make({
    resource,
    scopes: ["tea"],
    keys,
    upstream: { ...upstream, clientId: "tea", clientSecret }
  })
})
// #endregion

// #region entra
const entra = Providers.entra({ tenant, clientId: "0c0c2b0d-3c0e-4f31-9a53-0b1b7a6f2d11" })

export const entraProtection = Protect.make({
  resource,
  verify: TokenVerifier.jwt(entra.jwt),
  scopes: [entra.scope("tea.read")],
  ...entra.protect
})
// #endregion

// #region entraClient
export const entraClient = OAuth.make({
  ...entra.oauth,
  grant: Grant.authorizationCode({
    clientName: "Tea",
    ...entra.grant,
    client: { clientId: "3f1c0f56-6f0c-4a53-8f0e-5a1f0f1f9c11", issuer: entra.issuer }
  })
})
// #endregion

// #region okta
const okta = Providers.okta({ domain: "acme.okta.com", authorizationServer: "aus1tea" })

export const oktaProtection = Protect.make({ resource, verify: TokenVerifier.jwt(okta.jwt), ...okta.protect })
// #endregion

// #region auth0
const auth0 = Providers.auth0({ domain: "acme.eu.auth0.com" })

export const auth0Protection = Protect.make({ resource, verify: TokenVerifier.jwt(auth0.jwt) })
// #endregion

// #region cognito
const cognito = Providers.cognito({
  region: "eu-central-1",
  userPoolId: "eu-central-1_AbCdEf123",
  clients: ["1example23456789"]
})

export const cognitoProtection = Protect.make({
  resource,
  verify: TokenVerifier.jwt(cognito.jwt),
  scopes: ["tea/read"]
})
// #endregion

// #region keycloak
const keycloak = Providers.keycloak({ url: "https://login.example", realm: "tea" })

export const keycloakProtection = Protect.make({ resource, verify: TokenVerifier.jwt(keycloak.jwt) })
// #endregion

// #region workos
const workos = Providers.workos({ domain: "acme.authkit.app" })

export const workosProtection = Protect.make({ resource, verify: TokenVerifier.jwt(workos.jwt) })
// #endregion
