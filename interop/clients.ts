/**
 * The clients of the suite behind one face, so that each expectation is written once.
 */
import type { Revision } from "@skein/protocol/Revision"

/** A block of content, or the contents of a resource, as it came; the expectations look inside. */
export type Block = Readonly<Record<string, unknown>>

export interface CallOutcome {
  readonly content: ReadonlyArray<Block>
  readonly structuredContent?: unknown
  readonly isError: boolean
}

export interface ProgressNote {
  readonly progress: number
  readonly total: number | undefined
  readonly message: string | undefined
}

export interface CallOptions {
  readonly onProgress?: (note: ProgressNote) => void
  readonly signal?: AbortSignal
}

export interface AnyClient {
  /** The revision that was agreed on. */
  readonly revision: string | undefined
  readonly serverName: string | undefined
  readonly instructions: string | undefined
  /** The server's process, where the client tells. */
  readonly pid: number | undefined
  /** What an SDK client complains of out of band: lines that are no message, answers to nothing, progress of nothing. */
  readonly complaints: ReadonlyArray<Error>
  readonly tools: () => Promise<ReadonlyArray<Block>>
  readonly call: (name: string, args: Block, options?: CallOptions) => Promise<CallOutcome>
  /** Every page of the resources, as URIs. */
  readonly resources: () => Promise<ReadonlyArray<string>>
  readonly templates: () => Promise<ReadonlyArray<string>>
  readonly read: (uri: string) => Promise<ReadonlyArray<Block>>
  readonly prompts: () => Promise<ReadonlyArray<Block>>
  readonly prompt: (name: string, args: Readonly<Record<string, string>>) => Promise<ReadonlyArray<Block>>
  readonly close: () => Promise<void>
}

/** A program that serves the offer over stdio. */
export interface ServerCommand {
  readonly command: string
  readonly args: ReadonlyArray<string>
}

/**
 * Connects to a server. `revision` holds the client to one; `auto` lets it find out the newest that both speak; without either
 * it is as it comes.
 */
export type Connect = (server: ServerCommand, revision: Revision | "auto" | undefined) => Promise<AnyClient>
