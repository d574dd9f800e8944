/** A process that shares a sign-in with others: it makes one request in each round, with the credentials of an `OAuth`. */
import * as FileTokenStore from "@skein/auth/FileTokenStore"
import * as Grant from "@skein/auth/Grant"
import * as OAuth from "@skein/auth/OAuth"
import * as Outbound from "@skein/auth/Outbound"
import * as SqlTokenStore from "@skein/auth/SqlTokenStore"
import * as PgClient from "@skein/sql/PgClient"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { person, request } from "../../oauth/scriptedServers.ts"
import { processHeader } from "./tokenServer.ts"

const [kind, place, leaseTimeout, url] = process.argv.slice(2) as [string, string, "6 seconds", string]

const Store = kind === "file"
  ? FileTokenStore.layer({ folder: place, lockTimeout: "2 minutes" })
  : SqlTokenStore.layer({ leaseTimeout, lockTimeout: "2 minutes" }).pipe(
    Layer.provide(PgClient.layer({ url: place, maxConnections: 3 }))
  )

const program = Effect.gen(function*() {
  const oauth = yield* OAuth.make({
    grant: Grant.authorizationCode({ clientName: "Tea House" }),
    // Tokens expire in each round, so those that were granted a moment ago are renewed as well.
    signInInterval: "1 millis",
    outbound: Outbound.make({
      fetch: (url, init) =>
        fetch(url, { ...init, headers: { ...init.headers, [processHeader]: `${process.pid}` } } as RequestInit)
    })
  })
  process.on("message", () => {
    Effect.runPromise(request(oauth, new URL(url))).then(
      (status) => process.send!(status === 200 ? { done: true } : { error: `status ${status}` }),
      (error) => process.send!({ error: String(error) })
    )
  })
  process.send!({ ready: true })
  return yield* Effect.never
})

process.on("disconnect", () => process.exit())
await Effect.runPromise(Effect.provide(program, [person().layer, Store]) as Effect.Effect<never>)
