/** The modules of `@skein/auth`, and the exports of `skein/auth` in their place. */

const proxy = "the authorization proxy is for operators of a server with Effect: use @skein/auth"
const service = "a layer of Effect is a value here, which an option takes"

const reason = "the reason of an error is a plain object with this _tag"

type Row = readonly [effect: string, skein: string | { readonly missing: string }]

export const rows: ReadonlyArray<Row> = [
  ["@skein/auth/BrowserTokenStore", "browserTokenStore"],
  ["@skein/auth/DevServer", "DevServer"],
  ["@skein/auth/EncryptedTokenStore", "encryptedTokenStore"],
  ["@skein/auth/FileTokenStore", "fileTokenStore"],
  ["@skein/auth/Grant", "Grant"],
  ["@skein/auth/KeyValueTokenStore", "keyValueTokenStore"],
  ["@skein/auth/Loopback.layer", "loopback"],
  ["@skein/auth/Loopback.make", { missing: service }],
  ["@skein/auth/Loopback.hasBrowser", "hasBrowser"],
  ["@skein/auth/Loopback.openBrowser", "openBrowser"],
  ["@skein/auth/NodeOutbound", { missing: "an option of OAuth.make: outbound: { refusePrivateAddresses: true }" }],
  ["@skein/auth/OAuth", "OAuth"],
  ["@skein/auth/OAuthError.OAuthError", "OAuthError"],
  ...[
    "AuthorizationDenied",
    "CredentialUnavailable",
    "DiscoveryFailed",
    "InsecureUrl",
    "InsufficientScope",
    "InvalidAuthorizationResponse",
    "InvalidOptions",
    "IssuerMismatch",
    "PkceUnsupported",
    "RegistrationFailed",
    "ResourceMismatch",
    "SignInFailed",
    "SignInRequired",
    "StoreFailed",
    "TokenRefused",
    "TokenRequestFailed"
  ].map((name): Row => [`@skein/auth/OAuthError.${name}`, { missing: reason }]),
  ["@skein/auth/Outbound", { missing: "an option of OAuth.make: outbound" }],
  ["@skein/auth/PasteSignIn.layer", "pasteSignIn"],
  ["@skein/auth/PasteSignIn.make", { missing: service }],
  ["@skein/auth/PasteSignIn.readLine", { missing: "node:readline/promises asks in async functions" }],
  ["@skein/auth/Protect.make", "protect"],
  ["@skein/auth/Protect.idOf", "principalId"],
  ["@skein/auth/Providers", "Providers"],
  ["@skein/auth/Proxy", { missing: proxy }],
  ["@skein/auth/ProxyStore", { missing: proxy }],
  ["@skein/auth/ReplayStore.ReplayStore", "replayStore"],
  ["@skein/auth/ReplayStore.layerMemory", "memoryReplayStore"],
  ["@skein/auth/ReplayStore.makeMemory", { missing: service }],
  ["@skein/auth/ReplayStore.ReplayStoreError", { missing: "any error of replayStore counts as one" }],
  ["@skein/auth/RequestVerifier", "RequestVerifier"],
  ["@skein/auth/Scopes", "Scopes"],
  ["@skein/auth/Secret", { missing: "secrets are texts or async functions" }],
  ["@skein/auth/SignIn.SignIn", "customSignIn"],
  ["@skein/auth/SignIn.SignInError", "SignInError"],
  ["@skein/auth/SignIn.RedirectRequired", { missing: "the reason SignInRequired of OAuthError has the url" }],
  ["@skein/auth/SqlReplayStore", "sqliteReplayStore and postgresReplayStore"],
  ["@skein/auth/SqlTokenStore", "sqliteTokenStore and postgresTokenStore"],
  ["@skein/auth/TestUser", "TestUser"],
  ["@skein/auth/TokenStore.layerMemory", "memoryTokenStore"],
  ["@skein/auth/TokenStore.makeMemory", { missing: service }],
  ["@skein/auth/TokenStore.TokenStore", { missing: "keyValueTokenStore is a store of your own functions" }],
  ["@skein/auth/TokenStoreError.TokenStoreError", "TokenStoreError"],
  ...["InvalidEntry", "KeyError", "LockLost", "LockTimeout", "StoreUnavailable", "ValueTooLarge"].map((name): Row => [
    `@skein/auth/TokenStoreError.${name}`,
    { missing: reason }
  ]),
  ["@skein/auth/TokenVerifier", "TokenVerifier"],
  ["@skein/auth/UpstreamToken", { missing: proxy }],
  ["@skein/auth/WebSignIn.layer", "webSignIn"],
  ["@skein/auth/WebSignIn.make", { missing: service }]
]
