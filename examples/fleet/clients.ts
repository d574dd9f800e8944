/**
 * Clients of the fleet, which call tools until they are stopped: half of them in sessions (2025-11-25), half without
 * (2026-07-28). Each books a table from time to time: the server asks how many people come, and the answer reaches
 * another node than the call.
 */
import * as Client from "@skein/client/Client"
import * as Elicitation from "@skein/client/Elicitation"
import * as Http from "@skein/client/NodeHttp"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"

/** Calls since the start. */
export interface Counts {
  calls: number
  failed: number
  /** The last messages of calls that failed. */
  readonly failures: Array<string>
}

const maxFailures = 5

const people = Elicitation.layer({ form: () => Effect.succeed({ action: "accept", content: { people: 2 } }) })

const tools = [
  ["greet", { name: "Ada" }],
  ["bill", { tea: "oolong", cups: 2 }],
  ["brew", { tea: "sencha" }],
  ["book", { name: "Ada" }]
] as const

const client = (url: string, index: number, counts: Counts) =>
  Effect.scoped(Effect.gen(function*() {
    const revision = index % 2 === 0 ? "2025-11-25" : "2026-07-28"
    const client = yield* Client.make(Http.transport({ url }), {
      info: { name: `client ${index}`, version: "1" },
      revisions: [revision]
    })
    for (let call = index;; call++) {
      const [name, input] = tools[call % tools.length]!
      yield* client.callTool(name, input).pipe(
        Effect.matchEffect({
          onSuccess: ({ isError }) =>
            Effect.sync(() => isError === true ? failed(`${name} returned an error`) : undefined),
          onFailure: ({ message }) => Effect.sync(() => failed(`${name} of client ${index}: ${message}`))
        })
      )
      counts.calls++
      yield* Effect.sleep(100 + 10 * (index % 10))
    }
    function failed(message: string): void {
      counts.failed++
      counts.failures.push(message)
      if (counts.failures.length > maxFailures) counts.failures.shift()
    }
  })).pipe(
    // A client that cannot connect tries again.
    Effect.catch(({ message }) =>
      Effect.andThen(
        Effect.sync(() => {
          counts.failed++
          counts.failures.push(`client ${index}: ${message}`)
        }),
        Effect.sleep("1 second")
      )
    ),
    Effect.forever,
    Effect.provide(people)
  )

/** Starts clients. `stop` ends them. */
export const startClients = (url: string, count: number) => {
  const counts: Counts = { calls: 0, failed: 0, failures: [] }
  const all = Array.from({ length: count }, (_, index) => client(url, index, counts))
  const fiber = Effect.runFork(Effect.all(all, { concurrency: "unbounded", discard: true }))
  return { counts, stop: () => Effect.runPromise(Fiber.interrupt(fiber)) }
}
