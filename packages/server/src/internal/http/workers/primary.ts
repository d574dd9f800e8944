/**
 * The primary process of several workers: it starts and replaces them, has the records of their sessions, and passes on
 * their messages. It handles no request. The operating system gives it each connection, and `node:cluster` gives that to
 * the next worker.
 */
import { OpenFailed, TransportError } from "@skein/runtime/TransportError"
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import type { Worker as Process } from "node:cluster"
import cluster from "node:cluster"
import { randomBytes } from "node:crypto"
import type { Message } from "../../../Fleet.ts"
import { workerVariable } from "../../base/environment.ts"
import { type FromPrimary, type FromWorker, type Operation, send, unwrap } from "./messages.ts"
import { SessionRecords } from "./sessionRecords.ts"

// How many workers may exit unasked within the time: then the primary process ends.
const maxExits = 5
const exitWindow = 60_000

// The delay before a worker is replaced, in milliseconds: doubled with each further exit within `exitWindow`.
const minBackoff = 100

// How long a change waits for the workers that have not confirmed it, in milliseconds.
const confirmTimeout = 1_000

// How often expired records are removed, in milliseconds.
const expireInterval = 10_000

/** The exit of a worker. */
interface Exit {
  readonly code: number
  readonly signal: string | undefined
}

/** A worker that has exited unasked. */
interface Exited {
  readonly id: number
  readonly exit: Exit
}

interface Worker {
  readonly process: Process
  readonly listening: Deferred.Deferred<string, Exit>
  readonly exited: Deferred.Deferred<Exit>
  /** Whether it has been told to stop. */
  isStopping: boolean
  isServing: boolean
}

/** A message whose receipt workers confirm. */
interface Confirmation {
  readonly waiting: Set<number>
  readonly done: () => void
}

const nameOf = ({ code, signal }: Exit): string => signal ?? `exit code ${code}`

export { countOf } from "./count.ts"

class Primary {
  readonly records = new SessionRecords()
  readonly workers = new Map<number, Worker>()
  /** The workers that have exited unasked. */
  readonly exits: Queue.Queue<Exited>
  readonly #stateKey = randomBytes(32).toString("base64")
  readonly #confirmations = new Map<number, Confirmation>()
  readonly #clock: Clock.Clock
  #last = 0

  constructor(exits: Primary["exits"], clock: Clock.Clock) {
    this.exits = exits
    this.#clock = clock
  }

