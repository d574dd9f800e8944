/** Skein's client over one of its HTTP transports. */
import * as Client from "@skein/client/Client"
import type { Transport } from "@skein/runtime/Connection"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import { type Connect, type Job, textOf, type Turns } from "./testClient.ts"

const runJob = (client: Client.Client, job: Job, turns: Turns) =>
  Effect.gen(function*() {
    for (let turn = turns.next(); turn !== undefined; turn = turns.next()) {
      if (job === "greet") turns.greeted(turn, textOf(yield* client.callTool(job, { name: `n${turn}` })))
      else if (job === "list" || job === "cached") {
        turns.listed((yield* client.listToolsPage({ cache: job === "list" ? "bypass" : "use" })).tools)
      } else turns.reported(turn, (yield* client.callTool(job, { id: turn })).structuredContent)
    }
  })

/** Connects with a transport. */
export const connectOver =
  (transport: (options: { readonly url: string }) => Transport): Connect => async ({ kept, url }) => {
    const scope = Scope.makeUnsafe()
    const client = await Effect.runPromise(
      Client.make(transport({ url }), { info: { name: "bench", version: "1.0.0" }, serverProfile: kept as never }).pipe(
        Scope.provide(scope)
      )
    )
    return {
      discover: () => Effect.runPromise(Effect.asVoid(client.listTools())),
      drive: (job, inFlight, turns) =>
        Effect.runPromise(
          Effect.all(Array.from({ length: inFlight }, () => runJob(client, job, turns)), {
            concurrency: "unbounded",
            discard: true
          })
        ),
      kept: client.serverProfile,
      close: () => Effect.runPromise(Scope.close(scope, Exit.void))
    }
  }
