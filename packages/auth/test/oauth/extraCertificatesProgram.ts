/** A process that calls a protected server over TLS with each HTTP client, and prints the outcome of each. */
import * as Client from "@skein/client/Client"
import * as Http from "@skein/client/Http"
import * as NodeHttp from "@skein/client/NodeHttp"
import * as Grant from "@skein/auth/Grant"
import * as NodeOutbound from "@skein/auth/NodeOutbound"
import * as OAuth from "@skein/auth/OAuth"
import * as Outbound from "@skein/auth/Outbound"
import * as TokenStore from "@skein/auth/TokenStore"
import * as TokenVerifier from "@skein/auth/TokenVerifier"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"

const url = new URL(process.argv[2]!)
const grant = Grant.clientCredentials({
  clientId: "job",
  clientSecret: Redacted.make("secret"),
  issuer: url.origin
})

const calls = [Outbound.make(), NodeOutbound.make({ refusePrivateAddresses: false })].flatMap((outbound) =>
  [Http.transport, NodeHttp.transport].map((transport) =>
    Effect.gen(function*() {
      const credentials = yield* OAuth.make({ grant, outbound })
      const client = yield* Client.make(transport({ url, credentials }))
      yield* client.ping()
    }).pipe(Effect.scoped, Effect.provide(TokenStore.layerMemory))
  )
)

// The requests of a server to its authorization server.
const verifier = TokenVerifier.introspection({
  issuer: url.origin,
  endpoint: `${url.origin}/introspect`,
  clientId: "job",
  clientSecret: Redacted.make("secret")
})
const introspection = Effect.suspend(() => {
  const verification = verifier.verify("token", { resource: url.href })
  return Effect.isEffect(verification) ? verification : Effect.succeed(verification)
})

for (const call of [...calls, introspection]) {
  const outcome = await Effect.runPromise(Effect.match(call, { onSuccess: () => "ok", onFailure: String }))
  process.stdout.write(`${outcome.split("\n", 1)[0]}\n`)
}
process.exit(0)
