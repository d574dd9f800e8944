/** A host's visit to a rude server, and what must be true of it whatever the server does. */
import * as Client from "@skein/client/Client"
import type { ClientError } from "@skein/client/ClientError"
import * as Elicitation from "@skein/client/Elicitation"
import type { Transport } from "@skein/runtime/Connection"
import type * as Script from "@skein/testing/Script"
import { expect } from "@effect/vitest"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Logger from "effect/Logger"

/** How long a call may take, in milliseconds: its deadline, on the real clock. */
const short = 400

/** After this, in milliseconds, whatever should have ended is taken to be stuck; for a call on top of its deadline. */
const stuck = 5_000

const options = (deadline: number): Client.Options => ({
  probeTimeout: 200,
  limits: { timeout: deadline, maxTimeout: deadline, drainTimeout: 50, interruptTimeout: 500 },
  reconnect: { initialDelay: 1, maxDelay: 20, maxAttempts: 3 },
  maxRetries: 2
})

/** What came of one call. */
export interface Outcome {
  readonly key: string
  readonly exit: Exit.Exit<string, ClientError>
}

const within = <A, E, R>(what: string, effect: Effect.Effect<A, E, R>, duration = stuck): Effect.Effect<A, E, R> =>
  Effect.timeoutOrElse(effect, { duration, orElse: () => Effect.die(new Error(`${what} is stuck`)) })

/** Lets sockets and fibers run until it holds, as far as that takes no longer than what is stuck. */
export const turnsUntil = (holds: () => boolean): Effect.Effect<void> =>
  within(
    `Until ${holds}`,
    Effect.repeat(Effect.promise<void>(() => new Promise((later) => setImmediate(later))), { until: holds })
  )

const textOf = (content: ReadonlyArray<unknown>): string => {
  const [first] = content as ReadonlyArray<{ readonly text?: string }>
  return first?.text ?? ""
}

/** The host answers at once, whatever is asked. */
const asking = Elicitation.layer({ form: () => Effect.succeed(Elicitation.accept({ word: "rude" })) })

let visit = 0

/** The tools that are called, some one after the other and some at the same time. */
const calls = [
  ["echo", {}],
  ["progress", { n: 3 }],
  ["slow", { ms: 5 }],
  ["echo", {}],
  ["add", { a: 1, b: 2 }],
  ["ask", {}],
  ["progress", { n: 20 }]
] as const

/** Opens a client, calls, and closes it. Every effect must have ended, with a value or with a `ClientError`. */
export const pay = (transport: Transport, deadline = short): Effect.Effect<ReadonlyArray<Outcome>> =>
  Effect.gen(function*() {
    const prefix = `é${visit++}`
    const outcomes: Array<Outcome> = []
    const visiting = Effect.scoped(Effect.gen(function*() {
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
          Effect.exit(within(`Call ${n}`, called, deadline + stuck)),
          (exit) => void outcomes.push({ key, exit })
        )
      }
      yield* one(0)
      yield* Effect.all([one(1), one(2), one(3)], { concurrency: "unbounded" })
      const listed = yield* Effect.exit(within("Listing", client.listToolsPage()))
      expectTyped(listed)
      yield* one(4)
      yield* Effect.all([one(5), one(6)], { concurrency: "unbounded" })
    })).pipe(Effect.provide(asking))
    const exit = yield* Effect.exit(within("The visit", visiting, 6 * (deadline + stuck)))
    expectTyped(exit)
    return outcomes
  }).pipe(Effect.provide(Logger.layer([])))

/** It ended with a value, or with a failure that is a `ClientError`. */
const expectTyped = (exit: Exit.Exit<unknown, ClientError>): void => {
  if (Exit.isSuccess(exit)) return
  expect(exit.cause.reasons.map((reason) => reason._tag), `${Cause.pretty(exit.cause)}`).toEqual(["Fail"])
  expect(exit.cause.reasons.find(Cause.isFailReason)?.error._tag).toBe("ClientError")
}

/**
 * Whether the script lies about what was done, so that a client is right to do it again: with these a server says that it has not
 * looked at the request, and so it does with 503 when it says when to come back.
 */
const lies = (script: Script.Script): boolean =>
  script.faults.some(({ fault }) =>
    fault._tag === "Status" && fault.done &&
    ([401, 403, 404, 405, 408, 429, 501].includes(fault.status) || (fault.status === 503 && "retryAfter" in fault))
  )

/** Whether the script answers calls in the name of others: where all answers come on one stream, nobody can tell. */
const mistaken = (script: Script.Script): boolean =>
  script.faults.some(({ fault }) => fault._tag === "Id" && fault.how === "another")

/** Each call has ended with its one answer or a typed error, and was carried out at most once. */
export const judge = (
  script: Script.Script,
  outcomes: ReadonlyArray<Outcome>,
  times: (key: string) => number,
  { oneStream }: { readonly oneStream: boolean }
): void => {
  for (const { exit, key } of outcomes) {
    expectTyped(exit)
    if (!lies(script)) expect(times(key), `how often ${key} was carried out`).toBeLessThanOrEqual(1)
    if (Exit.isFailure(exit) || (oneStream && mistaken(script))) continue
    expect(exit.value).toBe(key)
    expect(times(key)).toBeGreaterThan(0)
  }
}
