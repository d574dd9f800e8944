/**
 * What the client remembers of the tools that the server has listed: the headers that mirror their arguments, and the schema of
 * what they answer.
 */
import type { CallToolResult } from "@skein/protocol/CallTool"
import type { JsonObject } from "@skein/protocol/JsonRpc"
import type { ListToolsResult } from "@skein/protocol/Tool"
import type { Headers } from "@skein/runtime/Connection"
import type { ClientError } from "../ClientError.ts"
import type { Line } from "./line.ts"

/** See the module's text. */
export interface Definitions {
  /** Reads a page of tools; gives it without the tools that may not be used on this line. */
  readonly read: (line: Line, page: ListToolsResult) => ListToolsResult
  /** The headers that mirror the arguments of a call, given its params as they are written. */
  readonly headers: (params: JsonObject) => Headers | undefined
  /** What is wrong with the structured content of a result, if the tool's `outputSchema` is known. */
  readonly check: (name: string, result: CallToolResult) => ClientError | undefined
  /** Whether a tool may be called twice without harm, as far as is known. */
  readonly repeatable: (name: string) => boolean
  /** The list has changed, or belongs to another server process. */
  readonly forget: () => void
}

/** Remembers. */
export const make = (): Definitions => ({
  read: (_, page) => page,
  headers: () => undefined,
  check: () => undefined,
  repeatable: () => false,
  forget: () => {}
})
