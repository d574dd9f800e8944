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
import type { AsyncHandlers, Services } from "./options.ts"

/** Runs effects until it is closed. Its scope is that of the client or the pool. */
export class PromiseRunner {
  readonly #owner: "client" | "pool"
  readonly #services: Services | undefined
  #signal: AbortSignal | undefined = undefined
  readonly scope: Scope.Closeable = Scope.makeUnsafe()
  readonly #fibers = new Set<Fiber.Fiber<unknown, unknown>>()
  /** The fibers of aborted calls, which still cancel their requests. */
  readonly #aborted = new Set<Fiber.Fiber<unknown, unknown>>()
  /** Set before anything ends, and before `#closing`: a part of `close` runs synchronously. */
  isClosing = false
  #closing: Promise<void> | undefined = undefined

  constructor(owner: "client" | "pool", services?: Services) {
    this.#owner = owner
    this.#services = services
  }

  /** Closes the runner when the signal aborts. */
  closeOn(signal: AbortSignal): void {
    this.#signal = signal
    signal.addEventListener("abort", this.#abort, { once: true })
  }

  readonly #abort = (): void => void this.close()

  /**
   * Runs an effect. An aborted signal interrupts it, and the promise rejects at once with the reason of the signal. The stack of
   * a failure has the functions that await the promise.
   */
  async run<A, E>(effect: Effect.Effect<A, E>, signal?: AbortSignal): Promise<A> {
    try {
      return await this.#start(effect, signal)
    } catch (error) {
      if (isMadeInFiber(error)) setCallers(error, new Error())
      throw error
    }
  }

  #start<A, E>(effect: Effect.Effect<A, E>, signal: AbortSignal | undefined): Promise<A> {
    if (signal?.aborted === true) return Promise.reject(signal.reason)
    if (this.isClosing) return Promise.reject(this.#closed())
    return new Promise((resolve, reject) => {
      const services = this.#services?.()
      const fiber = services === undefined ? Effect.runFork(effect) : Effect.runForkWith(services)(effect)
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
    return { [Symbol.asyncIterator]: () => iteratorOf(this, stream, signal) }
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

const madeInFibers = new Set(["ClientError", "PoolError", "RequestError", "TransportError", "McpError"])

/** Other errors may come from the program, with its frames. The classes are named, so that a client loads no `PoolError`. */
const isMadeInFiber = (error: unknown): error is Error => error instanceof Error && madeInFibers.has(error.name)

/**
 * Puts the functions that await a failed call into the stack of its error. The error was made in a fiber, whose frames are not
 * those of the program. They would fill a screen if nothing catches the error.
 */
const setCallers = (error: Error, { stack = "" }: Error): void => {
  // The second line is the frame of `run`. Browsers without V8 have another form.
  const [, run = "", ...lines] = stack.split("\n")
  const callers = lines.filter((line) => line.startsWith("    at ") && !line.includes("node:internal/"))
  // The other functions of this folder call `run`. In a bundle, all functions are in one folder.
  const folder = /^ +at .*?([^\s(]+[\\/])[^\\/]+$/.exec(run)?.[1]
  const foreign = folder === undefined ? [] : callers.filter((line) => !line.includes(folder))
  // Without an `await` the stack has no callers.
  if (callers.length > 0) setFrames(error, foreign.length > 0 ? foreign : callers)
}

const setFrames = (error: Error & { readonly reason?: unknown }, frames: ReadonlyArray<string>): void => {
  error.stack = [`${error.name}: ${error.message}`, ...frames].join("\n")
  const { cause, reason } = error
  if (reason instanceof Error) setFrames(reason, [])
  if (isMadeInFiber(cause)) setFrames(cause, [])
}

/**
 * Opens a client or a pool in the scope of a new runner, with the services that `handlers` answer with. If that fails or the
 * signal aborts, nothing is left open. Later the signal closes the runner.
 */
export const openWith = async <A, E>(
  owner: "client" | "pool",
  handlers: AsyncHandlers,
  signal: AbortSignal | undefined,
  opening: Effect.Effect<A, E, Scope.Scope>
): Promise<{ readonly opened: A; readonly runner: PromiseRunner }> => {
  signal?.throwIfAborted()
  const { elicit, elicitUrl, roots, sample, services } = handlers
  const runner = new PromiseRunner(owner, services)
  const hasHandlers = [elicit, elicitUrl, roots, sample].some((handler) => handler !== undefined)
  const answered = Effect.gen(function*() {
    if (!hasHandlers) return yield* opening
    const { build } = yield* Effect.promise(() => import("./handlers.ts"))
    return yield* Effect.provide(opening, yield* build(handlers))
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

/** One run of a stream. Calls of `next` that overlap get their elements in the order of the calls. */
const iteratorOf = <A, E>(
  runner: PromiseRunner,
  stream: Stream.Stream<A, E>,
  signal: AbortSignal | undefined
): AsyncIterator<A, undefined> => {
  const controller = new AbortController()
  /** The scope of the run, since the first call of `next`. */
  let scope: Scope.Closeable | undefined
  let ending: Promise<void> | undefined
  const close = async (): Promise<void> => {
    signal?.removeEventListener("abort", abort)
    controller.abort()
    if (scope !== undefined) await Effect.runPromise(Scope.close(scope, Exit.void))
  }
  const end = (): Promise<void> => ending ??= close()
  const abort = (): void => void end()
  // Whether an aborted signal rejects the next call: none after `return`.
  let rejects = true
  const opening = Effect.suspend(() => {
    // Iterators that are not read to the end are closed with the client.
    scope = Scope.forkUnsafe(runner.scope)
    signal?.addEventListener("abort", abort, { once: true })
    return Scope.provide(Stream.toPull(stream), scope)
  })
  const isOver = (): boolean => ending !== undefined || signal?.aborted === true

  const read = async function*(): AsyncGenerator<A, undefined> {
    try {
      const pull = isOver() ? undefined : await runner.run(opening, controller.signal)
      const next = pull === undefined ? Effect.undefined : Pull.catchDone(pull, () => Effect.undefined)
      while (!isOver()) {
        const chunk = await runner.run(next, controller.signal)
        if (chunk === undefined) break
        for (const element of chunk) {
          if (isOver()) break
          yield element
        }
      }
    } catch (error) {
      // Not an error: the reader has ended the iteration, or the host has closed the client.
      if (ending === undefined && !runner.isClosing) throw error
    } finally {
      await end()
    }
    if (signal?.aborted === true && rejects && !runner.isClosing) throw signal.reason
    return undefined
  }
  const elements = read()
  return {
    next: () => elements.next(),
    return: async () => {
      rejects = false
      await end()
      return await elements.return(undefined)
    }
  }
}
