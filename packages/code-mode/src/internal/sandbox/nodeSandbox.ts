/**
 * The sandbox for Node: each program has QuickJS in a worker thread of its own.
 *
 * A thread, because QuickJS checks its time limit only between steps of bytecode: a loop of large copies, or a search in a
 * huge string, continues for minutes, and would block every other request. The server ends a thread that does not report
 * in time. The thread has no environment and no loader hooks, and nothing that a program can reach leads to Node.
 */
import { isObject, type JsonObject } from "@skein/protocol/JsonRpc"
import * as Nesting from "@skein/protocol/Nesting"
import { clip } from "@skein/protocol/Text"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as FiberSet from "effect/FiberSet"
import * as Queue from "effect/Queue"
import type * as Scope from "effect/Scope"
import { promisify } from "node:util"
import { Worker } from "node:worker_threads"
import { brotliDecompress } from "node:zlib"
import {
  InvalidResult,
  LimitExceeded,
  NeverSettles,
  ProgramError,
  type Reason,
  Thrown,
  Unavailable
} from "../../ProgramError.ts"
import type { Bounds, Host, Program } from "./program.ts"
import { type Outcome, type Settled, type Start, started, type ToolCall, type Turn } from "./messages.ts"

// The time in which a thread reports that its computing time is over, before it is ended.
const graceMillis = 500
// QuickJS recurses in the stack of the thread, which needs several times the bytes that it counts.
const threadStackMb = 8
const threadHeapMb = 128
const maxErrorChars = 500

// The types of Node lack it.
declare const WebAssembly: { readonly compile: (bytes: Uint8Array) => Promise<object> }

interface Loaded {
  readonly script: URL
  readonly engine: object
}

let loading: Promise<Loaded> | undefined

/** The script of the threads, and the engine: decompressed and compiled once, by the first program. */
const load = (): Promise<Loaded> =>
  loading ??= (async () => {
    const { compressedEngine, compressedScript } = await import("./sandboxScript.ts")
    const [engine, script] = await Promise.all(
      [compressedEngine, compressedScript].map((text) => promisify(brotliDecompress)(Buffer.from(text, "base64")))
    )
    return {
      script: new URL(`data:text/javascript;base64,${script!.toString("base64")}`),
      engine: await WebAssembly.compile(new Uint8Array(engine!))
    }
  })()

const unavailable = (message: string, error?: unknown): ProgramError =>
  new ProgramError(
    new Unavailable({ message: error === undefined ? message : `${message}: ${clip(String(error), maxErrorChars)}` })
  )

/** Starts the thread of a program. It is ended when the scope closes, whatever it does then. */
const startThread = (
  program: Program,
  turns: Queue.Enqueue<Turn | typeof started, ProgramError>
): Effect.Effect<Worker, ProgramError, Scope.Scope> =>
  Effect.flatMap(
    Effect.tryPromise({ try: load, catch: (error) => unavailable("The sandbox cannot be loaded", error) }),
    ({ engine, script }) =>
      Effect.acquireRelease(
        Effect.try({
          try: () => {
            const thread = new Worker(script, {
              workerData: { program, engine } satisfies Start,
              env: {},
              execArgv: [],
              argv: [],
              // The stdout of a server on stdio has protocol messages only. The engine writes there if it aborts.
              stdout: true,
              stderr: true,
              resourceLimits: { stackSizeMb: threadStackMb, maxOldGenerationSizeMb: threadHeapMb }
            })
            const fail = (message: string, error?: Error): void => {
              Queue.failCauseUnsafe(turns, Cause.fail(unavailable(message, error)))
            }
            thread.on("message", (turn: Turn | typeof started) => Queue.offerUnsafe(turns, turn))
            thread.on("error", (error: Error) => fail("The thread of the program failed", error))
            thread.on("exit", () => fail("The thread of the program has ended"))
            return thread
          },
          catch: (error) => unavailable("The thread of the program cannot be started", error)
        }),
        (thread) => Effect.promise(() => thread.terminate())
      )
  )

