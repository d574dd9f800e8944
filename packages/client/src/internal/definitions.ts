/**
 * What the client remembers of the tools that the server has listed: the parameters that are mirrored into headers, the schema of
 * what they answer, and whether they may be called twice.
 */
import type { CallToolResult } from "@skein/protocol/CallTool"
import type { JsonObject } from "@skein/protocol/JsonRpc"
import type * as SchemaValidation from "@skein/protocol/SchemaValidation"
import type { ListToolsResult, Tool, ToolAnnotations } from "@skein/protocol/Tool"
import * as XMcpHeader from "@skein/protocol/XMcpHeader"
import type { Headers } from "@skein/runtime/Connection"
import type * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { ClientError } from "../ClientError.ts"
import type { Line } from "./line.ts"
import { OutputCheck } from "./outputSchema.ts"

/** See the module's text. */
export interface Definitions {
  /** Reads a page of tools; gives it without the tools that may not be used on this line. */
  readonly read: (line: Line, page: ListToolsResult) => ListToolsResult
  /** The headers that mirror the arguments of a call, given its params as they are written. */
  readonly headers: (params: JsonObject) => Result.Result<Headers | undefined, ClientError>
  /** Whether headers of this tool were known, but may have changed since. */
  readonly outdated: (name: string) => boolean
  /** All tools have been listed anew: what is outdated still is gone. */
  readonly relisted: () => void
  /** Checks the structured content of a result, where the tool's `outputSchema` is known: otherwise there is nothing to do. */
  readonly check: (
    line: Line,
    name: string,
    result: CallToolResult
  ) => Effect.Effect<CallToolResult, ClientError> | undefined
  /** Whether what is known of a tool is to be looked up anew, since a result does not fit it: once until it is forgotten. */
  readonly doubt: (name: string) => boolean
  /** Whether a tool may be called twice without harm, as far as is known. */
  readonly repeatable: (name: string) => boolean
  /** The list has changed, or belongs to another server process. */
  readonly forget: () => void
}

/** The part of the client's options that matters here. */
export interface Settings {
  readonly maxTools?: number | undefined
  readonly validateOutput?: boolean | SchemaValidation.Options | undefined
  readonly warn: (...message: ReadonlyArray<unknown>) => void
}

/** What is remembered of one tool. */
interface Known {
  /** The parameters that are mirrored; or the rule that they break, so that the tool may not be used. */
  readonly mirrored: ReadonlyArray<XMcpHeader.Param> | string
  readonly repeatable: boolean
  readonly output: OutputCheck | undefined
}

const none: ReadonlyArray<XMcpHeader.Param> = []

/**
 * Whether a tool says of itself that a second call does nothing more. "Clients MUST consider tool annotations to be untrusted": what
 * hangs on it is only whether the same server is sent the same request twice.
 */
const isRepeatable = (annotations: ToolAnnotations | undefined): boolean =>
  annotations !== undefined && annotations.destructiveHint !== true &&
  (annotations.readOnlyHint === true || annotations.idempotentHint === true)

const mirroredOf = (tool: Tool): Known["mirrored"] =>
  Result.match(XMcpHeader.fromSchema(tool.inputSchema), { onSuccess: (params) => params, onFailure: (rule) => rule })

const mirrors = ({ connection, modern }: Line): boolean => modern && connection.mirrors === true

/** Structured content, and the schema of it, came with 2025-06-18. */
const hasStructured = ({ revision }: Line): boolean => revision >= "2025-06-18"

/** Remembers. */
export const make = ({ maxTools = 10_000, validateOutput = true, warn }: Settings): Definitions => {
  const tools = new Map<string, Known>()
  const outdated = new Set<string>()
  const doubted = new Set<string>()
  const compiling = { limits: typeof validateOutput === "object" ? validateOutput : {}, warn }

  const bound = (kept: Map<string, unknown> | Set<string>): void => {
    if (kept.size <= maxTools) return
    const [oldest] = kept.keys()
    kept.delete(oldest!)
  }

  const remember = (line: Line, tool: Tool): boolean => {
    const { name } = tool
    const before = tools.get(name)
    const mirrored = mirrors(line) ? mirroredOf(tool) : none
    if (typeof mirrored === "string" && before?.mirrored !== mirrored) {
      warn(`The tool ${JSON.stringify(name.slice(0, 128))} is left out: ${mirrored}`)
    }
    const isChecked = validateOutput !== false && hasStructured(line) && tool.outputSchema !== undefined
    const output = isChecked ? new OutputCheck(name, tool.outputSchema, compiling, before?.output) : undefined
    tools.delete(name)
    tools.set(name, { mirrored, repeatable: isRepeatable(tool.annotations), output })
    bound(tools)
    outdated.delete(name)
    return typeof mirrored !== "string"
  }

  return {
    read: (line, page) => {
      const usable = page.tools.filter((tool) => remember(line, tool))
      return usable.length === page.tools.length ? page : { ...page, tools: usable }
    },
    headers: (params) => {
      const mirrored = tools.get(params["name"] as string)?.mirrored
      if (mirrored === undefined || mirrored.length === 0 || typeof mirrored === "string") {
        return Result.succeed(undefined)
      }
      return Result.mapError(XMcpHeader.encode(mirrored, params["arguments"]), (problem) =>
        new ClientError({
          reason: "Unsupported",
          method: "tools/call",
          message: `tools/call cannot be sent: ${problem}`
        }))
    },
    outdated: (name) => outdated.has(name),
    relisted: () => outdated.clear(),
    check: (line, name, result) =>
      result.isError === true || !hasStructured(line) ? undefined : tools.get(name)?.output?.run(result),
    doubt: (name) => {
      if (doubted.has(name)) return false
      doubted.add(name)
      bound(doubted)
      return true
    },
    repeatable: (name) => tools.get(name)?.repeatable === true,
    forget: () => {
      for (const [name, { mirrored }] of tools) {
        if (typeof mirrored === "string" || mirrored.length === 0) continue
        outdated.add(name)
        bound(outdated)
      }
      tools.clear()
      doubted.clear()
    }
  }
}
