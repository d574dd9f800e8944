/**
 * A worker: the fleet, the event bus and the other workers of a process whose primary process has the records of the sessions.
 */
import * as Listeners from "@skein/runtime/Listeners"
import * as RandomId from "@skein/runtime/RandomId"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import { type Change, EventBus } from "../../../EventBus.ts"
import { Fleet, FleetError, type Receiver, type SessionRecord } from "../../../Fleet.ts"
import cluster from "node:cluster"
import type { Key } from "../../../RequestState.ts"
import { Workers } from "@skein/runtime/Workers"
import { type FromPrimary, type FromWorker, type Operation, send, unwrap } from "./messages.ts"
import { Questions } from "./questions.ts"

// How long a worker that stops waits for the connections that the primary process gives it meanwhile, in milliseconds.
const flushTimeout = 1_000

// How often the primary process learns which sessions are in use, in milliseconds.
const touchInterval = 1_000

/** The connection of a worker to its primary process. */
export interface Worker {
  /** The key of `RequestState`, for a server without one. All workers have it. */
  readonly stateKey: Key
  readonly services: Layer.Layer<Fleet | EventBus | Workers>
  /** The worker listens. */
  readonly listening: (url: string) => void
  /**
   * The worker has received all that the primary process has sent. After it has stopped listening, it refuses the connections
   * among that, and the primary process gives them to another worker: if it exits before, their clients get no answer.
   */
  readonly flushed: Effect.Effect<void>
}

const make = (number: number, welcome: Extract<FromPrimary, { readonly _tag: "Welcome" }>): Worker => {
  const receivers = Listeners.make<Receiver>()
  const changes = Listeners.make<(change: Change) => void>()
  const pending = new Map<number, Deferred.Deferred<unknown>>()
  const touched = new Set<string>()
  let last = 0
  const tell = (message: FromWorker): void => send(process, message)
  const questions = new Questions(number, welcome, tell)

  const run = <A>(operation: Operation): Effect.Effect<A, FleetError> =>
    Effect.suspend(() => {
      if (process.connected !== true) return Effect.fail(new FleetError({ message: "the primary process has gone" }))
      const number = ++last
      const result = Deferred.makeUnsafe<unknown>()
      pending.set(number, result)
      tell({ _tag: "Operation", number, operation })
      return Effect.ensuring(Deferred.await(result), Effect.sync(() => pending.delete(number))) as Effect.Effect<A>
    })

  const flush = (): void => {
    tell({ _tag: "Touch", ids: [...touched] })
    touched.clear()
  }

  const fleet = Fleet.of({
    node: number,
    newId: () => `${number}-${RandomId.make(22)}`,
    // The primary process answers fast, and the length keeps long ids out.
    isKnown: (id) => id.length <= 40 && /^[1-9]\d*-[A-Za-z0-9]{22}$/.test(id),
    isServing: (node) => questions.serving().includes(node),
    hasGone: (node) =>
      questions.serving().includes(node) ? Effect.succeed(false) : run<boolean>({ _tag: "HasGone", node }),
    create: (record, bounds, client) => run({ _tag: "Create", record, bounds, client }),
    find: (id, principalId) => run<SessionRecord | undefined>({ _tag: "Find", id, principalId }),
    change: (id, change) => run({ _tag: "Change", id, change }),
    end: (id) => run({ _tag: "End", id }),
    touch: (id) => {
      if (touched.size === 0) setTimeout(flush, touchInterval).unref()
      touched.add(id)
    },
    broadcast: (message) => tell({ _tag: "Send", to: undefined, message }),
    send: (to, message) => tell({ _tag: "Send", to, message }),
    receive: receivers.add
  })

  const bus = EventBus.of({
    publish: (change) => Effect.sync(() => tell({ _tag: "Publish", change })),
    subscribe: changes.add
  })

  process.on("message", (content) => {
    const message = unwrap<FromPrimary>(content)
    switch (message?._tag) {
      case "Workers":
        return questions.setWorkers(message)
      case "Result":
        return void Deferred.doneUnsafe(
          pending.get(message.number) ?? Deferred.makeUnsafe(),
          Effect.succeed(message.result)
        )
      case "Message":
        for (const receiver of receivers.all) receiver.message(message.message)
        if (message.number !== undefined) tell({ _tag: "Received", number: message.number })
        return
      case "Published":
        for (const onChange of changes.all) onChange(message.change)
        return
      case "Question":
      case "Answer":
        return questions.receive(message)
    }
  })

  return {
    stateKey: Redacted.make(welcome.stateKey),
    services: Layer.succeedContext(
      Context.make(Fleet, fleet).pipe(Context.add(EventBus, bus), Context.add(Workers, questions))
    ),
    listening: (url) => tell({ _tag: "Listening", url }),
    flushed: Effect.ignore(Effect.timeoutOption(run({ _tag: "Flush" }), flushTimeout))
  }
}

/** Connects this worker to its primary process. */
export const connect: Effect.Effect<Worker> = Effect.callback((resume) => {
  const own = cluster.worker!
  const { id: number } = own
  // Node sends messages of its own on the channel. When the primary process is killed, such a message fails, and without a
  // listener this process would end with that error. The end of the channel ends it.
  own.on("error", () => {})
  const onMessage = (content: unknown): void => {
    const message = unwrap<FromPrimary>(content)
    if (message?._tag !== "Welcome") return
    process.off("message", onMessage)
    resume(Effect.succeed(make(number, message)))
  }
  process.on("message", onMessage)
  send<FromWorker>(process, { _tag: "Hello" })
})

/** Calls a function when the primary process stops this one. */
export const onStop = (stop: (signal: "SIGTERM") => void): void => {
  process.on("message", (content) => {
    const message = unwrap<FromPrimary>(content)
    if (message?._tag === "Stop") stop("SIGTERM")
  })
}
