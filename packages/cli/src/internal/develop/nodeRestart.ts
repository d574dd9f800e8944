/**
 * Runs a program, and again when a file changes. Nothing connects to it: it listens on a port of its own, or on nothing.
 */
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import type * as Scope from "effect/Scope"
import { type ChildProcess, spawn } from "node:child_process"
import { type Changes, settled } from "./nodeSupervise.ts"

/** A program, and how it is restarted. */
export interface RestartOptions {
  readonly command: string
  readonly args: ReadonlyArray<string>
  readonly env: Readonly<Record<string, string | undefined>>
  /** How long no further file may change before the restart, in milliseconds. */
  readonly debounce: number
  /** How long the program may take to end after SIGTERM, in milliseconds, before it gets SIGKILL. */
  readonly killTimeout: number
  readonly log: (line: string) => void
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

/** Starts the program in a process group of its own, which ends with the scope. Returns how the program ends, unless
 * the scope ends it. */
const start = (
  { args, command, env, killTimeout, log }: RestartOptions
): Effect.Effect<Deferred.Deferred<string>, never, Scope.Scope> => {
  const ended = Deferred.makeUnsafe<string>()
  const end = (how: string): void => void Deferred.doneUnsafe(ended, Effect.succeed(how))
  const spawned = Effect.sync(() => {
    const child = spawn(command, args, {
      env: { ...process.env, ...env },
      stdio: ["ignore", "inherit", "inherit"],
      detached: !isWindows
    })
    child.once("error", (error) => end(`${command} cannot be started: ${error.message}`))
    child.once("exit", (code, signal) => end(`The program has ended (${signal ?? `exit code ${code}`})`))
    return child
  })
  const stopped = (child: ChildProcess) =>
    Effect.gen(function*() {
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
export const restart = (changes: Changes, options: RestartOptions): Effect.Effect<never> =>
  Effect.gen(function*() {
    const { debounce, log } = options
    while (true) {
      // The new program reads the files as they are now.
      yield* Queue.clear(changes)
      const file = yield* Effect.scoped(Effect.gen(function*() {
        const ended = yield* start(options)
        const waiting = Effect.flatMap(Deferred.await(ended), (how) => {
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