const limitReason = (
  limit: LimitExceeded["limit"],
  { computingTimeoutMillis, maxMemoryBytes, maxResultBytes, maxStackBytes }: Bounds
): Reason => {
  const problems: { readonly [limit: string]: string } = {
    computingTimeout:
      `The program computed for more than ${computingTimeoutMillis} ms (computingTimeout). Do less in it`,
    maxMemoryBytes: `The program needs more than ${maxMemoryBytes} bytes of memory (maxMemoryBytes). Retain less data`,
    maxStackBytes: `The program needs more than ${maxStackBytes} bytes of stack. Recurse less deeply`,
    maxResultBytes: `The result exceeds ${maxResultBytes} bytes of JSON (maxResultBytes). Return a smaller part of it`
  }
  return new LimitExceeded({ message: problems[limit]!, limit })
}

const reasonOf = (outcome: Exclude<Outcome, { readonly type: "returned" }>, bounds: Bounds): Reason => {
  switch (outcome.type) {
    case "limit":
      return limitReason(outcome.limit, bounds)
    case "neverSettles":
      return new NeverSettles({
        message: "The program waits for a promise that nothing settles. There are no timers: await calls of tools only"
      })
    case "invalidResult":
      return new InvalidResult({ message: `The result of the program has no JSON: ${outcome.message}` })
    case "thrown": {
      const { column, line, message } = outcome
      const position = line === undefined ? undefined : { line, column: column ?? 1 }
      const place = position === undefined ? "" : ` (line ${position.line}, column ${position.column})`
      return new Thrown({ message: `${message}${place}`, position })
    }
  }
}

const stringify = Nesting.refusing<unknown, string | undefined>(
  (value) => JSON.stringify(value) ?? "null",
  () => undefined
)

/** Runs the call of a tool, and returns its end for the program. */
const settle = ({ args, id, name }: ToolCall, host: Host): Effect.Effect<Settled> =>
  Effect.suspend(() => {
    const given: unknown = JSON.parse(args)
    if (!isObject(given)) {
      return Effect.succeed({ id, succeeded: false, text: `the arguments of ${name} must be an object` })
    }
    return Effect.match(host.call(name, given as JsonObject), {
      onSuccess: (value) => {
        const text = stringify(value)
        return text === undefined
          ? { id, succeeded: false, text: `The result of ${name} ${Nesting.problem}` }
          : { id, succeeded: true, text }
      },
      onFailure: ({ message }) => ({ id, succeeded: false, text: message })
    })
  })

/** Runs a program in a thread: the `run` of the default `Sandbox`. */
export const run = (program: Program, host: Host): Effect.Effect<string | undefined, ProgramError> =>
  Effect.scoped(Effect.gen(function*() {
    const { bounds } = program
    const turns = yield* Queue.unbounded<Turn | typeof started, ProgramError>()
    const calls = yield* FiberSet.make()
    const clock = yield* Clock.Clock
    // A thread computes while it has not answered every message. Loading the engine is not computing.
    let unanswered = 1
    let computesSince: number | undefined
    let computedMillis = 0
    const thread = yield* startThread(program, turns)

    const send = (settled: Settled): void => {
      if (unanswered++ === 0) computesSince = clock.currentTimeMillisUnsafe()
      thread.postMessage(settled, [])
    }

    /** Fails once the thread has not reported for too long. */
    const watch = Effect.gen(function*() {
      for (;;) {
        yield* Effect.sleep(graceMillis)
        if (computesSince === undefined) continue
        const now = clock.currentTimeMillisUnsafe()
        if (computedMillis + now - computesSince > bounds.computingTimeoutMillis + graceMillis) {
          return yield* Effect.fail(new ProgramError(limitReason("computingTimeout", bounds)))
        }
      }
    })

    const follow = Effect.gen(function*() {
      for (;;) {
        const turn = yield* Queue.take(turns)
        if (turn === started) {
          computesSince = clock.currentTimeMillisUnsafe()
          continue
        }
        if (--unanswered === 0) computesSince = undefined
        computedMillis = turn.computedMillis
        for (const line of turn.log) host.log(line)
        if (turn.outcome !== undefined) {
          if (turn.outcome.type === "returned") return turn.outcome.json
          return yield* Effect.fail(new ProgramError(reasonOf(turn.outcome, bounds)))
        }
        for (const call of turn.calls) {
          const ended = Effect.map(settle(call, host), send)
          yield* FiberSet.run(calls, Effect.onError(ended, (cause) => Queue.failCause(turns, cause)))
        }
      }
    })
    return yield* Effect.raceFirst(follow, watch)
  }))
