/** A program of a model, its bounds, and the functions outside of its sandbox. `Sandbox` exports these types. */
import type { JsonObject } from "@skein/protocol/JsonRpc"
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type { CallError } from "../../ProgramError.ts"

/** The bounds of one program that its sandbox enforces. `CodeMode.Options` has the defaults. */
export interface Bounds {
  /** The time that the program computes in total, in milliseconds. Time that it waits for tools does not count. */
  readonly computingTimeoutMillis: number
  /** The memory of the program's values, in bytes. */
  readonly maxMemoryBytes: number
  /** The stack of the program, in bytes. */
  readonly maxStackBytes: number
  /** The number of calls of tools. A further one throws. */
  readonly maxCalls: number
  /** The JSON of the arguments of one call, in bytes of UTF-8. A call with more, or with a longer name, throws. */
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

/** The bounds that are not options. */
export interface FixedBounds extends Pick<Bounds, "maxStackBytes" | "maxArgumentBytes" | "maxLogBytes"> {
  /** The characters of a program. */
  readonly maxCodeChars: number
}

/** The bounds that are not options. Tests provide smaller ones. */
export const FixedBounds: Context.Reference<FixedBounds> = /* @__PURE__ */ Context.Reference(
  "@skein/code-mode/FixedBounds",
  {
    defaultValue: (): FixedBounds => ({
      maxCodeChars: 32_768,
      maxStackBytes: 512 * 1024,
      maxArgumentBytes: 1024 * 1024,
      maxLogBytes: 16_384
    })
  }
)
