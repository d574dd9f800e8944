/**
 * Runs a server as a Node process: signals, cleanup and exit code.
 */
import { OpenFailed, TransportError } from "@skein/runtime/TransportError"
import * as Defaults from "@skein/runtime/Options"
import * as Cause from "effect/Cause"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { Logger } from "effect/Logger"
import * as Predicate from "effect/Predicate"
import * as References from "effect/References"
import type { Cluster } from "node:cluster"
import { DefinitionError } from "../../DefinitionError.ts"
import { defaultPrefix, fillIn, logVariables } from "../base/environment.ts"
import type { LogOptions } from "./logFormat.ts"
import * as stdout from "./stdout.ts"

/** The logs and the bounds of the process. */
export interface MainOptions extends LogOptions {
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

/** A signal that ends the process. */
export type Signal = keyof typeof signals

/** The report of the process before it exits, for the user who started it. */
interface Report {
  readonly message: string
  readonly cause?: Cause.Cause<unknown> | undefined
}

const reportOf = <E>(cause: Cause.Cause<E>): Report => {
  const [reason, ...more] = cause.reasons
  return reason !== undefined && more.length === 0 && Cause.isFailReason(reason) && isConfigurationError(reason.error)
    ? { message: reason.error.message }
    : { message: "the process failed", cause }
}

type Loggers = ReadonlySet<Logger<unknown, unknown>>

/** Adds the number of the worker to logs. */
type Annotate = <A, E>(effect: Effect.Effect<A, E>) => Effect.Effect<A, E>

/** Writes a report to stderr, through the loggers of a format for programs. `done` is called when it was written. */
const write = (
  { cause, message }: Report,
  loggers: Loggers | undefined,
  annotate: Annotate,
  done: () => void
): void => {
  if (loggers === undefined) {
    return void process.stderr.write(`${cause === undefined ? message : Cause.pretty(cause)}\n`, done)
  }
  const fatal = annotate(Effect.logFatal(message, cause ?? Cause.empty))
  Effect.runFork(Effect.provideService(fatal, References.CurrentLoggers, loggers))
  process.stderr.write("", done)
}

const warnUnknown = /* @__PURE__ */ Effect.flatMap(
  /* @__PURE__ */ Effect.promise(() => import("./unknownVariables.ts")),
  (module) => module.warnUnknown(Object.keys(process.env), defaultPrefix)
)

/**
 * Runs an effect as the main program of this process, and exits when it ends.
 *
 * - It succeeds: exit 0.
 * - SIGTERM or SIGINT interrupts it; when its finalizers are done, or after `shutdownTimeout`, the process exits with
 *   143 or 130. A second signal exits immediately.
 * - It fails or dies: the cause is written to stderr, exit 1. It is interrupted without a signal: exit 130.
 *
 * The logs, and the cause of a failure, are written to stderr. The last line after a signal is the duration of the cleanup.
 *
 * A worker has `onStop`: its primary process stops it, besides a signal. It writes no last line, and a second signal does
 * nothing there, since that of a terminal or of a service manager reaches both processes. Its logs have its number.
 */
export const runMain = <E>(
  effect: Effect.Effect<unknown, E>,
  options: MainOptions = {},
  onStop?: (stop: (signal: Signal) => void) => void
): void => {
  const worker = onStop && (process.getBuiltinModule("node:cluster") as unknown as Cluster).worker?.id
  const annotate: Annotate = worker === undefined ? (logged) => logged : Effect.annotateLogs({ worker })
  const given = Defaults.resolve({ shutdownTimeout: options.shutdownTimeout }, {}, { shutdownTimeout: 5_000 })
  const shutdownTimeout = Math.min(given.shutdownTimeout, maxDelay)
  // Keeps the event loop alive for a server that only waits for a signal.
  const keepAlive = setInterval(() => {}, maxDelay)
  const { environment = defaultPrefix, logFormat = "pretty", logLevel } = options
  let code: number | undefined
  let signalledAt = 0
  let { loggers } = options

  const exit = (status: number, report?: Report): void => {
    clearInterval(keepAlive)
    if (report === undefined) return process.exit(status)
    // A report to a pipe is written asynchronously; a client that does not read it must not delay the exit.
    setTimeout(() => process.exit(status), shutdownTimeout)
    write(report, loggers, annotate, () => process.exit(status))
  }

  const onSignal = (signal: Signal): void => {
    if (code !== undefined) return worker === undefined ? process.exit(signals[signal]) : undefined
    code = signals[signal]
    signalledAt = performance.now()
    setTimeout(
      () => {
        const message = `${signal}: the cleanup took longer than shutdownTimeout (${shutdownTimeout} ms)`
        exit(signals[signal], { message })
      },
      shutdownTimeout
    )
    fiber.interruptUnsafe()
  }
  process.on("SIGTERM", onSignal)
  process.on("SIGINT", onSignal)
  onStop?.(onSignal)

  // Variables with a prefix of the program may be its own. The primary process reports them for its workers.
  const isSet = worker === undefined && environment === defaultPrefix &&
    Object.keys(process.env).some((name) => name.startsWith(defaultPrefix))
  const checked = !isSet ? effect : Effect.andThen(warnUnknown, effect)
  const logged = Effect.ensuring(
    annotate(checked),
    Effect.suspend(() =>
      code === undefined || worker !== undefined
        ? Effect.void
        : Effect.logInfo(`Stopped after ${Math.round(performance.now() - signalledAt)} ms`)
    )
  )
  const leveled = logLevel === undefined ? logged : Effect.provideService(logged, References.MinimumLogLevel, logLevel)
  // The default format needs no module.
  const program = loggers !== undefined
    ? Effect.provideService(leveled, References.CurrentLoggers, loggers)
    : logFormat === "pretty"
    ? leveled
    : Effect.flatMap(Effect.promise(() => import("./logFormat.ts")), ({ loggersOf }) => {
      loggers = loggersOf(logFormat)
      return Effect.provideService(leveled, References.CurrentLoggers, loggers)
    })
  const fiber = Effect.runFork(Effect.provideService(program, References.LogToStderr, true))
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
export const runStdioMain = <E>(effect: Effect.Effect<unknown, E>, given: MainOptions = {}): void => {
  stdout.guard()
  const options = fillIn(given, logVariables, process.env, given.environment)
  if (typeof options === "string") runMain(invalid(options), given)
  else runMain(effect, options)
}

/** The program of a process that cannot start, because of its environment or of the value that it was to run. */
export const invalid = (message: string): Effect.Effect<never, TransportError> =>
  Effect.fail(new TransportError({ reason: new OpenFailed({ message }) }))
