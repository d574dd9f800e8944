/**
 * Signs in at servers that require it. All grants take the one path of `OAuth`; the client chooses the grant for which
 * it has credentials. A host has them in its configuration, and the official conformance suite puts them into
 * `MCP_CONFORMANCE_CONTEXT`.
 *
 * Without any, a person signs in with the browser of this computer.
 */
import * as Grant from "@skein/auth/Grant"
import * as Loopback from "@skein/auth/Loopback"
import * as OAuth from "@skein/auth/OAuth"
import type { OAuthError } from "@skein/auth/OAuthError"
import type { SignIn } from "@skein/auth/SignIn"
import * as TokenStore from "@skein/auth/TokenStore"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"

const text = Schema.optionalKey(Schema.String)

const Context = Schema.fromJsonString(Schema.Struct({
  client_id: text,
  client_secret: text,
  issuer: text,
  private_key_pem: text,
  signing_algorithm: text,
  idp_issuer: text,
  idp_client_id: text,
  idp_id_token: text,
  valid_jwt: text
}))

/** The credentials in the environment. */
type Given = typeof Context.Type

const clientName = "everything-client"
/** The suite knows this URL. Its servers do not fetch the document. */
const clientMetadataUrl = "https://conformance-test.local/client-metadata.json"

/** The grant for which there are credentials. */
export const grantOf = (given: Given): Grant.Grant<SignIn> => {
  const { client_id: clientId = "", idp_id_token, issuer, private_key_pem, valid_jwt } = given
  const secret = given.client_secret === undefined ? {} : { clientSecret: Redacted.make(given.client_secret) }
  if (valid_jwt !== undefined) {
    return Grant.jwtBearer({ clientId, assertion: () => Effect.succeed(Redacted.make(valid_jwt)) })
  }
  if (idp_id_token !== undefined) {
    const identityProvider = {
      issuer: given.idp_issuer ?? "",
      clientId: given.idp_client_id ?? "",
      idToken: Redacted.make(idp_id_token)
    }
    return Grant.identityAssertion({ clientId, ...secret, issuer: "discovered", identityProvider })
  }
  if (private_key_pem !== undefined) {
    const privateKey = { pem: Redacted.make(private_key_pem), algorithm: given.signing_algorithm ?? "ES256" }
    return Grant.clientCredentials({ clientId, privateKey, issuer: "discovered" })
  }
  if (clientId !== "" && issuer === undefined) {
    return Grant.clientCredentials({ clientId, ...secret, issuer: "discovered" })
  }
  return Grant.authorizationCode({
    clientName,
    clientMetadataUrl,
    client: issuer === undefined ? undefined : { clientId, ...secret, issuer }
  })
}

const given: Effect.Effect<Given, Schema.SchemaError> = Effect.suspend(() => {
  const context = process.env["MCP_CONFORMANCE_CONTEXT"]
  return context === undefined ? Effect.succeed({}) : Schema.decodeUnknownEffect(Context)(context)
})

/** The suite has no person: this one agrees to everything, and its browser follows redirects. */
const agree = (url: URL): Effect.Effect<unknown, unknown> =>
  Effect.tryPromise(() => fetch(url).then((answer) => answer.text()))

const isSuite = process.env["MCP_CONFORMANCE_SCENARIO"] !== undefined

const services = Layer.merge(
  TokenStore.layerMemory,
  Loopback.layer(isSuite ? { name: clientName, open: agree, signInTimeout: "10 seconds" } : { name: clientName })
)

/** The credentials of the client. */
export const credentials: Effect.Effect<OAuth.OAuth, OAuthError | Schema.SchemaError> = Effect.flatMap(
  given,
  (given) => OAuth.make({ grant: grantOf(given) })
).pipe(Effect.provide(services))
