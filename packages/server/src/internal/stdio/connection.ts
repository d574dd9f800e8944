/**
 * The server's end of stdio: one connection for the whole life of the process (revision 2026-07-28, basic/transports/stdio).
 */
import type { Connection } from "@skein/runtime/Connection"
import { OpenFailed, TransportError } from "@skein/runtime/TransportError"
import * as NodeStreams from "@skein/runtime/NodeStreams"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Readable, Writable } from "node:stream"
import * as stdout from "./stdout.ts"

/** What the connection reads and writes, and its bounds. */
export interface StdioOptions extends NodeStreams.Bounds {
  /** Where messages come from; `process.stdin` by default. */
  readonly input?: Readable | undefined
  /** Where messages go; `process.stdout` by default, which nothing else can write to until the scope closes. */
  readonly output?: Writable | undefined
}

/**
 * Opens the connection. It ends as `Ended` when the input ends (and still sends what it is given until it is closed) or when
 * the output is closed by the other side; while the output is backed up, the input is not read. It fails with the reason
 * `Open` when another connection has `process.stdout`.
 */
export const connect = (options: StdioOptions = {}): Effect.Effect<Connection, TransportError, Scope.Scope> =>
  Effect.suspend(() => {
    const input = options.input ?? process.stdin
    const output = options.output ?? process.stdout
    if (output !== process.stdout) return over(input, output, options)
    return Effect.flatMap(stdout.take, (write) =>
      write === undefined
        ? Effect.fail(
          new TransportError({ reason: new OpenFailed({ message: "stdout is in use by another connection" }) })
        )
        : over(input, output, { ...options, write }))
  })

// A paused stdin reads ahead, and would keep a process that has nothing else to do.
const over = (input: Readable, output: Writable, options: NodeStreams.Options) =>
  input !== process.stdin ? NodeStreams.make(input, output, options) : Effect.andThen(
    Effect.acquireRelease(
      Effect.sync(() => void process.stdin.ref?.()),
      () => Effect.sync(() => void process.stdin.unref?.())
    ),
    NodeStreams.make(input, output, options)
  )
