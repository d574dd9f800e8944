/**
 * Runs the effects and streams of one `AsyncClient` or `AsyncClientPool` as promises and async iterables, and ends all of
 * them with it.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Pull from "effect/Pull"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { ClientError, Closed } from "../../ClientError.ts"
import type { AsyncHandlers } from "./options.ts"

/** Runs effects until it is closed. Its scope is that of the client or the pool. */
export class PromiseRunner {
  readonly #owner: "client" | "pool"
  #signal: AbortSignal | undefined = undefined
  readonly scope: Scope.Closeable = Scope.makeUnsafe()
  readonly #fibers = new Set<Fiber.Fiber<unknown, unknown>>()
  /** The fibers of aborted calls, which still cancel their requests. */
  readonly #aborted = new Set<Fiber.Fiber<unknown, unknown>>()
  /** Set before anything ends, and before `#closing`: a part of `close` runs synchronously. */
  isClosing = false
  #closing: Promise<void> | undefined = undefined

  constructor(owner: "client" | "pool") {
    this.#owner = owner
  }

  /** Closes the runner when the signal aborts. */
  closeOn(signal: AbortSignal): void {
    this.#signal = signal
    signal.addEventListener("abort", this.#abort, { once: true })
  }

  readonly #abort = (): void => void this.close()

  /** Runs an effect. An aborted signal interrupts it, and the promise rejects at once with the reason of the signal. */
  run<A, E>(effect: Effect.Effect<A, E>, signal?: AbortSignal): Promise<A> {
    if (signal?.aborted === true) return Promise.reject(signal.reason)
    if (this.isClosing) return Promise.reject(this.#closed())
    return new Promise((resolve, reject) => {
      const fiber = Effect.runFork(effect)
      const abort = () => {
        reject(signal!.reason)
        this.#aborted.add(fiber)
        fiber.interruptUnsafe()
      }
      this.#fibers.add(fiber)
      signal?.addEventListener("abort", abort, { once: true })
      fiber.addObserver((exit) => {
        this.#fibers.delete(fiber)
        this.#aborted.delete(fiber)
        signal?.removeEventListener("abort", abort)
        if (Exit.isSuccess(exit)) resolve(exit.value)
        else reject(this.isClosing && Cause.hasInterruptsOnly(exit.cause) ? this.#closed() : Cause.squash(exit.cause))
      })
      // The effect has run as far as it could, and may have aborted the signal.
      if (signal?.aborted === true && this.#fibers.has(fiber)) abort()
    })
  }

  /** A run of the stream for each iterator of the result. The end of the runner ends the iterators without an error. */
  iterate<A, E>(stream: Stream.Stream<A, E>, signal?: AbortSignal): AsyncIterable<A> {
    return { [Symbol.asyncIterator]: () => new StreamIterator(this, stream, signal) }
  }

  /** Resolves when everything has ended: aborted calls have cancelled their requests, and the scope is closed. */
  close(): Promise<void> {
    this.isClosing = true
    this.#signal?.removeEventListener("abort", this.#abort)
    return this.#closing ??= Effect.runPromise(Effect.gen({ self: this }, function*() {
      yield* Fiber.awaitAll([...this.#aborted])
      yield* Scope.close(this.scope, Exit.void)
      // Handlers of input requests, for example, do not end with the connection.
      yield* Fiber.interruptAll(this.#fibers)
    }))
  }

  #closed(): ClientError {
    return new ClientError({ reason: new Closed({ message: `The ${this.#owner} was closed` }) })
  }
}

/**
 * Opens a client or a pool in the scope of a new runner, with the services that `handlers` answer with. If that fails or the
 * signal aborts, nothing is left open. Later the signal closes the runner.
 */
export const openWith = async <A, E>(
  owner: "client" | "pool",
  { elicit, elicitUrl, roots, sample, sampling }: AsyncHandlers,
  signal: AbortSignal | undefined,
  opening: Effect.Effect<A, E, Scope.Scope>
): Promise<{ readonly opened: A; readonly runner: PromiseRunner }> => {
  signal?.throwIfAborted()
  const runner = new PromiseRunner(owner)
  const hasHandlers = [elicit, elicitUrl, roots, sample].some((handler) => handler !== undefined)
  const answered = Effect.gen(function*() {
    if (!hasHandlers) return yield* opening
    const { build } = yield* Effect.promise(() => import("./handlers.ts"))
    return yield* Effect.provide(opening, yield* build({ elicit, elicitUrl, roots, sample, sampling }))
  })
  try {
    const opened = await runner.run(Scope.provide(answered, runner.scope), signal)
    // The signal may have aborted since the effect has ended.
    signal?.throwIfAborted()
    if (signal !== undefined) runner.closeOn(signal)
    return { opened, runner }
  } catch (error) {
    await runner.close()
    throw error
  }
}

/** The next elements of a stream, or `undefined` at its end. */
type Pulling<A, E> = Effect.Effect<Iterator<A> | undefined, E>

/** One run of a stream. Calls of `next` that overlap get their elements in the order of the calls. */
class StreamIterator<A, E> implements AsyncIterator<A, undefined> {
  readonly #runner: PromiseRunner
  readonly #signal: AbortSignal | undefined
  readonly #controller = new AbortController()
  /** The scope of the run, since the first call of `next`. */
  #scope: Scope.Closeable | undefined = undefined
  #pull: Pulling<A, E>
  #chunk: Iterator<A> | undefined = undefined
  #last: Promise<unknown> = Promise.resolve()
  #ending: Promise<void> | undefined = undefined
  /** Whether an aborted signal rejects the next call: at most one rejects, and none after `return`. */
  #rejects = true

  constructor(runner: PromiseRunner, stream: Stream.Stream<A, E>, signal: AbortSignal | undefined) {
    this.#runner = runner
    this.#signal = signal
    this.#pull = Effect.suspend(() => {
      // Iterators that are not read to the end are closed with the client.
      this.#scope = Scope.forkUnsafe(runner.scope)
      signal?.addEventListener("abort", this.#abort, { once: true })
      return Effect.flatMap(Scope.provide(Stream.toPull(stream), this.#scope), (pull) => {
        const chunk = Effect.map(pull, (elements): Iterator<A> | undefined => elements[Symbol.iterator]())
        this.#pull = Pull.catchDone(chunk, () => Effect.succeed(undefined)) as Pulling<A, E>
        return this.#pull
      })
    })
  }

  next(): Promise<IteratorResult<A, undefined>> {
    const next = this.#last.then(() => this.#read())
    this.#last = next.catch(() => {})
    return next
  }

  async return(): Promise<IteratorResult<A, undefined>> {
    this.#rejects = false
    await this.#end()
    return { done: true, value: undefined }
  }

  async #read(): Promise<IteratorResult<A, undefined>> {
    const signal = this.#signal
    try {
      while (this.#ending === undefined && signal?.aborted !== true) {
        const element = this.#chunk?.next()
        if (element?.done === false) return element
        this.#chunk = await this.#runner.run(this.#pull, this.#controller.signal)
        if (this.#chunk === undefined) await this.#end()
      }
    } catch (error) {
      // Not an error: the reader has ended the iteration, or the host has closed the client.
      const isExpected = this.#ending !== undefined || this.#runner.isClosing
      await this.#end()
      if (!isExpected) throw error
    }
    await this.#end()
    if (signal?.aborted === true && this.#rejects && !this.#runner.isClosing) {
      this.#rejects = false
      throw signal.reason
    }
    return { done: true, value: undefined }
  }

  readonly #abort = (): void => void this.#end()

  #end(): Promise<void> {
    return this.#ending ??= this.#close()
  }

  async #close(): Promise<void> {
    this.#signal?.removeEventListener("abort", this.#abort)
    this.#controller.abort()
    if (this.#scope !== undefined) await Effect.runPromise(Scope.close(this.#scope, Exit.void))
  }
}
