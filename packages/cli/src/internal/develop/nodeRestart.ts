/**
 * Runs a program, and again when a file changes. Nothing connects to it: it listens on a port of its own, or on nothing.
 */
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import type * as Scope from "effect/Scope"
import { type ChildProcess, spawn } from "node:child_process"
import { type Changes, type ProgramOptions, settled } from "./nodeSupervise.ts"

/** A program to which nothing connects, and how it is restarted. */
export interface RestartOptions extends ProgramOptions {
  /** How long the program may take to end after SIGTERM, in milliseconds, before it gets SIGKILL. */
  readonly killTimeout: number
}

const isWindows = process.platform === "win32"

/** Sends a signal to the process group of a child that was started with a group of its own; on Windows to the child. */
export const killGroup = (child: ChildProcess, signal: NodeJS.Signals): void => {
  try {
    process.kill(isWindows ? child.pid! : -child.pid!, signal)
  } catch {
    // It has ended.
  }
}

/** How a program ended: `problem` says why it could not be started. */
export interface Ended {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly problem?: string
}

/**
 * Starts a program in a process group of its own, which ends with the scope. Returns how the program ends, unless the
 * scope ends it.
 */
export const start = (
  { args, command, env, killTimeout, log, shell = false }: Omit<RestartOptions, "debounce"> & {
    readonly shell?: boolean
  }
): Effect.Effect<Deferred.Deferred<Ended>, never, Scope.Scope> => {
  const ended = Deferred.makeUnsafe<Ended>()
  const end = (how: Ended): void => void Deferred.doneUnsafe(ended, Effect.succeed(how))
  const spawned = Effect.sync(() => {
    const child = spawn(command, args, {
      env: { ...process.env, ...env },
      stdio: ["ignore", "inherit", "inherit"],
      detached: !isWindows,
      shell
    })
    child.once("error", ({ message }) => end({ code: null, signal: null, problem: message }))
    child.once("exit", (code, signal) => end({ code, signal }))
    return child
  })
  const stopped = Effect.fnUntraced(function*(child: ChildProcess) {
    if (child.pid === undefined) return
    const isRunning = child.exitCode === null && child.signalCode === null
    killGroup(child, "SIGTERM")
    if (!isRunning) return
    const done = yield* Effect.timeoutOption(Deferred.await(ended), killTimeout)
    if (done._tag === "Some") return
    log(`The program did not end within ${Duration.format(Duration.millis(killTimeout))}, and is killed`)
    killGroup(child, "SIGKILL")
    yield* Deferred.await(ended)
  })
  return Effect.as(Effect.acquireRelease(spawned, stopped), ended)
}

/** Runs the program, and the programs that follow it, until it is interrupted. */
export const restart = Effect.fnUntraced(function*(changes: Changes, options: RestartOptions): Effect.fn.Return<never> {
  const { debounce, log } = options
  while (true) {
    // The new program reads the files as they are now.
    yield* Queue.clear(changes)
    const file = yield* Effect.scoped(Effect.gen(function*() {
      const ended = yield* start(options)
      const waiting = Effect.flatMap(Deferred.await(ended), ({ code, problem, signal }) => {
        const how = problem === undefined
          ? `The program has ended (${signal ?? `exit code ${code}`})`
          : `${options.command} cannot be started: ${problem}`
        log(`${how}\nWaiting for a change`)
        return Effect.never
      })
      const file = yield* Effect.race(Queue.take(changes), waiting)
      yield* settled(changes, debounce)
      return file
    }))
    log(`Restarting: ${file} changed`)
  }
})
