/** Runs a client against a faulty server and checks the outcome of each call, whatever the server does. */
import * as Client from "@skein/client/Client"
import type { ClientError } from "@skein/client/ClientError"
import * as Elicitation from "@skein/client/Elicitation"
import type { Transport } from "@skein/runtime/Connection"
import type * as Scenario from "@skein/testing/Scenario"
import { expect } from "@effect/vitest"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Logger from "effect/Logger"

/** The deadline of a call, in milliseconds on the real clock. */
const callDeadline = 400

/**
 * Milliseconds after which an effect that should have ended counts as stuck; for a call in addition to its deadline.
 */
const stuckAfter = 5_000

const options = (deadline: number): Client.Options => ({
  probeTimeout: 200,
  limits: { timeout: deadline, maxTimeout: deadline, shutdownTimeout: 50, maxRetries: 2 },
  reconnect: { initialDelay: 1, maxDelay: 20, maxAttempts: 3 }
})

/** The exit of one call. */
export interface Outcome {
  readonly key: string
  readonly exit: Exit.Exit<string, ClientError>
}

const within = <A, E, R>(what: string, effect: Effect.Effect<A, E, R>, duration = stuckAfter): Effect.Effect<A, E, R> =>
  Effect.timeoutOrElse(effect, { duration, orElse: () => Effect.die(new Error(`${what} is stuck`)) })

/** Waits until `holds` returns true, at most `stuckAfter` milliseconds. */
export const turnsUntil = (holds: () => boolean): Effect.Effect<void> =>
  within(
    `Until ${holds}`,
    Effect.repeat(Effect.promise<void>(() => new Promise((later) => setImmediate(later))), { until: holds })
  )

const textOf = (content: ReadonlyArray<unknown>): string => {
  const [first] = content as ReadonlyArray<{ readonly text?: string }>
  return first?.text ?? ""
}

/** Answers every elicitation immediately. */
const elicitation = Elicitation.layer({ form: () => Effect.succeed(Elicitation.accept({ word: "yes" })) })

let runCount = 0

/** The tools that are called, partly in sequence and partly concurrently. */
const calls = [
  ["echo", {}],
  ["progress", { n: 3 }],
  ["slow", { ms: 5 }],
  ["echo", {}],
  ["add", { a: 1, b: 2 }],
  ["ask", {}],
  ["progress", { n: 20 }]
] as const

/** Opens a client, calls the tools, and closes it. Every effect must end with a value or with a `ClientError`. */
export const runClient = (transport: Transport, deadline = callDeadline): Effect.Effect<ReadonlyArray<Outcome>> =>
  Effect.gen(function*() {
    const prefix = `é${runCount++}`
    const outcomes: Array<Outcome> = []
    const running = Effect.scoped(Effect.gen(function*() {
      const client = yield* within("Opening", Client.make(transport, options(deadline)))
      const one = (n: number) => {
        const [tool, args] = calls[n]!
        const key = `${prefix}-${n}`
        const onProgress = tool === "progress" ? () => {} : undefined
        const called = Effect.map(client.callTool(tool, { ...args, key }, { onProgress }), (result) => {
          const text = textOf(result.content)
          return tool === "add" ? text.replace("3", key) : text
        })
        return Effect.map(
          Effect.exit(within(`Call ${n}`, called, deadline + stuckAfter)),
          (exit) => void outcomes.push({ key, exit })
        )
      }
      yield* one(0)
      yield* Effect.all([one(1), one(2), one(3)], { concurrency: "unbounded" })
      const listed = yield* Effect.exit(within("Listing", client.listToolsPage()))
      expectTyped(listed)
      yield* one(4)
      yield* Effect.all([one(5), one(6)], { concurrency: "unbounded" })
    })).pipe(Effect.provide(elicitation))
    const exit = yield* Effect.exit(within("The run", running, 6 * (deadline + stuckAfter)))
    expectTyped(exit)
    return outcomes
  }).pipe(Effect.provide(Logger.layer([])))

/** Checks that an exit is a value or a `ClientError`. */
const expectTyped = (exit: Exit.Exit<unknown, ClientError>): void => {
  if (Exit.isSuccess(exit)) return
  expect(exit.cause.reasons.map((reason) => reason._tag), `${Cause.pretty(exit.cause)}`).toEqual(["Fail"])
  expect(exit.cause.reasons.find(Cause.isFailReason)?.error._tag).toBe("ClientError")
}

/**
 * Whether the server carries out a call and then claims that it did not, so that the client may repeat it. These
 * statuses claim that the request was not handled; 503 claims it together with `Retry-After`.
 */
const deniesHandledCalls = (scenario: Scenario.Scenario): boolean =>
  scenario.faults.some(({ fault }) =>
    fault._tag === "Status" && fault.handled &&
    ([401, 403, 404, 405, 408, 429, 501].includes(fault.status) ||
      (fault.status === 503 && "retryAfterSeconds" in fault))
  )

/**
 * Whether the server responds with the ids of other calls. A client cannot detect that if all responses share one
 * stream.
 */
const swapsResponseIds = (scenario: Scenario.Scenario): boolean =>
  scenario.faults.some(({ fault }) => fault._tag === "ResponseId" && fault.how === "other")

/** Checks that each call ended with its response or a typed error and was carried out at most once. */
export const checkOutcomes = (
  scenario: Scenario.Scenario,
  outcomes: ReadonlyArray<Outcome>,
  callCount: (key: string) => number,
  { oneStream }: { readonly oneStream: boolean }
): void => {
  for (const { exit, key } of outcomes) {
    expectTyped(exit)
    if (!deniesHandledCalls(scenario)) expect(callCount(key), `how often ${key} was carried out`).toBeLessThanOrEqual(1)
    if (Exit.isFailure(exit) || (oneStream && swapsResponseIds(scenario))) continue
    expect(exit.value).toBe(key)
    expect(callCount(key)).toBeGreaterThan(0)
  }
}
