/**
 * The messages between the thread of a program (`worker/main.ts`) and the server (`nodeSandbox.ts`). Each one is
 * answered with a `Turn`, so that the server knows whether the program computes.
 */
import type { Program } from "./program.ts"

/** Sent by a thread that has loaded the engine and starts the program. */
export const started = "started"

/** The data that a thread starts with. */
export interface Start {
  readonly program: Program
  /** The compiled module of QuickJS, which all threads share. */
  readonly engine: object
}

/** The end of a call of a tool: the JSON of its result, or the message of its failure. */
export interface Settled {
  readonly id: number
  readonly succeeded: boolean
  readonly text: string
}

/** How a program ended. */
export type Outcome =
  | { readonly type: "returned"; readonly json: string | undefined }
  | {
    readonly type: "thrown"
    readonly message: string
    readonly line: number | undefined
    readonly column: number | undefined
  }
  | {
    readonly type: "limit"
    readonly limit: "computingTimeout" | "maxMemoryBytes" | "maxStackBytes" | "maxResultBytes"
  }
  | { readonly type: "neverSettles" }
  | { readonly type: "invalidResult"; readonly message: string }

/** A call of a tool that the program waits for. */
export interface ToolCall {
  readonly id: number
  readonly name: string
  /** The JSON of the arguments. */
  readonly args: string
}

/** The actions of a program between a message of the server and the next one that it waits for. */
export interface Turn {
  readonly log: ReadonlyArray<string>
  readonly calls: ReadonlyArray<ToolCall>
  /** How long it has computed in total, in milliseconds. */
  readonly computedMillis: number
  readonly outcome: Outcome | undefined
}
