/**
 * Clients that submit orders and wait for their ends, across all failures of the server.
 */
import * as Client from "@skein/client/Client"
import type * as ClientError from "@skein/client/ClientError"
import * as Elicitation from "@skein/client/Elicitation"
import * as NodeHttp from "@skein/client/NodeHttp"
import type { Handle } from "@skein/client/RemoteTask"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import { cancelled, kindOf } from "./orders.ts"
import { bounded } from "../../../client/test/support/fixedBounds.ts"

/** The responses that the clients received. */
export interface Reported {
  /** The tasks whose id they received. */
  readonly acknowledged: Set<string>
  /** The tasks that they have seen cancelled. */
  readonly cancelled: Set<string>
  /** Questions that were asked before a restart of the server and answered after it. */
  survived: number
}

export interface Options {
  readonly url: string
  readonly random: () => number
  /** The number of the server's current process. */
  readonly life: () => number
}

const again = Schedule.spaced("150 millis")

/**
 * A part of a check that can be described while it runs. `describeStage` returns the step at which it is.
 */
export interface Staged {
  describeStage: () => string
}

/** The request may have been lost with the server, or not. */
const passes = ({ reason }: ClientError.ClientError): boolean =>
  reason._tag !== "TaskCancelled" && reason._tag !== "ToolFailed" && reason._tag !== "TaskNotFound" &&
  reason._tag !== "InvalidResponse" &&
  reason._tag !== "InputRefused"

const retrying = <A>(effect: Effect.Effect<A, ClientError.ClientError>): Effect.Effect<A, ClientError.ClientError> =>
  Effect.retry(effect, { schedule: again, while: passes })

const Census = Schema.Struct({ live: Schema.Array(Schema.Struct({ id: Schema.String, status: Schema.String })) })

export interface Clients {
  readonly reported: Reported
  /** Describes the orders that have not ended, and what each of them waits for. */
  readonly describeUnfinished: () => string
  /** Submits an order, and waits for its end: its result, or its cancellation. */
  readonly order: (order: number) => Effect.Effect<void, ClientError.ClientError>
  /** Tasks that have not ended, including those whose id no client received. */
  readonly live: Effect.Effect<ReadonlyArray<{ readonly id: string; readonly status: string }>, ClientError.ClientError>
  /** Answers the questions of a task until it ends. Used after all orders have ended. */
  readonly adopt: (id: string) => Effect.Effect<void, ClientError.ClientError>
}

export const make = (options: Options): Effect.Effect<Clients, ClientError.ClientError, Scope.Scope> =>
  Effect.gen(function*() {
    const { life, random, url } = options
    const reported: Reported = { acknowledged: new Set(), cancelled: new Set(), survived: 0 }
    const unfinished = new Map<number, string>()
    const asked = new Map<string, number>()
    /** Whether the only remaining tasks are those whose id no client received. No client can cancel them. */
    let adopted = false

    /** Delays the answer, so that the server may be another process by then; or until the task was cancelled. */
    const Answering = Elicitation.layer({
      form: ({ message }) =>
        Effect.gen(function*() {
          if (!asked.has(message)) asked.set(message, life())
          const order = Number(/\d+/.exec(message)?.[0])
          yield* Effect.sleep(kindOf(order) === "asks" || adopted ? random() * 1500 : "5 minutes")
          if (life() > asked.get(message)!) reported.survived++
          return Elicitation.accept({ right: true })
        })
    })
    const client = yield* bounded(
      { maxSubscriptions: 8 },
      Client.make(NodeHttp.transport({ url }), {
        revisions: ["2026-07-28"],
        tasks: { maxFailures: 1_000 }
      })
    ).pipe(Effect.provide(Answering))

    const ended = (handle: Handle): Effect.Effect<void, ClientError.ClientError> =>
      retrying(Effect.flatMap(client.resumeTask(handle), ({ result }) =>
        // The task has failed, and stays failed: `check` reports it.
        Effect.catchReason(Effect.asVoid(result), "ClientError", "ProtocolError", () => Effect.void))).pipe(
          Effect.catchReason(
            "ClientError",
            "TaskCancelled",
            () => Effect.sync(() => void reported.cancelled.add(handle.taskId))
          )
        )

    /** Pays a task, perhaps several times. */
    const pay = (task: string): Effect.Effect<void> =>
      client.callTool("pay", { task, receipt: `${Math.floor(random() * 1e9)}` }).pipe(
        Effect.filterOrFail(({ isError }) => isError !== true),
        Effect.retry(again),
        Effect.orDie,
        Effect.asVoid
      )

    return {
      reported,
      describeUnfinished: () =>
        [...unfinished].map(([order, waitsFor]) => `order ${order} (${kindOf(order)}) waits for ${waitsFor}`).join(
          "\n"
        ),
      order: (order) =>
        Effect.gen(function*() {
          unfinished.set(order, "the response to its submission")
          // A server that loses the store while it creates the task answers with a result that says that the call failed.
          const started = yield* Effect.repeat(retrying(client.startTask("order", { order })), {
            schedule: again,
            until: ({ _tag }) => _tag === "RemoteTask"
          })
          if (started._tag !== "RemoteTask") return yield* Effect.die(new Error("An order is no task"))
          reported.acknowledged.add(started.id)
          if (cancelled(kindOf(order))) {
            yield* Effect.sleep(random() * 1000)
            unfinished.set(order, `the response to its cancellation (${started.id})`)
            yield* retrying(started.cancel)
          }
          if (kindOf(order) === "is paid") {
            yield* Effect.sleep(random() * 1000)
            unfinished.set(order, `its payment (${started.id})`)
            yield* pay(started.id)
          }
          unfinished.set(order, `its end (${started.id})`)
          yield* ended(started.handle)
          unfinished.delete(order)
        }),
      live: retrying(Effect.map(client.callTool("census", {}, { output: Census }), ({ live }) => live)),
      adopt: (taskId) =>
        Effect.suspend(() => {
          adopted = true
          // It is a payment for those that wait for one.
          return Effect.andThen(Effect.timeoutOption(pay(taskId), "5 seconds"), ended({ taskId }))
        })
    }
  })