  get #now(): number {
    return this.#clock.currentTimeMillisUnsafe()
  }

  get #serving(): ReadonlyArray<number> {
    return Array.from(this.workers).flatMap(([id, { isServing, isStopping }]) => isServing && !isStopping ? [id] : [])
  }

  #tell(id: number, message: FromPrimary): void {
    const worker = this.workers.get(id)
    if (worker !== undefined) send(toChannel(worker.process), message)
  }

  #tellAll(message: FromPrimary, except?: number): void {
    for (const id of this.workers.keys()) if (id !== except) this.#tell(id, message)
  }

  #announceWorkers(): void {
    this.#tellAll({ _tag: "Workers", workers: this.#serving })
  }

  /** Starts a worker. It handles requests from the moment that it listens. */
  start(): Worker {
    const process = cluster.fork({ [workerVariable]: "yes" })
    const { id } = process
    const worker: Worker = {
      process,
      listening: Deferred.makeUnsafe(),
      exited: Deferred.makeUnsafe(),
      isStopping: false,
      isServing: false
    }
    this.workers.set(id, worker)
    process.on("message", (content) => {
      const message = unwrap<FromWorker>(content)
      if (message !== undefined) this.#receive(id, worker, message)
    })
    // Without a listener an error of the channel would end this process. The exit follows.
    process.on("error", () => {})
    process.on("exit", (code: number | null, signal: string | null) => {
      const exit: Exit = { code: code ?? 1, signal: signal ?? undefined }
      const wasServing = worker.isServing && !worker.isStopping
      this.workers.delete(id)
      for (const [number, { waiting }] of this.#confirmations) if (waiting.has(id)) this.#confirmed(number, id)
      this.#announceWorkers()
      Deferred.doneUnsafe(worker.listening, Effect.fail(exit))
      Deferred.doneUnsafe(worker.exited, Effect.succeed(exit))
      if (wasServing) Queue.offerUnsafe(this.exits, { id, exit })
    })
    return worker
  }

  /** Stops a worker, and waits for its exit. It handles no new request, and finishes those in progress. */
  stop(worker: Worker): Effect.Effect<Exit> {
    return Effect.suspend(() => {
      worker.isStopping = true
      this.#announceWorkers()
      send<FromPrimary>(toChannel(worker.process), { _tag: "Stop" })
      return Deferred.await(worker.exited)
    })
  }

  #receive(id: number, worker: Worker, message: FromWorker): void {
    switch (message._tag) {
      case "Hello":
        return this.#tell(id, { _tag: "Welcome", stateKey: this.#stateKey, workers: this.#serving })
      case "Listening":
        worker.isServing = true
        this.#announceWorkers()
        return void Deferred.doneUnsafe(worker.listening, Effect.succeed(message.url))
      case "Operation":
        return this.#operate(
          message.operation,
          (result) => this.#tell(id, { _tag: "Result", number: message.number, result })
        )
      case "Touch":
        for (const session of message.ids) this.records.touch(session, this.#now)
        return
      case "Send":
        if (message.to === undefined) this.#tellAll({ _tag: "Message", message: message.message }, id)
        else this.#tell(message.to, { _tag: "Message", message: message.message })
        return
      case "Publish":
        return this.#tellAll({ _tag: "Published", change: message.change })
      case "Received":
        return this.#confirmed(message.number, id)
    }
  }

  #operate(operation: Operation, done: (result: unknown) => void): void {
    switch (operation._tag) {
      case "Create": {
        const { bounds, client, record } = operation
        const all = { ...bounds, maxSessions: bounds.maxSessions * Math.max(1, this.#serving.length) }
        const { ended, isCreated } = this.records.create(record, all, client, this.#now)
        if (ended !== undefined) this.#tellAll({ _tag: "Message", message: { _tag: "Ended", id: ended } })
        return done(isCreated)
      }
      case "Find":
        return done(this.records.find(operation.id, operation.principalId, this.#now))
      case "Change":
        this.records.change(operation.id, operation.change)
        return this.#inform({ _tag: "Changed", id: operation.id, change: operation.change }, done)
      case "End":
        this.records.end(operation.id)
        return this.#inform({ _tag: "Ended", id: operation.id }, done)
    }
  }

  /** Sends a message to all workers. `done` is called when each has received it, has gone, or takes too long. */
  #inform(message: Message, done: (result: unknown) => void): void {
    const waiting = new Set(this.workers.keys())
    if (waiting.size === 0) return done(true)
    const number = ++this.#last
    const timer = setTimeout(() => finish(), confirmTimeout)
    const finish = (): void => {
      clearTimeout(timer)
      if (this.#confirmations.delete(number)) done(true)
    }
    this.#confirmations.set(number, { waiting, done: finish })
    for (const id of waiting) this.#tell(id, { _tag: "Message", message, number })
  }

  #confirmed(number: number, id: number): void {
    const confirmation = this.#confirmations.get(number)
    confirmation?.waiting.delete(id)
    if (confirmation?.waiting.size === 0) confirmation.done()
  }

  readonly expire: Effect.Effect<never> = Effect.forever(
    Effect.andThen(Effect.sleep(expireInterval), Effect.sync(() => this.records.expire(this.#now)))
  )
}

const toChannel = (process: Process) => ({
  connected: process.isConnected(),
  send: (message: object, done: () => void) => process.send(message, done)
})

const failed = (message: string): TransportError => new TransportError({ reason: new OpenFailed({ message }) })

/** How the workers run. */
export interface Options {
  readonly count: number
  /** How long a worker may take to stop, in milliseconds. Then it is killed. */
  readonly stopTimeout: Duration.Input
}

/**
 * Runs the workers until it is interrupted, and then waits for their exit.
 *
 * The first worker starts alone, so that a mistake is reported once. A worker that exits is replaced, up to 5 times within
 * a minute. SIGHUP replaces all of them, one after the other: each one stops when its successor listens.
 */
export const run = ({ count, stopTimeout }: Options): Effect.Effect<never, TransportError> =>
  Effect.scoped(Effect.gen(function*() {
    if (!cluster.isPrimary) {
      return yield* failed("the option workers cannot be used in a worker of another cluster, such as that of pm2")
    }
    const primary = new Primary(yield* Queue.unbounded<Exited>(), yield* Clock.Clock)
    const stop = (worker: Worker) =>
      Effect.timeoutOrElse(primary.stop(worker), {
        duration: stopTimeout,
        orElse: () =>
          Effect.suspend(() => {
            worker.process.process.kill("SIGKILL")
            return Deferred.await(worker.exited)
          })
      })
    yield* Effect.addFinalizer(() =>
      Effect.forEach(Array.from(primary.workers.values()), stop, { concurrency: "unbounded", discard: true })
    )
    const start = Effect.suspend(() => Deferred.await(primary.start().listening))
    const url = yield* Effect.mapError(
      start,
      (exit) => failed(`no worker could be started: the first one ended before it listened (${nameOf(exit)})`)
    )
    yield* Effect.forEach(Array.from({ length: count - 1 }), () => start, { concurrency: "unbounded" }).pipe(
      Effect.mapError((exit) => failed(`a worker ended before it listened (${nameOf(exit)})`))
    )
    yield* Effect.logInfo(`Listening on ${url} (workers: ${count})`)
    yield* Effect.forkScoped(primary.expire)
    yield* Effect.forkScoped(replaceOnHangup(primary, start, stop))
    const exits: Array<number> = []
    const now = yield* Clock.Clock
    while (true) {
      const { exit, id } = yield* Queue.take(primary.exits)
      exits.push(now.currentTimeMillisUnsafe())
      while (exits[0]! < now.currentTimeMillisUnsafe() - exitWindow) exits.shift()
      if (exits.length >= maxExits) {
        return yield* failed(`${maxExits} workers have exited within a minute, the last one with ${nameOf(exit)}`)
      }
      yield* Effect.logWarning(`worker ${id} has exited (${nameOf(exit)}): another one is started`)
      const restart = Effect.delay(start, minBackoff * 2 ** (exits.length - 1))
      yield* Effect.forkScoped(Effect.matchEffect(restart, {
        onFailure: (exit) => Effect.sync(() => Queue.offerUnsafe(primary.exits, { id, exit })),
        // While no worker runs, the port is free, and a port of 0 is another one then.
        onSuccess: (another) => another === url ? Effect.void : Effect.logInfo(`Listening on ${another}`)
      }))
    }
  }))

/** Replaces each worker when the process receives SIGHUP. */
const replaceOnHangup = (
  primary: Primary,
  start: Effect.Effect<string, Exit>,
  stop: (worker: Worker) => Effect.Effect<Exit>
): Effect.Effect<never> =>
  Effect.scoped(Effect.gen(function*() {
    const signals = yield* Queue.sliding<void>(1)
    const onHangup = () => void Queue.offerUnsafe(signals, undefined)
    yield* Effect.acquireRelease(
      Effect.sync(() => void process.on("SIGHUP", onHangup)),
      () => Effect.sync(() => void process.off("SIGHUP", onHangup))
    )
    while (true) {
      yield* Queue.take(signals)
      const workers = Array.from(primary.workers.values()).filter(({ isStopping }) => !isStopping)
      yield* Effect.logInfo(`Replacing the workers (${workers.length})`)
      const replaced = Effect.forEach(workers, (worker) => Effect.andThen(start, stop(worker)), { discard: true })
      yield* Effect.matchEffect(replaced, {
        onFailure: (exit) =>
          Effect.logError(`the new worker ended before it listened (${nameOf(exit)}): the old ones stay`),
        onSuccess: () => Effect.logInfo("Replaced the workers")
      })
    }
  }))
