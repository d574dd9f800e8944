/**
 * Runs a server as a Node process: signals, cleanup and exit code.
 */
import { TransportError } from "@skein/runtime/TransportError"
import * as Cause from "effect/Cause"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as References from "effect/References"
import { DefinitionError } from "../../DefinitionError.ts"
import * as stdout from "./stdout.ts"

/** The bounds of the process. */
export interface MainOptions {
  /**
   * How long the cleanup may take after SIGTERM or SIGINT before the process exits regardless; 5 seconds by default.
   */
  readonly shutdownTimeout?: Duration.Input | undefined
}

/**
 * Whether an error is a mistake of configuration, whose message describes how to correct it: its stack would show only
 * this library. The errors of the tasks package are recognized by their tag, because this package cannot import it.
 */
const isConfigurationError = (error: unknown): error is { readonly message: string } =>
  error instanceof DefinitionError || (error instanceof TransportError && error.reason._tag === "OpenFailed") ||
  (error instanceof Error && Predicate.isTagged(error, "TaskError"))

// The longest delay of a timer.
const maxDelay = 0x7fffffff

const signals = { SIGINT: 130, SIGTERM: 143 } as const

/** The report about a failure, for the user who started the process. */
const reportOf = <E>(cause: Cause.Cause<E>): string => {
  const [reason, ...more] = cause.reasons
  return reason !== undefined && more.length === 0 && Cause.isFailReason(reason) && isConfigurationError(reason.error)
    ? reason.error.message
    : Cause.pretty(cause)
}

/**
 * Runs an effect as the main program of this process, and exits when it ends.
 *
 * - It succeeds: exit 0.
 * - SIGTERM or SIGINT interrupts it; when its finalizers are done, or after `shutdownTimeout`, the process exits with
 *   143 or 130. A second signal exits immediately.
 * - It fails or dies: the cause is written to stderr, exit 1. It is interrupted without a signal: exit 130.
 *
 * Effect's default logger writes to stderr.
 */
export const runMain = <E>(effect: Effect.Effect<unknown, E>, options: MainOptions = {}): void => {
  const shutdownTimeout = Math.min(Duration.toMillis(options.shutdownTimeout ?? 5_000), maxDelay)
  // Keeps the event loop alive for a server that only waits for a signal.
  const keepAlive = setInterval(() => {}, maxDelay)
  let code: number | undefined

  const exit = (status: number, report?: string): void => {
    clearInterval(keepAlive)
    if (report === undefined) return process.exit(status)
    // A report to a pipe is written asynchronously; a client that does not read it must not delay the exit.
    setTimeout(() => process.exit(status), shutdownTimeout)
    process.stderr.write(`${report}\n`, () => process.exit(status))
  }

  const onSignal = (signal: keyof typeof signals): void => {
    if (code !== undefined) process.exit(signals[signal])
    code = signals[signal]
    setTimeout(
      () => exit(signals[signal], `${signal}: the cleanup took longer than shutdownTimeout (${shutdownTimeout} ms)`),
      shutdownTimeout
    )
    fiber.interruptUnsafe()
  }
  process.on("SIGTERM", onSignal)
  process.on("SIGINT", onSignal)

  const fiber = Effect.runFork(Effect.provideService(effect, References.LogToStderr, true))
  fiber.addObserver((result) => {
    if (result._tag === "Success") exit(code ?? 0)
    else if (Cause.hasInterruptsOnly(result.cause)) exit(code ?? signals.SIGINT)
    else exit(code ?? 1, reportOf(result.cause))
  })
}

/**
 * Runs an effect as the main program of a stdio server. From the call on, only protocol messages reach stdout. The
 * effect succeeds when its input has ended and its requests in flight are done.
 */
export const runStdioMain = <E>(effect: Effect.Effect<unknown, E>, options?: MainOptions): void => {
  stdout.guard()
  runMain(effect, options)
}
