/**
 * The sandbox that programs of models run in: a service, so that an application can supply another one.
 *
 * The default runs QuickJS, a JavaScript engine in WebAssembly, in a worker thread of its own for each program. Such a
 * program cannot reach the objects of the server, and the thread can be ended whatever it computes.
 */
import type { JsonObject } from "@skein/protocol/JsonRpc"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import { type CallError, ProgramError, Unavailable } from "./ProgramError.ts"

/** The bounds of one program that its sandbox enforces. `CodeMode.Options` has the defaults. */
export interface Bounds {
  /** The time that the program computes in total, in milliseconds. Time that it waits for tools does not count. */
  readonly maxComputingMillis: number
  /** The memory of the program's values, in bytes. */
  readonly maxMemoryBytes: number
  /** The stack of the program, in bytes. */
  readonly maxStackBytes: number
  /** The number of calls of tools. A further one throws. */
  readonly maxCalls: number
  /** The JSON of the arguments of one call, in bytes of UTF-8. A call with more throws. */
  readonly maxArgumentBytes: number
  /** The JSON of the result, in bytes of UTF-8. */
  readonly maxResultBytes: number
  /** The lines of the log together, in bytes of UTF-8. Further ones are dropped. */
  readonly maxLogBytes: number
}

/** A program: the body of an async function, and its bounds. */
export interface Program {
  readonly code: string
  readonly bounds: Bounds
}

/** The functions outside of the sandbox that a program can call. */
export interface Host {
  /** Calls a tool. The result is JSON. */
  readonly call: (name: string, args: JsonObject) => Effect.Effect<unknown, CallError>
  /** Receives each line of the log. */
  readonly log: (line: string) => void
}

/**
 * Runs programs. In a program are `tools`, whose members are functions that call the tool of their name,
 * `callTool(name, args)`, and `console`. The sandbox must give it no other authority, pass values as JSON only, and end
 * everything that belongs to a program when the effect ends or is interrupted.
 */
export interface Sandbox {
  /** Runs a program. Succeeds with the JSON of its result, or with `undefined` if it returned nothing. */
  readonly run: (program: Program, host: Host) => Effect.Effect<string | undefined, ProgramError>
}

/** The default: QuickJS in a worker thread. It is loaded by the first program. */
const quickJs: Sandbox = {
  run: (program, host) =>
    Effect.flatMap(
      Effect.tryPromise({
        try: () => import("./internal/nodeSandbox.ts"),
        catch: () => new ProgramError(new Unavailable({ message: "Programs need the worker threads of Node" }))
      }),
      ({ run }) => run(program, host)
    )
}

/**
 * The sandbox of the server. Provide another one to the layer of `CodeMode`.
 *
 * @example
 * const office = CodeMode.layer({}, ...tools).pipe(Layer.provide(Layer.succeed(Sandbox, inContainers)))
 */
export const Sandbox: Context.Reference<Sandbox> = Context.Reference<Sandbox>("@skein/code-mode/Sandbox", {
  defaultValue: () => quickJs
})
