/**
 * The sandbox that programs of models run in: a service, so that an application can supply another one.
 *
 * The default runs QuickJS, a JavaScript engine in WebAssembly, in a worker thread of its own for each program. Such a
 * program cannot reach the objects of the server, and the thread can be ended whatever it computes.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type { Host, Program } from "./internal/sandbox/program.ts"
import { ProgramError, Unavailable } from "./ProgramError.ts"

export type { Bounds, Host, Program } from "./internal/sandbox/program.ts"

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
        try: () => import("./internal/sandbox/nodeSandbox.ts"),
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
