/**
 * The life of a server's process, from its first line to its exit code.
 */
import { TransportError } from "@skein/runtime/TransportError"
import * as Cause from "effect/Cause"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as References from "effect/References"
import { DefinitionError } from "../../DefinitionError.ts"

/** The bounds of the process. */
export interface MainOptions {
  /** How long the cleanup may take after SIGTERM or SIGINT, before the process exits all the same; 5 seconds by default. */
  readonly shutdownTimeout?: Duration.Input | undefined
}

/**
 * What only its author or its owner can mend, and whose message says where: the stack is one of this library alone. Where tasks cannot
 * be kept is known by its tag, for the engine of tasks stands above the server.
 */
const isPlain = (error: unknown): error is { readonly message: string } =>
  error instanceof DefinitionError || (error instanceof TransportError && error.reason._tag === "OpenFailed") ||
  (error instanceof Error && Predicate.isTagged(error, "TaskError"))

// What a timer can wait for.
const longest = 0x7fffffff

const signals = { SIGINT: 130, SIGTERM: 143 } as const

/** What a cause is to whoever started the process. */
const told = <E>(cause: Cause.Cause<E>): string => {
  const [reason, ...more] = cause.reasons
  return reason !== undefined && more.length === 0 && Cause.isFailReason(reason) && isPlain(reason.error)
    ? reason.error.message
    : Cause.pretty(cause)
}

/**
 * Runs an effect as the whole life of this process, and exits when it is over.
 *
 * - It succeeds: exit 0.
 * - SIGTERM or SIGINT interrupts it; when its finalizers are done, or after the grace, the process exits with 143 or 130. A
 *   second signal exits at once.
 * - It fails or dies: the cause goes to stderr, exit 1. When it is interrupted without a signal: exit 130.
 *
 * Effect's default logger writes to stderr.
 */
export const runMain = <E>(effect: Effect.Effect<unknown, E>, options: MainOptions = {}): void => {
  const grace = Math.min(Duration.toMillis(options.shutdownTimeout ?? 5_000), longest)
  // A server that waits for nothing but a signal has nothing else that keeps the event loop alive.
  const alive = setInterval(() => {}, longest)
  let code: number | undefined

  const exit = (status: number, report?: string): void => {
    clearInterval(alive)
    if (report === undefined) return process.exit(status)
    // A pipe takes a report in the background; a host that does not read it does not keep the process.
    setTimeout(() => process.exit(status), grace)
    process.stderr.write(`${report}\n`, () => process.exit(status))
  }

  const onSignal = (signal: keyof typeof signals): void => {
    if (code !== undefined) process.exit(signals[signal])
    code = signals[signal]
    setTimeout(() => exit(signals[signal], `${signal}: the cleanup took longer than ${grace} ms`), grace)
    fiber.interruptUnsafe()
  }
  process.on("SIGTERM", onSignal)
  process.on("SIGINT", onSignal)

  const fiber = Effect.runFork(Effect.provideService(effect, References.LogToStderr, true))
  fiber.addObserver((result) => {
    if (result._tag === "Success") exit(code ?? 0)
    else if (Cause.hasInterruptsOnly(result.cause)) exit(code ?? signals.SIGINT)
    else exit(code ?? 1, told(result.cause))
  })
}
