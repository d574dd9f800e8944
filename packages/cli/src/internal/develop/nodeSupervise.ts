/**
 * Runs the server of a relay as a child process, and restarts it when a file changes. The process is that of the stdio
 * transport of the client: its whole process group ends with it.
 */
import * as Stdio from "@skein/client/Stdio"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import { quoteBlock } from "../base/format.ts"
import type { Relay } from "./relay.ts"

/** A program, and how it is restarted. */
export interface ProgramOptions {
  readonly command: string
  readonly args: ReadonlyArray<string>
  readonly env: Readonly<Record<string, string | undefined>>
  /** How long no further file may change before the restart, in milliseconds. */
  readonly debounce: number
  readonly log: (line: string) => void
}

/** The command of a server, and how it is restarted. */
export interface SuperviseOptions extends ProgramOptions {
  /** How long the server may take to answer the handshake, in milliseconds. */
  readonly startTimeout: number
  /** How long the server may take to end after its stdin was closed, in milliseconds, before it gets SIGTERM. */
  readonly closeTimeout: number
  readonly stderr: (text: string) => void
}

/** The files that changed, one for each change. */
export type Changes = Queue.Dequeue<string>

// A file that changes without a pause does not delay the restart for longer than this many times `debounce`.
const maxDebounces = 20

/** Waits until no further file changes. */
export const settled = (changes: Changes, debounce: number): Effect.Effect<void> =>
  Effect.gen(function*() {
    while ((yield* Effect.timeoutOption(Queue.take(changes), debounce))._tag === "Some") yield* Queue.clear(changes)
  }).pipe(Effect.timeoutOption(maxDebounces * debounce), Effect.asVoid)

/** Runs the server of a relay, and the servers that follow it, until it is interrupted. */
export const supervise = Effect.fnUntraced(function*(
  relay: Relay,
  changes: Changes,
  { args, closeTimeout, command, debounce, env, log, startTimeout, stderr }: SuperviseOptions
): Effect.fn.Return<never> {
  while (true) {
    // The new server reads the files as they are now.
    yield* Queue.clear(changes)
    // The server runs until it ends, or a file changes.
    let isCurrent = true
    const change = yield* Effect.scoped(Effect.gen(function*() {
      const connected = yield* Effect.result(Stdio.connect({
        command,
        args,
        env,
        inheritEnv: true,
        stderr,
        shutdownTimeout: closeTimeout
      }))
      const ended = yield* Deferred.make<string>()
      if (connected._tag === "Failure") yield* Deferred.succeed(ended, connected.failure.message)
      else {
        const connection = connected.success
        connection.open({
          message: (message) => {
            if (isCurrent) relay.fromServer(message)
          },
          end: (end) =>
            Deferred.doneUnsafe(
              ended,
              Effect.succeed(end._tag === "Lost" ? end.cause.message : "The server has ended")
            )
        })
        relay.connected(connection)
      }
      const late = Effect.gen(function*() {
        while (true) {
          const handshake = relay.openHandshake
          yield* Effect.sleep(startTimeout)
          if (handshake !== undefined && handshake === relay.openHandshake) break
        }
        const limit = Duration.format(Duration.millis(startTimeout))
        return `The server did not answer the handshake within ${limit} (--start-timeout): it must serve stdio`
      })
      const failure = Effect.race(Deferred.await(ended), late)
      const outcome = yield* Effect.race(
        Effect.map(Queue.take(changes), (file) => ({ _tag: "Changed", file }) as const),
        Effect.map(failure, (reason) => ({ _tag: "Ended", reason }) as const)
      )
      isCurrent = false
      if (outcome._tag === "Changed") {
        // From now on requests wait for the next server.
        relay.starting(`${outcome.file} changed`)
        yield* settled(changes, debounce)
        return outcome.file
      }
      relay.failed(outcome.reason)
      log(`${quoteBlock(outcome.reason)}\nWaiting for a change`)
      return undefined
    }))
    const file = change ?? (yield* Queue.take(changes))
    if (change === undefined) {
      relay.starting(`${file} changed`)
      yield* settled(changes, debounce)
    }
    log(`Restarting: ${file} changed`)
  }
})
