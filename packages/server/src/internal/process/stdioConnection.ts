/**
 * The stdio connection of a server: one for the lifetime of the process (revision 2026-07-28, basic/transports/stdio).
 */
import type { Connection } from "@skein/runtime/Connection"
import { OpenFailed, TransportError } from "@skein/runtime/TransportError"
import * as NodeStreams from "@skein/runtime/NodeStreams"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Readable, Writable } from "node:stream"
import * as stdout from "./stdout.ts"

/** The streams of the connection, and its bounds. */
export interface StdioOptions extends NodeStreams.Bounds {
  /** The stream that messages are read from; `process.stdin` by default. */
  readonly input?: Readable | undefined
  /**
   * The stream that messages are written to; `process.stdout` by default. Nothing else can write to it until the scope
   * closes.
   */
  readonly output?: Writable | undefined
}

/**
 * Opens the connection. It ends as `ClosedByPeer` when the input ends, and then still sends until it is closed, or when
 * the client closes the output: both stop the server. While the output is backed up, the input is not read. It fails with the reason
 * `OpenFailed` when another connection uses `process.stdout`.
 */
export const connect = (options: StdioOptions = {}): Effect.Effect<Connection, TransportError, Scope.Scope> =>
  Effect.suspend(() => {
    const input = options.input ?? process.stdin
    const output = options.output ?? process.stdout
    if (output !== process.stdout) return over(input, output, { ...options, stopsWithPeer: true })
    return Effect.flatMap(stdout.take, (write) =>
      write === undefined
        ? Effect.fail(
          new TransportError({ reason: new OpenFailed({ message: "stdout is in use by another connection" }) })
        )
        : over(input, output, { ...options, stopsWithPeer: true, write }))
  })

/** For a person who starts the program in a shell, and would take it for one that hangs. */
const hint = "This program speaks MCP on stdin, and waits for a client. To call it: skein call \"<its command>\"\n"

// A paused stdin reads ahead, and would keep the process alive.
const over = (input: Readable, output: Writable, options: NodeStreams.Options) =>
  input !== process.stdin ? NodeStreams.make(input, output, options) : Effect.andThen(
    Effect.acquireRelease(
      Effect.sync(() => {
        process.stdin.ref?.()
        if (process.stdin.isTTY) process.stderr.write(hint)
      }),
      () => Effect.sync(() => void process.stdin.unref?.())
    ),
    NodeStreams.make(input, output, options)
  )
