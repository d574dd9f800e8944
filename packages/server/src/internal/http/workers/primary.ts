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
import type * as Scope from "effect/Scope"
import type { Worker as Process } from "node:cluster"
import cluster from "node:cluster"
import { randomBytes } from "node:crypto"
import { env as environment } from "node:process"
import type { Message } from "../../../Fleet.ts"
import type { Phase } from "@skein/runtime/Workers"
import { workerVariable } from "../../base/environment.ts"
import {
  type FromPrimary,
  type FromWorker,
  type Operation,
  primaryNumber,
  type Question,
  send,
  unwrap
} from "./messages.ts"
import { MetricTexts } from "./metricTexts.ts"
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

// The attributes of a process in OpenTelemetry, which exporters read: that of Effect, and the SDKs of OpenTelemetry.
const resourceVariable = "OTEL_RESOURCE_ATTRIBUTES"
const instanceKey = "service.instance.id"

/**
 * Adds the id of a worker to the attributes of its environment, `key=value` with commas between them. Without it a collector
 * takes the metrics of all workers for those of one process, whose counters jump. An id that they have is that of the server:
 * the number of the worker is appended.
 */
const withInstance = (attributes: string | undefined, server: string, worker: number): string => {
  const entries = (attributes ?? "").split(",").filter((entry) => entry.trim() !== "")
  const keyOf = (entry: string): string => entry.slice(0, entry.indexOf("=")).trim()
  const given = entries.findLast((entry) => keyOf(entry) === instanceKey)
  const id = given?.slice(given.indexOf("=") + 1).trim() || server
  return [...entries.filter((entry) => keyOf(entry) !== instanceKey), `${instanceKey}=${id}-${worker}`].join(",")
}

class Primary {
  readonly records = new SessionRecords()
  readonly workers = new Map<number, Worker>()
  /** The workers that have exited unasked. */
  readonly exits: Queue.Queue<Exited>
  readonly #stateKey = randomBytes(32).toString("base64")
  readonly #instance = randomBytes(9).toString("base64url")
  #phase: Phase = "starting"
  readonly #confirmations = new Map<number, Confirmation>()
  readonly #clock: Clock.Clock
  readonly #metrics = new MetricTexts((worker, topic, number) =>
    this.#tell(worker, { _tag: "Question", from: primaryNumber, number, topic, content: undefined })
  )
  #last = 0
  #started = 0

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
    this.#tellAll({ _tag: "Workers", workers: this.#serving, phase: this.#phase })
  }

  setPhase(phase: Phase): void {
    this.#phase = phase
    this.#announceWorkers()
  }

  /** Starts a worker. It handles requests from the moment that it listens. */
  start(): Worker {
    const resource = withInstance(environment[resourceVariable], this.#instance, ++this.#started)
    const process = cluster.fork({ [workerVariable]: "yes", [resourceVariable]: resource })
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
      this.#metrics.exited(id)
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
        return this.#tell(id, {
          _tag: "Welcome",
          stateKey: this.#stateKey,
          instance: this.#instance,
          workers: this.#serving,
          phase: this.#phase
        })
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
      case "Question": {
        const { to, ...question } = message
        if (to === undefined) this.#tellAll({ ...question, from: id }, id)
        else if (to === primaryNumber) this.#answer(id, question)
        else this.#tell(to, { ...question, from: id })
        return
      }
      case "Answer": {
        const { to, ...answer } = message
        if (to === primaryNumber) this.#metrics.answered(answer.number, id, answer.content)
        else this.#tell(to, { ...answer, from: id })
        return
      }
    }
  }

  /** A question about metrics: those of all workers, or with a content the last ones of this worker. */
  #answer(id: number, { content: last, number = 0, topic }: Question): void {
    const answer = (content: unknown) => this.#tell(id, { _tag: "Answer", from: primaryNumber, number, content })
    if (typeof last !== "string") return this.#metrics.scrape(topic, [...this.workers.keys()], answer)
    this.#metrics.set(topic, id, last)
    answer(true)
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
      case "HasGone":
        return done(!this.workers.has(operation.node))
      case "Flush":
        return done(true)
    }
  }

  /** Sends a message to all workers. `done` gets whether each has received it or has gone, before it takes too long. */
  #inform(message: Message, done: (result: unknown) => void): void {
    const waiting = new Set(this.workers.keys())
    if (waiting.size === 0) return done(true)
    const number = ++this.#last
    const timer = setTimeout(() => finish(), confirmTimeout)
    const finish = (): void => {
      clearTimeout(timer)
      if (this.#confirmations.delete(number)) done(waiting.size === 0)
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
    // From the first worker on: the default action of the signal is to end the process.
    const hangups = yield* takeHangups
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
    yield* Effect.addFinalizer(() => {
      primary.setPhase("stopping")
      return Effect.forEach(Array.from(primary.workers.values()), stop, { concurrency: "unbounded", discard: true })
    })
    const start = Effect.suspend(() => Deferred.await(primary.start().listening))
    const url = yield* Effect.mapError(
      start,
      (exit) => failed(`no worker could be started: the first one ended before it listened (${nameOf(exit)})`)
    )
    yield* Effect.forEach(Array.from({ length: count - 1 }), () => start, { concurrency: "unbounded" }).pipe(
      Effect.mapError((exit) => failed(`a worker ended before it listened (${nameOf(exit)})`))
    )
    primary.setPhase("serving")
    yield* Effect.logInfo(`Listening on ${url} (workers: ${count})`)
    yield* Effect.forkScoped(primary.expire)
    yield* Effect.forkScoped(replaceOnHangup(hangups, primary, start, stop))
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

/** The SIGHUPs that the process receives until the scope closes. Those that arrive while the last one waits are one. */
const takeHangups: Effect.Effect<Queue.Dequeue<void>, never, Scope.Scope> = Effect.gen(function*() {
  const hangups = yield* Queue.sliding<void>(1)
  const onHangup = () => void Queue.offerUnsafe(hangups, undefined)
  yield* Effect.acquireRelease(
    Effect.sync(() => void process.on("SIGHUP", onHangup)),
    () => Effect.sync(() => void process.off("SIGHUP", onHangup))
  )
  return hangups
})

/** Replaces each worker after a SIGHUP. */
const replaceOnHangup = (
  hangups: Queue.Dequeue<void>,
  primary: Primary,
  start: Effect.Effect<string, Exit>,
  stop: (worker: Worker) => Effect.Effect<Exit>
): Effect.Effect<never> =>
  Effect.gen(function*() {
    while (true) {
      yield* Queue.take(hangups)
      const workers = Array.from(primary.workers.values()).filter(({ isStopping }) => !isStopping)
      yield* Effect.logInfo(`Replacing the workers (${workers.length})`)
      const replaced = Effect.forEach(workers, (worker) => Effect.andThen(start, stop(worker)), { discard: true })
      yield* Effect.matchEffect(replaced, {
        onFailure: (exit) =>
          Effect.logError(`the new worker ended before it listened (${nameOf(exit)}): the old ones stay`),
        onSuccess: () => Effect.logInfo("Replaced the workers")
      })
    }
  })
